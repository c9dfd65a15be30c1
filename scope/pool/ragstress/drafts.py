"""What every source hands over: questions with their answers and passages, before a target or a foil is chosen."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

#: Reason -> how many rows or questions were left out for it.
Counts = dict[str, int]


class Excluded(Exception):
    """A question that gives no item, and the reason as the report counts it."""


@dataclass(frozen=True, slots=True)
class Passage:
    """A passage as whole sentences. supports: whether it may be the target; score: a retriever's, if there is one.

    written: the passage as someone wrote it, where it stands so beside a target; empty: its sentences joined.
    """

    sentences: tuple[str, ...]
    title: str = ""
    score: float | None = None
    supports: bool = True
    written: str = ""

    def text(self, language: str = "en") -> str:
        """The passage as written, else its sentences joined as the language joins them."""
        return self.written or joined(self.sentences, language)


@dataclass(frozen=True, slots=True)
class Draft:
    """A question before it is an item.

    answers: every accepted spelling, the likeliest first. same_answer: whether these are spellings of one thing rather
    than several right answers. foil: the wrong answer that the source designates; empty: to be chosen. where:
    `folder/file:line`. clips: whether passages may be cut to the caps on words.
    """

    id: str
    source: str
    question: str
    answers: tuple[str, ...]
    passages: tuple[Passage, ...] = ()
    language: str = "en"
    options: tuple[str, ...] = ()
    foil: str = ""
    same_answer: bool = True
    license: str = ""
    where: str = ""
    clips: bool = True
    extra: Mapping[str, Any] = field(default_factory=dict)


def joined(sentences: Iterable[str], language: str) -> str:
    """Sentences in one text: with spaces between them, in Chinese without."""
    return ("" if language == "zh" else " ").join(sentences)


def counted(reasons: Iterable[str]) -> Counts:
    """Reason -> how often, in order of name."""
    found: Counts = {}
    for reason in sorted(reasons):
        found[reason] = found.get(reason, 0) + 1
    return found
