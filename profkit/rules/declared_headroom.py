"""Headroom by declared work: the time that its bytes and FLOP take at least, of the time taken.

Bytes at the rate that kernels reach in DRAM, FLOP at the peak of the unit that does them, a launch
at its shortest: the same roofs as `rules.headroom`, of which counters tell the kernel's own bytes
and FLOP in place of the algorithm's.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from profkit.core.typed_file import Model, Real
from profkit.hardware.gpus import Gpu
from profkit.report.floors import LAUNCH, REACH, SHORTEST
from profkit.report.resources import RESOURCES
from profkit.rules.headroom import ARITHMETIC

Unit = Literal["fp32", "fp16", "tensor_fp16"]
"""The unit whose peak bounds the FLOP: FMA pipes in FP32 or, with packed values, in half precision;
tensor cores."""

# Rate of packed half precision over that of FP32: 133.8 and 66.9 TFLOP/s (H100 whitepaper), on an
# A100, of compute capability 8.0, 78 and 19.5 (A100 whitepaper).
_PACKED, _PACKED_8_0 = 2, 4
TOLERANCE = 0.05
"""Chosen: what a declared count of bytes and a roof's rate are off together."""
Roofs = Mapping[str, float]
"""Measured roofs in B/s and FLOP/s by the names of `profkit ceilings`."""
NONE_MEASURED: Roofs = MappingProxyType({})


@dataclass(frozen=True)
class DeclaredWork:
    """FLOP and bytes of one call, as a target's `Work`; NaN where not declared."""

    flop: float = math.nan
    bytes: float = math.nan


class DeclaredHeadroom(Model, frozen=True, kw_only=True):
    """At most `factor` times as fast: `least` seconds of the declared work at its highest floor.

    `fits_l2`: the floor is DRAM, and the declared bytes may stay in L2 from call to call, which
    bounds nothing. `dram_share` is the share of the time that the declared bytes take at least. A
    point of the roofline: `intensity` in FLOP/B, `rate` and `attainable` in FLOP/s; unknown where
    undeclared.
    """

    factor: float
    least: float
    floor: str
    fits_l2: bool
    dram_share: Real
    intensity: Real
    rate: Real
    attainable: Real


def declared_headroom(
    work: DeclaredWork, seconds: float, gpu: Gpu, *, unit: Unit, measured: Roofs = NONE_MEASURED
) -> DeclaredHeadroom | None:
    """The headroom of declared work that took `seconds`; None where no roof of the GPU is known
    for it. One launch could do it. Roofs are the measured ones where there are, else the
    datasheet's.

    `unit` is the fastest that the FLOP fit. A floor above the time disproves its roof (bytes stayed
    in a cache, FP8): it bounds nothing.
    """
    bandwidth = measured.get("dram") or _peak(gpu, "dram") * REACH["dram_busy"]
    if unit == "tensor_fp16":
        arithmetic = measured.get(unit) or _peak(gpu, unit) * REACH["tensor_busy"]
    else:
        arithmetic = measured.get("fp32") or _peak(gpu, "fp32")
    if unit == "fp16":
        arithmetic *= _PACKED_8_0 if gpu.cc == (8, 0) else _PACKED
    floors = {
        RESOURCES["dram_busy"]: work.bytes / bandwidth if bandwidth else math.nan,
        ARITHMETIC: work.flop / arithmetic if arithmetic else math.nan,
    }
    known = {name: floor for name, floor in floors.items() if floor <= seconds * (1 + TOLERANCE)}
    if not known or not seconds > 0:
        return None
    known[LAUNCH] = SHORTEST
    floor = max(known, key=known.__getitem__)
    least = min(known[floor], seconds)
    intensity = work.flop / work.bytes if work.bytes else math.nan
    return DeclaredHeadroom(
        factor=seconds / least,
        least=least,
        floor=floor,
        fits_l2=floor == RESOURCES["dram_busy"] and work.bytes <= gpu.l2_bytes,
        dram_share=floors[RESOURCES["dram_busy"]] / seconds,
        intensity=intensity,
        rate=work.flop / seconds,
        attainable=min(intensity * bandwidth, arithmetic) if len(known) > 2 else math.nan,
    )


def _peak(gpu: Gpu, name: str) -> float:
    """A peak of the datasheet, else by clocks and units; 0 where unknown."""
    if gpu.datasheet and name in gpu.datasheet.peaks:
        return gpu.datasheet.peaks[name].value
    return gpu.dram_peak if name == "dram" else gpu.per_cycle(name) * gpu.sm_count * gpu.clock
