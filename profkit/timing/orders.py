"""In which order series take turns, so that none has it better by its place.

Under a power cap a block runs slower after one that drew much, and fastest or slowest after one of
its own kind. So each series follows every other about as often (a design of Williams, Australian
Journal of Scientific Research A 2, 1949), and from three series on none follows itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, partial

import numpy as np
from numpy.typing import NDArray

Order = tuple[int, ...]


def order(count: int, block: int) -> Order:
    """The places of `count` series in a block, counted from 0."""
    if not count:
        return ()
    design = _arranged(count)
    return design[block % len(design)]


@cache
def _arranged(count: int) -> tuple[Order, ...]:
    """The design's rows, each next one such that all up to it are as balanced as can be."""
    left = [*_design(count), *_design(count)]
    found: list[Order] = [left.pop(0)]
    leads = _leads(found[0])
    while left:
        best = min(left, key=partial(_imbalance, found[-1], leads))
        left.remove(best)
        found.append(best)
        leads = leads + _leads(best)
    return tuple(found)


def _design(count: int) -> Sequence[Order]:
    """Rows in which each follows each other equally often; of an odd count, with their mirrors."""
    zigzag = [(at + 1) // 2 if at % 2 else -at // 2 for at in range(count)]
    rows = [tuple((step + shift) % count for step in zigzag) for shift in range(count)]
    if count % 2:
        rows += [row[::-1] for row in rows]
    return list(dict.fromkeys(rows))


def _leads(row: Order) -> NDArray[np.int64]:
    """(count, count): 1 where the one of the line goes before the one of the column, else -1."""
    places = np.argsort(row)
    found: NDArray[np.int64] = np.sign(places - places[:, np.newaxis])
    return found


def _imbalance(before: Order, leads: NDArray[np.int64], row: Order) -> tuple[bool, int, int]:
    """Whether one follows itself, the worst pair's lead with this row, the sum over pairs.

    Of two, one follows itself or goes before the other each time; the latter is worse.
    """
    found = np.abs(leads + _leads(row))
    return len(row) > 2 and before[-1] == row[0], int(found.max()), int(found.sum())
