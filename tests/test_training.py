"""Tokens, the packed forward pass inside TRL's trainer, and the batch arithmetic."""

import json
import math
import random
import shutil

import pytest
import torch
from test_equivalence import build_model, in_steps, make, outcome, trained
from transformers import TrainerCallback

from scope.artifacts import Refusal, StageError
from scope.conditions import Condition
from scope.items import Quartet
from scope.recipe import Recipe, RecipeError
from scope.training.base import TIMINGS
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
        "capped": ["trainer.packing=trie", "trainer.max_length=40", "trainer.pack_tokens=40"],
    }
    runs = {name: make(model, tmp_path / name, device_batch=4, steps=2, overrides=o) for name, o in variants.items()}
    for trainer in runs.values():
        trainer.train()
    losses, adapter, rows = outcome(runs.pop("none"))
    log = make_log(tmp_path / "none")
    for name, trainer in runs.items():
        for a, b in zip(log, make_log(tmp_path / name), strict=True):
            own = {*TIMINGS, "padding_share", "shared_share"}
            assert a.keys() - own == b.keys() - own
            for key in a.keys() - own:
                assert a[key] == pytest.approx(b[key], abs=2e-4), key
        found = outcome(trainer)
        assert found[0] == pytest.approx(losses, abs=1e-5) and in_steps(found[2]) == in_steps(rows)
        assert (found[1] - adapter).norm() <= 1e-3 * adapter.norm(), name


@pytest.mark.parametrize("dtype", ["float32", pytest.param("bfloat16", marks=pytest.mark.slow)])
def test_a_run_of_thirty_packed_steps_has_the_losses_of_padded_rows(model, tmp_path, dtype):
    """To three digits in fp32, at a learning rate at which the loss falls to a fraction; bf16 rounds more."""
    curves = {
        packing: trained(
            model,
            tmp_path / packing,
            device_batch=8,
            steps=30,
            overrides=[f"trainer.packing={packing}", f"model.dtype={dtype}", "trainer.learning_rate=2e-3"],
        )[0]
        for packing in ("none", "trie")
    }
    assert curves["none"][-1] < 0.3
    largest = max(abs(a - b) for a, b in zip(curves["none"], curves["trie"], strict=True))
    print(f"30 steps in {dtype}: packed differs from padded by {largest:.1e}")
    assert largest < (5e-4 if dtype == "float32" else 1e-2)


def test_a_step_s_rows_are_dealt_into_even_micro_batches_quartet_by_quartet():
    """Two steps of six quartets, whose rows the plan has scattered; micro-batches of eight rows hold two each."""
    from scope import trie
    from scope.training.packing import arranged

    draw = random.Random(0)
    rows = []
    for step in range(2):
        unit = []
        for item in range(6):
            question = [draw.randrange(100) for _ in range(10 * (item + 1))]
            for condition in Condition:
                row = {"item_id": f"{step}-{item}", "pair_id": f"{step}-{item}", "condition": str(condition)}
                row |= {"prompt_ids": [*question, *[draw.randrange(100) for _ in range(5)]]}
                unit.append(row | {"chosen_ids": [101, 2], "rejected_ids": [102, 2]})
        draw.shuffle(unit)
        rows += unit

    def sizes(order):
        batches = [[rows[n] for n in order[start : start + 8]] for start in range(0, len(rows), 8)]
        return [
            trie.size(row["prompt_ids"] + row[name] for row in batch for name in ("chosen_ids", "rejected_ids"))
            for batch in batches
        ]

    order = arranged(rows, 24, 8)
    assert sorted(order[:24]) == list(range(24)) and sorted(order[24:]) == list(range(24, 48))
    for start in range(0, 48, 8):
        assert len({rows[n]["item_id"] for n in order[start : start + 8]}) == 2, "quartets stay whole"
    even, scattered = sizes(order), sizes(range(48))
    assert sum(even) < 0.7 * sum(scattered)
    for step in (even[:3], even[3:]):
        assert step == sorted(step, reverse=True) and step[0] - step[-1] <= 10, "10 to 60 tokens pair up to 70"
    assert sorted(arranged(rows, 24, 3)) == list(range(48)), "micro-batches that hold no quartet"
    assert arranged(rows[:24], 24, 24) != arranged(rows[:24], 24, 8)


def test_sharded_models_need_a_micro_batch_in_one_layout(model, tmp_path):
    """Processes that gather weights layer by layer would wait for ever for one that runs fewer layouts."""
    overrides = ["trainer.packing=trie", "trainer.max_length=40", "trainer.pack_tokens=100"]
    trainer = make(model, tmp_path, device_batch=8, steps=1, overrides=overrides)
    trainer.is_fsdp_enabled = True
    with pytest.raises(StageError, match=r"takes \d{3} positions, more than trainer.pack_tokens=100"):
        trainer._get_train_sampler()
    trainer.pack_tokens = 1000
    assert sorted(trainer._get_train_sampler()) == list(range(8))


def test_flex_attention_is_refused_where_it_cannot_learn(model, tmp_path):
    if torch.cuda.is_available():
        pytest.skip("FlexAttention learns on a GPU")
    with pytest.raises(Refusal, match="no backward pass on the CPU"):
        overrides = ["trainer.packing=trie", "model.attn_implementation=flex_attention"]
        make(model, tmp_path, device_batch=8, steps=1, overrides=overrides)


def make_log(out):
    return [json.loads(line) for line in (out / "train" / "log.jsonl").read_text().splitlines()]


# ---------------------------------------------------------------- the log


def test_rewards_are_logged_by_the_source_of_the_chosen_response(model, tmp_path):
    """Recomputed row by row under an adapter that does something; micro-batches have unlike shares of a source."""
    trainer = make(model, tmp_path, device_batch=4, steps=1, overrides=["trainer.learning_rate=1e-30"])
    sources = ["clean", "clean", "clean", "diagnostic", "clean", "diagnostic", "diagnostic", ""]
    trainer.train_dataset = trainer.train_dataset.map(lambda row: {"chosen_source": sources[row["row"]]})
    with torch.no_grad():
        for name, parameter in trainer.model.named_parameters():
            if "lora_B" in name:
                parameter.copy_(torch.randn(parameter.shape, generator=torch.Generator().manual_seed(1)) / 10)
    trainer.step0_loss = math.log(2)  # the policy is not the reference here, on purpose
    trainer.train()
    (log, *_) = make_log(tmp_path)
    trainer.model.eval()
    rewards = {"clean": [], "diagnostic": [], "": []}
    for row in trainer.train_dataset:
        trainer.compute_loss(trainer.model, trainer.data_collator([row]))
        found = trainer._metrics["eval"]
        rewards[row["chosen_source"]].append((found["rewards/chosen"][-1], found["rewards/rejected"][-1]))
    for source in ("clean", "diagnostic"):
        assert len(rewards[source]) > 2
        chosen, rejected = zip(*rewards[source], strict=True)
        n = len(chosen)
        margins = [c - r for c, r in rewards[source]]
        assert log[f"rewards/chosen/from_{source}"] == pytest.approx(sum(chosen) / n, abs=1e-5)
        assert log[f"rewards/rejected/from_{source}"] == pytest.approx(sum(rejected) / n, abs=1e-5)
        assert log[f"rewards/margins/from_{source}"] == pytest.approx(sum(margins) / n, abs=1e-5)
        assert log[f"rewards/accuracies/from_{source}"] == sum(m > 0 for m in margins) / n
    assert {key.rpartition("/")[2] for key in log if "/from_" in key} == {"from_clean", "from_diagnostic"}


def test_a_row_has_the_source_of_its_pair_s_quartet(tokenizer):
    import dataclasses

    from scope.recipe import load
    from scope.training import planned_rows

    sources = {f"item-{n}": source for n, source in enumerate(("clean", "diagnostic", ""))}
    quartets = [dataclasses.replace(quartet(n), chosen_source=sources[f"item-{n}"]) for n in range(3)]
    for pairs in ("full", "shuffled"):
        recipe = load("smollm2_135m", [f"pairs={pairs}"])
        rows, _ = planned_rows(recipe, tokenizer, quartets, batch_arithmetic(recipe, 1))
        assert all(row["chosen_source"] == sources[row["pair_id"]] for row in rows)
    assert any(row["chosen_source"] != sources[row["item_id"]] for row in rows)


@pytest.mark.parametrize("packing", ["none", "trie"])
def test_tokens_padding_sharing_and_memory_are_logged(model, tmp_path, packing):
    import time

    from scope import trie

    class Slow(TrainerCallback):
        def on_step_end(self, *_, **__):
            time.sleep(0.5)

    trainer = make(
        model, tmp_path, device_batch=4, steps=4, overrides=[f"trainer.packing={packing}", "trainer.logging_steps=2"]
    )
    trainer.add_callback(Slow())
    began = time.monotonic()
    trainer.train()
    seconds = time.monotonic() - began
    logs = [entry for entry in make_log(tmp_path) if "loss" in entry]
    assert [entry["step"] for entry in logs] == [1, 2, 4]
    for entry, (low, high) in zip(logs, [(0, 1), (1, 2), (2, 4)], strict=True):
        tokens = padded = packed = 0
        for start in range(8 * low, 8 * high, 4):
            rows = [trainer.train_dataset[n] for n in range(start, start + 4)]
            both = [r["prompt_ids"] + r[name] for name in ("chosen_ids", "rejected_ids") for r in rows]
            tokens += sum(map(len, both))
            padded += len(both) * max(map(len, both))
            packed += len(trie.pack(both))
        assert packed < tokens < padded
        if packing == "trie":
            assert entry["shared_share"] == pytest.approx(1 - packed / tokens) and "padding_share" not in entry
        else:
            assert entry["padding_share"] == pytest.approx(1 - tokens / padded) and "shared_share" not in entry
        assert tokens / seconds < entry["tokens_per_second"] < tokens / (0.5 * (high - low)), "a step sleeps 0.5 s"
        assert torch.cuda.is_available() or 0.1 < entry["memory_gb"] < 100
    assert "tokens_per_second" not in make_log(tmp_path)[-1], "the closing line has no step of its own"


# ---------------------------------------------------------------- step 0


@pytest.mark.parametrize("reference", ["live", "cached"])
def test_step0_loss_is_checked_against_a_live_reference(model, tmp_path, reference):
    """An adapter that already does something makes the first loss differ from ln 2, and the run stops."""
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
    from scope.recipe import load
    from scope.training import planned_rows

    recipe = load("smollm2_135m", ["trainer.max_length=8"])
    with pytest.raises(StageError, match=r"none of the 3 quartets can be used: 3 exceed trainer.max_length=8"):
        planned_rows(recipe, tokenizer, [quartet(n) for n in range(3)], batch_arithmetic(recipe, 1))


# ---------------------------------------------------------------- other work is refused


def test_a_run_is_not_taken_up_under_another_global_batch(tmp_path):
    from scope import artifacts
    from scope.models import ResolvedModel
    from scope.recipe import load
    from scope.training import key

    (tmp_path / "base").mkdir()
    base = ResolvedModel("base", tmp_path / "base", None, "local", "weights")

    def claim(global_batch):
        recipe = load("smollm2_135m", [f"trainer.global_batch={global_batch}"])
        wanted = key(recipe, "quartets", base, batch_arithmetic(recipe, 1))
        artifacts.refuse_other_work(tmp_path, wanted, "train", "train.py recipe=smollm2_135m")

    claim(8)
    claim(8)
    with pytest.raises(artifacts.StageError, match=r"holds train work for other .*global_batch: 8 there, 16 now"):
        claim(16)


@pytest.mark.thorough
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
    assert (
        done.returncode == 2
        and "was made with identity = {'chat_template.jinja': " in done.stderr
        and "mine.py" in done.stderr
    )
