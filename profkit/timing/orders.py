"""The order in which blocks of series are interleaved, so that positions have no effect.

Under a power cap a block runs slower after one with a high power draw, and fastest or slowest after
one of its own series. So each series follows every other about as often (a design of Williams,
Australian Journal of Scientific Research A 2, 1949), and from three series on none follows itself.
"""

from collections.abc import Sequence
from functools import cache, partial

import numpy as np
from numpy.typing import NDArray

Order = tuple[int, ...]


def order(count: int, block: int) -> Order:
    """The order of `count` series in a round of blocks, counted from 0."""
    if not count:
        return ()
    design = _arranged(count)
    return design[block % len(design)]


@cache
def _arranged(count: int) -> tuple[Order, ...]:
    """The design's rows, each next one such that all up to it are as balanced as can be."""
    left = [*_design(count), *_design(count)]
    rows: list[Order] = [left.pop(0)]
    leads = _leads(rows[0])
    while left:
        best = min(left, key=partial(_imbalance, rows[-1], leads))
        left.remove(best)
        rows.append(best)
        leads = leads + _leads(best)
    return tuple(rows)


def _design(count: int) -> Sequence[Order]:
    """Rows in which each follows each other equally often; of an odd count, with their mirrors."""
    zigzag = [(step + 1) // 2 if step % 2 else -step // 2 for step in range(count)]
    rows = [tuple((step + shift) % count for step in zigzag) for shift in range(count)]
    if count % 2:
        rows += [row[::-1] for row in rows]
    return list(dict.fromkeys(rows))


def _leads(row: Order) -> NDArray[np.int64]:
    """(count, count): 1 where the series of the line precedes that of the column, else -1."""
    places = np.argsort(row)
    signs: NDArray[np.int64] = np.sign(places - places[:, np.newaxis])
    return signs


def _imbalance(before: Order, leads: NDArray[np.int64], row: Order) -> tuple[bool, int, int]:
    """Whether a series follows itself, the worst pair's lead with this row, the sum over pairs.

    Of two, one follows itself or goes before the other each time; the latter is worse.
    """
    sums = np.abs(leads + _leads(row))
    return len(row) > 2 and before[-1] == row[0], int(sums.max()), int(sums.sum())
