"""Composition: which questions, with which wrong answers, make a pool of the wanted mix.

The targets are margins: a number for each source, wrong-answer class and, if asked, answer type.
What a question can give limits what can be met, so the counts are found in two steps. Raking
(iterative proportional fitting) spreads the margins evenly over the cells that exist; an integer
program then finds whole counts that meet the margins as closely as any can, and among those the
one nearest to the raked table. Same candidates, targets and seed: same pool.
"""

import difflib
import random
import tomllib
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from scope.answers import ANSWER_TYPES
from scope.items import CHANNELS, WRONG_CLASSES
from scope.pool.foils import Leaning, Mistake
from scope.pool.questions import PoolError, Question
from scope.schema import PoolConfig

#: What one item off its target costs, by margin: sources before types before classes.
_COST = {"source": 100.0, "answer_type": 10.0, "wrong_class": 3.0, "yes_no": 1.0, "cell": 0.01}
_RAKING_ROUNDS = 200
#: Questions looked at for one whose wrong number lies on the side that is due.
_LOOK_AHEAD = 40


@dataclass(frozen=True, slots=True)
class Targets:
    """Shares by margin, in any unit; they are normalised. An empty margin is left free."""

    sources: Mapping[str, float]
    channels: Mapping[str, float]
    wrong_classes: Mapping[str, float]
    answer_types: Mapping[str, float]


def published(margin: str) -> dict[str, float]:
    """MIST's shares of one margin (sources, channels, wrong_classes), in per cent."""
    return tomllib.loads(Path(__file__).with_name("mist.toml").read_text("utf-8"))[margin]


def targets_of(pool: PoolConfig, known_sources: Collection[str]) -> Targets:
    """The targets a recipe's pool section asks for; what it leaves empty is as published.

    Sources of one's own leave the wrong-answer classes free unless they are asked for: the published
    shares of classes follow from the published sources.
    """
    targets = Targets(
        pool.sources or published("sources"),
        pool.channels or published("channels"),
        pool.wrong_classes or ({} if pool.sources else published("wrong_classes")),
        pool.answer_types,
    )
    for key, shares, known in (
        ("sources", targets.sources, known_sources),
        ("channels", targets.channels, CHANNELS),
        ("wrong_classes", targets.wrong_classes, WRONG_CLASSES),
        ("answer_types", targets.answer_types, ANSWER_TYPES),
    ):
        for name, share in shares.items():
            if name not in known:
                near = difflib.get_close_matches(name, list(known), 3) or list(known)
                raise PoolError(f"pool.{key}.{name} is not known; did you mean {', '.join(near)}?")
            if not 0 <= share < float("inf"):
                raise PoolError(f"pool.{key}.{name}={share} is no share; give a number of at least 0")
        if shares and not sum(shares.values()) > 0:
            raise PoolError(f"pool.{key}: the shares add up to 0; give at least one a positive share")
    return targets


def apportion(n: int, shares: Mapping[str, float]) -> dict[str, int]:
    """Whole counts that add up to n, by largest remainder; ties go to the earlier name."""
    total = sum(shares.values())
    exact = {name: n * share / total for name, share in shares.items()}
    counts = {name: int(value) for name, value in exact.items()}
    behind = sorted(exact, key=lambda name: counts[name] - exact[name])
    for name in behind[: n - sum(counts.values())]:
        counts[name] += 1
    return counts


def spread(counts: Mapping[str, int], rng: random.Random) -> list[str]:
    """Every name as often as `counts` says, each spaced evenly over the list (systematic sampling)."""
    places = []
    for name, count in counts.items():
        phase = rng.random()
        places += [((k + phase) / count, name) for k in range(count)]
    return [name for _, name in sorted(places)]


def choose(candidates: Sequence[Question], n: int, targets: Targets, seed: int) -> list[tuple[Question, Mistake]]:
    """`n` questions (fewer if there are fewer) with one of their mistakes each, nearest to the targets.

    Beside the targets, yes and no are as frequent in each source, and wrong numbers lie above the right
    ones as often as below, as far as the questions allow. Within what the counts leave open everything
    is drawn at random from the seed. The order of the result is random, so that any beginning of it is
    a fair sample.
    """
    rng = random.Random(f"pool/{seed}/compose")
    groups: dict[Group, list[Question]] = defaultdict(list)
    for question in candidates:
        yes_no = question.gold if question.answer_type == "boolean" else ""
        groups[Group(question.source, question.answer_type, yes_no, _gives(question))].append(question)
    waiting = {group: rng.sample(groups[group], len(groups[group])) for group in sorted(groups)}
    leaning: dict[str, Leaning] = defaultdict(Leaning)
    chosen = []
    for group, wrong_class, count in _counts({g: len(q) for g, q in waiting.items()}, n, targets):
        lean = leaning[group.answer_type]
        for _ in range(count):
            question, due = _next_due(waiting[group], wrong_class, lean)
            # A known wrong answer, else the most tempting distractor, or any of an open question's mistakes.
            mistake = due[0] if question.options or due[0].known else rng.choice(due)
            lean.took(mistake, question.gold)
            chosen.append((question, mistake))
    rng.shuffle(chosen)
    return chosen


def _next_due(waiting: list[Question], wrong_class: str, lean: Leaning) -> tuple[Question, list[Mistake]]:
    """Take the next question with a mistake of the class on the due side (else the next one), and those mistakes."""
    for place in range(1, min(len(waiting), _LOOK_AHEAD) + 1):
        question = waiting[-place]
        fits = [m for m in question.mistakes if m.wrong_class == wrong_class]
        due = lean.due(fits[:1] if fits[0].known else fits, question.gold)
        if due:
            del waiting[-place]
            return question, due
    question = waiting.pop()
    return question, [m for m in question.mistakes if m.wrong_class == wrong_class]


class Group(NamedTuple):
    """Questions that are alike to the allocation: source, type, gold if yes/no, classes they can give."""

    source: str
    answer_type: str
    yes_no: str
    classes: tuple[str, ...]


def _gives(question: Question) -> tuple[str, ...]:
    first = question.mistakes[0]
    return tuple(sorted({m.wrong_class for m in ([first] if first.known else question.mistakes)}))


def _counts(sizes: Mapping[Group, int], n: int, targets: Targets) -> list[tuple[Group, str, int]]:
    """How many questions of each group get a wrong answer of each of its classes."""
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import csr_array

    cells = [(group, wrong_class) for group in sizes for wrong_class in group.classes]
    total = min(n, sum(sizes.values()))
    if not total:
        return []
    wanted: list[tuple[str, list[int], float]] = []  # margin, its cells, its target
    for margin, shares, name in (
        ("source", targets.sources, lambda g, c: g.source),
        ("answer_type", targets.answer_types, lambda g, c: g.answer_type),
        ("wrong_class", targets.wrong_classes, lambda g, c: c),
    ):
        for value, count in (apportion(total, shares) if shares else {}).items():
            wanted.append((margin, [i for i, cell in enumerate(cells) if name(*cell) == value], count))
    by_cell: dict[tuple[str, str, str], list[int]] = defaultdict(list)
    for i, (group, wrong_class) in enumerate(cells):
        by_cell[group.source, group.answer_type, wrong_class].append(i)
    raked = _raked(sizes, by_cell, total, targets)
    wanted += [("cell", by_cell[cell], raked[cell]) for cell in by_cell]

    # Yes against no in each source, to be zero.
    signed: dict[str, dict[int, float]] = defaultdict(dict)
    for i, (group, _) in enumerate(cells):
        if group.yes_no:
            signed[group.source][i] = 1.0 if group.yes_no == "yes" else -1.0

    # Variables: the cells, then for every sum how far it falls short and how far it is exceeded.
    sums = [(margin, dict.fromkeys(members, 1.0), target) for margin, members, target in wanted]
    sums += [("yes_no", members, 0.0) for members in signed.values()]
    n_cells = len(cells)
    width = n_cells + 2 * len(sums)
    cost = np.zeros(width)
    rows: list[dict[int, float]] = []
    low: list[float] = []
    high: list[float] = []

    def constrain(row: dict[int, float], least: float, most: float) -> None:
        rows.append(row)
        low.append(least)
        high.append(most)

    for k, (margin, members, target) in enumerate(sums):
        short, over = n_cells + 2 * k, n_cells + 2 * k + 1
        cost[short] = cost[over] = _COST[margin]
        constrain({**members, short: 1.0, over: -1.0}, target, target)
    for group, size in sizes.items():
        constrain({i: 1.0 for i, cell in enumerate(cells) if cell[0] is group}, 0, size)
    constrain(dict.fromkeys(range(n_cells), 1.0), total, total)

    entries = [(i, j, value) for i, row in enumerate(rows) for j, value in row.items()]
    at, columns, values = zip(*entries, strict=True)
    found = milp(
        cost,
        constraints=LinearConstraint(csr_array((values, (at, columns)), shape=(len(rows), width)), low, high),
        integrality=np.arange(width) < n_cells,
        bounds=Bounds(0, np.inf),
        options={"mip_rel_gap": 1e-4, "time_limit": 60},
    )
    if found.x is None:
        raise PoolError(f"no composition was found ({found.message}); ask for fewer items or other shares")
    return [(*cell, round(x)) for cell, x in zip(cells, found.x[:n_cells], strict=True) if round(x)]


def _raked(
    sizes: Mapping[Group, int], by_cell: Mapping[tuple[str, str, str], list[int]], total: int, targets: Targets
) -> dict[tuple[str, str, str], float]:
    """The margins spread over (source, type, class), each source's types as its questions have them."""
    size: dict[tuple[str, str], int] = defaultdict(int)
    for group, count in sizes.items():
        size[group.source, group.answer_type] += count
    table = {cell: float(size[cell[0], cell[1]]) for cell in by_cell}
    margins = [(0, targets.sources), (1, targets.answer_types), (2, targets.wrong_classes), (0, targets.sources)]
    for _ in range(_RAKING_ROUNDS):
        for place, shares in margins:
            scale = sum(shares.values())
            for value, share in shares.items():
                held = sum(count for cell, count in table.items() if cell[place] == value)
                if held:
                    factor = total * share / scale / held
                    table |= {cell: count * factor for cell, count in table.items() if cell[place] == value}
    return table
