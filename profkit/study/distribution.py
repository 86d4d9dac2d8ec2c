"""A baseline on several GPUs: a shape with all its backends goes to one GPU, shapes to all.

The driver alone writes the folder; results come back as bytes. A worker measures on one GPU, in one
process that lasts over many shapes.
"""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from typing import Literal

from msgspec import UNSET, Struct, json, structs

from profkit.capture.gpu import select
from profkit.capture.program_files import program_digest
from profkit.core.errors import EnvironmentProblem
from profkit.core.fingerprint import Device
from profkit.core.lock import gpu_lock
from profkit.core.timestamp import timestamp
from profkit.core.typed_file import Model, known, part
from profkit.core.version import __version__
from profkit.execution.driver import Reply, State, drive
from profkit.execution.executors import executor_of
from profkit.execution.placement import Placement
from profkit.execution.protocol import Executor, Fate, MakeWorker, Outcome, Task, host_name
from profkit.execution.slurm import cancel_jobs, collected
from profkit.study import folder as files
from profkit.study import measurement
from profkit.study.matrix import Matrix
from profkit.study.plan_format import MeasuredOn
from profkit.study.progress import CANCEL, JOBS, ProgressFile, Running, Unused, write_progress
from profkit.timing.cell import Cell, CellStatus
from profkit.timing.loaded import Located
from profkit.timing.measurement import Tell, lock_of

_SAVED = 1.0  # s, chosen: how old the progress may be
_PLAN_SAVED = 30.0  # s, chosen: a plan of 10,000 shapes takes a tenth of a second to write
_End = Literal["running", "finished", "canceled", "failed"]


def distribute(
    setup: measurement.Setup, place: Placement, rounds: Sequence[measurement.Round], tell: Tell
) -> None:
    """Measure rounds; each is saved when its result comes.

    Raises EnvironmentProblem where no GPU can be used.
    """
    plan = setup.plan
    folder, empty = plan.out, Matrix(plan.matrix.name, "", ())
    (folder / CANCEL).unlink(missing_ok=True)
    subject = replace(plan.timing.subjects[0], path=plan.target.resolve())
    asked = structs.replace(setup.file.asked, matrix=empty)
    for_all = measurement.Setup(
        structs.replace(
            plan, timing=replace(plan.timing, subjects=(subject,)), matrix=empty, on=None
        ),
        setup.declared,
        structs.replace(setup.file, asked=asked, measured_on=None, gpu=None, runs=UNSET),
    )
    make: MakeWorker = MakeCellWorker(for_all)
    study = _Study(setup, rounds, tell)
    study.account.save()
    cancel_jobs(folder / JOBS, place.cluster)
    for outcome in collected(folder / JOBS):  # of jobs that outlived an earlier driver
        study.accept_left(outcome)
    tasks = [each.shape.name for each in rounds if each.shape.name not in study.settled]
    executor = executor_of(place, make, folder / JOBS, on_cpu=plan.timing.device == "cpu")
    study.executor = executor
    end: _End = "failed"
    try:
        drive(executor, tasks, study)
        end = "finished"
    except KeyboardInterrupt:
        end = "canceled"
        raise
    finally:
        executor.close()
        study.account.save()
        study.save_progress(end)
        (folder / CANCEL).unlink(missing_ok=True)


class Canceled(KeyboardInterrupt):
    """Ended by `profkit baseline cancel`."""


class CellTask(Struct, frozen=True):
    """A round, the GPU whose like it must be measured on; None: unknown, any.

    `share` (s) of the budget is what its samples may take, `elapsed` (s) what has passed.
    """

    round: measurement.Round
    gpu: Device | None
    share: float
    elapsed: float


class CellResult(Model, frozen=True, kw_only=True):
    """The texts of cells by their places in the folder, and the GPU.

    `crashed` is why there are none, `process` which process of the worker measured them.
    """

    cells: dict[str, str]
    measured_on: MeasuredOn | None
    gpu: Device | None
    crashed: str
    process: int


class _Study:
    """Makes tasks of rounds, and cells of results."""

    executor: Executor

    def __init__(
        self, setup: measurement.Setup, rounds: Sequence[measurement.Round], tell: Tell
    ) -> None:
        self._setup, self._plan, self._tell = setup, setup.plan, tell
        self._rounds = {each.shape.name: each for each in rounds}
        self.account = measurement.Account(
            setup, lambda file: files.write_plan(setup.plan.out, file)
        )
        self._state = State(len(rounds))
        self._progress_saved, self._plan_saved = 0.0, time.monotonic()
        self.settled: set[str] = set()

    def content(self, task: str, _: int) -> CellTask | None:
        """The round; None where the budget is spent."""
        round_, budget, share = self._rounds[task], self._plan.budget, math.inf
        elapsed = time.monotonic() - self.account.started
        if budget is not None:
            left = budget - elapsed
            if left <= 0:
                reason = f"the budget of {budget:g} s was spent on other cells"
                self._leave(round_, CellStatus.no_time, reason)
                return None
            shapes = self._state.total - self._state.finished
            share = left * max(1, self.executor.workers) / max(1, shapes)
        return CellTask(round_, self.account.file.gpu, share, elapsed)

    def accept(self, _: str, outcome: Outcome) -> Reply:
        """Write the cells, of a GPU like that of the others."""
        result, gpu = json.decode(outcome.result, type=CellResult), self.account.file.gpu
        if result.crashed:
            return Reply(failed=result.crashed)
        if result.gpu and gpu and (other := unlike(gpu, result.gpu)):
            return Reply(excluded=other)
        self.account.processes.add((outcome.worker, result.process))
        self._note_gpu(result)
        for place, text in result.cells.items():
            files.write_whole(self._plan.out / place, text)
        return Reply()

    def accept_left(self, outcome: Outcome) -> None:
        """Write the cells of a result that nobody asked for any more, if they are still missing."""
        round_ = self._rounds.get(outcome.task)
        if round_ is None or round_.again or outcome.fate is not Fate.done:
            return
        cells = json.decode(outcome.result, type=CellResult).cells
        backends = [self._setup.declared.about(name) for name in round_.names]
        keys = {
            f"{files.CELLS}/{outcome.task}.{backend.name}.json": measurement.cell_key(
                self._setup, round_.shape, backend
            )
            for backend in backends
        }
        measured = {place: json.decode(text, type=_Key).key for place, text in cells.items()}
        if measured == keys and self.accept(outcome.task, outcome) == Reply():
            self.settled.add(outcome.task)

    def give_up(self, task: str, reason: str) -> None:
        """Write cells that failed."""
        self._leave(self._rounds[task], CellStatus.failed, reason)

    def watch(self, state: State) -> None:
        """Save the progress now and then; raises Canceled where somebody asked for it."""
        self._state, now = state, time.monotonic()
        if now - self._progress_saved < _SAVED:
            return
        self._progress_saved = now
        if (self._plan.out / CANCEL).exists():
            raise Canceled
        self.save_progress("running")
        if now - self._plan_saved > _PLAN_SAVED:
            self._plan_saved = now
            self.account.save()
        left = "" if state.remaining is None else f"  about {state.remaining:.0f} s left"
        self._tell(f"{state.finished} of {state.total}{left}", ", ".join(state.running))

    def save_progress(self, end: _End) -> None:
        """Write progress.json."""
        state, now, goes_on = self._state, time.monotonic(), end == "running"
        running = [
            Running(shape=task, worker=worker, seconds=now - state.since.get(task, now))
            for task, worker in state.running.items()
        ]
        progress = ProgressFile(
            executor=self.executor.name,
            host=host_name(),
            process=os.getpid(),
            started=self.account.created,
            updated=timestamp(),
            state=end,
            **part(state, "total", "finished", "waiting", "lost", "rate"),
            running=tuple(running) if goes_on else (),
            given_up=_unused(state.given_up),
            excluded=_unused(state.excluded),
            remaining=state.remaining if goes_on else None,
        )
        with suppress(OSError):  # of use, but no result
            write_progress(self._plan.out, progress)

    def _note_gpu(self, result: CellResult) -> None:
        """Save a GPU that the plan lacks."""
        file = self.account.file
        if file.measured_on is None:
            file = structs.replace(file, measured_on=result.measured_on, gpu=result.gpu)
        gpus = known(file.gpus) or ((file.gpu,) if file.gpu else ())
        if result.gpu and result.gpu.uuid not in [gpu.uuid for gpu in gpus]:
            gpus = (*gpus, result.gpu)
        file = structs.replace(file, gpus=gpus or UNSET)
        if file != self.account.file:
            self.account.save(**part(file, "measured_on", "gpu", "gpus"))

    def _leave(self, round_: measurement.Round, status: CellStatus, reason: str) -> None:
        for name in round_.names:
            if name not in round_.again:
                cell = measurement.cell_of(self._setup, name, round_, status=status, reason=reason)
                files.write_cell(self._plan.out, cell)


class _Key(Struct):
    key: str | None


def _unused(reasons: Mapping[str, str]) -> tuple[Unused, ...]:
    return tuple(Unused(name=name, reason=reason) for name, reason in reasons.items())


class MakeCellWorker(Struct, frozen=True):
    """Makes workers of a baseline, whose `setup` has no shapes."""

    setup: measurement.Setup
    version: str = __version__

    @contextmanager
    def __call__(self, gpu: int | None) -> Iterator[CellWorker]:
        """A worker, its process ended with the block."""
        with ExitStack() as stack:
            yield CellWorker(self, gpu, stack)


class CellWorker:
    """Measures on the GPU of a number; None: the first that is visible."""

    def __init__(self, made_by: MakeCellWorker, gpu: int | None, stack: ExitStack) -> None:
        self._version, self._stack = made_by.version, stack
        setup, plan = made_by.setup, made_by.setup.plan
        if gpu is not None:
            plan = structs.replace(plan, timing=replace(plan.timing, gpu=gpu))
        self._plan = plan
        self._setup = replace(setup, plan=self._plan)
        self._process = stack.enter_context(measurement.Process(self._plan))
        self._gpu: Device | None = None
        self._turn = threading.Lock()

    def stop(self) -> None:
        """End the process."""
        self._process.stop()

    def __call__(self, task: Task) -> bytes:
        """Measure a round; encoded as a CellResult, while the GPU may go on with another: the
        statistics of cells take milliseconds."""
        with self._turn:
            self._prepare(task.content.gpu)
            result, cells = self._measure(task.content, last=task.attempt > 1)
        for cell, again in cells:
            if cell.latency or not again:
                result.cells[files.cell_place(cell, again=again)] = files.cell_json(cell)
        return json.encode(result)

    def _prepare(self, like: Device | None) -> None:
        """Check this machine, and have its GPU alone."""
        if self._version != __version__:
            raise EnvironmentProblem(
                f"has profkit {__version__}, the driver {self._version}",
                "install the same version everywhere",
            )
        if self._gpu is None:
            file = self._plan.target
            if not file.is_file() or program_digest(file) != self._setup.file.target.sha256:
                raise EnvironmentProblem(
                    f"{file}: {'another file' if file.is_file() else 'no such file'} there",
                    "have the target at the same path everywhere",
                )
            device = self._plan.timing.device
            gpu = self._process.turn.ask("where", Located, device=device).used.gpu or Device()
            self._stack.enter_context(gpu_lock(self._lock_name(gpu)))
            self._gpu = gpu
        if like and (other := unlike(like, self._gpu)):
            raise EnvironmentProblem(other, "measure each kind of GPU into its own folder")

    def _lock_name(self, gpu: Device) -> str:
        """As `lock_of`; where NVML knows no GPU the UUID that the process sees."""
        uuid, timing = known(gpu.uuid), self._plan.timing
        return uuid if uuid and not select(timing.gpu).gpu else lock_of(timing)

    def _measure(
        self, task: CellTask, *, last: bool
    ) -> tuple[CellResult, Sequence[tuple[Cell, bool]]]:
        account = measurement.Account(self._setup, lambda _: None, time.monotonic() - task.elapsed)
        cells: list[tuple[Cell, bool]] = []
        work = measurement.Measuring(
            self._setup,
            self._process,
            account,
            [task.round],
            lambda *cell: cells.append(cell),
            lambda _stage, _detail: None,
            tried_again=not last,
            share=task.share,
        )
        crashed = ""
        try:
            work.run()
        except measurement.Crashed as error:
            crashed, cells = str(error), []
        result = CellResult(
            cells={},
            measured_on=account.file.measured_on,
            gpu=account.file.gpu,
            crashed=crashed,
            process=self._process.number,
        )
        return result, cells


def unlike(gpu: Device, other: Device) -> str:
    """What sets two GPUs apart beside their UUIDs; "" where nothing does."""
    pairs = {name: (known(getattr(gpu, name)), known(getattr(other, name)))
             for name in Device.__struct_fields__ if name != "uuid"}  # fmt: skip
    return ", ".join(
        f"{name} {_word(second)} instead of {_word(first)}"
        for name, (first, second) in pairs.items()
        if first != second
    )


def _word(value: object) -> str:
    return "unknown" if value is None else str(value)
