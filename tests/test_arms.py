"""Every arm beside DPO's: names, learning rates, rows, likelihood and distillation, and each through to a model."""

import dataclasses
import json
from pathlib import Path

import pytest

from scope.artifacts import StageError
from scope.conditions import Condition
from scope.items import Item, Quartet
from scope.prompts import diagnostic_prompt, load_note, user_prompt
from scope.recipe import Recipe, RecipeError, load, names
from scope.schema import ARMS, PairsConfig
from scope.training.batch import batch_arithmetic

ROOT = Path(__file__).resolve().parent.parent
NOTE = load_note(ROOT / "scope" / "mining" / "note.txt")


def item(n, answer_type="numeric"):
    choice = answer_type == "multiple_choice"
    return Item(
        id=f"item-{n}",
        source="s",
        provenance="authored",
        topic="t",
        answer_type=answer_type,
        question=f"What is {n} plus {5 - n} in {{this}} set?",
        options=("four", "five") if choice else (),
        gold="B" if choice else "5",
        wrong="A" if choice else "6",
        wrong_class="arithmetic_slip",
        channel="forum",
        context_misleading="Someone on a forum says it is 6. " + "Really. " * n,
        context_correct="Someone on a forum says it is 5.",
        context_irrelevant="Someone on a forum says hello.",
    )


ITEMS = [item(0), item(1), item(2), item(3, "multiple_choice"), item(4, "multiple_choice")]
RESPONSES = [
    "The final answer is 5.",
    "It is five. The final answer is 5.",
    "5 it is, no doubt. The final answer is 5.",
]


def quartet(of, n):
    return Quartet(
        item_id=of.id,
        source=of.source,
        answer_type=of.answer_type,
        channel=of.channel,
        gold=of.gold,
        **{f"prompt_{c}": user_prompt(of, c) for c in Condition},
        chosen=RESPONSES[n % 3] + f" ({n})",
        rejected=f"The final answer is {6 + n}.",
        chosen_source="clean",
        chosen_answer="5",
        rejected_answer="6",
        chosen_request="a",
        rejected_request="b",
    )


QUARTETS = [quartet(of, n) for n, of in enumerate(ITEMS)]


# ---------------------------------------------------------------- names and learning rates


def test_every_arm_has_its_own_folder():
    def arm(pairs, kind, name=""):
        recipe = Recipe(name="x", arm=name, pairs=PairsConfig(arm=pairs))
        recipe.trainer.kind = kind
        return recipe.arm_name

    assert {pairs: arm(pairs, "dpo") for pairs in ARMS} == ARMS
    assert ARMS["full"] == "scope" and ARMS["misleading_only"] == "standard_dpo"
    assert arm("full", "sft") == "sft" and arm("no_clean", "sft") == "sft_no_clean"
    assert {arm(pairs, "opsd") for pairs in ARMS} == {"opsd"}
    every = {arm(pairs, kind) for pairs in ARMS for kind in ("dpo", "sft", "opsd")}
    assert len(every) == 2 * len(ARMS) + 1
    assert arm("no_clean", "sft", "mine2") == "mine2"


@pytest.mark.parametrize("name", names())
def test_sft_and_opsd_keep_their_learning_rates_in_every_recipe(name):
    """A recipe's own rate is DPO's; the trainer group stands behind it, the command line behind both."""
    found = {kind: load(name, [f"trainer={kind}"]).trainer for kind in ("dpo", "sft", "opsd")}
    assert (found["sft"].learning_rate, found["opsd"].learning_rate) == (1e-4, 2e-4)
    expected = {"quickstart": 2.5e-5, "scope_qwen3_4b": 5e-6, "scope_llama32_3b": 5e-6}
    assert found["dpo"].learning_rate == expected.get(name, found["dpo"].learning_rate)
    for kind in ("sft", "opsd"):
        # The same budget, adapter and schedule as DPO.
        own = {"kind": "dpo", "learning_rate": found["dpo"].learning_rate, "packing": found["dpo"].packing}
        assert dataclasses.replace(found[kind], **own) == found["dpo"]


def test_the_command_line_has_the_last_word_on_a_learning_rate():
    assert load("quickstart", ["trainer.learning_rate=3e-4", "trainer=sft"]).trainer.learning_rate == 3e-4


def test_packing_is_refused_where_it_would_do_nothing():
    with pytest.raises(RecipeError, match=r"trainer\.packing=trie is for DPO; choose the objective with trainer=sft"):
        load("quickstart", ["trainer.kind=sft"])


def test_a_sweep_over_objectives_states_what_each_does(run_entry):
    done = run_entry("train.py", "recipe=quickstart", "-m", "trainer=sft,opsd", "pool.n_train=8", "dry_run=true")
    lines = [" ".join(line.split()) for line in done.stdout.splitlines()]
    assert [line.split(", ")[1] for line in lines if line.startswith("recipe")] == ["arm sft", "arm opsd"]
    objective = [line for line in lines if line.startswith("objective")]
    assert "a row is a prompt and its chosen response" in objective[0]
    assert "misleading prompt, the student samples up to 96 tokens; the teacher is the frozen base" in objective[1]
    assert [line for line in lines if line.startswith("masses")][1] == (
        "masses clean 0 %, misleading 100 %, correct 0 %, irrelevant 0 %"
    )
    assert [line.split(",")[0] for line in lines if line.startswith("optimiser")] == [
        "optimiser cosine from 0.0001",
        "optimiser cosine from 0.0002",
    ]


# ---------------------------------------------------------------- a small model


@pytest.fixture(scope="module")
def model(tmp_path_factory, smollm2):
    """Folder of an untrained one-layer Llama with SmolLM2's tokenizer, whose pad token is its end token.

    Its weights are large enough for distributions far from uniform, where forward and reverse KL differ.
    """
    import torch
    from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM

    folder = tmp_path_factory.mktemp("untrained") / "model"
    torch.manual_seed(0)
    tokenizer = AutoTokenizer.from_pretrained(smollm2.path)
    config = LlamaConfig(
        vocab_size=len(tokenizer), hidden_size=32, intermediate_size=64, num_hidden_layers=1, num_attention_heads=2,
        max_position_embeddings=512, tie_word_embeddings=True, bos_token_id=1, eos_token_id=2, pad_token_id=2,
        initializer_range=0.2,
    )  # fmt: skip
    LlamaForCausalLM(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture
def build(model, tmp_path):
    """Make a trainer as the training stage does: (trainer, rows, recipe)."""
    import datasets
    import transformers

    from scope.models import load_tokenizer, resolve_model
    from scope.training import make_trainer, planned, prepare

    def build(*overrides, folder="run", quartets=QUARTETS):
        recipe = load(
            "smollm2_135m",
            [
                f"model.base={model}",
                "model.dtype=float32",
                "trainer.packing=none",
                "trainer.max_steps=3",
                "trainer.global_batch=4",
                "trainer.device_batch=2",
                "trainer.max_completion=6",
                "trainer.lora_r=4",
                "trainer.checkpoint_steps=2",
                "trainer.warmup_ratio=0",
                "trainer.learning_rate=5e-2",
                *overrides,
            ],
        )
        resolved = resolve_model(str(model))
        tokenizer = load_tokenizer(resolved)
        batch = batch_arithmetic(recipe, 1)
        prepared = prepare(recipe, tokenizer, quartets, ITEMS)
        rows, _ = planned(recipe, prepared, batch)
        transformers.set_seed(recipe.seed)
        data = datasets.Dataset.from_list(rows)
        return make_trainer(recipe, resolved, tokenizer, prepared, data, batch, tmp_path / folder), rows, recipe

    return build


def adapter(trainer):
    return {n: p.detach().clone() for n, p in trainer.model.named_parameters() if "lora" in n}


@pytest.mark.parametrize("kind", ["sft", pytest.param("opsd", marks=pytest.mark.thorough)])
def test_a_killed_run_goes_on_as_if_nothing_had_happened(build, kind):
    """The same rows, losses and adapter; OPSD's samples are drawn again as they were."""
    import torch
    from transformers import TrainerCallback

    from scope.training.callbacks import checkpoints

    class Killed(TrainerCallback):
        def on_step_begin(self, args, state, control, **_):
            if state.global_step == 2:
                raise KeyboardInterrupt

    overrides = [f"trainer={kind}", "trainer.max_steps=4"]
    whole, rows, _ = build(*overrides, folder="whole")
    whole.train()
    assert whole.seen_rows == list(range(len(rows))) == list(range(16))
    killed, _, _ = build(*overrides, folder="killed")
    killed.add_callback(Killed())
    with pytest.raises(KeyboardInterrupt):
        killed.train()
    resumed, _, _ = build(*overrides, folder="killed")
    torch.manual_seed(123)  # another random state than the one the killed run had
    resumed.train(resume_from_checkpoint=str(checkpoints(Path(killed.args.output_dir))[2]))
    assert killed.seen_rows + resumed.seen_rows == whole.seen_rows
    losses = [[entry["loss"] for entry in t.state.log_history if "loss" in entry] for t in (whole, resumed)]
    assert losses[0] == losses[1] and len(losses[0]) == 4
    for name, value in adapter(whole).items():
        assert torch.equal(value, adapter(resumed)[name]), name


@pytest.mark.parametrize("kind", ["sft", pytest.param("opsd", marks=pytest.mark.thorough)])
def test_a_loss_that_is_not_finite_stops_the_run_and_names_its_rows(build, kind):
    import torch

    trainer, _, _ = build(f"trainer={kind}")
    original = trainer.model.forward

    def broken(*arguments, **options):
        outputs = original(*arguments, **options)
        for name in ("logits", "log_probs"):
            if torch.is_grad_enabled() and getattr(outputs, name, None) is not None:
                setattr(outputs, name, getattr(outputs, name) * float("nan"))
        return outputs

    trainer.model.forward = broken
    with pytest.raises(StageError, match=r"the loss is nan at step 0; its rows in plan\.jsonl are 0 \(item-"):
        trainer.train()


@pytest.mark.parametrize("kind", ["sft", pytest.param("opsd", marks=pytest.mark.thorough)])
def test_tokens_padding_and_memory_are_logged(build, kind):
    """Of what the model is trained on: prompt and response, or prompt and sample."""
    trainer, rows, _ = build(f"trainer={kind}", "trainer.max_steps=1")
    lengths, original = [], trainer.compute_loss

    def spy(model, inputs, *arguments, **options):
        sampled = inputs["completion_mask"].sum(1).tolist() if kind == "opsd" else None
        for n, number in enumerate(inputs["row"].tolist()):
            row = rows[number]
            if sampled:
                prompt = trainer.processing_class.apply_chat_template(row["prompt"], add_generation_prompt=True)
                lengths.append((len(prompt["input_ids"]), sampled[n]))
            else:
                lengths.append((len(row["prompt_ids"]), len(row["chosen_ids"])))
        return original(model, inputs, *arguments, **options)

    trainer.compute_loss = spy
    trainer.train()
    log = trainer.state.log_history[0]
    tokens = sum(map(sum, lengths))
    # Sampled responses of a step are padded together, behind prompts padded to one width.
    widths = [max(p for p, _ in lengths) + max(c for _, c in lengths)] * 2
    if kind == "sft":
        widths = [max(map(sum, lengths[start : start + 2])) for start in (0, 2)]
    assert log["padding_share"] == pytest.approx(1 - tokens / (2 * sum(widths))) and log["padding_share"] > 0
    assert log["tokens_per_second"] > tokens / 60 and log["memory_gb"] > 0.1


# ---------------------------------------------------------------- SFT


def test_sft_has_dpos_rows_and_masks_the_prompt_by_position(build):
    trainer, rows, _ = build("trainer=sft")
    _, preference, _ = build()
    assert rows == preference, "the same prompts, responses and order as DPO"
    for start, batch in zip(range(0, 12, 2), trainer.get_train_dataloader(), strict=True):
        for row, ids, mask, labels in zip(
            rows[start : start + 2], batch["input_ids"], batch["attention_mask"], batch["labels"], strict=True
        ):
            n, length = len(row["prompt_ids"]), len(row["prompt_ids"]) + len(row["chosen_ids"])
            assert ids[:length].tolist() == row["prompt_ids"] + row["chosen_ids"]
            assert mask.tolist() == [1] * length + [0] * (len(ids) - length)
            # The end token is also the padding token: learned once at the end, never in the prompt or the padding.
            assert labels.tolist() == [-100] * n + row["chosen_ids"] + [-100] * (len(ids) - length)
            assert labels.tolist().count(2) == 1 and (ids[:n] == 2).any()


def test_sft_loss_is_the_mean_over_the_completion_tokens_of_a_step(build, model):
    """By hand: the plain model's log-probabilities, over rows of unlike length in two accumulated micro-batches."""
    import torch
    from transformers import AutoModelForCausalLM

    trainer, rows, _ = build("trainer=sft")
    plain = AutoModelForCausalLM.from_pretrained(model, dtype=torch.float32)
    total, tokens = 0.0, 0
    for row in rows[:4]:
        ids = torch.tensor([row["prompt_ids"] + row["chosen_ids"]])
        log_probs = plain(ids).logits[0, :-1].log_softmax(-1)
        for position in range(len(row["prompt_ids"]), ids.shape[1]):
            total -= log_probs[position - 1, ids[0, position]].item()
            tokens += 1
    assert len({len(row["chosen_ids"]) for row in rows[:4]} | {len(r["prompt_ids"]) for r in rows[:4]}) > 2
    trainer.train()
    assert trainer.state.log_history[0]["loss"] == pytest.approx(total / tokens, abs=1e-5)


# ---------------------------------------------------------------- unmatched and shuffled rows


def test_shuffled_rows_have_another_items_pair_of_the_same_type(build):
    from scope.training.rows import plan_line

    trainer, rows, _ = build("pairs=shuffled", "trainer=sft")
    tokenizer = trainer.processing_class
    by_id = {q.item_id: q for q in QUARTETS}
    for row in rows:
        own, other = by_id[row["item_id"]], by_id[row["pair_id"]]
        assert own != other and own.answer_type == other.answer_type
        assert tokenizer.decode(row["chosen_ids"][:-1]) == other.chosen
        assert tokenizer.decode(row["rejected_ids"][:-1]) == other.rejected
        assert own.prompt(Condition(row["condition"])) in tokenizer.decode(row["prompt_ids"])
        assert plan_line(row)["pair_id"] == other.item_id
    pair_of = {row["item_id"]: row["pair_id"] for row in rows}
    assert all(pair_of[row["item_id"]] == row["pair_id"] for row in rows), "one pair for all prompts of an item"


def test_shuffled_leaves_out_and_counts_what_is_alone_and_fits_the_new_pair(model):
    from scope.models import load_tokenizer, resolve_model
    from scope.training.rows import prepare

    tokenizer = load_tokenizer(resolve_model(str(model)))
    recipe = load("smollm2_135m", ["pairs=shuffled"])
    found = prepare(recipe, tokenizer, QUARTETS[:4])
    assert (found.alone, len(found.quartets)) == (1, 3)
    with pytest.raises(StageError, match="2 have no other quartet of their answer type"):
        prepare(recipe, tokenizer, [QUARTETS[0], QUARTETS[4]])
    # With a pair of its own each quartet fits; the longer pair of another cuts the longest prompt, or drops it.
    short, long = QUARTETS[2], dataclasses.replace(QUARTETS[0], chosen="five " * 40 + "The final answer is 5.")
    own = prepare(load("smollm2_135m"), tokenizer, [short, long])
    limit = max(len(r["prompt_ids"]) + len(r["chosen_ids"]) for q in own.quartets for r in q.values())
    for overlong, kept, cut in (("keep_end", 2, 1), ("drop_quartet", 1, 0)):
        overrides = [f"trainer.max_length={limit}", f"trainer.overlong={overlong}"]
        assert prepare(load("smollm2_135m", overrides), tokenizer, [short, long]).cut == 0
        found = prepare(load("smollm2_135m", ["pairs=shuffled", *overrides]), tokenizer, [short, long])
        assert (len(found.quartets), found.cut, found.dropped) == (kept, cut, 2 - kept)
        for row in (r for q in found.quartets for r in q.values()):
            assert len(row["prompt_ids"]) + len(row["chosen_ids"]) <= limit


# ---------------------------------------------------------------- OPSD


def test_the_teacher_is_shown_exactly_the_diagnostic_prompt(build):
    """For every mined item, with options and braces in its text; published quartets without an item say the letter."""
    from scope.training.opsd import TEACHER_PROMPT, distillation_rows

    trainer, rows, recipe = build("trainer=opsd")
    by_id = {i.id: i for i in ITEMS}
    assert {row["item_id"] for row in rows} == set(by_id)
    for row in rows:
        of = by_id[row["item_id"]]
        assert row["condition"] == "misleading"
        assert row["prompt"] == [{"role": "user", "content": user_prompt(of, Condition.MISLEADING)}]
        prompt = trainer.teacher_context_builder._compose_teacher_prompt(row["prompt"], row["privileged_context"])
        assert prompt == [{"role": "user", "content": diagnostic_prompt(of, NOTE)}]
    assert TEACHER_PROMPT.format(prompt="a {b}", privileged_context="c {d}") == "a {b}\n\nc {d}"
    without = distillation_rows(recipe, trainer.processing_class, [QUARTETS[3]], [])
    assert "the correct answer is B, and" in without[0]["privileged_context"]
    choice = next(row for row in rows if row["item_id"] == "item-3")
    assert "the correct answer is B (five), and" in choice["privileged_context"]


def test_no_token_of_the_note_reaches_the_student(build):
    """Every input of every forward pass, in sampling and in the loss, with and without the adapter."""
    from scope.engines.transformers import render

    trainer, rows, recipe = build("trainer=opsd", "trainer.gradient_checkpointing=true")
    tokenizer, seen = trainer.processing_class, []
    original = trainer.model.get_base_model().forward
    layer = next(m for m in trainer.model.modules() if hasattr(m, "lora_A"))

    def spy(*arguments, **options):
        assert not arguments
        seen.append((layer.disable_adapters, options["input_ids"].tolist(), options["attention_mask"].tolist()))
        return original(*arguments, **options)

    trainer.model.get_base_model().forward = spy
    before = adapter(trainer)
    trainer.train()
    assert any((before[name] != value).any() for name, value in adapter(trainer).items())
    by_id = {i.id: i for i in ITEMS}
    shown = {True: set(), False: set()}
    for row in rows:
        of = by_id[row["item_id"]]
        shown[True].add(tuple(render(tokenizer, diagnostic_prompt(of, NOTE), {})))
        shown[False].add(tuple(render(tokenizer, user_prompt(of, Condition.MISLEADING), {})))
    beginnings = {True: set(), False: set()}
    for is_teacher, batch, masks in seen:
        for ids, mask in zip(batch, masks, strict=True):
            if len(ids) == 1:
                continue  # one more sampled token behind a cached prompt
            text = [i for i, m in zip(ids, mask[-len(ids) :], strict=True) if m]
            known = [prompt for prompt in shown[is_teacher] if tuple(text[: len(prompt)]) == prompt]
            assert len(known) == 1 and len(text) <= len(known[0]) + recipe.trainer.max_completion
            beginnings[is_teacher].add(known[0])
            assert is_teacher or "For you alone" not in tokenizer.decode(ids)
    assert beginnings == shown, "every prompt was seen by the student, and with its note by the teacher"
    assert sum(is_teacher for is_teacher, *_ in seen) == 6, "one teacher pass a micro-batch"


def test_opsd_loss_is_the_forward_kl_to_the_base_under_the_note(build, model):
    """By hand: sum over the vocabulary of p_teacher log(p_teacher / p_student), mean over tokens, then over rows."""
    import torch
    from transformers import AutoModelForCausalLM

    trainer, _, _ = build("trainer=opsd", "trainer.learning_rate=1e-9")
    plain, batches = AutoModelForCausalLM.from_pretrained(model, dtype=torch.float32), []
    original = trainer.compute_loss

    def spy(model, inputs, *arguments, **options):
        batches.append({name: value.clone() for name, value in inputs.items()})
        return original(model, inputs, *arguments, **options)

    trainer.compute_loss = spy
    trainer.train()
    losses = []
    for inputs in batches[:2]:
        width = inputs["completion_ids"].shape[1]
        ids = torch.cat([inputs["prompt_ids"], inputs["completion_ids"]], dim=1)
        mask = torch.cat([inputs["prompt_mask"], inputs["completion_mask"]], dim=1)
        student, teacher = (
            plain(input_ids=i, attention_mask=m).logits[:, -width - 1 : -1].log_softmax(-1)
            for i, m in ((ids, mask), (inputs["teacher_input_ids"], inputs["teacher_attention_mask"]))
        )
        kl = (teacher.exp() * (teacher - student)).sum(-1)
        lengths = inputs["completion_mask"].sum(1)
        losses += [kl[i, : lengths[i]].mean().item() for i in range(len(kl))]
    assert len(losses) == 4 and min(losses) > 0
    assert trainer.state.log_history[0]["loss"] == pytest.approx(sum(losses) / 4, rel=1e-4)


def test_an_item_whose_teacher_prompt_would_be_cut_is_left_out_and_counted(model):
    from scope.engines.transformers import render
    from scope.models import load_tokenizer, resolve_model
    from scope.training.rows import prepare

    tokenizer = load_tokenizer(resolve_model(str(model)))
    lengths = [len(render(tokenizer, diagnostic_prompt(i, NOTE), {})) for i in ITEMS]
    recipe = load("smollm2_135m", ["trainer=opsd", f"trainer.max_length={max(lengths) - 1}"])
    found = prepare(recipe, tokenizer, QUARTETS, ITEMS)
    assert found.dropped == lengths.count(max(lengths)) >= 1
    assert len(found.quartets) == len(ITEMS) - found.dropped


# ---------------------------------------------------------------- from quartets to a model


@pytest.fixture(scope="module")
def mined(tmp_path_factory, tiny_args):
    """Overrides that put arm after arm into one run folder, with its quartets mined."""
    from scope.mining import mine

    overrides = [*tiny_args, f"output_dir={tmp_path_factory.mktemp('arms') / 'run'}", "trainer.max_steps=3"]
    overrides += ["trainer.max_completion=8"]
    mine(load("smollm2_135m", overrides))
    return overrides


@pytest.mark.parametrize(
    "overrides, arm",
    [
        pytest.param(["pairs=unmatched"], "unmatched", marks=pytest.mark.thorough),
        pytest.param(["pairs=shuffled"], "shuffled", marks=pytest.mark.thorough),
        (["trainer=sft"], "sft"),
        pytest.param(["trainer=opsd"], "opsd", marks=pytest.mark.thorough),
    ],
)
def test_every_arm_ends_in_a_merged_model(mined, overrides, arm, capsys):
    from scope.training import train

    recipe = load("smollm2_135m", [*overrides, *mined])
    assert train(recipe) == recipe.folder("merged") == recipe.root / arm / "merged"
    manifest = json.loads((recipe.folder("train") / "manifest.json").read_text())
    plan = [json.loads(line) for line in (recipe.folder("train") / "plan.jsonl").read_text().splitlines()]
    assert len(plan) == 24 and [line["row"] for line in plan] == list(range(24))
    assert (manifest["step0_loss"] is not None) == (recipe.trainer.kind == "dpo")
    assert manifest["first_loss"] != manifest["last_loss"]
    met = {}
    for line in plan:
        met.setdefault(line["item_id"], set()).add(line["condition"])
    share = {"opsd": {"misleading": 1.0}}.get(arm, dict.fromkeys(map(str, Condition), 0.25))
    assert {c: m for c, m in manifest["facts"]["realised_masses"].items() if m} == share
    assert all(len(conditions) == 1 for conditions in met.values()) == (arm in ("unmatched", "opsd"))
    assert all(line.get("pair_id", line["item_id"]) != line["item_id"] for line in plan) == (arm == "shuffled")
    assert json.loads((recipe.folder("merged") / "manifest.json").read_text())["logit_difference"] < 1e-3
    assert f"train: {arm} ({recipe.trainer.kind}) on" in capsys.readouterr().out
    # Settings that this objective does not read make no other run of it.
    unread = {"sft": ["trainer.beta=0.3", "trainer.max_completion=9"], "opsd": ["trainer.beta=0.3", "pairs=no_clean"]}
    if arm in unread:
        train(load("smollm2_135m", [*overrides, *mined, *unread[arm]]))
        assert "train: nothing to do" in capsys.readouterr().out


def test_opsd_depends_on_the_note(mined, tmp_path):
    from scope.models import resolve_model
    from scope.training import key

    recipe = load("smollm2_135m", ["trainer=opsd", *mined])
    (tmp_path / "note.txt").write_text("(The answer is {gold}.)")
    other = load("smollm2_135m", ["trainer=opsd", *mined, f"mining.note={tmp_path / 'note.txt'}"])
    batch, base = batch_arithmetic(recipe), resolve_model(recipe.model.base)
    assert key(recipe, "q", base, batch) != key(other, "q", base, batch)
    sft = [load("smollm2_135m", ["trainer=sft", *mined, *o]) for o in ([], [f"mining.note={tmp_path / 'note.txt'}"])]
    assert key(sft[0], "q", base, batch) == key(sft[1], "q", base, batch)
