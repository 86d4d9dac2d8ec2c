"""GPU work as columns: kernels, copies, fills and whole graphs; and the gaps before it."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from profkit.timeline.events import Events, GpuWork, Indices, Times

Mask = npt.NDArray[np.bool_]

KERNEL, MEMORY, GRAPH = 0, 1, 2


class Work(GpuWork, frozen=True, eq=False):
    """Work in order of start; `row` is its place in `Events`' table of its `table`.

    `symbol` is equal for equal work: a kernel's name and launch configuration, a kind of copy, a
    graph. `call_start` is the start of the call that submitted it, its own start where unknown.
    """

    call_start: Times
    table: npt.NDArray[np.int8]
    row: Indices
    symbol: npt.NDArray[Any]

    def chosen(self, rows: npt.NDArray[np.int64] | slice) -> Work:
        return Work(*(getattr(self, name)[rows] for name in self.__struct_fields__))


def streams_of(events: Events, process: int | None, device: int | None = None) -> Mask:
    """By stream, whether it is of a process and on a device, of any where None is given."""
    own = [
        process in {None, stream.process} and device in {None, stream.device}
        for stream in events.streams
    ]
    return np.array(own, dtype=np.bool_)


def processes(events: Events) -> list[tuple[int, int]]:
    """Each process with GPU work, with the device on which it has most."""
    busiest: dict[int, tuple[float, int]] = {}
    for (process, device), total in _times(events).items():
        busiest[process] = max(busiest.get(process, (0.0, device)), (total, device))
    return [(process, device) for process, (_, device) in sorted(busiest.items())]


def other_devices(events: Events, process: int, device: int) -> list[int]:
    """The other devices on which a process has kernels, copies or graphs."""
    places = sorted(_times(events))
    return [other for owner, other in places if owner == process and other != device]


def _times(events: Events) -> dict[tuple[int, int], float]:
    """ns of work by process and device with any."""
    time = np.zeros(len(events.streams))
    for table in (events.kernels, events.memory_operations, events.graphs):
        time += np.bincount(table.stream, weights=table.end - table.start + 1, minlength=len(time))
    devices: dict[tuple[int, int], float] = {}
    for stream, spent in zip(events.streams, time.tolist(), strict=True):
        if spent > 0:
            key = stream.process, stream.device
            devices[key] = devices.get(key, 0.0) + spent
    return devices


def work_of(events: Events, process: int | None = None, device: int | None = None) -> Work:
    """The GPU work of a process on a device, of any where None is given."""
    own = streams_of(events, process, device)
    kernels, memory, graphs = events.kernels, events.memory_operations, events.graphs
    shapes, fills = max(1, len(events.configurations)), len(events.memory_kinds)
    pairs = max(1, len(events.kernel_names)) * shapes
    _, graph_numbers = np.unique(graphs.graph, return_inverse=True)
    symbols = (
        kernels.name.astype(np.int64) * shapes + kernels.configuration,
        pairs + memory.kind.astype(np.int64),
        pairs + fills + graph_numbers.astype(np.int64),
    )
    columns = [
        _columns(events, table, number, own, codes)
        for number, (table, codes) in enumerate(
            zip((kernels, memory, graphs), symbols, strict=True)
        )
    ]
    whole = Work(
        *(
            np.concatenate([getattr(part, name) for part in columns])
            for name in Work.__struct_fields__
        )
    )
    whole = replace(whole, symbol=dense(whole.symbol))
    if len(columns[MEMORY]) or len(columns[GRAPH]):
        whole = whole.chosen(np.lexsort((whole.end, whole.start)))
    return whole


def dense(codes: npt.NDArray[np.int64]) -> Indices:
    """Numbers from 0 for codes, equal for equal ones."""
    if not len(codes):
        return codes.astype(np.int32)
    if codes.max() < 16 * len(codes) + 1_000_000:  # a table of flags is faster than sorting
        used = np.zeros(int(codes.max()) + 1, dtype=np.bool_)
        used[codes] = True
        return (np.cumsum(used, dtype=np.int32) - 1)[codes]
    return np.unique(codes, return_inverse=True)[1].astype(np.int32)


def _columns(
    events: Events,
    table: GpuWork,
    number: int,
    own: Mask,
    symbols: npt.NDArray[np.int64],
) -> Work:
    rows = np.flatnonzero(own[table.stream]) if len(table) else np.zeros(0, dtype=np.int64)
    call, start = table.call[rows], table.start[rows]
    known = call >= 0
    call_start = start.copy()
    call_start[known] = events.calls.start[call[known]]
    return Work(
        start=start,
        end=table.end[rows],
        stream=table.stream[rows],
        call=call,
        call_start=call_start,
        table=np.full(len(rows), number, dtype=np.int8),
        row=rows.astype(np.int32),
        symbol=symbols[rows],
    )


def reached(start: Times, end: Times) -> Times:
    """For each interval, in order of start, the latest end of those before it.

    For the first this is its own start.
    """
    return np.concatenate([start[:1], np.maximum.accumulate(end)[:-1]])


def gaps_before(start: Times, end: Times) -> Times:
    """For each interval, in order of start, the time since the last end; at most 0 is no gap."""
    return start - reached(start, end)


def have_calls_wait(
    synchronous: npt.ArrayLike,
    pageable: npt.ArrayLike,
    to_device: npt.ArrayLike,
    large: npt.ArrayLike,
) -> Mask:
    """Whether copies between host and device have their calls wait, by the CUDA documentation:
    those of pageable memory do, whatever the call, but not small ones to the device."""
    is_staged = np.logical_and(pageable, to_device)
    waits: Mask = np.where(is_staged, large, np.logical_or(pageable, synchronous))
    return waits
