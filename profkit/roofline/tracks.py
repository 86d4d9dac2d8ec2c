"""Points of one kernel in several rooflines: steps from one report to the next."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import pairwise

from msgspec import Struct

from profkit.roofline.roofline import Point, Roofline, or_least
from profkit.roofline.roofs import LEVELS


class Step(Struct, frozen=True):
    """A point, and where its kernel is in the next report that has it."""

    before: Point
    after: Point


def steps(rooflines: Sequence[Roofline]) -> tuple[Step, ...]:
    """Points of one kernel in one report and the next that has it, level by level.

    Kernels are matched by name, or where no report has more than one of them.
    """
    result: list[Step] = []
    for reports in _by_kernel(rooflines).values():
        for level in LEVELS:
            stops = (
                [point for point in points if point.level == level] for points in reports.values()
            )
            for before, after in pairwise(filter(None, stops)):
                result += [Step(*pair) for pair in _matched(before, after)]
    return tuple(result)


def _by_kernel(rooflines: Sequence[Roofline]) -> dict[str, dict[int, list[Point]]]:
    """Measured points by kernel and report."""
    measured = [[point for point in row.points if not point.algorithmic] for row in rooflines]
    single = all(len({(point.name, point.launch) for point in points}) < 2 for points in measured)
    kernels: dict[str, dict[int, list[Point]]] = defaultdict(lambda: defaultdict(list))
    for index, points in enumerate(measured):
        for point in points:
            kernels["" if single else point.name][index].append(point)
    return kernels


def _matched(before: Sequence[Point], after: Sequence[Point]) -> list[tuple[Point, Point]]:
    """Each precision of both sides with itself; of those that one side lacks, the principal one
    of each side, for a fix may change the precision."""
    left, right = _by_precision(before), _by_precision(after)
    both = [precision for precision in left if precision in right]
    pairs = [(left.pop(precision), right.pop(precision)) for precision in both]
    if left and right:
        pairs.append((_principal(left.values()), _principal(right.values())))
    return pairs


def _by_precision(points: Iterable[Point]) -> dict[str, Point]:
    groups: dict[str, list[Point]] = defaultdict(list)
    for point in points:
        groups[point.precision].append(point)
    return {precision: _principal(group) for precision, group in groups.items()}


def _principal(points: Iterable[Point]) -> Point:
    """The point of most time, then the nearest to its roof: what a kernel is shown in."""
    return max(points, key=lambda point: (or_least(point.share), or_least(point.of_roof)))
