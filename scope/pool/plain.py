"""Checks on the characters of an item's texts: plain text of sane size, mathematics included."""

import re

from scope.conditions import Condition
from scope.items import Item
from scope.pool.naming import contexts

#: Characters of one text of an item, at most.
LONGEST_TEXT = 20_000

#: Control characters but the line feed; soft hyphen, zero-width, bidi and tag characters; replacement characters
#: and other non-characters; lone surrogates.
_INVISIBLE = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f\u00ad\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufdd0-\ufdef\ufeff"
    "\ufff9-\uffff\ud800-\udfff\U000e0000-\U000e007f]"
)
_CONTROL_TOKEN = re.compile(
    r"<[|｜][\w▁]{1,40}[|｜]>|\[/?INST\]|<</?SYS>>|</?(?:start|end)_of_(?:turn|text|image)>|</?tool_(?:call|response)>"
    r"|</?(?:bos|eos|pad|unk|mask|think|thinking|answer)>|</s>|(?<!\w)<s>(?!\w)",
    re.I,
)
_TAGS = (
    "html|head|body|div|span|br|hr|img|table|tr|td|th|tbody|thead|ul|ol|li|em|strong|sub|sup|font|center|script|style"
    "|code|pre|blockquote|h[1-6]|iframe|input|form|link|meta|svg|mark|small|del|ins"
)
_MARKUP = re.compile(
    rf"<(?:{_TAGS})(?:\s+[\w-]+\s*=\s*[^<>]{{0,200}})?\s*/?>|</(?:{_TAGS}|[abipqsu])\s*>|<!--|<a\s+href\b[^<>]{{0,200}}>"
    r"|&(?:#\d{1,6}|#x[0-9a-f]{1,5}|amp|nbsp|lt|gt|quot|apos|[lr][sd]quo|hellip|[mn]dash|deg|times|frac\d\d);",
    re.I,
)
#: {value}, {{value}}, {value:.2f}; not an argument of LaTeX (\text{cm}, x_{max}, \frac{a}{max}) nor a set {x}.
_FIELD = re.compile(r"(?<![\w\\^_}\])*])\{\{?\s?[a-z_]\w+(?:[.!:][^{}\s]{0,40})?\s?\}", re.I)
_STATEMENT = re.compile(
    r"final answer is|\\f?boxed\b|^[\W_]{0,6}(?:(?:the|final|correct|right|my) ){0,3}answer(?: is)?\s?[:=]", re.I | re.M
)


def plain_faults(text: str, complete_prompt: bool = False) -> list[str]:
    """What makes a text not plain: `holds ...; what to do`. A complete prompt may hold markup and the answer format."""
    faults = []
    if hit := _INVISIBLE.search(text):
        faults.append(f"holds the control or invisible character {hit[0]!a}; remove it")
    if hit := _CONTROL_TOKEN.search(text):
        faults.append(f"holds the control token {hit[0]!r}; remove it")
    if complete_prompt:
        return faults
    if hit := _MARKUP.search(text):
        faults.append(f"holds the markup {hit[0][:60]!r}; write plain text")
    if hit := _FIELD.search(text):
        faults.append(f"holds the unfilled field {hit[0]!r}; fill it in")
    if hit := _STATEMENT.search(text):
        faults.append(f"holds {hit[0]!r}, which answers are read from; put it in other words")
    return faults


def text_is_plain(item: Item) -> list[str]:
    """No invisible characters, control tokens, markup, unfilled fields or statements of an answer in any text.

    Mathematics is plain: `a < b > c`, `x_{12}`, `\\frac{1}{2}`, `\\{1, 2\\}`.
    """
    faults = [f"{name}: {fault}" for name, text in _texts(item).items() for fault in plain_faults(text)]
    return faults + [f"prompt_{c}: {fault}" for c in Condition for fault in plain_faults(item.prompt(c), True)]


def text_is_bounded(item: Item) -> list[str]:
    """No text is longer than LONGEST_TEXT characters."""
    texts = _texts(item) | {f"prompt_{c}": item.prompt(c) for c in Condition}
    return [
        f"{name}: has {len(text)} characters; keep it under {LONGEST_TEXT}"
        for name, text in texts.items()
        if len(text) > LONGEST_TEXT
    ]


def _texts(item: Item) -> dict[str, str]:
    options = {f"options[{i}]": option for i, option in enumerate(item.options)}
    return {"question": item.question, **contexts(item), **options}
