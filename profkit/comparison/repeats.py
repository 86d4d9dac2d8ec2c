"""Whether a kernel's ncu duration changed beyond its run-to-run variation."""

import math
from collections.abc import Sequence
from enum import StrEnum
from statistics import median

from msgspec import field

from profkit.core.distributions import median_rank
from profkit.core.typed_file import Model
from profkit.report.summary import Group

NOISE = 0.03
"""The share by which ncu's durations of one and the same kernel differ from one recording to the
next: 2% to 3% as a rule (docs/reference/methods/comparison.md has the measurements)."""
JITTER = 0.4e-6
"""Seconds by which they differ on top, whatever the kernel: what counts in short launches.

Measured on 42 kernels of 2.2 to 351 µs on an H200, 12 launches of each in two runs of ncu 2025.3,
caches flushed: under 4 µs 99% of the pairs of launches are within 0.38 µs of each other, the
farthest 0.51 µs apart. NOISE and JITTER together hold 99.6% of all 2,772 pairs; NOISE alone misses
37% of those under 10 µs."""

# The fewest values whose extremes are a 95% interval of the median: 1 - 2/2**6 is 96.9%.
_ENOUGH = 6
_LEVEL = 0.95  # the convention


class Change(StrEnum):
    """What is known of a kernel's time after a change."""

    improved = "IMPROVED"
    regressed = "REGRESSED"
    same = "SAME"
    inconclusive = "INCONCLUSIVE"
    incomparable = "INCOMPARABLE"


class Profiled(Model, frozen=True):
    """What ncu's durations say. `speedup` is time before / time after, `range` its lowest and
    highest: of the medians' 95% intervals where both sides have six launches or more, widened by
    `noise`, the share that one kernel's durations differ by: more in short launches."""

    change: Change = field(name="verdict")
    speedup: float
    range: tuple[float, float]
    repeats: tuple[int, int]
    noise: float


def judge(before: Group, after: Group, *, in_cycles: bool = False) -> Profiled:
    """The verdict on two groups of launches by their medians, or by cycles where clocks differ.

    A ratio within the noise is SAME; one whose repeats scatter so much that it may be within it,
    INCONCLUSIVE.
    """
    share = noise(before.median, after.median)
    sides = [_times(group, in_cycles=in_cycles) for group in (before, after)]
    speedup = median(sides[0]) / median(sides[1])
    spans = [_interval(times) for times in sides]
    low, high = spans[0][0] / spans[1][1], spans[0][1] / spans[1][0]
    change = _change(low, high, share)
    repeats = len(sides[0]), len(sides[1])
    ends = low / (1 + share), high * (1 + share)
    return Profiled(change, speedup, ends, repeats, share)


def noise(before: float, after: float) -> float:
    """The share by which ncu's durations (s) of one kernel may differ: more in short launches."""
    return NOISE + JITTER / min(before, after)


def within_noise(before: float, after: float) -> bool:
    """Whether two durations (s) may differ by noise of ncu's alone."""
    return abs(math.log(before / after)) <= math.log1p(noise(before, after))


def _change(low: float, high: float, share: float) -> Change:
    if low > 1 + share:
        return Change.improved
    if high < 1 / (1 + share):
        return Change.regressed
    is_same = max(high, 1 / low) <= 1 + share
    return Change.same if is_same else Change.inconclusive


def _times(group: Group, *, in_cycles: bool) -> list[float]:
    return sorted(
        launch.duration * (launch.get("sm_clock") if in_cycles else 1.0)
        for launch in group.launches
        if not launch.failed
    )


def _interval(ordered: Sequence[float]) -> tuple[float, float]:
    """The order-statistic interval of the median; of too few values, the median."""
    n = len(ordered)
    if n < _ENOUGH:
        return median(ordered), median(ordered)
    below = median_rank(n, _LEVEL)
    return ordered[below], ordered[n - 1 - below]
