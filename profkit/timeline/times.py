"""Statistics of times in whole nanoseconds, as seconds."""

import math

import numpy as np
from msgspec import Struct, field

from profkit.core.typed_file import Count, Model, Number, Real
from profkit.timeline.events import Indices, Times

NS = 1e9
"""Nanoseconds per second."""


class Spread(Model, frozen=True, kw_only=True):
    """Count, total, median and extremes of times; null without any."""

    count: Count
    total: Number = field(name="total_s")
    median: Real = field(name="median_s")
    low: Real = field(name="min_s")
    high: Real = field(name="max_s")


class TimeGroup(Struct, frozen=True):
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
        return Spread(count=0, total=0.0, median=math.nan, low=math.nan, high=math.nan)
    middle = int(ordered[(count - 1) // 2]) + int(ordered[count // 2])
    total = float(ordered.sum(dtype=np.float64))  # exact below 2^53 ns, 104 days
    return Spread(
        count=count,
        total=total / NS,
        median=middle / 2 / NS,
        low=int(ordered[0]) / NS,
        high=int(ordered[-1]) / NS,
    )


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
