"""Outcomes -> results and table, on a case worked out by hand."""

import re
from dataclasses import replace

import pytest

from scope.evaluation.results import Settings, results
from scope.evaluation.stage import Planned, summary
from scope.evaluation.suites import SUITES
from scope.items import Completion, Item
from scope.recipe import load
from scope.report.terminal import difference, interval, rate, table

CELLS = ("clean", "misleading", "correct", "irrelevant")


def item(n, question="q"):
    return Item(
        id=f"i{n}",
        source="s",
        provenance="authored",
        topic="t",
        answer_type="numeric",
        question=f"{question}{n}",
        options=(),
        gold="5",
        wrong="6",
        wrong_class="off_by_one",
        channel="forum",
        context_misleading="6",
        context_correct="5",
        context_irrelevant="-",
    )


def outcome(system, n, cell, label):
    return {
        "system": system,
        "item_id": f"i{n}",
        "cell": cell,
        "label": label,
        "n_tokens": 4,
        "finish_reason": "length" if label == "truncated" else "stop",
    }


def case():
    """Four items. Base: clean right on 0, 1, 2; misled on 0 and 1. Trained: repairs 0, keeps 2, loses nothing."""
    base = {"clean": "rrrw", "misleading": "wwrw", "correct": "rrrr", "irrelevant": "rrwt"}
    trained = {"clean": "rrrw", "misleading": "rwrw", "correct": "rrru", "irrelevant": "rrww"}
    names = {"r": "right", "w": "wrong", "t": "truncated", "u": "unparsed"}
    return [
        outcome(system, n, cell, names[marks[cell][n]])
        for system, marks in (("base", base), ("merged", trained))
        for cell in CELLS
        for n in range(4)
    ]


MIST = SUITES["mist"]
Z = 1.959963984540054**2


def summed(rows, replicates=10, **settings):
    """results.json of the four items, as evaluate.py completes it."""
    found = results(MIST, [item(n) for n in range(4)], rows, Settings(replicates=replicates, **settings))
    return {"model": "lab/base", "arm": "scope", "facts": {}, **found}


@pytest.fixture
def found():
    return summed(case(), 500)


def test_rates_are_those_counted_by_hand(found):
    base, merged = (found["systems"][s]["rates"] for s in ("base", "merged"))
    assert [base[m]["estimate"] for m in CELLS] == [0.75, 0.25, 1.0, 0.5]
    assert base["overall"]["estimate"] == pytest.approx(2.5 / 4)
    assert base["sc2w"]["estimate"] == pytest.approx(2 / 3)
    assert merged["sc2w"]["estimate"] == pytest.approx(1 / 3)
    difference = found["differences"]["merged"]
    assert difference["rates"]["sc2w"]["estimate"] == pytest.approx(-1 / 3)
    assert difference["rates"]["clean"]["interval"] == pytest.approx([-Z / (4 + Z), Z / (4 + Z)]), (
        "Tango, no item differs"
    )
    assert difference["repairs"] == {"repairs": 1, "base_failures": 2, "gains": 1, "costs": 0, "net": 1}


def test_truncated_and_unparsed_are_counted_and_stay_in_the_denominator(found):
    cells = found["systems"]["base"]["cells"]
    assert cells["irrelevant"]["labels"]["truncated"] == 1 and cells["irrelevant"]["truncated_share"] == 0.25
    assert found["systems"]["merged"]["cells"]["correct"]["labels"]["unparsed"] == 1
    assert all(sum(c["labels"].values()) == 4 for s in found["systems"].values() for c in s["cells"].values())


def test_a_failed_request_withholds_what_needs_it_and_nothing_else():
    rows = case()
    rows[0]["label"] = "failed"  # base, clean, item 0
    found = summed(rows)
    base = found["systems"]["base"]["rates"]
    assert found["failed_items"] == ["i0"] and found["items"] == 4
    assert {m for m, rate in base.items() if rate.get("withheld")} == {"clean", "overall", "sc2w"}
    assert base["clean"]["estimate"] is None and base["misleading"]["estimate"] == 0.25
    assert found["systems"]["merged"]["rates"]["clean"]["estimate"] == 0.75
    assert found["differences"]["merged"]["rates"]["clean"]["estimate"] is None, "a pair needs both"
    assert "withheld" in table(found) and "1 items have a failed request" in table(found)


def test_paired_counts_are_of_the_items_that_both_systems_answered():
    rows = case()
    rows[4 + 0]["label"] = "failed"  # base, misleading, item 0: without it the only repair is gone, and not a cost
    difference = summed(rows)["differences"]["merged"]
    assert difference["repairs"] == {"repairs": 0, "base_failures": 1, "gains": 0, "costs": 0, "net": 0}
    assert difference["mcnemar"]["misleading"] == {"b_only": 0, "a_only": 0, "p_value": 1.0}
    assert summed(case())["differences"]["merged"]["mcnemar"]["misleading"]["b_only"] == 1


def test_on_request_items_with_a_failed_request_are_left_out_of_all_systems():
    rows = case()
    rows[0]["label"] = "failed"
    found = summed(rows, complete_only=True)
    assert found["failed_items"] == ["i0"] and found["items"] == 3
    assert found["systems"]["base"]["rates"]["clean"]["estimate"] == pytest.approx(2 / 3)
    assert found["systems"]["merged"]["rates"]["clean"]["estimate"] == pytest.approx(2 / 3)


def test_slices_are_the_rates_of_their_items_alone():
    items = [replace(item(n), channel="forum" if n < 3 else "answer_key") for n in range(4)]
    found = results(MIST, items, case(), Settings(replicates=50))
    assert set(found["slices"]) == {"channel"}, "a column with one value is no slice"
    forum, answer_key = found["slices"]["channel"]["forum"], found["slices"]["channel"]["answer_key"]
    assert (forum["items"], answer_key["items"]) == (3, 1)
    assert forum["systems"]["base"]["clean"]["estimate"] == 1.0
    assert forum["systems"]["base"]["sc2w"]["estimate"] == pytest.approx(2 / 3)
    assert forum["differences"]["merged"]["sc2w"]["estimate"] == pytest.approx(-1 / 3)
    assert answer_key["systems"]["base"]["clean"]["estimate"] == 0.0
    assert answer_key["systems"]["base"]["sc2w"]["estimate"] is None, "nothing is right when clean"


def test_an_empty_stratum_is_undefined_and_shown_as_such():
    rows = [{**r, "label": "wrong"} if r["cell"] == "clean" else r for r in case()]
    found = summed(rows)
    assert found["systems"]["base"]["rates"]["sc2w"]["estimate"] is None
    assert "undefined" in table(found)


def test_table_shows_truncated_share_and_paired_interval(found):
    text = table(found)
    assert "0.0, 25.0" in text and "10/16" in text and "merged - base" in text and "-33.3" in text
    assert "1 of 2 clean-right failures repaired; gains 1, costs 0, net +1" in text


@pytest.mark.parametrize(
    "text, finish, label",
    [
        ("The final answer is 5.", "stop", "right"),
        ("The final answer is 6.", "stop", "wrong"),
        ("It is five or so", "stop", "unparsed"),
        ("First, we add the", "length", "truncated"),
        ("The final answer is 5 or 6.", "stop", "ambiguous"),
        ("", "error", "failed"),
    ],
)
def test_labels(text, finish, label):
    assert MIST.outcome(item(0), "clean", Completion("k", "h", text, finish, 3, 4))["label"] == label


# ---------------------------------------------------------------- words of the table

#: A sign in a note -> what must stand in the table for the note to explain it.
SIGNS = {"[low, high]": r"\[[-+]?\d", "(t n)": r"\(t \d", "SC2W": "SC2W"}


@pytest.mark.parametrize("systems", [("base",), ("base", "merged")])
@pytest.mark.parametrize("name", ["mist", "plain"])
def test_notes_explain_only_what_the_table_holds(systems, name, monkeypatch):
    class Plain(type(MIST)):
        name, title = "plain", "Plain"
        headings = {cell: MIST.headings[cell] for cell in CELLS}  # noqa: RUF012
        lower_is_better = frozenset()

    monkeypatch.setitem(SUITES, "plain", Plain())
    rows = [row for row in case() if row["system"] in systems]
    found = results(SUITES[name], [item(n) for n in range(4)], rows, Settings(replicates=200))
    lines = table({**found, "model": "m", "arm": "a"}).splitlines()
    end = next(i for i, line in enumerate(lines) if line.startswith("└"))
    shown, notes = "\n".join(lines[1 : end + 1]), "\n".join(lines[end + 1 :])
    for sign, held in SIGNS.items():
        if sign in notes:
            assert re.search(held, shown), f"{sign} is explained and does not stand in the table"
    if len(systems) > 1:
        assert re.search(r"interval of the p", notes), "the brackets of a difference are explained"
    assert ("SC2W" in notes) == (name == "mist")


@pytest.mark.parametrize(
    ("other", "named"), [("prompt_defense", ""), ("merged", ", arm a"), ("checkpoint-5", ", arm a")]
)
def test_a_heading_names_the_arm_only_of_what_it_trained(other, named):
    rows = [{**row, "system": other if row["system"] == "merged" else "base"} for row in case()]
    found = results(MIST, [item(n) for n in range(4)], rows, Settings(replicates=200))
    assert table({**found, "model": "m", "arm": "a"}).splitlines()[0] == f"{MIST.title}: 4 items, m{named}"


AZURE = ["engine.azure.endpoint=https://a.example", "engine.azure.deployment=d", "engine.azure.api_version=1"]


@pytest.mark.parametrize(("engine", "shown"), [
    (["engine.kind=openai", "engine.model=gpt-x"], "gpt-x"),
    (["engine.kind=openai", "engine.model=gpt-x", *AZURE], "d"),
    (["engine.kind=openai"], "some/base"),
    (["engine.model=gpt-x"], "some/base"),
])  # fmt: skip
def test_the_model_that_answers_heads_the_table(engine, shown, tmp_path):
    recipe = load(
        "quickstart", ["model.base=some/base", f"output_dir={tmp_path}", "evaluation.systems=[base]", *engine]
    )
    rows = [row for row in case() if row["system"] == "base"]
    found = summary(recipe, Planned(MIST, tmp_path, [item(n) for n in range(4)], {}, {}, rows))
    assert found["model"] == shown
    assert table(found).splitlines()[0].startswith(f"{MIST.title}: 4 items, {shown}")


@pytest.mark.parametrize("value", [-0.0, -1e-9, -0.0004, 0.0, 0.0004])
def test_no_number_is_a_negative_zero(value):
    found = {"estimate": value, "sd": 0.0, "interval": [value, 0.0]}
    for text in (difference(found), interval(found), interval(found, signed=False), rate(found)):
        assert "-0.0" not in text, text
