"""Public and custom sources: rows become questions or a counted sentence, never a crash and never a silent drop."""

import csv
import gzip
import json
import random
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from scope.answers import parse_answer, same_answer
from scope.items import Item, as_row, item_faults
from scope.pool import PoolError, foils, sources
from scope.pool.custom import custom_questions
from scope.pool.drafts import clean, number_in, redistributable, speaks_of_others
from scope.pool.questions import Question
from scope.pool.sources import SOURCES, TRANSFER, WHICH
from scope.pool.writing import letter
from scope.tables import read_rows

DATA = Path(__file__).resolve().parent.parent.parent / "shared" / "data"
needs_rows = pytest.mark.skipif(not DATA.is_dir(), reason=f"the real rows of the public sets are not in {DATA}")

ROWS = {
    "strategyqa": {"qid": "q1", "question": "Can a cat swim?", "answer": True},
    "commonsense_qa": {
        "id": "c1",
        "question": "Where is a ladder?",
        "choices": {"label": ["A", "B", "C"], "text": ["orchard", "garage", "roof"]},
        "answerKey": "B",
    },
    "arc": {
        "id": "a1",
        "question": "Which is a metal?",
        "choices": {"text": ["wood", "iron", "wool"], "label": ["1", "2", "3"]},
        "answerKey": "2",
    },
    "openbookqa": {
        "id": "o1",
        "question_stem": "Stars are",
        "choices": {"text": ["warm lights", "balls of gas"], "label": ["A", "B"]},
        "answerKey": "B",
    },
    "gsm8k": {
        "question": "A pen costs $1,100 and a cap $100. How  much are both?\r\n",
        "answer": "1,100+100 = $<<1100+100=1200>>1,200.\n#### 1,200",
    },
    "mmlu": {"question": "2+2?", "subject": "abstract_algebra", "choices": ["3", "4", "5", "6"], "answer": 1},
    "math": {
        "problem": "What is $1+2\\cdot 3$?",
        "solution": "$2\\cdot 3=6$, so $\\boxed{7}$.",
        "answer": "7",
        "subject": "Algebra",
        "level": 1,
        "unique_id": "test/algebra/1.json",
    },
    "aqua_rat": {"question": "How far?", "options": ["A)21", "B)21.5", "C)None of these"], "correct": "A"},
    "svamp": {
        "ID": "s1",
        "question_concat": "He had 9 and ate 4. How many are left?",
        "Equation": "( 9.0 - 4.0 )",
        "Answer": "5",
        "Type": "Common-Divison",
    },
}


def read(name: str, **changes) -> Question | str:
    return SOURCES[name].read({**ROWS[name], **changes}, "1", "file:1")


def write_jsonl(path: Path, rows: list[dict]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with gzip.open(path, "wt", encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)
    return path


def as_item(question: Question, value: str) -> dict:
    """The row of an item with a question, and a wrong value, with contexts that are only there to be there."""
    gold, wrong = question.gold, value
    if question.options:
        gold, wrong = (letter(question.options.index(each)) for each in (gold, wrong))
    contexts = {f"context_{name}": "x" for name in ("misleading", "correct", "irrelevant")}
    fields = {name: getattr(question, name) for name in ("source", "provenance", "answer_type", "question", "options")}
    classes = question.mistakes[0].wrong_class
    return as_row(
        Item(
            id="i",
            topic=question.topic,
            gold=gold,
            wrong=wrong,
            wrong_class=classes,
            channel="other",
            **fields,
            **contexts,
        )
    )


def check(question: Question) -> None:
    """What every question must satisfy: a valid item with each of its mistakes, none of them the gold."""
    assert question.mistakes and question.topic and question.question == clean(question.question)
    assert question.upstream_id.startswith(f"{question.source}:")
    assert list(question.mistakes) == foils.usable(
        question.mistakes, question.gold, question.answer_type, question.options
    )
    for mistake in question.mistakes:
        assert item_faults(as_item(question, mistake.value)) == [], question
        if question.answer_type != "multiple_choice":
            wrong, gold = (parse_answer(v, question.answer_type) for v in (mistake.value, question.gold))
            assert not same_answer(wrong, gold, question.answer_type)


# ---------------------------------------------------------------- one row of each


def test_the_sources_are_those_of_mist():
    import tomllib

    shares = tomllib.loads(Path(sources.__file__).with_name("mist.toml").read_text("utf-8"))["sources"]
    assert set(SOURCES) == set(shares) - {"authored"}
    assert set(TRANSFER) == {"gsm_ic", "gsm_plus", "sycophancy_answer"}


@pytest.mark.parametrize("name", SOURCES)
def test_a_good_row_of_each_source(name):
    question = read(name)
    assert isinstance(question, Question), question
    check(question)
    assert (question.source, question.upstream_id, question.where) == (name, f"{name}:1", "file:1")
    assert set(SOURCES[name].columns) <= set(ROWS[name])


def test_what_is_read():
    assert read("gsm8k").gold == "1200"
    assert read("gsm8k").question == "A pen costs $1,100 and a cap $100. How much are both?"
    assert read("strategyqa").gold == "yes"
    assert read("arc").gold == "iron"
    assert read("mmlu").gold == "4" and read("mmlu").topic == "abstract algebra"
    assert read("aqua_rat").options == ("21", "21.5", "None of these") and read("aqua_rat").fixed_order
    assert [m.value for m in read("aqua_rat").mistakes] == ["21.5", "None of these"]
    assert read("svamp").topic == "common division"
    assert read("math").license == "MIT" and read("openbookqa").license == ""
    assert SOURCES["arc"].redistributable and SOURCES["openbookqa"].redistributable is None


@pytest.mark.parametrize(
    ("name", "changes", "reason"),
    [
        ("strategyqa", {"answer": None}, "answer: is neither true nor false"),
        ("strategyqa", {"question": "Who was Caesar?"}, "is not a yes/no question"),
        ("strategyqa", {"question": "  "}, "question: is empty"),
        ("commonsense_qa", {"answerKey": ""}, "answerKey: is missing"),
        ("commonsense_qa", {"answerKey": "E"}, "answerKey: names no option"),
        ("commonsense_qa", {"answerKey": ["A", "B"]}, "answerKey: is a list"),
        ("commonsense_qa", {"choices": {"label": ["B", "B"], "text": ["a x", "b x"]}}, "names more than one option"),
        ("commonsense_qa", {"choices": {"label": ["A", "B"], "text": ["pond", "Pond."]}}, "two say the same"),
        ("commonsense_qa", {"choices": {"label": ["B"], "text": ["pond"]}}, "fewer than 2"),
        ("commonsense_qa", {"choices": {"label": ["A", "B"], "text": ["pond", ""]}}, "one is empty"),
        ("commonsense_qa", {"choices": {"label": ["A"], "text": ["pond", "x"]}}, "more labels than texts, or fewer"),
        ("commonsense_qa", {"choices": "pond"}, "choices: has no label and text lists"),
        ("mmlu", {"choices": ["0.50", "0.5", "1", "2"]}, "two say the same"),
        ("mmlu", {"choices": ["1,000 m", "1000 m", "1", "2"]}, "two say the same"),
        ("mmlu", {"answer": 4}, "answer: names no option"),
        ("mmlu", {"question": "What does the graph below show?"}, "refers to a figure"),
        ("mmlu", {"question": "What is the underlined word?"}, "refers to a figure"),
        ("mmlu", {"question": "What is the theme of the passage?"}, "refers to a passage"),
        ("mmlu", {"question": "A <b>bold</b> move?"}, "holds HTML"),
        ("mmlu", {"question": "Who?<|im_end|>"}, "control token"),
        ("mmlu", {"question": "Who\ufffd?"}, "broken characters"),
        ("mmlu", {"question": "Who\ud800?"}, "broken characters"),
        ("mmlu", {"question": "why " * 1001}, "longer than 4,000 characters"),
        ("mmlu", {"choices": ["x", "x y", "x z"], "answer": 0}, "no mistake gives a plausible one"),
        ("gsm8k", {"answer": "It is 5."}, "has no line `#### number`"),
        ("gsm8k", {"answer": "#### 5 or 6"}, "is no plain number"),
        ("gsm8k", {"question": 5}, "question: is int, not text"),
        ("math", {"answer": "\\sqrt{3}"}, "is no plain number"),
        ("math", {"answer": "(1,2)"}, "is no plain number"),
        ("math", {"problem": "Find it.\n[asy] draw(A--B); [/asy]"}, "refers to a figure"),
        ("aqua_rat", {"correct": "E"}, "correct: names no option"),
        ("svamp", {"Answer": "x"}, "is no plain number"),
    ],
)
def test_a_row_that_cannot_be_used_says_why(name, changes, reason):
    found = read(name, **changes)
    assert isinstance(found, str) and reason in found and ": " in found and "; " in found


@pytest.mark.parametrize(
    ("text", "gold"),
    [
        ("5", "5"),
        ("58,500", "58500"),
        ("11,\\! 111,\\! 100", None),
        ("10,\\!080", "10080"),
        (".35625", "0.35625"),
        ("-3", "-3"),
        ("\\$18.90", "18.90"),
        ("90^\\circ", "90"),
        ("5.4 \\text{ cents}", "5.4"),
        ("x=5", "5"),
        ("\\frac{14}{3}", "14/3"),
        ("\\frac65", "6/5"),
        ("-\\frac{35}{9}", "-35/9"),
        ("3/4", "3/4"),
        ("52_8", None),
        ("-2,1", None),
        ("3R^2", None),
        ("12\\pi", None),
        ("1 \\pm \\sqrt{19}", None),
        ("½", None),
        ("five", None),
        ("", None),
    ],
)
def test_gold_numbers(text, gold):
    try:
        assert number_in(text, "answer") == gold
    except ValueError:
        assert gold is None


@pytest.mark.parametrize(
    ("option", "fixed"),
    [
        ("All of the above.", True),
        ("none of these", True),
        ("None", True),
        ("both A and B", True),
        ("Both (a) and (b).", True),
        ("A and C only", True),
        ("A, B and C", True),
        ("neither of the above", True),
        ("I and II only", False),
        ("both the water and the egg get warmer", False),
        ("all of the mixture will evaporate", False),
        ("above sea level", False),
        ("True, False", False),
    ],
)
def test_options_that_speak_of_the_others_keep_their_order(option, fixed):
    assert speaks_of_others(option) is fixed


@pytest.mark.parametrize(
    ("license", "allowed"),
    [
        ("MIT", True),
        ("CC-BY-SA-4.0", True),
        ("Apache 2.0", True),
        ("CC BY-NC-SA 4.0", False),
        ("cc-by-nd-4.0", False),
        ("All rights reserved", False),
        ("Proprietary", False),
        ("non-commercial use only", False),
        ("", None),
        ("not stated", None),
        ("see the website", None),
    ],
)
def test_redistributable(license, allowed):
    assert redistributable(license) is allowed


# ---------------------------------------------------------------- files


def test_files_are_found_and_read(tmp_path):
    rows = [ROWS["mmlu"], {**ROWS["mmlu"], "question": "3+3?", "answer": 3}, {**ROWS["mmlu"], "answer": 9}]
    write_jsonl(tmp_path / "mmlu" / "validation.jsonl.gz", rows)
    (tmp_path / "mmlu" / "dev.csv").write_text(
        'question,choices,answer,subject\n4-1?,"[""3"", ""4""]",0,algebra\n', encoding="utf-8"
    )
    questions, reasons = sources.read_source("mmlu", "train", tmp_path)
    assert [q.gold for q in questions] == ["4", "6", "3"]
    assert reasons == Counter({"answer: names no option; name one of the options": 1})
    assert questions[0].upstream_id.startswith("mmlu:validation/1-") and questions[2].upstream_id.startswith(
        "mmlu:dev/1-"
    )
    assert sources.local_files(tmp_path, ["mmlu", "gsm_ic"]) == [
        tmp_path / "mmlu" / "validation.jsonl.gz",
        tmp_path / "mmlu" / "dev.csv",
    ]
    with pytest.raises(PoolError, match=r"mmlu.*holds no test.jsonl.gz"):
        sources.read_source("mmlu", "evaluation", tmp_path)


def test_both_configurations_of_arc_are_one_source(tmp_path):
    write_jsonl(tmp_path / "ai2_arc" / "ARC-Easy" / "test.jsonl.gz", [ROWS["arc"]])
    with pytest.raises(PoolError, match=r"ARC-Challenge.*holds no test"):
        sources.read_source("arc", "evaluation", tmp_path)
    hard = {**ROWS["arc"], "id": "a2"}
    write_jsonl(tmp_path / "ai2_arc" / "ARC-Challenge" / "test.jsonl.gz", [hard, ROWS["arc"]])
    questions, reasons = sources.read_source("arc", "evaluation", tmp_path)
    assert [q.upstream_id for q in questions] == ["arc:a2", "arc:a1"]
    assert reasons == Counter({"id: stands twice; the first row is used": 1})


def test_another_schema_is_named(tmp_path):
    write_jsonl(tmp_path / "gsm8k" / "train.jsonl.gz", [{"q": "1+1?", "a": "2"}])
    with pytest.raises(PoolError, match=r"gsm8k: needs the columns question, answer; found a, q"):
        sources.read_source("gsm8k", "train", tmp_path)
    write_jsonl(tmp_path / "gsm8k" / "train.jsonl.gz", [])
    with pytest.raises(PoolError, match="gsm8k: no rows were found for train"):
        sources.read_source("gsm8k", "train", tmp_path)
    with pytest.raises(PoolError, match="did you mean gsm8k"):
        sources.read_source("gsm8", "train", tmp_path)
    with pytest.raises(PoolError, match="use train or evaluation"):
        sources.read_source("gsm8k", "test", tmp_path)


def test_one_split_is_divided_by_a_stable_hash(tmp_path):
    rows = [{**ROWS["math"], "unique_id": f"test/algebra/{i}.json"} for i in range(400)]
    write_jsonl(tmp_path / "math500" / "test.jsonl.gz", rows)
    train, evaluation = ({q.upstream_id for q in sources.read_source("math", w, tmp_path)[0]} for w in WHICH)
    assert not train & evaluation and len(train | evaluation) == 400
    assert 250 <= len(train) <= 310
    # the same on every machine and in every version
    assert [f"math:test/algebra/{i}.json" in train for i in range(4)] == [False, True, True, True]


def test_transfer_sets(tmp_path):
    rows = [
        {"base": {"question": "Who?"}},
        {"base": {"question": "Who?"}},
        {"base": None},
        {"base": {"question": "What?"}},
    ]
    write_jsonl(tmp_path / "sycophancy_answer" / "train.jsonl.gz", rows)
    assert sources.transfer_texts("sycophancy_answer", tmp_path) == ["Who?", "What?"]
    with pytest.raises(PoolError, match=r"gsm_plus.*holds no testmini"):
        sources.transfer_texts("gsm_plus", tmp_path)
    write_jsonl(tmp_path / "gsm_plus" / "testmini.jsonl.gz", [{"x": 1}])
    with pytest.raises(PoolError, match=r"no row has the columns question, seed_question; found x"):
        sources.transfer_texts("gsm_plus", tmp_path)


# ---------------------------------------------------------------- real rows


def report(name: str, which: str) -> None:
    questions, reasons = sources.read_source(name, which, DATA)
    n_rows = len(questions) + reasons.total()
    classes = Counter(c for q in questions for c in {m.wrong_class for m in q.mistakes})
    two, three = (sum(len(q.mistakes) >= k for q in questions) / len(questions) for k in (2, 3))
    print(f"\n{name} {which}: {n_rows} rows, {len(questions)} questions; 2 mistakes {two:.3f}, 3 {three:.3f}")
    print(f"  classes {dict(classes.most_common())}\n  refused {dict(reasons)}")
    assert len({q.upstream_id for q in questions}) == len(questions)
    # MATH is the one set whose answers are mostly no plain numbers
    assert len(questions) >= (0.6 if name == "math" else 0.95) * n_rows
    if name != "strategyqa":
        assert two > 0.9
    for question in questions if len(questions) <= 1500 else random.Random(0).sample(questions, 1500):
        check(question)


@needs_rows
@pytest.mark.parametrize("name", SOURCES)
def test_real_evaluation_rows(name):
    report(name, "evaluation")


@needs_rows
@pytest.mark.slow
@pytest.mark.parametrize("name", SOURCES)
def test_real_training_rows(name):
    report(name, "train")


@needs_rows
def test_real_transfer_rows():
    counts = {name: len(sources.transfer_texts(name, DATA)) for name in TRANSFER}
    assert counts == {"gsm_ic": 1090, "gsm_plus": 2700, "sycophancy_answer": 1813}
    assert len(sources.local_files(DATA, [*SOURCES, *TRANSFER])) == 23


ODDITIES = (
    None, "", "   ", 0, 1, -1, 3.5, float("nan"), True, [], ["A", "B"], [None], {}, {"label": ["A"], "text": ["x"]},
    {"label": "A", "text": None}, "\x00", "\ud800", "x" * 100_000, "9" * 5000, "<<1/0=0>>#### 1", "#### " + "1" * 400,
    "<<" + "(" * 150 + "1=1>>\n#### 1", "( 1.0 / 0.0 )", "\\frac{1}{0}", "$" * 3000, "[asy]", b"bytes", "1e999", "А",
)  # fmt: skip


def mutated(rng: random.Random, row: dict) -> dict:
    row = json.loads(json.dumps(row))
    for _ in range(rng.choice((1, 1, 2, 3))):
        column = rng.choice(list(row) or ["question"])
        action, value = rng.randrange(5), row.get(column)
        if action == 0:
            row.pop(column, None)
        elif action == 1 and isinstance(value, str) and value:
            start = rng.randrange(len(value))
            row[column] = value[:start] + rng.choice(("", "<", "####", "{", "=", "\n", "9" * 40)) + value[start + 1 :]
        elif action == 2 and isinstance(value, str):
            row[column] = value * rng.choice((2, 50))
        elif action == 3 and isinstance(value, dict) and value:
            row[column] = {**value, rng.choice(list(value)): rng.choice(ODDITIES)}
        else:
            row[column] = rng.choice(ODDITIES)
    return row


@pytest.mark.parametrize("name", SOURCES)
def test_mutated_rows_never_crash(name):
    rng = random.Random(f"mutate/{name}")
    rows = [ROWS[name]]
    if DATA.is_dir():
        files = sources.local_files(DATA, [name])
        rows = [row for _, row in read_rows(files[-1]) if isinstance(row, dict)][:200]
    outcomes = Counter()
    for number in range(2000):
        found = SOURCES[name].read(mutated(rng, rng.choice(rows)), str(number))
        outcomes["question" if isinstance(found, Question) else found] += 1
        if isinstance(found, Question) and number % 20 == 0:
            check(replace(found, topic="topic"))
        elif isinstance(found, str):
            assert ": " in found and len(found) < 200, found
    assert len(outcomes) >= 4, outcomes


# ---------------------------------------------------------------- questions of the user's own


def both(path: Path, columns: dict | None = None) -> tuple[dict[str, Question], Counter]:
    """Question text -> question, of both pools together, and the reasons."""
    (train, reasons), (evaluation, _) = (custom_questions(path, columns or {}, which) for which in WHICH)
    assert not {q.question for q in train} & {q.question for q in evaluation}
    for question in [*train, *evaluation]:
        check(question)
    return {q.question: q for q in [*train, *evaluation]}, reasons


def table(path: Path, rows: list[dict]) -> Path:
    if path.suffix == ".csv":
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, list(dict.fromkeys(name for row in rows for name in row)))
            writer.writeheader()
            writer.writerows(rows)
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("row", "gold", "options"),
    [
        ({"prompt": "Q?", "choices": ["red", "blue"], "target": "B"}, "blue", ("red", "blue")),
        ({"Question": "Q?", "Options": '["red", "blue"]', "Answer": "red"}, "red", ("red", "blue")),
        ({"query": "Q?", "options": "A) red | B) blue", "gold": "b)"}, "blue", ("red", "blue")),
        ({"problem": "Q?", "options": "red|blue", "correct": "Blue."}, "blue", ("red", "blue")),
        ({"question": "Q?", "options": "A. red\nB. blue", "answer": "B. blue"}, "blue", ("red", "blue")),
        (
            {"question": "Q?", "option_a": "red", "option_b": "blue", "option_c": "", "answer": "A"},
            "red",
            ("red", "blue"),
        ),
        ({"question": "Q?", "A": "red", "B": "blue", "answer": "B"}, "blue", ("red", "blue")),
        ({"question": "Q?", "option1": "red", "option2": "blue", "label": "blue"}, "blue", ("red", "blue")),
        ({"text": "Q?", "choices": ["red", "blue", "sky"], "label": 0}, "red", ("red", "blue", "sky")),
        ({"text": "Q?", "choices": ["red", "blue", "sky"], "answer_index": "1"}, "blue", ("red", "blue", "sky")),
        ({"question": "Q?", "options": {"A": "red", "B": "blue"}, "answer": "blue", "answer_idx": "B"}, "blue", None),
        ({"question": "Q?", "choices": {"text": ["red", "blue"], "label": ["A", "B"]}, "answerKey": "B"}, "blue", None),
        ({"question": "Q?", "options": ["3", "4"], "answer": 4}, "4", ("3", "4")),
        ({"question": "Q?", "answer": "TRUE"}, "yes", ()),
        ({"question": "Q?", "label": False}, "no", ()),
        ({"question": "Q?", "answer": "1,250"}, "1250", ()),
        ({"question": "Q?", "answer": 12.0}, "12", ()),
        ({"question": "Q?", "solution": "3/4"}, "3/4", ()),
        ({"question": "Q?", "answer": "$12.50"}, "12.50", ()),
    ],
)
def test_forms_of_a_custom_row(tmp_path, row, gold, options):
    questions, reasons = both(table(tmp_path / "q.jsonl", [row]))
    assert questions["Q?"].gold == gold and not reasons
    assert options is None or questions["Q?"].options == options
    assert questions["Q?"].source == "custom" and questions["Q?"].provenance == "human_authored"


GOOD = {"question": "Good?", "answer": "yes"}


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({"answer": "a poem"}, "answer: is neither yes/no nor a number, and the row has no options"),
        ({"answer": ""}, "answer: is missing"),
        ({"answer": ["1", "2"]}, "answer: is a list"),
        ({"answer": "C", "options": ["red", "blue"]}, "answer: names none of the options"),
        ({"answer": "B", "options": ["B", "A"]}, "can be read as the letter"),
        ({"answer_index": 1, "options": ["1", "2"]}, "can be read as the letter or number"),
        ({"answer": 1, "options": ["red", "blue"]}, "or map answer_index"),
        ({"answer": "red", "answer_index": 1, "options": ["red", "blue"]}, "name different options"),
        ({"answer": "5", "answer_type": "boolean"}, "answer_type: is boolean, which does not fit"),
        ({"answer": "yes", "answer_type": "numeric"}, "answer_type: is numeric, which does not fit"),
        ({"answer": "5", "answer_type": "multiple_choice"}, "which does not fit"),
        ({"answer": "5", "answer_type": "open"}, "answer_type: is unknown"),
        ({"answer": "5", "wrong": "5.0"}, "wrong: equals the answer"),
        ({"answer": "5", "wrong": "5.5"}, "wrong: has other decimals"),
        ({"answer": "5", "wrong": "700"}, "no plausible value"),
        ({"answer": "5", "wrong": "many"}, "wrong: is no plain number"),
        ({"answer": "yes", "wrong": "yes"}, "wrong: equals the answer"),
        ({"answer": "yes", "wrong": "maybe"}, "wrong: is neither yes nor no"),
        ({"answer": "A", "wrong": "red", "options": ["red", "blue"]}, "wrong: equals the answer"),
        ({"answer": "5", "wrong": "6", "wrong_class": "bad luck"}, "wrong_class: is unknown"),
        ({"answer": "5", "question": ""}, "question: is missing"),
        ({"answer": "5", "provenance": "mine"}, "provenance: is unknown"),
    ],
)
def test_a_custom_row_that_cannot_be_used_is_named(tmp_path, row, reason):
    path = table(tmp_path / "q.jsonl", [GOOD, {"question": "Bad?", **row}])
    questions, reasons = both(path)
    assert list(questions) == ["Good?"]
    ((sentence, count),) = reasons.items()
    assert reason in sentence and count == 1 and f"(first: {path}:2)" in sentence


def test_the_given_wrong_answer_comes_first(tmp_path):
    rows = [
        {"question": "One?", "answer": "12", "wrong": "24", "wrong_class": "overgeneralization"},
        {"question": "Two?", "answer": "120", "wrong": "12,0.0"},
        {"question": "Two?", "answer": "124", "wrong": "142"},
        {"question": "Three?", "answer": "A", "options": ["red", "blue", "sky"], "wrong": "C"},
    ]
    questions, reasons = both(table(tmp_path / "q.jsonl", rows))
    firsts = {text: question.mistakes[0] for text, question in questions.items()}
    assert firsts["One?"] == foils.Mistake("24", "overgeneralization", "given")
    assert firsts["Two?"] == foils.Mistake("142", "arithmetic_slip", "given")
    assert firsts["Three?"] == foils.Mistake("sky", "near_option", "given")
    assert len(questions["Three?"].mistakes) == 2 and len(questions["One?"].mistakes) > 2
    assert reasons.total() == 1


def test_columns_are_mapped_and_constants_given(tmp_path, caplog):
    rows = [{"frage": f"Is {i} odd?", "richtig": "yes" if i % 2 else "no", "text": "x"} for i in range(200)]
    path = table(tmp_path / "q.csv", rows)
    columns = {"question": "frage", "answer": "richtig", "license": "=CC-BY-NC-4.0", "topic": "=parity"}
    questions, reasons = both(path, columns)
    assert len(questions) == 200 and not reasons
    assert {(q.license, q.topic) for q in questions.values()} == {("CC-BY-NC-4.0", "parity")}
    assert "the licence 'CC-BY-NC-4.0' of 200 rows forbids handing them on" in caplog.text
    evaluation, _ = custom_questions(path, columns, "evaluation")
    assert 40 <= len(evaluation) <= 80
    options = table(
        tmp_path / "o.csv", [{"q": "Q?", "x": "red", "y": "blue", "r": "y"}, {"q": "R?", "x": "1", "y": "2", "r": "A"}]
    )
    questions, reasons = both(options, {"question": "q", "options": "x, y", "answer": "r"})
    assert questions["R?"].gold == "1" and reasons.total() == 1


@pytest.mark.parametrize(
    ("columns", "sentence"),
    [
        ({"question": "frage"}, r"'frage' \(question\) is not there; the columns found are foo, answer"),
        ({"questoin": "foo"}, "no field is called 'questoin'; did you mean question"),
        ({}, "none is recognised as the question; say pool.columns.question=NAME; the columns found are foo, answer"),
    ],
)
def test_columns_that_are_not_there(tmp_path, columns, sentence):
    path = table(tmp_path / "q.csv", [{"foo": "Q?", "answer": "5"}])
    with pytest.raises(PoolError, match=sentence):
        custom_questions(path, columns, "train")


def test_whole_files_that_cannot_be_used(tmp_path):
    counted = [{"question": f"Q{i}?", "choices": ["red", "blue"], "label": 1 + i % 2} for i in range(4)]
    with pytest.raises(PoolError, match="answer_index: counts from 1; subtract 1"):
        custom_questions(table(tmp_path / "q.jsonl", counted), {}, "train")
    with pytest.raises(PoolError, match="none of its 1 rows can be used; answer: is neither"):
        custom_questions(table(tmp_path / "q.jsonl", [{"question": "Q?", "answer": "poem"}]), {}, "train")
    with pytest.raises(PoolError, match=r"pool.questions is empty"):
        custom_questions("", {}, "train")


def test_mutated_custom_rows_never_crash(tmp_path):
    rng = random.Random("mutate/custom")
    good = [
        {"question": "Q?", "options": ["red", "blue", "sky"], "answer": "B", "wrong": "C", "id": 1, "topic": "t"},
        {"question": "Q?", "answer": "12", "wrong": "21", "wrong_class": "misconception", "license": "MIT"},
        {"question": "Q?", "answer": "yes", "answer_type": "boolean", "provenance": "authored"},
    ]
    rows = [mutated(rng, rng.choice(good)) for _ in range(2000)]
    for number, row in enumerate(rows):
        row["question"] = (
            f"{row.get('question')} {number}" if isinstance(row.get("question"), str) else row.get("question")
        )
    path = tmp_path / "q.jsonl"
    path.write_text("".join(json.dumps(row, default=str) + "\n" for row in [*good, *rows]), encoding="utf-8")
    questions, reasons = both(path)
    assert len(questions) > 200 and len(reasons) > 10
