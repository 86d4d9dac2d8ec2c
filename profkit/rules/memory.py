"""The memory of recorded fixes: kernels whose defect was mended, and what that gave.

A kernel is described by the share of its time that each resource needs (report.floors) and by the
shares of its warps' latency that are stalls of each kind. The NEAREST recorded kernels, by the mean
squared difference over what both have, vote for the categories of their fixes. Fixes of kernels
alike share a cause more often than the largest estimate is right: docs/reference/accuracy.md.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Literal

from profkit.core.text_files import shipped_text
from profkit.core.typed_file import Count, Model
from profkit.report.floors import REACH
from profkit.rules.headroom import Factor

if TYPE_CHECKING:
    from profkit.core.columns import Column

NEAREST = 5
"""Recorded kernels that vote; 3 to 9 name as many causes of the kernels set aside."""
_DOUBT = 0.05
"""The weight of a category without a vote; 0.02 to 0.1 rank alike, from 0.2 on votes count less."""
FEWEST = 8
"""Features that two kernels must have in common, chosen: most of either resources or stalls."""
_SAME = 1e-6
"""The mean squared difference below which a kernel is the recorded one itself, which has no vote:
three digits are recorded, so up to 3e-7; 3.5e-5 and more between any two."""
_LIKELY, _OPEN = 0.95, 0.5
"""The share of the first finding in the weights of its kernel's from which it stands first by a
wide margin, or by a narrow one, over the next: the cause of TESTED published kernels."""
_ABOUT = ("name", "family", "source", "gpu", "category", "gain")
_STALL = "stall_"


class Fix(Model, frozen=True):
    """A recorded kernel whose defect was mended: the category of the defect, and the measured
    speedup. `family` are those of one workload, `source` is who published them."""

    name: str
    family: str
    source: str
    gpu: str
    category: str
    gain: Factor


@dataclass(frozen=True, eq=False)
class Memory:
    """Recorded fixes, with the features of their kernels, NaN for what was not recorded."""

    fixes: tuple[Fix, ...]
    names: tuple[str, ...]
    features: Column

    def nearest(self, values: Mapping[str, float]) -> tuple[Fix, ...]:
        """The fixes of the kernels most like one with these quantities, the most similar first;
        none where too little of it was recorded."""
        import numpy as np

        both = np.isfinite(self.features) & np.isfinite(own := features(values, self.names))
        common = np.count_nonzero(both, axis=1)
        squares = np.where(both, (self.features - own) ** 2, 0.0).sum(axis=1)
        distance = squares / np.maximum(common, 1)
        distance[(common < FEWEST) | (distance < _SAME)] = math.inf
        order = np.argsort(distance, kind="stable")[:NEAREST]
        return tuple(self.fixes[index] for index in order if math.isfinite(distance[index]))

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


Certainty = Literal["likely", "open", "undecided"]
TESTED = {"likely": (9, 12), "open": (10, 20)}
"""Of how many published kernels, on other chips, the first finding was the cause, by its certainty:
with the fixes recorded on an H200 alone, 2026-11-26. The margins were chosen with them in view."""


class Similar(Model, frozen=True):
    """Of the recorded kernels most like one, `among` how many those are whose defect was of the
    finding's category, the most similar first.

    `certainty` is how sure the finding is the first cause of its kernel; null for others.
    """

    among: Count
    fixes: tuple[Fix, ...]
    certainty: Certainty | None = None

    @property
    def weight(self) -> float:
        """What the estimated saving counts by, for the order of a kernel's findings."""
        return _DOUBT + (len(self.fixes) / self.among if self.among else 1.0)

    @property
    def gains(self) -> tuple[float, float]:
        """The smallest and the largest measured speedup; NaN for none."""
        gains = [fix.gain for fix in self.fixes] or [math.nan]
        return min(gains), max(gains)


def similar(nearest: tuple[Fix, ...], category: str) -> Similar:
    """Those of a category among the nearest fixes."""
    return Similar(len(nearest), tuple(fix for fix in nearest if fix.category == category))


def certainty(share: float) -> Certainty:
    """How sure a kernel's first finding is, by its share in the weights of all."""
    return "likely" if share >= _LIKELY else "open" if share >= _OPEN else "undecided"


def features(values: Mapping[str, float], names: tuple[str, ...]) -> Column:
    """The features of a kernel by its quantities: shares of its time or of its warps' latency."""
    import numpy as np

    latency = values.get("warp_latency", math.nan)
    return np.array(
        [
            values.get(name, math.nan) / latency
            if name.startswith(_STALL)
            else min(values.get(name, math.nan) / REACH.get(name, 1.0), 1.0)
            for name in names
        ]
    )


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
