"""The release of a recipe: built, frozen, checked, shown, screened and audited from the command line."""

import shlex
from collections.abc import Mapping
from pathlib import Path

from scope import recipe as recipes
from scope.pool.misleadqa import checks
from scope.pool.misleadqa.build import build as built
from scope.pool.misleadqa.decisions import decided
from scope.pool.misleadqa.facts import Wording
from scope.pool.misleadqa.release import Release, freeze, load_release, report
from scope.pool.questions import PoolError
from scope.recipe import Recipe, asset, nearest
from scope.scopes import ABSTENTION, LETTERS, SOURCES, ScopedItem


def folder_of(recipe: Recipe) -> Path:
    """Where the recipe's release is frozen."""
    return recipe.root / f"misleadqa-{recipe.release.version}"


def build(recipe: Recipe) -> None:
    """Build the items and freeze them as a release."""
    items, left_out = make(recipe)
    told = [word for word in _told(recipe) if not word.startswith(("output_dir=", "data_dir="))]  # places, not contents
    command = " ".join(["python -m scope.pool build", *map(shlex.quote, told)])
    found = report(items, left_out, recipe.release.version, recipe.seed, command)
    folder = folder_of(recipe)
    release = freeze(folder, items, found)
    for name, group in found["groups"].items():
        print(
            f"{name}: {group['items']} items of {group['clusters']} clusters (the paper: {group['paper_items']} of "
            f"{group['paper_clusters']})"
        )
    print(f"{len(items)} items, {sum(found['checks'].values())} findings of {len(found['checks'])} checks")
    print(f"release {release.version}: {folder} (SHA256SUMS {release.digest[:12]})")


def make(recipe: Recipe) -> tuple[list[ScopedItem], dict[str, Mapping[str, int]]]:
    """The recipe's items, and what was left out of each source. Writes nothing."""
    settings = recipe.release
    wording = Wording(asset(settings.wording))
    excluded = decided(settings.decisions) if settings.decisions else {}
    return built(
        settings.sources or list(SOURCES), recipe.data_dir or None, wording, recipe.seed, settings.per_group, excluded
    )


def check(recipe: Recipe) -> None:
    """Print every finding in the frozen release; exit with 1 if there are any."""
    items = frozen(recipe).items
    findings = checks.check_items(items)
    print("".join(f"{finding}\n" for finding in findings), end="")
    print(f"{len(findings)} findings in {len(items)} items, {len(checks.ITEM_CHECKS) + len(checks.SET_CHECKS)} checks")
    if findings:
        raise SystemExit(1)


def show(recipe: Recipe, name: str) -> None:
    """Print an item by id, or by its number from 1."""
    items = {item.id: item for item in frozen(recipe).items}
    numbered = list(items.values())
    if name.isdecimal() and 1 <= int(name) <= len(numbered):
        item = numbered[int(name) - 1]
    elif name in items:
        item = items[name]
    else:
        raise PoolError(f"item={name} is not in the release; {nearest(name, list(items))}")
    print(as_text(item))


def card(recipe: Recipe) -> None:
    """Print the datasheet of the frozen release."""
    frozen(recipe)
    print((folder_of(recipe) / "README.md").read_text("utf-8"), end="")


def frozen(recipe: Recipe) -> Release:
    """The recipe's release; PoolError with the command that makes it where there is none."""
    folder = folder_of(recipe)
    if not folder.is_dir():
        raise PoolError(f"{folder}: does not exist; run: python -m scope.pool build {' '.join(_told(recipe))}")
    return load_release(folder)


def as_text(item: ScopedItem) -> str:
    """An item for a terminal, its key beside it."""
    marks = {item.gold: " (gold)", item.lure: " (lure)"}
    lines = [f"{item.id}  {item.group}  cluster: {item.cluster}", item.question]
    lines += [f"{letter}. {text}{marks.get(letter, '')}" for letter, text in zip(LETTERS, item.options, strict=True)]
    lines += [f"E. {ABSTENTION}", f"G  {item.g}", f"S  {item.s}", f"F  {item.f}"]
    return "\n".join(lines)


def _told(recipe: Recipe) -> list[str]:
    return recipes.invocation or [f"recipe={recipe.name}"]
