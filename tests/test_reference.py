"""The kept reference: the right numbers, computed once, whole or not at all, and never another model's."""

import sqlite3
import threading

import pytest
from test_equivalence import build_model, make, quartets

from scope.artifacts import StageError
from scope.conditions import Condition
from scope.training.reference import Reference, Store, Unit, units_of


@pytest.fixture(scope="module")
def model(smollm2, tmp_path_factory):
    return build_model(smollm2.path, tmp_path_factory.mktemp("random") / "model")


def kept(model, out, *overrides):
    return make(model, out, device_batch=4, overrides=["trainer.reference=cached", *overrides])


def by_hand(model, prompt, completion):
    """Sum of the completion's log-probabilities by one plain forward of one sequence."""
    import torch
    from transformers import AutoModelForCausalLM

    network = AutoModelForCausalLM.from_pretrained(model, dtype=torch.float32)
    ids = torch.tensor([[*prompt, *completion]])
    with torch.no_grad():
        log_probs = network(ids).logits.double().log_softmax(-1)[0]
    return sum(log_probs[len(prompt) + n - 1, token].item() for n, token in enumerate(completion))


@pytest.mark.parametrize("packing", ["none", "trie"])
def test_kept_numbers_are_the_base_s_even_with_an_adapter_that_does_something(model, tmp_path, packing):
    import torch

    trainer = kept(model, tmp_path, f"trainer.packing={packing}")
    with torch.no_grad():
        for name, parameter in trainer.model.named_parameters():
            if "lora_B" in name:
                parameter.add_(0.1)
    trainer.read_reference()
    for number in (0, 5, 11):
        row = trainer.train_dataset[number]
        for column, name in enumerate(("chosen_ids", "rejected_ids")):
            expected = by_hand(model, row["prompt_ids"], row[name])
            assert trainer._kept[number, column].item() == pytest.approx(expected, abs=1e-4)


def test_another_arm_and_another_seed_compute_nothing_again(model, tmp_path):
    first = kept(model, tmp_path)
    first.read_reference()
    assert first.reference.computed == 4
    for overrides in (["pairs=misleading_only"], ["seed=7"], ["pairs=no_clean", "trainer.device_batch=8"]):
        other = kept(model, tmp_path, *overrides)
        other.read_reference()
        assert other.reference.computed == 0, overrides
    again = kept(model, tmp_path)
    again.read_reference()
    assert (again._kept == first._kept).all()


def test_what_an_arm_reads_does_not_depend_on_which_arm_computed_it(model, tmp_path):
    """Whole quartets are computed whichever of their rows an arm draws, so the numbers are equal to the bit."""
    first = kept(model, tmp_path / "a", "pairs=misleading_only", "trainer.packing=trie")
    first.read_reference()
    second = kept(model, tmp_path / "b", "trainer.packing=trie")
    second.read_reference()
    third = kept(model, tmp_path / "b", "pairs=misleading_only", "trainer.packing=trie")
    third.read_reference()
    assert third.reference.computed == 0 and (third._kept == first._kept).all()


@pytest.mark.parametrize(
    "overrides", [["trainer.packing=trie"], ["model.dtype=bfloat16"], ["model.attn_implementation=eager"]]
)
def test_another_kind_of_forward_pass_has_numbers_of_its_own(model, tmp_path, overrides):
    keys = set(kept(model, tmp_path, "trainer.packing=none").reference.keys())
    assert not keys & set(kept(model, tmp_path, "trainer.packing=none", *overrides).reference.keys())


def test_every_token_and_the_weights_are_in_the_key():
    def key(context, unit):
        return Reference(None, context, [unit], None).keys()[0]

    unit = Unit(((1, 2), (1, 3)), (4, 2), (5, 2))
    others = [
        Unit(((1, 2), (1, 4)), (4, 2), (5, 2)),
        Unit(((1, 3), (1, 2)), (4, 2), (5, 2)),
        Unit(((1, 2), (1, 3)), (5, 2), (4, 2)),
        Unit(((1, 2),), (4, 2), (5, 2)),
    ]
    assert len({key({"weights": "a"}, u) for u in [unit, *others]} | {key({"weights": "b"}, unit)}) == 6


def test_auto_keeps_the_reference_in_fp32_only():
    from scope.recipe import load
    from scope.training.reference import is_kept

    for dtype, choice, expected in [
        ("float32", "auto", True),
        ("bfloat16", "auto", False),
        ("bfloat16", "cached", True),
        ("float32", "live", False),
    ]:
        assert is_kept(load("quickstart", [f"model.dtype={dtype}", f"trainer.reference={choice}"])) is expected


# ---------------------------------------------------------------- units and their places


def test_a_row_brings_its_prompt_s_whole_quartet():
    ids = quartets(2)
    prompts = [list(q.prompts.values()) for q in ids]
    own, other = ids

    def row(prompt_of, condition, pair_of):
        return {
            "prompt_ids": prompt_of.prompts[condition],
            "chosen_ids": pair_of.chosen,
            "rejected_ids": pair_of.rejected,
        }

    rows = [
        row(own, Condition.MISLEADING, own),
        row(own, Condition.CLEAN, own),
        row(own, Condition.CLEAN, other),  # as `pairs=shuffled` has it
    ]
    units, places = units_of(rows, prompts)
    assert [len(unit.prompts) for unit in units] == [4, 4] and places.tolist() == [[0, 1], [0, 0], [1, 0]]
    assert units[1].chosen == tuple(other.chosen) and units[0].prompts == units[1].prompts
    alone, places = units_of(rows[:1], [])
    assert len(alone[0].prompts) == 1 and places.tolist() == [[0, 0]]


# ---------------------------------------------------------------- the store

UNITS = [Unit(((n,), (n, n)), (1, 2), (2,)) for n in range(40)]


def reference(path):
    import torch

    places = torch.tensor([[n, n % 2] for n in range(40)])
    return Reference(path, {"weights": "w"}, UNITS, places)


def lengths(unit):
    return [(-float(len(prompt)), -unit.prompts[0][0] / 3) for prompt in unit.prompts]


def test_a_stopped_computation_goes_on_and_ends_with_the_same_numbers(tmp_path):
    whole = reference(tmp_path / "whole.sqlite").log_probs(lengths)
    assert whole[7].tolist() == pytest.approx([-2.0, -7 / 3])
    calls = []

    def stopping(unit):
        calls.append(unit)
        if len(calls) == 20:
            raise KeyboardInterrupt
        return lengths(unit)

    path = tmp_path / "stopped.sqlite"
    with pytest.raises(KeyboardInterrupt):
        reference(path).log_probs(stopping)
    again = reference(path)
    assert (again.log_probs(lengths) == whole).all()
    assert again.computed == 24, "two waves of eight were kept whole, the third was not"


def test_two_runs_at_once_do_not_disturb_each_other(tmp_path):
    path, found = tmp_path / "log_probs.sqlite", []
    threads = [threading.Thread(target=lambda: found.append(reference(path).log_probs(lengths))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4 and all((f == found[0]).all() for f in found)
    assert sqlite3.connect(path).execute("SELECT count(*) FROM units").fetchone() == (40,)


def test_what_is_kept_is_never_replaced(tmp_path):
    store = Store(tmp_path / "s.sqlite")
    store.put({"a": [(1.0, 2.0)]})
    store.put({"a": [(9.0, 9.0)], "b": [(3.5, -0.1)]})
    assert store.get(["a", "b", "c"]) == {"a": [(1.0, 2.0)], "b": [(3.5, -0.1)]}


def test_a_damaged_store_and_numbers_that_are_not_finite_are_refused(tmp_path):
    path = tmp_path / "log_probs.sqlite"
    with pytest.raises(StageError, match="log-probabilities of 8 quartets are not finite"):
        reference(path).log_probs(lambda unit: [(float("nan"), 0.0)] * 2)
    path.write_bytes(b"no database at all" * 100)
    with pytest.raises(StageError, match=r"log_probs.sqlite: the reference store cannot be used .*delete the file"):
        reference(path).log_probs(lengths)


def test_numbers_of_another_model_are_refused_before_the_first_update(model, tmp_path):
    kept(model, tmp_path).read_reference()
    with sqlite3.connect(tmp_path / "reference" / "log_probs.sqlite") as db:
        db.execute("UPDATE units SET log_probs = '[[-1, -2], [-1, -2], [-1, -2], [-1, -2]]'")
    with pytest.raises(StageError, match=r"kept reference log-probabilities are .* nat off a live computation"):
        kept(model, tmp_path).train()
