"""Times single calls of a variant, inside the target's process: CUDA events, graph replay, CUPTI.

Calls are queued behind a spin kernel, so that the GPU never waits for the host between the two
events of a sample; before each sample of a cold measurement the L2 cache is flushed. A block begins
and ends with the device idle: work on side streams cannot extend beyond it undetected.
"""

from __future__ import annotations

import math
import random
import statistics
import time
from collections.abc import Callable, Sequence
from enum import StrEnum
from functools import cache
from itertools import chain
from typing import Any

from msgspec import Struct

from profkit.capture.gpu import Moment, Watch
from profkit.core.errors import EnvironmentProblem, TargetFailed
from profkit.core.typed_file import row_of
from profkit.timing.latency_format import MemoryUse, Recorded
from profkit.timing.sm_clock import ClockReader, Stretch, clock_reader, mean_clock

Call = Callable[[], object]

_steps = random.Random(0)

# All chosen; seconds, calls or ratios. docs/reference/methods/timing.md has the effects that were
# measured on an H200.
LEAD_IN, _LEAD_OUT = 3, 8  # untimed calls in front of a block; at most 8 after its last sample
_BEHIND = 0.5e-3  # chosen: s of untimed calls that keep the queue filled behind the last sample
MOST_CALLS = 500  # chosen: keeps the launch queue from filling up
_PROBED, _FEWEST_PROBED, _PROBING = 20, 3, 0.1  # 20 probing calls; 3 of calls beyond 0.1 s / 3
_LONGEST_HOLD, _HELD = 0.1, 0.05  # s of the spin kernel at most, and to detect synchronization
_QUEUEING, _MARGIN = 40e-6, 1.5  # s of a sample's events and flush on the host; safety factor
LOOK = 0.01  # chosen: s of calls during an NVML reading, which takes milliseconds
_STEPS = 4  # 0 to 3 tiny kernels between samples: block medians then differ by 0.04%
_STEADY, _STEADY_READINGS = 0.01, 3  # steady: three readings of the SM clock agree to 1%
_WARMUP_ROUND, _WARMUP_LIMIT = 0.02, 6  # s of calls between readings; at most 6 times the warm-up
_FLUSHED = 2  # chosen: a flush reads twice the L2 size, whatever its replacement policy
_SEEN_FROM = 1.5  # chosen: a call that launches nothing reads the timer overhead, 1.0 of it
_ESCAPED_FROM, _ESCAPED_SHARE = 50e-6, 0.25  # s, above an idle synchronize; share of the calls
_SAMPLE = "profkit.sample"


def _nothing() -> None:
    return None


class Timer(StrEnum):
    """The timer. `wall` is the host clock, for calls on the CPU; `synchronized` the host clock from
    the first call of a sample until the GPU has finished them all."""

    events = "events"
    graph = "graph"
    cupti = "cupti"
    wall = "wall"
    synchronized = "synchronized"


class Cache(StrEnum):
    """The state of the L2 cache when a call starts: flushed, or as the previous call left it."""

    cold = "cold"
    warm = "warm"


class Settings(Struct, frozen=True):
    """How to time. `warmup` is in seconds, `group` calls share a pair of events."""

    timer: Timer = Timer.events
    cache: Cache = Cache.cold
    warmup: float = 0.5
    group: int = 1


class Ready(Struct, frozen=True):
    """Measurements of a call before it is timed, in seconds; 0 where there are none yet.

    `host` is the host launch overhead of a call, `empty` the timer overhead, `rough` a first
    median. `steady`: whether the SM clock was stable at the end of the warm-up, None where it can't
    be read; `waits`: a call synchronizes with the GPU. `group` calls make a sample.
    """

    rough: float = 0.0
    host: float = 0.0
    empty: float = 0.0
    flush: float = 0.0
    warmup: float = 0.0
    steady: bool | None = None
    waits: bool = False
    memory: MemoryUse | None = None
    group: int = 1


class _Batch(Struct, frozen=True):
    """Seconds per call, how many samples were submitted late, and the SM clock (Hz).

    `queueing` is the longest host time to queue a sample, in seconds.
    """

    samples: tuple[float, ...]
    late_submitted: int | None
    sm_clock: float | None
    queueing: float


def probes(seconds: float) -> int:
    """How many calls a probe takes, of calls that take about `seconds`: fewer of long ones."""
    return max(_FEWEST_PROBED, min(_PROBED, math.ceil(_PROBING / seconds)))


class Unseen(TargetFailed):
    """Work of a call that events on torch's current stream don't see."""


class Stopwatch:
    """Times one call on the GPU; the scratch memory of the flush is shared by all."""

    def __init__(self, call: Call, settings: Settings, watch: Watch | None) -> None:
        self._settings = settings
        self._watch = watch
        self._call = call
        self._timed = _captured(call) if settings.timer is Timer.graph else call
        self._roughly = 0.0
        self._clock: ClockReader | None = None
        self._queueing = 0.0

    def prepare(self) -> Ready:
        """Warm up and probe the call.

        Raises Unseen for a call that launches nothing or hides work on a stream of its own.
        """
        started = time.perf_counter()
        steady = self._warm_up()
        warmup = time.perf_counter() - started
        self._clock = clock_reader(_current())
        host, waits = self._submission()
        memory = self._memory()
        self._find_escaped_work()
        group = self._settings.group
        empty = _median(_nothing)
        probed = _by_events(self._sampling(host), probes(self._roughly))
        self._queueing = 0.0 if waits else probed.queueing
        rough = statistics.median(probed.samples)
        if rough * group < _SEEN_FROM * empty:
            raise Unseen(
                f"a call launches no kernel: the timer reads {rough * group * 1e6:.2f} µs, its "
                f"overhead alone is {empty * 1e6:.2f} µs",
                "return from `run` after the launch, on torch's current stream",
            )
        flush = 0.0 if self._settings.cache is Cache.warm else _median(_l2_flush(_current()))
        return Ready(rough, host, empty, flush, warmup, steady, waits, memory, group)

    def block(self, samples: int, host: float) -> Recorded:
        """Take samples; `host` is the submission time of a call, as `prepare` found it.

        Raises TargetFailed where a call allocated device memory.
        """
        started = time.perf_counter()
        import torch

        moment = self._lead_in()
        before = torch.cuda.memory_stats().get("num_device_alloc", 0)
        take = _by_cupti if self._settings.timer is Timer.cupti else _by_events
        batch = take(self._sampling(host), samples)
        if self._queueing:  # unknown of a call that waits for the GPU
            self._queueing = max(self._queueing, batch.queueing)
        allocated = torch.cuda.memory_stats().get("num_device_alloc", 0) - before
        if allocated:
            raise TargetFailed(
                f"device memory is allocated in the timed region ({allocated} times in "
                f"{samples} samples)",
                "allocate it in `inputs`, or reuse it",
            )
        seconds = time.perf_counter() - started
        return row_of(Recorded, batch, turn=0, seconds=seconds, gpu=moment)

    def _sampling(self, host: float) -> _Sampling:
        behind = math.ceil(_BEHIND / (self._roughly * self._settings.group))
        return _Sampling(
            call=self._timed,
            group=self._settings.group,
            before=_l2_flush(_current()) if self._settings.cache is Cache.cold else _nothing,
            queueing=max(self._queueing, host * self._settings.group + _QUEUEING),
            behind=max(1, min(_LEAD_OUT, behind)),
            clock=self._clock,
        )

    def _lead_in(self) -> Moment | None:
        """Untimed calls, and an NVML reading of the GPU during them.

        The reading takes milliseconds, and would slow samples down.
        """
        import torch

        for _ in range(LEAD_IN if self._watch is None else self._calls_in(LOOK)):
            self._timed()
        moment = None if self._watch is None else self._watch.now()
        torch.cuda.synchronize()
        return moment

    def _calls_in(self, seconds: float) -> int:
        """How many calls fill some seconds, the queue not overfull."""
        return max(1, min(MOST_CALLS, math.ceil(seconds / self._roughly)))

    def _warm_up(self) -> bool | None:
        """Call until the warm-up is over and the SM clock is stable; whether it is."""
        import torch

        started = time.perf_counter()
        self._timed()
        torch.cuda.synchronize()
        once = time.perf_counter()
        self._timed()
        torch.cuda.synchronize()
        self._roughly = time.perf_counter() - once
        clocks: list[float | None] = []
        while True:
            for _ in range(self._calls_in(_WARMUP_ROUND)):
                self._timed()
            if self._watch:
                clocks.append(self._watch.now().sm_clock)
            torch.cuda.synchronize()
            passed = time.perf_counter() - started
            steady = _stands_still(clocks)
            if passed >= self._settings.warmup and (
                steady is not False or passed >= _WARMUP_LIMIT * self._settings.warmup
            ):
                return steady

    def _submission(self) -> tuple[float, bool]:
        """The host launch overhead of a call, and whether a call synchronizes with the GPU."""
        import torch

        times = []
        for _ in range(probes(self._roughly)):
            times.append(_by_host_clock(self._timed))
            torch.cuda.synchronize()
        host = statistics.median(times)
        torch.cuda._sleep(_cycles(_HELD))
        held = _by_host_clock(self._timed)
        waits = held > host + _HELD / 2
        torch.cuda.synchronize()
        return host, waits

    def _memory(self) -> MemoryUse:
        import torch

        scratch = 0
        if self._settings.cache is Cache.cold:
            _l2_flush(_current())
            scratch = _FLUSHED * l2_bytes()
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_stats()
        self._call()
        torch.cuda.synchronize()
        after = torch.cuda.memory_stats()
        count = "allocation.all.allocated"
        return MemoryUse(
            peak_allocated=after["allocated_bytes.all.peak"] - scratch,
            peak_reserved=after["reserved_bytes.all.peak"] - scratch,
            allocations=after[count] - before[count],
        )

    def _find_escaped_work(self) -> None:
        import torch

        torch.cuda.synchronize()
        start, end = _events(2)
        calls = probes(self._roughly)
        start.record()
        for _ in range(calls):
            self._call()
        end.record()
        end.synchronize()
        escaped = _by_host_clock(torch.cuda.synchronize)
        if escaped > max(_ESCAPED_FROM, _ESCAPED_SHARE * start.elapsed_time(end) * 1e-3):
            raise Unseen(
                f"work continues for {escaped * 1e6:.0f} µs after the current stream has finished "
                f"{calls} calls: it runs on another stream, which is not timed",
                "let the current stream wait for it: torch.cuda.current_stream().wait_stream(...)",
            )


def l2_bytes() -> int:
    """The size of the current device's L2 cache."""
    import torch

    return int(torch.cuda.get_device_properties(torch.cuda.current_device()).L2_cache_size)


class _Sampling(Struct, frozen=True):
    """How samples are taken: `group` calls each, `before` ahead of each, `behind` after the last.

    `queueing` is what the host needs to queue a sample, in seconds; `clock` counts the SM's cycles.
    """

    call: Call
    group: int = 1
    before: Call = _nothing
    queueing: float = _QUEUEING
    behind: int = _LEAD_OUT
    clock: ClockReader | None = None

    def hold(self, samples: int) -> int:
        """Cycles for which the GPU is held while the host queues that many samples."""
        return _cycles(min(_LONGEST_HOLD, _MARGIN * samples * self.queueing))


def _median(call: Call) -> float:
    return statistics.median(_by_events(_Sampling(call), _PROBED).samples)


def _by_events(sampling: _Sampling, samples: int) -> _Batch:
    """Samples between pairs of events.

    As many are queued at once as the host can queue while the GPU is held.
    """
    at_once = max(1, int(_LONGEST_HOLD / (_MARGIN * sampling.queueing)))
    counts = [min(at_once, samples - first) for first in range(0, samples, at_once)]
    times, late_submitted, stretches, queueing = zip(
        *(_queued(sampling, count) for count in counts), strict=True
    )
    return _Batch(tuple(chain(*times)), sum(late_submitted), mean_clock(stretches), max(queueing))


def _queued(sampling: _Sampling, samples: int) -> tuple[list[float], int, Stretch | None, float]:
    """Samples that are queued at once, behind a spin kernel.

    Seconds per call, how many were submitted late, the SM cycles, and the host time per sample. The
    cost of a launch alternates from one to the next (0.4 to 0.8 µs on an H200), and so would the
    samples, in step with what lies between them: a random number of tiny kernels breaks the step.
    Some calls more keep the queue filled behind the last sample, which would be faster otherwise.
    """
    import torch

    events = _events(2 * (samples + sampling.behind))
    for event in events:  # the first record() creates it
        event.record()
    pairs = list(zip(events[::2], events[1::2], strict=True))
    tiny, clock = _tiny(_current()), sampling.clock
    late_submitted = 0
    torch.cuda.synchronize()
    torch.cuda._sleep(sampling.hold(samples))
    started = time.perf_counter()
    if clock:
        clock.begin()
    for index, (start, end) in enumerate(pairs):
        if clock and index == samples:
            clock.end()
        for _ in range(_steps.randrange(_STEPS)):
            tiny.zero_()
        sampling.before()
        start.record()
        for _ in range(sampling.group):
            sampling.call()
        end.record()
        late_submitted += index < samples and start.query()
    queueing = (time.perf_counter() - started) / len(pairs)
    torch.cuda.synchronize()
    times = [start.elapsed_time(end) * 1e-3 / sampling.group for start, end in pairs[:samples]]
    return times, late_submitted, clock.stretch() if clock else None, queueing


def _current() -> int:
    """The current device; scratch memory and clocks are of one."""
    import torch

    return int(torch.cuda.current_device())


@cache
def _tiny(device: int) -> Any:
    import torch

    return torch.zeros(1, device=device)


def _by_cupti(sampling: _Sampling, samples: int) -> _Batch:
    """Seconds for which work of each call ran on the GPU, by torch's profiler (CUPTI)."""
    import torch
    from torch.autograd import DeviceType
    from torch.profiler import ProfilerActivity, profile, record_function

    clock = sampling.clock
    torch.cuda.synchronize()
    activities = [ProfilerActivity.CPU, ProfilerActivity.CUDA]
    with profile(activities=activities, acc_events=True) as profiler:
        torch.cuda._sleep(sampling.hold(samples))
        if clock:
            clock.begin()
        for _ in range(samples):
            sampling.before()
            with record_function(_SAMPLE):
                sampling.call()
        if clock:
            clock.end()
        torch.cuda.synchronize()
    stretch = clock.stretch() if clock else None
    events = [
        (event.start_ns(), event.start_ns() + event.duration_ns(), event.name())
        for event in profiler.profiler.kineto_results.events()
        if event.device_type() == DeviceType.CUDA
    ]
    spans = sorted((start, end) for start, end, name in events if name == _SAMPLE)
    if len(spans) != samples:
        raise EnvironmentProblem(
            f"CUPTI recorded {len(spans)} of {samples} calls", "use --timer events"
        )
    work = sorted((start, end) for start, end, name in events if name != _SAMPLE)
    times = tuple(_covered(span, work) * 1e-9 for span in spans)
    return _Batch(times, None, mean_clock([stretch]), 0.0)


def _covered(span: tuple[int, int], work: Sequence[tuple[int, int]]) -> int:
    """How much of a span work covers; what overlaps counts once."""
    total, reached = 0, span[0]
    for start, end in work:
        if end <= span[0] or start >= span[1]:
            continue
        total += max(0, min(end, span[1]) - max(start, reached))
        reached = max(reached, end)
    return total


def _by_host_clock(call: Call) -> float:
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def _captured(call: Call) -> Call:
    """A call as a CUDA graph that is replayed; raises EnvironmentProblem where it can't be one."""
    import torch

    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        call()
    torch.cuda.current_stream().wait_stream(stream)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    try:
        with torch.cuda.graph(graph):
            call()
    except RuntimeError as error:
        reason = str(error).splitlines()[0]
        raise EnvironmentProblem(
            f"a call can't be captured in a CUDA graph ({reason})", "use --timer events"
        ) from error
    replay: Call = graph.replay
    return replay


@cache
def _l2_flush(device: int) -> Call:
    """Reads twice the L2 cache's size: what it held is gone, and nothing is left to write back."""
    import torch

    scratch = torch.zeros(_FLUSHED * l2_bytes() // 4, device=device)
    total = torch.empty((), device=device)
    return lambda: torch.sum(scratch, dim=0, out=total)


@cache
def _cycles_a_second(device: int) -> float:  # noqa: ARG001  (of the current device)
    """Cycles of torch's spin kernel per second."""
    import torch

    cycles = 2_000_000
    torch.cuda._sleep(cycles)
    start, end = _events(2)
    torch.cuda.synchronize()
    start.record()
    torch.cuda._sleep(cycles)
    end.record()
    torch.cuda.synchronize()
    held: float = start.elapsed_time(end) * 1e-3
    return cycles / held


def _cycles(seconds: float) -> int:
    return int(seconds * _cycles_a_second(_current()))


def _events(count: int) -> list[Any]:
    import torch

    return [torch.cuda.Event(enable_timing=True) for _ in range(count)]


def _stands_still(clocks: Sequence[float | None]) -> bool | None:
    """Whether the last readings agree; None where NVML reports no clock."""
    last = [clock for clock in clocks[-_STEADY_READINGS:] if clock]
    if not last:
        return None
    return len(last) == _STEADY_READINGS and max(last) - min(last) <= _STEADY * max(last)
