"""Phrasings: the built-in ones keep the rules, a user's own are joined or refused with sentences."""

import re
import tomllib
from itertools import combinations, product
from pathlib import Path

import pytest

from scope.answers import parse_answer
from scope.items import CHANNELS
from scope.pool import checks, signals, words
from scope.pool.checks import LENGTH_RATIO
from scope.pool.signals import Channel, SignalError, content_words, fits_text_form, load_banks, phrasing_faults

BANKS = load_banks()
BUILT_IN = BANKS["train"]
#: Every channel of every bank.
ALL = [channel for bank in BANKS.values() for channel in bank.values()]

#: What a context may name: a number, an option letter, option text, both, and yes or no.
VALUES = {
    "42": "numeric",
    "3.50": "numeric",
    "B": "multiple_choice",
    "the red box": "multiple_choice",
    "B (the red box)": "multiple_choice",
    "yes": "boolean",
    "no": "boolean",
}


@pytest.fixture
def own(tmp_path):
    """Write a phrasing file of the user's own; gives its path."""

    def write(text, name="mine.toml"):
        path = tmp_path / name
        path.write_text(text, "utf-8")
        return path

    return write


def faults_of(*paths):
    with pytest.raises(SignalError) as caught:
        load_banks(extra=paths)
    return str(caught.value).splitlines()


# ---------------------------------------------------------------- the built-in file


def test_the_built_in_file_has_no_fault():
    table = tomllib.loads(signals.PHRASINGS.read_text("utf-8"))
    assert phrasing_faults(table, signals.PHRASINGS) == []
    assert tuple(BUILT_IN) == CHANNELS == tuple(table)


@pytest.mark.parametrize("channel", ALL, ids=lambda channel: channel.name)
def test_every_channel_has_many_phrasings_of_a_sentence_or_so(channel):
    assert min(len(channel.value), len(channel.irrelevant), len(channel.unrelated)) >= 8
    quoting = sum("{about}" in phrasing for phrasing in channel.irrelevant)
    assert 3 <= quoting <= len(channel.irrelevant) - 3
    for phrasing in (*channel.value, *channel.irrelevant, *channel.unrelated):
        assert 8 <= len(phrasing.split()) <= 22, phrasing
        assert phrasing == phrasing.strip() and phrasing[-1] in '."', phrasing
        assert phrasing.count('"') in (0, 2), phrasing


@pytest.mark.parametrize("channel", ALL, ids=lambda channel: channel.name)
def test_contexts_of_a_channel_are_of_similar_length_with_any_value(channel):
    """The limits on option texts and the lengths of the phrasings fit each other (`contexts_similar_length`)."""
    text = "x" * (signals.TEXT_CHARACTERS - 2 * (signals.TEXT_WORDS - 1)) + " x" * (signals.TEXT_WORDS - 1)
    assert (len(text.split()), len(text)) == (signals.TEXT_WORDS, signals.TEXT_CHARACTERS)
    for phrasing, value in product(channel.value, [*VALUES, text, f"B ({text})"]):
        context = signals.render(phrasing, value)
        plain = (p for p in channel.irrelevant if "{about}" not in p)
        for irrelevant in (*plain, *channel.unrelated):
            for sizes in [(len(context.split()), len(irrelevant.split())), (len(context), len(irrelevant))]:
                assert max(sizes) <= LENGTH_RATIO * min(sizes), (context, irrelevant)


@pytest.mark.parametrize("channel", ALL, ids=lambda channel: channel.name)
def test_unrelated_phrasings_share_few_words(channel):
    """So that a question that rules out one leaves others.

    Any two have at most two content words in common; no word stands in more than two thirds of them; and
    no three words rule out all.
    """
    said = [content_words(phrasing) for phrasing in channel.unrelated]
    for one, other in combinations(said, 2):
        assert len(one & other) <= 2, (one, other)
    vocabulary = sorted(set().union(*said))
    assert max(sum(word in each for each in said) for word in vocabulary) <= len(said) * 2 // 3
    for some in combinations(vocabulary, 3):
        assert not all(each & set(some) for each in said), some


def test_irrelevant_phrasings_open_like_those_with_a_value():
    """At least half of a channel's irrelevant phrasings begin with the words of one that carries a value."""
    for channel in BUILT_IN.values():
        openings = {tuple(re.findall(r"\w+", phrasing)[:2]) for phrasing in channel.value}
        alike = [p for p in channel.irrelevant if tuple(re.findall(r"\w+", p)[:2]) in openings]
        assert len(alike) >= len(channel.irrelevant) / 2, channel.name


@pytest.mark.parametrize(("value", "answer_type"), VALUES.items())
def test_contexts_can_be_read_by_the_answer_parser(value, answer_type):
    """A context is no completion; but if the parser reads an answer in one, it is the one named."""
    options = 4 if answer_type == "multiple_choice" else None
    for channel in ALL:
        for phrasing in channel.value:
            found = parse_answer(signals.render(phrasing, value), answer_type, options)
            if found.status == "ok" and value != "the red box":
                assert found == parse_answer(value.split(" (")[0], answer_type, options), phrasing
        for phrasing in (*channel.irrelevant, *channel.unrelated):
            assert parse_answer(phrasing, answer_type, options).status != "ok", phrasing


# ---------------------------------------------------------------- files of the user's own

MORE = """
[forum]
value = ["Overheard on a chess server: everybody there says {value}."]
irrelevant = ["Overheard on a chess server: everybody there adores marzipan."]

[other]
irrelevant = ["Engraved on a park bench: sit down and enjoy the shade."]
"""


def test_a_file_adds_to_the_channels_it_names(own):
    """Each sentence to the bank of its hash, behind those there are, and to no other."""
    joined = load_banks(extra=[own(MORE)])
    table = tomllib.loads(MORE)
    for name, kind in (("forum", "value"), ("forum", "irrelevant"), ("other", "irrelevant")):
        grown = {bank: getattr(joined[bank][name], kind)[len(getattr(BANKS[bank][name], kind)) :] for bank in BANKS}
        assert sorted(grown.values()) == [(), (), tuple(table[name][kind])]
    assert all(joined[bank][name] == BANKS[bank][name] for bank in BANKS for name in set(CHANNELS) - {"forum", "other"})
    assert all(tuple(channels) == CHANNELS for channels in joined.values())
    assert load_banks() == BANKS  # the built-in ones stay as they are


def test_a_file_may_name_the_banks(own):
    text = MORE.replace("[forum]", "[forum.dev]").replace("[other]", "[other.eval]")
    joined, table = load_banks(extra=[own(text)]), tomllib.loads(text)
    assert joined["dev"]["forum"].value == (*BANKS["dev"]["forum"].value, *table["forum"]["dev"]["value"])
    assert joined["eval"]["other"].irrelevant[-1] == table["other"]["eval"]["irrelevant"][0]
    assert joined["train"] == BANKS["train"]


def test_a_replacing_file_stands_for_the_channels_it_names(own, caplog):
    """Being too few for a bank each, its phrasings serve all, which is said once for each list."""
    path = own("replace = true\n" + MORE.split("[other]")[0])
    table = tomllib.loads(path.read_text())
    joined = load_banks(extra=(path,))
    for bank, channels in joined.items():
        lists = (tuple(table["forum"]["value"]), tuple(table["forum"]["irrelevant"]))
        assert channels["forum"] == Channel("forum", *lists, BANKS[bank]["forum"].unrelated)
        assert all(channels[name] == BANKS[bank][name] for name in set(CHANNELS) - {"forum"})
    said = [record.getMessage() for record in caplog.records]
    assert len(said) == 1 and "too few phrasings" in said[0] and "forum value, forum irrelevant" in said[0]
    assert signals.in_several_banks([path]) == {signals.phrasing_id(text) for texts in lists for text in texts}


def test_enough_phrasings_without_banks_are_split_for_good(own, caplog):
    """Thirty sentences leave no bank empty; none is in two, and none moves when others are added."""
    many = [f"Overheard on a {word} server: everybody there says {{value}}." for word in map(chr, range(97, 123))]
    quiet = [text.replace("says {value}", "is asking about this") for text in many]
    text = "replace = true\n[forum]\nvalue = {}\nirrelevant = {}\n"
    banks, fewer = (load_banks(extra=[own(text.format(many[:n], quiet[:n]))]) for n in (26, 20))
    dealt = [phrasing for bank in banks.values() for phrasing in bank["forum"].value]
    assert sorted(dealt) == sorted(many) and not caplog.records and not signals.in_several_banks()
    assert all(set(fewer[bank]["forum"].value) <= set(banks[bank]["forum"].value) for bank in banks)


def test_no_phrasing_is_in_two_banks(own):
    assert signals.in_several_banks() == set()
    text = f'[forum.train]\nvalue = ["{GOOD}"]\n[forum.eval]\nvalue = ["{GOOD.upper().replace("VALUE", "value")}"]\n'
    assert any("eval: value" in line and "stands twice, first in forum" in line for line in faults_of(own(text)))


def test_files_are_read_in_order_and_a_changed_file_is_read_again(own):
    adding, replacing = own(MORE, "adding.toml"), own("replace = true\n" + MORE.split("[other]")[0], "replacing.toml")
    assert len(load_banks(extra=[adding, replacing])["train"]["forum"].value) == 1
    assert "stands already in forum" in faults_of(replacing, adding)[0]
    before = load_banks(extra=[adding])
    adding.write_text(MORE.replace("park bench", "garden bench"))
    assert load_banks(extra=[adding]) != before


def test_windows_files_are_read(own, tmp_path):
    path = tmp_path / "windows.toml"
    path.write_bytes(b"\xef\xbb\xbf" + MORE.replace("\n", "\r\n").encode())
    assert load_banks(extra=[path]) == load_banks(extra=[own(MORE)])


GOOD = "Overheard on a chess server: everybody there says {value}."
QUIET = "Overheard on a chess server: everybody there adores marzipan."


@pytest.mark.parametrize(
    ("kind", "phrasing", "message"),
    [
        ("value", GOOD.replace("{value}", "that"), "must hold {value} exactly once"),
        ("value", GOOD.replace("there", "{value}"), "must hold {value} exactly once"),
        ("value", GOOD.replace("there", "{there}"), "no other braces"),
        ("value", GOOD.replace("{value}", "{answer}"), "must hold {value} exactly once"),
        ("value", GOOD.replace("{value}", "${value}"), "glues a sign to {value}"),
        ("value", GOOD.replace("{value}", "{value}s"), "glues a sign to {value}"),
        ("value", GOOD.replace("{value}", "'{value}'"), "glues a sign to {value}"),
        ("value", GOOD.replace("chess", "second"), "holds the number word 'second'"),
        ("value", GOOD.replace("there", "but one"), "holds the number word 'one'"),
        ("value", GOOD.replace("there", "in Room 7"), "holds the number '7'"),
        ("value", GOOD.replace("there", "and ½"), "holds the number '½'"),
        ("value", GOOD.replace("there", "with no doubt"), "holds 'no'"),
        ("value", GOOD.replace("there", "with no doubt"), "holds 'doubt'"),
        ("value", GOOD.replace("there", "maybe"), "holds 'maybe'"),
        ("value", GOOD.replace("there", "reportedly"), "holds 'reportedly'"),
        ("value", "A chess server: everybody there says {value}.", "holds the lone capital 'A'"),
        ("value", "Chess server: the final answer is {value}.", "holds 'final answer is'"),
        ("value", "Everybody says {value}.", "has 3 words; use 5 to 30"),
        ("value", "On and on " * 10 + "{value}.", "has 31 words; use 5 to 30"),
        ("value", GOOD.replace("there", "<b>there</b>"), "holds '<b>'; write plain text on one line"),
        ("value", GOOD.replace(": ", ":\\n"), "write plain text on one line"),
        ("irrelevant", QUIET.replace("there", "{value}"), "must hold no field but {about}"),
        ("irrelevant", QUIET.replace("there", "{about} or {about}"), "that at most once"),
        ("irrelevant", QUIET.replace("there", "'{about}'"), "glues a sign to {about}"),
        ("unrelated", QUIET.replace("there", "{about}"), "must hold no field"),
        ("irrelevant", QUIET.replace("adores", "wrongly adores"), "holds 'wrongly'"),
        ("irrelevant", QUIET.replace("adores", "says yes to"), "holds 'yes'"),
        ("irrelevant", QUIET.replace("chess server", "chess server in Lot D"), "holds the lone capital 'D'"),
        ("irrelevant", "", "has 0 words; use 5 to 30"),
        ("irrelevant", BUILT_IN["forum"].irrelevant[0].replace('"', '\\"').upper(), "stands already in forum"),
    ],
)
def test_each_fault_of_a_phrasing_is_a_sentence(own, kind, phrasing, message):
    path = own(f'[forum]\n{kind} = ["{phrasing}"]\n')
    lines = faults_of(path)
    said = [line for line in lines if message in line]
    assert len(said) == 1, lines
    written = tomllib.loads(path.read_text("utf-8"))["forum"][kind][0]
    assert said[0].startswith(f"{path}: forum: {kind}: {written!r} "), said[0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[forun]\nvalue = ["x"]', "unknown channel 'forun'; use one of answer_key, "),
        ("[forum]", "forum: holds no phrasing"),
        (
            '[forum]\nvalues = ["x"]',
            "forum: unknown list 'values'; a channel has lists named value, irrelevant",
        ),
        ('[forum]\nvalue = "x"', "forum: value is 'x'; write a list of phrasings"),
        ("[forum]\nvalue = [7]", "forum: value: 7 is not a text; put it in quotes"),
        ('forum = ["x"]', "forum: is ['x']; write [forum] on a line of its own"),
        (f'replace = true\n[forum]\nvalue = ["{GOOD}"]', "forum: needs at least one value and one irrelevant"),
        (f'replace = true\n[forum]\nvalue = ["{GOOD}"]\nirrelevant = []', "needs at least one value"),
        (f'replace = "on"\n[forum]\nvalue = ["{GOOD}"]', "replace is 'on'; write replace = true"),
        (f'[forum]\nreplace = true\nvalue = ["{GOOD}"]', "move it to the top of the file"),
        (f'[forum]\nvalue = ["{GOOD}", "{GOOD}"]', "stands twice, first in forum; leave out one of them"),
        (f'[forum]\nvalue = ["{GOOD}"]\n[other]\nvalue = ["{GOOD.lower()}"]', "stands twice, first in forum"),
        ("replace = true", "no channel is named; give at least one of answer_key"),
        ("", "no channel is named"),
        ('[forum]\nvalue = ["x]', "is not valid TOML (Illegal character"),
    ],
)
def test_each_fault_of_a_file_is_a_sentence(own, text, message):
    path = own(text + "\n")
    said = [line for line in faults_of(path) if message in line]
    assert len(said) == 1 and said[0].startswith(f"{path}: ")


def test_unreadable_files_are_explained(own, tmp_path):
    assert "cannot be read (No such file or directory)" in faults_of(tmp_path / "none.toml")[0]
    assert "cannot be read (Is a directory)" in faults_of(tmp_path)[0]
    (tmp_path / "latin.toml").write_bytes('[forum]\nvalue = ["café {value}"]'.encode("latin-1"))
    assert "is not UTF-8; save the phrasing file as UTF-8" in faults_of(tmp_path / "latin.toml")[0]


def test_all_faults_of_all_files_are_told_at_once(own):
    broken = own("[forum", "broken.toml")
    bad = own('[forum]\nvalue = ["Short {value}.", "A second guess, dear chess friends: {value}."]', "bad.toml")
    lines = faults_of(broken, own(MORE), bad)
    assert [Path(line.split(": ")[0]).name for line in lines] == ["broken.toml", *["bad.toml"] * 4]
    assert all("; " in line for line in lines)  # each says what to do


def test_a_base_file_needs_every_channel_with_both_kinds(own):
    with pytest.raises(SignalError) as caught:
        load_banks(own(MORE))
    lines = str(caught.value).splitlines()
    assert sum("is missing; give it value and irrelevant phrasings" in line for line in lines) == 7
    assert sum("other: needs at least one value and one irrelevant" in line for line in lines) == 1


# ---------------------------------------------------------------- naming an option by its text


@pytest.mark.parametrize(
    ("wrong", "gold", "fits"),
    [
        ("the red box", "the blue box", True),
        ("copper", "iron", True),
        ("ice", "evaporation", True),  # other lengths, but both of at most two words
        ("magma", "solar radiation", True),
        ("the Pacific Ocean", "Mars", False),  # three words over one
        ("they go to sleep", "they walk to school", True),
        ("oil", "they walk to school in the rain", False),
        ("a b c d e f g", "t u v w x y z", True),
        ("a b c d e f g h", "t u v w x y z", False),  # over seven words
        ("x" * 48, "y" * 48, True),
        ("x" * 49, "y" * 48, False),
        ("red", "a red box", False),
        ("Red", "red", False),
        ("red box", "a redder box", True),  # not as a whole
        ("5", "15", True),
        ("-5", "5", False),
        ("vitamin C", "vitamin E", False),
        ("A magnet", "iron dust", False),
        ("it melts.", "it boils.", False),
        ("", "iron", False),
    ],
)
def test_which_option_texts_a_context_may_name(wrong, gold, fits):
    assert fits_text_form(wrong, gold) is fits
    assert fits_text_form(gold, wrong) is fits


def test_the_word_lists_are_those_of_the_checks():
    assert words.NUMBER_WORDS == checks.NUMBER_WORDS and words.NUMBER_WORDS["ninety"] == 90
    assert words.NUMBER_LIKE == checks.NUMBER_LIKE and words.YES_NO == checks.YES_NO
