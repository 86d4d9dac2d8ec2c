"""The page of a history: all series as small multiples, worst first; it loads nothing."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path

from msgspec import Struct

from profkit.core.text_files import shipped_text
from profkit.core.version import __version__
from profkit.history.changes import NAMES, Kind, Mark
from profkit.history.record import Point, Series, short_commit
from profkit.history.store import median_of
from profkit.ui.template import content_policy, embedded, templates
from profkit.ui.text import literal, number, plural

MOST_POINTS = 120
"""Runs of a series on the page, its last ones; chosen: a point each 2 pixels."""

_ALL_POINTS = 60_000  # runs on a page, chosen: 5 MB
_FEWEST_POINTS = 30  # of a series, chosen: a month of daily runs
_WIDTH, _HEIGHT, _TOP, _BOTTOM = 300.0, 84.0, 6.0, 78.0  # of a drawing, in its own units
_LEAST_RANGE = 0.03  # of the median; chosen: noise of 0.1% does not fill a drawing
_LATEST = 3  # runs that are compared with those before; chosen: an outlier is none of two others


class Card(Struct, frozen=True):
    """A series as the page has it: its drawing in SVG paths, and words.

    `slowdown` is that of the last runs against those before, as a share; `regressed` says that a
    check found it.
    """

    series: Series
    name: str
    about: str
    runs: str
    last: str
    change: str
    slowdown: float
    regressed: bool
    latest: datetime
    high: str
    low: str
    start: str
    end: str
    line: str
    band: str
    rules: tuple[tuple[float, str], ...]
    marks: tuple[tuple[str, str, str, str], ...]
    data: tuple[tuple[float, float, str], ...]


def points_of_a_series(series: int) -> int:
    """How many runs of each of so many series a page has."""
    return max(_FEWEST_POINTS, min(MOST_POINTS, _ALL_POINTS // max(series, 1)))


def history_page(
    rows: Mapping[Series, tuple[Sequence[Point], Sequence[Mark]]],
    runs: Mapping[Series, int],
    store: Path,
) -> str:
    """The page of series with their points and changes; `runs` are all that each has."""
    from markupsafe import Markup

    cards = [card(points, marks, runs[series]) for series, (points, marks) in rows.items()]
    cards.sort(key=lambda each: (not each.regressed, -each.slowdown, each.name))
    scripts = [
        shipped_text("profkit.page", "assets/theme.js"),
        shipped_text("profkit.history", "assets/history.js"),
    ]
    style = shipped_text("profkit.page", "assets/page.css")
    page = templates("profkit.history").get_template("history.html.j2")
    regressed = sum(each.regressed for each in cards)
    return page.render(
        policy=content_policy(scripts),
        version=__version__,
        store=literal(store.name),
        heading=f"{plural(len(cards), 'series')}, {plural(sum(runs.values()), 'point')}",
        verdict=f"{plural(regressed, 'series')} with a slowdown of the program"
        if regressed
        else "",
        cards=cards,
        style=Markup(style + shipped_text("profkit.history", "assets/history.css")),
        theme_script=Markup(scripts[0]),
        script=Markup(scripts[1]),
        data=Markup(embedded([each.data for each in cards])),
    ).removesuffix("\n")


def card(points: Sequence[Point], marks: Sequence[Mark], runs: int) -> Card:
    """A series with its changes; of all its `runs`, `points` are the last."""
    series, medians = points[0].series, [median_of(point) for point in points]
    low, high = _limits(points)
    start, end = points[0].time, points[-1].time
    span = (end - start).total_seconds()

    def x(time: datetime) -> float:
        return round((time - start).total_seconds() / span * _WIDTH if span else _WIDTH / 2, 1)

    def y(value: float) -> float:
        return round(_BOTTOM - (value - low) / (high - low) * (_BOTTOM - _TOP), 1)

    places = [x(point.time) for point in points]
    levels = [y(median) for median in medians]
    tops = [
        f"{place:g},{y(max(p.block_medians)):g}" for place, p in zip(places, points, strict=True)
    ]
    feet = [
        f"{place:g},{y(min(p.block_medians)):g}" for place, p in zip(places, points, strict=True)
    ]
    slowdown = _slowdown(medians)
    real = [mark for mark in marks if mark.kind is Kind.REAL]
    worst = max(real, key=lambda mark: mark.change, default=None)
    regressed = worst is not None and worst.change > 0
    left = f", the last {len(points)} shown" if runs > len(points) else ""
    return Card(
        series=series,
        name=literal(series.name) or "(no name)",
        about=" · ".join(
            filter(None, map(literal, (series.shape, series.gpu_model, series.branch)))
        ),
        runs=f"{plural(runs, 'run')}{left}",
        last=number(medians[-1], "s"),
        change=_change(worst, points, slowdown),
        slowdown=worst.change if worst and regressed else slowdown or 0.0,
        regressed=regressed,
        latest=end,
        high=number(high, "s", 3),
        low=number(low, "s", 3),
        start=f"{start:%Y-%m-%d}",
        end=f"{end:%Y-%m-%d}",
        line="M" + "L".join(f"{a:g},{b:g}" for a, b in zip(places, levels, strict=True)),
        band="M" + "L".join([*tops, *reversed(feet)]) + "Z",
        rules=tuple(
            (round((places[mark.index - 1] + places[mark.index]) / 2, 1), mark.kind.value)
            for mark in marks
        ),
        marks=tuple(
            (
                f"{points[mark.index].time:%Y-%m-%d}",
                mark.kind.value,
                NAMES[mark.kind],
                mark.words,
            )
            for mark in reversed(marks)
        ),
        data=tuple(
            (place, level, _tip(point))
            for place, level, point in zip(places, levels, points, strict=True)
        ),
    )


def _change(worst: Mark | None, points: Sequence[Point], slowdown: float | None) -> str:
    """The largest slowdown of the program and since when, else that of the last runs."""
    if worst is not None and worst.change > 0:
        return f"{worst.change:+.2%} since {points[worst.index].time:%Y-%m-%d}"
    return "" if slowdown is None else f"{slowdown:+.2%}"


def _tip(point: Point) -> str:
    commit = short_commit(point.commit)
    words = (f"{point.time:%Y-%m-%d %H:%M}", number(median_of(point), "s"), commit)
    return " · ".join(filter(None, words))


def _limits(points: Sequence[Point]) -> tuple[float, float]:
    low = min(min(point.block_medians) for point in points)
    high = max(max(point.block_medians) for point in points)
    middle, width = (low + high) / 2, max(high - low, _LEAST_RANGE * (low + high) / 2)
    return max(0.0, middle - width / 2), middle + width / 2


def _slowdown(medians: Sequence[float]) -> float | None:
    """How much slower the last runs are than those before; None without any before."""
    before, after = medians[:-_LATEST], medians[-_LATEST:]
    return statistics.median(after) / statistics.median(before) - 1 if before else None
