"""Resource floors: the time that a launch takes at least while a resource's need is what it is.

A resource that was busy for a share b of a launch's time T needs b·T of it, so T >= b·T for every
resource. What a resource can be driven to is less than its peak: a floor divides by the share that
real kernels reach (REACH). The rest, above the largest need, is exposed: latency, imbalance, tail
and launch. Derived in docs/reference/methods/estimates.md.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from profkit.report.resources import RESOURCES

if TYPE_CHECKING:
    from profkit.core.columns import Column


ESSENTIAL = ("dram_busy", "l2_busy", "l1_busy", "issue_busy")
"""The resources that every kernel needs: without one of them a bound may be passed unseen."""

LAUNCH = "launch overhead"
"""What bounds a launch of SHORTEST: no resource."""

REACH: Mapping[str, float] = {"dram_busy": 0.95, "tensor_busy": 0.94}
"""The share of its peak that a resource has been driven to, where that falls short of it: DRAM ends
at 89% to 96% on several GPUs, tensor cores at 94% in a large cuBLAS product on an H200. Of the
others 97% and more were recorded."""

USUAL = 0.87
"""How near kernels that a resource limits usually come to its floor: between 0.82 and 0.95 in the
recorded ones. A fix is taken to come no nearer to the next floor than this."""

SHORTEST = 2e-6
"""Seconds that a launch takes whatever it does: a copy of four blocks was recorded at 2.2 µs."""


WORTH = 1.005
"""The smallest factor that is an estimate: two digits behind the point show less as 1.00x."""


@dataclass(frozen=True)
class Floor:
    """A resource's need of a launch's time: `seconds` is the least that it takes with that need."""

    resource: str
    label: str
    busy: float
    seconds: float


def floors(values: Mapping[str, float]) -> tuple[Floor, ...]:
    """The floors of one launch from its catalogue quantities, highest first."""
    duration = values.get("duration", math.nan)
    candidates = [
        Floor(name, label, values[name], values[name] * duration / REACH.get(name, 1.0))
        for name, label in RESOURCES.items()
        if name in values and not math.isnan(values[name])
    ]
    return tuple(sorted(candidates, key=lambda floor: -floor.seconds))


def shares(columns: Mapping[str, Column]) -> Mapping[str, Column]:
    """Each resource's floor as a share of the launch's time, at most 1; recorded ones alone."""
    import numpy as np

    return {
        name: np.clip(columns[name] / REACH.get(name, 1.0), 0.0, 1.0)
        for name in RESOURCES
        if name in columns
    }
