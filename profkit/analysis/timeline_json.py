"""Timelines as JSON, `profkit.timeline/1`: one as an object of its own, several under `reports`.

The host is omitted by default: of the path only the file name is written.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from typing import Any

from msgspec import UNSET, field

from profkit.core.errors import BadInput
from profkit.core.json_text import json_rows
from profkit.core.projection import Measured, Projection, project
from profkit.core.typed_file import Count, File, Maybe, Number, part, plain
from profkit.core.version import __version__
from profkit.report.names import file_name
from profkit.rules.checklist_format import FindingInFull, finding_row
from profkit.rules.finding import Finding
from profkit.timeline.events import TimelineGpu
from profkit.timeline.summary import KernelGroup, KernelRun, MemoryUse, RangeUse, TimelineSummary

Extent = tuple[Count, Count, Count]

_LONGEST = 128 << 20
"""Characters; a launch in a named range takes about 400. Names are repeated for each launch, so
that long ones could make the text 1,000 times larger than the file."""


class ExportRow(Projection, frozen=True, kw_only=True):
    """An export, the start of its session (UTC), nsys version and schema version; overlapping
    kernels count twice in `kernel_time_s`."""

    file: str
    recorded: str | None
    product_version: str | None = field(name="nsys")
    schema_version: str | None = field(name="export_schema")
    kernel_launches: Count
    kernel_time_s: Number
    notes: tuple[str, ...]


class DeviceRow(Projection, frozen=True, kw_only=True):
    """A GPU with work, by its CUDA device number."""

    device: int
    name: str
    compute_capability: str | None
    sm_count: Count | None
    memory_bytes: Count | None


class SpreadRow(Projection, frozen=True, kw_only=True):
    """Count, total, median and extremes of times; null without any."""

    count: Count
    total: Number = field(name="total_s")
    median: Measured = field(name="median_s")
    low: Measured = field(name="min_s")
    high: Measured = field(name="max_s")


class GapRow(Projection, frozen=True, kw_only=True):
    """An interval without GPU work: the previous (`after`) and the next (`before`) work, the share
    in which a host thread was in a CUDA call, and the call with the largest part of that."""

    start: Number = field(name="start_s")
    duration: Number = field(name="duration_s")
    after: str
    before: str
    in_calls: Number
    call: str | None


class RegionRow(Projection, frozen=True, kw_only=True):
    """From the first CUDA call or GPU work, `start_s` after the first event, to the last's end.

    `busy_s` is the time in which a kernel, memcpy, memset or graph ran on any GPU, `idle_s` the sum
    of the lead until the first of them, the gaps between them and the tail after the last;
    `largest_gaps` has the longest ones.
    """

    start: Number = field(name="start_s")
    span: Number = field(name="span_s")
    busy: Number = field(name="busy_s")
    busy_share: Measured
    idle: Number = field(name="idle_s")
    lead: Number = field(name="lead_s")
    tail: Number = field(name="tail_s")
    gaps: SpreadRow
    largest_gaps: tuple[GapRow, ...]


class KernelRow(SpreadRow, frozen=True, kw_only=False):
    """Launches of one kernel with one launch configuration."""

    name: str
    grid: Extent
    block: Extent


class KernelGroupRow(KernelRow, frozen=True, kw_only=True):
    """Launches of one kernel with one launch configuration; `share` is of the list."""

    share: Measured


class RangeRow(Projection, frozen=True, kw_only=True):
    """Kernels launched in NVTX ranges, by the names of the ranges, outermost first; outside all
    ranges where the path is empty. `entered` (instances) and the host time are of the innermost."""

    path: tuple[str, ...]
    entered: Count
    host_time: Measured = field(name="host_time_s")
    kernel_launches: Count
    kernel_time_s: Number
    share: Measured
    kernels: tuple[KernelGroupRow, ...]


class DelaysRow(Projection, frozen=True, kw_only=True):
    """Kernel starts relative to the start and the return of the launch call, and to the end of the
    stream's previous work; `late` launch calls began after the stream was idle."""

    from_call_start: SpreadRow
    after_call_return: SpreadRow
    stream_gaps: SpreadRow = field(name="stream_gap")
    late: Count


class RunRow(Projection, frozen=True, kw_only=True):
    """A kernel, `start_s` after the first event, with the NVTX ranges around its launch call,
    outermost first, and that call."""

    name: str
    grid: Extent
    block: Extent
    device: int
    stream: int
    start_s: Number
    duration_s: Number
    nvtx: tuple[str, ...]
    call: str | None
    from_call_start: Measured = field(name="from_call_start_s")
    after_call_return: Measured = field(name="after_call_return_s")
    stream_gap: Measured = field(name="stream_gap_s")
    late: bool


class CallRow(SpreadRow, frozen=True, kw_only=False):
    """A CUDA API call; times include nsys overhead, and calls of several threads overlap."""

    name: str


class TransferRow(SpreadRow, frozen=True, kw_only=False):
    """Memcpy by kind, as "host to device", with source and target kinds of memory; or memset."""

    kind: str
    source: str | None
    target: str | None
    bytes: Count


class MemoryRow(TransferRow, frozen=True, kw_only=True):
    """Memcpy by kind, as "host to device", with source and target kinds of memory; or memset. The
    bandwidth is over the time in which at least one such operation ran."""

    bandwidth_bytes_per_s: Measured


class WaitRow(SpreadRow, frozen=True, kw_only=False):
    """A kind of synchronization, as recorded by the driver."""

    kind: str


class Export(Projection, frozen=True, kw_only=True):
    """The analysis of a timeline. Times are in seconds, shares are fractions of 1; a missing number
    is null. `launches` are in order of start; all other lists have the most time first."""

    profkit: Maybe[str] = UNSET
    report: ExportRow
    gpus: tuple[DeviceRow, ...]
    region: RegionRow
    kernels: tuple[KernelGroupRow, ...]
    ranges: tuple[RangeRow, ...]
    launch_delays: DelaysRow
    launches: tuple[RunRow, ...]
    calls: tuple[CallRow, ...]
    memory: tuple[MemoryRow, ...]
    synchronizations: tuple[WaitRow, ...]
    checklist: tuple[FindingInFull, ...]


class ExportFile(Export, frozen=True, tag_field="schema", tag="profkit.timeline/1"):
    __doc__ = Export.__doc__


class ExportsFile(File, frozen=True, kw_only=True, tag="profkit.timeline/1"):
    """The analyses of several timelines."""

    profkit: str
    reports: tuple[Export, ...]


def timelines_json(
    timelines: Sequence[tuple[TimelineSummary, str, tuple[Finding, ...]]], *, with_host: bool
) -> str:
    """Timelines with their paths and findings.

    Raises BadInput where repeated names make it too long.
    """
    exports = [
        _export(summary, file_name(path, with_host=with_host), items)
        for summary, path, items in timelines
    ]
    head = {"schema": ExportFile.__struct_config__.tag, "profkit": __version__}
    body = exports[0] if len(exports) == 1 else {"reports": exports}
    text = io.StringIO()
    for piece in json_rows(head | body):
        if text.tell() + len(piece) > _LONGEST:
            raise BadInput(
                f"{timelines[0][1]}: more than {_LONGEST >> 20} MiB of JSON",
                "record less: `nsys profile --duration SECONDS`, or use --format terminal",
            )
        text.write(piece)
    return text.getvalue()


def _export(summary: TimelineSummary, file: str, items: Iterable[Finding]) -> dict[str, Any]:
    """An export by the fields of `Export`; launches, which may be many, are made one by one."""
    region, kernels = summary.region, summary.kernels
    gaps = [project(g, GapRow, after=g.after.name, before=g.before.name) for g in region.largest]
    rows = {
        "report": project(
            summary,
            ExportRow,
            file=file,
            recorded=summary.created.isoformat() if summary.created else None,
            kernel_launches=kernels.count,
            kernel_time_s=kernels.total,
        ),
        "gpus": list(map(_gpu, summary.gpus)),
        "region": project(region, RegionRow, largest_gaps=gaps),
        "kernels": list(map(_group, summary.groups)),
        "ranges": list(map(_range, summary.ranges)),
        "launch_delays": project(summary.launches, DelaysRow),
        "launches": map(_run, summary.launches.runs),
        "calls": [project(use.times, CallRow, name=use.name) for use in summary.calls],
        "memory": list(map(_memory, summary.memory)),
        "synchronizations": [
            project(use.times, WaitRow, kind=use.name) for use in summary.synchronizations
        ],
        "checklist": [finding_row(item, FindingInFull) for item in items],
    }
    return {key: row if isinstance(row, map) else plain(row) for key, row in rows.items()}


def _gpu(gpu: TimelineGpu) -> DeviceRow:
    return project(
        gpu,
        DeviceRow,
        compute_capability=f"{gpu.cc[0]}.{gpu.cc[1]}" if gpu.cc[0] else None,
        sm_count=gpu.sm_count or None,
        memory_bytes=gpu.memory_bytes or None,
    )


def _group(group: KernelGroup) -> KernelGroupRow:
    return project(group.times, KernelGroupRow, **part(group, "name", "grid", "block", "share"))


def _range(use: RangeUse) -> RangeRow:
    kernels = {"kernel_launches": use.kernels.count, "kernel_time_s": use.kernels.total}
    groups = list(map(_group, use.groups))
    return project(use, RangeRow, entered=use.count, **kernels, kernels=groups)


def _memory(use: MemoryUse) -> MemoryRow:
    ends = part(use, "kind", "source", "target", "bytes")
    return project(use.times, MemoryRow, **ends, bandwidth_bytes_per_s=use.bandwidth)


def _run(run: KernelRun) -> dict[str, Any]:
    row = project(
        run,
        RunRow,
        **part(run.configuration, "grid", "block"),
        device=run.stream.device,
        stream=run.stream.number,
        start_s=run.start,
        duration_s=run.duration,
        call=run.call or None,
    )
    return plain(row)
