"""Baselines: resumes a folder, measures the missing cells, and derives the summary.

The folder is sufficient to resume after any interruption.
"""

import io
import json
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from msgspec import UNSET
from msgspec.structs import fields, replace

from profkit.capture.program_files import program_digest
from profkit.core.errors import BadInput, ProfkitError, UsageError
from profkit.core.extras import lacking
from profkit.core.lock import gpu_lock
from profkit.core.timestamp import timestamp
from profkit.core.typed_file import encode, known, part, plain, row_of
from profkit.core.version import __version__
from profkit.recording import recording
from profkit.study import folder as files
from profkit.study import measurement
from profkit.study.distribution import distribute
from profkit.study.matrix import MatrixShape
from profkit.study.plan_format import Asked, Backend, PlanFile, ProfiledCell, Program
from profkit.study.progress import forget_progress
from profkit.study.summary import derive, top_rows
from profkit.study.summary_format import BaselineFile, Options, Row, name_parts
from profkit.timing.cell import MISSING, Cell, CellStatus
from profkit.timing.floor import read_floor
from profkit.timing.loaded import Declaration, VariantFacts
from profkit.timing.measurement import Tell, lock_of
from profkit.timing.turns import Died, Silent


def run_baseline(plan: measurement.BaselinePlan, tell: Tell) -> BaselineFile:
    """Measure the missing cells of the plan's folder, profile as planned, and derive the summary.

    Every cell is saved as soon as it is measured. `tell` gets (stage, detail). Raises UsageError
    for a folder with another baseline, EnvironmentProblem for another GPU than before, no device,
    no disk space.
    """
    started = time.monotonic()
    measure_missing(plan, started, tell)
    summary = summarize(plan.out)
    if plan.profiled == "none":
        return summary
    timed = [row for row in summary.cells if row.is_timed]
    if plan.profiled == "top":
        timed = list(top_rows(row for row in timed if row.flop_rate))
    _profile_cells(plan, timed, started, tell)
    return summarize(plan.out)


def measure_missing(plan: measurement.BaselinePlan, started: float, tell: Tell) -> None:
    """Measure what the plan's folder lacks; raises as `run_baseline`."""
    before = _continued(plan)
    with ExitStack() as stack:
        if plan.on is None:
            stack.enter_context(gpu_lock(lock_of(plan.timing)))
        stack.enter_context(files.held(plan.out))
        if plan.on is None:
            forget_progress(plan.out)
        process = stack.enter_context(measurement.Process(plan))
        tell("start", "")
        declared = _declared(plan, process, before)
        file = before or PlanFile(
            asked=_asked(plan),
            target=Program(
                name=declared.name, file=plan.target.name, sha256=program_digest(plan.target)
            ),
            budget=plan.budget,
            command=plan.command,
            created=timestamp(),
            seconds=0.0,
            backends=(),
        )
        backends = _recorded_backends(plan, file.backends, declared.backends)
        unchanged = backends == file.backends and before is not None
        setup = measurement.Setup(plan, declared, replace(file, backends=backends))
        rounds = measurement.missing_rounds(setup)
        if plan.on is not None:
            process.end()
            if rounds or not unchanged:
                distribute(setup, plan.on, rounds, tell)
            return
        account = measurement.Account(setup, partial(files.write_plan, plan.out), started)
        save = partial(files.write_cell, plan.out)
        work = measurement.Measuring(setup, process, account, rounds, save, tell)
        if rounds or not unchanged or plan.profiled != "none":
            work.check_device()
        if rounds or not unchanged:
            work.run()


def _continued(plan: measurement.BaselinePlan) -> PlanFile | None:
    """The plan of the baseline to resume; raises UsageError without --resume."""
    before = files.read_plan(plan.out)
    if before is None or (not plan.resume and not files.has_cells(plan.out)):
        return None
    if not plan.resume:
        raise UsageError(
            f"{plan.out}: contains a baseline",
            "resume it with --resume, or give --output another folder",
        )
    if before.target.sha256 != program_digest(plan.target):
        raise UsageError(
            f"{plan.out}: {plan.target.name}, or what it imports beside it, has changed since the "
            "baseline was started",
            "give --output another folder: all cells must be of one program",
        )
    asked = _asked(plan)
    for name in Asked.__struct_fields__:
        was = getattr(before.asked, name)
        if was != getattr(asked, name):
            value = f", {was}" if isinstance(was, int | float | str) else ""
            raise UsageError(
                f"{plan.out}: was started with another {name}{value}",
                "give the same options, or --output another folder",
            )
    return before


def _asked(plan: measurement.BaselinePlan) -> Asked:
    timing = plan.timing
    return Asked(
        target=plan.target.name,
        **part(plan, "matrix", "backends"),
        **part(timing, "samples", "blocks", "seed", "device"),
        timer=timing.settings.timer.value,
        cache=timing.settings.cache.value,
        warmup=timing.settings.warmup,
    )


def _declared(
    plan: measurement.BaselinePlan, process: measurement.Process, before: PlanFile | None
) -> measurement.Declared:
    """The target's declaration; raises its error where no shape works, UsageError for an unknown
    backend."""
    answer, failures = None, list[ProfkitError]()
    for shape in plan.matrix.shapes:
        try:
            path, arguments = str(plan.target), list(shape.words)
            answer = process.turn.ask("declare", Declaration, path=path, arguments=arguments)
            break
        except Silent:
            raise
        except ProfkitError as error:
            if isinstance(error, Died):
                process.end()
            failures.append(error)
    if answer is None:
        raise failures[0]
    target, known = answer.target.name or "", answer.variants
    begun = [backend.name for backend in before.backends] if before else []
    names = list(plan.backends) or list(dict.fromkeys([*begun, *known]))
    for name in names:
        if name not in known and name not in begun:
            raise UsageError(f"{target}: no backend {name!r}", f"use {', '.join(known)}")
    return measurement.Declared(target, tuple(_backend(name, known.get(name)) for name in names))


def _backend(name: str, about: VariantFacts | None) -> Backend:
    if about is None:
        return Backend(name=name, available=False, reason="no longer in the target")
    return Backend(
        name=name,
        version=about.version,
        available=not about.unavailable,
        reason=about.unavailable,
        setting=about.setting,
    )


def _recorded_backends(
    plan: measurement.BaselinePlan, before: Sequence[Backend], now: Sequence[Backend]
) -> tuple[Backend, ...]:
    """The backends `now`; those with cells as they were when these were measured.

    `gone` is the reason why a backend with missing cells is no longer available.
    """
    old = {backend.name: backend for backend in before}
    settled = Counter(
        cell.backend for cell in files.read_cells(plan.out) if cell.status not in MISSING
    )
    backends = []
    for backend in now:
        count, recorded = settled[backend.name], old.get(backend.name)
        if (
            recorded
            and not (backend.available and recorded.version != backend.version)
            and recorded.available >= backend.available
            and (count or not recorded.available)
        ):
            gone = 0 < count < len(plan.matrix.shapes) and not backend.available
            backend = replace(recorded, gone=backend.reason if gone else UNSET)
        backends.append(backend)
    return tuple(backends)


def _profile_cells(
    plan: measurement.BaselinePlan, rows: Sequence[Row], started: float, tell: Tell
) -> None:
    """Profile the cells that have no profile; failures are saved with their reason.

    The plan's budget counts from `started`, of the monotonic clock.
    """
    profiles = [profile for profile in files.read_profiles(plan.out) if profile.folder]
    done = {profile.id for profile in profiles}
    todo = [row for row in rows if row.id not in done]
    with files.held(plan.out):
        for number, row in enumerate(todo, 1):
            stage = f"profile {number} of {len(todo)}  {row.id}"
            try:
                folder, reason = _profile(plan, row, started, stage, tell), ""
            except UsageError:
                raise
            except ProfkitError as error:
                folder, reason = None, error.message
            profiles.append(ProfiledCell(id=row.id, folder=folder, reason=reason))
            files.write_profiles(plan.out, profiles)


def _profile(
    plan: measurement.BaselinePlan, row: Row, started: float, stage: str, tell: Tell
) -> str:
    """The folder of a profile, in the baseline's."""

    def show(_: str, detail: str) -> None:
        tell(stage, detail)

    left = None if plan.budget is None else plan.budget - (time.monotonic() - started)
    if left is not None and left <= 0:
        raise ProfkitError("the budget was already spent")
    outcome = recording.profile(
        recording.Plan(
            program=(str(plan.target), *MatrixShape(row.shape, row.arguments).words),
            variants=(row.backend,),
            out=plan.out / files.PROFILES,
            gpu=plan.timing.gpu,
            timeout=left,
            timeline=False,
            samples=0,
        ),
        show,
    )
    return str(outcome.folder.relative_to(plan.out))


def summarize(folder: Path) -> BaselineFile:
    """Derive the summary from the cells in a folder and save it: summary.json, and cells.parquet if
    pandas and pyarrow are installed.

    Raises BadInput for a folder without a plan or with a cell that can't be read.
    """
    summary = derived_summary(folder)
    files.write_whole(folder / files.SUMMARY, encode(summary, indent=1))
    if lacking("a table", "pandas", "pyarrow"):
        (folder / files.TABLE).unlink(missing_ok=True)  # it would be of other cells
    else:
        files.write_whole(folder / files.TABLE, _parquet(summary.cells))
    return summary


def _parquet(rows: Sequence[Row]) -> bytes:
    """The rows as a Parquet table, lists and mappings as JSON."""
    import pandas as pd

    frame = pd.DataFrame([plain(row) for row in rows])
    for name in ("arguments", "throttled", "dependence", "flags"):
        frame[name] = [json.dumps(value) for value in frame[name]]
    numbers = [each.encode_name for each in fields(Row) if each.type in {float | None, int | None}]
    table = io.BytesIO()
    frame.astype(dict.fromkeys(numbers, "float64")).to_parquet(table, index=False)
    return table.getvalue()


def derived_summary(folder: Path, floor: float | None = None) -> BaselineFile:
    """The summary of the cells in a folder, by this A/A floor or else that of the machine; raises
    BadInput as `summarize` does."""
    plan = files.read_plan(folder)
    if plan is None:
        raise BadInput(
            f"{folder}: contains no baseline", "make one with profkit baseline run or import"
        )
    asked, profiles = plan.asked, files.read_profiles(folder)
    summary = BaselineFile(
        profkit=__version__,
        name=" ".join(name_parts(plan.target, asked.matrix)),
        created=timestamp(),
        matrix=asked.matrix,
        options=row_of(
            Options,
            asked,
            device=known(plan.measured_on.device) if plan.measured_on else asked.device,
            budget=plan.budget,
        ),
        **part(plan, "target", "command", "gpu", "backends", "seconds"),
        runs=known(plan.runs),
        gpu_from=plan.gpu_from or ("measured" if plan.gpu else "none"),
        gpus=tuple(known(gpu.uuid) or "" for gpu in known(plan.gpus) or ()) or None,
        profiles=profiles,
    )
    cells = _with_unavailable(files.read_cells(folder), plan)
    measured = [cell.latency for cell in cells if cell.latency]
    if floor is None and measured and (known_floor := read_floor(*measured[0].measured_with)):
        floor = known_floor.within_process
    return derive(summary, cells, again=files.read_cells(folder, files.AGAIN), floor=floor)


def _with_unavailable(cells: Sequence[Cell], plan: PlanFile) -> tuple[Cell, ...]:
    """The cells, and one for each with an unavailable backend, instead of a missing one."""
    away = {backend.name for backend in plan.backends if not backend.available or backend.gone}
    present = [cell for cell in cells if cell.status not in MISSING or cell.backend not in away]
    known = {cell.id for cell in present}
    rank = {backend.name: place for place, backend in enumerate(plan.backends)}
    missing = [
        Cell(
            shape=shape.name,
            at=place,
            arguments=shape.arguments,
            backend=backend.name,
            status=CellStatus.unavailable,
            reason=backend.gone or backend.reason,
            setting=backend.setting,
        )
        for place, shape in enumerate(plan.asked.matrix.shapes)
        for backend in plan.backends
        if backend.name in away and f"{shape.name}.{backend.name}" not in known
    ]
    every = [*present, *missing]
    return tuple(sorted(every, key=lambda cell: (cell.at, rank.get(cell.backend, len(rank)))))
