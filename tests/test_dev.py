"""Held-out evaluation during training: it shows what an evaluation would show, and changes nothing."""

import json
import shutil
from dataclasses import replace

import pytest


@pytest.fixture(scope="module")
def slice_file(tmp_path_factory, tiny_pool):
    """Six items of the tiny model's own kind, disjoint from its pool: other questions under the same contexts."""
    from scope.items import write_rows

    path = tmp_path_factory.mktemp("dev") / "dev.jsonl"
    write_rows(
        path,
        [
            replace(item, id=f"dev-{n}", question="Solve the problem. " + item.question)
            for n, item in enumerate(tiny_pool[1][:6])
        ],
    )
    return path


@pytest.fixture(scope="module")
def watched(finished_run, tiny_args, run_entry, slice_file, tmp_path_factory):
    """A training run that looks at the slice at steps 0, 3 and 6: (folder, process)."""
    out = tmp_path_factory.mktemp("watched") / "run"
    shutil.copytree(finished_run[0] / "mine", out / "mine")
    overrides = ["dev.steps=[0,3,6]", f"dev.items={slice_file}", "dev.n=5"]
    return out, run_entry("train.py", "recipe=smollm2_135m", *tiny_args, *overrides, f"output_dir={out}")


def test_watching_changes_nothing_of_the_adapter(watched, finished_run):
    name = "scope/train/adapter/adapter_model.safetensors"
    assert (watched[0] / name).read_bytes() == (finished_run[0] / name).read_bytes()


@pytest.mark.thorough
def test_what_is_logged_is_what_an_evaluation_of_base_and_adapter_finds(
    watched, tiny_args, run_entry, slice_file, tmp_path
):
    import pyarrow.parquet as pq

    out, _ = watched
    lines = [json.loads(line) for line in (out / "scope/train/log.jsonl").read_text().splitlines()]
    logged = {line["step"]: line for line in lines if "dev/overall" in line}
    assert sorted(logged) == [0, 3, 6]
    steps = [line for line in lines if "loss" in line]
    assert len(steps) == 6 and all("rewards/margins" in line for line in steps), "a step keeps its own metrics"
    assert not any("rewards/margins" in line for line in logged.values())
    five = tmp_path / "five.jsonl"
    five.write_text("".join(slice_file.read_text().splitlines(keepends=True)[:5]))
    overrides = [*tiny_args, f"pool.evaluation={five}", "systems=[base,adapter]", f"output_dir={out}"]
    run_entry("evaluate.py", "recipe=smollm2_135m", *overrides)
    results = json.loads((out / "scope/evaluate/mist/results.json").read_text())
    for step, system in ((0, "base"), (6, "adapter")):
        rates = {m: r["estimate"] for m, r in results["systems"][system]["rates"].items()}
        shown = {m: logged[step].get(f"dev/{m}") for m in rates}
        assert shown == pytest.approx(rates), f"step {step} against {system}"
        texts = {
            (r["item_id"], r["cell"]): r["text"]
            for r in pq.read_table(out / f"scope/train/dev/step-{step}.parquet").to_pylist()
        }
        table = pq.read_table(out / "scope/evaluate/mist/outcomes.parquet").to_pylist()
        assert texts == {(r["item_id"], r["cell"]): r["text"] for r in table if r["system"] == system}
    assert logged[0]["dev/misleading"] < logged[0]["dev/clean"], "the tiny base follows wrong contexts"


@pytest.mark.parametrize("which", [pytest.param("evaluated", marks=pytest.mark.thorough), "trained"])
def test_a_slice_that_is_evaluated_or_trained_on_is_refused(
    which, finished_run, tiny_pool, tiny_args, tmp_path, run_entry
):
    from scope.items import write_rows

    path = tmp_path / "dev.jsonl"
    quartet = json.loads((finished_run[0] / "mine/quartets.jsonl").read_text().splitlines()[0])
    trained = next(item for item in tiny_pool[0] if item.id == quartet["item_id"])
    write_rows(path, [replace(trained if which == "trained" else tiny_pool[1][0], id="another-name")])
    shutil.copytree(finished_run[0] / "mine", tmp_path / "run/mine")
    overrides = ["dev.steps=[0]", f"dev.items={path}", f"output_dir={tmp_path / 'run'}"]
    done = run_entry("train.py", "recipe=smollm2_135m", *tiny_args, *overrides, check=False)
    assert done.returncode == 2
    assert "item another-name is also trained on or evaluated on" in done.stderr
    assert "rows a step" not in done.stdout, "it is refused before anything is prepared"
