"""Comparisons with the gates that they fail, and their result, `profkit.diff/1`."""

from collections.abc import Sequence
from typing import Annotated, Literal

from msgspec import Meta, Struct, field

from profkit.comparison.attribution import Attribution
from profkit.comparison.changes import Changed, OneSided
from profkit.comparison.comparability import Obstacle
from profkit.comparison.comparison import Diff, KernelDiff, Side, Total
from profkit.comparison.finding_changes import FindingChange, Limit, Status
from profkit.comparison.gates import Failure
from profkit.comparison.line_changes import LineChange
from profkit.comparison.matching import Basis
from profkit.comparison.problem_size import SizeEvidence
from profkit.comparison.repeats import Change, Profiled
from profkit.comparison.replacement import Evidence, Replacement
from profkit.comparison.text import headline
from profkit.comparison.timed_change import TimedChange
from profkit.core.typed_file import Count, Model, Number, Output, Real, row_of
from profkit.core.version import __version__
from profkit.report.names import file_name
from profkit.rules.checklist_format import FindingRow, finding_row
from profkit.rules.finding import Finding
from profkit.timing.latency_format import Series
from profkit.timing.results import Classic
from profkit.ui.text import literal


class Judged(Struct, frozen=True):
    """A comparison under its label, with the gates that it failed."""

    label: str
    diff: Diff
    failures: Sequence[Failure]


class LeftOut(Model, frozen=True):
    """A report that only one side has."""

    side: Literal["before", "after"]
    file: str


class Comparisons(Struct, frozen=True):
    """Comparisons; `left_out` are the reports that only one side has.

    `top` kernels (0: all) are shown in detail, small changes too if `show_all`; paths are whole
    `with_host`.
    """

    judged: Sequence[Judged]
    top: int
    show_all: bool
    with_host: bool
    left_out: tuple[LeftOut, ...] = ()

    @property
    def left_out_words(self) -> tuple[str, ...]:
        """Reports that only one side has, a line each: `only in before: matmul.ncu-rep`."""
        return tuple(literal(f"only in {each.side}: {each.file}") for each in self.left_out)


class SideRow(Model, frozen=True, kw_only=True):
    """A report, seconds of all its measured launches, and the timed latencies in its run."""

    file: str
    recorded: str | None
    ncu: str | None
    gpus: tuple[str, ...]
    launches: Count
    total_s: Real
    latencies: str | None


class MatchRow(Model, frozen=True):
    """How two kernels were matched, and the similarity of their names."""

    basis: Basis = field(name="how")
    certain: bool
    likeness: Number


class GroupRow(Model, frozen=True, kw_only=True):
    """Launches of one kernel with one shape, by their places in the report; `failed` ones have no
    duration. `share` is of the time of all launches of the report."""

    name: str
    grid: tuple[int, ...]
    block: tuple[int, ...]
    indexes: tuple[int, ...] = field(name="launches")
    failed: Count
    total: Real = field(name="total_s")
    median: Real = field(name="median_s")
    low: Real = field(name="min_s")
    high: Real = field(name="max_s")
    share: Real


class LatencyRow(Model, frozen=True):
    """A timed latency."""

    label: str
    n: Count
    median_s: Number
    interval: tuple[Number, Number] | None


class TimedRow(Model, frozen=True, kw_only=True):
    """The comparison of timed latencies; INVALID: the environment changed while they were timed;
    INCOMPARABLE: they were measured differently."""

    before: LatencyRow
    after: LatencyRow
    design: Literal["interleaved", "within-run only"] = field(name="how")
    verdict: Literal["IMPROVED", "REGRESSED", "SAME", "INCONCLUSIVE", "INVALID", "INCOMPARABLE"]
    valid: bool
    speedup: Real
    low: Number | None
    high: Number | None
    margin: Number | None
    why: str
    classic: Classic


class FindingOfKernel(FindingRow, frozen=True, kw_only=True):
    """A finding, and the page that explains its rule; null for a user's own."""

    title: str
    page: str | None


class SeenRow(Model, frozen=True):
    """The quantity that shows how a finding changed."""

    name: str = field(name="quantity")
    before: Real
    after: Real


class FindingChangeRow(Model, frozen=True, kw_only=True):
    """How a finding changed: seconds per launch that a fix is estimated to save, and the estimated
    speedups in the earlier report (`promised`) and the later one (`promises`)."""

    category: str
    status: Status
    before: FindingOfKernel | None
    after: FindingOfKernel | None
    saved_before: Number = field(name="saved_before_s")
    saved_after: Number = field(name="saved_after_s")
    speedup_before: Real = field(name="promised")
    speedup_after: Real = field(name="promises")
    seen: SeenRow | None


class KernelDiffRow(Model, frozen=True, kw_only=True):
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
    speedup: Real
    saved: Real = field(name="saved_s")
    match: MatchRow
    before: GroupRow
    after: GroupRow
    obstacles: tuple[Obstacle, ...]
    size: SizeEvidence | None
    profiled: Profiled | None
    timed: TimedRow | None
    attribution: Attribution | None
    findings: tuple[FindingChangeRow, ...]
    limit: Limit | None
    changed: tuple[Changed, ...]
    one_sided: tuple[OneSided, ...]
    lines: tuple[LineChange, ...] | None


class ReplacementRow(Model, frozen=True, kw_only=True):
    """Removed kernels and those in their place, by name, with the seconds of all their launches;
    `speedup` is null where they are not all launched equally often."""

    removed: tuple[str, ...]
    added: tuple[str, ...]
    before: Number = field(name="before_s")
    after: Number = field(name="after_s")
    speedup: Real
    evidence: Evidence


class ComparisonRow(Model, frozen=True, kw_only=True):
    """Two reports; `refused`: they can't be compared and were not.

    Kernels are those that took or take most time first; `timed` are variants that both runs timed.
    """

    label: str
    before: SideRow
    after: SideRow
    refused: bool
    forced: bool
    obstacles: tuple[Obstacle, ...]
    failures: tuple[Failure, ...]
    counts: dict[Change, Count]
    total: Total
    kernels: tuple[KernelDiffRow, ...]
    removed: tuple[GroupRow, ...]
    added: tuple[GroupRow, ...]
    replaced: tuple[ReplacementRow, ...]
    removed_findings: tuple[FindingOfKernel, ...]
    timed: tuple[TimedRow, ...]


class DiffFile(Output, frozen=True, kw_only=True, tag="profkit.diff/1"):
    """Reports before and after a change. Times in seconds, other numbers in SI units and shares of
    1; null where unknown."""

    profkit: str
    comparisons: Annotated[tuple[ComparisonRow, ...], Meta(min_length=1)]
    left_out: tuple[LeftOut, ...]


def diff_result(comparisons: Comparisons) -> DiffFile:
    """All kernels of all comparisons; `top` of each have their source lines."""
    rows = tuple(_comparison(judged, comparisons) for judged in comparisons.judged)
    return DiffFile(profkit=__version__, comparisons=rows, left_out=comparisons.left_out)


def _comparison(judged: Judged, comparisons: Comparisons) -> ComparisonRow:
    diff, top = judged.diff, comparisons.top or len(judged.diff.kernels)
    before, after = (_side(side, with_host=comparisons.with_host) for side in diff.sides)
    return row_of(
        ComparisonRow,
        diff,
        label=judged.label,
        before=before,
        after=after,
        failures=tuple(judged.failures),
        counts={change: diff.counted(change) for change in Change},
        kernels=tuple(
            _kernel(kernel, with_lines=not top or index < top)
            for index, kernel in enumerate(diff.kernels)
        ),
        removed=tuple(row_of(GroupRow, group) for group in diff.removed),
        added=tuple(row_of(GroupRow, group) for group in diff.added),
        replaced=tuple(map(_replacement, diff.replaced)),
        removed_findings=tuple(
            finding_row(finding, FindingOfKernel) for finding in diff.removed_findings
        ),
        timed=tuple(map(_timed, diff.timed)),
    )


def _side(side: Side, *, with_host: bool) -> SideRow:
    report, created = side.report, side.report.session.created
    return SideRow(
        file=file_name(report.path, with_host=with_host),
        recorded=created.isoformat() if created else None,
        ncu=report.session.ncu_version or None,
        gpus=tuple(sorted({gpu.name for gpu in report.gpus})),
        launches=len(report.launches),
        total_s=report.total,
        latencies=file_name(side.timings.path, with_host=with_host) or None,
    )


def _kernel(kernel: KernelDiff, *, with_lines: bool) -> KernelDiffRow:
    return row_of(
        KernelDiffRow,
        kernel,
        name=kernel.after.name,
        headline=headline(kernel),
        match=row_of(MatchRow, kernel.match),
        before=row_of(GroupRow, kernel.before),
        after=row_of(GroupRow, kernel.after),
        timed=_timed(kernel.timed) if kernel.timed else None,
        findings=tuple(map(_finding, kernel.findings)),
        lines=kernel.lines if with_lines else None,
    )


def _replacement(change: Replacement) -> ReplacementRow:
    removed, added = ([group.name for group in side] for side in (change.removed, change.added))
    return row_of(ReplacementRow, change, removed=tuple(removed), added=tuple(added))


def _timed(timed: TimedChange) -> TimedRow:
    before, after = map(_latency, (timed.before, timed.after))
    return row_of(TimedRow, timed, before=before, after=after)


def _latency(timed: Series) -> LatencyRow:
    ends = (timed.interval.low, timed.interval.high) if timed.interval else None
    return LatencyRow(timed.label, timed.summary.n, timed.summary.median, ends)


def _finding(change: FindingChange) -> FindingChangeRow:
    def row(finding: Finding | None) -> FindingOfKernel | None:
        return finding_row(finding, FindingOfKernel) if finding else None

    seen = row_of(SeenRow, change.seen) if change.seen else None
    before, after = map(row, (change.before, change.after))
    return row_of(FindingChangeRow, change, before=before, after=after, seen=seen)
