"""Publishing: what arrives at a hub is what stands in the run's folder, and the token goes nowhere else."""

import base64
import hashlib
import json
import os
import shutil
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from scope.artifacts import StageError
from scope.publish import PublishError, push, redacted, write_cards
from scope.recipe import RecipeError, load
from scope.report.card import base_license, card, fallen, find_product, public

ROOT = Path(__file__).resolve().parent.parent
TOKEN = "hf_notARealTokenButLongEnoughToLook1"
REPOSITORY = "lab/tiny"


def lowered(headers):
    return {name.lower(): value for name, value in headers.items()}


class Handler(BaseHTTPRequestHandler):
    """The calls of huggingface_hub 2 that create a model repository and upload a folder without Xet."""

    server: "Hub"

    def answer(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.server.requests.append((self.command, self.path, lowered(self.headers), body))
        for part, fault in self.server.faults.items():
            if part in self.path and fault == "kill":
                self.close_connection = True
                self.connection.close()
                return
            if part in self.path:
                self.reply(fault, {"error": f"refused {self.headers.get('Authorization')}\nsee the log"})
                return
        self.reply(200, self.found(self.path.partition("?")[0], body))

    def found(self, path, body):
        hub, address = self.server, self.server.address
        if path == "/api/repos/create":
            return {"url": f"{address}/{REPOSITORY}"}
        if path == "/api/validate-yaml":
            front = json.loads(body)["content"].split("---")[1]
            return {"errors": [], "warnings": []} if yaml.safe_load(front) else {"errors": [{"message": "empty"}]}
        if path == f"/api/models/{REPOSITORY}/preupload/main":
            files = json.loads(body)["files"]
            modes = {True: "lfs", False: "regular"}
            return {
                "files": [
                    {"path": f["path"], "uploadMode": modes[f["path"].endswith("safetensors")], "shouldIgnore": False}
                    for f in files
                ]
            }
        if path == f"/{REPOSITORY}.git/info/lfs/objects/batch":
            objects = json.loads(body)["objects"]
            return {"objects": [{**o, "actions": {"upload": {"href": f"{address}/lfs/{o['oid']}"}}} for o in objects]}
        if path.startswith("/lfs/"):
            hub.large[path.rpartition("/")[2]] = body
            return {}
        if path == f"/api/models/{REPOSITORY}/commit/main":
            for line in body.splitlines():
                entry = json.loads(line)
                if entry["key"] == "file":
                    hub.files[entry["value"]["path"]] = base64.b64decode(entry["value"]["content"])
                elif entry["key"] == "lfsFile":
                    hub.files[entry["value"]["path"]] = hub.large[entry["value"]["oid"]]
            return {"commitUrl": f"{address}/{REPOSITORY}/commit/1", "commitOid": "1" * 40, "pullRequestUrl": None}
        raise AssertionError(f"a call that the stand-in does not know: {self.command} {path}")

    def reply(self, status, value):
        text = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    do_POST = do_PUT = answer

    def do_GET(self):
        self.server.requests.append((self.command, self.path, lowered(self.headers), b""))
        self.reply(404, {"error": "not found"})

    def log_message(self, *_):
        pass


class Hub(ThreadingHTTPServer):
    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self.server_port}"
        self.requests, self.files, self.large, self.faults = [], {}, {}, {}


@pytest.fixture
def hub(monkeypatch):
    from huggingface_hub import constants

    server = Hub()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setenv("HF_ENDPOINT", server.address)
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def run(finished_run, tmp_path):
    """A copy of the finished run, to be written to."""
    out = tmp_path / "run"
    shutil.copytree(finished_run[0], out)
    return out


@pytest.fixture
def recipe_of(tiny_args):
    def recipe(out, *overrides):
        words = [f"output_dir={out}", f"push_to={REPOSITORY}", *overrides]
        return load("smollm2_135m", [*tiny_args, *words])

    return recipe


def files_below(folder):
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


# ---------------------------------------------------------------- what arrives


@pytest.mark.parametrize("kind", ["adapter", "merged"])
def test_what_arrives_is_the_local_folder_byte_for_byte(hub, run, recipe_of, kind, capsys):
    product = run / "scope" / ("train/adapter" if kind == "adapter" else "merged")
    before = files_below(run)
    assert push(recipe_of(run, f"push={kind}")) == f"{hub.address}/{REPOSITORY}"
    assert hub.files == files_below(run / "scope" / "publish" / kind)
    weights = "adapter_model.safetensors" if kind == "adapter" else "model.safetensors"
    assert hub.files[weights] == (product / weights).read_bytes()
    assert hub.files["tokenizer.json"] == (product / "tokenizer.json").read_bytes()
    assert {"README.md", "manifest.json", "results.json", "base.json", "tokenizer_config.json"} <= set(hub.files)
    extra = {name for name in hub.files if not name.endswith((".json", ".jinja", ".safetensors", ".md"))}
    assert not extra and not {"timings.json", "training_args.bin", "trainer_state.json"} & set(hub.files)
    after = files_below(run)
    assert {name: after[name] for name in before} == before, "a push changes none of the run's files"
    assert hub.address in capsys.readouterr().out


def test_no_path_of_this_machine_is_published(hub, run, recipe_of, tiny_model, tmp_path):
    push(recipe_of(run, "push=adapter"))
    for name, content in hub.files.items():
        for place in (run, tiny_model, tmp_path, Path.home(), ROOT):
            assert str(place).encode() not in content, f"{place} stands in {name}"
    assert json.loads(hub.files["adapter_config.json"])["base_model_name_or_path"] == tiny_model.name
    recipe = json.loads(hub.files["manifest.json"])["recipe"]
    assert recipe["pool"]["train"] == "train.jsonl" and recipe["output_dir"] == "run"


def test_the_token_is_sent_as_authorization_and_stands_nowhere_else(hub, run, recipe_of, capfd):
    push(recipe_of(run, "push=adapter"))
    sent = [headers for _, _, headers, _ in hub.requests if "authorization" in headers]
    assert sent and {headers["authorization"] for headers in sent} == {f"Bearer {TOKEN}"}
    for _, path, headers, body in hub.requests:
        assert TOKEN not in path and TOKEN.encode() not in body
        assert not any(TOKEN in value for name, value in headers.items() if name != "authorization")
    assert all("authorization" not in headers for _, path, headers, _ in hub.requests if path.startswith("/lfs/"))
    assert not [name for name, content in files_below(run).items() if TOKEN.encode() in content]
    assert TOKEN not in "".join(capfd.readouterr())


# ---------------------------------------------------------------- faults


@pytest.mark.parametrize(
    "part, fault, sentence",
    [
        ("/api/repos/create", 401, "does not accept the token; log in with `hf auth login` or set HF_TOKEN (HTTP 401"),
        ("/api/repos/create", 403, "the token may not write to lab/tiny; use one that may"),
        ("/api/repos/create", 500, "answered with an error (HTTP 500"),
        ("/commit/main", 403, "the token may not write to lab/tiny; use one that may"),
        ("/commit/main", "kill", "could not be reached or broke off"),
        ("/lfs/", 403, "the token may not write to lab/tiny"),
    ],
)
def test_a_failing_hub_is_one_sentence_and_loses_nothing(hub, run, recipe_of, part, fault, sentence, monkeypatch):
    monkeypatch.setattr("scope.recipe.invocation", ["recipe=smollm2_135m", f"push_to={REPOSITORY}"])
    hub.faults = {part: fault}
    before = files_below(run)
    with pytest.raises(PublishError) as caught:
        push(recipe_of(run, "push=adapter"))
    message = str(caught.value)
    assert sentence in message and TOKEN not in message and "\n" not in message
    assert message.startswith("lab/tiny: not published: ")
    assert message.endswith(f"push again with: python -m scope.publish recipe=smollm2_135m push_to={REPOSITORY}")
    assert caught.value.__cause__ is None and caught.value.__suppress_context__
    after = files_below(run)
    assert {name: after[name] for name in before} == before
    assert not hub.files and "scope/publish/adapter/README.md" in after, "all that was to be published is there"
    hub.faults = {}
    push(recipe_of(run, "push=adapter"))
    assert hub.files == files_below(run / "scope/publish/adapter")


def test_an_unreachable_hub_and_a_missing_token_are_sentences(hub, run, recipe_of, monkeypatch):
    from huggingface_hub import constants

    monkeypatch.setenv("HF_ENDPOINT", "http://user:secret@127.0.0.1:9")
    with pytest.raises(PublishError, match=r"http://127\.0\.0\.1:9 could not be reached") as caught:
        push(recipe_of(run, "push=adapter"))
    assert "secret" not in str(caught.value)
    monkeypatch.delenv("HF_TOKEN")
    monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(run / "no-token"))
    with pytest.raises(PublishError, match="no token; log in with `hf auth login` or set HF_TOKEN"):
        push(recipe_of(run, "push=adapter"))


def test_what_is_missing_names_its_command(hub, run, recipe_of):
    with pytest.raises(PublishError, match="push_to is not set"):
        push(recipe_of(run, "push_to=''"))
    with pytest.raises(
        StageError, match=r"the output of stage 'train' does not exist; run: accelerate launch train\.py"
    ):
        push(recipe_of(run / "nowhere"))
    (run / "scope/merged/model.safetensors").unlink()
    with pytest.raises(StageError, match=r"model\.safetensors: is missing .* run: accelerate launch train\.py"):
        push(recipe_of(run))
    assert not hub.requests, "nothing was asked of the hub"
    with pytest.raises(RecipeError, match="push_to=tiny is no repository on the hub; write owner/name"):
        recipe_of(run, "push_to=tiny")


def test_credentials_are_redacted(monkeypatch):
    monkeypatch.setenv("HF_TOKEN", " odd-token ")
    text = redacted(f"got odd-token and {TOKEN} at https://me:pass@hub.example/x")
    assert text == "got *** and *** at https://hub.example/x"


# ---------------------------------------------------------------- the command


def test_the_command_publishes_and_prints_no_token(hub, run, tiny_args):
    environment = {**os.environ, "HF_ENDPOINT": hub.address, "HF_TOKEN": TOKEN, "HF_HUB_DISABLE_XET": "1"}
    words = ["recipe=smollm2_135m", *tiny_args, f"output_dir={run}", "push=adapter", f"push_to={REPOSITORY}"]

    def command(*more):
        return subprocess.run(
            [sys.executable, "-m", "scope.publish", *words, *more],
            cwd=ROOT, capture_output=True, text=True, timeout=1200, env=environment,
        )  # fmt: skip

    shown = command("dry_run=true")
    assert shown.returncode == 0 and "base_model_relation: adapter" in shown.stdout and not hub.requests
    done = command()
    assert done.returncode == 0, done.stderr
    assert f"{hub.address}/{REPOSITORY}" in done.stdout and TOKEN not in done.stdout + done.stderr
    assert hashlib.sha256(hub.files["adapter_model.safetensors"]).hexdigest() in hub.files["README.md"].decode()
    hub.faults = {"/api/repos/create": 401}
    done = command()
    assert done.returncode == 2 and done.stderr.count("error: ") == 1 and "Traceback" not in done.stderr
    assert TOKEN not in done.stderr and "push again with: python -m scope.publish recipe=smollm2_135m" in done.stderr


# ---------------------------------------------------------------- the card


def test_the_card_states_base_data_metrics_and_making(run, recipe_of, tiny_model):
    from huggingface_hub import ModelCard

    recipe = recipe_of(run)
    results = json.loads((run / "scope/evaluate/mist/results.json").read_text())
    trained = json.loads((run / "scope/train/manifest.json").read_text())
    for kind, library, relation in (("adapter", "peft", "adapter"), ("merged", "transformers", "finetune")):
        found = ModelCard(card(recipe, find_product(recipe, kind), "llama3.2"))
        data = found.data
        assert (data.library_name, data.base_model_relation, data.license) == (library, relation, "llama3.2")
        measured = {r.metric_name.removesuffix(" (per cent)"): r.metric_value for r in data.eval_results}
        rates = results["systems"]["merged"]["rates"]
        names = ("Clean", "Misleading", "Correct ctx", "Irrelevant", "Overall", "SC2W")
        wanted = [rates[m]["estimate"] for m in ("clean", "misleading", "correct", "irrelevant", "overall", "sc2w")]
        assert measured == {n: round(100 * w, 2) for n, w in zip(names, wanted, strict=True) if w is not None}
        text = found.text
        assert trained["outputs"]["adapter/adapter_model.safetensors"] in text and trained["key"]["weights"] in text
        assert "items in the training pool" in text, "the mining funnel"
        assert "| realised | 25.00 | 25.00 | 25.00 | 25.00 |" in text
        assert "| asked for | 25.00 | 25.00 | 25.00 | 25.00 |" in text
        made = yaml.safe_load(text.partition("```yaml\n")[2].partition("```")[0])
        assert made["trainer"] == trained["recipe"]["trainer"] and made["model"]["base"] == tiny_model.name
        table = [line for line in text.splitlines() if line.startswith("| Misleading |")]
        assert len(table) == 1 and f"{100 * rates['misleading']['estimate']:.1f} [" in table[0]
        assert "8 items of evaluation.parquet" in text and str(run) not in text


def test_a_card_without_an_evaluation_of_these_weights_says_so(run, recipe_of):
    from huggingface_hub import ModelCard

    recipe = recipe_of(run)
    manifest = run / "scope/evaluate/mist/manifest.json"
    other = json.loads(manifest.read_text())
    other["key"]["systems"]["merged"][0] = "0" * 64
    manifest.write_text(json.dumps(other))
    stale = ModelCard(card(recipe, find_product(recipe, "merged")))
    assert stale.data.eval_results is None and "Not evaluated yet" in stale.text
    shutil.rmtree(run / "scope/evaluate")
    found = ModelCard(card(recipe, find_product(recipe, "adapter")))
    assert "model-index" not in str(found) and found.text.count("Not evaluated yet") == 2


def rated(**intervals):
    rates = {m: {"estimate": sum(i) / 2, "interval": list(i)} for m, i in intervals.items()}
    rates["correct"] = {"estimate": None, "interval": None}
    return {"suite": "mist", "differences": {"merged": {"rates": rates}}}


def test_the_control_that_falls_is_named():
    found = rated(clean=(-0.2, -0.1), misleading=(0.1, 0.3), irrelevant=(-0.2, 0.0), sc2w=(0.05, 0.15))
    assert fallen(found, "merged") == ["Clean -15.0 [-20.0, -10.0]", "SC2W +10.0 [+5.0, +15.0]"]
    assert fallen(rated(clean=(0.1, 0.2), sc2w=(-0.5, -0.1)), "merged") == []


def test_the_license_is_the_bases_own_where_it_is_known(tmp_path):
    (tmp_path / "README.md").write_text("---\nlicense: mit\n---\n# base\n")
    assert base_license(str(tmp_path)) == "mit"
    assert base_license("Qwen/Qwen2.5-Coder-0.5B-Instruct") == "apache-2.0"
    assert base_license("lab/unknown") is None


@pytest.mark.parametrize(
    "value, shown",
    [
        ("/home/me/models/base", "base"),
        ("~/pools/train.jsonl", "train.jsonl"),
        ("train.py model.base=/home/me/base pool.exclude=[/a/b,'/c/d e']", None),
        ("https://hub.example/owner/name", "https://hub.example/owner/name"),
        ("authored and/or public/mixed 1/2", "authored and/or public/mixed 1/2"),
        ({"a": ["/x/y", 1, None], "/k/l": "/"}, {"a": ["y", 1, None], "l": "/"}),
        ({"engine": {"server": "10.0.0.7:8000", "kind": "vllm"}}, {"engine": {"server": "", "kind": "vllm"}}),
    ],
    ids=str,
)
def test_absolute_paths_are_reduced_to_their_last_part(value, shown):
    found = public(value)
    assert found == shown if shown is not None else "/home" not in found and "/a/" not in found


@given(
    st.lists(st.from_regex(r"[\w.+-]{1,12}", fullmatch=True), min_size=2, max_size=6),
    st.sampled_from(["", "k=", "x ", "["]),
)
def test_no_folder_of_an_absolute_path_survives(parts, before):
    assert public(f"{before}/{'/'.join(parts)}") == before + parts[-1]


# ---------------------------------------------------------------- the adapter's folder


def test_a_saved_adapter_names_its_base_and_reloads_to_the_same_logits(run, recipe_of, tiny_model):
    """The merged weights, written by other code, are the witness; the snippet of the card does the loading."""
    import torch
    from transformers import AutoModelForCausalLM

    from scope.models import weights_hash

    adapter = run / "scope/train/adapter"
    record, config = (json.loads((adapter / name).read_text()) for name in ("base.json", "adapter_config.json"))
    assert record == {"base": str(tiny_model), "revision": None, "weights_sha256": weights_hash(tiny_model)}
    assert config["base_model_name_or_path"] == str(tiny_model) and config["revision"] is None
    write_cards(recipe_of(run))
    text = (adapter / "README.md").read_text()
    assert "base_model_relation: finetune" in (run / "scope/merged/README.md").read_text()
    names: dict = {}
    snippet = text.partition("```python\n")[2].partition("```")[0].replace(REPOSITORY, str(adapter))
    assert len(snippet.strip().splitlines()) == 5
    exec(snippet, names)
    ids = names["tokenizer"]("A shelf holds 17 books and 25 more are added.", return_tensors="pt")["input_ids"]
    with torch.inference_mode():
        merged = AutoModelForCausalLM.from_pretrained(run / "scope/merged", dtype=torch.float32)(ids).logits
        base = AutoModelForCausalLM.from_pretrained(tiny_model, dtype=torch.float32)(ids).logits
        found = names["model"].float()(ids).logits
    assert (found - merged).abs().max() < 2e-2, "merged weights may be rounded to bf16"
    assert (found - base).abs().max() > 0.1, "the adapter must do something"
