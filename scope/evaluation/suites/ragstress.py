"""RAG-Stress: how often does following the evidence replace a right answer (RAG-Stress, Sec. 3 and 4)?

Thirteen cells an item: closed-book, and clean or edited evidence, under a soft or a strict policy, the answer near the
beginning, in the middle or near the end of the target text. K is what a system answers right closed-book, fixed; MR is
how often it then names the foil alone with edited evidence.
"""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from scope.evaluation.paired import Rate, restricted, share
from scope.evaluation.ragstress import panels as tables
from scope.evaluation.ragstress.items import validated
from scope.evaluation.ragstress.labels import CLOSED, POLICIES, grid
from scope.evaluation.ragstress.suite import Stress
from scope.evaluation.suites.base import Loaded, Panel, Row
from scope.evidence import ARMS, POSITIONS, EvidenceItem
from scope.recipe import Recipe


class RagStress(Stress):
    """Clean accuracy on all items, MR on K, and the audit's rates, over three places of the answer in its text."""

    name = "ragstress"
    title = "RAG-Stress"
    places = POSITIONS
    cells = (CLOSED, *grid(POLICIES, ARMS, POSITIONS))
    headings: ClassVar = {
        "closed": "Closed-book",
        "clean_soft": "Clean soft",
        "clean_strict": "Clean strict",
        "clean_delta": "Δ clean",
        "mr_soft": "MR soft",
        "mr_strict": "MR strict",
        "mr_delta": "Δ MR",
    }
    lower_is_better = frozenset({"mr_soft", "mr_strict"})
    sliced = "mr_strict"
    panels_of: ClassVar[Mapping[str, str]] = {
        **tables.TITLES,
        "validated": "strict minus soft in MR, all edits and those that people passed",
    }
    across_of: ClassVar = tables.ACROSS
    words: ClassVar[Mapping[str, str]] = {**tables.WORDS, **tables.place_words(POSITIONS)}

    def load(self, recipe: Recipe) -> Loaded:
        loaded = super().load(recipe)
        if name := recipe.evaluation.ragstress.validated:
            passed = validated(name, loaded.items)
            return Loaded(loaded.items, loaded.key, {**loaded.facts, "edits that people passed": len(passed)})
        return loaded

    def rates(self, items: Sequence[EvidenceItem], rows: Mapping[str, Sequence[Row]]) -> dict[str, Rate]:
        answers = self.answers(rows)
        found = {"closed": share(answers.all(), answers.k()), **tables.metrics(answers)}
        return {metric: found[metric] for metric in self.headings}

    def needs(self, metric: str) -> tuple[str, ...]:
        if metric == "closed":
            return (CLOSED,)
        arm = "clean" if metric.startswith("clean") else "edited"
        policies = [policy for policy in POLICIES if metric.endswith(policy)] or POLICIES
        return (*((CLOSED,) if arm == "edited" else ()), *grid(policies, [arm], self.places))

    def panels(self, items: Sequence[EvidenceItem], rows: Mapping[str, Sequence[Row]]) -> Mapping[str, Panel]:
        answers, exact = self.answers(rows), self.answers(rows, "exact")
        found = tables.panels(items, answers, exact)
        return {**found, "validated": self._validated(items, tables.metrics(answers)["mr_delta"])}

    def _validated(self, items: Sequence[EvidenceItem], delta: Rate) -> Panel:
        """The instruction contrast on all edits and on validated ones, by source (Table 5); empty without a file."""
        if not self.chosen.validated:
            return {}
        passed = validated(self.chosen.validated, items)
        good = np.array([item.id in passed for item in items])
        sources = {source: np.array([item.source == source for item in items]) for source in _sources(items)}
        return {
            name: {"all": restricted(delta, inside), "valid": restricted(delta, inside & good)}
            for name, inside in {**sources, "all sources": np.ones(len(items), dtype=bool)}.items()
        }

    def across(
        self, items: Sequence[EvidenceItem], rows: Mapping[str, Mapping[str, Sequence[Row]]]
    ) -> Mapping[str, Panel]:
        if len(rows) < 2:
            return {}
        return {"common": tables.common({name: self.answers(own, "exact") for name, own in rows.items()})}

    def remarks(self, items: Sequence[EvidenceItem], rows: Mapping[str, Mapping[str, Sequence[Row]]]) -> dict[str, Any]:
        if len(rows) < 2:
            return {}
        k, u = tables.shared({name: self.answers(own, "exact") for name, own in rows.items()})
        return {"questions in K of every system, exact answers": int(k.sum()), "in U of every system": int(u.sum())}


def _sources(items: Sequence[EvidenceItem]) -> list[str]:
    return sorted({item.source for item in items})


SUITE = RagStress()
