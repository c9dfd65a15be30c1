"""Do two revisions train alike? Runs the first steps of a recipe in both, on the same quartets, side by side.

    python benchmarks/compare_losses.py main HEAD
    python benchmarks/compare_losses.py v0.1 HEAD --steps 4 recipe=smollm2_135m pool.n_train=24
    python benchmarks/compare_losses.py v0.1 HEAD --run runs/quickstart

Each revision is checked out into a temporary worktree and run by its own command lines. The first mines (or
takes what --run has), the second starts from a copy of that. Where the second would mine other quartets, that
is what is reported, for then its losses are not comparable. Exits with 1 if the losses differ beyond --tolerance.
"""

import argparse
import contextlib
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


class Failed(SystemExit):
    """A command of one of the revisions ended with an error."""


@contextlib.contextmanager
def worktree(revision: str, folder: Path) -> Iterator[Path]:
    """A checkout of the revision that is gone afterwards."""
    git = ["git", "-C", str(ROOT), "worktree"]
    subprocess.run([*git, "add", "--detach", "--quiet", str(folder), revision], check=True)
    try:
        yield folder
    finally:
        subprocess.run([*git, "remove", "--force", str(folder)], check=True)


def run(checkout: Path, entry: str, out: Path, arguments: list[str]) -> None:
    command = [sys.executable, entry, *arguments, f"output_dir={out}"]
    print(f"{checkout.name}: {' '.join(command[1:])}", file=sys.stderr)
    # The checkout's own package comes first on the path of a script it runs.
    if subprocess.run(command, cwd=checkout, stdout=sys.stderr).returncode:
        raise Failed(f"{entry} fails in {checkout}; what it printed stands above")


def losses(out: Path) -> list[float]:
    """The logged losses of the one arm trained below a run's folder."""
    (log,) = out.glob("*/train/log.jsonl")
    entries = [json.loads(line) for line in log.read_text("utf-8").splitlines()]
    return [entry["loss"] for entry in entries if "loss" in entry]


def compare(first: str, second: str, overrides: list[str], steps: int, start: Path | None) -> list[tuple[float, float]]:
    """(loss of the first, loss of the second) for each step."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        outs = folder / "out_a", folder / "out_b"
        training = [*overrides, f"trainer.max_steps={steps}"]
        with worktree(first, folder / "a") as a, worktree(second, folder / "b") as b:
            for name in ("pool", "mine", "store") if start else ():
                shutil.copytree(start / name, outs[0] / name)
            run(a, "mine.py", outs[0], overrides)
            shutil.copytree(outs[0], outs[1])
            kept = (outs[1] / "mine" / "quartets.jsonl").read_bytes()
            try:
                run(b, "mine.py", outs[1], overrides)
            except Failed:
                # It refuses the first's quartets; its own may still be the same ones.
                for name in ("pool", "mine"):
                    shutil.rmtree(outs[1] / name)
                run(b, "mine.py", outs[1], overrides)
            if (outs[1] / "mine" / "quartets.jsonl").read_bytes() != kept:
                raise SystemExit(f"{first} and {second} mine different quartets; their losses cannot be compared")
            run(a, "train.py", outs[0], training)
            run(b, "train.py", outs[1], training)
        return list(zip(losses(outs[0]), losses(outs[1]), strict=True))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("first", help="git revision")
    parser.add_argument("second", help="git revision")
    parser.add_argument("overrides", nargs="*", help="recipe=NAME and key=value, as for train.py")
    parser.add_argument("--steps", type=int, default=6, help="optimizer steps")
    parser.add_argument("--run", type=Path, help="folder of a run whose quartets are taken")
    parser.add_argument("--tolerance", type=float, default=1e-4, help="largest difference that passes")
    options = parser.parse_intermixed_args()
    overrides = options.overrides
    if not any(word.startswith("recipe=") for word in overrides):
        overrides = ["recipe=quickstart", *overrides]
    pairs = compare(options.first, options.second, overrides, options.steps, options.run)
    print(f"step  {options.first[:12]:>12}  {options.second[:12]:>12}  difference")
    for step, (a, b) in enumerate(pairs, 1):
        print(f"{step:4}  {a:12.6f}  {b:12.6f}  {abs(a - b):.1e}")
    largest = max(abs(a - b) for a, b in pairs)
    print(f"largest difference {largest:.1e} ({'within' if largest <= options.tolerance else 'beyond'} tolerance)")
    sys.exit(largest > options.tolerance)


if __name__ == "__main__":
    main()
