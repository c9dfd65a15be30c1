"""Merging: equal to the adapter, at any coefficient, and never for the wrong base."""

import dataclasses
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from scope.artifacts import StageError
from scope.merge import check_base, merge_adapter, merge_weights
from scope.recipe import RecipeError
from scope.schema import MergeConfig

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def adapter(tiny_model, tmp_path_factory):
    """A LoRA adapter on the tiny model whose B matrices are not zero."""
    import torch
    from peft import LoraConfig, get_peft_model
    from transformers import AutoModelForCausalLM

    torch.manual_seed(1)
    model = AutoModelForCausalLM.from_pretrained(tiny_model, dtype=torch.float32)
    model = get_peft_model(model, LoraConfig(r=4, lora_alpha=8, target_modules=["q_proj", "down_proj"]))
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "lora_B" in name:
                parameter.normal_(std=0.02)
    folder = tmp_path_factory.mktemp("adapter")
    model.save_pretrained(folder)
    return folder


def merged(tiny_model, adapter, target, coefficient, dtype="float32"):
    from scope.merge import copy_rest

    copy_rest(tiny_model, target)
    return merge_weights(tiny_model, adapter, target, coefficient, dtype)


@pytest.mark.parametrize("coefficient", [1.0, pytest.param(0.5, marks=pytest.mark.thorough), 1.7])
def test_merged_logits_equal_the_scaled_adapter(tiny_model, adapter, tmp_path, coefficient):
    """The peer is PEFT's own forward with its layers scaled; nothing of it is shared with the merge."""
    import torch
    from peft import PeftModel
    from transformers import AutoModelForCausalLM

    assert merged(tiny_model, adapter, tmp_path, coefficient) == 4
    ids = torch.randint(3, 1000, (2, 40), generator=torch.Generator().manual_seed(0))
    with torch.inference_mode():
        base = AutoModelForCausalLM.from_pretrained(tiny_model, dtype=torch.float32)
        plain = base(ids).logits
        peft = PeftModel.from_pretrained(base, adapter)
        for module in peft.modules():
            if hasattr(module, "scale_layer"):
                module.scale_layer(coefficient)
        expected = peft(ids).logits
        found = AutoModelForCausalLM.from_pretrained(tmp_path, dtype=torch.float32)(ids).logits
    assert (found - expected).abs().max() < 1e-4
    assert (plain - expected).abs().max() > 1e-2, "the adapter must do something"


def test_bf16_rounds_once_and_says_so_in_the_config(tiny_model, adapter, tmp_path):
    import torch
    from safetensors.torch import load_file

    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    merged(tiny_model, adapter, tmp_path / "a", 1.0, "bfloat16")
    merged(tiny_model, adapter, tmp_path / "b", 1.0, "float32")
    rounded, exact = (load_file(tmp_path / f / "model.safetensors") for f in "ab")
    for name, tensor in exact.items():
        assert torch.equal(rounded[name], tensor.to(torch.bfloat16)), name
    assert json.loads((tmp_path / "a/config.json").read_text())["dtype"] == "bfloat16"
    assert (tmp_path / "a/tokenizer.json").exists() and (tmp_path / "a/generation_config.json").exists()


def test_an_adapter_of_another_model_is_refused(tiny_model, adapter, tmp_path):
    from safetensors.torch import load_file, save_file

    foreign = tmp_path / "foreign"
    shutil.copytree(adapter, foreign)
    tensors = load_file(foreign / "adapter_model.safetensors")
    save_file({n.replace("layers.1", "layers.7"): t for n, t in tensors.items()}, foreign / "adapter_model.safetensors")
    with pytest.raises(StageError, match=r"adapts model.layers.7.*belongs to another model"):
        merged(tiny_model, foreign, tmp_path, 1.0)


def test_what_is_not_plain_lora_is_refused(tiny_model, adapter, tmp_path):
    dora = tmp_path / "dora"
    shutil.copytree(adapter, dora)
    config = json.loads((dora / "adapter_config.json").read_text())
    (dora / "adapter_config.json").write_text(json.dumps({**config, "use_dora": True}))
    with pytest.raises(StageError, match="only plain LoRA"):
        merged(tiny_model, dora, tmp_path, 1.0)


# ---------------------------------------------------------------- python -m scope.merge


@pytest.fixture
def base(tiny_model):
    from scope.models import resolve_model

    return resolve_model(str(tiny_model))


def renamed(adapter, target, base):
    """A copy of the adapter whose configuration names another base."""
    shutil.copytree(adapter, target)
    config = json.loads((target / "adapter_config.json").read_text())
    (target / "adapter_config.json").write_text(json.dumps({**config, "base_model_name_or_path": base}))
    return target


def command(*words):
    done = subprocess.run(
        [sys.executable, "-m", "scope.merge", *map(str, words)], cwd=ROOT, capture_output=True, text=True, timeout=1200
    )
    assert "Traceback" not in done.stderr, done.stderr
    return done


def test_an_adapter_is_merged_later_from_the_command_line(tiny_model, adapter, tmp_path):
    import torch
    from peft import PeftModel
    from transformers import AutoModelForCausalLM

    prompts, out = tmp_path / "prompts.txt", tmp_path / "out"
    prompts.write_text("What is 3 plus 4?\n\nA shelf holds 17 books.\n")
    words = [f"base={tiny_model}", f"adapter={adapter}", f"out={out}", "coefficient=0.5", "dtype=float32"]
    done = command(*words, f"prompts={prompts}")
    assert done.returncode == 0, done.stderr
    assert "4 tensors at coefficient 0.5" in done.stdout and "merge: 4 tensors" in done.stdout
    manifest = json.loads((out / "manifest.json").read_text())
    assert manifest["dtype"] == "float32" and 0 <= manifest["logit_difference"] < 1e-4
    assert manifest["key"]["merge"]["coefficient"] == 0.5
    assert json.loads((out / "base.json").read_text())["base"] == str(tiny_model)
    ids = torch.randint(3, 1000, (1, 30), generator=torch.Generator().manual_seed(0))
    with torch.inference_mode():
        found = AutoModelForCausalLM.from_pretrained(out, dtype=torch.float32)(ids).logits
        network = AutoModelForCausalLM.from_pretrained(tiny_model, dtype=torch.float32)
        network = PeftModel.from_pretrained(network, adapter)
        for module in network.modules():
            if hasattr(module, "scale_layer"):
                module.scale_layer(0.5)
        assert (network(ids).logits - found).abs().max() < 1e-4
    before = (out / "model.safetensors").stat().st_mtime_ns
    assert "nothing to do" in command(*words).stdout
    assert (out / "model.safetensors").stat().st_mtime_ns == before
    other = command(*words, "coefficient=2")
    assert other.returncode == 2 and "is there already and holds something else" in other.stderr
    assert (out / "model.safetensors").stat().st_mtime_ns == before


@pytest.mark.parametrize(
    "words, sentence",
    [
        (["base=x", "adapter=y"], "out is not set; add out=VALUE"),
        (["base=x", "adapter=y", "out=z", "coeficient=1"], "did you mean coefficient"),
        (["base=x", "adapter=y", "out=z", "coefficient=much"], "coefficient=much is not a number"),
        (["base=x", "adapter=y", "out=z", "coefficient=0"], "coefficient=0.0 is out of range"),
        (["base=x", "adapter=y", "out=z", "dtype=int8"], "dtype=int8 is not a choice"),
        (["base=x", "adapter=y", "out=z", "prompts=/nowhere"], "prompts=/nowhere: cannot be read"),
    ],
    ids=lambda value: value[-1] if isinstance(value, list) else "",
)
def test_a_wrong_command_is_a_sentence(words, sentence):
    from scope.merge import main

    with pytest.raises(RecipeError) as caught:
        main(words)
    assert sentence in str(caught.value)


def test_a_base_of_another_name_is_refused_naming_both(base, adapter, tmp_path):
    other = renamed(adapter, tmp_path / "other", "someone/another-model")
    with pytest.raises(StageError) as caught:
        merge_adapter(base, other, tmp_path / "out", MergeConfig())
    assert "was made on someone/another-model, not on " + base.name in str(caught.value)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["other"], "nothing is left behind"


def test_the_hash_of_the_weights_decides_where_it_is_known(base, adapter, tmp_path):
    moved = renamed(adapter, tmp_path / "moved", "someone/another-name")
    record = {"base": "someone/another-name", "revision": None, "weights_sha256": base.weights_sha256}
    (moved / "base.json").write_text(json.dumps(record))
    check_base(moved, base)
    (moved / "base.json").write_text(json.dumps({**record, "weights_sha256": "0" * 64}))
    with pytest.raises(StageError) as caught:
        check_base(moved, base)
    message = str(caught.value)
    assert "someone/another-name with weights 000000000000" in message and base.weights_sha256[:12] in message
    assert base.name in message


def test_a_base_in_a_folder_elsewhere_is_known_by_its_last_part(base, adapter, tmp_path):
    check_base(renamed(adapter, tmp_path / "a", f"/data/there/{base.path.name}"), base)
    with pytest.raises(StageError, match="was made on /data/there/llama"):
        check_base(renamed(adapter, tmp_path / "b", "/data/there/llama"), base)


def test_a_folder_without_an_adapter_is_refused(base, tmp_path):
    with pytest.raises(StageError, match="holds no PEFT adapter"):
        merge_adapter(base, tmp_path, tmp_path / "out", MergeConfig())


def test_tensors_of_another_shape_are_refused(tiny_model, adapter, tmp_path):
    from safetensors.torch import load_file, save_file

    wide = tmp_path / "wide"
    shutil.copytree(adapter, wide)
    tensors = load_file(wide / "adapter_model.safetensors")
    name = next(n for n in tensors if "q_proj.lora_A" in n)
    tensors[name] = tensors[name].repeat(1, 2)
    save_file(tensors, wide / "adapter_model.safetensors")
    with pytest.raises(StageError, match=r"as \(128, 256\), the base .* has it as \(128, 128\)"):
        merged(tiny_model, wide, tmp_path, 1.0)
    del tensors[name]
    save_file(tensors, wide / "adapter_model.safetensors")
    with pytest.raises(StageError, match="only half of the LoRA pair"):
        merged(tiny_model, wide, tmp_path, 1.0)


def test_a_merge_that_computes_something_else_keeps_nothing_and_clears_up_a_killed_one(base, adapter, tmp_path):
    (tmp_path / ".out.work" / ".model.killed.tmp").mkdir(parents=True)
    with pytest.raises(StageError, match=r"differ by .* in bfloat16, more than 1e-09; nothing was kept"):
        merge_adapter(base, adapter, tmp_path / "out", MergeConfig(dtype="bfloat16", tolerance=1e-9))
    assert list(tmp_path.iterdir()) == []


# ---------------------------------------------------------------- the check


@pytest.fixture
def recipe_of(tiny_model, base):
    """A recipe whose training folder holds the adapter, on the base; and the base."""
    from scope import artifacts
    from scope.items import Quartet, write_rows
    from scope.mining import FOLDER
    from scope.recipe import load

    def make(adapter, folder, words):
        recipe = load("quickstart", [f"model.base={tiny_model}", f"output_dir={folder}", *words])
        train = recipe.folder("train")
        shutil.copytree(adapter, train / "adapter")
        artifacts.finish(
            train,
            stage="train",
            key={"weights": base.weights_sha256, "identity": base.identity},
            outputs=["adapter/adapter_model.safetensors", "adapter/adapter_config.json"],
            seed=0,
        )
        text = {
            field.name: "What is 3 plus 4?" for field in dataclasses.fields(Quartet) if field.name != "chosen_source"
        }
        write_rows(recipe.folder(FOLDER) / "quartets.jsonl", [Quartet(**text, chosen_source="clean")])
        return recipe, base

    return make


def test_the_bounds_are_relative_to_the_logits_and_settings(base, adapter, tmp_path):
    """Rounding is accepted just above what it does in standard deviations of the logits, refused just below."""
    import numpy as np

    from scope.merge import NEUTRAL, logits
    from scope.models import load_tokenizer

    tokenizer = load_tokenizer(base)
    expected = [np.asarray(one) for one in logits(base, [tokenizer.encode(text) for text in NEUTRAL], adapter)]
    spread = np.sqrt(np.mean([one.std() ** 2 for one in expected]))
    manifest = json.loads(
        (
            merge_adapter(base, adapter, tmp_path / "a", MergeConfig(dtype="bfloat16", tolerance=9)) / "manifest.json"
        ).read_text()
    )
    assert manifest["logit_spread"] == pytest.approx(spread, rel=1e-3) and manifest["logit_difference"] > 0
    relative = manifest["logit_difference"] / float(spread)
    merge_adapter(base, adapter, tmp_path / "b", MergeConfig(dtype="bfloat16", tolerance=1.05 * relative))
    with pytest.raises(StageError, match=r"standard deviations in bfloat16, more than .*raise tolerance"):
        merge_adapter(base, adapter, tmp_path / "c", MergeConfig(dtype="bfloat16", tolerance=0.95 * relative))
    with pytest.raises(StageError, match=r"standard deviations in float32, more than 1e-12.*exactness"):
        merge_adapter(base, adapter, tmp_path / "c", MergeConfig(dtype="float32", exactness=1e-12))


def test_a_scale_of_the_logits_does_not_decide_what_passes():
    import torch

    from scope.merge import largest_difference

    a = torch.randn(5, 50, generator=torch.Generator().manual_seed(0))
    found = [largest_difference([k * a, 3 * k * a], [k * a + k * 0.01, 3 * k * a]) for k in (1.0, 64.0)]
    relative = [difference / spread for difference, spread in found]
    assert relative[0] == pytest.approx(relative[1], rel=1e-4) and relative[0] == pytest.approx(0.0045, rel=0.1)
    assert largest_difference([a], [a * float("nan")])[0] == float("inf"), "what is no number passes no bound"


def test_flash_attention_in_the_recipe_does_not_reach_the_check(recipe_of, tiny_model, adapter, tmp_path):
    """It refuses fp32 and is not installed here; the merge of a run that trained with it works and says with what."""
    recipe, base = recipe_of(adapter, tmp_path, ["model.attn_implementation=flash_attention_2"])
    from scope.merge import merge

    manifest = json.loads((merge(recipe, base) / "manifest.json").read_text())
    assert manifest["check_attention"] == "sdpa"
    assert manifest["recipe"]["model"]["attn_implementation"] == "flash_attention_2"


def test_tied_embeddings_are_written_once_and_read_back(tiny_model, adapter, tmp_path):
    """Whether the base says that they are tied, or carries the same bits twice."""
    import torch
    from safetensors.torch import load_file, save_file
    from transformers import AutoModelForCausalLM

    ids = torch.randint(3, 1000, (1, 30), generator=torch.Generator().manual_seed(0))
    expected = None
    for says in (True, False):
        twice = tmp_path / f"twice-{says}"
        shutil.copytree(tiny_model, twice)
        tensors = load_file(twice / "model.safetensors")
        tensors["lm_head.weight"] = tensors["model.embed_tokens.weight"].clone()
        save_file(tensors, twice / "model.safetensors", {"format": "pt"})
        config = json.loads((twice / "config.json").read_text())
        (twice / "config.json").write_text(json.dumps({**config, "tie_word_embeddings": says}))
        out = tmp_path / f"out-{says}"
        out.mkdir()
        merged(twice, adapter, out, 1.0)
        assert "lm_head.weight" not in load_file(out / "model.safetensors")
        network = AutoModelForCausalLM.from_pretrained(out, dtype=torch.float32)
        assert network.lm_head.weight is network.model.embed_tokens.weight
        with torch.inference_mode():
            found = network(ids).logits
        expected = found if expected is None else expected
        assert torch.equal(found, expected)
        network.save_pretrained(tmp_path / f"again-{says}")
        assert set(load_file(tmp_path / f"again-{says}" / "model.safetensors")) == set(
            load_file(out / "model.safetensors")
        )


def test_a_head_of_its_own_is_kept_and_in_fp32_only_what_changed_grows(tiny_model, adapter, tmp_path):
    import torch
    from safetensors.torch import load_file, save_file

    own, out = tmp_path / "own", tmp_path / "out"
    shutil.copytree(tiny_model, own)
    tensors = {name: tensor.bfloat16() for name, tensor in load_file(own / "model.safetensors").items()}
    tensors["lm_head.weight"] = -tensors["model.embed_tokens.weight"]
    save_file(tensors, own / "model.safetensors", {"format": "pt"})
    config = json.loads((own / "config.json").read_text())
    (own / "config.json").write_text(json.dumps({**config, "tie_word_embeddings": False}))
    out.mkdir()
    merged(own, adapter, out, 1.0)
    written = load_file(out / "model.safetensors")
    assert set(written) == set(tensors)
    for name, tensor in written.items():
        if ".q_proj." in name or ".down_proj." in name:
            assert tensor.dtype == torch.float32 and not torch.equal(tensor, tensors[name].float()), name
        else:
            assert tensor.dtype == torch.bfloat16 and torch.equal(tensor, tensors[name]), name


# ---------------------------------------------------------------- evaluated as it was saved


@pytest.mark.parametrize("saved", ["float32", "bfloat16"])
def test_what_was_kept_in_fp32_is_not_rounded_by_evaluating_it(recipe_of, adapter, tmp_path, saved):
    """On both engines; keys, results and screen name the precisions, and say where they differ."""
    import torch

    from scope.engines.transformers import TransformersEngine
    from scope.engines.vllm import VLLMEngine
    from scope.evaluation.stage import plan
    from scope.evaluation.suites import SUITES
    from scope.evaluation.systems import open_systems
    from scope.merge import merge
    from scope.report.terminal import notes

    words = [f"merge.dtype={saved}", "merge.tolerance=9", "model.dtype=bfloat16", "pool.n_evaluation=4"]
    recipe, base = recipe_of(adapter, tmp_path / "run", [*words, "model.attn_implementation=flash_attention_2"])
    folder = merge(recipe, base)
    elsewhere = shutil.copytree(folder, tmp_path / "elsewhere")
    recipe.evaluation.models = {"mine": str(elsewhere), "other": str(base.path)}
    recipe.evaluation.systems = ["base", "merged", "adapter", "mine", "other"]
    systems = {system.name: system for system in open_systems(recipe)}
    wanted = {name: saved if name in ("merged", "mine") else "bfloat16" for name in systems}
    for name, system in systems.items():
        settings = system.settings(recipe)
        for engine in (TransformersEngine, VLLMEngine):
            assert engine(system.model, settings, recipe.engine, system.adapter).dtype == wanted[name], (name, engine)
        # Flash attention refuses fp32.
        assert settings.attn_implementation == ("sdpa" if wanted[name] == "float32" else "flash_attention_2")
    work = plan(recipe, SUITES["mist"], list(systems.values()))
    assert work.key["dtype"] == wanted
    said = work.facts["precision"]
    if saved == "float32":
        assert "base in bfloat16, merged in float32" in said and "one of precision" in said
        merged_engine = TransformersEngine(systems["merged"].model, systems["merged"].settings(recipe), recipe.engine)
        assert {p.dtype for p in merged_engine.model.parameters()} == {torch.float32}
    else:
        assert said == "bfloat16"
    assert f"precision: {said}" in notes(
        {"suite": "mist", "facts": work.facts, "failed_items": [], "systems": {}, "differences": {}}
    )


def test_a_recipe_in_fp32_computes_all_systems_in_it(recipe_of, adapter, tmp_path):
    from scope.evaluation.systems import open_systems, precision_facts, precisions
    from scope.merge import merge

    recipe, base = recipe_of(adapter, tmp_path / "run", ["merge.dtype=bfloat16", "merge.tolerance=9"])
    recipe.model.dtype = "float32"
    merge(recipe, base)
    found = precisions(recipe, open_systems(recipe))
    assert found == {"base": "float32", "merged": "float32"} and precision_facts(found) == {"precision": "float32"}
