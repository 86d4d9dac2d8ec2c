"""Timed latencies over the stops of a path: numbers with their intervals, under the picture."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

from msgspec import Struct

from profkit.roofline.drawing import INK, LINE, TINY, WIDTH
from profkit.roofline.roofline import Point
from profkit.roofline.roofline_view import short_names, time_words
from profkit.roofline.tracks import Track
from profkit.ui.text import number

_MARGIN, _GAP = 0.07, 0.1  # inches left of the numbers, and between columns
_WORDS = TINY - 0.6  # points
_MOST_LINES, _LONGEST_NAME = 40, 24
Line = tuple[tuple[float, str], ...]
"""Cells of a table, each with its distance from the left (inches)."""


class LatencyTable(Struct, frozen=True):
    """Lines of cells, none where there are too many to show; `notes` say what they lack."""

    lines: tuple[Line, ...]
    notes: tuple[str, ...]
    has_intervals: bool

    @property
    def height(self) -> float:
        """Inches that it takes, with a gap above."""
        return LINE * (len(self.lines) + 1)


def latency_table(tracks: Sequence[Track], stops: Sequence[str], shape: str) -> LatencyTable:
    """A line a stop and a column a kernel, in blocks no wider than the picture.

    `stops` are the reports' names, `shape` the one number that they are, or "".
    """
    short = short_names((track.name for track in tracks), _LONGEST_NAME)
    columns = []
    for track in tracks:
        texts = {stop: _words(point) for stop, point in track.stops}
        columns.append([short[track.name], *(texts.get(row, "") for row in range(len(stops)))])
    widths = [_GAP + max(map(_width, column)) for column in columns]
    heads = [shape, *stops]
    first = _MARGIN + _GAP + max(map(_width, heads))
    lines: list[Line] = []
    for block in _blocks(widths, WIDTH - first):
        starts = list(accumulate((widths[column] for column in block), initial=first))
        for row, head in enumerate(heads):
            cells = (columns[column][row] for column in block)
            lines.append(((_MARGIN, head), *zip(starts, cells, strict=False)))
    points = [point for track in tracks for _, point in track.stops]
    bare = sum(math.isnan(point.low) for point in points)
    notes = [f"{bare} of {len(points)} latencies have no confidence interval"] if bare else []
    if len(lines) > _MOST_LINES:
        return LatencyTable((), (*notes, "no space for latency values: see --table"), False)
    return LatencyTable(tuple(lines), tuple(notes), bare < len(points))


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
    return number(point.seconds, "s") if math.isnan(point.low) else time_words(point)


def _width(text: str) -> float:
    """Inches of a text in the table's letters."""
    from matplotlib.textpath import TextPath

    return float(TextPath((0, 0), text, size=_WORDS).get_extents().width) / 72 if text else 0.0


def draw_table(figure: Any, table: LatencyTable, bottom: float) -> None:
    """Write the table from `bottom` (inches) up; its texts have the gid `latency:words`."""
    total = figure.get_figheight()
    for row, line in enumerate(reversed(table.lines)):
        for left, text in line:
            figure.text(
                left / WIDTH, (bottom + 0.05 + row * LINE) / total, text, fontsize=_WORDS,
                color=INK, va="bottom", parse_math=False, gid="latency:words",
            )  # fmt: skip
