"""A folder of files frozen under its SHA256SUMS, for releases of any kind: written once, refused when changed.

A kind of release has a module `stage` with `load_release`, `checks` and `as_text`, which the verbs below take.
"""

import hashlib
import json
import shlex
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scope import artifacts
from scope import recipe as recipes
from scope.pool.datasheet import table
from scope.pool.questions import PoolError
from scope.recipe import Recipe, nearest
from scope.tables import read_rows

SUMS = "SHA256SUMS"
FILES = ("items.jsonl", "membership.jsonl", "report.json", "README.md")


@dataclass(frozen=True, slots=True)
class Finding:
    """One fault: the check that found it, the item and a sentence."""

    check: str
    item_id: str
    what: str

    def __str__(self) -> str:
        return f"{self.item_id}: {self.check}: {self.what}"


def freeze(folder: Path, texts: Mapping[str, str], version: str, differs: str = "items, sources or wording") -> None:
    """Write the files of a release with their checksums, or find the very same there already.

    texts: name -> content, all of FILES. PoolError where the folder holds the version with other content; differs:
    what its sentence says may be other.
    """
    sums = "".join(f"{hashlib.sha256(texts[name].encode()).hexdigest()}  {name}\n" for name in FILES)
    if (folder / SUMS).is_file():
        verified(folder, "")
        if (folder / SUMS).read_text("utf-8") != sums:
            raise PoolError(
                f"{folder}: release {version_of(folder)} is frozen and holds other {differs}; set release.version "
                "to a new one"
            )
        return
    with artifacts.stage_lock(folder):
        for name in FILES:
            artifacts.write_text(folder / name, texts[name])
        artifacts.write_text(folder / SUMS, sums)


def verified(folder: Path, what: str) -> str:
    """The SHA-256 of a release's SHA256SUMS, once every file has the checksum that it names.

    what: the kind of release, for messages. PoolError names a file that is missing or was changed.
    """
    if not (folder / SUMS).is_file():
        raise PoolError(f"{folder}: is no release of {what}: it has no {SUMS}; name its folder, or build one")
    sums = (folder / SUMS).read_bytes()
    lines = [line.partition("  ") for line in sums.decode("utf-8").splitlines()]
    wanted = {name: digest for digest, _, name in lines}
    if missing := [name for name in FILES if name not in wanted or not (folder / name).is_file()]:
        raise PoolError(f"{folder / missing[0]}: is missing from the release; copy it whole, or build it again")
    for name in FILES:
        if artifacts.file_hash(folder / name) != wanted[name]:
            raise PoolError(
                f"{folder / name}: was changed after the release was frozen (its checksum differs); restore it, or "
                "freeze the changed items under a new release.version"
            )
    return hashlib.sha256(sums).hexdigest()


def refuse_changed(folder: Path, items: Iterable[Any], membership: Callable[[Any], Any], what: str) -> None:
    """Refuse an item that is not as `membership.jsonl` has it. what: that its sentence says may be other."""
    rows = {row["id"]: row for _, row in read_rows(folder / "membership.jsonl") if isinstance(row, dict)}
    for item in items:
        if rows.get(item.id) != membership(item):
            raise PoolError(
                f"{folder / 'items.jsonl'}: {item.id}: its {what} are not those of membership.jsonl; restore "
                "the release"
            )


def version_of(folder: Path) -> str:
    """The version that a release's report names."""
    return str(json.loads((folder / "report.json").read_text("utf-8"))["version"])


def checks_table(checks: Any, found: Mapping[str, Any]) -> str:
    """The part of a datasheet on a kind's checks: name, rule and findings of each. found: the report."""
    rules = {check.__name__: check.__doc__ or "" for check in (*checks.ITEM_CHECKS, *checks.SET_CHECKS)}
    rows = [(f"`{name}`", " ".join(rules[name].split()), n) for name, n in found["checks"].items()]
    return table(("check", "rule", "findings"), rows)


def lines(rows: Iterable[Any]) -> str:
    """Rows as JSON lines."""
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


# ---------------------------------------------------------------- verbs


def folder_of(recipe: Recipe) -> Path:
    """Where the recipe's release is frozen."""
    return recipe.root / f"{recipe.pool.kind}-{recipe.release.version}"


def command_of(recipe: Recipe) -> str:
    """The command that builds it, without the places of its inputs and outputs."""
    told = [word for word in _told(recipe) if not word.startswith(("output_dir=", "data_dir="))]
    return " ".join(["python -m scope.pool build", *map(shlex.quote, told)])


def frozen(recipe: Recipe, load: Callable[[Path], Any]) -> Any:
    """The recipe's release; PoolError with the command that makes it where there is none."""
    folder = folder_of(recipe)
    if not folder.is_dir():
        raise PoolError(f"{folder}: does not exist; run: python -m scope.pool build {' '.join(_told(recipe))}")
    return load(folder)


def check(recipe: Recipe, kind: Any) -> None:
    """Print every finding in the frozen release; exit with 1 if there are any."""
    items, checks = frozen(recipe, kind.load_release).items, kind.checks
    findings = checks.check_items(items)
    print("".join(f"{finding}\n" for finding in findings), end="")
    print(f"{len(findings)} findings in {len(items)} items, {len(checks.ITEM_CHECKS) + len(checks.SET_CHECKS)} checks")
    if findings:
        raise SystemExit(1)


def show(recipe: Recipe, kind: Any, name: str) -> None:
    """Print an item by id, or by its number from 1."""
    items = {item.id: item for item in frozen(recipe, kind.load_release).items}
    numbered = list(items.values())
    if name.isdecimal() and 1 <= int(name) <= len(numbered):
        item = numbered[int(name) - 1]
    elif name in items:
        item = items[name]
    else:
        raise PoolError(f"item={name} is not in the release; {nearest(name, list(items))}")
    print(kind.as_text(item))


def card(recipe: Recipe, kind: Any) -> None:
    """Print the datasheet of the frozen release."""
    frozen(recipe, kind.load_release)
    print((folder_of(recipe) / "README.md").read_text("utf-8"), end="")


def _told(recipe: Recipe) -> list[str]:
    return recipes.invocation or [f"recipe={recipe.name}"]
