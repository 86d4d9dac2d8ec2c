"""A timeline's summary with its findings: its file, `profkit.timeline/1`, and its document.

The host is omitted by default: of the path only the file name is written.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from msgspec import UNSET, structs

from profkit.core.errors import BadInput
from profkit.core.json_text import json_text
from profkit.core.typed_file import File, Maybe, as_output
from profkit.core.version import __version__
from profkit.rules import finding_text as words
from profkit.rules.checklist_format import FindingInFull, finding_row
from profkit.rules.checklist_view import findings_in_full, findings_in_short
from profkit.rules.finding import Finding
from profkit.rules.known_trial import NO_TRIAL, KnownTrial
from profkit.rules.tried import Tried
from profkit.timeline import summary as shapes
from profkit.timeline.times import Spread
from profkit.ui import document as doc
from profkit.ui.names import own_names
from profkit.ui.text import extent, literal, number, percent, plural


class Report(NamedTuple):
    """A timeline's summary, findings, and what was tried on its program."""

    summary: shapes.TimelineSummary
    findings: Sequence[Finding]
    tried: KnownTrial = NO_TRIAL


_LONGEST = 128 << 20
"""Characters of names, chosen: each is repeated, so that they could make the text 1,000 times
larger than the file."""
_GAPS_SHOWN, _ROWS_SHOWN = 5, 20
_OUTSIDE = "(outside all ranges)"


class Timeline(shapes.TimelineSummary, frozen=True, kw_only=True):
    __doc__ = shapes.TimelineSummary.__doc__

    checklist: tuple[FindingInFull, ...]
    tried: tuple[Tried, ...] = ()
    profkit: Maybe[str] = UNSET


class TimelineFile(Timeline, frozen=True, tag_field="schema", tag="profkit.timeline/1"):
    __doc__ = shapes.TimelineSummary.__doc__


class TimelinesFile(File, frozen=True, kw_only=True, tag="profkit.timeline/1"):
    """The analyses of several timelines."""

    profkit: str
    reports: tuple[Timeline, ...]


def shared(report: Report, *, with_host: bool) -> Report:
    """The report, without the host only with its file's name."""
    named = report.summary.report
    file = named.file if with_host else Path(named.file).name
    named = structs.replace(named, file=file)
    return report._replace(summary=structs.replace(report.summary, report=named))


def timelines_json(reports: Sequence[Report], *, with_host: bool = False) -> str:
    """Timelines with their findings as JSON, several under `reports`. Raises BadInput where
    repeated names make it too long."""
    rows = []
    for report in reports:
        summary, findings, tried = shared(report, with_host=with_host)
        _refuse_long_names(summary)
        row = as_output(summary)
        row["checklist"] = [as_output(finding_row(each, FindingInFull)) for each in findings]
        row["tried"] = [as_output(each) for each in tried.rows]
        rows.append(row)
    head = {"schema": TimelineFile.__struct_config__.tag, "profkit": __version__}
    return json_text(head | (rows[0] if len(rows) == 1 else {"reports": rows}))


def _refuse_long_names(summary: shapes.TimelineSummary) -> None:
    """Raise BadInput for names that are too long to be repeated as often as they are."""
    names = [group.name for group in summary.groups]
    names += [name for use in summary.ranges for name in use.path]
    if sum(map(len, names)) > _LONGEST:
        raise BadInput(
            f"{summary.report.file}: more than {_LONGEST >> 20} MiB of JSON",
            "record less: `nsys profile --duration SECONDS`, or use --format terminal",
        )


def timeline_document(
    report: Report, *, is_shared: bool = False, with_host: bool = False
) -> doc.Document:
    """Busy and idle time, findings with their first action, and all tables; where it `is_shared`,
    all of each finding, and without the host unless it is asked for."""
    summary, findings, tried = shared(report, with_host=with_host) if is_shared else report
    blocks = [*_head(summary), *map(doc.Note, summary.report.notes)]
    blocks += [_region(summary.region)] if summary.region.busy else []
    if findings:
        blocks.append(doc.Heading(words.HEADING, note=f"of {_base(summary.region, findings)}"))
        in_full = findings_in_full(findings, complete=True)
        blocks += in_full if is_shared else findings_in_short(findings)
    blocks += tried.table
    return doc.Document(summary.report.file, (*blocks, *_tables(summary)))


def findings_document(report: Report, more: str, *, is_shared: bool) -> doc.Document:
    """What to do about a timeline, without the host where it `is_shared`; `more` is about the
    rest."""
    summary, findings, tried = shared(report, with_host=False) if is_shared else report
    nothing = words.NO_TIMELINE_FINDING if summary.region.busy else "Without GPU work: no finding."
    base = f"Of {_base(summary.region, findings)}." if findings else nothing
    title, headline, _ = _head(summary)
    blocks = [title, headline, *map(doc.Note, summary.report.notes), doc.Paragraph(doc.quiet(base))]
    blocks += findings_in_full(findings, complete=is_shared)
    blocks += tried.table
    blocks += [doc.Lines((doc.quiet(more),), gap=True)] if more else []
    return doc.Document(summary.report.file, tuple(blocks))


def _head(summary: shapes.TimelineSummary) -> tuple[doc.Block, ...]:
    """The title, the timeline in a line, and its recording."""
    report = summary.report
    rows = [doc.Row("GPU", _gpu(gpu)) for gpu in summary.gpus]
    created = report.recorded and datetime.fromisoformat(report.recorded)
    parts = (
        f"{created:%Y-%m-%d %H:%M:%S} UTC" if created else "date unknown",
        f"nsys {literal(report.product_version)}" if report.product_version else "",
        f"schema {literal(report.schema_version)}" if report.schema_version else "",
    )
    rows.append(doc.Row("Recorded", ", ".join(filter(None, parts))))
    return (
        doc.Heading(doc.code(report.file), 1),
        doc.Paragraph(summary.headline),
        doc.Facts("", tuple(rows)),
    )


def _gpu(gpu: shapes.Device) -> str:
    parts = (
        literal(gpu.name) or f"GPU {gpu.device}",
        f"CC {gpu.compute_capability}" if gpu.compute_capability else "",
        plural(gpu.sm_count, "SM") if gpu.sm_count else "",
        f"{gpu.memory_bytes / 2**30:.0f} GiB" if gpu.memory_bytes else "",
    )
    return ", ".join(filter(None, parts))


def _base(region: shapes.Region, findings: Sequence[Finding]) -> str:
    """The time that estimated speedups are of."""
    steps = [item for item in findings if item.rule.about == "application"]
    if len(steps) == len(findings):
        whole = next((item.estimate for item in steps if item.estimate), None)
        time = f" of {number(whole.whole_seconds, 's')} (median)" if whole else ""
        alone = f"; {words.EACH_ALONE.format('')}" if len(steps) > 1 else ""
        return f"{words.STEP}{time}, without what was before{alone}"
    left_out = [
        f"{number(time, 's')} {where} it"
        for time, where in ((region.lead, "before"), (region.tail, "after"))
        if time > 0
    ]
    excluded = f", not the {' and '.join(left_out)}" if left_out else ""
    span = region.busy + region.gaps.total
    return f"the {number(span, 's')} from first to last GPU work{excluded}"


def _region(region: shapes.Region) -> doc.Facts:
    gaps = plural(region.gaps.count, "gap")
    if region.gaps.count:
        gaps += f", median {number(region.gaps.median, 's')}"
    times = (
        ("GPU busy", region.busy, "kernels, memcpy, memset; overlap counts once"),
        ("before first GPU work", region.lead, "from the first CUDA call"),
        ("between GPU work", region.gaps.total, gaps),
        ("after last GPU work", region.tail, "to the end of the last CUDA call"),
    )
    rows = []
    for label, time, note in times:
        share = time / region.span if region.span else math.nan
        rows.append(doc.Row(label, f"{number(time, 's')}, {percent(share)}", note, share))
    note = "Shares of the time from the first CUDA call or GPU work to the end of the last."
    return doc.Facts("GPU busy and idle time", tuple(rows), note, wide=True)


def _table(
    title: str,
    columns: tuple[str, ...],
    rows: Iterable[tuple[str, ...]],
    note: str = "",
    words: int | None = 1,
) -> Iterator[doc.Table]:
    """A table of the first rows, if there are any; cells of code are names."""
    every = tuple(rows)
    more = len(every) - _ROWS_SHOWN
    left = f"{plural(more, 'more row')}: --format json" if more > 0 else ""
    remark = " ".join(filter(None, (note, left)))
    if every:
        yield doc.Table(title, columns, every[:_ROWS_SHOWN], remark, words, names=columns[:words])


def _tables(summary: shapes.TimelineSummary) -> Iterator[doc.Table]:
    """All tables, the most informative first; empty ones are omitted."""
    delays, groups = summary.delays, summary.groups
    spread = "Spread: half of slowest minus fastest, relative to the median."
    yield from _table(
        "Kernels by share of kernel time",
        ("Kernel", "Grid / block", "Count", "Total", "Median", "Spread", "Share"),
        map(_kernel, groups),
        spread if any(group.count > 1 for group in groups) else "",
    )
    yield from _table(
        "Kernels by NVTX range",
        ("NVTX range", "Instances", "Host time", "Kernels", "Kernel time", "Share"),
        map(_range, summary.ranges),
        "A kernel is attributed to the NVTX ranges around its launch call, whenever it runs.",
    )
    relative = (
        ("start of the launch call", delays.from_call_start),
        ("return of the launch call", delays.after_call_return),
        ("end of the stream's previous work", delays.stream_gaps),
    )
    yield from _table(
        "Kernel start delays",
        ("Relative to", "Count", "Median", "Min", "Max"),
        [(label, str(times.count), *_middle(times)) for label, times in relative if times.count],
        f"Negative: the kernel started earlier. Late-submitted: {delays.late} of "
        f"{plural(summary.report.launches, 'launch')}, whose call began after the stream went "
        "idle.",
    )
    kernels = own_names({group.name for group in groups})
    yield from _table(
        "Longest gaps between GPU work",
        ("Previous work", "Next work", "Start", "Duration", "In CUDA calls"),
        [_gap(gap, kernels) for gap in summary.region.largest[:_GAPS_SHOWN]],
        "Start: since the first event. In CUDA calls: share of the gap that the host spent in CUDA "
        "calls, and the call with the largest part.",
        words=2,
    )
    yield from _table(
        "CUDA API calls by host time",
        ("Call", "Count", "Total", "Median", "Min", "Max"),
        [(doc.code(use.name), *_times(use)) for use in summary.calls],
        "Host time in the call, including the profiler's overhead.",
    )
    yield from _table(
        "Memory operations",
        ("Operation", "Memory", "Count", "Bytes", "Time", "Bandwidth"),
        map(_memory, summary.memory),
        words=2,
    )


def _kernel(group: shapes.KernelGroup) -> tuple[str, ...]:
    several = group.count > 1
    spread = (group.high - group.low) / 2 / group.median if several and group.median else 0.0
    return (
        doc.code(group.name),
        f"{extent(group.grid)} / {extent(group.block)}",
        str(group.count),
        number(group.total, "s"),
        number(group.median, "s") if several else "",
        f"±{percent(spread)}" if several and group.median else "",
        percent(group.share),
    )


def _range(use: shapes.RangeUse) -> tuple[str, ...]:
    inside = bool(use.path)
    return (
        doc.code(" / ".join(literal(name) or "(no name)" for name in use.path) or _OUTSIDE),
        str(use.entered) if inside else "",
        number(use.host_time, "s") if inside else "",
        str(use.launches),
        number(use.kernel_time, "s"),
        percent(use.share),
    )


def _gap(gap: shapes.Gap, kernels: Mapping[str, str]) -> tuple[str, ...]:
    host = f"{percent(gap.in_calls)} (largest: {literal(gap.call)})" if gap.call else "none"
    around = (doc.code(kernels.get(name, name)) for name in (gap.after, gap.before))
    return *around, number(gap.start, "s"), number(gap.duration, "s"), host


def _memory(use: shapes.MemoryUse) -> tuple[str, ...]:
    return (
        use.kind,
        " to ".join(filter(None, (use.source, use.target))),
        str(use.count),
        number(use.bytes, "B"),
        number(use.total, "s"),
        number(use.bandwidth, "B/s"),
    )


def _times(times: Spread) -> tuple[str, ...]:
    """Count, total, median, minimum and maximum; of a single time only the total."""
    middle = _middle(times) if times.count > 1 else ("", "", "")
    return str(times.count), number(times.total, "s"), *middle


def _middle(times: Spread) -> tuple[str, ...]:
    return tuple(number(time, "s") for time in (times.median, times.low, times.high))
