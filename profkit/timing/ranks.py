"""Tests over ranks: the ranks of samples, and how two samples' ranks differ (Mann and Whitney)."""

from __future__ import annotations

import math
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from profkit.core.distributions import normal_cdf

Array: TypeAlias = npt.NDArray[np.float64]

_EXACT = 8
"""Where one side has no more samples than that, and none are equal, the p-value is exact."""


def ranks(values: Array) -> Array:
    """The rank of each value from 1 up; equal values share the mean of theirs. Shape (n,)."""
    _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    found: Array = ((last - counts + 1 + last) / 2)[places]
    return found


def mann_whitney(a: Array, b: Array) -> tuple[float, float]:
    """U of `a` (pairs in which it is larger, equal ones by half), and its two-sided p-value.

    Normal with ties and continuity corrected for, exact for few different samples (Mann and Whitney
    1947, Ann. Math. Stat. 18, 50-60). Shapes (n,) and (m,).
    """
    n, m = a.size, b.size
    both = np.concatenate([a, b])
    u = float(ranks(both)[:n].sum()) - n * (n + 1) / 2
    larger = max(u, n * m - u)
    _, counts = np.unique(both, return_counts=True)
    if counts.max() == 1 and min(n, m) <= _EXACT:
        return u, min(1.0, 2 * _exact_tail(int(larger), n, m))
    ties = float((counts.astype(float) ** 3 - counts).sum())
    variance = n * m / 12 * ((n + m + 1) - ties / ((n + m) * (n + m - 1)))
    if variance <= 0:  # all are equal
        return u, 1.0
    z = (larger - n * m / 2 - 0.5) / math.sqrt(variance)
    return u, min(1.0, 2 * normal_cdf(-z))


def _exact_tail(u: int, n: int, m: int) -> float:
    """P(U >= u) where all orders of n and m different samples are equally likely.

    The number of orders by U is a Gaussian binomial coefficient: the product of
    (1 - q^(m + i)) / (1 - q^i) for i from 1 to n.
    """
    few, many = sorted((n, m))
    below = n * m - u  # P(U >= u) = P(U <= n m - u), in integers of any size
    orders = np.zeros(below + 1, dtype=object)
    orders[0] = 1
    for i in range(1, few + 1):
        if many + i <= below:
            orders[many + i :] = orders[many + i :] - orders[: below + 1 - many - i]
        for start in range(min(i, below + 1)):
            orders[start::i] = np.cumsum(orders[start::i])
    return int(orders.sum()) / math.comb(n + m, n)
