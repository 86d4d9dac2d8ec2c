"""A baseline on several GPUs: a shape with all its backends goes to one GPU, shapes to all.

The driver alone writes the folder; results come back as bytes.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Literal

from msgspec import UNSET, Struct, UnsetType, json, structs

from profkit.core.fingerprint import Device
from profkit.core.timestamp import timestamp
from profkit.core.typed_file import known
from profkit.execution.driver import Reply, State, drive
from profkit.execution.executors import executor_of
from profkit.execution.placement import Placement
from profkit.execution.protocol import Executor, Fate, MakeWorker, Outcome, host_name
from profkit.execution.slurm import cancel_jobs, collected
from profkit.study.cell_worker import CellResult, CellTask, MakeCellWorker, Setup, unlike
from profkit.study.folder import AGAIN, cell_file, write_whole
from profkit.study.json import cell_json
from profkit.study.matrix import Matrix
from profkit.study.measurement import FolderStore, Round, cell_key, cell_of
from profkit.study.plan import BaselinePlan, Declared
from profkit.study.plan_format import PlanFile, Run
from profkit.study.progress import CANCEL, JOBS, ProgressFile, Running, Unused, write_progress
from profkit.timing.cell import CellStatus
from profkit.timing.measurement import Tell

_SAVED = 1.0  # s, chosen: how old the progress may be
_PLAN_SAVED = 30.0  # s, chosen: a plan of 10,000 shapes takes a tenth of a second to write


def distribute(
    plan: BaselinePlan,
    place: Placement,
    declared: Declared,
    file: PlanFile,
    rounds: Sequence[Round],
    tell: Tell,
) -> None:
    """Measure rounds; each is saved when its result comes.

    Raises EnvironmentProblem where no GPU can be used.
    """
    folder = plan.out
    (folder / CANCEL).unlink(missing_ok=True)
    empty = Matrix(plan.matrix.name, "", ())
    bare = structs.replace(
        file,
        asked=structs.replace(file.asked, matrix=empty),
        measured_on=None,
        gpu=None,
        runs=UNSET,
    )
    setup = Setup(
        plan=replace(plan, target=plan.target.resolve(), matrix=empty, on=None),
        file=bare,
        declared=replace(declared, flop={}),
        target=file.target.sha256 or "",
    )
    make: MakeWorker = MakeCellWorker(setup)
    study = _Study(plan, declared, file, rounds, tell)
    study.save_plan()
    (folder / AGAIN).mkdir(exist_ok=True)
    cancel_jobs(folder / JOBS, place.cluster)
    for outcome in collected(folder / JOBS):  # of jobs that outlived an earlier driver
        study.accept_left(outcome)
    tasks = [each.shape.name for each in rounds if each.shape.name not in study.settled]
    executor = executor_of(place, make, folder / JOBS, on_cpu=plan.device == "cpu")
    study.executor = executor
    end: Literal["finished", "canceled", "failed"] = "failed"
    try:
        drive(executor, tasks, study)
        end = "finished"
    except KeyboardInterrupt:
        end = "canceled"
        raise
    finally:
        executor.close()
        study.save_plan()
        study.save_progress(end)
        (folder / CANCEL).unlink(missing_ok=True)
        with suppress(OSError):
            (folder / AGAIN).rmdir()


class Canceled(KeyboardInterrupt):
    """Ended by `profkit baseline cancel`."""


class _Study:
    """Makes tasks of rounds, and cells of results."""

    executor: Executor

    def __init__(
        self,
        plan: BaselinePlan,
        declared: Declared,
        file: PlanFile,
        rounds: Sequence[Round],
        tell: Tell,
    ) -> None:
        self._plan, self._declared, self._file, self._tell = plan, declared, file, tell
        self._rounds = {each.shape.name: each for each in rounds}
        self._started = time.monotonic()
        self._created = timestamp()
        self._before, self._runs = file.seconds or 0.0, known(file.runs) or ()
        self._processes: set[tuple[str, int]] = set()
        self._store = FolderStore(plan.out)
        self._state = State(len(rounds))
        self._progress_saved = self._plan_saved = 0.0
        self.settled: set[str] = set()

    def content(self, task: str, _: int) -> CellTask | None:
        """The round; None where the budget is spent."""
        round_, budget, share = self._rounds[task], self._plan.budget, math.inf
        elapsed = time.monotonic() - self._started
        if budget is not None:
            left = budget - elapsed
            if left <= 0:
                reason = f"the budget of {budget:g} s was spent on other cells"
                self._leave(round_, CellStatus.no_time, reason)
                return None
            shapes = self._state.total - self._state.finished
            share = left * max(1, self.executor.workers) / max(1, shapes)
        return CellTask(round_, self._declared.flop.get(task), self._file.gpu, share, elapsed)

    def accept(self, _: str, outcome: Outcome) -> Reply:
        """Write the cells, of a GPU like that of the others."""
        result = json.decode(outcome.result, type=CellResult)
        if result.crashed:
            return Reply(failed=result.crashed)
        if result.gpu and (other := self._other_gpu(result.gpu)):
            return Reply(excluded=other)
        self._processes.add((outcome.worker, result.process))
        if self._note_gpu(result):
            self.save_plan()
        for name, text in result.again.items():
            write_whole(self._plan.out / AGAIN / f"{name}.json", text)
        for name, text in result.cells.items():
            write_whole(cell_file(self._plan.out, name), text)
        return Reply()

    def accept_left(self, outcome: Outcome) -> None:
        """Write the cells of a result that nobody asked for any more, if they are still missing."""
        round_ = self._rounds.get(outcome.task)
        if round_ is None or round_.again or outcome.fate is not Fate.done:
            return
        cells = json.decode(outcome.result, type=CellResult).cells
        target = self._file.target.sha256
        keys = {
            f"{outcome.task}.{name}": cell_key(
                target, self._plan, round_.shape, self._declared.about(name)
            )
            for name in round_.names
        }
        measured = {name: json.decode(text, type=_Key).key for name, text in cells.items()}
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
            self.save_plan()
        left = "" if state.remaining is None else f"  about {state.remaining:.0f} s left"
        self._tell(f"{state.finished} of {state.total}{left}", ", ".join(state.running))

    def save_progress(self, end: Literal["running", "finished", "canceled", "failed"]) -> None:
        """Write progress.json."""
        state, now = self._state, time.monotonic()
        running = [
            Running(shape=task, worker=worker, seconds=now - state.since.get(task, now))
            for task, worker in state.running.items()
            if end == "running"
        ]
        progress = ProgressFile(
            executor=self.executor.name,
            host=host_name(),
            process=os.getpid(),
            started=self._created,
            updated=timestamp(),
            state=end,
            total=state.total,
            finished=state.finished,
            waiting=state.waiting,
            lost=state.lost,
            running=tuple(running),
            given_up=_unused(state.given_up),
            excluded=_unused(state.excluded),
            rate=state.rate,
            remaining=state.remaining if end == "running" else None,
        )
        with suppress(OSError):  # of use, but no result
            write_progress(self._plan.out, progress)

    def save_plan(self) -> None:
        """Write baseline.json, with the time so far and the GPUs."""
        runs: tuple[Run, ...] | UnsetType = self._runs or UNSET
        if self._processes:
            count = len(self._processes)
            run = Run(command=self._plan.command, created=self._created, processes=count)
            runs = (*self._runs, run)
        self._plan_saved = time.monotonic()
        seconds = self._before + self._plan_saved - self._started
        self._file = structs.replace(self._file, seconds=seconds, runs=runs)
        self._store.save_plan(self._file)

    def _other_gpu(self, gpu: Device) -> str:
        return unlike(self._file.gpu, gpu) if self._file.gpu else ""

    def _note_gpu(self, result: CellResult) -> bool:
        """Whether the plan has changed."""
        if self._file.measured_on is None:
            self._file = structs.replace(self._file, measured_on=result.measured_on, gpu=result.gpu)
        gpus = known(self._file.gpus) or ((self._file.gpu,) if self._file.gpu else ())
        uuids = [gpu.uuid for gpu in gpus]
        if result.gpu is None or (result.gpu.uuid in uuids and self._file.gpus is not UNSET):
            return False
        if result.gpu.uuid not in uuids:
            gpus = (*gpus, result.gpu)
        self._file = structs.replace(self._file, gpus=gpus)
        return True

    def _leave(self, round_: Round, status: CellStatus, reason: str) -> None:
        target = self._file.target.sha256
        for name in round_.names:
            if name not in round_.again:
                backend = self._declared.about(name)
                cell = cell_of(self._plan, target, backend, round_, status=status, reason=reason)
                write_whole(cell_file(self._plan.out, cell.id), cell_json(cell))


class _Key(Struct):
    key: str | None


def _unused(reasons: Any) -> tuple[Unused, ...]:
    return tuple(Unused(name=name, reason=reason) for name, reason in reasons.items())
