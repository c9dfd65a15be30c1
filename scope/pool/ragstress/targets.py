"""The target passage: one that supports the answer, names it once, and can be set in three orders (Sec. 3.1, F.1)."""

import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from scope import matching, spellings
from scope.evidence import Layout
from scope.pool.ragstress import mentions
from scope.pool.ragstress.drafts import Draft, Excluded, Passage, joined
from scope.pool.ragstress.kinds import MONTHS
from scope.pool.ragstress.passages import around

#: Sentences of a target at least; words that the question shares with the passage, one of them with the answer's
#: sentence; with sentence and title as many, else three, or half, with the passage. Ours.
SENTENCES, SHARED = 3, 2
SHORT = "too short for three layouts"
#: Where the middle of the answer must stand, as a share of the target's characters. Ours.
BOUNDS = {"beginning": (0.0, 0.4), "middle": (0.3, 0.7), "end": (0.6, 1.0)}
STOP = frozenset(
    """
    a an the of in on at to for from by with and or as is was are were be been did does do has had have that this which
    who whom whose what when where how many much it its s there name first most last one also year his her he she they
    their into than
    """.split()  # noqa: SIM905
)
#: Sentences that hang on the one before them, and cannot be moved.
_HANGS = re.compile(
    r"[\"“(]?(?:It|Its|He|His|She|Her|They|Their|Them|These|Those|This|That|Such|However|But|And|Or|So|Then|Thus|Also"
    r"|Therefore|Instead|Moreover|Furthermore|Additionally|Nevertheless|Meanwhile|Afterwards?|Later|Subsequently"
    r"|Consequently|Finally|Both|Another|Others?|Here|There|Likewise|Similarly|Hence|Yet|Still|Further|Eventually"
    r"|Earlier|Previously|Together|Neither|Each|Two years|The (?:two|latter|former|other|next|following|same|second"
    r"|third|former|first))\b"
)
_HANGS_CHINESE = re.compile(
    r"[“「『（]?(?:他|她|它|这|那|该|此|其|但|然而|因此|所以|而且|不过|同时|随后|之后|后来|并且|另外|此外)"
)
_TITLE_WORD = re.compile(r"(?:The|A|An|In|On|At|By|From|Of|And|But|When|While|After|Since|As|For|With|To)$")


@dataclass(frozen=True, slots=True)
class Target:
    """A chosen passage. place: its number in the draft; k: the answer's sentence; start, end: the answer in it.

    reference: the answer as it stands there; where it begins the sentence, `capitalised` says whether only for that.
    """

    place: int
    sentences: tuple[str, ...]
    k: int
    start: int
    end: int
    reference: str
    capitalised: bool

    @property
    def sentence(self) -> str:
        return self.sentences[self.k]

    @property
    def before(self) -> str:
        """The word before the answer in its sentence, in lower case."""
        return (self.sentence[: self.start].split() or [""])[-1].casefold()

    def edited(self, foil: str) -> str:
        """The answer's sentence with the foil in its place."""
        return self.sentence[: self.start] + foil + self.sentence[self.end :]


def content(text: str) -> set[str]:
    """The words of a text that count for overlap, plural endings aside; in Chinese, pairs of characters."""
    words = matching.words(text)
    if matching.is_chinese(text):
        return {a + b for a, b in itertools.pairwise(words)}
    return {word.rstrip("s") for word in words} - STOP


def chosen(draft: Draft, cap: int) -> Target:
    """The passage that shares most words with the question among those that will do; Excluded where none does.

    The reason is that of the passage that came furthest.
    """
    answers = mentions.usable(draft.answers)
    if not answers:
        raise Excluded("question: its answer has no spelling that can be looked for")
    if mentions.named(draft.question, answers):
        raise Excluded("question: names the reference")
    wanted = content(draft.question)
    holding = [place for place, each in enumerate(draft.passages) if each.supports and _holds(each, answers)]
    shared = {place: len(wanted & content(_about(draft.passages[place]))) for place in holding}
    furthest = (0, "target: no passage names the reference in a whole sentence")
    for place in sorted(holding, key=lambda place: -shared[place]):
        for k in _once(draft.passages[place].sentences, answers, wanted):
            reached = 1
            try:
                for step in _steps(draft, place, k, answers, wanted, cap):
                    reached += 1
                    if isinstance(step, Target):
                        return step
            except Excluded as error:
                furthest = max(furthest, (reached, str(error)), key=lambda each: each[0])
    raise Excluded(furthest[1])


def _about(passage: Passage) -> str:
    return f"{passage.title} {' '.join(passage.sentences)}"


def _holds(passage: Passage, answers: tuple[str, ...]) -> bool:
    return any(mentions.spans(sentence, answers) for sentence in passage.sentences)


def _once(sentences: Sequence[str], answers: tuple[str, ...], wanted: set[str]) -> list[int]:
    """The sentences that name the answer once, those that share most words with the question first."""
    found = [k for k, sentence in enumerate(sentences) if len(mentions.spans(sentence, answers)) == 1]
    return sorted(found, key=lambda k: (-len(wanted & content(sentences[k])), k))


def _steps(
    draft: Draft, place: int, k: int, answers: tuple[str, ...], wanted: set[str], cap: int
) -> Iterator[Target | None]:
    """Go through what a target needs, a step each; the last is the target. Excluded at the first that it lacks."""
    passage, language = draft.passages[place], draft.language
    everything = passage.sentences
    sentence = everything[k]
    start, end = mentions.spans(sentence, answers)[0]
    reference = sentence[start:end]
    if mentions.partly_asked(draft.question, reference):
        raise Excluded("question: names a part of the reference")
    if _again(f"{sentence[:start]} ◊ {sentence[end:]}", answers, reference):
        raise Excluded("target: its sentence names the reference, or a part of it, more than once")
    yield None
    if language != "zh" and (why := _inside(sentence, start, end)):
        raise Excluded(why)
    if matching.is_chinese(joined(everything, language)) != (language == "zh"):
        raise Excluded("target: is not in the question's language")
    yield None
    sentences, k = _window(everything, k, answers, reference)
    if draft.clips:
        sentences, k = around(sentences, k, cap, language)
    elif len(sentences) < len(everything):
        raise Excluded("target: names the reference, or a part of it, more than once")
    if len(sentences) < SENTENCES:
        again = len(sentences) < len(everything) and len(around(everything, k, cap, language)[0]) >= SENTENCES
        raise Excluded(f"target: {'names the reference, or a part of it, more than once' if again else SHORT}")
    yield None
    about = content(f"{passage.title} {joined(sentences, language)}") - content(reference)
    if len(wanted & about) < min(SHARED, len(wanted)):
        raise Excluded("target: shares too few words with the question to support the answer")
    here = content(sentence) - content(reference)
    titled = here | (content(passage.title) - content(reference))
    if not wanted & here or (len(wanted & titled) < SHARED and len(wanted & about) < min(3, len(wanted) / 2)):
        raise Excluded("target: the answer's sentence shares too few words with the question")
    yield None
    if (_HANGS_CHINESE if language == "zh" else _HANGS).match(sentence):
        raise Excluded("target: the answer's sentence hangs on the one before it")
    yield None
    found = Target(place, sentences, k, start, end, reference, _only_for_its_place(reference, start, answers))
    layouts(found, "x" * 8, language)
    yield found


def _again(text: str, answers: Sequence[str], reference: str) -> bool:
    """Whether a text without the answer's span names the answer after all, whole or in part."""
    return bool(mentions.named(text, [*answers, reference]) or mentions.partly(text, reference))


def _window(sentences: Sequence[str], k: int, answers: Sequence[str], reference: str) -> tuple[tuple[str, ...], int]:
    """The sentences around the k-th, as far as none of them names the answer again, and its place among them."""
    first, last = k, k + 1
    while first > 0 and not _again(sentences[first - 1], answers, reference):
        first -= 1
    while last < len(sentences) and not _again(sentences[last], answers, reference):
        last += 1
    return tuple(sentences[first:last]), k - first


def _inside(sentence: str, start: int, end: int) -> str:
    """Why a span cannot be exchanged alone, or nothing: it is part of a longer name, number or date."""
    before, after = sentence[:start], sentence[end:]
    number = sentence[end - 1].isdigit() or sentence[start].isdigit()
    longer = "target: the reference is part of a longer name or date"
    if re.match(r" (?:\"?[A-Z][\w’'-]+|[IVX]+\b|&)", after) or re.search(r"[\w’']-$|&\s$", before):
        return longer
    if re.match(r"(?:,? \d{4}|-\w|/\w)", after) and number:
        return longer
    previous = (before.split() or [""])[-1] if before.endswith(" ") else ""
    if number:
        dated = re.fullmatch(MONTHS, previous) and not re.fullmatch(r"\d{4}", sentence[start:end])
        return longer if dated or re.match(rf" (?:{MONTHS})\b", after) else ""
    opens = len(before.split()) == 1
    if previous[:1].isupper() and previous.isalpha() and not _TITLE_WORD.match(previous) and not opens:
        return longer
    if re.search(r"\b[A-Z][\w’'-]* (?:of|of the|and|&) $", before) and sentence[start].isupper():
        return longer
    if re.match(r" (?:and|&) [A-Z]|, [A-Z][\w-]+(?:,| and )", after) and re.search(r"(?:,| and) $", before):
        return "target: the reference is one of a list"
    if re.match(r"[’']s [A-Z]", after):
        return longer
    return ""


def _only_for_its_place(reference: str, start: int, answers: Sequence[str]) -> bool:
    """Whether a word has its capital for beginning the sentence alone."""
    return start == 0 and any(a[0].islower() and a.casefold() == reference.casefold() for a in answers)


# ---------------------------------------------------------------- layouts


def layouts(target: Target, foil: str, language: str) -> dict[str, Layout]:
    """The three layouts and the source's own order; Excluded where the answer does not come to stand in its region.

    Moved is the answer's whole sentence; the others keep their order.
    """
    others = [sentence for n, sentence in enumerate(target.sentences) if n != target.k]
    at = {place: _set(others, place, target, foil, language) for place in range(len(others) + 1)}
    inner = list(at)[1:-1]
    middle = min(inner, key=lambda place: (abs(at[place].at - 0.5), place)) if inner else 0
    found = {"beginning": at[0], "middle": at[middle], "end": at[len(others)]}
    for name, (low, high) in BOUNDS.items():
        if not low <= found[name].at <= high:
            raise Excluded(f"target: the answer does not come to stand at the {name}")
    if not found["beginning"].at < found["middle"].at < found["end"].at:
        raise Excluded("target: the answer's places are not in order")
    return {**found, "original": at[target.k]}


def _set(others: Sequence[str], place: int, target: Target, foil: str, language: str) -> Layout:
    before, after = list(others[:place]), list(others[place:])
    clean = joined([*before, target.sentence, *after], language)
    edited = joined([*before, target.edited(foil), *after], language)
    start = len(joined([*before, ""], language)) + target.start if before else target.start
    return Layout(clean, edited, start, target.reference, foil)


def grammar(target: Target, foil: str, kind: str) -> str:
    """What the words around the answer ask of its foil and the foil does not give, or nothing.

    An article's form before it, and the number of a thing.
    """
    vowel = foil[:1].casefold() in "aeiou"
    if (target.before == "a" and vowel) or (target.before == "an" and not vowel):
        return "the article before it"
    plural = [word.endswith("s") and not word.endswith(("ss", "us", "is")) for word in (target.reference, foil)]
    counted = kind == "thing" and (target.reference[:1].islower() or target.before == "the")
    if counted and plural[0] != plural[1]:
        return "its number"
    return ""


def same_value(a: str, b: str) -> bool:
    """Whether two answers are one, or one holds the other, in any spelling."""
    return spellings.same(a, b) or bool(matching.overlap([a], [b]))
