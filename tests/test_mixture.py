"""Masses, the plan and the arms: counts within one everywhere, passes without replacement, quartets together."""

import math
from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scope.conditions import Condition
from scope.mixture import condition_masses, realised_masses, sampling_plan
from scope.pairs import REMOVED, PairsError, arm_masses, construction, partners, passes, run_plan
from scope.recipe import Recipe
from scope.schema import ARMS, PairsConfig
from scope.training.batch import batch_arithmetic

CLEAN, MISLEADING, CORRECT, IRRELEVANT = Condition
QUARTERS = dict.fromkeys(Condition, 0.25)


# ---------------------------------------------------------------- masses


def test_the_headline_weights_are_a_quarter_each():
    # (0.25, 0.25, 0.50, 0.50): lambda_p is split into 0.5 x 0.5 and 0.5 x 0.5
    assert condition_masses(0.25, 0.25, 0.50, 0.50) == QUARTERS


def test_uneven_weights_by_hand():
    # lambda_p = 0.3: correct 0.3 x 0.9 = 0.27, irrelevant 0.3 x 0.1 = 0.03
    masses = condition_masses(0.5, 0.2, 0.3, 0.9)
    assert list(masses) == list(Condition)
    assert masses == pytest.approx({CLEAN: 0.2, MISLEADING: 0.5, CORRECT: 0.27, IRRELEVANT: 0.03})


@pytest.mark.parametrize(
    "weights, name",
    [
        ((1.5, 0, 0, 0.5), "lambda_m"),
        ((0.5, -0.1, 0.6, 0.5), "lambda_c"),
        ((0.25, 0.25, math.nan, 0.5), "lambda_p"),
        ((0.25, 0.25, 0.5, 1.01), "rho"),
        ((0.25, 0.25, 0.5, math.inf), "rho"),
    ],
)
def test_a_weight_outside_the_unit_interval_is_named(weights, name):
    with pytest.raises(ValueError, match=rf"^{name} is .*must lie in \[0, 1\]"):
        condition_masses(*weights)


@pytest.mark.parametrize("weights", [(0.25, 0.25, 0.25, 0.5), (0.5, 0.5, 0.5, 0.5), (0.25, 0.25, 0.5 + 1e-6, 0.5)])
def test_weights_that_do_not_add_up_are_refused(weights):
    with pytest.raises(ValueError, match="must add up to 1"):
        condition_masses(*weights)


def test_rounding_in_the_weights_is_forgiven():
    assert sum(condition_masses(1 / 3, 1 / 3, 1 / 3, 0.5).values()) == pytest.approx(1)
    assert condition_masses(0.1, 0.2, 0.7, 0.0)[CORRECT] == 0  # 0.1 + 0.2 + 0.7 is not exactly 1 in floats


# ---------------------------------------------------------------- the plan


@st.composite
def weights(draw):
    """Masses of a random point of the simplex, corners and edges included."""
    parts = draw(st.lists(st.integers(0, 1000), min_size=3, max_size=3).filter(any))
    lambdas = [p / sum(parts) for p in parts]
    return condition_masses(*lambdas, draw(st.sampled_from([0.0, 0.5, 1.0]) | st.floats(0, 1)))


@settings(deadline=None, max_examples=60)
@given(masses=weights(), n_quartets=st.integers(1, 40), n_rows=st.integers(0, 300), seed=st.integers(0, 9))
def test_every_count_is_within_one_of_its_target_after_any_number_of_rows(masses, n_quartets, n_rows, seed):
    plan = sampling_plan(n_quartets, masses, n_rows, seed)
    assert len(plan) == n_rows
    counts = dict.fromkeys(Condition, 0)
    for row, (index, condition) in enumerate(plan, 1):
        assert 0 <= index < n_quartets
        counts[condition] += 1
        for c in Condition:
            assert abs(counts[c] - masses[c] * row) <= 1 + 1e-6, (row, c)
    assert all(counts[c] == 0 for c in Condition if masses[c] == 0)
    # A plan is a pure function, and a longer run begins like a shorter one.
    assert sampling_plan(n_quartets, masses, n_rows, seed) == plan
    assert sampling_plan(n_quartets, masses, n_rows // 2, seed) == plan[: n_rows // 2]


@settings(deadline=None, max_examples=40)
@given(masses=weights(), n_quartets=st.integers(1, 25), seed=st.integers(0, 9))
def test_each_condition_walks_the_same_permutation_of_every_pass(masses, n_quartets, seed):
    plan = sampling_plan(n_quartets, masses, 200, seed)
    walks = {c: [index for index, found in plan if found is c] for c in Condition}
    for walk in walks.values():
        passes = [walk[i : i + n_quartets] for i in range(0, len(walk), n_quartets)]
        for one in passes:
            assert len(set(one)) == len(one), "no quartet twice within a pass"
        for one in passes[:-1]:
            assert sorted(one) == list(range(n_quartets))
    longest = max(walks.values(), key=len)
    assert all(walk == longest[: len(walk)] for walk in walks.values())


def test_passes_are_reshuffled_and_seeds_differ():
    plan = sampling_plan(50, {MISLEADING: 1.0}, 200, 0)
    passes = [tuple(index for index, _ in plan[i : i + 50]) for i in range(0, 200, 50)]
    assert len(set(passes)) == 4  # four equal ones out of 50! would be no shuffle
    assert plan != sampling_plan(50, {MISLEADING: 1.0}, 200, 1)


def test_equal_masses_keep_whole_quartets_together():
    plan = sampling_plan(7, QUARTERS, 4 * 20, 3)
    groups = [plan[i : i + 4] for i in range(0, len(plan), 4)]
    for group in groups:
        assert len({index for index, _ in group}) == 1
        assert [condition for _, condition in group] == list(Condition)
    # so each batch of 4 n rows holds n whole quartets, and after 7 of them every one has come once
    assert sorted(group[0][0] for group in groups[:7]) == list(range(7))
    assert any(a[0][0] != b[0][0] for a, b in pairwise(groups))


def test_without_clean_rows_the_other_three_still_travel_together():
    masses = {MISLEADING: 1 / 3, CORRECT: 1 / 3, IRRELEVANT: 1 / 3}
    plan = sampling_plan(5, masses, 30, 0)
    for i in range(0, 30, 3):
        assert len({index for index, _ in plan[i : i + 3]}) == 1
        assert {condition for _, condition in plan[i : i + 3]} == set(masses)


def test_a_two_to_one_mixture_by_hand():
    # Masses 2/3 and 1/3. Targets after 1, 2, 3 rows: (0.67, 0.33), (1.33, 0.67), (2, 1): the first draw's
    # deadlines are 1.5 and 3 rows, so M first; then M's second is due by row 3, C's first by row 3.
    plan = sampling_plan(1, {MISLEADING: 2 / 3, CLEAN: 1 / 3}, 300, 0)
    assert plan[0] == (0, MISLEADING)
    for end in range(3, 301, 3):
        assert Counter(c for _, c in plan[:end]) == {MISLEADING: 2 * end // 3, CLEAN: end // 3}


def test_the_papers_budget_in_numbers():
    # 256 pairs x 300 steps over 1,393 quartets: 19,200 rows of each condition, 13.78 passes.
    plan = sampling_plan(1393, QUARTERS, 256 * 300, 0)
    assert Counter(c for _, c in plan) == dict.fromkeys(Condition, 19_200)
    seen = Counter(index for index, c in plan if c is MISLEADING)
    assert set(seen.values()) == {13, 14}
    assert sum(n == 14 for n in seen.values()) == 19_200 - 13 * 1393  # 1,091 quartets are met once more
    assert realised_masses(plan) == QUARTERS


@pytest.mark.parametrize(
    "arguments, sentence",
    [
        ((0, QUARTERS, 8, 0), "at least one quartet, found 0"),
        ((4, QUARTERS, -1, 0), "cannot have -1 rows"),
        ((4, {CLEAN: 0.5, MISLEADING: 0.4}, 8, 0), "add up to 1"),
        ((4, {CLEAN: 1.5, MISLEADING: -0.5}, 8, 0), "non-negative"),
    ],
)
def test_an_impossible_plan_is_refused(arguments, sentence):
    with pytest.raises(ValueError, match=sentence):
        sampling_plan(*arguments)


def test_realised_masses_by_hand():
    plan = [(0, CLEAN), (1, MISLEADING), (2, MISLEADING), (0, IRRELEVANT)]
    assert realised_masses(plan) == {CLEAN: 0.25, MISLEADING: 0.5, CORRECT: 0.0, IRRELEVANT: 0.25}
    assert realised_masses([]) == dict.fromkeys(Condition, 0.0)


# ---------------------------------------------------------------- arms

THIRD = pytest.approx(1 / 3)


@pytest.mark.parametrize(
    "arm, expected",
    [
        ("full", (0.25, 0.25, 0.25, 0.25)),
        ("no_clean", (0, THIRD, THIRD, THIRD)),
        ("no_correct", (THIRD, THIRD, 0, THIRD)),
        ("no_irrelevant", (THIRD, THIRD, THIRD, 0)),
        ("misleading_only", (0, 1, 0, 0)),
        ("unmatched", (0.25, 0.25, 0.25, 0.25)),
        ("shuffled", (0.25, 0.25, 0.25, 0.25)),
    ],
)
def test_the_masses_of_every_arm(arm, expected):
    masses = arm_masses(PairsConfig(arm=arm))
    assert tuple(masses.values()) == expected and list(masses) == list(Condition)
    counts = Counter(c for _, c in run_plan(10, PairsConfig(arm=arm), 24, 0))
    assert set(counts) == {c for c in Condition if masses[c]} == set(Condition) - set(REMOVED[arm])


def test_every_arm_of_the_recipe_is_built():
    assert set(ARMS) == set(REMOVED)


@pytest.mark.parametrize(
    "arm, explicit, sentence",
    [
        ("no_clean", (0.25, 0.25, 0.5, 0.5), "pairs.arm=no_clean removes clean rows, but the masses give them 0.25"),
        ("no_correct", (0.25, 0.25, 0.5, 0.5), "removes correct rows"),
        ("no_irrelevant", (0.25, 0.25, 0.5, 0.5), "removes irrelevant rows"),
        ("misleading_only", (0.5, 0.5, 0.0, 0.5), "removes clean rows, but the masses give them 0.5"),
        ("misleading_only", (0.5, 0.0, 0.5, 0.0), "removes irrelevant rows"),
        ("full", (0.5, None, None, None), "lambda_m + lambda_c + lambda_p is 1.25; the three must add up to 1"),
        ("full", (None, None, None, 2.0), "rho is 2.0; it must lie in"),
    ],
)
def test_masses_that_contradict_the_arm_are_refused(arm, explicit, sentence):
    with pytest.raises(PairsError) as caught:
        arm_masses(PairsConfig(arm, *explicit))
    assert sentence in str(caught.value)


def test_masses_that_agree_with_the_arm_are_taken():
    # No clean rows, and of the context rows (mass 0.6) a quarter correct: 0.15 and 0.45.
    masses = arm_masses(PairsConfig("no_clean", 0.4, 0.0, 0.6, 0.25))
    assert masses == pytest.approx({CLEAN: 0, MISLEADING: 0.4, CORRECT: 0.15, IRRELEVANT: 0.45})
    # What is not given follows from the arm: lambda_m = lambda_p / 2 = 1/3 without clean rows.
    masses = arm_masses(PairsConfig("no_clean", rho=0.75))
    assert masses == pytest.approx({CLEAN: 0, MISLEADING: 1 / 3, CORRECT: 0.5, IRRELEVANT: 1 / 6})
    assert arm_masses(PairsConfig("misleading_only", 1.0, 0.0, 0.0, 0.5))[MISLEADING] == 1


# ---------------------------------------------------------------- any number of devices


@st.composite
def launches(draw):
    """(rows a step, processes, device batch): what a launch makes of a global batch."""
    world, device, accumulation = (draw(st.integers(1, 4)) for _ in range(3))
    return world * device * accumulation, world, device


@settings(deadline=None, max_examples=25)
@given(launch=launches(), masses=weights(), n_quartets=st.integers(1, 20), seed=st.integers(0, 9))
def test_a_step_holds_the_same_rows_on_any_number_of_processes(launch, masses, n_quartets, seed):
    """The plan knows no launch; accelerate's own sharding deals each step the plan's next rows, whole and in order."""
    from accelerate.data_loader import BatchSamplerShard
    from torch.utils.data import BatchSampler, SequentialSampler

    total, world, device = launch
    recipe = Recipe(name="x")
    recipe.trainer.global_batch, recipe.trainer.device_batch, recipe.trainer.max_steps = total, device, 3
    batch = batch_arithmetic(recipe, world)
    assert batch.rows == 3 * total and batch.accumulation * device * world == total
    plan = sampling_plan(n_quartets, masses, batch.rows, seed)
    batches = BatchSampler(SequentialSampler(range(batch.rows)), device, drop_last=False)
    shares = [list(BatchSamplerShard(batches, world, rank)) for rank in range(world)]
    for step in range(batch.max_steps):
        own = slice(step * batch.accumulation, (step + 1) * batch.accumulation)
        seen = sorted(row for share in shares for micro in share[own] for row in micro)
        assert seen == list(range(step * total, (step + 1) * total))
        counts = Counter(plan[row][1] for row in range((step + 1) * total))
        assert all(abs(counts[c] - masses[c] * (step + 1) * total) <= 1 + 1e-6 for c in Condition)


@settings(deadline=None, max_examples=40)
@given(
    arm=st.sampled_from(["full", "no_clean", "no_correct", "no_irrelevant", "misleading_only", "shuffled"]),
    quartets_a_device=st.integers(1, 3),
    n_quartets=st.integers(1, 20),
    seed=st.integers(0, 9),
)
def test_equal_masses_keep_whole_quartets_in_a_micro_batch(arm, quartets_a_device, n_quartets, seed):
    present = [c for c, mass in arm_masses(PairsConfig(arm=arm)).items() if mass]
    device = quartets_a_device * len(present)  # as many rows as so many quartets have
    plan = run_plan(n_quartets, PairsConfig(arm=arm), 12 * device, seed)
    for start in range(0, len(plan), device):
        micro = plan[start : start + device]
        by_draw = [micro[i : i + len(present)] for i in range(0, device, len(present))]
        for draw in by_draw:
            assert len({index for index, _ in draw}) == 1 and {c for _, c in draw} == set(present)


# ---------------------------------------------------------------- the arms without matching


@settings(deadline=None, max_examples=60)
@given(masses=weights(), n_quartets=st.integers(4, 40), n_rows=st.integers(0, 300), seed=st.integers(0, 9))
def test_disjoint_parts_are_exact_at_every_prefix_and_share_no_quartet(masses, n_quartets, n_rows, seed):
    plan = sampling_plan(n_quartets, masses, n_rows, seed, disjoint=True)
    matched = sampling_plan(n_quartets, masses, n_rows, seed)
    # The conditions come in the same order as in the matched plan, so the masses hold at every prefix.
    assert [c for _, c in plan] == [c for _, c in matched]
    assert sampling_plan(n_quartets, masses, n_rows // 2, seed, disjoint=True) == plan[: n_rows // 2]
    present = [c for c in Condition if masses[c]]
    walks = {c: [index for index, found in plan if found is c] for c in present}
    met = [set(walk) for walk in walks.values()]
    assert sum(map(len, met)) == len(set().union(*met)), "an item met two conditions"
    for walk in walks.values():
        assert len(set(walk)) <= -(-n_quartets // len(present))
        times = Counter(walk).values()
        assert not walk or max(times) - min(times) <= 1, "no quartet twice within a pass"


def test_unmatched_uses_every_quartet_in_quarters():
    plan = run_plan(10, PairsConfig(arm="unmatched"), 4 * 30, 0)
    parts = {c: {index for index, found in plan if found is c} for c in Condition}
    assert sorted(map(len, parts.values())) == [2, 2, 3, 3]
    assert set().union(*parts.values()) == set(range(10))
    other = run_plan(10, PairsConfig(arm="unmatched"), 4 * 30, 1)
    assert parts != {c: {index for index, found in other if found is c} for c in Condition}, "the parts are seeded"


def test_unmatched_parts_the_quartets_among_the_conditions_that_have_a_mass():
    pairs = PairsConfig("unmatched", 0.5, 0.5, 0.0, 0.5)
    plan = run_plan(6, pairs, 60, 0)
    parts = {c: {index for index, found in plan if found is c} for c in (CLEAN, MISLEADING)}
    assert all(len(part) == 3 for part in parts.values()) and {c for _, c in plan} == set(parts)


def test_too_few_quartets_to_keep_apart_are_refused():
    with pytest.raises(PairsError, match=r"pairs.arm=unmatched: 3 quartets cannot be parted among 4 conditions"):
        run_plan(3, PairsConfig(arm="unmatched"), 8, 0)


@settings(deadline=None, max_examples=80)
@given(
    answer_types=st.lists(st.sampled_from(["multiple_choice", "numeric", "boolean"]), max_size=40),
    seed=st.integers(0, 9),
)
def test_shuffled_is_a_derangement_within_answer_types(answer_types, seed):
    found = partners(answer_types, PairsConfig(arm="shuffled"), seed)
    counts = Counter(answer_types)
    # Exactly those stay that have a fellow of their type, in order; each pair is used once, by another of its type.
    assert list(found) == [i for i, kind in enumerate(answer_types) if counts[kind] > 1]
    assert sorted(found.values()) == list(found)
    assert all(own != other and answer_types[own] == answer_types[other] for own, other in found.items())
    assert partners(answer_types, PairsConfig(arm="shuffled"), seed) == found


def test_shuffling_is_seeded_and_other_arms_keep_their_own_pairs():
    numeric = ["numeric"] * 20
    assert partners(numeric, PairsConfig(arm="shuffled"), 0) != partners(numeric, PairsConfig(arm="shuffled"), 1)
    for arm in set(ARMS) - {"shuffled"}:
        assert partners(numeric, PairsConfig(arm=arm), 0) == {i: i for i in range(20)}


def test_passes_by_hand():
    # 96 rows of 12 quartets: 24 of each condition are 2 passes; from a quarter (3 quartets) of its own, 8 passes.
    assert passes(12, PairsConfig(), 96) == 2
    assert passes(12, PairsConfig(arm="unmatched"), 96) == 8
    assert passes(12, PairsConfig(arm="misleading_only"), 96) == 8
    assert passes(12, PairsConfig("unmatched", 1.0, 0.0, 0.0, 0.5), 96) == 8


def test_opsd_draws_misleading_rows_whatever_the_pairs():
    recipe = Recipe(name="x", pairs=PairsConfig(arm="no_clean"))
    for kind, expected in (("dpo", "no_clean"), ("sft", "no_clean"), ("opsd", "misleading_only")):
        recipe.trainer.kind = kind
        assert construction(recipe).arm == expected
