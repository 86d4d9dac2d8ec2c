"""Summary of a timeline: GPU busy time, gaps and their causes, time by kernel and call.

All times are seconds; those of the timeline itself count from its first event.
"""

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np
from msgspec import field
from msgspec.structs import asdict

from profkit.core.typed_file import Count, Model, Number, Real
from profkit.timeline.events import Events, Times
from profkit.timeline.intervals import length, union
from profkit.timeline.lost_work import failed_tracing, unrecorded
from profkit.timeline.nesting import MOST_AROUND, Nesting, around
from profkit.timeline.times import NS, Spread, TimeGroup, grouped, spread
from profkit.timeline.work import KERNEL, MEMORY, Work, dense, gaps_before, work_of
from profkit.ui.text import number, percent, plural

GAPS_KEPT = 10  # longest gaps, chosen: twice what a terminal lists

_UNKNOWN = np.iinfo(np.int64).min
_LOW = 0xFFFFFFFF  # the low half of 64 bits
Extent = tuple[Count, Count, Count]


class Export(Model, frozen=True, kw_only=True):
    """An export, the start of its session (UTC), nsys version and schema version; overlapping
    kernels count twice in `kernel_time_s`."""

    file: str
    recorded: str | None
    product_version: str | None = field(name="nsys")
    schema_version: str | None = field(name="export_schema")
    launches: Count = field(name="kernel_launches")
    kernel_time: Number = field(name="kernel_time_s")
    notes: tuple[str, ...]


class Device(Model, frozen=True, kw_only=True):
    """A GPU with work, by its CUDA device number."""

    device: int
    name: str
    compute_capability: str | None
    sm_count: Count | None
    memory_bytes: Count | None


class Gap(Model, frozen=True, kw_only=True):
    """An interval without GPU work: the previous (`after`) and the next (`before`) work, the share
    in which a host thread was in a CUDA call, and the call with the largest part of that."""

    start: Number = field(name="start_s")
    duration: Number = field(name="duration_s")
    after: str
    before: str
    in_calls: Number
    call: str | None


class Region(Model, frozen=True, kw_only=True):
    """From the first CUDA call or GPU work, `start_s` after the first event, to the last's end.

    `busy_s` is the time in which a kernel, memcpy, memset or graph ran on any GPU, `idle_s` the sum
    of the lead until the first of them, the gaps between them and the tail after the last;
    `largest_gaps` has the longest ones.
    """

    start: Number = field(name="start_s")
    span: Number = field(name="span_s")
    busy: Number = field(name="busy_s")
    busy_share: Real
    idle: Number = field(name="idle_s")
    lead: Number = field(name="lead_s")
    tail: Number = field(name="tail_s")
    gaps: Spread
    largest: tuple[Gap, ...] = field(name="largest_gaps")


class _ShareOfTime(Spread, frozen=True, kw_only=True):
    share: Real


class KernelGroup(_ShareOfTime, frozen=True):
    """Launches of one kernel with one launch configuration; `share` is of the list."""

    name: str
    grid: Extent
    block: Extent


class RangeUse(Model, frozen=True, kw_only=True):
    """Kernels launched in NVTX ranges, by the names of the ranges, outermost first; outside all
    ranges where the path is empty. `entered` (instances) and the host time are of the innermost."""

    path: tuple[str, ...]
    entered: Count
    host_time: Real = field(name="host_time_s")
    launches: Count = field(name="kernel_launches")
    kernel_time: Number = field(name="kernel_time_s")
    share: Real


class LaunchDelays(Model, frozen=True, kw_only=True):
    """Kernel starts relative to the start and the return of the launch call, and to the end of the
    stream's previous work; `late` launch calls began after the stream was idle."""

    from_call_start: Spread
    after_call_return: Spread
    stream_gaps: Spread = field(name="stream_gap")
    late: Count


class CallUse(Spread, frozen=True):
    """A CUDA API call; times include profiling overhead, and calls of several threads overlap."""

    name: str


class _TimeAndBandwidth(Spread, frozen=True, kw_only=True):
    bandwidth: Real = field(name="bandwidth_bytes_per_s")


class MemoryUse(_TimeAndBandwidth, frozen=True):
    """Memcpy by kind, as "host to device", with source and target kinds of memory; or memset. The
    bandwidth is over the time in which at least one such operation ran."""

    kind: str
    source: str | None
    target: str | None
    bytes: Count


class TimelineSummary(Model, frozen=True, kw_only=True):
    """The analysis of a timeline. Times are in seconds, shares are fractions of 1; a missing number
    is null. All lists have the most time first."""

    report: Export
    gpus: tuple[Device, ...]
    region: Region
    groups: tuple[KernelGroup, ...] = field(name="kernels")
    ranges: tuple[RangeUse, ...]
    delays: LaunchDelays = field(name="launch_delays")
    calls: tuple[CallUse, ...]
    memory: tuple[MemoryUse, ...]

    @property
    def headline(self) -> str:
        """The timeline in a line: launches, kernel time, the GPU's busy share of the region."""
        if not self.region.busy:
            return "no GPU work recorded"
        return (
            f"{plural(self.report.launches, 'kernel launch')}, "
            f"{number(self.report.kernel_time, 's')} of kernel time; GPU busy "
            f"{percent(self.region.busy_share)} of {number(self.region.span, 's')}"
        )


def summarize_timeline(events: Events) -> TimelineSummary:
    """The summary of a timeline that all views show."""
    work = work_of(events)
    kernels, calls = events.kernels, events.calls
    durations = kernels.end - kernels.start
    nesting = around(events, kernels.call)
    launched = kernels.name.astype(np.int64) * len(events.configurations) + kernels.configuration
    delays, notes = _launches(events, work)
    return TimelineSummary(
        report=Export(
            file=str(events.path),
            recorded=events.created.isoformat() if events.created else None,
            product_version=events.product_version or None,
            schema_version=events.schema_version or None,
            launches=len(durations),
            kernel_time=spread(durations).total,
            notes=_notes(events, work, nesting, notes),
        ),
        gpus=tuple(
            Device(
                device=gpu.device,
                name=gpu.name,
                compute_capability=f"{gpu.cc[0]}.{gpu.cc[1]}" if gpu.cc[0] else None,
                sm_count=gpu.sm_count or None,
                memory_bytes=gpu.memory_bytes or None,
            )
            for gpu in events.gpus
        ),
        region=_region(events, work),
        groups=_groups(events, grouped(dense(launched), durations)),
        ranges=_ranges(events, nesting, durations),
        delays=delays,
        calls=tuple(
            CallUse(events.call_names[group.code], **asdict(group.times))
            for group in grouped(calls.name, calls.end - calls.start)
        ),
        memory=_memory(events),
    )


def _region(events: Events, work: Work) -> Region:
    recorded = [part for part in (work, events.calls) if len(part)]
    start = min((int(part.start[0]) for part in recorded), default=0)
    end = max((int(part.end.max()) for part in recorded), default=0)
    span = (end - start) / NS
    gaps = gaps_before(work.start, work.end)
    between = spread(gaps[gaps > 0])
    first, last = (int(work.start[0]), int(work.end.max())) if len(work) else (end, end)
    lead, tail = (first - start) / NS, (end - last) / NS
    idle = math.fsum((lead, between.total, tail))
    busy = max(0.0, round(span - idle, 9))
    longest = np.argsort(-gaps, kind="stable")[:GAPS_KEPT]
    return Region(
        start=start / NS,
        span=span,
        busy=busy,
        busy_share=_share(busy, span),
        idle=idle,
        lead=lead,
        tail=tail,
        gaps=between,
        largest=tuple(_gap(events, work, int(index)) for index in longest if gaps[index] > 0),
    )


def _gap(events: Events, work: Work, index: int) -> Gap:
    """The gap before some work."""
    end = int(work.start[index])
    last = int(np.argmax(work.end[:index]))
    start = int(work.end[last])
    inside = np.flatnonzero((events.calls.start < end) & (events.calls.end > start))
    names = events.calls.name[inside]
    begin = np.maximum(events.calls.start[inside], start)
    stop = np.minimum(events.calls.end[inside], end)
    parts = np.bincount(names, stop - begin) if len(inside) else np.zeros(1)
    most = names[np.argmax(parts[names])] if len(inside) else -1
    return Gap(
        start=start / NS,
        duration=(end - start) / NS,
        after=_work_name(events, work, last),
        before=_work_name(events, work, index),
        in_calls=min(1.0, length(union(begin, stop)) / (end - start)),
        call=(events.call_names[most] or None) if most >= 0 else None,
    )


def _work_name(events: Events, work: Work, index: int) -> str:
    """A kernel's name, "copy host to device", ..."""
    table, row = work.table[index], work.row[index]
    if table == KERNEL:
        return str(events.kernel_names[events.kernels.name[row]].name)
    if table != MEMORY:
        return "CUDA graph"
    kind = events.memory_kinds[events.memory_operations.kind[row]].kind
    return kind if kind == "memset" else f"copy {kind}"


def _launches(events: Events, work: Work) -> tuple[LaunchDelays, Mapping[str, int]]:
    """The delays of launches, and notes on them that hold where not 0."""
    kernels, calls = events.kernels, events.calls
    free = np.full(len(work), _UNKNOWN)
    by_stream = np.argsort(work.stream, kind="stable")
    bounds = np.searchsorted(work.stream[by_stream], np.arange(len(events.streams) + 1))
    for first, last in pairwise(bounds.tolist()):
        places = by_stream[first:last]
        free[places[1:]] = np.maximum.accumulate(work.end[places])[:-1]
    is_kernel = work.table == KERNEL
    idle_since = np.full(len(kernels), _UNKNOWN)
    idle_since[work.row[is_kernel]] = free[is_kernel]
    launched, queued = kernels.call >= 0, idle_since != _UNKNOWN
    call = kernels.call[launched]
    from_start = kernels.start[launched] - calls.start[call]
    delays = LaunchDelays(
        from_call_start=spread(from_start),
        after_call_return=spread(kernels.start[launched] - calls.end[call]),
        stream_gaps=spread((kernels.start - idle_since)[queued]),
        late=int((queued[launched] & (calls.start[call] > idle_since[launched])).sum()),
    )
    unknown, early = int((~launched).sum()), int((from_start < 0).sum())
    notes = {
        f"launch calls of {unknown} of {len(kernels)} kernels not recorded: their launch delays "
        "and NVTX ranges are unknown": unknown,
        f"{early} of {len(kernels)} kernels start before their launch call: host and GPU clocks "
        "are not synchronized accurately enough for short delays": early,
    }
    return delays, notes


def _groups(events: Events, groups: Sequence[TimeGroup]) -> tuple[KernelGroup, ...]:
    """Kernels by name, grid and block, most time first."""
    total = math.fsum(group.times.total for group in groups)
    rows = []
    for group in groups:
        name = events.kernel_names[events.kernels.name[group.first]].name
        shape = events.configurations[events.kernels.configuration[group.first]]
        times = asdict(group.times)
        share = _share(group.times.total, total)
        rows.append(KernelGroup(name, shape.grid, shape.block, **times, share=share))
    return tuple(rows)


def _share(part: float, total: float) -> float:
    return min(1.0, part / total) if total else math.nan


def _ranges(events: Events, nesting: Nesting, durations: Times) -> tuple[RangeUse, ...]:
    """Kernels by the names of the ranges around their launch; empty when no range is around any."""
    if not np.any(nesting.innermost >= 0):
        return ()
    entered = np.unique(nesting.path.astype(np.int64) << 32 | (nesting.innermost + 1))
    entered = entered[entered & _LOW != 0]
    path, innermost = entered >> 32, (entered & _LOW) - 1
    counts = np.bincount(path, minlength=len(nesting.paths))
    lengths = events.ranges.end[innermost] - events.ranges.start[innermost]
    host_times = np.bincount(path, lengths, minlength=len(nesting.paths)) / NS
    total = float(durations.sum(dtype=np.float64)) / NS
    return tuple(
        RangeUse(
            path=nesting.paths[use.code],
            entered=int(counts[use.code]),
            host_time=float(host_times[use.code]) if nesting.paths[use.code] else math.nan,
            launches=use.times.count,
            kernel_time=use.times.total,
            share=_share(use.times.total, total),
        )
        for use in grouped(nesting.path, durations)
    )


def _memory(events: Events) -> tuple[MemoryUse, ...]:
    operations = events.memory_operations
    uses = []
    for group in grouped(operations.kind, operations.end - operations.start):
        kind, same = events.memory_kinds[group.code], operations.kind == group.code
        busy = length(union(operations.start[same], operations.end[same])) / NS
        size = sum(operations.size[same].tolist())
        ends = kind.source or None, kind.target or None
        bandwidth = size / busy if busy else math.nan
        times = asdict(group.times)
        uses.append(MemoryUse(kind.kind, *ends, size, **times, bandwidth=bandwidth))
    return tuple(uses)


def _notes(
    events: Events, work: Work, nesting: Nesting, of_launches: Mapping[str, int]
) -> tuple[str, ...]:
    kernels = len(events.kernels)
    streams = [events.streams[index] for index in np.unique(work.stream)]
    devices = {(stream.process, stream.device) for stream in streams}
    full = [len(path) == MOST_AROUND for path in nesting.paths]
    nested = int(np.array(full)[nesting.path].sum())
    missing = unrecorded(events)
    open_ranges = int((~events.ranges.closed).sum())
    notes = {
        "no kernel in the recording: record more of the program": not kernels
        and not failed_tracing(events),
        missing: missing,
        f"CUDA graphs traced as a whole: {len(events.graphs)}; counted as GPU work without "
        "their kernels: record with --cuda-graph-trace=node": events.graphs,
        f"GPU work of {len(devices)} process-GPU pairs: busy time is the time in which any of "
        "them is busy": len(devices) > 1,
        **of_launches,
        f"{nested} of {kernels} kernel launches are in {MOST_AROUND} or more nested NVTX ranges: "
        f"only the innermost {MOST_AROUND} are used": nested,
        f"{open_ranges} of {len(events.ranges)} NVTX ranges have no end: extended to the end of "
        "the recording": open_ranges,
        f"events without valid timestamps: {events.untimed} ignored": events.untimed,
    }
    return tuple(text for text, holds in notes.items() if holds)
