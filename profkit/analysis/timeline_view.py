"""Timelines for a terminal and as Markdown, which omits the host by default."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

from rich.console import Group, JustifyMethod, RenderableType
from rich.table import Table
from rich.text import Text

from profkit.core.errors import UsageError
from profkit.report.names import file_name
from profkit.rules import finding_text as words
from profkit.rules.checklist_view import findings_in_full, findings_in_short
from profkit.rules.finding import Finding
from profkit.timeline import summary as shapes
from profkit.timeline.events import TimelineGpu
from profkit.timeline.summary import KernelGroup, RangeUse, Region, TimelineSummary
from profkit.timeline.times import Spread
from profkit.ui import document as doc
from profkit.ui.markdown import blocks_markdown, code, escape
from profkit.ui.names import told_apart
from profkit.ui.terminal import DocumentView, console, facts, note, rendered
from profkit.ui.text import bar, extent, literal, number, percent, plural, shorten
from profkit.ui.view import Grid, Panel, Row

Report = tuple[TimelineSummary, str, tuple[Finding, ...]]

_GAPS_SHOWN, _ROWS_SHOWN = 5, 20
_BAR = 10  # characters, chosen: a tenth each
_SPACE = 2  # characters between columns
_NARROWEST_NAME = 12  # characters, chosen: the widest table then fits 80 columns
_NAMES = frozenset({"Kernel", "NVTX range", "Call", "Previous work", "Next work"})
_WORDS = _NAMES | {
    "Grid / block", "Operation", "Memory", "In CUDA calls", "Synchronization", "Relative to", "",
}  # fmt: skip
_OUTSIDE = "(outside all ranges)"


def timelines_text(
    reports: Sequence[Report], format: str, *, with_host: bool, to_file: bool
) -> str:
    """Timelines, each with its path and its findings, as terminal, markdown or json.

    JSON has several under `reports`. Raises UsageError for another format.
    """
    if format == "json":
        from profkit.analysis.timeline_json import timelines_json

        return timelines_json(reports, with_host=with_host)
    if format not in {"terminal", "markdown"}:
        raise UsageError(
            f"a timeline can't be written as {format}", "use terminal, markdown or json"
        )
    width = console(to_file=to_file).width
    return "\n".join(
        rendered(_view(*report, width), to_file=to_file)
        if format == "terminal"
        else _markdown(report[0], file_name(report[1], with_host=with_host), report[2])
        for report in reports
    )


def headline(summary: TimelineSummary) -> str:
    """The timeline in a line: launches, kernel time, the GPU's busy share of the region."""
    return (
        f"{plural(summary.kernels.count, 'kernel launch')}, "
        f"{number(summary.kernels.total, 's')} of kernel time; GPU busy "
        f"{percent(summary.region.busy_share)} of {number(summary.region.span, 's')}"
    )


def checklist_text(report: Report, format: str, *, more: str, to_file: bool) -> str:
    """What to do about a timeline, with all that is known of each finding, for a terminal or as
    Markdown; `more` says what is not listed."""
    summary, path, items = report
    base = f"Of {_base(summary.region, items)}." if items else words.NO_TIMELINE_FINDING
    is_shared = format == "markdown"
    blocks: list[doc.Block] = [
        doc.Heading(doc.code(file_name(path, with_host=False) if is_shared else path), 1),
        doc.Paragraph(headline(summary)),
        *map(doc.Note, summary.notes),
        doc.Paragraph(doc.quiet(base)),
        *findings_in_full(items, complete=is_shared),
        *([doc.Lines((doc.quiet(more),), gap=True)] if more else []),
    ]
    if is_shared:
        return blocks_markdown(blocks) + "\n"
    return rendered(DocumentView(blocks), to_file=to_file)


def _recording(summary: TimelineSummary) -> Panel:
    rows = [Row("GPU", _gpu(gpu)) for gpu in summary.gpus]
    when = f"{summary.created:%Y-%m-%d %H:%M:%S} UTC" if summary.created else "date unknown"
    nsys = f"nsys {literal(summary.product_version)}" if summary.product_version else ""
    schema = f"schema {literal(summary.schema_version)}" if summary.schema_version else ""
    rows.append(Row("Recorded", ", ".join(filter(None, (when, nsys, schema)))))
    return Panel("Recording", tuple(rows))


def _gpu(gpu: TimelineGpu) -> str:
    parts = (
        literal(gpu.name) or f"GPU {gpu.device}",
        f"CC {gpu.cc[0]}.{gpu.cc[1]}" if gpu.cc[0] else "",
        plural(gpu.sm_count, "SM") if gpu.sm_count else "",
        f"{gpu.memory_bytes / 2**30:.0f} GiB" if gpu.memory_bytes else "",
    )
    return ", ".join(filter(None, parts))


def _base(region: Region, items: Sequence[Finding]) -> str:
    """The time that estimated speedups are of."""
    steps = [item for item in items if item.rule.about == "application"]
    if len(steps) == len(items):
        whole = next((item.estimate for item in steps if item.estimate), None)
        time = f" of {number(whole.whole_seconds, 's')} (median)" if whole else ""
        return f"{words.STEP}{time}, without what was before"
    span = region.busy + region.gaps.total
    left_out = [
        f"{number(time, 's')} {where} it"
        for time, where in ((region.lead, "before"), (region.tail, "after"))
        if time > 0
    ]
    excluded = f", not the {' and '.join(left_out)}" if left_out else ""
    return f"the {number(span, 's')} from first to last GPU work{excluded}"


def region_panel(region: Region) -> Panel:
    gaps = plural(region.gaps.count, "gap")
    if region.gaps.count:
        gaps += f", median {number(region.gaps.median, 's')}"
    times = (
        ("GPU busy", region.busy, "kernels, memcpy, memset; overlap counts once"),
        ("before first GPU work", region.lead, "from the first CUDA call"),
        ("between GPU work", region.gaps.total, gaps),
        ("after last GPU work", region.tail, "to the end of the last CUDA call"),
    )
    rows = tuple(
        Row(label, number(time, "s"), note, time / region.span if region.span else math.nan)
        for label, time, note in times
    )
    note = "Shares of the time from the first CUDA call or GPU work to the end of the last."
    return Panel("GPU busy and idle time", rows, note)


def grids(summary: TimelineSummary) -> Iterator[Grid]:
    """All tables, the most informative first; empty ones are omitted."""
    for title, columns, rows, remark in _tables(summary):
        every = tuple(rows)
        more = len(every) - _ROWS_SHOWN
        rest = f"{plural(more, 'more row')}: --format json" if more > 0 else ""
        if every:
            yield Grid(title, columns, every[:_ROWS_SHOWN], " ".join(filter(None, (remark, rest))))


def _tables(
    summary: TimelineSummary,
) -> Iterator[tuple[str, tuple[str, ...], Iterable[tuple[str, ...]], str]]:
    """Title, columns, all rows and note of each table."""
    launches, region = summary.launches, summary.region
    yield (
        "Kernels by share of kernel time",
        ("#", "Kernel", "Grid / block", "Count", "Total", "Median", "Spread", "Share"),
        [_kernel(rank, group) for rank, group in enumerate(summary.groups, start=1)],
        "Spread: half of slowest minus fastest, relative to the median."
        if any(group.times.count > 1 for group in summary.groups)
        else "",
    )
    yield (
        "Kernels by NVTX range",
        ("NVTX range", "Instances", "Host time", "Kernels", "Kernel time", "Share"),
        map(_range, summary.ranges),
        "A kernel is attributed to the NVTX ranges around its launch call, whenever it runs.",
    )
    delays = (
        ("start of the launch call", launches.from_call_start),
        ("return of the launch call", launches.after_call_return),
        ("end of the stream's previous work", launches.stream_gaps),
    )
    yield (
        "Kernel start delays",
        ("Relative to", "Count", "Median", "Min", "Max"),
        [(label, str(times.count), *_middle(times)) for label, times in delays if times.count],
        f"Negative: the kernel started earlier. Late-submitted: {launches.late} of "
        f"{plural(len(launches.runs), 'launch')}, whose call began after the stream went idle.",
    )
    yield (
        "Longest gaps between GPU work",
        ("Start", "Duration", "Previous work", "Next work", "In CUDA calls"),
        map(_gap, region.largest[:_GAPS_SHOWN]),
        "Start: since the first event. In CUDA calls: share of the gap that the host spent in CUDA "
        "calls, and the call with the largest part.",
    )
    yield (
        "CUDA API calls by host time",
        ("Call", "Count", "Total", "Median", "Min", "Max"),
        [(literal(use.name), *_times(use.times)) for use in summary.calls],
        "Host time in the call, including nsys overhead.",
    )
    yield (
        "Memory operations",
        ("Operation", "Memory", "Count", "Bytes", "Time", "Bandwidth"),
        map(_memory, summary.memory),
        "",
    )
    yield (
        "Synchronizations, as recorded by the driver",
        ("Synchronization", "Count", "Total", "Median", "Min", "Max"),
        [(use.name, *_times(use.times)) for use in summary.synchronizations],
        "",
    )


def _kernel(rank: int, group: KernelGroup) -> tuple[str, ...]:
    times = group.times
    spread = ""
    if times.count > 1 and times.median:  # half of the range
        spread = f"±{percent((times.high - times.low) / 2 / times.median)}"
    return (
        str(rank),
        literal(group.name),
        f"{extent(group.grid)} / {extent(group.block)}",
        str(times.count),
        number(times.total, "s"),
        number(times.median, "s") if times.count > 1 else "",
        spread,
        percent(group.share),
    )


def _range(use: RangeUse) -> tuple[str, ...]:
    return (
        " / ".join(literal(name) or "(no name)" for name in use.path) or _OUTSIDE,
        str(use.count) if use.path else "",
        number(use.host_time, "s") if use.path else "",
        str(use.kernels.count),
        number(use.kernels.total, "s"),
        percent(use.share),
    )


def _gap(gap: shapes.Gap) -> tuple[str, ...]:
    host = f"{percent(gap.in_calls)} (largest: {literal(gap.call)})" if gap.call else "none"
    around = literal(gap.after.label), literal(gap.before.label)
    return number(gap.start, "s"), number(gap.duration, "s"), *around, host


def _memory(use: shapes.MemoryUse) -> tuple[str, ...]:
    return (
        use.kind,
        " to ".join(filter(None, (use.source, use.target))),
        str(use.times.count),
        number(use.bytes, "B"),
        number(use.times.total, "s"),
        number(use.bandwidth, "B/s"),
    )


def _times(times: Spread) -> tuple[str, ...]:
    """Count, total, median, minimum and maximum; of a single time only the total."""
    middle = _middle(times) if times.count > 1 else ("", "", "")
    return str(times.count), number(times.total, "s"), *middle


def _middle(times: Spread) -> tuple[str, ...]:
    return tuple(number(time, "s") for time in (times.median, times.low, times.high))


def _view(
    summary: TimelineSummary, path: str, items: Sequence[Finding], width: int
) -> RenderableType:
    parts: list[RenderableType] = [
        Text(shorten(literal(path), width), "bold"),
        Text(headline(summary)),
        facts(_recording(summary)),
        *map(note, summary.notes),
        Text(),
        _bars(region_panel(summary.region)),
    ]
    if items:
        base = f"  of {_base(summary.region, items)}"
        heading = Text.assemble((words.HEADING, "bold"), (base, "dim"))
        parts += [Text(), heading, DocumentView(tuple(findings_in_short(items)))]
    for grid in grids(summary):
        parts += [Text(), Text(grid.title, "bold"), _table(grid, width)]
        if grid.note:
            parts.append(Text(grid.note, "dim"))
    return Group(*parts)


def _region_rows(panel: Panel) -> list[tuple[str, str, str, float, str]]:
    """Label, time, share as text and number, and note of each row."""
    shares = [math.nan if row.share is None else row.share for row in panel.rows]
    return [
        (row.label, row.value, percent(share), share, row.note)
        for row, share in zip(panel.rows, shares, strict=True)
    ]


def _bars(panel: Panel) -> RenderableType:
    table = Table.grid(padding=(0, 1))
    for justify in ("left", "right", "right"):
        table.add_column(justify=justify, no_wrap=True)
    table.add_column(width=_BAR, no_wrap=True)
    table.add_column(overflow="fold")
    for *cells, share, remark in _region_rows(panel):
        table.add_row(*map(str, cells), Text(bar(share, _BAR), "cyan"), Text(remark, "dim"))
    return Group(Text(panel.title, "bold"), table, Text(panel.note, "dim"))


def _table(grid: Grid, width: int) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, _SPACE, 0, 0), header_style="dim")
    for name in grid.columns:
        justify: JustifyMethod = "left" if name in _WORDS else "right"
        table.add_column(name, justify=justify, no_wrap=True)
    columns = zip(grid.columns, zip(*grid.rows, strict=True), _limits(grid, width), strict=True)
    for cells in zip(*(_fitted(*column) for column in columns), strict=True):
        table.add_row(*map(Text, cells))
    return table


def _fitted(column: str, cells: Sequence[str], width: int) -> list[str]:
    if column != "Kernel":
        return [shorten(cell, width) for cell in cells]
    names = told_apart(cells, width)
    return [names[cell] for cell in cells]


def _limits(grid: Grid, width: int) -> list[int]:
    """How wide each column may be: names share what the others leave, the shortest first."""
    columns = list(zip(grid.columns, *grid.rows, strict=True))
    limits = [max(map(len, column)) for column in columns]
    names = [index for index, column in enumerate(columns) if column[0] in _NAMES]
    left = width - _SPACE * len(limits)
    left -= sum(limit for index, limit in enumerate(limits) if index not in names)
    for done, index in enumerate(sorted(names, key=limits.__getitem__)):
        fair = max(_NARROWEST_NAME, left // (len(names) - done))
        limits[index] = min(limits[index], fair)
        left -= limits[index]
    return limits


def _markdown(summary: TimelineSummary, path: str, items: Sequence[Finding]) -> str:
    lines = [f"# {code(path)}", "", escape(headline(summary)), ""]
    recording = _recording(summary)
    lines += _markdown_table(("", ""), [(row.label, escape(row.value)) for row in recording.rows])
    lines += [f"\n> {escape(note)}" for note in summary.notes]
    region = region_panel(summary.region)
    rows = [(label, time, share, note) for label, time, share, _, note in _region_rows(region)]
    lines += ["", f"## {region.title}", "", escape(region.note), ""]
    lines += _markdown_table(("", "Time", "Share", ""), rows)
    if items:
        lines += ["", f"## {words.HEADING}", "", f"Of {escape(_base(summary.region, items))}.", ""]
        lines.append(blocks_markdown(findings_in_full(items, complete=True)))
    for grid in grids(summary):
        lines += ["", f"## {grid.title}", ""]
        lines += [escape(grid.note), ""] if grid.note else []
        lines += _markdown_table(grid.columns, [_cells(grid, row) for row in grid.rows])
    return "\n".join(lines) + "\n"


def _cells(grid: Grid, row: Sequence[str]) -> list[str]:
    """Names as code, everything else as prose; names are literal already."""
    return [
        code(cell, in_table=True) if name in _NAMES and cell else escape(cell)
        for name, cell in zip(grid.columns, row, strict=True)
    ]


def _markdown_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    marks = ["---" if name in _WORDS else "---:" for name in columns]
    return [
        f"| {' | '.join(columns)} |",
        f"|{'|'.join(marks)}|",
        *(f"| {' | '.join(row)} |" for row in rows),
    ]
