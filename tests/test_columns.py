"""Columns and forms: which column is which field, and what options, answers and messages mean."""

import re

import pytest

from scope import columns, forms, items
from scope.answers import ANSWER_TYPES
from scope.columns import CONDITIONS, SYNONYMS, cell, columns_of, recognise, renamed, spelled
from scope.conditions import Condition
from scope.forms import Options, Unreadable, letter_of, options_of, prompt_of, response_of, text_of, yes_or_no
from scope.tables import TableError

# ---------------------------------------------------------------- names

WANTED = {"question": ("problem", "query"), "gold": ("gold_answer", "answer")}


@pytest.mark.parametrize(
    "found, expected",
    [
        (["question", "gold"], {"question": "question", "gold": "gold"}),
        (["Problem", "GoldAnswer"], {"question": "Problem", "gold": "GoldAnswer"}),
        (["gold-answer", "QUERY"], {"question": "QUERY", "gold": "gold-answer"}),
        # Of several the first in the list of likely names, wherever it stands.
        (["answer", "gold_answer", "query", "problem"], {"question": "problem", "gold": "gold_answer"}),
        # Our own name comes before every likely one.
        (["answer", "gold"], {"gold": "gold"}),
        # As it is written comes before how it folds.
        (["Gold", "gold"], {"gold": "gold"}),
        (["text"], {}),
        ([], {}),
    ],
)
def test_columns_are_recognised_by_likely_names(found, expected):
    assert recognise(found, WANTED) == expected


def test_a_given_column_wins_and_no_column_is_read_twice_by_itself():
    assert recognise(["gold", "text"], WANTED, {"question": "gold"}) == {"question": "gold"}
    assert recognise(["gold", "Key Text"], WANTED, {"question": "key_text"})["question"] == "Key Text"
    # A given map may name one column for two fields.
    assert recognise(["x"], WANTED, {"question": "x", "gold": "x"}) == {"question": "x", "gold": "x"}


def test_a_literal_stands_for_every_row():
    known = recognise(["answer"], WANTED, {"question": "=What?"}, required=["question", "gold"])
    assert known == {"question": "=What?", "gold": "answer"}
    assert [cell({"answer": "B"}, known.get(name)) for name in ("question", "gold", "topic")] == ["What?", "B", None]


def test_a_missing_column_lists_what_was_found_and_looked_for():
    with pytest.raises(TableError) as caught:
        recognise(["text", "label"], WANTED, required=["question", "gold"], where="pool.csv:0")
    assert caught.value.faults[0] == (
        "pool.csv:0: question: no column for it; the file has text, label; looked for question, problem, query; "
        "name it in columns (question: THEIR_NAME, or question: =VALUE for every row)"
    )
    assert len(caught.value.faults) == 2
    with pytest.raises(TableError, match=re.escape("pool.csv:0: body: column not found; the file has text")):
        recognise(["text"], WANTED, {"question": "body"}, where="pool.csv:0")


def test_a_row_of_our_own_schema_takes_mapped_columns():
    assert renamed({"a": 1}, {"id": "a", "topic": "=maths"}) == {"a": 1, "id": 1, "topic": "maths"}
    assert renamed({"b": 1, "a": 2}, {"id": "c"}) == "c: column not found; the row has a, b"


def test_columns_of_rows_are_all_of_them_in_order():
    assert columns_of([("f:1", {"b": 1}), ("f:2", "row: bad; mend it"), ("f:3", {"a": 1, "b": 2})]) == ["b", "a"]


# ---------------------------------------------------------------- spellings


def test_spellings_lead_to_the_values_of_our_schema_and_no_two_share_one():
    ours = {
        "answer_type": ANSWER_TYPES,
        "channel": items.CHANNELS,
        "wrong_class": items.WRONG_CLASSES,
        "provenance": items.PROVENANCES,
    }
    assert {what: set(values) for what, values in SYNONYMS.items()} == {w: set(v) for w, v in ours.items()}
    assert list(CONDITIONS) == list(Condition)
    for what, values in {**SYNONYMS, "condition": CONDITIONS}.items():
        spellings = [columns.folded(name) for value, others in values.items() for name in (value, *others)]
        assert len(spellings) == len(set(spellings)), what
        assert all(spelled(what, name) == value for value, others in values.items() for name in (value, *others))


@pytest.mark.parametrize(
    "what, value, expected",
    [
        ("condition", "No-Context", "clean"),
        ("condition", "correct-context", "correct"),
        ("condition", "WRONG", "misleading"),
        ("condition", False, "misleading"),
        ("condition", "unrelated", "irrelevant"),
        ("condition", "typo", "typo"),
        ("condition", None, None),
        ("condition", ["clean"], ["clean"]),
        ("channel", "Retrieved doc", "retrieved_document"),
        ("channel", "TA", "ta_note"),
        ("answer_type", "multiple-choice", "multiple_choice"),
        ("answer_type", "MCQ", "multiple_choice"),
        ("answer_type", "yes/no", "boolean"),
        ("wrong_class", "off-by-one", "off_by_one"),
        ("provenance", "Human-authored", "human_authored"),
    ],
)
def test_spellings(what, value, expected):
    assert spelled(what, value) == expected


@pytest.mark.parametrize(
    "name, stripped",
    [
        ("q12_clean", "q12"),
        ("q12-misleading", "q12"),
        ("q12/no-context", "q12"),
        ("q12.correct_context", "q12"),
        ("gsm8k-7_irrelevant", "gsm8k-7"),
        ("q12", "q12"),
        ("unclean", "unclean"),
        ("clean", "clean"),
        ("q_clean_7", "q_clean_7"),
    ],
)
def test_a_condition_at_the_end_of_an_id(name, stripped):
    assert columns.CONDITION_SUFFIX.sub("", name) == stripped


# ---------------------------------------------------------------- options

CITIES = Options(["Sydney", "Canberra", "Perth"], [])


@pytest.mark.parametrize(
    "value",
    [
        ["Sydney", "Canberra", "Perth"],
        ("Sydney", "Canberra", "Perth"),
        ["A) Sydney", "B) Canberra", "C) Perth"],
        {"A": "Sydney", "B": "Canberra", "C": "Perth", "D": None},
        {"C": "Perth", "A": "Sydney", "B": "Canberra"},
        {"text": ["Sydney", "Canberra", "Perth"], "label": ["A", "B", "C"]},
        {"text": ["Sydney", "Canberra", "Perth"]},
        [{"label": "A", "text": "Sydney"}, {"label": "B", "text": "Canberra"}, {"label": "C", "text": "Perth"}],
        [{"text": "Sydney"}, {"text": "Canberra"}, {"text": "Perth"}],
        "A) Sydney\nB) Canberra\nC) Perth",
        "(A) Sydney; (B) Canberra; (C) Perth",
        "A. Sydney | B. Canberra | C. Perth",
        '["Sydney", "Canberra", "Perth"]',
        '{"A": "Sydney", "B": "Canberra", "C": "Perth"}',
    ],
)
def test_options_in_every_form(value):
    assert options_of(value) == CITIES


@pytest.mark.parametrize("value", [None, "", " ", [], {}, "[]", float("nan")])
def test_no_options(value):
    assert options_of(value) is None


def test_options_that_are_numbers_or_have_other_labels():
    assert options_of([1, 2.0, 2.5]) == Options(["1", "2", "2.5"], [])
    assert options_of({"1": "x", "2": "y"}) == Options(["x", "y"], ["1", "2"])


@pytest.mark.parametrize(
    "value",
    [
        "Sydney, Canberra", "A) Sydney", "A) Sydney\nC) Perth", '["Sydney"', 7, ["Sydney", None], ["Sydney", ["x"]],
        {"A": "Sydney", "C": "Perth"}, {"A": ["x"], "B": "y"}, [{"text": "Sydney"}, {"label": "B"}], [{"a": 1}],
        {"text": ["x", "y"], "label": ["A"]}, {"text": ["x", "y"], "label": ["A", "A"]}, [{"label": "A"}, {}],
    ],
)  # fmt: skip
def test_options_without_a_certain_reading(value):
    with pytest.raises(Unreadable, match=r"^options: .+; .+"):
        options_of(value)


@pytest.mark.parametrize(
    "value, expected",
    [
        ("B", "B"), ("b", "B"), ("(B)", "B"), ("B.", "B"), ("B)", "B"), (" B ", "B"), ("B) Canberra", "B"),
        ("Canberra", "B"), ("  canberra", "B"), ("D", None), ("Hobart", None), ("", None), (None, None), (1, None),
        (["B"], None),
    ],
)  # fmt: skip
def test_letters_and_texts_of_options(value, expected):
    assert letter_of("gold", value, CITIES, None) == expected


@pytest.mark.parametrize("value, base, expected", [(1, 0, "B"), (1, 1, "A"), ("2", 0, "C"), (2.0, 1, "B"), (3, 0, None),
                                                   (0, 1, None), (True, 0, None), ("B", 0, None)])  # fmt: skip
def test_places_of_options(value, base, expected):
    assert letter_of("gold", value, CITIES, base) == expected


def test_labels_come_before_places_and_texts():
    options = Options(["3", "2", "1"], ["1", "2", "3"])
    assert [letter_of("gold", value, options, 0) for value in ("1", 3, 4)] == ["A", "C", None]


def test_an_answer_that_may_mean_two_options_is_refused():
    # Which vitamin? The text of the first option is the letter of the third.
    options = Options(["C", "A", "K"], [])
    with pytest.raises(Unreadable, match=r"^gold: 'C' may mean option A or C; write it like 'A\) its text'"):
        letter_of("gold", "C", options, None)
    assert letter_of("gold", "C) K", options, None) == "C"


# ---------------------------------------------------------------- answers


@pytest.mark.parametrize(
    "value, expected",
    [(" 42 ", "42"), (42, "42"), (42.0, "42"), (0.5, "0.5"), (True, "true"), (None, ""), ([1], ""), (float("nan"), ""),
     (float("inf"), "inf"), (10**300, "1" + "0" * 300), (1e300, "1e+300")],
)  # fmt: skip
def test_values_as_text(value, expected):
    assert text_of(value) == expected


@pytest.mark.parametrize(
    "value, expected",
    [(True, "yes"), (False, "no"), ("Yes", "yes"), ("FALSE", "no"), (1, "yes"), ("0", "no"), ("n", "no"), ("No.", "no"),
     ("maybe", "maybe"), (2, 2), (None, None)],
)  # fmt: skip
def test_yes_and_no(value, expected):
    assert yes_or_no(value) == expected


# ---------------------------------------------------------------- messages

USER, ASSISTANT = {"role": "user", "content": "What?"}, {"role": "assistant", "content": "That."}


@pytest.mark.parametrize(
    "value",
    [
        "What?", [USER], USER, '[{"role": "user", "content": "What?"}]',
        [{"role": "user", "content": [{"type": "text", "text": "Wh"}, {"type": "text", "text": "at?"}]}],
    ],
)  # fmt: skip
def test_prompts_in_every_form(value):
    assert prompt_of(value) == "What?"


def test_text_that_only_looks_like_messages_stays_text():
    for text in ('["role"] of a', '[{"role": ', " What?\n", "[1, 2] is a list; its sum?"):
        assert prompt_of(text) == text
    assert prompt_of(None) is prompt_of(" ") is prompt_of([]) is None


@pytest.mark.parametrize(
    "value, found",
    [
        ([{"role": "system", "content": "x"}, USER], "messages of system, user"),
        ([ASSISTANT], "messages of assistant"),
        ([USER, ASSISTANT], "user, assistant"),
        (7, "is int 7"),
        (["What?"], "'What?' is no message"),
        ([{"role": "user"}], "is no message"),
        ([{"role": 1, "content": ""}], "is no message"),
        ([{"role": "user", "content": [{"type": "image"}]}], "is no message"),
    ],
)
def test_prompts_that_are_not_one_user_message(value, found):
    with pytest.raises(Unreadable, match=r"^prompt: .+; .+") as caught:
        prompt_of(value)
    assert found in str(caught.value)


def test_responses_in_every_form():
    assert response_of("chosen", "That.") == response_of("chosen", [ASSISTANT]) == (None, "That.")
    assert response_of("chosen", [USER, ASSISTANT]) == ("What?", "That.")


@pytest.mark.parametrize("value", [None, "", " ", 7, [], [USER], [ASSISTANT, USER], [{**ASSISTANT, "content": " "}]])
def test_responses_that_are_none(value):
    with pytest.raises(Unreadable, match=r"^chosen: .+; write .+"):
        response_of("chosen", value)


def test_forms_never_raise_anything_else():
    values = [
        None, "", "A", "A) x\nB) y", "[", "{}", '{"role"', 0, -1, 1.5, float("nan"), float("inf"), True, b"x", [], [[]],
        [None], {}, {"text": None}, {"text": [], "label": []}, {"text": ["x"], "label": 7}, {"role": "user"}, "9" * 500,
        {"A": {}}, [{}], [{"text": "x", "label": None}], "\ud800", 10**300,
    ]  # fmt: skip
    for value in values:
        for call in (
            options_of, prompt_of, text_of, yes_or_no, forms.whole, forms.missing, forms.plain,
            lambda v: response_of("chosen", v), lambda v: letter_of("gold", v, CITIES, None),
            lambda v: letter_of("gold", v, CITIES, 0),
        ):  # fmt: skip
            try:
                call(value)
            except Unreadable as error:
                assert re.match(r"\w+: .+; .+", str(error), re.DOTALL)
