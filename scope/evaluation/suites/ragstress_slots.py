"""RAG-Stress by document slot: the whole target as the first, second or last of four passages (App. B and C).

A cell family of its own: a slot is no place in a text, and the two are never mixed.
"""

from dataclasses import replace
from typing import ClassVar

from scope.evaluation.ragstress import panels as tables
from scope.evaluation.ragstress.labels import CLOSED, POLICIES, grid
from scope.evaluation.suites.ragstress import RagStress
from scope.evidence import ARMS, ORIGINAL, Document, EvidenceItem

SLOTS = ("slot1", "slot2", "slot4")
#: Passages beside the target.
OTHERS = 3


class Slots(RagStress):
    """The same rates over three slots of the target, whose text stays as its source has it."""

    name = "ragstress_slots"
    title = "RAG-Stress, document slots"
    places = SLOTS
    cells = (CLOSED, *grid(POLICIES, ARMS, SLOTS))
    words: ClassVar = {
        **tables.WORDS,
        **tables.place_words(("slot 1", "slot 2", "slot 4")),
        **{s: f"slot {s[-1]}" for s in SLOTS},
    }

    def has_every_cell(self, item: EvidenceItem) -> bool:
        return len(item.documents) >= OTHERS and ORIGINAL in item.layouts

    def passages(self, item: EvidenceItem, arm: str, place: str) -> list[Document]:
        four = replace(item, documents=item.documents[:OTHERS])
        return four.passages(arm, ORIGINAL, int(place.removeprefix("slot")))


SUITE = Slots()
