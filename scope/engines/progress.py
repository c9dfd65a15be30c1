"""Progress inside a long run of requests: rows done, tokens a second, time left. It enters no key and no output."""

import contextlib
import logging
import threading
import time
from collections.abc import Iterator

log = logging.getLogger(__name__)

EVERY = 30.0  # seconds between two plain lines, where standard error is no terminal
REDRAWN = 0.5  # seconds between two looks of the bar on a terminal


class Progress:
    """A bar on a terminal; elsewhere one plain line every EVERY seconds.

    rows: requests to answer. An engine calls `advance` inside a batch as often as it likes, and the driver `settle`
    when the batch has ended; safe between threads.
    """

    def __init__(self, label: str, rows: int):
        from tqdm import tqdm

        self.label, self.rows = label, rows
        self.bar = tqdm(total=rows, desc=label, unit="row", disable=None, mininterval=REDRAWN)
        self._lock = threading.Lock()
        self._began = self._shown = time.monotonic()
        self._ended, self._inside = [0, 0], [0, 0]  # rows and tokens: of batches that have ended, of those that run

    def advance(self, rows: int, tokens: int) -> None:
        """Rows of a running batch have ended, and new tokens have come."""
        with self._lock:
            self._inside = [self._inside[0] + rows, self._inside[1] + tokens]
            self._show()

    def settle(self, rows: int, tokens: int) -> None:
        """A batch has ended with so many answers; what it advanced by is part of them."""
        with self._lock:
            self._ended, self._inside = [self._ended[0] + rows, self._ended[1] + tokens], [0, 0]
            self._show(self._ended[0] >= self.rows)

    def text(self) -> str:
        """Tokens so far with their rate, and the time left by the rows done; nothing of that before the first."""
        seconds = max(time.monotonic() - self._began, 1e-9)
        rows, tokens = (a + b for a, b in zip(self._ended, self._inside, strict=True))
        said = [f"{tokens} new tokens, {tokens / seconds:.0f} tokens/s"] if tokens else []
        if rows:
            said.append(f"about {self.bar.format_interval(seconds * (self.rows - rows) / rows)} left")
        return ", ".join(said)

    def _show(self, last: bool = False) -> None:
        now, done = time.monotonic(), self._ended[0] + self._inside[0]
        if self.bar.disable:
            if now - self._shown >= EVERY:
                self._shown = now
                log.info("%s: %d of %d rows, %s", self.label, done, self.rows, self.text() or "none has ended yet")
        elif last or now - self._shown >= REDRAWN:
            self._shown = now
            self.bar.n = done
            self.bar.set_postfix_str(self.text())


@contextlib.contextmanager
def progress(label: str, rows: int) -> Iterator[Progress]:
    """A `Progress` whose bar is closed at the end; log lines do not tear the bar."""
    from tqdm.contrib.logging import logging_redirect_tqdm

    shown = Progress(label, rows)
    with shown.bar, contextlib.nullcontext() if shown.bar.disable else logging_redirect_tqdm():
        yield shown
