"""Room for labels: moved apart by as little as it takes, or put where nothing is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

Box = tuple[float, float, float, float]
"""Left, bottom, right, top."""


class Room:
    """A picture's plane, with what takes room on it: boxes, and curves that rise or are level."""

    def __init__(self, width: float, height: float) -> None:
        self._edge: Box = (0.0, 0.0, width, height)
        self._boxes: list[Box] = []
        self._curves: list[tuple[float, float, Callable[[float], float]]] = []

    def take(self, box: Box) -> None:
        self._boxes.append(box)

    def draw(self, begin: float, end: float, curve: Callable[[float], float]) -> None:
        """A curve from `begin` to `end` across, whose height never falls."""
        self._curves.append((begin, end, curve))

    def is_free(self, box: Box) -> bool:
        """Whether nothing is there, and it is inside the plane."""
        left, bottom, right, top = box
        inside = left >= self._edge[0] and right <= self._edge[2]
        return (
            inside
            and bottom >= self._edge[1]
            and top <= self._edge[3]
            and not any(_overlap(box, other) for other in self._boxes)
            and not any(_crosses(box, *curve) for curve in self._curves)
        )

    def place(self, boxes: Iterable[Box]) -> int | None:
        """Take the first box that is free and say which it was; None where none is."""
        for at, box in enumerate(boxes):
            if self.is_free(box):
                self.take(box)
                return at
        return None


def _overlap(a: Box, b: Box) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


def _crosses(box: Box, begin: float, end: float, curve: Callable[[float], float]) -> bool:
    left, right = max(box[0], begin), min(box[2], end)
    return left < right and curve(left) < box[3] and curve(right) > box[1]


def spread(wanted: Sequence[float], sizes: Sequence[float], low: float, high: float) -> list[float]:
    """Centres for labels of `sizes` on a line, between `low` and `high`, none over another.

    Each stays as near to where it is `wanted` as the others let it, in the order of the wishes
    (least sum of squares, by pooling neighbours that would overlap). Labels that together are
    larger than the room are packed from its middle and stick out at both ends.
    """
    order = sorted(range(len(wanted)), key=lambda at: wanted[at])
    pools: list[_Pool] = []
    for at in order:
        pools.append(_Pool([at], wanted[at], sizes[at]))
        while len(pools) > 1 and pools[-2].end(low, high) > pools[-1].start(low, high):
            last = pools.pop()
            pools[-1].take(last)
    centres = [0.0] * len(wanted)
    for pool in pools:
        edge = pool.start(low, high)
        for at in pool.members:
            centres[at] = edge + sizes[at] / 2
            edge += sizes[at]
    return centres


class _Pool:
    """Labels that touch; `wish` is the mean of where its middle would be by each one's wish."""

    def __init__(self, members: list[int], wish: float, size: float) -> None:
        self.members, self._wish, self._size = members, wish, size

    def take(self, other: _Pool) -> None:
        """Put another pool behind this one."""
        size = self._size + other._size
        mine, others = len(self.members), len(other.members)
        start = self._wish - self._size / 2
        their_start = other._wish - other._size / 2 - self._size
        start = (start * mine + their_start * others) / (mine + others)
        self.members += other.members
        self._wish, self._size = start + size / 2, size

    def start(self, low: float, high: float) -> float:
        """Where it begins, inside the room where there is enough."""
        if self._size > high - low:
            return (low + high - self._size) / 2
        return min(max(self._wish - self._size / 2, low), high - self._size)

    def end(self, low: float, high: float) -> float:
        return self.start(low, high) + self._size
