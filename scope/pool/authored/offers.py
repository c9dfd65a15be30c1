"""Offers compared: instalments or cash, a budget, packs by their unit price."""

import random
from fractions import Fraction

from scope.pool import foils
from scope.pool.authored.registry import Draw, family
from scope.pool.authored.wording import PEOPLE, coin, filled, listed, money, yes_no

_BIG = (
    "sofa",
    "bicycle",
    "piano",
    "washing machine",
    "television",
    "scooter",
    "laptop",
    "bed",
    "freezer",
    "sewing machine",
)
_INSTALMENTS = (
    "A {thing} costs {cash} dollars if paid at once. Alternatively {name} can pay {down} dollars now and {rate} "
    "dollars a month for {months} months. {asked}",
    "{name} may pay for a {thing} in {months} monthly instalments of {rate} dollars after a first payment of {down} "
    "dollars. Paid all at once, it costs {cash} dollars. {asked}",
)
_INSTALMENTS_HARD = (
    "A {thing} costs {cash} dollars; paid at once, it is {cut} per cent cheaper. Alternatively {name} can pay {down} "
    "dollars now and {rate} dollars a month for {months} months, plus a single fee of {fee} dollars; the {cut} per "
    "cent are then lost. {other} paid {theirs} dollars for a similar one. {asked}",
    "{name} looks at a {thing} priced at {cash} dollars. Whoever pays in instalments pays {down} dollars first, then "
    "{months} times {rate} dollars and {fee} dollars for the contract. Whoever pays everything at once gets {cut} per "
    "cent off the price. A friend, {other}, spent {theirs} dollars elsewhere. {asked}",
)


@family("instalments", topic="consumer finance", answer_type="boolean", tiers=("standard", "hard"), bank="train")
def instalments(rng: random.Random, tier: str) -> Draw:
    hard, dearer, want = tier == "hard", coin(rng), coin(rng)
    months, rate, down = rng.randint(5, 24), rng.randint(12, 75), rng.randint(4, 30) * 5
    cut, fee = (rng.choice([2, 3, 4, 5, 10]), rng.randint(5, 40)) if hard else (0, 0)
    spread = down + months * rate + fee
    more = rng.choice([4, 9, 15, 22, 38]) * (1 if want is dearer else -1)  # what instalments cost beyond cash
    cash = round((spread - more) * 10 / (100 - cut)) * 10 if hard else spread - more
    now = Fraction(cash * (100 - cut), 100)
    if now < 100 or spread == now or (spread > now) is not (want is dearer) or abs(spread - now) > 60:
        return instalments(rng, tier)
    name, other = rng.sample(PEOPLE, 2)
    asked = rng.choice(
        ["Do the instalments cost more in the end?", "Is paying at once the cheaper way?"]
        if dearer
        else ["Are the instalments cheaper in total?", f"Does {name} save money by paying in instalments?"]
    )
    q = filled(
        rng.choice(_INSTALMENTS_HARD if hard else _INSTALMENTS), thing=rng.choice(_BIG), name=name, other=other,
        asked=asked,
        cash=cash, down=down, rate=rate, months=months, cut=cut, fee=fee, theirs=rng.randint(int(now) - 90,
        int(now) + 90),
    )  # fmt: skip

    def outcome(total: int, at_once: int | Fraction) -> str:
        return yes_no((total > at_once) is dearer)

    mistakes = [
        foils.misread(outcome(spread, cash), "overlooked what is taken off for paying at once"),
        foils.misconception(outcome(spread, cash - cut), "took the per cent for dollars"),
        foils.overgeneralized(
            outcome(round(spread * (100 - cut) / 100), now), "took the per cent off the instalments too"
        ),
        foils.misread(outcome(spread - fee, now), "forgot the fee"),
        foils.off_by(outcome(spread - rate, now), "counted the first payment among the months"),
        foils.misread(outcome(spread - down, now), "forgot the first payment"),
        foils.overgeneralized(yes_no(dearer), "thought that instalments always cost more"),
        foils.slip(yes_no(outcome(spread, now) == "no"), "multiplied wrongly"),
    ]

    def month_by_month(numbers: list[int]) -> str:
        v = q.read(numbers)
        left = Fraction(v.cash) - (Fraction(v.cash, 100) * v.cut + v.fee if hard else 0) - v.down
        for _ in range(v.months):
            left -= v.rate
        return yes_no((left < 0) is dearer)

    return Draw(q.text, outcome(spread, now), mistakes, month_by_month)


_BUDGET = (
    "{name} plans a trip for {people} people with a budget of {budget} dollars. The train costs {fare} dollars per "
    "person there and back, and the holiday flat costs {night} dollars a night for all of them together. They stay "
    "{nights} nights. {asked}",
    "A flat for {people} friends costs {night} dollars a night in all, and they book {nights} nights. Each of them "
    "also needs a bus ticket for {fare} dollars. Together they have {budget} dollars. {asked}",
)
_BUDGET_HARD = (
    "{name} plans a trip for {people} people with a budget of {budget} dollars. A train ticket costs {fare} dollars "
    "per person each way, and all of them come back by train. The flat costs {night} dollars a night for everyone "
    "together; after the first {few} nights each further night is {cut} dollars cheaper. They stay {nights} nights. "
    "Insurance for {extra} dollars was paid last year and is not part of the budget. {asked}",
    "Together, {people} friends have {budget} dollars for a holiday. They pay {night} dollars a night for a flat, and "
    "{cut} dollars less for every night after the first {few}; they book {nights} nights. Each of them needs two bus "
    "tickets, one there and one back, at {fare} dollars each. {name} paid {extra} dollars for a suitcase from other "
    "money. {asked}",
)


@family("budget", topic="consumer finance", answer_type="boolean", tiers=("standard", "hard"), bank="eval")
def budget(rng: random.Random, tier: str) -> Draw:
    hard, over, want = tier == "hard", coin(rng), coin(rng)
    people, fare, night = rng.randint(3, 7), rng.randint(12, 65), rng.randint(60, 190)
    nights, few = rng.randint(3, 9), rng.randint(2, 4) if hard else 0
    cut, extra = (rng.randint(8, 35), rng.randint(20, 90)) if hard else (0, 0)
    if hard and nights <= few + 1:
        return budget(rng, tier)
    ways = 2 if hard else 1

    def total(stay: int, travellers: int = people, legs: int = ways, cheap: int = cut, full: int = few) -> int:
        return stay * night - max(0, stay - full) * cheap + travellers * legs * fare

    cost = total(nights)
    limit = cost + (rng.choice([0, 3, 8, 17, 30]) if want is not over else -rng.choice([1, 4, 9, 18, 30]))
    asked = rng.choice(
        ["Does the trip cost more than they have?", "Is the money too little for the trip?"]
        if over
        else ["Is the money enough for the trip?", "Can they pay for all of it?"]
    )
    q = filled(
        rng.choice(_BUDGET_HARD if hard else _BUDGET), name=rng.choice(PEOPLE), people=people, budget=limit,
        fare=fare, night=night,
        nights=nights, few=few, cut=cut, extra=extra, asked=asked,
    )  # fmt: skip

    def outcome(price: int) -> str:
        return yes_no((price > limit) is over)

    mistakes = [
        foils.confused(outcome(cost + extra), "added a cost that is not part of it"),
        foils.overgeneralized(outcome(total(nights, full=0)), "took the cheaper price for every night"),
        foils.misread(outcome(total(nights, legs=1)), "paid for one way only"),
        foils.misread(outcome(total(nights, travellers=1)), "paid one fare for all"),
        foils.off_by(outcome(total(nights - 1)), "counted one night too few"),
        foils.off_by(outcome(total(nights + 1)), "counted one night too many"),
        foils.misread(outcome(total(nights, cheap=0)), "overlooked that some nights are cheaper"),
        foils.slip(yes_no(outcome(cost) == "no"), "added wrongly"),
    ]

    def spent_down(numbers: list[int]) -> str:
        v = q.read(numbers)
        purse = v.budget
        for _ in range(v.people * ways):
            purse -= v.fare
        for k in range(v.nights):
            purse -= v.night - (v.cut if hard and k >= v.few else 0)
        return yes_no((purse < 0) is over)

    return Draw(q.text, outcome(cost), mistakes, spent_down)


#: what comes in packs, singular and plural, and the price of one in cents
_PACKED = (
    ("battery", "batteries", 90), ("napkin", "napkins", 8), ("egg", "eggs", 30), ("tea bag", "tea bags", 9),
    ("light bulb", "light bulbs", 260), ("envelope", "envelopes", 12), ("yoghurt", "yoghurts", 60), ("razor",
    "razors", 85),
    ("candle", "candles", 45), ("tennis ball", "tennis balls", 180), ("bread roll", "bread rolls", 40), ("diaper",
    "diapers", 28),
)  # fmt: skip
_UNIT = (
    "A shop sells {things} in four packs: {lines}. Which pack is the cheapest per {thing}?",
    "{name} compares packs of {things}: {lines}. In which pack does a single {thing} cost least?",
    "{name} wants to pay as little as possible for each {thing}. The packs hold {lines}. Which pack is best?",
)
_UNIT_HARD = (
    "A shop sells {things} in four packs: {lines}. Today the price of the pack of {size} is reduced by {rate} per "
    "cent. {name}, who has a coupon for another shop, wants the lowest price per {thing}. Which pack is it?",
    "{name} compares packs of {things}: {lines}. From the pack of {size}, {rate} per cent are taken off at the till; "
    "the others stay as they are. In which pack does a single {thing} cost least?",
)


@family("cheaper_pack", topic="unit prices", answer_type="multiple_choice", tiers=("standard", "hard"), bank="train")
def cheaper_pack(rng: random.Random, tier: str) -> Draw:
    hard = tier == "hard"
    one, many, each = rng.choice(_PACKED)
    sizes = sorted(rng.sample([3, 4, 5, 6, 8, 9, 10, 12, 15, 16, 18, 20, 24], 4))
    prices = [max(1, round(size * each * rng.uniform(0.75, 1.25) / 10)) * 10 for size in sizes]
    marked, rate = rng.randrange(4), rng.choice([10, 20, 25, 30]) if hard else 0
    now = [Fraction(p * (100 - rate), 100) if i == marked else Fraction(p) for i, p in enumerate(prices)]
    unit = [price / size for price, size in zip(now, sizes, strict=True)]
    plain = [Fraction(price, size) for price, size in zip(prices, sizes, strict=True)]
    ranked = sorted(range(4), key=lambda i: unit[i])
    gold = ranked[0]
    wide = unit[ranked[1]] / unit[gold]
    if not Fraction(102, 100) < wide < Fraction(125, 100) or len(set(prices)) < 4 or prices[0] > prices[3]:
        return cheaper_pack(rng, tier)
    # the biggest pack is not to be the answer more often than the others
    if (gold == 3 and rng.random() < 0.4) or (hard and plain.index(min(plain)) == gold and rng.random() < 0.6):
        return cheaper_pack(rng, tier)
    texts = [f"the pack of {size}" for size in sizes]
    order = rng.sample(range(4), 4)
    q = filled(
        rng.choice(_UNIT_HARD if hard else _UNIT), things=many, thing=one, name=rng.choice(PEOPLE),
        size=sizes[marked], rate=rate,
        lines=listed([f"{sizes[i]} for {money(prices[i])} dollars" for i in order]),
    )  # fmt: skip
    wrong = [
        foils.misread(plain.index(min(plain)), "overlooked that a price is reduced"),
        foils.overgeneralized(
            marked if hard else 3, "took the reduced pack without counting" if hard else "took the biggest pack"
        ),
        foils.misconception(now.index(min(now)), "compared whole packs, not pieces"),
        foils.overgeneralized(3, "took the biggest pack without counting"),
        foils.near(ranked[1], "took the next in rank"),
        foils.misread(ranked[3], "took the dearest"),
        foils.confused(ranked[2], "mixed up two prices"),
    ]

    def cross_multiplied(numbers: list[int]) -> str:
        v = q.read(numbers)
        packs = [(v.lines[k], 100 * v.lines[k + 1] + v.lines[k + 2]) for k in range(0, 12, 3)]
        costs = [(n, c * (100 - v.rate if hard and n == v.size else 100)) for n, c in packs]
        best = next(n for n, c in costs if all(c * k <= d * n for k, d in costs))
        return f"the pack of {best}"

    return Draw(
        q.text,
        texts[gold],
        [foils.Mistake(texts[int(m.value)], m.wrong_class, m.name) for m in wrong],
        cross_multiplied,
        texts,
    )
