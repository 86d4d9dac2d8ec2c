"""The roofline as a picture: roofs, points at each level of memory, and a label beside each."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from profkit.core.errors import BadInput, UsageError
from profkit.roofline.joins import Join, joins, tracks
from profkit.roofline.labels import Box, Room, spread
from profkit.roofline.latency_panel import Panel, draw_panel, panel_of
from profkit.roofline.roofline import Point, Roofline
from profkit.roofline.roofline_view import rate_unit, subjects, time_words
from profkit.roofline.roofs import LEVEL_LABELS, LEVELS, Peaks, Roof
from profkit.roofline.style import (
    COLOURS,
    FAINT,
    INK,
    LEFT,
    LINE,
    RIGHT,
    SMALL,
    SOFT,
    TEXT,
    TINY,
    WIDTH,
    draw_quietly,
)
from profkit.ui.picture import check_picture, save_picture
from profkit.ui.text import literal, plural, shorten

_TOP, _BOTTOM, _PLOT_HEIGHT = 0.8, 0.48, 3.0
_ALARM = "#b00020"
_MARKERS = {"dram": "o", "l2": "s", "l1": "^"}
_LEAST_AREA, _AREA, _TWIN_AREA, _ONE_AREA = 20.0, 150.0, 30.0, 42.0
_LONGEST_NAME, _MOST_LABELS = 24, 16
_WIDEST, _MANY_DECADES = 1e8, 1e7
_NOTE_WIDTH = 96
_DPI = 200  # of a .png: a column of a paper at 100 mm is then sharp in print
_EDGE = 0.03  # inches left free at the right: letters are a little wider at other resolutions
_LETTER = 0.6  # the width of a letter, as a share of the font's size
# Points: from line to text, half of a box that lines and slanted text are covered with, and the
# distance of one to the next; markers nearer than the last have one name.
_LIFT, _DOT, _STEP, _TOGETHER = 2.2, 1.0, 2.0, 9.0


class Joined(StrEnum):
    """What joins the points of several reports: nothing, an arrow from each to the next, a path."""

    apart = "apart"
    arrows = "arrows"
    path = "path"


@dataclass(frozen=True)
class _Series:
    """The points of one kernel and precision in report number `at`, by level, and its twin."""

    at: int
    name: str
    run: str
    points: tuple[Point, ...]
    twin: Point | None
    area: float

    @property
    def main(self) -> Point:
        return self.points[0]

    @property
    def label(self) -> str:
        """The kernel, the report, or both where both are needed to tell it."""
        return ", ".join(filter(None, (self.name, self.run)))

    @property
    def all(self) -> tuple[Point, ...]:
        """The points, the twin behind them."""
        return self.points if self.twin is None else (*self.points, self.twin)


@dataclass(frozen=True)
class _Frame:
    """The part of the plane that is shown, and its size in inches."""

    x: tuple[float, float]
    y: tuple[float, float]
    width: float
    height: float

    def across(self, intensity: float) -> float:
        """Where an intensity is, as a share of the width."""
        return _between(intensity, *self.x)

    def up(self, rate: float) -> float:
        """Where a rate is, as a share of the height."""
        return _between(rate, *self.y)

    def at(self, intensity: float, rate: float) -> tuple[float, float]:
        """Where a point is, in points from the lower left corner."""
        return self.across(intensity) * self.width * 72, self.up(rate) * self.height * 72

    @property
    def slope(self) -> float:
        """Degrees at which a line of one decade a decade rises."""
        high = self.height / math.log10(self.y[1] / self.y[0])
        wide = self.width / math.log10(self.x[1] / self.x[0])
        return math.degrees(math.atan2(high, wide))


def _between(value: float, low: float, high: float) -> float:
    return math.log(value / low) / math.log(high / low)


def plot_rooflines(
    rooflines: Sequence[Roofline],
    path: Path,
    *,
    title: str,
    labels: Sequence[str] = (),
    joined: Joined = Joined.apart,
) -> None:
    """Write rooflines on one plot as .png, .svg or .pdf.

    `labels` tell several reports apart. Raises UsageError for another kind of file and for reports
    of different GPUs, BadInput where no report has a point.
    """
    check_picture(path)
    figure = figure_of(rooflines, title=title, labels=labels, joined=joined)
    # Nothing that changes from one writing to the next, so that files can be compared.
    dates: dict[str, Any] = {
        ".svg": {"Date": None},
        ".pdf": {"CreationDate": None},
        ".png": {"Software": None},
    }
    save_picture(figure, path, _DPI, dates[path.suffix])


def figure_of(
    rooflines: Sequence[Roofline],
    *,
    title: str,
    labels: Sequence[str] = (),
    joined: Joined = Joined.apart,
) -> Any:
    """The figure. Points are collections whose gid is `point:NAME:LEVEL` (`twin:NAME` for the
    hollow ones), roofs lines whose gid is `roof:KEY`. Raises as `plot_rooflines` does."""
    from matplotlib.figure import Figure

    series = _series(rooflines, labels)
    if not series:
        raise BadInput(
            f"{title}: no kernel has a point to draw ({_why_none(rooflines)})",
            "leave out -o for the numbers",
        )
    roofs = _merged(rooflines)
    steps = _joins(rooflines, joined)
    named = _named(series, steps, joined)
    labelled = named[:_MOST_LABELS]
    height = max(_PLOT_HEIGHT, 2.0 * LINE * (len(labelled) + len(_alike(roofs))))
    frame = _frame(series, roofs, height)
    figure = Figure()
    axes = figure.add_axes((0, 0, 1, 1))
    room = _room(frame, series, steps)
    _draw_axes(axes, frame)
    unnumbered = _draw_roofs(axes, frame, room, roofs, series)
    _draw_joins(axes, steps, joined)
    unnamed = _name_stops(axes, frame, room, series) if joined is Joined.path else 0
    for one in series:
        _draw_series(axes, frame, one, levelled=joined is not Joined.path)
    _draw_labels(axes, frame, _labels(frame, labelled, roofs))
    panel = _panel(rooflines, series, labels) if joined is Joined.path else None
    flags = _flag_lines(series)
    seen = any(_is_seen(frame, point, one.area) for one in series for point in one.points)
    notes = _filled(
        [
            *_time_notes(series, labelled, panel, seen=seen),
            *_mark_notes(series, roofs, unnumbered),
            *_join_notes(series, steps, joined, unnamed),
            *_absence_notes(rooflines, len(named)),
        ]
    )
    feet = LINE * (len(flags) + len(notes)) + 0.06
    under = _BOTTOM + feet + (panel.height if panel else 0.0)
    total = _TOP + height + under
    figure.set_size_inches(WIDTH, total)
    axes.set_position((LEFT / WIDTH, under / total, frame.width / WIDTH, height / total))
    _draw_head(figure, title, rooflines, series)
    if panel is not None:
        draw_panel(figure, panel, feet)
    _draw_feet(figure, flags, notes, total)
    _cut_to_canvas(figure)
    return figure


def _cut_to_canvas(figure: Any) -> None:
    """Shorten labels and lines of text that would leave the figure at its right edge.

    Room is planned by the mean width of a letter, which a name of wide letters exceeds.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.text import Text

    dpi = figure.dpi
    figure.set_dpi(_DPI)
    renderer = FigureCanvasAgg(figure).get_renderer()  # type: ignore[no-untyped-call]
    edge = figure.bbox.width - _EDGE * _DPI
    labels = figure.findobj(lambda item: isinstance(item, Text) and item.get_gid())
    for text in [*labels, *figure.texts]:
        while text.get_window_extent(renderer).x1 > edge and len(text.get_text()) > 1:
            text.set_text(shorten(text.get_text(), len(text.get_text()) - 1))
    figure.set_dpi(dpi)


def _panel(
    rooflines: Sequence[Roofline], series: Sequence[_Series], labels: Sequence[str]
) -> Panel | None:
    """The latencies over the stops; None where none are timed."""
    found = tracks(rooflines)
    if not found:
        return None
    runs = list(labels) or [str(at) for at in range(len(rooflines))]
    words = _stop_words(runs)
    colour = COLOURS[series[0].main.level]
    return panel_of(found, [words[run] for run in runs], _shape(runs), colour)


def _why_none(rooflines: Sequence[Roofline]) -> str:
    reasons = dict.fromkeys(one.why for roofline in rooflines for one in roofline.outside)
    return next(iter(reasons), "no launch was measured")


def _series(rooflines: Sequence[Roofline], labels: Sequence[str]) -> list[_Series]:
    found = []
    for run, roofline in enumerate(rooflines):
        shown = subjects(roofline.points, _LONGEST_NAME)
        told = {one.main.share for one in shown}
        for one in shown:
            alone = bool(labels) and len(shown) == 1
            same = len(told) == 1 or math.isnan(one.main.share)
            area = _ONE_AREA if same else _LEAST_AREA + _AREA * one.main.share
            name, told_run = "" if alone else one.text, labels[run] if labels else ""
            found.append(_Series(run, name, told_run, one.points, one.twin, area))
    return found


def _merged(rooflines: Sequence[Roofline]) -> tuple[Roof, ...]:
    """The roofs of all, the highest of each key; raises UsageError for those of several GPUs."""
    gpus = dict.fromkeys(roofline.gpu for roofline in rooflines)
    if len(gpus) > 1:
        raise UsageError(
            f"different GPUs have different roofs: {', '.join(gpus)}", "plot them apart"
        )
    found: dict[str, Roof] = {}
    for roof in (roof for roofline in rooflines for roof in roofline.roofs):
        if roof.key not in found or roof.rate > found[roof.key].rate:
            found[roof.key] = roof
    return tuple(found.values())


def _joins(rooflines: Sequence[Roofline], joined: Joined) -> tuple[Join, ...]:
    return () if joined is Joined.apart else joins(rooflines)


def _named(series: Sequence[_Series], steps: Sequence[Join], joined: Joined) -> list[_Series]:
    """Those to be labelled, most time first: all, or the last of each path."""
    left = {(step.start, id(step.before)) for step in steps if joined is Joined.path}
    named = (one for one in series if (one.at, id(one.main)) not in left)
    return sorted(named, key=lambda one: -one.main.share)


def _frame(series: Sequence[_Series], roofs: Sequence[Roof], height: float) -> _Frame:
    points = [point for one in series for point in one.all]
    memory, compute = _parted(roofs)
    ridges = [top.rate / line.rate for top in compute for line in memory]
    intensities = [point.intensity for point in points]
    rates = [point.rate for point in points]
    top = max([*rates, *(roof.rate for roof in compute)]) * 2.4
    bottom = min([*rates, *(roof.rate / 10 for roof in compute)]) / 2.5
    left = min([*intensities, *ridges]) / 4
    right = min(max([*intensities, *(ridge * 4 for ridge in ridges)]) * 2.5, left * _WIDEST)
    return _Frame((left, right), (bottom, top), WIDTH - LEFT - RIGHT, height)


def _parted(roofs: Iterable[Roof]) -> tuple[list[Roof], list[Roof]]:
    """Roofs of memory and roofs of arithmetic."""
    roofs = list(roofs)
    return (
        [roof for roof in roofs if roof.is_memory],
        [roof for roof in roofs if not roof.is_memory],
    )


def _draw_axes(axes: Any, frame: _Frame) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(*frame.x)
    axes.set_ylim(*frame.y)
    axes.set_xlabel("arithmetic intensity (FLOP/B)", fontsize=TEXT, color=INK)
    axes.annotate(
        "TFLOP/s", (0, 1), (-4, 3), xycoords="axes fraction", textcoords="offset points",
        fontsize=TEXT, color=INK, ha="center", va="bottom", annotation_clip=False,
    )  # fmt: skip
    wide = frame.x[1] / frame.x[0] >= _MANY_DECADES
    for axis, unit in ((axes.xaxis, 1.0), (axes.yaxis, 1e12)):
        axis.set_major_locator(LogLocator(base=10, numticks=20))
        axis.set_major_formatter(FuncFormatter(lambda value, _, by=unit: _tick(value / by, wide)))
        axis.set_minor_locator(LogLocator(base=10, subs=tuple(range(2, 10)), numticks=20))
        axis.set_minor_formatter(NullFormatter())
    draw_quietly(axes, SMALL, "both")


def _tick(value: float, powers: bool) -> str:
    if 0.0009 < value < (200 if powers else 20_000):
        return f"{value:,g}"
    return rf"$10^{{{round(math.log10(value))}}}$"


def rate_words(value: float, unit: str) -> str:
    """A rate in tera or giga to three digits: `1,070 TFLOP/s`, `4.81 TB/s`, `300 GB/s`."""
    scaled, prefix = (value / 1e12, "T") if value >= 1e12 else (value / 1e9, "G")
    return f"{_three(scaled)} {prefix}{unit}"


def _three(value: float) -> str:
    """To three digits: `1.99`, `13.9`, `1,070`."""
    return f"{value:,.{max(0, 2 - math.floor(math.log10(value) + 1e-9))}f}"


def _draw_roofs(
    axes: Any, frame: _Frame, room: Room, roofs: Sequence[Roof], series: Sequence[_Series]
) -> int:
    """Roofs with their names and ridges. Returns how many ridges have no room for a number."""
    memory, compute = _parted(roofs)
    top = max((roof.rate for roof in compute), default=frame.y[1])
    fastest = max((roof.rate for roof in memory), default=math.nan)
    for line in memory:
        ends = (frame.y[0] / line.rate, top / line.rate)
        _draw_roof(axes, line, ends, (frame.y[0], top), COLOURS[line.key])
        begin, end = (frame.at(x, 1)[0] for x in ends)
        room.draw(begin, end, _rising(frame, line.rate))
    for roof in compute:
        begin = roof.rate / fastest if memory else frame.x[0]
        _draw_roof(axes, roof, (begin, frame.x[1]), (roof.rate, roof.rate), INK)
        room.draw(frame.at(begin, 1)[0], frame.width * 72, _level(frame, roof.rate))
    for line in memory:
        _label_line(axes, frame, room, line)
    held = {point.roof for one in series for point in one.points}
    return _mark_ridges(axes, frame, room, memory, [roof for roof in compute if roof.key in held])


def _draw_roof(
    axes: Any, roof: Roof, x: tuple[float, float], y: tuple[float, float], colour: str
) -> None:
    axes.plot(
        x, y, color=colour, linewidth=1.3, zorder=2, gid=f"roof:{roof.key}", solid_capstyle="butt"
    )


def _level(frame: _Frame, rate: float) -> Callable[[float], float]:
    height = frame.at(1, rate)[1]
    return lambda _: height


def _rising(frame: _Frame, bandwidth: float) -> Callable[[float], float]:
    start, low = frame.at(frame.y[0] / bandwidth, frame.y[0])
    rise = math.tan(math.radians(frame.slope))
    return lambda across: low + (across - start) * rise


def _room(frame: _Frame, series: Sequence[_Series], joined: Sequence[Join]) -> Room:
    """The plane with the points on it, and what joins them."""
    room = Room(frame.width * 72, (frame.height + 0.2) * 72)
    for one in series:
        for point in one.all:
            room.take(_marker(frame, point, one.area))
    for join in joined:
        (left, low), (right, high) = (_shown(frame, point) for point in (join.before, join.after))
        steps = max(1, math.ceil(math.hypot(right - left, high - low) / _STEP))
        for step in range(steps + 1):
            x = left + (right - left) * step / steps
            y = low + (high - low) * step / steps
            room.take((x - _DOT, y - _DOT, x + _DOT, y + _DOT))
    return room


def _shown(frame: _Frame, point: Point) -> tuple[float, float]:
    """Where a point is drawn: at the edge where it lies to the right of the picture."""
    return frame.at(min(point.intensity, frame.x[1]), point.rate)


def _marker(frame: _Frame, point: Point, area: float) -> Box:
    x, y = _shown(frame, point)
    half = math.sqrt(area) / 2
    return (x - half, y - half, x + half, y + half)


def _label_line(axes: Any, frame: _Frame, room: Room, line: Roof) -> None:
    """A memory roof's name along it, above or below it, as near to where it enters the picture as
    there is room; where it enters where there is none."""
    text = f"{line.label} {rate_words(line.rate, 'B/s')}"
    enters = max(0.0, frame.across(frame.y[0] / line.rate)) + 0.04
    tried = [
        (frame.x[0] * (frame.x[1] / frame.x[0]) ** (enters + step * 0.02), above)
        for step in range(15)
        for above in (True, False)
    ]
    slants = [_slant(frame, x, x * line.rate, len(text), above=above) for x, above in tried]
    free = (at for at, slant in enumerate(slants) if all(map(room.is_free, slant)))
    chosen = next(free, 0)
    for box in slants[chosen]:
        room.take(box)
    x, above = tried[chosen]
    axes.annotate(
        text, (x, x * line.rate), (-1.5, 2.5) if above else (1.5, -2.5),
        textcoords="offset points", rotation=frame.slope, rotation_mode="anchor", fontsize=TINY,
        color=COLOURS[line.key], ha="left", va="bottom" if above else "top", zorder=6,
        path_effects=_halo(), gid=f"line:{line.key}",
    )  # fmt: skip


def _slant(frame: _Frame, x: float, y: float, letters: int, *, above: bool) -> list[Box]:
    """Small boxes that cover a text that stands on, or hangs from, a line of memory."""
    turned = math.radians(frame.slope)
    across, up = math.cos(turned), math.sin(turned)
    left, low = frame.at(x, y)
    side = 1 if above else -1
    length, height = letters * _LETTER * TINY, 1.1 * TINY
    found = []
    for step in range(math.ceil(length / _STEP) + 1):
        for rise in (0.0, 0.5, 1.0):
            along, away = step * _STEP, side * (_LIFT + rise * height)
            at, high = left + along * across - away * up, low + along * up + away * across
            found.append((at - _DOT, high - _DOT, at + _DOT, high + _DOT))
    return found


def _mark_ridges(
    axes: Any, frame: _Frame, room: Room, memory: Sequence[Roof], compute: Sequence[Roof]
) -> int:
    """A diamond where a line of memory meets a roof; its intensity beside it where there is room,
    slow memory and high roofs first. Returns how many have none."""
    unnumbered = 0
    for line in sorted(memory, key=lambda line: line.rate):
        for roof in sorted(compute, key=lambda roof: -roof.rate):
            ridge = roof.rate / line.rate
            axes.plot(
                ridge, roof.rate, marker="D", markersize=3, markerfacecolor="white",
                markeredgecolor=INK, markeredgewidth=0.7, zorder=3,
                gid=f"ridge:{line.key}:{roof.key}", linestyle="none",
            )  # fmt: skip
            text = _three(ridge)
            x, y = frame.at(ridge, roof.rate)
            wide = _LETTER * len(text) * TINY
            left, right = (x - wide - 2.5, x - 2.5), (x + 2.5, x + wide + 2.5)
            above, below = (y + 1.2, y + 1 + TINY), (y - 1 - TINY, y - 1.2)
            corners = [(left, above), (right, below), (right, above)]
            at = room.place([(a, c, b, d) for (a, b), (c, d) in corners])
            if at is None:
                unnumbered += 1
                continue
            axes.annotate(
                text, (ridge, roof.rate), (-2.5 if at == 0 else 2.5, -2.2 if at == 1 else 2),
                textcoords="offset points", fontsize=TINY - 0.4, color=COLOURS[line.key],
                ha="right" if at == 0 else "left", va="top" if at == 1 else "bottom", zorder=6,
                gid=f"number:{line.key}:{roof.key}",
            )  # fmt: skip
    return unnumbered


def _halo() -> list[Any]:
    from matplotlib.patheffects import withStroke

    return [withStroke(linewidth=2, foreground="white")]


def _draw_series(axes: Any, frame: _Frame, one: _Series, *, levelled: bool) -> None:
    rate = one.main.rate
    shown = [min(point.intensity, frame.x[1]) for point in one.points]
    if levelled and len(shown) > 1:
        axes.plot(shown, [rate] * len(shown), color=SOFT, linewidth=0.7, zorder=3.5)
    for point, x in zip(one.points, shown, strict=True):
        _draw_whisker(axes, frame, point, x, one.area)
        beyond = point.intensity > frame.x[1]
        axes.scatter(
            [x], [rate], s=one.area, zorder=4.5, clip_on=False,
            marker=">" if beyond else _MARKERS[point.level], color=COLOURS[point.level],
            edgecolors="white", linewidths=0.6, gid=f"point:{point.name}:{point.level}",
        )  # fmt: skip
        if point.flags:
            _mark_impossible(axes, point, x, one.area)
    if one.twin is not None:
        _draw_twin(axes, one.main, one.twin)


def _draw_whisker(axes: Any, frame: _Frame, point: Point, x: float, area: float) -> None:
    """From one end of the interval to the other; with ends where the marker doesn't hide them."""
    if math.isnan(point.low):
        return
    seen = _is_seen(frame, point, area)
    axes.plot(
        (x, x), (point.low, point.high), color=INK, linewidth=0.9, zorder=5 if seen else 3.6,
        marker="_" if seen else "", markersize=4,
        gid=f"whisker:{point.name}:{point.level}",
    )  # fmt: skip


def _is_seen(frame: _Frame, point: Point, area: float) -> bool:
    """Whether a whisker is longer than the marker that it stands behind; False where none is."""
    high = (frame.up(point.high) - frame.up(point.low)) * frame.height * 72
    return high > math.sqrt(area)


def _draw_twin(axes: Any, point: Point, twin: Point) -> None:
    ends = ((point.intensity, twin.intensity), (point.rate, twin.rate))
    axes.plot(*ends, color=COLOURS["dram"], linewidth=0.9, linestyle=":", zorder=4.6)
    axes.scatter(
        [twin.intensity], [twin.rate], s=_TWIN_AREA, facecolors="white", zorder=4.7,
        edgecolors=COLOURS["dram"], linewidths=1.1, gid=f"twin:{twin.name}", marker="o",
    )  # fmt: skip
    if twin.flags:
        _mark_impossible(axes, twin, twin.intensity, _TWIN_AREA)


def _mark_impossible(axes: Any, point: Point, x: float, area: float) -> None:
    axes.scatter(
        [x], [point.rate], s=2 * area + 60, facecolors="none", edgecolors=_ALARM,
        linewidths=1.2, zorder=5.5, gid=f"flag:{point.name}:{point.level}",
    )  # fmt: skip
    axes.scatter([x], [point.rate], s=22, marker="x", color=_ALARM, linewidths=1.2, zorder=5.6)


def _draw_joins(axes: Any, steps: Sequence[Join], joined: Joined) -> None:
    for step in steps:
        colour = COLOURS[step.after.level]
        _join(axes, step.before, step.after, colour, arrow=joined is Joined.arrows)


def _name_stops(axes: Any, frame: _Frame, room: Room, series: Sequence[_Series]) -> int:
    """Which report each stop of a path is of, beside its points of the first level: once for those
    that stand together. Returns how many found no room."""
    words = _stop_words(one.run for one in series)
    unnamed = 0
    markers = [(one.run, _marker(frame, one.main, one.area)) for one in series]
    for run, stop in words.items():
        own = [box for other, box in markers if other == run]
        for column in _columns(own, [box for other, box in markers if other != run]):
            sides = _beside(column, _LETTER * len(stop) * TINY, TINY, frame.height * 72)
            at = room.place(sides)
            if at is None:
                unnamed += 1
                continue
            left, low, right, high = sides[at]
            middle = ((left + right) / 2, (low + high) / 2)
            axes.annotate(
                stop, (0, 0), middle, xycoords="axes points", textcoords="axes points",
                fontsize=TINY - 0.6, color=SOFT, ha="center", va="center", zorder=6,
                parse_math=False, path_effects=_halo(), gid=f"stop:{run}",
            )  # fmt: skip
            _lead(axes, column, sides[at])
    return unnamed


def _stop_words(runs: Iterable[str]) -> dict[str, str]:
    """What names each stop: the value alone where one shape tells all apart."""
    told = list(dict.fromkeys(runs))
    if _shape(told):
        return {run: run.partition("=")[2] for run in told}
    return {run: run for run in told}


def _shape(runs: Sequence[str]) -> str:
    """The one shape that tells the stops apart; "" where there is none."""
    names = {run.partition("=")[0] for run in runs}
    single = len(names) == 1 and all(run.count("=") == 1 for run in runs)
    return names.pop() if single else ""


def _columns(markers: Iterable[Box], others: Sequence[Box]) -> list[Box]:
    """Around each set of a stop's markers that stand above one another or side by side, with no
    other stop's among them."""
    found: list[Box] = []
    for marker in markers:
        column = marker
        for box in list(found):
            both = (
                min(column[0], box[0]), min(column[1], box[1]),
                max(column[2], box[2]), max(column[3], box[3]),
            )  # fmt: skip
            above = column[0] < box[2] and box[0] < column[2]
            alone = not any(_gap(both, other) == 0 for other in others)
            if _gap(column, box) < _TOGETHER or (above and alone):
                found.remove(box)
                column = both
        found.append(column)
    return found


def _gap(a: Box, b: Box) -> float:
    """The distance between two boxes; 0 where they overlap."""
    return math.hypot(max(0.0, a[0] - b[2], b[0] - a[2]), max(0.0, a[1] - b[3], b[1] - a[3]))


def _beside(column: Box, wide: float, high: float, most: float) -> list[Box]:
    """Where the name of a column may stand: close by on any side, then above or below further and
    further out."""
    left, low, right, top = column
    middle, centre = (left + right) / 2, (low + top) / 2
    over, under = top + 1 + high / 2, low - 1 - high / 2
    before, after = left - 1 - wide / 2, right + 1 + wide / 2
    centres = [
        (middle, over), (middle, under), (after, centre), (before, centre),
        (after, over), (after, under), (before, over), (before, under),
    ]  # fmt: skip
    for step in range(1, round(most / high)):
        for x in (middle, after, before):
            centres += [(x, over + step * high / 2), (x, under - step * high / 2)]
    return [(x - wide / 2, y - high / 2, x + wide / 2, y + high / 2) for x, y in centres]


def _lead(axes: Any, column: Box, label: Box) -> None:
    """A line from a name to its column, where it is further than a line of text."""
    if _gap(column, label) <= TINY:
        return
    above = label[1] > column[3]
    foot = ((column[0] + column[2]) / 2, column[3] if above else column[1])
    head = ((label[0] + label[2]) / 2, label[1] if above else label[3])
    line = {"arrowstyle": "-", "color": FAINT, "linewidth": 0.6, "shrinkA": 0, "shrinkB": 0}
    axes.annotate("", foot, head, xycoords="axes points", textcoords="axes points", arrowprops=line)


def _join(axes: Any, before: Point, after: Point, colour: str, *, arrow: bool) -> None:
    axes.annotate(
        "", (after.intensity, after.rate), (before.intensity, before.rate), zorder=3.8,
        arrowprops={
            "arrowstyle": "-|>" if arrow else "-", "color": colour, "linewidth": 1.1,
            "shrinkA": 4, "shrinkB": 5, "mutation_scale": 9,
        },
    )  # fmt: skip


@dataclass(frozen=True)
class _Label:
    """Two lines in the right margin, led to from a point at the left (a share of the width)."""

    up: float
    across: float
    first: str
    second: str
    colour: str
    is_roof: bool = False


def _labels(frame: _Frame, series: Sequence[_Series], roofs: Sequence[Roof]) -> list[_Label]:
    """Of the kernels, and of the roofs of arithmetic, those of one rate together."""
    found = []
    for one in series:
        right = max(min(frame.across(point.intensity), 1.0) for point in one.points)
        colour = _ALARM if any(point.flags for point in one.points) else INK
        up = frame.up(one.main.rate)
        found.append(_Label(up, right, one.label, time_words(one.main), colour))
    for words, group in _alike(roofs).items():
        names = " / ".join(roof.label for roof in group)
        found.append(_Label(frame.up(group[0].rate), 1.0, names, words, INK, is_roof=True))
    return found


def _alike(roofs: Iterable[Roof]) -> dict[str, list[Roof]]:
    found: dict[str, list[Roof]] = {}
    for roof in _parted(roofs)[1]:
        found.setdefault(rate_words(roof.rate, rate_unit(roof.key)), []).append(roof)
    return found


def _draw_labels(axes: Any, frame: _Frame, labels: Sequence[_Label]) -> None:
    """Labels in the right margin, none over another."""
    heights = [LINE * 1.95 / frame.height] * len(labels)
    centres = spread([label.up for label in labels], heights, 0.0, 1.06)
    for label, at in zip(labels, centres, strict=True):
        axes.plot(
            (label.across, 1.0, 1.035), (label.up, label.up, at), transform=axes.transAxes,
            color=INK if label.is_roof else FAINT, linewidth=0.6, zorder=1.5, clip_on=False,
        )  # fmt: skip
        lines = (
            (label.first, 0.5, "bottom", SMALL, label.colour),
            (label.second, -0.5, "top", TINY, SOFT),
        )
        for text, lift, edge, size, colour in lines:
            axes.annotate(
                text, (1.045, at), (0, lift), xycoords="axes fraction",
                textcoords="offset points", fontsize=size, color=colour, va=edge,
                style="italic" if label.is_roof else "normal", annotation_clip=False,
                parse_math=False, gid=f"label:{label.first}",
            )  # fmt: skip


def _draw_head(
    figure: Any, title: str, rooflines: Sequence[Roofline], series: Sequence[_Series]
) -> None:
    total = figure.get_figheight()
    sources = dict.fromkeys(roof.source for one in rooflines for roof in one.roofs)
    kinds = [_source(source, rooflines) for source in sources]
    about = ", ".join([rooflines[0].gpu, *kinds])
    left = 0.012
    figure.text(left, 1 - 0.15 / total, literal(title), fontsize=TEXT + 1, color=INK,
                va="center", weight="bold", parse_math=False)  # fmt: skip
    figure.text(left, 1 - 0.32 / total, literal(about), fontsize=SMALL, color=SOFT, va="center",
                parse_math=False)  # fmt: skip
    levels = [level for level in LEVELS if any(p.level == level for s in series for p in s.points)]
    handles = [_handle(_MARKERS[level], COLOURS[level], LEVEL_LABELS[level]) for level in levels]
    if any(one.twin for one in series):
        handles.append(_handle("o", COLOURS["dram"], "declared work", hollow=True))
    if any(point.flags for one in series for point in one.all):
        handles.append(_handle("x", _ALARM, "can't be: see below"))
    figure.legend(
        handles=handles, loc="upper left", bbox_to_anchor=(left, 1 - 0.44 / total), ncols=6,
        frameon=False, fontsize=SMALL, handletextpad=0.1, columnspacing=1.0, borderpad=0,
        borderaxespad=0, labelcolor=INK, handlelength=1.4,
    )  # fmt: skip


def _source(source: Peaks, rooflines: Sequence[Roofline]) -> str:
    if source is not Peaks.held:
        return f"{source} roofs"
    clocks = sorted(one.sm_clock / 1e9 for one in rooflines if not math.isnan(one.sm_clock))
    told = dict.fromkeys(f"{clock:.2f}" for clock in clocks[:: max(1, len(clocks) - 1)])
    return f"roofs at the held clock, SM {' to '.join(told)} GHz" if told else "roofs as held"


def _handle(marker: str, colour: str, label: str, *, hollow: bool = False) -> Any:
    from matplotlib.lines import Line2D

    return Line2D(
        [], [], linestyle="none", marker=marker, markersize=5, label=label, color=colour,
        markerfacecolor="white" if hollow else colour,
    )  # fmt: skip


def _draw_feet(figure: Any, flags: Sequence[str], notes: Sequence[str], total: float) -> None:
    lines = [*((text, _ALARM) for text in flags), *((text, SOFT) for text in notes)]
    for at, (text, colour) in enumerate(reversed(lines)):
        figure.text(0.012, (0.06 + at * LINE) / total, literal(text), fontsize=TINY, color=colour,
                    va="bottom", parse_math=False)  # fmt: skip


def _flag_lines(series: Sequence[_Series]) -> list[str]:
    said = dict.fromkeys(
        f"× {one.label}{_which(point)}: {flag}"
        for one in series
        for point in one.all
        for flag in point.flags
    )
    return [line for text in said for line in _wrapped(text)]


def _which(point: Point) -> str:
    return " (declared)" if point.algorithmic else ""


def _time_notes(
    series: Sequence[_Series], labelled: Sequence[_Series], panel: Panel | None, *, seen: bool
) -> list[str]:
    """What the times are, and where their intervals stand."""
    parts = []
    if any(one.main.timed for one in series):
        bracketed = any(not math.isnan(one.main.low) for one in labelled)
        marks = {
            "brackets": bracketed or (panel is not None and panel.has_brackets),
            "whiskers": seen or (panel is not None and panel.has_whiskers),
        }
        shown = " and ".join(mark for mark, there in marks.items() if there)
        parts.append("rates by the timed median" + (f", {shown} its interval" if shown else ""))
    if not all(one.main.timed for one in series):
        parts.append("times by ncu are its durations")
    return parts + (list(panel.notes) if panel else [])


def _mark_notes(series: Sequence[_Series], roofs: Sequence[Roof], unnumbered: int) -> list[str]:
    lacking = f" ({unnumbered} unnumbered: see --table)" if unnumbered else ""
    notes = {
        "marker area: share of time": any(one.area != _ONE_AREA for one in series),
        "hollow: work and bytes that the target declares": any(one.twin for one in series),
        f"◇ ridge, FLOP/B{lacking}": len(roofs) > 1 and any(roof.is_memory for roof in roofs),
    }
    return [note for note, holds in notes.items() if holds]


def _join_notes(
    series: Sequence[_Series], steps: Sequence[Join], joined: Joined, unnamed: int
) -> list[str]:
    shape = _shape([one.run for one in series]) if joined is Joined.path else ""
    notes = {
        "nothing is joined: no kernel of one name has a point in two reports": (
            joined is not Joined.apart and not steps
        ),
        f"numbers beside points: {shape}": bool(shape),
        f"{plural(unnamed, 'stop')} without room for a name": bool(unnamed),
    }
    return [note for note, holds in notes.items() if holds]


def _absence_notes(rooflines: Sequence[Roofline], named: int) -> list[str]:
    outside = sum(len(roofline.outside) for roofline in rooflines)
    notes = {
        f"{named - _MOST_LABELS} more without a label": named > _MOST_LABELS,
        f"{plural(outside, 'kernel')} without a point: no FLOP, or unknown": bool(outside),
    }
    return [note for note, holds in notes.items() if holds]


def _filled(parts: Sequence[str]) -> list[str]:
    """Lines of as many parts as fit, each part whole where it is no longer than a line."""
    lines: list[str] = []
    for at, part in enumerate(parts):
        text = part + (";" if at < len(parts) - 1 else "")
        if lines and len(lines[-1]) + 1 + len(text) <= _NOTE_WIDTH:
            lines[-1] += f" {text}"
        else:
            lines += _wrapped(text)
    return lines


def _wrapped(text: str) -> list[str]:
    import textwrap

    return textwrap.wrap(text, _NOTE_WIDTH)
