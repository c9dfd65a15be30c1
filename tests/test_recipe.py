"""Recipes: every one loads, every key is read, and whatever cannot run is refused in a sentence."""

import ast
import copy
import csv
import dataclasses
import functools
import gzip
import json
import operator
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from scope import recipe as recipes
from scope.artifacts import Refusal
from scope.conditions import Condition
from scope.evaluation.suites import SUITES
from scope.items import write_rows
from scope.pairs import arm_masses
from scope.pool import stage as pool
from scope.pool.__main__ import build
from scope.preview import preview
from scope.recipe import Recipe, RecipeError, leaves, load, names, value_faults
from scope.training.batch import batch_arithmetic

ROOT = Path(__file__).resolve().parent.parent
FACTS = Path(__file__).resolve().parents[2] / "shared" / "reference" / "scope_mist" / "facts.csv"
PAPER_RECIPES = ("scope_qwen3_4b", "scope_llama32_3b")
KEYS = {key: (field, value) for key, field, value in leaves()}


#: Runs an entry point, and says which of the slow libraries it imported.
SLOW = ("torch", "transformers", "datasets", "trl")
WRAPPED = f"""
import atexit, runpy, sys
atexit.register(lambda: print("imported:", *[name for name in {SLOW!r} if name in sys.modules], file=sys.stderr))
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def run(*arguments, entry="train.py", cwd=ROOT, **env):
    """One entry point as a user runs it: (finished process, slow libraries it imported)."""
    clean = {k: v for k, v in os.environ.items() if k not in ("WORLD_SIZE", "RANK", "LOCAL_RANK")}
    done = subprocess.run(
        [sys.executable, "-c", WRAPPED, str(ROOT / entry), *arguments],
        cwd=cwd, capture_output=True, text=True, timeout=1200, env={**clean, **env},
    )  # fmt: skip
    text, _, imported = done.stderr.rpartition("imported:")
    done.stderr = text
    return done, imported.split()


@functools.cache
def loaded(name):
    """A recipe as it stands; tests read it only."""
    return load(name)


# ---------------------------------------------------------------- the recipes there are


def test_the_five_recipes_are_there():
    assert set(names()) >= {"quickstart", "qwen25_05b", "smollm2_135m", *PAPER_RECIPES}


@pytest.mark.parametrize("name", names())
def test_every_recipe_loads_and_can_run(name):
    found = loaded(name)
    assert value_faults(found) == []
    assert found.name == name and found.root == Path("runs") / name
    # One process divides the global batch, and so do the eight of the paper's node in its recipes.
    for world in (1, 8) if name in PAPER_RECIPES else (1,):
        batch = batch_arithmetic(found, world)
        assert batch.device_batch * batch.accumulation * batch.world_size == found.trainer.global_batch
    assert sum(arm_masses(found.pairs).values()) == pytest.approx(1)


@pytest.mark.parametrize("name", names())
def test_every_recipe_opens_with_its_launch_line_and_one_override(name):
    header = (ROOT / "recipes" / f"{name}.yaml").read_text().split("defaults:")[0]
    assert all(line.startswith("#") for line in header.strip().splitlines())
    program = (
        r"python -m scope\.pool build"
        if name.startswith(("pool_", "misleadqa", "ragstress"))
        else r"accelerate launch .*train\.py"
    )
    assert re.search(rf"{program} recipe={name}( [\w.]+=\S+)?$", header, re.MULTILINE)
    program = program.removeprefix("accelerate launch ")
    override = re.search(rf"One override: .*{program} recipe={name} '?([^\s']+)'?$", header, re.MULTILINE)
    assert override, header
    assert load(name, [override[1]]) != loaded(name)


def yaml_keys(node, prefix=""):
    for key, value in node.items():
        if isinstance(value, dict) and f"{prefix}{key}" not in KEYS:
            yield from yaml_keys(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}"


@pytest.mark.parametrize("path", sorted((ROOT / "recipes").rglob("*.yaml")), ids=lambda p: f"{p.parent.name}/{p.stem}")
def test_no_recipe_file_has_a_key_outside_the_schema(path):
    text = path.read_text()
    tree = yaml.safe_load(text) or {}
    tree.pop("defaults", None)
    package = re.search(r"^# @package (\w+)", text)
    assert package or path.parent.name == "recipes", "a group file names its package"
    found = set(yaml_keys(tree, f"{package[1]}." if package else ""))
    assert found <= set(KEYS), found - set(KEYS)


def test_every_group_choice_that_no_recipe_selects_loads():
    selected = "".join((ROOT / "recipes" / f"{name}.yaml").read_text() for name in names())
    choices = [(path.parent.name, path.stem) for path in sorted((ROOT / "recipes").glob("*/*.yaml"))]
    assert len(choices) >= 12
    for group, choice in choices:
        if f"- {group}: {choice}\n" not in selected:
            needs = {"azure": ["engine.azure.endpoint=https://x.openai.azure.com"], "other": ["model.base=lab/x"]}
            assert value_faults(load("smollm2_135m", [f"{group}={choice}", *needs.get(choice, [])])) == []


# ---------------------------------------------------------------- every key is read


#: The judge's model and engine are of the same classes as the recipe's own.
NESTED = ("judge.model.", "judge.engine.")


def read_keys() -> set[str]:
    """Keys of a recipe that some code under scope/ reads, found in the syntax trees.

    A read is an attribute of something that holds the recipe or one of its sections: a parameter
    annotated as one, `X.section`, or a name bound to either. `getattr(section, name)` reads the
    keys whose names the file spells out as strings. Manifests and keys (`part`) read nothing.
    """
    prefixes = {key.rpartition(".")[0] for key in KEYS if "." in key and not key.startswith(NESTED)}
    sections = {prefix.rpartition(".")[2]: prefix for prefix in prefixes}
    classes = {type(operator.attrgetter(p)(Recipe())).__name__: p for p in prefixes} | {"Recipe": ""}
    found: set[str] = set()
    for path in sorted((ROOT / "scope").rglob("*.py")):
        tree = ast.parse(path.read_text("utf-8"))
        if path == ROOT / "scope" / "recipe.py":
            # Of the recipe's own module only these count: methods that others call, and what names the pools.
            body = next(n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == "Recipe").body
            wanted = [
                f
                for f in body
                if isinstance(f, ast.FunctionDef)
                and f.name in ("root", "arm_name", "folder", "pool_seed", "training_seed", "evaluation_seed")
            ]
            wanted += [f for f in tree.body if isinstance(f, ast.FunctionDef) and f.name == "_take_published"]
            owners, nodes = {"self": ""}, [n for f in wanted for n in ast.walk(f)]
        else:
            owners, nodes = {}, list(ast.walk(tree))

        def section(node, owners=owners):
            if isinstance(node, ast.Name):
                return owners.get(node.id)
            if isinstance(node, ast.Attribute):
                return sections.get(node.attr, owners.get(node.attr))
            return None

        for node in nodes:
            if isinstance(node, ast.arg) and node.annotation is not None:
                kind = re.search(r"\b(" + "|".join(classes) + r")\b", ast.unparse(node.annotation))
                if kind:
                    owners[node.arg] = classes[kind[1]]
        for node in nodes:
            if isinstance(node, ast.Assign):
                value = node.value
                for target in node.targets:
                    pairs = (
                        list(zip(target.elts, value.elts, strict=False))
                        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple)
                        else [(target, value)]
                    )
                    for left, right in pairs:
                        name = getattr(left, "id", getattr(left, "attr", None))
                        if name and (owner := section(right)) is not None:
                            owners.setdefault(name, owner)
        strings = {n.value for n in nodes if isinstance(n, ast.Constant) and isinstance(n.value, str)}
        for node in nodes:
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
                if (owner := section(node.value)) is not None:
                    found.add(f"{owner}.{node.attr}".lstrip("."))
            elif isinstance(node, ast.Call) and getattr(node.func, "id", "") == "getattr":
                owner, name = section(node.args[0]), node.args[1]
                if owner is None:
                    continue
                if isinstance(name, ast.JoinedStr):  # f"n_{which}"
                    form = "".join(re.escape(v.value) if isinstance(v, ast.Constant) else r"\w+" for v in name.values)
                    found |= {k for k in KEYS if re.fullmatch(re.escape(owner) + r"\." + form, k)}
                else:
                    found |= {f"{owner}.{s}" for s in strings}
    return found & set(KEYS)


#: Keys with one admissible value need no reader: value_faults refuses all others.
def is_fixed(key):
    field, value = KEYS[key]
    if len(field.metadata.get("choices", ())) == 1 or field.metadata.get("low", 0) == field.metadata.get("high"):
        return True
    found = copy.deepcopy(loaded("quickstart"))
    owner = found
    *path, leaf = key.split(".")
    for name in path:
        owner = getattr(owner, name)
    setattr(owner, leaf, field.metadata.get("high", value))
    return any(key in fault and f"must be {value:g}" in fault for fault in value_faults(found))


def test_every_key_of_a_recipe_is_read_by_some_code():
    read = read_keys()
    assert len(read) > 50, "the walk finds the reads at all"
    own = [key for key in KEYS if not key.startswith(NESTED)]
    assert [key for key in own if key not in read and not is_fixed(key)] == []


# ---------------------------------------------------------------- refusals

REFUSED = {
    # unknown keys, with the nearest valid one
    "trainer.max_step=3": "trainer.max_step is not a key of a recipe; did you mean trainer.max_steps",
    "trainer.lr=1e-5": "trainer.lr is not a key of a recipe; did you mean ",
    "pairs.lamda_m=0.2": "pairs.lamda_m is not a key of a recipe; did you mean pairs.lambda_m",
    "max_new_tokens=5": "did you mean judge.max_new_tokens or mining.max_new_tokens or evaluation.max_new_tokens?",
    "nonsense=1": "nonsense is not a key of a recipe; valid: name, seed, output_dir",
    # wrong types
    "trainer.max_steps=abc": "trainer.max_steps=abc has the wrong type; trainer.max_steps takes a value of type int",
    "trainer.max_steps=1.5": "trainer.max_steps takes a value of type integer",
    "trainer.beta=large": "trainer.beta takes a value of type float",
    "model.mirror=perhaps": "model.mirror: Value 'perhaps' is not a valid bool",
    "trainer.save_steps=5": "trainer.save_steps: ",
    "trainer.save_steps=[x]": "trainer.save_steps[0]",
    "seed=null": "seed: ",
    # nothing, or nothing usable
    "model.base=???": "model.base is not set; add model.base=VALUE",
    "evaluation.systems=[]": "evaluation.systems is empty; name at least one of base",
    "arm=..": "arm='..' names a folder",
    # groups
    "pairs=no_clen": "pairs=no_clen does not exist; did you mean no_clean",
    "model=qwen3": "model=qwen3 does not exist; did you mean qwen3_4b?",
    "engine=zzz": "engine=zzz does not exist; valid: ",
}

#: Impossible values are all named at once.
IMPOSSIBLE = {
    "engine.batch_rows=0": "engine.batch_rows=0 is out of range; transformers, vllm: most rows in a batch",
    "trainer.beta=0": "trainer.beta=0.0 is out of range; DPO temperature: greater than 0",
    "trainer.learning_rate=nan": "trainer.learning_rate=nan is out of range",
    "trainer.warmup_ratio=2": "at least 0 and at most 1",
    "pairs.rho=-0.1": "pairs.rho=-0.1 is out of range",
    "trainer.lora_dropout=0.1": "must be 0: step-0 loss is checked against ln 2",
    "trainer.label_smoothing=0.1": "trainer.label_smoothing must be 0",
    "trainer.save_steps=[0,9999]": "trainer.save_steps=[0, 9999] lie outside 1 to trainer.max_steps=",
    "trainer.lora_targets=[q_proj,lm_head]": "trainer.lora_targets=lm_head: embeddings and head are never adapted",
    "evaluation.systems=[bse]": "evaluation.systems=bse is not a system; did you mean base?",
    "trainer.report_to=[wandbb]": "did you mean wandb?",
    "pool.on_bad_row=skp": "pool.on_bad_row=skp is not a choice; did you mean skip? (one of error, skip)",
    "trainer.packing=tree": "did you mean trie? (one of none, trie)",
    "name=a/b": "name='a/b' names a folder",
    "arm=mine": "arm=mine is the name of a stage's folder",
    "model.base=": "model.base is empty",
}

MORE_REFUSED = {
    "+trainer.max_step=3": "trainer.max_step is not a key",
    "++nonsense=1": "nonsense is not a key",
    "trainer.learning_rate=inf": "trainer.learning_rate=inf",
    "trainer.lora_targets=[]": "trainer.lora_targets",
    "trainer=5": "trainer=5",
    "pairs=[full,no_clean]": "pairs",
}


@pytest.mark.parametrize(
    "override, sentence",
    [pytest.param(o, s, id=o) for o, s in REFUSED.items()]
    + [pytest.param(o, s, id=o) for o, s in MORE_REFUSED.items()],
)
def test_what_cannot_run_is_refused_with_the_nearest_alternative(override, sentence):
    with pytest.raises(RecipeError) as caught:
        load("quickstart", [override])
    assert sentence in str(caught.value)


def test_all_impossible_values_are_named_at_once_a_line_each():
    with pytest.raises(RecipeError) as caught:
        load("quickstart", list(IMPOSSIBLE))
    text = str(caught.value).splitlines()
    for override, sentence in IMPOSSIBLE.items():
        key = override.partition("=")[0]
        assert any(line.startswith(key) and sentence in line for line in text), override
    assert len(text) == len(IMPOSSIBLE)


@pytest.mark.parametrize("override", ["pool.columns={question: q}", "model.chat_template_kwargs.enable_thinking=false"])
def test_open_mappings_can_be_filled_from_the_command_line(override):
    found = load("quickstart", [override])
    assert found.pool.columns == {"question": "q"} or found.model.chat_template_kwargs == {"enable_thinking": False}


def test_valid_overrides_reach_the_recipe():
    found = load("quickstart", ["pairs=no_clean", "trainer.max_steps=3", "seed=7", "arm=mine2", "model.revision=abc"])
    assert (found.pairs.arm, found.trainer.max_steps, found.seed, found.model.revision) == ("no_clean", 3, 7, "abc")
    assert found.folder("train") == Path("runs/quickstart/mine2/train")
    assert found.folder("mine") == Path("runs/quickstart/mine")
    assert load("quickstart", ["pairs=misleading_only"]).arm_name == "standard_dpo"


def test_what_belongs_to_a_base_follows_it():
    llama = "meta-llama/Llama-3.2-3B-Instruct"
    for overrides in ([f"model.base={llama}"], ["model=llama32_3b"]):
        found = load("scope_qwen3_4b", overrides)
        assert (found.name, found.model.base) == ("scope_llama32_3b", llama)
        assert found.model.chat_template_kwargs == {"date_string": "01 Oct 2026"}
    own = load("scope_qwen3_4b", ["model.base=lab/x-1", "model.chat_template_kwargs.date_string=now"])
    assert (own.name, own.model.chat_template_kwargs) == ("scope_x-1", {"date_string": "now"})
    assert load("scope_qwen3_4b", ["model.base=lab/x", "name=mine"]).name == "mine"


@pytest.mark.parametrize(
    "base, settings, dtype",
    [
        ("Qwen/Qwen3-8B", {"enable_thinking": False}, "bfloat16"),
        ("models/qwen3-tiny/", {"enable_thinking": False}, "bfloat16"),
        ("meta-llama/Llama-3.1-8B-Instruct", {"date_string": "01 Oct 2026"}, "bfloat16"),
        ("lab/my-Qwen3", {}, "auto"),
        ("Qwen/Qwen2.5-7B-Instruct", {}, "auto"),
    ],
)
def test_a_base_brings_the_settings_of_its_family_and_other_recipes_keep_their_dtype(base, settings, dtype):
    for name in PAPER_RECIPES:
        found = load(name, [f"model.base={base}"])
        assert (found.model.chat_template_kwargs, found.model.dtype) == (settings, dtype)
        assert (found.model.base, found.name) == (base, f"scope_{base.strip('/').rpartition('/')[2]}")
    small = load("quickstart", [f"model.base={base}"])
    assert (small.model.base, small.model.chat_template_kwargs, small.name) == (base, settings, "quickstart")
    assert small.model.dtype == loaded("quickstart").model.dtype
    assert load("quickstart", [f"model.base={base}", "model.dtype=float32"]).model.dtype == "float32"


def test_chat_settings_of_ones_own_are_refused_by_a_hosted_api_and_never_dropped(tmp_path):
    own = "model.chat_template_kwargs.enable_thinking=true"
    for engine in ("engine=openai", "engine.kind=openai"):
        with pytest.raises(RecipeError, match=f"{own}: a hosted API renders its own template; leave it out"):
            load("scope_qwen3_4b", [engine, own])
        served = load("scope_qwen3_4b", [engine, "engine.base_url=http://127.0.0.1:8000/v1", own])
        assert served.model.chat_template_kwargs == {"enable_thinking": True}
    done, _ = run("recipe=scope_qwen3_4b", "engine=openai", own, entry="evaluate.py")
    assert done.returncode == 2 and own in done.stderr


def test_a_server_is_asked_for_the_base_alone_unless_told_otherwise():
    for engine in (["engine=vllm_serve"], ["engine.kind=openai", "engine.base_url=http://127.0.0.1:8000/v1"]):
        found = load("scope_qwen3_4b", engine)
        assert (found.evaluation.systems, found.evaluation.max_new_tokens) == (["base"], 2048)
        assert load("scope_qwen3_4b", [*engine, "systems=[prompt_defense]"]).evaluation.systems == ["prompt_defense"]
    assert load("scope_qwen3_4b", ["engine.kind=openai"]).evaluation.max_new_tokens == 8192


# ---------------------------------------------------------------- finished pools


@pytest.fixture(scope="module")
def items():
    """Training and evaluation items, more than the recipe smollm2_135m draws of its own."""
    recipe = load("smollm2_135m", ["pool.n_train=100", "pool.n_evaluation=70"])
    return pool.draw(recipe, "train")[0], pool.draw(recipe, "evaluation")[0]


@pytest.mark.parametrize("files", [("train.jsonl", "test.parquet"), ("train.jsonl.gz", "evaluation.jsonl")])
def test_finished_pools_are_taken_whole_by_one_override(files, items, tmp_path):
    for name, rows in zip(files, items, strict=True):
        write_rows(tmp_path / name.removesuffix(".gz"), rows)
        if name.endswith(".gz"):
            (tmp_path / name).write_bytes(gzip.compress((tmp_path / name.removesuffix(".gz")).read_bytes()))
            (tmp_path / name.removesuffix(".gz")).unlink()
    for recipe in ("smollm2_135m", *PAPER_RECIPES):
        pools = pool.prepare(load(recipe, [f"pool.published={tmp_path}", f"output_dir={tmp_path / recipe}"]))
        assert (pools.train, pools.evaluation) == items, "whole, whatever the recipe draws of its own"
    few = load("smollm2_135m", [f"pool.published={tmp_path}", "pool.n_train=3", f"output_dir={tmp_path / 'few'}"])
    assert pool.prepare(few).train == items[0][:3]


def test_finished_pools_on_the_hub_or_side_by_side_are_named_by_their_beginning(items, tmp_path):
    found = load("scope_qwen3_4b", ["pool.published=org/MIST"]).pool
    assert (found.train, found.train_split) == ("org/MIST-Train", "train")
    assert (found.evaluation, found.evaluation_split) == ("org/MIST-Bench", "test")
    assert (found.n_train, found.n_evaluation) == (0, 0)
    for name, file, rows in zip(("Train", "Bench"), ("train", "test"), items, strict=True):
        (tmp_path / f"MIST-{name}").mkdir()
        write_rows(tmp_path / f"MIST-{name}" / f"{file}.jsonl", rows)
    beside = load("scope_qwen3_4b", [f"pool.published={tmp_path}/MIST", f"output_dir={tmp_path / 'run'}"])
    assert [len(p) for p in (pool.prepare(beside).train, pool.prepare(beside).evaluation)] == [100, 70]


def test_finished_pools_that_cannot_be_told_are_refused(items, tmp_path):
    cases = {
        (): "holds none of train.*; it needs one file for pool.train",
        ("train.jsonl",): "holds none of test.*, evaluation.*, eval.*, bench.*; it needs one file for pool.evaluation",
        ("train.jsonl", "eval.jsonl", "test.jsonl"): "holds eval.jsonl and test.jsonl of test.*",
    }
    for number, (files, sentence) in enumerate(cases.items()):
        folder = tmp_path / str(number)
        folder.mkdir()
        for name in files:
            write_rows(folder / name, items[1])
        with pytest.raises(RecipeError, match=re.escape(sentence)):
            load("scope_qwen3_4b", [f"pool.published={folder}"])
    for where in (str(tmp_path / "nowhere"), "items.jsonl"):
        with pytest.raises(RecipeError, match="is neither a folder nor the beginning of two data sets' names"):
            load("scope_qwen3_4b", [f"pool.published={where}"])
    with pytest.raises(RecipeError, match=r"names both pools; leave pool\.train out"):
        load("scope_qwen3_4b", ["pool.published=org/MIST", "pool.train=mine.jsonl"])


def test_a_file_that_is_cut_is_said_to_be(items, tmp_path, caplog):
    write_rows(tmp_path / "items.jsonl", items[0])
    small = [f"pool.train={tmp_path / 'items.jsonl'}", f"output_dir={tmp_path}"]
    assert len(pool.draw(load("smollm2_135m", small), "train")[0]) == 96
    assert "the first 96 of its 100 items are taken (pool.n_train)" in caplog.text


def test_the_public_pool_is_one_group_that_any_recipe_takes():
    own = ("train", "n_train", "evaluation", "n_evaluation", "tier", "exclude", "families")
    shared = {key: getattr(loaded("pool_public").pool, key) for key in own}
    assert (shared["train"], shared["n_train"], shared["n_evaluation"]) == ("composed", 5000, 1000)
    for found in (*map(loaded, PAPER_RECIPES), load("quickstart", ["pool=mist"])):
        assert {key: getattr(found.pool, key) for key in own} == shared


def test_a_hosted_api_is_asked_as_in_the_paper_unless_told_otherwise():
    found = load("scope_qwen3_4b", ["engine=openai", "engine.model=gpt-5.5"])
    assert (found.evaluation.max_new_tokens, found.evaluation.systems) == (8192, ["base"])
    assert found.model.chat_template_kwargs == {} and found.engine.temperature is None
    assert load("scope_qwen3_4b", ["engine=openai", "evaluation.max_new_tokens=5"]).evaluation.max_new_tokens == 5


def test_pool_training_and_bootstrap_have_seeds_of_their_own():
    one = load("quickstart", ["seed=2"])
    assert (one.pool_seed, one.training_seed, one.evaluation_seed, one.arm_name) == (2, 2, 2, "scope")
    other = load("quickstart", ["trainer.seed=1"])
    assert (other.pool_seed, other.training_seed, other.evaluation_seed) == (0, 1, 0)
    named = [load("quickstart", ["arm=own", f"trainer.seed={n}"]).arm_name for n in range(3)]
    assert named == ["own", "own_seed1", "own_seed2"], "seeds of a named arm never meet in one folder"
    assert load("quickstart", ["arm=own_seed1", "trainer.seed=1"]).arm_name == "own_seed1"
    assert other.arm_name == "scope_seed1" and other.folder("mine") == load("quickstart").folder("mine")
    assert load("quickstart", ["trainer.seed=0"]).arm_name == "scope"


def test_a_pool_that_is_made_is_not_redrawn_by_another_seed(tmp_path):
    small = [f"output_dir={tmp_path}", "pool.n_train=8", "pool.n_evaluation=8"]
    made = load("quickstart", small)
    pool.keep(made, pool.prepare(made))
    with pytest.raises(Refusal, match=r"drawn with seed 0, this recipe has 1; .* give trainer\.seed=1"):
        pool.prepare(load("quickstart", [*small, "seed=1"]))
    assert pool.prepare(load("quickstart", [*small, "trainer.seed=1"])).hashes == pool.prepare(made).hashes


def test_a_source_that_cannot_be_had_is_refused_or_authored_and_counted(tmp_path):
    small = [f"data_dir={tmp_path}", "pool.n_train=8", "pool.n_evaluation=8", "pool.sources={svamp: 100}"]
    items, left_out = pool.draw(load("scope_qwen3_4b", small), "train")
    assert len(items) == 8 and {item.source for item in items} == {"authored"}
    assert left_out["svamp: too few questions, authored ones in their place"] == 8
    with pytest.raises(Refusal, match="svamp"):
        pool.draw(load("scope_qwen3_4b", [*small, "pool.missing_source=refuse"]), "train")


def test_what_stands_in_for_a_source_is_counted_where_it_is_read(tmp_path, capsys):
    """In the pools, made or kept, in their manifest and on the screen; also sets that nothing was kept clear of."""
    missing = [
        f"data_dir={tmp_path / 'none'}",
        f"output_dir={tmp_path / 'run'}",
        "pool.sources={svamp: 3, authored: 1}",
    ]
    recipe = load("scope_qwen3_4b", [*missing, "pool.n_train=8", "pool.n_evaluation=4"])
    counted = {"evaluation": {"svamp": 3}, "train": {"svamp": 6}}
    counted["exclude"] = dict.fromkeys(("gsm_ic", "gsm_plus", "sycophancy_answer"), 1)
    assert pool.prepare(recipe).stand_ins() == counted
    build(recipe)
    shown = capsys.readouterr().out
    assert "warning: pool.train: 6 authored items in place of 6 of svamp\n" in shown
    assert "warning: training was not kept clear of gsm_ic, gsm_plus, sycophancy_answer, which cannot be had" in shown
    manifest = json.loads((tmp_path / "run" / "pool" / "manifest.json").read_text())
    assert manifest["counts"] == {"train": 8, "evaluation": 4, "authored_instead": counted}
    assert pool.kept(recipe).stand_ins() == counted
    assert SUITES["mist"].load(recipe).facts["authored items in place of a source's"] == 3
    whole = load("smollm2_135m", [f"output_dir={tmp_path / 'whole'}", "pool.n_train=8", "pool.n_evaluation=4"])
    assert pool.prepare(whole).stand_ins() == {}, "authored items that were asked for stand in for nothing"


def test_the_dry_run_says_which_sources_it_looked_at(tmp_path, capsys):
    preview(load("scope_qwen3_4b"))
    shown = capsys.readouterr().out
    assert shown.count("sources come from the hub and were not checked; authored items stand in for what") == 2
    preview(load("pool_public"))
    assert "were not checked; one that cannot be had ends the run" in capsys.readouterr().out
    # Files of no use at all: they are there, and nobody reads them.
    for name in ("svamp/train", "svamp/test", "gsm_ic/test"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / f"{name}.jsonl").write_text("no row")
    small = [f"data_dir={tmp_path}", "pool.sources={svamp: 3, gsm8k: 1}", "pool.n_train=8", "pool.n_evaluation=4"]
    preview(load("scope_qwen3_4b", [*small, "pool.exclude=[gsm_ic, gsm_plus]"]))
    shown = capsys.readouterr().out
    assert (
        f"{tmp_path} lacks gsm8k (2): 2 authored items take their place; training is not kept clear of gsm_plus"
        in shown
    )
    assert f"{tmp_path} lacks gsm8k (1): 1 authored items take their place\n" in shown
    preview(load("scope_qwen3_4b", [*small, "pool.sources.gsm8k=0", "pool.exclude=[gsm_ic]"]))
    assert capsys.readouterr().out.count(f"every source has its files in {tmp_path}; they were not read") == 2
    with pytest.raises(Refusal, match=r"gsm8k: holds no train|gsm8k/main: holds no train"):
        preview(load("pool_public", small))


def test_parts_are_plain_data():
    found = loaded("scope_qwen3_4b")
    assert found.part("pairs") == {
        "pairs": {"arm": "full", "lambda_m": 0.25, "lambda_c": 0.25, "lambda_p": 0.5, "rho": 0.5}
    }
    assert found.resolved()["model"]["chat_template_kwargs"] == {"enable_thinking": False}


def test_every_key_has_a_help_text():
    assert [key for key, (field, _) in KEYS.items() if not field.metadata.get("help")] == []


def test_every_ablation_arm_has_a_recipe_group_and_its_own_folder():
    stems = {path.stem for path in (ROOT / "recipes" / "pairs").glob("*.yaml")}
    assert stems == set(recipes.ARMS)
    assert len(set(recipes.ARMS.values())) == len(recipes.ARMS)


# ---------------------------------------------------------------- batch arithmetic


def test_the_same_batches_on_any_number_of_devices():
    found = loaded("scope_qwen3_4b")
    # 256 = 4 a device x 8 accumulated x 8 GPUs (the paper's node) = 4 x 64 x 1 = 4 x 4 x 16
    for world, accumulation in ((1, 64), (8, 8), (16, 4)):
        batch = batch_arithmetic(found, world)
        assert (batch.accumulation, batch.rows) == (accumulation, 256 * 300)


def test_an_indivisible_batch_is_refused_with_its_neighbours():
    found = load("scope_qwen3_4b", ["trainer.global_batch=250"])
    with pytest.raises(RecipeError, match=r"= 32; use 224 or 256, or another"):  # 250 lies between 7 x 32 and 8 x 32
        batch_arithmetic(found, 8)
    tiny = load("scope_qwen3_4b", ["trainer.global_batch=3"])
    with pytest.raises(RecipeError, match=r"= 4; use 4, or another"):  # never 0
        batch_arithmetic(tiny, 1)


# ---------------------------------------------------------------- the paper's settings


@pytest.mark.parametrize("name", PAPER_RECIPES)
def test_the_papers_settings_stand_in_its_recipes(name):
    if not FACTS.exists():
        pytest.skip(f"the reference facts are not at {FACTS}")
    facts = {row["name"]: float(row["value"]) for row in csv.DictReader(FACTS.open())}
    found = loaded(name)
    trainer, pairs = found.trainer, found.pairs
    ours = {
        "dpo_beta": trainer.beta,
        "learning_rate": trainer.learning_rate,
        "warmup_ratio": trainer.warmup_ratio,
        "max_grad_norm": trainer.max_grad_norm,
        "max_sequence_length": trainer.max_length,
        "per_device_batch_size": trainer.device_batch,
        "gradient_accumulation": batch_arithmetic(found, int(facts["train_gpus"])).accumulation,
        "lora_rank": trainer.lora_r,
        "lora_alpha": trainer.lora_alpha,
        "train_steps": trainer.max_steps,
        "intermediate_checkpoint_step": trainer.save_steps[0],
        "train_seed": found.seed,
        "adapter_merge_coefficient": found.merge.coefficient,
        "lambda_misleading": pairs.lambda_m,
        "lambda_clean": pairs.lambda_c,
        "lambda_nonadversarial": pairs.lambda_p,
        "rho": pairs.rho,
        "train_pool_items": found.pool.n_train,
        "eval_items": found.pool.n_evaluation,
    }
    assert ours == {key: facts[key] for key in ours}
    assert {100 * mass for mass in arm_masses(pairs).values()} == {facts["sampling_mass_per_condition"]}
    assert trainer.save_steps == [60, 300] and trainer.schedule == "cosine" and trainer.loss == "sigmoid"
    assert sorted(trainer.lora_targets) == sorted(
        ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
    )
    assert found.mining.max_new_tokens == found.evaluation.max_new_tokens == 2048
    pinned = {"enable_thinking": False} if "qwen3" in name else {"date_string": "01 Oct 2026"}
    assert found.model.chat_template_kwargs == pinned, "no thinking, and the same prompts on any day"


# ---------------------------------------------------------------- the command line


def test_help_answers_at_once_and_names_the_recipes():
    done, imported = run("--help")
    assert imported == [], "what takes seconds to import is not needed for help"
    text = done.stdout
    assert done.returncode == 0 and all(name in text for name in names())
    assert "accelerate launch train.py recipe=NAME" in text and "dry_run=true" in text


def test_help_with_a_recipe_explains_every_key():
    done, _ = run("--help", "recipe=quickstart", entry="evaluate.py")
    assert done.returncode == 0
    shown = {line.split()[0] for line in done.stdout.splitlines() if line.startswith("  ")}
    assert set(KEYS) <= shown


def test_cfg_job_prints_the_resolved_recipe():
    done, _ = run("recipe=quickstart", "--cfg", "job", "trainer.max_steps=3", "pairs=no_clean")
    assert done.returncode == 0, done.stderr
    printed = yaml.safe_load(done.stdout)
    assert printed["trainer"]["max_steps"] == 3 and printed["pairs"]["arm"] == "no_clean"
    assert set(yaml_keys(printed)) == set(KEYS)


def test_the_dry_run_of_the_papers_recipe_states_its_arithmetic(tmp_path):
    out = tmp_path / "run"
    done, imported = run("recipe=scope_qwen3_4b", "dry_run=true", f"output_dir={out}")
    assert done.returncode == 0, done.stderr
    assert imported == []
    assert "256 pairs a step = 4 a device x 64 accumulated x 1 process" in done.stdout
    assert "300 steps, 76800 rows; how many quartets, and so passes over them, is unknown" in done.stdout
    assert "train       5000 items, composed" in done.stdout and "evaluation  1000 items, composed" in done.stdout
    assert "clean 25 %, misleading 25 %, correct 25 %, irrelevant 25 %" in done.stdout
    assert not out.exists(), "a dry run writes nothing"


def test_the_dry_run_counts_the_processes_of_its_launcher(monkeypatch, capsys):
    monkeypatch.setenv("WORLD_SIZE", "8")
    preview(load("scope_llama32_3b", ["pairs=misleading_only", "pool.n_train=8", "pool.n_evaluation=8"]))
    text = capsys.readouterr().out
    assert "4 a device x 8 accumulated x 8 processes" in text
    assert "misleading 100 %" in text and "76800 rows" in text


@pytest.mark.parametrize(
    "arguments, sentence",
    [
        ([], "no recipe is named; add recipe=NAME with one of misleadqa, pool_authored"),
        (["recipe=quickstart", "recipe=smollm2_135m"], "recipe=quickstart,smollm2_135m names several recipes"),
        (["recipe=quickstart,smollm2_135m"], "names several recipes; run one at a time"),
        (["recipe=quikstart"], "recipe=quikstart does not exist; did you mean quickstart?"),
        (["recipe=../quickstart"], "recipe=../quickstart does not exist"),
        (["recipe=quickstart", "dry_run"], "'dry_run' is not an override; write key=value"),
        (["recipe=quickstart", "pairs=no_clen"], "pairs=no_clen does not exist; did you mean no_clean"),
        (["recipe=quickstart", "pairs.arm=no_clean", "dry_run=true"], "pairs.arm=no_clean removes clean rows"),
        pytest.param(["recipe=quickstart", "trainer=5"], "trainer=5"),
        pytest.param(["--help", "recipe=nope"], "recipe=nope does not exist"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_refusal_on_the_command_line_is_a_sentence_and_exits_with_2(arguments, sentence):
    done, _ = run(*arguments)
    assert done.returncode == 2 and done.stdout == ""
    assert sentence in done.stderr and "Traceback" not in done.stderr
    assert all(line.startswith("error: ") for line in done.stderr.splitlines())


@pytest.mark.parametrize(
    "overrides, sentence",
    [
        (["pairs.arm=no_clean"], "pairs.arm=no_clean removes clean rows, but the masses give them 0.25; leave pairs."),
        (["pairs.lambda_m=0.5"], "lambda_m + lambda_c + lambda_p is 1.25; the three must add up to 1"),
        (
            ["trainer.global_batch=9", "trainer.device_batch=8"],
            "trainer.device_batch=8 x 1 processes = 8; use 8 or 16, or another",
        ),
        (["pool.train=/nowhere.jsonl"], "/nowhere.jsonl:0: file: does not exist"),
        (["mining.note=/nowhere"], "/nowhere: the note cannot be read"),
        (["mining.leak_patterns=/nowhere"], "/nowhere: is not a list of [[leak]] entries"),
        (["pool.n_train=0"], "n_items is 0"),
        (["pool.families=[smm]"], "unknown family 'smm'; did you mean sum?"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_the_dry_run_refuses_what_the_run_would_stumble_over(overrides, sentence):
    found = load("quickstart", [*overrides, "dry_run=true"])
    with pytest.raises(Refusal) as caught:
        preview(found)
    assert sentence in str(caught.value)


@pytest.fixture(scope="module")
def sweep():
    """(finished process of a sweep over two arms, did it leave multirun.yaml in the working folder)."""
    left = ROOT / "multirun.yaml"
    left.unlink(missing_ok=True)
    done, _ = run("recipe=quickstart", "-m", "pairs=full,no_clean", "dry_run=true", "pool.n_train=8")
    found = left.exists()
    left.unlink(missing_ok=True)
    return done, found


def test_a_sweep_runs_every_job(sweep):
    done, _ = sweep
    assert done.returncode == 0, done.stderr
    masses = [" ".join(line.split()[1:]) for line in done.stdout.splitlines() if line.startswith("masses")]
    # Without the clean quarter the other three weigh a third each.
    assert masses == [
        "clean 25 %, misleading 25 %, correct 25 %, irrelevant 25 %",
        "clean 0 %, misleading 33.3333 %, correct 33.3333 %, irrelevant 33.3333 %",
    ]
    assert "arm scope," in done.stdout and "arm no_clean," in done.stdout


def test_a_sweep_leaves_nothing_in_the_working_folder(sweep):
    assert not sweep[1]


def test_a_sweep_on_several_processes_is_refused():
    done, _ = run("recipe=quickstart", "-m", "pairs=full,no_clean", "dry_run=true", WORLD_SIZE="2")
    assert done.returncode == 2 and done.stdout == ""
    assert "error: -m runs one job after the other" in done.stderr


def test_a_sweep_checks_every_job_before_the_first_one_runs():
    done, _ = run("recipe=quickstart", "-m", "trainer.max_steps=4,0", "dry_run=true")
    (ROOT / "multirun.yaml").unlink(missing_ok=True)
    assert done.returncode == 2 and done.stdout == ""
    assert "trainer.max_steps=0 is out of range" in done.stderr and "Traceback" not in done.stderr


def test_every_fault_of_a_recipe_is_a_line_of_its_own():
    done, _ = run("recipe=quickstart", "trainer.beta=-1", "seed=-1", "dry_run=true")
    assert done.returncode == 2
    assert [line.partition("=")[0] for line in done.stderr.splitlines()] == ["error: seed", "error: trainer.beta"]


def test_masses_in_a_recipe_are_the_conditions_of_the_plan():
    masses = arm_masses(load("quickstart", ["pairs.lambda_m=0.4", "pairs.lambda_c=0.1", "pairs.rho=0.2"]).pairs)
    # lambda_p = 0.5: correct 0.5 x 0.2 = 0.1, irrelevant 0.5 x 0.8 = 0.4
    assert masses == pytest.approx(
        {Condition.CLEAN: 0.1, Condition.MISLEADING: 0.4, Condition.CORRECT: 0.1, Condition.IRRELEVANT: 0.4}
    )


def test_the_schema_is_plain_dataclasses():
    assert all(not dataclasses.is_dataclass(value) for _, value in KEYS.values())
