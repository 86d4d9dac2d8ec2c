"""The steps of an application in steady state, without imports, warm-up and autotuning.

Steps are the instances of an NVTX range, or repetitions in the sequence of what a process submits
to its GPU: kernels with their launch configuration, kinds of copies, graphs, and synchronizations.
"""

import re
from collections.abc import Sequence
from enum import Enum

import numpy as np
import numpy.typing as npt
from msgspec import Struct
from msgspec.structs import replace

from profkit.application.kernel_kinds import OPTIMIZER, kernels_of
from profkit.application.nccl_calls import joined
from profkit.application.repetition import Integers, Mask, Repetition, measured, repetition
from profkit.core.errors import UsageError
from profkit.timeline import intervals
from profkit.timeline.events import Events, Ranges, Times
from profkit.timeline.kineto import PROFILER_STEP
from profkit.timeline.work import KERNEL, MEMORY, Work, dense, processes, work_of
from profkit.ui.text import plural

MOST_STEPS = 10_000
"""Steps that are analyzed, the last ones; chosen: medians don't change with more."""
_SLOW = 1.3  # times the median of later steps, from which a first step is warm-up; chosen
_FILLED = 0.7
"""Of later steps' GPU time, below which a recording began within a pipeline: 0.2 to 0.65 in such
timelines of an H200, else 0.75 and more."""
_FEWEST_FILLED = 3  # steps, chosen: two remain
_FEWEST_RANGES = 3  # instances of a range that repeats
_FEWEST_PAUSES = 3  # of the host that show steps, chosen: two steps that may be alike
_LONGER_PAUSE = 3.0  # times the longest pause within a step; chosen: far more than pauses vary
_PAUSED = 0.1  # share of the time in such pauses, chosen: logging every some steps takes less
_REGULAR = 0.9  # share of steps that are alike between pauses; chosen: almost all
_SPANNED = 0.5, 0.8  # least share of submitted work in ranges of a step's name, of any; chosen
_RUNS_WITHIN = 0.5
"""Share of the time of submitted work that runs within the steps; chosen: most of it. 0.75 and more
in recorded programs on an H200, 0.25 and less where copies run ahead of kernels."""
_UPDATES = 2  # rank of optimizers: see `repetition.repetition`
_MORE_EXPLAINED = 0.1  # share of launches, of repetitions that are alike; chosen
_SAME_NAMES = 0.9  # `fit` of repetitions by names alone, chosen: data changes a tenth of a step
_BY_GRAPHS = 0.5  # of the GPU's time from the first CUDA graph on, chosen: most of it
_MORE_UPDATES = 1.2  # times the kernels of optimizers, chosen: another network's are more
_STEP_WORDS = re.compile(r"step|iter|batch|token|frame|request", re.IGNORECASE)
_NUMBER = re.compile(r"\d+")


class BasisKind(Enum):
    """What steps are found by."""

    range = "NVTX range"
    pattern = "repeating pattern"
    whole = "no repetition"


class StepBasis(Struct, frozen=True):
    """What steps are found by: the name of an NVTX range, of which a step has so many (`ranges`),
    or the launches of a repetition.

    `is_limited`: of more than MOST_STEPS the last ones. `is_step`: a range or an optimizer says
    that it is a whole step; any other repetition may be a part of one, or several.
    """

    kind: BasisKind
    range: str = ""
    launches: int = 0
    ranges: int = 1
    is_limited: bool = False
    is_step: bool = True

    @property
    def unit(self) -> str:
        """What is repeated, in a word."""
        return "step" if self.is_step else "repetition"

    def __str__(self) -> str:
        if self.kind is BasisKind.whole:
            return f"{self.kind.value}: the time from first to last GPU work is one step"
        if self.kind is BasisKind.range:
            several = f", {self.ranges} to a step" if self.ranges > 1 else ""
            kind = "range" if self.range == PROFILER_STEP else self.kind.value
            words = f'{kind} "{self.range}"{several}'
        else:
            words = f"{self.kind.value} of {plural(self.launches, 'launch')}"
        return f"{words}, the last {MOST_STEPS:,}" if self.is_limited else words


class Steps(Struct, frozen=True, eq=False):
    """Steady-state steps of one process, on the clock of the recording, in ns.

    Step i is [bounds[i], bounds[i+1]) of GPU time: from the first GPU work that it submits to
    that of the next, or of a single range at whose bounds no work runs, these. Where copies
    run so far ahead that most work runs outside of these bounds, it is from the first kernel or
    graph to that of the next. `call_bounds` are the starts of the calls that submitted the
    first work. `typical` says which steps submit what most do; the others evaluate, log or
    recompile. `before` are the steps or launches (`unit`) left out as warm-up, in `left_out` ns
    from the first GPU work, `why` the reason. `outside` is the share of the work's time that is
    submitted between the instances of the range by which steps are found.
    """

    process: int
    device: int
    bounds: Times
    call_bounds: Times
    typical: Mask
    basis: StepBasis
    before: int = 0
    unit: str = "launch"
    why: str = ""
    left_out: int = 0
    outside: float = 0.0

    def __len__(self) -> int:
        return len(self.bounds) - 1

    @property
    def wall(self) -> Times:
        """The time of each typical step, ns."""
        return np.diff(self.bounds)[self.typical]

    @property
    def median(self) -> float:
        """The median of these times in seconds: the step's time wherever one number is shown."""
        return float(np.median(self.wall)) / 1e9

    def has(self, times: Times, *, calls: bool = False) -> Mask:
        """Which times are in a typical step: on the GPU, or of `calls`."""
        bounds = self.call_bounds if calls else self.bounds
        step = np.searchsorted(bounds, times, side="right") - 1
        return np.append(self.typical, False)[np.where(step < len(self), step, -1)]

    @property
    def warm_up(self) -> str:
        """What is left out before the first step, and why; "" for nothing."""
        why = f" ({self.why})" if self.why else ""
        return f"the first {plural(self.before, self.unit)}{why}" if self.before else ""


class _Program(Struct, frozen=True, eq=False):
    """A process with its GPU work on a device."""

    events: Events
    process: int
    device: int
    work: Work


class _Sequence(Struct, frozen=True, eq=False):
    """What a process submits, in order of the calls: the call's start, the latest end of calls so
    far, start on the GPU, symbol.

    Work of one call, such as the kernels of a graph, is one element; a synchronization has no
    `start` (-1).
    """

    call_start: Times
    returned: Times
    start: Times
    end: Times
    symbol: npt.NDArray[np.int32]
    rank: npt.NDArray[np.int8]

    @property
    def is_work(self) -> Mask:
        """By symbol, whether it is work on the GPU."""
        return np.bincount(self.symbol[self.start >= 0], minlength=len(self.rank)) > 0


def first_rank(steps: Sequence[Steps]) -> Steps:
    """The steps of the process on the first GPU: other ranks do the same, and wait for it."""
    return min(steps, key=rank_order)


def rank_order(steps: Steps) -> tuple[int, int]:
    """By GPU, then by process."""
    return steps.device, steps.process


def steady_steps(events: Events, nvtx: str | None = None) -> tuple[Steps, ...]:
    """The steps of each process with GPU work.

    `nvtx` names the range that is a step: those of exactly this name if there are several, else
    also those that differ from it by numbers, which count instances. Without it a range or pattern
    that repeats is searched. A program without repetition is one step. Raises UsageError for a
    range that is not there.
    """
    programs = [_Program(events, *place, work_of(events, *place)) for place in processes(events)]
    each_steps = ((program, _steps_of(program, nvtx)) for program in programs)
    known = [(program, steps) for program, steps in each_steps if steps is not None]
    if nvtx is None and len(known) > 1:
        known = _by_one_range(events, known)
    steps = tuple(_filled(program.work, each) for program, each in known)
    if nvtx is not None and programs and not steps:
        times = events.ranges.end - events.ranges.start
        spent = np.bincount(events.ranges.name, times, minlength=len(events.range_names))
        names = [events.range_names[number] for number in np.argsort(-spent) if spent[number]]
        there = f"this timeline has {', '.join(names[:5])}" if names else "it has no NVTX range"
        raise UsageError(f"no GPU work in an NVTX range named {nvtx}", there)
    return steps


def _by_one_range(
    events: Events, known: Sequence[tuple[_Program, Steps]]
) -> list[tuple[_Program, Steps]]:
    """The ranks of a program by one range, where those of any of them are found by it."""
    programs = joined(events)
    ranges: dict[frozenset[int], str] = {}
    for steps in sorted((steps for _, steps in known), key=rank_order):
        if steps.basis.range and steps.process in programs:
            ranges.setdefault(programs[steps.process], steps.basis.range)
    alike = []
    for program, steps in known:
        name = ranges.get(programs.get(steps.process, frozenset()), steps.basis.range)
        ranged = None if name == steps.basis.range else _by_range(program, name)
        alike.append((program, ranged or steps))
    return alike


def _filled(work: Work, steps: Steps) -> Steps:
    """Without a first step in which work of the step before it, not recorded, is missing."""
    if len(steps) < _FEWEST_FILLED or work.start[0] < steps.bounds[0] or not steps.typical[0]:
        return steps
    busy = np.diff(intervals.covered(intervals.union(work.start, work.end), steps.bounds))
    order = np.argsort(work.call_start, kind="stable")
    spent = np.append(0, np.cumsum((work.end - work.start)[order]))
    own = np.diff(spent[np.searchsorted(work.call_start[order], steps.call_bounds)])
    if busy[0] >= _FILLED * np.median(busy[1:]) or own[0] < _FILLED * np.median(own[1:]):
        return steps
    return replace(
        steps,
        bounds=steps.bounds[1:],
        call_bounds=steps.call_bounds[1:],
        typical=steps.typical[1:] if steps.typical[1:].any() else ~steps.typical[1:],
        before=1,
        unit="step",
        why="GPU work of earlier steps is not in the recording",
        left_out=int(steps.bounds[1] - steps.bounds[0]),
    )


def _steps_of(program: _Program, nvtx: str | None) -> Steps | None:
    if nvtx is not None:
        return _by_range(program, nvtx)
    sequence = _sequence(program.events, program.work)
    return (
        _by_range(program, PROFILER_STEP)
        or _by_likely_range(program, sequence, _SPANNED[0], _STEP_WORDS)
        or _by_pattern(program, *_repeating(program, sequence))
        or _by_likely_range(program, sequence, _SPANNED[1], re.compile(""))
        or _whole(program)
    )


def _whole(program: _Program) -> Steps:
    work = program.work
    end = max(int(work.end.max()), int(work.start[0]) + 1)
    return Steps(
        program.process,
        program.device,
        bounds=np.array([work.start[0], end], dtype=np.int64),
        call_bounds=np.array([work.call_start.min(), work.end.max()], dtype=np.int64),
        typical=np.ones(1, dtype=np.bool_),
        basis=StepBasis(BasisKind.whole),
    )


def _sequence(events: Events, work: Work) -> _Sequence:
    order = np.lexsort((work.start, work.call, work.call_start))
    call, called = work.call[order], work.call_start[order]
    fresh = np.ones(len(order), dtype=np.bool_)
    fresh[1:] = (call[1:] != call[:-1]) | (call[1:] < 0)
    first = np.flatnonzero(fresh)
    symbols = work.symbol[order].astype(np.int64)
    sizes = np.diff(np.append(first, len(order)))
    codes = symbols[first]
    several = sizes > 1
    if several.any():
        mixed = (symbols + 1) * 0x9E3779B97F4A7C1 % (1 << 61)  # a sum of hashes has no order
        sums = np.add.reduceat(mixed, first)
        codes = np.where(several, sums, codes)
    ranks = np.maximum.reduceat(_ranks(events, work)[order], first)
    starts = np.minimum.reduceat(work.start[order], first)
    ends = np.maximum.reduceat(work.end[order], first)
    waits = _waits(events, np.unique(events.calls.thread[call[call >= 0]]))
    names = -1 - events.calls.name[waits].astype(np.int64)
    merged = np.argsort(np.concatenate([called[first], events.calls.start[waits]]), kind="stable")
    _, symbol = np.unique(np.concatenate([codes, names]), return_inverse=True)
    nowhere = np.full(len(waits), -1, dtype=np.int64)
    rank = np.concatenate([ranks, np.ones(len(waits), dtype=np.int8)])
    by_symbol = np.zeros(int(symbol.max()) + 1, dtype=np.int8)
    np.maximum.at(by_symbol, symbol, rank)
    returns = called[first]
    known = call[first] >= 0
    returns[known] = events.calls.end[call[first][known]]
    returned = np.concatenate([returns, events.calls.end[waits]])[merged]
    return _Sequence(
        call_start=np.concatenate([called[first], events.calls.start[waits]])[merged],
        returned=np.maximum.accumulate(returned),
        start=np.concatenate([starts, nowhere])[merged],
        end=np.concatenate([ends, nowhere])[merged],
        symbol=symbol[merged].astype(np.int32),
        rank=by_symbol,
    )


def _waits(events: Events, threads: Integers) -> Integers:
    """Synchronizing calls of the threads that submit work."""
    waiting = np.array(["Synchronize" in name for name in events.call_names], dtype=np.bool_)
    own = np.zeros(len(events.threads), dtype=np.bool_)
    own[threads] = True
    calls = events.calls
    if not waiting.any() or not own.any():
        return np.zeros(0, dtype=np.int64)
    return np.flatnonzero(waiting[calls.name] & (calls.thread >= 0) & own[calls.thread])


def _ranks(events: Events, work: Work) -> npt.NDArray[np.int8]:
    optimizers = kernels_of(events, OPTIMIZER)
    exchanges = np.array(["host" in item.kind for item in events.memory_kinds], dtype=np.bool_)
    ranks = np.zeros(len(work), dtype=np.int8)
    kernels, memory = work.table == KERNEL, work.table == MEMORY
    if optimizers.any():
        ranks[kernels] = _UPDATES * optimizers[work.row[kernels]]
    if exchanges.any():
        ranks[memory] = exchanges[events.memory_operations.kind[work.row[memory]]]
    return ranks


def _repeating(program: _Program, sequence: _Sequence) -> tuple[_Sequence, Repetition | None]:
    """What repeats: launches, or kernels of the same names where the sizes of data change what is
    launched, and repetitions of sizes would be some of steps, or several steps. Where CUDA graphs
    are most of the work from the first of them on, it is what repeats from there: far more is
    launched before, as they are made."""
    if first := _first_graph(program, sequence):
        pattern = repetition(sequence.symbol[first:], sequence.rank)
        if pattern is not None:
            return sequence, replace(pattern, marks=pattern.marks + first)
    pattern = repetition(sequence.symbol, sequence.rank)
    by_name = _sequence(program.events, _without_sizes(program.events, program.work))
    if len(by_name.rank) == len(sequence.rank):
        return sequence, pattern
    plain = repetition(by_name.symbol, by_name.rank)
    ends = plain is not None and plain.rank(by_name.rank)
    is_end = bool(ends) and (pattern is None or ends >= pattern.rank(sequence.rank))
    is_better = plain and (pattern is None or _is_better(plain, pattern, is_end=is_end))
    return (by_name, plain) if is_better else (sequence, pattern)


def _first_graph(program: _Program, sequence: _Sequence) -> int:
    """The place of the first launch of a CUDA graph, where from then on these take most of the
    GPU's time; else 0."""
    work, calls = program.work, program.events.calls
    named = np.array([*("GraphLaunch" in name for name in program.events.call_names), False])
    of_graphs = named[np.append(calls.name, -1)[work.call]]
    if not of_graphs.any():
        return 0
    first, times = work.call_start[of_graphs].min(), work.end - work.start
    if times[of_graphs].sum() < _BY_GRAPHS * times[work.call_start >= first].sum():
        return 0
    return int(np.searchsorted(sequence.call_start, first))


def _is_better(plain: Repetition, sized: Repetition, *, is_end: bool) -> bool:
    """Whether the repetition of names is a step rather than that of launches: it explains more, or
    ends as a step does and is shorter or more regular."""
    if plain.coverage > sized.coverage + _MORE_EXPLAINED:
        return True
    repeats = len(plain.alike) >= 1.5 * len(sized.alike)  # chosen: two of each
    is_regular = plain.alike.mean() > sized.alike.mean() + _MORE_EXPLAINED
    return is_end and plain.fit >= _SAME_NAMES and (repeats or bool(is_regular))


def _without_sizes(events: Events, work: Work) -> Work:
    """Work whose kernels are equal by name, whatever their launch configuration."""
    symbol = work.symbol.astype(np.int64) + len(events.kernel_names)
    kernels = work.table == KERNEL
    symbol[kernels] = events.kernels.name[work.row[kernels]]
    return replace(work, symbol=dense(symbol))


def _by_pattern(program: _Program, sequence: _Sequence, pattern: Repetition | None) -> Steps | None:
    if pattern is None:
        return None
    pattern = _paused(sequence, pattern) or _turned(sequence, pattern)
    low, high = _steady(pattern.alike)
    if high - low < 2:
        return None
    marks = pattern.marks
    calls = sequence.call_start[marks]
    starts = _starts(program.work, sequence.start[marks], calls)
    low = _after_slow(np.diff(starts), pattern.alike, low, high)
    is_step = pattern.rank(sequence.rank) == _UPDATES
    basis = StepBasis(BasisKind.pattern, is_step=is_step)
    first = int(marks[low])
    before = int((sequence.start[:first] >= 0).sum())
    origin = int(sequence.start[sequence.start >= 0].min())
    steps = _bounded(program, starts, calls, pattern.alike, (low, high), basis)
    if steps is None:
        return None
    basis = replace(steps.basis, launches=_launches(program.work, steps))
    return replace(steps, basis=basis, before=before, left_out=int(starts[low]) - origin)


def _starts(work: Work, first: Times, calls: Times) -> Times:
    """When steps begin on the GPU: with their first work, or where most of what they submit runs
    outside of these bounds, with their first kernel or graph."""
    submitted = (work.call_start >= calls[0]) & (work.call_start < calls[-1])
    within = submitted & (work.start >= first.min()) & (work.start < first.max())
    time = work.end - work.start
    if time[within].sum() >= _RUNS_WITHIN * time[submitted].sum():
        return first
    order = np.argsort(work.call_start, kind="stable")
    order = order[work.table[order] != MEMORY]
    following = np.searchsorted(work.call_start[order], calls)
    return first if following[-1] >= len(order) else work.start[order[following]]


def _launches(work: Work, steps: Steps) -> int:
    """GPU work of a typical step, the median."""
    counts = np.diff(np.searchsorted(work.start, steps.bounds))
    return int(np.median(counts[steps.typical]))


def _bounded(
    program: _Program,
    starts: Times,
    calls: Times,
    alike: Mask,
    range_: tuple[int, int],
    basis: StepBasis,
) -> Steps | None:
    """The steps of a range of marks; None where all begin at one time."""
    low, high = range_
    if high - low > MOST_STEPS:
        low = high - MOST_STEPS
        basis = replace(basis, is_limited=True)
    bounds = np.maximum.accumulate(starts[low : high + 1])
    if bounds[-1] <= bounds[0]:
        return None
    typical = alike[low:high] & (np.diff(bounds) > 0)
    if not typical.any():
        typical = np.ones(high - low, dtype=np.bool_)
    return Steps(
        process=program.process,
        device=program.device,
        bounds=bounds,
        call_bounds=np.maximum.accumulate(calls[low : high + 1]),
        typical=typical,
        basis=basis,
    )


def _paused(sequence: _Sequence, pattern: Repetition) -> Repetition | None:
    """Longer repetitions, between pauses of the host that are far longer than those within.

    A loop of equal launches has no longer period in what it submits; None where time shows none
    either, or the shorter one is a whole step, with an optimizer or an exchange with the host.
    """
    if sequence.rank[pattern.constant & sequence.is_work].any():
        return None
    pauses = np.maximum(sequence.call_start[1:] - sequence.returned[:-1], 0)
    ordered = np.sort(pauses)[::-1]
    shown = ordered[_FEWEST_PAUSES - 1 : len(pauses) // max(1, pattern.period) + 1]
    falls = shown[:-1] / np.maximum(shown[1:], 1)
    if not len(falls) or falls.max() < _LONGER_PAUSE:
        return None
    least = ordered[_FEWEST_PAUSES - 1 + int(falls.argmax())]
    places = 1 + np.flatnonzero(pauses >= least)
    longer = measured(sequence.symbol, places, len(sequence.rank))
    if longer is None or longer.period < 1.5 * pattern.period:  # chosen: not the same, cut again
        return None
    spent = int(pauses[places[1:] - 1].sum())
    span = int(sequence.call_start[places[-1]] - sequence.call_start[places[0]])
    is_regular = longer.alike.mean() >= _REGULAR and longer.coverage >= pattern.coverage - 0.1
    return _at_work(sequence, longer) if is_regular and spent >= _PAUSED * span else None


def _turned(sequence: _Sequence, pattern: Repetition) -> Repetition:
    """The same repetition, beginning at the work before which the host waits longest."""
    marks, alike = pattern.marks, pattern.alike
    first, last = int(marks[0]), int(marks[-1])
    inner = sequence.symbol[first:last]
    part = np.repeat(np.arange(len(alike)), np.diff(marks))
    present = np.bincount(inner, minlength=len(pattern.typical)) > 0
    single = (pattern.typical == 1) & present & sequence.is_work
    places = np.flatnonzero(single[inner] & alike[part])
    if not len(places):
        return _at_work(sequence, pattern)
    gaps = np.diff(sequence.call_start[first:last], prepend=sequence.call_start[first])
    symbols = inner[places]
    order = np.lexsort((gaps[places], symbols))
    ordered = symbols[order]
    begin = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))
    counts = np.diff(np.append(begin, len(ordered)))
    medians = gaps[places][order][begin + counts // 2]
    medians = np.where(counts >= 0.95 * alike.sum(), medians, -1)  # chosen: almost every step
    if medians.max() < 0:
        return _at_work(sequence, pattern)
    longest = begin[medians >= 0.8 * medians.max()]  # chosen: as long; the first of them
    symbol = int(ordered[longest[np.argmin(places[order][longest])]])
    turned = measured(
        sequence.symbol, np.flatnonzero(sequence.symbol == symbol), len(sequence.rank)
    )
    if turned is None or turned.coverage < pattern.coverage - 0.05:  # chosen: about as regular
        return _at_work(sequence, pattern)
    return turned


def _at_work(sequence: _Sequence, pattern: Repetition) -> Repetition:
    """Repetitions that begin at GPU work: a synchronization belongs to the one before."""
    shown = np.flatnonzero(sequence.start >= 0)
    places = np.searchsorted(shown, pattern.marks)
    if places[-1] >= len(shown):
        places = places[:-1]
    moved = measured(sequence.symbol, np.unique(shown[places]), len(sequence.rank))
    return pattern if moved is None else moved


def _steady(alike: Mask) -> tuple[int, int]:
    """The first and the end of the steps from which most are typical."""
    rows = np.flatnonzero(alike)
    if not len(rows):
        return 0, 0
    end = int(rows[-1]) + 1
    after = np.cumsum(alike[::-1])[::-1] / np.arange(len(alike), 0, -1)
    near = np.convolve(alike, np.ones(5), "full")[4:] / np.minimum(
        5, np.arange(len(alike), 0, -1)
    )  # share of the next 5
    begin = rows[(near[rows] >= 0.6) & (after[rows] >= 0.5)]  # chosen: most of them
    return (int(begin[0]) if len(begin) else int(rows[0])), end


def _after_slow(times: Times, alike: Mask, low: int, high: int) -> int:
    """The first step that is no slower than later ones, at most in the middle."""
    middle = (low + high) // 2
    usual = np.median(times[middle:high][alike[middle:high]]) if alike[middle:high].any() else 0
    while low < middle and (not alike[low] or times[low] > _SLOW * usual):
        low += 1
    return low


def _range_rows(events: Events, process: int, name: str | None) -> Integers:
    ranges = events.ranges
    own = (ranges.process == process) & ranges.closed
    if name is None or not own.any():
        return np.flatnonzero(own)
    exact = own & (np.array(events.range_names) == name)[ranges.name]
    if exact.sum() > 1:
        return np.flatnonzero(exact)
    counted = np.array([_plain(known) in {name, _plain(name)} for known in events.range_names])
    return np.flatnonzero(exact | (own & counted[ranges.name]))


def _plain(name: str) -> str:
    """A range's name without the numbers that count its instances."""
    return _NUMBER.sub("#", name)


def _by_likely_range(
    program: _Program, sequence: _Sequence, spanned: float, words: re.Pattern[str]
) -> Steps | None:
    """By the range in whose instances most of the work after the first is submitted."""
    events = program.events
    rows = _range_rows(events, program.process, None)
    submitted = sequence.call_start[sequence.start >= 0]
    names = [_plain(name) for name in events.range_names]
    numbers = {name: number for number, name in enumerate(dict.fromkeys(names))}
    group = np.array([numbers[name] for name in names], dtype=np.int64)[events.ranges.name[rows]]
    options = []
    for name, number in numbers.items():
        own = rows[group == number]
        if len(own) < _FEWEST_RANGES or not words.search(name):
            continue
        start, end = events.ranges.start[own], events.ranges.end[own]
        if (start[1:] < end[:-1]).any():
            continue
        within = np.searchsorted(submitted, end) - np.searchsorted(submitted, start)
        after = len(submitted) - int(np.searchsorted(submitted, start[0]))
        if after and within.sum() >= spanned * after and (within > 0).sum() >= _FEWEST_RANGES:
            options.append((-int(within.sum()), len(own), name))
    return _by_range(program, min(options)[2]) if options else None


class _Instances(Struct, frozen=True, eq=False):
    """A range's instances that submit work: when the range begins and ends, where its work does in
    the order of the calls, whether others without work come before the next one."""

    start: Times
    end: Times
    low: Integers
    high: Integers
    interrupted: Mask

    def __len__(self) -> int:
        return len(self.low)

    def is_whole(self, work: Work, order: Integers) -> bool:
        """Whether no work runs at the bounds of all of them."""
        reached = np.append(0, np.maximum.accumulate(work.end[order]))
        return bool(
            reached[self.low[0]] <= self.start[0] and reached[self.high[-1]] <= self.end[-1]
        )


def _instances(program: _Program, name: str, called: Times) -> _Instances:
    ranges = program.events.ranges
    rows = _outermost(ranges, _range_rows(program.events, program.process, name))
    low = np.searchsorted(called, ranges.start[rows])
    high = np.searchsorted(called, ranges.end[rows])
    busy = np.flatnonzero(high > low)
    rows, low, high = rows[busy], low[busy], high[busy]
    interrupted = np.append(np.diff(busy) > 1, False)
    return _Instances(ranges.start[rows], ranges.end[rows], low, high, interrupted)


def _by_range(program: _Program, name: str) -> Steps | None:
    work = program.work
    order = np.argsort(work.call_start, kind="stable")
    called, started = work.call_start[order], work.start[order]
    instances = _instances(program, name, called)
    if not len(instances):
        return None
    symbols, count = work.symbol[order].astype(np.int32), int(work.symbol.max()) + 1
    is_update = _ranks(program.events, work)[order] == _UPDATES
    turns, period = _turns(symbols, count, np.append(0, np.cumsum(is_update)), instances)
    begin = turns if turns[-1] < len(instances) else turns[:-1]
    calls = called[instances.low[begin]]
    starts = _starts(work, started[instances.low[begin]], calls)
    last = int(turns[-1])
    if is_whole := len(turns) == 2 and instances.is_whole(work, order):
        calls = starts = np.append(instances.start[turns[:-1]], instances.end[last - 1])
    elif len(begin) == 1:
        end = work.end[order[instances.low[turns[0]] : instances.high[last - 1]]].max()
        starts, calls = np.append(starts, end), np.append(calls, end)
    parts = len(starts) - 1
    marks = np.append(instances.low[turns[:-1]], instances.high[last - 1])
    pattern = measured(symbols, marks, count)
    alike = pattern.alike[:parts] if pattern else np.ones(parts, dtype=np.bool_)
    interrupted = np.logical_or.reduceat(instances.interrupted[:last], turns[:-1])[:parts]
    if (alike & ~interrupted).sum() > interrupted.sum():
        alike = alike & ~interrupted
    first = _steady(alike)[0] if alike.any() else 0
    first = _after_slow(np.diff(starts), alike, first, parts)
    basis = StepBasis(BasisKind.range, range=name, ranges=period)
    steps = _bounded(program, starts, calls, alike, (first, parts), basis)
    if steps is None:
        return None
    before, unit = (first, "step") if first else (int(instances.low[turns[0]]), "launch")
    until = last if is_whole or last < len(instances) else int(turns[parts])
    spent = np.append(0, np.cumsum((work.end - work.start)[order]))
    return replace(
        steps,
        before=before,
        unit=unit,
        left_out=max(0, int(starts[first] - work.start[0])),
        outside=_outside(instances, spent, slice(int(turns[first]), until)),
    )


def _outside(instances: _Instances, spent: Integers, own: slice) -> float:
    """The share of the work from some instances' first to last that none of them submits."""
    end = instances.high[-1] if own.stop == len(instances) else instances.low[own.stop]
    total = int(spent[end] - spent[instances.low[own.start]])
    ranged = int((spent[instances.high] - spent[instances.low])[own].sum())
    return max(0.0, 1.0 - ranged / total) if total else 0.0


def _turns(
    symbols: npt.NDArray[np.int32], count: int, updates: Integers, instances: _Instances
) -> tuple[Integers, int]:
    """The instances at which steps begin, and the end; how many a step has. It has several where
    every n-th one has an optimizer's kernels, or more of them: gradients are accumulated, or
    networks take turns."""
    each = np.arange(len(instances) + 1)
    pattern = measured(symbols, np.append(instances.low, instances.high[-1]), count)
    if pattern is None or pattern.alike.all() or not pattern.alike.any():
        return each, 1
    last = np.flatnonzero(~pattern.alike)
    apart = np.diff(last)
    period = int(apart[0]) if len(apart) else 0
    is_regular = period > 1 and (apart == period).all() and last[0] < period
    by_instance = updates[instances.high] - updates[instances.low]
    usual = by_instance[pattern.alike].max()
    is_regular &= len(instances) - 1 - last[-1] < period
    if not is_regular or by_instance[last].min() <= _MORE_UPDATES * usual:
        return each, 1
    turns = last + 1
    return (np.append(0, turns) if turns[0] == period else turns), period


def _outermost(ranges: Ranges, rows: Integers) -> Integers:
    """Without ranges that lie in an earlier one of their thread."""
    inner = np.zeros(len(rows), dtype=np.bool_)
    for thread in np.unique(ranges.thread[rows]):
        own = np.flatnonzero(ranges.thread[rows] == thread)
        if thread >= 0 and len(own) > 1:
            reach = np.maximum.accumulate(ranges.end[rows[own]])
            inner[own[1:]] = ranges.end[rows[own[1:]]] <= reach[:-1]
    return rows[~inner]
