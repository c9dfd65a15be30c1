"""A report's folder: tables, figures, numbers, and one page that shows them."""

import base64
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from scope import artifacts
from scope.artifacts import StageError
from scope.report import tables
from scope.report.figures import draw
from scope.report.figures.style import save, styled
from scope.report.markup import as_html, as_latex, as_markdown, escape_html

#: What a report's folder holds; one that holds anything else is left alone.
FILES = ("index.html", "tables.md", "tables.tex", "results.json")
FIGURES = "figures"

STYLE = """
body { font: 15px/1.45 system-ui, sans-serif; max-width: 70rem; margin: 2rem auto; padding: 0 1rem; color: #111; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.1rem; margin-top: 2.2rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; border-block: 2px solid #111; font-variant-numeric: tabular-nums; }
th, td { padding: .2rem .6rem; text-align: right; white-space: nowrap; font-weight: normal; }
th:first-child { text-align: left; }
thead th { border-bottom: 1px solid #111; font-weight: 600; }
tbody + tbody { border-top: 1px solid #bbb; }
.group th { font-style: italic; }
.few { color: #888; }
ul { font-size: .85rem; color: #444; }
.figures { display: grid; grid-template-columns: repeat(auto-fill, minmax(20rem, 1fr)); gap: 1.5rem; }
figure { margin: 0; } figure img { width: 100%; height: auto; } figcaption { font-size: .85rem; color: #444; }
"""


def write(out: Path, results: Mapping[str, dict[str, Any]], runs: Sequence[Path], with_published: bool) -> None:
    """Write the folder anew, whole. StageError where `out` holds anything but an earlier report."""
    foreign = [path for path in sorted(out.glob("*")) if path.name not in (*FILES, FIGURES)]
    foreign += [path for path in sorted((out / FIGURES).glob("*")) if path.suffix not in (".png", ".svg")]
    if foreign:
        raise StageError(f"--out {out}: holds {foreign[0].name}, which is no report's; name a new or an empty folder")
    made = tables.tables(results, with_published)
    drawings = draw(results, runs, with_published)
    with artifacts.replacing_folder(out) as folder:
        (folder / FIGURES).mkdir()
        with styled():
            for drawing in drawings:
                save(drawing, folder / FIGURES)
        artifacts.write_text(folder / "tables.md", "\n".join(map(as_markdown, made)))
        artifacts.write_text(folder / "tables.tex", as_latex(made))
        artifacts.write_json(folder / "results.json", results)
        shown = [(drawing.title, folder / FIGURES / f"{drawing.name}.svg") for drawing in drawings]
        artifacts.write_text(folder / "index.html", page(made, shown, results))


def page(made: Sequence[Any], drawings: Sequence[tuple[str, Path]], results: Mapping[str, dict[str, Any]]) -> str:
    """The page: no script, nothing loaded from elsewhere, every text escaped. drawings: title and SVG file."""
    models = ", ".join(dict.fromkeys(found["model"] for found in results.values()))
    figures = "\n".join(
        f'<figure><img alt="{escape_html(title)}" src="data:image/svg+xml;base64,{_encoded(file)}">'
        f"<figcaption>{escape_html(title)}</figcaption></figure>"
        for title, file in drawings
    )
    folders = {name: place for found in results.values() for name, place in found["folders"].items()}
    systems = "".join(f"<li>{escape_html(name)}: {escape_html(place)}</li>" for name, place in folders.items())
    links = " · ".join(f'<a href="{name}">{name}</a>' for name in FILES[1:])
    policy = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
    body = "\n".join(map(as_html, made))
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>SCOPE report: {escape_html(models)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n"
        f"<h1>SCOPE report: {escape_html(models)}</h1>\n<p>{links}</p>\n{body}\n"
        f'<section id="figures">\n<h2>Figures</h2>\n<div class="figures">\n{figures}\n</div>\n</section>\n'
        f'<section id="systems">\n<h2>Where each system was evaluated</h2>\n<ul>{systems}</ul>\n</section>\n'
        "</body>\n</html>\n"
    )


def _encoded(file: Path) -> str:
    return base64.b64encode(file.read_bytes()).decode("ascii")
