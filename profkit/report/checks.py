"""Consistency checks of a launch's counters.

ncu collects counters in several replay passes, so values of one launch can contradict each other.
Nothing is corrected here; contradictions are reported.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from profkit.report.catalog import catalog

if TYPE_CHECKING:
    from profkit.hardware.gpus import Gpu

# Why a quantity is missing.
NOT_HERE = "not on this architecture"
UNKNOWN_HERE = "not known for this architecture"
NO_VALUE = "the counter returned no value"
UNDEFINED = "undefined for this launch"
TOO_SHORT = "the launch is too short to measure it"
OF_ONE = "of one launch of the several that were recorded together"
NOT_COLLECTED = "not collected"
NOT_IN_VERSION = "not collected by this version of ncu"
NOT_CHECKED = "not separated from constant loads"
NOT_TIMED = "ncu's time of the launch includes its own work"
"""Of a quantity whose formula rests on that time."""


BOUND_TOLERANCE = 0.01
"""What pass-to-pass noise adds to a rate near its bound."""
_DISAGREEMENT = 0.05
"""Largest relative disagreement of counters of different passes that is not reported, of stalls and
traffic: ten times that of launches that run long against ncu's overhead."""
FITS_IN_L2 = (
    "data fits in L2, where the program may find it: ncu --cache-control none shows that time"
)
"""ncu flushes the caches before each launch, unless it is told not to."""
_MATTERS = 0.3  # chosen: of the time or the stalls; less DRAM hardly limits a kernel
_LOST = "warp samples were dropped (buffer full): per-line shares are biased"


def contradictions(values: Mapping[str, float], gpu: Gpu) -> tuple[str, ...]:
    """Contradictions between a launch's quantities, one sentence each."""
    return (*_out_of_bounds(values), *_disagreements(values, gpu))


def cache_note(values: Mapping[str, float], gpu: Gpu, cache_control: str) -> str:
    """That a launch had to read from DRAM what L2 may hold in the application; "" where not."""
    busy, stalled, latency, traffic = (
        values.get(name, 0.0)
        for name in ("dram_busy", "stall_long_scoreboard", "warp_latency", "dram_bytes")
    )
    matters = busy > _MATTERS or stalled > _MATTERS * latency > 0
    fits = 0 < traffic < gpu.l2_bytes
    return FITS_IN_L2 if cache_control != "none" and fits and matters else ""


def impossible(values: Mapping[str, float]) -> frozenset[str]:
    """The quantities whose recorded value is outside its possible range."""
    names = set()
    for name in values.keys() & catalog().quantities.keys():
        if bounds := catalog().quantities[name].within:
            slack = BOUND_TOLERANCE * (bounds[1] - bounds[0])
            if not bounds[0] - slack <= values[name] <= bounds[1] + slack:
                names.add(name)
    return frozenset(names)


def _out_of_bounds(values: Mapping[str, float]) -> Iterator[str]:
    for name in sorted(impossible(values)):
        bounds, value = catalog().quantities[name].within, values[name]
        reading = f"{value:.1%}" if bounds == (0, 1) else f"{value:.4g}"
        limit = "above 100%" if bounds == (0, 1) and value > 1 else "out of range"
        yield f"invalid measurement: {name} is {reading}, {limit}; findings leave it out"


def _disagreements(values: Mapping[str, float], gpu: Gpu) -> Iterator[str]:
    """Counters of different replay passes that do not fit each other, or the chip."""
    latency, rate, duration, traffic, clock = (
        values.get(name, math.nan)
        for name in ("warp_latency", "dram_bandwidth", "duration", "dram_bytes", "sm_clock")
    )
    stalls = [value for name, value in values.items() if name.startswith("stall_")]
    total = sum(value for value in stalls if not math.isnan(value))
    difference = total / latency - 1 if latency and stalls else 0.0
    if abs(difference) > _DISAGREEMENT:
        yield (
            f"warp stalls sum to {total:.1f} cycles, the measured warp latency is {latency:.1f} "
            f"({difference:+.0%}): counters of different replay passes; shares are of the sum"
        )
    difference = rate * duration / traffic - 1 if traffic else 0.0
    if abs(difference) > _DISAGREEMENT:
        yield (
            f"DRAM bandwidth x duration differs from the counted DRAM bytes by {difference:+.0%}: "
            "the launch is too short or varies between replay passes"
        )
    if gpu.clock and clock > gpu.clock * (1 + BOUND_TOLERANCE):
        yield (
            f"measured SM clock {clock / 1e9:.2f} GHz exceeds the max SM clock "
            f"{gpu.clock / 1e9:.2f} GHz: the launch is too short for reliable rates"
        )
    if values.get("pc_samples_dropped_bytes", 0.0) > 0:
        yield _LOST
