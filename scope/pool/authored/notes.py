"""Reading a short note and looking one thing up."""

import random

from scope.pool import foils
from scope.pool.authored.registry import Draw, family
from scope.pool.authored.words import COUNTED, NAMES


@family("note_lookup", topic="document reading", answer_type="numeric", tiers=("easy", "standard"))
def note_lookup(rng: random.Random, tier: str) -> Draw:
    people = rng.sample(NAMES, 3)
    values = rng.sample(range(2, 60), 3)
    thing = rng.choice(COUNTED)
    asked = rng.randrange(3)
    others = [i for i in range(3) if i != asked]
    a, b, c = values
    note = f"{people[0]} has {a} {thing}, {people[1]} has {b} and {people[2]} has {c}."
    if tier == "easy":
        return Draw(
            f"{note} How many {thing} does {people[asked]} have?",
            str(values[asked]),
            [foils.confused(values[i], f"read the number of {people[i]}") for i in others]
            + [foils.digits_swapped(values[asked]), foils.off_by(values[asked] + 1, "was out by one")],
            lambda n: n[asked],
        )
    one, two = others
    gold = values[one] + values[two]
    return Draw(
        f"{note} How many {thing} do {people[one]} and {people[two]} have together?",
        str(gold),
        [
            foils.misread(sum(values), "added all three"),
            foils.confused(values[one] + values[asked], f"read the number of {people[asked]}"),
            foils.confused(values[two] + values[asked], f"read the number of {people[asked]}"),
            foils.no_carry(values[one], values[two]),
        ],
        lambda n: sum(v for i, v in enumerate(n) if i != asked),
    )


@family("office_lookup", topic="document reading", answer_type="multiple_choice", tiers=("standard",))
def office_lookup(rng: random.Random, tier: str) -> Draw:
    people = rng.sample(NAMES, 4)
    rooms = rng.sample(range(11, 99), 4)
    asked = rng.randrange(4)
    listed = ", ".join(f"{name} {room}" for name, room in zip(people, rooms, strict=True))
    others = [people[i] for i in range(4) if i != asked]
    return Draw(
        f"Office rooms: {listed}. Who sits in room {rooms[asked]}?",
        people[asked],
        [foils.confused(name, "read the wrong line") for name in others],
        lambda n: people[n[:4].index(n[4])],
        people,
    )
