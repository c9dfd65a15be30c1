"""Words that state an answer by themselves. No context may hold them but in the place of its value."""

from scope.numerals import NUMBER_WORDS, SMALL, TENS

__all__ = ["NUMBER_LIKE", "NUMBER_WORDS", "SMALL", "TENS", "YES_NO"]
#: Words that stand for a number without being one of the counted words.
NUMBER_LIKE = frozenset(
    """hundred thousand million billion dozen half quarter double triple twice thrice once couple pair first
    second third fourth fifth sixth seventh eighth ninth tenth single""".split()  # noqa: SIM905
)
YES_NO = {"yes": "yes", "true": "yes", "no": "no", "false": "no"}
