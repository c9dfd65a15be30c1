"""Mixture weights -> condition masses -> the whole run's sampling plan (SCOPE paper, Sec. 4, Eqs. 9-10).

Masses are realised by sampling, not by loss weights. The plan is a pure function of
(quartets, masses, rows, seed): it knows nothing of devices or processes.
"""

import math
import random
from collections.abc import Sequence

from scope.conditions import Condition

_TOLERANCE = 1e-9


def condition_masses(lambda_m: float, lambda_c: float, lambda_p: float, rho: float) -> dict[Condition, float]:
    """Sampling mass of each condition; the four add up to one.

    misleading lambda_m, clean lambda_c, correct lambda_p * rho, irrelevant lambda_p * (1 - rho).
    ValueError if a weight is outside [0, 1] or the lambdas do not add up to 1 (within 1e-9).
    """
    weights = {"lambda_m": lambda_m, "lambda_c": lambda_c, "lambda_p": lambda_p, "rho": rho}
    for name, value in weights.items():
        if not (math.isfinite(value) and 0.0 <= value <= 1.0):
            raise ValueError(f"{name} is {value}; it must lie in [0, 1]")
    total = lambda_m + lambda_c + lambda_p
    if abs(total - 1.0) > _TOLERANCE:
        raise ValueError(
            f"lambda_m + lambda_c + lambda_p is {total:.6g}; the three must add up to 1 "
            f"(found {lambda_m}, {lambda_c}, {lambda_p})"
        )
    return {
        Condition.CLEAN: lambda_c,
        Condition.MISLEADING: lambda_m,
        Condition.CORRECT: lambda_p * rho,
        Condition.IRRELEVANT: lambda_p * (1.0 - rho),
    }


def sampling_plan(
    n_quartets: int, masses: dict[Condition, float], n_rows: int, seed: int, *, disjoint: bool = False
) -> list[tuple[int, Condition]]:
    """Which quartet under which condition each of the run's `n_rows` rows is, in order.

    After any number of rows each condition's count is within one of its target. Every condition
    walks through the quartets without replacement, reshuffled each pass; a pass has one
    permutation, shared by all conditions, so at equal masses the four rows of a quartet stand
    side by side. disjoint: each condition with a mass walks through a part of the quartets of its
    own instead, the parts equal to within one.
    """
    if n_quartets < 1:
        raise ValueError(f"the plan needs at least one quartet, found {n_quartets}")
    if n_rows < 0:
        raise ValueError(f"the plan cannot have {n_rows} rows")
    if abs(sum(masses.values()) - 1.0) > _TOLERANCE or min(masses.values()) < 0:
        raise ValueError(f"the condition masses must be non-negative and add up to 1, found {masses}")
    conditions = [c for c in Condition if masses.get(c, 0.0) > 0.0]
    if disjoint:
        if n_quartets < len(conditions):
            raise ValueError(f"{n_quartets} quartets cannot be parted among {len(conditions)} conditions")
        order = _shuffled(range(n_quartets), f"{seed}:parts")
        parts = {c: sorted(order[i :: len(conditions)]) for i, c in enumerate(conditions)}
        walks = {c: _Walk(part, f"{seed}:{c}") for c, part in parts.items()}
    else:
        walks = dict.fromkeys(conditions, _Walk(range(n_quartets), f"{seed}"))
    drawn = dict.fromkeys(conditions, 0)
    plan = []
    for row in range(1, n_rows + 1):
        condition = _next_condition(conditions, masses, drawn, row)
        plan.append((walks[condition].quartet(drawn[condition]), condition))
        drawn[condition] += 1
    return plan


class _Walk:
    """Goes through quartets without replacement, reshuffled each pass."""

    def __init__(self, quartets: Sequence[int], seed: str):
        self.quartets, self.seed = quartets, seed
        self.passes: list[list[int]] = []

    def quartet(self, draw: int) -> int:
        turn, place = divmod(draw, len(self.quartets))
        while len(self.passes) <= turn:
            self.passes.append(_shuffled(self.quartets, f"{self.seed}:{len(self.passes)}"))
        return self.passes[turn][place]


def _shuffled(quartets: Sequence[int], seed: str) -> list[int]:
    order = list(quartets)
    random.Random(seed).shuffle(order)
    return order


def _next_condition(
    conditions: list[Condition], masses: dict[Condition, float], drawn: dict[Condition, int], row: int
) -> Condition:
    """Earliest-deadline choice (Tijdeman's chairman assignment), which keeps every count within one.

    A condition may be drawn once its target has passed its count (`drawn < mass * row`); among
    those, the one that must be drawn soonest, i.e. with the smallest `(drawn + 1) / mass`, goes first.
    """
    due = [c for c in conditions if drawn[c] < masses[c] * row - 1e-12] or conditions
    return min(due, key=lambda c: (round((drawn[c] + 1) / masses[c], 9), conditions.index(c)))


def realised_masses(plan: list[tuple[int, Condition]]) -> dict[Condition, float]:
    """Share of each condition in a plan."""
    return {c: sum(1 for _, found in plan if found is c) / max(len(plan), 1) for c in Condition}
