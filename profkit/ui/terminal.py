"""Reports as a terminal shows them: tables and bars, coloured only on a terminal."""

from __future__ import annotations

import dataclasses
import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from profkit.report import overview, panels
from profkit.report.names import told_apart
from profkit.report.summary import Group as KernelGroup
from profkit.report.summary import ReportSummary
from profkit.rules.checklist import Checklist
from profkit.rules.checklist_view import findings_view
from profkit.ui.fit import fitted
from profkit.ui.text import bar, literal, plural, shorten
from profkit.ui.view import Grid, Panel, Row

PIPED_WIDTH = 100
_WIDEST, _NARROWEST = 120, 60
_TWO_COLUMNS_FROM = 96
_BAR = 10
_GAP = 3
_NAME_LINES = 3
_NARROWEST_NAME = 12
_DISPENSABLE = ("Spread", "Median", "Count", "Total")


def console(*, to_file: bool) -> Console:
    """How wide and how coloured: what COLUMNS says, else the terminal's width or 100 columns; no
    colour unless it goes to a terminal."""
    if to_file or not sys.stdout.isatty():
        width = _within(_columns() or PIPED_WIDTH)
        return Console(force_terminal=False, width=width, color_system=None, highlight=False)
    return Console(width=_within(Console(highlight=False).width), highlight=False)


def _columns() -> int:
    """What the environment asks for; 0 where it asks for nothing that is a width."""
    asked = os.environ.get("COLUMNS", "")
    return int(asked) if asked.isascii() and asked.isdigit() else 0


def _within(width: int) -> int:
    return max(_NARROWEST, min(width, _WIDEST))


def rendered(view: RenderableType, *, to_file: bool) -> str:
    """A view as text: coloured for a terminal; else without trailing blanks."""
    out = console(to_file=to_file)
    with out.capture() as captured:
        out.print(view)
    if out.is_terminal:
        return captured.get()
    return "".join(f"{line.rstrip()}\n" for line in captured.get().splitlines())


def report_view(
    report: ReportSummary,
    shown: Sequence[KernelGroup],
    width: int,
    sorted_by: str = "",
    beside: Sequence[Path] = (),
    found: Checklist | None = None,
) -> RenderableType:
    """The whole view: recording, kernels, findings, then each shown kernel's typical launch.

    `beside` are the other files of the report's run.
    """
    about = overview.recording(report, with_host=True)
    if beside:
        row = Row("Beside it", overview.run_files(beside))
        about = dataclasses.replace(about, rows=(*about.rows, row))
    parts: list[RenderableType] = [
        Text(shorten(literal(report.path), width), "bold"),
        Text(overview.headline(report)),
        facts(about),
        *(_note(note) for note in report.notes),
        Text(),
        _groups(overview.groups_grid(report.groups, sorted_by), width),
        *(Text(reason, "dim") for reason in overview.why_unknown(report.groups, sorted_by)),
    ]
    if found:
        parts += [Text(), findings_view(report, found, width)]
    for rank, group in enumerate(shown, start=1):
        parts += [Text(), _detail(rank, group, width)]
    gaps = overview.all_gaps((group.typical for group in shown), report.session)
    for gap in gaps:
        parts += [Text(), Text(gap, "dim")]
    left = len(report.groups) - len(shown)
    if left:
        more = f"{left:,} more of the {plural(len(report.groups), 'row')} above: --top 0 shows all"
        parts += [Text(), Text(f"{more}, --kernel REGEX picks", "dim")]
    return Group(*parts)


def facts(panel: Panel) -> Table:
    """A panel as two columns, labels and values."""
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for row in panel.rows:
        table.add_row(Text(row.label, "dim"), Text(row.value))
    return table


def _note(text: str) -> RenderableType:
    return Text(f"! {text}", "yellow")


def _groups(grid: Grid, width: int) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    widths = {
        name: max(len(name), *(len(row[at]) for row in grid.rows)) + 2
        for at, name in enumerate(grid.columns)
    }
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
    parts += [_note(warning) for warning in launch.warnings]
    if not launch.failed:
        parts += _body(panels.panels(launch), width)
        parts += [table_of(grid) for grid in panels.grids(launch)]
        rules = overview.rule_rows(launch)
        if rules:
            parts.append(_rules(rules, width))
    return Group(*parts)


def _body(launch_panels: Iterable[Panel], width: int) -> list[RenderableType]:
    """Narrow panels two abreast where the width allows, wide ones alone."""
    parts: list[RenderableType] = []
    abreast: list[Panel] = []
    columns = 2 if width >= _TWO_COLUMNS_FROM else 1
    column = (width - _GAP * (columns - 1)) // columns
    for panel in launch_panels:
        if panel.wide:
            parts += [Text(), _panel(panel)]
            continue
        abreast.append(panel)
        if len(abreast) == columns:
            parts += [Text(), _abreast(abreast, column)]
            abreast = []
    if abreast:
        parts += [Text(), _abreast(abreast, column if len(abreast) == columns else width)]
    return parts


def _abreast(row: Sequence[Panel], column: int) -> RenderableType:
    table = Table.grid(padding=(0, _GAP, 0, 0))
    for _ in row:
        table.add_column(width=column)
    table.add_row(*(_panel(panel) for panel in row))
    return table


def _panel(panel: Panel) -> RenderableType:
    table = Table.grid(padding=(0, 1))
    bars = any(row.share is not None and row.share > 0 for row in panel.rows)
    values = any(row.value for row in panel.rows)
    table.add_column(no_wrap=True)
    if values:
        table.add_column(justify="right" if bars else "left", no_wrap=True)
    if bars:
        table.add_column(width=_BAR, no_wrap=True)
    table.add_column(overflow="fold")
    for row in panel.rows:
        cells = [Text(row.label)]
        if values:
            cells.append(Text(row.value))
        if bars:
            cells.append(Text(bar(row.share, _BAR) if row.share is not None else "", "cyan"))
        cells.append(Text(row.note, "dim"))
        table.add_row(*cells)
    parts: list[RenderableType] = [Text(panel.title, "bold"), table]
    if panel.note:
        parts.append(Text(panel.note, "dim"))
    return Group(*parts)


@dataclasses.dataclass(frozen=True)
class _Fitted:
    """A grid that takes the width it is given."""

    grid: Grid
    numbers: bool = False

    def __rich_console__(self, _: Console, options: ConsoleOptions) -> RenderResult:
        names, rows = fitted(self.grid, options.max_width, numbers=self.numbers)
        yield from (Text(line, "dim") for line in names)
        yield from map(Text, rows)


def table_of(grid: Grid, *, numbers: bool = False) -> RenderableType:
    """A grid with its title and note; `numbers` puts all columns but the first to the right."""
    parts: list[RenderableType] = [Text(), Text(grid.title, "bold")]
    if grid.rows:
        parts.append(_Fitted(grid, numbers))
    if grid.note:
        parts.append(Text(grid.note, "dim"))
    return Group(*parts)


def _rules(rows: Sequence[Row], width: int) -> RenderableType:
    heading = Text.assemble(
        ("What ncu's own rules say", "bold"),
        (
            "  a local one is a unit's efficiency, not time; whole: --format json",
            "dim",
        ),
    )
    claims = max(len(row.value) for row in rows)
    table = Table.grid(padding=(0, 2, 0, 0))
    for row in rows:
        advice = Text.assemble(row.label, ": ", (row.note, "dim"))
        advice.truncate(width - claims - 2, overflow="ellipsis")
        table.add_row(Text(row.value), advice)
    return Group(Text(), heading, table)
