"""Answers -> labels -> rates of RAG-Stress (Sec. 3.2, App. A.4, App. C).

The reference is named where the label is `gold` or `both`; the foil is followed only where it is `foil`, the foil
without the reference. K is what a system answers right closed-book, U all else. A rate over policies, places or seeds
is the mean within the question, so that a difference of two is paired before anything is resampled.
"""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from scope import matching
from scope.answers import parse_answer, split_thinking
from scope.evaluation.paired import Bools, Combination, Rate, Ratio, among, share
from scope.evaluation.suites.base import Row
from scope.evidence import ARMS, EvidenceItem
from scope.items import Completion
from scope.prompts import letter

LABELS = ("gold", "foil", "both", "neither", "failed")
POLICIES = ("soft", "strict")
CLOSED = "closed"


def cell_of(arm: str, policy: str, place: str) -> str:
    """A cell's name: evidence, policy, and where the answer or the target stands."""
    return f"{arm}_{policy}_{place}"


# ---------------------------------------------------------------- labels


def read_answer(item: EvidenceItem, completion: Completion, matching_by: str) -> Row:
    """`parse_status`, `value`, `label` and `exact` of a short answer.

    value: the visible answer without an answer prefix. label: by `matching_by`, `contained` or `exact`; exact: the
    label where the answer must be the phrase and nothing else, as the audit counts (App. B). Of a multiple-choice
    question the letter or the text of an option is an answer, by either.
    """
    if completion.finish_reason == "error":
        return {"parse_status": "failed", "value": None, "label": "failed", "exact": "failed"}
    visible = split_thinking(completion.text)[1]
    value = matching.answer(visible or "")
    exact = label_of(item, value, "exact")
    return {
        "parse_status": "ok" if value else "unparsed",
        "value": value or None,
        "label": exact if matching_by == "exact" else label_of(item, value, matching_by),
        "exact": exact,
    }


def label_of(item: EvidenceItem, answer: str, matching_by: str) -> str:
    """The label of an answer's text; both spellings of an option, letter and text, name it."""
    matches = matching.equals if matching_by == "exact" else matching.contains
    gold, foil = matches(answer, item.references), matches(answer, item.foils)
    if item.options and not (gold or foil):
        chosen = _option(item, answer)
        gold, foil = chosen == item.reference, chosen == item.foil
    return {(True, True): "both", (True, False): "gold", (False, True): "foil"}.get((gold, foil), "neither")


def _option(item: EvidenceItem, answer: str) -> str:
    """The option whose letter the answer gives, with or without its text; empty if none."""
    found = parse_answer(answer, "multiple_choice", len(item.options))
    letters = [letter(n) for n in range(len(item.options))]
    return item.options[letters.index(str(found.value))] if found.status == "ok" and found.value in letters else ""


class Answers:
    """One system's labels, cell by cell, each an array (n_items,) in the order of the items.

    column: `label`, or `exact` for what the audit counts. places: the three positions or slots of the grid.
    """

    def __init__(self, rows: Mapping[str, Sequence[Row]], places: Sequence[str], column: str = "label"):
        self._labels = {cell: np.array([row[column] for row in rows[cell]]) for cell in rows}
        self.places = tuple(places)

    def gold(self, cell: str) -> Bools:
        """Which answers name the reference."""
        return np.isin(self._labels[cell], ("gold", "both"))

    def foil(self, cell: str) -> Bools:
        """Which answers name the foil and not the reference."""
        return self._labels[cell] == "foil"

    def both(self, cell: str) -> Bools:
        """Which answers name both."""
        return self._labels[cell] == "both"

    def all(self) -> Bools:
        """Every item."""
        return np.ones(len(self._labels[CLOSED]), dtype=bool)

    def k(self) -> Bools:
        """K: right closed-book."""
        return self.gold(CLOSED)

    def u(self) -> Bools:
        """U: not right closed-book, and answered."""
        return ~self.gold(CLOSED) & (self._labels[CLOSED] != "failed")

    def cells(self, arm: str, policy: str, places: Sequence[str] = ()) -> list[str]:
        """The cells of an arm and a policy, at some or at all places."""
        return [cell_of(arm, policy, place) for place in places or self.places]


# ---------------------------------------------------------------- rates


def clean_accuracy(answers: Answers, policy: str, places: Sequence[str] = ()) -> Ratio:
    """Reference named with clean evidence, of all items (Eq. 2); the mean of its places."""
    return share(answers.all(), *map(answers.gold, answers.cells("clean", policy, places)))


def mr(answers: Answers, policy: str, places: Sequence[str] = (), stratum: Bools | None = None) -> Ratio:
    """MR: foil without reference with edited evidence, of K (Eq. 3); the mean of its places, HOR in the audit."""
    inside = answers.k() if stratum is None else stratum
    return share(inside, *map(answers.foil, answers.cells("edited", policy, places)))


def bcr(answers: Answers, policy: str, places: Sequence[str] = (), stratum: Bools | None = None) -> Ratio:
    """BCR: reference named with clean evidence, of U (App. A.3, step 7)."""
    inside = answers.u() if stratum is None else stratum
    return share(inside, *map(answers.gold, answers.cells("clean", policy, places)))


def retention(answers: Answers, policy: str) -> Ratio:
    """Reference named with edited evidence, of K. The paper names it without a definition; this is ours."""
    return share(answers.k(), *map(answers.gold, answers.cells("edited", policy)))


def follow(answers: Answers, policy: str) -> Ratio:
    """Conflict follow: foil without reference with edited evidence, of all items. Definition ours, as above."""
    return share(answers.all(), *map(answers.foil, answers.cells("edited", policy)))


def hedge(answers: Answers, policy: str) -> Ratio:
    """Both named with edited evidence, of K. Definition ours, as above."""
    return share(answers.k(), *map(answers.both, answers.cells("edited", policy)))


def gold_contrast(answers: Answers, arm: str) -> Combination:
    """Strict minus soft in naming the reference with an arm's evidence, of all items (App. C.2, Table 9)."""
    strict, soft = (share(answers.all(), *map(answers.gold, answers.cells(arm, policy))) for policy in POLICIES[::-1])
    return strict - soft


def clean_control(answers: Answers, policy: str) -> Ratio:
    """Foil without reference with clean evidence, of K (App. C.4)."""
    return share(answers.k(), *map(answers.foil, answers.cells("clean", policy)))


def transitions(answers: Answers, policies: Sequence[str] = POLICIES) -> dict[str, Ratio]:
    """Pairs of K, same policy and place, that go from the reference to the foil (App. C.3): of all, of clean-gold."""
    pairs = [(cell_of(ARMS[0], p, place), cell_of(ARMS[1], p, place)) for p in policies for place in answers.places]
    events = [(answers.gold(clean), answers.foil(edited)) for clean, edited in pairs]
    k = answers.k()
    return {
        "of_pairs": among(*((k, clean & edited) for clean, edited in events)),
        "of_clean_gold": among(*((k & clean, edited) for clean, edited in events)),
    }


def position_contrasts(answers: Answers, policy: str) -> dict[str, Combination]:
    """The three contrasts of places within question on K (App. F.1): end-middle, beginning-middle, beginning-end."""
    first, middle, last = (mr(answers, policy, [place]) for place in answers.places)
    return {"last_middle": last - middle, "first_middle": first - middle, "first_last": first - last}


def interaction(answers: Answers) -> dict[str, Rate]:
    """(strict end-beginning) - (soft end-beginning) per question on K (App. C.2); never HOR minus BCR."""
    strict, soft = (position_contrasts(answers, policy)["first_last"] * -1.0 for policy in POLICIES[::-1])
    return {"strict": strict, "soft": soft, "interaction": strict - soft}


def grid(policies: Sequence[str], arms: Sequence[str], places: Sequence[str]) -> Iterator[str]:
    """The names of a grid's cells."""
    return (cell_of(arm, policy, place) for arm in arms for policy in policies for place in places)
