"""The grammar: the text of a payload -> one typed value."""

from __future__ import annotations

import re
from fractions import Fraction

from scope.answers.cleaning import clean, word_set
from scope.answers.values import AMBIGUOUS, UNPARSED, Answer
from scope.numerals import TO_A_HUNDRED, to_a_hundred

_I = re.IGNORECASE
MAX_PAYLOAD = 500  # characters of one payload

_HEDGES = (
    r"(?:therefore|thus|hence|so|simply|just|only|clearly|definitely|indeed|actually|still|now|probably|likely"
    r"|most likely|exactly|precisely)\b"
)
_INTRO = {
    "multiple_choice": rf"{_HEDGES}|(?:the|correct|best|option|choice|letter|answer|is)\b"
    r"|[选選][项項]?|[->]\s",
    "boolean": rf"{_HEDGES}|a (?:clear|definite|definitive|firm|resounding)\b|[->]\s",
    "numeric": rf"{_HEDGES}|(?:approximately|approx\b\.?|about|around|roughly|the|number|value"
    rf"|a total of|total of|equal to|option)(?![a-z])|≈|=(?!=)|(?:usd|eur|gbp|cad|aud|inr|rs\b\.?)(?=[\s\d])",
}
_SKIP = {kind: re.compile(rf"(?:(?:{words})[\s,:]*){{0,5}}", _I) for kind, words in _INTRO.items()}
_NOT_BUT = re.compile(r"not (?!only\b).{1,40}?,? but (?:rather |instead |is )?", _I)
_CHOICE_WORD = re.compile(r"(either|both|between|one of)\b[\s:]*", _I)


def read_payload(payload: str, answer_type: str, n_options: int | None, strict: bool = False) -> Answer:
    """Read a payload. strict: only the value with its unit or the text of its option may stand there."""
    text = clean(payload[:MAX_PAYLOAD])
    negated = _NOT_BUT.match(text)
    text = text[negated.end() :] if negated else text
    text = text[_skip(text, answer_type) :]
    choice = _CHOICE_WORD.match(text)
    text = text[choice.end() :] if choice else text
    if answer_type == "multiple_choice":
        answer = _read_letter(text, n_options or 26, strict)
    elif answer_type == "boolean":
        answer = _read_boolean(text, strict)
    else:
        answer = _read_numeric(text, strict)
    if choice and answer.status == "ok" and choice[1].lower() != "either":
        return UNPARSED
    return answer


def _skip(text: str, answer_type: str) -> int:
    match = _SKIP[answer_type].match(text)
    return match.end() if match else 0


_LETTER = re.compile(r"(?P<open>[(\[<\s]*)(?P<letter>[A-Za-z])(?P<close>[)\]>]*)")
_REASONS = r"because|since|as|which"
_LETTER_STOP = re.compile(
    rf"\s*$|[.!?:;,]+(?=\s|$)|\s?(?:[-—:]\s|—|\()|\s(?P<word>{_REASONS}|and|but|not|so|given|due|based|with|for|from"
    r"|it|this|that|where|rather|instead|is)(?![\w'-])",
    _I,
)
_LETTER_CHOICE = re.compile(
    r"\s?(?:[/|&]|[,;]\s?(?:(?:or|and)\s)?|(?P<word>or|and|nor|to)\s)\s?(?:(?:option|choice)\s)?"
    r"[(\[]?(?P<letter>[A-Za-z])[)\]]?(?![\w'])",
    _I,
)
_LIST_END = re.compile(r"\s?(?:[.,;!?)\]|&]|$)")
_LATER_LETTER = re.compile(r"\bor (?:option )?(?:\(([A-Za-z])\)|([A-Z])(?=[.):]))")


def _read_letter(text: str, n_options: int, strict: bool) -> Answer:
    match = _LETTER.match(text)
    if match is None:
        return UNPARSED
    letter = match["letter"].upper()
    rest = text[match.end() :]
    allowed = {chr(ord("A") + i) for i in range(n_options)}
    if letter not in allowed:
        return UNPARSED
    other = _LETTER_CHOICE.match(rest)
    while other and (other["word"] or _LETTER_CHOICE.match(rest, other.end()) or _LIST_END.match(rest, other.end())):
        # "a" after "and" is an article unless the payload ends there
        if other["letter"] in "aiI" and not _LIST_END.match(rest, other.end()):
            break
        if other["letter"].upper() != letter:
            return AMBIGUOUS
        rest = rest[other.end() :]
        other = _LETTER_CHOICE.match(rest)
    stop = _LETTER_STOP.match(rest)
    if match["close"]:
        accepted = not rest[:1].isalnum() or bool(match["open"].strip())
    else:  # an article or pronoun is followed by other words than a reason
        accepted = stop is not None and not (
            stop["word"] and letter in "AI" and stop["word"].lower() not in _REASONS.split("|")
        )
    if not accepted:
        return UNPARSED
    option_text = re.split(rf"\b(?:{_REASONS}|not)\b|[;!?]|(?<=.)\.\s", rest, maxsplit=1)[0]
    for later in _LATER_LETTER.finditer(option_text):
        if (later[1] or later[2]).upper() not in (letter, *(set(map(chr, range(65, 91))) - allowed)):
            return AMBIGUOUS
    if strict and not (match["close"] or re.fullmatch(r"\s?(?:[.!?]+(?:\s.*)?)?", rest)):
        return UNPARSED
    return Answer("ok", letter)


_BOOLEAN = dict.fromkeys(("yes", "true", "是", "是的"), "yes") | dict.fromkeys(("no", "false", "否", "不是"), "no")
_TRUTH = rf"(?P<value>{'|'.join(sorted(_BOOLEAN, key=len, reverse=True))})(?![\w'-])"
_BOOLEAN_HEAD = re.compile(rf"[(\[<\s]*{_TRUTH}[)\]>]*", _I)
BOOLEAN_STOP = re.compile(
    r"\s?(?:$|[.!?:;,—(]|-\s)|\s(?:because|since|as|so|given|indeed|and|but|not|it|they|he|she|there|this|that"
    r"|these|those|the|you|we|i)(?![\w'-])",
    _I,
)
_BOOLEAN_CHOICE = re.compile(
    rf"\s?(?:[/|&;,]|,?\s?(?:or|and|nor|but)\s)\s?[(]?{_TRUTH}(?=\s?(?:[.,;/|&)!?]|$|(?:or|and)\b))", _I
)


def _read_boolean(text: str, strict: bool) -> Answer:
    match = _BOOLEAN_HEAD.match(text)
    if match is None:
        return UNPARSED
    value = _BOOLEAN[match["value"].lower()]
    rest = text[match.end() :]
    while other := _BOOLEAN_CHOICE.match(rest):
        if _BOOLEAN[other["value"].lower()] != value:
            return AMBIGUOUS
        rest = rest[other.end() :]
    # "no" before a noun is a determiner: no one, no solution
    complete = re.fullmatch(r"[\s.!?)]*", rest) if strict else BOOLEAN_STOP.match(rest)
    return Answer("ok", value) if complete else UNPARSED


_D = r"[0-9]"
NUMBER = re.compile(
    rf"""(?P<sign>[+-]?)
    (?P<digits> (?: [1-9]{_D}{{0,2}}(?:,{_D}{{3}})+ | [1-9]{_D}{{0,2}}(?:\ {_D}{{3}})+(?!\ ?[0-9/])
                  | {_D}{{1,350}} )
                (?:\.{_D}{{1,350}})? | \.{_D}{{1,350}} )(?![0-9]|[.,][0-9]|\.\.|…)
    (?P<exponent>[eE][+-]?{_D}{{1,4}}(?!{_D}))?""",
    re.VERBOSE,
)
_EXPONENT = re.compile(r"\s?\^\s?\(?([+-]?[0-9]{1,4})(?![0-9])\)?")
_POWER_OF_TEN = re.compile(rf"\s?[×xX]\s?10{_EXPONENT.pattern}")
_OVER = re.compile(r"\s?/\s?([0-9]{1,350})(?![0-9]|[.,][0-9]|\s?/\s?[0-9])")
_MIXED = re.compile(r" ([0-9]{1,9})\s?/\s?([0-9]{1,9})(?![0-9]|[.,][0-9]|\s?/\s?[0-9])")
_SCALE = re.compile(r"\s?(hundred|thousand|million|billion|trillion)\b", _I)
_SCALES = {"hundred": 10**2, "thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12}
# Units that may be glued to the number, and the only single letters that may follow it.
UNITS = word_set(
    "kg g mg t lb lbs oz km m cm mm mi ft in yd h hr hrs min mins s sec secs ms d l ml cl gal mph kph kmh w"
    " kw kwh j kj cal kcal n pa v hz khz mhz ghz b kb mb gb tb c f usd eur gbp sq px deg rad mol ha a"
)
NOT_UNITS = word_set(
    "squared cubed factorial pi π dozen dozens power half quarter third am pm choose modulo mod plus minus"
    " divided multiplied increased decreased reduced raised halves thirds quarters fourth fourths fifth fifths"
    " sixth sixths seventh sevenths eighth eighths ninth ninths tenth tenths hundredth hundredths"
)
_NOT_UNITS_ZH = frozenset("百千万萬亿億半分点點月日号")
# m^2 and km/h are words of a unit
_UNIT_SIGNS = re.compile(r"([^\W\d_])\^?-?[23](?![0-9])|(?:(?<=[^\W\d_])|^\s?)/(?=\s?[^\W\d_])")
_PER = re.compile(r"\s?/\s?[a-z]", _I)
_UNIT_END = re.compile(
    r"[,;:!?)\]—(|&]|\.(?:\s|$)|\s-\s(?!\d)|(?<![^\W_])(?:and|or|to|for|in|per|because|since|as|so|which|that|when"
    r"|after|before|at|on|each|by|from|with|if|but|not|rather|instead)(?![^\W_])",
    _I,
)
_GLUED_AFTER = re.compile(
    r"[)\]]*\s?(?:[+×÷*/^=≈<>±√]|-\s?[0-9(])|[)\]]*(?<! )\(\s?[0-9]|:\s?[0-9]|!\s?[=≈]|—\s?[0-9]|-\w"
)
_ANOTHER = re.compile(r"\s?(?P<word>[,;|&]\s?(?:(?:or|and)\b)?|(?:and|or|nor|to)\b)\s?(?:[a-z]\s?=\s?)?", _I)
_NUMBER_LIST_END = re.compile(r"\s?(?:[.,;)\]!?|&]|$|(?:or|and)\b)", _I)
_MORE = re.compile(r"(?:an?|one) (?:half|quarter|third)\b|[+-]?\.?[0-9]", _I)
_ABBREVIATED = re.compile(r".{0,3}\b(?:hrs?|ft|lbs?|mins?|yrs?)\. ?[0-9]", _I)
_RATIO = re.compile(r"\s(?:in|by|for|per|at|on|from|after|before|with) [0-9]")  # 1 in 4, 2 by 4, 3 from 5
_CONTINUES = re.compile(  # 5 apples at $2 = $10, but not 72 because 70 + 2 = 72
    r"(?:(?!\b(?:because|since|as|so|which|that|when|if|where)\b|\.\s)[^,;:!?()—=≈])*[=≈]", _I
)
_EQUALS = re.compile(r"(?<![<>!=:])[=≈](?!=)")
_NOT_AN_EQUATION = re.compile(r"[;<>≤≥≠]|,\s|\.\s|\b(?:and|or)\b", _I)


# A number in words opens a payload; "one of them", "two more than that" and "one such way" name no number.
_IN_WORDS = re.compile(
    rf"(?:(?P<minus>minus|negative) )?(?:(?!one(?! hundred))|(?=one\b(?! hundred)\s?(?:[^\w\s-]|$)))"
    rf"{TO_A_HUNDRED.pattern}(?! ?(?:[-'’]|(?:of|or so|more|less|fewer|other|point|such|and)\b))",
    _I,
)


def _digits_for_words(text: str) -> str:
    """A payload that opens with a number word, its number words to a hundred written in digits."""
    opening = _IN_WORDS.match(text)
    if opening is None:
        return text
    sign, start = ("-", opening.end("minus") + 1) if opening["minus"] else ("", 0)
    return sign + TO_A_HUNDRED.sub(lambda found: str(to_a_hundred(found)), text[start:])


def _read_numeric(text: str, strict: bool) -> Answer:
    text = _digits_for_words(text)
    text = re.sub(r"\b(?:is equal to|equals?)\b", "=", text, flags=_I)
    if text.startswith(("±", "+/-")):
        return AMBIGUOUS
    at = 0
    for _ in range(10):  # 12 + 13 = 25: what stands before an equals sign need not be one number
        at += len(text[at:]) - len(text[at:].lstrip(" (["))
        answer = _read_quantities(text, at + _skip(text[at:], "numeric"), strict)
        equals = _EQUALS.search(text, at)
        if answer is not None or equals is None or _NOT_AN_EQUATION.search(text, at, equals.start()):
            return answer or UNPARSED
        at = equals.end()
    return UNPARSED


def _read_quantities(text: str, at: int, strict: bool) -> Answer | None:
    """One number with its unit, or several equal ones; None if none ends there (an equation may go on)."""
    first = _quantity(text, at)
    if first is None:
        return None
    value, unit, at = first
    while another := _ANOTHER.match(text, at):
        word = another["word"].lower()
        other = _quantity(text, another.end() + _skip(text[another.end() :], "numeric"))
        if other is None:
            if "or" in word or _MORE.match(text, another.end()):
                return UNPARSED
            break
        if other[0] != value:
            # 5 hours and 30 minutes is one quantity, not a choice; 72, 24 for each is not a list
            compound = unit and other[1] and unit != other[1] and "or" not in word
            aside = word.strip() == "," and not _NUMBER_LIST_END.match(text, other[2])
            return UNPARSED if compound or aside else AMBIGUOUS
        at = other[2]
    if _GLUED_AFTER.match(text, at) or _CONTINUES.match(text, at):
        return None
    if strict and (len(unit.split()) > 3 or not re.fullmatch(r"\s?(?:\([^()]*\))?[\s.!?)\]]*", text[at:])):
        return UNPARSED
    return number(value)


def _quantity(text: str, at: int) -> tuple[Fraction, str, int] | None:
    """(value, unit words, end) of a number with its unit at a position; None if none stands there whole."""
    number = number_at(text, at)
    if number is None:
        return None
    value, at = number
    if _RATIO.match(text, at) or (_GLUED_AFTER.match(text, at) and not _PER.match(text, at)):
        return None
    end = _UNIT_END.search(text, at)
    stop = end.start() if end else len(text)
    unit = _UNIT_SIGNS.sub(r"\1 ", text[at:stop])
    words = re.findall(r"[^\W\d_]+", unit.lower())
    if (
        re.search(r"[0-9+×÷*/^<>=≈\\±√…_#@′″]|\.\S", unit)
        or _ABBREVIATED.match(text, at)
        or any(word in NOT_UNITS or (len(word) == 1 and word < "\u2e80" and word not in UNITS) for word in words)
        or not _NOT_UNITS_ZH.isdisjoint(unit)
        or (text[at : at + 1].isalpha() and words[0] not in UNITS and words[0] < "\u2e80")
    ):
        return None
    return value, " ".join(words), stop


def number_at(text: str, at: int) -> tuple[Fraction, int] | None:
    """(value, end) of the number at a position with its fraction, scale word or power of ten; None if none is there."""
    match = NUMBER.match(text, at)
    if match is None:
        return None
    value = Fraction(re.sub("[, ]", "", match["digits"]) + (match["exponent"] or ""))
    at = match.end()
    if power := _POWER_OF_TEN.match(text, at):
        value *= Fraction(10) ** int(power[1])
        at = power.end()
    elif match["digits"] == "10" and (power := _EXPONENT.match(text, at)):
        value = Fraction(10) ** int(power[1])
        at = power.end()
    elif mixed := _MIXED.match(text, at):
        if value.denominator != 1 or not int(mixed[1]) < int(mixed[2]):
            return None
        value += Fraction(int(mixed[1]), int(mixed[2]))
        at = mixed.end()
    elif over := _OVER.match(text, at):
        if not int(over[1]):
            return None
        value /= int(over[1])
        at = over.end()
    while scale := _SCALE.match(text, at):
        value *= _SCALES[scale[1].lower()]
        at = scale.end()
    return (-value if match["sign"] == "-" else value), at


def number(value: Fraction) -> Answer:
    """The answer for a number; unparsed where it is too large for a float."""
    try:
        rounded = float(value) or 0.0  # never -0.0
    except OverflowError:
        return UNPARSED
    return Answer("ok", rounded, value)
