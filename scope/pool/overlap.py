"""What two pools share: questions, families, and the sentences of their contexts.

Questions stand twice word for word or nearly, within texts, between splits and in transfer sets.

Two questions are near duplicates when the sets of their three-word shingles, numbers and all, overlap by
at least THRESHOLD (Jaccard: shared over all). MinHash LSH proposes the pairs and the exact sets decide, so a
collision is never counted; a pair at the threshold is proposed with probability 0.99 or more. Texts of fewer than
SHORTEST words are compared as they are. Nothing depends on the process: seeded permutations, SHA-1 hashes.
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Generic, TypeVar

from scope.items import Item, normalised
from scope.pool.naming import contexts
from scope.pool.signals import value_forms

#: Shared shingles over all shingles of two near duplicates, at least.
THRESHOLD = 0.8
#: Words of the shortest text that is compared by shingles.
SHORTEST = 6
_PERMUTATIONS, _SEED = 128, 1
#: The shingles of a text without letters and digits, which resembles nothing.
_NOTHING = frozenset([""])

#: A word of the question as an irrelevant context quotes it.
QUOTED_WORD = re.compile(r'"([a-z]{4,14})"')
_ABOUT = re.compile(rf"{QUOTED_WORD.pattern}(?: and {QUOTED_WORD.pattern})?")

K = TypeVar("K")


def shingles(text: str) -> frozenset[str]:
    """The three-word shingles of a text, its ends padded so that all words count alike; the whole of a short one."""
    words = normalised(text).split()
    if len(words) < SHORTEST:
        return frozenset([" ".join(words)])
    words = ["", "", *words, "", ""]
    return frozenset(" ".join(words[i : i + 3]) for i in range(len(words) - 2))


def similarity(a: str, b: str) -> float:
    """Shared over all three-word shingles of two texts, 0 to 1."""
    return _jaccard(shingles(a), shingles(b))


def _jaccard(a: frozenset[str], b: frozenset[str]) -> float:
    shared = len(a & b)
    return shared / (len(a) + len(b) - shared)


def _bands(threshold: float) -> tuple[int, int]:
    """(bands, rows) of the signature: the most rows with which a pair at the threshold is proposed 99 times in 100."""
    cuts = ((_PERMUTATIONS // rows, rows) for rows in range(13, 1, -1))
    return next((c for c in cuts if 1 - (1 - threshold ** c[1]) ** c[0] >= 0.99), (_PERMUTATIONS, 1))


class Index(Generic[K]):
    """Texts by key, to be searched for near duplicates of another text.

    threshold: above 0, to 1.
    """

    def __init__(self, texts: Mapping[K, str], threshold: float = THRESHOLD):
        self.threshold = threshold
        self.keys = list(texts)
        self.sets = [shingles(text) for text in texts.values()]
        self.first: dict[frozenset[str], int] = {}
        self.lsh: Any = None
        for place, found in enumerate(self.sets):
            if found not in self.first and found != _NOTHING:
                self.first[found] = place
                if len(found) > 1:
                    self._insert(place, found)

    def match(self, text: str) -> tuple[K, float] | None:
        """(key, similarity) of the most similar near duplicate, the first of equals; None if there is none."""
        wanted = shingles(text)
        if (place := self.first.get(wanted)) is not None:
            return self.keys[place], 1.0
        if self.lsh is None or len(wanted) == 1:
            return None
        near = [(_jaccard(wanted, self.sets[place]), -place) for place in self.lsh.query(self._hashed(wanted))]
        best, place = max(near, default=(0.0, 0))
        return (self.keys[-place], best) if best >= self.threshold else None

    def find(self, text: str) -> K | None:
        """The key of the most similar near duplicate; None if there is none."""
        found = self.match(text)
        return found[0] if found else None

    def _insert(self, place: int, found: frozenset[str]) -> None:
        if self.lsh is None:
            from datasketch import MinHash, MinHashLSH

            self.blank = MinHash(_PERMUTATIONS, seed=_SEED)
            self.lsh = MinHashLSH(num_perm=_PERMUTATIONS, params=_bands(self.threshold))
        self.lsh.insert(place, self._hashed(found), check_duplication=False)

    def _hashed(self, parts: Iterable[str]) -> Any:
        hashed = self.blank.copy()  # its permutations are drawn once
        hashed.update_batch([part.encode() for part in parts])
        return hashed


def near_index(texts: Mapping[K, str], threshold: float = THRESHOLD) -> Index[K]:
    """An index of texts by key."""
    return Index(texts, threshold)


def split_overlap(pools: Mapping[str, Sequence[Item]], threshold: float = THRESHOLD) -> list[str]:
    """One sentence for each item of a split that shares an id, an upstream id or a question with an earlier split.

    Questions are shared when they are equal but for case, spacing and punctuation, or near duplicates.
    """
    faults: list[str] = []
    seen: dict[tuple[str, str], tuple[str, str]] = {}
    earlier: list[tuple[str, Sequence[Item], Index[int]]] = []
    for split, items in pools.items():
        for item in items:
            keys = [("id", item.id), ("upstream_id", item.upstream_id), ("question", normalised(item.question))]
            found = [(key, seen[key]) for key in keys if key[1] and key in seen and seen[key][0] != split]
            if found:
                (what, value), (there, other) = found[0]
                faults.append(f"{split}: {item.id} has the {what} of {other} in {there}: {value[:80]!r} (the same)")
            elif near := next(filter(None, (_near(item, *each) for each in earlier)), None):
                faults.append(f"{split}: {near}")
            for key in keys:
                seen.setdefault(key, (split, item.id))
        if len(earlier) + 1 < len(pools):
            earlier.append((split, items, Index({i: item.question for i, item in enumerate(items)}, threshold)))
    return faults


def _near(item: Item, split: str, items: Sequence[Item], index: Index[int]) -> str:
    found = index.match(item.question)
    if not found:
        return ""
    other = items[found[0]]
    return (
        f"{item.id} has nearly the question of {other.id} in {split}: {other.question[:80]!r} "
        f"({100 * found[1]:.0f} % of their three-word shingles)"
    )


def excluded(
    texts_to_exclude: Mapping[str, str], items: Sequence[Item], threshold: float = THRESHOLD
) -> dict[str, str]:
    """Item id -> sentence, for each item whose question is, or nearly is, one of the texts (by name)."""
    index = Index(texts_to_exclude, threshold)
    faults: dict[str, str] = {}
    for item in items:
        if found := index.match(item.question):
            name, share = found
            how = "is" if share == 1 else "nearly is"
            faults[item.id] = (
                f"{item.where or item.id}: question: {how} that of {name} ({100 * share:.0f} % of their three-word "
                f"shingles); leave the item out: {texts_to_exclude[name][:80]!r}"
            )
    return faults


# ---------------------------------------------------------------- sentences and families


class Remembered:
    """The sentences of the contexts that a model was trained on, to be asked whether an item has one of them.

    values: its misleading and correct contexts. irrelevant: its irrelevant ones. Values and quoted words do not count.
    """

    def __init__(self, values: Iterable[str], irrelevant: Iterable[str]):
        self.values = {" ".join(text.split()) for text in values if text.strip()}
        self.irrelevant = {_about_masked(text) for text in irrelevant if text.strip()}
        self.known: dict[tuple[str, str], bool] = {}

    @classmethod
    def of_items(cls, items: Sequence[Item]) -> "Remembered":
        given = [contexts(item) for item in items]
        values = [each[name] for each in given for name in ("context_misleading", "context_correct")]
        return cls(values, [each["context_irrelevant"] for each in given])

    def seen(self, item: Item) -> str:
        """The field of the item whose sentence was trained on, the wrong answer masked; empty if there is none."""
        if self._holds(sentence(item)):
            return "context_misleading"
        return "context_irrelevant" if _about_masked(contexts(item)["context_irrelevant"]) in self.irrelevant else ""

    def _holds(self, around: tuple[str, str] | None) -> bool:
        if around is None:
            return False
        if around not in self.known:
            head, tail = around
            self.known[around] = any(
                len(text) > len(head) + len(tail) and text.startswith(head) and text.endswith(tail)
                for text in self.values
            )
        return self.known[around]


def sentence(item: Item) -> tuple[str, str] | None:
    """What stands before and behind the wrong answer in the misleading context; None where it does not hold it."""
    text = " ".join(contexts(item)["context_misleading"].split())
    for form in sorted(value_forms(item.wrong, item.options).values(), key=len, reverse=True):
        form = " ".join(form.split())
        found = list(re.finditer(rf"(?<!\w){re.escape(form)}(?!\w)", text, re.I))
        if found and len(text) > len(form):
            return text[: found[-1].start()], text[found[-1].end() :]
    return None


def _about_masked(text: str) -> str:
    return _ABOUT.sub('""', " ".join(text.split()))


def shared_sentences(train: Sequence[Item], evaluation: Sequence[Item], allowed: Collection[str] = ()) -> list[str]:
    """One sentence for each evaluation item of which a context, its value masked, stands in the training pool.

    allowed: ids of phrasings that may stand in both.
    """
    remembered, faults = Remembered.of_items(train), []
    for item in evaluation:
        field = remembered.seen(item)
        if field and {item.phrasing, item.irrelevant_phrasing}.isdisjoint(allowed):
            text = contexts(item)[field]
            faults.append(f"evaluation: {item.id}: {field}: stands in the training pool with another value: {text!r}")
    return faults


def shared_families(pools: Mapping[str, Sequence[Item]]) -> list[str]:
    """One sentence for each authored family that a pool shares with an earlier one."""
    where: dict[str, str] = {}
    faults = []
    for name, items in pools.items():
        for family in dict.fromkeys(item.family for item in items if item.family):
            if where.setdefault(family, name) != name:
                faults.append(f"{name}: the family {family} also stands in {where[family]}; draw each from one bank")
    return faults
