"""Generation with transformers, on a CPU or a GPU.

Rows are left-padded and decoded greedily in chunks; between chunks the rows that have ended
leave the batch. Where the model allows it the prompts' shared beginnings are computed once
(`scope.trie`), and each row starts from its part of that pass.
"""

import contextlib
import logging
from collections.abc import Iterator, Sequence
from typing import Any

from scope import trie
from scope.engines import EngineError, Generated, Sampling, release_memory
from scope.engines.cpu import use_weight_first
from scope.models import ResolvedModel, load_model, load_tokenizer, pick_dtype
from scope.prompts import as_messages
from scope.recipe import EngineConfig, ModelConfig

log = logging.getLogger(__name__)


class TransformersEngine:
    """One model (and at most one adapter). The weights are loaded at the first batch that needs them."""

    def __init__(self, model: ResolvedModel, config: ModelConfig, engine: EngineConfig, adapter: Any = None):
        self.resolved, self.config, self.engine, self.adapter = model, config, engine, adapter
        self.tokenizer = load_tokenizer(model)
        self.dtype = pick_dtype(config.dtype)
        self._model: Any = None

    def identity(self) -> dict[str, Any]:
        import torch
        import transformers

        return {
            "kind": "transformers",
            "weights": self.resolved.weights_sha256,
            "adapter": None if self.adapter is None else self.adapter.sha256,
            "dtype": self.dtype,
            "attn_implementation": self.config.attn_implementation,
            "share_prefixes": self.engine.share_prefixes,
            "transformers": transformers.__version__,
            "torch": torch.__version__,
            "device": "cuda" if torch.cuda.is_available() else "cpu",
        }

    def control_tokens(self) -> list[str]:
        """Strings the tokenizer turns into tokens of its own, which data must not contain."""
        return [token.content for token in self.tokenizer.added_tokens_decoder.values()]

    def render(self, prompts: Sequence[str]) -> list[list[int]]:
        return [render(self.tokenizer, prompt, self.config.chat_template_kwargs) for prompt in prompts]

    def plan(self, rendered: Sequence[Sequence[int]], sampling: Sampling) -> list[list[int]]:
        window = self._window()
        for ids in rendered:
            if window and len(ids) + sampling.max_new_tokens > window:
                raise EngineError(
                    f"a prompt of {len(ids)} tokens and max_new_tokens={sampling.max_new_tokens} exceed the window "
                    f"of {window} tokens of {self.resolved.name}; lower max_new_tokens or drop the item "
                    f"(prompt begins {self.tokenizer.decode(list(ids[:40]))!r})"
                )
        if self.engine.share_prefixes:
            # Neighbours in token order share the longest beginnings.
            order = sorted(range(len(rendered)), key=lambda i: tuple(rendered[i]))
        else:
            order = sorted(range(len(rendered)), key=lambda i: (-len(rendered[i]), i))
        batches: list[list[int]] = []
        longest = 0
        for index in order:
            longest = max(longest, len(rendered[index]))
            rows = len(batches[-1]) + 1 if batches else self.engine.batch_rows + 1
            too_many = rows * (longest + sampling.max_new_tokens) > self.engine.batch_tokens
            if rows > self.engine.batch_rows or too_many:
                batches.append([])
                longest = len(rendered[index])
            batches[-1].append(index)
        return batches

    def _window(self) -> int | None:
        import json

        config = json.loads((self.resolved.path / "config.json").read_text("utf-8"))
        return config.get("max_position_embeddings")

    @property
    def model(self) -> Any:
        if self._model is None:
            self._model = load_model(self.resolved, self.dtype, self.config.attn_implementation).eval()
            if self.adapter is not None:
                from peft import PeftModel

                self._model = PeftModel.from_pretrained(self._model, self.adapter.path).eval()
            if self._model.device.type == "cpu" and self.dtype == "float32":
                use_weight_first(self._model)
        return self._model

    def generate(self, rendered: Sequence[Sequence[int]], sampling: Sampling) -> list[Generated]:
        import torch

        if sampling.temperature != 0.0:
            raise EngineError(f"temperature {sampling.temperature} is not served here; greedy decoding has 0")
        with torch.inference_mode():
            outputs = self._decode(rendered, sampling.max_new_tokens)
        return [self._finished(ids) for ids in outputs]

    def _finished(self, ids: list[int]) -> Generated:
        ended = bool(ids) and ids[-1] in self._end_ids()
        kept = ids[:-1] if ended else ids
        return Generated(kept, self.tokenizer.decode(kept), "stop" if ended else "length")

    def _end_ids(self) -> set[int]:
        end = self.model.generation_config.eos_token_id
        return {end} if isinstance(end, int) else set(end or ()) | {self.tokenizer.eos_token_id}

    def _decode(self, rendered: Sequence[Sequence[int]], cap: int) -> list[list[int]]:
        import torch
        from transformers import GenerationConfig

        model, end_ids = self.model, sorted(self._end_ids())
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
            greedy = GenerationConfig(
                max_new_tokens=step,
                do_sample=False,
                num_beams=1,
                eos_token_id=end_ids,
                pad_token_id=pad,
                use_cache=True,
                return_dict_in_generate=True,
            )
            out = model.generate(input_ids=ids, attention_mask=mask, cache=cache, generation_config=greedy)
            new = out.sequences[:, ids.shape[1] :]
            keep = []
            for row, tokens in enumerate(new.tolist()):
                end = next((n for n, token in enumerate(tokens, 1) if token in end_ids), None)
                outputs[active[row]] += tokens[:end]
                if end is None:
                    keep.append(row)
            produced += new.shape[1]
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
        caches = []
        for rows in _groups(rendered, self.engine.pack_tokens):
            packed = trie.pack([list(ids[:-1]) for ids in rows])
            caches.append(trie.gather_cache(trie.prefill(self.model, packed), packed, range(len(rows)), width))
        return _stacked(caches)

    def close(self) -> None:
        """Drop the weights."""
        self._model = None
        release_memory()


@contextlib.contextmanager
def opened(*arguments: Any, **options: Any) -> Iterator[TransformersEngine]:
    engine = TransformersEngine(*arguments, **options)
    try:
        yield engine
    finally:
        engine.close()


def _groups(rendered: Sequence[Sequence[int]], most: int) -> Iterator[list[Sequence[int]]]:
    """Runs of neighbours whose distinct tokens, counted against the row before, stay within `most`."""
    group: list[Sequence[int]] = []
    positions = 0
    for ids in rendered:
        shared = 0
        if group:
            shared = next((n for n, (a, b) in enumerate(zip(group[-1], ids, strict=False)) if a != b), len(ids))
        if group and positions + len(ids) - shared > most:
            yield group
            group, positions, shared = [], 0, 0
        group.append(ids)
        positions += len(ids) - shared
    yield group


def _stacked(caches: list[Any]) -> Any:
    """Batch caches of equal length, one after the other."""
    import torch
    from transformers import DynamicCache

    if len(caches) == 1:
        return caches[0]
    layers = zip(*(cache.layers for cache in caches), strict=True)
    return DynamicCache([(torch.cat([p.keys for p in ls]), torch.cat([p.values for p in ls])) for ls in layers])


def render(tokenizer: Any, prompt: str, template_kwargs: dict[str, Any]) -> list[int]:
    """One user message -> token ids by the chat template, up to where the model begins to answer."""
    ids = tokenizer.apply_chat_template(
        as_messages(prompt), add_generation_prompt=True, tokenize=True, return_dict=False, **template_kwargs
    )
    return list(ids)
