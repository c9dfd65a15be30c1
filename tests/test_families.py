"""The authored families: golds computed twice, named and usable mistakes, plain wording, enough problems."""

import random
import re
from collections import Counter, defaultdict
from functools import cache

import pytest

from scope.items import WRONG_CLASSES
from scope.pool import foils
from scope.pool.authored import FAMILIES, numbers_in, wording
from scope.pool.drawing import upstream_id

COUNT = 200
STREAMS = [(name, tier) for name, each in FAMILIES.items() for tier in each.tiers]
#: Older families, whose easy tiers are fixed by a recipe and whose standard tiers may be small.
OLDER = frozenset(
    """sum difference product double_half next_in_sequence more_or_less sum_choice time_units duration weekday
    opened_first largest who_has_most greater even is_it_equal note_lookup office_lookup limit age_limit unit_price
    change cheapest affordable give_and_take packs sharing ages two_groups each_day legs still_to_go""".split()  # noqa: SIM905
)
NEW = [(name, tier) for name, tier in STREAMS if name not in OLDER]
WORDS = {"easy": 30, "standard": 60, "hard": 110}


@cache
def drawn(name, tier):
    """Draws of a family and tier, each with its usable mistakes; made once."""
    rng, each = random.Random(f"families/{name}/{tier}"), FAMILIES[name]
    found = [each.draw(rng, tier) for _ in range(COUNT)]
    return [(draw, foils.usable(draw.mistakes, draw.gold, each.answer_type, draw.options)) for draw in found]


def test_there_are_enough_families_tiers_and_topics():
    assert len(FAMILIES) >= 50
    assert sum("hard" in each.tiers for each in FAMILIES.values()) >= 18
    assert {name for name, each in FAMILIES.items() if "easy" in each.tiers} <= OLDER
    topics = {each.topic for each in FAMILIES.values()}
    assert topics >= {
        "workplace policy",
        "planning",
        "document reading",
        "consumer finance",
        "education",
        "schedules",
        "unit prices",
        "chronology",
        "multi-note retrieval",
        "everyday arithmetic",
        "math",
    }
    types = Counter(FAMILIES[name].answer_type for name in {name for name, _ in NEW})
    assert len(types) == 3 and min(types.values()) >= 9


@pytest.mark.parametrize(("name", "tier"), STREAMS)
def test_gold_is_what_a_second_way_gives(name, tier):
    for draw, _ in drawn(name, tier):
        assert str(draw.second_way(numbers_in(draw.question))) == draw.gold, draw.question


@pytest.mark.parametrize(("name", "tier"), STREAMS)
def test_mistakes_are_usable(name, tier):
    counts = [len(usable) for _, usable in drawn(name, tier)]
    if FAMILIES[name].answer_type == "boolean":
        assert all(counts)
    else:
        assert sum(counts) / COUNT >= 3
        assert sum(count >= 2 for count in counts) >= (0.95 if tier != "easy" else 0.85) * COUNT


@pytest.mark.parametrize(("name", "tier"), STREAMS)
def test_questions_are_plain_and_short(name, tier):
    for draw, _ in drawn(name, tier):
        question = draw.question
        assert len(question.split()) <= WORDS[tier], question
        assert not re.search(r"[{}<>]|  |\s[,.?]", question), question
        assert question == question.strip() and question[0] == question[0].upper(), question
        assert not re.search(r"\b1 (?!August\b)[a-z]+s\b", question), question
        assert not re.search(r"\b[Aa] (?!one|unit|use|euro)[aeiou]", question), question
        assert not re.search(r"\b[Aa]n [^aeiouh8]", question), question


@pytest.mark.parametrize(("name", "tier"), STREAMS)
def test_options_and_yes_and_no(name, tier):
    answer_type = FAMILIES[name].answer_type
    for draw, _ in drawn(name, tier):
        if answer_type == "multiple_choice":
            assert len(draw.options) == 4 == len(set(draw.options)) and draw.gold in draw.options
            assert all(len(option.split()) <= 6 for option in draw.options)
        else:
            assert not draw.options
        if answer_type == "boolean":
            assert not re.search(r"\b(yes|no|true|false)\b", draw.question, re.I), draw.question
    if answer_type == "boolean":
        assert 0.35 <= sum(draw.gold == "yes" for draw, _ in drawn(name, tier)) / COUNT <= 0.65


@pytest.mark.parametrize(("name", "tier"), [(n, t) for n, t in NEW if FAMILIES[n].answer_type == "boolean"])
def test_the_last_sentence_does_not_give_the_answer_away(name, tier):
    asked = [re.split(r"(?<=[.\"]) ", draw.question)[-1].split() for draw, _ in drawn(name, tier)]
    frequent = {word for word, n in Counter(w for words in asked for w in words).items() if n >= 0.15 * COUNT}
    golds = defaultdict(Counter)
    for words, (draw, _) in zip(asked, drawn(name, tier), strict=True):
        golds[" ".join(word for word in words if word in frequent)][draw.gold] += 1
    common = [counts for counts in golds.values() if sum(counts.values()) >= 25]
    assert common and all(0.2 <= counts["yes"] / sum(counts.values()) <= 0.8 for counts in common)


def test_every_wrong_class_comes_from_several_families():
    families = defaultdict(set)
    for name, tier in STREAMS:
        for _, usable in drawn(name, tier):
            for mistake in usable:
                families[mistake.wrong_class].add(name)
    assert set(families) == set(WRONG_CLASSES)
    assert min(map(len, families.values())) >= 4
    for wrong_class in ("overgeneralization", "misconception", "entity_confusion"):
        assert len(families[wrong_class]) >= 20


@pytest.mark.parametrize(("name", "tier"), NEW)
def test_new_families_have_many_problems(name, tier):
    # of 417 problems 200 draws would find about 158 different ones
    assert len({upstream_id(name, draw) for draw, _ in drawn(name, tier)}) >= 165


# ---------------------------------------------------------------- wording


def test_fields_of_a_template_are_found_again():
    filled = wording.filled(
        "{who} has 2 bags and pays {price} dollars at {time} on {day}. {who} needs {count}.",
        who="mia", price="4.05", time="9:30", day="6 June", count=7,
    )  # fmt: skip
    assert filled.text == "Mia has 2 bags and pays 4.05 dollars at 9:30 on 6 June. Mia needs 7."
    read = filled.read(numbers_in(filled.text))
    assert (read.price, read.time, read.day, read.count) == ((4, 5), (9, 30), 6, 7)
    with pytest.raises(ValueError, match="6 numbers stand in the text, but 7 in its template"):
        filled.read(numbers_in(filled.text)[1:])


def test_pieces_of_wording():
    assert [wording.counted(n, "box", "boxes") for n in (1, 2)] == ["1 box", "2 boxes"]
    assert wording.counted(3, "day") == "3 days"
    assert [wording.clock(t) for t in (545, 1440 + 60)] == ["9:05", "1:00"]
    assert wording.money(405) == "4.05" and wording.minutes((9, 5)) == 545
    assert wording.listed(["a", "b", "c"]) == "a, b and c" and wording.listed(["a"]) == "a"
    assert wording.a("orchestra") == "an orchestra" and wording.a("mill") == "a mill"
