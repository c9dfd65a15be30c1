"""Generation with transformers, on a CPU or a GPU.

Rows are left-padded and decoded in chunks; between chunks the rows that have ended
leave the batch. Where the model allows it the prompts' shared beginnings are computed once
(`scope.trie`), and each row starts from its part of that pass.
"""

import contextlib
import logging
from collections.abc import Iterator, Sequence
from typing import Any

from scope import trie
from scope.artifacts import fingerprint
from scope.engines.base import Choices, Generated, Sampling
from scope.engines.cpu import use_weight_first
from scope.engines.decoding import generation_config
from scope.engines.local import LocalEngine, scored, token_order
from scope.engines.local import render as render
from scope.engines.memory import release_memory
from scope.engines.shards import local_rank, shard
from scope.models import ResolvedModel, load_model, pick_dtype
from scope.schema import EngineConfig, ModelConfig

log = logging.getLogger(__name__)


class TransformersEngine(LocalEngine):
    """One model (and at most one adapter). The weights are loaded when a batch needs them."""

    def __init__(self, model: ResolvedModel, config: ModelConfig, engine: EngineConfig, adapter: Any = None):
        super().__init__(model, config, engine, adapter)
        self.dtype = pick_dtype(config.dtype)
        self._model: Any = None

    def identity(self) -> dict[str, Any]:
        import torch
        import transformers

        return {
            "kind": "transformers",
            "model": self.resolved.text,
            "ends": sorted(self.end_ids),
            "adapter": None if self.adapter is None else self.adapter.sha256,
            "dtype": self.dtype,
            "attn_implementation": self.config.attn_implementation,
            "share_prefixes": self.engine.share_prefixes,
            "transformers": transformers.__version__,
            "torch": torch.__version__,
            "device": "cuda" if torch.cuda.is_available() else "cpu",
        }

    def version(self) -> str:
        identity = self.identity()
        return f"transformers {identity['transformers']}, torch {identity['torch']}, {identity['device']}"

    def plan(self, rendered: Sequence[Sequence[int]], how: Sampling | Choices) -> list[list[int]]:
        if isinstance(how, Choices):
            order = token_order(rendered)
            bins = trie.bins([rendered[i] for i in order], self.engine.pack_tokens)
            return [[order[i] for i in part] for part in bins]
        if self.engine.share_prefixes:
            order = token_order(rendered)
        else:
            order = sorted(range(len(rendered)), key=lambda i: (-len(rendered[i]), i))
        batches: list[list[int]] = []
        longest = 0
        for index in order:
            longest = max(longest, len(rendered[index]))
            rows = len(batches[-1]) + 1 if batches else self.engine.batch_rows + 1
            too_many = rows * (longest + how.max_new_tokens) > self.engine.batch_tokens
            if rows > self.engine.batch_rows or too_many:
                batches.append([])
                longest = len(rendered[index])
            batches[-1].append(index)
        return batches

    @property
    def model(self) -> Any:
        if self._model is None:
            import torch

            device = f"cuda:{local_rank()}" if shard()[1] > 1 and torch.cuda.is_available() else "auto"
            self._model = load_model(self.resolved, self.dtype, self.config.attn_implementation, device).eval()
            if self.adapter is not None:
                from peft import PeftModel

                self._model = PeftModel.from_pretrained(self._model, self.adapter.path).eval()
            if self._model.device.type == "cpu" and self.dtype == "float32":
                use_weight_first(self._model)
        return self._model

    def load(self) -> None:
        _ = self.model

    def generate(self, rendered: Sequence[Sequence[int]], sampling: Sampling) -> list[Generated]:
        import torch

        with torch.inference_mode(), self._seeded(rendered, sampling):
            outputs = self._decode(rendered, sampling)
        return [self.finished(ids) for ids in outputs]

    @contextlib.contextmanager
    def _seeded(self, rendered: Sequence[Sequence[int]], sampling: Sampling) -> Iterator[None]:
        """Random numbers of the batch's own, from the seed and its prompts; those of the process stay as they are."""
        import torch

        if not sampling.temperature:
            yield
            return
        cuda = [self.model.device] if self.model.device.type == "cuda" else []
        with torch.random.fork_rng(devices=cuda):
            torch.manual_seed(int(fingerprint([sampling.seed, *map(list, rendered)])[:15], 16))
            yield

    def score_choices(self, rendered: Sequence[Sequence[int]], choices: Choices) -> list[Generated]:
        """One packed forward over all prompts, each continued by every option.

        A model that cannot be packed takes one forward a prompt, a row an option.
        """
        import torch

        options = self.option_ids(choices)
        with torch.inference_mode():
            if trie.supports_packing(self.model.config) is None:
                packed = trie.pack([[*ids, *option] for ids in rendered for option in options])
                lengths = [len(ids) for ids in rendered for _ in options]
                sums = trie.completion_log_probs(self.model, packed, lengths).view(len(rendered), len(options))
            else:
                sums = torch.stack([self._option_sums(ids, options) for ids in rendered])
        width = max(map(len, options))
        return [scored(choices, row, width) for row in sums.tolist()]

    def _option_sums(self, ids: Sequence[int], options: Sequence[Sequence[int]]) -> Any:
        """Log-probabilities (k,) of the options after one prompt, by a plain forward of right-padded rows."""
        import torch

        device, width = self.model.device, max(map(len, options))
        pad = self.tokenizer.pad_token_id
        rows = torch.tensor([[*ids, *o, *[pad] * (width - len(o))] for o in options], device=device)
        mask = torch.tensor([[1] * (len(ids) + len(o)) + [0] * (width - len(o)) for o in options], device=device)
        logits = self.model(input_ids=rows, attention_mask=mask).logits[:, len(ids) - 1 : -1].float()
        chosen = logits.gather(-1, rows[:, len(ids) :, None])[..., 0] - logits.logsumexp(-1)
        return (chosen * mask[:, len(ids) :]).sum(-1)

    def _decode(self, rendered: Sequence[Sequence[int]], sampling: Sampling) -> list[list[int]]:
        import torch

        model, end_ids, cap = self.model, sorted(self.end_ids), sampling.max_new_tokens
        pad = self.tokenizer.pad_token_id
        width = max(map(len, rendered))
        ids = torch.tensor([[pad] * (width - len(r)) + list(r) for r in rendered], device=model.device)
        mask = torch.tensor([[0] * (width - len(r)) + [1] * len(r) for r in rendered], device=model.device)
        cache = self._prefill(rendered)
        outputs: list[list[int]] = [[] for _ in rendered]
        active = list(range(len(rendered)))
        produced = 0
        while active and produced < cap:
            step = min(self.engine.chunk_tokens, cap - produced)
            config = generation_config(sampling, step, end_ids, pad)
            out = model.generate(input_ids=ids, attention_mask=mask, cache=cache, generation_config=config)
            new = out.sequences[:, ids.shape[1] :]
            keep = []
            for row, tokens in enumerate(new.tolist()):
                end = next((n for n, token in enumerate(tokens, 1) if token in end_ids), None)
                outputs[active[row]] += tokens[:end]
                if end is None:
                    keep.append(row)
            produced += new.shape[1]
            self.advance(len(active) - len(keep), new.numel())
            cache = out.cache
            ids, mask = out.sequences, torch.cat([mask, mask.new_ones(new.shape)], dim=1)
            if len(keep) < len(active):
                rows = torch.tensor(keep, device=ids.device, dtype=torch.long)
                active = [active[row] for row in keep]
                ids, mask = ids[rows], mask[rows]
                if active:
                    cache.batch_select_indices(rows)
        return outputs

    def _prefill(self, rendered: Sequence[Sequence[int]]) -> Any:
        """The cache of all prompts but their last tokens, shared beginnings computed once.

        Neighbouring rows are packed together up to a number of positions, for a layout's attention grows
        with its square. Without sharing the cache is empty and `generate` fills it.
        """
        from transformers import DynamicCache

        if not self.engine.share_prefixes:
            return DynamicCache(config=self.model.config)
        if refusal := trie.supports_packing(self.model.config):
            log.info("prefixes are not shared: %s", refusal)
            return DynamicCache(config=self.model.config)
        width = max(map(len, rendered)) - 1
        layers: list[Any] = []  # (keys, values) of the whole batch: parts are put in as they come and never held twice
        for rows in trie.bins(rendered, self.engine.pack_tokens):
            packed = trie.pack([list(rendered[i][:-1]) for i in rows])
            part = trie.gather_cache(trie.prefill(self.model, packed), packed, range(len(rows)), width).layers
            if len(rows) == len(rendered):
                layers = [(layer.keys, layer.values) for layer in part]
            layers = layers or [
                tuple(t.new_empty((len(rendered), *t.shape[1:])) for t in (layer.keys, layer.values)) for layer in part
            ]
            if len(rows) < len(rendered):
                at = slice(rows[0], rows[-1] + 1)
                for (keys, values), layer in zip(layers, part, strict=True):
                    keys[at], values[at] = layer.keys, layer.values
            del part
        cache = DynamicCache()
        for number in range(len(layers)):
            keys, values = layers[number]
            layers[number] = None
            cache.update(keys, values, number)
            del keys, values
        return cache

    def close(self) -> None:
        """Drop the weights."""
        self._model = None
        release_memory()
