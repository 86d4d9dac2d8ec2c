"""The page of a history: all series as small multiples, worst first; it loads nothing."""

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from profkit.core.text_files import shipped_text
from profkit.core.version import __version__
from profkit.history.changes import NAMES, Kind, Mark
from profkit.history.record import Point, Series, short_commit
from profkit.history.store import median_of
from profkit.ui.template import content_policy, embedded, templates
from profkit.ui.text import number, plural

MOST_POINTS = 120
"""Runs of a series on the page, its last ones; chosen: a point each 2 pixels."""

_ALL_POINTS = 60_000  # runs on a page, chosen: 5 MB
_FEWEST_POINTS = 30  # of a series, chosen: a month of daily runs
_WIDTH, _HEIGHT, _TOP, _BOTTOM = 300.0, 84.0, 6.0, 78.0  # of a drawing, in its own units
_LEAST_RANGE = 0.03  # of the median; chosen: noise of 0.1% does not fill a drawing
_LATEST = 3  # runs that are compared with those before; chosen: an outlier is none of two others


class Card(Struct, frozen=True):
    """A series as the page has it: the last points of its `runs`, its changes, and its drawing.

    `slowdown` is that of the last runs against those before, as a share. The drawing has the limits
    of its times (s), the places of points, and SVG paths.
    """

    points: Sequence[Point]
    marks: Sequence[Mark]
    runs: int
    slowdown: float
    low: float
    high: float
    data: tuple[tuple[float, float, str], ...]
    line: str
    band: str

    @property
    def series(self) -> Series:
        return self.points[0].series

    @property
    def worst(self) -> Mark | None:
        """The largest slowdown of the program that a check found."""
        real = [mark for mark in self.marks if mark.kind is Kind.REAL and mark.change > 0]
        return max(real, key=lambda mark: mark.change, default=None)

    @property
    def rules(self) -> list[tuple[float, str]]:
        """Where the changes are, between the runs before and after, and their kinds."""
        places = [place for place, _, _ in self.data]
        return [
            (round((places[mark.index - 1] + places[mark.index]) / 2, 1), mark.kind.value)
            for mark in self.marks
        ]


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
    cards.sort(
        key=lambda card: (
            card.worst is None,
            -(card.worst.change if card.worst else card.slowdown),
            card.series.name,
        )
    )
    scripts = [
        shipped_text("profkit.page", "assets/theme.js"),
        shipped_text("profkit.history", "assets/history.js"),
    ]
    style = shipped_text("profkit.page", "assets/page.css")
    filters: Mapping[str, Callable[..., str | float]] = {
        "median": median_of,
        "number": number,
        "plural": plural,
    }
    page = templates("profkit.history", filters).get_template("history.html.j2")
    regressed = sum(card.worst is not None for card in cards)
    verdict = f"{plural(regressed, 'series')} with a slowdown of the program" if regressed else ""
    return page.render(
        policy=content_policy(scripts),
        version=__version__,
        store=store.name,
        heading=f"{plural(len(cards), 'series')}, {plural(sum(runs.values()), 'point')}",
        verdict=verdict,
        kinds=NAMES,
        cards=cards,
        style=Markup(style + shipped_text("profkit.history", "assets/history.css")),
        theme_script=Markup(scripts[0]),
        script=Markup(scripts[1]),
        data=Markup(embedded([each.data for each in cards])),
    ).removesuffix("\n")


def card(points: Sequence[Point], marks: Sequence[Mark], runs: int) -> Card:
    """A series with its changes; of all its `runs`, `points` are the last."""
    low, high = _limits(points)
    seconds = [(point.time - points[0].time).total_seconds() for point in points]
    span = seconds[-1]
    places = [round(each / span * _WIDTH if span else _WIDTH / 2, 1) for each in seconds]

    def heights(values: Iterable[float]) -> list[float]:
        room = (_BOTTOM - _TOP) / (high - low)
        return [round(_BOTTOM - (value - low) * room, 1) for value in values]

    medians = [median_of(point) for point in points]
    levels = heights(medians)
    tops, feet = (heights(end(point.block_medians) for point in points) for end in (max, min))
    before, after = medians[:-_LATEST], medians[-_LATEST:]
    slowdown = statistics.median(after) / statistics.median(before) - 1 if before else 0.0
    return Card(
        points,
        marks,
        runs,
        slowdown,
        low,
        high,
        tuple(zip(places, levels, map(_tip, points), strict=True)),
        _path(places, levels),
        _path([*places, *reversed(places)], [*tops, *reversed(feet)]) + "Z",
    )


def _path(places: Iterable[float], heights: Iterable[float]) -> str:
    return "M" + "L".join(f"{x:g},{y:g}" for x, y in zip(places, heights, strict=True))


def _tip(point: Point) -> str:
    commit = short_commit(point.commit)
    words = (f"{point.time:%Y-%m-%d %H:%M}", number(median_of(point), "s"), commit)
    return " · ".join(filter(None, words))


def _limits(points: Sequence[Point]) -> tuple[float, float]:
    low = min(min(point.block_medians) for point in points)
    high = max(max(point.block_medians) for point in points)
    middle, width = (low + high) / 2, max(high - low, _LEAST_RANGE * (low + high) / 2)
    return max(0.0, middle - width / 2), middle + width / 2
