"""Adapter x coefficient -> merged checkpoint, accepted only if it computes what the adapter computes.

The delta is added in fp32, tensor by tensor, and cast once to the base's own precision. Base and
merged files have the same names and layout.
"""

import json
import shutil
import time
from pathlib import Path
from typing import Any

from scope import artifacts, mining
from scope.artifacts import StageError
from scope.conditions import Condition
from scope.items import load_quartets
from scope.models import ResolvedModel, load_model, load_tokenizer
from scope.recipe import Recipe

FOLDER = "merged"
TRAIN = "train"


def merge(recipe: Recipe, resolved: ResolvedModel) -> Path:
    """Run the merge stage; returns the folder of the merged model."""
    folder = recipe.folder(FOLDER)
    train = recipe.folder(TRAIN)
    trained = artifacts.require(train, TRAIN, recipe.command("train.py"), {"weights": resolved.weights_sha256})
    wanted = {
        "adapter": trained["outputs"]["adapter/adapter_model.safetensors"],
        "weights": resolved.weights_sha256,
        "merge": recipe.part("merge")["merge"],
    }
    if artifacts.is_finished(folder, wanted):
        print(f"merge: nothing to do, {folder} is up to date")
        return folder
    began = time.monotonic()
    with artifacts.replacing_folder(folder) as target:
        merged = merge_weights(resolved.path, train / "adapter", target, recipe.merge.coefficient)
        copy_rest(resolved.path, target)
        quartets = load_quartets(recipe.folder(mining.FOLDER) / "quartets.jsonl")
        texts = [
            (quartets[i % len(quartets)].prompt(list(Condition)[i % 4]), quartets[i % len(quartets)].chosen)
            for i in range(recipe.merge.check_prompts)
        ]
        difference = compare(resolved, train / "adapter", target, recipe, texts)
        if difference > recipe.merge.tolerance:
            raise StageError(
                f"{folder}: merged and adapter logits differ by {difference:.3g}, more than merge.tolerance="
                f"{recipe.merge.tolerance:g}; nothing was kept. Raise the tolerance only if you know why."
            )
        artifacts.write_json(target / "base.json", json.loads((train / "adapter" / "base.json").read_text("utf-8")))
        artifacts.write_json(target / "timings.json", {"seconds": time.monotonic() - began})
        outputs = sorted(p.name for p in target.glob("*.safetensors"))
        artifacts.finish(
            target,
            stage=FOLDER,
            key=wanted,
            outputs=outputs,
            seed=recipe.seed,
            logit_difference=difference,
            merged_tensors=merged,
            recipe=recipe.resolved(),
        )
    print(
        f"merge: {merged} tensors at coefficient {recipe.merge.coefficient:g}; largest logit difference to the "
        f"adapter {difference:.2g}; model in {folder}"
    )
    return folder


def merge_weights(base: Path, adapter: Path, target: Path, coefficient: float) -> int:
    """Write base + coefficient x adapter into `target`; returns how many tensors were changed.

    W + coefficient x (alpha / r) x B A, computed in fp32, cast to W's dtype. StageError if a LoRA
    pair finds no weight, or the adapter holds anything else.
    """
    from safetensors import safe_open
    from safetensors.torch import load_file, save_file

    config = json.loads((adapter / "adapter_config.json").read_text("utf-8"))
    if (
        config.get("use_dora")
        or config.get("rank_pattern")
        or config.get("alpha_pattern")
        or config.get("bias") != "none"
    ):
        raise StageError(f"{adapter}: only plain LoRA adapters are merged here (no DoRA, bias or per-module ranks)")
    scale = coefficient * config["lora_alpha"] / (config["r"] ** 0.5 if config.get("use_rslora") else config["r"])
    tensors = load_file(adapter / "adapter_model.safetensors")
    pairs: dict[str, dict[str, Any]] = {}
    for name, tensor in tensors.items():
        module, _, side = name.removesuffix(".weight").rpartition(".")
        if side not in ("lora_A", "lora_B"):
            raise StageError(f"{adapter}: holds {name}, which is not part of a LoRA pair; it cannot be merged")
        pairs.setdefault(module.removeprefix("base_model.model.") + ".weight", {})[side] = tensor
    left = set(pairs)
    for file in sorted(base.glob("*.safetensors")):
        merged = {}
        with safe_open(file, "pt") as weights:
            metadata = weights.metadata()
            for name in weights.keys():  # noqa: SIM118
                weight = weights.get_tensor(name)
                if name in pairs:
                    pair = pairs[name]
                    delta = pair["lora_B"].float() @ pair["lora_A"].float()
                    weight = (weight.float() + scale * delta).to(weight.dtype)
                    left.discard(name)
                merged[name] = weight
        save_file(merged, target / file.name, metadata)
    if left:
        raise StageError(
            f"{adapter}: adapts {sorted(left)[0]} and {len(left) - 1} more tensors that the base {base} does not have; "
            "it belongs to another model"
        )
    return len(pairs)


def copy_rest(base: Path, target: Path) -> None:
    """Config, tokenizer, template and generation settings go along with the weights."""
    for file in sorted(base.iterdir()):
        if file.is_file() and not file.name.startswith(".") and file.suffix in (".json", ".jinja", ".txt", ".model"):
            shutil.copyfile(file, target / file.name)


def compare(
    resolved: ResolvedModel, adapter: Path, merged: Path, recipe: Recipe, texts: list[tuple[str, str]]
) -> float:
    """Largest absolute difference of the logits over real prompts and responses, both computed in fp32."""
    import torch
    from peft import PeftModel

    from scope.engines.transformers import render

    tokenizer = load_tokenizer(resolved)
    batch = [
        render(tokenizer, prompt, recipe.model.chat_template_kwargs)
        + tokenizer.encode(response, add_special_tokens=False)
        for prompt, response in texts
    ]

    def logits(network: Any) -> list[Any]:
        with torch.inference_mode():
            return [network(input_ids=torch.tensor([ids], device=network.device)).logits[0].cpu() for ids in batch]

    attn = recipe.model.attn_implementation
    model: Any = PeftModel.from_pretrained(load_model(resolved, "float32", attn), adapter).eval()
    if recipe.merge.coefficient != 1.0:
        for module in model.modules():
            if scale_layer := getattr(module, "scale_layer", None):
                scale_layer(recipe.merge.coefficient)
    expected = logits(model)
    del model
    copy = ResolvedModel(str(merged), merged, None, "local", "")
    found = logits(load_model(copy, "float32", attn))
    return max((a - b).abs().max().item() for a, b in zip(expected, found, strict=True))
