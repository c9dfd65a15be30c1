"""Discounts, tips and interest."""

import random
from fractions import Fraction

from scope.pool import foils
from scope.pool.authored.registry import Draw, family
from scope.pool.authored.wording import PEOPLE, coin, filled, money

#: things to buy, in whole dollars
_GOODS = (
    ("a lamp", 20, 90), ("a rug", 40, 180), ("a kettle", 20, 70), ("a jacket", 40, 160), ("a backpack", 30, 120),
    ("a clock", 15, 80), ("a blanket", 20, 90), ("a mirror", 30, 150), ("a toaster", 20, 80), ("a tent", 60, 220),
)  # fmt: skip
_DISCOUNT = (
    "A shop takes {rate} per cent off every article that costs more than {least} dollars. {name} buys {one} for "
    "{first} dollars and {two} for {second} dollars. How many dollars does {name} pay in all?",
    "{name} wants {one} priced at {first} dollars and {two} priced at {second} dollars. Today there is {rate} per "
    "cent off each article above {least} dollars. What do the two cost together, in dollars?",
)
_DISCOUNT_HARD = (
    "In a sale, every article that costs more than {least} dollars is reduced by {rate} per cent. Members then get "
    "{member} dollars off the whole bill, provided that the reduced prices come to at least {floor} dollars. {name}, "
    "a member, buys {one} for {first} dollars and {two} for {second} dollars. {other}, who is not a member, pays "
    "{theirs} dollars for something else. How many dollars does {name} pay?",
    "{name} chooses {one} at {first} dollars and {two} at {second} dollars. There is {rate} per cent off each article "
    "above {least} dollars. A voucher for {member} dollars may be used on top of that if the bill after the "
    "reduction is still {floor} dollars or more. {name} has such a voucher; {other} spends {theirs} dollars without "
    "one. How many dollars does {name} have to pay?",
)


@family("discount", topic="consumer finance", answer_type="numeric", tiers=("standard", "hard"), bank="eval")
def discount(rng: random.Random, tier: str) -> Draw:
    hard = tier == "hard"
    (one, low1, high1), (two, low2, high2) = rng.sample(_GOODS, 2)
    rate = rng.choice([10, 20, 25, 30, 40, 50])
    first, second = rng.randrange(low1, high1, 5), rng.randrange(low2, high2, 5)
    low, high = sorted((first, second))
    if high - low < 10 or high * rate % 100 or (low * rate % 100 and not hard and coin(rng)):
        return discount(rng, tier)
    least = rng.randrange(low, high, 5)
    cut = high * rate // 100
    reduced = low + high - cut
    member, floor = (rng.randint(4, 12), reduced + rng.choice([-6, -3, -1, 0, 1, 3, 6])) if hard else (0, 0)
    valid = hard and reduced >= floor
    gold = reduced - member * valid
    name, other = rng.sample(PEOPLE, 2)
    q = filled(
        rng.choice(_DISCOUNT_HARD if hard else _DISCOUNT), name=name, other=other, one=one, two=two, rate=rate,
        least=least,
        first=first, second=second, member=member, floor=floor, theirs=rng.randint(15, 120),
    )  # fmt: skip
    both = Fraction((low + high) * (100 - rate), 100)
    mistakes = [
        foils.overgeneralized(round(both) - member * valid, "reduced both articles"),
        foils.misconception(low + high - rate - member * valid, "took the per cent off as dollars"),
        foils.misread(low + high - member * valid, "forgot the reduction"),
        foils.confused(high + low - low * rate // 100 - member * valid, "reduced the wrong article"),
        foils.confused(high - cut, "left out the article that is not reduced"),
    ]
    if hard:
        mistakes[:0] = [
            foils.overgeneralized(reduced - member, "took off the money though the bill is too low"),
            foils.misread(reduced, "forgot the last step"),
        ]

    def piece_by_piece(numbers: list[int]) -> object:
        v = q.read(numbers)
        bill = sum(
            (Fraction(p) * (1 - Fraction(v.rate, 100)) if p > v.least else p for p in (v.first, v.second)), Fraction(0)
        )
        return bill - v.member if hard and bill >= v.floor else bill

    return Draw(q.text, str(gold), mistakes, piece_by_piece)


_TIP = (
    "A {meal} for {people} people costs {bill} dollars. They add a tip of {rate} per cent of this and split "
    "everything equally. How many dollars does each of them pay?",
    "{name} and friends, {people} people in all, share a bill of {bill} dollars for {meal} equally. The tip is {rate} "
    "per cent on top of the bill. How many dollars is that per person, tip included?",
)
_TIP_HARD = (
    "A group of {people} has dinner. The bill of {bill} dollars contains {wine} dollars for wine. They tip {rate} per "
    "cent on the food but nothing on the wine. The wine was drunk by {drinkers} of them only, who share its price "
    "equally. The food and the tip are shared equally by all {people}. {name} had wine. How many dollars does {name} "
    "pay?",
    "Of {people} friends at a table, {drinkers} drink wine. The food and the wine together cost {bill} dollars, of "
    "which {wine} dollars are for the wine. The tip is {rate} per cent of the price of the food. All of them share "
    "food and tip equally; those who drink share the price of the wine equally. {name} drinks wine. What does {name} "
    "pay, in dollars?",
)


@family("tip_split", topic="consumer finance", answer_type="numeric", tiers=("standard", "hard"), bank="train")
def tip_split(rng: random.Random, tier: str) -> Draw:
    hard = tier == "hard"
    people, rate = rng.randint(3, 8), rng.choice([5, 10, 15, 20])
    drinkers = rng.randint(2, people - 1) if hard else 0
    wine = drinkers * rng.randint(4, 16)
    food = rng.randint(people * 12, people * 45)
    if food * (100 + rate) % (people * (100 if hard else 1)):
        return tip_split(rng, tier)
    bill = food + wine
    name = rng.choice(PEOPLE)
    q = filled(
        rng.choice(_TIP_HARD if hard else _TIP), name=name, people=people, bill=bill, rate=rate, wine=wine,
        drinkers=drinkers, meal=rng.choice(["dinner", "brunch", "lunch", "breakfast"]),
    )  # fmt: skip
    drink = Fraction(wine, drinkers) if hard else Fraction(0)

    def share(paid: Fraction | int, heads: int = people, more: Fraction = drink) -> str:
        """In whole dollars where the gold is, else in cents."""
        each = Fraction(paid) / heads + more
        return str(round(each)) if hard else money(round(100 * each))

    tipped = Fraction(food * (100 + rate), 100)
    mistakes = [
        foils.misconception(share(food + rate), "added the per cent as dollars"),
        foils.misread(share(food), "forgot the tip"),
        foils.overgeneralized(share(tipped * (100 + rate) / 100), "tipped twice"),
        foils.off_by(share(tipped, people + 1), "counted one person too many"),
        foils.off_by(share(tipped, people - 1), "counted one person too few"),
        foils.misconception(share(food + rate * people), "added the whole per cent to each share"),
    ]
    if hard:
        nothing = Fraction(0)
        mistakes[:0] = [
            foils.confused(share(tipped, more=nothing), "gave the share of somebody without wine"),
            foils.overgeneralized(share(Fraction(bill * (100 + rate), 100), more=nothing), "split everything equally"),
            foils.misread(share(tipped + wine, more=nothing), "split the wine among all"),
            foils.overgeneralized(share(tipped + Fraction(wine * rate, 100)), "tipped on the wine as well"),
        ]

    def exactly(numbers: list[int]) -> str:
        v = q.read(numbers)
        cents = (v.bill - v.wine if hard else v.bill) * (100 + v.rate)
        own, rest = divmod(cents, v.people)
        if rest:
            return "does not come out even"
        return str(own // 100 + v.wine // v.drinkers) if hard else money(own)

    return Draw(q.text, share(tipped), mistakes, exactly)


_INTEREST = (
    "{name} puts {start} dollars into an account at the {bank} bank, which pays {rate} per cent interest a year. The "
    "interest is added to the account at the end of each year and then earns interest as well. How many dollars does "
    "{name} have there after {years} years?",
    "A savings account at the {bank} bank grows by {rate} per cent each year, always of what is in it at the "
    "beginning of that year. {name} pays in {start} dollars once and leaves them there. What is the balance in "
    "dollars after {years} years?",
    "{name} lends {other} {start} dollars at {rate} per cent interest a year. The interest of each year is paid out "
    "to {name} at once and does not earn interest itself. How many dollars of interest does {name} get in {years} "
    "years?",
)
_INTEREST_HARD = (
    "{name} puts {start} dollars into an account that pays {rate} per cent interest a year, added to the account at "
    "the end of each year. After the first year, once the interest has been added, {name} {moves} {moved} dollars. "
    "{other} has {theirs} dollars in an account without interest. How many dollars does {name} have in the account "
    "after {years} years?",
    "On 1 January {name} opens an account with {start} dollars, while {other} keeps {theirs} dollars at home. At the "
    "end of every year the bank adds {rate} per cent of the balance. Right after the first such payment {name} "
    "{moves} {moved} dollars. What is the balance of the account, in dollars, right after payment number {years}?",
)


@family("interest", topic="consumer finance", answer_type="numeric", tiers=("standard", "hard"), bank="dev")
def interest(rng: random.Random, tier: str) -> Draw:
    hard = tier == "hard"
    rate = rng.choice([2, 3, 4, 5, 6, 8, 10, 20])
    start, years = rng.randint(3, 60) * 100, rng.choice([2, 2, 3]) if rate in (10, 20) else 2
    pays_in = coin(rng)
    moved = rng.randint(1, 9) * 100 if hard else 0
    name, other = rng.sample(PEOPLE, 2)
    kind = rng.randrange(2 if hard else 3)
    template = (_INTEREST_HARD if hard else _INTEREST)[kind]
    simple = not hard and kind == 2
    if simple:
        years = rng.randint(3, 8)
    delta = moved if pays_in else -moved

    def grown(*deltas: int) -> Fraction:
        balance = Fraction(start)
        for extra in deltas:
            balance = balance * (100 + rate) / 100 + extra
        return balance

    each = Fraction(start * rate, 100)
    tail = [0] * (years - 1)
    gold = each * years if simple else grown(delta, *tail)
    cents = gold * 100
    if cents.denominator > 1 or moved >= start:
        return interest(rng, tier)
    q = filled(
        template, name=name, other=other,
        bank=rng.choice(["town", "harbour", "valley", "village", "island"]),
        start=start, rate=rate, years=years, moved=moved,
        moves="pays in another" if pays_in else "takes out", theirs=rng.randint(3, 70) * 100,
    )  # fmt: skip
    if simple:
        wrong = [
            (
                foils.overgeneralized,
                Fraction(start) * (100 + rate) ** years / 100**years - start,
                "let the interest earn interest",
            ),
            (foils.misconception, Fraction(rate * years), "took the per cent for dollars"),
            (foils.misread, each, "counted one year only"),
            (foils.off_by, each * (years - 1), "counted one year too few"),
            (foils.off_by, each * (years + 1), "counted one year too many"),
            (foils.confused, each * years + start, "added what was lent"),
        ]
    else:
        wrong = [
            (foils.misconception, start + each * years + delta, "took simple for compound interest"),
            (foils.misread, grown(delta, *tail[1:]), "counted one year too few"),
            (foils.off_by, grown(delta, *tail, 0), "counted one year too many"),
            (foils.confused, gold - start - delta, "gave the interest without what was paid in"),
            (foils.misconception, Fraction(start + rate * years + delta), "added the per cent as dollars"),
        ]
        if hard:
            wrong[:0] = [
                (foils.misread, grown(0, *tail) , "forgot the payment after the first year"),
                (foils.overgeneralized, grown(*[delta] * years), "repeated the payment every year"),
                (foils.misconception, grown(0, *tail[1:], delta), "moved the money at the very end"),
                (foils.misread, grown(-delta, *tail), "moved the money the wrong way"),
            ]  # fmt: skip
    decimals = cents % 100 != 0

    def shown(value: Fraction) -> str:
        return money(int(value * 100)) if decimals else str(int(value))

    def year_by_year(numbers: list[int]) -> str:
        v = q.read(numbers)
        rest, paid = v.start * 100, 0  # in cents
        for year in range(v.years):
            added = rest * v.rate // 100
            paid += added
            rest += 0 if simple else added
            if hard and year == 0:
                rest += 100 * v.moved * (1 if pays_in else -1)
        return shown(Fraction(paid if simple else rest, 100))

    return Draw(q.text, shown(gold), [make(shown(value), why) for make, value, why in wrong if value > 0], year_by_year)
