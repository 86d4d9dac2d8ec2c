"""Timelines of single events, with times in µs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from profkit.timeline.events import Events, MemoryKind, Stream
from tests.application.synthetic import Extent, Recording

PROCESS = 1 << 24


@dataclass(frozen=True)
class Call:
    start: float
    end: float
    name: str


@dataclass(frozen=True)
class Kernel:
    start: float
    end: float
    name: str
    stream: Stream
    launch: Call | None
    grid: Extent


@dataclass(frozen=True)
class Copy:
    start: float
    end: float
    size: int
    kind: MemoryKind


@dataclass(frozen=True)
class Range:
    name: str
    start: float
    end: float


def stream(number: int = 7, device: int = 0) -> Stream:
    return Stream(PROCESS, device, context=1, number=number)


def call(start: float, end: float, name: str = "cudaLaunchKernel") -> Call:
    return Call(start, end, name)


def kernel(
    start: float,
    end: float,
    *,
    name: str = "k(int)",
    on: Stream | None = None,
    launch: Call | None = None,
    grid: Extent = (8, 1, 1),
) -> Kernel:
    return Kernel(start, end, name, on or stream(), launch, grid)


def copy(
    start: float, end: float, size: int, kind: str = "host to device", source: str = "pageable"
) -> Copy:
    return Copy(start, end, size, MemoryKind(kind, source, "device"))


def timeline(
    kernels: Sequence[Kernel] = (),
    calls: Sequence[Call] = (),
    memory: Sequence[Copy] = (),
    graphs: Sequence[tuple[float, float, Stream]] = (),
    ranges: Sequence[Range] = (),
    untimed: int = 0,
) -> Events:
    """Events of one thread; the launch calls of kernels need not be among `calls`."""
    made = Recording()
    thread = made.thread(PROCESS, 1)
    numbers: dict[Call, int] = {}
    for each in [*calls, *(item.launch for item in kernels if item.launch)]:
        if each not in numbers:
            numbers[each] = made.call(each.name, ns(each.start), ns(each.end), thread)
    for item in kernels:
        launch = numbers[item.launch] if item.launch else -1
        times = ns(item.start), ns(item.end)
        made.kernel(
            item.name, *times, launch, made.number("streams", item.stream), item.grid, (64, 1, 1)
        )
    for moved in memory:
        where = made.number("streams", stream(9))
        made.copy(moved.kind, moved.size, ns(moved.start), ns(moved.end), -1, where)
    for start, end, place in graphs:
        made.graph(1, ns(start), ns(end), -1, made.number("streams", place))
    for around in ranges:
        made.range(around.name, ns(around.start), ns(around.end), thread)
    return replace(made.events(), untimed=untimed)


def ns(time: float) -> int:
    return round(time * 1_000)
