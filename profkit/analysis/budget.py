"""How a time budget is divided: cheap cells get all their samples, the dearest get fewer."""

from __future__ import annotations

import math
from collections.abc import Sequence


def level(costs: Sequence[float], seconds: float) -> float:
    """The most that any cell may cost (s) so that all cells together take `seconds`.

    `costs` are what the cells would cost in full (s); infinite where all of that fits.
    """
    left = seconds
    ascending = sorted(costs)
    for at, cost in enumerate(ascending):
        fair = max(left, 0.0) / (len(ascending) - at)
        if cost > fair:
            return fair
        left -= cost
    return math.inf


def samples_a_block(
    asked: int, blocks: int, cost: float, limit: float, fewest: int
) -> int:
    """Samples to take in each of `blocks`, of `asked` in all that would cost `cost` (s).

    As many as cost no more than `limit` (s), but `fewest` a block where as many were asked for.
    """
    full = math.ceil(asked / blocks)
    if cost <= limit:
        return full
    return max(min(fewest, full), min(full, int(asked * limit / cost / blocks)))
