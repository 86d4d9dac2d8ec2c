"""Calibrated ranges: what fixes of findings like one gained on recorded pairs.

Each recorded pair whose defect a rule found is a point: what was estimated of the fix, and what it
gained. The range of a finding has the quantiles of those gains, each weighted by a Gaussian of the
distance between the estimates (localized conformal prediction; Guan, Biometrika 110, 2023). It is
no bound: a change that does less work goes beyond the headroom. A family of pairs counts once; it
is left out where its own pairs are judged (docs/reference/methods/estimates.md).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING

import msgspec

from profkit.core.text_files import shipped_text
from profkit.core.typed_file import Model

if TYPE_CHECKING:
    from profkit.core.columns import Column

ENDS = (0.05, 0.94)
"""The quantiles of a range. With _WIDTHS and _ALL they are chosen on four sets, each left out
whole: their ranges hold 75% or more of each, fixes that no rule found among the others, and have
the smallest interval score (Gneiting, Raftery, JASA 102, 2007) of some hundred choices nearby."""
_WIDTHS = (0.25, 0.3, 0.7, 0.3)
"""Standard deviations of the Gaussian: of the logarithms of both estimates and of the headroom, and
of the vote."""
_MOST = (2.5, 2.5, 3.5, 1.0)
"""What these are counted at most, chosen: 12x and 33x; few recorded ones are beyond."""
_ALL = 0.001
"""The weight of every recorded pair besides: where none is alike, all decide."""
UNCOMPARED = 0.5
"""The vote of a finding that is not compared with recorded fixes: between none and all."""


class Prospect(Model, frozen=True):
    """What is known of a fix before it is made: the likely factor, that by stalls alone, the
    headroom, and how much recorded fixes of similar kernels speak for its category."""

    likely: float
    without_stalls: float
    most: float
    vote: float = UNCOMPARED


class Gain(Prospect, frozen=True, kw_only=True):
    """A recorded pair: what its fix gained, `measured`. `source` is who published it."""

    family: str
    measured: float
    source: str = "profkit"


@dataclass(frozen=True)
class Calibration:
    """Gains of recorded pairs, and the ranges that they give."""

    gains: tuple[Gain, ...]

    def range(self, prospect: Prospect) -> tuple[float, float]:
        """The range of a fix, both factors at least 1, with the likely one; that alone without
        pairs."""
        likely = prospect.likely
        if not self.gains:
            return likely, likely
        import numpy as np

        place, places, measured, weights = _features(prospect), *self._recorded
        distance = (((places - place) / _WIDTHS) ** 2).sum(axis=1)
        reached = np.cumsum(weights * (np.exp(-distance / 2) + _ALL))
        low, high = measured[np.searchsorted(reached / reached[-1], ENDS)].tolist()
        return max(min(low, likely), 1.0), max(high, likely)

    def without(self, families: Collection[str], sources: Collection[str] = ()) -> Calibration:
        """The calibration that pairs of these families and sources had no part in."""
        others = tuple(
            gain
            for gain in self.gains
            if gain.family not in families and gain.source not in sources
        )
        return self if len(others) == len(self.gains) else Calibration(others)

    @cached_property
    def _recorded(self) -> tuple[Column, Column, Column]:
        """Features, measured gains and weights of the pairs, the smallest gain first."""
        import numpy as np

        ordered = sorted(self.gains, key=lambda gain: gain.measured)
        sizes = Counter((gain.source, gain.family) for gain in ordered)
        return (
            np.array([_features(gain) for gain in ordered]),
            np.array([gain.measured for gain in ordered]),
            np.array([1 / sizes[gain.source, gain.family] for gain in ordered]),
        )


def _features(prospect: Prospect) -> Column:
    import numpy as np

    factors = prospect.likely, prospect.without_stalls, prospect.most
    known = (math.log(max(factor, 1.0)) for factor in factors)
    return np.minimum((*known, prospect.vote), _MOST)


@cache
def shipped_calibration() -> Calibration:
    """The gains of the recorded pairs of profkit."""
    text = shipped_text("profkit.rules", "gains.json")
    return Calibration(msgspec.json.decode(text, type=tuple[Gain, ...]))
