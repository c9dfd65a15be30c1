"""Forms of SituatedQA's questions that can be restated as grammatical statements; all others are left out.

Upstream questions are lower-case queries. A form takes one apart, `Capitals` restores its capitals from a word list,
and `wording.toml` puts it together again as question and statement.
"""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path


class Unstated(Exception):
    """Why a question cannot be restated."""


@dataclass(frozen=True, slots=True)
class Frame:
    """A question taken apart.

    name: of its templates in `wording.toml`. relation: what its values are values of, scope and subject aside; other
    questions of the same relation lend distractors, and it is the question's type. slots: for the templates.
    kind: of the answer (`scope.spellings.KINDS`).
    """

    name: str
    relation: str
    slots: tuple[tuple[str, str], ...]
    kind: str

    @property
    def attribute(self) -> str:
        """The same for every wording of the same question."""
        return f"{self.name}: " + "; ".join(text for _, text in self.slots)


# ---------------------------------------------------------------- words


class Capitals:
    """Restores capitals from `words.toml`: names as they are written, and words that have none."""

    def __init__(self, names: Mapping[str, str], words: frozenset[str]):
        self.names, self.words = names, words
        self.longest = max(len(name.split()) for name in names)

    def __call__(self, text: str) -> str:
        """The text with its capitals; Unstated names a word that is in neither list."""
        tokens = text.casefold().split()
        done: list[str] = []
        while tokens:
            for length in range(min(self.longest, len(tokens)), 0, -1):
                if name := self.names.get(" ".join(tokens[:length])):
                    done.append(name)
                    tokens = tokens[length:]
                    break
            else:
                word = tokens.pop(0)
                if word not in self.words and not re.fullmatch(r"\d+(st|nd|rd|th)?", word):
                    raise Unstated(f"question: the capitals of {word!r} are not known")
                done.append(word)
        # A name brings its own article along.
        return re.sub(r"(?i)\b(?:the|an?) ((?:the|an?) )", r"\1", " ".join(done))


@dataclass(frozen=True, slots=True)
class Places:
    """Place names as they are written, and the larger places that each lies in."""

    names: Mapping[str, str]
    within: Mapping[str, str]

    def __call__(self, text: str) -> str:
        found = self.names.get(" ".join(text.casefold().replace(",", " ").split()).removeprefix("the "))
        if not found:
            raise Unstated("location: is not a place in words.toml")
        return found

    def nested(self, a: str, b: str) -> bool:
        """Whether one of two places lies in the other."""
        return self._lies_in(a, b) or self._lies_in(b, a)

    def _lies_in(self, inner: str, outer: str) -> bool:
        while inner in self.within:
            inner = self.within[inner]
            if inner == outer:
                return True
        return False


@dataclass(frozen=True, slots=True)
class Words:
    """What `words.toml` holds. verbs: as a query has them -> past tense. vague: competitions that are not one alone.
    refused: events and offices that were read and are not accepted.

    rewordings: an event -> another way to say the same.
    """

    capitals: Capitals
    places: Places
    verbs: Mapping[str, str]
    vague: frozenset[str]
    refused: frozenset[str]
    rewordings: Mapping[str, str]

    def base(self, past: str) -> str:
        """The infinitive of a past tense: the verb that `words.toml` lists first for it."""
        return next(verb for verb, found in self.verbs.items() if found == past)


@cache
def word_lists() -> Words:
    """The lists, read once."""
    lists = tomllib.loads(Path(__file__).with_name("words.toml").read_text("utf-8"))
    names = {name.casefold().removeprefix("the "): name for name in lists["names"]} | lists["aliases"]
    places: dict[str, str] = {}
    within: dict[str, str] = {}
    for larger, smaller in lists["places"].items():
        for place in smaller:
            places[place.casefold().removeprefix("the ")] = place
            if larger != "world":
                within[place] = larger
    places |= {alias: place for alias, place in lists["place_aliases"].items()}
    names |= {name: place for name, place in places.items() if name not in names}
    words = Capitals(names, frozenset(lists["words"].split()))
    return Words(
        words,
        Places(places, within),
        lists["verbs"],
        frozenset(lists["vague"]),
        frozenset(lists["refused"]),
        lists["rewordings"],
    )


# ---------------------------------------------------------------- forms

_NO_FORM = "question: has no form that can be restated"
_NOW = r"(?: (?:now|today|currently|right now|at present|in present time|at this time))?"
#: Offices with one holder at a time.
OFFICES = (
    "prime minister", "deputy prime minister", "vice president", "president", "chief minister", "lieutenant governor",
    "deputy governor", "governor general", "governor", "chief justice", "head coach", "coach", "captain", "ceo",
    "mayor", "speaker", "chancellor", "attorney general", "home minister", "finance minister", "education minister",
    "defence minister", "foreign minister", "chairman", "director", "leader", "commissioner", "inspector general",
    "secretary general", "army chief", "chief election commissioner", "election commissioner", "majority leader",
    "minister of education", "minister of health", "minister of finance", "minister of defence", "secretary of state",
    "chief of air staff", "chief of defence staff", "chief economic advisor", "monarch", "king", "emperor", "head",
    "secretary of defense", "secretary of education", "secretary", "pastor", "manager", "owner",
)  # fmt: skip
_OFFICE = "|".join(sorted(OFFICES, key=len, reverse=True))
_ORDINAL = r"first|1st|second|2nd|third|3rd|fourth|fifth|\d+th"
_NEWEST = r"(?:(?:current|present|new|newly elected|newly appointed) )?"


def time_frame(question: str) -> Frame:
    """The frame of a question whose answer depends on the date; Unstated where it has no known form."""
    words = word_lists()
    capitals, verbs = words.capitals, words.verbs
    text = _plain(question)
    asked = rf"(?:who is|who was|who is currently|what is (?:the )?name of) (?:the )?{_NEWEST}"
    if found := re.fullmatch(rf"{asked}(?P<role>(?:{_OFFICE})) (?P<of>of|for|at|in) (?P<body>.+?){_NOW}", text):
        body, role = capitals(found["body"]), found["role"]
        of = "of" if found["of"] == "for" else found["of"]
        held = f"{role.replace('ceo', 'CEO')} {of} {body}"
        return Frame("office", _office_relation(role, body, held), (("role", held),), "name")
    event = ""
    if found := re.fullmatch(r"when (?:was|is) (?:the )?last time (?:that )?(?P<event>.+)", text):
        event = found["event"]
    elif (found := re.fullmatch(r"when did (?P<who>.+?) last (?P<verb>\w+) (?P<rest>.+)", text)) and (
        found["verb"] in verbs
    ):
        event = f"{found['who']} {verbs[found['verb']]} {found['rest']}"
    if event:
        return _last_time(event)
    noun = r"(?P<noun>seasons|episodes|series|books|movies)"
    for pattern in (
        rf"how many {noun} (?:are|is|were) there (?:of|in|for|on) (?P<title>.+)",
        rf"how many {noun} (?:of|in) (?P<title>.+?)(?: (?:are|is|were) there)?(?: in total)?",
        rf"how many {noun} (?:are|is|were) (?:of|in|there) (?P<title>.+)",
    ):
        if found := re.fullmatch(pattern, text):
            title = found["title"].removeprefix("the tv show ").removesuffix(" series")
            slots = (("noun", found["noun"]), ("title", capitals(title)))
            return Frame("count", f"number of {found['noun']}", slots, "number")
    if found := re.fullmatch(r"what is (?:the )?(?:current )?population of (?P<place>.+)", text):
        return Frame("population", "population", (("place", capitals(found["place"])),), "number")
    raise Unstated(_NO_FORM)


def _office_relation(role: str, body: str, held: str) -> str:
    """What makes holders of an office each other's distractors: a place's office, a court's, a cricket team's."""
    place = body.removeprefix("the ")
    if role == "chief justice" or place.endswith(" State") or place.casefold() in word_lists().places.names:
        return role
    return f"{role} of a cricket team" if "cricket" in body else held


#: Past-tense verbs of an event that a last time is asked of; what follows one is the competition.
_EVENT = re.compile(
    r"(?P<who>.+?) (?P<verb>won|hosted|made|reached|qualified for|went to|played in|got to|got into|beat|"
    r"was in|were in|was at|were at) (?P<what>.+)"
)
#: Who is a group of no fixed members: a last time of theirs is about nobody in particular.
_ANYBODY = re.compile(r"(?:someone|anyone|a team|there|no ).*")


def _last_time(event: str) -> Frame:
    words = word_lists()
    found = _EVENT.fullmatch(event)
    if not found or _ANYBODY.match(event) or re.search(r"\b(?:did|not|their|his|her|last|next)\b|n't", event):
        raise Unstated(_NO_FORM)
    who, what = words.capitals(found["who"]), words.capitals(found["what"])
    if what in words.vague or not who.removeprefix("the ")[:1].isupper():
        raise Unstated("question: does not say which competition or team it means")
    verb = found["verb"].replace("were", "was")
    if verb.startswith("was ") and who.endswith("s") and who not in ("the United States", "Rangers"):
        verb = verb.replace("was", "were")
    return Frame("last_time", f"last time: {what}", (("event", f"{who} {verb} {what}"),), "year")


def place_frame(question: str) -> Frame:
    """The frame of a question whose answer depends on the place; Unstated where it has no known form."""
    found = _place_frame(question)
    if any(text in word_lists().refused for _, text in found.slots):
        raise Unstated("question: was read and not accepted")
    return found


def _place_frame(question: str) -> Frame:
    capitals = word_lists().capitals
    text = _plain(question)
    if re.search(r"\b(?:last|next|current|now|today|present|recent|latest|this)\b", text):
        raise Unstated("question: depends on the time too")
    if found := re.fullmatch(rf"who (?:was|is) (?:the )?(?P<nth>{_ORDINAL}) (?P<role>(?:[a-z]+ )?(?:{_OFFICE}))", text):
        role = f"{_ORDINALS.get(found['nth'], found['nth'])} {capitals(found['role'])}"
        return Frame("holder", f"first holders: {found['role']}", (("role", role),), "name")
    if found := re.fullmatch(rf"who was elected (?P<role>{_OFFICE}) in (?P<year>\d{{4}})", text):
        return Frame("elected", "elected", (("role", found["role"]), ("year", found["year"])), "name")
    if found := re.fullmatch(r"who was (?:the )?king in (?P<year>\d{4})", text):
        return Frame("monarch", "monarch", (("year", found["year"]),), "name")
    if re.fullmatch(r"what is (?:the )?capital(?: city)?(?: name)?", text):
        return Frame("capital", "capital", (), "name")
    if found := re.fullmatch(
        r"what is the (?P<what>highest (?:point|mountain|peak)|longest river)(?: in the state)?", text
    ):
        return Frame("extreme", found["what"], (("what", found["what"]),), "name")
    if found := re.fullmatch(r"(?:when|what year|in what year|in which year) did (?P<rest>.+)", text):
        return _did(found["rest"])
    if found := re.fullmatch(
        r"when (?:was|were) (?P<what>.+?) (?P<done>\w+(?:ed|wn|lt|en|ade))(?P<rest>(?: .+)?)", text
    ):
        what, done, rest = found["what"], found["done"], capitals(found["rest"])
        rest = f" {rest}" if rest else ""
        if what in ("we", "the country", "the state", "the city"):
            return Frame("place_passive", f"when: {done}", (("done", f"{done}{rest}"),), "year")
        verb = "were" if re.match(r"when were", text) else "was"
        return Frame(
            "passive", f"when: {done}", (("what", capitals(what)), ("was", verb), ("done", f"{done}{rest}")), "year"
        )
    raise Unstated(_NO_FORM)


def _did(rest: str) -> Frame:
    """`we become a state` is about the place; `women get the vote` takes place there."""
    words = word_lists()
    we = r"(?:we|the (?:country|state|city|republic|nation))"
    if found := re.fullmatch(rf"{we} (?P<first>first )?(?P<verb>\w+)(?P<what>(?: .+)?)", rest):
        if found["verb"] not in words.verbs or re.search(r"\b(?:we|its|their|our)\b", found["what"]):
            raise Unstated(_NO_FORM)
        first, past, what = found["first"] or "", words.verbs[found["verb"]], words.capitals(found["what"])
        done = words.rewordings.get(f"{past} {what}", f"{past} {what}").strip()
        past, _, what = done.partition(" ")
        ask = f"{first}{words.base(past)} {what}".strip()
        return Frame("place_did", f"when: {past}", (("done", f"{first}{done}"), ("ask", ask)), "year")
    parts = rest.split()
    at = next((i for i, word in enumerate(parts) if word in words.verbs and i), 0)
    if not at or re.search(r"\b(?:we|us|its|their|our|they|it)\b", rest):
        raise Unstated(_NO_FORM)
    past, who = words.verbs[parts[at]], words.capitals(" ".join(parts[:at]))
    what = words.capitals(" ".join(parts[at + 1 :]))
    done = words.rewordings.get(f"{past} {what}", f"{past} {what}").strip()
    ask = f"{words.base(past)} {done.partition(' ')[2]}".strip()
    if " first" in f" {who}"[-6:]:
        raise Unstated(_NO_FORM)
    return Frame("did", f"when: {past}", (("what", who), ("done", done), ("ask", ask)), "year")


_ORDINALS = {"1st": "first", "2nd": "second", "3rd": "third"}


def _plain(question: str) -> str:
    text = " ".join(question.casefold().replace("?", " ").split())
    return re.sub(r"\b(when|who|what)(?:'s| s|s) ", r"\1 is ", text)
