"""Tables as Markdown, LaTeX and HTML. Whatever stands in a cell is text: it is escaped here and nowhere else."""

import html
import re
from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Cell:
    """Text, as a reader is to see it. muted: it carries no claim, and is grey where a format has greys."""

    text: str
    bold: bool = False
    muted: bool = False


@dataclass(frozen=True, slots=True)
class Group:
    """Rows that belong together, under a heading of their own if it is not empty."""

    rows: list[list[Cell]]
    heading: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """name: plain letters, digits and underscores, for labels and anchors. Each row is as long as `head`."""

    name: str
    title: str
    head: list[str]
    groups: list[Group]
    notes: list[str] = field(default_factory=list)


def plain(text: str) -> str:
    """One line without control characters."""
    return re.sub(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]+", " ", text)


# ---------------------------------------------------------------- Markdown


def escape_markdown(text: str) -> str:
    """Text for a Markdown cell: no column, markup, HTML, formula or link begins in it."""
    text = re.sub(r"([\\|`*$~])", r"\\\1", plain(text)).replace("](", "]\\(")
    text = re.sub(r"(?<![^\W_])_|_(?![^\W_])", r"\\_", text)  # within a word it is no markup
    return text.replace("&", "&amp;").replace("<", "&lt;")


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table of plain texts, numbers to the right."""
    return _markdown(head, [[escape_markdown(text) for text in row] for row in rows])


def _markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [[escape_markdown(text) for text in head], ["---", *("--:" for _ in head[1:])], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def as_markdown(table: Table) -> str:
    """Title, table and notes."""
    rows = []
    for group in table.groups:
        if group.heading:
            rows.append([f"*{escape_markdown(group.heading)}*", *("" for _ in table.head[1:])])
        for row in group.rows:
            texts = [escape_markdown(cell.text) for cell in row]
            rows.append([f"**{text}**" if cell.bold else text for cell, text in zip(row, texts, strict=True)])
    notes = "\n".join(f"- {escape_markdown(note)}" for note in table.notes)
    return f"### {escape_markdown(table.title)}\n\n{_markdown(table.head, rows)}\n" + (f"\n{notes}\n" if notes else "")


# ---------------------------------------------------------------- LaTeX

_LATEX = {
    **{character: f"\\{character}" for character in "&%$#_{}"},
    **{"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"},
    **{"<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}"},
    **{'"': r"\textquotedbl{}", "`": r"\textasciigrave{}"},
    **{"Δ": r"$\Delta$", "†": r"$\dagger$"},
    **{"±": r"$\pm$", "−": "$-$", "↓": r"$\downarrow$", "→": r"$\to$", "–": r"\textendash{}", "…": r"\ldots{}"},
    **{"[": "{[}", "]": "{]}", "*": "{*}"},  # after the end of a row these would be read as its arguments
}  # fmt: skip
#: A document of its own; a single table can be copied out of it with these packages and commands.
PREAMBLE = r"""\documentclass{article}
\usepackage[margin=2cm]{geometry}
\usepackage{booktabs,graphicx,iftex}
\ifPDFTeX
  \usepackage[T1]{fontenc}
  \usepackage{lmodern,textcomp}
\else
  \usepackage{fontspec}
\fi
% A character that pdfTeX may not know, and its number.
\DeclareRobustCommand\character[2]{\ifPDFTeX[U+#2]\else#1\fi}
\newsavebox\fitbox
% A tabular no wider than the line and no higher than a page.
\newcommand\fit[1]{%
  \sbox\fitbox{#1}%
  \ifdim\wd\fitbox>\linewidth \sbox\fitbox{\resizebox{\linewidth}{!}{\usebox\fitbox}}\fi
  \ifdim\dimexpr\ht\fitbox+\dp\fitbox\relax>.8\textheight\sbox\fitbox{\resizebox{!}{.8\textheight}{\usebox\fitbox}}\fi
  \usebox\fitbox}
\begin{document}
"""


def escape_latex(text: str) -> str:
    """Text for LaTeX: no command, column or comment begins in it, and a minus before a number is one."""
    text = re.sub(r"(?<!\w)-(?=\d)", "−", plain(text))
    return re.sub("-(?=-)", "-{}", "".join(_LATEX.get(one) or _known(one) for one in text))


def _known(character: str) -> str:
    return character if ord(character) < 0x180 else rf"\character{{{character}}}{{{ord(character):04X}}}"


def as_latex(tables: Sequence[Table]) -> str:
    """A document with the tables, ruled by booktabs."""
    return PREAMBLE + "\n".join(map(_latex, tables)) + "\n\\end{document}\n"


def _latex(table: Table) -> str:
    columns = len(table.head)
    lines = [
        r"\begin{table}[p]",
        r"\centering\small",
        rf"\caption{{{escape_latex(table.title)}}}",
        rf"\label{{tab:{table.name}}}",
        rf"\fit{{\begin{{tabular}}{{@{{}}l{'r' * (columns - 1)}@{{}}}}",
        r"\toprule",
        " & ".join(map(escape_latex, table.head)) + r" \\",
    ]
    for group in table.groups:
        lines.append(r"\midrule")
        if group.heading:
            lines.append(rf"\multicolumn{{{columns}}}{{@{{}}l@{{}}}}{{\emph{{{escape_latex(group.heading)}}}}} \\")
        for row in group.rows:
            texts = [escape_latex(cell.text) for cell in row]
            shown = [rf"\textbf{{{text}}}" if cell.bold else text for cell, text in zip(row, texts, strict=True)]
            lines.append(" & ".join(shown) + r" \\")
    lines += [r"\bottomrule", r"\end{tabular}}"]
    if table.notes:
        notes = r"\\".join(map(escape_latex, table.notes))
        lines.append(rf"\par\smallskip\parbox{{\linewidth}}{{\footnotesize\raggedright {notes}}}")
    return "\n".join([*lines, r"\end{table}", ""])


# ---------------------------------------------------------------- HTML


def escape_html(text: str) -> str:
    """Text for HTML, attributes too."""
    return html.escape(plain(text), quote=True)


def as_html(table: Table) -> str:
    """A section: title, table and notes."""
    head = "".join(f'<th scope="col">{escape_html(text)}</th>' for text in table.head)
    bodies = []
    for group in table.groups:
        rows = []
        if group.heading:
            span = f'<th scope="rowgroup" colspan="{len(table.head)}">{escape_html(group.heading)}</th>'
            rows.append(f'<tr class="group">{span}</tr>')
        for row in group.rows:
            texts = [f"<b>{escape_html(c.text)}</b>" if c.bold else escape_html(c.text) for c in row]
            grey = [' class="few"' * cell.muted for cell in row]
            cells = "".join(f"<td{few}>{text}</td>" for few, text in zip(grey[1:], texts[1:], strict=True))
            rows.append(f'<tr><th scope="row">{texts[0]}</th>{cells}</tr>')
        bodies.append("<tbody>\n" + "\n".join(rows) + "\n</tbody>")
    notes = "".join(f"<li>{escape_html(note)}</li>" for note in table.notes)
    return (
        f'<section id="{table.name}">\n<h2>{escape_html(table.title)}</h2>\n<div class="wide"><table>\n'
        f"<thead><tr>{head}</tr></thead>\n" + "\n".join(bodies) + f"\n</table></div>\n<ul>{notes}</ul>\n</section>"
    )
