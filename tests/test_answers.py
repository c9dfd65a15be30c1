"""Answers: the shared cases, our own table, and what must hold for any text (scope/answers)."""

import json
import math
import re
import time
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from scope.answers import (
    ANSWER_TYPES,
    Answer,
    flexible_answer,
    is_correct,
    parse_answer,
    render_answer,
    same_answer,
    split_thinking,
)

CASES = [json.loads(line) for line in (Path(__file__).parent / "fixtures/answers.jsonl").read_text().splitlines()]

# One completion a line, `\n` for a new line: the value it gives, `-` for unparsed, `?` for ambiguous.
# Multiple choice has four options, A to D.
MULTIPLE_CHOICE = r"""
The final answer is: C => C
**Final Answer:** C => C
The correct answer is B => B
the answer is option C => C
Answer: (C) text => C
The final answer is $\boxed{C}$. => C
The final answer is \boxed{\textbf{(C) }24} => C
The final answer is \boxed{\mathrm{C}} => C
\boxed{C. 24} => C
The answer is not C => -
The answer is a dog => -
The answer is a => A
The final answer is a. => A
The final answer is A => A
The answer is A good choice => -
The answer is A because it is cheap => A
The answer is I think => -
The answer is a, because => A
The final answer is either A or B => ?
The final answer is both A and B => ?
The final answer is A and B => ?
The final answer is A, B => ?
The final answer is A, B, and C => ?
The final answer is A/B => ?
The final answer is (A) or (B) => ?
The final answer is (A) 5 or (B) 6 => ?
The final answer is A or A => A
The final answer is between A and B => ?
The final answer is neither A nor B => -
The final answer is C, not A => C
The final answer is C, not A or B => C
The final answer is C but not A => C
The final answer is not A, but C => C
The final answer is not A but rather C => C
The final answer is A. (Option B is wrong.) => A
The final answer is C) => C
The final answer is [C] => C
The final answer is "C" => C
The final answer is 'C'. => C
The final answer is `C` => C
The final answer is C++ => -
The final answer is e.g. C => -
The final answer is C-sharp => -
The final answer is D'Artagnan => -
The final answer is 𝐂 => C
The final answer is Ⓒ => C
The final answer is <b>C</b> => C
The final answer is ✅ C => C
The final answer is C ✅ => C
The final answer is Option C: 24-pack => C
The final answer is choice (b) => B
The final answer is the letter C => C
The final answer is <answer>C</answer> => C
The final answer is ~~A~~ B => B
The final answer is C<|im_end|> => C
Answer: C</s> => C
Final answer\n\nC => C
## Final Answer\nC => C
### Answer\nC => C
**Answer**\n\nC => C
Answer\nC => -
Final Answer\n**C** => C
1. Final answer\nC => C
Answer:\n- C => C
Answer:\n\n\n(C) => C
最终答案是 C。 => C
答案是：C => C
参考答案：B => -
The answer is C, the key's answer: B => C
The final answer is C. The official answer is B. => C
The final answer is C. The wrong answer is B. => C
The final answer is C. If the answer is B, then => C
The final answer is C.\nThe final answer is => C
The final answer is C.\nThe final answer is <letter> => C
The final answer is C.\nThe final answer is "..." => C
The final answer is C.\nThe final answer is unclear => -
The final answer is C. (Format: "The final answer is <letter|number|yes or no>".) => C
The final answer, therefore, is C => C
The final answer (see above) is C => C
The answer to the question is B. => B
The final answer is **C**. => C
**The final answer is C** => C
The **final answer** is **C**. => C
_The final answer is_ **C** => C
THE FINAL ANSWER IS C => C
final answer is c => C
The answer is C, because A and B are wrong => C
The answer is B blue => -
(C) => C
C. => C
C) 24 => C
**C** => C
(C) a 24-pack => C
C. blue => C
C: blue => -
C because => -
Option C => C
A dog => -
a dog => -
A. The final answer is B => B
<think></think>C => C
<think>A</think>\n\nC => C
A</think>C => C
The final answer is C <think> => -
The final answer is \text{C} => C
The final answer is $\text{C}$ => C
The final answer is \(C\) => C
The final answer is $$C$$ => C
The final answer is\n\n$$\n\boxed{C}\n$$ => C
\boxed{A} or \boxed{B} => ?
\boxed{A} or B => ?
\boxed{A} => A
First \boxed{A}. Then \boxed{} => A
\boxed{A => -
\boxed => -
The final answer is C\nThe final answer is [letter] => C
The final answer is <A or B> => ?
The final answer is E => -
The final answer is AB => -
The final answer is B.4 => -
The final answer is all of the above => -
The final answer is D. All of the above => D
The final answer is D (all of the above) => D
The answer is that C is right => -
The final answer is C — the cheapest => C
The final answer is C - the cheapest => C
The final answer is definitely C => C
The final answer is C! => C
The final answer is C; => C
The final answer is: **C: 24-pack** => C
The final answer is C = 24 => -
The final answer isn't C => -
The final answer is 2 => -
The final answer is C which costs => C
The final answer is A to C => ?
The final answer is A-C => -
The final answer is a and b => ?
The final answer is C and a half => C
Answer: A: 5 => A
A: 5 => -
The correct answer is: (B) 12. => B
Question 3 Answer: B => B
Her previous answer: B => -
The final answer is not only A but also B => -
The final answer is \u200bC => C
"""

NUMERIC = r"""
The final answer is: 12 => 12
**Final Answer:** 42 => 42
The final answer is $\boxed{12}$. => 12
The final answer is 12 apples => 12
The final answer is 5 hours and 30 minutes => -
The final answer is 5 hours 30 minutes => -
The final answer is 5 ft. 10 in. => -
The final answer is 5'10" => -
The final answer is 2 1/2 => 2.5
The final answer is -2 1/2 => -2.5
The final answer is 2½ cups => 2.5
The final answer is ½ => 0.5
The final answer is -½ => -0.5
The final answer is 2\frac{1}{2} => 2.5
The final answer is $-\dfrac{3}{4}$ => -0.75
The final answer is \frac34 => 0.75
The final answer is 1,5 => -
The final answer is 12:30 => -
The final answer is 3 pm => -
The final answer is 2024-05-01 => -
The final answer is 5 May 2024 => -
The final answer is 12/05/2024 => -
The final answer is 10-15 => -
The final answer is 10–15 => -
The final answer is 10 to 15 => ?
The final answer is between 10 and 15 => ?
The final answer is 1/0 => -
The final answer is -0 => 0
The final answer is 1e400 => -
The final answer is 1e-400 => 0
The final answer is 10^2 => 100
The final answer is 10² => 100
The final answer is 3 x 10^5 => 300000
The final answer is $3 \times 10^{5}$ => 300000
The final answer is 3×10⁵ => 300000
The final answer is 3.2 \cdot 10^{-3} => 0.0032
The final answer is 3*10**5 => 300000
The final answer is 2^10 => -
The final answer is 5 m² => 5
The final answer is 5 m^2 => 5
The final answer is 9.8 m/s^2 => 9.8
The final answer is x = 5 => 5
The final answer is $x=5$. => 5
The final answer is x = 5, y = 6 => ?
The final answer is x = 5 or x = 6 => ?
The final answer is ±5 => ?
The final answer is 5 ± 1 => -
The final answer is 12 plus 13 equals 25 => 25
The final answer is 12 apples + 13 apples = 25 apples => 25
The final answer is (3 + 4) × 2 = 14 => 14
The final answer is 5 = x => -
The final answer is >= 5 => -
The final answer is < 5 => -
The final answer is ~5 => 5
The final answer is ≈ 3.14 => 3.14
The final answer is π ≈ 3.14 => 3.14
The final answer is 5π => -
The final answer is 5 pi => -
The final answer is 3\sqrt{2} => -
The final answer is 5th => -
The final answer is 5x => -
The final answer is 2x + 3 => -
The final answer is 5kg => 5
The final answer is 5 kg => 5
The final answer is 25°C => 25
The final answer is 25^\circ => 25
The final answer is 50\% => 50
The final answer is 12 percent => 12
The final answer is 12% of 50 => -
The final answer is $5 million => 5000000
The final answer is 5 hundred thousand => 500000
The final answer is 5k => -
The final answer is 5 dozen => -
The final answer is USD 12 => 12
The final answer is Rs. 500 => 500
The final answer is US$12 => 12
The final answer is €5 => 5
The final answer is 5 € => 5
The final answer is -$5 => -5
The final answer is $-5$ => -5
The final answer is +5 => 5
The final answer is (5) => 5
The final answer is 48 dollars for 6 people. => 48
The final answer is 72 apples in 3 days => 72
The final answer is 72 a day => 72
The final answer is 5 more than 3 => -
The final answer is 5 more apples => 5
The final answer is 3 out of 4 => -
The final answer is 5 or more => -
The final answer is at least 5 => -
The final answer is 24 and 48 => ?
The final answer is 24, 48 => ?
The final answer is 72, 24 for each child => -
The final answer is (1, 2) => ?
The final answer is {1, 2} => ?
The final answer is 3/4 or 0.75 => 0.75
The final answer is 50% or 0.5 => ?
The final answer is not 24 but 48 => 48
The final answer is 48, not 24 => 48
The final answer is 24 dollars or 48 dollars => ?
The final answer is either 24 or 48 => ?
The final answer is 12,345 => 12345
The final answer is 1,234,567.89 => 1234567.89
The final answer is 0,123 => -
The final answer is 1,2345 => -
The final answer is 1,23,456 => -
The final answer is 1 234,5 => -
The final answer is 1.234.567 => -
The final answer is 1\,234 => 1234
The final answer is 1{,}234 => 1234
The final answer is 1'234 => -
The final answer is 1_000 => -
The final answer is 0x1F => -
The final answer is inf => -
The final answer is 3.333... => -
The final answer is 5 1 => -
The final answer is - 5 => -
The final answer is --5 => -
The final answer is 72. Also 48. => 72
The final answer is 72. 24 + 48 = 72. => 72
The final answer is 72, since 70 + 2 = 72 => 72
The final answer is 12 + 13 = 25, since => 25
The final answer is 12+13 => -
The final answer is 2*3 => -
The final answer is 2*3 = 6 => 6
The final answer is 2**3 => -
The final answer is 120! => 120
The final answer is 5! = 120 => 120
The final answer is 120? => 120
The final answer is ５０ => 50
The final answer is ١٢ => -
The final answer is 12 (twelve) => 12
The final answer is 12 (or 13) => 12
The final answer is 5(3) => -
The final answer is (3)(4) => -
The final answer is 5/hour => 5
The final answer is 5 km per hour => 5
The final answer is **$48** => 48
The final answer is **48** dollars => 48
The final answer is $48$ dollars => 48
The final answer is \$48 => 48
The final answer is \text{48 dollars} => 48
The final answer is 48\text{ dollars} => 48
The final answer is $48 \, \text{kg}$ => 48
\boxed{48 \text{ dollars}} => 48
\boxed{\frac{3}{4}} => 0.75
\boxed{x = 5} => 5
\boxed{24} or \boxed{48} => ?
\boxed{24} or 48 => ?
The final answer is \boxed{24} dollars => 24
\[\boxed{24}\] => 24
Answer: 5 apples. => 5
A: 5 => -
#### 42 => 42
42 => 42
12 apples => 12
$5 => 5
-7 => -7
12 + 13 = 25 => 25
5 apples are left in the basket => -
42 km/h (26 mph) => 42
72, in total => -
I have 5 apples. => -
The answer is that she has 5 => -
The final answer is a total of 5 apples => 5
The final answer is exactly 5 => 5
The final answer is the number 5 => 5
The final answer is 2 and a half => -
The final answer is 2 and she is happy => 2
The final answer is 5 remainder 2 => -
The final answer is 1 2 => -
The final answer is 24; => 24
The final answer is 24 & 48 => ?
The final answer is 5:3 => -
The final answer is 12: because => 12
The final answer is 12 — because => 12
The final answer is 12 - 5 => -
The final answer is 12 - so 5 => 12
The final answer is 5-pack => -
The final answer is 1.5e => -
The final answer is 100 cm^3 => 100
The final answer is 5 \times 3 => -
The final answer is 5 times 3 => -
The final answer is 5 times as many => 5
The answer to 12 + 13 is 25 => 25
The answer to 2.5 times 2 is 5. => 5
答案：12 => 12
答案是12个 => 12
The final answer is 0.\overline{3} => -
The final answer is \infty => -
The final answer is 5.0 => 5
The final answer is 007 => 7
The final answer is 1/3 => 0.3333333333333333
The final answer is 3/4 cup => 0.75
The final answer is 1/2/3 => -
The final answer is 10<sup>2</sup> => 100
The final answer is 12. => 12
The final answer is 12.. => -
The final answer is minus 5 => -
The final answer is 12 dollars and 50 cents => -
The final answer is $12.50 per hour => 12.5
The final answer is 7 (seven), not 8 => 7
The final answer is -3.5% => -3.5
The final answer is 1.5E+3 => 1500
The final answer is 5 000 => 5000
The final answer is 1,000 000 => -
The final answer is approximately $1,200. => 1200
The final answer is about 5 or 6 => ?
The final answer is 12 divided by 4 => -
The final answer is 12 divided by 4 = 3 => 3
The final answer is 1 in 4 => -
The final answer is 5 apples at $2 = $10 => 10
The final answer is 72 because 2 + 3 = 5 => 72
The final answer is 5 apples at $2 each => 5
The final answer is 2, 3, or 5 => ?
The final answer is 1,000, 2,000 => ?
The final answer is 1,000, as required => 1000
The final answer is $10 - $3 = $7 => 7
The final answer is $3.50/lb => 3.5
The final answer is \( \frac{1}{2} \) => 0.5
The final answer is \frac{1}{2}x => -
The final answer is 7 o'clock => -
The final answer is 7 a.m. => -
The final answer is $ 5 => 5
The final answer is "5". => 5
The final answer is 48USD => 48
The final answer is 48 US dollars => 48
The final answer is 12 km (about 7.5 miles) => 12
The final answer is 答案是12个 => 12
Final Answer: The final answer is 5. I hope it is correct. => 5
The final answer is 5.\nThe final answer is <your answer> => 5
The final answer is **<number>** => -
The final answer is: 5\n\nThe answer to the first part is unclear. => -
The answer is 5. The answer to that is. => 5
5万 => -
The final answer is 5万 => -
My answer: 5 => 5
The final answer is 5\n---\n => 5
The final answer is\n---\n5 => 5
The final answer is 3 or three => -
The final answer is 2 x 4 => -
The final answer is 1e5 => 100000
The final answer is 1e5 m => 100000
The final answer is -1e-5 => -0.00001
The final answer is 3 : 4 => -
The final answer is 10,000 => 10000
The final answer is 10, 000 => ?
The final answer is 99.9% => 99.9
The final answer is 5 C => 5
The final answer is 5 cents => 5
The final answer is $0.05 => 0.05
The final answer is 5¢ => 5
The final answer is 5 + 5 => -
The final answer is (12 + 13) => -
The final answer is 5, 5 => 5
The final answer is 5 and 5 => 5
The final answer is 5 = 5.0 => 5
The final answer is N = 5 => 5
The final answer is cost = $25.00. => 25
The final answer is the cost: 25 => -
The final answer is 2^3 = 8 => 8
The final answer is √16 = 4 => 4
The final answer is \sqrt{16} = 4 => 4
The final answer is 5 \text{ m/s} => 5
The final answer is 5 \frac{m}{s} => 5
The final answer is ~~4~~ 5 => 5
The final answer is 12. 5 => 12
The final answer is 12 . => 12
The final answer is 12 ,5 => ?
"""

BOOLEAN = r"""
Final answer: yes => yes
The final answer is **Yes**. => yes
The final answer is Yes, because no one => yes
The final answer is no, not yes => no
The final answer is no one knows => -
The final answer is no solution => -
The final answer is no because => no
The final answer is No. Yes would be wrong => no
The final answer is yes/no => ?
The final answer is yes or no => ?
The final answer is either yes or no => ?
The final answer is not yes but no => no
The final answer is not yes => -
The final answer is not true => -
The final answer is True. => yes
The final answer is FALSE => no
The final answer is \boxed{\text{No}} => no
The final answer is (no) => no
The final answer is yes (true) => yes
The final answer is yes, yes => yes
The final answer is yes, no => ?
The final answer is yes, no problem => yes
The final answer is "no". => no
The final answer is maybe => -
The final answer is yesterday => -
The final answer is nothing => -
The final answer is no-one => -
The final answer is a definite no => no
The final answer is yes for A and no for B => -
The final answer is yes but no => ?
The final answer is neither yes nor no => -
答案：是 => yes
答案是否 => no
答案：不是。 => no
Yes. => yes
no => no
Yes, because => -
Yes. The sky is blue. => -
yes and no => ?
<yes> => yes
The final answer is <yes|no> => -
The final answer is [yes/no] => -
The final answer is [yes] => yes
The final answer is no it is not => no
The final answer is y => -
The final answer is yes! => yes
The final answer is correct => -
The final answer is no.\nThe final answer is <yes or no>. => no
The final answer is: ✅ Yes => yes
The final answer is **no**, the note is wrong => no
I must say whether the answer is yes or no => -
What if\n\nThe final answer is no => no
"""

TABLE = [
    (answer_type, *line.rpartition(" => ")[::2])
    for answer_type, block in zip(ANSWER_TYPES, (MULTIPLE_CHOICE, NUMERIC, BOOLEAN), strict=True)
    for line in block.strip().split("\n")
]
STATUS = {"-": "unparsed", "?": "ambiguous"}

# ------------------------------------------------------------------------------------------------- examples


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["text"][-40:])
def test_shared_cases(case):
    answer = parse_answer(case["text"], case["answer_type"], case["n_options"])
    assert answer == Answer(case["status"], case["value"])
    right = case["status"] == "ok" and (
        abs(Decimal(str(case["value"])) - Decimal(case["gold"])) <= Decimal("1e-4")
        if case["answer_type"] == "numeric"
        else case["value"] == case["gold"]
    )
    assert is_correct(answer, case["gold"], case["answer_type"]) is right


@pytest.mark.parametrize(("answer_type", "text", "expected"), TABLE)
def test_table(answer_type, text, expected):
    text = re.sub(r"\\n(?![a-z])", "\n", text.replace(r"\u200b", "\u200b"))
    answer = parse_answer(text, answer_type, 4 if answer_type == "multiple_choice" else None)
    value = None if expected in STATUS else float(expected) if answer_type == "numeric" else expected
    assert answer == Answer(STATUS.get(expected, "ok"), value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("no tags", ("", "no tags")),
        ("<think>a</think>b", ("a", "b")),
        ("a</think>b", ("a", "b")),
        ("a<think>b</think>c", ("b", "ac")),
        ("<think>a", ("a", None)),
        ("a<think>b", ("b", None)),
        ("<think>a<think>b</think>c", ("a<think>b", "c")),
        ("<think>a</think>b</think>c", ("ab", "c")),
        ("<think></think>\n\nb", ("", "\n\nb")),
        ("<THINK>a</THINK>b", ("a", "b")),
        ("<thinking>a</thinking>b", ("a", "b")),
        ("", ("", "")),
    ],
)
def test_split_thinking(text, expected):
    assert split_thinking(text) == expected


def test_letters_follow_the_number_of_options():
    assert parse_answer("The final answer is E", "multiple_choice", 4).status == "unparsed"
    assert parse_answer("The final answer is E", "multiple_choice", 5) == Answer("ok", "E")
    assert parse_answer("The final answer is Z", "multiple_choice") == Answer("ok", "Z")
    assert parse_answer("The answer is I", "multiple_choice", 10) == Answer("ok", "I")
    assert parse_answer("The answer is I am sure", "multiple_choice", 10).status == "unparsed"


# ------------------------------------------------------------------------------------------ more strict forms


@pytest.mark.parametrize("dash", ["-", "–", "—", "―", ":", " -", "−"])
@pytest.mark.parametrize(("answer_type", "payload", "value"), [
    ("multiple_choice", "(b)", "B"), ("numeric", "18", 18.0), ("boolean", "**no**", "no"),
])  # fmt: skip
def test_a_statement_may_be_joined_by_any_dash(dash, answer_type, payload, value):
    assert parse_answer(f"Reasons.\nFinal answer {dash} {payload}", answer_type) == Answer("ok", value)
    assert parse_answer(f"**Final answer** {dash} {payload}\n", answer_type) == Answer("ok", value)


@pytest.mark.parametrize("aside", ["The answer - as shown above - is clear", "My answer — a short one", "answer-book"])
def test_a_dash_before_what_is_no_value_takes_nothing_back(aside):
    assert parse_answer(f"The final answer is 5.\n{aside}.", "numeric") == Answer("ok", 5.0)


@pytest.mark.parametrize(("answer_type", "payload", "value"), [
    ("multiple_choice", "B", "B"), ("numeric", "1,218", 1218.0), ("numeric", "$18", 18.0), ("boolean", "Yes", "yes"),
])  # fmt: skip
def test_four_hashes_on_the_last_line_state_the_answer(answer_type, payload, value):
    assert parse_answer(f"She has 3 left.\nThe final answer is ...\n#### {payload}\n", answer_type) == Answer(
        "ok", value
    )
    assert parse_answer(f"#### {payload}\nand more was said", answer_type).status == "unparsed"
    assert parse_answer(f"Well.\n#### {payload} follows from what we said", answer_type).status == "unparsed"


WORDS = {
    "zero": 0, "seven": 7, "nineteen": 19, "twenty": 20, "twenty-one": 21, "ninety nine": 99, "one hundred": 100,
    "a hundred": 100, "minus five": -5, "Forty-Two": 42, "one": 1,
}  # fmt: skip


@pytest.mark.parametrize(("words", "value"), WORDS.items())
def test_number_words_to_a_hundred_are_numbers_in_a_statement(words, value):
    for shape in (
        "The final answer is {}.",
        "Answer: **{}**",
        "\\boxed{{\\text{{{}}}}}",
        "The final answer is {}, as shown",
    ):
        assert parse_answer(shape.format(words), "numeric") == Answer("ok", float(value)), shape


@pytest.mark.parametrize("payload", [
    "one of them", "one such value", "one less than that", "two thirds", "2 thirds", "one half", "three fifths",
    "two or three", "twenty twenty", "one hundred and five", "one hundred twenty", "two more than five", "oneself",
    "2^10", "twenty-first", "one point five", "one another", "two, three, or four", "ten to one",
])  # fmt: skip
def test_what_only_begins_with_a_number_word_is_not_read(payload):
    assert parse_answer(f"The final answer is {payload}.", "numeric").status != "ok"


# ------------------------------------------------------------------------------------------ the flexible reading

COLOURS = ("red", "blue", "green", "dark green")
FLEXIBLE = {
    "numeric": r"""
The sum of 31 and 31 is 62. => 62
31 + 31 = 62 => 62
62 = 31 + 31 => 62
The result: \(31 + 31 = 62\) => 62
So 2^10 = 1024 apples remain in all => 1024
The final answer is 2^10. => -
It is 1024.\nThe final answer is 2^10. => 1024
That makes $1,234.50 in total. => 1234.5
She has 3/4 of a pie => 0.75
There were 2 million people there => 2000000
We get **62** apples here => 62
- 62 apples are left over => 62
1. Take 5 apples.\n2. Then she has twelve. => 5
x = -7 in that case => -7
It fell to −7 degrees that night => -7
25 is half of the total => 25
A speed of 60 km/h follows => 60
60 m^2 are painted => 60
At the end: 62! => 62
Sold 10 × 5 = 50 apples, at 25% off => 25
It is 12:30 now => -
Take 1,5 of it => -
Some 10-15 people => -
Take 5 -7 of it => -
B12 and 3rd and 2x and 5-year => -
31 plus 31 => 31
It is not 62 => -
<think>The sum is 5</think> So 6 it is => 6
<think>The sum is 5 => -
""",
    "multiple_choice": r"""
I think blue. => B
He was bored => -
It must be (b) here => B
So **C** it must be => C
So it must be `C` then => C
It must be Option B then => B
I pick option b here => B
A car moves => -
I know => -
A is correct => A
So A. => A
So take A or B => -
A) red\nB) blue\nC) green\nD) dark green => -
- **A.** red\n- **B.** blue\n- **C.** green\n- **D.** dark green\n\nIt is green => C
Among (A) red, (B) blue, (C) green, (D) dark green => -
Well\nB) blue => B
The sky is dark green today => D
It is blue, or rather red => A
It is red, so I say B here => B
I say B, as it is red => A
Surely not B => -
Lots of vitamin C => -
So E it is => -
It isn't red => -
The colour is BLUE, I say => B
""",
    "boolean": r"""
No, it is not. => no
There is no solution here => -
Is it yes or no => -
So that is true. => yes
So that is not true. => -
It is a true story => -
So the claim is false, as shown => no
It is plain: **Yes** => yes
Yes. But after all no. => no
The know-how of nobody => -
""",
}
FLEXIBLE_TABLE = [
    (answer_type, *line.rpartition(" => ")[::2])
    for answer_type, block in FLEXIBLE.items()
    for line in block.strip().split("\n")
]


@pytest.mark.parametrize(("answer_type", "text", "expected"), FLEXIBLE_TABLE)
def test_the_flexible_reading_takes_the_last_value(answer_type, text, expected):
    text = re.sub(r"\\n(?![a-z])", "\n", text)
    value = None if expected == "-" else float(expected) if answer_type == "numeric" else expected
    answer = flexible_answer(text, answer_type, COLOURS if answer_type == "multiple_choice" else ())
    assert answer == Answer("unparsed" if value is None else "ok", value)


@pytest.mark.parametrize(("answer_type", "text", "expected"), TABLE)
def test_the_flexible_reading_only_adds_to_the_strict_one(answer_type, text, expected):
    text = re.sub(r"\\n(?![a-z])", "\n", text)
    options = ("w", "x", "y", "z") if answer_type == "multiple_choice" else ()
    strict = parse_answer(text, answer_type, len(options) or None)
    if strict.status != "unparsed":
        assert flexible_answer(text, answer_type, options) == strict


def test_option_texts_are_told_apart():
    numbers = ("24", "2.4", "124", "1/24")
    for text, letter in (("so it makes 24 in all", "A"), ("about 2.4 in all", "B"), ("it makes 124 of it", "C"),
                         ("that is 1/24 of it", "D"), ("it makes 240 in all", None), ("at 24.5 in all", None),
                         ("that is 1,124 of it", None), ("down to -24 of it", None)):  # fmt: skip
        assert flexible_answer(text, "multiple_choice", numbers).value == letter, text
    assert flexible_answer("so it was the same", "multiple_choice", ("same", "same", "other")).value is None
    assert flexible_answer("the $5.50 ones", "multiple_choice", ("$5.50", "$6.50")).value == "A"
    with pytest.raises(ValueError, match="n_options is 27"):
        flexible_answer("so x", "multiple_choice", ["x"] * 27)
    with pytest.raises(ValueError, match="is unknown"):
        flexible_answer("so x", "letter")


# --------------------------------------------------------------------------------------- comparing with gold


def numeric(value: str) -> Answer:
    return parse_answer(f"The final answer is {value}", "numeric")


@pytest.mark.parametrize(
    ("value", "gold", "right"),
    [
        ("0.1", "0.1001", True),
        ("0.1", "0.0999", True),
        ("0.1", "0.10010001", False),
        ("0.1", "0.09989999", False),
        ("0.10000000000000000000000001", "0.1001", True),
        ("0.0999999999999999999999999", "0.1001", False),
        ("1000000000.0001", "1000000000", True),
        ("1000000000.00010001", "1000000000", False),
        ("9007199254740993", "9007199254740992", False),  # the same float
        ("1/3", "0.3333", True),
        ("1/3", "0.333", False),
        ("2/3", "0.66676666", True),
        ("-0", "0", True),
        ("1,234.50", "1234.5", True),
        ("1234", "1,234", True),
        ("12%", "12", True),
        ("12%", "0.12", False),
        ("5", "-5", False),
    ],
)
def test_tolerance_is_1e_4_inclusive_and_exact(value, gold, right):
    assert is_correct(numeric(value), gold, "numeric") is right


@settings(deadline=None)
@given(st.decimals(-(10**12), 10**12, places=8, allow_nan=False), st.sampled_from([-1, 1]))
def test_tolerance_edges_anywhere(gold, side):
    edge = gold + side * Decimal("0.0001")
    beyond = edge + side * Decimal("0.00000001")
    assert is_correct(numeric(f"{edge:f}"), f"{gold:f}", "numeric")
    assert not is_correct(numeric(f"{beyond:f}"), f"{gold:f}", "numeric")


def test_an_answer_rebuilt_from_its_value_compares_in_decimal():
    assert is_correct(Answer("ok", 0.1), "0.1001", "numeric")
    assert is_correct(Answer("ok", 0.3), "0.3001", "numeric")
    assert not is_correct(Answer("ok", 0.3), "0.30010001", "numeric")
    assert is_correct(Answer("ok", "C"), "C", "multiple_choice")


def test_unread_answers_are_never_correct():
    for answer_type, gold in (("numeric", "5"), ("multiple_choice", "A"), ("boolean", "no")):
        for status in ("unparsed", "ambiguous"):
            assert not is_correct(Answer(status, None), gold, answer_type)
            assert not same_answer(Answer(status, None), Answer(status, None), answer_type)


def test_same_answer():
    assert same_answer(numeric("0.75"), numeric("3/4"), "numeric")
    assert same_answer(numeric("0.1"), numeric("0.1001"), "numeric")
    assert not same_answer(numeric("24"), numeric("48"), "numeric")
    assert same_answer(Answer("ok", "C"), Answer("ok", "C"), "multiple_choice")
    assert not same_answer(Answer("ok", "yes"), Answer("ok", "no"), "boolean")


@pytest.mark.parametrize(("gold", "answer_type", "value"), [
    ("c", "multiple_choice", "C"), ("(B)", "multiple_choice", "B"), ("1,234", "numeric", 1234.0),
    ("$5.50", "numeric", 5.5), ("3/4", "numeric", 0.75), ("−7", "numeric", -7.0), ("True", "boolean", "yes"),
])  # fmt: skip
def test_gold_is_read_by_the_same_grammar(gold, answer_type, value):
    assert is_correct(Answer("ok", value), gold, answer_type)


@pytest.mark.parametrize(("gold", "answer_type"), [
    ("", "numeric"), ("umpteen", "numeric"), ("1,5", "numeric"), ("24 or 48", "numeric"), ("1e400", "numeric"),
    ("nan", "numeric"), ("AB", "multiple_choice"), ("A or B", "multiple_choice"), ("5", "multiple_choice"),
    ("maybe", "boolean"), ("yes and no", "boolean"), (None, "boolean"), (5, "numeric"),
])  # fmt: skip
def test_unreadable_gold_is_refused_with_a_sentence(gold, answer_type):
    with pytest.raises(ValueError, match=f"gold .* is not a {answer_type} answer: expected"):
        is_correct(Answer("unparsed", None), gold, answer_type)


def test_unknown_type_and_option_count_are_refused():
    with pytest.raises(ValueError, match="answer type 'letter' is unknown; use one of multiple_choice, numeric"):
        parse_answer("C", "letter")
    with pytest.raises(ValueError, match="n_options is 27; multiple choice has 1 to 26"):
        parse_answer("C", "multiple_choice", 27)
    with pytest.raises(ValueError, match="is not a number"):
        is_correct(Answer("ok", "C"), "5", "numeric")


# ------------------------------------------------------------------------------------------------- rendering


@pytest.mark.parametrize(("value", "answer_type", "sentence"), [
    ("C", "multiple_choice", "The final answer is C."), ("yes", "boolean", "The final answer is yes."),
    (25.4, "numeric", "The final answer is 25.4."), (29.0, "numeric", "The final answer is 29."),
    (7, "numeric", "The final answer is 7."), ("1,234", "numeric", "The final answer is 1234."),
    (-0.0, "numeric", "The final answer is 0."), (1e-7, "numeric", "The final answer is 1e-07."),
])  # fmt: skip
def test_render(value, answer_type, sentence):
    assert render_answer(value, answer_type) == sentence


@pytest.mark.parametrize("value", [math.nan, math.inf, "x", None])
def test_render_refuses_what_is_no_value(value):
    with pytest.raises(ValueError, match=r"value .* is not a numeric answer"):
        render_answer(value, "numeric")


VALUES = st.one_of(
    st.tuples(st.just("multiple_choice"), st.sampled_from("ABCDEFGHIJKLMNOPQRSTUVWXYZ")),
    st.tuples(st.just("boolean"), st.sampled_from(["yes", "no"])),
    st.tuples(st.just("numeric"), st.floats(allow_nan=False, allow_infinity=False)),
)


@settings(deadline=None)
@given(VALUES)
@example(("numeric", 5e-324))
@example(("numeric", 1.7976931348623157e308))
@example(("numeric", 123456789012345680.0))
def test_rendering_is_read_back(typed):
    answer_type, value = typed
    sentence = render_answer(value, answer_type)
    answer = parse_answer(sentence, answer_type)
    assert answer == Answer("ok", value)
    assert render_answer(answer.value, answer_type) == sentence
    assert is_correct(answer, str(value), answer_type)


# ------------------------------------------------------------------------------------------------ properties

ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=200)  # surrogates and NUL included
PIECES = re.split(
    r"\|",
    "The final answer is |the answer to it is |Answer:|**Final Answer**\n|答案：|\\boxed{|\\frac{3}{4}"
    "|\\text{|}|<think>|</think>|<letter>|<yes or no>| or | and |not A but C|1,234|12:30"
    "|3 x 10^5|2 1/2|1e400|½|10⁵"
    "|$|\\$|%|=|-|/|(|)|*|**|`|~~|yes|no|A|b|because |km/h|million|.|,|\n|\0|\ud800|Ｃ| |１|if",
)
FRAGMENTS = st.lists(st.sampled_from(PIECES) | ANY_TEXT.map(lambda text: text[:5]), max_size=25).map("".join)


@settings(max_examples=400, deadline=None)
@given(ANY_TEXT | FRAGMENTS, st.sampled_from(ANSWER_TYPES), st.none() | st.integers(1, 26))
def test_any_text_gives_a_well_formed_answer(text, answer_type, n_options):
    answer = parse_answer(text, answer_type, n_options)
    assert parse_answer(text, answer_type, n_options) == answer
    if answer.status != "ok":
        assert answer.value is None
    elif answer_type == "numeric":
        assert isinstance(answer.value, float) and math.isfinite(answer.value)
        assert isinstance(answer.exact, Fraction) and float(answer.exact) == answer.value
    elif answer_type == "boolean":
        assert answer.value in ("yes", "no")
    else:
        assert "A" <= answer.value <= chr(ord("A") + (n_options or 26) - 1)
    if answer.status == "ok":  # a fixed point: what was read is read again from its own rendering
        assert parse_answer(render_answer(answer.value, answer_type), answer_type, n_options) == answer


@settings(max_examples=300, deadline=None)
@given(ANY_TEXT | FRAGMENTS, st.sampled_from(ANSWER_TYPES), st.lists(ANY_TEXT, max_size=10))
def test_any_text_has_a_flexible_reading_that_only_adds(text, answer_type, options):
    answer = flexible_answer(text, answer_type, options)
    assert flexible_answer(text, answer_type, options) == answer
    assert (answer.value is None) == (answer.status != "ok")
    strict = parse_answer(text, answer_type, len(options) or None)
    if strict.status != "unparsed":
        assert answer == strict
    if answer.status == "ok":
        assert parse_answer(render_answer(answer.value, answer_type), answer_type, len(options) or None) == answer


@settings(deadline=None)
@given(
    st.sampled_from(FLEXIBLE_TABLE),
    st.sampled_from(["{}", "  {}\n\n", "**{}**", "\t{}  ", "\n> {}", "`{}`", "<think>5 B yes</think>{}"]),
)
def test_wrapping_does_not_matter_to_the_flexible_reading(row, shape):
    answer_type, text, _ = row
    if "\\n" in text or "<think>" in text:
        return
    options = COLOURS if answer_type == "multiple_choice" else ()
    assert flexible_answer(shape.format(text), answer_type, options) == flexible_answer(text, answer_type, options)


@settings(deadline=None)
@given(ANY_TEXT | FRAGMENTS, VALUES, st.booleans())
def test_thinking_does_not_change_the_answer(thought, typed, opened):
    answer_type, value = typed
    text = f"{'<think>' if opened else ''}{thought}</think>\n{render_answer(value, answer_type)}"
    assert parse_answer(text, answer_type) == Answer("ok", value)


@settings(deadline=None)
@given(ANY_TEXT | FRAGMENTS, VALUES)
def test_an_open_thinking_block_hides_every_answer(thought, typed):
    answer_type, value = typed
    thought = thought.replace("</think", "")
    text = f"{render_answer(value, answer_type)}<think>{thought} {render_answer(value, answer_type)}"
    assert split_thinking(text)[1] is None
    assert parse_answer(text, answer_type) == Answer("unparsed", None)


@settings(deadline=None)
@given(ANY_TEXT | FRAGMENTS, VALUES)
def test_the_last_statement_wins_over_any_text_before_it(text, typed):
    answer_type, value = typed
    text = text.replace("<think", "").replace("</think", "")
    assert parse_answer(f"{text}\n\n{render_answer(value, answer_type)}", answer_type) == Answer("ok", value)


@settings(deadline=None)
@given(
    VALUES,
    st.sampled_from(
        [
            "\nThe final answer is",
            "\nThe final answer is <letter|number|yes or no>.",
            "\nAnswer: ...",
            " \\boxed{}",
        ]
    ),
)
def test_an_empty_statement_takes_nothing_back(typed, ending):
    answer_type, value = typed
    assert parse_answer(render_answer(value, answer_type) + ending, answer_type) == Answer("ok", value)


@settings(deadline=None)
@given(
    st.integers(-(10**15), 10**15),
    st.sampled_from(["{}", "{:,}", "**{}**", "${}$", "\\boxed{{{}}}", "({})", "{} apples", "{}%"]),
)
def test_numbers_survive_their_wrapping(number, shape):
    assert parse_answer(f"The final answer is {shape.format(number)}.", "numeric") == Answer("ok", float(number))


# ---------------------------------------------------------------------------------------------- linear time

FAMILIES = [
    *(
        "The final answer is ",
        "The final answer is <letter>. ",
        "the answer to ",
        "Answer: ",
        "answer:",
        "答案：",
    ),
    *("**Answer**\n", "\\boxed{", "\\boxed{}", "\\boxed{5} or ", "\\text{", "\\frac{", "<think>", "</think>"),
    *("<think></think>", "<think", "9", "9 ", "9,", "1,234,", "1/", "1=", "24 or ", "A or ", "yes or "),
    *("not A but ", "\n", "\r\n", "\u0315\u0300", "½", "²", "Ｃ", "\ud800", "\0"),
    *"([{}< *_`$#~\\-.",
]


def seconds(text: str, answer_type: str) -> float:
    started = time.process_time()
    flexible_answer(text, answer_type, ("x", "1/2", "yes", "a\\b") if answer_type == "multiple_choice" else ())
    return time.process_time() - started


@pytest.mark.parametrize("family", FAMILIES, ids=ascii)
def test_a_megabyte_takes_under_a_second(family):
    """Every type, with a statement before, around and after; CPU seconds, since the machine may be busy."""
    body = family * (1_000_000 // len(family))
    for answer_type, text in (
        ("boolean", body + "\nThe final answer is yes"),
        ("multiple_choice", "\\boxed{" + body),
    ):
        assert seconds(text, answer_type) < 1 or seconds(text, answer_type) < 1
    large = min(seconds("The final answer is " + body, "numeric") for _ in range(2))
    small = seconds("The final answer is " + body[: len(body) // 4], "numeric")
    assert large < 1
    assert large < 8 * small + 0.1  # linear is 4, quadratic 16
