"""Public question sets: how a row of each becomes a question.

A source is one function under a decorator that says where its rows are. The function gets a row as
the hub has it and returns a draft, or raises Unusable with the sentence that is counted.
"""

import json
import re

from scope.pool import mistakes
from scope.pool.drafts import (
    Draft,
    Unusable,
    boolean,
    labelled,
    multiple_choice,
    number_in,
    numeric,
    place_of,
    question_in,
    redistributable,
    text_in,
    texts_in,
)
from scope.pool.upstream import (
    NOT_STATED,
    SOURCES,
    TRANSFER,
    WHICH,
    Row,
    Source,
    absent,
    local_files,
    read_source,
    source,
    transfer_texts,
)

__all__ = [
    "SOURCES",
    "TRANSFER",
    "WHICH",
    "Source",
    "absent",
    "local_files",
    "read_source",
    "redistributable",
    "transfer_texts",
]


@source(
    "strategyqa",
    "ChilleD/StrategyQA",
    columns=("question", "answer", "qid"),
    license="MIT",
    topic="general knowledge",
    train=("train",),
    evaluation=("dev",),
    hub_splits={"dev": "test"},
    id_column="qid",
)
def strategyqa(row: Row) -> Draft:
    question, answer = question_in(row, "question"), row.get("answer")
    if str(answer).casefold() not in ("true", "false"):
        raise Unusable("answer: is neither true nor false; the row has no gold answer")
    if not _asks_yes_or_no(question):
        raise Unusable("question: is not a yes/no question; leave it out")
    return boolean(question, str(answer).casefold() == "true")


_AUXILIARY = (
    r"(?:is|are|was|were|am|do|does|did|can|could|would|will|should|shall|has|have|had|may|might|must|need)(?:n't)?"
)


def _asks_yes_or_no(question: str) -> bool:
    """Whether a question opens with an auxiliary verb, has one after a comma, or is a statement with a mark."""
    if re.match(rf"(?i){_AUXILIARY}\b", question) or re.search(rf"(?i), ?{_AUXILIARY}\b", question):
        return True
    asks = re.match(r"(?i)(?:what|which|who|whom|whose|where|when|why|how)\b", question)
    return question.endswith("?") and asks is None


@source(
    "commonsense_qa",
    "tau/commonsense_qa",
    columns=("question", "choices", "answerKey", "id"),
    license=NOT_STATED,
    topic="common sense",
    train=("train",),
    evaluation=("validation",),
    id_column="id",
)
def commonsense_qa(row: Row) -> Draft:
    return _labelled_choices(question_in(row, "question"), row)


@source(
    "arc",
    "allenai/ai2_arc",
    configs=("ARC-Challenge", "ARC-Easy"),
    columns=("question", "choices", "answerKey", "id"),
    license="CC-BY-SA-4.0",
    topic="science",
    train=("train",),
    evaluation=("test",),
    folder="ai2_arc",
    id_column="id",
)
def arc(row: Row) -> Draft:
    return _labelled_choices(question_in(row, "question"), row)


@source(
    "openbookqa",
    "allenai/openbookqa",
    configs=("main",),
    columns=("question_stem", "choices", "answerKey", "id"),
    license=NOT_STATED,
    topic="science",
    train=("train",),
    evaluation=("test",),
    id_column="id",
)
def openbookqa(row: Row) -> Draft:
    return _labelled_choices(question_in(row, "question_stem"), row)


def _labelled_choices(question: str, row: Row) -> Draft:
    choices = _decoded(row.get("choices"))
    if not isinstance(choices, dict) or "label" not in choices or "text" not in choices:
        raise Unusable("choices: has no label and text lists; write both")
    labels, options = texts_in(choices["label"], "choices"), texts_in(choices["text"], "choices")
    if len(labels) != len(options):
        raise Unusable("choices: has more labels than texts, or fewer; write one label for each text")
    return multiple_choice(question, options, place_of(row.get("answerKey"), labels, "answerKey"))


def _decoded(value: object) -> object:
    """A cell of a CSV file that holds JSON, decoded; anything else as it is."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value


@source(
    "gsm8k",
    "openai/gsm8k",
    configs=("main",),
    columns=("question", "answer"),
    license="MIT",
    topic="grade-school arithmetic",
    train=("train",),
    evaluation=("test",),
)
def gsm8k(row: Row) -> Draft:
    question = question_in(row, "question")
    solution, marker, last = text_in(row, "answer").rpartition("####")
    if not marker:
        raise Unusable("answer: has no line `#### number`; the row has no gold answer")
    gold = number_in(last, "answer")
    steps = re.findall(r"<<([^<>=]{1,200})=([^<>=]{1,40})>>", solution)
    found = mistakes.worked(question, gold, steps) if steps else mistakes.unworked(question, gold, solution)
    return numeric(question, gold, found)


@source(
    "mmlu",
    "cais/mmlu",
    configs=("all",),
    columns=("question", "choices", "answer", "subject"),
    license="MIT",
    topic=lambda row: str(row.get("subject", "")).replace("_", " "),
    train=("validation", "dev"),
    evaluation=("test",),
)
def mmlu(row: Row) -> Draft:
    options = texts_in(_decoded(row.get("choices")), "choices")
    place = place_of(str(row.get("answer")), map(str, range(len(options))), "answer")
    return multiple_choice(question_in(row, "question"), options, place)


@source(
    "math",
    "HuggingFaceH4/MATH-500",
    columns=("problem", "solution", "answer", "subject", "unique_id"),
    license="MIT",
    topic=lambda row: str(row.get("subject", "")).casefold(),
    train=("test",),
    evaluation=("test",),
    folder="math500",
    id_column="unique_id",
    train_share=70,
)
def math(row: Row) -> Draft:
    question, gold = question_in(row, "problem"), number_in(text_in(row, "answer"), "answer")
    return numeric(question, gold, mistakes.unworked(question, gold, text_in(row, "solution")))


@source(
    "aqua_rat",
    "deepmind/aqua_rat",
    configs=("raw",),
    columns=("question", "options", "correct"),
    license="Apache-2.0",
    topic="algebra word problems",
    train=("validation",),
    evaluation=("test",),
)
def aqua_rat(row: Row) -> Draft:
    options = texts_in(_decoded(row.get("options")), "options")
    place = place_of(row.get("correct"), [option[:1] for option in options], "correct")
    return multiple_choice(question_in(row, "question"), [labelled(o, i) for i, o in enumerate(options[:26])], place)


@source(
    "svamp",
    "ChilleD/SVAMP",
    columns=("question_concat", "Equation", "Answer", "Type", "ID"),
    license="MIT",
    topic=lambda row: str(row.get("Type", "")).replace("Divison", "Division").replace("-", " ").casefold(),
    train=("train",),
    evaluation=("test",),
    id_column="ID",
)
def svamp(row: Row) -> Draft:
    question, gold = question_in(row, "question_concat"), number_in(text_in(row, "Answer"), "Answer")
    return numeric(question, gold, mistakes.worked(question, gold, [(text_in(row, "Equation"), gold)]))
