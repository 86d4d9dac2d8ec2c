"""All GPU work of a timeline in order of start, and the gaps before it."""

from __future__ import annotations

import numpy as np

from profkit.timeline.events import Events, GpuWork, Indices, Times


class AllWork(GpuWork, frozen=True, eq=False):
    """Kernels, memory operations and graphs; `index` counts them on in this order."""

    index: Indices


def gpu_work(events: Events) -> AllWork:
    """All GPU work, in order of start, then of end."""
    kinds: tuple[GpuWork, ...] = (events.kernels, events.memory_operations, events.graphs)
    start = np.concatenate([kind.start for kind in kinds])
    end = np.concatenate([kind.end for kind in kinds])
    order = np.lexsort((end, start))
    return AllWork(
        start[order],
        end[order],
        stream=np.concatenate([kind.stream for kind in kinds])[order],
        call=np.concatenate([kind.call for kind in kinds])[order],
        index=order.astype(np.int32),
    )


def reached(start: Times, end: Times) -> Times:
    """For each interval, in order of start, the latest end of those before it.

    For the first this is its own start.
    """
    return np.concatenate([start[:1], np.maximum.accumulate(end)[:-1]])


def gaps_before(start: Times, end: Times) -> Times:
    """For each interval, in order of start, the time since the last end; at most 0 is no gap."""
    return start - reached(start, end)
