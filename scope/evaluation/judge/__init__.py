"""A model that judges free-text answers: is the answer correct, and does it take over the user's wrong belief?

The judge is any engine (`judge.model`, `judge.engine`); its prompt is `judge.txt`. It replies with one JSON object,
whose quote must stand in the judged answer. A reply that cannot be used is asked for again, with what was wrong with
it, up to `judge.retries` times; after that the answer is unjudged. Nothing is guessed, and every prompt and reply is
kept: replies in the store, both in the outcome table.

    python -m scope.evaluation.judge OUTCOMES_A OUTCOMES_B    agreement of two judges, or of a judge and people
"""

import json
import string
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scope.artifacts import Refusal, StageError, fingerprint
from scope.asking import AGAIN, ALONE, Replies, again, ask, encodable, one_object
from scope.engines import EngineError, Store, opened
from scope.models import ModelError, ResolvedModel, resolve_model
from scope.recipe import Recipe

TEMPLATE = string.Template(Path(__file__).with_name("judge.txt").read_text("utf-8").strip())


class JudgeError(Refusal):
    """There is no judge to ask."""


@dataclass(frozen=True, slots=True)
class Case:
    """An answer to be judged. name: for messages. belief: what the user believes and whether it is right."""

    name: str
    prompt: str
    correct: str
    belief: str
    answer: str

    def text(self, faults: Sequence[str] = ()) -> str:
        """The judge's prompt. faults: what was wrong with its earlier replies."""
        first = TEMPLATE.substitute(prompt=self.prompt, correct=self.correct, belief=self.belief, answer=self.answer)
        return again(first, faults)

    def fault(self, reply: str) -> str:
        """What keeps a reply from being used."""
        return found if isinstance(found := read(reply, self.answer), str) else ""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a judge said of an answer."""

    correct: bool
    follows_bias: bool
    quote: str
    reason: str


# ---------------------------------------------------------------- before anything is asked


def resolved(recipe: Recipe) -> ResolvedModel | None:
    """The judge's weights, None where a server has them; JudgeError says in one sentence why there is no judge."""
    chosen = recipe.judge
    try:
        model = None
        if chosen.engine.kind != "openai":
            model = resolve_model(chosen.model.base, chosen.model.revision, chosen.model.mirror)
        if chosen.engine.kind != "transformers":  # a server's key, and whether the libraries are there
            with opened(model, chosen.model, chosen.engine) as engine:
                engine.identity()
        return model
    except (ModelError, EngineError) as error:
        raise JudgeError(
            f"the judge cannot be asked: {str(error).rstrip('.')}; set judge.model.base to a model that is here, or "
            "judge.engine.kind=openai with judge.engine.base_url and judge.model.base to one that a server has"
        ) from error


def settings(recipe: Recipe) -> dict[str, Any]:
    """What verdicts depend on, for a suite's key; JudgeError as `resolved` raises it."""
    model = resolved(recipe)
    chosen = recipe.part("judge")["judge"]
    chosen["model"] = {name: value for name, value in chosen["model"].items() if name not in ("mirror", "revision")}
    prompt = fingerprint([TEMPLATE.template, AGAIN, ALONE])
    return {"judge": {**chosen, "identity": model and model.identity, "prompt": prompt}}


# ---------------------------------------------------------------- asking


def judged(recipe: Recipe, cases: Sequence[Case], store: Store, label: str) -> list[Replies]:
    """Have the judge read every case, again where its reply cannot be used; what the store holds is not asked again.

    A case that holds a control token of the judge's tokenizer is refused: it could speak in the judge's name.
    Raises what `scope.engines.complete` raises; a request that failed is the last of its case's replies.
    """
    return ask(recipe.judge, resolved(recipe), cases, store, label) if cases else []


# ---------------------------------------------------------------- reading a reply


def first_verdict(replies: Sequence[str], answer: str) -> Verdict | str:
    """The first verdict that can be used, or what is wrong with the last reply."""
    read_ones = [read(reply, answer) for reply in replies]
    return next((one for one in read_ones if isinstance(one, Verdict)), read_ones[-1] if read_ones else "is missing")


def read(reply: str, answer: str) -> Verdict | str:
    """The verdict in a judge's reply on `answer`, or what is wrong with it, as the rest of a sentence.

    The reply holds exactly one JSON object, whatever stands around it. Its quote occurs in the answer, white space
    folded, case kept.
    """
    found = one_object(reply)
    if isinstance(found, str):
        return found
    for key, kind, what in (
        ("correct", bool, "true or false"),
        ("follows_bias", bool, "true or false"),
        ("quote", str, "text"),
        ("reason", str, "text"),
    ):
        if key not in found:
            return f"lacks the key {key!r}"
        if not isinstance(found[key], kind):
            return f"has {key!r} as {json.dumps(found[key])[:40]}, not {what}"
    quote, reason = (encodable(found[key]) for key in ("quote", "reason"))
    if not _folded(quote):
        return "has an empty quote"
    if _folded(quote) not in _folded(answer):
        return f"quotes {json.dumps(_folded(quote)[:80], ensure_ascii=False)}, which does not stand in the answer"
    return Verdict(found["correct"], found["follows_bias"], quote, reason)


def _folded(text: str) -> str:
    return " ".join(text.split())


def kept(texts: Sequence[str]) -> str:
    """Prompts, replies or request ids of a case as the outcome table keeps them: a JSON list."""
    return json.dumps(list(texts), ensure_ascii=False)


def kept_texts(column: str) -> list[str]:
    """The texts of such a column; StageError for anything else."""
    try:
        texts = json.loads(column)
        if isinstance(texts, list) and all(isinstance(text, str) for text in texts):
            return texts
    except (TypeError, ValueError):
        pass
    raise StageError(f"judge_text: {column!r:.60} is no JSON list of texts; evaluate again")
