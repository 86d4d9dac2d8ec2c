"""A process that measures roofs when it is told to: the loads, one after the other.

    python -m profkit.calibration.loads.worker FD

It is asked and answers as `profkit.timing.worker` does.
"""

import gc
import math
import sys
import time
from collections.abc import Sequence
from itertools import chain

from msgspec import structs

from profkit.calibration.loads.answers import Loads, Located, Measured
from profkit.calibration.loads.counts import Machine
from profkit.calibration.loads.loads import Load, loads
from profkit.capture.environment import fingerprint, lock
from profkit.capture.gpu import Moment, Watch
from profkit.capture.target import Unsupported, without_torch
from profkit.core.errors import EnvironmentProblem, TargetFailed
from profkit.timing.latency_format import Recorded
from profkit.timing.stopwatch import Cache, Ready, Settings, Stopwatch, Timer
from profkit.timing.worker import main, watch

_SETTINGS = Settings(Timer.events, Cache.warm, warmup=0.4)
_BLOCKS = 4  # chosen: steady blocks and bursts with their pauses take about 2 s per load
_FEWEST, _MOST = 10, 100
_SECONDS_A_BLOCK, _SECONDS_A_SAMPLE = 0.12, 0.002
_LARGEST_GROUP = 20  # chosen: bounds the calls of a sample where a call takes microseconds
_PAUSE = 0.3  # seconds; chosen: without load before a burst, so that the power cap is not in effect
_FEWEST_WARM, _SECONDS_WARM = 2, 0.005
_FEWEST_IN_A_BURST, _SECONDS_A_BURST = 3, 0.012
_BROKEN = "CUDA error"


class _Ceilings:
    """The GPU, and the loads of the roof that is being measured."""

    def __init__(self, _started: float) -> None:
        self._watch: Watch | None = None

    def open(self, seed: int) -> Located:
        """Lock the process and say what GPU this is; raises EnvironmentProblem without one."""
        try:
            import torch
        except ImportError:
            raise without_torch() from None
        if not torch.cuda.is_available():
            raise EnvironmentProblem("no GPU: torch sees none", "see `profkit doctor`")
        lock(seed)
        self._seed = seed
        surroundings = fingerprint()
        self._watch = watch(surroundings)
        properties = torch.cuda.get_device_properties(torch.cuda.current_device())
        self._machine = Machine(
            cc=(properties.major, properties.minor),
            sm_count=properties.multi_processor_count,
            l2_bytes=properties.L2_cache_size,
            memory_bytes=properties.total_memory,
        )
        return Located(self._machine, surroundings)

    def measure(self, name: str) -> Loads:
        """Samples of each load that may reach a roof."""
        import torch

        try:
            return Loads(tuple(map(self._timed, loads(name, self._machine, self._seed))))
        except (Unsupported, EnvironmentProblem) as why:
            return Loads(left_out=str(why))
        except torch.OutOfMemoryError:
            return Loads(left_out="the GPU has too little free memory for it")
        except (RuntimeError, AttributeError) as error:
            if _BROKEN in str(error):
                raise
            reason = " ".join(str(error).split("\n")[0].split())[:200]
            return Loads(left_out=f"torch {torch.__version__} can't do it ({reason})")
        finally:
            gc.collect()
            torch.cuda.empty_cache()

    def _timed(self, load: Load) -> Measured:
        """Blocks of samples at a steady clock, then bursts.

        A sample is of several calls, so that little of a steady block is pauses, in which the GPU
        would save the power for a higher clock than it can keep.
        """
        import torch

        load.call()
        torch.cuda.synchronize()
        if not load.right():
            raise TargetFailed(f"wrong result from {load.method}", "its rate is invalid")
        group = max(1, min(_LARGEST_GROUP, round(_SECONDS_A_SAMPLE / _wall_seconds(load))))
        stopwatch = Stopwatch(load.call, structs.replace(_SETTINGS, group=group), self._watch)
        ready = stopwatch.prepare()
        wanted = _SECONDS_A_BLOCK / (ready.rough * group)
        count = max(_FEWEST, min(_MOST, math.ceil(wanted)))
        steady = [stopwatch.block(count, ready.host) for _ in range(_BLOCKS)]
        bursts = [_burst(load, stopwatch, ready, group) for _ in range(_BLOCKS)]
        return Measured(
            load.method, load.amount, _samples(bursts), _moments(bursts),
            _samples(steady), _moments(steady),
        )  # fmt: skip


def _samples(blocks: Sequence[Recorded]) -> tuple[float, ...]:
    return tuple(chain.from_iterable(block.samples for block in blocks))


def _moments(blocks: Sequence[Recorded]) -> tuple[Moment, ...]:
    """The GPU during blocks; its SM clock as measured over a block, else as NVML has it before."""
    return tuple(
        structs.replace(block.gpu, sm_clock=block.sm_clock or block.gpu.sm_clock)
        for block in blocks
        if block.gpu
    )


def _burst(load: Load, stopwatch: Stopwatch, ready: Ready, group: int) -> Recorded:
    """A few samples after a pause, over before the power cap takes hold.

    Calls go before them, so that the clock has come up when the block begins and looks at it.
    """
    import torch

    time.sleep(_PAUSE)
    for _ in range(max(_FEWEST_WARM, math.ceil(_SECONDS_WARM / ready.rough))):
        load.call()
    torch.cuda.synchronize()
    count = max(_FEWEST_IN_A_BURST, math.ceil(_SECONDS_A_BURST / (ready.rough * group)))
    return stopwatch.block(count, ready.host)


def _wall_seconds(load: Load) -> float:
    """Of a call, the device idle before and after."""
    import torch

    torch.cuda.synchronize()
    started = time.perf_counter()
    load.call()
    torch.cuda.synchronize()
    return time.perf_counter() - started


if __name__ == "__main__":
    main(sys.argv[1:], _Ceilings)
