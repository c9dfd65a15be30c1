"""Paired rates: among the items that one cell puts in a stratum, how often does another cell give an event?

Arrays hold one truth value per item, in one item order: bool, or 0 and 1. A failed request is missing, not
wrong: None or NaN in an array is refused by the item's number, unless `present` (bool, one per item) leaves
that item out. `complete(...)` makes such a mask; its sum is the count to report beside the rate. Answers that
do not parse are not missing, they are False. An empty stratum gives None, never zero (SCOPE Sec. 3.2).

The `*_ratio` functions give the same rates in a form that `bootstrap` resamples and that + - * / combine.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]
Column = ArrayLike | Sequence[bool | float | None]  # (n_items,), None and NaN = missing
Mask = Column | None  # bool (n_items,); None keeps every item


class Rate:
    """What can be resampled by matrix product: a sum of coefficient × `Ratio`, over the same items."""

    __slots__ = ()
    terms: tuple[tuple[float, Ratio], ...]

    def __add__(self, other: Rate) -> Combination:
        return Combination(self.terms + other.terms)

    def __sub__(self, other: Rate) -> Combination:
        return Combination(self.terms + tuple((-coefficient, ratio) for coefficient, ratio in other.terms))

    def __mul__(self, factor: float) -> Combination:
        return Combination(tuple((factor * coefficient, ratio) for coefficient, ratio in self.terms))

    __rmul__ = __mul__

    def __truediv__(self, divisor: float) -> Combination:
        return Combination(tuple((coefficient / divisor, ratio) for coefficient, ratio in self.terms))

    @property
    def n_items(self) -> int:
        return len(self.terms[0][1].numerator)

    def estimate(self) -> float | None:
        """The rate on the observed items; None where one of its denominators is zero."""
        total = 0.0
        for coefficient, ratio in self.terms:
            under = math.fsum(ratio.denominator)
            if under == 0:
                return None
            total += coefficient * (math.fsum(ratio.numerator) / under)
        return total


@dataclass(frozen=True, slots=True, eq=False)
class Ratio(Rate):
    """sum(weight × numerator) / sum(weight × denominator).

    numerator, denominator: array-like (n_items,), finite, kept as float64 copies; denominator >= 0. In a
    conditional rate they are stratum-and-event and stratum; in a mean the denominator is 1.
    Raises ValueError on other shapes and values, naming the item.
    """

    numerator: Floats
    denominator: Floats

    def __post_init__(self) -> None:
        for name in ("numerator", "denominator"):
            column = np.array(getattr(self, name), dtype=np.float64)
            bad = ~np.isfinite(column) | ((column < 0) & (name == "denominator"))
            if column.ndim != 1 or bad.any():
                where = f"item {int(np.argmax(bad))}" if column.ndim == 1 else f"shape {column.shape}"
                needs = "one finite value per item, in the denominator zero or more"
                raise ValueError(f"{name}, {where}: needs {needs}. A missing item gets zero in both.")
            column.flags.writeable = False
            object.__setattr__(self, name, column)
        _same_length(numerator=self.numerator, denominator=self.denominator)

    @property
    def terms(self) -> tuple[tuple[float, Ratio], ...]:  # type: ignore[override]
        return ((1.0, self),)


@dataclass(frozen=True, slots=True, eq=False)
class Combination(Rate):
    """Sum of coefficient × ratio on the same items; undefined wherever one of its ratios is."""

    terms: tuple[tuple[float, Ratio], ...]

    def __post_init__(self) -> None:
        sizes = sorted({len(ratio.numerator) for _, ratio in self.terms})
        if len(sizes) != 1:
            raise ValueError(f"Rates over {sizes} items cannot be combined: pairs need the same items.")


def mean_of(rates: Sequence[Rate]) -> Combination:
    """Equal-weight mean of rates on the same items, such as overall accuracy (Sec. 3.2, eq. 3)."""
    return Combination(tuple((c / len(rates), ratio) for rate in rates for c, ratio in rate.terms))


def restricted(rate: Rate, inside: ArrayLike) -> Rate:
    """The rate over the items of a mask, bool (n_items,), resampled together with all others."""
    mask = np.asarray(inside, dtype=bool)
    if mask.all():
        return rate
    return Combination(tuple((c, Ratio(r.numerator * mask, r.denominator * mask)) for c, r in rate.terms))


def share(stratum: Bools, *events: Bools) -> Ratio:
    """Share of the stratum with an event; of several events (orders, positions, seeds) the mean of their shares."""
    return among(*((stratum, event) for event in events))


def among(*pairs: tuple[Bools, Bools]) -> Ratio:
    """Of all (stratum, event) pairs of all items, how many have the event among those inside the stratum."""
    return Ratio(
        np.sum([stratum & event for stratum, event in pairs], axis=0, dtype=np.float64),
        np.sum([stratum for stratum, _ in pairs], axis=0, dtype=np.float64),
    )


def support(rate: Rate) -> Bools:
    """The items that a rate is of, bool (n_items,): those in the denominator of one of its ratios."""
    return np.logical_or.reduce([ratio.denominator > 0 for _, ratio in rate.terms])


def taken(rate: Rate, inside: Bools) -> Rate:
    """The rate as one of these items alone: fewer items, not only weights of zero."""
    return Combination(tuple((c, Ratio(r.numerator[inside], r.denominator[inside])) for c, r in rate.terms))


def accuracy_ratio(correct: Column, present: Mask = None) -> Ratio:
    """Share of True over all (present) items (Sec. 3.2, eq. 2). correct: bool (n_items,)."""
    (values,), kept = _read(present, correct=correct)
    return _ratio(values & kept, kept)


def conditional_ratio(stratum: Column, event: Column, present: Mask = None) -> Ratio:
    """P(event | stratum) over the (present) items. stratum, event: bool (n_items,)."""
    (inside, happened), kept = _read(present, stratum=stratum, event=event)
    return _ratio(inside & happened & kept, inside & kept)


def sc2w_ratio(clean_correct: Column, misleading_correct: Column, present: Mask = None) -> Ratio:
    """SC2W = P(wrong when misleading | right when clean), on the system's own clean-correct items (eq. 4)."""
    cells = {"clean_correct": clean_correct, "misleading_correct": misleading_correct}
    (clean, misleading), kept = _read(present, **cells)
    return _ratio(clean & ~misleading & kept, clean & kept)


def conditional_rate(
    stratum: Column, event: Column, weights: ArrayLike | None = None, present: Mask = None
) -> float | None:
    """P(event | stratum), in [0, 1]; None if the stratum is empty or weighs nothing.

    stratum, event, present: bool (n_items,); weights: finite, >= 0, (n_items,), default 1 each.
    Raises ValueError on a missing value that `present` does not leave out, and on unequal lengths.
    """
    ratio = conditional_ratio(stratum, event, present)
    if weights is None:
        return ratio.estimate()
    weight = Ratio(np.zeros(ratio.n_items), np.asarray(weights)).denominator  # checks finite, >= 0, length
    return Ratio(weight * ratio.numerator, weight * ratio.denominator).estimate()


def sc2w(clean_correct: Column, misleading_correct: Column, present: Mask = None) -> float | None:
    """Share of clean-correct items that are wrong when misleading, in [0, 1]; None without any (eq. 4).

    Both bool (n_items,), of one system. Raises ValueError on a missing value kept, and on unequal lengths.
    """
    return sc2w_ratio(clean_correct, misleading_correct, present).estimate()


@dataclass(frozen=True, slots=True)
class RepairCounts:
    """Items changed against the base model (Fig. 7a).

    repairs: of base_failures (base right clean, wrong misleading) those now right when misleading, whatever
    the new clean answer. gains (wrong -> right), costs (right -> wrong): over all items, misleading cell.
    net: gains - costs.
    """

    repairs: int
    base_failures: int
    gains: int
    costs: int
    net: int


def repairs_gains_costs(
    base_clean: Column, base_misleading: Column, new_misleading: Column, present: Mask = None
) -> RepairCounts:
    """Repairs, gains and costs of a system against its base; each argument bool (n_items,), True = right."""
    (clean, before, after), kept = _read(
        present, base_clean=base_clean, base_misleading=base_misleading, new_misleading=new_misleading
    )
    failed = clean & ~before & kept
    gains, costs = int(np.sum(~before & after & kept)), int(np.sum(before & ~after & kept))
    return RepairCounts(int(np.sum(failed & after)), int(np.sum(failed)), gains, costs, gains - costs)


@dataclass(frozen=True, slots=True)
class McNemar:
    """Discordant items and the exact two-sided p-value of their being a fair coin's (1 without any)."""

    b_only: int
    a_only: int
    p_value: float


def mcnemar(a: Column, b: Column, present: Mask = None) -> McNemar:
    """Exact McNemar test of two systems, or cells, on the same items. a, b: bool (n_items,), True = right."""
    from scipy.stats import binomtest  # type: ignore[import-untyped]  # here, because slow to import

    (first, second), kept = _read(present, a=a, b=b)
    b_only, a_only = int(np.sum(second & ~first & kept)), int(np.sum(first & ~second & kept))
    discordant = a_only + b_only
    return McNemar(b_only, a_only, float(binomtest(b_only, discordant, 0.5).pvalue) if discordant else 1.0)


def complete(*columns: Column) -> Bools:
    """Mask (n_items,) of the items that no column misses: a `present` for rates on complete items."""
    _same_length(**{f"column {i}": np.asarray(column) for i, column in enumerate(columns)})
    return np.logical_and.reduce([~_truth(f"column {i}", column)[1] for i, column in enumerate(columns)])


def _ratio(event: Bools, stratum: Bools) -> Ratio:
    return Ratio(event.astype(np.float64), stratum.astype(np.float64))


def _read(present: Mask, **columns: Column) -> tuple[list[Bools], Bools]:
    """The columns as bool (a missing value that `present` leaves out is False), and the items kept."""
    read = {name: _truth(name, column) for name, column in columns.items()}
    values = {name: value for name, (value, _) in read.items()}
    kept = np.ones(len(next(iter(values.values()))), dtype=bool)
    if present is not None:
        kept, unknown = _truth("present", present)
        if unknown.any():
            raise ValueError(f"present, item {int(np.argmax(unknown))}: found nothing, needs True or False.")
    _same_length(**values, present=kept)
    for name, (_, missing) in read.items():
        gaps = np.flatnonzero(missing & kept)
        if len(gaps):
            raise ValueError(
                f"{name}, item {gaps[0]}: no answer ({len(gaps)} in all). A failed request is missing, not"
                " wrong: ask it again, or pass present=complete(...) to leave it out."
            )
    return list(values.values()), kept


def _truth(name: str, column: Column) -> tuple[Bools, Bools]:
    """Truth values and missing mask, both bool (n_items,)."""
    array = np.asarray(column)
    if array.ndim != 1:
        raise ValueError(f"{name} has shape {array.shape}: needs one truth value per item.")
    if array.dtype == np.bool_:
        return array, np.zeros(len(array), dtype=bool)
    value, missing = np.zeros(len(array), dtype=bool), np.zeros(len(array), dtype=bool)
    for index, entry in enumerate(array.tolist()):
        not_a_number = isinstance(entry, float) and math.isnan(entry)
        if entry is None or not_a_number or type(entry).__name__ == "NAType":  # pandas.NA
            missing[index] = True
        elif isinstance(entry, (bool, int, float, np.generic)) and entry in (0, 1):
            value[index] = bool(entry)
        else:
            raise ValueError(f"{name}, item {index}: {entry!r} is no truth value (True, False, 1, 0).")
    return value, missing


def _same_length(**columns: NDArray) -> None:
    sizes = {name: len(column) for name, column in columns.items()}
    if len(set(sizes.values())) > 1:
        listed = ", ".join(f"{name} {size}" for name, size in sizes.items())
        raise ValueError(f"Lengths differ ({listed}): each needs one value per item, in one order.")
