"""What a model is: a meaningful byte of any of its files changes every stage's key, and nothing else does."""

import json
import os
import shutil
import struct
from pathlib import Path

import pytest

from scope import artifacts, merge, mining
from scope.evaluation.systems import System, _adapter
from scope.models import adapter_identity, resolve_model, weights_hash
from scope.recipe import load
from scope.schema import MergeConfig
from scope.training import key as training_key
from scope.training.batch import batch_arithmetic


def safetensors(path, value):
    """One tensor `w` of a single float32."""
    header = json.dumps({"w": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}).encode()
    path.write_bytes(struct.pack("<Q", len(header)) + header + struct.pack("<f", value))


CONFIG = {"model_type": "llama", "rms_norm_eps": 1e-5, "hidden_act": "silu", "eos_token_id": 2, "_name_or_path": "here"}
ADAPTER = {
    "r": 4,
    "lora_alpha": 8,
    "target_modules": ["q_proj", "v_proj"],
    "base_model_name_or_path": "a",
    "bias": "none",
}


@pytest.fixture
def model(tmp_path):
    """A model folder with every file that a model may have, and junk beside."""
    folder = tmp_path / "model"
    (folder / "additional_chat_templates").mkdir(parents=True)
    files = {
        "config.json": CONFIG,
        "generation_config.json": {"eos_token_id": [2, 3], "transformers_version": "4"},
        "tokenizer.json": {"model": {"vocab": {"a": 0}}},
        "tokenizer_config.json": {"add_bos_token": False},
        "special_tokens_map.json": {"eos_token": "</s>"},
        "added_tokens.json": {"<x>": 1},
        "vocab.json": {"a": 0},
        "model.safetensors.index.json": {"weight_map": {"w": "model-00001-of-00002.safetensors"}},
    }
    for name, value in files.items():
        (folder / name).write_text(json.dumps(value))
    for name in ("merges.txt", "tokenizer.model", "chat_template.jinja", "additional_chat_templates/tool.jinja"):
        (folder / name).write_text("a b")
    for name in ("model-00001-of-00002.safetensors", "model-00009-of-00009.safetensors"):
        safetensors(folder / name, 1.0)
    return folder


@pytest.fixture
def adapter(tmp_path):
    folder = tmp_path / "adapter"
    folder.mkdir()
    (folder / "adapter_config.json").write_text(json.dumps(ADAPTER))
    safetensors(folder / "adapter_model.safetensors", 1.0)
    return folder


def keys(model, adapter):
    """The key of every stage that reads the model or the adapter."""
    recipe = load("smollm2_135m", [f"model.base={model}", "model.dtype=float32"])
    base = resolve_model(str(model))
    return {
        "mine": mining.key(recipe, {}, base),
        "published": mining.key(recipe, {}, base, []),
        "train": training_key(recipe, "quartets", base, batch_arithmetic(recipe, 1)),
        "merge": merge.key(adapter, base, MergeConfig()),
        "base": System("base", base).identity(recipe),
        "named": System("named", base, _adapter(adapter)).identity(recipe),
    }


def changed(before, after):
    return {stage for stage, key in before.items() if after[stage] != key}


def edit(file, **values):
    file.write_text(json.dumps({**json.loads(file.read_text()), **values}))


MEANINGFUL = {
    "config.json": {"rms_norm_eps": 1e-6},
    "generation_config.json": {"eos_token_id": [2, 4]},
    "tokenizer.json": {"model": {"vocab": {"b": 0}}},
    "tokenizer_config.json": {"add_bos_token": True},
    "special_tokens_map.json": {"eos_token": "<s>"},
    "added_tokens.json": {"<y>": 1},
    "vocab.json": {"a": 1},
    "merges.txt": None,
    "tokenizer.model": None,
    "chat_template.jinja": None,
    "additional_chat_templates/tool.jinja": None,
    "model-00001-of-00002.safetensors": None,
}


@pytest.mark.parametrize("name", MEANINGFUL)
def test_a_meaningful_byte_of_any_file_of_a_model_is_another_key_at_every_stage(model, adapter, name):
    before, file = keys(model, adapter), model / name
    if MEANINGFUL[name] is None:
        file.write_bytes(file.read_bytes()[:-1] + b"!")
    else:
        edit(file, **MEANINGFUL[name])
    assert changed(before, keys(model, adapter)) == set(before)


def test_a_file_that_is_added_or_taken_away_is_another_key_at_every_stage(model, adapter):
    before = keys(model, adapter)
    (model / "chat_template.jinja").unlink()
    without = keys(model, adapter)
    assert changed(before, without) == set(before)
    (model / "spiece.model").write_text("x")
    assert changed(without, keys(model, adapter)) == set(before)


@pytest.mark.parametrize("values", [{"lora_alpha": 8000}, {"r": 8}, {"target_modules": ["q_proj"]}, {"new": True}])
def test_an_adapters_configuration_is_part_of_it(model, adapter, values):
    before = keys(model, adapter)
    edit(adapter / "adapter_config.json", **values)
    assert changed(before, keys(model, adapter)) == {"merge", "named"}


def test_an_adapters_weights_are_part_of_it(model, adapter):
    before = keys(model, adapter)
    safetensors(adapter / "adapter_model.safetensors", 2.0)
    assert changed(before, keys(model, adapter)) == {"merge", "named"}


def test_what_says_nothing_about_the_model_changes_no_key(model, adapter):
    """Layout, origin, versions, an order drawn anew; shards the index does not name; this project's own records."""
    before = keys(model, adapter)
    edit(model / "config.json", _name_or_path="elsewhere", transformers_version="5")
    (model / "tokenizer_config.json").write_text(json.dumps({"add_bos_token": False}, indent=4))
    edit(adapter / "adapter_config.json", base_model_name_or_path="b", target_modules=["v_proj", "q_proj"])
    safetensors(model / "model-00009-of-00009.safetensors", 7.0)
    safetensors(model / "consolidated.safetensors", 7.0)
    for name in ("README.md", "manifest.json", "timings.json", "base.json"):
        (model / name).write_text("{}")
    assert changed(before, keys(model, adapter)) == set()


def test_weights_overwritten_under_their_size_and_time_are_other_weights(model, tmp_path):
    file = model / "model-00001-of-00002.safetensors"
    before, stat = weights_hash(model, tmp_path / "cache"), file.stat()
    with file.open("r+b") as f:
        f.seek(-1, 2)
        f.write(b"\x7f")
    os.utime(file, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    now = file.stat()
    assert (now.st_size, now.st_mtime_ns, now.st_ino) == (stat.st_size, stat.st_mtime_ns, stat.st_ino)
    assert weights_hash(model, tmp_path / "cache") != before


def test_a_refusal_names_the_file_that_differs(model, adapter, tmp_path):
    base = resolve_model(str(model))
    done = tmp_path / "done"
    done.mkdir()
    artifacts.finish(done, stage="mine", key={"identity": base.identity}, outputs=[], seed=0)
    edit(model / "config.json", hidden_act="gelu")
    with pytest.raises(artifacts.StageError) as caught:
        artifacts.require(done, "mine", "mine.py", {"identity": resolve_model(str(model)).identity})
    assert "made with identity = {'config.json': " in str(caught.value) and "tokenizer" not in str(caught.value)
    with pytest.raises(artifacts.StageError, match=r"identity config\.json: .* there, .* now\); delete"):
        artifacts.refuse_other_work(done, {"identity": resolve_model(str(model)).identity}, "mine", "mine.py")


def test_the_training_key_holds_the_precision_that_auto_stands_for(model):
    from scope.models import pick_dtype

    base = resolve_model(str(model))
    found = {}
    for dtype in ("auto", "float32", "bfloat16"):
        recipe = load("smollm2_135m", [f"model.base={model}", f"model.dtype={dtype}"])
        found[dtype] = training_key(recipe, "q", base, batch_arithmetic(recipe, 1))["dtype"]
    assert found == {"auto": pick_dtype("auto"), "float32": "float32", "bfloat16": "bfloat16"}


# ---------------------------------------------------------------- from end to end


def test_completions_of_a_changed_model_are_generated_again(smollm2, tmp_path):
    """config.json, the template and the end tokens change the store's key; what decoding ignores does not."""
    from server import local_engine, small_model

    from scope.engines import Sampling, Store, complete

    folder = small_model(tmp_path / "model", smollm2)
    store = Store(tmp_path / "store.sqlite")

    def asked():
        return complete(local_engine(folder), ["How much is 2 plus 2?"], Sampling(2), store, "t")[0].request_id

    first = asked()
    edit(folder / "generation_config.json", repetition_penalty=1.3)
    assert asked() == first
    edit(folder / "generation_config.json", eos_token_id=[2, 5])
    ends = asked()
    edit(folder / "config.json", rms_norm_eps=1e-3)
    config = asked()
    template = folder / "chat_template.jinja"
    template.write_text(template.read_text().replace("<|im_start|>", "<|im_start|> "))
    assert len({first, ends, config, asked()}) == 4


def test_a_merged_folder_that_was_edited_is_noticed_by_merging_and_evaluating(
    finished_run, tiny_args, tmp_path, capsys
):
    from scope.evaluation.stage import evaluate
    from scope.models import resolve_model

    out = tmp_path / "run"
    shutil.copytree(finished_run[0], out)
    recipe = load("smollm2_135m", [*tiny_args, f"output_dir={out}"])
    base = resolve_model(recipe.model.base)
    merge.merge(recipe, base)
    evaluate(recipe)
    assert capsys.readouterr().out.count("nothing to do") == 2
    before = artifacts.read_manifest(out / "scope/merged")["outputs"]
    template = out / "scope/merged/chat_template.jinja"
    template.write_text(template.read_text() + " ")
    with pytest.raises(artifacts.StageError, match=r"chat_template\.jinja: was changed after stage 'merged' wrote it"):
        evaluate(recipe)
    merge.merge(recipe, base)
    assert "nothing to do" not in capsys.readouterr().out
    assert artifacts.read_manifest(out / "scope/merged")["outputs"] == before


def test_model_dtype_decides_the_precision_under_any_launcher(untrained_run, fresh_run, run_entry, tmp_path):
    """accelerate's default configuration exports bf16: an fp32 recipe trains the same, says so and records it."""
    found = []
    for asked in ("no", "bf16"):
        arguments = fresh_run(f"run-{asked}")
        done = run_entry("train.py", "recipe=smollm2_135m", *arguments, env={"ACCELERATE_MIXED_PRECISION": asked})
        folder = Path(arguments[-1].partition("=")[2]) / "scope/train"
        manifest = artifacts.read_manifest(folder)
        found.append((adapter_identity(folder / "adapter"), manifest["key"]))
        said = "the launcher asks for mixed_precision=bf16; model.dtype=float32 decides"
        assert (said in done.stdout) == (asked == "bf16")
        assert manifest["precision"]["launcher"] == asked and manifest["precision"]["autocast"] == "no"
        assert set(manifest["precision"]["trained"]) == set(manifest["precision"]["frozen"]) == {"float32"}
        assert manifest["key"]["dtype"] == "float32"
    assert found[0] == found[1]
