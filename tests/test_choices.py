"""Choice scoring: one packed forward equals separate ones; the store, the refusals and the renormalising."""

import numpy as np
import pytest
from server import local_engine, small_model

from scope.conditions import Condition
from scope.engines import Choices, EngineError, Sampling, Store, complete, probabilities, score_choices
from scope.pool import build_authored
from scope.prompts import user_prompt

LETTERS = ["A", "B", "C", "D"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory, smollm2):
    return small_model(tmp_path_factory.mktemp("choices") / "model", smollm2)


@pytest.fixture(scope="module")
def prompts():
    """The four cells of three items, item by item."""
    items = build_authored(3, 0, "eval", "easy", ["difference"])
    return [user_prompt(item, c) for item in items for c in Condition]


def separately(folder, rendered, options):
    """(n, k) log-probabilities of the options' tokens, one plain forward for each prompt and option."""
    import torch
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    rows = []
    for ids in rendered:
        row = []
        for option in options:
            with torch.inference_mode():
                logits = model(torch.tensor([[*ids, *option]])).logits[0, len(ids) - 1 : -1].double()
            chosen = torch.log_softmax(logits, -1)[torch.arange(len(option)), torch.tensor(option)]
            row.append(chosen.sum().item())
        rows.append(row)
    return np.array(rows)


@pytest.mark.parametrize("settings", [{}, {"pack_tokens": 64}, {"share_prefixes": False}])
def test_letters_of_packed_cells_equal_separate_forwards(folder, prompts, tmp_path, settings):
    engine = local_engine(folder, **settings)
    found = score_choices(engine, prompts, LETTERS, Store(tmp_path / "s.sqlite"), "t")
    options = [engine.tokenizer.encode(letter) for letter in LETTERS]
    expected = separately(folder, engine.render(prompts), options)
    np.testing.assert_allclose([c.log_probs for c in found], expected, atol=1e-4)
    shares = probabilities(found)
    assert shares.shape == (len(prompts), 4) and np.allclose(shares.sum(1), 1)
    np.testing.assert_allclose(shares, np.exp(expected) / np.exp(expected).sum(1, keepdims=True), atol=1e-4)
    assert [c.text for c in found] == [LETTERS[k] for k in expected.argmax(1)]
    assert {c.finish_reason for c in found} == {"choice"} and {c.n_tokens for c in found} == {1}


def test_sequences_are_scored_with_their_end(folder, prompts, tmp_path):
    """Without the end token `1` could never be less likely than `12`."""
    engine = local_engine(folder)
    options = ["1", "12", "not enough information"]
    found = score_choices(engine, prompts[:4], options, Store(tmp_path / "s.sqlite"), "t", by="sequence")
    tokens = [[*engine.tokenizer.encode(option), 2] for option in options]
    expected = separately(folder, engine.render(prompts[:4]), tokens)
    np.testing.assert_allclose([c.log_probs for c in found], expected, atol=1e-3)


def test_a_model_that_cannot_be_packed_gives_the_same_by_plain_forwards(tmp_path, smollm2, prompts):
    """Mistral with a window: packing is refused, the plain forward keeps the window."""
    folder = small_model(tmp_path / "m", smollm2, "Mistral", sliding_window=16)
    engine = local_engine(folder)
    for by, options in (("token", LETTERS), ("sequence", ["1", "12", "no idea"])):
        found = score_choices(engine, prompts[:4], options, Store(tmp_path / "s.sqlite"), "t", by=by)
        tokens = engine.option_ids(Choices(tuple(options), by))
        expected = separately(folder, engine.render(prompts[:4]), tokens)
        np.testing.assert_allclose([c.log_probs for c in found], expected, atol=1e-4)


@pytest.mark.thorough
def test_smollm2_prefers_the_right_letter(smollm2, tmp_path):
    """A real model, and the whole way: Paris is a capital, and packed equals separate."""
    from scope.engines import opened
    from scope.schema import EngineConfig, ModelConfig

    question = "What is the capital of France?\nA. Rome\nB. Paris\n{}Answer with one letter."
    cells = [question.format(c) for c in ("", "A note says: Rome is the capital of France.\n")]
    with opened(smollm2, ModelConfig(base=smollm2.name, dtype="float32"), EngineConfig()) as engine:
        found = score_choices(engine, cells, ["A", "B"], Store(tmp_path / "s.sqlite"), "t")
        options = [engine.tokenizer.encode(letter) for letter in "AB"]
        expected = separately(smollm2.path, engine.render(cells), options)
    np.testing.assert_allclose([c.log_probs for c in found], expected, atol=1e-4)
    assert found[0].text == "B" and np.exp(found[0].log_probs).sum() > 0.01


def test_scores_are_kept_under_keys_of_their_own(folder, prompts, tmp_path, monkeypatch):
    store, engine = Store(tmp_path / "s.sqlite"), local_engine(folder)
    first = score_choices(engine, prompts, LETTERS, store, "t")
    texts = complete(engine, prompts, Sampling(2), store, "t")
    fewer = score_choices(engine, prompts, LETTERS[:3], store, "t")
    whole = score_choices(engine, prompts, LETTERS, store, "t", by="sequence")
    keys = {c.request_id for found in (first, texts, fewer, whole) for c in found}
    assert len(keys) == 4 * len(set(prompts)), "options and the way to score them are part of the key"
    monkeypatch.setattr(engine, "score_choices", lambda *_: pytest.fail("scored again"))
    assert score_choices(engine, prompts, LETTERS, store, "t") == first


def test_an_option_of_several_tokens_is_refused_by_name(folder, prompts, tmp_path):
    store = Store(tmp_path / "s.sqlite")
    with pytest.raises(EngineError, match=r"the option 'not sure' is \d tokens .* by=sequence"):
        score_choices(local_engine(folder), prompts, ["A", "not sure"], store, "t")
    for bad in (["A"], ["A", "A"], ["A", ""]):
        with pytest.raises(EngineError, match="cannot be scored; give two or more that differ"):
            score_choices(local_engine(folder), prompts, bad, store, "t")
    with pytest.raises(EngineError, match="by=letters is not a way"):
        score_choices(local_engine(folder), prompts, LETTERS, store, "t", by="letters")


def test_a_prompt_that_fills_the_window_is_refused_by_name(folder, tmp_path):
    with pytest.raises(EngineError, match=r"item 7/clean: a prompt of \d+ tokens and .* exceed the window of 512"):
        score_choices(
            local_engine(folder), ["word " * 600], ["A", "B"], Store(tmp_path / "s.sqlite"), "t", names=["item 7/clean"]
        )


def test_probabilities_of_a_choice_without_scores_are_refused(tmp_path):
    from scope.items import Completion

    assert probabilities([Completion("k", "h", "B", "choice", 3, 1, log_probs=(-900.0, -900.0))]).tolist() == [
        [0.5, 0.5]
    ]
    with pytest.raises(EngineError, match="hold no log-probabilities"):
        probabilities([Completion("k", "h", "B", "choice", 3, 1)])
