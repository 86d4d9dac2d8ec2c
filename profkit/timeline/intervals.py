"""Sets of disjoint intervals in ascending order, as pairs of arrays (ns)."""

from typing import TypeAlias

import numpy as np

from profkit.timeline.events import Times

Cover: TypeAlias = tuple[Times, Times]
"""Starts and ends; none empty, none touching the next."""

NOTHING: Cover = (np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))


def union(start: Times, end: Times) -> Cover:
    """The times in at least one of the intervals, which come in order of start."""
    if not len(start):
        return NOTHING
    reached = np.maximum.accumulate(end)
    fresh = np.ones(len(start), dtype=np.bool_)
    fresh[1:] = start[1:] > reached[:-1]
    first = np.flatnonzero(fresh)
    last = np.append(first[1:], len(start)) - 1
    low, high = start[first], reached[last]
    shown = high > low
    return low[shown], high[shown]


def either(first: Cover, second: Cover) -> Cover:
    """The times in one or both."""
    if not len(first[0]) or not len(second[0]):
        return first if len(first[0]) else second
    start, end = (np.concatenate(pair) for pair in zip(first, second, strict=True))
    order = np.argsort(start, kind="stable")
    return union(start[order], end[order])


def inverse(cover: Cover, low: int, high: int) -> Cover:
    """The times of [low, high) outside of a cover."""
    starts, ends = (np.clip(column, low, high) for column in cover)
    start, end = np.append(low, ends), np.append(starts, high)
    shown = end > start
    return start[shown], end[shown]


def common(first: Cover, second: Cover) -> Cover:
    """The times in both."""
    _, _, start, end = _overlaps(*first, *second)
    return start, end


def pieces(start: Times, end: Times, bounds: Times) -> tuple[Times, Times, Times, Times]:
    """Intervals, disjoint or not, cut at ascending bounds; what is outside of them is left out.

    Of each piece: the interval's place, its step's (between two bounds), start and end.
    """
    return _overlaps(start, end, bounds[:-1], bounds[1:])


def _overlaps(
    start: Times, end: Times, low: Times, high: Times
) -> tuple[Times, Times, Times, Times]:
    """Each overlap of an interval with a disjoint one: both places, start and end."""
    first = np.searchsorted(high, start, side="right")
    counts = np.maximum(np.searchsorted(low, end, side="left") - first, 0)
    mine = np.repeat(np.arange(len(counts)), counts)
    other = first[mine] + np.arange(len(mine)) - np.repeat(np.cumsum(counts) - counts, counts)
    return mine, other, np.maximum(start[mine], low[other]), np.minimum(end[mine], high[other])


def without(first: Cover, second: Cover) -> Cover:
    """The times of the first that are not in the second."""
    if not len(first[0]) or not len(second[0]):
        return first
    low, high = int(first[0][0]), int(first[1][-1])
    return common(first, inverse(second, low, high))


def length(cover: Cover) -> int:
    """Nanoseconds of a cover."""
    return int((cover[1] - cover[0]).sum())


def covered(cover: Cover, times: Times) -> Times:
    """How much of a cover lies before each of these times."""
    start, end = cover
    if not len(start):
        return np.zeros(len(times), dtype=np.int64)
    total = np.append(0, np.cumsum(end - start))
    place = np.searchsorted(start, times, side="right")
    rest = np.maximum(end[place - 1] - times, 0)
    return np.where(place > 0, total[place] - rest, 0)
