"""Kinds of answers: number, date, person, place or thing, from the question's words and the answer's own form."""

import re
from dataclasses import dataclass

from scope import matching, spellings
from scope.pool.ragstress.lexicon import Lexicon, singular

KINDS = ("number", "date", "person", "place", "thing", "option")
MONTHS = "|".join(month.capitalize() for month in spellings.MONTHS)
#: Precision -> what a date of it looks like.
DATES = {
    "month day year": rf"(?P<month>{MONTHS}) (?P<day>\d{{1,2}}), (?P<year>\d{{4}})",
    "day month year": rf"(?P<day>\d{{1,2}}) (?P<month>{MONTHS}) (?P<year>\d{{4}})",
    "month year": rf"(?P<month>{MONTHS}),? (?P<year>\d{{4}})",
    "month day": rf"(?P<month>{MONTHS}) (?P<day>\d{{1,2}})",
    "day month": rf"(?P<day>\d{{1,2}}) (?P<month>{MONTHS})",
    "decade": r"(?P<year>\d{3}0)s",
    "year": r"(?P<year>1[0-9]\d\d|20\d\d)",
    "chinese date": r"(?P<year>\d{4})年(?:(?P<month>\d{1,2})月(?:(?P<day>\d{1,2})日)?)?",
}
#: A number with what may stand around it: `$4.5 million`, `12,000 feet`, `thirteen episodes`, `30%`, `3500米`.
NUMBER = re.compile(
    rf"(?P<before>[$£€¥]?)(?P<value>\d{{1,3}}(?:,\d{{3}})+|\d+(?:\.\d+)?|(?i:{'|'.join(spellings.NUMBER_WORDS)}))"
    r"(?P<after>%|(?: [a-z]+){0,3}|[\u4e00-\u9fff]{0,3})"
)
PLACES = frozenset(
    """
    country nation state city town village county province region capital continent island river lake mountain sea ocean
    district suburb borough street park desert peninsula port territory municipality parish
    """.split()  # noqa: SIM905
)
_PLACE_NAME = re.compile(
    r"\b(?:County|City|Isle|Island|Islands|River|Lake|Mount|Mountains|Valley|Beach|Park|Street|Bay|Ocean|Sea|Desert"
    r"|Province|Peninsula|Gulf|Springs|Falls|Hills),?(?: |$)"
)
WITH_PLACE = "name, with its place"
_HONORIFIC = re.compile(r"(?:Sir|Dame|Dr|Saint|St|King|Queen|Prince|Princess|Pope|Lord|Lady|Emperor|Mr|Mrs)\.? [A-Z]")
#: No person's name, though it may begin with one.
_BODY = re.compile(
    r"^The |\b(?:Hits|Band|Orchestra|Brothers|Sisters|Company|Inc|Club|United|University|Party|Group|Records|Lions"
    r"|Motor|Boys|Girls|Awards?|School|College|Team|Show|Museum|Trophy|Cup|Bank|House|Foundation|Army|Church)\b"
)
_ROLE = re.compile(
    r"(?!river|newspaper|number|letter|order|color|tower|paper|power)\w{2,}(?:er|or|ist|ess|man|ian|king)"
    r"|general|king|justice|champion|captain|admiral|poet|chef|actor|individual|guest"
)
_NAME = re.compile(r"(?:(?:[A-Z][\w.'’-]*|de|da|di|del|der|van|von|la|le|bin|al|of|the|[IVX]+)(?: |$)){1,5}")
_STOP = re.compile(
    r"\b(?:is|was|are|were|be|did|does|do|has|had|have|can|could|will|would|should|may|of|in|on|that|who|from|by|at"
    r"|with|for|to|as|and|or|(?!building|painting|wedding|evening)\w{3,}ing|won|wrote|sang|sings|became|made|took|plays|gave|went|came|stars|\w+ed)\b"
)
_NATIONALITY = re.compile(
    r"[A-Z]\w+(?:ian|ish|ese)|American|Mexican|German|French|Dutch|Greek|Korean|Cuban|African|Roman|Norman|Swiss|Welsh"
    r"|Thai|Czech|Arab|Moroccan|Chilean|Jamaican"
)
#: What says nothing of a kind: what follows its `of` does, or nothing.
_GENERIC = frozenset(
    """
    type kind sort form breed species style genre name word term thing one part title nickname item first second last
    other following name's number year date day amount surname
    """.split()  # noqa: SIM905
)


@dataclass(frozen=True, slots=True)
class Kind:
    """What an answer is. name: one of KINDS. form: its own form, equal for a foil. asked: the noun asked for."""

    name: str
    form: str
    asked: str = ""


def kind_of(question: str, answer: str, lexicon: Lexicon) -> Kind:
    """The kind of an answer to a question."""
    form = form_of(answer)
    if form.startswith("date"):
        return Kind("date", form)
    if form.startswith("number"):
        return Kind("number", form)
    asked = asked_for(question)
    if matching.is_chinese(question):
        return Kind("thing", form, asked)
    known = lexicon.types.get(spellings.normal(answer), "")
    by_name = asked in ("", "where") and bool(_PLACE_NAME.search(answer))
    by_name = by_name or (form == WITH_PLACE and asked in ("where", *PLACES))
    if form.startswith("name") and (asked in PLACES or (known in PLACES and asked in ("", "where")) or by_name):
        # The noun asked for is the surer one: a city may be called a county's seat.
        return Kind("place", form, asked if asked in PLACES else known or asked)
    named = form == "name" and _NAME.fullmatch(answer) and not _BODY.search(answer)
    first = answer.split()[0] if answer else ""
    whom = not asked or asked.startswith("who") or asked in lexicon.roles or bool(_ROLE.fullmatch(asked))
    if named and whom and (_HONORIFIC.match(answer) or first in lexicon.names):
        return Kind("person", "name" if " " in answer else "first name", asked)
    return Kind("thing", form, known if not asked or asked.startswith(("who", "where")) else asked)


def form_of(answer: str) -> str:
    """An answer's own form: `date` or `number` with its precision, `nationality`, `name`, `title` or `word`.

    A foil has the form of its reference. A `name` begins every longer word with a capital, a `word` none.
    """
    for precision, pattern in DATES.items():
        if re.fullmatch(pattern, answer):
            return f"date: {precision}"
    if found := NUMBER.fullmatch(answer):
        return f"number: {found['before']}{_magnitude(found['value'])}{found['after'].casefold()}"
    if matching.is_chinese(answer):
        return "name"
    if re.search(r"\d", answer):
        return "with digits"
    if _NATIONALITY.fullmatch(answer):
        return "nationality"
    if ", " in answer:
        return WITH_PLACE
    longer = [word for word in re.findall(r"[\w'’.-]+", answer) if len(word) > 3] or re.findall(r"\w+", answer)
    capitals = sum(word[0].isupper() for word in longer)
    return "name" if capitals == len(longer) else "word" if not capitals else "title"


def _magnitude(value: str) -> str:
    if value.casefold() in spellings.NUMBER_WORDS:
        return "word"
    return "decimal" if "." in value else "thousands" if "," in value else "digits"


def asked_for(question: str) -> str:
    """The noun that a question asks for (`city` of "which city was"), `who VERB`, `where`; empty if it is unclear."""
    text = question.strip().rstrip("?")
    if found := re.search(r"(?i)\b(?:which|what)\b(?: (?:is|was|are|were) the(?: name of the)?)? (?P<rest>.+)", text):
        rest = found["rest"]
        for _ in range(2):
            head = _STOP.split(rest, maxsplit=1)[0]
            nouns = re.findall(r"[\w'’-]+", head.split(",")[0])[:6]
            noun = singular(nouns[-1]) if nouns else ""
            more = re.match(r"of (?:the |an? )?(?P<rest>.+)", rest[len(head) :])
            if noun not in _GENERIC:
                return noun
            if not more:
                break
            rest = more["rest"]
        return ""
    if found := re.search(r"(?i)\bwho(?: (?:is|was|are|were|did|does|has|had|else|the)\b)*(?: (?P<verb>\w+))?", text):
        return f"who {re.sub(r'(?:ed|s|d)$', '', (found['verb'] or '').casefold())}".strip()
    return "where" if re.search(r"(?i)\bwhere\b|哪里|在哪", text) else ""
