"""Figures of slices, repairs, training steps and mining. Each is None where its data is not."""

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from scope.evaluation.results import REFERENCE
from scope.evaluation.suites import SUITES
from scope.mining.select import REASONS
from scope.report import tables
from scope.report.figures.style import (
    BLACK,
    BLUE,
    CONDITIONS,
    GREEN,
    RED,
    SKY,
    WIDTH,
    Drawing,
    figure,
    label_rows,
    labels,
    printable,
    row_height,
    short,
    within_per_cent,
)
from scope.report.lines import CONTROLS, bounds, per_cent
from scope.report.terminal import repairs as counted

Found = dict[str, Any]
#: A column with more values is left out of the heat map; the table has it.
MANY = 30


def slices(found: Found) -> Drawing | None:
    """One metric by slice and system (Fig. 8), per cent without decimals; hatched: undefined or withheld."""
    from matplotlib.patches import Rectangle

    metric, systems = tables.slice_metric(found["suite"]), list(found["systems"])
    rows: list[tuple[str, dict[str, Any] | None]] = []  # a heading has no rates
    for column, values in found["slices"].items():
        if len(values) <= MANY:
            rows.append((column.replace("_", " "), None))
            rows += [(f"{short(value, 30)} ({part['items']})", part["systems"]) for value, part in values.items()]
    cells = np.array([[per_cent(by and by[name][metric]) for name in systems] for _, by in rows], float)
    if not len(cells) or np.isnan(cells).all():
        return None
    shown = labels(systems, 22, 2)
    names_height = 0.06 * max(len(line) for text in shown for line in text.split("\n"))
    drawn = figure(0.135 * len(rows) + names_height + 0.1, max(WIDTH, 1.4 + 0.22 * len(systems)))
    axes = drawn.subplots()
    top = max(1.0, float(np.nanmax(cells)))
    axes.pcolormesh(np.ma.masked_invalid(cells), cmap="Blues", vmin=0, vmax=top, edgecolors="white", linewidth=0.5)
    for row, (_, by) in enumerate(rows):
        for place, value in enumerate(cells[row]):
            if by and np.isnan(value):
                axes.add_patch(Rectangle((place, row), 1, 1, facecolor="white", edgecolor="#BBBBBB", hatch="////"))
            elif by:
                ink = "white" if value > 0.6 * top else "black"
                axes.text(place + 0.5, row + 0.55, f"{value:z.0f}", ha="center", va="center", color=ink, fontsize=6)
    axes.set_ylim(len(rows), 0)
    axes.set_yticks(np.arange(len(rows)) + 0.5, [printable(text) for text, _ in rows])
    for tick, (_, by) in zip(axes.get_yticklabels(), rows, strict=True):
        tick.set_fontweight("normal" if by else "bold")
    axes.set_xticks(np.arange(len(systems)) + 0.5, shown, rotation=90, linespacing=0.9)
    axes.xaxis.tick_top()
    axes.tick_params(length=0, pad=2)
    axes.spines[:].set_visible(False)
    suite = SUITES[found["suite"]]
    heading = f"{suite.title}: {tables.heading(suite, metric)} in per cent by slice (items)"
    return Drawing(f"slices_{suite.name}", f"{heading}; hatched: undefined or withheld", drawn)


def repairs(found: Found) -> Drawing | None:
    """Repairs, gains and costs in the misleading cell against the reference (Fig. 7a)."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    rows = {name: counts for name, other in found["differences"].items() if (counts := counted(other))}
    if not rows:
        return None
    shown = labels(list(rows))
    drawn = figure(len(rows) * row_height(shown, 0.36) + 0.85)
    axes = drawn.subplots()
    look = {"edgecolor": "black", "linewidth": 0.5, "height": 0.34}
    most = max(1, *(max(c["repairs"], c["gains"], c["costs"]) for c in rows.values()))
    for row, counts in enumerate(rows.values()):
        if row % 2:
            axes.axhspan(row - 0.5, row + 0.5, color="#F4F4F4", zorder=0)
        axes.barh(row - 0.2, counts["repairs"], color=SKY, hatch="////", **look)
        axes.barh(row + 0.2, counts["gains"], color=GREEN, **look)
        axes.barh(row + 0.2, -counts["costs"], color=RED, hatch="xxxx", **look)
        axes.plot(counts["net"], row + 0.2, "D", color="white", markeredgecolor="black", markersize=3.5, zorder=3)
        small = {"va": "center", "fontsize": 6}
        pad = 0.02 * most
        axes.text(counts["repairs"] + pad, row - 0.2, f"{counts['repairs']} of {counts['base_failures']}", **small)
        axes.text(counts["gains"] + pad, row + 0.2, f"+{counts['gains']}", **small)
        axes.text(-counts["costs"] - pad, row + 0.2, f"−{counts['costs']}", ha="right", **small)
    label_rows(axes, shown, [False] * len(rows))
    axes.set_xlim(-max(c["costs"] for c in rows.values()) - 0.22 * most, 1.3 * most)
    axes.axvline(0, color="black", linewidth=0.6)
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.set_xlabel("items, misleading context")
    axes.grid(True, axis="x")
    handles = [
        Patch(facecolor=SKY, hatch="////", edgecolor="black", label="repaired, of clean-right failures"),
        Patch(facecolor=GREEN, edgecolor="black", label="gains"),
        Patch(facecolor=RED, hatch="xxxx", edgecolor="black", label="costs"),
        Line2D([], [], linestyle="none", marker="D", color="white", markeredgecolor="black", label="net"),
    ]
    drawn.legend(handles=handles, loc="outside upper center", ncols=2)
    return Drawing("repairs", f"Repairs, gains and costs against {found['against']}", drawn)


def dynamics(found: Found) -> list[Drawing]:
    """SC2W and the controls over training steps (Fig. 7c): one an arm with checkpoints, from the base to its end."""
    from matplotlib.ticker import MaxNLocator

    steps, folders = found["steps"], found["folders"]
    arms = list(dict.fromkeys(folders[name] for name in steps if re.search(r"\(checkpoint-\d+\)$", name)))
    made = []
    for n, folder in enumerate(arms, start=1):
        points = {0: REFERENCE} if REFERENCE in steps else {}
        for name, step in steps.items():
            if folders[name] == folder and step and (step not in points or name.endswith("(merged)")):
                points[step] = name
        points = dict(sorted(points.items()))
        last = list(points.values())[-1]
        drawn = figure(2.9)
        above, below = drawn.subplots(2, 1, sharex=True)
        _curve(above, found, points, "sc2w", RED, "v")
        for cell in CONTROLS:
            _curve(below, found, points, cell, *CONDITIONS[cell])
        above.set_ylabel("SC2W ↓, per cent")
        below.set_ylabel("accuracy, per cent")
        below.set_xlabel("training step")
        below.xaxis.set_major_locator(MaxNLocator(7, integer=True))
        for axes in (above, below):
            axes.grid(True)
            axes.margins(x=0.05, y=0.1)
            within_per_cent(axes)
        drawn.legend(loc="outside upper center", ncols=4, columnspacing=0.8, handletextpad=0.4)
        title = f"SC2W and control accuracies over training steps, from the base to {last}"
        made.append(Drawing("dynamics" if len(arms) == 1 else f"dynamics_{n}", title, drawn))
    return made


def _curve(axes: Any, found: Found, points: Mapping[int, str], metric: str, colour: str, marker: str) -> None:
    rates = {step: found["systems"][name]["rates"][metric] for step, name in points.items()}
    known = {step: value for step, rate in rates.items() if (value := per_cent(rate)) is not None}
    label = SUITES[found["suite"]].headings[metric]
    axes.plot(list(known), list(known.values()), marker=marker, color=colour, label=label, markersize=3.5)
    for step in known:
        if limits := bounds(rates[step]):
            axes.plot([step, step], limits, color=colour, linewidth=0.6, alpha=0.6)


def funnel(name: str, counts: Mapping[str, Any], run: str) -> Drawing:
    """From the pool to the quartets, a bar a step (App. I.3). counts: `funnel.json`."""
    left, first = counts["items"], "published quartets" if "published" in counts["chosen_from"] else "training pool"
    rows = [(first, 0, left, BLUE, "")]
    for reason, dropped in counts["dropped"].items():
        left -= dropped
        rows.append((REASONS.get(reason, reason), left, dropped, "#BBBBBB", "////"))
    start = 0
    for source, kept in counts["chosen_from"].items():
        rows.append((f"quartets, chosen: {source}", start, kept, GREEN if source != "diagnostic" else BLACK, ""))
        start += kept
    drawn = figure(0.27 * len(rows) + 0.35)
    axes = drawn.subplots()
    for row, (text, begin, width, colour, hatch) in enumerate(rows):
        axes.barh(row, width, 0.42, left=begin, color=colour, hatch=hatch, edgecolor="black", linewidth=0.5)
        axes.text(0, row - 0.28, f"{'−' * (hatch != '')}{width:,}  {printable(text)}", fontsize=6.5, va="bottom")
    axes.set_ylim(len(rows) - 0.6, -0.85)
    axes.set_xlim(0, max(1, counts["items"]))
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.set_xlabel("items")
    return Drawing(name, f"Mining of {run}: {counts['quartets']} quartets of {counts['items']} items", drawn)
