"""Which answers a text names: by value, option letter, option text, or the surname of a full name."""

import re
from fractions import Fraction
from functools import lru_cache

from scope.answers import parse_answer
from scope.conditions import Condition
from scope.items import Item
from scope.pool.quantities import holds, holds_number, is_unit, same_text, tokens
from scope.pool.words import YES_NO


def contexts(item: Item) -> dict[str, str]:
    """The three contexts by field; those not given are what the complete prompts add to the clean one."""
    found = {}
    for condition in (Condition.MISLEADING, Condition.CORRECT, Condition.IRRELEVANT):
        given = item.context(condition)
        found[f"context_{condition}"] = given or added(item.prompt_clean, item.prompt(condition))
    return found


def added(clean: str, prompt: str) -> str:
    """What a prompt has between the beginning and the end that it shares with the clean one, in whole words."""
    if not clean or not prompt:
        return ""
    short, long = (re.findall(r"\s*\S+", text) for text in (clean, prompt))
    head = 0
    while head < min(len(short), len(long)) and short[head].split() == long[head].split():
        head += 1
    tail = 0
    while tail < min(len(short), len(long)) - head and short[-1 - tail].split() == long[-1 - tail].split():
        tail += 1
    return "".join(long[head : len(long) - tail]).strip()


#: A lone capital, not one of an abbreviation (U.S.).
_LONE_CAPITAL = re.compile(r"(?<![\w'.])([A-Z])(?![\w'’]|\.\w)")
_ARTICLE = re.compile(r"\s+(?!(?:is|was|and|or|but|because|since|as|for|not|instead|rather|seems|must|with)\b)[a-zA-Z]")
_PRONOUN = re.compile(r"\s+(?!(?:is|or)\b)[a-z]")
_SMALL_LETTER = re.compile(
    r"(?<!\w)\(([a-z])\)|\b(?:option|choice|letter) \(?([a-z])(?![\w'’])|\banswer:? (?:is )?([b-hj-z])(?![\w'’])"
)


def letters(text: str) -> set[str]:
    """The option letters a text names, as capitals; the article of "A friend" and "I think" are none."""
    found = set()
    for lone in _LONE_CAPITAL.finditer(text):
        other = {"A": _ARTICLE, "I": _PRONOUN}.get(lone[1])
        if not other or not other.match(text, lone.end()):
            found.add(lone[1])
    return found | {next(filter(None, small.groups())).upper() for small in _SMALL_LETTER.finditer(text)}


def names_answer(text: str, item: Item, value: str) -> bool:
    """Whether a context names an answer of an item, in any of its forms."""
    if item.answer_type == "boolean":
        return any(holds(text, word) for word, meaning in YES_NO.items() if meaning == truth(value))
    if item.answer_type == "numeric":
        number = exact(value)
        return holds(text, value) if number is None else holds_number(text, number)
    if names_option(text, option := option_text(item, value)):
        return True
    for other in item.options:  # the letter of "vitamin B" is none
        text = text.replace(other, " ") if len(other) > 1 else text
    return value in letters(text) or _holds_surname(text, option)


def names_option(text: str, option: str) -> bool:
    """Whether a text holds the text of an option; one that is a single letter must stand there as a letter."""
    return option.upper() in letters(text) if len(option) == 1 and option.isalpha() else holds(text, option)


def option_text(item: Item, letter: str) -> str:
    """The text of the option with a letter."""
    return item.options[ord(letter) - ord("A")]


def option_letter(place: int) -> str:
    """0 -> A."""
    return chr(ord("A") + place)


@lru_cache(4096)
def truth(value: str) -> str:
    """A boolean answer as yes or no; empty if it is neither."""
    answer = parse_answer(value, "boolean")
    return str(answer.value) if answer.status == "ok" else YES_NO.get(value.casefold(), "")


@lru_cache(4096)
def exact(value: str) -> Fraction | None:
    """A numeric answer as our own parser reads it; None if it does not."""
    return parse_answer(value, "numeric").exact


_NAME = re.compile(
    r"(?:The )?[A-Z][\w'’.-]*(?: (?:[A-Z][\w'’.-]*|of|the|d[aeiu]|del|van|von|der|l[ae]|bin|al))* ([A-Z][\w'’-]{3,})"
)


def surname(option: str) -> str:
    """The last word of a full name (Albert Einstein), which may stand for it; empty if the text is no name."""
    name = _NAME.fullmatch(option.strip())
    return name[1] if name else ""


def _holds_surname(text: str, option: str) -> bool:
    name = surname(option)
    return bool(name) and re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text) is not None


def both_accepted(short: str, long: str) -> bool:
    """Whether the longer text is the shorter one said in full: with first names, country, unit or brackets."""
    if same_text(short, long):
        return True
    if surname(long) and short.strip() == surname(long):
        return True
    if long.endswith(")") and "(" not in short and same_text(short, re.sub(r"\s\([^()]*\)$", "", long)):
        return True
    head, comma, rest = long.partition(", ")
    if comma and re.fullmatch(r"(?:[A-Z]\w+ ?){1,3}", rest) and head.casefold() not in YES_NO and head[:1].isupper():
        return same_text(short, head)
    few, more = tokens(short), tokens(long)
    return len(few) == 1 and few[0][-1].isdigit() and few[0] == more[0] and is_unit(more[1:])
