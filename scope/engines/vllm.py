"""Generation with vLLM in this process, on the token ids that every local engine renders.

Prompts go in token order, so that an item's cells stand together and share their beginnings in the prefix
cache. Greedy output can differ from transformers' where two tokens are nearly equal, bf16 above all; the stored
key tells the two engines apart.
"""

import contextlib
import json
import os
from collections.abc import Sequence
from typing import Any

from scope.engines.base import Choices, EngineError, Generated, Sampling
from scope.engines.decoding import NEUTRAL
from scope.engines.local import LocalEngine, scored, token_order
from scope.engines.memory import release_memory
from scope.engines.shards import alone, local_rank, shard
from scope.models import ResolvedModel, pick_dtype
from scope.schema import EngineConfig, ModelConfig

RANKS = (8, 16, 32, 64, 128, 256, 320, 512)  # that vLLM allots memory for


class VLLMEngine(LocalEngine):
    """One model (and at most one adapter). vLLM starts when a batch needs it."""

    def __init__(self, model: ResolvedModel, config: ModelConfig, engine: EngineConfig, adapter: Any = None):
        super().__init__(model, config, engine, adapter)
        self.dtype = pick_dtype(config.dtype)
        self._llm: Any = None

    def identity(self) -> dict[str, Any]:
        import torch

        return {
            "kind": "vllm",
            "model": self.resolved.text,
            "ends": sorted(self.end_ids),
            "adapter": None if self.adapter is None else self.adapter.sha256,
            "dtype": self.dtype,
            "parallel": [self.engine.tensor_parallel, self.engine.pipeline_parallel],
            "eager": self.engine.eager,
            "vllm": _vllm().__version__,
            "torch": torch.__version__,
            "device": _vllm().platforms.current_platform.device_type,
        }

    def version(self) -> str:
        identity = self.identity()
        return f"vllm {identity['vllm']}, torch {identity['torch']}, {identity['device']}"

    def window(self) -> int | None:
        return self.engine.max_model_len or super().window()

    def plan(self, rendered: Sequence[Sequence[int]], how: Sampling | Choices) -> list[list[int]]:
        order, rows = token_order(rendered), self.engine.batch_rows
        return [order[start : start + rows] for start in range(0, len(order), rows)]

    @property
    def llm(self) -> Any:
        if self._llm is None:
            vllm = _vllm()
            gpus = self.engine.tensor_parallel * self.engine.pipeline_parallel
            adapter: dict[str, Any] = {}
            if self.adapter is not None:
                adapter = {"enable_lora": True, "max_loras": 1, "max_lora_rank": self._lora_rank()}
            with alone(), _gpus(gpus):
                self._llm = vllm.LLM(
                    model=str(self.resolved.path),
                    dtype=self.dtype,
                    seed=0,
                    generation_config="vllm",  # no sampling defaults of the model's
                    tensor_parallel_size=self.engine.tensor_parallel,
                    pipeline_parallel_size=self.engine.pipeline_parallel,
                    gpu_memory_utilization=self.engine.gpu_memory,
                    max_model_len=self.engine.max_model_len,
                    enforce_eager=self.engine.eager,
                    enable_prefix_caching=self.engine.share_prefixes,
                    disable_log_stats=True,
                    **adapter,
                )
        return self._llm

    def load(self) -> None:
        _ = self.llm

    def _lora_rank(self) -> int:
        rank = json.loads((self.adapter.path / "adapter_config.json").read_text("utf-8"))["r"]
        if rank > RANKS[-1]:
            raise EngineError(f"{self.adapter.path}: vLLM takes adapters up to rank {RANKS[-1]}, this one has {rank}")
        return next(allowed for allowed in RANKS if allowed >= rank)

    def _run(self, prompts: Sequence[Sequence[int]], params: Any) -> list[Any]:
        """vLLM's outputs, one a prompt; the adapter goes by a name that no other checkpoint has."""
        lora = None
        if self.adapter is not None:
            from vllm.lora.request import LoRARequest

            lora = LoRARequest(self.adapter.sha256, 1, str(self.adapter.path))
        tokens = [{"prompt_token_ids": list(ids)} for ids in prompts]
        return self.llm.generate(tokens, params, use_tqdm=False, lora_request=lora)

    def generate(self, rendered: Sequence[Sequence[int]], sampling: Sampling) -> list[Generated]:
        cap, ends = sampling.max_new_tokens, sorted(self.end_ids)
        params = sampling_params(max_tokens=cap, stop_token_ids=ends, **sampling.drawn())
        return [self._generated(output.outputs[0]) for output in self._run(rendered, params)]

    def _generated(self, output: Any) -> Generated:
        if output.finish_reason not in ("stop", "length"):
            reason = f"vLLM ended the request with {output.finish_reason!r}"
            return Generated([], "", "error", n_tokens=0, error=reason)
        return self.finished(list(output.token_ids))

    def score_choices(self, rendered: Sequence[Sequence[int]], choices: Choices) -> list[Generated]:
        """By token: one step that may only yield an option. By sequence: each option as the end of a prompt."""
        options = self.option_ids(choices)
        if choices.by == "token":
            ids = [tokens[0] for tokens in options]
            params = sampling_params(max_tokens=1, logprob_token_ids=ids, allowed_token_ids=ids)
            steps = [output.outputs[0].logprobs[0] for output in self._run(rendered, params)]
            return [scored(choices, [step[token].logprob for token in ids], 1) for step in steps]
        params = sampling_params(max_tokens=1, prompt_logprobs=0)
        whole = [[*ids, *option] for ids in rendered for option in options]
        sums = []
        for sequence, length, output in zip(
            whole, [len(ids) for ids in rendered for _ in options], self._run(whole, params), strict=True
        ):
            at = range(length, len(sequence))
            sums.append(sum(output.prompt_logprobs[n][sequence[n]].logprob for n in at))
        k = len(options)
        width = max(map(len, options))
        return [scored(choices, sums[i : i + k], width) for i in range(0, len(sums), k)]

    def close(self) -> None:
        """Stop vLLM and drop the weights."""
        if self._llm is not None:
            with contextlib.suppress(AttributeError):
                self._llm.llm_engine.engine_core.shutdown()
        self._llm = None
        release_memory()


def sampling_params(**chosen: Any) -> Any:
    """Greedy `vllm.SamplingParams` in which every field is given; nothing is left to the model or to vLLM."""
    from vllm import SamplingParams
    from vllm.sampling_params import RequestOutputKind

    explicit = {**sampling_fields(**chosen), "output_kind": RequestOutputKind.FINAL_ONLY}
    # A field that this version does not have yet, or has no more, is neutral.
    known = SamplingParams.__struct_fields__
    return SamplingParams(**{name: value for name, value in explicit.items() if name in known or name in chosen})


def sampling_fields(**chosen: Any) -> dict[str, Any]:
    """Every field of `vllm.SamplingParams` but `output_kind`: neutral and greedy where `chosen` says nothing."""
    return {
        **NEUTRAL,
        "n": 1,
        "temperature": 0.0,
        "watermarking": False,
        "seed": None,
        "stop": None,
        "stop_token_ids": None,
        "max_tokens": 1,
        "logprobs": None,
        "prompt_logprobs": None,
        "prompt_logprob_token_ids": None,
        "prompt_logprob_start": None,
        "logprob_token_ids": None,
        "flat_logprobs": False,
        "detokenize": False,
        "skip_special_tokens": False,
        "spaces_between_special_tokens": True,
        "include_stop_str_in_output": False,
        "stream_interval": None,
        "skip_clone": False,
        "structured_outputs": None,
        "logit_bias": None,
        "allowed_token_ids": None,
        "extra_args": None,
        "bad_words": None,
        "skip_reading_prefix_cache": None,
        "thinking_token_budget": None,
        "repetition_detection": None,
        "routed_experts_prompt_start": 0,
        "trace_decode_token_ids": None,
        **chosen,
    }


def _vllm() -> Any:
    os.environ.setdefault("VLLM_NO_USAGE_STATS", "1")
    os.environ.setdefault("VLLM_LOGGING_LEVEL", "WARNING")
    try:
        import vllm
    except ImportError as error:
        raise EngineError(
            f"engine.kind=vllm needs vLLM ({error}); install it into an environment of its own: "
            "pip install 'scope-preference[vllm]'"
        ) from error
    import vllm.platforms

    return vllm


@contextlib.contextmanager
def _gpus(number: int) -> Any:
    """Show vLLM the GPUs of this process alone, where a launcher started several."""
    if shard()[1] == 1:
        yield
        return
    before = os.environ.get("CUDA_VISIBLE_DEVICES")
    visible = before.split(",") if before else [str(n) for n in range(number * (local_rank() + 1))]
    own = visible[number * local_rank() : number * (local_rank() + 1)]
    os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(own)
    try:
        yield
    finally:
        if before is None:
            del os.environ["CUDA_VISIBLE_DEVICES"]
        else:
            os.environ["CUDA_VISIBLE_DEVICES"] = before
