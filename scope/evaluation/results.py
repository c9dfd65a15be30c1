"""Outcomes -> results: rates with intervals, paired differences to the base, label counts, repairs.

`results.json` holds plain data: rates are fractions, an undefined rate is null, intervals are
[low, high] at `level`.
"""

import dataclasses
from collections import Counter
from collections.abc import Sequence
from typing import Any

from scope.evaluation.bootstrap import Interval, bootstrap_all
from scope.evaluation.paired import mcnemar, repairs_gains_costs
from scope.evaluation.suites import SUITES
from scope.items import Item
from scope.recipe import Recipe

REFERENCE = "base"


def results(recipe: Recipe, items: Sequence[Item], outcomes: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Everything the tables show, per system and against the base.

    Every interval of every system and metric comes from the same resample of the items. An item
    of which any request failed is left out of all systems, and counted.
    """
    suite = SUITES[recipe.evaluation.suite]
    names = list(dict.fromkeys(row["system"] for row in outcomes))
    failed = {row["item_id"] for row in outcomes if row["label"] == "failed"}
    whole = [item.id for item in items if item.id not in failed]
    labels = {(row["system"], row["item_id"], row["cell"]): row["label"] for row in outcomes}
    right = {
        name: {cell: [labels[name, item, cell] == "right" for item in whole] for cell in suite.CELLS} for name in names
    }
    rates = {name: suite.rates(right[name]) for name in names}
    against = [name for name in names if name != REFERENCE] if REFERENCE in names else []
    wanted = {(name, metric): rate for name in names for metric, rate in rates[name].items()}
    wanted |= {
        (f"{name} - {REFERENCE}", metric): rates[name][metric] - rates[REFERENCE][metric]
        for name in against
        for metric in suite.METRICS
    }
    intervals = bootstrap_all(
        {f"{name}\0{metric}": rate for (name, metric), rate in wanted.items()},
        replicates=recipe.evaluation.replicates,
        seed=recipe.seed,
        level=recipe.evaluation.level,
    )

    def shown(name: str) -> dict[str, Any]:
        return {metric: _plain(intervals[f"{name}\0{metric}"]) for metric in suite.METRICS}

    return {
        "suite": recipe.evaluation.suite,
        "model": recipe.model.base,
        "arm": recipe.arm_name,
        "items": len(whole),
        "failed_items": sorted(failed),
        "level": recipe.evaluation.level,
        "replicates": recipe.evaluation.replicates,
        "seed": recipe.seed,
        "systems": {name: {"rates": shown(name), "cells": _cells(name, outcomes, suite)} for name in names},
        "differences": {
            name: {
                "rates": shown(f"{name} - {REFERENCE}"),
                "repairs": dataclasses.asdict(
                    repairs_gains_costs(
                        right[REFERENCE]["clean"], right[REFERENCE]["misleading"], right[name]["misleading"]
                    )
                ),
                "mcnemar": {
                    cell: dataclasses.asdict(mcnemar(right[REFERENCE][cell], right[name][cell])) for cell in suite.CELLS
                },
            }
            for name in against
        },
    }


def _plain(interval: Interval) -> dict[str, Any]:
    return {
        "estimate": interval.estimate,
        "interval": None if interval.low is None else [interval.low, interval.high],
        "sd": interval.sd,
        "undefined_replicates": interval.undefined,
    }


def _cells(system: str, outcomes: Sequence[dict[str, Any]], suite: Any) -> dict[str, Any]:
    """Per cell: label counts, the share cut by the token cap, mean length."""
    cells = {}
    for cell in suite.CELLS:
        rows = [row for row in outcomes if row["system"] == system and row["cell"] == cell]
        labels = Counter(row["label"] for row in rows)
        cells[cell] = {
            "labels": {label: labels[label] for label in suite.LABELS},
            "truncated_share": sum(row["finish_reason"] == "length" for row in rows) / max(len(rows), 1),
            "mean_tokens": sum(row["n_tokens"] for row in rows) / max(len(rows), 1),
        }
    return cells
