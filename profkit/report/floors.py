"""Resource floors: lower bounds of a launch's time from its use of each resource.

A resource that was busy for a share b of a launch's time T needs b·T of it, so T >= b·T for every
resource. The rate that kernels reach is below the peak: a floor divides by the share of the peak
that they reach (REACH). The time above the highest floor is exposed: latency, imbalance, tail and
launch overhead. Derived in docs/reference/methods/estimates.md.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

from msgspec import Struct

from profkit.report.checks import BOUND_TOLERANCE
from profkit.report.resources import RESOURCES

if TYPE_CHECKING:
    from profkit.core.columns import Column


ESSENTIAL = ("dram_busy", "l2_busy", "l1_busy", "issue_busy")
"""The resources that every kernel needs: without one of them a bound may be passed unseen."""

LAUNCH = "launch overhead"
"""The bound of a launch of SHORTEST, which is no resource."""

REACH: Mapping[str, float] = {"dram_busy": 0.95, "tensor_busy": 0.94}
"""The highest share of its peak that a resource reached, where that is below 1: DRAM 89% to 96% on
several GPUs, tensor cores 94% in a large cuBLAS GEMM on an H200. Others reached 97% and more."""

USUAL = 0.87
"""Floor over time of kernels that a resource limits: 0.82 to 0.95 in the recorded ones. After a
fix a kernel is assumed to come no nearer to the next floor than this."""

SHORTEST = 1.4e-6
"""Seconds of the shortest launch: a kernel that does nothing was recorded at 1.41 µs on an H200."""


WORTH = 1.02
"""The smallest factor that is an estimate: with two decimals, less is displayed as 1.00x."""


class Floor(Struct, frozen=True):
    """A resource's need of a launch's time: `seconds` is the least that it takes with that need."""

    resource: str
    label: str
    busy: float
    seconds: float


def floors(values: Mapping[str, float]) -> tuple[Floor, ...]:
    """The floors of one launch from its catalog quantities, highest first."""
    duration = values.get("duration", math.nan)
    candidates = [
        Floor(name, label, values[name], values[name] * duration / REACH.get(name, 1.0))
        for name, label in RESOURCES.items()
        if values.get(name, math.nan) <= 1 + BOUND_TOLERANCE
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
