"""Timelines of made-up programs, as `Events`.

`Recording` takes events with their times; `Host` is a host thread with a clock that launches,
copies, waits and computes, and lets the GPU work start as a real one would.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias, TypeVar, cast

import numpy as np
import numpy.typing as npt

from profkit.timeline.events import (
    Calls,
    Events,
    Graphs,
    Indices,
    KernelName,
    Kernels,
    LaunchConfiguration,
    MemoryKind,
    MemoryOperations,
    Ranges,
    Stream,
    Thread,
    TimelineGpu,
)

Column: TypeAlias = npt.NDArray[Any]
Extent: TypeAlias = tuple[int, int, int]
Table = TypeVar("Table")

US = 1_000  # ns
MS = 1_000_000  # ns
PINNED, PAGEABLE, DEVICE = "pinned", "pageable", "device"


@dataclass
class Recording:
    """Events in any order; `events` sorts them and gives them their indices."""

    kernels: list[tuple[int, int, int, int, int, int, int]] = field(default_factory=list)
    memory: list[tuple[int, int, int, int, int, int]] = field(default_factory=list)
    graphs: list[tuple[int, int, int, int, int]] = field(default_factory=list)
    calls: list[tuple[int, int, int, int]] = field(default_factory=list)
    ranges: list[tuple[int, int, int, int, int]] = field(default_factory=list)
    tables: dict[str, dict[object, int]] = field(default_factory=dict)

    def number(self, table: str, value: object) -> int:
        rows = self.tables.setdefault(table, {})
        return rows.setdefault(value, len(rows))

    def rows(self, table: str) -> tuple[object, ...]:
        return tuple(self.tables.get(table, ()))

    def stream(self, process: int = 1, device: int = 0, number: int = 7) -> int:
        return self.number("streams", Stream(process, device, 1, number))

    def thread(self, process: int = 1, number: int = 100) -> int:
        return self.number("threads", Thread(process, number))

    def call(self, name: str, start: int, end: int, thread: int = 0) -> int:
        """A CUDA call; its number is what work names as its call."""
        self.calls.append((start, end, self.number("calls", name), thread))
        return len(self.calls) - 1

    def kernel(
        self,
        name: str,
        start: int,
        end: int,
        call: int = -1,
        stream: int = 0,
        grid: Extent = (132, 1, 1),
        block: Extent = (128, 1, 1),
        graph_node: int = 0,
    ) -> None:
        label = name.split("(")[0].split("<")[0].removeprefix("void ").split("::")[-1]
        named = self.number("kernels", KernelName(name, label))
        shape = self.number("configurations", LaunchConfiguration(grid, block, 32, 0, 0))
        self.kernels.append((start, end, stream, call, named, shape, graph_node))

    def copy(
        self,
        kind: MemoryKind,
        size: int,
        start: int,
        end: int,
        call: int = -1,
        stream: int = 0,
    ) -> None:
        number = self.number("memory", kind)
        self.memory.append((start, end, stream, call, number, size))

    def graph(self, number: int, start: int, end: int, call: int = -1, stream: int = 0) -> None:
        self.graphs.append((start, end, stream, call, number))

    def range(self, name: str, start: int, end: int, thread: int = 0) -> None:
        process = self.rows("threads")[thread].process  # type: ignore[attr-defined]
        self.ranges.append((start, end, self.number("ranges", name), thread, process))

    def events(self) -> Events:
        calls, renumbered = _columns(self.calls, 4)
        known = np.append(renumbered, -1)  # -1 stays -1

        def work(rows: Sequence[tuple[int, ...]], width: int) -> list[Column]:
            columns, _ = _columns(rows, width)
            columns[3] = known[columns[3]]
            return columns

        streams: Any = self.rows("streams")
        ranges = [*_columns(self.ranges, 5)[0], np.ones(len(self.ranges), dtype=np.bool_)]
        tables: dict[str, Any] = {
            "kernel_names": self.rows("kernels"),
            "call_names": self.rows("calls"),
            "range_names": self.rows("ranges"),
            "configurations": self.rows("configurations"),
            "memory_kinds": self.rows("memory"),
            "streams": streams,
            "threads": self.rows("threads"),
        }
        return Events(
            path=Path("synthetic.sqlite"),
            product_version="2025.5.1",
            schema_version="3.24.0",
            created=None,
            origin_ns=0,
            gpus=tuple(
                TimelineGpu(device, "NVIDIA H200", (9, 0), 132, 150_000_000_000)
                for device in sorted({stream.device for stream in streams})
            ),
            **tables,
            kernels=_table(Kernels, work(self.kernels, 7)),
            memory_operations=_table(MemoryOperations, work(self.memory, 6)),
            graphs=_table(Graphs, work(self.graphs, 5)),
            calls=_table(Calls, calls),
            ranges=_table(Ranges, ranges),
            untimed=0,
        )


def _annotated(kind: type[object]) -> list[object]:
    return list(vars(kind).get("__annotations__", {}).values())


def _table(kind: type[Table], columns: Sequence[Column]) -> Table:
    """A table of events; its annotations say which columns are indices."""
    create: Any = kind
    annotations = [each for base in reversed(kind.__mro__) for each in _annotated(base)]
    return cast(
        "Table",
        create(
            *(
                column.astype(np.int32) if annotation == Indices else column
                for annotation, column in zip(annotations, columns, strict=True)
            )
        ),
    )


def _columns(rows: Sequence[tuple[int, ...]], width: int) -> tuple[list[Column], Column]:
    """Columns in order of start and end, and each row's place in that order."""
    table = np.array(rows, dtype=np.int64).reshape(-1, width)
    order = np.lexsort((table[:, 1], table[:, 0]))
    places = np.empty(len(table), dtype=np.int64)
    places[order] = np.arange(len(table))
    return [np.ascontiguousarray(column) for column in table[order].T], places


@dataclass
class Host:
    """A host thread with a clock (`now`, ns), and the streams that it launches to.

    Work starts `latency` after its call began, and after the previous work of its stream.
    """

    recording: Recording
    process: int = 1
    device: int = 0
    number: int = 100
    now: int = 0
    launch_cost: int = 4 * US
    latency: int = 5 * US
    free: dict[int, int] = field(default_factory=dict)

    @property
    def thread(self) -> int:
        return self.recording.thread(self.process, self.number)

    def stream(self, number: int = 7) -> int:
        return self.recording.stream(self.process, self.device, number)

    def compute(self, time: int) -> None:
        """Host time without a CUDA call."""
        self.now += time

    def call(self, name: str, time: int) -> int:
        start = self.now
        self.now += time
        return self.recording.call(name, start, self.now, self.thread)

    def _start(self, called: int, stream: int) -> int:
        return max(called + self.latency, self.free.get(stream, 0))

    def launch(
        self,
        name: str,
        time: int,
        stream: int = 7,
        grid: Extent = (132, 1, 1),
        block: Extent = (128, 1, 1),
        after: int = 0,
        by: str = "cudaLaunchKernel",
    ) -> tuple[int, int]:
        """A kernel; `after` is a time that it also waits for. Its start and end."""
        where, called = self.stream(stream), self.now
        call = self.call(by, self.launch_cost)
        start = max(self._start(called, where), after)
        self.recording.kernel(name, start, start + time, call, where, grid, block)
        self.free[where] = start + time
        return start, start + time

    def launch_graph(self, number: int, time: int, stream: int = 7) -> tuple[int, int]:
        where, called = self.stream(stream), self.now
        call = self.call("cudaGraphLaunch", self.launch_cost)
        start = self._start(called, where)
        self.recording.graph(number, start, start + time, call, where)
        self.free[where] = start + time
        return start, start + time

    def copy(
        self,
        time: int,
        size: int,
        source: str = PAGEABLE,
        target: str = DEVICE,
        stream: int = 7,
        *,
        queued: bool = False,
    ) -> tuple[int, int]:
        """A copy; one of pageable memory blocks the host until it ends, unless it is queued."""
        where, called = self.stream(stream), self.now
        ends = {(False, True): "host to device", (True, False): "device to host"}
        kind = ends.get((source == DEVICE, target == DEVICE), "device to device")
        start = self._start(called, where)
        blocking = PAGEABLE in (source, target) and not queued
        name = "cudaMemcpy" if blocking else "cudaMemcpyAsync"
        call = self.call(name, start + time - called if blocking else self.launch_cost)
        self.recording.copy(
            MemoryKind(kind, source, target), size, start, start + time, call, where
        )
        self.free[where] = start + time
        return start, start + time

    def fill(self, time: int, size: int, stream: int = 7) -> tuple[int, int]:
        where, called = self.stream(stream), self.now
        call = self.call("cudaMemsetAsync", self.launch_cost)
        start = self._start(called, where)
        self.recording.copy(
            MemoryKind("memset", "", DEVICE), size, start, start + time, call, where
        )
        self.free[where] = start + time
        return start, start + time

    def synchronize(self, name: str = "cudaStreamSynchronize") -> None:
        """Wait for all work."""
        done = max([self.now + self.launch_cost, *self.free.values()])
        self.call(name, done - self.now)

    @contextmanager
    def range(self, name: str) -> Iterator[None]:
        start = self.now
        yield
        self.recording.range(name, start, self.now, self.thread)


def ranks(
    programs: Sequence[Callable[[Host, int], None]],
    steps: int = 12,
    transfer: int = 100 * US,
    *,
    are_joined: bool = True,
    missing: int = 0,
) -> Events:
    """Programs as processes on GPUs of their own; an all-reduce of all ends each step, or, where
    they are not joined, none. Of the last process some `missing` last steps are not recorded."""
    recording = Recording()
    hosts = [
        Host(recording, process=rank + 1, device=rank, now=MS) for rank in range(len(programs))
    ]
    for number in range(steps):
        if number == steps - missing:
            hosts[-1].recording = Recording()
        begun, calls = [host.now for host in hosts], []
        for host, program in zip(hosts, programs, strict=True):
            program(host, number)
            if are_joined:
                calls.append(host.call("cudaLaunchKernelExC", host.launch_cost))
        starts = [max(host.now + US, *host.free.values()) for host in hosts]
        for host, start, call in zip(hosts, starts, calls, strict=False):
            done = max(starts) + transfer
            name, grid = "ncclDevKernel_AllReduce_Sum_f32()", (2, 1, 1)
            host.recording.kernel(name, start, done, call, host.stream(), grid)
            host.free[7] = done
        for host, start in zip(hosts, begun, strict=True):
            host.synchronize()
            host.recording.range("step", start, host.now, host.thread)
    return recording.events()


def training(
    steps: int = 12,
    layers: int = 6,
    host_time: int = 0,
    nvtx: str = "",
    warm_up: int = 3,
    kernel_time: int = 40 * US,
) -> Events:
    """A training loop of one process: setup, warm-up with an autotuner, then equal steps."""
    recording = Recording()
    host = Host(recording, now=50 * MS)
    for trial in range(40 * warm_up):
        host.launch(f"autotune_{trial % 7}(float*)", 15 * US, grid=(trial % 11 + 1, 1, 1))
        host.synchronize()
    for _ in range(steps):
        if nvtx:
            with host.range(nvtx):
                _training_step(host, layers, kernel_time, host_time)
        else:
            _training_step(host, layers, kernel_time, host_time)
    host.synchronize("cudaDeviceSynchronize")
    return recording.events()


def _training_step(host: Host, layers: int, kernel_time: int, host_time: int) -> None:
    host.compute(host_time)
    host.copy(30 * US, 1 << 20)
    for _ in range(layers):
        host.launch("void layer_norm_kernel<float>(float*)", kernel_time // 4)
        host.launch("sm90_xmma_gemm_bf16(Params)", kernel_time)
        host.launch("void flash_fwd_kernel<Traits>(Params)", kernel_time)
    for _ in range(2 * layers):
        host.launch("sm90_xmma_gemm_bf16_backward(Params)", kernel_time)
    host.launch("void multi_tensor_apply_kernel<Adam>(int)", kernel_time)
    host.synchronize()
