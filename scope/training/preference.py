"""The preference trainer: TRL's DPOTrainer on rows that are already decided, tokenised and ordered.

The loss, the metrics and the optimisation are TRL's. What is added: rows come in the plan's order and
weigh the same however they are dealt into micro-batches, the reference may come from the run's store,
rewards are logged by condition and by the chosen response's source, step 0 is checked against ln 2, and
with `packing=trie` the forward pass computes every shared prefix once and a step's rows are dealt into its
micro-batches quartet by quartet.
"""

import math
from typing import Any

import torch
from torch.utils.data import SequentialSampler
from transformers import TrainerCallback
from transformers.integrations.deepspeed import is_deepspeed_zero3_enabled
from trl import DPOTrainer
from trl.trainer.dpo_trainer import DataCollatorForPreference

from scope import trie
from scope.artifacts import StageError
from scope.conditions import Condition
from scope.training.base import OnPlannedRows
from scope.training.packing import arranged, packed_forward, positions_of
from scope.training.reference import Pair, Reference, Unit

LN2 = math.log(2.0)
STEP0_TOLERANCE = 1e-3
#: Largest difference between a kept and a live reference, nats a sequence, in fp32 and otherwise. Rounding
#: stays far below it (1e-4; 0.5 in bf16); the reference of another model, or a damaged one, does not.
DRIFT_TOLERANCE = (0.05, 5.0)

_CONDITIONS = tuple(Condition)
_SOURCES = ("clean", "diagnostic")


class Collator(DataCollatorForPreference):
    """TRL's collator, which also carries each row's number in the plan, its quartet, condition and chosen source."""

    def torch_call(self, examples: list[dict[str, Any]]) -> dict[str, Any]:
        batch = super().torch_call(examples)
        batch["row"] = torch.tensor([example["row"] for example in examples])
        batch["condition"] = torch.tensor([_CONDITIONS.index(example["condition"]) for example in examples])
        items = list(dict.fromkeys(example["item_id"] for example in examples))
        batch["quartet"] = torch.tensor([items.index(example["item_id"]) for example in examples])
        sources = [example["chosen_source"] for example in examples]
        batch["source"] = torch.tensor([_SOURCES.index(s) if s in _SOURCES else -1 for s in sources])
        return batch


class PreferenceTrainer(OnPlannedRows, DPOTrainer):
    """DPO on planned rows. The dataset's columns are those that `scope.training.rows` gives a row of a pair.

    packing: `trie` or `none`. pack_tokens: most positions of a layout. reference: where the reference log-probabilities
    are kept; None computes them live, in the policy's batch.
    """

    def __init__(
        self,
        *arguments: Any,
        packing: str,
        pack_tokens: int,
        reference: Reference | None = None,
        **options: Any,
    ):
        super().__init__(*arguments, **options)
        self.packing, self.pack_tokens = packing, pack_tokens
        # Reference log-probabilities always reach the loss through the batch, see `_compute_loss`.
        self.precompute_ref_logps = True
        self.step0_loss: float | None = None
        self.reference_drift: float | None = None
        self.reference = reference
        self._kept: torch.Tensor | None = None
        if reference is not None:
            self.add_callback(_AtStart(self))

    def _prepare_dataset(self, dataset: Any, *_: Any, **__: Any) -> Any:
        return dataset

    def _get_train_sampler(self, train_dataset: Any = None) -> Any:
        rows: Any = self.train_dataset if train_dataset is None else train_dataset
        if self.packing == "none":
            return SequentialSampler(rows)
        micro_batch = self.args.per_device_train_batch_size
        step = micro_batch * self.args.gradient_accumulation_steps * self.accelerator.num_processes
        order = arranged(rows, step, micro_batch)
        if self.is_fsdp_enabled or is_deepspeed_zero3_enabled():
            self._check_one_layout(rows, [order[n : n + micro_batch] for n in range(0, len(order), micro_batch)])
        return order

    def _check_one_layout(self, rows: Any, batches: list[list[int]]) -> None:
        """Processes that gather a model's parts together must all run as many layouts: one a micro-batch."""
        sizes = [positions_of(rows.select(batch)) for batch in batches]
        if self.reference is not None:
            sizes += [
                trie.size((*prompt, *response) for prompt in unit.prompts for response in (unit.chosen, unit.rejected))
                for unit in self.reference.units
            ]
        if (largest := max(sizes)) > self.pack_tokens:
            raise StageError(
                f"a micro-batch or quartet takes {largest} positions, more than trainer.pack_tokens="
                f"{self.pack_tokens}: a model whose weights are sharded needs it in one layout; raise "
                "trainer.pack_tokens, or lower trainer.device_batch"
            )

    def compute_ref_log_probs(self, model: Any, inputs: Any) -> Any:
        return super().compute_ref_log_probs(self._forward(model), inputs)

    def _forward(self, model: Any) -> Any:
        return packed_forward(model, self.pack_tokens) if self.packing == "trie" else model

    def read_reference(self) -> None:
        """Take the reference of all rows from the store, and compute what is not there."""
        assert self.reference is not None
        accelerator = self.accelerator
        self._kept = self.reference.log_probs(self._score, accelerator.process_index, accelerator.num_processes)

    def _score(self, unit: Unit) -> list[Pair]:
        rows = [
            {"prompt_ids": list(prompt), "chosen_ids": list(unit.chosen), "rejected_ids": list(unit.rejected)}
            for prompt in unit.prompts
        ]
        inputs = self._prepare_inputs(DataCollatorForPreference(pad_token_id=self._tokenizer.pad_token_id)(rows))
        chosen, rejected = self.compute_ref_log_probs(self.model, inputs)
        return list(zip(chosen.tolist(), rejected.tolist(), strict=True))

    def _compute_loss(self, model: Any, inputs: Any, return_outputs: bool) -> Any:
        rows, conditions, sources = (inputs.pop(name) for name in ("row", "condition", "source"))
        if self.packing == "none":
            del inputs["quartet"]  # TRL hands the model all it does not know
        kept = self._kept[rows.cpu()].to(rows.device) if self._kept is not None and model.training else None
        beginning = self.state.global_step == 0 and self.step0_loss is None
        if kept is None or self.reference_drift is None:
            reference = torch.stack(self.compute_ref_log_probs(self.model, inputs), dim=1)
            if kept is not None:
                self._check_drift(reference, kept)
                # Policy and reference are the same at first; only a live reference shows it exactly.
                reference = reference if beginning else kept
        else:
            reference = kept
        inputs = {**inputs, "ref_chosen_logps": reference[:, 0], "ref_rejected_logps": reference[:, 1]}
        recorder = _Recorder(self._forward(model))
        loss = super()._compute_loss(recorder, inputs, False)
        if not model.training:
            return loss
        everywhere = self.check(loss, rows, inputs["attention_mask"], recorder.positions)
        self._record(recorder.log_probs, inputs, conditions, sources)
        if beginning:
            self._check_step0(everywhere)
        return loss * self._row_weight(rows)

    def _row_weight(self, rows: torch.Tensor) -> float:
        """What makes rows count equally in a step, where the Trainer has micro-batches do so.

        It is 1 for the plan's own micro-batches, and right for any that deal out a step's global batch.
        """
        return len(rows) / self.args.per_device_train_batch_size

    def _check_step0(self, loss: float) -> None:
        """Before the first update the policy is the reference, so every pair's loss is ln 2."""
        self.step0_loss = loss
        self._metrics["train"]["step0_loss"].append(self.step0_loss)
        if abs(self.step0_loss - LN2) > STEP0_TOLERANCE:
            raise StageError(
                f"the loss at step 0 is {self.step0_loss:.6f}, not ln 2 = {LN2:.6f} within {STEP0_TOLERANCE:g}: "
                "policy and reference differ before training; check dropout, precision, and that no adapter is active"
            )

    def _check_drift(self, live: torch.Tensor, kept: torch.Tensor) -> None:
        """How far the kept reference is from a live one on this process's first micro-batch, nats a sequence."""
        drift = self.accelerator.gather((live - kept).abs().max().reshape(1)).max().item()
        self.reference_drift = drift
        if self.state.global_step == 0:
            self._metrics["train"]["reference_drift"].append(drift)
        if not drift <= DRIFT_TOLERANCE[self.args.bf16]:
            raise StageError(
                f"the kept reference log-probabilities are {drift:.3g} nat off a live computation: they belong to "
                "another model or are damaged; delete the run's reference folder, or set trainer.reference=live"
            )

    def _record(self, log_probs: torch.Tensor, inputs: Any, conditions: torch.Tensor, sources: torch.Tensor) -> None:
        """Rewards, margins and accuracies by condition and by chosen source, beside TRL's own over all rows."""
        chosen, rejected = log_probs.detach().sum(dim=1).chunk(2)
        rewards = torch.stack(
            [
                self.beta * (chosen - inputs["ref_chosen_logps"]),
                self.beta * (rejected - inputs["ref_rejected_logps"]),
            ],
            dim=1,
        )
        rewards, conditions, sources = self.accelerator.gather(
            (rewards, conditions.to(rewards.device), sources.to(rewards.device))
        )
        metrics = self._metrics["train"]
        parts = {str(condition): conditions == index for index, condition in enumerate(_CONDITIONS)}
        parts |= {f"from_{source}": sources == index for index, source in enumerate(_SOURCES)}
        for name, rows in parts.items():
            # TRL logs the mean of what is here: over rows, however many of them a micro-batch has.
            for of_chosen, of_rejected in rewards[rows].tolist():
                metrics[f"rewards/chosen/{name}"].append(of_chosen)
                metrics[f"rewards/rejected/{name}"].append(of_rejected)
                metrics[f"rewards/margins/{name}"].append(of_chosen - of_rejected)
                metrics[f"rewards/accuracies/{name}"].append(float(of_chosen > of_rejected))


class _AtStart(TrainerCallback):
    """Reads the reference when the model stands where it will be trained (sharded, on its device)."""

    def __init__(self, trainer: PreferenceTrainer):
        self.trainer = trainer

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self.trainer.read_reference()


class _Recorder:
    """Calls the model and keeps the log-probabilities it returned, shape (2 x rows, length - 1).

    positions: how many a packed layout had; None of padded rows.
    """

    def __init__(self, model: Any):
        self.model = model

    def __call__(self, **kwargs: Any) -> Any:
        outputs = self.model(**kwargs)
        self.log_probs, self.positions = outputs.log_probs, getattr(outputs, "positions", None)
        return outputs
