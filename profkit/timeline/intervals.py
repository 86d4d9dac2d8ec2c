"""Pieces of GPU work as intervals of time: when any ran, and the gaps between them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from profkit.timeline.reader import GpuWork, length


def union(work: Iterable[GpuWork]) -> float:
    """Seconds in which at least one of them ran."""
    pieces, reached = [], -math.inf
    for item in sorted(work, key=lambda item: item.start):
        if item.end > reached:
            pieces.append(length(max(item.start, reached), item.end))
            reached = item.end
    return summed(pieces)


def summed(times: Iterable[float]) -> float:
    """The sum of times, to the nanosecond."""
    return round(math.fsum(times), 9)


def gaps_between(work: Sequence[GpuWork]) -> list[tuple[GpuWork, GpuWork]]:
    """Of work in order of its start, the neighbours of each gap: what ended last, what is next."""
    found = []
    last = work[0]
    for item in work[1:]:
        if item.start > last.end:
            found.append((last, item))
        if item.end > last.end:
            last = item
    return found
