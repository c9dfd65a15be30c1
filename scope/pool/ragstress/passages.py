"""Passages as whole sentences: split, freed of the marks of their dump, cut to a cap without cutting a sentence."""

import re
from collections.abc import Sequence

from scope import matching

#: What a full stop after does not end a sentence.
_ABBREVIATED = re.compile(
    r"(?:\b(?:[A-Z]|Dr|Mr|Mrs|Ms|St|Sts|Jr|Sr|Lt|Col|Gen|Capt|Sgt|Prof|Rev|Hon|Gov|Sen|Rep|Pres|Co|Corp|Inc|Ltd|Bros"
    r"|No|Nos|Vol|vol|vs|v|ca|c|cf|e\.g|i\.e|etc|approx|Ft|Mt|Mts|Op|op|pp|Art|Ph\.D|Fig|Jan|Feb|Mar|Apr|Aug|Sept?"
    r"|Oct|Nov|Dec)|(?:\b[A-Z]\.)+[A-Z])\.$"
)
_BREAK = re.compile(r"(?<=[.!?])(?P<close>[\"”’)\]]*)\s+(?=[\"“‘(\[]?[A-Z\d])")
_CHINESE_SENTENCE = re.compile(r"[^。！？]*[。！？][”’」』）]*|[^。！？]+$")
_ENDS = re.compile(r"[.!?][\"”’)\]]*$|[。！？][”’」』）]*$")


def sentences_of(text: str, language: str = "en") -> list[str]:
    """A text's sentences in order, a fragment at either end included; Chinese is split after 。！？."""
    if language == "zh":
        return [part.strip() for part in _CHINESE_SENTENCE.findall(text) if part.strip()]
    found, start = [], 0
    for cut in _BREAK.finditer(text):
        before = text[start : cut.end("close")]
        if _ABBREVIATED.search(before.rstrip('"”’)]')) and not before.rstrip().endswith(('"', "”")):
            continue
        found.append(before.strip())
        start = cut.end()
    found.append(text[start:].strip())
    return [sentence for sentence in found if sentence]


def whole(text: str, language: str = "en", opens: bool = True) -> tuple[str, ...]:
    """The complete sentences of a text; a fragment at its start or end is dropped, for it cannot be moved.

    opens: False where the text is known to begin within a sentence; it also does where it begins with a small letter.
    """
    found = sentences_of(" ".join(text.split()), language)
    if found and not _ENDS.search(found[-1]):
        found.pop()
    begins = opens is not False and not (found and re.match(r"[a-z,;:)]", found[0]))
    return tuple(found if begins else found[1:])


def dump_sentences(title: str, text: str) -> tuple[str, ...]:
    """The complete sentences of a 100-word piece of the 2018 Wikipedia dump.

    Its doubled quotes become single ones. The title that stands before an article's first sentence is removed, also
    where a piece holds an article's end and then its beginning. Every other piece begins within a sentence, whose rest
    is dropped.
    """
    text = " ".join(text.replace('""', '"').split())
    plain = " ".join(title.replace('""', '"').split())
    head, begins, tail = _beginning(text, plain)
    return (*whole(head, opens=False), *whole(tail, opens=True)) if begins else whole(text, opens=False)


def _beginning(text: str, title: str) -> tuple[str, bool, str]:
    """The text before an article's beginning, whether there is one, and the text from there on without the title."""
    names = [word for word in re.findall(r"\w+", re.sub(r" \(.*", "", title)) if len(word) > 2] or [title]
    place = text.find(f"{title} ") if title else -1
    while place >= 0:
        after = text[place + len(title) + 1 :]
        begins = place == 0 or re.search(r"[.!?\")] $", text[:place])
        if begins and any(f" {name}" in f" {' '.join(after.split()[:15])}" for name in names):
            return text[:place].strip(), True, after
        place = text.find(f"{title} ", place + 1)
    return "", False, text


def length(text: str, language: str = "en") -> int:
    """Words of a text; in Chinese its characters and foreign words."""
    return len(matching.words(text)) if language == "zh" else len(text.split())


def around(sentences: Sequence[str], k: int, cap: int, language: str = "en") -> tuple[tuple[str, ...], int]:
    """Sentences around the k-th that together have at most `cap` words, and its place among them.

    Dropped are whole sentences, the furthest from the k-th first, at equal distance the later one. The k-th alone may
    be longer than the cap.
    """
    first, last = 0, len(sentences)
    sizes = [length(sentence, language) for sentence in sentences]
    while sum(sizes[first:last]) > cap and last - first > 1:
        if last - 1 - k >= k - first:
            last -= 1
        else:
            first += 1
    return tuple(sentences[first:last]), k - first


def opening(sentences: Sequence[str], cap: int, language: str = "en") -> tuple[str, ...]:
    """The first sentences that together have at most `cap` words; empty where the first alone has more."""
    kept, total = [], 0
    for sentence in sentences:
        total += length(sentence, language)
        if total > cap:
            break
        kept.append(sentence)
    return tuple(kept)
