"""MisleadQA: does context that is true but out of scope, or false but in scope, take a right answer away?

(MisleadQA, Sec. 4 and 5, App. D.) Eight cells an item: no context, the gold context G, the true one out of scope S, the
false one in scope F, and each of the two before and after G. B is what a system answers right without context, A what
it answers right with G alone as well.
"""

from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np

from scope.evaluation.misleadqa.labels import (
    OUTCOMES,
    Labels,
    both_orders,
    distribution,
    lr,
    rlr,
)
from scope.evaluation.misleadqa.suite import MIN_CLUSTERS, Diagnostic
from scope.evaluation.paired import Rate, restricted, share
from scope.evaluation.suites.base import Panel, Row
from scope.scopes import ScopedItem

#: Rows of the outcome panel: the stratum, and the cells whose shares are averaged (Table 14).
OUTCOME_ROWS = {
    "all none": ("all", ("none",)),
    "all g": ("all", ("g",)),
    "b s": ("b", ("s",)),
    "b f": ("b", ("f",)),
    "a s": ("a", ("s",)),
    "a f": ("a", ("f",)),
    **{f"a {cell}": ("a", (cell,)) for cell in ("gs", "sg", "gf", "fg")},
    "a s_with_g": ("a", both_orders("s")),
    "a f_with_g": ("a", both_orders("f")),
}
STRATA = {"all": "all items", "b": "B", "a": "A"}
CELL_WORDS = {
    "none": "no context",
    **{name: f"{name.upper()} alone" for name in "gsf"},
    **{cell: f"{cell[0].upper()} → {cell[1].upper()}" for cell in ("gs", "sg", "gf", "fg")},
    "s_with_g": "S with G",
    "f_with_g": "F with G",
}
WORDS = {row: f"{STRATA[row.split()[0]]}: {CELL_WORDS[row.split()[1]]}" for row in OUTCOME_ROWS}


class MisleadQA(Diagnostic):
    """Lure rates with a misleading context alone (LR, on B) and beside G (RLR, on A)."""

    name = "misleadqa"
    title = "MisleadQA"
    headings: ClassVar = {
        "gold_s": "Gold with S",
        "lr_s": "LR S",
        "lr_f": "LR F",
        "delta_lr": "Δ LR",
        "rlr_s": "RLR S",
        "rlr_f": "RLR F",
        "delta_rlr": "Δ RLR",
    }
    lower_is_better = frozenset({"lr_s", "lr_f", "rlr_s", "rlr_f"})
    primary = frozenset({"delta_lr", "delta_rlr"})
    sliced = "lr_s"
    min_clusters = MIN_CLUSTERS
    panels_of: ClassVar = {
        "outcomes": "outcome distributions",
        "orders": "lure rates on A by order",
        "effects": "primary contrasts, reduction by G, order effects",
        "paired": "F with G where S with G is answered gold, in the same order",
        "groups": "lure rates by source and scope",
    }
    robust = frozenset({"effects"})
    words: ClassVar = {
        **WORDS,
        **{label: label for label in OUTCOMES},
        **{"s_g_first": "S: G first", "s_first": "S: S first", "f_g_first": "F: G first", "f_first": "F: F first"},
        **{"reduction_f": "F reduction", "reduction_s": "S reduction"},
        **{"order_f": "F order effect", "order_s": "S order effect"},
        **{"g_first": "G first", "misleading_first": "misleading context first", "kept": "kept, of A"},
    }

    def rates(self, items: Sequence[ScopedItem], rows: Mapping[str, Sequence[Row]]) -> dict[str, Rate]:
        labels = Labels(rows)
        lr_s, lr_f, rlr_s, rlr_f = lr(labels, "s"), lr(labels, "f"), rlr(labels, "s"), rlr(labels, "f")
        return {
            "gold_s": share(labels.b(), labels.are("s", "gold")),
            "lr_s": lr_s,
            "lr_f": lr_f,
            "delta_lr": lr_f - lr_s,
            "rlr_s": rlr_s,
            "rlr_f": rlr_f,
            "delta_rlr": rlr_f - rlr_s,
        }

    def needs(self, metric: str) -> tuple[str, ...]:
        contexts = {"s": "s", "f": "f"}.get(metric[-1], "sf")
        if metric.endswith("delta_lr") or not metric.endswith(("rlr", "rlr_s", "rlr_f")):
            return ("none", *contexts)
        return ("none", "g", *(cell for context in contexts for cell in both_orders(context)))

    def panels(self, items: Sequence[ScopedItem], rows: Mapping[str, Sequence[Row]]) -> Mapping[str, Panel]:
        labels = Labels(rows)
        strata = {"all": labels.all(), "b": labels.b(), "a": labels.a()}
        rates = self.rates(items, rows)
        return {
            "outcomes": {
                row: distribution(labels, strata[stratum], *cells) for row, (stratum, cells) in OUTCOME_ROWS.items()
            },
            "orders": {"a": _orders(labels)},
            "effects": {"all": _effects(labels, rates)},
            "paired": {name: _paired(labels, place) for place, name in enumerate(("g_first", "misleading_first"))},
            "groups": _groups(items, rates),
        }


def _orders(labels: Labels) -> dict[str, Rate]:
    """Lure rates on A with G first and with the misleading context first (Table 15)."""
    found: dict[str, Rate] = {}
    for context in "sf":
        g_first, context_first = both_orders(context)
        found[f"{context}_g_first"] = share(labels.a(), labels.are(g_first, "lure"))
        found[f"{context}_first"] = share(labels.a(), labels.are(context_first, "lure"))
    return found


def _effects(labels: Labels, rates: Mapping[str, Rate]) -> dict[str, Rate]:
    """What is given with intervals under both units of resampling (Table 26).

    The reduction by G is LR on A, not on B, minus RLR on A; the order effect is misleading-first minus G-first.
    """
    orders = _orders(labels)
    reduction = {c: lr(labels, c, labels.a()) - rlr(labels, c) for c in "sf"}
    return {
        "delta_lr": rates["delta_lr"],
        "delta_rlr": rates["delta_rlr"],
        "reduction_f": reduction["f"],
        "reduction_s": reduction["s"],
        "order_f": orders["f_first"] - orders["f_g_first"],
        "order_s": orders["s_first"] - orders["s_g_first"],
    }


def _paired(labels: Labels, place: int) -> dict[str, Rate]:
    """Outcomes with F and G on the items of A that are gold with S and G in the same order (App. D.2)."""
    with_s, with_f = both_orders("s")[place], both_orders("f")[place]
    kept = labels.a() & labels.are(with_s, "gold")
    return {**distribution(labels, kept, with_f), "kept": share(labels.a(), labels.are(with_s, "gold"))}


def _groups(items: Sequence[ScopedItem], rates: Mapping[str, Rate]) -> Panel:
    """Lure rates within each source-scope group, not reweighted (Tables 24 and 25)."""
    found: dict[str, dict[str, Rate]] = {}
    for group in sorted({item.group for item in items}):
        inside = np.array([item.group == group for item in items])
        found[group] = {name: restricted(rates[name], inside) for name in ("lr_s", "lr_f", "rlr_s", "rlr_f")}
    return found


SUITE = MisleadQA()
