"""Which points of several rooflines are of one kernel: what is joined, and latencies over them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from profkit.roofline.roofline import Point, Roofline
from profkit.roofline.roofs import LEVELS


@dataclass(frozen=True)
class Join:
    """A point of report number `start`, and where its kernel is in the next that has it."""

    start: int
    before: Point
    after: Point


@dataclass(frozen=True)
class Track:
    """A kernel's timed points, each with its report's number; no name where each has but one."""

    name: str
    stops: tuple[tuple[int, Point], ...]


def joins(rooflines: Sequence[Roofline]) -> tuple[Join, ...]:
    """Points of one kernel in one report and the next that has it, level by level.

    Kernels are one by their name, or where no report has more than one of them.
    """
    found: list[Join] = []
    for by_report in _by_kernel(rooflines).values():
        for level in LEVELS:
            own = (
                (at, [point for point in points if point.level == level])
                for at, points in by_report.items()
            )
            there = ((at, points) for at, points in own if points)
            for (start, before), (_, after) in pairwise(there):
                found += [Join(start, *pair) for pair in _matched(before, after)]
    return tuple(found)


def tracks(rooflines: Sequence[Roofline]) -> tuple[Track, ...]:
    """The timed points of each kernel that has them in at least two reports, one in each."""
    found = []
    for name, by_report in _by_kernel(rooflines).items():
        timed = (
            (at, [point for point in points if point.timed]) for at, points in by_report.items()
        )
        stops = tuple((at, points[0]) for at, points in timed if points)
        if len(stops) > 1:
            found.append(Track(name, stops))
    return tuple(found)


def _by_kernel(rooflines: Sequence[Roofline]) -> dict[str, dict[int, list[Point]]]:
    """Measured points by kernel and report."""
    measured = [[point for point in one.points if not point.algorithmic] for one in rooflines]
    single = all(len({(one.name, one.launch) for one in points}) < 2 for points in measured)
    found: dict[str, dict[int, list[Point]]] = {}
    for at, points in enumerate(measured):
        for point in points:
            by_report = found.setdefault("" if single else point.name, {})
            by_report.setdefault(at, []).append(point)
    return found


def _matched(before: Sequence[Point], after: Sequence[Point]) -> list[tuple[Point, Point]]:
    """Each precision of both sides with itself; of those that one side lacks, the principal one
    of each side, for a fix may change the precision."""
    left, right = _by_precision(before), _by_precision(after)
    both = [precision for precision in left if precision in right]
    found = [(left.pop(precision), right.pop(precision)) for precision in both]
    if left and right:
        found.append((_principal(left.values()), _principal(right.values())))
    return found


def _by_precision(points: Iterable[Point]) -> dict[str, Point]:
    kept: dict[str, list[Point]] = {}
    for point in points:
        kept.setdefault(point.precision, []).append(point)
    return {precision: _principal(own) for precision, own in kept.items()}


def _principal(points: Iterable[Point]) -> Point:
    """The point of most time, then the one nearest to its roof: what a kernel is shown in."""
    return max(points, key=lambda point: (or_least(point.share), or_least(point.of_roof)))


def or_least(share: float) -> float:
    """A share to order by: what is not known is less than any that is."""
    return -1.0 if math.isnan(share) else share
