"""Which launches ncu is to profile: picked ones in steady state, in one run of the program.

ncu counts the launches of each function (`--kernel-id`), and profiles those of the picked functions
whose number is one of a few, which are chosen so that the fewest launches have every pick.
Functions share these numbers: one number more is a launch more of each.

ncu 2025.3 doesn't see a launch by cuLaunchKernelEx or cudaLaunchKernelExC (cuBLAS, cuDNN) of a name
that the filter has where the launch of such a name before it was by another call, and doesn't count
it. Found by two training programs on an H100: 128 of 128 launches in a report are then as expected.
A function of such launches that is in the filter besides is passed over in place of the next.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from profkit.analysis.replay_plan import PER_PASS
from profkit.application.ranking import Pick
from profkit.application.steps import Steps
from profkit.timeline.events import Events

Places: TypeAlias = npt.NDArray[np.intp]
Group: TypeAlias = tuple[int, int]

_SPECIAL = re.compile(r"[^\w ]")  # of expressions; ncu and nsys demangle alike
_EXTENDED = re.compile(r"LaunchKernelEx")
_EARLY_STEPS = (2, 4, 8, 16, 32)  # that are searched, so that the program may end soon; chosen
_ALIKE = 0.1  # of a launch's time; chosen: then it is of the same work, whatever its step
_TRIED = 4  # functions that may hide, chosen: a choice reads all launches
_SPARE = 3  # launches behind the last pick, in place of what ncu doesn't meet; chosen


class LaunchFilter(Struct, frozen=True):
    """What ncu is told: an expression for demangled names, which invocations of each function, and
    the durations (s) of the launches that it then profiles."""

    kernel: str
    invocations: tuple[int, ...]
    durations: tuple[float, ...]

    @property
    def launches(self) -> int:
        return len(self.durations)


class _Launches:
    """The launches of functions that ncu sees, in order of their calls.

    `numbers` are the invocations of their function, from 1. `hiding` are other functions, by how
    often one comes before a wanted launch that isn't seen: with it that one is.
    """

    def __init__(
        self, events: Events, process: int, functions: Collection[int], wanted: Collection[Group]
    ) -> None:
        kernels = events.kernels
        every = _launched(events, process)
        extended = np.array([bool(_EXTENDED.search(name)) for name in events.call_names], np.bool_)
        call = kernels.call[every]
        is_extended = np.zeros(len(every), dtype=np.bool_)
        is_extended[call >= 0] = extended[events.calls.name[call[call >= 0]]]
        counts: Counter[int] = Counter()
        seen, self.hiding = [], Counter[int]()
        self.groups: list[Group] = []
        self.numbers: list[int] = []
        is_plain, others = False, set[int]()  # of the matching launch before; launches since
        rows = zip(
            every.tolist(),
            kernels.name[every].tolist(),
            kernels.configuration[every].tolist(),
            is_extended.tolist(),
            strict=True,
        )
        for row, name, shape, is_ex in rows:
            if name not in functions:
                if is_ex:
                    others.add(name)
                continue
            if is_ex and is_plain:
                if (name, shape) in wanted:
                    self.hiding.update(others)
            else:
                counts[name] += 1
                seen.append(row)
                self.groups.append((name, shape))
                self.numbers.append(counts[name])
            is_plain = not is_ex
            others.clear()
        self.rows = np.array(seen, dtype=np.intp)
        self.seconds = (kernels.end[self.rows] - kernels.start[self.rows]) / 1e9

    def like_steady(self, wanted: Collection[Group], low: int, high: int) -> list[int]:
        """The places of wanted groups up to `high` that take as long as those from `low` on."""
        places_of: dict[Group, list[int]] = {group: [] for group in wanted}
        for place, group in enumerate(self.groups[:high]):
            if group in places_of:
                places_of[group].append(place)
        alike: list[int] = []
        for places in map(np.array, places_of.values()):
            typical = np.median(self.seconds[places[places >= low]])
            near = np.abs(self.seconds[places] - typical) <= _ALIKE * typical
            alike += places[near | (places >= low)].tolist()
        return sorted(alike)


def launch_filter(
    events: Events, steps: Sequence[Steps], picks: Sequence[Pick]
) -> LaunchFilter | None:
    """The filter for picks of one process, without those that ncu doesn't see among the others;
    None where it sees none."""
    (process,) = {pick.process for pick in picks}
    wanted = {(pick.name, pick.configuration) for pick in picks}
    functions = {pick.name for pick in picks}
    launches = _Launches(events, process, functions, wanted)
    while missing := wanted - set(launches.groups):
        fuller = {
            name: _Launches(events, process, functions | {name}, wanted)
            for name, _ in launches.hiding.most_common(_TRIED)
        }
        left = {name: len(missing - set(more.groups)) for name, more in fuller.items()}
        best = min(left, key=left.__getitem__, default=-1)
        if best < 0 or left[best] == len(missing):
            break
        functions, launches = functions | {best}, fuller[best]
    wanted &= set(launches.groups)
    if not wanted:
        return None
    selections = [
        _fewest(launches, wanted, low, high)
        for low, high in _ranges(events, steps, process, launches.rows)
        if wanted <= set(launches.groups[low:high])
    ]
    numbers, places = min(
        selections, key=lambda chosen: float((launches.seconds[chosen[1]] + PER_PASS).sum())
    )
    expressions = [_SPECIAL.sub(".", events.kernel_names[name].name) for name in sorted(functions)]
    durations = tuple(launches.seconds[places].tolist())
    return LaunchFilter(f"^({'|'.join(expressions)})$", tuple(sorted(numbers)), durations)


def _fewest(
    launches: _Launches, wanted: Collection[Group], low: int, high: int
) -> tuple[set[int], list[int]]:
    """Numbers for the wanted groups between two places, and the places of the launches that are
    profiled: greedily the numbers that have the most groups for their launches (set cover), without
    those that turn out to add nothing."""
    numbers = launches.numbers
    times = np.bincount(numbers[:high], weights=launches.seconds[:high] + PER_PASS)
    places = launches.like_steady(wanted, low, high)
    groups: dict[int, dict[Group, int]] = {}
    for place in places:
        groups.setdefault(numbers[place], {}).setdefault(launches.groups[place], place)
    chosen: list[int] = []
    missing = set(wanted)
    while missing:
        gains = {number: len(missing & own.keys()) for number, own in groups.items()}
        best = max(gains, key=lambda number: (gains[number] / times[number], -number))
        chosen.append(best)
        missing -= groups[best].keys()
    for number in sorted(chosen, key=lambda number: -times[number]):
        rest = [other for other in chosen if other != number]
        if set().union(*(groups[other] for other in rest)) >= set(wanted):
            chosen = rest
    first: dict[Group, int] = {}
    for place in places:
        if numbers[place] in chosen:
            first.setdefault(launches.groups[place], place)
    last = max(first.values())
    early = set(numbers[: last + 1])
    spare = dict.fromkeys(number for number in numbers[last + 1 :] if number not in early)
    profiled = [place for place in range(last + 1) if numbers[place] in chosen]
    return {*chosen, *list(spare)[:_SPARE]}, profiled


def _launched(events: Events, process: int) -> Places:
    """The kernels of a process in order of their launch calls."""
    kernels = events.kernels
    own = np.array([stream.process == process for stream in events.streams], dtype=np.bool_)
    rows = np.flatnonzero(own[kernels.stream])
    call = kernels.call[rows]
    called = kernels.start[rows].copy()
    called[call >= 0] = events.calls.start[call[call >= 0]]
    return rows[np.lexsort((kernels.start[rows], called))]


def _ranges(
    events: Events, steps: Sequence[Steps], process: int, launches: Places
) -> list[tuple[int, int]]:
    """Where to search, first to last: the first steps, all steps, all launches."""
    starts = events.kernels.start[launches]
    spans = [
        (steady.bounds[0], end)
        for steady in steps
        if steady.process == process
        for end in (*(steady.bounds[: count + 1][-1] for count in _EARLY_STEPS), steady.bounds[-1])
    ]
    inside = [np.flatnonzero((starts >= low) & (starts < high)) for low, high in spans]
    ranges = [(int(places[0]), int(places[-1]) + 1) for places in inside if len(places)]
    return [*ranges, (0, len(launches))]


def own_device(events: Events, process: int) -> int | None:
    """The device of a process where others use other ones: ncu is then limited to it."""
    devices = {stream.device for stream in events.streams if stream.process == process}
    others = {stream.device for stream in events.streams if stream.process != process}
    return devices.pop() if others and len(devices) == 1 and not devices & others else None
