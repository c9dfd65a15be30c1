"""Reference log-probabilities, computed once and kept with the run, for every arm and seed.

The unit is a whole quartet: its four prompts, each with the chosen and the rejected response, in one
forward pass of the kind the policy is trained with. A unit's key holds everything its numbers depend
on: the weights, their precision, the kind of forward pass and its code, and all token ids (and so the
chat template, its arguments and what `max_length` cut). A unit is kept whole or not at all and never
replaced, so what a run reads does not depend on which arm computed it or where one was killed.
"""

import contextlib
import functools
import json
import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from scope import artifacts, trie
from scope.artifacts import StageError
from scope.models import ResolvedModel, pick_dtype
from scope.recipe import Recipe

FOLDER = "reference"
WAVE = 8  # units a process computes between two commits

Tokens = tuple[int, ...]
Pair = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Unit:
    """Prompts that are computed together, each before the same chosen and rejected response (token ids)."""

    prompts: tuple[Tokens, ...]
    chosen: Tokens
    rejected: Tokens


def is_kept(recipe: Recipe) -> bool:
    """Whether a run reads its reference from the store. `auto` does so in fp32 only.

    In fp32 it makes no difference which sequences share a forward pass (below 1e-4 nat). In bf16 the same
    response moves by 0.3 to 0.5 nat from one batch to another; a live reference is computed in the
    policy's own batch and shares most of that rounding, a kept one does not.
    """
    if recipe.trainer.reference == "auto":
        return pick_dtype(recipe.model.dtype) == "float32"
    return recipe.trainer.reference == "cached"


def context(recipe: Recipe, resolved: ResolvedModel) -> dict[str, Any]:
    """What reference log-probabilities depend on beside token ids."""
    from scope.training import packing

    named_elsewhere = ("base", "revision", "mirror", "chat_template_kwargs", "dtype")
    versions = artifacts.versions()
    return {
        "base": resolved.forward,
        "dtype": pick_dtype(recipe.model.dtype),
        "model": {k: v for k, v in recipe.part("model")["model"].items() if k not in named_elsewhere},
        "packing": recipe.trainer.packing,
        "pack_tokens": recipe.trainer.pack_tokens if recipe.trainer.packing == "trie" else None,
        "device": "cuda" if torch.cuda.is_available() else "cpu",
        "code": [artifacts.file_hash(Path(str(module.__file__))) for module in (packing, trie)],
        "versions": {name: versions.get(name) for name in ("torch", "transformers", "trl", "peft")},
    }


def units_of(rows: Any, quartets: Iterable[Sequence[Sequence[int]]]) -> tuple[list[Unit], torch.Tensor]:
    """The units a plan needs, and each row's (unit, prompt within it) as a long tensor (rows, 2).

    rows: dataset of the plan with prompt_ids, chosen_ids and rejected_ids. quartets: the prompts of each
    quartet; a row brings its prompt's whole quartet, so that arms which draw other conditions share it.
    """
    together = {tuple(prompt): tuple(map(tuple, prompts)) for prompts in quartets for prompt in prompts}
    numbers: dict[Unit, int] = {}
    places = torch.empty((len(rows), 2), dtype=torch.long)
    for number, row in enumerate(rows):
        prompt = tuple(row["prompt_ids"])
        unit = Unit(together.get(prompt, (prompt,)), tuple(row["chosen_ids"]), tuple(row["rejected_ids"]))
        places[number, 0] = numbers.setdefault(unit, len(numbers))
        places[number, 1] = unit.prompts.index(prompt)
    return list(numbers), places


class Store:
    """Units of one run folder, each with a (chosen, rejected) log-probability a prompt. Safe for several processes."""

    def __init__(self, path: Path):
        self.path = path
        with self._explained():
            path.parent.mkdir(parents=True, exist_ok=True)
            self._db = sqlite3.connect(path, timeout=60, isolation_level=None)
            self._db.execute(
                "CREATE TABLE IF NOT EXISTS units (key TEXT PRIMARY KEY, log_probs TEXT NOT NULL) WITHOUT ROWID"
            )

    @contextlib.contextmanager
    def _explained(self):
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            raise StageError(
                f"{self.path}: the reference store cannot be used ({error}); free space, make the folder writable, "
                "or delete the file (it is computed again), then run the same command again"
            ) from error

    def get(self, keys: Sequence[str]) -> dict[str, list[Pair]]:
        """Those of the keys that are there."""
        found: dict[str, list[Pair]] = {}
        with self._explained():
            for start in range(0, len(keys), 500):
                part = keys[start : start + 500]
                query = f"SELECT key, log_probs FROM units WHERE key IN ({','.join('?' * len(part))})"
                found |= {key: [(c, r) for c, r in json.loads(text)] for key, text in self._db.execute(query, part)}
        return found

    def put(self, units: Mapping[str, list[Pair]]) -> None:
        """Commit all of them or none. What is already there stays."""
        with self._explained():
            self._db.execute("BEGIN IMMEDIATE")
            try:
                self._db.executemany(
                    "INSERT INTO units VALUES (?, ?) ON CONFLICT(key) DO NOTHING",
                    [(key, json.dumps(values)) for key, values in units.items()],
                )
                self._db.execute("COMMIT")
            except BaseException:
                with contextlib.suppress(sqlite3.Error):
                    self._db.execute("ROLLBACK")
                raise

    def close(self) -> None:
        self._db.close()


@dataclass(slots=True)
class Reference:
    """The reference of one run's rows: what it needs, where it is kept, and how it is computed."""

    path: Path
    context: dict[str, Any]
    units: list[Unit]
    places: torch.Tensor
    computed: int = 0  # units that were not in the store

    def log_probs(self, score: Callable[[Unit], list[Pair]], rank: int = 0, world: int = 1) -> torch.Tensor:
        """Sums of completion log-probabilities of every row, (rows, 2), fp32: chosen, rejected.

        Every process calls it. Each computes its share of what is missing with `score`, in equal numbers of
        calls; the main process alone reads and writes the store. StageError, in all of them, if it cannot.
        """
        unit_keys = self.keys()
        store = Store(self.path) if rank == 0 else None
        known = _from_main(functools.partial(store.get, unit_keys) if store else _nothing, rank)
        missing = [number for number, key in enumerate(unit_keys) if key not in known]
        self.computed = len(missing)
        if missing and rank == 0:
            print(
                f"train: reference log-probabilities: {len(unit_keys) - len(missing)} of {len(unit_keys)} quartets are "
                f"kept in {self.path}, computing {len(missing)}"
            )
        for start in range(0, len(missing), WAVE * world):
            wave = missing[start : start + WAVE * world]
            # The last wave repeats a unit where it must: sharded models need all processes in every forward.
            share = [wave[min(n, len(wave) - 1)] for n in range(rank, -(-len(wave) // world) * world, world)]
            done = _from_all({unit_keys[number]: score(self.units[number]) for number in share})
            bad = [key for key, pairs in done.items() if not torch.tensor(pairs).isfinite().all()]
            if bad:
                raise StageError(
                    f"the reference log-probabilities of {len(bad)} quartets are not finite; the base model cannot "
                    "compute them in this precision; try model.dtype=float32"
                )
            _from_main(functools.partial(store.put, done) if store else _nothing, rank)
            known |= done
        if store:
            store.close()
        flat = [known[key] for key in unit_keys]
        return torch.tensor([flat[unit][prompt] for unit, prompt in self.places.tolist()], dtype=torch.float32)

    def keys(self) -> list[str]:
        """Content key of each unit."""
        return [artifacts.fingerprint([self.context, unit.prompts, unit.chosen, unit.rejected]) for unit in self.units]


def plan(recipe: Recipe, resolved: ResolvedModel, rows: Any, prompts: Iterable[Sequence[Sequence[int]]]) -> Reference:
    """The reference of a run's rows, kept below the run's folder for all its arms and seeds."""
    path = recipe.root / FOLDER / "log_probs.sqlite"
    return Reference(path, context(recipe, resolved), *units_of(rows, prompts))


def _nothing() -> None:
    """What processes that have no store do with it."""


def _from_main(produce: Callable[[], Any], rank: int) -> Any:
    """What the main process makes of `produce`, on every process; its refusal on every process as well."""
    from accelerate.utils import broadcast_object_list

    outcome: list[Any] = [None, None]
    if rank == 0:
        try:
            outcome[0] = produce()
        except StageError as error:
            outcome[1] = str(error)
    value, refusal = broadcast_object_list(outcome)
    if refusal is not None:
        raise StageError(refusal)
    return value


def _from_all(share: dict[str, list[Pair]]) -> dict[str, list[Pair]]:
    """The union of what every process computed."""
    from accelerate.utils import gather_object

    return {key: pairs for part in gather_object([share]) for key, pairs in part.items()}
