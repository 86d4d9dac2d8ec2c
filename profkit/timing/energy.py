"""The energy of a call: bounds from runs of many calls, and the declared work per joule."""

from __future__ import annotations

import math
from collections.abc import Sequence

from profkit.capture.work import Work
from profkit.timing.latency_format import EnergyPerCall, EnergyRun

FEWEST_STEPS = 50
"""Steps of the energy counter in a run; chosen: a step at either end is then 2% of its energy."""
SECONDS = 5.0
"""Of a run; chosen: counters advance every 20 to 100 ms, 50 times in 5 s or more often."""
# Chosen: NVML averages power over a second at most, so what ran before is out of a counter by then.
LEAD_IN = 1.0
"""Seconds of calls before a run."""
RUNS = 2
"""Of a variant; chosen: in the order A B, B A, a drift is alike for both."""


def without_energy(runs: Sequence[EnergyRun]) -> str:
    """Why runs say nothing about the energy of a call; "" where they do, or there are none."""
    run = min(runs, key=lambda run: run.steps, default=None)
    if run is None or run.steps >= FEWEST_STEPS:
        return ""
    needed = math.ceil(FEWEST_STEPS * run.seconds / run.steps) if run.steps else 0
    remedy = f": --energy-seconds {needed}" if needed else ""
    return (
        f"the energy counter advanced {run.steps} times in {run.seconds:.1f} s, "
        f"{FEWEST_STEPS} are needed{remedy}"
    )


def energy_per_call(runs: Sequence[EnergyRun], work: Work) -> EnergyPerCall | None:
    """The energy of a call over all runs, and the work that it did per joule.

    None without runs, and for the reason of `without_energy`.
    """
    if not runs or without_energy(runs):
        return None
    drawn = sum((run.low + run.high) / 2 for run in runs)
    joules = drawn / sum(run.calls for run in runs)
    return EnergyPerCall(
        joules=joules,
        low=min(run.low / run.calls for run in runs),
        high=max(run.high / run.calls for run in runs),
        power=drawn / sum(run.seconds for run in runs),
        flop_per_joule=work.flop / joules if work.flop else None,
        bytes_per_joule=work.bytes / joules if work.bytes else None,
    )
