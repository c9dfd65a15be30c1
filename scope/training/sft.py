"""Supervised fine-tuning: TRL's SFTTrainer on the rows DPO would see, chosen responses only.

The likelihood is TRL's: the mean over all completion tokens of an optimizer step, whatever the
device batch and accumulation. What is added: rows come tokenised, in the plan's order, with the
prompt masked by position; a loss that is not finite stops the run.
"""

from pathlib import Path
from typing import Any

import torch
from torch.utils.data import SequentialSampler
from trl import SFTConfig, SFTTrainer
from trl.trainer.sft_trainer import DataCollatorForLanguageModeling
from trl.trainer.utils import disable_dropout_in_model

from scope.models import ResolvedModel
from scope.recipe import Recipe
from scope.training import setup
from scope.training.base import OnPlannedRows
from scope.training.batch import Batch


class Collator(DataCollatorForLanguageModeling):
    """Planned rows -> TRL's batch of prompt and chosen response, and each row's number in the plan."""

    def torch_call(self, examples: list[dict[str, Any]]) -> dict[str, Any]:
        batch = super().torch_call(
            [
                {
                    "input_ids": [*example["prompt_ids"], *example["chosen_ids"]],
                    "labels": [-100] * len(example["prompt_ids"]) + example["chosen_ids"],
                }
                for example in examples
            ]
        )
        batch["row"] = torch.tensor([example["row"] for example in examples])
        return batch


class LikelihoodTrainer(OnPlannedRows, SFTTrainer):
    """SFT on planned rows. The dataset's columns are prompt_ids, chosen_ids, row, item_id."""

    def _get_train_sampler(self, train_dataset: Any = None) -> Any:
        rows: Any = self.train_dataset if train_dataset is None else train_dataset
        return SequentialSampler(rows)

    def compute_loss(self, model: Any, inputs: Any, *arguments: Any, **options: Any) -> Any:
        rows, mask = inputs.pop("row"), inputs["attention_mask"]
        loss = super().compute_loss(model, inputs, *arguments, **options)
        self.check(loss, rows, mask)
        return loss


def make_trainer(recipe: Recipe, resolved: ResolvedModel, tokenizer: Any, rows: Any, batch: Batch, folder: Path) -> Any:
    """An SFT trainer on planned rows (`scope.training.planned_rows`)."""
    arguments = setup.arguments(recipe, batch, folder)
    model = setup.base_model(recipe, resolved)
    if arguments.pop("disable_dropout"):
        disable_dropout_in_model(model)
    trainer = LikelihoodTrainer(
        model=model,
        args=SFTConfig(**arguments, max_length=None, dataset_kwargs={"skip_prepare_dataset": True}),
        train_dataset=rows,
        processing_class=tokenizer,
        data_collator=Collator(pad_token_id=tokenizer.pad_token_id),
        peft_config=setup.lora(recipe),
        callbacks=setup.callbacks(recipe, folder),
    )
    return setup.finish(trainer, recipe)
