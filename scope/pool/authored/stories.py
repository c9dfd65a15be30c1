"""Short stories about giving, taking, packing and sharing."""

import random

from scope.pool import foils
from scope.pool.authored.registry import Draw, family
from scope.pool.authored.words import COUNTED, DAILY, HELD, LEGGED, NAMES, PACKED, PARTLY


@family("give_and_take", topic="everyday arithmetic", answer_type="numeric", tiers=("easy", "standard"), bank="eval")
def give_and_take(rng: random.Random, tier: str) -> Draw:
    name, thing = rng.choice(NAMES), rng.choice(COUNTED)
    a, b = rng.randint(6, 30), rng.randint(2, 20)
    gain = rng.random() < 0.5
    if not gain and b >= a:
        a, b = b + 2, a
    verb = rng.choice(("buys", "finds", "gets")) if gain else rng.choice(("gives away", "loses", "sells"))
    more = " more" if gain else ""
    story = f"{name} has {a} {thing} and {verb} {b}{more}."
    now = a + b if gain else a - b
    if tier == "easy":
        return Draw(
            f"{story} How many {thing} does {name} have now?",
            str(now),
            [
                foils.misread(a - b if gain else a + b, "went in the other direction"),
                foils.no_carry(a, b) if gain else foils.no_borrow(a, b),
                foils.counted_start(now, rng.random() < 0.5),
                foils.tens_slip(now, rng.random() < 0.5),
                foils.confused(a, "gave the number from before"),
            ],
            lambda n: len([*range(n[0]), *range(n[1])]) if gain else len(list(range(n[0]))[n[1] :]),
        )
    c = rng.randint(2, 15)
    if now <= c:
        return give_and_take(rng, tier)
    friend = rng.choice([other for other in NAMES if other != name])
    return Draw(
        f"{story} Then {name} passes {c} on to {friend}. How many {thing} does {name} have in the end?",
        str(now - c),
        [
            foils.misread(now, "left out the last step"),
            foils.misread(now + c, "added in the last step"),
            foils.counted_start(now - c, rng.random() < 0.5),
            foils.confused(c, "gave what the friend got"),
        ],
        lambda n: n[0] + (n[1] if gain else -n[1]) - n[2],
    )


@family("packs", topic="everyday arithmetic", answer_type="numeric", tiers=("easy", "standard"), bank="train")
def packs(rng: random.Random, tier: str) -> Draw:
    container, things = rng.choice(PACKED)
    plural = {"box": "boxes", "shelf": "shelves"}.get(container, container + "s")
    each, count = rng.randint(3, 12), rng.randint(2, 9)
    if tier == "easy":
        gold = each * count
        return Draw(
            f"Each {container} holds {each} {things}. How many {things} are in {count} {plural}?",
            str(gold),
            [
                foils.off_by(each * (count - 1), f"left out one {container}"),
                foils.off_by(each * (count + 1), f"counted one {container} too many"),
                foils.misread(each + count, "added instead of multiplying"),
                foils.tens_slip(gold, rng.random() < 0.5),
            ],
            lambda n: len([1 for _ in range(n[1]) for _ in range(n[0])]),
        )
    loose = rng.randint(2, each)
    gold = each * count + loose
    return Draw(
        f"There are {count} {plural} with {each} {things} each, and {loose} loose {things}. "
        f"How many {things} are there in all?",
        str(gold),
        [
            foils.misread(each * count, f"left out the loose {things}"),
            foils.misread(each * count - loose, f"took the loose {things} away"),
            foils.off_by(each * (count - 1) + loose, f"left out one {container}"),
            foils.counted_start(gold),
        ],
        lambda n: sum([n[1]] * n[0], n[2]),
    )


@family("sharing", topic="everyday arithmetic", answer_type="numeric", tiers=("easy", "standard"), bank="train")
def sharing(rng: random.Random, tier: str) -> Draw:
    thing = rng.choice(COUNTED)
    people, gold = rng.randint(2, 6 if tier == "easy" else 9), rng.randint(2, 12 if tier == "easy" else 25)
    total = people * gold
    return Draw(
        f"{people} children share {total} {thing} equally. How many {thing} does each child get?",
        str(gold),
        [
            foils.counted_start(gold, rng.random() < 0.5),
            foils.misread(total - people, "subtracted instead of dividing"),
            foils.confused(people, "gave the number of children"),
            foils.slip(gold + 2, "counted the groups wrongly"),
        ],
        lambda n: next(k for k in range(n[1] + 1) if k * n[0] == n[1]),
    )


@family("ages", topic="everyday arithmetic", answer_type="numeric", tiers=("easy", "standard"), bank="train")
def ages(rng: random.Random, tier: str) -> Draw:
    one, two = rng.sample(NAMES, 2)
    a, b = rng.randint(12, 60), rng.randint(2, 10)
    older = rng.random() < 0.5
    gold = a + b if older else a - b
    word = "older" if older else "younger"
    if tier == "easy":
        ahead = rng.random() < 0.5
        gold = a + b if ahead else a - b
        when = f"will {one} be in {b} years" if ahead else f"was {one} {b} years ago"
        return Draw(
            f"{one} is {a} years old now. How old {when}?",
            str(gold),
            [
                foils.misread(a - b if ahead else a + b, "went the wrong way in time"),
                foils.confused(a, "gave the age of today"),
                foils.counted_start(gold, rng.random() < 0.5),
                foils.tens_slip(gold, rng.random() < 0.5),
            ],
            lambda n: len(range(n[0] + n[1])) if ahead else len(range(n[1], n[0])),
        )
    years = rng.randint(2, 12)
    return Draw(
        f"{one} is {a} years old. {two} is {b} years {word}. How old will {two} be in {years} years?",
        str(gold + years),
        [
            foils.misread(gold, f"gave the age of {two} today"),
            foils.confused(a + years, f"gave the later age of {one}"),
            foils.misread(gold - years, "went back in time"),
            foils.counted_start(gold + years, rng.random() < 0.5),
        ],
        lambda n: n[0] + n[2] + (n[1] if older else -n[1]),
    )


@family("two_groups", topic="everyday arithmetic", answer_type="numeric", bank="dev")
def two_groups(rng: random.Random, tier: str) -> Draw:
    (place, things), (one, two) = rng.choice(HELD), rng.sample(("red", "blue", "green", "yellow", "white"), 2)
    a, b = rng.randint(3, 40), rng.randint(3, 30)
    return Draw(
        f"There are {a} {one} and {b} {two} {things} in a {place}. How many {things} are in the {place}?",
        str(a + b),
        [
            foils.no_carry(a, b),
            foils.misread(abs(a - b), "took the difference"),
            foils.confused(max(a, b), "counted one colour only"),
            foils.counted_start(a + b, rng.random() < 0.5),
            foils.tens_slip(a + b, rng.random() < 0.5),
        ],
        lambda n: len([*range(n[0]), *range(n[1])]),
    )


@family("each_day", topic="planning", answer_type="numeric", bank="train")
def each_day(rng: random.Random, tier: str) -> Draw:
    name, (verb, unit) = rng.choice(NAMES), rng.choice(DAILY)
    each, count = rng.randint(2, 12), rng.randint(2, 9)
    gold = each * count
    return Draw(
        f"{name} {verb} {each} {unit} every day. How many {unit} is that in {count} days?",
        str(gold),
        [
            foils.off_by(each * (count - 1), "left out one day"),
            foils.off_by(each * (count + 1), "counted one day too many"),
            foils.misread(each + count, "added instead of multiplying"),
            foils.tens_slip(gold, rng.random() < 0.5),
        ],
        lambda n: sum(n[0] for _ in range(n[1])),
    )


@family("legs", topic="everyday facts", answer_type="numeric", bank="train")
def legs(rng: random.Random, tier: str) -> Draw:
    animal, has, mistaken = rng.choice(LEGGED)
    count = rng.randint(2, 9)
    article = "An" if animal == "ant" else "A"
    return Draw(
        f"{article} {animal} has {has} legs. How many legs do {count} {animal}s have?",
        str(has * count),
        [
            foils.misconception(mistaken * count, f"took {mistaken} legs for one {animal}"),
            foils.off_by(has * (count - 1), f"left out one {animal}"),
            foils.off_by(has * (count + 1), f"counted one {animal} too many"),
            foils.misread(has + count, "added instead of multiplying"),
        ],
        lambda n: len([1 for _ in range(n[1]) for _ in range(n[0])]),
    )


@family("still_to_go", topic="planning", answer_type="numeric", bank="eval")
def still_to_go(rng: random.Random, tier: str) -> Draw:
    name, (whole, unit, done) = rng.choice(NAMES), rng.choice(PARTLY)
    total = rng.randint(2, 10) * 10 if rng.random() < 0.5 else rng.randint(20, 90)
    part = rng.randint(3, total - 5)
    gold = total - part
    return Draw(
        f"A {whole} has {total} {unit}. {name} has {done} {part} {unit}. How many {unit} are left?",
        str(gold),
        [
            foils.confused(part, f"gave what was {done}"),
            foils.no_borrow(total, part),
            foils.misread(total + part, "added instead of subtracting"),
            foils.counted_start(gold, rng.random() < 0.5),
            foils.tens_slip(gold, rng.random() < 0.5),
        ],
        lambda n: len(range(n[1], n[0])),
    )
