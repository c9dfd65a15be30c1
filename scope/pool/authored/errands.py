"""Planning a day: the order of dependent tasks, and whether one gets there in time."""

import itertools
import random

from scope.pool import foils
from scope.pool.authored.registry import Draw, family
from scope.pool.authored.wording import PEOPLE, clock, coin, filled, minutes, yes_no

_ERRANDS = (
    "the bank", "the bakery", "the barber", "the dentist", "the florist", "the garage", "the gym", "the pharmacy",
    "the post office", "the tailor", "the town hall", "the vet",
)  # fmt: skip
_PLACES = ("first", "second", "third", "fourth", "fifth")

#: a way to say how two errands stand to each other; what it demands of their positions
_BEFORE = (
    "{x} comes before {y}",
    "{y} comes after {x}",
    "{name} goes to {x} before {y}",
    "{y} is only visited after {x}",
)
_NEXT = ("{y} comes right after {x}", "{x} comes right before {y}", "from {x} {name} goes straight to {y}")
_ORDER = (
    "{name} goes to {many} places: {places}. {rules}. Which place is visited {place}?",
    "In one afternoon {name} has to visit {places}. {rules}. Where does {name} go {place}?",
    "On the list of {name} are {places}. {rules}. Which of them is the {place} stop?",
)


@family("task_order", topic="planning", answer_type="multiple_choice", tiers=("standard", "hard"), bank="train")
def task_order(rng: random.Random, tier: str) -> Draw:
    size = 4 if tier == "standard" else 5
    name, order = rng.choice(PEOPLE), rng.sample(_ERRANDS, size)
    pairs = list(itertools.combinations(range(size), 2))
    rng.shuffle(pairs)
    left = list(itertools.permutations(range(size)))
    rules: list[tuple[str, int, int]] = []
    for one, two in pairs:  # add rules that exclude an order until a single one is left
        kind = "next" if two == one + 1 and coin(rng) else "before"
        kept = [p for p in left if _holds(p, kind, one, two)]
        if len(kept) < len(left):
            rules.append((kind, one, two))
            left = kept
    for rule in list(rules):  # and leave out what the others say already
        others = [r for r in rules if r != rule]
        if sum(all(_holds(p, *r) for r in others) for p in itertools.permutations(range(size))) == 1:
            rules = others
    if len(left) > 1 or len(rules) > size:
        return task_order(rng, tier)
    rng.shuffle(rules)
    asked = rng.randrange(size)
    said = [
        rng.choice(_NEXT if kind == "next" else _BEFORE).format(x=order[one], y=order[two], name=name)
        for kind, one, two in rules
    ]
    named = rng.sample(order, size)
    shown = f"{', '.join(named[:-1])} and {named[-1]}"
    q = filled(
        rng.choice(_ORDER), name=name, many="four" if size == 4 else "five", places=shown, place=_PLACES[asked],
        rules=". ".join(text[0].upper() + text[1:] for text in said),
    )  # fmt: skip
    spoken = [place for place in sorted(order, key=" ".join(said).find)]
    turned = [place for place in order if place != order[asked]]
    rng.shuffle(turned)
    mistakes = [
        foils.confused(spoken[asked], "took the order in which the places are mentioned"),
        foils.misread(order[size - 1 - asked], "read before as after"),
        foils.off_by(order[max(0, asked - 1)], "stopped one place too early"),
        foils.off_by(order[min(size - 1, asked + 1)], "went one place too far"),
        *(foils.near(place, "took another place of the list") for place in turned),
    ]
    options = [order[asked], *dict.fromkeys(m.value for m in mistakes if m.value != order[asked])][:4]

    def only_order(numbers: list[int]) -> str:
        fits = []
        for tour in itertools.permutations(named):
            where = {place: i for i, place in enumerate(tour)}
            gaps = [(kind, where[order[two]] - where[order[one]]) for kind, one, two in rules]
            if all(gap == 1 if kind == "next" else gap > 0 for kind, gap in gaps):
                fits.append(tour)
        (tour,) = fits
        return tour[asked]

    return Draw(
        q.text,
        order[asked],
        [m for m in mistakes if m.value in options],
        only_order,
        options,
        core=f"{'>'.join(order)},{asked}",
    )


def _holds(order: tuple[int, ...], kind: str, one: int, two: int) -> bool:
    gap = order[two] - order[one]
    return gap == 1 if kind == "next" else gap > 0


_TRAVEL = (
    "{name} leaves home at {start}, walks {walk} minutes to the stop, waits {wait} minutes there and then rides the "
    "bus for {ride} minutes. {event} starts at {goal}. {asked}",
    "{event} begins at {goal}. {name} sets off at {start}: {walk} minutes on foot, {wait} minutes of waiting and a "
    "ride of {ride} minutes. {asked}",
)
_TRAVEL_HARD = (
    "Trams leave the stop at {one}, {two}, {three} and {four}. {name} leaves home at {start}, needs {walk} minutes on "
    "foot to the stop, and takes the first tram that has not left yet. The ride lasts {ride} minutes, and from the "
    "last stop it is another {rest} minutes on foot. {other}, who goes by car, needs {car} minutes. {event} starts at "
    "{goal}. {asked}",
    "{event} starts at {goal}. {name} is at work until {start} and then walks {walk} minutes to the tram stop, where "
    "trams leave at {one}, {two}, {three} and {four}. The next tram takes {ride} minutes, and the walk at the other "
    "end takes {rest} minutes. By bicycle {other} needs {car} minutes for the whole way. {asked}",
)
_EVENTS = ("the film", "the concert", "the class", "the interview", "the match", "the play", "the meeting", "the tour")


@family("in_time", topic="planning", answer_type="boolean", tiers=("standard", "hard"), bank="train")
def in_time(rng: random.Random, tier: str) -> Draw:
    hard, late, want = tier == "hard", coin(rng), coin(rng)
    start = rng.randint(7 * 60, 19 * 60)
    walk, wait, ride, rest = rng.randint(4, 25), rng.randint(3, 15), rng.randint(12, 55), rng.randint(3, 12)
    first = start + rng.randint(-10, 20)
    trams = [first + k * rng.choice([12, 15, 20]) for k in range(4)]
    trams = [first + k * (trams[1] - trams[0]) for k in range(4)]
    if hard:
        if start + walk > trams[3] or start + walk in trams or start + walk < trams[0] - 5:
            return in_time(rng, tier)
        boards = next(t for t in trams if t >= start + walk)
        arrives = boards + ride + rest
    else:
        arrives = start + walk + wait + ride
    goal = arrives + (rng.choice([1, 2, 4, 7, 11]) if want is not late else -rng.choice([1, 2, 4, 7, 11]))
    name, other = rng.sample(PEOPLE, 2)
    event = rng.choice(_EVENTS)
    asked = (
        rng.choice([f"Does {name} miss the beginning?", f"Is {name} too late for the start?"])
        if late
        else rng.choice([f"Is {name} there before the start?", f"Does {name} arrive before it begins?"])
    )
    q = filled(
        rng.choice(_TRAVEL_HARD if hard else _TRAVEL), name=name, other=other, event=event, asked=asked,
        start=clock(start), goal=clock(goal), walk=walk, wait=wait, ride=ride, rest=rest, car=rng.randint(20, 60),
        **dict(zip(("one", "two", "three", "four"), map(clock, trams), strict=True)),
    )  # fmt: skip

    def outcome(arrival: int) -> str:
        return yes_no((arrival < goal) is not late)

    hundred = start // 60 * 100 + start % 60 + (arrives - start)  # 9:50 and 20 minutes: 9:70
    mistakes = [
        foils.misconception(
            yes_no((hundred < goal // 60 * 100 + goal % 60) is not late), "took an hour for 100 minutes"
        ),
        foils.misread(outcome(arrives - (rest if hard else wait)), "left out a part of the way"),
        foils.overgeneralized(outcome(arrives + (walk if hard else wait)), "counted a part of the way twice"),
    ]
    if hard:
        mistakes[:0] = [
            foils.misread(outcome(start + walk + ride + rest), "overlooked the wait for the tram"),
            foils.off_by(outcome(boards + trams[1] - trams[0] + ride + rest), "took the tram after the next"),
            foils.confused(outcome(boards + ride), "took the last stop for the place itself"),
        ]
    rng.shuffle(mistakes)
    mistakes.append(foils.slip(yes_no(outcome(arrives) == "no"), "added the minutes wrongly"))

    def minute_by_minute(numbers: list[int]) -> str:
        v = q.read(numbers)
        now = minutes(v.start)
        steps = [v.walk, v.ride, v.rest] if hard else [v.walk, v.wait, v.ride]
        departures = {minutes(t) for t in (v.one, v.two, v.three, v.four)} if hard else set()
        for i, step in enumerate(steps):
            while hard and i == 1 and now not in departures:
                now += 1
            for _ in range(step):
                now += 1
        return yes_no((minutes(v.goal) - now > 0) is not late)

    return Draw(q.text, outcome(arrives), mistakes, minute_by_minute)
