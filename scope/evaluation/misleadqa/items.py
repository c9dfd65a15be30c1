"""The items of a run: a frozen release folder whose checksums hold, or a file of items in the same schema."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

from scope.artifacts import fingerprint
from scope.pool.misleadqa.release import load_release
from scope.scopes import ScopedItem, load_scoped

#: Of the order of items and of the diagnostic sample (MisleadQA, App. D.4).
SEED = 2027


def read_items(source: str) -> list[ScopedItem]:
    """All items of a release folder or of a file or hub id; a Refusal names what is wrong with them."""
    return load_release(source).items if Path(source).is_dir() else load_scoped(source)


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
