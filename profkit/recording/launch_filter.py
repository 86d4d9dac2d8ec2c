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
_EARLY_STEPS = (2, 4, 8, 16, 32)  # that are searched, so that the program may end soon; chosen
_HIDDEN = 0.2  # s of a pass; chosen: a second run takes as long as ten such picks
_ALIKE = 0.1  # of a launch's time; chosen: then it is of the same work, whatever its step
_SPARE = 3  # launches behind the last pick, in place of what ncu doesn't meet; chosen


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

    def is_hidden(self, place: int, chosen: Collection[int]) -> bool:
        """Whether numbers have the launch directly before one."""
        before = int(self.behind[place])
        return before >= 0 and int(self.numbers[before]) in chosen

    def met(
        self, places: Sequence[int], chosen: Collection[int], *, alone: bool
    ) -> dict[Group, int]:
        """The groups that numbers have at some places, with the first of each; `alone`: where the
        launch before is not profiled."""
        met: dict[Group, int] = {}
        for place in places:
            if int(self.numbers[place]) in chosen and not (alone and self.is_hidden(place, chosen)):
                met.setdefault(self.groups[place], place)
        return met

    def like_steady(self, low: int, high: int) -> list[int]:
        """The places of wanted groups up to `high` that take as long as those from `low` on."""
        rows: dict[Group, list[int]] = {group: [] for group in self.wanted}
        for place, group in enumerate(self.groups[:high]):
            if group in rows:
                rows[group].append(place)
        alike: list[int] = []
        for places in map(np.array, rows.values()):
            typical = np.median(self.seconds[places[places >= low]])
            near = np.abs(self.seconds[places] - typical) <= _ALIKE * typical
            alike += places[near | (places >= low)].tolist()
        return sorted(alike)


def by_invocation(
    events: Events, steps: Sequence[Steps], picks: Sequence[Pick]
) -> LaunchFilter | None:
    """The filter for picks of one process by the invocations of their functions; None where
    the timeline lacks one of them.

    Picks directly behind a launch that is profiled are avoided: of cuBLAS and cuDNN ncu 2025.3
    doesn't meet some there (H200).
    """
    launches = _Launches(events, steps, picks)
    selections = [
        _fewest(launches, low, high)
        for low, high in launches.ranges
        if launches.wanted <= set(launches.groups[low:high])
    ]
    best = min(selections, key=lambda selection: selection[0], default=None)
    return best and best[1]


def _fewest(launches: _Launches, low: int, high: int) -> tuple[float, LaunchFilter]:
    """The filter for the wanted groups between two places, and what it costs in seconds of a
    replay pass: greedily the numbers that have the most groups for their launches (set cover),
    without those that turn out to add nothing."""
    inside = launches.numbers[:high]
    times = np.bincount(inside, weights=launches.seconds[:high] + PER_PASS)
    places = launches.like_steady(low, high)
    chosen: set[int] = set()
    for alone in (True, False):  # at first without those that are directly behind another
        while missing := launches.wanted - launches.met(places, chosen, alone=alone).keys():
            gains: dict[int, set[Group]] = {}
            for place in places:
                if launches.groups[place] in missing:
                    number = int(inside[place])
                    if not (alone and launches.is_hidden(place, {number, *chosen})):
                        gains.setdefault(number, set()).add(launches.groups[place])
            if not gains:
                break
            chosen.add(min(gains, key=lambda number: (times[number] / len(gains[number]), number)))
    met = launches.met(places, chosen, alone=True)
    for number in sorted(chosen, key=lambda number: -times[number]):
        rest = chosen - {number}
        if (
            launches.met(places, rest, alone=True).keys() == met.keys()
            and launches.met(places, rest, alone=False).keys() == launches.wanted
        ):
            chosen = rest
    met = launches.met(places, chosen, alone=True)
    last = max((launches.met(places, chosen, alone=False) | met).values())
    picked = np.flatnonzero(np.isin(inside[: last + 1], list(chosen)))
    early = set(inside[: last + 1].tolist())
    later = [number for number in launches.numbers[last + 1 :].tolist() if number not in early]
    numbers = {*chosen, *list(dict.fromkeys(later))[:_SPARE]}
    durations = launches.seconds[picked]
    seconds = float((durations + PER_PASS).sum()) + _HIDDEN * (len(launches.wanted) - len(met))
    selection = LaunchFilter(
        launches.kernel, tuple(durations.tolist()), invocations=tuple(sorted(numbers))
    )
    return seconds, selection


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
        for end in (*(steady.bounds[: count + 1][-1] for count in _EARLY_STEPS), steady.bounds[-1])
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
