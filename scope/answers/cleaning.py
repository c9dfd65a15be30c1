"""Undoing what wraps a payload: markdown, LaTeX, Unicode."""

from __future__ import annotations

import re
import unicodedata

_I = re.IGNORECASE


def word_set(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Character by character, over the whole text: full-width forms, spaces, line ends, minus signs, quotes.
FOLD: dict[int, str | None] = {0xFF00 + i: chr(0x20 + i) for i in range(1, 0x5F)}
for _chars, _fold in {
    "\u00a0\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000\0\t": " ",
    "\r\v\f\x85\u2028\u2029": "\n",
    "\u2010\u2011\u2012\u2013\u2212\ufe63\uff0d": "-",
    "\u2014\u2015": "—",
    "“”„«»「」『』": '"',
    "‘’‚": "'",
    "。": ".",
    "、": ",",
    "【": "[",
    "】": "]",
}.items():
    FOLD |= dict.fromkeys(map(ord, _chars), _fold)
FOLD |= dict.fromkeys(map(ord, "\u200b\u200c\u200d\u2060\ufeff\u00ad\ufe0e\ufe0f"), None)

_SUPERSCRIPT = re.compile("[⁰¹²³⁴-⁹⁺⁻]+")
_WRAPPERS = (
    "text|textbf|textit|textrm|textsf|texttt|mathrm|mathbf|mathit|mathsf|boldsymbol|bm|operatorname|mbox|emph"
    "|underline|boxed|fbox"
)
_WRAPPED = re.compile(rf"\\(?:{_WRAPPERS})\s?\{{([^{{}}]*)\}}")
_HTML_PAIR = re.compile(r"<(b|i|u|em|strong|span|p|code|answer)>([^<>]*)</\1>", _I)
_CURRENCY = "$€£¥₹₩₽¢₺฿₱₫₴₦"
_REWRITES = [
    (re.compile(pattern), replacement)
    for pattern, replacement in [
        (r"<\|[A-Za-z0-9_]{1,30}\|>|</s>|<eos>|<end_of_turn>", " "),  # special tokens left in the text
        (r"~~[^~]{0,80}~~", " "),  # struck out
        (r"<sup>([^<>]*)</sup>", r"^\1"),
        (r"<br ?/?>", " "),
        (r"</?([^<>]{0,40})>", r"\1"),
        (r"\\(?:left|right|[bB]igg?[lr]?|displaystyle)(?![a-z])|\\!|\\[()\[\]]", ""),
        (r"\{,\}", ","),
        (r"\\[,;: ]|\\q?quad(?![a-z])|~", " "),
        (r"\\([%$&#_{}£€])", r"\1"),
        (r"\^?\{?\\(?:circ|degree)\}?(?![a-z])", "°"),
        (r"\\(?:times|cdot)(?![a-z])", "×"),
        (r"\\pm(?![a-z])", "±"),
        (r"\\approx(?![a-z])", "≈"),
        (r"(?<=\d)\s*\\[dtc]?frac", r" \\frac"),  # a mixed number
        (r"\\[dtc]?frac\s?\{([^{}]*)\}\s?\{([^{}]*)\}", r"\1/\2"),
        (r"\\[dtc]?frac\s?(\d)\s?(\d)", r"\1/\2"),
        (r"[{}]", ""),
        (r"(?<=\d)\*\*(?=\d)", "^"),
        (r"(?<=[\d)])\s?\*\s?(?=[\d(])|·|⋅", "×"),
        (r"[*`]|(?<![^\W_])_+|_+(?![^\W_])", ""),
        (r"^\s*#+(?=\s)|^[\s→⇒➡]+", ""),
        (rf"\b(?:US|AU|CA|NZ|HK|[ACS])\$(?=\s?\d)|(?<!\d)[{_CURRENCY}]|[{_CURRENCY}](?!\d)", ""),
        (r"(?<!\w)['\"]|['\"](?!\w|\s?\d)", ""),
        (r"\s+", " "),
    ]
]


def clean(text: str) -> str:
    """Undo what wraps a payload. What is not recognised stays and makes the grammar refuse it."""
    text = _SUPERSCRIPT.sub(lambda match: "^" + unicodedata.normalize("NFKC", match[0]), text)
    text = re.sub("(?<=[0-9])(?=[¼-¾⅐-⅞])", " ", text)  # 2½ is 2 1/2, not 21/2
    text = unicodedata.normalize("NFKC", text).translate(FOLD).replace("⁄", "/")
    text = "".join(" " if unicodedata.category(c) == "So" and c != "°" else c for c in text)
    for _ in range(6):  # wrappers may nest
        text, count = _WRAPPED.subn(r"\1", text)
        text, pairs = _HTML_PAIR.subn(r"\2", text)
        if not count + pairs:
            break
    for pattern, replacement in _REWRITES:
        text = pattern.sub(replacement, text)
    return text.strip()
