"""Folders, manifests, fingerprints and atomic writes.

A file is either there whole or not there: it is written beside its place, synced, and renamed.
A stage's `manifest.json` is written last; a folder without one is unfinished work.
"""

import contextlib
import errno
import hashlib
import importlib.metadata
import json
import os
import platform
import secrets
import shutil
import subprocess
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import IO, Any

VERSIONED = ("torch", "transformers", "trl", "peft", "accelerate", "datasets", "tokenizers", "safetensors")


class Refusal(Exception):
    """Bad input or a fault outside: what was found, where, and what to do, one sentence a line.

    Entry points print it and exit with 2; every error a user can cause derives from it.
    """


class StageError(Refusal):
    """A stage cannot go on from what its folders hold."""


# ---------------------------------------------------------------- writing


@contextlib.contextmanager
def _explained(path: Path):
    """Turn the operating system's refusals into a sentence."""
    try:
        yield
    except OSError as error:
        reasons = {
            errno.ENOSPC: "no space is left on the disk; free some and run the same command again",
            errno.EDQUOT: "the disk quota is used up; free some space and run the same command again",
            errno.EROFS: "the file system is read-only; choose another output_dir",
            errno.ENOTDIR: "a part of the path is a file; choose another output_dir",
            errno.EEXIST: "a file stands where a folder is needed; choose another output_dir",
            errno.EACCES: "permission denied; choose another output_dir or change its permissions",
        }
        if error.errno in reasons:
            raise StageError(f"{path}: cannot be written: {reasons[error.errno]}") from error
        raise


def _free_name(path: Path) -> Path:
    """A name beside `path` for what is being written; `sweep` knows it. mkstemp and mkdtemp would keep others out."""
    return path.parent / f".{path.name}.{secrets.token_hex(6)}.tmp"


def write_file(path: Path, write: Callable[[IO[bytes]], Any]) -> None:
    """Call `write` on a temporary file beside `path`, sync it and rename it into place."""
    with _explained(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = _free_name(path)
        try:
            with open(temporary, "xb") as file:
                write(file)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise


def write_text(path: Path, text: str) -> None:
    write_file(path, lambda file: file.write(text.encode("utf-8")))


def write_json(path: Path, value: Any) -> None:
    write_text(path, json.dumps(value, indent=2, ensure_ascii=False) + "\n")


def write_jsonl(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    write_text(path, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))


def write_parquet(path: Path, rows: list[dict[str, Any]]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = list(dict.fromkeys(name for row in rows for name in row))
    table = pa.Table.from_pylist([{name: row.get(name) for name in columns} for row in rows])
    write_file(path, lambda file: pq.write_table(table, file))


@contextlib.contextmanager
def replacing_folder(path: Path):
    """Yield an empty temporary folder that becomes `path` when the block ends well."""
    with _explained(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = _free_name(path)
        temporary.mkdir()
        try:
            yield temporary
            as_umask(temporary)
            if path.exists():
                shutil.rmtree(path)
            os.replace(temporary, path)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)


def as_umask(folder: Path) -> None:
    """Give a folder and all in it what the umask gives: safetensors and others make files that only the owner reads."""
    probe = _free_name(folder / "umask")
    probe.mkdir()
    # os.umask can only be read by setting it, which other threads would see; a parent's setgid is handed on.
    mode = probe.stat().st_mode & 0o7777
    probe.rmdir()
    for path in (folder, *folder.rglob("*")):
        if not path.is_symlink():
            path.chmod(mode if path.is_dir() else mode & 0o666)


def sweep(folder: Path) -> None:
    """Remove what a killed run left half-written in a folder. Call it with the stage's lock held."""
    for leftover in folder.glob(".*.tmp"):
        if leftover.is_dir():
            shutil.rmtree(leftover, ignore_errors=True)
        else:
            leftover.unlink(missing_ok=True)


@contextlib.contextmanager
def stage_lock(folder: Path):
    """Hold a stage's folder: a second process on the same folder is refused, a dead one's lock is free."""
    import fcntl

    with _explained(folder):
        folder.mkdir(parents=True, exist_ok=True)
        file = open(folder / ".lock", "w")  # noqa: SIM115
    try:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise StageError(f"{folder}: another process is working here; wait for it or set output_dir") from error
        sweep(folder)
        yield
    finally:
        file.close()


# ---------------------------------------------------------------- fingerprints


def fingerprint(value: Any) -> str:
    """SHA-256 of a JSON-serialisable value in canonical form, 64 hex digits."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def file_hash(path: Path) -> str:
    """SHA-256 of a file's bytes, 64 hex digits."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def versions() -> dict[str, str]:
    """Versions of this project, Python and the libraries that results depend on."""
    found = {"scope": importlib.metadata.version("scope-preference"), "python": platform.python_version()}
    for name in VERSIONED:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found[name] = importlib.metadata.version(name)
    return found


def git_revision() -> str | None:
    """Revision of the checkout this code runs from, `+dirty` if it has changes; None outside git."""
    folder = Path(__file__).resolve().parent.parent

    def git(*arguments: str) -> str | None:
        try:
            done = subprocess.run(["git", "-C", str(folder), *arguments], capture_output=True, text=True, timeout=20)
        except (OSError, subprocess.TimeoutExpired):
            return None
        return done.stdout.strip() if done.returncode == 0 else None

    if (top := git("rev-parse", "--show-toplevel")) is None or Path(top) != folder:
        return None
    revision = git("rev-parse", "HEAD")
    return revision and revision + ("+dirty" if git("status", "--porcelain", "-uno") else "")


# ---------------------------------------------------------------- manifests


def read_manifest(folder: Path) -> dict[str, Any] | None:
    """A stage's manifest, or None if the folder holds no finished work."""
    try:
        manifest = json.loads((folder / "manifest.json").read_text("utf-8"))
        if not isinstance(manifest, dict) or not {"stage", "key", "outputs"} <= manifest.keys():
            raise ValueError("it is no manifest")
        return manifest
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:
        raise StageError(
            f"{folder / 'manifest.json'}: cannot be read ({error}); delete the folder and run again"
        ) from error


def finish(
    folder: Path, *, stage: str, key: Mapping[str, Any], outputs: Iterable[str], seed: int, **facts: Any
) -> dict[str, Any]:
    """Write `manifest.json`, which makes the stage's folder finished work.

    key: everything the outputs depend on (input hashes, recipe parts); `is_finished` compares it.
    outputs: file names below the folder; their SHA-256 go into the manifest.
    """
    manifest = {
        "stage": stage,
        "key": dict(key),
        "outputs": {name: file_hash(folder / name) for name in outputs},
        "seed": seed,
        **facts,
        "versions": versions(),
        "git_revision": git_revision(),
    }
    write_json(folder / "manifest.json", manifest)
    return manifest


def is_finished(folder: Path, key: Mapping[str, Any]) -> bool:
    """True if the folder holds finished work for exactly this key, its files unchanged."""
    manifest = read_manifest(folder)
    if manifest is None or manifest.get("key") != json.loads(json.dumps(dict(key))):
        return False
    return all(
        (folder / name).is_file() and file_hash(folder / name) == digest for name, digest in manifest["outputs"].items()
    )


def require(folder: Path, stage: str, command: str, key: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The manifest of an earlier stage, or a StageError with the command that makes it.

    With `key`, each of its entries must stand in the manifest; the first that differs is named.
    """
    manifest = read_manifest(folder)
    if manifest is None:
        state = "is half-written" if folder.is_dir() and any(folder.iterdir()) else "does not exist"
        raise StageError(f"{folder}: the output of stage {stage!r} {state}; run: {command}")
    if manifest.get("stage") != stage:
        raise StageError(
            f"{folder}: holds the output of stage {manifest.get('stage')!r}, not {stage!r}; run: {command}"
        )
    for name, digest in manifest["outputs"].items():
        if not (folder / name).is_file():
            raise StageError(f"{folder / name}: is missing though the manifest lists it; run: {command}")
        if file_hash(folder / name) != digest:
            raise StageError(f"{folder / name}: was changed after stage {stage!r} wrote it; run: {command}")
    for name, wanted in (key or {}).items():
        found = manifest["key"].get(name)
        if found != (wanted := json.loads(json.dumps(wanted))):
            if isinstance(found, dict) and isinstance(wanted, dict):  # the entries that differ, not all of them
                differ = [entry for entry in {**wanted, **found} if found.get(entry) != wanted.get(entry)]
                found, wanted = ({entry: side.get(entry) for entry in differ} for side in (found, wanted))
            raise StageError(
                f"{folder}: was made with {name} = {found!r}, this recipe has {wanted!r}; "
                f"run: {command} (or restore the recipe)"
            )
    return manifest


def refuse_other_work(folder: Path, key: Mapping[str, Any], stage: str, command: str) -> None:
    """Claim a stage's folder for a key, or refuse if it holds work for another one.

    The claim (`claim.json`) is written before the first unit of work, so that a killed run is
    taken up only by the same recipe on the same inputs.
    """
    wanted = json.loads(json.dumps(dict(key)))
    claim = folder / "claim.json"
    manifest = read_manifest(folder)
    try:
        held = manifest["key"] if manifest else json.loads(claim.read_text("utf-8")) if claim.exists() else None
    except ValueError as error:
        raise StageError(f"{claim}: cannot be read ({error}); delete {folder} and run: {command}") from error
    if held is not None and held != wanted:
        changed = [name for name in {**wanted, **held} if held.get(name) != wanted.get(name)]
        details = "; ".join(f"{name} {_difference(held.get(name), wanted.get(name))}" for name in changed)
        raise StageError(
            f"{folder}: holds {stage} work for other inputs or settings ({details}); delete the folder or set "
            f"output_dir (or arm) to another one, then run: {command}"
        )
    if not claim.exists():
        write_json(claim, wanted)


def _difference(old: Any, new: Any) -> str:
    if isinstance(old, dict) and isinstance(new, dict):
        parts = [f"{k}: {old.get(k)!r} there, {new.get(k)!r} now" for k in {**new, **old} if old.get(k) != new.get(k)]
        return ", ".join(parts)
    return f"{old!r} there, {new!r} now"
