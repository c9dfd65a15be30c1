"""The items of a run: a frozen release, a file of items, or questions with answers and documents of the user's own."""

import itertools
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from scope.artifacts import StageError, fingerprint
from scope.columns import columns_of
from scope.evidence import EvidenceItem, load_evidence
from scope.pool.ragstress.custom import items_of
from scope.pool.ragstress.release import load_release
from scope.schema import ReleaseConfig
from scope.tables import rows_of

#: Of the order of items.
SEED = 20260916
#: Rows that tell a file of items from one of questions.
PEEKED = 20


def read_items(source: str, seed: int, settings: ReleaseConfig) -> tuple[list[EvidenceItem], dict[str, Any]]:
    """All items of a release folder or of a file or hub id, and what a reader wants to know of where they are from.

    A file with a column `foil` and `reference` holds items. Any other holds questions, answers and documents, from
    which items are made: what cannot be one is counted by reason. A Refusal names what is wrong.
    """
    if Path(source).is_dir():
        found = load_release(source)
        return found.items, {f"items of release {found.version}": len(found.items)}
    if {"reference", "foil"} <= set(columns_of(list(itertools.islice(rows_of(source), PEEKED)))):
        items = load_evidence(source)
        return items, {"items read": len(items)}
    items, left_out = items_of(source, seed, settings)
    return items, {"items made from questions": len(items), **{f"left out, {why}": n for why, n in left_out.items()}}


def ordered(items: Iterable[EvidenceItem]) -> list[EvidenceItem]:
    """The items in one seeded order, so that the first n are a sample, whatever order they were given in."""
    return sorted(items, key=lambda item: fingerprint([SEED, item.id]))


def validated(name: str, items: Sequence[EvidenceItem]) -> frozenset[str]:
    """The ids in a file, one a line; StageError where it cannot be read or names an item that is not there."""
    try:
        lines = [line.strip() for line in Path(name).read_text("utf-8").splitlines()]
    except (OSError, UnicodeDecodeError) as error:
        raise StageError(
            f"evaluation.ragstress.validated={name}: cannot be read ({error}); name a file of one item id a line"
        ) from error
    known = {item.id for item in items}
    if unknown := next((n for n, id in enumerate(lines, 1) if id and id not in known), 0):
        raise StageError(f"{name}:{unknown}: {lines[unknown - 1]!r} is none of the items; it is of another release")
    return frozenset(filter(None, lines))
