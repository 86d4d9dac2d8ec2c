"""Which modules of a torch program launch kernels, by the ranges that profkit injects into first
calls (`execution/injection/module_ranges.py` says how these are named)."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from msgspec import Struct
from msgspec.structs import replace

from profkit.timeline import intervals, nesting
from profkit.timeline.events import MODULE_PREFIX, Events, Indices, Ranges, Times

_COST = f"{MODULE_PREFIX}cost:"
Weights: TypeAlias = Mapping["ModuleLabel", float]


class ModuleLabel(Struct, frozen=True):
    """A name, of a module with its class, and the kind of its range: "forward", "backward" or
    "optimizer"; "" without one."""

    name: str = ""
    kind: str = ""

    @property
    def is_module(self) -> bool:
        return self.kind in {"forward", "backward"}

    @property
    def path(self) -> str:
        return self.name.rpartition(" (")[0] or self.name


def cost(events: Events, process: int) -> tuple[int, int, Times]:
    """The injected ranges of a process: their number, ns that they took the host, and starts."""
    is_cost = np.array([name.startswith(_COST) for name in events.range_names], np.bool_)
    own = events.modules.process == process
    told = is_cost[events.modules.name] & own
    texts = [events.range_names[name].split(":") for name in events.modules.name[told]]
    known = [
        (int(each[2]), int(each[3]))
        for each in texts
        if len(each) == 4 and all(word.isdecimal() for word in each[2:])
    ]
    return *max(known, default=(0, 0)), events.modules.start[own & ~told]


def launches(events: Events, process: int, pause: int) -> Mapping[tuple[int, int], Weights]:
    """Of each kernel and configuration of a process how many launches each module has, those of
    their first calls, in which an autotuner may run, only where there are no others. Launches
    without a module count until `pause` ns after a range, in which the next one begins."""
    weights: dict[tuple[int, int], Weights] = {}
    for call in ("first", "later"):
        counts: dict[tuple[int, int], dict[ModuleLabel, float]] = defaultdict(dict)
        for (name, shape, label), count in _in_calls(events, process, pause, call):
            counts[name, shape][label] = count
        for code, known in counts.items():
            if code not in weights or any(label.name for label in known):
                weights[code] = known
    return weights


def _in_calls(
    events: Events, process: int, pause: int, call: str
) -> Iterator[tuple[tuple[int, int, ModuleLabel], float]]:
    """Launches by kernel, configuration and module while calls of modules have ranges."""
    prefix = f"{MODULE_PREFIX}{call}:"
    is_named = np.array([name.startswith(prefix) for name in events.range_names], np.bool_)
    own = is_named[events.modules.name] & (events.modules.process == process)
    columns = (getattr(events.modules, name) for name in Ranges.__struct_fields__)
    ranges = Ranges(*(column[own] for column in columns))
    if not len(ranges):
        return
    start, end = intervals.union(ranges.start, ranges.end + pause)
    calls = nesting.launching_calls(events)
    of_process = np.array([stream.process for stream in events.streams]) == process
    rows = np.flatnonzero((calls >= 0) & of_process[events.kernels.stream])
    times = events.calls.start[calls[rows]]
    place = np.searchsorted(start, times, side="right") - 1
    rows = rows[(place >= 0) & (times < end[place] - pause)]
    around = nesting.around(replace(events, ranges=ranges), calls[rows])
    labels = [_label(path, prefix) for path in around.paths]
    numbers = {label: number for number, label in enumerate(dict.fromkeys(labels))}
    label = np.array([numbers[each] for each in labels], np.int32)[around.path]
    kernels, named = events.kernels, list(numbers)
    for (name, shape, number), count in sums_of(
        (kernels.name[rows], kernels.configuration[rows], label)
    ):
        yield (name, shape, named[number]), count


def _label(path: Sequence[str], prefix: str) -> ModuleLabel:
    kind, _, name = path[-1].removeprefix(prefix).partition(":") if path else ("", "", "")
    return ModuleLabel(name, kind)


def by_kernel(weights: Mapping[tuple[int, int], Weights]) -> Mapping[int, Weights]:
    """The same over all configurations of a kernel, for those that the calls lack."""
    sums: dict[int, dict[ModuleLabel, float]] = defaultdict(lambda: defaultdict(float))
    for (name, _), known in weights.items():
        for label, weight in known.items():
            sums[name][label] += weight
    return sums


def sums_of(
    columns: Sequence[Indices], amounts: npt.NDArray[np.floating] | None = None
) -> Iterator[tuple[tuple[int, ...], float]]:
    """Different rows of columns, with the sum of their amounts, or their number."""
    sizes = [int(column.max(initial=0)) + 1 for column in columns]
    codes = np.ravel_multi_index(tuple(columns), sizes)
    known, places = np.unique(codes, return_inverse=True)
    sums = np.bincount(places, weights=amounts, minlength=len(known))
    rows = np.stack(np.unravel_index(known, sizes), axis=1)
    for row, amount in zip(rows.tolist(), sums.tolist(), strict=True):
        yield tuple(row), amount
