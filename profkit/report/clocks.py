"""The error of the clocks measured in a launch.

ncu counts cycles and measures time over different spans, in different replay passes. The spans
differ by microseconds, so that the clock of a short launch is mostly error.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, TypeVar


class Clocked(Protocol):
    """A launch with its clocks: quantities by name, and the formula that each came by."""

    @property
    def duration(self) -> float: ...
    @property
    def formulas(self) -> Mapping[str, str]: ...
    def get(self, name: str) -> float: ...


LaunchT = TypeVar("LaunchT", bound=Clocked)

CLOCK_ERROR = 12e-6
"""Largest difference of these spans, in seconds: |reading / clock - 1| x duration.

The largest of 298 launches of 1.4 µs to 12 s on 14 GPUs (CC 7.0 to 12.0), DRAM clocks against those
of long launches: 12.4 µs in a launch of 96 µs (GTX 1660), 6 in 112 µs (RTX 2060 SUPER); 11.4 in one
of 20 µs elsewhere. On an H200 it is under 1 µs, but a report does not show that."""


def clock_error(launch: Clocked) -> float:
    """The largest relative error of a launch's measured clock; NaN without a duration."""
    return CLOCK_ERROR / launch.duration


def clocks_apart(name: str, first: Clocked, second: Clocked, threshold: float) -> bool:
    """Whether two launches certainly ran at clocks (`sm_clock`, `dram_clock`) a share apart.

    False where either is unknown, and where the difference may be an error of reading.
    """
    low, high = sorted((first.get(name), second.get(name)))
    return high > low * (1 + max(threshold, clock_error(first) + clock_error(second)))


def is_read(launch: Clocked, name: str) -> bool:
    """Whether a launch is long enough that its `sm_clock` or `dram_clock` counts, by its roofs."""
    return launch.formulas.get(f"roof_{name}") == name


def span(name: str, launches: Sequence[LaunchT]) -> tuple[LaunchT, LaunchT] | None:
    """The launches of the lowest and the highest clock of those that count; None without one."""
    counting = [launch for launch in launches if is_read(launch, name)]
    ordered = sorted(counting, key=lambda launch: launch.get(name))
    return (ordered[0], ordered[-1]) if ordered else None
