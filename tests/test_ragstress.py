"""The suites of RAG-Stress: prompts, labels and rates by hand, what is refused, whole runs of a real model."""

import json
import random
import shutil
import tomllib

import numpy as np
import pyarrow.parquet as pq
import pytest
from server import Server, local_engine, small_model
from stressed import CHINESE_ITEMS, ITEMS, options_item, stressed

from scope.artifacts import Refusal, StageError
from scope.evaluation import evaluate
from scope.evaluation.ragstress.labels import CLOSED, label_of, read_answer
from scope.evaluation.results import Settings, results
from scope.evaluation.suites import SUITES
from scope.evaluation.suites.ragstress_decoding import kendall
from scope.evidence import write_evidence
from scope.items import Completion
from scope.prompts import Chat
from scope.recipe import asset, load
from scope.report import panels, tables
from scope.report.compare import compare
from scope.report.markup import as_latex, as_markdown
from scope.report.terminal import table

NAMES = ("ragstress", "ragstress_slots", "ragstress_paraphrase", "ragstress_decoding", "ragstress_closed")
STRESS = SUITES["ragstress"]


def recipe(tmp_path, *overrides, items=(*ITEMS, *CHINESE_ITEMS)):
    write_evidence(tmp_path / "items.jsonl", list(items))
    return load("smollm2_135m", [f"evaluation.items.ragstress={tmp_path / 'items.jsonl'}", *overrides])


# ---------------------------------------------------------------- prompts


def test_two_policies_differ_in_one_clause_and_arms_in_the_answer_alone():
    item = stressed(0)
    soft, strict = (STRESS.prompt(item, f"clean_{policy}_middle") for policy in ("soft", "strict"))
    assert soft.user == strict.user and soft.system != strict.system
    lines = [set(chat.system.splitlines()) for chat in (soft, strict)]
    assert len(lines[0] - lines[1]) == len(lines[1] - lines[0]) == 1
    edited = STRESS.prompt(item, "edited_soft_middle")
    assert edited.system == soft.system and edited.user == soft.user.replace("Nairobi", "Mombasa")
    closed = STRESS.prompt(item, CLOSED)
    assert closed.user == "Question: Which city is the capital of Kenya?"
    assert item.reference not in str(closed) + edited.user and item.foil not in str(closed) + soft.user
    assert "Passage 4: Kenya lies on the equator. The capital" in soft.user, "the target stands in its slot"


def test_positions_move_the_sentence_and_keep_all_else():
    item = stressed(1)
    users = [STRESS.prompt(item, f"clean_soft_{place}").user for place in STRESS.places]
    assert len({tuple(sorted(user.replace("\n", " ").split(" "))) for user in users}) == 1
    at = [item.layouts[place].at for place in STRESS.places]
    assert at == sorted(at) and at[0] < 1 / 2 < at[2]


def test_slots_move_the_whole_target_whose_text_stays():
    slots, item = SUITES["ragstress_slots"], stressed(0)
    target = item.layouts["original"].edited
    for slot, number in (("slot1", 1), ("slot2", 2), ("slot4", 4)):
        assert f"Passage {number}: {target}" in slots.prompt(item, f"edited_strict_{slot}").user
    assert slots.prompt(item, "clean_soft_slot4").user.count("Passage") == 4


def test_paraphrases_change_the_clause_alone_and_reuse_the_original(tmp_path):
    versions, item = SUITES["ragstress_paraphrase"], stressed(0)
    first = STRESS.prompt(item, "edited_strict_end")
    assert versions.prompt(item, "edited_strict_end") == first
    others = [versions.prompt(item, f"edited_strict_end_v{n}") for n in (1, 2)]
    assert {chat.user for chat in others} == {first.user} and len({chat.system for chat in [first, *others]}) == 3
    assert len(versions.cells) == 37 and len(STRESS.cells) == 13


def test_options_stand_below_the_question_and_the_foil_is_not_marked():
    said = SUITES["ragstress_closed"].prompt(options_item(), CLOSED)
    assert said.user.endswith("sunlight?\nA. Vitamin A\nB. Vitamin C\nC. Vitamin D\nD. Vitamin K")


@pytest.mark.parametrize(
    ("key", "line", "sentence"),
    [
        ("closed", "closed = 3", "closed: is missing, empty or not text"),
        ("system", 'system = "No policy."', "system: holds {policy}, each once"),
        ("strict", 'strict = ["one"]', "strict: holds 1 clauses of the 3 needed"),
        ("soft", 'soft = "one"', "soft: is no list of clauses"),
        ("passage", 'passage = "{text!r} {number}"', "passage: holds {number}, {text}, each once"),
        ("extra", 'extra = "x"', "extra: is no text of it"),
        ("broken", "= broken", "the prompts cannot be read"),
    ],
)
def test_a_prompts_file_that_cannot_be_used_is_a_sentence(tmp_path, key, line, sentence):
    with asset(STRESS.chosen.prompts).open("rb") as file:
        texts = tomllib.load(file)
    rest = "".join(f"{name} = {json.dumps(text)}\n" for name, text in texts.items() if name != key)
    own = tmp_path / "own.toml"
    own.write_text(f"{line}\n{rest}", "utf-8")
    given = load("smollm2_135m", [f"evaluation.ragstress.prompts={own}"])
    with pytest.raises(StageError) as refused:
        SUITES["ragstress_paraphrase"].using(given).settings(given)
    assert sentence in str(refused.value) and "own.toml" in str(refused.value)


# ---------------------------------------------------------------- labels


def said(text, item=None, matching_by="contained", finish="stop"):
    completion = Completion("r", "p", text, finish, 1, 1)
    return read_answer(item or stressed(0), completion, matching_by)


@pytest.mark.parametrize(
    ("text", "label", "exact"),
    [
        ("Nairobi", "gold", "gold"),
        ("The answer is: nairobi.", "gold", "gold"),
        ("It is Nairobi, in Kenya", "gold", "neither"),
        ("Mombasa!", "foil", "foil"),
        ("Mombasa, not Nairobi", "both", "neither"),
        ("Kisumu", "neither", "neither"),
        ("Nairobians", "neither", "neither"),
        ("", "neither", "neither"),
        ("<think>Nairobi</think>Mombasa", "foil", "foil"),
    ],
)
def test_an_answer_is_labelled_by_whole_phrases_or_by_equality(text, label, exact):
    found = said(text)
    assert (found["label"], found["exact"]) == (label, exact)
    assert said(text, matching_by="exact")["label"] == exact


def test_other_spellings_options_and_chinese():
    assert said("the year 1,869", stressed(2))["label"] == "gold" and said("4", stressed(5))["exact"] == "gold"
    alias = stressed(0, aliases=("the city of Nairobi", "NBO"))
    assert said("NBO", alias)["exact"] == "gold"
    mc = options_item()
    for text in ("C", "(C)", "C. Vitamin D", "vitamin d", "The answer is C."):
        assert label_of(mc, text, "contained") == "gold", text
    assert label_of(mc, "B", "exact") == "foil" and label_of(mc, "A", "exact") == "neither"
    zh = CHINESE_ITEMS[0]
    assert said("答案是内罗毕。", zh)["exact"] == "gold" and said("应该是蒙巴萨吧", zh)["label"] == "foil"
    assert said("首都是内罗毕，不是蒙巴萨", zh)["label"] == "both" and said("罗毕", zh)["label"] == "neither"


def test_a_failed_request_is_missing_and_not_in_u():
    failed = read_answer(stressed(0), Completion("r", "p", "", "error", 0, 0), "contained")
    assert failed["label"] == failed["exact"] == "failed"


# ---------------------------------------------------------------- rates

MARKS = {"g": "gold", "f": "foil", "b": "both", "n": "neither", "x": "failed"}


def rows(system, marks, suite="ragstress"):
    """Outcome rows from a letter an item and cell; cells that are not named answer like the closed-book one."""
    cells = {cell: marks.get(cell, marks[CLOSED]) for cell in SUITES[suite].cells}
    common = {"finish_reason": "stop", "n_tokens": 1, "n_prompt_tokens": 9, "system": system}
    return [
        {**common, "item_id": f"i{n}", "cell": cell, "label": MARKS[mark], "exact": MARKS[mark]}
        for cell, column in cells.items()
        for n, mark in enumerate(column)
    ]


def summed(systems, suite="ragstress", replicates=30, items=None, **settings):
    n = len(next(iter(systems.values()))[CLOSED])
    items = items or [stressed(k % 6, id=f"i{k}") for k in range(n)]
    every = [row for name, marks in systems.items() for row in rows(name, marks, suite)]
    found = results(SUITES[suite], items, every, Settings(replicates=replicates, **settings))
    return {"model": "lab/base", "arm": "scope", "facts": {}, "notes": [], **found}


BASE = {
    CLOSED: "ggggnn",
    **{f"clean_{p}_{place}": "gggggn" for p in ("soft", "strict") for place in STRESS.places},
    **{f"edited_soft_{place}": "gggfff" for place in STRESS.places},
    "edited_strict_beginning": "gbffff",
    "edited_strict_middle": "ggffnn",
    "edited_strict_end": "gffffn",
}


def estimates(found, *place):
    for key in place:
        found = found[key]
    return {name: rate["estimate"] for name, rate in found.items()}


def test_rates_are_those_counted_by_hand():
    found = summed({"base": BASE})
    own = found["systems"]["base"]
    assert own["strata"] == {"k": 4, "u": 2, "k_exact": 4}
    assert estimates(own, "rates") == pytest.approx(
        {
            **{"closed": 4 / 6, "clean_soft": 5 / 6, "clean_strict": 5 / 6, "clean_delta": 0},
            **{"mr_soft": 3 / 12, "mr_strict": 7 / 12, "mr_delta": 4 / 12},
        }
    )
    assert estimates(own, "panels", "positions", "strict") == pytest.approx(
        {"last_middle": 1 / 4, "first_middle": 0, "first_last": -1 / 4}
    )
    assert estimates(own, "panels", "audit", "u") == pytest.approx({"soft": 1 / 2, "strict": 1 / 2, "delta": 0})
    assert estimates(own, "panels", "interaction", "k")["interaction"] == pytest.approx(1 / 4)
    # Reference with edited evidence, of all six: soft 3 of 6 each; strict 2, 2, 1 of 6 (a double match names it).
    gold = estimates(own, "panels", "gold", "all")
    assert gold == pytest.approx({"clean": 0, "edited": 5 / 18 - 9 / 18, "interaction": 5 / 18 - 9 / 18})
    assert estimates(own, "panels", "control", "strict")["clean"] == 0
    moved = own["panels"]["transitions"]["both"]
    assert (moved["of_pairs"]["events"], moved["of_pairs"]["n"]) == (10, 24)
    assert moved["of_clean_gold"]["n"] == 24
    strict = estimates(own, "panels", "diagnostics", "strict")
    assert strict == pytest.approx({"retention": 5 / 12, "follow": 10 / 18, "hedge": 1 / 12})


def test_an_empty_k_is_undefined_and_shown_as_such():
    found = summed({"base": {**BASE, CLOSED: "nnnnnn"}})
    assert found["systems"]["base"]["rates"]["mr_soft"]["estimate"] is None
    assert found["systems"]["base"]["rates"]["clean_soft"]["estimate"] == 5 / 6
    assert "undefined" in table(found)


def test_a_failed_request_withholds_what_needs_it_or_its_item_is_left_out():
    found = summed({"base": {**BASE, "edited_strict_end": "gfxffn"}})["systems"]["base"]
    assert {m for m, rate in found["rates"].items() if rate.get("withheld")} == {"mr_strict", "mr_delta"}
    alone = summed({"base": {**BASE, "edited_strict_end": "gfxffn"}}, complete_only=True)
    assert alone["items"] == 5 and alone["systems"]["base"]["strata"]["k"] == 3
    closed = summed({"base": {**BASE, CLOSED: "gxggnn"}})["systems"]["base"]
    assert closed["strata"] == {"k": 3, "u": 2, "k_exact": 3}, "a failed baseline is in neither"


@pytest.mark.parametrize("suite", NAMES)
def test_every_metric_names_at_least_the_cells_that_it_depends_on(suite):
    declared, rng = SUITES[suite], np.random.default_rng(3)
    items = [stressed(n % 6, id=f"i{n}") for n in range(40)]
    marks = {cell: "".join(rng.choice(list("gfbn"), 40)) for cell in declared.cells}

    def rates(changed):
        by_cell = {cell: [] for cell in declared.cells}
        for row in rows("base", changed, suite):
            by_cell[row["cell"]].append(row)
        return {metric: rate.estimate() for metric, rate in declared.rates(items, by_cell).items()}

    before = rates(marks)
    for cell in declared.cells:
        for _ in range(3):
            after = rates({**marks, cell: "".join(rng.choice(list("gfbn"), 40))})
            moved = {metric for metric in before if after[metric] != before[metric]}
            assert moved <= {metric for metric in declared.headings if cell in declared.needs(metric)}


def test_systems_have_a_mean_groups_a_common_stratum_and_draws_of_their_own():
    better = {**BASE, CLOSED: "gggggn", "edited_strict_beginning": "gggfnn"}
    systems = {"base": BASE, "merged": better, "other": {**BASE, CLOSED: "ngggnn"}}
    found = summed(systems, groups={"base": "plain", "other": "plain", "merged": "trained"})
    assert found["groups"]["plain"]["systems"] == ["base", "other"]
    mr = {name: own["rates"]["mr_strict"]["estimate"] for name, own in found["systems"].items()}
    assert found["mean"]["rates"]["mr_strict"]["estimate"] == pytest.approx(sum(mr.values()) / 3)
    assert found["groups"]["plain"]["rates"]["mr_strict"]["estimate"] == pytest.approx((mr["base"] + mr["other"]) / 2)
    assert found["remarks"] == {
        "questions in K of every system, exact answers": 3,
        "in U of every system": 1,
    }
    # On questions 1 to 3, the common K, the base names the foil in 7 of 9 strict answers and in 3 of 9 soft ones.
    assert found["across"]["common"]["k"]["base"]["estimate"] == pytest.approx((7 - 3) / 9)
    text = table(found)
    assert "plain, mean of 2" in text and "mean of 3" in text and "|K|" in text
    made = tables.tables({"ragstress": found})
    named = {one.name for one in made}
    assert {"ragstress_grid", "ragstress_audit", "ragstress_common"} <= named and "ragstress_languages" not in named
    for one in made:
        assert as_markdown(one)
    assert "beginning" in as_latex(made)


def test_chinese_minus_english_stands_beside_both():
    items = [stressed(k, id=f"i{k}") for k in range(3)] + [stressed(k, "zh", id=f"i{k + 3}") for k in range(3)]
    found = summed({"base": BASE}, items=items)
    shown = estimates(found["systems"]["base"], "panels", "languages", "zh_minus_en")
    # Strict MR: English K = items 0 to 2, 4 of 9; Chinese K = item 3, 3 of 3.
    assert shown["mr_strict"] == pytest.approx(3 / 3 - 4 / 9)
    assert set(found["slices"]["language"]) == {"en", "zh"}


def test_seeds_of_sampling_have_a_spread_and_profiles_a_rank_agreement():
    def marks(flips):
        drawn = {c: "fgggnn" for c in SUITES["ragstress_decoding"].cells if "strict" in c}
        for n, seed in enumerate(("s1", "s2", "s3", "s4", "s5")):
            drawn["edited_strict_end_" + seed] = "f" * ((n + flips) % 4) + "g" * (4 - (n + flips) % 4) + "nn"
        return {CLOSED: "ggggnn", **drawn}

    one = marks(0)
    two = {**marks(1), **{c: "ffggnn" for c in one if c.endswith("long")}}
    found = summed({"base": one, "merged": two}, "ragstress_decoding")
    per_seed = [found["systems"]["base"]["panels"]["runs"][f"s{n}"]["strict"]["estimate"] for n in range(1, 6)]
    said = found["remarks"]["sd over 5 seeds, base, strict"]
    assert said == pytest.approx(100 * float(np.std(per_seed, ddof=1)), abs=0.005)
    assert "Kendall's tau of the two profiles' ranks by strict MR" in found["remarks"]
    assert kendall([0.1, 0.2, 0.3], [1, 2, 3]) == pytest.approx(1) and kendall([0.1, None], [1, 2]) is None


# ---------------------------------------------------------------- what is refused


def test_items_are_read_in_one_order_and_what_cannot_be_asked_is_counted_or_refused(tmp_path):
    given = recipe(tmp_path, items=[*ITEMS, options_item()])
    loaded = STRESS.load(given)
    assert len(loaded.items) == 6 and loaded.facts["items without passages, which ragstress_closed asks"] == 1
    assert len(SUITES["ragstress_closed"].load(given).items) == 7
    again = STRESS.load(recipe(tmp_path, items=random.Random(0).sample([*ITEMS, options_item()], 7)))
    assert again.items == loaded.items and again.key == loaded.key
    few = [*ITEMS[:2], stressed(2, documents=stressed(2).documents[:1], slot=2)]
    with pytest.raises(StageError, match=r"ragstress_slots: 1 of 3 items lack passages .* the first: en2; a paired"):
        SUITES["ragstress_slots"].load(recipe(tmp_path, items=few))
    kept = SUITES["ragstress_slots"].load(recipe(tmp_path, "evaluation.complete_only=true", items=few))
    assert len(kept.items) == 2 and kept.facts["items left out, for they have not every cell"] == 1
    with pytest.raises(StageError, match=r"ragstress: has no items of its own; set evaluation.items.ragstress"):
        STRESS.load(load("smollm2_135m"))
    (tmp_path / "passed.txt").write_text("en0\nen9\n")
    with pytest.raises(StageError, match=r"passed.txt:2: 'en9' is none of the items"):
        given = recipe(tmp_path, f"evaluation.ragstress.validated={tmp_path / 'passed.txt'}")
        STRESS.using(given).load(given)


# ---------------------------------------------------------------- whole runs


@pytest.fixture(scope="module")
def small(tmp_path_factory, smollm2):
    return small_model(tmp_path_factory.mktemp("stressed") / "model", smollm2, max_position_embeddings=2048)


@pytest.fixture
def run(tmp_path, small):
    def settings(*more, place="run", items=(*ITEMS, *CHINESE_ITEMS)):
        return recipe(
            tmp_path, f"model.base={small}", "model.dtype=float32", "systems=[base,prompt_defense]",
            f"output_dir={tmp_path / place}", "evaluation.replicates=50", "evaluation.ragstress.max_new_tokens=4",
            "evaluation.ragstress.long_new_tokens=6", *more, items=items,
        )  # fmt: skip

    return settings


PRODUCTS = ("results.json", "outcomes.parquet", "table.txt", "items.jsonl")


def test_all_suites_run_in_two_languages_go_on_and_rescore_to_the_same_bytes(run, tmp_path, capsys):
    (tmp_path / "passed.txt").write_text("en0\nzh0\n")
    chosen = (
        f"suites=[{','.join(NAMES)}]",
        "systems=[base]",
        "evaluation.groups={base: plain, bass: plain}",
        f"evaluation.ragstress.validated={tmp_path / 'passed.txt'}",
    )
    items = [*ITEMS[:2], CHINESE_ITEMS[0]]
    first = evaluate(run(*chosen, items=items))
    assert "evaluation.groups names bass, none of the systems here: base" in capsys.readouterr().out
    products = {p: p.read_bytes() for name in NAMES for p in (first / name).iterdir() if p.name in PRODUCTS}
    rows = pq.read_table(first / "ragstress" / "outcomes.parquet").to_pylist()
    assert len(rows) == 3 * 13 and {row["label"] for row in rows} <= {"gold", "foil", "both", "neither"}
    asked = {(r["system"], r["item_id"], r["cell"]): r["request_id"] for r in rows}
    versions = pq.read_table(first / "ragstress_paraphrase" / "outcomes.parquet").to_pylist()
    for row in versions:
        if not row["cell"].endswith(("_v1", "_v2")):
            assert asked[row["system"], row["item_id"], row["cell"]] == row["request_id"], "from the store"
    drawn = pq.read_table(first / "ragstress_decoding" / "outcomes.parquet").to_pylist()
    seeds = {row["text"] for row in drawn if row["item_id"] == "en0" and row["cell"].startswith("edited_soft_end_s")}
    assert len(seeds) > 1, "five seeds draw different answers"
    found = json.loads((first / "ragstress" / "results.json").read_text("utf-8"))
    assert set(found["systems"]["base"]["panels"]["validated"]) == {"own", "all sources"}
    for name in NAMES:
        (first / name / "manifest.json").unlink()
    evaluate(run(*chosen, items=items))
    assert {p: p.read_bytes() for p in products} == products, "nothing was asked again"
    evaluate(run(*chosen, "rescore=true", items=items))
    assert {p: p.read_bytes() for p in products} == products
    again = evaluate(run(*chosen, "suites=[ragstress_decoding]", items=items, place="other"))
    assert (again / "ragstress_decoding" / "outcomes.parquet").read_bytes() == products[
        first / "ragstress_decoding" / "outcomes.parquet"
    ], "drawn with the same seeds"


def test_a_server_is_sent_the_system_message(run, small):
    given = ("suites=[ragstress]", "systems=[base]", "limit=2")
    with Server(local_engine(small)) as server:
        served = run(*given, "engine.kind=openai", f"engine.base_url={server.url}", place="served")
        rows = pq.read_table(evaluate(served) / "ragstress" / "outcomes.parquet").to_pylist()
        sent = server.bodies[-1]["messages"]
    local = pq.read_table(evaluate(run(*given)) / "ragstress" / "outcomes.parquet").to_pylist()
    assert sum(a["text"] == b["text"] for a, b in zip(local, rows, strict=True)) >= 20
    assert [message["role"] for message in sent] == ["system", "user"]


def test_a_template_without_a_system_role_folds_it_and_says_so(run, small, tmp_path):
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(small)
    tokenizer.chat_template = (
        "{% if messages[0].role == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}"
        "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
        "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
    )
    shutil.copytree(small, tmp_path / "gemma")
    tokenizer.save_pretrained(tmp_path / "gemma")
    engine = local_engine(tmp_path / "gemma")
    assert engine.folds_system() and not local_engine(small).folds_system()
    assert "SYS\n\nUSER" in engine.tokenizer.decode(engine.render([Chat("SYS", "USER")])[0])
    folder = evaluate(run("suites=[ragstress_closed]", "systems=[base]", f"model.base={tmp_path / 'gemma'}"))
    facts = json.loads((folder / "ragstress_closed" / "results.json").read_text("utf-8"))["facts"]
    assert facts["system message of base"].startswith("at the beginning of the user message")


def test_inputs_over_the_limit_are_refused_and_other_prompts_are_not_compared(run, tmp_path):
    with pytest.raises(Refusal, match=r"item \w+, cell \w+: a prompt of \d+ tokens exceeds the input limit of 60"):
        evaluate(run("suites=[ragstress]", "evaluation.ragstress.input_limit=60"))
    text = asset(STRESS.chosen.prompts).read_text("utf-8").replace("Question: ", "Q: ")
    (tmp_path / "own.toml").write_text(text, "utf-8")
    short = ("suites=[ragstress_closed]", "systems=[base]", "limit=3")
    one = evaluate(run(*short, "arm=a"))
    two = evaluate(run(*short, "arm=b", f"evaluation.ragstress.prompts={tmp_path / 'own.toml'}"))
    with pytest.raises(StageError, match=r"were evaluated with different prompts"):
        compare([one.parent, two.parent], suite="ragstress_closed")
    three = evaluate(run(*short, "arm=c"))
    found = compare([one.parent, three.parent], suite="ragstress_closed")
    assert panels.tables(found, "t", []) == []


@pytest.mark.thorough
def test_questions_and_documents_of_the_users_own_are_a_suite_in_one_command(run, tmp_path):
    rows = [
        {
            "question": item.question,
            "answer": [item.reference, f"{item.reference} itself"],
            "foil": item.foil,
            "documents": [
                {"text": item.documents[0].text, "title": "loom", "score": 0.9},
                {"text": item.layouts["middle"].clean, "score": 0.8},
                {"text": item.documents[1].text, "score": 0.1},
            ],
        }
        for item in (ITEMS[0], ITEMS[1], CHINESE_ITEMS[2])
    ]
    rows.append({**rows[0], "question": "Which city hosts the embassy?", "documents": ["Nothing here says so."]})
    source = tmp_path / "own.jsonl"
    source.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), "utf-8")
    folder = evaluate(run("suites=[ragstress]", "systems=[base]", f"evaluation.items.ragstress={source}"))
    found = json.loads((folder / "ragstress" / "results.json").read_text("utf-8"))
    assert found["items"] == 3 and found["facts"]["items made from questions"] == 3
    assert sum(n for why, n in found["facts"].items() if why.startswith("left out, ")) == 1
    items = [json.loads(line) for line in (folder / "ragstress" / "items.jsonl").read_text("utf-8").splitlines()]
    for item in items:
        assert [each["score"] for each in item["documents"]] == [0.9, 0.1] and item["slot"] == 2
        assert item["target"]["score"] == 0.8
    assert {item["language"] for item in items} == {"en", "zh"}
