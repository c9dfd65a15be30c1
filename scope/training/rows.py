"""Quartets -> the rows of a run, tokenised and in the plan's order."""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from scope.artifacts import StageError
from scope.conditions import Condition
from scope.items import Item, Quartet
from scope.mixture import realised_masses
from scope.pairs import arm_masses, construction, partners, passes, run_plan
from scope.recipe import Recipe
from scope.training.batch import Batch
from scope.training.tokenise import TokenisedQuartet, fit, tokenise_all

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Prepared:
    """The quartets a run draws from, each as its row under every condition it can have, and what became of the others.

    cut: quartets with a prompt cut from the left. dropped: longer than `max_length` allows. alone: without
    another quartet of their answer type whose pair they could take.
    """

    quartets: list[dict[Condition, Row]]
    cut: int
    dropped: int
    alone: int

    def prompts(self) -> list[list[list[int]]]:
        """The token ids of each quartet's prompts."""
        return [[row["prompt_ids"] for row in quartet.values()] for quartet in self.quartets]


def prepare(recipe: Recipe, tokenizer: Any, quartets: Sequence[Quartet], items: Sequence[Item] = ()) -> Prepared:
    """Tokens, pairs and `max_length`, decided quartet by quartet.

    items: the mined ones, which OPSD's note is made for.
    """
    settings = recipe.trainer
    kept, ids, _ = tokenise_all(
        tokenizer, quartets, recipe.model.chat_template_kwargs, settings.max_length, settings.overlong
    )
    usable: list[dict[Condition, Row]]
    if settings.kind == "opsd":
        from scope.training.opsd import distillation_rows

        usable = [{Condition.MISLEADING: row} for row in distillation_rows(recipe, tokenizer, kept, items)]
        cut, alone = 0, 0
    else:
        partner = partners([quartet.answer_type for quartet in kept], recipe.pairs, recipe.training_seed)
        paired = [
            (kept[own], kept[other], tokens)
            for own, other in partner.items()
            if (tokens := _with_pair(ids[own], ids[other], settings.max_length, settings.overlong))
        ]
        usable = [{c: _row(own, other, tokens, c) for c in Condition} for own, other, tokens in paired]
        cut, alone = sum(tokens.cut > 0 for *_, tokens in paired), len(kept) - len(partner)
    prepared = Prepared(usable, cut, len(quartets) - alone - len(usable), alone)
    if not usable:
        raise StageError(
            f"none of the {len(quartets)} quartets can be used: {prepared.dropped} exceed trainer.max_length="
            f"{settings.max_length}, raise it; {alone} have no other quartet of their answer type to take a pair from"
        )
    return prepared


def planned(recipe: Recipe, prepared: Prepared, batch: Batch) -> tuple[list[Row], dict[str, Any]]:
    """The run's rows as the trainer takes them, in order, and the facts worth keeping about them."""
    pairs, n = construction(recipe), len(prepared.quartets)
    plan = run_plan(n, pairs, batch.rows, recipe.training_seed)
    rows = [{"row": number, **prepared.quartets[index][condition]} for number, (index, condition) in enumerate(plan)]
    facts = {
        "quartets": n,
        "overlong": {"cut": prepared.cut, "dropped": prepared.dropped},
        "alone": prepared.alone,
        "masses": {str(c): m for c, m in arm_masses(pairs).items()},
        "realised_masses": {str(c): m for c, m in realised_masses(plan).items()},
        "passes": passes(n, pairs, batch.rows),
        "batch": dataclasses.asdict(batch),
    }
    return rows, facts


def planned_rows(
    recipe: Recipe, tokenizer: Any, quartets: Sequence[Quartet], batch: Batch, items: Sequence[Item] = ()
) -> tuple[list[Row], dict[str, Any]]:
    """`prepare` and `planned` in one."""
    return planned(recipe, prepare(recipe, tokenizer, quartets, items), batch)


def _with_pair(
    own: TokenisedQuartet, other: TokenisedQuartet, max_length: int, overlong: str
) -> TokenisedQuartet | None:
    """Own prompts, the other's pair, within `max_length`."""
    if own is other:
        return own
    return fit(dataclasses.replace(own, chosen=other.chosen, rejected=other.rejected), max_length, overlong)


def _row(own: Quartet, other: Quartet, tokens: TokenisedQuartet, condition: Condition) -> Row:
    return {
        "item_id": own.item_id,
        "pair_id": other.item_id,
        "condition": str(condition),
        "chosen_source": other.chosen_source,
        "prompt_ids": tokens.prompts[condition],
        "chosen_ids": tokens.chosen,
        "rejected_ids": tokens.rejected,
    }


def plan_line(row: Row) -> Row:
    """A row as plan.jsonl keeps it: the pair's item only where it is another's."""
    line = {name: row[name] for name in ("row", "item_id", "condition")}
    return line | ({"pair_id": row["pair_id"]} if row["pair_id"] != row["item_id"] else {})
