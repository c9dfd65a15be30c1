"""Baselines that answer without solving the question; in a fair pool each of them is at chance.

- question_only: the gold from the question's words, and from position, length or wording of the options
- options_only: the gold option from the options' words
- context_only: which of an item's misleading and correct context is the correct one, from words, form or value
- question_and_context: the same, from whether the question's words tell that the larger number is right
- irrelevant_context, channel, wrong_letter: the gold from the irrelevant context, the channel, the wrong letter

Words are learnt by naive Bayes in five-fold cross-validation, stratified by the gold; items with the same
question share a fold. Ties count as a coin would. A learnt baseline is off chance only above it: where a cue and
the gold are exactly balanced by design, what is held out lacks in what was learnt, and the accuracy falls below.
A rule is off chance on either side, as it can be turned round. Of many baselines one in twenty is off by luck.
"""

import math
import random
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from scope.items import Item, normalised
from scope.pool.naming import contexts, exact, option_letter, option_text, truth
from scope.pool.signals import content_words

FOLDS = 5
#: Fewest items of an answer type for which a baseline is run.
FEWEST = 20
_Z = 1.959964  # 95 %, two-sided

Labels = Sequence[Hashable]


@dataclass(frozen=True, slots=True)
class Row:
    """One baseline on one answer type. Fractions from 0 to 1; low to high is the 95 % Wilson interval.

    at_chance: chance lies in the interval or, for a learnt baseline, above it.
    """

    baseline: str
    answer_type: str
    n: int
    chance: float
    accuracy: float
    low: float
    high: float
    at_chance: bool


def wilson(accuracy: float, n: int) -> tuple[float, float]:
    """The 95 % Wilson score interval of a share of n >= 1 trials."""
    middle = (accuracy + _Z**2 / (2 * n)) / (1 + _Z**2 / n)
    half = _Z * math.sqrt(accuracy * (1 - accuracy) / n + _Z**2 / (4 * n**2)) / (1 + _Z**2 / n)
    return max(0.0, middle - half), min(1.0, middle + half)


def report(items: Sequence[Item], seed: int = 0) -> list[Row]:
    """Every baseline on every answer type with at least FEWEST items that it can read, by name and type."""
    by_type: dict[str, list[Item]] = defaultdict(list)
    for item in items:
        by_type[item.answer_type].append(item)
    rows = []
    for name, run in sorted((_RULES | _LEARNT).items()):
        for answer_type, members in sorted(by_type.items()):
            scores = run(members, seed)
            if len(scores) >= FEWEST:
                rows.append(_row(name, answer_type, scores))
    return rows


def render(rows: Sequence[Row]) -> str:
    """The rows as a plain text table, accuracies in per cent."""
    head = ("baseline", "answer type", "n", "chance", "accuracy", "95 % interval", "at chance")
    lines = [head] + [
        (
            row.baseline,
            row.answer_type,
            str(row.n),
            f"{100 * row.chance:.1f}",
            f"{100 * row.accuracy:.1f}",
            f"{100 * row.low:.1f} to {100 * row.high:.1f}",
            "yes" if row.at_chance else "NO",
        )
        for row in rows
    ]
    widths = [max(len(line[i]) for line in lines) for i in range(len(head))]
    return "\n".join("  ".join(cell.ljust(w) for cell, w in zip(line, widths, strict=True)).rstrip() for line in lines)


#: Of one item: the credit (1 right, 0 wrong, a share for a tie) and the chance of a coin.
Score = tuple[float, float]


def _row(baseline: str, answer_type: str, scores: Sequence[Score]) -> Row:
    n = len(scores)
    accuracy, chance = (sum(column) / n for column in zip(*scores, strict=True))
    low, high = wilson(accuracy, n)
    at_chance = low <= chance and (chance <= high or baseline in _LEARNT)
    return Row(baseline, answer_type, n, chance, accuracy, low, high, at_chance)


# ---------------------------------------------------------------- rules: one cue, nothing learnt


def _pick(values: Sequence[float], right: int) -> Score:
    """The candidate with the highest value is picked; equals share."""
    best = [i for i, value in enumerate(values) if value >= max(values) - 1e-9]
    return (1 / len(best) if right in best else 0.0), 1 / len(values)


def _option_rule(cue: Callable[[Item, int], float]) -> Callable[[Sequence[Item], int], list[Score]]:
    """Picks the option for which a cue of (item, place) is highest."""

    def run(items: Sequence[Item], seed: int) -> list[Score]:
        return [_pick([cue(i, place) for place in range(len(i.options))], _place(i.gold)) for i in items if i.options]

    return run


def _value_rule(cue: Callable[[Item, str], float | None]) -> Callable[[Sequence[Item], int], list[Score]]:
    """Picks, of gold and wrong answer, the one for which a cue of (item, value) is higher; None: not of this type."""

    def run(items: Sequence[Item], seed: int) -> list[Score]:
        pairs = [(cue(item, item.gold), cue(item, item.wrong)) for item in items]
        return [_pick((gold, wrong), 0) for gold, wrong in pairs if gold is not None and wrong is not None]

    return run


def _longer_context(items: Sequence[Item], seed: int) -> list[Score]:
    pairs = [_pair(item) for item in items]
    return [_pick((len(correct), len(misleading)), 0) for correct, misleading in pairs if correct and misleading]


def _place(letter: str) -> int:
    return ord(letter) - ord("A")


def _pair(item: Item) -> tuple[str, str]:
    given = contexts(item)
    return given["context_correct"], given["context_misleading"]


def _overlap(item: Item, place: int) -> float:
    return len(content_words(item.options[place]) & content_words(item.question))


def _number(item: Item, value: str) -> Fraction | None:
    return exact(option_text(item, value) if item.options else value) if item.answer_type != "boolean" else None


def _larger(item: Item, value: str) -> float | None:
    """The rank of the number among gold and wrong, so that any size compares exactly."""
    both = [_number(item, each) for each in (item.gold, item.wrong)]
    number = _number(item, value)
    return None if None in both or number is None else float(sum(number > each for each in both if each is not None))


def _rounder(item: Item, value: str) -> float | None:
    """Trailing zeros of a whole number; minus the decimals of another."""
    if _larger(item, value) is None:
        return None
    digits = re.sub(r"[^\d.]", "", option_text(item, value) if item.options else value)
    if "." in digits:
        return -float(len(digits.partition(".")[2].rstrip("0")))
    return float(len(digits) - len(digits.rstrip("0"))) if digits.strip("0") else 0.0


def _longer(item: Item, value: str) -> float | None:
    return None if item.answer_type == "boolean" else float(len(option_text(item, value) if item.options else value))


def _later_letter(item: Item, value: str) -> float | None:
    return float(_place(value)) if item.options else None


def _says_yes(item: Item, value: str) -> float | None:
    return float(truth(value) == "yes") if item.answer_type == "boolean" else None


# ---------------------------------------------------------------- learnt: naive Bayes, cross-validated


def folds(groups: Labels, strata: Labels, seed: int) -> list[int]:
    """A fold from 0 to FOLDS - 1 for each row; equal groups share one, and each stratum is dealt out evenly."""
    members: dict[Hashable, list[Hashable]] = defaultdict(list)
    for group, stratum in dict(zip(reversed(groups), reversed(strata), strict=True)).items():
        members[stratum].append(group)
    rng = random.Random(f"shortcuts/{seed}")
    fold: dict[Hashable, int] = {}
    for each in members.values():
        for group in rng.sample(each, len(each)):
            fold[group] = len(fold) % FOLDS
    return [fold[group] for group in groups]


def _larger_from_question(items: Sequence[Item], seed: int) -> list[Score]:
    """Predicts from the question's words whether the gold is the larger of the two numbers."""
    members = [item for item in items if _larger(item, item.gold) is not None]
    labels = [str(_larger(item, item.gold)) for item in members]
    found = _probabilities([_words(i.question) for i in members], labels, _fold_of(members, labels, seed))
    values = sorted(set(labels))
    picks = [
        _pick([row.get(value, -math.inf) for value in values], values.index(label))
        for row, label in zip(found, labels, strict=True)
    ]
    return [(credit, 0.5) for credit, _ in picks]


def _fold_of(items: Sequence[Item], strata: Labels, seed: int) -> list[int]:
    return folds([normalised(item.question) for item in items], strata, seed)


def _probabilities(texts: Sequence[str], labels: Sequence[str], fold: Sequence[int]) -> list[Mapping[str, float]]:
    """Label -> log-probability of each text by naive Bayes on its words, learnt on the other folds."""
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.naive_bayes import MultinomialNB

    found: list[Mapping[str, float]] = [{} for _ in texts]
    for held_out in range(FOLDS):
        learn = [i for i, f in enumerate(fold) if f != held_out]
        test = [i for i, f in enumerate(fold) if f == held_out]
        if not learn or not test:
            continue
        words = CountVectorizer(token_pattern=r"\S+")
        counts = words.fit_transform([texts[i] for i in learn])
        model = MultinomialNB(fit_prior=False).fit(counts, [labels[i] for i in learn])
        for i, row in zip(test, model.predict_log_proba(words.transform([texts[i] for i in test])), strict=True):
            found[i] = dict(zip(model.classes_, row, strict=True))
    return found


def _words(text: str) -> str:
    return " ".join(re.findall(r"\w+(?:[.,/]\d+)*", text.casefold())) or "-"


def _gold_from(
    read: Callable[[Item], str], barred: Callable[[Item], str] = lambda item: ""
) -> Callable[[Sequence[Item], int], list[Score]]:
    """Predicts the gold letter (for each number of options) or yes/no from a text of words; `barred` is no choice."""

    def run(items: Sequence[Item], seed: int) -> list[Score]:
        kinds: dict[int, list[Item]] = defaultdict(list)
        for item in items:
            if item.answer_type != "numeric" and read(item):
                kinds[len(item.options)].append(item)
        scores: list[Score] = []
        for n_options, members in kinds.items():
            values = [option_letter(i) for i in range(n_options)] or ["yes", "no"]
            golds = [item.gold if item.options else truth(item.gold) for item in members]
            texts = [read(item) for item in members]
            found = _probabilities(texts, golds, _fold_of(members, golds, seed))
            for item, gold, row in zip(members, golds, found, strict=True):
                choices = [value for value in values if value != barred(item)]
                scores.append(_pick([row.get(value, -math.inf) for value in choices], choices.index(gold)))
        return scores

    return run


def _candidate_from(
    read: Callable[[Item], Sequence[str]], right: Callable[[Item], int]
) -> Callable[[Sequence[Item], int], list[Score]]:
    """Picks the candidate of an item whose words most look like those of right candidates of other items."""

    def run(items: Sequence[Item], seed: int) -> list[Score]:
        members = [(item, read(item)) for item in items]
        members = [(item, candidates) for item, candidates in members if candidates]
        golds = ["" if item.answer_type == "numeric" else item.gold for item, _ in members]
        fold = _fold_of([item for item, _ in members], golds, seed)
        texts = [text for _, candidates in members for text in candidates]
        labels = [str(place == right(item)) for item, candidates in members for place in range(len(candidates))]
        spread = [f for (_, candidates), f in zip(members, fold, strict=True) for _ in candidates]
        found = iter(_probabilities(texts, labels, spread))
        return [
            _pick([next(found).get("True", -math.inf) for _ in candidates], right(item)) for item, candidates in members
        ]

    return run


def _option_words(item: Item) -> list[str]:
    return [_words(option) for option in item.options]


def _context_words(item: Item) -> list[str]:
    return [_words(text) for text in _pair(item)] if all(_pair(item)) else []


def _context_form(item: Item) -> list[str]:
    """Channel, length in words and characters, and the shape of numbers and quotes, of both contexts."""
    pair = _pair(item) if all(_pair(item)) else ()
    cues = f"channel={item.channel}"
    return [" ".join([cues, f"words={len(t.split())}", f"characters={len(t) // 4}", *_shape(t)]) for t in pair]


def _shape(text: str) -> Iterable[str]:
    shapes = Counter(re.sub(r"\d", "0", number) for number in re.findall(r"-?\d[\d.,/]*", text))
    return [f"shape={shape}*{count}" for shape, count in shapes.items()] + [f"quotes={text.count(chr(34))}"]


_RULES: dict[str, Callable[[Sequence[Item], int], list[Score]]] = {
    "question_only: longest option": _option_rule(lambda item, place: len(item.options[place])),
    "question_only: shortest option": _option_rule(lambda item, place: -len(item.options[place])),
    "question_only: first option": _option_rule(lambda item, place: -place),
    "question_only: last option": _option_rule(lambda item, place: place),
    "question_only: option most like the question": _option_rule(_overlap),
    "context_only: longer context": _longer_context,
    "context_only: larger value": _value_rule(_larger),
    "context_only: rounder value": _value_rule(_rounder),
    "context_only: longer value": _value_rule(_longer),
    "context_only: later letter": _value_rule(_later_letter),
    "context_only: says yes": _value_rule(_says_yes),
}
_LEARNT: dict[str, Callable[[Sequence[Item], int], list[Score]]] = {
    "question_only: words": _gold_from(lambda item: _words(item.question)),
    "options_only: words": _candidate_from(_option_words, lambda item: _place(item.gold)),
    "context_only: words": _candidate_from(_context_words, lambda item: 0),
    "context_only: channel, length and form": _candidate_from(_context_form, lambda item: 0),
    "question_and_context: larger value": _larger_from_question,
    "irrelevant_context: words": _gold_from(lambda item: _words(contexts(item)["context_irrelevant"])),
    "channel": _gold_from(lambda item: item.channel),
    "wrong_letter": _gold_from(lambda item: item.wrong if item.options else "", lambda item: item.wrong),
}
