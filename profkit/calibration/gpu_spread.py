"""The spread between GPUs of one kind: the same call, measured on each."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
from msgspec import UNSET, Struct, json, structs

from profkit.calibration.floors import CONFIDENCE, EXCEEDED, bound_factor
from profkit.core.errors import EnvironmentProblem
from profkit.core.fingerprint import Device
from profkit.core.state_folder import read_state, state_folder, write_state
from profkit.core.timestamp import timestamp
from profkit.core.typed_file import Amount, Count, File, Model, encode, known, row_of
from profkit.execution.driver import Reply, State, drive
from profkit.execution.executors import executor_of
from profkit.execution.placement import Placement
from profkit.execution.protocol import Outcome, Task
from profkit.timing.measurement import Tell, TimingPlan, time_targets
from profkit.ui import document as doc
from profkit.ui.text import number, plural

_MORE, _LARGE = 4, 1.2  # chosen: it is worth saying that 4 times the runs reduce it by a fifth
_MOST = 100  # runs, chosen: few will wait for more


class GpuTimes(Model, frozen=True, kw_only=True):
    """The medians (s) of the runs on a GPU, each in a process of its own; where it is."""

    gpu: Device
    worker: str
    medians: tuple[float, ...]

    @property
    def uuid(self) -> str:
        return known(self.gpu.uuid) or self.worker


class GpuSpread(Model, frozen=True, kw_only=True):
    """The spread of a call between GPUs, shares of its time.

    `largest` is the difference between the slowest and the fastest GPU, `bound` what two runs on
    any two of them differ by at most, for 99% of runs at 95% confidence. `gpus` are UUIDs, `kind`
    what they had in common.
    """

    name: str
    kind: Device
    call: str
    timer: str
    cache: str
    gpus: tuple[str, ...]
    runs: Count
    largest: Amount
    bound: Amount
    created: str

    def bound_with(self, runs: int) -> float:
        """The bound with the same scatter in another number of runs on each GPU."""
        noise = math.log1p(self.bound) - math.log1p(self.largest)
        count = len(self.gpus)
        factors = [bound_factor(count * (each - 1)) for each in (runs, self.runs)]
        return math.expm1(math.log1p(self.largest) + noise * factors[0] / factors[1])


class GpuSpreadFile(File, frozen=True, kw_only=True, tag="profkit.gpu-spread/1"):
    """What `profkit calibrate --on` measured: a spread for each kind with several GPUs, and the
    workers that could not be used with the reason."""

    profkit: str
    times: tuple[GpuTimes, ...]
    spreads: tuple[GpuSpread, ...]
    unused: dict[str, str]
    seconds: Amount


class SavedSpread(GpuSpread, frozen=True, kw_only=True, tag_field="schema", tag="profkit.spread/1"):
    """A spread as it is saved."""


def measure_spread(
    plan: TimingPlan, place: Placement, runs: int, folder: Path, tell: Tell
) -> tuple[list[GpuTimes], State]:
    """Time the same call on every GPU of a place, in so many processes each, all GPUs at once.

    Raises EnvironmentProblem where no GPU can be used.
    """
    make = MakeTimer(plan, runs)
    executor = executor_of(place, make, folder, on_cpu=plan.device == "cpu", ahead=1)
    gathered = _Gathered(tell)
    try:
        state = drive(executor, [f"gpu-{n}" for n in range(executor.workers)], gathered)
    finally:
        executor.close()
    if not gathered.times:
        raise EnvironmentProblem(f"no GPU could be timed ({'; '.join(gathered.reasons)})")
    return gathered.times, state


class _Gathered:
    """Times as they come."""

    def __init__(self, tell: Tell) -> None:
        self._tell = tell
        self.times: list[GpuTimes] = []
        self.reasons: list[str] = []

    def content(self, task: str, attempt: int) -> str:
        """Nothing: the worker has the plan."""
        return f"{task} {attempt}"

    def accept(self, _: str, outcome: Outcome) -> Reply:
        """One GPU's."""
        times = json.decode(outcome.result, type=GpuTimes)
        for place, each in enumerate(self.times):
            if each.uuid == times.uuid:  # a GPU that two jobs had, one after the other
                several = (*each.medians, *times.medians)
                self.times[place] = GpuTimes(gpu=each.gpu, worker=each.worker, medians=several)
                return Reply()
        self.times.append(times)
        return Reply()

    def give_up(self, _: str, reason: str) -> None:
        """It goes without."""
        self.reasons.append(reason)

    def watch(self, state: State) -> None:
        """Show it."""
        self._tell(f"{state.finished} of {state.total} GPUs", "")


class MakeTimer(Struct, frozen=True):
    """Makes workers that time a plan's call."""

    plan: TimingPlan
    runs: int

    @contextmanager
    def __call__(self, gpu: int | None) -> Iterator[_Timer]:
        """A worker."""
        plan = self.plan if gpu is None else replace(self.plan, gpu=gpu)
        yield _Timer(plan, self.runs, "" if gpu is None else f"GPU {gpu}")


class _Timer:
    def __init__(self, plan: TimingPlan, runs: int, name: str) -> None:
        self._plan, self._runs, self._name = plan, runs, name

    def __call__(self, _: Task) -> bytes:
        """The medians of the runs."""
        silent: Tell = lambda _stage, _detail: None  # noqa: E731
        timings = [time_targets(self._plan, silent) for _ in range(self._runs)]
        latencies = [timing.latencies[0] for timing in timings]
        medians = tuple(float(np.median(latency.samples)) for latency in latencies)
        times = GpuTimes(gpu=latencies[0].gpu, worker=self._name, medians=medians)
        return json.encode(times)

    def stop(self) -> None:
        """It ends with its runs."""


def spreads_of(times: Sequence[GpuTimes], plan: TimingPlan, call: str) -> tuple[GpuSpread, ...]:
    """The spreads of GPUs that differ in their UUIDs alone, of each kind with several."""
    kinds: dict[Device, list[GpuTimes]] = {}
    for each in times:
        kinds.setdefault(kind_of(each.gpu), []).append(each)
    return tuple(
        _spread(group, plan, call)
        for group in kinds.values()
        if len(group) > 1 and all(len(each.medians) > 1 for each in group)
    )


def kind_of(gpu: Device) -> Device:
    """What GPUs must have in common to be compared: model, driver, clock and power settings."""
    return structs.replace(gpu, uuid=UNSET)


def _spread(group: Sequence[GpuTimes], plan: TimingPlan, call: str) -> GpuSpread:
    logs = [np.log(each.medians) for each in group]
    means = [float(row.mean()) for row in logs]
    largest = max(means) - min(means)
    freedom = sum(row.size - 1 for row in logs)
    scatter = math.sqrt(sum(float(((row - row.mean()) ** 2).sum()) for row in logs) / freedom)
    bound = largest + math.sqrt(2) * bound_factor(freedom) * scatter
    return GpuSpread(
        name=known(group[0].gpu.name) or "GPU",
        kind=kind_of(group[0].gpu),
        call=call,
        timer=plan.settings.timer.value,
        cache=plan.settings.cache.value,
        gpus=tuple(sorted(each.uuid for each in group)),
        runs=min(len(each.medians) for each in group),
        largest=math.expm1(largest),
        bound=math.expm1(bound),
        created=timestamp(),
    )


def keep_spread(spread: GpuSpread) -> Path:
    """Save a spread for later baselines on these GPUs; its file."""
    parts = (spread.timer, spread.cache, *spread.gpus)
    name = hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]
    path = state_folder("spreads") / f"{name}.json"
    write_state(path, encode(row_of(SavedSpread, spread)))
    return path


def read_spread(gpus: Sequence[Device], timer: str, cache: str) -> GpuSpread | None:
    """The latest spread that was measured on all these GPUs, as they are set now; None without
    one."""
    uuids, kinds = {known(gpu.uuid) or "" for gpu in gpus}, {kind_of(gpu) for gpu in gpus}
    spreads = [
        spread
        for spread in read_state("spreads", SavedSpread)
        if (spread.timer, spread.cache) == (timer, cache)
        and uuids <= set(spread.gpus)
        and kinds == {spread.kind}
    ]
    if not spreads:
        return None
    latest = max(spreads, key=lambda spread: spread.created)
    return row_of(GpuSpread, latest)


def spread_document(file: GpuSpreadFile, saved: Sequence[Path]) -> doc.Document:
    """The times of all GPUs and the spreads."""
    times = sorted(file.times, key=lambda each: float(np.median(each.medians)))
    blocks: list[doc.Block] = [doc.Lines(tuple(map(_times, times)))]
    for spread in file.spreads:
        lines = [
            f"{spread.name}, {plural(len(spread.gpus), 'GPU')}: {spread.call}",
            f"largest difference between GPUs  {spread.largest:6.2%}",
            f"between-GPU spread               {spread.bound:6.2%}   of runs on two of these GPUs; "
            f"at most {EXCEEDED:.0%} exceed it, at {CONFIDENCE:.0%} confidence",
        ]
        more, most = spread.bound_with(_MORE * spread.runs), spread.bound_with(_MOST)
        if spread.bound > _LARGE * more:
            lines.append(
                f"{'':33}--processes {_MORE * spread.runs} would make it about {more:.1%}, "
                f"{_MOST} {most:.1%}"
            )
        blocks.append(doc.Lines(tuple(lines), gap=True))
    if not file.spreads:
        none = "No spread: it takes two GPUs of one model, driver and clock policy."
        blocks.append(doc.Lines((none,), gap=True))
    blocks += [doc.Note(f"{name} not used: {reason}") for name, reason in file.unused.items()]
    last = (f"Time  {file.seconds:.1f} s", *(f"Saved {path}" for path in saved))
    return doc.Document("Spread between GPUs", (*blocks, doc.Lines(last, gap=True)))


def _times(gpu: GpuTimes) -> str:
    low, high = min(gpu.medians), max(gpu.medians)
    return (
        f"{gpu.uuid}  {gpu.worker:8}  {number(float(np.median(gpu.medians)), 's')}"
        f"  {plural(len(gpu.medians), 'run')}, {high / low - 1:.2%} apart"
    )
