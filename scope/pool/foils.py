"""Wrong answers as named mistakes, computed from an item's own numbers.

Each function returns the value that one mistake gives, with its class and its name. A mistake
that happens to give the gold answer, or an implausible value, is sieved out by `usable`.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from scope.items import WRONG_CLASSES

#: Names of mistakes that were made, not worked out: given with the question, or by the base model itself.
KNOWN = ("given", "own error")


@dataclass(frozen=True, slots=True)
class Mistake:
    """A wrong value (a number, yes/no, or the text of an option), its class, and what went wrong."""

    value: str
    wrong_class: str
    name: str

    def __post_init__(self) -> None:
        if self.wrong_class not in WRONG_CLASSES:
            raise ValueError(f"unknown wrong-answer class {self.wrong_class!r} of the mistake {self.name!r}")

    @property
    def known(self) -> bool:
        """Somebody or some model gave this answer; it is not one of ours."""
        return self.name in KNOWN

    def side(self, gold: str) -> int:
        """1 for a number above the gold, -1 below it, 0 if either is no number."""
        try:
            wrong, right = Fraction(self.value.replace(",", "")), Fraction(gold.replace(",", ""))
        except (ValueError, ZeroDivisionError):
            return 0
        return (wrong > right) - (wrong < right)


def text(value: object) -> str:
    """A number as it is written in items: no exponent, no trailing zeros beyond the given ones."""
    return f"{value:f}" if isinstance(value, Decimal) else str(value)


def slip(value: object, name: str) -> Mistake:
    return Mistake(text(value), "arithmetic_slip", name)


def misread(value: object, name: str) -> Mistake:
    return Mistake(text(value), "misread_condition", name)


def misconception(value: object, name: str) -> Mistake:
    return Mistake(text(value), "misconception", name)


def overgeneralized(value: object, name: str) -> Mistake:
    return Mistake(text(value), "overgeneralization", name)


def confused(value: object, name: str) -> Mistake:
    return Mistake(text(value), "entity_confusion", name)


def off_by(value: object, name: str) -> Mistake:
    return Mistake(text(value), "off_by_one", name)


def near(value: object, name: str) -> Mistake:
    return Mistake(text(value), "near_option", name)


# ---------------------------------------------------------------- arithmetic, digit by digit


def no_carry(a: int, b: int) -> Mistake:
    """Column addition that drops every carry: 27 + 15 = 32."""
    value, place = 0, 1
    while a or b:
        value += (a % 10 + b % 10) % 10 * place
        a, b, place = a // 10, b // 10, place * 10
    return slip(value, "dropped the carry")


def no_borrow(a: int, b: int) -> Mistake:
    """Column subtraction that always takes the smaller digit from the larger: 52 - 27 = 35."""
    value, place = 0, 1
    while a or b:
        value += abs(a % 10 - b % 10) * place
        a, b, place = a // 10, b // 10, place * 10
    return misconception(value, "took the smaller digit from the larger in every column")


def digits_swapped(gold: int) -> Mistake:
    """The last two digits exchanged: 63 for 36."""
    tens, ones = gold // 10 % 10, gold % 10
    return slip(gold - 10 * tens - ones + 10 * ones + tens, "exchanged the last two digits")


def tens_slip(gold: int, up: bool) -> Mistake:
    return slip(gold + 10 if up else gold - 10, "was out by ten")


def counted_start(gold: int, up: bool = True) -> Mistake:
    """Counting from the start itself: out by one."""
    return off_by(gold + 1 if up else gold - 1, "counted from the start itself")


# ---------------------------------------------------------------- choosing


class Leaning:
    """Keeps wrong numbers above and below the right ones equally often.

    Otherwise the larger of two values would tell the right one from the wrong one.
    """

    def __init__(self) -> None:
        self.above = 0  # how many more wrong numbers lay above the gold than below

    def due(self, mistakes: Sequence[Mistake], gold: str) -> list[Mistake]:
        """The mistakes that do not lean further the way it leans already."""
        return [m for m in mistakes if self.above * m.side(gold) <= 0]

    def took(self, mistake: Mistake, gold: str) -> None:
        self.above += mistake.side(gold)


# ---------------------------------------------------------------- sieve


def usable(mistakes: Iterable[Mistake], gold: str, answer_type: str, options: Sequence[str] = ()) -> list[Mistake]:
    """The mistakes that give a wrong and plausible value, one for each value.

    Numbers: not equal to the gold as numbers, as many decimals as the gold, not negative unless the
    gold is, zero only beside a single-digit gold, and between a fifth and five times the gold (or
    within 5 of it); a fraction only beside a fraction. Multiple choice: another option's text. Boolean: the other word.
    """
    found: dict[str, Mistake] = {}
    for mistake in mistakes:
        if answer_type == "numeric":
            fits = _plausible(mistake.value, gold)
        else:
            fits = mistake.value != gold and mistake.value in (options or ("yes", "no"))
        if fits:
            found.setdefault(mistake.value, mistake)
    return list(found.values())


def _plausible(value: str, gold: str) -> bool:
    wrong, right = Fraction(value), Fraction(gold)
    if wrong == right or ("/" in value) != ("/" in gold):
        return False
    if "/" not in gold and Decimal(value).as_tuple().exponent != Decimal(gold).as_tuple().exponent:
        return False
    if (wrong < 0 <= right) or (wrong == 0 and abs(right) > 9):
        return False
    near = "/" not in gold and abs(wrong - right) <= 5
    return near or abs(right) <= 5 * abs(wrong) <= 25 * abs(right)
