"""What trainers on planned rows share: the rows they have seen, their pace, and a stop where a number is not finite."""

import math
import time
from typing import Any

import torch

from scope.engines.memory import resident_gb
from scope.training import faults

#: What a log line holds of the machine and not of the work: it differs from run to run.
TIMINGS = (
    "tokens_per_second",
    "memory_gb",
    "train_runtime",
    "train_samples_per_second",
    "train_steps_per_second",
)


class OnPlannedRows(faults.SaysWhyNotSaved):
    """Mixin before a transformers Trainer whose batches name their rows of the plan."""

    accelerator: Any
    train_dataset: Any
    packing = "none"

    def __init__(self, *arguments: Any, **options: Any):
        super().__init__(*arguments, **options)
        self.seen_rows: list[int] = []
        self._step_rows: list[int] = []
        self._tokens = self._positions = 0  # of this process since the last log
        self._last_log: float | None = None

    def training_step(self, *arguments: Any, **options: Any) -> Any:
        if self._last_log is None:
            self._last_log = time.monotonic()
        parent: Any = super()
        return parent.training_step(*arguments, **options)

    def check(self, loss: Any, rows: Any, mask: Any, positions: int | None = None) -> float:
        """Note a micro-batch: its loss over all processes, or StageError in all of them if it is not finite.

        loss: scalar. rows: its rows' numbers in the plan. mask: 1 at the tokens of its sequences, 0 at padding.
        positions: how many the model computed, by default all of `mask`.
        """
        gathered = self.accelerator.gather(rows).tolist()
        # The mean over all processes is not finite if one of theirs is not, so all of them stop.
        everywhere = self.accelerator.gather(loss.detach().reshape(1)).mean().item()
        if not math.isfinite(everywhere):
            raise faults.not_finite("the loss", everywhere, self.state.global_step, gathered, self.train_dataset)
        self.seen_rows += gathered
        self._step_rows += gathered
        self._tokens += int(mask.sum())
        self._positions += mask.numel() if positions is None else positions
        return everywhere

    def _get_grad_norm(self, model: Any, grad_norm: Any = None) -> Any:
        """The last look before the update: a gradient that is not finite must not reach the weights."""
        parent: Any = super()
        norm = parent._get_grad_norm(model, grad_norm=grad_norm)
        rows, self._step_rows = self._step_rows, []
        if norm is not None and not math.isfinite(norm):
            what = "the gradient's norm"
            raise faults.not_finite(what, float(norm), self.state.global_step, rows, self.train_dataset)
        return norm

    def log(self, logs: dict[str, float], *arguments: Any, **options: Any) -> None:
        if "loss" in logs:
            logs.update(self._pace())
        parent: Any = super()
        parent.log(logs, *arguments, **options)

    def _pace(self) -> dict[str, float]:
        """Since the last log, over all processes: tokens a second, the share of padding, the largest memory.

        A prompt's tokens count once before each of its responses. With a trie nothing is padded; logged instead is
        the share of the tokens that it did not compute again.
        """
        now = time.monotonic()
        here = [self._tokens, self._positions, memory_gb()]
        everywhere = self.accelerator.gather(torch.tensor([here], dtype=torch.float64, device=self.accelerator.device))
        tokens, positions = everywhere[:, :2].sum(dim=0).tolist()
        seconds = now - (self._last_log or now)
        share = {"padding_share": 1 - tokens / positions}
        if self.packing == "trie":
            share = {"shared_share": 1 - positions / tokens}
        self._tokens = self._positions = 0
        self._last_log = now
        return {"tokens_per_second": tokens / seconds, **share, "memory_gb": everywhere[:, 2].max().item()}


def memory_gb() -> float:
    """Peak memory on the GPU, or what the process holds now where there is none, in GB."""
    return torch.cuda.max_memory_allocated() / 1e9 if torch.cuda.is_available() else resident_gb()
