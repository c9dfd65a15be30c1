"""Contexts: nine channels, each with phrasings that carry a value and two kinds that carry none.

The phrasings are lines of `signals.toml`, and of files of the user's own, in a bank each for training,
development and evaluation. The misleading and the correct context of an item are one phrasing with the
value exchanged.
"""

import hashlib
import logging
import random
import re
import tomllib
from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Generic, TypeVar

from scope import artifacts
from scope.items import CHANNELS
from scope.pool.words import NUMBER_LIKE, NUMBER_WORDS, YES_NO

log = logging.getLogger(__name__)

PHRASINGS = Path(__file__).with_name("signals.toml")

#: How a multiple-choice value is named: by its letter, by its option text, or by both.
FORMS = ("letter", "text", "both")

#: The lists of a channel: those that hold an answer, and those about the same question or about anything else.
KINDS = ("value", "irrelevant", "unrelated")

#: What a phrasing is for. Pools of different banks share none.
BANKS = ("train", "dev", "eval")

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

    def next_fitting(self, fits: Collection[T], *beside: Hashable) -> T:
        """A value that fits and is due; those passed over keep their turn.

        Of those due, the one that has stood least often beside each of `beside`, so that neither tells the other.
        """
        beside = beside or (None,)
        if not any(value in fits for value in self.waiting):
            self.waiting = self.rng.sample(self.values, len(self.values)) + self.waiting
        due = [i for i, value in enumerate(self.waiting) if value in fits]
        position = min(reversed(due), key=lambda i: sum(self.dealt[self.waiting[i], each] for each in beside))
        value = self.waiting.pop(position)
        self.dealt.update((value, each) for each in beside)
        return value


@dataclass(frozen=True, slots=True)
class Channel:
    """The phrasings of one channel in one bank.

    Those in `value` hold `{value}` exactly once. Those in `irrelevant` are about the question and hold
    `{about}` at most once, where words of the question may stand; those in `unrelated` are about anything else.
    """

    name: str
    value: tuple[str, ...]
    irrelevant: tuple[str, ...]
    unrelated: tuple[str, ...]


#: Bank -> channel -> its phrasings.
Banks = Mapping[str, Mapping[str, Channel]]


# ---------------------------------------------------------------- phrasing files


def load_channels(bank: str, path: Path = PHRASINGS, extra: Sequence[Path] = ()) -> dict[str, Channel]:
    """All nine channels of one bank, in the order of CHANNELS (see `load_banks`)."""
    return dict(load_banks(path, extra)[bank])


def load_banks(path: Path = PHRASINGS, extra: Sequence[Path] = ()) -> Banks:
    """Every bank's channels, each in the order of CHANNELS.

    path: a file with every channel. extra: files of the user's own, read in order, each with any of the
    channels. A channel holds a table for each bank, or its lists directly; those are dealt to the banks by
    a hash of each sentence. A file adds its phrasings behind those there are; or, with `replace = true` at
    its top, each list it has stands in the place of that list, and every channel it names must have value
    and irrelevant phrasings. A bank for which no sentence of such a list is left has all of it, which is said.
    Raises SignalError with every fault of the files (see `phrasing_faults`).
    """
    banks = _built_in() if path == PHRASINGS else _joined({}, path)
    faults: list[str] = []
    for file in extra:
        try:
            banks = _joined(banks, file)
        except SignalError as error:
            faults.append(str(error))
    if faults:
        raise SignalError("\n".join(faults))
    return banks


@cache
def _built_in() -> Banks:
    return _joined({}, PHRASINGS)


def _joined(banks: Banks, path: Path) -> Banks:
    """The banks with the phrasings of a file added or put in their place; a file beside none must have all."""
    table = _read(path)
    faults = []
    if not banks:
        table = {**table, "replace": True}
        missing = [name for name in CHANNELS if name not in table]
        faults += [f"{path}: channel {name!r} is missing; give it value and irrelevant phrasings" for name in missing]
    faults += phrasing_faults(table, path, beside=banks)
    if faults:
        raise SignalError("\n".join(faults))
    joined: dict[str, dict[str, Channel]] = {bank: dict(banks.get(bank, {})) for bank in BANKS}
    few: list[str] = []
    for name in (name for name in CHANNELS if name in table):
        lists = {kind: _dealt(table[name], kind) for kind in KINDS}
        thin = {kind: [b for b in BANKS if any(of.values()) and not of[b]] for kind, of in lists.items()}
        if table.get("replace", False):
            for kind, lacking in thin.items():
                whole = tuple(dict.fromkeys(p for of in lists[kind].values() for p in of))
                lists[kind] |= dict.fromkeys(lacking, whole)
                few += [f"{name} {kind}"] if lacking else []
        for bank in BANKS:
            old = joined[bank].get(name, Channel(name, (), (), ()))
            new = {kind: lists[kind][bank] for kind in KINDS}
            kept = {
                kind: () if table.get("replace", False) and any(lists[kind].values()) else getattr(old, kind)
                for kind in KINDS
            }
            joined[bank][name] = Channel(name, **{kind: kept[kind] + new[kind] for kind in KINDS})
    if few:
        log.warning(
            "%s: too few phrasings for each bank to have its own: %s; they serve several, so pools share them "
            "(results: phrasing_seen)",
            path,
            ", ".join(few),
        )
    return {bank: {name: joined[bank][name] for name in CHANNELS} for bank in BANKS}


def _dealt(lists: Mapping[str, Any], kind: str) -> dict[str, tuple[str, ...]]:
    """Bank -> the phrasings of a kind: as the channel says, or by the hash of each."""
    dealt: dict[str, list[str]] = {bank: list(lists.get(bank, {}).get(kind, ())) for bank in BANKS}
    for phrasing in lists.get(kind, ()):
        dealt[BANKS[int(phrasing_id(phrasing), 16) % len(BANKS)]].append(phrasing)
    return {bank: tuple(phrasings) for bank, phrasings in dealt.items()}


def in_several_banks(extra: Sequence[Path] = ()) -> set[str]:
    """Ids of the phrasings that serve more than one bank, there being too few."""
    where: dict[str, set[str]] = {}
    for bank, channels in load_banks(extra=extra).items():
        for channel in channels.values():
            for kind in KINDS:
                for phrasing in getattr(channel, kind):
                    where.setdefault(phrasing_id(phrasing), set()).add(bank)
    return {key for key, banks in where.items() if len(banks) > 1}


def phrasing_id(phrasing: str) -> str:
    """A short hash of a phrasing with its fields unfilled, whatever its case and spacing: 12 hex digits."""
    return hashlib.sha256(_folded(phrasing).encode()).hexdigest()[:12]


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


def phrasing_faults(table: Mapping[str, Any], path: Path, beside: Banks | None = None) -> list[str]:
    """Every fault of a phrasing file, each a sentence: file, channel, phrasing, what is wrong, what to do.

    table: the file as TOML reads it. beside: the banks it is added to, whose phrasings it must not repeat.
    """
    faults = []
    replace = table.get("replace", False)
    if not isinstance(replace, bool):
        faults.append(f"{path}: replace is {replace!r}; write replace = true, or leave the line out")
    names = [name for name in table if name != "replace"]
    if not names:
        faults.append(f"{path}: no channel is named; give at least one of {', '.join(CHANNELS)}")
    seen: dict[str, str] = {}
    for channel in (channel for bank in (beside or {}).values() for channel in bank.values()):
        for kind in KINDS:
            if replace is not True or not _holds(table.get(channel.name), kind):
                seen |= dict.fromkeys(map(_folded, getattr(channel, kind)), f"already in {channel.name}")
    for name in names:
        if name not in CHANNELS:
            faults.append(f"{path}: unknown channel {name!r}; use one of {', '.join(CHANNELS)}")
        else:
            faults += [
                f"{path}: {name}: {fault}" for fault in _channel_faults(name, table[name], replace is True, seen)
            ]
    return faults


def _holds(lists: object, kind: str) -> bool:
    """Whether a channel of a file has phrasings of a kind, in a bank or without."""
    if not isinstance(lists, Mapping):
        return False
    return bool(lists.get(kind)) or any(
        isinstance(lists.get(bank), Mapping) and lists[bank].get(kind) for bank in BANKS
    )


def _channel_faults(name: str, lists: object, replace: bool, seen: dict[str, str]) -> Iterator[str]:
    """seen: phrasings met so far, folded, with where they stand; grows."""
    if not isinstance(lists, Mapping):
        yield f"is {lists!r}; write [{name}] on a line of its own, and lists named value and irrelevant below it"
        return
    if replace and not all(_holds(lists, kind) for kind in ("value", "irrelevant")):
        yield "needs at least one value and one irrelevant phrasing, since they stand in place of others"
    elif not replace and not any(kind in lists or _holds(lists, kind) for kind in KINDS):
        yield "holds no phrasing; give it a list named value or irrelevant, or leave it out"
    yield from _list_faults(name, {key: value for key, value in lists.items() if key not in BANKS}, "", seen)
    for bank in BANKS:
        if bank in lists and not isinstance(lists[bank], Mapping):
            yield f"{bank} is {lists[bank]!r}; write [{name}.{bank}] on a line of its own, and lists below it"
        elif bank in lists:
            yield from _list_faults(name, lists[bank], f"{bank}: ", seen)


def _list_faults(name: str, lists: Mapping[str, object], where: str, seen: dict[str, str]) -> Iterator[str]:
    """The faults of the lists of a channel or of one of its banks; where: `bank: `, or empty."""
    for key in lists:
        if key == "replace":
            yield "replace stands inside the channel; move it to the top of the file, above the first channel"
        elif key not in KINDS:
            yield f"{where}unknown list {key!r}; a channel has lists named value, irrelevant and unrelated"
    for kind in KINDS:
        phrasings = lists.get(kind, [])
        if not isinstance(phrasings, list):
            yield f"{where}{kind} is {phrasings!r}; write a list of phrasings in quotes"
            continue
        for phrasing in phrasings:
            if not isinstance(phrasing, str):
                yield f"{where}{kind}: {phrasing!r} is not a text; put it in quotes"
                continue
            yield from (f"{where}{kind}: {phrasing!r} {fault}" for fault in _text_faults(kind, phrasing))
            key = _folded(phrasing)
            if key in seen:
                yield f"{where}{kind}: {phrasing!r} stands {seen[key]}; leave out one of them"
            seen.setdefault(key, f"twice, first in {name}")


def _text_faults(kind: str, phrasing: str) -> Iterator[str]:
    """What is wrong with the wording of one phrasing, and what to do."""
    if kind == "irrelevant" and (phrasing.count("{about}") > 1 or re.search(r"[{}]", phrasing.replace("{about}", ""))):
        yield "must hold no field but {about}, and that at most once; leave the other braces out"
    elif kind == "unrelated" and re.search(r"[{}]", phrasing):
        yield "must hold no field, since it carries no value; leave the braces out"
    elif kind == "value" and (phrasing.count("{value}") != 1 or re.search(r"[{}]", phrasing.replace("{value}", ""))):
        yield "must hold {value} exactly once, and no other braces"
    elif kind == "value" and not re.search(r"(?:^|[\s\"“(*])\{value\}(?:$|[\s\"”),.;:!?…*])", phrasing):
        yield "glues a sign to {value}; put a space or double quotes there, so that the value is read as it stands"
    elif kind == "irrelevant" and re.search(r"[\w\"“'(]\{about\}|\{about\}[\w\"”']", phrasing):
        yield "glues a sign to {about}; put a space there, for quotes come with the words of the question"
    rest = phrasing.replace("{value}", " ").replace("{about}", " ")
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
    """Every way a context may name an answer. value: a letter if there are options, else the answer.

    A letter stands in brackets where a bare A would read as an article.
    """
    if not options:
        return {"plain": value}
    option = options[ord(value) - ord("A")]
    return {"letter": value, "bracketed": f"({value})", "text": option, "both": f"{value} ({option})"}


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


def render(phrasing: str, value: str = "", about: str = "") -> str:
    return phrasing.replace("{value}", value).replace("{about}", about)


#: Words of a question that do not say what it is about.
_COMMON = frozenset(
    """about after all also and answer answers any are before both but can did does each every for from get
    gets given had has have here how into its just many may more most much none not now number numbers off
    only other out over question result same some than that the their them then there these they this those
    very was what when where which while who why will with word you your""".split()  # noqa: SIM905
)


#: Words that tell how a question is solved, or which of its answers is right.
_DECISIVE = frozenset(
    """add added addition altogether average best biggest bigger cheaper cheapest correct difference divide divided
    double each earlier earliest either enough equal even every exactly except extra false fewer fewest finally greater
    greatest halve halved highest higher largest larger last late later latest least left less long longer longest lower
    lowest minus most multiplied never newest next nobody odd oldest older once only order original percent plus product
    remain remaining remains right short shorter shortest smaller smallest still subtract subtracted sum times together
    total twice unless until wrong younger youngest""".split()  # noqa: SIM905
)

#: Words too faint to be what a question is about.
_FAINT = frozenset(
    """again along another anybody anyone anything around because become been being below between came come could
    different doing done during everybody everyone everything going happen happened happens instead itself kind like
    likely must nothing shall should somebody someone something such sure thing things through toward towards under
    until upon using usually well went whom whose without would""".split()  # noqa: SIM905
)

_NEVER_QUOTED = frozenset((*NUMBER_WORDS, *NUMBER_LIKE, *YES_NO, *DOUBT_WORDS, *_DECISIVE, *_COMMON, *_FAINT))


def about_words(question: str, barred: Iterable[str]) -> list[str]:
    """The words of a question that may stand in for what it is about, each once (no two of one stem), in order.

    They are plain words of four to fourteen letters: no number word, no word of yes and no or of doubt, none that tells
    how to solve it, no name or other capitalised word, and none that shares its stem with a text of `barred` (the
    options, the right answer and the wrong one).
    """
    told = {stem(word) for text in barred for word in re.findall(r"\w+", text.casefold())}
    names = {word.casefold() for word in re.findall(r"[A-Z][a-z]+", question)}
    barring = names | _NEVER_QUOTED
    found: dict[str, str] = {}
    for word in re.findall(r"(?<![\w'’-])[a-z]{4,14}(?![\w'’-])", question):
        if (root := stem(word)) not in told and barring.isdisjoint((word, word.removesuffix("s"))):
            found.setdefault(root, word)
    return list(found.values())


def stem(word: str) -> str:
    """A word without its ending, so that `cost`, `costs` and `costing`, or `carry` and `carried`, are one."""
    bare = re.sub(r"(?<=...)s$", "", re.sub(r"(?<=..)ies$", "y", word))
    bare = re.sub(r"(?<=...)(?:ren|ied|ing|ed|er|ie|e|y)$", "", bare)
    return re.sub(r"v$", "f", re.sub(r"([bdgklmnprst])\1$", r"\1", bare))


#: What is done in any sum, and who and when in any question.
_DONE = frozenset(
    """bought buys carries carry contains cost costs does each earn earned earns eats finds gave gives goes have having
    held hold holds keep keeps made make makes need needs paid pays people person reads sell sells share shares sold
    spend spends spent take takes time took used uses want wants works""".split()  # noqa: SIM905
)


def telling_words(question: str, words: Sequence[str]) -> list[str]:
    """At least two of the words, if there are two: those of the question's last sentence first, then the longest."""
    asked = {stem(word) for word in re.findall(r"[a-z]+", re.split(r"(?<=[.!?])\s+", question.strip())[-1])}
    told = [word for word in words if stem(word) in asked and not _pale(word)]
    others = sorted((word for word in words if word not in told), key=lambda word: (_pale(word), -len(word)))
    chosen = {*sorted(told, key=len, reverse=True)[:4], *others[: max(0, 2 - len(told))]}
    return [word for word in words if word in chosen]


def _pale(word: str) -> bool:
    """A word that says little of what a question is about: an adverb, or what is done in any sum."""
    return word.endswith("ly") or word in _DONE


def content_words(text: str) -> set[str]:
    """Words of three letters or more that say what a text is about, with a plural s removed."""
    return {word.removesuffix("s") for word in re.findall(r"[^\W\d_]{3,}", text.casefold()) if word not in _COMMON}
