"""The roofline as a picture: roofs, points at each level of memory, and a label beside each."""

import math
from collections.abc import Iterable, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from profkit.core.errors import BadInput, UsageError
from profkit.core.grouping import grouped
from profkit.roofline.roofline import Point, Roofline
from profkit.roofline.roofline_view import Subject, rate_unit, subjects, time_words
from profkit.roofline.roofs import LEVEL_LABELS, Peaks, Roof, split
from profkit.roofline.tracks import steps
from profkit.ui.text import literal, plural, shorten

# Inches and points: at 100 mm wide the smallest letters are still 5 points high.
WIDTH, LEFT, RIGHT, LINE = 5.6, 0.48, 1.74, 0.13
TEXT, SMALL, TINY = 8.5, 7.8, 7.2
INK, SOFT, FAINT, GRID = "#1b1b1b", "#5a5a5a", "#c4c4c4", "#efefef"
COLORS = {"dram": "#0072b2", "l2": "#00805e", "l1": "#a34e86"}
# Inches above, below and of the plot: title, legend and axis label at TEXT's size fit.
_TOP, _BOTTOM, _PLOT_HEIGHT = 0.8, 0.48, 3.0
_ALARM = "#b00020"
_MARKERS = {"dram": "o", "l2": "s", "l1": "^"}
_LEAST_AREA, _AREA, _ALGORITHMIC_AREA, _ONE_AREA = 20.0, 150.0, 30.0, 42.0
_LONGEST_NAME, _MOST_LABELS = 24, 16
_WIDEST, _MANY_DECADES = 1e8, 1e7
_NOTE_WIDTH = 96  # letters of TINY's size across WIDTH inches
_DPI = 200  # of a .png: a column of a paper at 100 mm is then sharp in print
_EDGE = 0.03  # inches left free at the right: letters are a little wider at other resolutions


class _Series(Subject, frozen=True):
    """The points of one kernel and precision in the report labeled `run`."""

    run: str
    area: float

    @property
    def label(self) -> str:
        """The kernel, the report, or both where both are needed to tell it."""
        return ", ".join(filter(None, (self.text, self.run)))


class _Frame(NamedTuple):
    """The axes, and the part of the plane that they show; sizes are in inches."""

    axes: Any
    x: tuple[float, float]
    y: tuple[float, float]
    height: float
    width: float = WIDTH - LEFT - RIGHT

    def across(self, intensity: float) -> float:
        """An intensity's place as a share of the width."""
        return _between(intensity, *self.x)

    def up(self, rate: float) -> float:
        """A rate's place as a share of the height."""
        return _between(rate, *self.y)


def _between(value: float, low: float, high: float) -> float:
    return math.log(value / low) / math.log(high / low)


def plot_rooflines(
    rooflines: Sequence[Roofline],
    path: Path,
    *,
    title: str,
    labels: Sequence[str] = (),
    arrows: bool = False,
) -> None:
    """Write rooflines on one plot as .png, .svg or .pdf.

    `labels` tell several reports apart; `arrows` lead from the first of two to the second. Raises
    UsageError for reports of different GPUs, BadInput where no report has a point, and OSError.
    """
    figure = figure_of(rooflines, title=title, labels=labels, arrows=arrows)
    # Nothing that changes from one writing to the next, so that files can be compared.
    dates: dict[str, object] = {
        ".svg": {"Date": None},
        ".pdf": {"CreationDate": None},
        ".png": {"Software": None},
    }
    figure.savefig(path, dpi=_DPI, metadata=dates[path.suffix])


def figure_of(
    rooflines: Sequence[Roofline],
    *,
    title: str,
    labels: Sequence[str] = (),
    arrows: bool = False,
) -> Any:
    """The figure. Points are collections whose gid is `point:NAME:LEVEL` (hollow ones:
    `algorithmic:NAME`), roofs lines whose gid is `roof:KEY`. Raises as `plot_rooflines` does."""
    from matplotlib.figure import Figure

    series = _series(rooflines, labels)
    reasons = (kernel.why for roofline in rooflines for kernel in roofline.outside)
    if not series:
        raise BadInput(
            f"{title}: no kernel has a point to plot ({next(reasons, 'no launch was measured')})",
            "leave out -o for the numbers",
        )
    roofs = _merged(rooflines)
    links = steps(*rooflines) if arrows else ()
    named = sorted(series, key=lambda row: -row.main.share)
    labeled = named[:_MOST_LABELS]
    height = max(_PLOT_HEIGHT, 2.0 * LINE * (len(labeled) + len(_by_rate(roofs))))
    figure = Figure()
    frame = _frame(figure.add_axes((0, 0, 1, 1)), series, roofs, height)
    _draw_axes(frame)
    unnumbered = _draw_roofs(frame, roofs, series)
    for link in links:
        _draw_link(frame.axes, *link)
    for row in series:
        _draw_series(frame, row)
    _draw_labels(frame, _labels(frame, labeled, roofs))
    flags = _flag_lines(series)
    outside = sum(len(roofline.outside) for roofline in rooflines)
    lacking = f" ({unnumbered} unnumbered: see --table)" if unnumbered else ""
    notes = {
        "marker area: share of time": any(row.area != _ONE_AREA for row in series),
        "hollow: algorithmic intensity (declared work)": any(row.algorithmic for row in series),
        f"◇ ridge point, FLOP/B{lacking}": len(roofs) > 1 and any(roof.is_memory for roof in roofs),
        "no connecting lines: no kernel has points in two reports": arrows and not links,
        f"{len(named) - _MOST_LABELS} more without a label": len(named) > _MOST_LABELS,
        f"{plural(outside, 'kernel')} without a point: no FLOP, or unknown": bool(outside),
    }
    shown = [note for note, holds in notes.items() if holds]
    lines = _wrapped("; ".join([*_time_notes(series, labeled), *shown]))
    feet = LINE * (len(flags) + len(lines)) + 0.06
    under = _BOTTOM + feet
    total = _TOP + height + under
    figure.set_size_inches(WIDTH, total)
    frame.axes.set_position((LEFT / WIDTH, under / total, frame.width / WIDTH, height / total))
    _draw_head(figure, title, rooflines, series, roofs)
    rows = [*((text, _ALARM) for text in flags), *((text, SOFT) for text in lines)]
    for row_number, (text, color) in enumerate(reversed(rows)):
        y = (0.06 + row_number * LINE) / total
        _write(figure, literal(text), (0.012, y), fontsize=TINY, color=color, va="bottom")
    _cut_to_canvas(figure)
    return figure


def _write(figure: Any, text: str, place: tuple[float, float], **style: Any) -> None:
    figure.text(*place, text, parse_math=False, **style)


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


def _series(rooflines: Sequence[Roofline], labels: Sequence[str]) -> list[_Series]:
    series = []
    for report, roofline in enumerate(rooflines):
        kernels = subjects(roofline.points, _LONGEST_NAME)
        same = len({kernel.main.share for kernel in kernels}) == 1
        for kernel in kernels:
            share = kernel.main.share
            area = _ONE_AREA if same or math.isnan(share) else _LEAST_AREA + _AREA * share
            text = "" if labels and len(kernels) == 1 else kernel.text
            run = labels[report] if labels else ""
            series.append(_Series(text, kernel.points, kernel.algorithmic, run, area))
    return series


def _merged(rooflines: Sequence[Roofline]) -> tuple[Roof, ...]:
    """The roofs of all, the highest of each key; raises UsageError for those of several GPUs."""
    gpus = dict.fromkeys(roofline.gpu for roofline in rooflines)
    if len(gpus) > 1:
        raise UsageError(
            f"different GPUs have different roofs: {', '.join(gpus)}", "plot them separately"
        )
    highest: dict[str, Roof] = {}
    for roof in (roof for roofline in rooflines for roof in roofline.roofs):
        if roof.key not in highest or roof.rate > highest[roof.key].rate:
            highest[roof.key] = roof
    return tuple(highest.values())


def _frame(axes: Any, series: Sequence[_Series], roofs: Sequence[Roof], height: float) -> _Frame:
    points = [point for row in series for point in row.all]
    memory, compute = split(roofs)
    ridges = [top.rate / line.rate for top in compute for line in memory]
    intensities = [point.intensity for point in points]
    rates = [point.rate for point in points]
    top = max([*rates, *(roof.rate for roof in compute)]) * 2.4
    bottom = min([*rates, *(roof.rate / 10 for roof in compute)]) / 2.5
    left = min([*intensities, *ridges]) / 4
    right = min(max([*intensities, *(ridge * 4 for ridge in ridges)]) * 2.5, left * _WIDEST)
    return _Frame(axes, (left, right), (bottom, top), height)


def _draw_axes(frame: _Frame) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axes = frame.axes
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
        axis.set_major_formatter(FuncFormatter(partial(_tick, unit, wide)))
        axis.set_minor_locator(LogLocator(base=10, subs=tuple(range(2, 10)), numticks=20))
        axis.set_minor_formatter(NullFormatter())
    axes.tick_params(labelsize=SMALL, color=FAINT, labelcolor=INK, length=3)
    axes.tick_params(which="minor", color=FAINT, length=1.5)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(FAINT)
    axes.grid(which="major", color=GRID, linewidth=0.6)
    axes.set_axisbelow(True)


def _tick(unit: float, powers: bool, number: float, _: int) -> str:
    value = number / unit
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


def _draw_roofs(frame: _Frame, roofs: Sequence[Roof], series: Sequence[_Series]) -> int:
    """Roofs and their ridges. Returns how many ridges have no number."""
    memory, compute = split(roofs)
    top = max((roof.rate for roof in compute), default=frame.y[1])
    fastest = max((roof.rate for roof in memory), default=math.nan)
    for roof in [*memory, *compute]:
        if roof.is_memory:
            x, y = (frame.y[0] / roof.rate, top / roof.rate), (frame.y[0], top)
        else:
            begin = roof.rate / fastest if memory else frame.x[0]
            x, y = (begin, frame.x[1]), (roof.rate, roof.rate)
        frame.axes.plot(
            x, y, color=COLORS.get(roof.key, INK), linewidth=1.3, zorder=2,
            gid=f"roof:{roof.key}", solid_capstyle="butt",
        )  # fmt: skip
    used = {point.roof for row in series for point in row.points}
    return _mark_ridges(frame, memory, [roof for roof in compute if roof.key in used])


def _mark_ridges(frame: _Frame, memory: Sequence[Roof], compute: Sequence[Roof]) -> int:
    """A diamond where a line of memory meets a roof. Its intensity stands to the right of the
    slowest line and to the left of the fastest, where nothing else is drawn, but where the next
    roof is near. Returns how many have none."""
    from matplotlib.patheffects import withStroke

    numbered = 0
    lines = sorted(memory, key=lambda line: line.rate)
    rates = sorted(roof.rate for roof in compute)
    for line, roof in product(lines, compute):
        ridge = roof.rate / line.rate
        frame.axes.plot(
            ridge, roof.rate, marker="D", markersize=3, markerfacecolor="white",
            markeredgecolor=INK, markeredgewidth=0.7, zorder=3,
            gid=f"ridge:{line.key}:{roof.key}", linestyle="none",
        )  # fmt: skip
        is_right = line is lines[0]
        if not is_right and line is not lines[-1]:
            continue
        beyond = [rate for rate in rates if rate < roof.rate if is_right]
        beyond += [rate for rate in rates if rate > roof.rate if not is_right]
        apart = min((abs(frame.up(roof.rate) - frame.up(rate)) for rate in beyond), default=1.0)
        if apart * frame.height * 72 < TINY:
            continue
        numbered += 1
        frame.axes.annotate(
            _three(ridge), (ridge, roof.rate), (2.5, -2.2) if is_right else (-2.5, 2),
            textcoords="offset points", fontsize=TINY - 0.4, color=COLORS[line.key], zorder=6,
            ha="left" if is_right else "right", va="top" if is_right else "bottom",
            path_effects=[withStroke(linewidth=2, foreground="white")],
            gid=f"number:{line.key}:{roof.key}",
        )  # fmt: skip
    return len(memory) * len(compute) - numbered


def _draw_series(frame: _Frame, row: _Series) -> None:
    axes, rate = frame.axes, row.main.rate
    across = [min(point.intensity, frame.x[1]) for point in row.points]
    if len(across) > 1:
        axes.plot(across, [rate] * len(across), color=SOFT, linewidth=0.7, zorder=3.5)
    for point, x in zip(row.points, across, strict=True):
        if not math.isnan(point.low):
            axes.plot(
                (x, x), (point.low, point.high), color=INK, linewidth=0.9, zorder=3.6, marker="_",
                markersize=4, gid=f"whisker:{point.name}:{point.level}",
            )  # fmt: skip
        outside = point.intensity > frame.x[1]
        axes.scatter(
            [x], [rate], s=row.area, zorder=4.5, clip_on=False,
            marker=">" if outside else _MARKERS[point.level], color=COLORS[point.level],
            edgecolors="white", linewidths=0.6, gid=f"point:{point.name}:{point.level}",
        )  # fmt: skip
        _mark_impossible(axes, point, x, row.area)
    if (hollow := row.algorithmic) is not None:
        ends = ((row.main.intensity, hollow.intensity), (row.main.rate, hollow.rate))
        axes.plot(*ends, color=COLORS["dram"], linewidth=0.9, linestyle=":", zorder=4.6)
        axes.scatter(
            [hollow.intensity], [hollow.rate], s=_ALGORITHMIC_AREA, facecolors="white", zorder=4.7,
            edgecolors=COLORS["dram"], linewidths=1.1, gid=f"algorithmic:{hollow.name}", marker="o",
        )  # fmt: skip
        _mark_impossible(axes, hollow, hollow.intensity, _ALGORITHMIC_AREA)


def _mark_impossible(axes: Any, point: Point, x: float, area: float) -> None:
    if point.flags:
        axes.scatter(
            [x], [point.rate], s=2 * area + 60, facecolors="none", edgecolors=_ALARM,
            linewidths=1.2, zorder=5.5, gid=f"flag:{point.name}:{point.level}",
        )  # fmt: skip
        axes.scatter([x], [point.rate], s=22, marker="x", color=_ALARM, linewidths=1.2, zorder=5.6)


def _draw_link(axes: Any, before: Point, after: Point) -> None:
    axes.annotate(
        "", (after.intensity, after.rate), (before.intensity, before.rate), zorder=3.8,
        arrowprops={
            "arrowstyle": "-|>", "color": COLORS[after.level], "linewidth": 1.1,
            "shrinkA": 4, "shrinkB": 5, "mutation_scale": 9,
        },
    )  # fmt: skip


class _Label(NamedTuple):
    """Two lines in the right margin, led to from a point at the left (a share of the width)."""

    up: float
    across: float
    first: str
    second: str
    color: str
    is_roof: bool


def _labels(frame: _Frame, series: Sequence[_Series], roofs: Sequence[Roof]) -> list[_Label]:
    """Of the kernels, and of the roofs of arithmetic, those of one rate together."""
    labels = []
    for row in series:
        right = max(min(frame.across(point.intensity), 1.0) for point in row.points)
        color = _ALARM if any(point.flags for point in row.points) else INK
        up = frame.up(row.main.rate)
        labels.append(_Label(up, right, row.label, time_words(row.main), color, is_roof=False))
    for words, group in _by_rate(roofs).items():
        names = " / ".join(roof.label for roof in group)
        labels.append(_Label(frame.up(group[0].rate), 1.0, names, words, INK, is_roof=True))
    return labels


def _by_rate(roofs: Iterable[Roof]) -> dict[str, list[Roof]]:
    shown = split(roofs)[1]
    return grouped((rate_words(roof.rate, rate_unit(roof.key)), roof) for roof in shown)


def _draw_labels(frame: _Frame, labels: Sequence[_Label]) -> None:
    """Labels in the right margin, none over another, with a line to each from its place."""
    axes, size = frame.axes, LINE * 1.95 / frame.height
    centers = spread([label.up for label in labels], size, 0.0, 1.06)
    for label, center in zip(labels, centers, strict=True):
        axes.plot(
            (label.across, 1.0, 1.035), (label.up, label.up, center), transform=axes.transAxes,
            color=INK if label.is_roof else FAINT, linewidth=0.6, zorder=1.5, clip_on=False,
        )  # fmt: skip
        for text, lift, side, letters, color in (
            (label.first, 0.5, "bottom", SMALL, label.color),
            (label.second, -0.5, "top", TINY, SOFT),
        ):
            axes.annotate(
                text, (1.045, center), (0, lift), xycoords="axes fraction",
                textcoords="offset points", annotation_clip=False, parse_math=False, va=side,
                fontsize=letters, color=color, style="italic" if label.is_roof else "normal",
                gid=f"label:{label.first}",
            )  # fmt: skip


def spread(wanted: Sequence[float], size: float, low: float, high: float) -> list[float]:
    """Centers for labels of one `size` on a line, between `low` and `high`, none over another.

    They keep the order of the places where they are `wanted`, and each is as far above its own as
    others push it up, and as far below as they push it down. Labels that together are larger than
    the room stick out at its lower end.
    """
    import numpy as np

    steps, order = size * np.arange(len(wanted)), np.argsort(wanted, kind="stable")
    least, most = low + size / 2, high - size / 2 - steps[-1]

    def up(places: Any) -> Any:
        return np.maximum.accumulate(np.maximum(places - steps, least)) + steps

    def down(places: Any) -> Any:
        return np.minimum.accumulate(np.minimum(places - steps, most)[::-1])[::-1] + steps

    places, centers = np.array(wanted)[order], np.empty(len(wanted))
    centers[order] = down(up((up(places) + down(places)) / 2))
    return [float(center) for center in centers]


def _draw_head(
    figure: Any,
    title: str,
    rooflines: Sequence[Roofline],
    series: Sequence[_Series],
    roofs: Sequence[Roof],
) -> None:
    total = figure.get_figheight()
    sources = dict.fromkeys(roof.source for roofline in rooflines for roof in roofline.roofs)
    about = ", ".join([rooflines[0].gpu, *(_source(source, rooflines) for source in sources)])
    left = 0.012
    _write(
        figure, literal(title), (left, 1 - 0.15 / total), fontsize=TEXT + 1, color=INK,
        va="center", weight="bold",
    )  # fmt: skip
    place = (left, 1 - 0.32 / total)
    _write(figure, literal(about), place, fontsize=SMALL, color=SOFT, va="center")
    points = [point for row in series for point in row.points]
    used = {point.level for point in points}
    bandwidths = {roof.key: f" {rate_words(roof.rate, 'B/s')}" for roof in roofs if roof.is_memory}
    handles = [
        _handle(_MARKERS[level], COLORS[level], label + bandwidths.get(level, ""))
        for level, label in LEVEL_LABELS.items()
        if level in used
    ]
    if any(row.algorithmic for row in series):
        handles.append(_handle("o", COLORS["dram"], "algorithmic", hollow=True))
    if any(point.flags for row in series for point in row.all):
        handles.append(_handle("x", _ALARM, "impossible: see below"))
    figure.legend(
        handles=handles, loc="upper left", bbox_to_anchor=(left, 1 - 0.44 / total), ncols=6,
        frameon=False, fontsize=SMALL, handletextpad=0.1, columnspacing=1.0, borderpad=0,
        borderaxespad=0, labelcolor=INK, handlelength=1.4,
    )  # fmt: skip


def _source(source: Peaks, rooflines: Sequence[Roofline]) -> str:
    if source is not Peaks.held:
        return "datasheet roofs" if source is Peaks.datasheet else "measured ceilings"
    clocks = sorted(row.sm_clock / 1e9 for row in rooflines if not math.isnan(row.sm_clock))
    ends = dict.fromkeys(f"{clock:.2f}" for clock in clocks[:: max(1, len(clocks) - 1)])
    clock = f", {' to '.join(ends)} GHz" if ends else ""
    which = dict.fromkeys("nominal" if "SM" in row.nominal else "measured" for row in rooflines)
    return f"roofs at {' or '.join(which)} SM clock{clock}"


def _handle(marker: str, color: str, label: str, *, hollow: bool = False) -> Any:
    from matplotlib.lines import Line2D

    return Line2D(
        [], [], linestyle="none", marker=marker, markersize=5, label=label, color=color,
        markerfacecolor="white" if hollow else color,
    )  # fmt: skip


def _flag_lines(series: Sequence[_Series]) -> list[str]:
    texts = dict.fromkeys(
        f"× {row.label}{' (algorithmic)' if point.algorithmic else ''}: {flag}"
        for row in series
        for point in row.all
        for flag in point.flags
    )
    return [line for text in texts for line in _wrapped(text)]


def _time_notes(series: Sequence[_Series], labeled: Sequence[_Series]) -> list[str]:
    """What the times are, and where their intervals stand."""
    notes = []
    if any(row.main.timed for row in series):
        known = any(not math.isnan(row.main.low) for row in labeled)
        shown = ", brackets and whiskers: 95% interval" if known else ""
        notes.append(f"rates from timed medians{shown}")
    if not all(row.main.timed for row in series):
        notes.append("(ncu): ncu duration")
    return notes


def _wrapped(text: str) -> list[str]:
    import textwrap

    return textwrap.wrap(text, _NOTE_WIDTH)
