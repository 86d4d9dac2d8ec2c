"""Reports as JSON, `profkit.analyze/1`: one as an object of its own, several under `reports`.

The host (computer name, addresses, directories, program arguments) is omitted by default.
"""

from collections.abc import Sequence

from msgspec import UNSET, field, structs

from profkit.core.typed_file import Count, Maybe, Model, Number, Output, Real, encode, row_of
from profkit.core.version import __version__
from profkit.hardware.gpus import Gpu
from profkit.hardware.occupancy import NextStep
from profkit.report.catalog import catalog
from profkit.report.launch_message import RuleResult
from profkit.report.names import file_name
from profkit.report.session import Host, Session
from profkit.report.summary import Group, LaunchSummary, ReportSummary, Stall, Work
from profkit.rules import checklist_format
from profkit.rules.checklist import Checklist
from profkit.rules.checklist_format import (
    DemonstratedRow,
    FindingInFull,
    FindingRow,
    finding_row,
)
from profkit.rules.finding import UnevaluatedRule
from profkit.rules.headroom import Headroom

Extent = tuple[Count, ...]
_RECORDING = (
    "ncu_version", "cuda_version", "driver_version", "clock_control", "cache_control",
    "replay_mode",
)  # fmt: skip


class ReportRow(Model, frozen=True, kw_only=True):
    """A report, its recording time (UTC), and the number of launches read.

    `total_s` is the GPU time of all measured launches. `command` has ncu's options and the
    program's name, with --with-host also directories and the program's arguments. `assumed` are
    the settings that were not passed, so that ncu's default was in effect.
    """

    file: str
    launches: Count
    total_s: Real
    recorded: str | None
    ncu_version: str | None = field(name="ncu")
    cuda_version: str | None = field(name="cuda")
    driver_version: str | None = field(name="driver")
    command: str | None
    clock_control: str | None
    cache_control: str | None
    replay_mode: str | None
    assumed: tuple[str, ...]
    host: Maybe[Host] = UNSET
    notes: tuple[str, ...]


_ATTRIBUTES = ("sm_count", "clock", "memory_clock", "memory_bytes", "l2_bytes")


class GpuRow(Model, frozen=True, kw_only=True):
    """A GPU; `dram_peak_bytes_per_s` is from memory clock and bus width.

    `datasheet_peaks` are dense, in FLOP/s (op/s for int8) and B/s for dram;
    `datasheet_unverified` lists those that were not looked up in a datasheet.
    """

    name: str
    compute_capability: str | None
    sm_count: Count | None
    clock: Number | None = field(name="clock_hz")
    memory_clock: Number | None = field(name="memory_clock_hz")
    memory_bytes: Number | None
    l2_bytes: Number | None
    dram_peak_bytes_per_s: Number | None
    datasheet: str | None
    datasheet_peaks: dict[str, Number]
    datasheet_unverified: tuple[str, ...]


class GroupRow(Model, frozen=True, kw_only=True):
    """Launches of one kernel with one launch configuration; `share` is of the total GPU time.

    `headroom` is null where the DRAM traffic is unknown.
    """

    name: str
    grid: Extent
    block: Extent
    count: Count
    failed: Count
    total: Real = field(name="total_s")
    median: Real = field(name="median_s")
    low: Real = field(name="min_s")
    high: Real = field(name="max_s")
    share: Real
    headroom: Headroom | None
    indexes: tuple[Count, ...] = field(name="launches")


class KernelRow(Model, frozen=True, kw_only=True):
    """A launch: index in the report, demangled name, NVTX ranges from the outermost.

    `failed`: the counters returned no duration. `metrics` has every catalog quantity in its unit,
    null where it is `missing`, with the reason. Stalls are largest first, work is of precisions
    with operations; `occupancy_next_step` is null where occupancy is full, unknown, or would not
    rise. `warnings` report invalid or contradictory measurements, `notes` what may differ in the
    application. Headroom and findings are those of its kernel, `informative` ones have no estimate.
    """

    index: Count = field(name="launch")
    name: str
    workload: str
    nvtx: tuple[str, ...]
    failed: bool
    duration: Real = field(name="duration_s")
    grid: Extent
    block: Extent
    metrics: dict[str, Real]
    missing: dict[str, str]
    stalls: tuple[Stall, ...]
    work: tuple[Work, ...]
    occupancy_limiters: tuple[str, ...]
    occupancy_next_step: NextStep | None
    instructions_by_class: dict[str, Number]
    instructions_by_opcode: dict[str, Number]
    rules: tuple[RuleResult, ...] = field(name="ncu_rules")
    warnings: tuple[str, ...]
    notes: tuple[str, ...]
    headroom: Headroom | None
    findings: tuple[FindingRow, ...]
    informative: tuple[FindingRow, ...]


class Analysis(Model, frozen=True, kw_only=True):
    """The analysis of a report. Numbers are in SI units, shares are fractions of 1; a missing
    number is null.

    Groups are in the requested order, launches in launch order; findings have most time saved
    first. "can't tell": no findings, and most rules lack data.
    """

    profkit: Maybe[str] = UNSET
    report: ReportRow
    gpu: GpuRow
    gpus: tuple[GpuRow, ...]
    groups: tuple[GroupRow, ...]
    kernels: tuple[KernelRow, ...]
    conclusion: checklist_format.Conclusion
    checklist: tuple[FindingInFull, ...]
    informative: tuple[FindingInFull, ...]
    reachable: tuple[DemonstratedRow, ...]
    not_evaluated: tuple[UnevaluatedRule, ...]


class AnalysisFile(Analysis, Output, frozen=True, tag="profkit.analyze/1"):
    __doc__ = Analysis.__doc__


class AnalysesFile(Output, frozen=True, kw_only=True, tag="profkit.analyze/1"):
    """The analyses of several reports."""

    profkit: str
    reports: tuple[Analysis, ...]


def report_result(
    reports: Sequence[tuple[ReportSummary, Sequence[Group], Checklist]],
    top: int,
    *,
    with_host: bool,
) -> AnalysisFile | AnalysesFile:
    """Reports with their groups in order, the first `top` of which (0: all) with their launches."""
    rows = tuple(_analysis(*report, top, with_host=with_host) for report in reports)
    if len(rows) == 1:
        return AnalysisFile(**structs.asdict(rows[0]) | {"profkit": __version__})
    return AnalysesFile(profkit=__version__, reports=rows)


def report_json(report: ReportSummary, checklist: Checklist) -> str:
    """The analysis of a report as a run has it."""
    result = report_result([(report, report.groups, checklist)], 0, with_host=False)
    return encode(result, dense=False)


def _analysis(
    report: ReportSummary,
    groups: Sequence[Group],
    checklist: Checklist,
    top: int,
    *,
    with_host: bool,
) -> Analysis:
    kernels = [
        _kernel(launch, group, checklist)
        for group in groups[: top or None]
        for launch in group.launches
    ]
    gpus = tuple(map(_gpu, report.gpus))
    return Analysis(
        report=_report(report, report.session, with_host=with_host),
        gpu=gpus[0],
        gpus=gpus,
        groups=tuple(
            row_of(GroupRow, group, headroom=checklist.headroom_of(group)) for group in groups
        ),
        kernels=tuple(sorted(kernels, key=lambda kernel: kernel.index)),
        **checklist_format.checklist_parts(checklist),
    )


def _report(report: ReportSummary, session: Session, *, with_host: bool) -> ReportRow:
    return ReportRow(
        file=file_name(report.path, with_host=with_host),
        launches=len(report.launches),
        total_s=report.total,
        recorded=session.created.isoformat() if session.created else None,
        command=(session.command if with_host else session.shareable_command()) or None,
        assumed=tuple(sorted(session.assumed)),
        host=session.host if with_host else UNSET,
        notes=report.notes,
        **{name: getattr(session, name) or None for name in _RECORDING},
    )


def _gpu(gpu: Gpu) -> GpuRow:
    peaks = gpu.datasheet.peaks if gpu.datasheet else {}
    return GpuRow(
        name=gpu.name,
        compute_capability=f"{gpu.cc[0]}.{gpu.cc[1]}" if gpu.cc[0] else None,
        dram_peak_bytes_per_s=gpu.dram_peak or None,
        datasheet=gpu.datasheet.name if gpu.datasheet else None,
        datasheet_peaks={name: peak.value for name, peak in peaks.items()},
        datasheet_unverified=tuple(
            sorted(name for name, peak in peaks.items() if not peak.verified)
        ),
        **{key: getattr(gpu, key) or None for key in _ATTRIBUTES},
    )


def _kernel(summary: LaunchSummary, group: Group, checklist: Checklist) -> KernelRow:
    """A launch with the findings on its kernel; one without a duration has none."""
    launch, occupancy = summary.launch, summary.occupancy
    items = () if summary.failed else checklist.findings_on(group)
    return row_of(
        KernelRow,
        summary,
        workload=launch.workload,
        nvtx=launch.nvtx,
        metrics={name: summary.get(name) for name in catalog().quantities},
        work=tuple(work for work in summary.work if work.operations > 0),
        occupancy_limiters=occupancy.limiters if occupancy else (),
        occupancy_next_step=occupancy.step if occupancy else None,
        instructions_by_class=dict(launch.breakdowns.get("instructions_by_class", {})),
        instructions_by_opcode=dict(launch.breakdowns.get("instructions_by_opcode", {})),
        headroom=None if summary.failed else checklist.headroom_of(group),
        findings=tuple(finding_row(item, FindingRow) for item in items if item.rank),
        informative=tuple(finding_row(item, FindingRow) for item in items if not item.rank),
    )
