"""The evaluation stage: through a bad server, over two processes, sliced, scored again, with systems of every kind."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from server import Server, local_engine

from scope import artifacts
from scope.artifacts import StageError
from scope.evaluation import evaluate
from scope.evaluation.stage import selected
from scope.evaluation.suites import SUITES
from scope.items import write_rows
from scope.pool import build_authored
from scope.prompts import defended
from scope.recipe import load

ROOT = Path(__file__).resolve().parent.parent
PRODUCTS = ("results.json", "outcomes.parquet", "table.txt", "items.jsonl")


def folder(out, arm="scope"):
    return out / arm / "evaluate" / "mist"


def read(out):
    return json.loads((folder(out) / "results.json").read_text())


def outcomes(out):
    return pq.read_table(folder(out) / "outcomes.parquet").to_pylist()


def same_products(a, b):
    return {name: (folder(a) / name).read_bytes() == (folder(b) / name).read_bytes() for name in PRODUCTS}


# ---------------------------------------------------------------- through a server


@pytest.fixture(scope="module")
def fifty(tmp_path_factory):
    """Fifty items: 400 requests of two systems."""
    path = tmp_path_factory.mktemp("fifty") / "items.jsonl"
    write_rows(path, build_authored(50, 0, "eval", "easy"))
    return path


def through(url, out, items, *overrides):
    settings = [
        *("engine=openai", f"engine.base_url={url}", "engine.server=here", "engine.timeout=600"),
        *("model.base=lab/served", f"pool.evaluation={items}", "pool.n_evaluation=0", "systems=[base,prompt_defense]"),
        *("evaluation.max_new_tokens=8", "evaluation.replicates=100", f"output_dir={out}", *overrides),
    ]
    return evaluate(load("smollm2_135m", settings))


@pytest.mark.parametrize(
    "which", [pytest.param("tiny_model", marks=pytest.mark.thorough), pytest.param("smollm2", marks=pytest.mark.slow)]
)
def test_400_requests_through_a_bad_server_end_in_the_table_of_a_good_one(which, request, fifty, tmp_path):
    """No weights of the model are here: a server's model needs none."""
    model = request.getfixturevalue(which)
    engine = local_engine(model.path if which == "smollm2" else model)
    suite = SUITES["mist"]
    plain = [suite.prompt(item, cell) for item in build_authored(50, 0, "eval", "easy") for cell in suite.cells]
    with Server(engine) as good, Server(engine, rate=0.5) as bad:
        bad.prime([], 8, good.prime([*plain, *map(defended, plain)], 8))
        through(good.url, tmp_path / "good", fifty)
        through(bad.url, tmp_path / "bad", fifty)
        assert bad.met.total() > 100 and len(bad.met) == 7, f"every fault was met: {dict(bad.met)}"
        assert sum(good.answered.values()) == 400 and len(bad.answered) == 400
    assert same_products(tmp_path / "good", tmp_path / "bad") == dict.fromkeys(PRODUCTS, True)
    rows = outcomes(tmp_path / "bad")
    assert len({(r["system"], r["item_id"], r["cell"]) for r in rows}) == len(rows) == 400
    assert read(tmp_path / "bad")["failed_items"] == []


def test_failed_requests_withhold_rates_and_the_next_run_asks_them_alone(tiny_model, fifty, tmp_path, capsys):
    engine = local_engine(tiny_model)
    options = ("engine.max_retries=0", "limit=10", "systems=[base]")
    with Server(engine, rate=0.4, faults=("500",), most=1) as server:
        through(server.url, tmp_path / "run", fifty, *options)
        first = read(tmp_path / "run")
        failed = [row for row in outcomes(tmp_path / "run") if row["label"] == "failed"]
        assert 5 < len(failed) < 35 and server.requests.total() == 40
        assert all("500" in row["error"] and row["text"] == "" for row in failed)
        assert sorted({row["item_id"] for row in failed}) == first["failed_items"]
        assert first["systems"]["base"]["rates"]["overall"]["withheld"] == len(failed)
        assert "withheld" in capsys.readouterr().out
        through(server.url, tmp_path / "run", fifty, *options)
        assert server.requests.total() == 40 + len(failed), "answers that are there are not asked again"
    second = read(tmp_path / "run")
    assert second["failed_items"] == [] and second["systems"]["base"]["rates"]["overall"]["estimate"] is not None


def test_a_server_cannot_answer_for_weights_on_this_disk(fifty, tmp_path):
    with pytest.raises(StageError, match=r"systems=merged: a server answers with what it serves.*systems=\[base\]"):
        through("http://127.0.0.1:9", tmp_path, fifty, "systems=[base,merged]")


# ---------------------------------------------------------------- systems, slices, settings


@pytest.fixture
def copy(finished_run, tmp_path):
    """A finished run to change: its folder."""
    out = tmp_path / "run"
    shutil.copytree(finished_run[0], out)
    return out


def again(tiny_args, out, *overrides):
    return evaluate(load("smollm2_135m", [*tiny_args, *overrides, f"output_dir={out}"]))


def test_an_adapter_a_checkpoint_and_a_model_from_elsewhere_stand_beside_the_base(copy, tiny_args, capsys):
    """The last checkpoint kept is that of step 4 of 6; the merged model under another name answers as it does here."""
    checkpoint = max((copy / "scope/train").glob("checkpoint-*"))
    systems = f"systems=[base,adapter,merged,{checkpoint.name},elsewhere,lora]"
    models = [f"evaluation.models.elsewhere={copy}/scope/merged", f"evaluation.models.lora={copy}/scope/train/adapter"]
    again(tiny_args, copy, systems, *models)
    rows = outcomes(copy)
    texts = {
        s: [r["text"] for r in rows if r["system"] == s] for s in ("base", "adapter", "merged", "elsewhere", "lora")
    }
    assert texts["elsewhere"] == texts["merged"] and texts["lora"] == texts["adapter"]
    assert {r["system"] for r in rows} == {*texts, checkpoint.name}
    with pytest.raises(StageError, match=r"checkpoint-1: there is no such checkpoint; set trainer.save_steps=\[1\]"):
        again(tiny_args, copy, "systems=[checkpoint-1]")


def test_an_adapter_of_another_base_is_refused(copy, tiny_args, smollm2):
    record = copy / "scope/train/adapter/base.json"
    record.write_text(json.dumps({"base": "other", "revision": None, "weights_sha256": "0" * 64}))
    with pytest.raises(StageError, match="was made on other with weights 000000000000"):
        again(tiny_args, copy, "systems=[lora]", f"evaluation.models.lora={copy}/scope/train/adapter")


def test_a_slice_is_evaluated_alone_and_from_what_is_stored(copy, tiny_args, tiny_pool):
    whole = outcomes(copy)
    channel = tiny_pool[1][0].channel
    again(tiny_args, copy, f"slice.channel={channel}")
    part = outcomes(copy)
    wanted = {item.id for item in tiny_pool[1] if item.channel == channel}
    assert {row["item_id"] for row in part} == wanted and 0 < len(wanted) < len(tiny_pool[1])
    assert [row for row in whole if row["item_id"] in wanted] == part


def test_a_slice_that_is_not_there_is_refused_with_those_that_are(tiny_pool):
    mist, items = SUITES["mist"], tiny_pool[1]
    with pytest.raises(StageError, match=r"slice\.chanel: mist has no such column; did you mean channel"):
        selected(mist, items, {"chanel": "forum"})
    with pytest.raises(StageError, match=r"slice\.answer_type=boolean: no item of mist has it; valid: numeric"):
        selected(mist, items, {"answer_type": "boolean"})


def test_other_settings_replace_the_results_and_generate_nothing(copy, tiny_args, caplog):
    before = read(copy)
    with caplog.at_level("INFO", logger="scope"):
        again(tiny_args, copy, "evaluation.level=0.5")
    assert caplog.text.count(" 0 of 4 batches to generate") == caplog.text.count("batches to generate") == 2
    after = read(copy)
    assert after["level"] == 0.5
    wide, narrow = (r["systems"]["base"]["rates"]["overall"] for r in (before, after))
    assert wide["estimate"] == narrow["estimate"] and narrow["interval"][0] >= wide["interval"][0]


# ---------------------------------------------------------------- scored again


def test_rescoring_reads_the_kept_answers_and_restores_every_label(copy, tiny_args, monkeypatch):
    """The answers are labelled wrong behind the table's back; without store, pool and weights they are read again."""
    before = {name: (folder(copy) / name).read_bytes() for name in PRODUCTS}
    spoiled = [{**row, "label": "wrong", "value": "0"} for row in outcomes(copy)]
    artifacts.write_parquet(folder(copy) / "outcomes.parquet", spoiled)
    manifest = json.loads((folder(copy) / "manifest.json").read_text())
    manifest["outputs"]["outcomes.parquet"] = artifacts.file_hash(folder(copy) / "outcomes.parquet")
    artifacts.write_json(folder(copy) / "manifest.json", manifest)
    for part in ("store", "mine", "scope/train", "scope/merged"):
        shutil.rmtree(copy / part)
    again(tiny_args, copy, "rescore=true", "evaluation.level=0.5", "seed=3")
    assert {name: (folder(copy) / name).read_bytes() for name in PRODUCTS} == before


def test_rescoring_what_is_not_there_is_refused(tiny_args, tmp_path):
    with pytest.raises(StageError, match=r"does not exist; run: python evaluate\.py"):
        again(tiny_args, tmp_path / "nowhere", "rescore=true")


# ---------------------------------------------------------------- several processes


@pytest.mark.thorough
@pytest.mark.parametrize("entry, made", [("mine.py", "mine"), ("evaluate.py", "scope/evaluate/mist")])
def test_two_processes_write_what_one_writes(entry, made, copy, tiny_args, finished_run):
    """Each generates its share into the common store; the main one alone writes."""
    shutil.rmtree(copy / "store")
    shutil.rmtree(copy / made)
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2", entry]
    environment = {**os.environ, "ACCELERATE_USE_CPU": "true", "OMP_NUM_THREADS": "1"}
    arguments = ["recipe=smollm2_135m", *tiny_args, f"output_dir={copy}"]
    done = subprocess.run(
        [*command, *arguments], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=1200
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "by process 2 of 2" in done.stderr
    hashes = [json.loads((out / made / "manifest.json").read_text())["outputs"] for out in (copy, finished_run[0])]
    assert hashes[0] == hashes[1]
