"""Automated checks of RAG-Stress's items: one function a rule (Sec. 3.1, App. D and F.1).

A check of an item returns what is wrong, as the rest of a sentence, or nothing; a check of a set returns findings. The
datasheet lists them by name with the first line of their docstrings. `check_items` runs them all. They are lexical:
that an edit keeps the queried relation only a person can say (`audit.py`).
"""

from collections import Counter
from collections.abc import Callable, Sequence

from scope import evidence, matching
from scope.evidence import ARMS, ORIGINAL, POSITIONS, EvidenceItem
from scope.pool.ragstress import mentions
from scope.pool.ragstress.kinds import KINDS, form_of
from scope.pool.ragstress.passages import sentences_of
from scope.pool.ragstress.sources import SOURCES
from scope.pool.ragstress.targets import BOUNDS, SENTENCES, same_value
from scope.pool.release import Finding

# ---------------------------------------------------------------- of an item


def schema(item: EvidenceItem) -> str:
    """The item keeps the rules of its schema (`scope.evidence`)."""
    faults = evidence.item_faults(item)
    return faults[0] if faults else ""


def known_source(item: EvidenceItem) -> str:
    """The source and the kind of answer are of the closed sets."""
    for name, value, known in (("source", item.source, SOURCES), ("answer_kind", item.answer_kind, KINDS)):
        if value not in known:
            return f"{name}: unknown {value!r}; use one of {', '.join(known)}"
    return ""


def reference_gone(item: EvidenceItem) -> str:
    """The edited target names the reference under no spelling, whole or in part."""
    for name, layout in item.layouts.items():
        if held := mentions.named(layout.edited, item.references):
            return f"layouts.{name}: the edited text names {held!r}"
        if item.options:
            continue
        if held := mentions.partly(_without(layout.edited, layout.start, layout.foil), item.reference):
            return f"layouts.{name}: the edited text names {held!r}, a part of the reference"
    return ""


def foil_present(item: EvidenceItem) -> str:
    """The edited target names the foil, the clean one does not, nor does the question."""
    for name, layout in item.layouts.items():
        if not matching.contains(layout.edited, [item.foil]):
            return f"layouts.{name}: the edited text does not name {item.foil!r}"
        if held := mentions.named(layout.clean, item.foils):
            return f"layouts.{name}: the clean text names the foil {held!r}"
    held = "" if item.options else mentions.named(item.question, [*item.references, *item.foils])
    return f"the question names {held!r}" if held else ""


def equal_outside(item: EvidenceItem) -> str:
    """Clean and edited target are equal outside the exchanged span, and the edit has a foil for the answer in it."""
    for name, layout in item.layouts.items():
        rest = [
            _without(text, layout.start, span)
            for text, span in ((layout.clean, layout.answer), (layout.edited, layout.foil))
        ]
        if rest[0] != rest[1]:
            return f"layouts.{name}: the two texts differ outside of the edit"
        ends = layout.start + len(layout.answer), layout.start + len(layout.foil)
        if (
            layout.clean[layout.start : ends[0]] != layout.answer
            or layout.edited[layout.start : ends[1]] != layout.foil
        ):
            return f"layouts.{name}: the answer and the foil do not stand where the span says"
    return ""


def relation_kept(item: EvidenceItem) -> str:
    """The answer's sentence is the same in every layout, and differs in its span alone, as far as strings can tell."""
    found = {_sentence(item, name) for name in item.layouts}
    if len(found) > 1:
        return "the sentence around the answer is not the same in every layout"
    spans = {(layout.answer.casefold(), layout.foil.casefold()) for layout in item.layouts.values()}
    return "the layouts exchange different spans" if len(spans) > 1 else ""


def free_distractors(item: EvidenceItem) -> str:
    """No passage beside the target names the reference or the foil, in any spelling."""
    for number, document in enumerate(item.documents, 1):
        held = mentions.named(f"{document.title}\n{document.text}", [*item.references, *item.foils])
        if held and not item.options:
            return f"passage {number} beside the target names {held!r}"
    return ""


def foil_type(item: EvidenceItem) -> str:
    """Foil and reference have one form: a date's or number's precision, a name, a title or a common noun."""
    if item.options:
        return ""
    recorded = str(item.provenance.get("form", ""))
    forms = [form_of(each) for each in (item.reference, item.foil)]
    # At the beginning of a sentence a common noun is written like a name.
    starts = any(item.layouts[name].start == 0 for name in item.layouts)
    if forms[0] == forms[1] or (starts and recorded == "word"):
        return ""
    return f"the reference {item.reference!r} is of the form {forms[0]!r}, the foil {item.foil!r} of {forms[1]!r}"


def foil_is_no_alias(item: EvidenceItem) -> str:
    """The foil is no spelling of the reference, neither holds the other, and they share no distinctive word."""
    for foil in item.foils:
        for reference in item.references:
            if same_value(foil, reference):
                return f"{foil!r} equals {reference!r}, or one holds the other"
    named = item.answer_kind in ("person", "place", "thing") and item.language == "en"
    if named and mentions.shares_word(item.foil, item.reference):
        return f"{item.foil!r} shares a word with the reference {item.reference!r}"
    return ""


def measured_positions(item: EvidenceItem) -> str:
    """All three layouts are there, the answer stands in each one's region, and further on from one to the next."""
    if not item.layouts:
        return ""
    if missing := [name for name in POSITIONS if name not in item.layouts]:
        return f"there is no layout {missing[0]!r}"
    at = [item.layouts[name].at for name in POSITIONS]
    for name, where in zip(POSITIONS, at, strict=True):
        low, high = BOUNDS[name]
        if not low <= where <= high:
            return f"layouts.{name}: the answer stands at {where:.2f}, outside {low:.1f} to {high:.1f}"
    return "" if at[0] < at[1] < at[2] else f"the answer's places {at} are not in order"


def order_kept(item: EvidenceItem) -> str:
    """Every layout holds the same sentences, and those without the answer in the same order."""
    orders = set()
    for name, layout in item.layouts.items():
        sentence = _sentence(item, name)
        rest = (
            layout.clean.replace(sentence, " ", 1) if item.language != "zh" else layout.clean.replace(sentence, "", 1)
        )
        orders.add(" ".join(rest.split()))
    return "" if len(orders) < 2 else "the sentences around the answer are not the same, or not in the same order"


def long_enough(item: EvidenceItem) -> str:
    """The target has at least three sentences."""
    found = {len(sentences_of(layout.clean, item.language)) for layout in item.layouts.values()}
    return f"the target has {min(found)} sentences; {SENTENCES} are needed" if found and min(found) < SENTENCES else ""


def one_language(item: EvidenceItem) -> str:
    """Question, target and the passages beside it are in the item's language."""
    texts = [item.question, *(each.text for each in item.documents)]
    texts += [getattr(layout, arm) for layout in item.layouts.values() for arm in ARMS]
    other = next((text for text in texts if matching.is_chinese(text) != (item.language == "zh")), "")
    return f"{other[:40]!r} is not in the language {item.language}" if other else ""


ITEM_CHECKS: tuple[Callable[[EvidenceItem], str], ...] = (
    schema, known_source, reference_gone, foil_present, equal_outside, relation_kept, free_distractors, foil_type,
    foil_is_no_alias, measured_positions, order_kept, long_enough, one_language,
)  # fmt: skip


def _without(text: str, start: int, span: str) -> str:
    return f"{text[:start]} ◊ {text[start + len(span) :]}"


def _sentence(item: EvidenceItem, name: str) -> str:
    """The sentence around the answer, from the layout in which it stands first."""
    layout = item.layouts[name]
    first = item.layouts.get("beginning", layout)
    last = item.layouts.get("end", layout)
    before = layout.start - first.start
    size = len(last.clean) - (last.start - first.start)
    return layout.clean[before : before + size] if before >= 0 else ""


# ---------------------------------------------------------------- of a set


def unique_ids(items: Sequence[EvidenceItem]) -> list[tuple[str, str]]:
    """No id stands twice."""
    return [(id, f"stands {n} times") for id, n in Counter(item.id for item in items).items() if n > 1]


def repeated_items(items: Sequence[EvidenceItem]) -> list[tuple[str, str]]:
    """No question stands twice, and no target with the same reference."""
    seen: dict[tuple[object, ...], str] = {}
    found = []
    for item in items:
        keys: list[tuple[str, tuple[object, ...]]] = [("question", ("question", matching.words(item.question)))]
        if ORIGINAL in item.layouts:
            keys.append(("target and reference", (item.layouts[ORIGINAL].clean, matching.words(item.reference))))
        for what, key in keys:
            if key in seen:
                found.append((item.id, f"has the {what} of {seen[key]}"))
            seen.setdefault(key, item.id)
    return found


SET_CHECKS: tuple[Callable[[Sequence[EvidenceItem]], list[tuple[str, str]]], ...] = (unique_ids, repeated_items)


def check_items(items: Sequence[EvidenceItem]) -> list[Finding]:
    """Everything that is wrong with items and with the set they make; empty if nothing is."""
    found = [Finding(check.__name__, item.id, what) for item in items for check in ITEM_CHECKS if (what := check(item))]
    return found + [Finding(check.__name__, id, what) for check in SET_CHECKS for id, what in check(items)]
