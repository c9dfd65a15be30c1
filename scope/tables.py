"""Tables: the rows of a file of any kind, of a folder, or of a data set on the hub.

Every row comes with its place, `file:line`. A row that cannot be read comes as the sentence that
says so, `field: what was found; what to do`, and the rows after it are read all the same.
"""

import csv
import gzip
import io
import json
import re
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any

from pyarrow.lib import ArrowException

from scope.artifacts import Refusal

#: A row with its place, or the sentence that says what is wrong with it.
Row = tuple[str, dict[str, Any] | str]

#: Bytes of a line of JSON, of a JSON object or of a CSV row; a longer one is a fault.
MAX_ROW_BYTES = 1_000_000
#: Lists and objects inside one another; deeper JSON is a fault.
MAX_DEPTH = 50
KINDS = (".jsonl", ".json", ".csv", ".tsv", ".parquet")

_DELIMITERS = {".csv": ",", ".tsv": "\t"}
_HUB_ID = re.compile(r"(?P<id>[\w.-]+/[\w.-]+)(:(?P<name>[\w.-]+))?")


class TableError(Refusal, ValueError):
    """Bad rows or a bad file. `faults` holds one sentence each, `file:line: field: what, and what to do`."""

    def __init__(self, faults: Sequence[str]):
        self.faults = list(faults)
        shown = self.faults[:20]
        more = len(self.faults) - len(shown)
        super().__init__("\n".join(shown + ([f"... and {more} more faults"] if more else [])))


def kind(path: Path) -> str:
    """`.jsonl`, `.json`, `.csv`, `.tsv` or `.parquet` by the file's name, `.gz` aside; empty if it is none."""
    suffixes = [suffix.casefold() for suffix in path.suffixes[-2:]]
    if suffixes[-1:] == [".gz"]:
        return suffixes[0] if suffixes[0] in KINDS and suffixes[0] != ".parquet" else ""
    return suffixes[-1] if suffixes and suffixes[-1] in KINDS else ""


def rows_of(path_or_hub_id: str | Path, split: str | None = None, name: str | None = None) -> Iterator[Row]:
    """Yield (where, row or fault) of a file, of a data folder, or of a data set `owner/name` on the hub.

    split: of a folder or hub data set; None takes `train`, or the only one. name: the hub data set's
    configuration, which `owner/name:configuration` also says. A file has neither. TableError says
    what is wrong with the whole.
    """
    path = Path(path_or_hub_id)
    on_hub = None if path.exists() or kind(path) else _HUB_ID.fullmatch(str(path_or_hub_id))
    if on_hub:
        yield from _library_rows(on_hub["id"], split, name or on_hub["name"])
    elif path.is_dir():
        yield from _library_rows(str(path), split, name)
    elif path.exists():
        yield from read_rows(path)
    else:
        raise TableError([f"{path}:0: file: does not exist; build the pool or correct the path"])


def read_rows(path: Path) -> Iterator[Row]:
    """Yield (where, row or fault) of a `.jsonl`, `.json`, `.csv`, `.tsv` (each also `.gz`) or `.parquet` file.

    The cells of CSV and TSV are strings. Line numbers count the lines of a text file and the rows of
    a Parquet file, from 1. TableError says what is wrong with the whole file.
    """
    if not path.is_file():
        raise TableError([f"{path}:0: file: {'is a folder' if path.is_dir() else 'does not exist'}; name a file"])
    found = kind(path)
    if not found:
        raise TableError([f"{path}:0: file: is of no known kind; use {', '.join(KINDS)} (text also with .gz)"])
    try:
        if found == ".parquet":
            yield from _parquet_rows(path)
            return
        opener: Any = gzip.open if path.suffix.casefold() == ".gz" else open
        with opener(path, "rb") as file:
            if found == ".jsonl":
                yield from _jsonl_rows(path, file)
            elif found == ".json":
                yield from _json_rows(path, file.read())
            else:
                yield from _csv_rows(path, file, _DELIMITERS[found])
    except (OSError, EOFError, zlib.error, ArrowException) as error:
        raise TableError(
            [f"{path}:0: file: is damaged or unreadable ({_first_line(error)}); write it again"]
        ) from error


def _first_line(error: BaseException) -> str:
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)


def _too_long(size: int) -> str:
    return f"row: is {size:,} bytes; a row may have {MAX_ROW_BYTES:,}"


# ---------------------------------------------------------------- JSON


def _jsonl_rows(path: Path, file: IO[bytes]) -> Iterator[Row]:
    number = 0
    while raw := file.readline(MAX_ROW_BYTES + 2):
        number += 1
        size, last = len(raw), raw
        while not last.endswith(b"\n") and (last := file.readline(MAX_ROW_BYTES)):
            size += len(last)
        size -= last.endswith(b"\n")
        where = f"{path}:{number}"
        if size > MAX_ROW_BYTES:
            yield where, _too_long(size)
        elif raw.strip():
            yield where, _json_object(raw)


def _json_object(raw: bytes) -> dict[str, Any] | str:
    try:
        row = json.loads(raw)
    except UnicodeDecodeError:
        return "row: is not UTF-8; save the file as UTF-8"
    except (ValueError, RecursionError) as error:
        return f"row: is not valid JSON ({error}); write one object a line"
    return _flat(row, "write one object a line")


def _flat(row: Any, advice: str) -> dict[str, Any] | str:
    """The row, or what keeps it from being one."""
    if not isinstance(row, dict):
        return f"row: is not a JSON object; {advice}"
    layer: list[Any] = [row]
    for _ in range(MAX_DEPTH):
        layer = [inner for value in layer for inner in (value.values() if isinstance(value, dict) else value)]
        layer = [value for value in layer if isinstance(value, dict | list)]
        if not layer:
            return row
    return f"row: is nested more than {MAX_DEPTH} deep; write flat columns"


def _json_rows(path: Path, raw: bytes) -> Iterator[Row]:
    """The objects of one list. A file that starts with an object is read as JSON lines."""
    if raw.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{"):
        if b"\n" in raw.strip() and isinstance(_json_object(raw), dict):
            raise TableError([f"{path}:1: file: holds one object; write a list of objects, or one object a line"])
        yield from _jsonl_rows(path, io.BytesIO(raw))
        return
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise TableError([f"{path}:{line}: file: is not UTF-8; save the file as UTF-8"]) from error
    decoder = json.JSONDecoder()
    line, counted = 1, 0

    def after_space(at: int) -> int:
        while text[at : at + 1] in (" ", "\t", "\r", "\n"):
            at += 1
        return at

    def place(at: int) -> str:
        nonlocal line, counted
        line, counted = line + text.count("\n", counted, at), at
        return f"{path}:{line}"

    def expect(wanted: str, at: int) -> int:
        if text[at : at + 1] != wanted:
            found = f"{text[at : at + 20]!r}" if text[at:] else "the end"
            problem = f"is not valid JSON from here on (found {found}, not {wanted!r}); write a list of objects"
            raise TableError([f"{place(at)}: file: {problem}"])
        return after_space(at + 1)

    at = expect("[", after_space(0))
    more = text[at : at + 1] != "]"
    while more:
        where = place(at)
        try:
            row, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError) as error:
            problem = f"is not valid JSON from here on ({error}); write a list of objects"
            raise TableError([f"{where}: file: {problem}"]) from error
        size = len(text[at:end].encode("utf-8"))
        if size > MAX_ROW_BYTES:
            yield where, _too_long(size)
        else:
            yield where, _flat(row, "write a list of objects")
        at = after_space(end)
        more = text[at : at + 1] != "]"
        if more:
            at = expect(",", at)
    if text[at + 1 :].strip():
        raise TableError([f"{place(at)}: file: goes on after its list; write one list of objects"])


# ---------------------------------------------------------------- CSV


class _RowTooLong(Exception):
    """A CSV row of more than MAX_ROW_BYTES, read past."""


class _Lines:
    """A text file's lines as csv.reader takes them.

    `start` and `number` are the first and the last line of the row at hand, `size` its bytes so far.
    """

    def __init__(self, file: IO[str]):
        self.file, self.number = file, 0
        self.begin()

    def begin(self) -> None:
        """The next line is the first of a row."""
        self.start, self.size, self.quotes = self.number + 1, 0, 0

    def __iter__(self) -> "_Lines":
        return self

    def __next__(self) -> str:
        line = self._read(MAX_ROW_BYTES + 2)
        if not line:
            raise StopIteration
        self.number += 1
        if self.size - len(_line_end(line)) <= MAX_ROW_BYTES:
            return line
        # Read on to where the row ends: the first line end outside quotes.
        while line and not (_line_end(line) and self.quotes % 2 == 0):
            self.number += bool(_line_end(line))
            line = self._read(MAX_ROW_BYTES)
        self.size -= len(_line_end(line))
        raise _RowTooLong

    def _read(self, limit: int) -> str:
        line = self.file.readline(limit)
        self.size += len(line.encode("utf-8", "surrogateescape"))
        self.quotes += line.count('"')
        return line


def _line_end(line: str) -> str:
    return line[len(line.rstrip("\r\n")) :]


def _csv_rows(path: Path, file: IO[bytes], delimiter: str) -> Iterator[Row]:
    # The csv module's limit on a cell holds for the whole process; it is only ever raised.
    csv.field_size_limit(max(csv.field_size_limit(), MAX_ROW_BYTES))
    # Bytes that are not UTF-8 come as surrogates, so that they spoil their own row only.
    lines = _Lines(io.TextIOWrapper(file, "utf-8-sig", "surrogateescape", newline=""))
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    header: list[str] | None = None
    while True:
        lines.begin()
        try:
            cells = next(reader)
        except StopIteration:
            break
        except _RowTooLong:
            fault: str | None = _too_long(lines.size)
        except csv.Error as error:
            upto = f", up to line {lines.number}," if lines.number > lines.start else ""
            fault = f"row: is not valid CSV{upto} ({error}); close the quotes, and double those inside a quoted cell"
        else:
            if not cells:
                continue
            fault = _cells_fault(cells, header)
        where = f"{path}:{lines.start}"
        if header is not None:
            yield where, fault or dict(zip(header, cells, strict=True))
        elif fault:
            raise TableError([f"{where}: header: {fault.partition(': ')[2]}"])
        else:
            header = cells
    if header is None:
        raise TableError([f"{path}:0: file: is empty; write a header line and a line for each row"])


def _cells_fault(cells: list[str], header: list[str] | None) -> str | None:
    text = "".join(cells)
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return "row: is not UTF-8; save the file as UTF-8"
    if "\0" in text:
        return "row: holds a NUL byte; remove it, or save the file as UTF-8"
    if header is None:
        if not all(cell.strip() for cell in cells):
            return (
                f"header: column {1 + next(i for i, c in enumerate(cells) if not c.strip())} has no name; give it one"
            )
        if doubled := [cell for cell in cells if cells.count(cell) > 1]:
            return f"header: {doubled[0]!r} names two columns; give every column its own name"
    elif len(cells) != len(header):
        return f"row: has {len(cells)} cells, the header {len(header)}; quote cells that hold the delimiter"
    return None


# ---------------------------------------------------------------- Parquet


def _parquet_rows(path: Path) -> Iterator[Row]:
    import pyarrow.parquet as pq

    with pq.ParquetFile(path) as file:
        names = file.schema_arrow.names
        if doubled := [name for name in names if names.count(name) > 1]:
            problem = f"{doubled[0]!r} names two columns; give every column its own name"
            raise TableError([f"{path}:0: header: {problem}"])
        number = 0
        for batch in file.iter_batches(1000):
            for row in _plain(path, batch):
                number += 1
                yield f"{path}:{number}", row


def _plain(path: Path, batch: Any) -> Iterator[dict[str, Any] | str]:
    """A record batch as Python values, row by row where some are not UTF-8."""
    try:
        yield from batch.to_pylist(maps_as_pydicts="lossy")
        return
    except UnicodeDecodeError:
        pass
    except (ValueError, OverflowError) as error:
        problem = f"holds values that Python has no form for ({_first_line(error)}); write them as text"
        raise TableError([f"{path}:0: file: {problem}"]) from error
    for i in range(batch.num_rows):
        try:
            row = batch.slice(i, 1).to_pylist(maps_as_pydicts="lossy")[0]
        except UnicodeDecodeError:
            row = "row: is not UTF-8; save the text as UTF-8"
        yield row


# ---------------------------------------------------------------- folders and the hub


def _library_rows(source: str, split: str | None, name: str | None) -> Iterator[Row]:
    import datasets

    try:
        table: Any = datasets.load_dataset(source, name, split=split)
        if split is None:
            splits = list(table)
            if "train" not in splits and len(splits) > 1:
                raise TableError([f"{source}:0: split: none is named; name one of {', '.join(splits)}"])
            table = table["train" if "train" in splits else splits[0]]
        for number, row in enumerate(table, 1):
            yield f"{source}:{number}", dict(row)
    except TableError:
        raise
    except Exception as error:  # whatever the library's readers, the hub client and the network raise
        raise TableError([f"{source}:0: {_library_fault(source, split, name, error)}"]) from error


def _library_fault(source: str, split: str | None, name: str | None, error: Exception) -> str:
    said = " ".join(str(error).split())[:300].rstrip(" .") or type(error).__name__
    folded = said.casefold()
    if "split" in folded and split is not None:
        return f"split: {split!r} is not there ({said}); name one that is"
    if "config" in folded:
        return f"configuration: {name or 'none'} ({said}); write {source}:CONFIGURATION"
    if "gated" in folded or "authenticat" in folded or "401" in folded or "403" in folded:
        return f"data set: is gated or private ({said}); accept its terms on the hub and run: hf auth login"
    if isinstance(error, FileNotFoundError):
        return f"data set: was not found ({said}); correct the id, log in if it is private, or name a file"
    if isinstance(error, ConnectionError) or "offline" in folded:
        return f"data set: the hub cannot be reached ({said}); download the data set and name its file or folder"
    return f"data set: cannot be loaded ({type(error).__name__}: {said}); download it and name one of its files"
