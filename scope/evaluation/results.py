"""Outcomes -> results: rates with intervals, paired differences, labels, slices. `docs/results.md` has the schema.

Rates are fractions, an undefined rate is null, intervals are [low, high] at `level`.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from scope.evaluation.bootstrap import Interval, bootstrap_all
from scope.evaluation.paired import Combination, Rate, Ratio
from scope.evaluation.suites.base import Row, Suite

REFERENCE = "base"
#: results.json's `schema`; it changes when a key changes its meaning or goes.
SCHEMA = 1


@dataclass(frozen=True, slots=True)
class Settings:
    """How rates become intervals. complete_only: leave out items of which any request failed, in all systems."""

    level: float = 0.95
    replicates: int = 10_000
    seed: int = 0
    complete_only: bool = False
    reference: str = REFERENCE


def results(suite: Suite, items: Sequence[Any], outcomes: Sequence[Row], settings: Settings) -> dict[str, Any]:
    """Everything the tables show, per system, against the reference, and by slice.

    Every interval of every system, metric and slice comes from the same resample of the items. A failed request is
    missing, not wrong: the metrics that need it are withheld until it has been asked again, or all items with a
    failed request are left out of all systems (`complete_only`), and counted either way.
    """
    names = list(dict.fromkeys(row["system"] for row in outcomes))
    failed: dict[str, Counter[str]] = {name: Counter() for name in names}
    incomplete = set()
    for row in outcomes:
        if row["label"] == "failed":
            failed[row["system"]][row["cell"]] += 1
            incomplete.add(row["item_id"])
    if settings.complete_only:
        items = [item for item in items if item.id not in incomplete]
    place = {item.id: index for index, item in enumerate(items)}
    rows: dict[str, dict[str, list[Row]]] = {n: {c: [{}] * len(items) for c in suite.cells} for n in names}
    for row in outcomes:
        if (index := place.get(row["item_id"])) is not None:
            rows[row["system"]][row["cell"]][index] = row
    rates = {name: suite.rates(items, rows[name]) for name in names}
    against = [name for name in names if name != settings.reference] if settings.reference in names else []
    withheld = {
        name: {metric: n for metric in suite.headings if (n := sum(failed[name][cell] for cell in suite.needs(metric)))}
        for name in names
        if not settings.complete_only
    }
    slices = [
        (column, value, np.array([str(getattr(item, column)) == value for item in items]))
        for column in suite.columns
        if len(values := sorted({str(getattr(item, column)) for item in items})) > 1
        for value in values
    ]
    wanted: dict[tuple[str, str, str, str], Rate] = {}
    for column, value, mask in [("", "", np.ones(len(items), bool)), *slices]:
        inside = {name: {m: restricted(rate, mask) for m, rate in rates[name].items()} for name in names}
        for metric in suite.headings:
            wanted |= {(column, value, name, metric): inside[name][metric] for name in names}
            wanted |= {
                (column, value, f"{name} - {settings.reference}", metric): inside[name][metric]
                - inside[settings.reference][metric]
                for name in against
            }
    found = bootstrap_all(
        {"\0".join(key): rate for key, rate in wanted.items()},
        replicates=settings.replicates,
        seed=settings.seed,
        level=settings.level,
    )

    def shown(name: str, column: str = "", value: str = "", minus: str = "") -> dict[str, Any]:
        holds = withheld.get(name, {}) | withheld.get(minus, {})
        label = f"{name} - {minus}" if minus else name
        return {
            metric: _plain(found["\0".join((column, value, label, metric))], holds.get(metric, 0))
            for metric in suite.headings
        }

    reference = settings.reference
    by_slice: dict[str, dict[str, Any]] = {}
    for column, value, mask in slices:
        by_slice.setdefault(column, {})[value] = {
            "items": int(mask.sum()),
            "systems": {name: shown(name, column, value) for name in names},
            "differences": {name: shown(name, column, value, reference) for name in against},
        }
    return {
        "schema": SCHEMA,
        "suite": suite.name,
        "items": len(items),
        "failed_items": sorted(incomplete),
        "complete_only": settings.complete_only,
        "level": settings.level,
        "replicates": settings.replicates,
        "seed": settings.seed,
        "against": reference,
        "systems": {name: {"rates": shown(name), "cells": _cells(suite, rows[name])} for name in names},
        "differences": {
            name: {"rates": shown(name, minus=reference), **suite.against(*_answered(rows[reference], rows[name]))}
            for name in against
        },
        "slices": by_slice,
    }


def _answered(*systems: Mapping[str, Sequence[Row]]) -> list[dict[str, list[Row]]]:
    """The systems' rows of the items that all of them answered in every cell."""
    n = len(next(iter(systems[0].values())))
    kept = [i for i in range(n) if all(row[i]["label"] != "failed" for rows in systems for row in rows.values())]
    return [{cell: [of[i] for i in kept] for cell, of in rows.items()} for rows in systems]


def restricted(rate: Rate, inside: Any) -> Rate:
    """The rate over the items of a mask, bool (n_items,), resampled together with all others."""
    if inside.all():
        return rate
    return Combination(tuple((c, Ratio(r.numerator * inside, r.denominator * inside)) for c, r in rate.terms))


def _plain(interval: Interval, withheld: int) -> dict[str, Any]:
    if withheld:
        return {"estimate": None, "interval": None, "sd": None, "undefined_replicates": 0, "withheld": withheld}
    return {
        "estimate": interval.estimate,
        "interval": None if interval.low is None else [interval.low, interval.high],
        "sd": interval.sd,
        "undefined_replicates": interval.undefined,
    }


def _cells(suite: Suite, rows: Mapping[str, Sequence[Row]]) -> dict[str, Any]:
    """Per cell: label counts, the share cut by the token cap, mean length."""
    cells = {}
    for cell in suite.cells:
        labels = Counter(row["label"] for row in rows[cell])
        n = max(len(rows[cell]), 1)
        cells[cell] = {
            "labels": {label: labels[label] for label in suite.labels},
            "truncated_share": sum(row["finish_reason"] == "length" for row in rows[cell]) / n,
            "mean_tokens": sum(row["n_tokens"] for row in rows[cell]) / n,
        }
    return cells
