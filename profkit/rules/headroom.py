"""Headroom: the time of a kernel at its last floor, with the work that its findings leave.

The last floor is the highest of three: the bytes that it moves through DRAM at the rate that
kernels reach, its floating-point operations on the fastest unit for their types, and a launch.
Bytes and operations are those recorded, less what findings say is needless: a change that moves
fewer bytes or computes less than that goes beyond. Multiply-adds of floats count at the rate of the
FMA pipe, and of 16-bit tensor cores where a finding says that they can take them; both units can
work at a time. Lanes that diverge, separate additions and address arithmetic take the FMA pipe's
slots, but are no FLOP. Integer work has no such floor.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from profkit.report.floors import LAUNCH, REACH, SHORTEST
from profkit.report.resources import RESOURCES
from profkit.report.summary import Group, LaunchSummary

ARITHMETIC = "floating-point operations"


@dataclass(frozen=True)
class Headroom:
    """At most `factor` times as fast: `seconds` of a launch at its last floor, `floor`. Where the
    FLOP were not recorded, their floor is not known, and it is that of the others."""

    group: Group
    factor: float
    seconds: float
    floor: str
    flop_recorded: bool


def headroom(
    group: Group,
    needed_bytes: float,
    needed_flop: float = 1.0,
    *,
    fits_tensor_cores: bool = False,
) -> Headroom:
    """The headroom of a kernel's typical launch; `needed_bytes` and `needed_flop` are shares of its
    DRAM traffic and of its arithmetic outside tensor cores."""
    launch = group.typical
    floors = {
        RESOURCES["dram_busy"]: _dram(launch) * needed_bytes,
        ARITHMETIC: _arithmetic(launch, needed_flop, fits_tensor_cores=fits_tensor_cores),
        LAUNCH: SHORTEST,
    }
    floor = max(floors, key=floors.__getitem__)
    seconds = min(floors[floor], launch.duration)
    recorded = not any(math.isnan(launch.get(name)) for name in ("flop_fp32", "flop_tensor"))
    return Headroom(group, launch.duration / seconds, seconds, floor, recorded)


def _dram(launch: LaunchSummary) -> float:
    return _known(launch.get("dram_busy")) * launch.duration / REACH["dram_busy"]


def _arithmetic(launch: LaunchSummary, needed: float, *, fits_tensor_cores: bool) -> float:
    tensor = _known(launch.get("peak_rate_tensor_fp16")) * REACH["tensor_busy"]
    fma = _known(launch.get("peak_rate_fp32"))
    on_tensor = _known(launch.get("flop_tensor")) / tensor if tensor else 0.0
    if not fma:
        return on_tensor
    total = _known(launch.get("flop_fp32")) + _known(launch.get("flop_fp64"))
    fused = _known(launch.get("fp32_fused")) if fits_tensor_cores and tensor else 0.0
    half = _known(launch.get("peak_rate_fp16")) or 2 * fma
    others = max(total - fused, 0.0) / fma + _known(launch.get("flop_fp16")) / half
    moved = needed * fused / tensor if fused else 0.0
    return max(on_tensor + moved, needed * others)


def _known(value: float) -> float:
    return 0.0 if math.isnan(value) else value
