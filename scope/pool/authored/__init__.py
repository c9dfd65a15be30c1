"""Authored scenario families, by theme. Importing this package registers all of them.

Adding a family is adding one function:

    @family("sum", topic="math", answer_type="numeric", tiers=("easy", "standard"), bank="train")
    def sum_(rng: random.Random, tier: str) -> Draw:
        ...
"""

from scope.pool.authored import (
    arithmetic,
    bills,
    clock,
    clocks,
    comparing,
    documents,
    education,
    eras,
    errands,
    money,
    notes,
    offers,
    planning,
    policy,
    rules,
    several_notes,
    shopping,
    stories,
    timetables,
    workplace,
)
from scope.pool.authored.registry import BANKS, FAMILIES, TIERS, Draw, Family, family, numbers_in

__all__ = [
    "BANKS",
    "FAMILIES",
    "TIERS",
    "Draw",
    "Family",
    "arithmetic",
    "bills",
    "clock",
    "clocks",
    "comparing",
    "documents",
    "education",
    "eras",
    "errands",
    "family",
    "money",
    "notes",
    "numbers_in",
    "offers",
    "planning",
    "policy",
    "rules",
    "several_notes",
    "shopping",
    "stories",
    "timetables",
    "workplace",
]
