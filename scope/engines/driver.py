"""Prompts -> completions, the same way for every engine: keys, plan, store, resume, repeats, spending cap.

The whole list is planned first. A planned batch of which anything is missing is computed whole, so that its
numbers do not depend on what happened before, and it is committed whole as soon as it ends.
"""

import logging
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ThreadPoolExecutor, wait
from typing import Any, NamedTuple

from scope.artifacts import fingerprint, write_json
from scope.engines import shards
from scope.engines.base import (
    Choices,
    Engine,
    EngineError,
    Generated,
    Rendered,
    Sampling,
    TooLongError,
    as_text,
    ignored,
)
from scope.engines.memory import resident_gb
from scope.engines.progress import progress
from scope.engines.store import Store
from scope.items import Completion
from scope.prompts import Chat, Prompt

log = logging.getLogger(__name__)

PAUSE, LONGEST_PAUSE = 0.5, 8.0  # seconds before a batch is repeated, doubled each time


class Ended(NamedTuple):
    """A batch that was asked; `final` is False if it will be repeated."""

    batch: list[int]
    outputs: list[Generated]
    seconds: float
    final: bool


def answered(
    engine: Engine,
    prompts: Sequence[Prompt],
    how: Sampling | Choices,
    store: Store,
    label: str,
    names: Sequence[str] | None,
    keep_failed: bool,
    limit: int = 0,
) -> list[Completion]:
    """`scope.engines.complete` and `score_choices`, which differ in `how` alone."""
    rendered = engine.render(prompts)
    named = names or [f"prompt {i} ({str(prompt)[:60]!r})" for i, prompt in enumerate(prompts)]
    lengths = {i: len(r) for i, r in enumerate(rendered) if as_text(r) is None}
    if beyond := engine.too_long(rendered, how) | _over(lengths, limit):
        raise _too_long(beyond, named)
    base = fingerprint({"engine": engine.identity(), **how.key()})
    hashes = [fingerprint(_plain(r)) for r in rendered]
    keys = [fingerprint([base, prompt_hash]) for prompt_hash in hashes]
    unique = list({key: index for index, key in reversed(list(enumerate(keys)))}.values())[::-1]
    batches = [[unique[i] for i in batch] for batch in engine.plan([rendered[u] for u in unique], how)]
    plan = fingerprint([[keys[i] for i in batch] for batch in batches])
    found = store.get([keys[i] for i in unique])
    missing = [batch for batch in batches if any(keys[i] not in found for i in batch)]
    shards.barrier()  # all processes have seen the same store before one of them adds to it: the shares fit together
    rank, world = shards.shard()
    own = missing[rank::world]
    log.info(
        "%s: %d prompts, %d distinct, %d in the store; %d of %d batches to generate%s",
        *(label, len(prompts), len(unique), len(found), len(own), len(batches)),
        f" by process {rank + 1} of {world}" if world > 1 else "",
    )
    refused: dict[int, str] = {}
    failed: dict[str, Completion] = {}
    version = engine.version()
    if own:
        engine.load()
    try:
        named_here = f"{label}, process {rank + 1} of {world}" if world > 1 else label
        with progress(named_here, sum(map(len, own))) as shown:
            engine.advance = shown.advance
            for group in _carried_out(engine, own, rendered, how, store):
                done: list[tuple[Completion, Generated]] = []
                for batch, outputs, seconds, final in group:
                    for i, out in zip(batch, outputs, strict=True):
                        if out.finish_reason == "too_long":
                            refused[i] = out.error
                        else:
                            share = seconds / len(batch)
                            done.append((_completion(keys[i], hashes[i], rendered[i], out, share, version), out))
                    if final:
                        shown.settle(len(batch), sum(map(_new_tokens, outputs)))
                    if engine.parallel == 1:
                        _log_batch(label, outputs, seconds)
                store.put(done, plan=plan, engine=base)
                for completion, _ in done:
                    kept = failed if completion.finish_reason == "error" else found
                    kept.setdefault(completion.request_id, completion)
    finally:
        engine.advance = ignored
        if engine.priced:
            _record_usage(label, store)
    if refused:
        raise _too_long(refused, named)
    shards.barrier()
    found = failed | store.get([keys[i] for i in unique if keys[i] not in found], failed=True) | found
    lost = [i for i in unique if found[keys[i]].finish_reason == "error"]
    if lost:
        sentence = (
            f"{label}: {len(lost)} of {len(unique)} requests failed, the first, {named[lost[0]]}: "
            f"{found[keys[lost[0]]].error}; run the same command again, it asks for these alone"
        )
        if not keep_failed:
            raise EngineError(sentence)
        log.warning("%s", sentence)
    completions = [found[key] for key in keys]
    if beyond := _over({i: c.n_prompt_tokens for i, c in enumerate(completions)}, limit):  # as a server counted
        raise _too_long(beyond, named)
    return completions


def _carried_out(
    engine: Engine, batches: Sequence[list[int]], rendered: Sequence[Rendered], how: Sampling | Choices, store: Store
) -> Iterator[list[Ended]]:
    """The batches that have ended, as they end; at most `engine.parallel` are in flight.

    When one raises, or the next could exceed the spending cap, no other begins; those in flight are waited
    for and handed out before the reason is raised.
    """
    queue, tries = deque(batches), Counter[int]()
    running: dict[Future[tuple[list[Generated], float]], tuple[list[int], float]] = {}
    # Of what is left each process may spend its part.
    left = (engine.max_cost - store.cost()) / shards.shard()[1] if engine.max_cost else float("inf")
    stop: Exception | None = None
    pool: Executor = _Here() if engine.parallel == 1 else ThreadPoolExecutor(engine.parallel)

    def ask(batch: list[int], pause: float) -> tuple[list[Generated], float]:
        time.sleep(pause)
        began = time.monotonic()
        part = [rendered[i] for i in batch]
        outputs = engine.generate(part, how) if isinstance(how, Sampling) else engine.score_choices(part, how)
        return outputs, time.monotonic() - began

    try:
        while running or (queue and stop is None):
            while queue and stop is None and len(running) < engine.parallel:
                bound = engine.cost_bound([rendered[i] for i in queue[0]], how)
                if sum(reserved for _, reserved in running.values()) + bound > left:
                    if not running:
                        stop = _cap_reached(engine, store, bound, len(queue))
                    break
                batch = queue.popleft()
                times = tries[batch[0]]
                pause = min(PAUSE * 2 ** (times - 1), LONGEST_PAUSE) if times else 0.0
                running[pool.submit(ask, batch, pause)] = (batch, bound)
            ended = []
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                batch, _ = running.pop(future)
                try:
                    outputs, seconds = future.result()
                except Exception as error:
                    stop = stop or error
                    continue
                left -= sum(out.cost for out in outputs)
                again = any(out.again for out in outputs) and tries[batch[0]] < engine.retries
                if again:
                    tries[batch[0]] += 1
                    queue.append(batch)
                ended.append(Ended(batch, outputs, seconds, not again))
            yield ended
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
    if stop is not None:
        raise stop


class _Here(Executor):
    """Runs what is submitted at once, in the calling thread."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future


def _completion(
    key: str, prompt_hash: str, rendered: Rendered, out: Generated, seconds: float, version: str
) -> Completion:
    n_prompt = len(rendered) if as_text(rendered) is None else 0  # type: ignore[arg-type]
    return Completion(
        request_id=key,
        prompt_hash=prompt_hash,
        text=out.text,
        finish_reason=out.finish_reason,
        n_prompt_tokens=n_prompt if out.n_prompt_tokens is None else out.n_prompt_tokens,
        n_tokens=len(out.token_ids) if out.n_tokens is None else out.n_tokens,
        reasoning=out.reasoning,
        error=out.error,
        log_probs=out.log_probs,
        seconds=seconds,
        engine=out.engine or version,
    )


def _plain(rendered: Any) -> Any:
    """What a prompt is known by, plain data."""
    if isinstance(rendered, Chat):
        return {"system": rendered.system, "user": rendered.user}
    return rendered if isinstance(rendered, str) else list(rendered)


def _over(lengths: Mapping[int, int], limit: int) -> dict[int, str]:
    """Index -> sentence of every prompt of more tokens than `limit`; none for 0."""
    return {
        i: f"a prompt of {length} tokens exceeds the input limit of {limit}; prompts are not cut: leave the item out, "
        "or raise the limit"
        for i, length in lengths.items()
        if limit and length > limit
    }


def _too_long(refused: dict[int, str], named: Sequence[str]) -> TooLongError:
    lines = [f"{named[i]}: {refused[i]}" for i in sorted(refused)]
    more = [f"... and {len(lines) - 20} more"] if len(lines) > 20 else []
    return TooLongError("\n".join(lines[:20] + more), sorted(refused))


def _cap_reached(engine: Engine, store: Store, bound: float, n_left: int) -> EngineError:
    return EngineError(
        f"engine.max_cost={engine.max_cost:g} might be exceeded: {store.cost():.4f} is spent and the next request may "
        f"cost {bound:.4f}; {n_left} requests are left, all others are kept in {store.path}; raise engine.max_cost "
        "and run the same command again"
    )


def _record_usage(label: str, store: Store) -> None:
    """Print what has been used so far, and keep it beside the store."""
    usage = store.usage()
    write_json(store.path.with_name("usage.json"), usage)
    for row in usage:
        log.info(
            "%s: so far %d requests (%d failed) to %s, %d prompt and %d completion tokens%s",
            *(label, row["requests"], row["failed"], row["engine"]),
            *(row["prompt_tokens"], row["completion_tokens"]),
            f", cost at most {row['cost']:.4f}" if row["cost"] else "",  # without prices nothing is known of it
        )


def _new_tokens(out: Generated) -> int:
    return len(out.token_ids) if out.n_tokens is None else out.n_tokens


def _log_batch(label: str, outputs: Sequence[Generated], seconds: float) -> None:
    tokens = sum(map(_new_tokens, outputs))
    rate = tokens / max(seconds, 1e-9)
    log.info(
        "%s: %d rows, %d new tokens in %.1f s (%.0f tokens/s), resident %.1f GB",
        *(label, len(outputs), tokens, seconds, rate, resident_gb()),
    )
