"""What the suites of RAG-Stress have in common: items, prompts, how answers are read, the closed-book split."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar, Self

from scope.artifacts import StageError, fingerprint
from scope.engines import Choices, Sampling
from scope.evaluation.ragstress import items as release
from scope.evaluation.ragstress.labels import CLOSED, LABELS, Answers, read_answer
from scope.evaluation.ragstress.prompts import Templates, read_templates
from scope.evaluation.suites.base import Draws, Loaded, Row, Suite, content_hash, refuse_trained
from scope.evidence import EvidenceItem, as_row, from_row
from scope.items import Completion
from scope.prompts import Chat
from scope.recipe import Recipe
from scope.schema import RagStressConfig

#: Of the audit's resamples for the first system, and how far apart two systems' seeds are (App. C.2).
SEED, BETWEEN_SYSTEMS = 20260916, 2
#: Resamples of the audit's contrasts, and of the word positions' (Sec. 3.3).
AUDIT, POSITION = 20_000, 2_000
#: (panel, row or column) -> what is added to a system's seed (App. C.2).
OFFSETS = {
    ("positions", "strict"): 1,
    ("positions", "soft"): 2,
    ("interaction", "strict"): 1,
    ("interaction", "soft"): 2,
    ("interaction", "interaction"): 3,
    ("gold", "clean"): 4,
    ("gold", "edited"): 5,
    ("gold", "interaction"): 6,
}


class Stress(Suite):
    """A suite on the items of RAG-Stress.

    places: where the answer or the target stands, three of them: first, middle, last. clauses: of each policy that the
    suite needs. grounded: whether it asks with passages at all.
    """

    labels: ClassVar[tuple[str, ...]] = LABELS
    columns: ClassVar[tuple[str, ...]] = ("source", "language")
    item_type = EvidenceItem
    averaged = True
    pinned = True
    frozen = True
    robust = frozenset(
        {"positions", "audit", "interaction", "gold", "control", "transitions", "validated", "versions", "runs"}
    )
    seed = SEED
    replicates = AUDIT
    places: ClassVar[tuple[str, ...]] = ()
    clauses: ClassVar[int] = 1
    grounded: ClassVar[bool] = True

    def __init__(self, settings: RagStressConfig | None = None):
        self.chosen = settings or RagStressConfig()

    @cached_property
    def templates(self) -> Templates:
        return read_templates(self.chosen.prompts, self.clauses)

    def using(self, recipe: Recipe) -> Self:
        return type(self)(recipe.evaluation.ragstress)

    # ------------------------------------------------------------ items

    def load(self, recipe: Recipe) -> Loaded:
        source = recipe.evaluation.items.get("ragstress")
        if not source:
            raise StageError(
                f"{self.name}: has no items of its own; set evaluation.items.ragstress to a release folder, or to a "
                "file of items or of questions with answers and documents (docs/rag_stress.md)"
            )
        every, facts = release.read_items(source, recipe.pool_seed, recipe.release)
        items = release.ordered(every)
        if self.grounded and (without := sum(not item.layouts for item in items)):
            facts["items without passages, which ragstress_closed asks"] = without
            items = [item for item in items if item.layouts]
        items, left_out = self._with_every_cell(items, recipe.evaluation.complete_only)
        if left_out:
            facts["items left out, for they have not every cell"] = left_out
        if not items:
            raise StageError(f"{source}: holds no item that {self.name} can ask; name another file or release")
        facts["intervals of a system's own rates"] = (
            f"of the questions of the rate's stratum, {AUDIT:,} resamples ({POSITION:,} of positions), seed {SEED} + "
            f"{BETWEEN_SYSTEMS} a system + the contrast's offset; of means and differences, of all questions"
        )
        facts["matching"] = f"{recipe.evaluation.ragstress.matching}; the audit's panels count exact answers"
        return Loaded(items, content_hash(self, release.ordered(every)), facts)

    def _with_every_cell(self, items: list[EvidenceItem], complete_only: bool) -> tuple[list[EvidenceItem], int]:
        """The items that can be asked in all cells, and how many cannot; refused unless they may be left out."""
        kept = [item for item in items if self.has_every_cell(item)]
        without = len(items) - len(kept)
        if without and not complete_only:
            first = next(item for item in items if not self.has_every_cell(item))
            raise StageError(
                f"{self.name}: {without} of {len(items)} items lack passages or a layout for some of its cells, the "
                f"first: {first.id}; a paired rate needs all: take them out, or set evaluation.complete_only=true"
            )
        return kept, without

    def has_every_cell(self, item: EvidenceItem) -> bool:
        """Whether an item can be asked in all of the suite's cells."""
        return True

    def check_held_out(self, recipe: Recipe, items: Sequence[EvidenceItem]) -> None:
        """Refuse items whose question the trained model has seen."""
        refuse_trained(self, recipe, {item.id for item in items}, items, "mine and train again without them")

    def settings(self, recipe: Recipe) -> dict[str, Any]:
        chosen = recipe.evaluation.ragstress
        texts = self.templates
        return {
            "prompts": fingerprint([getattr(texts, name) for name in texts.__slots__]),
            "matching": chosen.matching,
            "token caps": [chosen.max_new_tokens, chosen.long_new_tokens],
        }

    def row_of(self, item: EvidenceItem) -> Row:
        return as_row(item)

    def item_of(self, row: Mapping[str, Any]) -> EvidenceItem:
        return from_row(row)

    # ------------------------------------------------------------ requests

    def input_limit(self, recipe: Recipe) -> int:
        return recipe.evaluation.ragstress.input_limit

    def how(self, cell: str, recipe: Recipe) -> Sampling | Choices:
        return Sampling(recipe.evaluation.ragstress.max_new_tokens)

    def prompt(self, item: EvidenceItem, cell: str) -> Chat:
        if cell == CLOSED:
            return self.templates.closed_book(item)
        arm, policy, place, *version = cell.split("_")
        number = int(version[0].removeprefix("v")) if version and version[0].startswith("v") else 0
        return self.templates.grounded(item, self.passages(item, arm, place), policy, number)

    def passages(self, item: EvidenceItem, arm: str, place: str) -> Any:
        """The passages of a cell: the target in a layout, or in a slot."""
        return item.passages(arm, place)

    def outcome(self, item: EvidenceItem, cell: str, completion: Completion) -> Row:
        return read_answer(item, completion, self.chosen.matching)

    def rescored(self, item: EvidenceItem, row: Row, completion: Completion) -> Row:
        return self.outcome(item, row["cell"], completion)

    # ------------------------------------------------------------ numbers

    def answers(self, rows: Mapping[str, Sequence[Row]], column: str = "label") -> Answers:
        """One system's labels."""
        return Answers(rows, self.places, column)

    def strata(self, items: Sequence[EvidenceItem], rows: Mapping[str, Sequence[Row]]) -> Mapping[str, int]:
        answers = self.answers(rows)
        exact = int(self.answers(rows, "exact").k().sum())
        return {"k": int(answers.k().sum()), "u": int(answers.u().sum()), "k_exact": exact}

    def draws(self, where: Sequence[str], systems: Sequence[str]) -> Draws | None:
        """Of one system alone: questions of its own stratum, with the system's seed and the contrast's offset.

        On the common strata of all systems too (App. C.5): the same contrasts, of fewer questions.
        """
        if where[0] == "across":
            return Draws(_seed(systems, where[-1]), AUDIT)
        if where[0] != "systems":
            return None
        panel, row = (where[3], where[4]) if where[2] == "panels" else ("", "")
        offset = OFFSETS.get((panel, row), OFFSETS.get((panel, where[-1]), 0))
        return Draws(_seed(systems, where[1]) + offset, POSITION if panel == "positions" else AUDIT)


def _seed(systems: Sequence[str], system: str) -> int:
    return SEED + BETWEEN_SYSTEMS * list(systems).index(system)
