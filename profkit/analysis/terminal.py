"""A report as a terminal shows it."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
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
from profkit.rules.checklist import Checklist
from profkit.rules.checklist_view import findings_view
from profkit.ui.terminal import facts, note, panels_view, table_of
from profkit.ui.text import literal, plural, shorten
from profkit.ui.view import Grid, Row

_NAME_LINES = 3
_NARROWEST_NAME = 12
_DISPENSABLE = ("Spread", "Median", "Count", "Total")


def report_view(
    report: ReportSummary,
    shown: Sequence[KernelGroup],
    width: int,
    sorted_by: str = "",
    beside: Sequence[Path] = (),
    checklist: Checklist | None = None,
) -> RenderableType:
    """The whole view: recording, kernels, findings, then each shown kernel's typical launch.

    `beside` are the other files of the report's run.
    """
    about = overview.recording(report, with_host=True)
    if beside:
        names = (
            f"{file.name} (profkit analyze shows it)" if file.name == TIMELINE else file.name
            for file in beside
        )
        row = Row("Beside it", ", ".join(names))
        about = dataclasses.replace(about, rows=(*about.rows, row))
    parts: list[RenderableType] = [
        Text(shorten(literal(report.path), width), "bold"),
        Text(overview.headline(report)),
        facts(about),
        *(note(text) for text in report.notes),
        Text(),
        _groups(overview.groups_grid(report.groups, sorted_by), width),
        *(Text(reason, "dim") for reason in overview.why_unknown(report.groups, sorted_by)),
    ]
    if checklist:
        parts += [Text(), findings_view(report, checklist, width)]
    for rank, group in enumerate(shown, start=1):
        parts += [Text(), _detail(rank, group, width)]
    for gap in overview.all_gaps((group.typical for group in shown), report.session):
        parts += [Text(), Text(gap, "dim")]
    left = len(report.groups) - len(shown)
    if left:
        more = f"{left:,} more of the {plural(len(report.groups), 'row')} above: --top 0 shows all"
        parts += [Text(), Text(f"{more}, --kernel REGEX picks", "dim")]
    return Group(*parts)


def _groups(grid: Grid, width: int) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    columns = zip(grid.columns, *grid.rows, strict=True)
    widths = {name: max(map(len, (name, *cells))) + 2 for name, *cells in columns}
    for name in _DISPENSABLE:
        if sum(widths.values()) - widths["Kernel"] + _NARROWEST_NAME + 2 > width:
            widths.pop(name, None)
    for name in widths:
        left = name in {"Kernel", "Grid / block"}
        table.add_column(name, justify="left" if left else "right", no_wrap=True)
    left_over = width - sum(widths.values()) + widths["Kernel"] - 2
    names = told_apart((row[1] for row in grid.rows), max(_NARROWEST_NAME, left_over))
    for row in grid.rows:
        cells = dict(zip(grid.columns, row, strict=True)) | {"Kernel": names[row[1]]}
        table.add_row(*(Text(cells[name]) for name in widths))
    return table


def _detail(rank: int, group: KernelGroup, width: int) -> RenderableType:
    launch = group.typical
    name = literal(group.name)
    short = told_apart([name], width - 10)[name]
    heading = Text(f"{rank}  {short}", "bold")
    parts: list[RenderableType] = [Rule(heading, align="left", characters="─", style="dim")]
    if short not in {name, name.removeprefix("void ")}:
        parts.append(Text(shorten(name, _NAME_LINES * width), "dim", overflow="fold"))
    parts.append(Text(overview.about(group)))
    parts += [note(warning) for warning in launch.warnings]
    if not launch.failed:
        parts += panels_view(panels.panels(launch), width)
        parts += [table_of(grid) for grid in panels.grids(launch)]
        rules = overview.rule_rows(launch)
        if rules:
            parts.append(_rules(rules, width))
    return Group(*parts)


def _rules(rows: Sequence[Row], width: int) -> RenderableType:
    heading = Text.assemble(
        ("What ncu's own rules say", "bold"),
        ("  a local one is a unit's efficiency, not time; whole: --format json", "dim"),
    )
    claims = max(len(row.value) for row in rows)
    table = Table.grid(padding=(0, 2, 0, 0))
    for row in rows:
        advice = Text.assemble(row.label, ": ", (row.note, "dim"))
        advice.truncate(width - claims - 2, overflow="ellipsis")
        table.add_row(Text(row.value), advice)
    return Group(Text(), heading, table)
