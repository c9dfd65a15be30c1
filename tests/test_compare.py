"""Finished runs side by side: hand-counted cases, the same numbers as results.json, and what cannot be compared."""

import json
import shutil
import statistics
import subprocess
import sys
from pathlib import Path

import pytest
from test_results import item

from scope import artifacts
from scope.artifacts import StageError
from scope.conditions import Condition
from scope.items import write_rows
from scope.recipe import Recipe
from scope.report import markup, tables
from scope.report.compare import as_text, compare, compare_all

ROOT = Path(__file__).resolve().parent.parent
CELLS = tuple(map(str, Condition))
LABELS = {"r": "right", "w": "wrong", "u": "unparsed", "f": "failed"}
#: Four items. Base: clean right on 0, 1, 2; misled on 0 and 1.
BASE = {"clean": "rrrw", "misleading": "wwrw", "correct": "rrrr", "irrelevant": "rrwu"}
#: Repairs item 0, loses item 3 when the context is correct.
A = {"clean": "rrrw", "misleading": "rwrw", "correct": "rrru", "irrelevant": "rrww"}
#: Repairs both, at the price of item 0 when clean.
B = {"clean": "wrrw", "misleading": "rrrw", "correct": "rrrr", "irrelevant": "rrww"}


def outcomes(system, marks, items=4):
    return [
        {
            "system": system, "item_id": f"i{n}", "cell": cell, "label": LABELS[mark], "n_tokens": 4,
            "finish_reason": "stop",
        }
        for cell in CELLS
        for n, mark in enumerate(marks[cell][:items])
    ]  # fmt: skip


def arm(folder, systems, question="q", items=4, **changed):
    """An arm's folder as evaluate.py leaves it. systems: name -> marks."""
    recipe = Recipe(name=folder.parent.name, seed=3)
    recipe.model.base = "lab/base"
    recipe.evaluation.replicates = 400
    for name, value in changed.items():
        setattr(recipe.evaluation, name, value)
    evaluate = folder / "evaluate" / "mist"
    evaluate.mkdir(parents=True)
    write_rows(evaluate / "items.jsonl", [item(n, question) for n in range(items)])
    rows = [row for name, marks in systems.items() for row in outcomes(name, marks, items)]
    artifacts.write_parquet(evaluate / "outcomes.parquet", rows)
    key = {"systems": {name: ["weights", None] for name in systems}, "model": {"chat_template_kwargs": {}}}
    artifacts.finish(
        evaluate, stage="evaluate", key=key, outputs=["outcomes.parquet", "items.jsonl"], seed=3,
        recipe=recipe.resolved(),
    )  # fmt: skip
    return folder


@pytest.fixture
def run(tmp_path):
    """runs/demo with arms a and b, and an arm that is trained but not evaluated."""
    folder = tmp_path / "demo"
    arm(folder / "a", {"base": BASE, "merged": A})
    arm(folder / "b", {"base": BASE, "prompt_defense": A, "merged": B})
    (folder / "c" / "train").mkdir(parents=True)
    return folder


def test_rates_and_differences_are_those_counted_by_hand(run):
    found = compare([run])
    assert list(found["systems"]) == ["base", "prompt_defense", "a", "b"], "each system once, untrained ones first"
    rates = {s: {m: r["estimate"] for m, r in v["rates"].items()} for s, v in found["systems"].items()}
    assert [rates["base"][c] for c in CELLS] == [0.75, 0.25, 1.0, 0.5]
    assert [rates["b"][c] for c in CELLS] == [0.5, 0.75, 1.0, 0.5]
    assert rates["base"]["overall"] == pytest.approx(2.5 / 4) and rates["b"]["overall"] == pytest.approx(2.75 / 4)
    assert (rates["base"]["sc2w"], rates["a"]["sc2w"], rates["b"]["sc2w"]) == pytest.approx((2 / 3, 1 / 3, 0))
    assert found["differences"]["b"]["rates"]["clean"]["estimate"] == -0.25
    # Misleading: b is right on 0 and 1 where the base is not, never the other way: two-sided 2 x 0.5^2.
    assert found["differences"]["b"]["mcnemar"]["misleading"] == {"b_only": 2, "a_only": 0, "p_value": 0.5}
    assert found["notes"] == [f"{run / 'c'} is not evaluated yet and left out"]


def test_differences_between_any_two_systems_come_from_the_same_resample(run):
    """Swapped systems swap the ends; the very same answers differ by nothing, and by nothing certain."""
    found = compare([run], against="a")
    assert found["against"] == "a" and set(found["differences"]) == {"base", "prompt_defense", "b"}
    assert found["differences"]["b"]["rates"]["misleading"]["estimate"] == 0.25
    # The prompt defence has a's very answers.
    for same in found["differences"]["prompt_defense"]["rates"].values():
        assert same["estimate"] == 0 and same["interval"][0] < 0 < same["interval"][1] and same["few"]
    ahead = compare([run])["differences"]["a"]["rates"]["misleading"]["interval"]
    behind = found["differences"]["base"]["rates"]["misleading"]["interval"]
    assert behind == pytest.approx([-ahead[1], -ahead[0]])
    assert "b - a" in as_text(found)


def test_training_seeds_of_an_arm_have_a_mean_a_deviation_and_a_row_each(tmp_path):
    for name, marks in (("scope", A), ("scope_seed1", B)):
        arm(tmp_path / "demo" / name, {"base": BASE, "merged": marks})
    found = compare([tmp_path / "demo"])
    (table,) = [table for table in tables.tables({"mist": found}) if table.name == "mist_seeds"]
    rows = {row[0].text: [cell.text for cell in row[1:]] for row in table.groups[0].rows}
    # Clean: 75 and 50, so 62.5 with (12.5^2 + 12.5^2) / 1 = 312.5 = 17.7^2.
    assert list(rows) == ["scope", "scope_seed1", "scope: mean of 2 seeds"]
    assert [row[0] for row in rows.values()] == ["75.0", "50.0", "62.5 ± 17.7"]
    assert "62.5 ± 17.7" in as_text(found) and "17.7" in markup.as_latex([table])


def test_training_seeds_of_several_runs_are_not_averaged_and_this_is_said(tmp_path):
    """Two runs may differ in more than the seed; within one the seeds stand together, however they are called."""
    one, other = tmp_path / "one", tmp_path / "other"
    for folder in (one / "scope", one / "scope_seed1", other / "scope_seed2"):
        arm(folder, {"base": BASE, "merged": A})
    found = compare([one / "scope", other])
    assert not [t for t in tables.tables({"mist": found}) if t.name == "mist_seeds"]
    said = f"scope stands in {one} and {other}: seeds are averaged within a run only"
    assert any(note.startswith(said) for note in found["notes"])
    arm(other / "scope", {"base": BASE, "merged": B})
    found = compare([one, other])
    assert {"one/scope", "other/scope", "scope_seed1", "scope_seed2"} < set(found["systems"])
    (table,) = [table for table in tables.tables({"mist": found}) if table.name == "mist_seeds"]
    assert [[row[0].text for row in group.rows] for group in table.groups] == [
        ["one/scope", "scope_seed1", "scope: mean of 2 seeds"],
        ["other/scope", "scope_seed2", "scope: mean of 2 seeds"],
    ]
    assert not any("averaged" in note for note in compare([one])["notes"])


@pytest.mark.thorough
def test_a_sweep_over_training_seeds_ends_in_a_table_of_them(tiny_args, tmp_path, run_entry):
    """The commands of the README, really run: each seed an arm of its own, and a row of its own in the report."""
    out = tmp_path / "run"
    seeds = ["-m", "recipe=smollm2_135m", *tiny_args, "trainer.max_steps=2", f"output_dir={out}", "trainer.seed=0,1,2"]
    run_entry("mine.py", *seeds[1:-1])
    run_entry("train.py", *seeds)
    run_entry("evaluate.py", *seeds)
    adapters = {(path.parents[2].name, path.read_bytes()) for path in out.glob("*/train/adapter/*.safetensors")}
    assert len({weights for _, weights in adapters}) == 3, "another seed trains another adapter"
    report = [sys.executable, "-m", "scope.report", str(out)]
    done = subprocess.run(report, cwd=ROOT, capture_output=True, text=True, timeout=1200)
    lines = done.stdout.splitlines()
    title = next(n for n, line in enumerate(lines) if "training seeds" in line)
    rows = [[cell.strip() for cell in line.split("│")[1:-1]] for line in lines[title:] if line.startswith("│")]
    named = {row[0]: row[1:] for row in rows}
    assert list(named) == ["scope", "scope_seed1", "scope_seed2", "scope: mean of 3 seeds"]
    own = json.loads((out / "scope_seed2" / "evaluate" / "mist" / "results.json").read_text())["systems"]["merged"]
    assert named["scope_seed2"][0] == f"{100 * own['rates']['clean']['estimate']:.1f}"
    clean = [float(named[name][0]) for name in ("scope", "scope_seed1", "scope_seed2")]
    assert named["scope: mean of 3 seeds"][0] == f"{statistics.mean(clean):.1f} ± {statistics.stdev(clean):.1f}"


def test_arms_of_several_folders_keep_apart(run, tmp_path):
    other = arm(tmp_path / "later" / "a", {"base": BASE, "merged": B, "adapter": B})
    found = compare([run / "a", other])
    assert list(found["systems"]) == ["base", "demo/a", "later/a (merged)", "later/a (adapter)"]
    assert found["folders"]["later/a (adapter)"] == str(other)


def test_a_failed_request_withholds_its_own_rates_or_leaves_its_item_out_on_request(run, tmp_path):
    failed = {**B, "clean": "wrrf"}
    found = compare([run, arm(tmp_path / "later" / "d", {"merged": failed})])
    assert found["items"] == 4 and found["failed_items"] == ["i3"]
    assert found["systems"]["base"]["rates"]["clean"]["estimate"] == 0.75
    assert found["systems"]["d"]["rates"]["clean"]["withheld"] == 1
    assert "1 items have a failed request" in as_text(found)
    complete = arm(tmp_path / "complete" / "e", {"base": BASE, "merged": failed}, complete_only=True)
    found = compare([complete])
    assert found["items"] == 3 and found["systems"]["base"]["rates"]["clean"]["estimate"] == 1.0


def test_on_request_the_items_that_all_have_in_common_are_compared(run, tmp_path):
    other = arm(tmp_path / "x" / "d", {"base": BASE, "merged": B}, items=3)
    with pytest.raises(StageError, match="--intersection compares the common items"):
        compare([run / "a", other])
    found = compare([run / "a", other], intersection=True)
    assert found["items"] == 3 and found["systems"]["base"]["rates"]["clean"]["estimate"] == 1.0
    assert found["notes"] == [f"only the 3 items that all have in common are compared: 4 in {run / 'a'}, 3 in {other}"]
    apart = arm(tmp_path / "y" / "d", {"base": BASE}, question="other")
    with pytest.raises(StageError, match="have no item in common"):
        compare([run / "a", apart], intersection=True)


def test_other_items_or_settings_are_refused_naming_both_folders(run, tmp_path):
    cases = {
        "items": arm(tmp_path / "x" / "a", {"base": BASE}, question="other"),
        "max_new_tokens": arm(tmp_path / "y" / "a", {"base": BASE}, max_new_tokens=7),
    }
    for what, other in cases.items():
        with pytest.raises(StageError) as caught:
            compare([run / "a", other])
        assert f"{run / 'a'} and {other} were evaluated with different {what}" in str(caught.value)


def test_a_base_that_answered_otherwise_is_noted(run, tmp_path):
    changed = arm(tmp_path / "x" / "d", {"base": {**BASE, "clean": "rrww"}, "merged": A})
    notes = compare([run / "a", changed])["notes"]
    assert notes == [f"base answered 1 cells otherwise in {changed}; {run / 'a'} is shown"]


def test_what_is_not_there_is_refused_in_a_sentence(run, tmp_path):
    with pytest.raises(StageError, match=r"holds no finished evaluation on mist; run evaluate\.py"):
        compare([tmp_path / "nowhere"])
    with pytest.raises(StageError, match="against=bb is none of the systems; did you mean b"):
        compare([run], against="bb")
    with (run / "a" / "evaluate" / "mist" / "items.jsonl").open("a") as file:
        file.write("\n")
    with pytest.raises(StageError, match="was changed after stage 'evaluate' wrote it"):
        compare([run])


def test_the_tables_say_what_the_numbers_are(run):
    found = compare([run])
    page = "\n".join(map(markup.as_markdown, tables.tables({"mist": found})))
    for shown in (as_text(found), page):
        assert "b - base" in shown and "66.7" in shown and "McNemar p" in shown and "-66.7" in shown
        assert "95 % interval of the paired difference to base; 400 item resamples" in shown
    # Rates: a head and four systems, each with counts and shares.
    # Differences: a head, the reference, three rows for each of three systems.
    rates, differences = (part.splitlines() for part in page.split("### ")[1:])
    for lines, rows in ((rates, 2 + 4 * 3), (differences, 2 + 1 + 3 * 3)):
        columns = [line.count("|") for line in lines if line.startswith("|")]
        assert len(columns) == rows and len(set(columns)) == 1


def test_a_system_of_another_name_keeps_it_unless_two_mean_other_weights(run, tmp_path):
    """`evaluation.models.mine=...`: no arm trained it, so it is not called by one."""
    first = arm(tmp_path / "x" / "d", {"base": BASE, "mine": A, "merged": B})
    again = arm(tmp_path / "x" / "e", {"base": BASE, "mine": A})
    assert list(compare([first, again])["systems"]) == ["base", "mine", "d"]
    manifest = json.loads((again / "evaluate" / "mist" / "manifest.json").read_text())
    manifest["key"]["systems"]["mine"] = ["other weights", None]
    artifacts.write_json(again / "evaluate" / "mist" / "manifest.json", manifest)
    assert list(compare([first, again])["systems"]) == ["base", "mine", "d", "mine (e)"]


def test_the_steps_behind_a_system_are_known_where_there_are_any(tmp_path):
    systems = {"base": BASE, "prompt_defense": BASE, "checkpoint-60": A, "merged": B, "mine": A}
    found = compare([arm(tmp_path / "x" / "d", systems)])
    assert found["steps"] == {
        "base": 0, "prompt_defense": None, "d (checkpoint-60)": 60, "d (merged)": 300, "mine": None,
    }  # fmt: skip


def test_each_suite_is_compared_over_the_folders_that_have_it(run, tmp_path):
    other = tmp_path / "elsewhere"
    other.mkdir()
    found = compare_all([run, other])
    assert list(found) == ["mist"] and list(found["mist"]["systems"]) == ["base", "prompt_defense", "a", "b"]
    assert f"{other} is not evaluated on MIST and left out" in found["mist"]["notes"]
    with pytest.raises(StageError, match="holds no finished evaluation on mist"):
        compare_all([run, other], suites=["mist"])
    with pytest.raises(StageError, match="--suite misst: there is no such suite; did you mean mist"):
        compare_all([run], suites=["misst"])
    with pytest.raises(StageError, match=r"holds no finished evaluation; run evaluate\.py for it"):
        compare_all([other])
    with pytest.raises(StageError, match="there is no such folder"):
        compare_all([run, tmp_path / "nowhere"])


def test_the_command_writes_a_report(run, tmp_path):
    command = [sys.executable, "-m", "scope.report"]
    done = subprocess.run(
        [*command, str(run), "--out", str(tmp_path / "report"), "--published"],
        cwd=ROOT, capture_output=True, text=True, timeout=1200,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = compare([run])
    assert as_text(found, with_published=True) in done.stdout and "published, not measured here" in done.stdout
    assert json.loads((tmp_path / "report" / "results.json").read_text()) == json.loads(json.dumps({"mist": found}))
    assert {path.name for path in (tmp_path / "report").iterdir()} == {
        "figures", "index.html", "results.json", "tables.md", "tables.tex",
    }  # fmt: skip
    done = subprocess.run([*command, str(tmp_path)], cwd=ROOT, capture_output=True, text=True, timeout=1200)
    assert done.returncode == 2 and done.stderr.startswith("error: ") and "Traceback" not in done.stderr


def test_a_finished_run_shows_the_numbers_of_its_own_results(finished_run, tmp_path):
    """Rates, intervals and differences of real outcomes, also beside a second arm whose labels were changed."""
    import pyarrow.parquet as pq

    out, _ = finished_run
    first, second = tmp_path / "run" / "scope", tmp_path / "run" / "worse"
    for folder in (first, second):
        shutil.copytree(out / "scope" / "evaluate", folder / "evaluate")
    rows = pq.read_table(second / "evaluate" / "mist" / "outcomes.parquet").to_pylist()
    worse = [{**r, "label": "wrong"} if (r["system"], r["cell"]) == ("merged", "correct") else r for r in rows]
    artifacts.write_parquet(second / "evaluate" / "mist" / "outcomes.parquet", worse)
    manifest = json.loads((second / "evaluate" / "mist" / "manifest.json").read_text())
    manifest["outputs"]["outcomes.parquet"] = artifacts.file_hash(second / "evaluate" / "mist" / "outcomes.parquet")
    artifacts.write_json(second / "evaluate" / "mist" / "manifest.json", manifest)
    found = compare([tmp_path / "run"])
    own = json.loads((first / "evaluate" / "mist" / "results.json").read_text())
    assert found["systems"]["base"] == own["systems"]["base"]
    assert found["systems"]["scope"] == own["systems"]["merged"]
    assert found["differences"]["scope"] == own["differences"]["merged"]
    assert found["systems"]["worse"]["rates"]["correct"]["estimate"] == 0
    same = ("clean", "misleading", "irrelevant", "sc2w")
    assert all(found["systems"]["worse"]["rates"][m] == own["systems"]["merged"]["rates"][m] for m in same)
