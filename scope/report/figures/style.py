"""How every figure looks: a column wide, Okabe-Ito colours with markers and hatches, and the same bytes twice.

matplotlib is imported where it is used, so that everything else loads quickly.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

from scope import artifacts

WIDTH = 3.3  # inches: a column of a paper
LINE = 0.105  # inches: a line of a label
BLACK, ORANGE, SKY, GREEN, YELLOW, BLUE, RED, PURPLE = (
    *("#000000", "#E69F00", "#56B4E9", "#009E73", "#F0E442", "#0072B2", "#D55E00", "#CC79A7"),
)
#: Of systems, in order; with the markers 72 pairs that differ.
COLOURS = (BLACK, RED, BLUE, GREEN, ORANGE, PURPLE, SKY, YELLOW)
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*", "p")
#: Colour and marker of each condition.
CONDITIONS = {"clean": (BLACK, "o"), "misleading": (RED, "v"), "correct": (BLUE, "s"), "irrelevant": (SKY, "D")}
SETTINGS = {
    "figure.figsize": (WIDTH, 2.4),
    "figure.dpi": 100,
    "savefig.dpi": 300,
    "figure.constrained_layout.use": True,
    "figure.constrained_layout.h_pad": 0.03,
    "figure.constrained_layout.w_pad": 0.03,
    "font.family": "DejaVu Sans",
    "font.size": 7,
    "axes.titlesize": 7,
    "axes.labelsize": 7,
    "xtick.labelsize": 6.5,
    "ytick.labelsize": 6.5,
    "legend.fontsize": 6.5,
    "legend.frameon": False,
    "legend.handlelength": 1.4,
    "legend.columnspacing": 1.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.6,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "lines.linewidth": 1.0,
    "lines.markersize": 4,
    "hatch.linewidth": 0.5,
    "grid.color": "#DDDDDD",
    "grid.linewidth": 0.5,
    "axes.axisbelow": True,
    "axes.unicode_minus": True,
    "text.parse_math": False,  # a dollar in a name is a dollar
    "svg.hashsalt": "scope",
    "svg.fonttype": "path",
}


@dataclass(frozen=True, slots=True)
class Drawing:
    """A finished figure. name: of its files; title: what it shows, for a reader who does not see it too."""

    name: str
    title: str
    figure: Any


@contextmanager
def styled() -> Iterator[None]:
    """The context in which figures are made and saved, whatever the user's own settings are."""
    import matplotlib

    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(SETTINGS)  # type: ignore[arg-type]
        yield


def figure(height: float, width: float = WIDTH) -> Any:
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height))


def save(drawing: Drawing, folder: Path) -> None:
    """NAME.svg and NAME.png; the same bytes for the same numbers."""
    for kind, metadata in (("svg", {"Date": None}), ("png", {})):
        write = partial(drawing.figure.savefig, format=kind, metadata={"Title": printable(drawing.title), **metadata})
        artifacts.write_file(folder / f"{drawing.name}.{kind}", write)


# ---------------------------------------------------------------- labels


def labels(names: Sequence[str], width: int = 18, lines: int = 3) -> list[str]:
    """The names wrapped to at most so many lines of `width` characters, no two alike, only glyphs the font has."""
    shown: list[str] = []
    for name in names:
        text, n = _fitted(name, "", width, lines), 1
        while text in shown:
            n += 1
            text = _fitted(name, f" ({n})", width, lines)
        shown.append(text)
    return shown


def _fitted(name: str, ending: str, width: int, lines: int) -> str:
    length = lines * width
    while (text := wrapped(short(name, length) + ending, width)).count("\n") >= lines:
        length -= 2
    return text


def wrapped(text: str, width: int) -> str:
    """Broken between words; within one that is too long after _ / , and -, or anywhere."""
    lines = [""]
    for word in printable(text).split(" "):
        pieces = [word] if len(word) <= width else re.split(r"(?<=[_/,-])", word)
        for n, piece in enumerate(pieces):
            gap = " " if n == 0 and lines[-1] else ""
            if len(lines[-1] + gap + piece) > width and lines[-1]:
                lines.append("")
                gap = ""
            lines[-1] += gap + piece[:width]
            for start in range(width, len(piece), width):
                lines.append(piece[start : start + width])
    return "\n".join(lines)


def printable(text: str) -> str:
    """The text with � for what the font cannot show."""
    known = _glyphs()
    return "".join(character if ord(character) in known else "�" for character in re.sub(r"\s", " ", text))


def short(text: str, length: int) -> str:
    """The text, its middle left out where it is longer."""
    if len(text) <= length:
        return text
    return f"{text[: (length - 1) // 2]}…{text[-(length // 2) :]}"


@cache
def _glyphs() -> frozenset[int]:
    from matplotlib import font_manager, ft2font

    return frozenset(ft2font.FT2Font(font_manager.findfont("DejaVu Sans")).get_charmap())


def row_height(shown: Sequence[str], least: float) -> float:
    """Inches a row needs for its label, and at least so many."""
    return max(least, *(LINE * (text.count("\n") + 1) + 0.05 for text in shown))


def label_rows(axes: Any, shown: Sequence[str], published: Sequence[bool]) -> None:
    """Rows 0, 1, ... from the top, called so; published ones below a line and in italics."""
    if True in published and (first := published.index(True)):
        axes.axhline(first - 0.5, color="black", linewidth=0.6)
    axes.set_ylim(len(shown) - 0.5, -0.5)
    axes.set_yticks(range(len(shown)), shown)
    axes.tick_params(axis="y", length=0)
    for tick, is_published in zip(axes.get_yticklabels(), published, strict=True):
        tick.set_fontstyle("italic" if is_published else "normal")


def beside(axes: Any, row: float, text: str, **style: Any) -> None:
    """Text to the right of a row, outside the axes."""
    axes.text(1.02, row, text, transform=axes.get_yaxis_transform(), va="center", ha="left", fontsize=6.5, **style)


def within_per_cent(axes: Any, x: bool = False) -> None:
    """Limits that margins have pushed beyond 0 or 100 come back, but for a dot's width; of y, and of x on request."""
    low, high = axes.get_ylim()
    axes.set_ylim(max(low, -2), min(high, 102))
    if x:
        low, high = axes.get_xlim()
        axes.set_xlim(max(low, -2), min(high, 102))
