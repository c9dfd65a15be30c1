"""Outcomes -> results: rates with intervals, paired differences, labels, slices. `docs/results.md` has the schema.

Rates are fractions, an undefined rate is null, intervals are [low, high] at `level`.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from scope.evaluation.bootstrap import Interval, bonferroni, bootstrap_all
from scope.evaluation.paired import Rate, mean_of, restricted, support, taken
from scope.evaluation.proportions import counts, guarded, of_clusters, small
from scope.evaluation.suites.base import Draws, Row, Suite, flexibly

REFERENCE = "base"
#: results.json's `schema`; it changes when a key changes its meaning or goes.
SCHEMA = 2
#: Where a number stands in results.json: the keys that lead to it.
Place = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Settings:
    """How rates become intervals.

    complete_only: leave out items of which any request failed, in all systems. groups: system -> group that it is
    averaged in as well.
    """

    level: float = 0.95
    replicates: int = 10_000
    seed: int = 0
    complete_only: bool = False
    reference: str = REFERENCE
    groups: Mapping[str, str] = field(default_factory=dict)


def missing_from_groups(suite: Suite, groups: Mapping[str, str], systems: Collection[str]) -> list[str]:
    """A sentence where `groups` names systems that are not there; none where the suite has no mean."""
    absent = [name for name in groups if name not in systems]
    if not (suite.averaged and absent):
        return []
    return [f"evaluation.groups names {', '.join(absent)}, none of the systems here: {', '.join(systems)}"]


def results(suite: Suite, items: Sequence[Any], outcomes: Sequence[Row], settings: Settings) -> dict[str, Any]:
    """Everything the tables show, per system, against the reference, and by slice.

    Every interval of every system, metric and slice comes from the same resample of the items, or of their clusters
    where the suite has some. A failed request is missing, not wrong: the metrics that need it are withheld until it
    has been asked again, or all items with a failed request are left out of all systems (`complete_only`), and counted
    either way. A system that does not enter (`Suite.enters`) has estimates without intervals, and joins no mean.
    """
    names = list(dict.fromkeys(row["system"] for row in outcomes))
    failed: dict[str, Counter[str]] = {name: Counter() for name in names}
    incomplete = set()
    for row in outcomes:
        if row["label"] == "failed":
            failed[row["system"]][row["cell"]] += 1
            incomplete.add(row["item_id"])
    if settings.complete_only:
        items = [item for item in items if item.id not in incomplete]
    place = {item.id: index for index, item in enumerate(items)}
    rows: dict[str, dict[str, list[Row]]] = {n: {c: [{}] * len(items) for c in suite.cells} for n in names}
    for row in outcomes:
        if (index := place.get(row["item_id"])) is not None:
            rows[row["system"]][row["cell"]][index] = row
    counted = Counted(suite, items, rows, {} if settings.complete_only else failed, settings)
    against = [name for name in names if name != settings.reference] if settings.reference in names else []
    found: dict[str, Any] = {
        "schema": SCHEMA,
        "suite": suite.name,
        "items": len(items),
        "failed_items": sorted(incomplete),
        "complete_only": settings.complete_only,
        "level": settings.level,
        "replicates": counted.replicates,
        "seed": counted.seed,
        "against": settings.reference,
        **counted.design(),
        "systems": {name: {"rates": {}, "cells": _cells(suite, rows[name])} for name in names},
        "differences": {
            name: {"rates": {}, **suite.against(*_answered(rows[settings.reference], rows[name]))} for name in against
        },
        "slices": {},
    }
    for name in names:
        if strata := suite.strata(items, rows[name]):
            found["systems"][name]["strata"] = dict(strata)
    for column, value, mask in counted.slices:
        part = {"items": int(mask.sum()), "systems": {}, "differences": {}}
        found["slices"].setdefault(column, {})[value] = part
    if not incomplete or settings.complete_only:
        found |= {"remarks": dict(remarks)} if (remarks := suite.remarks(items, rows)) else {}
    for where, rate in counted.numbers(against):
        inner = found
        for key in where[:-1]:
            inner = inner.setdefault(key, {})
        inner[where[-1]] = rate
    return found


def _answered(*systems: Mapping[str, Sequence[Row]]) -> list[dict[str, list[Row]]]:
    """The systems' rows of the items that all of them answered in every cell."""
    n = len(next(iter(systems[0].values())))
    kept = [i for i in range(n) if all(row[i]["label"] != "failed" for rows in systems for row in rows.values())]
    return [{cell: [of[i] for i in kept] for cell, of in rows.items()} for rows in systems]


class Counted:
    """The rates of all systems, and what they are as plain data once they are resampled."""

    def __init__(
        self,
        suite: Suite,
        items: Sequence[Any],
        rows: Mapping[str, Mapping[str, Sequence[Row]]],
        failed: Mapping[str, Counter[str]],
        settings: Settings,
    ):
        self.suite, self.settings = suite, settings
        self.seed = settings.seed if suite.seed is None else suite.seed
        self.replicates = settings.replicates if suite.replicates is None else suite.replicates
        self.units = suite.units(items)
        self.ids = np.array([item.id for item in items])
        self.across = suite.across(items, rows)
        self.rates = {name: suite.rates(items, rows[name]) for name in rows}
        self.flexible = self._flexible(items, rows)
        self.panels = {name: suite.panels(items, rows[name]) for name in rows}
        self.enters = {name: suite.enters(items, rows[name]) for name in rows}
        self.joint = bonferroni(settings.level, len(suite.primary)) if suite.primary else settings.level
        self.withheld = {
            name: {metric: n for metric in suite.headings if (n := sum(failed[name][c] for c in suite.needs(metric)))}
            for name in failed
        }
        self.failed = {name: counts.total() for name, counts in failed.items()}
        self.slices = [
            (column, value, np.array([str(getattr(item, column)) == value for item in items]))
            for column in suite.columns
            if len(values := sorted({str(getattr(item, column)) for item in items})) > 1
            for value in values
        ]

    def _flexible(
        self, items: Sequence[Any], rows: Mapping[str, Mapping[str, Sequence[Row]]]
    ) -> dict[str, dict[str, Rate]]:
        """The rates of the flexible reading, of the systems all of whose answers have one."""
        found = {}
        for name, own in rows.items():
            read = {cell: flexibly(answers) for cell, answers in own.items()}
            if items and None not in read.values():
                found[name] = self.suite.rates(items, {cell: answers or [] for cell, answers in read.items()})
        return found

    def design(self) -> dict[str, Any]:
        """What was resampled, at which levels, and who is averaged, where the suite says anything of it."""
        found: dict[str, Any] = {}
        if self.units:
            found["units"] = {unit: len(set(labels)) for unit, labels in self.units.items()}
        if self.suite.primary:
            found["levels"] = {metric: self.joint for metric in sorted(self.suite.primary)}
        if not all(self.enters.values()):
            found["not_inferred"] = [name for name, enters in self.enters.items() if not enters]
        for where, names in self.means.items():
            inner = found
            for key in where[:-1]:
                inner = inner.setdefault(key, {})
            inner[where[-1]] = {"systems": names}
        return found

    @property
    def means(self) -> dict[Place, list[str]]:
        """Where a mean stands -> its systems: of all that are averaged, and of each group of them."""
        found: dict[Place, list[str]] = {("mean",): self.averaged} if len(self.averaged) > 1 else {}
        grouped = self.settings.groups
        for group in dict.fromkeys(grouped[name] for name in self.averaged if name in grouped):
            found["groups", group] = [name for name in self.averaged if grouped.get(name) == group]
        return found

    @property
    def averaged(self) -> list[str]:
        """The systems of the mean; none where the suite has no mean."""
        return [name for name, enters in self.enters.items() if enters] if self.suite.averaged else []

    def numbers(self, against: Sequence[str]) -> Iterator[tuple[Place, dict[str, Any]]]:
        """Every number with its place: of the first unit of resampling, then of the others for robust panels."""
        by_unit: list[tuple[str, Sequence[str] | None]] = [*self.units.items()] or [("item", None)]
        for n, (unit, clusters) in enumerate(by_unit):
            wanted = self._wanted(against) if n == 0 else self._panel_rates(self.suite.robust)
            found = self._resampled(wanted, clusters)
            for where, rate in wanted.items():
                yield (where if n == 0 else ("sensitivity", unit, *where)), self._plain(where, rate, found[where])

    def _resampled(self, wanted: Mapping[Place, Rate], clusters: Sequence[str] | None) -> dict[Place, Interval]:
        """The interval of each rate: all from one resample, but for those that the suite draws by themselves."""
        together: dict[tuple[Draws | None, bytes], list[Place]] = {}
        for where, rate in wanted.items():
            draws = self.suite.draws(where, list(self.rates))
            together.setdefault((draws, support(rate).tobytes() if draws else b""), []).append(where)
        found: dict[Place, Interval] = {}
        for (draws, _), places in together.items():
            inside = support(wanted[places[0]])
            rates = {where: taken(wanted[where], inside) if draws else wanted[where] for where in places}
            named = bootstrap_all(
                {"\0".join(where): rate for where, rate in rates.items()},
                self.ids[inside] if draws else clusters,
                draws.replicates if draws else self.replicates,
                draws.seed if draws else self.seed,
                self.settings.level,
                {"\0".join(where): self.joint for where in places if self._is_primary(where)},
            )
            found |= {where: named["\0".join(where)] for where in places}
            for where, rate in rates.items():
                if draws or clusters is not None:
                    labels = self.ids if draws else np.asarray(clusters)
                    within = len(set(labels[inside if draws else support(rate)]))
                    found[where] = of_clusters(rate, found[where], within)
                else:
                    found[where] = guarded(rate, found[where])
        return found

    def _wanted(self, against: Sequence[str]) -> dict[Place, Rate]:
        metrics, reference = self.suite.headings, self.settings.reference
        wanted: dict[Place, Rate] = {}
        for column, value, mask in [("", "", None), *self.slices]:
            begin, last = (("slices", column, value), ()) if column else ((), ("rates",))
            inside = self.rates
            if mask is not None:
                inside = {n: {m: restricted(rate, mask) for m, rate in own.items()} for n, own in self.rates.items()}
            for metric in metrics:
                for name, own in inside.items():
                    wanted[(*begin, "systems", name, *last, metric)] = own[metric]
                for name in against:
                    minus = inside[name][metric] - inside[reference][metric]
                    wanted[(*begin, "differences", name, *last, metric)] = minus
        for metric in metrics:
            for name, own in self.flexible.items():
                wanted["systems", name, "flexible", metric] = own[metric]
                if name in against and reference in self.flexible:
                    minus = own[metric] - self.flexible[reference][metric]
                    wanted["differences", name, "flexible", metric] = minus
        for where, names in self.means.items():
            for metric in metrics:
                wanted[(*where, "rates", metric)] = mean_of([self.rates[name][metric] for name in names])
                for left_out in names if where == ("mean",) else ():
                    rest = [self.rates[name][metric] for name in names if name != left_out]
                    wanted["mean", "without", left_out, metric] = mean_of(rest)
        for table, lines in self.across.items():
            for row, columns in lines.items():
                wanted |= {("across", table, row, column): rate for column, rate in columns.items()}
        return wanted | self._panel_rates(frozenset(self.suite.panels_of))

    def _panel_rates(self, chosen: frozenset[str]) -> dict[Place, Rate]:
        """The rates of these panels, of each system and of the mean."""
        wanted: dict[Place, Rate] = {}
        for panel in (panel for panel in self.suite.panels_of if panel in chosen):
            for name, own in self.panels.items():
                for row, columns in own[panel].items():
                    wanted |= {("systems", name, "panels", panel, row, c): rate for c, rate in columns.items()}
            for where, names in self.means.items():
                for row, columns in self.panels[names[0]][panel].items():
                    for column in columns:
                        every = [self.panels[name][panel][row][column] for name in names]
                        wanted[(*where, "panels", panel, row, column)] = mean_of(every)
        return wanted

    def _is_primary(self, where: Place) -> bool:
        return where[0] in ("systems", "mean") and where[-1] in self.suite.primary

    def _is_of_one(self, where: Place) -> bool:
        """Whether it is a rate of one system, no mean and no difference."""
        return (where[3] if where[0] == "slices" else where[0]) == "systems"

    def _plain(self, where: Place, rate: Rate, found: Interval) -> dict[str, Any]:
        """A number as results.json has it."""
        names = self._behind(where)
        panel = where[0] == "across" or "panels" in where[1:3]
        if panel:
            withheld = sum(self.failed.get(name, 0) for name in names)
        else:
            withheld = sum(self.withheld.get(name, {}).get(where[-1], 0) for name in names)
        if withheld:
            missing = {"estimate": None, "interval": None, "sd": None, "undefined_replicates": 0}
            return {**missing, "method": None, "few": False, "withheld": withheld}
        inferred = all(self.enters[name] for name in names)
        shown: dict[str, Any] = {
            "estimate": found.estimate,
            "interval": [found.low, found.high] if inferred and found.low is not None else None,
            "sd": found.sd if inferred else None,
            "undefined_replicates": found.undefined,
            "method": found.method if inferred and found.low is not None else None,
            "few": found.estimate is not None and small(rate),
        }
        if panel and where[0] == "systems" and len(rate.terms) == 1:
            shown["events"], shown["n"] = (int(sum(column)) for column in _columns(rate))
        elif self._is_of_one(where) and not panel and (counted := counts(rate)):
            shown["count"], shown["n"] = counted
        return shown

    def _behind(self, where: Place) -> list[str]:
        """The systems whose answers a number depends on."""
        if where[0] == "mean":
            return [name for name in self.averaged if where[1] != "without" or name != where[2]]
        if where[0] == "groups":
            return self.means[where[:2]]
        if where[0] == "across":
            return list(self.rates)
        kind, name = where[3:5] if where[0] == "slices" else where[:2]
        return [name, self.settings.reference] if kind == "differences" else [name]


def _columns(rate: Rate) -> tuple[Any, Any]:
    _, ratio = rate.terms[0]
    return ratio.numerator, ratio.denominator


def _cells(suite: Suite, rows: Mapping[str, Sequence[Row]]) -> dict[str, Any]:
    """Per cell: label counts, the shares that are unparsed and cut by the token cap, mean length."""
    cells = {}
    for cell in suite.cells:
        labels = Counter(row["label"] for row in rows[cell])
        n = max(len(rows[cell]), 1)
        cells[cell] = {
            "labels": {label: labels[label] for label in suite.labels},
            **({"unparsed_share": labels["unparsed"] / n} if "unparsed" in suite.labels else {}),
            "truncated_share": sum(row["finish_reason"] == "length" for row in rows[cell]) / n,
            "mean_tokens": sum(row["n_tokens"] for row in rows[cell]) / n,
        }
    return cells
