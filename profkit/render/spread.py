"""Labels that would overlap, moved apart by as little as it takes."""

from __future__ import annotations

from collections.abc import Sequence


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
