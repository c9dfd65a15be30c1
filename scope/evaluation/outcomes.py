"""The outcome table: one row per (system, item, cell), as `outcomes.parquet` keeps it.

Columns: `system`, `item_id`, `cell`; `request_id` and `prompt_hash` (content keys of the request and of its prompt);
`text` and `reasoning` (everything the model wrote), `finish_reason` (see `scope.items.Completion`), `error`,
`n_prompt_tokens`, `n_tokens`, `log_probs` (of a choice); `parse_status`, `value` and `label` (the suite's reading of
it), then columns of the suite's own. `engine` and `seconds` stand in `timings.parquet`, for they differ between two
runs that are otherwise the same.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from scope.evaluation.suites.base import Row
from scope.items import Completion

#: Fields of a completion that the table keeps.
COMPLETION = (
    *("request_id", "prompt_hash", "text", "reasoning", "finish_reason", "error", "n_prompt_tokens", "n_tokens"),
    "log_probs",
)
TIMES = ("engine", "seconds")


def row(system: str, item_id: str, cell: str, completion: Completion, outcome: Row) -> Row:
    """One outcome, its times included."""
    kept = {name: getattr(completion, name) for name in (*COMPLETION, *TIMES)}
    if not completion.log_probs:
        del kept["log_probs"]
    return {"system": system, "item_id": item_id, "cell": cell, **kept, **outcome}


def completion_of(row: Row) -> Completion:
    """The completion of an outcome row."""
    kept = {name: row.get(name) for name in COMPLETION}
    return Completion(**kept | {"log_probs": tuple(kept["log_probs"] or ())})


def split(rows: Sequence[Row]) -> tuple[list[Row], list[Row]]:
    """(rows of the table, rows of the times)."""
    outcomes = [{name: value for name, value in row.items() if name not in TIMES} for row in rows]
    times = [{name: row.get(name) for name in ("system", "item_id", "cell", *TIMES)} for row in rows]
    return outcomes, times


def read(folder: Path) -> list[Row]:
    """A suite folder's outcomes, their times joined in."""
    import pyarrow.parquet as pq

    rows = pq.read_table(folder / "outcomes.parquet").to_pylist()
    if (folder / "timings.parquet").is_file():
        times = pq.read_table(folder / "timings.parquet").to_pylist()
        by = {(time["system"], time["item_id"], time["cell"]): time for time in times}
        rows = [row | {name: by[row["system"], row["item_id"], row["cell"]][name] for name in TIMES} for row in rows]
    return rows


def read_json(path: Path) -> Any:
    return json.loads(path.read_text("utf-8"))


def read_jsonl(path: Path) -> list[Row]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]
