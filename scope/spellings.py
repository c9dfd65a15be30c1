"""Values whatever their spelling: whether a text mentions one, whether two are the same, and what kind a value is.

Case, accents, punctuation, thousands separators, currency signs, trailing zeros, number words and the way a date is
written do not count.
"""

import datetime
import re
import unicodedata
from collections.abc import Sequence
from decimal import Decimal
from functools import cache

from scope.numerals import SMALL, TENS

MONTHS = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
    "december",
)  # fmt: skip
NUMBER_WORDS = (*SMALL, TENS[0])
_MONTH = rf"(?P<month>{'|'.join(f'{m[:3]}(?:{m[3:]})?' if m != 'may' else m for m in MONTHS)})\.?"
_DATES = (
    re.compile(rf"\b{_MONTH}\s+(?P<day>\d{{1,2}})(?:st|nd|rd|th)?\s*,?\s+(?P<year>\d{{4}})\b"),
    re.compile(rf"\b(?P<day>\d{{1,2}})(?:st|nd|rd|th)?\s+(?:of\s+)?{_MONTH}\s*,?\s+(?P<year>\d{{4}})\b"),
    re.compile(r"\b(?P<year>\d{4})-(?P<month>\d{2})-(?P<day>\d{2})\b"),
    re.compile(r"\b(?P<month>\d{1,2})/(?P<day>\d{1,2})/(?P<year>\d{4})\b"),
)
_TOKEN = re.compile(r"date:[\d:]+|\d+(?:\.\d+)?|[^\W\d_]+")
KINDS = ("money", "date", "year", "number", "name")


@cache
def tokens(text: str) -> tuple[str, ...]:
    """A text's words, numbers and dates in one spelling each; a date is `date:YYYY:MM:DD`."""
    plain = unicodedata.normalize("NFKD", text)
    plain = "".join(c for c in plain if not unicodedata.combining(c)).casefold()
    plain = re.sub(r"[’'`]s\b", "", plain)
    for pattern in _DATES:
        plain = pattern.sub(_iso, plain)
    plain = re.sub(r"(?<=\d),(?=\d{3}\b)", "", plain)
    return tuple(_one_spelling(token) for token in _TOKEN.findall(plain))


def _iso(found: re.Match[str]) -> str:
    day = date_of_parts(found["year"], found["month"], found["day"])
    return f" date:{day.year:04d}:{day.month:02d}:{day.day:02d} " if day else found[0]


def date_of_parts(year: str, month: str, day: str) -> datetime.date | None:
    number = int(month) if month.isdecimal() else [m[:3] for m in MONTHS].index(month[:3]) + 1
    try:
        return datetime.date(int(year), number, int(day))
    except ValueError:
        return None


def _one_spelling(token: str) -> str:
    if token in NUMBER_WORDS:
        return str(NUMBER_WORDS.index(token))
    if token[0].isdigit():
        return format(Decimal(token).normalize(), "f")
    return token


def normal(value: str) -> str:
    """A value in one spelling, without a leading article."""
    found = tokens(value)
    return " ".join(found[1:] if len(found) > 1 and found[0] in ("the", "a", "an") else found)


def same(a: str, b: str) -> bool:
    """Whether two values are the same, or one holds the other whole ("2019" and "July 10, 2019")."""
    return mentions(a, b) or mentions(b, a)


def mentions(text: str, value: str) -> bool:
    """Whether a text mentions a value in any spelling; a year also stands in a date."""
    wanted, found = tuple(normal(value).split()), tokens(text)
    if not wanted:
        return False
    if len(wanted) == 1 and re.fullmatch(r"\d{4}", wanted[0]):
        found = tuple(token[5:9] if token.startswith("date:") else token for token in found)
    return any(found[i : i + len(wanted)] == wanted for i in range(len(found) - len(wanted) + 1))


def mentions_any(text: str, values: Sequence[str]) -> str:
    """The first of the values that a text mentions; empty if none."""
    return next((value for value in values if mentions(text, value)), "")


def kind(value: str) -> str:
    """One of KINDS: what must agree among the options of an item (type and precision)."""
    if re.fullmatch(r"\$\d+(,\d{3})*\.\d\d", value):
        return "money"
    if span(value) and not re.fullmatch(r"\d{4}", value):
        return "date"
    if re.fullmatch(r"1[0-9]\d\d|20\d\d", value):
        return "year"
    if re.fullmatch(r"\d+(,\d{3})*", value):
        return "number"
    return "name"


# ---------------------------------------------------------------- times


def span(text: str) -> tuple[datetime.date, datetime.date] | None:
    """First and last day of a date, a year, or a range of years (1998-2003); None for anything else."""
    text = " ".join(text.split()).strip(" .,").casefold()
    for pattern in _DATES:
        if found := pattern.fullmatch(text):
            day = date_of_parts(found["year"], found["month"], found["day"])
            return (day, day) if day else None
    if found := re.fullmatch(r"(\d{4})(?:\s*(?:-|–|to)\s*(\d{4}))?", text):
        first, last = int(found[1]), int(found[2] or found[1])
        if 1 <= first <= last:
            return datetime.date(first, 1, 1), datetime.date(last, 12, 31)
    return None


def overlap(a: str, b: str) -> bool:
    """Whether two times share a day; False where either cannot be read."""
    one, other = span(a), span(b)
    return bool(one and other and one[0] <= other[1] and other[0] <= one[1])
