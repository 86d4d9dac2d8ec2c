"""A replay of recorded steps as a graph of what waits for what.

Host threads are sequences of calls and the host time between them. A call may wait for GPU work;
GPU work starts after its call, after the previous work of its stream and after what it waits for on
other streams; a collective ends when all ranks have arrived and its data is transferred. Each wait
has the lag that was recorded, so that the unchanged graph repeats the recorded times. The replayed
steps are repeated until the time between two repetitions is steady: the host may run ahead of the
GPU as far as the waits allow.

The idea is of Daydream (Zhu et al., USENIX ATC 2020): change a recorded dependency graph and
simulate it.
"""

import math
import re
from bisect import bisect_right, insort
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Literal

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from profkit.application.kernel_kinds import COMMUNICATION, KernelTraits, kernel_traits
from profkit.application.repetition import Mask
from profkit.application.steps import Steps
from profkit.core.errors import BadInput
from profkit.core.grouping import grouped
from profkit.core.typed_file import part
from profkit.hardware.gpus import flop_per_cycle
from profkit.timeline.cuda_calls import (
    ALLOCATION,
    SMALL_COPY,
    TO_DEVICE,
    call_kind,
    is_synchronous,
)
from profkit.timeline.events import Events, GpuWork, Times
from profkit.timeline.work import have_calls_wait

US = 1e3  # ns
TYPICAL_LATENCY = 5 * US  # ns from a launch call to its kernel on an idle stream; H200, nsys
TYPICAL_GAP = 0.45 * US
"""ns between queued kernels of one stream, H200: what 50 equal kernels in a row (targets/apps,
pipeline.cu) take without a profiler beyond their durations, and the same between those of a CUDA
graph; 1.0 µs are recorded with nsys."""
_CLOSE = 10 * US  # ns, chosen: work that starts so soon after other work ended waited for it
_SKEW = 2 * US  # ns, chosen: more than nsys's clocks differ in most of its recordings
_LATEST_COPIES = 5  # percentile, chosen: single calls may be recorded wrong
_BLOCKED = 20 * US  # ns, chosen: no launch call takes this long unless the queue is full
_MOST_STEPS = 4  # chosen: steps that differ by turns of two or four are averaged
_NEAR = 0.02  # of the median step, chosen: far less than a slow step adds to the mean of four
_MOST_EVENTS = (
    40_000  # calls and GPU work of the replayed steps, chosen: some seconds for all changes
)
_MOST_LOOPS = 12  # chosen: time to fill and to settle
_SETTLED = 1e-3  # of the period between repetitions, chosen: below what steps vary by
_APART = (
    0.05  # of the shorter call time of two threads, chosen: less overlap is one after the other
)

_WOKEN = 500 * US  # ns, chosen: JAX goes on 30 to 320 µs after the GPU's last work (H100)
_AWAITED = 0.5  # of a wait without a call, chosen: the GPU works for most of it
_RETURN = 2 * US  # ns, chosen: a synchronization that finds its work done
_UNEXPLAINED = 10 * TYPICAL_LATENCY  # chosen: launches take no longer by themselves
_LOOKED_BACK = 1000  # calls, chosen: to the thread's previous call
LONG_GAP = 100 * US
"""Of host time without a CUDA call, chosen: an operation of an eager framework takes 5 to 50 µs."""

Role = Literal["launch", "copy", "wait", "allocation", "other"]
WorkRole = Literal["kernel", "communication", "copy", "fill", "graph"]

_WAITS_FOR_EVENT = re.compile(r"StreamWaitEvent")
ASKS = re.compile(r"LaunchHostFunc|StreamAddCallback")
_RECORDS_EVENT = re.compile(r"EventRecord")


class Wait(Struct, frozen=True):
    """For the end (or the start) of work, and the time that follows; `earlier`: of the previous
    repetition."""

    work: int
    lag: float
    earlier: bool = False
    for_start: bool = False


@dataclass(slots=True)
class Call:
    """A host call: `gap` is the host time before it, `own` its time without waiting, in ns."""

    lane: int
    step: int
    start: float
    end: float
    name: str
    role: Role
    gap: float
    own: float
    wait: Wait | None = None
    anchor: int = -1
    anchor_lag: float = 0.0
    works: list[int] = field(default_factory=list)


@dataclass(slots=True)
class Work:
    """Work on a GPU: `call_lag` after the start of its call, `stream_lag` after the end of the
    stream's previous work, and after all that it `awaits`; `late` by ns that nothing recorded
    explains, as where it waits for another GPU."""

    call: int
    stream: int
    rank: int
    device: int
    step: int
    start: float
    duration: float
    role: WorkRole
    group: tuple[int, int]
    call_lag: float = -math.inf
    stream_lag: float = 0.0
    awaits: list[Wait] = field(default_factory=list)
    collective: int = -1
    size: int = 0
    pageable: bool = False
    direction: str = ""
    blocks: int = 0
    late: float = 0.0

    @property
    def end(self) -> float:
        return self.start + self.duration


@dataclass(kw_only=True)
class Graph:
    """Calls and GPU work; times in ns. `traits` are of kernels by the index of their name,
    `members` the works of each collective, `transfers` the times of their data, `latency` and `gap`
    those that launches typically have."""

    calls: list[Call] = field(default_factory=list)
    works: list[Work] = field(default_factory=list)
    traits: Sequence[KernelTraits] = ()
    lanes: int = 0
    rank_of_stream: list[int] = field(default_factory=list)
    members: list[list[int]] = field(default_factory=list)
    transfers: list[float] = field(default_factory=list)
    latency: float = TYPICAL_LATENCY
    gap: float = TYPICAL_GAP


@dataclass(kw_only=True)
class Replay(Graph):
    """Recorded steps as a graph. `order` has calls and work as they were recorded.

    `recorded` is the time of a step as recorded, `steps` their number; `repeats` is false where
    the program has no steps, and its time is from `begin`. `launch` is the time of a call that
    launches, `rates` are FLOP in a cycle of an SM (`hardware.gpus`).
    """

    order: list[tuple[int, int]]
    steps: int
    recorded: float
    repeats: bool
    begin: float
    launch: float
    ranks: int
    balanced: bool = False
    rates: Mapping[str, float] = field(default_factory=dict)


CALL, RETURN, WORK, MEET = range(4)
_TURN = {MEET: 0, RETURN: 1, CALL: 2, WORK: 3}  # of what was recorded at one time


def step_time(replay: Replay) -> float:
    """The simulated time of a step, ns: the steady time from one repetition to the next."""
    if not replay.repeats:
        return _run(replay, 1)[-1] - replay.begin
    ends = _run(replay, _MOST_LOOPS)
    return (ends[-1] - ends[-2]) / replay.steps


def _run(replay: Replay, loops: int) -> list[float]:
    """The end of all GPU work of each repetition, until the time between two is steady."""
    clock = _Clock(replay)
    finished: list[float] = []
    for _ in range(loops):
        clock.repeat()
        finished.append(_finish(replay, clock.reached))
        if len(finished) > 3:
            now, last = finished[-1] - finished[-2], finished[-2] - finished[-3]
            if abs(now - last) <= _SETTLED * now:
                break
    return finished


class _Clock:
    """The simulated times of lanes and streams, and of the work of this repetition and the last."""

    def __init__(self, replay: Replay) -> None:
        self.replay = replay
        self.lanes = [0.0] * replay.lanes
        self.reached = [-math.inf] * len(replay.rank_of_stream)
        self.begun = [0.0] * len(replay.calls)
        self.starts = [-math.inf] * len(replay.works)
        self.ends = [-math.inf] * len(replay.works)

    def repeat(self) -> None:
        """All calls and work once more, in the order in which they were recorded."""
        self.old_starts, self.old_ends = self.starts, self.ends
        self.starts = [-math.inf] * len(self.starts)
        self.ends = [-math.inf] * len(self.ends)
        steps = {CALL: self._begin, RETURN: self._end, WORK: self._work, MEET: self._meet}
        for kind, index in self.replay.order:
            steps[kind](index)

    def _begin(self, index: int) -> None:
        call = self.replay.calls[index]
        time = self.lanes[call.lane] + call.gap
        if call.anchor >= 0:
            time = max(time, self.begun[call.anchor] + call.anchor_lag)
        self.begun[index] = time
        self.lanes[call.lane] = time + call.own

    def _end(self, index: int) -> None:
        call = self.replay.calls[index]
        if call.wait:
            self.lanes[call.lane] = max(self.lanes[call.lane], self._awaited(call.wait))

    def _work(self, index: int) -> None:
        work = self.replay.works[index]
        time = max(0.0, self.reached[work.stream] + work.stream_lag)
        if work.call >= 0:
            time = max(time, self.begun[work.call] + work.call_lag)
        for wait in work.awaits:
            time = max(time, self._awaited(wait))
        self.starts[index] = time
        if work.collective < 0:
            self._finish(index, time + work.duration)

    def _meet(self, index: int) -> None:
        members = self.replay.members[index]
        last = max(self.starts[member] for member in members)
        for member in members:
            start = self.starts[member] if self.replay.balanced else last
            self._finish(member, start + self.replay.transfers[index])

    def _finish(self, index: int, end: float) -> None:
        stream = self.replay.works[index].stream
        self.ends[index] = end
        self.reached[stream] = max(self.reached[stream], end)

    def _awaited(self, wait: Wait) -> float:
        if wait.earlier:
            times = self.old_starts if wait.for_start else self.old_ends
        else:
            times = self.starts if wait.for_start else self.ends
        return times[wait.work] + wait.lag


def _finish(replay: Replay, reached: Sequence[float]) -> float:
    """The end of all work; of balanced ranks the mean of their ends."""
    if not replay.balanced:
        return max(reached)
    ends: dict[int, float] = defaultdict(float)
    for rank, end in zip(replay.rank_of_stream, reached, strict=True):
        ends[rank] = max(ends[rank], end)
    return sum(ends.values()) / len(ends)


def replay_of(events: Events, steps: Sequence[Steps]) -> Replay:
    """The graph of the most recorded steps in a row, up to four, that take about the median; those
    of several processes are the same steps, counted from the last. Raises BadInput without their
    GPU work."""
    from_end, count = _window(events, steps)
    lead = int(min(len(each) for each in steps) > from_end)
    graph = _Recorded(events)
    recorded = 0.0
    for rank, each in enumerate(steps):
        first = len(each) - from_end
        places = slice(first - lead, first + count + 1)
        bounds = each.call_bounds[places].tolist()
        if each.process not in {before.process for before in steps[:rank]}:
            graph.add_calls(each.process, bounds)
        graph.add_work(each, rank, each.bounds[places].tolist())
        span = each.bounds[first + count] - each.bounds[first]
        recorded = max(recorded, float(span) / count)
    if not graph.works:
        raise BadInput(
            f"{events.path}: no GPU work belongs to the calls of its steps, by recorded times",
            "record and export it again",
        )
    graph.link()
    recorded = max(recorded, graph.period(count))
    if lead:
        graph.trim()
    return graph.replay(count, recorded, repeats=len(steps[0]) > 1, ranks=len(steps))


def _window(events: Events, steps: Sequence[Steps]) -> tuple[int, int]:
    """The first of the replayed steps, counted from the end, and their number."""
    length = min(len(each) for each in steps)
    spans = np.array([np.diff(each.bounds[-length - 1 :]) for each in steps]).max(axis=0)
    low = min(int(each.call_bounds[-length - 1]) for each in steps)
    high = max(int(each.call_bounds[-1]) for each in steps)
    inside = sum(
        int(np.diff(np.searchsorted(table.start, [low, high]))[0])
        for table in (events.calls, events.kernels, events.memory_operations, events.graphs)
    )
    most = max(1, min(_MOST_STEPS, length - 1, _MOST_EVENTS * length // max(1, inside)))
    typical: Mask = np.logical_and.reduce([each.typical[-length:] for each in steps])
    usual = max(1.0, float(np.median(spans[typical] if typical.any() else spans)))
    windows = [
        window for count in range(most, 0, -1) for window in _windows(spans, typical, count, usual)
    ]
    near = [window for window in windows if window.is_usual]
    if near:
        longest = max(window.count for window in near)
        best = min((each for each in near if each.count == longest), key=lambda each: each.apart)
    else:
        best = min(windows, key=lambda each: (each.unusual, max(each.apart, each.before)))
    return length - best.first, best.count


class _Window(Struct, frozen=True):
    """Steps in a row: the share of them that is not typical, how far their mean time is apart from
    the median, as a share of that, and `before` the same of the steps one before: a pause between
    two steps is in the graph of both."""

    first: int
    count: int
    unusual: float
    apart: float
    before: float

    @property
    def is_usual(self) -> bool:
        return not self.unusual and max(self.apart, self.before) <= _NEAR


def _windows(spans: Times, typical: Mask, count: int, usual: float) -> Iterator[_Window]:
    """All windows of as many steps; without the first step where there are more."""
    apart = np.abs(np.convolve(spans, np.ones(count), "valid") / count / usual - 1)
    unusual = np.convolve(~typical, np.ones(count), "valid") / count
    lead = int(len(spans) > count)  # a step before them says what they await of it
    for first in range(lead, len(apart)):
        values = unusual[first], apart[first], apart[first - lead]
        yield _Window(first, count, *map(float, values))


class _Ordered:
    """Work in order of a time."""

    def __init__(self, works: Sequence[int], times: Sequence[float]) -> None:
        order = np.argsort(times, kind="stable").tolist()
        self._works = [works[place] for place in order]
        self._times = [times[place] for place in order]
        self._places = {work: place for place, work in enumerate(self._works)}

    def last(self, time: float) -> int:
        """The last work up to a time, -1 without any."""
        place = bisect_right(self._times, time) - 1
        return self._works[place] if place >= 0 else -1

    def before(self, work: int) -> int:
        place = self._places[work] - 1
        return self._works[place] if place >= 0 else -1


class _Recorded(Graph):
    """Puts calls and GPU work of the replayed steps together."""

    def __init__(self, events: Events) -> None:
        super().__init__()
        self.events = events
        self.traits = [kernel_traits(name.name) for name in events.kernel_names]
        self.call_index: dict[int, int] = {}
        self.streams: dict[int, int] = {}
        self.roles = [_role(name) for name in events.call_names]
        self.skew = max(_SKEW, gpu_ahead(events))

    def add_calls(self, process: int, bounds: Sequence[int]) -> None:
        """The calls of a process from the first of some bounds of steps to the last."""
        events = self.events
        calls = events.calls
        ours = np.array([thread.process == process for thread in events.threads], dtype=np.bool_)
        low, high = (int(place) for place in np.searchsorted(calls.start, [bounds[0], bounds[-1]]))
        threads = enumerate(calls.thread[low:high].tolist(), low)
        by_thread = grouped((thread, index) for index, thread in threads if ours[thread])
        main: list[int] = []
        for indices in self._sequences(by_thread):
            added = self._add_lane(indices, bounds)
            if main:
                self._anchor(added, main)
            main = main or added

    def _sequences(self, by_thread: Mapping[int, Sequence[int]]) -> list[list[int]]:
        """The calls of threads that take turns as one sequence; the most calls first."""
        start, end = self.events.calls.start, self.events.calls.end
        sequences: list[list[int]] = []
        for indices in sorted(by_thread.values(), key=len, reverse=True):
            for sequence in sequences:
                if _overlap(start, end, sequence, indices) <= _APART:
                    sequence += indices
                    sequence.sort()
                    break
            else:
                sequences.append(list(indices))
        return sequences

    def _add_lane(self, indices: Sequence[int], bounds: Sequence[int]) -> list[int]:
        calls = self.events.calls
        added: list[int] = []
        threads = {int(calls.thread[index]) for index in indices}
        before = (
            int(calls.end[index])
            for index in range(indices[0] - 1, max(-1, indices[0] - _LOOKED_BACK), -1)
            if int(calls.thread[index]) in threads
        )
        reached = next(before, bounds[0])
        for index in indices:
            start, end = int(calls.start[index]), int(calls.end[index])
            if start < reached and added:  # a driver call within a runtime call
                outer = self.calls[added[-1]]
                self.call_index[index] = added[-1]
                outer.own += max(0, end - reached)
                outer.end = reached = max(end, reached)
                continue
            name = int(calls.name[index])
            self.call_index[index] = len(self.calls)
            added.append(len(self.calls))
            self.calls.append(
                Call(
                    lane=self.lanes,
                    step=bisect_right(bounds, start) - 1,
                    start=start,
                    end=end,
                    name=self.events.call_names[name],
                    role=self.roles[name],
                    gap=float(max(0, start - reached)),
                    own=float(end - start),
                )
            )
            reached = end
        self.lanes += 1
        return added

    def _anchor(self, added: Sequence[int], main: Sequence[int]) -> None:
        """A thread beside the main one that calls nothing for long waits for that one."""
        starts = [self.calls[index].start for index in main]
        for index in added:
            call = self.calls[index]
            place = bisect_right(starts, call.start) - 1
            if call.gap > LONG_GAP and place >= 0:
                call.gap, call.anchor = 0.0, main[place]
                call.anchor_lag = call.start - starts[place]

    def add_work(self, steps: Steps, rank: int, bounds: Sequence[int]) -> None:
        """The GPU work of a process that its calls submitted; where the call is unknown, what ran
        within `bounds`."""
        events, low, high = self.events, bounds[0], bounds[-1]
        names = [
            "communication" if traits.kind == COMMUNICATION else "kernel" for traits in self.traits
        ]
        owner = steps.process, steps.device
        ours = np.array([(stream.process, stream.device) == owner for stream in events.streams])
        tables: tuple[tuple[GpuWork, WorkRole], ...] = (
            (events.kernels, "kernel"),
            (events.memory_operations, "copy"),
            (events.graphs, "graph"),
        )
        submitted = np.zeros(len(events.calls) + 1, dtype=np.bool_)
        submitted[list(self.call_index)] = True
        for table, role in tables:
            if not len(table):
                continue
            unknown = (table.call < 0) & (table.start >= low) & (table.start < high)
            inside = ours[table.stream] & (submitted[table.call] | unknown)
            for index in np.flatnonzero(inside).tolist():
                call = self.call_index.get(int(table.call[index]), -1)
                start, end = int(table.start[index]), int(table.end[index])
                work = Work(
                    call=call,
                    stream=self._stream(int(table.stream[index]), rank),
                    rank=rank,
                    device=steps.device,
                    step=self.calls[call].step if call >= 0 else bisect_right(bounds, start) - 1,
                    start=start,
                    duration=float(end - start),
                    role=role,
                    group=(-1, -1),
                )
                if table is events.kernels:
                    name = int(events.kernels.name[index])
                    work.role = names[name]  # type: ignore[assignment]
                    work.group = name, int(events.kernels.configuration[index])
                    work.blocks = math.prod(events.configurations[work.group[1]].grid)
                elif table is events.memory_operations:
                    kind = events.memory_kinds[int(events.memory_operations.kind[index])]
                    work.role = "fill" if kind.kind == "memset" else "copy"
                    work.size = int(events.memory_operations.size[index])
                    work.pageable = "pageable" in {kind.source.lower(), kind.target.lower()}
                    work.direction = kind.kind
                self.works.append(work)

    def _stream(self, stream: int, rank: int) -> int:
        if stream not in self.streams:
            self.streams[stream] = len(self.streams)
            self.rank_of_stream.append(rank)
        return self.streams[stream]

    def link(self) -> None:
        """What calls and work wait for, with the lags that were recorded."""
        self.works.sort(key=lambda work: (work.start, work.end))
        for index, work in enumerate(self.works):
            if work.call >= 0:
                self.calls[work.call].works.append(index)
                call = self.calls[work.call]
                call.role = "copy" if work.role in {"copy", "fill"} else "launch"
        previous = self._previous()
        self._measure(previous)
        self._link_collectives()
        self._link_work(previous)
        for rank in sorted({work.rank for work in self.works}):
            self._link_calls(rank)

    def _previous(self) -> list[float]:
        """The end of the previous work of each work's stream, -inf for the first."""
        last = self._before()
        previous = []
        for work in self.works:
            previous.append(last.get(work.stream, -math.inf))
            last[work.stream] = max(last.get(work.stream, -math.inf), work.end)
        return previous

    def _before(self) -> dict[int, float]:
        """The end of the last work of each stream before the replayed steps."""
        first: dict[int, float] = {}
        for work in self.works:
            first.setdefault(work.stream, work.start)
        last: dict[int, float] = {}
        for recorded, stream in self.streams.items():
            for table in (self.events.kernels, self.events.memory_operations, self.events.graphs):
                high = int(np.searchsorted(table.start, first[stream]))
                inside = table.stream[:high] == recorded
                if inside.any():
                    end = float(table.end[:high][inside].max())
                    last[stream] = max(last.get(stream, -math.inf), end)
        return last

    def _measure(self, previous: Sequence[float]) -> None:
        """The latency of launches on idle streams, and the gap between queued work."""
        latencies, gaps = [], []
        for work, end in zip(self.works, previous, strict=True):
            if work.call < 0 or work.role in {"copy", "communication"}:
                continue
            call = self.calls[work.call]
            if -math.inf < end < call.start:
                latencies.append(work.start - call.start)
            elif end > call.end + TYPICAL_LATENCY and work.start >= end:
                gaps.append(work.start - end)
        if latencies:
            self.latency = max(0.0, float(np.percentile(latencies, 25)))
        if gaps:
            self.gap = min(float(np.percentile(gaps, 25)), TYPICAL_GAP)

    def _link_collectives(self) -> None:
        """Work of several ranks that ends together: the same in order, of one name."""
        by_rank: dict[int, list[int]] = defaultdict(list)
        for index, work in enumerate(self.works):
            if work.role == "communication":
                by_rank[work.rank].append(index)
        ranks = list(by_rank.values())
        if len(ranks) < 2 or len({len(each) for each in ranks}) > 1:
            return
        for members in zip(*ranks, strict=True):
            last = max(self.works[member].start for member in members)
            first_end = min(self.works[member].end for member in members)
            if first_end <= last or len({self.works[member].group[0] for member in members}) > 1:
                continue
            for member in members:
                self.works[member].collective = len(self.members)
            self.members.append(list(members))
            self.transfers.append(max(self.works[member].end for member in members) - last)

    def _link_work(self, previous: Sequence[float]) -> None:
        """The lags of each work after its call, its stream's previous work and what it awaits.

        Where it started later than they explain, it waited for work of another stream that ended
        just before, or else the last of them has the lag that was recorded.
        """
        order: dict[int, list[tuple[float, int]]] = defaultdict(list)  # of a rank, by end
        awaited = self._awaited_by_events()
        for index, (work, end) in enumerate(zip(self.works, previous, strict=True)):
            called = self.calls[work.call].start if work.call >= 0 else -math.inf
            work.call_lag = min(self.latency, work.start - called)
            work.stream_lag = min(self.gap, work.start - end) if end > -math.inf else 0.0
            for other in awaited.get(index, ()):
                lag = work.start - self.works[other].end
                if lag >= -self.skew:
                    work.awaits.append(Wait(other, min(lag, self.gap)))
            times = [self.works[wait.work].end for wait in work.awaits]
            lags = [wait.lag for wait in work.awaits]
            known = max(
                called + work.call_lag,
                end + work.stream_lag,
                *(time + lag for time, lag in zip(times, lags, strict=True)),
            )
            if work.start > known + self.skew:
                place = bisect_right(order[work.rank], (work.start, len(self.works))) - 1
                ended, other = order[work.rank][place] if place >= 0 else (-math.inf, -1)
                is_near = work.start - ended <= _CLOSE and self.works[other].stream != work.stream
                if is_near and ended > max(called, end, *times):
                    work.awaits.append(Wait(other, work.start - ended))
                    known = work.start
            if work.start > known:
                self._explain(work, called, end)
            if work.start > known + _UNEXPLAINED:
                work.late = work.start - max(called, end, *times)
            insort(order[work.rank], (work.end, index))

    def _explain(self, work: Work, called: float, end: float) -> None:
        """Let a work start as late as recorded after what was the last before it."""
        last = max(work.awaits, key=lambda wait: self.works[wait.work].end, default=None)
        awaited = self.works[last.work].end if last else -math.inf
        if last and awaited > max(called, end):
            work.awaits.remove(last)
            work.awaits.append(Wait(last.work, work.start - awaited))
        elif called + work.call_lag >= end + work.stream_lag:
            work.call_lag = work.start - called
        elif end > -math.inf:
            work.stream_lag = work.start - end

    def _awaited_by_events(self) -> dict[int, list[int]]:
        """By the index of a work those of another stream that it awaits: host calls recorded an
        event after them, and let the stream wait for one before it."""
        awaited: dict[int, list[int]] = defaultdict(list)
        last: dict[int, dict[int, int]] = defaultdict(dict)  # of a lane: by stream the last work
        marked: dict[int, dict[int, int]] = defaultdict(dict)
        waiting: dict[int, dict[int, int]] = {}
        for call in self.calls:
            if _RECORDS_EVENT.search(call.name):
                marked[call.lane] = dict(last[call.lane])
            elif _WAITS_FOR_EVENT.search(call.name):
                waiting[call.lane] = dict(marked[call.lane])
            elif call.works and call.lane in waiting:
                work = call.works[0]
                stream = self.works[work].stream
                others = {key: each for key, each in waiting[call.lane].items() if key != stream}
                if others:
                    awaited[work].append(max(others.values(), key=lambda each: each))
                    del waiting[call.lane]
            for work in call.works:
                last[call.lane][self.works[work].stream] = work
        return awaited

    def _link_calls(self, rank: int) -> None:
        """What the calls that submit work to a rank wait for."""
        works = [index for index, work in enumerate(self.works) if work.rank == rank]
        ended = _Ordered(works, [self.works[index].end for index in works])
        started = _Ordered(works, [self.works[index].start for index in works])
        submitting = {self.works[index].call for index in works} - {-1}
        lanes = {self.calls[call].lane for call in submitting}
        usual = self._usual()
        for call in self.calls:
            is_long = call.end - call.start > max(_BLOCKED, 8 * usual[call.name])
            if call.lane not in lanes:
                continue
            if call.role == "launch" and is_long:
                self._link_blocked(call, started, usual[call.name])
            elif call.role == "copy":
                own = [work for work in call.works if self._is_awaited(work, call)]
                if own:
                    self._link_wait(call, own[-1], _RETURN)
                elif is_long and not self.works[call.works[0]].pageable:
                    self._link_blocked(call, started, usual[call.name])
            elif call.role == "wait":
                self._link_wait(call, self._ended_before(call, ended), _RETURN)
            elif call.role != "launch" and is_long:
                last = self._ended_before(call, ended)
                waited = last >= 0 and self.works[last].end > call.start
                if waited and call.end - self.works[last].end < _BLOCKED:
                    self._link_wait(call, last, usual[call.name])
        self._link_silent(lanes, ended)

    def _link_silent(self, lanes: set[int], ended: _Ordered) -> None:
        """Waits without a call, such as of XLA: a thread does nothing for long after it asked for a
        callback, until the GPU has nothing left to do."""
        previous: dict[int, Call] = {}
        for call in self.calls:
            before, previous[call.lane] = previous.get(call.lane), call
            if before is None or call.gap <= LONG_GAP or not ASKS.search(before.name):
                continue
            last = ended.last(call.start)
            end = self.works[last].end if last >= 0 else -math.inf
            is_waiting = call.lane in lanes and is_silent(before.end, end, call.start)
            if is_waiting and self._busy(ended, last, before.end) > _AWAITED * (end - before.end):
                before.wait, before.end, call.gap = Wait(last, 0.0), end, call.start - end
                before.role = "wait"

    def _busy(self, ended: _Ordered, last: int, since: float) -> float:
        """Time of the work that ended since a time, up to the last."""
        total = 0.0
        while last >= 0 and self.works[last].end > since:
            total += self.works[last].end - max(self.works[last].start, since)
            last = ended.before(last)
        return total

    def _is_awaited(self, index: int, call: Call) -> bool:
        """Whether a call waited for its copy: one on the GPU alone returns at once, and one to the
        GPU as soon as the rest of it is staged."""
        work = self.works[index]
        to_device = work.direction == TO_DEVICE
        waits = have_calls_wait(
            is_synchronous(call.name), work.pageable, to_device, work.size > SMALL_COPY
        )
        overlaps = work.start <= call.end + self.skew
        return "host" in work.direction and bool(waits) and overlaps

    def _link_blocked(self, call: Call, started: _Ordered, usual: float) -> None:
        """A launch that waited for room in the queue: until earlier work started.

        Where that is not among the replayed work, the GPU is far behind, and the wait is left out.
        """
        work, first = started.last(call.end), self.works[call.works[0]]
        if 0 <= work < call.works[0] and call.end - self.works[work].start < _BLOCKED:
            call.wait = Wait(work, call.end - self.works[work].start, for_start=True)
            call.own = usual
        elif first.start > call.end + _BLOCKED:
            call.own = usual

    def _link_wait(self, call: Call, work: int, own: float) -> None:
        if work < 0:
            return
        duration, lag = call.end - call.start, call.end - self.works[work].end
        if lag >= duration:  # the work had ended before
            call.wait = Wait(work, min(lag, self.latency))
        else:
            call.wait = Wait(work, lag)
            call.own = min(duration, own)

    def _ended_before(self, call: Call, ended: _Ordered) -> int:
        """The last work that ended before a call did, and was submitted before that."""
        work = ended.last(call.end + self.skew)
        while work >= 0 and self._submitted(work) >= call.end:
            work = ended.before(work)
        return work

    def _submitted(self, work: int) -> float:
        call = self.works[work].call
        return self.calls[call].start if call >= 0 else self.works[work].start

    def _usual(self) -> dict[str, float]:
        """The time of a call by its name: the lower quartile, since some wait."""
        times = grouped((call.name, call.end - call.start) for call in self.calls)
        return {name: float(np.percentile(each, 25)) for name, each in times.items()}

    def period(self, count: int) -> float:
        """The longest time between ends of a stream's work of two steps, after a step before them.

        A stream that runs ahead of others, such as one of copies, is none to measure by.
        """
        ends: dict[tuple[int, int], float] = {}
        for work in self.works:
            key = work.stream, work.step
            ends[key] = max(ends.get(key, 0.0), work.end)
        return max(
            (
                (ends[stream, count] - ends[stream, 0]) / count
                for stream, step in ends
                if step == 0 and (stream, count) in ends
            ),
            default=0.0,
        )

    def trim(self) -> None:
        """Leave the first step out: what others await of it is of the previous repetition."""
        places = {index: place for place, index in enumerate(self._after(self.calls))}
        works = self._after(self.works)
        renumbered = {index: place for place, index in enumerate(works)}
        by_stream: dict[tuple[int, bool], list[int]] = defaultdict(list)
        last = max((work.step for work in self.works), default=0)
        for index, work in enumerate(self.works):
            if work.step in {0, last}:
                by_stream[work.stream, work.step == 0].append(index)

        def moved(wait: Wait) -> Wait | None:
            if wait.work in renumbered:
                return replace(wait, work=renumbered[wait.work])
            stream = self.works[wait.work].stream
            first, same = by_stream[stream, True], by_stream[stream, False]
            place = first.index(wait.work) - len(first)
            if -place > len(same):
                return None
            return replace(wait, work=renumbered[same[place]], earlier=True)

        for call in self.calls:
            call.wait = moved(call.wait) if call.wait and call.step else None
            call.anchor = places.get(call.anchor, -1)
            call.works = [renumbered[work] for work in call.works if work in renumbered]
            call.step -= 1
        for index in works:
            work = self.works[index]
            work.awaits = [wait for each in work.awaits if (wait := moved(each))]
            work.call = places.get(work.call, -1)
            work.step -= 1
        self._trim_members(works, renumbered)
        self.calls = [self.calls[index] for index in places]
        self.works = [self.works[index] for index in works]

    def _trim_members(self, works: Sequence[int], renumbered: Mapping[int, int]) -> None:
        """Collectives without those that a rank has in the first step: its times may be damaged."""
        for index in works:
            self.works[index].collective = -1
        remaining = [
            place
            for place, each in enumerate(self.members)
            if all(index in renumbered for index in each)
        ]
        self.members = [[renumbered[index] for index in self.members[place]] for place in remaining]
        self.transfers = [self.transfers[place] for place in remaining]
        for place, members in enumerate(self.members):
            for member in members:
                self.works[works[member]].collective = place

    @staticmethod
    def _after(items: Sequence[Call | Work]) -> list[int]:
        """The indices of what is not of the first step."""
        return [index for index, item in enumerate(items) if item.step > 0]

    def _begin(self) -> float:
        """The start of the first work, on a clock that starts before the first call."""
        if not self.works or not self.calls:
            return 0.0
        first = min(self.calls, key=lambda call: call.start)
        return max(0.0, self.works[0].start - first.start + first.gap)

    def replay(self, steps: int, recorded: float, *, repeats: bool, ranks: int) -> Replay:
        """The graph in the order in which it was recorded."""
        order: list[tuple[float, int, int]] = []
        for index, call in enumerate(self.calls):
            order.append((call.start, CALL, index))
            if call.wait:
                order.append((call.end, RETURN, index))
        for index, work in enumerate(self.works):
            called = self.calls[work.call].start if work.call >= 0 else -math.inf
            order.append((max(work.start, called), WORK, index))
        for index, members in enumerate(self.members):
            order.append((min(self.works[member].end for member in members), MEET, index))
        order.sort(key=lambda item: (item[0], _TURN[item[1]]))
        launches = [call.own for call in self.calls if call.role == "launch"]
        return Replay(
            **part(self, *Graph.__dataclass_fields__),
            order=[(kind, index) for _, kind, index in order],
            steps=steps,
            recorded=recorded,
            repeats=repeats,
            begin=self._begin(),
            launch=median(launches) if launches else TYPICAL_LATENCY,
            ranks=ranks,
            rates=flop_per_cycle(self.events.gpus[0].cc) if self.events.gpus else {},
        )


def gpu_ahead(events: Events) -> float:
    """How far the GPU's clock is ahead of the host's, ns, by copies to pageable memory, which end
    before their calls do; what is less than a call takes to return is not seen."""
    copies, calls = events.memory_operations, events.calls
    kinds = [
        each.kind == "device to host" and "pageable" in each.words for each in events.memory_kinds
    ]
    rows = np.flatnonzero(np.array([*kinds, False])[copies.kind] & (copies.call >= 0))
    late = copies.end[rows] - calls.end[copies.call[rows]]
    return float(np.percentile(late, 100 - _LATEST_COPIES)) if len(rows) else -math.inf


def is_silent(asked: float, end: float, start: float) -> bool:
    """Whether a thread that asked for a callback, and calls again at `start`, waited meanwhile for
    the GPU's last work: that ended well after it asked, and not long before it went on."""
    return end > asked + _BLOCKED and start - end < _WOKEN


def _role(name: str) -> Role:
    if "Synchronize" in name:  # queries do not wait
        return "wait"
    is_allocation = call_kind(name) == ALLOCATION or "HostRegister" in name
    return "allocation" if is_allocation else "other"


def _overlap(start: Times, end: Times, first: Sequence[int], second: Sequence[int]) -> float:
    """The share of the time of the second calls in which any of the first ran."""
    starts, ends = start[first], end[first]
    total = together = 0.0
    for index in second:
        place = int(np.searchsorted(starts, start[index], "right")) - 1
        total += float(end[index] - start[index])
        for other in range(max(0, place), len(starts)):
            if starts[other] >= end[index]:
                break
            shared = min(ends[other], end[index]) - max(starts[other], start[index])
            together += max(0.0, float(shared))
    return together / total if total else 0.0
