"""The SM clock over a stretch of the current stream's work, measured on the device.

Before and after the stretch a tiny kernel reads, on every SM, the SM cycle counter (clock64) and
the device timer (globaltimer): cycles over time is the mean clock in between. An NVML reading is
instantaneous, and under a power cap the clock changes within milliseconds.
"""

import ctypes
import math
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from profkit.core.text_files import shipped_text

_ENTRY = b"profkit_read_clocks"
_SLOTS = 1024  # chosen: more SMs than any GPU has (GB202: 192); 16 bytes each
_PROVED_ON = 20_000_000  # cycles, 10 ms at 2 GHz: long against the device timer's tick
_HELD = 5_000_000  # cycles, 2.5 ms at 2 GHz: the host queues the rest meanwhile
_SAME_TIME = 0.01  # chosen: device timer against CUDA events
_TICKS = 200  # the difference of two readings is off by less than a tick: 0.5%
_SPREAD = 0.05  # under a power cap, clusters of SMs of an H200 differed by up to 4.5%

Readings = NDArray[np.int64]
"""(SMs, 2): cycles and nanoseconds of each SM, 0 and 0 for one that read nothing."""


class Stretch(Struct, frozen=True):
    """SM cycles, and the seconds that they took."""

    cycles: float
    seconds: float


def between(before: Readings, after: Readings, timer_tick: int) -> Stretch | None:
    """The stretch between two readings, the mean over the SMs that have both.

    Under a power cap an H200's clusters of SMs run at clocks that differ by up to 4.5%. None where
    there is no such SM, where most are over 5% off the mean, or where the device timer, of
    `timer_tick` (ns), is too coarse for so short a stretch: 200 of its ticks bound the error to
    0.5%.
    """
    both = (before[:, 1] > 0) & (after[:, 1] > before[:, 1])
    if not both.any():
        return None
    cycles, nanoseconds = (after - before)[both].T
    clocks = cycles / nanoseconds
    mean = float(clocks.mean())
    if mean <= 0 or np.median(np.abs(clocks - mean)) > _SPREAD * mean:
        return None
    if nanoseconds.mean() < _TICKS * timer_tick:
        return None
    return Stretch(float(cycles.mean()), float(nanoseconds.mean()) * 1e-9)


def tick(*readings: Readings) -> int:
    """The resolution (ns) of the device timer, from readings; 0 where they don't show it.

    It is the greatest common divisor of their differences: with few a multiple of the tick.
    """
    times = np.unique(np.concatenate([reading[reading[:, 1] > 0, 1] for reading in readings]))
    return int(np.gcd.reduce(np.diff(times))) if times.size > 1 else 0


def mean_clock(stretches: Sequence[Stretch | None]) -> float | None:
    """The mean clock (Hz) over stretches; None where one of them is not known."""
    known = [stretch for stretch in stretches if stretch is not None]
    if not known or len(known) < len(stretches):
        return None
    return sum(each.cycles for each in known) / sum(each.seconds for each in known)


class ClockReader:
    """Reads the clocks of the current device in the current stream's order.

    The readings go to pinned memory of the host: they cost the device no memory of its own.
    """

    def __init__(self, launch: Any, blocks: int) -> None:
        import torch

        self._launch = launch
        self._blocks = blocks
        self._tick = 0
        self._slots = torch.zeros((2, _SLOTS, 2), dtype=torch.int64, pin_memory=True)

    def begin(self) -> None:
        """Queue the reading before the stretch; the device is idle."""
        self._slots.zero_()
        self._launch(self._slots[0].data_ptr(), self._blocks)

    def end(self) -> None:
        """Queue the reading after it."""
        self._launch(self._slots[1].data_ptr(), self._blocks)

    def stretch(self) -> Stretch | None:
        """The stretch between the two; the device is idle again."""
        before, after = self._slots.numpy()
        self._tick = math.gcd(self._tick, tick(before, after))
        return between(before, after, self._tick)


@cache
def clock_reader(device: int) -> ClockReader | None:  # noqa: ARG001  (the current device)
    """The reader of the current device, which is this one; None where its counters can't be read or
    validated.

    They are valid where torch's spin kernel, which spins for a number of cycles, took that number
    by the cycle counter to 5% (it runs on one SM, and clusters differ), and by the device timer the
    time between CUDA events to 1%.
    """
    try:
        reader = _reader()
        return reader if _is_valid(reader) else None
    except (OSError, RuntimeError):
        return None


def _is_valid(reader: ClockReader) -> bool:
    import torch

    first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    for _ in range(3):  # the first time loads the kernels
        torch.cuda.synchronize()
        torch.cuda._sleep(_HELD)  # while the host submits the rest
        first.record()
        reader.begin()
        torch.cuda._sleep(_PROVED_ON)
        reader.end()
        last.record()
        torch.cuda.synchronize()
        stretch = reader.stretch()
    seconds = first.elapsed_time(last) * 1e-3
    return (
        stretch is not None
        and abs(stretch.cycles / _PROVED_ON - 1) <= _SPREAD
        and abs(stretch.seconds / seconds - 1) <= _SAME_TIME
    )


def _reader() -> ClockReader:
    """Raises OSError without a driver, RuntimeError where it refuses the kernel."""
    import torch

    driver = ctypes.CDLL("libcuda.so.1")
    module, function = ctypes.c_void_p(), ctypes.c_void_p()
    torch.cuda.synchronize()
    program = shipped_text("profkit.timing", "sm_clock.ptx").encode()
    _done(driver.cuModuleLoadData(ctypes.byref(module), program))
    _done(driver.cuModuleGetFunction(ctypes.byref(function), module, _ENTRY))

    def launch(address: int, blocks: int) -> None:
        argument = ctypes.c_uint64(address)
        arguments = (ctypes.c_void_p * 1)(ctypes.addressof(argument))
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        _done(driver.cuLaunchKernel(function, blocks, 1, 1, 1, 1, 1, 0, stream, arguments, None))

    device = torch.cuda.current_device()
    return ClockReader(launch, torch.cuda.get_device_properties(device).multi_processor_count)


def _done(status: int) -> None:
    if status:
        raise RuntimeError(f"CUDA driver error {status}")
