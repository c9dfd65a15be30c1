"""Reading a short note and looking one thing up."""

import random

from scope.pool import foils
from scope.pool.authored.registry import Draw, family
from scope.pool.authored.wording import PEOPLE, filled
from scope.pool.authored.words import COUNTED, NAMES


@family("note_lookup", topic="document reading", answer_type="numeric", tiers=("easy", "standard"), bank="eval")
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


_OFFICES = (
    "Office rooms: {lines}. Since then {one} and {two} have exchanged rooms. Who sits in room {asked} now?",
    "A list of rooms reads: {lines}. It is out of date, because {one} and {two} have swapped rooms. Who is in room "
    "{asked} today?",
)
_OFFICES_HARD = (
    "Office rooms at the beginning of the year: {lines}. In spring {one} and {two} exchanged rooms, and in summer "
    "{three} and {four} did the same. {five} thought about a move to room {asked} but stayed. Who sits in room "
    "{asked} now?",
    "A list from last year reads: {lines}. First {one} and {two} swapped rooms, and later {three} and {four} did; "
    "{five} only got a new desk. Who is in room {asked} today?",
)


@family(
    "office_lookup", topic="document reading", answer_type="multiple_choice", tiers=("standard", "hard"), bank="dev"
)
def office_lookup(rng: random.Random, tier: str) -> Draw:
    hard = tier == "hard"
    people = rng.sample(PEOPLE, 5 if hard else 4)
    rooms = rng.sample(range(11, 99), len(people))
    first = rng.sample(range(len(people)), 2)
    swaps = [first]
    if hard:
        stays = rng.choice([i for i in range(5) if i not in first])
        swaps.append([rng.choice(first), rng.choice([i for i in range(5) if i not in (*first, stays)])])

    def after(exchanges: list[list[int]]) -> list[str]:
        """Who is in which room, in the order of the rooms."""
        inside = list(people)
        for one, two in exchanges:
            i, j = inside.index(people[one]), inside.index(people[two])
            inside[i], inside[j] = inside[j], inside[i]
        return inside

    moved = [i for i in range(len(people)) if after(swaps)[i] != people[i]]
    asked = rng.choice([*moved, rng.randrange(len(people))])
    names = {
        word: people[i] for word, i in zip(("one", "two", "three", "four"), [i for s in swaps for i in s], strict=False)
    }
    q = filled(
        rng.choice(_OFFICES_HARD if hard else _OFFICES), **names, five=people[stays] if hard else "",
        asked=rooms[asked],
        lines=", ".join(f"{name} {room}" for name, room in zip(people, rooms, strict=True)),
    )  # fmt: skip
    gold = after(swaps)[asked]
    wrong = [
        foils.misread(people[asked], "overlooked the exchange of rooms"),
        foils.misread(after(swaps[:1])[asked], "overlooked the second exchange"),
        foils.misconception(after(swaps[::-1])[asked], "exchanged the rooms in the wrong order"),
        *(foils.confused(people[i], "took somebody else who moved") for i in moved),
        *(foils.confused(people[i], "read the wrong line") for i in (*range(asked + 1, len(people)), *range(asked))),
    ]
    options = list(dict.fromkeys([gold, *(m.value for m in wrong)]))[:4]

    def keys_passed_on(n: list[int]) -> str:
        v = q.read(n)
        room_of = dict(zip(people, v.lines, strict=True))
        for one, two in swaps:
            room_of |= {people[one]: room_of[people[two]], people[two]: room_of[people[one]]}
        return next(name for name, room in room_of.items() if room == v.asked)

    return Draw(q.text, gold, [m for m in wrong if m.value in options], keys_passed_on, options)
