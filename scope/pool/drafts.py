"""From an upstream row to a Question, or to the sentence that says why the row cannot be used."""

import re
import string
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from scope.answers import parse_answer
from scope.pool import mistakes
from scope.pool.foils import Mistake
from scope.pool.questions import Question

#: Characters of a question with its options; a longer one is mostly reading, and crowds the context window.
MAX_CHARACTERS = 4000

_TOO_LONG = f"question: is longer than {MAX_CHARACTERS:,} characters with its options; leave it out"

_FORBIDDING = re.compile(
    r"(?i)(?<![a-z])(?:nc|nd)(?![a-z])|non-? ?commercial|no-? ?deriv|all rights reserved|proprietary|confidential"
)
_PERMITTING = re.compile(
    r"(?i)(?<![a-z])(?:mit|apache|bsd|cc0|cc[- ]by|odc-by|odbl|pddl|unlicense|isc|[al]?gpl|mpl)(?![a-z])|public domain"
)


class Unusable(ValueError):
    """A row that cannot be used: `field: what was found; what to do`, without the row's own text."""


@dataclass(frozen=True, slots=True)
class Draft:
    """What a source function reads from one row; `question_of` checks it and completes it."""

    question: str
    answer_type: str
    gold: str
    mistakes: Sequence[Mistake]
    options: tuple[str, ...] = ()


def redistributable(license: str) -> bool | None:
    """Whether a licence lets its rows, and items made of them, be handed on; None where it does not say.

    license: SPDX name or free text. Non-commercial and no-derivatives licences count as forbidding it.
    """
    if _FORBIDDING.search(license):
        return False
    return True if _PERMITTING.search(license) else None


# ---------------------------------------------------------------- parts of a row


def clean(text: str) -> str:
    """A text without outer white space, with single spaces and plain line ends; nothing else is mended."""
    text = re.sub(r"\r\n?", "\n", text)
    return re.sub(r" ?\n ?", "\n", re.sub(r"[^\S\n]+", " ", text)).strip()


def text_in(row: Mapping[str, Any], column: str) -> str:
    """A cell's text, cleaned; Unusable where it is missing, empty or not text."""
    value = row.get(column)
    if value is None:
        raise Unusable(f"{column}: is missing; every row needs it")
    if not isinstance(value, str):
        raise Unusable(f"{column}: is {type(value).__name__}, not text; write one text")
    if not value.strip():
        raise Unusable(f"{column}: is empty; every row needs it")
    return clean(value)


def question_in(row: Mapping[str, Any], column: str) -> str:
    """The question's text, of bearable length."""
    question = text_in(row, column)
    if len(question) > MAX_CHARACTERS:
        raise Unusable(_TOO_LONG)
    return question


def texts_in(value: object, column: str) -> list[str]:
    """A cell that holds a list of texts (or numbers), each on one line."""
    if not isinstance(value, list | tuple) or not all(isinstance(v, str | int | float) for v in value):
        raise Unusable(f"{column}: is no list of texts; write a list of options")
    return [" ".join(str(v).split()) for v in value]


def number_in(text: str, column: str) -> str:
    """A gold number as items write it: 58,500 is 58500, .5 is 0.5, \\frac{3}{4} is 3/4.

    Unusable where our own parser does not read the text as one number, or not as the one written there.
    """
    text = text[:200].replace("\\!", "")
    exact = parse_answer(text, "numeric").exact
    if exact is not None:
        if re.fullmatch(r"-?\s?(?:\d+\s?/\s?\d+|\\[dt]?frac\s?\{?\d+\}?\s?\{?\d+\}?)", text):
            return str(exact)
        digits = re.findall(r"[0-9][0-9,]*(?:\.[0-9]+)?|\.[0-9]+", text) or ["0"]
        whole, point, places = digits[0].replace(",", "").partition(".")
        plain = f"{'-' * (exact < 0)}{whole.lstrip('0') or '0'}{point}{places}"
        if len(digits) == 1 and Fraction(plain) == exact:
            return plain
    raise Unusable(f"{column}: is no plain number; only whole numbers, decimals and fractions are used")


# ---------------------------------------------------------------- drafts


def numeric(question: str, gold: str, found: Sequence[Mistake]) -> Draft:
    return Draft(question, "numeric", gold, found)


def boolean(question: str, gold: bool) -> Draft:
    word = "yes" if gold else "no"
    return Draft(question, "boolean", word, mistakes.other_word(word))


def multiple_choice(question: str, options: Sequence[str], place: int) -> Draft:
    """place: of the right option, from 0."""
    if not 2 <= len(options) <= 26:
        raise Unusable("options: fewer than 2 or more than 26; multiple choice needs 2 to 26")
    if not all(options):
        raise Unusable("options: one is empty; give every option a text")
    for i, option in enumerate(options):
        if any(mistakes.say_the_same(option, other) for other in options[:i]):
            raise Unusable("options: two say the same (but for case, spacing or number form); make them differ")
    found = mistakes.other_options(question, options[place], options)
    return Draft(question, "multiple_choice", options[place], found, tuple(options))


def place_of(key: object, labels: Iterable[object], column: str) -> int:
    """The place of the gold label among the labels."""
    if key is None or key == "":
        raise Unusable(f"{column}: is missing; the row has no gold answer")
    if isinstance(key, list | tuple | dict):
        raise Unusable(f"{column}: is a list; name one gold answer")
    places = [i for i, label in enumerate(labels) if label == key]
    if len(places) != 1:
        raise Unusable(f"{column}: names {'no' if not places else 'more than one'} option; name one of the options")
    return places[0]


def question_of(draft: Draft, **facts: Any) -> Question:
    """The checked Question of a draft. facts: source, upstream_id, topic, license, where, ..."""
    if fault := _text_fault([draft.question, *draft.options]):
        raise Unusable(fault)
    if not draft.mistakes:
        raise Unusable("wrong answer: no mistake gives a plausible one; give one, or leave the row out")
    return Question(
        question=draft.question,
        answer_type=draft.answer_type,
        gold=draft.gold,
        mistakes=tuple(draft.mistakes),
        options=draft.options,
        fixed_order=any(speaks_of_others(option) for option in draft.options),
        **facts,
    )


# ---------------------------------------------------------------- what a text may not hold

_CONTROL_TOKEN = re.compile(
    r"<\|[^|<>\s]{1,40}\|>|</?s>|\[/?INST\]|<</?SYS>>|<(?:bos|eos|pad|unk|mask)>|<(?:start|end)_of_(?:turn|image)>"
)
_HTML = re.compile(
    r"(?i)</?(?:a|b|i|u|p|br|hr|em|strong|span|div|sub|sup|img|table|t[rdh]|[uo]l|li|code|pre|h[1-6]|font)(?:\s[^<>]*)?/?>"
    r"|&(?:[a-z]{2,8}|#\d{2,6});"
)
_BROKEN = re.compile("[\x00-\x09\x0b-\x1f\x7f\ufffd\ud800-\udfff]")
_SHOWN = r"(?:figure|diagram|picture|graph|chart|map|image|illustration|photograph|photo|drawing|cartoon|table|grid)s?"
_NOT_THERE = re.compile(
    rf"""(?ix) \[asy\]
    | \b(?:underlined|italici[sz]ed|boldfaced)\b
    | (?<!of\sthe\s)\b(?:following|accompanying|adjoining)\s{_SHOWN}\b
    | \b(?:the|this|above|each)\s{_SHOWN}\s(?:above|below|shown|provided|(?:to|on)\sthe\s(?:left|right))\b
    | \b(?:hexagon|grid|wheel|spinner|checkerboard|track|board|pyramid)\sshown\b
    | \b(?:shown|pictured|depicted|illustrated|drawn|graphed|represented)\s(?:in|on|by)\sthe\s{_SHOWN}\b
    | \bas\s(?:shown|pictured|depicted|illustrated)(?:\s(?:above|below|here))?[.,?]
    | \bin\s(?:the|this)\s(?:figure|diagram|illustration)\b
    | \bthe\s(?:figure|diagram|illustration|picture)\s(?:above|below|shows|represents|depicts|illustrates)\b
    | \b(?:pictured|graphed|drawn)\s(?:above|below|here)\b
    | ,\sshown,\s"""
)
_PASSAGE = re.compile(r"(?i)\b(?:the|this|following) (?:passage|excerpt)s?\b(?! of\b)|\brefers? to the following\b")
_PASSAGE_CHARACTERS = 300  # a shorter question cannot hold its passage


def _text_fault(texts: Sequence[str]) -> str | None:
    whole = "\n".join(texts)
    if len(whole) > MAX_CHARACTERS:
        return _TOO_LONG
    if _BROKEN.search(whole):
        return "question: holds control or broken characters; save the file as UTF-8"
    if _CONTROL_TOKEN.search(whole):
        return "question: holds a tokenizer's control token; remove it"
    if _HTML.search(whole):
        return "question: holds HTML; write plain text"
    if _NOT_THERE.search(texts[0]):
        return "question: refers to a figure, table or mark-up that is not there; leave it out"
    if len(texts[0]) < _PASSAGE_CHARACTERS and _PASSAGE.search(texts[0]):
        return "question: refers to a passage that is not there; leave it out"
    return None


_OPTION = r"\(?[A-E]\)?\.?"
_OTHERS = re.compile(
    rf"(?i)(?:both|neither|either) {_OPTION}(?:,? {_OPTION})*,? (?:and|or|nor|&) {_OPTION}(?!\w).*"
    rf"|{_OPTION}(?:,? {_OPTION})*,? (?:and|or|&) {_OPTION}(?: above)?(?: only)?\W*"
    r"|.{0,30}\b(?:of|the) (?:above|preceding)\W*|above\W*"
    r"|.{0,20}\b(?:these|other|the|previous) (?:options|choices)\b.{0,20}"
)


def speaks_of_others(option: str) -> bool:
    """Whether an option refers to the others (all of the above, both A and B), so that their order must stay.

    Statements numbered in the question (I and II only) are no options and may change places.
    """
    return mistakes.catches_all(option) or _OTHERS.fullmatch(option) is not None


def labelled(option: str, place: int) -> str:
    """An option without the letter it is labelled with, if that is the letter of its place: A)21 is 21."""
    letter = string.ascii_uppercase[place]
    return re.sub(rf"^\(?{letter}[).:]\s*", "", option)
