"""Merging: equal to the adapter, at any coefficient, and never for the wrong base."""

import json

import pytest

from scope.artifacts import StageError
from scope.merge import merge_weights


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


@pytest.mark.parametrize("coefficient", [1.0, 0.5, 1.7])
def test_merged_logits_equal_the_scaled_adapter(tiny_model, adapter, tmp_path, coefficient):
    """The peer is PEFT's own forward with its layers scaled; nothing of it is shared with the merge."""
    import torch
    from peft import PeftModel
    from transformers import AutoModelForCausalLM

    assert merged(tiny_model, adapter, tmp_path, coefficient) == 4
    ids = torch.randint(3, 4000, (2, 40), generator=torch.Generator().manual_seed(0))
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
    import shutil

    from safetensors.torch import load_file, save_file

    foreign = tmp_path / "foreign"
    shutil.copytree(adapter, foreign)
    tensors = load_file(foreign / "adapter_model.safetensors")
    save_file({n.replace("layers.1", "layers.7"): t for n, t in tensors.items()}, foreign / "adapter_model.safetensors")
    with pytest.raises(StageError, match=r"adapts model.layers.7.*belongs to another model"):
        merged(tiny_model, foreign, tmp_path, 1.0)


def test_what_is_not_plain_lora_is_refused(tiny_model, adapter, tmp_path):
    import shutil

    dora = tmp_path / "dora"
    shutil.copytree(adapter, dora)
    config = json.loads((dora / "adapter_config.json").read_text())
    (dora / "adapter_config.json").write_text(json.dumps({**config, "use_dora": True}))
    with pytest.raises(StageError, match="only plain LoRA"):
        merged(tiny_model, dora, tmp_path, 1.0)
