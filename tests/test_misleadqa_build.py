"""MisleadQA's builder, release, screening and audit: from rows to a frozen folder, and what each refuses."""

import csv
import hashlib
import itertools
import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from scoped import GOOD, write_rows, write_sources
from server import Scripted, local_engine, small_model

from scope.evaluation.judge import read as read_verdict
from scope.items import Completion
from scope.pool import PoolError
from scope.pool import release as freezing
from scope.pool.misleadqa import audit, checks, frames, minimum_wage, options, screen, stage
from scope.pool.misleadqa.build import ORIGINS, build, dependency_groups
from scope.pool.misleadqa.decisions import decided
from scope.pool.misleadqa.facts import RULES, Wording, read_tables
from scope.pool.misleadqa.release import PAPER, Release, freeze, load_release, report
from scope.pool.release import FILES
from scope.recipe import asset, load
from scope.scopes import LETTERS, SOURCES

SHARED = Path(__file__).resolve().parents[2] / "shared"
FACTS = SHARED / "reference" / "misleadqa" / "facts.csv"
WORDING = Wording(asset("scope/pool/misleadqa/wording.toml"))


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return write_sources(tmp_path_factory.mktemp("misleadqa") / "data")


@pytest.fixture(scope="module")
def built(data):
    return build(SOURCES, data, WORDING, 2027)


@pytest.fixture(scope="module")
def items(built):
    return built[0]


# ---------------------------------------------------------------- building


def test_every_source_and_dimension_gives_items_without_a_finding(items):
    assert {item.group for item in items} == set(PAPER)
    assert checks.check_items(items) == []


def test_the_same_rows_give_the_same_items_and_another_seed_other_letters(items, data):
    assert build(SOURCES, data, WORDING, 2027)[0] == items
    other = {item.id: item.gold + item.lure for item in build(SOURCES, data, WORDING, 5)[0]}
    assert other != {item.id: item.gold + item.lure for item in items}


def test_wage_pairs_are_near_in_time_or_of_one_date(items):
    for item in items:
        if item.group == "minimum_wage time":
            years = [int(scope["time"][-4:]) for scope in (item.target, item.alternative)]
            assert abs(years[0] - years[1]) <= minimum_wage.MAX_GAP and min(years) >= minimum_wage.FIRST_YEAR
        if item.group == "minimum_wage location":
            assert item.target["time"] == item.alternative["time"]
            assert {fact["scope"]["time"] for fact in item.provenance["distractors"]} == {item.target["time"]}
    wages = [item for item in items if item.source == "minimum_wage"]
    assert {item.cluster for item in wages} == {"Nebraska", "Iowa", "Maine", "Utah"}, (
        "neither Guam nor a state of two rates"
    )
    assert max(Counter((item.group, item.cluster) for item in wages).values()) <= 6
    assert len({item.dependency_group for item in wages}) == 1


def test_what_was_left_out_is_counted(built):
    left = built[1]
    assert left["minimum_wage"]["fact: of a territory, not a state"] == 1
    assert left["minimum_wage"]["fact: the jurisdiction has several rates, and the table not always the same one"] == 40
    assert left["situatedqa"]["location: location: is not a place in words.toml"] == 1  # Atlantis
    assert left["situatedqa"]["location: answer: is not one year"] == 1  # Chad, with two years
    assert left["situatedqa"]["time: answer: another row contradicts it"] >= 4


def test_a_year_in_which_the_answer_changes_is_no_scope(items):
    times = [scope["time"] for i in items if i.group == "situatedqa time" for scope in (i.target, i.alternative)]
    assert times and "2017" not in times and "May 4, 2014" not in times


def test_false_answers_of_ramdocs_are_not_used(items):
    assert "1999" not in {option for item in items if item.source == "ambigdocs" for option in item.options}


def test_clusters_that_share_a_distractors_document_are_one_group(items):
    entity = [item for item in items if item.source == "ambigdocs"]
    assert len(entity) == 3, "one item an upstream question"
    documents = [
        {f["document"] for f in item.provenance["distractors"]} | {item.provenance["gold"]["document"]}
        for item in entity
    ]
    linked = [a for a, b in itertools.combinations(range(3), 2) if documents[a] & documents[b]]
    if linked:
        assert len({item.dependency_group for item in entity}) < 3
    assert dependency_groups([]) == {}


def test_the_papers_caps_and_limits():
    if not FACTS.exists():
        pytest.skip(f"the reference facts are not at {FACTS}")
    with FACTS.open() as file:
        facts = {row["name"]: float(row["value"]) for row in csv.DictReader(file) if row["name"] != "abstention_option"}
    situated = RULES["situatedqa"]
    assert RULES["minimum_wage"].per_cluster == facts["fred_max_items_per_jurisdiction_per_scope"]
    assert (situated.per_cluster, situated.per_type) == (
        facts["situatedqa_max_items_per_upstream_question"],
        facts["situatedqa_max_items_per_question_type"],
    )
    assert RULES["ambigdocs"].per_cluster == facts["ambigdocs_max_items_per_upstream_question"]
    assert RULES["condambigqa"].per_cluster == facts["condambigqa_max_items_per_upstream_question"]
    assert situated.words == (facts["situatedqa_context_words_min"], facts["situatedqa_context_words_max"])
    assert (situated.ratio, situated.difference) == (
        facts["situatedqa_length_ratio_max"],
        facts["situatedqa_length_difference_max"],
    )
    assert facts["fred_time_pair_max_gap"] == minimum_wage.MAX_GAP
    assert load("misleadqa").release.audit_seed == facts["audit_sample_seed"]
    assert load("misleadqa").seed == facts["run_seed"]
    assert sum(audit.SAMPLED.values()) == facts["audit_items"]
    assert sum(n for n, _ in PAPER.values()) == facts["released_items"]


@pytest.mark.parametrize("n", [1, 5, 12, 13, 23, 100])
def test_letters_are_balanced_whatever_the_number(n):
    places = options.placed(["g"] * n, [str(i) for i in range(n)], 2027)
    for values, kinds in (
        ([gold for gold, _, _ in places], range(4)),
        ([lure for _, lure, _ in places], range(4)),
        ([(gold, lure) for gold, lure, _ in places], itertools.permutations(range(4), 2)),
    ):
        counts = [values.count(kind) for kind in kinds]
        assert max(counts) - min(counts) <= 1


def test_arranged_options_stand_where_they_are_placed():
    assert options.arranged("g", "l", ("x", "y"), (2, 0, False)) == ("l", "y", "g", "x")
    assert options.arranged("g", "l", ("x", "y"), (2, 0, True)) == ("l", "x", "g", "y")


@pytest.mark.parametrize(
    "frame, question, text",
    [
        (frames.time_frame, "who is the current ceo of crate and barrel now", "office: CEO of Crate and Barrel"),
        (frames.time_frame, "when did the lions last make the playoffs", "last_time: the Lions made the playoffs"),
        (
            frames.time_frame,
            "when's the last time the lions made the playoffs",
            "last_time: the Lions made the playoffs",
        ),
        (frames.time_frame, "how many seasons of lost girl are there", "count: seasons; Lost Girl"),
        (frames.place_frame, "when did we gain independence", "place_did: became independent; become independent"),
        (frames.place_frame, "when was smoking banned in restaurants", "passive: smoking; was; banned in restaurants"),
        (frames.place_frame, "who was the 1st prime minister", "holder: first prime minister"),
    ],
)
def test_regular_questions_are_taken_apart(frame, question, text):
    assert frame(question).attribute == text


@pytest.mark.parametrize(
    "frame, question",
    [
        (frames.time_frame, "when was the last time anyone was on the moon"),
        (frames.time_frame, "who is the captain of blorp rovers"),
        (frames.time_frame, "when was the last time michigan won the championship"),
        (frames.place_frame, "who is the current president"),
        (frames.place_frame, "when did we get our flag"),
    ],
)
def test_what_cannot_be_restated_is_left_out(frame, question):
    with pytest.raises(frames.Unstated):
        frame(question)


@pytest.mark.skipif(not (SHARED / "data").is_dir(), reason=f"the real rows are not in {SHARED / 'data'}")
def test_the_real_rows_of_condambigqa_and_ramdocs_give_items_without_a_finding():
    items, _ = build(("ambigdocs", "condambigqa"), SHARED / "data", WORDING, 2027)
    assert checks.check_items(items) == []
    assert len([item for item in items if item.source == "ambigdocs"]) > 40 and len(items) > 42


# ---------------------------------------------------------------- bad input


def test_missing_files_sources_and_rows_are_refused(tmp_path):
    with pytest.raises(PoolError, match=r"us_minimum_wage: holds no us_minimum_wage.jsonl.gz"):
        build(["minimum_wage"], tmp_path, WORDING, 1)
    with pytest.raises(PoolError, match="is on no hub; set data_dir"):
        build(["minimum_wage"], None, WORDING, 1)
    with pytest.raises(PoolError, match=r"release\.sources=fred is no source; use minimum_wage"):
        build(["fred"], tmp_path, WORDING, 1)
    write_rows(tmp_path / "ramdocs" / "test.jsonl.gz", [])
    with pytest.raises(PoolError, match="ambigdocs: has no rows"):
        read_tables(ORIGINS["ambigdocs"], tmp_path)


def test_wording_is_a_file_that_a_recipe_replaces(tmp_path, data):
    text = asset("scope/pool/misleadqa/wording.toml").read_text("utf-8")
    own = tmp_path / "own.toml"
    own.write_text(text.replace("The state minimum wage on record for", "The floor under wages on record for"))
    items, _ = build(["minimum_wage"], data, Wording(own), 2027)
    assert all(item.g.startswith("The floor under wages") for item in items)
    own.write_text("[minimum_wage]\nquestion = '$colour'\nstatement = '$value'\n")
    with pytest.raises(PoolError, match=r"\[minimum_wage\] question: lacks 'colour'"):
        build(["minimum_wage"], data, Wording(own), 2027)
    with pytest.raises(PoolError, match="the wording cannot be read"):
        Wording(tmp_path / "none.toml")


# ---------------------------------------------------------------- the release


@pytest.fixture
def release(tmp_path, built):
    items, left_out = built
    return freeze(tmp_path / "v1", items, report(items, left_out, "1.0.0", 2027, "a command")), tmp_path / "v1"


def test_a_release_is_read_back_and_frozen_twice_to_the_same_bytes(release, items, built, tmp_path):
    found, folder = release
    assert found.items == items and found.version == "1.0.0"
    again = freeze(tmp_path / "v2", items, report(items, built[1], "1.0.0", 2027, "a command"))
    assert again.digest == found.digest
    assert all((folder / name).read_bytes() == (tmp_path / "v2" / name).read_bytes() for name in FILES)
    sheet = (folder / "README.md").read_text("utf-8")
    assert "**which is false by construction**" in sheet and all(f"`{c.__name__}`" in sheet for c in checks.ITEM_CHECKS)
    assert "| fact: of a territory, not a state | 1 |" in sheet and "SituatedQA states no licence" in sheet


def test_a_frozen_version_does_not_take_other_items(release, items, built):
    _, folder = release
    with pytest.raises(PoolError, match=r"release 1.0.0 is frozen and holds other items"):
        freeze(folder, items[1:], report(items[1:], built[1], "1.0.0", 2027, "a command"))


@pytest.mark.parametrize("name", FILES)
def test_a_changed_file_is_refused(release, name):
    _, folder = release
    (folder / name).write_bytes((folder / name).read_bytes() + b"\n")
    with pytest.raises(PoolError, match="was changed after the release was frozen"):
        load_release(folder)


def test_a_changed_item_is_refused_even_with_new_checksums(release):
    _, folder = release
    rows = [json.loads(line) for line in (folder / "items.jsonl").read_text("utf-8").splitlines()]
    rows[0]["question_type"] = "another"
    (folder / "items.jsonl").write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
    sums = {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in FILES}
    (folder / "SHA256SUMS").write_text("".join(f"{digest}  {name}\n" for name, digest in sums.items()))
    with pytest.raises(PoolError, match="its hashes or groups are not those of membership"):
        load_release(folder)


def test_a_folder_without_a_release_is_refused(tmp_path):
    with pytest.raises(PoolError, match="is no release of MisleadQA"):
        load_release(tmp_path)
    with pytest.raises(PoolError, match=r"does not exist; run: python -m scope\.pool build"):
        stage.frozen(load("misleadqa", [f"output_dir={tmp_path}"]))


def test_the_command_line_builds_checks_and_shows(data, tmp_path, capsys):
    recipe = load("misleadqa", [f"data_dir={data}", f"output_dir={tmp_path}/run", "release.version=0.1.0"])
    stage.build(recipe)
    stage.build(recipe)
    assert "0 findings of 21 checks" in capsys.readouterr().out
    freezing.check(recipe, stage)
    assert capsys.readouterr().out.startswith("0 findings in ")
    freezing.show(recipe, stage, "1")
    assert "E. Insufficient information" in capsys.readouterr().out
    with pytest.raises(PoolError, match="item=nobody is not in the release"):
        freezing.show(recipe, stage, "nobody")


# ---------------------------------------------------------------- screening


def reply(**verdicts):
    said = {name: {"verdict": verdicts.get(name, "pass"), "reason": "Because."} for name in screen.CRITERIA}
    return json.dumps(said)


def test_replies_are_read_or_named():
    assert screen.read(reply())["unique_answer"] == {"verdict": "pass", "reason": "Because."}
    assert screen.read(reply(distractors="maybe")) == (
        """has "maybe" as verdict of 'distractors', not pass, fail or uncertain"""
    )
    assert screen.read("{}") == "lacks an object for 'source_support'"
    assert screen.read(reply().replace("Because.", " ")) == "gives no reason for 'source_support'"
    assert screen.read("no") == read_verdict("no", "x") == "holds no JSON object"


def test_only_fail_flags_and_a_person_decides(tmp_path):
    case = screen.Case(GOOD, "p")
    replies = {"fail": reply(distractors="fail"), "uncertain": reply(distractors="uncertain"), "bad": "?"}
    rows = []
    for text in replies.values():
        rows.append(screen.as_row(case, screen.Replies(["p"], [_completion(text)]), "digest", "m"))
    assert [row["status"] for row in rows] == ["flagged", "clear", "unread"]
    assert all(row["replies"] and row["prompts"] for row in rows), "every output is kept"
    path = tmp_path / "decisions.csv"
    path.write_text(screen.decision_sheet(rows))
    with pytest.raises(PoolError, match="decision: '' is none of retain"):
        decided(path)
    table = list(csv.DictReader(path.open()))
    assert len(table) == 1 and table[0]["failed"] == "distractors"
    header = "item_id,decision,reason\n"
    path.write_text(f"{header}a,exclude,wrong\nb,retain,fine\n")
    assert decided(path) == {"a": "exclude"}
    path.write_text(f"{header}a,exclude,\n")
    with pytest.raises(PoolError, match="reason: is empty"):
        decided(path)


def _completion(text):
    return Completion("r", "h", text, "stop", 1, 1)


def test_what_a_person_excludes_is_left_out_and_letters_are_balanced_again(items, data):
    out = {items[0].id: "exclude"}
    kept, left = build(SOURCES, data, WORDING, 2027, excluded=out)
    assert {item.id for item in items} - {item.id for item in kept} == set(out)
    assert checks.check_items(kept) == [] and "item: a person decided to exclude it" in left[items[0].source]


@pytest.mark.slow
def test_a_release_is_screened_through_a_server_and_every_output_kept(data, tmp_path, smollm2, capsys):
    local = local_engine(small_model(tmp_path / "model", smollm2, max_position_embeddings=4096))
    told = [f"data_dir={data}", f"output_dir={tmp_path}/run", "release.sources=[condambigqa]"]
    stage.build(load("misleadqa", told))

    def script(prompt):
        if "could not be used: it holds no JSON object" in prompt:
            return reply(distractors="fail")
        return "Hm." if "the 1970 film" in prompt.split("Options:")[0] else reply(unique_answer="uncertain")

    with Scripted(local, script) as server:
        engine = ["judge.engine.kind=openai", f"judge.engine.base_url={server.url}", "judge.engine.server=here"]
        recipe = load("misleadqa", [*told, *engine, "judge.model.base=lab/judge"])
        screen.run(recipe)
        asked = server.requests.total()
        screen.run(recipe)
        assert server.requests.total() == asked, "what is kept is not asked again"
    folder = tmp_path / "run" / "screening" / "lab_judge"
    rows = [json.loads(line) for line in (folder / "screening.jsonl").read_text("utf-8").splitlines()]
    asks = {item.id: "the 1970 film" in item.question for item in stage.frozen(recipe).items}
    assert {row["item_id"]: row["status"] == "flagged" for row in rows} == asks
    assert {row["item_id"]: len(row["replies"]) for row in rows} == {id: 1 + asked for id, asked in asks.items()}
    decisions = list(csv.DictReader((folder / "decisions.csv").open()))
    assert [row["failed"] for row in decisions] == ["distractors"] * sum(asks.values())


def test_the_prompt_holds_the_item_and_its_file_may_be_replaced(tmp_path):
    text = screen.prompt(screen.template_of(asset("scope/pool/misleadqa/screen.txt")), GOOD)
    assert GOOD.question in text and GOOD.f in text and "us_minimum_wage/x.csv:1997" in text and "$question" not in text
    (tmp_path / "p.txt").write_text("only $question")
    with pytest.raises(PoolError, match=r"lacks \$f"):
        screen.template_of(tmp_path / "p.txt")


# ---------------------------------------------------------------- audit


@pytest.fixture
def sample():
    """150 items in the paper's strata, drawn."""
    dimensions = {name: name.split() for name in audit.SAMPLED}
    items = [
        replace(GOOD, id=f"{name} {n}", source=source, dimension=dimension)
        for name, (source, dimension) in dimensions.items()
        for n in range(60)
    ]
    release = Release(items, "1.0.0", "digest")
    return release, audit.draw(release, 20261007)


def test_the_sample_is_stratified_and_every_pair_shares_ten(sample):
    release, found = sample
    assert found["strata"] == audit.SAMPLED and len(found["items"]) == 150
    assert set(audit.all_pairs(found).values()) == {10} and len(audit.all_pairs(found)) == 15
    assert {len(ids) for ids in found["orders"].values()} == {50}
    assert audit.draw(release, 20261007) == found != audit.draw(release, 1)
    assert audit.draw(replace_items(release, list(reversed(release.items))), 20261007) == found


def replace_items(release, items):
    return Release(items, release.version, release.digest)


def fill(folder, annotator, changes):
    """Answer every question yes, but for `changes`: place -> columns."""
    path = folder / f"sheet_{annotator}.csv"
    rows = list(csv.DictReader(path.open(newline="")))
    for row in rows:
        row.update({column: "yes" for column in row if column[:2] in audit.QUESTIONS})
        row.update(changes.get(int(row["item_id"]), {}))
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def test_sheets_are_blinded_filled_and_counted(sample, tmp_path):
    release, found = sample
    audit.write_sheets(tmp_path, release, found)
    assert not any(word in (tmp_path / "sheet_1.csv").read_text() for word in ("situatedqa", "ambigdocs", "stratum"))
    question = {name: f"{name}: {said}" for name, said in audit.QUESTIONS.items()}
    no = {question["q1"]: "No", question["q3"]: "n", "label": "clear issue", "note": "two people"}
    for annotator in range(1, 7):
        fill(tmp_path, annotator, {4: no} if annotator == 2 else {})
    reviews = audit.read_sheets(tmp_path, found)
    results = audit.results(found, reviews)
    # As in the paper's Table 11: one No to q1 and q3 in 300 reviews, 149 of 150 items pass and agree.
    assert (results["items"], results["passed"], results["agree"]) == (150, 149, 149)
    assert [results["questions"][q]["yes"] for q in ("q1", "q2", "q3")] == [299, 300, 299]
    assert [round(results["questions"][q]["agreement"], 2) for q in ("q1", "q2", "q3")] == [99.33, 100.0, 99.33]
    assert sum(s["sampled"] - s["passed"] for s in results["strata"].values()) == 1
    (row,) = csv.DictReader(audit.adjudication_sheet(found, reviews).splitlines())
    assert row["item_id"] == found["orders"]["2"][3] and "no to q1, q3 (clear issue): two people" in row["reviews"]
    assert "2" not in row["may adjudicate"].split() and len(row["may adjudicate"].split()) == 4


@pytest.mark.parametrize(
    "change, sentence",
    [
        ({"label": "x"}, None),
        ({"q2": "perhaps"}, "q2: 'perhaps' is neither yes nor no"),
        ({"q2": "no"}, "label: a No needs clear issue or unsure as label, and a note"),
        ({"item_id": "77"}, "item_id: '77' was not handed out"),
        ({"item_id": "2"}, "item_id: 2 stands twice"),
    ],
)
def test_sheets_that_are_not_filled_in_rightly_are_refused(sample, tmp_path, change, sentence):
    release, found = sample
    audit.write_sheets(tmp_path, release, found)
    columns = {name: f"{name}: {said}" for name, said in audit.QUESTIONS.items()}
    for annotator in range(1, 7):
        fill(tmp_path, annotator, {1: {columns.get(k, k): v for k, v in change.items()}} if annotator == 3 else {})
    if sentence is None:
        assert len(audit.read_sheets(tmp_path, found)) == 150
        return
    with pytest.raises(PoolError) as caught:
        audit.read_sheets(tmp_path, found)
    assert sentence in str(caught.value) and "sheet_3.csv:" in str(caught.value)


def test_letters_of_a_pair_are_two(items):
    assert all(item.gold != item.lure and {item.gold, item.lure} <= set(LETTERS) for item in items)
