"""Comparing numbers: largest, smallest, greater, even, equal.

Short as they are, these are standard and not easy: in small trials (6 to 10 items a wording) the
demo's model named option letters at chance or not at all within the cap, and answered yes/no
questions in plain English with one and the same word.
"""

import random

from scope.pool import foils
from scope.pool.authored.registry import Draw, family
from scope.pool.authored.words import NAMES


def _yes(value: bool) -> str:
    return "yes" if value else "no"


@family("largest", topic="math", answer_type="multiple_choice", tiers=("standard",))
def largest(rng: random.Random, tier: str) -> Draw:
    values = rng.sample(range(2, 999), 4)
    up = rng.random() < 0.5
    ranked = [str(v) for v in sorted(values, reverse=up)]
    word = "largest" if up else "smallest"
    a, b, c, d = values
    return Draw(
        f"Which of the numbers {a}, {b}, {c} and {d} is the {word}?",
        ranked[0],
        [
            foils.near(ranked[1], "took the next in rank"),
            foils.misread(ranked[3], f"did not read {word}"),
            foils.slip(ranked[2], "compared the digits wrongly"),
        ],
        lambda n: next(x for x in n if all((x >= y) if up else (x <= y) for y in n)),
        ranked,
    )


@family("who_has_most", topic="everyday arithmetic", answer_type="multiple_choice", tiers=("standard",))
def who_has_most(rng: random.Random, tier: str) -> Draw:
    people, values = rng.sample(NAMES, 4), rng.sample(range(2, 60), 4)
    up = rng.random() < 0.5
    ranked = [name for _, name in sorted(zip(values, people, strict=True), reverse=up)]
    thing = rng.choice(["points", "medals", "goals", "votes"])
    verb = "won" if thing in ("points", "medals", "votes") else "scored"
    word = "most" if up else "fewest"
    listed = ", ".join(f"{name} {value}" for name, value in zip(people, values, strict=True))
    return Draw(
        f"{thing.capitalize()} {verb}: {listed}. Who {verb} the {word} {thing}?",
        ranked[0],
        [
            foils.near(ranked[1], "took the next in rank"),
            foils.misread(ranked[3], f"did not read {word}"),
            foils.confused(ranked[2], "mixed up two people"),
        ],
        lambda n: people[n.index(max(n) if up else min(n))],
        people,
    )


@family("greater", topic="math", answer_type="boolean", tiers=("standard",))
def greater(rng: random.Random, tier: str) -> Draw:
    a, b = rng.sample(range(2, 999), 2)
    up = rng.random() < 0.5
    word = rng.choice(["greater", "larger"]) if up else "smaller"
    true = (a > b) is up
    return Draw(
        f"Is {a} {word} than {b}?",
        _yes(true),
        [foils.misread(_yes(not true), f"did not read {word}")],
        lambda n: _yes(n[0] not in range(n[1] + 1) if up else n[0] in range(n[1])),
    )


@family("even", topic="math", answer_type="boolean", tiers=("standard",))
def even(rng: random.Random, tier: str) -> Draw:
    a = rng.randint(2, 999)
    word, rest = rng.choice([("even", 0), ("odd", 1)])
    true = a % 2 == rest
    return Draw(
        rng.choice([f"Is {a} an {word} number?", f"Is the number {a} {word}?"]),
        _yes(true),
        [foils.misconception(_yes(not true), "judged by the first digit, or mixed up even and odd")],
        lambda n: _yes((str(n[0])[-1] in "02468") == (rest == 0)),
    )


@family("is_it_equal", topic="math", answer_type="boolean", tiers=("standard",))
def is_it_equal(rng: random.Random, tier: str) -> Draw:
    a, b = rng.randint(2, 60), rng.randint(2, 60)
    true = rng.random() < 0.5
    shown = a + b if true else a + b + rng.choice([-2, -1, 1, 2, 3])
    return Draw(
        f"Is {a} + {b} equal to {shown}?",
        _yes(true),
        [foils.slip(_yes(not true), "added wrongly")],
        lambda n: _yes(n[2] - n[1] == n[0]),
    )
