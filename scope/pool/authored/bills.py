"""Changing money, ordering from a menu, paying an invoice."""

import datetime
import random
from fractions import Fraction
from math import gcd

from scope.pool import foils
from scope.pool.authored.registry import Draw, family
from scope.pool.authored.wording import FIRMS, MONTHS, PEOPLE, clock, coin, filled, minutes, money

_EXCHANGE = (
    "An exchange office gives {rate} {far} for 1 {near} and keeps a fee of {fee} {near2} before it changes the rest. "
    "{name} hands over {amount} {near2}. How many {far} does {name} get?",
    "For a trip {name} changes {amount} {near2}. The bank first takes {fee} {near2} as a fee; for each {near} that is "
    "left it pays {rate} {far}. How many {far} is that?",
)
_EXCHANGE_HARD = (
    "Before a trip {name} hands over {amount} {near2} at a bank, which keeps {fee} {near2} as a fee and gives {rate} "
    "{far} for each {near} that is left. {name} spends {spent} {far} on the trip and {other} spends {theirs}. At home "
    "{name} changes everything that is left back at {back} {far} for 1 {near}, without a fee. How many {near2} does "
    "{name} get?",
    "{name} and {other} come home from a trip. {name} had changed {amount} {near2} at a rate of {rate} {far} for each "
    "{near}, after a fee of {fee} {near2} had been taken off, and spent {spent} {far}; {other} spent {theirs}. Now "
    "{name} changes all that is left back into {near2}. One needs {back} {far} for 1 {near}, and there is no fee. How "
    "many {near2} does {name} get?",
)


@family("exchange", topic="consumer finance", answer_type="numeric", tiers=("standard", "hard"), bank="train")
def exchange(rng: random.Random, tier: str) -> Draw:
    hard = tier == "hard"
    near, far = rng.choice([("euro", "dollars"), ("pound", "euros"), ("dollar", "francs"), ("euro", "francs")])
    rate = rng.choice([105, 110, 115, 120, 125, 130, 140, 150, 160])
    amount = rng.randint(6, 60) * 10
    fees = [fee for fee in range(2, 13) if (amount - fee) * rate % 100 == 0]
    fee = rng.choice(fees or [0])
    got = Fraction((amount - fee) * rate, 100)
    back = rng.choice([r for r in (110, 120, 125, 130, 140, 150, 160, 175, 200) if r > rate])
    step = 100 // gcd(back, 100)  # multiples of it come to whole amounts
    left = Fraction(step * rng.randint(-(-12 // step), 90 // step)) if hard else Fraction(0)
    spent = got - left * back / 100
    if not fees or (hard and spent < 20):
        return exchange(rng, tier)
    gold = int(left if hard else got)
    name, other = rng.sample(PEOPLE, 2)
    theirs = rng.choice([k for k in range(max(10, int(spent) - 40), int(spent) + 40) if k != spent])
    q = filled(
        rng.choice(_EXCHANGE_HARD if hard else _EXCHANGE), name=name, other=other, near=near, near2=near + "s",
        far=far, rate=money(rate), fee=fee, amount=amount, spent=int(spent), theirs=theirs, back=money(back),
    )  # fmt: skip

    def home(rest: Fraction) -> int:
        return round(rest * 100 / back)

    if hard:
        mistakes = [
            foils.overgeneralized(round((got - spent) * 100 / rate), "changed back at the first rate"),
            foils.overgeneralized(gold - fee, "took a fee again"),
            foils.misread(home(Fraction(amount * rate, 100) - spent), "forgot the fee"),
            foils.misconception(round((got - spent) * back / 100), "multiplied where one has to divide"),
            foils.confused(int(got - spent), f"gave what is left in {far}"),
            foils.confused(home(got - theirs), f"took off what {other} spent"),
        ]
    else:
        mistakes = [
            foils.misread(amount * rate // 100, "forgot the fee"),
            foils.misconception(round((amount - fee) * 100 / rate), "divided where one has to multiply"),
            foils.misconception(amount * rate // 100 - fee, "took the fee off after the exchange"),
            foils.misread(round((amount + fee) * rate / 100), "added the fee"),
            foils.confused(amount - fee, "gave what is left before the exchange"),
        ]

    def in_hundredths(numbers: list[int]) -> object:
        v = q.read(numbers)
        wallet = sum(100 * v.rate[0] + v.rate[1] for _ in range(v.amount - v.fee))
        if not hard:
            return Fraction(wallet, 100)
        wallet -= 100 * v.spent
        step, coins = 100 * v.back[0] + v.back[1], 0
        while wallet >= step:
            wallet, coins = wallet - step, coins + 1
        return coins

    return Draw(q.text, str(gold), mistakes, in_hundredths)


_MAINS = ("curry", "lasagne", "risotto", "pizza", "goulash", "falafel plate", "fish pie", "omelette")
_SMALL = ("soup", "salad", "garlic bread", "rice pudding", "fruit bowl")
_DRINKS = ("juice", "cider", "lemonade", "iced tea", "mineral water")
_MENU = (
    "Menu, prices in dollars: {main} {p}, {main2} {q}, {small} {r}, {drink} {s}. {name} orders {n} portions of "
    "{main}, {k} of {small} and {m} of {drink}. How many dollars is that?",
    "On the menu are {main} for {p} dollars, {main2} for {q}, {small} for {r} and {drink} for {s}. A family takes "
    "{main} {n} times, {small} {k} times and {drink} {m} times. How many dollars do they pay?",
)
_MENU_HARD = (
    "Menu, prices in dollars: {main} {p}, {main2} {q}, {small} {r}, {drink} {s}. Lunch offer until {noon}: one {main} "
    "with one {drink} costs {deal} together. At {at}, {name} orders {main} {n} times, {drink} {m} times and {small} "
    "{k} times, as cheaply as possible. How many dollars is that?",
    "A card on the table reads: {main} {p} dollars, {main2} {q} dollars, {small} {r} dollars, {drink} {s} dollars; "
    "orders placed before {noon} get each {main} together with {drink} for {deal} dollars. {name} orders at {at}: {n} "
    "portions of {main}, {m} of {drink} and {k} of {small}, and pays the lowest price possible. How many dollars is "
    "that?",
)


@family("menu_order", topic="document reading", answer_type="numeric", tiers=("standard", "hard"), bank="train")
def menu_order(rng: random.Random, tier: str) -> Draw:
    hard = tier == "hard"
    (main, main2), small, drink = rng.sample(_MAINS, 2), rng.choice(_SMALL), rng.choice(_DRINKS)
    p, r, s = rng.randint(9, 19), rng.randint(4, 8), rng.randint(2, 6)
    other = rng.choice([k for k in range(8, 21) if k != p])
    n, k, m = rng.randint(2, 5), rng.randint(2, 4), rng.randint(2, 6)
    deal = p + s - rng.randint(2, min(4, s + 1))
    noon = rng.choice([13 * 60, 13 * 60 + 30, 14 * 60, 14 * 60 + 30])
    at = noon + rng.choice([-50, -35, -20, -10, -10, -5, 5, 15])
    pairs, saved = min(n, m), p + s - deal
    if hard and n == m:
        return menu_order(rng, tier)
    full = n * p + k * r + m * s
    valid = hard and at < noon
    gold = full - pairs * saved * valid
    query = filled(
        rng.choice(_MENU_HARD if hard else _MENU), name=rng.choice(PEOPLE), main=main, main2=main2, small=small,
        drink=drink,
        p=p, q=other, r=r, s=s, n=n, k=k, m=m, deal=deal, noon=clock(noon), at=clock(at),
    )  # fmt: skip
    mistakes = [
        foils.confused(gold + n * (other - p), f"took the price of {main2}"),
        foils.misread(p + r + s, "overlooked how many there are of each"),
        foils.misread(gold - m * s if not hard else gold - k * r, "left out a line of the order"),
        foils.confused(gold - k * r - m * s + m * r + k * s, f"mixed up how many of {small} and {drink} there are"),
        foils.off_by(gold + p, "counted one portion too many"),
    ]
    if hard:
        mistakes[:0] = [
            foils.misread(full, "overlooked the offer") if valid
            else foils.overgeneralized(full - pairs * saved, "used the offer though it is too late"),
            foils.overgeneralized(full - n * saved, "used the offer for every portion") if n > m
            else foils.overgeneralized(full - m * saved, "used the offer for every drink"),
            foils.misconception(full - saved, "used the offer only once"),
        ]  # fmt: skip

    def one_by_one(numbers: list[int]) -> int:
        v = query.read(numbers)
        mains, drinks = [v.p] * v.n, [v.s] * v.m
        bill = v.r * v.k
        while hard and minutes(v.at) < minutes(v.noon) and mains and drinks:
            bill += min(v.deal, mains.pop() + drinks.pop())
        return bill + sum(mains) + sum(drinks)

    return Draw(query.text, str(gold), mistakes, one_by_one)


_INVOICE = (
    "An invoice of {firm} dated {dated} is for {amount} dollars. Whoever pays within {days} days of that date may "
    "deduct {rate} per cent. {name} pays on {paid}. How many dollars are due?",
    "{firm} sends {name} an invoice for {amount} dollars on {dated}: {rate} per cent off if it is paid no more than "
    "{days} days later, otherwise the full amount. The money is paid on {paid}. How many dollars does {name} owe on "
    "that day?",
)
_INVOICE_HARD = (
    "An invoice of {firm} dated {dated} is for {amount} dollars, of which {freight} dollars are freight. Whoever pays "
    "no more than {days} days after that date may deduct {rate} per cent of the amount without the freight. Whoever "
    "pays more than {limit} days after that date owes a fee of {fee} dollars on top. {name} pays on {paid}. How many "
    "dollars is that?",
    "{name} gets an invoice from {firm}, dated {dated}: {amount} dollars in all, {freight} dollars of it for freight. "
    "There is {rate} per cent off everything but the freight for payment no later than {days} days after that date. "
    "If it is paid more than {limit} days after that date, a fee of {fee} dollars is added. How many dollars does "
    "{name} have to pay on {paid}?",
)


@family("invoice_due", topic="document reading", answer_type="numeric", tiers=("standard", "hard"), bank="eval")
def invoice_due(rng: random.Random, tier: str) -> Draw:
    hard = tier == "hard"
    dated = datetime.date(2025, 3, 1) + datetime.timedelta(rng.randrange(230))
    days, rate = rng.randint(7, 16), rng.choice([2, 3, 4, 5, 10])
    limit, fee = days + rng.randint(10, 20), rng.randint(8, 40)
    kind = rng.randrange(2)
    gap = days + rng.choice([-3, -1, 0, 1, 2, 5])
    if hard and coin(rng):
        gap = limit + rng.choice([-2, -1, 0, 1, 3])
    paid = dated + datetime.timedelta(gap)
    goods, freight = rng.randint(4, 40) * 100 // rate // 5 * 5, rng.randint(8, 60) if hard else 0
    amount = goods + freight
    if goods * rate % 100 or goods < 60:
        return invoice_due(rng, tier)
    cut = goods * rate // 100
    late = hard and gap > limit
    gold = amount - cut * (gap <= days) + fee * late
    q = filled(
        (_INVOICE_HARD if hard else _INVOICE)[kind], firm=rng.choice(FIRMS), name=rng.choice(PEOPLE), amount=amount,
        rate=rate,
        days=days, limit=limit, fee=fee, freight=freight, dated=f"{dated.day} {MONTHS[dated.month - 1]}",
        paid=f"{paid.day} {MONTHS[paid.month - 1]}",
    )  # fmt: skip
    mistakes = [
        foils.overgeneralized(amount - cut, "deducted the per cent though it is too late"),
        foils.misread(amount, "overlooked the per cent for early payment"),
        foils.misconception(gold - (rate - cut if gap <= days else rate), "took the per cent off as dollars"),
        foils.misread(gold + 2 * cut if gap <= days else gold + cut, "added the per cent instead of deducting it"),
        foils.slip(gold + 10, "was out by ten"),
    ]
    if hard:
        mistakes[:0] = [
            foils.overgeneralized(amount - amount * rate // 100, "deducted the per cent from the freight as well"),
            foils.overgeneralized(amount + fee, "charged the fee too early"),
            foils.confused(gold - freight, "left out the freight"),
        ]

    def by_calendar(numbers: list[int]) -> object:
        v = q.read(numbers)
        start, end = (datetime.date(2025, month, day) for month, day in ((dated.month, v.dated), (paid.month, v.paid)))
        left = Fraction(v.amount)
        if end <= start + datetime.timedelta(days=v.days):
            left -= (v.amount - (v.freight if hard else 0)) * Fraction(v.rate, 100)
        if hard and end > start + datetime.timedelta(days=v.limit):
            left += v.fee
        return left

    return Draw(q.text, str(gold), mistakes, by_calendar)
