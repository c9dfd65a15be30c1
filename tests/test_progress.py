"""Progress inside a batch: on a terminal a bar, in a log plain lines, in no key and no output."""

import io
import re
import sys

import pytest
from server import local_engine, small_model

from scope.engines import Sampling, Store, complete, progress
from scope.engines.base import ignored

PROMPTS = [f"What is {n} plus 2?" for n in range(6)]


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def clock(monkeypatch):
    """Seconds, moved by hand; standard error is no terminal."""
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    return now


def test_a_log_gets_plain_lines_inside_a_batch(smollm2, tmp_path, monkeypatch, caplog):
    """All requests are one batch: lines come before it ends, with nothing that moves a cursor."""
    engine = local_engine(small_model(tmp_path / "model", smollm2))
    expected = complete(engine, PROMPTS, Sampling(24), Store(tmp_path / "a.sqlite"), "test")
    stderr = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stderr)
    monkeypatch.setattr(progress, "EVERY", 0.0)
    with caplog.at_level("INFO", logger="scope"):
        found = complete(engine, PROMPTS, Sampling(24), Store(tmp_path / "b.sqlite"), "test")
    assert [(c.request_id, c.text, c.n_tokens) for c in found] == [(c.request_id, c.text, c.n_tokens) for c in expected]
    assert engine.advance is ignored, "the engine forgets who follows"
    lines = [line for line in caplog.messages if " of 6 rows, " in line]
    form = r"test: \d of 6 rows, \d+ new tokens, \d+ tokens/s(, about [\d:]+ left)?"
    assert len(lines) >= 2 and all(re.fullmatch(form, line) for line in lines), caplog.messages
    assert stderr.getvalue() == ""


def test_a_line_comes_only_every_so_often(clock, caplog):
    with caplog.at_level("INFO", logger="scope"), progress.progress("x", 100) as shown:
        for second in range(1, 100):
            clock[0] = float(second)
            shown.advance(1, 10)
    assert len(caplog.messages) == 3
    assert caplog.messages[0] == "x: 30 of 100 rows, 300 new tokens, 10 tokens/s, about 01:10 left"


def test_before_the_first_row_nothing_is_said_of_the_time_left(clock):
    with progress.progress("x", 10) as shown:
        clock[0] = 10.0
        shown.advance(0, 100)
        assert shown.text() == "100 new tokens, 10 tokens/s"
        shown.settle(5, 200)  # what the batch advanced by is part of what it ends with
        assert shown.text() == "200 new tokens, 20 tokens/s, about 00:10 left"


@pytest.mark.parametrize("terminal", [True, False])
def test_a_bar_stands_on_a_terminal_alone(monkeypatch, terminal):
    stderr = Terminal() if terminal else io.StringIO()
    monkeypatch.setattr(sys, "stderr", stderr)
    monkeypatch.setattr(progress, "REDRAWN", 0.0)
    with progress.progress("x", 10) as shown:
        shown.advance(4, 100)
        shown.settle(10, 200)
    assert ("10/10" in stderr.getvalue() and "tokens/s" in stderr.getvalue()) == terminal
    assert bool(stderr.getvalue()) == terminal


@pytest.mark.parametrize("terminal", [True, False])
def test_training_shows_a_bar_on_a_terminal_and_plain_lines_elsewhere(monkeypatch, capsys, terminal):
    from transformers import TrainerControl, TrainerState

    from scope.training import callbacks

    stderr = Terminal() if terminal else io.StringIO()
    monkeypatch.setattr(sys, "stderr", stderr)
    shown, state, control = callbacks.Progress(), TrainerState(max_steps=4), TrainerControl()
    shown.on_train_begin(None, state, control)
    for step in (1, 2, 3, 4):
        state.global_step = step
        shown.on_step_end(None, state, control)
        shown.on_log(None, state, control, logs={"loss": 0.5, "learning_rate": 1e-3, "rewards/margins": -0.0})
    shown.on_train_end(None, state, control)
    lines = capsys.readouterr().out.strip().splitlines()
    assert bool(stderr.getvalue()) == terminal
    assert [bool(re.search(r", about [\d:]+ left$", line)) for line in lines] == [not terminal] * 3 + [False]
    assert lines[-1].endswith("step 4/4: loss 0.5000, margin 0, lr 0.001")
