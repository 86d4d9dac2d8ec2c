"""The page's charts: numbers for the browser."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from profkit.analysis.source_document import is_idle, steady_rate
from profkit.roofline.roofline_view import rate_unit
from profkit.roofline.roofs import LEVEL_LABELS
from profkit.ui.text import literal, number, percent

if TYPE_CHECKING:
    from profkit.report.phases import KernelTimeline, Track
    from profkit.roofline.roofline import Point, Roofline
    from profkit.roofline.roofs import Roof
    from profkit.timing.latency_format import LatencyFile, Series

Json = dict[str, object]

MOST_SAMPLES = 600
"""Samples of a track; of more, means of adjacent ones are drawn. Chosen: about two pixels each."""

_DIGITS = 5  # significant; chosen: more than a chart of 1000 pixels can show


def roofline_chart(roofline: Roofline, short: Mapping[str, str]) -> Json | None:
    """Roofs and points; None where no kernel has a point."""
    if not roofline.points:
        return None
    return {
        "roofs": [_roof(roof) for roof in roofline.roofs],
        "points": [_point(point, roofline, short) for point in roofline.points],
    }


def _roof(roof: Roof) -> Json:
    unit = "B/s" if roof.is_memory else rate_unit(roof.key)
    return {
        "key": roof.key,
        "label": literal(roof.label),
        "rate": _rounded(roof.rate),
        "memory": roof.is_memory,
        "text": f"{literal(roof.label)} {number(roof.rate, unit)}",
    }


def _point(point: Point, roofline: Roofline, short: Mapping[str, str]) -> Json:
    name = literal(point.name)
    return {
        "name": short.get(name, name),
        "full": name,
        "launch": point.launch,
        "level": point.level,
        "precision": point.precision,
        "x": _rounded(point.intensity),
        "y": _rounded(point.rate),
        "low": _rounded(point.low),
        "high": _rounded(point.high),
        "share": _rounded(point.share),
        "algorithmic": point.algorithmic,
        "flags": [literal(flag) for flag in point.flags],
        "roof": point.roof,
        "facts": [list(pair) for pair in _facts(point, roofline)],
    }


def _facts(point: Point, roofline: Roofline) -> Iterable[tuple[str, str]]:
    """The tooltip of a point: labels and values."""
    unit = rate_unit(point.precision)
    roof = roofline.roof(point.roof)
    kind = "algorithmic intensity (declared work)"
    if not point.algorithmic:
        kind = f"arithmetic intensity ({LEVEL_LABELS[point.level]} traffic)"
    yield kind, number(point.intensity, "FLOP/B")
    yield "performance", number(point.rate, unit)
    if point.low < point.high:
        low, high = (number(end, unit) for end in (point.low, point.high))
        yield "confidence interval", f"{low} to {high}"
    limit = LEVEL_LABELS.get(point.bound_by or "", "compute")
    lower = f" (lower roof here: {limit})" if point.bound_by else ""
    yield "share of attainable performance", f"{percent(point.attained)}{lower}"
    yield "compute roof", literal(roof.label) if roof else literal(point.roof)
    yield ("timed median" if point.timed else "duration under ncu"), number(point.seconds, "s")
    yield "share of the report's GPU time", percent(point.share)
    for flag in point.flags:
        yield "impossible", literal(flag)


def levels(roofline: Roofline) -> list[tuple[str, str]]:
    """The memory levels of all points, with their names."""
    used = {point.level for point in roofline.points}
    return [(level, label) for level, label in LEVEL_LABELS.items() if level in used]


def precisions(roofline: Roofline) -> list[tuple[str, str]]:
    """The precisions of all points, with their names."""
    labels = {roof.key: roof.label for roof in roofline.roofs}
    used = dict.fromkeys(point.precision for point in roofline.points)
    return [(key, labels.get(key, key)) for key in used]


def timeline_chart(timeline: KernelTimeline) -> Json:
    """The tracks of a kernel's duration and its phases; seconds since its start.

    Several tracks share a list of `times`: a track has the index of its list.
    """
    times: list[list[float | None]] = []
    tracks = []
    for track in working(timeline):
        starts, values = _samples(track)
        if starts not in times:
            times.append(starts)
        tracks.append(
            {
                "name": track.name,
                "label": literal(track.label),
                "share": track.unit == "1",
                "steady": _rounded(track.steady),
                "t": times.index(starts),
                "v": values,
            }
        )
    return {
        "end": _rounded(timeline.end),
        "driver": timeline.driver,
        "times": times,
        "tracks": tracks,
        "phases": [
            {"name": phase.name, "start": _rounded(phase.start), "end": _rounded(phase.end)}
            for phase in timeline.phases
        ],
    }


def working(timeline: KernelTimeline) -> list[Track]:
    """The tracks with activity; all tracks where there is none on any."""
    active = [track for track in timeline.tracks if not is_idle(track)]
    return active or list(timeline.tracks)


def _samples(track: Track) -> tuple[list[float | None], list[float | None]]:
    """Times and values, means of adjacent samples where there are more than a screen can show."""
    import numpy as np

    times, values = np.asarray(track.times), np.asarray(track.values)
    step = math.ceil(len(values) / MOST_SAMPLES)
    if step > 1:
        whole = len(values) // step * step
        times = times[:whole:step]
        values = values[:whole].reshape(-1, step).mean(axis=1)
    return [_rounded(time) for time in times], [_rounded(value, 3) for value in values]


def steady_rates(timeline: KernelTimeline) -> list[tuple[str, str]]:
    """Every track's median over the steady phase, but of counts."""
    rates = ((track.label, steady_rate(timeline, track)) for track in timeline.tracks)
    return [(label, rate) for label, rate in rates if rate]


def latency_chart(report: LatencyFile) -> Json:
    """Every sample of every variant in seconds, in time order."""
    return {"series": [_series(timed) for timed in report.series]}


def _series(timed: Series) -> Json:
    interval = timed.interval
    return {
        "label": literal(timed.label),
        "samples": [_rounded(value, 6) for value in timed.latency.samples],
        "median": timed.summary.median,
        "low": interval.low if interval else None,
        "high": interval.high if interval else None,
        "level": f"{interval.level:.0%}" if interval and interval.level is not None else None,
    }


def _rounded(value: float, digits: int = _DIGITS) -> float | None:
    """A number with as many digits as a chart can show; None for NaN and infinity."""
    value = float(value)
    if not math.isfinite(value):
        return None
    return float(f"{value:.{digits}g}")
