"""Timing on a GPU: a process per target, interleaved blocks, and what was measured on the way."""

import math
import os
import re
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import Struct, structs

from profkit.capture import driver
from profkit.capture.correctness import Status
from profkit.capture.gpu import GpuState, select
from profkit.capture.supervise import descendants
from profkit.core.errors import BadInput, EnvironmentProblem, ProfkitError, TargetFailed, UsageError
from profkit.core.fingerprint import Device, Fingerprint
from profkit.core.lock import gpu_lock
from profkit.core.typed_file import T, convert, row_of
from profkit.timing import latency
from profkit.timing.budget import samples_a_block
from profkit.timing.floor import read_floor
from profkit.timing.latency_file import Saved
from profkit.timing.latency_format import (
    Checked,
    Latency,
    LatencyFile,
    Readiness,
    Recorded,
)
from profkit.timing.latency_view import in_words
from profkit.timing.loaded import Loaded
from profkit.timing.orders import order
from profkit.timing.results import DEFAULT, Thresholds
from profkit.timing.statistics import find_tick
from profkit.timing.stopwatch import Cache, Ready, Settings, Timer
from profkit.timing.turns import TIMES_TARGETS, Timekeeper, Turn, worker

_PROBE = 30  # chosen: 60 samples to find the timer's tick; statistics.find_tick takes up to 64
_COARSE = 4  # chosen: a group is long enough that four ticks are below the margin
_LARGEST_GROUP = 1000  # chosen: bounds the calls of a sample
_FEWEST_IN_A_BLOCK = DEFAULT.samples
# Chosen: with 8 blocks Student's t is 1.2 times the normal quantile; measured error rates of
# verdicts with 8 x 30: docs/reference/methods/statistics.md, "Measured".
BLOCKS = 8
_SPACER = 0.25  # s, chosen: eight of them add 2 s at most

TARGET_WORD = re.compile(r"(?P<path>.*\.py)(?::(?P<names>[^/]*))?")
Tell = Callable[[str, str], None]


@dataclass(frozen=True)
class Subject:
    """Variants of a target (all where none is named), in a separate process started in `root`.

    `label` tells apart variants of one name: it goes before them. `python_path` replaces
    PYTHONPATH; no code may come from below `foreign`. Of the variables that look secret it gets
    `keep_variables`, None: all.
    """

    path: Path
    variants: tuple[str, ...] = ()
    label: str = ""
    root: Path | None = None
    python_path: str | None = None
    foreign: Path | None = None
    keep_variables: tuple[str, ...] | None = None

    def labeled(self, variant: str) -> str:
        """The label of one of its variants."""
        return f"{self.label}:{variant}" if self.label else variant


@dataclass(frozen=True)
class TimingPlan:
    """What to time and how.

    `samples` is for each variant; they are taken in `blocks` blocks, and those of all variants
    are interleaved. `margin` (a share) is the smallest difference of interest: calls are grouped
    where the timer's tick is coarse against it. `seconds` limits the time of a variant's samples:
    slower ones get fewer per block, three at least. `program` is the module of the
    processes.
    """

    subjects: tuple[Subject, ...]
    arguments: tuple[str, ...] = ()
    settings: Settings = field(default_factory=Settings)
    samples: int = 100
    blocks: int = BLOCKS
    margin: float = 0.01
    seconds: float = math.inf
    seed: int = 42
    device: str | None = None
    gpu: int | None = None
    check: bool = True
    program: str = TIMES_TARGETS

    @property
    def samples_in_a_block(self) -> int:
        return math.ceil(self.samples / self.blocks)


class Timing(Struct, frozen=True):
    """Latencies as measured, variants that can't run here and why, seconds by part of the work.

    `other_processes` counts other processes on the GPU at the start, as NVML reports them.
    """

    latencies: tuple[Latency, ...]
    left_out: Mapping[str, str]
    fingerprint: Fingerprint
    fingerprint_sha256: str
    spans: Mapping[str, float]
    seconds: float
    other_processes: int = 0


def paired(plan: TimingPlan) -> TimingPlan:
    """The plan with the samples per block that a comparison needs, by the default thresholds."""
    return replace(plan, samples=max(plan.samples, _FEWEST_IN_A_BLOCK * plan.blocks))


def time_targets(plan: TimingPlan, tell: Tell, turns: Sequence[Timekeeper] = ()) -> Timing:
    """Time as planned, while no other profkit uses the GPU; see `measure`."""
    with gpu_lock(lock_of(plan)):
        return measure(plan, tell, turns)


def latency_report(
    timing: Timing,
    plan: TimingPlan,
    *,
    labels: Sequence[str] = (),
    thresholds: Thresholds = DEFAULT,
) -> LatencyFile:
    """The report of a timing; verdicts on `labels` against their first.

    Raises EnvironmentProblem for a label that could not be timed here.
    """
    started = time.monotonic()
    for label in labels:
        if label not in {series.label for series in timing.latencies}:
            why = timing.left_out.get(label, "it was not timed")
            raise EnvironmentProblem(f"{label} can't run here: {why}", "compare other variants")
    known = read_floor(*timing.latencies[0].measured_with)
    floors = (known.within_process, known.between_processes) if known else (None, None)
    report = latency.latency_report(
        Saved("", timing.latencies, timing.fingerprint, timing.fingerprint_sha256),
        labels,
        thresholds=thresholds,
        floor=floors[len(plan.subjects) > 1],
    )
    statistics = time.monotonic() - started
    report = structs.replace(
        report,
        left_out=dict(timing.left_out),
        seed=plan.seed,
        warmup=plan.settings.warmup,
        spans={**timing.spans, "statistics": statistics},
        seconds=timing.seconds + statistics,
    )
    return in_words(report, other_processes=timing.other_processes)


def measure(plan: TimingPlan, tell: Tell, turns: Sequence[Timekeeper] = ()) -> Timing:
    """Time as planned, in processes of its own unless `turns` brings one a subject.

    `tell` gets (stage, what goes on). Raises UsageError for a variant that does not exist,
    TargetFailed for one that is wrong or can't be timed, EnvironmentProblem without a device.
    """
    started = time.monotonic()
    with ExitStack() as stack:
        tell("start", "")
        gpu = None if plan.device == "cpu" else select(plan.gpu).gpu
        other_processes = _others(gpu) if gpu else 0
        environment = environment_of(plan)
        turns = turns or [
            stack.enter_context(process_of(subject, environment, program=plan.program))
            for subject in plan.subjects
        ]
        opened = [
            _open(turn, subject, plan, tell)
            for turn, subject in zip(turns, plan.subjects, strict=True)
        ]
        left_out = {label: why for each in opened for label, why in each.left_out.items()}
        series = [series for each in opened for series in each.series]
        if not series:
            obstacles = "; ".join(f"{label}: {why}" for label, why in left_out.items())
            raise EnvironmentProblem(
                f"no variant can run here ({obstacles})", "name other variants"
            )
        for each in series:
            tell("warm up", each.label)
            each.prepare(plan)
        take_turns(series, plan, tell)
    seconds = time.monotonic() - started
    return Timing(
        latencies=tuple(each.latency(plan) for each in series),
        left_out=left_out,
        fingerprint=opened[0].loaded.used,
        fingerprint_sha256=opened[0].loaded.fingerprint_sha256,
        spans=_spans([each.loaded.spans for each in opened], series, seconds),
        seconds=seconds,
        other_processes=other_processes,
    )


def process_of(
    subject: Subject,
    environment: Mapping[str, str],
    patience: float | None = None,
    program: str = TIMES_TARGETS,
) -> AbstractContextManager[Turn]:
    """A process of its own for a subject; see `profkit.timing.turns.worker`."""
    if subject.python_path is not None:
        environment = {**environment, "PYTHONPATH": subject.python_path}
    return worker(
        subject.path.name,
        environment=environment,
        root=subject.root,
        module=program,
        patience=patience,
        keep=subject.keep_variables,
    )


@dataclass
class Session:
    """A variant that is being timed by one of the processes."""

    turn: Timekeeper
    subject: Subject
    variant: str
    loaded: Loaded
    check: Checked
    ready: Ready = field(default_factory=Ready)
    blocks: list[Recorded] = field(default_factory=list)
    preparation: float = 0.0

    @property
    def label(self) -> str:
        return self.subject.labeled(self.variant)

    def prepare(self, plan: TimingPlan) -> None:
        """Warm up; group calls where the timer's tick, or what it takes to read the host clock or
        wait for the GPU, is coarse against the margin."""
        started = time.monotonic()
        self._prepare(plan.settings)
        by_events = plan.settings.timer in {Timer.events, Timer.graph}
        if not self.on_gpu or plan.settings.timer is Timer.synchronized:
            self._group(plan, self.ready.empty, self.ready.rough)
        elif plan.settings.cache is Cache.warm and by_events:
            samples = np.array(self._samples(2 * _PROBE).samples)
            self._group(plan, find_tick(samples) or 0.0, float(np.median(samples)))
        self.preparation = time.monotonic() - started

    def block(self, samples: int, turn: int, *, spaced: bool = False) -> None:
        """Take one block, by its place among all; `spaced`: after untimed calls."""
        if spaced:  # for as long as the block, so that slow changes show between blocks too
            self._samples(max(1, min(samples, int(_SPACER / max(self.sample_seconds, 1e-9)))))
        self.blocks.append(structs.replace(self._samples(samples), turn=turn))

    def samples_in_a_block(self, plan: TimingPlan) -> int:
        """As many as planned, or as the plan's seconds allow."""
        cost = plan.samples * self.sample_seconds
        return samples_a_block(plan.samples, plan.blocks, cost, plan.seconds)

    def latency(self, plan: TimingPlan) -> Latency:
        """What was taken."""
        return convert(
            {
                "label": self.label,
                "blocks": self.blocks,
                "timer": plan.settings.timer.value if self.on_gpu else Timer.wall.value,
                "cache": plan.settings.cache.value if self.on_gpu else Cache.warm.value,
                "target": structs.replace(self.loaded.target, variants=(self.variant,)),
                "gpu": (self.loaded.fingerprint.gpu or Device()) if self.on_gpu else Device(),
                "ready": row_of(Readiness, self.ready),
                "check": self.check,
            },
            Latency,
        )

    @property
    def on_gpu(self) -> bool:
        return self.loaded.device == "cuda"

    @property
    def sample_seconds(self) -> float:
        """The approximate time of a sample, its calls and the flush before them; once prepared."""
        return self.ready.rough * self.ready.group + self.ready.flush

    def _group(self, plan: TimingPlan, error: float, seconds: float) -> None:
        """Group calls of `seconds` until a sample's `error` (s) is small against the margin."""
        wanted = math.ceil(_COARSE * error / (plan.margin * seconds))
        if wanted > 1:
            self._prepare(structs.replace(plan.settings, group=min(wanted, _LARGEST_GROUP)))

    def _prepare(self, settings: Settings) -> None:
        self.ready = self._ask("prepare", Ready, **structs.asdict(settings))

    def _samples(self, samples: int) -> Recorded:
        return self._ask("block", Recorded, samples=samples, host=self.ready.host)

    def _ask(self, do: str, model: type[T], **arguments: Any) -> T:
        try:
            return self.turn.ask(do, model, variant=self.variant, **arguments)
        except ProfkitError as error:
            raise type(error)(f"{self.label}: {error.message}", error.remedy) from None


class Opened(Struct, frozen=True):
    """A process that has its target, its series, what can't run here or is wrong."""

    loaded: Loaded
    series: tuple[Session, ...]
    left_out: Mapping[str, str]
    wrong: Mapping[str, str]


def _open(turn: Timekeeper, subject: Subject, plan: TimingPlan, tell: Tell) -> Opened:
    opened = open_target(turn, subject, plan, tell)
    if opened.wrong:
        name = opened.loaded.target.name
        wrong = ", ".join(f"{label} ({why})" for label, why in opened.wrong.items())
        raise TargetFailed(f"{name}: wrong results from {wrong}", "fix it first")
    return opened


def open_target(turn: Timekeeper, subject: Subject, plan: TimingPlan, tell: Tell) -> Opened:
    """Have a process load a target, check its variants and make the inputs."""
    tell("check", f"{subject.label or subject.path.name}")
    loaded = turn.ask(
        "open",
        Loaded,
        path=str(subject.path),
        arguments=list(plan.arguments),
        variants=list(subject.variants),
        seed=plan.seed,
        device=plan.device,
        check=plan.check,
        foreign=str(subject.foreign) if subject.foreign else None,
    )
    wrong = {
        check.name: check.reason or f"relative error {check.error or math.inf:.1e}"
        for check in loaded.checks
        if check.status is Status.failed
    }
    left_out = {
        subject.labeled(check.name): check.reason
        for check in loaded.checks
        if check.status is Status.unsupported
    }
    checks = {check.name: row_of(Checked, check) for check in loaded.checks}
    series = tuple(
        Session(turn, subject, name, loaded, checks.get(name, Checked()))
        for name in loaded.names
        if name not in wrong and subject.labeled(name) not in left_out
    )
    return Opened(loaded, series, left_out, wrong)


class Repeats(Struct, frozen=True):
    """A/A runs: one and the same variant several times.

    `within` holds pairs of latencies with interleaved blocks of one process, `between` those of two
    interleaved processes, `runs` latencies of processes one after the other.
    """

    within: tuple[tuple[Latency, Latency], ...]
    between: tuple[tuple[Latency, Latency], ...]
    runs: tuple[Latency, ...]
    seconds: float


def repeat(plan: TimingPlan, comparisons: int, processes: int, tell: Tell) -> Repeats:
    """Time one variant against itself: `comparisons` times in a process, and in pairs of them.

    The plan names one subject with one variant; raises as `measure`, and UsageError otherwise.
    """
    started = time.monotonic()
    with gpu_lock(lock_of(plan)):
        within = _in_one_process(plan, comparisons, tell)
        between = [
            _in_two_processes(plan, f"pair {index + 1} of {processes}", tell)
            for index in range(processes)
        ]
    runs = [side for pair in between for side in pair]
    took = time.monotonic() - started
    return Repeats(tuple(within), tuple(between), tuple(runs), took)


def _in_one_process(
    plan: TimingPlan, comparisons: int, tell: Tell
) -> list[tuple[Latency, Latency]]:
    (subject,) = plan.subjects
    pairs = []
    with process_of(subject, environment_of(plan)) as turn:
        opened = _open(turn, subject, plan, tell)
        if len(opened.series) != 1:
            names = ", ".join(opened.loaded.names)
            raise UsageError("calibration takes one variant", f"name one of {names}")
        (first,) = opened.series
        tell("warm up", first.label)
        first.prepare(plan)
        for index in range(comparisons):
            tell("time", f"A/A {index + 1} of {comparisons}")
            a, b = replace(first, blocks=[]), replace(first, blocks=[])
            take_turns([a, b], plan, lambda _stage, _detail: None)
            pairs.append((a.latency(plan), b.latency(plan)))
    return pairs


def _in_two_processes(plan: TimingPlan, words: str, tell: Tell) -> tuple[Latency, Latency]:
    (subject,) = plan.subjects
    sides = tuple(replace(subject, label=letter) for letter in "AB")
    plan = replace(plan, subjects=sides)
    timing = measure(plan, lambda _, detail: tell("processes", f"{words}, {detail}"))
    first, second = timing.latencies
    return first, second


Attempt = Callable[[Session, Callable[[], None]], bool]
"""Takes a step of a series; whether it did not fail."""


def _must(_: Session, step: Callable[[], None]) -> bool:
    step()
    return True


def take_turns(
    series: list[Session],
    plan: TimingPlan,
    tell: Tell,
    *,
    samples: Mapping[str, int] | None = None,
    attempt: Attempt = _must,
    spent: Callable[[], bool] = lambda: False,
) -> None:
    """All series, block by block, in varying order: a drift affects all equally.

    A single one is interleaved with untimed calls of its own. `samples` are those of a block by
    variant, by default as planned. A series whose `attempt` fails is removed. It ends with the
    block at which the time is `spent`.
    """
    turn = 0
    for block in range(plan.blocks):
        for each in [series[place] for place in order(len(series), block)]:
            tell("time", f"block {block + 1} of {plan.blocks}, {each.label}")
            amount = samples[each.variant] if samples else each.samples_in_a_block(plan)
            alone = len(series) == 1 and block > 0
            turn += 1 + alone
            if not attempt(each, partial(each.block, amount, turn - 1, spaced=alone)):
                series.remove(each)
        if spent():
            return


def _spans(
    processes: Sequence[Mapping[str, float]],
    series: Sequence[Session],
    whole: float,
) -> dict[str, float]:
    """Where the wall time went; the processes import side by side, the slowest counts."""
    blocks = [(each, block) for each in series for block in each.blocks]
    measured = sum(sum(block.samples) * each.ready.group for each, block in blocks)
    flushes = sum(len(block.samples) * each.ready.flush for each, block in blocks)
    in_blocks = sum(block.seconds or 0.0 for _, block in blocks)
    spans = {
        "imports": max(each["imports"] for each in processes),
        "check": sum(each["check"] for each in processes),
        "inputs": sum(each["inputs"] for each in processes),
        "warm-up": sum(each.preparation for each in series),
        "measured": measured,
        "flushes": flushes,
        "queueing": max(0.0, in_blocks - measured - flushes),
    }
    return spans | {"other": max(0.0, whole - sum(spans.values()))}


def _others(gpu: GpuState) -> int:
    """How many other processes are on the GPU, as NVML reports them.

    Turns may have used it before, in this process or in one below it; in a container NVML may know
    this process by another number.
    """
    own = {os.getpid(), *descendants(os.getpid())}
    renumbered = driver.in_use() and os.getpid() not in gpu.processes
    return max(0, len(set(gpu.processes) - own) - renumbered)


def environment_of(plan: TimingPlan) -> Mapping[str, str]:
    """The variables that a process of the plan gets beside those of this process."""
    return {} if plan.device == "cpu" else select(plan.gpu).variables


def lock_of(plan: TimingPlan) -> str:
    """The name of the lock of the plan's device."""
    return "cpu" if plan.device == "cpu" else select(plan.gpu).lock


def subject_of(word: str) -> Subject:
    """`targets/x.py` or `targets/x.py:variant,variant` as a subject; raises BadInput."""
    match = TARGET_WORD.fullmatch(word)
    if match is None:
        raise BadInput(f"{word}: not a target script", "give targets/NAME.py or NAME.py:VARIANT")
    file = Path(match["path"])
    if not file.is_file():
        raise BadInput(f"{file}: no such file", "check the path")
    return Subject(file, tuple(name for name in (match["names"] or "").split(",") if name))
