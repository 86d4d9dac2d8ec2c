"""A baseline measured: shape after shape, the backends of a shape in turns, each cell kept at once.

One process measures many shapes; it is started anew after a crash. What is in the folder is enough
to go on after an interruption of any kind.
"""

from __future__ import annotations

import hashlib
import math
import random
import re
import secrets
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from profkit.analysis.baseline import Baseline, derive
from profkit.analysis.budget import Outlook, Todo
from profkit.capture.environment import digest
from profkit.capture.timing import Settings
from profkit.capture.turns import Died, Turn
from profkit.errors import BadInput, EnvironmentProblem, ProfkitError, UsageError
from profkit.ingest.cell import MISSING, Cell, Status
from profkit.ingest.matrix import Matrix, MatrixShape
from profkit.render.baseline_json import cell_json, cells_parquet, summary_json
from profkit.store.baseline import (
    SUMMARY,
    TABLE,
    cell_file,
    held,
    read_cells,
    read_plan,
    read_profiles,
    write_plan,
    write_whole,
)
from profkit.store.floor import read_floor
from profkit.store.lock import gpu_lock
from profkit.timing import (
    Opened,
    Series,
    Subject,
    Tell,
    TimingPlan,
    environment_of,
    lock_of,
    of_device,
    open_target,
    process_of,
)

BLOCKS = 8
WARMUP = 0.2
_OUT_OF_MEMORY = re.compile(r"OutOfMemoryError|out of memory|can't allocate memory", re.IGNORECASE)
_DEVICE_LOST = re.compile(r"CUDA error|CUDA_ERROR|AcceleratorError|illegal memory access")
_RAISED = re.compile(r"\w+: ")


@dataclass(frozen=True)
class BaselinePlan:
    """What to measure and how.

    `backends` are variants of the target, all where none is named. `samples` is for each cell,
    taken in `blocks` blocks. `budget` is in seconds. `command` is kept with the results.
    """

    target: Path
    matrix: Matrix
    out: Path
    backends: tuple[str, ...] = ()
    settings: Settings = field(default_factory=lambda: Settings(warmup=WARMUP))
    samples: int = 100
    blocks: int = BLOCKS
    seed: int = 42
    budget: float | None = None
    device: str | None = None
    gpu: int | None = None
    resume: bool = False
    command: tuple[str, ...] = ()

    @property
    def timing(self) -> TimingPlan:
        """How a shape is timed."""
        return TimingPlan(
            subjects=(Subject(self.target),),
            settings=self.settings,
            samples=self.samples,
            blocks=self.blocks,
            seed=self.seed,
            device=self.device,
            gpu=self.gpu,
        )


def measure_baseline(plan: BaselinePlan, tell: Tell) -> None:
    """Measure what is missing in the plan's folder; every cell is kept as soon as it is known.

    `tell` gets (stage, what goes on). Raises UsageError for a folder that holds another baseline,
    EnvironmentProblem for another GPU than before, no device, no room.
    """
    started = time.monotonic()
    before = _continued(plan)
    with gpu_lock(lock_of(plan.timing)), held(plan.out), _Process(plan) as process:
        tell("start", "")
        declared = _declared(plan, process, before)
        before = before or _first_plan(plan, declared)
        write_plan(plan.out, {**before, "backends": declared.backends})
        _Measuring(plan, process, declared, before, started, tell).run()


def _continued(plan: BaselinePlan) -> dict[str, Any] | None:
    """The plan of the baseline to go on with; raises UsageError where that is not meant."""
    before = read_plan(plan.out)
    if before is None:
        return None
    if not plan.resume:
        raise UsageError(
            f"{plan.out}: holds a baseline", "go on with it with --resume, or give --out another"
        )
    now = _asked(plan)
    for name, value in now.items():
        if before["asked"].get(name) != value:
            raise UsageError(
                f"{plan.out}: was begun with another {name}",
                "give the same options, or --out another folder",
            )
    return dict(before)


def _asked(plan: BaselinePlan) -> dict[str, Any]:
    """What must not change from one run to the next."""
    return {
        "target": plan.target.name,
        "matrix": {
            "name": plan.matrix.name,
            "about": plan.matrix.about,
            "shapes": [
                {"name": shape.name, "arguments": dict(shape.arguments)}
                for shape in plan.matrix.shapes
            ],
        },
        "samples": plan.samples,
        "blocks": plan.blocks,
        "seed": plan.seed,
        "timer": plan.settings.timer.value,
        "cache": plan.settings.cache.value,
        "warmup": plan.settings.warmup,
        "device": plan.device,
        "backends": list(plan.backends),
    }


@dataclass(frozen=True)
class _Declared:
    """What the target declares: its name, the backends to measure, the work of each shape (FLOP).

    `backends` has `name`, `version`, `available`, `reason`, `setting` of each.
    """

    name: str
    backends: list[dict[str, Any]]
    flop: Mapping[str, float]

    @property
    def available(self) -> list[str]:
        return [one["name"] for one in self.backends if one["available"]]


def _declared(plan: BaselinePlan, process: _Process, before: Mapping[str, Any] | None) -> _Declared:
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
        except ProfkitError as error:
            failure = failure or error
            continue
        told = told or declared
        work = declared["target"]["work"]
        if work:
            flop[shape.name] = work["flop"]
    if told is None:
        assert failure is not None
        raise failure
    known = told["variants"]
    begun = [one["name"] for one in before["backends"]] if before else []
    names = list(plan.backends) or list(dict.fromkeys([*begun, *known]))
    for name in names:
        if name not in known and name not in begun:
            raise UsageError(
                f"{told['target']['name']} has no backend {name!r}", f"it has {', '.join(known)}"
            )
    return _Declared(
        told["target"]["name"], [_backend(name, known.get(name)) for name in names], flop
    )


def _backend(name: str, about: Mapping[str, Any] | None) -> dict[str, Any]:
    reason = "the target does not have it any more" if about is None else about["unavailable"]
    return {
        "name": name,
        "version": about["version"] if about else None,
        "available": not reason,
        "reason": reason,
        "setting": about["setting"] if about else "",
    }


def _first_plan(plan: BaselinePlan, declared: _Declared) -> dict[str, Any]:
    return {
        "asked": _asked(plan),
        "target": {
            "name": declared.name,
            "file": plan.target.name,
            "sha256": hashlib.sha256(plan.target.read_bytes()).hexdigest(),
        },
        "gpu": None,
        "measured_on": None,
        "budget": plan.budget,
        "command": list(plan.command),
        "created": _now(),
        "seconds": 0.0,
    }


class _Process:
    """The process that measures; another one after a crash."""

    def __init__(self, plan: BaselinePlan) -> None:
        self._timing = plan.timing
        self._stack = ExitStack()
        self._turn: Turn | None = None

    def __enter__(self) -> _Process:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @property
    def turn(self) -> Turn:
        """A living process."""
        if self._turn is None:
            (subject,) = self._timing.subjects
            environment = environment_of(self._timing)
            self._turn = self._stack.enter_context(process_of(subject, environment))
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


class _Measuring:
    """The work on one folder."""

    def __init__(
        self,
        plan: BaselinePlan,
        process: _Process,
        declared: _Declared,
        before: dict[str, Any],
        started: float,
        tell: Tell,
    ) -> None:
        self._plan = plan
        self._process = process
        self._declared = declared
        self._kept = before
        self._started = started
        self._before = before["seconds"]
        self._tell = tell
        self._outlook = Outlook(declared.flop, plan.samples, plan.blocks, plan.settings.warmup)
        self._stage = ""
        self._about = {one["name"]: one for one in declared.backends}

    def run(self) -> None:
        """All shapes, in the shuffled order."""
        done = {cell.id for cell in read_cells(self._plan.out) if cell.status not in MISSING}
        todo = []
        order = list(enumerate(self._plan.matrix.shapes))
        random.Random(self._plan.seed).shuffle(order)
        for at, shape in order:
            names = [n for n in self._declared.available if f"{shape.name}.{n}" not in done]
            if names:
                todo.append((at, shape, names))
        for place, (at, shape, names) in enumerate(todo):
            later = [(shape.name, names) for _, shape, names in todo[place + 1 :]]
            rest = self._left_words([(shape.name, names), *later])
            self._stage = f"{place + 1} of {len(todo)}  {shape.name}{rest}"
            self._tell(self._stage, "")
            self._shape(at, shape, names, later)
            self._note_time()

    def _shape(
        self,
        at: int,
        shape: MatrixShape,
        names: Sequence[str],
        later: Sequence[Todo],
    ) -> None:
        """Measure a shape, again without the culprit where one takes the process with it."""
        round_ = _Round(at, shape, secrets.token_hex(6), time.monotonic())
        left = list(names)
        while left:
            if not self._outlook.fits((shape.name, left), self._budget_left()):
                self._give_up(round_, left, Status.no_time, self._no_time_words())
                return
            try:
                self._measure(round_, left, later)
                return
            except _Lost as lost:
                self._process.end()
                culprits = [lost.culprit] if lost.culprit in left else left
                self._give_up(round_, culprits, _status_of(lost.why), lost.why)
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
        if not series:
            return
        calls = {one.variant: float(one.ready["rough"]) for one in series}
        self._outlook.saw_preparation(time.monotonic() - started, list(calls.values()))
        samples = {one.variant: calls[one.variant] + one.ready["flush"] for one in series}
        wanted = self._outlook.samples(samples, later, self._budget_left())
        taken = self._take_turns(round_, series, wanted)
        for one in taken:
            self._keep(self._measured_cell(round_, one, opened.told))

    def _opened(self, round_: _Round, names: Sequence[str]) -> Opened | None:
        """The target at a shape, with what can't be measured kept as such; None: nothing can."""
        timing = self._plan.timing
        subject = replace(timing.subjects[0], variants=tuple(names))
        timing = replace(timing, arguments=round_.shape.words)
        try:
            opened = open_target(self._process.turn, subject, timing, self._told)
        except Died as error:
            raise _Lost(error.doing, error.message) from None
        except EnvironmentProblem:
            raise
        except ProfkitError as error:
            if _DEVICE_LOST.search(error.message):
                raise _Lost("", error.message) from None
            self._give_up(round_, names, _status_of(error.message), error.message)
            return None
        self._check_device(opened)
        lost = next((n for n, why in opened.wrong.items() if _DEVICE_LOST.search(why)), None)
        if lost is not None:
            raise _Lost(lost, opened.wrong[lost])
        for name, why in opened.wrong.items():
            self._give_up(round_, [name], _status_of(why), why, opened.told)
        for name, why in opened.left_out.items():
            self._give_up(round_, [name], Status.unsupported, why, opened.told)
        return opened

    def _check_device(self, opened: Opened) -> None:
        """Refuse another GPU than the one that the baseline was begun on."""
        gpu = of_device(opened.told)["gpu"]
        identity = {"device": opened.told["device"]} | {
            key: (gpu or {}).get(key) for key in ("name", "uuid", "multiprocessors")
        }
        if self._kept["measured_on"] is None:
            self._kept |= {"measured_on": identity, "gpu": gpu}
            self._note_time()
        elif self._kept["measured_on"] != identity:
            raise EnvironmentProblem(
                f"{self._plan.out}: was measured on {_device_words(self._kept['measured_on'])}, "
                f"this is {_device_words(identity)}",
                "go on there, or give --out another folder",
            )

    def _prepared(self, round_: _Round, opened: Opened) -> list[Series]:
        ready = []
        for one in opened.series:
            self._told("warm up", one.variant)
            with self._kept_when_it_fails(round_, one, opened.told):
                one.prepare(self._plan.timing)
                ready.append(one)
                self._outlook.saw_call(round_.shape.name, one.variant, float(one.ready["rough"]))
        return ready

    def _take_turns(
        self, round_: _Round, series: Sequence[Series], wanted: Mapping[str, int]
    ) -> list[Series]:
        """Blocks in turns, in one order and then in the reverse, until all are there or the time
        is over; the series that were not lost on the way."""
        live = list(series)
        at = 0
        for block in range(self._plan.blocks):
            for one in list(live if block % 2 == 0 else reversed(live)):
                self._told("time", f"block {block + 1} of {self._plan.blocks}, {one.variant}")
                taken = False
                with self._kept_when_it_fails(round_, one, one.told):
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
            raise _Lost(one.variant, error.message) from None
        except ProfkitError as error:
            if _DEVICE_LOST.search(error.message):
                raise _Lost(one.variant, error.message) from None
            self._give_up(round_, [one.variant], _status_of(error.message), error.message, told)

    def _budget_left(self) -> float:
        if self._plan.budget is None:
            return math.inf
        return self._plan.budget - (time.monotonic() - self._started)

    def _no_time_words(self) -> str:
        return f"the budget of {_minutes(self._plan.budget or 0.0)} was spent on others"

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
        cell = self._cell(round_, one.variant, Status.measured, "", told)
        return replace(cell, latency=latency, fewer=fewer)

    def _give_up(
        self,
        round_: _Round,
        names: Sequence[str],
        status: Status,
        why: str,
        told: Mapping[str, Any] | None = None,
    ) -> None:
        for name in names:
            self._keep(self._cell(round_, name, status, why, told or {}))

    def _cell(
        self, round_: _Round, name: str, status: Status, why: str, told: Mapping[str, Any]
    ) -> Cell:
        surroundings = dict(of_device(told)) if told else {}
        of_variant = told.get("variants", {}).get(name, {})
        return Cell(
            shape=round_.shape.name,
            at=round_.at,
            arguments=dict(round_.shape.arguments),
            backend=name,
            status=status,
            reason=why,
            version=self._about[name]["version"],
            setting=self._about[name]["setting"],
            chosen=of_variant.get("chosen"),
            asked=self._plan.samples,
            round=round_.name,
            fingerprint=surroundings,
            fingerprint_sha256=digest(surroundings) if surroundings else None,
            created=_now(),
            seconds=time.monotonic() - round_.started,
        )

    def _keep(self, cell: Cell) -> None:
        write_whole(cell_file(self._plan.out, cell.id), cell_json(cell))

    def _note_time(self) -> None:
        """Keep what it took so far, and the GPU."""
        self._kept["seconds"] = self._before + time.monotonic() - self._started
        write_plan(self._plan.out, {**self._kept, "backends": self._declared.backends})


@dataclass(frozen=True)
class _Round:
    """A shape that is being measured: its place, and the name of what takes turns now."""

    at: int
    shape: MatrixShape
    name: str
    started: float


def _status_of(why: str) -> Status:
    if _OUT_OF_MEMORY.search(why):
        return Status.out_of_memory
    if _RAISED.match(why) or "ended with status" in why or "can't" in why:
        return Status.failed
    return Status.wrong


def _device_words(identity: Mapping[str, Any]) -> str:
    if identity["device"] == "cpu":
        return "the CPU"
    return f"{identity['name'] or 'a GPU'} {identity['uuid'] or ''}".strip()


def _minutes(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def summarise(folder: Path) -> Baseline:
    """Derive all from the cells in a folder and keep it: summary.json and cells.parquet.

    Raises BadInput for a folder without a plan or with a cell that can't be read.
    """
    plan = read_plan(folder)
    if plan is None:
        raise BadInput(f"{folder}: no baseline", "make one with profkit baseline run or import")
    cells = _with_unavailable(read_cells(folder), plan)
    order = [backend["name"] for backend in plan["backends"]]
    measured = [cell.latency for cell in cells if cell.latency]
    known = read_floor(*measured[0].measured_with) if measured else None
    baseline = derive(
        cells, plan["gpu"] or {}, order=order, floor=known.within_process if known else None
    )
    profiles = read_profiles(folder)
    write_whole(folder / SUMMARY, summary_json(baseline, cells, plan, profiles))
    write_whole(folder / TABLE, cells_parquet(baseline))
    return baseline


def _with_unavailable(cells: Sequence[Cell], plan: Mapping[str, Any]) -> tuple[Cell, ...]:
    """The cells, and one for each that no backend is there for."""
    known = {cell.id for cell in cells}
    rank = {backend["name"]: at for at, backend in enumerate(plan["backends"])}
    missing = [
        Cell(
            shape=shape["name"],
            at=at,
            arguments=shape["arguments"],
            backend=backend["name"],
            status=Status.unavailable,
            reason=backend["reason"],
            setting=backend["setting"],
        )
        for at, shape in enumerate(plan["asked"]["matrix"]["shapes"])
        for backend in plan["backends"]
        if not backend["available"] and f"{shape['name']}.{backend['name']}" not in known
    ]
    every = (*cells, *missing)
    return tuple(sorted(every, key=lambda cell: (cell.at, rank.get(cell.backend, len(rank)))))
