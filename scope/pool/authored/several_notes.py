"""Several short notes by different people: the newest counts, or facts of two notes are combined."""

import random

from scope.pool import foils
from scope.pool.authored.registry import Draw, family
from scope.pool.authored.wording import DAYS, MONTHS, PEOPLE, coin, filled, yes_no

#: what is ordered: plural, what for
_NEEDS = (
    ("chairs", "the wedding"), ("lunch boxes", "the outing"), ("helmets", "the bike tour"), ("tents", "the camp"),
    ("name tags", "the fair"), ("life jackets", "the boat trip"), ("music stands", "the concert"), ("tables",
    "the flea market"),
    ("umbrellas", "the parade"), ("sleeping bags", "the night hike"),
)  # fmt: skip
_NEWEST = (
    '{name1}, {day1} {month}: "We need {a} {things}." {name2}, {day2} {month}: "We need {b} {things}." {name3}, '
    '{day3} {month}: "We need {c} {things}." A newer message replaces the older ones. How many {things} are needed '
    "for {event}?",
    "Three messages about {event}. {name1} on {day1} {month}: please order {a} {things}. {name2} on {day2} {month}: "
    "please order {b} {things}. {name3} on {day3} {month}: please order {c} {things}. Only the latest message counts. "
    "How many {things} are to be ordered?",
)
_NEWEST_HARD = (
    'Messages about {event}, each of which replaces older ones on the same matter. {name1}, {day1} {month}: "We need '
    '{a} {things}." {name2}, {day2} {month}: "The {things} cost {p} dollars each." {name3}, {day3} {month}: "We need '
    '{b} {things}." {name4}, {day4} {month}: "The {things} cost {r} dollars each." {name2}, {day5} {month}: "For my '
    'own party I bought {own} {things}." How many dollars do the {things} for {event} cost in all?',
    'Only the latest word on a matter counts. {name3} on {day3} {month}: "For {event} I would order {b} {things}." '
    '{name2} on {day5} {month}: "I bought {own} {things} for my own party." {name4} on {day4} {month}: "The {things} '
    'are {r} dollars each." {name1} on {day1} {month}: "For {event} I would order {a} {things}." {name2} on {day2} '
    '{month}: "The {things} are {p} dollars each." How many dollars do the {things} for {event} cost in all?',
)


@family("newest_note", topic="multi-note retrieval", answer_type="numeric", tiers=("standard", "hard"), bank="train")
def newest_note(rng: random.Random, tier: str) -> Draw:
    hard = tier == "hard"
    (things, event), month = rng.choice(_NEEDS), rng.choice(MONTHS)
    names = rng.sample(PEOPLE, 4)
    days = rng.sample(range(1, 29), 5)
    a, b, c = rng.sample(range(12, 60), 3)
    own = rng.choice([k for k in range(5, 30) if k not in (a, b)])
    p, r = rng.sample(range(4, 16), 2)
    kind = rng.randrange(2)
    people = {f"name{i}": name for i, name in enumerate(names, 1)}
    dates = {f"day{i}": day for i, day in enumerate(days, 1)}
    q = filled(
        (_NEWEST_HARD if hard else _NEWEST)[kind], **people, **dates, things=things, event=event, month=month,
        a=a, b=b, c=c,
        own=own, p=p, r=r,
    )  # fmt: skip
    if hard:
        amount, old = (a, b) if days[0] > days[2] else (b, a)
        price, before = (p, r) if days[1] > days[3] else (r, p)
        gold = amount * price
        mistakes = [
            foils.misread(old * price, "took the older number of pieces"),
            foils.misread(amount * before, "took the older price"),
            foils.overgeneralized((b * r) if kind == 0 else (a * p), "took the message further down for the newer one"),
            foils.confused(own * price, f"took what {names[1]} bought"),
            foils.overgeneralized((amount + own) * price, "counted another order as well"),
            foils.misconception((a + b) * price, "added the orders up"),
        ]
    else:
        by_date = [value for _, value in sorted(zip(days, (a, b, c), strict=False))]
        gold = by_date[2]
        mistakes = [
            foils.overgeneralized(c, "took the message further down for the newer one"),
            foils.misread(by_date[0], "took the oldest message"),
            foils.confused(by_date[1], "took the message before the latest"),
            foils.misconception(a + b + c, "added all messages up"),
            foils.misconception(by_date[1] + by_date[2], "added the two latest messages up"),
            foils.confused(a, "took the message that comes first"),
        ]

    def replayed(numbers: list[int]) -> int:
        v = q.read(numbers)
        state: dict[str, int] = {}
        if hard:
            said = [(v.day1, "n", v.a), (v.day2, "price", v.p), (v.day3, "n", v.b), (v.day4, "price", v.r)]
        else:
            said = [(v.day1, "n", v.a), (v.day2, "n", v.b), (v.day3, "n", v.c)]
        for _, key, value in sorted(said):
            state[key] = value
        return sum([state["n"]] * state.get("price", 1))

    return Draw(q.text, str(gold), mistakes, replayed)


_COMBINED = (
    '{name1} writes: "{n} people are coming to {event}." {name2} writes: "Each of them gets {k} {things}." {name3} '
    'writes: "We already have {have} {things}." How many {things} are still missing?',
    "Note from {name3}: there are {have} {things} in stock. Note from {name2}: plan {k} {things} per person. Note "
    "from {name1}: for {event}, {n} people have signed up. How many {things} must be bought?",
)
_COMBINED_HARD = (
    '{name1}, Monday: "{n} people are coming to {event}." {name2}, Tuesday: "Each of them gets {k} {things}." '
    '{name3}, Wednesday: "There are {have} {things} in the kitchen, but {bad} of them are spoiled." {name1}, '
    'Thursday: "{more} people have {turned}." {name4}, Thursday: "The other party has {guests} guests." How many '
    "{things} must be bought for {event}?",
    'Notes for {event}. {name3}: "{have} {things} are left over from last time; {bad} of them cannot be used." '
    '{name1}: "{n} people on the list." {name1}, a day later: "{more} more people have {turned}." {name2}: "{k} '
    '{things} for each person." {name4}: "The office party had {guests} guests." How many {things} are still needed?',
)
_SERVED = (
    ("sandwiches", "the picnic"), ("pancakes", "the brunch"), ("muffins", "the reading"), ("sausages",
    "the barbecue"),
    ("meatballs", "the buffet"), ("apples", "the hike"), ("dumplings", "the street party"), ("bread rolls",
    "the reunion"),
)  # fmt: skip


@family("notes_combined", topic="multi-note retrieval", answer_type="numeric", tiers=("standard", "hard"), bank="eval")
def notes_combined(rng: random.Random, tier: str) -> Draw:
    hard = tier == "hard"
    things, event = rng.choice(_SERVED)
    n, k, have = rng.randint(8, 30), rng.randint(2, 5), rng.randint(6, 40)
    bad, more, guests = rng.randint(2, 5), rng.randint(2, 6), rng.randint(7, 40)
    joined = coin(rng)
    template = rng.choice(_COMBINED_HARD if hard else _COMBINED)
    people = n + (more if joined else -more) if hard else n
    usable = have - bad if hard else have
    gold = people * k - usable
    if gold < 5 or guests == people:
        return notes_combined(rng, tier)
    names = {f"name{i}": name for i, name in enumerate(rng.sample(PEOPLE, 4), 1)}
    q = filled(
        template.replace("{more} more people", "{more} people") if not joined else template.replace("{more} people",
        "{more} more people"),
        **names, n=n, k=k, have=have, bad=bad, more=more, guests=guests, things=things, event=event,
        turned="signed up" if joined else "cancelled",
    )  # fmt: skip
    mistakes = [
        foils.misread(people * k, "forgot what is there already"),
        foils.misread(people * k + usable, "added what is there already"),
        foils.misconception(people - usable + k if people > usable else people + k, "added instead of multiplying"),
        foils.confused(have * k - people, "exchanged the people and the store"),
        foils.slip(gold + 10, "was out by ten"),
    ]
    if hard:
        mistakes = [
            foils.misread(n * k - usable, "overlooked the change in the number of people"),
            foils.overgeneralized(people * k - have, "took everything in the store for usable"),
            foils.misread((2 * n - people) * k - usable, "changed the number of people the wrong way"),
            foils.confused(guests * k - usable, "took the guests of another party"),
            *mistakes[:2],
        ]

    def dealt(numbers: list[int]) -> int:
        v = q.read(numbers)
        guests_now = [*range(v.n), *range(v.more)] if hard and joined else list(range(v.n))[v.more if hard else 0 :]
        store = list(range(v.have))[v.bad if hard else 0 :]
        missing = 0
        for _ in guests_now:
            for _ in range(v.k):
                if store:
                    store.pop()
                else:
                    missing += 1
        return missing

    return Draw(q.text, str(gold), mistakes, dealt)


_WHERE = (
    '{name1}, {day1} {month}: "Choir practice is on {a}." {name2}, {day2} {month}: "Choir practice is on {b}." '
    '{name3}, {day3} {month}: "Choir practice is on {c}." The latest message counts. On which day is choir practice?',
    "Messages about the book club, of which the latest counts. {name1}, {day1} {month}: we meet on {a}. {name2}, "
    "{day2} {month}: let us meet on {b}. {name3}, {day3} {month}: it has to be {c}. On which day does the book club "
    "meet?",
)
_WHERE_HARD = (
    '{name1}, {day1} {month}: "Choir practice is on {a}." {name2}, {day2} {month}: "Choir practice is on {b}." '
    '{name3}, {day3} {month}: "The band meets on {c}." {name4}, {day4} {month}: "Choir practice is {shift} later than '
    'in the message of {name1}, whatever others wrote." The latest message about a group counts. On which day is '
    "choir practice?",
    "For each club the latest message counts. {name3}, {day3} {month}: the chess club meets on {c}. {name1}, {day1} "
    "{month}: the book club meets on {a}. {name4}, {day4} {month}: the book club meets {shift} later in the week than "
    "{name1} wrote. {name2}, {day2} {month}: the book club meets on {b}. On which day does the book club meet?",
)


@family(
    "notes_day", topic="multi-note retrieval", answer_type="multiple_choice", tiers=("standard", "hard"), bank="train"
)
def notes_day(rng: random.Random, tier: str) -> Draw:
    hard = tier == "hard"
    month = rng.choice(MONTHS)
    a, b, c = rng.sample(range(7), 3)
    step = rng.randint(1, 2)
    dates = rng.sample(range(1, 29), 4)
    later = a + step
    if hard and (later > 6 or later in (b, c) or dates[3] < dates[0]):
        return notes_day(rng, tier)
    said = {0: a, 1: b, 3: later} if hard else {0: a, 1: b, 2: c}
    ranked = sorted(said, key=lambda i: dates[i])
    gold = said[ranked[2]]
    names = {f"name{i}": name for i, name in enumerate(rng.sample(PEOPLE, 4), 1)}
    q = filled(
        rng.choice(_WHERE_HARD if hard else _WHERE), **names, **{f"day{i}": day for i, day in enumerate(dates, 1)},
        month=month,
        a=DAYS[a], b=DAYS[b], c=DAYS[c], shift="one day" if step == 1 else "two days",
    )  # fmt: skip
    wrong = [
        foils.overgeneralized(said[max(said)], "took the message further down for the newer one"),
        foils.confused(said[ranked[1]], "took the message before the latest"),
        foils.misread(said[ranked[0]], "took the oldest message"),
        foils.off_by((gold + 1) % 7, "counted one day too far"),
        foils.off_by((gold - 1) % 7, "counted one day too few"),
        foils.near((gold + 3) % 7, "took another day of the week"),
    ]
    if hard:
        wrong[:0] = [
            foils.confused(c, "took the day of another group"),
            foils.misread((b + step) % 7, "counted on from another message")
            if ranked[2] == 3
            else foils.confused(later, "took an older message for the latest"),
        ]
    options = list(dict.fromkeys([gold, *(int(m.value) for m in wrong)]))[:4]

    def latest(numbers: list[int]) -> str:
        v = q.read(numbers)
        stamped = [(v.day1, a), (v.day2, b), (v.day4, a + step) if hard else (v.day3, c)]
        return DAYS[max(stamped)[1]]

    return Draw(
        q.text,
        DAYS[gold],
        [foils.Mistake(DAYS[int(m.value)], m.wrong_class, m.name) for m in wrong if int(m.value) in options],
        latest,
        [DAYS[option] for option in options],
        core=f"{sorted(dates)},{a},{b},{c},{step * hard}",
    )


_ALLOWED = (
    '{name1}, {day1} {month}: "The hut holds at most {limit} people." {name2}, {day2} {month}: "We are {group} people '
    'so far." {name3}, {day3} {month}: "Another {more} people want to come along." {asked}',
    "Note from {name2}: {group} guests have accepted. Note from {name3}: {more} more guests accepted today. Note from "
    "{name1}, who runs the place: at most {limit} guests are allowed. {asked}",
)
_ALLOWED_HARD = (
    '{name1}, {day1} {month}: "The hut holds at most {limit} people." {name2}, {day2} {month}: "{group} adults are '
    'coming." {name1}, {day3} {month}: "New rule: from now on at most {limit2} people, but children under {age} years '
    'are not counted." {name3}, {day4} {month}: "We also bring {more} children: {kids} of them are under {age} years '
    'old, the others are older." The newest rule counts. {asked}',
    '{name3}, {day4} {month}: "{group} adults and {more} children have signed up, {kids} of them under {age}." '
    '{name1}, {day3} {month}: "The boat may carry {limit2} people at most; children under {age} do not count." '
    '{name1}, {day1} {month}: "The boat may carry {limit} people at most." {name2}, {day2} {month}: "The tour lasts '
    '{hours} hours." Of two rules the newer one counts. {asked}',
)


@family("notes_allowed", topic="multi-note retrieval", answer_type="boolean", tiers=("standard", "hard"), bank="eval")
def notes_allowed(rng: random.Random, tier: str) -> Draw:
    hard, over, want = tier == "hard", coin(rng), coin(rng)
    group, more = rng.randint(8, 40), rng.randint(5, 12) if hard else rng.randint(2, 9)
    kids, age = rng.randint(2, more - 2) if hard else 0, rng.randint(4, 12)
    heads = group + more - kids
    bound = heads + (rng.choice([0, 1, 2, 4]) if want is not over else -rng.choice([1, 2, 3, 5]))
    other = heads + rng.choice([-7, -4, -2, 3, 6, 9])
    days = sorted(rng.sample(range(1, 29), 4))
    kind = rng.randrange(2)
    if other == bound or bound < 6 or other < 6:
        return notes_allowed(rng, tier)
    names = {f"name{i}": name for i, name in enumerate(rng.sample(PEOPLE, 3), 1)}
    asked = rng.choice(
        ("Is that too many people?", "Is the limit exceeded?")
        if over
        else ("May all of them come?", "Is the limit kept?")
    )
    q = filled(
        (_ALLOWED_HARD if hard else _ALLOWED)[kind], **names, **{f"day{i}": day for i, day in enumerate(days, 1)},
        month=rng.choice(MONTHS), limit=other if hard else bound, limit2=bound, group=group, more=more, kids=kids,
        age=age,
        hours=rng.randint(2, 5), asked=asked,
    )  # fmt: skip

    def outcome(people: int, limit: int) -> str:
        return yes_no((people > limit) is over)

    mistakes = [
        foils.misread(outcome(heads, other), "took the older rule") if hard else None,
        foils.overgeneralized(outcome(group, bound), "left out all children") if hard else None,
        foils.confused(outcome(group + kids, bound), "counted the wrong children") if hard else None,
        foils.misread(outcome(group + more, bound), "counted everybody") if hard else None,
        foils.off_by(outcome(heads + 1, bound), "took the limit itself for too many"),
        foils.misread(outcome(group, bound), "left out those who came later"),
        foils.confused(outcome(more, bound), "looked at the newcomers only"),
        foils.slip(yes_no(outcome(heads, bound) == "no"), "added wrongly"),
    ]

    def seat_by_seat(numbers: list[int]) -> str:
        v = q.read(numbers)
        seats = v.limit2 if hard else v.limit
        seats -= v.group
        for child in range(v.more):
            seats -= 0 if hard and child < v.kids else 1
        return yes_no((seats < 0) is over)

    return Draw(q.text, outcome(heads, bound), [m for m in mistakes if m], seat_by_seat)
