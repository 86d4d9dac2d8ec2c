"""Which launches ncu is to profile: picked ones in steady state, in one run of the program.

By invocation: ncu counts the launches of each function (`--kernel-id`), and profiles those of the
picked functions whose number is one of a few, which are chosen so that the fewest launches have
every pick. Functions share these numbers: one number more is a launch more of each.

In sequence: ncu counts launches whose names match an expression (`--kernel-name`), skips some and
profiles those that follow: the shortest sequence that has every pick.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
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
_EARLY_STEPS = 4  # steps that are searched first, so that the program may end soon; chosen
_SPARE = (
    3  # launches behind the last pick that ncu profiles in place of what it doesn't meet; chosen
)


class LaunchFilter(Struct, frozen=True):
    """What ncu is told: an expression for demangled names, which invocations of each function, or
    else how many launches to skip of those that match, and the durations (s) of those to profile.
    """

    kernel: str
    durations: tuple[float, ...]
    skip: int | None = None
    invocations: tuple[int, ...] = ()

    @property
    def launches(self) -> int:
        return len(self.durations)


class _Launches:
    """The launches of the functions of picks, in order of their calls.

    `numbers` are the invocations of their function, from 1, `behind` the place of the launch
    directly before, -1 where that is of another function.
    """

    def __init__(self, events: Events, steps: Sequence[Steps], picks: Sequence[Pick]) -> None:
        (process,) = {pick.process for pick in picks}
        kernels = events.kernels
        every = _launched(events, process)
        functions = sorted({pick.name for pick in picks})
        matching = np.flatnonzero(np.isin(kernels.name[every], functions))
        rows = every[matching]
        names = kernels.name[rows]
        self.groups: list[Group] = list(
            zip(names.tolist(), kernels.configuration[rows].tolist(), strict=True)
        )
        self.wanted = {(pick.name, pick.configuration) for pick in picks}
        self.seconds = (kernels.end[rows] - kernels.start[rows]) / 1e9
        expressions = [_SPECIAL.sub(".", events.kernel_names[name].name) for name in functions]
        self.kernel = f"^({'|'.join(expressions)})$"
        self.numbers = np.zeros(len(rows), dtype=np.intp)
        for name in functions:
            own = names == name
            self.numbers[own] = np.arange(1, own.sum() + 1)
        self.behind = np.full(len(rows), -1)
        adjacent = np.flatnonzero(np.diff(matching) == 1) + 1
        self.behind[adjacent] = adjacent - 1
        self.ranges = _ranges(events, steps, process, rows)


def by_invocation(
    events: Events, steps: Sequence[Steps], picks: Sequence[Pick]
) -> LaunchFilter | None:
    """The filter for picks of one process by the invocations of their functions; None where
    the timeline lacks one of them.

    Picks directly behind a launch that is profiled are avoided: of cuBLAS and cuDNN ncu 2025.3
    doesn't meet some there (H200).
    """
    launches = _Launches(events, steps, picks)
    for low, high in launches.ranges:
        if launches.wanted <= set(launches.groups[low:high]):
            return _fewest(launches, low, high)
    return None


def _fewest(launches: _Launches, low: int, high: int) -> LaunchFilter:
    """The filter for the wanted groups between two places: greedily the numbers that have the most
    of them for the time of their launches (set cover)."""
    inside = launches.numbers[:high]
    replay = launches.seconds[:high] + PER_PASS
    times = np.bincount(inside, weights=replay)
    places = [place for place in range(low, high) if launches.groups[place] in launches.wanted]
    chosen: set[int] = set()
    missing = set(launches.wanted)
    for alone in (True, False):  # at first without those that are directly behind another
        while missing:
            gains: dict[int, set[Group]] = {}
            for place in places:
                number, before = int(inside[place]), int(launches.behind[place])
                if launches.groups[place] not in missing:
                    continue
                if alone and before >= 0 and int(inside[before]) in {number, *chosen}:
                    continue
                gains.setdefault(number, set()).add(launches.groups[place])
            if not gains:
                break
            number = min(gains, key=lambda number: (times[number] / len(gains[number]), number))
            chosen.add(number)
            missing = launches.wanted - _met(launches, places, chosen, alone=alone).keys()
    last = max(_met(launches, places, chosen, alone=False).values())
    picked = np.flatnonzero(np.isin(inside[: last + 1], list(chosen)))
    early = set(inside[: last + 1].tolist())
    later = [number for number in launches.numbers[last + 1 :].tolist() if number not in early]
    spare = list(dict.fromkeys(later))[:_SPARE]
    durations = tuple(launches.seconds[picked].tolist())
    return LaunchFilter(launches.kernel, durations, invocations=tuple(sorted({*chosen, *spare})))


def _met(
    launches: _Launches, places: Sequence[int], chosen: set[int], *, alone: bool
) -> dict[Group, int]:
    """The wanted groups that numbers have, with the first place of each."""
    met: dict[Group, int] = {}
    for place in places:
        before = int(launches.behind[place])
        hidden = alone and before >= 0 and int(launches.numbers[before]) in chosen
        if int(launches.numbers[place]) in chosen and not hidden:
            met.setdefault(launches.groups[place], place)
    return met


def in_sequence(events: Events, steps: Sequence[Steps], picks: Sequence[Pick]) -> LaunchFilter:
    """The filter for picks of one process: the shortest sequence that has them."""
    launches = _Launches(events, steps, picks)
    first, last = _window(launches.groups, launches.wanted, launches.ranges)
    last = min(len(launches.groups), last + 1)  # ncu may see one more before
    return LaunchFilter(launches.kernel, tuple(launches.seconds[first:last].tolist()), skip=first)


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
        for end in (steady.bounds[: _EARLY_STEPS + 1][-1], steady.bounds[-1])
    ]
    inside = [np.flatnonzero((starts >= low) & (starts < high)) for low, high in spans]
    ranges = [(int(places[0]), int(places[-1]) + 1) for places in inside if len(places)]
    return [*ranges, (0, len(launches))]


def _window(
    groups: Sequence[Group], wanted: set[Group], ranges: Sequence[tuple[int, int]]
) -> tuple[int, int]:
    """The shortest sequence that has each wanted group, from the first range that has one."""
    for low, high in ranges:
        window = _shortest(groups[low:high], wanted)
        if window is not None:
            return low + window[0], low + window[1]
    return 0, len(groups)


def _shortest(groups: Sequence[Group], wanted: set[Group]) -> tuple[int, int] | None:
    best: tuple[int, int] | None = None
    inside: Counter[Group] = Counter()
    first = 0
    for last, group in enumerate(groups, 1):
        if group in wanted:
            inside[group] += 1
        while len(inside) == len(wanted):
            if best is None or last - first < best[1] - best[0]:
                best = first, last
            left = groups[first]
            first += 1
            if left in wanted:
                inside[left] -= 1
                if not inside[left]:
                    del inside[left]
    return best


def own_device(events: Events, process: int) -> int | None:
    """The device of a process where others use other ones: ncu is then limited to it."""
    devices = {stream.device for stream in events.streams if stream.process == process}
    others = {stream.device for stream in events.streams if stream.process != process}
    return devices.pop() if others and len(devices) == 1 and not devices & others else None
