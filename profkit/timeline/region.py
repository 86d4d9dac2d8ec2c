"""Quantities for rules about a timeline: the region from the first GPU work to the end of the last.

This time is the sum of four parts: GPU busy, only host-device copies, short gaps and long gaps.
The time before the first work (setup) and after the last is excluded.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence

from profkit.core.yaml_files import shipped_yaml
from profkit.timeline.reader import GpuWork, Kernel, MemoryOperation, Timeline, length

SHORT_GAP = 100e-6
"""Seconds of the longest gap that launch overhead alone may cause: a launch takes the host 2 to
10 µs, an operation of an eager framework several times that."""

QUANTITIES: Mapping[str, tuple[str, str]]
"""By name: unit and meaning."""
PARTS: Mapping[str, str]
"""The parts of the region's time that a fix may eliminate."""
_TEXTS, _PARTS = shipped_yaml("profkit.timeline", "region.yaml").values()
_SHORT_GAP = f"{SHORT_GAP * 1e6:.0f} µs"
QUANTITIES = {
    name: (unit, meaning.format(short_gap=_SHORT_GAP)) for name, (unit, meaning) in _TEXTS.items()
}
PARTS = {name: words.format(short_gap=_SHORT_GAP) for name, words in _PARTS.items()}

_HOST_COPIES = {"host to device", "device to host", "host to array", "array to host"}
_WAITING = ("Synchronize", "EventQuery", "StreamQuery")
_ALLOCATING = ("Malloc", "MemAlloc", "cudaFree", "MemFree", "MemCreate", "MemRelease")


def measure(timeline: Timeline, work: Sequence[GpuWork]) -> Mapping[str, float]:
    """The quantities of a timeline with its GPU work in order of start; none where there is none.

    Those of kernels or copies are NaN without any.
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
    copies = [item for item in timeline.memory_operations if _is_host_copy(item)]
    copied, copying = sum(copy.bytes for copy in copies), union(copies)
    pageable = sum(copy.bytes for copy in copies if "pageable" in {copy.source, copy.target})
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
        "synchronizing_calls": _count(called, _WAITING),
        "allocating_calls": _count(called, _ALLOCATING),
        "host_copies": len(copies),
        "host_copy_bytes": copied,
        "host_copy_bandwidth": copied / copying if copying else math.nan,
        "pageable_share": pageable / copied if copied else math.nan,
    }


def union(work: Iterable[GpuWork]) -> float:
    """Seconds in which at least one of them ran."""
    pieces, reached = [], -math.inf
    for item in sorted(work, key=lambda item: item.start):
        if item.end > reached:
            pieces.append(length(max(item.start, reached), item.end))
            reached = item.end
    return summed(pieces)


def summed(times: Iterable[float]) -> float:
    """The sum of times, to the nanosecond."""
    return round(math.fsum(times), 9)


def gaps_between(work: Sequence[GpuWork]) -> list[tuple[GpuWork, GpuWork]]:
    """The previous and the next work of each gap, for work in order of start."""
    gaps = []
    last = work[0]
    for item in work[1:]:
        if item.start > last.end:
            gaps.append((last, item))
        if item.end > last.end:
            last = item
    return gaps


def _is_host_copy(item: GpuWork) -> bool:
    return isinstance(item, MemoryOperation) and item.kind in _HOST_COPIES


def _count(names: Iterable[str], words: Sequence[str]) -> int:
    return sum(any(word in name for word in words) for name in names)
