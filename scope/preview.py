"""`dry_run=true`: everything that can be checked and counted without loading a model, printed."""

from pathlib import Path

from scope import mining
from scope.artifacts import read_manifest
from scope.conditions import Condition
from scope.items import load_quartets
from scope.mining.select import load_leaks
from scope.pairs import arm_masses
from scope.pool import stage as pool
from scope.prompts import load_note, user_prompt
from scope.recipe import Recipe, asset
from scope.training.batch import batch_arithmetic

#: English text in the tokenizers at hand, for estimates only.
CHARACTERS_PER_TOKEN = 4.0


def preview(recipe: Recipe) -> Path:
    """Check keys, files, batch arithmetic and masses; print expected rows and tokens. Writes nothing."""
    masses = arm_masses(recipe.pairs)
    batch = batch_arithmetic(recipe)
    load_note(asset(recipe.mining.note))
    load_leaks(asset(recipe.mining.leak_patterns))
    lines = [
        ("recipe", f"{recipe.name}, arm {recipe.arm_name}, seed {recipe.seed}, output in {recipe.root}"),
        ("base", recipe.model.base + (f" at {recipe.model.revision}" if recipe.model.revision else "")),
        *_pool_lines(recipe),
        ("mining", f"fallback {recipe.mining.fallback}, up to {recipe.mining.max_new_tokens} new tokens a response"),
        ("masses", ", ".join(f"{c} {100 * masses[c]:g} %" for c in Condition)),
        (
            "batch",
            f"{batch.global_batch} pairs a step = {batch.device_batch} a device x {batch.accumulation} accumulated x "
            f"{batch.world_size} process{'es' if batch.world_size > 1 else ''}",
        ),
        ("budget", f"{batch.max_steps} steps, {batch.rows} rows" + _passes(recipe, masses, batch.rows)),
        (
            "optimiser",
            f"{recipe.trainer.schedule} from {recipe.trainer.learning_rate:g}, beta {recipe.trainer.beta:g}, LoRA r "
            f"{recipe.trainer.lora_r} alpha {recipe.trainer.lora_alpha}, packing {recipe.trainer.packing}",
        ),
        (
            "evaluation",
            f"{recipe.evaluation.suite}: systems {', '.join(recipe.evaluation.systems)}, up to "
            f"{recipe.evaluation.max_new_tokens} new tokens an answer",
        ),
    ]
    print("\n".join(f"{name:11} {text}" for name, text in lines))
    return recipe.root


def _pool_lines(recipe: Recipe) -> list[tuple[str, str]]:
    lines = []
    for which in ("train", "evaluation"):
        source = getattr(recipe.pool, which)
        on_hub = (
            source != pool.AUTHORED and not Path(source).exists() and source.count("/") == 1 and not Path(source).suffix
        )
        if on_hub:
            lines.append((which, f"{source} (hub, read when the stage runs)"))
            continue
        items = pool.draw(recipe, which)
        tokens = sum(len(user_prompt(i, c)) for i in items for c in Condition) / CHARACTERS_PER_TOKEN
        lines.append(
            (which, f"{len(items)} items from {source}, 4 prompts each, about {tokens / 1000:.0f}k prompt tokens")
        )
    return lines


def _passes(recipe: Recipe, masses: dict[Condition, float], rows: int) -> str:
    """How often the run goes through the quartets; known once they are mined."""
    folder = recipe.folder(mining.FOLDER)
    if read_manifest(folder) is None:
        n = recipe.expected_quartets
        if not n:
            return "; passes over the quartets are known once they are mined"
        source = f"{n} quartets expected"
    else:
        n = len(load_quartets(folder / "quartets.jsonl"))
        source = f"{n} quartets mined"
    return f", {rows * max(masses.values()) / n:.1f} passes ({source})"
