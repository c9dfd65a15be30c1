"""Finding the last explicit statement of an answer in a completion: the strict reading."""

from __future__ import annotations

import re
from collections import deque

from scope.answers.cleaning import FOLD, word_set
from scope.answers.grammar import MAX_PAYLOAD, read_payload
from scope.answers.values import AMBIGUOUS, UNPARSED, Answer, check_type, same_answer

_I = re.IGNORECASE
_MAX_STATEMENTS = 200  # of more statements than this only the last ones are looked at
_THINK_TAG = re.compile(r"</?think(?:ing)?>", _I)


def parse_answer(text: str, answer_type: str, n_options: int | None = None) -> Answer:
    """Read the final answer of a completion.

    text: raw completion, any string of any length, thinking included.
    answer_type: one of ANSWER_TYPES. n_options (1 to 26, multiple choice only): letters beyond are unparsed.
    Raises ValueError for an unknown answer type or an n_options out of range, never because of the text.
    """
    check_type(answer_type, n_options)
    _, visible = split_thinking(text)
    if visible is None:
        return UNPARSED
    visible = visible.translate(FOLD)
    end = len(visible)
    if (hashes := _HASHES.match(visible.rstrip().rpartition("\n")[2])) is not None:
        marked = read_payload(hashes["payload"], answer_type, n_options, strict=True)
        if marked.status != "unparsed":
            return marked
    for cue in reversed(deque(_CUE.finditer(visible), maxlen=_MAX_STATEMENTS)):
        start = _statement_start(visible, cue)
        tail = _TO_IS.match(visible, cue.end(), end) if cue["to"] else cue
        if start is None or tail is None:
            continue
        if cue["box"]:
            found = _read_box(visible, cue, answer_type, n_options)
        else:
            found = _read_statement(visible, tail.end(), end, answer_type, n_options)
        if cue["dash"] and found == UNPARSED:  # the answer - as shown above - is 5
            continue
        if found is not None:
            return found
        end = start
    visible = visible.strip()
    lines = visible.split("\n") if len(visible) <= MAX_PAYLOAD else []
    lines = [line for line in lines if not _NOTHING.fullmatch(line)]
    return read_payload(lines[0], answer_type, n_options, strict=True) if len(lines) == 1 else UNPARSED


def split_thinking(text: str) -> tuple[str, str | None]:
    """Split a completion into (thinking, visible text); visible is None where a block is left open.

    Blocks are <think>...</think> or <thinking>...</thinking>, not nested. A closing tag that nothing opened
    makes everything before it thinking: chat templates may put the opening tag into the prompt.
    """
    thinking: list[str] = []
    visible: list[str] = []
    position, is_open = 0, False
    for tag in _THINK_TAG.finditer(text):
        if tag[0][1] == "/":
            if not is_open:
                thinking.extend(visible)
                visible.clear()
            thinking.append(text[position : tag.start()])
        elif is_open:
            continue
        else:
            visible.append(text[position : tag.start()])
        position, is_open = tag.end(), tag[0][1] != "/"
    (thinking if is_open else visible).append(text[position:])
    return "".join(thinking), None if is_open else "".join(visible)


_HASHES = re.compile(rf"#### ?(?P<payload>[^\n]{{1,{MAX_PAYLOAD}}})\Z")  # the last line, as in GSM8K
_GAP = r"[\s*_`]{1,6}"  # between the words of a statement: space or emphasis
_MARK = r"[ *_`]{0,6}"
_IS = rf"{_GAP}(?i:is)(?![^\W_]){_MARK}[:=]?"
_CUE = re.compile(
    rf"""
      (?P<box>\\boxed\s{{0,4}}\{{)
    | (?P<zh>答案)(?:应该|應該)?{_MARK}(?:[是为為]{_MARK}[:=]?|[:=])
    | (?i:answer)(?![^\W_])(?:
        (?: {_MARK}\([^()\n]{{0,60}}\) | ,?{_GAP}(?i:then|therefore|thus|hence),? )?(?:{_IS}|{_MARK}[:=])
      | (?P<dash>{_MARK}(?:—|(?<=[ *_`])-)(?=[\s*_`]))
      | (?P<to>{_GAP}(?i:to|for|of)(?=[ ]))
      | (?P<heading>[ *_`]{{0,8}}(?=\n|\Z)) )
    """,
    re.VERBOSE,
)
_TO_IS = re.compile(rf"(?:[ ][^\s:]{{1,30}}(?<![.!?;])){{1,12}}?{_IS}")  # the answer to the question is
# Only these may stand before "answer": the official, wrong, previous or TA's answer states nothing.
_LEADING = re.compile(
    rf"(?<![^\W_])(?:(?:the|my|our|your){_GAP})?(?:(?:final|correct|right|best|actual|true){_GAP}){{0,2}}\Z",
    _I,
)
_HYPOTHETICAL = re.compile(r"(?<![^\W_])(?:if|whether|unless|suppose|assume|assuming)(?: that)?[ *_`]{1,6}\Z", _I)
_HEADING_LINE = re.compile(r"[\s#*_>`-]{0,10}(?:\d{1,2}[.)]\s)?[*_]{0,3}(?:the\s|my\s)?(?P<final>final\s)?", _I)
_LEAD = re.compile(r"(?:[\s*_`$#]|\\\[|\\\(|-{3,})*")  # what may stand between a statement and its payload
_NOTHING = re.compile(r"[\s*_`~$#>.…:;,!?\"'<()\[\]{}|\\/-]*")
_PLACEHOLDER = re.compile(r"[\"'(\\]{0,2}[<\[{]([A-Za-z\s|/,]{1,60})[>\]}]")
_PLACEHOLDER_WORDS = word_set("letter number answer value integer option result")
_PLACEHOLDER_FILLERS = word_set("yes no or your the a an here insert final numeric correct")


def _statement_start(text: str, cue: re.Match[str]) -> int | None:
    """Where the statement of a cue begins, or None if the cue is no statement of an answer."""
    at = cue.start()
    before = text[max(0, at - 60) : at]
    if cue["box"] is not None:
        return at
    if cue["zh"] is not None:
        return None if before.endswith(("参考", "參考", "错误", "錯誤", "标准", "標準")) else at
    if cue["heading"] is not None:
        line = before.rpartition("\n")[2]
        heading = _HEADING_LINE.fullmatch(line) if line != before or at == len(before) else None
        decorated = heading and (heading["final"] or "#" in line or "**" in line or "__" in line)
        return at - len(line) if decorated else None
    leading = _LEADING.search(before)
    if leading is None or not leading[0]:
        last = before.rstrip(" *_`")[-1:]
        return None if last in ("'", "-") or (last.isalpha() and last < "\u2e80") else at
    return None if _HYPOTHETICAL.search(before[: leading.start()]) else at - len(leading[0])


def _read_statement(text: str, start: int, end: int, answer_type: str, n_options: int | None) -> Answer | None:
    """The answer stated on the first line with content in text[start:end]; None if nothing is stated."""
    lead = _LEAD.match(text, start, end)
    start = lead.end() if lead else start
    window = text[start : min(end, start + MAX_PAYLOAD)]
    line, newline, _ = window.partition("\n")
    if not newline and start + len(window) < end:  # cut by the limit: the last word may be half a number
        line = line.rpartition(" ")[0] or "?"
    elif _NOTHING.fullmatch(line) or _is_placeholder(line):
        return None
    return read_payload(line, answer_type, n_options)


def _is_placeholder(line: str) -> bool:
    match = _PLACEHOLDER.match(line)
    words = set(re.findall("[a-z]+", match[1].lower() if match else ""))
    if not match or f"</{match[1]}" in line or not words <= _PLACEHOLDER_WORDS | _PLACEHOLDER_FILLERS:
        return False
    return bool(words & _PLACEHOLDER_WORDS) or words >= {"yes", "no"}


def _read_box(text: str, cue: re.Match[str], answer_type: str, n_options: int | None) -> Answer | None:
    """The answer inside \\boxed{...}; None for an empty box. A box that is not closed is unreadable."""
    start, depth = cue.end(), 1
    close = -1
    for at in range(start, min(len(text), start + MAX_PAYLOAD)):
        depth += {"{": 1, "}": -1}.get(text[at], 0)
        if depth == 0:
            close = at
            break
    body = text[start : close if close >= 0 else start + MAX_PAYLOAD]
    if _NOTHING.fullmatch(body) or _is_placeholder(body):
        return None
    answer = read_payload(body, answer_type, n_options) if close >= 0 else UNPARSED
    before = _BOX_CHOICE_BEFORE.search(text[max(0, cue.start() - 100) : cue.start()])
    after = _BOX_CHOICE_AFTER.match(text, close + 1) if close >= 0 else None
    for other in (before, after):  # \boxed{24} or \boxed{48}; \boxed{24} or 48
        alternative = read_payload(other[1], answer_type, n_options) if other else answer
        if answer.status == alternative.status == "ok" and not same_answer(answer, alternative, answer_type):
            return AMBIGUOUS
    return answer


_BOX_CHOICE_BEFORE = re.compile(r"\\boxed\s?\{([^{}]*)\}[\s$]{0,4}(?:,|or|and|, or|, and)[\s$]{1,4}\Z")
_BOX_CHOICE_AFTER = re.compile(r"[ $*]{0,4}(?:or|and) ([^\n]{1,60})")
