"""A kernel in the terminal: PM samples as sparklines, and its hottest lines."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from profkit.analysis.source_view import Counts, Inside, SourceView, added
from profkit.report import panels
from profkit.report.names import function_name, told_apart
from profkit.report.phases import HALF, KernelTimeline, Track
from profkit.report.summary import NOT_STALLED, LaunchSummary, ReportSummary
from profkit.rules.checklist import Checklist
from profkit.rules.checklist_view import findings_at_lines
from profkit.rules.finding import Finding
from profkit.ui.terminal import DocumentView, note
from profkit.ui.text import bar, compact, cut, literal, number, percent, plural, shorten

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_LEVELS = "▁▂▃▄▅▆▇█"
_IDLE_BELOW = 0.01  # share of the peak, chosen: a sparkline of less shows nothing but noise
_COUNTED = "block"
# Columns of characters, chosen: they leave half of 100 for sparklines and source text.
_LABEL, _FIGURES = 24, 28
_SHARE, _BAR, _GAP = 6, 6, 2
_WIDEST_PLACE = 32  # characters, chosen: most file names with a line number
_WAIT_FROM = 0.01  # share of a line's samples, chosen: less is noise of a few samples
_OTHERS_NAMED = 3  # chosen: their names fit two lines at 100 columns
_LONGEST_NAME = 40  # characters, chosen: most function names without arguments
_STALLS_SHOWN = 2  # chosen: they and the counts fit one line at 100 columns
_UNSAMPLED = "No PM samples: record with `ncu --section PmSampling`"
_UNCOUNTED = "No per-instruction data: record with `ncu --section SourceCounters`"


def inside_view(
    report: ReportSummary, inside: Inside, checklist: Checklist, *, top: int, sass: bool, width: int
) -> RenderableType:
    """A kernel's PM samples, its `top` hottest lines (0: all), and the findings at them.

    `sass` lists instructions instead of source lines.
    """
    launch, view = inside.launch, inside.view
    name = literal(launch.name)
    life = timeline_parts(inside.timeline, width) if inside.timeline else [Text(_UNSAMPLED, "dim")]
    parts: list[RenderableType] = [
        Text(shorten(literal(report.path), width), "bold"),
        Text(told_apart([name], width)[name], "bold"),
        Text(panels.title(launch)),
        *map(note, launch.warnings),
        Text(),
        *life,
        Text(),
    ]
    if view is None:
        parts.append(Text(_UNCOUNTED, "dim"))
    else:
        spots = hottest(view, sass=sass)
        shown = spots[: top or None]
        every = list(_items_on(launch, checklist))
        titles = {item.rank: item.title for item in every}
        parts += _listing(view, len(spots), shown, width, titles, sass=sass)
        ranks = {rank for spot in shown for rank in spot.findings}
        items = [item for item in every if item.rank in ranks]
        if items:
            where = "lines" if view.files and not sass else "instructions"
            heading = Text(f"Findings at these {where}", "bold")
            below = DocumentView(tuple(findings_at_lines(items, len(report.groups))))
            parts += [Text(), heading, below]
    if others := report.groups[1:]:
        kind = "selected kernel" if len(report.launches) < report.recorded else "kernel"
        names = [function_name(group, _LONGEST_NAME, others) for group in others[:_OTHERS_NAMED]]
        rest = ", ..." if len(others) > _OTHERS_NAMED else ""
        more = f"{plural(len(others), f'more {kind}')}: {', '.join(names)}{rest}"
        parts += [Text(), Text(f"{more}; --kernel REGEX selects one", "dim")]
    return Group(*parts)


def _items_on(launch: LaunchSummary, checklist: Checklist) -> Iterator[Finding]:
    for item in checklist.items:
        if item.group and launch.index in item.group.indexes:
            yield item


def timeline_parts(timeline: KernelTimeline, width: int) -> list[RenderableType]:
    """The tracks as sparklines, each from 0 to its own peak, under a rule of the phases."""
    across = width - _LABEL - _FIGURES
    table = Table.grid(padding=(0, 1))
    table.add_column(no_wrap=True, width=_LABEL - 1)
    table.add_column(no_wrap=True)
    for _ in ("steady", "peak"):
        table.add_column(no_wrap=True, justify="right", width=_FIGURES // 2 - 2)
    heads = (Text("steady" if timeline.phases else "", "dim"), Text("highest", "dim"))
    cells = min(across, max((len(track.values) for track in timeline.tracks), default=0))
    unit = Text("% of peak", "dim")
    table.add_row(unit, Text(_rule(timeline, cells), "dim"), *heads)
    for track in (track for track in timeline.tracks if not _idle(track)):
        mark = " *" if track.name == timeline.driver else ""
        table.add_row(
            Text(f"{track.label}{mark}"),
            Text(sparkline(track.values, cells, counted=track.unit == _COUNTED), "cyan"),
            _steady(timeline, track),
            _level(_peak(track), track.unit),
        )
    return [
        Text.assemble(
            ("PM sampling", "bold"), (f"  {_lengths(timeline)}; each row up to its highest", "dim")
        ),
        table,
        *(Text(line, "dim", overflow="fold") for line in _words(timeline)),
    ]


def sparkline(
    values: Sequence[float] | NDArray[np.float64], cells: int, *, counted: bool = False
) -> str:
    """Values over time in `cells` characters; blank where unknown.

    A full block is the largest single value. A character shows the mean of its values, or the
    largest one where they are `counted`.
    """
    import numpy as np

    every = np.asarray(values, dtype=float)
    mean = np.max if counted else np.mean
    parts = [
        float(mean(known)) if len(known := part[np.isfinite(part)]) else math.nan
        for part in np.array_split(every, max(1, min(cells, len(every))))
    ]
    peak = max((value for value in every if not math.isnan(value)), default=0.0)
    top = len(_LEVELS) - 1
    return "".join(
        " "
        if math.isnan(part)
        else _LEVELS[min(int(part / peak * (top + 1)), top) if peak > 0 else 0]
        for part in parts
    )


def _rule(timeline: KernelTimeline, cells: int) -> str:
    """The phases under a sparkline: prologue, steady state and tail."""
    if not timeline.phases:
        return ""
    steady = next(phase for phase in timeline.phases if phase.name == "steady")
    first, past = (round(end / timeline.end * cells) for end in (steady.start, steady.end))
    return "." * first + "─" * (past - first) + "." * (cells - past)


def _lengths(timeline: KernelTimeline) -> str:
    samples = max((len(track.values) for track in timeline.tracks), default=0)
    every = timeline.end / samples if samples else timeline.period
    duration = number(timeline.duration, "s")
    apart = f"{plural(samples, 'sample')} every {number(every, 's')}"
    return f"{apart}, {number(timeline.end, 's')}; ncu's duration {duration}"


def _words(timeline: KernelTimeline) -> Iterator[str]:
    if timeline.phases:
        parts = (
            f"{phase.name} {number(phase.seconds, 's')} ({percent(timeline.share(phase.name))})"
            for phase in timeline.phases
        )
        yield f"─ steady state, . prologue and tail: {', '.join(parts)}"
        driver = next(track for track in timeline.tracks if track.name == timeline.driver)
        half = _level(HALF * timeline.steady[driver.name], driver.unit)
        below = percent(timeline.below_half)
        yield (
            f"* phases from {driver.label}: below {half}, half its steady rate, in {below} "
            "of the samples"
        )
    if idle := ", ".join(track.label for track in timeline.tracks if _idle(track)):
        yield f"always below {_IDLE_BELOW:.0%}: {idle}"
    yield from timeline.notes


def _idle(track: Track) -> bool:
    return not _peak(track) >= (_IDLE_BELOW if track.unit == "1" else 0)


def _peak(track: Track) -> float:
    import numpy as np

    known = track.values[np.isfinite(track.values)]
    return float(np.max(known)) if len(known) else math.nan


def _steady(timeline: KernelTimeline, track: Track) -> str:
    """The steady rate; none for counts: most intervals of most kernels launch no block."""
    if not timeline.phases or track.unit == _COUNTED:
        return ""
    return _level(timeline.steady.get(track.name, math.nan), track.unit)


def _level(value: float, unit: str) -> str:
    if unit == "1":
        return percent(value)
    if math.isnan(value):
        return "n/a"
    return f"{value:,.0f}" if unit == _COUNTED else f"{value:.3g}"


class Spot(NamedTuple):
    """A line or instruction: location, text, counts, and ranks of the findings at it."""

    where: str
    text: str
    counts: Counts
    findings: tuple[int, ...]


def hottest(view: SourceView, *, sass: bool = False) -> list[Spot]:
    """The lines with samples or executions, most samples first (without samples, most executed).

    Instructions where no lines are known or with `sass`; in a kernel with lines, all instructions
    without one are a single spot.
    """
    if sass or not view.files:
        spots = []
        for row in view.instructions:
            place = f"{literal(Path(row.file).name)}:{row.line} " if row.line else ""
            text = literal(view.code.relative(row.sass))
            where = f"{place}{view.code.offset(row.address)}"
            spots.append(Spot(where, text, row.counts, row.findings))
    else:
        spots = [
            Spot(
                f"{literal(Path(file.name).name)}:{line.line}",
                literal(" ".join(line.text.split())),
                line.counts,
                line.findings,
            )
            for file in view.files
            for line in file.lines
        ]
        if rest := [row.counts for row in view.instructions if not row.line]:
            spots.append(Spot("no source line", "", added(rest), ()))
    return sorted((spot for spot in spots if _weight(spot)[0] < 0), key=_weight)


def _weight(spot: Spot) -> tuple[float, float, str]:
    samples, executed = spot.counts.samples, spot.counts.executed
    if math.isnan(samples):
        return -executed, 0.0, spot.where
    return -samples, -executed, spot.where


def _listing(
    view: SourceView,
    count: int,
    shown: Sequence[Spot],
    width: int,
    titles: Mapping[int, str],
    *,
    sass: bool,
) -> Iterator[RenderableType]:
    total = view.total
    kind = "lines" if view.files and not sass else "instructions"
    order = "by executed instructions"
    if not math.isnan(total.samples):
        order = f"by share of {plural(int(total.samples), 'warp sample')}"
    live = "live registers unknown"
    if not math.isnan(total.live):
        live = f"at most {plural(int(total.live), 'live register')}"
    summary = f"  {len(shown):,} of {count:,} {order}; {live}"
    yield Text.assemble((f"Hottest {kind}", "bold"), (summary, "dim"))
    wheres = [shorten(spot.where, _WIDEST_PLACE) for spot in shown]
    room = width - _SHARE - _BAR - max(map(len, wheres), default=0) - 3 * _GAP
    table = Table.grid(padding=(0, _GAP, 0, 0))
    table.add_column(justify="right", no_wrap=True, width=_SHARE)
    table.add_column(width=_BAR, no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold", width=room)
    for where, spot in zip(wheres, shown, strict=True):
        share = _share(spot.counts, total)
        text = Text(cut(spot.text, room))
        table.add_row(percent(share), Text(bar(share, _BAR), "cyan"), Text(where), text)
        table.add_row("", "", "", Text("; ".join(facts(spot, titles)), "dim"))
    yield table
    for remark in view.notes:
        yield Text(remark, "dim")


def _share(counts: Counts, total: Counts) -> float:
    """Share of all samples, without samples of all executed instructions."""
    part, whole = counts.samples, total.samples
    if math.isnan(whole):
        part, whole = counts.executed, total.executed
    return part / whole if whole else math.nan


def facts(spot: Spot, titles: Mapping[int, str]) -> Iterator[str]:
    """The counts of a spot as text; stalls as shares of its samples; findings by their `titles`."""
    counts = spot.counts
    waits = {why: value for why, value in counts.stalls.items() if why not in NOT_STALLED}
    largest = sorted(waits.items(), key=lambda item: -item[1])[:_STALLS_SHOWN]
    if waiting := ", ".join(
        f"{why} {value / counts.samples:.0%}"
        for why, value in largest
        if value >= _WAIT_FROM * counts.samples
    ):
        yield waiting
    if counts.executed:
        yield f"{compact(counts.executed)} warp instructions executed"
    if counts.shared_excess > 0:
        yield f"{compact(counts.shared_excess)} excess shared wavefronts"
    if counts.global_excess > 0:
        yield f"{compact(counts.global_excess)} excess sectors"
    if counts.live > 0:
        yield f"{counts.live:.0f} live regs"
    yield from (titles[rank] for rank in spot.findings)
