"""SituatedQA: questions whose answers depend on the date or the place (Zhang and Choi, 2021).

The rows have questions, scopes and answers but no passages: G and S are restatements in the fixed wording of a form
(`frames.py`). The paper verified every answer against archived sources; here an answer counts where the rows do not
contradict one another.
"""

import itertools
import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from scope import spellings
from scope.pool.misleadqa.facts import Candidate, Counts, Fact, Origin, Table, Wording, counted
from scope.pool.misleadqa.frames import Frame, Unstated, place_frame, time_frame, word_lists

NAME = "situatedqa"
#: Titles before a person's name, which some answers have and others do not.
_TITLES = (
    r"^(?:president|prime minister|king|queen|emperor|governor|general|brigadier|sir|the|(?:gen|dr|mrs?)\.?) (?=\S)"
)
_SMALL = ("de", "da", "la", "von", "van", "bin", "al", "el", "of", "y", "and", "der", "den", "dos", "du")
#: Forms whose answer is a person, known by two names or more; monarchs have one.
_PEOPLE = ("office", "holder", "elected")


@dataclass(frozen=True, slots=True)
class Answer:
    """A row read: its fact, and for dates whether its answer began then."""

    fact: Fact
    begins: bool = False


def candidates(tables: list[Table], wording: Wording) -> tuple[list[Candidate], Counts]:
    """Time and location pairs, and how many questions, answers and pairs were left out for which reason."""
    found: list[Candidate] = []
    reasons: list[str] = []
    for dimension, config, frame_of in (("time", "temp", time_frame), ("location", "geo", place_frame)):
        answers: dict[Frame, list[Answer]] = defaultdict(list)
        frames: dict[str, Frame | str] = {}
        for place, row in itertools.chain.from_iterable(table.rows for table in tables if table.config == config):
            question = str(row.get("question", ""))
            if question not in frames:
                try:
                    frames[question] = frame_of(question)
                except Unstated as why:
                    frames[question] = str(why)
                    reasons.append(
                        f"{dimension}: {re.sub(r' of .* are not known', ' of a word are not known', str(why))}"
                    )
            frame = frames[question]
            if isinstance(frame, str):
                continue
            try:
                answers[frame].append(_answer(frame, dimension, place, row))
            except Unstated as why:
                reasons.append(f"{dimension}: {why}")
        facts = {frame: _consistent(dimension, given) for frame, given in answers.items()}
        reasons += [f"{dimension}: answer: another row contradicts it"] * (
            sum(map(len, answers.values())) - sum(map(len, facts.values()))
        )
        found += _pairs(dimension, facts, wording)
    return found, counted(reasons)


# ---------------------------------------------------------------- answers


def _answer(frame: Frame, dimension: str, place: str, row: Mapping[str, object]) -> Answer:
    answers = row.get("answer")
    texts = [str(text) for text in answers] if isinstance(answers, list) else [str(answers)]
    value, others = value_of(frame, texts)
    scope = {}
    if dimension == "time":
        date = str(row.get("date", ""))
        if not spellings.span(date):
            raise Unstated("date: is neither a year nor a day")
        scope["time"] = re.sub(r" 0(\d),", r" \1,", date)
    else:
        scope["location"] = word_lists().places(str(row.get("location", "")))
    where = {"row": place, "upstream_id": str(row.get("id", "")), "question": str(row.get("question", ""))}
    fact = Fact(value, scope, where, document=f"{NAME}/{row.get('id')}", spellings=others)
    return Answer(fact, begins=row.get("date_type") == "start")


def value_of(frame: Frame, answers: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    """The one value that all answers of a row give, and its other expressions; Unstated where there is none."""
    texts = [text for text in dict.fromkeys(" ".join(answer.split()).rstrip("*.") for answer in answers) if text]
    if not texts or any(unicodedata.category(c) in ("Cc", "Cn", "Co") or c in "ÂÃ€�" for t in texts for c in t):
        raise Unstated("answer: is empty or has broken characters")
    if frame.kind == "year":
        years = {year for text in texts for year in re.findall(r"(?<!\d)(?:1\d{3}|20\d\d)(?![\d,s–-])", text)}
        if len(years) != 1 or any(
            not re.search(r"\d{4}", text) or re.search(r"(?i)\bbc\b|[–-]", text) for text in texts
        ):
            raise Unstated("answer: is not one year")
        return years.pop(), tuple(texts)
    if frame.kind == "number":
        numbers = {spellings.normal(text) for text in texts}
        if len(numbers) != 1 or not (number := numbers.pop()).isdecimal():
            raise Unstated("answer: is not one number")
        return f"{int(number):,}" if frame.name == "population" else number, tuple(texts)
    names = sorted(
        {re.sub(_TITLES, "", text, flags=re.IGNORECASE) for text in texts}, key=lambda name: (len(name), name)
    )
    fewest = 2 if frame.name in _PEOPLE else 1
    usable = [name for name in names if _is_name(name) and len(name.split()) >= fewest]
    if not usable or not all(spellings.same(usable[0], other) for other in names):
        raise Unstated("answer: is not one name")
    return usable[0], tuple(text for text in texts if text != usable[0])


def _is_name(text: str) -> bool:
    words = text.split()
    return len(words) <= 5 and all(
        word in _SMALL or (re.fullmatch(r"[^\W\d_][\w.'’-]*\.?", word) and word[0].isupper()) for word in words
    )


def _consistent(dimension: str, answers: Iterable[Answer]) -> list[Fact]:
    """The facts that no other row of the same question contradicts, one for each scope.

    A year or a day in which an answer begins may have two, so it is no scope with a unique one.
    """
    given = list(answers)
    kept: dict[str, Fact] = {}
    for answer in given:
        scope = answer.fact.scope[dimension]
        others = [o for o in given if o is not answer and _meet(dimension, scope, o.fact.scope[dimension])]
        contradicted = any(not spellings.same(o.fact.value, answer.fact.value) for o in others)
        if not contradicted and not answer.begins and not any(o.begins for o in others):
            kept.setdefault(scope, answer.fact)
    return [kept[scope] for scope in sorted(kept)]


def _meet(dimension: str, a: str, b: str) -> bool:
    return spellings.overlap(a, b) if dimension == "time" else a == b


# ---------------------------------------------------------------- pairs


def _pairs(dimension: str, facts: Mapping[Frame, list[Fact]], wording: Wording) -> list[Candidate]:
    relations: dict[str, list[Fact]] = defaultdict(list)
    for frame, given in facts.items():
        relations[frame.relation] += given
    found = []
    for frame, given in facts.items():
        for gold, lure in itertools.permutations(given, 2):
            if spellings.same(gold.value, lure.value) or not _separate(dimension, gold, lure):
                continue
            if frame.name == "last_time" and not lure.value <= gold.value <= gold.scope["time"][-4:]:
                continue  # what had not happened yet at the target cannot be said of it without contradiction
            tiers = [
                [fact for fact in facts_of if _may_distract(frame, dimension, gold, fact)]
                for facts_of in (given, relations[frame.relation] if dimension == "time" else [])
            ]
            slots = dict(frame.slots)
            found.append(
                Candidate(
                    source=NAME,
                    dimension=dimension,
                    question=wording(NAME, f"{frame.name}_question", **slots, **gold.scope),
                    g=wording(NAME, f"{frame.name}_statement", **slots, **gold.scope, value=gold.value),
                    s=wording(NAME, f"{frame.name}_statement", **slots, **lure.scope, value=lure.value),
                    gold=gold,
                    lure=lure,
                    distractors=tuple(tiers),
                    attribute=frame.attribute,
                    cluster=frame.attribute,
                    question_type=frame.relation,
                    license="not stated (SituatedQA)",
                    method="restatement",
                )
            )
    return found


def _may_distract(frame: Frame, dimension: str, gold: Fact, fact: Fact) -> bool:
    """Whether a fact is wrong at the target: for last times not of a later year, for places of none that nests."""
    if frame.name == "last_time":
        return fact.value <= gold.scope["time"][-4:]
    return dimension == "time" or _separate(dimension, gold, fact)


def _separate(dimension: str, a: Fact, b: Fact) -> bool:
    """Whether neither scope covers the other."""
    one, other = a.scope[dimension], b.scope[dimension]
    if dimension == "time":
        return not spellings.overlap(one, other)
    return one != other and not word_lists().places.nested(one, other)


_SPLITS = tuple((config, split) for config in ("temp", "geo") for split in ("train", "dev", "test"))
ORIGIN = Origin(NAME, "situatedqa", "siyue/SituatedQA", _SPLITS, candidates)
