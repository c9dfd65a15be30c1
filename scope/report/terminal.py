"""Results as tables for a terminal, also kept as `table.txt`."""

import io
from typing import Any

HEADINGS = {
    "clean": "Clean",
    "misleading": "Misleading",
    "correct": "Correct ctx",
    "irrelevant": "Irrelevant",
    "overall": "Overall",
    "sc2w": "SC2W",
}


def table(results: dict[str, Any]) -> str:
    """Accuracy by condition with the truncated share beside it, SC2W, and paired differences to the base."""
    from rich.console import Console
    from rich.table import Table

    level = f"{100 * results['level']:g} %"
    stream = io.StringIO()
    console = Console(file=stream, width=150, color_system=None, highlight=False, markup=False)
    main = Table(
        title=f"{results['suite'].upper()}: {results['items']} items, {results['model']}, arm {results['arm']}"
    )
    main.add_column("per cent")
    for metric in HEADINGS.values():
        main.add_column(metric, justify="right", no_wrap=True)
    for name, system in results["systems"].items():
        cells = system["cells"]
        main.add_row(name, *(rate(system["rates"][m], cells.get(m)) for m in HEADINGS))
    for name, paired in results["differences"].items():
        main.add_section()
        main.add_row(f"{name} - base", *(difference(paired["rates"][m]) for m in HEADINGS))
        main.add_row("", *(interval(paired["rates"][m]) for m in HEADINGS))
    console.print(main)
    console.print(
        f"(t n): share of answers cut by the token cap. [low, high]: {level} interval of the paired difference, "
        f"{results['replicates']} item resamples shared by all systems. SC2W: wrong when misled among right when "
        "clean; less is better."
    )
    console.print(_labels(results))
    for name, paired in results["differences"].items():
        r = paired["repairs"]
        console.print(
            f"{name} against base, misleading cell: {r['repairs']} of {r['base_failures']} clean-right failures "
            f"repaired; gains {r['gains']}, costs {r['costs']}, net {r['net']:+d}"
        )
    if results["failed_items"]:
        console.print(
            f"{len(results['failed_items'])} items left out because a request failed; run the same command again"
        )
    return "\n".join(line.rstrip() for line in stream.getvalue().splitlines())


def rate(found: dict[str, Any], cell: dict[str, Any] | None = None) -> str:
    """A rate in per cent with its sd, and its cell's truncated share where one is given."""
    text = "undefined" if found["estimate"] is None else f"{100 * found['estimate']:.1f}"
    if found["sd"] is not None:
        text += f" ±{100 * found['sd']:.1f}"
    return text if cell is None else f"{text} (t {100 * cell['truncated_share']:.1f})"


def difference(found: dict[str, Any]) -> str:
    """A difference of rates in percentage points, signed."""
    return "undefined" if found["estimate"] is None else f"{100 * found['estimate']:+.1f}"


def interval(found: dict[str, Any]) -> str:
    """The interval of a difference in percentage points; empty where it is undefined."""
    return "" if found["interval"] is None else "[{:+.1f}, {:+.1f}]".format(*(100 * end for end in found["interval"]))


def _labels(results: dict[str, Any]) -> Any:
    from rich.table import Table

    labels = Table(title="Outcomes, all cells")
    labels.add_column("answers")
    kinds = list(next(iter(results["systems"].values()))["cells"]["clean"]["labels"])
    for kind in kinds:
        labels.add_column(kind, justify="right")
    labels.add_column("mean tokens", justify="right")
    for name, system in results["systems"].items():
        cells = system["cells"].values()
        tokens = sum(c["mean_tokens"] for c in cells) / len(cells)
        labels.add_row(name, *(str(sum(c["labels"][k] for c in cells)) for k in kinds), f"{tokens:.1f}")
    return labels
