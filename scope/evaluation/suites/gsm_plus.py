"""GSM-Plus: grade-school problems, each perturbed in one of eight ways (Li et al. 2024; SCOPE protocol, Transfer).

Only rows with a number for an answer are asked. The others, by design all of the perturbation `critical thinking`,
whose problems lack what is needed to solve them, are left out and counted.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from scope.evaluation.suites._transfer import Problems, item_id, numeric_gold, text


@dataclass(frozen=True, slots=True)
class PerturbedItem:
    """A perturbed problem."""

    id: str
    question: str
    gold: str
    perturbation_type: str


class GsmPlus(Problems):
    """Accuracy on perturbed problems, by kind of perturbation."""

    name = "gsm_plus"
    title = "GSM-Plus"
    upstream = "gsm_plus"
    columns = ("perturbation_type",)
    item_type = PerturbedItem

    def item(self, row: Mapping[str, Any]) -> PerturbedItem:
        question, kind = text(row, "question"), text(row, "perturbation_type")
        gold = numeric_gold(row, kind=kind)
        return PerturbedItem(item_id(self.name, question, gold), question, gold, kind)


SUITE = GsmPlus()
