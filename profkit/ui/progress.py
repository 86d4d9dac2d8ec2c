"""Progress on stderr: one line that changes on a terminal, a line a stage elsewhere."""

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from profkit.ui.text import literal

_SHOWN_AFTER = 1.0  # seconds, chosen: with what comes before, something is seen within two
_MOVES = 1.0  # seconds, chosen
_CLEAR = "\r\x1b[K"
_WIDEST = 96  # columns, chosen: on one line of most terminals


@contextmanager
def stage_progress(after: float = 0.0) -> Iterator[Callable[[str, str], None]]:
    """A function that shows a stage and what goes on in it, on a terminal with the time that
    passes, from `after` seconds on; leaves a clean line behind."""
    live, started, shown = sys.stderr.isatty(), time.monotonic(), ("", "")
    ended = threading.Event()

    def line() -> str:
        stage, detail = shown
        return literal(f"{time.monotonic() - started:6.1f} s  {stage}  {detail}".rstrip())

    def show(stage: str, detail: str) -> None:
        nonlocal shown
        elapsed = time.monotonic() - started
        if elapsed < after:
            return
        before, shown = shown[0], (stage, detail)
        if live or stage != before:
            _write(
                f"{_CLEAR}{line()[:_WIDEST]}" if live else f"{elapsed:6.1f} s  {literal(stage)}\n"
            )

    def keep_moving() -> None:
        while not ended.wait(_MOVES):
            if shown[0]:
                _write(f"{_CLEAR}{line()[:_WIDEST]}")

    mover = threading.Thread(target=keep_moving, daemon=True)
    if live:
        mover.start()
    try:
        yield show
    finally:
        ended.set()
        if live:
            mover.join()
            _write(_CLEAR if shown[0] else "")


def _write(text: str) -> None:
    with suppress(OSError):  # nobody looks any more
        sys.stderr.write(text)
        sys.stderr.flush()


@contextmanager
def progress_line() -> Iterator[Callable[[int, int], None]]:
    """A line on stderr once reading takes long, which changes on a terminal."""
    with stage_progress(_SHOWN_AFTER) as show:
        yield lambda done, total: show("reading", f"{done} of {total}")
