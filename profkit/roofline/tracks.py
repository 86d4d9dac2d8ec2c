"""Points of one kernel in two rooflines: from the one before a change to the one after it."""

from collections import defaultdict
from collections.abc import Iterable

from profkit.roofline.roofline import Point, Roofline, or_least

_Side = dict[tuple[str, str], dict[str, Point]]
"""Points by kernel and level, and by precision."""


def steps(before: Roofline, after: Roofline) -> list[tuple[Point, Point]]:
    """Points of one kernel in both reports, level by level.

    Kernels are matched by name, or where no report has more than one of them. Each precision of
    both sides with itself; of those that one side lacks, the principal one of each side, for a fix
    may change the precision.
    """
    sides = [[point for point in row.points if not point.algorithmic] for row in (before, after)]
    single = all(len({(point.name, point.launch) for point in points}) < 2 for points in sides)
    left, right = (_principal(points, single=single) for points in sides)
    pairs = []
    for one, other in ((left[key], right[key]) for key in left if key in right):
        pairs += [(one[precision], other[precision]) for precision in one if precision in other]
        rest = [
            [own[precision] for precision in own.keys() - theirs.keys()]
            for own, theirs in ((one, other), (other, one))
        ]
        if all(rest):
            pairs.append((max(rest[0], key=_weight), max(rest[1], key=_weight)))
    return pairs


def _principal(points: Iterable[Point], *, single: bool) -> _Side:
    """The points that kernels are shown in, of a `single` kernel whatever its name."""
    side: _Side = defaultdict(dict)
    for point in sorted(points, key=_weight):
        side["" if single else point.name, point.level][point.precision] = point
    return side


def _weight(point: Point) -> tuple[float, float]:
    """The point of most time, then the nearest to its roof, is the principal one."""
    return or_least(point.share), or_least(point.of_roof)
