"""Anyone's own rows of question, answer and retrieved documents as items (multi-document contexts as users have them).

A row's documents are all kept, in their order and whole; the target is the one that supports the answer, where it was
retrieved. English and Chinese.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from scope import evidence, matching
from scope.columns import cell, columns_of, recognise
from scope.evidence import LANGUAGES, EvidenceItem
from scope.pool.ragstress import foils, mentions, targets
from scope.pool.ragstress.build import closed_book, finished, names_of, option_foil
from scope.pool.ragstress.drafts import Draft, Excluded, Passage, counted, joined
from scope.pool.ragstress.foils import Foil
from scope.pool.ragstress.kinds import Kind, kind_of
from scope.pool.ragstress.lexicon import Lexicon, learned
from scope.pool.ragstress.passages import whole
from scope.schema import ReleaseConfig
from scope.tables import TableError, rows_of

#: Our field -> likely names of its column in someone else's table.
NAMES: dict[str, tuple[str, ...]] = {
    "question": ("query", "question_text", "problem"),
    "answer": ("answers", "gold", "gold_answer", "gold_answers", "reference", "correct_answer"),
    "documents": ("passages", "contexts", "ctxs", "context", "retrieved", "retrieved_documents", "docs"),
    "id": ("item_id", "qid", "question_id", "uid"),
    "foil": ("foil_answer", "counterfactual_answer", "wrong_answer"),
    "aliases": ("answer_aliases",),
    "options": ("choices", "answer_options"),
    "language": ("lang",),
    "source": ("dataset",),
    "license": ("licence",),
}
_DOCUMENT = {
    "text": ("contents", "passage", "snippet", "content", "body"),
    "title": ("name",),
    "score": ("similarity",),
}


def items_of(
    path: str | Path, seed: int, settings: ReleaseConfig, columns: Mapping[str, str] | None = None
) -> tuple[list[EvidenceItem], dict[str, int]]:
    """The items of a file of rows, and how many rows give none for which reason.

    path: a file of `scope.tables.KINDS`, a data folder or a hub id. A row has `question`, `answer` (a text, or a list:
    the reference first, its aliases after it) and `documents`: texts, or objects of `text` and perhaps `title` and
    `score`, in the order of retrieval; besides perhaps `id`, `foil`, `options`, `language` (en or zh; else by the
    question's script), `aliases`, `source` and `license`. columns: our field name -> their column, or `=text`. Lists
    may be JSON in a cell. Without `foil` it is an option, or a value near by, or another row's answer of the same kind.
    Of settings only `titles` counts: whether titles are shown. Documents that name the foil, or the reference beside
    the target, leave the row out. A row without documents is asked closed-book alone.

    Raises TableError with `file:line: field: what was found; what to do` for every bad row.
    """
    rows = list(rows_of(path))
    found = recognise(columns_of(rows), NAMES, dict(columns or {}), ("question", "answer"), f"{path}:0")
    drafts, faults = [], []
    places: dict[str, str] = {}
    for number, (where, row) in enumerate(rows, 1):
        draft = row if isinstance(row, str) else _draft(row, found, where, number)
        if isinstance(draft, str):
            faults.append(f"{where}: {draft}")
        elif draft.id in places:
            faults.append(f"{where}: id: {draft.id!r} stands already at {places[draft.id]}; give every row its own")
        else:
            places[draft.id] = where
            drafts.append(draft)
    if faults:
        raise TableError(faults)
    lexicon = learned(drafts)
    known = foils.library(drafts, lexicon)
    items, reasons = [], []
    for draft in drafts:
        try:
            item = _item(draft, known, lexicon, seed, settings)
            if failed := evidence.item_faults(item):
                raise Excluded(f"item: {failed[0].partition(':')[0]}: breaks a rule of the schema")
        except Excluded as error:
            reasons.append(str(error))
        else:
            items.append(item)
    return items, counted(reasons)


def _item(
    draft: Draft, known: list[foils.Answer], lexicon: Lexicon, seed: int, settings: ReleaseConfig
) -> EvidenceItem:
    if not draft.passages and draft.options:
        return closed_book(draft, seed)
    if not draft.passages:
        foil = _foil(draft, None, known, lexicon, seed, [draft.question])
        return _without_evidence(draft, foil)
    target = targets.chosen(draft, settings.target_words)
    clean = joined(target.sentences, draft.language)
    beside = [passage for place, passage in enumerate(draft.passages) if place != target.place]
    texts = [passage.text(draft.language) for passage in beside]
    foil = _foil(draft, target, known, lexicon, seed, [clean, *([] if draft.options else [draft.question, *texts])])
    for passage in () if draft.options else beside:
        if names_of(passage, draft.language, mentions.usable(draft.answers), target.reference, foil, settings.titles):
            raise Excluded("documents: one beside the target names the reference or the foil")
    return finished(draft, target, foil, beside, settings, slot=target.place + 1)


def _foil(
    draft: Draft,
    target: targets.Target | None,
    known: list[foils.Answer],
    lexicon: Lexicon,
    seed: int,
    taken: list[str],
) -> Foil:
    """The row's own foil, an option, or one that is chosen as the builder chooses it."""
    if draft.options:
        return Foil(option_foil(draft, seed, taken), (), Kind("option", "option"), "options")
    if not draft.foil:
        return foils.choose(draft, target, known, lexicon, seed, taken)
    if any(targets.same_value(draft.foil, answer) for answer in draft.answers):
        raise Excluded("foil: equals the reference or an alias, or one holds the other")
    if any(mentions.named(text, [draft.foil]) for text in taken):
        raise Excluded("foil: stands in the question, the target or a document beside it already")
    reference = target.reference if target else draft.answers[0]
    return Foil(draft.foil, (), kind_of(draft.question, reference, lexicon), "row")


def _without_evidence(draft: Draft, foil: Foil) -> EvidenceItem:
    return EvidenceItem(
        id=draft.id,
        source=draft.source,
        language=draft.language,
        question=draft.question,
        reference=draft.answers[0],
        foil=foil.text,
        aliases=draft.answers[1:],
        foil_aliases=foil.spellings,
        answer_kind=foil.kind.name,
        license=draft.license,
        provenance={"row": draft.where, "form": foil.kind.form, "foil_from": foil.origin},
    )


# ---------------------------------------------------------------- rows


def _draft(row: Mapping[str, Any], columns: Mapping[str, str], where: str, number: int) -> Draft | str:
    """The row's draft, or `field: what was found; what to do`."""
    values = {name: cell(row, columns.get(name)) for name in NAMES}
    question = " ".join(str(values["question"] or "").split())
    if not question:
        return "question: is empty; every row needs one"
    answers = _texts(values["answer"])
    if not answers:
        return "answer: is empty or no text; write a text, or a list with the reference first and its aliases after it"
    options, aliases = _texts(values["options"]), _texts(values["aliases"])
    if options is None or aliases is None:
        return f"{'options' if options is None else 'aliases'}: is no list of texts; write one, as JSON in a table"
    language = str(values["language"] or ("zh" if matching.is_chinese(question) else "en"))
    if language not in LANGUAGES:
        return f"language: unknown {language!r}; use one of {', '.join(LANGUAGES)}"
    if matching.is_chinese(question) != (language == "zh"):
        return f"language: the question is not in {language}; do not mix languages in a row"
    passages = _passages(values["documents"], language)
    if isinstance(passages, str):
        return passages
    foil = " ".join(str(values["foil"] or "").split())
    if options and answers[0] not in options:
        return f"options: the answer {answers[0]!r} is none of them; write it as its option is written"
    if options and foil and foil not in options:
        return f"foil: {foil!r} is none of the options; write it as its option is written, or leave it out"
    return Draft(
        id=str(values["id"] if values["id"] not in (None, "") else f"row-{number}"),
        source=str(values["source"] or "custom"),
        question=question,
        answers=tuple(dict.fromkeys([*answers, *aliases])),
        passages=passages,
        language=language,
        options=tuple(options),
        foil=foil,
        license=str(values["license"] or ""),
        where=where,
        clips=False,
    )


def _texts(value: Any) -> list[str] | None:
    """A text, or a list of them, as a list of plain texts; empty for nothing, None for anything else."""
    if value is None or value == "":
        return []
    if isinstance(value, str) and value.lstrip().startswith("["):
        try:
            value = json.loads(value)
        except ValueError:
            return None
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        value = [value]
    if isinstance(value, Mapping):
        value = [text for _, text in sorted(value.items())]
    if not isinstance(value, list) or not all(isinstance(each, str | int | float) for each in value):
        return None
    return [text for each in value if (text := " ".join(str(each).split()))]


def _passages(value: Any, language: str) -> tuple[Passage, ...] | str:
    """The documents as passages, or what is wrong with one of them."""
    if isinstance(value, str) and value.lstrip().startswith("["):
        try:
            value = json.loads(value)
        except ValueError as error:
            return f"documents: is not valid JSON ({error}); write a list of texts or objects"
    if value in (None, ""):
        return ()
    if not isinstance(value, list):
        return "documents: is no list; write texts, or objects of text, title and score, in their order"
    found = []
    for number, each in enumerate(value, 1):
        own = {"text": each} if isinstance(each, str) else each
        if not isinstance(own, Mapping):
            return f"documents: number {number} is neither a text nor an object; write one of them"
        names = recognise(list(own), _DOCUMENT)
        text, title, score = (cell(own, names.get(name)) for name in _DOCUMENT)
        if not isinstance(text, str) or not text.strip():
            return f"documents: number {number} has no text; fill it in, or leave the document out"
        if score is not None and (isinstance(score, bool) or not isinstance(score, int | float)):
            return f"documents: number {number} has the score {score!r}; write a number, or none"
        sentences = whole(text, language)
        plain = (" ".join(text.split()),)
        found.append(Passage(sentences or plain, str(title or ""), score, bool(sentences), plain[0]))
    return tuple(found)
