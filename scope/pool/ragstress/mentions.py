"""Where a text names an answer, in whatever spelling, whole or in part."""

import re
from collections.abc import Iterable, Sequence
from functools import cache

from scope import matching, spellings

#: Words of names that say little: many names have them.
_COMMON = frozenset(
    """
    the and for from with of de la le van von saint san new north south east west united states american british
    city county state river lake mount island great john company university king queen national house world first
    """.split()  # noqa: SIM905
)

#: What stands before an answer without being part of it: articles, prepositions of time and number, a place's kind.
_LEADING = re.compile(
    rf"^(?:(?:the|an?) (?=\S)|(?:on|in|since|over|about|around|approximately|more than|up to) "
    rf"(?=\d|(?:{'|'.join(spellings.MONTHS)})\b)|(?:the )?(?:state|island|city|county|republic|kingdom) of (?=[A-Z]))",
    re.IGNORECASE,
)


def usable(answers: Iterable[str]) -> tuple[str, ...]:
    """The spellings that can be looked for: with a letter or digit, and no lone letter or article."""
    found = []
    for answer in answers:
        text = _LEADING.sub("", " ".join(answer.split())).strip(' .,;"“”')
        text = text[:-2] if re.search(r"\w[’']s$", text) else text
        words = matching.words(text)
        if words and (len("".join(words)) > 1 or words[0].isdigit() or matching.is_chinese(text)):
            found.append(text)
    return tuple(dict.fromkeys(found))


@cache
def _pattern(answers: tuple[str, ...]) -> re.Pattern[str]:
    alternatives = []
    for answer in sorted(answers, key=lambda each: (-len(each), each)):
        body = r"[\s-]+".join(re.escape(part) for part in re.split(r"[\s-]+", answer) if part)
        if matching.is_chinese(answer):
            alternatives.append(body)
        else:
            # A short one, `US`, is not the word that is spelled like it.
            flags = "" if len(answer) > 3 else "-i"
            alternatives.append(rf"(?<![\w.,-])(?<!\d[.,])(?{flags}:{body})(?![\w-]|[.,]\d)")
    return re.compile("|".join(alternatives), re.IGNORECASE)


def spans(text: str, answers: Sequence[str]) -> list[tuple[int, int]]:
    """Start and end of every mention that stands as one of the answers is written, case aside; longest first."""
    return [found.span() for found in _pattern(tuple(answers)).finditer(text)] if answers else []


def named(text: str, answers: Iterable[str]) -> str:
    """The first of the answers that a text names, in any spelling of numbers, dates, accents and case; or empty."""
    listed = list(answers)
    return next((each for each in listed if matching.contains(text, [each]) or spellings.mentions(text, each)), "")


def parts(answer: str) -> tuple[str, ...]:
    """The words by which a name is also known: capitalised, of four letters or more, not those of many names."""
    words = re.findall(r"[^\W\d_][\w'’-]{2,}", answer)
    return tuple(w for w in words if w[0].isupper() and len(w) > 3 and w.casefold() not in _COMMON)


def partly(text: str, answer: str) -> str:
    """The first part of a name that stands in the text, capitalised as in the name; empty if none does."""
    return next((part for part in parts(answer) if re.search(rf"\b{re.escape(part)}\b", text)), "")


def partly_asked(question: str, answer: str) -> str:
    """The first part of a name that stands in the question, case aside where it has no capitals; or empty."""
    flags = "" if any(map(str.isupper, question)) else "(?i)"
    return next((part for part in parts(answer) if re.search(rf"{flags}\b{re.escape(part)}\b", question)), "")


def shares_word(a: str, b: str) -> bool:
    """Whether two answers have a distinctive word in common, or one's word begins the other's (Georgia, Georgian)."""
    one, other = ({w.casefold() for w in re.findall(r"[^\W\d_]{4,}", text)} - _COMMON for text in (a, b))
    return any(x[:5] == y[:5] for x in one for y in other)
