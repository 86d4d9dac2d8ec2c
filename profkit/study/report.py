"""The content of a baseline's report: its cells, their faults, profiles, a ladder."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec.structs import replace

from profkit.analysis.run_files import LATENCY, SUFFIXES, one_report
from profkit.audit.audit import Outcome
from profkit.capture.backends import SHIPPED
from profkit.comparison.comparison import Diff
from profkit.core.errors import BadInput, ProfkitError
from profkit.core.text_files import MissingFile
from profkit.core.typed_file import part, read_file
from profkit.rules.checklist import Checklist
from profkit.rules.finding import Finding
from profkit.study.folder import SUMMARY, read_cells
from profkit.study.plan_format import ProfiledCell
from profkit.study.published import PublishedPair, published_pairs, wrong_claims
from profkit.study.summary import THRESHOLDS, top_rows
from profkit.study.summary_format import GAPS, BaselineFile, Row
from profkit.timing.cell import Source
from profkit.timing.latency import analyze_latency, compare_with
from profkit.timing.latency_file import read_latencies
from profkit.timing.latency_format import Pair
from profkit.timing.results import Reason, State, Summary
from profkit.timing.statistics import CLAIMABLE_SPEEDUP, DRIFT_MATTERS, summarize

if TYPE_CHECKING:
    from profkit.analysis.report import Report as LoadedReport

_REMEDY = "derive it again: profkit baseline run ... --resume, or import it again"
_FAULTS: Mapping[str, Callable[[Row], Any]] = {
    "claimed": lambda row: row.claim == "holds",
    "within": lambda row: row.claim in {"within run", "widened"},
    "gapped": lambda row: row.claim == GAPS,
    "refused": lambda row: row.refused,
    "correlated": lambda row: Reason.AUTOCORRELATED.value in row.dependence,
    "drifting": lambda row: Reason.DRIFTING.value in row.dependence,
    "unsteady": lambda row: (
        row.independence == State.UNKNOWN.value and abs(row.drift or 0.0) >= DRIFT_MATTERS
    ),
    "started_up": lambda row: row.startup,
    "ticked": lambda row: row.tick,
    "empty": lambda row: row.empty,
    "throttled": lambda row: row.throttled,
    "capped": lambda row: any("power" in reason for reason in row.throttled),
    "launch_bound": lambda row: row.launch_bound,
    "late_submitted": lambda row: row.late_submitted,
    "unready": lambda row: row.steady is False,
    "clocked": lambda row: row.sm_clock,
    "read": lambda row: row.clock_is_read,
}


class Goal(NamedTuple):
    """The thresholds for claiming that a change is faster than a cell.

    Its median is at most `median` (s), its interval ends below `below` (s; None where the cell has
    no valid interval, so that nothing can be claimed over it).
    """

    row: Row
    median: float
    below: float | None


class Profile(NamedTuple):
    """A cell that was profiled: its report's headline and checklist, or why there is none."""

    id: str
    headline: str
    checklist: Checklist | None
    reason: str


class Step(NamedTuple):
    """A change in a ladder of interleaved variants: `pair.b` after `pair.a`.

    `aim` is the first finding on the variant before, `limit` that on the one after; None where its
    profile has none or there is no profile, which `profiled` tells of both. `evidence` is what
    changed between the profiles, kernels matched in the order in which they ran.
    """

    pair: Pair
    aim: Finding | None
    limit: Finding | None
    profiled: tuple[bool, bool]
    evidence: Diff | None = None


class Standing(NamedTuple):
    """At how many shapes a backend is the fastest, or several are tied.

    `backends` are tied kernels by name, or the one that is the fastest. `chosen_by` counts other
    backends that dispatched to it.
    """

    backends: tuple[str, ...]
    shapes: int
    chosen_by: Mapping[str, int]

    @property
    def tied(self) -> bool:
        return len(self.backends) > 1


@dataclass(frozen=True)
class Report:
    """A baseline and the further content of its report.

    `statistics` are those of the cells' samples, `sources` their imported files, by cell. `faults`
    are the timed cells that have each. `goals` are for the top cells. `claims` are wrong published
    ones. `price` is of a GPU hour, `cost` that of the measurement; None where unknown.
    """

    summary: BaselineFile
    statistics: Mapping[str, Summary]
    sources: Mapping[str, Source]
    faults: Mapping[str, Sequence[Row]]
    goals: tuple[Goal, ...]
    published: tuple[PublishedPair, ...]
    claims: tuple[Outcome, ...]
    profiles: tuple[Profile, ...]
    steps: tuple[Step, ...]
    ladder: str
    price: float | None
    cost: float | None

    @property
    def timed(self) -> tuple[Row, ...]:
        """Cells with a time."""
        return tuple(row for row in self.summary.cells if row.is_timed)

    def fastest(self) -> tuple[Row, ...]:
        """The fastest cell of each shape, in the order of the shapes."""
        ids = {best.id for best in self.summary.best if best.kind == "backend"}
        return tuple(row for row in self.summary.cells if row.id in ids)

    def standings(self) -> tuple[Standing, ...]:
        """The backends that are the fastest somewhere, alone before tied, the most often first.

        One that dispatches to another runs the other's kernel: their difference is noise.
        """
        won: dict[tuple[str, ...], list[Row]] = {}
        for row in self.fastest():
            kernels = {cell.chosen or cell.backend for cell in (row, *self.tied(row))}
            won.setdefault(tuple(sorted(kernels)), []).append(row)
        standings = [
            Standing(names, len(rows), Counter(row.backend for row in rows if row.chosen))
            for names, rows in won.items()
        ]
        return tuple(sorted(standings, key=lambda standing: (standing.tied, -standing.shapes)))

    def tied(self, row: Row) -> tuple[Row, ...]:
        """The cells that are tied with the best of its kind."""
        ids = {name for best in self.summary.best if best.id == row.id
               for name in best.tied if best.kind == "backend"}  # fmt: skip
        return tuple(cell for cell in self.summary.cells if cell.id in ids)


def gather(folder: Path, *, price: float | None = None, ladder: Path | None = None) -> Report:
    """The content of the report of the baseline in `folder`, derived from its cells.

    `price` is of a GPU hour; `ladder` is a recording of interleaved variants. Raises
    BadInput for a folder without a baseline or any cell with latencies.
    """
    summary, cells = _summary(folder), read_cells(folder)
    if not any(cell.latency for cell in cells):
        packed = next(iter(sorted(folder.glob("cells.tar*"))), None)
        raise BadInput(
            f"{folder}: no cell has latencies, so there is nothing to report",
            f"unpack {packed.name} there" if packed else f"profkit baseline status {folder}",
        )
    rows, sheet, seconds = summary.cells, summary.datasheet, summary.seconds
    pairs = published_pairs(rows, sheet.name if sheet else None, summary.gpu)
    return Report(
        summary=summary,
        statistics={cell.id: summarize(cell.latency.samples) for cell in cells if cell.latency},
        sources={cell.id: cell.source for cell in cells if cell.source},
        faults=faults(rows),
        goals=tuple(goal(row) for row in top_rows(rows)),
        published=pairs,
        claims=wrong_claims(pairs),
        profiles=tuple(_profile(folder, profile) for profile in summary.profiles),
        steps=_steps(ladder, {backend.name for backend in summary.backends}) if ladder else (),
        ladder=ladder.name if ladder else "",
        price=price,
        cost=seconds / 3600 * price if price is not None and seconds else None,
    )


def _summary(folder: Path) -> BaselineFile:
    """The summary of the cells, with the time and the version of the saved one, if any."""
    from profkit.study.run import derived_summary

    try:
        saved = read_file(folder / SUMMARY, BaselineFile, _REMEDY)
    except MissingFile:
        return derived_summary(folder)
    # The cells don't know the A/A floor that the verdicts were held against. Every margin is at
    # least the floor, so that it is the least of them, where it counted at all.
    margins = [pair.margin for pair in saved.comparisons if pair.margin is not None]
    derived = derived_summary(folder, min(margins, default=None))
    return replace(derived, **part(saved, "created", "profkit"))


def faults(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """The timed cells of a baseline by properties and faults of their samples."""
    timed = [row for row in rows if row.is_timed]
    return {name: [row for row in timed if has(row)] for name, has in _FAULTS.items()}


def goal(row: Row) -> Goal:
    """The goal over a timed cell: the classic rule of `profkit.timing.statistics.Classic`.

    The interval must lie below the cell's, so its median must too where the cell's interval is
    wider than the speed-up asked for. Raises ValueError for a cell without a time.
    """
    if row.seconds is None:
        raise ValueError(f"{row.id} has no time")
    median = row.seconds / CLAIMABLE_SPEEDUP
    low = None if row.claim == GAPS else row.low
    return Goal(row, median if low is None else min(median, low), low)


def _profile(folder: Path, profiled: ProfiledCell) -> Profile:
    """A profiled cell with its checklist; why not, where its report can't be read."""
    from profkit.analysis.report import load
    from profkit.report.overview import headline

    if not profiled.folder:
        return Profile(profiled.id, "", None, profiled.reason)
    try:
        report = load(one_report(folder / profiled.folder))
        return Profile(profiled.id, headline(report.summary), report.checklist(blamed=0), "")
    except ProfkitError as error:
        return Profile(profiled.id, "", None, error.message.replace(f"{folder}/", ""))


def _steps(ladder: Path, backends: set[str]) -> tuple[Step, ...]:
    """Each variant of a recording against the previous one; its reference and backends are left
    out."""
    from profkit.comparison.reports import diff

    _, *latencies = read_latencies(ladder / LATENCY).latencies
    known = backends | {backend.name for backend in SHIPPED}
    rungs = [analyze_latency(latency) for latency in latencies if latency.label not in known]
    reports = [_report(ladder, rung.label) for rung in rungs]
    aims = [
        next(iter(report.checklist(blamed=0).findings), None) if report else None
        for report in reports
    ]
    steps = []
    for (before, rung), (after, other) in pairwise(enumerate(rungs)):
        (pair,) = compare_with(rung, [other], thresholds=THRESHOLDS)
        reference, report = reports[before], reports[after]
        evidence = (
            diff(reference, report, match="order", force=True) if reference and report else None
        )
        profiled = reference is not None, report is not None
        steps.append(Step(pair, aims[before], aims[after], profiled, evidence))
    return tuple(steps)


def _report(ladder: Path, variant: str) -> LoadedReport | None:
    """A variant's report in a recording."""
    from profkit.analysis.report import load

    files = (ladder / f"{variant}{suffix}" for suffix in SUFFIXES)
    return next((load(file) for file in files if file.is_file()), None)
