"""The matcher audit: a sample of real files, a sheet that gives nothing away, labels back in, Table 6."""

import csv
import json
import subprocess
import sys
from collections import Counter
from functools import cache
from itertools import pairwise

import pytest
from conftest import ROOT, SHARED

from scope import artifacts
from scope.artifacts import Refusal
from scope.evaluation import outcomes
from scope.evaluation.ragstress import audit
from scope.evaluation.ragstress.__main__ import main
from scope.evaluation.ragstress.labels import CLOSED, POLICIES, grid, read_answer
from scope.evidence import ARMS, POSITIONS, EvidenceItem, as_row
from scope.items import Completion
from scope.kappa import kappa
from scope.tables import TableError

REFERENCE = SHARED / "reference" / "rag_stress"
CELLS = (CLOSED, *grid(POLICIES, ARMS, POSITIONS))
SYSTEMS = ("base", "scope")
ANSWERS = ("Ottawa", "Toronto, not Ottawa\rsurely", "=Toronto", "I do not know")  # gold, both, foil, neither


def item(n, source):
    return EvidenceItem(
        f"{source}-{n}", source, "en", f"Question {n}, please?", "Ottawa", "Toronto", ("Bytown",), ("Hogtown",)
    )


@cache
def read(text, finish_reason):
    return read_answer(item(0, ""), Completion("r", "p", text, finish_reason, 9, 3), "contained")


def evaluated(folder, n_items=40, suite="ragstress", source="triviaqa", systems=SYSTEMS):
    """A finished evaluation with answers of every label, as the stage writes it."""
    items = [item(n, source) for n in range(n_items)]
    rows = []
    for s, system in enumerate(systems):
        for i, one in enumerate(items):
            for c, cell in enumerate(CELLS):
                text = ANSWERS[(s + i + i // 4 + c) % 4]
                done = "error" if (i, c) == (0, 3) else "stop"
                answer = Completion(f"r{system}{source}{i}{c}", "p", text, done, 9, 3)
                rows.append(outcomes.row(system, one.id, cell, answer, read(text, done)))
    table, times = outcomes.split(rows)
    artifacts.write_jsonl(folder / "items.jsonl", map(as_row, items))
    artifacts.write_parquet(folder / "outcomes.parquet", table)
    artifacts.write_parquet(folder / "timings.parquet", times)
    artifacts.write_json(folder / "results.json", {"suite": suite})
    artifacts.finish(
        folder, stage="evaluate", key={}, outputs=["items.jsonl", "outcomes.parquet", "results.json"], seed=0
    )
    return folder


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    made = tmp_path_factory.mktemp("evaluated")
    return [evaluated(made / "a"), evaluated(made / "b", source="hotpotqa")]


@pytest.fixture(scope="module")
def drawn(folders, tmp_path_factory):
    """A sample of 450, nothing filled in."""
    out = tmp_path_factory.mktemp("audit") / "sheets"
    audit.sample(folders, out, seed=7)
    return out


def copied(folder, tmp_path):
    for name in ("sample.json", "sheet.csv"):
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    return tmp_path


def rows_of(folder):
    with (folder / "sheet.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def fill(folder, write, edit=lambda lines: lines):
    """Fill in a sheet: write(row, stratum) changes a row; edit changes all of them."""
    rows = rows_of(folder)
    strata = {str(each["row"]): each["stratum"] for each in json.loads((folder / "sample.json").read_text())["answers"]}
    for row in rows:
        write(row, strata[row["row"]])
    with (folder / "sheet.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), quoting=csv.QUOTE_ALL)
        writer.writeheader()
        writer.writerows(edit(rows))


def agreeing(row, stratum):
    row["label"] = "other" if stratum == "unmatched" else stratum


# ---------------------------------------------------------------- the sample


def test_the_sample_is_balanced_by_label_and_spread_over_the_rest(drawn):
    made = json.loads((drawn / "sample.json").read_text())
    assert made["strata"] == dict.fromkeys(audit.STRATA, 150) and len(made["answers"]) == 450
    assert [answer["row"] for answer in made["answers"]] == list(range(1, 451))
    for stratum in audit.STRATA:
        members = [answer for answer in made["answers"] if answer["stratum"] == stratum]
        spread = Counter(
            (each["item_id"].split("-")[0], each["system"], *each["cell"].split("_")[1:]) for each in members
        )
        # 2 sources x 2 systems x 2 policies x 3 places = 24 groups; 150 = 24 * 6 + 6.
        assert len(spread) == 24 and set(spread.values()) == {6, 7}
    assert all(answer["cell"] != CLOSED for answer in made["answers"]), "only answers with evidence"
    assert not any(a["item_id"].endswith("-0") and a["cell"] == CELLS[3] for a in made["answers"]), "failed requests"


def test_the_sheet_shows_no_label_and_no_cell(drawn):
    rows = rows_of(drawn)
    assert list(rows[0]) == [*audit._SHOWN, "label", "cause", "note"]
    assert all(row["label"] == row["cause"] == row["note"] == "" for row in rows)
    shown = (drawn / "sheet.csv").read_text().casefold()
    for word in ("strict", "soft", "clean", "edited", "beginning", "closed", "unmatched", "base", "triviaqa", "hotpot"):
        assert word not in shown, word
    assert {row["answer"] for row in rows} == set(ANSWERS), "as they are written, whatever they hold"
    strata = [answer["stratum"] for answer in json.loads((drawn / "sample.json").read_text())["answers"]]
    assert sum(a != b for a, b in pairwise(strata)) > 250, "labels are mixed"


def test_the_sample_depends_on_seed_and_answers_alone(folders, drawn, tmp_path):
    again = audit.sample(folders[::-1], tmp_path / "again", seed=7)
    assert (tmp_path / "again" / "sheet.csv").read_text() == (drawn / "sheet.csv").read_text()
    # The same evaluation twice has the same answers once.
    twice = audit.sample([folders[0], *folders], tmp_path / "twice", seed=7)
    assert again["answers"] == twice["answers"]
    other = audit.sample(folders, tmp_path / "other", seed=8)
    assert {a["item_id"] + a["cell"] for a in other["answers"]} != {a["item_id"] + a["cell"] for a in again["answers"]}
    fewer = audit.sample(folders, tmp_path / "fewer", per_label=5, seed=7)["answers"]
    picked = {(a["system"], a["item_id"], a["cell"]) for a in again["answers"]}
    assert {(a["system"], a["item_id"], a["cell"]) for a in fewer} <= picked, "a smaller sample is its beginning"


def test_another_matcher_is_audited_by_its_own_labels(folders, tmp_path):
    made = audit.sample(folders, tmp_path / "exact", per_label=2000, column="exact")
    answers = {(row["system"], row["item_id"], row["cell"]): row for f in folders for row in outcomes.read(f)}
    for answer in made["answers"]:
        row = answers[answer["system"], answer["item_id"], answer["cell"]]
        assert audit.MATCHER[row["exact"]] == answer["stratum"]
    assert sum(made["strata"].values()) == 2 * (2 * 40 * 12 - 2), "all there are, but for two failed ones a folder"


def test_what_cannot_be_sampled_is_refused(folders, drawn, tmp_path):
    with pytest.raises(Refusal, match=r"sheet\.csv: is there already, and may be filled in"):
        audit.sample(folders, drawn)
    with pytest.raises(Refusal, match="does not exist"):
        audit.sample([tmp_path / "nowhere"], tmp_path / "out")
    with pytest.raises(Refusal, match="is an evaluation on mist; give one on a suite of RAG-Stress"):
        audit.sample([evaluated(tmp_path / "mist", 1, suite="mist")], tmp_path / "out")
    assert not (tmp_path / "out").exists()


# ---------------------------------------------------------------- the labels


def test_bad_lines_are_named_all_at_once(drawn, tmp_path):
    copied(drawn, tmp_path)
    changes = {2: ("label", "golden"), 3: ("label", ""), 4: ("cause", "tired"), 5: ("row", "451"), 6: ("row", "7")}

    def write(row, stratum):
        agreeing(row, stratum)
        column, value = changes.get(int(row["row"]), ("note", ""))
        row[column] = value

    fill(tmp_path, write, lambda rows: rows[:-1])
    with pytest.raises(TableError) as caught:
        audit.read(tmp_path)
    # The answers hold carriage returns, so that rows and lines differ; the reader counts lines.
    said = [fault.split("sheet.csv:")[1].split(": ", 1) for fault in caught.value.faults]
    assert [sentence for _, sentence in said] == [
        "label: 'golden' is no label; write gold, foil, hedge or other",
        "label: is empty; write gold, foil, hedge or other",
        "cause: 'tired' is no cause; write alias/format, hedged, multi-entity, explanatory or other, or nothing",
        "row: '451' was not handed out; restore the column",
        "row: 7 stands twice; keep one of them",
        "row: 5 is missing (3 in all); restore the rows",
    ]
    lines = [int(line) for line, _ in said]
    assert lines[-1] == 0 and lines[:-1] == sorted(lines[:-1]) and lines[0] >= 3


def test_a_lost_column_and_a_lost_sample_are_named(drawn, tmp_path):
    copied(drawn, tmp_path)
    (tmp_path / "sheet.csv").write_text("row,label,note\n1,gold,\n")
    with pytest.raises(TableError, match=r"sheet\.csv:1: cause: there is no such column"):
        audit.read(tmp_path)
    (tmp_path / "sample.json").unlink()
    with pytest.raises(Refusal, match=r"sample\.json: cannot be read .*; draw a sample first"):
        audit.read(tmp_path)


def test_labels_and_causes_are_read_as_people_write_them(drawn, tmp_path):
    copied(drawn, tmp_path)

    def write(row, stratum):
        row["label"], row["cause"] = " Gold ", "Alias_format" if stratum == "foil" else "multi entity"

    fill(tmp_path, write)
    found = audit.agreement(audit.read(tmp_path))
    assert found["agree"] == 150 and found["foil_only_precision"] == 0.0
    assert found["kappa"] == 0.0, "a person who always says the same agrees by chance alone"
    assert {name: each["n"] for name, each in found["causes"].items()} == {"alias/format": 150, "multi-entity": 150}


def test_agreement_by_hand():
    """Merged: gold-gold 2, foil-foil 1, foil-unmatched 1, unmatched-unmatched 1, of 5: 4 agree.

    By chance (2 * 2 + 2 * 1 + 1 * 2) / 25 = 8/25: kappa = (20/25 - 8/25) / (17/25) = 12/17.
    """
    pairs = [("gold", "gold"), ("gold", "gold"), ("foil", "foil"), ("foil", "hedge"), ("unmatched", "other")]
    rows = [{"row": n, "matcher": m, "human": h, "cause": "", "note": ""} for n, (m, h) in enumerate(pairs, 1)]
    found = audit.agreement(rows)
    assert (found["agree"], found["n"], found["share"]) == (4, 5, 0.8)
    assert found["kappa"] == pytest.approx(12 / 17)
    assert found["foil_only_precision"] == 0.5 and found["causes"] == {"not given": {"n": 1, "share": 1.0}}
    assert "without a cause are rows 4 (foil, by hand hedge)" in audit.as_text(found)
    nothing = audit.agreement([])
    assert (nothing["share"], nothing["kappa"], nothing["foil_only_precision"]) == (None, None, None)
    assert "undefined" in audit.as_text(nothing)


def test_kappa_of_three_labels_by_hand():
    """6 of 9 equal; by chance (3 * 3 + 3 * 4 + 3 * 2) / 81 = 1/3: kappa = (2/3 - 1/3) / (2/3) = 1/2."""
    assert kappa("aaabbbccc", "aababbccb") == 0.5
    assert kappa("", "") is None and kappa("aa", "aa") is None
    with pytest.raises(ValueError):
        kappa("ab", "a")


@pytest.mark.skipif(not REFERENCE.is_dir(), reason="the shared tables are not here: ../shared/reference/rag_stress")
def test_table_6_from_a_filled_sheet(drawn, tmp_path, capsys):
    """The paper's counts written into a sheet give its agreement, kappa and causes."""
    copied(drawn, tmp_path)
    printed = {row["matcher"]: row for row in table("table6_matcher")}
    left = {
        stratum: [label for label in audit.HUMAN for _ in range(int(printed[name][f"human_{label}"]))]
        for stratum, name in (("gold", "gold"), ("foil", "foil_only"), ("unmatched", "unmatched"))
    }
    causes = [row for row in table("table6_causes") if row["cause"] != "total_errors"]
    reasons = [row["cause"] for row in causes for _ in range(int(row["n"]))]

    def write(row, stratum):
        row["label"] = left[stratum].pop()
        if audit.HUMAN[row["label"]] != stratum:
            row["cause"] = reasons.pop()

    fill(tmp_path, write)
    main(["agreement", str(tmp_path)])
    assert not reasons and not any(left.values()), "26 errors have 26 causes"
    shown = capsys.readouterr().out
    assert "agreement 424/450, kappa 0.9133" in shown and "foil-only precision 95.3 %; 26 errors" in shown
    found = json.loads((tmp_path / "agreement.json").read_text())
    facts = {row["name"]: float(row["value"]) for row in table("facts") if row["name"].startswith("matcher_")}
    assert (found["n"], len(found["errors"])) == (facts["matcher_sample"], facts["matcher_errors"])
    assert found["kappa"] == pytest.approx(0.9133, abs=5e-5) == pytest.approx(facts["matcher_kappa"], abs=0.005)
    close(found["share"], facts["matcher_agreement"])
    close(found["foil_only_precision"], facts["matcher_foil_only_precision"])
    for stratum, name in (("gold", "gold"), ("foil", "foil_only"), ("unmatched", "unmatched")):
        close(found["by_label"][stratum]["share"], float(printed[name]["agreement"]))
    for row in causes:
        ours = found["causes"][audit._cause(row["cause"])]
        assert ours["n"] == int(row["n"])
        close(ours["share"], float(row["percent"]))


def table(name):
    with (REFERENCE / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def close(share, printed):
    assert abs(100 * share - printed) <= 0.05 + 1e-9


# ---------------------------------------------------------------- the command


def test_the_command_draws_imports_and_never_overwrites(folders, tmp_path, capsys):
    out = tmp_path / "sheets"
    command = [
        sys.executable,
        "-m",
        "scope.evaluation.ragstress",
        "sample",
        *folders,
        "--out",
        out,
        "--per-label",
        2000,
    ]
    done = subprocess.run([*map(str, command)], cwd=ROOT, capture_output=True, text=True, timeout=1200)
    assert done.returncode == 0 and done.stderr == ""
    assert "warning: gold: there are " in done.stdout and "fill in label, then run: agreement" in done.stdout
    fill(out, agreeing)
    before = (out / "sheet.csv").read_bytes()
    with pytest.raises(SystemExit) as left:
        main(["sample", str(folders[0]), "--out", str(out)])
    said = capsys.readouterr().err
    assert left.value.code == 2 and said.startswith("error: ") and "may be filled in" in said
    assert (out / "sheet.csv").read_bytes() == before
    main(["agreement", str(out)])
    said = capsys.readouterr().out
    assert "kappa 1.0000" in said and "0 errors" in said
