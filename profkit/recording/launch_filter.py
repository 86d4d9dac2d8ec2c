"""Which launches ncu is to profile: picked ones in steady state, in one run of the program.

ncu counts the launches of each function (`--kernel-id`), and profiles those of the picked functions
whose number is one of a few, which are chosen so that the fewest launches have every pick.
Functions share these numbers: one number more is a launch more of each.

ncu 2025.3 doesn't see an extended launch (cuLaunchKernelEx, of cuBLAS and cuDNN) of a name that the
filter has where the launch of such a name before it was another one, and doesn't count it. Found by
two training programs on an H100: 175 of 175 launches in four reports are then as expected. A
function of such launches that is in the filter besides is passed over in place of the next.
"""

import re
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from profkit.analysis.replay_plan import PER_PASS
from profkit.application.ranking import Pick
from profkit.application.steps import Steps
from profkit.timeline.events import Events, Indices

Places: TypeAlias = npt.NDArray[np.intp]
Mask: TypeAlias = npt.NDArray[np.bool_]
Group: TypeAlias = tuple[int, int]

_SPECIAL = re.compile(r"[^\w ]")  # of expressions; ncu and nsys demangle alike
_EXTENDED = ("cuLaunchKernelEx", "cudaLaunchKernelEx")
_EARLY_STEPS = (2, 4, 8, 16, 32)  # that are searched, so that the program may end soon; chosen
_ALIKE = 0.1  # of a launch's time; chosen: then it is of the same work, whatever its step
_TRIED = 4  # functions that may hide, chosen: a choice reads all launches
_SPARE = 3  # launches behind the last pick, in place of what ncu doesn't meet; chosen
_MOST_ADDED = 4  # launches that are profiled for one pick more, chosen: ncu takes 3 s for them
_RUN = 0.17
"""Seconds of a pass that a second of the program's run is worth: under ncu it takes twice as long,
by a run of 43 steps on an H100, and a launch has 12 passes."""


class LaunchFilter(Struct, frozen=True):
    """What ncu is told: an expression for demangled names, which invocations of each function, and
    the durations (s) of the launches that it then profiles, which are of these `groups`."""

    kernel: str
    invocations: tuple[int, ...]
    durations: tuple[float, ...]
    groups: frozenset[Group]

    @property
    def launches(self) -> int:
        return len(self.durations)


class _Process:
    """The launches of a process in the order of their calls: when each was called, by seconds."""

    def __init__(self, events: Events, steps: Sequence[Steps], process: int) -> None:
        kernels = events.kernels
        self.names = events.kernel_names
        rows = _launched(events, process)
        self.name = kernels.name[rows]
        self.code = _codes(self.name, kernels.configuration[rows])
        self.is_extended = _extended(events, rows)
        self.seconds = (kernels.end[rows] - kernels.start[rows]) / 1e9
        starts = kernels.start[rows]
        self.elapsed = (starts - starts.min(initial=starts[0])) / 1e9
        self.spans = [(0, len(rows))]
        for steady in steps:
            if steady.process == process:
                bounds = steady.bounds
                ends = (*(bounds[: count + 1][-1] for count in _EARLY_STEPS), bounds[-1])
                inside = [np.flatnonzero((starts >= bounds[0]) & (starts < end)) for end in ends]
                self.spans += [(int(row[0]), int(row[-1]) + 1) for row in inside if len(row)]

    def hiding(self, functions: Collection[int], wanted: Collection[Group]) -> Counter[int]:
        """Extended functions in front of wanted launches that aren't seen, by how often: with one
        of these the launch is."""
        counts = Counter[int]()
        matching = np.flatnonzero(np.isin(self.name, list(functions)))
        before, places = matching[:-1], matching[1:]
        is_hidden = self.is_extended[places] & ~self.is_extended[before]
        is_hidden &= np.isin(self.code[places], _codes(*np.transpose([*wanted])))
        for low, high in zip(before[is_hidden].tolist(), places[is_hidden].tolist(), strict=True):
            between = slice(low + 1, high)
            counts.update(set(self.name[between][self.is_extended[between]].tolist()))
        return counts


class _Seen:
    """The launches of functions that ncu sees: their places among those of the process, their
    groups, and `numbers`, the invocations of their function from 1."""

    def __init__(self, process: _Process, functions: Collection[int]) -> None:
        self.functions = frozenset(functions)
        matching = np.flatnonzero(np.isin(process.name, list(functions)))
        is_extended = process.is_extended[matching]
        self.places = matching[~(is_extended & np.r_[False, ~is_extended[:-1]])]
        name = process.name[self.places]
        self.codes = process.code[self.places]
        self.groups = {(code >> 32, code & 0xFFFFFFFF) for code in np.unique(self.codes).tolist()}
        self.numbers = np.zeros(len(name), dtype=np.intp)
        for function in functions:
            own = name == function
            self.numbers[own] = np.arange(1, own.sum() + 1)
        self.seconds = process.seconds[self.places]
        self.elapsed = process.elapsed[self.places]


class Search:
    """The filters for picks of one process, with its launches read once."""

    def __init__(self, events: Events, steps: Sequence[Steps], process: int) -> None:
        self._process = _Process(events, steps, process)

    def filter(self, picks: Sequence[Pick]) -> LaunchFilter | None:
        """The filter for picks, without those that ncu doesn't see among the others; None where it
        sees none."""
        process = self._process
        wanted = {(pick.name, pick.configuration) for pick in picks}
        seen = _Seen(process, {pick.name for pick in picks})
        while missing := wanted - seen.groups:
            hiding = process.hiding(seen.functions, missing).most_common(_TRIED)
            fuller = [_Seen(process, seen.functions | {name}) for name, _ in hiding]
            best = min(fuller, key=lambda more: len(missing - more.groups), default=seen)
            if not missing & best.groups:
                break
            seen = best
        wanted &= seen.groups
        if not wanted:
            return None
        selections = [
            selection
            for low, high in process.spans
            if (selection := _fewest(seen, wanted, *np.searchsorted(seen.places, (low, high))))
        ]
        numbers, places = min(selections, key=lambda chosen: _cost(seen, chosen[1]))
        last = int(places[-1])
        later = seen.numbers[last + 1 :]
        spare = later[~np.isin(later, seen.numbers[: last + 1])].tolist()
        numbers.update(list(dict.fromkeys(spare))[:_SPARE])
        names = [process.names[name].name for name in sorted(seen.functions)]
        return LaunchFilter(
            f"^({'|'.join(_SPECIAL.sub('.', name) for name in names)})$",
            tuple(sorted(numbers)),
            tuple(seen.seconds[places].tolist()),
            frozenset(wanted),
        )

    def fitting(
        self, picks: Sequence[Pick], fits: Callable[[LaunchFilter], bool]
    ) -> tuple[LaunchFilter | None, tuple[Pick, ...]]:
        """The filter for those of the picks, in their order, with which it `fits`, and the others.
        Left out is also what would have many more launches profiled; what ncu doesn't see among
        the picks before it belongs to neither."""
        found: LaunchFilter | None = None
        taken: list[Pick] = []
        left_out: list[Pick] = []
        for pick in picks:
            tried = self.filter([*taken, pick])
            groups = found.groups if found else frozenset()
            if tried is None or not tried.groups >= {*groups, (pick.name, pick.configuration)}:
                continue
            added = tried.launches - (found.launches if found else 0)
            if fits(tried) and added <= _MOST_ADDED:
                found = tried
                taken.append(pick)
            else:
                left_out.append(pick)
        return found, tuple(left_out)


def _cost(seen: _Seen, places: Places) -> float:
    """Seconds of one replay pass of some launches, with their part of the program's run."""
    run = float(seen.elapsed[places[-1]])
    return float((seen.seconds[places] + PER_PASS).sum()) + _RUN * run


def _fewest(
    seen: _Seen, wanted: Collection[Group], low: int, high: int
) -> tuple[set[int], Places] | None:
    """Numbers for the wanted groups between two places, and the places of the launches that are
    profiled: greedily the numbers that have the most groups for their launches (set cover), without
    those that turn out to add nothing. None where a group is not there."""
    numbers, codes = seen.numbers[:high], seen.codes[:high]
    times = np.bincount(numbers, weights=seen.seconds[:high] + PER_PASS)
    has = np.zeros((len(times), len(wanted)), dtype=np.bool_)
    firsts = np.full(has.shape, high)
    for column, (name, shape) in enumerate(sorted(wanted)):
        own = np.flatnonzero(codes == (name << 32 | shape))
        if not (own >= low).any():
            return None
        typical = np.median(seen.seconds[own[own >= low]])
        alike = np.abs(seen.seconds[own] - typical) <= _ALIKE * typical
        own = own[alike | (own >= low)][::-1]  # the first of a number is written last
        has[numbers[own], column] = True
        firsts[numbers[own], column] = own
    chosen: list[int] = []
    missing = np.ones(len(wanted), dtype=np.bool_)
    while missing.any():
        gains = has[:, missing].sum(axis=1) / np.maximum(times, PER_PASS)
        chosen.append(int(gains.argmax()))
        missing &= ~has[chosen[-1]]
    for number in sorted(chosen, key=lambda number: -times[number]):
        rest = [other for other in chosen if other != number]
        if has[rest].any(axis=0).all():
            chosen = rest
    last = int(firsts[chosen].min(axis=0).max())
    return {*chosen}, np.flatnonzero(np.isin(numbers[: last + 1], chosen))


def _codes(name: Indices, shape: Indices) -> npt.NDArray[np.int64]:
    """Groups as numbers."""
    return name.astype(np.int64) << 32 | shape


def _launched(events: Events, process: int) -> Places:
    """The kernels of a process in order of their launch calls."""
    kernels = events.kernels
    own = np.array([stream.process == process for stream in events.streams], dtype=np.bool_)
    rows = np.flatnonzero(own[kernels.stream])
    call = kernels.call[rows]
    called = kernels.start[rows].copy()
    called[call >= 0] = events.calls.start[call[call >= 0]]
    return rows[np.lexsort((kernels.start[rows], called))]


def _extended(events: Events, launches: Places) -> Mask:
    """Which launches ncu takes for extended ones: by cuLaunchKernelEx, and by cudaLaunchKernelExC
    where the kernel is a C symbol, which libraries launch with attributes."""
    driver, runtime = (
        np.array([name.startswith(call) for name in events.call_names], np.bool_)
        for call in _EXTENDED
    )
    symbol = np.array([not kernel.name.endswith(")") for kernel in events.kernel_names], np.bool_)
    call = events.kernels.call[launches]
    name = events.calls.name[call]
    is_extended: Mask = driver[name] | (runtime[name] & symbol[events.kernels.name[launches]])
    return is_extended & (call >= 0)


def own_device(events: Events, process: int) -> int | None:
    """The device of a process where others use other ones: ncu is then limited to it."""
    devices = {stream.device for stream in events.streams if stream.process == process}
    others = {stream.device for stream in events.streams if stream.process != process}
    return devices.pop() if others and len(devices) == 1 and not devices & others else None
