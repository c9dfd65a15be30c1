"""Families -> items under four conditions; and the train, dev and eval files of a pool.

Everything follows from the arguments: same arguments, same bytes, on any platform. Items come
family by family in turn, so the beginning of a pool is as balanced as the whole.
"""

import difflib
import hashlib
import random
from collections import Counter, deque
from collections.abc import Collection, Mapping
from pathlib import Path

from scope import artifacts
from scope.items import CHANNELS, Item, write_rows
from scope.pool import checks, foils, signals
from scope.pool.authored import FAMILIES, TIERS, Draw, Family, numbers_in
from scope.pool.signals import FORMS, Rotation, load_channels, value_forms

#: Split -> share of all problems, in per cent. A problem's hash decides (see `split_of`).
SPLITS = {"train": 60, "dev": 10, "eval": 30}

#: A family counts as drawn empty after so many draws in a row without a new problem.
_PATIENCE = 3000


class PoolError(artifacts.Refusal, ValueError):
    """A pool that cannot be built as asked: what was found and what to do, in one sentence."""


def split_of(upstream_id: str) -> str:
    """The split a problem belongs to, by a stable hash of its core (what follows the family's name).

    The core is as a rule the sorted numbers of the question. So questions that read the same, and
    those that differ only in names, wording or the order of their numbers, share a split, whichever
    families they come from.
    """
    core = upstream_id.partition(":")[2] or upstream_id
    bucket = int.from_bytes(hashlib.sha256(core.encode()).digest()[:8], "big") % 100
    for split, share in SPLITS.items():
        bucket -= share
        if bucket < 0:
            return split
    raise AssertionError("the shares of SPLITS add up to 100")


def upstream_id(family: str, draw: Draw) -> str:
    """`family:core`; the core is what the family says, else the sorted numbers of the question."""
    return f"{family}:{draw.core or ','.join(map(str, sorted(numbers_in(draw.question))))}"


def folded(question: str) -> str:
    """A question as `items.normalised_question` folds it."""
    return " ".join("".join(c if c.isalnum() else " " for c in question.casefold()).split())


class _Stream:
    """New problems of one family, tier and split, one at a time."""

    def __init__(self, family: Family, tier: str, split: str, seed: int):
        self.family, self.tier, self.split = family, tier, split
        self.rng = random.Random(f"pool/{seed}/{split}/{family.name}/{tier}")
        self.waiting: dict[str, deque[Draw]] = {"yes": deque(), "no": deque()}
        self.golds: Counter[str] = Counter()
        self.classes: Counter[str] = Counter()
        self.empty = False

    def take(self, seen: set[str], behind: str) -> Draw | None:
        """The next problem not in `seen` (which grows), or None for ever after.

        Yes and no alternate within a boolean family, which is empty when either has run out;
        `behind` is what the whole pool has fewer of.
        """
        want = ""
        if self.family.answer_type == "boolean":
            yes, no = self.golds["yes"], self.golds["no"]
            want = behind if yes == no else ("no" if yes > no else "yes")
            if self.waiting[want]:
                return self._taken(self.waiting[want].popleft())
        tries = 0
        while not self.empty and tries < _PATIENCE:
            tries += 1
            draw = self.family.draw(self.rng, self.tier)
            problem, question = upstream_id(self.family.name, draw), "question:" + folded(draw.question)
            if problem in seen or question in seen or split_of(problem) != self.split:
                continue
            if not foils.usable(draw.mistakes, draw.gold, self.family.answer_type, draw.options):
                continue
            seen.update((problem, question))
            if not want or draw.gold == want:
                return self._taken(draw)
            self.waiting[draw.gold].append(draw)
        self.empty = True
        return None

    def _taken(self, draw: Draw) -> Draw:
        self.golds[draw.gold] += 1
        return draw


class _Writer:
    """Turns draws into items: picks the mistake, orders the options, writes the contexts."""

    def __init__(self, seed: int, split: str):
        self.rng = random.Random(f"pool/{seed}/{split}/contexts")
        self.channels = load_channels()
        self.channel = Rotation(CHANNELS, self.rng)
        self.form = Rotation(FORMS, self.rng)
        self.value = {n: Rotation(c.value, self.rng) for n, c in self.channels.items()}
        self.irrelevant = {n: Rotation(c.irrelevant, self.rng) for n, c in self.channels.items()}
        self.gold_place: dict[int, Rotation[int]] = {}
        self.wrong_place: dict[tuple[int, int], Rotation[int]] = {}

    def item(self, stream: _Stream, draw: Draw) -> Item:
        family = stream.family
        found = foils.usable(draw.mistakes, draw.gold, family.answer_type, draw.options)
        fewest = min(stream.classes[m.wrong_class] for m in found)
        mistake = self.rng.choice([m for m in found if stream.classes[m.wrong_class] == fewest])
        stream.classes[mistake.wrong_class] += 1
        gold, wrong, options = draw.gold, mistake.value, tuple(draw.options)
        if options:
            gold, wrong, options = self._ordered(gold, wrong, options)
        name = self.channel.next()
        form = self.form.next() if options else "plain"
        phrasing = self.value[name].next()
        content = "\n".join([draw.question, *sorted(draw.options)])
        return Item(
            id=f"{family.name}-{stream.tier}-{hashlib.sha256(content.encode()).hexdigest()[:8]}",
            source="authored",
            provenance="authored",
            topic=family.topic,
            answer_type=family.answer_type,
            question=draw.question,
            options=options,
            gold=gold,
            wrong=wrong,
            wrong_class=mistake.wrong_class,
            channel=name,
            context_misleading=signals.render(phrasing, value_forms(wrong, options)[form]),
            context_correct=signals.render(phrasing, value_forms(gold, options)[form]),
            context_irrelevant=self._irrelevant(name, draw),
            family=family.name,
            tier=stream.tier,
            upstream_id=upstream_id(family.name, draw),
            license="Apache-2.0",
        )

    def _ordered(self, gold: str, wrong: str, options: tuple[str, ...]) -> tuple[str, str, tuple[str, ...]]:
        """Letters in turn: gold letters exactly balanced, wrong letters balanced for each gold letter."""
        n = len(options)
        place = self.gold_place.setdefault(n, Rotation(range(n), self.rng)).next()
        free = [i for i in range(n) if i != place]
        lure = self.wrong_place.setdefault((n, place), Rotation(free, self.rng)).next()
        rest = sorted(option for option in options if option not in (gold, wrong))
        self.rng.shuffle(rest)
        ordered = tuple(gold if i == place else wrong if i == lure else rest.pop() for i in range(n))
        return chr(ord("A") + place), chr(ord("A") + lure), ordered

    def _irrelevant(self, name: str, draw: Draw) -> str:
        """The next irrelevant phrasing that shares no content word with the question."""
        about = signals.content_words(" ".join([draw.question, *draw.options]))
        fits = {p for p in self.channels[name].irrelevant if not about & signals.content_words(p)}
        if not fits:
            raise PoolError(
                f"{signals.PHRASINGS}: {name}: every irrelevant phrasing shares a word with the question "
                f"{draw.question!r}; add one that does not"
            )
        return self.irrelevant[name].next_fitting(fits)


def build_authored(
    n_items: int,
    seed: int,
    split: str,
    tier: str | None = "easy",
    families: Collection[str] | None = None,
) -> list[Item]:
    """Draw `n_items` authored items of one split.

    split: train, dev or eval; splits share no problem, whatever the seeds. tier: one of TIERS, or
    None for all. families: names to draw from, or None for all that have the tier. Families take
    turns; where one is drawn empty the others go on. Channels, phrasings, gold letters and the
    way a multiple-choice value is named are balanced by exact round robin; yes and no alternate.
    Raises PoolError (a sentence) for an unknown name, or more items than there are.
    """
    _known("split", split, SPLITS)
    if tier is not None:
        _known("tier", tier, TIERS)
    for name in families or ():
        _known("family", name, FAMILIES)
    if n_items < 1:
        raise PoolError(f"n_items is {n_items}; ask for at least one item")
    streams = [
        _Stream(family, each, split, seed)
        for family in FAMILIES.values()
        for each in family.tiers
        if (families is None or family.name in families) and (tier is None or each == tier)
    ]
    if not streams:
        raise PoolError(f"none of the families {', '.join(families or ())} has the tier {tier!r}")
    order, writer = random.Random(f"pool/{seed}/{split}/order"), _Writer(seed, split)
    seen: set[str] = set()
    yes_no = {"yes": 0, "no": 0}
    items: list[Item] = []
    while streams:
        for stream in order.sample(streams, len(streams)):
            behind = "yes" if yes_no["yes"] <= yes_no["no"] else "no"
            draw = stream.take(seen, behind)
            if draw is None:
                streams.remove(stream)
                continue
            item = writer.item(stream, draw)
            if draw.gold in yes_no:
                yes_no[draw.gold] += 1
            items.append(item)
            if len(items) == n_items:
                return items
    raise PoolError(
        f"{n_items} items were asked for, but only {len(items)} distinct ones can be drawn "
        f"(split {split}, tier {tier or 'any'}, seed {seed}); "
        f"ask for at most {len(items)}, or allow more families"
    )


def _known(what: str, name: str, names: Collection[str]) -> None:
    if name not in names:
        near = difflib.get_close_matches(str(name), list(names), 3) or list(names)
        raise PoolError(f"unknown {what} {name!r}; did you mean {', '.join(near)}?")


def write_splits(
    folder: Path,
    sizes: Mapping[str, int],
    seed: int,
    tier: str | None = "easy",
    families: Collection[str] | None = None,
) -> dict[str, Path]:
    """Build and check the splits named in `sizes` (split -> items) and write `<split>.jsonl` files.

    Nothing is written unless every item passes its checks and no two splits share an item.
    """
    pools = {split: build_authored(n, seed, split, tier, families) for split, n in sizes.items()}
    faults = [f"{split}: {fault}" for split, items in pools.items() for fault in checks.check_items(items)]
    faults += checks.split_overlap(pools)
    if faults:
        more = f"; and {len(faults) - 1} more faults" if len(faults) > 1 else ""
        raise PoolError(f"{folder}: the pool is not written: {faults[0]}{more}")
    paths = {split: Path(folder) / f"{split}.jsonl" for split in pools}
    for split, items in pools.items():
        write_rows(paths[split], items)
    return paths
