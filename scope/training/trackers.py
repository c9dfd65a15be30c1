"""Experiment trackers: transformers' callbacks for W&B, Trackio and TensorBoard, none of which can end a run."""

import functools
import importlib
import json
import os
import sys
import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from transformers import TrainerCallback
from transformers.integrations import get_reporting_integration_callbacks

from scope.recipe import Recipe, RecipeError

_MODULES = {"wandb": "wandb", "trackio": "trackio", "tensorboard": "torch.utils.tensorboard"}


def require(names: Sequence[str]) -> None:
    """RecipeError if one of these trackers cannot be imported."""
    for name in names:
        try:
            importlib.import_module(_MODULES[name])
        except Exception as error:
            raise RecipeError(
                f"trainer.report_to={name}: the tracker cannot be imported ({_sentence(error)}); "
                f"pip install {name}, or leave it out"
            ) from error


def _guarded(hook: Callable[..., None]) -> Callable[..., None]:
    """A hook whose failure silences its tracker."""

    @functools.wraps(hook)
    def attempt(self: "Tracker", *arguments: Any, **options: Any) -> None:
        if self.silent:
            return
        try:
            hook(self, *arguments, **options)
        except Exception as error:  # of any kind: the network, a full disk, the package's own fault
            self.silent = True
            print(
                f"train: {self.name} failed and gets no more reports ({_sentence(error)}); the run goes on",
                file=sys.stderr,
                flush=True,
            )

    return attempt


class Tracker(TrainerCallback):
    """One of transformers' tracker callbacks, in the main process, until it fails.

    Its first failure is said on stderr and it is not called again. `finish` ends it, once there is a manifest.
    """

    name: str

    def __init__(self, recipe: Recipe, folder: Path):
        self.recipe, self.folder = recipe, folder
        self.silent = False
        self.callback: Any = None
        self._end: Callable[[], None]

    def start(self, run_name: str) -> None:
        """What comes before the callback's own start."""

    def attach_recipe(self, recipe: dict[str, Any]) -> None:
        importlib.import_module(self.name).config.update({"recipe": recipe})

    def attach_manifest(self, path: Path) -> None:
        raise NotImplementedError

    @_guarded
    def on_train_begin(self, args: Any, state: Any, control: Any, **options: Any) -> None:
        self.silent = not state.is_world_process_zero
        if not self.silent:
            self.callback = get_reporting_integration_callbacks([self.name])[0]()
            self.start(args.run_name)
            self.callback.on_train_begin(args, state, control, **options)
            self.attach_recipe(self.recipe.resolved())

    @_guarded
    def on_log(self, args: Any, state: Any, control: Any, **options: Any) -> None:
        self.callback.on_log(args, state, control, **options)

    @_guarded
    def on_save(self, args: Any, state: Any, control: Any, **options: Any) -> None:
        self.callback.on_save(args, state, control, **options)

    def on_train_end(self, args: Any, state: Any, control: Any, **options: Any) -> None:
        self._end = lambda: self.callback.on_train_end(args, state, control, **options)

    @_guarded
    def finish(self, manifest: Path) -> None:
        """Training is over and its manifest written."""
        self.attach_manifest(manifest)
        self._end()


class Wandb(Tracker):
    """Online where WANDB_API_KEY is set or WANDB_MODE says so; else in the training folder, for `wandb sync`."""

    name = "wandb"

    def start(self, run_name: str) -> None:
        importlib.import_module("wandb").init(
            project=os.environ.get("WANDB_PROJECT", "scope"),
            name=run_name,
            dir=str(self.folder),
            mode=os.environ.get("WANDB_MODE") or ("online" if os.environ.get("WANDB_API_KEY") else "offline"),
            reinit="finish_previous",
        )

    def attach_manifest(self, path: Path) -> None:
        importlib.import_module("wandb").save(str(path), base_path=str(path.parent), policy="now", glob=False)


class Trackio(Tracker):
    """In trackio's own local folder."""

    name = "trackio"

    def attach_manifest(self, path: Path) -> None:
        importlib.import_module("trackio").log_artifact(str(path), name="manifest", type="manifest")


class TensorBoard(Tracker):
    """In the training folder, unless TENSORBOARD_LOGGING_DIR says otherwise; a resumed run goes on there."""

    name = "tensorboard"

    def start(self, run_name: str) -> None:
        self.callback.logging_dir = self.callback.logging_dir or str(self.folder / "tensorboard")

    def attach_recipe(self, recipe: dict[str, Any]) -> None:
        self._add("recipe", json.dumps(recipe, indent=2))

    def attach_manifest(self, path: Path) -> None:
        self._add("manifest", path.read_text("utf-8"))

    def _add(self, name: str, text: str) -> None:
        self.callback.tb_writer.add_text(name, textwrap.indent(text, "    "))  # as code in markdown


def callbacks(recipe: Recipe, folder: Path) -> list[Tracker]:
    """The recipe's trackers."""
    kinds = {kind.name: kind for kind in (Wandb, Trackio, TensorBoard)}
    return [kinds[name](recipe, folder) for name in recipe.trainer.report_to]


def finish(trainer: Any, manifest: Path) -> None:
    """Tell a trainer's trackers that training is over. The main process calls it."""
    for callback in trainer.callback_handler.callbacks:
        if isinstance(callback, Tracker):
            callback.finish(manifest)


def _sentence(error: Exception) -> str:
    """An error on one line."""
    return " ".join(f"{type(error).__name__}: {error}".split())
