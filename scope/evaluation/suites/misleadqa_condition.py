"""The condition supplement of MisleadQA, asked and counted as the main split, apart from it (MisleadQA, App. D.3).

It is small: whoever reads its rates reads its counts. A system enters with two clusters in A, for one alone has nothing
to be resampled against.
"""

from scope.evaluation.suites.misleadqa import MisleadQA


class Condition(MisleadQA):
    """The suite on the items of the split `condition`."""

    name = "misleadqa_condition"
    title = "MisleadQA, condition supplement"
    split = "condition"
    columns = ()
    min_clusters = 2


SUITE = Condition()
