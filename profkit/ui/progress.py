"""Progress on stderr: one line that changes on a terminal, a line a stage elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from profkit.ui.text import literal

_SHOWN_AFTER = 1.0  # seconds, chosen: with what comes before, something is seen within two
_CLEAR = "\r\x1b[K"
_WIDEST = 96  # columns, chosen: on one line of most terminals


@contextmanager
def stage_progress() -> Iterator[Callable[[str, str], None]]:
    """A function that shows a stage and what goes on in it; leaves a clean line behind."""
    live, started, current = sys.stderr.isatty(), time.monotonic(), ""

    def show(stage: str, detail: str) -> None:
        nonlocal current
        elapsed = time.monotonic() - started
        with suppress(OSError):  # nobody looks any more
            if live:
                text = literal(f"{elapsed:6.1f} s  {stage}  {detail}")
                sys.stderr.write(f"{_CLEAR}{text[:_WIDEST]}")
                sys.stderr.flush()
            elif stage != current:
                sys.stderr.write(f"{elapsed:6.1f} s  {literal(stage)}\n")
        current = stage

    try:
        yield show
    finally:
        if live and current:
            with suppress(OSError):
                sys.stderr.write(_CLEAR)


@contextmanager
def progress_line() -> Iterator[Callable[[int, int], None]]:
    """A line on stderr once reading takes long, which changes on a terminal."""
    live, started, shown = sys.stderr.isatty(), time.monotonic(), False

    def update(done: int, total: int) -> None:
        nonlocal shown
        elapsed = time.monotonic() - started
        if elapsed >= _SHOWN_AFTER and (live or not shown):
            shown = True
            text = f"reading {done} of {total}, {elapsed:.0f} s"
            with suppress(OSError):
                sys.stderr.write(f"{_CLEAR}{text}" if live else f"{text}\n")
                sys.stderr.flush()

    try:
        yield update
    finally:
        if live and shown:
            with suppress(OSError):
                sys.stderr.write(_CLEAR)
