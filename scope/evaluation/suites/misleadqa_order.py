"""Option order on a sample of MisleadQA: the same questions under two cyclic rotations of A to D (MisleadQA, Sec. 6.3).

E stays where it is and the keys follow their texts. Items are selected if answered right without context under the
original order, or under all three (the stable part of B); context beside G is not asked.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import ClassVar

import numpy as np

from scope.evaluation.misleadqa.labels import Labels
from scope.evaluation.misleadqa.prompts import rotated, rotated_letter
from scope.evaluation.misleadqa.suite import CONTEXTS, Diagnostic
from scope.evaluation.paired import Bools, Rate, share
from scope.evaluation.suites.base import Panel, Row
from scope.items import Completion
from scope.scopes import ScopedItem

ASKED = ("none", "s", "f")
ORDERS = ("{}", "r1_{}", "r2_{}")  # a cell under each order; the first is the original one


class Order(Diagnostic):
    """Lure rates over three option orders on the stable part of B."""

    name = "misleadqa_order"
    title = "MisleadQA, option order"
    sample = True
    cells = tuple(order.format(cell) for order in ORDERS for cell in ASKED)
    headings: ClassVar = {
        "lr_s": "LR S, three orders",
        "lr_f": "LR F, three orders",
        "delta_lr": "Δ LR, three orders",
        "kept": "stable, of B",
    }
    lower_is_better = frozenset({"lr_s", "lr_f"})
    panels_of: ClassVar = {"orders": "lure rates by the orders that select and measure"}
    robust = frozenset({"orders"})
    words: ClassVar = {
        "original original": "selected and measured: original order",
        "stable original": "selected: all three, measured: original order",
        "stable mean": "selected: all three, measured: mean of three",
        **{"lr_s": "LR S", "lr_f": "LR F", "delta_lr": "F − S", "kept": "stable, of B"},
    }

    def prompt(self, item: ScopedItem, cell: str) -> str:
        by, asked = _order(cell)
        return self.asked(self.templates.answer, _rotated(item, by), CONTEXTS[asked])

    def outcome(self, item: ScopedItem, cell: str, completion: Completion) -> Row:
        by, asked = _order(cell)
        return super().outcome(_rotated(item, by), asked, completion)

    def rates(self, items: Sequence[ScopedItem], rows: Mapping[str, Sequence[Row]]) -> dict[str, Rate]:
        labels = Labels(rows)
        return {**_measured(labels, _stable(labels), ORDERS), "kept": share(labels.b(), _stable(labels))}

    def needs(self, metric: str) -> tuple[str, ...]:
        contexts = {"kept": "", "delta_lr": "sf"}.get(metric, metric[-1])
        return tuple(order.format(cell) for order in ORDERS for cell in ("none", *contexts))

    def panels(self, items: Sequence[ScopedItem], rows: Mapping[str, Sequence[Row]]) -> Mapping[str, Panel]:
        labels = Labels(rows)
        return {
            "orders": {
                "original original": _measured(labels, labels.b(), ORDERS[:1]),
                "stable original": _measured(labels, _stable(labels), ORDERS[:1]),
                "stable mean": _measured(labels, _stable(labels), ORDERS),
            }
        }

    def strata(self, items: Sequence[ScopedItem], rows: Mapping[str, Sequence[Row]]) -> Mapping[str, int]:
        return {**super().strata(items, rows), "stable": int(_stable(Labels(rows)).sum())}


def _order(cell: str) -> tuple[int, str]:
    """(rotation, original cell) of a cell."""
    return (int(cell[1]), cell[3:]) if cell[:1] == "r" else (0, cell)


def _rotated(item: ScopedItem, by: int) -> ScopedItem:
    gold, lure = rotated_letter(item.gold, by), rotated_letter(item.lure, by)
    a, b, c, d = rotated(item.options, by)
    return replace(item, options=(a, b, c, d), gold=gold, lure=lure)


def _stable(labels: Labels) -> Bools:
    """Right without context under all three orders."""
    return np.logical_and.reduce([labels.are(order.format("none"), "gold") for order in ORDERS])


def _measured(labels: Labels, stratum: Bools, orders: Sequence[str]) -> dict[str, Rate]:
    """Lure rates on a stratum, the mean over the orders."""
    lr_s, lr_f = (
        share(stratum, *(labels.are(order.format(context), "lure") for order in orders)) for context in ("s", "f")
    )
    return {"lr_s": lr_s, "lr_f": lr_f, "delta_lr": lr_f - lr_s}


SUITE = Order()
