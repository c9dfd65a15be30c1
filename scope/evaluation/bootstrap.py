"""Percentile bootstrap of paired rates over items or clusters (SCOPE App. I.4; MisleadQA App. C.2).

A rate is a ratio of weighted item sums (`paired.Ratio`) or a linear combination of such ratios, written with
+ - * /: accuracy, SC2W, a mean over conditions, a difference of systems. All replicates come from one matrix
product of draw counts with the per-item columns.

Comparisons are paired because the draws depend on the seed and the items or clusters alone: one seed is one
resample, whatever the system or the metric. Strata stay as the observed outcomes fixed them, and denominators
are weighted by the draws. A replicate whose stratum is empty is undefined: left out and counted.

Two schemes. Over all items or clusters (MIST, MisleadQA): pass whole columns, `clusters` for clusters. Over
the sorted ids of one stratum (RAG-Stress): pass that stratum's items only, their ids as `clusters` (each item
a cluster of its own, drawn in sorted order), and a seed per system and contrast.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from scope.evaluation.paired import Floats, Rate

_CHUNK = 4_000_000  # draw counts held at once (32 MB)


@dataclass(frozen=True, slots=True)
class Interval:
    """An interval, the bootstrap's percentile interval unless `method` says otherwise.

    estimate: the rate on the observed items; None if undefined (empty stratum).
    low, high: percentile ends at `level`, linear interpolation; None without a defined replicate or estimate.
    sd: standard deviation of the defined replicates (n - 1), the ± of Table 1; None with fewer than two.
    replicates: drawn; undefined: how many of them had an empty stratum and were left out of low, high and sd.
    method: what low and high are; another than `bootstrap` only by `proportions.guarded`.
    """

    estimate: float | None
    low: float | None
    high: float | None
    level: float
    sd: float | None
    replicates: int
    undefined: int
    method: str = "bootstrap"


def bonferroni(level: float, comparisons: int) -> float:
    """Level of each of `comparisons` intervals that hold jointly at `level`: bonferroni(0.95, 2) is 0.975."""
    if comparisons < 1:
        raise ValueError(f"{comparisons} comparisons: at least one is needed.")
    return 1 - (1 - _checked_level(level)) / comparisons


def replicate_weights(items: int | ArrayLike, replicates: int = 10_000, seed: int = 0) -> NDArray[np.int32]:
    """How often each item is drawn in each replicate: int32 (replicates, n_items), 4 bytes each.

    items: the number of items, or their cluster labels (n_items,). With labels, C of the C clusters are drawn
    with replacement, and every item weighs what its cluster does (a row then need not sum to n_items).
    Deterministic in (items, seed); the first rows do not depend on `replicates`. Clusters are drawn in sorted
    order, so item order does not matter to them.
    """
    n, member = (int(items), None) if isinstance(items, (int, np.integer)) else _clusters(items)
    counts = np.concatenate([chunk.astype(np.int32) for chunk in _draws(n, replicates, seed)])
    return counts if member is None else counts[:, member]


def ratio_replicates(weights: ArrayLike, rate: Rate) -> Floats:
    """`rate` under each row of `weights` (replicates, n_items): float64 (replicates,), NaN = undefined."""
    matrix = np.asarray(weights)
    if matrix.ndim != 2 or matrix.shape[1] != rate.n_items:
        raise ValueError(f"Weights of shape {matrix.shape} do not fit a rate over {rate.n_items} items.")
    columns, places = _columns([rate])
    return _combine(rate, places, matrix @ columns)


def bootstrap_all(
    rates: Mapping[str, Rate],
    clusters: ArrayLike | None = None,
    replicates: int = 10_000,
    seed: int = 0,
    level: float = 0.95,
    levels: Mapping[str, float] | None = None,
) -> dict[str, Interval]:
    """`bootstrap` of many rates over the same items in one pass: one resample for every system and metric.

    levels: of the rates whose interval is at another level than `level`, by name.
    """
    chosen = {name: _checked_level((levels or {}).get(name, level)) for name in rates}
    _checked_level(level)
    sizes = sorted({rate.n_items for rate in rates.values()})
    if len(sizes) > 1:
        raise ValueError(f"Rates over {sizes} items cannot share a resample: pairs need the same items.")
    if not rates:
        return {}
    columns, places = _columns(list(rates.values()))
    n = sizes[0]
    if clusters is not None:
        n, member = _clusters(clusters, expected=n)
        summed = np.zeros((n, columns.shape[1]))
        np.add.at(summed, member, columns)
        columns = summed
    sums = np.concatenate([chunk.astype(np.float64) @ columns for chunk in _draws(n, replicates, seed)])
    return {k: interval(rate.estimate(), _combine(rate, places, sums), chosen[k]) for k, rate in rates.items()}


def bootstrap(
    rate: Rate | Callable[..., Any],
    units: Any = None,
    clusters: ArrayLike | None = None,
    replicates: int = 10_000,
    seed: int = 0,
    level: float = 0.95,
) -> Interval:
    """Percentile interval of one rate under resampling of items, or of whole clusters of items.

    rate: a `Rate` (fast), or a function (general), of one of two forms:
        rate(units) -> float | None              of the resampled units, None or NaN = undefined;
        rate(units, weights) -> array (r,)       of all units and their draw counts, float64 (r, n_items).
    units: one entry per item: array (n_items,) or (n_items, k), sequence, or dict of arrays. A `Rate` holds
        its own columns, so that units (its item ids, say) are optional and only their number is checked.
    clusters: label of each item (n_items,), str or int; None resamples items.
    level: in (0, 1). The same seed is the same resample for every rate over the same items.
    Raises ValueError if lengths disagree, or on replicates < 1 or a level outside (0, 1).
    """
    _checked_level(level)
    if isinstance(rate, Rate):
        if units is not None and (n := _n_units(units)) != rate.n_items:
            raise ValueError(f"{n} units were given for a rate over {rate.n_items} items.")
        return bootstrap_all({"rate": rate}, clusters, replicates, seed, level)["rate"]
    if units is None:
        raise ValueError("A rate given as a function needs its units.")
    data = {k: np.asarray(v) for k, v in units.items()} if isinstance(units, Mapping) else np.asarray(units)
    n_items = n = _n_units(data)
    member = None
    if clusters is not None:
        n, member = _clusters(clusters, expected=n)
    on_weights = _required_arguments(rate) == 2
    observed = rate(data, np.ones((1, n_items))) if on_weights else [rate(data)]
    estimate = _floats(observed, 1)[0]
    values = []
    for chunk in _draws(n, replicates, seed):
        counts = chunk if member is None else chunk[:, member]
        if on_weights:
            values.append(_floats(rate(data, counts.astype(np.float64)), len(counts)))
        else:
            values.append(_floats([rate(_resampled(data, row)) for row in counts], len(counts)))
    return interval(None if np.isnan(estimate) else float(estimate), np.concatenate(values), level)


def interval(estimate: float | None, values: ArrayLike, level: float = 0.95) -> Interval:
    """Summary of replicate values (replicates,), NaN = undefined. Undefined throughout if the estimate is."""
    _checked_level(level)
    drawn = np.asarray(values, dtype=np.float64)
    defined = drawn[~np.isnan(drawn)]
    undefined = len(drawn) - len(defined)
    if estimate is None or not len(defined):
        return Interval(estimate, None, None, level, None, len(drawn), undefined)
    low, high = np.quantile(defined, [(1 - level) / 2, (1 + level) / 2], method="linear")
    sd = float(np.std(defined, ddof=1)) if len(defined) > 1 else None
    return Interval(estimate, float(low), float(high), level, sd, len(drawn), undefined)


def _draws(n: int, replicates: int, seed: int) -> Iterator[NDArray[np.int64]]:
    """Multinomial counts (rows, n) of n draws from n units, chunk by chunk from one stream."""
    if replicates < 1 or n < 0:
        raise ValueError(f"{replicates} replicates of {n} units: at least one replicate is needed.")
    rng = np.random.default_rng(seed)
    rows_at_once = max(1, _CHUNK // max(n, 1))
    for start in range(0, replicates, rows_at_once):
        rows = min(rows_at_once, replicates - start)
        if n == 0:
            yield np.zeros((rows, 0), dtype=np.int64)
            continue
        picked = rng.integers(n, size=(rows, n)) + n * np.arange(rows)[:, None]
        yield np.bincount(picked.ravel(), minlength=rows * n).reshape(rows, n)


def _columns(rates: Sequence[Rate]) -> tuple[Floats, dict[bytes, int]]:
    """Distinct numerators and denominators (n_items, k), and where each is, by content.

    Equal columns are multiplied once, so that a system minus itself is exactly zero whatever the values.
    """
    places: dict[bytes, int] = {}
    distinct: list[Floats] = []
    for rate in rates:
        for _, ratio in rate.terms:
            for column in (ratio.numerator, ratio.denominator):
                if places.setdefault(column.tobytes(), len(distinct)) == len(distinct):
                    distinct.append(column)
    return np.stack(distinct, axis=1), places


def _combine(rate: Rate, places: Mapping[bytes, int], sums: Floats) -> Floats:
    total = np.zeros(len(sums))
    for coefficient, ratio in rate.terms:
        over = sums[:, places[ratio.numerator.tobytes()]]
        under = sums[:, places[ratio.denominator.tobytes()]]
        total += coefficient * np.divide(over, under, out=np.full(len(sums), np.nan), where=under > 0)
    return total


def _clusters(labels: ArrayLike, expected: int | None = None) -> tuple[int, NDArray[np.intp]]:
    """Number of clusters, and the cluster of each item as an index into the sorted labels."""
    array = np.asarray(labels)
    if array.ndim != 1 or (expected is not None and len(array) != expected):
        wanted = "" if expected is None else f" ({expected} items)"
        raise ValueError(f"Cluster labels have shape {array.shape}: one label per item is needed{wanted}.")
    if array.dtype.kind not in "iuUSb":
        kinds = sorted({type(label).__name__ for label in array.tolist()})
        if kinds not in ([], ["str"], ["int"]):
            raise ValueError(f"Cluster labels are of type {', '.join(kinds)}: needs all text or all int.")
    names, member = np.unique(array, return_inverse=True)
    return len(names), member


def _n_units(units: Any) -> int:
    if not isinstance(units, Mapping):
        return len(units)
    sizes = sorted({len(column) for column in units.values()})
    if len(sizes) != 1:
        raise ValueError(f"The columns of units have lengths {sizes}: one value per item is needed in each.")
    return sizes[0]


def _resampled(data: Any, counts: NDArray[np.int64]) -> Any:
    index = np.repeat(np.arange(len(counts)), counts)
    return {name: column[index] for name, column in data.items()} if isinstance(data, dict) else data[index]


def _required_arguments(function: Callable[..., Any]) -> int:
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError:  # some built-ins have no signature
        return 1
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return sum(p.kind in positional and p.default is p.empty for p in parameters)


def _floats(values: Any, expected: int) -> Floats:
    array = np.asarray(values, dtype=np.float64)  # None becomes NaN
    if array.shape != (expected,):
        raise ValueError(f"The rate function returned shape {array.shape} where ({expected},) was expected.")
    return array


def _checked_level(level: float) -> float:
    if not 0 < level < 1:
        raise ValueError(f"Level {level} is outside (0, 1): a 95 per cent interval is level=0.95.")
    return level
