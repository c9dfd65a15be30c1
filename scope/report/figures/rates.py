"""Figures of rates: drop, conditions, transfer, and SC2W against the controls. Each is None where its data is not."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from scope.evaluation.suites import SUITES
from scope.report import published, tables
from scope.report.figures.style import (
    BLUE,
    COLOURS,
    CONDITIONS,
    GREEN,
    LINE,
    MARKERS,
    WIDTH,
    Drawing,
    beside,
    figure,
    label_rows,
    labels,
    row_height,
    within_per_cent,
    wrapped,
)
from scope.report.lines import PUBLISHED, Line, bounds, control_mean, drop, mean, measured, per_cent

Found = dict[str, Any]


def drops(found: Found, with_published: bool) -> Drawing | None:
    """Clean to misleading accuracy of each system, and the mean of all (Fig. 1)."""
    blocks = [[line for line in measured(found) if drop(line.rates) is not None]]
    if not blocks[0]:
        return None
    if with_published:
        blocks.append([replace(line, name=line.model) for line in published.off_the_shelf(found["suite"])])
    rows = [line for block in blocks for line in [*block, *_mean_line(block)]]
    shown = labels([line.name for line in rows], 31)
    drawn = figure(len(rows) * row_height(shown, 0.17) + 0.9)
    axes = drawn.subplots()
    for row, line in enumerate(rows):
        clean, misleading = (per_cent(line.rates[cell]) for cell in ("clean", "misleading"))
        axes.plot([clean, misleading], [row, row], color="#999999", zorder=1)
        for cell, value in (("clean", clean), ("misleading", misleading)):
            colour, marker = CONDITIONS[cell]
            axes.plot(value, row, marker, color=colour, markerfacecolor="white" if line.published else colour)
        change = f"{-(drop(line.rates) or 0):+z.1f}".replace("-", "−")
        beside(axes, row, change, weight="bold" if line.method == "mean" else "normal")
    label_rows(axes, shown, [line.published for line in rows])
    for tick, line in zip(axes.get_yticklabels(), rows, strict=True):
        tick.set_fontweight("bold" if line.method == "mean" else "normal")
    beside(axes, -0.9, "change")
    _per_cent_axis(axes, "accuracy, per cent")
    _condition_legend(drawn, ("clean", "misleading"), found, with_published)
    return Drawing("drop", "Accuracy without context and with a misleading one, and the change in points", drawn)


def conditions(found: Found, with_published: bool) -> Drawing | None:
    """Accuracy under each condition with its interval (Fig. 7b)."""
    cells = list(CONDITIONS)
    rows = [line for line in measured(found) if any(per_cent(line.rates[cell]) is not None for cell in cells)]
    if not rows:
        return None
    if with_published:
        rows += [line for line in _families(found["suite"]) if line.method in ("base", "scope")]
    shown = labels([line.name for line in rows])
    drawn = figure(len(rows) * row_height(shown, 0.36) + 0.85)
    axes = drawn.subplots()
    for row, line in enumerate(rows):
        if row % 2:
            axes.axhspan(row - 0.5, row + 0.5, color="#F4F4F4", zorder=0)
        for n, cell in enumerate(cells):
            colour, marker = CONDITIONS[cell]
            filled = "white" if line.published else colour
            _dot(axes, line.rates[cell], row - 0.3 + 0.2 * n, fmt=marker, color=colour, markerfacecolor=filled)
    label_rows(axes, shown, [line.published for line in rows])
    _per_cent_axis(axes, "accuracy, per cent")
    _condition_legend(drawn, cells, found, with_published)
    level = f"{100 * found['level']:g}"
    return Drawing("conditions", f"Accuracy under each condition, with {level} % intervals", drawn)


def transfer(results: Mapping[str, Found], with_published: bool) -> Drawing | None:
    """A panel a metric of the transfer suites, a bar a system (Fig. 5, right; Table 2)."""
    suites = [SUITES[name] for name in results if name in tables.TRANSFER]
    lines = tables.transfer_lines({suite.name: results[suite.name] for suite in suites})
    if with_published:
        known = tables.published_transfer([suite.name for suite in suites])
        lines += [line for line in known if line.method in ("base", "scope")]
    panels = [(suite, metric, f"{suite.name}.{metric}") for suite in suites for metric in suite.headings]
    own = [line.rates for line in lines if not line.published]
    panels = [panel for panel in panels if any(per_cent(one.get(panel[2])) is not None for one in own)]
    if not panels:
        return None
    across = min(2, len(panels))
    down = -(-len(panels) // across)
    shown = labels([line.name for line in lines], 20)
    drawn = figure(down * (len(lines) * row_height(shown, 0.15) + 0.45) + 0.35)
    grid = drawn.subplots(down, across, squeeze=False)
    for place, axes in enumerate(grid.flat):
        if place >= len(panels):
            axes.remove()
            continue
        suite, metric, key = panels[place]
        for row, line in enumerate(lines):
            if (value := per_cent(line.rates.get(key))) is not None:
                look = {"color": "white", "hatch": "////"} if line.published else {"color": BLUE if row else "#888888"}
                axes.barh(row, value, 0.62, edgecolor="#333333", linewidth=0.5, **look)
                _whisker(axes, line.rates[key], row)
                beside(axes, row, f"{value:z.1f}")
        label_rows(axes, shown if place % across == 0 else [""] * len(lines), [line.published for line in lines])
        axes.set_title(wrapped(f"{suite.title}: {tables.heading(suite, metric)}", 18), loc="left", fontsize=6.5)
        _per_cent_axis(axes, "per cent" if place >= len(panels) - across else "", 50)
        axes.tick_params(labelbottom=place >= len(panels) - across)
    more = f"; hatched: {PUBLISHED}" if with_published else ""
    return Drawing("transfer", f"Transfer suites{more}; ↓ less is better", drawn)


def tradeoff(found: Found, with_published: bool) -> Drawing | None:
    """SC2W against the mean of the control accuracies; better than the reference on both is shaded (Fig. 5, 7d)."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    rows = [line for line in measured(found) if _place(line) is not None]
    if not rows:
        return None
    shown = labels([line.name for line in rows], 24)
    handles: list[Any] = [Line2D([], [], label=text, **_look(n)) for n, text in enumerate(shown)]
    if found["against"] in found["systems"]:
        handles.append(Patch(color=GREEN, alpha=0.12, linewidth=0, label="better on both"))
    known = _families(found["suite"]) if with_published else []
    handles += _published_legend(known)
    drawn = figure(2.1 + 0.16 * -(-len(handles) // 2) + LINE * sum(h.get_label().count("\n") for h in handles))
    axes = drawn.subplots()
    for line in known:
        x, y = _place(line) or (0, 0)
        axes.plot(x, y, **_published_look(line, known))
    for n, line in enumerate(rows):
        x, y = _place(line) or (0, 0)
        if limits := bounds(line.rates["sc2w"]):
            axes.plot(limits, [y, y], color="#AAAAAA", linewidth=0.7, zorder=1)
        axes.plot(x, y, **_look(n))
    against = next((line for line in rows if line.name == found["against"]), None)
    axes.margins(0.1)
    within_per_cent(axes, x=True)
    axes.grid(True)
    if against is not None and (corner := _place(against)) is not None:
        (left, right), (bottom, top) = axes.get_xlim(), axes.get_ylim()
        axes.axvline(corner[0], color="#666666", linestyle="--", linewidth=0.7, zorder=0)
        axes.axhline(corner[1], color="#666666", linestyle="--", linewidth=0.7, zorder=0)
        shade = {"color": GREEN, "alpha": 0.12, "linewidth": 0, "zorder": 0}
        axes.fill_between([left, corner[0]], corner[1], top, **shade)
        axes.set_xlim(left, right)
        axes.set_ylim(bottom, top)
    axes.set_xlabel("SC2W, per cent (less is better)")
    axes.set_ylabel("mean of clean, correct,\nirrelevant accuracy, per cent")
    drawn.legend(handles=handles, loc="outside lower center", ncols=2)
    return Drawing("tradeoff", f"SC2W against control accuracy; dashed: {found['against']}", drawn)


# ---------------------------------------------------------------- parts


def _place(line: Line) -> tuple[float, float] | None:
    x, y = per_cent(line.rates.get("sc2w")), control_mean(line.rates)
    return None if x is None or y is None else (x, y)


def _families(suite: str) -> list[Line]:
    """The published lines of the models that the paper trains."""
    shelf = {line.model for line in published.off_the_shelf(suite)}
    return [line for line in published.lines(suite, 1) if line.model not in shelf]


def _look(n: int) -> dict[str, Any]:
    """Marker of the n-th system."""
    edge = {"markeredgecolor": "black", "markeredgewidth": 0.5, "markersize": 5, "linestyle": "none", "zorder": 3}
    return {"color": COLOURS[n % len(COLOURS)], "marker": MARKERS[n % len(MARKERS)], **edge}


def _published_look(line: Line, known: Sequence[Line]) -> dict[str, Any]:
    """A marker a method, white or grey by the family; the outline is thin and grey."""
    methods, models = (list(dict.fromkeys(getattr(one, of) for one in known)) for of in ("method", "model"))
    face = ("white", "#BBBBBB")[models.index(line.model) % 2]
    edge = {"markeredgecolor": "#666666", "markeredgewidth": 0.6, "markersize": 4, "linestyle": "none", "zorder": 2}
    return {"color": face, "marker": "ov^Ds*"[methods.index(line.method) % 6], **edge}


def _published_legend(known: Sequence[Line]) -> list[Any]:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    faces = {line.model: _published_look(line, known)["color"] for line in known}
    first = [line for line in known if line.model == known[0].model]
    return [
        *(Line2D([], [], label=f"{line.method} (published)", **_published_look(line, known)) for line in first),
        *(Patch(facecolor=face, edgecolor="#666666", label=f"{name} (published)") for name, face in faces.items()),
    ]


def _mean_line(lines: Sequence[Line]) -> list[Line]:
    if len(lines) < 2:
        return []
    rates = {}
    for cell in ("clean", "misleading"):
        value = mean([per_cent(line.rates[cell]) for line in lines])
        rates[cell] = {"estimate": None if value is None else value / 100, "interval": None, "sd": None}
    return [Line(f"mean of {len(lines)}", rates, lines[0].published, method="mean")]


def _dot(axes: Any, rate: Mapping[str, Any], row: float, **look: Any) -> None:
    value = per_cent(rate)
    if value is None:
        return
    limits = bounds(rate)
    ends = None if limits is None else [[max(0, value - limits[0])], [max(0, limits[1] - value)]]
    axes.errorbar(value, row, xerr=ends, elinewidth=0.7, markersize=3.5, **look)


def _whisker(axes: Any, rate: Mapping[str, Any], row: float) -> None:
    if limits := bounds(rate):
        axes.plot(limits, [row, row], color="black", linewidth=0.8)


def _per_cent_axis(axes: Any, text: str, step: int = 20) -> None:
    axes.set_xlim(0, 100)
    axes.set_xticks(range(0, 101, step))
    axes.set_xlabel(text)
    axes.grid(True, axis="x")


def _condition_legend(drawn: Any, cells: Sequence[str], found: Found, with_published: bool) -> None:
    from matplotlib.lines import Line2D

    headings = SUITES[found["suite"]].headings
    looks = [(headings[cell], *CONDITIONS[cell], CONDITIONS[cell][0]) for cell in cells]
    if with_published:
        looks.append((PUBLISHED, "#555555", "o", "white"))
    handles = [
        Line2D([], [], linestyle="none", marker=marker, color=colour, markerfacecolor=face, label=text)
        for text, colour, marker, face in looks
    ]
    drawn.legend(handles=handles, loc="outside upper center", ncols=2 if with_published or WIDTH < 3 else len(cells))
