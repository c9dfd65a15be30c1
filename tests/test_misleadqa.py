"""The suites of MisleadQA: items that are refused, requests, labels and rates by hand, whole runs of a real model."""

import dataclasses
import json
import random

import numpy as np
import pyarrow.parquet as pq
import pytest
from scoped_items import ITEMS, release, scoped
from server import Server, local_engine, small_model
from test_report_figures import check_labels

from scope.artifacts import Refusal, StageError, write_jsonl
from scope.engines import Choices, EngineError, Store, score_choices
from scope.evaluation import evaluate
from scope.evaluation.bootstrap import bootstrap_all, replicate_weights
from scope.evaluation.misleadqa.items import read_items
from scope.evaluation.misleadqa.labels import Labels, lr, read_choice, rlr
from scope.evaluation.misleadqa.prompts import LETTERS
from scope.evaluation.results import Settings, results
from scope.evaluation.suites import SUITES
from scope.items import Completion, Quartet, write_rows
from scope.recipe import load
from scope.report import figures, tables
from scope.report.compare import compare
from scope.report.figures import style
from scope.report.markup import as_html, as_latex, as_markdown
from scope.report.terminal import mean_name, table
from scope.tables import TableError

NAMES = ("misleadqa", "misleadqa_scope", "misleadqa_faithful", "misleadqa_order", "misleadqa_condition")
MISLEADQA = SUITES["misleadqa"]


def recipe(tmp_path, *overrides, items=ITEMS):
    source = release(tmp_path / f"release{'' if items is ITEMS else len(list(tmp_path.iterdir()))}", items)
    return load("smollm2_135m", [f"evaluation.items.misleadqa={source}", *overrides])


# ---------------------------------------------------------------- items


def test_a_release_is_read_in_one_seeded_order_whatever_the_order_of_its_rows(tmp_path):
    whole = MISLEADQA.load(recipe(tmp_path))
    assert len(whole.items) == 11 and {item.split for item in whole.items} == {"main"}
    shuffled = random.Random(0).sample(ITEMS, len(ITEMS))
    again = MISLEADQA.load(recipe(tmp_path, items=shuffled))
    assert again.items == whole.items and again.key == whole.key
    assert [item.id for item in SUITES["misleadqa_condition"].load(recipe(tmp_path)).items] in (
        ["m11", "m12"],
        ["m12", "m11"],
    )


def test_the_sample_has_so_many_items_of_each_group_and_is_a_part_of_a_larger_one(tmp_path):
    scope = SUITES["misleadqa_scope"]
    one, two = (scope.load(recipe(tmp_path, f"evaluation.misleadqa.sample_per_group={n}")).items for n in (1, 2))
    assert sorted(item.group for item in one) == sorted({item.group for item in ITEMS if item.split == "main"})
    assert len(two) == 10 and {item.id for item in one} < {item.id for item in two}
    assert SUITES["misleadqa_order"].load(recipe(tmp_path)).items == scope.load(recipe(tmp_path)).items


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"dimension": "colour"}, "dimension: m0: unknown 'colour'; use one of time, location"),
        ({"options": ("$6.85", "$7.00", "7.00.", "$4.25")}, "are equal after normalisation"),
        ({"f": "On 1 January 2007 the wage of Ohio was $7.00."}, "replayed on G they do not give F"),
    ],
)
def test_an_item_that_is_not_as_it_should_be_is_refused_with_its_place(tmp_path, changed, sentence):
    source = tmp_path / "own.jsonl"
    write_jsonl(source, [*map(dataclasses.asdict, (scoped(1), scoped(0, **changed)))])
    with pytest.raises(TableError) as refused:
        MISLEADQA.load(load("smollm2_135m", [f"evaluation.items.misleadqa={source}"]))
    assert "own.jsonl:2: " in str(refused.value) and sentence in str(refused.value)


def test_a_release_that_was_changed_after_it_was_frozen_is_refused(tmp_path):
    given = recipe(tmp_path)
    file = tmp_path / "release" / "items.jsonl"
    file.write_text(file.read_text("utf-8").replace("$7.00", "$7.05"), "utf-8")
    with pytest.raises(Refusal, match=r"items.jsonl: was changed after the release was frozen"):
        MISLEADQA.load(given)
    (tmp_path / "release" / "SHA256SUMS").unlink()
    with pytest.raises(Refusal, match=r"is no release of MisleadQA: it has no SHA256SUMS"):
        MISLEADQA.load(given)


def test_a_file_of_items_is_read_too_and_no_items_are_a_sentence(tmp_path):
    write_jsonl(tmp_path / "own.jsonl", map(dataclasses.asdict, ITEMS))
    assert read_items(str(tmp_path / "own.jsonl")) == ITEMS
    with pytest.raises(StageError, match=r"misleadqa: has no items of its own; set evaluation.items.misleadqa"):
        MISLEADQA.load(load("smollm2_135m"))
    with pytest.raises(StageError, match=r"holds no item of the split condition; take misleadqa_condition out"):
        SUITES["misleadqa_condition"].load(recipe(tmp_path, items=ITEMS[:3]))


def test_questions_that_were_trained_on_are_refused(tmp_path):
    given = recipe(tmp_path, f"output_dir={tmp_path / 'run'}")
    (tmp_path / "run" / "mine").mkdir(parents=True)
    asked = {
        f"prompt_{c}": f"Solve this.\n\n{ITEMS[5].question}" for c in ("clean", "misleading", "correct", "irrelevant")
    }
    more = {"chosen": "x", "rejected": "y", "chosen_source": "clean", "chosen_answer": "1", "rejected_answer": "2"}
    more |= {"source": "s", "answer_type": "numeric", "channel": "forum", "gold": "1"}
    write_rows(
        tmp_path / "run" / "mine" / "quartets.jsonl",
        [Quartet("q", **asked, **more, chosen_request="", rejected_request="")],
    )
    with pytest.raises(StageError, match=r"misleadqa: 1 quartets that were trained on ask its questions"):
        MISLEADQA.check_held_out(given, MISLEADQA.load(given).items)


# ---------------------------------------------------------------- requests and labels


def test_a_prompt_has_the_options_then_the_contexts_in_order_and_says_nothing_of_them():
    item = scoped(0)
    plain = MISLEADQA.prompt(item, "none")
    assert plain.endswith("A. $6.85\nB. $7.00\nC. $8.10\nD. $4.25\nE. Insufficient information")
    assert MISLEADQA.prompt(item, "fg") == f"{plain}\n\n{item.f}\n\n{item.g}"
    assert MISLEADQA.prompt(item, "s") == f"{plain}\n\n{item.s}"
    begins = {MISLEADQA.prompt(item, cell)[: len(plain)] for cell in MISLEADQA.cells}
    assert begins == {plain}, "the cells of an item share question and options"
    faithful = SUITES["misleadqa_faithful"]
    assert faithful.prompt(item, "gs") == MISLEADQA.prompt(item, "gs") != faithful.prompt(item, "cf_gs")
    assert faithful.prompt(item, "cf_gs").endswith(f"\n\n{item.g}\n\n{item.s}")
    judged = SUITES["misleadqa_scope"].prompt(item, "judge_s")
    assert judged.endswith(f"Passage: {item.s}") and "Not applicable" in judged


def test_rotated_options_keep_e_and_take_the_keys_along():
    order, item = SUITES["misleadqa_order"], scoped(0)
    assert "A. $7.00\nB. $8.10\nC. $4.25\nD. $6.85\nE. Insufficient" in order.prompt(item, "r1_none")
    assert "A. $8.10\nB. $4.25\nC. $6.85\nD. $7.00\nE. Insufficient" in order.prompt(item, "r2_s")
    for cell, gold, lure in (("none", "A", "B"), ("r1_s", "D", "A"), ("r2_f", "C", "D")):
        labels = [order.outcome(item, cell, said(letter))["label"] for letter in (gold, lure, "E")]
        assert labels == ["gold", "lure", "abstain"], cell


def said(text, finish="choice"):
    return Completion("k", "h", text, finish, 9, 1)


@pytest.mark.parametrize(
    ("text", "finish", "label", "constrained"),
    [
        ("A", "choice", "gold", True),
        ("B", "choice", "lure", True),
        ("C", "choice", "other", True),
        ("E", "choice", "abstain", True),
        ("The answer is B.", "stop", "lure", False),
        ("A", "length", "invalid", False),
        ("It depends.", "stop", "invalid", False),
        ("", "stop", "invalid", False),
        ("", "error", "failed", None),
    ],
)
def test_labels_of_answers(text, finish, label, constrained):
    found = MISLEADQA.outcome(scoped(0), "s", said(text, finish))
    assert (found["label"], found["constrained"]) == (label, constrained)


def test_a_scope_judgement_is_a_whole_label_or_invalid():
    scope = SUITES["misleadqa_scope"]
    read = {
        t: scope.outcome(scoped(0), "judge_s", said(t, "stop"))["label"]
        for t in ("Not applicable.", "It is applicable")
    }
    assert read == {"Not applicable.": "not_applicable", "It is applicable": "invalid"}
    assert scope.outcome(scoped(0), "judge_f", said("Cannot determine"))["label"] == "cannot_determine"
    assert read_choice(said("B"), LETTERS, letters=True)["value"] == "B"


@pytest.mark.parametrize(
    "text", ["{question} {options}", "{question}{options}{contexts}{gold}", "{question!r}{options}{contexts}", "{"]
)
def test_a_template_with_other_fields_is_refused(tmp_path, text):
    (tmp_path / "own.txt").write_text(text)
    given = recipe(tmp_path, f"evaluation.misleadqa.prompt={tmp_path / 'own.txt'}")
    with pytest.raises(
        StageError, match=r"own.txt: .*evaluation.misleadqa.prompt.* \{question\}, \{options\}, \{contexts\}"
    ):
        MISLEADQA.using(given).settings(given)


def test_a_recipe_s_own_template_is_what_is_asked(tmp_path):
    (tmp_path / "own.txt").write_text("{{Pick}} one.\n{question}\n{options}{contexts}\n")
    given = recipe(tmp_path, f"evaluation.misleadqa.prompt={tmp_path / 'own.txt'}")
    own = MISLEADQA.using(given)
    assert own.prompt(scoped(0), "g").startswith("{Pick} one.\nWhat was") and own.prompt(scoped(0), "g").endswith(
        scoped(0).g
    )
    assert own.settings(given) != MISLEADQA.settings(given), "another prompt is another evaluation"


# ---------------------------------------------------------------- rates


MARKS = {"g": "gold", "l": "lure", "a": "abstain", "o": "other", "i": "invalid", "f": "failed"}
#: Six items: B is the first four, A the first three.
BASE = {"none": "ggggla", "g": "gggogo", "s": "glgall", "f": "llgolo", "gs": "gggoll", "sg": "glgooo", "gf": "glgooo",
        "fg": "llgioo"}  # fmt: skip
BETTER = {**BASE, "s": "gggall", "f": "lggolo", "fg": "glgioo"}


def rows(system, marks):
    return [
        {
            "system": system,
            "item_id": f"m{n}",
            "cell": cell,
            "label": MARKS[m],
            "n_tokens": 1,
            "finish_reason": "choice",
        }
        for cell, column in marks.items()
        for n, m in enumerate(column)
    ]


def as_rows(marks):
    """Cell -> rows of one system, as a suite's rates take them."""
    return {cell: [{"label": MARKS[m]} for m in column] for cell, column in marks.items()}


def summed(systems, suite="misleadqa", items=ITEMS[:6], replicates=50, **settings):
    every = [row for name, marks in systems.items() for row in rows(name, marks)]
    found = results(SUITES[suite], items, every, Settings(replicates=replicates, **settings))
    return {"model": "lab/base", "arm": "scope", "facts": {}, **found}


def test_rates_are_those_counted_by_hand():
    found = summed({"base": BASE, "merged": BETTER})
    base = {name: rate["estimate"] for name, rate in found["systems"]["base"]["rates"].items()}
    assert base == pytest.approx(
        {
            "gold_s": 2 / 4,
            "lr_s": 1 / 4,
            "lr_f": 2 / 4,
            "delta_lr": 1 / 4,
            "rlr_s": 1 / 6,
            "rlr_f": 3 / 6,
            "delta_rlr": 2 / 6,
        }
    )
    assert found["systems"]["base"]["strata"] == {"b": 4, "a": 3, "a_clusters": 2}
    panel = found["systems"]["base"]["panels"]
    assert {k: r["estimate"] for k, r in panel["effects"]["all"].items()} == pytest.approx(
        {
            "delta_lr": 1 / 4,
            "delta_rlr": 2 / 6,
            "reduction_f": 2 / 3 - 1 / 2,
            "reduction_s": 1 / 3 - 1 / 6,
            "order_f": 1 / 3,
            "order_s": 1 / 3,
        }
    )
    assert panel["outcomes"]["a fg"]["lure"]["events"] == 2 and panel["outcomes"]["b f"]["other"]["events"] == 1
    assert panel["paired"]["misleading_first"]["gold"]["n"] == 2, "the items of A that are gold with S before G"
    assert found["differences"]["merged"]["rates"]["lr_s"]["estimate"] == pytest.approx(-1 / 4)
    assert found["systems"]["base"]["cells"]["fg"]["labels"]["invalid"] == 1


def test_invalid_answers_stay_in_the_denominators_and_failed_ones_withhold():
    invalid = summed({"base": {**BASE, "s": "giiall"}})["systems"]["base"]
    assert invalid["rates"]["lr_s"]["estimate"] == 0 and invalid["panels"]["outcomes"]["b s"]["invalid"]["events"] == 2
    failed = summed({"base": {**BASE, "s": "gfgall"}})["systems"]["base"]
    assert {m for m, rate in failed["rates"].items() if rate.get("withheld")} == {"gold_s", "lr_s", "delta_lr"}
    assert failed["panels"]["orders"]["a"]["s_first"] == {
        "estimate": None, "interval": None, "sd": None, "undefined_replicates": 0, "method": None,
        "few": False, "withheld": 1
    }  # fmt: skip
    alone = summed({"base": {**BASE, "s": "gfgall"}}, complete_only=True)
    assert alone["items"] == 5 and alone["systems"]["base"]["strata"]["b"] == 3


@pytest.mark.parametrize("suite", NAMES)
def test_every_metric_names_exactly_the_cells_that_it_depends_on(suite):
    """Changing all labels of a cell outside `needs` never changes a metric; of one inside, for some labels it does."""
    declared, rng = SUITES[suite], np.random.default_rng(3)
    choices = [label for label in declared.labels if label != "failed"]
    items = [scoped(n % 11) for n in range(60)]
    cells = {
        c: rng.choice(choices[:2] if c.endswith(("none", "_g")) or c == "g" else choices, 60) for c in declared.cells
    }

    def estimates(labels):
        made = declared.rates(items, {c: [{"label": label} for label in column] for c, column in labels.items()})
        return {metric: rate.estimate() for metric, rate in made.items()}

    before, moved = estimates(cells), {metric: set() for metric in declared.headings}
    for cell in declared.cells:
        for _ in range(6):
            after = estimates({**cells, cell: rng.choice(choices, 60)})
            for metric in declared.headings:
                if after[metric] != before[metric]:
                    moved[metric].add(cell)
    assert moved == {metric: set(declared.needs(metric)) for metric in declared.headings}


def test_a_system_with_few_clusters_in_a_has_estimates_only_and_joins_no_mean():
    items = [scoped(n % 11, id=f"m{n}", cluster=f"c{n}", dependency_group=f"d{n // 2}") for n in range(40)]

    def marks(right):
        return {cell: "g" * right + "o" * (40 - right) for cell in BASE}

    found = summed({"base": marks(30), "few": marks(19), "merged": marks(25)}, items=items)
    assert found["not_inferred"] == ["few"] and found["mean"]["systems"] == ["base", "merged"]
    few = found["systems"]["few"]["rates"]["lr_s"]
    assert few["estimate"] == 0 and few["interval"] is None and few["sd"] is None
    none_lured = found["systems"]["merged"]["rates"]["lr_s"]
    assert none_lured["method"] == "wilson" and none_lured["interval"][0] == 0 < none_lured["interval"][1]
    assert found["differences"]["few"]["rates"]["lr_s"]["interval"] is None
    text = table(found)
    assert "their strata hold too few clusters: few" in text and "mean of 2" in text


def test_undefined_replicates_leave_the_mean_undefined_and_no_system_out():
    """App. C.2, in plain Python: each of two systems has one cluster in its stratum."""
    items = [scoped(n, cluster=f"c{n}", dependency_group="d") for n in range(3)]
    strata = {"one": np.array([1, 0, 0], bool), "two": np.array([0, 1, 0], bool)}
    happened = np.array([1, 1, 0], bool)
    from scope.evaluation.misleadqa.labels import share
    from scope.evaluation.paired import mean_of

    rates = {name: share(stratum, happened) for name, stratum in strata.items()}
    clusters = [item.cluster for item in items]
    found = bootstrap_all({**rates, "mean": mean_of(list(rates.values()))}, clusters, 2000, 2027)
    weights = replicate_weights(clusters, 2000, 2027)
    undefined = sum(1 for w in weights if w[0] == 0 or w[1] == 0)
    assert found["mean"].undefined == undefined > found["one"].undefined > 0


def test_the_cluster_bootstrap_equals_one_in_plain_python():
    """LR and RLR of two systems, their contrasts and means: loops over clusters and items, no arrays."""
    rng = random.Random(1)
    names = list("gloa")
    cluster = [rng.choice("uvwxyz") for _ in range(30)]
    marked = {
        system: {
            c: "".join(rng.choices(names, [6, 2, 1, 1] if c in ("none", "g") else [3, 4, 1, 1], k=30)) for c in BASE
        }
        for system in ("one", "two")
    }
    labels = {
        system: Labels({c: [{"label": MARKS[m]} for m in column] for c, column in own.items()})
        for system, own in marked.items()
    }
    rates = {}
    for system, own in labels.items():
        for context in "sf":
            rates[system, "lr", context], rates[system, "rlr", context] = lr(own, context), rlr(own, context)
    joined = {"delta": sum_of([rates[s, "rlr", "f"] - rates[s, "rlr", "s"] for s in labels]) / 2}
    found = bootstrap_all(
        {**{"".join(k): r for k, r in rates.items()}, **joined}, cluster, 300, 2027, levels={"delta": 0.975}
    )
    weights = replicate_weights(cluster, 300, 2027)
    drawn = []
    for row in weights:
        gaps = []
        for own in marked.values():
            value = {}
            for context in "sf":
                over = under = 0
                for n, w in enumerate(row.tolist()):
                    if own["none"][n] == "g" and own["g"][n] == "g":
                        under += 2 * w
                        over += w * ((own[f"g{context}"][n] == "l") + (own[f"{context}g"][n] == "l"))
                value[context] = over / under if under else None
            gaps.append(None if None in value.values() else value["f"] - value["s"])
        if None not in gaps:
            drawn.append(sum(gaps) / 2)
    ordered = sorted(drawn)

    def percentile(p):
        at = p * (len(ordered) - 1)
        low = int(at)
        return ordered[low] + (at - low) * (ordered[min(low + 1, len(ordered) - 1)] - ordered[low])

    ours = found["delta"]
    assert (ours.low, ours.high) == pytest.approx((percentile(0.0125), percentile(0.9875)))
    assert ours.undefined == 300 - len(drawn) and ours.level == 0.975
    assert {tuple(sorted({weights[0][n] for n in range(30) if cluster[n] == c})) for c in set(cluster)} <= {
        (k,) for k in range(30)
    }, "the items of a cluster are drawn together"


def sum_of(rates):
    total = rates[0]
    for rate in rates[1:]:
        total = total + rate
    return total


def test_primary_contrasts_hold_jointly_and_everything_else_at_95():
    items = [scoped(n % 11, id=f"m{n}", cluster=f"c{n}", dependency_group=f"d{n // 3}") for n in range(60)]
    rng = random.Random(2)
    marks = {name: {c: "".join(rng.choices("glo", [8, 3, 1], k=60)) for c in BASE} for name in ("base", "merged")}
    found, plain = (summed(marks, items=items, replicates=800, level=level) for level in (0.95, 0.975))
    rates = MISLEADQA.rates(items, as_rows(marks["base"]))
    clusters = MISLEADQA.units(items)["cluster"]
    for metric, rate in bootstrap_all(
        rates, clusters, 800, 2027, levels=dict.fromkeys(MISLEADQA.primary, 0.975)
    ).items():
        assert found["systems"]["base"]["rates"][metric]["interval"] == [rate.low, rate.high]
    assert found["levels"] == {"delta_lr": 0.975, "delta_rlr": 0.975}
    narrow = found["differences"]["merged"]["rates"]["delta_lr"]["interval"]
    assert narrow != plain["differences"]["merged"]["rates"]["delta_lr"]["interval"], "a difference is not primary"
    by_group = found["sensitivity"]["dependency group"]
    assert set(by_group) == {"systems", "mean"} and found["units"] == {"cluster": 60, "dependency group": 20}


# ---------------------------------------------------------------- whole runs


@pytest.fixture(scope="module")
def small(tmp_path_factory, smollm2):
    return small_model(tmp_path_factory.mktemp("scoped") / "model", smollm2, max_position_embeddings=2048)


@pytest.fixture
def run(tmp_path, small):
    def settings(*more, place="run"):
        return recipe(
            tmp_path, f"model.base={small}", "model.dtype=float32", "systems=[base,prompt_defense]",
            f"output_dir={tmp_path / place}", "evaluation.replicates=50", f"suites=[{','.join(NAMES)}]", *more,
        )  # fmt: skip

    return settings


def test_all_suites_run_go_on_and_rescore_to_the_same_bytes(run, tmp_path, small):
    first = evaluate(run())
    products = {p: p.read_bytes() for name in NAMES for p in (first / name).iterdir() if p.name in PRODUCTS}
    assert len(products) == 4 * len(NAMES)
    outcomes = pq.read_table(first / "misleadqa" / "outcomes.parquet").to_pylist()
    assert len(outcomes) == 2 * 11 * 8 and {row["finish_reason"] for row in outcomes} == {"choice"}
    assert all(row["constrained"] and len(row["log_probs"]) == 5 for row in outcomes)
    # The scope suite's answers are those of the main suite, from the store.
    linked = pq.read_table(first / "misleadqa_scope" / "outcomes.parquet").to_pylist()
    asked = {(r["system"], r["item_id"], r["cell"]): r["request_id"] for r in outcomes}
    for row in linked:
        if row["cell"] in ("none", "s"):
            assert asked[row["system"], row["item_id"], row["cell"]] == row["request_id"]
        else:
            assert len(row["log_probs"]) == 3
    for name in NAMES[:3]:
        (first / name / "manifest.json").unlink()
    evaluate(run())
    evaluate(run("rescore=true"))
    assert {p: p.read_bytes() for p in products} == products
    # Each answer is the likeliest letter of a prompt by itself.
    engine = local_engine(small)
    item = next(i for i in ITEMS if i.id == outcomes[0]["item_id"])
    prompts = [MISLEADQA.prompt(item, cell) for cell in MISLEADQA.cells]
    alone = [
        score_choices(engine, [p], LETTERS, Store(tmp_path / f"{n}.sqlite"), "t")[0] for n, p in enumerate(prompts)
    ]
    np.testing.assert_allclose([c.log_probs for c in alone], [r["log_probs"] for r in outcomes[:8]], atol=1e-4)
    assert [c.text for c in alone] == [row["value"] for row in outcomes[:8]]


PRODUCTS = ("results.json", "outcomes.parquet", "table.txt", "items.jsonl")


def test_input_limit_free_text_and_sequences(run):
    with pytest.raises(Refusal, match=r"item m\d+, cell \w+: a prompt of \d+ tokens exceeds the input limit of 60"):
        evaluate(run("evaluation.misleadqa.input_limit=60"))
    short = ("suites=[misleadqa,misleadqa_scope]", "systems=[base]", "limit=2", "evaluation.max_new_tokens=4")
    folder = evaluate(run("evaluation.misleadqa.scoring=text", *short, place="text"))
    rows = pq.read_table(folder / "misleadqa" / "outcomes.parquet").to_pylist()
    assert {row["constrained"] for row in rows} == {False} and {row["label"] for row in rows} == {"invalid"}
    said = json.loads((folder / "misleadqa" / "results.json").read_text("utf-8"))["facts"]["answers"]
    assert said.startswith("free text, read by scope.answers")
    folder = evaluate(run("evaluation.misleadqa.scoring=sequence", *short, place="sequence"))
    rows = pq.read_table(folder / "misleadqa" / "outcomes.parquet").to_pylist()
    assert {row["n_tokens"] for row in rows} == {2}, "the letter and the end token"


@pytest.mark.thorough
def test_a_server_that_constrains_gives_the_same_letters(run, small, tmp_path):
    given = run("suites=[misleadqa]", "systems=[base]", "limit=3")
    local = pq.read_table(evaluate(given) / "misleadqa" / "outcomes.parquet").to_pylist()
    with Server(local_engine(small)) as server:
        served = run(
            "suites=[misleadqa]", "systems=[base]", "limit=3", "engine.kind=openai", f"engine.base_url={server.url}",
            "engine.temperature=0", place="served",
        )  # fmt: skip
        rows = pq.read_table(evaluate(served) / "misleadqa" / "outcomes.parquet").to_pylist()
    assert {row["constrained"] for row in rows} == {True}
    assert sum(a["value"] == b["value"] for a, b in zip(local, rows, strict=True)) >= 20


def test_runs_on_two_releases_prompts_or_scorings_are_not_compared(run, tmp_path):
    short = ("suites=[misleadqa]", "systems=[base]")
    (tmp_path / "own.txt").write_text("{question}\n{options}{contexts}")
    one = evaluate(run(*short, "limit=3", "arm=a"))
    two = evaluate(run(*short, "limit=3", "arm=b", "evaluation.misleadqa.scoring=sequence"))
    other = evaluate(run(*short, "limit=3", "arm=c", f"evaluation.misleadqa.prompt={tmp_path / 'own.txt'}"))
    for folder in (two, other):
        with pytest.raises(StageError, match=r"were evaluated with different (prompts|scoring)"):
            compare([one.parent, folder.parent], suite="misleadqa")
    changed = [dataclasses.replace(ITEMS[0], question="What was Ohio's wage on 1 January 2007?"), *ITEMS[1:]]
    settings = run(*short, "arm=d")
    release(tmp_path / "release2", changed)
    settings.evaluation.items["misleadqa"] = str(tmp_path / "release2")
    newer = evaluate(settings)
    for intersection in (False, True):
        with pytest.raises(StageError, match=r"were evaluated with different (items|releases)"):
            compare([one.parent, newer.parent], suite="misleadqa", intersection=intersection)


# ---------------------------------------------------------------- tokenizers and templates


def changed_tokenizer(small, folder, change):
    import shutil

    shutil.copytree(small, folder)
    change(folder)
    return folder


def test_a_letter_that_is_not_one_token_is_refused_by_name(small, tmp_path):
    """A tokenizer whose vocabulary lacks one letter: it falls apart into bytes."""
    from transformers import AutoTokenizer

    def without_b(folder):
        file = folder / "tokenizer.json"
        made = json.loads(file.read_text("utf-8"))
        made["normalizer"] = {"type": "Replace", "pattern": {"String": "B"}, "content": "B%B"}
        file.write_text(json.dumps(made), "utf-8")

    folder = changed_tokenizer(small, tmp_path / "m", without_b)
    assert len(AutoTokenizer.from_pretrained(folder).encode("B", add_special_tokens=False)) > 1
    engine = local_engine(folder)
    with pytest.raises(EngineError, match=r"the option 'B' is \d tokens under the tokenizer of .*by=sequence"):
        score_choices(engine, ["q"], LETTERS, Store(tmp_path / "s.sqlite"), "t")
    by_sequence = score_choices(engine, ["q"], LETTERS, Store(tmp_path / "s.sqlite"), "t", by="sequence")
    assert by_sequence[0].text in LETTERS

    def folded(folder):
        file = folder / "tokenizer.json"
        made = json.loads(file.read_text("utf-8"))
        made["normalizer"] = {"type": "Replace", "pattern": {"String": "B"}, "content": "A"}
        file.write_text(json.dumps(made), "utf-8")

    engine = local_engine(changed_tokenizer(small, tmp_path / "n", folded))
    with pytest.raises(EngineError, match=r"share a token under the tokenizer"):
        engine.option_ids(Choices(LETTERS))


def test_a_model_without_a_chat_template_is_refused(small, tmp_path, run):
    def without(folder):
        (folder / "chat_template.jinja").unlink(missing_ok=True)
        file = folder / "tokenizer_config.json"
        made = json.loads(file.read_text("utf-8"))
        made.pop("chat_template", None)
        file.write_text(json.dumps(made), "utf-8")

    folder = changed_tokenizer(small, tmp_path / "m", without)
    with pytest.raises(Refusal, match=r"has no chat template; use an instruction-tuned model"):
        evaluate(run(f"model.base={folder}"))


DATED = (
    "{% if not date_string is defined %}{% set date_string = strftime_now('%d %b %Y') %}{% endif %}"
    "Today is {{ date_string }}. {{ messages[0]['content'] }}"
)
THINKS = "{{ messages[0]['content'] }}{% if enable_thinking is not defined or enable_thinking %}<think>{% endif %}"
CLOCK = "{{ strftime_now('%d %b %Y') }} {{ messages[0]['content'] }}"


def test_a_template_that_prints_the_day_or_thinks_is_refused_until_it_is_pinned(small, tmp_path, run):
    def template(text):
        return lambda folder: (folder / "chat_template.jinja").write_text(text)

    short = ("suites=[misleadqa]", "systems=[base]", "limit=1")
    dated = changed_tokenizer(small, tmp_path / "dated", template(DATED))
    with pytest.raises(Refusal, match=r"prints the day's date; set model.chat_template_kwargs.date_string"):
        evaluate(run(*short, f"model.base={dated}"))
    pinned = run(*short, f"model.base={dated}", "model.chat_template_kwargs.date_string='01 Oct 2026'")
    assert evaluate(pinned).is_dir()
    thinks = changed_tokenizer(small, tmp_path / "thinks", template(THINKS))
    with pytest.raises(Refusal, match=r"lets the model think; set model.chat_template_kwargs.enable_thinking=false"):
        evaluate(run(*short, f"model.base={thinks}"))
    assert evaluate(run(*short, f"model.base={thinks}", "model.chat_template_kwargs.enable_thinking=false")).is_dir()
    clock = local_engine(changed_tokenizer(small, tmp_path / "clock", template(CLOCK)))
    clock.config.chat_template_kwargs["date_string"] = "01 Oct 2026"
    (fault,) = clock.unpinned().values()
    assert "put one with a fixed date into the model's folder" in fault, "it would not listen to date_string"


def test_what_a_template_leaves_open_is_said_once_to_any_other_suite(small, tmp_path, run, tiny_pool, caplog):
    def thinks(folder):
        (folder / "chat_template.jinja").write_text(THINKS)

    write_rows(tmp_path / "items.jsonl", tiny_pool[1])
    base = changed_tokenizer(small, tmp_path / "thinks", thinks)
    given = (f"model.base={base}", f"pool.evaluation={tmp_path / 'items.jsonl'}", "evaluation.max_new_tokens=2")
    short = ("suites=[mist]", "systems=[base,prompt_defense]", "limit=1", *given)
    told = "model.chat_template_kwargs.enable_thinking"
    said = f"the chat template of {base} lets the model think; set {told}=false"
    for setting, times in (([], 1), ([f"{told}=false"], 0), ([f"{told}=true"], 0)):
        caplog.clear()
        evaluate(run(*short, *setting, place=f"run{len(list(tmp_path.iterdir()))}"))
        assert [record.getMessage() for record in caplog.records].count(said) == times


# ---------------------------------------------------------------- reports


def made_up(names, suite="misleadqa", n=60, seed=5, failed=False):
    """Results of random answers of a suite, as `compare` completes them. failed: one request of the last system."""
    rng, declared = np.random.default_rng(seed), SUITES[suite]
    items = [scoped(k % 11, id=f"m{k}", cluster=f"c{k // 2}", dependency_group=f"d{k // 6}") for k in range(n)]
    every = []
    judged = ["applicable", "not_applicable", "cannot_determine"]
    for name in names:
        for cell in declared.cells:
            choices, p = ["gold", "lure", "abstain", "other"], [0.6, 0.25, 0.1, 0.05]
            if cell.startswith("judge_"):
                choices, p = judged, [0.3, 0.6, 0.1]
            if cell.endswith("none") or cell == "g":
                p = [0.9, 0.05, 0.03, 0.02]
            labels = rng.choice(choices, n, p=p)
            every += [
                {
                    "system": name,
                    "item_id": f"m{k}",
                    "cell": cell,
                    "label": str(label),
                    "n_tokens": 1,
                    "finish_reason": "choice",
                }
                for k, label in enumerate(labels)
            ]
    every[-1]["label"] = "failed" if failed else every[-1]["label"]
    found = results(declared, items, every, Settings(replicates=60))
    named = {"model": "lab/base", "facts": {}, "notes": [], "steps": {name: None for name in names}}
    return {**found, **named, "folders": {name: f"runs/demo/{name}" for name in names}}


def every_misleadqa(names):
    return {suite: made_up(names, suite) for suite in NAMES}


def test_tables_show_every_panel_each_system_below_the_other_and_the_mean():
    every = every_misleadqa(["base", "scope"])
    made = {one.name: one for one in tables.tables(every)}
    for suite in NAMES:
        assert {f"{suite}_rates", f"{suite}_differences"} <= set(made)
        assert {f"{suite}_{panel}" for panel in SUITES[suite].panels_of} <= set(made)
    for one in made.values():
        assert all(len(row) == len(one.head) for group in one.groups for row in group.rows), one.name
        assert as_markdown(one) and as_html(one)
    assert r"$\Delta$" in as_latex(list(made.values()))
    outcomes = made["misleadqa_outcomes"]
    assert [group.heading for group in outcomes.groups][:3] == [
        "all items: no context",
        "all items: G alone",
        "B: S alone",
    ]
    names = [row[0].text for row in outcomes.groups[0].rows]
    assert names == ["base", "scope", "mean of 2", "by 38 clusters"]
    effects = [row[0].text for row in made["misleadqa_effects"].groups[0].rows]
    assert effects[:3] == ["base", "by 38 clusters", "by 10 dependency groups"] and "mean of 2" in effects
    linked = made["misleadqa_scope_linked"].groups[0].rows[0]
    own = every["misleadqa_scope"]["systems"]["base"]["panels"]["linked"]["h"]["applicable"]
    assert f"({own['events']}/{own['n']})" in linked[3].text
    assert mean_name(every["misleadqa"]) == "mean of 2"


@pytest.mark.parametrize(
    "names", [["base"], ["base", "scope"], ["base", "x" * 60, "scope", "opsd", "sft", "no_clean_rows"]]
)
def test_no_label_of_a_figure_lies_over_another_or_outside(names):
    made = {drawing.name: drawing for drawing in figures.draw(every_misleadqa(names))}
    assert {"lures_misleadqa", "scope_recognition"} <= set(made)
    with style.styled():
        for drawing in made.values():
            check_labels(drawing)
    found = made_up(names, "misleadqa")
    dots = [line for axes in made["lures_misleadqa"].figure.axes for line in axes.lines if len(line.get_xdata()) == 1]
    shown = sorted(float(line.get_xdata()[0]) for line in dots)
    own = [*found["systems"].values(), *([found["mean"]] if len(names) > 1 else [])]
    cells = ("a s", "a gs", "a sg", "a f", "a gf", "a fg")
    assert shown == pytest.approx(
        sorted(100 * one["panels"]["outcomes"][c]["lure"]["estimate"] for one in own for c in cells)
    )
