"""How far two judges agree, or a judge and people: share of equal verdicts, and Cohen's kappa."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scope.artifacts import Refusal
from scope.kappa import kappa
from scope.tables import TableError, read_rows

COLUMNS = ("correct", "follows")
#: What people write into a table for true, false and no verdict.
_WRITTEN = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False, "": None}

#: (system, item id) -> verdict (None: there is none), and the content key of the judged answer where it is known.
Verdicts = dict[tuple[str, str], tuple[bool | None, str | None]]


@dataclass(frozen=True, slots=True)
class Agreement:
    """n: pairs with both verdicts. both_true, only_a, only_b, both_false: their counts, adding up to n.

    share: of equal verdicts; None for n = 0. kappa: Cohen's, in [-1, 1]; None where it is undefined, that is for
    n = 0 and where both always say the same one thing.
    """

    n: int
    both_true: int
    only_a: int
    only_b: int
    both_false: int
    share: float | None
    kappa: float | None


def agreement(a: Sequence[bool | None], b: Sequence[bool | None]) -> Agreement:
    """The agreement of two lists of verdicts on the same answers; a pair with a None is left out.

    Raises ValueError for lists of different lengths.
    """
    pairs = [(bool(x), bool(y)) for x, y in zip(a, b, strict=True) if x is not None and y is not None]
    both, only_a, only_b, neither = (
        pairs.count(p) for p in ((True, True), (True, False), (False, True), (False, False))
    )
    n = len(pairs)
    beyond = kappa([x for x, _ in pairs], [y for _, y in pairs])
    return Agreement(n, both, only_a, only_b, neither, (both + neither) / n if n else None, beyond)


def read(path: Path, column: str) -> Verdicts:
    """The verdicts of an outcome table (a suite's folder, or a Parquet file) or of a table that people filled in.

    Columns: `item_id`, `column`, and `system` where there is more than one. Raises TableError naming the bad rows.
    """
    file = path / "outcomes.parquet" if path.is_dir() else path
    found: Verdicts = {}
    faults: list[str] = []
    for where, row in read_rows(file):
        try:
            key, verdict = _verdict(row, column)
            if key in found:
                raise ValueError(f"item_id: {key[1]!r} stands twice for system {key[0]!r}; keep one of the rows")
            found[key] = verdict
        except ValueError as error:
            faults.append(f"{where}: {error}")
    if faults:
        raise TableError(faults)
    return found


def _verdict(row: dict[str, Any] | str, column: str) -> tuple[tuple[str, str], tuple[bool | None, str | None]]:
    if isinstance(row, str):
        raise ValueError(row)
    for name in ("item_id", column):
        if name not in row:
            raise ValueError(f"{name}: there is no such column; found {', '.join(row)}")
    value = row[column]
    if isinstance(value, str):
        if value.strip().casefold() not in _WRITTEN:
            raise ValueError(f"{column}: {value[:40]!r} is no verdict; write true, false or nothing")
        value = _WRITTEN[value.strip().casefold()]
    elif value is not None and value not in (0, 1):
        raise ValueError(f"{column}: {value!r:.40} is no verdict; write true, false or nothing")
    verdict = None if value is None else bool(value)
    return (str(row.get("system") or ""), str(row["item_id"])), (verdict, row.get("request_id"))


def compared(a: Verdicts, b: Verdicts) -> tuple[Agreement, int]:
    """(agreement on the answers that both tables have, how many of those lack a verdict in either).

    A table without systems is taken to be of the one system that the other has. Raises Refusal where no answer is
    in both, or the tables hold different answers to the same question.
    """
    a, b = _with_system(a, b), _with_system(b, a)
    common = sorted(a.keys() & b.keys())
    if not common:
        raise Refusal(f"the tables have no answer in common: {_some(a)} there, {_some(b)} here; see to the item ids")
    others = [key for key in common if a[key][1] and b[key][1] and a[key][1] != b[key][1]]
    if others:
        system, item = others[0]
        raise Refusal(
            f"{len(others)} of {len(common)} answers differ between the tables (the first: item {item}, system "
            f"{system}); copy the run's folder, and evaluate there with another judge.model alone"
        )
    found = agreement([a[key][0] for key in common], [b[key][0] for key in common])
    return found, len(common) - found.n


def _with_system(own: Verdicts, other: Verdicts) -> Verdicts:
    systems = {system for system, _ in other}
    if {system for system, _ in own} == {""} and len(systems) == 1:
        (only,) = systems
        return {(only, item): verdict for (_, item), verdict in own.items()}
    return own


def _some(verdicts: Iterable[tuple[str, str]]) -> str:
    return next((f"item {item!r} of system {system!r}" for system, item in verdicts), "no row")


def as_text(found: Agreement, without: int, column: str) -> str:
    """The agreement for a terminal."""
    share = "undefined" if found.share is None else f"{100 * found.share:.1f} %"
    beyond = "undefined" if found.kappa is None else f"{found.kappa:.3f}"
    return (
        f"{column}: n {found.n}, agreement {share}, kappa {beyond}\n"
        f"both true {found.both_true}, only A {found.only_a}, only B {found.only_b}, both false {found.both_false}; "
        f"left out for want of a verdict: {without}"
    )
