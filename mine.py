"""Mine a base model's failures under misleading context into preference quartets."""

from scope import launch
from scope.recipe import Recipe


def stage(recipe: Recipe) -> None:
    from scope.mining import mine

    mine(recipe)


if __name__ == "__main__":
    launch.main(stage, __doc__)
