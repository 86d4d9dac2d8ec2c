"""The roofline: each kernel's rate and intensity at each level of memory, under the roofs it has.

A kernel stands against the roof of the arithmetic that it does, and, at each level of memory, below
the line intensity x bandwidth; the lower of the two is what it could attain there (Williams,
Waterman and Patterson, "Roofline", 2009; at several levels: Yang, Kurth and Williams, 2019).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING

from msgspec import Struct, field, structs

from profkit.core.errors import NothingMatches, UsageError
from profkit.core.typed_file import Model, Real, plain
from profkit.hardware.precisions import PRECISIONS
from profkit.report.checks import BOUND_TOLERANCE, NOT_TIMED
from profkit.report.names import kernel_pattern
from profkit.report.summary import LaunchSummary, ReportSummary, groups
from profkit.roofline import roofs as roof_lines
from profkit.roofline.roofs import LEVELS, TRAFFIC, Peaks, Roof, Roofs, attainable, key_of

if TYPE_CHECKING:
    from profkit.timing.latency_format import Series
    from profkit.timing.variants import Variants

EVERY = "all"
# Options of ncu that leave out launches inside a range.
_FILTERS = frozenset({"kernel-name", "kernel-id", "launch-skip", "launch-count"})


class Point(Model, frozen=True, kw_only=True):
    """A kernel, or a variant, at one level of memory.

    `launch` is the index of the typical launch, or of a variant's longest one. `intensity` is in
    FLOP/B of the level's traffic, `rate` in FLOP/s over `seconds`: the median of the timed calls
    where `timed` (then `low` and `high` are the rates at the ends of its interval, else null),
    ncu's duration otherwise. `share` is of the report's time. `algorithmic` points have the work
    and bytes that the target declares. `roof` is the key of its compute
    roof and `of_roof` the rate's share of it, `attainable` the lower of that and of the
    level's line at this intensity, both at this launch's SM clock (where `timed`: of the
    plotted roofs); `bound_by` is the lower of the two, `attained` the rate's share of it. `flags`
    explain rates above a roof.
    """

    name: str
    launch: int
    level: str
    precision: str
    algorithmic: bool
    intensity: Real
    rate: Real
    low: Real
    high: Real
    seconds: Real
    timed: bool
    share: Real
    roof: str
    of_roof: Real
    attainable: Real
    attained: Real
    bound_by: str | None
    flags: tuple[str, ...]

    @property
    def interval(self) -> tuple[float, float]:
        """The ends (s) of the interval of the timed median; NaN where there is none."""
        work = self.rate * self.seconds
        return work / self.high, work / self.low


class Outside(Model, frozen=True, kw_only=True):
    """A kernel or variant without a point, why, and its share of each level's roof."""

    name: str
    launch: int
    seconds: Real
    share: Real
    why: str
    memory: dict[str, Real]


class Ridge(Model, frozen=True):
    """Where a level's line meets a compute roof, FLOP/B."""

    level: str
    roof: str
    intensity: float


class Roofline(Model, frozen=True, kw_only=True):
    """Points under their roofs. `sm_clock` (Hz) is that of the plotted roofs; `nominal` names the
    clocks that were not measured.

    Roofs are those of the launch with the highest clock; a point by ncu's duration is compared with
    its own launch's, one by timed latency with the plotted ones.
    """

    title: str = field(name="report")
    gpu: str
    sm_clock: Real
    nominal: tuple[str, ...]
    roofs: tuple[Roof, ...]
    ridges: tuple[Ridge, ...]
    points: tuple[Point, ...]
    outside: tuple[Outside, ...]
    notes: tuple[str, ...]

    def roof(self, key: str | None) -> Roof | None:
        """The roof of that key; None where it is unknown."""
        return next((roof for roof in self.roofs if roof.key == key), None)


class _Subject(Struct, frozen=True):
    """What one point at each level is made of: launches that are one thing, and their time."""

    name: str
    launches: tuple[LaunchSummary, ...]
    share: float
    timed: Series | None = None

    @property
    def typical(self) -> LaunchSummary:
        return max(self.launches, key=lambda launch: launch.duration)

    @property
    def seconds(self) -> float:
        if self.timed:
            return self.timed.summary.median
        return sum(launch.duration if launch.is_timed else math.nan for launch in self.launches)

    def traffic(self, level: str) -> float:
        """Bytes of a level over the launches; NaN where any lacks them."""
        name = TRAFFIC[level]
        is_rate = name.endswith("bandwidth")
        return sum(row.get(name) * (row.duration if is_rate else 1.0) for row in self.launches)

    @property
    def tensor_unknown(self) -> str:
        """Why it is not known what the tensor cores did; "" where it is.

        They do hundreds of times the work of the other units, so nothing else is a kernel's main
        work.
        """
        names = ("flop_tensor", "ops_tensor_int8")
        reasons = (launch.why_missing(name) for launch in self.launches for name in names)
        return next(filter(None, reasons), "")


class _Doing(Struct, frozen=True):
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
    for kind, name, known in asked:
        if name not in known:
            raise UsageError(f"no {kind} {name!r}", f"use {', '.join(known)}")


def roofline(
    report: ReportSummary,
    *,
    peaks: str = Peaks.held,
    measured: Mapping[str, float] | None = None,
    latencies: Sequence[Series] | None = None,
    variants: Variants | None = None,
    levels: Sequence[str] = LEVELS,
    precision: str | None = None,
    kernel: str | None = None,
) -> Roofline:
    """The points of a report's kernels at `levels`, and the roofs above them.

    Launches inside an NVTX range named as one of `variants` or `latencies` are one point together:
    the operations and bytes of all, over the timed median where there is one. Of several precisions
    the one nearest to its roof makes the point; `precision` chooses another, "all" shows each.
    `measured` has B/s and FLOP/s by the keys of roofs, for `peaks` "measured". `kernel` keeps the
    variants and kernels in whose name the regular expression is found; raises UsageError where that
    leaves none, and for names that are none.
    """
    known_names(peaks, levels, precision)
    subjects, notes = _subjects(report, latencies or (), variants)
    subjects = _matching(subjects, kernel, report.path)
    launches = [launch for subject in subjects for launch in subject.launches]
    best = roof_lines.reference(launches)
    plane = _Plane(report, Roofs(Peaks(peaks), measured or {}, best), levels, precision)
    points: list[Point] = []
    outside: list[Outside] = []
    excluded: list[str] = []
    for subject in subjects:
        own = plane.points(subject, variants.work if variants else {})
        points += own
        if not own:
            outside.append(plane.outside(subject))
        elif reason := subject.tensor_unknown:
            excluded.append(
                f"{subject.name}: points exclude tensor-core work, which is unknown ({reason})"
            )
    notes += _timing_notes(subjects, has_points=bool(points)) + excluded
    used = {point.roof for point in points} | ({precision or ""} & PRECISIONS.keys())
    roofs = plane.roofs.drawn(launches, levels, used)
    return Roofline(
        title=report.path,
        gpu=report.gpus[0].name if report.gpus else "",
        sm_clock=best.get("roof_sm_clock") if best else math.nan,
        roofs=roofs,
        ridges=tuple(
            Ridge(line.key, top.key, top.rate / line.rate)
            for line, top in product(*roof_lines.split(roofs))
        ),
        points=tuple(points),
        notes=tuple(dict.fromkeys(notes + plane.roofs.notes(roofs, report))),
        outside=tuple(outside),
        nominal=plane.roofs.nominal(roofs),
    )


def _subjects(
    report: ReportSummary, timed: Sequence[Series], variants: Variants | None
) -> tuple[list[_Subject], list[str]]:
    """What to show: the variants that the launches tell, then the other kernels by shape."""
    by_label = {row.label: row for row in timed}
    names = dict.fromkeys([*(variants.passed if variants else ()), *by_label])
    # Launches of a variant may be missing: filtered here, or by ncu when it recorded.
    in_part = len(report.launches) < report.recorded or _FILTERS & set(report.session.options)
    if names and in_part:
        return _kernels(report, report.launches), [
            "only some launches were recorded or selected, a timed latency covers all: ncu "
            "durations are used"
        ]
    left = list(report.launches)
    subjects: list[_Subject] = []
    for name in names:
        own = [launch for launch in left if name in launch.launch.nvtx]
        if not own or any(launch.failed for launch in own):
            continue
        left = [launch for launch in left if launch not in own]
        share = sum(launch.duration for launch in own) / report.total
        subjects.append(_Subject(name, tuple(own), share, by_label.get(name)))
    notes = []
    if timed and not any(subject.timed for subject in subjects):
        labels = ", ".join(row.label for row in timed)
        notes.append(f"no launch is in an NVTX range named {labels}: ncu durations are used")
    return subjects + _kernels(report, left), notes


def _matching(subjects: list[_Subject], kernel: str | None, path: str) -> list[_Subject]:
    if kernel is None:
        return subjects
    pattern = kernel_pattern(kernel)
    matching = [
        subject
        for subject in subjects
        if any(map(pattern.search, (subject.name, *(row.name for row in subject.launches))))
    ]
    if not matching:
        raise NothingMatches(
            f"{path}: no kernel or variant matches {kernel!r}", "see `profkit analyze`"
        )
    return matching


def _kernels(report: ReportSummary, launches: Sequence[LaunchSummary]) -> list[_Subject]:
    """Launches by kernel and shape, each group as its typical launch."""
    return [
        _Subject(group.name, (group.typical,), group.total / report.total)
        for group in groups(launches)
        if group.total > 0
    ]


def _timing_notes(subjects: Sequence[_Subject], *, has_points: bool) -> list[str]:
    own = [subject.timed for subject in subjects if subject.timed]
    if not own:
        return []
    how = ((row.latency.timer, row.latency.cache and f"{row.latency.cache} L2") for row in own)
    methods = dict.fromkeys(
        ", ".join(filter(None, each)) or "timing method unknown" for each in how
    )
    timed_part, counted = ("rates", "FLOP and bytes") if has_points else ("times", "bytes")
    interval = f" with {_interval_words(own)}" if has_points else ""
    notes = [
        f"{timed_part} from timed latency ({'; '.join(methods)}): median{interval}; "
        f"{counted} from ncu"
    ]
    if has_points:
        notes.append(
            "timed latencies are compared with the roofs shown; their SM clock may have differed, "
            "so shares of compute roofs are approximate"
        )
    if waiting := ", ".join(row.label for row in own if row.launch_bound):
        notes.append(
            f"{waiting}: launch-bound, the host submits work more slowly than the GPU executes it"
        )
    return notes


def _interval_words(timed: Sequence[Series]) -> str:
    within = [row.label for row in timed if row.interval and row.interval.level is None]
    levels = {row.interval.level for row in timed if row.interval and row.interval.level}
    between = " and ".join(f"{level:.0%} confidence interval" for level in sorted(levels))
    if not within:
        return between or "no interval"
    unstated = "within-run interval (no confidence level stated)"
    return f"{between}, of {', '.join(within)} {unstated}" if between else unstated


class _Plane(Struct, frozen=True):
    """Where subjects get their points: under these roofs, at these levels, of this precision."""

    report: ReportSummary
    roofs: Roofs
    levels: Sequence[str]
    precision: str | None

    def points(self, subject: _Subject, work: Mapping[str, float]) -> list[Point]:
        if math.isnan(subject.seconds):
            return []
        chosen = self._chosen(subject)
        points = [
            self._point(subject, doing, level, moved)
            for doing in chosen
            for level in self.levels
            if (moved := subject.traffic(level)) > 0
        ]
        declared = subject.timed.latency.target.work if subject.timed else None
        amounts = plain(declared) if declared else work or {}
        flop, least = (amounts.get(key) or 0.0 for key in ("flop", "bytes"))
        if chosen and flop and least and "dram" in self.levels:
            algorithmic = structs.replace(chosen[0], operations=flop)
            points.append(self._point(subject, algorithmic, "dram", least, algorithmic=True))
        return points

    def outside(self, subject: _Subject) -> Outside:
        return Outside(
            name=subject.name,
            launch=subject.typical.index,
            seconds=subject.seconds,
            share=subject.share,
            why=self._why_outside(subject),
            memory={
                level: subject.traffic(level) / subject.seconds / self._memory(subject, level).rate
                for level in self.levels
            },
        )

    def _memory(self, subject: _Subject, level: str) -> Roof:
        return self.roofs.over(subject.typical, level, timed=subject.timed is not None)

    def _chosen(self, subject: _Subject) -> list[_Doing]:
        doings = self._doings(subject)
        if self.precision is None:
            return [] if subject.tensor_unknown else doings[:1]
        return [row for row in doings if self.precision in {EVERY, row.precision}]

    def _doings(self, subject: _Subject) -> list[_Doing]:
        """Work by precision, nearest to its roof first; a roof is of the launch that does most."""
        doings = []
        for index, precision in enumerate(PRECISIONS):
            pairs = [(launch.work[index], launch) for launch in subject.launches]
            pairs = [pair for pair in pairs if pair[0].operations > 0]
            if pairs:
                most, launch = max(pairs, key=lambda pair: pair[0].operations)
                total = sum(work.operations for work, _ in pairs)
                roof = self.roofs.over(launch, key_of(most), timed=subject.timed is not None)
                doings.append(_Doing(precision, total, roof))
        shares = {row.precision: row.operations / row.roof.rate for row in doings}
        return sorted(doings, key=lambda row: -or_least(shares[row.precision]))

    def _point(
        self, subject: _Subject, doing: _Doing, level: str, moved: float, *,
        algorithmic: bool = False,
    ) -> Point:  # fmt: skip
        memory = self._memory(subject, level)
        intensity, rate = doing.operations / moved, doing.operations / subject.seconds
        interval = subject.timed.interval if subject.timed else None
        bound, limit = attainable(doing.roof, memory, intensity)
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
            of_roof=rate / doing.roof.rate,
            attainable=bound,
            attained=rate / bound,
            bound_by=limit or None,
            flags=(),
        )
        return structs.replace(point, flags=_flags(point, doing.roof, memory, subject, self.report))

    def _why_outside(self, subject: _Subject) -> str:
        missing = subject.typical.why_missing
        if math.isnan(subject.seconds):
            return f"time unknown: {NOT_TIMED}"
        if self._chosen(subject):
            reason = next(filter(None, (missing(TRAFFIC[level]) for level in self.levels)), "")
            return f"bytes unknown: {reason}" if reason else "no traffic at these levels"
        if self.precision not in {None, EVERY}:
            return f"no {PRECISIONS.get(self.precision or '', self.precision)} work"
        if unknown := missing("flop_fp32"):
            return f"work unknown: {unknown}"
        reason = subject.tensor_unknown
        return f"tensor-core work unknown: {reason}" if reason else "no floating-point work"


def or_least(share: float) -> float:
    """A share to order by: what is not known is less than any that is."""
    return -math.inf if math.isnan(share) else share


def _flags(
    point: Point, compute: Roof, memory: Roof, subject: _Subject, report: ReportSummary
) -> tuple[str, ...]:
    """Why a point can't be where it is; nothing for one below its roofs."""
    rates = (
        (compute, point.rate / compute.rate, _why_above(point, compute, subject, report)),
        (memory, point.rate / point.intensity / memory.rate, _why_faster(point, memory, subject)),
    )
    return tuple(
        f"{excess:.0%} of {roof.label}: {reason}"
        for roof, excess, reason in rates
        if excess > 1 + BOUND_TOLERANCE
    )


_BENCHMARK = "a measured ceiling is the result of one benchmark, not an upper bound"


def _why_above(point: Point, roof: Roof, subject: _Subject, report: ReportSummary) -> str:
    launch = subject.typical
    in_half = launch.get("flop_tensor_fp16_accumulate") > 0
    at_base = roof.source is Peaks.held and report.session.clock_control == "base"
    sparse = point.precision.startswith("tensor") and launch.get("flop_tensor_sparse") > 0
    causes = {
        _BENCHMARK: roof.source is Peaks.measured,
        "sparse instructions, which can exceed a dense roof": sparse,
        "FP16 accumulation, which can exceed this roof": (
            point.precision == "tensor_fp16" and in_half
        ),
        "timed at a higher clock than the base clock that ncu locked": point.timed and at_base,
        "the declared work was not all executed, or not by this unit": point.algorithmic,
        "the clock was above the datasheet's, or this is the wrong roof for the work": (
            roof.source is Peaks.datasheet
        ),
        "the wrong roof for the work, or counters of inconsistent passes": True,
    }
    return next(cause for cause, holds in causes.items() if holds)


def _why_faster(point: Point, roof: Roof, subject: _Subject) -> str:
    warm = subject.timed is not None and subject.timed.latency.cache == "warm"
    causes = {
        "declared bytes may come from a cache": point.algorithmic,
        "timed with a warm cache: cache hits count as DRAM traffic": point.level == "dram" and warm,
        _BENCHMARK: roof.source is Peaks.measured,
        "faster when timed than under ncu: more cache hits, or a different clock": point.timed,
        "counters of inconsistent passes, or a memory clock above the roof's": True,
    }
    return next(cause for cause, holds in causes.items() if holds)
