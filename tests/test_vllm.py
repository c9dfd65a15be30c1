"""Real vLLM beside transformers (`make test-vllm`; skipped where vLLM is not installed).

The same 100 prompts through vLLM in this process, through `vllm serve` and the openai engine, and through
transformers: parsed answers are compared, the differences counted and printed.
"""

import json
import os
import socket
import subprocess
import sys
import time
import urllib.request

import numpy as np
import pytest

pytest.importorskip("vllm")

from scope.answers import parse_answer
from scope.conditions import Condition
from scope.engines import Sampling, Store, complete, opened, probabilities, score_choices
from scope.engines.vllm import sampling_fields, sampling_params
from scope.pool import build_authored
from scope.prompts import Chat, user_prompt
from scope.schema import EngineConfig, ModelConfig

CAP = Sampling(32)
MODEL = "HuggingFaceTB/SmolLM2-135M-Instruct"
CONFIG = ModelConfig(base=MODEL, dtype="float32")
VLLM = EngineConfig(kind="vllm", eager=True, max_model_len=1024)


@pytest.fixture(scope="module")
def items():
    return build_authored(25, 0, "eval", "easy", ["difference", "give_and_take", "note_lookup", "unit_price"])


@pytest.fixture(scope="module")
def prompts(items):
    return [user_prompt(item, c) for item in items for c in Condition]


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return Store(tmp_path_factory.mktemp("vllm") / "completions.sqlite")


@pytest.fixture(scope="module")
def adapter(tmp_path_factory, smollm2):
    """A LoRA adapter that moves the model visibly."""
    import torch
    from peft import LoraConfig, get_peft_model

    from scope.artifacts import file_hash
    from scope.models import load_model

    torch.manual_seed(0)
    model = get_peft_model(
        load_model(smollm2, "float32"), LoraConfig(r=4, lora_alpha=8, target_modules=["q_proj", "v_proj"])
    )
    for name, weight in model.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(weight, std=0.05)
    folder = tmp_path_factory.mktemp("adapter")
    model.save_pretrained(folder)

    class Adapter:
        path = folder
        sha256 = file_hash(folder / "adapter_model.safetensors")

    return Adapter()


@pytest.fixture(scope="module")
def here(smollm2, prompts, store):
    """What transformers says."""
    with opened(smollm2, CONFIG, EngineConfig()) as engine:
        return complete(engine, prompts, CAP, store, "transformers")


@pytest.fixture(scope="module")
def offline(smollm2):
    with opened(smollm2, CONFIG, VLLM) as engine:
        yield engine


def compared(name, items, here, there):
    """(texts that differ, parsed answers that differ), printed."""
    answers = [
        [parse_answer(c.text, items[n // 4].answer_type) for n, c in enumerate(found)] for found in (here, there)
    ]
    texts = [n for n, (a, b) in enumerate(zip(here, there, strict=True)) if a.text != b.text]
    parsed = [n for n, (a, b) in enumerate(zip(*answers, strict=True)) if a != b]
    print(f"\n{name}: {len(texts)} of {len(here)} texts and {len(parsed)} parsed answers differ from transformers")
    for n in texts[:3]:
        print(f"  {here[n].text!r}\n  {there[n].text!r}")
    return texts, parsed


def test_a_seed_draws_the_same_and_a_system_message_is_sent(smollm2):
    with opened(smollm2, CONFIG, VLLM) as engine:
        rendered = engine.render([Chat("Answer in one word.", "Name a colour.")] * 2)
        assert "Answer in one word." in engine.tokenizer.decode(rendered[0])
        drawn = [[out.text for out in engine.generate(rendered, Sampling(8, 0.7, 0.9, seed))] for seed in (1, 1, 2)]
    assert drawn[0] == drawn[1] != drawn[2]


def test_every_sampling_field_is_given():
    from vllm import SamplingParams

    given = {*sampling_fields(), "output_kind"}
    # Set by vLLM itself, and refused or overwritten as input.
    internal = {"output_text_buffer_length"}
    fields = {f for f in SamplingParams.__struct_fields__ if not f.startswith("_")} - internal
    assert fields <= given
    params = sampling_params(max_tokens=7)
    assert params.temperature == 0.0 and params.max_tokens == 7 and params.n == 1


def test_vllm_offline_says_what_transformers_says(items, prompts, here, offline, store):
    there = complete(offline, prompts, CAP, store, "vllm")
    texts, parsed = compared("vllm offline", items, here, there)
    assert [c.n_prompt_tokens for c in here] == [c.n_prompt_tokens for c in there], "the same token ids go in"
    assert [c.prompt_hash for c in here] == [c.prompt_hash for c in there]
    assert not {c.request_id for c in here} & {c.request_id for c in there}, "the key tells the engines apart"
    assert len(texts) <= 5 and len(parsed) <= 2
    assert complete(offline, prompts, CAP, store, "vllm") == there


def test_token_order_lets_the_prefix_cache_hit(offline):
    """Twelve passages of about 300 tokens with four questions each, sixteen requests a batch.

    vLLM shares whole blocks, of 128 tokens on a CPU: the short prompts above share none.
    """
    passages = [" ".join(f"Box {n + k} of row {n} holds {n * k + 3} nails." for k in range(25)) for n in range(12)]
    prompts = [f"{passage} How many nails are in box {n + k}?" for k in range(4) for n, passage in enumerate(passages)]
    rendered = offline.render(prompts)
    params = sampling_params(max_tokens=1)
    orders = {"as they come": list(range(48)), "token order": [n for part in offline.plan(rendered, CAP) for n in part]}
    cached = {}
    for name, order in orders.items():
        offline.llm.reset_prefix_cache()
        began = time.perf_counter()
        hits = total = 0
        for start in range(0, len(order), 16):
            for output in offline._run([rendered[n] for n in order[start : start + 16]], params):
                hits, total = hits + output.num_cached_tokens, total + len(output.prompt_token_ids)
        cached[name] = hits / total
        print(f"\n{name}: {cached[name]:.1%} of {total} prompt tokens cached, {time.perf_counter() - began:.1f} s")
    assert cached["token order"] > 0.3


def test_vllm_scores_options_as_transformers_does(smollm2, prompts, offline, store):
    letters, phrases = ["A", "B", "C"], ["yes", "no", "not enough information"]
    with opened(smollm2, CONFIG, EngineConfig()) as engine:
        for by, options in (("token", letters), ("sequence", phrases)):
            a = score_choices(engine, prompts[:12], options, store, "transformers", by=by)
            b = score_choices(offline, prompts[:12], options, store, "vllm", by=by)
            np.testing.assert_allclose([c.log_probs for c in a], [c.log_probs for c in b], atol=2e-3)
            np.testing.assert_allclose(probabilities(a), probabilities(b), atol=1e-3)


def test_an_adapter_is_applied_without_merging(smollm2, items, prompts, here, adapter, store):
    with opened(smollm2, CONFIG, EngineConfig(), adapter) as engine:
        expected = complete(engine, prompts[:20], CAP, store, "transformers, adapter")
    with opened(smollm2, CONFIG, VLLM, adapter) as engine:
        found = complete(engine, prompts[:20], CAP, store, "vllm, adapter")
    texts, _ = compared("vllm with an adapter", items, expected, found)
    moved = sum(a.text != b.text for a, b in zip(here, expected, strict=False))
    print(f"  (the adapter itself changes {moved} of 20 texts)")
    assert len(texts) <= 2 and moved >= 5


def test_vllm_serve_says_what_transformers_says(smollm2, items, prompts, here, store, tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    # What `vllm serve` starts; the CPU wheel's own command fails, for it looks up the version of a package `vllm`.
    command = [sys.executable, "-m", "vllm.entrypoints.openai.api_server", "--model", str(smollm2.path)]
    command += ["--port", str(port), "--served-model-name", MODEL, "--dtype", "float32"]
    command += ["--max-model-len", "1024", "--enforce-eager"]
    url = f"http://127.0.0.1:{port}"
    with open(tmp_path / "serve.log", "w") as log:
        serving = subprocess.Popen(
            command, stdout=log, stderr=subprocess.STDOUT, env={**os.environ, "HF_HUB_OFFLINE": "1"}
        )
    try:
        for _ in range(1200):
            try:
                models = json.load(urllib.request.urlopen(f"{url}/v1/models", timeout=2))
                break
            except OSError:
                assert serving.poll() is None, (tmp_path / "serve.log").read_text()[-3000:]
                time.sleep(1)
        assert models["data"][0]["id"] == MODEL
        config = EngineConfig(kind="openai", base_url=f"{url}/v1", temperature=0.0, concurrency=16)
        with opened(None, CONFIG, config) as engine:
            there = complete(engine, prompts, CAP, store, "vllm serve")
            texts, parsed = compared("vllm serve", items, here, there)
            assert [c.n_prompt_tokens for c in here] == [c.n_prompt_tokens for c in there], "the same template"
            assert len(texts) <= 5 and len(parsed) <= 2
            with pytest.raises(Exception, match="item 3: exceeds the window of"):
                complete(engine, ["word " * 2000], CAP, store, "too long", names=["item 3"])
            letters = ["A", "B", "C"]
            chosen = score_choices(engine, prompts[:12], letters, store, "vllm serve, options")
        with opened(smollm2, CONFIG, EngineConfig()) as engine:
            expected = score_choices(engine, prompts[:12], letters, store, "transformers, options")
        assert [c.text for c in chosen] == [c.text for c in expected]
    finally:
        serving.terminate()
        serving.wait(60)
