"""Drafts -> items: target, passages beside it, foil, edit and layouts, and why there is none (Sec. 3.1, App. D)."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from scope import evidence, matching
from scope.artifacts import fingerprint
from scope.evidence import Document, EvidenceItem
from scope.pool.questions import PoolError
from scope.pool.ragstress import checks, foils, mentions, targets
from scope.pool.ragstress.drafts import Counts, Draft, Excluded, Passage, counted, joined
from scope.pool.ragstress.foils import Answer, Foil
from scope.pool.ragstress.lexicon import Lexicon, learned
from scope.pool.ragstress.passages import opening
from scope.pool.ragstress.sources import ORIGINS, SOURCES, drafts_of
from scope.recipe import nearest
from scope.schema import ReleaseConfig


def build(
    data_dir: str | Path | None, seed: int, settings: ReleaseConfig
) -> tuple[list[EvidenceItem], dict[str, Mapping[str, int]]]:
    """The items of the named sources, and how many rows and questions each left out for which reason.

    settings: `release` of a recipe; without sources, all of them. Follows from the arguments and the sources' rows
    alone. Every item passes every check. Raises PoolError for an unknown source, or one without rows.
    """
    names = settings.sources or list(SOURCES)
    if unknown := [name for name in names if name not in SOURCES]:
        raise PoolError(f"release.sources={unknown[0]} is no source; {nearest(unknown[0], list(SOURCES))}")
    if settings.slot > settings.distractors + 1:
        raise PoolError(f"release.slot={settings.slot} is no place among {settings.distractors + 1} passages")
    left_out: dict[str, Mapping[str, int]] = {}
    drafts: dict[str, list[Draft]] = {}
    for name in SOURCES:
        if name in names:
            drafts[name], left_out[name] = drafts_of(ORIGINS[name], data_dir)
    everything = [draft for each in drafts.values() for draft in each]
    lexicon = learned(everything)
    known = foils.library(everything, lexicon)
    pool = Others(everything, settings)
    items: list[EvidenceItem] = []
    seen: set[tuple[str, ...]] = set()
    for name, members in drafts.items():
        made, reasons = _made(members, known, lexicon, pool, seed, settings, seen)
        items += made
        left_out[name] = dict(sorted({**left_out[name], **reasons}.items()))
    items.sort(key=lambda item: (SOURCES.index(item.source), item.id))
    if found := checks.check_items(items):
        raise PoolError(f"the items fail their checks: {found[0]} (and {len(found) - 1} more)")
    return items, left_out


def _made(
    drafts: Sequence[Draft],
    known: Sequence[Answer],
    lexicon: Lexicon,
    pool: "Others",
    seed: int,
    settings: ReleaseConfig,
    seen: set[tuple[str, ...]],
) -> tuple[list[EvidenceItem], Counts]:
    """A source's items in the order of their hashes, up to `per_source`."""
    items: list[EvidenceItem] = []
    reasons: list[str] = []
    for draft in sorted(drafts, key=lambda draft: fingerprint([seed, "order", draft.id])):
        if settings.per_source and len(items) == settings.per_source:
            reasons.append("question: its source has all the items it may have")
            continue
        try:
            item = item_of(draft, known, lexicon, pool, seed, settings)
        except Excluded as error:
            reasons.append(str(error))
            continue
        question = ("question", " ".join(matching.words(item.question)))
        pair = ("pair", item.layouts["original"].clean, item.reference) if item.layouts else question
        if {question, pair} & seen:
            reasons.append("question: repeats another item's question, or its target and reference")
        elif faults := evidence.item_faults(item):
            reasons.append(f"item: fails the schema's rules ({faults[0].partition(':')[0]})")
        elif failed := next((check.__name__ for check in checks.ITEM_CHECKS if check(item)), ""):
            reasons.append(f"item: fails {failed}")
        else:
            items.append(item)
            seen |= {question, pair}
    return items, counted(reasons)


def item_of(
    draft: Draft, known: Sequence[Answer], lexicon: Lexicon, pool: "Others", seed: int, settings: ReleaseConfig
) -> EvidenceItem:
    """One question's item; Excluded says why there is none."""
    if draft.options:
        return closed_book(draft, seed)
    if not draft.passages:
        raise Excluded("question: has no passages")
    target = targets.chosen(draft, settings.target_words)
    answers = mentions.usable(draft.answers)
    clean = joined(target.sentences, draft.language)
    own = _own(draft, target, settings)
    foil = foils.choose(draft, target, known, lexicon, seed, [draft.question, clean])
    kept = [
        each for each in own if not names_of(each, draft.language, answers, target.reference, foil, settings.titles)
    ]
    beside = pool.filled(kept, draft, target, foil, seed)
    return finished(draft, target, foil, beside, settings)


def finished(
    draft: Draft, target: targets.Target, foil: Foil, beside: Sequence[Passage], settings: ReleaseConfig, slot: int = 0
) -> EvidenceItem:
    """The item of a question whose target, foil and other passages are chosen. slot: the target's; 0: the setting's."""
    titles, title = settings.titles, draft.passages[target.place].title
    if titles and mentions.named(title, [*draft.answers, target.reference, foil.text, *foil.spellings]):
        raise Excluded("target: its title names the reference or the foil")
    provenance = {
        "row": draft.where,
        "passage": target.place + 1,
        "title": title,
        "sentence": target.k + 1,
        "sentences": len(target.sentences),
        "asked": foil.kind.asked,
        "form": foil.kind.form,
        "foil_from": foil.origin,
        "beside": [passage.title for passage in beside],
        **draft.extra,
    }
    shown = {"title": title if titles else "", "score": draft.passages[target.place].score}
    aliases = (each for each in mentions.usable(draft.answers) if each.casefold() != target.reference.casefold())
    return EvidenceItem(
        id=draft.id,
        source=draft.source,
        language=draft.language,
        question=draft.question,
        reference=target.reference,
        foil=foil.text,
        aliases=tuple(aliases),
        foil_aliases=foil.spellings,
        options=draft.options,
        documents=tuple(
            Document(each.text(draft.language), each.title if titles else "", each.score) for each in beside
        ),
        slot=slot or settings.slot or len(beside) + 1,
        layouts=targets.layouts(target, foil.text, draft.language),
        target={name: value for name, value in shown.items() if value not in (None, "")},
        answer_kind=foil.kind.name,
        license=draft.license,
        provenance=provenance,
    )


def closed_book(draft: Draft, seed: int) -> EvidenceItem:
    """An item without evidence: a question with options, whose foil is a provided distractor that a hash chooses."""
    reference = draft.answers[0]
    return EvidenceItem(
        id=draft.id,
        source=draft.source,
        language=draft.language,
        question=draft.question,
        reference=reference,
        foil=option_foil(draft, seed),
        aliases=draft.answers[1:],
        options=draft.options,
        answer_kind="option",
        license=draft.license,
        provenance={"row": draft.where, "form": "option", "foil_from": "options", **draft.extra},
    )


def option_foil(draft: Draft, seed: int, taken: Iterable[str] = ()) -> str:
    """The provided distractor that serves as foil: the draft's own, else by hash among those that may."""
    if draft.answers[0] not in draft.options:
        raise Excluded("options: the reference is none of them")
    if len({matching.words(option) for option in draft.options}) < len(draft.options):
        raise Excluded("options: two of them are equal after normalisation")
    free = [
        option
        for option in ([draft.foil] if draft.foil else draft.options)
        if not matching.overlap([option], draft.answers) and not any(mentions.named(text, [option]) for text in taken)
    ]
    if not free:
        raise Excluded("options: every distractor holds the reference, is held by it, or stands in the target")
    return min(free, key=lambda option: fingerprint([seed, "foil", draft.id, option]))


# ---------------------------------------------------------------- passages beside the target


def _own(draft: Draft, target: targets.Target, settings: ReleaseConfig) -> list[Passage]:
    """The question's own passages beside the target, cut to their cap; none that repeats a sentence."""
    seen = set(target.sentences)
    found = []
    for place, passage in enumerate(draft.passages):
        sentences = opening(passage.sentences, settings.distractor_words, draft.language)
        if place != target.place and sentences and not seen & set(sentences):
            found.append(Passage(sentences, passage.title, passage.score))
            seen |= set(sentences)
    return found


def names_of(
    passage: Passage, language: str, answers: Sequence[str], reference: str, foil: Foil, titles: bool = True
) -> str:
    """What a passage names of the reference or the foil, whole or in part; empty if nothing."""
    text = passage.text(language) + (f"\n{passage.title}" if titles else "")
    return (
        mentions.named(text, [*answers, reference, foil.text, *foil.spellings])
        or mentions.partly(text, reference)
        or mentions.partly(text, foil.text)
    )


class Others:
    """The passages of all questions, from which those that are lacking are taken (App. D)."""

    def __init__(self, drafts: Iterable[Draft], settings: ReleaseConfig):
        self.settings = settings
        self.passages: dict[str, list[tuple[str, str, Passage]]] = {}
        seen = set()
        for draft in drafts:
            for number, passage in enumerate(draft.passages):
                cut = Passage(opening(passage.sentences, settings.distractor_words, draft.language), passage.title)
                if cut.sentences and cut.sentences not in seen:
                    seen.add(cut.sentences)
                    self.passages.setdefault(draft.language, []).append((draft.id, f"{draft.id}/{number}", cut))

    def filled(
        self, own: Sequence[Passage], draft: Draft, target: targets.Target, foil: Foil, seed: int
    ) -> list[Passage]:
        """The first of a question's own passages, and after them passages of others up to the number wanted."""
        wanted, found = self.settings.distractors, list(own[: self.settings.distractors])
        answers = mentions.usable(draft.answers)
        listed = self.passages.get(draft.language, [])
        start = int(fingerprint([seed, "beside", draft.id])[:12], 16)
        # A step that shares no factor with the length goes through the whole list once.
        for n in range(len(listed)):
            if len(found) >= wanted:
                break
            owner, _, passage = listed[(start + n * _STEP) % len(listed)]
            taken = {sentence for each in found for sentence in each.sentences} | set(target.sentences)
            if (
                owner != draft.id
                and not taken & set(passage.sentences)
                and not names_of(passage, draft.language, answers, target.reference, foil)
            ):
                found.append(passage)
        if len(found) < wanted:
            raise Excluded("passages: too few that are free of the reference and the foil")
        return found


#: A prime greater than any list of passages that is walked with it.
_STEP = 2_147_483_647
