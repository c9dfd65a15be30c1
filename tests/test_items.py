"""Items and quartets: round trips that other tools can read, and every bad row named by file:line:field."""

import gzip
import json
import logging
import random
import re
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scope.answers import is_correct, parse_answer
from scope.conditions import Condition
from scope.items import (
    Item,
    ItemError,
    Quartet,
    as_row,
    control_token_faults,
    item_faults,
    item_from_row,
    load_items,
    load_quartets,
    normalised_question,
    write_rows,
)
from scope.prompts import gold_text

NUMERIC = {
    "id": "n1",
    "source": "authored/sum",
    "provenance": "authored",
    "topic": "arithmetic",
    "answer_type": "numeric",
    "question": "What is 19 + 23?",
    "options": [],
    "gold": "42",
    "wrong": "32",
    "wrong_class": "arithmetic_slip",
    "channel": "ta_note",
    "context_misleading": "TA note: it is 32.",
    "context_correct": "TA note: it is 42.",
    "context_irrelevant": "TA note: bring a pencil.",
}
CHOICE = {
    **NUMERIC,
    "id": "c1",
    "answer_type": "multiple_choice",
    "question": "Which city is the capital of Australia? — “日本”\u2028",
    "options": ["Sydney", "Canberra", "Perth"],
    "gold": "B",
    "wrong": "A",
    "license": "CC-BY-4.0",
}
BOOLEAN = {**NUMERIC, "id": "b1", "answer_type": "boolean", "question": "Is 7 even?", "gold": "no", "wrong": "yes"}
ROWS = [NUMERIC, CHOICE, BOOLEAN]


def item(**changes) -> Item:
    return item_from_row({**NUMERIC, **changes})


def quartet(**changes) -> Quartet:
    values = {
        "item_id": "n1",
        "source": "authored/sum",
        "answer_type": "numeric",
        "channel": "ta_note",
        "gold": "42",
        "prompt_clean": "q",
        "prompt_misleading": "q m",
        "prompt_correct": "q c",
        "prompt_irrelevant": "q i",
        "chosen": "The final answer is 42.",
        "rejected": "The final answer is 32.",
        "chosen_source": "clean",
        "chosen_answer": "42.0",
        "rejected_answer": "32.0",
        "chosen_request": "aa",
        "rejected_request": "bb",
    }
    return Quartet(**{**values, **changes})


def lines(path, *rows):
    """Write rows (objects, or bytes as they are) one a line."""
    raw = [row if isinstance(row, bytes) else json.dumps(row).encode() for row in rows]
    path.write_bytes(b"\n".join(raw) + b"\n")
    return path


# ---------------------------------------------------------------- round trips


@pytest.mark.parametrize("name", ["pool.jsonl", "pool.parquet"])
def test_items_come_back_as_they_were_written(tmp_path, name):
    items = [item_from_row(row) for row in ROWS]
    write_rows(tmp_path / name, items)
    found = load_items(tmp_path / name)
    assert found == items
    # `where` is not part of equality; it names file and line.
    assert [i.where for i in found] == [f"{tmp_path / name}:{n}" for n in (1, 2, 3)]
    assert found[1].options == ("Sydney", "Canberra", "Perth")


def test_gzipped_lines_and_blank_lines_are_read(tmp_path):
    text = "\n\n".join(json.dumps(row) for row in ROWS)
    (tmp_path / "pool.jsonl.gz").write_bytes(gzip.compress(text.encode()))
    found = load_items(tmp_path / "pool.jsonl.gz")
    # The rows stand on lines 1, 3 and 5; the blank ones count as lines.
    assert [i.where.rpartition(":")[2] for i in found] == ["1", "3", "5"]


@pytest.mark.parametrize("name", ["quartets.jsonl", "quartets.parquet"])
def test_quartets_come_back_as_they_were_written(tmp_path, name):
    quartets = [quartet(), quartet(item_id="n2", chosen="line one\nThe final answer is 42.")]
    write_rows(tmp_path / name, quartets)
    assert load_quartets(tmp_path / name) == quartets
    assert quartets[0].prompt(Condition.CORRECT) == "q c"


def test_other_tools_open_the_same_rows(tmp_path, monkeypatch):
    pandas = pytest.importorskip("pandas")
    monkeypatch.setenv("HF_DATASETS_OFFLINE", "1")
    datasets = pytest.importorskip("datasets")
    items = [item_from_row(row) for row in ROWS]
    for name in ("pool.jsonl", "pool.parquet"):
        write_rows(tmp_path / name, items)
    columns = set(NUMERIC) | {"license"}
    frames = {
        "json": pandas.read_json(tmp_path / "pool.jsonl", lines=True, dtype=False),
        "parquet": pandas.read_parquet(tmp_path / "pool.parquet"),
    }
    for kind, name in (("json", "pool.jsonl"), ("parquet", "pool.parquet")):
        assert set(frames[kind].columns) == columns
        assert list(frames[kind]["gold"]) == ["42", "B", "no"]
        assert list(frames[kind]["options"][1]) == ["Sydney", "Canberra", "Perth"]
        table = datasets.load_dataset(
            kind, data_files=str(tmp_path / name), split="train", cache_dir=str(tmp_path / kind)
        )
        assert set(table.column_names) == columns
        assert [item_from_row(row) for row in table] == items


def test_a_parquet_pool_without_any_option_still_loads(tmp_path):
    # The options column is then a list of nothing, which has no type of its own in Arrow.
    write_rows(tmp_path / "pool.parquet", [item_from_row(NUMERIC)])
    assert load_items(tmp_path / "pool.parquet")[0].options == ()


TEXT = st.text(st.characters(exclude_categories=("Cs",)), min_size=1).filter(str.strip)


@settings(deadline=None, max_examples=40)
@given(question=TEXT, context=TEXT, option=TEXT)
def test_any_text_survives_both_formats(tmp_path_factory, question, context, option):
    # Line separators (\u2028, \x85), quotes and control characters must not split or change a row.
    folder = tmp_path_factory.mktemp("text")
    there = item_from_row({**CHOICE, "question": question, "context_correct": context, "options": [option + "x", "y"]})
    if item_faults(as_row(there)):
        return  # e.g. an option that folds to "y"
    for name in ("pool.jsonl", "pool.parquet"):
        write_rows(folder / name, [there])
        assert load_items(folder / name) == [there]


def test_unset_optional_columns_are_left_out_of_a_row():
    row = as_row(item_from_row(CHOICE))
    assert row["license"] == "CC-BY-4.0" and "prompt_clean" not in row and "where" not in row
    assert "options" in row  # not optional: its absence would look like a lost column


# ---------------------------------------------------------------- bad rows


def without(name):
    return {k: v for k, v in NUMERIC.items() if k != name}


BAD = {
    "missing condition": (without("context_correct"), "context_correct", "missing condition"),
    "null condition": ({**NUMERIC, "context_misleading": None}, "context_misleading", "missing condition"),
    "missing question": (without("question"), "question", "missing"),
    "gold equals wrong": ({**NUMERIC, "wrong": "42"}, "wrong", "equals the gold"),
    "gold equals wrong, otherwise spelled": ({**NUMERIC, "wrong": "42.00"}, "wrong", "equals the gold"),
    "gold equals wrong, yes/no": ({**BOOLEAN, "wrong": "No"}, "wrong", "equals the gold"),
    "letter out of range": ({**CHOICE, "gold": "D"}, "gold", "'D' is not an option letter A to C"),
    "wrong letter out of range": ({**CHOICE, "wrong": "E"}, "wrong", "'E' is not an option letter A to C"),
    "lower-case letter": ({**CHOICE, "gold": "b"}, "gold", "not an option letter"),
    "option text as gold": ({**CHOICE, "gold": "Canberra"}, "gold", "not an option letter"),
    "unknown answer type": ({**NUMERIC, "answer_type": "free_text"}, "answer_type", "unknown 'free_text'; use one of"),
    "unknown channel": ({**NUMERIC, "channel": "TA note"}, "channel", "unknown 'TA note'; use one of"),
    "unknown wrong class": ({**NUMERIC, "wrong_class": "slip"}, "wrong_class", "unknown 'slip'"),
    "unknown provenance": ({**NUMERIC, "provenance": "web"}, "provenance", "unknown 'web'"),
    "empty question": ({**NUMERIC, "question": ""}, "question", "is empty"),
    "blank context": ({**NUMERIC, "context_irrelevant": " \n"}, "context_irrelevant", "is empty"),
    "blank prompt": ({**NUMERIC, "prompt_clean": "  "}, "prompt_clean", "is empty"),
    "number for text": ({**NUMERIC, "gold": 42}, "gold", "is int 42, not text"),
    "list for text": ({**NUMERIC, "answer_type": ["numeric"]}, "answer_type", "is list ['numeric'], not text"),
    "true for text": ({**NUMERIC, "context_correct": True}, "context_correct", "is bool True, not text"),
    "NaN": (json.dumps({**NUMERIC, "gold": float("nan")}).encode(), "gold", "is float nan, not text"),
    "unreadable number": ({**NUMERIC, "gold": "about 40 or so"}, "gold", "cannot be read as a numeric answer"),
    "infinite number": ({**NUMERIC, "gold": "1e999"}, "gold", "cannot be read"),
    "maybe": ({**BOOLEAN, "gold": "maybe"}, "gold", "cannot be read as a boolean answer"),
    "one option": ({**CHOICE, "options": ["Canberra"]}, "options", "has 1 options; multiple choice needs 2 to 26"),
    "no option": ({**CHOICE, "options": []}, "options", "has 0 options"),
    "27 options": ({**CHOICE, "options": [str(n) for n in range(27)]}, "options", "has 27 options"),
    "equal options": ({**CHOICE, "options": ["Perth", "x", " perth "]}, "options", "two options are equal"),
    "blank option": ({**CHOICE, "options": ["Sydney", " "]}, "options", "list of non-empty strings"),
    "options as a string": ({**CHOICE, "options": "ABC"}, "options", "list of non-empty strings"),
    "options as an object": ({**CHOICE, "options": {"A": "x"}}, "options", "list of non-empty strings"),
    "options of a numeric item": ({**NUMERIC, "options": ["1", "2"]}, "options", "a numeric item has none"),
    "lone surrogate": ({**NUMERIC, "question": "What \ud83d?"}, "question", "holds a lone surrogate"),
    "broken JSON": (b'{"id": "n1", ', "row", "is not valid JSON"),
    "not an object": (b'["n1"]', "row", "is not a JSON object"),
    "a bare null": (b"null", "row", "is not a JSON object"),
    "two objects": (b'{"id": "a"} {"id": "b"}', "row", "is not valid JSON"),
    "too deep": (b"[" * 100_000, "row", "is not valid JSON"),
    "Latin-1": ('{"question": "caf\u00e9"}'.encode("latin-1"), "row", "is not UTF-8"),
}


MORE_BAD = {
    "a number of 5000 digits": (b'{"id": ' + b"1" * 5000 + b"}", "row", "is not valid JSON"),
    "surrogate in an option": ({**CHOICE, "options": ["a", "b\ud800"]}, "options", "surrogate"),
    "gold is a statement": ({**NUMERIC, "gold": "Answer: 42"}, "gold", "cannot be read"),
    "gold has white space around it": ({**CHOICE, "gold": " B "}, "gold", "white space"),
    "gold is a sentence": ({**NUMERIC, "gold": "The final answer is 42"}, "gold", "cannot be read"),
    "wrong within the tolerance": ({**NUMERIC, "wrong": "42.0001"}, "wrong", "equals the gold"),
}


@pytest.mark.parametrize(
    "row, field, sentence",
    [pytest.param(*case, id=name) for name, case in BAD.items()]
    + [pytest.param(*case, id=name) for name, case in MORE_BAD.items()],
)
def test_a_bad_row_is_named_by_file_line_and_field(tmp_path, row, field, sentence):
    path = lines(tmp_path / "pool.jsonl", {**NUMERIC, "id": "before"}, row, {**NUMERIC, "id": "after"})
    with pytest.raises(ItemError) as caught:
        load_items(path)
    assert len(caught.value.faults) == 1
    fault = caught.value.faults[0]
    assert fault.startswith(f"{path}:2: {field}: ") and sentence in fault, fault
    assert str(caught.value) == fault
    # The same row is dropped, and only that one, where the recipe says so.
    assert [i.id for i in load_items(path, on_bad_row="skip")] == ["before", "after"]


def test_parquet_rows_are_numbered_like_lines(tmp_path):
    from scope.artifacts import write_parquet

    write_parquet(tmp_path / "pool.parquet", [NUMERIC, {**CHOICE, "gold": "Z"}])
    with pytest.raises(ItemError, match=re.escape(f"{tmp_path / 'pool.parquet'}:2: gold: 'Z' is not an option letter")):
        load_items(tmp_path / "pool.parquet")


def test_duplicate_ids_name_both_places(tmp_path):
    path = lines(tmp_path / "pool.jsonl", NUMERIC, CHOICE, {**BOOLEAN, "id": "n1"})
    with pytest.raises(ItemError) as caught:
        load_items(path)
    assert caught.value.faults == [f"{path}:3: id: 'n1' already stands at {path}:1; give every item its own id"]
    assert [i.id for i in load_items(path, on_bad_row="skip")] == ["n1", "c1"]


def test_a_bad_row_does_not_claim_its_id(tmp_path):
    path = lines(tmp_path / "pool.jsonl", {**NUMERIC, "gold": "?"}, NUMERIC)
    assert [i.where for i in load_items(path, on_bad_row="skip")] == [f"{path}:2"]


def test_every_fault_of_a_file_is_reported_and_the_message_stays_short(tmp_path):
    rows = [{**NUMERIC, "id": f"n{n}", "gold": "?", "wrong": ""} for n in range(30)]
    path = lines(tmp_path / "pool.jsonl", *rows)
    with pytest.raises(ItemError) as caught:
        load_items(path)
    # An empty `wrong` ends a row's check before its gold is read: one fault a row.
    assert len(caught.value.faults) == 30
    assert str(caught.value).splitlines()[-1] == "... and 10 more faults"


def test_skipped_rows_are_counted(tmp_path, caplog):
    path = lines(tmp_path / "pool.jsonl", NUMERIC, b"{", {**CHOICE, "gold": "Z", "wrong": "Y"}, BOOLEAN, NUMERIC)
    with caplog.at_level(logging.WARNING, "scope.items"):
        found = load_items(path, on_bad_row="skip")
    # Line 2 is no JSON, line 3 has two faults but is one row, line 5 repeats an id: three rows.
    assert [i.id for i in found] == ["n1", "b1"]
    assert f"skipped 3 bad rows, the first: {path}:2: row:" in caplog.text


def test_a_row_with_complete_prompts_needs_no_contexts(tmp_path):
    prompts = {f"prompt_{c}": f"complete {c}" for c in Condition}
    blank = {f"context_{c}": "" for c in Condition if c is not Condition.CLEAN}
    path = lines(tmp_path / "pool.jsonl", {**NUMERIC, **blank, **prompts})
    assert load_items(path)[0].prompt(Condition.MISLEADING) == "complete misleading"


def test_a_row_with_complete_prompts_may_leave_the_contexts_out(tmp_path):
    prompts = {f"prompt_{c}": f"complete {c}" for c in Condition}
    bare = {k: v for k, v in NUMERIC.items() if not k.startswith("context_")}
    assert load_items(lines(tmp_path / "pool.jsonl", {**bare, **prompts}))[0].context(Condition.CORRECT) == ""


def test_missing_file_and_mistyped_path_are_sentences(tmp_path):
    for path in (tmp_path / "nowhere.jsonl", "nowhere", "a/b/c"):
        with pytest.raises(ItemError) as caught:
            load_items(path)
        assert str(caught.value) == f"{path}:0: file: does not exist; build the pool or correct the path"


DAMAGED = {
    "pool.parquet": b"PAR1 and nothing else",
    "pool.jsonl.gz": b"not gzip",
    "cut.jsonl.gz": gzip.compress(json.dumps(NUMERIC).encode() * 20)[:-20],
}


@pytest.mark.parametrize("name", DAMAGED)
def test_a_damaged_file_is_a_sentence(tmp_path, name):
    (tmp_path / name).write_bytes(DAMAGED[name])
    with pytest.raises(ItemError, match=re.escape(name)):
        load_items(tmp_path / name)


def test_a_folder_is_a_sentence(tmp_path):
    with pytest.raises(ItemError):
        load_items(tmp_path)


# ---------------------------------------------------------------- what later code relies on


@pytest.mark.parametrize(
    "row",
    [
        {**NUMERIC, "gold": "1,234", "wrong": "3/4"},
        {**BOOLEAN, "gold": "True", "wrong": "false"},
        CHOICE,
    ],
)
def test_gold_and_wrong_of_an_accepted_row_can_be_scored(tmp_path, row):
    found = load_items(lines(tmp_path / "pool.jsonl", row))[0]
    n_options = len(found.options) or None
    for text, expected in ((found.gold, True), (found.wrong, False)):
        answer = parse_answer(text, found.answer_type, n_options)
        assert is_correct(answer, found.gold, found.answer_type) is expected
    assert found.gold.strip() in gold_text(found)


def test_control_tokens_are_found_in_every_text_that_reaches_the_model():
    tokens = ["<|im_end|>", "<s>", " ", "\n"]
    clean = item(id="ok")
    bad = {
        "question": item(id="q", question="a<|im_end|>b"),
        "context_correct": item(id="c", context_correct="<s>"),
        "prompt_clean": item(id="p", prompt_clean="x <|im_end|>"),
        "options[1]": replace(item_from_row(CHOICE), id="o", options=("a", "b<s>"), where="pool.jsonl:7"),
    }
    faults = control_token_faults([clean, *bad.values()], tokens)
    # White-space tokens of a tokenizer are ordinary text and never count.
    assert sorted(faults) == ["c", "o", "p", "q"]
    for name, found in bad.items():
        assert f" {name}: holds the tokenizer's control token" in faults[found.id]
    assert faults["o"].startswith("pool.jsonl:7: options[1]: ")


def test_columns_map_other_names_to_ours(tmp_path):
    row = {k: v for k, v in NUMERIC.items() if k not in ("question", "id")} | {"text": "What?", "uid": "u7"}
    path = lines(tmp_path / "pool.jsonl", row)
    found = load_items(path, columns={"question": "text", "id": "uid"})[0]
    assert (found.id, found.question) == ("u7", "What?")
    with pytest.raises(ItemError, match=re.escape(f"{path}:1: body: column not found; the row has answer_type")):
        load_items(path, columns={"question": "body", "id": "uid"})
    assert load_items(path, columns={"question": "body"}, on_bad_row="skip") == []


def test_columns_refuse_an_unknown_field_of_ours(tmp_path):
    with pytest.raises((ItemError, ValueError)):
        load_items(lines(tmp_path / "pool.jsonl", {**NUMERIC, "text": "x"}), columns={"quesion": "text"})


def test_normalised_questions_ignore_case_spacing_and_punctuation():
    a, b = item(question="What  is 19+23?"), item(question="what is 19 + 23 ?!")
    assert normalised_question(a) == normalised_question(b) == "what is 19 23"
    assert normalised_question(a) != normalised_question(item(question="What is 19+32?"))


# ---------------------------------------------------------------- quartets


@pytest.mark.parametrize(
    "change, field",
    [({"chosen": " "}, "chosen"), ({"rejected": ""}, "rejected"), ({"prompt_clean": None}, "prompt_clean"),
     ({"gold": 42}, "gold"), ({"item_id": ["n1"]}, "item_id")],
)  # fmt: skip
def test_a_bad_quartet_is_named_and_the_command_given(tmp_path, change, field):
    path = lines(tmp_path / "quartets.jsonl", as_row(quartet()), {**as_row(quartet()), **change}, b"{]")
    with pytest.raises(ItemError) as caught:
        load_quartets(path)
    first, second = caught.value.faults
    assert first == f"{path}:2: {field}: missing, empty or not text; run mine.py again"
    assert second.startswith(f"{path}:3: row: is not valid JSON")


def test_missing_quartets_are_a_sentence(tmp_path):
    with pytest.raises(ItemError, match="does not exist"):
        load_quartets(tmp_path / "quartets.jsonl")


# ---------------------------------------------------------------- total on rubbish

VALUES = [
    None, "", " ", "A", "b", "42", "-1e400", "½", "\ud800", "\x00", "\ufeff", "𝟜𝟚", "yes", "multiple_choice", "boolean",
    0, 1.5, float("inf"), True, [], [""], ["A", "A"], [1, 2], ["x"] * 30, {}, {"a": [None]}, [[]], "9" * 400, "<think>",
    "The final answer is", "user_belief", 10**300,
]  # fmt: skip


def test_mutated_rows_never_raise_anything_else():
    # Column mutations: any known column set to any of VALUES, dropped, or misnamed.
    rng = random.Random(7)
    refused = 0
    for _ in range(5000):
        row = dict(rng.choice(ROWS))
        for _ in range(rng.randint(1, 3)):
            name = rng.choice([*row, "prompt_clean", "license", "tier"])
            if rng.random() < 0.2 and name in row:
                row[name + "_"] = row.pop(name)
            else:
                row[name] = rng.choice(VALUES)
        faults = item_faults(row)
        assert all(isinstance(f, str) and ": " in f for f in faults)
        refused += bool(faults)
        if not faults:
            assert isinstance(item_from_row(row), Item)
    # Most mutations break a row, some (a licence, another valid letter) do not.
    assert 3500 < refused < 5000


def test_mutated_bytes_never_raise_anything_else(tmp_path):
    rng = random.Random(11)
    good = [json.dumps(row, ensure_ascii=False).encode() for row in ROWS]
    rows = []
    for _ in range(2000):
        raw = bytearray(rng.choice(good))
        for _ in range(rng.randint(1, 4)):
            at = rng.randrange(len(raw))
            raw[at : at + rng.choice((0, 1, 1, 5))] = bytes(
                rng.choices(b'\x00\xff\xed\xa0"{}[]:,\\0eE.-x', k=rng.randint(0, 3))
            )
        rows.append(bytes(raw).replace(b"\n", b" "))
    path = lines(tmp_path / "pool.jsonl", *rows)
    with pytest.raises(ItemError) as caught:
        load_items(path)
    where = re.compile(re.escape(str(path)) + r":(\d+): [\w\[\]]+: ")
    assert all(where.match(fault) for fault in caught.value.faults)
    bad = {int(where.match(fault)[1]) for fault in caught.value.faults}
    kept = load_items(path, on_bad_row="skip")
    assert len(bad) > 1000
    # Every line is either kept or named, never both and never lost (a line may have become blank).
    blank = sum(not row.strip() for row in rows)
    assert len(kept) + len(bad) + blank == len(rows)
    assert {int(i.where.rpartition(":")[2]) for i in kept}.isdisjoint(bad)
