"""Words that state an answer by themselves. No context may hold them but in the place of its value."""

SMALL = tuple(
    """zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen
    seventeen eighteen nineteen""".split()  # noqa: SIM905
)
TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
NUMBER_WORDS = {word: i for i, word in enumerate(SMALL)} | {word: 10 * i for i, word in enumerate(TENS, 2)}
#: Words that stand for a number without being one of the counted words.
NUMBER_LIKE = frozenset(
    """hundred thousand million billion dozen half quarter double triple twice thrice once couple pair first
    second third fourth fifth sixth seventh eighth ninth tenth single""".split()  # noqa: SIM905
)
YES_NO = {"yes": "yes", "true": "yes", "no": "no", "false": "no"}
