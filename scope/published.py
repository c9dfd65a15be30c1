"""Published rows brought into our own form: MIST-Bench items and MIST-Train preference pairs.

They come long (one row for each item and condition) or wide (one row an item), under names and
spellings of their own. What cannot be read with certainty is a fault, never a guess.
"""

import logging
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from scope.columns import (
    CONDITION_NAMES,
    CONDITION_SUFFIX,
    CONDITIONS,
    ID_NAMES,
    ITEM_NAMES,
    QUARTET_NAMES,
    SYNONYMS,
    TEXT_NAMES,
    WIDE_NAMES,
    cell,
    columns_of,
    folded,
    recognise,
    spelled,
)
from scope.conditions import Condition
from scope.forms import (
    Options,
    Unreadable,
    letter_of,
    missing,
    options_of,
    plain,
    prompt_of,
    response_of,
    same_text,
    text_of,
    whole,
    yes_or_no,
)
from scope.tables import Row, TableError

log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Group:
    """The rows of one item: for each condition, our field -> the published value."""

    id: str
    where: str
    order: int
    parts: dict[Condition, dict[str, Any]] = field(default_factory=dict)
    places: dict[Condition, list[str]] = field(default_factory=dict)

    def add(self, condition: Condition, where: str, part: dict[str, Any]) -> None:
        self.parts.setdefault(condition, part)
        self.places.setdefault(condition, []).append(where)

    def first(self, name: str) -> Any:
        """The value of a field: the misleading row's, or else the first that is there; None if none is."""
        order = [Condition.MISLEADING, *self.parts]
        return next((v for c in order if not missing(v := self.parts.get(c, {}).get(name))), None)

    def agreed(self, name: str) -> Any:
        """The value of a field that all conditions share."""
        value = self.first(name)
        for condition, part in self.parts.items():
            other = part.get(name)
            if not missing(other) and _shown(other) != _shown(value):
                raise Unreadable(
                    f"{name}: item {self.id!r} has {_shown(value):.60} and, at {self.places[condition][0]}, "
                    f"{_shown(other):.60}; make its rows agree"
                )
        return value

    def check_complete(self) -> None:
        doubled = [(c, places) for c, places in self.places.items() if len(places) > 1]
        lacking = [str(c) for c in Condition if c not in self.parts]
        if lacking:
            held = ", ".join(c for c in Condition if c in self.parts)
            raise Unreadable(
                f"condition: item {self.id!r} has {held} and lacks {', '.join(lacking)}; every item needs the four"
            )
        if doubled:
            condition, places = doubled[0]
            raise Unreadable(
                f"condition: item {self.id!r} has {condition} twice ({', '.join(places)}); keep one of them"
            )

    def prompts(self) -> dict[Condition, str]:
        """The complete prompts; two conditions with the same one are a fault."""
        found = {c: text for c in Condition if (text := prompt_of(self.parts[c].get("prompt"))) is not None}
        if len(set(found.values())) == 1 and not missing(self.first("context")):
            return {}  # the bare question: the context stands beside it, in a column of its own
        for condition, text in found.items():
            twin = next((c for c in found if c is not condition and found[c] == text), None)
            if twin is not None:
                raise Unreadable(
                    f"prompt: item {self.id!r} has the same one for {condition} and {twin}; make them differ"
                )
        return found


def item_rows(rows: Sequence[Row], given: Mapping[str, str], source: str, where: str) -> list[Row]:
    """Published benchmark rows, long or wide, as rows of our own schema, one an item, in first-seen order.

    given: our field (also `condition`, `prompt`, `context`) -> their column. source: for rows that
    name none. where: `file:line` for what is wrong with the whole, which is a TableError. Options,
    gold and wrong answer take our forms (an option letter, a number, yes or no; whole numbers in
    place of letters count from 0, or from 1 where no 0 but the last place occurs). A missing question
    is the clean prompt; missing topic, provenance and channel are `unknown`, `existing_benchmark`
    and `other`, and so is an unknown channel. Wrong class and wrong answer are never made up.
    """
    layout = _layout(rows, given, "id", ITEM_NAMES, ("gold", "wrong", "wrong_class"), where)
    groups, faults = _grouped(rows, layout)
    bases = _index_bases(groups)
    unknown: Counter[str] = Counter()
    return _finished(groups, faults, lambda group: _item(group, source, bases, unknown), unknown, where)


def quartet_rows(rows: Sequence[Row], given: Mapping[str, str], source: str, where: str) -> list[Row]:
    """Published preference rows, long or wide, as quartets, one an item, in first-seen order.

    As `item_rows`; chosen and rejected may be messages, and must be the same in an item's four rows.
    Fields that the rows lack are empty.
    """
    layout = _layout(rows, given, "item_id", QUARTET_NAMES, ("chosen", "rejected"), where)
    groups, faults = _grouped(rows, layout)
    unknown: Counter[str] = Counter()
    return _finished(groups, faults, lambda group: _quartet(group, source, unknown), unknown, where)


def _finished(
    groups: Sequence[_Group],
    faults: Sequence[tuple[int, str, str]],
    convert: Callable[[_Group], dict[str, Any]],
    unknown: Counter[str],
    where: str,
) -> list[Row]:
    """Items and faults in the order of their first rows; says which channels became `other`."""
    out: list[tuple[int, str, dict[str, Any] | str]] = list(faults)
    for group in groups:
        try:
            out.append((group.order, group.where, convert(group)))
        except Unreadable as fault:
            out.append((group.order, group.where, str(fault)))
    if unknown:
        examples = ", ".join(repr(value) for value, _ in unknown.most_common(5))
        log.warning("%s: channel: %d items have none of ours (%s); read as other", where, unknown.total(), examples)
    return [(place, row) for _, place, row in sorted(out, key=lambda entry: entry[0])]


def _shown(value: Any) -> str:
    return repr(plain(value))


# ---------------------------------------------------------------- grouping


@dataclass(frozen=True, slots=True)
class _Layout:
    """Which column is what. condition: None where rows are wide. ids: columns that may tell items apart."""

    key: str
    condition: str | None
    ids: list[str]
    fields: dict[str, str]


def _layout(
    rows: Sequence[Row],
    given: Mapping[str, str],
    key: str,
    names: Mapping[str, Sequence[str]],
    required: Iterable[str],
    where: str,
) -> _Layout:
    found = columns_of(rows)
    objects = [row for _, row in rows if isinstance(row, dict)]
    condition = _condition_column(objects, found, given, where)
    free = [name for name in found if name != condition]
    texts = TEXT_NAMES if condition else WIDE_NAMES
    chosen = {ours: theirs for ours, theirs in given.items() if ours not in (key, "condition")}
    fields = recognise(free, {**texts, **names}, chosen, required, where)
    if not any(name in fields for name in texts) and not any(
        isinstance(cell(row, fields.get("chosen")), list) for row in objects
    ):
        if condition:
            recognise(free, TEXT_NAMES, required=["prompt"], where=where)
        looked = f"{', '.join(CONDITION_NAMES)}, or prompt_CONDITION and context_CONDITION"
        problem = f"no column for it; the file has {', '.join(found)}; looked for {looked}"
        raise TableError([f"{where}: condition: {problem}; name it in columns (condition: THEIR_NAME)"])
    for what in SYNONYMS:
        # A column that is called `type` but holds none of our answer types is about something else.
        column = fields.get(what)
        if column and what not in given and folded(column) != folded(what):
            values = SYNONYMS[what]
            if not any(spelled(what, cell(row, column)) in values for row in objects if text_of(cell(row, column))):
                del fields[what]
    ids = [recognise(free, {}, {key: given[key]}, where=where)[key]] if key in given else _present(ID_NAMES, free)
    if not ids:
        recognise(free, {key: ID_NAMES}, required=[key], where=where)
    return _Layout(key, condition, ids, fields)


def _present(names: Sequence[str], found: Sequence[str]) -> list[str]:
    """The columns found under likely names, the likeliest first."""
    return [column for name in names for column in found if folded(column) == folded(name)]


def _condition_column(
    rows: Sequence[Mapping[str, Any]], found: Sequence[str], given: Mapping[str, str], where: str
) -> str | None:
    """The column that says the condition: most of its values must be conditions, unless it is called `condition`."""
    if "condition" in given:
        return recognise(found, {}, {"condition": given["condition"]}, where=where)["condition"]
    for column in _present(CONDITION_NAMES, found):
        values = [cell(row, column) for row in rows if not missing(cell(row, column))]
        if folded(column) == "condition" or 2 * sum(_condition(v) is not None for v in values) > len(values):
            return column
    return None


def _condition(value: Any) -> Condition | None:
    found = spelled("condition", value)
    return Condition(found) if isinstance(found, str) and found in CONDITIONS else None


def _grouped(rows: Sequence[Row], layout: _Layout) -> tuple[list[_Group], list[tuple[int, str, str]]]:
    """The items of the rows, and the rows that belong to none: (order, where, fault)."""
    faults = [(n, place, row) for n, (place, row) in enumerate(rows) if isinstance(row, str)]
    good: list[tuple[int, str, dict[str, Any], Condition | None]] = []
    for n, (place, row) in enumerate(rows):
        if not isinstance(row, dict):
            continue
        condition = _condition(cell(row, layout.condition))
        if layout.condition and condition is None:
            spellings = "; ".join(f"{c}: also {', '.join(others[:5])}" for c, others in CONDITIONS.items())
            problem = f"unknown {cell(row, layout.condition)!r:.40}; use {', '.join(CONDITIONS)} ({spellings})"
            faults.append((n, place, f"condition: {problem}"))
        else:
            good.append((n, place, row, condition))
    # Of several columns, with the condition at their end or cut off, the first that makes the most items whole.
    ways = [
        [_id(cell(row, column), strip) for _, _, row, _ in good]
        for column in layout.ids
        for strip in ((False, True) if layout.condition else (False,))
    ]
    names = max(ways, key=lambda names: _complete(zip(names, (c for *_, c in good), strict=True)))
    groups: dict[str, _Group] = {}
    for name, (n, place, row, condition) in zip(names, good, strict=True):
        part = {ours: cell(row, theirs) for ours, theirs in layout.fields.items()}
        if not name:
            shown = ", ".join(f"{column} {row.get(column)!r:.40}" for column in layout.ids)
            faults.append((n, place, f"{layout.key}: missing or not text ({shown}); every row needs one"))
        elif condition is not None:
            groups.setdefault(name, _Group(name, place, n)).add(condition, place, part)
        elif name in groups:
            faults.append((n, place, f"{layout.key}: {name!r} already stands at {groups[name].where}; keep one"))
        else:
            groups[name] = _Group(name, place, n)
            for c in Condition:
                groups[name].add(c, place, {**part, **{what: part.get(f"{what}_{c}") for what in TEXT_NAMES}})
    return list(groups.values()), faults


def _id(value: Any, strip: bool) -> str:
    return CONDITION_SUFFIX.sub("", text_of(value)) if strip else text_of(value)


def _complete(labels: Iterable[tuple[str, Condition | None]]) -> int:
    """How many ids have each condition exactly once."""
    found: dict[str, list[Condition | None]] = {}
    for name, condition in labels:
        found.setdefault(name, []).append(condition)
    return sum(len(c) == len(set(c)) == len(Condition) for name, c in found.items() if name)


# ---------------------------------------------------------------- items and quartets


def _item(group: _Group, source: str, bases: Mapping[str, int], unknown: Counter[str]) -> dict[str, Any]:
    group.check_complete()
    question, options = group.agreed("question"), options_of(group.agreed("options"))
    answers = {name: group.agreed(name) for name in ("gold", "wrong")}
    kind = spelled("answer_type", group.agreed("answer_type"))
    prompts = group.prompts()
    if kind is None:
        kind = _answer_type(answers["gold"], options)
    if options and kind in ("multiple_choice", "boolean"):
        for name, value in answers.items():
            letter = letter_of(name, value, options, bases.get(name))
            if letter is not None:
                answers[name] = letter if kind == "multiple_choice" else options.texts[ord(letter) - ord("A")]
    if kind == "boolean":
        answers = {name: yes_or_no(value) for name, value in answers.items()}
        options = None
    row = {
        "id": group.id,
        "source": plain(group.first("source")) or source,
        "provenance": spelled("provenance", group.first("provenance")) or "existing_benchmark",
        "topic": plain(group.first("topic")) or "unknown",
        "answer_type": kind,
        "question": plain(question) or prompts.get(Condition.CLEAN) or prompt_of(group.first("prompt")),
        "options": options.texts if options else [],
        **{name: text_of(value) or value for name, value in answers.items()},
        "wrong_class": spelled("wrong_class", group.first("wrong_class")),
        "channel": _channel(group.first("channel"), unknown),
    }
    row |= {f"prompt_{c}": text for c, text in prompts.items()}
    row |= {f"context_{c}": part.get("context") for c, part in group.parts.items() if c is not Condition.CLEAN}
    row |= {name: plain(group.first(name)) for name in ("family", "tier", "upstream_id", "license")}
    return {name: value for name, value in row.items() if not missing(value) or name == "options"}


def _quartet(group: _Group, source: str, unknown: Counter[str]) -> dict[str, Any]:
    group.check_complete()
    prompts = group.prompts()
    row: dict[str, Any] = {"item_id": group.id, "source": text_of(group.first("source")) or source}
    for name in ("chosen", "rejected"):
        said = {}
        for condition, part in group.parts.items():
            asked, said[condition] = response_of(name, part.get(name))
            if condition not in prompts and asked is not None:
                prompts[condition] = asked
        row[name] = said[next(iter(said))]
        other = next((c for c, text in said.items() if text != row[name]), None)
        if other is not None:
            problem = f"item {group.id!r} has another one at {group.places[other][0]}"
            raise Unreadable(f"{name}: {problem}; the four rows of an item share their pair")
    if row["chosen"].split() == row["rejected"].split():
        raise Unreadable(f"rejected: item {group.id!r} has the same text as chosen; give a pair that differs")
    if lacking := [str(c) for c in Condition if c not in prompts]:
        raise Unreadable(f"prompt: item {group.id!r} has none for {', '.join(lacking)}; every condition needs one")
    row |= {f"prompt_{c}": prompts[c] for c in Condition}
    kind, channel = group.agreed("answer_type"), group.first("channel")
    row["answer_type"] = text_of(spelled("answer_type", kind))
    row["channel"] = "" if channel is None else _channel(channel, unknown)
    row["gold"] = text_of(group.agreed("gold"))
    names = ("chosen_source", "chosen_answer", "rejected_answer", "chosen_request", "rejected_request")
    return {**row, **{name: text_of(group.first(name)) for name in names}}


def _channel(value: Any, unknown: Counter[str]) -> str:
    found = spelled("channel", value)
    if isinstance(found, str) and found in SYNONYMS["channel"]:
        return found
    unknown["missing" if value is None else f"{value!s:.40}"] += 1
    return "other"


def _answer_type(gold: Any, options: Options | None) -> str | None:
    """The type of an item that does not say it, from its options and its gold answer; None if they do not tell."""
    if options:
        return "multiple_choice"
    text = text_of(gold)
    if text.casefold() in ("yes", "no", "true", "false"):
        return "boolean"
    return "numeric" if re.fullmatch(r"[-+]?[\d,]*\.?\d+(e[-+]?\d+)?", text, re.IGNORECASE) else None


def _index_bases(groups: Sequence[_Group]) -> dict[str, int]:
    """`gold`, `wrong` -> the number of the first option, for a field that holds an option's place in every item.

    A field whose values are all the text of an option as well holds texts.
    """
    places: dict[str, list[tuple[int, int]]] = {}
    for name in ("gold", "wrong"):
        every = [(g.first(name), options) for g in groups if (options := _safe_options(g)) and not options.labels]
        found = [(value, options) for value, options in every if not missing(value)]
        numbers = [(whole(value), len(options.texts)) for value, options in found]
        inside = [(n, count) for n, count in numbers if n is not None and n <= count]
        texts = all(same_text(value, options) for value, options in found)
        if inside and len(inside) == len(numbers) and not texts:
            places[name] = inside
    together = [place for inside in places.values() for place in inside]
    base = int(all(n > 0 for n, _ in together) and any(n == count for n, count in together))
    return dict.fromkeys(places, base)


def _safe_options(group: _Group) -> Options | None:
    try:
        return options_of(group.first("options"))
    except Unreadable:
        return None
