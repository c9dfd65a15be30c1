"""State minimum wages on 1 January of each year: one jurisdiction on two dates, or two jurisdictions on one date.

The paper has 44 series of FRED, of 1990 to 2024; the table here is of the US Department of Labor, 1968 to 2020.
"""

import itertools
import re
from collections import defaultdict
from decimal import Decimal, InvalidOperation

from scope.artifacts import fingerprint
from scope.pool.misleadqa.facts import Candidate, Counts, Fact, Origin, Table, Wording, counted

NAME = "minimum_wage"
#: Years of gold and lure (Sec. 3.2; the table ends in 2020), and most years between the dates of a pair (App. A.1).
FIRST_YEAR, LAST_YEAR, MAX_GAP = 1990, 2024, 8
#: Years of a distractor: those in which the table records 1 January (1968 and 1969 are of February). Ours.
EARLIEST = 1970
#: A rate that falls by more (US dollars) marks a jurisdiction with several rates of which the table does not always
#: keep the same one. Ours; Colorado's fall of $0.04 in 2010 is real.
MAX_FALL = Decimal("0.10")
#: Pairs of a jurisdiction and dimension that are worded, by their hashes; far more than the caps let through. Ours.
MOST_PAIRS = 60
#: The paper's jurisdictions are states and the District of Columbia.
TERRITORIES = ("Guam", "Puerto Rico", "U.S. Virgin Islands", "American Samoa")


def candidates(tables: list[Table], wording: Wording) -> tuple[list[Candidate], Counts]:
    """Time and location pairs, and how many facts were left out for which reason."""
    series, reasons = _series(tables)
    found = []
    for facts in series.values():
        golds = [fact for year, fact in facts.items() if FIRST_YEAR <= year <= LAST_YEAR]
        for dimension in ("time", "location"):
            pairs = [
                (gold, lure)
                for gold in golds
                for lure in (golds if dimension == "time" else _elsewhere(series, gold))
                if gold.value != lure.value and abs(_year(gold) - _year(lure)) <= MAX_GAP
            ]
            pairs.sort(key=lambda pair: fingerprint([pair[0].where, pair[1].where]))
            for gold, lure in pairs[:MOST_PAIRS]:
                others = list(facts.values()) if dimension == "time" else _elsewhere(series, gold)
                found.append(_candidate(dimension, gold, lure, others, wording))
    return found, reasons


def _year(fact: Fact) -> int:
    return int(fact.scope["time"][-4:])


def _elsewhere(series: dict[str, dict[int, Fact]], fact: Fact) -> list[Fact]:
    """The facts of all other jurisdictions on the same date."""
    year = _year(fact)
    return [facts[year] for facts in series.values() if year in facts and facts[year] != fact]


def _series(tables: list[Table]) -> tuple[dict[str, dict[int, Fact]], Counts]:
    """Jurisdiction -> year -> its recorded rate."""
    rates: dict[str, dict[int, tuple[Decimal, str]]] = defaultdict(dict)
    reasons = []
    for table in tables:
        for place, row in table.rows:
            try:
                rate, year = Decimal(str(row["state_minimum_wage"])), int(row["year"])
            except (KeyError, InvalidOperation, ValueError):
                reasons.append("fact: has no year or rate")
                continue
            state = str(row.get("state", ""))
            if state in TERRITORIES:
                reasons.append("fact: of a territory, not a state")
            elif rate == 0 or year < EARLIEST:
                reasons.append("fact: no rate recorded on 1 January")
            elif rate != round(rate, 2):
                reasons.append("fact: the rate is not in whole cents")
            else:
                rates[state][year] = rate, place
    series = {}
    for state, found in rates.items():
        years = sorted(found)
        if any(found[a][0] - found[b][0] > MAX_FALL for a, b in itertools.pairwise(years) if b > FIRST_YEAR):
            reasons += ["fact: the jurisdiction has several rates, and the table not always the same one"] * len(found)
        elif re.fullmatch(r"[A-Z][A-Za-z .]+", state):
            series[state] = {year: _fact(state, year, *found[year]) for year in years}
    return series, counted(reasons)


def _fact(state: str, year: int, rate: Decimal, place: str) -> Fact:
    article = "the " if state.startswith("District") else ""
    scope = {"location": f"{article}{state}", "time": f"January 1, {year}"}
    # One table holds all series, so that all its items share a document (App. A.4: a single dependency group).
    return Fact(f"${rate:.2f}", scope, {"row": place}, document=NAME)


def _candidate(dimension: str, gold: Fact, lure: Fact, others: list[Fact], wording: Wording) -> Candidate:
    return Candidate(
        source=NAME,
        dimension=dimension,
        question=wording(NAME, "question", **gold.scope),
        g=wording(NAME, "statement", **gold.scope, value=gold.value),
        s=wording(NAME, "statement", **lure.scope, value=lure.value),
        gold=gold,
        lure=lure,
        distractors=(others,),
        attribute="minimum wage",
        cluster=gold.scope["location"].removeprefix("the "),
        question_type="minimum wage",
        license="public domain (US Department of Labor; table MIT)",
        method="template",
    )


ORIGIN = Origin(NAME, "us_minimum_wage", "", (("", "us_minimum_wage"),), candidates)
