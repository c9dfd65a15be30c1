"""Sheets for people: CSV files that are drawn by hash, filled in by hand and read back row by row."""

import csv
import io
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from scope.artifacts import fingerprint
from scope.pool.questions import PoolError
from scope.tables import Row, read_rows


def ranked(seed: int, domain: str, id: str) -> str:
    """A hash to sort ids by; domains make orders that have nothing to do with one another."""
    return fingerprint([seed, domain, id])


def sheet(head: Sequence[str], rows: Sequence[Sequence[Any]], quoting: int = csv.QUOTE_MINIMAL) -> str:
    """A CSV with a header line. quoting: one of the constants of `csv`."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n", quoting=quoting)  # type: ignore[arg-type]
    writer.writerow(head)
    writer.writerows(rows)
    return text.getvalue()


def filled_rows(path: Path) -> list[Row]:
    """The rows of a sheet, each with its place."""
    return list(read_rows(path))


def answered(path: Path, n: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """(place, row) of a sheet whose rows go by `item_id` 1 to n, each once; PoolError names the first that does not."""
    rows = filled_rows(path)
    if len(rows) != n:
        raise PoolError(f"{path}: has {len(rows)} rows, {n} were handed out; restore the missing or doubled ones")
    seen: set[int] = set()
    for where, row in rows:
        if isinstance(row, str):
            raise PoolError(f"{where}: {row}")
        place = str(row.get("item_id", ""))
        if not place.isdecimal() or not 1 <= int(place) <= n:
            raise PoolError(f"{where}: item_id: {place!r} was not handed out; restore the column")
        if int(place) in seen:
            raise PoolError(f"{where}: item_id: {place} stands twice; keep one row of it")
        seen.add(int(place))
        yield where, row
