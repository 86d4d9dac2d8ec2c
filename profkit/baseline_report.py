"""Gathers what the written report of a baseline tells: from its folder, its profiles, a ladder."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import fields
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from profkit.analysis.baseline import THRESHOLDS, Row, Scaling
from profkit.analysis.baseline_evidence import cost, evidence, goal, top_rows
from profkit.analysis.checklist import Item
from profkit.analysis.diff import KernelDiff
from profkit.analysis.latency import analyze_latency, compare_with
from profkit.analysis.published import against_published
from profkit.analysis.written import Profiled, Step, Written
from profkit.capture.backends import SHIPPED
from profkit.errors import BadInput, ProfkitError
from profkit.files import LATENCY, SUFFIXES, one_report
from profkit.ingest.cell import Status, read_cell
from profkit.ingest.latency import read_latencies
from profkit.store.baseline import SUMMARY

if TYPE_CHECKING:
    from profkit.report import Report

_SCHEMA = "profkit.baseline/1"
_REMEDY = "derive it anew: profkit baseline run ... --resume, or import it again"
_TOP = 3
_STATISTICS = {"percentiles", "raw_autocorrelation"}


def gather(folder: Path, *, price: float | None = None, ladder: Path | None = None) -> Written:
    """All that the report of the baseline in `folder` tells.

    `price` is for an hour and GPU; `ladder` is a recording of variants that took turns. Raises
    BadInput for a folder without a whole baseline, and where its summary is not of its cells.
    """
    summary = _summary(folder)
    rows = tuple(_row(one) for one in summary["cells"])
    statistics, sources = _files(folder, rows)
    sheet = summary["datasheet"]
    seconds = summary["seconds"]
    steps = _steps(ladder, {backend["name"] for backend in summary["backends"]}) if ladder else ()
    return Written(
        summary=summary,
        rows=rows,
        scaling=tuple(_scaling(one) for one in summary["scaling"]),
        statistics=statistics,
        sources=sources,
        evidence=evidence(rows, statistics),
        goals=tuple(goal(row) for row in top_rows(rows, _TOP)),
        against=against_published(rows, sheet["name"] if sheet else None),
        profiled=tuple(_profiled(folder, one) for one in summary["profiles"]),
        steps=steps,
        steps_title=ladder.name if ladder else "",
        price=price,
        cost=cost(seconds, price) if price is not None and seconds else None,
    )


def _summary(folder: Path) -> Mapping[str, Any]:
    path = folder / SUMMARY
    try:
        summary = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise BadInput(
            f"{folder}: no baseline", "make one with profkit baseline run or import"
        ) from None
    except (OSError, ValueError):
        raise BadInput(f"{path}: can't be read", _REMEDY) from None
    if not isinstance(summary, dict) or summary.get("schema") != _SCHEMA:
        raise BadInput(f"{path}: not {_SCHEMA}", _REMEDY)
    _validate(path, summary)
    return summary


def _validate(path: Path, summary: Mapping[str, Any]) -> None:
    from importlib.resources import files

    import jsonschema

    text = files("profkit.schemas").joinpath("baseline.json").read_text(encoding="utf-8")
    errors = jsonschema.Draft202012Validator(json.loads(text)).iter_errors(summary)
    error = jsonschema.exceptions.best_match(errors)
    if error is not None:
        where = ".".join(str(part) for part in error.absolute_path)
        raise BadInput(f"{path}: {where}: {' '.join(error.message.split())[:200]}", _REMEDY)


def _row(told: Mapping[str, Any]) -> Row:
    known = {one.name: told[one.name] for one in fields(Row) if one.name in told}
    known |= {"dependence": tuple(told["dependence"]), "flags": tuple(told["flags"])}
    return Row(**{**known, "status": Status(told["status"])})


def _scaling(told: Mapping[str, Any]) -> Scaling:
    return Scaling(before=told["from"], after=told["to"], **_without(told, "from", "to"))


def _without(told: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in told.items() if name not in names}


def _files(
    folder: Path, rows: Sequence[Row]
) -> tuple[dict[str, Mapping[str, Any]], dict[str, Mapping[str, Any]]]:
    """What the cells' files say of samples and sources; the medians must be the summary's."""
    statistics: dict[str, Mapping[str, Any]] = {}
    sources: dict[str, Mapping[str, Any]] = {}
    for row in rows:
        if not row.is_timed or row.file is None:
            continue
        path = folder / row.file
        cell = read_cell(path)
        if cell.latency is None or not _same(float(np.median(cell.latency.samples)), row.seconds):
            raise BadInput(f"{folder / SUMMARY}: is not of the samples in {path.name}", _REMEDY)
        told = json.loads(path.read_text(encoding="utf-8")).get("statistics")
        if not isinstance(told, dict) or not told.keys() >= _STATISTICS:
            raise BadInput(f"{path}: lacks the statistics of its samples", _REMEDY)
        statistics[row.id] = told
        if cell.source:
            sources[row.id] = cell.source
    return statistics, sources


def _same(one: float, other: float | None) -> bool:
    return other is not None and math.isclose(one, other, rel_tol=1e-9)


def _profiled(folder: Path, told: Mapping[str, Any]) -> Profiled:
    """A profiled cell with its checklist; why not, where its report can't be read."""
    from profkit.render.overview import headline
    from profkit.report import load

    if not told.get("folder"):
        return Profiled(told["id"], "", None, told.get("reason", ""))
    try:
        report = load(one_report(folder / told["folder"]))
        return Profiled(told["id"], headline(report.summary), report.checklist(blamed=0), "")
    except ProfkitError as error:
        return Profiled(told["id"], "", None, error.message.replace(f"{folder}/", ""))


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
    from profkit.report import load

    files = (ladder / f"{variant}{suffix}" for suffix in SUFFIXES)
    return next((load(file) for file in files if file.is_file()), None)


def _first_finding(report: Report | None) -> Item | None:
    return next(iter(report.checklist(blamed=0).items), None) if report else None


def _evidence(before: Report | None, after: Report | None) -> KernelDiff | None:
    """What changed between two reports of one kernel each, whatever it is called."""
    from profkit.report import diff

    if before is None or after is None or len(before) != 1 or len(after) != 1:
        return None
    return next(iter(diff(before, after, match="order", force=True).kernels), None)
