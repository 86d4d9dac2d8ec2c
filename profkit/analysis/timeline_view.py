"""Timelines as people and machines get them: terminal, Markdown and `profkit.timeline/1` JSON.

The schema of the JSON is `profkit/schemas/timeline.json`. Markdown and JSON hold nothing of the
host: of the path only the file's name, unless asked.
"""

from __future__ import annotations

import io
import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from rich.console import Group, JustifyMethod, RenderableType
from rich.table import Table
from rich.text import Text

from profkit.core.errors import BadInput, UsageError
from profkit.core.json_text import json_rows, nullable
from profkit.core.typed_file import plain
from profkit.core.version import __version__
from profkit.report.names import file_name, told_apart
from profkit.rules import finding_text as words
from profkit.rules.checklist import Item
from profkit.rules.checklist_format import item_row
from profkit.rules.checklist_markdown import items_markdown
from profkit.rules.checklist_view import in_short
from profkit.timeline.reader import TimelineGpu
from profkit.timeline.summary import (
    ApiUse,
    Gap,
    KernelGroup,
    KernelRun,
    MemoryUse,
    RangeUse,
    Region,
    Spread,
    TimelineSummary,
)
from profkit.ui.markdown import code, escape
from profkit.ui.terminal import console, facts, rendered
from profkit.ui.text import bar, extent, literal, number, percent, plural, shorten
from profkit.ui.view import Grid, Panel, Row

SCHEMA = "profkit.timeline/1"

Json = dict[str, Any]
Report = tuple[TimelineSummary, str, tuple[Item, ...]]

_GAPS_SHOWN, _ROWS_SHOWN = 5, 20
_LONGEST_JSON = 128 << 20
"""Characters, of which a launch in a named range takes some 400. Names are told for each launch, so
that long ones could make the text 1,000 times larger than the file."""
_BAR = 10
_SPACE = 2
_NARROWEST_NAME = 12
_NAMES = frozenset({"Kernel", "NVTX range", "Call", "After", "Before"})
_WORDS = _NAMES | {
    "Grid / block", "Copy", "Memory", "In CUDA calls", "Wait", "A kernel's start after", "",
}  # fmt: skip
_OUTSIDE = "(outside all ranges)"


def timelines_text(
    reports: Sequence[Report], format: str, *, with_host: bool, to_file: bool
) -> str:
    """Timelines, each with its path and what rules found in it, as terminal, markdown or json.

    JSON has several under `reports`. Raises UsageError for another format.
    """
    match format:
        case "terminal":
            width = console(to_file=to_file).width
            return "\n".join(
                rendered(_view(summary, path, items, width), to_file=to_file)
                for summary, path, items in reports
            )
        case "markdown":
            return "\n".join(
                _markdown(summary, file_name(path, with_host=with_host), items)
                for summary, path, items in reports
            )
        case "json":
            return _json(reports, with_host=with_host)
        case _:
            raise UsageError(
                f"a timeline can't be written as {format}", "use terminal, markdown or json"
            )


def headline(summary: TimelineSummary) -> str:
    """The timeline in a line: launches, kernel time, the GPU's busy share of the region."""
    return (
        f"{plural(summary.kernels.count, 'kernel launch')}, "
        f"{number(summary.kernels.total, 's')} of kernel time; the GPU worked "
        f"{percent(summary.region.busy_share)} of {number(summary.region.span, 's')}"
    )


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


def _region_panel(region: Region) -> Panel:
    gaps = plural(region.gaps.count, "gap")
    if region.gaps.count:
        gaps += f", median {number(region.gaps.median, 's')}"
    times = (
        ("GPU at work", region.busy, "kernels, copies and fills; what overlaps counts once"),
        ("before the first work", region.lead, "from the first CUDA call"),
        ("between work", region.gaps.total, gaps),
        ("after the last work", region.tail, "to the end of the last CUDA call"),
    )
    rows = tuple(
        Row(label, number(time, "s"), note, time / region.span if region.span else math.nan)
        for label, time, note in times
    )
    note = "Share of the time from the first CUDA call or GPU work to the end of the last."
    return Panel("Region", rows, note)


def _grids(summary: TimelineSummary) -> tuple[Grid, ...]:
    """All tables, the most telling first; those that would be empty are left out."""
    made = (
        _with_rest(_kernels_grid(summary.groups[:_ROWS_SHOWN]), summary.groups),
        _with_rest(_ranges_grid(summary.ranges[:_ROWS_SHOWN]), summary.ranges),
        _launches_grid(summary),
        _gaps_grid(summary.region),
        _with_rest(_calls_grid(summary.calls[:_ROWS_SHOWN]), summary.calls),
        _with_rest(_memory_grid(summary.memory[:_ROWS_SHOWN]), summary.memory),
        _synchronizations_grid(summary),
    )
    return tuple(grid for grid in made if grid.rows)


def _with_rest(grid: Grid, rows: Sequence[object]) -> Grid:
    """A table of the first rows, which have the most time, that says how many more there are."""
    more = len(rows) - len(grid.rows)
    if more <= 0:
        return grid
    note = " ".join(filter(None, (grid.note, f"{plural(more, 'more row')}: --format json")))
    return replace(grid, note=note)


def _kernels_grid(groups: Iterable[KernelGroup]) -> Grid:
    rows = tuple(
        (
            str(rank),
            literal(group.name),
            f"{extent(group.grid)} / {extent(group.block)}",
            str(group.times.count),
            number(group.times.total, "s"),
            number(group.times.median, "s") if group.times.count > 1 else "",
            _variation(group.times),
            percent(group.share),
        )
        for rank, group in enumerate(groups, start=1)
    )
    columns = ("#", "Kernel", "Grid / block", "Count", "Total", "Median", "Spread", "Share")
    return Grid("Kernels by share of kernel time", columns, rows)


def _variation(times: Spread) -> str:
    """Half of what lies between the extremes, as a share of the median."""
    if times.count < 2 or not times.median:
        return ""
    return f"±{percent((times.high - times.low) / 2 / times.median)}"


def _times(times: Spread) -> tuple[str, ...]:
    """Total, median, least and most; of a single one only the total."""
    if times.count < 2:
        return number(times.total, "s"), "", "", ""
    return tuple(number(time, "s") for time in (times.total, *_middle(times)))


def _ranges_grid(ranges: Iterable[RangeUse]) -> Grid:
    rows = tuple(
        (
            " / ".join(literal(name) or "(no name)" for name in use.path) or _OUTSIDE,
            str(use.count) if use.path else "",
            number(use.host_time, "s") if use.path else "",
            str(use.kernels.count),
            number(use.kernels.total, "s"),
            percent(use.share),
        )
        for use in ranges
    )
    columns = ("NVTX range", "Entered", "Host time", "Kernels", "Kernel time", "Share")
    note = "A kernel belongs to the ranges around its launch, wherever it then runs."
    return Grid("Kernels by NVTX range", columns, rows, note)


def _launches_grid(summary: TimelineSummary) -> Grid:
    launches = summary.launches
    delays = (
        ("the start of its launch call", launches.from_call_start),
        ("the return of its launch call", launches.after_call_return),
        ("the end of its stream's work before", launches.stream_gaps),
    )
    rows = tuple(
        (label, str(times.count), *(number(time, "s") for time in _middle(times)))
        for label, times in delays
        if times.count
    )
    note = (
        f"Negative: the kernel started earlier. {launches.late} of "
        f"{plural(len(launches.runs), 'launch')} came late: the call began after the stream had "
        "run dry."
    )
    columns = ("A kernel's start after", "Count", "Median", "Min", "Max")
    return Grid("Launch delays", columns, rows, note)


def _middle(times: Spread) -> tuple[float, float, float]:
    return times.median, times.low, times.high


def _gaps_grid(region: Region) -> Grid:
    rows = tuple(
        (
            number(gap.start, "s"),
            number(gap.duration, "s"),
            literal(gap.after.label),
            literal(gap.before.label),
            _host(gap),
        )
        for gap in region.largest[:_GAPS_SHOWN]
    )
    columns = ("At", "Length", "After", "Before", "In CUDA calls")
    note = (
        "At: from the first event. In CUDA calls: the share of the gap that the host spent in "
        "them, and the call that took most of it."
    )
    return Grid("Longest gaps between GPU work", columns, rows, note)


def _host(gap: Gap) -> str:
    if not gap.call:
        return "none"
    return f"{percent(gap.in_calls)}, {literal(gap.call)}"


def _calls_grid(calls: Iterable[ApiUse]) -> Grid:
    rows = tuple((literal(use.name), str(use.times.count), *_times(use.times)) for use in calls)
    note = "Host time in each call, with what nsys adds to it."
    columns = ("Call", "Count", "Total", "Median", "Min", "Max")
    return Grid("CUDA calls by time", columns, rows, note)


def _memory_grid(uses: Iterable[MemoryUse]) -> Grid:
    rows = tuple(
        (
            use.kind,
            " to ".join(filter(None, (use.source, use.target))),
            str(use.times.count),
            number(use.bytes, "B"),
            number(use.times.total, "s"),
            number(use.bandwidth, "B/s"),
        )
        for use in uses
    )
    columns = ("Copy", "Memory", "Count", "Bytes", "Time", "Bandwidth")
    return Grid("Copies and fills", columns, rows)


def _synchronizations_grid(summary: TimelineSummary) -> Grid:
    rows = tuple(
        (use.kind, str(use.times.count), *_times(use.times)) for use in summary.synchronizations
    )
    columns = ("Wait", "Count", "Total", "Median", "Min", "Max")
    return Grid("Synchronizations, as the driver recorded them", columns, rows)


def _view(summary: TimelineSummary, path: str, items: Sequence[Item], width: int) -> RenderableType:
    parts: list[RenderableType] = [
        Text(shorten(literal(path), width), "bold"),
        Text(headline(summary)),
        facts(_recording(summary)),
        *(Text(f"! {note}", "yellow") for note in summary.notes),
        Text(),
        _bars(_region_panel(summary.region)),
    ]
    if items:
        parts += [Text(), Text(words.HEADING, "bold"), *in_short(items, width)]
    for grid in _grids(summary):
        parts += [Text(), Text(grid.title, "bold"), _table(grid, width)]
        if grid.note:
            parts.append(Text(grid.note, "dim"))
    return Group(*parts)


def _bars(panel: Panel) -> RenderableType:
    table = Table.grid(padding=(0, 1))
    table.add_column(no_wrap=True)
    table.add_column(justify="right", no_wrap=True)
    table.add_column(justify="right", no_wrap=True)
    table.add_column(width=_BAR, no_wrap=True)
    table.add_column(overflow="fold")
    for row in panel.rows:
        share = math.nan if row.share is None else row.share
        table.add_row(
            Text(row.label),
            Text(row.value),
            Text(percent(share)),
            Text(bar(share, _BAR), "cyan"),
            Text(row.note, "dim"),
        )
    return Group(Text(panel.title, "bold"), table, Text(panel.note, "dim"))


def _table(grid: Grid, width: int) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, _SPACE, 0, 0), header_style="dim")
    for name in grid.columns:
        justify: JustifyMethod = "left" if name in _WORDS else "right"
        table.add_column(name, justify=justify, no_wrap=True)
    limits = _limits(grid, width)
    columns = [
        _fitted(name, [row[at] for row in grid.rows], limits[at])
        for at, name in enumerate(grid.columns)
    ]
    for cells in zip(*columns, strict=True):
        table.add_row(*map(Text, cells))
    return table


def _fitted(column: str, cells: Sequence[str], width: int) -> list[str]:
    if column != "Kernel":
        return [shorten(cell, width) for cell in cells]
    names = told_apart(cells, width)
    return [names[cell] for cell in cells]


def _limits(grid: Grid, width: int) -> list[int]:
    """How wide each column may be: names share what the others leave, the shortest first."""
    limits = [
        max(len(cell) for cell in (name, *(row[at] for row in grid.rows)))
        for at, name in enumerate(grid.columns)
    ]
    names = [at for at, name in enumerate(grid.columns) if name in _NAMES]
    left = width - _SPACE * len(limits)
    left -= sum(limit for at, limit in enumerate(limits) if at not in names)
    for done, at in enumerate(sorted(names, key=limits.__getitem__)):
        fair = max(_NARROWEST_NAME, left // (len(names) - done))
        limits[at] = min(limits[at], fair)
        left -= limits[at]
    return limits


def _markdown(summary: TimelineSummary, path: str, items: Sequence[Item]) -> str:
    lines = [f"# {code(path)}", "", escape(headline(summary)), ""]
    recording = _recording(summary)
    lines += _markdown_table(("", ""), [(row.label, escape(row.value)) for row in recording.rows])
    lines += [f"\n> {escape(note)}" for note in summary.notes]
    region = _region_panel(summary.region)
    rows = [
        (row.label, row.value, percent(math.nan if row.share is None else row.share), row.note)
        for row in region.rows
    ]
    lines += ["", f"## {region.title}", "", escape(region.note), ""]
    lines += _markdown_table(("", "Time", "Share", ""), rows)
    if items:
        lines += ["", f"## {words.HEADING}", "", *items_markdown(items)]
    for grid in _grids(summary):
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


def _json(reports: Sequence[Report], *, with_host: bool) -> str:
    made = [
        _report(summary, file_name(path, with_host=with_host))
        | {"checklist": [plain(item_row(item)) for item in items]}
        for summary, path, items in reports
    ]
    head = {"schema": SCHEMA, "profkit": __version__}
    body = made[0] if len(made) == 1 else {"reports": made}
    return _within_limit(json_rows(head | body), reports[0][1])


def _within_limit(pieces: Iterable[str], path: str) -> str:
    """The text of some pieces; raises BadInput where names that are told often make it too long."""
    text = io.StringIO()
    for piece in pieces:
        if text.tell() + len(piece) > _LONGEST_JSON:
            raise BadInput(
                f"{path}: more than {_LONGEST_JSON >> 20} MiB of JSON",
                "record less: `nsys profile --duration SECONDS`; the terminal shows it all",
            )
        text.write(piece)
    return text.getvalue()


def _report(summary: TimelineSummary, file: str) -> Json:
    launches = summary.launches
    return {
        "report": {
            "file": file,
            "recorded": summary.created.isoformat() if summary.created else None,
            "nsys": summary.product_version or None,
            "export_schema": summary.schema_version or None,
            "kernel_launches": summary.kernels.count,
            "kernel_time_s": summary.kernels.total,
            "notes": list(summary.notes),
        },
        "gpus": [_gpu_json(gpu) for gpu in summary.gpus],
        "region": _region_json(summary.region),
        "kernels": map(_group, summary.groups),
        "ranges": map(_range, summary.ranges),
        "launch_delays": {
            "from_call_start": _spread(launches.from_call_start),
            "after_call_return": _spread(launches.after_call_return),
            "stream_gap": _spread(launches.stream_gaps),
            "late": launches.late,
        },
        "launches": map(_run, launches.runs),
        "calls": [{"name": use.name, **_spread(use.times)} for use in summary.calls],
        "memory": [_memory(use) for use in summary.memory],
        "synchronizations": [
            {"kind": use.kind, **_spread(use.times)} for use in summary.synchronizations
        ],
    }


def _gpu_json(gpu: TimelineGpu) -> Json:
    return {
        "device": gpu.device,
        "name": gpu.name,
        "compute_capability": f"{gpu.cc[0]}.{gpu.cc[1]}" if gpu.cc[0] else None,
        "sm_count": gpu.sm_count or None,
        "memory_bytes": gpu.memory_bytes or None,
    }


def _region_json(region: Region) -> Json:
    return {
        "start_s": region.start,
        "span_s": region.span,
        "busy_s": region.busy,
        "busy_share": nullable(region.busy_share),
        "idle_s": region.idle,
        "lead_s": region.lead,
        "tail_s": region.tail,
        "gaps": _spread(region.gaps),
        "largest_gaps": [
            {
                "start_s": gap.start,
                "duration_s": gap.duration,
                "after": gap.after.name,
                "before": gap.before.name,
                "in_calls": gap.in_calls,
                "call": gap.call or None,
            }
            for gap in region.largest
        ],
    }


def _group(group: KernelGroup) -> Json:
    return {
        "name": group.name,
        "grid": list(group.grid),
        "block": list(group.block),
        **_spread(group.times),
        "share": nullable(group.share),
    }


def _range(use: RangeUse) -> Json:
    return {
        "path": list(use.path),
        "entered": use.count,
        "host_time_s": nullable(use.host_time),
        "kernel_launches": use.kernels.count,
        "kernel_time_s": use.kernels.total,
        "share": nullable(use.share),
        "kernels": [_group(group) for group in use.groups],
    }


def _run(run: KernelRun) -> Json:
    kernel = run.kernel
    return {
        "name": kernel.name,
        "grid": list(kernel.grid),
        "block": list(kernel.block),
        "device": kernel.stream.device,
        "stream": kernel.stream.number,
        "start_s": kernel.start,
        "duration_s": kernel.duration,
        "nvtx": [item.name for item in kernel.ranges],
        "call": kernel.launch.name if kernel.launch else None,
        "from_call_start_s": nullable(run.from_call_start),
        "after_call_return_s": nullable(run.after_call_return),
        "stream_gap_s": nullable(run.stream_gap),
        "late": run.late,
    }


def _memory(use: MemoryUse) -> Json:
    return {
        "kind": use.kind,
        "source": use.source or None,
        "target": use.target or None,
        "bytes": use.bytes,
        **_spread(use.times),
        "bandwidth_bytes_per_s": nullable(use.bandwidth),
    }


def _spread(times: Spread) -> Json:
    return {
        "count": times.count,
        "total_s": times.total,
        "median_s": nullable(times.median),
        "min_s": nullable(times.low),
        "max_s": nullable(times.high),
    }
