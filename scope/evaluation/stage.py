"""The evaluation stage: every system under one plan, then each suite's outcome table and results."""

from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scope import artifacts
from scope.artifacts import StageError
from scope.engines import Choices, Completion, Sampling, Store, complete, opened, score_choices, shards, warn_unpinned
from scope.engines.base import known_as
from scope.evaluation import outcomes as table
from scope.evaluation.results import Settings, missing_from_groups, results
from scope.evaluation.suites import SUITES
from scope.evaluation.suites.base import Row, Suite
from scope.evaluation.systems import System, is_trained, open_systems, precision_facts, precisions
from scope.prompts import Chat
from scope.recipe import Recipe, nearest

FOLDER = "evaluate"
#: Settings of single suites, which these name among their own (`Suite.settings`).
SECTIONS = ("misleadqa", "ragstress")


@dataclass
class Planned:
    """One suite of a run. rows: its outcomes so far."""

    suite: Suite
    folder: Path
    items: list[Any]
    key: dict[str, Any]
    facts: dict[str, Any]
    rows: list[Row]


def folder_of(recipe: Recipe, suite: str) -> Path:
    return recipe.folder(FOLDER) / suite


def evaluate(recipe: Recipe) -> Path:
    """Run the evaluation stage; returns its folder, which holds one a suite.

    Each has `results.json`, `outcomes.parquet`, `items.jsonl`, `table.txt` and the times in `timings.parquet`. Under
    torchrun or accelerate every process calls it; the requests are shared out, the main process alone writes.
    """
    if recipe.dry_run:
        from scope.preview import preview

        return preview(recipe)
    if recipe.evaluation.rescore:
        return rescore(recipe)
    systems = open_systems(recipe)
    planned = [plan(recipe, SUITES[name].using(recipe), systems) for name in recipe.evaluation.suites]
    with artifacts.stage_lock(recipe.folder(FOLDER)) if shards.is_main() else nullcontext():
        waiting = [plan for plan in planned if not _is_done(plan)]
        if shards.is_main():
            for done in planned:
                if done not in waiting:
                    print((done.folder / "table.txt").read_text("utf-8"))
                    print(f"evaluate: nothing to do, {done.folder} is up to date")
        shards.barrier()
        if waiting:
            run(recipe, systems, waiting)
        if waiting and shards.is_main():
            for work in waiting:
                write(recipe, work)
    if waiting and shards.is_main() and any(is_trained(system.name) for system in systems):
        from scope.publish import write_cards

        write_cards(recipe)
    return recipe.folder(FOLDER)


def plan(recipe: Recipe, suite: Suite, systems: Sequence[System]) -> Planned:
    """The suite's items for this run and everything its results depend on."""
    loaded = suite.load(recipe)
    if any(is_trained(system.name) for system in systems):
        suite.check_held_out(recipe, loaded.items)
    items = selected(suite, loaded.items, recipe.evaluation.slice)
    items = items[: recipe.evaluation.limit or None]
    settings = recipe.part("evaluation")["evaluation"]
    for name in ("suites", "systems", "models", "items", "transfer_items", "seed", *SECTIONS):
        del settings[name]
    key = {
        "pool": loaded.key,
        "systems": {system.name: system.identity(recipe) for system in systems},
        "model": {k: v for k, v in recipe.part("model")["model"].items() if k not in ("mirror", "revision")},
        "dtype": precisions(recipe, systems),
        "engine": recipe.part("engine")["engine"],
        "evaluation": settings,
        "seed": recipe.evaluation_seed,
        "settings": suite.settings(recipe),
    }
    facts = {**loaded.facts, **precision_facts(key["dtype"])}
    return Planned(suite, folder_of(recipe, suite.name), items, key, facts, [])


def selected(suite: Suite, items: Sequence[Any], wanted: dict[str, str]) -> list[Any]:
    """The items with these values of their columns; StageError names the values there are."""
    chosen = list(items)
    for column, value in wanted.items():
        if column not in suite.columns:
            raise StageError(f"slice.{column}: {suite.name} has no such column; {nearest(column, list(suite.columns))}")
        values = sorted({str(getattr(item, column)) for item in items})
        if str(value) not in values:
            raise StageError(f"slice.{column}={value}: no item of {suite.name} has it; {nearest(str(value), values)}")
        chosen = [item for item in chosen if str(getattr(item, column)) == str(value)]
    if not chosen:
        raise StageError(f"slice={wanted}: no item of {suite.name} has all of these; leave one out")
    return chosen


def _is_done(work: Planned) -> bool:
    """Whether its folder holds these results, with no request left to ask again."""
    return artifacts.is_finished(work.folder, work.key) and not artifacts.read_manifest(work.folder)["failed"]  # type: ignore[index]


def run(recipe: Recipe, systems: Sequence[System], planned: Sequence[Planned]) -> None:
    """Ask every system every request of the suites, then have the judges label what they label."""
    store = Store(recipe.folder("store") / "completions.sqlite")
    warned: set[str] = set()
    for system in systems:
        with opened(system.model, system.settings(recipe), recipe.engine, system.adapter) as engine:
            if any(work.suite.pinned for work in planned) and (faults := engine.unpinned()):
                raise StageError("\n".join(faults.values()))
            warned |= warn_unpinned(engine, {*recipe.model.chat_template_kwargs, *warned})
            for work in planned:
                usable = work.suite.usable(work.items, engine.control_tokens(), recipe)
                if work.rows and usable != work.items:
                    raise StageError(
                        f"{work.suite.name}: {system.name} cannot be asked {len(work.items) - len(usable)} of the "
                        "items that others were asked, for they hold its control tokens; take these items out"
                    )
                work.items = usable
                if engine.folds_system() and isinstance(work.suite.prompt(usable[0], work.suite.cells[0]), Chat):
                    said = "at the beginning of the user message, for the chat template has no system role"
                    work.facts[f"system message of {system.name}"] = said
                work.rows += ask(recipe, work.suite, system, engine, usable, store)
    for work in planned:
        work.rows = work.suite.judge(recipe, {item.id: item for item in work.items}, work.rows, store)
    store.close()


def ask(recipe: Recipe, suite: Suite, system: System, engine: Any, items: Sequence[Any], store: Store) -> Iterable[Row]:
    """The outcome rows of one system, cell by cell of each item."""
    label, limit = f"{suite.name}: {system.name}", suite.input_limit(recipe)
    answers: dict[tuple[str, str], Completion] = {}
    cells_by: dict[Sampling | Choices, list[str]] = {}
    for cell in suite.cells:
        cells_by.setdefault(suite.how(cell, recipe), []).append(cell)
    for how, cells in cells_by.items():
        requests = [(item, cell) for item in items for cell in cells]
        prompts = [system.prompt(suite.prompt(item, cell)) for item, cell in requests]
        names = [f"item {item.id}, cell {cell}" for item, cell in requests]
        if isinstance(how, Choices):
            found = score_choices(engine, prompts, how.options, store, label, how.by, names, True, limit)
        else:
            found = complete(engine, prompts, how, store, label, names, True, limit)
        answers |= {(item.id, cell): one for (item, cell), one in zip(requests, found, strict=True)}
    for item in items:
        for cell in suite.cells:
            completion = answers[item.id, cell]
            yield table.row(system.name, item.id, cell, completion, suite.outcome(item, cell, completion))


def write(recipe: Recipe, work: Planned) -> None:
    """The suite's folder, whole: what it held for other settings is replaced, the answers stay in the store."""
    found = summary(recipe, work)
    from scope.report.terminal import table as as_text

    text = as_text(found)
    folder, suite = work.folder, work.suite
    outcomes, times = table.split(work.rows)
    folder.mkdir(parents=True, exist_ok=True)
    artifacts.sweep(folder)
    (folder / "manifest.json").unlink(missing_ok=True)
    artifacts.write_jsonl(folder / "items.jsonl", map(suite.row_of, work.items))
    artifacts.write_parquet(folder / "outcomes.parquet", outcomes)
    artifacts.write_parquet(folder / "timings.parquet", times)
    artifacts.write_json(folder / "results.json", found)
    artifacts.write_text(folder / "table.txt", text)
    artifacts.finish(
        folder,
        stage=FOLDER,
        key=work.key,
        outputs=["outcomes.parquet", "results.json", "table.txt", "items.jsonl"],
        seed=recipe.evaluation_seed,
        failed=len(found["failed_items"]),
        counts={"items": len(work.items), "outcomes": len(outcomes)},
        recipe=recipe.resolved(),
    )
    print(text)
    for said in missing_from_groups(suite, recipe.evaluation.groups, found["systems"]):
        print(f"evaluate: {said}")
    print(f"evaluate: {len(outcomes)} outcomes in {folder}")


def summary(recipe: Recipe, work: Planned) -> dict[str, Any]:
    """`results.json`: the numbers, and what they are of."""
    chosen = recipe.evaluation
    settings = Settings(
        chosen.level, chosen.replicates, recipe.evaluation_seed, chosen.complete_only, groups=chosen.groups
    )
    found = results(work.suite, work.items, work.rows, settings)
    named = {"model": known_as(recipe.model, recipe.engine), "arm": recipe.arm_name, "facts": work.facts}
    return {"schema": found.pop("schema"), "suite": found.pop("suite"), **named, **found}


def rescore(recipe: Recipe) -> Path:
    """Label the stored answers of finished evaluations anew, with today's scorers; nothing is generated or judged.

    Items, level, resamples, seed and how answers are read stay those of the evaluation, whatever the recipe says.
    """
    with artifacts.stage_lock(recipe.folder(FOLDER)):
        _rescore(recipe)
    return recipe.folder(FOLDER)


def _rescore(recipe: Recipe) -> None:
    for name in recipe.evaluation.suites:
        folder = folder_of(recipe, name)
        manifest = artifacts.require(folder, FOLDER, recipe.command("evaluate.py").replace(" rescore=true", ""))
        recipe.evaluation.seed = manifest["key"]["seed"]
        for setting in ("level", "replicates", "complete_only", "groups"):
            setattr(recipe.evaluation, setting, manifest["recipe"]["evaluation"].get(setting, {}))
        for section in SECTIONS:
            now = getattr(recipe.evaluation, section)
            setattr(recipe.evaluation, section, type(now)(**manifest["recipe"]["evaluation"].get(section, {})))
        suite = SUITES[name].using(recipe)
        items = {row["id"]: suite.item_of(row) for row in table.read_jsonl(folder / "items.jsonl")}
        rows = table.read(folder)
        changed = 0
        for row in rows:
            new = suite.rescored(items[row["item_id"]], row, table.completion_of(row))
            changed += new["label"] != row["label"]
            row |= new
        work = Planned(suite, folder, list(items.values()), manifest["key"], {}, rows)
        work.facts = table.read_json(folder / "results.json")["facts"]
        write(recipe, work)
        print(f"evaluate: {changed} of {len(rows)} labels changed")
