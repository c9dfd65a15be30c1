"""Adapter x coefficient -> merged checkpoint, accepted only if it computes what the adapter computes.

    python -m scope.merge base=HUB_ID_OR_FOLDER adapter=FOLDER out=FOLDER [coefficient=1.0] [dtype=auto]
        [tolerance=0.005] [exactness=2e-4] [revision=COMMIT] [prompts=FILE]

merges any plain LoRA adapter later: one of a run, or another PEFT adapter. prompts: a text file, one a line,
on which merged and adapter model are compared; by default a few neutral sentences.

The delta is added in fp32, tensor by tensor, and cast once. Rounding to bf16 can undo part of a small
delta, and moves some models' logits by a third of their spread, so by default the merged weights stay
in fp32 where the difference is too large; they are evaluated in that precision too.
"""

import dataclasses
import json
import os
import re
import shutil
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from scope import artifacts, mining
from scope.artifacts import StageError
from scope.conditions import Condition
from scope.engines import release_memory
from scope.items import load_quartets
from scope.models import (
    ResolvedModel,
    adapter_identity,
    load_model,
    load_tokenizer,
    resolve_model,
    weight_files,
)
from scope.recipe import Recipe, RecipeError, nearest, value_faults
from scope.schema import MergeConfig

FOLDER = "merged"
#: Folder of the training stage, whose adapter is merged.
TRAIN = "train"
#: The check runs in fp32, which flash attention refuses, and where its package may be absent.
CHECK_ATTENTION = "sdpa"
HEAD, EMBEDDINGS = "lm_head.weight", "model.embed_tokens.weight"
NEUTRAL = (
    "The capital of France is Paris, and the river that runs through it is the Seine.",
    "Water boils at 100 degrees Celsius at sea level, and at a lower temperature in the mountains.",
    "Question: A shelf holds 17 books and 25 more are added. How many are there? Answer: 42.",
    "def mean(values):\n    return sum(values) / len(values)\n",
)


def merge(recipe: Recipe, resolved: ResolvedModel) -> Path:
    """Run the merge stage; returns the folder of the merged model. Call it with the training folder's lock held."""
    folder = recipe.folder(FOLDER)
    train = recipe.folder(TRAIN)
    artifacts.require(
        train, TRAIN, recipe.command("train.py"), {"weights": resolved.weights_sha256, "identity": resolved.identity}
    )
    wanted = key(train / "adapter", resolved, recipe.merge)
    if artifacts.is_finished(folder, wanted):
        print(f"merge: nothing to do, {folder} is up to date")
        return folder
    artifacts.sweep(folder.parent)
    from scope.engines.transformers import render

    quartets = load_quartets(recipe.folder(mining.FOLDER) / "quartets.jsonl")
    picked = [quartets[i % len(quartets)] for i in range(recipe.merge.check_prompts)]
    tokenizer = load_tokenizer(resolved)
    texts = [
        render(tokenizer, quartet.prompt(list(Condition)[i % 4]), recipe.model.chat_template_kwargs)
        + tokenizer.encode(quartet.chosen, add_special_tokens=False)
        for i, quartet in enumerate(picked)
    ]
    with artifacts.replacing_folder(folder) as target:
        facts = _write(resolved, train / "adapter", target, recipe.merge, texts)
        artifacts.finish(
            target,
            stage=FOLDER,
            key=wanted,
            outputs=products(target),
            seed=recipe.training_seed,
            **facts,
            recipe=recipe.resolved(),
        )
    print(_done(facts, recipe.merge, folder))
    return folder


def merge_adapter(
    base: ResolvedModel, adapter: Path, out: Path, settings: MergeConfig, prompts: Sequence[str] = NEUTRAL
) -> Path:
    """Merge any plain LoRA adapter into its base; returns `out`, which must be empty or not exist.

    StageError if the adapter belongs to another base or is no plain LoRA, or if merged and adapter model
    disagree on `prompts`; nothing is kept then.
    """
    if not (adapter / "adapter_config.json").is_file() or not (adapter / "adapter_model.safetensors").is_file():
        raise StageError(
            f"{adapter}: holds no PEFT adapter (adapter_config.json and adapter_model.safetensors); name its folder"
        )
    wanted = key(adapter, base, settings)
    if artifacts.is_finished(out, wanted):
        print(f"merge: nothing to do, {out} is up to date")
        return out
    if out.exists() and not (out.is_dir() and not any(out.iterdir())):
        raise StageError(f"{out}: is there already and holds something else; choose another out")
    tokenizer = load_tokenizer(base)
    texts = [tokenizer.encode(text) for text in prompts]
    # Work goes on beside `out`, so that a killed merge leaves it free and the next one clears up.
    work = out.absolute().parent / f".{out.absolute().name}.work"
    with artifacts.stage_lock(work):
        try:
            with artifacts.replacing_folder(work / "model") as target:
                facts = _write(base, adapter, target, settings, texts)
                artifacts.finish(target, stage=FOLDER, key=wanted, outputs=products(target), seed=0, **facts)
            os.replace(work / "model", out)
        finally:
            shutil.rmtree(work, ignore_errors=True)
    print(_done(facts, settings, out))
    return out


def key(adapter: Path, base: ResolvedModel, settings: MergeConfig) -> dict[str, Any]:
    """Everything the merged folder depends on; adapter: its folder."""
    files = adapter_identity(adapter)
    return {
        "adapter": files["adapter_model.safetensors"],
        "adapter_config": files["adapter_config.json"],
        "weights": base.weights_sha256,
        "identity": base.identity,
        "merge": dataclasses.asdict(settings),
    }


def products(folder: Path) -> list[str]:
    """The files of a merged folder that its manifest vouches for: all that a reader of the model reads."""
    found = (path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    return sorted(str(path) for path in found if path.name not in ("timings.json", "manifest.json"))


def base_record(base: ResolvedModel) -> dict[str, str | None]:
    """What `base.json` says, in an adapter's folder and a merged model's."""
    return {"base": base.name, "revision": base.revision, "weights_sha256": base.weights_sha256}


def check_base(adapter: Path, base: ResolvedModel) -> None:
    """StageError, naming both, if the adapter was made on another base.

    The hash of the weights decides where `base.json` gives it; else the name (of a folder that is not
    here, its last part) and the commit.
    """
    config = _read_json(adapter / "adapter_config.json")
    record = adapter / "base.json"
    named = _read_json(record) if record.is_file() else {}
    name = named.get("base") or config.get("base_model_name_or_path")
    digest = named.get("weights_sha256")
    if digest is not None:
        if digest != base.weights_sha256:
            raise StageError(
                f"{adapter}: was made on {name} with weights {digest[:12]}, the base {base.name} has weights "
                f"{base.weights_sha256[:12]}; name the base it was made on"
            )
        return
    if not name:
        print(f"warning: {adapter} names no base; only the shapes of its tensors are checked against {base.name}")
        return
    commit = str(named.get("revision") or config.get("revision"))
    if re.fullmatch(r"[0-9a-f]{40}", commit) and base.revision not in (None, commit):
        raise StageError(f"{adapter}: was made on {name} at {commit}, the base {base.name} is at {base.revision}")
    if Path(name).is_dir():
        same = Path(name).resolve() == base.path.resolve()
    elif Path(name).is_absolute():
        same = Path(name).name == Path(base.name).name
    else:
        same = name == base.name
    if not same:
        raise StageError(f"{adapter}: was made on {name}, not on {base.name}; name the base it was made on")


def _write(
    base: ResolvedModel,
    adapter: Path,
    target: Path,
    settings: MergeConfig,
    texts: list[list[int]],
) -> dict[str, Any]:
    """Write the merged model in the first dtype whose logits agree; the facts for its manifest."""
    began = time.monotonic()
    check_base(adapter, base)
    copy_rest(base.path, target)
    # Weights come before logits: an adapter that does not fit is refused at once.
    dtypes = ("bfloat16", "float32") if settings.dtype == "auto" else (settings.dtype,)
    expected: list[Any] = []
    for dtype in dtypes:
        merged = merge_weights(base.path, adapter, target, settings.coefficient, dtype)
        expected = expected or list(logits(base, texts, adapter, settings.coefficient))
        written = ResolvedModel(str(target), target, None, "local", "")
        difference, spread = largest_difference(expected, logits(written, texts))
        limit = settings.exactness if dtype == "float32" else settings.tolerance
        if difference <= limit * spread:
            artifacts.write_json(target / "base.json", base_record(base))
            artifacts.write_json(target / "timings.json", {"seconds": time.monotonic() - began})
            return {
                "dtype": dtype,
                "logit_difference": difference,
                "logit_spread": spread,
                "check_attention": CHECK_ATTENTION,
                "merged_tensors": merged,
            }
        if dtype != dtypes[-1]:
            print(
                f"merge: rounded to bf16 the logits move by up to {difference / spread:.2g} standard deviations, more "
                f"than tolerance={limit:g}; the merged weights stay in fp32"
            )
    advice = "set dtype to float32 or raise tolerance" if dtype != "float32" else "raise exactness if sums explain it"
    raise StageError(
        f"{adapter}: logits of merged and adapter model differ by {difference / spread:.3g} standard deviations "
        f"in {dtype}, more than {limit:g}; nothing was kept; {advice}"
    )


def _done(facts: dict[str, Any], settings: MergeConfig, folder: Path) -> str:
    return (
        f"merge: {facts['merged_tensors']} tensors at coefficient {settings.coefficient:g}; largest logit difference "
        f"to the adapter {facts['logit_difference']:.2g} ({facts['logit_difference'] / facts['logit_spread']:.2g} "
        f"standard deviations); {facts['dtype']} model in {folder}"
    )


def merge_weights(base: Path, adapter: Path, target: Path, coefficient: float, dtype: str) -> int:
    """Write base + coefficient x adapter into `target`; returns how many tensors were changed.

    W + coefficient x (alpha / r) x B A, computed in fp32 and cast once to `dtype`. In float32 what the adapter leaves
    alone keeps its bits and its dtype; a head that is the embeddings' is not written a second time.
    StageError if a LoRA pair finds no weight of its shape, or the adapter holds anything else.
    """
    import torch
    from safetensors import SafetensorError, safe_open
    from safetensors.torch import load_file, save_file

    config = _read_json(adapter / "adapter_config.json")
    if (
        config.get("peft_type") != "LORA"
        or config.get("use_dora")
        or config.get("rank_pattern")
        or config.get("alpha_pattern")
        or config.get("bias") != "none"
    ):
        raise StageError(f"{adapter}: only plain LoRA adapters are merged here (no DoRA, bias or per-module ranks)")
    scale = coefficient * config["lora_alpha"] / (config["r"] ** 0.5 if config.get("use_rslora") else config["r"])
    try:
        tensors = load_file(adapter / "adapter_model.safetensors")
    except SafetensorError as error:
        raise StageError(f"{adapter / 'adapter_model.safetensors'}: cannot be read ({error}); copy it again") from error
    pairs: dict[str, dict[str, Any]] = {}
    for name, tensor in tensors.items():
        module, _, side = name.removesuffix(".weight").rpartition(".")
        if side not in ("lora_A", "lora_B"):
            raise StageError(f"{adapter}: holds {name}, which is not part of a LoRA pair; it cannot be merged")
        pairs.setdefault(module.removeprefix("base_model.model.") + ".weight", {})[side] = tensor
    if odd := [module for module, pair in pairs.items() if len(pair) != 2]:
        raise StageError(f"{adapter}: holds only half of the LoRA pair of {odd[0]}; its file is damaged")
    left = set(pairs)
    tied = _is_tied(base) and HEAD not in pairs
    for file in weight_files(base):
        merged = {}
        with safe_open(file, "pt") as weights:
            metadata = weights.metadata()
            for name in weights.keys():  # noqa: SIM118
                if tied and name == HEAD:
                    continue
                weight = weights.get_tensor(name)
                if name in pairs:
                    pair = pairs[name]
                    delta = pair["lora_B"].float() @ pair["lora_A"].float()
                    if config.get("fan_in_fan_out"):
                        delta = delta.T
                    if delta.shape != weight.shape:
                        raise StageError(
                            f"{adapter}: adapts {name} as {tuple(delta.shape)}, the base {base} has it as "
                            f"{tuple(weight.shape)}; it belongs to another model"
                        )
                    weight = weight.float() + scale * delta
                    left.discard(name)
                elif dtype == "float32" and weight.is_floating_point():
                    merged[name] = weight  # exact as it is, at half the size
                    continue
                merged[name] = weight.to(getattr(torch, dtype))
            save_file(merged, target / file.name, metadata)
    if left:
        raise StageError(
            f"{adapter}: adapts {sorted(left)[0]} and {len(left) - 1} more tensors that the base {base} does not have; "
            "it belongs to another model"
        )
    settings = json.loads((target / "config.json").read_text("utf-8"))
    ties = {"tie_word_embeddings": True} if tied else {}
    artifacts.write_json(target / "config.json", {**settings, "dtype": dtype, **ties})
    index = target / "model.safetensors.index.json"
    if tied and index.exists():
        listed = json.loads(index.read_text("utf-8"))
        listed["weight_map"].pop(HEAD, None)
        artifacts.write_json(index, listed)
    return len(pairs)


def _is_tied(base: Path) -> bool:
    """Whether the head is the embeddings: the configuration says so, or both have the same bits."""
    import torch
    from safetensors import safe_open

    if json.loads((base / "config.json").read_text("utf-8")).get("tie_word_embeddings"):
        return True
    found = []
    for file in weight_files(base):
        with safe_open(file, "pt") as weights:
            found += [weights.get_tensor(name) for name in (HEAD, EMBEDDINGS) if name in weights.keys()]  # noqa: SIM118
    return len(found) == 2 and torch.equal(*found)


def saved_dtype(folder: Path) -> str | None:
    """The dtype that merging decided on for a merged folder's weights; None of any other folder."""
    if not (folder / "base.json").is_file():
        return None
    manifest = artifacts.read_manifest(folder)
    return manifest["dtype"] if manifest and manifest["stage"] == FOLDER else None


def _read_json(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text("utf-8"))
        if not isinstance(found, dict):
            raise ValueError("it is no JSON object")
        return found
    except (OSError, ValueError) as error:
        raise StageError(f"{path}: cannot be read ({error}); copy the adapter again") from error


def copy_rest(base: Path, target: Path) -> None:
    """Config, tokenizer, template and generation settings go along with the weights."""
    for file in sorted(base.iterdir()):
        if file.is_file() and not file.name.startswith(".") and file.suffix in (".json", ".jinja", ".txt", ".model"):
            shutil.copyfile(file, target / file.name)


def logits(
    model: ResolvedModel, texts: list[list[int]], adapter: Path | None = None, coefficient: float = 1.0
) -> Iterator[Any]:
    """Logits (tokens, vocabulary) of each text's token ids, computed in fp32, of a model or of model + adapter."""
    import torch
    from peft import PeftModel

    network: Any = load_model(model, "float32", CHECK_ATTENTION)
    if adapter is not None:
        network = PeftModel.from_pretrained(network, adapter).eval()
        for module in network.modules():
            if scale_layer := getattr(module, "scale_layer", None):
                scale_layer(coefficient)
    for ids in texts:
        with torch.inference_mode():
            yield network(input_ids=torch.tensor([ids], device=network.device)).logits[0].cpu()
    del network
    release_memory()


def largest_difference(expected: list[Any], found: Iterable[Any]) -> tuple[float, float]:
    """Largest absolute difference over all tokens and the vocabulary, and the standard deviation of those expected."""
    largest, spreads = 0.0, []
    for a, b in zip(expected, found, strict=True):
        largest = max(largest, (a - b).abs().max().item()) if (a - b).isfinite().all() else float("inf")
        spreads.append(a.std().item())
    return largest, (sum(s * s for s in spreads) / len(spreads)) ** 0.5


# ---------------------------------------------------------------- the command line


def main(words: Sequence[str]) -> None:
    """`key=value ...` -> `merge_adapter`. Refusal says what is wrong."""
    known = ("base", "adapter", "out", "coefficient", "dtype", "tolerance", "exactness", "revision", "prompts")
    given = {}
    for word in words:
        name, equals, value = word.partition("=")
        if name not in known or not equals:
            raise RecipeError(f"{word} is not key=value with a key of merging; {nearest(name, list(known))}")
        given[name] = value
    if missing := [name for name in known[:3] if not given.get(name)]:
        raise RecipeError(f"{missing[0]} is not set; add {missing[0]}=VALUE")
    settings = MergeConfig(dtype=given.get("dtype", "auto"))
    for name in ("coefficient", "tolerance", "exactness"):
        try:
            setattr(settings, name, float(given.get(name, getattr(settings, name))))
        except ValueError:
            raise RecipeError(f"{name}={given[name]} is not a number") from None
    faults = value_faults(Recipe(name="merge", merge=settings))
    if faults := [fault.removeprefix("merge.") for fault in faults if fault.startswith("merge.")]:
        raise RecipeError("\n".join(faults))
    prompts: Sequence[str] = NEUTRAL
    if "prompts" in given:
        try:
            lines = Path(given["prompts"]).read_text("utf-8").splitlines()
        except (OSError, ValueError) as error:
            raise RecipeError(f"prompts={given['prompts']}: cannot be read ({error})") from error
        prompts = [line for line in lines if line.strip()]
        if not prompts:
            raise RecipeError(f"prompts={given['prompts']}: holds no text; write one prompt a line")
    base = resolve_model(given["base"], given.get("revision"))
    merge_adapter(base, Path(given["adapter"]), Path(given["out"]), settings, prompts)


if __name__ == "__main__":
    if len(sys.argv) == 1 or {"-h", "--help"} & set(sys.argv):
        print(__doc__)
        raise SystemExit(0)
    try:
        main(sys.argv[1:])
    except artifacts.Refusal as error:
        print(f"error: {error}".replace("\n", "\nerror: "), file=sys.stderr)
        raise SystemExit(2) from None
