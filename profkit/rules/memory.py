"""The memory of recorded fixes: kernels whose defect was fixed, and what that gave.

A kernel is described by about fifty shares: of its time that resources need, of its warps' latency
that are stalls, of its instructions, and of what its launch leaves unused. The linear discriminant
of the recorded kernels (Hastie, Tibshirani, Friedman, The Elements of Statistical Learning, 4.3,
with a regularized covariance) says how likely each cause is; the nearest of them are shown. What
was not recorded counts as usual, and is left out of distances. How often this is right:
docs/reference/accuracy.md.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING, Literal

from profkit.core.expression import Expression, parse
from profkit.core.text_files import shipped_text
from profkit.core.typed_file import Count, Model, Share
from profkit.rules.headroom import Factor

if TYPE_CHECKING:
    from profkit.core.columns import Column

NEAREST = 5
"""Recorded kernels that are shown, chosen: enough for a share, few enough to read."""
_DOUBT = 0.05
"""The weight of a category without a vote; 0.01 to 0.2 rank alike."""
POSSIBLE = 0.05
"""The vote from which a cause is named though its conditions were not recorded, chosen: more than
the average category has."""
_SHRUNK = 0.3
"""The share of the unit matrix in the covariance of the features; 0.2 to 0.5 rank alike."""
_TEMPERED = 2.0
"""By what the log odds are divided, as features say the same thing twice; 1.5 to 4 rank alike."""
_MOST = 3.0  # standard deviations that a feature counts at most, chosen
FEWEST = 8
"""Features that two kernels must have in common, chosen: most of either resources or stalls."""
_SAME = 1e-4
"""The mean squared difference, in variances, below which a kernel is the recorded one itself, whose
family has no vote then: three digits are recorded."""
_LIKELY, _OPEN = 0.95, 0.5
"""The share of the first finding in the weights of its kernel's from which it stands first by a
wide margin, or by a narrow one, over the next: the cause of TESTED published kernels."""
_ABOUT = ("name", "family", "source", "gpu", "category", "gain")


class Fix(Model, frozen=True):
    """A recorded kernel whose defect was fixed: the category of the defect, and the measured
    speedup. `family` are those of one workload, `source` is who published them."""

    name: str
    family: str
    source: str
    gpu: str
    category: str
    gain: Factor


@dataclass(frozen=True, eq=False)
class Memory:
    """Recorded fixes, with the features of their kernels, NaN for what was not recorded. Their
    `names` are formulas over catalog quantities."""

    fixes: tuple[Fix, ...]
    names: tuple[str, ...]
    features: Column

    def nearest(self, values: Mapping[str, float]) -> tuple[Fix, ...]:
        """The fixes of the kernels most like one with these quantities, the most similar first;
        none where too little of it was recorded."""
        distance = self._distance(features(values, self.names))
        order = [index for index in distance.argsort(kind="stable") if distance[index] >= _SAME]
        return tuple(self.fixes[i] for i in order[:NEAREST] if math.isfinite(distance[i]))

    def votes(self, values: Mapping[str, float]) -> Mapping[str, float]:
        """How much the recorded fixes speak for each of their categories, from 0 to 1; nothing
        where too little was recorded."""
        import numpy as np

        own = features(values, self.names)
        distance = self._distance(own)
        if known := {self.fixes[index].family for index in np.flatnonzero(distance < _SAME)}:
            return self.without(known).votes(values)
        if not np.isfinite(distance).any():
            return {}
        categories, weights, odds = self._discriminant
        odds = odds + self._scaled(own) @ weights
        votes = np.exp(odds - odds.max())
        return dict(zip(categories, (votes / votes.sum()).tolist(), strict=True))

    def without(self, families: Collection[str], sources: Collection[str] = ()) -> Memory:
        """The memory of other families and sources."""
        others = [
            place
            for place, fix in enumerate(self.fixes)
            if fix.family not in families and fix.source not in sources
        ]
        return Memory(
            tuple(self.fixes[place] for place in others), self.names, self.features[others]
        )

    def _distance(self, own: Column) -> Column:
        """The mean squared difference to each recorded kernel, in variances; infinite where too
        little of both was recorded."""
        import numpy as np

        # Far beyond what was recorded, as divided by a latency of nearly 0, is not known.
        squares = ((self.features - np.where(abs(own) < 1e9, own, np.nan)) / self._scale[1]) ** 2
        common = np.count_nonzero(np.isfinite(squares), axis=1)
        mean = np.nansum(squares, axis=1) / np.maximum(common, 1)
        return np.where(common < FEWEST, math.inf, mean)

    @cached_property
    def _scale(self) -> tuple[Column, Column]:
        """The mean of each feature, and its standard deviation."""
        import numpy as np

        known = np.isfinite(self.features)
        count = np.maximum(known.sum(axis=0), 1)
        mean = np.where(known, self.features, 0.0).sum(axis=0) / count
        variance = np.where(known, (self.features - mean) ** 2, 0.0).sum(axis=0) / count
        return mean, np.where(variance > 0, np.sqrt(variance), 1.0)

    def _scaled(self, rows: Column) -> Column:
        import numpy as np

        mean, deviation = self._scale
        return np.clip(np.nan_to_num((rows - mean) / deviation), -_MOST, _MOST)

    @cached_property
    def _discriminant(self) -> tuple[tuple[str, ...], Column, Column]:
        """The categories, weights of shape (features, categories), and log odds of an average
        kernel."""
        import numpy as np

        categories = tuple(sorted({fix.category for fix in self.fixes}))
        own = np.array([[fix.category == name for name in categories] for fix in self.fixes], float)
        count = own.sum(axis=0)
        rows = self._scaled(self.features)
        means = rows.T @ own / (count + 1)  # one more kernel of each is taken to be average
        within = rows - own @ means.T
        covariance = (1 - _SHRUNK) * within.T @ within / len(rows)
        weights = np.linalg.solve(covariance + _SHRUNK * np.eye(len(self.names)), means)
        odds = np.log(count) - (means * weights).sum(axis=0) / (2 * _TEMPERED)
        return categories, weights / _TEMPERED, odds


Certainty = Literal["likely", "open", "undecided"]
TESTED = {"likely": (115, 124), "open": (92, 110), "undecided": (29, 40)}
"""Of how many kernels of public code, of sets left out whole, the first finding was the cause or
one that its label accepts, by its certainty (docs/reference/accuracy.md), 2026-11-26."""


class Similar(Model, frozen=True):
    """Of the recorded kernels most like one, `among` how many those are whose defect was of the
    finding's category, the most similar first; `vote` is how much all of them speak for it.

    `certainty` is how sure the finding is the first cause of its kernel; null for others.
    """

    among: Count
    fixes: tuple[Fix, ...]
    vote: Share
    certainty: Certainty | None = None

    @property
    def weight(self) -> float:
        """What the estimated saving counts by, for the order of a kernel's findings."""
        return _DOUBT + self.vote

    @property
    def gains(self) -> tuple[float, float]:
        """The smallest and the largest measured speedup; NaN for none."""
        gains = [fix.gain for fix in self.fixes] or [math.nan]
        return min(gains), max(gains)


def similar(memory: Memory, values: Mapping[str, float]) -> Callable[[str], Similar]:
    """What the memory says of a kernel with these quantities, by the category of a finding."""
    nearest, votes = memory.nearest(values), memory.votes(values)

    def of(category: str) -> Similar:
        own = tuple(fix for fix in nearest if fix.category == category)
        return Similar(len(nearest), own, votes.get(category, 0.0) if votes else 1.0)

    return of


def certainty(share: float) -> Certainty:
    """How sure a kernel's first finding is, by its share in the weights of all."""
    return "likely" if share >= _LIKELY else "open" if share >= _OPEN else "undecided"


def features(values: Mapping[str, float], names: tuple[str, ...]) -> Column:
    """The features of a kernel by its quantities; NaN for what was not recorded."""
    import numpy as np

    formulas = _formulas(names)
    used = {name for formula in formulas for name in formula.names}
    known = {name: np.array(values.get(name, math.nan)) for name in used}
    with np.errstate(all="ignore"):
        row = np.array([float(formula(known)) for formula in formulas])
    return np.where(np.isfinite(row), row, math.nan)


@cache
def _formulas(names: tuple[str, ...]) -> tuple[Expression, ...]:
    return tuple(map(parse, names))


@cache
def shipped_memory() -> Memory:
    """The recorded fixes that profkit comes with."""
    import numpy as np

    rows = csv.DictReader(shipped_text("profkit.rules", "fixes.csv").splitlines())
    names = tuple(name for name in rows.fieldnames or () if name not in _ABOUT)
    fixes, recorded = [], []
    for row in rows:
        about = {key: row[key] for key in _ABOUT[:-1]}
        fixes.append(Fix(**about, gain=float(row["gain"])))
        recorded.append([float(row[name] or "nan") for name in names])
    return Memory(tuple(fixes), names, np.array(recorded))
