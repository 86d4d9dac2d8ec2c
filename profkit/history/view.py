"""The series of a history and the points of one: their files and documents."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from profkit.core.typed_file import Model, Number, Output, row_of
from profkit.history.record import Conditions, Point, Series, short_commit
from profkit.history.store import Overview, median_of
from profkit.ui import document as doc
from profkit.ui.text import literal, number, percent, plural, shorten

_LONGEST = 30  # characters of a name, chosen: a row of the list then fits 100 columns
_NONE = "-"
_COLUMNS = ("Variant", "Shape", "GPU", "Branch", "Runs", "Last", "Median")


class HistoryFile(Output, frozen=True, tag="profkit.history-list/1"):
    """The series of a history."""

    store: str
    series: tuple[Overview, ...]


class PointEntry(Model, frozen=True, kw_only=True):
    """A run of a series: the medians of its blocks in seconds, in the order measured.

    `run` is the SHA-256 of its content. `commit` ends with `-dirty` where its tree had changes.
    """

    time: str
    run: str
    source: str
    commit: str
    conditions: Conditions
    median: Number
    block_medians: tuple[Number, ...]


class SeriesFile(Output, frozen=True, tag="profkit.history/1"):
    """A series of a history, in the order of time."""

    store: str
    series: Series
    points: tuple[PointEntry, ...]


def series_file(points: Sequence[Point], store: Path) -> SeriesFile:
    """The points of a series as its file."""
    entries = (
        row_of(PointEntry, point, time=point.time.isoformat(), median=median_of(point))
        for point in points
    )
    return SeriesFile(str(store), points[0].series, tuple(entries))


def history_document(file: HistoryFile, top: int) -> doc.Document:
    """The series, `top` of them (0: all)."""
    shown = file.series[: top or None]
    left = len(file.series) - len(shown)
    note = f"{left:,} more: name them by words, or --top 0" if left else ""
    rows = tuple(map(_overview_row, shown))
    points = plural(sum(row.runs for row in file.series), "point")
    heading = f"{literal(file.store)}: {plural(len(file.series), 'series')}, {points}"
    table = doc.Table("Series", _COLUMNS, rows, note)
    return doc.Document("History", (doc.Heading(heading, 1), table))


def series_document(file: SeriesFile, top: int) -> doc.Document:
    """The points of a series, the last `top` of them (0: all)."""
    points = file.points
    shown = points[-top:] if top else points
    before = [None, *points][len(points) - len(shown) : len(points)]
    left = len(points) - len(shown)
    table = doc.Table(
        "Runs",
        ("Time (UTC)", "Commit", "Median", "Change", "Blocks", "Spread", "Changed"),
        tuple(map(_point_row, before, shown)),
        f"{left:,} earlier: --top 0" if left else "",
    )
    facts = (plural(len(points), "run"), *_last_run(points[-1]))
    heading = doc.Heading(file.series.label, 1)
    return doc.Document(file.series.label, (heading, doc.Lines(facts), table))


def _overview_row(row: Overview) -> tuple[str, ...]:
    series = row.series
    return (
        shorten(literal(series.name), _LONGEST) or _NONE,
        shorten(literal(series.shape), _LONGEST) or _NONE,
        literal(series.gpu_model) or _NONE,
        literal(series.branch) or _NONE,
        f"{row.runs:,}",
        row.last[:10],
        number(row.median, "s"),
    )


def _point_row(before: PointEntry | None, point: PointEntry) -> tuple[str, ...]:
    blocks = point.block_medians
    return (
        point.time[:16].replace("T", " "),
        short_commit(point.commit) or _NONE,
        number(point.median, "s"),
        f"{point.median / before.median - 1:+.2%}" if before else _NONE,
        str(len(blocks)),
        percent((max(blocks) - min(blocks)) / point.median),
        "; ".join(before.conditions.differences(point.conditions).values()) if before else "",
    )


def _last_run(point: PointEntry) -> Iterator[str]:
    if words := point.conditions.words:
        yield f"Last run: {words}"
    yield f"Source: {literal(point.source)}"
