"""What a person decides of the items that a screening flags (MisleadQA, App. B.1)."""

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from scope.pool.questions import PoolError
from scope.tables import read_rows

#: All but `retain` keep an item out of a release.
DECISIONS = ("retain", "exclude", "revise", "verify")


def decision_sheet(rows: Sequence[Mapping[str, Any]]) -> str:
    """A CSV of flagged items for a person to fill in: retain, exclude, revise or verify, with a reason."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("item_id", "failed", "what the model says", "decision", "reason"))
    for row in rows:
        if row["status"] == "flagged":
            said = "; ".join(f"{name}: {row['verdicts'][name]['reason']}" for name in row["failed"])
            writer.writerow((row["item_id"], ", ".join(row["failed"]), said, "", ""))
    return text.getvalue()


def decided(path: str | Path) -> dict[str, str]:
    """Item id -> decision of every item that a person keeps out; PoolError for no decision, or one without a reason."""
    found = {}
    for where, row in read_rows(Path(path)):
        if isinstance(row, str):
            raise PoolError(f"{where}: {row}")
        decision = str(row.get("decision", "")).strip().casefold()
        if decision not in DECISIONS:
            raise PoolError(f"{where}: decision: {decision!r} is none of {', '.join(DECISIONS)}; decide every item")
        if not str(row.get("reason", "")).strip():
            raise PoolError(f"{where}: reason: is empty; say why the item is to {decision}")
        if decision != "retain":
            found[str(row.get("item_id", ""))] = decision
    return found
