"""Time zones, bookings that may overlap, and shifts."""

import datetime
import random

from scope.pool import foils
from scope.pool.authored.registry import Draw, family
from scope.pool.authored.wording import FIRMS, PEOPLE, clock, coin, filled, listed, minutes, yes_no

_CITIES = ("Lindau", "Marlow", "Tarent", "Osgood", "Velden", "Quarry Bay", "Norwick", "Selma", "Perth Hill", "Dunmore")
_ZONES = (
    "Clocks in {there} are {ahead} hours {way} those in {here}. A call begins at {start} in {here} and lasts {length} "
    "minutes. What time is it in {there} when the call ends?",
    "{name} in {here} phones {other} in {there}, where the clocks are {ahead} hours {way} those in {here}. They start "
    "at {start}, {here} time, and talk for {length} minutes. What does the clock in {there} show when they hang up?",
)
_ZONES_HARD = (
    "Clocks in {there} are {ahead} hours {way} those in {here}, and clocks in {third} are {more} hours {way2} those "
    "in {there}. {name} leaves {here} at {start} local time; the journey to {third} takes {hours} hours and {length} "
    "minutes in all, including a stop of {stop} minutes in {there}. What is the local time in {third} when {name} "
    "arrives?",
    "{name} flies from {here} to {third} with a stop in {there}. The clocks in {there} are {ahead} hours {way} those "
    "in {here}, and those in {third} are {more} hours {way2} those in {there}. The plane leaves at {start}, {here} "
    "time, and lands {hours} hours and {length} minutes later, the stop of {stop} minutes included. What time is it "
    "in {third} then?",
)


@family("time_zone", topic="schedules", answer_type="multiple_choice", tiers=("standard", "hard"), bank="train")
def time_zone(rng: random.Random, tier: str) -> Draw:
    hard = tier == "hard"
    here, there, third = rng.sample(_CITIES, 3)
    ahead, more = rng.randint(2, 10), rng.randint(1, 5) + 1 if hard else 0
    sign, sign2 = rng.choice([1, -1]), rng.choice([1, -1])
    start, hours, length = rng.randint(0, 287) * 5, rng.randint(3, 12) if hard else 0, rng.choice(range(20, 60, 5))
    stop = rng.choice(range(35, 100, 5)) if hard else 0
    travel, shift = 60 * hours + length, 60 * (sign * ahead + sign2 * more)
    gold = start + travel + shift
    name, other = rng.sample(PEOPLE, 2)
    way, way2 = ("ahead of" if s > 0 else "behind" for s in (sign, sign2))
    q = filled(
        rng.choice(_ZONES_HARD if hard else _ZONES), here=here, there=there, third=third, name=name, other=other,
        way=way,
        way2=way2, ahead=ahead, more=more, start=clock(start), hours=hours, length=length, stop=stop,
    )  # fmt: skip
    hundred = start // 60 * 100 + start % 60 + length
    carried = 60 * (hundred // 100) + hundred % 100 if hundred % 100 < 60 else start + length + 60
    wrong = [
        foils.misread(start + travel - shift, "went the wrong way between the time zones"),
        foils.misread(start + shift + (0 if not hard else travel - length), "left out some of the minutes"),
        foils.confused(start + travel, f"gave the time in {here}"),
        foils.misconception(carried + travel - length + shift, "took a hundred minutes for an hour"),
        foils.off_by(gold + 60, "was one hour out"),
        foils.off_by(gold - 60, "was one hour out"),
    ]
    if hard:
        wrong[:0] = [
            foils.overgeneralized(start + travel + 60 * sign * (ahead + more), "went the same way between both pairs"),
            foils.misread(gold + stop, "added the stop again"),
            foils.confused(start + travel + 60 * sign * ahead, f"gave the time in {there}"),
        ]
    wrong = [*rng.sample(wrong[:-2], len(wrong) - 2), *wrong[-2:]]
    shown = {clock(int(m.value) % 1440): m for m in reversed(wrong)}
    shown.pop(clock(gold % 1440), None)
    kept = [foils.Mistake(text, m.wrong_class, m.name) for text, m in reversed(shown.items())][:3]

    def by_datetime(numbers: list[int]) -> str:
        v = q.read(numbers)
        zone = datetime.timezone(datetime.timedelta(0))
        far = datetime.timezone(datetime.timedelta(hours=sign * v.ahead + (sign2 * v.more if hard else 0)))
        left = datetime.datetime(2025, 6, 15, *v.start).replace(tzinfo=zone)
        landed = left + datetime.timedelta(hours=v.hours if hard else 0, minutes=v.length)
        return f"{landed.astimezone(far):%-H:%M}"

    options = [clock(gold % 1440), *(m.value for m in kept)]
    return Draw(q.text, options[0], kept, by_datetime, options)


_ROOM = (
    "The meeting room is booked from {a} to {b}, from {c} to {d} and from {e} to {f}. {name} would like to have it "
    "for {length} minutes from {start}. {asked}",
    "Bookings of the tennis court today: {a} to {b}, {c} to {d}, {e} to {f}. {name} wants to play there for {length} "
    "minutes, starting at {start}. {asked}",
)
_ROOM_HARD = (
    "The meeting room is booked from {a} to {b}, from {c} to {d} and from {e} to {f}. The booking at {c} has been "
    "moved and now begins {moved} minutes later, without becoming shorter. The room must be empty for at least "
    "{pause} minutes between two meetings. {name} would like to have it for {length} minutes from {start}. {asked}",
    "Bookings of the rehearsal room today: {a} to {b}, {c} to {d}, {e} to {f}. The band of the second booking called: "
    "they start and finish {moved} minutes later than booked. Between two bands the room is aired for {pause} "
    "minutes and cannot be used. {name} asks for {length} minutes from {start}. {asked}",
)


@family("room_free", topic="schedules", answer_type="boolean", tiers=("standard", "hard"), bank="train")
def room_free(rng: random.Random, tier: str) -> Draw:
    hard, turned, want = tier == "hard", coin(rng), coin(rng)
    while True:
        times, now = [], rng.randrange(480, 660, 15)
        for _ in range(3):
            end = now + rng.choice([45, 60, 75, 90])
            times += [now, end]
            now = end + rng.choice([60, 75, 90, 105, 120])
        moved, pause = (rng.choice([10, 15, 20, 30]), rng.choice([5, 10, 15])) if hard else (0, 0)
        actual = [*times[:2], times[2] + moved, times[3] + moved, *times[4:]]
        hole = rng.choice([0, 2])
        start = actual[hole + 1] + pause + rng.choice([0, 0, 5, 10, -10])
        length = actual[hole + 2] - pause - start + rng.choice([-15, -5, 0, 5, 10])

        def free(taken: list[int], gap: int, minus: int = 0, start: int = start, length: int = length) -> bool:
            spans = zip(taken[::2], taken[1::2], strict=True)
            return all(start >= e + gap or start + length - minus <= s - gap for s, e in spans)

        # the moved booking must not run into the next one
        if free(actual, pause) is want and length >= 25 and actual[3] + 2 * pause < actual[4]:
            break
    asked = rng.choice(
        [f"Does this clash with a booking{' or a break' if hard else ''}?"]
        if turned
        else ["Is that possible?", "Does it fit?"]
    )
    q = filled(
        rng.choice(_ROOM_HARD if hard else _ROOM), name=rng.choice(PEOPLE), asked=asked, length=length,
        start=clock(start),
        moved=moved, pause=pause, **dict(zip("abcdef", map(clock, times), strict=True)),
    )  # fmt: skip

    def outcome(possible: bool) -> str:
        return yes_no(possible is not turned)

    hundred = 60 * ((start % 60 + length) // 100) + (start % 60 + length) % 100 - start % 60
    mistakes = [
        foils.misread(outcome(free(times, pause)), "overlooked that a booking was moved"),
        foils.misread(outcome(free(actual, 0)), "forgot the pause"),
        foils.misconception(outcome(free(actual, pause, length - hundred)), "took a hundred minutes for an hour"),
        foils.off_by(outcome(free(actual, pause + 1)), "took times that only touch for a clash"),
        foils.slip(outcome(not free(actual, pause)), "compared the times wrongly"),
    ]

    def minute_by_minute(numbers: list[int]) -> str:
        v = q.read(numbers)
        taken: set[int] = set()
        for i, (s, e) in enumerate(((v.a, v.b), (v.c, v.d), (v.e, v.f))):
            late = v.moved if hard and i == 1 else 0
            gap = v.pause if hard else 0
            taken |= set(range(minutes(s) + late - gap, minutes(e) + late + gap))
        return outcome(not taken & set(range(minutes(v.start), minutes(v.start) + v.length)))

    return Draw(q.text, outcome(want), mistakes, minute_by_minute)


_SHIFTS = (
    "Shifts at {firm} on one day: {lines}. {breaks}Who works for the {word} time?",
    "The plan of {firm} has these shifts: {lines}. {breaks}Whose working time is the {word}?",
)


@family("longest_shift", topic="schedules", answer_type="multiple_choice", tiers=("standard", "hard"), bank="eval")
def longest_shift(rng: random.Random, tier: str) -> Draw:
    hard, longest = tier == "hard", coin(rng)
    people = rng.sample(PEOPLE, 4)
    starts = [rng.randrange(5 * 60, 13 * 60, 5) for _ in people]
    lengths = [rng.randrange(240, 520, 5) for _ in people]
    pauses = [rng.choice([0, 20, 30, 40, 45, 60]) if hard else 0 for _ in people]
    ends = [s + k for s, k in zip(starts, lengths, strict=True)]
    net = [k - p for k, p in zip(lengths, pauses, strict=True)]
    hundred = [(e // 60 * 100 + e % 60) - (s // 60 * 100 + s % 60) for s, e in zip(starts, ends, strict=True)]
    sign = 1 if longest else -1

    def top(values: list[int]) -> str:
        return people[max(range(4), key=lambda i: sign * values[i])]

    ranked = sorted(range(4), key=lambda i: -sign * net[i])
    gold = people[ranked[0]]
    minimal = sign * (net[ranked[0]] - net[ranked[1]])
    if not 5 <= minimal <= 60 or max(ends) >= 24 * 60 or len(set(starts)) < 4 or len(set(ends)) < 4:
        return longest_shift(rng, tier)
    if hard and (top(lengths) == gold or sum(map(bool, pauses)) < 2):
        return longest_shift(rng, tier)
    lines = [f"{p} {clock(s)} to {clock(e)}" for p, s, e in zip(people, starts, ends, strict=True)]
    breaks = ""
    if hard:
        some = listed([f"{k} minutes for {p}" for p, k in zip(people, pauses, strict=True) if k])
        none = " The others take no break." if 0 in pauses else ""
        breaks = f"Breaks are not working time. They are {some}.{none} "
    q = filled(
        rng.choice(_SHIFTS), firm=rng.choice(FIRMS), lines=", ".join(lines), breaks=breaks,
        word=("longest" if longest else "shortest"),
    )  # fmt: skip
    wrong = [
        foils.overgeneralized(top(lengths), "took the time at work without regard to breaks"),
        foils.misconception(top(hundred), "took a hundred minutes for an hour"),
        foils.misconception(top(ends), "looked at the ends only"),
        foils.misconception(top([-s for s in starts]), "looked at the beginnings only"),
        foils.misread(people[ranked[3]], "took the opposite end"),
        foils.near(people[ranked[1]], "took the next in rank"),
        foils.confused(people[ranked[2]], "mixed up two lines"),
    ]

    def by_minutes(numbers: list[int]) -> str:
        v = q.read(numbers)
        rest = iter(v.breaks if hard else ())
        spans = []
        for i, pause in enumerate(pauses):
            h1, m1, h2, m2 = v.lines[4 * i : 4 * i + 4]
            worked = range(60 * h1 + m1, 60 * h2 + m2)
            spans.append(len(worked[next(rest) :] if pause else worked))
        best = max(spans) if longest else min(spans)
        return people[spans.index(best)]

    return Draw(q.text, gold, wrong, by_minutes, people)
