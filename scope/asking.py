"""Asking a model for one JSON object: a reply that cannot be used is asked for again with what was wrong with it.

Used by the judge of free-text answers and by the screening of items. Nothing is guessed, and every prompt and reply is
kept.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from scope.answers import split_thinking
from scope.engines import Sampling, Store, complete, opened
from scope.items import Completion
from scope.models import ResolvedModel
from scope.schema import JudgeConfig

#: Follow the prompt when replies could not be used, a line each; under greedy decoding the same prompt gives the same
#: reply, so that every attempt has a prompt of its own.
AGAIN = "Your reply {number} could not be used: it {fault}."
ALONE = "Reply with the JSON object alone."


class Asked(Protocol):
    """What is asked. name: for messages. `text` is the prompt, `fault` what keeps a reply from being used."""

    @property
    def name(self) -> str: ...

    def text(self, faults: Sequence[str] = ()) -> str: ...

    def fault(self, reply: str) -> str: ...


@dataclass(slots=True)
class Replies:
    """The prompts sent and the replies to them, in order; `refused` says why nothing was sent at all."""

    prompts: list[str] = field(default_factory=list)
    replies: list[Completion] = field(default_factory=list)
    refused: str = ""


def again(prompt: str, faults: Sequence[str]) -> str:
    """A prompt with what was wrong with earlier replies to it."""
    lines = [AGAIN.format(number=number, fault=fault) for number, fault in enumerate(faults, 1)]
    return "\n".join([f"{prompt}\n", *lines, ALONE]) if lines else prompt


def ask(
    chosen: JudgeConfig, model: ResolvedModel | None, cases: Sequence[Asked], store: Store, label: str
) -> list[Replies]:
    """Ask for every case, again where its reply cannot be used; what the store holds is not asked again.

    model: the weights, None where a server has them. A case that holds a control token of the tokenizer is refused: it
    could speak in the model's name. Raises what `scope.engines.complete` raises; a request that failed is the last of
    its case's replies.
    """
    found = [Replies() for _ in cases]
    faults: list[list[str]] = [[] for _ in cases]
    if not cases:
        return found
    with opened(model, chosen.model, chosen.engine) as engine:
        tokens = [token for token in engine.control_tokens() if token.strip()]
        waiting: dict[int, str] = {}
        for index, case in enumerate(cases):
            text = case.text()
            if token := next((token for token in tokens if token in text), ""):
                found[index].refused = f"was not sent: holds {token!r}, a control token of the judge's tokenizer"
            else:
                waiting[index] = text
        for attempt in range(1 + chosen.retries):
            if not waiting:
                break
            names = [cases[index].name for index in waiting]
            title = label + (f", attempt {attempt + 1}" if attempt else "")
            sampling = Sampling(chosen.max_new_tokens)
            replies = complete(engine, list(waiting.values()), sampling, store, title, names, keep_failed=True)
            repeated: dict[int, str] = {}
            for (index, prompt), reply in zip(waiting.items(), replies, strict=True):
                found[index].prompts.append(prompt)
                found[index].replies.append(reply)
                if reply.finish_reason == "error":
                    continue
                if fault := cases[index].fault(reply.text):
                    faults[index].append(fault)
                    repeated[index] = cases[index].text(faults[index])
            waiting = repeated
    return found


# ---------------------------------------------------------------- reading a reply


def one_object(reply: str) -> dict[str, Any] | str:
    """The only JSON object in a reply, whatever stands around it; or what is wrong, as the rest of a sentence."""
    _, visible = split_thinking(reply)
    if visible is None:
        return "ends within its thinking"
    try:
        objects = list(_objects(visible))
    except ValueError as error:
        return str(error)
    if not objects:
        cut = "{" in visible
        return "holds no complete JSON object; keep quote and reason short" if cut else "holds no JSON object"
    return objects[0] if len(objects) == 1 else f"holds {len(objects)} JSON objects, not one"


def _objects(text: str) -> Iterator[dict[str, Any]]:
    """The outermost JSON objects in a text; ValueError for one with a key that stands twice."""
    decoder = json.JSONDecoder(object_pairs_hook=_unique)
    at = text.find("{")
    while at >= 0:
        try:
            found, end = decoder.raw_decode(text, at)
            yield found
        except (json.JSONDecodeError, RecursionError):
            end = at + 1
        at = text.find("{", end)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("has a key twice")
    return found


def encodable(text: str) -> str:
    """The text without lone surrogates, which JSON can hold and a file cannot."""
    return text.encode("utf-8", "replace").decode("utf-8")
