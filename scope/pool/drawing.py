"""Authored families -> questions of one split, family by family in turn.

Everything follows from the arguments: same arguments, same questions, on any platform, so the
beginning of a pool is as balanced as the whole.
"""

import difflib
import random
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterator

from scope.items import normalised
from scope.pool import foils
from scope.pool.authored import BANKS, FAMILIES, TIERS, Draw, Family, numbers_in
from scope.pool.questions import PoolError, Question

AUTHORED = "authored"

#: A family counts as drawn empty after so many draws in a row without a new problem.
_PATIENCE = 3000


def split_of(upstream_id: str) -> str:
    """The split of a problem (`family:core`): the bank of its family."""
    return FAMILIES[upstream_id.partition(":")[0]].bank


def upstream_id(family: str, draw: Draw) -> str:
    """`family:core`; the core is what the family says, else the sorted numbers of the question."""
    return f"{family}:{draw.core or ','.join(map(str, sorted(numbers_in(draw.question))))}"


class _Stream:
    """New problems of one family and tier, one at a time."""

    def __init__(self, family: Family, tier: str, split: str, seed: int, avoid: Callable[[str], object]):
        self.family, self.tier, self.avoid = family, tier, avoid
        self.rng = random.Random(f"pool/{seed}/{split}/{family.name}/{tier}")
        self.waiting: dict[str, deque[Question]] = {"yes": deque(), "no": deque()}
        self.golds: Counter[str] = Counter()
        self.empty = False

    def take(self, seen: set[str], behind: str) -> Question | None:
        """The next problem not in `seen` (which grows), or None for ever after.

        A boolean family gives what the whole pool has fewer of (`behind`, empty if neither) as long as its own
        yes and no differ by one at most, and is empty when either has run out.
        """
        want = ""
        if self.family.answer_type == "boolean":
            lead = self.golds["yes"] - self.golds["no"]
            fewer = "no" if lead > 0 else "yes"
            want = fewer if abs(lead) > 1 else behind or fewer
            if self.waiting[want]:
                return self._taken(self.waiting[want].popleft())
        tries = 0
        while not self.empty and tries < _PATIENCE:
            tries += 1
            draw = self.family.draw(self.rng, self.tier)
            problem, question = upstream_id(self.family.name, draw), "question:" + normalised(draw.question)
            if problem in seen or question in seen:
                continue
            mistakes = foils.usable(draw.mistakes, draw.gold, self.family.answer_type, draw.options)
            if not mistakes or self.avoid(draw.question):
                continue
            seen.update((problem, question))
            found = Question(
                source=AUTHORED,
                upstream_id=problem,
                question=draw.question,
                answer_type=self.family.answer_type,
                gold=draw.gold,
                mistakes=tuple(mistakes),
                options=tuple(draw.options),
                topic=self.family.topic,
                license="Apache-2.0",
                provenance=AUTHORED,
                family=self.family.name,
                tier=self.tier,
            )
            if not want or draw.gold == want:
                return self._taken(found)
            self.waiting[draw.gold].append(found)
        self.empty = True
        return None

    def _taken(self, question: Question) -> Question:
        self.golds[question.gold] += 1
        return question


def draw_authored(
    seed: int,
    split: str,
    tier: str | None = "easy",
    families: Collection[str] | None = None,
    avoid: Callable[[str], object] = lambda question: None,
) -> Iterator[Question]:
    """Authored questions of one split, until no family has a new one.

    split: train, dev or eval; each draws from the families of its own bank, so splits share no family,
    whatever the seeds. tier: one of TIERS, or None for all. families: names of any bank, or None for all
    that have the tier. avoid: questions for which it says something true are passed over. Families take
    turns; yes and no alternate.
    Raises PoolError (a sentence) for an unknown name, and where none of the families is of the bank and tier.
    """
    known("split", split, BANKS)
    if tier is not None:
        known("tier", tier, TIERS)
    for name in families or ():
        known("family", name, FAMILIES)
    streams = [
        _Stream(family, each, split, seed, avoid)
        for family in FAMILIES.values()
        for each in family.tiers
        if family.bank == split and (families is None or family.name in families) and tier in (None, each)
    ]
    if not streams:
        fits = [f.name for f in FAMILIES.values() if f.bank == split and (tier is None or tier in f.tiers)]
        raise PoolError(
            f"none of the families {', '.join(families or ())} is of the bank {split!r} and has the tier "
            f"{tier or 'any'!r}; name at least one of {', '.join(fits)}"
        )
    order = random.Random(f"pool/{seed}/{split}/order")
    seen: set[str] = set()
    yes_no = {"yes": 0, "no": 0}
    while streams:
        for stream in order.sample(streams, len(streams)):
            lead = yes_no["yes"] - yes_no["no"]
            question = stream.take(seen, "no" if lead > 0 else "yes" if lead < 0 else "")
            if question is None:
                streams.remove(stream)
                continue
            if question.gold in yes_no:
                yes_no[question.gold] += 1
            yield question


def known(what: str, name: str, names: Collection[str]) -> None:
    """Refuse a name that is none of `names`, with those like it."""
    if name not in names:
        near = difflib.get_close_matches(str(name), list(names), 3) or list(names)
        raise PoolError(f"unknown {what} {name!r}; did you mean {', '.join(near)}?")
