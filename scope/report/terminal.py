"""Results as tables for a terminal, also kept as `table.txt`.

Below a system's rates stand the counts that they are of, the shares of unparsed and of cut answers, and the rates of
the flexible reading: `details`. They are the same lines in every table of rates.
"""

import io
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from scope.evaluation.proportions import SMALL
from scope.evaluation.suites import SUITES
from scope.evaluation.suites.base import Suite
from scope.evaluation.systems import is_trained

#: The mark of a number of few items: it is shown, and carries no claim.
FEW = "†"
#: A difference of the two readings' accuracies above which a sentence says so.
APART = 0.01
#: Labels of the lines below a system's rates.
COUNTED, UNREAD, CUT, FLEXIBLE = "  k/n", "  unparsed, cut %", "  cut %", "  flexible"
#: What an interval is that is no bootstrap's (`scope.evaluation.proportions`).
METHODS = {
    "wilson": "Wilson's interval of a rate",
    "tango": "Tango's score interval of a pair",
    "newcombe": "Newcombe's interval where strata differ",
    "mean": "for a mean the mean of such bounds",
}


def table(results: dict[str, Any]) -> str:
    """The suite's metrics with their details, and paired differences to the reference."""
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
        counts = (str(system["strata"][key]) for key in sizes.values())
        main.add_row(name, *counts, *(rate(system["rates"][m]) for m in suite.headings))
        for label, *texts in details(suite, system):
            main.add_row(label, *("" for _ in sizes), *texts)
    if rows := mean_rows(results):
        main.add_section()
        for row in rows:
            main.add_row(row[0], *("" for _ in sizes), *row[1:])
    for name, paired in results["differences"].items():
        main.add_section()
        for label, *texts in paired_lines(suite, f"{name} - {results['against']}", paired):
            main.add_row(label, *("" for _ in sizes), *texts)
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
    if any(found.get("method") not in METHODS and found["sd"] is not None for found in _rates(results["systems"])):
        said.append("± n: sd over resamples.")
    if results["differences"]:
        said.append(
            f"[low, high] of a difference: {100 * results['level']:g} % interval of the pair, {resamples(results)} "
            "shared by all systems."
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
    found += intervals(shown(results))
    found += readings(results)
    if n := len(results["failed_items"]):
        done = "left out of all systems" if results["complete_only"] else "their cells' metrics are withheld"
        found.append(f"{n} items have a failed request, {done}; run the same command again, it asks for these alone")
    return found


def readings(results: dict[str, Any]) -> list[str]:
    """A sentence a system where its strict and its flexible accuracy are more than `APART` apart, with the numbers."""
    suite, found = SUITES[results["suite"]], []
    for name, system in results["systems"].items():
        flexible, apart = system.get("flexible", {}), []
        for metric, heading in suite.headings.items():
            pair = [own.get(metric, {}).get("estimate") for own in (system["rates"], flexible)]
            if metric in suite.lower_is_better or None in pair or abs(pair[1] - pair[0]) <= APART + 1e-9:
                continue
            apart.append(f"{heading} {hundredfold(pair[0])} strict, {hundredfold(pair[1])} flexible")
        if apart:
            found.append(f"{name}: form counts as content, the two readings are apart in {'; '.join(apart)}")
    return found


def shown(results: dict[str, Any]) -> list[Any]:
    """The numbers of the tables of rates and differences."""
    every = [*results["systems"].values(), *results["differences"].values(), results.get("mean", {})]
    return [own.get(reading, {}) for own in every for reading in ("rates", "flexible")]


def intervals(numbers: Any) -> list[str]:
    """Which of these numbers' intervals are no bootstrap's, and what the mark of few items means, where it is there.

    numbers: any part of the results, or several in a list.
    """
    rates = list(_rates(numbers))
    methods = {rate.get("method") for rate in rates} & METHODS.keys()
    found = [f"not of resamples, for few items differ: {'; '.join(METHODS[m] for m in METHODS if m in methods)}"]
    few = [f"{FEW}: of fewer than {SMALL} items, which carry no claim"] if any(map(is_few, rates)) else []
    return (found if methods else []) + few


def _rates(found: Any) -> Iterator[dict[str, Any]]:
    """Every rate that stands anywhere in this."""
    if isinstance(found, dict) and "estimate" in found:
        yield found
    elif isinstance(found, dict | list):
        for inner in found.values() if isinstance(found, dict) else found:
            yield from _rates(inner)


def is_few(found: Mapping[str, Any] | None) -> bool:
    """Whether a rate or difference is of so few items that it carries no claim."""
    return bool(found and found.get("few"))


def details(suite: Any, system: dict[str, Any]) -> list[list[str]]:
    """The lines below a system's rates, each a label and a text a metric; none that is empty throughout."""
    cells, rates, flexible = system["cells"], system["rates"], system.get("flexible", {})
    own = {m: cells[suite.needs(m)[0]] for m in suite.headings if len(suite.needs(m)) == 1}
    unparsed = any("unparsed_share" in cell for cell in cells.values())
    shares = ("unparsed_share", "truncated_share") if unparsed else ("truncated_share",)
    lines = [
        [COUNTED, *(_counts(rates[m]) for m in suite.headings)],
        [
            UNREAD if unparsed else CUT,
            *(", ".join(hundredfold(own[m][s]) for s in shares) if m in own else "" for m in suite.headings),
        ],
        [FLEXIBLE, *(rate(flexible[m]) if m in flexible else "" for m in suite.headings)],
    ]
    return [line for line in lines if any(line[1:])]


def _counts(found: dict[str, Any]) -> str:
    return f"{found['count']}/{found['n']}" if "count" in found else ""


def paired_lines(suite: Any, name: str, paired: dict[str, Any]) -> list[list[str]]:
    """A system's differences to the reference with their intervals, of both readings where there are two."""
    lines = []
    for label, own in ((name, paired["rates"]), (FLEXIBLE, paired.get("flexible"))):
        if own:
            lines.append([label, *(difference(own[m]) for m in suite.headings)])
            lines.append(["", *(interval(own[m]) for m in suite.headings)])
    return lines


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
    """Characters of a terminal's table: 170, or more for a suite of many metrics."""
    return max(170, 40 + 19 * len(suite.headings))


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


def hundredfold(value: float, form: str = ".1f") -> str:
    """A fraction in per cent, or in points, never as a negative zero."""
    return format(round(100 * value, 1) + 0.0, form)


def rate(found: dict[str, Any]) -> str:
    """A rate in per cent with its sd, or the interval that is not the bootstrap's; marked if of few items."""
    if found.get("withheld"):
        return "withheld"
    text = "undefined" if found["estimate"] is None else hundredfold(found["estimate"])
    if found.get("method") in METHODS:
        text += f" {interval(found, signed=False)}"
    elif found["sd"] is not None:
        text += f" ±{100 * found['sd']:.1f}"
    return text + f" {FEW}" * is_few(found)


def difference(found: dict[str, Any]) -> str:
    """A difference of rates in percentage points, signed; marked if of few items."""
    if found.get("withheld"):
        return "withheld"
    text = "undefined" if found["estimate"] is None else hundredfold(found["estimate"], "+.1f")
    return text + f" {FEW}" * is_few(found)


def interval(found: dict[str, Any], signed: bool = True) -> str:
    """The interval of a difference in percentage points, or unsigned of a rate; empty where it is undefined."""
    if found["interval"] is None:
        return ""
    return "[{}, {}]".format(*(hundredfold(end, "+.1f" if signed else ".1f") for end in found["interval"]))


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
