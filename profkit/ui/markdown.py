"""Markdown as GitHub renders it: code spans, escaped prose, tables and panels."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from profkit.ui.text import literal
from profkit.ui.view import Grid, Panel


def code(text: str, *, in_table: bool = False) -> str:
    """Text as a code span, whatever it holds: kernel names are full of markup characters."""
    shown = literal(text)
    longest = max((len(run) for run in re.findall(r"`+", shown)), default=0)
    fence = "`" * (longest + 1)
    pad = " " if shown.startswith("`") or shown.endswith("`") or not shown else ""
    if in_table:
        shown = shown.replace("\\|", "\\ |").replace("|", "\\|")  # no fence holds a table's pipe
    return f"{fence}{pad}{shown}{pad}{fence}"


def escape(text: str) -> str:
    """Prose with Markdown's and HTML's special characters made harmless."""
    return re.sub(r"([\\`*_\[\]<>|#&])", r"\\\1", literal(text))


def cell(text: str) -> str:
    """Text as a table's cell."""
    return "<br>".join(escape(line) for line in text.split("\n"))


def panel_lines(panel: Panel) -> list[str]:
    """A panel as a heading, a table and its note."""
    rows = [(cell(row.label), cell(row.value), cell(row.note)) for row in panel.rows]
    lines = [f"### {panel.title}", "", *table(("", "", ""), rows)]
    return [*lines, "", escape(panel.note)] if panel.note else lines


def table_of(grid: Grid) -> list[str]:
    """A grid as a heading, a table and its note."""
    lines = [f"### {grid.title}"]
    if grid.rows:
        lines += ["", *table(grid.columns, [tuple(map(cell, row)) for row in grid.rows])]
    return [*lines, "", escape(grid.note)] if grid.note else lines


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """A table, its cells as they are."""
    return [
        f"| {' | '.join(columns)} |",
        f"|{'---|' * len(columns)}",
        *(f"| {' | '.join(row)} |" for row in rows),
    ]
