"""A worker that measures a shape of a baseline with all its backends on one GPU, in one process
that lasts over many shapes."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace

from msgspec import UNSET, json

from profkit.capture.gpu import VISIBLE, NoDriver, chosen
from profkit.capture.program_files import program_digest
from profkit.core.errors import EnvironmentProblem
from profkit.core.fingerprint import Device
from profkit.core.lock import gpu_lock
from profkit.core.typed_file import Model, convert, known
from profkit.core.version import __version__
from profkit.execution.protocol import Task
from profkit.study.json import cell_json
from profkit.study.measurement import Crashed, Measuring, Process, Round
from profkit.study.plan import BaselinePlan, Declared
from profkit.study.plan_format import MeasuredOn, PlanFile
from profkit.timing.cell import Cell
from profkit.timing.measurement import Tell, lock_of, of_device

_UNIQUE = ("uuid",)


@dataclass(frozen=True)
class CellTask:
    """A round, the FLOP of its shape, the GPU whose like it must be measured on; None: unknown,
    any. `share` (s) of the budget is what its samples may take, `elapsed` (s) what has passed."""

    round: Round
    flop: float | None
    gpu: Device | None
    share: float
    elapsed: float


class CellResult(Model, frozen=True, kw_only=True):
    """The texts of cells by id, of those measured again by id and round, and the GPU.

    `crashed` is why there are none, `process` which process of the worker measured them.
    """

    cells: dict[str, str]
    again: dict[str, str]
    measured_on: MeasuredOn | None
    gpu: Device | None
    crashed: str
    process: int
    seconds: float


@dataclass(frozen=True)
class Setup:
    """What all tasks share. The plans have no shapes; `target` is the SHA-256 of the script."""

    plan: BaselinePlan
    file: PlanFile
    declared: Declared
    target: str
    version: str = __version__


@dataclass(frozen=True)
class MakeCellWorker:
    """Makes workers of a baseline."""

    setup: Setup

    @contextmanager
    def __call__(self, gpu: int | None) -> Iterator[CellWorker]:
        """A worker, its process ended with the block."""
        with ExitStack() as stack:
            yield CellWorker(self.setup, gpu, stack)


class CellWorker:
    """Measures on the GPU of a number; None: the first that is visible."""

    def __init__(self, setup: Setup, gpu: int | None, stack: ExitStack) -> None:
        self._setup, self._stack = setup, stack
        self._plan = replace(setup.plan, gpu=gpu) if gpu is not None else setup.plan
        self._process = stack.enter_context(Process(self._plan))
        self._gpu: Device | None = None
        self._turn = threading.Lock()

    def stop(self) -> None:
        """End the process."""
        self._process.stop()

    def __call__(self, task: Task) -> bytes:
        """Measure a round; encoded as a CellResult, while the GPU may go on with another."""
        with self._turn:
            self._prepare(task.content.gpu)
            collected = self._measure(task.content, last=task.attempt > 1)
        return json.encode(collected.result())

    def _prepare(self, like: Device | None) -> None:
        """Check this machine, and have its GPU alone."""
        if self._setup.version != __version__:
            raise EnvironmentProblem(
                f"has profkit {__version__}, the driver {self._setup.version}",
                "install the same version everywhere",
            )
        if self._gpu is None:
            file = self._plan.target
            if not file.is_file() or program_digest(file) != self._setup.target:
                raise EnvironmentProblem(
                    f"{file}: {'another file' if file.is_file() else 'no such file'} there",
                    "have the target at the same path everywhere",
                )
            gpu = self._where()
            self._stack.enter_context(gpu_lock(self._lock_name(gpu)))
            self._gpu = gpu
        if like and (other := unlike(like, self._gpu)):
            raise EnvironmentProblem(other, "measure each kind of GPU into its own folder")

    def _lock_name(self, gpu: Device) -> str:
        """As `lock_of`; where NVML knows no GPU the UUID that the process sees."""
        try:
            named = chosen(self._plan.gpu, os.environ.get(VISIBLE))
        except NoDriver:
            named = None
        uuid = known(gpu.uuid)
        return uuid if uuid and not named else lock_of(self._plan.timing)

    def _where(self) -> Device:
        answer = self._process.turn.ask("where", device=self._plan.device)
        return convert(of_device(answer)["gpu"] or {}, Device)

    def _measure(self, task: CellTask, *, last: bool) -> _Collected:
        started, shape = time.monotonic(), task.round.shape.name
        store = _Collected()
        work = Measuring(
            self._plan,
            self._process,
            replace(self._setup.declared, flop={} if task.flop is None else {shape: task.flop}),
            self._setup.file,
            started - task.elapsed,
            _silent,
            [task.round],
            store,
            tried_again=not last,
            share=task.share,
        )
        try:
            work.run()
        except Crashed as error:
            store.crashed = str(error)
        store.process = self._process.number
        store.seconds = time.monotonic() - started
        return store


class _Collected:
    """Cells in memory, and what their result has besides."""

    def __init__(self) -> None:
        self._cells: dict[str, Cell] = {}
        self._again: dict[str, Cell] = {}
        self._file: PlanFile | None = None
        self.crashed = ""
        self.process, self.seconds = 0, 0.0

    def result(self) -> CellResult:
        """With the cells' texts, whose statistics take milliseconds."""
        cells, again = ({}, {}) if self.crashed else (self._cells, self._again)
        return CellResult(
            cells={name: cell_json(cell) for name, cell in cells.items()},
            again={name: cell_json(cell) for name, cell in again.items()},
            measured_on=self._file.measured_on if self._file else None,
            gpu=self._file.gpu if self._file else None,
            crashed=self.crashed,
            process=self.process,
            seconds=self.seconds,
        )

    def save_cell(self, cell: Cell, again: bool) -> None:
        """Keep it."""
        if not again:
            self._cells[cell.id] = cell
        elif cell.latency:
            self._again[f"{cell.id}.{cell.round}"] = cell

    def save_plan(self, file: PlanFile) -> None:
        """Keep the GPU."""
        self._file = file


_silent: Tell = lambda _stage, _detail: None  # noqa: E731


def unlike(gpu: Device, other: Device) -> str:
    """What sets two GPUs apart beside their UUIDs; "" where nothing does."""
    differences = [
        f"{name} {_word(getattr(other, name))} instead of {_word(getattr(gpu, name))}"
        for name in Device.__struct_fields__
        if name not in _UNIQUE and known(getattr(gpu, name)) != known(getattr(other, name))
    ]
    return ", ".join(differences)


def _word(value: object) -> str:
    return "unknown" if value in {UNSET, None} else str(value)
