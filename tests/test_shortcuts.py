"""Shortcut baselines: a planted shortcut shows, a fair pool is at chance, intervals and folds are what they say."""

import random
from dataclasses import asdict, replace

import pytest

from scope.items import CHANNELS, Item
from scope.pool import build_authored
from scope.pool.shortcuts import FEWEST, FOLDS, folds, render, report, wilson


def fair(n, seed):
    """Items without any shortcut: everything but the contexts' value is drawn at random."""
    rng = random.Random(seed)
    vocabulary = [a + b + "n" for a in "bdfgklmprs" for b in ("al", "el", "il", "ol", "ul", "or")]
    items = []
    for place in range(n):
        answer_type = ("numeric", "multiple_choice", "boolean")[place % 3]
        options: tuple[str, ...] = ()
        if answer_type == "numeric":
            gold, wrong = rng.sample([str(v) for v in range(100, 999)], 2)
        elif answer_type == "boolean":
            gold, wrong = rng.sample(["yes", "no"], 2)
        else:
            options = tuple(" ".join(rng.sample(vocabulary, 2)) for _ in range(4))
            gold, wrong = rng.sample("ABCD", 2)
        note = " ".join(rng.sample(vocabulary, 6))
        items.append(
            Item(
                id=str(place),
                source="fair",
                provenance="authored",
                topic="t",
                answer_type=answer_type,
                question=" ".join(rng.sample(vocabulary, 9)) + f" {place}",
                options=options,
                gold=gold,
                wrong=wrong,
                wrong_class="near_option",
                channel=rng.choice(CHANNELS),
                context_misleading=f"{note} {wrong}",
                context_correct=f"{note} {gold}",
                context_irrelevant=" ".join(rng.sample(vocabulary, 6)),
            )
        )
    return items


def off(items, answer_type=None):
    return {row.baseline for row in report(items) if not row.at_chance and answer_type in (None, row.answer_type)}


def with_gold(item, gold, wrong):
    """The item with other answers, the contexts rewritten."""
    note = item.context_correct.rpartition(" ")[0]
    return replace(item, gold=gold, wrong=wrong, context_correct=f"{note} {gold}", context_misleading=f"{note} {wrong}")


def test_a_fair_pool_is_at_chance():
    rows = [row for seed in range(2) for row in report(fair(900, seed))]
    assert len(rows) == 2 * 29
    assert sum(not row.at_chance for row in rows) <= 0.1 * len(rows)  # one in twenty by luck
    for row in rows:
        assert 0 <= row.low <= row.accuracy <= row.high <= 1 and row.n == 300
        gold_of_four = row.answer_type == "multiple_choice" and not row.baseline.startswith(("context_only", "wrong"))
        assert row.chance == pytest.approx(0.25 if gold_of_four else 1 / 3 if row.baseline == "wrong_letter" else 0.5)


def test_gold_always_a_is_found():
    items = [with_gold(i, "A", i.wrong if i.wrong != "A" else i.gold) if i.options else i for i in fair(300, 1)]
    shown = off(items, "multiple_choice")
    assert {"question_only: first option", "question_only: last option", "question_only: words", "channel"} <= shown
    assert {"wrong_letter", "context_only: later letter", "irrelevant_context: words"} <= shown
    assert "options_only: words" not in shown


def test_a_longer_correct_context_is_found():
    items = [replace(item, context_correct=item.context_correct + " surely so") for item in fair(300, 2)]
    for answer_type in ("numeric", "multiple_choice", "boolean"):
        assert off(items, answer_type) >= {
            "context_only: longer context",
            "context_only: words",
            "context_only: channel, length and form",
        }


def test_values_that_tell_are_found():
    numeric = [item for item in fair(300, 3) if item.answer_type == "numeric"]
    larger = [with_gold(i, max(i.gold, i.wrong), min(i.gold, i.wrong)) for i in numeric]
    assert "context_only: larger value" in off(larger)
    smaller = [with_gold(i, i.wrong, i.gold) for i in larger]
    assert "context_only: larger value" in off(smaller)  # a rule can be turned round
    round_ = [with_gold(i, i.gold[0] + "00", i.wrong[:2] + "7") for i in numeric]
    assert {"context_only: rounder value", "context_only: words"} <= off(round_)
    long = [with_gold(i, i.gold + ".5", i.wrong) for i in numeric]
    assert {"context_only: longer value", "context_only: channel, length and form"} <= off(long)
    told = [replace(i, question=f"{i.question} {'gain' if int(i.gold) > int(i.wrong) else 'loss'}") for i in numeric]
    assert "question_and_context: larger value" in off(told)
    always_yes = [with_gold(i, "yes", "no") for i in fair(300, 3) if i.answer_type == "boolean"]
    assert {"context_only: says yes", "context_only: words", "question_only: words"} <= off(always_yes)


def test_options_that_tell_are_found():
    items = [item for item in fair(600, 4) if item.options]

    def dressed(item, extra, where):
        place = ord(where(item)) - 65
        return replace(item, options=tuple(o + extra if i == place else o for i, o in enumerate(item.options)))

    longest = [dressed(item, " and all the rest", lambda i: i.gold) for item in items]
    assert {"question_only: longest option", "question_only: shortest option", "options_only: words"} <= off(longest)
    alike = [replace(i, question=f"{i.question} {i.options[ord(i.gold) - 65]}") for i in items]
    assert "question_only: option most like the question" in off(alike)


def test_side_channels_are_found():
    coin = random.Random(5)
    items = [item for item in fair(600, 5) if item.answer_type == "boolean"]
    told = [replace(i, channel="forum" if i.gold == "yes" or coin.random() < 0.5 else "other") for i in items]
    assert "channel" in off(told)
    told = [
        replace(i, context_irrelevant=f"{i.context_irrelevant} {'sun' if i.gold == 'yes' else 'rain'}") for i in items
    ]
    assert "irrelevant_context: words" in off(told) and "channel" not in off(told)
    told = [replace(i, question=f"{i.question} {'sun' if i.gold == 'yes' else 'rain'}") for i in items]
    assert "question_only: words" in off(told) and "irrelevant_context: words" not in off(told)
    choices = [item for item in fair(600, 6) if item.options]
    next_letter = [with_gold(i, i.gold, "ABCDA"["ABCD".index(i.gold) + 1]) for i in choices]
    assert "wrong_letter" in off(next_letter)


def test_items_of_one_question_share_a_fold_and_strata_are_dealt_out():
    groups = [f"g{i // 2}" for i in range(200)]
    strata = ["a" if i // 2 % 4 else "b" for i in range(200)]
    fold = folds(groups, strata, 0)
    assert all(fold[i] == fold[i + 1] for i in range(0, 200, 2)) and set(fold) == set(range(FOLDS))
    counts = [sum(f == k and s == "b" for f, s in zip(fold, strata, strict=True)) for k in range(FOLDS)]
    assert max(counts) - min(counts) <= 2
    assert fold == folds(groups, strata, 0) != folds(groups, strata, 1)


def test_wilson_by_hand():
    low, high = wilson(0.5, 100)
    assert (round(low, 4), round(high, 4)) == (0.4038, 0.5962)
    low, high = wilson(0.0, 10)
    assert low == 0 and round(high, 4) == 0.2775
    assert wilson(1.0, 10) == pytest.approx((1 - high, 1.0))


def test_small_and_empty_pools_give_no_rows():
    assert report([]) == [] and report(fair(3 * FEWEST - 3, 0)) == []
    assert render([]).startswith("baseline")
    only_prompts = [replace(i, context_misleading="", context_correct="", context_irrelevant="") for i in fair(90, 0)]
    assert {row.baseline for row in report(only_prompts)} >= {"question_only: words", "context_only: larger value"}
    assert not any("longer context" in row.baseline for row in report(only_prompts))


def test_the_table_says_what_is_off():
    rows = report([with_gold(i, "A", "B") for i in fair(300, 1) if i.options])
    table = render(rows)
    line = next(line for line in table.splitlines() if "first option" in line)
    assert line.split()[-1] == "NO" and "100.0" in line and len(table.splitlines()) == len(rows) + 1
    assert set(asdict(rows[0])) == {"baseline", "answer_type", "n", "chance", "accuracy", "low", "high", "at_chance"}


def test_an_authored_pool_gives_the_same_rows_each_time_and_no_large_shortcut():
    items = build_authored(500, 0, "train", tier=None)
    rows = report(items)
    assert rows == report(items)
    assert all(row.low <= row.chance + 0.05 for row in rows), render(rows)
