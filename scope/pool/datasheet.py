"""What a pool holds: counts against targets, findings, shortcut baselines, licences; as data and as a dataset card."""

import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from scope.items import CHANNELS, WRONG_CLASSES, Item
from scope.pool import checks, overlap, shortcuts, sources
from scope.pool.compose import Targets, apportion
from scope.recipe import Recipe, invocation

if TYPE_CHECKING:
    from scope.pool.stage import Pools

#: Item columns whose counts a datasheet shows, and the order of their values where it is not by count.
MARGINS: dict[str, Sequence[str]] = {
    "source": (),
    "channel": CHANNELS,
    "wrong_class": WRONG_CLASSES,
    "answer_type": (),
    "tier": (),
    "irrelevant_kind": (),
}
#: Findings quoted in the datasheet; all are counted.
_QUOTED = 20
#: The hub's names for sizes: below so many rows.
_SIZES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"))


def report(recipe: Recipe, pools: "Pools", targets: Mapping[str, Targets]) -> dict[str, Any]:
    """Everything the datasheet shows, as plain data. targets: of the composed pools, by name."""
    both = {"train": pools.train, "evaluation": pools.evaluation}
    found = {which: checks.findings(items) for which, items in both.items()}
    shared = overlap.split_overlap(both, recipe.pool.near_duplicate)
    return {
        "name": recipe.name,
        "seed": recipe.pool_seed,
        "command": " ".join(["python -m scope.pool build", *map(shlex.quote, invocation or [f"recipe={recipe.name}"])]),
        "pools": {
            which: {
                "from": getattr(recipe.pool, which),
                "asked": getattr(recipe.pool, f"n_{which}"),
                "items": len(items),
                "composition": composition(items, targets.get(which)),
            }
            for which, items in both.items()
        },
        "left_out": {which: dict(reasons) for which, reasons in pools.left_out.items()},
        "findings": {
            which: {
                "items": len({finding.item_id for finding in findings}),
                "by_check": dict(Counter(finding.check for finding in findings)),
                "first": [str(finding) for finding in findings[:_QUOTED]],
            }
            for which, findings in found.items()
        },
        "sentences": len(overlap.shared_sentences(pools.train, pools.evaluation)),
        "overlap": {"pairs": len(shared), "first": shared[:_QUOTED]},
        "shortcuts": {which: [asdict(row) for row in shortcuts.report(items)] for which, items in both.items()},
        "licences": licences([*pools.train, *pools.evaluation]),
    }


def composition(items: Sequence[Item], targets: Targets | None) -> dict[str, dict[str, dict[str, int | None]]]:
    """Margin -> value -> {items, target}; the target is null where the pool was not composed to one."""
    wanted: dict[str, Mapping[str, float]] = {}
    if targets:
        wanted = {
            "source": targets.sources,
            "channel": targets.channels,
            "wrong_class": targets.wrong_classes,
            "answer_type": targets.answer_types,
        }
    margins: dict[str, dict[str, dict[str, int | None]]] = {}
    for margin, order in MARGINS.items():
        counts = Counter(getattr(item, margin) for item in items if getattr(item, margin))
        shares = wanted.get(margin)
        target = apportion(len(items), shares) if shares else {}
        names = [*(order or [name for name, _ in counts.most_common()]), *target]
        margins[margin] = {
            name: {"items": counts[name], "target": target.get(name)}
            for name in dict.fromkeys(names)
            if counts[name] or target.get(name)
        }
    return margins


def licences(items: Sequence[Item]) -> list[dict[str, Any]]:
    """Source, licence, items, and whether the licence lets the rows be handed on (null: it is not stated)."""
    counts = Counter((item.source, item.license) for item in items)
    return [
        {"source": source, "license": text, "items": n, "redistributable": sources.redistributable(text)}
        for (source, text), n in sorted(counts.items())
    ]


# ---------------------------------------------------------------- Markdown


def datasheet(recipe: Recipe, found: Mapping[str, Any]) -> str:
    """The report as Markdown, with the front matter of a hub dataset card."""
    pools = found["pools"]
    parts = [
        _front_matter(recipe, found),
        f"# {found['name']}: questions under four matched conditions",
        "Every item stands under four conditions that share question, options, answer and wrong answer: *clean* (no "
        "context), *misleading* (a context that names the wrong answer), *correct* (the same context with the right "
        "one) and *irrelevant* (a context of the same channel that names none). The columns are documented in "
        "`scope/items.py`.",
        f"Made by `{found['command']}` (seed {found['seed']}).",
        table(("pool", "made from", "items"), [(n, p["from"], p["items"]) for n, p in pools.items()]),
    ]
    for which, pool in pools.items():
        parts.append(f"## Composition: {which}")
        for margin, values in pool["composition"].items():
            if values:
                parts.append(_composition_table(margin, values, pool["items"]))
        if found["left_out"].get(which):
            parts.append("Left out:")
            parts.append(table(("reason", "questions"), sorted(found["left_out"][which].items())))
    parts.append("## Licences")
    parts.append(
        table(
            ("source", "licence", "items", "may be handed on"),
            [
                (r["source"], r["license"] or "not stated", r["items"], _redistribution(r["redistributable"]))
                for r in found["licences"]
            ],
        )
    )
    parts.append("## Checks")
    parts += _checks(found)
    parts.append("## Shortcut baselines")
    parts.append(
        "How often simple cues tell the answer, or tell the correct from the misleading context, without solving the "
        "question: accuracy with its 95 % interval beside chance. A cue is at chance where the interval holds it; one "
        "that is learnt, also where it lies below: cross-validation on balanced answers falls below by construction."
    )
    for which, rows in found["shortcuts"].items():
        if rows:
            parts.append(f"{which}:")
            parts.append(_shortcut_table(rows))
    return "\n\n".join(parts) + "\n"


def _front_matter(recipe: Recipe, found: Mapping[str, Any]) -> str:
    import yaml

    texts = {row["license"] for row in found["licences"]}
    total = sum(pool["items"] for pool in found["pools"].values())
    size = next((name for bound, name in _SIZES if total < bound), "100K<n<1M")
    card = {
        "pretty_name": found["name"],
        "license": texts.pop().lower() if len(texts) == 1 and "" not in texts else "other",
        "language": ["en"],
        "task_categories": ["question-answering", "multiple-choice"],
        "tags": ["selective-trust", "misleading-context"],
        "size_categories": [size],
        "configs": [
            {
                "config_name": "default",
                "data_files": [{"split": which, "path": f"{which}.{recipe.pool.format}"} for which in found["pools"]],
            }
        ],
    }
    return "---\n" + yaml.safe_dump(card, sort_keys=False) + "---"


def _composition_table(margin: str, values: Mapping[str, Mapping[str, Any]], n_items: int) -> str:
    head: tuple[str, ...] = (margin.replace("_", " "), "items", "per cent")
    with_target = any(value["target"] is not None for value in values.values())
    rows: list[tuple[object, ...]] = []
    for name, value in values.items():
        row: tuple[object, ...] = (name, value["items"], f"{100 * value['items'] / max(n_items, 1):.1f}")
        rows.append((*row, value["target"]) if with_target else row)
    return table((*head, "target") if with_target else head, rows)


def _redistribution(allowed: bool | None) -> str:
    return {True: "yes", False: "**no**", None: "not stated: ask upstream"}[allowed]


def _checks(found: Mapping[str, Any]) -> list[str]:
    names = ", ".join(f"`{check.__name__}`" for check in (*checks.ITEM_CHECKS, *checks.POOL_CHECKS))
    parts = [f"Each item and the pool as a whole were held against {names}, and the two pools against each other."]
    for which, findings in found["findings"].items():
        if not findings["by_check"]:
            parts.append(f"{which}: no findings.")
            continue
        parts.append(f"{which}: findings in {findings['items']} items.")
        parts.append(table(("check", "findings"), sorted(findings["by_check"].items())))
        parts.append("\n".join(f"- {sentence}" for sentence in findings["first"]))
    pairs = found["overlap"]["pairs"]
    parts.append(f"Items that the pools share, or that nearly repeat one of the other pool: {pairs or 'none'}.")
    shared = found["sentences"]
    parts.append(f"Evaluation items with a sentence, its value masked, that the training pool has: {shared or 'none'}.")
    return parts


def _shortcut_table(rows: Sequence[Mapping[str, Any]]) -> str:
    return table(
        ("baseline", "answer type", "n", "chance", "accuracy", "95 % interval", "at chance"),
        [
            (
                row["baseline"],
                row["answer_type"],
                row["n"],
                f"{100 * row['chance']:.1f}",
                f"{100 * row['accuracy']:.1f}",
                f"{100 * row['low']:.1f} to {100 * row['high']:.1f}",
                "yes" if row["at_chance"] else "**no**",
            )
            for row in rows
        ],
    )


def table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A Markdown table; bars in cells are escaped."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(str(cell).replace("|", "\\|") for cell in line) + " |" for line in lines)
