"""The transformers engine and the store, on the tiny real model."""

import sqlite3
from pathlib import Path

import pytest

from scope.conditions import Condition
from scope.engines import EngineError, Generated, Sampling, Store, complete
from scope.models import resolve_model
from scope.prompts import user_prompt
from scope.schema import EngineConfig, ModelConfig

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture
def prompts(tiny_pool):
    return [user_prompt(item, c) for item in tiny_pool[0][:6] for c in Condition]


def engine(tiny_model, **settings):
    from scope.engines.transformers import TransformersEngine

    model = ModelConfig(base=str(tiny_model), dtype="float32")
    return TransformersEngine(resolve_model(str(tiny_model)), model, EngineConfig(**settings))


def test_completions_equal_transformers_generate_one_by_one(tiny_model, prompts, tmp_path):
    """Batching, left padding, shared prefixes and leaving rows change nothing: the peer is plain generate."""
    import torch
    from transformers import AutoModelForCausalLM

    ours = engine(tiny_model, batch_rows=10, chunk_tokens=3)
    found = complete(ours, prompts, Sampling(24), Store(tmp_path / "store.sqlite"), "test")
    model = AutoModelForCausalLM.from_pretrained(tiny_model, dtype=torch.float32).eval()
    for ids, completion in zip(ours.render(prompts), found, strict=True):
        with torch.inference_mode():
            out = model.generate(torch.tensor([ids]), max_new_tokens=24, do_sample=False, pad_token_id=2)
        new = out[0, len(ids) :].tolist()
        ended = new[-1] == 2
        assert completion.text == ours.tokenizer.decode(new[:-1] if ended else new)
        assert completion.finish_reason == ("stop" if ended else "length")
        assert completion.n_prompt_tokens == len(ids) and completion.n_tokens == len(new) - ended


@pytest.mark.parametrize(
    "settings", [{"share_prefixes": False}, {"batch_rows": 1}, {"chunk_tokens": 1}, {"pack_tokens": 64}]
)
def test_settings_of_the_engine_do_not_change_fp32_text(tiny_model, prompts, tmp_path, settings):
    texts = [
        [c.text for c in complete(engine(tiny_model, **s), prompts, Sampling(12), Store(tmp_path / f"{n}.sqlite"), "t")]
        for n, s in enumerate(({}, settings))
    ]
    assert texts[0] == texts[1]


def test_token_cap_is_kept_as_finish_reason(tiny_model, prompts, tmp_path):
    found = complete(engine(tiny_model), prompts, Sampling(2), Store(tmp_path / "store.sqlite"), "test")
    assert {c.finish_reason for c in found} == {"length"} and {c.n_tokens for c in found} == {2}


def test_a_rerun_generates_only_what_is_missing(tiny_model, prompts, tmp_path, monkeypatch):
    store = Store(tmp_path / "store.sqlite")
    ours = engine(tiny_model, batch_rows=8)
    first = complete(ours, prompts, Sampling(12), store, "test")
    rows = []
    generate = ours.generate
    monkeypatch.setattr(ours, "generate", lambda r, s: rows.append(len(r)) or generate(r, s))
    assert complete(ours, prompts, Sampling(12), store, "test") == first and rows == []
    db = sqlite3.connect(store.path)
    gone = first[3].request_id
    before = db.execute("SELECT count(*) FROM completions").fetchone()[0]
    db.execute("DELETE FROM completions WHERE key = ?", [gone])
    db.commit()
    assert complete(ours, prompts, Sampling(12), store, "test") == first
    assert rows == [8], "the batch that lacked a row is computed whole, no other"
    assert db.execute("SELECT count(*) FROM completions").fetchone()[0] == before


def test_what_matters_changes_the_key_and_nothing_else_does(tiny_model, prompts, tmp_path):
    import shutil

    store = Store(tmp_path / "store.sqlite")
    keys = {c.request_id for c in complete(engine(tiny_model), prompts[:2], Sampling(4), store, "t")}
    same = {c.request_id for c in complete(engine(tiny_model, chunk_tokens=2), prompts[:2], Sampling(4), store, "t")}
    assert keys == same
    longer = {c.request_id for c in complete(engine(tiny_model), prompts[:2], Sampling(5), store, "t")}
    other = tmp_path / "other"
    shutil.copytree(tiny_model, other)
    from safetensors.torch import load_file, save_file

    weights = load_file(other / "model.safetensors")
    weights["model.norm.weight"][0] += 1e-3
    save_file(weights, other / "model.safetensors", {"format": "pt"})
    moved = {c.request_id for c in complete(engine(other), prompts[:2], Sampling(4), store, "t")}
    assert len(keys | longer | moved) == 3 * len(keys)


def test_equal_prompts_are_generated_once(tiny_model, prompts, tmp_path):
    store = Store(tmp_path / "store.sqlite")
    found = complete(engine(tiny_model), [prompts[0]] * 5, Sampling(4), store, "t")
    assert len({c.request_id for c in found}) == 1
    assert sqlite3.connect(store.path).execute("SELECT count(*) FROM completions").fetchone()[0] == 1


def test_a_prompt_beyond_the_window_is_refused_by_name(tiny_model, tmp_path):
    with pytest.raises(EngineError, match="exceed the window of 512 tokens"):
        complete(engine(tiny_model), ["word " * 600], Sampling(4), Store(tmp_path / "s.sqlite"), "t")


def test_a_batch_is_committed_whole_or_not_at_all(tmp_path):
    from scope.items import Completion

    store = Store(tmp_path / "store.sqlite")
    good = Completion("a" * 64, "h", "text", "stop", 3, 1)
    bad = Completion("b" * 64, "h", None, "stop", 3, 1)
    with pytest.raises(Exception, match="completion store"):
        store.put([(c, Generated([1], "", "stop")) for c in (good, bad)], plan="p", engine="e")
    assert store.get([good.request_id]) == {}


def test_a_broken_store_is_a_sentence(tmp_path):
    from scope.artifacts import StageError

    path = tmp_path / "store.sqlite"
    path.write_bytes(b"this is not a database" * 100)
    with pytest.raises(StageError, match="store cannot be used"):
        Store(path)


def test_a_failure_gives_way_to_an_answer_and_an_answer_to_nothing(tmp_path):
    """Every attempt's cost stays counted; a kept answer is never replaced, not even by another answer."""
    from dataclasses import replace

    from scope.items import Completion

    store = Store(tmp_path / "store.sqlite")
    failed = Completion("k", "h", "", "error", 0, 0, error="500", engine="a server")
    first = Completion("k", "h", "B", "stop", 3, 1, reasoning="hm", log_probs=(-1.5, -2.0), seconds=0.5, engine="it")
    for completion, expected in ((failed, failed), (failed, failed), (first, first), (failed, first)):
        store.put([(completion, Generated([7], "", "", cost=0.25))], plan="p", engine="e")
        assert store.get(["k"], failed=True) == {"k": expected}
        assert store.get(["k"]) == ({} if expected is failed else {"k": first})
    store.put([(replace(first, text="C"), Generated([8], "", ""))], plan="p", engine="e")
    (found,) = store.get(["k"]).values()
    assert found == first and found.seconds == 0.5 and store.cost() == 0.75


def test_a_store_of_the_first_layout_is_upgraded_and_one_of_a_later_is_refused(tmp_path):
    from scope.artifacts import StageError
    from scope.engines.store import _SCHEMA
    from scope.items import Completion

    path = tmp_path / "store.sqlite"
    with sqlite3.connect(path) as db:
        db.execute(_SCHEMA)
        db.execute("INSERT INTO completions VALUES ('k', 'h', 'B', '[5, 6]', 'stop', 3, 'plan', 'engine')")
    for _ in range(2):
        assert Store(path).get(["k"]) == {"k": Completion("k", "h", "B", "stop", 3, 2)}
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA user_version = 99")
    with pytest.raises(StageError, match="written by a newer version of scope"):
        Store(path)


def test_processes_of_a_launch_share_the_work_and_all_hold_the_result(smollm2, tmp_path):
    """torchrun, two processes on one store: every batch once, both return everything."""
    import json
    import os
    import subprocess
    import sys

    from server import small_model

    folder = small_model(tmp_path / "model", smollm2)
    program = tmp_path / "program.py"
    program.write_text(
        "import json, sys\nfrom pathlib import Path\n"
        f"sys.path[:0] = [{str(ROOT)!r}, {str(ROOT / 'tests')!r}]\n"
        "from server import local_engine\nfrom scope.engines import Sampling, Store, complete\n"
        "from scope.engines.shards import shard\n"
        f"here, engine = Path({str(tmp_path)!r}), local_engine({str(folder)!r}, batch_rows=2)\n"
        "rows, generate = [], engine.generate\n"
        "engine.generate = lambda r, s: rows.append(len(r)) or generate(r, s)\n"
        "found = complete(engine, [f'Say {n}' for n in range(10)], Sampling(4), Store(here / 's.sqlite'), 't')\n"
        "out = {'rows': sum(rows), 'texts': [c.text for c in found]}\n"
        "(here / f'{shard()[0]}.json').write_text(json.dumps(out))\n"
    )
    launch = [sys.executable, "-m", "torch.distributed.run", "--nproc_per_node=2", "--master_port=29613", str(program)]
    done = subprocess.run(launch, capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    assert done.returncode == 0, done.stderr
    one, two = (json.loads((tmp_path / f"{n}.json").read_text()) for n in (0, 1))
    assert one["texts"] == two["texts"] and len(one["texts"]) == 10
    assert sorted([one["rows"], two["rows"]]) == [4, 6]


def test_weight_first_product_equals_linear():
    import torch

    from scope.engines.cpu import FEW, linear

    torch.manual_seed(0)
    for bias in (True, False):
        module = torch.nn.Linear(48, 80, bias=bias)
        for shape in ((1, 48), (FEW[0], 48), (3, 5, 48), (FEW[-1], 48), (FEW[-1] + 1, 48)):
            x = torch.randn(shape)
            torch.testing.assert_close(linear(module, x), module(x), atol=1e-5, rtol=1e-5)


def test_smollm2_answers(smollm2, tmp_path):
    """A real instruct model through the whole engine: it says something sensible and ends by itself."""
    from scope.engines.transformers import TransformersEngine

    ours = TransformersEngine(smollm2, ModelConfig(base=smollm2.name, dtype="float32"), EngineConfig())
    (found,) = complete(ours, ["What is the capital of France?"], Sampling(40), Store(tmp_path / "s.sqlite"), "t")
    assert "Paris" in found.text and found.finish_reason == "stop" and "<|im_end|>" not in found.text
