"""The release of a recipe: built, frozen, checked, shown, screened and audited from the command line."""

from collections.abc import Mapping

from scope.pool import release as freezing
from scope.pool.misleadqa import checks as checks  # of the verbs that releases share
from scope.pool.misleadqa.build import build as built
from scope.pool.misleadqa.decisions import decided
from scope.pool.misleadqa.facts import Wording
from scope.pool.misleadqa.release import Release, freeze, load_release, report
from scope.recipe import Recipe, asset
from scope.scopes import ABSTENTION, LETTERS, SOURCES, ScopedItem


def build(recipe: Recipe) -> None:
    """Build the items and freeze them as a release."""
    items, left_out = make(recipe)
    found = report(items, left_out, recipe.release.version, recipe.pool_seed, freezing.command_of(recipe))
    folder = freezing.folder_of(recipe)
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
        settings.sources or list(SOURCES),
        recipe.data_dir or None,
        wording,
        recipe.pool_seed,
        settings.per_group,
        excluded,
    )


def frozen(recipe: Recipe) -> Release:
    """The recipe's release; PoolError with the command that makes it where there is none."""
    return freezing.frozen(recipe, load_release)  # type: ignore[no-any-return]


def as_text(item: ScopedItem) -> str:
    """An item for a terminal, its key beside it."""
    marks = {item.gold: " (gold)", item.lure: " (lure)"}
    lines = [f"{item.id}  {item.group}  cluster: {item.cluster}", item.question]
    lines += [f"{letter}. {text}{marks.get(letter, '')}" for letter, text in zip(LETTERS, item.options, strict=True)]
    lines += [f"E. {ABSTENTION}", f"G  {item.g}", f"S  {item.s}", f"F  {item.f}"]
    return "\n".join(lines)
