"""Engines: prompts -> completions or scored options, every finished batch kept in the store.

An engine renders prompts, says what its output depends on, and computes a batch; `opened` gives the one a recipe
asks for. Everything else (keys, plan, store, resume, repeats, spending cap) is in `driver`, so that all share it.
"""

import contextlib
import logging
from collections.abc import Collection, Iterator, Sequence
from typing import Any

from scope.answers import split_thinking
from scope.engines.base import Choices, Engine, EngineError, Generated, Sampling, TooLongError
from scope.engines.driver import answered
from scope.engines.memory import release_memory, resident_gb
from scope.engines.shards import is_main
from scope.engines.store import Store
from scope.items import Completion
from scope.prompts import Prompt
from scope.schema import EngineConfig, ModelConfig

__all__ = [
    "Choices",
    "Completion",
    "Engine",
    "EngineError",
    "Generated",
    "Sampling",
    "Store",
    "TooLongError",
    "complete",
    "opened",
    "probabilities",
    "reasoning_and_answer",
    "release_memory",
    "resident_gb",
    "score_choices",
    "warn_unpinned",
]

log = logging.getLogger(__name__)


@contextlib.contextmanager
def opened(model: Any, config: ModelConfig, engine: EngineConfig, adapter: Any = None) -> Iterator[Engine]:
    """The engine of `engine.kind`, its weights or connections given back at the end.

    model: the `scope.models.ResolvedModel` to load; for engine.kind=openai the base or None, for a server has
    what it has. adapter: anything with `path` (a PEFT folder) and `sha256`, applied without merging.
    Raises EngineError where the engine cannot serve that model or adapter.
    """
    if engine.kind == "openai":
        from scope.engines.openai import OpenAIEngine

        if adapter is not None:
            raise EngineError(
                "engine.kind=openai cannot load an adapter: serve it under a name of its own (vllm serve MODEL "
                "--enable-lora --lora-modules NAME=FOLDER) and set engine.model=NAME, or use another engine"
            )
        if model is not None and model.name != config.base:
            raise EngineError(
                f"engine.kind=openai cannot load {model.name}: serve it (vllm serve FOLDER) and set model.base or "
                "engine.model to it, or use another engine"
            )
        opened_engine: Engine = OpenAIEngine(config, engine)
    elif engine.kind == "vllm":
        from scope.engines.vllm import VLLMEngine

        opened_engine = VLLMEngine(model, config, engine, adapter)
    else:
        from scope.engines.transformers import TransformersEngine

        opened_engine = TransformersEngine(model, config, engine, adapter)
    try:
        yield opened_engine
    finally:
        opened_engine.close()


def warn_unpinned(engine: Engine, told: Collection[str]) -> set[str]:
    """Log a sentence for each thing that the chat template leaves open and nobody was `told` of; the names of these."""
    faults = {name: fault for name, fault in engine.unpinned().items() if name not in told}
    for fault in faults.values() if is_main() else ():
        log.warning("%s", fault)
    return set(faults)


def complete(
    engine: Engine,
    prompts: Sequence[Prompt],
    sampling: Sampling,
    store: Store,
    label: str,
    names: Sequence[str] | None = None,
    keep_failed: bool = False,
    limit: int = 0,
) -> list[Completion]:
    """Completions of `prompts`, in order; only what the store lacks is generated.

    names: what to call each prompt in a refusal, e.g. item id and cell. keep_failed: hand out requests that
    failed as completions with finish_reason `error` instead of raising; either way the next call asks again.
    limit: most tokens of a rendered prompt, 0 for the model's window alone. Nothing is ever cut.
    Under torchrun or accelerate each process generates its share and all return the whole list.

    Raises TooLongError, naming every prompt beyond the limit or the model's window, and EngineError for a server that
    does not answer, a spending cap or failed requests. What was answered by then is in the store.
    """
    return answered(engine, prompts, sampling, store, label, names, keep_failed, limit)


def score_choices(
    engine: Engine,
    prompts: Sequence[Prompt],
    choices: Sequence[str],
    store: Store,
    label: str,
    by: str = "token",
    names: Sequence[str] | None = None,
    keep_failed: bool = False,
    limit: int = 0,
) -> list[Completion]:
    """The likeliest of k options as the continuation of each prompt, with every option's log-probability.

    The returned completions have finish_reason `choice`, the likeliest option as `text`, and `log_probs` (k,):
    natural logarithms before renormalising, so that the sum of their exponentials says how much of the model's
    mass lies on the options; `probabilities` renormalises. A server returns the option alone, log_probs empty.

    by: `token` takes each option's single token as the next one (an option that is not one token under this
    tokenizer is refused by name); `sequence` takes all its tokens and the end token. Store, keys and refusals
    are those of `complete`.
    """
    if by not in ("token", "sequence"):
        raise EngineError(f"by={by} is not a way to score options; use token or sequence")
    options = tuple(choices)
    if len(options) < 2 or len(set(options)) < len(options) or "" in options:
        raise EngineError(f"the options {list(options)} cannot be scored; give two or more that differ, none empty")
    return answered(engine, prompts, Choices(options, by), store, label, names, keep_failed, limit)


def probabilities(completions: Sequence[Completion]) -> Any:
    """Probabilities (n, k) of scored options, float64, each row renormalised to sum to 1.

    Raises EngineError for completions without `log_probs` (a server's choice).
    """
    import numpy as np

    if bad := [c for c in completions if not c.log_probs]:
        raise EngineError(
            f"{len(bad)} of {len(completions)} completions hold no log-probabilities (the first: {bad[0].engine}, "
            f"{bad[0].finish_reason}); score options with engine.kind=transformers or vllm"
        )
    scores = np.array([c.log_probs for c in completions], dtype=np.float64)
    scores = np.exp(scores - scores.max(axis=1, keepdims=True))
    return scores / scores.sum(axis=1, keepdims=True)


def reasoning_and_answer(completion: Completion) -> tuple[str, str | None]:
    """(all reasoning, visible answer), wherever the engine put the reasoning; the answer is None if it was cut off.

    A server may hand reasoning over apart (`reasoning`), a template may leave it in the text.
    """
    inside, visible = split_thinking(completion.text)
    return "\n".join(part for part in (completion.reasoning, inside) if part), visible
