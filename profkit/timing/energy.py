"""The energy of calls, by a counter that advances in steps: bounds from runs of many calls.

A reading is the energy up to the counter's last step before it. The energy up to an instant lies
between the last reading before it and the first new one after it: it is bounded, not guessed. Runs
are taken inside the target's process.
"""

from __future__ import annotations

import math
import threading
import time
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from msgspec import Struct

from profkit.core.errors import EnvironmentProblem
from profkit.core.work import Work
from profkit.timing.latency_format import EnergyPerCall, EnergyRun

FEWEST_STEPS = 50
"""Steps of the energy counter in a run; chosen: a step at either end is then 2% of its energy."""
SECONDS = 5.0
"""Of a run; chosen: counters advance every 20 to 100 ms, 50 times in 5 s or more often."""
# Chosen: NVML averages power over a second at most, so what ran before is out of a counter by then.
LEAD_IN = 1.0
"""Seconds of calls before a run."""
RUNS = 2
"""Of a variant; chosen: in the order A B, B A, a drift is alike for both."""
_POLL = 0.002  # s, chosen: a tenth of the shortest step in use (20 to 100 ms)
_LONGEST_STEP = 1.0  # s, chosen: ten times the longest in use
_EXTENSION = 2.0  # chosen: a run lasts at most twice as long, to get as many steps as are needed


def without_energy(runs: Sequence[EnergyRun]) -> str:
    """Why runs say nothing about the energy of a call; "" where they do, or there are none."""
    run = min(runs, key=lambda run: run.steps, default=None)
    if run is None or run.steps >= FEWEST_STEPS:
        return ""
    needed = math.ceil(FEWEST_STEPS * run.seconds / run.steps) if run.steps else 0
    remedy = f": --energy-seconds {needed}" if needed else ""
    return (
        f"the energy counter advanced {run.steps} times in {run.seconds:.1f} s, "
        f"{FEWEST_STEPS} are needed{remedy}"
    )


def energy_per_call(runs: Sequence[EnergyRun], work: Work) -> EnergyPerCall | None:
    """The energy of a call over all runs, and the work that it did per joule.

    None without runs, and for the reason of `without_energy`.
    """
    if not runs or without_energy(runs):
        return None
    drawn = sum((run.low + run.high) / 2 for run in runs)
    joules = drawn / sum(run.calls for run in runs)
    return EnergyPerCall(
        joules=joules,
        low=min(run.low / run.calls for run in runs),
        high=max(run.high / run.calls for run in runs),
        power=drawn / sum(run.seconds for run in runs),
        flop_per_joule=work.flop / joules if work.flop else None,
        bytes_per_joule=work.bytes / joules if work.bytes else None,
    )


class Reading(Struct, frozen=True):
    """A reading of the counter (J), taken between two instants (s)."""

    begin: float
    end: float
    joules: float


class Load(Protocol):
    """Calls that keep a GPU busy."""

    def queue(self) -> int:
        """Queue some calls behind those before; how many. It waits where too many are queued."""
        ...

    def finish(self) -> None:
        """Wait until all queued calls have run."""


class QueuedCalls:
    """A call, queued in rounds on torch's current stream: one round runs while the next waits."""

    def __init__(self, call: Callable[[], object], calls_in_a_round: int) -> None:
        self._call, self._calls = call, calls_in_a_round
        self._ends = deque[Any]()

    def queue(self) -> int:
        """Queue a round, once the one before the last has run; its number of calls."""
        import torch

        for _ in range(self._calls):
            self._call()
        end = torch.cuda.Event()
        end.record()
        self._ends.append(end)
        if len(self._ends) > 1:
            self._ends.popleft().synchronize()
        return self._calls

    def finish(self) -> None:
        """Wait until the device is idle."""
        import torch

        torch.cuda.synchronize()
        self._ends.clear()


def check_counter(counter: Callable[[], float]) -> None:
    """Raise EnvironmentProblem unless a counter advances."""
    first, started = counter(), time.perf_counter()
    while counter() == first:
        if time.perf_counter() - started > _LONGEST_STEP:
            raise _still()
        time.sleep(_POLL)


def _still() -> EnvironmentProblem:
    return EnvironmentProblem("the GPU's energy counter does not advance", "leave out --energy")


def energy_between(readings: Sequence[Reading], start: float, end: float) -> tuple[float, float]:
    """Bounds of the energy (J) between two instants, from readings in the order of time.

    `end` - `start` is at least a step. Raises EnvironmentProblem where the readings don't reach
    from before the one to a step after the other.
    """
    (after, before), (later, earlier) = (_bounds(readings, moment) for moment in (start, end))
    return max(earlier - after, 0.0), later - before


def _bounds(readings: Sequence[Reading], moment: float) -> tuple[float, float]:
    """The first new reading (J) after an instant and the last one before it."""
    before = bisect_right(readings, moment, key=lambda reading: reading.end) - 1
    first = bisect_left(readings, moment, key=lambda reading: reading.begin)
    later = [reading.joules for reading in readings[first:]]
    if before >= 0 and later and later[-1] > later[0]:
        return next(joules for joules in later if joules > later[0]), readings[before].joules
    raise _still()


def steps_between(readings: Sequence[Reading], start: float, end: float) -> int:
    """How often the counter advanced between two instants."""
    first = bisect_left(readings, start, key=lambda reading: reading.begin)
    last = bisect_right(readings, end, key=lambda reading: reading.end)
    return len({reading.joules for reading in readings[first:last]}) - 1


def energy_run(load: Load, counter: Callable[[], float], seconds: float) -> EnergyRun:
    """The energy of calls queued one behind the other for at least so many seconds.

    It lasts longer where the counter is slow, twice as long at most. Untimed calls go before, and
    after it until the counter has advanced. Raises EnvironmentProblem where it does not.
    """
    with _Log(counter) as log:
        started = time.perf_counter()
        while time.perf_counter() - started < LEAD_IN:
            load.queue()
        load.finish()
        begin, calls = time.perf_counter(), 0
        while (passed := time.perf_counter() - begin) < seconds or (
            passed < _EXTENSION * seconds and log.steps_since(begin) < FEWEST_STEPS
        ):
            calls += load.queue()
        load.finish()
        end = time.perf_counter()
        while log.steps_since(end) < 1 and time.perf_counter() - end < _LONGEST_STEP:
            load.queue()
        load.finish()
    low, high = energy_between(log.readings, begin, end)
    steps = steps_between(log.readings, begin, end)
    return EnergyRun(calls=calls, seconds=end - begin, steps=steps, low=low, high=high)


class _Log(threading.Thread):
    """Reads a counter until the block ends."""

    def __init__(self, counter: Callable[[], float]) -> None:
        super().__init__(daemon=True)
        self._counter = counter
        self._ended = threading.Event()
        self.readings: list[Reading] = []

    def __enter__(self) -> _Log:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self.join()

    def steps_since(self, moment: float) -> int:
        """How often the counter has advanced since an instant."""
        return steps_between(self.readings, moment, float("inf"))

    def run(self) -> None:
        """Take readings."""
        while not self._ended.wait(_POLL):
            begin = time.perf_counter()
            joules = self._counter()
            self.readings.append(Reading(begin, time.perf_counter(), joules))
