"""Whether a kernel's time under ncu changed beyond what it changes by itself."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from statistics import median

from profkit.analysis.summary import Group

NOISE = 0.03
"""The share by which ncu's durations of one and the same kernel differ from one recording to the
next: 2% to 3% as a rule (docs/diff.md has what was seen)."""

_ENOUGH = 6
_LEVEL = 0.95


class Change(StrEnum):
    """What is known of a kernel's time after a change."""

    improved = "IMPROVED"
    regressed = "REGRESSED"
    same = "SAME"
    inconclusive = "INCONCLUSIVE"
    incomparable = "INCOMPARABLE"


@dataclass(frozen=True)
class Profiled:
    """What ncu's durations say. `speedup` is time before / time after, `low` to `high` its range:
    of the medians' 95% intervals where both sides have six launches or more, widened by NOISE."""

    change: Change
    speedup: float
    low: float
    high: float
    repeats: tuple[int, int]


def judge(before: Group, after: Group, *, in_cycles: bool = False) -> Profiled:
    """The verdict on two groups of launches by their medians, or by cycles where clocks differ.

    A ratio within NOISE is SAME; one whose repeats scatter so much that it may be within it,
    INCONCLUSIVE.
    """
    sides = [_times(group, in_cycles=in_cycles) for group in (before, after)]
    speedup = median(sides[0]) / median(sides[1])
    spans = [_interval(times) for times in sides]
    low, high = spans[0][0] / spans[1][1], spans[0][1] / spans[1][0]
    change = _change(low, high)
    repeats = len(sides[0]), len(sides[1])
    return Profiled(change, speedup, low / (1 + NOISE), high * (1 + NOISE), repeats)


def within_noise(ratio: float) -> bool:
    """Whether a ratio of two durations may be noise of ncu's alone."""
    return abs(math.log(ratio)) <= math.log1p(NOISE)


def _change(low: float, high: float) -> Change:
    if low > 1 + NOISE:
        return Change.improved
    if high < 1 / (1 + NOISE):
        return Change.regressed
    return Change.same if within_noise(low) and within_noise(high) else Change.inconclusive


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
    below = _left_out(n)
    return ordered[below], ordered[n - 1 - below]


@cache
def _left_out(n: int) -> int:
    """How many of n values lie below the 95% interval of their median (Conover, section 3.2)."""
    from scipy import stats

    below = int(stats.binom.ppf((1 - _LEVEL) / 2, n, 0.5)) - 1
    return below + 1 if stats.binom.cdf(below + 1, n, 0.5) <= (1 - _LEVEL) / 2 else below
