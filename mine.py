"""Mine a base model's failures under misleading context into preference quartets."""

from scope import recipe


def stage(resolved: recipe.Recipe) -> None:
    from scope.mining import mine

    mine(resolved)


if __name__ == "__main__":
    recipe.main(stage, __doc__)
