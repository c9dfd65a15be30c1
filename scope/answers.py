"""Completion text -> typed answer, and answer against gold (SCOPE, App. B.1 and the evaluation section).

Deterministic, linear in the length of the text, and total: no string makes `parse_answer` raise.

The model is asked to close with `The final answer is <letter|number|yes or no>`. What counts:

1. Thinking text is no answer; a block left open means there is none (`split_thinking`).
2. The last explicit statement wins (`_CUE`). One with nothing after it, or with a placeholder copied from the
   instruction, is no statement; one that cannot be read means `unparsed`, never the statement before it.
3. Its payload (to the end of the line, or the braces of a box) is read by the grammar of the answer type,
   after undoing markdown, LaTeX, currency, full-width forms and the like (`_clean`).
4. Without a statement, a completion that is nothing but a payload counts (`strict` reading).

What is not one clear value is not guessed at: a choice between different values is `ambiguous`, and
everything else outside the grammar (1,5 · 10-15 · 12:30 · 5 hours and 30 minutes) is `unparsed`.
"""

from __future__ import annotations

import re
import unicodedata
from collections import deque
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Literal

ANSWER_TYPES = ("multiple_choice", "numeric", "boolean")
TOLERANCE = Fraction(1, 10_000)  # absolute, inclusive

_I = re.IGNORECASE
_MAX_STATEMENTS = 200  # of more statements than this only the last ones are looked at
_MAX_PAYLOAD = 500  # characters of one payload


@dataclass(frozen=True, slots=True)
class Answer:
    """A parsed answer.

    value: a capital letter, a finite float, or "yes" / "no"; None unless status is "ok".
    exact: for numbers, the value as written, before rounding to a float; not part of equality.
    """

    status: Literal["ok", "unparsed", "ambiguous"]
    value: str | float | None
    exact: Fraction | None = field(default=None, compare=False, repr=False)


_UNPARSED = Answer("unparsed", None)
_AMBIGUOUS = Answer("ambiguous", None)

# ---------------------------------------------------------------------------------------------- public calls


def parse_answer(text: str, answer_type: str, n_options: int | None = None) -> Answer:
    """Read the final answer of a completion.

    text: raw completion, any string of any length, thinking included.
    answer_type: one of ANSWER_TYPES. n_options (1 to 26, multiple choice only): letters beyond are unparsed.
    Raises ValueError for an unknown answer type or an n_options out of range, never because of the text.
    """
    _check_type(answer_type, n_options)
    _, visible = split_thinking(text)
    if visible is None:
        return _UNPARSED
    visible = visible.translate(_FOLD)
    end = len(visible)
    for cue in reversed(deque(_CUE.finditer(visible), maxlen=_MAX_STATEMENTS)):
        start = _statement_start(visible, cue)
        tail = _TO_IS.match(visible, cue.end(), end) if cue["to"] else cue
        if start is None or tail is None:
            continue
        if cue["box"]:
            found = _read_box(visible, cue, answer_type, n_options)
        else:
            found = _read_statement(visible, tail.end(), end, answer_type, n_options)
        if found is not None:
            return found
        end = start
    visible = visible.strip()
    lines = visible.split("\n") if len(visible) <= _MAX_PAYLOAD else []
    lines = [line for line in lines if not _NOTHING.fullmatch(line)]
    return _read(lines[0], answer_type, n_options, strict=True) if len(lines) == 1 else _UNPARSED


def is_correct(answer: Answer, gold: str, answer_type: str) -> bool:
    """Whether an answer equals the gold: same letter, same yes/no, or numbers at most 1e-4 apart.

    gold: "C", "25.4", "1,234", "3/4", "yes", ... read by the grammar of the type; ValueError if it cannot be.
    The difference of two numbers is taken exactly, of the decimals as written. Unparsed is never correct.
    """
    return same_answer(answer, _read_value(gold, answer_type, "gold"), answer_type)


def same_answer(a: Answer, b: Answer, answer_type: str) -> bool:
    """Whether both were read and are the same answer under the type's rule (numbers: within 1e-4)."""
    _check_type(answer_type)
    if a.status != "ok" or b.status != "ok":
        return False
    if answer_type == "numeric":
        return abs(_exact(a) - _exact(b)) <= TOLERANCE
    return a.value == b.value


def render_answer(value: str | float, answer_type: str) -> str:
    """The closing sentence for a value, `The final answer is X.`; `parse_answer` reads the same value back.

    value: as in `Answer.value`, or a gold string. Raises ValueError if it is no value of that type.
    """
    answer = _read_value(str(value), answer_type, "value")
    shown = answer.value
    if isinstance(shown, float):
        shown = f"{int(shown)}" if shown.is_integer() and abs(shown) < 1e16 else repr(shown)
    return f"The final answer is {shown}."


def split_thinking(text: str) -> tuple[str, str | None]:
    """Split a completion into (thinking, visible text); visible is None where a block is left open.

    Blocks are <think>...</think> or <thinking>...</thinking>, not nested. A closing tag that nothing opened
    makes everything before it thinking: chat templates may put the opening tag into the prompt.
    """
    thinking: list[str] = []
    visible: list[str] = []
    position, is_open = 0, False
    for tag in _THINK_TAG.finditer(text):
        if tag[0][1] == "/":
            if not is_open:
                thinking.extend(visible)
                visible.clear()
            thinking.append(text[position : tag.start()])
        elif is_open:
            continue
        else:
            visible.append(text[position : tag.start()])
        position, is_open = tag.end(), tag[0][1] != "/"
    (thinking if is_open else visible).append(text[position:])
    return "".join(thinking), None if is_open else "".join(visible)


def _check_type(answer_type: str, n_options: int | None = None) -> None:
    if answer_type not in ANSWER_TYPES:
        raise ValueError(f"answer type {answer_type!r} is unknown; use one of {', '.join(ANSWER_TYPES)}")
    if answer_type == "multiple_choice" and n_options is not None and not 1 <= n_options <= 26:
        raise ValueError(f"n_options is {n_options}; multiple choice has 1 to 26 options, lettered A to Z")


def _read_value(text: str, answer_type: str, what: str) -> Answer:
    _check_type(answer_type)
    answer = _read(text.translate(_FOLD) if isinstance(text, str) else "", answer_type, None, strict=True)
    if answer.status != "ok":
        expected = dict(zip(ANSWER_TYPES, ("a letter A to Z", "one finite number", "yes or no"), strict=True))
        raise ValueError(f"{what} {text!r} is not a {answer_type} answer: expected {expected[answer_type]}")
    return answer


def _exact(answer: Answer) -> Fraction:
    if answer.exact is not None:
        return answer.exact
    if answer.value is None or isinstance(answer.value, str):
        raise ValueError(f"answer value {answer.value!r} is not a number, but the answer type is numeric")
    return Fraction(repr(answer.value))  # the shortest decimal of the float, not its binary expansion


# ------------------------------------------------------------------------------- finding the last statement


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_THINK_TAG = re.compile(r"</?think(?:ing)?>", _I)

# Character by character, over the whole text: full-width forms, spaces, line ends, minus signs, quotes.
_FOLD: dict[int, str | None] = {0xFF00 + i: chr(0x20 + i) for i in range(1, 0x5F)}
for _chars, _fold in {
    "\u00a0\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000\0\t": " ",
    "\r\v\f\x85\u2028\u2029": "\n",
    "\u2010\u2011\u2012\u2013\u2212\ufe63\uff0d": "-",
    "\u2014\u2015": "—",
    "“”„«»「」『』": '"',
    "‘’‚": "'",
    "。": ".",
    "、": ",",
    "【": "[",
    "】": "]",
}.items():
    _FOLD |= dict.fromkeys(map(ord, _chars), _fold)
_FOLD |= dict.fromkeys(map(ord, "\u200b\u200c\u200d\u2060\ufeff\u00ad\ufe0e\ufe0f"), None)

_GAP = r"[\s*_`]{1,6}"  # between the words of a statement: space or emphasis
_MARK = r"[ *_`]{0,6}"
_IS = rf"{_GAP}(?i:is)(?![^\W_]){_MARK}[:=]?"
_CUE = re.compile(
    rf"""
      (?P<box>\\boxed\s{{0,4}}\{{)
    | (?P<zh>答案)(?:应该|應該)?{_MARK}(?:[是为為]{_MARK}[:=]?|[:=])
    | (?i:answer)(?![^\W_])(?:
        (?: {_MARK}\([^()\n]{{0,60}}\) | ,?{_GAP}(?i:then|therefore|thus|hence),? )?(?:{_IS}|{_MARK}[:=])
      | (?P<to>{_GAP}(?i:to|for|of)(?=[ ]))
      | (?P<heading>[ *_`]{{0,8}}(?=\n|\Z)) )
    """,
    re.VERBOSE,
)
_TO_IS = re.compile(rf"(?:[ ][^\s:]{{1,30}}(?<![.!?;])){{1,12}}?{_IS}")  # the answer to the question is
# Only these may stand before "answer": the official, wrong, previous or TA's answer states nothing.
_LEADING = re.compile(
    rf"(?<![^\W_])(?:(?:the|my|our|your){_GAP})?(?:(?:final|correct|right|best|actual|true){_GAP}){{0,2}}\Z",
    _I,
)
_HYPOTHETICAL = re.compile(r"(?<![^\W_])(?:if|whether|unless|suppose|assume|assuming)(?: that)?[ *_`]{1,6}\Z", _I)
_HEADING_LINE = re.compile(r"[\s#*_>`-]{0,10}(?:\d{1,2}[.)]\s)?[*_]{0,3}(?:the\s|my\s)?(?P<final>final\s)?", _I)
_LEAD = re.compile(r"(?:[\s*_`$#]|\\\[|\\\(|-{3,})*")  # what may stand between a statement and its payload
_NOTHING = re.compile(r"[\s*_`~$#>.…:;,!?\"'<()\[\]{}|\\/-]*")
_PLACEHOLDER = re.compile(r"[\"'(\\]{0,2}[<\[{]([A-Za-z\s|/,]{1,60})[>\]}]")
_PLACEHOLDER_WORDS = _words("letter number answer value integer option result")
_PLACEHOLDER_FILLERS = _words("yes no or your the a an here insert final numeric correct")


def _statement_start(text: str, cue: re.Match[str]) -> int | None:
    """Where the statement of a cue begins, or None if the cue is no statement of an answer."""
    at = cue.start()
    before = text[max(0, at - 60) : at]
    if cue["box"] is not None:
        return at
    if cue["zh"] is not None:
        return None if before.endswith(("参考", "參考", "错误", "錯誤", "标准", "標準")) else at
    if cue["heading"] is not None:
        line = before.rpartition("\n")[2]
        heading = _HEADING_LINE.fullmatch(line) if line != before or at == len(before) else None
        decorated = heading and (heading["final"] or "#" in line or "**" in line or "__" in line)
        return at - len(line) if decorated else None
    leading = _LEADING.search(before)
    if leading is None or not leading[0]:
        last = before.rstrip(" *_`")[-1:]
        return None if last in ("'", "-") or (last.isalpha() and last < "\u2e80") else at
    return None if _HYPOTHETICAL.search(before[: leading.start()]) else at - len(leading[0])


def _read_statement(text: str, start: int, end: int, answer_type: str, n_options: int | None) -> Answer | None:
    """The answer stated on the first line with content in text[start:end]; None if nothing is stated."""
    lead = _LEAD.match(text, start, end)
    start = lead.end() if lead else start
    window = text[start : min(end, start + _MAX_PAYLOAD)]
    line, newline, _ = window.partition("\n")
    if not newline and start + len(window) < end:  # cut by the limit: the last word may be half a number
        line = line.rpartition(" ")[0] or "?"
    elif _NOTHING.fullmatch(line) or _is_placeholder(line):
        return None
    return _read(line, answer_type, n_options)


def _is_placeholder(line: str) -> bool:
    match = _PLACEHOLDER.match(line)
    words = set(re.findall("[a-z]+", match[1].lower() if match else ""))
    if not match or f"</{match[1]}" in line or not words <= _PLACEHOLDER_WORDS | _PLACEHOLDER_FILLERS:
        return False
    return bool(words & _PLACEHOLDER_WORDS) or words >= {"yes", "no"}


def _read_box(text: str, cue: re.Match[str], answer_type: str, n_options: int | None) -> Answer | None:
    """The answer inside \\boxed{...}; None for an empty box. A box that is not closed is unreadable."""
    start, depth = cue.end(), 1
    close = -1
    for at in range(start, min(len(text), start + _MAX_PAYLOAD)):
        depth += {"{": 1, "}": -1}.get(text[at], 0)
        if depth == 0:
            close = at
            break
    body = text[start : close if close >= 0 else start + _MAX_PAYLOAD]
    if _NOTHING.fullmatch(body) or _is_placeholder(body):
        return None
    answer = _read(body, answer_type, n_options) if close >= 0 else _UNPARSED
    before = _BOX_CHOICE_BEFORE.search(text[max(0, cue.start() - 100) : cue.start()])
    after = _BOX_CHOICE_AFTER.match(text, close + 1) if close >= 0 else None
    for other in (before, after):  # \boxed{24} or \boxed{48}; \boxed{24} or 48
        alternative = _read(other[1], answer_type, n_options) if other else answer
        if answer.status == alternative.status == "ok" and not same_answer(answer, alternative, answer_type):
            return _AMBIGUOUS
    return answer


_BOX_CHOICE_BEFORE = re.compile(r"\\boxed\s?\{([^{}]*)\}[\s$]{0,4}(?:,|or|and|, or|, and)[\s$]{1,4}\Z")
_BOX_CHOICE_AFTER = re.compile(r"[ $*]{0,4}(?:or|and) ([^\n]{1,60})")

# ------------------------------------------------------------------------- undoing markdown, LaTeX, Unicode

_SUPERSCRIPT = re.compile("[⁰¹²³⁴-⁹⁺⁻]+")
_WRAPPERS = (
    "text|textbf|textit|textrm|textsf|texttt|mathrm|mathbf|mathit|mathsf|boldsymbol|bm|operatorname|mbox|emph"
    "|underline|boxed|fbox"
)
_WRAPPED = re.compile(rf"\\(?:{_WRAPPERS})\s?\{{([^{{}}]*)\}}")
_HTML_PAIR = re.compile(r"<(b|i|u|em|strong|span|p|code|answer)>([^<>]*)</\1>", _I)
_CURRENCY = "$€£¥₹₩₽¢₺฿₱₫₴₦"
_REWRITES = [
    (re.compile(pattern), replacement)
    for pattern, replacement in [
        (r"<\|[A-Za-z0-9_]{1,30}\|>|</s>|<eos>|<end_of_turn>", " "),  # special tokens left in the text
        (r"~~[^~]{0,80}~~", " "),  # struck out
        (r"<sup>([^<>]*)</sup>", r"^\1"),
        (r"<br ?/?>", " "),
        (r"</?([^<>]{0,40})>", r"\1"),
        (r"\\(?:left|right|[bB]igg?[lr]?|displaystyle)(?![a-z])|\\!|\\[()\[\]]", ""),
        (r"\{,\}", ","),
        (r"\\[,;: ]|\\q?quad(?![a-z])|~", " "),
        (r"\\([%$&#_{}£€])", r"\1"),
        (r"\^?\{?\\(?:circ|degree)\}?(?![a-z])", "°"),
        (r"\\(?:times|cdot)(?![a-z])", "×"),
        (r"\\pm(?![a-z])", "±"),
        (r"\\approx(?![a-z])", "≈"),
        (r"(?<=\d)\s*\\[dtc]?frac", r" \\frac"),  # a mixed number
        (r"\\[dtc]?frac\s?\{([^{}]*)\}\s?\{([^{}]*)\}", r"\1/\2"),
        (r"\\[dtc]?frac\s?(\d)\s?(\d)", r"\1/\2"),
        (r"[{}]", ""),
        (r"(?<=\d)\*\*(?=\d)", "^"),
        (r"(?<=[\d)])\s?\*\s?(?=[\d(])|·|⋅", "×"),
        (r"[*`]|(?<![^\W_])_+|_+(?![^\W_])", ""),
        (r"^\s*#+(?=\s)|^[\s→⇒➡]+", ""),
        (rf"\b(?:US|AU|CA|NZ|HK|[ACS])\$(?=\s?\d)|(?<!\d)[{_CURRENCY}]|[{_CURRENCY}](?!\d)", ""),
        (r"(?<!\w)['\"]|['\"](?!\w|\s?\d)", ""),
        (r"\s+", " "),
    ]
]


def _clean(text: str) -> str:
    """Undo what wraps a payload. What is not recognised stays and makes the grammar refuse it."""
    text = _SUPERSCRIPT.sub(lambda match: "^" + unicodedata.normalize("NFKC", match[0]), text)
    text = re.sub("(?<=[0-9])(?=[¼-¾⅐-⅞])", " ", text)  # 2½ is 2 1/2, not 21/2
    text = unicodedata.normalize("NFKC", text).translate(_FOLD).replace("⁄", "/")
    text = "".join(" " if unicodedata.category(c) == "So" and c != "°" else c for c in text)
    for _ in range(6):  # wrappers may nest
        text, count = _WRAPPED.subn(r"\1", text)
        text, pairs = _HTML_PAIR.subn(r"\2", text)
        if not count + pairs:
            break
    for pattern, replacement in _REWRITES:
        text = pattern.sub(replacement, text)
    return text.strip()


# ----------------------------------------------------------------------------------------------- the grammar

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


def _read(payload: str, answer_type: str, n_options: int | None, strict: bool = False) -> Answer:
    """Read a payload. strict: only the value with its unit or the text of its option may stand there."""
    text = _clean(payload[:_MAX_PAYLOAD])
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
        return _UNPARSED
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
        return _UNPARSED
    letter = match["letter"].upper()
    rest = text[match.end() :]
    allowed = {chr(ord("A") + i) for i in range(n_options)}
    if letter not in allowed:
        return _UNPARSED
    other = _LETTER_CHOICE.match(rest)
    while other and (other["word"] or _LETTER_CHOICE.match(rest, other.end()) or _LIST_END.match(rest, other.end())):
        # "a" after "and" is an article unless the payload ends there
        if other["letter"] in "aiI" and not _LIST_END.match(rest, other.end()):
            break
        if other["letter"].upper() != letter:
            return _AMBIGUOUS
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
        return _UNPARSED
    option_text = re.split(rf"\b(?:{_REASONS}|not)\b|[;!?]|(?<=.)\.\s", rest, maxsplit=1)[0]
    for later in _LATER_LETTER.finditer(option_text):
        if (later[1] or later[2]).upper() not in (letter, *(set(map(chr, range(65, 91))) - allowed)):
            return _AMBIGUOUS
    if strict and not (match["close"] or re.fullmatch(r"\s?(?:[.!?]+(?:\s.*)?)?", rest)):
        return _UNPARSED
    return Answer("ok", letter)


_BOOLEAN = dict.fromkeys(("yes", "true", "是", "是的"), "yes") | dict.fromkeys(("no", "false", "否", "不是"), "no")
_TRUTH = rf"(?P<value>{'|'.join(sorted(_BOOLEAN, key=len, reverse=True))})(?![\w'-])"
_BOOLEAN_HEAD = re.compile(rf"[(\[<\s]*{_TRUTH}[)\]>]*", _I)
_BOOLEAN_STOP = re.compile(
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
        return _UNPARSED
    value = _BOOLEAN[match["value"].lower()]
    rest = text[match.end() :]
    while other := _BOOLEAN_CHOICE.match(rest):
        if _BOOLEAN[other["value"].lower()] != value:
            return _AMBIGUOUS
        rest = rest[other.end() :]
    # "no" before a noun is a determiner: no one, no solution
    complete = re.fullmatch(r"[\s.!?)]*", rest) if strict else _BOOLEAN_STOP.match(rest)
    return Answer("ok", value) if complete else _UNPARSED


_D = r"[0-9]"
_NUMBER = re.compile(
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
_UNITS = _words(
    "kg g mg t lb lbs oz km m cm mm mi ft in yd h hr hrs min mins s sec secs ms d l ml cl gal mph kph kmh w"
    " kw kwh j kj cal kcal n pa v hz khz mhz ghz b kb mb gb tb c f usd eur gbp sq px deg rad mol ha a"
)
_NOT_UNITS = _words(
    "squared cubed factorial pi π dozen dozens power half quarter third am pm choose modulo mod plus minus"
    " divided multiplied increased decreased reduced raised"
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


def _read_numeric(text: str, strict: bool) -> Answer:
    text = re.sub(r"\b(?:is equal to|equals?)\b", "=", text, flags=_I)
    if text.startswith(("±", "+/-")):
        return _AMBIGUOUS
    at = 0
    for _ in range(10):  # 12 + 13 = 25: what stands before an equals sign need not be one number
        at += len(text[at:]) - len(text[at:].lstrip(" (["))
        answer = _read_quantities(text, at + _skip(text[at:], "numeric"), strict)
        equals = _EQUALS.search(text, at)
        if answer is not None or equals is None or _NOT_AN_EQUATION.search(text, at, equals.start()):
            return answer or _UNPARSED
        at = equals.end()
    return _UNPARSED


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
                return _UNPARSED
            break
        if other[0] != value:
            # 5 hours and 30 minutes is one quantity, not a choice; 72, 24 for each is not a list
            compound = unit and other[1] and unit != other[1] and "or" not in word
            aside = word.strip() == "," and not _NUMBER_LIST_END.match(text, other[2])
            return _UNPARSED if compound or aside else _AMBIGUOUS
        at = other[2]
    if _GLUED_AFTER.match(text, at) or _CONTINUES.match(text, at):
        return None
    if strict and (len(unit.split()) > 3 or not re.fullmatch(r"\s?(?:\([^()]*\))?[\s.!?)\]]*", text[at:])):
        return _UNPARSED
    try:
        rounded = float(value) or 0.0  # never -0.0
    except OverflowError:
        return _UNPARSED
    return Answer("ok", rounded, value)


def _quantity(text: str, at: int) -> tuple[Fraction, str, int] | None:
    """(value, unit words, end) of a number with its unit at a position; None if none stands there whole."""
    match = _NUMBER.match(text, at)
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
    if _RATIO.match(text, at) or (_GLUED_AFTER.match(text, at) and not _PER.match(text, at)):
        return None
    end = _UNIT_END.search(text, at)
    stop = end.start() if end else len(text)
    unit = _UNIT_SIGNS.sub(r"\1 ", text[at:stop])
    words = re.findall(r"[^\W\d_]+", unit.lower())
    glued = text[at : at + 1].isalpha()
    if (
        re.search(r"[0-9+×÷*/^<>=≈\\±√…_#@′″]|\.\S", unit)
        or _ABBREVIATED.match(text, at)
        or any(word in _NOT_UNITS or (len(word) == 1 and word < "\u2e80" and word not in _UNITS) for word in words)
        or not _NOT_UNITS_ZH.isdisjoint(unit)
        or (glued and words[0] not in _UNITS and words[0] < "\u2e80")
    ):
        return None
    return (-value if match["sign"] == "-" else value), " ".join(words), stop
