"""Pieces of wording, and templates whose numbers can be found again in the finished text."""

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from string import Formatter
from types import SimpleNamespace

from scope.pool.authored.words import NAMES

#: More people than `NAMES`, which the easy tiers draw from and which therefore stays as it is.
PEOPLE = (*NAMES, "Ruth", "Hugo", "Clara", "Ivan", "Maya", "Felix", "Sara", "Noah", "Elif", "Kofi", "Priya", "Jonas")
FIRMS = ("Northgate", "Bluebird Foods", "Harbour Tools", "Alder Homes", "Kestrel Travel", "Willow Books")
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MONTHS = tuple(
    """January February March April May June July August September October November December""".split()  # noqa: SIM905
)


@dataclass(frozen=True, slots=True)
class Filled:
    """A filled template; `read` gives its fields as the numbers of the text say.

    A field is an int where one number stands in it ("6 June"), and a tuple where several do
    ("9:05", "4.50"). A field that is used twice must say the same number twice.
    """

    text: str
    fields: tuple[tuple[str, int], ...]

    def read(self, numbers: Sequence[int]) -> SimpleNamespace:
        if len(numbers) != (due := sum(size for _, size in self.fields)):
            raise ValueError(f"{len(numbers)} numbers stand in the text, but {due} in its template: {self.text}")
        found, position = SimpleNamespace(), 0
        for name, size in self.fields:
            value = numbers[position : position + size]
            position += size
            if name:
                setattr(found, name, value[0] if size == 1 else tuple(value))
        return found


def filled(template: str, **values: object) -> Filled:
    text, fields = "", []
    for literal, name, _, _ in Formatter().parse(template):
        text += literal
        fields.append(("", len(re.findall(r"\d+", literal))))
        if name is not None:
            shown = str(values[name])
            # a name may open a sentence as well as stand within one
            text += shown[:1].upper() + shown[1:] if not text or text.endswith((". ", "? ")) else shown
            if size := len(re.findall(r"\d+", shown)):
                fields.append((name, size))
    return Filled(text, tuple(fields))


def yes_no(value: bool) -> str:
    return "yes" if value else "no"


def a(noun: str) -> str:
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"


def counted(count: int, one: str, many: str = "") -> str:
    """1 day, 3 days; `many` where an s is not enough."""
    return f"{count} {one}" if count == 1 else f"{count} {many or one + 's'}"


def listed(parts: Sequence[str]) -> str:
    """a, b and c."""
    return f"{', '.join(parts[:-1])} and {parts[-1]}" if len(parts) > 1 else parts[0]


def clock(minutes: int) -> str:
    """Minutes after midnight as a time of the 24-hour clock: 9:05."""
    return f"{minutes // 60 % 24}:{minutes % 60:02d}"


def minutes(time: tuple[int, int]) -> int:
    return 60 * time[0] + time[1]


def money(cents: int) -> str:
    """Cents as dollars with two decimals: 4.50."""
    return f"{cents // 100}.{cents % 100:02d}"


def coin(rng: random.Random) -> bool:
    return rng.random() < 0.5
