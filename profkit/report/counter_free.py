"""What a report holds without a hardware counter: launch, device, duration and machine code.

A machine that refuses counters has the same: CUPTI activity of a timeline and the compiler's files.
"""

import math
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from profkit.hardware.gpus import Gpu
from profkit.hardware.occupancy import BlockNeeds, Limits, block_limits, warps_per_block
from profkit.report.catalog import catalog
from profkit.report.reader import RawReport, Request, read
from profkit.report.summary import LaunchSummary

_FREE = ("launch__", "device__")
_LIMITS = ("registers", "shared", "warps", "blocks")


def is_counter(metric: str) -> bool:
    """Whether a metric, by ncu's name, takes a hardware counter or samples."""
    return not metric.startswith(_FREE) and metric not in _durations()


@cache
def _durations() -> frozenset[str]:
    """The metrics of a launch's duration, which ncu takes from the driver's timestamps."""
    alternatives = catalog().quantities["duration"].alternatives
    return frozenset(name for each in alternatives for name in each.formula.names)


def counter_free(path: Path) -> RawReport:
    """A report as if its counters had been refused; raises as `reader.read`."""
    entries = catalog()
    request = Request(
        metrics=[name for name in entries.metric_names if not is_counter(name)],
        breakdowns=dict.fromkeys(entries.breakdowns, ("", "")),
        device=entries.device,
    )
    return read(path, request)


def launch_limits(needs: BlockNeeds, gpu: Gpu) -> Mapping[str, float]:
    """The blocks that fit on an SM by each resource, and the grid's waves need no counter."""
    chip = gpu.chip
    if not chip.warps or needs.threads <= 0:
        return {}
    limits = block_limits(needs, chip)
    return {f"occupancy_limit_{name}": float(most) for name, most in limits.items()}


def launch_facts(launch: LaunchSummary) -> Mapping[str, float]:
    """The quantities of a launch that rest on its configuration, with the occupancy that it allows:
    `occupancy_by_launch` (share of an SM's warps) and `warps_resident` (warps per scheduler)."""
    names = [entry.name for entry in catalog().group("launch")] + ["sm_count"]
    names += [f"occupancy_limit_{name}" for name in _LIMITS]
    facts = {name: launch.get(name) for name in names}
    limits = {name: launch.get(f"occupancy_limit_{name}") for name in _LIMITS}
    known = {name: int(most) for name, most in limits.items() if not math.isnan(most)}
    chip = launch.gpu.chip
    units = (chip.warps, chip.schedulers, launch.gpu.sm_count, math.prod(launch.block))
    if not known or not launch.block or not all(units):
        return facts
    warps = warps_per_block(math.prod(launch.block))
    most = Limits(known).resident * warps
    launched = math.prod(launch.grid) * warps / launch.gpu.sm_count
    return facts | {
        "occupancy_by_launch": most / chip.warps,
        "warps_resident": max(min(most, launched) / chip.schedulers, 1 / chip.schedulers),
    }
