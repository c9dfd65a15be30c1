"""CondAmbigQA: questions whose answers depend on a condition (Li et al., 2025), for the condition supplement.

Used are questions after a person whose answers are sentences of one pattern, `NAME verb ... CONDITION.`: the sentence
is the context, and without its name the question. Distractors come from the same question: it needs four such answers.
"""

import re
from collections.abc import Mapping
from itertools import permutations

from scope import spellings
from scope.pool.misleadqa.facts import Candidate, Counts, Fact, Origin, Table, Wording, counted

NAME = "condambigqa"
#: Most words of an answer that is a context. Ours.
MAX_WORDS = 40
_PERSON = r"(?P<name>[A-Z][\w.'’-]*(?: (?:[A-Z][\w.'’-]*|de|van|von))+)"


def candidates(tables: list[Table], wording: Wording) -> tuple[list[Candidate], Counts]:
    """Condition pairs, and how many questions were left out for which reason."""
    found: list[Candidate] = []
    reasons: list[str] = []
    for place, row in (each for table in tables for each in table.rows):
        question = " ".join(str(row.get("question", "")).split())
        asked = re.fullmatch(r"(?i)who (?P<verb>\w+) (?P<about>.+?)\??", question)
        if not asked:
            reasons.append("question: does not ask who did something")
            continue
        facts = _facts(place, row, question, asked["verb"], asked["about"])
        if len({fact.value for fact in facts}) < 4:
            reasons.append("question: fewer than four of its answers are sentences of one pattern")
            continue
        found += [_candidate(question, *pair, facts, wording) for pair in permutations(facts, 2)]
    return found, counted(reasons)


def _facts(place: str, row: Mapping[str, object], question: str, verb: str, about: str) -> list[Fact]:
    conditions = row.get("conditions") or row.get("properties")
    facts = []
    for number, each in enumerate(conditions if isinstance(conditions, list) else []):
        answer = " ".join(str(each.get("answer") or each.get("groundtruth") or "").split()).replace(" .", ".")
        read = re.fullmatch(rf"{_PERSON} (?P<rest>{verb} (?P<object>.+?) (?P<scope>(?:in|during|on) [^.]+))\.", answer)
        if not read or len(answer.split()) > MAX_WORDS or not _about(about, read["rest"]):
            continue
        where = {"row": place, "condition": str(number), "question": question, "text": answer}
        facts.append(Fact(read["name"], {"condition": read["scope"]}, where, document=f"{NAME}/{row.get('id')}"))
    return facts


def _about(asked: str, said: str) -> bool:
    """Whether a sentence has every word that the question asks about."""
    return set(spellings.tokens(asked)) <= set(spellings.tokens(said))


def _candidate(question: str, gold: Fact, lure: Fact, facts: list[Fact], wording: Wording) -> Candidate:
    text = gold.where["text"]
    others = [fact for fact in facts if fact not in (gold, lure)]
    return Candidate(
        source=NAME,
        dimension="condition",
        question=wording(NAME, "who_question", rest=text[len(gold.value) + 1 : -1]),
        g=text,
        s=lure.where["text"],
        gold=gold,
        lure=lure,
        distractors=(others,),
        attribute=question,
        cluster=question,
        question_type="who",
        license="MIT (CondAmbigQA)",
        method="extraction",
        split="condition",
    )


ORIGIN = Origin(NAME, "condambigqa", "Apocalypse-AGI-DAO/CondAmbigQA", (("", "test"),), candidates)
