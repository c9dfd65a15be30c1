"""Reports: the published identities, what is bold, what is marked, and text that tries to be markup."""

import csv
import html.parser
import json
import re
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import test_results
from conftest import SHARED
from markdown_it import MarkdownIt

from scope.artifacts import StageError
from scope.evaluation.results import Settings, results
from scope.evaluation.suites import SUITES
from scope.items import CHANNELS, PROVENANCES
from scope.report import folder, markup, published, tables
from scope.report.compare import as_text
from scope.report.lines import best, control_mean, drop, mean, measured, per_cent
from scope.report.terminal import table

HOSTILE = ["<script>alert(1)</script>", "a_b%", "x|y\nz", "$\\alpha$ {~^#&}", '[*] --`q` "d" 模 é', "*b*_i_](java:x)"]
ACCURACIES = ("clean", "misleading", "correct", "irrelevant")
REFERENCE = SHARED / "reference" / "scope_mist"


def item(n):
    """Items of two provenances, two topics with markup in them, and three channels."""
    topic = ("<b>", "a|b_%")[n % 2]
    return replace(test_results.item(n), provenance=PROVENANCES[n % 2], topic=topic, channel=CHANNELS[n % 3])


def compared(found, steps=None):
    """Results as `compare` completes them."""
    names = list(found["systems"])
    steps = steps or {name: 0 if name == "base" else None for name in names}
    named = {"model": "lab/base", "facts": {}, "notes": [], "steps": steps}
    return {**found, **named, "folders": {name: f"runs/demo/{name}" for name in names}}


def row(system, n, cell, label, **more):
    return {
        "system": system,
        "item_id": f"i{n}",
        "cell": cell,
        "label": label,
        "n_tokens": 4,
        "finish_reason": "stop",
        **more,
    }


def mist(names, n=40, failed=(), clean=0.85, steps=None):
    """Results of random answers. failed: (system, cell) pairs one request of which failed."""
    rng = np.random.default_rng(7)
    rows = []
    for place, name in enumerate(names):
        for cell, p in zip(ACCURACIES, (clean, 0.2 + 0.08 * place, 0.9, 0.8), strict=True):
            labels = np.where(rng.random(n) < p, "right", "wrong").tolist()
            labels[0] = "failed" if (name, cell) in failed else labels[0]
            rows += [row(name, k, cell, label, flexible_label=label) for k, label in enumerate(labels)]
    return compared(results(SUITES["mist"], [item(k) for k in range(n)], rows, Settings(replicates=60)), steps)


def transfer(suite, names, n=30):
    rng = np.random.default_rng(8)
    facts = {column: "a" for column in SUITES[suite].columns}
    items = [SimpleNamespace(id=f"i{k}", misleads=k % 2 == 0, **facts) for k in range(n)]
    rows = []
    for name in names:
        for k in range(n):
            correct, follows = (bool(rng.random() < p) for p in (0.7, 0.2))
            said = {"correct": correct, "follows": follows}
            rows += [row(name, k, cell, "right" if correct else "wrong", **said) for cell in SUITES[suite].cells]
    return compared(results(SUITES[suite], items, rows, Settings(replicates=60)))


def every_suite(names):
    return {"mist": mist(names), **{suite: transfer(suite, names) for suite in tables.TRANSFER}}


def rows_of(shown):
    """First cell -> texts of the row."""
    return {row[0].text: [cell.text for cell in row] for group in shown.groups for row in group.rows}


# ---------------------------------------------------------------- published numbers


def test_published_numbers_keep_the_identities_of_the_paper():
    """shared/reference/README.md, SCOPE/MIST 1, 5, 7, 8, 9 and 10, by the code that aggregates here."""
    first, third = published.lines("mist", 1), published.lines("mist", 3)
    assert (len(first), len(third)) == (35, 6)
    for line in first + third:
        overall = mean([per_cent(line.rates[cell]) for cell in ACCURACIES])
        assert abs(overall - per_cent(line.rates["overall"])) <= 0.05 + 1e-9
    shelf = published.off_the_shelf("mist")
    assert len(shelf) == 23 and mean([drop(line.rates) for line in shelf]) == pytest.approx(17.104, abs=5e-4)
    assert all(drop(line.rates) > 0 for line in first if line.method == "base")
    transferred = tables.published_transfer(tables.TRANSFER)
    slices = published.slices("mist")
    for model in ("Qwen3-4B", "Llama-3.2-3B"):
        arms = [line for line in first if line.model == model]
        by = {line.method: line for line in arms}
        assert winners(arms, "overall") == {"scope"}
        assert winners(arms, "sc2w", lower=True) == {"scope" if model == "Qwen3-4B" else "sft"}
        assert control_mean(by["scope"].rates) > control_mean(by["base"].rates)
        moved = [line for line in transferred if line.model == model]
        for metric in ("gsm_ic.accuracy", "gsm_plus.accuracy", "sycophancy.accuracy"):
            assert "scope" in winners(moved, metric)
        assert winners(moved, "sycophancy.bias_following", lower=True) == {"standard_dpo"}
        base, scope = slices[f"{model}, base"], slices[f"{model}, scope"]
        assert len(base) == 14 and all(scope[place]["estimate"] < base[place]["estimate"] for place in base)
    ablation = {line.method: line.rates for line in third}
    same = {line.method: line.rates for line in first if line.model == "Qwen3-4B"}
    for metric in SUITES["mist"].headings:
        assert ablation["scope"][metric]["estimate"] == same["scope"][metric]["estimate"]
        assert ablation["misleading_only"][metric]["estimate"] == same["standard_dpo"][metric]["estimate"]


def winners(lines, metric, lower=False):
    return {lines[n].method for n in best([line.rates[metric] for line in lines], lower)}


def test_published_numbers_are_called_as_here():
    with published.FILE.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 356
    for entry in rows:
        assert entry["metric"] in SUITES[entry["suite"]].headings
        assert not entry["slice"] or entry["column"] in SUITES[entry["suite"]].columns
        assert entry["column"] != "channel" or entry["slice"] in CHANNELS
        assert entry["column"] != "provenance" or entry["slice"] in PROVENANCES


@pytest.mark.skipif(not REFERENCE.is_dir(), reason="the transcribed tables are not beside this checkout")
def test_published_numbers_are_those_transcribed():
    def read(name):
        with (REFERENCE / name).open(encoding="utf-8") as file:
            return list(csv.DictReader(file))

    def shown(rate, part="estimate"):
        return f"{100 * rate[part]:.1f}"

    for theirs, line in zip(read("table1_mist.csv"), published.lines("mist", 1), strict=True):
        assert line.method == theirs["method"] and theirs["model"].split()[0] in line.model
        for metric, rate in line.rates.items():
            assert (shown(rate), shown(rate, "sd")) == (theirs[metric], theirs[f"{metric}_sd"])
    names = {"gsm_ic": "gsm_ic.accuracy", "gsm_plus": "gsm_plus.accuracy", "sharma_acc": "sycophancy.accuracy"}
    names |= {"sharma_bias": "sycophancy.bias_following", "sharma_mislead_subset_acc": "sycophancy.misleading_accuracy"}
    for theirs, line in zip(read("table2_transfer.csv"), tables.published_transfer(tables.TRANSFER), strict=True):
        assert {name: shown(line.rates[ours]) for name, ours in names.items()}.items() <= theirs.items()
    for theirs, line in zip(read("table3_ablation.csv"), published.lines("mist", 3), strict=True):
        assert {metric: shown(rate) for metric, rate in line.rates.items()}.items() <= theirs.items()
    fourth = sorted(shown(rate) for by in published.slices("mist").values() for rate in by.values())
    assert fourth == sorted(theirs["sc2w"] for theirs in read("table4_slices.csv"))


def test_published_rows_are_marked_and_never_ranked():
    made = {shown.name: shown for shown in tables.tables(every_suite(["base", "scope"]), with_published=True)}
    for shown in made.values():
        rows = [row for group in shown.groups if group.heading.startswith("published") for row in group.rows]
        assert all("(published)" in row[0].text and not any(cell.bold for cell in row) for row in rows)
        assert "published, not measured here" in " ".join(shown.notes) or not rows
    main = made["mist_rates"]
    assert len(main.groups[1].rows) == 35 and any(cell.bold for row in main.groups[0].rows for cell in row)
    for text in (markup.as_markdown(main), markup.as_latex([main]), markup.as_html(main)):
        assert text.count("(published)") == 35 and "published, not measured here" in text
    assert rows_of(made["transfer"])["Qwen3-4B, scope (published)"][1:3] == ["99.7", "87.3"]
    differences = rows_of(made["mist_differences"])
    assert differences["scope - base (published)"][-1] == "-18.7"
    assert differences["no_clean - base (published)"][-1] == "-18.0"
    assert made["mist_slices"].head[4] == "Qwen3-4B, base (published)"
    assert (rows_of(made["mist_slices"])["answer_key"][4], rows_of(made["mist_slices"])["<b>"][4]) == ("60.9", "–")


def test_published_numbers_are_refused_for_other_suites():
    published.check("mist")
    with pytest.raises(StageError, match="no numbers on capitals, only on mist, gsm_ic, gsm_plus, sycophancy"):
        published.check("capitals")


# ---------------------------------------------------------------- what a table says


def test_the_best_of_a_column_is_bold_ties_too_and_of_sc2w_the_lowest():
    found = mist(["base", "b", "c"])
    for system, clean, sc2w in (("base", 0.9, 0.5), ("b", 0.9004, 0.2), ("c", 0.8, None)):
        found["systems"][system]["rates"]["clean"]["estimate"] = clean
        found["systems"][system]["rates"]["sc2w"]["estimate"] = sc2w
    shown = tables.rates(found)
    assert shown.head == ["per cent", "Clean", "Misleading", "Correct ctx", "Irrelevant", "Overall", "SC2W ↓"]
    named = [row for row in shown.groups[0].rows if row[0].text in found["systems"]]
    assert [row[1].bold for row in named] == [True, True, False]
    assert [row[-1].bold for row in named] == [False, True, False]
    alone = tables.rates(mist(["base"]))
    assert not any(cell.bold for row in alone.groups[0].rows for cell in row)
    assert f"**{named[1][-1].text}**" in markup.as_markdown(shown)
    assert r"\textbf{" in markup.as_latex([shown]) and "<b>" in markup.as_html(shown)


def test_undefined_and_withheld_rates_say_so_and_are_never_zero():
    found = mist(["base", "scope"], failed=[("scope", "misleading")], clean=0.0)
    rows = rows_of(tables.rates(found))
    assert rows["base"][6] == "undefined" and rows["scope"][2] == rows["scope"][5] == rows["scope"][6] == "withheld"
    difference, limits, tests = tables.paired_rows(found)[0][:3]
    assert difference[2] == "withheld" and limits[2] == tests[2] == "", "no test of a withheld cell"
    assert tests[3] != "", "the other cells' tests stand"
    for text in (as_text(found), table({**found, "arm": "scope"})):
        assert "undefined" in text and "withheld" in text and "repaired" not in text
    places = {place for place, head in enumerate(tables.slices(found).head) if head in ("base", "scope")}
    for texts in rows_of(tables.slices(found)).values():
        assert {texts[place] for place in places} == {"undefined", "withheld"}


def test_a_suite_that_not_every_system_was_asked_has_dashes():
    both = {"gsm_ic": transfer("gsm_ic", ["base", "scope"]), "gsm_plus": transfer("gsm_plus", ["base"])}
    shown = tables.transfer(both)
    assert shown.head == ["per cent", "GSM-IC: Accuracy", "GSM-Plus: Accuracy"]
    assert rows_of(shown)["scope"][2] == "–" and rows_of(shown)["base"][2] != "–"


def test_lines_are_what_results_have():
    found = mist(["base", "scope"])
    assert [line.name for line in measured(found)] == ["base", "scope"]
    rates = found["systems"]["scope"]["rates"]
    controls = [100 * rates[cell]["estimate"] for cell in ("clean", "correct", "irrelevant")]
    assert control_mean(rates) == pytest.approx(sum(controls) / 3)
    assert control_mean({**rates, "clean": {"estimate": None}}) is None


# ---------------------------------------------------------------- text that tries to be markup


class Tags(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.tags, self.attributes, self.texts = set(), [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes += attrs

    def handle_data(self, data):
        self.texts.append(data)


def test_hostile_names_stay_text_on_the_page(tmp_path):
    found = {"mist": mist(["base", *HOSTILE])}
    found["mist"]["notes"] = ["<img src=x onerror=alert(1)>"]
    found["mist"]["model"] = '"><script>x</script>'
    folder.write(tmp_path / "report", found, [], True)
    parsed = Tags((tmp_path / "report" / "index.html").read_text("utf-8"))
    assert "script" not in parsed.tags and not {name for name, _ in parsed.attributes if name.startswith("on")}
    sources = [value for name, value in parsed.attributes if name == "src"]
    assert sources and all(value.startswith("data:image/svg+xml;base64,") for value in sources)
    links = {value for name, value in parsed.attributes if name == "href"}
    assert links == {"tables.md", "tables.tex", "results.json"}
    assert all(name.replace("\n", " ") in parsed.texts for name in HOSTILE) and "a|b_%" in parsed.texts
    for svg in (tmp_path / "report" / "figures").glob("*.svg"):
        assert b"<script" not in svg.read_bytes()


def test_hostile_names_stay_text_in_markdown():
    shown = tables.rates(mist(["base", *HOSTILE]))
    rendered = MarkdownIt("commonmark", {"html": True}).enable("table").render(markup.as_markdown(shown))
    parsed = Tags(rendered)
    assert parsed.tags <= {"h3", "table", "thead", "tbody", "tr", "th", "td", "strong", "ul", "li"}
    assert rendered.count("<td") == 7 * 4 * len(shown.head), "four lines a system, no cell begun by a name"
    assert all(name.replace("\n", " ") in "".join(parsed.texts) for name in HOSTILE)


def test_hostile_names_stay_text_in_latex():
    document = markup.as_latex(tables.tables({"mist": mist(["base", *HOSTILE])}, True))
    opened = []
    for kind, name in re.findall(r"\\(begin|end)\{(\w+)\}", document):
        assert kind == "begin" or opened.pop() == name
        opened += [name] * (kind == "begin")
    assert not opened
    body = document.partition(r"\begin{document}")[2]
    bare = re.sub(r"\\[&%$#_{}\\]", "", body.replace("tab:mist_", ""))
    assert bare.count("{") == bare.count("}") and bare.count("$") % 2 == 0 and not set("%#_~^") & set(bare)
    layout = "begin end centering small caption label fit toprule midrule bottomrule multicolumn emph textbf par"
    layout += " smallskip parbox linewidth footnotesize raggedright character"
    symbols = "pm downarrow textbackslash textasciitilde textasciicircum textless textgreater textbar textquotedbl"
    allowed = {*layout.split(), *symbols.split(), "dagger", "textasciigrave", "textendash"}
    assert set(re.findall(r"\\([a-zA-Z]+)", bare)) <= allowed
    for columns, inside in re.findall(r"\\begin\{tabular\}\{@\{\}(\w+)@\{\}\}(.*?)\\end\{tabular\}", body, re.S):
        rows = [line for line in inside.split("\n") if line.endswith(r" \\") and "multicolumn" not in line]
        assert rows and {len(re.findall(r"(?<!\\)&", line)) for line in rows} == {len(columns) - 1}
        assert not [line for line in rows if line.startswith(("[", "*"))], "an argument of the row before"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("50 % & $5_#1", r"50 \% \& \$5\_\#1"),
        ("\\x{y}~^", r"\textbackslash{}x\{y\}\textasciitilde{}\textasciicircum{}"),
        ("-1.5 a--b checkpoint-60", "$-$1.5 a-{}-b checkpoint-60"),
        ("[+1.0, -2.0]", "{[}+1.0, $-$2.0{]}"),
        ("模\x00é", r"\character{模}{6A21} é"),
    ],
)
def test_latex_is_escaped(text, expected):
    assert markup.escape_latex(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x|y\nz", r"x\|y z"),
        ("a_b _c_ *d*", r"a_b \_c\_ \*d\*"),
        ("<i>&amp;", "&lt;i>&amp;amp;"),
        ("$1 `q` [a](b)", r"\$1 \`q\` [a]\(b)"),
    ],
)
def test_markdown_is_escaped(text, expected):
    assert markup.escape_markdown(text) == expected


# ---------------------------------------------------------------- the folder


def test_a_report_s_folder_is_written_whole_and_the_same_twice(tmp_path):
    found, out = {"mist": mist(["base", "scope"])}, tmp_path / "report"
    folder.write(out, found, [], False)
    before = {str(path.relative_to(out)): path.read_bytes() for path in out.rglob("*") if path.is_file()}
    assert {name for name in before if not name.startswith("figures/")} == set(folder.FILES)
    assert json.loads(before["results.json"]) == json.loads(json.dumps(found))
    (out / "figures" / "stale.svg").write_text("of an earlier report")
    folder.write(out, found, [], False)
    assert {str(path.relative_to(out)): path.read_bytes() for path in out.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize("foreign", ["thesis.docx", "figures/me.jpg"])
def test_a_folder_of_something_else_is_left_alone(tmp_path, foreign):
    (tmp_path / "figures").mkdir()
    (tmp_path / foreign).write_text("mine")
    with pytest.raises(StageError, match=f"holds {foreign.split('/')[-1]}, which is no report's"):
        folder.write(tmp_path, {"mist": mist(["base"])}, [], False)
    assert (tmp_path / foreign).read_text() == "mine" and not (tmp_path / "index.html").exists()
