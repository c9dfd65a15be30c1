"""The matcher audit: a sample stratified by the matcher's label, a blind sheet, agreement (Sec. 4.4.4, Table 6).

sample.json      seed, column, and of each answer what the annotator must not see: the matcher's label, system, cell
sheet.csv        what an annotator sees and fills in; a row goes by its number alone
agreement.json   once it is filled in: counts, agreement, kappa, causes of the errors

Each label has as many answers in the sample, so that nothing here is the agreement over all answers.
"""

import csv
import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from scope import artifacts
from scope.artifacts import Refusal, StageError, fingerprint
from scope.evaluation import outcomes
from scope.evaluation.ragstress.labels import CLOSED
from scope.evidence import EvidenceItem, from_row
from scope.kappa import kappa
from scope.pool.sheets import ranked, sheet
from scope.prompts import letter
from scope.tables import TableError, read_rows

#: What the matcher says, as the audit counts it (Table 6): naming both, or neither, is unmatched.
MATCHER = {"gold": "gold", "foil": "foil", "both": "unmatched", "neither": "unmatched"}
STRATA = ("gold", "foil", "unmatched")
#: What a person says the answer commits to, and what that is for the matcher.
HUMAN = {"gold": "gold", "foil": "foil", "hedge": "unmatched", "other": "unmatched"}
CAUSES = ("alias/format", "hedged", "multi-entity", "explanatory", "other")
PER_LABEL, SEED = 150, 0
#: Columns of an outcome row that hold a matcher's label: the suite's choice, and equality.
COLUMNS = ("label", "exact")

_SHOWN = ("row", "question", "options", "reference", "aliases", "foil", "foil_aliases", "answer")
_FILLED = ("label", "cause", "note")


# ---------------------------------------------------------------- drawing


def sample(
    folders: Sequence[Path], out: Path, per_label: int = PER_LABEL, seed: int = SEED, column: str = COLUMNS[0]
) -> dict[str, Any]:
    """Draw a sample of the answers with evidence, and write `sample.json` and `sheet.csv` to `out`.

    folders: finished evaluations on suites of RAG-Stress. column: the matcher whose labels are audited. Returns
    what `sample.json` holds. Refusal where a folder is no such evaluation, or `out` holds a sheet.
    """
    if taken := [out / name for name in ("sheet.csv", "sample.json") if (out / name).exists()]:
        raise Refusal(f"{taken[0]}: is there already, and may be filled in; give another --out, or move it away")
    items, answers = {}, {}
    for folder in folders:
        for answer, item in _answers(folder, column):
            answers[answer["id"]] = answer
            items[answer["id"]] = item
    if not answers:
        raise Refusal(f"{folders[0]}: has no answers with evidence; give a suite with passages")
    chosen = [one for stratum in STRATA for one in drawn(answers.values(), stratum, per_label, seed)]
    chosen.sort(key=lambda answer: ranked(seed, "order", answer["id"]))
    made = {
        "seed": seed,
        "column": column,
        "per_label": per_label,
        "folders": [str(folder) for folder in folders],
        "strata": {stratum: sum(a["stratum"] == stratum for a in chosen) for stratum in STRATA},
        "answers": [{"row": n} | {k: a[k] for k in (*_IDENTITY, "stratum")} for n, a in enumerate(chosen, 1)],
    }
    rows = [(*_shown(n, items[a["id"]], a["text"]), "", "", "") for n, a in enumerate(chosen, 1)]
    # Everything quoted: an answer may hold a carriage return alone.
    artifacts.write_text(out / "sheet.csv", sheet((*_SHOWN, *_FILLED), rows, csv.QUOTE_ALL))
    artifacts.write_json(out / "sample.json", made)
    return made


#: What an answer is told apart by.
_IDENTITY = ("suite", "system", "item_id", "cell", "request_id")


def _answers(folder: Path, column: str) -> Iterator[tuple[dict[str, Any], EvidenceItem]]:
    """The answered requests with evidence of an evaluation, each with its item."""
    artifacts.require(folder, "evaluate", "evaluate.py")
    suite = str(outcomes.read_json(folder / "results.json")["suite"])
    if not suite.startswith("ragstress"):
        raise StageError(f"{folder}: is an evaluation on {suite}; give one on a suite of RAG-Stress")
    items = {row["id"]: from_row(row) for row in outcomes.read_jsonl(folder / "items.jsonl")}
    for row in outcomes.read(folder):
        if row["cell"] != CLOSED and (stratum := MATCHER.get(row[column])):
            item = items[row["item_id"]]
            answer = {name: row.get(name) for name in _IDENTITY} | {"suite": suite, "stratum": stratum}
            # Policy and place, whatever the arm.
            group = (item.source, row["system"], *row["cell"].split("_")[1:])
            identity = fingerprint([answer[name] for name in _IDENTITY])
            yield answer | {"text": row["text"] or "", "group": group, "id": identity}, item


def drawn(answers: Any, stratum: str, n: int, seed: int) -> list[dict[str, Any]]:
    """The first n answers of a stratum by the SHA-256 of seed and identity.

    Sources, systems, policies and places take turns, so that each has as many as any other while it lasts.
    """
    groups: dict[tuple[str, ...], list[dict[str, Any]]] = defaultdict(list)
    for answer in sorted(answers, key=lambda answer: ranked(seed, "sample", answer["id"])):
        if answer["stratum"] == stratum:
            groups[answer["group"]].append(answer)
    turns = [(turn, answer) for members in groups.values() for turn, answer in enumerate(members)]
    turns.sort(key=lambda each: (each[0], ranked(seed, "sample", each[1]["id"])))
    return [answer for _, answer in turns[:n]]


def _shown(n: int, item: EvidenceItem, text: str) -> tuple[str, ...]:
    """What an annotator sees: neither the matcher's label nor the cell, nor the item's id, which may name its source.

    A sheet cannot hold a NUL; it becomes the sign of a character that cannot be shown.
    """
    options = "\n".join(f"{letter(place)}. {option}" for place, option in enumerate(item.options))
    spellings = ("; ".join(each) for each in (item.aliases, item.foil_aliases))
    aliases, foil_aliases = spellings
    answer = text.replace("\0", "\N{REPLACEMENT CHARACTER}")
    return (str(n), item.question, options, item.reference, aliases, item.foil, foil_aliases, answer)


# ---------------------------------------------------------------- labels back in


def read(folder: Path) -> list[dict[str, Any]]:
    """The rows of a filled sheet: row, matcher (stratum), human, cause (empty if none), note.

    TableError names every bad line, `file:line: column: what was found; what to do`.
    """
    made = _sample_of(folder)
    strata = {str(answer["row"]): answer["stratum"] for answer in made["answers"]}
    path = folder / "sheet.csv"
    found: dict[str, dict[str, Any]] = {}
    faults: list[str] = []
    for where, row in read_rows(path):
        if isinstance(row, str):
            faults.append(f"{where}: {row}")
            continue
        if missing := [name for name in ("row", *_FILLED) if name not in row]:
            raise TableError([f"{path}:1: {missing[0]}: there is no such column; restore it"])
        faults += [f"{where}: {fault}" for fault in _row_faults(row, strata, found)]
        if (number := row["row"].strip()) in strata:
            human, cause, note = (row[name].strip() for name in _FILLED)
            given = {"human": human.casefold(), "cause": _cause(cause), "note": note}
            found[number] = {"row": int(number), "matcher": strata[number], **given}
    if missing := [number for number in strata if number not in found]:
        faults.append(f"{path}:0: row: {missing[0]} is missing ({len(missing)} in all); restore the rows")
    if faults:
        raise TableError(faults)
    return sorted(found.values(), key=lambda row: row["row"])


def _sample_of(folder: Path) -> dict[str, Any]:
    path = folder / "sample.json"
    try:
        made = json.loads(path.read_text("utf-8"))
        if not isinstance(made, dict) or "answers" not in made:
            raise ValueError("it is no sample")
        return made
    except (OSError, ValueError) as error:
        raise Refusal(f"{path}: cannot be read ({error}); draw a sample first, or restore the file") from error


def _row_faults(row: Mapping[str, str], strata: Mapping[str, str], found: Mapping[str, Any]) -> Iterator[str]:
    number, human, cause = (row[name].strip() for name in ("row", "label", "cause"))
    if number not in strata:
        yield f"row: {number[:40]!r} was not handed out; restore the column"
    elif number in found:
        yield f"row: {number} stands twice; keep one of them"
    if not human:
        yield f"label: is empty; write {_or(HUMAN)}"
    elif human.casefold() not in HUMAN:
        yield f"label: {human[:40]!r} is no label; write {_or(HUMAN)}"
    if cause and not _cause(cause):
        yield f"cause: {cause[:40]!r} is no cause; write {_or(CAUSES)}, or nothing"


def _cause(text: str) -> str:
    """The cause that is meant, however its parts are joined; empty if none is."""
    joined = {re.sub("[^a-z]", "", cause): cause for cause in CAUSES}
    return joined.get(re.sub("[^a-z]", "", text.casefold()), "")


def _or(names: Any) -> str:
    *first, last = names
    return f"{', '.join(first)} or {last}"


# ---------------------------------------------------------------- agreement


def agreement(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Table 6 of the rows of a sheet. Shares are fractions, None where there is nothing to divide by.

    counts: matcher's label -> human label -> answers. agree, n: of all; by_label: of each of the matcher's labels, of
    which that of `foil` is `foil_only_precision`. kappa: Cohen's, human hedge and other merged into unmatched.
    causes: of the errors, `not given` where the annotator wrote none; errors: their rows.
    """
    counts = {stratum: dict.fromkeys(HUMAN, 0) for stratum in STRATA}
    for row in rows:
        counts[row["matcher"]][row["human"]] += 1
    errors = [row for row in rows if HUMAN[row["human"]] != row["matcher"]]
    by_label = {}
    for stratum in STRATA:
        n, wrong = sum(counts[stratum].values()), sum(row["matcher"] == stratum for row in errors)
        by_label[stratum] = {"agree": n - wrong, "n": n, "share": _share(n - wrong, n)}
    causes = Counter(row["cause"] or "not given" for row in errors)
    return {
        "n": len(rows),
        "agree": len(rows) - len(errors),
        "share": _share(len(rows) - len(errors), len(rows)),
        "kappa": kappa([row["matcher"] for row in rows], [HUMAN[row["human"]] for row in rows]),
        "counts": counts,
        "by_label": by_label,
        "foil_only_precision": by_label["foil"]["share"],
        "causes": {
            name: {"n": causes[name], "share": _share(causes[name], len(errors))}
            for name in (*CAUSES, "not given")
            if causes[name]
        },
        "errors": [dict(row) for row in errors],
    }


def _share(k: int, n: int) -> float | None:
    return k / n if n else None


def as_text(found: Mapping[str, Any]) -> str:
    """The agreement for a terminal, like Table 6."""
    lines = [f"{'matcher':<10}" + "".join(f"{name:>7}" for name in HUMAN) + f"{'n':>7}  agreement"]
    for stratum in STRATA:
        each = found["by_label"][stratum]
        cells = "".join(f"{k:>7}" for k in found["counts"][stratum].values())
        lines.append(f"{stratum:<10}{cells}{each['n']:>7}  {_percent(each['share'])}")
    totals = "".join(f"{sum(found['counts'][stratum][name] for stratum in STRATA):>7}" for name in HUMAN)
    lines.append(f"{'all':<10}{totals}{found['n']:>7}  {_percent(found['share'])}")
    beyond = "undefined" if found["kappa"] is None else f"{found['kappa']:.4f}"
    lines.append(f"agreement {found['agree']}/{found['n']}, kappa {beyond} (human hedge and other are unmatched)")
    lines.append(f"foil-only precision {_percent(found['foil_only_precision'])}; {len(found['errors'])} errors")
    lines += [f"  {name}: {each['n']} ({_percent(each['share'])})" for name, each in found["causes"].items()]
    if blank := [row for row in found["errors"] if not row["cause"]]:
        shown = ", ".join(f"{row['row']} ({row['matcher']}, by hand {row['human']})" for row in blank[:20])
        more = f" and {len(blank) - 20} more" if len(blank) > 20 else ""
        lines.append(f"without a cause are rows {shown}{more}; write {_or(CAUSES)} into the sheet, and run again")
    return "\n".join(lines)


def _percent(share: float | None) -> str:
    return "undefined" if share is None else f"{100 * share:.1f} %"
