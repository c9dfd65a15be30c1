"""The funnel: how many items fell at which step, by reason, answer type, channel and source."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from scope.items import Item
from scope.mining.select import REASONS

SLICES = ("answer_type", "channel", "source")


def funnel(items: Sequence[Item], fates: Sequence[str], clean_correct: dict[str, bool]) -> dict[str, Any]:
    """Counts for every fate (`clean`, `diagnostic` or a reason), whole and by slice.

    items and fates run in parallel; clean_correct: item id -> was the clean answer right.
    """
    counts = Counter(fates)
    kept = counts["clean"] + counts["diagnostic"]
    asked = [item for item, fate in zip(items, fates, strict=True) if fate != "shared_with_evaluation"]
    right = sum(clean_correct[item.id] for item in asked)
    return {
        "items": len(items),
        "asked": len(asked),
        "clean_accuracy": right / len(asked) if asked else None,
        "quartets": kept,
        "chosen_from": {"clean": counts["clean"], "diagnostic": counts["diagnostic"]},
        "dropped": {reason: counts[reason] for reason in REASONS if counts[reason]},
        "by": {
            name: {
                value: dict(Counter(f for i, f in zip(items, fates, strict=True) if getattr(i, name) == value))
                for value in sorted({getattr(i, name) for i in items})
            }
            for name in SLICES
        },
    }


def render(result: dict[str, Any]) -> str:
    """The funnel as lines for a terminal."""
    lines = [f"{result['items']:6d}  items in the training pool"]
    lines += [f"{-count:6d}  {REASONS[reason]}" for reason, count in result["dropped"].items()]
    chosen = result["chosen_from"]
    lines.append(
        f"{result['quartets']:6d}  quartets (chosen: {chosen['clean']} clean, {chosen['diagnostic']} diagnostic)"
    )
    if result["clean_accuracy"] is not None:
        lines.append(f"        clean accuracy of the base on this pool: {100 * result['clean_accuracy']:.1f} %")
    return "\n".join(lines)
