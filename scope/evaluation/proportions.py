"""Intervals that have width where the percentile bootstrap has none: rates of few events, differences of few items.

A resample of ten right answers is ten right answers, so that the bootstrap's interval of 10/10 is [1, 1]. `guarded`
gives such numbers a score interval instead, and says which (`Interval.method`):

- `wilson`: a proportion k/n with fewer than `FEW` events or non-events (Wilson 1927).
- `tango`: a paired difference of proportions on the same items, fewer than `DISCORDANT` of which differ: the score
  interval of Tango, Statistics in Medicine 17 (1998) 891-908, which depends on the discordant items and n alone.
- `newcombe`: a difference of conditional rates whose strata differ (SC2W of two systems), few of whose events differ:
  the square-and-add of Newcombe, Statistics in Medicine 17 (1998) 873-890, method 10, on the two Wilson intervals.
  It takes the two for independent, which is conservative where they are positively correlated, as paired systems are.
- `mean`: a mean of several such rates or differences of one set of items (overall accuracy): the mean of the parts'
  score bounds. These are the limits of MOVER (Zou and Donner, Statistics in Medicine 27 (2008) 1693-1702) at
  correlation one, so that no correlation of the cells of an item makes them too narrow.

Everything else keeps the bootstrap, and so does what is no sum of such parts (a change of a difference), or is of
shares rather than of yes and no.
"""

import math
from dataclasses import replace
from functools import lru_cache

import numpy as np

from scope.evaluation.bootstrap import Interval
from scope.evaluation.paired import Bools, Floats, Rate, Ratio

#: Events or non-events below which a proportion is near its boundary.
FEW = 5
#: Discordant items below which a paired difference is of few.
DISCORDANT = 10
#: Items below which a rate carries no claim.
SMALL = 10

Bounds = tuple[float, float]


@lru_cache(maxsize=4096)
def wilson(count: int, n: int, level: float = 0.95) -> Bounds:
    """Wilson's interval of count/n, without continuity correction."""
    from scipy.stats import binomtest  # type: ignore[import-untyped]  # here, because slow to import

    found = binomtest(count, n).proportion_ci(level, method="wilson")
    return float(found.low), float(found.high)


@lru_cache(maxsize=4096)
def tango(ahead: int, behind: int, n: int, level: float = 0.95) -> Bounds:
    """Tango's score interval of (ahead - behind) / n. ahead, behind: items that only the one, only the other has."""
    from scipy.special import ndtri  # type: ignore[import-untyped]

    z = float(ndtri((1 + level) / 2))
    estimate = (ahead - behind) / n

    def score(delta: float) -> float:
        linear = (2 * n - ahead + behind) * delta - ahead - behind
        root = math.sqrt(max(linear**2 + 8 * n * behind * delta * (1 - delta), 0.0))
        only_behind = (root - linear) / (4 * n)  # its maximum-likelihood share where the difference is delta
        variance = n * (2 * only_behind + delta * (1 - delta))
        over = ahead - behind - n * delta
        return over / math.sqrt(variance) if variance > 0 else math.copysign(math.inf, over)

    def end(outer: float) -> float:
        inner = estimate
        for _ in range(60):  # the score falls with delta: by halves to where it is z off
            middle = (inner + outer) / 2
            inner, outer = (middle, outer) if abs(score(middle)) < z else (inner, middle)
        return (inner + outer) / 2

    return end(-1.0), end(1.0)


def newcombe(first: tuple[int, int], second: tuple[int, int], level: float = 0.95) -> Bounds:
    """Newcombe's square-and-add interval of k1/n1 - k2/n2. first, second: (k, n)."""
    (low1, high1), (low2, high2) = wilson(*first, level), wilson(*second, level)
    p1, p2 = first[0] / first[1], second[0] / second[1]
    return p1 - p2 - math.hypot(p1 - low1, high2 - p2), p1 - p2 + math.hypot(high1 - p1, p2 - low2)


def counts(rate: Rate) -> tuple[int, int] | None:
    """(count, n) of a proportion, and of a mean of proportions with equal n the sums of theirs; None of all else."""
    parts = [ratio for coefficient, ratio in rate.terms if coefficient > 0]
    sizes = {float(ratio.denominator.sum()) for ratio in parts}
    if (
        len(parts) < len(rate.terms)
        or len({c for c, _ in rate.terms}) > 1
        or len(sizes) > 1
        or not _of_yes_and_no(rate)
    ):
        return None
    return sum(_count(ratio)[0] for ratio in parts), sum(_count(ratio)[1] for ratio in parts)


def small(rate: Rate) -> bool:
    """Whether one of its strata holds fewer than `SMALL` items."""
    return any(np.count_nonzero(ratio.denominator) < SMALL for _, ratio in rate.terms)


def guarded(rate: Rate, found: Interval) -> Interval:
    """The interval as it is, or the score interval of a rate of few events or of a difference of few items.

    found: of `rate`, its items resampled one by one. Its estimate and sd stay.
    """
    if found.estimate is None or found.low is None or found.high is None or not _of_yes_and_no(rate):
        return found
    level, terms = found.level, rate.terms
    ahead = [(c, ratio) for c, ratio in terms if c > 0]
    behind = [(-c, ratio) for c, ratio in terms if c < 0]
    if not behind:
        if not (_near_boundary([ratio for _, ratio in ahead]) or found.low == found.high):
            return found
        method, parts = "wilson", [(c, wilson(*_count(ratio), level)) for c, ratio in ahead]
    elif [c for c, _ in ahead] == [c for c, _ in behind]:
        pairs = [(c, first, second) for (c, first), (_, second) in zip(ahead, behind, strict=True)]
        if not (_few_discordant([(a, b) for _, a, b in pairs]) or found.low == found.high):
            return found
        same = all(np.array_equal(a.denominator, b.denominator) for _, a, b in pairs)
        method = "tango" if same else "newcombe"
        parts = [(c, _difference(first, second, level)) for c, first, second in pairs]
    else:
        return found
    low, high = (sum(c * bounds[end] for c, bounds in parts) for end in (0, 1))
    return replace(found, low=low, high=high, method=method if len(parts) == 1 else "mean")


def of_clusters(rate: Rate, found: Interval, clusters: int) -> Interval:
    """The interval as it is, or of a proportion of 0 or 1 throughout Wilson's of as many items as there are clusters.

    With whole clusters agreeing nothing tells how much an item adds to its cluster: the conservative answer is nothing.
    """
    if len(rate.terms) > 1 or found.low is None or found.low != found.high or found.estimate not in (0.0, 1.0):
        return found
    low, high = wilson(clusters * int(found.estimate), clusters, found.level)
    return replace(found, low=low, high=high, method="wilson")


def _difference(first: Ratio, second: Ratio, level: float) -> Bounds:
    if not np.array_equal(first.denominator, second.denominator):
        return newcombe(_count(first), _count(second), level)
    only_first = int(np.sum(first.numerator > second.numerator))
    only_second = int(np.sum(second.numerator > first.numerator))
    return tango(only_first, only_second, _count(first)[1], level)


def _near_boundary(parts: list[Ratio]) -> bool:
    """Whether fewer than `FEW` items have an event, or fewer than `FEW` a non-event, in any of the parts."""
    events = np.any([ratio.numerator > 0 for ratio in parts], axis=0)
    others = np.any([_others(ratio) for ratio in parts], axis=0)
    return min(int(events.sum()), int(others.sum())) < FEW


def _few_discordant(pairs: list[tuple[Ratio, Ratio]]) -> bool:
    """Whether fewer than `DISCORDANT` items differ in their events, or in their non-events, in any of the pairs."""
    events = np.any([a.numerator != b.numerator for a, b in pairs], axis=0)
    others = np.any([_others(a) != _others(b) for a, b in pairs], axis=0)
    return min(int(events.sum()), int(others.sum())) < DISCORDANT


def _others(ratio: Ratio) -> Bools:
    return ratio.denominator > ratio.numerator


def _count(ratio: Ratio) -> tuple[int, int]:
    return round(float(ratio.numerator.sum())), round(float(ratio.denominator.sum()))


def _of_yes_and_no(rate: Rate) -> bool:
    """Whether every item is in its stratum or not, and has the event or not: no weights, no shares."""

    def whole(column: Floats) -> bool:
        return bool(np.isin(column, (0.0, 1.0)).all())

    return all(
        whole(r.numerator) and whole(r.denominator) and bool(np.all(r.numerator <= r.denominator))
        for _, r in rate.terms
    )
