"""MIST: accuracy under the four matched conditions and SC2W (SCOPE paper, Sec. 3.2)."""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

from scope import mining
from scope.artifacts import StageError
from scope.conditions import Condition
from scope.evaluation.paired import Rate, accuracy_ratio, mcnemar, mean_of, repairs_gains_costs, sc2w_ratio
from scope.evaluation.suites.base import Loaded, Row, Suite, graded, right
from scope.items import Completion, Item, as_row, item_from_row, load_quartets
from scope.mining.imported import shared
from scope.prompts import user_prompt
from scope.recipe import Recipe


class Mist(Suite):
    """The recipe's evaluation pool, one request a condition."""

    name = "mist"
    title = "MIST"
    cells = tuple(map(str, Condition))
    headings: ClassVar = {
        "clean": "Clean",
        "misleading": "Misleading",
        "correct": "Correct ctx",
        "irrelevant": "Irrelevant",
        "overall": "Overall",
        "sc2w": "SC2W",
    }
    lower_is_better = frozenset({"sc2w"})
    columns = (
        "provenance",
        "answer_type",
        "channel",
        "wrong_class",
        "topic",
        "source",
        "irrelevant_kind",
        "phrasing_seen",
    )
    item_type = Item

    def load(self, recipe: Recipe) -> Loaded:
        from scope.pool import stage as pool

        items, pool_hash = pool.evaluation(recipe)
        remembered = pool.remembered(recipe)
        seen = [_seen(remembered.seen(item)) if remembered else "unknown" for item in items]
        # The hash stays that of the pool: what a model was trained on is no part of what it is asked.
        marked = [dataclasses.replace(item, phrasing_seen=each) for item, each in zip(items, seen, strict=True)]
        known = seen.count("seen") if remembered else "unknown"
        facts: dict[str, Any] = {"items with a phrasing seen in training": known}
        pools = pool.kept(recipe)
        if instead := pools and pools.stand_ins().get("evaluation"):
            facts["authored items in place of a source's"] = sum(instead.values())
        return Loaded(marked, pool_hash, facts)

    def prompt(self, item: Item, cell: str) -> str:
        return user_prompt(item, Condition(cell))

    def outcome(self, item: Item, cell: str, completion: Completion) -> Row:
        return graded(completion, item.answer_type, item.gold, len(item.options) or None, item.options)

    def rates(self, items: Sequence[Item], rows: Mapping[str, Sequence[Row]]) -> dict[str, Rate]:
        truth = {cell: right(rows[cell]) for cell in self.cells}
        accuracies: dict[str, Rate] = {cell: accuracy_ratio(truth[cell]) for cell in self.cells}
        return {
            **accuracies,
            "overall": mean_of(list(accuracies.values())),
            "sc2w": sc2w_ratio(truth["clean"], truth["misleading"]),
        }

    def needs(self, metric: str) -> tuple[str, ...]:
        if metric == "sc2w":
            return ("clean", "misleading")
        return (metric,) if metric in self.cells else self.cells

    def check_held_out(self, recipe: Recipe, items: Sequence[Item]) -> None:
        """Refuse items that the trained model has seen, by id and by question."""
        quartets = load_quartets(recipe.folder(mining.FOLDER) / "quartets.jsonl")
        if held := shared(quartets, items):
            raise StageError(
                f"pool.evaluation: holds {len(held)} items that were trained on, the first: quartet {min(held)!r}; "
                "mine again with this evaluation pool, which leaves its items out, or evaluate on other items"
            )

    def usable(self, items: Sequence[Item], control_tokens: Iterable[str], recipe: Recipe) -> list[Item]:
        from scope.pool import stage as pool

        return pool.without_control_tokens(list(items), control_tokens, recipe.pool.on_bad_row)

    def against(self, base: Mapping[str, Sequence[Row]], rows: Mapping[str, Sequence[Row]]) -> dict[str, Any]:
        """Repairs, gains and costs in the misleading cell (Fig. 7a), and McNemar's test in each cell."""
        before = {cell: right(base[cell]) for cell in self.cells}
        after = {cell: right(rows[cell]) for cell in self.cells}
        counts = repairs_gains_costs(before["clean"], before["misleading"], after["misleading"])
        tests = {cell: dataclasses.asdict(mcnemar(before[cell], after[cell])) for cell in self.cells}
        return {"repairs": dataclasses.asdict(counts), "mcnemar": tests}

    def row_of(self, item: Item) -> Row:
        return as_row(item)

    def item_of(self, row: Mapping[str, Any]) -> Item:
        return item_from_row(row)


def _seen(field: str) -> str:
    return "seen" if field else "unseen"


SUITE = Mist()
