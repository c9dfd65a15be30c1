"""The condition supplement of MisleadQA, asked and counted as the main split, apart from it (MisleadQA, App. D.3).

It is small: whoever reads its rates reads its counts, and a mean takes in every system however few its clusters.
"""

from collections.abc import Mapping, Sequence

from scope.evaluation.suites.base import Row
from scope.evaluation.suites.misleadqa import MisleadQA
from scope.scopes import ScopedItem


class Condition(MisleadQA):
    """The suite on the items of the split `condition`."""

    name = "misleadqa_condition"
    title = "MisleadQA, condition supplement"
    split = "condition"
    columns = ()

    def enters(self, items: Sequence[ScopedItem], rows: Mapping[str, Sequence[Row]]) -> bool:
        return True


SUITE = Condition()
