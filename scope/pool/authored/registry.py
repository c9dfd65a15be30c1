"""The family decorator, and what a family draws."""

import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from scope.answers import ANSWER_TYPES
from scope.pool.foils import Mistake

TIERS = ("easy", "standard", "hard")
#: What a family's problems are for. No family is in two banks, so an evaluation never asks what training drilled.
BANKS = ("train", "dev", "eval")


@dataclass(frozen=True, slots=True)
class Draw:
    """One question as a family draws it, before options are ordered and contexts are written.

    gold: a number, yes/no, or the text of the right option. mistakes: wrong values by named
    mistakes, more than one where possible. second_way: the gold computed again, another way,
    from the numbers that stand in the question, in order. options: all option texts, any order.
    core: what makes two questions near-copies of each other; by default the numbers, sorted.
    """

    question: str
    gold: str
    mistakes: Sequence[Mistake]
    second_way: Callable[[list[int]], object]
    options: Sequence[str] = ()
    core: str = ""


@dataclass(frozen=True, slots=True)
class Family:
    """A registered family: `draw(rng, tier)` gives one question of a tier in `tiers`, for the pools of `bank`."""

    name: str
    topic: str
    answer_type: str
    tiers: tuple[str, ...]
    bank: str
    draw: Callable[[random.Random, str], Draw]


#: Every family by name, in order of registration.
FAMILIES: dict[str, Family] = {}


def family(
    name: str, topic: str, answer_type: str, bank: str, tiers: Sequence[str] = ("easy",)
) -> Callable[[Callable[[random.Random, str], Draw]], Callable[[random.Random, str], Draw]]:
    """Register a family of one bank. Its name becomes part of item ids: lower case letters and underscores."""
    if name in FAMILIES or not re.fullmatch(r"[a-z][a-z_]*", name):
        raise ValueError(f"family name {name!r} is taken or is not lower case letters and underscores")
    if answer_type not in ANSWER_TYPES or not set(tiers) <= set(TIERS) or not tiers:
        raise ValueError(f"family {name!r}: unknown answer type {answer_type!r} or tiers {tuple(tiers)!r}")
    if bank not in BANKS:
        raise ValueError(f"family {name!r}: unknown bank {bank!r}; use one of {', '.join(BANKS)}")

    def register(draw: Callable[[random.Random, str], Draw]) -> Callable[[random.Random, str], Draw]:
        FAMILIES[name] = Family(name, topic, answer_type, tuple(tiers), bank, draw)
        return draw

    return register


def numbers_in(text: str) -> list[int]:
    """The whole numbers of a text, in order."""
    return [int(digits) for digits in re.findall(r"\d+", text)]
