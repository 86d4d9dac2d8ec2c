"""Headroom: the time of a kernel at its last floor, with the present work that its findings leave.

The last floor is the highest of three: the bytes that it moves through DRAM at the rate that
kernels reach, its floating-point operations on the fastest unit for their types, and a launch.
Bytes and operations are those recorded, less what findings say is needless: a change that moves
fewer bytes or computes less than that goes beyond. Multiply-adds of floats count at the rate of the
FMA pipe, and of 16-bit tensor cores where a finding says that they can take them; both units can
work at a time. Operations of tensor cores on 8-bit integers count too. Lanes that diverge, separate
additions and address arithmetic take the FMA pipe's slots, but are no FLOP. Other integer work has
no such floor.
"""

from __future__ import annotations

import math
from typing import Annotated

from msgspec import Meta

from profkit.core.typed_file import Model, Number
from profkit.report.floors import LAUNCH, REACH, SHORTEST
from profkit.report.resources import RESOURCES
from profkit.report.summary import Group, LaunchSummary

Factor = Annotated[float, Meta(extra_json_schema={"minimum": 1})]
"""A speedup."""
ARITHMETIC = "floating-point operations"


class Headroom(Model, frozen=True):
    """What a kernel's present work allows: at `floor`, its typical launch takes `seconds`.

    A change that needs fewer FLOP or DRAM bytes than were recorded, less what findings remove, goes
    beyond `factor`. Without `flop_recorded` the least time of the FLOP is not known.
    """

    factor: Factor
    seconds: Number
    floor: str
    flop_recorded: bool


def headroom(
    group: Group, needed_bytes: float, needed_flop: float = 1.0, *, fits_tensor_cores: bool = False
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
    return Headroom(launch.duration / seconds, seconds, floor, recorded)


def _dram(launch: LaunchSummary) -> float:
    return _known(launch.get("dram_busy")) * launch.duration / REACH["dram_busy"]


def _arithmetic(launch: LaunchSummary, needed: float, *, fits_tensor_cores: bool) -> float:
    tensor = _known(launch.get("peak_rate_tensor_fp16")) * REACH["tensor_busy"]
    fma = _known(launch.get("peak_rate_fp32"))
    int8 = _known(launch.get("peak_rate_tensor_int8")) * REACH["tensor_busy"]
    rates = {"flop_tensor": tensor, "ops_tensor_int8": int8}
    done = sum(_known(launch.get(name)) / rate for name, rate in rates.items() if rate)
    # Where operations were not recorded, the pipe's time is.
    on_tensor = done or _known(launch.get("tensor_busy")) * launch.duration / REACH["tensor_busy"]
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
