"""The completion store: every finished batch in one SQLite transaction, keyed by content.

The key is made of everything that decides the text: weights, adapter, prompt, sampling or options, engine and
its versions and numerics. A batch is committed whole or not at all, and a completion that is there is never
replaced. A failed request is kept with its reason until an answer takes its place.
"""

import contextlib
import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from scope.artifacts import StageError
from scope.engines.base import Generated
from scope.items import Completion

VERSION = 1
_SCHEMA = """
CREATE TABLE IF NOT EXISTS completions (
    key TEXT PRIMARY KEY,
    prompt_hash TEXT NOT NULL,
    text TEXT NOT NULL,
    token_ids TEXT NOT NULL,
    finish_reason TEXT NOT NULL,
    n_prompt_tokens INTEGER NOT NULL,
    plan TEXT NOT NULL,
    engine TEXT NOT NULL
) WITHOUT ROWID
"""
#: What version 1 added; `engine` is the fingerprint that the key is made with, `made_by` its name for a reader.
_ADDED = [
    "n_tokens INTEGER NOT NULL DEFAULT 0",
    "reasoning TEXT NOT NULL DEFAULT ''",
    "error TEXT NOT NULL DEFAULT ''",
    "log_probs TEXT NOT NULL DEFAULT '[]'",
    "seconds REAL NOT NULL DEFAULT 0",
    "made_by TEXT NOT NULL DEFAULT ''",
    "cost REAL NOT NULL DEFAULT 0",
]
_COLUMNS = [
    *("key", "prompt_hash", "text", "finish_reason", "n_prompt_tokens", "n_tokens", "reasoning", "error"),
    *("log_probs", "seconds", "made_by"),
]
_PUT = [*_COLUMNS, "token_ids", "cost", "plan", "engine"]
_REPLACED = ", ".join(f"{name} = excluded.{name}" for name in _PUT if name not in ("key", "cost"))


class Store:
    """Completions of one run folder. Several processes may read and write at once."""

    def __init__(self, path: Path):
        self.path = path
        with self._explained():
            path.parent.mkdir(parents=True, exist_ok=True)
            self._db = sqlite3.connect(path, timeout=60, isolation_level=None)
            with self._transaction():
                self._db.execute(_SCHEMA)
                (version,) = self._db.execute("PRAGMA user_version").fetchone()
                if version < VERSION:
                    for column in _ADDED:
                        self._db.execute(f"ALTER TABLE completions ADD COLUMN {column}")
                    self._db.execute("UPDATE completions SET n_tokens = json_array_length(token_ids)")
                    self._db.execute(f"PRAGMA user_version = {VERSION}")
        if version > VERSION:
            raise StageError(
                f"{path}: the completion store was written by a newer version of scope (layout {version}, this one "
                f"reads {VERSION}); update scope, or set output_dir to another folder"
            )

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            raise StageError(
                f"{self.path}: the completion store cannot be used ({error}); free space, make the folder "
                "writable, or move the file away, then run the same command again"
            ) from error

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[None]:
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._db.execute("COMMIT")
        except BaseException:
            with contextlib.suppress(sqlite3.Error):
                self._db.execute("ROLLBACK")
            raise

    def get(self, keys: Sequence[str], failed: bool = False) -> dict[str, Completion]:
        """Those of the keys that are there: answers, or with `failed` also requests that had none."""
        found: dict[str, Completion] = {}
        wanted = "" if failed else " AND finish_reason != 'error'"
        with self._explained():
            for start in range(0, len(keys), 500):
                part = keys[start : start + 500]
                rows = self._db.execute(
                    f"SELECT {', '.join(_COLUMNS)} FROM completions WHERE key IN ({','.join('?' * len(part))}){wanted}",
                    part,
                )
                for row in rows:
                    found[row[0]] = Completion(*(*row[:-3], tuple(json.loads(row[-3])), *row[-2:]))
        return found

    def put(self, done: Iterable[tuple[Completion, Generated]], *, plan: str, engine: str) -> None:
        """Commit a batch: all of it or none of it. An answer that is there stays; a failure gives way, not its cost."""
        rows = [
            (
                *(c.request_id, c.prompt_hash, c.text, c.finish_reason, c.n_prompt_tokens, c.n_tokens),
                *(c.reasoning, c.error, json.dumps(c.log_probs), c.seconds, c.engine),
                *(json.dumps(list(out.token_ids)), out.cost, plan, engine),
            )
            for c, out in done
        ]
        with self._explained(), self._transaction():
            self._db.executemany(
                f"INSERT INTO completions ({', '.join(_PUT)}) VALUES ({','.join('?' * len(_PUT))}) "
                f"ON CONFLICT(key) DO UPDATE SET {_REPLACED}, cost = cost + excluded.cost "
                "WHERE finish_reason = 'error'",
                rows,
            )

    def cost(self) -> float:
        """What everything here has cost, at most."""
        with self._explained():
            return self._db.execute("SELECT total(cost) FROM completions").fetchone()[0]

    def usage(self) -> list[dict[str, Any]]:
        """Requests, tokens, seconds and cost by what answered, for the usage record."""
        names = ("engine", "requests", "failed", "prompt_tokens", "completion_tokens", "seconds", "cost")
        with self._explained():
            rows = self._db.execute(
                "SELECT made_by, count(*), total(finish_reason = 'error'), total(n_prompt_tokens), total(n_tokens), "
                "total(seconds), total(cost) FROM completions GROUP BY made_by ORDER BY made_by"
            ).fetchall()
        return [
            dict(zip(names, (made_by, *map(int, counts), seconds, cost), strict=True))
            for made_by, *counts, seconds, cost in rows
        ]

    def close(self) -> None:
        self._db.close()
