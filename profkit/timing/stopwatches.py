"""The stopwatches of calls by their names: what a timekeeper answers "prepare" and "block" with."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

from profkit.capture.gpu import NoDriver, Watch
from profkit.core.errors import EnvironmentProblem
from profkit.core.typed_file import plain
from profkit.timing.energy_counter import check_counter
from profkit.timing.host_stopwatch import HostStopwatch, Wait
from profkit.timing.stopwatch import Call, Settings, Stopwatch, Timer

_NO_ENERGY = "the energy of calls can't be measured"


@dataclass(frozen=True)
class TimedCall:
    """A call, what is to be set around it while it is timed, and how to wait for what it returns.

    `wait` None: the call has finished when it returns, or CUDA events time it.
    """

    call: Call
    around: Callable[[], AbstractContextManager[object]] = nullcontext
    wait: Wait | None = None


class Stopwatches:
    """A stopwatch for each call that has been prepared, all on one device."""

    def __init__(self, device: str, watch: Watch | None) -> None:
        self._device = device
        self._watch = watch
        self._prepared: dict[str, tuple[TimedCall, Stopwatch | HostStopwatch]] = {}

    def prepare(self, name: str, timed: TimedCall, settings: Settings) -> Any:
        """Warm a call up; `profkit.timing.stopwatch.Ready` as plain data."""
        stopwatch: Stopwatch | HostStopwatch
        with timed.around():
            if self._device == "cuda" and settings.timer is not Timer.synchronized:
                stopwatch = Stopwatch(timed.call, settings, self._watch)
            else:
                stopwatch = HostStopwatch(timed.call, settings, timed.wait, self._watch)
            self._prepared[name] = timed, stopwatch
            return plain(stopwatch.prepare())

    def block(self, name: str, samples: int, host: float) -> Any:
        """A block of samples; `profkit.timing.stopwatch.Block` as plain data."""
        timed, stopwatch = self._prepared[name]
        with timed.around():
            return plain(stopwatch.block(samples, host))

    def check_energy(self) -> None:
        """Raise EnvironmentProblem unless the energy of calls can be measured."""
        if self._watch is None:
            on_cpu = self._device == "cpu"
            why = "it is that of a GPU" if on_cpu else "NVML (nvidia-ml-py) is not available"
            raise EnvironmentProblem(f"{_NO_ENERGY}: {why}", "leave out --energy")
        try:
            check_counter(self._watch.energy)
        except NoDriver as why:
            raise EnvironmentProblem(f"{_NO_ENERGY}: {why}", "leave out --energy") from None

    def energy(self, name: str, seconds: float) -> Any:
        """The energy of calls; `profkit.timing.latency_format.EnergyRun` as plain data."""
        timed, stopwatch = self._prepared[name]
        assert isinstance(stopwatch, Stopwatch), "check_energy comes before"
        with timed.around():
            return plain(stopwatch.energy(seconds))
