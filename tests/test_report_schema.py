"""docs/results.md is what evaluations write: keys, types and columns are read from the page and held to real files."""

import json
import re

import pyarrow.parquet as pq
import pytest
from conftest import ROOT
from test_misleadqa import every_misleadqa, made_up
from test_ragstress import BASE, summed
from test_report import every_suite, mist

from scope.evaluation.results import SCHEMA
from scope.report.compare import compare_all

PAGE = (ROOT / "docs" / "results.md").read_text("utf-8")
TYPES = {
    "int": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "bool": lambda value: isinstance(value, bool),
    "text": lambda value: isinstance(value, str),
    "null": lambda value: value is None,
    "any": lambda value: True,
    "list of text": lambda value: isinstance(value, list) and all(isinstance(entry, str) for entry in value),
    "[low, high]": lambda value: isinstance(value, list) and len(value) == 2 and value[0] <= value[1],
}


def table(section):
    """Rows of the first table below a heading, cells without backticks."""
    text = PAGE.partition(f"## {section}\n")[2].partition("\n## ")[0]
    rows = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in text.splitlines() if line[:3] == "| `"]
    return [[cell.strip("` ") for cell in row] for row in rows]


def leaves(value, path=()):
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from leaves(inner, (*path, name))
    else:
        yield path, value


def check(results, place):
    """Every leaf is documented for this file with its type, and every key documented as always there is there."""
    documented = {tuple(key.split(".")): (kind, where.split(", ")) for key, kind, where, _ in table("results.json")}
    seen = set()
    for path, value in leaves(results):
        fits = [
            pattern
            for pattern in documented
            if len(pattern) == len(path) and all(p in ("*", name) for p, name in zip(pattern, path, strict=True))
        ]
        assert fits, f"{'.'.join(path)} is not in docs/results.md"
        kind, where = documented[fits[0]]
        assert {place, f"{place}?"} & set(where), f"{'.'.join(path)} is documented for {where}, found in a {place}"
        assert any(TYPES[one](value) for one in kind.split(" or ")), f"{'.'.join(path)}: {value!r} is no {kind}"
        seen.add(fits[0])
    missing = {pattern for pattern, (_, where) in documented.items() if place in where} - seen
    assert not missing, f"documented, and not there: {sorted(map('.'.join, missing))}"
    return seen


def test_the_report_of_synthetic_results_has_the_documented_keys():
    every = every_suite(["base", "scope"]) | {"failed": mist(["base", "scope"], failed=[("scope", "misleading")])}
    every |= every_misleadqa(["base", "scope", "sft"])
    every["withheld"] = made_up(["base", "scope"], failed=True)
    every["few"] = made_up(["base", "scope"], n=16)
    three = {"base": BASE, "scope": BASE, "sft": BASE}
    for name, marks in (("stress", BASE), ("stress withheld", {**BASE, "edited_strict_end": "gfxffn"})):
        found = summed({**three, "sft": marks}, groups=dict.fromkeys(three, "open"))
        del found["arm"], found["facts"]
        every[name] = {**found, "folders": {"base": "runs/x"}, "steps": {"base": 0}}
    seen = set().union(*(check(found, "report") for found in every.values()))
    documented = {tuple(row[0].split(".")) for row in table("results.json")}
    assert documented - seen == {("arm",), ("facts", "*")}, "every other key is one that real code writes"
    assert next(row for row in table("results.json") if row[0] == "schema")[3].startswith(f"{SCHEMA};")


def test_a_finished_run_has_the_documented_keys_and_columns(finished_run):
    out, _ = finished_run
    folder = out / "scope" / "evaluate" / "mist"
    check(json.loads((folder / "results.json").read_text("utf-8")), "run")
    check(compare_all([out])["mist"], "report")
    kinds = {"text": "string", "int": "int64", "number": "double", "text or null": "string"}
    for name in ("outcomes.parquet", "timings.parquet"):
        columns = {field.name: str(field.type) for field in pq.read_schema(folder / name)}
        assert columns == {column: kinds[kind] for column, kind, _ in table(name)}, name
    documented = {column: kind for column, kind, _ in table("items.jsonl")}
    for line in (folder / "items.jsonl").read_text("utf-8").splitlines():
        item = json.loads(line)
        assert item.keys() <= documented.keys()
        assert {column for column, kind in documented.items() if not kind.endswith("?")} <= item.keys()
        assert all(TYPES[documented[column].rstrip("?")](value) for column, value in item.items())


def snippet(language, finished_run):
    """The page's code, reading the finished run, and the SC2W that its results have."""
    folder = finished_run[0] / "scope" / "evaluate" / "mist"
    results = json.loads((folder / "results.json").read_text("utf-8"))
    wanted = {name: system["rates"]["sc2w"]["estimate"] for name, system in results["systems"].items()}
    code = re.search(rf"```{language}\n(.*?)```", PAGE, re.S)[1]
    return code.replace("runs/quickstart/scope/evaluate/mist", str(folder)), pytest.approx(wanted)


def test_the_pandas_snippet_counts_what_the_results_say(finished_run):
    code, wanted = snippet("python", finished_run)
    found: dict = {}
    exec(code, found)
    assert found["sc2w"].to_dict() == wanted and found["rates"].loc["sc2w"].to_dict() == wanted


def test_the_duckdb_snippet_counts_what_the_results_say(finished_run):
    duckdb = pytest.importorskip("duckdb")
    query, wanted = snippet("sql", finished_run)
    assert {row[0]: row[1] for row in duckdb.sql(query).fetchall()} == wanted
