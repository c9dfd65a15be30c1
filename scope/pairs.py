"""Quartets -> the preference rows of a run: the full construction and its ablations.

An arm says which conditions give rows; masses that are not set follow from it: the headline
masses (SCOPE paper, Sec. 4) without the removed component, rescaled to one (protocol, Arms).
Two arms break the matching instead (Sec. 5.3, "unmatched or random pairs"): `unmatched` keeps
items apart by condition, `shuffled` hands every item the pair of another.
"""

import random
from collections.abc import Sequence

from scope.artifacts import Refusal
from scope.conditions import Condition
from scope.mixture import condition_masses, sampling_plan
from scope.recipe import Recipe
from scope.schema import PairsConfig

#: Arm -> the conditions it removes.
REMOVED: dict[str, tuple[Condition, ...]] = {
    "full": (),
    "no_clean": (Condition.CLEAN,),
    "no_correct": (Condition.CORRECT,),
    "no_irrelevant": (Condition.IRRELEVANT,),
    "misleading_only": (Condition.CLEAN, Condition.CORRECT, Condition.IRRELEVANT),
    "unmatched": (),
    "shuffled": (),
}
HEADLINE = condition_masses(0.25, 0.25, 0.50, 0.50)


class PairsError(Refusal, ValueError):
    """Masses that cannot be, or that contradict the arm."""


def arm_masses(pairs: PairsConfig) -> dict[Condition, float]:
    """The condition masses of an arm; PairsError if explicit ones contradict it."""
    removed = REMOVED[pairs.arm]
    total = sum(mass for condition, mass in HEADLINE.items() if condition not in removed)
    own = {c: 0.0 if c in removed else mass / total for c, mass in HEADLINE.items()}
    given = {name: getattr(pairs, name) for name in ("lambda_m", "lambda_c", "lambda_p", "rho")}
    if all(value is None for value in given.values()):
        return own
    default_p = own[Condition.CORRECT] + own[Condition.IRRELEVANT]
    defaults = {
        "lambda_m": own[Condition.MISLEADING],
        "lambda_c": own[Condition.CLEAN],
        "lambda_p": default_p,
        "rho": own[Condition.CORRECT] / default_p if default_p else 0.5,
    }
    weights = {name: defaults[name] if value is None else value for name, value in given.items()}
    try:
        masses = condition_masses(**weights)
    except ValueError as error:
        raise PairsError(f"pairs: {error}") from error
    contradicted = [c for c in removed if masses[c] > 0]
    if contradicted:
        raise PairsError(
            f"pairs.arm={pairs.arm} removes {contradicted[0]} rows, but the masses give them "
            f"{masses[contradicted[0]]:.3g}; leave pairs.lambda_* and pairs.rho unset, or choose another arm"
        )
    return masses


def construction(recipe: Recipe) -> PairsConfig:
    """The construction a run's rows follow: the recipe's; for OPSD misleading rows only, whatever it says."""
    return PairsConfig("misleading_only") if recipe.trainer.kind == "opsd" else recipe.pairs


def partners(answer_types: Sequence[str], pairs: PairsConfig, seed: int) -> dict[int, int]:
    """Whose pair the four prompts of each quartet get: prompt quartet -> pair quartet, in the quartets' order.

    Everyone its own, but for `shuffled`: there a seeded random cycle through each answer type, so that
    nobody keeps its own. A quartet that is alone in its answer type has no partner and is left out.
    """
    if pairs.arm != "shuffled":
        return {i: i for i in range(len(answer_types))}
    found: dict[int, int] = {}
    for answer_type in sorted(set(answer_types)):
        cycle = [i for i, found_type in enumerate(answer_types) if found_type == answer_type]
        random.Random(f"{seed}:{answer_type}").shuffle(cycle)
        if len(cycle) > 1:
            found |= zip(cycle, [*cycle[1:], cycle[0]], strict=True)
    return dict(sorted(found.items()))


def run_plan(n_quartets: int, pairs: PairsConfig, n_rows: int, seed: int) -> list[tuple[int, Condition]]:
    """(quartet index, condition) of every row of the run, in order."""
    disjoint = pairs.arm == "unmatched"
    try:
        return sampling_plan(n_quartets, arm_masses(pairs), n_rows, seed, disjoint=disjoint)
    except ValueError as error:
        raise PairsError(f"pairs.arm={pairs.arm}: {error}; mine more quartets") from error


def passes(n_quartets: int, pairs: PairsConfig, n_rows: int) -> float:
    """How often the most frequent condition goes through the quartets it draws from."""
    masses = [mass for mass in arm_masses(pairs).values() if mass]
    of = n_quartets / len(masses) if pairs.arm == "unmatched" else n_quartets
    return n_rows * max(masses) / of
