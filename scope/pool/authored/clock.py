"""Units of time, durations, days of the week and years."""

import datetime
import random

from scope.pool import foils
from scope.pool.authored.registry import Draw, family
from scope.pool.authored.wording import filled, yes_no
from scope.pool.authored.words import PLACES

#: smaller unit, larger unit, one of it, how many, a mistaken how many and why, most of the larger unit
_UNITS = (
    ("days", "weeks", "a week", 7, 5, "counted working days only", 12),
    ("hours", "days", "a day", 24, 12, "counted half of the day", 5),
    ("minutes", "hours", "an hour", 60, 100, "took a hundred minutes for an hour", 9),
    ("months", "years", "a year", 12, 10, "took ten months for a year", 12),
    ("seconds", "minutes", "a minute", 60, 100, "took a hundred seconds for a minute", 9),
)
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


def _in_small_units(small: str, large: str, count: int) -> int:
    """By the calendar: the months of some years one by one, anything else as a span of time."""
    if large == "years":
        return len([datetime.date(2000 + year, month, 1) for year in range(count) for month in range(1, 13)])
    return datetime.timedelta(**{large: count}) // datetime.timedelta(**{small: 1})


@family("time_units", topic="schedules", answer_type="numeric", tiers=("easy", "standard"), bank="train")
def time_units(rng: random.Random, tier: str) -> Draw:
    small, large, one, factor, mistaken, why, most = rng.choice(_UNITS)
    count = rng.randint(2, most)
    extra = rng.randint(2, factor - 2) if tier == "standard" else 0
    gold = factor * count + extra
    if tier == "easy":
        question = f"There are {factor} {small} in {one}. How many {small} are in {count} {large}?"
    else:
        question = f"How many {small} are in {count} {large} and {extra} {small}?"
    return Draw(
        question,
        str(gold),
        [
            foils.misconception(mistaken * count + extra, why),
            foils.off_by(factor * (count - 1) + extra, "left one out"),
            foils.off_by(factor * (count + 1) + extra, "counted one too many"),
            foils.tens_slip(gold, rng.random() < 0.5),
            foils.misread(gold - extra, "left out the rest"),
        ],
        lambda n: _in_small_units(small, large, n[-1] if tier == "easy" else n[0]) + extra,
        core=f"{large},{count},{extra}",
    )


@family("duration", topic="schedules", answer_type="numeric", tiers=("standard",), bank="eval")
def duration(rng: random.Random, tier: str) -> Draw:
    event = rng.choice(["workshop", "party", "meeting", "concert", "train ride", "shift"])
    start, length = rng.randint(7 * 60, 18 * 60), rng.randint(20, 200)
    end = start + length
    clock = [f"{t // 60}:{t % 60:02d}" for t in (start, end)]
    as_number = [int(t.replace(":", "")) for t in clock]
    return Draw(
        f"A {event} starts at {clock[0]} and ends at {clock[1]}. How many minutes does it last?",
        str(length),
        [
            foils.misconception(as_number[1] - as_number[0], "took a hundred minutes for an hour"),
            foils.slip(length + 60, "counted an hour too many"),
            foils.counted_start(length),
            foils.tens_slip(length, rng.random() < 0.5),
        ],
        lambda n: (datetime.timedelta(hours=n[2] - n[0], minutes=n[3] - n[1])).seconds // 60,
    )


@family("weekday", topic="schedules", answer_type="multiple_choice", tiers=("standard",), bank="train")
def weekday(rng: random.Random, tier: str) -> Draw:
    today = rng.randrange(7)
    later = rng.randint(1, 40)
    gold = _DAYS[(today + later) % 7]
    others = [_DAYS[(today + later + k) % 7] for k in (1, -1, 2)]
    unit = "day" if later == 1 else "days"
    event = rng.choice(["exam", "market", "trip", "party", "delivery", "race", "visit"])
    return Draw(
        f"Today is {_DAYS[today]}. The {event} is in {later} {unit}. Which day of the week is that?",
        gold,
        [
            foils.off_by(others[0], "counted one day too many"),
            foils.off_by(others[1], "counted today as the first day"),
            foils.near(others[2], "took a day nearby"),
        ],
        # 3 January 2000 was a Monday
        lambda n: (datetime.date(2000, 1, 3 + today) + datetime.timedelta(days=n[0])).strftime("%A"),
        [gold, *others],
        core=f"{today},{later}",
    )


_OPENED = (
    "The {one} opened in {a}. The {two} opened {gap} years {side} the {three}, which dates from {b}. Did the {one} "
    "open {word} the {two}?",
    "The {three} was finished in {b}, and the {two} {gap} years {side2}. The {one} was finished in {a}. Was the {one} "
    "finished {word} the {two}?",
)


@family("opened_first", topic="chronology", answer_type="boolean", tiers=("standard",), bank="train")
def opened_first(rng: random.Random, tier: str) -> Draw:
    one, two, three = rng.sample(PLACES, 3)
    b, gap = rng.randint(1850, 1990), rng.randint(3, 40)
    later, before, want = rng.random() < 0.5, rng.random() < 0.5, rng.random() < 0.5
    year = b + gap if later else b - gap
    a = year + rng.choice([1, 2, 5, 11, 20, 2 * gap]) * (-1 if want is before else 1)
    q = filled(
        rng.choice(_OPENED), one=one, two=two, three=three, a=a, b=b, gap=gap, side="after" if later else "before",
        side2="later" if later else "earlier", word="before" if before else "after",
    )  # fmt: skip

    def outcome(first: int, second: int) -> str:
        return yes_no((first < second) is before)

    def in_order(n: list[int]) -> str:
        v = q.read(n)
        years = sorted([(v.a, "one"), (len(range(v.b)) + (1 if later else -1) * v.gap, "two")])
        return yes_no((years[0][1] == "one") is before)

    return Draw(
        q.text,
        outcome(a, year),
        [
            foils.confused(outcome(a, b), f"compared with the {three}"),
            foils.misread(outcome(a, 2 * b - year), "read after as before"),
            foils.misread(yes_no(outcome(a, year) == "no"), f"did not read {'before' if before else 'after'}"),
        ],
        in_order,
    )
