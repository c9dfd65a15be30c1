"""Foils: wrong answers of the reference's own kind, from the other questions' answers or near by (Sec. 3.1).

The same kind and form, the same noun asked for or the same gender where these are known, about as often an answer or a
title; among equals a hash of seed and item decides.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from scope import matching, spellings
from scope.artifacts import fingerprint
from scope.pool.ragstress import mentions
from scope.pool.ragstress.drafts import Draft, Excluded, joined
from scope.pool.ragstress.kinds import PLACES, Kind, form_of, kind_of
from scope.pool.ragstress.lexicon import Lexicon
from scope.pool.ragstress.nearby import near
from scope.pool.ragstress.targets import Target, grammar, same_value


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer of some question, as its own passages write it. article: whether they write `the` before it.

    length: in words; popularity: as the lexicon has it; owner: the question's id.
    """

    text: str
    kind: Kind
    spellings: tuple[str, ...]
    article: bool
    length: int
    popularity: int
    language: str
    owner: str


@dataclass(frozen=True, slots=True)
class Foil:
    """A chosen foil, other spellings of it, its kind, and where it is from: `near` or the id of a question."""

    text: str
    spellings: tuple[str, ...]
    kind: Kind
    origin: str


def library(drafts: Iterable[Draft], lexicon: Lexicon) -> list[Answer]:
    """Every question's answer in the spelling that stands most often in its passages, else its first one."""
    found: dict[str, Answer] = {}
    for draft in drafts:
        answers = mentions.usable(draft.answers)
        if draft.options or not answers:
            continue
        seen: dict[str, list[bool]] = {}
        for passage in draft.passages:
            text = joined(passage.sentences, draft.language)
            for start, end in mentions.spans(text, answers):
                seen.setdefault(text[start:end], []).append(text[:start].casefold().endswith("the "))
        if not seen and draft.passages and draft.same_answer and len(answers) > 3:
            continue  # which of so many spellings is the usual one is not known
        most = max(seen, key=lambda each: (len(seen[each]), each), default=answers[0])
        article = sum(seen.get(most, ())) * 2 > len(seen.get(most, ())) or (
            most not in seen and draft.answers[0].casefold().startswith("the ")
        )
        same = answers if draft.same_answer else ()
        kind, length = kind_of(draft.question, most, lexicon), len(matching.words(most))
        entry = Answer(most, kind, same, article, length, lexicon.popularity(most), draft.language, draft.id)
        found.setdefault(f"{entry.kind.name} {most.casefold()}", entry)
    return list(found.values())


def choose(
    draft: Draft, target: Target | None, known: Sequence[Answer], lexicon: Lexicon, seed: int, taken: Sequence[str]
) -> Foil:
    """The foil of a question. taken: texts that may not name it (question, target, passages beside it).

    Excluded where no answer and no value near by will do.
    """
    answers = mentions.usable(draft.answers)
    reference = target.reference if target else answers[0]
    if re.match(r"[^\W\d_]", reference) and reference[0].islower() and form_of(reference) == "title":
        raise Excluded("foil: the reference is a phrase around a name")
    # A word is compared as it is written within a sentence.
    plain = reference[0].lower() + reference[1:] if target and target.capitalised else reference
    kind = kind_of(draft.question, plain, lexicon)
    rank = fingerprint([seed, "foil", draft.id])
    for text, spelled, origin in _candidates(draft, target, plain, kind, known, lexicon, rank):
        shown = text[0].upper() + text[1:] if target and target.capitalised else text
        others = tuple(each for each in spelled if _kept(each, text, answers, taken))
        if (
            not any(same_value(text, answer) for answer in (*answers, reference))
            and not (kind.name not in ("number", "date") and any(mentions.shares_word(text, a) for a in answers))
            and not any(mentions.named(each, [text]) for each in taken)
            and not (kind.name == "person" and any(mentions.partly(each, text) for each in taken))
            and not (target and draft.language != "zh" and grammar(target, text, kind.name))
            and (kind.name != "date" or _in_order(" ".join(taken), reference, text))
        ):
            return Foil(shown, others, Kind(kind.name, kind.form, kind.asked), origin)
    raise Excluded(f"foil: none of its kind ({kind.name}) will do")


def _in_order(text: str, reference: str, foil: str) -> bool:
    """Whether the years of a text come before and after the foil's as they do before and after the reference's."""
    years = {int(found) for found in re.findall(r"\b(?:1\d{3}|20\d\d)\b", text.replace(reference, " "))}
    was, now = (next(iter(re.findall(r"\d{4}", each)), "") for each in (reference, foil))
    return not was or all(
        (year > int(was)) - (year < int(was)) == (year > int(now)) - (year < int(now)) for year in years
    )


def _kept(spelling: str, foil: str, answers: Sequence[str], taken: Sequence[str]) -> bool:
    """Whether another spelling of a foil may count as the foil: it is long enough, and meets nothing else."""
    return (
        spelling.casefold() != foil.casefold()
        and len(spelling) > 3
        and "(" not in spelling
        and not matching.overlap([spelling], answers)
        and not any(mentions.named(text, [spelling]) for text in taken)
    )


def _candidates(
    draft: Draft,
    target: Target | None,
    reference: str,
    kind: Kind,
    known: Sequence[Answer],
    lexicon: Lexicon,
    rank: str,
) -> Iterator[tuple[str, tuple[str, ...], str]]:
    """(text, other spellings, origin) in the order in which they are preferred."""
    if kind.name in ("number", "date"):
        yield from ((text, (), "near") for text in near(reference, rank))
        return
    article = bool(target) and target.before == "the"  # type: ignore[union-attr]
    popular, length = lexicon.popularity(reference), len(matching.words(reference))
    ranked = []
    for each in known:
        distance = _distance(kind, each.kind, lexicon, reference, each.text)
        longer = abs(each.length - length)
        if each.owner == draft.id or distance is None or each.language != draft.language:
            continue
        if longer > (0 if kind.form in ("word", "title") else 2) or (
            target and draft.language != "zh" and each.article != article and kind.name != "person"
        ):
            continue
        far = abs(each.popularity - popular)
        ranked.append((distance, longer, far, fingerprint([rank, each.text]), each))
    for *_, each in sorted(ranked, key=lambda entry: entry[:4]):
        yield each.text, each.spellings, each.owner


def _distance(kind: Kind, other: Kind, lexicon: Lexicon, reference: str, text: str) -> int | None:
    """How far a foil's kind is from the reference's, 0 to 3; None where they do not go together."""
    if kind.name != other.name or kind.form != other.form:
        return None
    alike = bool(kind.asked) and kind.asked == other.asked
    if kind.name == "person":
        genders = lexicon.gender(reference), lexicon.gender(text)
        if all(genders) and genders[0] != genders[1]:
            return None
        return (0 if alike else 1) + (0 if genders[0] == genders[1] else 2)
    if kind.name == "place":
        if kind.asked in PLACES and other.asked in PLACES and not alike:
            return None
        return 0 if alike else 1
    told = [lexicon.types.get(spellings.normal(each), "") in PLACES for each in (reference, text)]
    if told[1] and not told[0]:
        return None
    # What a thing is, only the noun that is asked for tells.
    if kind.form == "nationality" or matching.is_chinese(text):
        return 0
    return 0 if alike and not kind.asked.startswith(("who", "where")) else None
