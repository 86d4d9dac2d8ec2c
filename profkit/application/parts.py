"""What the wall time of a step is made of: parts that sum to it exactly.

Each instant belongs to one part: to kernels while any computes, else to communication, else to
copies, else to fills, else to an idle gap of the GPU. A gap's time is divided by what the threads
that submit work did meanwhile; where nsys lost GPU work, it is not known to be idle. Where several
kernels run at once, each has an equal share.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TypeVar

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from profkit.application.host_work import HostCalls
from profkit.application.kernel_kinds import (
    COMMUNICATION,
    GRAPH,
    collective,
    kernel_traits,
)
from profkit.application.nccl_calls import latest_starts
from profkit.application.replay import ASKS, LONG_GAP, is_silent
from profkit.application.steps import Steps
from profkit.core.yaml_files import shipped_yaml
from profkit.timeline import cuda_calls, intervals
from profkit.timeline.cuda_calls import SMALL_COPY, TO_DEVICE, call_kind
from profkit.timeline.events import Events, Times
from profkit.timeline.intervals import NOTHING, Cover
from profkit.timeline.lost_work import lost_work
from profkit.timeline.work import KERNEL, MEMORY, Mask, Work, have_calls_wait, work_of

T = TypeVar("T")
Amounts = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

KERNELS, COPIES, FILLS, GAPS = "kernels", "copies", "memset", "idle"
ON_GPU = (KERNELS, COMMUNICATION, COPIES, FILLS)
"""Groups of parts in which the GPU works."""
UNRECORDED = "not recorded"

LAUNCH_BOUND = "launch-bound"
SYNCHRONIZATION = "after a synchronization"
ALLOCATION = "memory allocation"
COPY_CALLS = "in copy calls"
OTHER_CALLS = "other CUDA calls"
HOST_CODE = "host code without CUDA calls"
QUEUED = "between queued work"
RANK_WAIT = "waiting for another rank"
UNKNOWN = "unknown cause"

MEANINGS: Mapping[str, str] = shipped_yaml("profkit.application", "idle_causes.yaml")

LATENCY = 10_000
"""ns from the start of a launch call to that of its kernel on an idle GPU, where a timeline doesn't
tell: 4 to 8 µs in timelines of an H200."""
LATENCY_MOST = 50_000  # ns; chosen: what takes longer waits for something else

MOST_WORK = 250_000  # pieces of work that are analyzed at once; chosen: 100 MB

_RETURN = 1_000  # ns; chosen: a wait may end as the GPU does, by clocks that differ a little
_CAUSES = {
    cuda_calls.ALLOCATION: ALLOCATION,
    cuda_calls.LAUNCH: LAUNCH_BOUND,
    cuda_calls.COPY: COPY_CALLS,
    cuda_calls.SYNCHRONIZATION: SYNCHRONIZATION,
    cuda_calls.OTHER: OTHER_CALLS,
}


class Part(Struct, frozen=True, eq=False):
    """A part of each step: its group, its name, ns by step, and what runs hidden behind others.

    `hidden` is the time in which it ran while the time belonged to another part; `count` is how
    many there are in all steps, `shared` how many of them another part of the group counts too.
    """

    group: str
    name: str
    times: Amounts
    hidden: Amounts
    count: int
    shared: int = 0


class StepParts(Struct, frozen=True, eq=False, dict=True):
    """The parts of the typical steps of a process; `wall` is the time of each step in ns."""

    steps: Steps
    wall: Times
    parts: tuple[Part, ...]
    kernel_time: Amounts
    """ns on the critical path in these steps by row of `Events.kernels`; 0 for collectives."""

    @cached_property
    def total(self) -> float:
        return float(self.wall.sum())

    def share(self, part: Part) -> float:
        """Of the time of all steps."""
        return float(part.times.sum()) / self.total

    def group(self, name: str) -> tuple[Part, ...]:
        """The parts of a group, most time first."""
        parts = [part for part in self.parts if part.group == name]
        return tuple(sorted(parts, key=lambda part: -part.times.sum()))


class _Typical(Struct, frozen=True, eq=False):
    """The typical steps: sums of what happens in them, by step."""

    bounds: Times
    typical: Mask

    @property
    def wall(self) -> Times:
        return np.diff(self.bounds)[self.typical]

    def lengths(self, cover: Cover) -> Amounts:
        """How much of a cover is in each step."""
        lengths = np.diff(intervals.covered(cover, self.bounds))[self.typical]
        return lengths.astype(np.float64)

    def sums(self, step: Integers, group: Integers, amounts: Amounts, groups: int) -> Amounts:
        """Sums by group and step."""
        count = len(self.typical)
        cells = np.bincount(group * count + step, weights=amounts, minlength=groups * count)
        return np.asarray(cells.reshape(groups, count)[:, self.typical], dtype=np.float64)

    def count(self, times: Times) -> int:
        """How many of these times are in a step."""
        step = np.searchsorted(self.bounds, times, side="right") - 1
        inside = (step >= 0) & (step < len(self.typical))
        return int(self.typical[step[inside]].sum())


def step_parts(events: Events, steps: Steps) -> StepParts:
    """The parts of the steps of a process."""
    work = work_of(events, steps.process, steps.device)
    program = _Program(
        events=events,
        work=work,
        work_reach=np.maximum.accumulate(work.end),
        calls_reach=np.maximum.accumulate(events.calls.end),
        threads=_submitting(events, work),
        latest=latest_starts(events),
        is_whole=not lost_work(events, steps.process),
    )
    kernel_time = np.zeros(len(events.kernels))
    chunks = [
        (len(typical.wall), _parts_of(program, typical, kernel_time))
        for typical in _chunks(work, steps)
    ]
    names = dict.fromkeys((part.group, part.name) for _, parts in chunks for part in parts)
    parts = tuple(_joined(group, name, chunks) for group, name in names)
    return StepParts(steps, steps.wall, parts, kernel_time)


def _joined(group: str, name: str, chunks: Sequence[tuple[int, Sequence[Part]]]) -> Part:
    """A part over all steps; a chunk without it has zeros."""
    rows = []
    for size, parts in chunks:
        nothing = Part(group, name, np.zeros(size), np.zeros(size), 0)
        own = (part for part in parts if (part.group, part.name) == (group, name))
        rows.append(next(own, nothing))
    times, hidden = ([getattr(row, column) for row in rows] for column in ("times", "hidden"))
    counts = sum(row.count for row in rows), sum(row.shared for row in rows)
    return Part(group, name, np.concatenate(times), np.concatenate(hidden), *counts)


class _Program(Struct, frozen=True, eq=False):
    """A process's work; the reaches are the latest end so far, by work and by call."""

    events: Events
    work: Work
    work_reach: Times
    calls_reach: Times
    threads: Mask
    latest: Times | None
    is_whole: bool

    def work_within(self, bounds: Times) -> Work:
        """Work that runs between the first and the last bound, and what begins at the last."""
        return self.work.chosen(_overlapping(self.work.start, self.work_reach, bounds))


def _overlapping(start: Times, reach: Times, bounds: Times) -> slice:
    first = np.searchsorted(reach, bounds[0], side="right")
    return slice(int(first), int(np.searchsorted(start, bounds[-1], side="right")))


def _submitting(events: Events, work: Work) -> Mask:
    """Threads that submit this work; the last element stands for unknown ones."""
    own = np.zeros(len(events.threads) + 1, dtype=np.bool_)
    own[events.calls.thread[work.call[work.call >= 0]]] = True
    own[-1] = False
    return own


def _chunks(work: Work, steps: Steps) -> Iterator[_Typical]:
    """The steps, so many at a time that their work takes little memory."""
    first = np.searchsorted(work.start, steps.bounds)
    low = 0
    while low < len(steps):
        high = int(np.searchsorted(first, first[low] + MOST_WORK, side="right")) - 1
        high = min(max(high, low + 1), len(steps))
        yield _Typical(steps.bounds[low : high + 1], steps.typical[low:high])
        low = high


def _parts_of(program: _Program, typical: _Typical, kernel_time: Amounts) -> list[Part]:
    events, work = program.events, program.work_within(typical.bounds)
    groups = [kernel_traits(item.name).group for item in events.kernel_names]
    names = tuple(dict.fromkeys((*groups, COMMUNICATION, GRAPH)))
    kind = _kinds(events, work, groups, names)
    talking = kind == names.index(COMMUNICATION)
    computing = (work.table != MEMORY) & ~talking
    own, parts = _kernel_parts(work, computing, kind, names, typical)
    kernels = work.table == KERNEL
    kernel_time[work.row[kernels]] += own[kernels]
    taken = intervals.union(work.start[computing], work.end[computing])
    for group, named in (
        (COMMUNICATION, _communication(program, work, talking)),
        (COPIES, _memory(events, work, fills=False)),
        (FILLS, _memory(events, work, fills=True)),
    ):
        for name, cover, starts in named:
            exposed = typical.lengths(intervals.without(cover, taken))
            hidden = typical.lengths(cover) - exposed
            parts.append(Part(group, name, exposed, hidden, typical.count(starts)))
            taken = intervals.either(taken, cover)
    if program.is_whole:
        parts += _gap_parts(program, work, taken, typical)
    else:
        parts.append(_unrecorded(typical, taken))
    return [part for part in parts if part.times.any() or part.hidden.any()]


def _kinds(events: Events, work: Work, groups: Sequence[str], names: Sequence[str]) -> Integers:
    """The group of each work as a place in `names`; -1 for copies and fills."""
    numbers = {name: number for number, name in enumerate(names)}
    table = np.array([numbers[group] for group in groups], np.int64)
    kinds = np.where(work.table == MEMORY, -1, numbers[GRAPH])
    kernels = work.table == KERNEL
    if len(table):
        kinds[kernels] = table[events.kernels.name[work.row[kernels]]]
    return kinds


def _kernel_parts(
    work: Work, computing: Mask, kind: Integers, names: Sequence[str], typical: _Typical
) -> tuple[Amounts, list[Part]]:
    """Each kernel's time in typical steps, and the parts by group.

    Where k kernels run at once, each has 1/k of the time.
    """
    rows = np.flatnonzero(computing)
    start, end = work.start[rows], work.end[rows]
    piece, step, low, high = intervals.pieces(start, end, typical.bounds)
    if len(rows) and (start[1:] < np.maximum.accumulate(end)[:-1]).any():
        times, spent = _divided_clock(start, end)
        amounts = np.interp(high, times, spent) - np.interp(low, times, spent)
    else:
        amounts = (high - low).astype(np.float64)
    kinds = kind[rows][piece]
    inside = typical.typical[step]
    own = np.bincount(piece, weights=amounts * inside, minlength=len(rows))
    kernel_time = np.zeros(len(work))
    kernel_time[rows] = own
    lengths = typical.sums(step, kinds, (high - low).astype(np.float64), len(names))
    sums = typical.sums(step, kinds, amounts, len(names))
    counts = [typical.count(start[kind[rows] == number]) for number in range(len(names))]
    parts = [
        Part(KERNELS, name, sums[number], lengths[number] - sums[number], counts[number])
        for number, name in enumerate(names)
        if lengths[number].any()
    ]
    return kernel_time, parts


def _divided_clock(start: Times, end: Times) -> tuple[Times, Amounts]:
    """Times, and what a kernel that ran all along would have got of the time until each."""
    times = np.concatenate([start, end])
    order = np.argsort(times, kind="stable")
    times = times[order]
    change = np.where(order < len(start), 1, -1)
    active = np.maximum(np.cumsum(change)[:-1], 1)
    return times, np.append(0.0, np.cumsum(np.diff(times) / active))


def _communication(
    program: _Program, work: Work, talking: Mask
) -> Iterator[tuple[str, Cover, Times]]:
    """Communication by operation, without the time in which another rank is not there yet, which
    comes first."""
    rows = np.flatnonzero(talking)
    if not len(rows):
        return
    events, latest, waited = program.events, program.latest, NOTHING
    if latest is not None:
        until = np.minimum(latest[work.row[rows]], work.end[rows])
        waiting = until > work.start[rows]
        chosen = rows[waiting]
        waited = intervals.union(work.start[chosen], until[waiting])
        yield RANK_WAIT, waited, work.start[chosen]
    name = events.kernels.name[work.row[rows]]
    operations = [collective(item.name) for item in events.kernel_names]
    for operation in sorted({operations[number] for number in np.unique(name)}):
        own = np.array([known == operation for known in operations])[name]
        chosen = rows[own]
        cover = intervals.union(work.start[chosen], work.end[chosen])
        yield operation, intervals.without(cover, waited), work.start[chosen]


def others_share(events: Events, parts: StepParts) -> float:
    """The share of the steps' time in which only other processes have work on the GPU."""
    steps = parts.steps
    others, own = NOTHING, NOTHING
    for process in {each.process for each in events.streams if each.device == steps.device}:
        work = work_of(events, process, steps.device)
        cover = intervals.union(work.start, work.end)
        if process == steps.process:
            own = cover
        else:
            others = intervals.either(others, cover)
    lengths = np.diff(intervals.covered(intervals.without(others, own), steps.bounds))
    return float(lengths[steps.typical].sum()) / parts.total


def _memory(events: Events, work: Work, *, fills: bool) -> Iterator[tuple[str, Cover, Times]]:
    rows = np.flatnonzero(work.table == MEMORY)
    kind = events.memory_operations.kind[work.row[rows]]
    names = [item.words for item in events.memory_kinds]
    for name in sorted({names[number] for number in np.unique(kind)}):
        if (name == FILLS) == fills:
            chosen = rows[np.array([known == name for known in names])[kind]]
            yield name, intervals.union(work.start[chosen], work.end[chosen]), work.start[chosen]


def _unrecorded(typical: _Typical, taken: Cover) -> Part:
    """The time without recorded work."""
    bounds = typical.bounds
    gaps = intervals.inverse(taken, int(bounds[0]), int(bounds[-1]))
    _, _, low, _ = intervals.pieces(*gaps, bounds)
    times = typical.lengths(gaps)
    return Part(UNRECORDED, UNRECORDED, times, np.zeros(len(times)), typical.count(low))


def _gap_parts(program: _Program, work: Work, taken: Cover, typical: _Typical) -> list[Part]:
    step, pieces = _gap_pieces(program, work, taken, typical.bounds)
    parts = []
    seen = np.zeros(len(step), dtype=np.bool_)
    for cause in MEANINGS:
        amounts = np.sum([np.where(owner == cause, time, 0) for owner, time in pieces], axis=0)
        sums = typical.sums(step, np.zeros_like(step), amounts, 1)[0]
        own = typical.typical[step] & (amounts > 0)
        counts = int(own.sum()), int((own & seen).sum())
        parts.append(Part(GAPS, cause, sums, np.zeros(len(sums)), *counts))
        seen |= own
    return parts


def _gap_pieces(
    program: _Program, work: Work, taken: Cover, bounds: Times
) -> tuple[Integers, list[tuple[npt.NDArray[np.str_], Times]]]:
    """The steps of idle gaps, cut at the steps' bounds, and the time of each cause in each gap.

    A gap ends with the next work, whose call may not be recorded, and which may wait, once
    submitted, for something else, such as another process's work.
    """
    events = program.events
    starts, ends = intervals.inverse(taken, int(bounds[0]), int(bounds[-1]))
    following = np.searchsorted(work.start, ends)
    known = following < len(work)
    begun = np.where(known, np.append(work.call_start, 0)[following], ends)
    call = np.where(known, np.append(work.call, -1)[following], -1)
    is_copy = np.array([call_kind(name) == cuda_calls.COPY for name in events.call_names] + [False])
    names = np.append(events.calls.name, -1)
    copies = is_copy[np.where(call >= 0, names[call], -1)]
    delay = ends - begun
    fresh = delay[(begun > starts) & (call >= 0)]
    latency = LATENCY if len(fresh) < 10 else min(LATENCY_MOST, 1.5 * float(np.median(fresh)))
    returned = np.where(call >= 0, np.append(events.calls.end, 0)[call], ends)
    is_late = ~copies & (ends - np.maximum(returned, starts) > LATENCY_MOST)
    piece, step, start, end = intervals.pieces(starts, ends, bounds)
    queued = ((begun <= starts) & (delay > latency))[piece]
    until = np.clip(begun[piece], start, end)
    ready = np.where(is_late, returned + int(latency), ends)[piece]
    waiting = end - np.clip(ready, until, end)

    covers = _call_covers(program, bounds)
    spent = {
        cause: intervals.covered(cover, until) - intervals.covered(cover, start)
        for cause, cover in covers.items()
    }
    pause = until - start - sum(spent.values(), np.zeros(len(until), dtype=np.int64))
    waits = covers[SYNCHRONIZATION]
    synced = intervals.covered(waits, until) > intervals.covered(waits, start - _RETURN)
    launching = np.where(synced, SYNCHRONIZATION, LAUNCH_BOUND)
    after = np.where(copies[piece], COPY_CALLS, np.where(queued, QUEUED, launching))
    pieces = [
        *((launching if cause == LAUNCH_BOUND else cause, time) for cause, time in spent.items()),
        (launching, pause),
        (QUEUED, waiting),
        (after, end - until - waiting),
    ]
    unknown = (known & (call < 0))[piece]
    return step, [(np.where(unknown, UNKNOWN, owner), time) for owner, time in pieces]


def _call_covers(program: _Program, bounds: Times) -> dict[str, Cover]:
    """When the threads that submit this work are in calls of each category, or do host work,
    disjoint."""
    events, calls = program.events, program.events.calls
    within = _overlapping(calls.start, program.calls_reach, bounds)
    rows = within.start + np.flatnonzero(program.threads[calls.thread[within]])
    kinds = np.array([call_kind(name) for name in events.call_names], dtype=np.str_)
    kind = kinds[calls.name[rows]] if len(rows) else np.zeros(0, dtype=np.str_)
    covers: dict[str, Cover] = {}
    taken = NOTHING
    for own, cause in _CAUSES.items():
        chosen = rows[kind == own]
        cover = intervals.union(calls.start[chosen], calls.end[chosen])
        covers[cause] = intervals.without(cover, taken)
        taken = intervals.either(taken, cover)
    covers[HOST_CODE] = _host_work(program, rows, int(bounds[0]))
    return covers


def _host_work(program: _Program, rows: Integers, begin: int) -> Cover:
    """When the host works on data or results from a time on, before calls of all threads that
    submit work."""
    events, calls = program.events, program.events.calls
    start, name = calls.start[rows], calls.name[rows]
    since = np.append(np.minimum(start[:1], begin), np.maximum.accumulate(calls.end[rows])[:-1])[
        : len(rows)
    ]
    waits = _are(events.call_names, lambda each: "Synchronize" in each)[name]
    ends = np.sort(program.work.end)
    asking = _are(events.call_names, ASKS.search)[name[:-1]] & (np.diff(start) > LONG_GAP)
    for index in np.flatnonzero(asking).tolist():
        ended = int(ends[np.searchsorted(ends, start[index + 1], side="right") - 1])
        waits[index] |= is_silent(int(since[index + 1]), ended, int(start[index + 1]))

    place = np.full(len(calls) + 1, -1)
    place[rows] = np.arange(len(rows))
    work = program.work.chosen(np.flatnonzero(place[program.work.call] >= 0))
    of_call, copied = place[work.call], np.flatnonzero(work.table == MEMORY)
    memory = events.memory_operations
    kind, is_large = memory.kind[work.row[copied]], memory.size[work.row[copied]] > SMALL_COPY
    to_device = _are(events.memory_kinds, lambda each: each.kind == TO_DEVICE)[kind]
    pageable = _are(events.memory_kinds, lambda each: "pageable" in each.words)[kind]
    of_host = _are(events.memory_kinds, lambda each: "host" in each.kind)[kind]
    synchronous = _are(events.call_names, cuda_calls.is_synchronous)[calls.name[work.call[copied]]]
    blocks = of_host & have_calls_wait(synchronous, pageable, to_device, is_large)

    def some_of(works: Integers) -> Mask:
        found: Mask = np.bincount(of_call[works], minlength=len(rows)) > 0
        return found

    sizes = memory.size[work.row[copied]] * to_device
    before = HostCalls(
        gap=start - since,
        sends=np.bincount(of_call[copied], sizes, minlength=len(rows)).astype(np.int64),
        submits=some_of(np.setdiff1d(np.arange(len(work)), copied[to_device])),
        waits=waits,
        waited=waits
        | (some_of(copied[blocks]) & ~some_of(copied[pageable & to_device & is_large])),
    ).of_work
    return since[before], start[before]


def _are(items: Iterable[T], holds: Callable[[T], object]) -> Mask:
    return np.array([bool(holds(each)) for each in items], dtype=np.bool_)
