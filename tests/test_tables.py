"""Rows of every kind of file: what is read, where each row stands, and a sentence for whatever is wrong."""

import csv
import gzip
import io
import json
import re

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scope.artifacts import write_parquet
from scope.tables import MAX_ROW_BYTES, TableError, kind, read_rows, rows_of

ROWS = [
    {"id": "a", "text": "one"},
    {"id": "b", "text": "two\nlines, and a comma"},
    {"id": "c", "text": "“日本” \u2028"},
]


def csv_bytes(rows, delimiter=","):
    out = io.StringIO()
    # Quoted throughout: by itself the writer leaves a lone carriage return bare.
    writer = csv.DictWriter(out, list(rows[0]), delimiter=delimiter, lineterminator="\n", quoting=csv.QUOTE_ALL)
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue().encode()


def encoded(name, rows=ROWS):
    """The bytes of rows in the kind of file that a name says."""
    plain = name.removesuffix(".gz")
    if plain.endswith(".jsonl"):
        raw = b"".join(json.dumps(row).encode() + b"\n" for row in rows)
    elif plain.endswith(".json"):
        raw = json.dumps(rows, indent=1).encode()
    else:
        raw = csv_bytes(rows, "\t" if plain.endswith(".tsv") else ",")
    return gzip.compress(raw) if name.endswith(".gz") else raw


NAMES = ["t.jsonl", "t.jsonl.gz", "t.json", "t.json.gz", "t.csv", "t.csv.gz", "t.tsv", "t.TSV"]


def write(path, raw):
    path.write_bytes(raw)
    return path


def numbered(path):
    """[(line number, row or fault)]"""
    out = []
    for where, row in read_rows(path):
        name, _, line = where.rpartition(":")
        assert name == str(path)
        out.append((int(line), row))
    return out


def refusal(path, **kw):
    with pytest.raises(TableError) as caught:
        list(rows_of(path, **kw))
    assert re.match(r"\S+:\d+: [\w ]+: .+; .+", str(caught.value)), str(caught.value)
    return str(caught.value)


# ---------------------------------------------------------------- what is read


@pytest.mark.parametrize("name", NAMES)
def test_every_kind_gives_the_same_rows(tmp_path, name):
    # The TSV of an upper-case name is read as one too.
    raw = encoded(name.casefold())
    assert [row for _, row in read_rows(write(tmp_path / name, raw))] == ROWS


def test_parquet_gives_plain_python_and_numbers_its_rows(tmp_path):
    rows = [{"id": str(n), "options": ["x", "y"], "meta": {"a": n, "b": [{"c": 1.5}]}} for n in range(2500)]
    write_parquet(tmp_path / "t.parquet", rows)
    found = numbered(tmp_path / "t.parquet")
    # More rows than a batch: numbering goes on over batches.
    assert found == list(enumerate(rows, 1))
    assert type(found[0][1]["meta"]["b"]) is list


def test_parquet_maps_become_objects(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.table({"options": pa.array([[("A", "x"), ("B", "y")]], pa.map_(pa.string(), pa.string()))})
    pq.write_table(table, tmp_path / "t.parquet")
    assert numbered(tmp_path / "t.parquet") == [(1, {"options": {"A": "x", "B": "y"}})]


def test_line_numbers_are_those_an_editor_shows(tmp_path):
    assert [n for n, _ in numbered(write(tmp_path / "t.csv", encoded("t.csv")))] == [2, 3, 5]
    assert [n for n, _ in numbered(write(tmp_path / "t.json", b'[\n{"a": 1},\n\n{"a":\n 2}, {"a": 3}\n]\n'))] == [
        2,
        4,
        5,
    ]
    assert [n for n, _ in numbered(write(tmp_path / "t.jsonl", b'{"a": 1}\n\n \n{"a": 2}'))] == [1, 4]


def test_a_byte_order_mark_and_windows_line_ends_change_nothing(tmp_path):
    for name in ("t.csv", "t.json", "t.jsonl"):
        raw = b"\xef\xbb\xbf" + encoded(name, ROWS[:1]).replace(b"\n", b"\r\n")
        assert [row for _, row in read_rows(write(tmp_path / name, raw))] == ROWS[:1]


def test_a_json_file_of_lines_is_read_as_lines(tmp_path):
    assert [row for _, row in read_rows(write(tmp_path / "t.json", encoded("t.jsonl")))] == ROWS


@pytest.mark.parametrize("raw", [b"[]", b" [ ] \n"])
def test_an_empty_list_has_no_rows(tmp_path, raw):
    assert numbered(write(tmp_path / "t.json", raw)) == []


def test_a_header_alone_has_no_rows(tmp_path):
    assert numbered(write(tmp_path / "t.csv", b"a,b\n")) == []


def test_a_cell_may_be_longer_than_the_csv_module_allows_by_itself(tmp_path):
    long = "x" * 500_000
    assert numbered(write(tmp_path / "t.csv", csv_bytes([{"a": long, "b": "1"}]))) == [(2, {"a": long, "b": "1"})]


TEXT = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"), min_size=1)


@settings(deadline=None, max_examples=60)
@given(rows=st.lists(st.fixed_dictionaries({"a": TEXT, "b": TEXT}), min_size=1, max_size=4))
def test_any_text_comes_back_from_every_text_kind(tmp_path_factory, rows):
    folder = tmp_path_factory.mktemp("text")
    for name in ("t.jsonl", "t.json", "t.csv", "t.tsv.gz"):
        assert [row for _, row in read_rows(write(folder / name, encoded(name, rows)))] == rows


# ---------------------------------------------------------------- faults of one row

FAULTS = {
    # Row 2 stands on lines 3 and 4, so the bad one on line 5.
    "undecodable after a quoted newline": (
        b'id,text\na,one\nb,"two\nlines"\nc,caf\xe9\nd,four\n',
        {5: "row: is not UTF-8; save the file as UTF-8"},
    ),
    "too many cells": (b"a,b\n1,2,3\n4,5\n", {2: "row: has 3 cells, the header 2"}),
    "too few cells": (b"a,b\n1\n4,5\n", {2: "row: has 1 cells, the header 2"}),
    "NUL": (b"a,b\n1,\x002\n4,5\n", {2: "row: holds a NUL byte"}),
    "text after a closing quote": (b'a,b\n1,"2"3\n4,5\n', {2: "row: is not valid CSV ("}),
    "a quote that is never closed": (b'a,b\n4,5\n1,"2\n6,7\n', {3: "row: is not valid CSV, up to line 4, ("}),
    "blank lines are no rows": (b"a,b\n\n1\n\n4,5\n", {3: "row: has 1 cells"}),
}


@pytest.mark.parametrize("raw, faults", [pytest.param(*case, id=name) for name, case in FAULTS.items()])
def test_a_bad_csv_row_is_named_and_the_others_are_read(tmp_path, raw, faults):
    found = numbered(write(tmp_path / "t.csv", raw))
    bad = {n: row for n, row in found if isinstance(row, str)}
    assert bad.keys() == faults.keys()
    assert all(bad[n].startswith(faults[n]) for n in faults), bad
    # Every file above has at least one good row.
    assert any(isinstance(row, dict) for _, row in found)


@pytest.mark.parametrize("name", ["t.csv", "t.jsonl", "t.csv.gz", "t.jsonl.gz", "t.json"])
def test_a_huge_row_is_a_fault_with_its_size(tmp_path, name):
    rows = [{"id": "a", "text": "x"}, {"id": "b", "text": "é" * 1_500_000 + "é\né" * 10}, {"id": "c", "text": "z"}]
    found = numbered(write(tmp_path / name, encoded(name, rows)))
    assert [row["id"] for _, row in found if isinstance(row, dict)] == ["a", "c"]
    plain = name.removesuffix(".gz")
    if plain == "t.csv":
        # "b","" is 6 bytes, and 3,000,000 + 10 * 5 stand in the quotes, which end ten lines further on.
        assert found[1] == (3, f"row: is {3_000_056:,} bytes; a row may have {MAX_ROW_BYTES:,}")
        assert found[2][0] == 14
    else:
        size = int(re.match(r"row: is ([\d,]+) bytes; a row may have 1,000,000$", found[1][1])[1].replace(",", ""))
        assert size > 3_000_000
    if plain == "t.jsonl":
        assert size == len(json.dumps(rows[1]))


def test_a_row_of_just_the_limit_is_read(tmp_path):
    row = json.dumps({"a": ""}).encode()
    at = row.replace(b'""', b'"' + b"x" * (MAX_ROW_BYTES - len(row)) + b'"')
    assert len(at) == MAX_ROW_BYTES
    found = numbered(write(tmp_path / "t.jsonl", at + b"\n" + at.replace(b"xx", b"xxx", 1) + b'\n{"a": "b"}'))
    assert isinstance(found[0][1], dict) and found[1][1].startswith("row: is 1,000,001 bytes")
    assert found[2] == (3, {"a": "b"})


def test_json_that_is_nested_without_end_is_a_fault(tmp_path):
    deep = b'{"a": ' + b"[" * 60 + b"]" * 60 + b"}"
    found = numbered(write(tmp_path / "t.jsonl", deep + b'\n{"a": [[[]]]}'))
    assert found == [(1, "row: is nested more than 50 deep; write flat columns"), (2, {"a": [[[]]]})]


def test_a_list_entry_that_is_no_object_is_a_fault(tmp_path):
    found = numbered(write(tmp_path / "t.json", b'[{"a": 1},\n 3,\n{"a": 2}]'))
    assert found == [(1, {"a": 1}), (2, "row: is not a JSON object; write a list of objects"), (3, {"a": 2})]


def test_parquet_text_that_is_not_utf8_spoils_its_own_row(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    text = pa.array([b"one", b"caf\xe9", b"three"], pa.binary())
    table = pa.table({"a": pa.Array.from_buffers(pa.string(), 3, text.buffers())})
    pq.write_table(table, tmp_path / "t.parquet")
    assert numbered(tmp_path / "t.parquet") == [
        (1, {"a": "one"}),
        (2, "row: is not UTF-8; save the text as UTF-8"),
        (3, {"a": "three"}),
    ]


# ---------------------------------------------------------------- faults of the whole

WHOLE = {
    "empty.csv": (b"", "0: file: is empty"),
    "mark.csv": (b"\xef\xbb\xbf\n", "0: file: is empty"),
    "doubled.csv": (b"a,b,a\n1,2,3\n", "1: header: 'a' names two columns"),
    "unnamed.csv": (b"\na,,b\n1,2,3\n", "2: header: column 2 has no name"),
    "latin.csv": (b"caf\xe9,b\n1,2\n", "1: header: is not UTF-8"),
    "utf16.csv": ("a,b\n1,2\n".encode("utf-16"), "1: header: is not UTF-8"),
    "wide.csv": (b"a" * 2_000_000 + b"\n1\n", "1: header: is 2,000,000 bytes"),
    "open.csv": (b'"a,b\n1,2\n', "1: header: is not valid CSV"),
    "one.json": (b'{\n"a": 1\n}', "1: file: holds one object"),
    "empty.json": (b" \n", "2: file: is not valid JSON from here on (found the end, not '[')"),
    "cut.json": (b'[{"a": 1},\n{"a": 2}', "2: file: is not valid JSON from here on (found the end, not ',')"),
    "broken.json": (b'[{"a": 1},\n{"a" 2}]', "2: file: is not valid JSON from here on (Expecting ':'"),
    "comma.json": (b'[{"a": 1},\n]', "2: file: is not valid JSON from here on (Expecting value"),
    "more.json": (b'[{"a": 1}\n]\n[]', "2: file: goes on after its list"),
    "latin.json": (b'[{"a": "x"},\n{"a": "\xe9"}]', "2: file: is not UTF-8"),
    "deep.json": (b"[" * 100_000, "1: file: is not valid JSON from here on"),
    "cut.csv.gz": (gzip.compress(b"a,b\n" + b"1,2\n" * 99)[:-9], "0: file: is damaged or unreadable"),
    "no.tsv.gz": (b"a\tb\n", "0: file: is damaged or unreadable"),
    "no.parquet": (b"PAR1 nothing PAR1", "0: file: is damaged or unreadable"),
    "nothing.parquet": (b"", "0: file: is damaged or unreadable"),
    "notes.txt": (b"hello", "0: file: is of no known kind; use .jsonl"),
    "rows.parquet.gz": (b"", "0: file: is of no known kind"),
}


@pytest.mark.parametrize("name", WHOLE)
def test_a_bad_file_is_one_sentence(tmp_path, name):
    raw, sentence = WHOLE[name]
    assert refusal(write(tmp_path / name, raw)).startswith(f"{tmp_path / name}:{sentence}")


def test_parquet_columns_of_one_name_are_refused(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"]), tmp_path / "t.parquet")
    assert "header: 'a' names two columns" in refusal(tmp_path / "t.parquet")


def test_a_parquet_file_cut_short_is_one_sentence(tmp_path):
    write_parquet(tmp_path / "t.parquet", ROWS)
    raw = (tmp_path / "t.parquet").read_bytes()
    for size in range(0, len(raw), 97):
        assert "is damaged or unreadable" in refusal(write(tmp_path / "t.parquet", raw[:size]))


@pytest.mark.parametrize("name", ["nowhere.jsonl", "a/nowhere.csv", "nowhere", "a/b/c", "/a/b"])
def test_what_is_not_there_is_one_sentence(name):
    assert refusal(name) == f"{name}:0: file: does not exist; build the pool or correct the path"


def test_kinds_go_by_the_name(tmp_path):
    assert [kind(tmp_path / name) for name in ("a.jsonl.gz", "a.CSV", "a.b.json", "a", "a.gz", "csv")] == [
        ".jsonl", ".csv", ".json", "", "", "",
    ]  # fmt: skip


# ---------------------------------------------------------------- folders and the hub


@pytest.fixture
def library(monkeypatch, tmp_path):
    """The datasets library without the network, its cache in a folder of its own."""
    datasets = pytest.importorskip("datasets")
    from huggingface_hub import constants

    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    folder = tmp_path / "folder"
    folder.mkdir()
    return folder


def test_a_folder_of_files_is_a_data_set_with_splits(library):
    write(library / "train.jsonl", encoded("t.jsonl"))
    write(library / "test.jsonl", encoded("t.jsonl", ROWS[:1]))
    assert [row for _, row in rows_of(library)] == ROWS  # no split: train
    assert list(rows_of(library, "test")) == [(f"{library}:1", ROWS[0])]
    sentence = refusal(library, split="dev")
    assert sentence.startswith(f"{library}:0: split: 'dev' is not there (") and "'train', 'test'" in sentence


def test_the_only_split_is_taken_and_of_several_one_must_be_named(library):
    write_parquet(library / "test.parquet", ROWS)
    assert [row for _, row in rows_of(library)] == ROWS
    write_parquet(library / "validation.parquet", ROWS)
    assert "0: split: none is named; name one of validation, test" in refusal(library)


def test_a_configuration_that_is_not_there_is_named(library):
    write(library / "train.jsonl", encoded("t.jsonl"))
    assert ":0: configuration: hard (BuilderConfig 'hard' not found" in refusal(library, name="hard")


def test_an_empty_folder_is_one_sentence(library):
    assert refusal(library).startswith(f"{library}:0: data set: was not found (")


def test_files_of_a_folder_that_do_not_fit_together_are_one_sentence(library):
    write(library / "train.jsonl", b'{"a": 1}\n{"b": ')
    assert refusal(library).startswith(f"{library}:0: data set: cannot be loaded (")


def test_a_hub_data_set_out_of_reach_is_one_sentence(library):
    sentence = refusal("owner/name-1.0", split="test")
    assert sentence.startswith("owner/name-1.0:0: data set: the hub cannot be reached (")
    assert sentence.endswith("; download the data set and name its file or folder")
    assert refusal("owner/name:hard").startswith("owner/name:0: data set: the hub cannot be reached (")


@pytest.mark.parametrize(
    "error, sentence",
    [
        (FileNotFoundError("Dataset 'a/b' doesn't exist on the Hub or cannot be accessed."), "data set: was not found"),
        (FileNotFoundError("Dataset 'a/b' is a gated dataset on the Hub. Visit it."), "data set: is gated or private"),
        (ValueError("Unknown split \"test\". Should be one of ['train']."), "split: 'test' is not there"),
        (ValueError("Config name is missing.\nPlease pick one among: ['x', 'y']"), "configuration: none (Config name"),
        (RuntimeError("Dataset scripts are no longer supported, but found b.py"), "data set: cannot be loaded"),
        (RuntimeError(), "data set: cannot be loaded (RuntimeError: RuntimeError)"),
    ],
)
def test_what_the_library_says_becomes_one_sentence(error, sentence):
    from scope.tables import _library_fault

    found = _library_fault("a/b", "test", None, error)
    assert found.startswith(sentence) and "\n" not in found and "; " in found


# ---------------------------------------------------------------- total on rubbish


def check_total(path):
    try:
        for where, row in read_rows(path):
            assert where.startswith(f"{path}:") and isinstance(row, dict | str)
            assert isinstance(row, dict) or re.match(r"\w+: .+; .+", row, re.DOTALL), row
    except TableError as error:
        assert str(error).startswith(f"{path}:")


@settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.too_slow])
@given(name=st.sampled_from([*NAMES, "t.parquet"]), raw=st.binary(max_size=300))
def test_random_bytes_raise_nothing_else(tmp_path_factory, name, raw):
    check_total(write(tmp_path_factory.getbasetemp() / name, raw))


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    folder = tmp_path_factory.mktemp("good")
    write_parquet(folder / "t.parquet", [{**row, "options": ["x"], "n": 1.5, "m": {"k": "v"}} for row in ROWS])
    return {"t.parquet": (folder / "t.parquet").read_bytes(), **{name: encoded(name.casefold()) for name in NAMES}}


@settings(
    deadline=None, max_examples=400, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
)
@given(
    name=st.sampled_from([*NAMES, "t.parquet"]),
    edits=st.lists(
        st.tuples(
            st.floats(0, 1),
            st.sampled_from([0, 1, 1, 8]),
            st.one_of(st.binary(max_size=4), st.sampled_from([b'"', b"\r", b"\0", b"\xff", b",", b"\n", b"{", b"["])),
        ),
        min_size=1,
        max_size=4,
    ),
)
def test_mutated_files_raise_nothing_else(tmp_path_factory, good, name, edits):
    raw = bytearray(good[name])
    for share, cut, new in edits:
        at = int(share * len(raw))
        raw[at : at + cut] = new
    check_total(write(tmp_path_factory.getbasetemp() / name, bytes(raw)))
