"""What every trainer of this project shares: arguments, LoRA, callbacks."""

import math
import os
from pathlib import Path
from typing import Any

from scope.artifacts import StageError
from scope.engines.shards import is_main
from scope.models import ResolvedModel, load_model, pick_dtype
from scope.recipe import Recipe
from scope.training.batch import Batch

LAUNCHER = "ACCELERATE_MIXED_PRECISION"


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
        "bf16": settle_precision(recipe) == "bf16",
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


def settle_precision(recipe: Recipe) -> str:
    """accelerate's name for the precision of `model.dtype`, `bf16` or `no`; another that a launcher names is overruled.

    transformers and accelerate read ACCELERATE_MIXED_PRECISION, which accelerate's default configuration and its launch
    files export, wherever the recipe asks for fp32.
    """
    wanted = "bf16" if pick_dtype(recipe.model.dtype) == "bfloat16" else "no"
    said = os.environ.get(LAUNCHER, "").lower()
    if said not in ("", "no", wanted) and is_main():
        print(
            f"train: the launcher asks for mixed_precision={said}; model.dtype={recipe.model.dtype} decides, "
            f"so that mixed_precision={wanted} is used"
        )
    os.environ[LAUNCHER] = wanted
    return wanted


def precision(trainer: Any, recipe: Recipe) -> dict[str, Any]:
    """What a trainer computes in: autocast's dtype, and the numbers of parameters of each dtype, trained and frozen.

    StageError if it is not what `model.dtype` says: a DeepSpeed or FSDP configuration can set it by another way.
    """
    import torch

    wanted = pick_dtype(recipe.model.dtype)
    accelerator = trainer.accelerator
    found = "bfloat16" if accelerator.mixed_precision == "bf16" else accelerator.mixed_precision
    if found != (wanted if wanted == "bfloat16" else "no"):
        raise StageError(
            f"model.dtype={recipe.model.dtype} asks for {wanted}, and the launcher's configuration trains with "
            f"mixed precision {found}; take it out of the DeepSpeed or FSDP configuration, or set model.dtype"
        )
    counts: dict[str, dict[str, int]] = {"trained": {}, "frozen": {}}
    for parameter in trainer.model.parameters():
        kind = counts["trained" if parameter.requires_grad else "frozen"]
        name = str(parameter.dtype).removeprefix("torch.")
        kind[name] = kind.get(name, 0) + parameter.numel()
    return {"autocast": found, **counts, "matmul": torch.get_float32_matmul_precision()}


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


def finish(trainer: Any, recipe: Recipe) -> Any:
    """Our progress line instead of transformers' dictionary, and the precision checked; returns the trainer."""
    from transformers import ProgressCallback

    from scope.training.callbacks import Progress

    trainer.precision = precision(trainer, recipe)
    trainer.remove_callback(ProgressCallback)
    trainer.add_callback(Progress())
    return trainer
