"""What the passages themselves say of names: who is a person and of which gender, what a title is, how often it occurs.

An article's first sentence says what its title is ("X is an American actor"), and its pronouns of which gender a
person is. Common given names stand in `names.toml` besides, with well-known places.
"""

import re
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from scope import matching, spellings
from scope.pool.ragstress.drafts import Draft

_IS = re.compile(r" (?:is|was|are|were) (?:also |either )?(?:an?|the|one of the) (?P<what>[^,.;:()]+)", re.IGNORECASE)
#: What ends the noun phrase after "is a".
_AFTER = re.compile(
    r"\b(?:of|in|on|at|by|for|from|to|with|and|or|that|which|who|whose|where|based|located|situated|born|written|known"
    r"|best|created|directed|produced|released|starring|formed|set|published|recorded|near|between|as|about|used)\b"
)
_BORN = re.compile(r"\((?:[^()]*\b)?(?:born\b|\d{1,2} [A-Z][a-z]+ \d{3,4}|[A-Z][a-z]+ \d{1,2}, \d{3,4})[^()]*\)")
#: Where a text says that a name is a person's: dates of birth, and who made or played something.
_PERSON = re.compile(
    r"(?:\b(?:directed|written|created|composed|portrayed|played|sung|painted|performed) by |\b(?:actor|actress|singer"
    r"|author|writer|director|composer|novelist|poet|president|President|player|guitarist|comedian) )"
    r"(?P<first>[A-Z][a-z]+) (?:[A-Z]\. )?(?P<last>[A-Z][a-z]+)"
    r"|\b(?P<born>[A-Z][a-z]+) (?:[A-Z][\w.]* )?[A-Z][a-z]+ "
    r"\((?:born|[A-Z][a-z]+ \d{1,2}, \d{4}|\d{1,2} [A-Z][a-z]+ \d{4})"
)
_LORDS = ("Sir", "King", "Prince", "Lord", "Pope", "Emperor", "Mr", "Duke")
_LADIES = ("Dame", "Queen", "Princess", "Lady", "Empress", "Mrs", "Miss", "Duchess")
_HE, _SHE = re.compile(r"\b(?:he|his|him)\b", re.IGNORECASE), re.compile(r"\b(?:she|her|hers)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Lexicon:
    """What was learned. names: first name -> `m`, `f` or empty; types: a title's normal form -> the noun that it is.

    roles: the nouns that persons are. counts: normal form -> how often it is an answer or a title.
    """

    names: Mapping[str, str] = field(default_factory=dict)
    types: Mapping[str, str] = field(default_factory=dict)
    roles: frozenset[str] = frozenset()
    counts: Mapping[str, int] = field(default_factory=dict)

    def popularity(self, answer: str) -> int:
        """How often an answer occurs, in powers of two."""
        return self.counts.get(spellings.normal(answer), 0).bit_length()

    def gender(self, name: str) -> str:
        """`m` or `f` by a person's title or first name; empty if it is not known."""
        first = (name.split() or [""])[0].rstrip(".")
        titled = "m" if first in _LORDS else "f" if first in _LADIES else ""
        return titled or self.names.get(first, "")


def learned(drafts: Iterable[Draft]) -> Lexicon:
    """The lexicon of all passages and answers."""
    pronouns: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    types: dict[str, Counter[str]] = defaultdict(Counter)
    counts: Counter[str] = Counter()
    roles: Counter[str] = Counter()
    lasts: dict[str, set[str]] = defaultdict(set)
    for draft in drafts:
        counts.update({spellings.normal(answer) for answer in draft.answers})
        for passage in draft.passages:
            title = re.sub(r" \(.*", "", passage.title)
            if title and matching.is_chinese(title):
                continue
            for found in _PERSON.finditer(passage.text()):
                if found["born"]:
                    pronouns[found["born"]]
                else:
                    lasts[found["first"]].add(found["last"])
            counts[spellings.normal(title)] += 1
            first = next((s for s in passage.sentences if s.startswith(title.split(" ")[0])), "") if title else ""
            said = _IS.search(first)
            if not said:
                continue
            noun = _AFTER.split(said["what"], maxsplit=1)[0].split()
            if noun:
                types[spellings.normal(title)][singular(noun[-1])] += 1
            if _BORN.search(first[: said.start() + 1]) and re.fullmatch(r"(?:[A-Z][\w.'’-]*\.? ?){2,4}", title):
                text = passage.text()
                roles.update([singular(noun[-1])] if noun else [])
                gender = pronouns[title.split()[0]]
                gender[0] += bool(_HE.search(text)) and not _SHE.search(text)
                gender[1] += bool(_SHE.search(text)) and not _HE.search(text)
    for name, others in lasts.items():
        if len(others) > 1:  # one alone may be a company
            pronouns[name]
    listed = tomllib.loads((Path(__file__).parent / "names.toml").read_text("utf-8"))
    names = {name: "" if he == she else "m" if he > she else "f" for name, (he, she) in pronouns.items()}
    common = {title: found.most_common(1)[0][0] for title, found in types.items()}
    for noun, places in listed["places"].items():
        common |= {spellings.normal(" ".join(place.split())): noun for place in places.split(";")}
    names |= {name: gender for gender, given in listed["given"].items() for name in given.split()}
    return Lexicon(names, common, frozenset(role for role, n in roles.items() if n > 1), counts)


def singular(noun: str) -> str:
    """A noun in lower case without the ending of a plural, as far as spelling tells."""
    word = re.sub(r"[’']s$|\W+$", "", noun.casefold())
    if word.endswith("ies") and len(word) > 4:
        return word if word == "series" else f"{word[:-3]}y"
    return word[:-1] if word.endswith("s") and not word.endswith(("ss", "us", "is")) else word
