"""Items of RAG-Stress: a question, a passage that answers it, the same passage with the answer exchanged (Sec. 3.1).

Shared by the builder (`scope.pool.ragstress`) and the suites (`scope.evaluation.suites.ragstress*`).
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from scope import artifacts, matching
from scope.columns import cell, checked, columns_of, recognise
from scope.tables import TableError, rows_of

POSITIONS = ("beginning", "middle", "end")
#: The target text as its source has it, beside the three layouts.
ORIGINAL = "original"
ARMS = ("clean", "edited")
LANGUAGES = ("en", "zh")


@dataclass(frozen=True, slots=True)
class Document:
    """A passage. score: as a retriever gave it; None where there was none."""

    text: str
    title: str = ""
    score: float | None = None


@dataclass(frozen=True, slots=True)
class Layout:
    """The target text with its answer-bearing unit in one place.

    start: character at which the answer stands in both texts; `answer` in the clean one, `foil` in the edited one.
    Outside of these the two texts are equal.
    """

    clean: str
    edited: str
    start: int
    answer: str
    foil: str

    @property
    def at(self) -> float:
        """Where the middle of the answer stands in the clean text, in [0, 1]."""
        return (self.start + len(self.answer) / 2) / max(len(self.clean), 1)


@dataclass(frozen=True, slots=True)
class EvidenceItem:
    """One question of RAG-Stress.

    reference, foil: the right answer and the wrong one that the edited target supports; `aliases` and `foil_aliases`
    are other spellings. options: the texts of a multiple-choice question, whose reference and foil are two of them.
    documents: the passages but the target, in their order. slot: the target's place among all of them, from 1.
    layouts: position -> layout, and `original` where the source's own order is kept; empty for an item without
    evidence, which can be asked closed-book alone. target: what is known of the target besides its text, title and
    score. answer_kind: number, date, person, place, thing or option. provenance: where everything is from.
    """

    id: str
    source: str
    language: str
    question: str
    reference: str
    foil: str
    aliases: tuple[str, ...] = ()
    foil_aliases: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    documents: tuple[Document, ...] = ()
    slot: int = 1
    layouts: Mapping[str, Layout] = field(default_factory=dict)
    target: Mapping[str, Any] = field(default_factory=dict)
    answer_kind: str = ""
    license: str = ""
    provenance: Mapping[str, Any] = field(default_factory=dict)

    @property
    def references(self) -> tuple[str, ...]:
        """Every spelling of the right answer."""
        return (self.reference, *self.aliases)

    @property
    def foils(self) -> tuple[str, ...]:
        """Every spelling of the designated wrong answer."""
        return (self.foil, *self.foil_aliases)

    def passages(self, arm: str, layout: str, slot: int | None = None) -> list[Document]:
        """All passages in their order, the target clean or edited in one of its layouts, in its slot or another."""
        text = getattr(self.layouts[layout], arm)
        target = Document(text, self.target.get("title", ""), self.target.get("score"))
        place = (self.slot if slot is None else slot) - 1
        return [*self.documents[:place], target, *self.documents[place:]]


# ---------------------------------------------------------------- reading

#: Our field -> likely names of its column in someone else's table.
NAMES: dict[str, tuple[str, ...]] = {
    "id": ("item_id", "uid", "qid"),
    "source": ("dataset", "data_source"),
    "language": ("lang",),
    "question": ("query", "question_text"),
    "reference": ("gold", "reference_answer", "gold_answer"),
    "foil": ("foil_answer", "counterfactual_answer"),
    "aliases": ("answer_aliases", "reference_aliases"),
    "foil_aliases": (),
    "options": ("choices", "answer_options"),
    "documents": ("distractors", "distractor_passages"),
    "slot": ("target_slot",),
    "layouts": (),
    "target": (),
    "answer_kind": ("answer_type",),
    "license": ("licence",),
    "provenance": (),
}
_REQUIRED = ("id", "source", "language", "question", "reference", "foil")


def load_evidence(
    path_or_hub_id: str | Path, split: str | None = None, columns: Mapping[str, str] | None = None
) -> list[EvidenceItem]:
    """Read and check items, in our schema or with other column names.

    path_or_hub_id: a file, data folder or hub id, as `scope.tables.rows_of` takes it, with `split`. columns: our field
    name -> their column, or `=text` for every row; likely names need none. TableError names every fault,
    `file:line: field: ITEM: what was found; what to do`.
    """
    rows = list(rows_of(path_or_hub_id, split))
    found = recognise(columns_of(rows), NAMES, dict(columns or {}), _REQUIRED, f"{path_or_hub_id}:0")
    items, faults = checked(rows, lambda row: _read(row, found), item_faults)
    if faults:
        raise TableError(faults)
    return items


def _read(row: Mapping[str, Any], columns: Mapping[str, str]) -> EvidenceItem | str:
    """The row's item, or what keeps it from being one."""
    values = {name: value for name in NAMES if (value := cell(row, columns.get(name))) is not None}
    name = str(values.get("id"))
    for field_name in _REQUIRED:
        if not isinstance(values.get(field_name), str | int) or not str(values[field_name]).strip():
            return f"{field_name}: {name}: is missing, empty or not text; every item needs it"
    for key, value in values.items():
        if isinstance(value, str) and key not in _REQUIRED and value.lstrip()[:1] in ("[", "{"):
            try:
                values[key] = json.loads(value)
            except ValueError as error:
                return f"{key}: {name}: is not valid JSON ({error}); write a list or an object"
    try:
        return from_row({k: str(v) if k in _REQUIRED else v for k, v in values.items()})
    except (TypeError, KeyError, ValueError, AttributeError) as error:
        return (
            f"documents, layouts or lists: {name}: cannot be read ({error}); write them as scope/evidence.py has them"
        )


# ---------------------------------------------------------------- faults


def item_faults(item: EvidenceItem) -> list[str]:
    """What is wrong with one item, as `field: ITEM: what was found; what to do`."""
    faults = []

    def fault(name: str, what: str) -> None:
        faults.append(f"{name}: {item.id}: {what}")

    if item.language not in LANGUAGES:
        fault("language", f"unknown {item.language!r}; use one of {', '.join(LANGUAGES)}")
    else:
        texts = {"question": item.question} | {f"layouts.{name}": each.clean for name, each in item.layouts.items()}
        for name, text in texts.items():
            if matching.is_chinese(text) != (item.language == "zh"):
                fault(name, f"is not in the item's language, {item.language}; do not mix languages in an item")
    if same := matching.overlap(item.foils, item.references):
        fault("foil", f"{same!r} equals the reference or an alias, or one holds the other; take another one")
    if item.options:
        for name in ("reference", "foil"):
            if getattr(item, name) not in item.options:
                fault(name, f"{getattr(item, name)!r} is none of the options; write it as its option is written")
        if len({matching.words(option) for option in item.options}) < len(item.options):
            fault("options", "two of them are equal after normalisation; make them differ")
    for n, document in enumerate(item.documents, 1):
        # The options of a question may well stand in its passages.
        held = "" if item.options else next((p for p in item.references + item.foils if _in(document, p)), "")
        if held:
            fault("documents", f"passage {n} beside the target names {held!r}; take another passage")
        if not document.text.strip():
            fault("documents", f"passage {n} beside the target is empty; leave it out")
    if item.layouts and not 1 <= item.slot <= len(item.documents) + 1:
        fault("slot", f"{item.slot} is no place among {len(item.documents) + 1} passages; use 1 to that number")
    if missing := [name for name in POSITIONS if item.layouts and name not in item.layouts]:
        fault("layouts", f"there is none for {missing[0]}; give all three, or none for a closed-book item")
    for name, layout in item.layouts.items():
        for sentence in _layout_faults(item, layout):
            fault(f"layouts.{name}", sentence)
    title = str(item.target.get("title") or "")
    if held := next((p for p in item.references + item.foils if matching.contains(title, [p])), ""):
        fault("target", f"its title names {held!r}; leave the titles out")
    return faults


def _in(document: Document, phrase: str) -> bool:
    return matching.contains(f"{document.title}\n{document.text}", [phrase])


def _layout_faults(item: EvidenceItem, layout: Layout) -> list[str]:
    found = []
    clean, edited = (
        (text[: layout.start], text[layout.start : layout.start + len(span)], text[layout.start + len(span) :])
        for text, span in ((layout.clean, layout.answer), (layout.edited, layout.foil))
    )
    if (clean[1], edited[1]) != (layout.answer, layout.foil):
        where = f"at character {layout.start}"
        found.append(f"{layout.answer!r} and {layout.foil!r} do not stand {where}; correct the span")
    elif clean[::2] != edited[::2]:
        found.append("the clean and the edited text differ outside of the edit; exchange the answer alone")
    if not matching.contains(layout.clean, item.references):
        found.append(f"the clean text does not name {item.reference!r}; take a passage that supports it")
    if held := next((p for p in item.references if matching.contains(layout.edited, [p])), ""):
        found.append(f"the edit leaves {held!r} standing; exchange every mention, or take another passage")
    if not matching.contains(layout.edited, item.foils):
        found.append(f"the edited text does not name {item.foil!r}; put the foil where the answer was")
    if held := next((p for p in item.foils if matching.contains(layout.clean, [p])), ""):
        found.append(f"the clean text names the foil {held!r}; take another foil")
    return found


# ---------------------------------------------------------------- writing


def as_row(item: EvidenceItem) -> dict[str, Any]:
    """An item as a JSON object, its columns in the order of the schema."""
    row = asdict(item)
    row["layouts"] = {name: asdict(each) | {"at": round(each.at, 4)} for name, each in item.layouts.items()}
    return row


def from_row(row: Mapping[str, Any]) -> EvidenceItem:
    """The item of such an object."""
    made = dict(row)
    for name in ("aliases", "foil_aliases", "options"):
        made[name] = tuple(str(text) for text in made.get(name) or ())
    made["documents"] = tuple(Document(**_plain(each)) for each in made.get("documents") or ())
    layouts = {name: each for name, each in (made.get("layouts") or {}).items() if each}
    made["layouts"] = {name: Layout(**{k: v for k, v in each.items() if k != "at"}) for name, each in layouts.items()}
    for name in ("target", "provenance"):
        made[name] = _plain(made.get(name) or {})
    return EvidenceItem(**made)


def _plain(value: Mapping[str, Any]) -> dict[str, Any]:
    """Without the nulls that Parquet puts where rows differ in their keys."""
    return {key: inner for key, inner in value.items() if inner is not None}


def write_evidence(path: Path, items: list[EvidenceItem]) -> None:
    """Write items as JSON lines, whole or not at all; `load_evidence` gives the same items back."""
    artifacts.write_jsonl(path, [as_row(item) for item in items])


def content_hash(item: EvidenceItem) -> str:
    """SHA-256 of everything in an item, 64 hex digits."""
    return artifacts.fingerprint(as_row(item))
