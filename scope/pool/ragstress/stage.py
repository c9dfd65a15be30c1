"""The release of a recipe: built, frozen, checked and shown from the command line."""

import textwrap
from collections.abc import Mapping

from scope.evidence import ORIGINAL, EvidenceItem
from scope.pool import release as freezing
from scope.pool.ragstress import checks as checks  # of the verbs that releases share
from scope.pool.ragstress.build import build as built
from scope.pool.ragstress.release import Release, freeze, load_release, report
from scope.recipe import Recipe


def build(recipe: Recipe) -> None:
    """Build the items and freeze them as a release."""
    items, left_out = make(recipe)
    found = report(items, left_out, recipe.release, recipe.pool_seed, freezing.command_of(recipe))
    folder = freezing.folder_of(recipe)
    release = freeze(folder, items, found)
    for name, each in found["sources"].items():
        print(f"{name}: {each['items']} items, {each['with_evidence']} with evidence")
        for reason, n in sorted(left_out[name].items(), key=lambda entry: -entry[1]):
            print(f"  {-n:6}  {reason}")
    print(f"{len(items)} items, {sum(found['checks'].values())} findings of {len(found['checks'])} checks")
    print(f"release {release.version}: {folder} (SHA256SUMS {release.digest[:12]})")


def make(recipe: Recipe) -> tuple[list[EvidenceItem], dict[str, Mapping[str, int]]]:
    """The recipe's items, and what was left out of each source. Writes nothing."""
    return built(recipe.data_dir or None, recipe.pool_seed, recipe.release)


def frozen(recipe: Recipe) -> Release:
    """The recipe's release; PoolError with the command that makes it where there is none."""
    return freezing.frozen(recipe, load_release)  # type: ignore[no-any-return]


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
