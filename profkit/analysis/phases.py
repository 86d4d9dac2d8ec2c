"""The life of a kernel by its PM samples: what was busy when, and where it starts and runs out.

A sample is the mean over one interval of a fixed length. ncu samples from before the launch until
after it, so the kernel is cut out where SMs have work. The *driver* is the resource that the kernel
used most. Its rate of work is the one that half of its work was done at or above (the median by
work, not by time, so that a long tail does not pass for the kernel). Samples of at least half of
that are its plateau, their median is the *steady rate*, and the phases are:

- prologue: from the kernel's start until the driver first reaches half of the steady rate,
- steady: until it was last at half or above,
- tail: from there until the kernel's end.

The driver is smoothed for that by a running median over five samples, which keeps the place of an
edge and takes out what is shorter than three samples. A boundary is known to one sample.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from profkit.ingest.time_series import Series

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Samples = NDArray[np.float64]

FEWEST_SAMPLES = 20
"""A phase's boundary is known to a sample: with fewer, not to 5% of the kernel's life."""

HALF = 0.5
_SMOOTHED = 5
_OWN_ACTIVITY = 0.05

ACTIVE_CYCLES, ACTIVE_IPC = "sm_active_cycles", "ipc_active"
CLUSTERS = "clusters_active"
LABELS: Mapping[str, tuple[str, str]] = {
    "tensor_busy": ("Tensor pipe", "1"),
    "fma_busy": ("FMA pipe", "1"),
    "fp64_busy": ("FP64 pipe", "1"),
    "issue_busy": ("Issue slots", "1"),
    "l1_busy": ("L1 and shared memory", "1"),
    "l2_busy": ("L2", "1"),
    "dram_busy": ("DRAM", "1"),
    "sm_active": ("SMs with a block", "1"),
    "warps_active": ("Warps a TPC", "warp"),
    CLUSTERS: ("Clusters a GPC", "cluster"),
    "blocks_launched": ("Blocks launched", "block"),
}
"""The tracks in the order they are shown: label and unit."""

BUSY = tuple(name for name, (_, unit) in LABELS.items() if unit == "1" and name != "sm_active")
"""The tracks that may be the driver: shares of what the resource can do at most."""


@dataclass(frozen=True)
class Track:
    """One quantity over the kernel's life.

    `times` are the starts of its intervals, seconds since the kernel's start; a value holds for its
    interval (NaN where it can't be told). `unit` is "1" for a share. `name` is the catalogue's
    series; `sm_active`, the share of SMs' cycles with a block on them, is derived.
    """

    name: str
    label: str
    unit: str
    times: Samples
    values: Samples


@dataclass(frozen=True)
class Phase:
    """A part of the kernel's life: `name` is prologue, steady or tail; seconds since its start."""

    name: str
    start: float
    end: float

    @property
    def seconds(self) -> float:
        return self.end - self.start


@dataclass(frozen=True)
class KernelTimeline:
    """What a launch did over its life, from PM samples.

    `duration` is ncu's (s), from another pass. `start` and `end` (s) bound the kernel in the
    samples: 0 and its sampled length. `phases` leave out the empty ones; without any, `notes` say
    why. `steady` has each track's median over the steady phase, in the track's unit. `below_half`
    is the share of the kernel's samples in which the track `driver` is below half of its steady
    rate, NaN without phases. `period` is the length of a sample's interval (s).
    """

    launch: int
    duration: float
    start: float
    end: float
    tracks: tuple[Track, ...]
    phases: tuple[Phase, ...]
    steady: Mapping[str, float]
    below_half: float
    driver: str
    notes: tuple[str, ...]
    period: float

    def track(self, name: str) -> Track | None:
        """A track by its name; None where it was not sampled."""
        return next((track for track in self.tracks if track.name == name), None)

    def share(self, phase: str) -> float:
        """A phase's share of the kernel's life: 0 for one that it lacks, NaN without phases."""
        if not self.phases:
            return math.nan
        seconds = sum(one.seconds for one in self.phases if one.name == phase)
        return seconds / (self.end - self.start)


@dataclass(frozen=True)
class Course:
    """The phases of one sampled signal, in samples: steady from `first` up to `past`."""

    first: int
    past: int
    rate: float
    below_half: float


def course(values: Sequence[float] | Samples) -> Course | None:
    """Where a signal is steady; None where it is never above 0. NaN counts as 0."""
    import numpy as np
    from scipy.ndimage import median_filter

    raw = np.nan_to_num(np.asarray(values, dtype=float))
    smooth = median_filter(raw, size=min(_SMOOTHED, len(raw)), mode="nearest") if len(raw) else raw
    if not smooth.sum() > 0:
        return None
    plateau = smooth[smooth >= HALF * _median_by_work(smooth)]
    rate = float(np.median(plateau))
    above = np.flatnonzero(smooth >= HALF * rate)
    below = float(np.mean(raw < HALF * rate))
    return Course(int(above[0]), int(above[-1]) + 1, rate, below)


def _median_by_work(values: Samples) -> float:
    """The rate that half of all work was done at or above."""
    import numpy as np

    ordered = np.sort(values)
    work = np.cumsum(ordered)
    return float(ordered[np.searchsorted(work, work[-1] / 2)])


def kernel_timeline(
    launch: int,
    duration: float,
    sampled: Mapping[str, Series],
    *,
    schedulers: int = 0,
    several: bool = False,
) -> KernelTimeline | None:
    """The timeline of a launch from its series by catalogue name; None where SMs were not sampled.

    `duration` is ncu's, in seconds; `schedulers` an SM has (0 where unknown); `several` for a range
    of launches replayed as one, which has no phases.
    """
    import numpy as np

    activity = sampled.get(ACTIVE_CYCLES)
    active = np.flatnonzero(activity.values) if activity else np.array([])
    if activity is None or not len(active):
        return None
    first, past = int(active[0]), int(active[-1]) + 1
    period = _period(activity)
    times = np.asarray(activity.times)[first:past] - activity.times[first]
    length = float(times[-1]) + period
    notes: list[str] = []
    cut: dict[str, tuple[Samples, Samples]] = {}
    for name, series in sampled.items():
        if series.stamp == activity.stamp and len(series.times) == len(activity.times):
            cut[name] = (times, np.asarray(series.values, dtype=float)[first:past])
        elif found := _aligned(series, length):
            cut[name] = found
            notes.append(f"{name}: sampled in another pass, aligned by its own first activity")
    cycles = _cycles(cut, schedulers)
    if cycles is not None:
        cut["sm_active"] = (times, np.minimum(cut[ACTIVE_CYCLES][1] / cycles, 1.0))
    _settle_clusters(cut, cycles)
    tracks = tuple(
        Track(name, label, unit, *cut[name])
        for name, (label, unit) in LABELS.items()
        if name in cut
    )
    empty = KernelTimeline(
        launch, duration, 0.0, length, tracks, (), {}, math.nan, "", tuple(notes), period
    )
    return _with_phases(empty, len(times), several=several)


def _with_phases(timeline: KernelTimeline, samples: int, *, several: bool) -> KernelTimeline:
    import numpy as np

    busy = {
        track.name: float(np.nanmean(track.values)) for track in timeline.tracks if _drives(track)
    }
    driver = max(busy, key=lambda name: busy[name], default="")
    found = course(_of(timeline, driver).values) if driver else None
    why = ""
    if several:
        why = "no phases: a range of launches, sampled as one"
    elif samples < FEWEST_SAMPLES:
        why = f"no phases: {samples} samples of the kernel, {FEWEST_SAMPLES} are needed"
    elif found is None:
        why = "no phases: nothing that was sampled is busy"
    if why or found is None:
        return replace(timeline, driver=driver, notes=(*timeline.notes, why))
    times = _of(timeline, driver).times
    edges = [*(float(time) for time in times), timeline.end]
    parts = (
        Phase("prologue", 0.0, edges[found.first]),
        Phase("steady", edges[found.first], edges[found.past]),
        Phase("tail", edges[found.past], timeline.end),
    )
    steady = {track.name: _median(track, parts[1]) for track in timeline.tracks}
    return replace(
        timeline,
        phases=tuple(part for part in parts if part.seconds > 0),
        steady=steady,
        below_half=found.below_half,
        driver=driver,
    )


def _drives(track: Track) -> bool:
    import numpy as np

    return track.name in BUSY and bool(np.isfinite(track.values).any())


def _of(timeline: KernelTimeline, name: str) -> Track:
    return next(track for track in timeline.tracks if track.name == name)


def _median(track: Track, phase: Phase) -> float:
    import numpy as np

    inside = track.values[(track.times >= phase.start) & (track.times < phase.end)]
    known = inside[np.isfinite(inside)]
    return float(np.median(known)) if len(known) else math.nan


def _period(series: Series) -> float:
    import numpy as np

    return float(np.median(np.diff(series.times))) if len(series.times) > 1 else math.nan


def _aligned(series: Series, length: float) -> tuple[Samples, Samples] | None:
    """A series of another pass from its first activity on, for the kernel's length."""
    import numpy as np

    times, values = np.asarray(series.times), np.asarray(series.values, dtype=float)
    if not len(values) or not np.nanmax(values) > 0:
        return None
    first = int(np.flatnonzero(values >= _OWN_ACTIVITY * np.nanmax(values))[0])
    since = times[first:] - times[first]
    return since[since < length], values[first:][since < length]


def _cycles(cut: Mapping[str, tuple[Samples, Samples]], schedulers: int) -> Samples | None:
    """An SM's cycles in each interval.

    Instructions a cycle with work and a cycle in all tell which share of cycles had work. Where
    none was issued, the clock is that of the other intervals.
    """
    import numpy as np

    if not (schedulers and {"issue_busy", ACTIVE_IPC} <= set(cut)):
        return None
    active, issued, ipc = cut[ACTIVE_CYCLES][1], cut["issue_busy"][1], cut[ACTIVE_IPC][1]
    if not len(issued) == len(ipc) == len(active):
        return None
    told = (issued > 0) & (ipc > 0) & (active > 0)
    if not told.any():
        return None
    share = issued[told] * schedulers / ipc[told]
    found = np.full(len(active), float(np.median(active[told] / share)))
    found[told] = active[told] / share
    return found


def _settle_clusters(cut: dict[str, tuple[Samples, Samples]], cycles: Samples | None) -> None:
    """Clusters a GPC from cluster-cycles; none where the launch has no clusters."""
    if CLUSTERS not in cut:
        return
    times, values = cut.pop(CLUSTERS)
    if cycles is not None and len(cycles) == len(values) and values.any():
        cut[CLUSTERS] = (times, values / cycles)
