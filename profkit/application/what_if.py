"""What a change of a program gives end to end: its recorded steps, changed and replayed.

Each change is the best case: a wait that falls away takes no time, a copy reaches the bandwidth
that pinned copies reach, work that may overlap does. The factor is no bound: the host of another
run is slower or faster, kernels of a graph get shorter, and other results may take other steps.
What bounds some changes are the kernels that they leave as they are (`most`).
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from itertools import accumulate
from operator import attrgetter

from profkit.application import kernel_changes
from profkit.application.host_work import (
    host_work,
    is_data,
    is_pageable,
    is_synchronization,
)
from profkit.application.ranks import ranks_of
from profkit.application.replay import (
    LONG_GAP,
    US,
    Call,
    Replay,
    Wait,
    Work,
    replay_of,
    step_time,
)
from profkit.application.sequences import PASSES, drop
from profkit.application.steps import Steps
from profkit.core.grouping import grouped
from profkit.timeline.cuda_calls import SMALL_COPY, TO_DEVICE
from profkit.timeline.events import Events

PINNED_BANDWIDTH = 55e9
"""Bytes/s of pinned copies where a timeline has none: of PCIe 5.0 x16, as measured on an H200."""
_LARGE_COPY = 1 << 20  # bytes, chosen: latency is below a tenth of its time
_LEAST_HOST = 0.3  # of the recorded host time, chosen: nsys slowed hosts down to 1.7x on an H200
USUAL_HOST = 0.65
"""Of the recorded host time without a profiler, where that is not known: nsys 2025.5 left 0.61 to
0.70 in programs of torch on an H200."""
_HOST_SPREAD = 0.25
"""Standard deviation of the logarithm of that share: in recorded programs it is 0.4 to 1.1."""
_STEP_SPREAD = 0.025  # the same of a step's time in two runs, chosen: half of what steps vary by
_SAME_STEPS = 1.05  # factor, chosen: what steps vary by
_OTHER_STEPS = 1.15  # factor, chosen: more than a GPU's clock makes of the same steps
_HALVINGS = 8  # chosen: the host's share is then known to 0.3%
_COMPUTING = {"kernel", "graph"}
_LEAST_CAPTURED = 8  # launches of a graph, chosen: fewer between two waits are worth no capture
_OF_A_READ = 4  # kernels, chosen: a norm, its root, a comparison, a cast
_QUICK_CALL = 2 * US  # ns, chosen: a CUDA call that does nothing but queue

_OF_CALL, _OF_WORK = (  # ten times faster than copy.copy
    attrgetter(*(field.name for field in fields(kind))) for kind in (Call, Work)
)

_SMALLEST = ("BF16", "TF32", "FP32")
_OF_KERNELS = (
    "arithmetic", "channels_last", "padded", "fused", "compiled", "updated", "attended", "batched",
    "sparse",
)  # fmt: skip

_KEEPING = {
    "kernels", "copies", "pinned", "overlapped", "prefetched", "preallocated", "updated", "sparse",
}  # fmt: skip
"""Changes that leave all kernels but some that they name: graphs shorten kernels, compilers, types,
layouts and attention put others in their place, and what is not read may not be computed."""

Group = tuple[int, int]
"""A kernel's name and its launch configuration, as indices into the tables of `Events`."""


@dataclass(frozen=True)
class Change:
    """What is changed, each in its best case.

    `kernels` are the durations that remain of groups of kernels, as shares, `copies` that of all
    copies. `graphs`: launches
    between two waits become one call. `pinned`: pageable copies are asynchronous, on own streams,
    as fast as pinned ones. `overlapped`: collectives run beside the computation before them.
    `prefetched`: long host time without a CUDA call runs in other threads. `unsynchronized`: the
    host waits for nothing. `preallocated`: no memory is allocated or freed. `concurrent`: equal
    small kernels in a row run side by side. `balanced`: all ranks take the same time.

    Those of kernels are as in `kernel_changes`: `arithmetic` is the data type of matrix products
    and convolutions ("" for that of the program); `channels_last`, `padded`, `fused` (chains),
    `compiled`, `updated` (an optimizer in one kernel), `attended` (attention in one kernel),
    `batched` and `sparse` (messages as products of sparse matrices).
    """

    kernels: Mapping[Group, float] = field(default_factory=dict)
    copies: float = 1.0
    graphs: bool = False
    pinned: bool = False
    overlapped: bool = False
    prefetched: bool = False
    unsynchronized: bool = False
    preallocated: bool = False
    concurrent: bool = False
    balanced: bool = False
    arithmetic: str = ""
    channels_last: bool = False
    padded: bool = False
    fused: bool = False
    compiled: bool = False
    updated: bool = False
    attended: bool = False
    batched: bool = False
    sparse: bool = False

    @property
    def of_kernels(self) -> bool:
        """Whether it changes what kernels do, and not only when they run."""
        return any(getattr(self, name) for name in _OF_KERNELS)

    @property
    def is_bounded(self) -> bool:
        """Whether it leaves all kernels but some that it names, with their results."""
        others = (each for each in fields(self) if each.name not in _KEEPING)
        return all(getattr(self, each.name) == each.default for each in others)

    def __or__(self, other: Change) -> Change:
        both = (self.kernels, other.kernels)
        kernels = {
            group: min(each.get(group, 1.0) for each in both) for group in {**both[0], **both[1]}
        }
        flags = {
            each.name: getattr(self, each.name) or getattr(other, each.name)
            for each in fields(self)
            if each.name not in {"kernels", "copies", "arithmetic"}
        }
        types = {self.arithmetic, other.arithmetic}
        flags["arithmetic"] = next((each for each in _SMALLEST if each in types), "")
        return Change(kernels=kernels, copies=min(self.copies, other.copies), **flags)


class WhatIf:
    """Changes of the same recorded steps, of the program on the first GPU.

    `recorded` and `present` are the seconds of a step as recorded, and replayed without a change.
    nsys slows down a host that launches. `known` are the seconds of a step without a profiler, to
    which the host's times are scaled; without them they are a usual share of the recorded ones, or
    the share `host`.
    """

    def __init__(
        self,
        events: Events,
        steps: Sequence[Steps],
        known: float | None = None,
        host: float | None = None,
    ) -> None:
        self.ranks = ranks = ranks_of(events, steps)
        self.replay = replay_of(events, ranks.steps)
        self.replay_error = step_time(self.replay) / self.replay.recorded - 1
        fastest = step_time(_with_host(self.replay, _LEAST_HOST)) if known else 0.0
        if known and fastest > known * 1e9 * _OTHER_STEPS:
            known = None  # of other steps than the recorded ones
        if host is None:
            host = _host_share(self.replay, known * 1e9) if known else USUAL_HOST
        self.replay = _with_host(self.replay, host)
        self._unchanged = step_time(self.replay)
        self.recorded, present = self.replay.recorded / 1e9, self._unchanged / 1e9
        self.present = min(present, known) if known else present
        self.step = known or ranks.first.median
        self.names = tuple(name.name for name in events.kernel_names)
        self.sm_count = min((gpu.sm_count for gpu in events.gpus), default=0)

    def after(self, change: Change) -> float:
        """Seconds of a step after a change; never more than before it."""
        after = self._after(change)
        if change.overlapped:  # it costs SMs: what is gained without it is a ceiling too
            after = min(after, self._after(replace(change, overlapped=False)))
        return min(after / 1e9, self.present)

    def _after(self, change: Change) -> float:
        after = changed(self.replay, change, self.sm_count)
        return self._unchanged if after == self.replay else step_time(after)

    def best(self, change: Change) -> float:
        """The factor by which a replayed step gets faster: of its median time, so that no less is
        left of that than of the replayed steps."""
        after = self.after(change)
        return max(1.0, min(self.present, self.step) / after) if after > 0 else math.inf

    def most(self, change: Change) -> float:
        """The factor that a bounded change does not exceed, whatever its host does: the kernels
        that it leaves still follow each other in their stream, at clocks that differ between runs.
        Those that ran beside others may be faster alone. Infinite without any."""
        after = changed(self.replay, change, self.sm_count).works
        left: dict[int, float] = defaultdict(float)
        for index in _alone(self.replay.works):
            work = self.replay.works[index]
            if work.role in _COMPUTING and after[index].duration >= work.duration:
                left[work.stream] += work.duration
        busiest = max(left.values(), default=0.0) / self.replay.steps / 1e9
        step = max(self.present, self.step) * math.exp(2 * _STEP_SPREAD)
        return step / busiest if busiest else math.inf


def _alone(works: Sequence[Work]) -> Iterator[int]:
    """The indices of work on the SMs beside which none ran on its GPU."""
    last: dict[int, tuple[int, float]] = {}  # of a device: the last that none ran beside, its end
    for index, work in enumerate(works):
        if work.role in {"copy", "fill"}:
            continue
        before, reached = last.get(work.device, (-1, -math.inf))
        if work.start >= reached and before >= 0:
            yield before
        last[work.device] = (index if work.start >= reached else -1, max(reached, work.end))
    yield from (index for index, _ in last.values() if index >= 0)


def _host_share(replay: Replay, known: float) -> float:
    """The likeliest share of its recorded times that the host takes in a step of `known` ns: that
    of this step, drawn to the usual one the more, the less a step says of it where the GPU is the
    limit (both are taken as lognormal)."""
    usual, recorded = step_time(_with_host(replay, USUAL_HOST)), step_time(replay)
    if known > _SAME_STEPS * recorded:  # nsys makes no host faster: this is of other clocks
        return USUAL_HOST
    low, high = (USUAL_HOST, 1.0) if usual <= known else (_LEAST_HOST, USUAL_HOST)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if step_time(_with_host(replay, middle)) > known:
            high = middle
        else:
            low = middle
    apart = math.log(low / USUAL_HOST)
    change = math.log(min(known, recorded) / usual) / apart if apart else 0.0
    weight = (change / _STEP_SPREAD) ** 2
    return USUAL_HOST * math.exp(apart * weight / (weight + _HOST_SPREAD**-2))


def _with_host(replay: Replay, share: float) -> Replay:
    """The graph with a share of the host's times, but of work without calls and of allocation,
    which nsys hardly slows down."""
    working = {work.index for work in host_work(replay)}
    calls = []
    for index, call in enumerate(replay.calls):
        gap = call.gap if index in working else call.gap * share
        own = call.own if call.role == "allocation" else call.own * share
        lag = call.anchor_lag * share
        calls.append(replace(call, gap=gap, own=own, anchor_lag=lag))
    return replace(replay, calls=calls, launch=replay.launch * share)


def changed(replay: Replay, change: Change, sm_count: int = 0) -> Replay:
    """The graph after a change."""
    after = replace(
        replay,
        calls=[Call(*_OF_CALL(call)) for call in replay.calls],
        works=[Work(*_OF_WORK(work)) for work in replay.works],
        order=list(replay.order),
        balanced=change.balanced,
        rank_of_stream=list(replay.rank_of_stream),
    )
    for is_asked, make in (
        (change.prefetched, _prefetch),
        (change.pinned, _pin),
        (change.unsynchronized, _let_run_ahead),
        (change.preallocated, _preallocate),
        (change.overlapped, partial(_overlap_communication, sm_count=sm_count)),
        (change.updated, kernel_changes.fuse_updates),
        (change.attended, kernel_changes.fuse_attention),
        (change.sparse, kernel_changes.multiply_sparse),
        (change.batched, kernel_changes.batch_products),
        (change.channels_last, kernel_changes.store_channels_last),
        (change.padded, kernel_changes.pad),
        (bool(change.arithmetic), partial(kernel_changes.convert, arithmetic=change.arithmetic)),
        (change.fused, kernel_changes.fuse_chains),
        (change.compiled, kernel_changes.compile_chains),
        (change.graphs, _capture),
        (change.concurrent, partial(_run_side_by_side, sm_count=sm_count)),
    ):
        if is_asked:
            make(after)
    for work in after.works if change.kernels or change.copies != 1 else ():
        share = change.copies if work.role == "copy" else change.kernels.get(work.group, 1.0)
        work.duration *= share
    return after


def _prefetch(replay: Replay) -> None:
    """Host work beside the GPU: on data in as many threads as it takes, on results in the same one,
    on those of the step before."""
    for work in host_work(replay):
        if not work.on_results:
            replay.calls[work.index].gap = 0.0
        for call in work.waits:
            call.own, call.wait = min(call.own, _QUICK_CALL), None


def _pin(replay: Replay) -> None:
    """Pageable copies on streams of their own, which do not hold others up; small results are
    awaited as before."""
    speeds = bandwidths(replay.works)
    moved, calls = set[int](), replay.calls
    issued = ((index, work) for index, work in enumerate(replay.works) if work.call >= 0)
    data = {index for index, work in issued if is_data(work, calls[work.call])}
    own: dict[tuple[int, str], int] = {}
    for index, work in enumerate(replay.works):
        if not is_pageable(work):
            continue
        moved.add(index)
        speed = speeds.get(work.direction, PINNED_BANDWIDTH)
        work.duration = min(work.duration, work.size / speed * 1e9)
        key = work.rank, work.direction
        if key not in own:
            own[key] = _add_stream(replay, work.rank)
        if work.direction == TO_DEVICE:
            work.awaits = []
        else:
            work.awaits = [*work.awaits, *_previous(replay, index, work.stream)]
        work.stream, work.stream_lag = own[key], 0.0
    for work in replay.works:
        work.awaits = [wait for wait in work.awaits if wait.work not in moved]
    copied: dict[int, bool] = {}  # by lane, whether the last call copied pageable memory to the GPU
    for call in replay.calls:
        waits_for_copy = call.role == "wait" and copied.get(call.lane, False)
        works = [replay.works[index] for index in call.works]
        copied[call.lane] = any(work.pageable and work.direction == TO_DEVICE for work in works)
        is_moved = not data.isdisjoint(call.works) or (call.wait and call.wait.work in data)
        if is_moved or waits_for_copy:
            call.own, call.wait = min(call.own, _QUICK_CALL), None


def _previous(replay: Replay, index: int, stream: int) -> list[Wait]:
    for other in range(index - 1, -1, -1):
        if replay.works[other].stream == stream:
            return [Wait(other, 0.0)]
    return []


def bandwidths(works: Iterable[Work]) -> dict[str, float]:
    """Bytes/s of large pinned copies, the fastest of each direction."""
    speeds: dict[str, float] = {}
    for work in works:
        if work.role == "copy" and not work.pageable and work.size >= _LARGE_COPY:
            speed = work.size / max(work.duration, 1.0) * 1e9
            speeds[work.direction] = max(speeds.get(work.direction, 0.0), speed)
    return speeds


def _let_run_ahead(replay: Replay) -> None:
    """The host waits for nothing, and reads no small results; a few kernels between two reads are
    of what the second reads."""
    reads = False
    between: list[int] | None = None  # launches since the last read, None before the first
    allocating = _allocating(replay)
    for index, call in enumerate(replay.calls):
        if index in allocating:
            continue
        waits = is_synchronization(call, replay.works)
        if reads and waits:
            call.gap = call.own = 0.0
        reads = any(_is_small_result(replay.works[work]) for work in call.works)
        if waits:
            call.own, call.wait = min(call.own, _QUICK_CALL), None
        if not reads:
            if between is not None and call.works:
                between.append(index)
            continue
        read = [index] if call.gap < LONG_GAP else []
        if between and len(between) <= _OF_A_READ and _passes(replay, between):
            read += between
        for place in read:
            drop(replay, place)
            for work in replay.calls[place].works:
                replay.works[work].duration = replay.works[work].stream_lag = 0.0
        between = []


def _passes(replay: Replay, calls: Sequence[int]) -> bool:
    """Whether calls launch nothing but passes over memory."""
    works = [replay.works[work] for index in calls for work in replay.calls[index].works]
    return all(
        work.role == "kernel" and replay.traits[work.group[0]].kind in PASSES for work in works
    )


def _is_small_result(work: Work) -> bool:
    """Whether a copy is of some values that the host reads."""
    return work.direction == "device to host" and work.size <= SMALL_COPY


def _preallocate(replay: Replay) -> None:
    for index in _allocating(replay):
        call = replay.calls[index]
        call.own, call.wait = 0.0, None


def _allocating(replay: Replay) -> set[int]:
    """Calls that allocate or free, and waits that only prepare that, as before a cache is
    emptied."""
    found: set[int] = set()
    following: dict[int, Call] = {}
    for index in range(len(replay.calls) - 1, -1, -1):
        call = replay.calls[index]
        after = following.get(call.lane)
        prepares = call.role == "wait" and after is not None and after.role == "allocation"
        if call.role == "allocation" or prepares:
            found.add(index)
        following[call.lane] = call
    return found


def _overlap_communication(replay: Replay, sm_count: int) -> None:
    """Collectives start with the first work of their step, on a stream of their own; what follows
    them in their stream awaits them.

    The SMs that their blocks take are missing from the computation beside them.
    """
    own: dict[int, int] = {}
    first: dict[tuple[int, int], int] = {}
    last: dict[int, Work] = {}
    pending: dict[int, list[Wait]] = defaultdict(list)
    computing = {work.stream for work in replay.works if work.role in _COMPUTING}
    for index, work in enumerate(replay.works):
        if work.role != "communication":
            if work.role in _COMPUTING:
                first.setdefault((work.rank, work.step), index)
                last[work.rank] = work
            work.awaits = [*work.awaits, *pending.pop(work.stream, [])]
            continue
        start = first.get((work.rank, work.step))
        if start is None:
            continue
        if sm_count and last[work.rank].blocks >= sm_count:
            transfer = replay.transfers[work.collective] if work.collective >= 0 else work.duration
            last[work.rank].duration += transfer * min(1.0, work.blocks / sm_count)
        work.call_lag, work.awaits = -math.inf, [Wait(start, 0.0, for_start=True)]
        if work.stream in computing:
            pending[work.stream].append(Wait(index, 0.0))
            if work.rank not in own:
                own[work.rank] = _add_stream(replay, work.rank)
            work.stream, work.stream_lag = own[work.rank], 0.0
        work.stream_lag = min(work.stream_lag, replay.gap)


def _add_stream(replay: Replay, rank: int) -> int:
    replay.rank_of_stream.append(rank)
    return len(replay.rank_of_stream) - 1


def _capture(replay: Replay) -> None:
    """One launch for all work between two waits of the host, or pieces of host work."""
    apart = {work.index for work in host_work(replay)}
    segments = list(_segments(replay, apart))
    for segment in segments:
        launching = [index for index in segment if replay.calls[index].works]
        if len(launching) < _LEAST_CAPTURED and len(segments) > 1:
            continue
        for index in segment:
            call = replay.calls[index]
            call.gap = call.gap if index in apart else 0.0
            call.own = min(call.own, replay.launch) if index == launching[0] else 0.0
            call.wait = None
        for work in (replay.works[w] for index in launching[1:] for w in replay.calls[index].works):
            work.call_lag = -math.inf
            work.stream_lag = max(work.late, min(work.stream_lag, replay.gap))


def _segments(replay: Replay, apart: Collection[int]) -> Iterator[list[int]]:
    """Calls of a thread that may become a graph, from one wait or piece of host work to the next;
    what the last step begins, the first one ends."""
    open_calls: dict[int, list[int]] = defaultdict(list)
    begun: dict[int, list[int]] = {}
    for index, call in enumerate(replay.calls):
        can = _capturable(call, replay)
        if index in apart or not can:
            segment = open_calls.pop(call.lane, [])
            if begun.setdefault(call.lane, segment) is not segment:
                yield segment
        if can:
            open_calls[call.lane].append(index)
    for lane in {*open_calls, *begun}:
        yield [*open_calls.get(lane, ()), *begun.get(lane, ())]


def _capturable(call: Call, replay: Replay) -> bool:
    if call.role in {"wait", "allocation"}:
        return False
    works = [replay.works[index] for index in call.works]
    if call.wait and not call.wait.for_start and not (works and all(map(_is_on_device, works))):
        return False
    return not any(map(is_pageable, works))


def _is_on_device(work: Work) -> bool:
    """Whether work needs nothing of the host but a few values, which a graph has as constants."""
    is_small = work.direction == TO_DEVICE and work.size <= SMALL_COPY
    return is_small or work.direction == "device to device" or work.role == "fill"


def _run_side_by_side(replay: Replay, sm_count: int) -> None:
    """Equal small kernels in a row, as many at once as have an SM for each block."""
    by_stream = grouped((work.stream, index) for index, work in enumerate(replay.works))
    widths = _widths(replay.works, sm_count)
    for stream, indices in by_stream.items():
        rank = replay.rank_of_stream[stream]
        beside: list[int] = []
        for place, run in enumerate(runs := _equal_runs(replay.works, indices)):
            width = min(len(run), *(widths[index] for index in run))
            if width < 2:
                continue
            while len(beside) < width - 1:
                beside.append(_add_stream(replay, rank))
            for number, index in enumerate(run):
                if number % width:
                    work = replay.works[index]
                    work.stream, work.stream_lag = beside[number % width - 1], 0.0
                    if number < width and place:
                        work.awaits = [*work.awaits, Wait(runs[place - 1][-1], 0.0)]
            if place + 1 < len(runs):
                following = replay.works[runs[place + 1][0]]
                following.awaits = [*following.awaits, *(Wait(each, 0.0) for each in run[-width:])]


def _equal_runs(works: Sequence[Work], indices: Sequence[int]) -> list[list[int]]:
    """Work of a stream as runs of equal kernels."""
    runs: list[list[int]] = []
    for index in indices:
        work = works[index]
        last = works[runs[-1][-1]] if runs else None
        if last and work.role == last.role == "kernel" and work.group == last.group:
            runs[-1].append(index)
        else:
            runs.append([index])
    return runs


def _widths(works: Sequence[Work], sm_count: int) -> list[int]:
    """For each kernel how many such fit beside what runs on its GPU in the middle of it, an SM a
    block."""
    by_device = grouped((work.device, work) for work in works if work.role == "kernel")
    running = {device: _running(kernels) for device, kernels in by_device.items()}
    widths = []
    for work in works:
        blocks = 0
        if work.role == "kernel":
            blocks = running[work.device](work.start + work.duration / 2)
        widths.append(max(1, sm_count // blocks) if blocks else 1)
    return widths


def _running(kernels: Sequence[Work]) -> Callable[[float], int]:
    """The blocks of the kernels that run at a time."""
    by_start = sorted(kernels, key=lambda work: work.start)
    starts = [work.start for work in by_start]
    begun = [0, *accumulate(work.blocks for work in by_start)]
    by_end = sorted(kernels, key=lambda work: work.end)
    ends = [work.end for work in by_end]
    over = [0, *accumulate(work.blocks for work in by_end)]
    return lambda time: begun[bisect_right(starts, time)] - over[bisect_right(ends, time)]


def small_kernels(works: Sequence[Work], sm_count: int) -> int:
    """Kernels after an equal one in their stream, two of which the GPU has room for."""
    last: dict[int, Work] = {}
    count = 0
    for work, width in zip(works, _widths(works, sm_count), strict=True):
        before = last.get(work.stream)
        equal = before is not None and before.role == work.role and before.group == work.group
        count += equal and width > 1
        last[work.stream] = work
    return count
