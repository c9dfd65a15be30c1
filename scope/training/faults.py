"""What can go wrong while a trainer runs, agreed on by all processes and said in a sentence.

A fault seen by one process alone would leave the others waiting for it in their next collective call,
so each is first made known to all.
"""

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from scope.artifacts import StageError

NAMED = 32  # most rows a sentence lists


def anywhere(here: bool, device: Any) -> bool:
    """Whether any process says so. Every process calls it; without a launcher it is `here` itself."""
    import torch.distributed as dist

    if not (dist.is_available() and dist.is_initialized()) or dist.get_world_size() == 1:
        return here
    import torch

    flag = torch.tensor(int(here), device=device)
    dist.all_reduce(flag, op=dist.ReduceOp.MAX)
    return bool(flag.item())


def wait_for_all() -> None:
    """A barrier; nothing without a launcher."""
    import torch.distributed as dist

    if dist.is_available() and dist.is_initialized():
        dist.barrier()


def not_finite(what: str, value: float, step: int, rows: Sequence[int], dataset: Any) -> StageError:
    """The refusal of a loss or gradient, with the rows of the plan it was computed on and their items."""
    named = ", ".join(f"{row} ({dataset[row]['item_id']})" for row in rows[:NAMED])
    named += f" and {len(rows) - NAMED} more" * (len(rows) > NAMED)
    return StageError(
        f"{what} is {value} at step {step}; its rows in plan.jsonl are {named}. The checkpoints saved before are "
        "kept; lower trainer.learning_rate, or look at these rows"
    )


@contextmanager
def saving(folder: Path, step: int, device: Any) -> Iterator[None]:
    """Writing a checkpoint: a full disk, in any process, ends all of them and leaves no torn one behind."""
    failure: Exception | None = None
    try:
        yield
    except Exception as error:  # a full disk is an OSError, RuntimeError, SafetensorError or bare Exception by writer
        failure = error
    if anywhere(failure is not None, device):
        shutil.rmtree(folder / f"checkpoint-{step}", ignore_errors=True)
        raise StageError(
            f"{folder / f'checkpoint-{step}'}: cannot be written ({failure or 'in another process'}); the checkpoint "
            "before it is kept. Free space on the disk and run the same command again"
        ) from failure


class SaysWhyNotSaved:
    """Mixin before a transformers Trainer: its checkpoints are written under `saving`."""

    args: Any
    state: Any

    def _save_checkpoint(self, model: Any, trial: Any) -> None:
        parent: Any = super()
        with saving(Path(self.args.output_dir), self.state.global_step, self.args.device):
            parent._save_checkpoint(model, trial)
