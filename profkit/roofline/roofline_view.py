"""Rooflines as numbers: roofs with their ridges, points by kernel, what has none and why."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rich.console import Group, RenderableType
from rich.text import Text

from profkit.report.names import file_name, own_names, told_apart
from profkit.report.resources import PRECISIONS
from profkit.roofline.joins import or_least
from profkit.roofline.roofline import Outside, Point, Roofline
from profkit.roofline.roofs import LEVEL_LABELS, Roof
from profkit.ui.markdown import escape
from profkit.ui.markdown import table_of as markdown_table
from profkit.ui.terminal import console, rendered, table_of
from profkit.ui.text import literal, number, percent, seconds_between, shorten
from profkit.ui.view import Grid

_LONGEST_NAME, _WHOLE_NAME = 22, 60
_DECLARED = "declared"
_UNDER = "The nearest roof, of memory or of arithmetic, is the one that leaves least room above it"
_ATTAINED = (
    "attained: of the lower of its roof and the level's line there; by ncu's times, of those at "
    "the launch's own clock"
)


def rooflines_terminal(rooflines: Sequence[Roofline], *, to_file: bool) -> str:
    """The numbers for a terminal, or as they would stand there when they go to a file."""
    width = console(to_file=to_file).width
    views = [rendered(_view(roofline, width), to_file=to_file) for roofline in rooflines]
    return "\n".join(views)


def rooflines_markdown(rooflines: Sequence[Roofline]) -> str:
    """The numbers in Markdown, without the host."""
    return "\n".join(_markdown(roofline) for roofline in rooflines)


def _view(roofline: Roofline, width: int) -> RenderableType:
    parts: list[RenderableType] = [
        Text(shorten(literal(roofline.title), width), "bold"),
        Text(about(roofline)),
        *(Text(f"! {literal(note)}", "yellow") for note in roofline.notes),
    ]
    parts += [table_of(grid) for grid in _grids(roofline, _LONGEST_NAME)]
    parts += [Text(f"× {line}", "red") for line in flag_lines(roofline)]
    return Group(*parts)


def _markdown(roofline: Roofline) -> str:
    lines = [f"# Roofline of {escape(file_name(roofline.title, with_host=False))}", ""]
    lines += [escape(about(roofline)), *(f"\n> {escape(note)}" for note in roofline.notes)]
    for grid in _grids(roofline, _WHOLE_NAME):
        lines += ["", *markdown_table(grid)]
    lines += [f"\n> × {escape(line)}" for line in flag_lines(roofline)]
    return "\n".join(lines) + "\n"


def about(roofline: Roofline) -> str:
    """The GPU and where its roofs are from: `NVIDIA H200; roofs held, SM 1.980 GHz`."""
    sources = ", ".join(dict.fromkeys(roof.source for roof in roofline.roofs))
    clock = f", SM {number(roofline.sm_clock, 'Hz')}" if "held" in sources else ""
    return literal(f"{roofline.gpu}; roofs {sources or 'unknown'}{clock}")


def flag_lines(roofline: Roofline) -> list[str]:
    """Each point that can't be where it is, and why."""
    return [
        f"{literal(point.name)}, {_level(point)}: {flag}"
        for point in roofline.points
        for flag in point.flags
    ]


def _grids(roofline: Roofline, longest: int) -> Iterable[Grid]:
    if roofline.roofs:
        yield _roofs(roofline.roofs)
    shown = subjects(roofline.points, longest)
    if shown:
        yield _kernels(roofline, shown)
        yield _levels(shown)
    if roofline.outside:
        yield _outside(roofline.outside, longest)


def _roofs(roofs: Sequence[Roof]) -> Grid:
    """Roofs of memory and of arithmetic, the latter with the ridge of each level."""
    memory = [roof for roof in roofs if roof.is_memory]
    rows = []
    for roof in roofs:
        ridges = ["" if roof.is_memory else _bare(roof.rate / line.rate) for line in memory]
        unit = "B/s" if roof.is_memory else rate_unit(roof.key)
        unverified = ", by units" if roof.by_units else "" if roof.verified else ", unverified"
        rows.append((roof.label, number(roof.rate, unit), f"{roof.source}{unverified}", *ridges))
    columns = ("Roof", "Rate", "From", *(f"Ridge {line.label}" for line in memory))
    return Grid("Roofs", columns, tuple(rows), "Ridges in FLOP/B")


def _bare(intensity: float) -> str:
    return number(intensity, "FLOP/B").removesuffix(" FLOP/B")


def rate_unit(key: str) -> str:
    """The unit of a rate: op/s of integers, FLOP/s of all else."""
    return "op/s" if key.endswith("int8") else "FLOP/s"


@dataclass(frozen=True)
class Subject:
    """The points of one kernel and precision, by level, with the twin of its declared work."""

    text: str
    points: tuple[Point, ...]
    twin: Point | None

    @property
    def main(self) -> Point:
        return self.points[0]

    @property
    def tightest(self) -> Point:
        """The point that comes nearest to what it could attain."""
        return max(self.points, key=lambda point: or_least(point.attained))


def subjects(points: Sequence[Point], longest: int) -> list[Subject]:
    """Points by kernel, launch and precision, each with a short name unlike the others."""
    kept: dict[tuple[str, int, str], list[Point]] = {}
    for point in points:
        kept.setdefault((point.name, point.launch, point.precision), []).append(point)
    short = short_names((name for name, _, _ in kept), longest)
    launches = Counter(name for name, _ in {(name, launch) for name, launch, _ in kept})
    precisions = Counter((name, launch) for name, launch, _ in kept)
    found = []
    for (name, launch, precision), own in kept.items():
        text = short[name] + (f" #{launch}" if launches[name] > 1 else "")
        if precisions[name, launch] > 1:
            text += f", {PRECISIONS[precision]}"
        measured = tuple(point for point in own if not point.algorithmic)
        twin = next((point for point in own if point.algorithmic), None)
        if measured:
            found.append(Subject(text, measured, twin))
    return found


def _kernels(roofline: Roofline, shown: Sequence[Subject]) -> Grid:
    rows = []
    for one in shown:
        point, tightest = one.main, one.tightest
        flagged = any(point.flags for point in one.points)
        rate = number(point.rate, rate_unit(point.precision))
        own = _share_of(point.of_roof, point.roof, roofline)
        nearest = "the same"
        if tightest.bound_by != point.roof:
            nearest = _share_of(tightest.attained, tightest.bound_by, roofline)
        nearest += " ×" if flagged else ""
        rows.append((one.text, time_words(point), rate, own, nearest))
    columns = ("Kernel", "Time", "Rate", "Of its roof", "Of the nearest")
    return Grid("Kernels", columns, tuple(rows), _UNDER)


def _levels(shown: Sequence[Subject]) -> Grid:
    """Intensity at each level and the share attained there; the declared intensity beside them."""
    levels = list(dict.fromkeys(point.level for one in shown for point in one.points))
    twins = any(one.twin for one in shown)
    rows = []
    for one in shown:
        by_level = {point.level: point for point in one.points}
        cells = [cell for level in levels for cell in _at_level(by_level.get(level))]
        if twins:
            cells.append(_intensity(one.twin) if one.twin else "")
        rows.append((one.text, *cells))
    heads = [head for level in levels for head in (LEVEL_LABELS[level], "attained")]
    columns = ("FLOP/B at", *heads, *(["declared"] if twins else []))
    return Grid("Intensity", columns, tuple(rows), _ATTAINED)


def _at_level(point: Point | None) -> tuple[str, str]:
    if point is None:
        return "", ""
    return _intensity(point), percent(point.attained) + (" ×" if point.flags else "")


def _intensity(point: Point) -> str:
    flag = " ×" if point.algorithmic and point.flags else ""
    return _bare(point.intensity) + flag


def _level(point: Point) -> str:
    return _DECLARED if point.algorithmic else LEVEL_LABELS[point.level]


def _share_of(share: float, key: str | None, roofline: Roofline) -> str:
    """`17.9% of DRAM`."""
    return f"{percent(share)} of {_label(key, roofline)}"


def _label(key: str | None, roofline: Roofline) -> str:
    roof = roofline.roof(key)
    return roof.label if roof else "unknown"


def _outside(outside: Sequence[Outside], longest: int) -> Grid:
    names = short_names((one.name for one in outside), longest)
    again = {one.name for one in outside if [two.name for two in outside].count(one.name) > 1}
    levels = list(dict.fromkeys(level for one in outside for level in one.memory))
    rows = tuple(
        (
            names[one.name] + (f" #{one.launch}" if one.name in again else ""),
            *(percent(one.memory[level]) for level in levels),
            f"{number(one.seconds, 's')}",
            one.why,
        )
        for one in outside
    )
    columns = ("Kernel", *(f"of {LEVEL_LABELS[level]}" for level in levels), "Time", "Why")
    return Grid("Without a point", columns, rows)


def short_names(names: Iterable[str], width: int) -> dict[str, str]:
    """A short text for each kernel's name, no two alike."""
    own = own_names(dict.fromkeys(names))
    shown = told_apart((literal(text) for text in own.values()), width)
    return {name: shown[literal(text)] for name, text in own.items()}


def time_words(point: Point) -> str:
    """The time of a point: `49.76 µs [49.65, 49.90]` where timed, `47.04 µs by ncu` otherwise."""
    shown = number(point.seconds, "s")
    if not point.timed:
        return f"{shown} by ncu"
    if math.isnan(point.low):
        return f"{shown} timed"
    interval = seconds_between(*point.interval)
    ends, _, unit = interval.rpartition(" ")
    return f"{shown} {ends}" if shown.endswith(f" {unit}") else f"{shown} {interval}"
