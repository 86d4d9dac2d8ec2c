"""Progress on stderr: one line that changes on a terminal, a line a stage elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from profkit.ui.text import literal

_SHOWN_AFTER = 2.0  # seconds; what is read sooner needs no progress
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
    """A line on stderr, on a terminal, once reading has taken two seconds."""
    started = time.monotonic()
    shown = False

    def update(done: int, total: int) -> None:
        nonlocal shown
        elapsed = time.monotonic() - started
        if sys.stderr.isatty() and elapsed >= _SHOWN_AFTER:
            shown = True
            sys.stderr.write(f"\rreading {done} of {total}, {elapsed:.0f} s\x1b[K")
            sys.stderr.flush()

    try:
        yield update
    finally:
        if shown:
            sys.stderr.write(_CLEAR)
