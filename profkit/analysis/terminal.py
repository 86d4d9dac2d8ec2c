"""A report as a terminal shows it."""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.console import Group, RenderableType
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from profkit.analysis.run_files import TIMELINE
from profkit.report import overview, panels
from profkit.report.names import told_apart
from profkit.report.summary import Group as KernelGroup
from profkit.report.summary import ReportSummary
from profkit.rules import finding_text as words
from profkit.rules.checklist import WORTH_ACTING, Checklist
from profkit.rules.checklist_view import findings_blocks, overview_blocks
from profkit.ui.terminal import DocumentView, facts, note, panels_view, table_of
from profkit.ui.text import literal, percent, plural, shorten
from profkit.ui.view import Grid, Row

_NAME_LINES = 3  # chosen: a template kernel's name in full, up to 300 characters at 100 columns
_NARROWEST_NAME = 30  # chosen: a template kernel's start and end can still be recognized
_DISPENSABLE = ("Spread", "Median", "Count", "Total", "Headroom")
# chosen: with them, the overview fits a screen of 45 lines; the others are counted
_KERNELS_SHOWN = 5
_WARNINGS_SHOWN = 1  # chosen: a line or two


def report_overview(
    report: ReportSummary,
    path: str,
    width: int,
    sorted_by: str = "",
    beside: Sequence[Path] = (),
    checklist: Checklist | None = None,
    nvtx: str | None = None,
) -> RenderableType:
    """One screen: the recording, the first kernels and findings, and the next commands.

    `path` is the argument of the next commands, which repeat the selection by an `nvtx` range;
    `beside` are the other files of the report's run.
    """
    recorded = overview.recording(report, with_host=True)
    rows = tuple(row for row in recorded.rows if row.label in {"GPU", "Clocks"})
    groups = report.groups
    parts: list[RenderableType] = [
        Text(shorten(literal(report.path), width), "bold"),
        Text(overview.headline(report)),
        facts(dataclasses.replace(recorded, rows=rows)),
        *(note(text) for text in report.notes),
        Text(),
        *_groups(
            overview.groups_grid(
                groups[:_KERNELS_SHOWN], sorted_by, words.kernel_columns(checklist)
            ),
            width,
            _rest(groups),
        ),
    ]
    parts += [Text(reason, "dim") for reason in overview.why_unknown(groups, sorted_by)]
    if checklist:
        parts.append(DocumentView(tuple(overview_blocks(report, checklist, width))))
    warnings = [
        (f"#{number} {warning}", group.share >= WORTH_ACTING)
        for number, group in enumerate(groups, start=1)
        for warning in group.typical.warnings
    ]
    shown = [warning for warning, matters in warnings if matters][:_WARNINGS_SHOWN]
    parts += [note(warning) for warning in shown]
    parts += [note(text) for text in _launch_notes(groups)]
    if more := len(warnings) - len(shown):
        label = "more warning" if shown else "warning"
        parts.append(note(f"{plural(more, label)} about counters: --top 0 lists all"))
    return Group(*parts, Text(), *_next_commands(path, beside, nvtx))


def _launch_notes(groups: Sequence[KernelGroup]) -> Iterator[str]:
    """Notes on the kernels with much of the time, each text once: `#1, #3 data fits in L2 ...`."""
    kernels: dict[str, list[str]] = {}
    for number, group in enumerate(groups, start=1):
        for text in group.typical.notes if group.share >= WORTH_ACTING else ():
            kernels.setdefault(text, []).append(f"#{number}")
    return (f"{', '.join(numbers)} {text}" for text, numbers in kernels.items())


def _next_commands(path: str, beside: Sequence[Path], nvtx: str | None) -> list[RenderableType]:
    """The next commands, each on one line that can be copied."""
    name = shlex.quote(path)
    selected = f"{name} --nvtx {shlex.quote(nvtx)}" if nvtx else name
    commands = [
        ("all actions", f"profkit checklist {selected}"),
        ("kernel details", f"profkit analyze {selected} --top 3"),
        ("", f"profkit analyze {selected} --kernel REGEX"),
        ("source lines", f"profkit source {name} --kernel REGEX"),
    ]
    timelines = [file for file in beside if file.name == TIMELINE]
    commands += [("timeline", f"profkit analyze {shlex.quote(str(file))}") for file in timelines]
    label_width = max(len(label) for label, _ in commands) + 2
    lines = [
        Text.assemble((f"{label:<{label_width}}", "dim"), literal(command))
        for label, command in commands
    ]
    for line in lines:
        line.no_wrap, line.overflow = True, "ignore"
    return [Text("Next", "bold"), *lines]


def report_view(
    report: ReportSummary,
    shown: Sequence[KernelGroup],
    width: int,
    sorted_by: str = "",
    beside: Sequence[Path] = (),
    checklist: Checklist | None = None,
) -> RenderableType:
    """Recording, kernels, findings, then each shown kernel's typical launch in detail.

    `beside` are the other files of the report's run.
    """
    about = overview.recording(report, with_host=True)
    if beside:
        names = (
            f"{file.name} (profkit analyze shows it)" if file.name == TIMELINE else file.name
            for file in beside
        )
        row = Row("Also in this run", ", ".join(names))
        about = dataclasses.replace(about, rows=(*about.rows, row))
    parts: list[RenderableType] = [
        Text(shorten(literal(report.path), width), "bold"),
        Text(overview.headline(report)),
        facts(about),
        *(note(text) for text in report.notes),
        Text(),
        *_groups(
            overview.groups_grid(report.groups, sorted_by, words.kernel_columns(checklist)), width
        ),
        *(Text(reason, "dim") for reason in overview.why_unknown(report.groups, sorted_by)),
    ]
    if checklist:
        parts.append(DocumentView(tuple(findings_blocks(report, checklist))))
    for rank, group in enumerate(shown, start=1):
        parts += [Text(), _detail(rank, group, width)]
    for gap in overview.all_gaps((group.typical for group in shown), report.session):
        parts += [Text(), Text(gap, "dim")]
    left = len(report.groups) - len(shown)
    if left:
        more = f"{left:,} more of the {plural(len(report.groups), 'row')} above"
        parts += [Text(), Text(f"{more}: --top 0 lists all, --kernel REGEX selects", "dim")]
    return Group(*parts)


def _rest(groups: Sequence[KernelGroup]) -> str:
    """What the overview leaves out of the table of kernels; "" for nothing."""
    if not (rest := groups[_KERNELS_SHOWN:]):
        return ""
    share = percent(sum(group.share for group in rest))
    return f"{plural(len(rest), 'more row')}, {share} of the GPU time"


def _groups(grid: Grid, width: int, rest: str = "") -> list[RenderableType]:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    columns = zip(grid.columns, *grid.rows, strict=True)
    widths = {name: max(map(len, (name, *cells))) + 2 for name, *cells in columns}
    for name in _DISPENSABLE:
        if sum(widths.values()) - widths["Kernel"] + _NARROWEST_NAME + 2 > width:
            widths.pop(name, None)
    for name in widths:
        left = name in {"Kernel", "Grid / block", "Headroom"}
        table.add_column(name, justify="left" if left else "right", no_wrap=True)
    left_over = width - sum(widths.values()) + widths["Kernel"] - 2
    names = told_apart((row[1] for row in grid.rows), max(_NARROWEST_NAME, left_over))
    for row in grid.rows:
        cells = dict(zip(grid.columns, row, strict=True)) | {"Kernel": names[row[1]]}
        table.add_row(*(Text(cells[name]) for name in widths))
    about = "; ".join(filter(None, (rest, grid.note if "Spread" in widths else "")))
    headrooms = (row[grid.columns.index("Headroom")] for row in grid.rows)
    notes = (about, words.headroom_legend(headrooms) if "Headroom" in widths else "")
    return [table, *(Text(note, "dim") for note in notes if note)]


def _detail(rank: int, group: KernelGroup, width: int) -> RenderableType:
    launch = group.typical
    name = literal(group.name)
    short = told_apart([name], width - 10)[name]
    heading = Text(f"{rank}  {short}", "bold")
    parts: list[RenderableType] = [Rule(heading, align="left", characters="─", style="dim")]
    if short not in {name, name.removeprefix("void ")}:
        parts.append(Text(shorten(name, _NAME_LINES * width), "dim", overflow="fold"))
    parts.append(Text(overview.about(group)))
    parts += [note(text) for text in (*launch.warnings, *launch.notes)]
    if not launch.failed:
        parts += panels_view(panels.panels(launch), width)
        parts += [table_of(grid) for grid in panels.grids(launch)]
        rules = overview.rule_rows(launch)
        if rules:
            parts.append(_rules(rules, width))
    return Group(*parts)


def _rules(rows: Sequence[Row], width: int) -> RenderableType:
    heading = Text.assemble(
        ("Results of ncu's own rules", "bold"),
        ("  local: of a unit's efficiency, not of time; --format json has the full text", "dim"),
    )
    claims = max(len(row.value) for row in rows)
    table = Table.grid(padding=(0, 2, 0, 0))
    for row in rows:
        advice = Text.assemble(row.label, ": ", (row.note, "dim"))
        advice.truncate(width - claims - 2, overflow="ellipsis")
        table.add_row(Text(row.value), advice)
    return Group(Text(), heading, table)
