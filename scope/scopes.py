"""Items of MisleadQA: one question about a target scope, three contexts, five options (MisleadQA, Sec. 3.1).

Shared by the builder (`scope.pool.misleadqa`) and the suite (`scope.evaluation.suites.misleadqa`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

LETTERS = "ABCD"
ABSTENTION = "Insufficient information"  # always option E
SOURCES = ("minimum_wage", "situatedqa", "ambigdocs", "condambigqa")
DIMENSIONS = ("time", "location", "entity", "condition")


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
