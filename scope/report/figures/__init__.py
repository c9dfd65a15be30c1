"""Every figure there is data for."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from scope.evaluation.outcomes import read_json
from scope.mining import FOLDER as MINE
from scope.report.figures import diagnostics, more, rates
from scope.report.figures.style import Drawing, styled


def draw(
    results: Mapping[str, dict[str, Any]], runs: Sequence[Path] = (), with_published: bool = False
) -> list[Drawing]:
    """The figures, to be saved within `styled()`. results: suite -> `compare`'s results; runs: for their funnels."""
    with styled():
        found = []
        if mist := results.get("mist"):
            for figure in (rates.drops, rates.conditions, rates.tradeoff):
                found.append(figure(mist, with_published))
            found += [more.repairs(mist), *more.dynamics(mist)]
        found += [
            diagnostics.by_cell(results[name]) for name in ("misleadqa", "misleadqa_condition") if name in results
        ]
        found += [diagnostics.misled(results[name]) for name in ("ragstress", "ragstress_slots") if name in results]
        if judged := results.get("misleadqa_scope"):
            found.append(diagnostics.recognised(judged))
        found.append(rates.transfer(results, with_published))
        found += [more.slices(suite) for suite in results.values() if suite["slices"]]
        mined = funnels(runs)
        found += [
            more.funnel("funnel" if len(mined) == 1 else f"funnel_{n}", read_json(file), file.resolve().parts[-3])
            for n, file in enumerate(mined, start=1)
        ]
    return [drawing for drawing in found if drawing is not None]


def funnels(runs: Sequence[Path]) -> list[Path]:
    """Each run's `mine/funnel.json`, once; a run folder may be that of an arm."""
    places = [place / MINE / "funnel.json" for run in runs for place in (run, run.resolve().parent)]
    return list({place.resolve(): place for place in places if place.is_file()}.values())
