"""What a table's row or a figure's dot stands for: one system's rates, measured here or published.

A rate is what results.json has: `estimate`, `interval`, `sd` as fractions, null where undefined, `withheld` where a
request it needs failed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Rate = Mapping[str, Any]

#: What published numbers are called wherever they are shown.
PUBLISHED = "published, not measured here"
#: The accuracies that training must not cost (SCOPE paper, Fig. 5 and 7d).
CONTROLS = ("clean", "correct", "irrelevant")


@dataclass(frozen=True, slots=True)
class Line:
    """name: of the system. model, method and table say where a published line comes from."""

    name: str
    rates: Mapping[str, Rate]
    published: bool = False
    model: str = ""
    method: str = ""
    table: int = 0


def measured(found: Mapping[str, Any]) -> list[Line]:
    """One line a system of a suite's results."""
    return [Line(name, system["rates"]) for name, system in found["systems"].items()]


def per_cent(rate: Rate | None) -> float | None:
    """The estimate in per cent; None where it is undefined, withheld or not there."""
    return None if rate is None or rate["estimate"] is None else 100 * rate["estimate"]


def bounds(rate: Rate) -> tuple[float, float] | None:
    """The interval in per cent; None where there is none."""
    return None if rate["interval"] is None else (100 * rate["interval"][0], 100 * rate["interval"][1])


def mean(values: Sequence[float | None]) -> float | None:
    """The mean; None where a value is missing or there is none."""
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known and len(known) == len(values) else None


def control_mean(rates: Mapping[str, Rate]) -> float | None:
    """Mean accuracy without context, with a correct and with an irrelevant one, in per cent."""
    return mean([per_cent(rates.get(cell)) for cell in CONTROLS])


def drop(rates: Mapping[str, Rate]) -> float | None:
    """Accuracy clean minus misleading, in points."""
    clean, misleading = per_cent(rates.get("clean")), per_cent(rates.get("misleading"))
    return None if clean is None or misleading is None else clean - misleading


def best(rates: Sequence[Rate | None], lower_is_better: bool) -> set[int]:
    """Places of the best of several, ties at one decimal included; none among fewer than two."""
    shown = {n: round(value, 1) for n, rate in enumerate(rates) if (value := per_cent(rate)) is not None}
    if len(shown) < 2:
        return set()
    first = min(shown.values()) if lower_is_better else max(shown.values())
    return {n for n, value in shown.items() if value == first}
