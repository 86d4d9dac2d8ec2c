"""Progress on stderr: one line that changes on a terminal, a line a stage elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import TracebackType

_WORTH_SHOWING = 2.0


class Teller:
    """Tells stages and what goes on in them; leaves a clean line behind."""

    def __init__(self) -> None:
        self._live = sys.stderr.isatty()
        self._started = time.monotonic()
        self._stage = ""

    def tell(self, stage: str, what: str) -> None:
        """Say what goes on now; elsewhere than on a terminal only that a stage begins."""
        with suppress(OSError):  # nobody looks any more
            self._write(stage, what)
        self._stage = stage

    def _write(self, stage: str, what: str) -> None:
        elapsed = time.monotonic() - self._started
        if self._live:
            sys.stderr.write(f"\r\x1b[K{elapsed:6.1f} s  {stage}  {what}"[:100])
            sys.stderr.flush()
        elif stage != self._stage:
            sys.stderr.write(f"{elapsed:6.1f} s  {stage}\n")

    def __enter__(self) -> Teller:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._live and self._stage:
            with suppress(OSError):
                sys.stderr.write("\r\x1b[K")
        self._stage = ""


@contextmanager
def progress_line() -> Iterator[Callable[[int, int], None]]:
    """A line on stderr, on a terminal, once reading has taken two seconds."""
    started = time.monotonic()
    shown = False

    def update(done: int, total: int) -> None:
        nonlocal shown
        if not sys.stderr.isatty() or time.monotonic() - started < _WORTH_SHOWING:
            return
        shown = True
        sys.stderr.write(f"\rreading {done} of {total}, {time.monotonic() - started:.0f} s\x1b[K")
        sys.stderr.flush()

    try:
        yield update
    finally:
        if shown:
            sys.stderr.write("\r\x1b[K")
