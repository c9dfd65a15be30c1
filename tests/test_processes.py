"""train.py under a launcher: two processes, plain or sharded, train what one process trains.

accelerate shards (FSDP2, DeepSpeed ZeRO) on accelerators only and runs plain DDP on CPUs without a word. Under torchrun
this file is the worker that makes it shard on CPUs too and then runs train.py with the arguments it was given.
"""

import importlib.util
import json
import runpy
import shutil
import sys
from pathlib import Path

import pytest
from test_equivalence import ADAPTER_TOLERANCE, LOSS_TOLERANCE, torchrun

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def fresh(untrained_run, tmp_path_factory):
    """Overrides for training in a new run folder, and the folder it trains in."""
    *settings, place = untrained_run

    def fresh():
        out = tmp_path_factory.mktemp("processes") / "run"
        shutil.copytree(place.partition("=")[2], out)
        return ["recipe=smollm2_135m", *settings, f"output_dir={out}"], out / "scope/train"

    return fresh


@pytest.fixture(scope="module")
def alone(fresh, run_entry):
    """The training folder of one process, four rows at once."""
    arguments, folder = fresh()
    run_entry("train.py", *arguments)
    return folder


def assert_same_training(one, two):
    from safetensors.torch import load_file

    logs = [
        [json.loads(line) for line in (folder / "log.jsonl").read_text("utf-8").splitlines()] for folder in (one, two)
    ]
    losses = [[entry["loss"] for entry in log if "loss" in entry] for log in logs]
    assert len(losses[0]) == 4 and losses[0][-1] < losses[0][0] - 0.01, "or there is nothing to compare"
    assert losses[1] == pytest.approx(losses[0], abs=LOSS_TOLERANCE)
    found = [load_file(folder / "adapter" / "adapter_model.safetensors") for folder in (one, two)]
    assert found[0].keys() == found[1].keys()
    norm = sum(float(tensor.norm()) ** 2 for tensor in found[0].values()) ** 0.5
    distance = sum(float((found[0][name] - found[1][name]).norm()) ** 2 for name in found[0]) ** 0.5
    assert distance <= ADAPTER_TOLERANCE * norm
    assert (one / "plan.jsonl").read_bytes() == (two / "plan.jsonl").read_bytes()


def test_two_processes_train_what_one_does(alone, fresh):
    """The same losses by the entry point at the same global batch; the main process alone reports to a tracker."""
    arguments, folder = fresh()
    done = torchrun(ROOT / "train.py", *arguments, "trainer.device_batch=2", "trainer.report_to=[tensorboard]")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "8 rows a step = 2 x 2 accumulated x 2 processes" in done.stdout
    assert_same_training(alone, folder)
    assert len(list((folder / "tensorboard").iterdir())) == 1


#: How `accelerate launch` hands a configuration file's keys on.
DEEPSPEED = {
    "zero_stage": "ACCELERATE_DEEPSPEED_ZERO_STAGE",
    "gradient_accumulation_steps": "ACCELERATE_GRADIENT_ACCUMULATION_STEPS",
    "gradient_clipping": "ACCELERATE_GRADIENT_CLIPPING",
    "offload_optimizer_device": "ACCELERATE_DEEPSPEED_OFFLOAD_OPTIMIZER_DEVICE",
    "offload_param_device": "ACCELERATE_DEEPSPEED_OFFLOAD_PARAM_DEVICE",
    "zero3_init_flag": "ACCELERATE_DEEPSPEED_ZERO3_INIT",
    "zero3_save_16bit_model": "ACCELERATE_DEEPSPEED_ZERO3_SAVE_16BIT_MODEL",
}


def sharded(name):
    """The environment that a file of accelerate_configs/ makes, but for its precision."""
    import yaml

    config = yaml.safe_load((ROOT / "accelerate_configs" / name).read_text("utf-8"))
    if config["distributed_type"] == "FSDP":
        found = {key.upper(): value for key, value in config["fsdp_config"].items()} | {"ACCELERATE_USE_FSDP": True}
    else:
        plugin = config["deepspeed_config"]
        found = {variable: plugin[key] for key, variable in DEEPSPEED.items()}
        found |= {"ACCELERATE_USE_DEEPSPEED": True, "DS_ACCELERATOR": "cpu"}
    return {key: str(value).lower() if isinstance(value, bool) else str(value) for key, value in found.items()}


needs_deepspeed = pytest.mark.skipif(not importlib.util.find_spec("deepspeed"), reason="pip install deepspeed")


@pytest.mark.slow
@pytest.mark.timeout(7000)  # DeepSpeed compiles its CPU operations the first time
@pytest.mark.parametrize(
    "config",
    [
        "fsdp2_8gpu.yaml",
        pytest.param("zero2_8gpu.yaml", marks=needs_deepspeed),
        pytest.param("zero3_8gpu.yaml", marks=needs_deepspeed),
    ],
)
def test_two_sharded_processes_train_what_one_does_and_go_on_from_a_checkpoint(alone, fresh, config):
    arguments, folder = fresh()
    kind = "FSDP" if "fsdp" in config else "DEEPSPEED"
    for said in ("reference log-probabilities: 0 of 8", "going on from step 2 of 4"):
        done = torchrun(__file__, *arguments, "trainer.device_batch=2", env=sharded(config), timeout=3000)
        assert done.returncode == 0, done.stdout + done.stderr
        assert done.stdout.count(f"sharded by {kind}") == 2 and said in done.stdout
        assert_same_training(alone, folder)
        assert (folder.parent / "merged" / "model.safetensors").exists()
        shutil.rmtree(folder / "adapter")
        shutil.rmtree(folder.parent / "merged")
        (folder / "manifest.json").unlink()


# ---------------------------------------------------------------- the worker


def shard_on_cpus():
    """Let accelerate take up FSDP or DeepSpeed where it would fall back to DDP."""
    import accelerate.state as state
    from accelerate.utils import DistributedType

    original = state.AcceleratorState.__init__

    def patched(self, *arguments, deepspeed_plugin=None, fsdp_plugin=None, **options):
        original(self, *arguments, deepspeed_plugin=deepspeed_plugin, fsdp_plugin=fsdp_plugin, **options)
        if self.distributed_type != DistributedType.MULTI_CPU:
            return
        if deepspeed_plugin is not None:
            import deepspeed

            deepspeed.init_distributed(dist_backend="gloo", auto_mpi_discovery=False)
            deepspeed_plugin.set_mixed_precision(self._mixed_precision)
            deepspeed_plugin.select(_from_accelerator_state=True)
            self.deepspeed_plugins = deepspeed_plugin
            kind = DistributedType.DEEPSPEED
        elif fsdp_plugin is not None:
            self.fsdp_plugin = fsdp_plugin
            kind = DistributedType.FSDP
        else:
            return
        self.distributed_type = kind
        state.PartialState._shared_state["distributed_type"] = kind
        print(f"sharded by {kind.value}", flush=True)

    state.AcceleratorState.__init__ = patched


if __name__ == "__main__":
    shard_on_cpus()
    sys.path.insert(0, str(ROOT))
    sys.argv[0] = str(ROOT / "train.py")
    runpy.run_path(sys.argv[0], run_name="__main__")
