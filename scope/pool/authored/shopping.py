"""Prices, change and what can be afforded."""

import random

from scope.pool import foils
from scope.pool.authored.registry import Draw, family
from scope.pool.authored.words import NAMES, WARES


@family("unit_price", topic="consumer finance", answer_type="numeric", tiers=("easy", "standard"))
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


@family("change", topic="consumer finance", answer_type="numeric", tiers=("easy", "standard"))
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


@family("cheapest", topic="consumer finance", answer_type="multiple_choice", tiers=("standard",))
def cheapest(rng: random.Random, tier: str) -> Draw:
    wares = [many for _, many, _, _ in rng.sample(WARES, 4)]
    prices = rng.sample(range(2, 30), 4)
    most = rng.random() < 0.5
    ranked = [ware for _, ware in sorted(zip(prices, wares, strict=True), reverse=most)]
    listed = ", ".join(f"{ware} {price} dollars" for ware, price in zip(wares, prices, strict=True))
    return Draw(
        f"Prices: {listed}. Which costs the {'most' if most else 'least'}?",
        ranked[0],
        [
            foils.near(ranked[1], "took the next in rank"),
            foils.misread(ranked[-1], f"did not read {'most' if most else 'least'}"),
            foils.confused(ranked[2], "mixed up two prices"),
        ],
        lambda n: wares[n.index(max(n) if most else min(n))],
        wares,
    )


@family("affordable", topic="consumer finance", answer_type="boolean", tiers=("standard",))
def affordable(rng: random.Random, tier: str) -> Draw:
    name, (one, many, _, _) = rng.choice(NAMES), rng.choice(WARES)
    price, count = rng.randint(4, 15), rng.randint(3, 6)
    money = price * count + rng.choice([-7, -4, -2, 1, 3, 6])
    enough = money >= price * count
    return Draw(
        f"{name} has {money} dollars. Each {one} costs {price} dollars. Can {name} buy {count} {many}?",
        "yes" if enough else "no",
        [foils.slip("no" if enough else "yes", "multiplied price and number wrongly")],
        lambda n: "yes" if n[0] // n[1] >= n[2] else "no",
    )
