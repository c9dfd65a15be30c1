"""The packed forward pass for the preference trainer: one trie a micro-batch instead of padded rows.

`packed_forward(model)` takes what TRL's trainer calls its model with (padded ids, mask, labels) and
returns the same fields of the same shape. The batch is laid out by `scope.trie`; the LM head is TRL's
chunked kernel, applied to each completion edge once.
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from trl.kernels import ChunkedLogProbFunction
from trl.trainer.utils import FusedCausalLMOutput

from scope import trie
from scope.artifacts import Refusal

FIELDS = ("log_probs", "entropy", "mean_logits", "is_top1")
VOCABULARY_CHUNK = 8192


@dataclass
class PackedOutput(FusedCausalLMOutput):
    """TRL's output, and how many positions the packed layout has."""

    positions: int | None = None


def check_supported(config: Any) -> None:
    """Refuse a model whose attention cannot take a packed layout."""
    if refusal := trie.supports_packing(config):
        raise Refusal(f"trainer.packing=trie: {refusal}; set trainer.packing=none")


def packed_forward(model: Any) -> Callable[..., PackedOutput]:
    """A stand-in for `model(..., labels=..., fused_lm_head=True)` that runs the packed layout."""
    return functools.partial(_forward, model)


def _forward(
    model: Any, *, input_ids: torch.Tensor, attention_mask: torch.Tensor, labels: torch.Tensor, **_: Any
) -> PackedOutput:
    sequences = [row[mask.bool()].tolist() for row, mask in zip(input_ids, attention_mask, strict=True)]
    packed = trie.pack(sequences)
    # Cell (b, t) of TRL's output belongs to the edge into token t + 1 of row b.
    scored = labels[:, 1:] != -100
    cells = scored.nonzero()
    paths = torch.zeros_like(labels)
    for row, path in enumerate(packed.paths):
        paths[row, : len(path)] = path
    edges, cell_edge = paths[:, 1:][scored].unique(return_inverse=True)
    per_edge = model(packed=packed, edges=edges)
    fields = {}
    for name, values in zip(FIELDS, per_edge, strict=True):
        table = values.new_zeros(scored.shape)
        fields[name] = table.index_put((cells[:, 0], cells[:, 1]), values[cell_edge])
    return PackedOutput(loss=None, positions=len(packed), **fields)


def add_packed_head(causal: Any) -> None:
    """Let `causal.forward(packed=..., edges=...)` score the edges of a layout.

    It is called through every wrapper the model is in (PEFT, DDP, ZeRO), so their hooks fire.
    """
    forward = causal.forward

    @functools.wraps(type(causal).forward)
    def with_packed(*arguments: Any, packed: Any = None, edges: Any = None, **kwargs: Any) -> Any:
        if packed is None:
            return forward(*arguments, **kwargs)
        hidden = trie.hidden_states(causal, packed)
        head = causal.get_output_embeddings()
        log_probs, entropy, _, mean_logits, is_top1 = ChunkedLogProbFunction.apply(
            hidden[packed.edges.parent[edges].to(hidden.device)],
            head.weight,
            head.bias,
            packed.edges.token[edges].to(hidden.device),
            1.0,
            VOCABULARY_CHUNK,
            None,
            1.0,
            FIELDS,
        )
        return log_probs, entropy, mean_logits, is_top1

    causal.forward = with_packed
