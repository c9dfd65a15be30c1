"""Near duplicates: the exact similarity decides, splits and transfer sets are kept apart, and it is quick enough."""

import gzip
import json
import os
import random
import subprocess
import sys
import time
from dataclasses import replace

import pytest
from conftest import ROOT, SHARED
from hypothesis import given, settings
from hypothesis import strategies as st

from scope.conditions import Condition
from scope.items import write_rows
from scope.pool import build_authored, checks, stage
from scope.pool.overlap import (
    Index,
    Remembered,
    excluded,
    near_index,
    sentence,
    shared_families,
    shared_sentences,
    shingles,
    similarity,
    split_overlap,
)
from scope.prompts import user_prompt
from scope.recipe import load

DATA = SHARED / "data"
needs_data = pytest.mark.skipif(not DATA.exists(), reason="../shared/data is not beside the project")


@pytest.fixture(scope="module")
def items():
    return build_authored(60, 3, "train")


def rows(name):
    return [json.loads(line) for line in gzip.open(DATA / f"{name}.jsonl.gz", "rt", encoding="utf-8", newline="\n")]


def words(count, rng):
    return [f"w{rng.randrange(10_000)}" for _ in range(count)]


# ---------------------------------------------------------------- similarity


def test_similarity_by_hand():
    text = "Ann has seven red hats and Bob has none"  # 9 words: 11 padded shingles
    assert len(shingles(text)) == 11
    assert similarity(text, "ANN has seven red hats, and Bob has none!") == 1
    assert similarity(text, text.replace("seven", "eight")) == 8 / 14  # three shingles differ on either side
    assert similarity(text, text.replace("Ann", "Eve")) == 8 / 14  # the first word counts like any other
    assert similarity("a b c d e", "a b c d e f") == 0 and similarity("A b, c?", "a B c") == 1


@settings(deadline=None)
@given(st.integers(0, 10**6), st.integers(6, 60), st.integers(0, 8))
def test_a_match_is_what_the_exact_sets_say(seed, count, changes):
    rng = random.Random(seed)
    text = words(count, rng)
    other = list(text)
    for _ in range(changes):
        other[rng.randrange(count)] = "changed"
    index = near_index({"text": " ".join(text), "far": " ".join(words(count, rng))})
    exact = similarity(" ".join(text), " ".join(other))
    found = index.match(" ".join(other))
    if exact >= 0.85:
        assert found == ("text", exact)
    if exact < 0.8:
        assert found is None


def test_pairs_at_the_threshold_are_found_and_collisions_are_not():
    """Thirty words of which one differs: 29/35 shared, 0.829. LSH alone would bring in pairs of 0.5 and less."""
    rng = random.Random(0)
    texts = {n: words(30, rng) for n in range(500)}
    index = Index({n: " ".join(text) for n, text in texts.items()})
    missed = wrong = 0
    for n, text in texts.items():
        near, far = list(text), list(text)
        near[rng.randrange(3, 27)] = "x"
        far[5:20] = words(15, rng)
        missed += index.find(" ".join(near)) != n
        wrong += index.find(" ".join(far)) is not None
    assert missed <= 3 and wrong == 0


def test_short_and_empty_texts_are_compared_as_they_are():
    index = Index({"short": "What is it?", "empty": "?!", "long": "One two three four five six"})
    assert index.find("what IS it") == "short" and index.find("What is that?") is None
    assert index.find("...") is None and index.find("") is None and Index({}).find("What is it?") is None
    assert Index({1: "", 2: "a b c d e f g", 3: "a b c d e f g"}).find("A b c d e f g!") == 2  # the first of equals


def test_the_threshold_can_be_set():
    a, b = "Ann has seven red hats and Bob has none", "Ann has eight red hats and Bob has none"
    assert Index({"a": a}).find(b) is None and Index({"a": a}, threshold=0.5).match(b) == ("a", 8 / 14)


def test_nothing_depends_on_the_hash_seed():
    code = (
        "import random; from scope.pool.overlap import Index; rng = random.Random(0);"
        "texts = {f't{n}': ' '.join(f'w{rng.randrange(4)}' for _ in range(12)) for n in range(400)};"
        "print([(Index(texts, 0.6).match(t)) for t in list(texts.values())[:3]],"
        "[Index(texts, 0.5).match(' '.join(f'w{rng.randrange(4)}' for _ in range(12))) for _ in range(4)])"
    )
    printed = {
        subprocess.run(
            [sys.executable, "-c", code],
            cwd=ROOT,
            check=True,
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2")
    }
    assert len(printed) == 1 and "t0" in printed.pop()


# ---------------------------------------------------------------- splits


def test_every_kind_of_overlap_is_named(items):
    a, b = items[:30], items[30:]
    assert split_overlap({"train": a, "eval": b}) == [] == split_overlap({"train": [], "eval": a})
    assert split_overlap is checks.split_overlap
    fresh = {"upstream_id": "new:1", "id": "new"}
    long = " ".join(f"word{n}" for n in range(40))
    base = replace(a[0], question=f"{long}?", id="base", upstream_id="base:1")
    for planted, what in [
        (replace(base, upstream_id="x:1", question="Other?"), "has the id of base in train"),
        (replace(base, id="new", question="Other?"), "has the upstream_id of base in train"),
        (replace(base, **fresh, question=long.upper() + " ..."), "has the question of base in train"),
        (replace(base, **fresh, question=long.replace("word7", "seven")), "has nearly the question of base in train"),
    ]:
        faults = split_overlap({"train": [*a, base], "dev": b[:3], "eval": [planted]})
        assert len(faults) == 1 and what in faults[0] and faults[0].startswith(f"eval: {planted.id} "), what
        assert ("(the same)" in faults[0]) == ("nearly" not in what) == ("87 %" not in faults[0])
    far = replace(base, **fresh, question=long.replace("word7", "a").replace("word17", "b"))
    assert split_overlap({"train": [base], "eval": [far]}) == []


def test_excluded_names_the_text(items):
    texts = {"gsm_ic 4": items[2].question.upper(), "gsm_ic 5": "Something else entirely, is it not?"}
    found = excluded(texts, [replace(items[2], where="pool.jsonl:3"), items[3]])
    assert list(found) == [items[2].id]
    assert found[items[2].id].startswith("pool.jsonl:3: question: is that of gsm_ic 4 (100 %")
    assert excluded({}, items) == {} and excluded(texts, []) == {}


# ---------------------------------------------------------------- real rows


@needs_data
def test_transfer_sets_are_found_in_the_sources_they_were_made_of():
    """Every base problem of GSM-IC stands in GSM8K train; every seed of GSM-Plus in GSM8K test, and none in train."""
    ic, plus = rows("gsm_ic/test"), rows("gsm_plus/testmini")
    train = Index({n: row["question"] for n, row in enumerate(rows("gsm8k/train"))})
    test = Index({n: row["question"] for n, row in enumerate(rows("gsm8k/test"))})
    bases, seeds = {row["original_question"] for row in ic}, {row["seed_question"] for row in plus}
    assert len(bases) == 100 and all(train.find(text) is not None for text in bases)
    assert len(seeds) == 300 and all(test.find(text) is not None for text in seeds)
    assert not any(train.find(text) is not None for text in seeds)


@needs_data
def test_training_items_of_gsm8k_are_excluded_for_gsm_ic(items):
    texts = {
        f"gsm_ic {n} {k}": row[k]
        for n, row in enumerate(rows("gsm_ic/test"))
        for k in ("original_question", "new_question")
    }
    pool = [
        replace(items[0], id=f"gsm8k-{n}", upstream_id="", question=row["question"])
        for n, row in enumerate(rows("gsm8k/train"))
    ]
    found = excluded(texts, pool)
    assert len(found) == 100 and all("gsm_ic" in sentence for sentence in found.values())


def test_six_thousand_against_six_thousand_takes_seconds(items):
    """Two pools of 6,000 questions of 20 to 80 words: 30 s on one slow core is the limit (measured: 5 s)."""
    rng = random.Random(1)
    common = [f"w{n}" for n in range(3000)]
    texts = [" ".join(rng.choices(common, k=rng.randrange(20, 80))) for _ in range(12_000)]
    pool = [replace(items[0], id=f"i{n}", upstream_id="", question=text) for n, text in enumerate(texts)]
    pool[11_999] = replace(pool[11_999], question=pool[5].question + " indeed")
    start = time.process_time()
    faults = split_overlap({"train": pool[:6000], "eval": pool[6000:]})
    assert time.process_time() - start < 30
    assert len(faults) == 1 and "i11999 has nearly the question of i5" in faults[0]


# ---------------------------------------------------------------- sentences and families


def test_built_pools_share_no_sentence_and_no_family(tmp_path):
    """With values and quoted words masked, for the demo, the authored recipe and a composed pool."""
    for name, words in (
        ("quickstart", []),
        ("pool_authored", ["pool.n_train=300", "pool.n_evaluation=150", "pool.irrelevant=mixed"]),
        ("pool_public", ["pool.n_train=100", "pool.n_evaluation=60", "pool.sources={authored: 1}", "pool.exclude=[]"]),
    ):
        pools = stage.built(load(name, [*words, f"output_dir={tmp_path}"]))
        assert shared_sentences(pools.train, pools.evaluation) == []
        assert shared_families({"train": pools.train, "evaluation": pools.evaluation}) == []
        sentences = [{sentence(item) for item in items} for items in (pools.train, pools.evaluation)]
        assert None not in sentences[0] | sentences[1] and not sentences[0] & sentences[1]
        assert {item.bank for item in pools.train} == {"train"} and {item.bank for item in pools.evaluation} == {"eval"}


def test_a_sentence_trained_on_is_found_whatever_the_value(items):
    first = items[0]
    other = replace(items[1], context_misleading=first.context_misleading.replace(first.wrong, items[1].wrong))
    assert first.answer_type == "numeric" and first.wrong != other.wrong
    found = Remembered.of_items([first])
    assert found.seen(other) == "context_misleading" and found.seen(items[1]) == ""
    quiet = replace(other, context_misleading=items[1].context_misleading, context_irrelevant=first.context_irrelevant)
    assert found.seen(quiet) == "context_irrelevant"
    assert "stands in the training pool" in shared_sentences([first], [other])[0]
    assert shared_sentences([first], [other], {other.phrasing}) == []
    assert shared_families({"train": [first], "evaluation": [replace(other, family=first.family)]}) == [
        f"evaluation: the family {first.family} also stands in train; draw each from one bank"
    ]


def test_quoted_words_of_a_question_do_not_hide_a_sentence(items):
    known = Remembered([], ['The key asks about "apples" and "train" here.'])
    asked = replace(items[0], context_misleading="Nothing at all.")
    assert known.seen(replace(asked, context_irrelevant='The key asks about "minutes" here.')) == "context_irrelevant"
    assert known.seen(replace(asked, context_irrelevant='The key asks of "apples" here.')) == ""


@pytest.mark.parametrize("complete", [False, True], ids=["contexts", "complete prompts"])
def test_published_pools_tell_which_phrasings_were_trained_on(items, tmp_path, complete):
    """Pools from files share what they share: unknown before training has a pool, then seen or unseen item by item."""
    from scope.evaluation.suites.mist import Mist

    fresh = build_authored(20, 3, "eval")
    again = [
        replace(
            item,
            context_misleading=taught.context_misleading.replace(taught.wrong, item.wrong),
            context_correct=taught.context_correct.replace(taught.gold, item.gold),
            **({"context_irrelevant": taught.context_irrelevant} if n % 2 else {}),
        )
        for n, (item, taught) in enumerate(
            zip(
                [item for item in fresh if item.answer_type == "numeric"][:6],
                [item for item in items if item.answer_type == "numeric"][:6],
                strict=True,
            )
        )
    ]
    changed = {item.id: item for item in again}
    pools = {"train": items, "evaluation": [changed.get(item.id, item) for item in fresh]}
    for which, pool in pools.items():
        if complete:
            pool = [
                replace(
                    item,
                    **{f"prompt_{c}": user_prompt(item, c) for c in Condition},
                    **dict.fromkeys(("context_misleading", "context_correct", "context_irrelevant"), ""),
                )
                for item in pool
            ]
        write_rows(tmp_path / f"{which}.jsonl", pool)
    words = [f"pool.{which}={tmp_path / which}.jsonl" for which in pools]
    recipe = load("scope_qwen3_4b", [*words, f"output_dir={tmp_path / 'runs'}"])
    assert {item.phrasing_seen for item in Mist().load(recipe).items} == {"unknown"}
    stage.keep(recipe, stage.prepare(recipe))
    found = {item.id: item.phrasing_seen for item in Mist().load(recipe).items}
    assert found == {item.id: "seen" if item.id in changed else "unseen" for item in fresh} and len(changed) == 6
