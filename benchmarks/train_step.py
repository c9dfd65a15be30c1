"""DPO steps per second: this project against stock TRL, on the same rows, in one run.

    python benchmarks/train_step.py --run runs/quickstart                     # a run's mined quartets, its own base
    python benchmarks/train_step.py --run runs/quickstart --model HuggingFaceTB/SmolLM2-135M-Instruct
    python benchmarks/train_step.py --run runs/quickstart --response-tokens 20,100,300,600
    python benchmarks/train_step.py --run runs/quickstart --recipe scope_qwen3_4b --shape qwen3-4b  # on a GPU

Variants: `stock` (TRL's DPOTrainer as a user runs it: padded rows, live reference), `stock-precomputed` (its
precompute_ref_log_probs), `plain` (ours, padded rows, kept reference), `alone` (ours with a layout for each sequence:
no padding and logits of completions only, but no shared prefix), `trie` (ours, packed). So stock to precomputed is
what a kept reference is worth, plain to alone padding and head, alone to trie the shared prefixes. Each is a process of
its own, so that its peak memory is its own; rounds are interleaved, and the first step of a process is not counted. All
take the same rows in the same order, the same LoRA, the same dtype and the same pairs a micro-batch.
--response-tokens repeats the comparison with every response replaced by that many random tokens of its own. --shape
takes random weights of a known model's shape instead of --model's own. `TFLOP/s` counts matrix products only: two for
each weight and position forward, as many backward (the base is frozen) and again where activations are recomputed.
"""

import argparse
import json
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

VARIANTS = ("stock", "stock-precomputed", "plain", "alone", "trie")


SHAPES = {
    "qwen3-4b": {
        **{"hidden_size": 2560, "intermediate_size": 9728, "num_hidden_layers": 36, "num_attention_heads": 32},
        **{"num_key_value_heads": 8, "head_dim": 128, "tie_word_embeddings": True, "max_position_embeddings": 40960},
    },
    "tiny": {
        **{"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4},
        **{"num_key_value_heads": 2, "head_dim": 16, "tie_word_embeddings": True},
    },
}


def shaped(name: str, tokenizer_of: str, folder: Path) -> str:
    """A folder with random weights of a shape, in bf16, and another model's tokenizer."""
    import torch
    from transformers import Qwen3Config, Qwen3ForCausalLM

    from scope.models import load_tokenizer, resolve_model

    tokenizer = load_tokenizer(resolve_model(tokenizer_of))
    config = Qwen3Config(vocab_size=151936, eos_token_id=tokenizer.eos_token_id, bos_token_id=None, **SHAPES[name])
    torch.manual_seed(0)
    with torch.device("cuda" if torch.cuda.is_available() else "cpu"):
        model = Qwen3ForCausalLM._from_config(config, dtype=torch.bfloat16)
    model.cpu().save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)


def recipe_of(given, out):
    import torch

    from scope.recipe import load

    steps = [f"trainer.max_steps={given.steps}", f"trainer.global_batch={given.pairs}"]
    kind = "trie" if given.variant in ("alone", "trie") else "none"
    settings = [
        f"trainer.pack_tokens={given.pack_tokens}",
        f"model.base={given.model}",
        f"trainer.packing={kind}",
        f"trainer.device_batch={given.pairs}",
    ]
    if kind == "trie" and torch.cuda.is_available():
        settings.append("model.attn_implementation=flex_attention")
    return load(given.recipe, [*settings, *steps, "trainer.reference=cached", f"output_dir={out}"])


def measure(given) -> dict:
    """One variant's steps, in this process."""
    import datasets
    import torch
    import transformers
    from torch.utils.data import SequentialSampler
    from trl import DPOConfig, DPOTrainer

    from scope.items import load_quartets
    from scope.models import load_tokenizer, resolve_model
    from scope.training import dpo, setup
    from scope.training.batch import batch_arithmetic
    from scope.training.rows import planned, prepare

    transformers.utils.logging.set_verbosity_error()
    with tempfile.TemporaryDirectory() as out:
        recipe = recipe_of(given, out)
        resolved = resolve_model(recipe.model.base, recipe.model.revision, recipe.model.mirror)
        tokenizer = load_tokenizer(resolved)
        batch = batch_arithmetic(recipe, 1)
        prepared = prepare(recipe, tokenizer, load_quartets(Path(given.run) / "mine" / "quartets.jsonl"))
        if given.response_tokens:
            _lengthen(prepared, given.response_tokens, len(tokenizer))
        rows, _ = planned(recipe, prepared, batch)
        transformers.set_seed(recipe.seed)
        began = time.perf_counter()
        if given.variant.startswith("stock"):

            class InOrder(DPOTrainer):
                def _get_train_sampler(self, train_dataset=None):
                    return SequentialSampler(self.train_dataset if train_dataset is None else train_dataset)

            arguments = setup.arguments(recipe, batch, Path(out) / "train")
            texts = [
                {
                    name: tokenizer.decode(row[f"{name}_ids"][: None if name == "prompt" else -1])
                    for name in ("prompt", "chosen", "rejected")
                }
                for row in rows
            ]
            trainer = InOrder(
                model=setup.base_model(recipe, resolved),
                args=DPOConfig(
                    **arguments,
                    beta=recipe.trainer.beta,
                    max_length=None,
                    precompute_ref_log_probs=given.variant == "stock-precomputed",
                ),
                train_dataset=datasets.Dataset.from_list(texts),
                processing_class=tokenizer,
                peft_config=setup.lora(recipe),
            )
        else:
            dataset = datasets.Dataset.from_list(rows)
            folder = Path(out) / "train"
            trainer = dpo.make_trainer(recipe, resolved, tokenizer, dataset, batch, folder, prepared.prompts())
            if given.variant == "alone":
                trainer.pack_tokens = 1
        clock = _Clock()
        trainer.add_callback(clock)
        trainer.train()
        losses = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
        both = [r["prompt_ids"] + r[name] for r in rows for name in ("chosen_ids", "rejected_ids")]
        steps = [both[i : i + 2 * given.pairs] for i in range(0, len(both), 2 * given.pairs)]
        padded = sum(len(s) * max(map(len, s)) for s in steps)
        computed = {"alone": sum(map(len, both))}.get(given.variant, padded)
        if given.variant == "trie":
            shared = [entry["shared_share"] for entry in trainer.state.log_history if "shared_share" in entry]
            computed = sum((1 - share) * sum(map(len, step)) for share, step in zip(shared, steps, strict=True))
        reference = padded if given.variant == "stock" else 0
        network = trainer.model.get_base_model()
        weights = sum(p.numel() for p in network.get_decoder().layers.parameters())
        passes = 6 if recipe.trainer.gradient_checkpointing else 4
        cuda = torch.cuda.is_available()
        peak = torch.cuda.max_memory_allocated() if cuda else 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return {
            "variant": given.variant,
            "step_seconds": clock.seconds[1:],
            "before_training_seconds": clock.first - began,
            "tokens_per_step": (computed + reference) / len(steps),
            "tera_per_step": weights * (passes * computed + 2 * reference) / len(steps) / 1e12,
            "peak_gb": peak / 1e9,
            "losses": losses,
        }


class _Clock:
    """Seconds of each optimizer step."""

    def __new__(cls):
        from transformers import TrainerCallback

        class Clock(TrainerCallback):
            def __init__(self):
                self.seconds, self.first, self._began = [], None, None

            def on_step_begin(self, *_, **__):
                self._began = time.perf_counter()
                self.first = self.first or self._began

            def on_step_end(self, *_, **__):
                self.seconds.append(time.perf_counter() - self._began)

        return Clock()


def _lengthen(prepared, n, vocabulary):
    """Give every quartet a chosen and a rejected response of n random tokens of its own, their end token kept."""
    draw = random.Random(0)
    for quartet in prepared.quartets:
        pair = {
            name: [draw.randrange(100, vocabulary // 2) for _ in range(n)] for name in ("chosen_ids", "rejected_ids")
        }
        for row in quartet.values():
            for name, tokens in pair.items():
                row[name] = [*tokens, row[name][-1]]


def compare(given) -> None:
    def one(variant: str) -> dict:
        command = [sys.executable, __file__, "--worker", "--variant", variant, *_arguments(given)]
        done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
        if done.returncode:
            raise SystemExit(done.stderr[-3000:])
        found = json.loads(done.stdout.splitlines()[-1])
        print(
            f"  {variant}: seconds a step {[round(s, 2) for s in found['step_seconds']]}", file=sys.stderr, flush=True
        )
        return found

    found: dict[str, list[dict]] = {variant: [] for variant in given.variants}
    for _ in range(given.rounds):
        for variant in given.variants:
            found[variant].append(one(variant))
    speed = {
        v: given.pairs / statistics.median([s for run in runs for s in run["step_seconds"]])
        for v, runs in found.items()
    }
    length = f", responses of {given.response_tokens} tokens" if given.response_tokens else ""
    print(f"{given.model}, {given.pairs} pairs a step{length}, {given.rounds} rounds of {given.steps} steps")
    headings = f"{'pairs/s':>8} {'tokens/step':>12} {'peak GB':>8} {'before, s':>10} {'TFLOP/s':>8} {'x stock':>8}"
    print(f"{'variant':18} {headings}  last loss")
    for variant, runs in found.items():
        peak = max(run["peak_gb"] for run in runs)
        before = statistics.median(run["before_training_seconds"] for run in runs)
        rate = runs[0]["tera_per_step"] * speed[variant] / given.pairs
        ratio = f"{speed[variant] / speed['stock']:8.2f}" if "stock" in speed else " " * 8
        figures = f"{speed[variant]:8.3f} {runs[0]['tokens_per_step']:12.0f} {peak:8.2f} {before:10.1f} {rate:8.3f}"
        print(f"{variant:18} {figures} {ratio}  {runs[0]['losses'][-1]:.5f}")


def _arguments(given) -> list[str]:
    names = ("run", "recipe", "model", "pairs", "steps", "response_tokens", "pack_tokens")
    return [part for name in names for part in (f"--{name.replace('_', '-')}", str(getattr(given, name)))]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", default="runs/quickstart", help="folder of a run whose quartets are mined")
    parser.add_argument("--recipe", default="quickstart", help="recipe with the LoRA and the precision")
    parser.add_argument("--model", default="Qwen/Qwen2.5-Coder-0.5B-Instruct")
    parser.add_argument("--shape", choices=SHAPES)
    parser.add_argument("--pairs", type=int, default=8, help="pairs a step, one micro-batch")
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--response-tokens", default="0", help="one length, or several with commas; 0: the real ones")
    parser.add_argument("--pack-tokens", type=int, default=1024, help="most positions of a layout")
    parser.add_argument("--variants", default=",".join(VARIANTS))
    parser.add_argument("--variant", choices=VARIANTS)
    parser.add_argument("--worker", action="store_true")
    given = parser.parse_args()
    if given.worker:
        given.response_tokens = int(given.response_tokens)
        print(json.dumps(measure(given)))
    else:
        given.variants = given.variants.split(",")
        with tempfile.TemporaryDirectory() as folder:
            if given.shape:
                given.model = shaped(given.shape, given.model, Path(folder) / given.shape)
            for length in given.response_tokens.split(","):
                compare(argparse.Namespace(**{**vars(given), "response_tokens": int(length)}))
