"""Chains of kernels that pass data through DRAM, and what one fused kernel would take.

A chain is a sequence of adjacent launches in which each kernel after the first streams: it does
little with each byte, and what it reads is at least in part what the one before wrote. The first
may be any kernel, whose epilogue the others can become. A kernel that follows itself works on the
same buffers, for all that is known, and begins another chain; so does a sequence that repeats.

One fused kernel needs the inputs that no kernel of the chain wrote and the last output. Which of
the data two kernels have in common is not recorded, so its bytes have two bounds: at least, what a
kernel reads is whatever was written before it in the chain; at most, only what the one before it
wrote. The estimate is their geometric mean at the rate that kernels usually reach. Where a kernel
reads its neighbors' data, fusing means to compute it several times or to pass on less of it: a
third of the gain is then expected, on the log scale.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from profkit.report.floors import REACH, USUAL
from profkit.report.summary import LaunchSummary

_WARP = 32  # threads
_FEW = 30.0
"""Thread instructions per byte that a streaming kernel executes at most, chosen: elementwise and
reduction kernels of torch execute 1 to 10, products and attention on the FMA pipe 300 and more."""
_PASSED_ON = 0.3  # chosen: one of three inputs of a kernel was written by the one before
_TINY = 1e6  # bytes, chosen: the launch itself takes longer than to move them (0.25 µs on an H200)
_OTHER_LIMIT = 0.2
"""DRAM's busy share below which something else limits a kernel, chosen: fusing leaves that. Copies
and strided elementwise kernels of torch use 25% and more."""
_NEIGHBORS = 3.0
"""Bytes loaded per byte read from DRAM from which a kernel reads its neighbors' data, chosen:
elementwise kernels with broadcast operands load 1 to 3, stencils 4 and more."""

_SHARE_WITH_NEIGHBORS = 1 / 3
"""Of the logarithmic gain, where a kernel loads its neighbors' data: two stencil chains, which pass
on less instead of being fused, gained a third of it."""


@dataclass(frozen=True)
class Chain:
    """Adjacent launches; `fused` are the seconds that one kernel would take, likely, and `least`
    those that its first inputs and last output would take alone."""

    launches: tuple[LaunchSummary, ...]
    fused: float
    least: float

    @property
    def duration(self) -> float:
        return sum(launch.duration for launch in self.launches)


def chains(launches: Sequence[LaunchSummary], kernel_of: Mapping[int, int]) -> tuple[Chain, ...]:
    """The chains of at least two of a report's launches; `kernel_of` is each launch's kernel."""
    possible = (
        _chain(part)
        for sequence in _sequences(launches, kernel_of)
        for part in _periods(sequence, kernel_of)
    )
    return tuple(chain for chain in possible if chain)


def _sequences(
    launches: Sequence[LaunchSummary], kernel_of: Mapping[int, int]
) -> Iterator[tuple[LaunchSummary, ...]]:
    sequence: list[LaunchSummary] = []
    for launch in launches:
        linked = bool(sequence) and (
            launch.index == sequence[-1].index + 1
            and kernel_of.get(launch.index) != kernel_of.get(sequence[-1].index)
            and _streams(launch)
            and _passes_on(sequence[-1], launch)
        )
        if not linked:
            yield tuple(sequence)
            sequence = []
        sequence.append(launch)
    yield tuple(sequence)


def _periods(
    sequence: Sequence[LaunchSummary], kernel_of: Mapping[int, int]
) -> Iterator[Sequence[LaunchSummary]]:
    """A sequence, or the rounds of one that repeats."""
    kernels = [kernel_of.get(launch.index) for launch in sequence]
    for period in range(2, len(kernels) // 2 + 1):
        if all(kernels[index] == kernels[index - period] for index in range(period, len(kernels))):
            yield from (
                sequence[start : start + period] for start in range(0, len(kernels), period)
            )
            return
    yield sequence


def _read(launch: LaunchSummary) -> float:
    return launch.get("dram_read_bytes")


def _written(launch: LaunchSummary) -> float:
    """L2 holds a part of what a kernel wrote: DRAM's counter may see it only later."""
    return max(launch.get("l2_write_bytes"), launch.get("dram_write_bytes"))


def _moved(launch: LaunchSummary) -> float:
    return _read(launch) + _written(launch)


def _is_tiny(launch: LaunchSummary) -> bool:
    return _moved(launch) < _TINY


def _streams(launch: LaunchSummary) -> bool:
    if _is_tiny(launch):
        return True
    executed = _WARP * launch.get("instructions_executed")
    is_product = launch.get("tensor_instructions") > 0
    busy = launch.get("dram_busy") > _OTHER_LIMIT
    return busy and not is_product and executed < _FEW * _moved(launch)


def _passes_on(before: LaunchSummary, launch: LaunchSummary) -> bool:
    if _is_tiny(before) or _is_tiny(launch):
        return True
    passed, read = _written(before), _read(launch)
    return min(passed, read) >= _PASSED_ON * max(passed, read)


def _chain(launches: Sequence[LaunchSummary]) -> Chain | None:
    """None where fewer than two launches move data, or what they move is not known."""
    large = [at for at, launch in enumerate(launches) if not _is_tiny(launch)]
    if len(large) < 2:
        return None
    launches = launches[large[0] :]
    first, *others = launches
    peak = max(_peak(launch) for launch in launches)
    if not all(math.isfinite(_moved(launch)) for launch in launches) or not math.isfinite(peak):
        return None
    before, pool, most, least = _written(first), _written(first), 0.0, 0.0
    for launch in others:
        most += max(_read(launch) - before, 0.0)
        least += max(_read(launch) - pool, 0.0)
        before = _written(launch)
        pool += before
    if _streams(first):
        streamed, own = 0.0, _read(first) + before
    else:
        streamed, own = first.duration, max(before - _written(first), 0.0)
    rate = peak * REACH["dram_busy"]
    fused = streamed + math.sqrt((own + most) * (own + least)) / (rate * USUAL)
    duration = sum(launch.duration for launch in launches)
    if any(_loads_neighbors(launch) for launch in launches):
        fused = duration * (min(fused, duration) / duration) ** _SHARE_WITH_NEIGHBORS
    return Chain(tuple(launches), fused, streamed + own / rate)


def _loads_neighbors(launch: LaunchSummary) -> bool:
    loaded = launch.get("global_load_requests") * launch.get("global_load_sectors_per_request")
    return 32 * loaded > _NEIGHBORS * _read(launch) and not _is_tiny(launch)


def _peak(launch: LaunchSummary) -> float:
    """DRAM's peak rate, bytes/s, from a launch that uses a share of it worth dividing by."""
    busy = launch.get("dram_busy")
    return launch.get("dram_bytes") / (busy * launch.duration) if busy > 0.05 else -math.inf
