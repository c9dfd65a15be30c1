"""RAG-Stress without passages: closed-book accuracy alone, and which option or answer is given instead.

For items whose evidence is not at hand, and for the size of K and U before a grid is paid for.
"""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from scope.evaluation.paired import Rate, share
from scope.evaluation.ragstress.labels import CLOSED
from scope.evaluation.ragstress.suite import Stress
from scope.evaluation.suites.base import Row
from scope.evidence import EvidenceItem


class ClosedBook(Stress):
    """The closed-book cell of every item."""

    name = "ragstress_closed"
    title = "RAG-Stress, closed-book"
    cells = (CLOSED,)
    grounded = False
    headings: ClassVar = {"closed": "Closed-book", "foil": "Foil", "exact": "Closed-book, exact"}
    lower_is_better = frozenset({"foil"})
    sliced = "closed"

    def rates(self, items: Sequence[EvidenceItem], rows: Mapping[str, Sequence[Row]]) -> dict[str, Rate]:
        answers, exact = self.answers(rows), self.answers(rows, "exact")
        return {
            "closed": share(answers.all(), answers.k()),
            "foil": share(answers.all(), answers.foil(CLOSED)),
            "exact": share(answers.all(), exact.k()),
        }


SUITE = ClosedBook()
