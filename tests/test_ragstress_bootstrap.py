"""The resamples of RAG-Stress against a loop in plain Python (Sec. 3.3, App. C.2): questions of a stratum, sorted ids.

The reference computes a number per question, draws questions one replicate after the other, and takes percentiles.
"""

import random
from functools import cache

import numpy as np
import published_ragstress as published
import pytest

from scope.evaluation.results import Settings, results
from scope.evaluation.suites import SUITES
from scope.evidence import EvidenceItem

SYSTEMS = ("one", "two")
SEEDS = {"one": 20260916, "two": 20260918}
N = 23
GOLD = ("gold", "both")
SUITE = SUITES["ragstress_slots"]
FIRST, MIDDLE, LAST = SUITE.places


@cache
def labelled():
    """(items, outcome rows) whose cells go together within a question, as those of a model do."""
    chance = random.Random(8)
    # Neither sorted nor of one length, so that the order of ids is that of text.
    asked = [EvidenceItem(f"q{7 * i % N}", "triviaqa", "en", "?", "gold", "foil") for i in range(N)]
    rows = []
    for system in SYSTEMS:
        lean = [chance.random() for _ in asked]
        labels = {}
        for cell in SUITE.cells:
            wrong = "foil" if cell.startswith("edited") else "neither"
            more = 0.15 * ("strict" in cell)
            labels[cell] = [
                wrong if chance.random() < 0.8 * each + more else chance.choice(["gold", "gold", "both", "neither"])
                for each in lean
            ]
        rows += published.rows(system, asked, labels)
    return asked, rows


#: Resamples of most cases; the first replicates of a seed do not depend on how many there are.
FEW = 600


@cache
def found(suite=None):
    asked, rows = labelled()
    return results(suite or few(), asked, rows, Settings(reference="none"))


@cache
def few():
    return published.small("ragstress_slots", resamples=FEW)


@cache
def labels_of(system):
    """Item id -> cell -> label."""
    made = {}
    for row in labelled()[1]:
        if row["system"] == system:
            made.setdefault(row["item_id"], {})[row["cell"]] = row["label"]
    return made


def follows(own, policy, place):
    return own[f"edited_{policy}_{place}"] == "foil"


def names(own, arm, policy, place):
    return own[f"{arm}_{policy}_{place}"] in GOLD


def mean(values):
    values = list(values)
    return sum(values) / len(values)


def over_places(event):
    """Strict minus soft of an event, each the mean of the places of one question."""
    return mean(event("strict", p) for p in SUITE.places) - mean(event("soft", p) for p in SUITE.places)


def end_less_beginning(own, policy):
    return follows(own, policy, LAST) - follows(own, policy, FIRST)


#: Panel, row, column -> stratum, what is added to the system's seed, the number of one question.
CONTRASTS = {
    ("audit", "k", "strict"): ("k", 0, lambda own: mean(follows(own, "strict", p) for p in SUITE.places)),
    ("audit", "k", "delta"): ("k", 0, lambda own: over_places(lambda s, p: follows(own, s, p))),
    ("audit", "u", "delta"): ("u", 0, lambda own: over_places(lambda s, p: names(own, "clean", s, p))),
    ("interaction", "k", "strict"): ("k", 1, lambda own: end_less_beginning(own, "strict")),
    ("interaction", "k", "soft"): ("k", 2, lambda own: end_less_beginning(own, "soft")),
    ("interaction", "k", "interaction"): (
        *("k", 3),
        lambda own: end_less_beginning(own, "strict") - end_less_beginning(own, "soft"),
    ),
    ("gold", "all", "clean"): ("all", 4, lambda own: over_places(lambda s, p: names(own, "clean", s, p))),
    ("gold", "all", "edited"): ("all", 5, lambda own: over_places(lambda s, p: names(own, "edited", s, p))),
    ("gold", "all", "interaction"): (
        *("all", 6),
        lambda own: over_places(lambda s, p: names(own, "edited", s, p) - names(own, "clean", s, p)),
    ),
    ("positions", "strict", "last_middle"): (
        *("k", 1),
        lambda own: follows(own, "strict", LAST) - follows(own, "strict", MIDDLE),
    ),
    ("positions", "soft", "first_last"): (
        *("k", 2),
        lambda own: follows(own, "soft", FIRST) - follows(own, "soft", LAST),
    ),
    ("control", "soft", "excess"): (
        *("k", 0),
        lambda own: mean(
            follows(own, "soft", p) - (own[f"clean_soft_{p}"] == "foil") for p in SUITE.places
        ),
    ),
}  # fmt: skip


def stratum(system, which):
    """The sorted ids of a stratum, each with its labels."""
    right = {id: own["closed"] in GOLD for id, own in labels_of(system).items()}
    inside = {"k": lambda id: right[id], "u": lambda id: not right[id], "all": lambda id: True}[which]
    return [labels_of(system)[id] for id in sorted(right) if inside(id)]


def resampled(values, seed, replicates):
    """(low, high) of the mean of values, replicate after replicate."""
    generator = np.random.default_rng(seed)
    n = len(values)
    means = sorted(sum([values[i] for i in generator.integers(n, size=n).tolist()]) / n for _ in range(replicates))
    return tuple(percentile(means, q) for q in (0.025, 0.975))


def percentile(ordered, q):
    """With linear interpolation between the two nearest."""
    at = q * (len(ordered) - 1)
    below = int(at)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (at - below) * (ordered[above] - ordered[below])


def check(ours, values, seed, replicates):
    assert ours["estimate"] == pytest.approx(mean(values), abs=1e-12)
    low, high = resampled(values, seed, replicates)
    assert ours["interval"] == [pytest.approx(low, abs=1e-12), pytest.approx(high, abs=1e-12)]
    assert low < high, "a case that would not tell two schemes apart"


@pytest.mark.parametrize("where", CONTRASTS, ids=" ".join)
@pytest.mark.parametrize("system", SYSTEMS)
def test_intervals_are_those_of_a_plain_loop(system, where):
    panel, row, column = where
    which, offset, number = CONTRASTS[where]
    values = [number(own) for own in stratum(system, which)]
    check(found()["systems"][system]["panels"][panel][row][column], values, SEEDS[system] + offset, FEW)


@pytest.mark.parametrize(
    ("where", "replicates"), [(("audit", "k", "delta"), 20_000), (("positions", "strict", "last_middle"), 2_000)]
)
def test_at_the_paper_s_number_of_resamples(where, replicates):
    panel, row, column = where
    which, offset, number = CONTRASTS[where]
    values = [number(own) for own in stratum("two", which)]
    ours = found(SUITE)["systems"]["two"]["panels"][panel][row][column]
    check(ours, values, SEEDS["two"] + offset, replicates)


@pytest.mark.parametrize("which", ["k", "u"])
@pytest.mark.parametrize("system", SYSTEMS)
def test_common_strata_are_resampled_by_themselves(system, which):
    strata = [
        {id for id, own in labels_of(each).items() if (own["closed"] in GOLD) == (which == "k")} for each in SYSTEMS
    ]
    _, _, number = CONTRASTS["audit", which, "delta"]
    values = [number(labels_of(system)[id]) for id in sorted(strata[0] & strata[1])]
    ours = found()["across"]["common"][which][system]
    check(ours, values, SEEDS[system], FEW)
    assert ours["undefined_replicates"] == 0 and 3 <= len(values) < N


def test_the_strata_of_the_case_differ():
    sizes = [len(stratum(system, which)) for system in SYSTEMS for which in "ku"]
    assert sizes[0] + sizes[1] == sizes[2] + sizes[3] == N and min(sizes) >= 5 and sizes[0] != sizes[2]


def test_order_of_items_rows_and_cells_does_not_matter():
    asked, rows = list(labelled()[0]), list(labelled()[1])
    random.Random(1).shuffle(asked)
    own = {system: [row for row in rows if row["system"] == system] for system in SYSTEMS}
    for each in own.values():
        random.Random(2).shuffle(each)
    again = results(few(), asked, own["one"] + own["two"], Settings(reference="none"))
    assert again["systems"] == found()["systems"] and again["across"] == found()["across"]


def test_a_paired_contrast_is_not_the_difference_of_ends():
    """Cells of a question stay together: what they share cancels within it, but not between marginal intervals."""
    panel = found()["systems"]["one"]["panels"]["audit"]["k"]
    strict, soft, delta = (panel[name]["interval"] for name in ("strict", "soft", "delta"))
    assert delta[1] - delta[0] < 0.75 * ((strict[1] - soft[0]) - (strict[0] - soft[1]))
    # Policies that always agree differ by exactly nothing in every replicate.
    asked, rows = labelled()
    same = [dict(row) for row in rows if row["system"] == "one"]
    soft_of = {(row["item_id"], row["cell"]): row["label"] for row in same}
    for row in same:
        row["label"] = row["exact"] = soft_of[row["item_id"], row["cell"].replace("strict", "soft")]
    panels = results(few(), asked, same, Settings(reference="none"))["systems"]["one"]["panels"]
    for panel, row, column in (("audit", "k", "delta"), ("interaction", "k", "interaction"), ("gold", "all", "edited")):
        ours = panels[panel][row][column]
        assert [ours["estimate"], *ours["interval"]] == pytest.approx([0.0, 0.0, 0.0], abs=1e-12)
    assert panels["audit"]["k"]["soft"]["interval"][0] < panels["audit"]["k"]["soft"]["interval"][1]


@pytest.mark.skipif(
    not published.REFERENCE.is_dir(), reason="the shared tables are not here: ../shared/reference/rag_stress"
)
def test_seeds_offsets_and_replicates_are_the_paper_s():
    facts = published.facts()
    base = {"one": facts["audit_bootstrap_seed_llama"], "two": facts["audit_bootstrap_seed_qwen"]}
    offsets = {
        ("audit", "k", "delta"): 0,
        ("audit", "u", "delta"): 0,
        ("interaction", "k", "strict"): facts["seed_offset_strict_position"],
        ("interaction", "k", "soft"): facts["seed_offset_soft_position"],
        ("interaction", "k", "interaction"): facts["seed_offset_position_interaction"],
        ("gold", "all", "clean"): facts["seed_offset_gold_clean"],
        ("gold", "all", "edited"): facts["seed_offset_gold_edited"],
        ("gold", "all", "interaction"): facts["seed_offset_gold_interaction"],
        ("positions", "strict", "last_middle"): facts["seed_offset_strict_position"],
        ("positions", "soft", "first_last"): facts["seed_offset_soft_position"],
    }
    for system, seed in base.items():
        for where, offset in offsets.items():
            draws = SUITE.draws(("systems", system, "panels", *where), SYSTEMS)
            replicates = "position_check" if where[0] == "positions" else "audit"
            assert draws.seed == seed + offset
            assert draws.replicates == facts[f"{replicates}_bootstrap_resamples"]
    assert found()["level"] == facts["ci_level"] / 100
