"""The four matched conditions every item exists under (SCOPE paper, Sec. 3.1)."""

from enum import StrEnum


class Condition(StrEnum):
    """What stands beside the question. The order is the order of every table."""

    CLEAN = "clean"
    MISLEADING = "misleading"
    CORRECT = "correct"
    IRRELEVANT = "irrelevant"


#: The three conditions that carry a context.
CONTEXT_CONDITIONS = (Condition.MISLEADING, Condition.CORRECT, Condition.IRRELEVANT)
