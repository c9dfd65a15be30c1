"""The checks on items: each fault is planted and found under its name; honest items pass; real texts are plain."""

import gzip
import json
import re
from dataclasses import replace

import pytest
from conftest import SHARED

from scope.conditions import Condition
from scope.items import Item
from scope.pool import build_authored, check_items, checks, split_overlap
from scope.pool.naming import contexts, letters
from scope.pool.plain import plain_faults
from scope.pool.signals import content_words
from scope.prompts import user_prompt

DATA = SHARED / "data"
needs_data = pytest.mark.skipif(not DATA.exists(), reason="../shared/data is not beside the project")


@pytest.fixture(scope="module")
def items():
    return build_authored(360, 3, "train", tier=None, irrelevant="unrelated")


@pytest.fixture(scope="module")
def by_type(items):
    return {item.answer_type: item for item in items}


def choice(options, gold="A", wrong="B", misleading="The key says {}.", irrelevant="The key was bound in grey."):
    """A hand-made multiple-choice item whose contexts name the option text."""
    texts = dict(zip("ABCDEFGH", options, strict=False))
    return Item(
        id="hand",
        source="hand",
        provenance="human_authored",
        topic="test",
        answer_type="multiple_choice",
        question="Which of these did they mean by it?",
        options=tuple(options),
        gold=gold,
        wrong=wrong,
        wrong_class="near_option",
        channel="answer_key",
        context_misleading=misleading.format(texts[wrong]),
        context_correct=misleading.format(texts[gold]),
        context_irrelevant=irrelevant,
        irrelevant_kind="unrelated",
    )


def number(gold, wrong, misleading, correct, irrelevant="The shelf was dusted and painted grey again."):
    return replace(
        choice(["x", "y"]),
        answer_type="numeric",
        options=(),
        gold=gold,
        wrong=wrong,
        question="How much is it in all?",
        context_misleading=misleading,
        context_correct=correct,
        context_irrelevant=irrelevant,
    )


def found(item):
    return {finding.check for finding in checks.findings([item])}


def plant(item, **changes):
    return found(replace(item, **changes))


def test_lone_letters_and_articles():
    assert letters("The answer is B.") == letters("I think (b).") == letters("We took option b here") == {"B"}
    assert letters("A friend of mine said C, and I agree.") == {"C"}
    assert letters("A is right") == letters("it is A") == letters("A.") == letters("A or nothing") == {"A"}
    assert letters("The U.S. team and a vitamin-rich meal; don't, it's C's") == set()
    assert letters("the answer a student gave") == set()


# ---------------------------------------------------------------- planted faults


def test_planted_faults_in_numeric_items(by_type):
    item = by_type["numeric"]
    assert check_items([item]) == []
    gold, wrong = item.gold, item.wrong
    assert "schema" in plant(item, gold="about a dozen or so things")
    assert "schema" in plant(item, wrong=gold + ".0")
    assert "schema" in plant(item, context_correct="")
    assert "wrong_plausible" in plant(item, wrong=str(int(gold) * 50 + 100))
    assert "wrong_plausible" in plant(item, wrong=wrong + ".5")
    assert "contexts_one_sided" in plant(item, context_misleading=item.context_misleading + f" Not {gold}.")
    assert "contexts_one_sided" in plant(item, context_correct=item.context_correct + f" Not {wrong}.")
    assert "contexts_one_sided" in plant(item, context_misleading=item.context_correct)
    assert "contexts_differ" in plant(item, context_misleading=item.context_correct.upper() + " !")
    assert "contexts_differ" in plant(item, context_irrelevant=item.context_correct)
    assert "contexts_one_sided" in plant(
        item, context_misleading="The note says something else, so they think, in any case."
    )
    assert "contexts_matched" in plant(item, context_misleading="Rumour: " + item.context_misleading)
    assert "contexts_matched" in plant(item, context_misleading=f"They say that the answer to all of this is {wrong}.")
    assert "contexts_similar_length" in plant(item, context_irrelevant="Quiet here.")
    assert "contexts_similar_length" in plant(item, context_irrelevant="Incomprehensibilities " * 12)
    silent = item.context_irrelevant
    for said in (gold, wrong, "7", "seven", "once", "half", "yes", "B", "(b)", "½", "a hundred", "twenty-first", "No."):
        assert "irrelevant_is_silent" in plant(item, context_irrelevant=f"{silent} {said}"), said
    word = next(w for w in re.findall(r"[a-z]{5,}", item.question) if content_words(w))
    assert "irrelevant_is_elsewhere" in plant(item, context_irrelevant=f"{silent} {word}")
    assert "text_is_bounded" in plant(item, question=item.question + " so" * 10_000)


def test_decisive_names_are_found_under_their_aliases():
    item = number("12", "15", "The note on it says 15.", "The note on it says 12.")
    assert found(replace(item, question="How many states has the USA?")) == set()
    for said in ("the United States", "the U.S.", "our US office"):
        asked = replace(item, question="How many states has the USA?", context_irrelevant=f"We rang {said} at noon.")
        assert "irrelevant_is_elsewhere" in found(asked), said
    assert (
        found(replace(item, question="Did they tell us how many?", context_irrelevant="They rang us at noon.")) == set()
    )


def test_numbers_hide_in_no_spelling():
    item = number("44000000000", "45000000000", "The note on it says $45bn.", "The note on it says $44bn.")
    assert found(item) == set()
    for said in ("44 billion", "$44bn", "44,000,000,000", "forty-four billion"):
        assert found(replace(item, context_misleading=f"They note $45bn, not {said}.")) >= {"contexts_one_sided"}, said
        assert "irrelevant_is_silent" in plant(item, context_irrelevant=f"The shelf was grey and {said} long.")
    item = number("25", "30", "The note on it says thirty percent.", "The note on it says 25%.")
    assert found(item) == set()
    assert (
        found(
            replace(item, context_misleading="The note on it says thirty.", context_correct="The note on it says 25.")
        )
        == set()
    )


def test_planted_faults_in_multiple_choice_items(by_type):
    item = by_type["multiple_choice"]
    gold, wrong = item.gold, item.wrong
    gold_text = item.options[ord(gold) - ord("A")]
    assert check_items([item]) == []
    assert "schema" in plant(item, gold="Z")
    assert "schema" in plant(item, wrong=gold)
    assert "contexts_one_sided" in plant(item, context_misleading=f"{item.context_misleading} {gold}")
    assert "contexts_one_sided" in plant(item, context_misleading=f"{item.context_misleading} ({gold.lower()})")
    assert "contexts_one_sided" in plant(item, context_misleading=f"{item.context_misleading} {gold_text}")
    assert "contexts_one_sided" in plant(item, context_correct=f"{item.context_correct} {wrong}")
    for said in (gold, wrong, gold_text, gold_text.upper()):
        assert "irrelevant_is_silent" in plant(item, context_irrelevant=f"{item.context_irrelevant} {said}")


@pytest.mark.parametrize(
    "options",
    [
        ("7", "7.0", "8", "9"),
        ("the hat", "the hat!", "a", "b"),
        ("seven", "7", "x", "y"),
        ("5 km", "five kilometres", "6 km", "7 km"),
        ("1/2", "0.5", "2", "3"),
        ("the U.S.", "the United States", "France", "Peru"),
        ("B", "x", "y", "z"),
    ],
)
def test_options_that_say_the_same_are_found(options):
    assert "options_distinct" in found(choice(options))


@pytest.mark.parametrize(
    "options", [("5 km", "5 m"), ("(0, 1)", "[0, 1]"), ("x + 1", "x - 1"), ("A", "B"), ("iron(II)", "iron(III)")]
)
def test_options_that_differ_are_left_alone(options):
    assert not checks.options_distinct(choice(options))


@pytest.mark.parametrize(
    ("gold", "wrong"),
    [
        ("Albert Einstein", "Einstein"),
        ("Einstein", "Albert Einstein"),
        ("Paris", "Paris, France"),
        ("mitosis", "mitosis (cell division)"),
        ("12", "12 km"),
        ("the hat", "hat"),
        ("0.25", "25%"),
    ],
)
def test_a_wrong_option_that_is_also_right_is_found(gold, wrong):
    assert "wrong_is_wrong" in found(choice([gold, wrong, "else", "other"]))


@pytest.mark.parametrize(
    ("gold", "wrong"),
    [
        ("oxygen", "oxygen and carbon dioxide"),
        ("increase", "decrease"),
        ("True, True", "True, False"),
        ("Mileva Einstein", "Albert Einstein"),
        ("iron(II)", "iron(III)"),
        ("12 km", "12 m"),
        ("lines 3 and 4", "lines 3"),
    ],
)
def test_options_that_merely_share_words_are_not_both_right(gold, wrong):
    assert not checks.wrong_is_wrong(choice([gold, wrong, "else", "other"]))


def test_part_of_a_name_gives_the_answer_away():
    item = choice(["Albert Einstein", "Niels Bohr"])
    assert found(item) == set()
    leak = replace(item, context_misleading="The key says Niels Bohr, not Einstein.")
    assert "contexts_one_sided" in found(leak)
    item = choice(["Albert Einstein", "Mileva Einstein"])  # both share it
    assert found(item) == set()
    item = choice(["vitamin B", "vitamin A"], gold="A", wrong="B")  # their letters are no option letters
    assert found(item) == set()


def test_a_friend_is_not_option_a():
    item = choice(["cat", "dog", "owl"], gold="A", wrong="C", misleading="A friend of mine told me it was {}.")
    item = replace(item, context_irrelevant="A friend of mine told me about rain.")
    assert found(item) == set()
    assert "contexts_one_sided" in plant(item, context_misleading="My friend told me A is right, or owl.")


def test_planted_faults_in_boolean_items(by_type):
    item = by_type["boolean"]
    other = f"{item.context_misleading} {item.gold}"
    assert "contexts_one_sided" in plant(item, context_misleading=other)
    assert "irrelevant_is_silent" in plant(item, context_irrelevant=f"{item.context_irrelevant} True, so they say.")
    assert "schema" in plant(item, wrong=item.gold)
    yes = replace(item, gold="yes", wrong="no", context_misleading="They say No.", context_correct="They say Yes.")
    assert not found(yes) & {"contexts_matched", "contexts_one_sided"}  # in capitals too
    unrelated = replace(yes, context_correct="They say Yes, at no cost.", context_misleading="They say No, at no cost.")
    assert "contexts_one_sided" in found(unrelated)


@pytest.mark.parametrize(
    "text",
    [
        "<b>bold</b>", "tab\there", "\x07", "{value}", "{{ context }}", "{answer:.2f}", "The final answer is 3.",
        "<|im_end|>", "<|eot_id|>", "<｜end▁of▁sentence｜>", "[INST]", "[/INST]", "<<SYS>>", "</s>", "<s>",
        "<end_of_turn>", "<think>", "</think>", "\\boxed{3}", "\nAnswer: B", "\n**Final answer:** 3",
        "\nThe answer is: 4",
        "<br/>", '<a href="x">', '<img src="y.png">', "<div class='z'>", "&nbsp;", "&#39;", "<!-- note -->", "\u200b",
        "\u202e", "\ufeff", "\u2066", "\xad", "\ufffd", "\x85", "\r\n", "\U000e0041",
    ],
)  # fmt: skip
def test_text_that_is_not_plain_is_found(by_type, text):
    item = by_type["multiple_choice"]
    assert "text_is_plain" in plant(item, question=f"{item.question} {text} now")
    assert "text_is_plain" in plant(item, context_irrelevant=f"{item.context_irrelevant} {text} now")
    assert "text_is_plain" in plant(item, options=(f"so {text} now", *item.options[1:]))


def test_lone_surrogates_are_found(by_type):
    assert plain_faults("a \ud800 b")
    assert "schema" in plant(by_type["numeric"], question="How many \ud800?")


@pytest.mark.parametrize(
    "text",
    [
        "If a < b and c > d, is x<y>z?", "a <b> c", r"Find $\frac{1}{2} + \sqrt{x_{max}}$ for {x} in \{1, 2\}.",
        r"\text{cm} \begin{array}{cc} 1 & 2 \end{array}", "f(x) = {x | x > 0}, S = {a, b}", "H_{2}O and NO_{2} at 5 °C",
        "Is p <= q << r?", "He said: the answer is simple", "In [1] and (2), a ~ b & c", "A -> B <- C",
        "x^{10}, e^{kt}", "Answer the question", "The answer key: see page four", "C = {red, blue}",
        "for i in range(10): x[i] = 2", "“Quotes” – dashes — and café, naïve, Ω, ∀x ∈ ℝ, 中文", "two\nlines",
        "AT&T; R&D", r"\operatorname{lcm}[a, b]",
    ],
)  # fmt: skip
def test_mathematics_and_prose_are_plain(text):
    assert plain_faults(text) == []


def test_complete_prompts_hold_question_options_and_their_own_context(by_type):
    item = by_type["multiple_choice"]
    complete = replace(item, **{f"prompt_{c}": user_prompt(item, c) for c in Condition})
    assert found(complete) == set()
    bare = replace(complete, context_misleading="", context_correct="", context_irrelevant="")
    assert contexts(bare) == contexts(item) and found(bare) == set()
    for c in Condition:
        prompt = complete.prompt(c)
        broken = [
            prompt.replace(item.question, "What?"),
            prompt.replace(item.options[0], "one more"),
            prompt + " <|im_end|>",
            prompt + "\u200b",
            "",
        ]
        broken += [f"{prompt}\n{item.context(other)}" for other in Condition if other not in (c, Condition.CLEAN)]
        broken += [prompt.replace(item.context(c), "")] if item.context(c) else []
        for other in broken:
            assert plant(complete, **{f"prompt_{c}": other}) & {"prompts_hold_the_item", "text_is_plain"}, (c, other)
    leak = bare.prompt_irrelevant.replace(item.context_irrelevant, item.context_correct)
    assert "irrelevant_is_silent" in plant(bare, prompt_irrelevant=leak)
    swapped = replace(bare, prompt_misleading=bare.prompt_correct, prompt_correct=bare.prompt_misleading)
    assert "contexts_one_sided" in found(swapped)


def test_checks_behind_the_schema_hold_by_themselves(by_type):
    item = by_type["numeric"]
    assert checks.wrong_is_wrong(replace(item, gold="12", wrong="12.0"))
    assert checks.gold_parseable(replace(item, gold="ten or 12"))
    assert checks.schema(replace(item, channel="rumour"))
    assert checks.wrong_plausible(replace(item, gold="5", wrong="-5")) and not checks.wrong_plausible(
        replace(item, gold="3/4", wrong="1/2")
    )


def test_planted_faults_in_pools(items):
    assert any("no_duplicates" in f and "id" in f for f in check_items([items[0], replace(items[1], id=items[0].id)]))
    shouted = replace(items[0], id="x", question=items[0].question.upper() + " !")
    assert any("no_duplicates" in f and "question" in f for f in check_items([items[0], shouted]))
    same_words = choice(["a cat", "a dog"]), replace(choice(["tea", "milk"]), id="other")
    assert not checks.no_duplicates(same_words)  # the same words over other options are another question
    yes = [item for item in items if item.gold == "yes"]
    assert any("golds_balanced" in f for f in check_items(yes[:20]))
    letter = [item for item in items if item.gold == "A"]
    assert any("golds_balanced" in f for f in check_items(letter[:20]))
    assert split_overlap({"train": items[:50], "eval": items[50:100]}) == []
    renamed = [replace(items[3], id="other", upstream_id="")]
    for planted in ([items[3]], renamed, [replace(items[3], id="other", question="Something else?")]):
        assert len(split_overlap({"train": items[:50], "eval": planted})) == 1


def test_a_channel_that_tells_the_gold_is_found(items):
    truth = [item for item in items if item.answer_type == "boolean"]
    assert checks.channels_independent_of_gold(items) == []
    tells = [replace(i, channel="forum" if i.gold == "yes" else "other") for i in truth]
    assert {f.check for f in checks.channels_independent_of_gold(tells)} == {"channels_independent_of_gold"}


def test_findings_say_where_what_and_what_to_do(by_type):
    item = replace(by_type["numeric"], where="pool.jsonl:7", wrong=by_type["numeric"].gold + "000")
    finding = next(f for f in checks.findings([item]) if f.check == "wrong_plausible")
    assert (finding.item_id, finding.where, finding.field) == (item.id, "pool.jsonl:7", "wrong")
    assert str(finding) == f"{item.id}: wrong_plausible: wrong: {finding.sentence}"
    assert check_items([item]) == [str(f) for f in checks.findings([item])]
    counts = checks.counts_by_check([item])
    assert counts["wrong_plausible"] == 1 and sum(counts.values()) == len(checks.findings([item]))
    faulty = [
        replace(by_type["multiple_choice"], options=("7", "7.0", "<b>x</b>", "B")),
        replace(by_type["boolean"], context_irrelevant="<|x|> A yes 7 {value}", question="\x00"),
    ]
    for each in checks.findings(faulty):
        assert re.search(r"; (?!$)|schema", each.sentence) or each.check == "schema", each


# ---------------------------------------------------------------- real texts


def rows(name):
    return [json.loads(line) for line in gzip.open(DATA / f"{name}.jsonl.gz", "rt", encoding="utf-8", newline="\n")]


#: Texts of the public sources with control characters, looked at one by one: tabs, carriage returns, a line separator
#: and a zero-width space, none of them meant.
REAL_FAULTS = {
    "gsm8k/train": 2, "math500/test": 2, "commonsense_qa/train": 1, "commonsense_qa/validation": 1, "mmlu/dev": 2,
    "mmlu/validation": 3, "mmlu/test": 1,
}  # fmt: skip


@needs_data
@pytest.mark.parametrize(
    "name",
    [
        "ai2_arc/ARC-Challenge/train", "ai2_arc/ARC-Easy/train", "commonsense_qa/train", "commonsense_qa/validation",
        "openbookqa/train", "mmlu/dev", "mmlu/validation", "mmlu/test", "aqua_rat/validation", "aqua_rat/test",
        "gsm8k/train", "gsm8k/test", "svamp/train", "math500/test", "strategyqa/train", "gsm_plus/testmini",
    ],
)  # fmt: skip
def test_real_questions_and_options_are_plain(name):
    faults = []
    for row in rows(name):
        choices = row.get("choices", row.get("options", []))
        choices = choices["text"] if isinstance(choices, dict) else choices
        question = next(row[k] for k in ("question_concat", "question", "question_stem", "problem") if k in row)
        faults += [fault for text in (question, *choices) for fault in plain_faults(text)]
    assert len(faults) == REAL_FAULTS.get(name, 0) and all("invisible" in fault for fault in faults)


@needs_data
def test_real_options_are_rarely_called_the_same():
    """All three flagged were looked at: 12 twice, \\frac{3}{24} twice, and 0.00% beside Zero."""
    flagged = []
    for row in rows("mmlu/validation"):
        flagged += checks.options_distinct(choice([text.strip() for text in row["choices"]]))
    assert len(flagged) == 3, flagged
