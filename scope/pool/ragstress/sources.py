"""The question answering sets that items are made of: their rows, from a data folder or the hub, as drafts.

Every source has two schemas: the hub's, and that of the files under a data folder where they differ.
"""

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from scope.pool.questions import PoolError
from scope.pool.ragstress.drafts import Counts, Draft, Passage, counted
from scope.pool.ragstress.passages import dump_sentences, whole
from scope.pool.upstream import local_file
from scope.tables import read_rows, rows_of

#: Paragraphs of a web page or article of the hub that are looked at, and their words at most. Ours.
PARAGRAPHS, PARAGRAPH_WORDS = 60, 250


class Unusable(Exception):
    """A row that gives no draft, and the reason as the report counts it."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a source's rows are. folder, split: under a data folder; hub: id, configuration and split, or None."""

    name: str
    folder: str
    split: str
    hub: tuple[str, str, str] | None
    license: str
    read: Callable[[Mapping[str, Any]], Draft]


def drafts_of(origin: Origin, data_dir: str | Path | None) -> tuple[list[Draft], Counts]:
    """A source's questions, and how many rows give none for which reason. PoolError where it has no rows."""
    found, reasons = [], []
    for place, row in _rows(origin, Path(data_dir) if data_dir else None):
        try:
            if isinstance(row, str):
                raise Unusable("row: cannot be read")
            draft = origin.read(row)
        except Unusable as error:
            reasons.append(str(error))
            continue
        except (KeyError, TypeError, ValueError, AttributeError):
            reasons.append("row: is not in the source's schema")
            continue
        name = str(row.get("id") or row.get("question_id") or hashlib.sha256(draft.question.encode()).hexdigest()[:12])
        found.append(_named(draft, origin, name, place))
    if not found and not reasons:
        raise PoolError(f"{origin.name}: has no rows; put its files under data_dir/{origin.folder}, or leave it out")
    return found, counted(reasons)


def _named(draft: Draft, origin: Origin, name: str, place: str) -> Draft:
    return replace(draft, id=f"{origin.name}-{name}", source=origin.name, license=origin.license, where=place)


def _rows(origin: Origin, data_dir: Path | None) -> Iterator[tuple[str, Any]]:
    if data_dir is None:
        if origin.hub is None:
            raise PoolError(f"{origin.name}: is on no hub; set data_dir, or leave it out of release.sources")
        name, config, split = origin.hub
        for place, row in rows_of(name, split, config or None):
            yield f"{name}/{config}/{split}:{place.rpartition(':')[2]}", row
        return
    path = local_file(data_dir, origin.folder, origin.split)
    if path is None:
        folder = data_dir / origin.folder
        raise PoolError(f"{folder}: holds no {origin.split}.jsonl.gz (or .jsonl, .parquet, .csv); put it there")
    for place, row in read_rows(path):
        yield f"{origin.folder}/{path.name}:{place.rpartition(':')[2]}", row


# ---------------------------------------------------------------- schemas


def _draft(question: Any, answers: list[Any], passages: tuple[Passage, ...], **more: Any) -> Draft:
    text = " ".join(str(question).split())
    spelled = tuple(dict.fromkeys(" ".join(str(each).split()) for each in answers if str(each).strip()))
    if not text or not spelled:
        raise Unusable("row: has no question or no answer")
    return Draft("", "", text, spelled, passages, **more)


def _trivia_qa(row: Mapping[str, Any]) -> Draft:
    if "passages" in row:
        return _draft(row["question"], row["answers"], _dumped(row))
    answer = row["answer"]
    pages = [*_columns(row.get("entity_pages"), "title", "wiki_context")]
    pages += _columns(row.get("search_results"), "title", "search_context")
    return _draft(row["question"], [answer["value"], *answer.get("aliases", ())], _paragraphs(pages))


def _natural_questions(row: Mapping[str, Any]) -> Draft:
    # Its answers are all that were accepted, which need not be spellings of one thing.
    return _draft(row["question"], row["answers"], _dumped(row), same_answer=False)


def _dumped(row: Mapping[str, Any]) -> tuple[Passage, ...]:
    pieces = [(each["title"].replace('""', '"'), each["text"]) for each in row["passages"]]
    return tuple(Passage(dump_sentences(title, text), title) for title, text in pieces)


def _hotpot_qa(row: Mapping[str, Any]) -> Draft:
    if row["answer"].strip().casefold() in ("yes", "no"):
        raise Unusable("question: is answered by yes or no")
    wanted = set(row["supporting_facts"]["title"])
    pieces = zip(row["context"]["title"], row["context"]["sentences"], strict=True)
    passages = [Passage(whole("".join(lines), opens=True), title, None, title in wanted) for title, lines in pieces]
    # What else the question needs stands first among the passages beside the target.
    return _draft(row["question"], [row["answer"]], tuple(sorted(passages, key=lambda each: not each.supports)))


def _search_qa(row: Mapping[str, Any]) -> Draft:
    results = row.get("search_results")
    if not results:
        raise Unusable("row: has no search results, and without them SearchQA gives no evidence")
    return _draft(row["question"], [row["answer"]], _paragraphs(_columns(results, "titles", "snippets")))


def _medqa(row: Mapping[str, Any]) -> Draft:
    options = tuple(" ".join(text.split()) for _, text in sorted(row["options"].items()))
    return _draft(row["question"], [row["answer"]], (), options=options)


def _columns(table: Any, title: str, text: str) -> Iterator[tuple[str, str]]:
    """The title and text of each entry of a table that the hub keeps as columns."""
    columns = table or {}
    texts = columns.get(text) or []
    titles = columns.get(title) or [""] * len(texts)
    yield from ((str(t or ""), str(x)) for t, x in zip(titles, texts, strict=True) if x)


def _paragraphs(pages: Any) -> tuple[Passage, ...]:
    """Paragraphs of at least three whole sentences."""
    found = []
    for title, text in pages:
        for paragraph in text.split("\n")[:PARAGRAPHS]:
            sentences = whole(paragraph) if len(paragraph.split()) <= PARAGRAPH_WORDS else ()
            if len(sentences) > 2:
                found.append(Passage(sentences, title))
    return tuple(found)


ORIGINS = {
    origin.name: origin
    for origin in (
        Origin(
            "trivia_qa",
            "trivia_qa_passages",
            "test",
            ("mandarjoshi/trivia_qa", "rc.wikipedia", "validation"),
            "none stated (TriviaQA: Apache-2.0 code, questions of their authors); text of Wikipedia, CC BY-SA 4.0",
            _trivia_qa,
        ),
        Origin(
            "natural_questions",
            "nq_passages",
            "test",
            None,
            "none stated in the copy (Natural Questions: CC BY-SA 3.0); text of Wikipedia, CC BY-SA 4.0",
            _natural_questions,
        ),
        Origin(
            "hotpot_qa",
            "hotpot_qa",
            "validation",
            ("hotpotqa/hotpot_qa", "distractor", "validation"),
            "CC BY-SA 4.0",
            _hotpot_qa,
        ),
        Origin(
            "search_qa",
            "jeopardy_all",
            "train",
            ("kyunghyuncho/search_qa", "train_test_val", "validation"),
            "none stated",
            _search_qa,
        ),
        Origin(
            "medqa",
            "medqa_usmle",
            "test",
            ("GBaker/MedQA-USMLE-4-options", "", "test"),
            "MIT",
            _medqa,
        ),
    )
}
SOURCES = tuple(ORIGINS)
