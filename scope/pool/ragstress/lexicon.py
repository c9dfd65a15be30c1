"""What the passages themselves say of names: who is a person and of which gender, what a title is, how often it occurs.

No list of names comes from outside. An article's first sentence says what its title is ("X is an American actor"), and
its pronouns of which gender a person is.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from scope import spellings
from scope.pool.ragstress.drafts import Draft

_IS = re.compile(
    r" (?:is|was|are|were) (?:also |either )?(?:an?|the|one of the) (?P<what>[^,.;:()]+)", re.IGNORECASE
)
#: What ends the noun phrase after "is a".
_AFTER = re.compile(
    r"\b(?:of|in|on|at|by|for|from|to|with|and|or|that|which|who|whose|where|based|located|situated|born|written|known"
    r"|best|created|directed|produced|released|starring|formed|set|published|recorded|near|between|as|about|used)\b"
)
_BORN = re.compile(r"\((?:[^()]*\b)?(?:born\b|\d{1,2} [A-Z][a-z]+ \d{3,4}|[A-Z][a-z]+ \d{1,2}, \d{3,4})[^()]*\)")
_HE, _SHE = re.compile(r"\b(?:he|his|him)\b", re.IGNORECASE), re.compile(r"\b(?:she|her|hers)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Lexicon:
    """What was learned. names: first name -> `m`, `f` or empty; types: a title's normal form -> the noun that it is.

    counts: normal form -> how often it is an answer or a title.
    """

    names: Mapping[str, str] = field(default_factory=dict)
    types: Mapping[str, str] = field(default_factory=dict)
    counts: Mapping[str, int] = field(default_factory=dict)

    def popularity(self, answer: str) -> int:
        """How often an answer occurs, in powers of two."""
        return self.counts.get(spellings.normal(answer), 0).bit_length()

    def gender(self, name: str) -> str:
        """`m` or `f` by a person's first name; empty if it is not known."""
        return self.names.get(name.split()[0], "") if name.split() else ""


def learned(drafts: Iterable[Draft]) -> Lexicon:
    """The lexicon of all passages and answers."""
    pronouns: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    types: dict[str, Counter[str]] = defaultdict(Counter)
    counts: Counter[str] = Counter()
    for draft in drafts:
        counts.update({spellings.normal(answer) for answer in draft.answers})
        for passage in draft.passages:
            title = re.sub(r" \(.*", "", passage.title)
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
                gender = pronouns[title.split()[0]]
                gender[0] += bool(_HE.search(text)) and not _SHE.search(text)
                gender[1] += bool(_SHE.search(text)) and not _HE.search(text)
    names = {name: "" if he == she else "m" if he > she else "f" for name, (he, she) in pronouns.items()}
    common = {title: found.most_common(1)[0][0] for title, found in types.items()}
    return Lexicon(names, common, counts)


def singular(noun: str) -> str:
    """A noun in lower case without the ending of a plural, as far as spelling tells."""
    word = re.sub(r"[’']s$|\W+$", "", noun.casefold())
    if word.endswith("ies") and len(word) > 4:
        return word if word == "series" else f"{word[:-3]}y"
    return word[:-1] if word.endswith("s") and not word.endswith(("ss", "us", "is")) else word
