"""Training: quartets -> adapter (SCOPE paper, Sec. 4 and App. I.4), then the merged model."""

import dataclasses
import json
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from scope import artifacts, merge, mining
from scope.artifacts import StageError
from scope.conditions import Condition
from scope.engines import release_memory
from scope.items import Quartet, load_quartets
from scope.mixture import realised_masses
from scope.models import ResolvedModel, load_tokenizer, resolve_model
from scope.pairs import arm_masses, run_plan
from scope.pool import stage as pool
from scope.recipe import Recipe
from scope.training.batch import Batch, batch_arithmetic

FOLDER = "train"


def key(recipe: Recipe, quartets: str, weights: str, batch: Batch) -> dict[str, Any]:
    """Everything the adapter depends on. World size and device batch are in it: sums of floats depend on them."""
    unkeyed = {"report_to", "logging_steps", "checkpoint_steps", "save_steps"}
    return {
        "quartets": quartets,
        "weights": weights,
        "dtype": recipe.model.dtype,
        "chat_template_kwargs": recipe.model.chat_template_kwargs,
        "attn_implementation": recipe.model.attn_implementation,
        "pairs": recipe.part("pairs")["pairs"],
        "trainer": {k: v for k, v in recipe.part("trainer")["trainer"].items() if k not in unkeyed},
        "world_size": batch.world_size,
        "seed": recipe.seed,
    }


def is_main() -> bool:
    return int(os.environ.get("RANK", "0")) == 0


def train(recipe: Recipe) -> Path:
    """Run the training stage and merge; returns the merged model's folder.

    Under a launcher every process calls it; the main process alone writes and merges.
    """
    if recipe.dry_run:
        from scope.preview import preview

        return preview(recipe)
    batch = batch_arithmetic(recipe)
    resolved = resolve_model(recipe.model.base, recipe.model.revision, recipe.model.mirror)
    command = recipe.command("mine.py")
    mined = artifacts.require(
        recipe.folder(mining.FOLDER),
        mining.FOLDER,
        command,
        {
            "weights": resolved.weights_sha256,
            "chat_template_kwargs": recipe.model.chat_template_kwargs,
            "pool": pool.prepare(recipe).hashes,
            "mining": recipe.part("mining")["mining"],
        },
    )
    folder = recipe.folder(FOLDER)
    wanted = key(recipe, mined["outputs"]["quartets.jsonl"], resolved.weights_sha256, batch)
    lock = artifacts.stage_lock(folder) if is_main() else _no_lock()
    with lock:
        if artifacts.is_finished(folder, wanted):
            if is_main():
                print(f"train: nothing to do, {folder} is up to date")
        else:
            if is_main():
                artifacts.refuse_other_work(folder, wanted, "train", recipe.command("train.py"))
            quartets = load_quartets(recipe.folder(mining.FOLDER) / "quartets.jsonl")
            _run(recipe, resolved, quartets, batch, wanted, folder)
        if is_main():
            release_memory()
            merge.merge(recipe, resolved)
    return recipe.folder(merge.FOLDER)


class _no_lock:
    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: Any) -> None:
        pass


def planned_rows(
    recipe: Recipe, tokenizer: Any, quartets: Sequence[Quartet], batch: Batch
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """The run's rows as the trainer takes them, in order, and the facts worth keeping about them."""
    from scope.training.tokenise import tokenise_all

    kept, ids, overlong = tokenise_all(
        tokenizer, quartets, recipe.model.chat_template_kwargs, recipe.trainer.max_length, recipe.trainer.overlong
    )
    if not kept:
        raise StageError(
            f"all {len(quartets)} quartets exceed trainer.max_length={recipe.trainer.max_length}; raise it"
        )
    plan = run_plan(len(kept), recipe.pairs, batch.rows, recipe.seed)
    rows = [
        {
            "row": number,
            "item_id": kept[index].item_id,
            "condition": str(condition),
            "prompt_ids": ids[index].prompts[condition],
            "chosen_ids": ids[index].chosen,
            "rejected_ids": ids[index].rejected,
        }
        for number, (index, condition) in enumerate(plan)
    ]
    facts = {
        "quartets": len(kept),
        "overlong": dataclasses.asdict(overlong),
        "masses": {str(c): m for c, m in arm_masses(recipe.pairs).items()},
        "realised_masses": {str(c): m for c, m in realised_masses(plan).items()},
        "passes": _passes(plan, len(kept)),
        "batch": dataclasses.asdict(batch),
    }
    return rows, facts


def _passes(plan: list[tuple[int, Condition]], n_quartets: int) -> float:
    """How often the most drawn condition goes through the quartets."""
    return max(sum(1 for _, found in plan if found is c) for c in Condition) / n_quartets


def _run(
    recipe: Recipe, resolved: ResolvedModel, quartets: list[Quartet], batch: Batch, wanted: dict[str, Any], folder: Path
) -> None:
    import datasets
    import transformers

    from scope.training.callbacks import checkpoints, drop_incomplete

    tokenizer = load_tokenizer(resolved)
    rows, facts = planned_rows(recipe, tokenizer, quartets, batch)
    if is_main():
        print(describe(recipe, facts))
        drop_incomplete(folder)
        artifacts.write_jsonl(
            folder / "plan.jsonl",
            ({"row": r["row"], "item_id": r["item_id"], "condition": r["condition"]} for r in rows),
        )
    transformers.set_seed(recipe.seed)
    began = time.monotonic()
    from scope.training.dpo import make_trainer

    trainer = make_trainer(recipe, resolved, tokenizer, datasets.Dataset.from_list(rows), batch, folder)
    done = checkpoints(folder)
    resumed = max(done) if done else None
    if resumed is not None and is_main():
        print(f"train: going on from step {resumed} of {batch.max_steps}")
    result = trainer.train(resume_from_checkpoint=str(done[resumed]) if resumed is not None else None)
    with artifacts.replacing_folder(folder / "adapter") if is_main() else _no_lock() as target:
        trainer.save_model(str(target or folder / "adapter"))
    if not is_main():
        return
    config = json.loads((folder / "adapter" / "adapter_config.json").read_text("utf-8"))
    config |= {"base_model_name_or_path": recipe.model.base, "revision": resolved.revision}
    artifacts.write_json(folder / "adapter" / "adapter_config.json", config)
    artifacts.write_json(
        folder / "adapter" / "base.json",
        {"base": recipe.model.base, "revision": resolved.revision, "weights_sha256": resolved.weights_sha256},
    )
    artifacts.write_json(
        folder / "timings.json", {"seconds": time.monotonic() - began, "resumed_from": resumed, **result.metrics}
    )
    losses = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
    artifacts.finish(
        folder,
        stage=FOLDER,
        key=wanted,
        outputs=["adapter/adapter_model.safetensors", "adapter/adapter_config.json", "plan.jsonl"],
        seed=recipe.seed,
        facts=facts,
        step0_loss=step0(trainer),
        first_loss=losses[0],
        last_loss=losses[-1],
        recipe=recipe.resolved(),
    )
    print(f"train: {batch.max_steps} steps, loss {losses[0]:.4f} -> {losses[-1]:.4f}; adapter in {folder / 'adapter'}")


def step0(trainer: Any) -> float | None:
    """The checked loss before the first update; of the run that began, if this one was resumed."""
    if trainer.step0_loss is not None:
        return trainer.step0_loss
    return next((entry["step0_loss"] for entry in trainer.state.log_history if "step0_loss" in entry), None)


def describe(recipe: Recipe, facts: dict[str, Any]) -> str:
    """What will be trained, in the terms of the paper."""
    batch, overlong = facts["batch"], facts["overlong"]
    masses = ", ".join(f"{c} {100 * m:.1f} %" for c, m in facts["masses"].items())
    return "\n".join(
        [
            f"train: {facts['quartets']} quartets ({overlong['cut']} with a cut prompt, "
            f"{overlong['dropped']} dropped as overlong)",
            f"train: {masses}; realised "
            + ", ".join(f"{c} {100 * m:.1f} %" for c, m in facts["realised_masses"].items()),
            f"train: {batch['global_batch']} pairs a step = {batch['device_batch']} x {batch['accumulation']} "
            f"accumulated x {batch['world_size']} processes; {batch['max_steps']} steps, {facts['passes']:.1f} passes",
        ]
    )
