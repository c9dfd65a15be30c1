"""What is evaluated side by side: the base, the prompt defence, and trained or merged weights."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scope import artifacts, merge
from scope.artifacts import StageError
from scope.engines.base import known_as
from scope.models import ResolvedModel, resolve_model
from scope.prompts import Prompt, defended
from scope.recipe import Recipe

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
    sha256: str


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
        return [self.model.weights_sha256, self.adapter and self.adapter.sha256]

    def prompt(self, prompt: Prompt) -> Prompt:
        """What it is sent for a suite's prompt."""
        return defended(prompt) if self.name == "prompt_defense" else prompt


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
    command, weights = recipe.command("train.py"), {"weights": base.weights_sha256}
    if step := re.fullmatch(r"checkpoint-(\d+)", name):
        folder = recipe.folder(merge.TRAIN) / name
        if not (folder / "complete.json").exists():
            raise StageError(
                f"{folder}: there is no such checkpoint; set trainer.save_steps=[{step[1]}] and run: {command}"
            )
        return System(name, base, _adapter(folder))
    stage = merge.FOLDER if name == "merged" else merge.TRAIN
    manifest = artifacts.require(recipe.folder(stage), stage, command, weights)
    if name == "adapter":
        return System(name, base, Adapter(recipe.folder(stage) / "adapter", manifest["outputs"][WEIGHTS]))
    trained = artifacts.require(recipe.folder(merge.TRAIN), merge.TRAIN, command, weights)
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
    weights = folder / "adapter_model.safetensors"
    if not weights.is_file():
        raise StageError(f"{weights}: is missing; an adapter folder holds it beside adapter_config.json")
    return Adapter(folder, artifacts.file_hash(weights))
