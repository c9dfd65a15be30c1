"""Finished runs side by side: one row a system, paired on the same items and the same resample.

    python -m scope.report RUN_FOLDER [RUN_FOLDER ...] [--against SYSTEM] [--markdown FILE] [--json FILE]

A run folder is `runs/NAME`, which stands for all its evaluated arms, or `runs/NAME/ARM`. Everything is
counted anew from the outcomes, by the settings of the first folder's evaluation.
"""

import io
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scope import artifacts, merge
from scope.artifacts import StageError
from scope.evaluation.results import REFERENCE, results
from scope.evaluation.stage import FOLDER as EVALUATE
from scope.evaluation.stage import UNTRAINED
from scope.items import load_items
from scope.recipe import Recipe, nearest
from scope.report.card import markdown
from scope.report.terminal import HEADINGS, difference, interval, rate


@dataclass(frozen=True, slots=True)
class Evaluated:
    """One arm's finished evaluation."""

    folder: Path  # of the arm
    manifest: dict[str, Any]
    rows: list[dict[str, Any]]  # of outcomes.parquet

    @property
    def arm(self) -> str:
        return self.folder.resolve().name


def find(folders: Sequence[Path]) -> tuple[list[Evaluated], list[str]]:
    """The evaluated arms of the run folders, in order, and a note on each arm that is not evaluated yet."""
    import pyarrow.parquet as pq

    arms, notes = [], []
    for folder in folders:
        inside = sorted(path.parent.parent for path in folder.glob(f"*/{EVALUATE}/manifest.json"))
        chosen = [folder] if (folder / EVALUATE / "manifest.json").is_file() else inside
        if not chosen:
            raise StageError(f"{folder}: holds no finished evaluation; run evaluate.py for it")
        waiting = {path.parent for path in folder.glob(f"*/{merge.TRAIN}")} - set(chosen)
        notes += [f"{arm} is not evaluated yet and left out" for arm in sorted(waiting)]
        arms += [arm for arm in chosen if arm not in arms]
    found = []
    for arm in arms:
        manifest = artifacts.require(arm / EVALUATE, EVALUATE, "evaluate.py")
        found.append(Evaluated(arm, manifest, pq.read_table(arm / EVALUATE / "outcomes.parquet").to_pylist()))
    return found, notes


def compare(folders: Sequence[Path], against: str = REFERENCE) -> dict[str, Any]:
    """`results` over the systems of all arms, with differences to `against`; plain data as in results.json.

    Untrained systems stand once, as the first arm has them; a trained one is called by its arm. Adds
    `against`, `folders` (system -> arm's folder) and `notes`. StageError, naming both folders, where two were
    not evaluated on the same items, base and settings.
    """
    found, notes = find(folders)
    first = found[0]
    for other in found[1:]:
        _check_comparable(first, other)
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
    # `results` pairs everything with the system called REFERENCE: the two names change places for it.
    swap = {against: REFERENCE, REFERENCE: against}
    order = sorted(systems, key=lambda name: UNTRAINED.index(name) if name in UNTRAINED else len(UNTRAINED))
    outcomes = [{**row, "system": swap.get(name, name)} for name in order for row in systems[name]]
    made = first.manifest["recipe"]
    recipe = Recipe(name=made["name"], seed=made["seed"])
    recipe.model.base = made["model"]["base"]
    for setting in ("suite", "replicates", "level"):
        setattr(recipe.evaluation, setting, made["evaluation"][setting])
    together = results(recipe, load_items(first.folder / EVALUATE / "items.jsonl"), outcomes)
    for part in ("systems", "differences"):
        together[part] = {swap.get(name, name): value for name, value in together[part].items()}
    del together["arm"]
    return {**together, "against": against, "folders": homes, "notes": notes}


def _check_comparable(first: Evaluated, other: Evaluated) -> None:
    def settings(arm: Evaluated) -> dict[str, Any]:
        key, evaluation = arm.manifest["key"], arm.manifest["recipe"]["evaluation"]
        return {
            "items": arm.manifest["outputs"]["items.jsonl"],
            "base": key["systems"].get(REFERENCE, [None])[0],
            "chat template settings": key["model"]["chat_template_kwargs"],
            "suite": evaluation["suite"],
            "max_new_tokens": evaluation["max_new_tokens"],
        }

    ours, theirs = settings(first), settings(other)
    for what, value in ours.items():
        if theirs[what] != value and not (what == "base" and None in (value, theirs[what])):
            raise StageError(
                f"{first.folder} and {other.folder} were evaluated with different {what}; evaluate both with the same, "
                "or compare them apart"
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


def table_rows(found: dict[str, Any]) -> tuple[list[list[str]], list[list[str]]]:
    """(a row of rates a system; three rows of difference, interval and McNemar p a system), cells as text."""
    rates = [[name, *(rate(s["rates"][m]) for m in HEADINGS)] for name, s in found["systems"].items()]
    paired = []
    for name, other in found["differences"].items():
        tests = other["mcnemar"]
        paired += [
            [f"{name} - {found['against']}", *(difference(other["rates"][m]) for m in HEADINGS)],
            ["", *(interval(other["rates"][m]) for m in HEADINGS)],
            ["McNemar p", *(f"{tests[m]['p_value']:.2g}" if m in tests else "" for m in HEADINGS)],
        ]
    return rates, paired


def title(found: dict[str, Any]) -> str:
    return f"{found['suite'].upper()}: {found['items']} items, {found['model']}"


def legend(found: dict[str, Any]) -> list[str]:
    """What the numbers are, and every note, a line each."""
    left_out = len(found["failed_items"])
    return [
        f"Per cent ± bootstrap sd. [low, high]: {100 * found['level']:g} % interval of the paired difference; "
        f"{found['replicates']} item resamples shared by all systems. McNemar p: exact, of one cell, not corrected for "
        "the number of comparisons. SC2W: wrong when misled among right when clean; less is better.",
        *([f"{left_out} items left out of all systems because a request failed"] if left_out else []),
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
    for heading in HEADINGS.values():
        main.add_column(heading, justify="right", no_wrap=True)
    rates, paired = table_rows(found)
    for row in rates:
        main.add_row(*row)
    for number, row in enumerate(paired):
        if number % 3 == 0:
            main.add_section()
        main.add_row(*row)
    console.print(main)
    for line in legend(found):
        console.print(line)
    return "\n".join(line.rstrip() for line in stream.getvalue().splitlines())


def as_markdown(found: dict[str, Any]) -> str:
    """The same table as Markdown."""
    rates, paired = table_rows(found)
    lines = "\n".join(f"- {line}" for line in legend(found))
    return f"### {title(found)}\n\n{markdown(['per cent', *HEADINGS.values()], [*rates, *paired])}\n\n{lines}\n"


def write(found: dict[str, Any], markdown_file: Path | None, json_file: Path | None) -> None:
    if markdown_file is not None:
        artifacts.write_text(markdown_file, as_markdown(found))
    if json_file is not None:
        artifacts.write_text(json_file, json.dumps(found, indent=2, ensure_ascii=False) + "\n")
