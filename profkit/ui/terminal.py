"""Terminal output: tables, panels and bars, colored only on a terminal."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from profkit.ui.fit import fitted
from profkit.ui.text import bar
from profkit.ui.view import Grid, Panel

PIPED_WIDTH = 100  # chosen: fits a page of text, a log and a review
# Chosen: longer lines are hard to read, shorter ones break numbers from their units.
_WIDEST, _NARROWEST = 120, 60
_TWO_COLUMNS_FROM = 96  # chosen: two narrow panels with their bars
_BAR = 10  # a character per 10%
_GAP = 3  # blanks between columns


def console(*, to_file: bool) -> Console:
    """A console as wide as COLUMNS, else as the terminal, else 100 columns; colored only on a
    terminal."""
    if to_file or not sys.stdout.isatty():
        width = _within(_columns() or PIPED_WIDTH)
        return Console(force_terminal=False, width=width, color_system=None, highlight=False)
    return Console(width=_within(Console(highlight=False).width), highlight=False)


def _columns() -> int:
    """The width that the environment requests; 0 where it is not a valid width."""
    text = os.environ.get("COLUMNS", "")
    return int(text) if text.isascii() and text.isdigit() else 0


def _within(width: int) -> int:
    return max(_NARROWEST, min(width, _WIDEST))


def rendered(view: RenderableType, *, to_file: bool) -> str:
    """A view as text: colored for a terminal; else without trailing blanks."""
    out = console(to_file=to_file)
    with out.capture() as captured:
        out.print(view, crop=False)
    if out.is_terminal:
        return captured.get()
    return "".join(f"{line.rstrip()}\n" for line in captured.get().splitlines())


def rows_of(rows: Iterable[tuple[str, str]], indent: int) -> RenderableType:
    """Labels and values in two columns; rows without a value left out."""
    return Padding(_labeled(row for row in rows if row[1]), (0, 0, 0, indent))


def facts(panel: Panel) -> Table:
    """A panel as two columns, labels and values."""
    return _labeled((row.label, row.value) for row in panel.rows)


def _labeled(rows: Iterable[tuple[str, str]]) -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for label, value in rows:
        table.add_row(Text(label, "dim"), Text(value))
    return table


def note(text: str) -> RenderableType:
    """A remark about what is shown."""
    return Text(f"! {text}", "yellow")


def panels_view(launch_panels: Iterable[Panel], width: int) -> list[RenderableType]:
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


@dataclass(frozen=True)
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
