"""Completion text -> typed answer, and answer against gold (SCOPE, App. B.1 and the evaluation section).

Deterministic, linear in the length of the text, and total: no string makes `parse_answer` raise.

The model is asked to close with `The final answer is <letter|number|yes or no>`. What counts:

1. Thinking text is no answer; a block left open means there is none (`split_thinking`).
2. The last explicit statement wins (`_CUE`). One with nothing after it, or with a placeholder copied from the
   instruction, is no statement; one that cannot be read means `unparsed`, never the statement before it.
3. Its payload (to the end of the line, or the braces of a box) is read by the grammar of the answer type,
   after undoing markdown, LaTeX, currency, full-width forms and the like (`clean`).
4. Without a statement, a completion that is nothing but a payload counts (`strict` reading).

What is not one clear value is not guessed at: a choice between different values is `ambiguous`, and
everything else outside the grammar (1,5 · 10-15 · 12:30 · 5 hours and 30 minutes) is `unparsed`.
"""

from scope.answers.cleaning import FOLD
from scope.answers.flexible import flexible_answer
from scope.answers.grammar import read_payload
from scope.answers.statements import parse_answer, split_thinking
from scope.answers.values import ANSWER_TYPES, TOLERANCE, Answer, check_type, same_answer

__all__ = [
    "ANSWER_TYPES",
    "TOLERANCE",
    "Answer",
    "flexible_answer",
    "is_correct",
    "parse_answer",
    "render_answer",
    "same_answer",
    "split_thinking",
]


def is_correct(answer: Answer, gold: str, answer_type: str) -> bool:
    """Whether an answer equals the gold: same letter, same yes/no, or numbers at most 1e-4 apart.

    gold: "C", "25.4", "1,234", "3/4", "yes", ... read by the grammar of the type; ValueError if it cannot be.
    The difference of two numbers is taken exactly, of the decimals as written. Unparsed is never correct.
    """
    return same_answer(answer, _read_value(gold, answer_type, "gold"), answer_type)


def render_answer(value: str | float, answer_type: str) -> str:
    """The closing sentence for a value, `The final answer is X.`; `parse_answer` reads the same value back.

    value: as in `Answer.value`, or a gold string. Raises ValueError if it is no value of that type.
    """
    answer = _read_value(str(value), answer_type, "value")
    shown = answer.value
    if isinstance(shown, float):
        shown = f"{int(shown)}" if shown.is_integer() and abs(shown) < 1e16 else repr(shown)
    return f"The final answer is {shown}."


def _read_value(text: str, answer_type: str, what: str) -> Answer:
    check_type(answer_type)
    answer = read_payload(text.translate(FOLD) if isinstance(text, str) else "", answer_type, None, strict=True)
    if answer.status != "ok":
        expected = dict(zip(ANSWER_TYPES, ("a letter A to Z", "one finite number", "yes or no"), strict=True))
        raise ValueError(f"{what} {text!r} is not a {answer_type} answer: expected {expected[answer_type]}")
    return answer
