"""Chronology: an order of events, years between them, centuries, lifetimes."""

import random

from scope.pool import foils
from scope.pool.authored.registry import Draw, family
from scope.pool.authored.wording import PEOPLE, a, coin, counted, filled, listed, yes_no

_BUILT = (
    "church",
    "bridge",
    "mill",
    "town hall",
    "theatre",
    "station",
    "lighthouse",
    "market hall",
    "school",
    "brewery",
    "castle",
    "harbour",
)
_ORDINALS = ("first", "second", "third", "fourth", "fifth")
_ORDER = (
    "In an old town, {facts}. Which of these was built {place}?",
    "A guide says: {facts}. Which building is the {rank}?",
    "A town chronicle tells us that {facts}. Which of the buildings was put up {place}?",
)


@family("event_order", topic="chronology", answer_type="multiple_choice", tiers=("standard", "hard"), bank="train")
def event_order(rng: random.Random, tier: str) -> Draw:
    size = 4 if tier == "standard" else 5
    names = rng.sample(_BUILT, size)
    years, links = [rng.randint(1520, 1900)], [(0, 0)]
    for i in range(1, size):
        link, gap = rng.randrange(i), rng.choice([-1, 1]) * rng.randint(3, 70)
        links.append((link, gap))
        years.append(years[link] + gap)
    ranked = sorted(range(size), key=lambda i: years[i])
    asked = rng.randrange(size)
    gold = ranked[asked]
    if len(set(years)) < size:
        return event_order(rng, tier)
    told = rng.randrange(size)  # one building is given its year, any other only its distance to one before it
    said = [f"the {names[0]} was built in {years[0]}"]
    for i in range(1, size):
        link, gap = links[i]
        if i == told:
            said.append(f"the {names[i]} dates from {years[i]}")
            continue
        before = counted(abs(gap), "year") + (" before" if gap < 0 else " after")
        older = counted(abs(gap), "year") + (" older" if gap < 0 else " younger")
        said.append(
            rng.choice(
                [
                    f"the {names[i]} was built {before} the {names[link]}",
                    f"the {names[i]} is {older} than the {names[link]}",
                ]
            )
        )
    ranks = {0: "oldest", 1: "second oldest", size - 1: "youngest", size - 2: "second youngest"}
    q = filled(
        rng.choice(_ORDER if asked in ranks else [t for t in _ORDER if "{rank}" not in t]), facts=listed(said),
        place=_ORDINALS[asked] if asked < size - 1 else "last", rank=ranks.get(asked, ""),
    )  # fmt: skip
    turned = [years[0]]
    for i in range(1, size):
        turned.append(years[i] if i == told else turned[links[i][0]] - links[i][1])
    wrong = [
        foils.misread(sorted(range(size), key=lambda i: turned[i])[asked], "read older as younger"),
        foils.misread(ranked[size - 1 - asked], "began at the wrong end"),
        foils.confused(asked, "took the order in which they are mentioned"),
        foils.off_by(ranked[max(0, asked - 1)], "stopped one too early"),
        foils.off_by(ranked[min(size - 1, asked + 1)], "went one too far"),
        *(foils.near(i, "took another of the buildings") for i in rng.sample(range(size), size)),
    ]
    chosen = [gold, *dict.fromkeys(int(m.value) for m in wrong if int(m.value) != gold)][:4]

    def dated(numbers: list[int]) -> str:
        found: dict[int, int] = {}
        for i, number in enumerate(numbers):
            if i in (0, told):
                found[i] = number
            else:
                link, gap = links[i]
                found[i] = found[link] - number if gap < 0 else found[link] + number
        earlier = {i: sum(other < year for other in found.values()) for i, year in found.items()}
        return "the " + names[next(i for i, count in earlier.items() if count == asked)]

    return Draw(
        q.text,
        f"the {names[gold]}",
        [foils.Mistake(f"the {names[int(m.value)]}", m.wrong_class, m.name) for m in wrong if int(m.value) in chosen],
        dated,
        [f"the {names[i]}" for i in chosen],
    )


_FOUNDED = (
    "orchestra",
    "football club",
    "newspaper",
    "bakery",
    "choir",
    "publishing house",
    "brewery",
    "rowing club",
    "theatre company",
)
_BETWEEN = (
    "{a_house} was founded in {start}. It moved to its present home {later} years after that and celebrates an "
    "anniversary in {now}. How many years after the move is the anniversary?",
    "In {now} {a_house} closes for good. It had opened in {start} and changed its name {later} years later. How many "
    "years lie between the new name and the end?",
)
_BETWEEN_HARD = (
    "{a_house} was founded in {start}. It closed in {shut} and opened again in {again}, and the time in between is "
    "not counted. It was renamed {later} years after the foundation, and its archive goes back to {old}. How many "
    "years of work did it look back on in {now}?",
    "{a_house} opened in {start}, {later} years after the plan for it was made; its oldest picture is from {old}. It "
    "closed in {shut} and did not open again before {again}. For how many years, without that gap, had it been open "
    "in {now}?",
)


@family("years_between", topic="chronology", answer_type="numeric", tiers=("standard", "hard"), bank="train")
def years_between(rng: random.Random, tier: str) -> Draw:
    hard = tier == "hard"
    start, later = rng.randint(1780, 1960), rng.randint(6, 45)
    now = start + later + rng.randint(12, 90)
    shut = start + later + rng.randint(2, 20)
    again = shut + rng.randint(3, 17)
    old = start + rng.choice([-9, -4, 3, 8, 11])
    if hard and (again + 5 > now or now > 2024):
        return years_between(rng, tier)
    gold = now - start - (again - shut) if hard else now - start - later
    q = filled(
        rng.choice(_BETWEEN_HARD if hard else _BETWEEN), a_house=a(rng.choice(_FOUNDED)), start=start, later=later,
        now=now, shut=shut,
        again=again, old=old,
    )  # fmt: skip
    if hard:
        mistakes = [
            foils.misread(now - start, "did not take the gap out"),
            foils.misconception(now - again, "began anew after the gap"),
            foils.confused(shut - start, "gave the years up to the gap only"),
            foils.confused(now - old - (again - shut), "counted from another year"),
            foils.overgeneralized(gold - later, "took off every span of years that is mentioned"),
            foils.off_by(gold - 1, "took out one year too many"),
            foils.off_by(gold + 1, "counted both the first and the last year"),
        ]
    else:
        mistakes = [
            foils.misread(now - start, "counted from the beginning"),
            foils.confused(later, "gave the years before it"),
            foils.misread(now - start + later, "went the wrong way in time"),
            foils.off_by(gold + 1, "counted both the first and the last year"),
            foils.no_borrow(now, start + later),
        ]

    def year_by_year(numbers: list[int]) -> int:
        v = q.read(numbers)
        if hard:
            return sum(1 for year in range(v.start, v.now) if year not in range(v.shut, v.again))
        return len(range(v.start, v.now)[v.later :])

    return Draw(q.text, str(gold), mistakes, year_by_year)


_CENTURY = (
    "A {thing} was finished in {year}. It {burned} {later} years after that. In which century was this?",
    "A {thing} {burned}, {later} years after it had been finished in {year}. In which century did this happen?",
    "People finished a {thing} in {year}, and {later} years after that it {burned}. Which century was that?",
)
_FATES = (
    "burned down",
    "was struck by lightning",
    "was flooded",
    "was damaged by a storm",
    "collapsed",
    "was pulled down",
)


def _century(number: int) -> str:
    return f"the {number}th century"


@family("century", topic="chronology", answer_type="multiple_choice", tiers=("standard",), bank="eval")
def century(rng: random.Random, tier: str) -> Draw:
    year, later = rng.randint(1310, 1930), rng.randint(8, 120)
    then = year + later
    # whether a year ending in 00 opens or closes a century is a matter of convention
    if year % 100 == 0 or then % 100 == 0 or then >= 2000 or (then % 100 > 60 and rng.random() < 0.5):
        return century(rng, tier)
    q = filled(rng.choice(_CENTURY), thing=rng.choice(_BUILT), burned=rng.choice(_FATES), year=year, later=later)
    gold = then // 100 + 1
    wrong = [
        foils.misconception(gold - 1, "took the first two digits of the year for the century"),
        foils.confused(year // 100 + 1, "gave the century in which it was finished"),
        foils.off_by(gold + 1, "counted one century too far"),
        foils.misread((year - later) // 100 + 1, "went back in time"),
        foils.near(gold - 2, "took a century nearby"),
        foils.near(gold + 2, "took a century nearby"),
    ]
    options = list(dict.fromkeys([gold, *(int(m.value) for m in wrong)]))[:4]

    def counted_up(numbers: list[int]) -> str:
        v = q.read(numbers)
        number, last = 1, 100
        while v.year + v.later > last:
            number, last = number + 1, last + 100
        return _century(number)

    return Draw(
        q.text,
        _century(gold),
        [foils.Mistake(_century(int(m.value)), m.wrong_class, m.name) for m in wrong if int(m.value) in options],
        counted_up,
        [_century(option) for option in options],
    )


_LIVES = (
    "The painter {name} was born in {born} and died {age} years later. The composer {other} was born in {born2}. "
    "{asked}",
    "The composer {other} was born in {born2}. The painter {name}, born in {born}, died at the age of {age}. {asked}",
)
_LIVES_HARD = (
    "The painter {name} was born in {born} and died {age} years later. The composer {other} died in {died2}, {age2} "
    "years after being born. {third}, a pupil of {name}, was born in {born3}. {asked}",
    "The composer {other} lived for {age2} years and died in {died2}. The painter {name} was born in {born} and lived "
    "for {age} years. A friend of both, {third}, was born in {born3}. {asked}",
)


@family("lifetimes", topic="chronology", answer_type="boolean", tiers=("standard", "hard"), bank="eval")
def lifetimes(rng: random.Random, tier: str) -> Draw:
    hard, dead, want = tier == "hard", coin(rng), coin(rng)
    born, age, age2 = rng.randint(1560, 1880), rng.randint(31, 89), rng.randint(31, 89)
    died = born + age
    alive = want is not dead
    born2 = died - rng.choice([3, 4, 6, 11, 19]) if alive else died + rng.choice([3, 4, 6, 10, 17])
    died2 = born2 + age2
    if died2 > 2020:
        return lifetimes(rng, tier)
    name, other, third = rng.sample(PEOPLE, 3)
    asked = rng.choice(
        [f"Had {name} already died when {other} was born?", f"Was {other} born after the death of {name}?"]
        if dead
        else [f"Was {name} still alive when {other} was born?", f"Was {other} born during the lifetime of {name}?"]
    )
    q = filled(
        rng.choice(_LIVES_HARD if hard else _LIVES), name=name, other=other, third=third, asked=asked, born=born,
        age=age, born2=born2,
        died2=died2, age2=age2, born3=born + rng.randint(15, 40),
    )  # fmt: skip

    def outcome(death: int, birth: int) -> str:
        return yes_no((birth < death) is not dead)

    mistakes = [
        foils.slip(outcome(died - 10, born2), "dropped the carry") if born % 10 + age % 10 > 9 else None,
        foils.confused(outcome(died, died2), f"took the death of {other} for the birth") if hard else None,
        foils.confused(outcome(born + age2, born2), f"took the age that {other} reached") if hard else None,
        foils.confused(outcome(born + 1, born2), f"took the birth of {name} for the death"),
        foils.overgeneralized(yes_no(not dead), "took people of one century for contemporaries"),
        foils.misread(yes_no(outcome(died, born2) == "no"), "read the question the wrong way round"),
    ]

    def in_years(numbers: list[int]) -> str:
        v = q.read(numbers)
        living = range(v.born, v.born + v.age)
        birth = range(v.died2)[-v.age2] if hard else v.born2
        return yes_no((birth in living) is not dead)

    return Draw(q.text, outcome(died, born2), [m for m in mistakes if m], in_years)
