"""User messages: what stands in them, in which order, and that the instruction is read back by scope.answers."""

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scope.answers import ANSWER_TYPES, parse_answer, render_answer
from scope.conditions import CONTEXT_CONDITIONS, Condition
from scope.items import item_from_row
from scope.prompts import (
    DEFENSE,
    INSTRUCTIONS,
    as_messages,
    defended,
    diagnostic_prompt,
    gold_text,
    letter,
    load_note,
    user_prompt,
)

ROOT = Path(__file__).resolve().parent.parent
VALUES = {"multiple_choice": ("B", "C"), "numeric": ("42", "-0.5"), "boolean": ("yes", "no")}


def item(**changes):
    return item_from_row(
        {
            "id": "c1",
            "source": "authored/capitals",
            "provenance": "authored",
            "topic": "geography",
            "answer_type": "multiple_choice",
            "question": "Which city is the capital of Australia?",
            "options": ["Sydney", "Canberra", "Perth"],
            "gold": "B",
            "wrong": "A",
            "wrong_class": "misconception",
            "channel": "forum",
            "context_misleading": "Forum: I would say A.",
            "context_correct": "Forum: I would say B.",
            "context_irrelevant": "Forum: please stay polite.",
            **changes,
        }
    )


NUMERIC = {"answer_type": "numeric", "options": [], "gold": "42", "wrong": "32", "question": "What is 19 + 23?"}

# ---------------------------------------------------------------- what stands where


def test_a_multiple_choice_prompt_to_the_letter():
    assert user_prompt(item(), Condition.MISLEADING) == (
        'Solve the problem. End with "The final answer is <letter>."\n'
        "\n"
        "Which city is the capital of Australia?\n"
        "A. Sydney\n"
        "B. Canberra\n"
        "C. Perth\n"
        "\n"
        "Forum: I would say A."
    )


def test_a_clean_numeric_prompt_to_the_letter():
    assert user_prompt(item(**NUMERIC), Condition.CLEAN) == (
        'Solve the problem. End with "The final answer is <number>."\n\nWhat is 19 + 23?'
    )


TEXT = st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=30).filter(str.strip)


@settings(deadline=None, max_examples=60)
@given(question=TEXT, options=st.lists(TEXT, min_size=2, max_size=26), contexts=st.tuples(TEXT, TEXT, TEXT))
def test_the_four_prompts_differ_only_after_what_they_share(question, options, contexts):
    found = item(
        question=question,
        options=options,
        **{f"context_{c}": text for c, text in zip(CONTEXT_CONDITIONS, contexts, strict=True)},
    )
    clean = user_prompt(found, Condition.CLEAN)
    assert clean.startswith(INSTRUCTIONS["multiple_choice"] + "\n\n" + question + "\nA. " + options[0])
    assert clean.endswith(f"\n{letter(len(options) - 1)}. {options[-1]}")
    for condition, context in zip(CONTEXT_CONDITIONS, contexts, strict=True):
        # The shared prefix is the whole clean prompt: what the trie computes once.
        assert user_prompt(found, condition) == f"{clean}\n\n{context}"


def test_braces_in_data_are_ordinary_text():
    odd = item(question="What is {gold} in {0}?", context_misleading="{value} %s {")
    text = diagnostic_prompt(odd, "Note: {gold}.")
    assert "What is {gold} in {0}?" in text and "{value} %s {" in text and text.endswith("\n\nNote: B (Canberra).")


def test_the_letters_of_26_options():
    assert [letter(0), letter(1), letter(25)] == ["A", "B", "Z"]


def test_a_complete_prompt_is_sent_as_it_is():
    complete = "  Published prompt,\n with its own spacing. "
    found = item(prompt_misleading=complete)
    assert user_prompt(found, Condition.MISLEADING) == complete
    assert user_prompt(found, Condition.CORRECT).startswith("Solve the problem.")
    assert defended(user_prompt(found, Condition.MISLEADING)) == f"{DEFENSE}\n\n{complete}"


@pytest.mark.parametrize("condition", Condition)
def test_the_defence_stands_before_the_same_prompt_in_all_four_conditions(condition):
    assert defended(user_prompt(item(), condition)) == DEFENSE + "\n\n" + user_prompt(item(), condition)


def test_the_defence_says_what_the_paper_asks_it_to_say():
    for word in ("unreliable", "conflicts", "on your own"):
        assert word in DEFENSE
    # It must not give the answer format or an answer away.
    assert "answer" not in DEFENSE


def test_one_user_message_and_no_system_message():
    assert as_messages("x") == [{"role": "user", "content": "x"}]


# ---------------------------------------------------------------- the instruction and the answers


@pytest.mark.parametrize("answer_type", ANSWER_TYPES)
def test_the_instruction_alone_is_no_answer(answer_type):
    n_options = 3 if answer_type == "multiple_choice" else None
    instruction = INSTRUCTIONS[answer_type]
    closing = re.search('"(.*)"', instruction)[1]
    for copied in (instruction, closing, f"I will end with {closing}", f"Thinking...\n{closing}"):
        assert parse_answer(copied, answer_type, n_options).status == "unparsed", copied


@pytest.mark.parametrize("answer_type", ANSWER_TYPES)
def test_the_closing_the_instruction_asks_for_is_read(answer_type):
    n_options = 3 if answer_type == "multiple_choice" else None
    closing = re.search('"(.*)"', INSTRUCTIONS[answer_type])[1]
    for value in VALUES[answer_type]:
        expected = float(value) if answer_type == "numeric" else value
        said = re.sub("<.*?>", value, closing)
        assert said == f"The final answer is {value}." == render_answer(value, answer_type)
        assert parse_answer(said, answer_type, n_options).value == expected
        # Also after the model has repeated the instruction, and in spite of a placeholder copied afterwards.
        assert parse_answer(f"{INSTRUCTIONS[answer_type]}\n\n{said}", answer_type, n_options).value == expected
        assert parse_answer(f"{said}\n\n{closing}", answer_type, n_options).value == expected


def test_every_answer_type_has_an_instruction():
    assert set(INSTRUCTIONS) == set(ANSWER_TYPES)


# ---------------------------------------------------------------- the private note


def test_the_gold_as_a_person_would_write_it():
    assert gold_text(item()) == "B (Canberra)"
    assert gold_text(item(**NUMERIC)) == "42"


def test_the_diagnostic_prompt_is_the_misleading_one_with_the_note_behind_it():
    note = load_note(ROOT / "scope" / "mining" / "note.txt")
    text = diagnostic_prompt(item(), note)
    prefix = user_prompt(item(), Condition.MISLEADING) + "\n\n"
    assert text.startswith(prefix)
    assert "the correct answer is B (Canberra)" in text[len(prefix) :] and "{" not in text[len(prefix) :]


def test_a_note_is_stripped_and_may_hold_escaped_braces(tmp_path):
    (tmp_path / "note.txt").write_text("\n(It is {gold}; a set is {{1, 2}}.)\n\n")
    note = load_note(tmp_path / "note.txt")
    assert diagnostic_prompt(item(), note).endswith("\n\n(It is B (Canberra); a set is {1, 2}.)")


@pytest.mark.parametrize(
    "text, sentence",
    [
        ("no field", "must hold the field {gold}"),
        ("", "must hold the field {gold}"),
        ("{{gold}} escaped", "must hold the field {gold}"),
        ("{gold} and {wrong}", "may hold the field {gold} only, found 'wrong'"),
        ("{gold} and {}", "may hold the field {gold} only"),
        ("{gold} and {0}", "may hold the field {gold} only"),
        ("{gold} and {", "may hold the field {gold} only, found Single '{'"),
        ("{gold:d}", "may hold the field {gold} only"),
        ("{gold!x}", "may hold the field {gold} only"),
        pytest.param("{gold.text}", "may hold the field"),
        pytest.param("{gold[text]}", "may hold the field"),
        pytest.param("{gold[0]}", "may hold the field"),
        pytest.param("caf\udce9 {gold}", "cannot be read"),
    ],
)
def test_a_bad_note_is_named(tmp_path, text, sentence):
    path = tmp_path / "note.txt"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(ValueError) as caught:
        load_note(path)
    assert str(caught.value).startswith(f"{path}: ") and sentence in str(caught.value)


def test_a_missing_note_says_which_key_to_set(tmp_path):
    with pytest.raises(ValueError, match=re.escape(f"{tmp_path / 'note.txt'}: the note cannot be read (No such file")):
        load_note(tmp_path / "note.txt")
    with pytest.raises(ValueError, match=r"set mining\.note to a text file"):
        load_note(tmp_path)
