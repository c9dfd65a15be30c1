"""AmbigDocs: documents about different things that share a name (Lee et al., 2024), as RAMDocs publishes them.

A fact counts where the document that opens with an entity's title mentions the annotated answer. G and S are
contiguous sentences of those documents where both can be had, else restatements. RAMDocs' false answers and
noise documents are not used.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import permutations

from scope import spellings
from scope.artifacts import fingerprint
from scope.pool.misleadqa.facts import Candidate, Counts, Fact, Origin, Table, Wording, counted

NAME = "ambigdocs"
#: Most sentences and words of an extract. Ours.
MAX_SENTENCES, MAX_WORDS = 2, 60
SPORTS = (
    "American football", "Australian rules football", "association football", "baseball", "basketball", "biathlon",
    "boxing", "chess", "cricket", "curling", "cycling", "figure skating", "golf", "gymnastics", "ice hockey", "judo",
    "rowing", "rugby league", "rugby union", "sailing", "snooker", "speed skating", "swimming", "tennis", "volleyball",
    "water polo", "weightlifting", "wrestling", "cross-country skiing", "middle-distance running", "softball",
)  # fmt: skip
PARTIES = ("Republican", "Democratic", "Liberal", "Conservative", "Labour", "Whig", "Federalist")
#: Names of buildings and bodies that take an article.
_THE = (
    "Service", "Church", "Courthouse", "House", "Museum", "Depot", "Party", "Movement", "Bridge", "Empire", "Library",
    "Building", "Hotel", "Theatre", "Theater", "Mill", "Cathedral", "Lighthouse", "Station",
)  # fmt: skip
_THE_OF = r"\b(?:Church|Cathedral|City|Museum|Kingdom|Empire|Republic|Bank|Movement|Order|University) of "
#: A value this many years or more from the gold is a distractor of last resort. Ours.
FAR = 60
#: What a cut-off or abbreviated sentence ends in.
_ABBREVIATED = r"(?:Dr|Mr|Mrs|St|Sts|Jr|Sr|Co|No|U\.S|Inc|Ft|Mt)\.$"
#: Qualifiers that say what kind of work a title is, as in `Baby Doll (1956 film)`.
_WORK = r"(?:\d{4} )?(?:[A-Z]\w+ )?(?:film|album|EP|song|single|novel|play|book|TV series|video game|miniseries)"


@dataclass(frozen=True, slots=True)
class Relation:
    """What a question asks of an entity. asks: matches the upstream question. value: an answer -> one spelling of it.

    extracted: whether sentences may serve as G: the answer may be replaced there without contradicting the rest.
    """

    name: str
    asks: str
    value: Callable[[str], str | None]
    extracted: bool = False


def _count(answer: str) -> str | None:
    found = re.fullmatch(r"(\d{1,3}(?:,\d{3})*|\d{1,3})(?: (?:people|inhabitants|residents))?", answer.strip())
    return found[1] if found else None


def _year(answer: str) -> str | None:
    found = re.findall(r"\b(?:1\d{3}|20\d\d)\b", answer)
    return found[0] if len(found) == 1 and not re.search(r"(?i)about|between|circa|\bc\.|[–-]|s\b", answer) else None


def _day(answer: str) -> str | None:
    span = spellings.span(answer)
    if not span or span[0] != span[1]:
        return None
    return f"{spellings.MONTHS[span[0].month - 1].capitalize()} {span[0].day}, {span[0].year}"


def _one_of(known: tuple[str, ...]) -> Callable[[str], str | None]:
    lower = {name.casefold(): name for name in known}

    def value(answer: str) -> str | None:
        return lower.get(answer.casefold().removesuffix(" party").strip())

    return value


def _person(answer: str) -> str | None:
    words = answer.split()
    named = all(re.fullmatch(r"[^\W\d_][\w'’-]*\.?", word) for word in words) and answer[:1].isupper()
    return answer if named and 2 <= len(words) <= 4 and words[-1][0].isupper() and len(words[-1]) > 2 else None


RELATIONS = (
    Relation("population", r"what is the (?:total )?population of .+", _count, extracted=True),
    Relation("born", r"when was .+ born|what is the birth date of .+", _day),
    Relation("died", r"when did .+ die", _day),
    Relation("built", r"when was .+ (?:built|constructed)", _year, extracted=True),
    Relation("established", r"when was .+ (?:established|founded)", _year, extracted=True),
    Relation("sport", r"what sport .+", _one_of(SPORTS)),
    Relation("artist", r"who is the artist (?:of|associated with) .+", _person),
    Relation("director", r"who (?:is the director of|directed) .+", _person),
    Relation("party", r"what political party .+", _one_of(PARTIES)),
)


@dataclass(frozen=True, slots=True)
class Known:
    """A fact with the entity's title and its document. entity: the phrase that names it in our wording."""

    fact: Fact
    title: str
    entity: str
    text: str


def candidates(tables: list[Table], wording: Wording) -> tuple[list[Candidate], Counts]:
    """Entity pairs, and how many questions and answers were left out for which reason."""
    reasons: list[str] = []
    questions: dict[tuple[str, str], list[Known]] = {}
    for place, row in (each for table in tables for each in table.rows):
        question = " ".join(str(row.get("question", "")).split())
        relation = next((r for r in RELATIONS if re.fullmatch(r.asks, question.casefold().rstrip("?"))), None)
        if relation is None:
            reasons.append("question: asks for no attribute that can be restated")
            continue
        questions[relation.name, question] = _known(relation, question, place, row, reasons)
    by_name = {relation.name: relation for relation in RELATIONS}
    everything: dict[str, list[Fact]] = defaultdict(list)
    for (name, _), known in questions.items():
        everything[name] += [each.fact for each in known]
    found = []
    for (name, question), known in questions.items():
        if len(known) < 2:
            reasons.append("question: fewer than two of its entities have a document of their own that answers it")
        for gold, lure in permutations(known, 2):
            if spellings.same(gold.fact.value, lure.fact.value) or _time(gold.fact) != _time(lure.fact):
                continue
            if not _told_apart(gold, lure, name):
                reasons.append("pair: the title does not tell the target apart without its answer")
                continue
            found.append(_candidate(by_name[name], gold, lure, everything[name], question, wording))
    return found, counted(reasons)


def _told_apart(gold: Known, lure: Known, relation: str) -> bool:
    """Whether the target's title is not just the shared name, and no year in the titles meets a year asked for."""
    if _base(gold.title) == gold.title and _base(lure.title).casefold() == gold.title.casefold():
        return False
    dated = relation in ("born", "died", "built", "established")
    return not (dated and re.search(r"\b\d{4}\b", gold.title + lure.title))


def _base(title: str) -> str:
    """A title without its qualifier: `Egg Rock Light (Maine)`, `Osgood, Missouri`."""
    return re.split(r" \(|, ", title)[0]


def _year_of(fact: Fact) -> int:
    found = re.search(r"\d{4}$", fact.value)
    return int(found[0]) if found else 0


def _time(fact: Fact) -> str:
    return fact.scope.get("time", "")


def _known(relation: Relation, question: str, place: str, row: Mapping[str, object], reasons: list[str]) -> list[Known]:
    """The facts of a row whose entity has a document of its own that mentions the answer."""
    documents = row.get("documents")
    found: dict[str, Known] = {}
    for number, document in enumerate(documents if isinstance(documents, list) else []):
        text = " ".join(str(document.get("text", "")).split())
        if document.get("type", "correct") != "correct":
            continue
        titles = [str(document["title"])] if document.get("title") else list(row.get("disambig_entity") or ())  # type: ignore[call-overload]
        own = [title for title in titles if document.get("title") or text.startswith(f"{title} ")]
        answer = str(document.get("answer", ""))
        value = relation.value(answer)
        if not own:
            continue
        title = max(own, key=len)
        body = text if document.get("title") else text[len(title) :].lstrip()
        if value is None:
            reasons.append(f"{relation.name}: answer: has no single value of the kind asked for")
        elif not spellings.mentions(body, value):
            reasons.append(f"{relation.name}: answer: is not in the entity's own document")
        elif title not in found:
            scope = {"entity": title}
            if relation.name == "population":
                census = re.findall(
                    r"\b(\d{4}) census|census of (\d{4})|census in (\d{4})", _sentence_with(body, value)
                )
                years = {year for match in census for year in match if year}
                if len(years) != 1:
                    reasons.append("population: document: does not say at which census")
                    continue
                scope["time"] = years.pop()
            where = {"row": place, "document_number": str(number), "question": question}
            spelled = (answer,) if answer != value else ()
            fact = Fact(value, scope, where, document=f"{NAME}/{fingerprint(text)[:16]}", spellings=spelled)
            found[title] = Known(fact, title, phrase(title, question, relation.name in ("built", "established")), body)
    return list(found.values())


def phrase(title: str, question: str, named_thing: bool = False) -> str:
    """A title with its qualifier as a sentence has it: `the 1956 film "Baby Doll"`, `Egg Rock Light (Maine)`.

    named_thing: whether it is a building or a body, whose name may take an article.
    """
    found = re.fullmatch(r"(?P<name>.+?) \((?P<what>[^()]+)\)", title)
    name, what = (found["name"], found["what"]) if found else (title, "")
    bare = _base(title)
    asked = re.search(rf"(?i)\bthe {re.escape(name)}", question)
    named = named_thing and (bare.endswith(_THE) or re.search(_THE_OF, bare))
    article = "the " if (asked or named) and not name.startswith("The ") else ""
    if re.fullmatch(_WORK, what):
        return f'the {what} "{name}"'
    if f'"{name.casefold()}"' in question.casefold() or re.match(
        r"(?i)who (?:is the (?:artist|director)|directed)", question
    ):
        name = f'"{name}"'
    return f"{article}{name} ({what})" if what else f"{article}{name}"


def _candidate(
    relation: Relation, gold: Known, lure: Known, others: list[Fact], question: str, wording: Wording
) -> Candidate:
    time, row = _time(gold.fact), gold.fact.where["row"]
    facts = [fact for fact in others if fact.scope["entity"] not in (gold.title, lure.title)]
    near = [fact for fact in facts if _time(fact) == time and abs(_year_of(fact) - _year_of(gold.fact)) < FAR]
    slots = {"entity": gold.entity, "time": time}
    g, s = extract(gold, relation), extract(lure, relation)
    method = "extraction" if g and s else "restatement"
    if method == "restatement":
        g = wording(NAME, f"{relation.name}_statement", **slots, value=gold.fact.value)
        s = wording(NAME, f"{relation.name}_statement", **{**slots, "entity": lure.entity}, value=lure.fact.value)
    return Candidate(
        source=NAME,
        dimension="entity",
        question=wording(NAME, f"{relation.name}_question", **slots),
        g=g,
        s=s,
        gold=gold.fact,
        lure=lure.fact,
        distractors=([fact for fact in facts if fact.where["row"] == row], near, facts),
        attribute=relation.name,
        cluster=question,
        question_type=relation.name,
        license="Apache-2.0 (AmbigDocs; text of Wikipedia, CC BY-SA 4.0; RAMDocs MIT)",
        method=method,
    )


# ---------------------------------------------------------------- sentences


def sentences(text: str) -> list[str]:
    """The sentences of a document, the cut-off last one left out."""
    parts = re.split(r"(?<=[a-z\d)\"’][.!?])\s+(?=[A-Z\"])", text)
    return [part for part in parts if re.search(r"[.!?][\"”)]?$", part) and not re.search(_ABBREVIATED, part)]


def _sentence_with(text: str, value: str) -> str:
    return next((sentence for sentence in sentences(text) if spellings.mentions(sentence, value)), "")


def extract(known: Known, relation: Relation) -> str:
    """Contiguous sentences that name the entity with its qualifiers and state the value once; empty if there are none.

    They say no other year where a year is the answer, and have no holes of lost markup ("an area of , all land").
    """
    value, lines = known.fact.value, sentences(known.text)
    name, _, rest = known.title.partition("(" if "(" in known.title else ",")
    words = [word for word in spellings.tokens(rest) if word not in ("the", "of", "and", "in")]
    for first in range(len(lines)):
        for last in range(first, min(first + MAX_SENTENCES, len(lines))):
            text = " ".join(lines[first : last + 1])
            if (
                relation.extracted
                and text.count(value) == 1
                and text.startswith((name.strip(), f"The {name.strip()}"))
                and set(words) <= set(spellings.tokens(text))
                and len(text.split()) <= MAX_WORDS
                and not re.search(r" [,.;]|\(\)|\( |\[|of ,|“|\bIt is \.", text)
                and len(_numbers(text, relation)) == 1
                and _states(text, relation, known)
            ):
                return text
    return ""


def _numbers(text: str, relation: Relation) -> list[str]:
    """The values in a text that could be taken for the answer."""
    if relation.name == "population":
        return re.findall(r"(?<![\d.,])(?!(?:1[89]|20)\d\d\b)\d{1,3}(?:,\d{3})*(?![\d.,]*\d|%)", text)
    return re.findall(r"\b(?:1\d{3}|20\d\d)\b", text)


_VERBS = {"population": r"population|people", "built": r"built|constructed", "established": r"established|founded"}


def _states(text: str, relation: Relation, known: Known) -> bool:
    sentence = _sentence_with(text, known.fact.value)
    year = known.fact.scope.get("time", "")
    return bool(re.search(_VERBS[relation.name], sentence)) and (
        not year or (year in sentence and "census" in sentence)
    )


ORIGIN = Origin(NAME, "ramdocs", "HanNight/RAMDocs", (("", "test"),), candidates)
