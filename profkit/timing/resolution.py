"""Two blocks of times on a timer's grid: their ratio, and the uncertainty from its resolution.

A reading is the difference of two moments, each rounded down to a tick. Where launches scatter by
about a tick, the shares of the ticks around the middle locate a time between two ticks; where they
don't, no number of readings does. docs/reference/methods/statistics.md has the measured error
rates.
"""

from collections.abc import Sequence

import numpy as np

from profkit.timing.statistics import Array, find_tick

# The errors of two readings, each the difference of two moments rounded down at a phase of its own,
# differ by a sum of four uniform numbers (Irwin-Hall, -2 to 2 ticks), beyond this in 1% of the
# cases: (2 - x)^4 / 12 = 0.01. Where both sides have one phase they differ by less than one tick.
_UNDITHERED = 2 - 0.12**0.25
# The largest errors of `log_shift` over all phases, at scatters that pass `_DITHER`: 0.09 ticks for
# normal times, 0.28 for lognormal ones (sigma 0.8);
# docs/reference/methods/statistics.md has the verdicts with it.
_DITHERED = 0.25
# Normal times put this share below, and above, the middle tick from a scatter of 0.27 (a time amid
# its tick) to 0.53 ticks (on the edge) on. Asked of both sides since outliers are slow.
_DITHER = 0.03
# Blocks beyond this size are thinned to as many order statistics: 250,000 pairs take 5 ms.
_MOST_SAMPLES = 500


def log_shift(before: Array, after: Array, tick: float = 0.0) -> float:
    """The logarithm of the typical ratio of a time of `after` to one of `before`, shape (n,): s.

    The median over all pairs (Hodges and Lehmann 1963, Ann. Math. Stat. 34): as robust as a ratio
    of medians where a launch in four is an outlier, as efficient as means where none is, and steady
    where times have two modes. Readings that share a tick (s) count as spread over it evenly.
    """
    logs = [np.log(_thinned(_spread(np.sort(block), tick))) for block in (before, after)]
    return float(np.median(np.subtract.outer(logs[1], logs[0])))


def open_ticks(before: Sequence[Array], after: Sequence[Array], tick: float) -> float:
    """The largest error, in ticks, of the difference between two sides' blocks, at any phase."""
    if tick == 0:
        return 0.0
    return _DITHERED if all(_is_dithered(side, tick) for side in (before, after)) else _UNDITHERED


def common_tick(before: Array, after: Array) -> float:
    """The grid (s) of the timer of both sides: the wider of theirs, 0 where none is detected.

    Both together are searched only where neither shows one, all its samples equal: two steady sides
    of 200 and 300 ticks lie on a grid of 100 as well, which neither of them alone suggests.
    """
    shown = [tick for tick in map(find_tick, (before, after)) if tick]
    return max(shown) if shown else find_tick(np.concatenate([before, after])) or 0.0


def common_value(blocks: Sequence[Array]) -> float | None:
    """The one value (s) that all samples have; None where they differ."""
    first = float(blocks[0][0])
    return first if all((block == first).all() for block in blocks) else None


def _spread(ordered: Array, tick: float) -> Array:
    """Sorted readings, those of a tick spread over it evenly; as they are below half a tick.

    Readings less than half a tick apart share one: counting ticks from zero would need the tick to
    more digits than it is known to.
    """
    if tick == 0 or ordered[0] < tick / 2:
        return ordered
    starts = np.flatnonzero(np.diff(ordered, prepend=-np.inf) > tick / 2)
    counts = np.diff(starts, append=ordered.size)
    place = np.arange(ordered.size) - np.repeat(starts, counts)
    spread: Array = ordered + ((place + 0.5) / np.repeat(counts, counts) - 0.5) * tick
    return spread


def _thinned(ordered: Array) -> Array:
    if ordered.size <= _MOST_SAMPLES:
        return ordered
    thinned: Array = np.quantile(ordered, (np.arange(_MOST_SAMPLES) + 0.5) / _MOST_SAMPLES)
    return thinned


def _is_dithered(side: Sequence[Array], tick: float) -> bool:
    """Whether enough readings lie below, and as many above, the middle tick of their block."""
    around = 0
    for block in side:
        apart = block - np.sort(block)[block.size // 2]
        around += min(int((apart < -tick / 2).sum()), int((apart > tick / 2).sum()))
    return around >= _DITHER * sum(block.size for block in side)
