"""Token sequences -> one packed row in which every shared prefix is computed once.

The sequences of a micro-batch are put into a trie over token ids and laid out depth first: every distinct
prefix is one position, its rotary position is its depth, and position q attends to position k exactly when k
is an ancestor of q (or q itself), which in this order is `k <= q < end[k]`. A hidden state depends only on
its ancestors, so this is exact; sequences with different first tokens are separate roots and never meet.

Every position has one incoming edge (parent -> child token), so edges are numbered by their child position:
edge i leads into position i, and `paths[s][t]` is both where token t of sequence s sits and the edge whose
log-probability is that of token t. A root's edge has parent -1 and no log-probability.

    packed = pack(sequences)
    sums = completion_log_probs(model, packed, prompt_lengths)        # or, in parts, for a trainer:
    edges = completion_edges(packed, prompt_lengths)
    sums = sequence_sums(edge_log_probs(model, packed, edges), edges, packed, prompt_lengths)

    cache = gather_cache(prefill(model, packed), packed, rows, width)  # go on with a normal batched decode
"""

from __future__ import annotations

import collections
import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

FAMILIES = ("llama", "qwen2", "qwen3", "mistral")  # held to the plain forward by tests/test_trie.py
BLOCK = 128  # FlexAttention's block, in positions
CHUNK = 256  # rows of logits alive at once


class Edges(NamedTuple):
    """The trie's edges, long tensors of shape (P,); edge i leads into position i."""

    parent: Tensor  # position of the parent, -1 for a root
    token: Tensor  # token id of the child
    child: Tensor  # position of the child: 0, 1, ..., P-1


@dataclass(frozen=True, slots=True, eq=False)
class Packed:
    """A depth-first trie layout with P positions; long tensors on the CPU.

    tokens (P,): token ids. depth (P,): rotary position, 0 for a root. end (P,): one past the last descendant,
    so that q may attend to k iff k <= q < end[k]. edges: see `Edges`. paths: for each sequence, in the order
    given to `pack`, the positions of its tokens (length of the sequence,), ascending.
    """

    tokens: Tensor
    depth: Tensor
    end: Tensor
    edges: Edges
    paths: tuple[Tensor, ...]

    def __len__(self) -> int:
        return self.tokens.numel()


def pack(sequences: Sequence[Sequence[int]]) -> Packed:
    """Lay token sequences out as one depth-first trie, children in order of first appearance.

    Expected time and memory are linear in the total number of tokens. Duplicates share their whole path, a
    prefix of another sequence ends inside its path, an empty sequence has an empty path. A negative id raises
    ValueError.
    """
    stride = 1 + max((int(max(sequence)) for sequence in sequences if len(sequence)), default=0)
    # Node 0 stands above all roots; a child's number exceeds its parent's.
    parent, token, depth = [-1], [-1], [-1]
    child_of: dict[int, int] = {}  # parent * stride + token -> child
    visited: list[list[int]] = []
    for number, sequence in enumerate(sequences):
        node, path = 0, []
        for item in sequence:
            item = int(item)
            if item < 0:
                raise ValueError(f"sequence {number} holds the token id {item}; token ids are not negative")
            key = node * stride + item
            if key not in child_of:
                child_of[key] = len(parent)
                parent.append(node)
                token.append(item)
                depth.append(depth[node] + 1)
            node = child_of[key]
            path.append(node)
        visited.append(path)

    size = [1] * len(parent)
    for node in range(len(parent) - 1, 0, -1):
        size[parent[node]] += size[node]
    position, free = [-1] * len(parent), [0] * len(parent)  # free: where a node's next child goes
    for node in range(1, len(parent)):
        position[node] = free[parent[node]]
        free[parent[node]] += size[node]
        free[node] = position[node] + 1

    where = torch.tensor(position)
    order = torch.empty(len(parent) - 1, dtype=torch.long)  # position -> node
    order[where[1:]] = torch.arange(1, len(parent))
    tokens, child = torch.tensor(token)[order], torch.arange(len(order))
    return Packed(
        tokens=tokens,
        depth=torch.tensor(depth)[order],
        end=child + torch.tensor(size)[order],
        edges=Edges(parent=where[torch.tensor(parent)[order]], token=tokens, child=child),
        paths=tuple(where[torch.tensor(path, dtype=torch.long)] for path in visited),
    )


def size(sequences: Iterable[Sequence[int]]) -> int:
    """`len(pack(sequences))` without laying them out."""
    return _positions(sorted(map(list, sequences)))


def bins(sequences: Sequence[Sequence[int]], most: int, groups: Sequence[Any] | None = None) -> list[list[int]]:
    """Indices of the sequences, in their order, cut into bins whose layouts have at most `most` positions each.

    Each sequence is counted against the one before it alone: hand them in sorted, so that the count is exact and
    the bins are few. groups: a label for each; neighbours of one label stay together where a bin can hold them.
    A sequence longer than `most` has a bin of its own.
    """
    labels = range(len(sequences)) if groups is None else groups
    runs = itertools.groupby(range(len(sequences)), lambda i: labels[i])
    waiting = collections.deque(list(run) for _, run in runs)
    found: list[list[int]] = []
    free = 0
    while waiting:
        unit = waiting.popleft()
        alone = _positions([sequences[i] for i in unit])
        added = alone - (_shared(sequences[found[-1][-1]], sequences[unit[0]]) if found else 0)
        if found and added <= free:
            found[-1] += unit
            free -= added
        elif alone <= most or len(unit) == 1:
            found.append(unit)
            free = most - alone
        else:
            waiting.extendleft([i] for i in reversed(unit))
    return found


def _positions(sequences: Sequence[Sequence[int]]) -> int:
    """Positions of sequences of which each is counted against the one before it."""
    pairs = itertools.pairwise(sequences)
    return sum(map(len, sequences)) - sum(_shared(a, b) for a, b in pairs)


def _shared(a: Sequence[int], b: Sequence[int]) -> int:
    """Length of the common beginning."""
    return next((n for n, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))


# --- masks --------------------------------------------------------------------------------------------------


def attention_mask(packed: Packed, device: torch.device | str = "cpu") -> Tensor:
    """Dense boolean mask (1, 1, P, P) for SDPA: True where the row (query) may attend to the column (key)."""
    position, end = torch.arange(len(packed), device=device), packed.end.to(device)
    query = position[:, None]
    return ((position <= query) & (query < end))[None, None]


def block_mask(packed: Packed, device: torch.device | str = "cuda") -> Any:
    """The same mask as a FlexAttention `BlockMask`, without building anything of size P x P.

    A block of keys strictly before a block of queries is needed iff its largest `end` lies beyond the first
    query, and unmasked iff its smallest `end` lies beyond the last; the block on the diagonal is partial.
    """
    from torch.nn.attention.flex_attention import BlockMask

    n, end = -(-len(packed) // BLOCK), packed.end.to(device)
    blocks = torch.nn.functional.pad(end, (0, n * BLOCK - len(packed))).view(n, BLOCK)
    index = torch.arange(n, device=device)
    first, before = BLOCK * index[:, None], index[None, :] < index[:, None]
    full = before & (blocks.amin(1) >= first + BLOCK)
    partial = (before & (blocks.amax(1) > first) & ~full) | (index[None, :] == index[:, None])

    def listed(wanted: Tensor) -> tuple[Tensor, Tensor]:
        indices = wanted.int().argsort(dim=-1, descending=True, stable=True)
        return wanted.sum(-1).int()[None, None], indices.int().contiguous()[None, None]

    def ancestor(batch: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
        return (key <= query) & (query < end[key])

    lengths = (len(packed), len(packed))
    return BlockMask.from_kv_blocks(*listed(partial), *listed(full), BLOCK, ancestor, seq_lengths=lengths)


def supports_packing(config: Any) -> str | None:
    """None if a model with this transformers config computes the same packed as plain, or why not.

    Conservative: only families that the tests compare with their plain forward are let through.
    """
    config = config.get_text_config(decoder=True)
    family, advice = config.model_type, "Use packing=none"
    layers = set(getattr(config, "layer_types", None) or ())
    in_use = getattr(config, "use_sliding_window", family == "mistral")
    if "sliding_attention" in layers or (in_use and getattr(config, "sliding_window", None)):
        return f"This {family} model has sliding-window layers, and a packed mask would widen them. {advice}."
    if family not in FAMILIES:
        return f"Packing is tested with {', '.join(FAMILIES)} only, and this model is a {family}. {advice}."
    if other := layers - {"full_attention"}:
        return f"This {family} model has layers of type {', '.join(sorted(other))}. {advice}."
    rope = (getattr(config, "rope_parameters", None) or {}).get("rope_type", "default")
    if rope in ("dynamic", "longrope"):
        return f"The {rope} rotary scaling depends on the longest sequence of the row. {advice}."
    attention = getattr(config, "_attn_implementation", None)  # None before a model is built
    if attention not in (None, "sdpa", "flex_attention"):
        return f"{attention} attention cannot take a packed mask. Load the model with sdpa or flex_attention."
    return None


# --- forward passes -----------------------------------------------------------------------------------------


def _causal_lm(model: Any) -> Any:
    """The model inside a peft wrapper (its LoRA layers stay in place); ValueError if it cannot be packed."""
    if any(getattr(c, "is_prompt_learning", False) for c in getattr(model, "peft_config", {}).values()):
        raise ValueError("A prompt-learning adapter adds virtual tokens and cannot be packed; use LoRA.")
    inner = model.get_base_model() if hasattr(model, "get_base_model") else model
    refusal = supports_packing(inner.config)
    if refusal:
        raise ValueError(refusal)
    return inner


def _decode(causal: Any, packed: Packed, **kwargs: Any) -> Any:
    device = causal.get_input_embeddings().weight.device
    flex = causal.config._attn_implementation == "flex_attention"
    return causal.get_decoder()(
        input_ids=packed.tokens.to(device)[None],
        position_ids=packed.depth.to(device)[None],
        attention_mask=block_mask(packed, device) if flex else attention_mask(packed, device),
        **kwargs,
    )


def hidden_states(model: Any, packed: Packed) -> Tensor:
    """Last hidden states (P, H), after the final norm, of one packed forward without the LM head.

    `model` is a transformers causal LM or a peft model around one. The decoder inside is called directly:
    hooks on an outer wrapper (DDP, ZeRO) run only if this is called within that wrapper's own forward.
    """
    return _decode(_causal_lm(model), packed, use_cache=False).last_hidden_state[0]


def edge_log_probs(model: Any, packed: Packed, edge_index: Tensor, chunk: int = CHUNK) -> Tensor:
    """Natural-log probabilities (E,), fp32, of the edges `edge_index` (E,); one packed forward, with grad.

    The LM head sees each distinct parent once, `chunk` rows at a time, and its logits are recomputed in the
    backward pass, so no more than `chunk` x vocabulary logits are held. ValueError for an edge into a root.
    """
    head = _causal_lm(model).get_output_embeddings()
    return score_edges(head, hidden_states(model, packed), packed, edge_index, chunk)


def score_edges(head: Any, hidden: Tensor, packed: Packed, edge_index: Tensor, chunk: int = CHUNK) -> Tensor:
    """`edge_log_probs` from hidden states (P, H) at hand; `head` maps (rows, H) to logits (rows, V)."""
    parent = packed.edges.parent[edge_index]
    if (parent < 0).any():
        raise ValueError("A sequence's first token has no log-probability: there is no edge into a root.")
    rows, row = torch.unique(parent, return_inverse=True)
    order = torch.argsort(row, stable=True)
    bounds = torch.searchsorted(row[order], torch.arange(0, len(rows) + chunk, chunk)).tolist()

    def log_probs(states: Tensor, at: Tensor, token: Tensor) -> Tensor:
        logits = head(states).float()
        # Not log_softmax: in fp32 on a CPU torch's is off by 2e-5 a token, one way, with 49,152 ids.
        return logits[at, token] - torch.logsumexp(logits, dim=-1)[at]

    scores = [hidden.new_empty(0, dtype=torch.float32)]
    for start, low, high in zip(range(0, len(rows), chunk), bounds, bounds[1:], strict=False):
        edges = order[low:high]
        at = (row[edges] - start).to(hidden.device)
        token = packed.edges.token[edge_index[edges]].to(hidden.device)
        states = hidden[rows[start : start + chunk].to(hidden.device)]
        if torch.is_grad_enabled():
            scores.append(checkpoint(log_probs, states, at, token, use_reentrant=False))
        else:
            scores.append(log_probs(states, at, token))
    return torch.cat(scores)[torch.argsort(order).to(hidden.device)]


# --- from edges to sequences --------------------------------------------------------------------------------


def _completions(packed: Packed, prompt_lengths: Sequence[int]) -> Iterator[Tensor]:
    if len(prompt_lengths) != len(packed.paths):
        raise ValueError(f"{len(prompt_lengths)} prompt lengths were given for {len(packed.paths)} sequences.")
    for number, (path, length) in enumerate(zip(packed.paths, prompt_lengths, strict=True)):
        if not (1 if len(path) else 0) <= length <= len(path):
            raise ValueError(
                f"Sequence {number} has {len(path)} tokens and a prompt of {length}. A prompt has at least "
                "one token, for the first token has no log-probability, and no more than the sequence."
            )
        yield path[length:]


def completion_edges(packed: Packed, prompt_lengths: Sequence[int]) -> Tensor:
    """Edges (E,) into completion tokens (index >= prompt_lengths[s] in sequence s); distinct, ascending."""
    return torch.unique(torch.cat([packed.tokens[:0], *_completions(packed, prompt_lengths)]))


def token_log_probs(
    log_probs: Tensor, edge_index: Tensor, packed: Packed, prompt_lengths: Sequence[int]
) -> tuple[Tensor, ...]:
    """Per sequence, the log-probabilities (completion length,) of its completion tokens.

    log_probs (E,) belong to `edge_index` (E,), which covers `completion_edges(packed, prompt_lengths)`.
    """
    paths = list(_completions(packed, prompt_lengths))
    slot = torch.full((len(packed),), -1)
    slot[edge_index] = torch.arange(len(edge_index))
    wanted = slot[torch.cat([packed.tokens[:0], *paths])]
    if (wanted < 0).any():
        raise ValueError(f"{int((wanted < 0).sum())} completion tokens have no edge among those scored.")
    return log_probs[wanted.to(log_probs.device)].split([len(path) for path in paths])


def sequence_sums(log_probs: Tensor, edge_index: Tensor, packed: Packed, prompt_lengths: Sequence[int]) -> Tensor:
    """Per sequence, the sum (S,) of `token_log_probs`; zero for an empty completion."""
    parts = token_log_probs(log_probs, edge_index, packed, prompt_lengths)
    return torch.stack([part.sum() for part in parts]) if parts else log_probs.new_zeros(0)


def completion_log_probs(model: Any, packed: Packed, prompt_lengths: Sequence[int], chunk: int = CHUNK) -> Tensor:
    """Sum (S,), fp32, of the log-probabilities of each sequence's completion tokens; one packed forward."""
    edges = completion_edges(packed, prompt_lengths)
    return sequence_sums(edge_log_probs(model, packed, edges, chunk), edges, packed, prompt_lengths)


# --- generation ---------------------------------------------------------------------------------------------


@torch.no_grad()
def prefill(model: Any, packed: Packed) -> Any:
    """The `DynamicCache` of one packed forward: a layer's keys and values are (1, KV heads, P, head size)."""
    return _decode(_causal_lm(model), packed, use_cache=True).cache


def gather_cache(cache: Any, packed: Packed, sequence_indices: Sequence[int], pad_to: int) -> Any:
    """A left-padded batch `DynamicCache` (B, KV heads, pad_to, head size) for some sequences of a `prefill`.

    Keys are already rotated by depth, so this only copies. The padding columns hold some other position's
    values: pass the usual left-padded attention mask. `model.generate` wants to compute the last prompt token
    itself: `cache.crop(-1)` first, then `generate(padded_ids, attention_mask=mask, cache=cache)`.
    """
    from transformers import DynamicCache

    index = torch.zeros((len(sequence_indices), pad_to), dtype=torch.long)
    for row, number in enumerate(sequence_indices):
        path = packed.paths[number]
        if not 0 < len(path) <= pad_to:
            raise ValueError(f"Sequence {number} has {len(path)} tokens; to be continued it needs 1 to {pad_to}.")
        index[row, pad_to - len(path) :] = path

    def rows(states: Tensor) -> Tensor:  # (1, heads, P, size) -> (B, heads, pad_to, size)
        return states[0][:, index.to(states.device)].transpose(0, 1).contiguous()

    return DynamicCache([(rows(layer.keys), rows(layer.values)) for layer in cache.layers])
