"""A suite's own tables beside its rates: a group a row of the panel, in it every system and their mean."""

from collections.abc import Mapping
from typing import Any

from scope.evaluation.suites import SUITES
from scope.report.markup import Cell, Group, Table
from scope.report.terminal import FEW, inside, interval, means, rate

Rates = Mapping[str, Mapping[str, Mapping[str, Any]]]


def tables(found: dict[str, Any], title: str, notes: list[str]) -> list[Table]:
    """One table a panel (MisleadQA, Tables 3, 4, 14 to 26). title, notes: of the suite's tables."""
    suite = SUITES[found["suite"]]
    every = next(iter(found["systems"].values())).get("panels", {})
    made = [
        Table(f"{suite.name}_{name}", f"{title}: {said}", *_body(found, name), [*_notes(found, name), *notes])
        for name, said in suite.panels_of.items()
        if every.get(name)
    ]
    for name, said in suite.across_of.items():
        if rows := found.get("across", {}).get(name):
            made.append(Table(f"{suite.name}_{name}", f"{title}: {said}", *_across(found, rows), list(notes)))
    return made


def numbers(found: dict[str, Any]) -> list[Any]:
    """All numbers of the panels and of the tables over all systems."""
    every = [*found["systems"].values(), *found.get("groups", {}).values(), found.get("mean", {})]
    return [*(own.get("panels", {}) for own in every), found.get("across", {})]


def _across(found: dict[str, Any], rows: Mapping[str, Mapping[str, Any]]) -> tuple[list[str], list[Group]]:
    """Of a table over all systems: a column a system, below each number its interval."""
    names = list(next(iter(rows.values())))
    groups = []
    for row, cells in rows.items():
        lines = [[_word(found, row), *(rate(dict(cells[name])) for name in names)]]
        lines.append(["", *(interval(dict(cells[name])) for name in names)])
        groups.append(Group([[Cell(text, muted=text.endswith(FEW)) for text in line] for line in lines]))
    return ["per cent", *names], groups


def _body(found: dict[str, Any], name: str) -> tuple[list[str], list[Group]]:
    first = next(iter(found["systems"].values()))["panels"][name]
    columns = list(next(iter(first.values()), {}))
    head = ["per cent", "n", *(_word(found, column) for column in columns)]
    groups = []
    for row in first:
        lines = []
        for called, place in _lines(found).items():
            own = inside(found, place)
            cells = own["panels"][name][row]
            size = next((cells[c]["n"] for c in columns if "n" in cells[c]), None)
            texts = [_text(cells[column], size) for column in columns]
            lines.append([called, "" if size is None else str(size), *texts])
            if called not in found["systems"] or name in SUITES[found["suite"]].robust:
                lines += _intervals(found, (*place, "panels", name, row), columns)
        groups.append(
            Group(
                [[Cell(text, muted=text.endswith(FEW)) for text in line] for line in lines],
                _heading(found, row, len(first)),
            )
        )
    return head, groups


def _lines(found: dict[str, Any]) -> dict[str, tuple[str, ...]]:
    """Every system, then the means of groups and of all where there are some -> where it stands."""
    return {**{name: ("systems", name) for name in found["systems"]}, **means(found)}


def _intervals(found: dict[str, Any], place: tuple[str, ...], columns: list[str]) -> list[list[str]]:
    """The intervals of the line that stands there, by each unit that its panel is resampled by."""
    lines = []
    for n, (unit, number) in enumerate(found.get("units", {"item": found["items"]}).items()):
        cells = inside(found, place if n == 0 else ("sensitivity", unit, *place))
        texts = [interval(cells[column], signed=False) if column in cells else "" for column in columns]
        if any(texts):
            lines.append([f"by {number} {unit}s", "", *texts])
    return lines


def _text(found: Mapping[str, Any], size: int | None) -> str:
    """A rate; with its counts where it is of other items than the line's n."""
    text = rate(dict(found))
    if "n" not in found or found["n"] == size:
        return text
    return f"{text} ({found['events']}/{found['n']})" if found["n"] else "–"


def _notes(found: dict[str, Any], name: str) -> list[str]:
    """What n is, where anything has one."""
    every = next(iter(found["systems"].values()))["panels"][name]
    if not any("n" in cell for row in every.values() for cell in row.values()):
        return []
    return ["n: answers that the first rate of a line is of; rates of other answers have their counts beside them."]


def _word(found: dict[str, Any], name: str) -> str:
    suite = SUITES[found["suite"]]
    return suite.words.get(name) or suite.headings.get(name) or name.replace("_", " ")


def _heading(found: dict[str, Any], row: str, rows: int) -> str:
    return _word(found, row) if rows > 1 else ""
