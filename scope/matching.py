"""Short answers against a reference and a foil, whatever their case, punctuation, articles and answer prefixes.

(RAG-Stress, Sec. 4.2 and App. A.4.) A text is a sequence of words and numbers, `spellings.tokens`, in which every
Chinese character stands alone, so that a phrase is found in running Chinese as it is in English.
"""

import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache

from scope import spellings

_ARTICLES = frozenset(("a", "an", "the"))
#: What may stand before an answer without being part of it.
_PREFIXES = re.compile(
    r"\s*(?:(?:the\s+)?(?:final\s+|correct\s+|short\s+)?answer(?:\s+is)?\s*[:：]?\s+|answer\s*[:：]|a\s*[:：]|it\s+is\s+"
    r"|(?:最终|正确)?答案(?:应该)?是?\s*[:：]?|答\s*[:：])",
    re.IGNORECASE,
)
_CHINESE = re.compile(r"([\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff])")


@lru_cache(100_000)
def words(text: str) -> tuple[str, ...]:
    """The text's words and numbers in one spelling each, without articles; a Chinese character is a word."""
    plain = _CHINESE.sub(r" \1 ", unicodedata.normalize("NFKC", text))
    return tuple(word for word in spellings.tokens(plain) if word not in _ARTICLES)


def answer(text: str) -> str:
    """An answer without what stands before it: `Answer:`, `The answer is`, `答案是`."""
    return _PREFIXES.sub("", text.strip(), count=1) if _PREFIXES.match(text.strip()) else text.strip()


def contains(text: str, phrases: Iterable[str]) -> bool:
    """Whether one of the phrases stands whole in the text."""
    found = words(text)
    return any(_within(found, words(phrase)) for phrase in phrases)


def equals(text: str, phrases: Iterable[str]) -> bool:
    """Whether the answer is one of the phrases and nothing else."""
    found = words(answer(text))
    return any(found == wanted for phrase in phrases if (wanted := words(phrase)))


def overlap(phrases: Iterable[str], others: Iterable[str]) -> str:
    """The first of the phrases that holds, or is held by, one of the others; empty if none does."""
    listed = list(others)
    return next((phrase for phrase in phrases if contains(phrase, listed) or _any_holds(listed, phrase)), "")


def _any_holds(texts: Iterable[str], phrase: str) -> bool:
    return any(contains(text, [phrase]) for text in texts)


def _within(found: tuple[str, ...], wanted: tuple[str, ...]) -> bool:
    n = len(wanted)
    return n > 0 and any(found[i : i + n] == wanted for i in range(len(found) - n + 1))


def is_chinese(text: str) -> bool:
    """Whether more of its letters are Chinese characters than anything else."""
    return 2 * len(_CHINESE.findall(text)) > sum(map(str.isalpha, text))
