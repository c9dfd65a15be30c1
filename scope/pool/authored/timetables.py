"""Timetables, opening hours, bookings, shifts and time zones."""

import datetime
import random

from scope.pool import foils
from scope.pool.authored.registry import Draw, family
from scope.pool.authored.wording import DAYS, PEOPLE, clock, coin, filled, listed, minutes, yes_no

_BUS = (
    "The {bus} leaves {place} at {times} and takes {ride} minutes to the station. {name} has to be at the station by "
    "{goal} at the latest. What is the latest departure that is early enough?",
    "Departures of the {bus} from {place}: {times}. The ride to the station takes {ride} minutes, and {name} must not "
    "get there later than {goal}. Which is the last departure that {name} can take?",
)
_BUS_HARD = (
    "From Monday to Saturday the {bus} leaves {place} at {times}; on Sundays every departure is {later} minutes "
    "later. The ride to the station takes {ride} minutes, and from the stop to the platform one walks {walk} minutes. "
    "Today is {day}, and the train of {name} leaves at {goal}. {name} wants to be on the platform at least {spare} "
    "minutes before that. What is the latest departure of the {bus} that is early enough?",
    "Timetable of the {bus} from {place}, for Monday to Saturday: {times}. On Sundays it runs {later} minutes later "
    "each time. It takes {ride} minutes to the station, plus {walk} minutes on foot to the platform. {name} has a "
    "train at {goal} on a {day} and wants to stand on the platform {spare} minutes before, or earlier. When does the "
    "last suitable {bus} leave?",
)


def _hundreds(time: int) -> int:
    """A time as the number that its digits make: 9:05 as 905."""
    return time // 60 * 100 + time % 60


@family("timetable", topic="schedules", answer_type="multiple_choice", tiers=("standard", "hard"), bank="dev")
def timetable(rng: random.Random, tier: str) -> Draw:
    hard = tier == "hard"
    gap = rng.choice([12, 15, 18, 20, 25])
    first = rng.randint(6 * 60, 18 * 60)
    listed_times = [first + k * gap for k in range(5)]
    day = rng.choice([*DAYS[:6], *["Sunday"] * 5])
    later, ride = rng.choice([4, 5, 6, 7, 8, 9]), rng.randint(16, 58)
    walk, spare = (rng.randint(3, 9), rng.randint(3, 12)) if hard else (0, 0)
    shift = later if hard and day == "Sunday" else 0
    times = [t + shift for t in listed_times]
    best = rng.choice([1, 2, 3] if not hard else [2, 3])
    goal = times[best] + ride + walk + spare + rng.choice([0, 1, 2, 4, 7])
    if times[best] + gap + ride + walk + spare <= goal:
        return timetable(rng, tier)

    def last(lead: int, departures: list[int] = times) -> int:
        return max((t for t in departures if t + lead <= goal), default=0)

    lead = ride + walk + spare
    gold = times[best]
    wrong = [
        foils.misread(last(0), "took the time of arrival for that of departure"),
        foils.misconception(
            max((t for t in times if _hundreds(t) <= _hundreds(goal) - lead), default=0),
            "took a hundred minutes for an hour",
        ),
        foils.off_by(times[best + 1], "took one departure too late"),
        foils.off_by(times[best - 1], "took one departure too early"),
        foils.near(times[0], "took the first departure"),
        foils.near(times[4], "took the final departure"),
    ]
    if hard:
        wrong[:0] = [
            foils.misread(last(ride + spare), "left out the walk"),
            foils.misread(last(ride + walk), "left no time to spare"),
            foils.overgeneralized(
                listed_times[best] + (0 if shift else later),
                "read the times of working days on a Sunday" if shift else "read the times of Sundays on a working day",
            ),
        ]
    usable = {m.value: m for m in reversed(wrong) if m.value not in ("0", str(gold))}
    kept = [m for m in wrong if usable.get(m.value) is m]
    kept = sorted(kept, key=lambda m: m.wrong_class != "overgeneralization")[:3]  # the one that only Sundays allow
    name = rng.choice(PEOPLE)
    q = filled(
        rng.choice(_BUS_HARD if hard else _BUS), bus=rng.choice(["bus", "tram", "shuttle"]), name=name, day=day,
        place=rng.choice(["the market", "the harbour", "the village", "the airport", "the campus"]), ride=ride,
        walk=walk,
        times=listed([clock(t) for t in listed_times]), goal=clock(goal), later=later, spare=spare,
    )  # fmt: skip

    def backwards(numbers: list[int]) -> str:
        v = q.read(numbers)
        running = {60 * h + m + (v.later if shift else 0) for h, m in zip(v.times[::2], v.times[1::2], strict=True)}
        now = minutes(v.goal) - v.ride - (v.walk + v.spare if hard else 0)
        while now not in running:
            now -= 1
        return clock(now)

    return Draw(
        q.text,
        clock(gold),
        [foils.Mistake(clock(int(m.value)), m.wrong_class, m.name) for m in kept],
        backwards,
        [clock(gold), *(clock(int(m.value)) for m in kept)],
    )


_OPEN = (
    "The {place} is open from {a} to {b} on weekdays and from {c} to {d} on Saturdays and Sundays. {name} gets there "
    "at {at} on a {day}. {asked}",
    "Opening hours of the {place}: Monday to Friday {a} to {b}, Saturday and Sunday {c} to {d}. It is {day}, {at}. "
    "{asked}",
)
_OPEN_HARD = (
    "The {place} is open from {a} to {b} on weekdays and from {c} to {d} on Saturdays and Sundays. On public holidays "
    "the weekend hours apply, whatever the day. Nobody is let in during the last {last} minutes before closing. "
    "{name} arrives at {at} on a {day}, which is {what}. The café next door is open until {cafe}. {asked}",
    "Opening hours of the {place}: {a} to {b} from Monday to Friday, {c} to {d} at weekends and on all public "
    "holidays. The last visitors are let in {last} minutes before closing time, and the café stays open until {cafe}. "
    "{name} comes at {at} on a {day} that is {what}. {asked}",
)
_SITES = ("museum", "swimming pool", "zoo", "library", "skating rink", "botanical garden", "climbing hall", "castle")


@family("opening_hours", topic="document reading", answer_type="boolean", tiers=("standard", "hard"), bank="train")
def opening_hours(rng: random.Random, tier: str) -> Draw:
    hard, turned, want = tier == "hard", coin(rng), coin(rng)
    while True:
        week = (rng.randrange(420, 660, 15), rng.randrange(960, 1230, 15))
        weekend = (rng.randrange(480, 720, 15), rng.randrange(840, 1140, 15))
        day, holiday = rng.randrange(7), hard and coin(rng)
        last = rng.choice([15, 20, 30, 40, 45]) if hard else 0
        use, other = (weekend, week) if day > 4 or holiday else (week, weekend)
        edge = rng.choice([*use, *other])
        at = edge - (last if edge in (week[1], weekend[1]) else 0) + rng.choice([-25, -10, -5, 5, 10, 25])
        inside = use[0] < at < use[1] - last
        if inside is want and at not in (*use, *other, use[1] - last, other[1] - last):
            break
    name, place = rng.choice(PEOPLE), rng.choice(_SITES)
    if hard:
        asked = f"Is {name} too early or too late to be let in?" if turned else f"Is {name} let in at that time?"
    else:
        asked = f"Is the {place} closed at that time?" if turned else f"Is the {place} open at that time?"
    q = filled(
        rng.choice(_OPEN_HARD if hard else _OPEN), place=place, name=name, asked=asked, a=clock(week[0]),
        b=clock(week[1]),
        c=clock(weekend[0]), d=clock(weekend[1]), at=clock(at), day=DAYS[day], last=last, cafe=clock(week[1] + 45),
        what="a public holiday" if holiday else "not a public holiday",
    )  # fmt: skip

    def outcome(hours: tuple[int, int], before: int) -> str:
        return yes_no((hours[0] < at < hours[1] - before) is not turned)

    gold = outcome(use, last)
    plain = weekend if day > 4 else week
    mistakes = [
        foils.misread(outcome(plain, last), "overlooked that it is a public holiday"),
        foils.overgeneralized(outcome(use, 0), "took the closing time for the last admission"),
        foils.confused(outcome(other, last), "read the hours of the other days"),
        foils.misread(outcome((use[0], 1440), 0), "looked at the opening time only"),
        foils.misread(outcome((0, use[1]), last), "looked at the closing time only"),
        foils.slip(yes_no(gold == "no"), "compared the times wrongly"),
    ]

    def on_the_clock(numbers: list[int]) -> str:
        v = q.read(numbers)
        opens, closes = (v.c, v.d) if DAYS[day].startswith("S") or holiday else (v.a, v.b)
        end = datetime.datetime(2025, 1, 1, *closes) - datetime.timedelta(minutes=v.last if hard else 0)
        allowed = datetime.datetime(2025, 1, 1, *opens) <= datetime.datetime(2025, 1, 1, *v.at) <= end
        return yes_no(allowed is not turned)

    return Draw(q.text, gold, mistakes, on_the_clock)
