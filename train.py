"""Train a LoRA adapter on the mined quartets with DPO, then merge it into the base model."""

from scope import launch
from scope.recipe import Recipe


def stage(recipe: Recipe) -> None:
    from scope.training import train

    train(recipe)


if __name__ == "__main__":
    launch.main(stage, __doc__)
