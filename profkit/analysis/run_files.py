"""The reports that a path names, and the other files of their runs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from profkit.core.errors import BadInput, UsageError
from profkit.core.integrity import MANIFEST, check_unchanged
from profkit.runs.run import is_partial
from profkit.timeline import RUN_FILE, TRACES

if TYPE_CHECKING:
    from profkit.timeline.events import Events
    from profkit.timing.latency_file import Saved
    from profkit.timing.variants import Variants

SUFFIXES = (".ncu-rep", ".ncu-repz")
EXPORT = ".sqlite"
TIMELINES = (EXPORT, ".nsys-rep", *TRACES)
TIMELINE, CHECK, LATENCY = RUN_FILE, "check.json", "latency.json"
PICKED = "picks.json"
"""In the run of an application: its steps have findings of their own, without its start."""
SCOUT = "scout"
"""The stem of the report of all launches beside one that holds more of some of them."""


def reports_in(folder: Path) -> list[Path]:
    """The reports anywhere below a folder, without unfinished runs and the scouts of others.

    Raises BadInput without any.
    """
    every = sorted(
        file
        for file in folder.rglob("*")
        if file.suffix in SUFFIXES and not is_partial(file.relative_to(folder))
    )
    recorded = {file.parent for file in every if file.stem != SCOUT}
    files = [file for file in every if file.stem != SCOUT or file.parent not in recorded]
    if not files:
        blind = any(folder.rglob(TIMELINE))
        remedy = (
            "profkit analyze --without-counters reads its timeline" if blind else "check the path"
        )
        raise BadInput(f"{folder}: no Nsight Compute report in this directory", remedy)
    return files


def one_report(path: Path) -> Path:
    """The report that a path names: itself, or the only one below a folder, checked as a run.

    Raises BadInput where there is none or its run was changed, UsageError where there are several.
    """
    if not path.is_dir():
        return path
    files = reports_in(path)
    if len(files) > 1:
        raise UsageError(f"{path}: {len(files)} reports", "name one of them")
    check_run_of(files[0])
    return files[0]


def one_timeline(path: Path) -> Path:
    """The timeline that a path names: itself, or the only one of the runs below a folder, or the
    only trace there that torch's `tensorboard_trace_handler` wrote.

    Raises BadInput where there is none, UsageError where there are several.
    """
    if not path.is_dir():
        return path
    files = [file for file in path.rglob(TIMELINE) if not is_partial(file.relative_to(path))]
    files = files or [file for end in TRACES for file in path.rglob(f"*.pt.trace{end}")]
    if not files:
        raise BadInput(f"{path}: no timeline in this directory", "check the path")
    if len(files) > 1:
        raise UsageError(f"{path}: {len(files)} timelines", "name one of them")
    return files[0]


def beside(report: Path) -> list[Path]:
    """The other recordings of the run that a report belongs to; none outside a run."""
    if not (report.parent / MANIFEST).is_file():
        return []
    return [file for name in (TIMELINE, CHECK, LATENCY) if (file := report.parent / name).is_file()]


def variants_of(report: Path) -> Variants | None:
    """The variants of the run that a report belongs to; None outside a run, or without a check."""
    from profkit.timing.variants import read_variants

    checked = any(file.name == CHECK for file in beside(report))
    return read_variants(report.parent) if checked else None


def latencies_of(report: Path) -> Saved | None:
    """The latencies of the run that a report belongs to; None outside a run, or without any.

    Raises BadInput where they differ from the run's manifest.
    """
    from profkit.timing.latency_file import read_latencies

    file = next((file for file in beside(report) if file.name == LATENCY), None)
    return read_latencies(file) if file else None


def timeline_beside(report: Path) -> Events | None:
    """The timeline of the run that a report belongs to; None where none can be read."""
    from profkit.timeline.reader import read

    file = next((file for file in beside(report) if file.name == TIMELINE), None)
    try:
        if file:
            check_unchanged(file)
        return read(file) if file else None
    except BadInput:
        return None


def timeline_of(report: Path) -> Mapping[str, float]:
    """What rules may name of all of the timeline in a report's run; nothing where none can be read,
    or where it is of an application."""
    from profkit.timeline.region import measure

    events = None if report.with_name(PICKED).is_file() else timeline_beside(report)
    return measure(events) if events else {}


def check_run_of(report: Path) -> None:
    """Raise BadInput where another file of a report's run differs from the run's manifest."""
    for file in beside(report):
        check_unchanged(file)
