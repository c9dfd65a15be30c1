"""Scoring the letters of MisleadQA's cells: python benchmarks/choices.py [--model NAME] [--items N] [--rounds N] FILE

FILE: a release folder or a file of items (`evaluation.items.misleadqa`). Three ways on the same prompts, interleaved:

packed: as the suite does it, an item's eight cells and five letters in one forward that computes shared tokens once.
cells: eight forwards an item, one a cell; the letters are read off the last position.
choices: forty forwards an item, one a cell and letter, as a scorer of continuations without a shared prefix does it.

Prints the largest difference of the letters' renormalised probabilities, the tokens that each computes, and the
ratios of the times (medians over the rounds) to the packed way.
"""

import argparse
import statistics
import sys
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))


def main(name: str, source: str, items: int, rounds: int) -> None:
    import torch

    from scope import trie
    from scope.engines import Choices
    from scope.engines.transformers import TransformersEngine
    from scope.evaluation.misleadqa.items import ordered, read_items
    from scope.evaluation.misleadqa.prompts import LETTERS
    from scope.evaluation.suites import SUITES
    from scope.models import resolve_model
    from scope.schema import EngineConfig, ModelConfig

    engine = TransformersEngine(resolve_model(name), ModelConfig(base=name), EngineConfig())
    suite, how = SUITES["misleadqa"], Choices(LETTERS)
    chosen = ordered(item for item in read_items(source) if item.split == "main")[:items]
    rendered = engine.render([suite.prompt(item, cell) for item in chosen for cell in suite.cells])
    letters = [ids[0] for ids in engine.option_ids(how)]
    engine.load()
    device = engine.model.device

    def packed() -> np.ndarray:
        scores = np.empty((len(rendered), len(LETTERS)))
        for start in range(0, len(rendered), len(suite.cells)):
            place = range(start, start + len(suite.cells))
            scores[place] = [out.log_probs for out in engine.score_choices([rendered[i] for i in place], how)]
        return scores

    def cells() -> np.ndarray:
        with torch.inference_mode():
            return np.array([last(ids)[letters].tolist() for ids in rendered])

    def choices() -> np.ndarray:
        """The log-probability of the last token of prompt and letter, each a row of its own."""
        with torch.inference_mode():
            return np.array([[second_to_last([*ids, k])[k].item() for k in letters] for ids in rendered])

    def last(ids: list[int]) -> torch.Tensor:
        return (
            engine.model(input_ids=torch.tensor([ids], device=device), logits_to_keep=1).logits[0, -1].log_softmax(-1)
        )

    def second_to_last(ids: list[int]) -> torch.Tensor:
        return engine.model(input_ids=torch.tensor([ids], device=device), logits_to_keep=2).logits[0, 0].log_softmax(-1)

    ways = {"packed": packed, "cells": cells, "choices": choices}
    scores = {way: score() for way, score in ways.items()}  # also warms up
    shares = {way: np.exp(s) / np.exp(s).sum(1, keepdims=True) for way, s in scores.items()}
    seconds: dict[str, list[float]] = {way: [] for way in ways}
    for _ in range(rounds):
        for way, score in ways.items():
            began = time.perf_counter()
            score()
            seconds[way].append(time.perf_counter() - began)
    n = len(suite.cells)
    by_item = [rendered[start : start + n] for start in range(0, len(rendered), n)]
    tokens = {
        "packed": sum(len(trie.pack([[*ids, k] for ids in own for k in letters]).tokens) for own in by_item),
        "cells": sum(map(len, rendered)),
        "choices": sum(len(letters) * (len(ids) + 1) for ids in rendered),
    }
    took = {way: statistics.median(column) for way, column in seconds.items()}
    print(f"{name}, {len(chosen)} items, {len(rendered)} prompts, {rounds} rounds, {device}")
    for way in ways:
        off = float(np.abs(shares[way] - shares["packed"]).max())
        print(
            f"{way:8} {tokens[way]:9,d} tokens ({tokens[way] / tokens['packed']:5.2f} x packed)  {took[way]:8.2f} s "
            f"({took[way] / took['packed']:5.2f} x packed)  probabilities differ by at most {off:.1e}"
        )
    same = all(np.array_equal(scores[way].argmax(1), scores["packed"].argmax(1)) for way in ways)
    print(f"the same letter everywhere: {same}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", metavar="FILE")
    parser.add_argument("--model", default="HuggingFaceTB/SmolLM2-135M-Instruct")
    parser.add_argument("--items", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    main(given.model, given.source, given.items, given.rounds)
