"""What rules about a timeline may name: the region from the first GPU work to the end of the last.

That time is the sum of four parts: the GPU at work, only copies between host and GPU at work, short
gaps, and long ones. What came before the first work (set-up) and after the last is no part of it.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence

from profkit.core.yaml_files import shipped_yaml
from profkit.timeline.intervals import gaps_between, union
from profkit.timeline.reader import GpuWork, Kernel, MemoryOperation, Timeline, length

SHORT_GAP = 100e-6
"""The longest gap that may come from launching alone: a launch takes the host 2 to 10 µs, an
operation of an eager framework several times that."""

QUANTITIES: Mapping[str, tuple[str, str]]
"""By name: unit and meaning."""
PARTS: Mapping[str, str]
"""The parts of the region's time that a fix may take away."""
QUANTITIES, PARTS = shipped_yaml("profkit.timeline", "region.yaml").values()

_HOST_COPIES = {"host to device", "device to host", "host to array", "array to host"}
_WAITING = ("Synchronize", "EventQuery", "StreamQuery")
_ALLOCATING = ("Malloc", "MemAlloc", "cudaFree", "MemFree", "MemCreate", "MemRelease")


def measure(timeline: Timeline, work: Sequence[GpuWork]) -> Mapping[str, float]:
    """The quantities of a timeline with its GPU work in order of start; none where there is none.

    Those of kernels or copies are NaN where there are no such.
    """
    if not work:
        return {}
    start, end = work[0].start, max(item.end for item in work)
    span = length(start, end)
    if not span > 0:
        return {}
    busy = union(work)
    without = union(item for item in work if not _is_host_copy(item))
    gaps = [length(after.end, before.start) for after, before in gaps_between(work)]
    short = [gap for gap in gaps if gap <= SHORT_GAP]
    long = [gap for gap in gaps if gap > SHORT_GAP]
    kernels = [item.duration for item in work if isinstance(item, Kernel)]
    called = [call.name for call in timeline.calls if call.end > start and call.start < end]
    return {
        "gpu_span": span,
        "gpu_busy_share": min(1.0, busy / span),
        "short_gap_share": math.fsum(short) / span,
        "long_gap_share": math.fsum(long) / span,
        "host_copy_share": max(0.0, busy - without) / span,
        "short_gaps": len(short),
        "long_gaps": len(long),
        "gap_median": statistics.median(gaps) if gaps else math.nan,
        "gap_longest": max(gaps, default=math.nan),
        "kernel_launches": len(kernels),
        "kernel_median": statistics.median(kernels) if kernels else math.nan,
        "synchronizing_calls": sum(_names(name, _WAITING) for name in called),
        "allocating_calls": sum(_names(name, _ALLOCATING) for name in called),
        **_copies([item for item in timeline.memory_operations if _is_host_copy(item)]),
    }


def _is_host_copy(item: GpuWork) -> bool:
    return isinstance(item, MemoryOperation) and item.kind in _HOST_COPIES


def _names(name: str, words: Sequence[str]) -> bool:
    return any(word in name for word in words)


def _copies(copies: Sequence[MemoryOperation]) -> Mapping[str, float]:
    copied, took = sum(copy.bytes for copy in copies), union(copies)
    pageable = sum(copy.bytes for copy in copies if "pageable" in {copy.source, copy.target})
    return {
        "host_copies": len(copies),
        "host_copy_bytes": copied,
        "host_copy_bandwidth": copied / took if took else math.nan,
        "pageable_share": pageable / copied if copied else math.nan,
    }
