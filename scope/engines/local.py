"""What engines that hold the weights share: template, window, plan in token order, end tokens, options."""

import json
from collections.abc import Sequence
from functools import cached_property
from typing import Any

from scope.engines.base import Choices, Engine, EngineError, Generated, Sampling
from scope.models import ResolvedModel, load_tokenizer
from scope.prompts import Chat, Prompt, as_messages
from scope.schema import EngineConfig, ModelConfig

#: For templates that print the day (MisleadQA, App. C.1): an example in a refusal, nothing is set by itself.
DATE = "01 Oct 2026"


class LocalEngine(Engine):
    """One model on disk (and at most one adapter), its tokenizer at hand."""

    def __init__(self, model: ResolvedModel, config: ModelConfig, engine: EngineConfig, adapter: Any = None):
        self.resolved, self.config, self.engine, self.adapter = model, config, engine, adapter
        self.tokenizer = load_tokenizer(model)

    def control_tokens(self) -> list[str]:
        return [token.content for token in self.tokenizer.added_tokens_decoder.values()]

    def unpinned(self) -> dict[str, str]:
        """A clock in the template's text that no setting replaces; thinking, by rendering with and without it."""
        text, set_here = str(self.tokenizer.chat_template or ""), self.config.chat_template_kwargs
        key, faults = "model.chat_template_kwargs", {}

        def shown(**more: Any) -> list[int]:
            return render(self.tokenizer, "?", {**set_here, **more})

        if "strftime_now" in text and "date_string" not in text:
            faults["date"] = "prints the day's date; put one with a fixed date into the model's folder"
        elif "strftime_now" in text and "date_string" not in set_here:
            faults["date_string"] = f"prints the day's date; set {key}.date_string, e.g. {DATE!r}"
        if set_here.get("enable_thinking") is not False and shown() != shown(enable_thinking=False):
            faults["enable_thinking"] = f"lets the model think; set {key}.enable_thinking=false"
        return {name: f"the chat template of {self.resolved.name} {fault}" for name, fault in faults.items()}

    @cached_property
    def _folds(self) -> bool:
        from jinja2 import TemplateError

        probe = "A system message."
        try:
            ids = render(self.tokenizer, Chat(probe, "?"), self.config.chat_template_kwargs)
        except TemplateError:
            return True
        return probe not in self.tokenizer.decode(ids)

    def folds_system(self) -> bool:
        """By rendering one: the template refuses it, or leaves it out."""
        return self._folds

    def render(self, prompts: Sequence[Prompt]) -> list[list[int]]:
        sent = [str(prompt) if isinstance(prompt, Chat) and self.folds_system() else prompt for prompt in prompts]
        return [render(self.tokenizer, prompt, self.config.chat_template_kwargs) for prompt in sent]

    def too_long(self, rendered: Sequence[Sequence[int]], how: Sampling | Choices) -> dict[int, str]:
        if (window := self.window()) is None:
            return {}
        if isinstance(how, Sampling):
            room, what, advice = how.max_new_tokens, "max_new_tokens", "lower max_new_tokens or drop the item"
        else:
            room, what, advice = max(map(len, self.option_ids(how))), "tokens of an option", "drop the item"
        return {
            i: f"a prompt of {len(ids)} tokens and {what}={room} exceed the window of {window} tokens of "
            f"{self.resolved.name}; {advice} (prompt begins {self.tokenizer.decode(list(ids[:40]))!r})"
            for i, ids in enumerate(rendered)
            if len(ids) + room > window
        }

    def window(self) -> int | None:
        """Tokens that prompt and completion may have together; None if the model does not say."""
        return json.loads((self.resolved.path / "config.json").read_text("utf-8")).get("max_position_embeddings")

    @cached_property
    def end_ids(self) -> set[int]:
        """Token ids that end a completion: those the model's configuration names, and the tokenizer's end token."""
        return self.resolved.end_tokens | ({self.tokenizer.eos_token_id} - {None})

    def finished(self, ids: list[int]) -> Generated:
        """New tokens, an end token last if the model ended by itself, as an output."""
        ended = bool(ids) and ids[-1] in self.end_ids
        kept = ids[:-1] if ended else ids
        return Generated(kept, self.tokenizer.decode(kept), "stop" if ended else "length")

    def option_ids(self, choices: Choices) -> list[list[int]]:
        """Token ids of each option; by `sequence` the end token is the last."""
        ids = [self.tokenizer.encode(option, add_special_tokens=False) for option in choices.options]
        if choices.by == "sequence":
            return [[*option, self.tokenizer.eos_token_id] for option in ids]
        for option, tokens in zip(choices.options, ids, strict=True):
            if len(tokens) != 1:
                raise EngineError(
                    f"the option {option!r} is {len(tokens)} tokens under the tokenizer of {self.resolved.name}; "
                    "name options of one token each, or score whole options with by=sequence"
                )
        if len({tokens[0] for tokens in ids}) < len(ids):
            raise EngineError(
                f"the options {list(choices.options)} share a token under the tokenizer of {self.resolved.name}; name "
                "options that it tells apart, or score whole options with by=sequence"
            )
        return ids

    def close(self) -> None:
        """Drop the weights."""


def token_order(rendered: Sequence[Sequence[int]]) -> list[int]:
    """Indices in token order: neighbours share the longest beginnings, so an item's prompts stand together."""
    return sorted(range(len(rendered)), key=lambda i: tuple(rendered[i]))


def scored(choices: Choices, log_probs: Sequence[float], n_tokens: int) -> Generated:
    """The options' log-probabilities as an output; of equal ones the first is the likeliest."""
    best = max(range(len(log_probs)), key=lambda k: log_probs[k])
    return Generated([], choices.options[best], "choice", n_tokens=n_tokens, log_probs=tuple(map(float, log_probs)))


def render(tokenizer: Any, prompt: Prompt, template_kwargs: dict[str, Any]) -> list[int]:
    """A prompt -> token ids by the chat template, up to where the model begins to answer."""
    if not tokenizer.chat_template:
        raise EngineError(
            f"{tokenizer.name_or_path} has no chat template; use an instruction-tuned model, or put its template into "
            "the folder as chat_template.jinja"
        )
    ids = tokenizer.apply_chat_template(
        as_messages(prompt), add_generation_prompt=True, tokenize=True, return_dict=False, **template_kwargs
    )
    return list(ids)
