"""The measuring of a baseline: shape after shape, the backends of one in turns.

One process measures many shapes; it is started anew after a crash. Every cell is kept as soon as
it is known, what fails with its reason.
"""

from __future__ import annotations

import math
import random
import re
import secrets
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any

from msgspec import structs

from profkit.capture.environment import digest
from profkit.core.errors import EnvironmentProblem, ProfkitError
from profkit.core.fingerprint import Device, Fingerprint
from profkit.core.timestamp import timestamp
from profkit.core.typed_file import convert, known
from profkit.study.folder import cell_file, keep_again, read_cells, write_plan, write_whole
from profkit.study.json import cell_json
from profkit.study.matrix import MatrixShape
from profkit.study.plan import BaselinePlan, Declared
from profkit.study.plan_format import MeasuredOn, PlanFile, Run
from profkit.study.record import runs_on_record
from profkit.timing.budget import GPU_PROBES, Outlook, Todo
from profkit.timing.cell import MISSING, Cell, CellStatus
from profkit.timing.measurement import (
    Opened,
    Series,
    Tell,
    environment_of,
    of_device,
    open_target,
    process_of,
)
from profkit.timing.orders import order
from profkit.timing.turns import Died, Silent, Turn

_OUT_OF_MEMORY = re.compile(r"OutOfMemoryError|out of memory|can't allocate memory", re.IGNORECASE)
_DEVICE_LOST = re.compile(r"CUDA error|CUDA_ERROR|AcceleratorError|illegal memory access")
_RAISED = re.compile(r"\w+: ")


class Process:
    """The process that measures, the `number`-th; another one after a crash."""

    def __init__(self, plan: BaselinePlan) -> None:
        self._timing = plan.timing
        self._patience = plan.timeout
        self._stack = ExitStack()
        self._turn: Turn | None = None
        self.number = 0

    def __enter__(self) -> Process:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @property
    def turn(self) -> Turn:
        """A living process."""
        if self._turn is None:
            (subject,) = self._timing.subjects
            environment = environment_of(self._timing)
            self._turn = self._stack.enter_context(process_of(subject, environment, self._patience))
            self.number += 1
        return self._turn

    def end(self) -> None:
        """End it: the next use starts another."""
        self._turn = None
        self._stack.close()


class _Lost(Exception):
    """The process or its device is of no use any more; `culprit` is the backend, "" for all."""

    def __init__(self, culprit: str, why: str) -> None:
        super().__init__(why)
        self.culprit = culprit
        self.why = why


class Measuring:
    """The work on one folder; `todo` has what is missing, in the shuffled order.

    `kept` is the plan as it is to be kept, with the backends that are on record.
    """

    def __init__(
        self,
        plan: BaselinePlan,
        process: Process,
        declared: Declared,
        kept: PlanFile,
        started: float,
        tell: Tell,
    ) -> None:
        self._plan = plan
        self._process = process
        self._declared = declared
        self._kept = kept
        self._started = started
        self._before = kept.seconds or 0.0
        self._runs = runs_on_record(kept)
        self._measured_by: set[int] = set()
        self._created = timestamp()
        self._tell = tell
        self._outlook = Outlook(
            declared.flop,
            plan.samples,
            plan.blocks,
            plan.settings.warmup,
            probes=1 if plan.device == "cpu" else GPU_PROBES,
        )
        self._stage = ""
        self._about = {backend.name: backend for backend in declared.backends}
        self.todo = self._missing()

    def _missing(self) -> list[_Missing]:
        """What to measure of each shape that lacks cells.

        Beside them the first that has a time, which they are compared with: its blocks of then
        did not take turns with theirs. Where the first is missing, all that is compared with it.
        """
        cells = read_cells(self._plan.out)
        done = {cell.id for cell in cells if cell.status not in MISSING}
        timed = {cell.id for cell in cells if cell.latency}
        available = self._declared.available
        order = list(enumerate(self._plan.matrix.shapes))
        random.Random(self._plan.seed).shuffle(order)
        found = []
        for at, shape in order:
            names = [name for name in available if f"{shape.name}.{name}" not in done]
            known = [name for name in available if f"{shape.name}.{name}" in timed]
            if names:
                first = next(name for name in available if name in {*names, *known})
                again = known if first in names else known[:1]
                together = [name for name in available if name in {*names, *again}]
                found.append(_Missing(at, shape, together, tuple(again)))
        return found

    def check_device(self) -> None:
        """Raises EnvironmentProblem on another GPU than the one that the baseline was begun on."""
        if self._kept.measured_on is not None:
            self._check_device(self._process.turn.ask("where", device=self._plan.device))

    def run(self) -> None:
        """All that is missing. Raises EnvironmentProblem, with nothing written, on another GPU
        than the one that the baseline was begun on."""
        self.check_device()
        self._note_time()
        for place, missing in enumerate(self.todo):
            later = [one.todo for one in self.todo[place + 1 :]]
            rest = self._left_words([missing.todo, *later])
            self._stage = f"{place + 1} of {len(self.todo)}  {missing.shape.name}{rest}"
            self._tell(self._stage, "")
            self._shape(missing, later)
            self._note_time()

    def _shape(self, missing: _Missing, later: Sequence[Todo]) -> None:
        """Measure a shape, again without the culprit where one takes the process with it."""
        round_ = _Round(
            missing.at, missing.shape, secrets.token_hex(6), time.monotonic(), missing.again
        )
        left = list(missing.names)
        while not set(left) <= set(round_.again):
            if not self._outlook.fits((round_.shape.name, left), self._budget_left()):
                self._give_up(round_, left, CellStatus.no_time, self._no_time_words())
                return
            try:
                self._measure(round_, left, later)
                return
            except _Lost as lost:
                self._process.end()
                culprits = [lost.culprit] if lost.culprit in left else left
                status = _status_of(lost.why)
                self._give_up(round_, culprits, status, lost.why)
                left = [name for name in left if name not in culprits]

    def _measure(
        self,
        round_: _Round,
        names: Sequence[str],
        later: Sequence[Todo],
    ) -> None:
        started = time.monotonic()
        opened = self._opened(round_, names)
        if opened is None:
            return
        series = self._prepared(round_, opened)
        if all(one.variant in round_.again for one in series):
            return
        calls = {one.variant: float(one.ready["rough"]) for one in series}
        self._outlook.saw_preparation(time.monotonic() - started, list(calls.values()))
        samples = {one.variant: one.sample_seconds for one in series}
        wanted = self._outlook.samples(samples, later, self._budget_left())
        random.Random(f"{self._plan.seed} {round_.shape.name}").shuffle(series)
        taken = self._take_turns(round_, series, wanted)
        self._note_process()
        for one in sorted(taken, key=lambda one: one.variant not in round_.again):
            self._keep(round_, self._measured_cell(round_, one, opened.answer))

    def _opened(self, round_: _Round, names: Sequence[str]) -> Opened | None:
        """The target at a shape, with what can't be measured kept as such; None: nothing can."""
        timing = self._plan.timing
        subject = replace(timing.subjects[0], variants=tuple(names))
        timing = replace(timing, arguments=round_.shape.words)
        try:
            opened = open_target(self._process.turn, subject, timing, self._told)
        except Died as error:
            raise _Lost(error.doing, self._words(error)) from None
        except EnvironmentProblem:
            raise
        except ProfkitError as error:
            if _DEVICE_LOST.search(error.message):
                raise _Lost("", error.message) from None
            self._give_up(round_, names, _status_of(error.message), error.message)
            return None
        self._check_device(opened.answer)
        lost = next((n for n, why in opened.wrong.items() if _DEVICE_LOST.search(why)), None)
        if lost is not None:
            raise _Lost(lost, opened.wrong[lost])
        for name, why in opened.wrong.items():
            self._give_up(round_, [name], _status_of_wrong(why), why, opened.answer)
        for name, why in opened.left_out.items():
            self._give_up(round_, [name], CellStatus.unsupported, why, opened.answer)
        return opened

    def _check_device(self, told: Mapping[str, Any]) -> None:
        """Refuse another GPU than the one that the baseline was begun on."""
        gpu = convert(of_device(told)["gpu"] or {}, Device)
        identity = MeasuredOn(
            device=told["device"],
            name=known(gpu.name),
            uuid=known(gpu.uuid),
            multiprocessors=known(gpu.multiprocessors),
        )
        before = self._kept.measured_on
        if before is None:
            self._kept = structs.replace(self._kept, measured_on=identity, gpu=gpu or None)
            self._note_time()
        elif before != identity:
            raise EnvironmentProblem(
                f"{self._plan.out}: was measured on {_device_words(before)}, "
                f"this is {_device_words(identity)}",
                "go on there, or give --out another folder",
            )

    def _prepared(self, round_: _Round, opened: Opened) -> list[Series]:
        ready = []
        for one in opened.series:
            self._told("warm up", one.variant)
            with self._kept_when_it_fails(round_, one, opened.answer):
                one.prepare(self._plan.timing)
                ready.append(one)
                self._outlook.saw_call(round_.shape.name, one.variant, float(one.ready["rough"]))
        return ready

    def _take_turns(
        self, round_: _Round, series: Sequence[Series], wanted: Mapping[str, int]
    ) -> list[Series]:
        """Blocks in turns, in changing order, until all are there or the time is over; the series
        that were not lost on the way."""
        live = list(series)
        at = 0
        for block in range(self._plan.blocks):
            for one in [live[place] for place in order(len(live), block)]:
                self._told("time", f"block {block + 1} of {self._plan.blocks}, {one.variant}")
                taken = False
                with self._kept_when_it_fails(round_, one, one.answer):
                    if len(live) == 1 and block:
                        one.spacer(wanted[one.variant])
                        at += 1
                    one.block(wanted[one.variant], at)
                    taken = True
                if not taken:
                    live.remove(one)
                at += 1
            if self._budget_left() <= 0:
                break
        for one in live:
            samples = sum(len(block["samples"]) for block in one.blocks)
            seconds = sum(block["seconds"] - sum(block["samples"]) for block in one.blocks)
            self._outlook.saw_gap(seconds / samples)
        return live

    @contextmanager
    def _kept_when_it_fails(
        self, round_: _Round, one: Series, told: Mapping[str, Any]
    ) -> Iterator[None]:
        """A failure of one backend is kept as its cell; raises _Lost where it took all with it."""
        try:
            yield
        except Died as error:
            raise _Lost(one.variant, self._words(error)) from None
        except ProfkitError as error:
            if _DEVICE_LOST.search(error.message):
                raise _Lost(one.variant, error.message) from None
            self._give_up(round_, [one.variant], _status_of(error.message), error.message, told)

    def _words(self, error: Died) -> str:
        if isinstance(error, Silent):
            return f"no answer for {_minutes(self._plan.timeout)}, so that it was ended"
        return error.message

    def _budget_left(self) -> float:
        if self._plan.budget is None:
            return math.inf
        return self._plan.budget - (time.monotonic() - self._started)

    def _no_time_words(self) -> str:
        on = "on others" if self._measured_by else "before it came to measuring"
        return f"the budget of {_minutes(self._plan.budget or 0.0)} was spent {on}"

    def _left_words(self, later: Sequence[Todo]) -> str:
        """About how much longer it takes, once that can be told."""
        if not self._outlook.knows:
            return ""
        rest = min(self._outlook.seconds(later), max(0.0, self._budget_left()))
        return f"  about {_minutes(rest)} left"

    def _told(self, stage: str, what: str) -> None:
        self._tell(self._stage, f"{stage} {what}")

    def _measured_cell(self, round_: _Round, one: Series, told: Mapping[str, Any]) -> Cell:
        latency = one.latency(self._plan.timing)
        taken = len(latency.samples)
        fewer = ""
        if taken < self._plan.samples:
            fewer = f"{taken} of {self._plan.samples}, for the budget of " + _minutes(
                self._plan.budget or 0.0
            )
        cell = self._cell(round_, one.variant, told, status=CellStatus.measured, latency=latency)
        return structs.replace(cell, fewer=fewer)

    def _give_up(
        self,
        round_: _Round,
        names: Sequence[str],
        status: CellStatus,
        why: str,
        told: Mapping[str, Any] | None = None,
    ) -> None:
        for name in names:
            self._keep(round_, self._cell(round_, name, told or {}, status=status, reason=why))

    def _cell(self, round_: _Round, name: str, told: Mapping[str, Any], **found: Any) -> Cell:
        surroundings = dict(of_device(told)) if told else {}
        of_variant = told.get("variants", {}).get(name, {})
        return Cell(
            shape=round_.shape.name,
            at=round_.at,
            arguments=dict(round_.shape.arguments),
            backend=name,
            version=self._about[name].version,
            setting=self._about[name].setting,
            chosen=of_variant.get("chosen"),
            asked=self._plan.samples,
            round=round_.name,
            fingerprint=convert(surroundings, Fingerprint),
            fingerprint_sha256=digest(surroundings) if surroundings else None,
            created=timestamp(),
            seconds=time.monotonic() - round_.started,
            **found,
        )

    def _keep(self, round_: _Round, cell: Cell) -> None:
        """A file for the cell; for one that is there already another one, if it has a time."""
        if cell.backend not in round_.again:
            write_whole(cell_file(self._plan.out, cell.id), cell_json(cell))
        elif cell.latency:
            keep_again(self._plan.out, cell, cell_json(cell))

    def _note_process(self) -> None:
        """Keep that this process measured, before its cells are kept."""
        if self._process.number not in self._measured_by:
            self._measured_by.add(self._process.number)
            self._note_time()

    def _note_time(self) -> None:
        """Keep what it took so far, and the GPU."""
        this = Run(
            command=self._plan.command,
            created=self._created,
            processes=len(self._measured_by),
        )
        self._kept = structs.replace(
            self._kept,
            seconds=self._before + time.monotonic() - self._started,
            runs=(*self._runs, *([this] if self._measured_by else [])),
        )
        write_plan(self._plan.out, self._kept)


@dataclass(frozen=True)
class _Missing:
    """What is to be measured of a shape; those of `again` have their cells already."""

    at: int
    shape: MatrixShape
    names: Sequence[str]
    again: Sequence[str]

    @property
    def todo(self) -> Todo:
        return self.shape.name, self.names


@dataclass(frozen=True)
class _Round:
    """A shape that is being measured: its place, and the name of what takes turns now."""

    at: int
    shape: MatrixShape
    name: str
    started: float
    again: Sequence[str]


def _status_of(why: str) -> CellStatus:
    return CellStatus.out_of_memory if _OUT_OF_MEMORY.search(why) else CellStatus.failed


def _status_of_wrong(why: str) -> CellStatus:
    """Of a check that failed: its result was wrong, or there was none."""
    raised = _RAISED.match(why) or "can't" in why or _OUT_OF_MEMORY.search(why)
    return _status_of(why) if raised else CellStatus.wrong


def _device_words(identity: MeasuredOn) -> str:
    if identity.device == "cpu":
        return "the CPU"
    return f"{identity.name or 'a GPU'} {identity.uuid or ''}".strip()


def _minutes(seconds: float) -> str:
    if seconds < 10:
        return f"{seconds:.2g} s"
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"
