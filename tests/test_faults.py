"""Faults during training: each ends in a sentence, in every process, with the last good checkpoint whole.

Under python or torchrun this file is the worker: `tests/test_faults.py FAULT MODEL OUT`.
"""

import json
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from test_equivalence import build_model, make, outcome, torchrun
from transformers import TrainerCallback

from scope.artifacts import Refusal, StageError
from scope.training.callbacks import checkpoints

STEPS = 4
SETTINGS = ["trainer.checkpoint_steps=1", "trainer.save_steps=[1]", "trainer.schedule=cosine"]


@pytest.fixture(scope="module")
def model(smollm2, tmp_path_factory):
    return build_model(smollm2.path, tmp_path_factory.mktemp("random") / "model")


class At(TrainerCallback):
    """Does something at one moment of a run: before the given step's given micro-batch."""

    def __init__(self, step, act, micro_batch=0):
        self.moment, self.act, self.seen = (step, micro_batch), act, 0

    def on_step_begin(self, args, state, control, **_):
        self.seen = 0
        self._look(state)

    def on_substep_end(self, args, state, control, **_):
        self.seen += 1
        self._look(state)

    def _look(self, state):
        if (state.global_step, self.seen) == self.moment:
            self.act()


def trainer_with(model, out, act=None, step=2, micro_batch=0, device_batch=4, world=1):
    trainer = make(model, out, device_batch=device_batch, world=world, steps=STEPS, overrides=SETTINGS)
    if act:
        trainer.callback_handler.callbacks.insert(0, At(step, lambda: act(trainer), micro_batch))
    return trainer


@pytest.fixture(scope="module")
def whole(model, tmp_path_factory):
    """(losses, adapter) of the run that nothing stops."""
    trainer = trainer_with(model, tmp_path_factory.mktemp("whole"))
    trainer.train()
    return outcome(trainer)[:2]


def poison_weights(trainer):
    import torch

    with torch.no_grad():
        next(p for n, p in trainer.model.named_parameters() if "lora_B" in n).fill_(float("nan"))


def poison_gradient(trainer):
    parameter = next(p for n, p in trainer.model.named_parameters() if "lora_B" in n)
    parameter.register_hook(lambda gradient: gradient * float("nan"))


def complete(out):
    return sorted(checkpoints(Path(out) / "train"))


# ---------------------------------------------------------------- not finite


def test_a_loss_that_is_not_finite_names_rows_and_items_and_keeps_the_checkpoint(model, tmp_path):
    with pytest.raises(StageError, match=r"the loss is nan at step 2; .*plan.jsonl are 16 \(item-\d\), 17 \(item-\d\)"):
        trainer_with(model, tmp_path, poison_weights).train()
    assert complete(tmp_path) == [1, 2]


def test_a_gradient_that_is_not_finite_never_reaches_the_weights(model, tmp_path):
    import torch

    trainer = trainer_with(model, tmp_path, poison_gradient)
    with pytest.raises(StageError, match=r"the gradient's norm is nan at step 2; its rows .*16 \(item-.*23 \(item-"):
        trainer.train()
    assert complete(tmp_path) == [1, 2]
    assert all(torch.isfinite(p).all() for n, p in trainer.model.named_parameters() if "lora_" in n)


@pytest.mark.thorough
def test_a_loss_not_finite_in_one_process_ends_all(model, tmp_path):
    done = torchrun(__file__, "nan", model, tmp_path)
    assert done.returncode != 0
    assert done.stderr.count("error: the loss is nan at step 2; its rows in plan.jsonl are 16 (item-") == 2
    assert complete(tmp_path) == [1, 2]


# ---------------------------------------------------------------- SIGTERM


@pytest.mark.parametrize(
    "step, micro_batch", [*(pytest.param(*at, marks=pytest.mark.thorough) for at in [(0, 1), (2, 0), (3, 1)]), (2, 1)]
)
def test_sigterm_saves_the_last_finished_step_and_a_resumed_run_is_uninterrupted(
    model, whole, tmp_path, step, micro_batch
):
    """Before the first step, between two, and inside a step's micro-batches."""
    before = signal.getsignal(signal.SIGTERM)
    stopped = trainer_with(
        model, tmp_path, lambda _: os.kill(os.getpid(), signal.SIGTERM), step=step, micro_batch=micro_batch
    )
    with pytest.raises(SystemExit) as ended:
        stopped.train()
    assert ended.value.code == 143 and signal.getsignal(signal.SIGTERM) is before
    done = stopped.state.global_step
    assert complete(tmp_path)[-1:] == ([done] if done else [])
    resumed = trainer_with(model, tmp_path)
    latest = checkpoints(tmp_path / "train").get(done)
    resumed.train(resume_from_checkpoint=str(latest) if latest else None)
    losses, adapter, _ = outcome(resumed)
    assert losses == whole[0] and (adapter == whole[1]).all()


def test_sigterm_to_a_process_ends_it_with_a_sentence(model, tmp_path):
    process = subprocess.Popen(
        [sys.executable, __file__, "slow", str(model), str(tmp_path)], stderr=subprocess.PIPE, text=True
    )
    deadline = time.monotonic() + 1200
    while not complete(tmp_path) and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    _, stderr = process.communicate(timeout=1200)
    assert process.returncode == 143, stderr
    assert "train: stopped by SIGTERM after step" in stderr and "Traceback" not in stderr


@pytest.mark.thorough
def test_sigterm_to_one_process_of_two_ends_both_with_a_whole_checkpoint(model, tmp_path):
    done = torchrun(__file__, "term", model, tmp_path)
    assert done.returncode != 0
    assert "stopped by SIGTERM after step 2 of 4; the checkpoint of step 2 is saved" in done.stderr
    assert [json.loads((tmp_path / f"{rank}.json").read_text()) for rank in (0, 1)] == [143, 143]
    names = {path.name for path in (tmp_path / "train" / "checkpoint-2").iterdir()}
    assert {"rng_state_0.pth", "rng_state_1.pth", "adapter_model.safetensors", "optimizer.pt", "complete.json"} <= names


# ---------------------------------------------------------------- a full disk


def test_a_full_disk_while_saving_keeps_the_checkpoint_before(model, whole, tmp_path):
    """No file may grow beyond 100 kB from step 3 on: the adapter fits, the tokenizer and the optimizer do not."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    trainer = trainer_with(model, tmp_path, lambda _: resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, hard)))
    try:
        with pytest.raises(StageError, match=r"checkpoint-3: cannot be written .*the checkpoint before it is kept"):
            trainer.train()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert complete(tmp_path) == [1, 2] and not (tmp_path / "train" / "checkpoint-3").exists()
    resumed = trainer_with(model, tmp_path)
    resumed.train(resume_from_checkpoint=str(tmp_path / "train" / "checkpoint-2"))
    assert (outcome(resumed)[1] == whole[1]).all()


@pytest.mark.thorough
def test_a_small_disk_that_fills_up(model, tmp_path):
    """The same on a real file system without room, where the test may mount one."""
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", str(disk)], capture_output=True).returncode:
        pytest.skip("mounting a file system is not permitted here")
    try:
        trainer = trainer_with(model, disk, lambda _: (disk / "filler").write_bytes(b"0" * _free(disk)))
        with pytest.raises(StageError, match=r"checkpoint-3: cannot be written .*Free space"):
            trainer.train()
        assert complete(disk) == [1, 2] and not (disk / "train" / "checkpoint-3").exists()
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=True)


def _free(disk):
    found = os.statvfs(disk)
    return max(0, found.f_bavail * found.f_frsize - 100_000)


# ---------------------------------------------------------------- the worker


def worker(fault, model, out):
    rank, world = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
    acts = {
        "nan": lambda trainer: poison_weights(trainer) if rank == 1 else None,
        "term": lambda _: os.kill(os.getpid(), signal.SIGTERM) if rank == 1 else None,
        "slow": None,
    }
    micro_batch = 1 if fault == "term" else 0
    trainer = trainer_with(model, out, acts[fault], micro_batch=micro_batch, device_batch=2, world=world)
    if fault == "slow":
        trainer.add_callback(Slow())
    try:
        trainer.train()
    except Refusal as error:
        print(f"error: {error}", file=sys.stderr, flush=True)
        sys.exit(2)
    except SystemExit as ended:
        (Path(out) / f"{rank}.json").write_text(json.dumps(ended.code))
        raise


class Slow(TrainerCallback):
    def on_step_end(self, args, state, control, **_):
        time.sleep(1)


if __name__ == "__main__":
    worker(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
