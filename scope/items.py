"""Item and Quartet: the schema, and reading and writing it as JSON lines or Parquet.

One row is one object with flat columns, so that pandas, polars, DuckDB and
`datasets.load_dataset` open the files directly. Published rows in other schemas are read too
(`scope.published`). Every fault of a row is one sentence that starts with `file:line: field:`.
"""

import logging
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from scope import artifacts
from scope.answers import ANSWER_TYPES, is_correct, parse_answer, same_answer
from scope.columns import columns_of, renamed
from scope.conditions import Condition
from scope.forms import Unreadable, options_of
from scope.published import item_rows, quartet_rows
from scope.tables import KINDS, Row, TableError, rows_of

log = logging.getLogger(__name__)

CHANNELS = (
    "answer_key",
    "retrieved_document",
    "lecture_note",
    "ta_note",
    "search_snippet",
    "calculator_note",
    "forum",
    "user_belief",
    "other",
)
WRONG_CLASSES = (
    "near_option",
    "misread_condition",
    "arithmetic_slip",
    "off_by_one",
    "misconception",
    "overgeneralization",
    "entity_confusion",
)
IRRELEVANT_KINDS = ("related", "unrelated")
PROVENANCES = ("existing_benchmark", "human_authored", "authored")


#: What loading raises: `faults` holds one sentence each, `file:line: field: what, and what to do`.
ItemError = TableError


@dataclass(frozen=True, slots=True)
class Item:
    """One question with its three contexts (SCOPE paper, Sec. 3.1 and App. A).

    `gold` and `wrong` are strings in the answer type's own form: an option letter, a number,
    or yes/no. `options` is empty unless the type is multiple_choice. `prompt_*` is a complete
    user prompt that is sent as it stands instead of being built (published pools have them).
    `irrelevant_kind`: `related` (about the question, without an answer) or `unrelated`. `bank`: that of its
    phrasings; `phrasing` and `irrelevant_phrasing`: their hashes. `phrasing_seen`: set by evaluation.
    `where` is `file:line` of the row, for messages only.
    """

    id: str
    source: str
    provenance: str
    topic: str
    answer_type: str
    question: str
    options: tuple[str, ...]
    gold: str
    wrong: str
    wrong_class: str
    channel: str
    context_misleading: str = ""
    context_correct: str = ""
    context_irrelevant: str = ""
    family: str = ""
    tier: str = ""
    upstream_id: str = ""
    license: str = ""
    prompt_clean: str = ""
    prompt_misleading: str = ""
    prompt_correct: str = ""
    prompt_irrelevant: str = ""
    irrelevant_kind: str = ""
    bank: str = ""
    phrasing: str = ""
    irrelevant_phrasing: str = ""
    phrasing_seen: str = ""
    where: str = field(default="", compare=False, repr=False)

    def context(self, condition: Condition) -> str:
        """The context text of a condition; empty for clean."""
        return "" if condition is Condition.CLEAN else getattr(self, f"context_{condition}")

    def prompt(self, condition: Condition) -> str:
        """The complete prompt the row carries for a condition; empty if it is to be built."""
        return getattr(self, f"prompt_{condition}")


@dataclass(frozen=True, slots=True)
class Quartet:
    """One mined (chosen, rejected) pair under four prompts (SCOPE paper, Sec. 4, Eq. 5).

    `prompt_*` are user messages. `chosen_source` is `clean` or `diagnostic`. The request ids
    lead to the stored completions that the two responses were copied from.
    """

    item_id: str
    source: str
    answer_type: str
    channel: str
    gold: str
    prompt_clean: str
    prompt_misleading: str
    prompt_correct: str
    prompt_irrelevant: str
    chosen: str
    rejected: str
    chosen_source: str
    chosen_answer: str
    rejected_answer: str
    chosen_request: str
    rejected_request: str
    where: str = field(default="", compare=False, repr=False)

    def prompt(self, condition: Condition) -> str:
        return getattr(self, f"prompt_{condition}")


@dataclass(frozen=True, slots=True)
class Completion:
    """What a model answered to one prompt, as the store keeps it.

    `request_id` is the content key of the request, `prompt_hash` that of its token ids (or text) alone.
    `finish_reason` is `stop` (ended by itself), `length` (cut by the token cap), `content_filter` (cut by the
    provider), `choice` (an option was scored, not text generated) or `error` (no answer was had; it is asked
    for again by the next run).
    `text` is everything that was generated but the end token, thinking included; of a choice, the option.
    `n_prompt_tokens` and `n_tokens` are 0 where a server does not say.
    """

    request_id: str
    prompt_hash: str
    text: str
    finish_reason: str
    n_prompt_tokens: int
    n_tokens: int
    reasoning: str = ""  # thinking that a server hands over apart from the text
    error: str = ""  # why there is no answer, without secrets
    log_probs: tuple[float, ...] = ()  # of a choice: each option's log-probability before renormalising
    seconds: float = field(default=0.0, compare=False)  # wall time of the request; of a batch, a row's share
    engine: str = ""  # what answered, with its version


_OPTIONAL = {f.name for f in fields(Item) if f.default == "" and not f.name.startswith("context_")}
_ITEM_COLUMNS = [f.name for f in fields(Item) if f.name != "where"]
_REQUIRED = [name for name in _ITEM_COLUMNS if name not in _OPTIONAL]
_QUARTET_COLUMNS = [f.name for f in fields(Quartet) if f.name != "where"]


_SURROGATE = re.compile("[\ud800-\udfff]")

# ---------------------------------------------------------------- reading


def load_items(
    path_or_hub_id: str | Path,
    split: str | None = None,
    columns: Mapping[str, str] | None = None,
    on_bad_row: str = "error",
) -> list[Item]:
    """Read and check a pool, in our own schema or as a benchmark publishes it.

    path_or_hub_id: a file that `scope.tables` reads, or a data folder or hub id, which is loaded
    through `datasets` with `split`. columns: our field name -> their column name, or `=text` for
    every row; of published rows also `condition`, `prompt` and `context`. on_bad_row: `error`
    raises ItemError with every fault, `skip` drops bad rows and logs how many.
    """
    rows = _rows(path_or_hub_id, split, columns or {}, _ITEM_COLUMNS, _REQUIRED, 3, item_rows)
    items: dict[str, Item] = {}

    def keep(where: str, row: dict[str, Any]) -> list[str]:
        if found := item_faults(row):
            return found
        item = replace(item_from_row(row), where=where)
        if item.id in items:
            return [f"id: {item.id!r} already stands at {items[item.id].where}; give every item its own id"]
        items[item.id] = item
        return []

    _keep_all(rows, keep, path_or_hub_id, on_bad_row)
    return list(items.values())


def load_quartets(
    path_or_hub_id: str | Path,
    split: str | None = None,
    columns: Mapping[str, str] | None = None,
    on_bad_row: str = "error",
) -> list[Quartet]:
    """Read quartets written by `write_rows`, or published preference rows; the arguments are those of `load_items`."""
    rows = _rows(path_or_hub_id, split, columns or {}, _QUARTET_COLUMNS, _QUARTET_COLUMNS, 0, quartet_rows)
    quartets: list[Quartet] = []

    def keep(where: str, row: dict[str, Any]) -> list[str]:
        bad = [n for n in _QUARTET_COLUMNS if not isinstance(row.get(n), str)]
        bad += [n for n in ("chosen", "rejected") if n not in bad and not row[n].strip()]
        if bad:
            return [f"{bad[0]}: missing, empty or not text; run mine.py again"]
        quartets.append(Quartet(**{n: row[n] for n in _QUARTET_COLUMNS}, where=where))
        return []

    _keep_all(rows, keep, path_or_hub_id, on_bad_row)
    return quartets


def _rows(
    path_or_hub_id: str | Path,
    split: str | None,
    columns: Mapping[str, str],
    known: Sequence[str],
    required: Sequence[str],
    slips: int,
    convert: Callable[[Sequence[Row], Mapping[str, str], str, str], list[Row]],
) -> list[Row]:
    """Rows in our own schema, with the faults of those that cannot be brought into it."""
    where = f"{path_or_hub_id}:0"
    if unknown := set(columns) - {*known, "condition", "prompt", "context"}:
        raise ItemError([f"{where}: columns: no field is called {min(unknown)!r}; use {', '.join(known)}"])
    rows = list(rows_of(path_or_hub_id, split))
    found = {*columns_of(rows), *columns}
    # With all our required columns but a few it is our own schema, in which a slip is to be named, not interpreted.
    if not found or sum(name not in found for name in required) <= slips:
        return [(place, row if isinstance(row, str) else _own(renamed(row, columns))) for place, row in rows]
    name = Path(str(path_or_hub_id).partition(":")[0]).name.removesuffix(".gz")
    source = next((name.removesuffix(kind) for kind in KINDS if name.endswith(kind)), name)
    return convert(rows, columns, source, where)


def _own(row: dict[str, Any] | str) -> dict[str, Any] | str:
    """A row of our own schema; its options are a list, also where a table without lists holds them as text."""
    if isinstance(row, str) or not isinstance(row.get("options"), str):
        return row
    try:
        options = options_of(row["options"])
    except Unreadable:
        return row
    return {**row, "options": options.texts if options else []}


def _keep_all(
    rows: Iterable[Row], keep: Callable[[str, dict[str, Any]], list[str]], source: str | Path, on_bad_row: str
) -> None:
    """Hand every row to `keep`, which returns its faults; ItemError with all of them, or a warning where they count."""
    faults: list[str] = []
    bad_rows = 0
    for where, row in rows:
        found = [row] if isinstance(row, str) else keep(where, row)
        bad_rows += bool(found)
        faults += [f"{where}: {fault}" for fault in found]
    if faults and on_bad_row != "skip":
        raise ItemError(faults)
    if bad_rows:
        log.warning("%s: skipped %d bad rows, the first: %s", source, bad_rows, faults[0])


def item_from_row(row: Mapping[str, Any]) -> Item:
    values = {name: row[name] for name in _ITEM_COLUMNS if row.get(name) is not None}
    values["options"] = tuple(row.get("options") or ())
    return Item(**values)


def item_faults(row: Mapping[str, Any]) -> list[str]:
    """Everything wrong with one row, as `field: what was found; what to do`."""
    faults: list[str] = []
    for name in _ITEM_COLUMNS:
        value = row.get(name)
        if name == "options" or (name in _OPTIONAL and value in (None, "")):
            continue
        complete = name.startswith("context_") and row.get("prompt_" + name[len("context_") :])
        if value is None:
            if not complete:
                what = "missing condition" if name.startswith("context_") else "missing"
                faults.append(f"{name}: {what}; every item needs it")
        elif not isinstance(value, str):
            faults.append(f"{name}: is {type(value).__name__} {value!r:.40}, not text; write it as a string")
        elif not value.strip() and not complete:
            faults.append(f"{name}: is empty; every item needs it")
        elif _SURROGATE.search(value):
            faults.append(f"{name}: holds a lone surrogate, which is not text; save the file as UTF-8")
    options = row.get("options") or []
    if not isinstance(options, list | tuple) or not all(isinstance(o, str) and o.strip() for o in options):
        return [*faults, "options: must be a list of non-empty strings"]
    if any(_SURROGATE.search(option) for option in options):
        faults.append("options: holds a lone surrogate, which is not text; save the file as UTF-8")
    if faults:
        return faults
    for name, known in (
        ("answer_type", ANSWER_TYPES),
        ("channel", CHANNELS),
        ("wrong_class", WRONG_CLASSES),
        ("provenance", PROVENANCES),
        ("irrelevant_kind", IRRELEVANT_KINDS),
    ):
        if row.get(name) and row[name] not in known:
            faults.append(f"{name}: unknown {row[name]!r}; use one of {', '.join(known)}")
    if faults:
        return faults
    answer_type = row["answer_type"]
    if answer_type == "multiple_choice":
        if not 2 <= len(options) <= 26:
            return [f"options: has {len(options)} options; multiple choice needs 2 to 26"]
        if len({" ".join(o.split()).casefold() for o in options}) < len(options):
            return ["options: two options are equal but for case or spacing; make them differ"]
    elif options:
        return [f"options: a {answer_type} item has none; leave the list empty"]
    n_options = len(options) or None
    answers = []
    for name in ("gold", "wrong"):
        text = row[name]
        if text != text.strip():
            faults.append(f"{name}: {text!r} has white space around it; remove it")
            continue
        if answer_type == "multiple_choice":
            last = chr(ord("A") + len(options) - 1)
            if not (len(text) == 1 and "A" <= text <= last):
                faults.append(f"{name}: {text!r} is not an option letter A to {last}")
                continue
        answer = parse_answer(text, answer_type, n_options)
        try:
            readable = is_correct(answer, text, answer_type)
        except ValueError:
            readable = False
        if not readable:
            faults.append(f"{name}: {text!r} cannot be read as a {answer_type} answer; write the bare value")
        answers.append(answer)
    if not faults and same_answer(answers[0], answers[1], answer_type):
        faults.append(f"wrong: equals the gold answer {row['gold']!r}; give a wrong one")
    return faults


def control_token_faults(items: Sequence[Item], control_tokens: Iterable[str]) -> dict[str, str]:
    """Item id -> `file:line: field: ...` for text that holds one of the tokenizer's control tokens."""
    tokens = sorted(t for t in set(control_tokens) if t.strip())
    faults: dict[str, str] = {}
    for item in items:
        texts = [(n, getattr(item, n)) for n in _ITEM_COLUMNS if n.startswith(("question", "context_", "prompt_"))]
        texts += [(f"options[{i}]", o) for i, o in enumerate(item.options)]
        for name, text in texts:
            hit = next((t for t in tokens if t in text), None)
            if hit and item.id not in faults:
                faults[item.id] = (
                    f"{item.where or item.id}: {name}: holds the tokenizer's control token {hit!r}; remove it"
                )
    return faults


# ---------------------------------------------------------------- writing


def as_row(record: Item | Quartet) -> dict[str, Any]:
    """A record as a flat JSON object; unset optional columns are left out."""
    row: dict[str, Any] = {}
    for f in fields(record):
        value = getattr(record, f.name)
        if f.name == "where" or (f.default == "" and value == ""):
            continue
        row[f.name] = list(value) if isinstance(value, tuple) else value
    return row


def write_rows(path: Path, records: Sequence[Item | Quartet]) -> None:
    """Write records as `.jsonl` or `.parquet`, whole or not at all."""
    rows = [as_row(record) for record in records]
    if path.suffix == ".parquet":
        artifacts.write_parquet(path, rows)
    else:
        artifacts.write_jsonl(path, rows)


def normalised(text: str) -> str:
    """A text folded for comparing questions: case, spacing and punctuation do not count."""
    return " ".join("".join(c if c.isalnum() else " " for c in text.casefold()).split())


def normalised_question(item: Item) -> str:
    return normalised(item.question)
