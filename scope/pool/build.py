"""Items of one pool: drawn from the authored families, or composed of several sources."""

import logging
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from scope.items import CHANNELS, Item, normalised
from scope.pool import checks
from scope.pool.authored import BANKS
from scope.pool.compose import Targets, apportion, choose, spread
from scope.pool.drawing import draw_authored, known
from scope.pool.foils import Leaning, Mistake
from scope.pool.mistakes import from_own_errors
from scope.pool.questions import PoolError, Question
from scope.pool.signals import Rotation
from scope.pool.writing import Writer, item_id

log = logging.getLogger(__name__)

#: Authored candidates for each authored item wanted: enough for the composition to choose from.
_CANDIDATES = 2
#: Rounds of composing again without the questions whose items failed a check.
_ROUNDS = 8

#: Says what a question must not resemble (or nothing): the key of what it resembles.
Avoid = Callable[[str], object]


@dataclass(frozen=True, slots=True)
class Pool:
    """Items, and how many questions were left out for which reason (`source: reason`)."""

    items: list[Item]
    left_out: Mapping[str, int]


def build_authored(
    n_items: int,
    seed: int,
    split: str,
    tier: str | None = "easy",
    families: Collection[str] | None = None,
    avoid: Avoid = lambda question: None,
    phrasings: Sequence[Path] = (),
    irrelevant: str = "related",
) -> list[Item]:
    """Draw `n_items` authored items of one split (arguments: `draw_authored`).

    Channels, phrasings, gold letters and the way a multiple-choice value is named are balanced by
    exact round robin, wrong-answer classes within each family as far as its mistakes allow.
    Raises PoolError (a sentence) where there are fewer items than asked for.
    """
    if n_items < 1:
        raise PoolError(f"n_items is {n_items}; ask for at least one item")
    known("split", split, BANKS)
    writer = Writer(seed, split, phrasings, irrelevant)
    channel = Rotation(CHANNELS, writer.rng)
    classes: dict[str, Counter[str]] = defaultdict(Counter)
    leaning: dict[str, Leaning] = defaultdict(Leaning)
    items: list[Item] = []
    for question in draw_authored(seed, split, tier, families, avoid):
        # First the side of the right number that is due, then the class the family has given least.
        family = f"{question.family}-{question.tier}"
        due = leaning[family].due(question.mistakes, question.gold) or question.mistakes
        fewest = min(classes[family][m.wrong_class] for m in due)
        mistake = writer.rng.choice([m for m in due if classes[family][m.wrong_class] == fewest])
        leaning[family].took(mistake, question.gold)
        classes[family][mistake.wrong_class] += 1
        channels = {name for name in CHANNELS if writer.bears(name, question)}
        if not channels:
            raise PoolError(
                f"no irrelevant phrasing of the bank {writer.bank} fits the question {question.question!r}; "
                "add one that does to scope/pool/signals.toml or to pool.phrasings"
            )
        said = (question.answer_type, question.gold if question.answer_type == "boolean" else None)
        items.append(writer.item(question, mistake, channel.next_fitting(channels, said)))
        if len(items) == n_items:
            return items
    raise PoolError(
        f"{n_items} items were asked for, but only {len(items)} distinct ones can be drawn "
        f"(split {split}, tier {tier or 'any'}, seed {seed}); "
        f"ask for at most {len(items)}, or allow more families"
    )


def build_composed(
    candidates: Sequence[Question],
    n_items: int,
    targets: Targets,
    seed: int,
    split: str,
    avoid: Avoid = lambda question: None,
    phrasings: Sequence[Path] = (),
    irrelevant: str = "related",
) -> Pool:
    """`n_items` items of the wanted mix (fewer where there are not enough questions).

    Left out and counted: questions that stand twice, that resemble what `avoid` knows, that have no
    usable wrong answer, for which no irrelevant phrasing fits, and those whose item fails a check.
    """
    left_out: Counter[str] = Counter()
    kept: dict[str, Question] = {}
    for question in candidates:
        key = normalised(question.question)
        if not question.mistakes:
            left_out[f"{question.source}: no usable wrong answer"] += 1
        elif key in kept:
            left_out[f"{question.source}: the same question stands twice"] += 1
        elif found := avoid(question.question):
            left_out[f"{question.source}: resembles a question of {str(found).partition(':')[0]}"] += 1
        else:
            kept[key] = question
    usable = {item_id(question): question for question in kept.values()}
    for _ in range(_ROUNDS):
        chosen = choose(list(usable.values()), n_items, targets, seed)
        items, unfit = _written(
            chosen, targets, Writer(seed, split, phrasings, irrelevant), f"pool/{seed}/{split}/channels"
        )
        faulty = {f.item_id: f.check for f in checks.findings(items) if f.item_id in usable}
        for bad in unfit:
            left_out[f"{usable.pop(bad).source}: no irrelevant phrasing fits"] += 1
        for bad, check in faulty.items():
            left_out[f"{usable.pop(bad).source}: its item fails the check {check}"] += 1
        if not unfit and not faulty:
            return Pool(items, dict(sorted(left_out.items())))
    return Pool([item for item in items if item.id in usable], dict(sorted(left_out.items())))


def _written(
    chosen: Sequence[tuple[Question, Mistake]], targets: Targets, writer: Writer, seed: str
) -> tuple[list[Item], list[str]]:
    """The items in the order of `chosen`, and the ids of questions that no channel bears.

    Channels are dealt out evenly within each source, type, class and yes/no. A question that cannot
    bear its channel exchanges it with the next one that can; failing that it takes another channel.
    """
    rng = random.Random(seed)
    bears = [[name for name in writer.channels if writer.bears(name, question)] for question, _ in chosen]
    order = sorted(range(len(chosen)), key=lambda i: _stratum(*chosen[i]))
    dealt = spread(apportion(len(chosen), targets.channels), rng)
    channel = dict(zip(order, dealt, strict=True))
    for place, i in enumerate(order):
        if channel[i] in bears[i] or not bears[i]:
            continue
        for j in [*order[place + 1 :], *reversed(order[:place])]:
            if channel[j] in bears[i] and channel[i] in bears[j]:
                channel[i], channel[j] = channel[j], channel[i]
                break
        else:
            channel[i] = rng.choice(bears[i])
    items = [writer.item(*chosen[i], channel[i]) for i in range(len(chosen)) if bears[i]]
    return items, [item_id(question) for (question, _), borne in zip(chosen, bears, strict=True) if not borne]


def _stratum(question: Question, mistake: Mistake) -> tuple[str, ...]:
    gold = question.gold if question.answer_type == "boolean" else ""
    return question.source, question.answer_type, mistake.wrong_class, gold, item_id(question)


def authored_candidates(
    n_items: int, seed: int, split: str, tier: str | None, families: Collection[str] | None
) -> list[Question]:
    """Authored questions for a composition to choose from, `_CANDIDATES` for each item wanted."""
    found = []
    for question in draw_authored(seed, split, tier, families):
        found.append(question)
        if len(found) >= _CANDIDATES * n_items:
            break
    return found


def with_own_errors(questions: Sequence[Question], errors: Mapping[str, str]) -> tuple[list[Question], int]:
    """Questions with a base model's own wrong answers put first, and how many have one.

    errors: normalised question -> the wrong value it gave (the text of an option).
    """
    changed, count = [], 0
    for question in questions:
        given = errors.get(normalised(question.question))
        own = from_own_errors(question, given) if given is not None else None
        if own:
            count += 1
            others = tuple(m for m in question.mistakes if m.value != own.value)
            question = replace(question, mistakes=(own, *others))
        changed.append(question)
    return changed, count
