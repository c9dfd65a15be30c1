"""The pool stage: the recipe's training and evaluation items, drawn or read, checked, and kept apart."""

import logging
from collections.abc import Iterable, Sequence
from pathlib import Path

from scope import artifacts
from scope.artifacts import StageError
from scope.items import Item, ItemError, as_row, control_token_faults, load_items, write_rows
from scope.pool.build import build_authored
from scope.pool.checks import check_items, split_overlap
from scope.recipe import Recipe

log = logging.getLogger(__name__)

FOLDER = "pool"
AUTHORED = "authored"


def prepare(recipe: Recipe) -> tuple[list[Item], list[Item], dict[str, str]]:
    """(training items, evaluation items, content hash of each). Writes nothing.

    Authored items are drawn by the recipe's seed; files are read where they lie.
    """
    train = draw(recipe, "train")
    evaluation = draw(recipe, "evaluation")
    for name, items in (("train", train), ("evaluation", evaluation)):
        if not items:
            source = getattr(recipe.pool, name)
            raise StageError(f"pool.{name}={source} holds no items; name another file or raise pool.n_{name}")
    return train, evaluation, {"train": _hash(train), "evaluation": _hash(evaluation)}


def keep(recipe: Recipe, train: Sequence[Item], evaluation: Sequence[Item], hashes: dict[str, str]) -> None:
    """Check the authored items and write both pools to the run's pool folder, unless they are there."""
    folder = recipe.folder(FOLDER)
    if not artifacts.is_finished(folder, hashes):
        _write(recipe, folder, train, evaluation, hashes)


def draw(recipe: Recipe, which: str) -> list[Item]:
    """The recipe's `train` or `evaluation` items; ItemError or PoolError says what is wrong with them."""
    pool = recipe.pool
    source: str = getattr(pool, which)
    split: str = getattr(pool, f"{which}_split")
    count: int = getattr(pool, f"n_{which}")
    if source == AUTHORED:
        return build_authored(count, recipe.seed, split, tier=pool.tier, families=pool.families or None)
    items = load_items(source, split, pool.columns, pool.on_bad_row)
    return items[:count] if count else items


def _hash(items: Iterable[Item]) -> str:
    return artifacts.fingerprint([as_row(item) for item in items])


def _write(
    recipe: Recipe, folder: Path, train: Sequence[Item], evaluation: Sequence[Item], hashes: dict[str, str]
) -> None:
    authored = {
        w: items for w, items in (("train", train), ("evaluation", evaluation)) if getattr(recipe.pool, w) == AUTHORED
    }
    findings = [f"{w}: {finding}" for w, items in authored.items() for finding in check_items(items)]
    if len(authored) == 2:
        findings += split_overlap(authored)
    if findings:
        raise StageError(f"the authored pool fails its checks: {findings[0]} (and {len(findings) - 1} more)")
    with artifacts.stage_lock(folder):
        write_rows(folder / "train.jsonl", train)
        write_rows(folder / "evaluation.jsonl", evaluation)
        artifacts.finish(
            folder,
            stage=FOLDER,
            key=hashes,
            outputs=["train.jsonl", "evaluation.jsonl"],
            seed=recipe.seed,
            counts={"train": len(train), "evaluation": len(evaluation)},
            recipe=recipe.part("pool"),
        )


def without_control_tokens(items: list[Item], control_tokens: Iterable[str], on_bad_row: str) -> list[Item]:
    """The items free of the tokenizer's control tokens; ItemError names the others unless they are skipped."""
    faults = control_token_faults(items, control_tokens)
    if faults and on_bad_row != "skip":
        raise ItemError(list(faults.values()))
    if faults:
        log.warning("skipped %d items with control tokens, the first: %s", len(faults), next(iter(faults.values())))
    return [item for item in items if item.id not in faults]
