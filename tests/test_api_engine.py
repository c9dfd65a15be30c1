"""The OpenAI-compatible engine against a local server that really answers, and that misbehaves on demand."""

import json
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import settings as hyp_settings
from hypothesis import strategies as st
from server import FAULTS, Server, local_engine, small_model

from scope.engines import (
    EngineError,
    Sampling,
    Store,
    TooLongError,
    complete,
    opened,
    probabilities,
    reasoning_and_answer,
    score_choices,
)
from scope.recipe import RecipeError, load
from scope.schema import EngineConfig, ModelConfig

ROOT = Path(__file__).resolve().parent.parent
CAP = Sampling(6)
SECRET = "sk-proj-abc123DEF456ghi789"


@pytest.fixture(scope="module")
def local(tmp_path_factory, smollm2):
    return local_engine(small_model(tmp_path_factory.mktemp("api") / "model", smollm2))


@pytest.fixture(scope="module")
def prompts():
    return [f"What is {n} plus {n % 7}?" for n in range(400)]


@pytest.fixture(scope="module")
def memo(local, prompts):
    with Server(local) as server:
        return server.prime(prompts, CAP.max_new_tokens)


def settings(url, **more):
    return EngineConfig(**{"kind": "openai", "base_url": url, "timeout": 600, "server": "small", **more})


def ask(url, prompts, store, names=None, keep_failed=False, sampling=CAP, template=None, **more):
    model = ModelConfig(base="small", chat_template_kwargs=template or {})
    with opened(None, model, settings(url, **more)) as engine:
        return complete(engine, prompts, sampling, store, "test", names, keep_failed)


def rows(store):
    """Everything a reader of the store sees but times and counts."""
    return store._db.execute("SELECT key, prompt_hash, text, finish_reason, reasoning FROM completions").fetchall()


# ---------------------------------------------------------------- faults


def test_400_requests_through_a_bad_server_equal_those_through_a_good_one(local, prompts, memo, tmp_path):
    """Delays, 429, 500, cut connections, garbage, no choices, odd messages, no usage: nothing lost, nothing double."""
    good, bad = Store(tmp_path / "good.sqlite"), Store(tmp_path / "bad.sqlite")
    with Server(local, reasoning=True) as server:
        server.prime(prompts, 6, memo)
        expected = ask(server.url, prompts, good, concurrency=16)
        assert server.answered == dict.fromkeys(prompts, 1)
    with Server(local, rate=0.25, most=2, no_usage=0.1, reasoning=True) as server:
        server.prime(prompts, 6, memo)
        found = ask(server.url, prompts, bad, concurrency=32)
        assert server.answered == dict.fromkeys(prompts, 1), "every request was answered well exactly once"
        assert set(server.met) == set(FAULTS), "every fault was met"
        assert ask(server.url, prompts, bad) == found and server.requests.total() == len(server.bodies)
        asked = server.requests.total()
        assert asked == 400 + server.met.total() - server.met["slow"]
    assert rows(good) == rows(bad) and len(rows(bad)) == 400
    for a, b, prompt in zip(expected, found, prompts, strict=True):
        assert (a.request_id, a.text, a.finish_reason) == (b.request_id, b.text, b.finish_reason)
        assert a.text == memo[prompt, 6].text and a.finish_reason == memo[prompt, 6].finish_reason
        assert (b.n_prompt_tokens, b.n_tokens) in ((a.n_prompt_tokens, a.n_tokens), (0, 0))
        assert b.reasoning == f"They ask me {prompt!r}." and b.seconds > 0 and b.engine == "small at small"


@pytest.mark.thorough
def test_smollm2_behind_a_server_says_what_it_says_here(smollm2, tmp_path):
    from scope.engines.transformers import TransformersEngine

    engine = TransformersEngine(smollm2, ModelConfig(base=smollm2.name, dtype="float32"), EngineConfig())
    prompts = ["What is the capital of France?", "Say hello."]
    here = complete(engine, prompts, Sampling(12), Store(tmp_path / "here.sqlite"), "t")
    with Server(engine, rate=0.4) as server:
        there = ask(server.url, prompts, Store(tmp_path / "there.sqlite"), sampling=Sampling(12))
    assert [(c.text, c.finish_reason) for c in here] == [(c.text, c.finish_reason) for c in there]
    assert [c.n_prompt_tokens for c in here] == [c.n_prompt_tokens for c in there] and "Paris" in there[0].text


def test_a_request_that_fails_is_no_answer_and_is_asked_again(local, prompts, memo, tmp_path):
    store = Store(tmp_path / "s.sqlite")
    with Server(local, rate=1.0, faults=("garbage",), most=2) as server:
        server.prime(prompts[:3], 6, memo)
        ask(server.url, prompts[:1], store, max_retries=2)
        with pytest.raises(EngineError, match=r"1 of 2 requests failed, the first, b: .* no chat completion came back"):
            ask(server.url, prompts[:2], store, names=["a", "b"], max_retries=1)
        assert len(store.get([key for key, *_ in rows(store)])) == 1, "a failure is not final"
        (failed,) = [row for row in rows(store) if row[3] == "error"]
        assert failed[2] == ""
    with Server(local) as server:
        found = ask(server.url, prompts[:2], store, keep_failed=True)
        assert server.requests == {prompts[1]: 1} and [c.finish_reason for c in found].count("error") == 0
        assert found[1].text == memo[prompts[1], 6].text and found[1].error == ""


def test_failures_are_handed_out_on_request(local, prompts, tmp_path):
    store = Store(tmp_path / "s.sqlite")
    with Server(local, rate=1.0, faults=("500",), most=99) as server:
        found = ask(server.url, prompts[:3], store, keep_failed=True, max_retries=0)
    assert [c.finish_reason for c in found] == ["error"] * 3 and {c.text for c in found} == {""}
    assert all("answered 500 (internal error)" in c.error for c in found)
    assert store.usage()[0]["failed"] == 3


def test_a_server_that_fails_every_request_stops_the_run(local, prompts, tmp_path):
    with Server(local, rate=1.0, faults=("500",), most=99) as server:
        with pytest.raises(EngineError, match=r"answered 500 .* see to the server"):
            ask(server.url, prompts, Store(tmp_path / "s.sqlite"), max_retries=0, concurrency=4)
        assert server.requests.total() < 20


def test_a_slow_server_times_out(local, prompts, tmp_path):
    with Server(local, delay=1.0) as server, pytest.raises(EngineError, match=r"no answer within 0\.2 s"):
        ask(server.url, prompts[:1], Store(tmp_path / "s.sqlite"), timeout=0.2, max_retries=0)


def unused_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def test_a_dead_server_is_one_sentence_with_its_address(tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    url = f"http://me:{SECRET}@127.0.0.1:{unused_port()}/v1"
    with pytest.raises(EngineError) as caught:
        ask(url, ["Hi"] * 3, Store(tmp_path / "s.sqlite"), max_retries=1)
    sentence = str(caught.value)
    assert "\n" not in sentence and url.split("@")[1] in sentence and "cannot be reached" in sentence
    assert SECRET not in sentence and SECRET not in repr(caught.value.__cause__)
    assert SECRET.encode() not in (tmp_path / "s.sqlite").read_bytes()


SCRAPS = st.none() | st.booleans() | st.integers(-3, 40) | st.text(max_size=8) | st.just("\ud83d")
FIELDS = st.sampled_from(
    [
        "choices",
        "message",
        "content",
        "finish_reason",
        "usage",
        "prompt_tokens",
        "completion_tokens",
        "model",
        "refusal",
    ]
)
BODIES = st.recursive(SCRAPS, lambda x: st.lists(x, max_size=3) | st.dictionaries(FIELDS, x, max_size=6), max_leaves=12)
MESSAGES = st.dictionaries(st.sampled_from(["content", "reasoning_content", "refusal"]), SCRAPS)
CHOICES = st.fixed_dictionaries(
    {"message": MESSAGES, "finish_reason": st.sampled_from(["stop", "length", "abort", None])}
)
REPLIES = st.fixed_dictionaries({"choices": st.lists(CHOICES, max_size=2)}, optional={"usage": BODIES, "model": SCRAPS})


@pytest.fixture(scope="module")
def reader():
    """An engine whose server nobody asks, and that gives up only after twice 10,000 failures in a row."""
    from scope.engines.openai import OpenAIEngine

    engine = OpenAIEngine(ModelConfig(base="small"), settings("http://127.0.0.1:1/v1", concurrency=10_000))
    yield engine
    engine.close()


@given(body=(BODIES | REPLIES).map(json.dumps) | st.text())
@hyp_settings(deadline=None, max_examples=150)
def test_any_body_is_an_answer_or_a_failure_that_the_store_can_hold(reader, body):
    try:
        found = reader._read(body, "Hi", Sampling(30))
    except EngineError as error:
        assert "though max_completion_tokens=30" in str(error)
        return
    found.text.encode(), found.reasoning.encode(), found.error.encode(), found.engine.encode()
    assert found.finish_reason in ("stop", "length", "error")
    assert (found.finish_reason == "error") == bool(found.error) == found.again
    assert not (found.error and found.text)


def test_a_key_in_an_error_message_is_redacted(local, tmp_path, monkeypatch):
    monkeypatch.setenv("MY_KEY", SECRET)
    with Server(local, key="another") as server, pytest.raises(EngineError) as caught:
        ask(server.url, ["Hi"], Store(tmp_path / "s.sqlite"), api_key_env="MY_KEY")
    assert SECRET not in str(caught.value) and "Incorrect API key provided: ***" in str(caught.value)
    assert "check the key in MY_KEY" in str(caught.value)


def test_a_key_that_no_header_can_hold_is_refused(tmp_path, monkeypatch):
    for bad in ("sk-ключ", "sk-one sk-two"):
        monkeypatch.setenv("OPENAI_API_KEY", bad)
        with pytest.raises(EngineError, match="the key in OPENAI_API_KEY holds characters") as caught:
            ask("http://127.0.0.1:9/v1", ["Hi"], Store(tmp_path / "s.sqlite"))
        assert bad not in str(caught.value)


def test_a_hosted_api_without_a_key_is_refused_before_it_is_asked(tmp_path, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(EngineError, match="needs a key; put it into the environment variable OPENAI_API_KEY"):
        ask("https://api.openai.com/v1", ["Hi"], Store(tmp_path / "s.sqlite"))


# ---------------------------------------------------------------- what is sent, what is kept


def test_nothing_is_sent_that_the_recipe_does_not_set(local, memo, prompts, tmp_path):
    with Server(local) as server:
        server.prime(prompts[:1], 6, memo)
        ask(server.url, prompts[:1], Store(tmp_path / "a.sqlite"))
        assert server.bodies[0] == {
            "model": "small",
            "messages": [{"role": "user", "content": prompts[0]}],
            "max_completion_tokens": 6,
        }
        more = {"temperature": 0.0, "max_tokens_field": "max_tokens", "extra": {"reasoning_effort": "low"}}
        ask(server.url, prompts[:1], Store(tmp_path / "b.sqlite"), template={"enable_thinking": False}, **more)
        sent = server.bodies[1]
        assert sent["temperature"] == 0.0 and sent["max_tokens"] == 6 and sent["reasoning_effort"] == "low"
        assert sent["chat_template_kwargs"] == {"enable_thinking": False} and "max_completion_tokens" not in sent


def test_a_server_that_ignores_the_cap_is_refused(local, tmp_path):
    with Server(local, knows=("max_tokens",)) as server:
        store = Store(tmp_path / "s.sqlite")
        with pytest.raises(EngineError, match=r"generated \d+ tokens though max_completion_tokens=1: .*=max_tokens"):
            ask(server.url, ["Hi"], store, sampling=Sampling(1))
        assert ask(server.url, ["Hi"], store, sampling=Sampling(1), max_tokens_field="max_tokens")[0].n_tokens == 1


def test_an_answer_cut_by_the_cap_says_so(local, tmp_path):
    with Server(local) as server:
        (found,) = ask(server.url, ["Hi"], Store(tmp_path / "s.sqlite"), sampling=Sampling(1))
    assert found.finish_reason == "length" and found.n_tokens == 1


def test_a_context_beyond_the_window_is_refused_by_name_and_the_rest_is_kept(local, memo, prompts, tmp_path):
    store = Store(tmp_path / "s.sqlite")
    asked = [prompts[0], "word " * 600, prompts[1]]
    with Server(local) as server:
        server.prime(prompts[:2], 6, memo)
        with pytest.raises(
            TooLongError, match=r"^item 2/misleading: exceeds the window of small: .* is 512 tokens"
        ) as e:
            ask(server.url, asked, store, names=["item 1/clean", "item 2/misleading", "item 3/clean"])
        assert e.value.indices == [1] and len(rows(store)) == 2
        ask(server.url, asked[::2], store)
        assert server.requests.total() == 3


def test_reasoning_is_kept_apart_from_the_answer():
    from scope.items import Completion

    apart = Completion("k", "h", "The final answer is B.", "stop", 1, 9, reasoning="Hm. A? No.")
    inside = Completion("k", "h", "<think>Hm. A? No.</think>The final answer is B.", "stop", 1, 9)
    cut = Completion("k", "h", "<think>Hm. A?", "length", 1, 9)
    assert reasoning_and_answer(apart) == reasoning_and_answer(inside) == ("Hm. A? No.", "The final answer is B.")
    assert reasoning_and_answer(cut) == ("Hm. A?", None)


def test_what_differs_is_another_key_and_what_does_not_is_not(local, memo, prompts, tmp_path):
    store = Store(tmp_path / "s.sqlite")
    with Server(local) as server:
        server.prime(prompts[:1], 6, memo)
        one = [prompts[0]]
        keys = [
            ask(server.url, one, store, **more)[0].request_id
            for more in ({}, {"model": "other"}, {"temperature": 0.0}, {"extra": {"a": 1}}, {"server": "elsewhere"})
        ]
        same = [ask(server.url, one, store, **m)[0].request_id for m in ({"concurrency": 2}, {"price_in": 1.0})]
    assert len(set(keys)) == 5 and set(same) == {keys[0]}


def test_azure_is_asked_at_its_own_address(local, memo, prompts, tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    from scope.schema import AzureConfig

    with Server(local, key=SECRET) as server:
        server.prime(prompts[:1], 6, memo)
        azure = AzureConfig(server.url.removesuffix("/v1"), "2024-10-21", "mine")
        (found,) = ask("https://api.openai.com/v1", prompts[:1], Store(tmp_path / "s.sqlite"), azure=azure)
        assert found.text == memo[prompts[0], 6].text and server.bodies[0]["model"] == "mine"


def test_at_most_so_many_requests_are_in_flight_and_begin_in_a_minute(local, memo, prompts, tmp_path):
    with Server(local, delay=0.3) as server:
        server.prime(prompts[:12], 6, memo)
        ask(server.url, prompts[:12], Store(tmp_path / "a.sqlite"), concurrency=3)
        assert server.most_in_flight == 3
        began = time.monotonic()
        ask(server.url, prompts[:5], Store(tmp_path / "b.sqlite"), requests_per_minute=600.0)
        assert time.monotonic() - began > 4 * 0.1


# ---------------------------------------------------------------- money


def test_the_spending_cap_stops_before_it_is_exceeded_and_what_is_done_is_kept(local, memo, prompts, tmp_path):
    store = Store(tmp_path / "s.sqlite")
    prices = {"price_in": 100.0, "price_out": 1000.0, "concurrency": 4}
    with Server(local) as server:
        server.prime(prompts[:40], 6, memo)
        with pytest.raises(EngineError, match=r"engine.max_cost=0\.1 might be exceeded: .* raise engine.max_cost"):
            ask(server.url, prompts[:40], store, max_cost=0.1, **prices)
        kept = len(rows(store))
        assert 0 < kept < 40 and 0.1 - 0.03 < store.cost() <= 0.1
        found = ask(server.url, prompts[:40], store, max_cost=10.0, **prices)
        assert server.requests.total() == 40, "what was paid for is not asked again"
    exact = sum(c.n_prompt_tokens * 100 + c.n_tokens * 1000 for c in found) / 1e6
    assert store.cost() == pytest.approx(exact)
    (usage,) = json.loads((tmp_path / "usage.json").read_text())
    assert usage["requests"] == 40 and usage["cost"] == pytest.approx(exact) and usage["failed"] == 0
    assert usage["completion_tokens"] == sum(c.n_tokens for c in found)


@pytest.mark.parametrize("prices", [{}, {"price_in": 1.0, "price_out": 2.0}])
def test_a_cost_is_printed_only_where_there_are_prices(local, memo, prompts, tmp_path, prices, caplog):
    with Server(local) as server, caplog.at_level("INFO", logger="scope"):
        server.prime(prompts[:2], 6, memo)
        ask(server.url, prompts[:2], Store(tmp_path / "s.sqlite"), **prices)
    (line,) = [line for line in caplog.messages if "so far 2 requests" in line]
    assert ("cost at most" in line) == bool(prices)


def test_an_answer_without_counts_is_charged_at_its_bound(local, memo, prompts, tmp_path):
    store = Store(tmp_path / "s.sqlite")
    with Server(local, no_usage=1.0) as server:
        server.prime(prompts[:1], 6, memo)
        ask(server.url, prompts[:1], store, price_in=1.0, price_out=1e6)
    assert store.cost() == pytest.approx(6.0, abs=1e-3), "at most six tokens"


# ---------------------------------------------------------------- adapters, options, recipes


def test_a_server_cannot_be_given_an_adapter_or_another_model(local):
    config, engine = ModelConfig(base="small"), settings("http://127.0.0.1:1/v1")
    with pytest.raises(EngineError, match="cannot load an adapter: serve it"), opened(None, config, engine, object()):
        pass
    with pytest.raises(EngineError, match=r"cannot load .*model: serve it"), opened(local.resolved, config, engine):
        pass


def test_options_are_chosen_under_the_servers_constraint_or_refused(local, tmp_path):
    questions = ["Which letter?", "Which one?"]
    here = score_choices(local, questions, ["A", "B", "C"], Store(tmp_path / "here.sqlite"), "t")
    for structured in (True, False):
        store = Store(tmp_path / f"{structured}.sqlite")
        with (
            Server(local, structured=structured) as server,
            opened(None, ModelConfig(base="small"), settings(server.url)) as engine,
        ):
            if not structured:
                with pytest.raises(EngineError, match=r"none of the options .* does not know structured_outputs"):
                    score_choices(engine, questions, ["A", "B", "C"], store, "t")
                continue
            there = score_choices(engine, questions, ["A", "B", "C"], store, "t")
        assert [c.text for c in there] == [c.text for c in here] and {c.finish_reason for c in there} == {"choice"}
        with pytest.raises(EngineError, match="hold no log-probabilities"):
            probabilities(there)


@pytest.mark.parametrize("group", ["openai", "azure", "vllm_serve", "vllm", "transformers"])
def test_every_engine_of_the_recipes_loads(group):
    overrides = [f"engine={group}"]
    if group == "azure":
        overrides.append("engine.azure.endpoint=https://x.openai.azure.com")
    recipe = load("smollm2_135m", overrides)
    assert recipe.engine.kind in group or group in ("azure", "vllm_serve")
    assert recipe.part("engine") == load(
        "smollm2_135m", [*overrides, "engine.concurrency=3", "engine.max_cost=0"]
    ).part("engine"), "what outputs do not depend on is no part of a stage's key"


@pytest.mark.parametrize(
    "overrides, sentence",
    [
        (["engine=openai", "engine.max_cost=5"], "engine.max_cost needs prices"),
        (["engine.temperature=0.5"], "engine.temperature is for engine.kind=openai"),
        (["engine=azure"], "engine.azure is incomplete; set engine.azure.endpoint"),
        (["engine=openai", "engine.azure.endpoint=https://x"], "without engine.azure.api_version"),
        (["engine=openai", "engine.base_url=localhost:8000"], "is no address"),
        (["engine=openai", "engine.extra.stream=true"], "engine.extra.stream cannot be set"),
        (["engine.kind=openapi"], "did you mean openai"),
    ],
)
def test_settings_that_do_not_go_together_are_refused(overrides, sentence):
    with pytest.raises(RecipeError, match=sentence):
        load("smollm2_135m", overrides)


# ---------------------------------------------------------------- killed runs

CLIENT = """
import sys
sys.path.insert(0, sys.argv[1])
from pathlib import Path
from scope.artifacts import Refusal
from scope.engines import Sampling, Store, complete, opened
from scope.schema import EngineConfig, ModelConfig
engine = EngineConfig(kind="openai", base_url=sys.argv[2], server="small", concurrency=4, max_retries=1)
try:
    with opened(None, ModelConfig(base="small"), engine) as client:
        complete(client, [f"What is {n} plus {n % 7}?" for n in range(60)], Sampling(6), Store(Path(sys.argv[3])), "t")
except Refusal as error:
    sys.exit(f"error: {error}")
"""


def client(url, path):
    arguments = [sys.executable, "-c", CLIENT, str(ROOT), url, str(path)]
    return subprocess.Popen(arguments, stderr=subprocess.PIPE, text=True, env={**os.environ, "OPENAI_API_KEY": SECRET})


def count(path):
    try:
        return sqlite3.connect(path).execute("SELECT count(*) FROM completions").fetchone()[0]
    except sqlite3.Error:
        return 0


def test_a_killed_run_loses_nothing_and_asks_only_what_is_missing(local, memo, prompts, tmp_path):
    path = tmp_path / "s.sqlite"
    with Server(local, delay=0.5) as server:
        server.prime(prompts[:60], 6, memo)
        running = client(server.url, path)
        while running.poll() is None and count(path) < 12:
            time.sleep(0.02)
        running.send_signal(signal.SIGKILL)
        running.wait()
        kept = count(path)
        assert 12 <= kept < 60
        server.delay = 0.0
        before = server.requests.total()
        again = client(server.url, path)
        assert again.wait(1200) == 0, again.stderr.read()
        assert server.requests.total() - before == 60 - kept
        assert before - kept <= 4, "no more than what was in flight is asked twice"
    with Server(local) as server:
        server.prime(prompts[:60], 6, memo)
        ask(server.url, prompts[:60], good := Store(tmp_path / "good.sqlite"))
    assert rows(Store(path)) == rows(good)


def test_a_dead_server_ends_a_program_without_a_traceback(tmp_path):
    url = f"http://127.0.0.1:{unused_port()}/v1"
    done = client(url, tmp_path / "s.sqlite")
    _, errors = done.communicate(timeout=1200)
    assert done.returncode == 1 and "Traceback" not in errors and SECRET not in errors
    (sentence,) = [line for line in errors.splitlines() if line.startswith("error: ")]
    assert sentence.startswith(f"error: {url}: cannot be reached (")
