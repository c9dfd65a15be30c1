"""`python -m scope.pool`: one command from questions to a documented pool, and from real rows to MIST's mix."""

import gzip
import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter

import pytest
from conftest import ROOT, SHARED

from scope.items import load_items, normalised, write_rows
from scope.pool import check_items, split_overlap, stage
from scope.pool.compose import published
from scope.pool.naming import contexts
from scope.pool.signals import load_channels
from scope.pool.sources import SOURCES
from scope.recipe import load

DATA = SHARED / "data"
needs_data = pytest.mark.skipif(not DATA.exists(), reason="../shared/data is not beside the project")


def run(verb, *words, check=True):
    done = subprocess.run(
        [sys.executable, "-m", "scope.pool", verb, *map(str, words)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=1200,
        env={**os.environ, "COLUMNS": "100"},
    )
    assert not check or done.returncode == 0, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    return done


@pytest.fixture(scope="module")
def custom(tmp_path_factory):
    """The example questions as a pool, built as the README shows it."""
    out = tmp_path_factory.mktemp("custom")
    words = ["recipe=pool_custom", "pool.questions=examples/questions.csv", f"output_dir={out}"]
    return out / "pool", words, run("build", *words)


def test_thirty_questions_become_a_pool_in_one_command(custom):
    folder, _, built = custom
    train, evaluation = (load_items(folder / f"{which}.jsonl") for which in ("train", "evaluation"))
    assert len(train) + len(evaluation) == 30 and len(evaluation) >= 4 and len(train) >= 15
    assert check_items(train) == [] and split_overlap({"train": train, "evaluation": evaluation}) == []
    assert "0 findings" in built.stdout
    by_question = {item.question: item for item in [*train, *evaluation]}
    item = by_question["Which planet of the solar system is nearest to the sun?"]
    options = dict(zip("ABCD", item.options, strict=True))
    assert options[item.gold] == "Mercury" and options[item.wrong] == "Venus", "the given wrong answer is used"
    assert by_question["Is glass a good conductor of electricity?"].wrong == "yes"


def test_the_datasheet_is_a_dataset_card(custom):
    import yaml

    folder, _, _ = custom
    text = (folder / "README.md").read_text()
    card = yaml.safe_load(text.split("---")[1])
    assert card["configs"][0]["data_files"][0] == {"split": "train", "path": "train.jsonl"}
    for part in ("## Composition: train", "## Licences", "## Checks", "## Shortcut baselines", "python -m scope.pool"):
        assert part in text, part


def test_the_pool_s_files_open_with_datasets(custom):
    import datasets

    folder, _, _ = custom
    loaded = datasets.load_dataset(str(folder))
    assert set(loaded) == {"train", "evaluation"} and loaded["train"].num_rows >= 15


def test_building_again_gives_the_same_bytes(custom, tmp_path):
    folder, words, _ = custom
    first = {path.name: path.read_bytes() for path in folder.iterdir() if path.suffix in (".jsonl",)}
    run("build", *words[:2], f"output_dir={tmp_path}")
    assert first == {path.name: path.read_bytes() for path in (tmp_path / "pool").glob("*.jsonl")}


def test_check_show_and_card(custom):
    folder, words, _ = custom
    checked = run("check", *words)
    assert "0 findings" in checked.stdout and "shortcut baselines" in checked.stdout
    item = load_items(folder / "train.jsonl")[1]
    for chosen in (f"item={item.id}", "item=2"):
        shown = run("show", *words, chosen).stdout
        for part in ("clean", "misleading", "correct", "irrelevant", item.id):
            assert part in shown
        assert normalised(item.context_misleading) in normalised(shown)
    assert run("card", *words).stdout == (folder / "README.md").read_text()


def test_bad_requests_are_sentences(custom, tmp_path):
    _, words, _ = custom
    empty = tmp_path / "empty.csv"
    empty.write_text("")
    wrong = tmp_path / "wrong.csv"
    wrong.write_text("frage,antwort\nWie?,ja\n")
    for arguments, message in (
        (["show", *words, "item=4711"], "give a number from 1 to"),
        (["show", *words, "pool=dev", "item=1"], "neither train nor evaluation"),
        (["build", "recipe=pool_custom", f"output_dir={tmp_path}"], "pool.questions"),
        (["build", "recipe=pool_custom", f"output_dir={tmp_path}", f"pool.questions={empty}"], "empty.csv"),
        (["build", "recipe=pool_custom", f"output_dir={tmp_path}", f"pool.questions={wrong}"], "frage"),
        (["build", "recipe=pool_public", "pool.sources={gsm8: 1}", f"output_dir={tmp_path}"], "did you mean gsm8k"),
        (["build", "recipe=pool_public", f"data_dir={tmp_path / 'no'}", f"output_dir={tmp_path}"], "no"),
        (["build"], "no recipe is named"),
    ):
        done = run(*arguments, check=False)
        assert done.returncode == 2 and message in done.stderr, (arguments, done.stdout, done.stderr)
    assert run("bild", check=False).returncode == 2
    assert not list((tmp_path).glob("pool/*.jsonl"))


def test_check_exits_with_one_and_names_what_is_wrong(tmp_path, tiny_pool):
    from dataclasses import replace

    said = replace(tiny_pool[0][0], context_irrelevant="It is seven, the board of the market says.")
    train = [said, *tiny_pool[0][1:]]
    write_rows(tmp_path / "train.jsonl", train)
    write_rows(tmp_path / "evaluation.jsonl", [*tiny_pool[1], train[3]])
    words = ["recipe=pool_authored", f"output_dir={tmp_path}"]
    words += [f"pool.{which}={tmp_path / which}.jsonl" for which in ("train", "evaluation")]
    words += ["pool.n_train=0", "pool.n_evaluation=0"]
    done = run("check", *words, check=False)
    assert done.returncode == 1
    assert "irrelevant_is_silent" in done.stdout and "'seven'" in done.stdout and train[0].id in done.stdout
    assert train[3].id in done.stdout, "an item that both pools hold"


def test_the_kept_pool_is_read_again_and_made_anew_when_its_recipe_or_files_change(tmp_path, tiny_pool):
    write_rows(tmp_path / "train.jsonl", tiny_pool[0])
    write_rows(tmp_path / "evaluation.jsonl", tiny_pool[1])
    words = [f"pool.{which}={tmp_path / which}.jsonl" for which in ("train", "evaluation")]
    recipe = load("pool_authored", [*words, "pool.n_train=0", "pool.n_evaluation=0", f"output_dir={tmp_path / 'run'}"])
    assert stage.kept(recipe) is None
    pools = stage.prepare(recipe)
    stage.keep(recipe, pools)
    assert stage.kept(recipe) is not None and stage.prepare(recipe).hashes == pools.hashes
    assert stage.evaluation(recipe) == (list(tiny_pool[1]), pools.hashes["evaluation"])
    write_rows(tmp_path / "train.jsonl", tiny_pool[0][:9])
    assert stage.kept(recipe) is None and len(stage.prepare(recipe).train) == 9


# ---------------------------------------------------------------- the real rows


def cut(folder, sources):
    """The data folder with a fifth of each source's rows, and all of the transfer sets."""
    for real in DATA.iterdir():
        if real.name not in sources:
            (folder / real.name).symlink_to(real)
            continue
        for path in real.rglob("*.jsonl.gz"):
            target = folder / path.relative_to(DATA)
            target.parent.mkdir(parents=True, exist_ok=True)
            with gzip.open(path, "rb") as file:
                lines = file.readlines()
            with gzip.open(target, "wb", compresslevel=1) as file:
                file.writelines(lines[: max(100, len(lines) // 5)])
    return folder


@needs_data
@pytest.mark.parametrize("rows", ["a fifth", pytest.param("all", marks=pytest.mark.slow)])
def test_a_public_pool_has_the_published_shares_and_no_transfer_question(rows, tmp_path):
    """400 + 200 items from the real rows: every margin on target, zero findings, GSM-IC's base problems kept out."""
    data = DATA
    if rows != "all":
        (tmp_path / "data").mkdir()
        data = cut(tmp_path / "data", {source.folder for source in SOURCES.values()})
    recipe = load(
        "pool_public",
        [f"data_dir={data}", f"output_dir={tmp_path}", "pool.n_train=400", "pool.n_evaluation=200"],
    )
    pools = stage.prepare(recipe)
    folder = stage.keep(recipe, pools)
    report = json.loads((folder / "report.json").read_text())
    for which, n in (("train", 400), ("evaluation", 200)):
        assert report["pools"][which]["items"] == n
        for margin, values in report["pools"][which]["composition"].items():
            off = {name: v for name, v in values.items() if v["target"] not in (None, v["items"])}
            assert not off, (which, margin, off)
        assert report["findings"][which]["by_check"] == {}
    assert report["overlap"]["pairs"] == 0
    assert set(Counter(item.source for item in pools.train)) == set(published("sources"))
    assert any("resembles a question of gsm_ic" in reason for reason in report["left_out"]["train"])
    assert {row["source"] for row in report["licences"]} == set(published("sources"))
    # No sentence of a context is of the bank that the other pool's are of, whatever stands in its fields.
    said = {
        which: [text for item in getattr(pools, which) for text in contexts(item).values()]
        for which in ("train", "evaluation")
    }
    for which, bank in (("train", "train"), ("evaluation", "eval")):
        lists = [(*c.value, *c.irrelevant, *c.unrelated) for c in load_channels(bank).values()]
        fields = [re.sub(r"\\{(?:value|about)\\}", ".+", re.escape(p)) for phrasings in lists for p in phrasings]
        of_bank = re.compile("|".join(fields), re.DOTALL)
        assert all(map(of_bank.fullmatch, said[which]))
        assert not any(map(of_bank.fullmatch, said["evaluation" if which == "train" else "train"]))


@needs_data
def test_own_errors_of_a_base_become_the_wrong_answers(tmp_path):
    """The evaluate folder of a base that answered two questions wrong decides these items' wrong answers."""
    from scope import artifacts

    words = [f"data_dir={DATA}", "pool.sources={openbookqa: 1}", "pool.n_train=20", "pool.n_evaluation=10"]
    recipe = load("pool_public", [*words, f"output_dir={tmp_path / 'first'}"])
    train = stage.prepare(recipe).train
    evaluated = tmp_path / "evaluate"
    write_rows(evaluated / "items.jsonl", train)
    rows, chosen = [], {}
    for item in train[:8]:
        value = next(c for c in "ABCD" if c not in (item.gold, item.wrong))
        chosen[item.question] = item.options[ord(value) - 65]
        rows.append({"system": "base", "item_id": item.id, "cell": "clean", "label": "wrong", "value": value})
    artifacts.write_parquet(evaluated / "outcomes.parquet", rows)
    again = load("pool_public", [*words, f"output_dir={tmp_path / 'second'}", f"pool.own_errors={evaluated}"])
    found = {i.question: i.options[ord(i.wrong) - 65] for i in stage.prepare(again).train if i.question in chosen}
    assert len(found) >= 6 and all(found[q] == chosen[q] for q in found)
    shutil.rmtree(evaluated)
