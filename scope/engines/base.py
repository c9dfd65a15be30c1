"""What an engine is, and the plain data that goes into it and comes out."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from scope.artifacts import Refusal
from scope.prompts import Chat, Prompt
from scope.schema import EngineConfig, ModelConfig

#: A prompt as an engine sends it: token ids, or the messages where the tokenizer is a server's.
Rendered = Sequence[int] | Prompt


class EngineError(Refusal):
    """A request that an engine cannot serve."""


class TooLongError(EngineError):
    """Requests beyond the model's window; `indices` are theirs among the prompts given."""

    def __init__(self, message: str, indices: Sequence[int]):
        super().__init__(message)
        self.indices = list(indices)


def known_as(model: ModelConfig, engine: EngineConfig) -> str:
    """What a reader calls the model that answers: as its server knows it, or the base."""
    served = engine.azure.deployment or engine.model if engine.kind == "openai" else ""
    return served or model.base


def as_text(rendered: Any) -> str | None:
    """The text of messages; None of token ids."""
    return str(rendered) if isinstance(rendered, str | Chat) else None


@dataclass(frozen=True, slots=True)
class Sampling:
    """How to decode. Every field is passed explicitly; nothing comes from a model's defaults.

    temperature: 0 is greedy. Above it tokens are drawn from the smallest set with probability `top_p`, with `seed`;
    two seeds are two requests.
    """

    max_new_tokens: int
    temperature: float = 0.0
    top_p: float = 1.0
    seed: int | None = None

    def drawn(self) -> dict[str, Any]:
        """Temperature, top_p and seed of a request that samples; nothing of a greedy one."""
        return {"temperature": self.temperature, "top_p": self.top_p, "seed": self.seed} if self.temperature else {}

    def key(self) -> dict[str, Any]:
        return {"sampling": {"max_new_tokens": self.max_new_tokens, "temperature": self.temperature, **self.drawn()}}


@dataclass(frozen=True, slots=True)
class Choices:
    """Options to score as a prompt's continuation.

    by: `token`, the probability of each option's single token as the next one; `sequence`, of all its tokens
    and the end token.
    """

    options: tuple[str, ...]
    by: str = "token"

    def key(self) -> dict[str, Any]:
        return {"choices": asdict(self)}


@dataclass(frozen=True, slots=True)
class Generated:
    """One raw output: token ids without the end token (none from a server), their text, and why it ended.

    finish_reason: as in `scope.items.Completion`, or `too_long`: the server refuses the prompt for its length.
    again: a failure that may pass; the request is repeated. cost: at most what the provider charges.
    """

    token_ids: Sequence[int]
    text: str
    finish_reason: str
    n_prompt_tokens: int | None = None  # None: the length of the rendered prompt
    n_tokens: int | None = None  # None: the length of token_ids
    reasoning: str = ""
    error: str = ""
    log_probs: tuple[float, ...] = ()
    engine: str = ""  # what answered, where that differs between requests
    cost: float = 0.0
    again: bool = False


def ignored(rows: int, tokens: int) -> None:
    """Progress that nobody follows."""


class Engine:
    """Renders prompts, says what its outputs depend on, and computes a batch. All else is `scope.engines`."""

    parallel = 1  # batches in flight at once
    retries = 0  # how often a batch is repeated whose output says `again`
    max_cost = 0.0  # spending cap over the whole store; 0: none
    priced = False  # whether tokens and cost are printed and kept beside the store
    #: Called inside a batch, where an engine can: rows that ended and new tokens since the last call.
    advance: Callable[[int, int], None] = staticmethod(ignored)

    def identity(self) -> dict[str, Any]:
        """Everything but prompt and sampling that the output depends on."""
        raise NotImplementedError

    def version(self) -> str:
        """Name and version for a reader, where an output does not say."""
        return str(self.identity().get("kind", ""))

    def control_tokens(self) -> list[str]:
        """Strings that data must not contain, for the tokenizer reads them as tokens of its own."""
        return []

    def unpinned(self) -> dict[str, str]:
        """What the chat template leaves to the day or to the model, a sentence each, by the setting that pins it."""
        return {}

    def folds_system(self) -> bool:
        """Whether a system message stands before the user message in one, for want of a role of its own."""
        return False

    def render(self, prompts: Sequence[Prompt]) -> list[Any]:
        """Prompts -> `Rendered`, generation prompt included."""
        raise NotImplementedError

    def too_long(self, rendered: Sequence[Any], how: Sampling | Choices) -> dict[int, str]:
        """Index -> sentence of every request that is known not to fit the window."""
        return {}

    def plan(self, rendered: Sequence[Any], how: Sampling | Choices) -> list[list[int]]:
        """Indices of the requests, batch by batch; depends on nothing but the arguments and the recipe."""
        return [[index] for index in range(len(rendered))]

    def cost_bound(self, rendered: Sequence[Any], how: Sampling | Choices) -> float:
        """The most a batch may cost."""
        return 0.0

    def load(self) -> None:
        """Get ready for the first batch, so that its time is its own."""

    def generate(self, rendered: Sequence[Any], sampling: Sampling) -> list[Generated]:
        """One batch."""
        raise NotImplementedError

    def score_choices(self, rendered: Sequence[Any], choices: Choices) -> list[Generated]:
        """One batch of scored options: `text` is the likeliest, `log_probs` (k,) are before renormalising."""
        raise NotImplementedError

    def close(self) -> None:
        """Give back weights or connections."""
