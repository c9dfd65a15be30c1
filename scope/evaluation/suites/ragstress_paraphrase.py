"""RAG-Stress under paraphrased policies: does another wording of the clause change the contrast (App. F.2)?

The original clauses and two paraphrases of each, on the K of the closed-book cell; the original's requests are those of
`ragstress`, which the store answers where that has run.
"""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from scope.evaluation.paired import Rate, share
from scope.evaluation.ragstress.labels import CLOSED, POLICIES, cell_of, grid
from scope.evaluation.ragstress.suite import Stress
from scope.evaluation.suites.base import Panel, Row
from scope.evidence import ARMS, POSITIONS, EvidenceItem

#: Suffix of a version's cells -> what it is called.
VERSIONS = {"": "original", "_v1": "paraphrase 1", "_v2": "paraphrase 2"}


class Paraphrases(Stress):
    """Strict minus soft in MR under each version of the clauses, and its change from the original (R_v)."""

    name = "ragstress_paraphrase"
    title = "RAG-Stress, policy paraphrases"
    places = POSITIONS
    clauses = len(VERSIONS)
    cells = (CLOSED, *(f"{cell}{version}" for version in VERSIONS for cell in grid(POLICIES, ARMS, POSITIONS)))
    headings: ClassVar = {
        "closed": "Closed-book",
        "delta": "Δ MR",
        "delta_v1": "Δ MR, v1",
        "delta_v2": "Δ MR, v2",
        "change_v1": "R v1",
        "change_v2": "R v2",
    }
    sliced = "delta"
    panels_of: ClassVar = {"versions": "MR on K by version of the policy clauses, mean of the places"}
    words: ClassVar = {
        **{version or "original": said for version, said in VERSIONS.items()},
        **{"soft": "soft", "strict": "strict", "delta": "strict - soft", "change": "change from the original"},
    }

    def rates(self, items: Sequence[EvidenceItem], rows: Mapping[str, Sequence[Row]]) -> dict[str, Rate]:
        answers, versions = self.answers(rows), self._versions(rows)
        found = {"closed": share(answers.all(), answers.k())}
        for version, own in versions.items():
            found |= {f"delta{version}": own["delta"], f"change{version}": own["change"]}  # type: ignore[dict-item]
        return {metric: found[metric] for metric in self.headings}

    def panels(self, items: Sequence[EvidenceItem], rows: Mapping[str, Sequence[Row]]) -> Mapping[str, Panel]:
        return {"versions": {version or "original": own for version, own in self._versions(rows).items()}}

    def _versions(self, rows: Mapping[str, Sequence[Row]]) -> dict[str, dict[str, Rate]]:
        """Version -> MR by policy, their difference, and how that differs from the original's."""
        answers = self.answers(rows)
        found: dict[str, dict[str, Rate]] = {}
        for version in VERSIONS:
            soft, strict = (
                share(answers.k(), *(answers.foil(f"{cell_of('edited', policy, p)}{version}") for p in POSITIONS))
                for policy in POLICIES
            )
            delta = strict - soft
            original = found.get("", {}).get("delta", delta)
            found[version] = {"soft": soft, "strict": strict, "delta": delta, "change": delta - original}
        return found


SUITE = Paraphrases()
