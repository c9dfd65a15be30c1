"""Published quartets instead of mined ones: read, kept apart from the evaluation pool, and counted."""

from collections.abc import Iterable, Sequence, Set
from typing import Any

from scope import artifacts
from scope.conditions import Condition
from scope.items import Item, Quartet, as_row, load_quartets, normalised
from scope.mining.funnel import published_funnel
from scope.prompts import user_prompt
from scope.recipe import Recipe

#: A question of fewer words may stand inside the prompt of another one by chance.
MIN_WORDS = 5


def read(recipe: Recipe) -> list[Quartet]:
    """The quartets of `mining.quartets`; ItemError names its bad rows unless pool.on_bad_row=skip."""
    mining = recipe.mining
    return load_quartets(
        mining.quartets, mining.quartets_split, columns=mining.columns, on_bad_row=recipe.pool.on_bad_row
    )


def content_hash(quartets: Sequence[Quartet]) -> str:
    """SHA-256 of the quartets as they were read, 64 hex digits, wherever they came from."""
    return artifacts.fingerprint([as_row(quartet) for quartet in quartets])


def keep_apart(quartets: Sequence[Quartet], evaluation: Sequence[Item]) -> tuple[list[Quartet], dict[str, Any]]:
    """The quartets that share no item with the evaluation pool, and the funnel."""
    held = shared(quartets, evaluation)
    fates = ["shared_with_evaluation" if quartet.item_id in held else "published" for quartet in quartets]
    kept = [quartet for quartet in quartets if quartet.item_id not in held]
    return kept, published_funnel(quartets, fates)


def shared(quartets: Sequence[Quartet], evaluation: Sequence[Item]) -> set[str]:
    """Ids of the quartets whose item is an evaluation item: the same id, or its question in the clean prompt."""
    prompts = [user_prompt(item, Condition.CLEAN) for item in evaluation]
    return asking(quartets, {item.id for item in evaluation}, [item.question for item in evaluation], prompts)


def asking(quartets: Sequence[Quartet], ids: Set[str], questions: Iterable[str], prompts: Iterable[str]) -> set[str]:
    """Ids of the quartets that have one of these ids, prompts, or questions inside their clean prompt."""
    questions = {normalised(question) for question in questions}
    whole = questions | {normalised(prompt) for prompt in prompts}
    beginnings: dict[tuple[str, ...], list[list[str]]] = {}
    for words in map(str.split, questions):
        if len(words) >= MIN_WORDS:
            beginnings.setdefault(tuple(words[:MIN_WORDS]), []).append(words)

    def asks_one(prompt: list[str]) -> bool:
        starts = range(len(prompt) - MIN_WORDS + 1)
        candidates = ((i, words) for i in starts for words in beginnings.get(tuple(prompt[i : i + MIN_WORDS]), ()))
        return any(prompt[i : i + len(words)] == words for i, words in candidates)

    found = set()
    for quartet in quartets:
        asked = normalised(quartet.prompt_clean)
        if quartet.item_id in ids or asked in whole or asks_one(asked.split()):
            found.add(quartet.item_id)
    return found
