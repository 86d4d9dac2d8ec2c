"""A timeline as a Perfetto trace, which ui.perfetto.dev and the trace processor read.

Each stream and host thread is a track. Where slices of a track overlap without being nested they go
to further tracks of the same name, which Perfetto shows as one.
"""

from __future__ import annotations

import zlib
from bisect import bisect_right, insort
from collections.abc import Iterable, Sequence
from heapq import heappop, heappush
from itertools import pairwise
from pathlib import Path
from typing import IO, Any, TypeAlias

import numpy as np
import numpy.typing as npt
from msgspec import Struct
from msgspec.structs import replace

from profkit.core.extras import require
from profkit.timeline.events import Events, GpuWork, Indices, Times

_Numbers: TypeAlias = npt.NDArray[np.int64]

_CHUNK = 1 << 14  # packets that are compressed at once, chosen: they take some 5 MB
_LEVEL = 1  # of zlib: level 6 makes a file 15% smaller in 3 times the time
_BEGIN, _END, _INSTANT = 1, 2, 3  # types of track events
_CLEARED, _NEEDED = 1, 2  # flags of packets: state of a sequence begins, or is used


class _Slices(Struct, frozen=True, eq=False):
    """Slices of a track: `name` is an index into `names`.

    `flow` is a number that a slice shares with another one, which an arrow joins; 0 for none.
    """

    start: Times
    end: Times
    name: Indices
    names: Sequence[str]
    flow: Indices | None = None
    ends_flows: bool = False

    def at(self, places: Any) -> _Slices:
        return replace(
            self,
            start=self.start[places],
            end=self.end[places],
            name=self.name[places],
            flow=None if self.flow is None else self.flow[places],
        )


def write(events: Events, path: Path, steps: Iterable[tuple[str, int, int]] = ()) -> None:
    """Write a trace; `steps` are names with a start and an end (ns), shown on a track of their own.

    Raises EnvironmentProblem where the `perfetto` package is not installed, and OSError.
    """
    require("--perfetto", "perfetto")
    with path.open("wb") as file:
        trace = _Trace(file)
        _write(events, trace, tuple(steps))
        trace.flush()


def _write(events: Events, trace: _Trace, steps: Sequence[tuple[str, int, int]]) -> None:
    if steps:
        names, starts, ends = zip(*steps, strict=True)
        times = (np.array(starts, np.int64), np.array(ends, np.int64))
        trace.slices("Steps", _Slices(*times, np.arange(len(steps), dtype=np.int32), names))
    _write_gpus(events, trace)
    calls, ranges = events.calls, events.ranges
    called = _Slices(calls.start, calls.end, calls.name, events.call_names, _submitted(events))
    ranged = _Slices(ranges.start, ranges.end, ranges.name, events.range_names)
    numbers = [*(thread.process for thread in events.threads), *ranges.process.tolist()]
    processes = {number: trace.process(_pid(number)) for number in dict.fromkeys(numbers)}
    count = len(events.threads)
    kinds = {
        "CUDA calls": (called, _places(calls.thread, count)),
        "NVTX": (ranged, _places(ranges.thread, count)),
    }
    for index, thread in enumerate(events.threads):
        host = trace.thread(_pid(thread.process), thread.number)
        for kind, (slices, places) in kinds.items():
            trace.slices(kind, slices.at(places[index]), parent_uuid=host)
    whole = np.flatnonzero(ranges.thread < 0)
    for number, process in processes.items():
        own = whole[ranges.process[whole] == number]
        trace.slices("NVTX start/end", ranged.at(own), parent_uuid=process)


def _places(indices: Indices | _Numbers, count: int) -> list[_Numbers]:
    """Where each index below `count` is."""
    order = np.argsort(indices, kind="stable")
    bounds = np.searchsorted(indices[order], np.arange(count + 1)).tolist()
    return [order[first:last] for first, last in pairwise(bounds)]


def _submitted(events: Events) -> Indices:
    """For each call the number of its flow: 0 where it submitted no work."""
    flows = np.zeros(len(events.calls), np.int32)
    for work in (events.kernels, events.memory_operations, events.graphs):
        known = work.call[work.call >= 0]
        flows[known] = known + 1
    return flows


def _write_gpus(events: Events, trace: _Trace) -> None:
    titles = {gpu.device: gpu.name for gpu in events.gpus}
    processes = len({stream.process for stream in events.streams})
    gpus: dict[tuple[int, int], int] = {}
    taken = np.zeros(len(events.calls) + 1, np.bool_)
    graphs, graph = np.unique(events.graphs.graph, return_inverse=True)
    memory = events.memory_operations
    kinds: list[tuple[str, GpuWork, Any, list[str]]] = [
        ("", events.kernels, events.kernels.name, [each.label for each in events.kernel_names]),
        (" memory", memory, memory.kind, [kind.words for kind in events.memory_kinds]),
        (" graphs", events.graphs, graph, [f"CUDA graph {number}" for number in graphs.tolist()]),
    ]
    placed = [
        (
            kind,
            _places(work.stream, len(events.streams)),
            _Slices(
                work.start, work.end, name, names, _first_of_call(work, taken), ends_flows=True
            ),
        )
        for kind, work, name, names in kinds
    ]
    for index, stream in enumerate(events.streams):
        place = (stream.process, stream.device)
        if place not in gpus:
            title = f"GPU {stream.device} {titles.get(stream.device, '')}".strip()
            owner = f" of process {_pid(stream.process)}" if processes > 1 else ""
            gpus[place] = trace.track(name=title + owner)
        for kind, places, slices in placed:
            own = slices.at(places[index])
            trace.slices(f"Stream {stream.number}{kind}", own, parent_uuid=gpus[place])


def _first_of_call(work: GpuWork, taken: npt.NDArray[np.bool_]) -> Indices:
    """For each piece of work its flow, if it is the first that its call submitted."""
    flow = work.call + 1
    first = np.zeros(len(flow), np.bool_)
    _, places = np.unique(flow, return_index=True)
    first[places] = True
    first &= ~taken[flow] & (flow > 0)
    taken[flow[first]] = True
    return np.where(first, flow, 0).astype(np.int32)


def _pid(process: int) -> int:
    """The operating system's number of a process from nsys's."""
    return process >> 24 & 0xFFFFFF


class _Trace:
    """A trace file as it is written."""

    def __init__(self, file: IO[bytes]) -> None:
        from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace
        from perfetto.trace_builder.proto_builder import StreamingTraceProtoBuilder

        self._builder = StreamingTraceProtoBuilder(file)
        self._chunk = Trace()
        self._tracks = 0

    def flush(self) -> None:
        """Write the packets so far."""
        packed = self._builder.create_packet()
        packed.compressed_packets = zlib.compress(self._chunk.SerializeToString(), _LEVEL)
        self._builder.write_packet(packed)
        self._chunk.Clear()

    def track(self, **descriptor: Any) -> int:
        """A new track, by the fields of its descriptor."""
        self._tracks += 1
        self._chunk.packet.add(track_descriptor={"uuid": self._tracks, **descriptor})
        return self._tracks

    def process(self, pid: int) -> int:
        return self.track(process={"pid": pid, "process_name": f"Process {pid}"})

    def thread(self, pid: int, tid: int) -> int:
        return self.track(thread={"pid": pid, "tid": tid, "thread_name": f"Thread {tid}"})

    def slices(self, name: str, slices: _Slices, **parent: int) -> None:
        """Slices on a track and, where they overlap, on further ones of its name."""
        if np.any((np.diff(slices.start) == 0) & (np.diff(slices.end) > 0)):
            slices = slices.at(np.lexsort((-slices.end, slices.start)))
        lanes = _lanes(slices.start, slices.end)
        for places in _places(lanes, int(lanes.max(initial=-1)) + 1):
            self._lane(self.track(name=name, **parent), slices.at(places))

    def _lane(self, track: int, slices: _Slices) -> None:
        """Slices that are apart or nested, in order of start, the longest first."""
        names, name = np.unique(slices.name, return_inverse=True)
        texts = (_text(slices.names[index]) for index in names.tolist())
        interned = [{"iid": n, "name": text} for n, text in enumerate(texts, 1)]
        flows = np.zeros(len(name), np.int64) if slices.flow is None else slices.flow
        self._chunk.packet.add(
            trusted_packet_sequence_id=track,
            sequence_flags=_CLEARED,
            trace_packet_defaults={"track_event_defaults": {"track_uuid": track}},
            interned_data={"event_names": interned},
        )
        rows = list(zip((name + 1).tolist(), flows.tolist(), strict=True))
        for time, kind, place in _events(slices):
            packet = self._chunk.packet.add(
                timestamp=time, trusted_packet_sequence_id=track, sequence_flags=_NEEDED
            )
            event = packet.track_event
            event.type = kind
            if kind != _END:
                event.name_iid, flow = rows[place]
                if flow:
                    ends = slices.ends_flows
                    (event.terminating_flow_ids if ends else event.flow_ids).append(flow)
            if len(self._chunk.packet) >= _CHUNK:
                self.flush()


def _events(slices: _Slices) -> Iterable[tuple[int, int, int]]:
    """Time, type and slice of each event, in order: what ends at a time is before what begins."""
    index = np.arange(len(slices.start))
    lasting = index[slices.end > slices.start]
    first = np.where(slices.end > slices.start, _BEGIN, _INSTANT)
    times = np.concatenate([slices.start, slices.end[lasting]])
    kind = np.concatenate([first, np.full(len(lasting), _END)])
    place = np.concatenate([index, lasting])
    is_end = kind == _END
    order = np.lexsort((np.where(is_end, -place, place), ~is_end, times))
    return zip(*(column[order].tolist() for column in (times, kind, place)), strict=True)


def _lanes(start: Times, end: Times) -> Indices:
    """For intervals in order of start, the longest first, a lane in which none overlap but nested
    ones."""
    lanes = np.zeros(len(start), np.int32)
    if np.all(start[1:] >= end[:-1]):
        return lanes
    open_ends: list[list[int]] = []  # of each lane, the innermost last
    innermost: list[tuple[int, int]] = []  # its end, negative, with the lane: the first to end last
    idle: list[int] = []
    for index, (begin, stop) in enumerate(zip(start.tolist(), end.tolist(), strict=True)):
        while innermost and -innermost[-1][0] <= begin:
            _, lane = innermost.pop()
            ends = open_ends[lane]
            while ends and ends[-1] <= begin:
                ends.pop()
            if ends:
                insort(innermost, (-ends[-1], lane))
            else:
                heappush(idle, lane)
        around = bisect_right(innermost, (-stop, len(open_ends))) - 1  # the tightest
        if around >= 0:
            _, lane = innermost.pop(around)
        elif idle:
            lane = heappop(idle)
        else:
            lane = len(open_ends)
            open_ends.append([])
        open_ends[lane].append(stop)
        insort(innermost, (-stop, lane))
        lanes[index] = lane
    return lanes


def _text(text: str) -> str:
    """Text that UTF-8 can hold."""
    return text.encode("utf-8", "replace").decode()
