"""Columns: which column of a table is which of our fields, and which spelling means which of our values.

Names and values are recognised whatever their case, spaces, hyphens and underscores. A map
`ours: theirs` settles what is not, and `ours: =text` stands for the same text in every row.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from scope.conditions import Condition
from scope.tables import Row, TableError

# ---------------------------------------------------------------- names and spellings

#: Our value -> how else it is spelled; case, spaces, hyphens and underscores do not count.
CONDITIONS: dict[str, tuple[str, ...]] = {
    Condition.CLEAN: (
        "clean_context", "no_context", "none", "original", "no_hint", "no_signal", "base", "baseline", "plain",
        "vanilla", "question_only", "cln",
    ),
    Condition.MISLEADING: (
        "misleading_context", "mislead", "mis", "wrong", "wrong_context", "wrong_hint", "adversarial", "false",
        "incorrect", "incorrect_context",
    ),
    Condition.CORRECT: (
        "correct_context", "correct_hint", "cor", "helpful", "gold", "gold_context", "true", "right", "supporting",
        "supportive",
    ),
    Condition.IRRELEVANT: (
        "irrelevant_context", "irrelevant_hint", "irr", "neutral", "neutral_context", "distractor", "distracting",
        "unrelated", "unrelated_context",
    ),
}  # fmt: skip
SYNONYMS: dict[str, dict[str, tuple[str, ...]]] = {
    "answer_type": {
        "multiple_choice": ("mcq", "mc", "mcqa", "multi_choice", "choice", "choices", "option", "letter"),
        "numeric": ("number", "numerical", "num", "integer", "int", "float", "math"),
        "boolean": ("bool", "yes_no", "true_false", "binary"),
    },
    "channel": {
        "answer_key": ("key", "answer_key_note", "solution_key"),
        "retrieved_document": ("retrieved_doc", "retrieved", "retrieval", "document", "doc", "passage", "rag"),
        "lecture_note": ("lecture", "lecture_notes"),
        "ta_note": ("ta", "ta_notes", "ta_comment", "teaching_assistant", "teaching_assistant_note"),
        "search_snippet": ("search", "snippet", "search_result", "web_search"),
        "calculator_note": ("calculator", "calc", "calculator_output"),
        "forum": ("forum_post", "forum_reply", "forum_comment"),
        "user_belief": ("user", "belief", "user_prior", "user_opinion", "user_claim"),
        "other": (),
    },
    "wrong_class": {
        "near_option": ("near_miss", "near_option_distractor", "nearby_option"),
        "misread_condition": ("misread", "misreading", "misread_conditions"),
        "arithmetic_slip": ("arithmetic", "arithmetic_error", "calculation_error", "calculation_slip"),
        "off_by_one": ("off_by_1", "off_by_one_error"),
        "misconception": ("common_misconception",),
        "overgeneralization": ("overgeneralisation", "overgeneralized"),
        "entity_confusion": ("entity", "confused_entity", "entity_swap"),
    },
    "provenance": {
        "existing_benchmark": ("existing", "benchmark", "adapted", "public_benchmark"),
        "human_authored": ("human", "human_written", "manual", "new"),
        "authored": ("generated", "synthetic"),
    },
}
_SPELLINGS = {"condition": CONDITIONS, **SYNONYMS}

#: Our field -> likely names of its column, the likeliest first.
_SHARED: dict[str, tuple[str, ...]] = {
    "answer_type": ("answer_format", "question_type", "task_type", "type", "format"),
    "gold": ("gold_answer", "correct_answer", "answer", "target", "ground_truth", "gold_label", "label"),
    "channel": ("signal_channel", "signal_source", "cue_channel", "context_channel", "signal_type", "context_source"),
    "source": ("source_dataset", "source_category", "dataset", "benchmark", "data_source"),
}
ITEM_NAMES: dict[str, tuple[str, ...]] = {
    "question": ("question_text", "problem", "query", "stem", "clean_question", "original_question"),
    "options": ("choices", "answer_choices", "answer_options", "option_list", "candidates"),
    **_SHARED,
    "wrong": (
        "wrong_answer", "plausible_wrong_answer", "plausible_wrong", "incorrect_answer", "misleading_answer",
        "misleading_target", "wrong_target", "distractor", "foil",
    ),
    "wrong_class": ("wrong_answer_class", "wrong_answer_type", "wrong_type", "error_type", "error_class"),
    "topic": ("topic_label", "topic_domain", "subject", "domain", "category"),
    "provenance": ("provenance_type", "item_provenance"),
    "upstream_id": ("source_id", "original_id", "source_problem"),
    "license": ("licence",),
    "family": (),
    "tier": (),
}  # fmt: skip
QUARTET_NAMES: dict[str, tuple[str, ...]] = {
    "chosen": ("chosen_response", "response_chosen", "preferred", "accepted", "winner"),
    "rejected": ("rejected_response", "response_rejected", "dispreferred", "loser"),
    **_SHARED,
    "chosen_source": ("chosen_from", "chosen_origin", "response_source"),
    "chosen_answer": (),
    "rejected_answer": (),
    "chosen_request": (),
    "rejected_request": (),
}
CONDITION_NAMES = (
    "condition", "condition_label", "context_condition", "condition_type", "split_condition", "variant", "setting",
    "context_type", "cue_type", "cue", "version",
)  # fmt: skip
ID_NAMES = (
    "item_id", "base_id", "group_id", "question_id", "problem_id", "quartet_id", "pair_id", "example_id", "sample_id",
    "qid", "uid", "id", "row_id", "index", "idx",
)  # fmt: skip
TEXT_NAMES = {
    "prompt": ("prompt_user", "user_prompt", "full_prompt", "prompt_text", "input", "input_text", "messages", "text"),
    "context": ("context_text", "added_context", "signal_text", "signal", "hint", "cue", "note"),
}


def folded(text: Any) -> str:
    """A name or value for comparing: lower case, letters and digits only."""
    return re.sub(r"[\W_]+", "", str(text).casefold())


_KNOWN = {
    what: {folded(name): ours for ours, others in values.items() for name in (ours, *others)}
    for what, values in _SPELLINGS.items()
}
WIDE_NAMES = {
    f"{what}_{condition}": tuple(
        name
        for alias in (condition, *CONDITIONS[condition])
        for word in (what, *TEXT_NAMES[what])
        for name in (f"{word}_{alias}", f"{alias}_{word}")
    )
    for what in TEXT_NAMES
    for condition in Condition
}
#: `q12_clean`, `q12-no-context`: what an id ends with where its rows differ by condition.
CONDITION_SUFFIX = re.compile(
    r"[\W_]+(?:"
    + "|".join(a.replace("_", r"[\W_]*") for c in Condition for a in sorted((c, *CONDITIONS[c]), key=len, reverse=True))
    + r")$",
    re.IGNORECASE,
)


def recognise(
    found: Sequence[str],
    wanted: Mapping[str, Sequence[str]],
    given: Mapping[str, str] | None = None,
    required: Iterable[str] = (),
    where: str = "columns",
) -> dict[str, str]:
    """Our name -> the table's column, for every one that is there.

    found: the table's columns. wanted: our name -> likely names, the likeliest first; our own name
    comes before them. given: a map that wins; `=text` passes through and stands for that text in
    every row. TableError names a given column that is not there, and what is missing of `required`
    with what was found and looked for. where: `file:line` for it.
    """
    by_fold: dict[str, str] = {}
    for name in found:
        by_fold.setdefault(folded(name), name)

    def column(name: str) -> str | None:
        return name if name in found else by_fold.get(folded(name))

    known: dict[str, str] = {}
    for ours, theirs in (given or {}).items():
        match = theirs if theirs.startswith("=") else column(theirs)
        if match is None:
            raise TableError([f"{where}: {theirs}: column not found; the file has {', '.join(found)}"])
        known[ours] = match
    for ours, names in wanted.items():
        free = (c for name in (ours, *names) if (c := column(name)) is not None and c not in known.values())
        if ours not in known and (first := next(free, None)) is not None:
            known[ours] = first
    faults = [
        f"{where}: {ours}: no column for it; the file has {', '.join(found)}; looked for "
        f"{', '.join(dict.fromkeys((ours, *wanted.get(ours, ()))))}; name it in columns "
        f"({ours}: THEIR_NAME, or {ours}: =VALUE for every row)"
        for ours in required
        if ours not in known
    ]
    if faults:
        raise TableError(faults)
    return known


def cell(row: Mapping[str, Any], column: str | None) -> Any:
    """A row's value in a recognised column; the text of `=text`; None without a column."""
    if column is None:
        return None
    return column[1:] if column.startswith("=") else row.get(column)


def renamed(row: dict[str, Any], columns: Mapping[str, str]) -> dict[str, Any] | str:
    """A row of our own schema with the columns of a map (ours: theirs) put in place, or the fault."""
    missing = [theirs for theirs in columns.values() if not theirs.startswith("=") and theirs not in row]
    if missing:
        return f"{missing[0]}: column not found; the row has {', '.join(sorted(row))}"
    return {**row, **{ours: cell(row, theirs) for ours, theirs in columns.items()}}


def columns_of(rows: Iterable[Row]) -> list[str]:
    """Every column that some row has, in order of appearance."""
    return list(dict.fromkeys(name for _, row in rows if isinstance(row, dict) for name in row))


def spelled(what: str, value: Any) -> Any:
    """Our spelling of a condition, answer type, channel, wrong class or provenance; the value itself if unknown."""
    return _KNOWN[what].get(folded(value), value) if isinstance(value, str | bool) else value


# ---------------------------------------------------------------- items


def checked(
    rows: Iterable[Row], read: Callable[[dict[str, Any]], Any], faults_of: Callable[[Any], Iterable[str]]
) -> tuple[list[Any], list[str]]:
    """(items, faults) of rows, each fault with its row's place.

    read: a row's item, or what keeps it from being one. faults_of: what is wrong with an item. An `id` stands once.
    """
    items: dict[str, Any] = {}
    places: dict[str, str] = {}
    faults: list[str] = []
    for place, row in rows:
        item = row if isinstance(row, str) else read(row)
        if isinstance(item, str):
            faults.append(f"{place}: {item}")
            continue
        faults += [f"{place}: {fault}" for fault in faults_of(item)]
        if item.id in items:
            faults.append(f"{place}: id: {item.id}: stands already at {places[item.id]}; give every item its own")
        items[item.id], places[item.id] = item, place
    return list(items.values()), faults
