"""The measurement of a baseline: shape after shape, its backends interleaved.

One process measures many shapes; it is restarted after a crash. Every cell is saved as soon as it
is measured, failures with their reason.
"""

from __future__ import annotations

import math
import random
import re
import secrets
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any, Literal

from msgspec import UNSET, Struct, field, structs

from profkit.capture.environment import digest
from profkit.core.duration import duration
from profkit.core.errors import BadInput, EnvironmentProblem, ProfkitError
from profkit.core.fingerprint import Device, Fingerprint
from profkit.core.timestamp import timestamp
from profkit.core.typed_file import known, part
from profkit.execution.placement import Placement
from profkit.study.folder import cell_place, read_cells
from profkit.study.matrix import Matrix, MatrixShape
from profkit.study.plan_format import Backend, MeasuredOn, PlanFile, Run
from profkit.timing.budget import level, samples_a_block
from profkit.timing.cell import MISSING, Cell, CellStatus
from profkit.timing.loaded import Loaded, Located
from profkit.timing.measurement import (
    Opened,
    Session,
    Tell,
    TimingPlan,
    environment_of,
    open_target,
    process_of,
    take_turns,
)
from profkit.timing.turns import Died, Silent, Turn

_OUT_OF_MEMORY = re.compile(r"OutOfMemoryError|out of memory|can't allocate memory", re.IGNORECASE)
_DEVICE_LOST = re.compile(r"CUDA error|CUDA_ERROR|AcceleratorError|illegal memory access")
_RAISED = re.compile(r"\w+: ")
_GAP = 1e-4  # s between two samples: an L2 flush and its launches
TIMEOUT = 600.0  # s, chosen: above the compilation of any kernel


class Process:
    """The process that measures, the `number`-th; another one after a crash."""

    def __init__(self, plan: BaselinePlan) -> None:
        self._timing = plan.timing
        self._patience = plan.timeout
        self._stack = ExitStack()
        self._turn: Turn | None = None
        self._stopped = False
        self.number = 0

    def __enter__(self) -> Process:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @property
    def turn(self) -> Turn:
        """A living process."""
        if self._stopped:
            raise ProfkitError("the measurement was ended")
        if self._turn is None:
            timing, (subject,) = self._timing, self._timing.subjects
            timed = process_of(subject, environment_of(timing), self._patience, timing.program)
            self._turn = self._stack.enter_context(timed)
            self.number += 1
        return self._turn

    def stop(self) -> None:
        """End it for good, from another thread."""
        self._stopped, turn = True, self._turn
        if turn is not None:
            turn.stop()

    def end(self) -> None:
        """End it: the next use starts another."""
        self._turn = None
        self._stack.close()


class _Lost(Exception):
    """The process or its device has failed; `culprit` is the backend, "" for all."""

    def __init__(self, culprit: str, why: str) -> None:
        super().__init__(why)
        self.culprit = culprit
        self.why = why


class BaselinePlan(Struct, frozen=True):
    """Shapes and backends to measure, and how: each shape as by `timing`, of one target.

    `backends` are variants of the target, all where none is named. `budget` and `timeout` (for a
    response of a cell) are in seconds. `profiled` cells get a profile. `command` is saved with the
    results. `on` is where, None: on one GPU of this machine.
    """

    timing: TimingPlan
    matrix: Matrix
    out: Path
    backends: tuple[str, ...] = ()
    budget: float | None = None
    timeout: float = TIMEOUT
    profiled: Literal["none", "top", "all"] = "none"
    resume: bool = False
    command: tuple[str, ...] = ()
    on: Placement | None = None

    @property
    def target(self) -> Path:
        """The target's script."""
        return self.timing.subjects[0].path


class Declared(Struct, frozen=True):
    """The target's declaration: its name, and the backends to measure."""

    name: str
    backends: tuple[Backend, ...]

    def about(self, name: str) -> Backend:
        """A backend."""
        return next(backend for backend in self.backends if backend.name == name)

    @property
    def available(self) -> list[str]:
        return [backend.name for backend in self.backends if backend.available]


@dataclass(frozen=True)
class Setup:
    """What all measurements of a baseline share: the request, the target's declaration, and the
    plan file as it was when they began."""

    plan: BaselinePlan
    declared: Declared
    file: PlanFile


class Account:
    """The plan file of a baseline while it is measured: the time and the `processes` of this run,
    which `save` adds to it."""

    def __init__(
        self, setup: Setup, save: Callable[[PlanFile], None], started: float | None = None
    ) -> None:
        self.file, self._command = setup.file, setup.plan.command
        self.started = time.monotonic() if started is None else started
        self.created = timestamp()
        self.processes: set[Hashable] = set()
        self._save, self._before, self._runs = save, self.file.seconds or 0.0, self.file.runs or ()
        if self.file.runs is UNSET and self.file.measured_on is not None:  # it kept no account
            first = Run(command=self.file.command, created=self.file.created, processes=None)
            self._runs = (first,)

    def save(self, **changes: Any) -> None:
        """Save the plan with changes, and the time so far."""
        seconds, runs = self._before + time.monotonic() - self.started, self._runs
        if count := len(self.processes):
            runs = (*runs, Run(command=self._command, created=self.created, processes=count))
        self.file = structs.replace(self.file, seconds=seconds, runs=runs, **changes)
        self._save(self.file)


class Round(Struct, frozen=True):
    """A shape to measure with interleaved backends; those of `again` have cells already."""

    place: int
    shape: MatrixShape
    names: Sequence[str]
    again: Sequence[str]
    id: str = field(default_factory=lambda: secrets.token_hex(6))


def cell_key(setup: Setup, shape: MatrixShape, backend: Backend) -> str:
    """What a cell is of, as a SHA-256: a cell of another key is another."""
    timing, settings = setup.plan.timing, setup.plan.timing.settings
    return digest(
        {
            "target": setup.file.target.sha256,
            "arguments": shape.arguments,
            "backend": backend.name,
            "version": backend.version,
            **part(timing, "samples", "blocks", "seed", "device"),
            "settings": [settings.timer.value, settings.cache.value, settings.warmup],
        }
    )


def missing_rounds(setup: Setup) -> list[Round]:
    """The backends to measure at each shape with missing cells, in the shuffled order.

    In addition the first one with a time, their reference: its earlier blocks are not
    interleaved with theirs. Where the first is missing, all that are compared with it. Raises
    BadInput for a cell of another shape.
    """
    plan, declared = setup.plan, setup.declared
    available, shapes = declared.available, {shape.name: shape for shape in plan.matrix.shapes}
    saved = read_cells(plan.out)
    for cell in saved:
        if cell.shape not in shapes:
            file = plan.out / cell_place(cell, again=False)
            raise BadInput(
                f"{file}: of the shape {cell.shape}, which the matrix lacks",
                "remove it, and resume",
            )
    cells = [
        cell
        for cell in saved
        if cell.key is None  # of an older profkit
        or cell.backend not in available
        or cell.key == cell_key(setup, shapes[cell.shape], declared.about(cell.backend))
    ]
    done = {cell.id for cell in cells if cell.status not in MISSING}
    timed = {cell.id for cell in cells if cell.latency}
    order = list(enumerate(plan.matrix.shapes))
    random.Random(plan.timing.seed).shuffle(order)
    rounds = []
    for place, shape in order:
        names = [name for name in available if f"{shape.name}.{name}" not in done]
        known = [name for name in available if f"{shape.name}.{name}" in timed]
        if names:
            first = next(name for name in available if name in {*names, *known})
            again = known if first in names else known[:1]
            together = [name for name in available if name in {*names, *again}]
            rounds.append(Round(place, shape, together, tuple(again)))
    return rounds


class Crashed(Exception):
    """The process or its device has failed, at the first attempt."""


class Measuring:
    """The work on rounds of a baseline, whose cells `save` gets, with whether they were `again`.

    A crash ends it where it is to be `tried_again`: it raises Crashed. `share` (s) of the budget is
    what the samples may take.
    """

    def __init__(
        self,
        setup: Setup,
        process: Process,
        account: Account,
        rounds: Sequence[Round],
        save: Callable[[Cell, bool], None],
        tell: Tell,
        *,
        tried_again: bool = False,
        share: float = math.inf,
    ) -> None:
        self._setup, self._plan, self._account = setup, setup.plan, account
        self._timing = setup.plan.timing
        self._save_cell, self._tell = save, tell
        self._tried_again, self._share = tried_again, share
        self._process = process
        self._shapes: list[tuple[float, float]] = []
        """Seconds of each shape so far, and those of its samples."""
        self._stage = ""
        self.todo = rounds

    def check_device(self) -> None:
        """Raises EnvironmentProblem without a device, and on another than that of earlier cells."""
        place = self._process.turn.ask("where", Located, device=self._timing.device)
        if self._account.file.measured_on is not None:
            self._check_device(place)

    def run(self) -> None:
        """Measure all missing cells; raises EnvironmentProblem on another GPU than before."""
        self._account.save()
        for index, round_ in enumerate(self.todo):
            self._rest = len(self.todo) - index
            place = f"{index + 1} of {len(self.todo)}  {round_.shape.name}"
            self._stage = f"{place}{self._left_words()}"
            self._tell(self._stage, "")
            self._shape(round_)
            self._account.save()

    def _shape(self, round_: Round) -> None:
        """Measure a shape, again without the culprit where one crashes the process."""
        self._round_started = time.monotonic()
        left = list(round_.names)
        while not set(left) <= set(round_.again):
            if self._is_spent():
                spent = "on other cells" if self._account.processes else "before the first cell"
                reason = f"the budget of {duration(self._plan.budget or 0.0)} was spent {spent}"
                self._give_up(round_, left, CellStatus.no_time, reason)
                return
            try:
                self._measure(round_, left)
                return
            except _Lost as lost:
                self._process.end()
                if self._tried_again:
                    raise Crashed(
                        f"{lost.culprit}: {lost.why}" if lost.culprit else lost.why
                    ) from None
                culprits = [lost.culprit] if lost.culprit in left else left
                self._give_up(round_, culprits, _status_of(lost.why), lost.why)
                left = [name for name in left if name not in culprits]

    def _measure(self, round_: Round, names: Sequence[str]) -> None:
        opened = self._opened(round_, names)
        if opened is None:
            return
        ready = self._prepared(round_, opened)
        if all(series.variant in round_.again for series in ready):
            return
        wanted = self._samples(ready)
        random.Random(f"{self._timing.seed} {round_.shape.name}").shuffle(ready)
        measured = self._take(round_, ready, wanted)
        if self._process.number not in self._account.processes:  # before the cells are saved
            self._account.processes.add(self._process.number)
            self._account.save()
        for series in sorted(measured, key=lambda series: series.variant not in round_.again):
            latency = series.latency(self._timing)
            count, fewer = len(latency.samples), ""
            if count < self._timing.samples:
                budget = duration(self._plan.budget or 0.0)
                fewer = f"{count} of {self._timing.samples}, for the budget of {budget}"
            self._save(round_, series.variant, opened.loaded, status=CellStatus.measured,
                       latency=latency, fewer=fewer)  # fmt: skip
        sampled = sum(block.seconds or 0.0 for series in measured for block in series.blocks)
        self._shapes.append((time.monotonic() - self._round_started, sampled))

    def _samples(self, ready: Sequence[Session]) -> dict[str, int]:
        """The samples of a block for each backend of a shape, in its share of the budget: an equal
        part of what is left, without what shapes took so far beside their samples."""
        plan = self._timing
        count = plan.samples_in_a_block * plan.blocks
        costs = {series.variant: count * (series.sample_seconds + _GAP) for series in ready}
        beside = fmean(whole - sampled for whole, sampled in self._shapes or [(0.0, 0.0)])
        share = min(self._share, self._budget_left() / self._rest - beside)
        limit = level([*costs.values()], share)
        return {
            name: samples_a_block(plan.samples, plan.blocks, cost, limit)
            for name, cost in costs.items()
        }

    def _opened(self, round_: Round, names: Sequence[str]) -> Opened | None:
        """The target at a shape; failures are saved as cells; None: nothing can be measured."""
        timing = self._timing
        subject = replace(timing.subjects[0], variants=tuple(names))
        timing = replace(timing, arguments=round_.shape.words)
        try:
            opened = open_target(self._process.turn, subject, timing, self._show)
        except Died as error:
            raise _Lost(error.doing, self._words(error)) from None
        except EnvironmentProblem:
            raise
        except ProfkitError as error:
            if _DEVICE_LOST.search(error.message):
                raise _Lost("", error.message) from None
            self._give_up(round_, names, _status_of(error.message), error.message)
            return None
        self._check_device(opened.loaded)
        lost = next((name for name, why in opened.wrong.items() if _DEVICE_LOST.search(why)), None)
        if lost is not None:
            raise _Lost(lost, opened.wrong[lost])
        for name, why in opened.wrong.items():
            self._give_up(round_, [name], _status_of_wrong(why), why, opened.loaded)
        for name, why in opened.left_out.items():
            self._give_up(round_, [name], CellStatus.unsupported, why, opened.loaded)
        return opened

    def _check_device(self, place: Located) -> None:
        """Refuse a GPU other than that of the baseline's earlier cells."""
        gpu = place.used.gpu or Device()
        identity = MeasuredOn(
            device=place.device,
            name=known(gpu.name),
            uuid=known(gpu.uuid),
            multiprocessors=known(gpu.multiprocessors),
        )
        before = self._account.file.measured_on
        if before is None:
            self._account.save(measured_on=identity, gpu=gpu or None)
        elif before != identity:
            raise EnvironmentProblem(
                f"{self._plan.out}: was measured on {_device_words(before)}, "
                f"this is {_device_words(identity)}",
                "resume there, or give --output another folder",
            )

    def _prepared(self, round_: Round, opened: Opened) -> list[Session]:
        ready = []
        for series in opened.series:
            self._show("warm up", series.variant)
            if self._succeeds(round_, series, partial(series.prepare, self._timing)):
                ready.append(series)
        return ready

    def _take(
        self, round_: Round, ready: Sequence[Session], wanted: Mapping[str, int]
    ) -> list[Session]:
        """Blocks, until all are done or the budget is spent;
        the series that did not fail."""
        live, attempt = list(ready), partial(self._succeeds, round_)
        take_turns(live, self._timing, self._show, samples=wanted, attempt=attempt,
                   spent=self._is_spent)  # fmt: skip
        return live

    def _is_spent(self) -> bool:
        return self._budget_left() <= 0

    def _succeeds(self, round_: Round, series: Session, step: Callable[[], None]) -> bool:
        """Whether a step of one backend does not fail; a failure is saved as its cell. Raises _Lost
        where it crashed the process."""
        try:
            step()
        except Died as error:
            raise _Lost(series.variant, self._words(error)) from None
        except ProfkitError as error:
            if _DEVICE_LOST.search(error.message):
                raise _Lost(series.variant, error.message) from None
            status = _status_of(error.message)
            self._give_up(round_, [series.variant], status, error.message, series.loaded)
            return False
        return True

    def _words(self, error: Died) -> str:
        if isinstance(error, Silent):
            return f"no answer for {duration(self._plan.timeout)}, ended"
        return error.message

    def _budget_left(self) -> float:
        if self._plan.budget is None:
            return math.inf
        return self._plan.budget - (time.monotonic() - self._account.started)

    def _left_words(self) -> str:
        """The estimated remaining time, once a shape was measured."""
        if not self._shapes:
            return ""
        seconds = fmean(whole for whole, _ in self._shapes) * self._rest
        return f"  about {duration(min(seconds, max(0.0, self._budget_left())))} left"

    def _show(self, stage: str, detail: str) -> None:
        self._tell(self._stage, f"{stage} {detail}")

    def _give_up(
        self,
        round_: Round,
        names: Sequence[str],
        status: CellStatus,
        reason: str,
        loaded: Loaded | None = None,
    ) -> None:
        for name in names:
            self._save(round_, name, loaded, status=status, reason=reason)

    def _save(self, round_: Round, name: str, loaded: Loaded | None, **outcome: Any) -> None:
        surroundings = loaded.used if loaded else Fingerprint()
        facts = loaded.variants.get(name) if loaded else None
        cell = cell_of(
            self._setup,
            name,
            round_,
            chosen=facts.chosen if facts else None,
            fingerprint=surroundings,
            fingerprint_sha256=digest(surroundings) if surroundings else None,
            seconds=time.monotonic() - self._round_started,
            **outcome,
        )
        self._save_cell(cell, cell.backend in round_.again)


def cell_of(setup: Setup, name: str, round_: Round, **outcome: Any) -> Cell:
    """A backend's cell of a round, as it came out."""
    backend = setup.declared.about(name)
    return Cell(
        key=cell_key(setup, round_.shape, backend),
        shape=round_.shape.name,
        at=round_.place,
        arguments=dict(round_.shape.arguments),
        backend=name,
        version=backend.version,
        setting=backend.setting,
        asked=setup.plan.timing.samples,
        round=round_.id,
        created=timestamp(),
        **outcome,
    )


def _status_of(why: str) -> CellStatus:
    return CellStatus.out_of_memory if _OUT_OF_MEMORY.search(why) else CellStatus.failed


def _status_of_wrong(why: str) -> CellStatus:
    """The status of a failed check: a wrong result, or none."""
    raised = _RAISED.match(why) or "can't" in why or _OUT_OF_MEMORY.search(why)
    return _status_of(why) if raised else CellStatus.wrong


def _device_words(identity: MeasuredOn) -> str:
    if identity.device == "cpu":
        return "the CPU"
    return f"{identity.name or 'a GPU'} {identity.uuid or ''}".strip()
