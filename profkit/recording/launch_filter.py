"""Which launches ncu is to profile: picked ones in steady state, in one run of the program.

ncu's `--kernel-id` matches a name, and the number of a launch among those with its name, grid,
block and shared memory, both as regular expressions. Picks can share a number, so that the names
and a few numbers cover all of them with few other launches.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from profkit.application.ranking import Pick
from profkit.application.steps import Steps
from profkit.timeline.events import Events, Times

Places: TypeAlias = npt.NDArray[np.intp]

_SPECIAL = re.compile(r"[^\w ]")  # a colon would end the name, the others are of expressions
_MIDDLE = (0.25, 0.75)  # quantiles, chosen: a launch of middle duration stands for the others


@dataclass(frozen=True)
class LaunchFilter:
    """What ncu is told: `kernel_id`, how many launches match until the last pick, their durations
    (s), the only `device` (None: all), and when (s) the last of them was launched."""

    kernel_id: str
    durations: tuple[float, ...]
    device: int | None
    reached: float

    @property
    def launches(self) -> int:
        return len(self.durations)


def launch_filter(events: Events, steps: Sequence[Steps], picks: Sequence[Pick]) -> LaunchFilter:
    """The filter for picks of one process."""
    (process,) = {pick.process for pick in picks}
    streams = events.streams
    of_process = np.array([stream.process == process for stream in streams], dtype=np.bool_)
    launches = np.flatnonzero(of_process[events.kernels.stream])  # in order of their starts
    numbers = _numbers(events, launches)
    wanted = {pick: _candidates(events, steps, launches, numbers, pick) for pick in picks}
    chosen = _cover(wanted)
    names = sorted({pick.name for pick in picks})
    named = np.isin(events.kernels.name[launches], names)
    matching = np.flatnonzero(named & np.isin(numbers, chosen))
    last = max(int(matching[_is_of(events, launches[matching], pick)][0]) for pick in picks)
    matching = launches[matching[matching <= last]]
    start, end = events.kernels.start[matching], events.kernels.end[matching]
    expressions = [_SPECIAL.sub(".", events.kernel_names[name].name) for name in names]
    return LaunchFilter(
        f"::regex:^({'|'.join(expressions)})$:^({'|'.join(map(str, chosen))})$",
        tuple(((end - start) / 1e9).tolist()),
        _own_device(events, process),
        float(start.max(initial=0)) / 1e9,
    )


def _numbers(events: Events, launches: Places) -> Times:
    """The number of each launch, from 1, among those with its name and configuration."""
    kernels = events.kernels
    keys = kernels.name[launches].astype(np.int64) * len(events.configurations)
    keys += kernels.configuration[launches]
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    first = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1])))
    sizes = np.diff(np.append(first, len(keys)))
    numbers = np.empty(len(keys), dtype=np.int64)
    numbers[order] = np.arange(len(keys)) - np.repeat(first, sizes) + 1
    return numbers


def _is_of(events: Events, launches: Places, pick: Pick) -> npt.NDArray[np.bool_]:
    kernels = events.kernels
    alike: npt.NDArray[np.bool_] = kernels.name[launches] == pick.name
    alike &= kernels.configuration[launches] == pick.configuration
    return alike


def _candidates(
    events: Events, steps: Sequence[Steps], launches: Places, numbers: Times, pick: Pick
) -> frozenset[int]:
    """The numbers of the pick's launches in steady state that have a middle duration."""
    group = _is_of(events, launches, pick)
    starts = events.kernels.start[launches]
    for steady in steps:
        if steady.process == pick.process:
            step = np.searchsorted(steady.bounds, starts, side="right") - 1
            inside = group & (step >= 0) & (step < len(steady))
            inside[inside] = steady.typical[step[inside]]
            group = inside if inside.any() else group
    durations = (events.kernels.end - events.kernels.start)[launches]
    low, high = np.quantile(durations[group], _MIDDLE, method="nearest")
    middle = group & (durations >= low) & (durations <= high)
    return frozenset(numbers[middle].tolist())


def _cover(wanted: Mapping[Pick, frozenset[int]]) -> list[int]:
    """Few numbers of which each pick wants one; small ones, so that the program ends soon."""
    chosen: list[int] = []
    left = dict(wanted)
    while left:
        counts = Counter(number for numbers in left.values() for number in numbers)
        best = max(counts, key=lambda number: (counts[number], -number))
        chosen.append(best)
        left = {pick: numbers for pick, numbers in left.items() if best not in numbers}
    return sorted(chosen)


def _own_device(events: Events, process: int) -> int | None:
    """The device of a process where others use other ones: ncu is then limited to it."""
    devices = {stream.device for stream in events.streams if stream.process == process}
    others = {stream.device for stream in events.streams if stream.process != process}
    return devices.pop() if others and len(devices) == 1 and not devices & others else None
