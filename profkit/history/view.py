"""A history for a terminal, as Markdown and as JSON: its series, and the points of one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, fields
from datetime import datetime
from pathlib import Path
from typing import Literal

from rich.console import Group, RenderableType
from rich.text import Text

from profkit.core.typed_file import Count, Model, Number, Output, encode
from profkit.history.addition import Addition
from profkit.history.content import DIRTY
from profkit.history.record import Conditions, Point, Series
from profkit.history.selection import label
from profkit.history.store import Overview, median_of
from profkit.ui import markdown
from profkit.ui.terminal import rendered, table_of
from profkit.ui.text import literal, number, percent, plural, shorten
from profkit.ui.view import Grid

_LEVELS = "▁▂▃▄▅▆▇█"
_FLAT = 0.02  # share of the median, chosen: medians nearer to each other draw no steps
_LONGEST = 34  # characters of a name, chosen: a row of the list then fits 100 columns
_ADDED = 10  # series listed, chosen: those of a run
_COMMIT = 9  # digits of a commit, as git shows
_NONE = "-"
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


class SeriesEntry(Model, frozen=True, kw_only=True):
    """What is followed over time; "" where it is not known."""

    target: str
    variant: str
    shape: str
    gpu_model: str
    branch: str


class ConditionsEntry(Model, frozen=True, kw_only=True):
    """How a point was measured; "" where it is not known."""

    gpu_uuid: str
    driver: str
    cuda: str
    clock_policy: str
    timer: str
    cache_policy: str
    profkit: str


class OverviewEntry(Model, frozen=True, kw_only=True):
    """A series in short; `recent` are the medians of its last runs in seconds, oldest first."""

    series: SeriesEntry
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
    conditions: ConditionsEntry
    median: Number
    block_medians: tuple[Number, ...]


class SeriesFile(Output, frozen=True, kw_only=True, tag="profkit.history/1"):
    """A series of a history, in the order of time."""

    store: str
    series: SeriesEntry
    points: tuple[PointEntry, ...]


Format = Literal["terminal", "markdown", "json"]


def overviews_text(
    rows: Sequence[Overview], store: Path, format: Format, *, top: int, to_file: bool
) -> str:
    """All series, `top` of them (0: all) for people."""
    if format == "json":
        entries = tuple(_overview_entry(row) for row in rows)
        return encode(HistoryFile(store=str(store), series=entries))
    shown = rows[: top or None]
    runs = sum(row.runs for row in rows)
    heading = f"{literal(str(store))}: {plural(len(rows), 'series')}, {plural(runs, 'point')}"
    left = len(rows) - len(shown)
    note = f"{left} more: name them by words, or --top 0" if left else ""
    columns = ("Series", "Shape", "GPU", "Branch", "Runs", "Last", "Median", "Recent")
    grid = Grid("", columns, tuple(map(_overview_row, shown)), note)
    if format == "markdown":
        return "\n".join((f"# History\n\n{markdown.escape(heading)}\n", *_table(grid))) + "\n"
    return rendered(Group(Text(heading, "bold"), table_of(grid)), to_file=to_file)


def points_text(
    points: Sequence[Point], store: Path, format: Format, *, top: int, to_file: bool
) -> str:
    """The points of a series, the last `top` of them (0: all) for people."""
    series = points[0].series
    if format == "json":
        entries = tuple(map(_point_entry, points))
        file = SeriesFile(store=str(store), series=_series_entry(series), points=entries)
        return encode(file)
    shown = points[-top:] if top else points
    before = [None, *points][len(points) - len(shown) : len(points)]
    left = len(points) - len(shown)
    note = f"{left} earlier: --top 0" if left else ""
    columns = (
        "Time (UTC)",
        "Commit",
        "Median",
        "Change",
        "Blocks",
        "Spread",
        "Conditions",
        "Source",
    )
    rows = tuple(map(_point_row, before, shown))
    grid = Grid("", columns, rows, note)
    heading = [label(series), plural(len(points), "run"), *_last_conditions(points[-1].conditions)]
    if format == "markdown":
        lines = [f"# {markdown.escape(heading[0])}", "", *map(markdown.escape, heading[1:]), ""]
        return "\n".join((*lines, *_table(grid))) + "\n"
    parts: list[RenderableType] = [Text(heading[0], "bold"), *map(Text, heading[1:])]
    return rendered(Group(*parts, table_of(grid)), to_file=to_file)


def addition_text(result: Addition, store: Path) -> str:
    """What was added."""
    count = sum(result.points.values())
    line = (
        f"Added {plural(count, 'point')} of {plural(result.runs, 'run')} in "
        f"{plural(len(result.points), 'series')} to {literal(str(store))}"
    )
    lines = [line + (f"; {result.present:,} were there already" if result.present else "")]
    rows = sorted((label(series), count) for series, count in result.points.items())
    lines += [f"  {name}  {plural(count, 'point')}" for name, count in rows[:_ADDED]]
    if len(rows) > _ADDED:
        lines.append(f"  and {len(rows) - _ADDED:,} more")
    return "\n".join(lines) + "\n"


def changes(before: Conditions, after: Conditions) -> tuple[str, ...]:
    """What differs between the conditions of two points, in words."""
    return tuple(
        f"{_NAMES[field.name]} {literal(old) or 'unknown'} → {literal(new) or 'unknown'}"
        for field in fields(Conditions)
        if (old := getattr(before, field.name)) != (new := getattr(after, field.name))
    )


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
        trend(row.recent),
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
        literal(point.source),
    )


def signed(change: float) -> str:
    """A relative change with its sign."""
    return f"{change:+.2%}"


def _last_conditions(conditions: Conditions) -> Iterator[str]:
    words = [
        f"{_NAMES[field.name]} {literal(value)}"
        for field in fields(Conditions)
        if (value := getattr(conditions, field.name))
    ]
    if words:
        yield f"Last: {', '.join(words)}"


def _table(grid: Grid) -> list[str]:
    rows = [[markdown.cell(text) for text in row] for row in grid.rows]
    return [*markdown.table(grid.columns, rows), *(["", grid.note] if grid.note else [])]


def _series_entry(series: Series) -> SeriesEntry:
    return SeriesEntry(**asdict(series))


def _overview_entry(row: Overview) -> OverviewEntry:
    return OverviewEntry(
        series=_series_entry(row.series),
        runs=row.runs,
        first=_iso(row.first),
        last=_iso(row.last),
        recent=row.recent,
    )


def _point_entry(point: Point) -> PointEntry:
    return PointEntry(
        time=_iso(point.time),
        run=point.run,
        source=point.source,
        commit=point.commit,
        parent=point.parent,
        conditions=ConditionsEntry(**asdict(point.conditions)),
        median=median_of(point),
        block_medians=point.block_medians,
    )


def _iso(time: datetime) -> str:
    return time.isoformat()
