"""Workplace policy: leave, expenses, approvals and overtime."""

import datetime
import random

from scope.pool import foils
from scope.pool.authored.registry import Draw, family
from scope.pool.authored.wording import DAYS, FIRMS, MONTHS, PEOPLE, coin, filled, listed

_LEAVE = (
    "{name} has {have} days of paid leave a year. In {one} {name} took {first} of them and in {two} another {second}. "
    "In {three} {name} was ill for {sick} days, and sick days do not use up leave. How many days of leave are left?",
    "Sick days do not use up paid leave at {firm}. {name} started the year with {have} days of leave, took {first} in "
    "{one} and {second} in {two}, and was off sick for {sick} days. How many days of leave does {name} still have?",
    "At {firm} everyone gets {have} days of leave a year, and sick days are counted separately. {name} has been ill "
    "for {sick} days so far and on leave twice, for {first} days and for {second} days. How many days of leave "
    "remain?",
)
_LEAVE_HARD = (
    "{name} has {have} days of paid leave left. Only working days, Monday to Friday, are taken from it, and the "
    "public holiday on {holiday} is free as well. {name} will be away from {start} to {end} {year}, both days "
    "included. {other} has {theirs} days left. How many days of leave will {name} have afterwards?",
    "At {firm}, Saturdays, Sundays and public holidays do not use up leave. {name}, with {have} days left, books a "
    "trip from {start} to {end} {year}; both are days off. {holiday} is a public holiday. {other} still has {theirs} "
    "days. How many days of leave will {name} have left after the trip?",
)


@family("leave_left", topic="workplace policy", answer_type="numeric", tiers=("standard", "hard"), bank="train")
def leave_left(rng: random.Random, tier: str) -> Draw:
    (name, other), firm = rng.sample(PEOPLE, 2), rng.choice(FIRMS)
    if tier == "standard":
        have, first, second, sick = rng.randint(23, 35), rng.randint(3, 9), rng.randint(2, 8), rng.randint(2, 6)
        one, two, three = sorted(rng.sample(range(12), 3))
        q = filled(
            rng.choice(_LEAVE), name=name, firm=firm, have=have, first=first, second=second, sick=sick,
            one=MONTHS[one], two=MONTHS[two], three=MONTHS[three],
        )  # fmt: skip
        gold = have - first - second
        return Draw(
            q.text,
            str(gold),
            [
                foils.overgeneralized(gold - sick, "counted sick days as leave"),
                foils.confused(first + second, "gave the days that were taken"),
                foils.misread(have - first, "left out the second absence"),
                foils.no_borrow(have, first + second),
            ],
            lambda n: len(range((v := q.read(n)).have)[v.first :][v.second :]),
        )
    start = datetime.date(rng.randint(2021, 2027), 1, 8) + datetime.timedelta(rng.randrange(330))
    days = [start + datetime.timedelta(k) for k in range(rng.randint(8, 19))]
    working = [day for day in days if day.weekday() < 5]
    if days[-1].weekday() > 4 or start.weekday() > 4 or days[-1].year > start.year:
        return leave_left(rng, tier)
    holiday, have = rng.choice(working[1:-1]), len(days) + rng.randint(2, 9)
    start_text, end_text, holiday_text = (
        f"{DAYS[day.weekday()]} {day.day} {MONTHS[day.month - 1]}" for day in (start, days[-1], holiday)
    )
    theirs = rng.choice([k for k in range(8, 30) if k != have])
    q = filled(
        rng.choice(_LEAVE_HARD), name=name, firm=firm, other=other, have=have, theirs=theirs,
        start=start_text, end=end_text, holiday=holiday_text, year=start.year,
    )  # fmt: skip
    used = len(working) - 1
    months = start.month, days[-1].month, holiday.month

    def left(numbers: list[int]) -> int:
        v = q.read(numbers)
        first, last, free = (
            datetime.date(v.year, month, day).toordinal()
            for month, day in zip(months, (v.start, v.end, v.holiday), strict=True)
        )
        off = [day for day in range(first, last + 1) if day != free and day % 7 not in (6, 0)]
        return v.have - len(off)

    return Draw(
        q.text,
        str(have - used),
        [
            foils.overgeneralized(have - len(days), "counted weekends and the public holiday as leave"),
            foils.misread(have - used - 1, "forgot the public holiday"),
            foils.off_by(have - used + 1, "left out the last day"),
            foils.confused(theirs - used, f"started from the days of {other}"),
            foils.confused(used, "gave the days that are used up"),
        ],
        left,
    )


_MEALS = (
    "{firm} pays back what its staff spend on meals during business trips, but never more than {cap} dollars a day. "
    "{name} spent {spent}. How many dollars does {name} get back?",
    "On a business trip {name} paid for meals as follows: {spent}. The company refunds the meals of each day up to a "
    "limit of {cap} dollars a day. How many dollars are refunded?",
)
_MEALS_HARD = (
    "{firm} refunds meals on business trips. Wine and beer are never refunded, so they are taken off first; what "
    "remains is refunded up to {cap} dollars a day. {name} spent {spent}. The bill for {day} included {wine} dollars "
    "for wine. The company had already paid {train} dollars for the train itself. How many dollars does {name} get "
    "back?",
    "A travel policy says: meals are refunded up to {cap} dollars a day, and alcohol is deducted from the bill of a "
    "day before this limit is applied. {name} claims meals of {spent}; on {day}, {wine} dollars of the bill were for "
    "beer. A taxi for {train} dollars went straight to the company account. How many dollars are refunded to {name}?",
)


@family("meal_refund", topic="workplace policy", answer_type="numeric", tiers=("standard", "hard"), bank="eval")
def meal_refund(rng: random.Random, tier: str) -> Draw:
    cap, days = rng.randint(18, 45), sorted(rng.sample(range(5), 3))
    costs = [cap - rng.randint(2, cap // 2), cap + rng.randint(3, 20), rng.randint(cap // 2, cap + 12)]
    rng.shuffle(costs)
    one, two, three = costs
    wet, wine, train = rng.randrange(3), rng.randint(4, 15) if tier == "hard" else 0, rng.randint(20, 90)
    if costs[wet] < wine + 5:
        return meal_refund(rng, tier)
    spent = listed([f"{cost} dollars on {DAYS[day]}" for cost, day in zip(costs, days, strict=True)])
    q = filled(
        rng.choice(_MEALS if tier == "standard" else _MEALS_HARD), firm=rng.choice(FIRMS), name=rng.choice(PEOPLE),
        cap=cap, spent=spent, wine=wine, day=DAYS[days[wet]], train=train,
    )  # fmt: skip
    food = [cost - wine if i == wet else cost for i, cost in enumerate(costs)]
    gold = sum(min(cost, cap) for cost in food)

    def refund(numbers: list[int]) -> int:
        v = q.read(numbers)
        eaten = [range(cost) for cost in v.spent]
        if tier == "hard":
            eaten[wet] = eaten[wet][v.wine :]
        return sum(len(dollars[: v.cap]) for dollars in eaten)

    mistakes = [
        foils.overgeneralized(3 * cap, "took the full limit for every day"),
        foils.misread(sum(food), "overlooked the daily limit"),
        foils.misconception(min(sum(food), 3 * cap), "applied one limit to the whole trip"),
        foils.misconception(sum(cost for cost in food if cost <= cap), "refused days above the limit altogether"),
        foils.confused(one + two + three - gold, "gave the part that is not paid back"),
    ]
    if tier == "hard":
        mistakes += [
            foils.misread(sum(min(cost, cap) for cost in costs), "forgot that alcohol is not refunded"),
            foils.misconception(sum(min(cost, cap) for cost in costs) - wine, "took off the alcohol after the limit"),
            foils.confused(gold + train, "added what the company had paid already"),
        ]
    return Draw(q.text, str(gold), mistakes, refund)


_APPROVERS = ("the team leader", "the department head", "the finance director", "the owner")
_ORDERED = (
    ("chair", 60, 190), ("desk", 150, 480), ("laptop", 500, 1400), ("tablet", 200, 600), ("bookcase", 80, 300),
    ("heater", 40, 160), ("printer", 90, 420), ("bicycle", 200, 800),
)  # fmt: skip
_APPROVAL = (
    "At {firm}, orders of at most {low} dollars are approved by the team leader, larger ones of at most {mid} dollars "
    "by the department head, larger ones of at most {high} dollars by the finance director, and any above that by "
    "the owner. {extra}{name} orders {count} {things} at {price} dollars each. {also}Who has to approve the order?",
    "{name} wants to order {count} {things} at {price} dollars each. {also}The team leader may approve orders of at "
    "most {low} dollars, the department head of at most {mid} dollars and the finance director of at most {high} "
    "dollars; anything above needs the owner. {extra}Who is the lowest in rank who may approve this order?",
)


@family("approver", topic="workplace policy", answer_type="multiple_choice", tiers=("standard", "hard"), bank="train")
def approver(rng: random.Random, tier: str) -> Draw:
    thing, cheap, dear = rng.choice(_ORDERED)
    count, price = rng.randint(2, 9), rng.randint(cheap, dear)
    low, mid, high = sorted(rng.sample(range(100, 6001, 50), 3))
    total, new, known = count * price, tier == "hard", coin(rng)
    ship = rng.randint(12, 60)
    if not low // 3 < total < 2 * high or min(mid / low, high / mid) < 1.3:
        return approver(rng, tier)

    def level(value: int) -> int:
        return sum(value > limit for limit in (low, mid, high))

    raised = 1 if new and not known else 0
    gold = level(total) + raised
    if gold > 3:
        return approver(rng, tier)
    firm = rng.choice(FIRMS)
    rule = "Orders from a supplier that is used for the first time need the next higher rank instead. " if new else ""
    also = f"{firm} has {'often' if known else 'never'} used this supplier. " if new else ""
    also += f"Delivery for another {ship} dollars does not count. " if new else ""
    q = filled(
        rng.choice(_APPROVAL), firm=firm, name=rng.choice(PEOPLE), extra=rule, also=also,
        low=low, mid=mid, high=high, count=count, things=thing + "s", price=price,
    )  # fmt: skip
    wrong = [
        foils.misread(level(price) + raised, "looked at the price of a single piece"),
        foils.overgeneralized(level(total) + 1, "went one level up though nothing asks for it"),
        foils.misread(level(total), "overlooked the rule for new suppliers"),
        foils.off_by(gold - 1, "stopped one level too low"),
        foils.off_by(gold + 1, "went one level too high"),
        *(foils.near(i, "took another person of the list") for i in range(4)),
    ]

    def approving(numbers: list[int]) -> str:
        v = q.read(numbers)
        limits = [v.low, v.mid, v.high, 10**9]
        place = next(i for i, limit in enumerate(limits) if sum([v.price] * v.count) in range(limit + 1))
        return _APPROVERS[place + raised]

    return Draw(
        q.text,
        _APPROVERS[gold],
        [foils.Mistake(_APPROVERS[int(m.value)], m.wrong_class, m.name) for m in wrong if 0 <= int(m.value) <= 3],
        approving,
        _APPROVERS,
    )
