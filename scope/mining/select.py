"""One item's completions -> a quartet, or the reason it is dropped (SCOPE paper, Sec. 4 and App. I.3)."""

import re
import tomllib
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from scope.answers import Answer, is_correct, parse_answer, split_thinking
from scope.artifacts import Refusal
from scope.conditions import Condition
from scope.items import Completion, Item, Quartet
from scope.prompts import user_prompt

#: Why an item is dropped, in the order of the checks.
REASONS = {
    "shared_with_evaluation": "also in the evaluation pool",
    "not_misled": "misleading answer is right",
    "rejected_truncated": "misleading response cut by the token cap",
    "rejected_malformed": "misleading response empty or with control tokens",
    "rejected_unparsed": "misleading answer cannot be read",
    "rejected_not_signal_following": "misleading answer is wrong, but not the suggested one",
    "no_fallback": "clean response not usable, and mining.fallback=none",
    "diagnostic_truncated": "clean not usable; diagnostic response cut by the token cap",
    "diagnostic_malformed": "clean not usable; diagnostic response empty or with control tokens",
    "diagnostic_unparsed": "clean not usable; diagnostic answer cannot be read",
    "diagnostic_wrong": "clean not usable; diagnostic answer is wrong",
    "diagnostic_leaked": "clean not usable; diagnostic response gives the note away",
    "identical": "chosen and rejected are the same text or answer",
}


@dataclass(frozen=True, slots=True)
class Judged:
    """A completion with its parse. `fault` is None if it may be trained on: whole, well formed, readable."""

    completion: Completion
    answer: Answer
    correct: bool
    fault: str | None


def judge(item: Item, completion: Completion, cap: int, control_tokens: Sequence[str]) -> Judged:
    """Parse a completion; `cap` is the token cap it was generated under."""
    answer = parse_answer(completion.text, item.answer_type, len(item.options) or None)
    correct = is_correct(answer, item.gold, item.answer_type)
    if completion.finish_reason != "stop" or completion.n_tokens >= cap:
        fault: str | None = "truncated"
    elif not well_formed(completion.text, control_tokens):
        fault = "malformed"
    elif answer.status != "ok":
        fault = "unparsed"
    else:
        fault = None
    return Judged(completion, answer, correct, fault)


def well_formed(text: str, control_tokens: Sequence[str]) -> bool:
    """Visible text that holds neither control tokens nor broken characters."""
    visible = split_thinking(text)[1]
    if visible is None or not visible.strip() or "\ufffd" in text:
        return False
    return not any(token in visible for token in control_tokens if token.strip())


class LeaksError(Refusal, ValueError):
    """A list of leak patterns that cannot be used."""


def load_leaks(path: Path) -> list[tuple[re.Pattern[str], str]]:
    """(expression, example) of every leak in a TOML file; LeaksError names a bad one."""
    try:
        entries = tomllib.loads(path.read_text("utf-8"))["leak"]
        return [(re.compile(entry["pattern"]), entry["example"]) for entry in entries]
    except (OSError, ValueError, KeyError, TypeError, re.error) as error:
        raise LeaksError(f"{path}: is not a list of [[leak]] entries with pattern and example ({error})") from error


def folded(text: str) -> str:
    """Lower case without invisible or full-width letters, every run of other characters one space."""
    plain = "".join(c for c in unicodedata.normalize("NFKC", text) if unicodedata.category(c) != "Cf")
    return " ".join(re.sub(r"[^\w]|_", " ", plain.casefold()).split())


def leaks(text: str, patterns: Sequence[tuple[re.Pattern[str], str]]) -> bool:
    """True if the text gives a private note away."""
    flat = folded(text)
    return any(pattern.search(flat) for pattern, _ in patterns)


def rejected_fault(item: Item, misleading: Judged, rejected: str) -> str | None:
    """Why the misleading response cannot be the rejected one; None if it can."""
    if misleading.fault is None or misleading.fault == "truncated":
        if misleading.fault:
            return "rejected_truncated"
        if misleading.correct:
            return "not_misled"
        if rejected == "signal_following" and not is_correct(misleading.answer, item.wrong, item.answer_type):
            return "rejected_not_signal_following"
        return None
    return f"rejected_{misleading.fault}"


def usable_clean(clean: Judged) -> bool:
    """True if the clean response can be the chosen one."""
    return clean.fault is None and clean.correct


def diagnostic_fault(diagnostic: Judged, patterns: Sequence[tuple[re.Pattern[str], str]]) -> str | None:
    """Why the diagnostic response cannot be the chosen one; None if it can."""
    if diagnostic.fault:
        return f"diagnostic_{diagnostic.fault}"
    if not diagnostic.correct:
        return "diagnostic_wrong"
    return "diagnostic_leaked" if leaks(diagnostic.completion.text, patterns) else None


def make_quartet(item: Item, chosen: Judged, source: str, rejected: Judged) -> Quartet | None:
    """The pair under its four prompts; None if the two responses say the same."""
    same_text = chosen.completion.text.split() == rejected.completion.text.split()
    if same_text or chosen.answer.value == rejected.answer.value:
        return None
    return Quartet(
        item_id=item.id,
        source=item.source,
        answer_type=item.answer_type,
        channel=item.channel,
        gold=item.gold,
        **{f"prompt_{condition}": user_prompt(item, condition) for condition in Condition},
        chosen=chosen.completion.text,
        rejected=rejected.completion.text,
        chosen_source=source,
        chosen_answer=str(chosen.answer.value),
        rejected_answer=str(rejected.answer.value),
        chosen_request=chosen.completion.request_id,
        rejected_request=rejected.completion.request_id,
    )
