"""What evaluation costs beside generating: python benchmarks/evaluation.py [overhead] [rescore] [bootstrap]

overhead: the stage on prompts that no store holds, against the bare engine on the same batches, interleaved.
rescore: `evaluate.py rescore=true` on 4,000 kept answers, as a command and within a process.
bootstrap: 10,000 replicates over 46,032 responses of six systems (959 items in clusters, eight cells), against
scipy.stats.bootstrap on one of the means.
"""

import argparse
import contextlib
import io
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))


def timed(function, *arguments):
    began = time.perf_counter()
    function(*arguments)
    return time.perf_counter() - began


def overhead(rounds: int) -> None:
    from scope.engines import Sampling, opened
    from scope.evaluation import evaluate
    from scope.evaluation.suites import SUITES
    from scope.models import resolve_model
    from scope.recipe import load

    def recipe(out: str):
        settings = ["pool.n_evaluation=100", "systems=[base]", "evaluation.max_new_tokens=32", f"output_dir={out}"]
        return load("smollm2_135m", settings)

    def stage() -> None:
        with tempfile.TemporaryDirectory() as out, contextlib.redirect_stdout(io.StringIO()):
            evaluate(recipe(out))

    def engine() -> None:
        with tempfile.TemporaryDirectory() as out:
            plain = recipe(out)
            suite = SUITES["mist"]
            items = suite.load(plain).items
            base = resolve_model(plain.model.base, plain.model.revision, plain.model.mirror)
            how = Sampling(plain.evaluation.max_new_tokens)
            with opened(base, plain.model, plain.engine) as bare:
                rendered = bare.render([suite.prompt(item, cell) for item in items for cell in suite.cells])
                for batch in bare.plan(rendered, how):
                    bare.generate([rendered[i] for i in batch], how)

    engine()  # warms the page cache and imports
    pairs = [(timed(engine), timed(stage)) for _ in range(rounds)]
    bare, whole = (statistics.median(column) for column in zip(*pairs, strict=True))
    print(
        f"overhead: 400 prompts: engine {bare:.1f} s, stage {whole:.1f} s, ratio {whole / bare:.3f} ({rounds} rounds)"
    )


def rescore() -> None:
    from scope.evaluation.stage import Planned, folder_of, write
    from scope.evaluation.stage import rescore as again
    from scope.evaluation.suites import SUITES
    from scope.pool import build_authored
    from scope.recipe import load

    random = np.random.default_rng(0)
    suite, items = SUITES["mist"], build_authored(1000, 0, "eval")
    with tempfile.TemporaryDirectory() as out:
        settings = [f"output_dir={out}", "systems=[base]"]
        recipe = load("smollm2_135m", settings)
        rows = [
            {
                **{"system": "base", "item_id": item.id, "cell": cell, "request_id": "r", "prompt_hash": "p"},
                "text": f"The final answer is {item.gold if random.random() < 0.7 else item.wrong}.",
                **{"reasoning": "", "finish_reason": "stop", "error": "", "n_prompt_tokens": 90, "n_tokens": 20},
                **{"parse_status": "ok", "value": "?", "label": "wrong", "engine": "e", "seconds": 0.1},
            }
            for item in items
            for cell in suite.cells
        ]
        with contextlib.redirect_stdout(io.StringIO()):
            key = {"evaluation": recipe.part("evaluation")["evaluation"], "seed": recipe.seed}
            write(recipe, Planned(suite, folder_of(recipe, "mist"), items, key, {}, rows))
            inside = timed(again, recipe)
        command = [sys.executable, "evaluate.py", "recipe=smollm2_135m", *settings, "rescore=true"]
        alone = timed(lambda: subprocess.run(command, cwd=ROOT, check=True, capture_output=True))
    print(f"rescore: {len(rows)} rows: {inside:.2f} s within a process, {alone:.2f} s as a command (with slices)")


def bootstrap() -> None:
    from scipy.stats import bootstrap as scipy_bootstrap

    from scope.evaluation.bootstrap import bootstrap_all
    from scope.evaluation.paired import accuracy_ratio, conditional_ratio

    random = np.random.default_rng(0)
    systems, items, cells = 6, 959, 8
    right = random.random((systems, cells, items)) < 0.7
    clusters = random.integers(150, size=items)
    rates = {}
    for s in range(systems):
        for c in range(cells):
            rates[f"{s} accuracy {c}"] = accuracy_ratio(right[s, c])
            rates[f"{s} lost {c}"] = conditional_ratio(right[s, 0], ~right[s, c])
    for name in [name for name in rates if not name.startswith("0")]:
        rates[f"{name} - 0"] = rates[name] - rates[f"0{name[1:]}"]
    ours = timed(lambda: bootstrap_all(rates, clusters, 10_000))
    whole = timed(lambda: bootstrap_all(rates, None, 10_000))
    one = right[0, 0].astype(float)
    peer = timed(
        lambda: scipy_bootstrap((one,), np.mean, n_resamples=10_000, method="percentile", vectorized=True, batch=1000)
    )
    alone = timed(lambda: bootstrap_all({"accuracy": accuracy_ratio(right[0, 0])}, None, 10_000))
    print(
        f"bootstrap: 10,000 replicates of {right.size} responses, {len(rates)} rates: clusters {ours:.2f} s, items "
        f"{whole:.2f} s; one mean: scipy {peer:.2f} s, ours {alone:.2f} s, ratio {peer / alone:.1f}"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="*", default=["overhead", "rescore", "bootstrap"])
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    for name in given.what:
        overhead(given.rounds) if name == "overhead" else {"rescore": rescore, "bootstrap": bootstrap}[name]()
