"""Evaluate base and trained model on held-out items under the four matched conditions."""

from scope import launch
from scope.recipe import Recipe


def stage(recipe: Recipe) -> None:
    from scope.evaluation import evaluate

    evaluate(recipe)


if __name__ == "__main__":
    launch.main(stage, __doc__)
