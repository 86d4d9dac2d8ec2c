"""A plot of a series: the median of each run, its blocks, and the changes."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

from profkit.history.changes import NAMES, Kind, Mark
from profkit.history.record import Point
from profkit.history.store import median_of
from profkit.ui.picture import DPI, check_picture
from profkit.ui.text import plural, shorten

_WIDTH, _HEIGHT = 10.0, 4.6  # inches, chosen: as wide as plots of latencies
_INK, _LINE, _BLOCKS = "#1b1b1b", "#2a6fbb", "#b9d0e8"
_COLORS = {
    Kind.REAL: "#c62828",
    Kind.METHOD: "#8a5a00",
    Kind.HARDWARE: "#6a1b9a",
    Kind.NOISE: "#546e7a",
}
_SCALES = ((1.0, "s", 0.1), (1e3, "ms", 1e-3), (1e6, "µs", 0.0))
_HEADROOM = 0.12  # share of the range above the largest time, chosen: numbers of marks fit there
_LEAST_RANGE = 0.02  # of the median; chosen: noise of 0.1% does not fill the plot
_LONGEST = 110  # characters of a line below the plot, chosen: its width at this size
_LISTED = 8  # changes in words, chosen: more are numbers alone


def plot_series(points: Sequence[Point], marks: Sequence[Mark], path: Path) -> None:
    """Write a plot as .png, .svg or .pdf; raises UsageError for another kind of file."""
    check_picture(path)
    from matplotlib.figure import Figure

    listed = marks[-_LISTED:]
    lines = len(listed) + (len(marks) > len(listed))
    figure = Figure(figsize=(_WIDTH, _HEIGHT + 0.19 * lines), layout="constrained")
    axes = figure.subplots()
    times = [point.time for point in points]
    medians = [median_of(point) for point in points]
    scale, unit = next((step for step in _SCALES if max(medians) >= step[2]), _SCALES[-1])[:2]
    _draw(axes, points, scale)
    _limit(axes, points, scale)
    _mark(axes, times, marks)
    axes.set_title(shorten(points[0].series.label, 90).replace("$", r"\$"), loc="left", fontsize=11)
    axes.set_ylabel(f"median latency ({unit})")
    axes.ticklabel_format(axis="y", useOffset=False)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="#e5e5e5", linewidth=0.6)
    axes.set_axisbelow(True)
    _date_axis(axes)
    text = "\n".join(
        (
            f"{plural(len(points), 'run')}; dot: median of a run, bar: range of its block medians",
            *_words(times, marks, listed),
        )
    )
    figure.supxlabel(text.replace("$", r"\$"), x=0.01, ha="left", fontsize=8, linespacing=1.5)
    metadata = {"Date": None} if path.suffix == ".svg" else None
    figure.savefig(path, dpi=DPI, metadata=metadata)


def _draw(axes: Any, points: Sequence[Point], scale: float) -> None:
    times = [point.time for point in points]
    lows = [min(point.block_medians) * scale for point in points]
    highs = [max(point.block_medians) * scale for point in points]
    medians = [median_of(point) * scale for point in points]
    axes.vlines(times, lows, highs, color=_BLOCKS, linewidth=4)
    axes.plot(times, medians, color=_LINE, linewidth=1, marker="o", markersize=3.5)


def _limit(axes: Any, points: Sequence[Point], scale: float) -> None:
    values = [value * scale for point in points for value in point.block_medians]
    low, high = min(values), max(values)
    middle, width = (low + high) / 2, max(high - low, _LEAST_RANGE * (low + high) / 2)
    axes.set_ylim(middle - width * (0.5 + _HEADROOM / 2), middle + width * (0.5 + _HEADROOM))


def _mark(axes: Any, times: Sequence[Any], marks: Sequence[Mark]) -> None:
    for number, mark in enumerate(marks, 1):
        between = times[mark.index - 1] + (times[mark.index] - times[mark.index - 1]) / 2
        style = "-" if mark.kind is Kind.REAL else ":"
        color = _COLORS[mark.kind]
        axes.axvline(between, color=color, linewidth=1.2, linestyle=style)
        axes.annotate(
            str(number),
            (between, 1.0),
            xycoords=("data", "axes fraction"),
            xytext=(2, -9),
            textcoords="offset points",
            color=color,
            fontsize=8,
        )


def _words(times: Sequence[Any], marks: Sequence[Mark], listed: Sequence[Mark]) -> list[str]:
    first = len(marks) - len(listed) + 1
    lines = [f"1 to {first - 1}: earlier changes"] if first > 1 else []
    return lines + [
        shorten(
            f"{number}  {times[mark.index]:%Y-%m-%d}  {NAMES[mark.kind]}: {mark.words}", _LONGEST
        )
        for number, mark in enumerate(listed, first)
    ]


def _date_axis(axes: Any) -> None:
    from matplotlib import dates

    library: Any = dates  # its stubs have no types
    locator = library.AutoDateLocator(minticks=3, maxticks=9)
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(library.ConciseDateFormatter(locator))
    left, right = axes.get_xlim()
    if right - left < timedelta(minutes=1) / timedelta(days=1):  # of a single run
        axes.set_xlim(left - 0.5, right + 0.5)
