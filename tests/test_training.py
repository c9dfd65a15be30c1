"""Tokens, the packed forward pass inside TRL's trainer, and the batch arithmetic."""

import json
import math
import shutil

import pytest
from test_equivalence import build_model, make, outcome

from scope.conditions import Condition
from scope.items import Quartet
from scope.recipe import Recipe, RecipeError
from scope.training.batch import batch_arithmetic
from scope.training.tokenise import TokeniseError, end_token, fit, tokenise, tokenise_all


def quartet(n=0, chosen="The final answer is 5.", rejected="The final answer is 6.", pad=""):
    return Quartet(
        item_id=f"item-{n}",
        source="s",
        answer_type="numeric",
        channel="forum",
        gold="5",
        **{f"prompt_{c}": f"{pad}What is {n} plus {5 - n}? {c} {'context ' * i}" for i, c in enumerate(Condition)},
        chosen=chosen,
        rejected=rejected,
        chosen_source="clean",
        chosen_answer="5",
        rejected_answer="6",
        chosen_request="a",
        rejected_request="b",
    )


@pytest.fixture(scope="module")
def tokenizer(smollm2):
    from scope.models import load_tokenizer

    return load_tokenizer(smollm2)


def test_a_completion_ends_in_exactly_one_end_token(tokenizer):
    end = end_token(tokenizer, {})
    assert tokenizer.decode([end]) == "<|im_end|>"
    ids = tokenise(tokenizer, quartet(), {}, end)
    for completion, text in ((ids.chosen, "The final answer is 5."), (ids.rejected, "The final answer is 6.")):
        assert completion.count(end) == 1 and completion[-1] == end
        assert tokenizer.decode(completion[:-1]) == text
    for condition in Condition:
        assert tokenizer.decode(ids.prompts[condition]).endswith("<|im_start|>assistant\n")


def test_training_tokens_are_what_the_model_sees_at_inference(tokenizer):
    from scope.engines.transformers import render

    ids = tokenise(tokenizer, quartet(), {}, end_token(tokenizer, {}))
    for condition in Condition:
        assert ids.prompts[condition] == render(tokenizer, quartet().prompt(condition), {})


def test_an_end_token_inside_the_text_is_refused(tokenizer):
    with pytest.raises(TokeniseError, match="item-0: chosen: holds the end token"):
        tokenise(tokenizer, quartet(chosen="five<|im_end|>."), {}, end_token(tokenizer, {}))


def test_a_tokenizer_and_template_without_any_end_token_are_refused(tokenizer):
    import copy

    endless = copy.deepcopy(tokenizer)
    endless.chat_template = "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}"
    endless.eos_token = None
    with pytest.raises(TokeniseError, match="has no end token and its chat template adds none"):
        end_token(endless, {})


def test_a_template_that_renders_the_prompt_differently_is_refused(tokenizer):
    """A thinking template puts a block before the answer that the prompt alone does not have."""
    import copy

    thinking = copy.deepcopy(tokenizer)
    thinking.chat_template = (
        "{% for m in messages %}<|im_start|>{{ m.role }}\n{% if m.role == 'assistant' and not no_think %}<think>\n\n"
        "</think>\n\n{% endif %}{{ m.content }}<|im_end|>\n{% endfor %}"
        "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
    )
    with pytest.raises(TokeniseError, match=r"renders the prompt alone differently.*chat_template_kwargs"):
        tokenise(thinking, quartet(), {}, end_token(thinking, {}))
    assert tokenise(thinking, quartet(), {"no_think": True}, end_token(thinking, {"no_think": True}))


def test_overlong_prompts_are_cut_from_the_left_and_completions_never(tokenizer):
    end = end_token(tokenizer, {})
    whole = tokenise(tokenizer, quartet(pad="filler " * 30), {}, end)
    limit = len(whole.prompts[Condition.IRRELEVANT]) + len(whole.chosen) - 5
    cut = fit(whole, limit, "keep_end")
    assert cut is not None and cut.chosen == whole.chosen and cut.rejected == whole.rejected
    for condition in Condition:
        assert cut.prompts[condition] == whole.prompts[condition][-(limit - len(whole.chosen)) :]
    assert cut.cut > 0
    assert fit(whole, limit, "drop_quartet") is None
    assert fit(whole, len(whole.chosen), "keep_end") is None, "no room for a prompt token"
    assert fit(whole, 10_000, "drop_quartet") is whole


def test_overlong_quartets_are_counted(tokenizer):
    quartets = [quartet(0), quartet(1, pad="filler " * 80), quartet(2)]
    longest = max(len(i) for i in tokenise(tokenizer, quartets[0], {}, 2).prompts.values()) + 20
    kept, ids, counts = tokenise_all(tokenizer, quartets, {}, longest, "keep_end")
    assert (len(kept), counts.cut, counts.dropped) == (3, 1, 0)
    kept, ids, counts = tokenise_all(tokenizer, quartets, {}, longest, "drop_quartet")
    assert ([q.item_id for q in kept], counts.cut, counts.dropped) == (["item-0", "item-2"], 0, 1)
    assert all(len(p) + len(i.chosen) <= longest for i in ids for p in i.prompts.values())


@pytest.mark.parametrize(
    "total, device, world, accumulation", [(256, 4, 8, 8), (256, 4, 1, 64), (32, 4, 8, 1), (8, 8, 1, 1)]
)
def test_accumulation_follows_from_the_global_batch(total, device, world, accumulation):
    recipe = Recipe(name="x")
    recipe.trainer.global_batch, recipe.trainer.device_batch = total, device
    assert batch_arithmetic(recipe, world).accumulation == accumulation


def test_a_global_batch_that_does_not_divide_is_refused_with_the_nearest_that_do():
    recipe = Recipe(name="x")
    recipe.trainer.global_batch, recipe.trainer.device_batch = 250, 4
    with pytest.raises(RecipeError, match="use 224 or 256"):
        batch_arithmetic(recipe, 8)


# ---------------------------------------------------------------- inside TRL's trainer


@pytest.fixture(scope="module")
def model(smollm2, tmp_path_factory):
    return build_model(smollm2.path, tmp_path_factory.mktemp("random") / "model")


def test_packed_and_padded_rows_give_the_same_losses_metrics_and_adapter(model, tmp_path):
    variants = {
        "none": ["trainer.packing=none"],
        "trie": ["trainer.packing=trie"],
        "checkpointing": ["trainer.packing=trie", "trainer.gradient_checkpointing=true"],
    }
    runs = {name: make(model, tmp_path / name, device_batch=4, steps=2, overrides=o) for name, o in variants.items()}
    for trainer in runs.values():
        trainer.train()
    losses, adapter, rows = outcome(runs.pop("none"))
    log = make_log(tmp_path / "none")
    for name, trainer in runs.items():
        for a, b in zip(log, make_log(tmp_path / name), strict=True):
            assert a.keys() == b.keys()
            for key in a:
                assert "runtime" in key or "per_second" in key or a[key] == pytest.approx(b[key], abs=2e-4), key
        found = outcome(trainer)
        assert found[0] == pytest.approx(losses, abs=1e-5) and found[2] == rows == list(range(16))
        assert (found[1] - adapter).norm() <= 1e-3 * adapter.norm(), name


def make_log(out):
    return [json.loads(line) for line in (out / "train" / "log.jsonl").read_text().splitlines()]


@pytest.mark.parametrize("reference", ["live", "cached"])
def test_step0_loss_is_checked_against_a_live_reference(model, tmp_path, reference):
    """An adapter that already does something makes the first loss differ from ln 2, and the run stops."""
    import torch

    from scope.artifacts import StageError

    overrides = [f"trainer.reference={reference}"]
    trainer = make(model, tmp_path / "right", device_batch=8, steps=1, overrides=overrides)
    trainer.train()
    assert trainer.step0_loss == pytest.approx(math.log(2), abs=1e-6)
    wrong = make(model, tmp_path / "wrong", device_batch=8, steps=1, overrides=overrides)
    with torch.no_grad():
        for name, parameter in wrong.model.named_parameters():
            if "lora_B" in name:
                parameter.add_(0.05)
    with pytest.raises(StageError, match=r"the loss at step 0 is .* not ln 2"):
        wrong.train()


def test_too_few_rows_are_refused(tokenizer):
    from scope.artifacts import StageError
    from scope.recipe import load
    from scope.training import planned_rows

    recipe = load("smollm2_135m", ["trainer.max_length=8"])
    with pytest.raises(StageError, match=r"none of the 3 quartets can be used: 3 exceed trainer.max_length=8"):
        planned_rows(recipe, tokenizer, [quartet(n) for n in range(3)], batch_arithmetic(recipe, 1))


# ---------------------------------------------------------------- other work is refused


def test_a_run_is_not_taken_up_under_another_global_batch(tmp_path):
    from scope import artifacts
    from scope.recipe import load
    from scope.training import key

    def claim(global_batch):
        recipe = load("smollm2_135m", [f"trainer.global_batch={global_batch}"])
        wanted = key(recipe, "quartets", "weights", batch_arithmetic(recipe, 1))
        artifacts.refuse_other_work(tmp_path, wanted, "train", "train.py recipe=smollm2_135m")

    claim(8)
    claim(8)
    with pytest.raises(artifacts.StageError, match=r"holds train work for other .*global_batch: 8 there, 16 now"):
        claim(16)


def test_quartets_of_another_model_and_tokenizer_are_refused(finished_run, tiny_args, smollm2, run_entry):
    arguments = [a for a in tiny_args if not a.startswith("model.base=")]
    arguments += [f"model.base={smollm2.path}", f"output_dir={finished_run[0]}"]
    done = run_entry("train.py", "recipe=smollm2_135m", *arguments, check=False)
    assert done.returncode == 2 and "was made with weights = " in done.stderr and "mine.py" in done.stderr


def test_quartets_of_the_same_weights_under_another_tokenizer_are_refused(finished_run, tiny_args, run_entry, tmp_path):
    """A changed chat template changes every token, and the weights do not know of it."""
    base = next(a for a in tiny_args if a.startswith("model.base=")).partition("=")[2]
    shutil.copytree(base, tmp_path / "model")
    template = tmp_path / "model" / "chat_template.jinja"
    template.write_text(template.read_text().replace("<|im_start|>", "<|im_start|> "))
    shutil.copytree(finished_run[0], tmp_path / "run")
    arguments = [a for a in tiny_args if not a.startswith("model.base=")]
    arguments += [f"model.base={tmp_path / 'model'}", f"output_dir={tmp_path / 'run'}"]
    done = run_entry("train.py", "recipe=smollm2_135m", *arguments, check=False)
    assert done.returncode == 2 and "was made with tokenizer = " in done.stderr and "mine.py" in done.stderr
