"""Checks on finished items, each a named function from an item to sentences about its faults.

A sentence is `field: what was found; what to do`. Whole-pool checks look at all items at once.
`findings` runs everything; none of the checks knows how an item was made, so they hold for authored
items, for public ones and for a user's own. Numbers, units and abbreviations are compared in the one
form of `quantities`. Where a row carries complete prompts and no contexts, its contexts are what its
prompts add to the clean one.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from scope.answers import parse_answer, same_answer
from scope.conditions import Condition
from scope.items import Item, as_row, item_faults, normalised_question
from scope.pool.naming import (
    both_accepted,
    contexts,
    exact,
    letters,
    names_answer,
    names_option,
    option_letter,
    option_text,
    surname,
    truth,
)
from scope.pool.overlap import QUOTED_WORD, split_overlap
from scope.pool.plain import text_is_bounded, text_is_plain
from scope.pool.quantities import holds, numbers, same_text, tokens, without_article
from scope.pool.signals import content_words, value_forms
from scope.pool.words import NUMBER_LIKE, NUMBER_WORDS, YES_NO

__all__ = ["NUMBER_LIKE", "NUMBER_WORDS", "YES_NO", "check_items", "findings", "holds", "numbers", "split_overlap"]

#: Words and characters of a context over those of another of the same item, at most (and its inverse).
LENGTH_RATIO = 2.0


@dataclass(frozen=True, slots=True)
class Finding:
    """One fault. `where`: file:line of the row or empty; `field`: the column, or `pool`."""

    item_id: str
    where: str
    check: str
    field: str
    sentence: str

    def __str__(self) -> str:
        return ": ".join(part for part in (self.item_id, self.check, self.field, self.sentence) if part)


# ---------------------------------------------------------------- item checks


def schema(item: Item) -> list[str]:
    """The row is valid as `items.item_faults` sees it."""
    return item_faults(as_row(item))


def prompts_hold_the_item(item: Item) -> list[str]:
    """The four complete prompts, where a row has them, hold question and options; and each its own context alone."""
    prompts = {f"prompt_{condition}": item.prompt(condition) for condition in Condition}
    if not any(prompts.values()):
        return []
    faults = [f"{name}: is missing beside the others; give all four or none" for name, p in prompts.items() if not p]
    parts = [("question", item.question), *((f"option {option_letter(i)}", o) for i, o in enumerate(item.options))]
    given = {f"prompt_{c}": " ".join(item.context(c).split()) for c in Condition}
    for name, prompt in prompts.items():
        folded = " ".join(prompt.split())
        missing = [what for what, part in parts if " ".join(part.split()) not in folded]
        if prompt and missing:
            faults.append(f"{name}: does not hold the {missing[0]}; all four conditions share question and options")
        if prompt and given[name] not in folded:
            faults.append(f"{name}: does not hold its own context; write the prompt with it")
        others = {other for other, text in given.items() if other != name and text and text not in given[name]}
        for other in sorted(other for other in others if given[other] in folded):
            faults.append(f"{name}: holds the context of {other}; each prompt has its own context only")
    return faults


def gold_parseable(item: Item) -> list[str]:
    """Our own parser reads the closing sentence with the gold answer as the gold answer."""
    n_options = len(item.options) or None
    faults = []
    for name, value in (("gold", item.gold), ("wrong", item.wrong)):
        read = parse_answer(f"The final answer is {value}.", item.answer_type, n_options)
        bare = parse_answer(value, item.answer_type, n_options)
        if read.status != "ok" or bare.status != "ok" or not same_answer(read, bare, item.answer_type):
            faults.append(f"{name}: {value!r} is not read back from a closing sentence; write the bare value")
    return faults


def wrong_is_wrong(item: Item) -> list[str]:
    """The wrong answer is not the gold in another form, as a number or letter or in the text of its option."""
    n_options = len(item.options) or None
    gold, wrong = (parse_answer(v, item.answer_type, n_options) for v in (item.gold, item.wrong))
    if gold.status == wrong.status == "ok" and same_answer(gold, wrong, item.answer_type):
        return [f"wrong: {item.wrong!r} equals the gold answer {item.gold!r}; give a wrong one"]
    if item.answer_type != "multiple_choice":
        return []
    right, lure = option_text(item, item.gold), option_text(item, item.wrong)
    if both_accepted(right, lure) or both_accepted(lure, right):
        return [f"wrong: {lure!r} would be accepted for the gold {right!r}; choose another option as the wrong answer"]
    return []


def wrong_plausible(item: Item) -> list[str]:
    """A wrong number has the gold's decimals and sign, and its order of magnitude."""
    gold, wrong = (exact(v) if item.answer_type == "numeric" else None for v in (item.gold, item.wrong))
    if gold is None or wrong is None:
        return []
    written = [re.fullmatch(r"[-+]?[\d,]*\.?(\d*)", value) for value in (item.gold, item.wrong)]
    decimals = [len(w[1]) if w and "." in w[0] else 0 for w in written]
    if all(written) and decimals[0] != decimals[1]:
        return [f"wrong: {item.wrong} has other decimals than the gold {item.gold}; round it alike"]
    if wrong < 0 <= gold or (abs(wrong - gold) > 9 and not abs(gold) <= 10 * abs(wrong) <= 100 * abs(gold)):
        return [f"wrong: {item.wrong} is not a plausible value beside the gold {item.gold}; give a nearer one"]
    return []


def options_distinct(item: Item) -> list[str]:
    """No two options say the same, as words or as numbers, and none is another option's letter."""
    faults = []
    for place, option in enumerate(item.options):
        for other in item.options[:place]:
            if same_text(option, other):
                faults.append(f"options: {option!r} and {other!r} say the same; make them differ")
        stripped = option.strip(" .()")
        if (
            len(stripped) == 1
            and stripped != option_letter(place)
            and "A" <= stripped <= option_letter(len(item.options) - 1)
        ):
            faults.append(f"options: {option!r} reads as the letter of another option; write it out")
    return faults


def irrelevant_is_silent(item: Item) -> list[str]:
    """The irrelevant context bears no answer: no number, option letter or text, yes or no, gold or wrong."""
    text = contexts(item)["context_irrelevant"]
    words = set(re.findall(r"[a-z]+", text.casefold()))
    faults = []
    if digit := re.search(r"\d+", text):
        faults.append(f"holds the number {digit[0][:20]}")
    if said := sorted(words & (NUMBER_WORDS.keys() | NUMBER_LIKE)) or sorted(map(str, numbers(text))):
        faults.append(f"holds the number word {said[0]!r}" if said[0].isalpha() else f"names the number {said[0][:20]}")
    if said := sorted(words & YES_NO.keys()):
        faults.append(f"holds {said[0]!r}")
    if said := sorted(letters(text) - {"I"}):
        faults.append(f"names the option letter {said[0]!r}")
    faults += [f"holds the option {option!r}" for option in item.options if names_option(text, option)]
    faults += [f"holds the {n} answer" for n in ("gold", "wrong") if names_answer(text, item, getattr(item, n))]
    return [f"context_irrelevant: {fault}; write it without" for fault in faults]


_NAMES = frozenset(("usa", "uk", "eu", "un", "ussr", "uae", "nyc"))


def irrelevant_is_elsewhere(item: Item) -> list[str]:
    """An unrelated irrelevant context shares no content word, name or abbreviation with question and options."""
    if item.irrelevant_kind != "unrelated":
        return []
    shared = _shared(" ".join([item.question, *item.options]), contexts(item)["context_irrelevant"])
    return [f"context_irrelevant: shares {shared[0]!r} with the question; speak of something else"] if shared else []


def irrelevant_is_undecided(item: Item) -> list[str]:
    """An irrelevant context about the question shares no content word with an option, and quotes the question alone."""
    if item.irrelevant_kind != "related":
        return []
    text = contexts(item)["context_irrelevant"]
    faults = [f"shares {word!r} with the options" for word in _shared(" ".join(item.options), text)[:1]]
    asked = set(re.findall(r"\w+", item.question.casefold()))
    strange = [word for word in QUOTED_WORD.findall(text) if word.casefold() not in asked]
    faults += [f"quotes {word!r}, which is not in the question" for word in strange[:1]]
    return [f"context_irrelevant: {fault}; write it without" for fault in faults]


def _shared(about: str, text: str) -> list[str]:
    return sorted((content_words(about) & content_words(text)) | (_short_names(about) & _short_names(text)))


def _short_names(text: str) -> set[str]:
    short = re.findall(r"(?<![\w.])(?:[A-Z]\.){2,}|\b[A-Z]{2,}\b", text)
    return {name for word in short for name in tokens(word)} | (_NAMES & set(tokens(text)))


def contexts_one_sided(item: Item) -> list[str]:
    """The misleading context names the wrong answer and not the gold, nor part of its name; the correct the reverse."""
    faults = []
    for field, says, hides in (("context_misleading", "wrong", "gold"), ("context_correct", "gold", "wrong")):
        if not (text := contexts(item)[field]):
            continue
        hidden, said = getattr(item, hides), getattr(item, says)
        shown = text
        if item.options and (part := surname(option_text(item, hidden))) and part in option_text(item, said):
            shown = re.sub(rf"(?<!\w){re.escape(part)}(?!\w)", " ", text)  # both have it
        if names_answer(shown, item, hidden):
            faults.append(f"{field}: holds the {hides} answer; name the {says} one only")
        if not names_answer(text, item, said):
            faults.append(f"{field}: does not hold the {says} answer; name it")
    return faults


def contexts_matched(item: Item) -> list[str]:
    """Misleading and correct context are the same text once the value is masked."""
    given = contexts(item)
    misleading, correct = given["context_misleading"], given["context_correct"]
    if not misleading or not correct:
        return []
    wrong, gold = (value_forms(v, item.options) for v in (item.wrong, item.gold))
    masked = [(_masked(misleading, wrong[form]), _masked(correct, gold[form])) for form in wrong]
    if any("\0" in one and one == other for one, other in masked):
        return []
    words = _masked_words(misleading, item, item.wrong)
    if "\0" in words and words == _masked_words(correct, item, item.gold):
        return []
    return ["context_misleading: is not the correct context with only the value exchanged; use one phrasing for both"]


def _masked(text: str, value: str) -> str:
    return re.sub(rf"(?<!\w){re.escape(value)}(?!\w)", "\0", text)


def _masked_words(text: str, item: Item, value: str) -> list[str]:
    """The tokens of a text with every naming of an answer, other than by letter alone, masked."""
    if item.answer_type == "boolean":
        named = [[word] for word, meaning in YES_NO.items() if meaning == truth(value)]
    else:
        named = [without_article(tokens(option_text(item, value) if item.options else value))]
    words, masked, at = tokens(text), [], 0
    while at < len(words):
        hit = next((part for part in named if part and words[at : at + len(part)] == part), None)
        masked.append("\0" if hit else words[at])
        at += len(hit) if hit else 1
    return masked


def contexts_differ(item: Item) -> list[str]:
    """No two of the three contexts are the same text but for case, spacing and punctuation."""
    given = [(field, tokens(text)) for field, text in contexts(item).items() if text]
    return [
        f"{field}: says the same as {other}; exchange the value or write another text"
        for place, (field, words) in enumerate(given)
        for other, others in given[:place]
        if words == others
    ]


def contexts_similar_length(item: Item) -> list[str]:
    """The three contexts have similar lengths, in words and in characters."""
    texts = [text for text in contexts(item).values() if text]
    for unit, sizes in _sizes(texts).items():
        if sizes and max(sizes) > LENGTH_RATIO * min(sizes):
            return [f"contexts: have {min(sizes)} to {max(sizes)} {unit}; keep the ratio under {LENGTH_RATIO}"]
    return []


def of_similar_length(texts: Sequence[str]) -> bool:
    """Whether texts pass `contexts_similar_length` beside each other."""
    return all(max(sizes) <= LENGTH_RATIO * min(sizes) for sizes in _sizes(texts).values())


def _sizes(texts: Sequence[str]) -> dict[str, list[int]]:
    return {"words": [len(t.split()) for t in texts], "characters": [len(t) for t in texts]}


ITEM_CHECKS: tuple[Callable[[Item], list[str]], ...] = (
    schema,
    text_is_bounded,
    text_is_plain,
    prompts_hold_the_item,
    gold_parseable,
    wrong_is_wrong,
    wrong_plausible,
    options_distinct,
    irrelevant_is_silent,
    irrelevant_is_elsewhere,
    irrelevant_is_undecided,
    contexts_one_sided,
    contexts_matched,
    contexts_differ,
    contexts_similar_length,
)


# ---------------------------------------------------------------- pool checks


def no_duplicates(items: Sequence[Item]) -> list[Finding]:
    """Ids are unique, and so are normalised questions together with their options."""
    found = []
    for field in ("id", "question"):
        seen: dict[object, str] = {}
        for item in items:
            key: object = item.id
            if field == "question":
                key = (normalised_question(item), tuple(sorted(" ".join(tokens(option)) for option in item.options)))
            if key in seen:
                sentence = f"{getattr(item, field)[:80]!r} is also that of {seen[key]}; leave one of them out"
                found.append(Finding(item.id, item.where, "no_duplicates", field, sentence))
            seen.setdefault(key, item.id)
    return found


def _gold_groups(items: Sequence[Item]) -> dict[str, tuple[list[str], list[Item]]]:
    """Name -> (values, items): yes/no, and multiple choice by the number of options."""
    groups: dict[str, tuple[list[str], list[Item]]] = {}
    for item in items:
        if item.answer_type == "boolean":
            groups.setdefault("yes/no", (["yes", "no"], []))[1].append(item)
        elif item.answer_type == "multiple_choice":
            values = [option_letter(i) for i in range(len(item.options))]
            groups.setdefault(f"{len(values)} options", (values, []))[1].append(item)
    return groups


def _gold(item: Item) -> str:
    return item.gold if item.options else truth(item.gold)


def golds_balanced(items: Sequence[Item]) -> list[Finding]:
    """Gold letters (by number of options) and yes/no stand within four standard errors of even."""
    found = []
    for name, (values, members) in _gold_groups(items).items():
        counts, total, share = Counter(map(_gold, members)), len(members), 1 / len(values)
        allowed = max(2.0, 4 * (total * share * (1 - share)) ** 0.5)
        for value in values:
            if abs(counts[value] - total * share) > allowed:
                sentence = f"gold {value!r} stands {counts[value]} times in {total} items ({name}); balance them"
                found.append(Finding("", "", "golds_balanced", "pool", sentence))
    return found


def channels_independent_of_gold(items: Sequence[Item]) -> list[Finding]:
    """In each channel every gold letter, yes and no stands within four standard errors of its share in the pool."""
    found = []
    for name, (values, members) in _gold_groups(items).items():
        shares = Counter(map(_gold, members))
        cells = Counter((item.channel, _gold(item)) for item in members)
        for channel, total in Counter(item.channel for item in members).items():
            for value in values:
                share = shares[value] / len(members)
                allowed = 1 + max(2.0, 4 * (total * share * (1 - share)) ** 0.5)
                if abs((count := cells[channel, value]) - total * share) > allowed:
                    sentence = f"gold {value!r} stands {count} times in {total} items of {channel} ({name}); mix them"
                    found.append(Finding("", "", "channels_independent_of_gold", "pool", sentence))
    return found


POOL_CHECKS: tuple[Callable[[Sequence[Item]], list[Finding]], ...] = (
    no_duplicates,
    golds_balanced,
    channels_independent_of_gold,
)


def findings(items: Sequence[Item]) -> list[Finding]:
    """Every fault of a pool, item by item and then of the whole. Empty if there is none."""
    return [*_item_findings(items), *(finding for check in POOL_CHECKS for finding in check(items))]


def _item_findings(items: Sequence[Item]) -> Iterator[Finding]:
    for item in items:
        for check in ITEM_CHECKS:
            faults = check(item)
            for fault in faults:
                field, _, sentence = fault.partition(": ")
                yield Finding(item.id, item.where, check.__name__, field, sentence)
            if faults and check in (schema, text_is_bounded):  # the other checks rely on a valid row of sane size
                break


def check_items(items: Sequence[Item]) -> list[str]:
    """The findings as text: `item id: check: field: what was found; what to do`. Empty if there is none."""
    return [str(finding) for finding in findings(items)]


def counts_by_check(items: Sequence[Item]) -> dict[str, int]:
    """Check -> findings, of the checks that have any, in the order they are run."""
    return dict(Counter(finding.check for finding in findings(items)))
