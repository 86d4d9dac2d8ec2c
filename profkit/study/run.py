"""Baselines: what is there is gone on with, what is missing is measured, and all is derived of it.

What is in the folder is enough to go on after an interruption of any kind.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from profkit.core.errors import BadInput, ProfkitError, UsageError
from profkit.core.extras import lacking
from profkit.core.fingerprint import Device
from profkit.core.lock import gpu_lock
from profkit.core.regular_file import digest
from profkit.core.timestamp import timestamp
from profkit.core.typed_file import encode, part
from profkit.study.folder import (
    SUMMARY,
    TABLE,
    has_cells,
    held,
    read_again,
    read_cells,
    read_plan,
    read_profiles,
    write_whole,
)
from profkit.study.json import BaselineFile, cells_parquet, summary_file
from profkit.study.measurement import Measuring, Process
from profkit.study.plan import BaselinePlan, Declared, Profiled
from profkit.study.plan_format import Asked, Backend, PlanFile, Program
from profkit.study.profiles import profile_cells
from profkit.study.record import backends_on_record
from profkit.study.summary import Baseline, derive, top_rows
from profkit.timing.cell import MISSING, Cell, CellStatus
from profkit.timing.floor import read_floor
from profkit.timing.measurement import Tell, lock_of
from profkit.timing.turns import Died, Silent


def run_baseline(plan: BaselinePlan, tell: Tell) -> Baseline:
    """Measure what is missing in the plan's folder, then profile as planned, and derive all of it.

    Every cell is kept as soon as it is known. `tell` gets (stage, what goes on). Raises UsageError
    for a folder that holds another baseline, EnvironmentProblem for another GPU than before, no
    device, no room.
    """
    started = time.monotonic()
    _measure(plan, started, tell)
    found = summarise(plan.out)
    if plan.profiled is Profiled.none:
        return found
    timed = [row for row in found.rows if row.is_timed]
    if plan.profiled is Profiled.top:
        timed = list(top_rows(row for row in timed if row.flop_rate))
    profile_cells(plan, timed, started, tell)
    return summarise(plan.out)


def _measure(plan: BaselinePlan, started: float, tell: Tell) -> None:
    before = _continued(plan)
    with gpu_lock(lock_of(plan.timing)), held(plan.out), Process(plan) as process:
        tell("start", "")
        declared = _declared(plan, process, before)
        kept = before or _first_plan(plan, declared)
        cells, shapes = read_cells(plan.out), len(plan.matrix.shapes)
        backends = backends_on_record(kept.backends, declared.backends, cells, shapes)
        work = Measuring(plan, process, declared, replace(kept, backends=backends), started, tell)
        if work.todo or backends != kept.backends or before is None:
            work.run()
        elif plan.profiled is not Profiled.none:
            work.check_device()


def _continued(plan: BaselinePlan) -> PlanFile | None:
    """The plan of the baseline to go on with; raises UsageError where that is not meant."""
    before = read_plan(plan.out)
    if before is None or (not plan.resume and not has_cells(plan.out)):
        return None
    if not plan.resume:
        raise UsageError(
            f"{plan.out}: holds a baseline", "go on with it with --resume, or give --out another"
        )
    if before.target.sha256 != digest(plan.target):
        raise UsageError(
            f"{plan.out}: was begun with another {plan.target.name}: it has changed since",
            "cells of two programs are no baseline: give --out another folder",
        )
    asked = _asked(plan)
    for name in Asked.__struct_fields__:
        was = getattr(before.asked, name)
        if was != getattr(asked, name):
            told = f", {was}" if isinstance(was, int | float | str) else ""
            raise UsageError(
                f"{plan.out}: was begun with another {name}{told}",
                "give the same options, or --out another folder",
            )
    return before


def _asked(plan: BaselinePlan) -> Asked:
    return Asked(
        target=plan.target.name,
        **part(plan, "matrix", "samples", "blocks", "seed", "device", "backends"),
        timer=plan.settings.timer.value,
        cache=plan.settings.cache.value,
        warmup=plan.settings.warmup,
    )


def _declared(plan: BaselinePlan, process: Process, before: PlanFile | None) -> Declared:
    """Ask the target; raises what it raises where not one shape can be had, UsageError for a
    backend that it never had."""
    flop: dict[str, float] = {}
    told: Mapping[str, Any] | None = None
    failure: ProfkitError | None = None
    for shape in plan.matrix.shapes:
        try:
            declared = process.turn.ask(
                "declare", path=str(plan.target), arguments=list(shape.words)
            )
        except Silent:
            raise
        except ProfkitError as error:
            if isinstance(error, Died):
                process.end()
            failure = failure or error
            continue
        told = told or declared
        work = declared["target"]["work"]
        if work and work["flop"] > 0:  # by which a call's time is expected
            flop[shape.name] = work["flop"]
    if told is None:
        assert failure is not None
        raise failure
    known = told["variants"]
    begun = [backend.name for backend in before.backends] if before else []
    names = list(plan.backends) or list(dict.fromkeys([*begun, *known]))
    for name in names:
        if name not in known and name not in begun:
            raise UsageError(
                f"{told['target']['name']} has no backend {name!r}", f"it has {', '.join(known)}"
            )
    return Declared(
        told["target"]["name"], tuple(_backend(name, known.get(name)) for name in names), flop
    )


def _backend(name: str, about: Mapping[str, Any] | None) -> Backend:
    if about is None:
        gone = "the target does not have it any more"
        return Backend(name=name, available=False, reason=gone, setting="")
    return Backend(
        name=name,
        version=about["version"],
        available=not about["unavailable"],
        reason=about["unavailable"],
        setting=about["setting"],
    )


def _first_plan(plan: BaselinePlan, declared: Declared) -> PlanFile:
    return PlanFile(
        asked=_asked(plan),
        target=Program(name=declared.name, file=plan.target.name, sha256=digest(plan.target)),
        gpu=None,
        measured_on=None,
        budget=plan.budget,
        command=plan.command,
        created=timestamp(),
        seconds=0.0,
        backends=(),
    )


def summarise(folder: Path) -> Baseline:
    """Derive all from the cells in a folder and keep it: summary.json, and cells.parquet where what
    writes tables is installed.

    Raises BadInput for a folder without a plan or with a cell that can't be read.
    """
    baseline, file = derived_summary(folder)
    write_whole(folder / SUMMARY, encode(file, indent=1))
    if lacking("a table", "pandas", "pyarrow"):
        (folder / TABLE).unlink(missing_ok=True)  # it would be of other cells
    else:
        write_whole(folder / TABLE, cells_parquet(baseline))
    return baseline


def derived_summary(folder: Path) -> tuple[Baseline, BaselineFile]:
    """All that the cells in a folder amount to, and its summary.

    Raises BadInput as `summarise` does.
    """
    plan = read_plan(folder)
    if plan is None:
        raise BadInput(f"{folder}: no baseline", "make one with profkit baseline run or import")
    cells = _with_unavailable(read_cells(folder), plan)
    order = [backend.name for backend in plan.backends]
    again = read_again(folder)
    measured = [cell.latency for cell in cells if cell.latency]
    known = read_floor(*measured[0].measured_with) if measured else None
    baseline = derive(
        cells,
        plan.gpu or Device(),
        order=order,
        floor=known.within_process if known else None,
        again=again,
    )
    profiles = read_profiles(folder)
    return baseline, summary_file(baseline, [*cells, *again], plan, profiles)


def _with_unavailable(cells: Sequence[Cell], plan: PlanFile) -> tuple[Cell, ...]:
    """The cells, and one for each that no backend is there for: for want of time no more."""
    away = {backend.name for backend in plan.backends if not backend.available or backend.gone}
    cells = [cell for cell in cells if cell.status not in MISSING or cell.backend not in away]
    known = {cell.id for cell in cells}
    rank = {backend.name: at for at, backend in enumerate(plan.backends)}
    missing = [
        Cell(
            shape=shape.name,
            at=at,
            arguments=shape.arguments,
            backend=backend.name,
            status=CellStatus.unavailable,
            reason=backend.gone or backend.reason,
            setting=backend.setting,
        )
        for at, shape in enumerate(plan.asked.matrix.shapes)
        for backend in plan.backends
        if backend.name in away and f"{shape.name}.{backend.name}" not in known
    ]
    every = (*cells, *missing)
    return tuple(sorted(every, key=lambda cell: (cell.at, rank.get(cell.backend, len(rank)))))
