"""Finished runs side by side: one row a system, paired on the same items and the same resample.

    python -m scope.report RUN_FOLDER [RUN_FOLDER ...] [--against SYSTEM] [--out FOLDER]

A run folder is `runs/NAME`, which stands for all its evaluated arms, or `runs/NAME/ARM`. Everything is
counted anew from the outcomes, by the settings of the first folder's evaluation.
"""

import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scope import artifacts, merge
from scope.artifacts import StageError
from scope.evaluation import outcomes as table
from scope.evaluation.results import REFERENCE, Settings, missing_from_groups, results
from scope.evaluation.stage import FOLDER as EVALUATE
from scope.evaluation.suites import SUITES
from scope.evaluation.systems import UNTRAINED, is_trained
from scope.recipe import nearest
from scope.report import seeds, tables
from scope.report.terminal import strata, width


@dataclass(frozen=True, slots=True)
class Evaluated:
    """One arm's finished evaluation on a suite."""

    folder: Path  # of the arm
    suite: str
    manifest: dict[str, Any]
    rows: list[dict[str, Any]]  # of outcomes.parquet

    @property
    def arm(self) -> str:
        return self.folder.resolve().name

    @property
    def place(self) -> Path:
        return self.folder / EVALUATE / self.suite


def compare_all(
    folders: Sequence[Path], against: str = REFERENCE, suites: Sequence[str] = (), intersection: bool = False
) -> dict[str, dict[str, Any]]:
    """Suite -> `compare`. Without `suites` all that any folder is evaluated on, each over the folders that are."""
    if missing := [folder for folder in folders if not folder.is_dir()]:
        raise StageError(f"{missing[0]}: there is no such folder; name runs/NAME or runs/NAME/ARM")
    has = {folder: suites_of(folder) for folder in folders}
    for name in suites:
        if name not in SUITES:
            raise StageError(f"--suite {name}: there is no such suite; {nearest(name, list(SUITES))}")
    if not suites and not any(has.values()):
        raise StageError(f"{', '.join(map(str, folders))}: holds no finished evaluation; run evaluate.py for it")
    together = {}
    for name in suites or [name for name in SUITES if any(name in own for own in has.values())]:
        chosen = [folder for folder in folders if suites or name in has[folder]]
        together[name] = compare(chosen, against, name, intersection)
        left_out = [folder for folder in folders if folder not in chosen]
        together[name]["notes"] += [f"{one} is not evaluated on {SUITES[name].title} and left out" for one in left_out]
    return together


def suites_of(folder: Path) -> set[str]:
    """The suites that any arm of a run folder is evaluated on."""
    patterns = (f"{EVALUATE}/*/manifest.json", f"*/{EVALUATE}/*/manifest.json")
    return {path.parent.name for pattern in patterns for path in folder.glob(pattern)}


def find(folders: Sequence[Path], suite: str) -> tuple[list[Evaluated], list[str]]:
    """The evaluated arms of the run folders, in order, and a note on each arm that is not evaluated yet."""
    arms, notes = [], []
    inner = Path(EVALUATE, suite, "manifest.json")
    for folder in folders:
        inside = sorted(path.parents[2] for path in folder.glob(f"*/{inner}"))
        chosen = [folder] if (folder / inner).is_file() else inside
        if not chosen:
            raise StageError(f"{folder}: holds no finished evaluation on {suite}; run evaluate.py for it")
        waiting = {path.parent for path in folder.glob(f"*/{merge.TRAIN}")} - set(chosen)
        notes += [f"{arm} is not evaluated yet and left out" for arm in sorted(waiting)]
        arms += [arm for arm in chosen if arm not in arms]
    found = []
    for arm in arms:
        place = arm / EVALUATE / suite
        manifest = artifacts.require(place, EVALUATE, "evaluate.py")
        found.append(Evaluated(arm, suite, manifest, table.read(place)))
    return found, notes


def compare(
    folders: Sequence[Path], against: str = REFERENCE, suite: str = "mist", intersection: bool = False
) -> dict[str, Any]:
    """`results` over the systems of all arms, with differences to `against`; plain data as in results.json.

    Systems that no arm trained stand once, as the first arm has them; a trained one is called by its arm. Adds
    `facts` of the first folder's items, `folders` (system -> arm's folder), `steps` (system -> training steps behind
    it, null where that says nothing) and `notes`. StageError, naming both folders, where two were not evaluated on
    the same items, base and settings; with `intersection` the items that all have in common, unchanged, are compared.
    """
    found, notes = find(folders, suite)
    first, declared = found[0], SUITES[suite]
    for other in found[1:]:
        _check_comparable(first, other, intersection)
    items = table.read_jsonl(first.place / "items.jsonl")
    if intersection:
        items, notes = _common(found, items, notes)
    systems: dict[str, list[dict[str, Any]]] = {}
    homes: dict[str, str] = {}
    steps: dict[str, int | None] = {}
    for arm in found:
        for system in dict.fromkeys(row["system"] for row in arm.rows):
            rows = [row for row in arm.rows if row["system"] == system]
            name = _name(arm, system, found)
            if name in systems:
                changed = _changed(systems[name], rows)
                if changed:
                    notes.append(f"{name} answered {changed} cells otherwise in {arm.folder}; {homes[name]} is shown")
                continue
            systems[name], homes[name], steps[name] = rows, str(arm.folder), _steps(arm, system)
    if against not in systems and against != REFERENCE:
        raise StageError(f"against={against} is none of the systems; {nearest(against, list(systems))}")
    order = sorted(systems, key=lambda name: UNTRAINED.index(name) if name in UNTRAINED else len(UNTRAINED))
    made = first.manifest["recipe"]
    chosen = made["evaluation"]
    seed = made["seed"] if chosen.get("seed") is None else chosen["seed"]
    settings = Settings(
        *(chosen["level"], chosen["replicates"], seed, chosen["complete_only"], against),
        groups=chosen.get("groups", {}),
    )
    notes += missing_from_groups(declared, settings.groups, order)
    outcomes = [{**row, "system": name} for name in order for row in systems[name]]
    together = results(declared, [declared.item_of(item) for item in items], outcomes, settings)
    recorded = _recorded(first)
    named = {"model": recorded.get("model", made["model"]["base"]), "facts": recorded.get("facts", {})}
    named |= {"folders": homes, "steps": steps}
    notes += seeds.apart(named)
    return {"schema": together.pop("schema"), "suite": together.pop("suite"), **named, **together, "notes": notes}


def _common(
    found: Sequence[Evaluated], items: list[dict[str, Any]], notes: list[str]
) -> tuple[list[dict[str, Any]], list[str]]:
    """The items that every arm was asked, the same in all, and a note of how many each has."""
    by_arm = [{item["id"]: item for item in table.read_jsonl(arm.place / "items.jsonl")} for arm in found]
    common = [item for item in items if all(other.get(item["id"]) == item for other in by_arm)]
    if not common:
        raise StageError(f"{' and '.join(str(arm.folder) for arm in found)} have no item in common")
    counts = ", ".join(f"{len(own)} in {arm.folder}" for arm, own in zip(found, by_arm, strict=True))
    return common, [*notes, f"only the {len(common)} items that all have in common are compared: {counts}"]


def _check_comparable(first: Evaluated, other: Evaluated, intersection: bool) -> None:
    def settings(arm: Evaluated) -> dict[str, Any]:
        key, evaluation = arm.manifest["key"], arm.manifest["recipe"]["evaluation"]
        return {
            "items": arm.manifest["outputs"]["items.jsonl"],
            "base": _base(key["systems"].get(REFERENCE)),
            "chat template settings": key["model"]["chat_template_kwargs"],
            "max_new_tokens": evaluation["max_new_tokens"],
            "releases": key["pool"] if SUITES[arm.suite].frozen else None,
            **key.get("settings", {}),
        }

    ours, theirs = settings(first), settings(other)
    for what in dict.fromkeys([*ours, *theirs]):
        value = ours.get(what)
        if what == "items" and intersection:
            continue
        if theirs.get(what) != value and not (what == "base" and None in (value, theirs[what])):
            raise StageError(
                f"{first.folder} and {other.folder} were evaluated with different {what}; evaluate both with the same, "
                "or compare them apart" + (" (--intersection compares the common items)" * (what == "items"))
            )


def _base(identity: list[Any] | None) -> Any:
    """What tells two bases apart, of `System.identity`: where it is there, every file that the model is read from."""
    return identity and (identity[2:] or identity[:1])


def _name(arm: Evaluated, system: str, found: Sequence[Evaluated]) -> str:
    """Of what an arm trained: its name, with the run's where several have it, with the system where it has several.

    Any other system keeps its name; with the arm's where an earlier arm calls other weights so.
    """
    name = arm.arm
    if sum(other.arm == name for other in found) > 1:
        name = f"{arm.folder.resolve().parent.name}/{name}"
        if sum(other.folder.resolve().parts[-2:] == arm.folder.resolve().parts[-2:] for other in found) > 1:
            name = str(arm.folder)
    systems = _systems(arm)
    if not is_trained(system):
        first = next(_systems(other)[system] for other in found if system in _systems(other))
        return system if system in UNTRAINED or systems[system] == first else f"{system} ({name})"
    return name if sum(map(is_trained, systems)) == 1 else f"{name} ({system})"


def _systems(arm: Evaluated) -> dict[str, Any]:
    return arm.manifest["key"]["systems"]


def _steps(arm: Evaluated, system: str) -> int | None:
    if system == REFERENCE:
        return 0
    if step := re.fullmatch(r"checkpoint-(\d+)", system):
        return int(step[1])
    return arm.manifest["recipe"]["trainer"]["max_steps"] if is_trained(system) else None


def _recorded(arm: Evaluated) -> dict[str, Any]:
    """An evaluation's own results, for what answered and what was said of it; nothing where they are gone."""
    file = arm.place / "results.json"
    return table.read_json(file) if file.is_file() else {}


def _changed(rows: list[dict[str, Any]], others: list[dict[str, Any]]) -> int:
    labels = {(row["item_id"], row["cell"]): row["label"] for row in rows}
    return sum(labels.get((row["item_id"], row["cell"])) != row["label"] for row in others)


def as_text(found: dict[str, Any], with_published: bool = False) -> str:
    """Rates and differences as one table for a terminal."""
    from rich.console import Console
    from rich.table import Table

    stream = io.StringIO()
    console = Console(
        file=stream, width=width(SUITES[found["suite"]]), color_system=None, highlight=False, markup=False
    )
    rates = tables.rates(found, with_published)
    console.print(rates.title, soft_wrap=True)
    main = Table()
    for column, heading in enumerate(rates.head):
        main.add_column(heading, justify="right" if column else "left", no_wrap=column > 0)
    for group in rates.groups:
        if group.heading:
            main.add_section()
            main.add_row(group.heading)
        for row in group.rows:
            main.add_row(*(cell.text for cell in row))
    for rows in tables.paired_rows(found):
        main.add_section()
        for texts in rows:
            main.add_row(texts[0], *("" for _ in strata(found)), *texts[1:])
    console.print(main)
    for one in seeds.tables(found):
        console.print(one.title, soft_wrap=True)
        beside = Table(*one.head)
        for group in one.groups:
            beside.add_section()
            for row in group.rows:
                beside.add_row(*(cell.text for cell in row))
        console.print(beside)
        console.print(*one.notes)
    for line in [*tables.legend(found), *tables.source(found, with_published, "Table 1 or 2")]:
        console.print(line)
    return "\n".join(line.rstrip() for line in stream.getvalue().splitlines())
