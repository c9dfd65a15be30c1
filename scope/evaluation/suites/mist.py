"""MIST: accuracy under the four matched conditions and SC2W (SCOPE paper, Sec. 3.2)."""

from collections.abc import Sequence
from typing import Any

from scope.answers import is_correct, parse_answer
from scope.conditions import Condition
from scope.evaluation.paired import Rate, accuracy_ratio, mean_of, sc2w_ratio
from scope.items import Completion, Item
from scope.prompts import defended_prompt, user_prompt

CELLS = tuple(str(c) for c in Condition)

#: Outcome labels. Only `right` counts as right; all stay in the denominator, but for `failed`.
LABELS = ("right", "wrong", "ambiguous", "unparsed", "truncated", "failed")


def prompt(item: Item, cell: str, system: str) -> str:
    """The user message of an item in a cell; the prompt defence is a system of its own."""
    write = defended_prompt if system == "prompt_defense" else user_prompt
    return write(item, Condition(cell))


def outcome(item: Item, completion: Completion) -> dict[str, Any]:
    """parse_status, value and label of a completion (App. B.1: what cannot be read is wrong)."""
    if completion.finish_reason == "error":
        return {"parse_status": "failed", "value": None, "label": "failed"}
    answer = parse_answer(completion.text, item.answer_type, len(item.options) or None)
    if is_correct(answer, item.gold, item.answer_type):
        label = "right"
    elif answer.status == "ok":
        label = "wrong"
    elif completion.finish_reason == "length":
        label = "truncated"
    else:
        label = answer.status
    value = None if answer.value is None else str(answer.value)
    return {"parse_status": answer.status, "value": value, "label": label}


def rates(right: dict[str, Sequence[bool]]) -> dict[str, Rate]:
    """Metric -> rate, from each cell's per-item correctness (the main table's columns)."""
    accuracies: dict[str, Rate] = {cell: accuracy_ratio(right[cell]) for cell in CELLS}
    return {
        **accuracies,
        "overall": mean_of(list(accuracies.values())),
        "sc2w": sc2w_ratio(right["clean"], right["misleading"]),
    }


METRICS = (*CELLS, "overall", "sc2w")
#: Metrics of which less is better.
LOWER_IS_BETTER = ("sc2w",)
