"""Numbers that can't all be true: what a reader must know before believing a launch's counters.

ncu collects counters in several passes, so values of one launch can contradict each other. Nothing
is corrected here; a contradiction is said.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
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
    notes = (
        *_out_of_bounds(values),
        _stalls_against_latency(values),
        _traffic_against_rate(values),
        _clock_against_chip(values, gpu),
        _LOST if values.get("pc_samples_dropped_bytes", 0.0) > 0 else "",
    )
    return tuple(filter(None, notes))


def impossible(values: Mapping[str, float]) -> frozenset[str]:
    """The quantities whose recorded value lies outside what it can be."""
    names = set()
    for name in values.keys() & catalog().quantities.keys():
        if bounds := catalog().quantities[name].within:
            slack = TOLERANCES.bound * (bounds[1] - bounds[0])
            if not bounds[0] - slack <= values[name] <= bounds[1] + slack:
                names.add(name)
    return frozenset(names)


def _out_of_bounds(values: Mapping[str, float]) -> Iterator[str]:
    for name in sorted(impossible(values)):
        bounds, value = catalog().quantities[name].within, values[name]
        reads = f"{value:.1%}, beyond 100%" if bounds == (0, 1) else f"{value:.4g}"
        yield f"{name} reads {reads}: it can't be, don't rely on it here"


def _stalls_against_latency(values: Mapping[str, float]) -> str:
    latency = values.get("warp_latency", math.nan)
    stalls = [value for name, value in values.items() if name.startswith("stall_")]
    total = sum(value for value in stalls if not math.isnan(value))
    difference = total / latency - 1 if latency and stalls else 0.0
    if not abs(difference) > TOLERANCES.disagreement:
        return ""
    return (
        f"warp stalls add up to {total:.1f} cycles, the measured latency is {latency:.1f} "
        f"({difference:+.0%}): different passes; shares are of the sum"
    )


def _traffic_against_rate(values: Mapping[str, float]) -> str:
    rate, duration, traffic = (
        values.get(name, math.nan) for name in ("dram_bandwidth", "duration", "dram_bytes")
    )
    difference = rate * duration / traffic - 1 if traffic else 0.0
    if not abs(difference) > TOLERANCES.disagreement:
        return ""
    return (
        f"DRAM bandwidth x duration is {difference:+.0%} off the DRAM bytes counted: "
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
