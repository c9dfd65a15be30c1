"""What trainers on planned rows share: the rows they have seen, and a stop where a number is not finite."""

import math
from typing import Any

from scope.training import faults


class OnPlannedRows(faults.SaysWhyNotSaved):
    """Mixin before a transformers Trainer whose batches name their rows of the plan."""

    accelerator: Any
    train_dataset: Any

    def __init__(self, *arguments: Any, **options: Any):
        super().__init__(*arguments, **options)
        self.seen_rows: list[int] = []
        self._step_rows: list[int] = []

    def checked(self, loss: Any, rows: Any) -> Any:
        """The loss of a micro-batch (a scalar) with these rows; StageError in all processes if one's is not finite."""
        gathered = self.accelerator.gather(rows).tolist()
        everywhere = self.accelerator.gather(loss.detach().reshape(1)).mean().item()
        if not math.isfinite(everywhere):
            raise faults.not_finite("the loss", everywhere, self.state.global_step, gathered, self.train_dataset)
        self.seen_rows += gathered
        self._step_rows += gathered
        return loss

    def _get_grad_norm(self, model: Any, grad_norm: Any = None) -> Any:
        """The last look before the update: a gradient that is not finite must not reach the weights."""
        parent: Any = super()
        norm = parent._get_grad_norm(model, grad_norm=grad_norm)
        rows, self._step_rows = self._step_rows, []
        if norm is not None and not math.isfinite(norm):
            what = "the gradient's norm"
            raise faults.not_finite(what, float(norm), self.state.global_step, rows, self.train_dataset)
        return norm
