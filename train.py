"""Train a LoRA adapter on the mined quartets with DPO, then merge it into the base model."""

from scope import recipe


def stage(resolved: recipe.Recipe) -> None:
    from scope.training import train

    train(resolved)


if __name__ == "__main__":
    recipe.main(stage, __doc__)
