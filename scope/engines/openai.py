"""Completions from an OpenAI-compatible server: OpenAI, Azure, `vllm serve` and their like.

A suite's messages, the token cap, and whatever the recipe sets in `engine.temperature` and `engine.extra`: nothing else
is sent (protocol, API reference models). A temperature brings the protocol's other decoding fields with it, neutral,
for a server would fill them from the model's generation_config. The official client repeats what fails on the way
(connections, time-outs, 429 with its Retry-After, 5xx); an answer that is no chat completion is repeated by the driver.
Keys never reach a message or a file.
"""

import json
import os
import re
import threading
import time
from collections.abc import Sequence
from typing import Any, NoReturn

from scope.engines.base import Choices, Engine, EngineError, Generated, Sampling, known_as
from scope.engines.decoding import server_fields
from scope.prompts import Prompt, as_messages
from scope.schema import EngineConfig, ModelConfig

_TOO_LONG = re.compile(
    r"context.?length|context.?window|max_model_len|maximum (?:model|input|prompt) length|too many (?:input )?tokens"
    r"|(?:prompt|input|request)[^.]{0,40} (?:is )?too (?:long|large)",
    re.IGNORECASE,
)
_SECRETS = re.compile(r"\bsk-[\w*-]+|(?<=Bearer )[^\s\"']+|(?<=//)[^/@\s]+(?=@)|(?<=key=)[^\s&\"']+", re.IGNORECASE)
_SURROGATE = re.compile("[\ud800-\udfff]")
_FINISHED = ("stop", "length", "content_filter")


class OpenAIEngine(Engine):
    """One served model. Each request is a batch of its own, `engine.concurrency` of them in flight."""

    priced = True

    def __init__(self, config: ModelConfig, engine: EngineConfig):
        self.config, self.engine = config, engine
        self.parallel, self.retries, self.max_cost = engine.concurrency, engine.max_retries, engine.max_cost
        self.model = known_as(config, engine)
        self.url = engine.azure.endpoint or engine.base_url
        self._secret = os.environ.get(engine.api_key_env, "").strip()
        hosted = bool(engine.azure.endpoint) or engine.base_url == EngineConfig.base_url
        if hosted and not self._secret:
            raise EngineError(f"{self.url} needs a key; put it into the environment variable {engine.api_key_env}")
        if not self._secret.isascii() or len(self._secret.split()) > 1:
            raise EngineError(f"the key in {engine.api_key_env} holds characters that no key has; set it again")
        self._lock = threading.Lock()
        self._next_start = 0.0
        self._reached, self._failed_in_a_row = False, 0
        self._client = self._connect()

    def _connect(self) -> Any:
        try:
            import openai
        except ImportError as error:
            raise EngineError(
                "engine.kind=openai needs the openai package; run: pip install 'scope-preference[api]'"
            ) from error
        shared: dict[str, Any] = {
            "api_key": self._secret or "none",
            "max_retries": self.engine.max_retries,
            "timeout": self.engine.timeout,
        }
        azure = self.engine.azure
        if not azure.endpoint:
            return openai.OpenAI(base_url=self.engine.base_url, **shared)
        return openai.AzureOpenAI(
            azure_endpoint=azure.endpoint, api_version=azure.api_version, azure_deployment=self.model, **shared
        )

    def identity(self) -> dict[str, Any]:
        return {
            "kind": "openai",
            "model": self.model,
            "server": self.engine.server or self._redacted(self.url),
            "api_version": self.engine.azure.api_version,
            "body": self._body(),
        }

    def version(self) -> str:
        return f"{self.model} at {self.engine.server or self._redacted(self.url)}"

    def folds_system(self) -> bool:
        """As the recipe says: what a server's template takes is not known here."""
        return self.engine.fold_system

    def render(self, prompts: Sequence[Prompt]) -> list[Prompt]:
        return [str(prompt) if self.engine.fold_system else prompt for prompt in prompts]

    def cost_bound(self, rendered: Sequence[Prompt], how: Sampling | Choices) -> float:
        # No tokenizer makes more tokens than bytes; a template adds a few.
        n_prompt = sum(len(str(prompt).encode("utf-8", "replace")) + 64 for prompt in rendered)
        return self._cost(n_prompt, _cap(how) * len(rendered))

    def generate(self, rendered: Sequence[Prompt], sampling: Sampling) -> list[Generated]:
        return [self._ask(prompt, sampling, sampling.drawn()) for prompt in rendered]

    def score_choices(self, rendered: Sequence[Prompt], choices: Choices) -> list[Generated]:
        """The option each server picks under its own constraint; no log-probabilities.

        Raises EngineError if the server answers with anything else: it does not know `engine.choice_field`.
        """
        options = list(choices.options)
        field = self.engine.choice_field
        constraint = {field: {"choice": options} if field == "structured_outputs" else options}
        return [self._chosen(self._ask(prompt, choices, constraint), options) for prompt in rendered]

    def _chosen(self, out: Generated, options: Sequence[str]) -> Generated:
        if out.finish_reason not in ("stop", "length"):
            return out
        if (option := out.text.strip()) not in options:
            raise EngineError(
                f"{self._redacted(self.url)} answered {out.text[:40]!r}, none of the options {list(options)}: it does "
                f"not know {self.engine.choice_field}; score options with engine.kind=transformers or vllm, or set "
                "engine.choice_field"
            )
        return Generated(
            [], option, "choice", out.n_prompt_tokens, out.n_tokens, out.reasoning, engine=out.engine, cost=out.cost
        )

    # ---------------------------------------------------------------- one request

    def _body(self) -> dict[str, Any]:
        """What the recipe adds to every request. With a temperature the rest of decoding is said too."""
        body = server_fields(self.engine.temperature)
        if self.config.chat_template_kwargs:
            body["chat_template_kwargs"] = dict(self.config.chat_template_kwargs)
        return {**body, **self.engine.extra}

    def _ask(self, prompt: Prompt, how: Sampling | Choices, more: dict[str, Any]) -> Generated:
        import openai

        self._wait_for_turn()
        body = {self.engine.max_tokens_field: _cap(how), **self._body(), **more}
        try:
            raw = self._client.chat.completions.with_raw_response.create(
                model=self.model, messages=as_messages(prompt), extra_body=body
            )
        except openai.APIConnectionError as error:
            cause = str(error.__cause__ or error)
            timed_out = isinstance(error, openai.APITimeoutError)
            reason = f"no answer within {self.engine.timeout:g} s" if timed_out else f"cannot be reached ({cause})"
            return self._failure(f"{self._redacted(self.url)}: {self._redacted(reason)}")
        except openai.APIStatusError as error:
            return self._refusal(error)
        return self._read(raw.text, prompt, how)

    def _wait_for_turn(self) -> None:
        """Begin no more requests a minute than the recipe allows."""
        if not self.engine.requests_per_minute:
            return
        with self._lock:
            start = max(time.monotonic(), self._next_start)
            self._next_start = start + 60 / self.engine.requests_per_minute
        time.sleep(max(0.0, start - time.monotonic()))

    def _refusal(self, error: Any) -> Generated:
        """What an HTTP error means: this prompt's fault, a passing one, or one that every request would meet."""
        status, message = error.status_code, self._redacted(_message(error))
        where = f"{self._redacted(self.url)} answered {status} ({message})"
        with self._lock:
            self._reached = True
        if status in (400, 413, 422):
            if error.code == "content_filter" or "content_filter" in str(error.body):
                return Generated([], "", "content_filter", 0, 0, engine=self.version())
            if status == 413 or error.code == "context_length_exceeded" or _TOO_LONG.search(message):
                return Generated([], "", "too_long", error=f"exceeds the window of {self.model}: {message}")
            raise EngineError(f"{where}; set what the server takes in engine.extra or engine.max_tokens_field")
        if status in (401, 403):
            raise EngineError(f"{where}; check the key in {self.engine.api_key_env}")
        if status == 404:
            raise EngineError(f"{where}; check engine.base_url and engine.model={self.model}")
        if error.code == "insufficient_quota":
            raise EngineError(f"{where}; the account has no credit left, what was answered is kept")
        return self._failure(where)

    def _failure(self, reason: str, cost: float = 0.0, again: bool = False) -> Generated:
        """A request without an answer; after too many in a row, or if there is no server, the run stops."""
        with self._lock:
            self._failed_in_a_row += 1
            gone = not self._reached or self._failed_in_a_row >= max(10, 2 * self.parallel)
        if gone:
            raise EngineError(f"{reason}; what was answered is kept: see to the server and run the same command again")
        return Generated([], "", "error", 0, 0, error=reason, cost=cost, again=again, engine=self.version())

    def _read(self, text: str, prompt: Prompt, how: Sampling | Choices) -> Generated:
        """A response's body -> the output; anything that is no chat completion is a failure to be repeated."""
        with self._lock:
            self._reached = True
        try:
            data = json.loads(text)
            choice = data["choices"][0]
            message, finish = choice["message"], choice["finish_reason"]
            if finish not in _FINISHED:
                raise ValueError(f"finish_reason is {finish!r}")
            content = _text(message.get("content"), "content") or _text(message.get("refusal"), "refusal")
            reasoning = _text(message.get("reasoning_content") or message.get("reasoning"), "reasoning_content")
            if not content and not reasoning and finish == "stop" and message.get("content") is None:
                raise ValueError("the message has no content")
        except (ValueError, KeyError, IndexError, TypeError, AttributeError, RecursionError) as error:
            what = self._redacted(f"{type(error).__name__}: {error}; it begins {text[:80]!r}")
            # It may have been charged for.
            cost = self.cost_bound([prompt], how)
            return self._failure(f"{self._redacted(self.url)}: no chat completion came back ({what})", cost, again=True)
        with self._lock:
            self._failed_in_a_row = 0
        n_prompt, n_tokens = _usage(data)
        known = n_prompt + n_tokens > 0
        if n_tokens > _cap(how):
            self._cap_ignored(n_tokens, how)
        served = data.get("model")
        served = self._redacted(served) if isinstance(served, str) and served else self.model
        return Generated(
            token_ids=[],
            text=content,
            finish_reason=finish,
            n_prompt_tokens=n_prompt,
            n_tokens=n_tokens,
            reasoning=reasoning,
            engine=f"{served} at {self.engine.server or self._redacted(self.url)}",
            cost=self._cost(n_prompt, n_tokens) if known else self.cost_bound([prompt], how),
        )

    def _cap_ignored(self, n_tokens: int, how: Sampling | Choices) -> NoReturn:
        field = self.engine.max_tokens_field
        other = "max_tokens" if field == "max_completion_tokens" else "max_completion_tokens"
        raise EngineError(
            f"{self._redacted(self.url)} generated {n_tokens} tokens though {field}={_cap(how)}: it does not know that "
            f"field; set engine.max_tokens_field={other}"
        )

    def _cost(self, n_prompt: int, n_tokens: int) -> float:
        return (n_prompt * self.engine.price_in + n_tokens * self.engine.price_out) / 1e6

    def _redacted(self, text: str) -> str:
        """A message without keys, as one line of at most 400 characters."""
        if self._secret:
            text = text.replace(self._secret, "***")
        return " ".join(_SURROGATE.sub("\ufffd", _SECRETS.sub("***", text)).split())[:400]

    def close(self) -> None:
        self._client.close()


def _cap(how: Sampling | Choices) -> int:
    """Token cap of a request; an option has no more tokens than bytes."""
    if isinstance(how, Sampling):
        return how.max_new_tokens
    return max(len(option.encode("utf-8")) for option in how.options) + 1


def _text(value: Any, name: str) -> str:
    """A text field of a message; "" for null. What SQLite cannot hold is replaced."""
    if value is None:
        return ""
    if not isinstance(value, str):
        raise TypeError(f"{name} is no text")
    return _SURROGATE.sub("\ufffd", value)


def _usage(data: dict[str, Any]) -> tuple[int, int]:
    """(prompt tokens, completion tokens) as the server counts them; (0, 0) if it does not."""
    usage = data.get("usage")
    counts = [usage.get(n) for n in ("prompt_tokens", "completion_tokens")] if isinstance(usage, dict) else []
    good = [count for count in counts if isinstance(count, int) and count >= 0]
    return (good[0], good[1]) if len(good) == 2 else (0, 0)


def _message(error: Any) -> str:
    """The server's own words."""
    body = error.body
    if isinstance(body, dict):
        inner = body.get("error", body)
        if isinstance(inner, dict) and isinstance(inner.get("message"), str):
            return inner["message"]
        if isinstance(inner, str):
            return inner
    return str(body or error.message)
