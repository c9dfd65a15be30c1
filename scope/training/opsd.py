"""On-policy self-distillation: TRL's SDFTTrainer on the misleading prompts of the mined items.

The student samples a response to the misleading prompt; the frozen base, which is also shown the
private diagnostic note, is its teacher: forward KL over the full vocabulary at every sampled
token. The student's inputs never hold the note.
"""

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from trl.experimental.sdft import SDFTConfig, SDFTTrainer

from scope.conditions import Condition
from scope.engines.decoding import GENERATION
from scope.engines.transformers import render
from scope.items import Item, Quartet
from scope.models import ResolvedModel
from scope.prompts import as_messages, gold_text, load_note
from scope.recipe import Recipe, asset
from scope.training import setup
from scope.training.base import OnPlannedRows
from scope.training.batch import Batch

#: How `scope.prompts.diagnostic_prompt` puts a note behind a prompt.
TEACHER_PROMPT = "{prompt}\n\n{privileged_context}"


def distillation_rows(
    recipe: Recipe, tokenizer: Any, quartets: Sequence[Quartet], items: Sequence[Item]
) -> list[dict[str, Any]]:
    """One row a quartet: the student's messages and the note the teacher sees behind them.

    items: where the note finds the gold answer's option; published quartets have none, only its letter.
    A quartet whose teacher prompt exceeds `trainer.max_length` is left out, since TRL would cut it.
    """
    note = load_note(asset(recipe.mining.note))
    known = {item.id: item for item in items}
    rows = []
    for quartet in quartets:
        item = known.get(quartet.item_id)
        private = note.format(gold=gold_text(item) if item else quartet.gold)
        prompt = quartet.prompt(Condition.MISLEADING)
        shown = TEACHER_PROMPT.format(prompt=prompt, privileged_context=private)
        if len(render(tokenizer, shown, recipe.model.chat_template_kwargs)) <= recipe.trainer.max_length:
            rows.append(
                {
                    "item_id": quartet.item_id,
                    "pair_id": quartet.item_id,
                    "condition": str(Condition.MISLEADING),
                    "prompt": as_messages(prompt),
                    "privileged_context": private,
                }
            )
    return rows


class DistillationTrainer(OnPlannedRows, SDFTTrainer):
    """SDFT on planned rows. The dataset's columns are prompt, privileged_context, row, item_id."""

    def _generate(self, prompt_ids: Any) -> Any:
        # A step's samples depend on (weights, seed, step, process) alone, so a resumed run draws them again.
        own = random.Random(f"{self.args.seed}:{self.state.global_step}:{self.accelerator.process_index}")
        torch.manual_seed(own.getrandbits(63))
        return super()._generate(prompt_ids)

    def _prepare_training_batch(self, inputs: list[dict[str, Any]]) -> Any:
        batch = super()._prepare_training_batch(inputs)
        batch["row"] = torch.tensor([example["row"] for example in inputs], device=self.accelerator.device)
        return batch

    def compute_loss(self, model: Any, inputs: Any, *arguments: Any, **options: Any) -> Any:
        loss = super().compute_loss(model, inputs, *arguments, **options)
        self.check(loss, inputs["row"], torch.cat([inputs["prompt_mask"], inputs["completion_mask"]], dim=1))
        return loss


def sampler() -> dict[str, Any]:
    """GenerationConfig's fields for the student: it samples from its own distribution, nothing cut off."""
    return {**{name: value for name, value in GENERATION.items() if name != "disable_compile"}, "temperature": 1.0}


def sampling_arguments() -> dict[str, Any]:
    """The same as SDFTConfig's: those it has fields for, and the others; else TRL's defaults would stand."""
    own = ("temperature", "top_p", "top_k", "min_p", "repetition_penalty")
    fields = sampler()
    rest = {name: value for name, value in fields.items() if name not in own}
    return {**{name: fields[name] for name in own}, "generation_kwargs": rest}


def make_trainer(recipe: Recipe, resolved: ResolvedModel, tokenizer: Any, rows: Any, batch: Batch, folder: Path) -> Any:
    """An OPSD trainer on planned rows (`scope.training.planned_rows`)."""
    settings = recipe.trainer
    trainer = DistillationTrainer(
        model=setup.base_model(recipe, resolved),
        args=SDFTConfig(
            **setup.arguments(recipe, batch, folder),
            distillation_mode="full_logits",
            distillation_alpha=0.0,
            distillation_is_clip=None,
            teacher_model_kind="base",
            teacher_prompt_template=TEACHER_PROMPT,
            num_generations=1,
            shuffle_dataset=False,
            max_prompt_length=settings.max_length,
            max_completion_length=settings.max_completion,
            **sampling_arguments(),
            chat_template_kwargs=recipe.model.chat_template_kwargs,
        ),
        train_dataset=rows,
        processing_class=tokenizer,
        peft_config=setup.lora(recipe),
        callbacks=setup.callbacks(recipe, folder),
    )
    return setup.finish(trainer, recipe)
