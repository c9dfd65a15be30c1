"""Scope recognition on a sample of MisleadQA: does a model see that S does not apply, and is it misled all the same?

(MisleadQA, Sec. 6.1, App. D.4.) In requests of their own G, S and F are judged; each judgement of S is linked to the
same model's answers without context and with S alone. H is the sampled part of B.
"""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from scope.engines import Choices, Sampling
from scope.evaluation.misleadqa.labels import LABELS, Labels, lr, read_choice
from scope.evaluation.misleadqa.prompts import APPLICABLE, CANNOT, JUDGEMENTS, NOT_APPLICABLE, judging
from scope.evaluation.misleadqa.suite import Diagnostic
from scope.evaluation.paired import Rate, share
from scope.evaluation.suites.base import Panel, Row
from scope.items import Completion
from scope.recipe import Recipe
from scope.scopes import ScopedItem

#: Judgement -> its label.
NAMED = {APPLICABLE: "applicable", NOT_APPLICABLE: "not_applicable", CANNOT: "cannot_determine"}


class Scope(Diagnostic):
    """Judgements of G, S and F, and lure rates with S alone by the judgement of S."""

    name = "misleadqa_scope"
    title = "MisleadQA, scope recognition"
    sample = True
    cells = ("none", "s", "judge_g", "judge_s", "judge_f")
    labels = (*LABELS[:-1], *NAMED.values(), "failed")
    headings: ClassVar = {
        "s_recognised": "S judged n/a",
        "g_recognised": "G judged appl.",
        "f_recognised": "F judged appl.",
        "lr_s": "LR S",
        "lr_s_recognised": "LR S, judged n/a",
        "lr_s_missed": "LR S, judged appl.",
    }
    lower_is_better = frozenset({"lr_s", "lr_s_recognised", "lr_s_missed"})
    panels_of: ClassVar = {
        "judgements": "scope judgements",
        "linked": "lure rates with S alone on sampled items of B, by the judgement of S",
    }
    words: ClassVar = {
        **{"g": "G", "s": "S", "f": "F", "h": "S alone", "all": "all"},
        **{label: text for text, label in NAMED.items()},
        "invalid": "invalid",
    }

    def how(self, cell: str, recipe: Recipe) -> Sampling | Choices:
        if not cell.startswith("judge_"):
            return super().how(cell, recipe)
        free = recipe.evaluation.misleadqa.scoring == "text"
        return Sampling(recipe.evaluation.max_new_tokens) if free else Choices(JUDGEMENTS, "sequence")

    def prompt(self, item: ScopedItem, cell: str) -> str:
        if cell.startswith("judge_"):
            context = getattr(item, cell.removeprefix("judge_"))
            return judging(self.templates.scope, item.question, item.options, context)
        return super().prompt(item, cell)

    def outcome(self, item: ScopedItem, cell: str, completion: Completion) -> Row:
        if not cell.startswith("judge_"):
            return super().outcome(item, cell, completion)
        read = read_choice(completion, JUDGEMENTS, letters=False)
        failed = read["parse_status"] == "failed"
        return {**read, "label": "failed" if failed else NAMED.get(read["value"], "invalid")}

    def rates(self, items: Sequence[ScopedItem], rows: Mapping[str, Sequence[Row]]) -> dict[str, Rate]:
        labels = Labels(rows)
        linked = _linked(labels)
        return {
            "s_recognised": share(labels.all(), labels.are("judge_s", "not_applicable")),
            "g_recognised": share(labels.all(), labels.are("judge_g", "applicable")),
            "f_recognised": share(labels.all(), labels.are("judge_f", "applicable")),
            "lr_s": linked["all"],
            "lr_s_recognised": linked["not_applicable"],
            "lr_s_missed": linked["applicable"],
        }

    def needs(self, metric: str) -> tuple[str, ...]:
        if metric in ("s_recognised", "g_recognised", "f_recognised"):
            return (f"judge_{metric[0]}",)
        return ("none", "s") if metric == "lr_s" else ("none", "s", "judge_s")

    def panels(self, items: Sequence[ScopedItem], rows: Mapping[str, Sequence[Row]]) -> Mapping[str, Panel]:
        labels = Labels(rows)
        return {
            "judgements": {
                context: {
                    label: share(labels.all(), labels.are(f"judge_{context}", label))
                    for label in (*NAMED.values(), "invalid")
                }
                for context in "gsf"
            },
            "linked": {"h": _linked(labels)},
        }


def _linked(labels: Labels) -> dict[str, Rate]:
    """Lure rate with S alone on H, and on the part of H whose S has each judgement (Table 20)."""
    parts = {label: labels.b() & labels.are("judge_s", label) for label in NAMED.values()}
    return {"all": lr(labels, "s"), **{label: lr(labels, "s", part) for label, part in parts.items()}}


SUITE = Scope()
