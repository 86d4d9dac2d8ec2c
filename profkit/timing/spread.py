"""How far runs of one build differ, as a bound that holds for runs to come: the A/A floor."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from profkit.core.distributions import chi_square_quantile, normal_quantile

EXCEEDED = 0.01
"""The share of comparisons of one build with itself that may differ by more than the floor."""
CONFIDENCE = 0.95
"""How surely the floor holds that share, whatever runs it was measured on."""

_LARGEST = math.log(1e9)  # a floor beyond all ratios, for runs that differ by magnitudes


def difference_bound(log_ratios: Sequence[float]) -> float:
    """The relative difference that a floor must be, from log ratios of runs of one build.

    A normal tolerance limit: their standard deviation about 0, which is known to be their mean,
    enlarged by `bound_factor` of their number.
    """
    ratios = np.asarray(log_ratios, dtype=np.float64)
    return _share(bound_factor(ratios.size) * math.sqrt(float(np.mean(ratios**2))))


def run_bound(medians: Sequence[float]) -> float:
    """The same from medians (s) of at least two runs, any two of which may be compared."""
    scatter = float(np.log(medians).std(ddof=1))
    return _share(bound_factor(len(medians) - 1) * math.sqrt(2) * scatter)


def enlarged_bound(bound: float, freedom: int, enlarged: int) -> float:
    """What a bound would be were the same scatter estimated with more degrees of freedom."""
    return _share(math.log1p(bound) * bound_factor(enlarged) / bound_factor(freedom))


def bound_factor(freedom: int) -> float:
    """The tolerance limit in standard deviations, as estimated with that many degrees of freedom.

    The normal quantile that 1% exceed to either side, times what the standard deviation may be
    larger than its estimate at 95% (chi square): 41 at 1, 7.5 at 3, 4.4 at 8, 2.6 at infinity.
    """
    quantile = normal_quantile(1 - EXCEEDED / 2)
    return quantile * math.sqrt(freedom / chi_square_quantile(1 - CONFIDENCE, freedom))


def _share(log_ratio: float) -> float:
    return math.expm1(min(log_ratio, _LARGEST))
