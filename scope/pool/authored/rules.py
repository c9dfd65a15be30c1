"""Rules with a limit: is this allowed?"""

import random

from scope.pool import foils
from scope.pool.authored.registry import Draw, family

#: rule, case and question, lowest and highest limit
_LIMITS = (
    (
        "The lift carries at most {limit} people.",
        "{value} people want to ride together. Is that allowed?",
        6,
        20,
    ),
    ("The desk may weigh at most {limit} kg.", "It weighs {value} kg. Is that allowed?", 20, 60),
    (
        "Staff may spend at most {limit} dollars on dinner.",
        "The bill is {value} dollars. Is that allowed?",
        20,
        60,
    ),
    ("Parcels over {limit} kg are refused.", "This parcel weighs {value} kg. Is it accepted?", 5, 30),
    ("The room seats at most {limit} guests.", "{value} guests are coming. Is the room big enough?", 10, 80),
)


@family("limit", topic="workplace policy", answer_type="boolean", tiers=("standard",))
def limit(rng: random.Random, tier: str) -> Draw:
    rule, case, low, high = rng.choice(_LIMITS)
    bound = rng.randint(low, high)
    step = rng.randint(0, max(3, bound // 2))
    value = bound - step if rng.random() < 0.5 else bound + max(step, 1)
    allowed = value <= bound
    return Draw(
        f"{rule.format(limit=bound)} {case.format(value=value)}",
        "yes" if allowed else "no",
        [foils.misread("no" if allowed else "yes", "read the limit the wrong way round")],
        lambda n: "yes" if n[1] in range(n[0] + 1) else "no",
    )


@family("age_limit", topic="workplace policy", answer_type="boolean", tiers=("standard",))
def age_limit(rng: random.Random, tier: str) -> Draw:
    name = rng.choice(["Mia", "Leo", "Ana", "Tom", "Zoe", "Ben", "Ivy", "Max"])
    place = rng.choice(["the pool", "the gym", "the climbing hall", "the boat tour", "the night club"])
    bound = rng.randint(6, 21)
    age = rng.choice([a for a in range(3, 40) if a != bound])
    allowed = age >= bound
    return Draw(
        f"To enter {place} you must be at least {bound} years old. {name} is {age}. May {name} enter?",
        "yes" if allowed else "no",
        [foils.misread("no" if allowed else "yes", "read at least as at most")],
        lambda n: "yes" if n[1] in range(n[0], 200) else "no",
    )
