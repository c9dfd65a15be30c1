"""Global batch -> accumulation: the same batches on any number of devices."""

import os
from dataclasses import dataclass

from scope.recipe import Recipe, RecipeError


@dataclass(frozen=True, slots=True)
class Batch:
    """Pairs a step = device_batch x accumulation x world_size."""

    global_batch: int
    device_batch: int
    accumulation: int
    world_size: int
    max_steps: int

    @property
    def rows(self) -> int:
        """Rows (pairs under a prompt) of the whole run."""
        return self.global_batch * self.max_steps


def world_size() -> int:
    """Processes of this launch, as every launcher states them; 1 without one."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def batch_arithmetic(recipe: Recipe, world: int | None = None) -> Batch:
    """Derive the accumulation, or RecipeError with the nearest global batches that divide."""
    trainer = recipe.trainer
    world = world_size() if world is None else world
    unit = trainer.device_batch * world
    if trainer.global_batch % unit:
        below, above = trainer.global_batch // unit * unit, -(-trainer.global_batch // unit) * unit
        raise RecipeError(
            f"trainer.global_batch={trainer.global_batch} is not a multiple of trainer.device_batch="
            f"{trainer.device_batch} x {world} processes = {unit}; use "
            f"{' or '.join(str(n) for n in (below, above) if n)}, or another trainer.device_batch"
        )
    return Batch(trainer.global_batch, trainer.device_batch, trainer.global_batch // unit, world, trainer.max_steps)
