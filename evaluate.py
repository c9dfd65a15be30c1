"""Evaluate base and trained model on held-out items under the four matched conditions."""

from scope import recipe


def stage(resolved: recipe.Recipe) -> None:
    from scope.evaluation import evaluate

    evaluate(resolved)


if __name__ == "__main__":
    recipe.main(stage, __doc__)
