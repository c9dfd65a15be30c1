"""Bare arithmetic and number patterns."""

import random

from scope.pool import foils
from scope.pool.authored.registry import Draw, family


@family("sum", topic="math", answer_type="numeric", tiers=("easy", "standard"), bank="train")
def sum_(rng: random.Random, tier: str) -> Draw:
    if tier == "standard":
        a, b, c = (rng.randint(12, 89) for _ in range(3))
        gold = a + b + c
        return Draw(
            f"What is {a} + {b} + {c}?",
            str(gold),
            [
                foils.misread(a + b, "left out the last number"),
                foils.misread(b + c, "left out the first number"),
                foils.tens_slip(gold, rng.random() < 0.5),
                foils.slip(int(foils.no_carry(a, b).value) + c, "dropped the first carry"),
                foils.counted_start(gold),
            ],
            sum,
        )
    a, b = rng.randint(3, 59), rng.randint(3, 39)
    wording = rng.choice(["What is {a} + {b}?", "What is the sum of {a} and {b}?", "Add {a} and {b}. What do you get?"])
    return Draw(
        wording.format(a=a, b=b),
        str(a + b),
        [
            foils.no_carry(a, b),
            foils.tens_slip(a + b, rng.random() < 0.5),
            foils.counted_start(a + b, rng.random() < 0.5),
            foils.misread(abs(a - b), "subtracted instead of adding"),
            foils.digits_swapped(a + b),
        ],
        lambda n: len(range(n[0])) + len(range(n[1])),
    )


@family("difference", topic="math", answer_type="numeric", tiers=("easy", "standard"), bank="eval")
def difference(rng: random.Random, tier: str) -> Draw:
    low, high = (100, 400) if tier == "standard" else (12, 60)
    a = rng.randint(low, high)
    b = rng.randint(3, a - 3)
    wording = rng.choice(["What is {a} minus {b}?", "Subtract {b} from {a}. What do you get?"])
    return Draw(
        wording.format(a=a, b=b),
        str(a - b),
        [
            foils.no_borrow(a, b),
            foils.tens_slip(a - b, rng.random() < 0.5),
            foils.counted_start(a - b, rng.random() < 0.5),
            foils.misread(a + b, "added instead of subtracting"),
            foils.digits_swapped(a - b),
        ],
        lambda n: len(range(min(n), max(n))),
    )


@family("product", topic="math", answer_type="numeric", tiers=("easy", "standard"), bank="dev")
def product(rng: random.Random, tier: str) -> Draw:
    low, high = (11, 39) if tier == "standard" else (2, 12)
    a, b = rng.randint(low, high), rng.randint(3, 12)
    wording = rng.choice(["What is {a} x {b}?", "What is {a} times {b}?", "What is the product of {a} and {b}?"])
    return Draw(
        wording.format(a=a, b=b),
        str(a * b),
        [
            foils.off_by(a * (b - 1), "took one group too few"),
            foils.off_by(a * (b + 1), "took one group too many"),
            foils.misread(a + b, "added instead of multiplying"),
            foils.tens_slip(a * b, rng.random() < 0.5),
            foils.digits_swapped(a * b),
        ],
        lambda n: sum(n[0] for _ in range(n[1])),
    )


@family("double_half", topic="math", answer_type="numeric", bank="train")
def double_half(rng: random.Random, tier: str) -> Draw:
    if rng.random() < 0.5:
        a = rng.randint(6, 75)
        gold = 2 * a
        question = rng.choice([f"What is double {a}?", f"What do you get when you double the number {a}?"])
        mistakes = [foils.misread(4 * a, "doubled again"), foils.no_carry(a, a)]
    else:
        gold = rng.randint(6, 60)
        a = 2 * gold
        question = rng.choice([f"What is half of {a}?", f"What do you get when you divide {a} by 2?"])
        mistakes = [foils.misread(2 * a, "doubled instead of halving"), foils.misread(a, "did not halve")]
    mistakes += [
        foils.tens_slip(gold, rng.random() < 0.5),
        foils.counted_start(gold, rng.random() < 0.5),
        foils.digits_swapped(gold),
    ]
    doubled = gold > a
    return Draw(question, str(gold), mistakes, lambda n: n[0] << 1 if doubled else n[0] >> 1)


@family("next_in_sequence", topic="math", answer_type="numeric", tiers=("standard",), bank="train")
def next_in_sequence(rng: random.Random, tier: str) -> Draw:
    step, start = rng.randint(2, 19), rng.randint(2, 40)
    terms = [start + i * step for i in range(5)]
    gold = start + 5 * step
    shown = ", ".join(map(str, terms))
    wording = rng.choice(["Which number comes next: {}?", "The numbers {} follow a pattern. Which comes next?"])
    return Draw(
        wording.format(shown),
        str(gold),
        [
            foils.off_by(gold + step, "went one step too far"),
            foils.counted_start(gold, rng.random() < 0.5),
            foils.misread(terms[-1], "repeated the last number"),
            foils.overgeneralized(terms[-1] + 2 * step, "let the step grow"),
            foils.tens_slip(gold, up=True),
        ],
        lambda n: n[-1] + (n[1] - n[0]),
    )


@family("more_or_less", topic="math", answer_type="numeric", tiers=("standard",), bank="train")
def more_or_less(rng: random.Random, tier: str) -> Draw:
    a, b, c = rng.randint(30, 90), rng.randint(4, 26), rng.randint(4, 26)
    more = rng.random() < 0.5
    gold, other = (a + b - c, a - b + c) if more else (a - b + c, a + b - c)
    if b == c:
        return more_or_less(rng, tier)
    wording = rng.choice(
        [
            "Start at {a}, add {b}, then subtract {c}. Which number is it?",
            "Add {b} to {a} and take away {c}. What is left?",
        ]
        if more
        else [
            "Start at {a}, subtract {b}, then add {c}. Which number is it?",
            "Take {b} away from {a} and add {c}. What is it?",
        ]
    )
    swapped = wording.startswith(("Add", "Take"))
    return Draw(
        wording.format(a=a, b=b, c=c),
        str(gold),
        [
            foils.misread(other, "exchanged adding and subtracting"),
            foils.misread(a + b if more else a - b, "left out the last step"),
            foils.misread(a + b + c if more else a - b - c, "went the same way twice"),
            foils.counted_start(gold, rng.random() < 0.5),
            foils.digits_swapped(gold),
        ],
        lambda n: n[swapped] + sum((1 if more else -1) * k for k in (n[not swapped], -n[2])),
    )


@family("sum_choice", topic="math", answer_type="multiple_choice", tiers=("standard",), bank="train")
def sum_choice(rng: random.Random, tier: str) -> Draw:
    a, b = rng.randint(3, 89), rng.randint(3, 89)
    gold = a + b
    off, ten = rng.choice([-1, 1]), rng.choice([-10, 10])
    mistakes = [
        foils.off_by(gold + off, "was out by one"),
        foils.slip(abs(gold + ten), "was out by ten"),
        foils.near(gold + 2 * off, "took a number near the sum"),
    ]
    values = [str(gold), *(m.value for m in mistakes)]
    if len(set(values)) < len(values):
        return sum_choice(rng, tier)
    return Draw(f"Which option is equal to {a} + {b}?", str(gold), mistakes, lambda n: n[0] - -n[1], values)
