"""Finished runs side by side: one row a system, paired on the same items and the same resample.

    python -m scope.report RUN_FOLDER [RUN_FOLDER ...] [--against SYSTEM] [--markdown FILE] [--json FILE]

A run folder is `runs/NAME`, which stands for all its evaluated arms, or `runs/NAME/ARM`. Everything is
counted anew from the outcomes, by the settings of the first folder's evaluation.
"""

import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scope import artifacts, merge
from scope.artifacts import StageError
from scope.evaluation import outcomes as table
from scope.evaluation.results import REFERENCE, Settings, results
from scope.evaluation.stage import FOLDER as EVALUATE
from scope.evaluation.suites import SUITES
from scope.evaluation.systems import UNTRAINED
from scope.recipe import nearest
from scope.report.card import markdown
from scope.report.terminal import difference, interval, notes, rate


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


def suites_of(folders: Sequence[Path]) -> list[str]:
    """The suites that any arm of the run folders is evaluated on, in the order of `SUITES`."""
    found = {
        path.parent.name
        for folder in folders
        for pattern in (f"{EVALUATE}/*/manifest.json", f"*/{EVALUATE}/*/manifest.json")
        for path in folder.glob(pattern)
    }
    if not found:
        raise StageError(f"{', '.join(map(str, folders))}: holds no finished evaluation; run evaluate.py for it")
    return [name for name in SUITES if name in found]


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

    Untrained systems stand once, as the first arm has them; a trained one is called by its arm. Adds
    `folders` (system -> arm's folder) and `notes`. StageError, naming both folders, where two were not evaluated on
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
    for arm in found:
        for system in dict.fromkeys(row["system"] for row in arm.rows):
            rows = [row for row in arm.rows if row["system"] == system]
            name = system if system in UNTRAINED else _name(arm, system, found)
            if name in systems:
                changed = _changed(systems[name], rows)
                if changed:
                    notes.append(f"{name} answered {changed} cells otherwise in {arm.folder}; {homes[name]} is shown")
                continue
            systems[name], homes[name] = rows, str(arm.folder)
    if against not in systems and against != REFERENCE:
        raise StageError(f"against={against} is none of the systems; {nearest(against, list(systems))}")
    order = sorted(systems, key=lambda name: UNTRAINED.index(name) if name in UNTRAINED else len(UNTRAINED))
    made = first.manifest["recipe"]
    chosen = made["evaluation"]
    settings = Settings(chosen["level"], chosen["replicates"], made["seed"], chosen["complete_only"], against)
    outcomes = [{**row, "system": name} for name in order for row in systems[name]]
    together = results(declared, [declared.item_of(item) for item in items], outcomes, settings)
    return {**together, "model": made["model"]["base"], "folders": homes, "notes": notes}


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
            "base": key["systems"].get(REFERENCE, [None])[0],
            "chat template settings": key["model"]["chat_template_kwargs"],
            "max_new_tokens": evaluation["max_new_tokens"],
            "judge": key.get("judge"),
        }

    ours, theirs = settings(first), settings(other)
    for what, value in ours.items():
        if what == "items" and intersection:
            continue
        if theirs[what] != value and not (what == "base" and None in (value, theirs[what])):
            raise StageError(
                f"{first.folder} and {other.folder} were evaluated with different {what}; evaluate both with the same, "
                "or compare them apart" + (" (--intersection compares the common items)" * (what == "items"))
            )


def _name(arm: Evaluated, system: str, found: Sequence[Evaluated]) -> str:
    """The arm's name; with the run's where several have it, and with the system where an arm has several trained."""
    name = arm.arm
    if sum(other.arm == name for other in found) > 1:
        name = f"{arm.folder.resolve().parent.name}/{name}"
        if sum(other.folder.resolve().parts[-2:] == arm.folder.resolve().parts[-2:] for other in found) > 1:
            name = str(arm.folder)
    trained = set(arm.manifest["key"]["systems"]) - set(UNTRAINED)
    return name if len(trained) == 1 else f"{name} ({system})"


def _changed(rows: list[dict[str, Any]], others: list[dict[str, Any]]) -> int:
    labels = {(row["item_id"], row["cell"]): row["label"] for row in rows}
    return sum(labels.get((row["item_id"], row["cell"])) != row["label"] for row in others)


# ---------------------------------------------------------------- tables


def rows_of(found: dict[str, Any]) -> tuple[list[list[str]], list[list[str]]]:
    """(a row of rates a system; rows of difference, interval and McNemar p a system), cells as text."""
    metrics = SUITES[found["suite"]].headings
    rates = [[name, *(rate(s["rates"][m]) for m in metrics)] for name, s in found["systems"].items()]
    paired: list[list[str]] = []
    for name, other in found["differences"].items():
        tests = other.get("mcnemar", {})
        paired += [
            [f"{name} - {found['against']}", *(difference(other["rates"][m]) for m in metrics)],
            ["", *(interval(other["rates"][m]) for m in metrics)],
        ]
        if tests:
            paired.append(["McNemar p", *(f"{tests[m]['p_value']:.2g}" if m in tests else "" for m in metrics)])
    return rates, paired


def title(found: dict[str, Any]) -> str:
    return f"{SUITES[found['suite']].title}: {found['items']} items, {found['model']}"


def legend(found: dict[str, Any]) -> list[str]:
    """What the numbers are, and every note, a line each."""
    suite = SUITES[found["suite"]]
    tested = any("mcnemar" in other for other in found["differences"].values())
    lower = [heading for metric, heading in suite.headings.items() if metric in suite.lower_is_better]
    return [
        f"Per cent ± bootstrap sd. [low, high]: {100 * found['level']:g} % interval of the paired difference to "
        f"{found['against']}; {found['replicates']} item resamples shared by all systems."
        + " McNemar p: exact, of one cell, not corrected for the number of comparisons." * tested
        + (f" Less is better: {', '.join(lower)}." if lower else ""),
        *notes(found),
        *found["notes"],
    ]


def as_text(found: dict[str, Any]) -> str:
    """The table for a terminal."""
    from rich.console import Console
    from rich.table import Table

    stream = io.StringIO()
    console = Console(file=stream, width=150, color_system=None, highlight=False, markup=False)
    main = Table(title=title(found))
    main.add_column("per cent")
    for heading in SUITES[found["suite"]].headings.values():
        main.add_column(heading, justify="right", no_wrap=True)
    rates, paired = rows_of(found)
    for row in rates:
        main.add_row(*row)
    for row in paired:
        if " - " in row[0]:
            main.add_section()
        main.add_row(*row)
    console.print(main)
    for line in legend(found):
        console.print(line)
    return "\n".join(line.rstrip() for line in stream.getvalue().splitlines())


def as_markdown(found: dict[str, Any]) -> str:
    """The same table as Markdown."""
    rates, paired = rows_of(found)
    lines = "\n".join(f"- {line}" for line in legend(found))
    head = ["per cent", *SUITES[found["suite"]].headings.values()]
    return f"### {title(found)}\n\n{markdown(head, [*rates, *paired])}\n\n{lines}\n"


def write(found: Sequence[dict[str, Any]], markdown_file: Path | None, json_file: Path | None) -> None:
    """All suites' tables into one file; the JSON holds suite -> results."""
    if markdown_file is not None:
        artifacts.write_text(markdown_file, "\n".join(map(as_markdown, found)))
    if json_file is not None:
        artifacts.write_json(json_file, {one["suite"]: one for one in found})
