"""RAG-Stress's builder, checks, release and audit: from rows to a frozen folder, and what each refuses."""

import csv
import hashlib
import json
from dataclasses import replace
from pathlib import Path

import pytest
from evidence_rows import CHINESE, GOOD, MAKERS, dumped, nq, write_rows, write_sources

from scope.evidence import POSITIONS, Document, item_faults
from scope.pool import PoolError
from scope.pool import release as freezing
from scope.pool.__main__ import VERBS
from scope.pool.ragstress import audit, checks, kinds, mentions, passages, stage, targets
from scope.pool.ragstress.build import build
from scope.pool.ragstress.custom import items_of
from scope.pool.ragstress.drafts import Draft, Excluded, Passage
from scope.pool.ragstress.lexicon import Lexicon, learned
from scope.pool.ragstress.nearby import near
from scope.pool.ragstress.release import freeze, load_release, report
from scope.pool.ragstress.sources import ORIGINS, SOURCES, drafts_of
from scope.pool.release import FILES
from scope.recipe import load
from scope.schema import ReleaseConfig
from scope.tables import TableError

SHARED = Path(__file__).resolve().parents[2] / "shared"
SETTINGS = ReleaseConfig(distractors=2)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return write_sources(tmp_path_factory.mktemp("ragstress") / "data")


@pytest.fixture(scope="module")
def built(data):
    return build(data, 2027, SETTINGS)


@pytest.fixture(scope="module")
def items(built):
    return built[0]


# ---------------------------------------------------------------- building


def test_every_source_gives_items_without_a_finding(items, built):
    by_source = {name: [item for item in items if item.source == name] for name in SOURCES}
    assert {name: len(found) for name, found in by_source.items()} == {
        "trivia_qa": 5,
        "natural_questions": 5,
        "hotpot_qa": 5,
        "search_qa": 0,
        "medqa": 5,
    }
    assert checks.check_items(items) == []
    kinds_of = {name: {item.answer_kind for item in found} for name, found in by_source.items() if found}
    assert kinds_of == {
        "trivia_qa": {"person"},
        "natural_questions": {"date"},
        "hotpot_qa": {"place"},
        "medqa": {"option"},
    }
    assert built[1]["hotpot_qa"]["question: is answered by yes or no"] == 1
    assert built[1]["search_qa"] == {"row: has no search results, and without them SearchQA gives no evidence": 1}


def test_an_item_has_what_the_paper_asks_for(items):
    item = next(item for item in items if item.id == "trivia_qa-test_0")
    assert item.reference == "Anna Berg" and item.aliases == ("Berg, Anna",)
    assert item.foil in {f"{first} {last}" for first, last, *_ in MAKERS[1:]}
    assert set(item.layouts) == {*POSITIONS, "original"} and item.slot == 3 and len(item.documents) == 2
    at = [item.layouts[name].at for name in POSITIONS]
    assert at[0] < 0.4 and 0.3 < at[1] < 0.7 and at[2] > 0.6
    for layout in item.layouts.values():
        assert layout.edited == layout.clean.replace("Anna Berg", item.foil)
        assert '"landmark"' in layout.clean and "The fee" not in layout.clean, "fragments are dropped, quotes repaired"
        assert not layout.clean.startswith("Tide Clock Tide Clock")
    assert all(not document.title for document in item.documents) and item.provenance["title"] == "Tide Clock"


def test_an_option_serves_as_foil_and_there_is_no_evidence(items):
    for item in (item for item in items if item.source == "medqa"):
        assert not item.layouts and item.foil in item.options and item.foil != item.reference


def test_the_same_rows_give_the_same_items_and_another_seed_other_foils(items, data):
    assert build(data, 2027, SETTINGS)[0] == items
    other = {item.id: item.foil for item in build(data, 5, SETTINGS)[0]}
    assert other != {item.id: item.foil for item in items}


def test_settings_decide_slots_titles_caps_and_numbers(data):
    few = ReleaseConfig(sources=["trivia_qa"], distractors=1, slot=1, titles=True, per_source=2)
    items, left = build(data, 2027, few)
    assert len(items) == 2 and left["trivia_qa"]["question: its source has all the items it may have"] == 3
    assert all(item.slot == 1 and len(item.documents) == 1 and item.target["title"] for item in items)
    short = ReleaseConfig(sources=["trivia_qa"], distractors=2, target_words=38)
    assert all(len(i.layouts["original"].clean.split()) <= 38 for i in build(data, 2027, short)[0])
    with pytest.raises(PoolError, match=r"release\.slot=4 is no place among 3 passages"):
        build(data, 2027, ReleaseConfig(distractors=2, slot=4))


def test_unknown_sources_and_missing_files_are_refused(tmp_path):
    with pytest.raises(PoolError, match=r"release\.sources=trivia is no source; did you mean trivia_qa"):
        build(tmp_path, 1, ReleaseConfig(sources=["trivia"]))
    with pytest.raises(PoolError, match=r"nq_passages: holds no test\.jsonl\.gz"):
        build(tmp_path, 1, ReleaseConfig(sources=["natural_questions"]))
    with pytest.raises(PoolError, match="natural_questions: is on no hub; set data_dir"):
        build(None, 1, ReleaseConfig(sources=["natural_questions"]))


@pytest.mark.parametrize(
    "text, reason",
    [
        ("The gate was built by Anna Berg. It is red.", "too short for three layouts"),
        (
            "The gate of Ulm was built by Anna Berg. The gate of Ulm was sold by Anna Berg. It is red.",
            "more than once",
        ),
        ("The gate was built by Anna Berg. Mrs Berg died. It is red. It is old.", "a part of it, more than once"),
        ("He came. It was built by Anna Berg at the gate of Ulm. It is red. It is old.", "hangs on the one before it"),
        ("The gate was built by Anna Berg Nielsen. Ulm is old. It is red. It is big.", "part of a longer name"),
        ("Ulm is old. It is red. A cat was seen by Anna Berg. It is big.", "shares too few words"),
        ("Ulm has a gate. It is red. It is old.", "no passage names the reference"),
    ],
)
def test_targets_that_will_not_do_are_named(text, reason):
    sentences = passages.whole(text)
    draft = Draft("1", "s", "Who built the gate of Ulm?", ("Anna Berg",), (Passage(sentences, "Ulm"),))
    with pytest.raises(Excluded, match=reason):
        targets.chosen(draft, 100)


def test_a_question_that_names_its_answer_is_left_out(tmp_path):
    row = dumped(0) | {"question": "Did Anna Berg or Clara Holm build the Tide Clock?"}
    write_rows(tmp_path / "trivia_qa_passages" / "test.jsonl.gz", [row, dumped(1)])
    _, left = build(tmp_path, 1, ReleaseConfig(sources=["trivia_qa"], distractors=0))
    assert left["trivia_qa"]["question: names the reference"] == 1


def test_a_target_is_cut_to_where_the_answer_is_named_once():
    about = ("Ulm is old and stands by a river.", "It is a red gate with two towers.", "A fee is asked of visitors.")
    sentences = ("Anna Berg came.", about[0], "The gate was built by Anna Berg.", *about[1:])
    once = Draft("1", "s", "Who built the gate of Ulm?", ("Anna Berg",), (Passage(sentences, "Ulm"),))
    assert targets.chosen(once, 100).sentences == sentences[1:]


# ---------------------------------------------------------------- pieces


def test_text_is_split_at_whole_sentences():
    text = 'Dr. A. B. Lee met St. John in Washington, D.C. "He left." Then No. 5 came! What now? It end'
    assert passages.sentences_of(text)[-2:] == ["What now?", "It end"]
    assert passages.whole("rest of one. A whole one. Another? Cut off") == ("A whole one.", "Another?")
    assert passages.whole("一句。两句！“三句？”四", "zh") == ("一句。", "两句！", "“三句？”")
    piece = 'end of it. Last line. Blue Hill Blue Hill is a ""hill"" in Ulm. It is cut'
    assert passages.dump_sentences("Blue Hill", piece) == ("Last line.", 'Blue Hill is a "hill" in Ulm.')
    assert passages.around(("a b", "c d", "e f", "g h"), 1, 5) == (("a b", "c d"), 1)
    assert passages.opening(("a b", "c d", "e f"), 4) == ("a b", "c d") and passages.opening(("a b c",), 2) == ()


@pytest.mark.parametrize(
    "question, answer, name, form",
    [
        ("when was it", "1987", "date", "date: year"),
        ("when was it", "May 4, 1987", "date", "date: month day year"),
        ("how many", "12,000", "number", "number: thousands"),
        ("how many", "seven", "number", "number: word"),
        ("how high is it", "850 m", "number", "number: digits m"),
        ("who sang it", "Anna Berg", "person", "name"),
        ("Which country is it?", "Norway", "place", "name"),
        ("Which river is it?", "Rhine", "place", "name"),
        ("which bird is it", "green parrot", "thing", "word"),
        ("那是哪一年？", "1998年", "date", "date: chinese date"),
    ],
)
def test_kinds_follow_from_question_and_form(question, answer, name, form):
    kind = kinds.kind_of(question, answer, learned([]))
    assert (kind.name, kind.form) == (name, form)


@pytest.mark.parametrize(
    "question, noun",
    [
        ("Cleeve Hill is the highest point in which range of hills?", "range"),
        ("What type of insect is a darner?", "insect"),
        ("What government position was held by her?", "position"),
        ("who played him", "who play"),
        ("where is it", "where"),
        ("What is its name?", ""),
    ],
)
def test_the_noun_asked_for(question, noun):
    assert kinds.asked_for(question) == noun


@pytest.mark.parametrize(
    "answer",
    ["1987", "May 4, 1987", "4 May 1987", "June 1900", "1960s", "12,000", "850 m", "seven", "3.5%", "1998年5月"],
)
def test_values_near_by_have_the_same_form_and_another_value(answer):
    found = list(near(answer, hashlib.sha256(answer.encode()).hexdigest()))
    assert found and answer not in found
    assert {kinds.form_of(each) for each in found} == {kinds.form_of(answer)}
    assert list(near("Anna Berg", "0" * 64)) == []


def test_names_are_found_whole_and_in_part():
    assert mentions.usable(["The Tide Clock", "on May 4, 1987", "A", "state of Ohio"]) == (
        "Tide Clock",
        "May 4, 1987",
        "Ohio",
    )
    assert mentions.spans("US and us, the U.S.", ["US"]) == [(0, 2)]
    assert mentions.spans("It cost 12,000 and 12.", ["12"]) == [(19, 21)]
    assert (
        mentions.named("On 4 May 1987.", ["May 4, 1987"]) and mentions.partly("Mrs Berg left.", "Anna Berg") == "Berg"
    )
    assert mentions.shares_word("Georgia", "Georgian Bay") and not mentions.shares_word("New York", "New Jersey")


def test_persons_are_learned_from_their_passages():
    text = ("Xenia Moor (born May 1, 1950) is a Danish actress.", "She lives in Ulm.")
    found = learned([Draft("1", "s", "q", ("Xenia Moor",), (Passage(text, "Xenia Moor"),))])
    assert found.gender("Xenia Moor") == "f" and found.types["xenia moor"] == "actress"
    assert found.popularity("Xenia Moor") == 2 and Lexicon().gender("Anna") == ""


def test_the_hubs_own_schema_of_triviaqa_is_read():
    context = "Intro line.\nThe Tide Clock was built by Anna Berg. It is old. It is red."
    row = {
        "question": "Who built the Tide Clock?",
        "answer": {"value": "Anna Berg", "aliases": ["A. Berg"]},
        "entity_pages": {"title": ["Tide Clock"], "wiki_context": [context]},
        "search_results": {"title": [], "search_context": []},
    }
    draft = ORIGINS["trivia_qa"].read(row)
    assert draft.answers == ("Anna Berg", "A. Berg") and len(draft.passages[0].sentences) == 3


def test_rows_in_another_schema_are_counted(tmp_path):
    write_rows(tmp_path / "nq_passages" / "test.jsonl.gz", [nq(0), {"question": 3}, nq(1) | {"answers": []}])
    drafts, left = drafts_of(ORIGINS["natural_questions"], tmp_path)
    assert len(drafts) == 1
    assert left == {"row: has no question or no answer": 1, "row: is not in the source's schema": 1}


# ---------------------------------------------------------------- checks


def planted(**values):
    """The good item with the same change in every layout."""
    return replace(GOOD, layouts={name: replace(each, **values) for name, each in GOOD.layouts.items()})


def appended(text):
    """The good item with a sentence after both texts of every layout."""
    found = {n: replace(e, clean=f"{e.clean} {text}", edited=f"{e.edited} {text}") for n, e in GOOD.layouts.items()}
    return replace(GOOD, layouts=found)


def of_layout(name, **values):
    return replace(GOOD, layouts={**GOOD.layouts, name: replace(GOOD.layouts[name], **values)})


END = GOOD.layouts["end"]
FAULTS = {
    "schema": replace(GOOD, slot=9),
    "known_source": replace(GOOD, source="elsewhere"),
    "reference_gone": appended("Mrs Berg left."),
    "foil_present": replace(GOOD, question="Did Clara Holm or another build the Tide Clock?"),
    "equal_outside": of_layout("end", edited=END.edited.replace("harbour", "mining")),
    "relation_kept": of_layout(
        "end", clean=END.clean.replace("was built", "was sold"), edited=END.edited.replace("was built", "was sold")
    ),
    "free_distractors": replace(GOOD, documents=(Document("A tale of Clara Holm."), Document("No."))),
    "foil_type": replace(planted(foil="1987"), foil="1987"),
    "foil_is_no_alias": replace(GOOD, foil="A. Berg"),
    "measured_positions": replace(GOOD, layouts={**GOOD.layouts, "middle": GOOD.layouts["beginning"]}),
    "order_kept": of_layout("end", clean=END.clean.replace("Sailors", "Traders"), edited=END.edited.replace("S", "T")),
    "long_enough": replace(
        GOOD,
        layouts={
            name: replace(
                e, clean="The clock was built by Anna Berg.", edited="The clock was built by Clara Holm.", start=23
            )
            for name, e in GOOD.layouts.items()
        },
    ),
    "one_language": replace(GOOD, documents=(Document("这里有一座灯塔。"), Document("No."))),
}


def test_every_check_has_a_planted_fault():
    assert set(FAULTS) == {check.__name__ for check in checks.ITEM_CHECKS}
    assert checks.check_items([GOOD]) == []


@pytest.mark.parametrize("name", FAULTS)
def test_planted_faults_are_found(name):
    assert name in {finding.check for finding in checks.check_items([FAULTS[name]])}


def test_repeated_items_are_found():
    twice = [GOOD, replace(GOOD, id="other")]
    assert {finding.check for finding in checks.check_items(twice)} == {"repeated_items"}
    assert {finding.check for finding in checks.check_items([GOOD, GOOD])} == {"unique_ids", "repeated_items"}


# ---------------------------------------------------------------- own rows


def own(tmp_path, rows, **settings):
    path = tmp_path / "own.jsonl"
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), "utf-8")
    return items_of(path, 7, ReleaseConfig(**settings))


OWN = {
    "query": "Who built the Tide Clock of the town?",
    "gold": ["Anna Berg", "A. Berg"],
    "passages": [
        {"contents": "Nets are dried on the green", "name": "Green", "score": 9.5},
        {
            "contents": "The Tide Clock was built by Anna Berg for the town. It stands near the old quay of Ulm. "
            "A fee is asked of every visitor.",
            "score": 7,
        },
        "A lighthouse stands on the pier.",
    ],
    "foil": "Clara Holm",
}


def test_own_rows_keep_their_documents_order_and_scores(tmp_path):
    (item,), left = own(tmp_path, [OWN])
    assert left == {} and item_faults(item) == [] and item.slot == 2
    shown = item.passages("edited", "original")
    assert [d.score for d in shown] == [9.5, 7, None] and shown[0].text == "Nets are dried on the green"
    assert "Clara Holm" in shown[1].text and item.references == ("Anna Berg", "A. Berg")
    (titled,), _ = own(tmp_path, [OWN], titles=True)
    assert titled.documents[0].title == "Green" and not item.documents[0].title


def test_own_chinese_rows_are_served(tmp_path):
    items, left = own(tmp_path, CHINESE)
    assert len(items) == 3, left
    assert all(not item_faults(item) and item.language == "zh" and item.slot == 2 for item in items)
    assert {item.foil for item in items} <= {row["answer"] for row in CHINESE}
    year = {
        "question": "北港的潮钟建于哪一年？",
        "answer": "1887年",
        "documents": ["潮钟是当地的名胜。北港的潮钟建于1887年。许多游客每年夏天前来参观。"],
    }
    (dated,), _ = own(tmp_path, [year])
    assert dated.answer_kind == "date" and dated.foil.endswith("年")


def test_own_rows_with_options_take_one_as_foil(tmp_path):
    options = ["Anna Berg", "Clara Holm", "Emma Lund"]
    (item,), _ = own(tmp_path, [OWN | {"options": options, "foil": None}])
    assert item.answer_kind == "option" and item.foil in options[1:] and item.layouts
    (closed,), _ = own(tmp_path, [{"question": "What helps?", "answer": "Rest", "options": ["Rest", "Ink"]}])
    assert closed.foil == "Ink" and not closed.layouts


@pytest.mark.parametrize(
    "change, reason",
    [
        ({"foil": "A. Berg"}, "foil: equals the reference or an alias"),
        ({"foil": "Ulm"}, "foil: stands in the question, the target or a document"),
        ({"passages": [*OWN["passages"], "Anna Berg lived here."]}, "documents: one beside the target names"),
        (
            {"passages": ["The Tide Clock of the town was built by Anna Berg. It is old."]},
            "too short for three layouts",
        ),
        ({"foil": None}, "foil: none of its kind"),
    ],
)
def test_own_rows_that_give_no_item_are_counted(tmp_path, change, reason):
    items, left = own(tmp_path, [OWN | change])
    assert items == [] and len(left) == 1 and reason in next(iter(left))


def test_bad_own_rows_are_named_with_their_line(tmp_path):
    rows = [
        OWN | {"query": " "},
        OWN | {"gold": []},
        OWN | {"passages": "text"},
        OWN | {"passages": [{"text": ""}]},
        OWN | {"passages": [{"text": "A.", "score": "high"}]},
        OWN | {"language": "zh"},
        OWN | {"options": ["x", "y"]},
        OWN | {"id": 1},
        OWN | {"id": 1},
    ]
    with pytest.raises(TableError) as error:
        own(tmp_path, rows)
    found = [fault.removeprefix(f"{tmp_path}/own.jsonl:") for fault in error.value.faults]
    assert [fault.split(": ")[0] for fault in found] == ["1", "2", "3", "4", "5", "6", "7", "9"]
    assert found[0] == "1: question: is empty; every row needs one"
    assert found[5] == "6: language: the question is not in zh; do not mix languages in a row"
    with pytest.raises(TableError, match="question: no column for it"):
        own(tmp_path, [{"answer": "x"}])


# ---------------------------------------------------------------- the release


@pytest.fixture
def release(tmp_path, built):
    items, left_out = built
    return freeze(tmp_path / "v1", items, report(items, left_out, SETTINGS, 2027, "a command")), tmp_path / "v1"


def test_a_release_is_read_back_and_frozen_twice_to_the_same_bytes(release, built, tmp_path):
    found, folder = release
    assert found.items == built[0] and found.version == "1.0.0" and len(found.with_evidence) == 15
    again = freeze(tmp_path / "v2", built[0], report(*built, SETTINGS, 2027, "a command"))
    assert again.digest == found.digest
    assert all((folder / name).read_bytes() == (tmp_path / "v2" / name).read_bytes() for name in FILES)
    card = (folder / "README.md").read_text("utf-8")
    assert card.startswith("---\npretty_name") and "every edited text is false by construction" in card
    assert "| question: is answered by yes or no | 1 |" in card and "the target stands last" in card
    assert all(f"`{check.__name__}`" in card for check in checks.ITEM_CHECKS)


def test_changed_releases_are_refused(release, built):
    _, folder = release
    with pytest.raises(PoolError, match=r"release 1.0.0 is frozen and holds other items, sources or settings"):
        freeze(folder, built[0][1:], report(built[0][1:], built[1], SETTINGS, 2027, "a command"))
    rows = (folder / "items.jsonl").read_text("utf-8").splitlines()
    row = json.loads(rows[0])
    row["license"] = "another"
    (folder / "items.jsonl").write_text("\n".join([json.dumps(row, ensure_ascii=False), *rows[1:]]) + "\n", "utf-8")
    with pytest.raises(PoolError, match="was changed after the release was frozen"):
        load_release(folder)
    sums = {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in FILES}
    (folder / "SHA256SUMS").write_text("".join(f"{digest}  {name}\n" for name, digest in sums.items()))
    with pytest.raises(PoolError, match=f"{row['id']}: its hashes are not those of membership"):
        load_release(folder)
    with pytest.raises(PoolError, match="is no release of RAG-Stress"):
        load_release(folder.parent)


def test_the_verbs_build_check_show_and_describe(data, tmp_path, capsys):
    recipe = load("ragstress", [f"data_dir={data}", f"output_dir={tmp_path}/run", "release.distractors=2"])
    with pytest.raises(PoolError, match=r"does not exist; run: python -m scope\.pool build"):
        stage.frozen(recipe)
    VERBS["build"](recipe)
    assert "0 findings of 15 checks" in capsys.readouterr().out
    VERBS["check"](recipe)
    assert capsys.readouterr().out.startswith("0 findings in 20 items")
    VERBS["show"](recipe, item="trivia_qa-test_0", pool="train")
    assert "[Anna Berg -> " in " ".join(capsys.readouterr().out.split())
    VERBS["card"](recipe)
    assert "# Clean and edited evidence, release 1.0.0" in capsys.readouterr().out
    with pytest.raises(PoolError, match="item=nobody is not in the release"):
        freezing.show(recipe, stage, "nobody")
    with pytest.raises(PoolError, match=r"pool\.kind=ragstress has no such verb"):
        VERBS["screen"](recipe)


@pytest.mark.parametrize("name", ["misleadqa", "ragstress"])
def test_a_release_is_no_pool_to_train_on(name):
    from scope.pool.stage import evaluation, prepare
    from scope.preview import preview

    for stage_call in (prepare, evaluation, preview):
        with pytest.raises(PoolError, match=rf"pool\.kind={name} builds a release .*no pools to train or evaluate on"):
            stage_call(load(name))


# ---------------------------------------------------------------- audit


def fill(folder, annotator, noes):
    """Answer every label yes, but for `noes`: (item id, label)."""
    path = folder / f"sheet_{annotator}.csv"
    ids = json.loads((folder / "sample.json").read_text())["orders"][str(annotator)]
    rows = list(csv.DictReader(path.open(newline="")))
    for row in rows:
        for column in row:
            if label := next((label for label in audit.LABELS if column.startswith(label)), ""):
                row[column] = "no" if (ids[int(row["item_id"]) - 1], label) in noes else "yes"
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def test_edits_are_validated_by_two_annotators_and_an_adjudicator(data, tmp_path, capsys):
    told = [f"data_dir={data}", f"output_dir={tmp_path}/run", "release.distractors=2", "release.audit_items=4"]
    recipe = load("ragstress", told)
    stage.build(recipe)
    audit.run(recipe)
    folder = tmp_path / "run" / "audit"
    sample = json.loads((folder / "sample.json").read_text())
    assert sample["sources"] == {"trivia_qa": 4, "natural_questions": 4, "hotpot_qa": 4}
    assert "trivia_qa" not in (folder / "sheet_1.csv").read_text()
    with pytest.raises(PoolError, match="foil_supported: '' is neither yes nor no"):
        audit.run(recipe)
    a, b, c = list(sample["items"])[:3]
    fill(folder, 1, {(a, "fluent"), (b, "fluent"), (c, "no_leak")})
    fill(folder, 2, {(a, "fluent")})
    audit.run(recipe)
    assert "2 labels differ" in capsys.readouterr().out and not (folder / "validated.txt").exists()
    sheet = (folder / "adjudication.csv").read_text().replace(",,", ",yes,fine")
    (folder / "adjudication.csv").write_text(sheet.replace(",yes,fine", ",no,fine", 1))
    audit.run(recipe)
    assert set((folder / "validated.txt").read_text().split()) == set(sample["items"]) - {a, b}
    found = json.loads((folder / "results.json").read_text())
    assert found["labels"]["fluent"]["passed"] == pytest.approx(10 / 12) and found["open"] == 0
    # 11 of 12 agree on fluency; 2 and 1 noes: by chance (10/12)(11/12) + (2/12)(1/12)
    chance = (10 * 11 + 2) / 144
    assert found["labels"]["fluent"]["kappa"] == pytest.approx((11 / 12 - chance) / (1 - chance))
    assert found["labels"]["relation_kept"]["kappa"] is None and found["all_passed"] == pytest.approx(10 / 12)


# ---------------------------------------------------------------- the real rows


@pytest.mark.skipif(not (SHARED / "data").is_dir(), reason=f"the real rows are not in {SHARED / 'data'}")
def test_some_real_rows_give_items_without_a_finding(tmp_path):
    import gzip

    path = SHARED / "data" / "trivia_qa_passages" / "test.jsonl.gz"
    with gzip.open(path, "rt", encoding="utf-8") as file:
        rows = [json.loads(line) for line, _ in zip(file, range(150), strict=False)]
    write_rows(tmp_path / "trivia_qa_passages" / "test.jsonl.gz", rows)
    items, left = build(tmp_path, 2027, ReleaseConfig(sources=["trivia_qa"]))
    assert len(items) > 5 and checks.check_items(items) == []
    assert len(items) + sum(left["trivia_qa"].values()) == len(rows), "every row is an item or counted"
