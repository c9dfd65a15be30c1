"""Trackers get the recipe, the numbers and the manifest, and whatever becomes of one, training goes on to its end."""

import json
import resource
import shutil
import sys
import textwrap
from pathlib import Path

import pytest
from transformers import TrainerCallback

from scope.recipe import RecipeError, load
from scope.training import trackers

ADAPTER = "scope/train/adapter/adapter_model.safetensors"


def trained(overrides, *more):
    """The run's folder after training as the stage does it."""
    from scope.training import train

    recipe = load("smollm2_135m", [*overrides, *more])
    train(recipe)
    return recipe.root


@pytest.fixture(scope="module")
def untracked(untrained_run, tmp_path_factory):
    """The adapter's bytes of the same run without a tracker."""
    out = tmp_path_factory.mktemp("untracked") / "run"
    shutil.copytree(untrained_run[-1].partition("=")[2], out)
    return (trained([*untrained_run[:-1], f"output_dir={out}"]) / ADAPTER).read_bytes()


def events(folder):
    """What a TensorBoard folder holds: (scalars: name -> {step: value}, texts: name -> text)."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    found = EventAccumulator(str(folder), size_guidance={"tensors": 0, "scalars": 0})
    found.Reload()
    tags = found.Tags()
    scalars = {name: {e.step: e.value for e in found.Scalars(name)} for name in tags["scalars"]}
    texts = {name: found.Tensors(name)[0].tensor_proto.string_val[0].decode() for name in tags["tensors"]}
    return scalars, {name.removesuffix("/text_summary"): textwrap.dedent(text) for name, text in texts.items()}


def test_tensorboard_has_the_recipe_the_numbers_and_the_manifest(fresh_run, untracked):
    out = trained(fresh_run("run"), "trainer.report_to=[tensorboard]")
    scalars, texts = events(out / "scope/train/tensorboard")
    log = [json.loads(line) for line in (out / "scope/train/log.jsonl").read_text().splitlines()]
    losses = {entry["step"]: entry["loss"] for entry in log if "loss" in entry}
    assert scalars["train/loss"] == pytest.approx(losses) and len(losses) == 4
    for name in ("rewards/margins/misleading", "rewards/margins/from_clean", "tokens_per_second", "memory_gb"):
        assert f"train/{name}" in scalars
    assert json.loads(texts["recipe"])["trainer"]["report_to"] == ["tensorboard"]
    manifest = (out / "scope/train/manifest.json").read_text()
    assert json.loads(texts["manifest"]) == json.loads(manifest)
    assert (out / ADAPTER).read_bytes() == untracked, "a tracker changes nothing"
    assert sorted(json.loads(manifest)["outputs"]) == [
        "adapter/adapter_config.json",
        "adapter/adapter_model.safetensors",
        "plan.jsonl",
    ], "log and tracker files differ from run to run and are no products"


# ---------------------------------------------------------------- a tracker that fails


class At(TrainerCallback):
    """Does something after some steps, before they are logged."""

    def __init__(self, acts):
        self.acts = acts

    def on_step_end(self, args, state, control, **_):
        if state.global_step in self.acts:
            self.acts[state.global_step](Path(args.output_dir))


@pytest.fixture
def at(monkeypatch):
    """Have things done in the middle of the next training: step -> what, given the training folder."""
    from scope.training import setup

    def at(acts):
        whole = setup.callbacks
        monkeypatch.setattr(setup, "callbacks", lambda *a: [*whole(*a), At(acts)])

    return at


def failures(stderr):
    return [line for line in stderr.splitlines() if "failed and gets no more reports" in line]


def test_a_folder_that_cannot_be_made_silences_the_tracker(fresh_run, untracked, capsys):
    """Something else stands in its place, from the start."""
    overrides = fresh_run("run")
    place = load("smollm2_135m", overrides).folder("train")
    place.mkdir(parents=True)
    (place / "tensorboard").write_text("a file")
    out = trained(overrides, "trainer.report_to=[tensorboard]")
    (said,) = failures(capsys.readouterr().err)
    assert "train: tensorboard failed and gets no more reports (" in said and "tensorboard" in said
    assert (out / ADAPTER).read_bytes() == untracked


# TensorBoard's writer thread says it as well.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.parametrize("fault", ["full disk", pytest.param("folder replaced by a file", marks=pytest.mark.thorough)])
def test_a_fault_of_the_disk_in_the_middle_silences_the_tracker(fresh_run, untracked, at, capsys, fault):
    """At step 3 the tracker's file may not grow any more, or is gone with its folder."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)

    def fill(train):
        (file,) = (train / "tensorboard").iterdir()
        resource.setrlimit(resource.RLIMIT_FSIZE, (file.stat().st_size, hard))

    def free(train):
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

    def replace(train):
        shutil.move(train / "tensorboard", train.parent / "kept")
        (train / "tensorboard").write_text("a file")

    at({3: fill, 4: free} if fault == "full disk" else {3: replace})
    try:
        out = trained(fresh_run("run"), "trainer.report_to=[tensorboard]")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    (said,) = failures(capsys.readouterr().err)
    assert ("OSError" if fault == "full disk" else "NotADirectoryError") in said
    assert (out / ADAPTER).read_bytes() == untracked
    assert set(
        events(out / ("scope/train/tensorboard" if fault == "full disk" else "scope/kept"))[0]["train/loss"]
    ) == {1, 2}


@pytest.mark.parametrize("hook", ["on_log", pytest.param("on_train_end", marks=pytest.mark.thorough)])
def test_an_exception_in_any_hook_silences_the_tracker(fresh_run, untracked, capsys, monkeypatch, hook):
    from transformers.integrations import TensorBoardCallback

    def broken(*_, **__):
        raise KeyError("two\nlines")

    monkeypatch.setattr(TensorBoardCallback, hook, broken)
    out = trained(fresh_run("run"), "trainer.report_to=[tensorboard]")
    (said,) = failures(capsys.readouterr().err)
    assert "(KeyError: " in said
    assert (out / ADAPTER).read_bytes() == untracked


def test_a_tracker_that_is_not_installed_is_refused_before_training(untrained_run, monkeypatch):
    monkeypatch.setitem(sys.modules, "trackio", None)
    with pytest.raises(RecipeError, match=r"trainer\.report_to=trackio: the tracker cannot be imported .*pip install"):
        trained(untrained_run, "trainer.report_to=[trackio]", "output_dir=nowhere")
    assert not Path("nowhere").exists()


def test_every_tracker_a_recipe_may_name_is_known(tmp_path):
    from scope.recipe import value_faults

    recipe = load("smollm2_135m", ["trainer.report_to=[wandb,trackio,tensorboard]"])
    assert not value_faults(recipe)
    assert [t.name for t in trackers.callbacks(recipe, tmp_path)] == ["wandb", "trackio", "tensorboard"]


# ---------------------------------------------------------------- W&B and trackio, where they are installed


@pytest.mark.thorough
def test_wandb_is_offline_without_a_question_and_has_recipe_numbers_and_manifest(fresh_run, run_entry, untracked):
    pytest.importorskip("wandb")
    overrides = fresh_run("run")
    done = run_entry("train.py", "recipe=smollm2_135m", *overrides, "trainer.report_to=[wandb]")
    assert not failures(done.stderr)
    out = load("smollm2_135m", overrides).root
    (run,) = (out / "scope/train/wandb").glob("offline-run-*")
    assert (run / "files" / "manifest.json").read_text() == (out / "scope/train/manifest.json").read_text()
    (log,) = run.glob("*.wandb")
    content = log.read_bytes()
    assert b"train/loss" in content and b"report_to" in content
    assert (out / ADAPTER).read_bytes() == untracked


@pytest.mark.thorough
def test_trackio_has_recipe_numbers_and_manifest(fresh_run, run_entry, untracked, tmp_path):
    pytest.importorskip("trackio")
    overrides = fresh_run("run")
    env = {"TRACKIO_DIR": str(tmp_path / "trackio")}
    done = run_entry("train.py", "recipe=smollm2_135m", *overrides, "trainer.report_to=[trackio]", env=env)
    assert not failures(done.stderr)
    assert (tmp_path / "trackio" / "scope.db").exists()
    content = b"".join(path.read_bytes() for path in (tmp_path / "trackio").rglob("*") if path.is_file())
    assert b"train/loss" in content and b"report_to" in content and b'"reference_drift"' in content
    out = load("smollm2_135m", overrides).root
    assert (out / ADAPTER).read_bytes() == untracked
