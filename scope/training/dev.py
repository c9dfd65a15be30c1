"""Held-out evaluation while a model trains: MIST's metrics on a small fixed slice at chosen steps.

The slice is a development split of its own, disjoint from the evaluation and the training items. It is watched, it
chooses nothing: no checkpoint is selected and no setting depends on it, and a run with it ends in the same adapter as
one without. Numbers go into the log and the trackers as `dev/METRIC`, every answer into `dev/step-N.parquet`.
"""

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from transformers import Trainer, TrainerCallback

from scope import artifacts
from scope.artifacts import StageError
from scope.engines import Store, shards
from scope.engines.transformers import TransformersEngine
from scope.evaluation import outcomes as table
from scope.evaluation.stage import ask
from scope.evaluation.suites import SUITES
from scope.evaluation.systems import System
from scope.items import Item, Quartet, load_items, normalised_question
from scope.mining.imported import shared
from scope.models import ResolvedModel
from scope.pool import build_authored
from scope.pool import stage as pool
from scope.pool.drawing import AUTHORED
from scope.recipe import Recipe
from scope.training.faults import wait_for_all

FOLDER = "dev"
SUITE = SUITES["mist"]


def dev_items(recipe: Recipe, quartets: Sequence[Quartet]) -> list[Item]:
    """The slice, none without dev.steps; StageError if it shares an item or a question with what is trained on or
    evaluated on."""
    dev = recipe.dev
    if not dev.steps:
        return []
    if dev.items == AUTHORED:
        families = recipe.pool.families or None
        items = build_authored(
            dev.n, recipe.pool_seed, dev.split, recipe.pool.tier, families, irrelevant=recipe.pool.irrelevant
        )
    else:
        items = load_items(dev.items, dev.split, recipe.pool.columns, recipe.pool.on_bad_row)[: dev.n or None]
    if not items:
        raise StageError(f"dev.items={dev.items} holds no items; name another file, or set dev.steps=[]")
    held, _ = pool.evaluation(recipe)
    evaluated = {item.id for item in held} | {normalised_question(item) for item in held}
    trained = shared(quartets, items)
    for item in items:
        if {item.id, normalised_question(item)} & evaluated or (trained and shared(quartets, [item])):
            raise StageError(
                f"dev.items={dev.items}: item {item.id} is also trained on or evaluated on; take it out, or name items "
                "of their own"
            )
    return items


class Live(TransformersEngine):
    """The model as it stands in training. Its completions are keyed by the adapter's bytes at that step."""

    def __init__(self, model: Any, resolved: ResolvedModel, recipe: Recipe):
        super().__init__(resolved, recipe.model, recipe.engine)
        self._model = model
        settings = recipe.trainer
        self._adapter = [_hashed(model), settings.lora_r, settings.lora_alpha, settings.lora_targets]

    def identity(self) -> dict[str, Any]:
        return {**super().identity(), "kind": "training", "adapter": self._adapter}


def _hashed(model: Any) -> str:
    """SHA-256 of the adapter's tensors as they are now."""
    from peft import get_peft_model_state_dict

    digest = hashlib.sha256()
    for name, tensor in sorted(get_peft_model_state_dict(model).items()):
        digest.update(name.encode() + tensor.detach().float().cpu().numpy().tobytes())
    return digest.hexdigest()


class Watch(TrainerCallback):
    """Evaluates the slice after the chosen steps; step 0 is the base."""

    def __init__(self, trainer: Any, recipe: Recipe, resolved: ResolvedModel, items: Sequence[Item], folder: Path):
        self.trainer, self.recipe, self.resolved, self.items = trainer, recipe, resolved, items
        self.folder = folder / FOLDER

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if state.global_step == 0:
            self._look(0, control)

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self._look(state.global_step, control)

    def _look(self, step: int, control: Any) -> None:
        if step not in self.recipe.dev.steps:
            return
        model = self.trainer.accelerator.unwrap_model(self.trainer.model)
        training = model.training
        model.eval()
        try:
            rows = self._rows(Live(model, self.resolved, self.recipe))
        finally:
            model.train(training)
        by_cell = {cell: [row for row in rows if row["cell"] == cell] for cell in SUITE.cells}
        rates = {name: rate.estimate() for name, rate in SUITE.rates(self.items, by_cell).items()}
        # Not the trainer's own `log`: TRL's would empty the step's metrics into this line, and the step's is still due.
        due = control.should_log
        Trainer.log(self.trainer, {f"dev/{name}": rate for name, rate in rates.items() if rate is not None})
        control.should_log = due
        if shards.is_main():
            artifacts.write_parquet(self.folder / f"step-{step}.parquet", table.split(rows)[0])
        wait_for_all()

    def _rows(self, engine: Live) -> list[dict[str, Any]]:
        store = Store(self.recipe.folder("store") / "completions.sqlite")
        rows = list(ask(self.recipe, SUITE, System("training", self.resolved), engine, self.items, store))
        store.close()
        return rows


def watch(trainer: Any, recipe: Recipe, resolved: ResolvedModel, items: Sequence[Item], folder: Path) -> None:
    """Have the slice evaluated during `trainer.train()`, if there is one."""
    if not items:
        return
    if trainer.is_fsdp_enabled or (trainer.is_deepspeed_enabled and _stage(trainer) == 3):
        raise StageError(
            "dev.steps: a model whose weights are split over processes cannot answer while it trains; set dev.steps=[] "
            "and evaluate checkpoints instead (trainer.save_steps, then systems=[checkpoint-STEP])"
        )
    trainer.add_callback(Watch(trainer, recipe, resolved, items, folder))


def _stage(trainer: Any) -> int:
    return int(trainer.accelerator.state.deepspeed_plugin.zero_stage)
