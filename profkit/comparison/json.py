"""Comparisons as JSON, `profkit.diff/1`."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, field

from profkit.comparison.attribution import CauseKind
from profkit.comparison.changes import Changed, OneSided
from profkit.comparison.comparability import Obstacle
from profkit.comparison.comparison import KernelDiff, Side
from profkit.comparison.document import Document, Judged
from profkit.comparison.finding_changes import FindingChange, Limit, Status
from profkit.comparison.gates import Failure, GateKind
from profkit.comparison.line_changes import LineChange
from profkit.comparison.matching import Basis
from profkit.comparison.repeats import Change, Profiled
from profkit.comparison.text import headline
from profkit.comparison.timed_change import TimedChange
from profkit.core.projection import Measured, Projection, project
from profkit.core.typed_file import Count, File, Number, encode
from profkit.core.version import __version__
from profkit.report.names import file_name
from profkit.rules.checklist_format import FindingRow, finding_row
from profkit.timing.latency import Timed
from profkit.timing.results import Classic


class SideRow(Projection, frozen=True, kw_only=True):
    """A report, seconds of all its measured launches, and the timed latencies in its run."""

    file: str
    recorded: str | None
    ncu: str | None
    gpus: tuple[str, ...]
    launches: Count
    total_s: Number
    latencies: str | None


class FailureRow(Projection, frozen=True, kw_only=True):
    """A gate that failed, as --fail-on has it: on a kernel (`at` its place in `kernels`) or timed
    variant, or on the reports as wholes. `undecided`: nothing can be concluded, exit code 3."""

    gate: str
    kind: GateKind
    kernel: str | None
    index: Count | None = field(name="at")
    undecided: bool
    why: str


class CauseRow(Projection, frozen=True, kw_only=True):
    """The seconds that a factor contributes to a change (below 0: saved), and its values."""

    key: str
    label: str
    kind: CauseKind
    seconds: Number
    before: Measured
    after: Measured
    unit: str | None


class TotalRow(Projection, frozen=True, kw_only=True):
    """Times and launches of matched kernels that were compared, and of those on one side alone.

    `speedup` is null where they were launched more often on a side. Kernels left out: `unmeasured`
    (some of their launches were not measured) and `incomparable` (or of a problem size that only
    one run has).
    """

    before: Number = field(name="before_s")
    after: Number = field(name="after_s")
    removed: Number = field(name="removed_s")
    added: Number = field(name="added_s")
    launches: tuple[Count, Count]
    speedup: Measured
    causes: tuple[CauseRow, ...]
    unmeasured: Count
    incomparable: Count


class MatchRow(Projection, frozen=True, kw_only=True):
    """How two kernels were matched, and the similarity of their names."""

    basis: Basis = field(name="how")
    certain: bool
    likeness: Number


class GroupRow(Projection, frozen=True, kw_only=True):
    """Launches of one kernel with one shape, by their places in the report; `failed` ones have no
    duration. `share` is of the time of all launches of the report."""

    name: str
    grid: tuple[int, ...]
    block: tuple[int, ...]
    indexes: tuple[int, ...] = field(name="launches")
    failed: Count
    total: Number = field(name="total_s")
    median: Measured = field(name="median_s")
    low: Measured = field(name="min_s")
    high: Measured = field(name="max_s")
    share: Measured


class MeasureRow(Projection, frozen=True, kw_only=True):
    """An amount of work on both sides."""

    label: str = field(name="measure")
    before: Number
    after: Number
    is_equal: bool = field(name="equal")


class SizeRow(Projection, frozen=True, kw_only=True):
    """Evidence of the problem's size from counters; `proven`: equal work shows equal size."""

    threads: tuple[Measured, Measured]
    is_proven: bool = field(name="proven")
    measures: tuple[MeasureRow, ...] = field(name="work")


class LatencyRow(Projection, frozen=True, kw_only=True):
    """A timed latency."""

    label: str
    n: Count
    median_s: Number
    interval: tuple[Number, Number] | None


class TimedRow(Projection, frozen=True, kw_only=True):
    """The comparison of timed latencies; INVALID: the environment changed while they were timed;
    INCOMPARABLE: they were measured differently."""

    before: LatencyRow
    after: LatencyRow
    design: Literal["interleaved", "within-run only"] = field(name="how")
    verdict: Literal["IMPROVED", "REGRESSED", "SAME", "INCONCLUSIVE", "INVALID", "INCOMPARABLE"]
    valid: bool
    speedup: Measured
    low: Measured
    high: Measured
    margin: Measured
    why: str
    classic: Classic


class AttributionRow(Projection, frozen=True, kw_only=True):
    """Causes whose seconds add up to the change; factors `missing` on a side are in the rest."""

    before: Number = field(name="before_s")
    after: Number = field(name="after_s")
    change: Number = field(name="change_s")
    causes: tuple[CauseRow, ...]
    missing: tuple[str, ...]


class FindingOfKernel(FindingRow, frozen=True, kw_only=True):
    """A finding, and the page that explains its rule; null for a user's own."""

    title: str
    page: str | None


class SeenRow(Projection, frozen=True, kw_only=True):
    """The quantity that shows how a finding changed."""

    name: str = field(name="quantity")
    before: Measured
    after: Measured


class FindingChangeRow(Projection, frozen=True, kw_only=True):
    """How a finding changed: seconds per launch that a fix is estimated to save, and the estimated
    speedups in the earlier report (`promised`) and the later one (`promises`)."""

    category: str
    status: Status
    before: FindingOfKernel | None
    after: FindingOfKernel | None
    saved_before: Number = field(name="saved_before_s")
    saved_after: Number = field(name="saved_after_s")
    speedup_before: Measured = field(name="promised")
    speedup_after: Measured = field(name="promises")
    seen: SeenRow | None


class KernelDiffRow(Projection, frozen=True, kw_only=True):
    """A kernel by its later name, before and after.

    `by` is what the verdict rests on, `speedup` time before / time after, `saved_s` the decrease of
    ncu's durations over all its launches. `size` is null where both runs declare the problem.
    `changed` is weightiest first, `shown` false for what is small or noise; `one_sided` is what one
    side lacks, and why.
    """

    name: str
    headline: str
    change: Change = field(name="verdict")
    basis: Literal["timing", "ncu", "cycles"] | None = field(name="by")
    speedup: Measured
    saved: Measured = field(name="saved_s")
    match: MatchRow
    before: GroupRow
    after: GroupRow
    obstacles: tuple[Obstacle, ...]
    size: SizeRow | None
    profiled: Profiled | None
    timed: TimedRow | None
    attribution: AttributionRow | None
    findings: tuple[FindingChangeRow, ...]
    limit: Limit | None
    changed: tuple[Changed, ...]
    one_sided: tuple[OneSided, ...]
    lines: tuple[LineChange, ...] | None


class ComparisonRow(Projection, frozen=True, kw_only=True):
    """Two reports; `refused`: they can't be compared and were not.

    Kernels are those that took or take most time first; `timed` are variants that both runs timed.
    """

    label: str
    before: SideRow
    after: SideRow
    refused: bool
    forced: bool
    obstacles: tuple[Obstacle, ...]
    failures: tuple[FailureRow, ...]
    counts: dict[Change, Count]
    total: TotalRow
    kernels: tuple[KernelDiffRow, ...]
    removed: tuple[GroupRow, ...]
    added: tuple[GroupRow, ...]
    removed_findings: tuple[FindingOfKernel, ...]
    timed: tuple[TimedRow, ...]


class LeftOut(Projection, frozen=True, kw_only=True):
    """A report that only one side has."""

    side: Literal["before", "after"]
    file: str


class DiffFile(File, frozen=True, kw_only=True, tag="profkit.diff/1"):
    """Reports before and after a change. Times in seconds, other numbers in SI units and shares of
    1; null where unknown."""

    profkit: str
    comparisons: Annotated[tuple[ComparisonRow, ...], Meta(min_length=1)]
    left_out: tuple[LeftOut, ...]


def diff_json(document: Document) -> str:
    """All kernels of all comparisons; `top` of each have their source lines."""
    alone = tuple(project(None, LeftOut, side=side, file=name) for side, name in document.left_out)
    comparisons = tuple(_comparison(judged, document) for judged in document.comparisons)
    file = DiffFile(profkit=__version__, comparisons=comparisons, left_out=alone)
    return encode(file, dense=False)


def _comparison(judged: Judged, document: Document) -> ComparisonRow:
    diff, top = judged.diff, document.top or len(judged.diff.kernels)
    before, after = (_side(side, with_host=document.with_host) for side in diff.sides)
    return project(
        diff,
        ComparisonRow,
        label=judged.label,
        before=before,
        after=after,
        failures=[_failure(failure) for failure in judged.failures],
        counts={change: diff.counted(change) for change in Change},
        kernels=[
            _kernel(kernel, with_lines=not top or index < top)
            for index, kernel in enumerate(diff.kernels)
        ],
        removed_findings=[finding_row(item, FindingOfKernel) for item in diff.removed_findings],
        timed=[_timed(timed) for timed in diff.timed],
    )


def _side(side: Side, *, with_host: bool) -> SideRow:
    report, created = side.report, side.report.session.created
    return SideRow(
        file=file_name(report.path, with_host=with_host),
        recorded=created.isoformat() if created else None,
        ncu=report.session.ncu_version,
        gpus=tuple(sorted({gpu.name for gpu in report.gpus})),
        launches=len(report.launches),
        total_s=report.total,
        latencies=file_name(side.timings.path, with_host=with_host),
    )


def _failure(failure: Failure) -> FailureRow:
    index = failure.index if failure.index >= 0 else None
    return project(
        failure,
        FailureRow,
        gate=str(failure.gate),
        kind=failure.gate.kind,
        index=index,
    )


def _kernel(kernel: KernelDiff, *, with_lines: bool) -> KernelDiffRow:
    return project(
        kernel,
        KernelDiffRow,
        name=kernel.after.name,
        headline=headline(kernel),
        basis=_basis(kernel),
        timed=_timed(kernel.timed) if kernel.timed else None,
        findings=[_finding(change) for change in kernel.findings],
        lines=kernel.lines if with_lines else None,
    )


def _basis(kernel: KernelDiff) -> str | None:
    """What the verdict rests on."""
    if kernel.by_timing:
        return "timing"
    if kernel.profiled is None:
        return None
    return "cycles" if kernel.in_cycles else "ncu"


def _timed(timed: TimedChange) -> TimedRow:
    return project(timed, TimedRow, before=_latency(timed.before), after=_latency(timed.after))


def _latency(latency: Timed) -> LatencyRow:
    ends = (latency.interval.low, latency.interval.high) if latency.interval else None
    return project(
        latency, LatencyRow, n=latency.summary.n, median_s=latency.summary.median, interval=ends
    )


def _finding(change: FindingChange) -> FindingChangeRow:
    before, after = (
        finding_row(side, FindingOfKernel) if side else None
        for side in (change.before, change.after)
    )
    return project(change, FindingChangeRow, before=before, after=after)
