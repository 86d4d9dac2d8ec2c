"""Stands in for the host clock by which calls are timed: it goes on by what calls say they take.

Times, and verdicts on them, are then the same on any machine, however busy it is.
"""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from profkit.timing import stopwatches

READING = 5e-8
"""Seconds that a reading of the clock takes, as of real ones."""
_SPREAD = 1e-3  # of a call's time, by which it takes longer at random


class Clock:
    """The clock."""

    def __init__(self) -> None:
        self._now, self._random = 0.0, random.Random(0)

    def perf_counter(self) -> float:
        """As of `time`."""
        self._now += READING
        return self._now

    def passes(self, seconds: float) -> None:
        """Let so much time pass, and a bit more."""
        self._now += seconds * (1 + _SPREAD * self._random.random())


def install(patch: pytest.MonkeyPatch | None = None) -> Callable[[float], None]:
    """Put one in the place of the host clock, in this process; what lets time pass."""
    clock = Clock()
    (patch or pytest.MonkeyPatch()).setattr(stopwatches, "time", clock)
    return clock.passes
