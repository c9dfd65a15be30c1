"""Numbers, units and abbreviations in one form: every spelling that is promised, and no other."""

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scope.pool.naming import letters
from scope.pool.plain import plain_faults
from scope.pool.quantities import holds, numbers, same_text, tokens


@pytest.mark.parametrize(
    ("same", "value"),
    [
        (("44 billion", "$44bn", "44,000,000,000", "44 000 000 000", "forty-four billion", "44e9"), 44 * 10**9),
        (
            ("1.5k", "1,500", "one thousand five hundred", "fifteen hundred", "1.5 thousand", "1.5 × 10^3", "１５００"),
            1500,
        ),
        (("a dozen", "12", "twelve", "12.0", "12th", "one dozen"), 12),
        (("½", "1/2", "0.5", "half", "one half", "a half", r"\frac{1}{2}", r"$\dfrac12$", ".5"), Fraction(1, 2)),
        (("2½", "2 1/2", "two and a half", "2.5"), Fraction(5, 2)),
        (("3/4", "¾", "three quarters", "0.75", "three-fourths", "3 quarters"), Fraction(3, 4)),
        (("25%", "25 percent", "25 per cent", "twenty-five percent", r"25\%"), 25),
        (("25%", "0.25", "a quarter", "25 pct"), Fraction(1, 4)),
        (("one hundred and five", "105", "one hundred five", "a hundred and five", "105th"), 105),
        (("two thousand", "2000", "2k", "2,000", "twenty hundred"), 2000),
        (("twenty-first", "21st", "21", "twenty one"), 21),
        (("-5", "−5", "minus five", "negative 5", "-$5"), -5),
        (("half a million", "500,000", "0.5m", "five hundred thousand"), 500_000),
        (("$5m", "5 million", "£5m", "5M"), 5 * 10**6),
        (("two thousand, three hundred and five", "2305"), 2305),
        (("three point one four", "3.14"), Fraction(157, 50)),
        (("twice", "double", "a pair", "a couple", "two"), 2),
    ],
)
def test_a_number_reads_the_same_in_every_spelling(same, value):
    for text in same:
        assert value in numbers(f"They say {text} in all."), text
        assert value in numbers(text), text


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("10-15", {10, 15}),
        ("12:30", {12, 30}),
        ("H2O and B12", set()),
        ("one or two", {1, 2}),
        ("30 seconds", {30}),
        ("one second", {1}),
        ("the second of May", {2}),
        ("x-1", {1}),
        ("420 or 4.2", {420, Fraction(21, 5)}),
        ("nineteen eighty-four", {19, 84}),
        ("hundreds of dozens", set()),
        ("everyone, someone, often", set()),
        ("9" * 5000, set()),
        ("", set()),
    ],
)
def test_numbers_are_read_exactly(text, values):
    assert numbers(text) == values


ONES = """zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen
seventeen eighteen nineteen""".split()  # noqa: SIM905
TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]


def in_words(n, joined, hyphen):
    if n < 20:
        return ONES[n]
    if n < 100:
        return TENS[n // 10 - 2] + (hyphen + ONES[n % 10] if n % 10 else "")
    if n < 1000:
        return ONES[n // 100] + " hundred" + (joined + in_words(n % 100, joined, hyphen) if n % 100 else "")
    rest = n % 1000
    between = joined if rest < 100 else " "
    return (
        in_words(n // 1000, joined, hyphen) + " thousand" + (between + in_words(rest, joined, hyphen) if rest else "")
    )


@settings(deadline=None)
@given(st.integers(0, 9999), st.sampled_from([" and ", " "]), st.sampled_from(["-", " "]), st.booleans())
def test_number_words_are_numbers(n, joined, hyphen, capital):
    text = in_words(n, joined, hyphen)
    text = text.capitalize() if capital else text
    assert numbers(f"It is {text}.") == {n} and tokens(text) == [str(n)] and holds(f"It is {n:,}, no more", text)


@settings(deadline=None, max_examples=60)
@given(st.text(max_size=300))
def test_any_text_can_be_read(text):
    tokens(text), numbers(text), letters(text), plain_faults(text)
    assert holds(text, text) or not tokens(text)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("U.S.", "USA"),
        ("the United States", "US"),
        ("U.K.", "United Kingdom"),
        ("5 km", "five kilometres"),
        ("5km", "5.0 Kilometers"),
        ("3 kg", "three kilograms"),
        ("2 hrs", "two hours"),
        ("60 mph", "60 miles per hour"),
        ("60 km/h", "60 kilometres per hour"),
        ("$5", "5 dollars"),
        ("25%", "0.25"),
        ("The hat!", "hat"),
        ("well-known", "well known"),
        ("salt & pepper", "salt and pepper"),
        ("3rd", "third"),
        ("a hat", "an HAT"),
    ],
)
def test_texts_that_say_the_same(one, other):
    assert same_text(one, other) and same_text(other, one)
    assert holds(f"They say {one}, you see", other) or "%" in one


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("5 km", "5 m"),
        ("5 kg", "5"),
        ("25%", "25"),
        ("x + 1", "x - 1"),
        ("(0, 1)", "[0, 1]"),
        ("-3", "3"),
        ("3rd", "3"),
        ("tell us", "tell USA"),
        ("1:2", "1.2"),
        ("per dollar", ""),
        ("<", ">"),
        ("∅", "∞"),
    ],
)
def test_texts_that_say_something_else(one, other):
    assert not same_text(one, other)
