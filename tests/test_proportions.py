"""Intervals of few events have width, keep their level, and are said to be what they are."""

import math

import numpy as np
import pytest
from test_results import CELLS, MIST, item, outcome

from scope.evaluation.bootstrap import bootstrap
from scope.evaluation.paired import accuracy_ratio, mean_of, sc2w_ratio
from scope.evaluation.proportions import guarded, newcombe, tango, wilson
from scope.evaluation.results import Settings, results
from scope.report import markup, tables
from scope.report.card import compared, questions
from scope.report.terminal import hundredfold, readings, table

Z = 1.959963984540054


@pytest.mark.parametrize(("count", "n"), [(0, 10), (10, 10), (1, 10), (4, 50), (48, 50)])
def test_wilsons_interval_is_the_textbooks(count, n):
    p, z2 = count / n, Z * Z
    middle, half = (p + z2 / (2 * n)) / (1 + z2 / n), Z / (1 + z2 / n) * math.sqrt(p * (1 - p) / n + z2 / (4 * n * n))
    assert wilson(count, n) == pytest.approx((max(0, middle - half), min(1, middle + half)), abs=1e-12)


@pytest.mark.parametrize(("ahead", "behind", "n"), [(0, 0, 10), (3, 1, 44), (0, 4, 30), (12, 2, 50), (5, 5, 20)])
def test_tangos_interval_holds_what_the_score_test_does_not_reject(ahead, behind, n):
    """The restricted likelihood is maximised on a grid, without the closed form."""

    def score(delta):
        q = np.linspace(max(0, -delta), (1 - delta) / 2, 400_002)[1:-1]
        log = ahead * np.log(q + delta) + behind * np.log(q) + (n - ahead - behind) * np.log(1 - 2 * q - delta)
        best = q[np.argmax(log)]
        return (ahead - behind - n * delta) / math.sqrt(n * (2 * best + delta - delta**2))

    low, high = tango(ahead, behind, n)
    assert score(low) == pytest.approx(Z, abs=2e-3) and score(high) == pytest.approx(-Z, abs=2e-3)
    assert tango(behind, ahead, n) == pytest.approx((-high, -low))
    assert tango(n, 0, n)[1] == tango(0, n, n)[0] * -1 == pytest.approx(1)


def test_newcombes_interval_is_its_own_published_one():
    """Statistics in Medicine 17 (1998) 873, Table II: 56/70 - 48/80 has 0.0524 to 0.3339 by method 10."""
    assert newcombe((56, 70), (48, 80)) == pytest.approx((0.0524, 0.3339), abs=5e-5)


def test_the_paired_interval_covers_where_the_bootstrap_does_not():
    """A true difference of -5 points on 40 items: two discordant items on average."""
    rng = np.random.default_rng(5)
    drawn = rng.multinomial(40, [0.01, 0.06, 0.93], size=2000)
    ours = boot = 0
    cache = {}
    for ahead, behind, _ in drawn.tolist():
        if (ahead, behind) not in cache:
            a = [True] * ahead + [False] * behind + [True] * (40 - ahead - behind)
            b = [False] * ahead + [True] * behind + [True] * (40 - ahead - behind)
            found = bootstrap(minus := accuracy_ratio(a) - accuracy_ratio(b), replicates=400)
            cache[ahead, behind] = found, guarded(minus, found)
        plain, guard = cache[ahead, behind]
        boot += plain.low <= -0.05 <= plain.high
        ours += guard.low <= -0.05 <= guard.high
    assert ours / 2000 >= 0.94 > 0.92 > boot / 2000


@pytest.mark.parametrize("right", [0, 10])
def test_a_rate_of_none_or_all_has_width_and_so_have_means_and_differences(right):
    one = accuracy_ratio([n < right for n in range(10)])
    other = sc2w_ratio([True] * 10, [n >= right for n in range(10)])
    fewer = sc2w_ratio([n < 7 for n in range(10)], [n >= right for n in range(10)])
    for rate, method in (
        (one, "wilson"), (mean_of([one, one]), "mean"), (one - one, "tango"), (other - fewer, "newcombe"),
        (mean_of([one, one]) - mean_of([one, one]), "mean"),
    ):  # fmt: skip
        plain = bootstrap(rate, replicates=50)
        assert plain.low == plain.high and plain.method == "bootstrap"
        found = guarded(rate, plain)
        assert found.high - found.low > 0.2 and found.low <= found.estimate <= found.high and found.method == method


def test_rates_of_many_events_and_of_shares_keep_the_bootstrap():
    half = accuracy_ratio([n % 2 == 0 for n in range(60)])
    found = bootstrap(half, replicates=50)
    assert guarded(half, found) is found
    shares = mean_of([half]) - mean_of([half, half])
    assert guarded(shares, plain := bootstrap(shares, replicates=50)) is plain, "no pair of rates"


def answers(system, n, marks="", flexible=None):
    """All right but for what is said: `marks` of the correct cell, and the flexible labels of it."""
    names = {"r": "right", "w": "wrong", "u": "unparsed"}
    rows = []
    for cell in CELLS:
        for k in range(n):
            strict = names[marks[k]] if cell == "correct" and marks else "right"
            row = outcome(system, k, cell, strict)
            if flexible is not None:
                row["flexible_label"] = names[flexible[k]] if cell == "correct" else strict
            rows.append(row)
    return rows


def of(n, rows):
    found = results(MIST, [item(k) for k in range(n)], rows, Settings(replicates=60))
    return {"model": "lab/base", "arm": "scope", "facts": {}, "notes": [], **found}


def test_results_count_and_say_the_method_and_which_are_few():
    found = of(12, [row for name in ("base", "merged") for row in answers(name, 12)])
    clean, overall = (found["systems"]["base"]["rates"][m] for m in ("clean", "overall"))
    assert (clean["count"], clean["n"], clean["method"], clean["few"]) == (12, 12, "wilson", False)
    assert (overall["count"], overall["n"]) == (48, 48) and overall["interval"][0] < 1
    assert "12/12" in table(found) and "0/12" in table(found), "SC2W: none of twelve"
    for rate in found["differences"]["merged"]["rates"].values():
        assert rate["interval"][0] < 0 < rate["interval"][1]
    assert "-0.0" not in table(found)


def test_of_two_items_nothing_is_claimed():
    found = of(2, answers("base", 2) + answers("merged", 2, "ww"))
    said = compared(found, "merged")
    assert len(said) == 1 and "too few items for any claim" in said[0] and "Correct ctx" in said[0]
    shown = tables.rates(found)
    assert not any(cell.bold for row in shown.groups[0].rows for cell in row)
    assert 'class="few"' in markup.as_html(shown) and "†" in markup.as_markdown(shown)
    assert r"$\dagger$" in markup.as_latex([shown]) and "†: of fewer than 10 items" in table(found)


def test_a_card_says_how_large_a_loss_the_intervals_leave_open():
    found = of(40, answers("base", 40) + answers("merged", 40, "w" * 2 + "r" * 38))
    said = " ".join(compared(found, "merged"))
    low = found["differences"]["merged"]["rates"]["correct"]["interval"][0]
    assert f"Correct ctx {hundredfold(low, '+.1f')}" in said and "not ruled out" in said and "No metric" not in said


def test_a_pool_is_called_what_it_is():
    own = [{"provenance": "authored", "source": "ledger"}] * 2 + [
        {"provenance": "existing_benchmark", "source": "gsm8k"}
    ]
    assert questions(own) == "2 from generated families (ledger) and 1 of existing sets (gsm8k)"


def test_both_readings_stand_side_by_side_and_a_gap_is_a_sentence():
    base = answers("base", 20, "r" * 20, "r" * 20)
    merged = answers("merged", 20, "u" * 12 + "r" * 8, "r" * 11 + "w" + "r" * 8)
    found = of(20, base + merged)
    strict, flexible = (found["systems"]["merged"][reading]["correct"] for reading in ("rates", "flexible"))
    assert (strict["estimate"], flexible["estimate"], flexible["count"]) == (0.4, 0.95, 19)
    paired = found["differences"]["merged"]["flexible"]["correct"]
    assert paired["estimate"] == pytest.approx(-0.05) and paired["method"] == "tango"
    (sentence,) = readings(found)
    assert sentence.startswith("merged") and "Correct ctx 40.0 strict, 95.0 flexible" in sentence
    assert found["systems"]["merged"]["cells"]["correct"]["unparsed_share"] == 0.6
    for text in (table(found), markup.as_markdown(tables.rates(found)), markup.as_html(tables.rates(found))):
        assert "60.0, 0.0" in text and "8/20" in text and "Correct ctx 40.0 strict, 95.0 flexible" in text


def test_an_evaluation_without_flexible_labels_is_shown_without():
    found = of(20, answers("base", 20) + answers("merged", 20, "r" * 20, "r" * 20))
    assert "flexible" not in found["systems"]["base"] and "flexible" in found["systems"]["merged"]
    assert "flexible" not in found["differences"]["merged"] and table(found)


@pytest.mark.parametrize(
    ("text", "finish", "labels"),
    [
        ("The sum of 2 and 3 is 5.", "stop", ("unparsed", "right")),
        ("The sum is 6.", "stop", ("unparsed", "wrong")),
        ("I cannot say.", "stop", ("unparsed", "unparsed")),
        ("I cannot", "length", ("truncated", "truncated")),
        ("", "error", ("failed", "failed")),
    ],
)
def test_an_answer_is_read_twice(text, finish, labels):
    from scope.items import Completion

    row = MIST.outcome(item(0), "clean", Completion("k", "h", text, finish, 3, 4))
    assert (row["label"], row["flexible_label"]) == labels


def test_no_number_is_a_negative_zero():
    assert [hundredfold(-0.0001, form) for form in (".1f", "+.1f")] == ["0.0", "+0.0"]
