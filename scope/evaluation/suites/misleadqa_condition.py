"""The condition supplement of MisleadQA, asked and counted as the main split, apart from it (MisleadQA, App. D.3).

It is small: whoever reads its rates reads its counts. A system enters with two clusters in A, for one alone has nothing
to be resampled against.
"""

from collections.abc import Mapping, Sequence

from scope.evaluation.misleadqa.labels import Labels
from scope.evaluation.misleadqa.suite import clusters_in
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
        return clusters_in(items, Labels(rows).a()) > 1


SUITE = Condition()
