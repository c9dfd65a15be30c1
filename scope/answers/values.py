"""What an answer is, and when two are the same."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Literal

ANSWER_TYPES = ("multiple_choice", "numeric", "boolean")
TOLERANCE = Fraction(1, 10_000)  # absolute, inclusive


@dataclass(frozen=True, slots=True)
class Answer:
    """A parsed answer.

    value: a capital letter, a finite float, or "yes" / "no"; None unless status is "ok".
    exact: for numbers, the value as written, before rounding to a float; not part of equality.
    """

    status: Literal["ok", "unparsed", "ambiguous"]
    value: str | float | None
    exact: Fraction | None = field(default=None, compare=False, repr=False)


UNPARSED = Answer("unparsed", None)
AMBIGUOUS = Answer("ambiguous", None)


def same_answer(a: Answer, b: Answer, answer_type: str) -> bool:
    """Whether both were read and are the same answer under the type's rule (numbers: within 1e-4)."""
    check_type(answer_type)
    if a.status != "ok" or b.status != "ok":
        return False
    if answer_type == "numeric":
        return abs(exact_value(a) - exact_value(b)) <= TOLERANCE
    return a.value == b.value


def check_type(answer_type: str, n_options: int | None = None) -> None:
    if answer_type not in ANSWER_TYPES:
        raise ValueError(f"answer type {answer_type!r} is unknown; use one of {', '.join(ANSWER_TYPES)}")
    if answer_type == "multiple_choice" and n_options is not None and not 1 <= n_options <= 26:
        raise ValueError(f"n_options is {n_options}; multiple choice has 1 to 26 options, lettered A to Z")


def exact_value(answer: Answer) -> Fraction:
    if answer.exact is not None:
        return answer.exact
    if answer.value is None or isinstance(answer.value, str):
        raise ValueError(f"answer value {answer.value!r} is not a number, but the answer type is numeric")
    return Fraction(repr(answer.value))  # the shortest decimal of the float, not its binary expansion
