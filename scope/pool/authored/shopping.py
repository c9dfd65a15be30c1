"""Prices, change and what can be afforded."""

import random

from scope.pool import foils
from scope.pool.authored.registry import Draw, family
from scope.pool.authored.wording import filled, listed, yes_no
from scope.pool.authored.words import NAMES, WARES


@family("unit_price", topic="consumer finance", answer_type="numeric", tiers=("easy", "standard"), bank="eval")
def unit_price(rng: random.Random, tier: str) -> Draw:
    one, many, low, high = rng.choice(WARES)
    price, count = rng.randint(low, high), rng.randint(2, 9)
    gold = price * count
    if tier == "easy":
        return Draw(
            f"Each {one} costs {price} dollars. How many dollars do {count} {many} cost?",
            str(gold),
            [
                foils.off_by(price * (count - 1), f"paid for one {one} too few"),
                foils.off_by(price * (count + 1), f"paid for one {one} too many"),
                foils.misread(price + count, "added instead of multiplying"),
                foils.tens_slip(gold, rng.random() < 0.5),
            ],
            lambda n: sum(n[0] for _ in range(n[1])),
        )
    off = rng.randint(2, min(9, gold - 2))
    return Draw(
        f"Each {one} costs {price} dollars. A coupon takes {off} dollars off the whole bill. "
        f"How many dollars do {count} {many} cost with the coupon?",
        str(gold - off),
        [
            foils.misread(gold, "forgot the coupon"),
            foils.misconception(count * (price - off), "took the coupon off every piece"),
            foils.misread(gold + off, "added the coupon"),
            foils.off_by(gold - price - off, f"paid for one {one} too few"),
        ],
        lambda n: sum([n[0]] * n[2]) - n[1],
    )


@family("change", topic="consumer finance", answer_type="numeric", tiers=("easy", "standard"), bank="train")
def change(rng: random.Random, tier: str) -> Draw:
    name, (one, many, _, _) = rng.choice(NAMES), rng.choice(WARES)
    note = rng.choice([10, 20, 50, 100])
    if tier == "easy":
        price = rng.randint(max(2, note // 5), note - 2)
        gold = note - price
        return Draw(
            f"{name} has {note} dollars and spends {price} dollars on {many}. How many dollars are left?",
            str(gold),
            [
                foils.misread(note + price, "added what was spent"),
                foils.no_borrow(note, price),
                foils.confused(price, "gave what was spent"),
                foils.counted_start(gold, rng.random() < 0.5),
                foils.tens_slip(gold, up=True),
            ],
            lambda n: len(range(n[1], n[0])),
        )
    count = rng.randint(2, 4)
    price = rng.randint(2, max(2, (note - 1) // count))
    gold = note - count * price
    if gold < 1:
        return change(rng, tier)
    return Draw(
        f"{name} buys {count} {many} at {price} dollars each and pays with {note} dollars. "
        f"How many dollars does {name} get back?",
        str(gold),
        [
            foils.misread(note - price, f"paid for one {one} only"),
            foils.confused(count * price, "gave what was spent"),
            foils.counted_start(gold, rng.random() < 0.5),
            foils.off_by(gold + price, f"paid for one {one} too few"),
        ],
        lambda n: n[2] - sum(n[1] for _ in range(n[0])),
    )


_SPENT = (
    "{name} buys {lines}. For which of these does {name} spend the {word} money?",
    "On a shopping list are {lines}. Which of them costs the {word} altogether?",
    "{name} pays for {lines}. Which of the four makes the {word2} part of the bill?",
)


@family("cheapest", topic="consumer finance", answer_type="multiple_choice", tiers=("standard",), bank="train")
def cheapest(rng: random.Random, tier: str) -> Draw:
    wares = [many for _, many, _, _ in rng.sample(WARES, 4)]
    counts, prices = [rng.randint(2, 9) for _ in wares], [rng.randint(2, 19) for _ in wares]
    most = rng.random() < 0.5
    sums = [count * price for count, price in zip(counts, prices, strict=True)]
    ranked = [ware for _, ware in sorted(zip(sums, wares, strict=True), reverse=most)]
    pick = max if most else min
    if len(set(sums)) < 4:
        return cheapest(rng, tier)
    q = filled(
        rng.choice(_SPENT), name=rng.choice(NAMES), word="most" if most else "least",
        word2="largest" if most else "smallest",
        lines=listed([f"{c} {ware} at {p} dollars each" for c, ware, p in zip(counts, wares, prices, strict=True)]),
    )  # fmt: skip
    return Draw(
        q.text,
        ranked[0],
        [
            foils.misconception(wares[prices.index(pick(prices))], "compared the prices of single pieces"),
            foils.misconception(wares[counts.index(pick(counts))], "compared how many there are"),
            foils.near(ranked[1], "took the next in rank"),
            foils.misread(ranked[-1], f"did not read {'most' if most else 'least'}"),
            foils.confused(ranked[2], "mixed up two lines"),
        ],
        lambda n: pick(wares, key=lambda ware: sum([n[2 * wares.index(ware) + 1]] * n[2 * wares.index(ware)])),
        wares,
    )


_AFFORD = (
    "{name} has {money} dollars and wants {count} {many} at {price} dollars each and a bag for {bag} dollars. {asked}",
    "A bag costs {bag} dollars and each {one} costs {price} dollars. {name}, who has {money} dollars, would like the "
    "bag and {count} {many}. {asked}",
)


@family("affordable", topic="consumer finance", answer_type="boolean", tiers=("standard",), bank="train")
def affordable(rng: random.Random, tier: str) -> Draw:
    name, (one, many, _, _) = rng.choice(NAMES), rng.choice(WARES)
    price, count, bag = rng.randint(4, 19), rng.randint(3, 9), rng.randint(2, 12)
    short, enough = rng.random() < 0.5, rng.random() < 0.5
    cost = price * count + bag
    money = cost + (rng.choice([0, 1, 3, 6]) if enough else -rng.choice([1, 2, 4, 7]))
    asked = rng.choice(
        ["Is the money too little for that?", f"Does {name} need more money?"]
        if short
        else [f"Can {name} pay for all of it?", "Is the money enough?"]
    )
    q = filled(
        rng.choice(_AFFORD), name=name, one=one, many=many, money=money, count=count, price=price, bag=bag, asked=asked
    )

    def outcome(bill: int) -> str:
        return yes_no((money >= bill) is not short)

    def counted_down(n: list[int]) -> str:
        v = q.read(n)
        return yes_no(((v.money - v.bag) // v.price >= v.count) is not short)

    return Draw(
        q.text,
        outcome(cost),
        [
            foils.misread(outcome(cost - bag), "forgot the bag"),
            foils.off_by(outcome(cost + 1), "wanted money to be left")
            if money == cost
            else foils.overgeneralized(outcome(cost + bag * (count - 1)), f"paid for a bag with each of the {many}"),
            foils.off_by(outcome(cost - price), f"paid for one {one} too few"),
            foils.slip(yes_no(outcome(cost) == "no"), "multiplied price and number wrongly"),
        ],
        counted_down,
    )
