"""A report as Markdown: made to be shared, so without the host unless asked."""

from __future__ import annotations

from collections.abc import Sequence

from profkit.report import overview, panels
from profkit.report.names import file_name
from profkit.report.summary import Group, ReportSummary
from profkit.rules import finding_text as words
from profkit.rules.checklist import Checklist
from profkit.rules.checklist_view import checklist_blocks
from profkit.ui.markdown import blocks_markdown, cell, code, escape, panel_lines, table, table_of


def report_markdown(
    report: ReportSummary,
    groups: Sequence[Group],
    checklist: Checklist,
    top: int,
    *,
    with_host: bool,
) -> str:
    """A report: recording, kernels by time, findings, then `top` kernels (0: all) in detail."""
    name = file_name(report.path, with_host=with_host)
    lines = [f"# {code(name)}", "", overview.headline(report)]
    recording = overview.recording(report, with_host=with_host)
    lines += ["", *table(("", ""), [(row.label, cell(row.value)) for row in recording.rows])]
    lines += [f"\n> {escape(note)}" for note in report.notes]
    grid = overview.groups_grid(groups, more=words.kernel_columns(checklist))
    rows = [(row[0], code(row[1], in_table=True), *map(cell, row[2:])) for row in grid.rows]
    lines += ["", f"## {grid.title}", "", *table(grid.columns, rows)]
    lines += ["", grid.note] if grid.note else []
    blocks = checklist_blocks(report, checklist, name, whole=True, complete=True)
    lines += ["", f"## {words.HEADING}", "", blocks_markdown(blocks)]
    for rank, group in enumerate(groups[: top or None], start=1):
        lines += ["", *_detail(rank, group)]
    shown = [group.typical for group in groups[: top or None]]
    for gap in overview.all_gaps(shown, report.session):
        lines += ["", escape(gap)]
    return "\n".join(lines) + "\n"


def _detail(rank: int, group: Group) -> list[str]:
    launch = group.typical
    lines = [f"## {rank}. {code(launch.name)}", "", escape(overview.about(group))]
    lines += [f"\n> {escape(text)}" for text in (*launch.warnings, *launch.notes)]
    if not launch.failed:
        for panel in panels.panels(launch):
            lines += ["", *panel_lines(panel)]
        for grid in panels.grids(launch):
            lines += ["", *table_of(grid)]
        rules = overview.rule_rows(launch)
        if rules:
            rows = [(cell(row.label), cell(row.value), cell(row.note)) for row in rules]
            lines += ["", "### Results of ncu's own rules", ""]
            lines += ["Estimates by ncu; a local one is of a unit's efficiency, not of time.", ""]
            lines += table(("Rule", "Estimate", ""), rows)
    return lines
