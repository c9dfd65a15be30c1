"""Quartets -> token ids, decided quartet by quartet before TRL sees a row.

A completion is the response's own tokens and exactly one end token; the prompt is what the model
is given at inference. A template that renders them otherwise, or an overlong row, never costs a
quartet one of its rows.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from scope.artifacts import Refusal
from scope.conditions import Condition
from scope.items import Quartet
from scope.prompts import as_messages


class TokeniseError(Refusal, ValueError):
    """A response that the chat template does not put behind its prompt as it stands."""


@dataclass(frozen=True, slots=True)
class TokenisedQuartet:
    """Token ids of the four prompts and the two completions, each completion with its end token."""

    prompts: dict[Condition, list[int]]
    chosen: list[int]
    rejected: list[int]
    cut: int  # prompt tokens cut from the left, over the four rows


@dataclass(frozen=True, slots=True)
class OverlongCounts:
    """What `max_length` did: quartets with a cut prompt, and quartets dropped."""

    cut: int
    dropped: int


def end_token(tokenizer: Any, template_kwargs: dict[str, Any]) -> int:
    """The token the chat template closes an assistant turn with; the tokenizer's own if it has none."""
    probe = "scope"
    text = _conversation(tokenizer, "probe", probe, template_kwargs)
    suffix = text[text.rindex(probe) + len(probe) :]
    ids = tokenizer.encode(suffix, add_special_tokens=False)
    special = [i for i in ids if i in tokenizer.all_special_ids]
    end = special[0] if special else tokenizer.eos_token_id
    if end is None:
        raise TokeniseError("the tokenizer has no end token and its chat template adds none; set tokenizer.eos_token")
    return end


def _conversation(tokenizer: Any, prompt: str, response: str, template_kwargs: dict[str, Any]) -> str:
    messages = [*as_messages(prompt), {"role": "assistant", "content": response}]
    return tokenizer.apply_chat_template(messages, tokenize=False, **template_kwargs)


def tokenise(tokenizer: Any, quartet: Quartet, template_kwargs: dict[str, Any], end: int) -> TokenisedQuartet:
    """Token ids of a quartet; TokeniseError if the template breaks prompt + response."""
    prompts: dict[Condition, list[int]] = {}
    for condition in Condition:
        prompt = quartet.prompt(condition)
        text = tokenizer.apply_chat_template(
            as_messages(prompt), add_generation_prompt=True, tokenize=False, **template_kwargs
        )
        ids = tokenizer.encode(text, add_special_tokens=False)
        if len(ids) > 1 and ids[0] == ids[1] == tokenizer.bos_token_id:
            raise TokeniseError(f"{_name(quartet)}: prompt_{condition}: has two BOS tokens; mend the template")
        prompts[condition] = ids
        for name in ("chosen", "rejected"):
            response = getattr(quartet, name)
            whole = _conversation(tokenizer, prompt, response, template_kwargs)
            if not whole.startswith(text) or not whole[len(text) :].lstrip().startswith(response.strip()):
                raise TokeniseError(
                    f"{_name(quartet)}: prompt_{condition}: the chat template renders the prompt alone differently "
                    f"from the prompt before the {name} response (it ends in {text[-30:]!r}); set "
                    "model.chat_template_kwargs so that both agree, e.g. enable_thinking: false"
                )
    completions = {}
    for name in ("chosen", "rejected"):
        ids = [*tokenizer.encode(getattr(quartet, name), add_special_tokens=False), end]
        if ids.count(end) != 1:
            raise TokeniseError(f"{_name(quartet)}: {name}: holds the end token inside its text; mine again")
        completions[name] = ids
    return TokenisedQuartet(prompts, completions["chosen"], completions["rejected"], 0)


def _name(quartet: Quartet) -> str:
    return f"{quartet.where or 'quartet'}: {quartet.item_id}"


def fit(quartet: TokenisedQuartet, max_length: int, overlong: str) -> TokenisedQuartet | None:
    """The quartet within `max_length`, all four rows under one rule; None if it is dropped.

    `keep_end` cuts prompts from the left and never touches a completion; a completion that leaves
    no room for a prompt token, or `drop_quartet`, drops all four rows.
    """
    room = max_length - max(len(quartet.chosen), len(quartet.rejected))
    if all(len(ids) <= room for ids in quartet.prompts.values()):
        return quartet
    if room < 1 or overlong == "drop_quartet":
        return None
    cut = sum(max(0, len(ids) - room) for ids in quartet.prompts.values())
    prompts = {condition: ids[-room:] for condition, ids in quartet.prompts.items()}
    return TokenisedQuartet(prompts, quartet.chosen, quartet.rejected, cut)


def tokenise_all(
    tokenizer: Any,
    quartets: Sequence[Quartet],
    template_kwargs: dict[str, Any],
    max_length: int,
    overlong: str,
) -> tuple[list[Quartet], list[TokenisedQuartet], OverlongCounts]:
    """The quartets that stay, their token ids, and what `max_length` did."""
    end = end_token(tokenizer, template_kwargs)
    kept, ids = [], []
    for quartet in quartets:
        fitted = fit(tokenise(tokenizer, quartet, template_kwargs, end), max_length, overlong)
        if fitted is not None:
            kept.append(quartet)
            ids.append(fitted)
    counts = OverlongCounts(sum(t.cut > 0 for t in ids), len(quartets) - len(kept))
    return kept, ids, counts
