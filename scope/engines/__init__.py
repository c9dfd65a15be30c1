"""Engines: prompts -> completions, every finished batch kept in the store.

An engine renders prompts to token ids, says what its output depends on, and generates a batch.
Everything else (keys, plan, store, resume) is here, so that all engines share it.
"""

import contextlib
import ctypes
import gc
import logging
import os
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Protocol

from scope.artifacts import Refusal, fingerprint
from scope.engines.store import Store
from scope.items import Completion

__all__ = [
    "Completion",
    "Engine",
    "EngineError",
    "Generated",
    "Sampling",
    "Store",
    "complete",
    "release_memory",
    "resident_gb",
]

log = logging.getLogger(__name__)


class EngineError(Refusal):
    """A request that an engine cannot serve."""


@dataclass(frozen=True, slots=True)
class Sampling:
    """How to decode. Every field is passed explicitly; nothing comes from a model's defaults."""

    max_new_tokens: int
    temperature: float = 0.0


@dataclass(frozen=True, slots=True)
class Generated:
    """One raw output: token ids without the end token, their text, and why it ended."""

    token_ids: list[int]
    text: str
    finish_reason: str


class Engine(Protocol):
    def identity(self) -> dict[str, Any]:
        """Everything but prompt and sampling that the output depends on."""

    def control_tokens(self) -> list[str]:
        """Strings that data must not contain, for the tokenizer reads them as tokens of its own."""

    def render(self, prompts: Sequence[str]) -> list[list[int]]:
        """User messages -> prompt token ids, generation prompt included."""

    def plan(self, rendered: Sequence[Sequence[int]], sampling: Sampling) -> list[list[int]]:
        """Indices of the requests, batch by batch; depends on nothing but the arguments and the recipe."""

    def generate(self, rendered: Sequence[Sequence[int]], sampling: Sampling) -> list[Generated]:
        """One batch."""


def complete(engine: Engine, prompts: Sequence[str], sampling: Sampling, store: Store, label: str) -> list[Completion]:
    """Completions of `prompts`, in order; only what the store lacks is generated.

    The whole list is planned first. A planned batch of which anything is missing is computed
    whole, so that its numbers do not depend on what happened before, and committed whole.
    """
    from tqdm import tqdm

    rendered = engine.render(prompts)
    common = {"engine": engine.identity(), "sampling": asdict(sampling)}
    base = fingerprint(common)
    hashes = [fingerprint(list(ids)) for ids in rendered]
    keys = [fingerprint([base, prompt_hash]) for prompt_hash in hashes]
    unique = list({key: index for index, key in reversed(list(enumerate(keys)))}.values())[::-1]
    batches = [[unique[i] for i in batch] for batch in engine.plan([rendered[u] for u in unique], sampling)]
    plan = fingerprint([[keys[i] for i in batch] for batch in batches])
    found = store.get([keys[i] for i in unique])
    missing = [batch for batch in batches if any(keys[i] not in found for i in batch)]
    log.info(
        "%s: %d prompts, %d distinct, %d in the store; %d of %d batches to generate",
        label,
        len(prompts),
        len(unique),
        len(found),
        len(missing),
        len(batches),
    )
    for batch in tqdm(missing, desc=label, unit="batch", disable=None):
        began = time.monotonic()
        outputs = engine.generate([rendered[i] for i in batch], sampling)
        done = [
            (
                Completion(keys[i], hashes[i], out.text, out.finish_reason, len(rendered[i]), len(out.token_ids)),
                out.token_ids,
            )
            for i, out in zip(batch, outputs, strict=True)
        ]
        store.put(done, plan=plan, engine=base)
        found |= {c.request_id: c for c, _ in done if c.request_id not in found}
        seconds = time.monotonic() - began
        tokens = sum(len(ids) for _, ids in done)
        log.info(
            "%s: %d rows, %d new tokens in %.1f s (%.0f tokens/s), resident %.1f GB",
            label,
            len(batch),
            tokens,
            seconds,
            tokens / seconds,
            resident_gb(),
        )
    return [found[key] for key in keys]


def release_memory() -> None:
    """Give freed weights back to the system: glibc keeps them otherwise (2.1 GB of 3.2 for the demo's model)."""
    gc.collect()
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


def resident_gb() -> float:
    """Resident memory of this process in GB; 0.0 where /proc is absent."""
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e9
    except (OSError, ValueError):
        return 0.0
