"""Item x cell -> user message: three templates of our own wording, each a text file that a recipe may replace.

A template names its fields in braces, each once. `{options}` is a line an option, letter, full stop, text; `{contexts}`
is every context after a blank line, in the cell's order and without any label, and nothing where there is none
(MisleadQA, App. C.1).
"""

from collections.abc import Sequence
from dataclasses import dataclass

from scope.artifacts import StageError
from scope.prompts import fields_of
from scope.recipe import asset
from scope.schema import MisleadQAConfig
from scope.scopes import ABSTENTION

#: Letters of the options; the last is always `ABSTENTION`.
LETTERS = tuple("ABCDE")
#: What a scope judgement may say; the first is right of G and F, the second of S (Sec. 6.1).
APPLICABLE, NOT_APPLICABLE, CANNOT = "Applicable", "Not applicable", "Cannot determine"
JUDGEMENTS = (APPLICABLE, NOT_APPLICABLE, CANNOT)


@dataclass(frozen=True, slots=True)
class Templates:
    """The texts of the three templates."""

    answer: str
    faithful: str
    scope: str


def read_templates(chosen: MisleadQAConfig) -> Templates:
    """The templates of these settings; StageError names a file that cannot be read or has other fields."""
    answering, judging = ("question", "options", "contexts"), ("question", "options", "context")
    return Templates(
        _read("prompt", chosen.prompt, answering),
        _read("faithful_prompt", chosen.faithful_prompt, answering),
        _read("scope_prompt", chosen.scope_prompt, judging),
    )


def _read(key: str, name: str, fields: Sequence[str]) -> str:
    path = asset(name)
    try:
        text = path.read_text("utf-8").strip()
        used = fields_of(text)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise StageError(
            f"{path}: the prompt cannot be read ({reason}); set evaluation.misleadqa.{key} to a UTF-8 text file that "
            f"holds {_listed(fields)}"
        ) from error
    if sorted(used) != sorted((field, "", None) for field in fields):
        shown = _listed([field for field, _, _ in used]) or "none"
        raise StageError(
            f"{path}: its fields are {shown}; the template of evaluation.misleadqa.{key} holds {_listed(fields)}, each "
            "once and without a format (write {{ and }} for braces of the text)"
        )
    return text


def _listed(fields: Sequence[str]) -> str:
    return ", ".join(f"{{{field}}}" for field in fields)


def answering(template: str, question: str, options: Sequence[str], contexts: Sequence[str]) -> str:
    """The message that asks for a letter. options: the texts of A to D."""
    after = "".join(f"\n\n{context}" for context in contexts)
    return template.format(question=question, options=option_lines(options), contexts=after)


def judging(template: str, question: str, options: Sequence[str], context: str) -> str:
    """The message that asks whether a context is in scope."""
    return template.format(question=question, options=option_lines(options), context=context)


def option_lines(options: Sequence[str]) -> str:
    """`A. text` to `E. Insufficient information`, a line each."""
    return "\n".join(f"{letter}. {text}" for letter, text in zip(LETTERS, [*options, ABSTENTION], strict=True))


def rotated(options: Sequence[str], by: int) -> list[str]:
    """Cyclic rotation of A to D: by 1, (a, b, c, d) stands as (b, c, d, a) (App. D.6)."""
    return [*options[by:], *options[:by]]


def rotated_letter(letter: str, by: int) -> str:
    """Where the text of an original letter A to D stands then."""
    return LETTERS[(LETTERS.index(letter) - by) % 4]
