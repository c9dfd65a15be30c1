"""The tables that were transcribed from the papers, `../shared/reference`."""

import csv
from functools import cache


@cache
def table(path):
    """Rows of a CSV, numbers as floats and empty cells as None."""

    def read(text):
        try:
            return float(text) if text else None
        except ValueError:
            return text

    with path.open(encoding="utf-8", newline="") as file:
        return [{key: read(value) for key, value in row.items()} for row in csv.DictReader(file)]


def by(rows, *keys):
    """Rows by the values of some columns."""
    return {tuple(row[key] for key in keys) if len(keys) > 1 else row[keys[0]]: row for row in rows}
