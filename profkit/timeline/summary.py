"""Summary of a timeline: GPU busy time, gaps and their causes, time by kernel and call.

All times are seconds; those of the timeline itself count from its first event.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import overload

import numpy as np
import numpy.typing as npt

from profkit.timeline.events import (
    Events,
    Indices,
    LaunchConfiguration,
    Stream,
    TimelineGpu,
    Times,
)
from profkit.timeline.intervals import length, union
from profkit.timeline.lost_work import REMEDY, lost_work
from profkit.timeline.nesting import MOST_AROUND, Nesting, around
from profkit.timeline.region import measure
from profkit.timeline.times import NS, Spread, TimeGroup, grouped, spread
from profkit.timeline.work import AllWork, gaps_before, gpu_work

GAPS_KEPT = 10  # longest gaps, chosen: twice what a terminal lists

_UNKNOWN = np.iinfo(np.int64).min
_LOW = 0xFFFFFFFF  # the low half of 64 bits


@dataclass(frozen=True)
class WorkItem:
    """A piece of GPU work: a kernel by its name and its short name, "copy host to device", ..."""

    name: str
    label: str


@dataclass(frozen=True)
class Gap:
    """An interval between GPU work in which no GPU was busy.

    `after` is the previous work, `before` the next. `in_calls` is the share of the gap in which a
    host thread was in a CUDA call, `call` the call with the largest part of that, "" without any.
    """

    start: float
    duration: float
    after: WorkItem
    before: WorkItem
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

    `nvtx` are the names of the NVTX ranges around its launch call, outermost first, `call` is the
    name of that call, "" where it is unknown. `from_call_start` is the kernel's start less the
    start of the call: overhead and queueing. `after_call_return` is its start less the end of that
    call, negative where it started before the call returned. `stream_gap` is its start less the end
    of the stream's previous work (negative with programmatic dependent launch). NaN without such a
    call or work. `late`: the call began after the stream was idle, so that the GPU waited for the
    host.
    """

    name: str
    configuration: LaunchConfiguration
    stream: Stream
    start: float
    duration: float
    nvtx: tuple[str, ...]
    call: str
    from_call_start: float
    after_call_return: float
    stream_gap: float
    late: bool


@dataclass(frozen=True, eq=False)
class KernelRuns(Sequence[KernelRun]):
    """All kernels in order of start, each made when it is asked for.

    Delays are in nanoseconds, `_UNKNOWN` where there is none.
    """

    _events: Events
    _nesting: Nesting
    _from_call_start: Times
    _after_call_return: Times
    _stream_gap: Times
    _late: npt.NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self._late)

    def __iter__(self) -> Iterator[KernelRun]:
        return map(self._run, range(len(self)))

    @overload
    def __getitem__(self, index: int) -> KernelRun: ...

    @overload
    def __getitem__(self, index: slice) -> list[KernelRun]: ...

    def __getitem__(self, index: int | slice) -> KernelRun | list[KernelRun]:
        indices = range(len(self))[index]
        return self._run(indices) if isinstance(indices, int) else list(map(self._run, indices))

    def _run(self, index: int) -> KernelRun:
        events, kernels = self._events, self._events.kernels
        start, call = int(kernels.start[index]), int(kernels.call[index])
        return KernelRun(
            name=events.kernel_names[kernels.name[index]].name,
            configuration=events.configurations[kernels.configuration[index]],
            stream=events.streams[kernels.stream[index]],
            start=start / NS,
            duration=(int(kernels.end[index]) - start) / NS,
            nvtx=self._nesting.paths[self._nesting.path[index]],
            call=events.call_names[events.calls.name[call]] if call >= 0 else "",
            from_call_start=_seconds(self._from_call_start[index]),
            after_call_return=_seconds(self._after_call_return[index]),
            stream_gap=_seconds(self._stream_gap[index]),
            late=bool(self._late[index]),
        )


@dataclass(frozen=True)
class Launches:
    """All launches: the three delays of `KernelRun`, the number of late-submitted launches,
    and of those whose kernel starts before the call."""

    runs: KernelRuns
    from_call_start: Spread
    after_call_return: Spread
    stream_gaps: Spread
    late: int
    early: int


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


def summarize_timeline(events: Events) -> TimelineSummary:
    """The summary of a timeline that all views show."""
    work = gpu_work(events)
    kernels, calls, waits = events.kernels, events.calls, events.synchronizations
    durations = kernels.end - kernels.start
    nesting = around(events, kernels.call)
    launches, shapes = _launches(events, work, nesting), _shapes(events)
    return TimelineSummary(
        product_version=events.product_version,
        schema_version=events.schema_version,
        created=events.created,
        gpus=events.gpus,
        region=_region(events, work),
        kernels=spread(durations),
        groups=_groups(events, grouped(shapes, durations)),
        ranges=_ranges(events, nesting, shapes, durations),
        launches=launches,
        calls=tuple(
            HostTime(events.call_names[group.code], group.times)
            for group in grouped(calls.name, calls.end - calls.start)
        ),
        memory=_memory(events),
        synchronizations=tuple(
            HostTime(events.synchronization_kinds[group.code], group.times)
            for group in grouped(waits.kind, waits.end - waits.start)
        ),
        notes=_notes(events, work, launches, nesting),
        quantities=measure(events, work),
    )


def _seconds(time: np.int64) -> float:
    return math.nan if time == _UNKNOWN else int(time) / NS


def _region(events: Events, work: AllWork) -> Region:
    recorded = [part for part in (work, events.calls) if len(part)]
    start = min((int(part.start[0]) for part in recorded), default=0)
    end = max((int(part.end.max()) for part in recorded), default=0)
    span = (end - start) / NS
    if not len(work):
        return Region(start / NS, span, 0.0, span, 0.0, spread(work.start), ())
    gaps = gaps_before(work.start, work.end)
    between = spread(gaps[gaps > 0])
    lead, tail = (int(work.start[0]) - start) / NS, (end - int(work.end.max())) / NS
    busy = max(0.0, round(span - math.fsum((lead, between.total, tail)), 9))
    longest = np.argsort(-gaps, kind="stable")[:GAPS_KEPT]
    largest = tuple(_gap(events, work, int(index)) for index in longest if gaps[index] > 0)
    return Region(start / NS, span, busy, lead, tail, between, largest)


def _gap(events: Events, work: AllWork, index: int) -> Gap:
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
        start / NS,
        (end - start) / NS,
        _item(events, int(work.index[last])),
        _item(events, int(work.index[index])),
        events.call_names[most] if most >= 0 else "",
        min(1.0, length(union(begin, stop)) / (end - start)),
    )


def _item(events: Events, index: int) -> WorkItem:
    """The work of an index of AllWork."""
    if index < len(events.kernels):
        kernel = events.kernel_names[events.kernels.name[index]]
        return WorkItem(kernel.name, kernel.label)
    index -= len(events.kernels)
    name = "CUDA graph"
    if index < len(events.memory_operations):
        kind = events.memory_kinds[events.memory_operations.kind[index]].kind
        name = kind if kind == "memset" else f"copy {kind}"
    return WorkItem(name, name)


def _launches(events: Events, work: AllWork, nesting: Nesting) -> Launches:
    kernels = events.kernels
    free = np.full(len(work), _UNKNOWN)
    by_stream = np.argsort(work.stream, kind="stable")
    bounds = np.searchsorted(work.stream[by_stream], np.arange(len(events.streams) + 1))
    for first, last in pairwise(bounds.tolist()):
        places = by_stream[first:last]
        free[places[1:]] = np.maximum.accumulate(work.end[places])[:-1]
    is_kernel = work.index < len(kernels)
    idle_since = np.full(len(kernels), _UNKNOWN)
    idle_since[work.index[is_kernel]] = free[is_kernel]
    launched, queued = kernels.call >= 0, idle_since != _UNKNOWN
    call_start, call_end = events.calls.start, events.calls.end
    if not len(events.calls):
        call_start = call_end = np.zeros(1, np.int64)
    from_start = np.where(launched, kernels.start - call_start[kernels.call], _UNKNOWN)
    after_return = np.where(launched, kernels.start - call_end[kernels.call], _UNKNOWN)
    gap = np.where(queued, kernels.start - np.where(queued, idle_since, 0), _UNKNOWN)
    late = launched & queued & (call_start[kernels.call] > idle_since)
    return Launches(
        KernelRuns(events, nesting, from_start, after_return, gap, late),
        from_call_start=spread(from_start[launched]),
        after_call_return=spread(after_return[launched]),
        stream_gaps=spread(gap[queued]),
        late=int(late.sum()),
        early=int((from_start[launched] < 0).sum()),
    )


def _shapes(events: Events) -> Indices:
    """A number for each kernel that tells name, grid and block apart."""
    kernels, configurations = events.kernels, events.configurations
    both = kernels.name.astype(np.int64) * max(1, len(configurations)) + kernels.configuration
    different = np.unique(both)
    shapes: dict[tuple[object, ...], int] = {}
    numbers = []
    for pair in different.tolist():
        name, index = divmod(pair, len(configurations))
        shape = configurations[index]
        key = (events.kernel_names[name].name, shape.grid, shape.block)
        numbers.append(shapes.setdefault(key, len(shapes)))
    return np.array(numbers, np.int32)[np.searchsorted(different, both)]


def _groups(events: Events, groups: Sequence[TimeGroup]) -> tuple[KernelGroup, ...]:
    """Kernels by name, grid and block, most time first."""
    total = math.fsum(group.times.total for group in groups)
    rows = []
    for group in groups:
        name = events.kernel_names[events.kernels.name[group.first]]
        shape = events.configurations[events.kernels.configuration[group.first]]
        share = _share(group.times.total, total)
        rows.append(KernelGroup(name.name, name.label, shape.grid, shape.block, group.times, share))
    return tuple(rows)


def _share(part: float, total: float) -> float:
    return min(1.0, part / total) if total else math.nan


def _ranges(
    events: Events, nesting: Nesting, shapes: Indices, durations: Times
) -> tuple[RangeUse, ...]:
    """Kernels by the names of the ranges around their launch; empty when no range is around any."""
    if not np.any(nesting.innermost >= 0):
        return ()
    both = nesting.path.astype(np.int64) << 32 | shapes
    different = np.unique(both)
    of_path: dict[int, list[TimeGroup]] = defaultdict(list)
    for group in grouped(np.searchsorted(different, both).astype(np.int32), durations):
        of_path[int(different[group.code]) >> 32].append(group)
    entered = np.unique(nesting.path.astype(np.int64) << 32 | (nesting.innermost + 1))
    entered = entered[entered & _LOW != 0]
    path, innermost = entered >> 32, (entered & _LOW) - 1
    counts = np.bincount(path, minlength=len(nesting.paths))
    lengths = events.ranges.end[innermost] - events.ranges.start[innermost]
    host_times = np.bincount(path, lengths, minlength=len(nesting.paths)) / NS
    total = float(durations.sum(dtype=np.float64)) / NS
    return tuple(
        RangeUse(
            nesting.paths[use.code],
            int(counts[use.code]),
            float(host_times[use.code]) if nesting.paths[use.code] else math.nan,
            use.times,
            _share(use.times.total, total),
            _groups(events, of_path[use.code]),
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
        uses.append(MemoryUse(kind.kind, kind.source, kind.target, size, group.times, busy))
    return tuple(uses)


def _notes(events: Events, work: AllWork, launches: Launches, nesting: Nesting) -> tuple[str, ...]:
    kernels = len(events.kernels)
    streams = [events.streams[index] for index in np.unique(work.stream)]
    devices = {(stream.process, stream.device) for stream in streams}
    unknown = kernels - launches.from_call_start.count
    early = launches.early
    full = [len(path) == MOST_AROUND for path in nesting.paths]
    nested = int(np.array(full)[nesting.path].sum())
    lost = lost_work(events)
    open_ranges = int((~events.ranges.closed).sum())
    notes = {
        "no kernel in the recording: record more of the program": not kernels,
        f"{lost}, and the GPU is not known to be idle without it: {REMEDY}": lost,
        f"CUDA graphs traced as a whole: {len(events.graphs)}; counted as GPU work without "
        "their kernels: record with --cuda-graph-trace=node": events.graphs,
        f"GPU work of {len(devices)} process-GPU pairs: busy time is the time in which any of "
        "them is busy": len(devices) > 1,
        f"launch calls of {unknown} of {kernels} kernels not recorded: their launch delays and "
        "NVTX ranges are unknown": unknown,
        f"{early} of {kernels} kernels start before their launch call: host and GPU clocks are not "
        "synchronized accurately enough for short delays": early,
        f"{nested} of {kernels} kernel launches are in {MOST_AROUND} or more nested NVTX ranges: "
        f"only the innermost {MOST_AROUND} are used": nested,
        f"{open_ranges} of {len(events.ranges)} NVTX ranges have no end: extended to the end of "
        "the recording": open_ranges,
        f"events without valid timestamps: {events.untimed} ignored": events.untimed,
    }
    return tuple(text for text, holds in notes.items() if holds)
