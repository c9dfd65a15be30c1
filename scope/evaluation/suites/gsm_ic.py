"""GSM-IC: grade-school problems with an irrelevant sentence put in (Shi et al. 2023; SCOPE protocol, Transfer)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from scope.evaluation.suites._transfer import Problems, item_id, numeric_gold, text


@dataclass(frozen=True, slots=True)
class IrrelevantItem:
    """A problem. The labels say whether the sentence's role, number and topic fit the problem; n_steps: its length."""

    id: str
    question: str
    gold: str
    role_label: str
    number_label: str
    sentence_label: str
    n_steps: int


class GsmIc(Problems):
    """Accuracy on problems that hold one sentence with a number that has nothing to do with them."""

    name = "gsm_ic"
    title = "GSM-IC"
    upstream = "gsm_ic"
    columns = ("role_label", "number_label", "sentence_label", "n_steps")
    item_type = IrrelevantItem

    def item(self, row: Mapping[str, Any]) -> IrrelevantItem:
        question, gold = text(row, "new_question"), numeric_gold(row)
        role, number, sentence = (text(row, name) for name in self.columns[:3])
        try:
            n_steps = int(row["n_steps"])
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"n_steps: {row.get('n_steps')!r:.40} is no whole number; write one") from error
        id = item_id(self.name, question, gold)
        return IrrelevantItem(id, question, gold, role, number, sentence, n_steps)


SUITE = GsmIc()
