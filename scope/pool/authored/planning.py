"""Planning under constraints: a slot that fits all, the earliest finish, few trips, an order of tasks."""

import itertools
import random
from collections.abc import Iterable

from scope.pool import foils
from scope.pool.authored.registry import Draw, family
from scope.pool.authored.wording import PEOPLE, clock, filled, minutes

_SLOT = (
    "{one} is free from {a} to {b}, {two} from {c} to {d} and {three} from {e} to {f}. They want to meet for {length} "
    "minutes without a break. {more}At which of these times can they start?",
    "A meeting of {length} minutes has to suit three people. {one} has time between {a} and {b}, {two} between {c} "
    "and {d}, {three} between {e} and {f}. {more}Which start time works for everyone?",
)
_BUSY = (
    "{busy} also has a phone call from {g} to {h} on that day. {four} sent apologies and is not needed. ",
    "{busy} has to see the dentist from {g} to {h}, so that time is taken. {four} does not take part. ",
)


@family("common_slot", topic="planning", answer_type="multiple_choice", tiers=("standard", "hard"), bank="eval")
def common_slot(rng: random.Random, tier: str) -> Draw:
    one, two, three, four = rng.sample(PEOPLE, 4)
    length = rng.choice([30, 40, 45, 50, 60, 75, 90])
    spans = [(rng.randrange(480, 780, 15), rng.randrange(720, 1140, 15)) for _ in range(3)]
    opens, closes = max(s for s, _ in spans), min(e for _, e in spans)
    call = (0, 0)
    if tier == "hard":
        begin = opens + rng.choice([0, 15, 30, 45])
        call = (begin, begin + rng.choice([20, 30, 45]))
        starts = [t for t in range(opens, closes - length + 1, 5) if t + length <= call[0] or t >= call[1]]
    else:
        starts = list(range(opens, closes - length + 1, 5))
    starts = [t for t in starts if t % 15 == 0]
    if any(e - s < length + 30 for s, e in spans) or not starts or starts[-1] - starts[0] > 60:
        return common_slot(rng, tier)
    gold = rng.choice(starts)
    wrong = [
        foils.misread(
            closes - rng.choice([15, length // 2 // 5 * 5]), "did not see that the meeting would last too long"
        ),
        foils.confused(closes, "took the time at which the first of them has to leave"),
        foils.overgeneralized(sorted(s for s, _ in spans)[1], "asked only two of the three"),
        foils.overgeneralized(min(s for s, _ in spans), "took the time at which the first of them is free"),
    ]
    if tier == "hard":
        wrong.insert(0, foils.misread(call[0] if call[0] >= opens else opens, "overlooked the appointment in between"))
        wrong.insert(1, foils.off_by(call[0] - length + 15, "let the meeting run into the appointment"))
    found = {m.value: m for m in reversed(wrong) if int(m.value) not in starts and int(m.value) >= 0}
    if len(found) < 3:
        return common_slot(rng, tier)
    kept = [m for m in wrong if found.get(m.value) is m][:3]
    times = dict(zip("abcdef", (clock(t) for span in spans for t in span), strict=True))
    q = filled(
        rng.choice(_SLOT).replace("{more}", rng.choice(_BUSY) if tier == "hard" else ""), one=one, two=two,
        three=three,
        four=four, busy=rng.choice([one, two, three]), g=clock(call[0]), h=clock(call[1]), length=length, **times,
    )  # fmt: skip
    options = [gold, *(int(m.value) for m in kept)]

    def fitting(numbers: list[int]) -> str:
        v = q.read(numbers)
        free = set.intersection(*(set(range(minutes(s), minutes(e))) for s, e in ((v.a, v.b), (v.c, v.d), (v.e, v.f))))
        if tier == "hard":
            free -= set(range(minutes(v.g), minutes(v.h)))
        return clock(next(t for t in options if set(range(t, t + v.length)) <= free))

    return Draw(
        q.text,
        clock(gold),
        [foils.Mistake(clock(int(m.value)), m.wrong_class, m.name) for m in kept],
        fitting,
        [clock(t) for t in options],
    )


#: two steps one after the other, one beside them, and one after all three
_PROJECTS = (
    ("the walls are painted", "the shelves are put up", "the garden is dug", "the house is cleaned"),
    ("the floor is laid", "the cupboards are fitted", "the roof is mended", "the furniture is brought in"),
    ("the text is written", "the text is translated", "the pictures are drawn", "the brochure is put together"),
    ("the pond is dug", "the banks are planted", "the fence is built", "the paths are gravelled"),
    ("the parts are ordered and delivered", "the machine is built", "the crew is trained", "the machine is tested"),
    ("the costumes are designed", "the costumes are sewn", "the stage is built", "the play is rehearsed on stage"),
)
_FINISH = (
    "It takes {p} days until {first} and then another {s} days until {second}, which cannot begin earlier. Meanwhile "
    "{name} and others work for {t} days until {third}. Both start on the same day. After how many days at the "
    "earliest is all of it done?",
    "The team of {name} needs {p} days until {first}. Only then can it go on, and {second} after another {s} days. A "
    "second team starts at the same time and takes {t} days until {third}. How many days pass until everything is "
    "done?",
)
_FINISH_HARD = (
    "A team needs {p} days until {first}, and only then {s} more days until {second}. A second team starts on the "
    "same day and needs {t} days until {third}, but it loses {lost} days waiting for material. The last job, which "
    "takes {u} days, can begin only when both teams are done; it ends when {fourth}. The permit was applied for {old} "
    "days before the start. How many days after the start is the whole project done, at the earliest?",
    "Two groups begin a project on the same morning. The first works {p} days until {first}, then {s} days until "
    "{second}. The other works {t} days until {third}, after a delay of {lost} days at the beginning. When both are "
    "done, it takes {u} days until {fourth}. A similar project once took {old} days. What is the smallest number of "
    "days the project can take?",
)


@family("earliest_finish", topic="planning", answer_type="numeric", tiers=("standard", "hard"), bank="train")
def earliest_finish(rng: random.Random, tier: str) -> Draw:
    hard = tier == "hard"
    p, s, t = rng.randint(2, 14), rng.randint(2, 12), rng.randint(3, 24)
    lost, u = (rng.randint(2, 6), rng.randint(2, 9)) if hard else (0, 0)
    if p + s == t + lost or abs(p + s - t - lost) > 7:
        return earliest_finish(rng, tier)
    first, second, third, fourth = rng.choice(_PROJECTS)
    gold = max(p + s, t + lost) + u
    old = rng.choice([k for k in range(gold - 6, gold + 12) if k != gold and k > 4])
    q = filled(
        rng.choice(_FINISH_HARD if hard else _FINISH), name=rng.choice(PEOPLE), first=first, second=second,
        third=third, fourth=fourth,
        p=p, s=s, t=t, u=u, lost=lost, old=old,
    )  # fmt: skip
    mistakes = [
        foils.overgeneralized(p + s + t + lost + u, "put everything one after the other"),
        foils.misconception(max(p, s, t + lost) + u, "took the longest single step"),
        foils.misread(min(p + s, t + lost) + u, "waited for the faster of the two only"),
        foils.misconception((p + s + t + lost) // 2 + u, "shared all work out evenly"),
        foils.off_by(gold + 1, "counted the start as a day of its own"),
    ]
    if hard:
        mistakes += [
            foils.misread(max(p + s, t) + u, "overlooked the lost days"),
            foils.misread(gold - u, "left out the last job"),
            foils.confused(old, "gave a number that has nothing to do with it"),
        ]

    def day_by_day(numbers: list[int]) -> int:
        v = q.read(numbers)
        teams = [v.p + v.s, v.t + (v.lost if hard else 0)]
        last, day = v.u if hard else 0, 0
        while any(teams) or last:
            last -= 1 if not any(teams) else 0
            teams = [max(0, left - 1) for left in teams]
            day += 1
        return day

    return Draw(q.text, str(gold), mistakes, day_by_day)


_TRIPS = (
    "A lift takes at most {fits} people at a time. Groups of {a}, {b} and {c} people wait at the bottom, and they do "
    "not mind being mixed or split. What is the smallest number of times that the lift has to go up?",
    "A ferry carries at most {fits} passengers. {a} hikers, {b} cyclists and {c} school children want to cross the "
    "river and may be mixed as they come. What is the smallest number of crossings that takes all of them over?",
    "A van holds at most {fits} crates. There are {a} crates of apples, {b} of pears and {c} of plums to deliver, and "
    "the sorts may be mixed. What is the smallest number of loads?",
)
_TRIPS_HARD = (
    "A minibus has {seats} seats, one of which is for the driver. Families of {a}, {b}, {c}, {d} and {e} people want "
    "to go from the station to the hotel. A family always rides together, but several families may share a ride. Each "
    "ride costs {cost} dollars, and the hotel is {far} km away. What is the smallest total in dollars for all rides?",
    "Groups of {a}, {b}, {c}, {d} and {e} friends take the cable car. A cabin holds {seats} people, one of whom is "
    "always the guide. Nobody leaves their group, but groups may share a cabin if there is room. The ride is {far} "
    "minutes long and every cabin costs {cost} dollars, however full. How many dollars do they have to pay at least?",
)


def _fewest(groups: Iterable[int], room: int) -> int:
    """The smallest number of rides, from all sets of loads that come about group by group."""
    states: set[tuple[int, ...]] = {()}
    for group in groups:
        grown = {tuple(sorted((*s[:i], s[i] + group, *s[i + 1 :]))) for s in states for i in range(len(s))}
        states = {s for s in grown | {tuple(sorted((*s, group))) for s in states} if max(s) <= room}
    return min(map(len, states))


def _first_fit(groups: list[int], room: int) -> int:
    rides: list[int] = []
    for group in groups:
        place = next((i for i, load in enumerate(rides) if load + group <= room), None)
        if place is None:
            rides.append(group)
        else:
            rides[place] += group
    return len(rides)


@family("fewest_trips", topic="planning", answer_type="numeric", tiers=("standard", "hard"), bank="train")
def fewest_trips(rng: random.Random, tier: str) -> Draw:
    if tier == "standard":
        fits, groups = rng.randint(6, 14), [rng.randint(9, 45) for _ in range(3)]
        total, gold = sum(groups), -(-sum(groups) // fits)
        q = filled(rng.choice(_TRIPS), fits=fits, a=groups[0], b=groups[1], c=groups[2])
        return Draw(
            q.text,
            str(gold),
            [
                foils.overgeneralized(sum(-(-g // fits) for g in groups), "took each group by itself"),
                foils.misconception(total // fits, "left out the last ones, who do not fill it") if total % fits
                else foils.off_by(gold + 1, "added one more at the end"),
                foils.misread(-(-(total - groups[2]) // fits), "left out the last group"),
                foils.off_by(gold + 1, "added one more at the end"),
                foils.off_by(-(-total // (fits - 1)), "filled it only below the limit"),
            ],
            lambda n: len(range(0, (v := q.read(n)).a + v.b + v.c, v.fits)),
        )  # fmt: skip
    seats, groups = rng.randint(6, 10), [rng.randint(2, 6) for _ in range(5)]
    cost, far = rng.randint(11, 48), rng.randint(4, 30)
    room = seats - 1
    if max(groups) > room:
        return fewest_trips(rng, tier)
    gold = _fewest(groups, room) * cost
    q = filled(rng.choice(_TRIPS_HARD), seats=seats, cost=cost, far=far, **dict(zip("abcde", groups, strict=True)))
    mistakes = [
        foils.misread(-(-sum(groups) // room) * cost, "split groups to fill every ride"),
        foils.overgeneralized(5 * cost, "gave every group a ride of its own"),
        foils.misread(_first_fit(sorted(groups, reverse=True), seats) * cost, "filled the seat that is taken"),
        foils.misconception(_first_fit(groups, room) * cost, "put the groups together as they come"),
        foils.misread(2 * gold, "paid for the way back as well"),
        foils.misread(-(-sum(groups) // seats) * cost, "split groups and filled the seat that is taken"),
        foils.off_by(gold + cost, "paid for one ride too many"),
        foils.off_by(gold - cost, "paid for one ride too few"),
    ]

    def every_way(numbers: list[int]) -> int:
        v = q.read(numbers)
        sizes, best = (v.a, v.b, v.c, v.d, v.e), 5
        for rides in itertools.product(*(range(k + 1) for k in range(5))):  # the first in ride 0, and so on
            loads = [sum(size for size, ride in zip(sizes, rides, strict=True) if ride == k) for k in set(rides)]
            if max(loads) < v.seats:
                best = min(best, len(loads))
        return best * v.cost

    return Draw(q.text, str(gold), mistakes, every_way)
