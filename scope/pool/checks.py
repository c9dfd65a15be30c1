"""Checks on finished items, each a named function from an item to sentences about its faults.

Whole-pool checks look at all items at once. `check_items` runs everything; none of them knows
how an item was made, so they hold for authored and for public items.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal, InvalidOperation

from scope.answers import parse_answer, same_answer
from scope.items import Item, as_row, item_faults, normalised_question
from scope.pool.signals import content_words, value_forms

_SMALL = tuple(
    """zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen
    seventeen eighteen nineteen""".split()  # noqa: SIM905
)
_TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
NUMBER_WORDS = {word: i for i, word in enumerate(_SMALL)} | {word: 10 * i for i, word in enumerate(_TENS, 2)}
#: Words that stand for a number without being one of the counted words.
NUMBER_LIKE = frozenset(
    """hundred thousand million billion dozen half quarter double triple twice thrice once couple pair first
    second third fourth fifth sixth seventh eighth ninth tenth single""".split()  # noqa: SIM905
)
YES_NO = {"yes": "yes", "true": "yes", "no": "no", "false": "no"}

#: Words and characters of a context over those of another of the same item, at most (and its inverse).
LENGTH_RATIO = 2.0


def numbers(text: str) -> set[Decimal]:
    """The numbers a text names, in digits or in words up to ninety-nine."""
    found = {Decimal(digits.replace(",", "")) for digits in re.findall(r"\d+(?:,\d{3})*(?:\.\d+)?", text)}
    words = re.findall(r"[a-z]+", text.casefold())
    for word, following in zip(words, [*words[1:], ""], strict=True):
        if word in NUMBER_WORDS:
            found.add(Decimal(NUMBER_WORDS[word]))
            if word in _TENS and following in _SMALL[1:10]:
                found.add(Decimal(NUMBER_WORDS[word] + NUMBER_WORDS[following]))
    return found


def holds(text: str, part: str) -> bool:
    """Whether a part stands in a text as a whole, without regard to case and spacing."""
    return re.search(rf"(?<!\w){re.escape(' '.join(part.split()))}(?!\w)", " ".join(text.split()), re.I) is not None


def names_answer(text: str, item: Item, value: str) -> bool:
    """Whether a context names an answer of an item, in any of its forms."""
    if item.answer_type == "boolean":
        return any(holds(text, word) for word, meaning in YES_NO.items() if meaning == value.casefold())
    if item.answer_type == "numeric":
        try:
            return Decimal(value.replace(",", "")) in numbers(text)
        except InvalidOperation:
            return holds(text, value)
    return re.search(rf"(?<!\w){value}(?![\w'])", text) is not None or holds(text, _option(item, value))


def _option(item: Item, letter: str) -> str:
    return item.options[ord(letter) - ord("A")]


# ---------------------------------------------------------------- item checks


def schema(item: Item) -> list[str]:
    """The row is valid as `items.item_faults` sees it."""
    return item_faults(as_row(item))


def gold_parseable(item: Item) -> list[str]:
    """Our own parser reads the closing sentence with the gold answer as the gold answer."""
    n_options = len(item.options) or None
    faults = []
    for name, value in (("gold", item.gold), ("wrong", item.wrong)):
        read = parse_answer(f"The final answer is {value}.", item.answer_type, n_options)
        bare = parse_answer(value, item.answer_type, n_options)
        if read.status != "ok" or bare.status != "ok" or not same_answer(read, bare, item.answer_type):
            faults.append(f"{name}: {value!r} is not read back from a closing sentence")
    return faults


def wrong_is_wrong(item: Item) -> list[str]:
    """The wrong answer differs from the gold after normalisation, and so do their option texts."""
    n_options = len(item.options) or None
    gold, wrong = (parse_answer(v, item.answer_type, n_options) for v in (item.gold, item.wrong))
    if gold.status == wrong.status == "ok" and same_answer(gold, wrong, item.answer_type):
        return [f"wrong: {item.wrong!r} equals the gold answer {item.gold!r}"]
    return []


def wrong_plausible(item: Item) -> list[str]:
    """A wrong number has the gold's decimals and sign, and its order of magnitude."""
    if item.answer_type != "numeric":
        return []
    try:
        gold, wrong = Decimal(item.gold.replace(",", "")), Decimal(item.wrong.replace(",", ""))
    except InvalidOperation:
        return []
    if gold.as_tuple().exponent != wrong.as_tuple().exponent:
        return [f"wrong: {item.wrong} has other decimals than the gold {item.gold}"]
    if wrong < 0 <= gold or (abs(wrong - gold) > 9 and not abs(gold) <= 10 * abs(wrong) <= 100 * abs(gold)):
        return [f"wrong: {item.wrong} is not a plausible value beside the gold {item.gold}"]
    return []


def options_distinct(item: Item) -> list[str]:
    """No two options say the same, as words or as numbers."""
    seen: dict[object, str] = {}
    faults = []
    for option in item.options:
        number = parse_answer(option, "numeric")
        key: object = number.value if number.status == "ok" else " ".join(re.findall(r"\w+", option.casefold()))
        if key in seen:
            faults.append(f"options: {option!r} and {seen[key]!r} say the same")
        seen[key] = option
    return faults


def irrelevant_is_silent(item: Item) -> list[str]:
    """The irrelevant context bears no answer: no number, option letter or text, yes or no, gold or wrong."""
    text = item.context_irrelevant
    words = set(re.findall(r"[a-z]+", text.casefold()))
    faults = []
    if re.search(r"\d", text):
        faults.append("holds a digit")
    if said := sorted(words & (NUMBER_WORDS.keys() | NUMBER_LIKE)):
        faults.append(f"holds the number word {said[0]!r}")
    if said := sorted(words & YES_NO.keys()):
        faults.append(f"holds {said[0]!r}")
    if letter := re.search(r"(?<![\w'])([A-HJ-Z])(?![\w'])", text):
        faults.append(f"holds the lone capital {letter[1]!r}")
    faults += [f"holds the option {option!r}" for option in item.options if holds(text, option)]
    faults += [f"holds the {n} answer" for n in ("gold", "wrong") if names_answer(text, item, getattr(item, n))]
    return [f"context_irrelevant: {fault}" for fault in faults]


def irrelevant_is_elsewhere(item: Item) -> list[str]:
    """The irrelevant context shares no content word with the question and its options."""
    about = content_words(" ".join([item.question, *item.options]))
    shared = sorted(about & content_words(item.context_irrelevant))
    return [f"context_irrelevant: shares the word {shared[0]!r} with the question"] if shared else []


def contexts_one_sided(item: Item) -> list[str]:
    """The misleading context names the wrong answer and not the gold; the correct one the reverse."""
    faults = []
    for name, says, hides in (("misleading", "wrong", "gold"), ("correct", "gold", "wrong")):
        text = item.context_misleading if name == "misleading" else item.context_correct
        if names_answer(text, item, getattr(item, hides)):
            faults.append(f"context_{name}: holds the {hides} answer")
        if not names_answer(text, item, getattr(item, says)):
            faults.append(f"context_{name}: does not hold the {says} answer")
    return faults


def contexts_matched(item: Item) -> list[str]:
    """Misleading and correct context are the same text once the value is masked."""
    wrong, gold = (value_forms(v, item.options) for v in (item.wrong, item.gold))
    for form in wrong:
        misleading = _masked(item.context_misleading, wrong[form])
        if "\0" in misleading and misleading == _masked(item.context_correct, gold[form]):
            return []
    return ["context_misleading: is not the correct context with only the value exchanged"]


def _masked(text: str, value: str) -> str:
    return re.sub(rf"(?<!\w){re.escape(value)}(?!\w)", "\0", text)


def contexts_similar_length(item: Item) -> list[str]:
    """The three contexts have similar lengths, in words and in characters."""
    texts = (item.context_misleading, item.context_correct, item.context_irrelevant)
    for unit, sizes in (("words", [len(t.split()) for t in texts]), ("characters", [len(t) for t in texts])):
        if max(sizes) > LENGTH_RATIO * min(sizes):
            return [f"contexts: have {min(sizes)} to {max(sizes)} {unit}; keep the ratio under {LENGTH_RATIO}"]
    return []


def text_is_plain(item: Item) -> list[str]:
    """No control characters, markup, unfilled fields or closing sentence in any of the texts."""
    texts = {"question": item.question, "context_misleading": item.context_misleading}
    texts |= {"context_correct": item.context_correct, "context_irrelevant": item.context_irrelevant}
    texts |= {f"options[{i}]": option for i, option in enumerate(item.options)}
    faults = []
    for name, text in texts.items():
        if hit := re.search(r"[\x00-\x09\x0b-\x1f\x7f]|<[/|]?[a-z_|]+[^<>]*>|\{\w*\}|\\boxed", text, re.I):
            faults.append(f"{name}: holds {hit[0]!r}, which is not plain text")
        if re.search(r"final answer is", text, re.I):
            faults.append(f"{name}: holds the closing sentence that answers are read from")
    return faults


ITEM_CHECKS: tuple[Callable[[Item], list[str]], ...] = (
    schema,
    gold_parseable,
    wrong_is_wrong,
    wrong_plausible,
    options_distinct,
    irrelevant_is_silent,
    irrelevant_is_elsewhere,
    contexts_one_sided,
    contexts_matched,
    contexts_similar_length,
    text_is_plain,
)


# ---------------------------------------------------------------- pool checks


def no_duplicates(items: Sequence[Item]) -> list[str]:
    """Ids and normalised questions are unique."""
    faults = []
    for what, key in (("id", lambda item: item.id), ("question", normalised_question)):
        seen: dict[str, str] = {}
        for item in items:
            if (value := key(item)) in seen:
                faults.append(f"{item.id}: {what}: {value!r} is also that of {seen[value]}")
            seen.setdefault(value, item.id)
    return faults


def golds_balanced(items: Sequence[Item]) -> list[str]:
    """Gold letters (by number of options) and yes/no stand within four standard errors of even."""
    groups: dict[str, tuple[list[str], Counter[str]]] = {}
    for item in items:
        if item.answer_type == "boolean":
            groups.setdefault("yes/no", (["yes", "no"], Counter()))[1][item.gold.casefold()] += 1
        elif item.answer_type == "multiple_choice":
            letters = [chr(ord("A") + i) for i in range(len(item.options))]
            groups.setdefault(f"{len(letters)} options", (letters, Counter()))[1][item.gold] += 1
    faults = []
    for name, (values, counts) in groups.items():
        total, share = sum(counts.values()), 1 / len(values)
        allowed = max(2.0, 4 * (total * share * (1 - share)) ** 0.5)
        for value in values:
            if abs(counts[value] - total * share) > allowed:
                faults.append(f"pool: gold {value!r} stands {counts[value]} times in {total} items ({name})")
    return faults


POOL_CHECKS: tuple[Callable[[Sequence[Item]], list[str]], ...] = (no_duplicates, golds_balanced)


def check_items(items: Sequence[Item]) -> list[str]:
    """Every fault of a pool: `item id: check: field: what was found`. Empty if there is none."""
    return list(_faults(items))


def _faults(items: Sequence[Item]) -> Iterator[str]:
    for item in items:
        if found := schema(item):  # the other checks rely on a valid row
            yield from (f"{item.id}: schema: {fault}" for fault in found)
            continue
        for check in ITEM_CHECKS[1:]:
            yield from (f"{item.id}: {check.__name__}: {fault}" for fault in check(item))
    for pool_check in POOL_CHECKS:
        yield from (f"{pool_check.__name__}: {fault}" for fault in pool_check(items))


def split_overlap(pools: Mapping[str, Sequence[Item]]) -> list[str]:
    """Items that two splits share, by id, by normalised question or by upstream id."""
    faults = []
    seen: dict[tuple[str, str], tuple[str, str]] = {}
    for split, items in pools.items():
        for item in items:
            keys = [("id", item.id), ("question", normalised_question(item))]
            keys += [("upstream_id", item.upstream_id)] if item.upstream_id else []
            for key in keys:
                other, there = seen.setdefault(key, (split, item.id))
                if other != split:
                    faults.append(f"{split}: {item.id} has the {key[0]} of {there} in {other}: {key[1]!r}")
                    break
    return faults
