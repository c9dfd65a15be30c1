"""Question + mistake + channel -> item: orders the options and writes the three contexts.

Phrasings, gold letters, wrong letters and the way a multiple-choice value is named go round in exact
seeded rotation, so none of them tells anything about the answer.
"""

import hashlib
import random
import re
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from pathlib import Path

from scope.items import Item
from scope.pool import signals
from scope.pool.checks import holds, of_similar_length
from scope.pool.foils import Mistake
from scope.pool.naming import letters
from scope.pool.questions import Question
from scope.pool.signals import FORMS, Rotation, load_channels, value_forms

#: pool.irrelevant -> the kinds of irrelevant context that go round.
IRRELEVANT = {"related": ("related",), "unrelated": ("unrelated",), "mixed": ("related", "unrelated")}


class Writer:
    """Writes one pool, with the phrasings of its split's bank.

    split: train, dev, eval, or evaluation (which is eval's). phrasings: files of the user's own, beside or
    instead of the built-in ones. irrelevant: related, unrelated or mixed.
    """

    def __init__(self, seed: int, split: str, phrasings: Sequence[Path] = (), irrelevant: str = "related"):
        self.rng = random.Random(f"pool/{seed}/{split}/contexts")
        self.seed, self.bank = seed, "eval" if split == "evaluation" else split
        self.channels = load_channels(self.bank, extra=tuple(phrasings))
        self.kind = Rotation(IRRELEVANT[irrelevant], self.rng)
        self.form = Rotation(FORMS, self.rng)
        self.value = {n: Rotation(c.value, self.rng) for n, c in self.channels.items()}
        self.irrelevant = {
            (n, kind): Rotation(getattr(c, _LIST[kind]), self.rng) for n, c in self.channels.items() for kind in _LIST
        }
        self.gold_place: dict[int, Rotation[int]] = {}
        self.wrong_place: dict[tuple[int, int], Rotation[int]] = {}

    def bears(self, channel: str, question: Question) -> bool:
        """Whether the channel has phrasings of both kinds for this question, and a calculator something to reckon."""
        if channel == "calculator_note" and not re.search(r"\d", " ".join([question.question, *question.options])):
            return False
        return any(self._values(channel, question)) and bool(self._kinds(channel, question))

    def _kinds(self, channel: str, question: Question) -> list[str]:
        """The kinds of irrelevant context that the channel has for this question, of those the pool is to have."""
        return [kind for kind in self.kind.values if any(self._irrelevant(channel, question, kind))]

    def _values(self, channel: str, question: Question) -> Iterator[str]:
        """Value phrasings that do not hold one of the options by themselves."""
        return (p for p in self.channels[channel].value if not any(holds(p, o) for o in question.options))

    def _irrelevant(self, channel: str, question: Question, kind: str) -> Iterator[str]:
        """Irrelevant phrasings of a kind that hold no option.

        An unrelated one shares no content word with question and options; one about the question none with the
        options, and where it quotes the question there is something to quote.
        """
        options = " ".join(question.options)
        barred = signals.content_words(options if kind == "related" else f"{question.question} {options}")
        quotable = kind == "related" and bool(self._about_words(question))
        return (
            phrasing
            for phrasing in getattr(self.channels[channel], _LIST[kind])
            if not barred & _content_words(phrasing)
            and ("{about}" not in phrasing or quotable)
            and not any(holds(phrasing, o) for o in question.options)
        )

    @staticmethod
    @lru_cache(64)
    def _about_words(question: Question) -> list[str]:
        answers = [question.gold, *(mistake.value for mistake in question.mistakes)]
        return signals.about_words(question.question, [*question.options, *answers])

    def _about(self, question: Question) -> list[str]:
        """What may be quoted of a question: two of its most telling words or, where those make a context too long, one.

        Which of them is drawn by the question's id.
        """
        rng = random.Random(f"pool/{self.seed}/about/{item_id(question)}")
        words = signals.telling_words(question.question, self._about_words(question))
        told = sorted(rng.sample(words, min(2, len(words))), key=words.index)
        return [" and ".join(f'"{word}"' for word in told), f'"{rng.choice(told)}"']

    def item(self, question: Question, mistake: Mistake, channel: str) -> Item:
        """The finished item. The channel must bear the question."""
        gold, wrong, options = question.gold, mistake.value, question.options
        form = "plain"
        if options:
            texts = signals.fits_text_form(wrong, gold)
            form = self.form.next_fitting(set(FORMS) if texts else {"letter"})
            gold, wrong, options = self._placed(question, wrong, channel)
        said = gold if question.answer_type != "numeric" else None
        phrasing = self.value[channel].next_fitting(set(self._values(channel, question)), said)
        if form == "letter" and not _takes_letters(phrasing):
            form = "bracketed"
        kind = self.kind.next_fitting(self._kinds(channel, question), channel)
        contexts = [signals.render(phrasing, value_forms(value, options)[form]) for value in (wrong, gold)]
        irrelevant, context = self._quiet(question, channel, kind, contexts, said)
        return Item(
            id=item_id(question),
            source=question.source,
            provenance=question.provenance,
            topic=question.topic,
            answer_type=question.answer_type,
            question=question.question,
            options=options,
            gold=gold,
            wrong=wrong,
            wrong_class=mistake.wrong_class,
            channel=channel,
            context_misleading=contexts[0],
            context_correct=contexts[1],
            context_irrelevant=context,
            family=question.family,
            tier=question.tier,
            upstream_id=question.upstream_id,
            license=question.license,
            irrelevant_kind=kind,
            bank=self.bank,
            phrasing=signals.phrasing_id(phrasing),
            irrelevant_phrasing=signals.phrasing_id(irrelevant),
        )

    def _quiet(
        self, question: Question, channel: str, kind: str, contexts: Sequence[str], said: str | None
    ) -> tuple[str, str]:
        """The irrelevant phrasing that is due and its text, of a length like the other contexts' where one is."""
        fits = set(self._irrelevant(channel, question, kind))
        abouts = self._about(question) if any("{about}" in phrasing for phrasing in fits) else [""]
        texts = {p: [signals.render(p, about=about) for about in abouts] for p in fits}
        alike = {p: [text for text in given if of_similar_length([text, *contexts])] for p, given in texts.items()}
        alike = {p: given for p, given in alike.items() if given}
        phrasing = self.irrelevant[channel, kind].next_fitting(alike.keys() or fits, said)
        return phrasing, alike.get(phrasing, texts[phrasing][-1:])[0]

    def _placed(self, question: Question, wrong: str, channel: str) -> tuple[str, str, tuple[str, ...]]:
        """Gold letter, wrong letter, options.

        Letters go in turn: gold letters exactly balanced, wrong letters balanced for each gold letter, both
        evenly over the channels and over the families or sources.
        Options that speak of one another keep their order, and take no turn.
        """
        gold, options = question.gold, question.options
        if question.fixed_order:
            return letter(options.index(gold)), letter(options.index(wrong)), options
        n, origin = len(options), ("origin", question.family or question.source)
        place = self.gold_place.setdefault(n, Rotation(range(n), self.rng)).next_fitting(range(n), channel, origin)
        free = [i for i in range(n) if i != place]
        lure = self.wrong_place.setdefault((n, place), Rotation(free, self.rng)).next_fitting(free, channel, origin)
        rest = sorted(option for option in options if option not in (gold, wrong))
        self.rng.shuffle(rest)
        placed = tuple(gold if i == place else wrong if i == lure else rest.pop() for i in range(n))
        return letter(place), letter(lure), placed


#: Kind of irrelevant context -> the list of a channel that has it.
_LIST = {"related": "irrelevant", "unrelated": "unrelated"}


@cache
def _takes_letters(phrasing: str) -> bool:
    """Whether even the letter A is no article there; if not, all letters stand in brackets, lest they tell anything."""
    return letters(signals.render(phrasing, "A")) - {"I"} == {"A"}


@cache
def _content_words(phrasing: str) -> set[str]:
    return signals.content_words(phrasing.replace("{about}", " "))


def letter(place: int) -> str:
    return chr(ord("A") + place)


def item_id(question: Question) -> str:
    """Source (or family and tier) and a hash of the question and its options, whatever their order."""
    content = "\n".join([question.question, *sorted(question.options)])
    name = f"{question.family}-{question.tier}" if question.family else question.source
    return f"{name}-{hashlib.sha256(content.encode()).hexdigest()[:12]}"
