"""A kernel over time by its PM samples: utilization of each resource, prologue, steady state, tail.

A sample is the mean over one interval of a fixed length. ncu samples from before the launch until
after it; the kernel is the part in which SMs are active. The *driver* is the resource with the
highest mean utilization. The work-weighted median of its samples (not the median over time, so that
a long tail counts little) sets its plateau: samples of at least half of that. Their median is the
*steady rate*, and the phases are:

- prologue: from the kernel's start until the driver first reaches half of the steady rate,
- steady: until it was last at half or above,
- tail: from there until the kernel's end.

The driver is smoothed by a running median over five samples, which preserves edges and removes
peaks shorter than three samples; before and after the kernel it is zero. A boundary is exact to one
sample where the plateau is at least five samples longer than half of its ramps.
"""

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from msgspec import Struct, field

from profkit.core.columns import Column as Samples
from profkit.core.typed_file import Model, Number, Real
from profkit.report.action import Action
from profkit.report.launch_message import Metric
from profkit.report.reader import to_si, unit_of
from profkit.report.resources import TRACKS
from profkit.ui.text import number

_Cut = tuple[Samples, Samples]
"""Times and values."""

FEWEST_SAMPLES = 20
"""A boundary is exact to one sample: with fewer samples it is not exact to 5% of the duration."""

# Of the steady rate, chosen: the middle of a ramp, where its place depends least on noise.
HALF = 0.5
_SMOOTHED = 5  # samples of the running median, chosen: the fewest that remove a peak of two
_OWN_ACTIVITY = 0.05  # of a series' peak, chosen: below are idle samples around the kernel
_TRUST = "rules use the counter; the samples show the course over time, not the level"
_DISAGREEMENT = 0.05  # of the peak, chosen: one of FEWEST_SAMPLES samples

ACTIVE_CYCLES, ACTIVE_IPC, ISSUED = "sm_active_cycles", "ipc_active", "issue_busy"
CLUSTERS = "clusters_active"
ALWAYS = ("tensor_busy", "fma_busy", ISSUED, "l2_busy", "dram_busy", "sm_active")
"""The tracks whose absence is reported."""

SOURCES = frozenset({*TRACKS, ACTIVE_CYCLES, ACTIVE_IPC} - {"sm_active"})
"""The catalog's series that the tracks are computed from."""

BUSY = tuple(name for name, (_, unit) in TRACKS.items() if unit == "1" and name != "sm_active")
"""The tracks that may be the driver: shares of a resource's peak."""


class Series(Struct, frozen=True):
    """Samples of one metric: `times` in seconds since the first sample, `values` in SI units.

    A time is the start of the interval of its value. `stamp` is that of the first sample in
    nanoseconds, equal for series of the same pass.
    """

    times: tuple[float, ...]
    values: tuple[float, ...]
    stamp: int


def series(action: Action, ending: str) -> Series | None:
    """The time series whose ncu name ends with `ending`; None where the launch has none.

    ncu puts the counter domain and the trigger group in front of a sampled metric's name. The first
    sample carries no time stamp of its own (0): it opens the first interval and is left out.
    """
    for name in action.metric_names():
        prefix, separator, rest = name.rpartition(ending)
        sampled = prefix == "pmsampling:" or ("Triage" in prefix and prefix.endswith("."))
        if not (separator and not rest and sampled):
            continue
        metric = action.metric_by_name(name)
        if metric and metric.instances.ids:
            return _read(metric, unit_of(name))
    return None


def _read(metric: Metric, unit: str) -> Series:
    samples = [
        (stamp, to_si(value, unit))
        for stamp, value in zip(metric.addresses(), metric.numbers(), strict=True)
        if stamp > 0
    ]
    first = samples[0][0] if samples else 0
    return Series(
        times=tuple((stamp - first) / 1e9 for stamp, _ in samples),
        values=tuple(value for _, value in samples),
        stamp=first,
    )


class Track(Model, frozen=True, kw_only=True):
    """A time series of the catalog, or the derived sm_active, the share of SM cycles with a
    resident block; `unit` 1 is a share.

    `times_s` are the starts of the sampling intervals since the kernel's start, a value holds for
    its interval. `steady` is the median over the steady phase.
    """

    name: str
    label: str
    unit: str
    steady: Real
    times: tuple[Number, ...] = field(name="times_s")
    values: tuple[Real, ...]


class Phase(Model, frozen=True):
    """A phase of the kernel: `name` is prologue, steady or tail; seconds since its start."""

    name: str
    start: Number = field(name="start_s")
    end: Number = field(name="end_s")

    @property
    def seconds(self) -> float:
        return self.end - self.start


class KernelTimeline(Model, frozen=True, kw_only=True):
    """PM samples of a kernel. `duration_s` is ncu's, of another pass than `sampled_s`: the time
    from the first to the last sampling interval with an active SM, each `period_s` long.

    Phases are those of the track `driver`, without empty ones; `below_half` is the share of samples
    in which it is below half of its steady rate. Where phases are unknown there are none, and
    `notes` have the reason.
    """

    duration: Real = field(name="duration_s")
    end: Number = field(name="sampled_s")
    period: Real = field(name="period_s")
    driver: str | None
    below_half: Real
    phases: tuple[Phase, ...]
    tracks: tuple[Track, ...]
    notes: tuple[str, ...]

    def __repr__(self) -> str:
        phases = ", ".join(f"{part.name} {number(part.seconds, 's')}" for part in self.phases)
        return f"<KernelTimeline: {phases or 'no phases'}>"

    @property
    def steady(self) -> Mapping[str, float]:
        """Each track's median over the steady phase, in its unit; NaN without phases."""
        return {track.name: track.steady for track in self.tracks}

    def track(self, name: str | None) -> Track | None:
        """A track by its name; None where it was not sampled."""
        return next((track for track in self.tracks if track.name == name), None)

    def share(self, phase: str) -> float:
        """A phase's share of the sampled duration: 0 for an absent one, NaN without phases."""
        if not self.phases:
            return math.nan
        return sum(part.seconds for part in self.phases if part.name == phase) / self.end


class Course(Struct, frozen=True):
    """The phases of one sampled signal, in samples: steady from `first` up to `past`."""

    first: int
    past: int
    rate: float
    below_half: float


def course(values: Sequence[float] | Samples) -> Course | None:
    """Where a signal is steady; None where it is never above 0. NaN counts as 0."""
    raw = np.nan_to_num(np.asarray(values, dtype=float))
    smooth = _smoothed(raw)
    if not smooth.sum() > 0:
        return None
    # The work-weighted median: half of the work was done at this rate or above.
    ordered = np.sort(smooth)
    work = np.cumsum(ordered)
    median = float(ordered[np.searchsorted(work, work[-1] / 2)])
    rate = float(np.median(smooth[smooth >= HALF * median]))
    above = np.flatnonzero(smooth >= HALF * rate)
    below = float(np.mean(raw < HALF * rate))
    return Course(int(above[0]), int(above[-1]) + 1, rate, below)


def _smoothed(values: Samples) -> Samples:
    """Running median, zero-padded; of an even number the upper middle value."""
    size = min(_SMOOTHED, len(values))
    if not size:
        return values
    padded = np.pad(values, (size // 2, size - 1 - size // 2))
    windows = np.lib.stride_tricks.sliding_window_view(padded, size)
    smooth: Samples = np.sort(windows, axis=1)[:, size // 2]
    return smooth


def kernel_timeline(
    duration: float,
    sampled: Mapping[str, Series],
    *,
    schedulers: int = 0,
    counters: Mapping[str, float] | None = None,
    several: bool = False,
) -> KernelTimeline | None:
    """The timeline of a launch from its series by catalog name; None where SMs were not sampled.

    `duration` is ncu's, in seconds; `schedulers` are those per SM (0 where unknown); `counters` are
    the launch's quantities of the same names, compared with the tracks' means; `several` is a range
    replay of several launches, which has no phases.
    """
    activity = sampled.get(ACTIVE_CYCLES)
    active = np.flatnonzero(activity.values) if activity else np.array([])
    if activity is None or not len(active):
        return None
    alive = slice(int(active[0]), int(active[-1]) + 1)
    times = np.asarray(activity.times)[alive]
    period = float(np.median(np.diff(activity.times))) if len(activity.times) > 1 else math.nan
    length = float(times[-1] - times[0]) + period
    cut: dict[str, _Cut] = {}
    elsewhere = []
    for name, series in sampled.items():
        if series.stamp == activity.stamp and len(series.times) == len(activity.times):
            cut[name] = times - times[0], np.asarray(series.values, dtype=float)[alive]
        elif (aligned := _aligned(series, length)) is not None:
            cut[name] = aligned
            elsewhere.append(name)
    _derive(cut, schedulers)
    notes = [*_notes(cut, elsewhere), *_contradictions(cut, counters or {})]
    means = {name: _finite(np.mean, cut[name][1]) for name in BUSY if name in cut}
    driver = max((name for name in means if means[name] >= 0), key=means.__getitem__, default=None)
    signal = course(cut[driver][1]) if driver else None
    phases: tuple[Phase, ...] = ()
    first = past = 0.0
    if several:
        notes.append("no phases: range replay, its launches were sampled together")
    elif len(times) < FEWEST_SAMPLES:
        few = f"{len(times)} samples of the kernel, at least {FEWEST_SAMPLES} required"
        notes.append(f"no phases: {few}")
    elif driver is None or signal is None:
        notes.append("no phases: no sampled resource was busy")
    else:
        edges = [*cut[driver][0].tolist(), length]
        first, past = edges[signal.first], edges[signal.past]
        parts = ("prologue", 0.0, first), ("steady", first, past), ("tail", past, length)
        phases = tuple(Phase(*part) for part in parts if part[2] > part[1])
    return KernelTimeline(
        duration=duration,
        end=length,
        period=period,
        driver=driver if phases else None,
        below_half=signal.below_half if phases and signal else math.nan,
        phases=phases,
        tracks=tuple(
            Track(
                name=name,
                label=label,
                unit=unit,
                steady=_finite(np.median, values[(starts >= first) & (starts < past)]),
                times=tuple(starts.tolist()),
                values=tuple(values.tolist()),
            )
            for name, (label, unit) in TRACKS.items()
            if name in cut
            for starts, values in [cut[name]]
        ),
        notes=tuple(notes),
    )


def _notes(cut: Collection[str], elsewhere: Collection[str]) -> Iterator[str]:
    """Absent tracks, and tracks of another pass."""
    absent = [TRACKS[name][0] for name in ALWAYS if name not in cut]
    if absent:
        yield f"not sampled: {', '.join(absent)}"
    moved = [TRACKS[name][0] for name in TRACKS if name in elsewhere and name in cut]
    if moved:
        yield f"sampled in another pass, aligned at first activity: {', '.join(moved)}"


def _contradictions(cut: Mapping[str, _Cut], counters: Mapping[str, float]) -> Iterator[str]:
    """Tracks whose mean differs from the counter: ncu computes some from other subunits."""
    for name in (name for name in BUSY if name in cut):
        whole, mean = counters.get(name, math.nan), _finite(np.mean, cut[name][1])
        if abs(mean - whole) > _DISAGREEMENT:
            means = f"mean of the samples {mean:.0%}, kernel counter {whole:.0%}"
            yield f"{TRACKS[name][0]}: {means}; {_TRUST}"


def _finite(statistic: Callable[[Samples], np.floating[Any]], values: Samples) -> float:
    """A statistic of the finite values; NaN without any."""
    known = values[np.isfinite(values)]
    return float(statistic(known)) if len(known) else math.nan


def _aligned(series: Series, length: float) -> _Cut | None:
    """A series of another pass from its first activity, for the duration of the kernel."""
    times, values = np.asarray(series.times), np.asarray(series.values, dtype=float)
    if not len(values) or not np.nanmax(values) > 0:
        return None
    first = int(np.flatnonzero(values >= _OWN_ACTIVITY * np.nanmax(values))[0])
    since = times[first:] - times[first]
    return since[since < length], values[first:][since < length]


def _derive(cut: dict[str, _Cut], schedulers: int) -> None:
    """Add the SM active share, and resident clusters from cluster-cycles.

    Instructions per active cycle over instructions per cycle give the share of active cycles. An
    interval without instructions takes the clock of the others.
    """
    clusters = cut.pop(CLUSTERS, None)
    if not (schedulers and {ISSUED, ACTIVE_IPC} <= set(cut)):
        return
    active, issued, ipc = (cut[name][1] for name in (ACTIVE_CYCLES, ISSUED, ACTIVE_IPC))
    if not len(issued) == len(ipc) == len(active):
        return
    known = (issued > 0) & (ipc > 0) & (active > 0)
    if not known.any():
        return
    measured = active[known] / (issued[known] * schedulers / ipc[known])
    cycles = np.full(len(active), float(np.median(measured)))
    cycles[known] = measured
    times = cut[ACTIVE_CYCLES][0]
    cut["sm_active"] = times, np.minimum(active / cycles, 1.0)
    if clusters is not None and len(clusters[1]) == len(cycles) and clusters[1].any():
        cut[CLUSTERS] = times, clusters[1] / cycles
