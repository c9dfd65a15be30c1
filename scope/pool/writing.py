"""Question + mistake + channel -> item: orders the options and writes the three contexts.

Phrasings, gold letters, wrong letters and the way a multiple-choice value is named go round in exact
seeded rotation, so none of them tells anything about the answer.
"""

import hashlib
import random
import re
from collections.abc import Sequence
from pathlib import Path

from scope.items import Item
from scope.pool import signals
from scope.pool.checks import holds
from scope.pool.foils import Mistake
from scope.pool.questions import Question
from scope.pool.signals import FORMS, Rotation, load_channels, value_forms


class Writer:
    """Writes one pool. `phrasings`: files of the user's own, beside or instead of the built-in ones."""

    def __init__(self, seed: int, split: str, phrasings: Sequence[Path] = ()):
        self.rng = random.Random(f"pool/{seed}/{split}/contexts")
        self.channels = load_channels(extra=tuple(phrasings))
        self.form = Rotation(FORMS, self.rng)
        self.value = {n: Rotation(c.value, self.rng) for n, c in self.channels.items()}
        self.irrelevant = {n: Rotation(c.irrelevant, self.rng) for n, c in self.channels.items()}
        self.gold_place: dict[int, Rotation[int]] = {}
        self.wrong_place: dict[tuple[int, int], Rotation[int]] = {}

    def bears(self, channel: str, question: Question) -> bool:
        """Whether the channel has phrasings of both kinds for this question, and a calculator something to reckon."""
        if channel == "calculator_note" and not re.search(r"\d", " ".join([question.question, *question.options])):
            return False
        return bool(self._values(channel, question) and self._irrelevant(channel, question))

    def _values(self, channel: str, question: Question) -> set[str]:
        """Value phrasings that do not hold one of the options by themselves."""
        phrasings = self.channels[channel].value
        return {phrasing for phrasing in phrasings if not any(holds(phrasing, o) for o in question.options)}

    def _irrelevant(self, channel: str, question: Question) -> set[str]:
        """Irrelevant phrasings that share no content word with the question and hold no option."""
        about = signals.content_words(" ".join([question.question, *question.options]))
        return {
            phrasing
            for phrasing in self.channels[channel].irrelevant
            if not about & signals.content_words(phrasing) and not any(holds(phrasing, o) for o in question.options)
        }

    def item(self, question: Question, mistake: Mistake, channel: str) -> Item:
        """The finished item. The channel must bear the question."""
        gold, wrong, options = question.gold, mistake.value, question.options
        form = "plain"
        if options:
            texts = signals.fits_text_form(wrong, gold)
            form = self.form.next_fitting(set(FORMS) if texts else {"letter"})
            gold, wrong, options = self._placed(question, wrong, channel)
        said = gold if question.answer_type != "numeric" else None
        phrasing = self.value[channel].next_fitting(self._values(channel, question), said)
        irrelevant = self.irrelevant[channel].next_fitting(self._irrelevant(channel, question), said)
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
            context_misleading=signals.render(phrasing, value_forms(wrong, options)[form]),
            context_correct=signals.render(phrasing, value_forms(gold, options)[form]),
            context_irrelevant=irrelevant,
            family=question.family,
            tier=question.tier,
            upstream_id=question.upstream_id,
            license=question.license,
        )

    def _placed(self, question: Question, wrong: str, channel: str) -> tuple[str, str, tuple[str, ...]]:
        """Gold letter, wrong letter, options.

        Letters go in turn: gold letters exactly balanced, wrong letters balanced for each gold letter, both
        evenly over the channels.
        Options that speak of one another keep their order, and take no turn.
        """
        gold, options = question.gold, question.options
        if question.fixed_order:
            return letter(options.index(gold)), letter(options.index(wrong)), options
        n = len(options)
        place = self.gold_place.setdefault(n, Rotation(range(n), self.rng)).next_fitting(range(n), channel)
        free = [i for i in range(n) if i != place]
        lure = self.wrong_place.setdefault((n, place), Rotation(free, self.rng)).next_fitting(free, channel)
        rest = sorted(option for option in options if option not in (gold, wrong))
        self.rng.shuffle(rest)
        placed = tuple(gold if i == place else wrong if i == lure else rest.pop() for i in range(n))
        return letter(place), letter(lure), placed


def letter(place: int) -> str:
    return chr(ord("A") + place)


def item_id(question: Question) -> str:
    """Source (or family and tier) and a hash of the question and its options, whatever their order."""
    content = "\n".join([question.question, *sorted(question.options)])
    name = f"{question.family}-{question.tier}" if question.family else question.source
    return f"{name}-{hashlib.sha256(content.encode()).hexdigest()[:12]}"
