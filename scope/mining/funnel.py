"""The funnel: how many items fell at which step, by reason, answer type, channel and source."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from scope.items import Item, Quartet
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
        "by": _by_slice(items, fates),
    }


def published_funnel(quartets: Sequence[Quartet], fates: Sequence[str]) -> dict[str, Any]:
    """The same counts for quartets that were read, not mined; a fate is `published` or a reason."""
    counts = Counter(fates)
    return {
        "items": len(quartets),
        "asked": 0,
        "clean_accuracy": None,
        "quartets": counts["published"],
        "chosen_from": {"published": counts["published"]},
        "dropped": {reason: counts[reason] for reason in REASONS if counts[reason]},
        "by": _by_slice(quartets, fates),
    }


def _by_slice(records: Sequence[Item] | Sequence[Quartet], fates: Sequence[str]) -> dict[str, dict[str, Any]]:
    return {
        name: {
            value: dict(Counter(f for r, f in zip(records, fates, strict=True) if getattr(r, name) == value))
            for value in sorted({getattr(r, name) for r in records})
        }
        for name in SLICES
    }


def render(result: dict[str, Any]) -> str:
    """The funnel as lines for a terminal."""
    chosen = result["chosen_from"]
    lines = [f"{result['items']:6d}  {'published quartets' if 'published' in chosen else 'items in the training pool'}"]
    lines += [f"{-count:6d}  {REASONS[reason]}" for reason, count in result["dropped"].items()]
    sources = ", ".join(f"{count} {source}" for source, count in chosen.items())
    lines.append(f"{result['quartets']:6d}  quartets (chosen: {sources})")
    if result["clean_accuracy"] is not None:
        lines.append(f"        clean accuracy of the base on this pool: {100 * result['clean_accuracy']:.1f} %")
    return "\n".join(lines)
