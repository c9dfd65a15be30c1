"""What is evaluated side by side: the base, the prompt defence, and trained or merged weights."""

import dataclasses
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scope import artifacts, merge
from scope.artifacts import StageError
from scope.engines.base import known_as
from scope.models import ResolvedModel, adapter_identity, pick_dtype, resolve_model
from scope.prompts import Prompt, defended
from scope.recipe import Recipe
from scope.schema import ModelConfig

#: Systems that need no training.
UNTRAINED = ("base", "prompt_defense")
WEIGHTS = "adapter/adapter_model.safetensors"


def is_trained(name: str) -> bool:
    """Whether a system of this name is what the recipe's own training made."""
    return name in ("adapter", "merged") or name.startswith("checkpoint-")


@dataclass(frozen=True, slots=True)
class Adapter:
    """A trained adapter as an engine loads it."""

    path: Path
    sha256: str  # of its weights and their configuration


@dataclass(frozen=True, slots=True)
class System:
    """What answers: a model, with an adapter or without. model is None where a server holds it."""

    name: str
    model: ResolvedModel | None
    adapter: Adapter | None = None

    def identity(self, recipe: Recipe) -> list[Any]:
        """What tells it from another of the same name: hashes of its weights, or how a server knows it."""
        if self.model is None:
            engine = recipe.engine
            served = engine.server or engine.azure.endpoint or engine.base_url
            return [f"{known_as(recipe.model, engine)} at {served}", None]
        return [self.model.weights_sha256, self.adapter and self.adapter.sha256, self.model.identity]

    def settings(self, recipe: Recipe) -> ModelConfig:
        """How it is loaded: as `model` says, but merged weights that were kept in fp32 are never rounded after all.

        Flash attention refuses fp32, so sdpa takes its place then.
        """
        dtype = pick_dtype(recipe.model.dtype)
        if self.model is None or dtype == "float32" or merge.saved_dtype(self.model.path) != "float32":
            return recipe.model
        attention = recipe.model.attn_implementation
        attention = "sdpa" if attention == "flash_attention_2" else attention
        return dataclasses.replace(recipe.model, dtype="float32", attn_implementation=attention)

    def precision(self, recipe: Recipe) -> str | None:
        """The dtype it is computed in; None of a server's."""
        return None if self.model is None else pick_dtype(self.settings(recipe).dtype)

    def prompt(self, prompt: Prompt) -> Prompt:
        """What it is sent for a suite's prompt."""
        return defended(prompt) if self.name == "prompt_defense" else prompt


def precisions(recipe: Recipe, systems: Sequence[System]) -> dict[str, str | None]:
    """System -> the dtype it is computed in."""
    return {system.name: system.precision(recipe) for system in systems}


def precision_facts(found: Mapping[str, str | None]) -> dict[str, str]:
    """What a reader of the results is told of the dtypes."""
    kinds = sorted({dtype for dtype in found.values() if dtype})
    if len(kinds) < 2:
        return {"precision": kinds[0]} if kinds else {}
    each = ", ".join(f"{name} in {dtype}" for name, dtype in found.items())
    return {"precision": f"{each}: a difference between them is also one of precision; model.dtype=float32 has none"}


def open_systems(recipe: Recipe) -> list[System]:
    """The recipe's systems; StageError with the command to run where one is not trained or merged yet."""
    if recipe.engine.kind == "openai":
        return [_served(recipe, name) for name in recipe.evaluation.systems]
    base = resolve_model(recipe.model.base, recipe.model.revision, recipe.model.mirror)
    return [_system(recipe, name, base) for name in recipe.evaluation.systems]


def _served(recipe: Recipe, name: str) -> System:
    if name not in UNTRAINED:
        raise StageError(
            f"evaluation.systems={name}: a server answers with what it serves; serve the weights (vllm serve FOLDER), "
            "set engine.model to their name and evaluate them as systems=[base] in a run of their own"
        )
    return System(name, None)


def _system(recipe: Recipe, name: str, base: ResolvedModel) -> System:
    if name in UNTRAINED:
        return System(name, base)
    if name in recipe.evaluation.models:
        return _named(name, recipe.evaluation.models[name], base)
    command, made_on = recipe.command("train.py"), {"weights": base.weights_sha256, "identity": base.identity}
    if step := re.fullmatch(r"checkpoint-(\d+)", name):
        folder = recipe.folder(merge.TRAIN) / name
        if not (folder / "complete.json").exists():
            raise StageError(
                f"{folder}: there is no such checkpoint; set trainer.save_steps=[{step[1]}] and run: {command}"
            )
        return System(name, base, _adapter(folder))
    stage = merge.FOLDER if name == "merged" else merge.TRAIN
    manifest = artifacts.require(recipe.folder(stage), stage, command, made_on)
    if name == "adapter":
        return System(name, base, _adapter(recipe.folder(stage) / "adapter"))
    trained = artifacts.require(recipe.folder(merge.TRAIN), merge.TRAIN, command, made_on)
    if manifest["key"]["adapter"] != trained["outputs"][WEIGHTS]:
        raise StageError(f"{recipe.folder(stage)}: was merged from another adapter; run: {command}")
    return System(name, resolve_model(str(recipe.folder(stage).resolve())))


def _named(name: str, place: str, base: ResolvedModel) -> System:
    """A model or an adapter of the base from elsewhere: a folder, or a model's hub id."""
    folder = Path(place)
    if not (folder / "adapter_config.json").is_file():
        return System(name, resolve_model(place))
    merge.check_base(folder, base)
    return System(name, base, _adapter(folder))


def _adapter(folder: Path) -> Adapter:
    for file in (folder / "adapter_model.safetensors", folder / "adapter_config.json"):
        if not file.is_file():
            raise StageError(f"{file}: is missing; an adapter folder holds its weights and their configuration")
    return Adapter(folder, artifacts.fingerprint(adapter_identity(folder)))
