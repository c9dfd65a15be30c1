"""Adapter x coefficient -> merged checkpoint, accepted only if it computes what the adapter computes.

The delta is added in fp32, tensor by tensor, and cast once. Rounding to bf16 can undo part of a small
delta: it moves the logits of a well-behaved model by less than 2e-2, those of Qwen2.5-0.5B by about 1,
so by default the merged weights stay in fp32 where the difference is too large.
"""

import json
import shutil
import time
from pathlib import Path
from typing import Any

from scope import artifacts, mining
from scope.artifacts import StageError
from scope.conditions import Condition
from scope.engines import release_memory
from scope.items import load_quartets
from scope.models import ResolvedModel, load_model, load_tokenizer
from scope.recipe import Recipe

FOLDER = "merged"
TRAIN = "train"
#: What fp32 sums in another order may differ by, in logits: the demo's model with its adapter is off by
#: 2e-4 from the same in fp64, and PEFT's own merge differs from its adapter by 1.5e-4.
EXACT = 5e-4


def merge(recipe: Recipe, resolved: ResolvedModel) -> Path:
    """Run the merge stage; returns the folder of the merged model. Call it with the training folder's lock held."""
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
    artifacts.sweep(folder.parent)
    began = time.monotonic()
    quartets = load_quartets(recipe.folder(mining.FOLDER) / "quartets.jsonl")
    picked = [quartets[i % len(quartets)] for i in range(recipe.merge.check_prompts)]
    texts = [(quartet.prompt(list(Condition)[i % 4]), quartet.chosen) for i, quartet in enumerate(picked)]
    expected = logits(resolved, recipe, texts, adapter=train / "adapter")
    with artifacts.replacing_folder(folder) as target:
        dtype, merged, difference = _write_checked(recipe, resolved, train / "adapter", target, texts, expected)
        artifacts.write_json(target / "base.json", json.loads((train / "adapter" / "base.json").read_text("utf-8")))
        artifacts.write_json(target / "timings.json", {"seconds": time.monotonic() - began})
        outputs = sorted(p.name for p in target.glob("*.safetensors"))
        artifacts.finish(
            target,
            stage=FOLDER,
            key=wanted,
            outputs=outputs,
            seed=recipe.seed,
            dtype=dtype,
            logit_difference=difference,
            merged_tensors=merged,
            recipe=recipe.resolved(),
        )
    print(
        f"merge: {merged} tensors at coefficient {recipe.merge.coefficient:g}; largest logit difference to the "
        f"adapter {difference:.2g}; model in {folder}"
    )
    return folder


def _write_checked(
    recipe: Recipe,
    resolved: ResolvedModel,
    adapter: Path,
    target: Path,
    texts: list[tuple[str, str]],
    expected: list[Any],
) -> tuple[str, int, float]:
    """Write the merged model in the first dtype whose logits agree; (dtype, tensors changed, largest difference)."""
    wanted = recipe.merge.dtype
    copy_rest(resolved.path, target)
    for dtype in ("bfloat16", "float32") if wanted == "auto" else (wanted,):
        merged = merge_weights(resolved.path, adapter, target, recipe.merge.coefficient, dtype)
        written = ResolvedModel(str(target), target, None, "local", "")
        difference = largest_difference(expected, logits(written, recipe, texts))
        limit = EXACT if dtype == "float32" else recipe.merge.tolerance
        if difference <= limit:
            return dtype, merged, difference
        if wanted == "auto" and dtype == "bfloat16":
            print(
                f"merge: rounded to bf16 the logits move by up to {difference:.2g}, more than merge.tolerance="
                f"{limit:g}; the merged weights stay in fp32"
            )
    raise StageError(
        f"{recipe.folder(FOLDER)}: logits of merged and adapter model differ by {difference:.3g} in {dtype}, more than "
        f"{limit:g}; nothing was kept"
        + ("; set merge.dtype=float32 or raise merge.tolerance" if dtype != "float32" else "")
    )


def merge_weights(base: Path, adapter: Path, target: Path, coefficient: float, dtype: str) -> int:
    """Write base + coefficient x adapter into `target`; returns how many tensors were changed.

    W + coefficient x (alpha / r) x B A, computed in fp32 and cast once to `dtype`, as all weights are.
    StageError if a LoRA pair finds no weight, or the adapter holds anything else.
    """
    import torch
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
                    weight = weight.float() + scale * delta
                    left.discard(name)
                merged[name] = weight.to(getattr(torch, dtype))
        save_file(merged, target / file.name, metadata)
    if left:
        raise StageError(
            f"{adapter}: adapts {sorted(left)[0]} and {len(left) - 1} more tensors that the base {base} does not have; "
            "it belongs to another model"
        )
    settings = json.loads((target / "config.json").read_text("utf-8"))
    artifacts.write_json(target / "config.json", {**settings, "dtype": dtype})
    return len(pairs)


def copy_rest(base: Path, target: Path) -> None:
    """Config, tokenizer, template and generation settings go along with the weights."""
    for file in sorted(base.iterdir()):
        if file.is_file() and not file.name.startswith(".") and file.suffix in (".json", ".jinja", ".txt", ".model"):
            shutil.copyfile(file, target / file.name)


def logits(
    model: ResolvedModel, recipe: Recipe, texts: list[tuple[str, str]], adapter: Path | None = None
) -> list[Any]:
    """Logits (tokens, vocabulary) of each (prompt, response), computed in fp32, of a model or of model + adapter."""
    import torch
    from peft import PeftModel

    from scope.engines.transformers import render

    tokenizer = load_tokenizer(model)
    network: Any = load_model(model, "float32", recipe.model.attn_implementation)
    if adapter is not None:
        network = PeftModel.from_pretrained(network, adapter).eval()
        for module in network.modules():
            if scale_layer := getattr(module, "scale_layer", None):
                scale_layer(recipe.merge.coefficient)
    found = []
    with torch.inference_mode():
        for prompt, response in texts:
            ids = render(tokenizer, prompt, recipe.model.chat_template_kwargs)
            ids = ids + tokenizer.encode(response, add_special_tokens=False)
            found.append(network(input_ids=torch.tensor([ids], device=network.device)).logits[0].cpu())
    del network
    release_memory()
    return found


def largest_difference(expected: list[Any], found: list[Any]) -> float:
    """Largest absolute difference over all tokens and the vocabulary."""
    return max((a - b).abs().max().item() for a, b in zip(expected, found, strict=True))
