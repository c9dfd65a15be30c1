"""Launch settings that the library itself accepts, and 4-bit training on a CPU."""

import math

import pytest
from conftest import ROOT
from test_equivalence import build_model, make, outcome

CONFIGS = sorted((ROOT / "accelerate_configs").glob("*.yaml"))


@pytest.mark.parametrize("path", CONFIGS, ids=lambda p: p.stem)
def test_every_launch_config_is_read_by_accelerate_and_divides_the_paper_s_batch(path):
    from accelerate.commands.config.config_args import load_config_from_file

    from scope.recipe import load
    from scope.training.batch import batch_arithmetic

    config = load_config_from_file(str(path))
    assert path.read_text().startswith("# ")
    assert batch_arithmetic(load("scope_qwen3_4b"), config.num_processes).accumulation >= 1


def test_qlora_trains_on_a_four_bit_base_and_starts_at_ln_2(smollm2, tmp_path):
    """`model.quantization=nf4`: the adapted projections are 4-bit, only the adapter learns, step 0 is exact."""
    bitsandbytes = pytest.importorskip("bitsandbytes")
    model = build_model(smollm2.path, tmp_path / "model")
    overrides = ["model.quantization=nf4", "trainer.packing=trie"]
    trainer = make(model, tmp_path, device_batch=4, steps=3, overrides=overrides)
    quantised = [m for m in trainer.model.modules() if isinstance(m, bitsandbytes.nn.Linear4bit)]
    assert len(quantised) == 14, "seven projections in each of two layers"
    trainable = {n for n, p in trainer.model.named_parameters() if p.requires_grad}
    assert trainable and all("lora_" in name for name in trainable)
    trainer.train()
    losses, adapter, _ = outcome(trainer)
    assert losses[0] == pytest.approx(math.log(2), abs=1e-3) and losses[-1] < losses[0]
    assert adapter.isfinite().all()
