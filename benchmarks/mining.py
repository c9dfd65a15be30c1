"""Generation as mining and evaluation do it on transformers, against `model.generate` on padded batches.

    python benchmarks/mining.py                                # the demo's model, 60 items, two conditions
    python benchmarks/mining.py --recipe smollm2_135m --items 30 --rows 16

Variants: `stock` (prompts in the pool's order, padded batches of --rows, each decoded until its longest answer ends),
`sorted` (the same, by length), `drop` (ours: rows that have ended leave the batch), `share` (and shared beginnings are
computed once), `wave` (and batches of the recipe's own size, the default for mining and evaluation). Rounds are
interleaved; all are greedy, with the recipe's precision and cap. The last line says what refilling the batches of
`share` would be worth at most: their decoding steps against those of batches that are always full.
"""

import argparse
import statistics
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))


def main(given: argparse.Namespace) -> None:
    import torch

    from scope.conditions import Condition
    from scope.engines import Sampling
    from scope.engines.transformers import TransformersEngine
    from scope.models import resolve_model
    from scope.pool import stage
    from scope.prompts import user_prompt
    from scope.recipe import load

    recipe = load(given.recipe, [f"pool.n_train={given.items}"])
    items = stage.prepare(recipe).train
    prompts = [user_prompt(item, c) for item in items for c in (Condition.CLEAN, Condition.MISLEADING)]
    resolved = resolve_model(recipe.model.base, recipe.model.revision, recipe.model.mirror)
    cap = recipe.mining.max_new_tokens
    engine = TransformersEngine(resolved, recipe.model, recipe.engine)
    rendered = engine.render(prompts)
    engine.load()
    end, pad = sorted(engine.end_ids), engine.tokenizer.pad_token_id

    def stock(order) -> list[int]:
        lengths = []
        for start in range(0, len(order), given.rows):
            batch = [rendered[i] for i in order[start : start + given.rows]]
            width = max(map(len, batch))
            ids = torch.tensor([[pad] * (width - len(r)) + r for r in batch])
            mask = torch.tensor([[0] * (width - len(r)) + [1] * len(r) for r in batch])
            with torch.inference_mode():
                out = engine.model.generate(
                    input_ids=ids,
                    attention_mask=mask,
                    do_sample=False,
                    max_new_tokens=cap,
                    eos_token_id=end,
                    pad_token_id=pad,
                )
            for row in out[:, width:].tolist():
                lengths.append(next((n for n, token in enumerate(row, 1) if token in end), len(row)))
        return lengths

    def ours(share: bool, rows: int) -> list[int]:
        engine.engine.share_prefixes, engine.engine.batch_rows = share, rows
        how = Sampling(cap)
        lengths = []
        for batch in engine.plan(rendered, how):
            done = engine.generate([rendered[i] for i in batch], how)
            lengths += [len(one.token_ids) + (one.finish_reason == "stop") for one in done]
        return lengths

    whole = recipe.engine.batch_rows
    by_length = sorted(range(len(rendered)), key=lambda i: -len(rendered[i]))
    variants = {
        "stock": lambda: stock(list(range(len(rendered)))),
        "sorted": lambda: stock(by_length),
        "drop": lambda: ours(False, given.rows),
        "share": lambda: ours(True, given.rows),
        "wave": lambda: ours(True, whole),
    }
    seconds: dict[str, list[float]] = {name: [] for name in variants}
    lengths: dict[str, list[int]] = {}
    for _ in range(given.rounds):
        for name, run in variants.items():
            began = time.perf_counter()
            lengths[name] = run()
            seconds[name].append(time.perf_counter() - began)
    print(
        f"{recipe.model.base}, {engine.dtype}: {len(prompts)} prompts of {sum(map(len, rendered)) / len(prompts):.0f} "
        f"tokens, {given.rows} rows a batch, at most {cap} new tokens, {given.rounds} rounds"
    )
    first = statistics.median(seconds["stock"])
    print(f"{'variant':8} {'seconds':>8} {'tokens/s':>9} {'x stock':>8}")
    for name, times in seconds.items():
        middle = statistics.median(times)
        print(f"{name:8} {middle:8.1f} {sum(lengths[name]) / middle:9.1f} {first / middle:8.2f}")
    batches = [lengths["share"][start : start + given.rows] for start in range(0, len(prompts), given.rows)]
    steps = sum(map(max, batches))
    print(f"refilling: {steps} steps, at least {sum(lengths['share']) / given.rows:.0f} if batches were always full")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--recipe", default="quickstart")
    parser.add_argument("--items", type=int, default=60)
    parser.add_argument("--rows", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=2)
    main(parser.parse_args())
