"""What a suite declares: its items, its cells, and what a completion's outcome is called.

Everything else is shared: requests, store, outcome table, bootstrap, slices, reports. `docs/add_a_suite.md` walks
through a new one.
"""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any, ClassVar

from scope import mining
from scope.answers import Answer, flexible_answer, is_correct, parse_answer
from scope.artifacts import StageError, fingerprint
from scope.engines import Choices, Sampling
from scope.evaluation.paired import Rate
from scope.items import Completion, load_quartets
from scope.mining.imported import asking
from scope.prompts import Chat, Prompt
from scope.recipe import Recipe

Row = dict[str, Any]
#: Row -> column -> rate: a table of a suite's own, for one system.
Panel = Mapping[str, Mapping[str, Rate]]

#: Outcome labels of answers that have a gold answer. Only `right` counts as right; all stay in the denominator, but
#: for `failed`: a request without an answer is missing, not wrong.
LABELS = ("right", "wrong", "ambiguous", "unparsed", "truncated", "failed")


@dataclass(frozen=True, slots=True)
class Loaded:
    """A suite's items for one run.

    items: each with an `id` of its own. key: content hash of the items. facts: what a reader of the results wants
    to know about them, plain data (drawn of how many, how many were excluded and why).
    """

    items: list[Any]
    key: str
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Draws:
    """Resamples of a number's own: of the items that it is of alone, drawn in the order of their ids."""

    seed: int
    replicates: int


class Suite:
    """A benchmark. Subclass it, fill in the class attributes and the four methods without a body.

    name: in `suites=[...]`, and of the folder below `evaluate/`. title: for a reader.
    cells: how each item becomes requests; the outcome table has one row per (system, item, cell).
    labels: every outcome label, `failed` among them.
    headings: metric -> column heading of the tables, in order; `rates` returns exactly these metrics.
    lower_is_better: metrics of which less is better.
    columns: item attributes that results are broken down by and `slice.COLUMN=VALUE` selects by.
    item_type: the dataclass of an item, for `items.jsonl`.
    options: empty for free text; else the answers are constrained to these strings and scored, not generated.

    Of suites with several metrics to infer from:
    primary: metrics whose intervals hold jointly (Bonferroni), in `headings` and in panels alike.
    panels_of: panel -> its title; `panels` returns these. words: row or column of a panel -> what a reader sees.
    robust: panels that are resampled by every unit of `units`, not by the first alone.
    averaged: whether rates are averaged over systems, each with equal weight.
    sliced: the metric that the slice table and figure show; empty: SC2W where there is one, else the first.
    seed, replicates: of the resamples; None takes the recipe's.
    across_of: table over all systems -> its title; `across` returns these.
    frozen: whether the items are a release, so that two evaluations compare only on the same one.
    pinned: whether the chat template may neither print the day nor let the model think.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    cells: ClassVar[tuple[str, ...]]
    labels: ClassVar[tuple[str, ...]] = LABELS
    headings: ClassVar[Mapping[str, str]]
    lower_is_better: ClassVar[frozenset[str]] = frozenset()
    columns: ClassVar[tuple[str, ...]] = ()
    item_type: ClassVar[type]
    options: ClassVar[tuple[str, ...]] = ()
    primary: ClassVar[frozenset[str]] = frozenset()
    panels_of: ClassVar[Mapping[str, str]] = {}
    words: ClassVar[Mapping[str, str]] = {}
    robust: ClassVar[frozenset[str]] = frozenset()
    averaged: ClassVar[bool] = False
    sliced: ClassVar[str] = ""
    seed: ClassVar[int | None] = None
    replicates: ClassVar[int | None] = None
    across_of: ClassVar[Mapping[str, str]] = {}
    pinned: ClassVar[bool] = False
    frozen: ClassVar[bool] = False

    # ------------------------------------------------------------ to be written

    def load(self, recipe: Recipe) -> Loaded:
        """The recipe's items. A Refusal says in one sentence what is wrong with them."""
        raise NotImplementedError

    def prompt(self, item: Any, cell: str) -> Prompt:
        """What is sent for an item in a cell: a user message, or a `Chat` of a system message and one."""
        raise NotImplementedError

    def outcome(self, item: Any, cell: str, completion: Completion) -> Row:
        """`parse_status`, `value` (text or None) and `label` of a completion, and any columns of the suite's own."""
        raise NotImplementedError

    def rates(self, items: Sequence[Any], rows: Mapping[str, Sequence[Row]]) -> dict[str, Rate]:
        """Metric -> rate. rows: cell -> the outcome rows of one system, in the order of `items`."""
        raise NotImplementedError

    # ------------------------------------------------------------ usually left as they are

    def using(self, recipe: Recipe) -> "Suite":
        """The suite as a recipe wants it asked: its prompts, how answers are constrained."""
        return self

    def how(self, cell: str, recipe: Recipe) -> Sampling | Choices:
        """How a cell is answered: generated, or one of given options."""
        return Choices(self.options) if self.options else Sampling(recipe.evaluation.max_new_tokens)

    def input_limit(self, recipe: Recipe) -> int:
        """Most tokens of a rendered prompt; 0: the model's window. A longer one is refused, never cut."""
        return 0

    def units(self, items: Sequence[Any]) -> Mapping[str, Sequence[str]]:
        """Unit of resampling -> label of each item; the first is that of all intervals. Without any: the items."""
        return {}

    def strata(self, items: Sequence[Any], rows: Mapping[str, Sequence[Row]]) -> Mapping[str, int]:
        """Items of one system in each stratum that its rates are conditional on."""
        return {}

    def panels(self, items: Sequence[Any], rows: Mapping[str, Sequence[Row]]) -> Mapping[str, Panel]:
        """Tables of one system beside `rates`; they are withheld while any of its requests has failed."""
        return {}

    def draws(self, where: Sequence[str], systems: Sequence[str]) -> Draws | None:
        """How a number is resampled, if not like all others. where: the keys that lead to it in `results.json`."""
        return None

    def across(self, items: Sequence[Any], rows: Mapping[str, Mapping[str, Sequence[Row]]]) -> Mapping[str, Panel]:
        """Tables of what needs all systems at once. rows: system -> cell -> outcome rows."""
        return {}

    def remarks(self, items: Sequence[Any], rows: Mapping[str, Mapping[str, Sequence[Row]]]) -> dict[str, Any]:
        """What is said of all systems beside rates, plain data: a reader sees `key: value`."""
        return {}

    def enters(self, items: Sequence[Any], rows: Mapping[str, Sequence[Row]]) -> bool:
        """Whether a system has enough units to infer from; one that has not gets no interval and joins no mean."""
        return True

    def needs(self, metric: str) -> tuple[str, ...]:
        """The cells a metric is computed from; a failed request in one of them withholds it."""
        return self.cells

    def settings(self, recipe: Recipe) -> dict[str, Any]:
        """What the results depend on beside items, systems, engine and token cap: what it is called -> its value.

        Two evaluations are compared only where these agree; a difference is refused by its name.
        """
        return {}

    def check_held_out(self, recipe: Recipe, items: Sequence[Any]) -> None:
        """Refuse items that the recipe's trained model has seen."""

    def usable(self, items: Sequence[Any], control_tokens: Iterable[str], recipe: Recipe) -> list[Any]:
        """The items whose prompts hold none of the tokenizer's control tokens; StageError names one that does."""
        tokens = [token for token in control_tokens if token.strip()]
        for item in items:
            for cell in self.cells:
                text = str(self.prompt(item, cell))
                if found := next((token for token in tokens if token in text), None):
                    raise StageError(
                        f"{self.name}: item {item.id}, cell {cell}: holds {found!r}, which this tokenizer reads as a "
                        "control token; take the item out"
                    )
        return list(items)

    def judge(self, recipe: Recipe, items: Mapping[str, Any], rows: Sequence[Row], store: Any) -> list[Row]:
        """The outcome rows of all systems with labels that another model gives; as they are where none does."""
        return list(rows)

    def rescored(self, item: Any, row: Row, completion: Completion) -> Row:
        """What `outcome` and `judge` say of an outcome row that is kept, from what it holds alone."""
        return self.outcome(item, row["cell"], completion)

    def against(self, base: Mapping[str, Sequence[Row]], rows: Mapping[str, Sequence[Row]]) -> dict[str, Any]:
        """Further comparisons of a system with the reference, plain data for `results.json`."""
        return {}

    def row_of(self, item: Any) -> Row:
        """An item as `items.jsonl` keeps it."""
        return dataclasses.asdict(item)

    def item_of(self, row: Mapping[str, Any]) -> Any:
        """The item of such a row."""
        return self.item_type(**row)


def refuse_trained(suite: Suite, recipe: Recipe, ids: Set[str], items: Sequence[Any], remedy: str) -> None:
    """Refuse items whose id, prompt or question stands in a quartet that the recipe's model was trained on.

    ids: those that count; remedy: what the sentence says to do.
    """
    quartets = load_quartets(recipe.folder(mining.FOLDER) / "quartets.jsonl")
    sent = (suite.prompt(item, cell) for item in items for cell in suite.cells)
    prompts = [prompt.user if isinstance(prompt, Chat) else prompt for prompt in sent]
    if held := asking(quartets, ids, [item.question for item in items], prompts):
        raise StageError(
            f"{suite.name}: {len(held)} quartets that were trained on ask its questions, the first: {min(held)!r}; "
            f"{remedy}"
        )


def right(rows: Sequence[Row]) -> list[bool]:
    """Which outcome rows are labelled `right`, for `rates`."""
    return [row["label"] == "right" for row in rows]


def graded(
    completion: Completion, answer_type: str, gold: str, n_options: int | None = None, options: Sequence[str] = ()
) -> Row:
    """The outcome of a free-text answer with a gold one, read strictly and flexibly.

    Strict (`parse_status`, `value`, `label`; SCOPE App. B.1): what cannot be read is wrong. Flexible (`flexible_value`,
    `flexible_label`): the last value of the type in the visible text, so that form does not count as content; an answer
    without one is unparsed, or truncated, as in the strict reading. options: their texts, of a multiple choice.
    """
    if completion.finish_reason == "error":
        failed: Row = {"parse_status": "failed", "value": None, "label": "failed"}
        return {**failed, "flexible_value": None, "flexible_label": "failed"}
    strict = parse_answer(completion.text, answer_type, n_options)
    flexible = flexible_answer(completion.text, answer_type, options)

    def label(answer: Answer) -> str:
        if is_correct(answer, gold, answer_type):
            return "right"
        if answer.status == "ok":
            return "wrong"
        return "truncated" if completion.finish_reason == "length" else answer.status

    return {
        "parse_status": strict.status,
        "value": _text(strict),
        "label": label(strict),
        "flexible_value": _text(flexible),
        "flexible_label": label(flexible),
    }


def flexibly(rows: Sequence[Row]) -> list[Row] | None:
    """The outcome rows with the flexible label for the label; None where a row has none (an older evaluation)."""
    if any(row.get("flexible_label") is None for row in rows):
        return None
    return [{**row, "label": row["flexible_label"]} for row in rows]


def _text(answer: Answer) -> str | None:
    return None if answer.value is None else str(answer.value)


def content_hash(suite: Suite, items: Sequence[Any]) -> str:
    """Content hash of items, for `Loaded.key`."""
    return fingerprint([suite.row_of(item) for item in items])
