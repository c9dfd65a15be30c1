"""A hand-made item of MisleadQA, and rows of its sources in the hub's schemas, small enough to build in a second."""

import csv
import gzip
import json
from pathlib import Path

from scope.scopes import Edit, ScopedItem

G = "The state minimum wage on record for Nebraska on January 1, 1997 was $4.25 per hour."


def fact(value: str, year: int) -> dict:
    scope = {"location": "Nebraska", "time": f"January 1, {year}"}
    return {"value": value, "document": "minimum_wage", "row": f"us_minimum_wage/x.csv:{year}", "scope": scope}


GOOD = ScopedItem(
    id="minimum_wage-time-1",
    source="minimum_wage",
    dimension="time",
    question="In US dollars, what rate was on record as the state minimum wage for Nebraska on January 1, 1997?",
    options=("$5.15", "$9.00", "$4.25", "$5.85"),
    gold="C",
    lure="A",
    g=G,
    s="The state minimum wage on record for Nebraska on January 1, 1998 was $5.15 per hour.",
    f="The state minimum wage on record for Nebraska on January 1, 1997 was $5.15 per hour.",
    edits=(Edit(G.index("$4.25"), G.index("$4.25") + 5, "$5.15"),),
    target={"location": "Nebraska", "time": "January 1, 1997"},
    alternative={"location": "Nebraska", "time": "January 1, 1998"},
    cluster="Nebraska",
    dependency_group="minimum_wage",
    question_type="minimum wage",
    license="public domain",
    provenance={
        "gold": fact("$4.25", 1997),
        "lure": fact("$5.15", 1998),
        "distractors": [fact("$9.00", 2016), fact("$5.85", 2008)],
        "method": "template",
    },
)

RATES = {"Nebraska": 1.0, "Iowa": 1.3, "Maine": 1.7, "Utah": 2.1, "Ohio": 2.6}


def write_sources(folder: Path) -> Path:
    """A data folder with a few rows of every source."""
    wages = folder / "us_minimum_wage"
    wages.mkdir(parents=True)
    with open(wages / "us_minimum_wage.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["state", "year", "state_minimum_wage"])
        for state, base in RATES.items():
            # Ohio's rate falls by half a dollar in 2000: it has several, of which the table keeps one or the other.
            writer.writerows(
                (state, year, round(base + 0.25 * (year - 1990) - (0.75 if state == "Ohio" and year > 1999 else 0), 2))
                for year in range(1968, 2010)
            )
        writer.writerow(["Guam", 1995, 4.25])
    geo = [_geo(*row) for row in (("Kenya", "1963"), ("Ghana", "March 6, 1957"), ("india", "1947"), ("Malta", "1964"))]
    geo += [_geo("Chad", "1960", "1961"), _geo("Atlantis", "1900")]
    temp = [
        _temp(office, date, who, kind)
        for office, names in (
            ("who is the governor of maharashtra", ("Ann Lee", "Bob Ray")),
            ("who is the current governor of lagos state", ("Cy Dow", "Di Fox")),
        )
        for date, who, kind in (
            ("May 04, 2014", names[0], "start"),
            ("2015", names[0], "sampled_year"),
            ("June 01, 2017", names[1], "start"),
            ("2017", names[1], "sampled_year"),  # both held the office in 2017
            ("July 09, 2018", names[1], "sampled_date"),
        )
    ]
    for config, rows in (("geo", geo), ("temp", temp)):
        for split in ("train", "dev", "test"):
            write_rows(folder / "situatedqa" / config / f"{split}.jsonl.gz", rows if split == "train" else [])
    write_rows(folder / "ramdocs" / "test.jsonl.gz", [_ram(n) for n in range(3)])
    write_rows(folder / "condambigqa" / "test.jsonl.gz", [_conditions()])
    return folder


def write_rows(path: Path, rows: list[dict]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with gzip.open(path, "wt", encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)


def _geo(place: str, *answers: str) -> dict:
    question = "when did we become an independent country"
    return {"question": question, "id": 7, "location": place, "answer": list(answers), "edited_question": ""}


def _temp(question: str, date: str, who: str, kind: str) -> dict:
    return {"question": question, "id": 8, "date": date, "date_type": kind, "answer": [who, who], "edited_question": ""}


def _ram(n: int) -> dict:
    states = ("Ohio", "Iowa") if n else ("Utah", "Maine")
    titles = [f"Fort Hill{n} ({state})" for state in states]
    years = (str(1861 + 7 * n), str(1902 + 5 * n))
    documents = [
        {
            "text": f"{title} Fort Hill{n} is a house in {state}. It was built in {year}. It is",
            "type": "correct",
            "answer": year,
        }
        for title, state, year in zip(titles, states, years, strict=True)
    ]
    documents.append({"text": f"{titles[0]} It was built in 1999.", "type": "misinfo", "answer": "1999"})
    question = f"When was the Fort Hill{n} built?"
    return {"question": question, "documents": documents, "disambig_entity": titles, "gold_answers": list(years)}


def _conditions() -> dict:
    who = ("Ann Lee", "Bob Ray", "Cy Dow", "Di Fox")
    where = ("the 1970 film", "the 1984 tour", "the 1999 series", "the 2016 revival")
    conditions = [
        {"idx": i, "condition": "x", "answer": f"{name} played Felix in {place} of the play ."}
        for i, (name, place) in enumerate(zip(who, where, strict=True))
    ]
    return {"id": "c1", "question": "Who played Felix?", "conditions": conditions}
