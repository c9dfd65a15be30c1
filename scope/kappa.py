"""Agreement of two raters beyond chance, for judges, annotators and matchers alike."""

from collections import Counter
from collections.abc import Hashable, Sequence
from fractions import Fraction


def kappa(a: Sequence[Hashable], b: Sequence[Hashable]) -> float | None:
    """Cohen's kappa of two raters' labels of the same things, in [-1, 1].

    None where it is undefined: without anything rated, and where both always give the same one label. Raises
    ValueError for lists of different lengths.
    """
    n = len(a)
    equal = sum(x == y for x, y in zip(a, b, strict=True))
    by_a, by_b = Counter(a), Counter(b)
    by_chance = sum(by_a[label] * by_b[label] for label in by_a)
    if by_chance == n * n:
        return None
    return float(Fraction(n * equal - by_chance, n * n - by_chance))
