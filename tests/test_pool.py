"""The authored pool: golds recomputed, mistakes wrong, contexts matched, splits disjoint, same bytes."""

import os
import random
import re
import subprocess
import sys
from collections import Counter

import pytest

from scope.items import CHANNELS, as_row, item_faults, normalised, normalised_question
from scope.pool import PoolError, build_authored, check_items, checks, foils, overlap, signals, split_of, split_overlap
from scope.pool.authored import BANKS, FAMILIES, numbers_in
from scope.pool.authored.registry import family
from scope.pool.drawing import upstream_id
from scope.pool.naming import letters
from scope.recipe import load

STREAMS = [(name, tier) for name, each in FAMILIES.items() for tier in each.tiers]


def draws(name, tier, count):
    rng = random.Random(f"test/{name}/{tier}")
    return [FAMILIES[name].draw(rng, tier) for _ in range(count)]


@pytest.fixture(scope="module")
def items():
    return build_authored(720, 3, "train", tier=None)


@pytest.fixture(scope="module")
def by_type(items):
    return {item.answer_type: item for item in items}


# ---------------------------------------------------------------- families


def test_there_are_enough_families_of_every_answer_type():
    assert len(FAMILIES) >= 14
    types = Counter(f.answer_type for f in FAMILIES.values())
    assert set(types) == {"numeric", "multiple_choice", "boolean"} and min(types.values()) >= 5
    assert sum("easy" in f.tiers for f in FAMILIES.values()) >= 14
    assert sum("standard" in f.tiers for f in FAMILIES.values()) >= 14


@pytest.mark.parametrize(("name", "tier"), STREAMS)
def test_gold_is_what_a_second_way_gives(name, tier):
    for draw in draws(name, tier, 300):
        assert str(draw.second_way(numbers_in(draw.question))) == draw.gold, draw.question


@pytest.mark.parametrize(("name", "tier"), STREAMS)
def test_draws_are_well_formed(name, tier):
    answer_type = FAMILIES[name].answer_type
    usable = 0
    for draw in draws(name, tier, 200):
        if answer_type == "multiple_choice":
            assert draw.gold in draw.options and len(set(draw.options)) == len(draw.options) >= 3
            assert all(m.value in draw.options for m in draw.mistakes)
        else:
            assert not draw.options
        found = foils.usable(draw.mistakes, draw.gold, answer_type, draw.options)
        usable += bool(found)
        assert all(m.value != draw.gold for m in found)
        assert len(draw.question.split()) <= {"easy": 30, "standard": 60, "hard": 110}[tier]
    assert usable >= 190


def test_the_registry_refuses_bad_families():
    with pytest.raises(ValueError, match="taken"):
        family("sum", topic="math", answer_type="numeric", bank="train")
    with pytest.raises(ValueError, match="answer type"):
        family("new", topic="math", answer_type="essay", bank="train")
    with pytest.raises(ValueError, match="unknown bank 'test'; use one of train, dev, eval"):
        family("new", topic="math", answer_type="numeric", bank="test")


# ---------------------------------------------------------------- foils


def test_digit_mistakes_by_hand():
    assert foils.no_carry(27, 15).value == "32"
    assert foils.no_carry(95, 17).value == "2"  # (9+1)%10 = 0, (5+7)%10 = 2
    assert foils.no_borrow(52, 27).value == "35"
    assert foils.digits_swapped(36).value == "63"
    assert foils.digits_swapped(125).value == "152"
    with pytest.raises(ValueError, match="unknown wrong-answer class"):
        foils.Mistake("1", "typo", "")


def test_the_sieve_keeps_wrong_and_plausible_values_only():
    def kept(values, gold):
        return [m.value for m in foils.usable([foils.slip(v, "x") for v in values], gold, "numeric")]

    assert kept(["12", "12.0", "13", "13", "-12", "0", "61", "60", "2.5"], "12") == ["13", "60"]
    assert kept(["0", "-1", "8"], "3") == ["0", "8"]
    assert [m.value for m in foils.usable([foils.near(v, "x") for v in "abz"], "a", "multiple_choice", "abc")] == ["b"]
    assert [m.value for m in foils.usable([foils.slip(v, "x") for v in ("yes", "no")], "yes", "boolean")] == ["no"]


# ---------------------------------------------------------------- phrasings


def test_every_phrasing_keeps_the_rules():
    banks = signals.load_banks()
    assert all(set(channels) == set(CHANNELS) for channels in banks.values())
    for channel in (channel for channels in banks.values() for channel in channels.values()):
        for phrasing in (*channel.value, *channel.irrelevant, *channel.unrelated):
            rest = phrasing.replace("{value}", "").replace("{about}", "")
            words = set(re.findall(r"[a-z]+", rest.casefold()))
            assert not words & (checks.NUMBER_WORDS.keys() | checks.NUMBER_LIKE | checks.YES_NO.keys()), phrasing
            assert not re.search(r"\d|(?<![\w'])[A-HJ-Z](?![\w'])", rest), phrasing
            assert not words & {"wrong", "incorrect", "mistaken", "false", "maybe", "misleading"}, phrasing
            assert 8 <= len(phrasing.split()) <= 22, phrasing


def test_bad_phrasing_files_are_explained(tmp_path):
    good = signals.PHRASINGS.read_text()
    for text, message in [
        (good.replace("[forum.", "[forun."), "channel 'forum' is missing"),
        (good + '\n[rumour]\nvalue = ["{value}"]\nirrelevant = ["x"]\n', "unknown channel 'rumour'"),
        (good.replace("got {value}, like", "got it, like"), "exactly once"),
        (good.replace("please dim", "please {value} dim"), "must hold no field"),
    ]:
        path = tmp_path / f"{abs(hash(message))}.toml"
        path.write_text(text)
        with pytest.raises(ValueError, match=message):
            signals.load_banks(path)


def test_rotation_is_exact_and_skipped_values_keep_their_turn():
    rotation = signals.Rotation("abc", random.Random(0))
    drawn = [rotation.next() for _ in range(31)]
    assert all(set(drawn[i : i + 3]) == set("abc") for i in range(0, 30, 3))
    rotation = signals.Rotation("abc", random.Random(0))
    drawn = [rotation.next_fitting({"a", "b"}) for _ in range(4)] + [rotation.next() for _ in range(2)]
    assert Counter(drawn) == {"a": 2, "b": 2, "c": 2}


# ---------------------------------------------------------------- built pools


def test_built_items_pass_the_schema_and_every_check(items):
    assert [fault for item in items for fault in item_faults(as_row(item))] == []
    assert check_items(items) == []
    for item in items:
        assert (item.provenance, item.source, item.license) == ("authored", "authored", "Apache-2.0")
        assert re.fullmatch(rf"{item.family}-{item.tier}-[0-9a-f]{{12}}", item.id)
        assert item.topic == FAMILIES[item.family].topic and item.tier in FAMILIES[item.family].tiers
        for text in (item.context_misleading, item.context_correct, item.context_irrelevant):
            assert 8 <= len(text.split()) <= 22


def spread(values):
    counts = Counter(values)
    return max(counts.values()) - min(counts.values())


@pytest.mark.parametrize("count", [60, 357, 720])
def test_channels_phrasings_letters_and_truth_are_balanced(items, count):
    some = items[:count]
    assert spread(item.channel for item in some) <= 1 and len({item.channel for item in some}) == 9
    multiple = [item for item in some if item.options]
    assert spread(item.gold for item in multiple) <= 1
    assert spread(item.gold for item in some if item.answer_type == "boolean") <= 1
    assert spread((item.gold, item.wrong) for item in multiple) <= 2
    assert spread(item.family + item.tier for item in some) <= (1 if count == 60 else 20)
    for name, channel in signals.load_channels("train").items():
        mine = [item for item in some if item.channel == name]
        patterns = [re.escape(p).replace(re.escape("{value}"), ".+") for p in channel.value]
        used = [next(p for p in patterns if re.fullmatch(p, item.context_correct)) for item in mine]
        assert spread(used) <= 1
        # Not 1: questions without a word to quote leave the quoting ones waiting, which then catch up.
        assert spread(item.irrelevant_phrasing for item in mine) <= 2
    forms: Counter[str] = Counter()
    for item in multiple:
        found = signals.value_forms(item.gold, item.options)
        forms[
            next(f for f in ("both", "text", "letter") if checks._masked(item.context_correct, found[f]).count("\0"))
        ] += 1
    # Options too long or too unlike to be named by their text take the letter; the others catch up later.
    assert max(forms.values()) - min(forms.values()) <= 3


def test_a_shorter_pool_is_the_beginning_of_a_longer_one():
    assert build_authored(50, 3, "eval") == build_authored(200, 3, "eval")[:50]
    assert build_authored(50, 3, "eval") != build_authored(50, 4, "eval")


def test_same_items_under_another_hash_seed():
    code = (
        "from scope.pool import build_authored; from scope import artifacts; from scope.items import as_row; "
        "print(artifacts.fingerprint([as_row(i) for s in ('train', 'eval') for i in build_authored(60, 11, s, None)]))"
    )
    printed = [
        subprocess.run(
            [sys.executable, "-c", code],
            check=True,
            capture_output=True,
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)},
        ).stdout
        for seed in ("1", "2")
    ]
    assert printed[0] == printed[1] and printed[0].strip()


def test_splits_share_nothing_whatever_their_seeds():
    pools = {
        split: build_authored(n, seed, split)
        for split, n, seed in [("train", 700, 0), ("dev", 150, 7), ("eval", 400, 0)]
    }
    assert split_overlap(pools) == []
    questions = [{normalised_question(item) for item in items} for items in pools.values()]
    assert sum(map(len, questions)) == len(set().union(*questions)) == 1250
    for split, pool in pools.items():
        assert all(split_of(item.upstream_id) == split for item in pool)


def test_questions_that_read_the_same_fall_into_one_split():
    where: dict[str, set[str]] = {}
    for name, tier in STREAMS:
        for draw in draws(name, tier, 300):
            where.setdefault(normalised(draw.question), set()).add(split_of(upstream_id(name, draw)))
    assert all(len(splits) == 1 for splits in where.values())


def test_each_bank_of_families_has_every_answer_type_and_tier():
    """About 60, 10 and 30 per cent of the families; the demo has five to train on and four to be evaluated on."""
    shares = Counter(each.bank for each in FAMILIES.values())
    assert set(shares) == set(BANKS)
    for bank, share in (("train", 60), ("dev", 10), ("eval", 30)):
        mine = [each for each in FAMILIES.values() if each.bank == bank]
        assert abs(100 * len(mine) / len(FAMILIES) - share) <= 5
        assert {each.answer_type for each in mine} == {"numeric", "multiple_choice", "boolean"}
        assert {tier for each in mine for tier in each.tiers} == {"easy", "standard", "hard"}
    demo = Counter(FAMILIES[name].bank for name in load("quickstart", []).pool.families)
    assert demo["train"] >= 5 and demo["eval"] >= 4 and demo["dev"] in (1, 2)


@pytest.mark.parametrize("irrelevant", ["related", "unrelated", "mixed"])
def test_irrelevant_contexts_are_of_the_kind_asked_for(irrelevant):
    made = build_authored(120, 1, "eval", tier=None, irrelevant=irrelevant)
    assert check_items(made) == []
    kinds = Counter(item.irrelevant_kind for item in made)
    assert kinds == ({"related": 60, "unrelated": 60} if irrelevant == "mixed" else {irrelevant: 120})
    quoting = [item for item in made if overlap.QUOTED_WORD.search(item.context_irrelevant)]
    assert all(item.irrelevant_kind == "related" for item in quoting)
    for item in quoting:
        words = set(overlap.QUOTED_WORD.findall(item.context_irrelevant))
        assert words <= set(re.findall(r"\w+", item.question)) and len(words) <= 2
        assert not words & set(re.findall(r"\w+", " ".join(item.options)))
    assert irrelevant == "unrelated" or len(quoting) >= 0.2 * kinds["related"]


@pytest.mark.parametrize("bank", BANKS)
def test_a_letter_is_no_article_in_any_phrasing(bank):
    """Every value phrasing serves choices too; where a bare A is an article, all letters are in brackets."""
    made = [item for item in build_authored(1200, 1, bank, tier=None) if item.options]
    written: dict[str, set[bool]] = {}
    for item in made:
        for text, letter in ((item.context_misleading, item.wrong), (item.context_correct, item.gold)):
            option = item.options[ord(letter) - ord("A")]
            assert letter in letters(text) or option in text
            if option not in text:
                written.setdefault(item.phrasing, set()).add(f"({letter})" in text)
    assert all(len(ways) == 1 for ways in written.values())
    assert ({True} in written.values()) == (bank != "train"), "no phrasing of the training bank needs brackets"
    lists = [channel.value for channel in signals.load_channels(bank).values()]
    assert {item.phrasing for item in made} == {signals.phrasing_id(p) for phrasings in lists for p in phrasings}


def test_what_a_context_may_quote_of_a_question():
    asked = "Twice as many trains left Leeds in May; how many minutes more than double did Ann's train wait, yes or no?"
    assert {"trains", "minutes", "wait"} <= set(signals.about_words(asked, []))
    assert not {"twice", "leeds", "double", "more", "many"} & set(signals.about_words(asked, []))
    assert "minutes" not in signals.about_words(asked, ["12 minutes"])
    assert not {"train", "trains"} & set(signals.about_words(asked, ["the train"]))
    assert signals.about_words("Who carried the boxes, asks Ann?", ["a box", "to carry"]) == ["asks"]
    assert signals.about_words("Where would a person be doing something different?", []) == ["person"]
    for forms in (
        "cost costs costing", "carry carries carried", "box boxes", "toy toys", "cake cakes", "class classes",
        "letter letters", "shelf shelves", "child children", "baby babies", "fly flies", "pie pies", "meeting meetings",
        "egg eggs", "cookie cookies",
    ):  # fmt: skip
        assert len({signals.stem(form) for form in forms.split()}) == 1, forms
    assert signals.about_words("What is 7 times 8?", ["56"]) == []
    assert signals.about_words("Each mug costs 8 dollars. How many dollars do 3 mugs cost?", ["24"]) == [
        "costs",
        "dollars",
        "mugs",
    ]
    asked = (
        "A shelf holds 9 books, and nobody carries one away. How many books do 4 shelves carry, a child or children?"
    )
    assert signals.about_words(asked, []) == ["shelf", "holds", "books", "carries", "away", "child"]
    assert signals.telling_words(asked, ["shelf", "holds", "books", "away"]) == ["shelf", "books"]


def test_impossible_requests_are_explained():
    with pytest.raises(PoolError, match=r"1000 items were asked for, but only (\d+) distinct .* at most"):
        build_authored(1000, 0, "train", tier=None, families=["weekday"])
    with pytest.raises(PoolError, match=r"none of the families sum is of the bank 'eval'.* name at least one of "):
        build_authored(1, 0, "eval", families=["sum"])
    with pytest.raises(PoolError, match="unknown family 'weekdya'; did you mean weekday"):
        build_authored(1, 0, "train", families=["weekdya"])
    with pytest.raises(PoolError, match="unknown split 'test'"):
        build_authored(1, 0, "test")
    with pytest.raises(PoolError, match="unknown tier 'esay'; did you mean easy"):
        build_authored(1, 0, "train", tier="esay")
    with pytest.raises(PoolError, match="has the tier 'hard'"):
        build_authored(1, 0, "train", tier="hard", families=["sum"])
    with pytest.raises(PoolError, match="at least one"):
        build_authored(0, 0, "train")
    assert issubclass(PoolError, ValueError)
