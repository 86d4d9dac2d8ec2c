"""Which kernels an application's step is made of, and which launches represent them."""

from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np
from msgspec import Struct

from profkit.application.kernel_kinds import COMMUNICATION, kernel_traits, kernels_of
from profkit.application.parts import KERNELS, StepParts
from profkit.application.steps import Steps
from profkit.core.typed_file import part
from profkit.timeline.events import Events
from profkit.timeline.work import Mask, dense, streams_of

EXPLAINED = 0.9
"""Share of the time of kernels that the picked ones explain, unless asked for another."""
_MOST_PICKS = 24  # launches, chosen: ncu takes a fraction of a second for each
_MOST_OF_GROUP = 6  # shapes of a group, chosen: a matrix product of a layer, forward and backward
_EARLY_STEPS = 3  # from which a launch is picked, so that a second run may end early; chosen
_BITS = 42  # of a duration in ns: more than an hour


class KernelUse(Struct, frozen=True):
    """A kernel with one launch configuration: `name` and `configuration` index the events' tables.

    `time` is its time on the GPU's critical path in all typical steps, in ns, `share` that of the
    steps' wall time; where kernels overlap, each has an equal share of the time. `launches` is the
    number in these steps, `median` their duration in ns.
    """

    name: int
    configuration: int
    group: str
    time: float
    share: float
    launches: int
    median: float


class Pick(Struct, frozen=True):
    """A launch to profile, for a kernel with its launch configuration.

    `name` and `configuration` index the tables of the events; `kernel` is the launch's index in
    `Events.kernels`. `share` is of the step's wall time on the GPU's critical path. `launch_index`
    counts all kernel launches of the process in order of their launch calls from 0, collectives
    included, `skip` those of the same name alone; `nvtx` are the names of the ranges around the
    launch call, outermost first. `process` and `device` say where it ran.
    """

    process: int
    device: int
    name: int
    configuration: int
    kernel: int
    share: float
    launch_index: int
    skip: int
    nvtx: tuple[str, ...]
    group: str = ""


class Ranking(Struct, frozen=True):
    """The kernels of a step, most time first, and the launches that represent them.

    `explained` is the share of the kernels' time that the groups of the picked ones have, `own`
    that of the picked names and configurations alone. Collectives are no part of it; `unknown` is
    the share of graphs whose kernels are unknown. `steps` are those that the kernels are of.
    """

    kernels: tuple[KernelUse, ...]
    picks: tuple[Pick, ...]
    explained: float
    own: float
    unknown: float
    steps: int


def ranking(events: Events, parts: StepParts, explain: float = EXPLAINED) -> Ranking:
    """The kernels of the typical steps by their time on the critical path."""
    uses = _uses(events, parts)
    known = sum(use.time for use in uses)
    times: dict[str, float] = defaultdict(float)
    for use in uses:
        times[use.group] += use.time
    picked = _chosen(uses, times, explain)
    reached = sum(times[group] for group in {use.group for use in picked})
    whole = sum(float(part.times.sum()) for part in parts.group(KERNELS)) or known or 1.0
    return Ranking(
        kernels=uses,
        picks=_picks(events, parts.steps, picked),
        explained=reached / whole,
        own=sum(use.time for use in picked) / whole,
        unknown=max(0.0, whole - known) / whole if parts.group(KERNELS) else 0.0,
        steps=len(parts.wall),
    )


def _chosen(
    uses: Sequence[KernelUse], times: Mapping[str, float], explain: float
) -> list[KernelUse]:
    """Kernels by time until their groups, and most of each group, have a share of the time."""
    picked: list[KernelUse] = []
    reached = 0.0
    for group in sorted(times, key=lambda each: -times[each]):
        if reached >= explain * sum(times.values()) or len(picked) >= _MOST_PICKS:
            break
        own = [use for use in uses if use.group == group]
        covered = np.cumsum([use.time for use in own])
        count = int(np.searchsorted(covered, explain * times[group])) + 1
        picked += own[: min(count, _MOST_OF_GROUP, _MOST_PICKS - len(picked))]
        reached += times[group]
    return picked


def _uses(events: Events, parts: StepParts) -> tuple[KernelUse, ...]:
    kernels, steps = events.kernels, parts.steps
    inside = steps.has(kernels.start)
    own = np.flatnonzero((parts.kernel_time > 0) | (inside & _untimed(events, steps)))
    if not len(own):
        return ()
    shapes = len(events.configurations)
    codes = kernels.name[own].astype(np.int64) * shapes + kernels.configuration[own]
    group = dense(codes)
    groups = np.zeros(int(group.max()) + 1, dtype=np.int64)
    groups[group] = codes
    times = np.bincount(group, weights=parts.kernel_time[own])
    counts = np.bincount(group)
    launches = np.bincount(group, weights=inside[own])
    durations = np.minimum(kernels.end[own] - kernels.start[own], (1 << _BITS) - 1)
    ordered = np.sort((group.astype(np.int64) << _BITS) + durations)  # by group, then duration
    middles = ordered[np.cumsum(counts) - counts + counts // 2] & ((1 << _BITS) - 1)
    return tuple(
        KernelUse(
            name=int(groups[place] // shapes),
            configuration=int(groups[place] % shapes),
            group=kernel_traits(events.kernel_names[int(groups[place] // shapes)].name).group,
            time=float(times[place]),
            share=float(times[place]) / parts.total,
            launches=int(launches[place]),
            median=float(middles[place]),
        )
        for place in np.argsort(-times, kind="stable")
    )


def _untimed(events: Events, steps: Steps) -> Mask:
    """Kernels of a process that are shorter than the GPU's timer tells."""
    kernels = events.kernels
    own = streams_of(events, steps.process, steps.device)[kernels.stream]
    is_untimed: Mask = kernels.end == kernels.start
    return own & is_untimed & ~kernels_of(events, COMMUNICATION)


def _picks(events: Events, steps: Steps, uses: list[KernelUse]) -> tuple[Pick, ...]:
    kernels = events.kernels
    rows = np.flatnonzero(streams_of(events, steps.process)[kernels.stream])
    called = kernels.start[rows].copy()
    known = kernels.call[rows] >= 0
    called[known] = events.calls.start[kernels.call[rows][known]]
    order = np.lexsort((kernels.start[rows], called))  # launches of a call in order of their start
    rows, called = rows[order], called[order]
    early_end = steps.call_bounds[np.flatnonzero(steps.typical)[:_EARLY_STEPS][-1] + 1]
    inside = steps.has(called, calls=True) & (called < early_end)
    candidates = np.flatnonzero(inside)
    picks = []
    for use in uses:
        shape = kernels.configuration[rows[candidates]] == use.configuration
        early = candidates[shape & (kernels.name[rows[candidates]] == use.name)]
        if not len(early):
            named = kernels.name[rows] == use.name
            early = np.flatnonzero(named & (kernels.configuration[rows] == use.configuration))
        durations = kernels.end[rows[early]] - kernels.start[rows[early]]
        index = int(early[int(np.argmin(np.abs(durations - use.median)))])
        picks.append(
            Pick(
                **part(steps, "process", "device"),
                **part(use, "name", "configuration", "share", "group"),
                kernel=int(rows[index]),
                launch_index=index,
                skip=int((kernels.name[rows[:index]] == use.name).sum()),
                nvtx=nvtx_path(events, int(kernels.call[rows[index]])),
            )
        )
    return tuple(picks)


def nvtx_path(events: Events, call: int) -> tuple[str, ...]:
    """The names of the NVTX ranges around a call, outermost first."""
    if call < 0:
        return ()
    ranges, thread = events.ranges, events.calls.thread[call]
    process = events.threads[thread].process
    own = (ranges.thread == thread) | ((ranges.thread < 0) & (ranges.process == process))
    around = (ranges.start <= events.calls.start[call]) & (ranges.end >= events.calls.end[call])
    rows = np.flatnonzero(own & around)
    rows = rows[np.lexsort((-ranges.end[rows], ranges.start[rows]))]
    return tuple(events.range_names[number] for number in ranges.name[rows])
