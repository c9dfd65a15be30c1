"""The main job as a user runs it: entry points, results, reruns, kills at any moment."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

PRODUCTS = {
    "mine.py": ["mine/quartets.jsonl", "mine/funnel.json"],
    "train.py": [
        "scope/train/adapter/adapter_model.safetensors",
        "scope/merged/model.safetensors",
        "scope/train/plan.jsonl",
    ],
    "evaluate.py": [
        "scope/evaluate/mist/results.json",
        "scope/evaluate/mist/outcomes.parquet",
        "scope/evaluate/mist/table.txt",
    ],
}


def test_every_stage_leaves_a_manifest_that_traces_its_inputs(finished_run):
    out, _ = finished_run
    mine, train, merged, evaluate = (
        json.loads((out / part / "manifest.json").read_text())
        for part in ("mine", "scope/train", "scope/merged", "scope/evaluate/mist")
    )
    assert train["key"]["quartets"] == mine["outputs"]["quartets.jsonl"]
    assert merged["key"]["adapter"] == train["outputs"]["adapter/adapter_model.safetensors"]
    assert evaluate["key"]["pool"] == mine["key"]["pool"]["evaluation"]
    assert evaluate["key"]["systems"]["base"][0] == mine["key"]["weights"]
    for manifest in (mine, train, merged, evaluate):
        assert manifest["versions"]["torch"] and manifest["seed"] == 0 and manifest["recipe"]["name"] == "smollm2_135m"


def test_tiny_base_is_misled_and_everything_adds_up(finished_run):
    """The tiny base solves all alone and follows the wrong context, by its training; tables must show it."""
    out, done = finished_run
    results = json.loads((out / "scope/evaluate/mist/results.json").read_text())
    base = results["systems"]["base"]["rates"]
    assert base["clean"]["estimate"] >= 0.8
    assert base["sc2w"]["estimate"] >= 0.8, "most clean-right items are lost when misled"
    four = [base[c]["estimate"] for c in ("clean", "misleading", "correct", "irrelevant")]
    assert base["overall"]["estimate"] == pytest.approx(sum(four) / 4)
    funnel = json.loads((out / "mine/funnel.json").read_text())
    assert funnel["quartets"] + sum(funnel["dropped"].values()) == funnel["items"] == 16
    assert funnel["quartets"] == len((out / "mine/quartets.jsonl").read_text().splitlines())
    for by in funnel["by"].values():
        assert sum(sum(fates.values()) for fates in by.values()) == 16
    assert "SC2W" in done["evaluate.py"].stdout


def test_outcomes_trace_to_prompts_and_completions(finished_run):
    import sqlite3

    import pyarrow.parquet as pq

    out, _ = finished_run
    rows = pq.read_table(out / "scope/evaluate/mist/outcomes.parquet").to_pylist()
    assert len(rows) == 2 * 8 * 4
    store = sqlite3.connect(out / "store/completions.sqlite")
    for row in rows:
        text, prompt_hash = store.execute(
            "SELECT text, prompt_hash FROM completions WHERE key = ?", [row["request_id"]]
        ).fetchone()
        assert (text, prompt_hash) == (row["text"], row["prompt_hash"])
    prompts = {(r["item_id"], r["cell"]): r["prompt_hash"] for r in rows if r["system"] == "base"}
    assert all(prompts[r["item_id"], r["cell"]] == r["prompt_hash"] for r in rows), "systems must see the same prompts"


def test_step0_loss_is_ln2_and_masses_are_equal(finished_run):
    out, _ = finished_run
    manifest = json.loads((out / "scope/train/manifest.json").read_text())
    assert manifest["step0_loss"] == pytest.approx(0.693147, abs=1e-3)
    assert set(manifest["facts"]["realised_masses"].values()) == {0.25}
    log = [json.loads(line) for line in (out / "scope/train/log.jsonl").read_text().splitlines()]
    assert log[0]["loss"] == pytest.approx(0.693147, abs=1e-3)
    for condition in ("clean", "misleading", "correct", "irrelevant"):
        assert f"rewards/margins/{condition}" in log[-2] or f"rewards/margins/{condition}" in log[-1]


def test_merged_equals_adapter(finished_run):
    out, _ = finished_run
    assert json.loads((out / "scope/merged/manifest.json").read_text())["logit_difference"] < 1e-4


def test_second_time_there_is_nothing_to_do(finished_run, tiny_args, run_entry):
    out, _ = finished_run
    before = {p: (out / p).stat().st_mtime_ns for products in PRODUCTS.values() for p in products}
    for entry in PRODUCTS:
        done = run_entry(entry, "recipe=smollm2_135m", *tiny_args, f"output_dir={out}")
        assert "nothing to do" in done.stdout
    assert before == {p: (out / p).stat().st_mtime_ns for p in before}


def test_other_settings_are_refused_not_overwritten(finished_run, tiny_args, run_entry):
    out, _ = finished_run
    done = run_entry(
        "train.py", "recipe=smollm2_135m", *tiny_args, f"output_dir={out}", "trainer.learning_rate=1e-3", check=False
    )
    assert done.returncode == 2
    assert "learning_rate: 0.002 there, 0.001 now" in done.stderr and "Traceback" not in done.stderr


def test_changed_quartets_are_refused(finished_run, tiny_args, run_entry, tmp_path):
    import shutil

    out = tmp_path / "run"
    shutil.copytree(finished_run[0], out)
    path = out / "mine/quartets.jsonl"
    path.write_text(path.read_text().replace("final", "very final", 1))
    done = run_entry("train.py", "recipe=smollm2_135m", *tiny_args, f"output_dir={out}", check=False)
    assert done.returncode == 2 and "was changed after stage 'mine' wrote it" in done.stderr
    assert "mine.py recipe=smollm2_135m" in done.stderr


def test_missing_stages_name_the_command(tiny_args, run_entry, tmp_path):
    for entry, needed in (("train.py", "mine.py recipe="), ("evaluate.py", "train.py recipe=")):
        done = run_entry(entry, "recipe=smollm2_135m", *tiny_args, f"output_dir={tmp_path / 'none'}", check=False)
        assert done.returncode == 2 and needed in done.stderr and "Traceback" not in done.stderr


def _batches(path):
    import sqlite3

    try:
        with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as db:
            return db.execute("SELECT count(*) FROM completions").fetchone()[0]
    except sqlite3.Error:
        return 0


#: (entry, when to kill: a name, a test on the run's folder, seconds to wait after it)
MOMENTS = [
    ("mine.py", "starting", lambda out: (out / "mine/claim.json").exists(), 0.5),
    ("mine.py", "inside a later batch", lambda out: _batches(out / "store/completions.sqlite") >= 8, 0.02),
    ("mine.py", "near the end", lambda out: _batches(out / "store/completions.sqlite") >= 24, 0.0),
    ("train.py", "before the first checkpoint", lambda out: (out / "scope/train/plan.jsonl").exists(), 0.5),
    ("train.py", "while a checkpoint is written", lambda out: (out / "scope/train/checkpoint-2").exists(), 0.0),
    ("train.py", "after a checkpoint", lambda out: (out / "scope/train/checkpoint-4/complete.json").exists(), 0.05),
    ("train.py", "before merging", lambda out: (out / "scope/train/manifest.json").exists(), 0.0),
    ("train.py", "while merging", lambda out: any((out / "scope").glob(".merged.*.tmp/*")), 0.0),
    ("evaluate.py", "inside the base", lambda out: _batches(out / "store/completions.sqlite") >= 40, 0.02),
    (
        "evaluate.py",
        "while results are written",
        lambda out: (out / "scope/evaluate/mist/outcomes.parquet").exists(),
        0.0,
    ),
]


@pytest.mark.timeout(7000)
@pytest.mark.parametrize(
    "moments",
    [pytest.param(MOMENTS[1::4], marks=pytest.mark.thorough), pytest.param(MOMENTS, marks=pytest.mark.slow)],
    ids=["three", "all"],
)
def test_killed_at_any_moment_it_ends_with_the_same_bytes(moments, finished_run, tiny_args, tmp_path):
    """SIGKILL at moments over the three entry points of one run; every product equals the unkilled run's."""
    out = tmp_path / "run"
    killed = 0
    for entry in PRODUCTS:
        command = [sys.executable, str(ROOT / entry), "recipe=smollm2_135m", *tiny_args, f"output_dir={out}"]
        for _, reached, wait in [m[1:] for m in moments if m[0] == entry]:
            process = subprocess.Popen(
                command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True
            )
            deadline = time.monotonic() + 1200
            while process.poll() is None and not reached(out) and time.monotonic() < deadline:
                time.sleep(0.002)
            time.sleep(wait)
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                killed += 1
            _, stderr = process.communicate()
            assert process.returncode in (0, -signal.SIGKILL), stderr.decode()
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=1200)
        assert done.returncode == 0, done.stdout + done.stderr
        for product in PRODUCTS[entry]:
            assert (out / product).read_bytes() == (finished_run[0] / product).read_bytes(), product
        assert not list(out.rglob(".*.tmp")), "half-written files are left"
    assert killed >= 0.6 * len(moments), f"only {killed} of {len(moments)} kills hit a running process"


@pytest.mark.thorough
def test_items_that_were_trained_on_are_not_evaluated(finished_run, tiny_args, run_entry):
    out, _ = finished_run
    done = run_entry(
        "evaluate.py",
        "recipe=smollm2_135m",
        *tiny_args,
        f"output_dir={out}",
        f"pool.evaluation={out}/pool/train.jsonl",
        check=False,
    )
    assert done.returncode == 2 and "items that were trained on" in done.stderr


@pytest.mark.thorough
def test_quartets_of_another_pool_are_refused(finished_run, tiny_args, run_entry):
    out, _ = finished_run
    done = run_entry("train.py", "recipe=smollm2_135m", *tiny_args, f"output_dir={out}", "pool.n_train=9", check=False)
    assert done.returncode == 2 and "was made with pool = " in done.stderr and "mine.py recipe=" in done.stderr
