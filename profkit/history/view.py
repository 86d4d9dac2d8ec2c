"""A history for a terminal, as Markdown and as JSON: its series, and the points of one."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import fields
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from rich.console import Group
from rich.text import Text

from profkit.core.typed_file import Count, Model, Number, Output, encode
from profkit.history.content import DIRTY
from profkit.history.record import Conditions, Point, Series
from profkit.history.selection import label
from profkit.history.store import Overview, median_of
from profkit.ui import markdown
from profkit.ui.terminal import rendered, table_of
from profkit.ui.text import literal, number, percent, plural, shorten
from profkit.ui.view import Grid

if TYPE_CHECKING:
    from profkit.history.addition import Addition

_LEVELS = "▁▂▃▄▅▆▇█"
_FLAT = 0.02  # share of the median, chosen: medians nearer to each other draw no steps
_LONGEST = 30  # characters of a name, chosen: a row of the list then fits 100 columns
_ADDED = 10  # series listed, chosen: those of a run
_COMMIT = 9  # digits of a commit, as git shows
_NONE = "-"
_FIELDS = (1, 2, 3)  # columns of an overview that name a series, other than its first
_RUNS = 12  # of a trend, chosen: a row of the list then fits 100 columns
_UUID = re.compile(r"(GPU|MIG)-[0-9a-f-]{36}")
_UUID_SHOWN = 12  # characters, chosen: two GPUs of a hundred agree in them with probability 1e-6
_NAMES = {
    "gpu_uuid": "GPU",
    "driver": "driver",
    "cuda": "CUDA",
    "clock_policy": "clock policy",
    "timer": "timer",
    "cache_policy": "cache policy",
    "profkit": "profkit",
}
"""The conditions of a measurement in words."""


class OverviewEntry(Model, frozen=True, kw_only=True):
    """A series in short; `recent` are the medians of its last runs in seconds, oldest first."""

    series: Series
    runs: Count
    first: str
    last: str
    recent: tuple[Number, ...]


class HistoryFile(Output, frozen=True, kw_only=True, tag="profkit.history-list/1"):
    """The series of a history."""

    store: str
    series: tuple[OverviewEntry, ...]


class PointEntry(Model, frozen=True, kw_only=True):
    """A run of a series: the medians of its blocks in seconds, in the order measured.

    `run` is the SHA-256 of its content. `commit` ends with `-dirty` where its tree had changes.
    """

    time: str
    run: str
    source: str
    commit: str
    parent: str
    conditions: Conditions
    median: Number
    block_medians: tuple[Number, ...]


class SeriesFile(Output, frozen=True, kw_only=True, tag="profkit.history/1"):
    """A series of a history, in the order of time."""

    store: str
    series: Series
    points: tuple[PointEntry, ...]


Format = Literal["terminal", "brief", "markdown", "json"]


def overviews_text(
    rows: Sequence[Overview], store: Path, format: Format, *, top: int, to_file: bool
) -> str:
    """All series, `top` of them (0: all) for people."""
    if format == "json":
        entries = tuple(_overview_entry(row) for row in rows)
        return encode(HistoryFile(store=str(store), series=entries))
    shown = rows[: top or None]
    left = len(rows) - len(shown)
    note = f"{left:,} more: name them by words, or --top 0" if left else ""
    columns = ("Variant", "Shape", "GPU", "Branch", "Runs", "Last", "Median", "Recent")
    cells = [_overview_row(row) for row in shown]
    common = {
        number: cells[0][number]
        for number in _FIELDS
        if len(cells) > 1 and len({row[number] for row in cells}) == 1
    }
    grid = Grid(
        "Series",
        tuple(_without(columns, common)),
        tuple(tuple(_without(row, common)) for row in cells),
        note,
    )
    points = plural(sum(row.runs for row in rows), "point")
    parts = [f"{literal(str(store))}: {plural(len(rows), 'series')}, {points}"]
    if any(text != _NONE for text in common.values()):
        parts.append(f"All: {', '.join(text for text in common.values() if text != _NONE)}")
    if format == "markdown":
        lines = [line for text in parts for line in (markdown.escape(text), "")]
        return "\n".join(("# History", "", *lines, *_table(grid))) + "\n"
    heading, *others = parts
    view = Group(Text(heading, "bold"), *map(Text, others), table_of(grid))
    return rendered(view, to_file=to_file)


def _without(texts: Sequence[str], left_out: Collection[int]) -> Iterator[str]:
    return (text for number, text in enumerate(texts) if number not in left_out)


def points_text(
    points: Sequence[Point], store: Path, format: Format, *, top: int, to_file: bool
) -> str:
    """The points of a series, the last `top` of them (0: all) for people."""
    series = points[0].series
    if format == "json":
        entries = tuple(map(_point_entry, points))
        file = SeriesFile(store=str(store), series=(series), points=entries)
        return encode(file)
    shown = points[-top:] if top else points
    before = [None, *points][len(points) - len(shown) : len(points)]
    left = len(points) - len(shown)
    grid = Grid(
        "Runs",
        ("Time (UTC)", "Commit", "Median", "Change", "Blocks", "Spread", "Changed"),
        tuple(map(_point_row, before, shown)),
        f"{left:,} earlier: --top 0" if left else "",
    )
    facts = [plural(len(points), "run"), *_last_run(points[-1])]
    if format == "markdown":
        lines = [f"- {markdown.escape(fact)}" for fact in facts]
        return (
            "\n".join((f"# {markdown.escape(label(series))}", "", *lines, "", *_table(grid))) + "\n"
        )
    view = Group(Text(label(series), "bold"), *map(Text, facts), table_of(grid))
    return rendered(view, to_file=to_file)


def addition_text(result: Addition, store: Path) -> str:
    """What was added."""
    count = sum(result.points.values())
    line = (
        f"Added {plural(count, 'point')} of {plural(result.runs, 'run')} in "
        f"{plural(len(result.points), 'series')} to {literal(str(store))}"
    )
    lines = [
        line
        + (
            f"; {result.present:,} {'was' if result.present == 1 else 'were'} there already"
            if result.present
            else ""
        )
    ]
    rows = sorted((label(series), count) for series, count in result.points.items())
    lines += [f"  {name}  {plural(count, 'point')}" for name, count in rows[:_ADDED]]
    if len(rows) > _ADDED:
        lines.append(f"  and {len(rows) - _ADDED:,} more")
    return "\n".join(lines) + "\n"


def changes(before: Conditions, after: Conditions) -> tuple[str, ...]:
    """What differs between the conditions of two points, in words."""
    return tuple(
        f"{_NAMES[field.name]} {_short(old)} → {_short(new)}"
        for field in fields(Conditions)
        if (old := getattr(before, field.name)) != (new := getattr(after, field.name))
    )


def _short(condition: str) -> str:
    """A condition; of a GPU's UUID the first part."""
    if _UUID.fullmatch(condition):
        condition = condition[:_UUID_SHOWN]
    return literal(condition) or "unknown"


def trend(values: Sequence[float]) -> str:
    """Values in order as bars between the smallest and the largest; even where they are close."""
    if not values:
        return ""
    low, high = min(values), max(values)
    middle, width = (low + high) / 2, max(high - low, _FLAT * (low + high) / 2)
    top = len(_LEVELS) - 1
    return "".join(_LEVELS[round((value - middle) / width * top + top / 2)] for value in values)


def short_commit(commit: str) -> str:
    """A commit as people name it."""
    digits = commit.removesuffix(DIRTY)
    return literal(digits[:_COMMIT]) + (DIRTY if digits != commit else "")


def _overview_row(row: Overview) -> tuple[str, ...]:
    series = row.series
    name = ":".join(filter(None, (series.target, series.variant)))
    return (
        shorten(literal(name), _LONGEST) or _NONE,
        shorten(literal(series.shape), _LONGEST) or _NONE,
        literal(series.gpu_model) or _NONE,
        literal(series.branch) or _NONE,
        f"{row.runs:,}",
        f"{row.last:%Y-%m-%d}",
        number(row.recent[-1], "s"),
        trend(row.recent[-_RUNS:]),
    )


def _point_row(before: Point | None, point: Point) -> tuple[str, ...]:
    median, blocks = median_of(point), point.block_medians
    change = median / median_of(before) - 1 if before else None
    return (
        f"{point.time:%Y-%m-%d %H:%M}",
        short_commit(point.commit) or _NONE,
        number(median, "s"),
        _NONE if change is None else signed(change),
        str(len(blocks)),
        percent((max(blocks) - min(blocks)) / median),
        "; ".join(changes(before.conditions, point.conditions)) if before else "",
    )


def signed(change: float) -> str:
    """A relative change with its sign."""
    return f"{change:+.2%}"


def _last_run(point: Point) -> Iterator[str]:
    words = [
        f"{_NAMES[field.name]} {literal(value)}"
        for field in fields(Conditions)
        if (value := getattr(point.conditions, field.name))
    ]
    if words:
        yield f"Last run: {', '.join(words)}"
    yield f"Source: {literal(point.source)}"


def _table(grid: Grid) -> list[str]:
    rows = [[markdown.cell(text) for text in row] for row in grid.rows]
    return [*markdown.table(grid.columns, rows), *(["", grid.note] if grid.note else [])]


def _overview_entry(row: Overview) -> OverviewEntry:
    return OverviewEntry(
        series=(row.series),
        runs=row.runs,
        first=iso(row.first),
        last=iso(row.last),
        recent=row.recent,
    )


def _point_entry(point: Point) -> PointEntry:
    return PointEntry(
        time=iso(point.time),
        run=point.run,
        source=point.source,
        commit=point.commit,
        parent=point.parent,
        conditions=point.conditions,
        median=median_of(point),
        block_medians=point.block_medians,
    )


def iso(time: datetime) -> str:
    return time.isoformat()
