"""Short HTML views for notebooks."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from profkit.report import overview, panels
from profkit.report.names import file_name, told_apart
from profkit.report.summary import LaunchSummary, ReportSummary
from profkit.ui.text import literal
from profkit.ui.view import Grid, Panel, Row

_NAME = 70  # characters, chosen: two columns of numbers fit beside it in a notebook cell
_LEFT = "text-align:left;padding:1px 12px 1px 0"
_BAR = "display:inline-block;height:0.7em;background:#3b82b6"
_BAR_WIDTH = 120


def report_html(report: ReportSummary) -> str:
    """The recording and the kernels by share of time."""
    grid = overview.groups_grid(report.groups)
    names = told_apart((row[1] for row in grid.rows), _NAME)
    rows = [(row[0], names[row[1]], *row[2:]) for row in grid.rows]
    recording = overview.recording(report, with_host=False)
    notes = "".join(f"<div>! {_text(note)}</div>" for note in report.notes)
    return (
        f"<div><b>{_text(file_name(report.path, with_host=False))}</b>: "
        f"{_text(overview.headline(report))}{_panel(recording)}{notes}"
        f"{_table(grid.columns, rows)}</div>"
    )


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
        "<tr>" + "".join(f'<td style="{_LEFT}">{_text(cell)}</td>' for cell in row) + "</tr>"
        for row in rows
    )
    return f"<table><tr>{head}</tr>{body}</table>"


def _text(text: str) -> str:
    return escape(text).replace("\n", "<br>")
