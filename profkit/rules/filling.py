"""What a grid of fewer blocks than SMs leaves: counted for the same threads, and the ceiling."""

from __future__ import annotations

import math
from typing import NamedTuple

from profkit.report.summary import LaunchSummary

_WARP = 32  # threads; a block can't have fewer in each of its warps
_SHARED = ("not_selected", "math_pipe_throttle", "mio_throttle", "lg_throttle", "tex_throttle")
"""Stalls that are waits for what an SM's warps share: its schedulers, pipes and queues."""


class Filling(NamedTuple):
    """Factors of a kernel's time: `spread` with its threads in smaller blocks over all SMs, NaN
    where its stalls were not recorded; `divided` with its work divided over all SMs too."""

    spread: float
    divided: float


def filling(launch: LaunchSummary) -> Filling:
    """What filling the SMs gives a launch of fewer blocks than those.

    Spread threads keep their latency; their waits for units that fewer of them share then fall in
    proportion. The ceiling is the number of SMs over that of blocks.
    """
    filled = launch.get("grid_size") / launch.get("sm_count")
    waits = sum(launch.get(f"stall_{reason}") for reason in _SHARED) / launch.get("warp_latency")
    left = max(filled, _WARP / max(launch.get("block_size"), _WARP))
    spread = 1 / (1 - (1 - left) * waits) if math.isfinite(waits) else math.nan
    return Filling(spread, 1 / filled)
