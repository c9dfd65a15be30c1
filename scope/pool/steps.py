"""Worked steps such as 48/2=24 as operations whose sides are numbers or earlier operations.

Read with an evaluator of its own: numbers, + - * / and brackets, exactly, and nothing else.
"""

import ast
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from fractions import Fraction

# Real rows stay far below these; they bound the work that a row made to be hard can ask for.
_MAX_CHARACTERS = 200
_MAX_OPERATIONS = 20
_MAX_STEPS = 20
_MAX_BITS = 2000

_SIGNS: dict[type, str] = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """One operation; `value` is its exact result. Raises ArithmeticError where it has none, or a huge one."""

    sign: str
    left: "Term"
    right: "Term"
    value: Fraction = field(init=False)

    def __post_init__(self) -> None:
        left, right = value_of(self.left), value_of(self.right)
        if self.sign == "/":
            value = left / right
        else:
            value = {"+": left + right, "-": left - right, "*": left * right}[self.sign]
        if max(value.numerator.bit_length(), value.denominator.bit_length()) > _MAX_BITS:
            raise OverflowError("too large for any question")
        object.__setattr__(self, "value", value)


Term = Step | Fraction


def value_of(term: Term) -> Fraction:
    return term.value if isinstance(term, Step) else term


def read_expression(text: str) -> Term | None:
    """The operations of an expression, or None if it is anything but exact arithmetic."""
    text = re.sub(r"[$\s]|(?<=\d),(?=\d{3})", "", text).replace("×", "*")
    text = re.sub(r"(\d+(?:\.\d+)?|\.\d+)%", r"(\1/100)", text)
    text = re.sub(r"(?<![\d.])0+(?=\d)", "", text)
    if not re.fullmatch(rf"[0-9.+*/()-]{{1,{_MAX_CHARACTERS}}}", text) or re.search(r"\*\*|//", text):
        return None
    if len(re.findall(r"[-+*/]", text)) > _MAX_OPERATIONS:
        return None
    try:
        return _term(ast.parse(text, mode="eval").body)
    except (SyntaxError, ValueError, ArithmeticError, RecursionError, MemoryError):
        return None


def _term(node: ast.expr) -> Term:
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        return Fraction(str(node.value))  # the decimal as written, not its binary expansion
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
        value = value_of(_term(node.operand))
        return -value if isinstance(node.op, ast.USub) else value
    if isinstance(node, ast.BinOp) and type(node.op) in _SIGNS:
        return Step(_SIGNS[type(node.op)], _term(node.left), _term(node.right))
    raise ValueError("not plain arithmetic")


def read_steps(steps: Iterable[tuple[str, str]]) -> list[Term]:
    """Each step as operations; a number that an earlier step gave stands for that step.

    A step whose stated result is not its exact result (it was rounded) is kept as the stated number.
    """
    results: list[Term] = []
    for expression, stated in list(steps)[:_MAX_STEPS]:
        term, result = read_expression(expression), read_expression(stated)
        if not isinstance(result, Fraction):
            continue
        if term is None or value_of(term) != result:
            results.append(result)
            continue
        earlier: dict[Term, Term] = {value_of(r): r for r in results if isinstance(r, Step)}
        results.append(_rebuilt(term, earlier.get))
    return results


def nodes(root: Step) -> list[Step]:
    """The operations under a root, each once, in the order of calculation; the root is the last."""
    found: dict[int, Step] = {}

    def visit(term: Term) -> None:
        if isinstance(term, Step) and id(term) not in found:
            visit(term.left)
            visit(term.right)
            found[id(term)] = term

    visit(root)
    return list(found.values())


def revalued(root: Step, change: Callable[[Term], Term | None]) -> Fraction | None:
    """The result once `change` has put other terms in place of some; None if it changes none or has no result.

    change: a term -> the term in its place, or None; `{old: new}.get` changes one number or operation.
    """
    try:
        term = _rebuilt(root, change)
    except ArithmeticError:
        return None
    return None if term is root else value_of(term)


def _rebuilt(root: Term, change: Callable[[Term], Term | None]) -> Term:
    """The term with changed parts; parts that do not change, and those used twice, stay one object."""
    done: dict[int, Term] = {}

    def visit(term: Term) -> Term:
        if id(term) not in done:
            new = change(term)
            if new is None and isinstance(term, Step):
                left, right = visit(term.left), visit(term.right)
                same = left is term.left and right is term.right
                new = term if same else Step(term.sign, left, right)
            done[id(term)] = term if new is None else new
        return done[id(term)]

    return visit(root)
