"""Marks, averages, passing and attendance."""

import random
from fractions import Fraction
from statistics import mean

from scope.pool import foils
from scope.pool.authored.registry import Draw, family
from scope.pool.authored.wording import PEOPLE, a, coin, filled, yes_no

_SUBJECTS = (
    "biology",
    "history",
    "physics",
    "geography",
    "chemistry",
    "music",
    "economics",
    "Spanish",
    "French",
    "Latin",
)
_GROUPS = (
    "In {subject}, a group of {n} pupils has an average of {a} points in a test, and another group of {m} pupils has "
    "an average of {b} points. What is the average of all these pupils?",
    "{n} pupils of {name} scored {a} points on average in {subject}, while the {m} pupils of {other} scored {b} "
    "points on average. What is the average score of both groups taken together?",
)
_GROUPS_HARD = (
    "In {subject}, a group of {n} pupils has an average of {a} points, and another group of {m} pupils has an average "
    "of {b} points. A third group of {k} pupils wrote a different test with an average of {c} points, which is left "
    "out. Then {late} pupils more sit the first test, and each of them scores {d} points. What is the average of all "
    "who wrote the first test?",
    "{name} marks a test in {subject}: {n} pupils with an average of {a} points in one room and {m} with an average "
    "of {b} in another. Later {late} more pupils take the same test and get {d} points each. The {k} pupils of "
    "{other} took another test, with {c} points on average. What is the average of all pupils who took the test "
    "marked by {name}?",
)


@family("group_average", topic="education", answer_type="numeric", tiers=("standard", "hard"), bank="train")
def group_average(rng: random.Random, tier: str) -> Draw:
    hard = tier == "hard"
    n, m, k = rng.randint(8, 30), rng.randint(8, 30), rng.randint(8, 30)
    a, c, d = rng.sample(range(41, 97), 3)
    late = rng.randint(2, 8) if hard else 0
    heads = n + m + late
    even = [b for b in range(41, 97) if (n * a + m * b + late * d) % heads == 0 and abs(a - b) > 5]
    if not even or n == m:
        return group_average(rng, tier)
    b = rng.choice(even)
    points = n * a + m * b + late * d
    gold = points // heads
    name, other = rng.sample(PEOPLE, 2)
    q = filled(
        rng.choice(_GROUPS_HARD if hard else _GROUPS), subject=rng.choice(_SUBJECTS), name=name, other=other,
        n=n, m=m, k=k, a=a, b=b, c=c, d=d, late=late,
    )  # fmt: skip
    mistakes = [
        foils.misconception(
            round(Fraction(a + b + (d if hard else 0), 3 if hard else 2)), "took the average of the averages"
        ),
        foils.confused(round(Fraction(n * b + m * a + late * d, heads)), "exchanged the sizes of the two groups"),
        foils.misread(a if n > m else b, "took the average of the larger group"),
        foils.off_by(round(Fraction(points, heads + 1)), "counted one pupil too many"),
        foils.off_by(round(Fraction(points, heads - 1)), "counted one pupil too few"),
    ]
    if hard:
        mistakes[:0] = [
            foils.overgeneralized(round(Fraction(points + k * c, heads + k)), "counted the other test as well"),
            foils.misread(round(Fraction(n * a + m * b, n + m)), "left out those who came later"),
            foils.misconception(round(Fraction(n * a + m * b + d, n + m + 1)), "counted those who came later as one"),
        ]

    def pupil_by_pupil(numbers: list[int]) -> object:
        v = q.read(numbers)
        return mean([v.a] * v.n + [v.b] * v.m + ([v.d] * v.late if hard else []))

    return Draw(q.text, str(gold), mistakes, pupil_by_pupil)


_WEIGHTED = (
    "The final mark in {subject} is made up of homework ({p} per cent), a project ({q} per cent) and an exam ({r} per "
    "cent). {name} has {a} points for homework, {b} for the project and {c} in the exam. How many points is the "
    "final mark?",
    "{name} scored {a} points for homework, {b} for a project and {c} in the exam. In {subject}, homework counts {p} "
    "per cent, the project {q} per cent and the exam {r} per cent. What is the final mark in points?",
)
_WEIGHTED_HARD = (
    "The final mark in {subject} is made up of homework ({p} per cent), a project ({q} per cent) and an exam ({r} per "
    "cent). For homework the average of all sheets counts, after the worst of them has been left out. {name} has "
    "sheets with {s1}, {s2}, {s3} and {s4} points, {b} points for the project and {c} in the exam. {other} has "
    "{theirs} points in the exam. How many points is the final mark of {name}?",
    "In {subject}, homework counts {p} per cent of the final mark, a project {q} per cent and the exam {r} per cent. "
    "{name} got {s1}, {s2}, {s3} and {s4} points for four sheets of homework, of which only the best three count, "
    "with equal weight; {b} points for the project; {c} in the exam, where {other} got {theirs}. What is the final "
    "mark of {name} in points?",
)


@family("weighted_mark", topic="education", answer_type="numeric", tiers=("standard", "hard"), bank="train")
def weighted_mark(rng: random.Random, tier: str) -> Draw:
    hard = tier == "hard"
    p, q = rng.choice([10, 20, 25, 30]), rng.choice([10, 20, 25, 30, 40])
    r = 100 - p - q
    sheets = [rng.randint(35, 99) for _ in range(4)]
    kept = sorted(sheets)[1:]
    a = sum(kept) // 3 if hard else rng.randint(35, 99)
    b, c = rng.randint(35, 99), rng.randint(35, 99)
    points = p * a + q * b + r * c
    if points % 100 or max(a, b, c) - min(a, b, c) < 12 or p == q or (hard and (sum(kept) % 3 or len(set(sheets)) < 4)):
        return weighted_mark(rng, tier)
    name, other = rng.sample(PEOPLE, 2)
    theirs = rng.choice([x for x in range(35, 99) if x != c])
    query = filled(
        rng.choice(_WEIGHTED_HARD if hard else _WEIGHTED), subject=rng.choice(_SUBJECTS), name=name, other=other,
        p=p, q=q, r=r,
        a=a, b=b, c=c, theirs=theirs, **{f"s{i}": sheet for i, sheet in enumerate(sheets, 1)},
    )  # fmt: skip
    mistakes = [
        foils.misconception(round(Fraction(a + b + c, 3)), "took the plain average of the three"),
        foils.confused(round(Fraction(q * a + p * b + r * c, 100)), "exchanged the weights of homework and project"),
        foils.confused(round(Fraction(r * a + q * b + p * c, 100)), "exchanged the weights of homework and exam"),
        foils.overgeneralized(max(a, b, c), "took the best part for the whole"),
    ]
    if hard:
        mistakes = [
            foils.overgeneralized(
                round(Fraction(p * sum(sheets), 400) + Fraction(q * b + r * c, 100)), "counted all four sheets"
            ),
            foils.misread(round(Fraction(p * max(sheets) + q * b + r * c, 100)), "counted the best sheet only"),
            foils.confused(round(Fraction(p * a + q * b + r * theirs, 100)), f"took the exam of {other}"),
            *mistakes[:3],
        ]

    def hundred_parts(numbers: list[int]) -> object:
        v = query.read(numbers)
        homework = v.a if not hard else Fraction(sum((v.s1, v.s2, v.s3, v.s4)) - min(v.s1, v.s2, v.s3, v.s4), 3)
        return mean([Fraction(homework)] * v.p + [Fraction(v.b)] * v.q + [Fraction(v.c)] * v.r)

    return Draw(query.text, str(points // 100), mistakes, hundred_parts)


_PASS = (
    "To pass {subject}, one needs an average of at least {least} points in the three tests and at least {floor} "
    "points in each of them. {name} has {a}, {b} and {c} points. {asked}",
    "{name} scored {a}, {b} and {c} points in the three tests in {subject}. The course is passed with an average of "
    "at least {least} points, provided that there are at least {floor} points in each test. {asked}",
)
_PASS_HARD = (
    "To pass {subject}, one needs an average of at least {least} points in the three tests and at least {floor} "
    "points in each of them. Only one test below {floor} may be repeated, and the new result then replaces the old "
    "one, even if it is lower. {name} scored {a}, {b} and {c} points and repeated the {which} test with {new} points. "
    "{other} passed with an average of {theirs}. {asked}",
    "{subject2} is passed with an average of at least {least} points in three tests, provided that none of them is "
    "below {floor} points. {name} had {a}, {b} and {c} points, then repeated the {which} test and got {new}. What "
    "counts is the repeated test, not the old result, whichever is better. {other}, with an average of {theirs}, has "
    "passed. {asked}",
)


@family("passes", topic="education", answer_type="boolean", tiers=("standard", "hard"), bank="dev")
def passes(rng: random.Random, tier: str) -> Draw:
    hard, fails, want = tier == "hard", coin(rng), coin(rng)
    while True:
        least, floor = rng.randint(50, 70), rng.randint(30, 48)
        marks = [rng.randint(floor - 12, 99) for _ in range(3)]
        which, new = (marks.index(min(marks)), rng.randint(floor - 5, 85)) if hard else (0, 0)
        final = [new if hard and i == which else mark for i, mark in enumerate(marks)]
        enough, each = sum(final) >= 3 * least, min(final) >= floor
        close = abs(sum(final) - 3 * least) <= 14 or (enough and not each)
        if hard and (min(marks) >= floor or sorted(marks)[1] < floor):
            continue
        if (enough and each) is want and close and (want or enough != each):
            break
    name, other = rng.sample(PEOPLE, 2)
    subject = rng.choice(_SUBJECTS)
    asked = rng.choice(
        [f"Does {name} fail?", f"Has {name} failed?"] if fails else [f"Does {name} pass?", f"Has {name} passed?"]
    )
    q = filled(
        rng.choice(_PASS_HARD if hard else _PASS), subject=subject, subject2=subject, name=name, other=other,
        asked=asked, least=least,
        floor=floor, a=marks[0], b=marks[1], c=marks[2], which=("first", "second", "third")[which], new=new,
        theirs=rng.randint(least, 90),
    )  # fmt: skip

    def outcome(passed: bool) -> str:
        return yes_no(passed is not fails)

    mistakes = [
        foils.misread(outcome(sum(marks) >= 3 * least and min(marks) >= floor), "overlooked the repeated test")
        if hard
        else None,
        foils.overgeneralized(outcome(enough), "let the average alone decide"),
        foils.overgeneralized(outcome(each), "let the single tests alone decide"),
        foils.misconception(outcome(sorted(final)[1] >= least and each), "took the middle result for the average"),
        foils.off_by(outcome(sum(final) > 3 * least and min(final) > floor), "asked for more than the limit"),
        foils.slip(outcome(not (enough and each)), "added the points wrongly"),
    ]

    def judged(numbers: list[int]) -> str:
        v = q.read(numbers)
        results = dict(enumerate((v.a, v.b, v.c)))
        if hard:
            results[which] = v.new
        good = mean(map(Fraction, results.values())) >= v.least and not any(
            x in range(v.floor) for x in results.values()
        )
        return outcome(good)

    return Draw(q.text, outcome(want), [m for m in mistakes if m], judged)


_MISS = (
    "{course} has {total} lessons, and at least {rate} per cent of them must be attended. So far {name} has missed "
    "{missed}. How many more lessons may {name} miss?",
    "Of the {total} lessons of {course}, {name} has missed {missed} so far. To be admitted to the exam one must "
    "attend at least {rate} per cent of all lessons. How many of the remaining lessons can {name} still miss?",
)


@family("may_miss", topic="education", answer_type="numeric", tiers=("standard",), bank="eval")
def may_miss(rng: random.Random, tier: str) -> Draw:
    total, rate = rng.randint(24, 120), rng.choice([60, 70, 75, 80, 85, 90])
    must = -(-total * rate // 100)
    missed = rng.randint(2, 14)
    gold = total - must - missed
    if gold < 2:
        return may_miss(rng, tier)
    name = rng.choice(PEOPLE)
    q = filled(
        rng.choice(_MISS), course=a(f"{rng.choice(_SUBJECTS)} course"), name=name, total=total, rate=rate, missed=missed
    )

    def lesson_by_lesson(numbers: list[int]) -> int:
        v = q.read(numbers)
        return max(k for k in range(v.total) if Fraction(v.total - v.missed - k, v.total) >= Fraction(v.rate, 100))

    return Draw(
        q.text,
        str(gold),
        [
            foils.misread(gold + missed, "forgot the lessons missed already"),
            foils.misconception(100 - rate - missed, "took the per cent for lessons"),
            foils.misconception(
                round((total - missed) * (100 - rate) / 100), "took the per cent of the rest of the course"
            ),
            foils.off_by(gold + 1, "let the attendance fall just below the limit"),
            foils.off_by(gold - 1, "asked for more than the limit"),
            foils.confused(must - missed, "gave lessons that must be attended"),
        ],
        lesson_by_lesson,
    )
