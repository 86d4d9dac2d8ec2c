"""Candidates for change points: the energy statistic of e-divisive between runs.

Matteson and James 2014 (JASA 109, 334-345), with exponent 1. A run's value is the set of its block
medians, so that the distance of two runs is the mean distance of their blocks. Whether a candidate
is a change is not decided here: e-divisive's own permutation test takes runs for exchangeable,
which those of one machine are not (docs/reference/methods/history.md).
"""

from collections.abc import Iterator, Sequence

import numpy as np

from profkit.history.noise import Array


def distances(runs: Sequence[Array]) -> Array:
    """The mean distance of the blocks of any two runs, shape (n, n); 0 on the diagonal."""
    n = len(runs)
    blocks = np.concatenate(runs) if runs else np.empty(0)
    starts = np.cumsum([0, *(run.size for run in runs[:-1])])
    sums = np.add.reduceat(np.abs(blocks[:, None] - blocks[None, :]), starts, axis=0)
    sums = np.add.reduceat(sums, starts, axis=1)
    counts = np.array([run.size for run in runs], dtype=np.float64)
    result: Array = sums / np.outer(counts, counts)
    result[np.arange(n), np.arange(n)] = 0.0
    return result


def statistic(matrix: Array) -> Array:
    """The statistic of each split, by the first run after it; shape (n,), that of 0 is 0.

    mn / (m + n) times the energy distance between the n runs before and the m from there on.
    """
    total = matrix.shape[0]
    if total < 2:
        return np.zeros(total)
    sums = matrix.cumsum(axis=0).cumsum(axis=1)
    n = np.arange(1, total, dtype=np.float64)
    m = total - n
    inner = sums.diagonal()[:-1]
    across = sums[:-1, -1] - inner
    outer = sums[-1, -1] - inner - 2 * across
    before = np.divide(inner, n * (n - 1), out=np.zeros_like(n), where=n > 1)
    after = np.divide(outer, m * (m - 1), out=np.zeros_like(m), where=m > 1)
    values = n * m / (n + m) * (2 * across / (n * m) - before - after)
    return np.concatenate(([0.0], values))


def candidates(matrix: Array, fewest: int, least: int) -> Iterator[int]:
    """The best split of each suffix window: all runs, then half of them, to the `fewest` before.

    At least `fewest` runs lie before a split and `least` after it; each split comes once.
    """
    total, seen = matrix.shape[0], set[int]()
    start = 0
    while total - start >= fewest + least:
        values = statistic(matrix[start:, start:])[fewest : total - start - least + 1]
        split = start + fewest + int(values.argmax())
        if split not in seen:
            seen.add(split)
            yield split
        start += max(1, (total - start) // 2)
