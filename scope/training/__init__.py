"""Training: quartets -> adapter (SCOPE paper, Sec. 4 and App. I.4), then the merged model."""

import dataclasses
import json
import os
import time
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from scope import artifacts, merge, mining
from scope.engines import release_memory
from scope.engines.shards import is_main
from scope.items import Item, Quartet, load_quartets
from scope.models import ResolvedModel, load_tokenizer, pick_dtype, resolve_model
from scope.pairs import construction
from scope.pool import stage as pool
from scope.recipe import Recipe, asset
from scope.training.batch import Batch, batch_arithmetic
from scope.training.rows import Prepared, plan_line, planned, planned_rows, prepare

__all__ = ["FOLDER", "planned_rows", "train"]

FOLDER = merge.TRAIN


#: Settings that one objective alone reads; they do not matter to the others.
OWN_SETTINGS = {
    "dpo": {"loss", "beta", "label_smoothing", "packing", "pack_tokens", "reference"},
    "sft": set[str](),
    "opsd": {"max_completion"},
}


def key(recipe: Recipe, quartets: str, base: ResolvedModel, batch: Batch) -> dict[str, Any]:
    """Everything the adapter depends on. World size and device batch are in it: sums of floats depend on them.

    dtype is what training runs in (`setup.precision` holds it to that), not what `auto` leaves open.
    """
    kind = recipe.trainer.kind
    unkeyed = {"seed", "report_to", "logging_steps", "checkpoint_steps", "save_steps"}
    unkeyed |= set().union(*(own for other, own in OWN_SETTINGS.items() if other != kind))
    note = {"note": artifacts.file_hash(asset(recipe.mining.note))} if kind == "opsd" else {}
    return {
        "quartets": quartets,
        "weights": base.weights_sha256,
        "identity": base.identity,
        "dtype": pick_dtype(recipe.model.dtype),
        "chat_template_kwargs": recipe.model.chat_template_kwargs,
        "attn_implementation": recipe.model.attn_implementation,
        "quantization": recipe.model.quantization,
        "pairs": dataclasses.asdict(construction(recipe)),
        "trainer": {k: v for k, v in recipe.part("trainer")["trainer"].items() if k not in unkeyed},
        "world_size": batch.world_size,
        "seed": recipe.training_seed,
        **note,
    }


def train(recipe: Recipe) -> Path:
    """Run the training stage and merge; returns the merged model's folder.

    Under a launcher every process calls it; the main process alone writes and merges.
    """
    if recipe.trainer.report_to:
        from scope.training import trackers

        trackers.require(recipe.trainer.report_to)
    if recipe.dry_run:
        from scope.preview import preview

        return preview(recipe)
    from scope import publish

    batch = batch_arithmetic(recipe)
    resolved = resolve_model(recipe.model.base, recipe.model.revision, recipe.model.mirror)
    command = recipe.command("mine.py")
    pools = pool.prepare(recipe)
    mined = artifacts.require(
        recipe.folder(mining.FOLDER),
        mining.FOLDER,
        command,
        {
            "weights": resolved.weights_sha256,
            "identity": resolved.identity,
            "chat_template_kwargs": recipe.model.chat_template_kwargs,
            "pool": pools.hashes,
            "mining": recipe.part("mining")["mining"],
        },
    )
    folder = recipe.folder(FOLDER)
    wanted = key(recipe, mined["outputs"]["quartets.jsonl"], resolved, batch)
    lock = artifacts.stage_lock(folder) if is_main() else nullcontext()
    with lock:
        if artifacts.is_finished(folder, wanted):
            if is_main():
                print(f"train: nothing to do, {folder} is up to date")
        else:
            if is_main():
                artifacts.refuse_other_work(folder, wanted, "train", recipe.command("train.py"))
            quartets = load_quartets(recipe.folder(mining.FOLDER) / "quartets.jsonl")
            _run(recipe, resolved, quartets, pools.train, batch, wanted, folder)
        if is_main():
            release_memory()
            merge.merge(recipe, resolved)
            publish.write_cards(recipe)
            if recipe.push_to:
                print(f"train: published at {publish.push(recipe)}")
    return recipe.folder(merge.FOLDER)


def make_trainer(
    recipe: Recipe, resolved: ResolvedModel, tokenizer: Any, prepared: Prepared, rows: Any, batch: Batch, folder: Path
) -> Any:
    """The trainer of the recipe's objective on a data set of planned rows."""
    arguments = (recipe, resolved, tokenizer, rows, batch, folder)
    if recipe.trainer.kind == "sft":
        from scope.training import sft

        return sft.make_trainer(*arguments)
    if recipe.trainer.kind == "opsd":
        from scope.training import opsd

        return opsd.make_trainer(*arguments)
    from scope.training import dpo

    return dpo.make_trainer(*arguments, prepared.prompts())


def _run(
    recipe: Recipe,
    resolved: ResolvedModel,
    quartets: Sequence[Quartet],
    items: Sequence[Item],
    batch: Batch,
    wanted: dict[str, Any],
    folder: Path,
) -> None:
    import datasets
    import transformers
    from transformers.integrations.deepspeed import unset_hf_deepspeed_config

    from scope.training import dev, trackers
    from scope.training.callbacks import checkpoints, drop_incomplete

    watched = dev.dev_items(recipe, quartets)
    tokenizer = load_tokenizer(resolved)
    prepared = prepare(recipe, tokenizer, quartets, items)
    rows, facts = planned(recipe, prepared, batch)
    if is_main():
        print(describe(recipe, facts))
        drop_incomplete(folder)
        artifacts.write_jsonl(folder / "plan.jsonl", map(plan_line, rows))
    transformers.set_seed(recipe.training_seed)
    began = time.monotonic()
    launcher = os.environ.get("ACCELERATE_MIXED_PRECISION")
    trainer = make_trainer(recipe, resolved, tokenizer, prepared, datasets.Dataset.from_list(rows), batch, folder)
    dev.watch(trainer, recipe, resolved, watched, folder)
    done = checkpoints(folder)
    resumed = max(done) if done else None
    if resumed is not None and is_main():
        print(f"train: going on from step {resumed} of {batch.max_steps}")
    result = trainer.train(resume_from_checkpoint=str(done[resumed]) if resumed is not None else None)
    with artifacts.replacing_folder(folder / "adapter") if is_main() else nullcontext() as target:
        trainer.save_model(str(target or folder / "adapter"))
    if not is_main():
        return
    config = json.loads((folder / "adapter" / "adapter_config.json").read_text("utf-8"))
    config |= {"base_model_name_or_path": recipe.model.base, "revision": resolved.revision}
    artifacts.write_json(folder / "adapter" / "adapter_config.json", config)
    artifacts.write_json(folder / "adapter" / "base.json", merge.base_record(resolved))
    artifacts.write_json(
        folder / "timings.json", {"seconds": time.monotonic() - began, "resumed_from": resumed, **result.metrics}
    )
    losses = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
    artifacts.finish(
        folder,
        stage=FOLDER,
        key=wanted,
        outputs=["adapter/adapter_model.safetensors", "adapter/adapter_config.json", "plan.jsonl"],
        seed=recipe.training_seed,
        facts=facts,
        precision={**trainer.precision, "launcher": launcher},
        step0_loss=at_start(trainer, "step0_loss"),
        reference_drift=at_start(trainer, "reference_drift"),
        first_loss=losses[0],
        last_loss=losses[-1],
        recipe=recipe.resolved(),
        command=recipe.command("train.py"),
    )
    trackers.finish(trainer, folder / "manifest.json")
    # Under ZeRO-3 models would go on being loaded in parts, by all processes; the main one merges alone.
    unset_hf_deepspeed_config()
    print(f"train: {batch.max_steps} steps, loss {losses[0]:.4f} -> {losses[-1]:.4f}; adapter in {folder / 'adapter'}")


def at_start(trainer: Any, name: str) -> float | None:
    """What DPO measured on its first micro-batch, also if this run was resumed; None where nothing was."""
    return next((entry[name] for entry in trainer.state.log_history if name in entry), None)


def describe(recipe: Recipe, facts: dict[str, Any]) -> str:
    """What will be trained, in the terms of the paper."""
    batch, overlong = facts["batch"], facts["overlong"]
    shares = [
        ", ".join(f"{condition} {100 * mass:.1f} %" for condition, mass in facts[which].items())
        for which in ("masses", "realised_masses")
    ]
    alone = f", {facts['alone']} left out as alone in their answer type" if facts["alone"] else ""
    return "\n".join(
        [
            f"train: {recipe.arm_name} ({recipe.trainer.kind}) on {facts['quartets']} quartets ({overlong['cut']} with "
            f"a cut prompt, {overlong['dropped']} dropped as overlong{alone})",
            f"train: {shares[0]}; realised {shares[1]}",
            f"train: {batch['global_batch']} rows a step = {batch['device_batch']} x {batch['accumulation']} "
            f"accumulated x {batch['world_size']} processes; {batch['max_steps']} steps, {facts['passes']:.1f} passes",
            *([_layouts(recipe)] if recipe.trainer.packing == "trie" else []),
        ]
    )


def _layouts(recipe: Recipe) -> str:
    flex = recipe.model.attn_implementation == "flex_attention"
    mask = "FlexAttention block masks" if flex else f"dense masks for {recipe.model.attn_implementation}"
    return f"train: every shared prefix once, in layouts of at most {recipe.trainer.pack_tokens} positions; {mask}"
