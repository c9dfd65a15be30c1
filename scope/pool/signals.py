"""Contexts: nine channels, each with phrasings that carry a value and phrasings that carry none.

The phrasings are lines of `signals.toml`. The misleading and the correct context of an item are
one phrasing with the value exchanged.
"""

import random
import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Generic, TypeVar

from scope.items import CHANNELS

PHRASINGS = Path(__file__).with_name("signals.toml")

#: How a multiple-choice value is named: by its letter, by its option text, or by both.
FORMS = ("letter", "text", "both")

T = TypeVar("T")


class Rotation(Generic[T]):
    """Exact seeded round robin: every block of len(values) draws is a new permutation of them."""

    def __init__(self, values: Sequence[T], rng: random.Random):
        self.values, self.rng = tuple(values), rng
        self.waiting: list[T] = []

    def next(self) -> T:
        if not self.waiting:
            self.waiting = self.rng.sample(self.values, len(self.values))
        return self.waiting.pop()

    def next_fitting(self, fits: set[T]) -> T:
        """The next value that fits; those passed over keep their turn."""
        if not fits & set(self.waiting):
            self.waiting = self.rng.sample(self.values, len(self.values)) + self.waiting
        position = max(i for i, value in enumerate(self.waiting) if value in fits)
        return self.waiting.pop(position)


@dataclass(frozen=True, slots=True)
class Channel:
    """The phrasings of one channel. Those in `value` hold `{value}` exactly once."""

    name: str
    value: tuple[str, ...]
    irrelevant: tuple[str, ...]


@cache
def load_channels(path: Path = PHRASINGS) -> dict[str, Channel]:
    """Read a phrasing file; ValueError names the channel and the phrasing that is at fault."""
    table = tomllib.loads(path.read_text("utf-8"))
    channels: dict[str, Channel] = {}
    for name in CHANNELS:
        if name not in table:
            raise ValueError(f"{path}: channel {name!r} is missing; give it value and irrelevant phrasings")
        value, irrelevant = (tuple(table[name].get(kind, ())) for kind in ("value", "irrelevant"))
        if not value or not irrelevant:
            raise ValueError(f"{path}: channel {name!r} needs at least one value and one irrelevant phrasing")
        for phrasing in value:
            if phrasing.count("{value}") != 1:
                raise ValueError(f"{path}: {name}: {phrasing!r} must hold {{value}} exactly once")
        for phrasing in irrelevant:
            if "{" in phrasing:
                raise ValueError(f"{path}: {name}: {phrasing!r} must hold no field; it carries no value")
        channels[name] = Channel(name, value, irrelevant)
    if unknown := sorted(set(table) - set(CHANNELS)):
        raise ValueError(f"{path}: unknown channel {unknown[0]!r}; use one of {', '.join(CHANNELS)}")
    return channels


def value_forms(value: str, options: Sequence[str]) -> dict[str, str]:
    """Every way a context may name an answer. value: a letter if there are options, else the answer."""
    if not options:
        return {"plain": value}
    option = options[ord(value) - ord("A")]
    return {"letter": value, "text": option, "both": f"{value} ({option})"}


def render(phrasing: str, value: str) -> str:
    return phrasing.replace("{value}", value)


#: Words of a question that do not say what it is about.
_COMMON = frozenset(
    """about after all also and answer answers any are before both but can did does each every for from get
    gets given had has have here how into its just many may more most much none not now number numbers off
    only other out over question result same some than that the their them then there these they this those
    very was what when where which while who why will with word you your""".split()  # noqa: SIM905
)


def content_words(text: str) -> set[str]:
    """Words of three letters or more that say what a text is about, with a plural s removed."""
    return {word.removesuffix("s") for word in re.findall(r"[^\W\d_]{3,}", text.casefold()) if word not in _COMMON}
