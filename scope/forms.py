"""Forms: the values of published rows in the forms that our schema has.

Options, answers and messages come in many forms; what has no certain reading raises Unreadable.
"""

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from scope.columns import cell, columns_of, recognise

# ---------------------------------------------------------------- answers and options


class Unreadable(Exception):
    """A value that has no certain reading: `field: what was found; what to do`."""


@dataclass(frozen=True, slots=True)
class Options:
    """Answer options in order; labels: what the rows call them, where that is not A, B, C."""

    texts: list[str]
    labels: list[str]


def missing(value: Any) -> bool:
    """None, blank text, not-a-number, or an empty list or object."""
    if isinstance(value, str):
        return not value.strip()
    return value is None or (isinstance(value, float) and math.isnan(value)) or value in ([], {}, ())


def text_of(value: Any) -> str:
    """Text, number or truth value as text without white space around it; empty for anything else."""
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, bool):
        return str(value).casefold()
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return str(value) if isinstance(value, int | float | Decimal) and not missing(value) else ""


def plain(value: Any) -> Any:
    """A number or truth value as text; anything else as it is."""
    return value if isinstance(value, str) else text_of(value) or value


def yes_or_no(value: Any) -> Any:
    """`yes` or `no`; the value itself if it is neither."""
    found = {"yes": "yes", "y": "yes", "true": "yes", "1": "yes", "no": "no", "n": "no", "false": "no", "0": "no"}
    return found.get(text_of(value).casefold().rstrip("."), value)


def options_of(value: Any) -> Options | None:
    """Options from a list, an object label -> text, {label, text} in either nesting, JSON text or `A) x` lines.

    None where there are none. Unreadable says what they are instead.
    """
    if isinstance(value, str) and value.lstrip()[:1] in ("[", "{"):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError) as error:
            raise Unreadable(f"options: {value!r:.60} is not valid JSON ({error}); write a list") from error
    if missing(value):
        return None
    labels: list[Any] = []
    if isinstance(value, str):
        labels, texts = _labelled(re.split(r"\s*[\n;|]\s*", value.strip()))
    elif isinstance(value, Mapping) and isinstance(found := value.get("text"), list | tuple):
        given = value.get("label")
        labels, texts = list(given) if isinstance(given, list | tuple) else [given] * (given is not None), list(found)
    elif isinstance(value, Mapping):
        pairs = [(label, text) for label, text in value.items() if text is not None]
        labels, texts = [label for label, _ in pairs], [text for _, text in pairs]
    elif isinstance(value, list | tuple) and all(isinstance(entry, Mapping) for entry in value):
        names = recognise(columns_of(("", dict(entry)) for entry in value), _OPTION_NAMES)
        labels = [cell(entry, names["label"]) for entry in value] if "label" in names else []
        texts = [cell(entry, names.get("text")) for entry in value]
    elif isinstance(value, list | tuple):
        labels, texts = _labelled(list(value))
        texts = texts or list(value)
    else:
        texts = []
    labels, texts = [text_of(label) for label in labels], [text_of(text) for text in texts]
    if not texts or not all(texts) or (labels and len(set(labels)) != len(texts)):
        raise Unreadable(f"options: {value!r:.60} cannot be read; write a list of texts, or of label and text")
    if labels and all(re.fullmatch("[A-Za-z]", label) for label in labels):
        texts = [text for _, text in sorted(zip(labels, texts, strict=True), key=lambda pair: pair[0].upper())]
        if sorted(label.upper() for label in labels) != [chr(ord("A") + i) for i in range(len(labels))]:
            raise Unreadable(f"options: the labels are {', '.join(labels)}; label them A, B, C without a gap")
        labels = []
    return Options(texts, labels)


_OPTION_NAMES = {"label": ("key", "letter", "id"), "text": ("value", "content", "option")}


def _labelled(entries: list[Any]) -> tuple[list[str], list[str]]:
    """(labels, texts) of entries like `A) x`, `(B) y` or `C. z`; nothing if one is not like that, or out of order."""
    found = [re.match(r"\(?([A-Z])[).:]\s+(?=\S)", entry) if isinstance(entry, str) else None for entry in entries]
    labels = [match[1] for match in found if match]
    if len(labels) < 2 or labels != [chr(ord("A") + i) for i in range(len(entries))]:
        return [], []
    return labels, [entry[match.end() :] for entry, match in zip(entries, found, strict=True) if match]


def whole(value: Any) -> int | None:
    """A whole number that may be an option's place; None if it is none."""
    text = text_of(value)
    return int(text) if re.fullmatch("[0-9]{1,2}", text) else None


def same_text(value: Any, options: Options) -> list[int]:
    """Places of the options whose text a value is, case and spacing aside."""
    wanted = " ".join(text_of(value).split()).casefold()
    return [i for i, text in enumerate(options.texts) if " ".join(text.split()).casefold() == wanted]


def letter_of(name: str, value: Any, options: Options, base: int | None) -> str | None:
    """The letter of the option that a field means by label, letter, text or, from `base` on, place.

    None where it means none. base: number of the first option where the field holds places. Unreadable
    where it may mean two.
    """
    text = text_of(value)
    if base is not None and not options.labels:
        places = {found - base} if (found := whole(value)) is not None else set()
    elif text in options.labels:
        places = {options.labels.index(text)}
    else:
        places = set(same_text(value, options))
        if match := re.fullmatch(r"\(?([A-Za-z])\)?[.):]?|\(?([A-Z])[).:]\s.*", text, re.DOTALL):
            places.add(ord((match[1] or match[2]).upper()) - ord("A"))
    places = {place for place in places if 0 <= place < len(options.texts)}
    if len(places) > 1:
        letters = " or ".join(chr(ord("A") + place) for place in sorted(places))
        raise Unreadable(f"{name}: {text!r:.40} may mean option {letters}; write it like 'A) its text'")
    return chr(ord("A") + places.pop()) if places else None


# ---------------------------------------------------------------- messages


def _messages(name: str, value: Any) -> list[tuple[str, str]] | None:
    """(role, text) of chat messages, also as JSON text; None if the value is no list of messages."""
    if isinstance(value, str) and value.lstrip()[:1] in ("[", "{") and '"role"' in value:
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return None
    value = [value] if isinstance(value, Mapping) else value
    if not isinstance(value, list | tuple):
        return None
    found = []
    for message in value:
        role, content = (message.get("role"), message.get("content")) if isinstance(message, Mapping) else (None, None)
        if isinstance(content, list | tuple) and all(isinstance(part, Mapping) for part in content):
            texts = [part.get("text") for part in content]
            content = "".join(texts) if all(isinstance(text, str) for text in texts) else None
        if not isinstance(role, str) or not isinstance(content, str):
            raise Unreadable(f"{name}: {message!r:.60} is no message; write role and content, or the text alone")
        found.append((role, content))
    return found


def prompt_of(value: Any) -> str | None:
    """The user's text; None if there is none."""
    if missing(value):
        return None
    messages = _messages("prompt", value)
    if messages is None:
        if not isinstance(value, str):
            raise Unreadable(f"prompt: is {type(value).__name__} {value!r:.40}, not text; write it as a string")
        return value
    if [role for role, _ in messages] != ["user"]:
        roles = ", ".join(role for role, _ in messages)
        raise Unreadable(f"prompt: holds messages of {roles:.60}; one user message is sent, so write that alone")
    return messages[0][1]


def response_of(name: str, value: Any) -> tuple[str | None, str]:
    """(the prompt, if it stands before it, and the assistant's text)."""
    messages = _messages(name, value) if not missing(value) else None
    if messages is None:
        if not isinstance(value, str) or missing(value):
            raise Unreadable(f"{name}: is {type(value).__name__} {value!r:.40}; write the response as a string")
        return None, value
    roles = [role for role, _ in messages]
    if roles not in (["assistant"], ["user", "assistant"]) or missing(messages[-1][1]):
        shown = ", ".join(roles)
        raise Unreadable(f"{name}: holds messages of {shown:.60}; write one assistant message that is not empty")
    return (messages[0][1] if len(messages) == 2 else None), messages[-1][1]
