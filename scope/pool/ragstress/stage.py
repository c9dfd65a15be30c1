"""The release of a recipe: built, frozen, checked and shown from the command line."""

import shlex
import textwrap
from collections.abc import Mapping
from pathlib import Path

from scope import recipe as recipes
from scope.evidence import ORIGINAL, EvidenceItem
from scope.pool.questions import PoolError
from scope.pool.ragstress import checks
from scope.pool.ragstress.build import build as built
from scope.pool.ragstress.release import Release, freeze, load_release, report
from scope.recipe import Recipe, nearest


def folder_of(recipe: Recipe) -> Path:
    """Where the recipe's release is frozen."""
    return recipe.root / f"ragstress-{recipe.release.version}"


def build(recipe: Recipe) -> None:
    """Build the items and freeze them as a release."""
    items, left_out = make(recipe)
    told = [word for word in _told(recipe) if not word.startswith(("output_dir=", "data_dir="))]  # places, not contents
    command = " ".join(["python -m scope.pool build", *map(shlex.quote, told)])
    found = report(items, left_out, recipe.release, recipe.seed, command)
    folder = folder_of(recipe)
    release = freeze(folder, items, found)
    for name, each in found["sources"].items():
        print(f"{name}: {each['items']} items, {each['with_evidence']} with evidence")
        for reason, n in sorted(left_out[name].items(), key=lambda entry: -entry[1]):
            print(f"  {-n:6}  {reason}")
    print(f"{len(items)} items, {sum(found['checks'].values())} findings of {len(found['checks'])} checks")
    print(f"release {release.version}: {folder} (SHA256SUMS {release.digest[:12]})")


def make(recipe: Recipe) -> tuple[list[EvidenceItem], dict[str, Mapping[str, int]]]:
    """The recipe's items, and what was left out of each source. Writes nothing."""
    return built(recipe.data_dir or None, recipe.seed, recipe.release)


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


def as_text(item: EvidenceItem) -> str:
    """An item for a terminal: its passages in the source's order, the answer and the foil marked in the target."""
    lines = [f"{item.id}  {item.answer_kind}  {item.license}", item.question]
    lines += [f"- {option}" for option in item.options]
    lines += [f"reference  {'; '.join(item.references)}", f"foil       {'; '.join(item.foils)}"]
    if item.layouts:
        layout = item.layouts[ORIGINAL]
        end = layout.start + len(layout.answer)
        marked = f"{layout.clean[: layout.start]}[{layout.answer} -> {layout.foil}]{layout.clean[end:]}"
        texts = [document.text for document in item.documents]
        texts.insert(item.slot - 1, marked)
        for number, text in enumerate(texts, 1):
            lines.append(textwrap.fill(f"{number}{' (target)' if number == item.slot else ''}  {text}", 110))
        lines.append("at  " + ", ".join(f"{name} {each.at:.2f}" for name, each in item.layouts.items()))
    return "\n".join(lines)


def _told(recipe: Recipe) -> list[str]:
    return recipes.invocation or [f"recipe={recipe.name}"]
