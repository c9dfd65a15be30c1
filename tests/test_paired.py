"""Paired rates: hand-computed cases, missing answers, and the identities of the published SCOPE tables."""

import csv
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scope.evaluation.bootstrap import bootstrap_all
from scope.evaluation.paired import (
    McNemar,
    Ratio,
    RepairCounts,
    accuracy_ratio,
    complete,
    conditional_rate,
    conditional_ratio,
    mcnemar,
    mean_of,
    repairs_gains_costs,
    sc2w,
    sc2w_ratio,
)

REFERENCE = Path(__file__).parents[2] / "shared/reference/scope_mist"
MEASURES = ("clean", "misleading", "correct", "irrelevant")


def table(name: str) -> list[dict[str, str]]:
    path = REFERENCE / f"{name}.csv"
    if not path.exists():
        pytest.skip(f"{path} is absent: the published tables lie beside the repository, in ../shared/reference.")
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def cells(clean: int, flips: int, misleading: int, n: int = 1000) -> tuple[np.ndarray, np.ndarray]:
    """Clean and misleading truth values with these counts; flips lie inside clean-correct."""
    first, second = np.arange(n) < clean, np.zeros(n, dtype=bool)
    second[flips:clean] = True
    second[clean : clean + misleading - (clean - flips)] = True
    assert first.sum() == clean and second.sum() == misleading and (first & ~second).sum() == flips
    return first, second


# Six items.  clean       1 1 1 1 0 0   four in the stratum
#             misleading  1 0 0 1 1 0   of these the 2nd and 3rd flip: SC2W = 2/4
CLEAN = [True, True, True, True, False, False]
MISLEADING = [True, False, False, True, True, False]


def test_sc2w_by_hand():
    assert sc2w(CLEAN, MISLEADING) == 0.5
    assert sc2w([1, 1, 1], [1, 0, 1]) == pytest.approx(1 / 3, abs=1e-15)


def test_conditional_rate_by_hand_with_weights():
    wrong = ~np.array(MISLEADING)
    assert conditional_rate(CLEAN, wrong) == 0.5
    # Weights 1 2 0 1 5 5: the stratum weighs 1 + 2 + 0 + 1 = 4, the event in it 2 + 0 = 2; 5 5 lie outside.
    assert conditional_rate(CLEAN, wrong, weights=[1, 2, 0, 1, 5, 5]) == 0.5
    assert conditional_rate(CLEAN, wrong, weights=[1, 3, 1, 0, 9, 9]) == 0.8  # (3 + 1) / (1 + 3 + 1)


def test_empty_stratum_is_undefined_not_zero():
    assert sc2w([False, False], [True, False]) is None
    assert sc2w([], []) is None
    assert conditional_rate([True, False], [True, True], weights=[0, 3]) is None  # the stratum weighs nothing
    assert (sc2w_ratio([0, 0], [1, 0]) - accuracy_ratio([1, 0])).estimate() is None


def test_missing_answer_is_refused_by_item_and_never_counted_as_wrong():
    for gap in (None, float("nan")):
        with pytest.raises(ValueError, match=r"misleading_correct, item 1: no answer \(1 in all\).*not wrong"):
            sc2w([True, True], [True, gap])
        # Left out by the mask, one item stays in the stratum, and it did not flip.
        assert sc2w([True, True], [True, gap], present=[True, False]) == 0.0
    # An item whose baseline failed is in neither stratum: items 0 and 2 are left, one flips.
    clean, misleading = [True, None, True, False], [False, False, True, None]
    present = complete(clean, misleading)
    assert present.tolist() == [True, False, True, False]
    assert sc2w(clean, misleading, present) == 0.5
    assert sc2w([None], [None], present=[False]) is None
    assert accuracy_ratio([1, 1, 0], present=[1, 0, 1]).estimate() == 0.5


def test_missing_values_of_pandas_and_numpy_scalars_are_read():
    class NAType:  # pandas.NA without pandas: neither True nor False
        def __bool__(self):
            raise TypeError

    assert complete(np.array([np.True_, NAType(), np.int64(0)], dtype=object)).tolist() == [True, False, True]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: sc2w([True], [True, False]), "clean_correct 1, misleading_correct 2"),
        (lambda: sc2w([True], ["yes"]), "misleading_correct, item 0: 'yes' is no truth value"),
        (lambda: sc2w([True, True], [0.5, 1]), "item 0: 0.5 is no truth value"),
        (lambda: sc2w([[True]], [[True]]), r"shape \(1, 1\)"),
        (lambda: sc2w([True], [True], present=[True, True]), "present 2"),
        (lambda: sc2w([True], [True], present=[None]), "present, item 0"),
        (lambda: conditional_rate([True], [True], weights=[-1]), "denominator, item 0"),
        (lambda: conditional_rate([True], [True], weights=[1, 1]), "denominator 2"),
        (lambda: Ratio(np.array([1.0, np.nan]), np.ones(2)), "numerator, item 1"),
        (lambda: accuracy_ratio([1]) - accuracy_ratio([1, 0]), "same items"),
    ],
)
def test_unusable_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_repairs_gains_costs_by_hand():
    # base clean        1 1 1 1 0 0 1
    # base misleading   0 0 1 1 0 1 0     failures (right clean, wrong misleading): items 0, 1, 6
    # new misleading    1 0 0 1 1 1 1     repairs: 0, 6; gains: 0, 4, 6 (4 was wrong clean); cost: 2
    counts = repairs_gains_costs([1, 1, 1, 1, 0, 0, 1], [0, 0, 1, 1, 0, 1, 0], [1, 0, 0, 1, 1, 1, 1])
    assert counts == RepairCounts(repairs=2, base_failures=3, gains=3, costs=1, net=2)
    kept = [1, 1, 1, 1, 1, 1, 0]
    counts = repairs_gains_costs([1, 1, 1, 1, 0, 0, 1], [0, 0, 1, 1, 0, 1, 0], [1, 0, 0, 1, 1, 1, None], kept)
    assert counts == RepairCounts(repairs=1, base_failures=2, gains=2, costs=1, net=1)


def test_mcnemar_by_hand():
    # Discordant: b alone right 4 times, a alone once. P(X <= 1 or X >= 4 | n = 5) = 2 (1 + 5) / 32 = 0.375.
    a = [1, 0, 0, 0, 0, 1, 0]
    b = [0, 1, 1, 1, 1, 1, 0]
    assert mcnemar(a, b) == McNemar(b_only=4, a_only=1, p_value=pytest.approx(0.375, abs=1e-12))
    assert mcnemar(b, a).p_value == pytest.approx(0.375, abs=1e-12)
    assert mcnemar(a, a) == McNemar(0, 0, 1.0)


def test_ratio_algebra_by_hand():
    a, b = accuracy_ratio([1, 1, 0, 0]), accuracy_ratio([1, 0, 0, 0])
    assert (a - b).estimate() == 0.25
    assert (2 * a + b / 2).estimate() == 1.125
    assert mean_of([a, b]).estimate() == 0.375
    # Mean of two order rates on one stratum: RLR with the lure chosen 1 and 2 times among 2 items is 3/4.
    orders = [conditional_ratio([1, 1, 0], event) for event in ([1, 0, 1], [1, 1, 1])]
    assert mean_of(orders).estimate() == 0.75


booleans = st.lists(st.tuples(st.booleans(), st.booleans(), st.booleans()), max_size=40)


@given(booleans)
def test_properties_of_any_outcomes(rows):
    clean, misleading, new = (np.array([row[i] for row in rows], dtype=bool) for i in range(3))
    rate = sc2w(clean, misleading)
    assert (rate is None) == (not clean.any())
    assert rate is None or 0 <= rate <= 1
    assert rate == conditional_rate(clean, ~misleading) == conditional_rate(clean, ~misleading, np.full(len(rows), 3))
    counts = repairs_gains_costs(clean, misleading, new)
    assert counts.net == new.sum() - misleading.sum()  # net repairs are the change in misleading accuracy
    assert 0 <= counts.repairs <= min(counts.base_failures, counts.gains)
    assert mcnemar(misleading, new).b_only == counts.gains and mcnemar(misleading, new).a_only == counts.costs


@given(booleans, st.randoms(use_true_random=False))
def test_item_order_and_masked_items_do_not_matter(rows, random):
    shuffled = random.sample(rows, len(rows))
    assert sc2w([r[0] for r in rows], [r[1] for r in rows]) == sc2w([r[0] for r in shuffled], [r[1] for r in shuffled])
    kept = [row for row in rows if row[2]]
    masked = sc2w([r[0] for r in rows], [r[1] for r in rows], present=[r[2] for r in rows])
    assert masked == sc2w([r[0] for r in kept], [r[1] for r in kept])


# Published tables (README of the references, SCOPE/MIST identities 1 to 3, 6)


@pytest.mark.parametrize("name", ["table1_mist", "table3_ablation"])
def test_published_rows_come_out_of_item_counts(name):
    for row in table(name):
        clean, misleading = (round(10 * float(row[m])) for m in MEASURES[:2])
        flips = round(float(row["sc2w"]) / 100 * clean)
        label = (row.get("model"), row.get("method"), row.get("variant"))
        # 2. sc2w = 100 k / (10 clean) within 0.05; one row misses by 0.052 (README, Anomalies).
        tolerance = 0.0525 if label[:2] == ("Qwen3-4B", "sft") else 0.0501
        assert 100 * flips / clean == pytest.approx(float(row["sc2w"]), abs=tolerance), label
        # 3. Right misleading answers outside the stratum: between none and all of the clean-wrong items.
        outside = misleading - (clean - flips)
        assert -0.5 <= outside <= 1000 - clean + 0.5, label
        first, second = cells(clean, flips, misleading)
        assert 100 * sc2w(first, second) == pytest.approx(float(row["sc2w"]), abs=tolerance), label
        # 1. overall = mean of the four accuracies.
        accuracies = [accuracy_ratio(np.arange(1000) < round(10 * float(row[m]))) for m in MEASURES]
        assert 100 * mean_of(accuracies).estimate() == pytest.approx(float(row["overall"]), abs=0.0501), label


def test_published_repairs_of_qwen3_4b():
    facts = {row["name"]: row["value"] for row in table("facts")}
    rows = {(r["model"], r["method"]): r for r in table("table1_mist")}
    base, trained = rows["Qwen3-4B", "base"], rows["Qwen3-4B", "scope"]
    clean, before = cells(945, 331, 625)
    after = before.copy()
    # 188 of the 331 failures repaired. 807 - 625 = 182 net, so at least 6 are lost: make it exactly 6.
    after[:188] = True
    after[331:337] = False
    assert (10 * float(base["misleading"]), 10 * float(trained["misleading"])) == (before.sum(), after.sum())
    counts = repairs_gains_costs(clean, before, after)
    assert counts.base_failures == int(facts["misleading_failures_qwen3_4b_base"])
    assert counts.repairs == int(facts["repaired_failures_qwen3_4b"])
    assert counts.net == int(facts["net_repairs_qwen3_4b"]) == round(10 * float(facts["misleading_gain_qwen3_4b"]))
    gain = accuracy_ratio(after) - accuracy_ratio(before)
    assert 100 * gain.estimate() == pytest.approx(float(facts["misleading_gain_qwen3_4b"]), abs=1e-9)


def test_published_deviations_of_base_and_scope_rows():
    # 4. The printed sd of the accuracies and of sc2w, out of items with the printed counts, within 0.12.
    rates, printed, binomial = {}, {}, {}
    rows = [row for row in table("table1_mist") if row["method"] in ("base", "scope")]
    assert len(rows) == 27
    for row in rows:
        right = {m: round(10 * float(row[m])) for m in MEASURES}
        flips = round(float(row["sc2w"]) / 100 * right["clean"])  # Qwen3-4B: 331 of 945, SCOPE 155 of 950
        pair = sc2w_ratio(*cells(right["clean"], flips, right["misleading"]))
        who = (row["model"], row["method"])
        rates |= {(who, m): accuracy_ratio(np.arange(1000) < right[m]) for m in MEASURES} | {(who, "sc2w"): pair}
        printed |= {(who, m): float(row[f"{m}_sd"]) for m in (*MEASURES, "sc2w")}
    for key, rate in rates.items():
        n, p = rate.denominator.sum(), rate.estimate()
        binomial[key] = 100 * math.sqrt(p * (1 - p) / n)
    for key, result in bootstrap_all(rates).items():
        assert 100 * result.sd == pytest.approx(binomial[key], rel=0.05), key  # 10,000 replicates give it to 0.7 %
        assert 100 * result.sd == pytest.approx(printed[key], abs=0.12), key
