"""What a change of a program gives end to end: its recorded steps, changed and replayed.

Each change is the best case: a wait that falls away takes no time, a copy reaches the bandwidth
that pinned copies reach, work that may overlap does. The factor is a ceiling, not an estimate.
"""

from __future__ import annotations

import copy
import math
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import accumulate

from profkit.application.replay import (
    LONG_GAP,
    TYPICAL_GAP,
    US,
    Call,
    Replay,
    Wait,
    Work,
    replay_of,
    step_time,
)
from profkit.application.steps import Steps
from profkit.timeline.events import Events

SMALL_COPY = 64 << 10
"""Bytes up to which a copy is about its latency: the CUDA driver stages pageable copies to the
device up to this size and returns ("API synchronization behavior" in the CUDA documentation)."""
PINNED_BANDWIDTH = 55e9
"""Bytes/s of pinned copies where a timeline has none: of PCIe 5.0 x16, as measured on an H200."""
_LARGE_COPY = 1 << 20  # bytes, chosen: latency is below a tenth of its time
_QUICK_CALL = 2 * US  # ns, chosen: a CUDA call that does nothing but queue

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

    def __or__(self, other: Change) -> Change:
        kernels = dict(self.kernels)
        for group, share in other.kernels.items():
            kernels[group] = min(share, kernels.get(group, 1.0))
        flags = {
            each.name: getattr(self, each.name) or getattr(other, each.name)
            for each in fields(self)
            if each.name not in {"kernels", "copies"}
        }
        return Change(kernels=kernels, copies=min(self.copies, other.copies), **flags)


@dataclass(frozen=True)
class StepTimes:
    """Seconds of a step: as recorded, replayed without a change, and after it."""

    recorded: float
    present: float
    after: float

    @property
    def ceiling(self) -> float:
        """The factor by which the step gets faster at most."""
        return max(1.0, self.present / self.after) if self.after > 0 else math.inf


def replayed(events: Events, steps: Sequence[Steps], change: Change) -> StepTimes:
    """The time of a recorded step after a change."""
    return WhatIf(events, steps).times(change)


class WhatIf:
    """Changes of the same recorded steps."""

    def __init__(self, events: Events, steps: Sequence[Steps]) -> None:
        self.replay = replay_of(events, steps)
        self.present = step_time(self.replay)
        self.names = tuple(name.name for name in events.kernel_names)
        self.sm_count = min((gpu.sm_count for gpu in events.gpus), default=0)

    def times(self, change: Change) -> StepTimes:
        """The time of a step after a change; never more than before it."""
        after = step_time(changed(self.replay, change, self.sm_count))
        return StepTimes(
            self.replay.recorded / 1e9, self.present / 1e9, min(after, self.present) / 1e9
        )

    def ceiling(self, change: Change) -> float:
        return self.times(change).ceiling


def changed(replay: Replay, change: Change, sm_count: int = 0) -> Replay:
    """The graph after a change."""
    after = replace(
        replay,
        calls=[copy.copy(call) for call in replay.calls],
        works=[copy.copy(work) for work in replay.works],
        order=list(replay.order),
        balanced=change.balanced,
        rank_of_stream=list(replay.rank_of_stream),
    )
    if change.prefetched:
        _prefetch(after)
    if change.pinned:
        _pin(after)
    if change.unsynchronized:
        _let_run_ahead(after)
    if change.preallocated:
        _preallocate(after)
    if change.overlapped:
        _overlap_communication(after)
    if change.graphs:
        _capture(after)
    if change.concurrent:
        _run_side_by_side(after, sm_count)
    for work in after.works if change.kernels or change.copies != 1 else ():
        share = change.copies if work.role == "copy" else change.kernels.get(work.group, 1.0)
        work.duration *= share
    return after


def is_host_work(call: Call) -> bool:
    """Whether the host computes for long before a call, without any call."""
    return call.gap > LONG_GAP


def _prefetch(replay: Replay) -> None:
    """Host work beside the GPU; what it reads of the GPU's results is of the step before, so that
    nothing is awaited for it."""
    last: dict[int, Call] = {}
    for call in replay.calls:
        before = last.get(call.lane)
        if is_host_work(call):
            call.gap = 0.0
            if before and is_synchronization(before, replay.works):
                before.own, before.wait = min(before.own, _QUICK_CALL), None
        last[call.lane] = call


def is_pageable(work: Work) -> bool:
    """Whether a copy takes long because of pageable memory."""
    return work.role == "copy" and work.pageable and work.size > SMALL_COPY


def _pin(replay: Replay) -> None:
    """Pageable copies on streams of their own, which do not hold others up."""
    speeds = bandwidths(replay.works)
    moved: set[int] = set()
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
        stream = own[key]
        if work.direction == "device to host":
            previous = _previous(replay, index, work.stream)
            work.awaits = [*work.awaits, *previous]
        else:
            work.awaits = []
        work.stream, work.stream_lag = stream, 0.0
    for work in replay.works:
        work.awaits = [wait for wait in work.awaits if wait.work not in moved]
    for call in replay.calls:
        if not moved.isdisjoint(call.works) or (call.wait and call.wait.work in moved):
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


def is_synchronization(call: Call, works: Sequence[Work]) -> bool:
    """Whether a call has the host wait: one that says so, or a small copy that blocks."""
    if call.role == "wait":
        return True
    return (
        call.role == "copy"
        and bool(call.wait)
        and not any(is_pageable(works[index]) for index in call.works)
    )


def _let_run_ahead(replay: Replay) -> None:
    """The host waits for nothing, and reads no small results."""
    for call in replay.calls:
        if is_synchronization(call, replay.works):
            call.own, call.wait = min(call.own, _QUICK_CALL), None
    for work in replay.works:
        if work.direction == "device to host" and work.pageable and not is_pageable(work):
            work.duration = work.stream_lag = 0.0


def _preallocate(replay: Replay) -> None:
    for call in replay.calls:
        if call.role == "allocation":
            call.own, call.wait = 0.0, None


def _overlap_communication(replay: Replay) -> None:
    """Collectives start with the first work of their step, on a stream of their own; what follows
    them in their stream awaits them."""
    own: dict[int, int] = {}
    first: dict[tuple[int, int], int] = {}
    pending: dict[int, list[int]] = defaultdict(list)
    computing = {work.stream for work in replay.works if work.role in {"kernel", "graph"}}
    for index, work in enumerate(replay.works):
        if work.role != "communication":
            if work.role in {"kernel", "graph"}:
                first.setdefault((work.rank, work.step), index)
            work.awaits = [
                *work.awaits,
                *(Wait(each, 0.0) for each in pending.pop(work.stream, [])),
            ]
            continue
        start = first.get((work.rank, work.step))
        if start is None:
            continue
        work.call_lag, work.awaits = -math.inf, [Wait(start, 0.0, for_start=True)]
        if work.stream in computing:
            pending[work.stream].append(index)
            if work.rank not in own:
                own[work.rank] = _add_stream(replay, work.rank)
            work.stream, work.stream_lag = own[work.rank], 0.0
        work.stream_lag = min(work.stream_lag, replay.gap)


def _add_stream(replay: Replay, rank: int) -> int:
    replay.streams += 1
    replay.rank_of_stream.append(rank)
    return replay.streams - 1


def _capture(replay: Replay) -> None:
    """One launch for all work between two waits of the host, or pieces of host work."""
    inside: set[int] = set()
    captured: dict[int, bool] = defaultdict(bool)
    for call in replay.calls:
        joins, captured[call.lane] = captured[call.lane], _capturable(call, replay)
        if not captured[call.lane]:
            continue
        if joins and not is_host_work(call):
            call.gap, call.own, call.wait = 0.0, 0.0, None
            inside.update(call.works)
        else:
            call.gap = call.gap if is_host_work(call) else 0.0
            call.own = min(call.own, replay.launch)
    for index in inside:
        work = replay.works[index]
        work.call_lag = -math.inf
        work.stream_lag = min(work.stream_lag, replay.gap, TYPICAL_GAP)


def _capturable(call: Call, replay: Replay) -> bool:
    if call.role in {"wait", "allocation"}:
        return False
    if call.wait and not call.wait.for_start:
        return False
    return not any(is_pageable(replay.works[index]) for index in call.works)


def _run_side_by_side(replay: Replay, sm_count: int) -> None:
    """Equal small kernels in a row, as many at once as have an SM for each block."""
    by_stream: dict[int, list[int]] = defaultdict(list)
    widths = _widths(replay.works, sm_count)
    for index, work in enumerate(replay.works):
        by_stream[work.stream].append(index)
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
    """For each kernel how many such fit beside what runs in the middle of it, an SM a block."""
    kernels = sorted((work for work in works if work.role == "kernel"), key=lambda work: work.start)
    starts = [work.start for work in kernels]
    begun = [0, *accumulate(work.blocks for work in kernels)]
    by_end = sorted(kernels, key=lambda work: work.end)
    ends = [work.end for work in by_end]
    over = [0, *accumulate(work.blocks for work in by_end)]
    widths = []
    for work in works:
        middle = work.start + work.duration / 2
        running = begun[bisect_right(starts, middle)] - over[bisect_right(ends, middle)]
        widths.append(max(1, sm_count // running) if work.role == "kernel" and running else 1)
    return widths


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
