"""`dry_run=true`: everything that can be checked and counted without loading a model, printed."""

from pathlib import Path

from scope import mining
from scope.artifacts import read_manifest
from scope.conditions import Condition
from scope.items import load_quartets
from scope.mining.select import load_leaks
from scope.pairs import arm_masses, construction, passes
from scope.pool import stage as pool
from scope.pool.compose import apportion, targets_of
from scope.pool.questions import PoolError
from scope.prompts import load_note, user_prompt
from scope.recipe import Recipe, asset
from scope.training.batch import batch_arithmetic

#: English text in the tokenizers at hand, for estimates only.
CHARACTERS_PER_TOKEN = 4.0

#: What a row is to each objective.
UNITS = {"dpo": "pairs", "sft": "responses", "opsd": "prompts"}


def preview(recipe: Recipe) -> Path:
    """Check keys, files, batch arithmetic and masses; print expected rows and tokens. Writes nothing."""
    masses = arm_masses(construction(recipe))
    batch = batch_arithmetic(recipe)
    load_note(asset(recipe.mining.note))
    load_leaks(asset(recipe.mining.leak_patterns))
    lines = [
        ("recipe", f"{recipe.name}, arm {recipe.arm_name}, seed {recipe.training_seed}, output in {recipe.root}"),
        ("base", recipe.model.base + (f" at {recipe.model.revision}" if recipe.model.revision else "")),
        *_pool_lines(recipe),
        ("mining", _mining(recipe)),
        ("masses", ", ".join(f"{c} {100 * masses[c]:g} %" for c in Condition)),
        (
            "batch",
            f"{batch.global_batch} {UNITS[recipe.trainer.kind]} a step = {batch.device_batch} a device x "
            f"{batch.accumulation} accumulated x {batch.world_size} process{'es' if batch.world_size > 1 else ''}",
        ),
        ("budget", f"{batch.max_steps} steps, {batch.rows} rows" + _passes(recipe, batch.rows)),
        ("objective", _objective(recipe)),
        (
            "optimiser",
            f"{recipe.trainer.schedule} from {recipe.trainer.learning_rate:g}, LoRA r {recipe.trainer.lora_r} alpha "
            f"{recipe.trainer.lora_alpha}",
        ),
        (
            "evaluation",
            f"{', '.join(recipe.evaluation.suites)}: systems {', '.join(recipe.evaluation.systems)}, up to "
            f"{recipe.evaluation.max_new_tokens} new tokens an answer",
        ),
    ]
    print("\n".join(f"{name:11} {text}" for name, text in lines))
    return recipe.root


def _mining(recipe: Recipe) -> str:
    if recipe.mining.quartets:
        return f"none: published quartets from {recipe.mining.quartets}"
    return f"fallback {recipe.mining.fallback}, up to {recipe.mining.max_new_tokens} new tokens a response"


def _pool_lines(recipe: Recipe) -> list[tuple[str, str]]:
    lines = []
    for which in ("train", "evaluation"):
        source = getattr(recipe.pool, which)
        on_hub = source not in (pool.AUTHORED, pool.COMPOSED) and not Path(source).suffix and source.count("/") == 1
        if on_hub and not Path(source).exists():
            lines.append((which, f"{source} (hub, read when the stage runs)"))
            continue
        if source == pool.COMPOSED:
            shares = targets_of(recipe.pool, pool.known_sources()).sources
            wanted = apportion(getattr(recipe.pool, f"n_{which}"), shares)
            mix = ", ".join(f"{name} {n or 'all'}" for name, n in wanted.items() if shares[name])
            lines.append((which, f"{getattr(recipe.pool, f'n_{which}')} items, composed when the stage runs: {mix}"))
            lines.append(("", _sources(recipe, which, wanted)))
            continue
        items, _ = pool.draw(recipe, which)
        tokens = sum(len(user_prompt(i, c)) for i in items for c in Condition) / CHARACTERS_PER_TOKEN
        lines.append(
            (which, f"{len(items)} items from {source}, 4 prompts each, about {tokens / 1000:.0f}k prompt tokens")
        )
    return lines


def _sources(recipe: Recipe, which: str, wanted: dict[str, int]) -> str:
    """What is known of a composed pool's sources before any is read; PoolError where one is missing that must not."""
    refuses = recipe.pool.missing_source == "refuse"
    if not recipe.data_dir:
        then = "one that cannot be had ends the run" if refuses else "authored items stand in for what cannot be had"
        return f"sources come from the hub and were not checked; {then}"
    missing = pool.unavailable(recipe, which)
    if not missing:
        return f"every source has its files in {recipe.data_dir}; they were not read"
    if refuses:
        raise PoolError("\n".join(missing.values()))
    lost = sum(wanted.get(name, 0) for name in missing)
    sets = [name for name in missing if name not in wanted]
    said = []
    if lost:
        named = ", ".join(f"{name} ({wanted[name]})" for name in missing if name in wanted)
        said.append(f"{recipe.data_dir} lacks {named}: {lost} authored items take their place")
    if sets:
        said.append(f"training is not kept clear of {', '.join(sets)}, which {recipe.data_dir} lacks")
    return "; ".join(said)


def _objective(recipe: Recipe) -> str:
    """What a row is and what its loss is, in one line."""
    trainer = recipe.trainer
    if trainer.kind == "sft":
        return "SFT: a row is a prompt and its chosen response, the loss is the response's likelihood"
    if trainer.kind == "opsd":
        return (
            f"OPSD: a row is a mined item's misleading prompt, the student samples up to {trainer.max_completion} "
            f"tokens; the teacher is the frozen base, which alone sees the note ({recipe.mining.note})"
        )
    return f"DPO: {trainer.loss} loss, beta {trainer.beta:g}, packing {trainer.packing}"


def _passes(recipe: Recipe, rows: int) -> str:
    """How often the run goes through the quartets; known once they are mined."""
    folder = recipe.folder(mining.FOLDER)
    if read_manifest(folder) is None:
        return "; how many quartets, and so passes over them, is unknown until they are mined"
    n = len(load_quartets(folder / "quartets.jsonl"))
    return f", {passes(n, construction(recipe), rows):.1f} passes ({n} quartets mined)"
