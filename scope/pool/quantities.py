"""Numbers, units and abbreviations of a text in one form, so that an answer is found under another spelling.

What reads as the same number (`numbers`, exact fractions):

- digits: 1,234 = 1 234 = 1234.0; full-width and other scripts' digits; -5 = −5 = "minus five" = "negative 5"
- scales: 44 billion = $44bn = 44,000,000,000; 1.5k; $5m (5m without currency is 5 and 5,000,000); 1.5e3 = 1.5 × 10^3
- words: twenty-five, one hundred and five, two thousand three hundred, a million, twelve hundred, three point five
- dozen, half a dozen, pair, couple, once, single, twice, double, thrice, triple
- fractions: 3/4 = ¾ = \\frac{3}{4} = three quarters = 0.75; 2½ = 2 1/2 = two and a half; half a million
- per cent: 25% = 25 percent = 25 per cent, read as 25 and as 0.25
- ordinals: 3rd = third, twenty-first = 21st, read as 3 and 21

What reads as the same words (`tokens`): all of these, case, spacing, sentence punctuation, hyphens between words,
a/an, dotted abbreviations (U.S.A. = USA), the aliases of `_ALIASES`, the units of `_UNITS` in any spelling, and
the currency of a number, which is dropped. Not covered: years in words (nineteen eighty-four), Roman numerals.
"""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from scope.answers import TOLERANCE
from scope.pool.words import NUMBER_WORDS, SMALL, TENS

_TENS = {word: 10 * tens for tens, word in enumerate(TENS, 2)}
_SCALES = {"thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12}
_GLUED = {"k": 10**3, "mn": 10**6, "mio": 10**6, "bn": 10**9, "b": 10**9, "tn": 10**12}
_FIXED = {"pair": 2, "couple": 2, "once": 1, "single": 1, "twice": 2, "double": 2, "thrice": 3, "triple": 3}
_ORDINALS = {"first": 1, "second": 2, "third": 3, "fifth": 5, "eighth": 8, "ninth": 9, "twelfth": 12}
_ORDINALS |= {f"{SMALL[n]}th": n for n in (4, 6, 7, 10, 11, *range(13, 20))}
_ORDINALS |= {word[:-1] + "ieth": value for word, value in _TENS.items()}
_PARTS = {"half": 2, "halve": 2, "quarter": 4} | {w: v for w, v in _ORDINALS.items() if v > 2}
_PARTS |= {"hundredth": 100, "thousandth": 1000}
_STARTS = frozenset((*NUMBER_WORDS, *_SCALES, *_FIXED, *_ORDINALS, "hundredth", "thousandth"))
_STARTS |= {"hundred", "dozen", "half", "quarter", "quarters"}

_UNITS = {
    spelling: unit
    for unit, spellings in {
        "km": "kms kilometre kilometres kilometer kilometers",
        "m": "metre metres meter meters",
        "cm": "centimetre centimetres centimeter centimeters",
        "mm": "millimetre millimetres millimeter millimeters",
        "mi": "mile miles",
        "ft": "foot feet",
        "inch": "inches",
        "yd": "yds yard yards",
        "kg": "kgs kilo kilos kilogram kilograms kilogramme kilogrammes",
        "g": "gram grams gramme grammes",
        "mg": "milligram milligrams",
        "lb": "lbs pound pounds",
        "oz": "ounce ounces",
        "l": "litre litres liter liters",
        "ml": "millilitre millilitres milliliter milliliters",
        "gal": "gallon gallons",
        "h": "hr hrs hour hours",
        "min": "mins minute minutes",
        "s": "sec secs seconds",
        "day": "days",
        "week": "wk wks weeks",
        "month": "months",
        "year": "yr yrs years",
        "km h": "kph kmh",
        "mi h": "mph",
        "deg": "degree degrees",
        "c": "celsius",
        "f": "fahrenheit",
        "%": "percent pct",
    }.items()
    for spelling in spellings.split()
}
_UNIT_NAMES = frozenset(name for unit in _UNITS.values() for name in unit.split() if name != "%")
_CURRENCY = "$€£¥₹"
_CURRENCY_WORDS = frozenset(("dollar", "dollars", "usd", "euro", "euros", "eur", "gbp"))
_ALIASES = {
    "united states of america": "usa",
    "united states": "usa",
    "united kingdom": "uk",
    "european union": "eu",
    "united nations": "un",
    "soviet union": "ussr",
    "new york city": "nyc",
    "per cent": "percent",
    "per cents": "percent",
    "versus": "vs",
    "doctor": "dr",
    "mount": "mt",
    "saint": "st",
    "an": "a",
}
_ALIAS = re.compile(rf"\b(?:{'|'.join(_ALIASES)})\b")

_FOLD = str.maketrans("‐‑‒–−\u00a0\u202f\u2009’‘“”\u2044", "-----   ''\"\"/")
_SUPERSCRIPT = re.compile("[⁰¹²³⁴-⁹⁻]+")
_LATEX = [
    (re.compile(pattern), new)
    for pattern, new in [
        (r"\\[dtc]?frac\s?\{([^{}]{1,40})\}\s?\{([^{}]{1,40})\}", r" \1/\2 "),
        (r"\\[dtc]?frac\s?(\d)\s?(\d)", r" \1/\2 "),
        (r"\{,\}", ","),
        (r"\\(?:text|mathrm|mathbf|textbf|mbox)\s?\{([^{}]{0,80})\}", r"\1"),
        (r"\^\\circ|\^\{\\circ\}|\\degree", "°"),
        (r"\\(?:times|cdot)\b", "×"),
        (r"\\([%$&#_])", r"\1"),
        (r"\\(?:left|right)\b|\\[,;:! ]", ""),
    ]
]
_DOTTED = re.compile(r"(?<![\w.])(?:[A-Za-z]\.){2,}(?:[A-Za-z](?![\w.]))?")

_TOKEN = re.compile(
    r"""
    (?P<number>(?<!\w)(?<![0-9]\.) (?P<sign>(?<![)\]%])-[$€£¥₹]?)?
        (?P<digits>(?:[1-9][0-9]{0,2}(?:,[0-9]{3})+|[1-9][0-9]{0,2}(?:\ [0-9]{3})+|[0-9]{1,400})(?![0-9])
            (?:\.[0-9]{1,400}(?![0-9]))?|(?<!\.)\.[0-9]{1,400}(?![0-9]))
        (?: e(?P<exponent>[+-]?[0-9]{1,3})(?![\w.])
          | \s?[×x*]\s?10\^[({]?(?P<power>-?[0-9]{1,3})(?![0-9])[)}]?
          | (?P<mixed>\ [0-9]{1,9}/[0-9]{1,9})(?![\w/]|[.,][0-9])
          | \s?/\s?(?P<over>[0-9]{1,40})(?![\w/]|[.,][0-9]) )?
        (?P<ordinal>(?:st|nd|rd|th)(?!\w))?
        (?P<scale>k|m|b|\s?(?:mn|mio|bn|tn))?(?(scale)(?!\w)) )
  | (?P<word>[^\W\d_]+(?:'[^\W\d_]+)*)
  | (?P<other>\S)
    """,
    re.VERBOSE,
)
_SKIPPED = frozenset(".,;:!?'\"`…°") | frozenset(_CURRENCY)


@dataclass(frozen=True, slots=True)
class _Token:
    """A word, number or symbol in its one form; `values`: the numbers it may stand for."""

    text: str
    values: tuple[Fraction, ...] = ()


def tokens(text: str) -> list[str]:
    """The words, numbers and symbols of a text in their one form: `Two km!` -> ["2", "km"]."""
    return [token.text for token in _scan(text)]


def numbers(text: str) -> set[Fraction]:
    """Every number a text names, in digits or in words. A number in two readings (25%, 5m) counts as both."""
    return {value for token in _scan(text) for value in token.values}


def holds_number(text: str, value: Fraction) -> bool:
    """Whether a text names a number, to within the tolerance of the numeric score (1e-4, inclusive)."""
    return any(abs(found - value) <= TOLERANCE for found in numbers(text))


def holds(text: str, part: str) -> bool:
    """Whether a part stands in a text as whole words, both in their one form (a leading article does not count)."""
    wanted = without_article(tokens(part))
    if not wanted:
        return bool(part.strip()) and part.strip() in text
    found = tokens(text)
    return any(found[i : i + len(wanted)] == wanted for i in range(len(found) - len(wanted) + 1))


def same_text(a: str, b: str) -> bool:
    """Whether two answer texts say the same: equal in their one form, as per cent, and without brackets or articles."""
    return _key(a) == _key(b)


def is_unit(words: list[str]) -> bool:
    """Whether tokens are nothing but units of measurement."""
    return bool(words) and all(word in _UNIT_NAMES for word in words)


def without_article(words: list[str]) -> list[str]:
    """Tokens without a leading the, a or an."""
    return words[1:] if len(words) > 1 and words[0] in ("the", "a") else words


@lru_cache(4096)
def _key(text: str) -> tuple[str, ...]:
    words = without_article(tokens(text))
    if len(words) == 2 and words[1] == "%":
        return (str(Fraction(words[0]) / 100),) if re.fullmatch(r"-?\d+(?:/\d+)?", words[0]) else tuple(words)
    if all(word.isalpha() or word in "()[]{}" for word in words):
        words = [word for word in words if word.isalpha()] or words
    return tuple(words) or (text.strip(),)


def _prepared(text: str) -> str:
    """Unicode, LaTeX, abbreviations and aliases in plain ASCII forms, in lower case."""
    if not text.isascii():
        text = text.translate(_FOLD)
        text = _SUPERSCRIPT.sub(lambda found: "^" + unicodedata.normalize("NFKC", found[0]), text)
        text = re.sub("(?<=[0-9])(?=[¼-¾⅐-⅞])", " ", text)  # 2½ is 2 1/2, not 21/2
        text = unicodedata.normalize("NFKC", text).translate(_FOLD)
        text = re.sub(r"[^\W0-9a-zA-Z_]", lambda found: str(unicodedata.decimal(found[0], found[0])), text)
    if "\\" in text or "{,}" in text:
        for pattern, new in _LATEX:
            text = pattern.sub(new, text)
    text = _DOTTED.sub(lambda found: found[0].replace(".", ""), text)
    text = re.sub(r"\bUSA?\b", "usa", text).casefold()  # us in lower case is a pronoun
    return _ALIAS.sub(lambda found: _ALIASES[found[0]], text).replace("&", " and ")


def _raw(text: str) -> Iterator[tuple[str, _Token]]:
    """(kind, token): number, word or symbol, before number words and units are put together."""
    text = _prepared(text)
    for found in _TOKEN.finditer(text):
        if found["digits"] is not None:
            currency = text[found.start() - 1 : found.start()] in tuple(_CURRENCY) or len(found["sign"] or "") > 1
            yield "number", _number(found, currency)
        elif word := found["word"]:
            yield "word", _Token(word)
        else:
            yield "symbol", _Token(found["other"])


def _number(found: re.Match[str], currency: bool) -> _Token:
    value = Fraction(re.sub("[, ]", "", found["digits"]))
    tens = found["exponent"] or found["power"]
    value *= Fraction(10) ** int(tens) if tens else 1
    if found["mixed"] and (bottom := int(found["mixed"].partition("/")[2])):
        value += Fraction(int(found["mixed"].partition("/")[0]), bottom)
    elif found["over"] and int(found["over"]):
        value /= int(found["over"])
    value = -value if found["sign"] else value
    scale = (found["scale"] or "").strip()
    if scale == "m":  # metres or millions
        large = value * 10**6
        return _Token(str(large), (large,)) if currency else _Token(f"{value!s} m", (value, large))
    value *= _GLUED.get(scale, 1)
    return _Token(str(value) + ("th" if found["ordinal"] else ""), (value,))


@lru_cache(4096)
def _scan(text: str) -> tuple[_Token, ...]:
    return tuple(_read(text))


def _read(text: str) -> Iterator[_Token]:
    raw = list(_raw(text))
    words = [token.text if kind != "number" else "" for kind, token in raw]
    phrase = _Phrase(raw, words)
    at, after_number = 0, False
    while at < len(raw):
        kind, token = raw[at]
        if (not after_number or words[at] != "second") and (taken := phrase.read(at)):
            token, at = taken
            percent = at < len(raw) and words[at] in ("%", "percent", "pct")
            if percent:
                token = _Token(token.text, (*token.values, *(value / 100 for value in token.values)))
            for each in token.text.split():  # "5 m" is a number and a unit
                yield _Token(each, token.values if each[-1].isdigit() or each.endswith("th") else ())
            after_number = not token.text.endswith("th")
            continue
        at += 1
        word = _UNITS.get(token.text, token.text) if token.text != "second" or not after_number else "s"
        amount, after_number = after_number, False
        if kind == "symbol":
            hyphen = token.text == "-" and at > 1 and raw[at - 2][0] == "word" and len(words[at - 2]) > 1
            if token.text in _SKIPPED or hyphen:
                continue
        if (
            (amount and word in _CURRENCY_WORDS)
            or word == "per"
            or (word == "/" and at > 1 and raw[at - 2][0] == "word")
        ):
            continue
        yield from (_Token(each) for each in word.split())


class _Phrase:
    """Reads one number phrase, of digits and words, from a list of raw tokens."""

    def __init__(self, raw: list[tuple[str, _Token]], words: list[str]):
        self.raw, self.words = raw, words

    def word(self, at: int) -> str:
        return self.words[at] if 0 <= at < len(self.words) else ""

    def read(self, at: int) -> tuple[_Token, int] | None:
        """(token, position behind) of the number phrase that begins at a position; None if none does."""
        sign = 1
        if self.word(at) in ("minus", "negative") and self.starts(at + 1):
            sign, at = -1, at + 1
        if not self.starts(at):
            return None
        if self.raw[at][0] == "number":
            token, at = self.raw[at][1], at + 1
            values, at = self.scaled(token.values, at)
            if values == token.values and not self.fraction(values[0], at):
                return (token, at) if sign > 0 else (_Token(str(-values[0]), (-values[0],)), at)
            value = values[0]
        elif (word := self.word(at)) in _FIXED:
            value, at = Fraction(_FIXED[word]), at + 1
        elif word == "half":
            value, at = Fraction(1, 2), at + 1
            behind = at + 1 if self.word(at) == "a" else at
            if self.word(behind) == "dozen" or self.word(behind) in _SCALES or self.word(behind) == "hundred":
                (value,), at = self.scaled((value,), behind)
        elif word in _ORDINALS or word in ("hundredth", "thousandth"):
            value = Fraction(_ORDINALS.get(word) or _PARTS[word])
            return _Token(f"{value * sign}th", (value * sign,)), at + 1
        elif word in ("quarter", "quarters"):
            value, at = Fraction(1, 4), at + 1
        else:
            cardinal, at, ordinal = self.cardinal(at)
            value = Fraction(cardinal)
            if ordinal:
                return _Token(f"{value * sign}th", (value * sign,)), at
        if part := self.fraction(value, at):
            value, at = part
        elif self.word(at) == "and" and self.word(at + 1) in ("a", "one") and self.word(at + 2) in ("half", "quarter"):
            value, at = value + Fraction(1, _PARTS[self.word(at + 2)]), at + 3
            (value,), at = self.scaled((value,), at)
        return _Token(str(value * sign), (value * sign,)), at

    def starts(self, at: int) -> bool:
        word = self.word(at)
        if at < len(self.raw) and self.raw[at][0] == "number":
            return True
        if word == "a":
            following = self.word(at + 1)
            return following in _SCALES or following in ("hundred", "dozen", "half", "quarter", "third")
        return word in _STARTS

    def scaled(self, values: tuple[Fraction, ...], at: int) -> tuple[tuple[Fraction, ...], int]:
        """Values times the scale words that follow: 44 billion, 3 dozen, 5 hundred thousand."""
        scales = _SCALES | {"hundred": 100, "dozen": 12}
        for _ in range(3):
            if factor := scales.get(self.word(at)):
                values, at = (values[0] * factor,), at + 1
        return values, at

    def fraction(self, value: Fraction, at: int) -> tuple[Fraction, int] | None:
        """Three quarters, 2 thirds, one half: a small whole number followed by the name of a part."""
        at += self.word(at) == "-"
        word = self.word(at)
        part = _PARTS.get(word) if value == 1 else _PARTS.get(word.removesuffix("s")) if word.endswith("s") else None
        if part is None or not 1 <= value < 100 or value.denominator != 1:
            return None
        return value / part, at + 1

    def cardinal(self, at: int) -> tuple[Fraction | int, int, bool]:
        """(value, position behind, whether it ended as an ordinal) of number words from a position."""
        total, current, last_scale = 0, None, 10**15
        while True:
            word = self.word(at)
            if word == "-" and current is not None and current % 100 in _TENS.values():
                at, word = at + 1, self.word(at + 1)
                if not 1 <= NUMBER_WORDS.get(word, 0) <= 9 and not 1 <= _ORDINALS.get(word, 0) <= 9:
                    return total + current, at - 1, False
            if word == "a" and current is None and not total:
                following = self.word(at + 1)
                if following in _PARTS:  # a half, a third
                    return 1, at + 1, False
                current, at = 1, at + 1
            elif word in NUMBER_WORDS and self.fits(current, NUMBER_WORDS[word]):
                current, at = (current or 0) + NUMBER_WORDS[word], at + 1
            elif word in _ORDINALS and current is not None and current and self.fits(current, _ORDINALS[word]):
                return total + current + _ORDINALS[word], at + 1, True
            elif word == "hundred" and (current is None or 1 <= current < 100):
                current, at = (1 if current is None else current) * 100, at + 1
                at = self.skip_and(at)
            elif word in _SCALES and _SCALES[word] < last_scale and current != 0:
                last_scale = _SCALES[word]
                total, current, at = total + (1 if current is None else current) * last_scale, None, at + 1
                at = self.skip_and(at + (self.word(at) == "," and self.word(at + 1) in NUMBER_WORDS))
            elif word == "dozen" and not total:
                return (1 if current is None else current) * 12, at + 1, False
            elif word == "point" and current is not None and 0 <= NUMBER_WORDS.get(self.word(at + 1), 10) <= 9:
                digits = ""
                while 0 <= NUMBER_WORDS.get(self.word(at + 1), 10) <= 9:
                    digits, at = digits + str(NUMBER_WORDS[self.word(at + 1)]), at + 1
                return Fraction(f"{total + current}.{digits[:400]}"), at + 1, False
            else:
                return total + (current or 0), at, False

    def fits(self, current: int | None, small: int) -> bool:
        """Whether a small number goes on a phrase: twenty + five, hundred + twenty, thousand + twelve."""
        if current is None:
            return True
        rest = current % 100
        return current > 0 and small > 0 and (rest == 0 or (rest in _TENS.values() and small < 10))

    def skip_and(self, at: int) -> int:
        small = self.word(at + 1) in NUMBER_WORDS or self.word(at + 1) in _ORDINALS
        return at + 1 if self.word(at) == "and" and small else at
