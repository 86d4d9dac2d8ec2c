"""Stopwatches by the names of their calls, and the one that times by the host clock: calls on the
CPU, and GPU work that no event of torch's can see.

A sample of it is the time from the first of its calls until the device has finished them all, per
call. Calls of a sample are submitted one after the other without waiting, as a program submits
them: where the host needs longer for a call than the GPU, the time is the host's.
"""

import math
import statistics
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

from msgspec import Struct

from profkit.capture.gpu import Moment, Watch
from profkit.timing import stopwatch
from profkit.timing.latency_format import Recorded
from profkit.timing.stopwatch import LEAD_IN, LOOK, MOST_CALLS, Call, Ready, Settings, Timer

Wait = Callable[[object], object]
"""Waits until the device has finished the call that returned this."""

_TOGETHER = 0.02  # s of calls submitted together, chosen: a thousand times what waiting takes
_EMPTY_CALLS = 200  # chosen: their median varies by 5 ns of 130


class HostStopwatch:
    """Times one call by the host clock; without `wait` a call has finished when it returns."""

    def __init__(
        self, call: Call, settings: Settings, wait: Wait | None = None, watch: Watch | None = None
    ) -> None:
        self._call = call
        self._settings = settings
        self._wait = wait
        self._watch = watch
        self._rough = LOOK

    def prepare(self) -> Ready:
        """Warm up and probe the call.

        `empty` is what a sample of nothing takes, `rough` what the call takes beyond that (no less
        than `empty`, which bounds the calls of a sample). Where the GPU is waited for, `rough` is
        the time of one of many calls submitted together, `empty` what a call alone takes longer,
        and `host` what submitting it takes.
        """
        started = time.perf_counter()
        times = [self._sample(1)]
        while time.perf_counter() - started < self._settings.warmup:
            times.append(self._sample(1))
        warmup, alone = time.perf_counter() - started, statistics.median(times)
        if self._settings.timer is not Timer.synchronized:
            nothing = HostStopwatch(lambda: None, Settings())
            empty = statistics.median(nothing._sample(1) for _ in range(_EMPTY_CALLS))
            rough = max(alone - empty, empty)
            return Ready(rough, alone, empty, 0.0, warmup, group=self._settings.group)
        host = statistics.median(self._submission() for _ in range(stopwatch.probes(alone)))
        self._rough = min(alone, self._sample(min(MOST_CALLS, math.ceil(_TOGETHER / alone))))
        rough = self._rough
        return Ready(rough, host, alone - rough, 0.0, warmup, group=self._settings.group)

    def block(self, samples: int, host: float) -> Recorded:  # noqa: ARG002  (asked of each)
        """Take samples, each of as many calls as the settings group."""
        started = time.perf_counter()
        moment = self._lead_in()
        times = tuple(self._sample(self._settings.group) for _ in range(samples))
        return Recorded(turn=0, seconds=time.perf_counter() - started, gpu=moment, samples=times)

    def _lead_in(self) -> Moment | None:
        """Untimed calls, and an NVML reading of the GPU during them."""
        calls = max(LEAD_IN, min(MOST_CALLS, math.ceil(LOOK / self._rough)))
        for _ in range(calls if self._watch else LEAD_IN):
            result = self._call()
        moment = self._watch.now() if self._watch else None
        if self._wait is not None:
            self._wait(result)
        return moment

    def _sample(self, calls: int) -> float:
        """Seconds per call of calls that are submitted together; results are let go of at once, as
        a program that uses them would."""
        started = time.perf_counter()
        for _ in range(calls - 1):
            self._call()
        if self._wait is None:
            self._call()
        else:
            self._wait(self._call())
        return (time.perf_counter() - started) / calls

    def _submission(self) -> float:
        """Seconds until a call returns; the device is idle before and after."""
        started = time.perf_counter()
        result = self._call()
        seconds = time.perf_counter() - started
        if self._wait is not None:
            self._wait(result)
        return seconds


class TimedCall(Struct, frozen=True):
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
        self._prepared: dict[str, tuple[TimedCall, stopwatch.Stopwatch | HostStopwatch]] = {}

    def prepare(self, name: str, timed: TimedCall, settings: Settings) -> Ready:
        """Warm a call up."""
        watch: stopwatch.Stopwatch | HostStopwatch
        with timed.around():
            if self._device == "cuda" and settings.timer is not Timer.synchronized:
                watch = stopwatch.Stopwatch(timed.call, settings, self._watch)
            else:
                watch = HostStopwatch(timed.call, settings, timed.wait, self._watch)
            self._prepared[name] = timed, watch
            return watch.prepare()

    def block(self, name: str, samples: int, host: float) -> Recorded:
        """A block of samples."""
        timed, watch = self._prepared[name]
        with timed.around():
            return watch.block(samples, host)
