"""Items of MisleadQA: one question about a target scope, three contexts, five options (MisleadQA, Sec. 3.1).

Shared by the builder (`scope.pool.misleadqa`) and the suite (`scope.evaluation.suites.misleadqa`).
"""

import itertools
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from scope import artifacts, spellings
from scope.columns import cell, checked, columns_of, recognise
from scope.tables import TableError, rows_of

LETTERS = "ABCD"
ABSTENTION = "Insufficient information"  # always option E
SOURCES = ("minimum_wage", "situatedqa", "ambigdocs", "condambigqa")
DIMENSIONS = ("time", "location", "entity", "condition")
SPLITS = ("main", "condition")


@dataclass(frozen=True, slots=True)
class Edit:
    """One replacement that turns G into F: characters `start` to `end` of G, exclusive, become `text`."""

    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class ScopedItem:
    """One question of MisleadQA.

    options: the texts of A to D; E is always `ABSTENTION`. gold, lure: letters. g, s, f: the contexts: true and in
    scope, true and out of scope, false and in scope. edits: what turns g into f. target, alternative: qualifiers of
    the two scopes, equal but for the one that `dimension` names. cluster: jurisdiction or upstream question, the unit
    of resampling. dependency_group: clusters joined by shared documents or distractor sources. provenance: for
    `gold`, `lure` and the two distractors (`distractors`, a list) where each fact stands in its source, and `method`,
    how g and s were worded. split: `main`, or `condition` for the supplement.
    """

    id: str
    source: str
    dimension: str
    question: str
    options: tuple[str, str, str, str]
    gold: str
    lure: str
    g: str
    s: str
    f: str
    edits: tuple[Edit, ...]
    target: Mapping[str, str]
    alternative: Mapping[str, str]
    cluster: str
    dependency_group: str
    split: str = "main"
    question_type: str = ""
    license: str = ""
    provenance: Mapping[str, Any] = field(default_factory=dict)

    @property
    def group(self) -> str:
        """The source-scope group, e.g. `situatedqa time`."""
        return f"{self.source} {self.dimension}"

    @property
    def gold_text(self) -> str:
        return self.options[LETTERS.index(self.gold)]

    @property
    def lure_text(self) -> str:
        return self.options[LETTERS.index(self.lure)]

    @property
    def distractors(self) -> tuple[str, ...]:
        """The two options that are neither gold nor lure, in their order."""
        return tuple(
            text for letter, text in zip(LETTERS, self.options, strict=True) if letter not in self.gold + self.lure
        )


# ---------------------------------------------------------------- columns

#: Our field -> likely names of its column in someone else's table.
NAMES: dict[str, tuple[str, ...]] = {
    "id": ("item_id", "uid", "qid"),
    "source": ("dataset", "data_source"),
    "dimension": ("scope_dimension", "scope", "scope_type", "mismatch"),
    "question": ("query", "question_text"),
    "options": ("choices", "answer_options"),
    "gold": ("gold_label", "gold_option", "gold_letter", "answer"),
    "lure": ("lure_label", "lure_option", "lure_letter"),
    "g": ("gold_context", "context_g", "context_gold"),
    "s": ("out_of_scope_context", "scope_context", "context_s"),
    "f": ("false_context", "context_f"),
    "edits": ("substitutions", "edit_spans"),
    "target": ("target_scope",),
    "alternative": ("alternative_scope", "lure_scope"),
    "cluster": ("cluster_id", "source_cluster"),
    "dependency_group": ("analysis_group_id", "dependency_group_id", "analysis_group"),
    "split": (),
    "question_type": ("type",),
    "license": ("licence",),
    "provenance": (),
}
_OPTION_COLUMNS = {letter: (f"option_{letter.lower()}", f"choice_{letter.lower()}") for letter in LETTERS}
_OPTIONAL = ("edits", "target", "alternative", "dependency_group", "split", "question_type", "license", "provenance")
_STRUCTURED = ("options", "edits", "target", "alternative", "provenance")
#: How others name our sources and dimensions.
_SPELLED = {
    "source": {"fred": "minimum_wage", "ramdocs": "ambigdocs"},
    "dimension": {"temporal": "time", "geographic": "location", "geo": "location", "place": "location"},
}


def load_scoped(
    path_or_hub_id: str | Path, split: str | None = None, columns: Mapping[str, str] | None = None
) -> list[ScopedItem]:
    """Read and check items of MisleadQA, in our schema or with other column names.

    path_or_hub_id: a file, data folder or hub id, as `scope.tables.rows_of` takes it, with `split`. columns: our field
    name (or A to D for the options) -> their column, or `=text` for every row; likely names need none. Gold and lure
    are letters or the text of an option. Without edits they follow from G and F; without `dependency_group` every
    cluster is its own. TableError names every fault, `file:line: field: ITEM: what was found; what to do`.
    """
    rows = list(rows_of(path_or_hub_id, split))
    given = dict(columns or {})
    known = {*NAMES, *LETTERS}
    where = f"{path_or_hub_id}:0"
    if unknown := sorted(set(given) - known):
        raise TableError([f"{where}: columns: no field is called {unknown[0]!r}; use {', '.join(NAMES)} or A to D"])
    found = recognise(columns_of(rows), {**NAMES, **_OPTION_COLUMNS}, given, where=where)
    required = [name for name in NAMES if name not in _OPTIONAL]
    if all(letter in found for letter in LETTERS):
        required.remove("options")
    recognise(columns_of(rows), {**NAMES, **_OPTION_COLUMNS}, given, required if rows else (), where)
    items, faults = checked(rows, lambda row: _read(row, found), item_faults)
    faults += [f"{where}: {fault}" for fault in cluster_faults(items)]
    if faults:
        raise TableError(faults)
    return items


def _read(row: Mapping[str, Any], columns: Mapping[str, str]) -> ScopedItem | str:
    """The row's item, or what keeps it from being one."""
    values: dict[str, Any] = {name: cell(row, columns.get(name)) for name in (*NAMES, *LETTERS)}
    name = str(values["id"])
    for structured in _STRUCTURED:
        value = values[structured]
        if isinstance(value, str) and value.lstrip()[:1] in ("[", "{"):
            try:
                values[structured] = json.loads(value)
            except ValueError as error:
                return f"{structured}: {name}: is not valid JSON ({error}); write a list or an object"
    options = values["options"] if values["options"] is not None else [values[letter] for letter in LETTERS]
    if isinstance(options, dict):
        options = [options.get(letter) for letter in LETTERS]
    options = list(options) if isinstance(options, list | tuple) else [options]
    if len(options) == 5 and options[4] == ABSTENTION:
        options = options[:4]
    if len(options) != 4 or not all(isinstance(option, str) and option.strip() for option in options):
        return f"options: {name}: are not four texts A to D; E is always {ABSTENTION!r} and may stand fifth"
    for column in ("gold", "lure"):
        if values[column] in options:
            values[column] = LETTERS[options.index(values[column])]
    texts = {}
    for column in NAMES:
        if column in _STRUCTURED:
            continue
        value = values[column]
        if value in (None, "") and column in _OPTIONAL:
            continue
        if not isinstance(value, str | int) or not str(value).strip():
            return f"{column}: {name}: is missing, empty or not text; every item needs it"
        texts[column] = _SPELLED.get(column, {}).get(str(value).casefold(), str(value))
    texts.setdefault("dependency_group", texts["cluster"])
    if texts["dimension"] == "condition":
        texts.setdefault("split", "condition")
    for column in ("target", "alternative", "provenance"):
        if values[column] is None:
            values[column] = {}
        elif not isinstance(values[column], dict):
            return f"{column}: {name}: is no object; write qualifier: text"
    edits = values["edits"]
    if edits is None:
        found = edits_between(texts["g"], texts["f"], options, texts["gold"], texts["lure"])
    else:
        try:
            found = tuple(Edit(int(e["start"]), int(e["end"]), str(e["text"])) for e in edits)
        except (TypeError, KeyError, ValueError):
            return f"edits: {name}: are no list of start, end and text; write one object an edit"
    made: dict[str, Any] = {**texts, "options": tuple(options), "edits": found}
    for column in ("target", "alternative"):
        made[column] = {str(k): str(v) for k, v in values[column].items() if v is not None}
    made["provenance"] = _plain(values["provenance"])
    return ScopedItem(**made)


def _plain(value: Any) -> Any:
    """Without the nulls that Parquet puts where rows differ in their keys."""
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items() if inner is not None}
    return [_plain(inner) for inner in value] if isinstance(value, list) else value


def edits_between(g: str, f: str, options: list[str], gold: str, lure: str) -> tuple[Edit, ...]:
    """What turns G into F: the gold's text replaced by the lure's, or else the one stretch in which they differ.

    Empty where that stretch of F does not hold the lure.
    """
    if gold not in tuple(LETTERS) or lure not in tuple(LETTERS):
        return ()
    wanted = options[LETTERS.index(lure)]
    edits = replacing(g, options[LETTERS.index(gold)], wanted)
    if edits and replayed(g, edits) == f:
        return edits
    start = _shared(g, f)
    tail = _shared(g[start:][::-1], f[start:][::-1])
    text = f[start : len(f) - tail]
    whole = f.find(wanted)  # the lure whole, where it begins or ends as the gold does
    if whole >= 0 and whole <= start and start + len(text) <= whole + len(wanted):
        tail = len(f) - whole - len(wanted)
        start, text = whole, wanted
    return (Edit(start, len(g) - tail, text),) if spellings.mentions(text, wanted) else ()


def _shared(a: str, b: str) -> int:
    """Characters with which both texts begin."""
    return next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))


def replacing(g: str, gold: str, lure: str) -> tuple[Edit, ...]:
    """An edit for every place where `gold` stands in G as written, not inside a longer word or number."""
    edits: list[Edit] = []
    start = g.find(gold)
    while gold and start >= 0:
        end = start + len(gold)
        inside = (start and g[start - 1].isalnum() and gold[0].isalnum()) or (g[end : end + 1].isalnum())
        longer = g[end : end + 1] in (",", ".") and gold[-1].isdigit() and g[end + 1 : end + 2].isdigit()
        if not inside and not longer:
            edits.append(Edit(start, end, lure))
        start = g.find(gold, end)
    return tuple(edits)


def replayed(g: str, edits: tuple[Edit, ...]) -> str | None:
    """F, made from G by its edits; None where they leave G or cross each other."""
    parts, at = [], 0
    for edit in edits:
        if not at <= edit.start < edit.end <= len(g):
            return None
        parts += [g[at : edit.start], edit.text]
        at = edit.end
    return "".join([*parts, g[at:]])


# ---------------------------------------------------------------- faults


def item_faults(item: ScopedItem) -> list[str]:
    """What is wrong with the form of one item, as `field: ITEM: what was found; what to do`."""
    faults = []

    def fault(name: str, what: str) -> None:
        faults.append(f"{name}: {item.id}: {what}")

    for name, known in (("source", SOURCES), ("dimension", DIMENSIONS), ("split", SPLITS)):
        if getattr(item, name) not in known:
            fault(name, f"unknown {getattr(item, name)!r}; use one of {', '.join(known)}")
    for name in ("gold", "lure"):
        if getattr(item, name) not in tuple(LETTERS):
            fault(name, f"{getattr(item, name)!r} is neither a letter A to D nor the text of an option; correct it")
    if item.gold == item.lure:
        fault("lure", "is the gold option; name another one")
    for one, other in itertools.combinations(range(4), 2):
        if spellings.same(item.options[one], item.options[other]):
            fault(
                "options",
                f"{LETTERS[one]} ({item.options[one]!r}) and {LETTERS[other]} ({item.options[other]!r}) are equal "
                "after normalisation, or one holds the other; make them differ",
            )
    for name in ("question", "g", "s", "f"):
        if not getattr(item, name).strip():
            fault(name, "is empty; every item needs it")
    if (item.split == "condition") != (item.dimension == "condition"):
        fault("split", f"is {item.split!r} for dimension {item.dimension!r}; condition items alone form the supplement")
    if not item.edits:
        fault("edits", "there are none, and G does not become F by putting the lure for the gold; register the spans")
    elif (made := replayed(item.g, item.edits)) is None:
        fault("edits", "lie outside G or cross each other; give ascending spans of characters of G")
    elif made != item.f:
        fault("edits", "replayed on G they do not give F; correct the spans or F")
    if item.target and item.alternative:
        if item.target.keys() != item.alternative.keys():
            fault("alternative", "has other qualifiers than target; name the same in both")
        else:
            differ = [
                k for k in item.target if spellings.normal(item.target[k]) != spellings.normal(item.alternative[k])
            ]
            if differ != [item.dimension]:
                found = ", ".join(differ) or "nothing"
                fault("alternative", f"differs from target in {found}; exactly {item.dimension} must differ")
    return faults


def cluster_faults(items: list[ScopedItem]) -> list[str]:
    """One sentence for each cluster that is split over dependency groups; a cluster is known by source and name."""
    seen: dict[tuple[str, str, str], ScopedItem] = {}
    faults = []
    for item in items:
        first = seen.setdefault((item.source, item.cluster, item.split), item)
        if first.dependency_group != item.dependency_group:
            faults.append(
                f"dependency_group: {item.id}: its cluster {item.cluster!r} lies in {item.dependency_group!r} here and "
                f"in {first.dependency_group!r} in {first.id}; a cluster lies in one group, so join the two"
            )
    return faults


# ---------------------------------------------------------------- writing


def as_row(item: ScopedItem) -> dict[str, Any]:
    """An item as a JSON object, its columns in the order of the schema."""
    row = {f.name: getattr(item, f.name) for f in fields(item)}
    row["options"] = list(item.options)
    row["edits"] = [{"start": e.start, "end": e.end, "text": e.text} for e in item.edits]
    return {name: dict(value) if isinstance(value, Mapping) else value for name, value in row.items()}


def from_row(row: Mapping[str, Any]) -> ScopedItem:
    """The item of such an object."""
    edits = tuple(Edit(**edit) for edit in row["edits"])
    return ScopedItem(**{**row, "options": tuple(row["options"]), "edits": edits})


def write_scoped(path: Path, items: list[ScopedItem]) -> None:
    """Write items as JSON lines, whole or not at all; `load_scoped` gives the same items back."""
    artifacts.write_jsonl(path, [as_row(item) for item in items])


def content_hash(item: ScopedItem) -> str:
    """SHA-256 of everything in an item, 64 hex digits."""
    return artifacts.fingerprint(as_row(item))
