"""Trainer callbacks: checkpoints that are whole or not there, and a log that survives."""

import shutil
import signal
import sys
import threading
import time
from collections.abc import Collection
from pathlib import Path
from typing import Any

from tqdm import tqdm
from transformers import ProgressCallback, TrainerCallback

from scope import artifacts
from scope.training.faults import anywhere, wait_for_all

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

    Older ones are removed only after a newer one is complete, but for those at `kept` steps. SIGTERM to any
    process, from the first step on, saves the last finished step and ends all of them with exit code 143.
    """

    def __init__(self, folder: Path, every: int, kept: Collection[int]):
        self.folder, self.every, self.kept = folder, every, set(kept)
        self._previous: Any = None  # SIGTERM's handler outside training
        self._asked = self._stopped = False

    def on_epoch_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if threading.current_thread() is threading.main_thread():
            self._previous = signal.signal(signal.SIGTERM, self._ask)

    def _ask(self, *_: Any) -> None:
        self._asked = True

    def on_substep_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        # Between two micro-batches the weights are those of the last finished step.
        self._stop_if_asked(args, state, control)

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        last = state.global_step >= state.max_steps
        if state.global_step in self.kept or (state.global_step % self.every == 0 and not last):
            control.should_save = True
        self._stop_if_asked(args, state, control)

    def _stop_if_asked(self, args: Any, state: Any, control: Any) -> None:
        if not anywhere(self._asked, args.device):
            return
        self._stopped = control.should_training_stop = True
        # A complete checkpoint is never written over: that would leave it torn for a while.
        control.should_save = state.global_step > 0 and state.global_step not in checkpoints(self.folder)

    def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if self._previous is not None:
            signal.signal(signal.SIGTERM, self._previous)
        if self._stopped:
            if state.is_world_process_zero:
                kept = f"the checkpoint of step {state.global_step} is" if state.global_step else "nothing had to be"
                print(
                    f"train: stopped by SIGTERM after step {state.global_step} of {state.max_steps}; {kept} saved, "
                    "and the same command goes on from there",
                    file=sys.stderr,
                    flush=True,
                )
            raise SystemExit(128 + signal.SIGTERM)

    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        wait_for_all()  # every process has its own part of a checkpoint
        if not state.is_world_process_zero:
            return
        saved = self.folder / f"checkpoint-{state.global_step}"
        artifacts.as_umask(saved)
        artifacts.write_json(saved / MARK, {"step": state.global_step})
        for step, path in checkpoints(self.folder).items():
            if step < state.global_step and step not in self.kept:
                (path / MARK).unlink()
                shutil.rmtree(path, ignore_errors=True)


#: What a progress line shows beside the loss, of the metrics the objective has.
SHOWN = {
    "rewards/margins": "margin",
    "rewards/accuracies": "accuracy",
    "mean_token_accuracy": "token accuracy",
    "completions/mean_length": "sampled tokens",
}


class Progress(ProgressCallback):
    """transformers' progress bar with ETA; the log's dictionary is one short line instead.

    Where standard error is no terminal there is no bar, and the lines name the time left.
    """

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if state.is_world_process_zero:
            self.training_bar = tqdm(total=state.max_steps, dynamic_ncols=True, disable=None)
        self.current_step = 0
        self._first, self._began = state.global_step, time.monotonic()

    def _left(self, state: Any) -> str:
        done = state.global_step - self._first
        bar: Any = self.training_bar
        if not (bar.disable and done > 0 and state.global_step < state.max_steps):
            return ""
        seconds = (time.monotonic() - self._began) * (state.max_steps - state.global_step) / done
        return f", about {bar.format_interval(seconds)} left"

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:
        if state.is_world_process_zero and self.training_bar is not None and logs and "loss" in logs:
            shown = "".join(f", {name} {logs[metric]:z.3g}" for metric, name in SHOWN.items() if metric in logs)
            self.training_bar.write(
                f"step {state.global_step}/{state.max_steps}: loss {logs['loss']:.4f}{shown}, "
                f"lr {logs['learning_rate']:.2g}{self._left(state)}"
            )


class Log(TrainerCallback):
    """Keep the whole log as JSON lines; a resumed run goes on with the lines of its checkpoint."""

    def __init__(self, path: Path):
        self.path = path

    def on_log(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if state.is_world_process_zero:
            artifacts.write_jsonl(self.path, state.log_history)
