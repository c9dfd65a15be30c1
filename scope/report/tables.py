"""The paper's tables from results: rates, transfer suites side by side, differences, and slices."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from scope.evaluation.suites import SUITES
from scope.report import panels, published, seeds
from scope.report.lines import PUBLISHED, Line, best, measured
from scope.report.markup import Cell, Group, Table
from scope.report.terminal import (
    FEW,
    better,
    details,
    difference,
    drawn,
    inference,
    intervals,
    is_few,
    mean_rows,
    notes,
    paired_lines,
    rate,
    resamples,
    shown,
    strata,
)

#: Suites that stand together in one table (Table 2); every other suite has one of its own.
TRANSFER = ("gsm_ic", "gsm_plus", "sycophancy")
NONE = "–"


def tables(results: Mapping[str, dict[str, Any]], with_published: bool = False) -> list[Table]:
    """Every table there is data for. results: suite -> `compare`'s results."""
    made = []
    for name, found in results.items():
        if name not in TRANSFER:
            below = [f"Per cent ± bootstrap sd; {drawn(found)}.", *inference(found), *intervals(panels.numbers(found))]
            made += [rates(found, with_published), *panels.tables(found, title(found), below)]
    made += [table for found in results.values() for table in seeds.tables(found)]
    if moved := {name: found for name, found in results.items() if name in TRANSFER}:
        made.append(transfer(moved, with_published))
    made += [differences(found, with_published) for found in results.values() if found["differences"]]
    made += [slices(found, with_published) for found in results.values() if found["slices"]]
    return made


def rates(found: dict[str, Any], with_published: bool = False) -> Table:
    """A row a system, a column a metric (Table 1)."""
    suite = SUITES[found["suite"]]
    columns = [(metric, metric in suite.lower_is_better) for metric in suite.headings]
    ranked = _ranked(measured(found), columns, suite.primary)
    groups = [Group(_with_details(ranked, [details(suite, system) for system in found["systems"].values()]))]
    if rows := mean_rows(found):
        groups.append(Group([cells(row) for row in rows]))
    if with_published:
        groups.append(_published(published.lines(suite.name, 1), columns))
    head = ["per cent", *(heading(suite, metric) for metric in suite.headings)]
    for at, (named, key) in enumerate(strata(found).items(), start=1):
        head.insert(at, named)
        sizes = {name: str(system["strata"][key]) for name, system in found["systems"].items()}
        for place, group in enumerate(groups):
            for row in group.rows:
                row.insert(at, Cell(sizes.get(row[0].text, "") if place == 0 else ""))
    return Table(
        f"{suite.name}_rates",
        title(found),
        head,
        groups,
        [*legend(found, False), *source(found, with_published, "Table 1")],
    )


def transfer(results: Mapping[str, dict[str, Any]], with_published: bool = False) -> Table:
    """The transfer suites side by side, metrics called SUITE.METRIC (Table 2)."""
    suites = [SUITES[name] for name in results]
    columns = [(f"{s.name}.{metric}", metric in s.lower_is_better) for s in suites for metric in s.headings]
    lines = transfer_lines(results)
    below = [_transfer_details(results, line.name) for line in lines]
    groups = [Group(_with_details(_ranked(lines, columns), below))]
    if with_published:
        groups.append(_published(published_transfer(list(results)), columns))
    head = ["per cent", *(f"{s.title}: {heading(s, metric)}" for s in suites for metric in s.headings)]
    model = next(iter(results.values()))["model"]
    said = {name: [*legend(found, False), *source(found, with_published, "Table 2")] for name, found in results.items()}
    notes = [f"{SUITES[name].title}: {line}" for name, lines in said.items() for line in lines]
    return Table("transfer", f"Transfer suites, {model}", head, groups, notes)


def _transfer_details(results: Mapping[str, dict[str, Any]], name: str) -> list[list[str]]:
    """A system's details of all transfer suites, one line a label."""
    columns = [(suite, metric) for suite in results for metric in SUITES[suite].headings]
    lines: dict[str, dict[tuple[str, str], str]] = {}
    for suite, found in results.items():
        for label, *texts in details(SUITES[suite], found["systems"][name]) if name in found["systems"] else []:
            metrics = ((suite, metric) for metric in SUITES[suite].headings)
            lines.setdefault(label, {}).update(zip(metrics, texts, strict=True))
    return [[label, *(texts.get(column, "") for column in columns)] for label, texts in lines.items()]


def transfer_lines(results: Mapping[str, dict[str, Any]]) -> list[Line]:
    """One line a system of any of the suites, its metrics called SUITE.METRIC."""
    return _joined({name: measured(found) for name, found in results.items()})


def published_transfer(suites: Sequence[str]) -> list[Line]:
    """The same of Table 2."""
    return _joined({name: published.lines(name, 2) for name in suites})


def differences(found: dict[str, Any], with_published: bool = False) -> Table:
    """Every system's paired difference to the reference, with interval and McNemar's p (Table 3 and beyond)."""
    suite, against = SUITES[found["suite"]], found["against"]
    reference = found["systems"][against]["rates"]
    groups = [Group([cells([against, *(rate(reference[metric]) for metric in suite.headings)])])]
    groups += [Group([cells(row) for row in rows]) for rows in paired_rows(found)]
    below = list(legend(found))
    if with_published and (rows := _published_differences(suite, against)):
        groups.append(Group(rows, f"{PUBLISHED}: Qwen3-4B"))
        below += [
            *source(found, True, "Tables 1 and 3"),
            "Published differences are of the printed figures and have no interval.",
        ]
    head = ["points", *(heading(suite, metric) for metric in suite.headings)]
    return Table(f"{suite.name}_differences", f"{title(found)}: differences to {against}", head, groups, below)


def slices(found: dict[str, Any], with_published: bool = False) -> Table:
    """One metric by slice, a column a system (Table 4)."""
    suite, metric = SUITES[found["suite"]], slice_metric(found["suite"])
    shown = {(column, value) for column, values in found["slices"].items() for value in values}
    others = {n: known for n, known in published.slices(suite.name).items() if with_published and shown & known.keys()}
    groups = []
    for column, values in found["slices"].items():
        rows = []
        for value, part in values.items():
            texts = [rate(system[metric]) for system in part["systems"].values()]
            texts += [_text(known.get((column, value))) for known in others.values()]
            rows.append(cells([value, str(part["items"]), *texts]))
        groups.append(Group(rows, column.replace("_", " ")))
    named = f"{heading(suite, metric)} by slice, {title(found)}"
    head = ["per cent", "items", *found["systems"], *(f"{name} (published)" for name in others)]
    below = [*legend(found, False), *_slice_notes(found, metric), *source(found, with_published, "Table 4")]
    return Table(f"{suite.name}_slices", named, head, groups, below)


def _slice_notes(found: dict[str, Any], metric: str) -> list[str]:
    """What intervals and marks there are in the slices, where the table of rates did not say it already."""
    parts = [part for values in found["slices"].values() for part in values.values()]
    said = intervals(shown(found))
    return [
        one for one in intervals([s[metric] for part in parts for s in part["systems"].values()]) if one not in said
    ]


# ---------------------------------------------------------------- parts


def heading(suite: Any, metric: str) -> str:
    """A metric's column heading, marked where less is better."""
    return suite.headings[metric] + " ↓" * (metric in suite.lower_is_better)


def slice_metric(suite: str) -> str:
    """The metric that a suite is broken down by: its own choice, SC2W where it has one, else its first."""
    headings = SUITES[suite].headings
    return SUITES[suite].sliced or ("sc2w" if "sc2w" in headings else next(iter(headings)))


def title(found: dict[str, Any]) -> str:
    return f"{SUITES[found['suite']].title}: {found['items']} items, {found['model']}"


def legend(found: dict[str, Any], paired: bool = True) -> list[str]:
    """What the numbers are, and every note, a line each. paired: whether differences are among them."""
    suite = SUITES[found["suite"]]
    tested = any("mcnemar" in other for other in found["differences"].values())
    first = f"Per cent ± bootstrap sd; {drawn(found)}."
    if paired:
        first = (
            f"Per cent ± bootstrap sd. [low, high]: {100 * found['level']:g} % interval of the paired difference to "
            f"{found['against']}; {resamples(found)} shared by all systems."
            + " McNemar p: exact, of one cell, not corrected for the number of comparisons."
            * tested
        )
    return [first + better(suite), *notes(found), *found["notes"]]


def paired_rows(found: dict[str, Any]) -> list[list[list[str]]]:
    """For each system but the reference: its rows of difference, interval and, where it was made, McNemar's test.

    Where answers are read flexibly too, that reading's difference and interval come last.
    """
    metrics = SUITES[found["suite"]].headings
    groups = []
    for name, other in found["differences"].items():
        tests = other.get("mcnemar", {})
        rows = paired_lines(SUITES[found["suite"]], f"{name} - {found['against']}", other)
        if tests:
            rows.insert(2, ["McNemar p", *(p_value(other, m) for m in metrics)])
        groups.append(rows)
    return groups


def p_value(paired: dict[str, Any], metric: str) -> str:
    """McNemar's p of a cell; empty where the metric is none, or is withheld and so is its test."""
    if metric not in paired["mcnemar"] or paired["rates"][metric].get("withheld"):
        return ""
    return f"{paired['mcnemar'][metric]['p_value']:.2g}"


def _joined(by_suite: Mapping[str, Sequence[Line]]) -> list[Line]:
    together: dict[str, Line] = {}
    for suite, lines in by_suite.items():
        for line in lines:
            before = together[line.name].rates if line.name in together else {}
            own = {f"{suite}.{metric}": found for metric, found in line.rates.items()}
            together[line.name] = replace(line, rates={**before, **own})
    return list(together.values())


def _ranked(
    lines: Sequence[Line], columns: Sequence[tuple[str, bool]], unranked: Iterable[str] = ()
) -> list[list[Cell]]:
    """A row a line, the best of each column in bold but of `unranked`. columns: metric, whether less is better."""
    first = {metric: best([_claimed(line.rates.get(metric)) for line in lines], lower) for metric, lower in columns}
    first |= {metric: set() for metric in unranked}
    return [
        [
            Cell(line.name),
            *(Cell(_text(own := line.rates.get(m)), n in first[m], muted=is_few(own)) for m, _ in columns),
        ]
        for n, line in enumerate(lines)
    ]


def _claimed(found: Any) -> Any:
    """A rate that may be the best of its column; None if it is of few items."""
    return None if is_few(found) else found


def _with_details(rows: list[list[Cell]], below: Sequence[Sequence[Sequence[str]]]) -> list[list[Cell]]:
    """Each row, and after it the lines that stand below it."""
    return [line for row, lines in zip(rows, below, strict=True) for line in (row, *map(cells, lines))]


def cells(texts: Iterable[str]) -> list[Cell]:
    """Texts as cells: those that are marked as of few items are muted."""
    return [Cell(text, muted=text.endswith(FEW)) for text in texts]


def _published(lines: Sequence[Line], columns: Sequence[tuple[str, bool]]) -> Group:
    """Published lines as rows of their own, never ranked among the measured ones."""
    named = [replace(line, name=f"{line.name} (published)") for line in lines]
    return Group([[replace(cell, bold=False) for cell in row] for row in _ranked(named, columns)], PUBLISHED)


def _text(found: Any) -> str:
    return NONE if found is None else rate(found)


def _published_differences(suite: Any, against: str) -> list[list[Cell]]:
    """Qwen3-4B's arms minus the arm that the reference is called by (Tables 1 and 3); nothing where there is none."""
    arms = {line.method: line for line in published.lines(suite.name, 1) if line.model == "Qwen3-4B"}
    arms |= {line.method: line for line in published.lines(suite.name, 3)}
    if against not in arms:
        return []
    rows = []
    for method, line in arms.items():
        if method != against:
            points = [
                difference({"estimate": line.rates[m]["estimate"] - arms[against].rates[m]["estimate"]})
                for m in suite.headings
            ]
            rows.append([Cell(f"{method} - {against} (published)"), *map(Cell, points)])
    return rows


def source(found: dict[str, Any], with_published: bool, where: str) -> list[str]:
    """Where published numbers come from, if there are any: which of the paper's tables, and what it is of."""
    if not with_published:
        return []
    items = published.ITEMS.get(found["suite"], "300 items of a suite")
    return [f"{PUBLISHED}: {published.SOURCE}, {where}, {items}; to be compared only with results on the same items."]
