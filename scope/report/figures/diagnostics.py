"""Lure rates by cell and lures that were recognised (MisleadQA), MR by policy and place (RAG-Stress).

Each figure is None where its data is not.
"""

from collections.abc import Callable, Mapping
from typing import Any

from scope.evaluation.suites import SUITES
from scope.report.figures.style import (
    BLACK,
    BLUE,
    RED,
    Drawing,
    beside,
    figure,
    label_rows,
    labels,
    row_height,
)
from scope.report.lines import bounds, per_cent
from scope.report.terminal import mean_name

Found = Mapping[str, Any]
#: Place of the misleading context -> its row of the outcome panel, colour and marker.
PLACES = {
    "alone": ("{0}", BLACK, "o"),
    "G first": ("g{0}", BLUE, "s"),
    "misleading context first": ("{0}g", RED, "^"),
}
CONTEXTS = {"s": "S: true, out of scope", "f": "F: false, in scope"}


def by_cell(found: Found) -> Drawing | None:
    """Lure rates on A with S and F alone, after G and before it, a row a system (MisleadQA, Fig. 2)."""
    rows = {name: own["panels"]["outcomes"] for name, own in _lines(found).items()}
    sides = {
        title: lambda own, cell, c=context: own[f"a {cell.format(c)}"]["lure"] for context, title in CONTEXTS.items()
    }
    drawn = dots(rows, sides, PLACES, "lure, per cent of A")
    level = f"{100 * found['level']:g}"
    title = f"Lure rates on A by the misleading context's place, with {level} % intervals"
    return drawn and Drawing(f"lures_{found['suite']}", title, drawn)


def misled(found: Found) -> Drawing | None:
    """MR on K under both policies by the answer's place or the target's slot, a row a system (RAG-Stress, Fig. 2)."""
    rows = {name: own["panels"]["grid"] for name, own in _lines(found).items()}
    suite = SUITES[found["suite"]]
    places = {
        suite.words.get(place, place): (place, colour, marker)
        for place, (_, colour, marker) in zip(suite.places, PLACES.values(), strict=True)  # type: ignore[attr-defined]
    }
    sides = {policy: lambda own, place, p=policy: own[place][f"mr_{p}"] for policy in ("strict", "soft")}
    drawn = dots(rows, sides, places, "MR, per cent of K")
    level = f"{100 * found['level']:g}"
    title = f"{suite.title}: misleading rate by policy and place, with {level} % intervals"
    return drawn and Drawing(f"mr_{found['suite']}", title, drawn)


def dots(
    rows: Mapping[str, Any],
    sides: Mapping[str, Callable[..., Mapping[str, Any]]],
    places: Mapping[str, tuple[str, str, str]],
    below: str,
) -> Any:
    """A figure of rates with their intervals; None where none is defined.

    rows: what a row is called -> what `sides` read. sides: title -> the rate of a row at a place. places: what a place
    is called -> its name, colour and marker. below: under the axis.
    """
    from matplotlib.lines import Line2D

    rows = {
        name: own
        for name, own in rows.items()
        if any(per_cent(side(own, place)) is not None for side in sides.values() for place, _, _ in places.values())
    }
    if not rows:
        return None
    shown = labels(list(rows), 16)
    drawn = figure(len(rows) * row_height(shown, 0.34) + 1.0)
    for at, (axes, (title, side)) in enumerate(zip(drawn.subplots(1, len(sides)), sides.items(), strict=True)):
        for row, own in enumerate(rows.values()):
            if row % 2:
                axes.axhspan(row - 0.5, row + 0.5, color="#F4F4F4", zorder=0)
            for n, (place, colour, marker) in enumerate(places.values()):
                _dot(axes, side(own, place), row - 0.24 + 0.24 * n, fmt=marker, color=colour)
        label_rows(axes, [""] * len(rows) if at else shown, [False] * len(rows))
        axes.set_title(title, loc="left")
        axes.set_xlim(-4, 104)
        axes.set_xticks(range(0, 101, 25))
        axes.set_xlabel(below)
        axes.grid(True, axis="x")
    handles = [
        Line2D([], [], linestyle="none", marker=marker, color=colour, label=text)
        for text, (_, colour, marker) in places.items()
    ]
    drawn.legend(handles=handles, loc="outside upper center", ncols=3, handletextpad=0.2)
    return drawn


def recognised(found: Found) -> Drawing | None:
    """Lure rate with S alone where the system judged S not applicable, beside all sampled items of B (Fig. 3)."""
    from matplotlib.lines import Line2D

    rows = {name: own["panels"]["linked"]["h"] for name, own in _lines(found).items()}
    rows = {name: own for name, own in rows.items() if per_cent(own["not_applicable"]) is not None}
    if not rows:
        return None
    shown = labels(list(rows), 20)
    drawn = figure(len(rows) * row_height(shown, 0.26) + 0.95)
    axes = drawn.subplots()
    for row, (name, own) in enumerate(rows.items()):
        is_mean = name not in found["systems"]
        _dot(axes, own["not_applicable"], row, fmt="D" if is_mean else "o", color=BLUE)
        if (value := per_cent(own["all"])) is not None:
            axes.plot(value, row, "D" if is_mean else "o", color=BLACK, markerfacecolor="none", markersize=5.5)
        if not is_mean:
            beside(axes, row, f"{own['not_applicable']['events']}/{own['not_applicable']['n']}")
    if "mean" in found and (value := per_cent(found["mean"]["panels"]["linked"]["h"]["all"])) is not None:
        axes.axvline(value, color="#666666", linestyle="--", linewidth=0.7, zorder=0)
    label_rows(axes, shown, [False] * len(rows))
    axes.set_xlim(-2, 102)
    axes.set_xticks(range(0, 101, 20))
    axes.set_xlabel("lure with S alone, per cent of sampled items of B")
    axes.grid(True, axis="x")
    handles = [
        Line2D([], [], linestyle="none", marker="o", color=BLUE, label="S judged not applicable"),
        Line2D([], [], linestyle="none", marker="o", color=BLACK, markerfacecolor="none", label="all"),
    ]
    if "mean" in found:
        handles.append(Line2D([], [], linestyle="--", color="#666666", linewidth=0.7, label="mean, all"))
    drawn.legend(handles=handles, loc="outside upper center", ncols=3, handletextpad=0.4)
    level = f"{100 * found['level']:g}"
    title = f"Lures with S alone though S was judged not applicable, with counts and {level} % intervals"
    return Drawing("scope_recognition", title, drawn)


def _lines(found: Found) -> dict[str, Mapping[str, Any]]:
    """Every system, then the mean where there is one."""
    return {**found["systems"], **({mean_name(found): found["mean"]} if "mean" in found else {})}


def _dot(axes: Any, rate: Mapping[str, Any], row: float, **look: Any) -> None:
    """The rate with its interval; nothing where it is undefined or withheld."""
    if (value := per_cent(rate)) is None:
        return
    limits = bounds(rate)
    ends = None if limits is None else [[max(0, value - limits[0])], [max(0, limits[1] - value)]]
    axes.errorbar(value, row, xerr=ends, elinewidth=0.7, markersize=3.5, **look)
