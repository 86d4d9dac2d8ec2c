"""How a time budget is divided over cells of a baseline; times are in seconds.

Cheap cells get all their samples, the most expensive ones fewer.
"""

import math
from collections.abc import Sequence

FEWEST_IN_A_BLOCK = (
    3  # chosen: fewer have no median of their own; a budget trades samples for cells
)


def level(costs: Sequence[float], seconds: float) -> float:
    """The most that any cell may cost (s) so that all cells together take `seconds`.

    `costs` are what the cells would cost in full (s); infinite where all of that fits.
    """
    left = seconds
    ascending = sorted(costs)
    for index, cost in enumerate(ascending):
        fair = max(left, 0.0) / (len(ascending) - index)
        if cost > fair:
            return fair
        left -= cost
    return math.inf


def samples_a_block(asked: int, blocks: int, cost: float, limit: float) -> int:
    """Samples to take in each of `blocks`, of `asked` in all that would cost `cost` (s).

    As many as cost no more than `limit` (s), but three a block where as many were asked for.
    """
    full = math.ceil(asked / blocks)
    if cost <= limit:
        return full
    return max(min(FEWEST_IN_A_BLOCK, full), min(full, int(asked * limit / cost / blocks)))
