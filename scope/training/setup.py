"""What every trainer of this project shares: arguments, LoRA, callbacks."""

import math
from pathlib import Path
from typing import Any

from scope.models import ResolvedModel, load_model, pick_dtype
from scope.recipe import Recipe
from scope.training.batch import Batch


def arguments(recipe: Recipe, batch: Batch, folder: Path) -> dict[str, Any]:
    """The transformers TrainingArguments that do not depend on the objective."""
    import torch

    settings = recipe.trainer
    return {
        "output_dir": str(folder),
        "learning_rate": settings.learning_rate,
        "lr_scheduler_type": settings.schedule,
        "warmup_steps": math.ceil(settings.warmup_ratio * settings.max_steps),
        "max_grad_norm": settings.max_grad_norm,
        "weight_decay": settings.weight_decay,
        "max_steps": settings.max_steps,
        "num_train_epochs": 1,
        "per_device_train_batch_size": settings.device_batch,
        "gradient_accumulation_steps": batch.accumulation,
        "gradient_checkpointing": settings.gradient_checkpointing,
        "gradient_checkpointing_kwargs": {"use_reentrant": False},
        "optim": "adamw_torch",
        "bf16": pick_dtype(recipe.model.dtype) == "bfloat16",
        "use_cpu": not torch.cuda.is_available(),
        "disable_dropout": True,
        "seed": recipe.training_seed,
        "data_seed": recipe.training_seed,
        "logging_steps": settings.logging_steps,
        "logging_first_step": True,
        "logging_nan_inf_filter": False,
        "save_strategy": "no",
        "report_to": "none",  # `callbacks` has the trackers
        "project": "scope",
        "run_name": f"{recipe.name}/{recipe.arm_name}",
        "remove_unused_columns": False,
        "dataloader_num_workers": 0,
        "dataloader_pin_memory": torch.cuda.is_available(),
        "ddp_find_unused_parameters": False,
    }


def lora(recipe: Recipe) -> Any:
    """The adapter's configuration."""
    from peft import LoraConfig

    settings = recipe.trainer
    return LoraConfig(
        r=settings.lora_r,
        lora_alpha=settings.lora_alpha,
        lora_dropout=settings.lora_dropout,
        target_modules=settings.lora_targets,
        task_type="CAUSAL_LM",
    )


def base_model(recipe: Recipe, resolved: ResolvedModel) -> Any:
    """The base in the training precision, on the CPU (the trainer moves it); quantised ones where they stay."""
    model = recipe.model
    device = "cpu" if model.quantization == "none" else "auto"
    return load_model(resolved, pick_dtype(model.dtype), model.attn_implementation, device, model.quantization)


def callbacks(recipe: Recipe, folder: Path) -> list[Any]:
    """Checkpoints, the kept log, trackers."""
    from scope.training import trackers
    from scope.training.callbacks import Checkpoints, Log

    return [
        Checkpoints(folder, recipe.trainer.checkpoint_steps, recipe.trainer.save_steps),
        Log(folder / "log.jsonl"),
        *trackers.callbacks(recipe, folder),
    ]


def finish(trainer: Any) -> Any:
    """Our progress line instead of transformers' dictionary; returns the trainer."""
    from transformers import ProgressCallback

    from scope.training.callbacks import Progress

    trainer.remove_callback(ProgressCallback)
    trainer.add_callback(Progress())
    return trainer
