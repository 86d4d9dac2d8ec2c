"""Numbers that can't all be true: what a reader must know before believing a launch's counters.

ncu collects counters in several passes, so values of one launch can contradict each other. Nothing
is corrected here; a contradiction is said.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from profkit.report.catalog import catalog

if TYPE_CHECKING:
    from profkit.report.gpus import Gpu


@dataclass(frozen=True)
class Tolerances:
    """How far numbers of different passes may disagree before it is said, as shares.

    Bounds: 1%, what pass-to-pass noise adds to a rate near its bound. Stalls and traffic: 5%, ten
    times the disagreement on launches that run long against ncu's overhead.
    """

    bound: float = 0.01
    disagreement: float = 0.05


TOLERANCES = Tolerances()
_LOST = "warp samples were dropped (buffer full): per-line shares are biased"


def contradictions(values: Mapping[str, float], gpu: Gpu) -> tuple[str, ...]:
    """What contradicts in a launch's quantities, one sentence each."""
    found = (
        *_out_of_bounds(values),
        _stalls_against_latency(values),
        _traffic_against_rate(values),
        _clock_against_chip(values, gpu),
        _LOST if values.get("pc_samples_dropped_bytes", 0.0) > 0 else "",
    )
    return tuple(filter(None, found))


def impossible(values: Mapping[str, float]) -> frozenset[str]:
    """The quantities whose recorded value lies outside what it can be."""
    return frozenset(
        name
        for name, entry in catalog().quantities.items()
        if name in values and entry.within is not None and _outside(values[name], *entry.within)
    )


def _outside(value: float, low: float, high: float) -> bool:
    slack = TOLERANCES.bound * (high - low)
    return not low - slack <= value <= high + slack


def _out_of_bounds(values: Mapping[str, float]) -> list[str]:
    found = []
    for name in sorted(impossible(values)):
        low, high = catalog().quantities[name].within or (0.0, 0.0)
        value = values[name]
        reads = f"{value:.1%}, beyond {high:.0%}" if (low, high) == (0, 1) else f"{value:.4g}"
        found.append(f"{name} reads {reads}: it can't be, don't rely on it here")
    return found


def _stalls_against_latency(values: Mapping[str, float]) -> str:
    latency = values.get("warp_latency", math.nan)
    stalls = [value for name, value in values.items() if name.startswith("stall_")]
    total = sum(value for value in stalls if not math.isnan(value))
    off = total / latency - 1 if latency and stalls else 0.0
    if not abs(off) > TOLERANCES.disagreement:
        return ""
    return (
        f"warp stalls add up to {total:.1f} cycles, the measured latency is {latency:.1f} "
        f"({off:+.0%}): different passes; shares are of the sum"
    )


def _traffic_against_rate(values: Mapping[str, float]) -> str:
    by_rate = values.get("dram_bandwidth", math.nan) * values.get("duration", math.nan)
    by_count = values.get("dram_bytes", math.nan)
    off = by_rate / by_count - 1 if by_count else 0.0
    if not abs(off) > TOLERANCES.disagreement:
        return ""
    return (
        f"DRAM bandwidth x duration is {off:+.0%} off the DRAM bytes counted: "
        "the launch is too short or too uneven between passes"
    )


def _clock_against_chip(values: Mapping[str, float], gpu: Gpu) -> str:
    clock = values.get("sm_clock", math.nan)
    if not gpu.clock or not clock > gpu.clock * (1 + TOLERANCES.bound):
        return ""
    return (
        f"SM clock reads {clock / 1e9:.2f} GHz, above the chip's {gpu.clock / 1e9:.2f} GHz: "
        "the launch is too short for rates"
    )
