"""Trainer callbacks: checkpoints that are whole or not there, and a log that survives."""

import shutil
from collections.abc import Collection
from pathlib import Path
from typing import Any

from transformers import ProgressCallback, TrainerCallback

from scope import artifacts

MARK = "complete.json"


def checkpoints(folder: Path) -> dict[int, Path]:
    """Step -> complete checkpoint below a training folder."""
    found = {}
    for path in folder.glob("checkpoint-*"):
        step = path.name.removeprefix("checkpoint-")
        if step.isdigit() and (path / MARK).exists():
            found[int(step)] = path
    return dict(sorted(found.items()))


def drop_incomplete(folder: Path) -> None:
    """Remove checkpoints a killed run did not finish."""
    complete = set(checkpoints(folder).values())
    for path in folder.glob("checkpoint-*"):
        if path not in complete:
            shutil.rmtree(path, ignore_errors=True)


class Checkpoints(TrainerCallback):
    """Save every `every` steps and at the `kept` steps; a mark makes a checkpoint complete.

    Older ones are removed only after a newer one is complete, but for those at `kept` steps.
    """

    def __init__(self, folder: Path, every: int, kept: Collection[int]):
        self.folder, self.every, self.kept = folder, every, set(kept)

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        last = state.global_step >= state.max_steps
        if state.global_step in self.kept or (state.global_step % self.every == 0 and not last):
            control.should_save = True

    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if not state.is_world_process_zero:
            return
        saved = self.folder / f"checkpoint-{state.global_step}"
        artifacts.write_json(saved / MARK, {"step": state.global_step})
        for step, path in checkpoints(self.folder).items():
            if step < state.global_step and step not in self.kept:
                (path / MARK).unlink()
                shutil.rmtree(path, ignore_errors=True)


class Progress(ProgressCallback):
    """transformers' progress bar with ETA; the log's dictionary is one short line instead."""

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:
        if state.is_world_process_zero and self.training_bar is not None and logs and "loss" in logs:
            self.training_bar.write(
                f"step {state.global_step}/{state.max_steps}: loss {logs['loss']:.4f}, margin "
                f"{logs['rewards/margins']:.3f}, accuracy {logs['rewards/accuracies']:.2f}, "
                f"lr {logs['learning_rate']:.2g}"
            )


class Log(TrainerCallback):
    """Keep the whole log as JSON lines; a resumed run goes on with the lines of its checkpoint."""

    def __init__(self, path: Path):
        self.path = path

    def on_log(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if state.is_world_process_zero:
            artifacts.write_jsonl(self.path, state.log_history)
