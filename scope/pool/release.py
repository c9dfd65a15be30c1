"""A folder of files frozen under its SHA256SUMS, for releases of any kind: written once, refused when changed."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from scope import artifacts
from scope.pool.questions import PoolError

SUMS = "SHA256SUMS"
FILES = ("items.jsonl", "membership.jsonl", "report.json", "README.md")


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


def version_of(folder: Path) -> str:
    """The version that a release's report names."""
    return str(json.loads((folder / "report.json").read_text("utf-8"))["version"])


def lines(rows: Iterable[Any]) -> str:
    """Rows as JSON lines."""
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
