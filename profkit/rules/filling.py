"""What a grid of fewer blocks than SMs leaves: counted for the same threads, and the ceiling."""

from __future__ import annotations

from profkit.report.summary import LaunchSummary

_WARP = 32  # threads; a block can't have fewer in each of its warps
_SHARED = ("not_selected", "math_pipe_throttle", "mio_throttle", "lg_throttle", "tex_throttle")
"""Stalls that are waits for what an SM's warps share: its schedulers, pipes and queues."""


def filling(launch: LaunchSummary) -> tuple[float, float]:
    """The factors by which a launch of fewer blocks than SMs gets faster with its threads in
    smaller blocks over all SMs (NaN where its stalls were not recorded), and with its work divided
    over all SMs too.

    Spread threads keep their latency; their waits for units that fewer of them share then fall in
    proportion.
    """
    filled = launch.get("grid_size") / launch.get("sm_count")
    waits = sum(launch.get(f"stall_{reason}") for reason in _SHARED) / launch.get("warp_latency")
    left = max(filled, _WARP / max(launch.get("block_size"), _WARP))
    return 1 / (1 - (1 - left) * waits), 1 / filled
