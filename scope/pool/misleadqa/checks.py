"""Automated checks of MisleadQA's items: one function a rule (Sec. 3.4, App. A.1 and B.1).

A check of an item returns what is wrong, as the rest of a sentence, or nothing; a check of a set returns findings. The
datasheet lists them by name with the first line of their docstrings. `check_items` runs them all.
"""

import itertools
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence

from scope import spellings
from scope.pool.misleadqa.facts import RULES
from scope.pool.release import Finding
from scope.scopes import DIMENSIONS, LETTERS, SOURCES, SPLITS, ScopedItem, cluster_faults, replayed

#: Words that do not count for overlap (*ours*; the paper names no list).
_STOP_WORDS = """
a an the of in on at to for from by with and or as is was were are be been did does do has have had that this which who
whom whose what when where how many much it its s there
"""
STOP_WORDS = frozenset(_STOP_WORDS.split())
METHODS = ("template", "extraction", "restatement")


# ---------------------------------------------------------------- of an item


def structure(item: ScopedItem) -> str:
    """Source, dimension, split, letters and texts are there and known; gold and lure are different options."""
    for name, known in (("source", SOURCES), ("dimension", DIMENSIONS), ("split", SPLITS)):
        if getattr(item, name) not in known:
            return f"{name}: unknown {getattr(item, name)!r}; use one of {', '.join(known)}"
    if {item.gold, item.lure} - set(LETTERS) or item.gold == item.lure:
        return f"gold {item.gold!r} and lure {item.lure!r} are not two letters of A to D"
    empty = [
        name for name in ("question", "g", "s", "f", "cluster", "dependency_group") if not getattr(item, name).strip()
    ]
    if (item.split == "condition") != (item.dimension == "condition"):
        return f"split {item.split!r} does not go with dimension {item.dimension!r}"
    return f"{empty[0]}: is empty" if empty else ""


def distinct_options(item: ScopedItem) -> str:
    """Options A to D differ after normalisation, and none holds another."""
    for (one, a), (other, b) in itertools.combinations(zip(LETTERS, item.options, strict=True), 2):
        if spellings.same(a, b):
            return f"options {one} ({a!r}) and {other} ({b!r}) are equal after normalisation, or one holds the other"
    return ""


def option_types(item: ScopedItem) -> str:
    """Options A to D have one type and precision: money, date, year, number or name."""
    kinds = [spellings.kind(option) for option in item.options]
    if len(set(kinds)) > 1:
        return (
            f"options are of several kinds: {', '.join(f'{o} ({k})' for o, k in zip(item.options, kinds, strict=True))}"
        )
    return ""


def answer_isolation(item: ScopedItem) -> str:
    """Neither gold nor lure stands in the question, in any spelling."""
    found = spellings.mentions_any(item.question, [*expressions(item, "gold"), *expressions(item, "lure")])
    return f"the question holds {found!r}" if found else ""


def contexts_state_answers(item: ScopedItem) -> str:
    """G states the gold answer, S and F the lure; G and S state no other answer."""
    for name, value in (("g", item.gold_text), ("s", item.lure_text), ("f", item.lure_text)):
        if not spellings.mentions(getattr(item, name), value):
            return f"{name} does not state {value!r}"
    if found := spellings.mentions_any(item.s, expressions(item, "gold")):
        return f"S holds the gold answer {found!r}"
    if found := spellings.mentions_any(item.g, expressions(item, "lure")):
        return f"G holds the lure {found!r}"
    return ""


def distractor_leakage(item: ScopedItem) -> str:
    """No distractor stands in the question or a context."""
    for name in ("question", "g", "s", "f"):
        if found := spellings.mentions_any(getattr(item, name), item.distractors):
            return f"{name} holds the distractor {found!r}"
    return ""


def edits_replay(item: ScopedItem) -> str:
    """The registered edits turn G into F, and all text outside them is the same."""
    if not item.edits:
        return "there are no edits"
    return "" if replayed(item.g, item.edits) == item.f else "the edits replayed on G do not give F"


def edits_are_answers(item: ScopedItem) -> str:
    """Every edit puts the lure for an expression of the gold answer, and nothing else."""
    wanted = {spellings.normal(value) for value in expressions(item, "gold")}
    for edit in item.edits:
        if spellings.normal(item.g[edit.start : edit.end]) not in wanted or edit.text != item.lure_text:
            return f"an edit puts {edit.text!r} for {item.g[edit.start : edit.end]!r}"
    return ""


def no_gold_in_f(item: ScopedItem) -> str:
    """F holds no mention of the gold answer: no spelling, no expression of the source, no surname."""
    for value in expressions(item, "gold"):
        if spellings.mentions(item.f, value):
            return f"F holds {value!r}, an expression of the gold answer"
    # What is left of F without the lure must not name the gold's person by the last name alone.
    words = item.gold_text.split()
    if spellings.kind(item.gold_text) == "name" and 2 <= len(words) <= 4 and len(words[-1]) > 3:
        rest = item.f.replace(item.lure_text, " ")
        if words[-1] not in item.question and re.search(rf"\b{re.escape(words[-1])}\b", rest):
            return f"F holds {words[-1]!r}, the last name of the gold answer"
    return ""


def one_dimension(item: ScopedItem) -> str:
    """Target and alternative have the same qualifiers and differ in exactly the named dimension."""
    if item.target.keys() != item.alternative.keys() or not item.target:
        return "target and alternative do not have the same qualifiers"
    differ = [k for k in item.target if spellings.normal(item.target[k]) != spellings.normal(item.alternative[k])]
    return "" if differ == [item.dimension] else f"the scopes differ in {', '.join(differ) or 'nothing'}"


def range_excludes_target(item: ScopedItem) -> str:
    """No time of S covers the target date, and no date of the target stands in S."""
    if item.dimension != "time":
        return ""
    target, other = item.target.get("time", ""), item.alternative.get("time", "")
    if not spellings.span(target) or not spellings.span(other):
        return f"the times {target!r} and {other!r} cannot both be read"
    if spellings.overlap(target, other):
        return f"S is of {other!r}, which covers the target {target!r}"
    ranges = re.findall(r"\b\d{4}\s?(?:-|–|to)\s?\d{4}\b", item.s)
    if spellings.mentions(item.s, target) or any(spellings.overlap(target, found) for found in ranges):
        return f"S contains the target date {target!r}"
    return ""


def explicit_scopes(item: ScopedItem) -> str:
    """The question, G and F state every qualifier of the target, S those of the alternative and not the target's."""
    for name in ("question", "g", "f"):
        for qualifier, text in item.target.items():
            if not states(getattr(item, name), text):
                return f"{name} does not state the target's {qualifier} {text!r}"
    for qualifier, text in item.alternative.items():
        if not states(item.s, text):
            return f"S does not state the {qualifier} {text!r} of its scope"
    target = item.target.get(item.dimension, "")
    if states(item.s, target) and not states(item.alternative.get(item.dimension, ""), target):
        return f"S states the target's {item.dimension} {target!r}"
    return ""


def context_length(item: ScopedItem) -> str:
    """Words of the contexts keep to the source's limits, and so do their ratio and difference."""
    rules = RULES[item.source]
    lengths = [len(text.split()) for text in (item.g, item.s, item.f)]
    fewest, most = rules.words
    if min(lengths) < fewest or max(lengths) > most:
        return f"contexts have {min(lengths)} to {max(lengths)} words; {fewest} to {most} are allowed"
    if max(lengths) > rules.ratio * min(lengths) or max(lengths) - min(lengths) > rules.difference:
        return f"contexts of {min(lengths)} and {max(lengths)} words differ too much"
    return ""


def context_overlap(item: ScopedItem) -> str:
    """S is no closer to the question than G and F, by Jaccard similarity and by recall of the question's words."""
    for name, measure in (("Jaccard similarity", jaccard), ("recall", recall)):
        g, s, f = (measure(item.question, text) for text in (item.g, item.s, item.f))
        if s > min(g, f):
            return f"{name} of S with the question is {s:.3f}, of G {g:.3f} and of F {f:.3f}"
    return ""


def provenance(item: ScopedItem) -> str:
    """Gold, lure and both distractors have a place in their source, and the values that stand in the options."""
    found = item.provenance
    others = found.get("distractors", ())
    if not {"gold", "lure", "distractors", "method"} <= found.keys() or len(others) != 2:
        return "gold, lure, two distractors and the method are not all recorded"
    if found["method"] not in METHODS:
        return f"unknown method {found['method']!r}; use one of {', '.join(METHODS)}"
    if any(not fact.get("row") or not fact.get("document") for fact in (found["gold"], found["lure"], *others)):
        return "a fact has no row or document of its source"
    recorded = (found["gold"]["value"], found["lure"]["value"], {fact["value"] for fact in others})
    if recorded != (item.gold_text, item.lure_text, set(item.distractors)):
        return "the values recorded are not those of the options"
    return ""


ITEM_CHECKS: tuple[Callable[[ScopedItem], str], ...] = (
    structure, distinct_options, option_types, answer_isolation, contexts_state_answers, distractor_leakage,
    edits_replay, edits_are_answers, no_gold_in_f, one_dimension, range_excludes_target, explicit_scopes,
    context_length, context_overlap, provenance,
)  # fmt: skip


# ---------------------------------------------------------------- of a set


def unique_ids(items: Sequence[ScopedItem]) -> list[tuple[str, str]]:
    """No id stands twice."""
    return [(id, f"stands {n} times") for id, n in Counter(item.id for item in items).items() if n > 1]


def whole_clusters(items: Sequence[ScopedItem]) -> list[tuple[str, str]]:
    """Every cluster lies in one dependency group."""
    return [(fault.split(": ", 2)[1], fault.split(": ", 2)[2]) for fault in cluster_faults(list(items))]


def repeated_facts(items: Sequence[ScopedItem]) -> list[tuple[str, str]]:
    """No question and no target fact stands twice, in whatever words."""
    seen: dict[tuple[str, ...], str] = {}
    found = []
    for item in items:
        scope = tuple(sorted((name, spellings.normal(value)) for name, value in item.target.items()))
        fact = (item.source, item.split, item.question_type, item.cluster, item.gold_text, repr(scope))
        for what, key in (("question", ("question", spellings.normal(item.question))), ("target fact", fact)):
            if key in seen:
                found.append((item.id, f"has the {what} of {seen[key]}"))
            seen.setdefault(key, item.id)
    return found


def reversed_pairs(items: Sequence[ScopedItem]) -> list[tuple[str, str]]:
    """No pair of facts stands twice, the same way round or reversed."""
    seen: dict[tuple[object, ...], str] = {}
    found = []
    for item in items:
        facts = [item.provenance.get(name, {}).get("row", "") for name in ("gold", "lure")]
        scopes = [repr(sorted((k, spellings.normal(v)) for k, v in s.items())) for s in (item.target, item.alternative)]
        key = (item.source, item.dimension, frozenset(zip(facts, scopes, strict=True)))
        if key in seen:
            found.append((item.id, f"has the pair of facts of {seen[key]}"))
        seen.setdefault(key, item.id)
    return found


def caps(items: Sequence[ScopedItem]) -> list[tuple[str, str]]:
    """No cluster and no question type has more items in a dimension than its source allows."""
    found = []
    for name, limit_of in (("cluster", "per_cluster"), ("question_type", "per_type")):
        groups: dict[tuple[str, str], list[ScopedItem]] = defaultdict(list)
        for item in items:
            groups[item.group, getattr(item, name)].append(item)
        for (group, value), members in groups.items():
            limit = getattr(RULES[members[0].source], limit_of)
            if limit and len(members) > limit:
                found.append(
                    (members[-1].id, f"{name} {value!r} has {len(members)} items in {group}; {limit} are allowed")
                )
    return found


def balanced_positions(items: Sequence[ScopedItem]) -> list[tuple[str, str]]:
    """In each group gold letters, lure letters and the twelve ordered pairs have counts that differ by at most one."""
    groups: dict[str, list[ScopedItem]] = defaultdict(list)
    for item in items:
        groups[item.group].append(item)
    found = []
    for group, members in groups.items():
        pairs = [a + b for a, b in itertools.permutations(LETTERS, 2)]
        for what, values, given in (
            ("gold letters", list(LETTERS), [item.gold for item in members]),
            ("lure letters", list(LETTERS), [item.lure for item in members]),
            ("pairs of letters", pairs, [item.gold + item.lure for item in members]),
        ):
            counts = [given.count(value) for value in values]
            if max(counts) - min(counts) > 1:
                found.append((members[0].id, f"{group}: counts of {what} go from {min(counts)} to {max(counts)}"))
    return found


SET_CHECKS: tuple[Callable[[Sequence[ScopedItem]], list[tuple[str, str]]], ...] = (
    unique_ids, whole_clusters, repeated_facts, reversed_pairs, caps, balanced_positions,
)  # fmt: skip


def check_items(items: Sequence[ScopedItem]) -> list[Finding]:
    """Everything that is wrong with items and with the set they make; empty if nothing is."""
    found = []
    for item in items:
        for check in ITEM_CHECKS:
            what = check(item)
            if what:
                found.append(Finding(check.__name__, item.id, what))
            if what and check is structure:
                break  # the others need it
    if not found or all(finding.check != "structure" for finding in found):
        for of_set in SET_CHECKS:
            found += [Finding(of_set.__name__, id, what) for id, what in of_set(items)]
    return found


# ---------------------------------------------------------------- measures


def expressions(item: ScopedItem, which: str) -> list[str]:
    """The text of `gold` or `lure` and its other expressions in the source."""
    fact = item.provenance.get(which, {})
    texts = [item.gold_text if which == "gold" else item.lure_text, *fact.get("spellings", ())]
    return list(dict.fromkeys(texts))


def states(text: str, qualifier: str) -> bool:
    """Whether a text has every word of a qualifier; a year is also stated by a date in it."""
    if spellings.span(qualifier):
        return spellings.mentions(text, qualifier)
    wanted = [token for token in spellings.tokens(qualifier) if token not in ("the", "a", "an", "of", "in", "and")]
    return set(wanted) <= set(spellings.tokens(text)) if wanted else True


def _content(text: str) -> set[str]:
    return set(spellings.tokens(text)) - STOP_WORDS


def jaccard(question: str, context: str) -> float:
    """Shared words over all words of both, stop words aside, 0 to 1."""
    a, b = _content(question), _content(context)
    return len(a & b) / len(a | b) if a | b else 0.0


def recall(question: str, context: str) -> float:
    """Share of the question's words that the context has, stop words aside, 0 to 1."""
    a, b = _content(question), _content(context)
    return len(a & b) / len(a) if a else 0.0
