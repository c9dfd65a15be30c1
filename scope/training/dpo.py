"""Preference optimisation: TRL's DPOTrainer with this project's rows, LoRA and checkpoints."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from scope.models import ResolvedModel
from scope.recipe import Recipe
from scope.training import setup
from scope.training.batch import Batch


def make_trainer(
    recipe: Recipe,
    resolved: ResolvedModel,
    tokenizer: Any,
    rows: Any,
    batch: Batch,
    folder: Path,
    prompts: Iterable[Sequence[Sequence[int]]] = (),
) -> Any:
    """A DPO trainer on planned rows (`scope.training.planned_rows`).

    prompts: the four prompts of each quartet (token ids), whose reference is computed and kept together.
    """
    from trl import DPOConfig

    from scope.training import reference
    from scope.training.packing import add_packed_head, check_supported
    from scope.training.preference import Collator, PreferenceTrainer

    settings = recipe.trainer
    model = setup.base_model(recipe, resolved)
    if settings.packing == "trie":
        check_supported(model.config)
    trainer = PreferenceTrainer(
        model=model,
        args=DPOConfig(
            **setup.arguments(recipe, batch, folder), loss_type=[settings.loss], beta=settings.beta, max_length=None
        ),
        train_dataset=rows,
        processing_class=tokenizer,
        data_collator=Collator(pad_token_id=tokenizer.pad_token_id),
        peft_config=setup.lora(recipe),
        callbacks=setup.callbacks(recipe, folder),
        packing=settings.packing,
        pack_tokens=settings.pack_tokens,
        reference=reference.plan(recipe, resolved, rows, prompts) if reference.is_kept(recipe) else None,
    )
    if settings.packing == "trie":
        network: Any = trainer.model
        add_packed_head(network.get_base_model())
    return setup.finish(trainer, recipe)
