"""Gathers what the written report of a baseline tells: from its folder, its profiles, a ladder."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import structs

from profkit.analysis.run_files import LATENCY, SUFFIXES, one_report
from profkit.capture.backends import SHIPPED
from profkit.comparison.comparison import Diff
from profkit.core.errors import BadInput, ProfkitError
from profkit.core.fingerprint import Device
from profkit.core.text_files import MissingFile, read_json
from profkit.core.typed_file import part, plain, read_file
from profkit.report.floors import floors
from profkit.rules.checklist import Item
from profkit.study.evidence import cost, evidence, goal, same_kernel, top_rows
from profkit.study.folder import SUMMARY, read_again, read_cells
from profkit.study.json import BaselineFile, derived
from profkit.study.plan_format import ProfiledCell
from profkit.study.published import against_published, wrong_claims
from profkit.study.report_model import Profiled, Step, Written
from profkit.study.summary import THRESHOLDS, Baseline, Row, derive
from profkit.timing.cell import MISSING, Cell, CellStatus
from profkit.timing.latency import analyze_latency, compare_with
from profkit.timing.latency_file import read_latencies
from profkit.timing.statistics import summarize

if TYPE_CHECKING:
    from profkit.analysis.report import Report

_REMEDY = "derive it anew: profkit baseline run ... --resume, or import it again"
_BUSIEST = 3
_SAME_DIGITS = 1e-9
_WORDS = {"flags", "notes", "datasheet_note"}


def gather(folder: Path, *, price: float | None = None, ladder: Path | None = None) -> Written:
    """All that the report of the baseline in `folder` tells, derived of its cells.

    `price` is for an hour and GPU; `ladder` is a recording of variants that took turns. Raises
    BadInput for a folder without a whole baseline, and where its summary is not of its cells.
    """
    summary, cells, baseline = _whole(folder)
    order = {backend.name for backend in summary.backends}
    rows = baseline.rows
    statistics = {cell.id: summarize(cell.latency.samples) for cell in cells if cell.latency}
    sheet = baseline.datasheet
    against = against_published(rows, sheet.name if sheet else None, summary.gpu)
    seconds = summary.seconds
    steps = _steps(ladder, order) if ladder else ()
    return Written(
        summary=summary,
        statistics=statistics,
        sources={cell.id: cell.source for cell in cells if cell.source},
        evidence=evidence(rows, statistics),
        same=same_kernel(rows, baseline.comparisons),
        goals=tuple(goal(row) for row in top_rows(rows)),
        against=against,
        claims=wrong_claims(against),
        profiled=tuple(_profiled(folder, one) for one in summary.profiles),
        steps=steps,
        steps_title=ladder.name if ladder else "",
        price=price,
        cost=cost(seconds, price) if price is not None and seconds else None,
        not_asked=_not_asked(summary),
    )


def _not_asked(told: BaselineFile) -> tuple[str, ...]:
    """Backends that come with profkit and were left out of a run that named its own of them."""
    asked, shipped = told.options.backends, [backend.name for backend in SHIPPED]
    if not asked or told.target.name is None or not set(asked) <= set(shipped):
        return ()
    return tuple(name for name in shipped if name not in asked)


def _whole(folder: Path) -> tuple[BaselineFile, list[Cell], Baseline]:
    """The summary, kept or derived where there is none, its cells and what they amount to.

    Raises BadInput where a kept one tells anything else than they do.
    """
    path = folder / SUMMARY
    try:
        summary = read_file(path, BaselineFile, _REMEDY)
    except MissingFile:
        from profkit.study.run import derived_summary

        baseline, summary = derived_summary(folder)
        return summary, _cells(folder, summary), baseline
    cells, again = _cells(folder, summary), read_again(folder)
    order = [backend.name for backend in summary.backends]
    gpu = summary.gpu or Device()
    baseline = derive(cells, gpu, order=order, floor=_floor(summary), again=again)
    right = structs.replace(
        summary, **derived(baseline, [*cells, *again], summary.matrix, summary.backends)
    )
    _check(path, read_json(path, _REMEDY), plain(right))
    return right, cells, baseline


def _cells(folder: Path, told: BaselineFile) -> list[Cell]:
    """The kept cells, and those that no backend is there for, in the order of the summary."""
    found = {cell.id: cell for cell in read_cells(folder)}
    for one in told.cells:
        kept = found.get(one.id)
        if one.status is CellStatus.unavailable and (kept is None or kept.status in MISSING):
            found[one.id] = _unavailable(one)
    ids = [one.id for one in told.cells]
    if apart := set(ids) ^ found.keys():
        raise BadInput(f"{folder / SUMMARY}: is not of the cells beside it: {min(apart)}", _REMEDY)
    if len(ids) > len(found):
        raise BadInput(f"{folder / SUMMARY}: has a cell twice", _REMEDY)
    return [found[name] for name in ids]


def _unavailable(row: Row) -> Cell:
    names = ("shape", "at", "arguments", "backend", "reason", "version")
    return Cell(status=CellStatus.unavailable, **part(row, *names))


def _floor(told: BaselineFile) -> float | None:
    """The A/A floor that the verdicts were held against, which the cells do not know.

    Every margin is at least the floor, so that it is the least of them, where it counted at all.
    """
    margins = [one.margin for one in told.comparisons if one.margin is not None]
    return min(margins, default=None)


def _check(path: Path, told: Mapping[str, Any], right: Mapping[str, Any]) -> None:
    """Raises BadInput where a summary says anything else than what the cells amount to."""
    apart = next(_differences(told, right, ""), None)
    if apart is not None:
        place, said, derived = apart
        raise BadInput(f"{path}: {place} is {said}, by the kept samples {derived}", _REMEDY)


def _differences(told: Any, derived: Any, place: str) -> Iterator[tuple[str, str, str]]:
    """The places of what differs, with both as words; what was not told yet is none.

    The words of flags and notes are left alone: they belong to the version that wrote them.
    """
    if isinstance(told, dict) and isinstance(derived, dict):
        for name in [name for name in told if name not in _WORDS]:
            where = f"{place}.{name}" if place else name
            yield from _differences(told[name], derived.get(name), where)
    elif isinstance(told, list) and isinstance(derived, list | tuple) and len(told) == len(derived):
        for at, (one, other) in enumerate(zip(told, derived, strict=True)):
            yield from _differences(one, other, f"{place}[{_name(one, at)}]")
    elif not _same(told, derived):
        yield place, _brief(told), _brief(derived)


def _name(one: Any, at: int) -> str:
    return str(one["id"]) if isinstance(one, dict) and "id" in one else str(at)


def _same(told: Any, derived: Any) -> bool:
    numbers = [type(value) in {int, float} for value in (told, derived)]
    if all(numbers):
        return math.isclose(told, derived, rel_tol=_SAME_DIGITS)
    return type(told) is type(derived) and bool(told == derived)


def _brief(value: Any) -> str:
    if isinstance(value, list):
        return f"{len(value)} long"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _profiled(folder: Path, told: ProfiledCell) -> Profiled:
    """A profiled cell with its checklist; why not, where its report can't be read."""
    from profkit.analysis.report import load
    from profkit.report.overview import headline

    if not told.folder:
        return Profiled(told.id, "", None, told.reason)
    try:
        report = load(one_report(folder / told.folder))
        longest = max(report.summary.launches, key=lambda launch: launch.duration)
        return Profiled(
            id=told.id,
            headline=headline(report.summary),
            found=report.checklist(blamed=0),
            reason="",
            busiest=floors(longest.values)[:_BUSIEST],
        )
    except ProfkitError as error:
        return Profiled(told.id, "", None, error.message.replace(f"{folder}/", ""))


def _steps(ladder: Path, backends: set[str]) -> tuple[Step, ...]:
    """Each variant of a recording after the one before it; its reference and backends are none."""
    saved = read_latencies(ladder / LATENCY)
    _, *others = saved.latencies
    known = backends | {backend.name for backend in SHIPPED}
    rungs = [analyze_latency(one) for one in others if one.label not in known]
    reports = {one.label: _report(ladder, one.label) for one in rungs}
    first = {label: _first_finding(report) for label, report in reports.items()}
    steps = []
    for one, other in pairwise(rungs):
        (pair,) = compare_with(one, [other], thresholds=THRESHOLDS)
        before, after = one.label, other.label
        changed = _evidence(reports[before], reports[after])
        steps.append(Step(pair, first[before], first[after], changed))
    return tuple(steps)


def _report(ladder: Path, variant: str) -> Report | None:
    """A variant's report in a recording."""
    from profkit.analysis.report import load

    files = (ladder / f"{variant}{suffix}" for suffix in SUFFIXES)
    return next((load(file) for file in files if file.is_file()), None)


def _first_finding(report: Report | None) -> Item | None:
    return next(iter(report.checklist(blamed=0).findings), None) if report else None


def _evidence(before: Report | None, after: Report | None) -> Diff | None:
    """What changed between two reports of one variant each, whatever its kernels are called."""
    from profkit.comparison.reports import diff

    if before is None or after is None:
        return None
    return diff(before, after, match="order", force=True)
