"""The packed forward pass for the preference trainer: tries instead of padded rows.

`packed_forward(model, most)` takes what TRL's trainer calls its model with (padded ids, mask, labels) and
returns the same fields of the same shape. The batch is laid out by `scope.trie` in layouts of at most `most`
positions; the LM head is TRL's chunked kernel, applied to each completion edge once. `arranged` deals a
step's rows into micro-batches so that few positions are computed and none waits long for another.
"""

import functools
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from trl.kernels import ChunkedLogProbFunction
from trl.trainer.utils import FusedCausalLMOutput

from scope import trie
from scope.artifacts import Refusal

FIELDS = ("log_probs", "entropy", "mean_logits", "is_top1")
VOCABULARY_CHUNK = 8192

PAIR = ("chosen_ids", "rejected_ids")

Row = Mapping[str, Any]


@dataclass
class PackedOutput(FusedCausalLMOutput):
    """TRL's output, and how many positions the packed layouts have."""

    positions: int | None = None


def check_supported(config: Any) -> None:
    """Refuse a model whose attention cannot take a packed layout, or cannot learn under one here."""
    if refusal := trie.supports_packing(config):
        raise Refusal(f"trainer.packing=trie: {refusal}; set trainer.packing=none")
    if config._attn_implementation == "flex_attention" and not torch.cuda.is_available():
        raise Refusal(
            "model.attn_implementation=flex_attention has no backward pass on the CPU; train with sdpa, whose packed "
            "mask is dense"
        )


def packed_forward(model: Any, most: int) -> Callable[..., PackedOutput]:
    """A stand-in for `model(..., labels=..., fused_lm_head=True)` that runs packed layouts.

    It also takes `quartet`, a number for each pair of rows: those of one quartet stay in one layout if that holds them.
    """
    return functools.partial(_forward, model, most)


def _forward(
    model: Any,
    most: int,
    *,
    input_ids: torch.Tensor,
    attention_mask: torch.Tensor,
    labels: torch.Tensor,
    quartet: torch.Tensor | None = None,
    **_: Any,
) -> PackedOutput:
    sequences = [row[mask.bool()].tolist() for row, mask in zip(input_ids, attention_mask, strict=True)]
    group = [0] * len(sequences) if quartet is None else 2 * quartet.tolist()
    order = sorted(range(len(sequences)), key=lambda i: (group[i], sequences[i]))
    bins = trie.bins([sequences[i] for i in order], most, [group[i] for i in order])
    # Cell (b, t) of TRL's output belongs to the edge into token t + 1 of row b.
    scored = labels[:, 1:] != -100
    layouts, edges, cells, cell_edge, before = [], [], [], [], 0
    for rows in ([order[i] for i in part] for part in bins):
        packed = trie.pack([sequences[i] for i in rows])
        within = torch.tensor(rows, device=labels.device)
        paths = torch.zeros((len(rows), labels.shape[1]), dtype=torch.long, device=labels.device)
        for number, path in enumerate(packed.paths):
            paths[number, : len(path)] = path
        at = scored[within].nonzero()
        unique, inverse = paths[:, 1:][scored[within]].unique(return_inverse=True)
        layouts.append(packed)
        edges.append(unique)
        cells.append(torch.stack([within[at[:, 0]], at[:, 1]], dim=1))
        cell_edge.append(inverse + before)
        before += len(unique)
    per_edge = model(layouts=layouts, edges=edges)
    row, column = torch.cat(cells).unbind(dim=1)
    fields = {}
    for name, values in zip(FIELDS, per_edge, strict=True):
        table = values.new_zeros(scored.shape)
        fields[name] = table.index_put((row, column), values[torch.cat(cell_edge)])
    return PackedOutput(loss=None, positions=sum(map(len, layouts)), **fields)


def add_packed_head(causal: Any) -> None:
    """Let `causal.forward(layouts=..., edges=...)` score the edges of layouts, one after another.

    It is called through every wrapper the model is in (PEFT, DDP, ZeRO), once a micro-batch, so their hooks fire.
    """
    forward = causal.forward

    @functools.wraps(type(causal).forward)
    def with_packed(*arguments: Any, layouts: Any = None, edges: Any = None, **kwargs: Any) -> Any:
        if layouts is None:
            return forward(*arguments, **kwargs)
        parts = [_scored(causal, packed, of) for packed, of in zip(layouts, edges, strict=True)]
        return tuple(torch.cat(field) for field in zip(*parts, strict=True))

    causal.forward = with_packed


def _scored(causal: Any, packed: trie.Packed, edges: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """The fields of TRL's output, (E,) each, of a layout's edges."""
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


def positions_of(rows: Iterable[Row]) -> int:
    """Positions of one layout of the rows' prompts, each with its chosen and its rejected response."""
    return trie.size([*row["prompt_ids"], *row[name]] for row in rows for name in PAIR)


def arranged(rows: Iterable[Row], step: int, micro_batch: int) -> list[int]:
    """Numbers of the plan's rows, those of each step dealt into its micro-batches; no row leaves its step.

    step, micro_batch: rows of each, the first a multiple of the second. The largest quartet goes first, whole, to
    the micro-batch with the fewest positions that has room for it, and is parted where none has. Micro-batches stand
    largest first: those that processes compute side by side are of about the same size.
    """
    known: dict[tuple[Any, ...], int] = {}

    def positions(unit: Sequence[int]) -> int:
        members = [plan[n] for n in unit]
        key = tuple(sorted((row["item_id"], row["pair_id"], row["condition"]) for row in members))
        if key not in known:
            known[key] = positions_of(members)
        return known[key]

    plan, found = list(rows), list[int]()
    for start in range(0, len(plan), step):
        quartets = defaultdict(list)
        for number in range(start, min(start + step, len(plan))):
            quartets[plan[number]["item_id"]].append(number)
        batches: list[list[int]] = [[] for _ in range(step // micro_batch)]
        sizes = [0] * len(batches)
        for unit in sorted(quartets.values(), key=positions, reverse=True):
            while unit:
                room = [micro_batch - len(batch) for batch in batches]
                whole = [n for n, free in enumerate(room) if free >= len(unit)]
                roomiest = max(range(len(batches)), key=lambda n: (room[n], -sizes[n]))
                n = min(whole, key=sizes.__getitem__) if whole else roomiest
                part, unit = unit[: room[n]], unit[room[n] :]
                batches[n] += part
                sizes[n] += positions(part)
        for n in sorted(range(len(batches)), key=sizes.__getitem__, reverse=True):
            found += sorted(batches[n])
    return found
