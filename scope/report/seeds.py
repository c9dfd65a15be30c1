"""Training seeds of one arm: mean, standard deviation, and a row a seed."""

import re
import statistics
from collections import defaultdict
from pathlib import Path
from typing import Any

from scope.evaluation.suites import SUITES
from scope.report.markup import Cell, Group, Table

_SEED = re.compile(r"_seed\d+(?= |$)")


def by_arm(found: dict[str, Any]) -> dict[tuple[str, str], list[str]]:
    """(arm without its seed, run folder) -> its systems, where training made them with at least two seeds."""
    return {arm: systems for arm, systems in _trained(found).items() if len(systems) > 1}


def apart(found: dict[str, Any]) -> list[str]:
    """A sentence for each arm whose training seeds stand in several run folders, where other things may differ too."""
    runs: dict[str, list[str]] = defaultdict(list)
    for arm, run in _trained(found):
        runs[arm].append(run)
    seeded = {arm for (arm, _), systems in _trained(found).items() if any(map(_SEED.search, systems))}
    return [
        f"{arm} stands in {' and '.join(folders)}: seeds are averaged within a run only; train them in one, "
        "with trainer.seed=0,1"
        for arm, folders in runs.items()
        if arm in seeded and len(folders) > 1
    ]


def _trained(found: dict[str, Any]) -> dict[tuple[str, str], list[str]]:
    arms: dict[tuple[str, str], list[str]] = defaultdict(list)
    for system, place in found.get("folders", {}).items():  # one run's own results name none
        folder, (name, bracket, which) = Path(place).resolve(), system.partition(" (")
        if Path(name).name == folder.name:
            arms[_SEED.sub("", folder.name) + bracket + which, str(folder.parent)].append(system)
    return arms


def tables(found: dict[str, Any]) -> list[Table]:
    """One table, where an arm was trained with several seeds: per cent, the deviation of the seeds (n - 1)."""
    suite = SUITES[found["suite"]]
    groups = []
    for (arm, _), systems in by_arm(found).items():
        rows = [[system, *(_percent(found, system, m) for m in suite.headings)] for system in systems]
        rows.append([f"{arm}: mean of {len(systems)} seeds", *(_mean(found, systems, m) for m in suite.headings)])
        groups.append(Group([list(map(Cell, row)) for row in rows]))
    if not groups:
        return []
    said = "Per cent; the mean over training seeds ± their standard deviation (n - 1), which is no interval over items."
    head = ["per cent", *suite.headings.values()]
    return [Table(f"{suite.name}_seeds", f"{suite.title}: training seeds, {found['model']}", head, groups, [said])]


def _values(found: dict[str, Any], systems: list[str], metric: str) -> list[float]:
    """The seeds' estimates; none where one is undefined or withheld."""
    rates = [found["systems"][system]["rates"][metric] for system in systems]
    if any(rate.get("withheld") or rate.get("estimate") is None for rate in rates):
        return []
    return [100 * rate["estimate"] for rate in rates]


def _percent(found: dict[str, Any], system: str, metric: str) -> str:
    values = _values(found, [system], metric)
    return f"{values[0]:.1f}" if values else "–"


def _mean(found: dict[str, Any], systems: list[str], metric: str) -> str:
    values = _values(found, systems, metric)
    return f"{statistics.mean(values):.1f} ± {statistics.stdev(values):.1f}" if values else "–"
