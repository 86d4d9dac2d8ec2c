"""Short HTML views for notebooks."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

from profkit.report import overview, panels
from profkit.report.names import file_name
from profkit.report.summary import NAME_WIDTH, LaunchSummary, ReportSummary
from profkit.rules import finding_text as words
from profkit.ui.names import told_apart
from profkit.ui.text import literal, plural
from profkit.ui.view import Grid, Panel, Row

if TYPE_CHECKING:
    from profkit.rules.checklist import Checklist
    from profkit.rules.finding import Finding
    from profkit.timeline.summary import TimelineSummary

_NAME = 70  # characters, chosen: two columns of numbers fit beside it in a notebook cell
_ITEMS = 3  # chosen: with recording and kernels on one screen of a notebook
_LEFT = "text-align:left;padding:1px 12px 1px 0"
_BAR = "display:inline-block;height:0.7em;background:#3b82b6"
_BAR_WIDTH = 120
_NOT_BROKEN = 18  # characters of a cell on one line: chosen, `1.20x [1.09, 1.20]` is one


def report_html(report: ReportSummary, checklist: Checklist) -> str:
    """The recording, the first findings, and the kernels by share of time."""
    grid = overview.groups_grid(report.groups, more=words.kernel_columns(checklist))
    names = told_apart((row[1] for row in grid.rows), _NAME)
    rows = [(row[0], names[row[1]], *row[2:]) for row in grid.rows]
    recording = overview.recording(report, with_host=False)
    notes = "".join(f"<div>! {_text(note)}</div>" for note in report.notes)
    legend = ""
    if "Headroom" in grid.columns:
        headrooms = (row[grid.columns.index("Headroom")] for row in grid.rows)
        legend = f"<small>{_text(words.headroom_legend(headrooms))}</small>"
    return (
        f"<div><b>{_text(file_name(report.path, with_host=False))}</b>: "
        f"{_text(overview.headline(report))}{_panel(recording)}{notes}"
        f"{_findings(checklist)}{_table(grid.columns, rows)}{legend}</div>"
    )


def timeline_html(summary: TimelineSummary, path: str, findings: Sequence[Finding]) -> str:
    """What the GPU did and waited for, the findings, and the tables of the timeline."""
    from profkit.analysis import timeline_view as view

    return (
        f"<div><b>{_text(file_name(path, with_host=False))}</b>: {_text(view.headline(summary))}"
        f"{_panel(view.region_panel(summary.region))}"
        + "".join(f"<div>! {_text(note)}</div>" for note in summary.notes)
        + _items([(item, "") for item in findings])
        + "".join(_grid(grid) for grid in view.grids(summary))
        + "</div>"
    )


def _findings(checklist: Checklist) -> str:
    if not checklist.findings:
        return f"<div>{_text(words.summary(checklist))}</div>"
    shown = (checklist.major or checklist.rule_items)[:_ITEMS]
    more = len(checklist.rule_items) - len(shown)
    rest = f"<small>{plural(more, 'more item')}: Report.checklist()</small>" if more else ""
    proof = checklist.headline
    headline = ""
    if proof:
        source = _text(words.proof_source(proof))
        headline = f"<div><b>{_text(words.proof_line(proof))}</b> ({source})</div>"
    notes = f"<small>{_text(words.notes())}</small>" if checklist.items else ""
    return headline + _items([(item.best, item.other_kernels) for item in shown]) + rest + notes


def _items(items: Sequence[tuple[Finding, str]]) -> str:
    """Findings as a table, each with what follows the name of its kernel."""
    rows = [
        (
            str(item.rank or "-"),
            f"{words.gain(item.estimate)}{words.of_chain(item)}" if item.estimate else "",
            item.title,
            f"{item.group.short_name(NAME_WIDTH) if item.group else words.TIMELINE}{others}",
            "".join(item.actions[:1]),
        )
        for item, others in items
    ]
    columns = ("#", "Estimated speedup", "Finding", "Kernel", "First action")
    heading = f"<div><b>{_text(words.HEADING)}</b></div>"
    return heading + _table(columns, rows) if rows else ""


def kernel_html(launch: LaunchSummary) -> str:
    """A launch's utilization, stalls, occupancy, arithmetic and memory traffic."""
    shown = (panels.busy_panel(launch), panels.stalls_panel(launch), panels.occupancy_panel(launch))
    return (
        f"<div><b>{_text(literal(launch.name))}</b><br>{_text(panels.title(launch))}"
        + "".join(f"<div><b>{_text(panel.title)}</b>{_panel(panel)}</div>" for panel in shown)
        + "".join(_grid(grid) for grid in panels.grids(launch))
        + "</div>"
    )


def _panel(panel: Panel) -> str:
    note = f"<small>{_text(panel.note)}</small>" if panel.note else ""
    return "<table>" + "".join(_row(row) for row in panel.rows) + f"</table>{note}"


def _row(row: Row) -> str:
    share = 0.0 if row.share is None or row.share != row.share else min(max(row.share, 0.0), 1.0)
    bar = f'<span style="{_BAR};width:{share * _BAR_WIDTH:.0f}px"></span> ' if share else ""
    return (
        f'<tr><td style="{_LEFT}">{_text(row.label)}</td><td style="{_LEFT}">{_text(row.value)}'
        f'</td><td style="{_LEFT}">{bar}{_text(row.note)}</td></tr>'
    )


def _grid(grid: Grid) -> str:
    table = _table(grid.columns, grid.rows) if grid.rows else "<br>"
    return f"<div><b>{_text(grid.title)}</b>{table}{_text(grid.note)}</div>"


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    head = "".join(f'<th style="{_LEFT}">{_text(name)}</th>' for name in columns)
    body = "".join(
        "<tr>" + "".join(f'<td style="{_LEFT}">{_cell(cell)}</td>' for cell in row) + "</tr>"
        for row in rows
    )
    return f"<table><tr>{head}</tr>{body}</table>"


def _cell(text: str) -> str:
    """Text in which a number stays on the line of its unit."""
    return _text(text).replace(" ", "&nbsp;") if len(text) <= _NOT_BROKEN else _text(text)


def _text(text: str) -> str:
    return escape(text).replace("\n", "<br>")
