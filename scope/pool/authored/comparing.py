"""Comparing: the largest fraction, who has most, more or fewer, even or odd, right or wrong sums.

These are standard and not easy: in small trials (6 to 10 items a wording) the demo's model named
option letters at chance or not at all within the cap, and answered yes/no questions in plain
English with one and the same word.
"""

import random
from fractions import Fraction

from scope.pool import foils
from scope.pool.authored.registry import Draw, family
from scope.pool.authored.wording import PEOPLE, coin, filled, yes_no
from scope.pool.authored.words import PACKED

_FRACTION = (
    "Which of the fractions {a}, {b}, {c} and {d} is the {word}?",
    "Four bottles are filled to {a}, {b}, {c} and {d} of their volume, and all have the same size. What is the {word} "
    "share?",
    "{name} has read {a} of one book, {b} of another, {c} of a third and {d} of a fourth. Which share is the {word}?",
)


@family("largest", topic="math", answer_type="multiple_choice", tiers=("standard",), bank="eval")
def largest(rng: random.Random, tier: str) -> Draw:
    pairs = [(rng.randint(1, 10), rng.randint(3, 12)) for _ in range(4)]
    values = [Fraction(*pair) for pair in pairs]
    up = coin(rng)
    ranked = sorted(range(4), key=lambda i: -values[i] if up else values[i])
    word = "largest" if up else "smallest"
    if (
        len(set(values)) < 4
        or max(values) >= 1
        or any(v.denominator != p[1] for v, p in zip(values, pairs, strict=True))
    ):
        return largest(rng, tier)
    shown = [f"{top}/{bottom}" for top, bottom in pairs]
    q = filled(rng.choice(_FRACTION), name=rng.choice(PEOPLE), word=word, **dict(zip("abcd", shown, strict=True)))
    pick = max if up else min

    def crossed(n: list[int]) -> str:
        tops, bottoms = n[::2], n[1::2]
        wins = [all((t * b >= u * c) if up else (t * b <= u * c) for u, b in zip(tops, bottoms, strict=True))
                for t, c in zip(tops, bottoms, strict=True)]  # fmt: skip
        return f"{tops[wins.index(True)]}/{bottoms[wins.index(True)]}"

    return Draw(
        q.text,
        shown[ranked[0]],
        [
            foils.misconception(shown[pick(range(4), key=lambda i: pairs[i][0])], "compared the upper numbers only"),
            foils.misconception(shown[pick(range(4), key=lambda i: pairs[i][1])], "compared the lower numbers only"),
            foils.overgeneralized(
                shown[pick(range(4), key=lambda i: pairs[i][0] - pairs[i][1])], "compared the distance to the whole"
            ),
            foils.misread(shown[ranked[3]], f"did not read {word}"),
            foils.near(shown[ranked[1]], "took the next in rank"),
            foils.slip(shown[ranked[2]], "multiplied wrongly"),
        ],
        crossed,
        shown,
    )


_ROUNDS = (
    "Two rounds of a quiz brought these points: {lines}. Who has the {word} points in total?",
    "Points in two games, one after the other: {lines}. Whose sum is the {word2}?",
    "{lines}: these are the goals of four players in spring and in autumn. Who scored the {word} goals in all?",
)
_ROUNDS_HARD = (
    "Two rounds of a quiz brought these points: {lines}. In the second round every point counts double. Afterwards "
    "the jury takes {off} points off the total of {fined} for a late arrival. Who has the {word} points in total?",
    "In spring and in autumn, four volunteers collected bags of litter: {lines}. Bags from the autumn count double. "
    "{off} of the bags that {fined} brought in spring turned out to be empty and do not count. Who has the {word} "
    "points, if a bag in spring is worth one point?",
)


@family(
    "who_has_most", topic="everyday arithmetic", answer_type="multiple_choice", tiers=("standard", "hard"), bank="eval"
)
def who_has_most(rng: random.Random, tier: str) -> Draw:
    hard, up = tier == "hard", coin(rng)
    people = rng.sample(PEOPLE, 4)
    rounds = [(rng.randint(12, 48), rng.randint(12, 48)) for _ in people]
    fined, off = rng.randrange(4), rng.randint(3, 11)
    twice = 2 if hard else 1
    plain = [a + twice * b for a, b in rounds]
    totals = [t - off if hard and i == fined else t for i, t in enumerate(plain)]
    sign = 1 if up else -1

    def top(values: list[int]) -> str:
        return people[max(range(4), key=lambda i: sign * values[i])]

    ranked = sorted(range(4), key=lambda i: -sign * totals[i])
    if len(set(totals)) < 4 or (hard and top(plain) == people[ranked[0]] and rng.random() < 0.7):
        return who_has_most(rng, tier)
    q = filled(
        rng.choice(_ROUNDS_HARD if hard else _ROUNDS), word="most" if up else "fewest",
        word2="largest" if up else "smallest",
        lines=", ".join(f"{name} {a} and {b}" for name, (a, b) in zip(people, rounds, strict=True)),
        fined=people[fined], off=off,
    )  # fmt: skip

    def added_up(n: list[int]) -> str:
        v = q.read(n)
        points = {name: [v.lines[2 * i], *[v.lines[2 * i + 1]] * twice] for i, name in enumerate(people)}
        if hard:
            points[people[fined]].append(-v.off)
        return sorted(people, key=lambda name: sum(points[name]), reverse=up)[0]

    return Draw(
        q.text,
        people[ranked[0]],
        [
            foils.misread(top(plain), "forgot the points that are taken off"),
            foils.misread(top([a + b for a, b in rounds]), "did not count the second part double"),
            foils.overgeneralized(top([max(r) for r in rounds]), "looked at the single best result"),
            foils.misconception(top([a for a, _ in rounds]), "looked at the first part only"),
            foils.misconception(top([b for _, b in rounds]), "looked at the second part only"),
            foils.near(people[ranked[1]], "took the next in rank"),
            foils.misread(people[ranked[3]], "took the opposite end"),
            foils.confused(people[ranked[2]], "mixed up two people"),
        ],
        added_up,
        people,
    )


_MORE = (
    "{name} packs {a} {boxes} of {b} {things} each, and {other} packs {c} {boxes} of {d} {things} each. Does {name} "
    "pack {word} {things} than {other}?",
    "There are {a} {boxes} with {b} {things} each on the left and {c} {boxes} with {d} {things} each on the right. "
    "Are there {word} {things} on the left than on the right?",
)


@family("greater", topic="math", answer_type="boolean", tiers=("standard",), bank="train")
def greater(rng: random.Random, tier: str) -> Draw:
    a, c = rng.sample(range(4, 20), 2)
    b, d = rng.sample(range(4, 20), 2)
    up, want = coin(rng), coin(rng)
    if a * b == c * d or abs(a * b - c * d) > 30 or ((a * b > c * d) is up) is not want:
        return greater(rng, tier)
    box, things = rng.choice(PACKED)
    name, other = rng.sample(PEOPLE, 2)
    boxes = {"box": "boxes", "shelf": "shelves"}.get(box, box + "s")
    q = filled(
        rng.choice(_MORE),
        name=name,
        other=other,
        boxes=boxes,
        things=things,
        word="more" if up else "fewer",
        a=a,
        b=b,
        c=c,
        d=d,
    )

    def outcome(one: int, two: int) -> str:
        return yes_no((one > two) is up)

    mistakes = [
        foils.misconception(outcome(a, c), f"compared the number of {boxes} only"),
        foils.misconception(outcome(a + b, c + d), "added instead of multiplying"),
        foils.overgeneralized(outcome(b, d), f"compared what is in each of the {boxes} only"),
        foils.slip(yes_no(not want), "multiplied wrongly"),
    ]
    rng.shuffle(mistakes)
    return Draw(q.text, yes_no(want), mistakes, lambda n: yes_no((sum([n[1]] * n[0]) - sum([n[3]] * n[2]) > 0) is up))


_PAIRS = (
    "{a} girls, {b} boys and {c} teachers walk in pairs. Does everybody have a partner?",
    "{name} has {a} red, {b} blue and {c} green beads and puts all of them on two strings. Can both strings get the "
    "same number of beads?",
    "Is the sum of {a}, {b} and {c} an even number?",
)
_ODD = (
    "{a} girls, {b} boys and {c} teachers walk in pairs. Is one person left over?",
    "Three teams with {a}, {b} and {c} players are mixed and divided into two new teams of the same size. Is somebody "
    "left over?",
    "Is the sum of {a}, {b} and {c} an odd number?",
)


@family("even", topic="math", answer_type="boolean", tiers=("standard",), bank="eval")
def even(rng: random.Random, tier: str) -> Draw:
    numbers = [rng.randint(5, 60) for _ in range(3)]
    odd = coin(rng)
    q = filled(rng.choice(_ODD if odd else _PAIRS), name=rng.choice(PEOPLE), **dict(zip("abc", numbers, strict=True)))
    gold = yes_no((sum(numbers) % 2 == 1) is odd)
    some = any(k % 2 for k in numbers)
    return Draw(
        q.text,
        gold,
        [
            foils.overgeneralized(yes_no(some is odd), "thought that one odd number makes the sum odd"),
            foils.misconception(yes_no((numbers[2] % 2 == 1) is odd), "looked at the last number only"),
            foils.misread(yes_no((sum(numbers[:2]) % 2 == 1) is odd), "left out the last number"),
            foils.slip(yes_no(gold == "no"), "added wrongly"),
        ],
        lambda n: yes_no((len([k for k in n if str(k)[-1] in "13579"]) in (1, 3)) is odd),
    )


_TILL = (
    "{name} adds up {a}, {b} and {c} and gets {shown}. Is that {word}?",
    "A bill lists {a}, {b} and {c} dollars and a total of {shown} dollars. Is the total {word}?",
    "{name} walked {a} km on Friday, {b} km on Saturday and {c} km on Sunday and writes down {shown} km in all. Is "
    "that {word}?",
)


@family("is_it_equal", topic="math", answer_type="boolean", tiers=("standard",), bank="train")
def is_it_equal(rng: random.Random, tier: str) -> Draw:
    a, b, c = (rng.randint(13, 89) for _ in range(3))
    right, word = coin(rng), rng.choice(["correct", "right", "wrong"])
    total = a + b + c
    wrong = [int(foils.no_carry(a, b).value) + c, total - 10, total + 10, total - 1, total + 1, total + 9]
    shown = total if right else rng.choice([k for k in wrong if k != total])
    q = filled(rng.choice(_TILL), name=rng.choice(PEOPLE), word=word, a=a, b=b, c=c, shown=shown)
    gold = yes_no(right is not (word == "wrong"))
    return Draw(
        q.text,
        gold,
        [
            foils.slip(yes_no(gold == "no"), "lost a carry")
            if shown % 10 == total % 10
            else foils.off_by(yes_no(gold == "no"), "was out by one"),
        ],
        lambda n: yes_no((n[3] - n[2] - n[1] == n[0]) is not (word == "wrong")),
    )
