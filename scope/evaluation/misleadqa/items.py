"""The items of a run: a frozen release folder whose checksums hold, or a file of items in the same schema.

A release folder holds `items.jsonl`, a `scope.scopes.ScopedItem` a line as `dataclasses.asdict` writes it, and
`SHA256SUMS`, a line `HASH  NAME` for each of its files (`sha256sum --check` reads it).
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from scope.artifacts import StageError, file_hash, fingerprint
from scope.items import normalised
from scope.scopes import ABSTENTION, DIMENSIONS, LETTERS, Edit, ScopedItem
from scope.tables import TableError, rows_of

CHECKSUMS = "SHA256SUMS"
#: Of the order of items and of the diagnostic sample (MisleadQA, App. D.4).
SEED = 2027


def read_items(source: str) -> list[ScopedItem]:
    """All items of a release folder or a file; StageError or TableError in sentences."""
    folder = Path(source)
    if folder.is_dir():
        check_release(folder)
        source = str(folder / "items.jsonl")
    items, faults = [], []
    for where, row in rows_of(source):
        try:
            if isinstance(row, str):
                raise ValueError(row)
            items.append(item_of(row))
        except ValueError as fault:
            faults.append(f"{where}: {fault}")
    faults += [f"{source}: {fault}" for fault in together(items)]
    if faults:
        raise TableError(faults)
    return items


def check_release(folder: Path) -> None:
    """StageError unless every file of a release folder is the one that was frozen."""
    sums = folder / CHECKSUMS
    if not sums.is_file():
        raise StageError(f"{folder}: is no release, {CHECKSUMS} is missing; name a release folder, or a file of items")
    lines = [line.split(maxsplit=1) for line in sums.read_text("utf-8").splitlines()]
    listed = {line[1]: line[0] for line in lines if len(line) == 2}
    for name in {"items.jsonl"} | listed.keys():
        if not (folder / name).is_file() or listed.get(name) != file_hash(folder / name):
            raise StageError(
                f"{folder / name}: is not the file that was frozen ({CHECKSUMS} has "
                f"{str(listed.get(name))[:12]}…); fetch or build the release again, or freeze a new version"
            )


def item_of(row: Mapping[str, Any]) -> ScopedItem:
    """The item of a row; ValueError with `field: what was found; what to do`."""
    try:
        edits = tuple(Edit(**edit) for edit in row.get("edits", ()))
        item = ScopedItem(**{**row, "options": tuple(row.get("options", ())), "edits": edits})
    except TypeError as error:
        raise ValueError(f"row: is no item of MisleadQA ({error}); see docs/misleadqa.md for the fields") from error
    for name in ("id", "question", "g", "s", "f", "cluster", "dependency_group", "source"):
        if not isinstance(value := getattr(item, name), str) or not value.strip():
            raise ValueError(f"{name}: is {value!r}, not text; every item needs it")
    if item.dimension not in DIMENSIONS:
        raise ValueError(f"dimension: {item.dimension!r} is unknown; it is one of {', '.join(DIMENSIONS)}")
    if item.split not in ("main", "condition"):
        raise ValueError(f"split: {item.split!r} is unknown; it is main or condition")
    if item.gold not in tuple(LETTERS) or item.lure not in tuple(LETTERS) or item.gold == item.lure:
        raise ValueError(f"gold, lure: are {item.gold!r} and {item.lure!r}; they are two letters of {LETTERS}")
    if len(item.options) != 4 or len({normalised(str(text)) for text in (*item.options, ABSTENTION)}) < 5:
        raise ValueError(f"options: {list(item.options)} are not four that differ from one another and from E")
    if replayed(item) != item.f:
        raise ValueError("edits: do not turn g into f; register the spans that were replaced")
    return item


def replayed(item: ScopedItem) -> str:
    """G with the registered edits made, which is to be F."""
    text = item.g
    for edit in sorted(item.edits, key=lambda edit: -edit.start):
        text = text[: edit.start] + edit.text + text[edit.end :]
    return text


def together(items: Sequence[ScopedItem]) -> Iterable[str]:
    """What is wrong with the items as a set, a sentence each."""
    seen: set[str] = set()
    groups: dict[str, set[str]] = defaultdict(set)
    for item in items:
        if item.id in seen:
            yield f"id: {item.id!r} names two items; give each an id of its own"
        seen.add(item.id)
        groups[cluster(item)].add(item.dependency_group)
    for name, found in groups.items():
        if len(found) > 1:
            yield (
                f"dependency_group: cluster {name!r} is split over {', '.join(sorted(found))}; a cluster lies within "
                "one group"
            )


def cluster(item: ScopedItem) -> str:
    """The unit of resampling: a jurisdiction or upstream question of a source (App. A.4)."""
    return f"{item.source}: {item.cluster}"


def ordered(items: Iterable[ScopedItem]) -> list[ScopedItem]:
    """The items in one seeded order, so that the first n are a sample, whatever order they were given in."""
    return sorted(items, key=lambda item: fingerprint([SEED, item.id]))


def sampled(items: Sequence[ScopedItem], per_group: int) -> list[ScopedItem]:
    """The first items of each source-scope group in that order; chosen without any answer (App. D.4)."""
    drawn: dict[str, int] = defaultdict(int)
    kept = []
    for item in ordered(items):
        drawn[item.group] += 1
        if drawn[item.group] <= per_group:
            kept.append(item)
    return kept
