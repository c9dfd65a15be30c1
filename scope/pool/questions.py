"""What every source hands over: a question, its answer, and the wrong answers that named mistakes give."""

from dataclasses import dataclass

from scope.artifacts import Refusal
from scope.pool.foils import Mistake


class PoolError(Refusal, ValueError):
    """A pool that cannot be built as asked: what was found and what to do, in one sentence."""


@dataclass(frozen=True, slots=True)
class Question:
    """One question before its options are ordered and its contexts are written.

    gold: a number, yes/no, or the text of the right option. mistakes: usable wrong values of the
    same kind, one for each value, the most tempting first. upstream_id: `source:id`, stable and
    unique within the source. fixed_order: the options speak of one another ("all of the above",
    "A and B"), so they keep their order. where: `file:line` of the row, for messages only.
    """

    source: str
    upstream_id: str
    question: str
    answer_type: str
    gold: str
    mistakes: tuple[Mistake, ...]
    options: tuple[str, ...] = ()
    topic: str = ""
    license: str = ""
    provenance: str = "existing_benchmark"
    family: str = ""
    tier: str = ""
    fixed_order: bool = False
    where: str = ""
