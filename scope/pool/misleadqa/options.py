"""Option letters: gold and lure balanced over A to D and over the twelve ordered pairs of each group (App. B.1)."""

from collections import defaultdict
from collections.abc import Iterator, Sequence

from scope.artifacts import fingerprint
from scope.scopes import LETTERS


def letter_pairs() -> Iterator[tuple[int, int]]:
    """(gold place, lure place) for ever; counts of golds, of lures and of pairs never differ by more than one.

    The pairs of one distance, (0, d) to (3, 3 + d), have every gold and every lure once.
    """
    while True:
        for distance in (1, 2, 3):
            for gold in range(4):
                yield gold, (gold + distance) % 4


def placed(groups: Sequence[str], keys: Sequence[str], seed: int) -> list[tuple[int, int, bool]]:
    """(gold place, lure place, whether the distractors change places) of each item.

    groups: each item's source-scope group. keys: what items are known by whatever their letters; pairs go to them in
    the order of their hashes under the seed.
    """
    members: dict[str, list[int]] = defaultdict(list)
    for index, group in enumerate(groups):
        members[group].append(index)
    found: dict[int, tuple[int, int, bool]] = {}
    for group, indices in members.items():
        ranked = sorted(indices, key=lambda index: fingerprint([seed, "letters", group, keys[index]]))
        for index, (gold, lure) in zip(ranked, letter_pairs(), strict=False):
            found[index] = gold, lure, int(fingerprint([seed, "distractors", keys[index]])[0], 16) % 2 == 1
    return [found[index] for index in range(len(groups))]


def arranged(gold: str, lure: str, distractors: Sequence[str], places: tuple[int, int, bool]) -> tuple[str, ...]:
    """The four option texts in their order."""
    gold_place, lure_place, swapped = places
    rest = list(reversed(distractors) if swapped else distractors)
    return tuple(gold if i == gold_place else lure if i == lure_place else rest.pop() for i in range(len(LETTERS)))
