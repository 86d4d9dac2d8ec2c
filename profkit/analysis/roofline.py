"""The roofline: each kernel's rate and intensity at each level of memory, under the roofs it has.

A kernel stands against the roof of the arithmetic that it does, and, at each level of memory, below
the line intensity x bandwidth; the lower of the two is what it could attain there (Williams,
Waterman and Patterson, "Roofline", 2009; at several levels: Yang, Kurth and Williams, 2019).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING

from profkit.analysis.checks import TOLERANCES
from profkit.analysis.summary import PRECISIONS, Group, LaunchSummary, ReportSummary, Work
from profkit.errors import UsageError

if TYPE_CHECKING:
    from profkit.analysis.latency import Timed
    from profkit.ingest.variants import Variants

LEVELS = ("dram", "l2", "l1")
MMA_SYNC = "_mma_sync"
EVERY = "all"

LEVEL_LABELS = {"dram": "DRAM", "l2": "L2", "l1": "L1"}
# What each level's roof bounds, as a rate: the intensity must be of these bytes and no others.
_TRAFFIC = {
    "dram": "dram_bandwidth",
    "l2": "l2_output_bandwidth",
    "l1": "l1_writeback_bandwidth",
}
_MEMORY_ROOF = {
    "dram": "dram_bandwidth_peak",
    "l2": "l2_output_bandwidth_peak",
    "l1": "l1_writeback_bandwidth_peak",
}
# Shorter launches read clocks and roofs that are several per cent off.
_LONG_ENOUGH = 10e-6
_USED = 0.01


class Peaks(StrEnum):
    """Where roofs come from: the report at the clock it held, the datasheet, or a measurement."""

    held = "held"
    datasheet = "datasheet"
    measured = "measured"


@dataclass(frozen=True)
class Roof:
    """A roof: B/s of a level of memory, or FLOP/s (op/s for INT8) of a precision.

    `key` is a level's name, a precision of `summary.PRECISIONS`, or a precision + "_mma_sync" where
    that path is slower than the chip's fastest. `verified` is false for a figure of a datasheet
    that nobody looked up.
    """

    key: str
    label: str
    rate: float
    source: Peaks
    is_memory: bool
    verified: bool


@dataclass(frozen=True)
class Point:
    """A kernel, or a variant, at one level of memory.

    `launch` is the index of the typical launch, or of a variant's longest one. `intensity` is in
    FLOP/B of the level's traffic, `rate` in FLOP/s over `seconds`: the median of the timed calls
    where `timed` (then `low` and `high` are the rates at the ends of its 95% interval, else NaN),
    ncu's duration otherwise. `share` is of the report's time. `algorithmic` is the twin whose work
    and bytes are those that the target declares. `roof` is the key of the compute roof that it is
    held against, `attainable` (FLOP/s) the lower of that and of the level's line at this intensity,
    at the clock that this launch held; `limit` says which of the two. `flags` say why it can't be,
    where it is above.
    """

    name: str
    launch: int
    level: str
    precision: str
    intensity: float
    rate: float
    low: float
    high: float
    seconds: float
    timed: bool
    share: float
    algorithmic: bool
    roof: str
    attainable: float
    flags: tuple[str, ...]
    limit: str = ""

    @property
    def attained(self) -> float:
        """The rate as a share of what is attainable at this level."""
        return self.rate / self.attainable


@dataclass(frozen=True)
class Outside:
    """A kernel or variant without a point, why, and its share of each level's roof."""

    name: str
    launch: int
    seconds: float
    share: float
    why: str
    memory: Mapping[str, float]


@dataclass(frozen=True)
class Roofline:
    """Points under their roofs. `sm_clock` (Hz) is the one that the drawn roofs were held at.

    Roofs are those of the launch with the highest clock; each point is held against its own
    launch's.
    """

    title: str
    gpu: str
    sm_clock: float
    roofs: tuple[Roof, ...]
    points: tuple[Point, ...]
    notes: tuple[str, ...]
    outside: tuple[Outside, ...] = ()

    def roof(self, key: str) -> Roof | None:
        """The roof of that key; None where it is unknown."""
        return next((roof for roof in self.roofs if roof.key == key), None)


@dataclass(frozen=True)
class _Subject:
    """What one point at each level is made of: launches that are one thing, and their time."""

    name: str
    launches: tuple[LaunchSummary, ...]
    share: float
    timed: Timed | None = None

    @property
    def typical(self) -> LaunchSummary:
        return max(self.launches, key=lambda launch: launch.duration)

    @property
    def profiled(self) -> float:
        return sum(launch.duration for launch in self.launches)

    @property
    def seconds(self) -> float:
        return self.timed.summary.median if self.timed else self.profiled


@dataclass(frozen=True)
class _Doing:
    """Work of one precision that a subject does, and the roof it stands against."""

    precision: str
    operations: float
    roof: Roof


def known_names(peaks: str, levels: Iterable[str], precision: str | None) -> None:
    """Raise UsageError for a name of a source of roofs, a level or a precision that is none."""
    asked: list[tuple[str, str, tuple[str, ...]]] = [("kind of peaks", peaks, tuple(Peaks))]
    asked += [("level", level, LEVELS) for level in levels]
    if precision is not None:
        asked.append(("precision", precision, (*PRECISIONS, EVERY)))
    for what, name, known in asked:
        if name not in known:
            raise UsageError(f"no {what} {name!r}", f"there are {', '.join(known)}")


def roofline(
    report: ReportSummary,
    *,
    peaks: Peaks = Peaks.held,
    measured: Mapping[str, float] | None = None,
    latencies: Sequence[Timed] | None = None,
    variants: Variants | None = None,
    levels: Sequence[str] = LEVELS,
    precision: str | None = None,
) -> Roofline:
    """The points of a report's kernels at `levels`, and the roofs above them.

    Launches inside an NVTX range named as one of `variants` or `latencies` are one point together:
    the operations and bytes of all, over the timed median where there is one. Of several precisions
    the one nearest to its roof makes the point; `precision` chooses another, "all" shows each.
    `measured` has B/s and FLOP/s by the keys of roofs, for `peaks` "measured".
    """
    chosen = _Roofs(peaks, measured or {})
    subjects, notes = _subjects(report, latencies or (), variants)
    known_names(peaks, levels, precision)
    points: list[Point] = []
    outside: list[Outside] = []
    work = variants.work if variants else {}
    for subject in subjects:
        made = _points(subject, chosen, levels, precision, report, work)
        points += made
        if not made:
            outside.append(_outside(subject, chosen, levels, precision))
    launches = [launch for subject in subjects for launch in subject.launches]
    reference = _reference(launches)
    used = {point.roof for point in points} | set(_used(launches))
    roofs = _drawn(reference, launches, chosen, levels, used)
    gpus = report.gpus
    return Roofline(
        title=report.path,
        gpu=gpus[0].name if gpus else "",
        sm_clock=reference.get("sm_clock") if reference else math.nan,
        roofs=roofs,
        points=tuple(points),
        notes=tuple(dict.fromkeys(notes + chosen.notes(roofs, report))),
        outside=tuple(outside),
    )


@dataclass(frozen=True)
class _Roofs:
    """Where roofs are taken from; what a source lacks, the report's own stands in for."""

    peaks: Peaks
    measured: Mapping[str, float]

    def of(self, launch: LaunchSummary, key: str) -> Roof:
        """The roof of a key for a launch; its rate is NaN where nothing tells it."""
        is_memory = key in LEVELS
        held = launch.get(_MEMORY_ROOF[key] if is_memory else _peak_name(key))
        rate, source, verified = held, Peaks.held, True
        if self.peaks is Peaks.measured and key in self.measured:
            rate, source = self.measured[key], Peaks.measured
        if self.peaks is Peaks.datasheet:
            told, looked_up = _datasheet(launch, key)
            if not math.isnan(told):
                rate, source, verified = told, Peaks.datasheet, looked_up
        return Roof(key, _label(key, launch), rate, source, is_memory, verified)

    def notes(self, drawn: Iterable[Roof], report: ReportSummary) -> list[str]:
        """What a reader of the roofs must know."""
        found = list(report.notes)
        instead = [roof.label for roof in drawn if roof.source is not self.peaks]
        if instead:
            found.append(
                f"no {self.peaks} roof for {', '.join(instead)}: the report's own, at the held "
                "clock, stands in"
            )
        doubtful = [roof.label for roof in drawn if not roof.verified]
        if doubtful:
            found.append(f"datasheet figures that nobody looked up: {', '.join(doubtful)}")
        return found


def _peak_name(key: str) -> str:
    if key.endswith(MMA_SYNC):
        return f"peak_rate_{key.removesuffix(MMA_SYNC)}_hmma"
    return f"peak_rate_{key}"


def _datasheet(launch: LaunchSummary, key: str) -> tuple[float, bool]:
    """A datasheet's figure and whether it was looked up; NaN where it has none that applies."""
    sheet = launch.gpu.datasheet
    if key in LEVELS:
        peak = sheet.peaks.get(key) if sheet else None
        return (peak.value, peak.verified) if peak else (math.nan, False)
    work = next((work for work in launch.work if work.precision == key), None)
    return (work.datasheet, work.verified) if work else (math.nan, False)


def _label(key: str, launch: LaunchSummary) -> str:
    if key in LEVELS:
        return LEVEL_LABELS[key]
    precision = key.removesuffix(MMA_SYNC)
    label = PRECISIONS[precision]
    if key.endswith(MMA_SYNC):
        return f"{label}, mma.sync"
    path = launch.get(f"peak_rate_{precision}_hmma")
    return f"{label}, wgmma" if path < launch.get(f"peak_rate_{precision}") else label


def _key(work: Work) -> str:
    return work.precision if math.isnan(work.path_peak) else work.precision + MMA_SYNC


def _subjects(
    report: ReportSummary, timed: Sequence[Timed], variants: Variants | None
) -> tuple[list[_Subject], list[str]]:
    """What to show: the variants that the launches tell, then the other kernels by shape."""
    by_label = {one.label: one for one in timed}
    names = dict.fromkeys([*(variants.passed if variants else ()), *by_label])
    if names and len(report.launches) < report.recorded:
        return _kernels(report, report.launches), [
            "only some launches of the report are kept: ncu's durations, for a latency is of all"
        ]
    left = list(report.launches)
    found: list[_Subject] = []
    for name in names:
        own = [launch for launch in left if name in launch.launch.nvtx]
        if not own or any(launch.failed for launch in own):
            continue
        left = [launch for launch in left if launch not in own]
        share = sum(launch.duration for launch in own) / report.total
        found.append(_Subject(name, tuple(own), share, by_label.get(name)))
    notes = _timing_notes(found, timed)
    return found + _kernels(report, left), notes


def _kernels(report: ReportSummary, launches: Sequence[LaunchSummary]) -> list[_Subject]:
    kept = {launch.index for launch in launches}
    return [
        _Subject(group.name, (group.typical,), group.share)
        for group in _regrouped(report.groups, kept)
        if group.count > group.failed
    ]


def _regrouped(groups: Sequence[Group], kept: set[int]) -> list[Group]:
    """Groups whose typical launch is among those kept."""
    return [group for group in groups if group.typical.index in kept]


def _timing_notes(found: Sequence[_Subject], timed: Sequence[Timed]) -> list[str]:
    if not timed:
        return []
    own = [subject.timed for subject in found if subject.timed]
    if not own:
        labels = ", ".join(one.label for one in timed)
        return [f"no launch lies in an NVTX range named {labels}: ncu's durations are shown"]
    ways = dict.fromkeys(_how(one) for one in own)
    notes = [
        f"rates are by timed latency ({'; '.join(ways)}): median, whisker its 95% interval; "
        "work and bytes are ncu's"
    ]
    waiting = [one.label for one in own if one.launch_bound]
    if waiting:
        notes.append(f"{', '.join(waiting)}: the host submits slower than the GPU works")
    return notes


def _how(timed: Timed) -> str:
    cache = f"{timed.latency.cache} L2" if timed.latency.cache else ""
    return ", ".join(filter(None, (timed.latency.timer, cache))) or "how is unknown"


def _points(
    subject: _Subject,
    roofs: _Roofs,
    levels: Sequence[str],
    precision: str | None,
    report: ReportSummary,
    work: Mapping[str, float],
) -> list[Point]:
    points = []
    for doing in _chosen(subject, roofs, precision):
        for level in levels:
            traffic = _traffic(subject, level)
            if traffic > 0:
                points.append(_point(subject, doing, level, traffic, roofs, report))
    declared = subject.timed.latency.target.get("work") if subject.timed else None
    flop, moved = ((declared or work or {}).get(key) or 0.0 for key in ("flop", "bytes"))
    main = next(iter(_chosen(subject, roofs, precision)), None)
    if main and flop and moved and "dram" in levels:
        twin = replace(main, operations=flop)
        points.append(_point(subject, twin, "dram", moved, roofs, report, algorithmic=True))
    return points


def _chosen(subject: _Subject, roofs: _Roofs, precision: str | None) -> list[_Doing]:
    doings = _doings(subject, roofs)
    if precision is None:
        return doings[:1]
    return doings if precision == EVERY else [one for one in doings if one.precision == precision]


def _doings(subject: _Subject, roofs: _Roofs) -> list[_Doing]:
    """Work by precision, nearest to its roof first; a roof is that of the launch that does most."""
    found = []
    for at, precision in enumerate(PRECISIONS):
        done = [(launch.work[at], launch) for launch in subject.launches]
        done = [(work, launch) for work, launch in done if work.operations > 0]
        if done:
            most, launch = max(done, key=lambda pair: pair[0].operations)
            total = sum(work.operations for work, _ in done)
            found.append(_Doing(precision, total, roofs.of(launch, _key(most))))
    return sorted(found, key=lambda one: _order(one.operations / one.roof.rate))


def _order(share: float) -> float:
    return math.inf if math.isnan(share) else -share


def _traffic(subject: _Subject, level: str) -> float:
    """Bytes of a level over the launches; NaN where any lacks them."""
    return sum(launch.get(_TRAFFIC[level]) * launch.duration for launch in subject.launches)


def _point(
    subject: _Subject,
    doing: _Doing,
    level: str,
    traffic: float,
    roofs: _Roofs,
    report: ReportSummary,
    *,
    algorithmic: bool = False,
) -> Point:
    memory = roofs.of(subject.typical, level)
    intensity, rate = doing.operations / traffic, doing.operations / subject.seconds
    interval = subject.timed.summary.interval if subject.timed else None
    attainable, limit = _attainable(doing.roof, memory, intensity)
    point = Point(
        name=subject.name,
        launch=subject.typical.index,
        level=level,
        precision=doing.precision,
        intensity=intensity,
        rate=rate,
        low=doing.operations / interval.high if interval else math.nan,
        high=doing.operations / interval.low if interval else math.nan,
        seconds=subject.seconds,
        timed=subject.timed is not None,
        share=subject.share,
        algorithmic=algorithmic,
        roof=doing.roof.key,
        attainable=attainable,
        flags=(),
        limit=limit,
    )
    return replace(point, flags=_flags(point, doing.roof, memory, subject, report))


def _attainable(compute: Roof, memory: Roof, intensity: float) -> tuple[float, str]:
    """The lower of both roofs at an intensity, and its key; NaN where neither is known."""
    bounds = [(compute.rate, compute.key), (intensity * memory.rate, memory.key)]
    known = [bound for bound in bounds if not math.isnan(bound[0])]
    return min(known) if known else (math.nan, "")


def _flags(
    point: Point, compute: Roof, memory: Roof, subject: _Subject, report: ReportSummary
) -> tuple[str, ...]:
    """Why a point can't be where it is; nothing for one below its roofs."""
    found = []
    over = point.rate / compute.rate
    if over > 1 + TOLERANCES.bound:
        found.append(
            f"{over:.0%} of {compute.label}: {_why_above(point, compute, subject, report)}"
        )
    over = point.rate / (point.intensity * memory.rate)
    if over > 1 + TOLERANCES.bound:
        found.append(f"{over:.0%} of {memory.label}: {_why_faster(point, memory, subject)}")
    return tuple(found)


def _why_above(point: Point, roof: Roof, subject: _Subject, report: ReportSummary) -> str:
    launch = subject.typical
    if roof.source is Peaks.measured:
        return "the measured roof is what one benchmark reached, no bound"
    if point.precision.startswith("tensor") and launch.get("flop_tensor_sparse") > 0:
        return "sparse instructions, which a dense roof does not bound"
    if point.precision == "tensor_fp16" and launch.get("flop_tensor_fp16_accumulate") > 0:
        return "accumulation in half precision, which may run above this roof"
    if point.timed and roof.source is Peaks.held and report.session.clock_control == "base":
        return "timed at a higher clock than the base clock that ncu held"
    if point.algorithmic:
        return "the declared work was not all done, or not by this unit"
    if roof.source is Peaks.datasheet:
        return "the clock was above the datasheet's, or this is the wrong roof for the work"
    return "the wrong roof for the work, or counters of passes that differ"


def _why_faster(point: Point, roof: Roof, subject: _Subject) -> str:
    warm = subject.timed is not None and subject.timed.latency.cache == "warm"
    if point.algorithmic:
        return "declared bytes can come from a cache instead"
    if point.level == "dram" and warm:
        return "timed with a warm cache, hits counted as DRAM traffic"
    if roof.source is Peaks.measured:
        return "the measured roof is what one benchmark reached, no bound"
    if point.timed:
        return "faster when timed than under ncu: hits, or another clock, move fewer bytes"
    return "counters of passes that differ, or a memory clock above the roof's"


def _outside(
    subject: _Subject, roofs: _Roofs, levels: Sequence[str], precision: str | None
) -> Outside:
    launch = subject.typical
    shares = {
        level: _traffic(subject, level) / subject.seconds / roofs.of(launch, level).rate
        for level in levels
    }
    return Outside(
        name=subject.name,
        launch=launch.index,
        seconds=subject.seconds,
        share=subject.share,
        why=_why_outside(subject, roofs, levels, precision),
        memory=shares,
    )


def _why_outside(
    subject: _Subject, roofs: _Roofs, levels: Sequence[str], precision: str | None
) -> str:
    if _chosen(subject, roofs, precision):
        names = [_TRAFFIC[level] for level in levels]
        reasons = (subject.typical.why_missing(name) for name in names)
        told = next((reason for reason in reasons if reason), "")
        return f"bytes unknown: {told}" if told else "no bytes moved at these levels"
    if precision not in {None, EVERY}:
        return f"no {PRECISIONS.get(precision or '', precision)} work"
    unknown = [
        reason
        for key in ("flop_fp32", "flop_tensor")
        if (reason := subject.typical.why_missing(key))
    ]
    return f"work unknown: {unknown[0]}" if unknown else "no floating-point work"


def _reference(launches: Sequence[LaunchSummary]) -> LaunchSummary | None:
    """The launch of the highest clock among those long enough to read it, else the longest."""
    long = [launch for launch in launches if launch.duration >= _LONG_ENOUGH]
    clocked = [launch for launch in long if not math.isnan(launch.get("sm_clock"))]
    if clocked:
        return max(clocked, key=lambda launch: launch.get("sm_clock"))
    return max(launches, key=lambda launch: launch.duration, default=None)


def _used(launches: Sequence[LaunchSummary]) -> Iterable[str]:
    """Keys of the compute roofs that launches do more than a trace of their work against."""
    return (_key(work) for launch in launches for work in launch.work if work.share >= _USED)


def _drawn(
    reference: LaunchSummary | None,
    launches: Sequence[LaunchSummary],
    roofs: _Roofs,
    levels: Sequence[str],
    used: Iterable[str],
) -> tuple[Roof, ...]:
    if reference is None:
        return ()
    order = [key for precision in PRECISIONS for key in (precision, precision + MMA_SYNC)]
    keys = [*levels, *sorted(set(used), key=order.index)]
    tried = [reference, *launches]
    found = (_known(roofs.of(launch, key) for launch in tried) for key in keys)
    return tuple(roof for roof in found if roof is not None)


def _known(roofs: Iterable[Roof]) -> Roof | None:
    return next((roof for roof in roofs if not math.isnan(roof.rate)), None)
