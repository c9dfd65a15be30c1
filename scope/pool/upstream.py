"""Where public question sets are, and how their files and hub data sets are read. The sets: `sources.py`."""

import difflib
import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from scope.pool.drafts import Draft, Unusable, question_of, redistributable
from scope.pool.questions import PoolError, Question
from scope.tables import read_rows, rows_of

Row = Mapping[str, Any]

NOT_STATED = "not stated"
WHICH = ("train", "evaluation")
_ENDINGS = (".jsonl.gz", ".jsonl", ".parquet", ".csv")


@dataclass(frozen=True, slots=True)
class Source:
    """A public question set.

    splits: `train` and `evaluation` -> the upstream splits that may feed them. hub_splits: names that
    differ on the hub. columns: those a row must have, the question first. train_share: where both
    are fed by the same split, the per cent that a hash of the upstream id sends to `train`.
    """

    name: str
    hub_id: str
    configs: tuple[str, ...]
    splits: Mapping[str, tuple[str, ...]]
    columns: tuple[str, ...]
    license: str
    draft: Callable[[Row], Draft]
    topic: Callable[[Row], str]
    folder: str
    id_column: str = ""
    train_share: int | None = None
    hub_splits: Mapping[str, str] = field(default_factory=dict)

    @property
    def redistributable(self) -> bool | None:
        """Whether the licence lets the rows be handed on; None where it is not stated."""
        return redistributable(self.license)

    def read(self, row: Row, id: str, where: str = "") -> Question | str:
        """The row's Question, or the sentence that says why there is none. id: unique within the source."""
        try:
            return question_of(
                self.draft(row),
                source=self.name,
                upstream_id=f"{self.name}:{id}",
                topic=self.topic(row),
                license="" if self.license == NOT_STATED else self.license,
                where=where,
            )
        except Unusable as error:
            return str(error)


#: By name; `sources.py` fills it.
SOURCES: dict[str, Source] = {}


def source(
    name: str,
    hub_id: str,
    *,
    columns: Sequence[str],
    license: str,
    topic: str | Callable[[Row], str],
    train: Sequence[str],
    evaluation: Sequence[str],
    configs: Sequence[str] = ("",),
    folder: str = "",
    **more: Any,
) -> Callable[[Callable[[Row], Draft]], Callable[[Row], Draft]]:
    """Register a source; folder: of its files under the data folder, else its name."""

    def register(draft: Callable[[Row], Draft]) -> Callable[[Row], Draft]:
        SOURCES[name] = Source(
            name=name,
            hub_id=hub_id,
            configs=tuple(configs),
            splits={"train": tuple(train), "evaluation": tuple(evaluation)},
            columns=tuple(columns),
            license=license,
            draft=draft,
            topic=topic if callable(topic) else lambda row: topic,
            folder=folder or name,
            **more,
        )
        return draft

    return register


# ---------------------------------------------------------------- transfer sets


@dataclass(frozen=True, slots=True)
class Transfer:
    """An evaluation-only set. fields: its question texts, dots for nesting. hub_file: its file in the repository."""

    hub_id: str
    split: str
    fields: tuple[str, ...]
    hub_file: str = ""


#: Sets that models are tested on and that no pool may be trained on, by name and folder.
TRANSFER = {
    "gsm_ic": Transfer("voidful/GSM-IC", "test", ("new_question", "original_question")),
    "gsm_plus": Transfer("qintongli/GSM-Plus", "testmini", ("question", "seed_question")),
    "sycophancy_answer": Transfer("meg-tong/sycophancy-eval", "train", ("base.question",), "answer.jsonl"),
}


def transfer_rows(name: str, data_dir: str | Path | None = None) -> Iterator[tuple[str, Row | str]]:
    """(where, row or fault) of every row of a transfer set, from its file under a data folder or from the hub.

    Raises PoolError or TableError where there is no such file, or the hub does not give it.
    """
    found = TRANSFER[name]
    if data_dir:
        path = local_file(Path(data_dir), name, found.split)
        if path is None:
            raise PoolError(_absent(Path(data_dir), name, found.split))
        yield from read_rows(path)
    elif found.hub_file:
        yield from read_rows(_downloaded(found.hub_id, found.hub_file))
    else:
        yield from rows_of(found.hub_id, found.split)


def transfer_texts(name: str, data_dir: str | Path | None = None) -> list[str]:
    """The distinct question texts of a transfer set, in the order of its rows."""
    fields = TRANSFER[name].fields
    texts: dict[str, None] = {}
    columns: set[str] = set()
    for _, row in transfer_rows(name, data_dir):
        for path_in_row in fields if isinstance(row, dict) else ():
            columns |= set(row)
            value: Any = row
            for key in path_in_row.split("."):
                value = value.get(key) if isinstance(value, dict) else None
            if isinstance(value, str) and value.strip():
                texts[value] = None
    if not texts:
        raise PoolError(f"{name}: no row has the columns {', '.join(fields)}; found {_listed(columns)}")
    return list(texts)


def _downloaded(hub_id: str, file: str) -> Path:
    import huggingface_hub

    try:
        return Path(huggingface_hub.hf_hub_download(hub_id, file, repo_type="dataset"))
    except Exception as error:  # whatever the hub client and the network raise
        said = " ".join(str(error).split())[:200]
        raise PoolError(f"{hub_id}: {file} cannot be downloaded ({said}); download it and set data_dir") from error


# ---------------------------------------------------------------- reading


def read_source(
    source: str | Source, which: str, data_dir: str | Path | None = None
) -> tuple[list[Question], Counter[str]]:
    """A source's questions for `train` or `evaluation`, and how many rows were refused for which reason.

    data_dir: folder with `<set>/<split>.jsonl.gz` (or .jsonl, .parquet, .csv; a configuration may be a folder
    between them); without it the rows come from the hub. Raises PoolError for an unknown name, a missing file,
    no rows, or rows of another schema.
    """
    found = SOURCES.get(source) if isinstance(source, str) else source
    if found is None:
        near = difflib.get_close_matches(str(source), list(SOURCES), 3) or list(SOURCES)
        raise PoolError(f"unknown source {source!r}; did you mean {', '.join(near)}?")
    if which not in WHICH:
        raise PoolError(f"{which!r} is no pool; use {' or '.join(WHICH)}")
    questions: dict[str, Question] = {}
    reasons: Counter[str] = Counter()
    columns: set[str] = set()
    fits = False
    for where, place, row in _rows(found, which, Path(data_dir) if data_dir else None):
        if isinstance(row, str):
            reasons[row.partition(" (")[0]] += 1
            continue
        columns |= set(row)
        fits = fits or set(found.columns) <= set(row)
        id = _id(found, row, place)
        if found.train_share is not None and (_percentile(id) < found.train_share) != (which == "train"):
            continue
        read = found.read(row, id, where)
        if isinstance(read, str):
            reasons[read] += 1
        elif read.upstream_id in questions:
            reasons["id: stands twice; the first row is used"] += 1
        else:
            questions[read.upstream_id] = read
    if not columns:
        raise PoolError(f"{found.name}: no rows were found for {which}; {_first(reasons) or 'the files are empty'}")
    if not fits:
        missing = ", ".join(sorted(set(found.columns) - columns)) or "a row with all of them"
        raise PoolError(
            f"{found.name}: needs the columns {', '.join(found.columns)}; found {_listed(columns)}, not {missing}"
        )
    return list(questions.values()), reasons


def local_files(data_dir: Path, names: Iterable[str]) -> list[Path]:
    """The files under a data folder that hold the sources and transfer sets of these names."""
    paths = []
    for name in names:
        if name in TRANSFER:
            paths.append(local_file(data_dir, name, TRANSFER[name].split))
        elif name in SOURCES:
            each = SOURCES[name]
            splits = dict.fromkeys(split for which in WHICH for split in each.splits[which])
            paths += [_split_file(each, data_dir, config, split) for config in each.configs for split in splits]
    return [path for path in paths if path is not None]


def absent(name: str, which: str, data_dir: Path) -> str:
    """Which file a source or transfer set lacks under a data folder for `train` or `evaluation`; empty if none."""
    if name in TRANSFER:
        split = TRANSFER[name].split
        return "" if local_file(data_dir, name, split) else _absent(data_dir, name, split)
    found = SOURCES.get(name)
    needed = [(config, split) for config in found.configs for split in found.splits[which]] if found else []
    for config, split in needed:
        if found and _split_file(found, data_dir, config, split) is None:
            return _absent(data_dir, found.folder, split, config)
    return ""


def _rows(source: Source, which: str, data_dir: Path | None) -> Iterator[tuple[str, str, Row | str]]:
    """(file:line, split/number, row) of every row of the splits that feed `which`."""
    for config in source.configs:
        for split in source.splits[which]:
            label = "/".join([config, split] if len(source.configs) > 1 else [split])
            if data_dir is None:
                rows = rows_of(source.hub_id, source.hub_splits.get(split, split), config or None)
            else:
                path = _split_file(source, data_dir, config, split)
                if path is None:
                    raise PoolError(_absent(data_dir, source.folder, split, config))
                rows = read_rows(path)
            for number, (where, row) in enumerate(rows, 1):
                yield where, f"{label}/{number}", row


def _split_file(source: Source, data_dir: Path, config: str, split: str) -> Path | None:
    names = dict.fromkeys((split, source.hub_splits.get(split, split)))
    folders = [f"{source.folder}/{config}"] if config else []
    folders += [source.folder] if len(source.configs) == 1 else []
    return next((p for folder in folders for name in names if (p := local_file(data_dir, folder, name))), None)


def local_file(data_dir: Path, folder: str, split: str) -> Path | None:
    """The file that holds a split in a set's folder, whatever its kind; None if there is none."""
    paths = (data_dir / folder / f"{split}{ending}" for ending in _ENDINGS)
    return next((path for path in paths if path.is_file()), None)


def _absent(data_dir: Path, folder: str, split: str, config: str = "") -> str:
    place = data_dir / folder / config
    return f"{place}: holds no {split}.jsonl.gz (or .jsonl, .parquet, .csv); put the file there, or leave data_dir out"


def _id(source: Source, row: Row, place: str) -> str:
    """The row's own id, else its place and a hash of its question."""
    own = row.get(source.id_column) if source.id_column else None
    if isinstance(own, str | int) and str(own).strip():
        return " ".join(str(own).split())
    content = str(row.get(source.columns[0], ""))
    return f"{place}-{hashlib.sha256(content.encode('utf-8', 'replace')).hexdigest()[:8]}"


def _percentile(id: str) -> int:
    digest = hashlib.sha256(id.encode("utf-8", "replace")).digest()
    return int.from_bytes(digest[:8], "big") % 100


def _first(reasons: Mapping[str, int]) -> str:
    return next(iter(reasons), "")


def _listed(columns: Iterable[str]) -> str:
    return ", ".join(sorted(map(str, columns))[:40]) or "no columns"
