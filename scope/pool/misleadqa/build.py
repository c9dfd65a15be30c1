"""Sources -> items: candidates in the order of their hashes, kept while caps, rules and checks allow (App. A)."""

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from scope import spellings
from scope.artifacts import fingerprint
from scope.pool.misleadqa import ambigdocs, checks, condambigqa, minimum_wage, options, situatedqa
from scope.pool.misleadqa.facts import RULES, Candidate, Fact, Origin, Wording, read_tables
from scope.pool.questions import PoolError
from scope.scopes import LETTERS, SOURCES, ScopedItem, replacing, replayed

ORIGINS: dict[str, Origin] = {
    module.ORIGIN.name: module.ORIGIN for module in (minimum_wage, situatedqa, ambigdocs, condambigqa)
}
#: Items of a group before screening: the paper's candidates (App. A.2).
PER_GROUP, PER_CONDITION = 200, 100
#: Numbers further apart than by this factor are not comparable. Ours.
MAX_FACTOR = 10


@dataclass(frozen=True, slots=True)
class Chosen:
    """A candidate with its two distractors, and the item they make, its letters provisional."""

    candidate: Candidate
    distractors: tuple[Fact, Fact]
    item: ScopedItem


def build(
    names: Sequence[str],
    data_dir: str | Path | None,
    wording: Wording,
    seed: int,
    per_group: int = PER_GROUP,
    excluded: Mapping[str, str] | None = None,
) -> tuple[list[ScopedItem], dict[str, Mapping[str, int]]]:
    """The items of the named sources, and how many facts, questions and pairs each left out for which reason.

    excluded: ids of items that a person keeps out, and the decision; letters are balanced over those that stay.
    Follows from the arguments and the sources' rows alone. Every item passes every check. Raises PoolError for an
    unknown source or one without rows.
    """
    chosen: list[Chosen] = []
    left_out: dict[str, Mapping[str, int]] = {}
    for name in SOURCES:
        if name not in names:
            continue
        tables, unread = read_tables(ORIGINS[name], data_dir)
        candidates, reasons = ORIGINS[name].candidates(tables, wording)
        kept, refused = select(candidates, seed, per_group)
        decided = [each for each in kept if item_id(each.item) in (excluded or {})]
        refused.update(f"item: a person decided to {(excluded or {})[item_id(each.item)]} it" for each in decided)
        chosen += [each for each in kept if each not in decided]
        left_out[name] = dict(sorted({**unread, **reasons, **refused}.items()))
    if unknown := [name for name in names if name not in SOURCES]:
        raise PoolError(f"release.sources={unknown[0]} is no source; use {', '.join(SOURCES)}")
    items = _finished(chosen, seed)
    if found := checks.check_items(items):
        raise PoolError(f"the items fail their checks: {found[0]} (and {len(found) - 1} more)")
    return items, left_out


# ---------------------------------------------------------------- selection


def select(candidates: Iterable[Candidate], seed: int, per_group: int) -> tuple[list[Chosen], Counter[str]]:
    """Candidates that may stand together, in the order of their hashes, and why others may not.

    Kept to are the caps of the source, target facts that are not repeated, pairs that are not reversed, and every
    check of an item.
    """
    ranked = sorted(candidates, key=lambda candidate: fingerprint([seed, candidate.rank]))
    kept: list[Chosen] = []
    refused: Counter[str] = Counter()
    counts: Counter[tuple[str, ...]] = Counter()
    seen: set[object] = set()
    for candidate in ranked:
        rules, dimension = RULES[candidate.source], candidate.dimension
        most = PER_CONDITION if candidate.split == "condition" else per_group
        limits = {
            ("group", dimension): most,
            ("cluster", dimension, candidate.cluster): rules.per_cluster,
            ("type", dimension, candidate.question_type): rules.per_type,
        }
        full = next((key[0] for key, limit in limits.items() if limit and counts[key] >= limit), "")
        if full:
            refused[f"{dimension}: pair: its {full} has all the items it may have"] += 1
        elif {candidate.target_fact, candidate.pair, candidate.question.casefold()} & seen:
            refused[f"{dimension}: pair: repeats or reverses a fact that is used"] += 1
        elif isinstance(made := _made(candidate), str):
            refused[f"{dimension}: pair: {made}"] += 1
        else:
            kept.append(made)
            counts.update(limits.keys())
            seen |= {candidate.target_fact, candidate.pair, candidate.question.casefold()}
    return kept, refused


def _made(candidate: Candidate) -> Chosen | str:
    """The candidate's item, or the check that it fails."""
    gold, lure = candidate.gold, candidate.lure
    edits = replacing(candidate.g, gold.value, lure.value)
    f = replayed(candidate.g, edits) or ""
    distractors = _distractors(candidate, f)
    if len(distractors) < 2:
        return "fewer than two valid distractors"
    pair = (distractors[0], distractors[1])
    item = ScopedItem(
        id="provisional",
        source=candidate.source,
        dimension=candidate.dimension,
        question=candidate.question,
        options=(gold.value, lure.value, pair[0].value, pair[1].value),
        gold="A",
        lure="B",
        g=candidate.g,
        s=candidate.s,
        f=f,
        edits=edits,
        target=dict(gold.scope),
        alternative=dict(lure.scope),
        cluster=candidate.cluster,
        dependency_group=candidate.cluster,
        split=candidate.split,
        question_type=candidate.question_type,
        license=candidate.license,
        provenance={
            "gold": gold.provenance(),
            "lure": lure.provenance(),
            "distractors": [fact.provenance() for fact in pair],
            "method": candidate.method,
        },
    )
    failed = next((check.__name__ for check in checks.ITEM_CHECKS if check(item)), "")
    return f"fails {failed}" if failed else Chosen(candidate, pair, item)


def _distractors(candidate: Candidate, f: str) -> list[Fact]:
    """The first two facts that are wrong at the target, like the gold answer, and in neither question nor contexts."""
    taken: list[Fact] = []
    text = " ".join((candidate.question, candidate.g, candidate.s, f))
    rank = candidate.rank
    for fact in (
        fact
        for tier in candidate.distractors
        for fact in sorted(tier, key=lambda fact: fingerprint([rank, fact.where, fact.value]))
    ):
        others = (candidate.gold, candidate.lure, *taken)
        if (
            _alike(fact.value, candidate.gold.value)
            and not any(spellings.same(fact.value, other.value) for other in others)
            and not any(spellings.mentions(other, fact.value) for other in candidate.gold.spellings)
            and not spellings.mentions(text, fact.value)
        ):
            taken.append(fact)
        if len(taken) == 2:
            break
    return taken


def _alike(a: str, b: str) -> bool:
    """Whether two values have one kind, and numbers one order of size."""
    if spellings.kind(a) != spellings.kind(b):
        return False
    if spellings.kind(a) != "number":
        return True
    small, large = sorted(int(value.replace(",", "")) for value in (a, b))
    return large <= MAX_FACTOR * small


# ---------------------------------------------------------------- letters and groups


def _finished(chosen: Sequence[Chosen], seed: int) -> list[ScopedItem]:
    """The items with ids, letters and dependency groups, in the order of source, dimension and id."""
    ids = [item_id(each.item) for each in chosen]
    places = options.placed([each.item.group for each in chosen], ids, seed)
    groups = dependency_groups(chosen)
    items = []
    for each, id, place in zip(chosen, ids, places, strict=True):
        texts = options.arranged(*each.item.options[:2], each.item.options[2:], place)
        items.append(
            replace(
                each.item,
                id=id,
                options=(texts[0], texts[1], texts[2], texts[3]),
                gold=LETTERS[place[0]],
                lure=LETTERS[place[1]],
                dependency_group=groups[each.candidate.source, each.candidate.split, each.candidate.cluster],
            )
        )
    return sorted(items, key=lambda item: (SOURCES.index(item.source), item.dimension, item.id))


def item_id(item: ScopedItem) -> str:
    """Source, dimension and a hash of question, contexts and options, whatever the options' order."""
    content = "\n".join([item.question, item.g, item.s, *sorted(item.options)])
    return f"{item.source}-{item.dimension}-{hashlib.sha256(content.encode()).hexdigest()[:12]}"


def dependency_groups(chosen: Sequence[Chosen]) -> dict[tuple[str, str, str], str]:
    """(source, split, cluster) -> group: clusters that share a document of a fact or distractor are one (App. A.4).

    The two splits are apart.
    """
    parent: dict[object, object] = {}

    def root(key: object) -> object:
        while parent.setdefault(key, key) != key:
            key = parent[key]
        return key

    clusters = []
    for each in chosen:
        cluster = (each.candidate.source, each.candidate.split, each.candidate.cluster)
        clusters.append(cluster)
        for fact in (each.candidate.gold, each.candidate.lure, *each.distractors):
            parent[root((each.candidate.split, fact.document))] = root(cluster)
    members: dict[object, list[tuple[str, str, str]]] = defaultdict(list)
    for cluster in dict.fromkeys(clusters):
        members[root(cluster)].append(cluster)
    found: dict[tuple[str, str, str], str] = {}
    for together in members.values():
        name = f"{min(together)[0]}-{fingerprint(sorted(together))[:8]}"
        found |= dict.fromkeys(together, name)
    return found
