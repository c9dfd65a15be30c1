"""Results as tables for a terminal, also kept as `table.txt`."""

import io
from collections.abc import Mapping, Sequence
from typing import Any

from scope.evaluation.suites import SUITES
from scope.evaluation.suites.base import Suite
from scope.evaluation.systems import is_trained


def table(results: dict[str, Any]) -> str:
    """The suite's metrics with the truncated share beside a cell's, and paired differences to the reference."""
    from rich.console import Console
    from rich.table import Table

    suite = SUITES[results["suite"]]
    stream = io.StringIO()
    console = Console(file=stream, width=width(suite), color_system=None, highlight=False, markup=False)
    # Not the table's own title, which breaks at the width of a narrow table.
    console.print(f"{suite.title}: {results['items']} items, {results['model']}{_arm(results)}", soft_wrap=True)
    main = Table()
    main.add_column("per cent")
    sizes = strata(results)
    for heading in [*sizes, *suite.headings.values()]:
        main.add_column(heading, justify="right", no_wrap=True)
    for name, system in results["systems"].items():
        cells = system["cells"]
        of_one = {m: cells[suite.needs(m)[0]] for m in suite.headings if len(suite.needs(m)) == 1}
        counts = (str(system["strata"][key]) for key in sizes.values())
        main.add_row(name, *counts, *(rate(system["rates"][m], of_one.get(m)) for m in suite.headings))
    if rows := mean_rows(results):
        main.add_section()
        for row in rows:
            main.add_row(row[0], *("" for _ in sizes), *row[1:])
    for name, paired in results["differences"].items():
        main.add_section()
        blank = ("" for _ in sizes)
        main.add_row(
            f"{name} - {results['against']}", *blank, *(difference(paired["rates"][m]) for m in suite.headings)
        )
        main.add_row("", *("" for _ in sizes), *(interval(paired["rates"][m]) for m in suite.headings))
    console.print(main)
    if said := explained(results):
        console.print(said)
    console.print(_labels(results))
    for name, paired in results["differences"].items():
        if r := repairs(paired):
            console.print(
                f"{name} against {results['against']}, misleading cell: {r['repairs']} of {r['base_failures']} "
                f"clean-right failures repaired; gains {r['gains']}, costs {r['costs']}, net {r['net']:+d}"
            )
    for line in notes(results):
        console.print(line)
    return "\n".join(line.rstrip() for line in stream.getvalue().splitlines())


def explained(results: dict[str, Any]) -> str:
    """What the table's signs mean, of those that stand in it."""
    suite, said = SUITES[results["suite"]], []
    if any(len(suite.needs(metric)) == 1 for metric in suite.headings):
        said.append("(t n): share of answers cut by the token cap.")
    if results["differences"]:
        said.append(
            f"[low, high]: {100 * results['level']:g} % interval of the paired difference, {resamples(results)} shared "
            "by all systems."
        )
    elif "mean" in results:
        said.append(f"[low, high]: {100 * results['level']:g} % interval, {drawn(results)}.")
    return (" ".join(said) + better(suite)).strip()


def _arm(results: dict[str, Any]) -> str:
    """The recipe's arm, where the table holds what it trained."""
    return f", arm {results['arm']}" if any(map(is_trained, results["systems"])) else ""


def notes(results: dict[str, Any]) -> list[str]:
    """What a reader must know beside the numbers, a line each: what is missing and what the suite says of its items."""
    found = [f"{name}: {value}" for name, value in results.get("facts", {}).items()]
    found += [f"{name}: {value}" for name, value in results.get("remarks", {}).items()]
    found += inference(results)
    if n := len(results["failed_items"]):
        done = "left out of all systems" if results["complete_only"] else "their cells' metrics are withheld"
        found.append(f"{n} items have a failed request, {done}; run the same command again, it asks for these alone")
    return found


def inference(results: dict[str, Any]) -> list[str]:
    """Which systems have no intervals and why, and which intervals are wider than the others."""
    found = []
    if "not_inferred" in results:
        few = ", ".join(results["not_inferred"])
        found.append(f"no intervals and in no mean, for their strata hold too few {_unit(results)}s: {few}")
    if "levels" in results:
        headings = SUITES[results["suite"]].headings
        named = ", ".join(headings.get(metric, metric) for metric in results["levels"])
        level = 100 * next(iter(results["levels"].values()))
        found.append(f"intervals of {named}, of systems and their mean: {level:g} %, so that they hold jointly")
    return found


def width(suite: Any) -> int:
    """Characters of a terminal's table: 150, or more for a suite of many metrics."""
    return max(150, 40 + 17 * len(suite.headings))


def _unit(results: dict[str, Any]) -> str:
    return next(iter(results.get("units", ())), "item")


def resamples(results: dict[str, Any]) -> str:
    """How many resamples of what the intervals come from."""
    units = results.get("units", {})
    of = f" of {next(iter(units.values()))} {_unit(results)}s" if units else ""
    return f"{results['replicates']} {_unit(results)} resamples{of}"


def drawn(results: dict[str, Any]) -> str:
    """What the sd and intervals of a system's own rates come from."""
    if type(SUITES[results["suite"]]).draws is not Suite.draws:
        return f"{results['replicates']} resamples of each rate's own stratum, by system"
    return f"{resamples(results)} shared by all systems"


def strata(results: dict[str, Any]) -> dict[str, str]:
    """Column heading -> stratum whose size the tables show: those that are called by a letter or a word."""
    first = next(iter(results["systems"].values()))
    return {f"|{key.upper()}|" if len(key) == 1 else key: key for key in first.get("strata", {}) if "_" not in key}


def mean_name(results: Mapping[str, Any]) -> str:
    """What a line of the mean over systems is called."""
    return f"mean of {len(results['mean']['systems'])}"


def means(results: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    """What the line of a mean is called -> where it stands in the results: of each group of systems, then of all."""
    found: dict[str, tuple[str, ...]] = {
        f"{name}, mean of {len(own['systems'])}": ("groups", name) for name, own in results.get("groups", {}).items()
    }
    return {**found, **({mean_name(results): ("mean",)} if "mean" in results else {})}


def inside(results: Mapping[str, Any], place: Sequence[str]) -> Mapping[str, Any]:
    """What stands there; empty where nothing does."""
    for key in place:
        results = results.get(key, {})
    return results


def mean_rows(results: dict[str, Any]) -> list[list[str]]:
    """Equal-weight means over systems with their intervals: of each group, of all, of all but one; of none nothing."""
    metrics = SUITES[results["suite"]].headings
    rows = []
    for name, place in means(results).items():
        own = inside(results, place)
        rows.append([name, *(rate(own["rates"][m]) for m in metrics)])
        rows.append(["", *(interval(own["rates"][m], signed=False) for m in metrics)])
    if (mean := results.get("mean")) and len(mean["systems"]) > 2:
        rows += [[f"without {name}", *(rate(own[m]) for m in metrics)] for name, own in mean["without"].items()]
    return rows


def repairs(paired: dict[str, Any]) -> dict[str, int] | None:
    """A system's repairs, gains and costs; None where the suite counts none or a request they need failed."""
    needed = [paired["rates"][cell] for cell in ("clean", "misleading") if cell in paired["rates"]]
    return None if any(rate.get("withheld") for rate in needed) else paired.get("repairs")


def better(suite: Any) -> str:
    """The sentence that names the metrics of which less is better; empty if there are none."""
    lower = [heading for metric, heading in suite.headings.items() if metric in suite.lower_is_better]
    return f" Less is better: {', '.join(lower)}." if lower else ""


def rate(found: dict[str, Any], cell: dict[str, Any] | None = None) -> str:
    """A rate in per cent with its sd, and its cell's truncated share where one is given."""
    if found.get("withheld"):
        return "withheld"
    text = "undefined" if found["estimate"] is None else f"{100 * found['estimate']:z.1f}"
    if found["sd"] is not None:
        text += f" ±{100 * found['sd']:.1f}"
    return text if cell is None else f"{text} (t {100 * cell['truncated_share']:.1f})"


def difference(found: dict[str, Any]) -> str:
    """A difference of rates in percentage points, signed."""
    if found.get("withheld"):
        return "withheld"
    return "undefined" if found["estimate"] is None else f"{100 * found['estimate']:+z.1f}"


def interval(found: dict[str, Any], signed: bool = True) -> str:
    """The interval of a difference in percentage points, or unsigned of a rate; empty where it is undefined."""
    form = "[{:+z.1f}, {:+z.1f}]" if signed else "[{:z.1f}, {:z.1f}]"
    return "" if found["interval"] is None else form.format(*(100 * end for end in found["interval"]))


def _labels(results: dict[str, Any]) -> Any:
    from rich.table import Table

    suite = SUITES[results["suite"]]
    labels = Table(title="Outcomes, all cells")
    labels.add_column("answers")
    for label in suite.labels:
        labels.add_column(label, justify="right")
    labels.add_column("mean tokens", justify="right")
    for name, system in results["systems"].items():
        cells = system["cells"].values()
        tokens = sum(c["mean_tokens"] for c in cells) / len(cells)
        labels.add_row(name, *(str(sum(c["labels"][label] for c in cells)) for label in suite.labels), f"{tokens:.1f}")
    return labels
