"""A check of a history for a terminal, and as Markdown for a pull request."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from profkit.history import check_text as words
from profkit.history.check import Alarm, Check, size_words
from profkit.history.marks import Kind
from profkit.history.record import Series
from profkit.history.selection import label
from profkit.ui.markdown import code, escape
from profkit.ui.terminal import rendered, table_of
from profkit.ui.text import literal, number, percent, plural, shorten
from profkit.ui.view import Grid

MARKER = "<!-- profkit-history-check -->"
"""The first line of the Markdown, by which a bot finds its comment again."""
_ALARMS = 20  # chosen: what a reviewer scrolls through
_LONGEST = 40  # characters of a series' name, chosen: a row then fits 100 columns


def check_terminal(check: Check, top: int, *, to_file: bool) -> str:
    """The news in detail, then `top` series (0: all)."""
    parts: list[RenderableType] = [Text(words.headline(check), "bold"), Text(words.news(check))]
    for alarm in check.alarms:
        change = alarm.change
        title = f"{words.KINDS[change.kind].upper()}  {label(alarm.series)}"
        parts += [Text(), Text(title, _style(alarm))]
        lines = (f"{size_words(change)}: {words.times(change)}", *words.details(alarm))
        parts += [Padding(Text(line), (0, 0, 0, 2)) for line in lines]
    if check.failures:
        parts.append(Text())
        parts += [
            Text(f"{'OPEN' if failure.undecided else 'FAILED'}  {literal(str(failure))}", "red")
            for failure in check.failures
        ]
    parts.append(table_of(_table(check, top)))
    return rendered(Group(*parts), to_file=to_file)


def check_markdown(check: Check, top: int) -> str:
    """The news, folded where there are many, then `top` series (0: all) in a fold."""
    lines = [MARKER, "## Performance history", "", escape(words.headline(check)), ""]
    lines += [escape(words.news(check)), ""]
    for alarm in check.alarms[:_ALARMS]:
        change = alarm.change
        lines.append(
            f"- **{words.KINDS[change.kind]}**: {code(label(alarm.series))} "
            f"{escape(size_words(change))}: {escape(words.times(change))}"
        )
        lines += [f"  - {escape(line)}" for line in words.details(alarm)]
    if left := len(check.alarms) - _ALARMS:
        lines += [f"- {plural(left, 'change')} more"] if left > 0 else []
    if check.failures:
        lines += ["", "### Failed gates", ""]
        lines += [f"- {escape(str(failure))}" for failure in check.failures[:_ALARMS]]
    table = _table(check, top)
    lines += ["", "<details><summary>All series</summary>", "", *_rows(table), ""]
    lines += [escape(table.note), ""] if table.note else []
    return "\n".join((*lines, "</details>")) + "\n"


def _rows(table: Grid) -> Sequence[str]:
    from profkit.ui.markdown import cell
    from profkit.ui.markdown import table as table_lines

    return table_lines(table.columns, [tuple(map(cell, row)) for row in table.rows])


def _style(alarm: Alarm) -> str:
    if alarm.change.kind is not Kind.REAL:
        return "yellow"
    return "red" if alarm.change.change > 0 else "green"


def _table(check: Check, top: int) -> Grid:
    """Every series with its noise and its last change."""
    shown = check.series[: top or None]
    rows = []
    for checked, name in zip(shown, _names(check), strict=False):
        last = checked.changes[-1] if checked.changes else None
        change = (
            f"{size_words(last)}, {words.KINDS[last.kind]}, {last.bad.time:%Y-%m-%d}"
            if last
            else checked.reason or "none"
        )
        rows.append(
            (
                shorten(label(name), _LONGEST),
                f"{len(checked.points):,}",
                number(checked.level, "s"),
                percent(checked.scatter),
                words.detectable(checked),
                change,
            )
        )
    left = len(check.series) - len(shown)
    columns = ("Series", "Runs", "Level", "Scatter", "Detects", "Last change")
    note = "Detects: the step that three runs show with a power of 90%."
    note += f" {left:,} more: --top 0" if left else ""
    return Grid("Series", columns, tuple(rows), note)


def _names(check: Check) -> list[Series]:
    """The series without the GPU and the branch that all have."""
    every = [checked.points[0].series for checked in check.series]
    common = {
        field: ""
        for field in ("gpu_model", "branch")
        if len({getattr(series, field) for series in every}) == 1
    }
    return [replace(series, **common) for series in every]
