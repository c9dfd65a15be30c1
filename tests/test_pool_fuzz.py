"""Damaged pool files: whatever stands in one, loading and checking it ends with items, findings or a refusal.

The files are rows of every answer type, with and without complete prompts, and one row for each condition of an
item, damaged in bytes, fields, types, encodings, nesting, sizes and length. SCOPE_FUZZ sets how many are tried.
"""

import gzip
import json
import os
import random
from dataclasses import replace

import pytest

from scope.artifacts import Refusal
from scope.conditions import Condition
from scope.items import as_row, load_items
from scope.pool import build_authored, check_items
from scope.prompts import user_prompt

COUNT = int(os.environ.get("SCOPE_FUZZ", "300"))
PARTS = 6  # the files are tried in so many tests, so that one failure does not hide the others

STRANGE = [
    "", " ", "\n", "\x00", "\ud800", "\ufeff", "\u202e", "é" * 50, "NaN", "-0", "1e400", "1e-400", "٣", "½",
    "1/0", "0/0",
    "9" * 5000, "1,2,3", "∞", "yes", "YES.", "A", "AA", "ß", "{value}", "<|im_end|>", "\\boxed{", "The final answer is",
    "((((" * 200, "\\frac{" * 300, "-" * 3000, "1 " * 3000, "twenty " * 2000, "one hundred and " * 900, "a." * 2000,
    "Aa " * 3000, "trillion " * 900, "x" * 25_000, "5" * 401 + ".5", "half a " * 900, "1.5e999", "10^999999",
    "3/" * 900,
]  # fmt: skip
VALUES = [
    None,
    True,
    False,
    0,
    -1,
    1.5,
    1e308,
    10**400,
    [],
    {},
    [[]],
    [None],
    [1, 2],
    {"a": {"b": []}},
    ["A", "A"],
    ["x"] * 30,
]


@pytest.fixture(scope="module")
def rows():
    items = build_authored(24, 5, "train", tier=None)
    assert {item.answer_type for item in items} == {"numeric", "multiple_choice", "boolean"}
    complete = [replace(item, **{f"prompt_{c}": user_prompt(item, c) for c in Condition}) for item in items[:6]]
    bare = [replace(item, id=f"{item.id}-bare", context_misleading="", context_correct="") for item in complete]
    wide = [as_row(item) for item in [*items, *(replace(i, id=f"{i.id}-full") for i in complete), *bare]]
    for row in wide:
        row["extra"] = {"kept": [1, "two"]}
    return wide


def long_rows(row):
    """The item as one row for each condition: what is not of this condition is left out."""
    shared = {k: v for k, v in row.items() if not k.startswith(("context_", "prompt_"))}
    return [
        {**shared, "condition": str(c), "context": row.get(f"context_{c}", ""), "prompt": row.get(f"prompt_{c}", "")}
        for c in Condition
    ]


def damaged_row(row, rng):
    row = dict(row)
    for _ in range(rng.choice([1, 1, 1, 2, 5])):
        if not row:
            break
        key = rng.choice(sorted(row))
        kind = rng.randrange(9)
        if kind == 0:
            del row[key]
        elif kind == 1:
            row[key] = rng.choice(VALUES)
        elif kind == 2:
            row[key] = rng.choice(STRANGE)
        elif kind == 3 and isinstance(row[key], str):
            row[key] = spliced(row[key], rng.choice(STRANGE)[:2000], rng)
        elif kind == 4 and isinstance(row[key], str) and row[key]:
            row[key] = row[key][: rng.randrange(len(row[key]))]
        elif kind == 5:
            row[key], row[other] = row[other := rng.choice(sorted(row))], row[key]
        elif kind == 6:
            row[rng.choice(["id ", "Question", "", "gold\n", "context_clean", "where"])] = row[key]
        elif kind == 7 and isinstance(row.get("options"), list):
            row["options"] = damaged_options(row["options"], rng)
        elif kind == 8 and isinstance(row[key], str):
            row[key] = "".join(rng.choice([c.upper(), c, c.lower()]) for c in row[key])
    return row


def damaged_options(options, rng):
    options = list(options)
    for _ in range(rng.randrange(1, 4)):
        place = rng.randrange(len(options) + 1)
        options[place:place] = [rng.choice([*STRANGE, *VALUES])]
    return options[: rng.randrange(len(options) + 1)] if rng.random() < 0.3 else options


def spliced(text, part, rng):
    place = rng.randrange(len(text) + 1)
    return text[:place] + part + text[place:]


def damaged_bytes(data, rng):
    data = bytearray(data)
    kind = rng.randrange(8)
    if kind == 0:
        return bytes(data[: rng.randrange(len(data) + 1)])
    if kind == 1:
        for _ in range(rng.randrange(1, 30)):
            data[rng.randrange(len(data))] = rng.randrange(256)
    elif kind == 2:
        place = rng.randrange(len(data))
        del data[place : place + rng.randrange(1, 200)]
    elif kind == 3:
        place = rng.randrange(len(data))
        data[place:place] = rng.choice(
            [b"\xff\xfe", b"\x00" * 50, b"[" * 3000, b'{"a":' * 2000, b"\n\n,\n", b"\xef\xbb\xbf", b"1e999999", b"NaN"]
        )
    elif kind == 4:
        return (
            bytes(data)
            .decode("utf-8", "replace")
            .encode(rng.choice(["utf-16", "utf-8-sig", "utf-32", "cp037"]), "replace")
        )
    elif kind == 5:
        return gzip.compress(bytes(data))[: rng.choice([10, 100, 10**9])]
    elif kind == 6:
        return bytes(data).replace(b"\n", rng.choice([b"\r\n", b"\r", b"", b",\n", b"\x00\n"]))
    return bytes(data)


def damaged_file(folder, rows, rng):
    chosen = rng.sample(rows, rng.randrange(1, 6))
    if rng.random() < 0.2:
        chosen = [long for row in chosen for long in long_rows(row)]
        rng.shuffle(chosen)
    if rng.random() < 0.85:
        hit = rng.randrange(len(chosen))
        chosen[hit] = damaged_row(chosen[hit], rng)
    if rng.random() < 0.1:
        chosen.append(rng.choice(chosen))
    lines = [json.dumps(row, ensure_ascii=rng.random() < 0.5) for row in chosen]
    if rng.random() < 0.1:
        lines.insert(
            rng.randrange(len(lines)),
            rng.choice(["", "[]", "7", '"x"', "null", "{}", '{"id": 1, "id": "2"}', "nonsense"]),
        )
    data = ("\n".join(lines) + "\n" * rng.randrange(2)).encode("utf-8", "surrogatepass")
    path = folder / rng.choice(["pool.jsonl", "pool.jsonl", "pool.jsonl", "pool.jsonl.gz", "pool.parquet"])
    if path.suffix == ".gz":
        data = gzip.compress(data, 1)
    path.write_bytes(damaged_bytes(data, rng) if rng.random() < 0.4 else data)
    return path


@pytest.mark.parametrize("part", range(PARTS))
def test_damaged_files_are_refused_or_read(tmp_path, rows, part):
    whole = 0
    for number in range(part, COUNT, PARTS):
        rng = random.Random(f"fuzz/{number}")
        path = damaged_file(tmp_path, rows, rng)
        for on_bad_row in ("skip", "error"):
            try:
                items = load_items(path, on_bad_row=on_bad_row)
            except Refusal as refusal:
                assert str(refusal).strip() and "Traceback" not in str(refusal), f"file {number}"
                continue
            except Exception as error:
                raise AssertionError(f"file {number} ({path.name}, {on_bad_row}): {error!r}") from error
            if on_bad_row == "skip" and (items or not number % 10):
                whole += bool(items)
                try:
                    assert all(isinstance(sentence, str) and sentence for sentence in check_items(items))
                except Exception as error:
                    raise AssertionError(f"file {number} ({path.name}): {error!r}") from error
        path.unlink()
    assert whole > COUNT / PARTS / 5  # not all of them are beyond reading


def test_the_undamaged_rows_load_and_pass(tmp_path, rows):
    path = tmp_path / "pool.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    items = load_items(path)
    assert len(items) == 36
    assert check_items(items[:24]) == [] and {f.split(": ")[1] for f in check_items(items)} == {"no_duplicates"}
