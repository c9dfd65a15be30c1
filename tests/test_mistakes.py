"""Wrong answers for public questions: hand-computed values, and never the gold answer."""

import time
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scope.answers import parse_answer, same_answer
from scope.pool import mistakes
from scope.pool.foils import Mistake
from scope.pool.questions import Question
from scope.pool.steps import Step, nodes, read_expression, read_steps, value_of

WALLET = (
    "Betty is saving money for a wallet which costs $100. She has half of the money. Her parents give her $15, and her "
    "grandparents twice as much as her parents. How much more money does Betty need?"
)
WALLET_STEPS = [("100/2", "50"), ("15*2", "30"), ("100-50-30-15", "5")]


def by_class(found: list[Mistake]) -> dict[str, dict[str, str]]:
    classes: dict[str, dict[str, str]] = {}
    for mistake in found:
        classes.setdefault(mistake.wrong_class, {})[mistake.value] = mistake.name
    return classes


def question(**fields) -> Question:
    usual = {"source": "s", "upstream_id": "s:1", "question": "How many?", "answer_type": "numeric", "mistakes": ()}
    return Question(**{**usual, **fields})


# ---------------------------------------------------------------- steps


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("48/2", 24),
        ("100-50-30-15", 5),
        ("(2+3)*4", 20),
        (".2*25", 5),
        ("20%*50", 10),
        ("1,200+05", 1205),
        ("$3.10*2", Fraction(31, 5)),
        ("-3+5", 2),
        ("1/3+1/3", Fraction(2, 3)),
    ],
)
def test_expressions_are_read_exactly(expression, value):
    assert value_of(read_expression(expression)) == value


@pytest.mark.parametrize(
    "expression",
    ["", "x+1", "2**9", "7//2", "1/0", "__import__('os')", "f(2)", "2(3)", "1e9", "3 apples", "((", "1+" * 99 + "1"],
)
def test_what_is_no_plain_arithmetic_is_not_read(expression):
    assert read_expression(expression) is None


def test_a_later_step_uses_an_earlier_one():
    half, twice, rest = read_steps(WALLET_STEPS)
    assert [value_of(r) for r in (half, twice, rest)] == [50, 30, 5]
    assert {half, twice} <= set(nodes(rest))
    assert [step.value for step in nodes(rest)] == [50, 50, 30, 20, 5]


def test_a_rounded_step_is_a_number_and_no_operation():
    third, last = read_steps([("10/3", "3.33"), ("3.33*3", "9.99")])
    assert third == Fraction("3.33") and isinstance(last, Step) and nodes(last) == [last]


def test_steps_made_to_explode_end_soon():
    steps = [("1" + "*1" * 19, "1")] * 20 + [("9*9", "81")]
    steps += [("1" + "*81" * 19, str(81**19))] * 5
    start = time.process_time()
    mistakes.worked("How many in 12 dozen weeks and 50% hours?", "81", steps)
    mistakes.worked("How many?", str(81**19), steps)
    assert time.process_time() - start < 5


# ---------------------------------------------------------------- worked numbers


def test_the_wallet():
    found = by_class(mistakes.worked(WALLET, "5", WALLET_STEPS))
    # 100-50-30 = 20; 20-15 by columns is |2-1|,|0-5| = 15, which is also a quantity of the question; 50, 30 and
    # 100-30-15 = 55 are too far from 5.
    assert found["misread_condition"] == {"20": "left out the last operation"}
    assert found["misconception"] == {"15": "took the smaller digit from the larger in every column"}
    assert found["off_by_one"] == {"6": "counted one too many", "4": "counted one too few"}
    assert "entity_confusion" not in found


def test_three_groups_and_a_sum():
    steps = [("3*14", "42"), ("14+42", "56"), ("85-56", "29")]
    text = "Josh has 85 marbles, three times as many blue as red, the rest yellow. 14 are red. How many are yellow?"
    found = mistakes.worked(text, "29", steps)
    classes = by_class(found)
    assert (found[0].value, found[0].name) == ("56", "stopped before the last step")
    assert found[1].value == "42"
    assert classes["misread_condition"]["141"] == "added instead of subtracting"  # 85+56
    assert classes["misread_condition"]["57"] == "left out a step"  # 85-(14+14), and 85-28
    assert classes["misread_condition"]["71"] == "left out a step"  # 85-14
    assert classes["misconception"] == {"31": "took the smaller digit from the larger in every column"}  # 8-5, 6-5
    assert classes["arithmetic_slip"] == {
        "92": "exchanged the last two digits",
        "39": "was out by one in a column",
        "19": "was out by one in a column",
    }
    assert classes["off_by_one"].keys() == {"30", "28"}
    assert classes["entity_confusion"].keys() == {"14", "85"}
    assert "27" not in classes  # 29-56 is negative, so the last operation is not done twice


def test_a_product_is_out_by_one_group():
    found = by_class(mistakes.worked("Rachel has 4 trees with 7 apples each. How many?", "28", [("4*7", "28")]))
    assert {"21", "35", "24", "32"} <= found["off_by_one"].keys()
    assert found["misread_condition"] == {"11": "added instead of multiplying"}


def test_an_addition_without_its_carry():
    found = by_class(mistakes.worked("27 and 15 birds came. How many are there?", "42", [("27+15", "42")]))
    assert found["arithmetic_slip"]["32"] == "dropped the carry"
    assert found["misread_condition"]["12"] == "subtracted instead of adding"
    assert found["overgeneralization"]["57"] == "did the last operation twice"  # 42+15


@pytest.mark.parametrize(
    ("text", "gold", "steps", "value", "name"),
    [
        ("He works 3 hours. How many minutes?", "180", [("3*60", "180")], "300", "counted an hour as 100 minutes"),
        ("6 a day. How many in 2 weeks?", "84", [("2*7", "14"), ("14*6", "84")], "60", "counted a week as 5 days"),
        ("She buys 3 dozen eggs. How many?", "36", [("3*12", "36")], "30", "counted a dozen as 10"),
        ("20 dollars monthly. How much a year?", "240", [("20*12", "240")], "200", "counted a year as 10 months"),
        (
            "A 220-liter barrel lost 10% of it. What is left?",
            "198",
            [("220*10/100", "22"), ("220-22", "198")],
            "210",
            "%",
        ),
        ("A 220-liter barrel lost 10% of it. What is left?", "198", [("220*.1", "22"), ("220-22", "198")], "210", "%"),
        ("A $50 coat is 20% dearer now. What is it?", "60", [("50*1.2", "60")], "70", "%"),
    ],
)
def test_misconceptions(text, gold, steps, value, name):
    name = "took the percentage as an amount" if name == "%" else name
    assert by_class(mistakes.worked(text, gold, steps))["misconception"][value] == name


def test_a_factor_that_the_question_gives_is_no_unit():
    found = mistakes.worked("She bakes 7 pies a week for 6 weeks. How many?", "42", [("7*6", "42")])
    assert not any(mistake.name.startswith("counted a week") for mistake in found)
    found = mistakes.worked("He took seven cookies last week and 4 more. How many?", "11", [("7+4", "11")])
    assert not any(mistake.name.startswith("counted a week") for mistake in found)


def test_money_keeps_its_decimals():
    found = mistakes.worked(
        "3 pens cost $4.50 each, less $1.25. How much?", "12.25", [("3*4.50", "13.50"), ("13.50-1.25", "12.25")]
    )
    assert found[0] == Mistake("13.50", "misread_condition", "stopped before the last step")
    assert all(len(mistake.value.partition(".")[2]) == 2 for mistake in found)
    assert "14.75" in {mistake.value for mistake in found}  # 13.50+1.25


def test_a_count_has_no_fractions_and_is_not_negative():
    found = mistakes.worked("3 friends share 21 sweets. How many each?", "7", [("21/3", "7")])
    assert all(mistake.value.isdecimal() and mistake.value != "0" for mistake in found)


# ---------------------------------------------------------------- numbers without steps


def test_earlier_results_of_a_solution():
    solution = (
        r"We have $2^2\cdot 7^2$, so $3\times 3 = 9$; then $x = 12 + 4$ and $y = 16$, so $\boxed{20}$. Also $a_1 = 15$."
    )
    found = by_class(mistakes.unworked("What is $x$ for $y^2 = 19$?", "20", solution))
    assert list(found["misread_condition"]) == ["15", "16", "9"]
    assert "entity_confusion" not in found  # numbers of a formula are no quantities


def test_a_lost_minus_sign():
    found = mistakes.unworked("Find $x$.", "-12")
    assert found[0] == Mistake("12", "misread_condition", "lost the minus sign")
    assert {"-21", "-22", "-11", "-13"} <= {mistake.value for mistake in found}


def test_fractions_stay_fractions():
    found = {
        m.value: m
        for m in mistakes.unworked("What is the probability?", "2/3", r"It is $1 - x = \frac{3}{5}$ or $=4$.")
    }
    assert found["3/5"].wrong_class == "misread_condition"
    assert found["1/3"].name == "gave the complement"
    assert found["3/2"].wrong_class == "misconception"
    assert found["1/2"].wrong_class == "off_by_one"
    assert all("/" in value for value in found)


def test_large_numbers_are_not_out_by_one():
    values = {mistake.value for mistake in mistakes.unworked("How many plates?", "58500")}
    assert values == {"59500", "57500"}


# ---------------------------------------------------------------- options, yes and no


def test_other_options_are_ordered_by_temptation():
    text = "What makes solar energy different from most other energy that people use?"
    options = [
        "Solar energy needs the most complicated technology.",
        "The supply of solar energy will not change for billions of years.",
        "None of the above",
        "The supply of solar energy makes it cheap.",
        "It is hot.",
    ]
    found = mistakes.other_options(text, options[1], options)
    assert [m.value for m in found] == [options[3], options[0], options[4], options[2]]
    assert {m.wrong_class for m in found} == {"near_option"}


def test_numeric_options_by_distance():
    found = mistakes.other_options("How long?", "24 m", ["6 m", "18 m", "24 m", "36 m", "1,048 m"])
    assert [m.value for m in found] == ["18 m", "36 m", "6 m", "1,048 m"]


def test_an_option_that_contains_the_gold_is_no_lure():
    options = ["iron", "iron oxide", "Iron.", "rust", "copper"]
    assert {m.value for m in mistakes.other_options("What is it?", "iron", options)} == {"rust", "copper"}
    part = mistakes.other_options("What is it?", "iron oxide", ["iron", "iron oxide", "a very long other option"])
    assert [m.value for m in part] == ["a very long other option", "iron"]  # it is part of the gold: last


@pytest.mark.parametrize(
    ("a", "b", "same"),
    [
        ("1,200 m", "1200 m", True),
        ("0.50", "0.5", True),
        ("Red box", "red  box.", True),
        ("5 apples", "5 pears", False),
        ("x + 1", "x - 1", False),
        ("-5", "5", False),
        ("(1,2)", "(12)", False),
    ],
)
def test_options_that_say_the_same(a, b, same):
    assert mistakes.say_the_same(a, b) is mistakes.say_the_same(b, a) is same


def test_the_other_word():
    assert [m.value for m in mistakes.other_word("yes")] == ["no"]
    assert mistakes.other_word("no")[0].wrong_class == "misread_condition"


# ---------------------------------------------------------------- known wrong answers


@pytest.mark.parametrize(
    ("value", "gold", "answer_type", "wrong_class"),
    [
        ("b", "a", "multiple_choice", "near_option"),
        ("no", "yes", "boolean", "misread_condition"),
        ("145", "154", "numeric", "arithmetic_slip"),
        ("47", "57", "numeric", "arithmetic_slip"),
        ("85", "12", "numeric", "misread_condition"),
        ("7", "8", "numeric", "misread_condition"),
        ("100", "57", "numeric", "misread_condition"),
    ],
)
def test_class_of_a_given_wrong_answer(value, gold, answer_type, wrong_class):
    assert mistakes.given(value, gold, answer_type) == Mistake(value, wrong_class, "given")
    assert mistakes.given(value, gold, answer_type, "misconception").wrong_class == "misconception"
    assert mistakes.given(value, gold, answer_type).known


def test_own_errors():
    options = ("iron", "iron oxide", "rust")
    choice = question(answer_type="multiple_choice", gold="iron", options=options)
    assert mistakes.from_own_errors(choice, "rust") == Mistake("rust", "near_option", "own error")
    assert mistakes.from_own_errors(choice, "C") == Mistake("rust", "near_option", "own error")
    assert mistakes.from_own_errors(choice, "iron") is None
    assert mistakes.from_own_errors(choice, "A") is None
    assert mistakes.from_own_errors(choice, "Z") is None
    assert mistakes.from_own_errors(choice, "iron oxide") is None  # it contains the gold
    blood = question(answer_type="multiple_choice", gold="O", options=("B", "A", "O"))
    assert mistakes.from_own_errors(blood, "A").value == "A"  # a text before a letter

    known = (Mistake("21", "misconception", "x"),)
    number = question(gold="28", mistakes=known)
    assert mistakes.from_own_errors(number, 21.0) == Mistake("21", "misconception", "own error")
    assert mistakes.from_own_errors(number, "35").wrong_class == "arithmetic_slip"
    for bad in (28.0, "28.00001", 21.5, 5000.0, -3, "many", float("nan")):
        assert mistakes.from_own_errors(number, bad) is None, bad
    assert mistakes.from_own_errors(question(answer_type="boolean", gold="yes"), "No").value == "no"
    assert mistakes.from_own_errors(question(answer_type="boolean", gold="yes"), "yes") is None


# ---------------------------------------------------------------- property

NUMBERS = st.integers(0, 400) | st.decimals(0, 400, places=2)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(NUMBERS, st.sampled_from("+-*/"), NUMBERS), min_size=1, max_size=4), st.data())
def test_usable_mistakes_never_equal_the_gold(steps, data):
    written = []
    for left, sign, right in steps:
        term = read_expression(f"{left}{sign}{right}")
        if term is not None:
            written.append((f"{left}{sign}{right}", str(value_of(term))))
    last = value_of(read_expression(written[-1][1])) if written and "/" not in written[-1][1] else Fraction(7)
    gold = mistakes.written_as(last, "0.00" if last.denominator > 1 else "0") or "7"
    text = data.draw(st.sampled_from([WALLET, "How many in 3 weeks at 20% of 50?", "Find $x$ and 7/8.", ""]))
    found = mistakes.worked(text, gold, written) + mistakes.unworked(text, gold, f"$= {gold}$ and = 12 so = 40.")
    right = parse_answer(gold, "numeric")
    for mistake in found:
        assert not same_answer(parse_answer(mistake.value, "numeric"), right, "numeric")
        assert mistake.value.partition(".")[2].__len__() == len(gold.partition(".")[2])
