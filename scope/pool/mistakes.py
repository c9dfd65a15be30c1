"""Wrong answers for public questions: from worked steps, from the other options, from yes and no.

The values come from the question's own numbers and the solution's own steps, so that each one is
the result of a mistake with a name. What is implausible is sieved out by `foils.usable`.
"""

import re
import string
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache, partial

from scope.answers import TOLERANCE, parse_answer
from scope.pool import foils
from scope.pool.checks import holds
from scope.pool.foils import Mistake
from scope.pool.questions import Question
from scope.pool.signals import content_words
from scope.pool.steps import Step, Term, nodes, read_steps, revalued, value_of

#: Above this, one more or one fewer is no mistake that anybody makes.
_COUNTABLE = 200

_OTHER_SIGNS = {"+": "-*", "-": "+", "*": "+/", "/": "*-"}
_DID = {"+": "added", "-": "subtracted", "*": "multiplied", "/": "divided"}
_DOING = {"+": "adding", "-": "subtracting", "*": "multiplying", "/": "dividing"}
#: (words of the question, right factor, its word, wrong factor, name): the factor stands in the solution only.
_UNITS = (
    (r"hours?|hourly|minutes?", 60, "sixty", 100, "counted an hour as 100 minutes"),
    (r"weeks?|weekly", 7, "seven", 5, "counted a week as 5 days"),
    (r"dozens?", 12, "twelve", 10, "counted a dozen as 10"),
    (r"years?|yearly|annual(?:ly)?", 12, "twelve", 10, "counted a year as 10 months"),
    (r"foot|feet", 12, "twelve", 10, "counted a foot as 10 inches"),
)
_LATEX = re.compile(r"\\|\^|\$[^\s$][^$]*\$(?!\w)")


#: A wrong value, the function that gives it its class, and the name of the mistake.
_Found = tuple[Fraction, Callable[[object, str], Mistake], str]

# ---------------------------------------------------------------- numbers


def worked(question: str, gold: str, steps: Iterable[tuple[str, str]]) -> list[Mistake]:
    """Usable mistakes of a numeric question from its worked steps, the most tempting first.

    gold: a number as items write it. steps: (expression, result) pairs in order, such as
    ("48/2", "24"); a later step that uses the number 24 is taken to use that result.
    """
    answer = Fraction(gold)
    results = read_steps(steps)
    found: list[_Found] = [(value_of(r), foils.misread, "stopped before the last step") for r in results[-2:-1]]
    found += [(value_of(r), foils.misread, "answered an earlier step") for r in reversed(results[:-2])]
    root = results[-1] if results else None
    if isinstance(root, Step) and root.value == answer:
        found += [(s.value, foils.misread, "left out the last operation") for s in reversed(nodes(root)[:-1])]
        found += _misconceptions(question, root)
        found += _left_out(root)
        found += _exchanged(root)
        found += _last_operation(root)
    elif root is not None:
        found.append((value_of(root), foils.misread, "answered an earlier step"))
    return _numeric(question, gold, found, root if isinstance(root, Step) and root.value == answer else None)


def unworked(question: str, gold: str, solution: str = "") -> list[Mistake]:
    """Usable mistakes of a numeric question whose solution is prose, or unknown."""
    number = (
        r"=\s*\$?\s*(-?\\[dt]?frac\{\d{1,9}\}\{\d{1,9}\}|-?\d[\d,]{0,12}(?:\.\d+)?)(?![\d\w^{/*+\\(]|\s*[-+*/^(\\])"
    )
    results = [_result(written) for written in re.findall(number, solution[:20_000])]
    earlier = [(r, foils.misread, "answered an earlier result") for r in reversed(results) if r is not None]
    return _numeric(question, gold, earlier, None)


def _result(written: str) -> Fraction | None:
    over = re.fullmatch(r"(-?)\\[dt]?frac\{(\d+)\}\{(\d+)\}", written)
    if over:
        return Fraction(int(over[1] + over[2]), int(over[3])) if int(over[3]) else None
    return Fraction(written.replace(",", "").rstrip("."))


def _misconceptions(question: str, root: Step) -> Iterator[_Found]:
    """The results of a wrong unit, and of a percentage taken as an amount."""
    said = _quantities(question)
    for words, right, word, wrong, name in _UNITS:
        if right in said or re.search(rf"(?i)\b{word}\b", question):
            continue
        if re.search(rf"(?i)\b(?:{words})\b", question):
            value = revalued(root, {Fraction(right): Fraction(wrong)}.get)  # type: ignore[arg-type]
            if value is not None:
                yield value, foils.misconception, name
    percentages = re.findall(r"(?<![\d.,])(\d{1,4}(?:\.\d{1,4})?) ?(?:%|percent)", question)
    for percent in dict.fromkeys(map(Fraction, percentages)):
        value = revalued(root, partial(_percent_as_amount, percent))
        if value is not None:
            yield value, foils.misconception, "took the percentage as an amount"


def _percent_as_amount(percent: Fraction, term: Term) -> Fraction | None:
    if not isinstance(term, Step):
        return None
    left, right = value_of(term.left), value_of(term.right)
    if term.sign == "/" and right == 100 and isinstance(term.left, Step) and term.left.sign == "*":
        return percent if percent in (value_of(term.left.left), value_of(term.left.right)) else None
    if term.sign != "*":
        return None
    for share, whole in ((left, right), (right, left)):
        if share == percent / 100:
            return percent
        if abs(share - 1) == percent / 100:
            return whole + (percent if share > 1 else -percent)
    return None


def _left_out(root: Step) -> Iterator[_Found]:
    """The results without one of the earlier operations: one of its sides goes on alone, of a product the larger."""
    for step in reversed(nodes(root)[:-1]):
        left, right = value_of(step.left), value_of(step.right)
        for side in {"+": (left, right), "*": (max(left, right),)}.get(step.sign, (left,)):
            value = _with(root, step, side)
            if value is not None:
                yield value, foils.misread, "left out a step"


def _exchanged(root: Step) -> Iterator[_Found]:
    """The results with the last operation, or an earlier sum or difference, exchanged for another."""
    for step in reversed(nodes(root)):
        signs = _OTHER_SIGNS[step.sign] if step is root else {"+": "-", "-": "+"}.get(step.sign, "")
        for sign in signs:
            other = _applied(sign, value_of(step.left), value_of(step.right))
            value = None if other is None else _with(root, step, other)
            if value is not None:
                yield value, foils.misread, f"{_DID[sign]} instead of {_DOING[step.sign]}"


def _with(root: Step, step: Step, value: Fraction) -> Fraction | None:
    """The result if one of the operations had given another value."""
    return revalued(root, lambda term: value if term is step else None)


def _last_operation(root: Step) -> Iterator[_Found]:
    left, right = value_of(root.left), value_of(root.right)
    if root.sign == "*":
        for groups, size in ((left, right), (right, left)):
            if groups.denominator == 1 and 2 <= groups <= _COUNTABLE:
                yield root.value - size, foils.off_by, "counted one group too few"
                yield root.value + size, foils.off_by, "counted one group too many"
    again = _applied(root.sign, root.value, right)
    if again is not None:
        yield again, foils.overgeneralized, "did the last operation twice"


def _applied(sign: str, left: Fraction, right: Fraction) -> Fraction | None:
    try:
        return Step(sign, left, right).value
    except ArithmeticError:
        return None


def _numeric(question: str, gold: str, found: Sequence[_Found], root: Step | None) -> list[Mistake]:
    """The found mistakes and those that every number has, as usable ones."""
    answer = Fraction(gold)
    rest = list(_fraction_mistakes(answer)) if "/" in gold else list(_by_digits(gold))
    if answer < 0:
        rest.insert(0, (-answer, foils.misread, "lost the minus sign"))
    quantities = [] if _LATEX.search(question) else sorted(_quantities(question), key=lambda n: (abs(n - answer), n))
    rest += [(n, foils.confused, "gave another quantity of the question") for n in quantities]
    slips = [*_slips(gold, root)] if root else []
    late = [f for f in found if f[1] in (foils.off_by, foils.overgeneralized)]
    by_value: dict[Fraction, _Found] = {}
    for each in [*(f for f in found if f not in late), *slips, *late, *rest]:
        by_value.setdefault(each[0], each)
    written = (
        make(text, name)
        for value, make, name in by_value.values()
        if value and abs(value - answer) > TOLERANCE and (text := written_as(value, gold)) is not None
    )
    return foils.usable(written, gold, "numeric")


def _quantities(question: str) -> set[Fraction]:
    """The numbers that a question gives in digits."""
    written = re.findall(r"(?<![\w.,])\d{1,12}(?:,\d{3})*(?:\.\d{1,9})?(?![\w/]|[.,]\d)", question)
    return {Fraction(n.replace(",", "")) for n in written}


def _slips(gold: str, root: Step) -> Iterator[_Found]:
    """Slips in the columns of the last addition or subtraction."""
    places = 10 ** len(gold.partition(".")[2])
    left, right = value_of(root.left) * places, value_of(root.right) * places
    if left.denominator == right.denominator == 1 and left > 0 and right > 0 and root.sign in "+-":
        slip = (foils.no_carry if root.sign == "+" else foils.no_borrow)(int(left), int(right))
        make = foils.slip if root.sign == "+" else foils.misconception
        yield Fraction(int(slip.value), places), make, slip.name


def _by_digits(gold: str) -> Iterator[_Found]:
    """Slips in the written digits, and one too many or too few."""
    answer, places = Fraction(gold), 10 ** len(gold.partition(".")[2])
    sign, size = (-1 if answer < 0 else 1), abs(answer)
    digits = gold.strip("-").replace(".", "").lstrip("0")
    if 2 <= len(digits) <= 4 and digits[-1] != "0":
        swapped = foils.digits_swapped(int(digits))
        yield Fraction(sign * int(swapped.value), places), foils.slip, swapped.name
    step = Fraction(10 ** max(1, len(str(int(size))) - 2)) if size >= 10 else Fraction(1, places)
    if places > 1 or size >= 10:
        yield sign * (size + step), foils.slip, "was out by one in a column"
    if places > 1 or size >= 2 * step >= 20:
        yield sign * (size - step), foils.slip, "was out by one in a column"
    if places == 1 and size <= _COUNTABLE:
        yield answer + 1, foils.off_by, "counted one too many"
        yield answer - 1, foils.off_by, "counted one too few"


def _fraction_mistakes(answer: Fraction) -> Iterator[_Found]:
    if 0 < answer < 1:
        yield 1 - answer, foils.misread, "gave the complement"
    if answer:
        yield 1 / answer, foils.misconception, "turned the fraction upside down"
    for step in (1, -1):
        yield Fraction(answer.numerator + step, answer.denominator), foils.off_by, "was out by one in the numerator"
        if answer.denominator + step > 1:
            yield (
                Fraction(answer.numerator, answer.denominator + step),
                foils.off_by,
                "was out by one in the denominator",
            )


def written_as(value: Fraction, gold: str) -> str | None:
    """A value in the written form of the gold (whole, as many decimals, a fraction), or None if it has none."""
    if "/" in gold:
        return str(value) if value.denominator > 1 else None
    places = len(gold.partition(".")[2])
    scaled = value * 10**places
    if scaled.denominator != 1:
        return None
    digits = str(abs(scaled.numerator)).rjust(places + 1, "0")
    whole = f"{digits[:-places]}.{digits[-places:]}" if places else digits
    return f"-{whole}" if scaled < 0 else whole


# ---------------------------------------------------------------- options, yes and no

_OTHERS = r"(?:these|those|them|(?:of )?above|the (?:above|below|options|answers|choices|others))"
_CATCH_ALL = re.compile(rf"(?i)\W*(?:it could be )?(?:all|none|any|both|neither|either)(?: (?:of )?{_OTHERS}\b.*|\W*)")


def catches_all(option: str) -> bool:
    """Whether an option speaks of the others as a whole: all, none, both or neither of them."""
    return len(option) <= 60 and _CATCH_ALL.fullmatch(option) is not None


def other_options(question: str, gold: str, options: Sequence[str]) -> list[Mistake]:
    """The other options, the most tempting first; never one that contains the gold option.

    Nearest number first where the options are numbers; else most words of the question, then of the gold
    option, then nearest length. Options that are part of the gold option come after these, and those that
    speak of all the others last.
    """
    about, right = content_words(question), content_words(gold)
    all_numbers = all(_number(option) is not None for option in (gold, *options))

    def order(option: str) -> tuple[object, ...]:
        last = 2 if catches_all(option) else 1 if holds(gold, option) else 0
        if all_numbers:
            return last, abs((_number(option) or 0) - (_number(gold) or 0)), option
        words = content_words(option)
        like_gold = len(words & right) or int(gold[:4].casefold() == option[:4].casefold())
        return last, -len(words & about), -like_gold, abs(len(option) - len(gold)), option

    others = sorted((o for o in options if not say_the_same(o, gold) and not holds(o, gold)), key=order)
    return foils.usable([foils.near(o, "chose another option") for o in others], gold, "multiple_choice", options)


def _folded(text: str) -> str:
    return "".join(text.split()).casefold().rstrip(".")


@lru_cache(maxsize=4096)
def _number(text: str) -> Fraction | None:
    return parse_answer(text, "numeric").exact if any(c.isnumeric() for c in text) else None


def _same_number(a: str, b: str) -> bool:
    """Whether two options are one number with the same words around it: 1,200 m and 1200 m."""
    words = [re.sub(r"[\d.,\s]+", "", text).casefold() for text in (a, b)]
    return words[0] == words[1] and _number(a) is not None and _number(a) == _number(b)


def say_the_same(a: str, b: str) -> bool:
    """Whether two options differ by no more than case, spacing, a full stop or the form of a number."""
    return _folded(a) == _folded(b) or _same_number(a, b)


def other_word(gold: str) -> list[Mistake]:
    """The one mistake of a yes/no question."""
    other = {"yes": "no", "no": "yes"}[gold]
    return [foils.misread(other, "took the statement the other way round")]


# ---------------------------------------------------------------- known wrong answers


def given(value: str, gold: str, answer_type: str, wrong_class: str = "") -> Mistake:
    """A wrong answer the source itself knows, in the form items write it.

    Without a class: near_option for an option, misread_condition for yes/no; for a number
    arithmetic_slip where one or two of its digits differ and at least one is right, else misread_condition.
    """
    default = {"multiple_choice": "near_option", "boolean": "misread_condition"}
    if answer_type == "numeric":
        differing = sum(a != b for a, b in zip(value, gold, strict=False))
        slipped = len(value) == len(gold) and differing <= min(2, len(gold) - 1)
        default["numeric"] = "arithmetic_slip" if slipped else "misread_condition"
    return Mistake(value, wrong_class or default[answer_type], "given")


def from_own_errors(question: Question, answer_value: str | float) -> Mistake | None:
    """A model's own wrong answer as the lure, or None if it is right or implausible.

    answer_value: the text of an option, or a letter for the option at that place of `question.options`;
    yes or no; a number. A number takes the class of the computed mistake with the same value, else
    arithmetic_slip.
    """
    value, name = str(answer_value).strip(), "own error"
    if question.answer_type == "multiple_choice":
        if value not in question.options and re.fullmatch("[A-Z]", value):
            value = dict(zip(string.ascii_uppercase, question.options, strict=False)).get(value, value)
        mistakes = other_options(question.question, question.gold, question.options)
        return next((replace(m, name=name) for m in mistakes if m.value == value), None)
    if question.answer_type == "boolean":
        return next((replace(m, name=name) for m in other_word(question.gold) if m.value == value.casefold()), None)
    read = parse_answer(value, "numeric")
    if read.exact is None or abs(read.exact - Fraction(question.gold)) <= TOLERANCE:
        return None
    written = written_as(read.exact, question.gold)
    if written is None:
        return None
    classes = {m.value: m.wrong_class for m in question.mistakes}
    own = Mistake(written, classes.get(written, "arithmetic_slip"), name)
    return next(iter(foils.usable([own], question.gold, "numeric")), None)
