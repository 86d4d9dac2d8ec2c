"""Summary of a timeline: GPU busy time, gaps and their causes, time by kernel and call.

All times are seconds; those of the timeline itself count from its first event.
"""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from heapq import nlargest
from typing import TypeVar

from profkit.timeline.reader import (
    MOST_AROUND,
    ApiCall,
    GpuWork,
    Kernel,
    NvtxRange,
    Span,
    Stream,
    Timeline,
    TimelineGpu,
    length,
)  # fmt: skip
from profkit.timeline.region import gaps_between, measure, summed, union

GAPS_KEPT = 10  # longest gaps, chosen: twice what a terminal lists

_Item = TypeVar("_Item", bound=Span)
_Key = TypeVar("_Key")


@dataclass(frozen=True)
class Spread:
    """Count, total, median and extremes of times; all but `count` and `total` NaN without any."""

    count: int
    total: float
    median: float
    low: float
    high: float


@dataclass(frozen=True)
class Gap:
    """An interval between GPU work in which no GPU was busy.

    `after` is the previous work, `before` the next. `in_calls` is the share of the gap in which a
    host thread was in a CUDA call, `call` the call with the largest part of that, "" without any.
    """

    start: float
    duration: float
    after: GpuWork
    before: GpuWork
    call: str
    in_calls: float


@dataclass(frozen=True)
class Region:
    """The time that was recorded: from the first CUDA call or GPU work to the end of the last.

    NVTX ranges and other host time before and after are excluded. `busy` is the time in which at
    least one kernel, memcpy, memset or graph ran on any GPU: overlapping work counts once. `span` =
    `busy` + `lead` (until the first GPU work) + `gaps.total` (between GPU work) + `tail` (after the
    last). `largest` are the longest gaps.
    """

    start: float
    span: float
    busy: float
    lead: float
    tail: float
    gaps: Spread
    largest: tuple[Gap, ...]

    @property
    def idle(self) -> float:
        """Seconds of the region in which no GPU was busy."""
        return math.fsum((self.lead, self.gaps.total, self.tail))

    @property
    def busy_share(self) -> float:
        """`busy` as a share of the span; NaN for a region without length."""
        return min(1.0, self.busy / self.span) if self.span else math.nan


@dataclass(frozen=True)
class KernelRun:
    """One kernel relative to its launch call and its stream.

    `from_call_start` is the kernel's start less the start of its launch call: overhead and
    queueing. `after_call_return` is its start less the end of that call, negative where it started
    before the call returned. `stream_gap` is its start less the end of the stream's previous work
    (negative with programmatic dependent launch). NaN without such a call or work. `late`: the call
    began after the stream was idle, so that the GPU waited for the host.
    """

    kernel: Kernel
    from_call_start: float
    after_call_return: float
    stream_gap: float
    late: bool


@dataclass(frozen=True)
class Launches:
    """All launches: the three delays of `KernelRun`, and the number of late-submitted launches."""

    runs: tuple[KernelRun, ...]
    from_call_start: Spread
    after_call_return: Spread
    stream_gaps: Spread
    late: int


@dataclass(frozen=True)
class KernelGroup:
    """Launches of one kernel with one launch configuration; `share` is of the table."""

    name: str
    label: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    times: Spread
    share: float


@dataclass(frozen=True)
class RangeUse:
    """The kernels launched in one nest of NVTX ranges; `path` holds their names, outermost first.

    An empty path stands for kernels outside all ranges. `count` is the number of instances of the
    innermost range with a kernel launch, `host_time` their time on the host; `share`
    is of all kernel time.
    """

    path: tuple[str, ...]
    count: int
    host_time: float
    kernels: Spread
    share: float
    groups: tuple[KernelGroup, ...]


@dataclass(frozen=True)
class HostTime:
    """A CUDA call by name, or waits of one kind. Those of several threads overlap: not additive."""

    name: str
    times: Spread


@dataclass(frozen=True)
class MemoryUse:
    """Memcpy of one kind between two kinds of memory, or memset: bytes, time and bytes/s.

    `times` are those of single operations; `busy` is the time in which at least one ran, the union
    of their intervals: operations that overlap count once.
    """

    kind: str
    source: str
    target: str
    bytes: int
    times: Spread
    busy: float

    @property
    def bandwidth(self) -> float:
        """Bytes per second over `busy`; NaN where that is 0."""
        return self.bytes / self.busy if self.busy else math.nan


@dataclass(frozen=True)
class TimelineSummary:
    """A timeline, ready to be shown; tables have the most time first.

    `quantities` are what rules may name (timeline.region), none where no GPU work was recorded.
    """

    product_version: str
    schema_version: str
    created: datetime | None
    gpus: tuple[TimelineGpu, ...]
    region: Region
    kernels: Spread
    groups: tuple[KernelGroup, ...]
    ranges: tuple[RangeUse, ...]
    launches: Launches
    calls: tuple[HostTime, ...]
    memory: tuple[MemoryUse, ...]
    synchronizations: tuple[HostTime, ...]
    notes: tuple[str, ...]
    quantities: Mapping[str, float]


def summarize_timeline(timeline: Timeline) -> TimelineSummary:
    """The summary of a timeline that all views show."""
    work: list[GpuWork] = [*timeline.kernels, *timeline.memory_operations, *timeline.graphs]
    work.sort(key=lambda item: (item.start, item.end))
    kernel_times = spread(kernel.duration for kernel in timeline.kernels)
    launches = _launches(work)
    calls = _grouped(timeline.calls, lambda call: call.name)
    waits = _grouped(timeline.synchronizations, lambda wait: wait.kind)
    copies = _grouped(
        timeline.memory_operations, lambda item: (item.kind, item.source, item.target)
    )
    return TimelineSummary(
        product_version=timeline.product_version,
        schema_version=timeline.schema_version,
        created=timeline.created,
        gpus=timeline.gpus,
        region=_region(work, timeline.calls),
        kernels=kernel_times,
        groups=_groups(timeline.kernels),
        ranges=_ranges(timeline.kernels, kernel_times.total),
        launches=launches,
        calls=tuple(HostTime(name, times) for name, _, times in calls),
        memory=tuple(
            MemoryUse(*kinds, sum(item.bytes for item in items), times, union(items))
            for kinds, items, times in copies
        ),
        synchronizations=tuple(HostTime(kind, times) for kind, _, times in waits),
        notes=_notes(timeline, work, launches),
        quantities=measure(timeline, work),
    )


def spread(times: Iterable[float]) -> Spread:
    """Number, total, median and extremes of times in seconds; NaN times are left out."""
    known = sorted(time for time in times if not math.isnan(time))
    if not known:
        return Spread(0, 0.0, math.nan, math.nan, math.nan)
    middle = round(statistics.median(known), 10)
    return Spread(len(known), summed(known), middle, known[0], known[-1])


def _grouped(
    items: Iterable[_Item], key: Callable[[_Item], _Key]
) -> list[tuple[_Key, list[_Item], Spread]]:
    """Items by a key, with their durations, most time first."""
    groups: dict[_Key, list[_Item]] = defaultdict(list)
    for item in items:
        groups[key(item)].append(item)
    rows = [
        (name, members, spread(member.duration for member in members))
        for name, members in groups.items()
    ]
    return sorted(rows, key=lambda row: -row[2].total)


def _region(work: Sequence[GpuWork], calls: Sequence[ApiCall]) -> Region:
    start = min((item.start for item in (*work[:1], *calls)), default=0.0)
    end = max((item.end for item in (*work, *calls)), default=0.0)
    span = length(start, end)
    if not work:
        return Region(start, span, 0.0, span, 0.0, spread(()), ())
    gaps = gaps_between(work)
    between = spread(length(after.end, before.start) for after, before in gaps)
    lead = length(start, work[0].start)
    tail = length(max(item.end for item in work), end)
    busy = max(0.0, round(span - math.fsum((lead, between.total, tail)), 9))
    longest = nlargest(GAPS_KEPT, gaps, key=lambda gap: gap[1].start - gap[0].end)
    largest = tuple(_gap(after, before, calls) for after, before in longest)
    return Region(start, span, busy, lead, tail, between, largest)


def _gap(after: GpuWork, before: GpuWork, calls: Sequence[ApiCall]) -> Gap:
    start, end = after.end, before.start
    covered: dict[str, float] = defaultdict(float)
    reached, together = start, 0.0
    for call in calls:
        if call.start < end and call.end > start:
            covered[call.name] += min(call.end, end) - max(call.start, start)
            together += max(0.0, min(call.end, end) - max(call.start, reached))
            reached = max(reached, call.end)
    most = max(covered, key=covered.__getitem__, default="")
    share = min(1.0, together / (end - start))
    return Gap(start, length(start, end), after, before, most, share)


def _launches(work: Iterable[GpuWork]) -> Launches:
    runs = []
    free: dict[Stream, float] = {}
    for item in work:
        idle_since = free.get(item.stream, math.nan)
        free[item.stream] = max(item.end, free.get(item.stream, item.end))
        if isinstance(item, Kernel):
            call = item.launch
            run = KernelRun(
                kernel=item,
                from_call_start=length(call.start, item.start) if call else math.nan,
                after_call_return=length(call.end, item.start) if call else math.nan,
                stream_gap=length(idle_since, item.start),
                late=call is not None and call.start > idle_since,
            )
            runs.append(run)
    return Launches(
        runs=tuple(runs),
        from_call_start=spread(run.from_call_start for run in runs),
        after_call_return=spread(run.after_call_return for run in runs),
        stream_gaps=spread(run.stream_gap for run in runs),
        late=sum(run.late for run in runs),
    )


def _groups(kernels: Sequence[Kernel]) -> tuple[KernelGroup, ...]:
    """Kernels by name, grid and block, most time first."""
    groups = _grouped(kernels, lambda kernel: (kernel.name, kernel.grid, kernel.block))
    total = math.fsum(times.total for _, _, times in groups)
    return tuple(
        KernelGroup(name, members[0].label, grid, block, times, _share(times.total, total))
        for (name, grid, block), members, times in groups
    )


def _share(part: float, total: float) -> float:
    return min(1.0, part / total) if total else math.nan


def _ranges(kernels: Iterable[Kernel], total: float) -> tuple[RangeUse, ...]:
    """Kernels by the names of the ranges around their launch; empty when no range is around any."""
    uses = []
    for path, members, times in _grouped(
        kernels, lambda kernel: tuple(item.name for item in kernel.ranges)
    ):
        innermost: set[NvtxRange] = {member.ranges[-1] for member in members if member.ranges}
        host_time = summed(item.duration for item in innermost) if path else math.nan
        share = _share(times.total, total)
        uses.append(RangeUse(path, len(innermost), host_time, times, share, _groups(members)))
    return tuple(uses) if any(use.path for use in uses) else ()


def _notes(timeline: Timeline, work: Sequence[GpuWork], launches: Launches) -> tuple[str, ...]:
    kernels = len(timeline.kernels)
    devices = {(item.stream.process, item.stream.device) for item in work}
    unknown = kernels - launches.from_call_start.count
    early = sum(run.from_call_start < 0 for run in launches.runs)
    nested = sum(len(kernel.ranges) == MOST_AROUND for kernel in timeline.kernels)
    open_ranges = sum(not item.closed for item in timeline.ranges)
    notes = {
        "no kernel in the recording: record more of the program": not kernels,
        f"CUDA graphs traced as a whole: {len(timeline.graphs)}; counted as GPU work without "
        "their kernels: record with --cuda-graph-trace=node": timeline.graphs,
        f"GPU work of {len(devices)} process-GPU pairs: busy time is the time in which any of "
        "them is busy": len(devices) > 1,
        f"launch calls of {unknown} of {kernels} kernels not recorded: their launch delays and "
        "NVTX ranges are unknown": unknown,
        f"{early} of {kernels} kernels start before their launch call: host and GPU clocks are not "
        "synchronized accurately enough for short delays": early,
        f"{nested} of {kernels} kernel launches are in {MOST_AROUND} or more nested NVTX ranges: "
        f"only the innermost {MOST_AROUND} are used": nested,
        f"{open_ranges} of {len(timeline.ranges)} NVTX ranges have no end: extended to the end of "
        "the recording": open_ranges,
        f"events without valid timestamps: {timeline.untimed} ignored": timeline.untimed,
    }
    return tuple(text for text, holds in notes.items() if holds)
