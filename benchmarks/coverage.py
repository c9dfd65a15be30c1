"""How often cluster-bootstrap intervals hold the truth: python benchmarks/coverage.py [--samples N] [--clusters N]

Simulated diagnostics like MisleadQA's main split: clusters of geometric size, a random effect a cluster, two systems
whose strata B and A and whose lures follow from it. The truth of each metric is its value over 400,000 clusters. Of
many samples it counts how often the interval holds the truth, by clusters and, for comparison, by items, which takes
the items of a cluster for independent. A nominal 95 % interval of N samples is within 2 sd of its level by chance.
"""

import argparse
import sys
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))


def drawn(rng, clusters):
    """(cluster of each item, labels by system and cell)."""
    sizes = rng.geometric(0.4, clusters)
    cluster = np.repeat(np.arange(clusters), sizes)
    known, misled = rng.normal(0, 1, clusters)[cluster], rng.normal(0, 1.2, clusters)[cluster]
    systems = []
    for skill in (0.0, 0.4):
        labels = {"none": np.where(rng.normal(size=len(cluster)) + skill + known > 0, "gold", "other")}
        labels["g"] = np.where(rng.random(len(cluster)) < 0.97, "gold", "other")
        for cell, threshold in (("s", 0.9), ("f", -0.9), ("gs", 2.6), ("sg", 2.2), ("gf", 2.0), ("fg", 0.5)):
            lured = rng.normal(size=len(cluster)) + misled - skill > threshold
            labels[cell] = np.where(lured, "lure", "gold")
        systems.append(labels)
    return cluster, systems


def rates(systems):
    """Metric -> rate, the mean over the systems."""
    from scope.evaluation.paired import mean_of
    from scope.evaluation.suites import SUITES

    own = []
    for labels in systems:
        rows = {cell: [{"label": label} for label in column] for cell, column in labels.items()}
        own.append(SUITES["misleadqa"].rates([None] * len(labels["none"]), rows))
    return {metric: mean_of([one[metric] for one in own]) for metric in own[0]}


def main(samples: int, clusters: int, replicates: int, truth_clusters: int) -> None:
    from scope.evaluation.bootstrap import bootstrap_all
    from scope.evaluation.suites import SUITES

    rng = np.random.default_rng(2027)
    truth = {metric: rate.estimate() for metric, rate in rates(drawn(rng, truth_clusters)[1]).items()}
    suite = SUITES["misleadqa"]
    levels = dict.fromkeys(suite.primary, 0.975)
    held = {by: dict.fromkeys(truth, 0) for by in ("clusters", "items")}
    for sample in range(samples):
        cluster, systems = drawn(rng, clusters)
        made = rates(systems)
        for by, labels in (("clusters", cluster), ("items", None)):
            found = bootstrap_all(made, labels, replicates, sample, levels=levels)
            for metric, interval in found.items():
                held[by][metric] += interval.low <= truth[metric] <= interval.high
    print(
        f"{samples} samples of {clusters} clusters, {replicates} replicates; per cent of intervals that hold the truth"
    )
    for metric, value in truth.items():
        level = levels.get(metric, 0.95)
        chance = 200 * (level * (1 - level) / samples) ** 0.5
        shown = ", ".join(f"by {by} {100 * count[metric] / samples:.1f}" for by, count in held.items())
        print(f"{suite.headings[metric]:12} true {100 * value:6.2f}  nominal {100 * level:.1f} ± {chance:.1f}: {shown}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=1000)
    parser.add_argument("--clusters", type=int, default=400)
    parser.add_argument("--replicates", type=int, default=1000)
    parser.add_argument("--truth", type=int, default=400_000, help="clusters that the truth is counted over")
    given = parser.parse_args()
    main(given.samples, given.clusters, given.replicates, given.truth)
