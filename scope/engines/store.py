"""The completion store: every finished batch in one SQLite transaction, keyed by content.

The key is made of everything that decides the text: weights, adapter, prompt token ids, sampling,
engine and its versions and numerics. A batch is committed whole or not at all, and a completion
that is there is never replaced.
"""

import contextlib
import json
import sqlite3
from collections.abc import Iterable, Sequence
from pathlib import Path

from scope.artifacts import StageError
from scope.items import Completion

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


class Store:
    """Completions of one run folder. Several processes may read and write at once."""

    def __init__(self, path: Path):
        self.path = path
        with self._explained():
            path.parent.mkdir(parents=True, exist_ok=True)
            self._db = sqlite3.connect(path, timeout=60, isolation_level=None)
            self._db.execute(_SCHEMA)

    @contextlib.contextmanager
    def _explained(self):
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            raise StageError(
                f"{self.path}: the completion store cannot be used ({error}); free space, make the folder "
                "writable, or move the file away, then run the same command again"
            ) from error

    def get(self, keys: Sequence[str]) -> dict[str, Completion]:
        """Those of the keys that are there."""
        found: dict[str, Completion] = {}
        with self._explained():
            for start in range(0, len(keys), 500):
                part = keys[start : start + 500]
                rows = self._db.execute(
                    "SELECT key, prompt_hash, text, finish_reason, n_prompt_tokens, token_ids FROM completions "
                    f"WHERE key IN ({','.join('?' * len(part))})",
                    part,
                )
                for key, prompt_hash, text, finish_reason, n_prompt, token_ids in rows:
                    n_tokens = len(json.loads(token_ids))
                    found[key] = Completion(key, prompt_hash, text, finish_reason, n_prompt, n_tokens)
        return found

    def put(self, completions: Iterable[tuple[Completion, list[int]]], *, plan: str, engine: str) -> None:
        """Commit a batch: all of it or none of it. What is already there stays."""
        rows = [
            (c.request_id, c.prompt_hash, c.text, json.dumps(ids), c.finish_reason, c.n_prompt_tokens, plan, engine)
            for c, ids in completions
        ]
        with self._explained():
            self._db.execute("BEGIN IMMEDIATE")
            try:
                self._db.executemany(
                    "INSERT INTO completions VALUES (?,?,?,?,?,?,?,?) ON CONFLICT(key) DO NOTHING", rows
                )
                self._db.execute("COMMIT")
            except BaseException:
                with contextlib.suppress(sqlite3.Error):
                    self._db.execute("ROLLBACK")
                raise

    def close(self) -> None:
        self._db.close()
