"""Calibrated ranges: how far measured speedups were from estimates of the same kind.

Each recorded pair whose defect a rule found gives a residual r = ln(measured / estimated). Errors
grow with small estimates and not with large ones, so residuals are taken relative to
s = min(ln(estimated), SATURATED) + SPREAD, and the range of an estimate is exp(ln(estimated) + q·s)
with q the 5% and 95% quantiles of r/s over the pairs of its kind: rules that count a cause, and
rules that assume what its fix can do. A family of pairs counts once; it is left out where its own
pairs are judged (split conformal prediction; docs/reference/methods/estimates.md).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Literal

import msgspec

from profkit.core.text_files import shipped_text

LEVEL = 0.8
"""The share of measured speedups that ranges are made to contain."""
_BETWEEN = 0.9
"""The share of residuals between the quantiles. Residuals of other sets of kernels are larger than
those of the sets at hand, and a defect that no rule named has none: of sets left out whole, ranges
between the 10% and 90% quantiles held 53% to 78% of the measured speedups, between the 5% and 95%
quantiles 56% to 92%."""
SPREAD = 0.1  # log scale, chosen: the error of an estimate of 1.00x
SATURATED = 0.5
"""The logarithm up to which errors grow with the estimate, 1.65x: chosen by the coverage of small
and of large estimates, each family left out (with no limit, 46% to 62% and 88% to 98%)."""
_FEWEST = 10  # residuals of a kind, chosen: with fewer, the 10% and 90% quantiles are the extremes

Basis = Literal["counted", "assumed"]
"""Whether an estimate follows from what was counted, or assumes what a fix can do."""


class Residual(msgspec.Struct, frozen=True):
    """A recorded pair's factors: estimated by a rule's formula, and measured. `source` is who
    published the pair."""

    family: str
    basis: Basis
    estimated: float
    measured: float
    source: str = "profkit"

    @property
    def relative(self) -> float:
        return math.log(self.measured / self.estimated) / _scale(self.estimated)


def _scale(estimated: float) -> float:
    """The logarithmic error that is usual for an estimate, up to a factor."""
    return min(math.log(estimated), SATURATED) + SPREAD


@dataclass(frozen=True)
class Calibration:
    """Residuals of recorded pairs, and the ranges that they give."""

    residuals: tuple[Residual, ...]

    def range(self, basis: Basis, estimated: float) -> tuple[float, float]:
        """The range of an estimate, both factors at least 1; the estimate alone without pairs."""
        low, high = self._quantiles.get(basis, (0.0, 0.0))
        scale = _scale(estimated)
        return max(estimated * math.exp(low * scale), 1.0), estimated * math.exp(high * scale)

    def without(self, families: Collection[str], sources: Collection[str] = ()) -> Calibration:
        """The calibration that pairs of these families and sources had no part in."""
        others = tuple(
            residual
            for residual in self.residuals
            if residual.family not in families and residual.source not in sources
        )
        return self if len(others) == len(self.residuals) else Calibration(others)

    @cached_property
    def _quantiles(self) -> dict[Basis, tuple[float, float]]:
        by_basis: dict[Basis, list[Residual]] = {"counted": [], "assumed": []}
        for residual in self.residuals:
            by_basis[residual.basis].append(residual)
        return {  # an estimate is in its range, also where all measured factors are on one side
            basis: (
                min(_quantile(own, (1 - _BETWEEN) / 2), 0.0),
                max(_quantile(own, (1 + _BETWEEN) / 2), 0.0),
            )
            for basis, own in by_basis.items()
            if len(own) >= _FEWEST
        }


def _quantile(residuals: Sequence[Residual], share: float) -> float:
    """The quantile of the relative residuals, each family with a weight of 1 in all and one more
    family beyond either end: the one to come (split conformal prediction)."""
    of_family = Counter(residual.family for residual in residuals)
    ordered = sorted(residuals, key=lambda residual: residual.relative)
    upper = share > 1 / 2
    beyond = (1 - share if upper else share) * (len(of_family) + 1)
    passed, quantile = 0.0, 0.0
    for residual in reversed(ordered) if upper else ordered:
        if passed and passed + 1 / of_family[residual.family] > beyond:
            break
        passed += 1 / of_family[residual.family]
        quantile = residual.relative
    return quantile


@cache
def shipped_calibration() -> Calibration:
    """The residuals of the recorded pairs of profkit."""
    text = shipped_text("profkit.rules", "residuals.json")
    return Calibration(msgspec.json.decode(text, type=tuple[Residual, ...]))
