"""What the suites of MisleadQA have in common: items, prompts, how answers are given and read, units of resampling."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar, Self

from scope.artifacts import StageError, fingerprint
from scope.engines import Choices, Sampling
from scope.evaluation.misleadqa import items as release
from scope.evaluation.misleadqa.labels import LABELS, Bools, Labels, answer_label, read_choice
from scope.evaluation.misleadqa.prompts import LETTERS, Templates, answering, read_templates
from scope.evaluation.suites.base import Loaded, Row, Suite, content_hash, refuse_trained
from scope.items import Completion
from scope.recipe import Recipe
from scope.schema import MisleadQAConfig
from scope.scopes import ScopedItem, from_row

#: The eight conditions; a cell's name is its contexts in the order in which they stand (MisleadQA, Sec. 4.1).
CONTEXTS = {"none": "", **{cell: cell for cell in ("g", "s", "f", "gs", "sg", "gf", "fg")}}
#: A system with fewer clusters in A is not inferred from (App. C.2).
MIN_CLUSTERS = 20


class Diagnostic(Suite):
    """A suite on the items of MisleadQA.

    split: of the items. sample: whether only the diagnostic sample of each source-scope group is asked. min_clusters:
    in A, that a system needs to be inferred from; 0 where A is not known.
    """

    cells = tuple(CONTEXTS)
    labels: ClassVar[tuple[str, ...]] = LABELS
    columns: ClassVar[tuple[str, ...]] = ("group", "source", "dimension")
    item_type = ScopedItem
    averaged = True
    pinned = True
    frozen = True
    seed = 2027
    split: ClassVar[str] = "main"
    sample: ClassVar[bool] = False
    min_clusters: ClassVar[int] = 0

    def __init__(self, chosen: MisleadQAConfig | None = None):
        self.chosen = chosen or MisleadQAConfig()

    @cached_property
    def templates(self) -> Templates:
        return read_templates(self.chosen)

    def using(self, recipe: Recipe) -> Self:
        return type(self)(recipe.evaluation.misleadqa)

    # ------------------------------------------------------------ items

    def load(self, recipe: Recipe) -> Loaded:
        source = recipe.evaluation.items.get("misleadqa")
        if not source:
            raise StageError(
                f"{self.name}: has no items of its own; set evaluation.items.misleadqa to a release folder or a file "
                "of items (docs/misleadqa.md)"
            )
        own = [item for item in release.read_items(source) if item.split == self.split]
        if not own:
            raise StageError(f"{source}: holds no item of the split {self.split}; take {self.name} out of suites")
        per_group = recipe.evaluation.misleadqa.sample_per_group
        items = release.sampled(own, per_group) if self.sample else release.ordered(own)
        facts: dict[str, Any] = {f"items of the split {self.split}": len(own)}
        if self.sample:
            facts[f"sampled, up to {per_group} of each source-scope group"] = len(items)
        if recipe.evaluation.misleadqa.scoring == "text":
            facts["answers"] = "free text, read by scope.answers; the model was not constrained to an option"
        return Loaded(items, content_hash(self, release.ordered(own)), facts)

    def check_held_out(self, recipe: Recipe, items: Sequence[ScopedItem]) -> None:
        """Refuse items whose question the trained model has seen."""
        refuse_trained(self, recipe, {item.id for item in items}, items, "mine and train again without them")

    def settings(self, recipe: Recipe) -> dict[str, Any]:
        scoring = recipe.evaluation.misleadqa.scoring
        texts = [self.templates.answer, self.templates.faithful, self.templates.scope]
        return {"scoring": scoring, "prompts": fingerprint(texts)}

    def item_of(self, row: Mapping[str, Any]) -> ScopedItem:
        return from_row(row)

    def units(self, items: Sequence[ScopedItem]) -> Mapping[str, Sequence[str]]:
        return {
            "cluster": [release.cluster(item) for item in items],
            "dependency group": [item.dependency_group for item in items],
        }

    # ------------------------------------------------------------ requests

    def input_limit(self, recipe: Recipe) -> int:
        return recipe.evaluation.misleadqa.input_limit

    def how(self, cell: str, recipe: Recipe) -> Sampling | Choices:
        return self.constrained(LETTERS, recipe)

    def constrained(self, options: Sequence[str], recipe: Recipe) -> Sampling | Choices:
        """To these options as `evaluation.misleadqa.scoring` says; free text where it says so."""
        scoring = recipe.evaluation.misleadqa.scoring
        return Sampling(recipe.evaluation.max_new_tokens) if scoring == "text" else Choices(tuple(options), scoring)

    def prompt(self, item: ScopedItem, cell: str) -> str:
        return self.asked(self.templates.answer, item, CONTEXTS[cell])

    def asked(self, template: str, item: ScopedItem, contexts: str) -> str:
        """The answering message with contexts named by their letters."""
        return answering(template, item.question, item.options, [getattr(item, name) for name in contexts])

    def outcome(self, item: ScopedItem, cell: str, completion: Completion) -> Row:
        read = read_choice(completion, LETTERS, letters=True)
        return {**read, "label": answer_label(read, item.gold, item.lure)}

    # ------------------------------------------------------------ strata

    def strata(self, items: Sequence[ScopedItem], rows: Mapping[str, Sequence[Row]]) -> Mapping[str, int]:
        labels = Labels(rows)
        found = {"b": int(labels.b().sum())}
        if "g" in rows:
            found |= {"a": int(labels.a().sum()), "a_clusters": clusters_in(items, labels.a())}
        return found

    def enters(self, items: Sequence[ScopedItem], rows: Mapping[str, Sequence[Row]]) -> bool:
        return not self.min_clusters or clusters_in(items, Labels(rows).a()) >= self.min_clusters


def clusters_in(items: Sequence[ScopedItem], stratum: Bools) -> int:
    """How many clusters have an item in the stratum."""
    return len({release.cluster(item) for item, inside in zip(items, stratum, strict=True) if inside})
