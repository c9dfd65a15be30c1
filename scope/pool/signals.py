"""Contexts: nine channels, each with phrasings that carry a value and phrasings that carry none.

The phrasings are lines of `signals.toml`, and of files of the user's own. The misleading and the
correct context of an item are one phrasing with the value exchanged.
"""

import random
import re
import tomllib
from collections import Counter
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Generic, TypeVar

from scope import artifacts
from scope.items import CHANNELS
from scope.pool.words import NUMBER_LIKE, NUMBER_WORDS, YES_NO

PHRASINGS = Path(__file__).with_name("signals.toml")

#: How a multiple-choice value is named: by its letter, by its option text, or by both.
FORMS = ("letter", "text", "both")

#: The two lists of a channel in a phrasing file.
KINDS = ("value", "irrelevant")

#: Fewest and most words of a phrasing of either kind.
PHRASING_WORDS = (5, 30)

#: An option text that a context names has at most so many words and characters. The built-in phrasings
#: allow no more: beside the shortest irrelevant one of its channel, the longest context then is still
#: within `checks.LENGTH_RATIO`.
TEXT_WORDS, TEXT_CHARACTERS = 7, 48

#: The wrong option text over the right one, in words and in characters, at most (and its inverse).
TEXT_RATIO = 2.0

#: Words that say or hint that a context is wrong, unsure or a trick.
DOUBT_WORDS = frozenset(
    """allegedly apparently bogus claim claimed claims distractor doubt doubtful doubtfully doubts erroneous
    erroneously error errors fake guess guessed guesses guessing hopefully inaccurate incorrect incorrectly
    maybe might misinformation misleading misleads mistake mistaken mistakenly mistakes perhaps
    possibly presumably probably purported purportedly questionable reportedly rumor rumored rumour rumoured seemingly
    supposed supposedly tentative tentatively trick tricked tricks tricky uncertain unconfirmed unreliable unsure
    untrue untrustworthy unverified wrong wrongly""".split()  # noqa: SIM905
)

#: What may be read as an option letter; I is left out, since it is mostly a pronoun.
_LONE_CAPITAL = re.compile(r"(?<![\w'])([A-HJ-Z])(?![\w'])")

T = TypeVar("T")


class SignalError(artifacts.Refusal, ValueError):
    """Phrasing files that cannot be used: one line a fault, with file, channel, phrasing and remedy."""


class Rotation(Generic[T]):
    """Exact seeded round robin: every block of len(values) draws is a new permutation of them."""

    def __init__(self, values: Sequence[T], rng: random.Random):
        self.values, self.rng = tuple(values), rng
        self.waiting: list[T] = []
        self.dealt: Counter[tuple[T, Hashable]] = Counter()

    def next(self) -> T:
        if not self.waiting:
            self.waiting = self.rng.sample(self.values, len(self.values))
        return self.waiting.pop()

    def next_fitting(self, fits: Collection[T], beside: Hashable = None) -> T:
        """A value that fits and is due; those passed over keep their turn.

        Of those due, the one that has stood least often beside `beside`, so that neither tells the other.
        """
        if not any(value in fits for value in self.waiting):
            self.waiting = self.rng.sample(self.values, len(self.values)) + self.waiting
        due = [i for i, value in enumerate(self.waiting) if value in fits]
        position = min(reversed(due), key=lambda i: self.dealt[self.waiting[i], beside])
        value = self.waiting.pop(position)
        self.dealt[value, beside] += 1
        return value


@dataclass(frozen=True, slots=True)
class Channel:
    """The phrasings of one channel. Those in `value` hold `{value}` exactly once."""

    name: str
    value: tuple[str, ...]
    irrelevant: tuple[str, ...]


# ---------------------------------------------------------------- phrasing files


def load_channels(path: Path = PHRASINGS, extra: Sequence[Path] = ()) -> dict[str, Channel]:
    """All nine channels, in the order of CHANNELS.

    path: a file with every channel. extra: files of the user's own, read in order, each with any of the
    channels. A file adds its phrasings behind those there are; or, with `replace = true` at its top, its
    phrasings stand in their place, and every channel it names must have both kinds.
    Raises SignalError with every fault of the files (see `phrasing_faults`).
    """
    channels = dict(_built_in()) if path == PHRASINGS else _joined({}, path)
    faults: list[str] = []
    for file in extra:
        try:
            channels = _joined(channels, file)
        except SignalError as error:
            faults.append(str(error))
    if faults:
        raise SignalError("\n".join(faults))
    return channels


@cache
def _built_in() -> dict[str, Channel]:
    return _joined({}, PHRASINGS)


def _joined(channels: Mapping[str, Channel], path: Path) -> dict[str, Channel]:
    """The channels with those of a file added or put in their place; a file beside none must have all."""
    table = _read(path)
    faults = []
    if not channels:
        table = {**table, "replace": True}
        missing = [name for name in CHANNELS if name not in table]
        faults += [f"{path}: channel {name!r} is missing; give it value and irrelevant phrasings" for name in missing]
    faults += phrasing_faults(table, path, beside=channels)
    if faults:
        raise SignalError("\n".join(faults))
    replace = table.get("replace", False)
    joined = dict(channels)
    for name in CHANNELS:
        if name not in table:
            continue
        new = [tuple(table[name].get(kind, ())) for kind in KINDS]
        old = ((), ()) if replace else (channels[name].value, channels[name].irrelevant)
        joined[name] = Channel(name, old[0] + new[0], old[1] + new[1])
    return joined


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(Path(path).read_text("utf-8-sig"))
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise SignalError(f"{path}: the phrasing file cannot be read ({reason}); check its name and place") from None
    except UnicodeDecodeError as error:
        raise SignalError(f"{path}: byte {error.start} is not UTF-8; save the phrasing file as UTF-8") from None
    except tomllib.TOMLDecodeError as error:
        raise SignalError(f"{path}: the phrasing file is not valid TOML ({error}); mend that place") from None


def phrasing_faults(table: Mapping[str, Any], path: Path, beside: Mapping[str, Channel] | None = None) -> list[str]:
    """Every fault of a phrasing file, each a sentence: file, channel, phrasing, what is wrong, what to do.

    table: the file as TOML reads it. beside: the channels it is added to, whose phrasings it must not repeat.
    """
    faults = []
    replace = table.get("replace", False)
    if not isinstance(replace, bool):
        faults.append(f"{path}: replace is {replace!r}; write replace = true, or leave the line out")
    names = [name for name in table if name != "replace"]
    if not names:
        faults.append(f"{path}: no channel is named; give at least one of {', '.join(CHANNELS)}")
    seen: dict[str, str] = {}
    for channel in (beside or {}).values():
        if replace is not True or channel.name not in table:
            phrasings = (*channel.value, *channel.irrelevant)
            seen |= dict.fromkeys(map(_folded, phrasings), f"already in {channel.name}")
    for name in names:
        if name not in CHANNELS:
            faults.append(f"{path}: unknown channel {name!r}; use one of {', '.join(CHANNELS)}")
        else:
            faults += [
                f"{path}: {name}: {fault}" for fault in _channel_faults(name, table[name], replace is True, seen)
            ]
    return faults


def _channel_faults(name: str, lists: object, replace: bool, seen: dict[str, str]) -> Iterator[str]:
    """seen: phrasings met so far, folded, with where they stand; grows."""
    if not isinstance(lists, Mapping):
        yield f"is {lists!r}; write [{name}] on a line of its own, and lists named value and irrelevant below it"
        return
    for key in lists:
        if key == "replace":
            yield "replace stands inside the channel; move it to the top of the file, above the first channel"
        elif key not in KINDS:
            yield f"unknown list {key!r}; a channel has lists named value and irrelevant"
    if replace and not all(lists.get(kind) for kind in KINDS):
        yield "needs at least one value and one irrelevant phrasing, since they stand in place of others"
    elif not any(kind in lists for kind in KINDS):
        yield "holds no phrasing; give it a list named value or irrelevant, or leave it out"
    for kind in KINDS:
        phrasings = lists.get(kind, [])
        if not isinstance(phrasings, list):
            yield f"{kind} is {phrasings!r}; write a list of phrasings in quotes"
            continue
        for phrasing in phrasings:
            if not isinstance(phrasing, str):
                yield f"{kind}: {phrasing!r} is not a text; put it in quotes"
                continue
            yield from (f"{kind}: {phrasing!r} {fault}" for fault in _text_faults(kind, phrasing))
            key = _folded(phrasing)
            if key in seen:
                yield f"{kind}: {phrasing!r} stands {seen[key]}; leave out one of them"
            seen.setdefault(key, f"twice, first in {name}")


def _text_faults(kind: str, phrasing: str) -> Iterator[str]:
    """What is wrong with the wording of one phrasing, and what to do."""
    if kind == "irrelevant" and "{" in phrasing:
        yield "must hold no field, since it carries no value; leave the braces out"
    elif kind == "value" and (phrasing.count("{value}") != 1 or re.search(r"[{}]", phrasing.replace("{value}", ""))):
        yield "must hold {value} exactly once, and no other braces"
    elif kind == "value" and not re.search(r"(?:^|[\s\"“(*])\{value\}(?:$|[\s\"”),.;:!?…*])", phrasing):
        yield "glues a sign to {value}; put a space or double quotes there, so that the value is read as it stands"
    rest = phrasing.replace("{value}", " ")
    words = re.findall(r"[^\W\d_]+", rest.casefold())
    if digit := next((c for c in rest if c.isnumeric()), ""):
        yield f"holds the number {digit!r}; word it without, for a number may be an answer"
    for word in sorted(set(words) & (NUMBER_WORDS.keys() | NUMBER_LIKE)):
        yield f"holds the number word {word!r}; word it without, for a number may be an answer"
    for word in sorted(set(words) & YES_NO.keys()):
        yield f"holds {word!r}; word it without, for it may be an answer"
    for word in sorted(set(words) & DOUBT_WORDS):
        yield f"holds {word!r}; word it without, for a context must not hint whether it can be trusted"
    if letter := _LONE_CAPITAL.search(rest):
        yield f"holds the lone capital {letter[1]!r}; word it without, for it may be read as an option letter"
    if closing := re.search(r"final answer is", phrasing, re.I):
        yield f"holds {closing[0]!r}; word it otherwise, for that opens the sentence that answers are read from"
    if mark := re.search(r"[\x00-\x1f\x7f]|<[/|]?[a-z_|]+[^<>]*>|\\boxed", phrasing, re.I):
        yield f"holds {mark[0]!r}; write plain text on one line"
    fewest, most = PHRASING_WORDS
    if not fewest <= (count := len(phrasing.split())) <= most:
        yield f"has {count} words; use {fewest} to {most}"


def _folded(phrasing: str) -> str:
    return " ".join(phrasing.casefold().split())


# ---------------------------------------------------------------- naming an answer


def value_forms(value: str, options: Sequence[str]) -> dict[str, str]:
    """Every way a context may name an answer. value: a letter if there are options, else the answer."""
    if not options:
        return {"plain": value}
    option = options[ord(value) - ord("A")]
    return {"letter": value, "text": option, "both": f"{value} ({option})"}


def fits_text_form(wrong: str, gold: str) -> bool:
    """Whether the contexts of an item may name its two answers by option text; if not, only the letter is used.

    Misleading and correct context must differ in nothing but the value. So both texts must be short enough
    to stand inside a sentence beside contexts without a value (TEXT_WORDS, TEXT_CHARACTERS), and of similar
    length (TEXT_RATIO), lest length tell which is right; two of at most two words are short either way.
    Neither may stand in the other as a whole, in any case: `red` beside `a red box` would put both answers
    into one context. A lone capital (`vitamin C`, `A magnet`) may be read as an option letter. A text with a
    closing mark is a sentence, which does not read inside another.
    """
    texts = [" ".join(text.split()) for text in (wrong, gold)]
    words, characters = [len(text.split()) for text in texts], [len(text) for text in texts]
    if min(words) == 0 or max(words) > TEXT_WORDS or max(characters) > TEXT_CHARACTERS:
        return False
    alike = all(max(sizes) <= TEXT_RATIO * min(sizes) for sizes in (words, characters))
    if not alike and max(words) > 2:
        return False
    if any(_LONE_CAPITAL.search(text) or text.endswith((".", "!", "?", ":", ";", ",")) for text in texts):
        return False
    return not (_stands_in(texts[0], texts[1]) or _stands_in(texts[1], texts[0]))


def _stands_in(part: str, text: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(part)}(?!\w)", text, re.I) is not None


def render(phrasing: str, value: str) -> str:
    return phrasing.replace("{value}", value)


#: Words of a question that do not say what it is about.
_COMMON = frozenset(
    """about after all also and answer answers any are before both but can did does each every for from get
    gets given had has have here how into its just many may more most much none not now number numbers off
    only other out over question result same some than that the their them then there these they this those
    very was what when where which while who why will with word you your""".split()  # noqa: SIM905
)


def content_words(text: str) -> set[str]:
    """Words of three letters or more that say what a text is about, with a plural s removed."""
    return {word.removesuffix("s") for word in re.findall(r"[^\W\d_]{3,}", text.casefold()) if word not in _COMMON}
