"""MisleadQA's items: every check finds the fault that is planted for it, and reading refuses what is no item."""

import csv
import datetime
import json
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scoped import GOOD, G, fact

from scope import spellings
from scope.artifacts import write_jsonl
from scope.pool.misleadqa import checks
from scope.scopes import Edit, as_row, edits_between, item_faults, load_scoped, replacing, write_scoped
from scope.tables import TableError


def changed(**fields):
    return replace(GOOD, **fields)


def with_gold(value, others=()):
    """GOOD about another kind of answer."""
    return {**GOOD.provenance, "gold": {**fact(value, 1997), "spellings": list(others)}}


#: Check -> items with its fault, each with a part of the sentence that says so.
PLANTED = {
    "structure": [
        (changed(dimension="season"), "unknown 'season'; use one of time, location, entity, condition"),
        (changed(lure="C"), "are not two letters"),
        (changed(gold="E"), "are not two letters"),
        (changed(s=" "), "s: is empty"),
        (changed(split="condition"), "does not go with dimension 'time'"),
    ],
    "distinct_options": [
        (changed(options=("$5.15", "9", "$4.25", "$9.00")), "equal after normalisation"),
        (changed(options=("July 10, 2019", "2019", "x", "y")), "one holds the other"),
    ],
    "option_types": [(changed(options=("$5.15", "$9", "$4.25", "$5.85")), "$9 (name)")],
    "answer_isolation": [
        (changed(question=f"{GOOD.question} Was it 4.250?"), "the question holds '$4.25'"),
        (changed(question=f"{GOOD.question} Was it $5.15?"), "the question holds '$5.15'"),
    ],
    "contexts_state_answers": [
        (changed(g=GOOD.f), "g does not state '$4.25'"),
        (changed(s=GOOD.s.replace("5.15", "5.25")), "s does not state '$5.15'"),
        (changed(s=f"{GOOD.s} It had been 4.25 dollars."), "S holds the gold answer"),
        (changed(g=f"{G} Later $5.15."), "G holds the lure"),
    ],
    "distractor_leakage": [(changed(s=f"{GOOD.s} It is 9 dollars."), "s holds the distractor '$9.00'")],
    "edits_replay": [
        (changed(f=GOOD.f.replace("per hour", "an hour")), "do not give F"),
        (changed(edits=(Edit(0, 999, "x"),)), "do not give F"),
        (changed(edits=()), "there are no edits"),
    ],
    "edits_are_answers": [(changed(edits=(Edit(0, 3, "A"),)), "an edit puts 'A' for 'The'")],
    "no_gold_in_f": [
        (changed(f=f"{GOOD.f} That is 4.250 dollars."), "F holds '$4.25'"),
        (changed(f=f"{GOOD.f} Six bits less.", provenance=with_gold("$4.25", ["six bits less"])), "six bits"),
        (
            changed(
                options=("Al Bo", "Cy Do", "Manmohan Singh", "Ed Fu"), f="Al Bo led; Singh had led before.", g="x"
            ),
            "F holds 'Singh', the last name",
        ),
    ],
    "one_dimension": [
        (changed(alternative={"location": "Iowa", "time": "January 1, 1998"}), "differ in location, time"),
        (changed(alternative={"location": "Nebraska", "time": "1 January 1997"}), "differ in nothing"),
        (changed(alternative={"time": "January 1, 1998"}), "do not have the same qualifiers"),
    ],
    "range_excludes_target": [
        (changed(alternative={"location": "Nebraska", "time": "1996-1998"}), "covers the target"),
        (changed(alternative={"location": "Nebraska", "time": "1997"}), "covers the target"),
        (changed(s=f"{GOOD.s} This was also so on 1 January 1997."), "contains the target date"),
        (changed(s=f"{GOOD.s} It held from 1990 to 1999."), "contains the target date"),
        (changed(target={"location": "Nebraska", "time": "long ago"}), "cannot both be read"),
    ],
    "explicit_scopes": [
        (changed(question="What was the state minimum wage in Nebraska?"), "question does not state the target's time"),
        (changed(g=G.replace("Nebraska", "the state")), "g does not state the target's location"),
        (changed(s=GOOD.s.replace("January 1, 1998", "a later day")), "S does not state the time"),
    ],
    "context_length": [
        (changed(s=f"{GOOD.s} " + "And so on. " * 5), "differ too much"),
        (changed(g="On Jan 1: $4.25"), "contexts have"),
    ],
    "context_overlap": [(changed(s=f"{GOOD.s} US dollars: the rate."), "of S with the question is")],
    "provenance": [
        (changed(provenance={**GOOD.provenance, "distractors": [fact("$9.00", 2016)]}), "are not all recorded"),
        (changed(provenance={**GOOD.provenance, "method": "guess"}), "unknown method 'guess'"),
        (changed(provenance={**GOOD.provenance, "lure": {"value": "$5.15"}}), "no row or document"),
        (changed(provenance={**GOOD.provenance, "gold": fact("$4.35", 1997)}), "not those of the options"),
    ],
}  # fmt: skip

NEXT = changed(id="next", question="Another?", target={**GOOD.target, "time": "January 1, 1996"})
SETS = {
    "unique_ids": [GOOD, GOOD],
    "whole_clusters": [GOOD, changed(id="2", dependency_group="elsewhere")],
    "repeated_facts": [GOOD, changed(id="2", question="Put in other words?")],
    "reversed_pairs": [
        GOOD,
        changed(
            id="2", question="q", target=GOOD.alternative, alternative=GOOD.target,
            provenance={**GOOD.provenance, "gold": GOOD.provenance["lure"], "lure": GOOD.provenance["gold"]},
        ),
    ],
    "caps": [changed(id=str(n), question=f"{n}?") for n in range(7)],
    "balanced_positions": [GOOD, NEXT],
}  # fmt: skip


def test_a_good_item_has_no_fault():
    assert [check(GOOD) for check in checks.ITEM_CHECKS] == [""] * len(checks.ITEM_CHECKS)
    assert item_faults(GOOD) == []


@pytest.mark.parametrize("check", checks.ITEM_CHECKS, ids=lambda check: check.__name__)
def test_a_check_finds_its_planted_fault(check):
    for item, sentence in PLANTED[check.__name__]:
        assert sentence in check(item)
        assert check.__name__ in {finding.check for finding in checks.check_items([item])}


@pytest.mark.parametrize("check", checks.SET_CHECKS, ids=lambda check: check.__name__)
def test_a_check_of_a_set_finds_its_planted_fault(check):
    assert check(SETS[check.__name__])
    assert not check([GOOD])
    assert check.__name__ in {finding.check for finding in checks.check_items(SETS[check.__name__])}


# ---------------------------------------------------------------- spellings


@pytest.mark.parametrize(
    "text, value",
    [
        ("It fell on 13 March 2018.", "March 13, 2018"),
        ("It fell on Mar. 13th, 2018", "2018-03-13"),
        ("2091 people", "2,091"),
        ("a rate of 4.250", "$4.25"),
        ("the four seasons", "4"),
        ("José's house", "Jose"),
        ("On January 1, 1997 it rose", "1997"),
        ("THE BEATLES played", "The Beatles"),
    ],
)
def test_a_value_is_found_in_another_spelling(text, value):
    assert spellings.mentions(text, value)


@pytest.mark.parametrize(
    "text, value",
    [("$14.25", "$4.25"), ("12,091", "2,091"), ("in 19970", "1997"), ("Anna", "Ann"), ("", "x"), ("x", "!")],
)
def test_what_only_looks_alike_is_no_mention(text, value):
    assert not spellings.mentions(text, value)


@settings(deadline=None)
@given(st.dates(min_value=datetime.date(1000, 1, 1)))
def test_every_way_to_write_a_date_is_the_same_date(day):
    month = spellings.MONTHS[day.month - 1].capitalize()
    ways = [f"{month} {day.day}, {day.year}", f"{day.day} {month} {day.year}", day.isoformat(), f"{day:%m/%d/%Y}"]
    assert len({spellings.tokens(way) for way in ways}) == 1
    assert all(spellings.span(way) == (day, day) for way in ways)
    assert spellings.overlap(ways[0], str(day.year)) and not spellings.overlap(ways[0], str(day.year + 1))


# ---------------------------------------------------------------- reading and writing


def test_items_come_back_as_they_were_written(tmp_path):
    write_scoped(tmp_path / "items.jsonl", [GOOD])
    assert load_scoped(tmp_path / "items.jsonl") == [GOOD]


def test_someone_elses_columns_are_mapped(tmp_path):
    row = {
        "uid": "1", "dataset": "FRED", "kind": "temporal", "query": GOOD.question, "gold_answer": "$4.25",
        "lure_option": "A", "context_g": GOOD.g, "context_s": GOOD.s, "context_f": GOOD.f, "cluster_id": "Nebraska",
        **{f"option_{letter}": text for letter, text in zip("abcd", GOOD.options, strict=True)},
    }  # fmt: skip
    with open(tmp_path / "published.csv", "w", newline="") as file:
        writer = csv.DictWriter(file, list(row))
        writer.writeheader()
        writer.writerow(row)
    (item,) = load_scoped(tmp_path / "published.csv", columns={"dimension": "kind", "gold": "gold_answer"})
    assert (item.source, item.dimension, item.gold, item.options) == ("minimum_wage", "time", "C", GOOD.options)
    assert item.edits == GOOD.edits and item.dependency_group == item.cluster


@pytest.mark.parametrize(
    "fields, sentence",
    [
        ({"dimension": "season"}, "dimension: minimum_wage-time-1: unknown 'season'"),
        (
            {"options": ["$5.15", "5.150", "$4.25", "$5.85"]},
            "options: minimum_wage-time-1: A ('$5.15') and B ('5.150')",
        ),
        ({"options": ["$5.15"]}, "are not four texts A to D"),
        ({"gold": "Q"}, "gold: minimum_wage-time-1: 'Q' is neither a letter"),
        ({"f": "Something else of 1997: $5.15"}, "replayed on G they do not give F"),
        ({"alternative": {"location": "Iowa", "time": "1999"}}, "exactly time must differ"),
        ({"g": ""}, "g: minimum_wage-time-1: is missing, empty or not text"),
        ({"edits": [{"begin": 1}]}, "edits: minimum_wage-time-1: are no list of start, end and text"),
    ],
)
def test_a_row_that_is_no_item_is_named(tmp_path, fields, sentence):
    path = tmp_path / "items.jsonl"
    write_jsonl(path, [{**as_row(GOOD), **fields}])
    with pytest.raises(TableError) as caught:
        load_scoped(path)
    assert str(caught.value).startswith(f"{path}:1: ") and sentence in str(caught.value)


def test_a_cluster_split_over_groups_and_a_doubled_id_are_refused(tmp_path):
    path = tmp_path / "items.jsonl"
    write_scoped(path, [GOOD, changed(id="2", dependency_group="b"), GOOD])
    with pytest.raises(TableError) as caught:
        load_scoped(path)
    text = str(caught.value)
    assert "its cluster 'Nebraska' lies in 'b' here and in 'minimum_wage' in minimum_wage-time-1" in text
    assert f"{path}:3: id: minimum_wage-time-1: stands already at {path}:1" in text


def test_an_unknown_column_of_ours_and_a_missing_one_are_refused(tmp_path):
    path = tmp_path / "items.jsonl"
    path.write_text(json.dumps({"question": "q"}) + "\n")
    with pytest.raises(TableError, match="no field is called 'colour'"):
        load_scoped(path, columns={"colour": "x"})
    with pytest.raises(TableError, match="lure: no column for it"):
        load_scoped(path)


def test_edits_are_found_where_only_the_texts_are_known():
    options = ["Atal Vajpayee", "x", "Atal Singh", "y"]
    g, f = "Atal Singh led it in 2012.", "Atal Vajpayee led it in 2012."
    assert edits_between(g, f, options, "C", "A") == (Edit(0, 10, "Atal Vajpayee"),)
    assert edits_between(g, "It was led in 2012.", options, "C", "A") == ()


def test_only_whole_values_are_replaced():
    assert replacing("12,091 of 2,091 and 2,0915", "2,091", "x") == (Edit(10, 15, "x"),)
    assert replacing("1997 and 1997.5, in 1997.", "1997", "x") == (Edit(0, 4, "x"), Edit(20, 24, "x"))
