"""What every source of MisleadQA hands over: pairs of facts with everything an item needs but its letters.

Numbers from the paper say where they stand; those marked *ours* are choices of this project.
"""

import string
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from scope.artifacts import fingerprint
from scope.pool.questions import PoolError
from scope.pool.upstream import local_file
from scope.tables import read_rows, rows_of

#: Reason -> how many questions or pairs were left out for it.
Counts = dict[str, int]


@dataclass(frozen=True, slots=True)
class Fact:
    """A value of an attribute at a scope, as a source supports it.

    scope: qualifier -> text. spellings: other expressions of the value that the source has. where: file and row.
    document: what the fact was read from; items that share documents depend on one another.
    """

    value: str
    scope: Mapping[str, str]
    where: Mapping[str, str]
    document: str
    spellings: tuple[str, ...] = ()

    def provenance(self) -> dict[str, Any]:
        found: dict[str, Any] = {
            "value": self.value,
            "document": self.document,
            **self.where,
            "scope": dict(self.scope),
        }
        return {**found, "spellings": list(self.spellings)} if self.spellings else found


@dataclass(frozen=True, slots=True)
class Candidate:
    """An item before selection: its facts and texts, without F and option letters.

    distractors: facts that may serve, in tiers, the best first; the builder takes two, in an order of hashes within a
    tier. attribute: what is asked for, the scope's
    dimension aside; with `gold.scope` it is the target fact. method: how g and s were worded: `template`,
    `extraction` or `restatement`.
    """

    source: str
    dimension: str
    question: str
    g: str
    s: str
    gold: Fact
    lure: Fact
    distractors: tuple[Sequence[Fact], ...]
    attribute: str
    cluster: str
    question_type: str
    license: str
    method: str
    split: str = "main"

    @property
    def rank(self) -> str:
        """A hash of the pair; candidates are taken in its order, so that none is preferred."""
        return fingerprint([self.source, self.dimension, self.question, self.g, self.s])

    @property
    def target_fact(self) -> tuple[str, str, str]:
        """What may not be asked twice."""
        return self.source, self.attribute.casefold(), self._known_by(self.gold)

    @property
    def pair(self) -> tuple[str, str, frozenset[str]]:
        """The same for a pair of facts and its reverse."""
        both = frozenset(self._known_by(fact) for fact in (self.gold, self.lure))
        return self.source, self.attribute.casefold(), both

    def _known_by(self, fact: Fact) -> str:
        """A fact by its scope; where a value holds for a while and rows sample dates of it, by the value."""
        sampled = self.source == "situatedqa" and self.dimension == "time"
        return fact.value if sampled else fingerprint({name: text.casefold() for name, text in fact.scope.items()})


@dataclass(frozen=True, slots=True)
class Rules:
    """What the items of a source must keep to.

    words: fewest and most words of a context; ratio, difference: between an item's longest and shortest context.
    per_cluster, per_type: most items of a cluster or question type in one dimension; 0: no cap.
    """

    words: tuple[int, int] = (5, 115)
    ratio: float = 1.35
    difference: int = 25
    per_cluster: int = 0
    per_type: int = 0


#: Word limits, ratio and difference are the paper's for SituatedQA (App. A.1) and *ours* for the others; the caps are
#: the paper's.
RULES = {
    "minimum_wage": Rules(per_cluster=6),
    "situatedqa": Rules(words=(7, 115), per_cluster=2, per_type=20),
    # Sentences of documents vary more in length than restatements do.
    "ambigdocs": Rules(words=(6, 115), ratio=2.0, per_cluster=1),
    "condambigqa": Rules(words=(6, 115), ratio=2.0, per_cluster=3),
}


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a source's rows are. splits: (configuration, split) of each of its tables."""

    name: str
    folder: str
    hub_id: str
    splits: tuple[tuple[str, str], ...]
    candidates: Callable[[list["Table"], "Wording"], tuple[list[Candidate], Counts]] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Table:
    """A configuration and split with its rows, each with its place `folder/file:line`."""

    config: str
    split: str
    rows: list[tuple[str, dict[str, Any]]]


def read_tables(origin: Origin, data_dir: str | Path | None) -> tuple[list[Table], Counts]:
    """The rows of a source, from its files under a data folder or from the hub, and how many cannot be read.

    Raises PoolError where the rows are in neither.
    """
    tables, unread = [], 0
    for config, split in origin.splits:
        rows = []
        for place, row in _rows(origin, config, split, Path(data_dir) if data_dir else None):
            if isinstance(row, str):
                unread += 1
            else:
                rows.append((place, row))
        tables.append(Table(config, split, rows))
    if not any(table.rows for table in tables):
        raise PoolError(f"{origin.name}: has no rows; put its files under data_dir/{origin.folder}, or leave it out")
    return tables, {"row: cannot be read": unread} if unread else {}


def _rows(origin: Origin, config: str, split: str, data_dir: Path | None) -> Iterator[tuple[str, Any]]:
    if data_dir is None:
        if not origin.hub_id:
            raise PoolError(f"{origin.name}: is on no hub; set data_dir, or leave it out of release.sources")
        for place, row in rows_of(origin.hub_id, split, config or None):
            yield f"{origin.hub_id}/{config}/{split}:{place.rpartition(':')[2]}", row
        return
    folder = f"{origin.folder}/{config}".rstrip("/")
    path = local_file(data_dir, folder, split)
    if path is None:
        raise PoolError(f"{data_dir / folder}: holds no {split}.jsonl.gz (or .jsonl, .parquet, .csv); put it there")
    for place, row in read_rows(path):
        yield f"{folder}/{path.name}:{place.rpartition(':')[2]}", row


class Wording:
    """The texts of `wording.toml` or of a file in its place: section -> name -> template with $slots."""

    def __init__(self, path: Path):
        self.path = path
        try:
            self.sections = tomllib.loads(path.read_text("utf-8"))
        except (OSError, ValueError) as error:
            raise PoolError(
                f"{path}: the wording cannot be read ({error}); correct the file or release.wording"
            ) from error

    def __call__(self, section: str, name: str, **slots: str) -> str:
        """A template filled in, its first letter a capital."""
        try:
            text = string.Template(self.sections[section][name]).substitute(slots)
        except KeyError as error:
            raise PoolError(f"{self.path}: [{section}] {name}: lacks {error}; write it as wording.toml does") from error
        return text[:1].upper() + text[1:]


def counted(reasons: Iterable[str]) -> Counts:
    found: Counts = {}
    for reason in reasons:
        found[reason] = found.get(reason, 0) + 1
    return found
