"""A kernel over time and by source line as JSON, `profkit.source/1`."""

from __future__ import annotations

import math
from typing import Annotated

from msgspec import Meta, field

from profkit.analysis.source_view import Inside, SourceFile, SourceView
from profkit.core.projection import Measured, Projection, project
from profkit.core.typed_file import Count, File, Number, encode, part
from profkit.core.version import __version__
from profkit.report.names import file_name
from profkit.report.phases import KernelTimeline
from profkit.report.summary import ReportSummary
from profkit.rules.checklist import Checklist
from profkit.rules.checklist_format import FindingRow, finding_row

Rank = Annotated[int, Meta(ge=1)]


class SourceReport(Projection, frozen=True, kw_only=True):
    """The report's file name."""

    file: str


class LaunchRow(Projection, frozen=True, kw_only=True):
    """The launch, and ncu's duration of it."""

    index: Count = field(name="launch")
    name: str
    duration: Measured = field(name="duration_s")


class PhaseRow(Projection, frozen=True, kw_only=True):
    """A non-empty phase: prologue, steady or tail."""

    name: str
    start: Number = field(name="start_s")
    end: Number = field(name="end_s")


class TrackRow(Projection, frozen=True, kw_only=True):
    """A time series of the catalog, or the derived sm_active; `unit` 1 is a share.

    `times_s` are the starts of the sampling intervals since the kernel's start, `steady` is the
    median over the steady phase.
    """

    name: str
    label: str
    unit: str
    steady: Measured
    times_s: tuple[Number, ...]
    values: tuple[Measured, ...]


class TimelineRow(Projection, frozen=True, kw_only=True):
    """PM samples of a kernel. `duration_s` is ncu's, of another pass than `sampled_s`: the time
    from the first to the last sampling interval with an active SM, each `period_s` long.

    Phases are those of the track `driver`; `below_half` is the share of samples in which it is
    below half of its steady rate. Where phases are unknown there are none, and `notes` have the
    reason.
    """

    duration: Measured = field(name="duration_s")
    end: Number = field(name="sampled_s")
    period: Measured = field(name="period_s")
    driver: str | None
    below_half: Measured
    phases: tuple[PhaseRow, ...]
    tracks: tuple[TrackRow, ...]
    notes: tuple[str, ...]


class CountsRow(Projection, frozen=True, kw_only=True):
    """Sums over the kernel: warp samples, warp samples by stall reason, executed warp instructions,
    excessive shared-memory wavefronts and L2 sectors (beyond those of ideal addresses); `live` are
    the most live registers of a thread."""

    samples: Measured
    stalls: dict[str, Number]
    executed: Measured
    shared_excess: Measured
    global_excess: Measured
    live: Measured


class LineRow(Projection, frozen=True, kw_only=True):
    """A line with instructions, and the ranks of the findings with this location."""

    line: int
    text: str | None
    findings: tuple[Rank, ...]
    instructions: Count
    samples: Measured
    stalls: dict[str, Number]
    executed: Measured
    shared_excess: Measured
    global_excess: Measured
    live: Measured


class FileRow(Projection, frozen=True, kw_only=True):
    """A source file by its name without directories."""

    file: str
    lines: tuple[LineRow, ...]


class InstructionRow(Projection, frozen=True, kw_only=True):
    """A SASS instruction, and the ranks of the findings with this location."""

    address: Count
    sass: str | None
    file: str | None
    line: Rank | None
    findings: tuple[Rank, ...]
    samples: Measured
    stalls: dict[str, Number]
    executed: Measured
    shared_excess: Measured
    global_excess: Measured
    live: Measured


class SourceRow(Projection, frozen=True, kw_only=True):
    """Lines and instructions, the file with the most samples first; `has_source`: source text was
    recorded for at least one line with instructions."""

    has_source: bool
    total: CountsRow
    files: tuple[FileRow, ...]
    instructions: tuple[InstructionRow, ...]
    notes: tuple[str, ...]


class SourceViewFile(File, frozen=True, kw_only=True, tag="profkit.source/1"):
    """A kernel over time (PM samples), and its source lines and SASS instructions.

    Numbers are in SI units, shares are fractions of 1; null is not recorded, or unknown. `findings`
    are the checklist's on this kernel.
    """

    profkit: str
    report: SourceReport
    kernel: LaunchRow
    timeline: TimelineRow | None
    source: SourceRow | None
    findings: tuple[FindingRow, ...]


def source_json(report: ReportSummary, inside: Inside, checklist: Checklist) -> str:
    """A launch's timeline, lines, instructions and the findings on its kernel."""
    group = next(group for group in report.groups if inside.launch in group.launches)
    file = SourceViewFile(
        profkit=__version__,
        report=SourceReport(file=file_name(report.path, with_host=False)),
        kernel=project(inside.launch, LaunchRow),
        timeline=_timeline(inside.timeline) if inside.timeline else None,
        source=_source(inside.view) if inside.view else None,
        findings=tuple(finding_row(item, FindingRow) for item in checklist.findings_on(group)),
    )
    return encode(file, indent=1, dense=False)


def _timeline(timeline: KernelTimeline) -> TimelineRow:
    tracks = [
        project(
            track,
            TrackRow,
            steady=timeline.steady.get(track.name, math.nan),
            times_s=track.times.tolist(),
            values=track.values.tolist(),
        )
        for track in timeline.tracks
    ]
    return project(timeline, TimelineRow, tracks=tracks)


def _source(view: SourceView) -> SourceRow:
    """Files by name without directories; only lines with instructions."""
    instructions = [
        project(
            row.counts,
            InstructionRow,
            **part(row, "address", "sass", "findings"),
            file=file_name(row.file, with_host=False),
            line=row.line or None,
        )
        for row in view.instructions
    ]
    return project(view, SourceRow, files=list(map(_file, view.files)), instructions=instructions)


def _file(file: SourceFile) -> FileRow:
    lines = [
        project(
            line.counts,
            LineRow,
            **part(line, "line", "text", "findings"),
            instructions=len(line.addresses),
        )
        for line in file.lines
        if line.addresses
    ]
    return project(file, FileRow, file=file_name(file.name, with_host=False), lines=lines)
