"""The schema of RAG-Stress's items and its matcher: what is read back, what is matched, and what is refused."""

import json
from dataclasses import replace

import pytest
from evidence_rows import GOOD, layouts

from scope import evidence, matching
from scope.evidence import Document, item_faults, load_evidence, write_evidence
from scope.tables import TableError


def changed(name, **values):
    """The good item with one layout changed."""
    return replace(GOOD, layouts={**GOOD.layouts, name: replace(GOOD.layouts[name], **values)})


def test_a_good_item_has_no_fault_and_is_read_back(tmp_path):
    assert item_faults(GOOD) == []
    write_evidence(tmp_path / "items.jsonl", [GOOD])
    assert load_evidence(tmp_path / "items.jsonl") == [GOOD]
    assert evidence.content_hash(GOOD) == evidence.content_hash(replace(GOOD))


def test_passages_stand_in_order_and_the_target_in_any_slot():
    assert [d.text[:5] for d in GOOD.passages("clean", "beginning")] == ["A lig", "Nets ", "The T"]
    moved = GOOD.passages("edited", "end", slot=1)
    assert moved[0].text == GOOD.layouts["end"].edited and [d.text for d in moved[1:]] == [
        d.text for d in GOOD.documents
    ]


def test_places_are_measured_at_the_middle_of_the_answer():
    at = {name: layout.at for name, layout in GOOD.layouts.items()}
    assert at["beginning"] < 1 / 3 < at["middle"] < 2 / 3 < at["end"]
    layout = GOOD.layouts["beginning"]
    assert layout.at == (layout.start + len("Anna Berg") / 2) / len(layout.clean)


@pytest.mark.parametrize(
    "item, sentence",
    [
        (replace(GOOD, foil="A. Berg"), "equals the reference or an alias"),
        (replace(GOOD, foil="Anna"), "equals the reference or an alias, or one holds the other"),
        (changed("end", edited=GOOD.layouts["end"].clean.replace("Anna Berg", "Anna Berg's")), "do not stand at char"),
        (
            changed(
                "middle",
                clean=GOOD.layouts["middle"].clean + " A. Berg died.",
                edited=GOOD.layouts["middle"].edited + " A. Berg died.",
            ),
            "the edit leaves 'A. Berg' standing",
        ),
        (changed("end", edited=GOOD.layouts["end"].edited + " More."), "differ outside of the edit"),
        (changed("end", clean=GOOD.layouts["end"].clean + " Clara Holm."), "names the foil 'Clara Holm'"),
        (
            replace(GOOD, documents=(Document("By Anna Berg."),), slot=1),
            "passage 1 beside the target names 'Anna Berg'",
        ),
        (replace(GOOD, slot=4), "4 is no place among 3 passages"),
        (replace(GOOD, language="zh"), "do not mix languages"),
        (replace(GOOD, language="fr"), "unknown 'fr'; use one of en, zh"),
        (replace(GOOD, layouts={"beginning": GOOD.layouts["beginning"]}), "there is none for middle"),
        (replace(GOOD, options=("Anna Berg", "Nobody")), "'Clara Holm' is none of the options"),
        (replace(GOOD, target={"title": "Anna Berg"}), "its title names 'Anna Berg'"),
    ],
)
def test_bad_items_are_named(item, sentence):
    assert any(sentence in fault for fault in item_faults(item)), item_faults(item)


def test_a_chinese_passage_beside_an_english_question_is_refused():
    mixed = replace(GOOD, question="潮钟是谁建造的？")
    assert any(fault.startswith("question: trivia_qa-1: is not in the item's language") for fault in item_faults(mixed))


def test_rows_with_faults_are_refused_with_their_place(tmp_path):
    path = tmp_path / "items.jsonl"
    good = evidence.as_row(GOOD)
    rows = [good, good, {**good, "id": "b", "reference": ""}, {**good, "id": "c", "documents": [3]}]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(TableError) as error:
        load_evidence(path)
    assert len(error.value.faults) == 3
    assert f"{path}:2: id: trivia_qa-1: stands already at {path}:1" in error.value.faults[0]
    assert f"{path}:3: reference: b: is missing" in error.value.faults[1]


def test_layouts_of_the_fixture_hold_the_same_sentences():
    assert {tuple(sorted(layout.clean.split())) for layout in layouts().values()} == {
        tuple(sorted(layouts()["original"].clean.split()))
    }


@pytest.mark.parametrize(
    "text, phrase, contained, equal",
    [
        ("Answer: the Tide Clock.", "tide clock", True, True),
        ("It is a Tide-Clock", "Tide Clock", True, True),
        ("The Tide Clock of Norhavn", "Tide Clock", True, False),
        ("Tidewater Clock", "Tide Clock", False, False),
        ("twelve", "12", True, True),
        ("答案是北京。", "北京", True, True),
        ("在北京市", "北京", True, False),
        ("北方京城", "北京", False, False),
        ("nothing", "", False, False),
    ],
)
def test_answers_are_matched_by_words(text, phrase, contained, equal):
    assert matching.contains(text, [phrase]) is contained
    assert matching.equals(text, [phrase]) is equal


def test_overlap_is_found_either_way():
    assert matching.overlap(["Berg"], ["Anna Berg"]) == "Berg" == matching.overlap(["Berg"], ["the berg"])
    assert matching.overlap(["Holm"], ["Anna Berg"]) == ""
    assert matching.is_chinese("潮钟 A") and not matching.is_chinese("Tide 钟") and not matching.is_chinese("12")
