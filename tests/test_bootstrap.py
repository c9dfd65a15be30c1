"""Bootstrap: hand-computed cases, agreement with scipy and with a plain-Python reference, properties."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats  # type: ignore[import-untyped]

from scope.evaluation import bootstrap as module
from scope.evaluation.bootstrap import (
    Interval,
    bonferroni,
    bootstrap,
    bootstrap_all,
    interval,
    ratio_replicates,
    replicate_weights,
)
from scope.evaluation.paired import Ratio, accuracy_ratio, conditional_ratio, mean_of, sc2w, sc2w_ratio

CLEAN = np.array([1, 1, 1, 1, 0, 0, 1, 1], dtype=bool)
MISLEADING = np.array([1, 0, 0, 1, 1, 0, 1, 1], dtype=bool)
OTHER = np.array([1, 1, 0, 1, 0, 0, 1, 0], dtype=bool)


def mean_ratio(values):
    return Ratio(values, np.ones(len(values)))


def test_summary_by_hand():
    # Defined values 0 1 2 3 4; the 25th and 75th percentiles are 1 and 3, the 10th is 0.4.
    # Squared deviations 4 + 1 + 0 + 1 + 4 = 10, over n - 1 = 4: sd = sqrt(2.5).
    values = [3, 0, math.nan, 4, 1, 2]
    assert interval(2.0, values, 0.5) == Interval(2.0, 1.0, 3.0, 0.5, pytest.approx(math.sqrt(2.5)), 6, 1)
    assert interval(2.0, values, 0.8).low == pytest.approx(0.4)
    assert interval(2.0, values, 0.8).high == pytest.approx(3.6)
    assert interval(None, [math.nan] * 3) == Interval(None, None, None, 0.95, None, 3, 3)
    assert interval(1.0, [1.0]).sd is None


def test_ratio_replicates_by_hand():
    # Stratum: items 0 and 1, event at 1. Draws 1 1 1 -> 1/2; 0 3 0 -> 1; 2 1 0 -> 1/3; 0 0 3 -> empty.
    weights = [[1, 1, 1], [0, 3, 0], [2, 1, 0], [0, 0, 3]]
    ratio = conditional_ratio([1, 1, 0], [0, 1, 1])
    np.testing.assert_array_equal(ratio_replicates(weights, ratio), [1 / 2, 1, 1 / 3, np.nan])
    # Less accuracy (right: item 2): 1/3, 0, 0, 1. Undefined stays undefined in a difference.
    difference = ratio - accuracy_ratio([0, 0, 1])
    np.testing.assert_allclose(ratio_replicates(weights, difference), [1 / 6, 1, 1 / 3, np.nan], rtol=1e-15)
    # A numerator outside its stratum makes no infinity of it.
    assert np.isnan(ratio_replicates([[0, 2]], Ratio([1, 1], [1, 0])))[0]
    # And in a mean over systems: none is dropped from a replicate.
    assert np.isnan(ratio_replicates(weights, mean_of([ratio, accuracy_ratio([0, 0, 1])]))[3])


def test_two_items_have_the_known_distribution():
    # Items 0 and 1: the mean of two draws is 0, 1/2, 1 with probability 1/4, 1/2, 1/4; its sd is sqrt(1/8).
    result = bootstrap(mean_ratio([0, 1]), level=0.4)
    assert (result.estimate, result.low, result.high, result.undefined) == (0.5, 0.5, 0.5, 0)
    assert result.sd == pytest.approx(math.sqrt(1 / 8), abs=0.01)
    assert (bootstrap(mean_ratio([0, 1])).low, bootstrap(mean_ratio([0, 1])).high) == (0, 1)


def test_replicates_without_a_stratum_are_counted_and_left_out():
    # One of three items is in the stratum: it is missed with probability (2/3)^3 = 8/27.
    result = bootstrap(conditional_ratio([1, 0, 0], [1, 1, 1]))
    assert result.undefined / result.replicates == pytest.approx(8 / 27, abs=0.02)
    assert (result.estimate, result.low, result.high, result.sd) == (1.0, 1.0, 1.0, 0.0)
    empty = bootstrap(sc2w_ratio([0, 0, 0], [1, 0, 1]), replicates=50)
    assert empty == Interval(None, None, None, 0.95, None, 50, 50)
    assert bootstrap(sc2w_ratio([], []), replicates=50) == empty


@pytest.mark.parametrize("seed", [0, 7])
def test_agrees_with_scipy_on_means(seed):
    # scipy draws rng.integers(0, n, (replicates, n)) as well, so that the same seed is the same resample.
    values = np.random.default_rng(3).exponential(size=200)
    ours = bootstrap(mean_ratio(values), replicates=4000, seed=seed, level=0.9)
    theirs = stats.bootstrap(
        (values,), np.mean, n_resamples=4000, confidence_level=0.9, method="percentile",
        rng=np.random.default_rng(seed), vectorized=True,
    )  # fmt: skip
    assert ours.estimate == pytest.approx(values.mean(), rel=1e-12)
    assert (ours.low, ours.high) == pytest.approx(tuple(theirs.confidence_interval), rel=1e-10)
    assert ours.sd == pytest.approx(theirs.standard_error, rel=1e-10)


def plain_cluster_bootstrap(stratum, event, labels, replicates, seed):
    """The definition, slowly: draw clusters by name, gather their items, count."""
    names, rng, values = sorted(set(labels)), np.random.default_rng(seed), []
    for _ in range(replicates):
        drawn = [names[i] for i in rng.integers(len(names), size=len(names))]
        items = [i for name in drawn for i in range(len(labels)) if labels[i] == name]
        inside = [i for i in items if stratum[i]]
        values.append(sum(event[i] for i in inside) / len(inside) if inside else math.nan)
    return values


def test_clusters_agree_with_plain_python():
    labels = ["b", "a", "a", "c", "b", "c", "d", "a"]
    wrong, stratum = ~MISLEADING, CLEAN & np.array([1, 1, 1, 0, 1, 0, 0, 1], dtype=bool)
    expected = plain_cluster_bootstrap(stratum, wrong, labels, 500, seed=11)
    ratio = conditional_ratio(stratum, wrong)
    np.testing.assert_allclose(ratio_replicates(replicate_weights(labels, 500, 11), ratio), expected, rtol=1e-15)
    result = bootstrap(ratio, clusters=labels, replicates=500, seed=11)
    assert result.undefined == sum(map(math.isnan, expected)) > 0
    defined = sorted(v for v in expected if not math.isnan(v))
    position = 0.025 * (len(defined) - 1)  # linear interpolation between order statistics
    below = math.floor(position)
    step = defined[below + 1] - defined[below]
    assert result.low == pytest.approx(defined[below] + (position - below) * step, abs=1e-12)


def test_stratum_scheme_draws_sorted_ids():
    # RAG-Stress: the items of a stratum, drawn by sorted id, so that the order of the rows changes nothing.
    ids = np.array(["q7", "q1", "q5", "q3"])
    values = np.array([1.0, 0.0, 1.0, 0.0])
    order = np.argsort(ids)
    shuffled = bootstrap(mean_ratio(values), clusters=ids, replicates=300, seed=5)
    assert shuffled == bootstrap(mean_ratio(values[order]), replicates=300, seed=5)
    # One cluster has nothing to vary.
    assert bootstrap(mean_ratio(values), clusters=["x"] * 4, replicates=20).sd == 0


def test_functions_give_the_same_interval_as_ratios():
    rate = sc2w_ratio(CLEAN, MISLEADING)
    columns = {"clean": CLEAN, "misleading": MISLEADING}

    def on_weights(units, weights):
        under = weights @ units["clean"]
        over = weights @ (units["clean"] & ~units["misleading"])
        return np.divide(over, under, out=np.full(len(under), np.nan), where=under > 0)

    for clusters in (None, [0, 0, 1, 1, 2, 2, 3, 3]):
        expected = bootstrap(rate, columns, clusters, replicates=400)
        by_units = bootstrap(lambda u: sc2w(u["clean"], u["misleading"]), columns, clusters, replicates=400)
        by_rows = bootstrap(lambda u: sc2w(*u.T), np.column_stack([CLEAN, MISLEADING]), clusters, replicates=400)
        assert expected == by_units == by_rows == bootstrap(on_weights, columns, clusters, replicates=400)
    assert bootstrap(np.mean, [1, 2, 3], replicates=10).estimate == 2.0
    undefined = bootstrap(lambda u: sc2w(u, u), [0, 0], replicates=10)  # None from a function is undefined too
    assert (undefined.estimate, undefined.undefined) == (None, 10)


def test_one_resample_for_every_system_and_metric():
    # Paired: replicate by replicate, the difference is the difference of the replicates.
    weights = replicate_weights(8, 1000, seed=2)
    a, b = sc2w_ratio(CLEAN, MISLEADING), sc2w_ratio(CLEAN, OTHER)
    difference = ratio_replicates(weights, b - a)
    np.testing.assert_array_equal(difference, ratio_replicates(weights, b) - ratio_replicates(weights, a))
    together = bootstrap_all({"a": a, "b": b, "b - a": b - a}, replicates=1000, seed=2)
    assert together["b - a"] == interval((b - a).estimate(), difference)
    assert together["a"] == bootstrap(a, replicates=1000, seed=2)
    assert bootstrap_all({}) == {}


def test_weights_do_not_depend_on_chunks_or_number_of_replicates(monkeypatch):
    whole = replicate_weights(13, 50, seed=4)
    monkeypatch.setattr(module, "_CHUNK", 13 * 7)
    np.testing.assert_array_equal(replicate_weights(13, 50, seed=4), whole)
    np.testing.assert_array_equal(replicate_weights(13, 9, seed=4), whole[:9])
    assert whole.dtype == np.int32 and (replicate_weights(13, 50, seed=5) != whole).any()


def test_draws_are_multinomial():
    # Each count is Binomial(n, 1/n): mean 1, variance 1 - 1/n; two counts have covariance -1/n.
    weights = replicate_weights(5, 20_000, seed=1)
    expected = np.eye(5) - 1 / 5
    np.testing.assert_allclose(weights.mean(axis=0), 1, atol=0.03)
    np.testing.assert_allclose(np.cov(weights.T), expected, atol=0.04)


@given(st.integers(1, 30), st.integers(1, 40), st.integers(0, 2**63))
def test_weights_sum_to_n_and_follow_the_seed(n, replicates, seed):
    weights = replicate_weights(n, replicates, seed)
    assert weights.shape == (replicates, n) and (weights >= 0).all() and (weights.sum(axis=1) == n).all()
    np.testing.assert_array_equal(weights, replicate_weights(n, replicates, seed))


@given(st.lists(st.sampled_from("abcd"), min_size=1, max_size=20), st.integers(0, 1000))
def test_cluster_weights_move_together(labels, seed):
    weights = replicate_weights(labels, 20, seed)
    names, first = np.unique(labels, return_index=True)
    assert (weights[:, first].sum(axis=1) == len(names)).all()
    for name in names:
        members = weights[:, [label == name for label in labels]]
        assert (members == members[:, :1]).all()


outcomes = st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=25)


@settings(deadline=None)
@given(outcomes, st.integers(0, 1000), st.randoms(use_true_random=False))
def test_properties_of_any_outcomes(rows, seed, random):
    clean, misleading = np.array(rows, dtype=bool).T
    rate = sc2w_ratio(clean, misleading)
    result = bootstrap(rate, rows, replicates=60, seed=seed)
    assert result.estimate == sc2w(clean, misleading)
    if result.low is not None:
        assert 0 <= result.low <= result.high <= 1
    order = random.sample(range(len(rows)), len(rows))
    assert bootstrap(sc2w_ratio(clean[order], misleading[order]), replicates=60, seed=seed).estimate == result.estimate
    # A system against itself, in equal but not identical arrays: exactly zero, or undefined like the rate.
    zero = bootstrap(rate - sc2w_ratio(clean.copy(), misleading.copy()), replicates=60, seed=seed)
    assert zero.undefined == result.undefined
    if zero.low is not None:
        assert (zero.estimate, zero.low, zero.high) == (0, 0, 0)


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=30))
def test_self_difference_is_exactly_zero_for_any_values(values):
    zero = bootstrap(mean_ratio(values) - mean_ratio(list(values)), replicates=40)
    assert (zero.estimate, zero.low, zero.high, zero.sd) == (0, 0, 0, 0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: bootstrap(accuracy_ratio([1, 0]), [1]), "1 units .* 2 items"),
        (lambda: bootstrap(accuracy_ratio([1, 0]), level=95), "Level 95"),
        (lambda: bootstrap(accuracy_ratio([1, 0]), replicates=0), "0 replicates"),
        (lambda: bootstrap(accuracy_ratio([1, 0]), clusters=["a"]), r"\(1,\).*2 items"),
        (lambda: bootstrap(accuracy_ratio([1, 0]), clusters=np.array(["a", None])), "NoneType, str"),
        (lambda: bootstrap(accuracy_ratio([1, 0]), clusters=[1.0, math.nan]), "float"),
        (lambda: bootstrap(np.mean), "needs its units"),
        (lambda: bootstrap(lambda u, w: 0.5, [1, 0], replicates=3), r"shape \(\)"),
        (lambda: bootstrap(np.mean, {"a": [1], "b": [1, 2]}), r"\[1, 2\]"),
        (lambda: bootstrap_all({"a": accuracy_ratio([1]), "b": accuracy_ratio([1, 0])}), "same items"),
        (lambda: ratio_replicates(np.ones((3, 2)), accuracy_ratio([1])), r"\(3, 2\)"),
        (lambda: bonferroni(0.95, 0), "0 comparisons"),
    ],
)
def test_unusable_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_bonferroni():
    assert bonferroni(0.95, 2) == pytest.approx(0.975, abs=1e-12)  # MisleadQA App. C.2
