"""What the transfer suites share: rows of a public set that nothing is trained on -> a seeded sample of items.

An item's id is a hash of what makes it (question, gold answer, ...), so rows that say the same are one item, and an
item is the same one in a part of the set and in the whole. The sample is the beginning of one seeded order of all
items: fewer items are a part of more, and `limit=` takes a sample too.
"""

import dataclasses
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from scope.answers import is_correct, parse_answer
from scope.artifacts import StageError, fingerprint
from scope.evaluation.paired import Column, Rate, accuracy_ratio, complete, mcnemar
from scope.evaluation.suites.base import Loaded, Row, Suite, content_hash, graded, refuse_trained
from scope.items import Completion
from scope.pool.upstream import transfer_rows
from scope.prompts import INSTRUCTIONS
from scope.recipe import Recipe
from scope.tables import TableError, rows_of


class LeftOut(Exception):
    """A row that is as it should be, but no item; the message says why, as it is counted."""


class Transfer(Suite):
    """A sample of a public set. Subclasses write `item`, and what any suite writes but `load`.

    upstream: the set's name in `scope.pool.upstream.TRANSFER`, and of its folder below `data_dir`.
    """

    upstream: ClassVar[str]

    def item(self, row: Mapping[str, Any]) -> Any:
        """A row's item. Raises LeftOut, or ValueError with `field: what was found; what to do`."""
        raise NotImplementedError

    def load(self, recipe: Recipe) -> Loaded:
        """`evaluation.transfer_items` items in seeded order, 0 for all; TableError names every bad row."""
        items: dict[str, Any] = {}
        faults: list[str] = []
        left_out: Counter[str] = Counter()
        n_rows = 0
        for where, row in self._rows(recipe):
            n_rows += 1
            try:
                if isinstance(row, str):
                    raise ValueError(row)
                item = self.item(row)
                if item.id in items:
                    raise LeftOut("equal to an earlier row")
                items[item.id] = item
            except LeftOut as reason:
                left_out[str(reason)] += 1
            except ValueError as fault:
                faults.append(f"{where}: {fault}")
        if faults:
            raise TableError(faults)
        if not items:
            raise StageError(f"{self.name}: none of the {n_rows} rows can be asked; give the set's own file")
        ordered = sorted(items.values(), key=lambda item: fingerprint([recipe.pool_seed, item.id]))
        drawn = ordered[: recipe.evaluation.transfer_items or None]
        facts = {
            "rows in the set": n_rows,
            **{f"rows left out, {reason}": count for reason, count in sorted(left_out.items())},
            "items to draw from": len(items),
            "items drawn": len(drawn),
        }
        return Loaded(drawn, content_hash(self, drawn), facts)

    def _rows(self, recipe: Recipe) -> Iterator[tuple[str, Mapping[str, Any] | str]]:
        if own := recipe.evaluation.items.get(self.name):
            yield from rows_of(own)
            return
        try:
            yield from transfer_rows(self.upstream, recipe.data_dir)
        except TableError as error:
            if recipe.data_dir:
                raise
            here = f"set data_dir to a folder that holds {self.upstream}/, or evaluation.items.{self.name} to a file"
            raise TableError([f"{error}; {here}"]) from error

    def check_held_out(self, recipe: Recipe, items: Sequence[Any]) -> None:
        """Refuse items whose question the trained model has seen."""
        refuse_trained(
            self, recipe, set(), items, f"build the pool with pool.exclude=[{self.upstream}], mine and train again"
        )


class Problems(Transfer):
    """Word problems with a number for an answer, each asked once. Metric: accuracy (exact match of the number)."""

    cells = ("answer",)
    headings: ClassVar = {"accuracy": "Accuracy"}

    def prompt(self, item: Any, cell: str) -> str:
        return f"{INSTRUCTIONS['numeric']}\n\n{item.question}"

    def outcome(self, item: Any, cell: str, completion: Completion) -> Row:
        return graded(completion, "numeric", item.gold)

    def rates(self, items: Sequence[Any], rows: Mapping[str, Sequence[Row]]) -> dict[str, Rate]:
        truth = _answered(rows)
        return {"accuracy": accuracy_ratio(truth, present=complete(truth))}

    def against(self, base: Mapping[str, Sequence[Row]], rows: Mapping[str, Sequence[Row]]) -> dict[str, Any]:
        """McNemar's test on the items that both answered."""
        return {"mcnemar": {"accuracy": tested(_answered(base), _answered(rows))}}


def _answered(rows: Mapping[str, Sequence[Row]]) -> list[bool | None]:
    """Which items are right; None where the request failed."""
    return [None if row["label"] == "failed" else row["label"] == "right" for row in rows["answer"]]


def tested(a: Column, b: Column) -> dict[str, Any]:
    """McNemar's test of two systems on the items that neither misses, plain data."""
    return dataclasses.asdict(mcnemar(a, b, present=complete(a, b)))


# ---------------------------------------------------------------- reading a row


def text(row: Mapping[str, Any], name: str) -> str:
    """A field's text, as it stands; dots in the name lead into nested objects. ValueError where there is none."""
    value: Any = row
    for key in name.split("."):
        value = value.get(key) if isinstance(value, Mapping) else None
    if value is None:
        raise ValueError(f"{name}: is missing; give the set in the schema that it has on the hub")
    if not isinstance(value, str):
        raise ValueError(f"{name}: is {type(value).__name__} {value!r:.40}, not text; write it as a string")
    if not value.strip():
        raise ValueError(f"{name}: is empty; every row needs it")
    try:
        value.encode("utf-8")
    except UnicodeEncodeError as error:
        raise ValueError(f"{name}: holds a lone surrogate, which is not text; save the file as UTF-8") from error
    return value


def numeric_gold(row: Mapping[str, Any], name: str = "answer", kind: str = "") -> str:
    """A row's gold answer, a number written in any way that answers are read. kind: named where a row is left out."""
    if name not in row:
        raise ValueError(f"{name}: is missing; give the set in the schema that it has on the hub")
    gold = str(row[name]).strip()
    try:
        readable = is_correct(parse_answer(gold, "numeric"), gold, "numeric")
    except ValueError:
        readable = False
    if not readable:
        raise LeftOut("without a numeric answer" + (f" ({kind})" if kind else ""))
    return gold


def item_id(suite: str, *parts: str) -> str:
    """The id of what these texts make up; 64 bits of a hash."""
    return f"{suite}:{fingerprint(list(parts))[:16]}"
