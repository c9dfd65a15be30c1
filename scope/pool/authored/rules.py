"""Rules with a limit: is this allowed?"""

import random

from scope.pool import foils
from scope.pool.authored.registry import Draw, family
from scope.pool.authored.wording import PEOPLE, coin, filled, yes_no

#: rule and case; question for inside and outside the limit; lowest and highest number and size of the things; unit
#: (the first two are left out of the hard tier: a permit does not make a lift stronger)
_LIMITS = (
    (
        "The lift carries at most {limit} kg. {count} people of {each} kg each and a trolley of {more} kg are waiting.",
        ("May all of it go up at once?", "Is that too heavy for the lift?"),
        (3, 9, 55, 95),
        "kg",
    ),
    (
        "A rack holds at most {limit} kg. {name} wants to put {count} boxes of {each} kg each and a drill of "
        "{more} kg on it.",
        ("Is that allowed?", "Is that too heavy for the rack?"),
        (3, 8, 6, 30),
        "kg",
    ),
    (
        "For a team dinner the limit is {limit} dollars. {count} meals at {each} dollars each and drinks for "
        "{more} dollars were ordered.",
        ("Does the bill keep to the limit?", "Does the bill exceed the limit?"),
        (3, 12, 11, 35),
        "dollars",
    ),
    (
        "The hall may be used by at most {limit} guests. {name} expects {count} groups of {each} people and {more} "
        "people who come alone.",
        ("May all of them come in?", "Is that too many people?"),
        (3, 9, 4, 14),
        "guests",
    ),
    (
        "A trainee may work at most {limit} hours a month. {name}, a trainee, has worked {count} days of {each} hours "
        "each and {more} hours on a Saturday.",
        ("Is that within the limit?", "Is that more than allowed?"),
        (8, 20, 4, 8),
        "hours",
    ),
)
_EXCEPTION = (
    " A permit raises the limit by {extra} {unit}. In this case {given}.",
    " With a permit, up to {extra} {unit} more are allowed; {given}.",
)


@family("limit", topic="workplace policy", answer_type="boolean", tiers=("standard", "hard"), bank="train")
def limit(rng: random.Random, tier: str) -> Draw:
    hard, want, over = tier == "hard", coin(rng), rng.randrange(2)
    template, questions, (few, many, small, large), unit = rng.choice(_LIMITS[2:] if hard else _LIMITS)
    count, each, more = rng.randint(few, many), rng.randint(small, large), rng.randint(3, 12)
    permit, extra = hard and coin(rng), rng.randint(4, 20) if hard else 0
    total = count * each + more
    inside = want is not bool(over)
    bound = total + (rng.choice([0, 0, 1, 3, 8]) if inside else -rng.choice([1, 1, 2, 4, 9]))
    if permit:
        bound -= extra
    elif hard and not inside:
        bound = total - rng.randint(1, extra)
    if bound < total // 2:
        return limit(rng, tier)
    name = rng.choice(PEOPLE)
    q = filled(
        f"{template}{rng.choice(_EXCEPTION) if hard else ''} {questions[over]}", name=name, limit=bound, count=count,
        each=each, more=more, extra=extra, unit=unit,
        given="the permit was granted" if permit else "the permit was refused",
    )  # fmt: skip

    def outcome(load: int, most: int) -> str:
        return yes_no((load <= most) is not bool(over))

    most = bound + (extra if permit else 0)
    mistakes = [
        foils.overgeneralized(outcome(total, bound + extra), "applied the exception without a permit")
        if hard
        else None,
        foils.misread(outcome(total, bound), "overlooked the permit") if hard else None,
        foils.off_by(outcome(total, most - 1), "took the limit itself for too much"),
        foils.misread(outcome(count * each, most), "left out what comes on top"),
        foils.misconception(outcome(count + each + more, most), "added instead of multiplying"),
        foils.off_by(outcome(total + each, most), "counted one too many"),
        foils.misread(yes_no(not want), "read the limit the wrong way round"),
    ]

    def one_by_one(n: list[int]) -> str:
        v = q.read(n)
        room = v.limit + (v.extra if permit else 0) - v.more
        for _ in range(v.count):
            room -= v.each
        return yes_no((room < 0) is bool(over))

    return Draw(q.text, yes_no(want), [m for m in mistakes if m], one_by_one)


_AGE = (
    "To enter {place} you must be at least {bound} years old. {other} is {theirs}, and {name} is {gap} years {word}. "
    "{asked}",
    "Visitors of {place} have to be at least {bound} years old. {name} is {gap} years {word} than {other}, who is "
    "{theirs}. {asked}",
)
_AGE_HARD = (
    "To enter {place} you must be at least {bound} years old. Those who are younger, but at least {low}, may enter "
    "together with somebody aged {adult} or more. {name} comes with {other} only. {other} is {theirs}, and {name} is "
    "{gap} years younger. {asked}",
    "{place} is open to everybody aged {bound} or more. From the age of {low} on, younger guests are let in as well "
    "if a companion aged {adult} or more is with them. {name} is {gap} years younger than {other}, who is {theirs} "
    "and the only companion. {asked}",
)
_AGE_PLACES = (
    "the pool", "the gym", "the climbing hall", "the sauna", "the go-kart track",
    "the escape room", "the ropes course", "the spa",
)  # fmt: skip


@family("age_limit", topic="workplace policy", answer_type="boolean", tiers=("standard", "hard"), bank="dev")
def age_limit(rng: random.Random, tier: str) -> Draw:
    hard, want, barred = tier == "hard", coin(rng), coin(rng)
    bound = rng.randint(12, 21)
    low, adult = bound - rng.randint(2, 6), bound + rng.randint(2, 9)
    while True:
        age = bound + rng.choice([-7, -4, -2, -1, 0, 1, 2, 4] if hard else [-4, -2, -1, 0, 1, 3])
        older = hard or coin(rng)
        gap = rng.randint(2, 14)
        theirs = age + gap if older else age - gap
        enters = age >= bound or (hard and age >= low and theirs >= adult)
        if theirs > 3 and age > 3 and enters is (want is not barred) and (not hard or abs(theirs - adult) < 5):
            break
    name, other = rng.sample(PEOPLE, 2)
    place = rng.choice(_AGE_PLACES)
    asked = f"Must {name} stay outside?" if barred else rng.choice([f"May {name} enter?", f"Is {name} let in?"])
    q = filled(
        rng.choice(_AGE_HARD if hard else _AGE), place=place, name=name, other=other, asked=asked, bound=bound,
        low=low, adult=adult,
        gap=gap, theirs=theirs, word="younger" if older else "older",
    )  # fmt: skip

    def outcome(let_in: bool) -> str:
        return yes_no(let_in is not barred)

    mistakes = [
        foils.off_by(outcome(age > bound), "took the limit itself for too young") if age == bound else None,
        foils.overgeneralized(outcome(age >= low), "let everybody in who has a companion") if hard else None,
        foils.overgeneralized(outcome(theirs >= adult), "looked at the companion only") if hard else None,
        foils.misread(outcome(age >= bound), "overlooked the exception") if hard else None,
        foils.confused(outcome(theirs >= bound), f"took the age of {other}"),
        foils.misread(outcome(2 * theirs - age >= bound), "read younger as older") if not hard else None,
        foils.misread(outcome(age <= bound), "read at least as at most"),
        foils.slip(yes_no(not want), "worked out the age wrongly"),
    ]

    def admitted(n: list[int]) -> str:
        v = q.read(n)
        years = len(range(v.theirs)[v.gap :]) if older else len([*range(v.theirs), *range(v.gap)])
        alone = years in range(v.bound, 200)
        led = hard and years in range(v.low, 200) and v.theirs in range(v.adult, 200)
        return yes_no((alone or led) is not barred)

    return Draw(q.text, yes_no(want), [m for m in mistakes if m], admitted)
