"""The flexible reading: the last value of the answer's type in the visible text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from scope.answers.cleaning import FOLD, clean
from scope.answers.grammar import BOOLEAN_STOP, NOT_UNITS, NUMBER, UNITS, number, number_at
from scope.answers.statements import parse_answer, split_thinking
from scope.answers.values import UNPARSED, Answer

_I = re.IGNORECASE
_WINDOW = 20_000  # characters from the end that are looked at
_LETTERS = 10  # A to J where the options are not known


def flexible_answer(text: str, answer_type: str, options: Sequence[str] = ()) -> Answer:
    """Read an answer by its content where its form is not the agreed one, as lm-eval's `flexible-extract`.

    text: raw completion, any string. answer_type: one of ANSWER_TYPES. options: the texts of an item's options,
    A first (multiple choice); without them letters to J count and no texts.
    Raises ValueError for an unknown answer type or more than 26 options, never because of the text.

    Where the strict reading finds a value, or a choice between several (`ambiguous`), that is the reading: an
    explicit statement says more than the place of a word, and so this reading can only add answers to the strict
    one. The difference of the two rates is then exactly the answers that form alone had cost. Elsewhere, also
    after a statement that could not be read, the last value of the visible text counts (its last 20,000
    characters); an open thinking block leaves none. A value is

    - a letter standing alone (B, (b), **B**, option b), not the article or pronoun, nor one of an enumeration
      (`A or B`, an echoed list of options); or an option's own text between word boundaries, the longest first;
    - a whole number (1,234.5 · -7 · $5 · 3/4 · 2 million · 3 × 10^5), not digits in a word or list marker, nor a
      number that is part of an expression: `2^10`, `31 + 31`, `10-15`, `12:30`, `1,5` hold none, `31 + 31 = 62` has 62;
    - yes, no, true or false as a sentence's own word, not `no solution`, `a true story` or `yes or no`;

    and none of them right after "not".
    """
    strict = parse_answer(text, answer_type, len(options) or None)
    _, visible = split_thinking(text)
    if strict.status != "unparsed" or visible is None:
        return strict
    lines = visible[-_WINDOW:].translate(FOLD).split("\n")
    if answer_type == "multiple_choice":
        lines = _without_lists(lines)
        texts = _option_texts(options)
    for line in reversed(lines):
        line = clean(line)
        if answer_type == "multiple_choice":
            found = _last_option(line, len(options) or _LETTERS, texts)
        else:
            found = _last_number(line) if answer_type == "numeric" else _last_truth(line)
        if found is not None:
            return found
    return UNPARSED


_NOT = re.compile(r"(?:\bnot|n't|\bnever)\s(?:option\s)?[(\[\"']*\Z", _I)


def _negated(line: str, at: int) -> bool:
    return _NOT.search(line[max(0, at - 20) : at]) is not None


# ------------------------------------------------------------------------------------------ letters and options

_LISTED = re.compile(r"[\s>*_`+-]*[(\[]?(?P<letter>[A-J])[)\].:][*_`]*\s", _I)
_IN_A_ROW = re.compile(
    r"[(\[]?\b[A-J]\b[)\]]?(?:\s?(?:[,/|&]|,?\s?(?:or|and|nor|to)\b)\s?(?:option\s)?[(\[]?\b[A-J]\b[)\]]?)+"
)
_INLINE = re.compile(r"(?<!\w)[(\[]?([A-J])[)\].:](?=\s)")
_ALONE = re.compile(
    r"(?P<named>\b(?:option|choice|letter|answer)\s[(\[\"]?)?(?:(?P<open>[(\[])(?P<inside>[A-J])[)\]]"
    r"|(?<![\w'.°-])(?P<bare>[A-J])(?![\w'+#°]|-\w|\.\w))",
    _I,
)
_NO_OPTION = re.compile(
    r"(?:\d\s?|°|\b(?:vitamin|plan|point|type|grade|class|group|team|hepatitis|angle|event)s?\s)\Z", _I
)
_SAYS = re.compile(r"\s*(?:$|[^\w\s]|(?:is|was|because|since|must|would|seems|as)\b)", _I)


def _without_lists(lines: Sequence[str]) -> list[str]:
    """Lines without echoed lists of options: two or more lines in a row that open with letters in order."""
    kept: list[str] = []
    run: list[tuple[str, str]] = []
    for line in (*lines, "end"):
        found = _LISTED.match(line)
        if found and run and ord(found["letter"].upper()) == ord(run[-1][0]) + 1:
            run.append((found["letter"].upper(), line))
        elif line.strip() or not run:
            kept += [listed for _, listed in run] if len(run) == 1 else []
            run = [(found["letter"].upper(), line)] if found else []
            kept += [] if found else [line]
    return kept[:-1]


def _option_texts(options: Sequence[str]) -> tuple[re.Pattern[str], dict[str, str]] | None:
    """A pattern of the options' texts, longest first, and the letter of each; None if none can be told apart."""
    letters: dict[str, str] = {}
    for i, option in enumerate(options):
        text = clean(option.translate(FOLD)).rstrip(" .").casefold()
        if len(text) > 1 or text.isdigit():
            letters[text] = "" if text in letters else chr(ord("A") + i)
    texts = [re.escape(text) for text in sorted(letters, key=len, reverse=True)]
    if not texts:
        return None
    return re.compile(rf"(?<![\w^/])(?<!\d[.,:])(?<!-)(?:{'|'.join(texts)})(?!\w|[.,:/^]\d|-\w)", _I), letters


def _last_option(line: str, n_options: int, texts: tuple[re.Pattern[str], dict[str, str]] | None) -> Answer | None:
    found: list[tuple[int, str]] = []
    covered: list[tuple[int, int]] = []
    if len({letter.upper() for letter in _INLINE.findall(line)}) < max(2, n_options):
        for mention in texts[0].finditer(line) if texts else ():
            covered.append(mention.span())
            found.append((mention.start(), texts[1].get(mention[0].casefold(), "") if texts else ""))
        covered += [row.span() for row in _IN_A_ROW.finditer(line) if len(set(re.findall(r"\b[A-J]\b", row[0]))) > 1]
        for alone in _ALONE.finditer(line):
            letter = alone["inside"] or alone["bare"]
            at = alone.start("inside") if alone["inside"] else alone.start("bare")
            if any(start <= at < end for start, end in covered) or ord(letter.upper()) - ord("A") >= n_options:
                continue
            if not (alone["inside"] or alone["named"]):
                loose = letter in "AI" and not _SAYS.match(line, alone.end())
                if letter.islower() or loose or _NO_OPTION.search(line[max(0, at - 12) : at]):
                    continue
            found.append((alone.start(), letter.upper()))
    found = [(at, letter) for at, letter in found if letter and not _negated(line, at)]
    return Answer("ok", max(found)[1]) if found else None


# --------------------------------------------------------------------------------------------------- numbers

_MARKER = re.compile(r"[\s>]*(?:[-•+]\s+)?(?:\d{1,3}[.)]\s|(?:step|part|question|case)\s\d+\b)?", _I)
_STARTS = re.compile(r"[+-]?(?:\.?[0-9])[0-9]*")  # a run of digits is one number or none
_JOINED_BEFORE = re.compile(r"(?:\w|\.|[0-9][,:]|[(\s]?[-+×*÷/^√<>±#]\s?)\Z")
_JOINED_AFTER = re.compile(
    r"[)\]]*\s?(?:[+×÷*^√±]|-\s?[0-9(]|/\s?[0-9(])|[.,:/]?[0-9]|\(\s?[0-9]|-\w|!(?!\s|$)|[^\W\d_]{1,2}\^?[0-9+*/=]"
)
_NEXT_WORD = re.compile(r"(?P<space>\s?)-?(?P<word>[^\W\d_]+)")


def _last_number(line: str) -> Answer | None:
    last: Answer | None = None
    marker = _MARKER.match(line)
    line = line[marker.end() :] if marker else line
    at = 0
    while (start := _STARTS.search(line, at)) is not None:
        match, at = NUMBER.match(line, start.start()), start.end()
        found = number_at(line, start.start()) if match else None
        if match is None or found is None:
            continue
        value, at = found
        if _whole(line, match, at) and not _negated(line, match.start()) and number(value).status == "ok":
            last = number(value)
    return last


def _whole(line: str, match: re.Match[str], end: int) -> bool:
    """Whether a number is neither part of a word nor of an expression."""
    before = line[max(0, match.start() - 4) : match.start()]
    if _JOINED_AFTER.match(line, end) or (before and _JOINED_BEFORE.search(before)):
        return False
    if match["sign"] and re.search(r"[\w)]\s?\Z", before) and before.rstrip()[-1:] in "0123456789)":
        return False  # 5 -7
    word = _NEXT_WORD.match(line, end)
    return word is None or (
        word["word"].lower() not in NOT_UNITS and (bool(word["space"]) or word["word"].lower() in UNITS)
    )


# ---------------------------------------------------------------------------------------------------- yes, no

_TRUTH = re.compile(r"(?<![\w'-])(?P<value>yes|no|true|false)(?![\w'-])", _I)
_JOINED = re.compile(r"\s?(?:/|\||,?\s?\b(?:or|nor)\b)\s?[(\"']*(?:yes|no|true|false)(?![\w'-])", _I)


def _truths(line: str) -> Iterator[str]:
    at = 0
    while (match := _TRUTH.search(line, at)) is not None:
        at = match.end()
        if joined := _JOINED.match(line, at):
            at = joined.end()
        elif BOOLEAN_STOP.match(line, at) and not _negated(line, match.start()):
            yield "yes" if match["value"].lower() in ("yes", "true") else "no"


def _last_truth(line: str) -> Answer | None:
    found = list(_truths(line))
    return Answer("ok", found[-1]) if found else None
