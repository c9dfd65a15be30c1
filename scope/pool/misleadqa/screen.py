"""Screening by a model: six criteria of every item, pass, fail or uncertain with a reason (MisleadQA, App. B.1).

The model is the recipe's judge (`judge.model`, `judge.engine`), through any engine. It only reports: a `fail` flags the
item, and a person decides in `decisions.csv`, which `release.decisions` then applies. Every prompt and reply is kept.
"""

import json
import re
import string
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scope import artifacts
from scope.asking import Replies, again, ask, encodable, one_object
from scope.engines import Store
from scope.engines.base import known_as
from scope.models import resolve_model
from scope.pool.misleadqa import stage
from scope.pool.misleadqa.decisions import decision_sheet
from scope.pool.questions import PoolError
from scope.pool.release import folder_of
from scope.recipe import Recipe, asset
from scope.scopes import LETTERS, ScopedItem

CRITERIA = ("source_support", "explicit_scopes", "single_change", "unique_answer", "edits_and_fluency", "distractors")
VERDICTS = ("pass", "fail", "uncertain")


@dataclass(frozen=True, slots=True)
class Case:
    """An item and the prompt about it."""

    item: ScopedItem
    prompt: str

    @property
    def name(self) -> str:
        return self.item.id

    def text(self, faults: Sequence[str] = ()) -> str:
        return again(self.prompt, faults)

    def fault(self, reply: str) -> str:
        return found if isinstance(found := read(reply), str) else ""


def run(recipe: Recipe) -> None:
    """Screen the recipe's frozen release; writes `screening.jsonl` and, for a person, `decisions.csv`."""
    release = stage.frozen(recipe)
    template = template_of(asset(recipe.release.screen_prompt))
    cases = [Case(item, prompt(template, item)) for item in release.items]
    chosen = recipe.judge
    local = chosen.engine.kind != "openai"
    model = resolve_model(chosen.model.base, chosen.model.revision, chosen.model.mirror) if local else None
    name = known_as(chosen.model, chosen.engine)
    folder = folder_of(recipe).parent / "screening" / re.sub(r"[^\w.-]+", "_", name)
    store = Store(recipe.folder("store") / "completions.sqlite")
    rows = [
        as_row(case, found, release.digest, name)
        for case, found in zip(cases, ask(chosen, model, cases, store, "screen"), strict=True)
    ]
    artifacts.write_jsonl(folder / "screening.jsonl", rows)
    decisions = folder / "decisions.csv"
    if not decisions.exists():  # never over what a person has written
        artifacts.write_text(decisions, decision_sheet(rows))
    counts = Counter(row["status"] for row in rows)
    print(f"{name}: {len(rows)} items, {counts['flagged']} flagged, {counts['unread']} without a usable reply")
    for criterion in CRITERIA:
        found = Counter((row["verdicts"].get(criterion) or {}).get("verdict", "unread") for row in rows)
        print(f"  {criterion}: " + ", ".join(f"{n} {verdict}" for verdict, n in sorted(found.items())))
    print(f"outputs: {folder / 'screening.jsonl'}; a person decides in {decisions}")


def template_of(path: Path) -> string.Template:
    """The prompt's template; PoolError where the file is missing or lacks the item."""
    try:
        template = string.Template(path.read_text("utf-8").strip())
    except (OSError, UnicodeDecodeError) as error:
        said = f"{path}: the screening prompt cannot be read ({error}); correct release.screen_prompt"
        raise PoolError(said) from error
    missing = {"question", "options", "g", "s", "f"} - set(template.get_identifiers())
    if missing or not template.is_valid():
        raise PoolError(f"{path}: lacks ${min(missing, default='')}, or has a stray $; write it as screen.txt does")
    return template


def prompt(template: string.Template, item: ScopedItem) -> str:
    """The prompt about an item: its texts, key, scopes and what its source records."""
    facts = [("G", item.provenance.get("gold", {})), ("S", item.provenance.get("lure", {}))]
    facts += [("other option", fact) for fact in item.provenance.get("distractors", ())]
    lines = [f"{name}: {json.dumps(fact, ensure_ascii=False)}" for name, fact in facts]
    return template.safe_substitute(
        question=item.question,
        options="\n".join(f"{letter}. {text}" for letter, text in zip(LETTERS, item.options, strict=True)),
        gold=item.gold,
        lure=item.lure,
        g=item.g,
        s=item.s,
        f=item.f,
        target="; ".join(f"{name}: {text}" for name, text in item.target.items()),
        alternative="; ".join(f"{name}: {text}" for name, text in item.alternative.items()),
        dimension=item.dimension,
        facts="\n".join(lines),
    )


def read(reply: str) -> dict[str, dict[str, str]] | str:
    """Criterion -> verdict and reason in a reply; or what is wrong with it, as the rest of a sentence."""
    found = one_object(reply)
    if isinstance(found, str):
        return found
    verdicts = {}
    for name in CRITERIA:
        given = found.get(name)
        if not isinstance(given, dict):
            return f"lacks an object for {name!r}"
        verdict, reason = given.get("verdict"), given.get("reason")
        if verdict not in VERDICTS:
            return f"has {json.dumps(verdict)[:40]} as verdict of {name!r}, not pass, fail or uncertain"
        if not isinstance(reason, str) or not reason.strip():
            return f"gives no reason for {name!r}"
        verdicts[name] = {"verdict": str(verdict), "reason": encodable(reason)}
    return verdicts


def as_row(case: Case, found: Replies, release: str, model: str) -> dict[str, Any]:
    """A line of `screening.jsonl`. status: `flagged` by a fail, `unread` without a usable reply, else `clear`."""
    verdicts = read(found.replies[-1].text) if found.replies else found.refused
    read_ones = verdicts if isinstance(verdicts, dict) else {}
    failed = [name for name, each in read_ones.items() if each["verdict"] == "fail"]
    return {
        "item_id": case.item.id,
        "group": case.item.group,
        "release": release,
        "model": model,
        "status": "flagged" if failed else "clear" if read_ones else "unread",
        "failed": failed,
        "verdicts": read_ones,
        "fault": "" if read_ones else str(verdicts),
        "prompts": found.prompts,
        "replies": [reply.text for reply in found.replies],
        "request_ids": [reply.request_id for reply in found.replies],
    }
