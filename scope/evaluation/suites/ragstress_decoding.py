"""RAG-Stress under two decoding profiles: drawn with five seeds, and greedy with room for a long answer (Sec. 4.4.5).

K is of the greedy closed-book run. The profiles differ from the main run in more than one thing: they are no contrast.
"""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from scope.engines import Choices, Sampling
from scope.evaluation.paired import Rate, share
from scope.evaluation.ragstress.labels import CLOSED, POLICIES, cell_of, grid
from scope.evaluation.ragstress.suite import Stress
from scope.evaluation.suites.base import Panel, Row
from scope.evidence import POSITIONS, EvidenceItem
from scope.recipe import Recipe

TEMPERATURE, TOP_P = 0.7, 0.9
SEEDS = ("s1", "s2", "s3", "s4", "s5")
LONG = "long"


class Decoding(Stress):
    """MR with sampled and with long answers, the mean of the places and of the seeds."""

    name = "ragstress_decoding"
    title = "RAG-Stress, decoding profiles"
    places = POSITIONS
    cells = (CLOSED, *(f"{cell}_{run}" for run in (*SEEDS, LONG) for cell in grid(POLICIES, ["edited"], POSITIONS)))
    headings: ClassVar = {
        "closed": "Closed-book",
        "sampled_soft": "Sampled: soft",
        "sampled_strict": "strict",
        "sampled_delta": "Δ",
        "long_soft": "Long: soft",
        "long_strict": "strict",
        "long_delta": "Δ",
    }
    lower_is_better = frozenset({"sampled_soft", "sampled_strict", "long_soft", "long_strict"})
    sliced = "sampled_strict"
    panels_of: ClassVar = {"runs": "MR on K of each seed and of the long answers, mean of the places"}
    words: ClassVar = {**{run: f"seed {run[1:]}" for run in SEEDS}, LONG: "long", "delta": "strict - soft"}

    def how(self, cell: str, recipe: Recipe) -> Sampling | Choices:
        chosen, run = recipe.evaluation.ragstress, cell.rpartition("_")[2]
        if run == LONG:
            return Sampling(chosen.long_new_tokens)
        if run in SEEDS:
            return Sampling(chosen.max_new_tokens, TEMPERATURE, TOP_P, int(run[1:]))
        return Sampling(chosen.max_new_tokens)

    def rates(self, items: Sequence[EvidenceItem], rows: Mapping[str, Sequence[Row]]) -> dict[str, Rate]:
        answers = self.answers(rows)
        sampled, long = self._mr(rows, SEEDS), self._mr(rows, (LONG,))
        profiles = {"sampled": sampled, "long": long}
        found = {f"{profile}_{name}": rate for profile, own in profiles.items() for name, rate in own.items()}
        return {"closed": share(answers.all(), answers.k()), **found}

    def panels(self, items: Sequence[EvidenceItem], rows: Mapping[str, Sequence[Row]]) -> Mapping[str, Panel]:
        return {"runs": {run: self._mr(rows, (run,)) for run in (*SEEDS, LONG)}}

    def _mr(self, rows: Mapping[str, Sequence[Row]], runs: Sequence[str]) -> dict[str, Rate]:
        answers = self.answers(rows)
        soft, strict = (
            share(answers.k(), *(answers.foil(f"{cell_of('edited', policy, p)}_{r}") for r in runs for p in POSITIONS))
            for policy in POLICIES
        )
        return {"soft": soft, "strict": strict, "delta": strict - soft}

    def remarks(self, items: Sequence[EvidenceItem], rows: Mapping[str, Mapping[str, Sequence[Row]]]) -> dict[str, Any]:
        """The spread over seeds, and how far the two profiles rank the systems alike by strict MR."""
        found: dict[str, Any] = {}
        for name, own in rows.items():
            by_seed = [self._mr(own, (run,)) for run in SEEDS]
            for column in by_seed[0]:
                values = [each[column].estimate() for each in by_seed]
                if None not in values:
                    said = f"sd over {len(SEEDS)} seeds, {name}, {column}"
                    found[said] = round(100 * float(np.std(np.array(values, dtype=float), ddof=1)), 2)
        strict = {
            name: [self._mr(own, runs)["strict"].estimate() for runs in (SEEDS, (LONG,))] for name, own in rows.items()
        }
        if (tau := kendall(*zip(*strict.values(), strict=True))) is not None:
            found["Kendall's tau of the two profiles' ranks by strict MR"] = round(tau, 4)
        return found


def kendall(a: Sequence[float | None], b: Sequence[float | None]) -> float | None:
    """Kendall's tau of two rankings of systems; None for fewer than two, an undefined rate, or a constant one."""
    from scipy.stats import kendalltau  # type: ignore[import-untyped]  # here, because slow to import

    if len(a) < 2 or None in (*a, *b):
        return None
    tau = float(kendalltau(a, b).statistic)
    return None if np.isnan(tau) else tau


SUITE = Decoding()
