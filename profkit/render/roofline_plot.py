"""The roofline as a picture: roofs, points at each level of memory, and a label beside each."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from pathlib import Path
from typing import Any

from profkit.analysis.roofline import LEVELS, Peaks, Point, Roof, Roofline
from profkit.analysis.roofs import LEVEL_LABELS
from profkit.analysis.summary import PRECISIONS
from profkit.errors import UsageError
from profkit.render.names import told_apart, without_arguments
from profkit.render.spread import spread
from profkit.render.text import literal, number, plural, seconds_between

SUFFIXES = (".png", ".svg", ".pdf")

# Inches and points: at 100 mm wide the smallest letters are still 5 points high.
_WIDTH, _LEFT, _RIGHT, _TOP, _BOTTOM = 5.5, 0.55, 1.62, 0.68, 0.48
_PLOT_HEIGHT, _LINE = 3.0, 0.13
_TEXT, _SMALL, _TINY = 8.5, 7.8, 7.2
_INK, _SOFT, _FAINT, _ALARM = "#1b1b1b", "#5a5a5a", "#c4c4c4", "#b00020"
_COLOURS = {"dram": "#0072b2", "l2": "#00805e", "l1": "#a34e86"}
_MARKERS = {"dram": "o", "l2": "s", "l1": "^"}
_LEAST_AREA, _AREA, _TWIN_AREA, _ONE_AREA = 20.0, 150.0, 30.0, 42.0
_LONGEST_NAME, _MOST_LABELS = 24, 16
_WIDEST, _MANY_DECADES = 1e8, 1e7
_NOTE_WIDTH = 96
_DIGIT = 0.62  # the width of a digit, as a share of the font's size


class Joined(StrEnum):
    """What joins the points of several reports: nothing, an arrow from each to the next, a path."""

    apart = "apart"
    arrows = "arrows"
    path = "path"


@dataclass(frozen=True)
class _Series:
    """The points of one kernel and precision in one report, by level, and its hollow twin."""

    key: str
    run: int
    label: str
    points: tuple[Point, ...]
    twin: Point | None
    area: float

    @property
    def main(self) -> Point:
        return self.points[0]

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

    @property
    def slope(self) -> float:
        """Degrees at which a line of one decade a decade rises."""
        high = self.height / math.log10(self.y[1] / self.y[0])
        wide = self.width / math.log10(self.x[1] / self.x[0])
        return math.degrees(math.atan2(high, wide))


def _between(value: float, low: float, high: float) -> float:
    return math.log(value / low) / math.log(high / low)


def check_suffix(path: Path) -> None:
    """Raise UsageError for a name that no picture can have."""
    if path.suffix not in SUFFIXES:
        raise UsageError(f"{path}: not a kind of plot", f"use {', '.join(SUFFIXES)}")


def plot_rooflines(
    rooflines: Sequence[Roofline],
    path: Path,
    *,
    title: str,
    labels: Sequence[str] = (),
    joined: Joined = Joined.apart,
) -> None:
    """Write rooflines on one plot as .png, .svg or .pdf.

    `labels` tell several reports apart. Raises UsageError for another kind of file, for reports of
    different GPUs, and where no report has a point.
    """
    check_suffix(path)
    figure = figure_of(rooflines, title=title, labels=labels, joined=joined)
    # Nothing that changes from one writing to the next, so that files can be compared.
    dates: dict[str, Any] = {
        ".svg": {"Date": None},
        ".pdf": {"CreationDate": None},
        ".png": {"Software": None},
    }
    try:
        figure.savefig(path, dpi=200, metadata=dates[path.suffix])
    except OSError as error:
        raise UsageError(f"{path}: can't be written ({error.strerror})") from None


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
        raise UsageError(f"{title}: no kernel has a point", _why_none(rooflines))
    roofs = _merged(rooflines)
    labelled = _labelled(series)
    flags = _flag_lines(series)
    notes = _caption(rooflines, series, labelled, roofs)
    height = max(_PLOT_HEIGHT, 2.1 * _LINE * len(labelled))
    under = _BOTTOM + _LINE * (len(flags) + len(notes)) + 0.06
    figure = Figure(figsize=(_WIDTH, _TOP + height + under))
    total = _TOP + height + under
    frame = _frame(series, roofs, height)
    axes = figure.add_axes((_LEFT / _WIDTH, under / total, frame.width / _WIDTH, height / total))
    _draw_axes(axes, frame)
    _draw_roofs(axes, frame, roofs, series)
    _draw_joins(axes, series, joined)
    for one in series:
        _draw_series(axes, frame, one)
    _draw_labels(axes, frame, labelled)
    _draw_head(figure, title, rooflines, series)
    _draw_feet(figure, flags, notes, total)
    return figure


def _why_none(rooflines: Sequence[Roofline]) -> str:
    reasons = dict.fromkeys(one.why for roofline in rooflines for one in roofline.outside)
    return next(iter(reasons), "see `profkit metrics FILE`")


def _series(rooflines: Sequence[Roofline], labels: Sequence[str]) -> list[_Series]:
    found = []
    for run, roofline in enumerate(rooflines):
        kept: dict[tuple[str, int, str], list[Point]] = {}
        for point in roofline.points:
            kept.setdefault((point.name, point.launch, point.precision), []).append(point)
        texts = _names(kept)
        told = {point.share for point in roofline.points}
        for key, points in kept.items():
            label = texts[key]
            if labels:
                label = labels[run] if len(kept) == 1 else f"{label}, {labels[run]}"
            share = points[0].share
            alone = len(told) == 1 or math.isnan(share)
            found.append(
                _Series(
                    key=f"{'' if len(kept) == 1 else key[0]}:{key[2]}",
                    run=run,
                    label=label,
                    points=tuple(point for point in points if not point.algorithmic),
                    twin=next((point for point in points if point.algorithmic), None),
                    area=_ONE_AREA if alone else _LEAST_AREA + _AREA * share,
                )
            )
    return [one for one in found if one.points]


def _names(kept: Iterable[tuple[str, int, str]]) -> dict[tuple[str, int, str], str]:
    """A short name for each kernel, launch and precision; no two alike."""
    keys = list(kept)
    bare = {name: without_arguments(literal(name)) for name, _, _ in keys}
    if len(set(bare.values())) < len(bare):
        bare = {name: literal(name) for name in bare}
    short = told_apart(bare.values(), _LONGEST_NAME)
    found = {}
    for name, launch, precision in keys:
        text = short[bare[name]]
        if len({at for one, at, _ in keys if one == name}) > 1:
            text += f" #{launch}"
        if len({what for one, at, what in keys if (one, at) == (name, launch)}) > 1:
            text += f", {PRECISIONS[precision]}"
        found[name, launch, precision] = text
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


def _labelled(series: Sequence[_Series]) -> list[_Series]:
    """Those that get a label: all, or the ones of most time."""
    return sorted(series, key=lambda one: -one.main.share)[:_MOST_LABELS]


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
    return _Frame((left, right), (bottom, top), _WIDTH - _LEFT - _RIGHT, height)


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
    axes.set_xlabel("arithmetic intensity (FLOP/B)", fontsize=_TEXT, color=_INK)
    axes.set_ylabel("rate (TFLOP/s)", fontsize=_TEXT, color=_INK)
    wide = frame.x[1] / frame.x[0] >= _MANY_DECADES
    for axis, unit in ((axes.xaxis, 1.0), (axes.yaxis, 1e12)):
        axis.set_major_locator(LogLocator(base=10, numticks=20))
        axis.set_major_formatter(FuncFormatter(lambda value, _, by=unit: _tick(value / by, wide)))
        axis.set_minor_locator(LogLocator(base=10, subs=tuple(range(2, 10)), numticks=20))
        axis.set_minor_formatter(NullFormatter())
    axes.tick_params(labelsize=_SMALL, color=_FAINT, labelcolor=_INK, length=3)
    axes.tick_params(which="minor", color=_FAINT, length=1.5)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(_FAINT)
    axes.grid(which="major", color="#efefef", linewidth=0.6)
    axes.set_axisbelow(True)


def _tick(value: float, powers: bool) -> str:
    if 0.0009 < value < (200 if powers else 20_000):
        return f"{value:,g}".replace(",", " ")
    return rf"$10^{{{round(math.log10(value))}}}$"


def rate_words(value: float, unit: str) -> str:
    """A rate in tera or giga to three digits: `1,070 TFLOP/s`, `4.81 TB/s`, `300 GB/s`."""
    scaled, prefix = (value / 1e12, "T") if value >= 1e12 else (value / 1e9, "G")
    digits = max(0, 2 - math.floor(math.log10(scaled)))
    return f"{scaled:,.{digits}f} {prefix}{unit}"


def _draw_roofs(axes: Any, frame: _Frame, roofs: Sequence[Roof], series: Sequence[_Series]) -> None:
    memory, compute = _parted(roofs)
    top = max((roof.rate for roof in compute), default=frame.y[1])
    fastest = max((roof.rate for roof in memory), default=math.nan)
    for line in memory:
        ends = (frame.y[0] / line.rate, top / line.rate)
        axes.plot(
            ends, (frame.y[0], top), color=_COLOURS[line.key], linewidth=1.3, zorder=2,
            gid=f"roof:{line.key}", solid_capstyle="butt",
        )  # fmt: skip
        _label_line(axes, frame, line)
    for roof in compute:
        begin = roof.rate / fastest if memory else frame.x[0]
        axes.plot(
            (begin, frame.x[1]), (roof.rate, roof.rate), color=_INK, linewidth=1.3, zorder=2,
            gid=f"roof:{roof.key}", solid_capstyle="butt",
        )  # fmt: skip
    _label_roofs(axes, frame, compute)
    held = {point.roof for one in series for point in one.points}
    _mark_ridges(axes, frame, memory, [roof for roof in compute if roof.key in held])


def _label_line(axes: Any, frame: _Frame, line: Roof) -> None:
    """A memory roof's name along it, from where it enters the picture."""
    at = max(0.0, frame.across(frame.y[0] / line.rate)) + 0.04
    x = frame.x[0] * (frame.x[1] / frame.x[0]) ** at
    axes.annotate(
        f"{line.label} {rate_words(line.rate, 'B/s')}", (x, x * line.rate), (-1.5, 2.5),
        textcoords="offset points", rotation=frame.slope, rotation_mode="anchor",
        fontsize=_TINY, color=_COLOURS[line.key], ha="left", va="bottom", zorder=6,
        path_effects=_halo(),
    )  # fmt: skip


def _label_roofs(axes: Any, frame: _Frame, compute: Sequence[Roof]) -> None:
    """Names of the roofs of arithmetic at their right end; those of one rate on one line."""
    alike: dict[str, list[Roof]] = {}
    for roof in sorted(compute, key=lambda roof: -roof.rate):
        unit = "op/s" if roof.key.endswith("int8") else "FLOP/s"
        alike.setdefault(rate_words(roof.rate, unit), []).append(roof)
    taken = math.inf
    for words, group in alike.items():
        height = frame.up(group[0].rate) * frame.height * 72
        above = taken - height > _TINY + 5
        axes.annotate(
            f"{' / '.join(roof.label for roof in group)} {words}", (1, group[0].rate),
            (0, 2 if above else -2.5), xycoords=("axes fraction", "data"),
            textcoords="offset points", fontsize=_TINY, color=_INK, ha="right",
            va="bottom" if above else "top", zorder=6, path_effects=_halo(),
        )  # fmt: skip
        taken = height if above else height - _TINY - 3


def _mark_ridges(axes: Any, frame: _Frame, memory: Sequence[Roof], compute: Sequence[Roof]) -> None:
    """A diamond where a line of memory meets a roof; its intensity beside it where there is room,
    slow memory and high roofs first."""
    numbers: list[tuple[float, float, float]] = []
    for roof in sorted(compute, key=lambda roof: -roof.rate):
        for line in sorted(memory, key=lambda line: line.rate):
            ridge = roof.rate / line.rate
            axes.plot(
                ridge, roof.rate, marker="D", markersize=3, markerfacecolor="white",
                markeredgecolor=_INK, markeredgewidth=0.7, zorder=3,
                gid=f"ridge:{line.key}:{roof.key}", linestyle="none",
            )  # fmt: skip
            text = f"{ridge:.3g}"
            wide = _DIGIT * len(text) * _TINY + 3
            right = frame.across(ridge) * frame.width * 72
            up = frame.up(roof.rate) * frame.height * 72
            if any(right > a and right - wide < b and abs(up - at) < _TINY for a, b, at in numbers):
                continue
            numbers.append((right - wide, right, up))
            axes.annotate(
                text, (ridge, roof.rate), (-2.5, 2.5), textcoords="offset points",
                fontsize=_TINY - 0.4, color=_COLOURS[line.key], ha="right", va="bottom",
                zorder=6, path_effects=_halo(),
            )  # fmt: skip


def _halo() -> list[Any]:
    from matplotlib.patheffects import withStroke

    return [withStroke(linewidth=2, foreground="white")]


def _draw_series(axes: Any, frame: _Frame, one: _Series) -> None:
    rate = one.main.rate
    shown = [min(point.intensity, frame.x[1]) for point in one.points]
    if len(shown) > 1:
        axes.plot(shown, [rate] * len(shown), color=_SOFT, linewidth=0.7, zorder=3.5)
    for point, x in zip(one.points, shown, strict=True):
        _draw_whisker(axes, frame, point, x, one.area)
        beyond = point.intensity > frame.x[1]
        axes.scatter(
            [x], [rate], s=one.area, zorder=4.5, clip_on=False,
            marker=">" if beyond else _MARKERS[point.level], color=_COLOURS[point.level],
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
    high = (frame.up(point.high) - frame.up(point.low)) * frame.height * 72
    axes.plot(
        (x, x), (point.low, point.high), color=_INK, linewidth=0.9, zorder=5,
        marker="_" if high > math.sqrt(area) else "", markersize=4,
        gid=f"whisker:{point.name}:{point.level}",
    )  # fmt: skip


def _draw_twin(axes: Any, point: Point, twin: Point) -> None:
    ends = ((point.intensity, twin.intensity), (point.rate, twin.rate))
    axes.plot(*ends, color=_COLOURS["dram"], linewidth=0.9, linestyle=":", zorder=4.6)
    axes.scatter(
        [twin.intensity], [twin.rate], s=_TWIN_AREA, facecolors="white", zorder=4.7,
        edgecolors=_COLOURS["dram"], linewidths=1.1, gid=f"twin:{twin.name}", marker="o",
    )  # fmt: skip
    if twin.flags:
        _mark_impossible(axes, twin, twin.intensity, _TWIN_AREA)


def _mark_impossible(axes: Any, point: Point, x: float, area: float) -> None:
    axes.scatter(
        [x], [point.rate], s=2 * area + 60, facecolors="none", edgecolors=_ALARM,
        linewidths=1.2, zorder=5.5, gid=f"flag:{point.name}:{point.level}",
    )  # fmt: skip
    axes.scatter([x], [point.rate], s=22, marker="x", color=_ALARM, linewidths=1.2, zorder=5.6)


def _draw_joins(axes: Any, series: Sequence[_Series], joined: Joined) -> None:
    if joined is Joined.apart:
        return
    kept: dict[tuple[str, str], list[Point]] = {}
    for one in series:
        for point in one.points:
            kept.setdefault((one.key, point.level), []).append(point)
    for (_, level), points in kept.items():
        for before, after in pairwise(points):
            _join(axes, before, after, _COLOURS[level], arrow=joined is Joined.arrows)


def _join(axes: Any, before: Point, after: Point, colour: str, *, arrow: bool) -> None:
    axes.annotate(
        "", (after.intensity, after.rate), (before.intensity, before.rate), zorder=3.8,
        arrowprops={
            "arrowstyle": "-|>" if arrow else "-", "color": colour, "linewidth": 1.1,
            "shrinkA": 4, "shrinkB": 5, "mutation_scale": 9,
        },
    )  # fmt: skip


def _draw_labels(axes: Any, frame: _Frame, series: Sequence[_Series]) -> None:
    """Labels in the right margin, each led to from its rightmost point."""
    heights = [_LINE * 1.95 / frame.height] * len(series)
    wanted = [frame.up(one.main.rate) for one in series]
    for one, want, at in zip(series, wanted, spread(wanted, heights, 0.0, 1.06), strict=True):
        right = max(min(frame.across(point.intensity), 1.0) for point in one.points)
        axes.plot(
            (right, 1.0, 1.035), (want, want, at), color=_FAINT, linewidth=0.6, zorder=1.5,
            transform=axes.transAxes, clip_on=False,
        )  # fmt: skip
        colour = _ALARM if any(point.flags for point in one.points) else _INK
        place = {
            "xycoords": "axes fraction",
            "textcoords": "offset points",
            "annotation_clip": False,
        }
        axes.annotate(
            one.label, (1.045, at), (0, 0.5), fontsize=_SMALL, color=colour, va="bottom",
            gid=f"label:{one.label}", parse_math=False, **place,
        )  # fmt: skip
        axes.annotate(
            time_words(one.main), (1.045, at), (0, -0.5), fontsize=_TINY, color=_SOFT, va="top",
            **place,
        )  # fmt: skip


def time_words(point: Point) -> str:
    """The time of a point: `49.76 µs [49.65, 49.90]` where timed, `47.04 µs by ncu` otherwise."""
    shown = number(point.seconds, "s")
    if not point.timed:
        return f"{shown} by ncu"
    if math.isnan(point.low):
        return f"{shown} timed"
    work = point.rate * point.seconds
    interval = seconds_between(work / point.high, work / point.low)
    ends, _, unit = interval.rpartition(" ")
    return f"{shown} {ends}" if shown.endswith(f" {unit}") else f"{shown} {interval}"


def _draw_head(
    figure: Any, title: str, rooflines: Sequence[Roofline], series: Sequence[_Series]
) -> None:
    total = figure.get_figheight()
    sources = dict.fromkeys(roof.source for one in rooflines for roof in one.roofs)
    kinds = [_source(source, rooflines) for source in sources]
    about = ", ".join([rooflines[0].gpu, *kinds])
    left = 0.012
    figure.text(left, 1 - 0.15 / total, literal(title), fontsize=_TEXT + 1, color=_INK,
                va="center", weight="bold", parse_math=False)  # fmt: skip
    figure.text(left, 1 - 0.32 / total, literal(about), fontsize=_SMALL, color=_SOFT, va="center",
                parse_math=False)  # fmt: skip
    levels = [level for level in LEVELS if any(p.level == level for s in series for p in s.points)]
    handles = [_handle(_MARKERS[level], _COLOURS[level], LEVEL_LABELS[level]) for level in levels]
    if any(one.twin for one in series):
        handles.append(_handle("o", _COLOURS["dram"], "declared work", hollow=True))
    if any(point.flags for one in series for point in one.all):
        handles.append(_handle("x", _ALARM, "can't be: see below"))
    figure.legend(
        handles=handles, loc="upper left", bbox_to_anchor=(left, 1 - 0.44 / total), ncols=6,
        frameon=False, fontsize=_SMALL, handletextpad=0.1, columnspacing=1.0, borderpad=0,
        borderaxespad=0, labelcolor=_INK, handlelength=1.4,
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
    lines = [*((text, _ALARM) for text in flags), *((text, _SOFT) for text in notes)]
    for at, (text, colour) in enumerate(reversed(lines)):
        figure.text(0.012, (0.06 + at * _LINE) / total, literal(text), fontsize=_TINY, color=colour,
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


def _caption(
    rooflines: Sequence[Roofline], series: Sequence[_Series], labelled: Sequence[_Series],
    roofs: Sequence[Roof],
) -> list[str]:  # fmt: skip
    parts = []
    points = [one.main for one in series]
    if any(point.timed for point in points):
        parts.append("rates by the timed median, brackets and whiskers its 95% interval")
    if not all(point.timed for point in points):
        parts.append("times by ncu are its durations")
    if any(one.area != _ONE_AREA for one in series):
        parts.append("marker area: share of time")
    if any(one.twin for one in series):
        parts.append("hollow: work and bytes that the target declares")
    if any(roof.is_memory for roof in roofs) and len(roofs) > 1:
        parts.append("◇ ridge, FLOP/B")
    left = len(series) - len(labelled)
    if left:
        parts.append(f"{left} more without a label")
    outside = sum(len(roofline.outside) for roofline in rooflines)
    if outside:
        parts.append(f"{plural(outside, 'kernel')} without a point: no FLOP, or unknown")
    return _wrapped("; ".join(parts))


def _wrapped(text: str) -> list[str]:
    import textwrap

    return textwrap.wrap(text, _NOTE_WIDTH)
