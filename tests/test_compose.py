"""Composition: margins met exactly where they can be, what cannot be met is left visible, and nothing is lost."""

import csv
import random
from collections import Counter

import pytest
from conftest import SHARED
from hypothesis import given, settings
from hypothesis import strategies as st

from scope.items import CHANNELS, WRONG_CLASSES
from scope.pool import PoolError, build_composed, foils
from scope.pool.build import with_own_errors
from scope.pool.checks import check_items
from scope.pool.compose import Targets, apportion, choose, published, spread, targets_of
from scope.pool.questions import Question
from scope.schema import PoolConfig


def question(source, n, answer_type="numeric", gold="24", classes=("arithmetic_slip", "off_by_one")):
    options = ("a red hat", "a blue hat", "a green hat") if answer_type == "multiple_choice" else ()
    wrong = {"boolean": ["no" if gold == "yes" else "yes"], "multiple_choice": ["a blue hat", "a green hat"]}
    values = wrong.get(answer_type, ["25", "23", "34", "14", "48", "12", "42"])
    return Question(
        source=source,
        upstream_id=f"{source}:{n}",
        question=f"Question {n} of {source}: how many hats?",
        answer_type=answer_type,
        gold="a red hat" if options else gold,
        mistakes=tuple(foils.Mistake(v, c, "by hand") for v, c in zip(values, classes, strict=False)),
        options=options,
        topic="hats",
        license="MIT",
    )


SHARES = st.lists(st.floats(0, 50), min_size=1, max_size=9).filter(lambda shares: sum(shares) > 1e-3)


@given(n=st.integers(0, 3000), shares=SHARES)
def test_apportionment_adds_up_and_is_within_one_of_the_share(n, shares):
    named = {str(i): share for i, share in enumerate(shares)}
    counts = apportion(n, named)
    assert sum(counts.values()) == n
    assert all(abs(counts[k] - n * v / sum(shares)) < 1 + 1e-6 for k, v in named.items())


@given(counts=st.dictionaries(st.sampled_from("abcdef"), st.integers(0, 40), min_size=1), seed=st.integers(0, 99))
def test_spread_deals_everything_evenly(counts, seed):
    dealt = spread(counts, random.Random(seed))
    assert Counter(dealt) == Counter(counts)
    for cut in range(0, len(dealt), 7):
        got = Counter(dealt[:cut])
        assert all(abs(got[k] - cut * v / len(dealt)) <= len(counts) for k, v in counts.items())


def pools():
    rng = random.Random(1)
    made = [question("maths", i, classes=rng.sample(WRONG_CLASSES[1:], rng.randint(1, 5))) for i in range(300)]
    made += [question("facts", i, "boolean", rng.choice(["yes", "no"]), ["misread_condition"]) for i in range(150)]
    made += [question("choice", i, "multiple_choice", classes=["near_option"] * 2) for i in range(200)]
    return made


TARGETS = Targets(
    {"maths": 40, "facts": 20, "choice": 40},
    dict.fromkeys(CHANNELS, 1.0),
    {"near_option": 40, "misread_condition": 30, "arithmetic_slip": 15, "off_by_one": 10, "misconception": 5},
    {},
)


def test_every_margin_is_met_exactly_where_the_questions_allow_it():
    chosen = choose(pools(), 200, TARGETS, 0)
    assert Counter(q.source for q, _ in chosen) == {"maths": 80, "facts": 40, "choice": 80}
    assert Counter(m.wrong_class for _, m in chosen) == {
        "near_option": 80, "misread_condition": 60, "arithmetic_slip": 30, "off_by_one": 20, "misconception": 10,
    }  # fmt: skip
    assert Counter(q.gold for q, _ in chosen if q.source == "facts") == {"yes": 20, "no": 20}
    assert len({q.upstream_id for q, _ in chosen}) == 200
    assert all(m in q.mistakes for q, m in chosen)


def test_the_choice_is_a_function_of_its_seed_and_no_source_of_a_class():
    def ids(seed):
        return [(q.upstream_id, m) for q, m in choose(pools(), 200, TARGETS, seed)]

    assert ids(0) == ids(0) != ids(1)
    both = Counter((q.source, m.wrong_class) for q, m in choose(pools(), 200, TARGETS, 0))
    assert both["maths", "misread_condition"] == 20 and both["facts", "misread_condition"] == 40


def test_a_source_that_runs_out_is_filled_from_the_others():
    few = [q for q in pools() if q.source != "facts" or int(q.upstream_id.split(":")[1]) < 10]
    chosen = choose(few, 200, TARGETS, 0)
    sources = Counter(q.source for q, _ in chosen)
    assert len(chosen) == 200 and sources["facts"] == 10 and sources["maths"] + sources["choice"] == 190
    assert len(choose(few[:30], 200, TARGETS, 0)) == 30


def test_answer_types_can_be_asked_for():
    targets = Targets({}, TARGETS.channels, {}, {"boolean": 1, "numeric": 3})
    types = Counter(q.answer_type for q, _ in choose(pools(), 80, targets, 0))
    assert types == {"boolean": 20, "numeric": 60}


def test_unknown_names_and_impossible_shares_are_explained():
    for key, shares, message in (
        ("sources", {"gsm8": 1}, "pool.sources.gsm8 is not known; did you mean gsm8k"),
        ("channels", {"forun": 1}, "did you mean forum"),
        ("wrong_classes", {"slip": -1}, "is not known"),
        ("channels", {"forum": -1}, "is no share"),
        ("channels", {"forum": 0}, "add up to 0"),
    ):
        pool = PoolConfig()
        setattr(pool, key, shares)
        with pytest.raises(PoolError, match=message):
            targets_of(pool, [*published("sources")])


@pytest.mark.skipif(not SHARED.exists(), reason="../shared is not beside the project")
def test_the_published_shares_are_those_of_the_reference():
    with open(SHARED / "reference" / "scope_mist" / "facts.csv") as file:
        facts = {row["name"]: float(row["value"]) for row in csv.DictReader(file) if row["name"].startswith("mist_")}
    names = {"authored": "human", "commonsense_qa": "csqa", "openbookqa": "obqa", "aqua_rat": "aqua"}
    names |= {"retrieved_document": "retrieved_doc"}
    found = {
        f"mist_{prefix}_{names.get(name, name)}": share
        for prefix, margin in (("source", "sources"), ("channel", "channels"), ("wrong_class", "wrong_classes"))
        for name, share in published(margin).items()
    }
    assert found == facts


# ---------------------------------------------------------------- items


def test_composed_items_pass_their_checks_with_channels_and_letters_dealt_evenly():
    made = build_composed(pools(), 200, TARGETS, 0, "train")
    assert len(made.items) == 200 and check_items(made.items) == []
    channels = Counter(item.channel for item in made.items)
    assert max(channels.values()) - min(channels.values()) <= 1
    for source in ("maths", "facts", "choice"):
        within = Counter(item.channel for item in made.items if item.source == source)
        assert max(within.values()) - min(within.values()) <= 2, source
    letters = Counter(item.gold for item in made.items if item.options)
    assert max(letters.values()) - min(letters.values()) <= 1
    assert made == build_composed(pools(), 200, TARGETS, 0, "train")


def test_what_is_left_out_is_counted_by_source_and_reason():
    questions = pools()[:50]
    twice = question("other", 0)
    bad = [twice, question("other", 0), question("other", 1, classes=())]
    known = {questions[0].question: "gsm_ic: 3"}
    made = build_composed([*questions, *bad], 60, TARGETS, 0, "train", lambda text: known.get(text))
    assert made.left_out == {
        "maths: resembles a question of gsm_ic": 1,
        "other: no usable wrong answer": 1,
        "other: the same question stands twice": 1,
    }
    assert len(made.items) == 50


def test_questions_that_no_phrasing_fits_are_left_out(tmp_path):
    """A pool whose irrelevant phrasings all speak of hats has none for questions about hats."""
    path = tmp_path / "own.toml"
    lines = ["replace = true"]
    for channel in CHANNELS:
        lines += [
            f"[{channel}]",
            f'value = ["Somebody wrote in {channel} that the answer to this problem is {{value}}."]',
            f'irrelevant = ["Somebody wrote in {channel} that all the hats were rather cheap lately."]',
            f'unrelated = ["Nobody wrote in {channel} that all the hats were rather cheap lately."]',
        ]
    path.write_text("\n".join(lines))
    made = build_composed(pools()[:20], 20, TARGETS, 0, "train", phrasings=[path], irrelevant="unrelated")
    assert made.items == [] and made.left_out == {"maths: no irrelevant phrasing fits": 20}


def test_a_base_s_own_errors_come_first():
    made, count = with_own_errors(
        [question("choice", 0, "multiple_choice", classes=["near_option"] * 2), question("maths", 1)],
        {"question 0 of choice how many hats": "a green hat", "question 1 of maths how many hats": "24.0"},
    )
    assert count == 1, "24.0 is the gold answer, so it is no error"
    assert [m.value for m in made[0].mistakes] == ["a green hat", "a blue hat"] and made[0].mistakes[0].known


@settings(max_examples=15, deadline=None)
@given(n=st.integers(1, 400), seed=st.integers(0, 5))
def test_any_size_gives_that_many_distinct_questions(n, seed):
    chosen = choose(pools(), n, TARGETS, seed)
    assert len({q.upstream_id for q, _ in chosen}) == len(chosen) == min(n, 650)
