"""Numbers and dates close to one: written as it is, of the same precision, never the same value.

Which of them is taken follows from a hash.
"""

import datetime
import re
from collections.abc import Iterator

from scope import spellings
from scope.pool.ragstress.kinds import DATES, NUMBER
from scope.spellings import NUMBER_WORDS

#: Furthest years and days of a date's foil, and shares by which a number's may differ. Ours.
YEARS, DAYS = 9, 90
SHARES = (0.08, 0.12, 0.17, 0.25, 0.34, 0.42)


def near(answer: str, rank: str) -> Iterator[str]:
    """Foils of a number or date, the preferred first; none for anything else.

    rank: 64 hex digits, on which the order depends.
    """
    seen = {answer}
    for place in range(0, 32, 2):
        draw = int(rank[place : place + 8], 16)
        made = _dated(answer, draw) or _numbered(answer, draw)
        if made and made not in seen and not spellings.same(made, answer):
            seen.add(made)
            yield made


def _dated(answer: str, draw: int) -> str:
    found = next((match for pattern in DATES.values() if (match := re.fullmatch(pattern, answer))), None)
    if found is None:
        return ""
    parts = {name: value for name, value in found.groupdict().items() if value}
    sign = 1 if draw % 2 else -1
    if "month" not in parts:
        step = 10 * (1 + draw % 3) if answer.endswith("s") else 2 + (draw >> 1) % (YEARS - 1)
        year = int(parts["year"]) + sign * step
        return _replaced(found, {"year": str(year)}) if year <= datetime.date.max.year else ""
    numbered = parts["month"].isdecimal()
    month = int(parts["month"]) if numbered else spellings.MONTHS.index(parts["month"].casefold()) + 1
    try:
        day = datetime.date(int(parts.get("year", "2000")), month, int(parts.get("day", "15")))
    except ValueError:
        return ""
    moved = day + datetime.timedelta(days=sign * (20 + (draw >> 1) % DAYS))
    name = str(moved.month) if numbered else spellings.MONTHS[moved.month - 1].capitalize()
    year = moved.year + (sign * ((draw >> 8) % 4) if "year" in parts else 0)
    return _replaced(found, {"month": name, "day": str(min(moved.day, 28)), "year": str(year)})


def _numbered(answer: str, draw: int) -> str:
    found = NUMBER.fullmatch(answer)
    if found is None:
        return ""
    text, sign = found["value"], 1 if draw % 2 else -1
    if text.casefold() in NUMBER_WORDS:
        number = NUMBER_WORDS.index(text.casefold())
        moved = number + sign * (1 + (draw >> 1) % 3)
        if not 2 <= moved < len(NUMBER_WORDS) or number < 2:
            return ""  # one and zero go with other forms of nouns and verbs
        word = NUMBER_WORDS[moved]
        return _replaced(found, {"value": word.capitalize() if text[0].isupper() else word})
    plain = text.replace(",", "")
    decimals = len(plain.partition(".")[2])
    value = float(plain)
    step = max(value * SHARES[(draw >> 1) % len(SHARES)], 1 if not decimals else 10.0**-decimals)
    # A round number stays as round as it was.
    zeros = 0 if decimals else len(plain) - len(plain.rstrip("0"))
    unit = 10**zeros
    changed = round((value + sign * step) / unit) * unit if not decimals else round(value + sign * step, decimals)
    if changed < 2 or value < 2 or changed == value or len(str(int(changed))) != len(str(int(value))):
        return ""
    return _replaced(found, {"value": f"{changed:,.{decimals}f}" if "," in text else f"{changed:.{decimals}f}"})


def _replaced(found: re.Match[str], values: dict[str, str]) -> str:
    """The match with other values in its groups."""
    text = found[0]
    for name in sorted(found.groupdict(), key=lambda name: -found.start(name)):
        if found[name] and name in values:
            text = text[: found.start(name)] + values[name] + text[found.end(name) :]
    return text
