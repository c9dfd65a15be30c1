"""The evaluation stage: every system under one plan, then the outcome table and the results."""

import dataclasses
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from scope import artifacts, merge, mining
from scope.engines import Sampling, Store, complete
from scope.evaluation.results import results
from scope.evaluation.suites import SUITES
from scope.items import Item, load_quartets, write_rows
from scope.mining.imported import shared
from scope.models import ResolvedModel, resolve_model
from scope.recipe import Recipe

FOLDER = "evaluate"
#: Systems that need no training.
UNTRAINED = ("base", "prompt_defense")


@dataclasses.dataclass(frozen=True, slots=True)
class Adapter:
    """A trained adapter as an engine loads it."""

    path: Path
    sha256: str


@dataclasses.dataclass(frozen=True, slots=True)
class System:
    """What answers: a model, with an adapter or without."""

    name: str
    model: ResolvedModel
    adapter: Adapter | None = None


def key(recipe: Recipe, pool_hash: str, systems: Sequence[System]) -> dict[str, Any]:
    """Everything the results depend on."""
    return {
        "pool": pool_hash,
        "systems": {s.name: [s.model.weights_sha256, s.adapter and s.adapter.sha256] for s in systems},
        "model": {k: v for k, v in recipe.part("model")["model"].items() if k not in ("mirror", "revision")},
        "engine": recipe.part("engine")["engine"],
        "evaluation": recipe.part("evaluation")["evaluation"],
        "seed": recipe.seed,
    }


def evaluate(recipe: Recipe) -> Path:
    """Run the evaluation stage; returns its folder (`results.json`, `outcomes.parquet`, `table.txt`)."""
    from scope.pool import stage as pool

    if recipe.dry_run:
        from scope.preview import preview

        return preview(recipe)
    folder = recipe.folder(FOLDER)
    items, pool_hash = pool.evaluation(recipe)
    systems = open_systems(recipe)
    if any(system.name not in UNTRAINED for system in systems):
        check_held_out(recipe, items)
    wanted = key(recipe, pool_hash, systems)
    with artifacts.stage_lock(folder):
        if artifacts.is_finished(folder, wanted):
            print((folder / "table.txt").read_text("utf-8"))
            print(f"evaluate: nothing to do, {folder} is up to date")
            return folder
        artifacts.refuse_other_work(folder, wanted, "evaluate", recipe.command("evaluate.py"))
        began = time.monotonic()
        items = items[: recipe.evaluation.limit or None]
        outcomes, seconds = run(recipe, systems, items)
        found = results(recipe, items, outcomes)
        from scope.report.terminal import table

        text = table(found)
        write_rows(folder / "items.jsonl", items)
        artifacts.write_parquet(folder / "outcomes.parquet", outcomes)
        artifacts.write_json(folder / "results.json", found)
        artifacts.write_text(folder / "table.txt", text)
        artifacts.write_json(folder / "timings.json", {"seconds": time.monotonic() - began, "systems": seconds})
        artifacts.finish(
            folder,
            stage=FOLDER,
            key=wanted,
            outputs=["outcomes.parquet", "results.json", "table.txt", "items.jsonl"],
            seed=recipe.seed,
            counts={"items": len(items), "outcomes": len(outcomes)},
            recipe=recipe.resolved(),
        )
    if any(system.name not in UNTRAINED for system in systems):
        from scope.publish import write_cards

        write_cards(recipe)
    print(text)
    print(f"evaluate: {len(outcomes)} outcomes in {folder}")
    return folder


def check_held_out(recipe: Recipe, items: Sequence[Item]) -> None:
    """Refuse evaluation items that the trained model has seen, by id and by question."""
    quartets = load_quartets(recipe.folder(mining.FOLDER) / "quartets.jsonl")
    if held := shared(quartets, items):
        raise artifacts.StageError(
            f"pool.evaluation: holds {len(held)} items that were trained on, the first: quartet {min(held)!r}; mine "
            "again with this evaluation pool, which leaves its items out, or evaluate on other items"
        )


def open_systems(recipe: Recipe) -> list[System]:
    """The recipe's systems; StageError with the command to run where one is not trained or merged yet."""
    base = resolve_model(recipe.model.base, recipe.model.revision, recipe.model.mirror)
    systems = []
    for name in recipe.evaluation.systems:
        if name in UNTRAINED:
            systems.append(System(name, base))
            continue
        stage = merge.FOLDER if name == "merged" else merge.TRAIN
        weights = {"weights": base.weights_sha256}
        manifest = artifacts.require(recipe.folder(stage), stage, recipe.command("train.py"), weights)
        if name == "merged":
            trained = artifacts.require(recipe.folder(merge.TRAIN), merge.TRAIN, recipe.command("train.py"), weights)
            adapter = trained["outputs"]["adapter/adapter_model.safetensors"]
            if manifest["key"]["adapter"] != adapter:
                raise artifacts.StageError(
                    f"{recipe.folder(stage)}: was merged from another adapter; run: {recipe.command('train.py')}"
                )
            systems.append(System(name, resolve_model(str(recipe.folder(stage).resolve()))))
        else:
            adapter = manifest["outputs"]["adapter/adapter_model.safetensors"]
            systems.append(System(name, base, Adapter(recipe.folder(stage) / "adapter", adapter)))
    return systems


def run(
    recipe: Recipe, systems: Sequence[System], items: Sequence[Item]
) -> tuple[list[dict[str, Any]], dict[str, float]]:
    """Outcome rows (system, item, cell) of every system, and the seconds each took."""
    from scope.engines.transformers import opened
    from scope.pool import stage as pool

    suite = SUITES[recipe.evaluation.suite]
    sampling = Sampling(recipe.evaluation.max_new_tokens)
    store = Store(recipe.folder("store") / "completions.sqlite")
    outcomes: list[dict[str, Any]] = []
    seconds = {}
    for system in systems:
        began = time.monotonic()
        with opened(system.model, recipe.model, recipe.engine, system.adapter) as engine:
            items = pool.without_control_tokens(list(items), engine.control_tokens(), recipe.pool.on_bad_row)
            requests = [(item, cell) for item in items for cell in suite.CELLS]
            prompts = [suite.prompt(item, cell, system.name) for item, cell in requests]
            completions = complete(engine, prompts, sampling, store, f"evaluate: {system.name}")
        for (item, cell), completion in zip(requests, completions, strict=True):
            outcomes.append(
                {
                    "system": system.name,
                    "item_id": item.id,
                    "cell": cell,
                    "request_id": completion.request_id,
                    "prompt_hash": completion.prompt_hash,
                    "text": completion.text,
                    "finish_reason": completion.finish_reason,
                    "n_prompt_tokens": completion.n_prompt_tokens,
                    "n_tokens": completion.n_tokens,
                    "gold": item.gold,
                    **suite.outcome(item, completion),
                }
            )
        seconds[system.name] = time.monotonic() - began
    return outcomes, seconds
