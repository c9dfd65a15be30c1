"""Item x cell -> messages: our own wording in one TOML file, which a recipe may replace.

System message: role, task, one policy clause, rules of answer and output. User message: the question, then the passages
in their order. Strict and soft differ in the clause alone (RAG-Stress, App. A.2).
"""

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from scope.artifacts import StageError
from scope.evidence import Document, EvidenceItem
from scope.prompts import Chat, fields_of, letter
from scope.recipe import asset

#: Text -> its fields, each once.
FIELDS = {
    "closed": (),
    "system": ("policy",),
    "question": ("question",),
    "evidence": ("question", "passages"),
    "passage": ("number", "text"),
}
POLICY_KEYS = ("strict", "soft")


@dataclass(frozen=True, slots=True)
class Templates:
    """The texts of a prompts file; `strict` and `soft` hold the original clause and then its paraphrases."""

    closed: str
    system: str
    question: str
    evidence: str
    passage: str
    strict: tuple[str, ...]
    soft: tuple[str, ...]

    def closed_book(self, item: EvidenceItem) -> Chat:
        """The question without passages."""
        return Chat(self.closed, self.question.format(question=asked(item)))

    def grounded(self, item: EvidenceItem, passages: Sequence[Document], policy: str, version: int = 0) -> Chat:
        """The question with passages, under a version of a policy."""
        lines = [
            self.passage.format(number=n, text=f"{each.title}\n{each.text}" if each.title else each.text)
            for n, each in enumerate(passages, start=1)
        ]
        user = self.evidence.format(question=asked(item), passages="\n\n".join(lines))
        return Chat(self.system.format(policy=getattr(self, policy)[version]), user)


def asked(item: EvidenceItem) -> str:
    """The question, with the options of a multiple-choice one below it."""
    return "\n".join([item.question, *(f"{letter(n)}. {option}" for n, option in enumerate(item.options))])


def read_templates(name: str, versions: int = 1) -> Templates:
    """The templates of a file; StageError names a text that is missing or has other fields.

    versions: clauses that each policy needs.
    """
    path = asset(name)
    try:
        with path.open("rb") as file:
            found = tomllib.load(file)
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise StageError(
            f"{path}: the prompts cannot be read ({reason}); set evaluation.ragstress.prompts to a TOML file of "
            f"{', '.join((*FIELDS, *POLICY_KEYS))}"
        ) from error
    if unknown := sorted(set(found) - {*FIELDS, *POLICY_KEYS}):
        raise StageError(f"{path}: {unknown[0]}: is no text of it; use {', '.join((*FIELDS, *POLICY_KEYS))}")
    texts: dict[str, Any] = {key: _text(path, key, found.get(key)) for key in FIELDS}
    clauses: dict[str, Any] = {key: _clauses(path, key, found.get(key), versions) for key in POLICY_KEYS}
    return Templates(**texts, **clauses)


def _text(path: Any, key: str, text: Any) -> str:
    if not isinstance(text, str) or not text.strip():
        raise StageError(f"{path}: {key}: is missing, empty or not text; every prompts file needs it")
    try:
        used = fields_of(text)
    except ValueError as error:
        raise StageError(f"{path}: {key}: {error} (write {{{{ and }}}} for braces of the text)") from error
    if sorted(used) != sorted((field, "", None) for field in FIELDS[key]):
        shown = ", ".join(f"{{{field}}}" for field in FIELDS[key]) or "no field"
        raise StageError(f"{path}: {key}: holds {shown}, each once and without a format; correct the text")
    return text


def _clauses(path: Any, key: str, clauses: Any, versions: int) -> tuple[str, ...]:
    if not isinstance(clauses, list) or not all(isinstance(each, str) and each.strip() for each in clauses):
        raise StageError(f"{path}: {key}: is no list of clauses; write the original first, then its paraphrases")
    if len(clauses) < versions:
        raise StageError(
            f"{path}: {key}: holds {len(clauses)} clauses of the {versions} needed; write a paraphrase each"
        )
    return tuple(clauses)
