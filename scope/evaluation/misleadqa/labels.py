"""Answers -> labels -> rates: strata B and A, LR, RLR and what is made of them (MisleadQA, Sec. 4.2 and App. D)."""

from collections.abc import Mapping, Sequence

import numpy as np

from scope.answers import parse_answer
from scope.evaluation.paired import Bools, Ratio, share
from scope.evaluation.suites.base import Row
from scope.items import Completion, normalised

#: What an answer can be; all but `failed` stay in every denominator (Sec. 4.1, App. C.1).
LABELS = ("gold", "lure", "abstain", "other", "invalid", "failed")
#: What is counted of answers.
OUTCOMES = LABELS[:-1]


def read_choice(completion: Completion, options: Sequence[str], letters: bool) -> Row:
    """`parse_status`, `value` and `constrained` of an answer that is to be one of `options`, without its label.

    value: the option, None where there is none to be read. constrained: whether the engine could only give an option;
    None where the request failed. Free text is read by `scope.answers` where options are letters, else it must be the
    option alone; text that was cut off is none.
    """
    if completion.finish_reason == "error":
        return {"parse_status": "failed", "value": None, "constrained": None}
    if completion.finish_reason == "choice":
        return {"parse_status": "ok", "value": completion.text, "constrained": True}
    if letters:
        answer = parse_answer(completion.text, "multiple_choice", len(options))
        status, value = answer.status, None if answer.value is None else str(answer.value)
    else:
        found = [option for option in options if normalised(option) == normalised(completion.text)]
        status, value = ("ok", found[0]) if found else ("unparsed", None)
    if completion.finish_reason != "stop":
        value = None
    return {"parse_status": status, "value": value, "constrained": False}


def answer_label(read: Row, gold: str, lure: str) -> str:
    """The label of a read letter."""
    if read["parse_status"] == "failed":
        return "failed"
    if read["value"] is None:
        return "invalid"
    return {gold: "gold", lure: "lure", "E": "abstain"}.get(read["value"], "other")


class Labels:
    """One system's labels, cell by cell, each an array (n_items,) in the order of the items."""

    def __init__(self, rows: Mapping[str, Sequence[Row]]):
        self._labels = {cell: np.array([row["label"] for row in column]) for cell, column in rows.items()}

    def are(self, cell: str, label: str) -> Bools:
        """Which items have the label in the cell, bool (n_items,)."""
        return self._labels[cell] == label

    def all(self) -> Bools:
        """Every item."""
        return np.ones(len(self._labels["none"]), dtype=bool)

    def b(self) -> Bools:
        """B: gold without context."""
        return self.are("none", "gold")

    def a(self) -> Bools:
        """A: of B those that are gold with G alone, too."""
        return self.b() & self.are("g", "gold")


def distribution(labels: Labels, stratum: Bools, *cells: str) -> dict[str, Ratio]:
    """Outcome -> its share in the stratum, the mean over the cells; an outcome that never occurs is zero."""
    return {label: share(stratum, *(labels.are(cell, label) for cell in cells)) for label in OUTCOMES}


def both_orders(context: str, cell: str = "{}") -> tuple[str, str]:
    """The cells in which a context stands with G: G first, then the context first."""
    return cell.format(f"g{context}"), cell.format(f"{context}g")


def lr(labels: Labels, context: str, stratum: Bools | None = None) -> Ratio:
    """LR: share of B (or another stratum) on which the context alone gives the lure."""
    return share(labels.b() if stratum is None else stratum, labels.are(context, "lure"))


def rlr(labels: Labels, context: str) -> Ratio:
    """RLR: share of A on which the lure is chosen though G stands beside, the mean of both orders."""
    return share(labels.a(), *(labels.are(cell, "lure") for cell in both_orders(context)))
