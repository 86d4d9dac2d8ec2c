"""Statistics of times in whole nanoseconds, as seconds."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from profkit.timeline.events import Indices, Times

NS = 1e9
"""Nanoseconds per second."""


@dataclass(frozen=True)
class Spread:
    """Count, total, median and extremes of times; all but `count` and `total` NaN without any."""

    count: int
    total: float
    median: float
    low: float
    high: float


@dataclass(frozen=True)
class TimeGroup:
    """The times of what has a code; `first` is the index of the first."""

    code: int
    first: int
    times: Spread


def spread(times: Times) -> Spread:
    """Number, total, median and extremes of times, in seconds."""
    return _spread(np.sort(times))


def _spread(ordered: Times) -> Spread:
    count = len(ordered)
    if not count:
        return Spread(0, 0.0, math.nan, math.nan, math.nan)
    middle = int(ordered[(count - 1) // 2]) + int(ordered[count // 2])
    total = float(ordered.sum(dtype=np.float64))  # exact below 2^53 ns, 104 days
    return Spread(count, total / NS, middle / 2 / NS, int(ordered[0]) / NS, int(ordered[-1]) / NS)


def grouped(codes: Indices, times: Times) -> list[TimeGroup]:
    """Times by code, the largest total first, then in order of appearance."""
    if not len(codes):
        return []
    found, ordered = _sorted_by_code(codes.astype(np.int64), times)
    starts = np.flatnonzero(np.diff(found, prepend=-1))
    ends = [*starts[1:].tolist(), len(found)]
    firsts = np.zeros(int(found[-1]) + 1, np.int64)
    firsts[codes[::-1]] = np.arange(len(codes) - 1, -1, -1)  # the last assignment stays
    groups = [
        TimeGroup(code, int(firsts[code]), _spread(ordered[start:end]))
        for code, start, end in zip(found[starts].tolist(), starts.tolist(), ends, strict=True)
    ]
    return sorted(groups, key=lambda group: (-group.times.total, group.first))


def _sorted_by_code(codes: Times, times: Times) -> tuple[Times, Times]:
    """Codes and times in order of code, then of time; as single numbers where they fit, which is
    several times faster."""
    size = int(times.max()) + 1
    if times.min() >= 0 and (int(codes.max()) + 1) * size < 1 << 63:
        both = np.sort(codes * size + times)
        found = both // size
        return found, both - found * size
    order = np.lexsort((times, codes))
    return codes[order], times[order]
