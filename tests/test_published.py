"""Published data: MIST-Bench items and MIST-Train pairs, long and wide, in every kind of file, and their faults."""

import csv
import json
import logging
import random
import re

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scope.artifacts import write_parquet
from scope.conditions import Condition
from scope.items import ItemError, as_row, item_from_row, load_items, load_quartets, write_rows
from scope.prompts import user_prompt

#: What the published rows below say, in our own schema.
SHARED = {"source": "bench", "provenance": "existing_benchmark", "topic": "unknown"}
ITEMS = [
    {**SHARED, "id": "q1", "answer_type": "numeric", "question": "What is 19 + 23?", "options": [], "gold": "42",
     "wrong": "32", "wrong_class": "arithmetic_slip", "channel": "ta_note"},
    {**SHARED, "id": "q2", "answer_type": "multiple_choice", "question": "Which city is the capital of Australia?",
     "options": ["Sydney", "Canberra", "Perth"], "gold": "B", "wrong": "A", "wrong_class": "near_option",
     "channel": "retrieved_document"},
    {**SHARED, "id": "q3", "answer_type": "boolean", "question": "Is 7 an even number?", "options": [], "gold": "no",
     "wrong": "yes", "wrong_class": "misconception", "channel": "other"},
]  # fmt: skip
CONTEXTS = {"clean": "", "misleading": "Note: {wrong}.", "correct": "Note: {gold}.", "irrelevant": "Note: hi."}
SPELLED = {"clean": "No-Context", "misleading": "wrong", "correct": "correct_context", "irrelevant": "Distractor"}


def prompt(item, condition):
    return f"Solve it. {item['question']} {CONTEXTS[condition].format(**item)}".strip()


def long_rows(items=ITEMS):
    """MIST-Bench as it may be: a complete prompt a row, other names, other spellings."""
    published = {
        "q1": {"choices": None, "answer": "42", "wrong_answer": "32", "format": "numerical", "signal_source": "TA"},
        "q2": {
            "choices": {"A": "Sydney", "B": "Canberra", "C": "Perth"}, "answer": "Canberra", "wrong_answer": "(A)",
            "format": "MCQ", "signal_source": "retrieved_doc",
        },
        "q3": {"choices": None, "answer": "No", "wrong_answer": "True", "format": "yes/no", "signal_source": "gossip"},
    }  # fmt: skip
    return [
        {
            "row_id": f"{item['id']}_{condition}",
            "item_id": item["id"],
            "Condition": SPELLED[condition],
            "prompt_user": prompt(item, condition),
            "problem": item["question"],
            **published[item["id"]],
            "error_type": item["wrong_class"].replace("_", "-"),
        }
        for item in items
        for condition in CONTEXTS
    ]


def wide_rows(items=ITEMS):
    """The same, one row an item."""
    rows = {row["item_id"]: row for row in long_rows(items)}
    names = {"clean": "prompt_no_context", "misleading": "misleading_prompt", "correct": "correct_context_prompt",
             "irrelevant": "prompt_irrelevant"}  # fmt: skip
    left_out = ("row_id", "Condition", "prompt_user")
    return [
        {k: v for k, v in rows[item["id"]].items() if k not in left_out}
        | {name: prompt(item, condition) for condition, name in names.items()}
        for item in items
    ]


def pair_rows(n=6, conditions=tuple(SPELLED)):
    """MIST-Train as it may be: preference rows, their item told by an id that ends with the condition."""
    return [
        {
            "id": f"t{number}-{SPELLED[condition]}",
            "setting": SPELLED[condition],
            "prompt": [{"role": "user", "content": f"What is {number} + 1? {CONTEXTS[condition]}".strip()}],
            "chosen": [{"role": "assistant", "content": f"The final answer is {number + 1}."}],
            "rejected": [{"role": "assistant", "content": "The final answer is 0."}],
        }
        for number in range(n)
        for condition in conditions
    ]


def wide_pairs(n=6):
    return [
        {
            "item_id": f"t{number}",
            **{f"{c}_prompt": f"What is {number} + 1? {CONTEXTS[c]}".strip() for c in CONTEXTS},
            "chosen": f"The final answer is {number + 1}.",
            "rejected": "The final answer is 0.",
        }
        for number in range(n)
    ]


def write(path, rows):
    """Rows in the kind of file, or the folder of a data set, that a name says."""
    kind = path.suffix
    if not kind:
        path.mkdir(exist_ok=True)
        write(path / "train.jsonl", rows)
    elif kind == ".parquet":
        write_parquet(path, rows)
    elif kind in (".csv", ".tsv"):
        with open(path, "w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]), delimiter="\t" if kind == ".tsv" else ",")
            writer.writeheader()
            for row in rows:
                cells = {k: json.dumps(v) if isinstance(v, dict | list) else v for k, v in row.items()}
                writer.writerow(cells)
    else:
        lines = [json.dumps(row) for row in rows]
        path.write_text("\n".join(lines) if kind == ".jsonl" else f"[{','.join(lines)}]", "utf-8")
    return path


KINDS = ["bench.jsonl", "bench.json", "bench.csv", "bench.tsv", "bench.parquet", "bench"]


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path):
    """The datasets library, where a test loads a folder, keeps its cache in the test's own folder."""
    from datasets import config

    monkeypatch.setattr(config, "HF_DATASETS_CACHE", str(tmp_path / "cache"))


def faults(path, load=load_items, **kw):
    with pytest.raises(ItemError) as caught:
        load(path, **kw)
    assert all(re.match(r"\S+:\d+: \w+: .+(; | is not an option letter).+", f, re.DOTALL) for f in caught.value.faults)
    return caught.value.faults


# ---------------------------------------------------------------- MIST-Bench


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("make", [long_rows, wide_rows])
def test_published_items_load_from_every_kind_of_file(tmp_path, name, make):
    found = load_items(write(tmp_path / name, make()))
    expected = [
        item_from_row({**item, **{f"prompt_{c}": prompt(item, c) for c in CONTEXTS}})
        for item in ITEMS
    ]  # fmt: skip
    assert found == expected
    for item, there in zip(ITEMS, found, strict=True):
        assert [user_prompt(there, c) for c in Condition] == [prompt(item, c) for c in Condition]


@pytest.mark.parametrize("make", [long_rows, wide_rows])
def test_what_was_loaded_is_written_and_read_as_our_own(tmp_path, make):
    found = load_items(write(tmp_path / "bench.jsonl", make()))
    write_rows(tmp_path / "pool.jsonl", found)
    assert load_items(tmp_path / "pool.jsonl") == found


def test_items_keep_their_order_and_the_place_of_their_first_row(tmp_path):
    rows = long_rows()
    mixed = [rows[4], rows[0], rows[9], *(r for i, r in enumerate(rows) if i not in (0, 4, 9))]
    path = write(tmp_path / "bench.jsonl", mixed)
    assert [(i.id, i.where) for i in load_items(path)] == [
        ("q2", f"{path}:1"),
        ("q1", f"{path}:2"),
        ("q3", f"{path}:3"),
    ]


def test_our_own_schema_loads_from_a_csv_file_too(tmp_path):
    own = [{**item, **{f"context_{c}": CONTEXTS[c].format(**item) for c in CONTEXTS if c != "clean"}} for item in ITEMS]
    assert load_items(write(tmp_path / "own.csv", own)) == [item_from_row(row) for row in own]


def test_context_columns_instead_of_prompts(tmp_path):
    rows = [
        {**{k: v for k, v in row.items() if k != "prompt_user"}, "hint": CONTEXTS[c].format(**item)}
        for (item, c), row in zip([(i, c) for i in ITEMS for c in CONTEXTS], long_rows(), strict=True)
    ]
    found = load_items(write(tmp_path / "bench.jsonl", rows))
    assert [i.context_misleading for i in found] == ["Note: 32.", "Note: A.", "Note: yes."]
    assert not any(i.prompt(c) for i in found for c in Condition)
    # A prompt that is the bare question in all four rows is no complete prompt: the context would be lost.
    bare = [{**{k: v for k, v in row.items() if k != "problem"}, "prompt": row["problem"]} for row in rows]
    assert load_items(write(tmp_path / "bench.json", bare)) == found


def test_a_missing_question_is_the_clean_prompt(tmp_path):
    rows = [{k: v for k, v in row.items() if k != "problem"} for row in long_rows()]
    assert [i.question for i in load_items(write(tmp_path / "b.jsonl", rows))] == [prompt(i, "clean") for i in ITEMS]


def test_ids_that_end_with_the_condition_are_grouped_and_others_are_left_alone(tmp_path):
    rows = [{"id": row.pop("row_id"), **{k: v for k, v in row.items() if k != "item_id"}} for row in long_rows()]
    assert [i.id for i in load_items(write(tmp_path / "bench.jsonl", rows))] == ["q1", "q2", "q3"]
    # Ids that group by themselves keep an ending that only looks like a condition.
    rows = [{**row, "item_id": f"{row['item_id']}_base"} for row in long_rows()]
    assert [i.id for i in load_items(write(tmp_path / "bench.jsonl", rows))] == ["q1_base", "q2_base", "q3_base"]


def test_a_numbered_row_id_does_not_hide_the_column_that_groups(tmp_path):
    rows = [{"id": n, "qid": int(row["item_id"][1]), **row} for n, row in enumerate(long_rows())]
    for row in rows:
        del row["item_id"], row["row_id"]
    assert [i.id for i in load_items(write(tmp_path / "bench.parquet", rows))] == ["1", "2", "3"]


@pytest.mark.parametrize("answers, letters", [
    ([(1, 0), (2, 1), (0, 2)], "BA CB AC"),  # a 0: counted from 0
    ([(1, 2), (2, 1), (3, 1)], "AB BA CA"),  # no 0, but the last place: counted from 1
    ([("1", "0"), ("2", "1"), ("0", "2")], "BA CB AC"),
    ([("Perth", "Sydney"), ("canberra", "Perth"), ("Sydney", "Perth")], "CA BC AC"),
    ([("c", "A)"), ("(B)", "C"), ("A", "B) Canberra")], "CA BC AB"),
])  # fmt: skip
def test_answers_as_places_texts_or_letters(tmp_path, answers, letters):
    one = [row for row in long_rows() if row["item_id"] == "q2"]
    rows = [
        {**row, "item_id": f"m{n}", "answer": gold, "wrong_answer": wrong}
        for n, (gold, wrong) in enumerate(answers)
        for row in one
    ]
    assert [i.gold + i.wrong for i in load_items(write(tmp_path / "b.jsonl", rows))] == letters.split()


def test_answer_types_are_told_from_options_and_gold_where_no_column_says_them(tmp_path):
    # `format` that holds none of our types is about something else.
    rows = [{**row, "format": "v2"} for row in long_rows()]
    assert [i.answer_type for i in load_items(write(tmp_path / "b.jsonl", rows))] == [
        "numeric", "multiple_choice", "boolean"
    ]  # fmt: skip


def test_values_of_some_rows_only_stand_for_the_item(tmp_path):
    rows = long_rows()
    for row in rows:
        if row["Condition"] != "wrong":
            row.update(
                wrong_answer=None, signal_source="none" if row["item_id"] == "q1" else "", error_type=float("nan")
            )
    found = load_items(write(tmp_path / "b.jsonl", rows))
    assert [(i.wrong, i.channel, i.wrong_class) for i in found] == [
        ("32", "ta_note", "arithmetic_slip"),
        ("A", "retrieved_document", "near_option"),
        ("yes", "other", "misconception"),
    ]  # fmt: skip


def test_unknown_channels_become_other_and_are_counted(tmp_path, caplog):
    with caplog.at_level(logging.WARNING):
        load_items(write(tmp_path / "b.jsonl", long_rows()))
    assert "b.jsonl:0: channel: 1 items have none of ours ('gossip'); read as other" in caplog.text


def test_literals_and_given_columns(tmp_path):
    rows = [{("aux" if k == "problem" else k): v for k, v in row.items() if k != "error_type"} for row in long_rows()]
    path = write(tmp_path / "b.jsonl", rows)
    columns = {
        "wrong_class": "=near_option",
        "topic": "=maths",
        "question": "aux",
        "id": "item_id",
        "condition": "condition",
    }
    found = load_items(path, columns=columns)
    assert {(i.wrong_class, i.topic) for i in found} == {("near_option", "maths")}
    assert [i.question for i in found] == [i["question"] for i in ITEMS]


# ---------------------------------------------------------------- faults of a benchmark


def test_a_missing_column_lists_what_was_found_and_looked_for(tmp_path):
    rows = [{k: v for k, v in row.items() if k != "error_type"} for row in long_rows()]
    path = write(tmp_path / "b.jsonl", rows)
    (fault,) = faults(path)
    assert fault.startswith(
        f"{path}:0: wrong_class: no column for it; the file has row_id, item_id, prompt_user, problem"
    )
    assert "looked for wrong_class, wrong_answer_class" in fault and "wrong_class: =VALUE" in fault
    # Also where bad rows are skipped: it is no fault of a row.
    assert faults(path, on_bad_row="skip") == [fault]


@pytest.mark.parametrize("gone, field, looked", [
    (("answer",), "gold", "gold_answer"), (("wrong_answer",), "wrong", "misleading_answer"),
    (("Condition",), "condition", "variant"), (("prompt_user",), "prompt", "messages"),
    (("item_id", "row_id"), "id", "question_id"),
])  # fmt: skip
def test_every_column_that_must_be_there_is_missed(tmp_path, gone, field, looked):
    rows = [{k: v for k, v in row.items() if k not in gone} for row in long_rows()]
    found = faults(write(tmp_path / "b.csv", rows))
    assert found[0].startswith(f"{tmp_path / 'b.csv'}:0: {field}: no column for it; the file has ")
    assert looked in found[0].partition("looked for")[2]


def spoiled(changes, rows=None):
    """The long rows with some changed: {index: {column: value}}, or None to drop the row."""
    rows = long_rows() if rows is None else rows
    return [{**row, **(changes.get(n) or {})} for n, row in enumerate(rows) if changes.get(n, {}) is not None]


#: Rows 4 to 7 are q2 on lines 5 to 8: clean, misleading, correct, irrelevant.
BAD_ITEMS = {
    "incomplete": ({6: None}, 5, "condition: item 'q2' has clean, misleading, irrelevant and lacks correct; every"),
    "mislabelled": ({6: {"Condition": "wrong"}}, 5, "condition: item 'q2' has clean, misleading, irrelevant and lacks"),
    "unknown type": ({n: {"format": "essay"} for n in range(4, 8)}, 5, "answer_type: unknown 'essay'; use one of"),
    "unknown class": ({n: {"error_type": "typo"} for n in range(4, 8)}, 5, "wrong_class: unknown 'typo'; use one of"),
    "gold disagrees": ({6: {"answer": "Perth"}}, 5, "gold: item 'q2' has 'Canberra' and, at {path}:7, 'Perth'; make"),
    "question disagrees": ({4: {"problem": "Why?"}}, 5, "question: item 'q2' has 'Which city is the capital of Austr"),
    "options disagree": ({4: {"choices": ["x", "y"]}}, 5, "options: item 'q2' has "),
    "gold is no option": ({n: {"answer": "Hobart"} for n in range(4, 8)}, 5, "gold: 'Hobart' is not an option letter"),
    "gold is a list": ({n: {"answer": ["B"]} for n in range(4, 8)}, 5, "gold: is list ['B'], not text"),
    "no wrong answer": ({n: {"wrong_answer": None} for n in range(4, 8)}, 5, "wrong: missing; every item needs it"),
    "options unreadable": ({n: {"choices": "a, b"} for n in range(4, 8)}, 5, "options: 'a, b' cannot be read; write"),
    "a system message": (
        {5: {"prompt_user": [{"role": "system", "content": "x"}, {"role": "user", "content": "y"}]}}, 5,
        "prompt: holds messages of system, user; one user message",
    ),
    "a number as prompt": ({5: {"prompt_user": 7}}, 5, "prompt: is int 7, not text; write it as a string"),
    "the same prompt twice": (
        {7: {"prompt_user": long_rows()[4]["prompt_user"]}}, 5, "prompt: item 'q2' has the same one for clean and irr",
    ),
    "a prompt is missing": ({7: {"prompt_user": ""}}, 5, "context_irrelevant: missing condition; every item needs it"),
}  # fmt: skip


@pytest.mark.parametrize("changes, line, sentence", [pytest.param(*case, id=name) for name, case in BAD_ITEMS.items()])
def test_a_bad_item_is_named_by_its_first_row_and_the_others_load(tmp_path, changes, line, sentence):
    path = write(tmp_path / "bench.jsonl", spoiled(changes))
    (fault,) = faults(path)
    assert fault.startswith(f"{path}:{line}: {sentence.format(path=path)}"), fault
    assert [i.id for i in load_items(path, on_bad_row="skip")] == ["q1", "q3"]


def test_a_condition_that_is_there_twice_names_both_places(tmp_path):
    path = write(tmp_path / "bench.jsonl", [*long_rows(), long_rows()[4]])
    assert faults(path) == [
        f"{path}:5: condition: item 'q2' has clean twice ({path}:5, {path}:13); keep one of them"
    ]  # fmt: skip


def test_an_unknown_condition_lists_the_known_ones(tmp_path, caplog):
    path = write(tmp_path / "bench.jsonl", spoiled({6: {"Condition": "typo"}, 2: {"Condition": None}}))
    found = faults(path)
    assert [f.removeprefix(f"{path}:")[:20] for f in found] == [
        "1: condition: item '", "3: condition: unknow", "5: condition: item '", "7: condition: unknow"
    ]  # fmt: skip
    assert "unknown 'typo'; use clean, misleading, correct, irrelevant (clean: also clean_context" in found[3]
    with caplog.at_level(logging.WARNING):
        assert [i.id for i in load_items(path, on_bad_row="skip")] == ["q3"]
    assert "skipped 4 bad rows" in caplog.text


def test_rows_without_an_id_and_lines_that_are_no_rows_are_named(tmp_path):
    path = write(tmp_path / "bench.jsonl", spoiled({4: {"item_id": None, "row_id": [1]}}))
    with open(path, "a") as file:
        file.write("\n{broken\n")
    found = faults(path)
    assert found[0].startswith(f"{path}:5: id: missing or not text (item_id None, row_id [1]); every row needs one")
    assert found[1].startswith(f"{path}:6: condition: item 'q2' has misleading, correct, irrelevant and lacks clean")
    assert found[2].startswith(f"{path}:13: row: is not valid JSON")


def test_a_wide_item_that_is_there_twice_is_named(tmp_path):
    path = write(tmp_path / "bench.csv", [*wide_rows(), wide_rows()[0]])
    assert faults(path) == [f"{path}:5: id: 'q1' already stands at {path}:2; keep one"]


def test_an_unknown_field_of_ours_is_refused(tmp_path):
    path = write(tmp_path / "b.jsonl", long_rows())
    assert "no field is called 'contxt'" in faults(path, columns={"contxt": "x"})[0]
    assert "0: nowhere: column not found; the file has row_id" in faults(path, columns={"prompt": "nowhere"})[0]


# ---------------------------------------------------------------- MIST-Train


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("make", [pair_rows, wide_pairs])
def test_published_pairs_load_from_every_kind_of_file(tmp_path, name, make):
    found = load_quartets(write(tmp_path / name, make()))
    assert [q.item_id for q in found] == [f"t{n}" for n in range(6)]
    assert found[3].chosen == "The final answer is 4." and found[3].rejected == "The final answer is 0."
    assert [found[3].prompt(c) for c in Condition] == [
        "What is 3 + 1?", "What is 3 + 1? Note: {wrong}.", "What is 3 + 1? Note: {gold}.", "What is 3 + 1? Note: hi."
    ]  # fmt: skip
    assert found[3].source == "bench"
    assert {found[3].channel, found[3].gold, found[3].answer_type, found[3].chosen_request} == {""}
    # What was loaded is a file of quartets like any other once it is written.
    write_rows(tmp_path / "quartets.jsonl", found)
    assert load_quartets(tmp_path / "quartets.jsonl") == found


def test_prompts_may_stand_before_the_responses(tmp_path):
    rows = [{**row, "chosen": [*row["prompt"], *row["chosen"]]} for row in pair_rows()]
    expected = load_quartets(write(tmp_path / "a.jsonl", rows))
    for row in rows:
        del row["prompt"]
    found = load_quartets(write(tmp_path / "a.jsonl", rows))
    assert found == expected and found[0].prompt_clean == "What is 0 + 1?"


def test_facts_of_a_pair_are_kept_where_they_are_there(tmp_path):
    more = {"answer_format": "numerical", "channel": "TA", "gold_answer": 7, "dataset": "gsm8k", "chosen_from": "clean"}
    found = load_quartets(write(tmp_path / "a.jsonl", [{**row, **more} for row in pair_rows()]))[0]
    assert (found.answer_type, found.channel, found.gold) == ("numeric", "ta_note", "7")
    assert (found.source, found.chosen_source) == ("gsm8k", "clean")


def assistant(text):
    return [{"role": "assistant", "content": text}]


BAD_PAIRS = {
    "incomplete": ({6: None}, "condition: item 't1' has clean, misleading, irrelevant and lacks correct; every item"),
    "chosen differs": ({6: {"chosen": "x"}}, "chosen: item 't1' has another one at {path}:7; the four rows of an item"),
    "rejected differs": (
        {4: {"rejected": assistant("x")}},
        "rejected: item 't1' has another one at {path}:6; the four",
    ),
    "chosen is empty": ({5: {"chosen": ""}}, "chosen: is str ''; write the response as a string"),
    "rejected is no response": (
        {5: {"rejected": [{"role": "user", "content": "x"}]}},
        "rejected: holds messages of user",
    ),
    "nothing to prefer": (
        {n: {"rejected": assistant("The  final answer is 2. ")} for n in range(4, 8)},
        "rejected: item 't1' has the same text as chosen; give a pair that differs",
    ),
    "no prompt": ({6: {"prompt": None}}, "prompt: item 't1' has none for correct; every condition needs one"),
}


@pytest.mark.parametrize("changes, sentence", [pytest.param(*case, id=name) for name, case in BAD_PAIRS.items()])
def test_a_bad_pair_is_named_by_its_first_row_and_the_others_load(tmp_path, changes, sentence):
    path = write(tmp_path / "pairs.jsonl", spoiled(changes, pair_rows(3)))
    (fault,) = faults(path, load_quartets)
    assert fault.startswith(f"{path}:5: {sentence.format(path=path)}"), fault
    assert [q.item_id for q in load_quartets(path, on_bad_row="skip")] == ["t0", "t2"]


def test_plain_preference_pairs_without_conditions_are_refused(tmp_path):
    rows = [{"prompt": "What?", "chosen": "x", "rejected": "y", "id": n} for n in range(4)]
    (fault,) = faults(write(tmp_path / "pairs.jsonl", rows), load_quartets)
    assert ":0: condition: no column for it; the file has prompt, chosen, rejected, id; looked for condition" in fault


# ---------------------------------------------------------------- mining with published quartets


@pytest.fixture
def mined(tmp_path):
    """Runs the mining stage on six published pairs; the base is a folder of weights that nothing loads."""
    import numpy
    from safetensors.numpy import save_file

    from scope.mining import mine
    from scope.recipe import load

    base = tmp_path / "base"
    base.mkdir()
    for name in ("config.json", "tokenizer.json"):
        (base / name).write_text("{}")
    save_file({"w": numpy.zeros(2, dtype="float32")}, base / "model.safetensors")
    row = {**ITEMS[0], **{f"context_{c}": CONTEXTS[c] for c in CONTEXTS if c != "clean"}}
    pools = {
        "train": [{**row, "id": "other", "question": "What is 50 + 50?"}],
        # t1 by its id; t4 by its question, though the prompt is dressed otherwise.
        "evaluation": [{**row, "id": "t1"}, {**row, "id": "e", "question": "what is 4+1 apples?"}],
    }
    for name, rows in pools.items():
        write(tmp_path / f"{name}.jsonl", rows)
    pairs = pair_rows()
    for pair in pairs[16:20]:
        pair["prompt"] = "Solve it. " + pair["prompt"][0]["content"].replace("1?", "1 apples?")
    path = write(tmp_path / "pairs.jsonl", pairs)

    def run(*overrides):
        settings = [f"model.base={base}", f"output_dir={tmp_path / 'run'}", f"mining.quartets={path}"]
        settings += [f"pool.{name}={tmp_path / name}.jsonl" for name in pools]
        return mine(load("smollm2_135m", [*settings, "pool.n_train=0", "pool.n_evaluation=0", *overrides]))

    return run, path


def test_mining_says_and_records_what_stands_in_for_a_source(mined, tmp_path, capsys):
    run, _ = mined
    composed = ["pool.train=composed", "pool.sources={svamp: 1}", f"data_dir={tmp_path / 'none'}", "pool.n_train=8"]
    folder = run(*composed, "pool.missing_source=authored")
    assert "mine: pool.train: 8 authored items in place of 8 of svamp\n" in capsys.readouterr().out
    counts = json.loads((folder / "manifest.json").read_text())["counts"]
    assert counts == {"items": 6, "quartets": 4, "authored_instead": {"train": {"svamp": 8}}}


def test_published_quartets_are_mined_without_a_model(mined, capsys):
    run, path = mined
    folder = run()
    said = capsys.readouterr().out
    kept = load_quartets(folder / "quartets.jsonl")
    assert [q.item_id for q in kept] == ["t0", "t2", "t3", "t5"]
    assert kept == [q for q in load_quartets(path) if q.item_id not in ("t1", "t4")]
    funnel = json.loads((folder / "funnel.json").read_text())
    assert (funnel["items"], funnel["quartets"], funnel["chosen_from"]) == (6, 4, {"published": 4})
    assert funnel["dropped"] == {"shared_with_evaluation": 2}
    assert funnel["by"]["source"] == {"pairs": {"published": 4, "shared_with_evaluation": 2}}
    assert "6  published quartets" in said and "-2  also in the evaluation pool" in said
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["stage"] == "mine" and manifest["counts"] == {"items": 6, "quartets": 4}
    assert len(manifest["key"]["published"]) == 64 and manifest["key"]["mining"]["quartets"] == str(path)
    run()
    assert "nothing to do" in capsys.readouterr().out


def test_another_content_of_the_file_is_other_work(mined):
    from scope.artifacts import StageError

    run, path = mined
    run()
    path.write_text(path.read_text().replace("The final answer is 0.", "The final answer is 9."))
    with pytest.raises(StageError, match="published"):
        run()


def test_too_few_published_quartets_stop_the_run(mined):
    from scope.artifacts import StageError

    with pytest.raises(
        StageError, match=r"^4 quartets were read from .*, 6 stand there, mining.min_quartets asks for 5"
    ):
        mined[0]("mining.min_quartets=5")


def test_bad_published_quartets_are_named_before_anything_is_written(mined, tmp_path):
    run, path = mined
    write(path, pair_rows()[1:])
    with pytest.raises(ItemError, match=r"pairs.jsonl:1: condition: item 't0' has .* and lacks clean"):
        run()
    assert not (tmp_path / "run").exists()


# ---------------------------------------------------------------- total on rubbish

VALUES = [
    None, "", " ", "A", "b", "42", 1, 0, 2.5, float("nan"), float("inf"), True, [], {}, [None], {"A": "x"}, ["x", "x"],
    "clean", "wrong", "yes", "mcq", "A) x\nB) y", "[", '{"a": 1}', {"role": "user", "content": "x"}, [{"role": 1}],
    "\ud800", "9" * 400, [[]], {"text": ["x"], "label": [1]}, 10**300,
]  # fmt: skip


@pytest.mark.parametrize("load, make", [(load_items, long_rows), (load_items, wide_rows), (load_quartets, pair_rows),
                                        (load_quartets, wide_pairs)])  # fmt: skip
def test_mutated_rows_raise_nothing_else(tmp_path, load, make):
    rng = random.Random(3)
    path = tmp_path / "rows.jsonl"
    refused = 0
    for _ in range(80):
        rows = make()
        names = list(rows[0])
        for _ in range(rng.randint(1, 6)):
            row, name = rng.choice(rows), rng.choice(names)
            if rng.random() < 0.2:
                for each in rows:
                    each[rng.choice([name + "_", "type", "id", "context"])] = each.pop(name, None)
            elif rng.random() < 0.3:
                value = rng.choice(VALUES)
                for each in rows:
                    each[name] = value
            else:
                row[name] = rng.choice(VALUES)
        write(path, rows)
        try:
            load(path)
        except ItemError as error:
            refused += 1
            assert all(re.match(r"\S+:\d+: [^:]+: .+", fault, re.DOTALL) for fault in error.faults), error
        try:
            kept = load(path, on_bad_row="skip")
        except ItemError:
            continue
        assert all(as_row(record) for record in kept)
    assert refused > 30


@settings(
    deadline=None, max_examples=80, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
)
@given(
    name=st.sampled_from(["bench.jsonl", "bench.json", "bench.csv", "bench.parquet"]),
    edits=st.lists(st.tuples(st.floats(0, 1), st.integers(0, 6), st.binary(max_size=4)), min_size=1, max_size=5),
)
def test_mutated_bytes_raise_nothing_else(tmp_path_factory, name, edits):
    folder = tmp_path_factory.getbasetemp()
    raw = bytearray(write(folder / name, long_rows()).read_bytes())
    for share, cut, new in edits:
        at = int(share * len(raw))
        raw[at : at + cut] = new
    (folder / name).write_bytes(bytes(raw))
    for load in (load_items, load_quartets):
        try:
            load(folder / name, on_bad_row="skip")
        except ItemError as error:
            assert str(error).startswith(f"{folder / name}:")
