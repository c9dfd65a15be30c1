"""The SCOPE paper's published numbers (arXiv 2608.06377, Tables 1 to 4): to stand beside results, never among them.

`published_scope.csv` has one number a row, in per cent as printed: suite, table, model, method, slice column and
value (Table 4), metric, estimate, standard deviation (Table 1). Methods are called as the arms here are.
"""

import csv
from functools import cache
from pathlib import Path
from typing import Any

from scope.artifacts import StageError
from scope.report.lines import Line

FILE = Path(__file__).with_name("published_scope.csv")
#: What the numbers are of, for a table's notes.
SOURCE = "SCOPE paper (arXiv 2608.06377)"
ITEMS = {"mist": "1,000 items of MIST-Bench"}


@cache
def _rows() -> tuple[dict[str, str], ...]:
    with FILE.open(encoding="utf-8", newline="") as file:
        return tuple(csv.DictReader(file))


def check(suite: str) -> None:
    """StageError unless the paper has numbers on the suite."""
    known = dict.fromkeys(row["suite"] for row in _rows())
    if suite not in known:
        raise StageError(
            f"--published: the paper has no numbers on {suite}, only on {', '.join(known)}; choose suites by --suite"
        )


def lines(suite: str, table: int) -> list[Line]:
    """The rows of one of the paper's tables that are of a suite, in its order."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for row in _rows():
        if (row["suite"], row["table"], row["slice"]) == (suite, str(table), ""):
            found.setdefault((row["model"], row["method"]), {})[row["metric"]] = _rate(row)
    return [Line(f"{model}, {method}", rates, True, model, method, table) for (model, method), rates in found.items()]


def slices(suite: str) -> dict[str, dict[tuple[str, str], dict[str, Any]]]:
    """System -> (slice column, value) -> rate (Table 4)."""
    found: dict[str, dict[tuple[str, str], dict[str, Any]]] = {}
    for row in _rows():
        if row["suite"] == suite and row["slice"]:
            found.setdefault(f"{row['model']}, {row['method']}", {})[row["column"], row["slice"]] = _rate(row)
    return found


def off_the_shelf(suite: str) -> list[Line]:
    """The models of Table 1 that the paper trains nothing on; its mean drop is of these 23 (Sec. 6)."""
    found = lines(suite, 1)
    trained = {line.model for line in found if line.method != "base"}
    return [line for line in found if line.model not in trained]


def _rate(row: dict[str, str]) -> dict[str, Any]:
    sd = float(row["sd"]) / 100 if row["sd"] else None
    return {"estimate": float(row["per_cent"]) / 100, "interval": None, "sd": sd, "undefined_replicates": 0}
