"""The command line of every entry point: `recipe=NAME key=value ...`, one recipe or a sweep.

Hydra composes, this module runs: every job of a sweep is checked before the first one starts.
"""

import logging
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from scope.artifacts import Refusal
from scope.recipe import (
    RECIPES,
    Recipe,
    RecipeError,
    as_refusals,
    checked_override,
    following_base,
    invocation,
    leaves,
    load,
    named,
    names,
    register_schema,
    typed,
)

USAGE = """\
{doc}

usage: {launcher} {entry} recipe=NAME [key=value ...]

  recipe=NAME      one of: {names}
  key=value        any key of the recipe, e.g. trainer.max_steps=10, or a group, e.g. pairs=no_clean
  dry_run=true     check everything that needs no model, print it, and stop
  --cfg job        print the resolved recipe
  -m key=a,b       run every combination, one after the other
  --help           with recipe=NAME: also every key and what it means
"""


def main(
    stage: Callable[[Recipe], Any],
    doc: str | None,
    arguments: Sequence[str] | None = None,
    program: Sequence[str] | None = None,
) -> None:
    """Run one stage from the command line; a refusal is printed as sentences and exits with 2.

    arguments: what follows the program's name, by default as given. program: what Python runs, by
    default the script.
    """
    logging.basicConfig(level=logging.WARNING, format="%(message)s")
    logging.getLogger("scope").setLevel(logging.INFO)
    arguments = sys.argv[1:] if arguments is None else arguments
    program = program or [sys.argv[0]]
    entry = " ".join([Path(program[0]).name, *program[1:]])
    chosen = [a.partition("=")[2] for a in arguments if a.startswith("recipe=")]
    rest = [a for a in arguments if not a.startswith("recipe=")]
    try:
        if "--help" in rest or "-h" in rest:
            launcher = "accelerate launch" if entry == "train.py" else "python"
            described = list(leaves(load(named(chosen[0])))) if chosen else []
            print(USAGE.format(doc=(doc or "").strip(), launcher=launcher, entry=entry, names=", ".join(names())))
            for key, f, value in described:
                print(f"  {key:38} {value!s:28} {f.metadata['help']}")
            return
        if not chosen:
            raise RecipeError(f"no recipe is named; add recipe=NAME with one of {', '.join(names())}")
        if len(chosen) > 1 or "," in chosen[0]:
            raise RecipeError(f"recipe={','.join(chosen)} names several recipes; run one at a time")
        name = named(chosen[0])
        flags = [a for a in rest if a.startswith("-")]
        # `--cfg job` and its like take the next word with them.
        words = iter(rest)
        ordered_flags, overrides = [], []
        for word in words:
            if word.startswith("-"):
                ordered_flags.append(word)
                if word in ("--cfg", "-c", "--package", "-p", "--info", "-i"):
                    ordered_flags.append(next(words, ""))
            else:
                overrides.append(word)
        multirun = any(f in ("-m", "--multirun") for f in flags)
        if multirun and int(os.environ.get("WORLD_SIZE", "1")) > 1:
            raise RecipeError(
                "-m runs one job after the other and cannot be launched on several processes; "
                "use python, or launch one job at a time"
            )
        given = following_base(name, [checked_override(override) for override in overrides])
        _run_hydra(stage, name, program, ordered_flags, given)
    except Refusal as error:
        print(f"error: {error}".replace("\n", "\nerror: "), file=sys.stderr)
        raise SystemExit(2) from None


def _run_hydra(
    stage: Callable[[Recipe], Any], name: str, program: Sequence[str], flags: list[str], overrides: list[str]
) -> None:
    import hydra

    register_schema()
    os.environ["HYDRA_FULL_ERROR"] = "1"
    jobs: list[tuple[list[str], Any]] = []

    @hydra.main(version_base=None, config_path=str(RECIPES), config_name=name)
    def job(config: Any) -> None:
        from hydra.core.hydra_config import HydraConfig

        jobs.append((list(HydraConfig.get().overrides.task), config))

    with tempfile.TemporaryDirectory() as scratch, as_refusals():
        quiet = ["hydra.run.dir=.", "hydra.output_subdir=null", f"hydra.sweep.dir={scratch}", "hydra.sweep.subdir=."]
        quiet += ["hydra/job_logging=none", "hydra/hydra_logging=none"]
        sys.argv = [program[0], *flags, f"--config-name={name}", *overrides, *quiet]
        job()
    # Hydra only composes: every job of a sweep is checked before the first one runs.
    recipes = [(task, typed(config, task)) for task, config in jobs]
    if len(recipes) > 1 and any(recipe.push_to for _, recipe in recipes):
        raise RecipeError("push_to names one place for all jobs of a sweep; publish them one by one afterwards")
    if len(recipes) == 1:
        task, recipe = recipes[0]
        invocation[:] = [f"recipe={name}", *(o for o in task if not o.startswith("dry_run="))]
        stage(recipe)
        return
    # A sweep's jobs have a process each, so that none inherits another's memory.
    failed = [t for t, _ in recipes if subprocess.run([sys.executable, *program, f"recipe={name}", *t]).returncode]
    if failed:
        raise RecipeError(f"{len(failed)} of {len(jobs)} jobs failed: " + "; ".join(" ".join(task) for task in failed))
