"""Reading a receipt, a notice, a menu, a timetable, opening hours or an invoice."""

import random

from scope.pool import foils
from scope.pool.authored.registry import Draw, family
from scope.pool.authored.wording import DAYS, PEOPLE, coin, filled, listed, money

#: thing, its plural, lowest and highest price in cents
_FOOD = (
    ("loaf of bread", "loaves of bread", 180, 490), ("melon", "melons", 210, 450), ("jar of honey", "jars of honey",
    350, 890),
    ("pot of yoghurt", "pots of yoghurt", 60, 180), ("pound of grapes", "pounds of grapes", 220, 480),
)  # fmt: skip
_HOUSE = (
    ("sponge", "sponges", 70, 190), ("light bulb", "light bulbs", 240, 690), ("bucket", "buckets", 310, 780),
    ("roll of tape", "rolls of tape", 120, 410), ("brush", "brushes", 150, 590),
)  # fmt: skip
_RECEIPT = (
    "A receipt lists {lines}. {name} pays for the food, {other} for the rest. How many dollars does {who} pay?",
    "{name} and {other} shop together and buy {lines}. {name} pays for everything that can be eaten and {other} for "
    "the other things. How many dollars does {who} have to pay?",
)
_RECEIPT_HARD = (
    "A receipt lists {lines}. The shop takes {off} dollars off the food if everything together costs more than "
    "{least} dollars before that; other goods keep their price. {name} pays for the food, {other} for the rest. How "
    "many dollars does {who} pay?",
    "{name} and {other} buy {lines}. {name} pays for what can be eaten, {other} for the rest. A coupon takes {off} "
    "dollars off food, and it is valid only if everything together costs more than {least} dollars before the coupon. "
    "How many dollars does {who} pay?",
)


@family("receipt", topic="document reading", answer_type="numeric", tiers=("standard", "hard"), bank="train")
def receipt(rng: random.Random, tier: str) -> Draw:
    hard = tier == "hard"
    wares = [(*w, True) for w in rng.sample(_FOOD, 2)] + [(*w, False) for w in rng.sample(_HOUSE, 2 if hard else 1)]
    rng.shuffle(wares)
    counts = [rng.randint(1, 4) for _ in wares]
    prices = [rng.randint(low // 10, high // 10) * 10 for _, _, low, high, _ in wares]
    sums = [c * p for c, p in zip(counts, prices, strict=True)]
    eaten = rng.random() < (0.75 if hard else 0.5)
    mine = [is_food is eaten for *_, is_food in wares]
    total, plain = sum(sums), sum(s for s, own in zip(sums, mine, strict=True) if own)
    off = rng.randint(5, 30) * 10 if hard else 0
    least = total // 100 + rng.choice([-3, -2, -1, 1, 2, 3])
    valid = hard and total > 100 * least
    if least < 3 or sum(c for c, own in zip(counts, mine, strict=True) if own) < 2 or plain < 3 * off:
        return receipt(rng, tier)
    gold = plain - (off if valid and eaten else 0)
    lines = [
        f"{count} {one if count == 1 else many} at {money(price)} dollars{' each' if count > 1 else ''}"
        for count, price, (one, many, *_) in zip(counts, prices, wares, strict=True)
    ]
    name, other = rng.sample(PEOPLE, 2)
    q = filled(
        rng.choice(_RECEIPT_HARD if hard else _RECEIPT), name=name, other=other, who=name if eaten else other,
        lines=listed(lines), off=money(off), least=least,
    )  # fmt: skip
    single = sum(p for p, own in zip(prices, mine, strict=True) if own)
    wrong = [
        foils.misread(single, "overlooked how many there are of each"),
        foils.confused(total - plain - (off if valid and not eaten else 0), "gave what the other one pays"),
        foils.misread(plain - max(s for s, own in zip(sums, mine, strict=True) if own), "left out one of the things"),
        foils.slip(gold + 100, "carried a dollar too many"),
        foils.confused(total, "gave the total"),
    ]
    if hard:
        wrong[:0] = [
            foils.overgeneralized(plain - off, "used the coupon though it does not apply"),
            foils.misread(plain, "forgot the coupon"),
            foils.misconception(plain - off * sum(mine), "took the coupon off every line"),
        ]

    def in_cents(numbers: list[int]) -> str:
        v = q.read(numbers)
        bills = {True: 0, False: 0}
        for i, (*_, is_food) in enumerate(wares):
            count, dollars, cents = v.lines[3 * i : 3 * i + 3]
            for _ in range(count):
                bills[is_food] += 100 * dollars + cents
        if hard and bills[True] + bills[False] > 100 * v.least:
            bills[True] -= 100 * v.off[0] + v.off[1]
        return money(bills[eaten])

    return Draw(
        q.text,
        money(gold),
        [foils.Mistake(money(int(m.value)), m.wrong_class, m.name) for m in wrong if int(m.value) > 0],
        in_cents,
    )


_OFFICES = (
    ("passports", "a new passport"), ("parking permits", "a parking permit"), ("library cards", "a library card"),
    ("building permits", "a building permit"), ("dog licences", "a dog licence"), ("fishing licences",
    "a fishing licence"),
    ("birth certificates", "a birth certificate"), ("market stalls", "a market stall"),
)  # fmt: skip
_NOTICE = (
    "Notice at the town hall: {lines}. Because of a holiday, everything planned for {closed} takes place on {instead} "
    "this week. {name} needs {thing} this week. On which day should {name} come?",
    "The town hall deals with {lines}. This week the building is closed on {closed}, and what is due that day is "
    "moved to {instead}. On which day of this week can {name} apply for {thing}?",
)
_NOTICE_HARD = (
    "Notice at the town hall: {lines}. In the last week of a month, everything planned for {closed} takes place on "
    "{instead} instead, except for {spared}, which keep their day. It is the {week} week of the month. {name}, who "
    "was there last year because of {before}, now needs {thing}. On which day of this week should {name} come?",
    "The town hall deals with {lines}. In the last week of a month it is closed on {closed}; whatever is due that day "
    "moves to {instead}, but {spared} are dealt with by phone on the usual day. This is the {week} week of the "
    "month. {name} had to see about {before} in spring and now wants {thing}. Which day of this week is right?",
)


@family("notice", topic="document reading", answer_type="multiple_choice", tiers=("standard", "hard"), bank="train")
def notice(rng: random.Random, tier: str) -> Draw:
    hard = tier == "hard"
    matters = rng.sample(_OFFICES, 4)
    closed, *rest = rng.sample(range(5), 5)
    days = [closed, *rest[:2], closed if hard else rest[2]]
    instead = rest[3]
    spared, last = rng.choice([3, 3, 1]) if hard else 1, coin(rng)
    asked = rng.choice([0, 0, 3, 1]) if hard else rng.choice([0, 0, 1])
    before = rng.choice([i for i in range(1, 3) if i != asked])
    moved = days[asked] == closed and (not hard or (last and asked != spared))
    gold = instead if moved else days[asked]
    rows = list(zip(matters, days, strict=True))
    rng.shuffle(rows)
    q = filled(
        rng.choice(_NOTICE_HARD if hard else _NOTICE), name=rng.choice(PEOPLE), thing=matters[asked][1],
        lines=listed([f"{matter[0]} on {DAYS[day]}" for matter, day in rows]), closed=DAYS[closed],
        instead=DAYS[instead],
        spared=matters[spared][0], before=matters[before][0], week="last" if last else rng.choice(["first", "second"]),
    )  # fmt: skip
    wrong = [
        foils.overgeneralized(DAYS[instead], "moved what is not moved"),
        foils.misread(DAYS[days[asked]], "overlooked the change"),
        foils.confused(DAYS[days[before]], "took the day of another matter"),
        *(foils.confused(DAYS[day], "took the day of another matter") for day in days),
        *(foils.near(DAYS[(gold + k) % 5], "took a day nearby") for k in (1, 4, 2, 3)),
    ]
    options = list(dict.fromkeys([DAYS[gold], *(m.value for m in wrong)]))[:4]

    def looked_up(numbers: list[int]) -> str:
        week = {matter[0]: DAYS[day] for matter, day in rows}
        if last or not hard:
            stays = {matters[spared][0]} if hard else set()
            week |= {m: DAYS[instead] for m, day in week.items() if day == DAYS[closed] and m not in stays}
        return week[matters[asked][0]]

    return Draw(
        q.text, DAYS[gold], [m for m in wrong if m.value in options], looked_up, options,
        core=",".join(map(str, [*sorted(rows), closed, instead, matters[asked][0], last, matters[spared][0]])),
    )  # fmt: skip
