"""Which launches ncu is to profile: picked ones in steady state, in one run of the program.

ncu counts launches whose names match an expression (`--kernel-name`), skips some and profiles those
that follow. Of a steady program's launches with the names of the picks, the shortest sequence that
has every pick is chosen: 6 to 30 launches in timelines of training steps.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from profkit.application.ranking import Pick
from profkit.application.steps import Steps
from profkit.timeline.events import Events

Places: TypeAlias = npt.NDArray[np.intp]
Group: TypeAlias = tuple[int, int]

_SPECIAL = re.compile(r"[^\w ]")  # of expressions; ncu and nsys demangle alike
_EARLY_STEPS = 4  # steps that are searched first, so that the program may end soon; chosen
_MARGIN = 1  # launches more at an end, chosen: ncu may see one more or less before


class LaunchFilter(Struct, frozen=True):
    """What ncu is told: an expression for demangled names, how many launches to skip of those that
    match, and the durations (s) of those to profile."""

    kernel: str
    skip: int
    durations: tuple[float, ...]

    @property
    def launches(self) -> int:
        return len(self.durations)


def launch_filter(
    events: Events, steps: Sequence[Steps], picks: Sequence[Pick], *, before: int = _MARGIN
) -> LaunchFilter:
    """The filter for picks of one process, with so many launches `before` the first of them."""
    (process,) = {pick.process for pick in picks}
    kernels = events.kernels
    names = sorted({pick.name for pick in picks})
    launches = _launched(events, process)
    launches = launches[np.isin(kernels.name[launches], names)]
    groups = [
        (int(name), int(shape))
        for name, shape in zip(
            kernels.name[launches].tolist(), kernels.configuration[launches].tolist(), strict=True
        )
    ]
    wanted = {(pick.name, pick.configuration) for pick in picks}
    first, last = _window(groups, wanted, _ranges(events, steps, process, launches))
    first, last = max(0, first - before), min(len(groups), last + _MARGIN)
    chosen = launches[first:last]
    durations = (kernels.end[chosen] - kernels.start[chosen]) / 1e9
    expressions = [_SPECIAL.sub(".", events.kernel_names[name].name) for name in names]
    return LaunchFilter(f"^({'|'.join(expressions)})$", first, tuple(durations.tolist()))


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
    found = [np.flatnonzero((starts >= low) & (starts < high)) for low, high in spans]
    ranges = [(int(places[0]), int(places[-1]) + 1) for places in found if len(places)]
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
