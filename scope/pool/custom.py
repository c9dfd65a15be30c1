"""Questions of the user's own: a table with a question and an answer a row, and whatever else it has.

Columns are recognised by their names or mapped. What can be read in two ways is refused, with the row.
"""

import contextlib
import difflib
import hashlib
import json
import logging
import re
import string
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from scope.answers import ANSWER_TYPES
from scope.items import PROVENANCES, WRONG_CLASSES, normalised
from scope.pool import foils, mistakes
from scope.pool.drafts import (
    Draft,
    Unusable,
    boolean,
    labelled,
    multiple_choice,
    number_in,
    numeric,
    question_in,
    question_of,
    redistributable,
    texts_in,
)
from scope.pool.questions import PoolError, Question
from scope.tables import rows_of

log = logging.getLogger(__name__)

SOURCE = "custom"
#: Per cent of the questions, by a hash of their text, that make the evaluation pool.
EVALUATION_SHARE = 30

#: Our field -> the column names it is recognised by, the likeliest first; case, spaces and hyphens do not count.
NAMES: dict[str, tuple[str, ...]] = {
    "question": ("question", "prompt", "problem", "query", "question_text", "question_stem", "text", "input"),
    "answer": ("answer", "gold", "target", "correct_answer", "correct", "answerkey", "answer_key", "solution"),
    "answer_index": ("answer_index", "answer_idx", "label", "correct_index", "gold_index", "target_index"),
    "options": ("options", "choices", "alternatives"),
    "wrong": ("wrong", "wrong_answer", "incorrect", "incorrect_answer", "distractor"),
    "wrong_class": ("wrong_class", "error_class"),
    "topic": ("topic", "subject", "category", "domain"),
    "id": ("id", "qid", "uid", "question_id"),
    "license": ("license", "licence"),
    "answer_type": ("answer_type",),
    "provenance": ("provenance",),
}
_OPTION_COLUMN = re.compile(r"(?:option|choice|opt)_?(?P<label>[a-z]|\d{1,2})|(?P<letter>[a-z])")


def custom_questions(path: str | Path, columns: Mapping[str, str], which: str) -> tuple[list[Question], Counter[str]]:
    """The user's questions for `train` or `evaluation`, and how many rows were refused for which reason.

    path: a file or a hub id, as `tables.rows_of` takes it. columns: our field name (NAMES) -> column name,
    `=text` for the same text in every row, or for options several columns with commas between. Options are
    a list, JSON, "A) x | B) y", "x|y", lines, or one column each (option_a, option_b, ... or A, B, ...).
    The answer of a row with options is a letter or the text of one, or a 0-based number in `answer_index`.
    Raises PoolError where the columns are not found, or no row can be used.
    """
    if not str(path):
        raise PoolError("pool.questions is empty; name the file or hub id of your questions")
    if which not in ("train", "evaluation"):
        raise PoolError(f"{which!r} is no pool; use train or evaluation")
    rows = list(rows_of(path))
    found = _columns(str(path), [row for _, row in rows if isinstance(row, dict)], columns)
    cells = [(where, row if isinstance(row, str) else _cells(row, found)) for where, row in rows]
    _check_base(str(path), [cell for _, cell in cells if isinstance(cell, dict)])
    questions: dict[str, Question] = {}
    reasons: Counter[str] = Counter()
    first: dict[str, str] = {}
    for number, (where, cell) in enumerate(cells, 1):
        try:
            if isinstance(cell, str):
                raise Unusable(cell.partition(" (")[0])
            question = _question(cell, number, where)
            if question.upstream_id in questions:
                raise Unusable("id: stands twice; give every row its own id")
            questions[question.upstream_id] = question
        except Unusable as error:
            reasons[str(error)] += 1
            first.setdefault(str(error), where)
    if not questions:
        why = f"{reasons.most_common(1)[0][0]} ({next(iter(first.values()))})" if reasons else "it holds none"
        raise PoolError(f"{path}: none of its {len(cells)} rows can be used; {why}")
    _warn_of_licences(str(path), questions.values())
    kept = [q for q in questions.values() if (_percentile(q.question) < EVALUATION_SHARE) == (which == "evaluation")]
    return kept, Counter({f"{reason} (first: {first[reason]})": n for reason, n in reasons.items()})


def _percentile(question: str) -> int:
    return int.from_bytes(hashlib.sha256(normalised(question).encode("utf-8", "replace")).digest()[:8], "big") % 100


def _warn_of_licences(path: str, questions: Iterable[Question]) -> None:
    for license, count in sorted(Counter(q.license for q in questions).items()):
        if redistributable(license) is False:
            log.warning(
                "%s: the licence %r of %d rows forbids handing them on; keep the pool private", path, license, count
            )


# ---------------------------------------------------------------- columns


def _columns(path: str, rows: Sequence[Mapping[str, Any]], mapped: Mapping[str, str]) -> dict[str, str | list[str]]:
    """Our field -> column name, `=text`, or the list of option columns."""
    present = list(dict.fromkeys(str(name) for row in rows for name in row))
    listed = ", ".join(present[:40]) or "none"
    found: dict[str, str | list[str]] = {}
    for ours, theirs in mapped.items():
        if ours not in NAMES:
            near = difflib.get_close_matches(ours, list(NAMES), 3) or list(NAMES)
            raise PoolError(f"pool.columns: no field is called {ours!r}; did you mean {', '.join(near)}?")
        several = [name.strip() for name in theirs.split(",")]
        if theirs in present or theirs.startswith("="):
            found[ours] = theirs
        elif ours == "options" and len(several) > 1 and set(several) <= set(present):
            found[ours] = several
        else:
            raise PoolError(f"{path}: columns: {theirs!r} ({ours}) is not there; the columns found are {listed}")
    folded = {re.sub(r"[\s-]+", "_", name.strip().casefold()): name for name in reversed(present)}
    taken = {name for theirs in found.values() for name in (theirs if isinstance(theirs, list) else [theirs])}
    for ours, names in NAMES.items():
        likely = next((folded[name] for name in names if name in folded and folded[name] not in taken), None)
        if ours not in found and likely is not None:
            found[ours] = likely
    if "options" not in found and (separate := _option_columns(folded)):
        found["options"] = separate
    for needed in (("question",), ("answer", "answer_index")):
        if not any(name in found for name in needed):
            raise PoolError(
                f"{path}: columns: none is recognised as the {needed[0]}; "
                f"say pool.columns.{needed[0]}=NAME; the columns found are {listed}"
            )
    return found


def _option_columns(folded: Mapping[str, str]) -> list[str]:
    """option_a, option_b, ... or option1, option2, ... or A, B, ... in order, from the first without a gap."""
    labels: dict[str, str] = {}
    for name, original in folded.items():
        if match := _OPTION_COLUMN.fullmatch(name):
            labels.setdefault(match["label"] or match["letter"], original)
    for series in (list(string.ascii_lowercase), [str(i) for i in range(1, 27)], [str(i) for i in range(26)]):
        length = next((i for i, label in enumerate(series) if label not in labels), len(series))
        if length >= 2:
            return [labels[label] for label in series[:length]]
    return []


def _cells(row: Mapping[str, Any], found: Mapping[str, str | list[str]]) -> dict[str, Any]:
    cells: dict[str, Any] = {}
    for ours, theirs in found.items():
        if isinstance(theirs, list):
            cells[ours] = [row.get(name) for name in theirs]
        else:
            cells[ours] = theirs[1:] if theirs.startswith("=") else row.get(theirs)
    return {ours: None if _is_blank(value) else value for ours, value in cells.items()}


def _is_blank(value: object) -> bool:
    return value is None or value != value or (isinstance(value, str) and not value.strip())  # NaN is not itself


def _check_base(path: str, cells: Sequence[Mapping[str, Any]]) -> None:
    """Refuse an answer_index that counts from 1: no 0, and the number of options itself."""
    counted_from_one, zero = False, False
    for cell in cells:
        value = str(cell.get("answer_index"))
        if value.isdecimal():
            try:
                n_options = len(_options(cell.get("options")))
            except Unusable:
                continue
            zero |= int(value) == 0
            counted_from_one |= 0 < n_options == int(value)
    if counted_from_one and not zero:
        raise PoolError(f"{path}: answer_index: counts from 1; subtract 1, or give letters or option texts")


# ---------------------------------------------------------------- one row


def _question(cell: Mapping[str, Any], number: int, where: str) -> Question:
    draft = _draft(cell)
    own = cell.get("id")
    content = hashlib.sha256(draft.question.encode("utf-8", "replace")).hexdigest()[:8]
    provenance = str(cell.get("provenance") or "human_authored")
    if provenance not in PROVENANCES:
        raise Unusable(f"provenance: is unknown; use one of {', '.join(PROVENANCES)}")
    return question_of(
        draft,
        source=SOURCE,
        upstream_id=f"{SOURCE}:{number}-{content}" if own is None else f"{SOURCE}:{' '.join(str(own).split())}",
        topic=" ".join(str(cell.get("topic") or SOURCE).split()),
        license=" ".join(str(cell.get("license") or "").split()),
        provenance=provenance,
        where=where,
    )


def _draft(cell: Mapping[str, Any]) -> Draft:
    question = question_in(cell, "question")
    options = _options(cell.get("options"))
    answer = cell.get("answer") if cell.get("answer") is not None else cell.get("answer_index")
    if answer is None:
        raise Unusable("answer: is missing; every row needs a gold answer")
    if isinstance(answer, list | tuple | dict):
        raise Unusable("answer: is a list; give one gold answer")
    kind = _kind(cell.get("answer_type"), answer, options)
    if kind == "multiple_choice":
        places = {
            _place(cell[name], options, name) for name in ("answer", "answer_index") if cell.get(name) is not None
        }
        if len(places) > 1:
            raise Unusable("answer: and answer_index name different options; correct one of them")
        draft = multiple_choice(question, options, places.pop())
    elif kind == "boolean":
        draft = boolean(question, bool(_truth(answer)))
    else:
        gold = number_in(_plain(answer), "answer")
        draft = numeric(question, gold, mistakes.unworked(question, gold))
    return draft if cell.get("wrong") is None else _with_given(draft, cell)


def _with_given(draft: Draft, cell: Mapping[str, Any]) -> Draft:
    """The draft with the user's own wrong answer first."""
    wrong, wrong_class = cell["wrong"], str(cell.get("wrong_class") or "")
    if wrong_class and wrong_class not in WRONG_CLASSES:
        raise Unusable(f"wrong_class: is unknown; use one of {', '.join(WRONG_CLASSES)}")
    if draft.answer_type == "multiple_choice":
        value = draft.options[_place(wrong, draft.options, "wrong")]
    elif draft.answer_type == "boolean":
        truth = _truth(wrong)
        if truth is None:
            raise Unusable("wrong: is neither yes nor no; give the other of the two")
        value = "yes" if truth else "no"
    else:
        number = mistakes.written_as(Fraction(number_in(_plain(wrong), "wrong")), draft.gold)
        if number is None:
            raise Unusable("wrong: has other decimals than the answer; write both alike")
        value = number
    given = mistakes.given(value, draft.gold, draft.answer_type, wrong_class)
    if not foils.usable([given], draft.gold, draft.answer_type, draft.options):
        raise Unusable("wrong: equals the answer, or is no plausible value beside it; give another, or none")
    others = foils.usable([given, *draft.mistakes], draft.gold, draft.answer_type, draft.options)
    return replace(draft, mistakes=others)


def _kind(stated: object, answer: object, options: Sequence[str]) -> str:
    """The stated answer type if it fits the answer, else the one the answer has."""
    fits: dict[str, Callable[[], bool]] = {
        "multiple_choice": lambda: bool(options),
        "boolean": lambda: not options and _truth(answer) is not None,
        "numeric": lambda: not options and _is_number(answer),
    }
    if stated is None:
        found = next((kind for kind, test in fits.items() if test()), None)
        if found is None:
            raise Unusable("answer: is neither yes/no nor a number, and the row has no options; give it options")
        return found
    kind = str(stated).strip().casefold()
    if kind not in fits:
        raise Unusable(f"answer_type: is unknown; use one of {', '.join(ANSWER_TYPES)}")
    if not fits[kind]():
        raise Unusable(f"answer_type: is {kind}, which does not fit the row's answer and options; correct it")
    return kind


def _truth(value: object) -> bool | None:
    return {"yes": True, "true": True, "no": False, "false": False}.get(str(value).strip(" .\n").casefold())


def _plain(value: object) -> str:
    """A cell as text; a whole number that a table stored as a float is whole again."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _is_number(value: object) -> bool:
    try:
        return not isinstance(value, bool) and bool(number_in(_plain(value), "answer"))
    except Unusable:
        return False


def _options(value: object) -> list[str]:
    """The options of a cell in any of the forms that `custom_questions` names."""
    if value is None:
        return []
    if isinstance(value, str):
        with contextlib.suppress(ValueError, RecursionError):
            value = json.loads(value) if value.lstrip()[:1] in "[{" else value
    if isinstance(value, str):
        value = [part for part in re.split(r"\||\n", value) if part.strip()]
    if isinstance(value, dict):
        value = value["text"] if set(value) == {"text", "label"} else [value[key] for key in sorted(value)]
    if isinstance(value, list):
        while value and _is_blank(value[-1]):
            value = value[:-1]
    options = [" ".join(option.split()) for option in texts_in(value, "options")]
    bare = [labelled(option, i) if i < 26 else option for i, option in enumerate(options)]
    return bare if all(a != b for a, b in zip(bare, options, strict=True)) else options


def _place(value: object, options: Sequence[str], column: str) -> int:
    """The place of the one option that a letter, an index or a text names."""
    text = " ".join(str(value).split())
    found = {i for i, option in enumerate(options) if mistakes.say_the_same(option, text)}
    if column == "answer_index" and re.fullmatch(r"\d{1,2}(?:\.0)?", text):
        found.add(int(float(text)))
    if letter := re.fullmatch(r"\(?([A-Za-z])[).:]?", text):
        found.add(string.ascii_uppercase.index(letter[1].upper()))
    if with_text := re.fullmatch(r"\(?([A-Za-z])[).:]\s*(.+)", text):
        place = string.ascii_uppercase.index(with_text[1].upper())
        if place < len(options) and mistakes.say_the_same(options[place], with_text[2]):
            found.add(place)
    if len(found) > 1:
        raise Unusable(
            f"{column}: can be read as the letter or number of one option and the text of another; relabel them"
        )
    if not found or max(found) >= len(options):
        raise Unusable(f"{column}: names none of the options; give a letter or an option's text, or map answer_index")
    return found.pop()
