"""In which order series take turns, so that none has it better by its place.

Under a power cap a block runs slower after one that drew much, and fastest or slowest after one of
its own kind. So each series follows every other about as often (a design of Williams, Australian
Journal of Scientific Research A 2, 1949), and from three series on none follows itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import combinations, pairwise

Order = tuple[int, ...]


def order(count: int, block: int) -> Order:
    """The places of `count` series in a block, counted from 0."""
    design = _arranged(count)
    return design[block % len(design)]


@cache
def _arranged(count: int) -> tuple[Order, ...]:
    """The design's rows, each next one such that all up to it are as balanced as can be."""
    left = [*_design(count), *_design(count)]
    found: list[Order] = [left.pop(0)]
    while left:
        best = min(left, key=lambda row: _imbalance([*found, row], count))
        left.remove(best)
        found.append(best)
    return tuple(found)


def _design(count: int) -> Sequence[Order]:
    """Rows in which each follows each other equally often; of an odd count, with their mirrors."""
    zigzag = [(at + 1) // 2 if at % 2 else -at // 2 for at in range(count)]
    rows = [tuple((step + shift) % count for step in zigzag) for shift in range(count)]
    if count % 2:
        rows += [row[::-1] for row in rows]
    return list(dict.fromkeys(rows))


def _imbalance(rows: Sequence[Order], count: int) -> tuple[int, int, int]:
    """How often one follows itself, and the worst pair's lead; then the sum over pairs.

    Of two, one follows itself or goes before the other each time; the latter is worse.
    """
    itself = sum(one[-1] == following[0] for one, following in pairwise(rows) if count > 2)
    leads = [
        abs(sum(1 if row.index(a) < row.index(b) else -1 for row in rows))
        for a, b in combinations(range(count), 2)
    ]
    return itself, max(leads, default=0), sum(leads)
