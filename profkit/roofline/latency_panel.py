"""Timed latencies over the stops of a path: as lines, and as numbers with their intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

from msgspec import Struct

from profkit.roofline import drawing
from profkit.roofline.drawing import INK, LEFT, LINE, RIGHT, SMALL, TEXT, TINY, WIDTH, spread
from profkit.roofline.roofline import Point
from profkit.roofline.roofline_view import short_names, time_words
from profkit.roofline.tracks import Track
from profkit.ui.text import number

# Inches: the lines, what is above and below them; the numbers' margin and the gap between columns.
_HIGH, _OVER, _UNDER = 1.3, 0.28, 0.44
_MARGIN, _GAP = 0.07, 0.1
_WORDS = TINY - 0.6  # points
_MOST_LINES, _LONGEST_NAME = 40, 24
_MARKER = 3.4  # points

Line = tuple[tuple[float, str], ...]
"""Cells of a table, each with its distance from the left (inches)."""


class Panel(Struct, frozen=True):
    """`stops` are the reports' names, `shape` the one number they are, or "". `table` has lines of
    cells: none where there are too many to show."""

    tracks: tuple[Track, ...]
    names: tuple[str, ...]
    stops: tuple[str, ...]
    shape: str
    color: str
    table: tuple[Line, ...]

    @property
    def height(self) -> float:
        """Inches that it takes."""
        return _OVER + _HIGH + _UNDER + LINE * len(self.table)

    @property
    def points(self) -> list[Point]:
        return [point for track in self.tracks for _, point in track.stops]

    @property
    def limits(self) -> tuple[float, float]:
        """The seconds that are shown."""
        ends = [end for point in self.points for end in (point.seconds, *point.interval)]
        known = [end for end in ends if not math.isnan(end)]
        return min(known) / 1.5, max(known) * 1.5

    @property
    def has_brackets(self) -> bool:
        return bool(self.table) and any(map(_has_interval, self.points))

    @property
    def has_whiskers(self) -> bool:
        return any(map(self.is_seen, self.points))

    @property
    def notes(self) -> list[str]:
        """What the picture can't show of its latencies."""
        bare = sum(not _has_interval(point) for point in self.points)
        notes = (
            [f"{bare} of {len(self.points)} latencies have no confidence interval"] if bare else []
        )
        return notes if self.table else [*notes, "no space for latency values: see --table"]

    def is_seen(self, point: Point) -> bool:
        """Whether a whisker is longer than its marker; False where there is none."""
        low, high = self.limits
        whisker = math.log(point.interval[1] / point.interval[0]) / math.log(high / low)
        return whisker * _HIGH * 72 > _MARKER


def _has_interval(point: Point) -> bool:
    return not math.isnan(point.low)


def panel_of(tracks: Sequence[Track], stops: Sequence[str], shape: str, color: str) -> Panel:
    """The panel of these tracks; `stops` names each report."""
    short = short_names((track.name for track in tracks), _LONGEST_NAME)
    names = tuple(short[track.name] for track in tracks)
    table = _table(tracks, names, stops, shape)
    shown = tuple(table) if len(table) <= _MOST_LINES else ()
    return Panel(tuple(tracks), names, tuple(stops), shape, color, shown)


def _table(
    tracks: Sequence[Track], names: Sequence[str], stops: Sequence[str], shape: str
) -> list[Line]:
    """A line a stop and a column a kernel, in blocks no wider than the picture."""
    rows = range(len(stops))
    columns = []
    for track, name in zip(tracks, names, strict=True):
        texts = {stop: _words(point) for stop, point in track.stops}
        columns.append([name, *(texts.get(row, "") for row in rows)])
    widths = [_GAP + max(map(_width, column)) for column in columns]
    heads = [shape, *stops]
    first = _MARGIN + _GAP + max(map(_width, heads))
    lines: list[Line] = []
    for block in _blocks(widths, WIDTH - first):
        starts = list(accumulate((widths[column] for column in block), initial=first))
        for row, head in enumerate(heads):
            cells = (columns[column][row] for column in block)
            lines.append(((_MARGIN, head), *zip(starts, cells, strict=False)))
    return lines


def _blocks(widths: Sequence[float], room: float) -> list[list[int]]:
    """Columns that fit abreast, in their order; one that is too wide stands alone."""
    blocks: list[list[int]] = []
    left = 0.0
    for column, width in enumerate(widths):
        if not blocks or width - _GAP > left:
            blocks.append([])
            left = room
        blocks[-1].append(column)
        left -= width
    return blocks


def _words(point: Point) -> str:
    """`12.58 µs [12.45, 12.72]`; the median alone where it has no interval."""
    return time_words(point) if _has_interval(point) else number(point.seconds, "s")


def _width(text: str) -> float:
    """Inches of a text in the table's letters."""
    from matplotlib.textpath import TextPath

    return float(TextPath((0, 0), text, size=_WORDS).get_extents().width) / 72 if text else 0.0


def draw_panel(figure: Any, panel: Panel, bottom: float) -> None:
    """Draw the panel from `bottom` (inches) up. Its axes' label is `latency`; lines have the gid
    `latency:NAME`, whiskers `interval:NAME:STOP`."""
    total = figure.get_figheight()
    low = bottom + LINE * len(panel.table) + _UNDER
    axes = figure.add_axes(
        (LEFT / WIDTH, low / total, (WIDTH - LEFT - RIGHT) / WIDTH, _HIGH / total), label="latency"
    )
    _draw_axes(axes, panel)
    for track in panel.tracks:
        _draw_track(axes, panel, track)
    _draw_names(axes, panel)
    for row, line in enumerate(reversed(panel.table)):
        for left, text in line:
            figure.text(
                left / WIDTH, (bottom + 0.05 + row * LINE) / total, text, fontsize=_WORDS,
                color=INK, va="bottom", parse_math=False, gid="latency:words",
            )  # fmt: skip


def _draw_axes(axes: Any, panel: Panel) -> None:
    axes.set_yscale("log")
    axes.set_ylim(*panel.limits)
    axes.set_xlim(-0.4, len(panel.stops) - 0.6)
    low, high = panel.limits
    drawing.scale(axes.yaxis, (1.0,) if high / low > 100 else (1.0, 2.0, 5.0), _tick)
    widest = max(map(_width, panel.stops)) + _GAP / 2
    every = math.ceil(widest * len(panel.stops) / (WIDTH - LEFT - RIGHT))
    ticks = list(range(0, len(panel.stops), every))
    axes.set_xticks(ticks, [panel.stops[tick] for tick in ticks], parse_math=False)
    axes.set_xlabel(panel.shape, fontsize=SMALL, color=INK, labelpad=1, parse_math=False)
    axes.annotate(
        "latency", (0, 1), (-LEFT * 72 + _MARGIN * 72, 4), xycoords="axes fraction",
        textcoords="offset points", fontsize=TEXT, color=INK, va="bottom", annotation_clip=False,
    )  # fmt: skip
    drawing.draw_quietly(axes, TINY, "y")


def _tick(seconds: float) -> str:
    """`100 µs`."""
    figures, _, unit = number(seconds, "s").partition(" ")
    return f"{float(figures.replace(',', '')):g} {unit}"


def _draw_track(axes: Any, panel: Panel, track: Track) -> None:
    stops, points = zip(*track.stops, strict=True)
    axes.plot(
        stops, [point.seconds for point in points], color=panel.color, linewidth=1.1, marker="o",
        markersize=_MARKER, markeredgecolor="white", markeredgewidth=0.4, zorder=3,
        gid=f"latency:{track.name}",
    )  # fmt: skip
    for stop, point in track.stops:
        if _has_interval(point):
            drawing.whisker(
                axes, stop, point.interval, 2.5, seen=panel.is_seen(point), front=4,
                gid=f"interval:{track.name}:{stop}",
            )  # fmt: skip


def _draw_names(axes: Any, panel: Panel) -> None:
    """Each kernel's name in the right margin, led to from its last point."""
    low, high = panel.limits
    lasts = [track.stops[-1][1] for track in panel.tracks]
    wanted = [math.log(point.seconds / low) / math.log(high / low) for point in lasts]
    centers = spread(wanted, LINE / _HIGH, 0.0, 1.1)
    for track, name, up, center in zip(panel.tracks, panel.names, wanted, centers, strict=True):
        if name:
            across = (track.stops[-1][0] + 0.4) / (len(panel.stops) - 0.2)
            drawing.lead(axes, across, up, center)
            gid = f"latency-name:{track.name}"
            drawing.beside(axes, name, center, fontsize=SMALL, color=INK, va="center", gid=gid)
