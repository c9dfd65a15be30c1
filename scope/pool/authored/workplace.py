"""Workplace rules with deadlines and rates: requests for leave, expense claims, overtime."""

import datetime
import random

from scope.pool import foils
from scope.pool.authored.registry import Draw, family
from scope.pool.authored.wording import FIRMS, MONTHS, PEOPLE, coin, filled, yes_no

_OVERTIME = (
    "{name} earns {pay} dollars an hour for the first {base} hours of a week and {extra} dollars for every hour "
    "beyond that. How many dollars does {name} earn in a week with {worked} hours?",
    "At {firm}, hours beyond {base} a week are overtime and paid at {extra} dollars; all other hours are paid at "
    "{pay} dollars. {name} worked {worked} hours last week. How many dollars is that in all?",
)
_OVERTIME_HARD = (
    "{name} earns {pay} dollars an hour from Monday to Saturday. Beyond {base} hours in these six days, every further "
    "hour is overtime and paid at {extra} dollars. Sunday hours are paid at {sunday} dollars each and are not "
    "counted among the {base}. Last week {name} worked {worked} hours from Monday to Saturday and {more} on Sunday. "
    "{other} worked {theirs} hours. How many dollars did {name} earn that week?",
    "The pay rules of {firm}: {pay} dollars an hour; {extra} dollars for each hour beyond {base} in a week, Sunday "
    "hours not counted; {sunday} dollars for each hour on a Sunday. {name} worked {worked} hours from Monday to "
    "Saturday and then {more} hours on Sunday, while {other} worked {theirs} hours in all. How many dollars does "
    "{name} get?",
)


@family("overtime_pay", topic="workplace policy", answer_type="numeric", tiers=("standard", "hard"), bank="train")
def overtime_pay(rng: random.Random, tier: str) -> Draw:
    hard = tier == "hard"
    pay, base = rng.randint(12, 30), rng.randint(30, 42)
    extra = pay + rng.randint(3, 14)
    worked = base + rng.randint(-6 if hard else 2, 9)
    sunday, more = extra + rng.randint(3, 10), rng.randint(2, 8) if hard else 0
    name, other = rng.sample(PEOPLE, 2)
    theirs = rng.choice([h for h in range(30, 50) if h != worked])
    q = filled(
        rng.choice(_OVERTIME_HARD if hard else _OVERTIME), name=name, other=other, firm=rng.choice(FIRMS),
        pay=pay, base=base, extra=extra, worked=worked, sunday=sunday, more=more, theirs=theirs,
    )  # fmt: skip

    def week(hours: int, sundays: int, limit: int = base) -> int:
        return min(hours, limit) * pay + max(0, hours - limit) * extra + sundays * sunday

    gold = week(worked, more)
    mistakes = [
        foils.overgeneralized(worked * extra + more * sunday, "paid every hour at the overtime rate"),
        foils.misread(worked * pay + more * sunday, "paid every hour at the plain rate"),
        foils.off_by(week(worked, more, base - 1), "began overtime one hour too early"),
        foils.confused(max(0, worked - base) * extra + more * sunday, "left out the plain hours"),
        foils.confused(base * pay, "gave the pay of the plain hours only"),
    ]
    if hard:
        mistakes = [
            foils.overgeneralized(week(worked + more, 0), "counted Sunday hours like any other"),
            foils.misconception(week(worked, more, base - more), "counted Sunday hours towards the limit"),
            foils.overgeneralized(week(base, worked + more - base), "paid overtime at the Sunday rate"),
            foils.confused(week(theirs, more), f"took the hours of {other}"),
            *mistakes[:3],
        ]

    def by_the_hour(numbers: list[int]) -> int:
        v = q.read(numbers)
        rates = [v.pay if hour < v.base else v.extra for hour in range(v.worked)]
        return sum(rates + [v.sunday] * v.more if hard else rates)

    return Draw(q.text, str(gold), mistakes, by_the_hour)


_NOTICE = (
    "Leave must be requested at least {ahead} days before it starts. {name} sends a request on {sent} for leave that "
    "starts on {start}. {asked}",
    "{firm} asks its staff to request leave at least {ahead} days before the first day off. {name} wants to be off "
    "from {start} and asks on {sent}. {asked}",
)
_NOTICE_HARD = (
    "At {firm}, leave of up to {short} days must be requested at least {ahead} days before it starts, and longer "
    "leave at least {longer} days before it starts. {name} sends a request on {sent} for {length} days of leave that "
    "start on {start}. The request of {other} came {theirs} days before the start and was accepted. {asked}",
    "Rules for leave: a request for more than {short} days off must come at least {longer} days before the first day "
    "off; for any other request, {ahead} days before are enough. {other} asked {theirs} days ahead. {name} asks on "
    "{sent} for {length} days, the first of which is {start}. {asked}",
)


def _day(day: datetime.date) -> str:
    return f"{day.day} {MONTHS[day.month - 1]}"


@family("leave_request", topic="workplace policy", answer_type="boolean", tiers=("standard", "hard"), bank="train")
def leave_request(rng: random.Random, tier: str) -> Draw:
    hard, late = tier == "hard", coin(rng)
    sent = datetime.date(2025, 3, 1) + datetime.timedelta(rng.randrange(290))
    ahead = rng.randint(10, 30)
    longer, short = ahead + rng.randint(4, 20), rng.randint(4, 10)
    length = short + rng.choice([-2, -1, 0, 1, 2, 3])
    needed = longer if hard and length > short else ahead
    gap = needed + rng.choice([-4, -2, -1, -1, -1, 0, 0, 0, 1, 3])
    if hard and coin(rng):
        gap = rng.randint(ahead, longer - 1)
    start = sent + datetime.timedelta(gap)
    if start.year > 2025:  # from March to December no month's length depends on the year
        return leave_request(rng, tier)
    name, other = rng.sample(PEOPLE, 2)
    asked = rng.choice(
        [f"Is the request of {name} too late?", f"Has {name} missed the deadline?"]
        if late
        else [f"Is the request of {name} early enough?", f"Has {name} asked in time?"]
    )
    q = filled(
        rng.choice(_NOTICE_HARD if hard else _NOTICE), name=name, other=other, firm=rng.choice(FIRMS), asked=asked,
        ahead=ahead, longer=longer, short=short, length=length, sent=_day(sent),
        start=_day(start), theirs=rng.randint(ahead, longer + 5),
    )  # fmt: skip

    def outcome(days: int, required: int) -> str:
        return yes_no((days >= required) is not late)

    gold = outcome(gap, needed)
    thirty = 30 * ((start.month - sent.month) % 12) + start.day - sent.day
    wrong = yes_no(gold == "no")
    mistakes = [
        foils.overgeneralized(outcome(gap, longer), "applied the rule for long leave to every leave"),
        foils.overgeneralized(outcome(gap, ahead), "applied the rule for short leave to every leave"),
    ] * hard + [
        foils.misconception(outcome(thirty, needed), "took thirty days for every month"),
        foils.off_by(outcome(gap + 1, needed), "counted the day of the request as well"),
        foils.off_by(outcome(gap - 1, needed), "counted only the days in between"),
        foils.misread(yes_no((gap <= needed) is not late), "read at least as at most"),
        foils.slip(wrong, "counted the days between two dates wrongly"),
    ]

    def by_calendar(numbers: list[int]) -> str:
        v = q.read(numbers)
        first = datetime.date(2025, start.month, v.start)
        limit = v.longer if hard and v.length not in range(v.short + 1) else v.ahead
        last_call = first - datetime.timedelta(days=limit)
        return yes_no((datetime.date(2025, sent.month, v.sent) > last_call) is late)

    return Draw(q.text, gold, mistakes, by_calendar)


_CLAIM = (
    "A claim is paid when the amount is at most {most} dollars and it is handed in at most {days} days after the "
    "purchase; any other claim is refused. {name} bought {thing} for {price} dollars and hands in the claim {after} "
    "days later. {asked}",
    "{firm} pays claims for work purchases if both of these conditions are met: the price is at most {most} dollars, "
    "and the claim comes at most {days} days after the purchase. {name} claims {price} dollars for {thing} bought "
    "{after} days ago. {asked}",
)
_CLAIM_HARD = (
    "{firm} pays a claim if the amount is at most {most} dollars and it is handed in at most {days} days after the "
    "purchase. A higher amount is fine as well if a manager signed before the purchase; for a late claim a signature "
    "does not help. {name} bought {thing} for {price} dollars, {signed}, and hands in the claim {after} days later. "
    "Last year {other} was paid {theirs} dollars. {asked}",
    "Claims must reach the office at most {days} days after the purchase, whatever the price. Claims above {most} "
    "dollars also need the signature of a manager, given before the purchase. {name} bought {thing} for {price} "
    "dollars, {signed}, and claims the money {after} days later. {other} once got back {theirs} dollars. {asked}",
)
_THINGS = (
    "a headset",
    "a keyboard",
    "safety boots",
    "a toolbox",
    "a suitcase",
    "a camera",
    "an office chair",
    "a lens",
)


@family("claim_paid", topic="workplace policy", answer_type="boolean", tiers=("standard", "hard"), bank="eval")
def claim_paid(rng: random.Random, tier: str) -> Draw:
    hard, refused, want = tier == "hard", coin(rng), coin(rng)
    signed_at = "before" if coin(rng) else "after"
    while True:
        most, days = rng.randint(4, 60) * 5, rng.randint(7, 40)
        price = most + rng.choice([-12, -5, -1, 0, 1, 4, 10])
        after = days + rng.choice([-4, -2, -1, 0, 1, 2, 5])
        pay = after <= days and (price <= most or (hard and signed_at == "before"))
        if pay is want:
            break
    name, other = rng.sample(PEOPLE, 2)
    asked = rng.choice(
        ["Will the claim be refused?"] if refused else ["Is the claim paid?", "Will this claim be paid?"]
    )
    thing = rng.choice(_THINGS)
    q = filled(
        rng.choice(_CLAIM_HARD if hard else _CLAIM), firm=rng.choice(FIRMS), name=name, other=other, asked=asked,
        thing=thing, signed=f"with a signature that a manager gave {signed_at} the purchase", theirs=rng.randint(20,
        400),
        most=most, days=days, price=price, after=after,
    )  # fmt: skip

    def outcome(paid: bool) -> str:
        return yes_no(paid is not refused)

    wrong = outcome(not pay)
    mistakes = [
        foils.off_by(outcome(after < days and pay), "took the last day for too late") if after == days else None,
        foils.off_by(outcome(price < most and pay), "took the limit itself for too much") if price == most else None,
        foils.misconception(outcome(True), "let a signature excuse a late claim") if hard and after > days else None,
        foils.misconception(outcome(after <= days), "let a later signature count") if hard else None,
        foils.overgeneralized(outcome(price <= most and after <= days), "refused every claim above the limit"),
        foils.overgeneralized(outcome(price <= most or after <= days), "found one met condition enough"),
        foils.misread(wrong, "read one of the limits the wrong way round"),
    ]

    def checked(numbers: list[int]) -> str:
        v = q.read(numbers)
        hurdles = {"late": v.after not in range(v.days + 1), "dear": v.price not in range(v.most + 1)}
        if hard and signed_at == "before":
            hurdles["dear"] = False
        return yes_no(any(hurdles.values()) is refused)

    return Draw(q.text, outcome(pay), [m for m in mistakes if m], checked)
