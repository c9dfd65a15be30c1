"""Number words, in one table: whoever reads or writes them takes them from here."""

import re

SMALL = tuple(
    """zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen
    seventeen eighteen nineteen""".split()  # noqa: SIM905
)
TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
NUMBER_WORDS = {word: i for i, word in enumerate(SMALL)} | {word: 10 * i for i, word in enumerate(TENS, 2)}
#: One number from zero to a hundred in words.
TO_A_HUNDRED = re.compile(
    rf"(?<![\w-])(?:(?P<hundred>(?:a|one) hundred)|(?P<tens>{'|'.join(TENS)})(?:[- ](?P<ones>{'|'.join(SMALL[1:10])}))?"
    rf"|(?P<small>{'|'.join(sorted(SMALL, key=len, reverse=True))}))(?![\w-])",
    re.IGNORECASE,
)


def to_a_hundred(found: re.Match[str]) -> int:
    """The number that a match of TO_A_HUNDRED names."""
    if found["hundred"]:
        return 100
    return sum(NUMBER_WORDS[word.lower()] for word in (found["tens"], found["ones"], found["small"]) if word)
