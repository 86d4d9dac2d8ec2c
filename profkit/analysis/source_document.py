"""A kernel over time and by source line: `profkit.source/1` and its document."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct, structs

from profkit.analysis.source_view import Counts, SourceView, added
from profkit.core.typed_file import Count, Model, Output, Real
from profkit.core.version import __version__
from profkit.report import panels
from profkit.report.names import file_name
from profkit.report.phases import HALF, KernelTimeline, Track
from profkit.report.source_lines import Code
from profkit.report.summary import NOT_STALLED, LaunchSummary, ReportSummary
from profkit.rules import finding_text as words
from profkit.rules.checklist import Checklist
from profkit.rules.checklist_format import FindingRow, finding_row
from profkit.rules.checklist_view import findings_in_short
from profkit.ui import document as doc
from profkit.ui.text import compact, cut, number, percent, plural, shorten

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_LEVELS = "▁▂▃▄▅▆▇█"
_IDLE_BELOW = 0.01  # share of the peak, chosen: a sparkline of less shows nothing but noise
_COUNTED = "block"
_BESIDE = 52  # columns beside sparklines, chosen: they have half of 100
_TEXT = 120  # characters of a line of source, chosen: two lines beside its place and its share
_WIDEST_PLACE = 32  # characters, chosen: most file names with a line number
_WAIT_FROM = 0.01  # share of a line's samples, chosen: less is noise of a few samples
_OTHERS_NAMED = 3  # chosen: their names fit two lines at 100 columns
_LONGEST_NAME = 40  # characters, chosen: most function names without arguments
_STALLS_SHOWN = 2  # chosen: they and the counts fit one line at 100 columns
_UNSAMPLED = "No PM samples: record with `ncu --section PmSampling`"
_UNCOUNTED = "No per-instruction data: record with `ncu --section SourceCounters`"


class Inside(Struct, frozen=True):
    """A launch over time and by source line, with its code; None for what was not recorded."""

    launch: LaunchSummary
    timeline: KernelTimeline | None
    view: SourceView | None
    code: Code | None


class SourceReport(Model, frozen=True):
    """The report's file name."""

    file: str


class LaunchRow(Model, frozen=True):
    """The launch, and ncu's duration of it."""

    launch: Count
    name: str
    duration_s: Real


class SourceViewFile(Output, frozen=True, kw_only=True, tag="profkit.source/1"):
    """A kernel over time (PM samples), and its source lines and SASS instructions.

    Numbers are in SI units, shares are fractions of 1; null is not recorded, or unknown. `findings`
    are the checklist's on this kernel.
    """

    profkit: str
    report: SourceReport
    kernel: LaunchRow
    timeline: KernelTimeline | None
    source: SourceView | None
    findings: tuple[FindingRow, ...]


def source_result(report: ReportSummary, inside: Inside, checklist: Checklist) -> SourceViewFile:
    """A launch's timeline, lines, instructions and the findings on its kernel."""
    launch, view = inside.launch, inside.view
    group = next(group for group in report.groups if launch in group.launches)
    return SourceViewFile(
        profkit=__version__,
        report=SourceReport(file_name(report.path, with_host=False)),
        kernel=LaunchRow(launch.index, launch.name, launch.duration),
        timeline=inside.timeline,
        source=_shared(view) if view else None,
        findings=tuple(finding_row(item, FindingRow) for item in checklist.findings_on(group)),
    )


def _shared(view: SourceView) -> SourceView:
    """Files by name without directories; only lines with instructions."""
    files = (
        structs.replace(
            file,
            file=file_name(file.file, with_host=False),
            lines=tuple(line for line in file.lines if line.instructions),
        )
        for file in view.files
    )
    instructions = (
        structs.replace(row, file=file_name(row.file, with_host=False) if row.file else None)
        for row in view.instructions
    )
    return structs.replace(view, files=tuple(files), instructions=tuple(instructions))


def source_document(
    report: ReportSummary, inside: Inside, checklist: Checklist, *, top: int, sass: bool, width: int
) -> doc.Document:
    """A kernel's PM samples, its `top` hottest lines (0: all), and the findings at them.

    `sass` lists instructions instead of source lines; sparklines are made for a `width`.
    """
    launch, view, others = inside.launch, inside.view, report.groups[1:]
    blocks: list[doc.Block] = [
        doc.Heading(report.path, 1),
        doc.Lines((doc.strong(shorten(launch.name, 2 * width)), panels.title(launch))),
        *map(doc.Note, launch.warnings),
        *(_phases(inside.timeline, width) if inside.timeline else [_remark(_UNSAMPLED)]),
    ]
    if view is None or inside.code is None:
        blocks.append(_remark(_UNCOUNTED))
    else:
        spots = hottest(view, inside.code, sass=sass)
        shown = spots[: top or None]
        findings = [
            item
            for item in checklist.items
            if item.group and launch.index in item.group.indexes and not item.facet_of
        ]
        titles = {item.rank: item.title for item in findings}
        blocks.append(_listing(view, len(spots), shown, titles, sass=sass))
        ranks = {rank for spot in shown for rank in spot.findings}
        if located := [item for item in findings if item.rank in ranks]:
            where = "lines" if view.files and not sass else "instructions"
            blocks.append(doc.Heading(f"Findings at these {where}", note=words.legend(checklist)))
            blocks += findings_in_short(located)
    if others:
        kind = "selected kernel" if len(report.launches) < report.recorded else "kernel"
        names = [group.short_name(_LONGEST_NAME, others) for group in others[:_OTHERS_NAMED]]
        rest = ", ..." if len(others) > _OTHERS_NAMED else ""
        more = f"{plural(len(others), f'more {kind}')}: {', '.join(names)}{rest}"
        blocks.append(_remark(f"{more}; --kernel REGEX selects one"))
    return doc.Document(report.path, tuple(blocks))


def _remark(text: str) -> doc.Lines:
    return doc.Lines((doc.quiet(text),), gap=True)


def _phases(timeline: KernelTimeline, width: int) -> Iterator[doc.Block]:
    """The tracks as sparklines, each from 0 to its own peak, under a rule of the phases."""
    longest = max((len(track.values) for track in timeline.tracks), default=0)
    cells = min(width - _BESIDE, longest)
    rows = tuple(
        (
            track.label + (" *" if track.name == timeline.driver else ""),
            sparkline(track.values, cells, counted=track.unit == _COUNTED),
            steady_rate(timeline, track),
            _level(_peak(track), track.unit),
        )
        for track in timeline.tracks
        if not is_idle(track)
    )
    steady = "steady" if timeline.phases else ""
    columns = ("% of peak", _rule(timeline, cells), steady, "highest")
    yield doc.Heading(
        "PM sampling", note=f"{_lengths(timeline)}; each row is scaled to its own maximum"
    )
    yield doc.Table("", columns, rows, words=2)
    yield doc.Lines(tuple(map(doc.quiet, _words(timeline))))


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
        below = percent(timeline.below_half)
    if driver := timeline.track(timeline.driver):
        half = _level(HALF * driver.steady, driver.unit)
        yield (
            f"* phases from {driver.label}: below {half}, half its steady rate, in {below} "
            "of the samples"
        )
    if idle := ", ".join(track.label for track in timeline.tracks if is_idle(track)):
        yield f"always below {_IDLE_BELOW:.0%}: {idle}"
    yield from timeline.notes


def is_idle(track: Track) -> bool:
    """Whether a track never shows more than noise."""
    return not _peak(track) >= (_IDLE_BELOW if track.unit == "1" else 0)


def _peak(track: Track) -> float:
    return max((value for value in track.values if math.isfinite(value)), default=math.nan)


def steady_rate(timeline: KernelTimeline, track: Track) -> str:
    """The steady rate; none for counts: most intervals of most kernels launch no block."""
    if not timeline.phases or track.unit == _COUNTED:
        return ""
    return _level(track.steady, track.unit)


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


def hottest(view: SourceView, code: Code, *, sass: bool = False) -> list[Spot]:
    """The lines with samples or executions, most samples first (without samples, most executed).

    Instructions where no lines are known or with `sass`; in a kernel with lines, all instructions
    without one are a single spot.
    """
    if sass or not view.files:
        spots = []
        for row in view.instructions:
            place = f"{Path(row.file or '').name}:{row.line} " if row.line else ""
            where = f"{place}{code.offset(row.address)}"
            spots.append(Spot(where, code.relative(row.sass or ""), row, row.findings))
    else:
        spots = [
            Spot(
                f"{Path(file.file).name}:{line.line}",
                " ".join((line.text or "").split()),
                line,
                line.findings,
            )
            for file in view.files
            for line in file.lines
        ]
        if rest := [row for row in view.instructions if not row.line]:
            spots.append(Spot("no source line", "", added(rest), ()))
    return sorted((spot for spot in spots if _weight(spot)[0] < 0), key=_weight)


def _weight(spot: Spot) -> tuple[float, float, str]:
    samples, executed = spot.counts.samples, spot.counts.executed
    if math.isnan(samples):
        return -executed, 0.0, spot.where
    return -samples, -executed, spot.where


def _listing(
    view: SourceView, count: int, shown: Sequence[Spot], titles: Mapping[int, str], *, sass: bool
) -> doc.Facts:
    total = view.total
    kind = "lines" if view.files and not sass else "instructions"
    order = "by executed instructions"
    if not math.isnan(total.samples):
        order = f"by share of {plural(int(total.samples), 'warp sample')}"
    live = "live registers unknown"
    if not math.isnan(total.live):
        live = f"at most {plural(int(total.live), 'live register')}"
    rows = []
    for spot in shown:
        share = _share(spot.counts, total)
        lines = filter(None, (cut(spot.text, _TEXT), "; ".join(facts(spot, titles))))
        where = shorten(spot.where, _WIDEST_PLACE)
        rows.append(doc.Row(where, percent(share), "\n".join(lines), share))
    title = f"Hottest {kind}: {len(shown):,} of {count:,} {order}; {live}"
    return doc.Facts(title, tuple(rows), "\n".join(view.notes), wide=True)


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
        yield plural(int(counts.live), "live register")
    yield from (titles[rank] for rank in spot.findings)
