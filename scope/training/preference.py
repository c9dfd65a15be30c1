"""The preference trainer: TRL's DPOTrainer on rows that are already decided, tokenised and ordered.

The loss, the metrics and the optimisation are TRL's. What is added: rows come in the plan's order,
rewards are logged by condition, step 0 is checked against ln 2, a loss that is not finite stops
the run, and with `packing=trie` the forward pass computes every shared prefix once.
"""

import math
from typing import Any

import torch
from torch.utils.data import SequentialSampler
from trl import DPOTrainer
from trl.trainer.dpo_trainer import DataCollatorForPreference

from scope.artifacts import StageError
from scope.conditions import Condition
from scope.training.packing import packed_forward

LN2 = math.log(2.0)
STEP0_TOLERANCE = 1e-3

_CONDITIONS = tuple(Condition)


class Collator(DataCollatorForPreference):
    """TRL's collator, which also carries each row's number in the plan and its condition."""

    def torch_call(self, examples: list[dict[str, Any]]) -> dict[str, Any]:
        batch = super().torch_call(examples)
        batch["row"] = torch.tensor([example["row"] for example in examples])
        batch["condition"] = torch.tensor([_CONDITIONS.index(example["condition"]) for example in examples])
        return batch


class PreferenceTrainer(DPOTrainer):
    """DPO on planned rows. The dataset's columns are prompt_ids, chosen_ids, rejected_ids, row, condition."""

    def __init__(self, *arguments: Any, packing: str, **options: Any):
        super().__init__(*arguments, **options)
        self.packing = packing
        # Reference log-probabilities always reach the loss through the batch, see `_compute_loss`.
        self.precompute_ref_logps = True
        self.step0_loss: float | None = None
        self.seen_rows: list[int] = []

    def _prepare_dataset(self, dataset: Any, *_: Any, **__: Any) -> Any:
        return dataset

    def _get_train_sampler(self, train_dataset: Any = None) -> Any:
        rows: Any = self.train_dataset if train_dataset is None else train_dataset
        return SequentialSampler(rows)

    def compute_ref_log_probs(self, model: Any, inputs: Any) -> Any:
        return super().compute_ref_log_probs(self._forward(model), inputs)

    def _forward(self, model: Any) -> Any:
        return packed_forward(model) if self.packing == "trie" else model

    def _compute_loss(self, model: Any, inputs: Any, return_outputs: bool) -> Any:
        rows, conditions = inputs.pop("row"), inputs.pop("condition")
        chosen, rejected = self.compute_ref_log_probs(self.model, inputs)
        inputs = {**inputs, "ref_chosen_logps": chosen, "ref_rejected_logps": rejected}
        recorder = _Recorder(self._forward(model))
        loss = super()._compute_loss(recorder, inputs, False)
        if not torch.isfinite(loss):
            raise StageError(
                f"the loss is {loss.item()} at step {self.state.global_step}; its rows are {rows.tolist()} "
                "of plan.jsonl. The last checkpoint is kept; lower trainer.learning_rate or check these rows"
            )
        if model.training:
            self._record(recorder.log_probs, inputs, conditions)
            self.seen_rows += self.accelerator.gather(rows).tolist()
            if self.step0_loss is None and self.state.global_step == 0:
                self._check_step0(loss)
        return loss

    def _check_step0(self, loss: torch.Tensor) -> None:
        """Before the first update the policy is the reference, so every pair's loss is ln 2."""
        self.step0_loss = loss.item()
        self._metrics["train"]["step0_loss"].append(self.step0_loss)
        if abs(self.step0_loss - LN2) > STEP0_TOLERANCE:
            raise StageError(
                f"the loss at step 0 is {self.step0_loss:.6f}, not ln 2 = {LN2:.6f} within {STEP0_TOLERANCE:g}: "
                "policy and reference differ before training; check dropout, precision, and that no adapter is active"
            )

    def _record(self, log_probs: torch.Tensor, inputs: Any, conditions: torch.Tensor) -> None:
        """Rewards, margins and accuracies by condition, beside TRL's own over all rows."""
        chosen, rejected = log_probs.detach().sum(dim=1).chunk(2)
        rewards = torch.stack(
            [
                self.beta * (chosen - inputs["ref_chosen_logps"]),
                self.beta * (rejected - inputs["ref_rejected_logps"]),
            ],
            dim=1,
        )
        rewards, conditions = self.accelerator.gather((rewards, conditions.to(rewards.device)))
        metrics = self._metrics["train"]
        for index, condition in enumerate(_CONDITIONS):
            of = rewards[conditions == index]
            if len(of):
                metrics[f"rewards/chosen/{condition}"].append(of[:, 0].mean().item())
                metrics[f"rewards/rejected/{condition}"].append(of[:, 1].mean().item())
                metrics[f"rewards/margins/{condition}"].append((of[:, 0] - of[:, 1]).mean().item())
                metrics[f"rewards/accuracies/{condition}"].append((of[:, 0] > of[:, 1]).float().mean().item())


class _Recorder:
    """Calls the model and keeps the log-probabilities it returned, shape (2 x rows, length - 1)."""

    def __init__(self, model: Any):
        self.model = model

    def __call__(self, **kwargs: Any) -> Any:
        outputs = self.model(**kwargs)
        self.log_probs = outputs.log_probs
        return outputs
