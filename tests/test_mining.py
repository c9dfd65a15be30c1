"""Mining's decisions on hand-made completions: every reason to drop an item, the leak filter, the funnel."""

import json
import random
import re
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scope.conditions import Condition
from scope.engines import Engine, Generated, Store
from scope.items import Completion, item_from_row, load_quartets, write_rows
from scope.mining import mine_quartets, select, warn_incompetent
from scope.mining.funnel import SLICES, funnel, render
from scope.mining.select import REASONS, folded, judge, leaks, load_leaks, make_quartet
from scope.prompts import diagnostic_prompt, load_note, user_prompt
from scope.recipe import load

ROOT = Path(__file__).resolve().parent.parent
LEAKS = ROOT / "scope" / "mining" / "leaks.toml"
NOTE = ROOT / "scope" / "mining" / "note.txt"
PATTERNS = load_leaks(LEAKS)
CAP = 50


def item(name="n1", **changes):
    return item_from_row(
        {
            "id": name,
            "source": "authored/sum",
            "provenance": "authored",
            "topic": "arithmetic",
            "answer_type": "numeric",
            "question": f"{name}: what is 19 + 23?",
            "options": [],
            "gold": "42",
            "wrong": "32",
            "wrong_class": "arithmetic_slip",
            "channel": "ta_note",
            "context_misleading": "TA note: it is 32.",
            "context_correct": "TA note: it is 42.",
            "context_irrelevant": "TA note: bring a pencil.",
            **changes,
        }
    )


def completion(text, finish="stop", tokens=10):
    return Completion(f"request of {text[:20]}", "hash", text, finish, 20, tokens)


def judged(text, finish="stop", tokens=10, of=None, control=("<|im_end|>",)):
    return judge(of or item(), completion(text, finish, tokens), CAP, control)


RIGHT = "19 + 23 = 42. The final answer is 42."
WRONG = "The TA note says 32. The final answer is 32."

# ---------------------------------------------------------------- one completion


@pytest.mark.parametrize(
    "text, finish, tokens, fault, correct",
    [
        (RIGHT, "stop", 10, None, True),
        (WRONG, "stop", 10, None, False),
        (RIGHT, "length", 50, "truncated", True),  # cut by the cap, though the answer is there
        (RIGHT, "stop", 50, "truncated", True),  # at the cap counts as cut
        (RIGHT, "stop", 49, None, True),
        (RIGHT, "error", 10, "truncated", True),
        ("", "stop", 0, "malformed", False),
        (" \n", "stop", 2, "malformed", False),
        ("<think>42</think>", "stop", 9, "malformed", False),  # thinking alone is no response
        ("<think>never closed. The final answer is 42.", "stop", 9, "malformed", False),
        ("<think>hm</think>The final answer is 42.", "stop", 9, None, True),
        ("The final answer is 42.<|im_end|>", "stop", 9, "malformed", True),
        ("The final answer is 42. \ufffd", "stop", 9, "malformed", True),  # half a character
        ("I would rather not say.", "stop", 9, "unparsed", False),
        ("The final answer is 42 or 32.", "stop", 9, "unparsed", False),  # ambiguous
    ],
)
def test_a_completion_is_judged_by_how_it_ended_and_what_it_says(text, finish, tokens, fault, correct):
    found = judged(text, finish, tokens)
    assert (found.fault, found.correct) == (fault, correct)


def test_blank_control_tokens_forbid_nothing():
    # Some tokenizers list a space or a line feed among their special tokens.
    assert judged("The final answer is 42.", control=(" ", "\n", "")).fault is None


@pytest.mark.parametrize(
    "misleading, rule, reason",
    [
        (judged(WRONG), "any_wrong", None),
        (judged(RIGHT), "any_wrong", "not_misled"),
        (judged("The final answer is 41."), "any_wrong", None),
        (judged("The final answer is 41."), "signal_following", "rejected_not_signal_following"),
        (judged(WRONG), "signal_following", None),
        (judged("The final answer is 32.00005."), "signal_following", None),  # within the tolerance of 32
        (judged(WRONG, "length", 50), "any_wrong", "rejected_truncated"),
        (judged(RIGHT, "length", 50), "any_wrong", "rejected_truncated"),
        (judged(""), "any_wrong", "rejected_malformed"),
        (judged("Who knows?"), "any_wrong", "rejected_unparsed"),
    ],
)
def test_what_can_be_rejected(misleading, rule, reason):
    assert select.rejected_fault(item(), misleading, rule) == reason
    assert reason is None or reason in REASONS


@pytest.mark.parametrize(
    "diagnostic, reason",
    [
        (judged(RIGHT), None),
        (judged(WRONG), "diagnostic_wrong"),
        (judged(RIGHT, "length", 50), "diagnostic_truncated"),
        (judged(""), "diagnostic_malformed"),
        (judged("No idea."), "diagnostic_unparsed"),
        (judged("The answer key has 42. The final answer is 42."), "diagnostic_leaked"),
    ],
)
def test_what_the_diagnostic_note_may_give(diagnostic, reason):
    assert select.diagnostic_fault(diagnostic, PATTERNS) == reason
    assert reason is None or reason in REASONS


def test_only_a_whole_right_clean_response_is_chosen():
    assert select.usable_clean(judged(RIGHT))
    assert not any(map(select.usable_clean, (judged(WRONG), judged(RIGHT, "length"), judged("?"), judged(""))))


# ---------------------------------------------------------------- the pair


def test_a_quartet_holds_both_responses_as_they_were_said_under_its_four_prompts():
    chosen, rejected = judged("  " + RIGHT + "\n"), judged(WRONG)
    found = make_quartet(item(), chosen, "diagnostic", rejected)
    assert (found.chosen, found.rejected) == ("  " + RIGHT + "\n", WRONG)
    assert [found.prompt(c) for c in Condition] == [user_prompt(item(), c) for c in Condition]
    assert len({found.prompt(c) for c in Condition}) == 4
    assert (found.chosen_answer, found.rejected_answer, found.chosen_source) == ("42.0", "32.0", "diagnostic")
    assert found.chosen_request == chosen.completion.request_id != found.rejected_request
    # The note is private: it stands in no prompt that is trained on.
    assert "For you alone" not in "".join(found.prompt(c) for c in Condition)


def test_a_pair_that_says_the_same_is_none():
    # Same words, other spacing.
    assert make_quartet(item(), judged(RIGHT), "clean", judged(RIGHT.replace(" ", "  ") + "\n")) is None
    # Gold 0.1: 0.1001 lies exactly 1e-4 away and is right; a hair further is wrong, but the same float.
    of = item(gold="0.1", wrong="0.3")
    chosen = judged("The final answer is 0.1001.", of=of)
    rejected = judged("So: the final answer is 0.10010000000000000000001.", of=of)
    assert chosen.correct and not rejected.correct
    assert make_quartet(of, chosen, "clean", rejected) is None


def test_written_quartets_are_read_back(tmp_path):
    found = make_quartet(item(), judged(RIGHT), "clean", judged(WRONG))
    write_rows(tmp_path / "quartets.jsonl", [found])
    assert load_quartets(tmp_path / "quartets.jsonl") == [found]


# ---------------------------------------------------------------- leaks


def odd_spellings(text):
    """The same words as models and typesetting may write them."""
    yield text
    yield text.upper()
    yield text.lower()
    yield text.title()
    yield text.replace(" ", "  \n\t")
    yield text.replace(" ", "-")
    yield text.replace(" ", "_")
    yield text.replace(" ", "\u00a0")
    yield text.replace("'", "\u2019").replace("-", "\u2011")
    yield " ".join(f"**{word}**" for word in text.split())
    yield f"Before.{text}After" if not text[0].isalnum() else f"Before. {text}, after"


@pytest.mark.parametrize("pattern, example", PATTERNS, ids=lambda p: getattr(p, "pattern", ""))
def test_every_leak_pattern_catches_its_example_in_any_spelling(pattern, example):
    for text in odd_spellings(example):
        assert pattern.search(folded(text)), text
        assert leaks(f"19 + 23 = 42.\n{text}\nThe final answer is 42.", PATTERNS)


@pytest.mark.parametrize(
    "phrase",
    ["teacher note", "reference solution", "gold answer", "answer key", "provided answer", "Reference Answers",
     "the golden label", "diagnostic note", "hidden hint", "answer-sheet", "GOLD_ANSWER"],
)  # fmt: skip
def test_the_phrases_of_the_paper_are_leaks(phrase):
    assert leaks(f"According to the {phrase}, it is 42.", PATTERNS)


@pytest.mark.parametrize(
    "text",
    [
        "The TA note says 32, but 19 + 23 is 42.",
        "The lecture note is wrong: 42.",
        "A calculator note gives 32; adding by hand gives 42.",
        "Note that 19 + 23 = 42.",
        "This is a noteworthy sum.",
        "The keyboard has 42 keys; the answer is 42.",
        "Gold weighs more; my answer: 42.",
        "The golden retriever ran 42 metres. The teacher noted nothing.",
        "The solution is 42.",
        "They were told apart by colour.",
        "The search snippet and the forum post disagree.",
        "",
    ],
)
def test_visible_channels_and_ordinary_words_are_no_leaks(text):
    assert not leaks(text, PATTERNS), [p.pattern for p, _ in PATTERNS if p.search(folded(text))]


@pytest.mark.parametrize(
    "text",
    [
        "We are given 19 apples and 23 pears.",
        "We are told that the train leaves at 9.",
        "The claim that 7 is even is false.",
    ],
)
def test_restating_the_problem_is_no_leak(text):
    assert not leaks(text, PATTERNS)


@pytest.mark.parametrize(
    "text", ["the ＧＯＬＤ ＡＮＳＷＥＲ", "the go\u200bld answer", "the an\u00adswer key", "the answerkey"]
)
def test_invisible_spellings_are_leaks_too(text):
    assert leaks(text, PATTERNS)


def test_the_note_itself_is_recognised():
    assert leaks(load_note(NOTE).format(gold="42"), PATTERNS)


@settings(max_examples=100, deadline=None)
@given(st.text())
def test_folding_is_stable_and_total(text):
    # Idempotent on what it returns, and deaf to case and to doubled separators.
    flat = folded(text)
    assert folded(flat) == flat
    assert "  " not in flat and flat == flat.strip()
    assert isinstance(leaks(text, PATTERNS), bool)


@pytest.mark.parametrize(
    "text, found",
    [
        ("", "leak"),
        ("[[leak]]\npattern = '('\nexample = 'x'", "unterminated subpattern"),
        ("[[leak]]\npattern = 'x'", "example"),
        ("leak = 3", "not iterable"),
        ("[[leak", "Expected"),
    ],
)
def test_a_bad_list_of_leaks_is_named(tmp_path, text, found):
    path = tmp_path / "leaks.toml"
    path.write_text(text)
    with pytest.raises(ValueError, match=re.escape(f"{path}: is not a list of [[leak]] entries")) as caught:
        load_leaks(path)
    assert found in str(caught.value)
    with pytest.raises(ValueError, match="nowhere"):
        load_leaks(tmp_path / "nowhere.toml")


# ---------------------------------------------------------------- the whole decision


class Scripted(Engine):
    """An engine whose answers are written down: prompt -> (text, finish reason). A stand-in for a model only."""

    def __init__(self, answers):
        self.answers, self.asked = answers, []

    def identity(self):
        return {"engine": "scripted"}

    def control_tokens(self):
        return ["<|im_end|>"]

    def render(self, prompts):
        return [list(prompt.encode()) for prompt in prompts]

    def plan(self, rendered, sampling):
        return [[index] for index in range(len(rendered))]

    def generate(self, rendered, sampling):
        prompts = [bytes(ids).decode() for ids in rendered]
        self.asked += prompts
        return [Generated([1] * 5, *self.answers[prompt]) for prompt in prompts]


#: id -> (clean, misleading, diagnostic or None if it must not be asked, fate)
SCRIPT = {
    "solved": (RIGHT, WRONG, None, "clean"),
    "helped": (WRONG, WRONG, RIGHT, "diagnostic"),
    "robust": (RIGHT, RIGHT, None, "not_misled"),
    "lucky": (WRONG, RIGHT, None, "not_misled"),
    "cut": (RIGHT, (WRONG, "length"), None, "rejected_truncated"),
    "empty": (RIGHT, "", None, "rejected_malformed"),
    "vague": (RIGHT, "Hard to say.", None, "rejected_unparsed"),
    "cut note": (WRONG, WRONG, (RIGHT, "length"), "diagnostic_truncated"),
    "empty note": (WRONG, WRONG, " ", "diagnostic_malformed"),
    "vague note": (WRONG, WRONG, "Hard to say.", "diagnostic_unparsed"),
    "wrong note": (("", "length"), WRONG, WRONG, "diagnostic_wrong"),
    "leaky note": ("?", WRONG, "The gold answer is 42. The final answer is 42.", "diagnostic_leaked"),
    "held out": (RIGHT, WRONG, None, "shared_with_evaluation"),
    "same text": (RIGHT, WRONG, None, "shared_with_evaluation"),
}


@pytest.fixture
def mined(tmp_path):
    def mine(*overrides, script=SCRIPT):
        items = [item(name, channel="forum" if "note" in name else "ta_note") for name in script]
        note = load_note(NOTE)
        answers = {}
        for one in items:
            clean, misleading, diagnostic, _ = script[one.id]
            for prompt, said in (
                (user_prompt(one, Condition.CLEAN), clean),
                (user_prompt(one, Condition.MISLEADING), misleading),
                (diagnostic_prompt(one, note), diagnostic),
            ):
                if said is not None:
                    answers[prompt] = said if isinstance(said, tuple) else (said, "stop")
        # One item shared by its id, one by its question, otherwise written.
        evaluation = [item("held out", question="Another?"), item("e1", question="SAME TEXT -- what is 19+23")]
        engine = Scripted(answers)
        store = Store(tmp_path / "completions.sqlite")
        chosen = ["mining.fallback=diagnostic", "mining.rejected=any_wrong", *overrides]
        quartets, counts = mine_quartets(load("quickstart", chosen), engine, store, items, evaluation)
        return items, quartets, counts, engine

    return mine


def test_every_item_gets_the_fate_it_must(mined):
    _, quartets, counts, engine = mined()
    expected = Counter(fate for *_, fate in SCRIPT.values())
    assert [(q.item_id, q.chosen_source) for q in quartets] == [("solved", "clean"), ("helped", "diagnostic")]
    assert counts["dropped"] == {r: expected[r] for r in REASONS if expected[r]}
    assert counts["chosen_from"] == {"clean": 1, "diagnostic": 1}
    # 14 items, 2 of them shared: 24 clean and misleading prompts, and a note only where `_` needed it (6).
    assert len(engine.asked) == 24 + sum(d is not None for _, _, d, _ in SCRIPT.values()) == 30
    # Clean right: solved, robust, cut, empty, vague of the 12 that were asked.
    assert (counts["items"], counts["asked"], counts["clean_accuracy"]) == (14, 12, 5 / 12)
    json.dumps(counts)


def test_a_rerun_asks_nothing_again(mined):
    _, first, _, _ = mined()
    _, again, _, engine = mined()
    assert again == first and engine.asked == []


def test_without_the_fallback_no_note_is_ever_sent(mined):
    _, quartets, counts, engine = mined("mining.fallback=none")
    assert [q.item_id for q in quartets] == ["solved"]
    assert counts["dropped"]["no_fallback"] == 6 and not any("diagnostic" in r for r in counts["dropped"])
    assert len(engine.asked) == 24


def test_signal_following_drops_other_mistakes(mined):
    script = {"follows": (RIGHT, WRONG, None, ""), "errs": (RIGHT, "The final answer is 7.", None, "")}
    _, quartets, counts, _ = mined("mining.rejected=signal_following", script=script)
    assert [q.item_id for q in quartets] == ["follows"]
    assert counts["dropped"] == {"rejected_not_signal_following": 1}


def test_the_reasons_reached_here_are_all_there_are():
    reached = {fate for *_, fate in SCRIPT.values()} - {"clean", "diagnostic"}
    assert reached | {"no_fallback", "rejected_not_signal_following", "identical"} == set(REASONS)


@pytest.mark.parametrize("overrides", [["mining.note=/nowhere/note.txt"], ["mining.leak_patterns=/nowhere/leaks.toml"]])
def test_a_missing_note_or_leak_list_stops_mining_with_a_sentence(overrides):
    from scope.artifacts import Refusal
    from scope.mining import mine

    with pytest.raises(Refusal, match="nowhere"):
        mine(load("quickstart", overrides))


# ---------------------------------------------------------------- the funnel


@settings(deadline=None, max_examples=40)
@given(st.lists(st.sampled_from(["clean", "diagnostic", *REASONS]), max_size=60), st.integers(0, 99))
def test_the_funnel_adds_up(fates, seed):
    rng = random.Random(seed)
    kinds = ("numeric", "boolean")
    items = [
        item(f"i{n}", answer_type=rng.choice(kinds), channel=rng.choice(["forum", "other"])) for n in range(len(fates))
    ]
    right = {i.id: rng.random() < 0.5 for i in items}
    counts = funnel(items, fates, right)
    assert counts["quartets"] == sum(counts["chosen_from"].values()) == fates.count("clean") + fates.count("diagnostic")
    assert counts["items"] == len(fates) == counts["quartets"] + sum(counts["dropped"].values())
    assert counts["asked"] == len(fates) - fates.count("shared_with_evaluation")
    for name in SLICES:
        slices = counts["by"][name]
        assert sum((Counter(s) for s in slices.values()), Counter()) == Counter(fates)
        assert set(slices) == {getattr(i, name) for i in items}


def test_an_empty_pool_has_no_accuracy():
    assert funnel([], [], {})["clean_accuracy"] is None
    assert "clean accuracy" not in render(funnel([], [], {}))


def test_the_funnel_on_paper():
    items = [item(f"i{n}") for n in range(5)]
    counts = funnel(items, ["clean", "not_misled", "not_misled", "diagnostic_leaked", "diagnostic"], dict.fromkeys(
        [i.id for i in items], True))  # fmt: skip
    lines = render(counts).splitlines()
    assert lines[0].split() == ["5", "items", "in", "the", "training", "pool"]
    assert lines[1].split()[0] == "-2" and lines[2].split()[0] == "-1"
    assert lines[3].strip() == "2  quartets (chosen: 1 clean, 1 diagnostic)"
    assert lines[4].strip() == "clean accuracy of the base on this pool: 100.0 %"


def test_an_incompetent_base_is_warned_of(capsys):
    recipe = load("quickstart", ["mining.competent_accuracy=0.6"])
    for accuracy in (None, 0.6, 1.0):
        warn_incompetent(recipe, {"clean_accuracy": accuracy})
    assert capsys.readouterr().out == ""
    warn_incompetent(recipe, {"clean_accuracy": 0.599})
    assert capsys.readouterr().out.startswith("warning: Qwen/Qwen2.5-Coder-0.5B-Instruct solves 59.9 % of this pool")
