"""The context-faithful instruction on MisleadQA: fewer lures, at the price of which answers (MisleadQA, Sec. 6.2)?

All seven cells with context are asked again under an instruction to answer from applicable context alone and to
abstain where there is none or it conflicts. B and A are those of the original prompt; G alone is over all items. Gold
and lure keep their meaning, so the response that the instruction prescribes for F alone is the lure.
"""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from scope.evaluation.misleadqa.labels import LABELS, OUTCOMES, Labels, both_orders, distribution
from scope.evaluation.misleadqa.suite import CONTEXTS, MIN_CLUSTERS, Diagnostic
from scope.evaluation.paired import Bools, Rate, share
from scope.evaluation.suites.base import Panel, Row
from scope.scopes import ScopedItem

UNDER = "cf_{}"  # a cell under the instruction
#: Condition -> stratum, its cells, and the response that the instruction prescribes (Table 3).
PRESCRIBED = {
    "s": ("b", ("s",), "abstain"),
    "f": ("b", ("f",), "lure"),
    "g": ("all", ("g",), "gold"),
    "s_with_g": ("a", both_orders("s"), "gold"),
    "f_with_g": ("a", both_orders("f"), "abstain"),
}
CONDITIONS = {"s": "S alone", "f": "F alone", "g": "G alone", "s_with_g": "S with G", "f_with_g": "F with G"}


class Faithful(Diagnostic):
    """Rates under the instruction (Table 22), beside those under the original prompt in the panels."""

    name = "misleadqa_faithful"
    title = "MisleadQA, context-faithful instruction"
    min_clusters = MIN_CLUSTERS
    cells = (*CONTEXTS, *(UNDER.format(cell) for cell in CONTEXTS if cell != "none"))
    labels = LABELS
    headings: ClassVar = {
        "s_abstain": "S: abstain",
        "s_lure": "S: lure",
        "f_lure": "F: lure",
        "g_gold": "G: gold",
        "sg_gold": "S with G: gold",
        "fg_abstain": "F with G: abstain",
    }
    lower_is_better = frozenset({"s_lure"})
    sliced = "s_lure"
    panels_of: ClassVar = {
        "prescribed": "the response that the instruction prescribes, under both prompts",
        "outcomes": "outcome distributions under both prompts",
        "common": "S with G on the items of A that are gold with G alone under both prompts",
    }
    words: ClassVar = {
        **{f"{name} {label}": f"{CONDITIONS[name]}: {label}" for name, (_, _, label) in PRESCRIBED.items()},
        **{f"{name} original": f"{text}, original" for name, text in CONDITIONS.items()},
        **{f"{name} faithful": f"{text}, context-faithful" for name, text in CONDITIONS.items()},
        **{label: label for label in OUTCOMES},
        **{"original": "original", "faithful": "context-faithful", "change": "change", "kept": "kept, of A"},
        "a": "S with G",
    }

    def prompt(self, item: ScopedItem, cell: str) -> str:
        if cell in CONTEXTS:
            return super().prompt(item, cell)
        return self.asked(self.templates.faithful, item, CONTEXTS[cell.removeprefix(UNDER.format(""))])

    def rates(self, items: Sequence[ScopedItem], rows: Mapping[str, Sequence[Row]]) -> dict[str, Rate]:
        labels = Labels(rows)
        wanted = {"s_abstain": ("s", "abstain"), "s_lure": ("s", "lure"), "f_lure": ("f", "lure")}
        wanted |= {"g_gold": ("g", "gold"), "sg_gold": ("s_with_g", "gold"), "fg_abstain": ("f_with_g", "abstain")}
        return {name: _rate(labels, condition, label, UNDER) for name, (condition, label) in wanted.items()}

    def needs(self, metric: str) -> tuple[str, ...]:
        condition = {"sg": "s_with_g", "fg": "f_with_g"}.get(metric.split("_")[0], metric[0])
        stratum, cells, _ = PRESCRIBED[condition]
        fixed = {"all": (), "b": ("none",), "a": ("none", "g")}[stratum]
        return (*fixed, *(UNDER.format(cell) for cell in cells))

    def panels(self, items: Sequence[ScopedItem], rows: Mapping[str, Sequence[Row]]) -> Mapping[str, Panel]:
        labels = Labels(rows)
        prescribed: dict[str, dict[str, Rate]] = {}
        outcomes: dict[str, dict[str, Rate]] = {}
        for name, (stratum, cells, label) in PRESCRIBED.items():
            before, after = _rate(labels, name, label), _rate(labels, name, label, UNDER)
            prescribed[f"{name} {label}"] = {"original": before, "faithful": after, "change": after - before}
            inside = _stratum(labels, stratum)
            outcomes[f"{name} original"] = {**distribution(labels, inside, *cells)}
            outcomes[f"{name} faithful"] = {**distribution(labels, inside, *map(UNDER.format, cells))}
        return {"prescribed": prescribed, "outcomes": outcomes, "common": {"a": _common(labels)}}


def _stratum(labels: Labels, name: str) -> Bools:
    return {"all": labels.all, "b": labels.b, "a": labels.a}[name]()


def _rate(labels: Labels, condition: str, label: str, form: str = "{}") -> Rate:
    """Share of a label in a condition, on the stratum that the original prompt fixed."""
    stratum, cells, _ = PRESCRIBED[condition]
    return share(_stratum(labels, stratum), *(labels.are(form.format(cell), label) for cell in cells))


def _common(labels: Labels) -> dict[str, Rate]:
    """How much of A is common, and gold with S and G on it under both prompts (Table 23)."""
    a, also = labels.a(), labels.are(UNDER.format("g"), "gold")
    before, after = (
        share(a & also, *(labels.are(cell, "gold") for cell in both_orders("s", form))) for form in ("{}", UNDER)
    )
    return {"original": before, "faithful": after, "change": after - before, "kept": share(a, also)}


SUITE = Faithful()
