"""Items of MisleadQA for tests: written by hand, two or three of each source-scope group, and a frozen release."""

import dataclasses

from scope.pool.misleadqa.release import freeze, report
from scope.scopes import Edit, ScopedItem

#: source, dimension, question, gold, lure, two distractors, G, S, cluster, dependency group.
FACTS = [
    (
        *("minimum_wage", "time", "What was the state minimum wage of Ohio on 1 January 2007, in dollars per hour?"),
        *("$6.85", "$7.00", "$8.10", "$4.25"),
        "On 1 January 2007 the minimum wage of Ohio was $6.85 per hour.",
        "On 1 January 2008 the minimum wage of Ohio was $7.00 per hour.",
        *("Ohio", "wages"),
    ),
    (
        *("minimum_wage", "time", "What was the state minimum wage of Maine on 1 January 2010, in dollars per hour?"),
        *("$7.50", "$7.25", "$6.00", "$9.00"),
        "On 1 January 2010 the minimum wage of Maine was $7.50 per hour.",
        "On 1 January 2009 the minimum wage of Maine was $7.25 per hour.",
        *("Maine", "wages"),
    ),
    (
        *(
            "minimum_wage",
            "location",
            "What was the state minimum wage of Ohio on 1 January 2012, in dollars per hour?",
        ),
        *("$7.70", "$8.67", "$8.25", "$7.25"),
        "On 1 January 2012 the minimum wage of Ohio was $7.70 per hour.",
        "On 1 January 2012 the minimum wage of Vermont was $8.67 per hour.",
        *("Ohio", "wages"),
    ),
    (
        *(
            "minimum_wage",
            "location",
            "What was the state minimum wage of Utah on 1 January 2015, in dollars per hour?",
        ),
        *("$7.25", "$9.15", "$8.00", "$9.47"),
        "On 1 January 2015 the minimum wage of Utah was $7.25 per hour.",
        "On 1 January 2015 the minimum wage of Vermont was $9.15 per hour.",
        *("Utah", "wages"),
    ),
    (
        *("situatedqa", "time", "Who was president of the United States on 1 March 2005?"),
        *("George W. Bush", "Bill Clinton", "Barack Obama", "Ronald Reagan"),
        "George W. Bush was president of the United States on 1 March 2005.",
        "Bill Clinton was president of the United States on 1 March 1997.",
        *("president", "people"),
    ),
    (
        *("situatedqa", "time", "Which city hosted the summer olympic games of 2012?"),
        *("London", "Beijing", "Athens", "Sydney"),
        "London hosted the summer olympic games of 2012.",
        "Beijing hosted the summer olympic games of 2008.",
        *("olympics", "olympics"),
    ),
    (
        *("situatedqa", "location", "What is the capital of France?"),
        *("Paris", "Madrid", "Rome", "Vienna"),
        "The capital of France is Paris.",
        "The capital of Spain is Madrid.",
        *("capital", "capitals"),
    ),
    (
        *("situatedqa", "location", "Which currency is used in Japan?"),
        *("the yen", "the won", "the baht", "the rupee"),
        "In Japan the currency is the yen.",
        "In South Korea the currency is the won.",
        *("currency", "currencies"),
    ),
    (
        *("ambigdocs", "entity", "In which year was the physicist James Clerk Maxwell born?"),
        *("1831", "1907", "1879", "1911"),
        "James Clerk Maxwell, the physicist, was born in 1831.",
        "James Maxwell, the footballer, was born in 1907.",
        *("Maxwell", "Maxwell"),
    ),
    (
        *("ambigdocs", "entity", "On which continent does the country Georgia lie?"),
        *("Asia", "North America", "Africa", "South America"),
        "Georgia, the country on the Black Sea, lies in Asia.",
        "Georgia, the state of the union, lies in North America.",
        *("Georgia", "Georgia"),
    ),
    (
        *("ambigdocs", "entity", "How many legs has the insect called mantis?"),
        *("six", "ten", "eight", "four"),
        "The mantis, an insect, has six legs.",
        "The mantis shrimp, a crustacean, has ten legs.",
        *("mantis", "mantis"),
    ),
    (
        *("condambigqa", "condition", "At which temperature does water boil at sea level?"),
        *("100 °C", "71 °C", "93 °C", "120 °C"),
        "At sea level water boils at 100 °C.",
        "On the summit of Everest water boils at 71 °C.",
        *("boiling", "boiling"),
    ),
    (
        *("condambigqa", "condition", "How long is a marathon for adults?"),
        *("42.2 km", "21.1 km", "10 km", "5 km"),
        "For adults a marathon is 42.2 km long.",
        "For juniors the long run is 21.1 km long.",
        *("marathon", "marathon"),
    ),
]


def scoped(n, **changed):
    """The n-th item; gold and lure move around A to D with n."""
    source, dimension, question, gold, lure, one, two, g, s, cluster, group = FACTS[n]
    start = g.index(gold)
    edit = Edit(start, start + len(gold), lure)
    options = [gold, lure, one, two]
    options = options[n % 4 :] + options[: n % 4]
    made = ScopedItem(
        id=f"m{n}",
        source=source,
        dimension=dimension,
        question=question,
        options=tuple(options),
        gold="ABCD"[options.index(gold)],
        lure="ABCD"[options.index(lure)],
        g=g,
        s=s,
        f=g[:start] + lure + g[start + len(gold) :],
        edits=(edit,),
        target={dimension: "target"},
        alternative={dimension: "alternative"},
        cluster=cluster,
        dependency_group=group,
        split="condition" if dimension == "condition" else "main",
        provenance={
            "method": "written for a test",
            "gold": {"row": "1"},
            "lure": {"row": "2"},
            "distractors": [{"row": "3"}, {"row": "4"}],
        },
    )
    return dataclasses.replace(made, **changed)


ITEMS = [scoped(n) for n in range(len(FACTS))]


def release(folder, items=ITEMS):
    """A release of the items, frozen; returns its folder."""
    freeze(folder, items, report(items, {}, "1.0.0", 0, "by hand"))
    return folder
