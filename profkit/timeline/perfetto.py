"""A timeline as a Perfetto trace, which ui.perfetto.dev and the trace processor read.

Each stream and host thread is a track. Where slices of a track overlap without being nested they go
to further tracks of the same name, which Perfetto shows as one. Packets of a kind differ in a few
numbers only: the package writes one of each kind, the numbers of all others are set in its bytes.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from profkit.core.atomic_file import replacement
from profkit.core.errors import UsageError
from profkit.core.extras import require
from profkit.timeline.events import Events, GpuWork, Indices, Times
from profkit.timeline.work import reached

if TYPE_CHECKING:
    from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import TracePacket

_Numbers: TypeAlias = npt.NDArray[np.int64]
_Bytes: TypeAlias = npt.NDArray[np.uint8]

_CHUNK = 1 << 16  # slices, chosen: their packets take some 5 MB
_LEVEL = 1  # of zlib: level 6 makes a file 15% smaller in 3 times the time
_FIELDS = (9, 7), (4, 7), (4, 7), (8, 8)
"""Digits and their bits of a time, a name, a detail and a flow; a varint has 7 bits in a byte."""
_DETAIL = 1  # the interned name of the annotation that has more of a slice


@dataclass(frozen=True, eq=False)
class _Slices:
    """Slices of a track: `name` is an index into `names`.

    `flow` is a number that a slice shares with another one, which an arrow joins; 0 for none.
    `detail` is an index into `details`.
    """

    start: Times
    end: Times
    name: Indices
    names: Sequence[str]
    flow: Indices | None = None
    ends_flows: bool = False
    detail: Indices | None = None
    details: Sequence[str] = ()

    def at(self, places: Any) -> _Slices:
        return replace(
            self,
            start=self.start[places],
            end=self.end[places],
            name=self.name[places],
            flow=None if self.flow is None else self.flow[places],
            detail=None if self.detail is None else self.detail[places],
        )


def write(events: Events, path: Path, steps: Iterable[tuple[str, int, int]] = ()) -> None:
    """Write a trace; `steps` are names with a start and an end (ns), shown on a track of their own.

    Raises EnvironmentProblem where the `perfetto` package is not installed, UsageError where the
    file can't be written.
    """
    require("--perfetto", "perfetto")
    try:
        with replacement(path, 0o666) as temporary, temporary.open("wb") as file:
            _write(events, _Trace(file), tuple(steps))
    except OSError as error:
        message = f"{path}: can't be written ({error.strerror})"
        raise UsageError(message, "choose another file") from None


def _write(events: Events, trace: _Trace, steps: Sequence[tuple[str, int, int]]) -> None:
    if steps:
        names, starts, ends = zip(*steps, strict=True)
        times = (np.array(starts, np.int64), np.array(ends, np.int64))
        track = trace.track("Steps")
        trace.slices(track, _Slices(*times, np.arange(len(steps), dtype=np.int32), names))
    _write_gpus(events, trace)
    calls, ranges = events.calls, events.ranges
    called = _Slices(calls.start, calls.end, calls.name, events.call_names, _submitted(events))
    ranged = _Slices(ranges.start, ranges.end, ranges.name, events.range_names)
    numbers = [*(thread.process for thread in events.threads), *ranges.process.tolist()]
    processes = {
        number: trace.track(f"Process {_pid(number)}", process={"pid": _pid(number)})
        for number in dict.fromkeys(numbers)
    }
    count = len(events.threads)
    kinds = {
        "CUDA calls": (called, _places(calls.thread, count)),
        "NVTX": (ranged, _places(ranges.thread, count)),
    }
    for index, thread in enumerate(events.threads):
        ids = {"pid": _pid(thread.process), "tid": thread.number}
        host = trace.track(f"Thread {thread.number}", processes[thread.process], thread=ids)
        for kind, (slices, places) in kinds.items():
            if len(places[index]):
                trace.slices(trace.track(kind, host), slices.at(places[index]))
    whole = np.flatnonzero(ranges.thread < 0)
    owners = np.array(list(processes), np.int64)
    order = np.argsort(owners)
    owner = order[np.searchsorted(owners, ranges.process[whole], sorter=order)]
    for own, parent in zip(_places(owner, len(owners)), processes.values(), strict=True):
        if len(own):
            trace.slices(trace.track("NVTX start/end", parent), ranged.at(whole[own]))


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
    names = {gpu.device: gpu.name for gpu in events.gpus}
    processes = len({stream.process for stream in events.streams})
    gpus: dict[tuple[int, int], int] = {}
    taken = np.zeros(len(events.calls) + 1, np.bool_)
    kinds = {"": _kernels(events), " memory": _memory(events), " graphs": _graphs(events)}
    flows = [_first_of_call(work, taken) for work, _ in kinds.values()]
    placed = [_places(work.stream, len(events.streams)) for work, _ in kinds.values()]
    for index, stream in enumerate(events.streams):
        place = (stream.process, stream.device)
        if place not in gpus:
            title = f"GPU {stream.device} {names.get(stream.device, '')}".strip()
            owner = f" of process {_pid(stream.process)}" if processes > 1 else ""
            gpus[place] = trace.track(title + owner)
        for (kind, (_, slices)), flow, places in zip(kinds.items(), flows, placed, strict=True):
            if len(own := places[index]):
                track = trace.track(f"Stream {stream.number}{kind}", gpus[place])
                trace.slices(track, replace(slices, flow=flow, ends_flows=True).at(own))


def _first_of_call(work: GpuWork, taken: npt.NDArray[np.bool_]) -> Indices:
    """For each piece of work its flow, if it is the first that its call submitted."""
    flow = work.call + 1
    first = np.zeros(len(flow), np.bool_)
    _, places = np.unique(flow, return_index=True)
    first[places] = True
    first &= ~taken[flow] & (flow > 0)
    taken[flow[first]] = True
    return np.where(first, flow, 0).astype(np.int32)


def _kernels(events: Events) -> tuple[GpuWork, _Slices]:
    kernels, count = events.kernels, max(1, len(events.configurations))
    both = kernels.name.astype(np.int64) * count + kernels.configuration
    different = np.unique(both)
    details = []
    for pair in different.tolist():
        name, index = divmod(pair, count)
        shape = events.configurations[index]
        details.append(
            f"{events.kernel_names[name].name}, grid {shape.grid}, block {shape.block}, "
            f"{shape.registers} registers per thread, shared memory {shape.shared_static} + "
            f"{shape.shared_dynamic} B"
        )
    detail = np.searchsorted(different, both).astype(np.int32)
    labels = [kernel.label for kernel in events.kernel_names]
    slices = _Slices(
        kernels.start, kernels.end, kernels.name, labels, detail=detail, details=details
    )
    return kernels, slices


def _memory(events: Events) -> tuple[GpuWork, _Slices]:
    operations = events.memory_operations
    names = []
    for kind in events.memory_kinds:
        ends = " to ".join(filter(None, (kind.source, kind.target)))
        names.append(f"{kind.kind} ({ends})" if ends else kind.kind)
    sizes, detail = np.unique(operations.size, return_inverse=True)
    details = [f"{size:,} B" for size in sizes.tolist()]
    slices = _Slices(
        operations.start, operations.end, operations.kind, names,
        detail=detail.astype(np.int32), details=details,
    )  # fmt: skip
    return operations, slices


def _graphs(events: Events) -> tuple[GpuWork, _Slices]:
    graphs = events.graphs
    numbers, name = np.unique(graphs.graph, return_inverse=True)
    names = [f"CUDA graph {number}" for number in numbers.tolist()]
    return graphs, _Slices(graphs.start, graphs.end, name.astype(np.int32), names)


def _pid(process: int) -> int:
    """The operating system's number of a process from nsys's."""
    return process >> 24 & 0xFFFFFF


class _Trace:
    """A trace file as it is written."""

    def __init__(self, file: IO[bytes]) -> None:
        from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as protos

        self._file = file
        self._protos = protos
        self._tracks = 0
        self._names: dict[int, tuple[str, int]] = {}

    def track(
        self,
        name: str,
        parent: int = 0,
        process: Mapping[str, int] | None = None,
        thread: Mapping[str, int] | None = None,
    ) -> int:
        """A new track; slices go to others below the one of a process or a thread."""
        self._tracks += 1
        packet = self._protos.TracePacket()
        descriptor = packet.track_descriptor
        descriptor.uuid = self._tracks
        if process:
            descriptor.process.pid = process["pid"]
            descriptor.process.process_name = _text(name)
        elif thread:
            descriptor.thread.pid, descriptor.thread.tid = thread["pid"], thread["tid"]
            descriptor.thread.thread_name = _text(name)
        else:
            descriptor.name = _text(name)
        if parent and not thread:
            descriptor.parent_uuid = parent
        self._put(packet)
        self._names[self._tracks] = name, parent
        return self._tracks

    def slices(self, track: int, slices: _Slices) -> None:
        """Slices on a track and, where they overlap, on further ones of its name."""
        if np.any((np.diff(slices.start) == 0) & (np.diff(slices.end) > 0)):
            slices = slices.at(np.lexsort((-slices.end, slices.start)))
        lanes = _lanes(slices.start, slices.end)
        for lane in range(int(lanes.max(initial=-1)) + 1):
            place = track if lane == 0 else self.track(*self._names[track])
            self._lane(place, slices.at(lanes == lane) if lanes.any() else slices)

    def _lane(self, track: int, slices: _Slices) -> None:
        """Slices that are apart or nested, in order of start, the longest first."""
        packet = self._packet(track)
        packet.sequence_flags = packet.SEQ_INCREMENTAL_STATE_CLEARED
        packet.trace_packet_defaults.track_event_defaults.track_uuid = track
        interned = packet.interned_data
        names = np.unique(slices.name)
        for number, index in enumerate(names.tolist(), start=1):
            interned.event_names.add(iid=number, name=_text(slices.names[index]))
        details = names if slices.detail is None else np.unique(slices.detail)
        if slices.detail is not None:
            interned.debug_annotation_names.add(iid=_DETAIL, name="detail")
            for number, index in enumerate(details.tolist(), start=1):
                text = _text(slices.details[index]).encode()
                interned.debug_annotation_string_values.add(iid=number, str=text)
        self._put(packet)
        kinds = self._kinds(track, slices)
        for part in _parts(slices):
            times, kind, place = _events(part)
            name = np.searchsorted(names, part.name) + 1
            detail = name if part.detail is None else np.searchsorted(details, part.detail) + 1
            flow = np.zeros(len(name), np.int64) if part.flow is None else part.flow
            columns = [times, name[place], detail[place], flow[place]]
            numbers = np.stack(columns, axis=1).astype(np.int64, copy=False)
            self._put_events(kinds, kind + 3 * (flow[place] > 0), numbers)

    def _packet(self, track: int) -> TracePacket:
        """A packet of the sequence that a track has for itself."""
        packet = self._protos.TracePacket()
        packet.trusted_packet_sequence_id = track
        return packet

    def _kinds(self, track: int, slices: _Slices) -> list[_Kind]:
        """Packets by kind: begin, end and instant, without and with a flow."""
        event = self._protos.TrackEvent
        types = (event.TYPE_SLICE_BEGIN, event.TYPE_SLICE_END, event.TYPE_INSTANT)

        def packet(which: int, numbers: Sequence[int]) -> bytes:
            time, name, detail, flow = numbers
            made = self._packet(track)
            made.timestamp = time
            made.sequence_flags = made.SEQ_NEEDS_INCREMENTAL_STATE
            track_event = made.track_event
            track_event.type = types[which % 3]
            if track_event.type == event.TYPE_SLICE_END:
                return self._bytes(made)
            track_event.name_iid = name
            if slices.detail is not None:
                track_event.debug_annotations.add(name_iid=_DETAIL, string_value_iid=detail)
            if which >= 3:
                ends = slices.ends_flows
                flows = track_event.terminating_flow_ids if ends else track_event.flow_ids
                flows.append(flow)
            return self._bytes(made)

        return [_Kind.of(partial(packet, which)) for which in range(6)]

    def _put_events(self, kinds: Sequence[_Kind], kind: Indices, numbers: _Numbers) -> None:
        sizes = np.array([len(each.template) for each in kinds])[kind]
        starts = np.cumsum(sizes) - sizes
        data = np.zeros(int(sizes.sum()), np.uint8)
        for index, each in enumerate(kinds):
            rows = np.flatnonzero(kind == index)
            if len(rows):
                places = starts[rows][:, None] + np.arange(len(each.template))
                data[places] = each.packets(numbers[rows])
        packed = self._protos.TracePacket()
        packed.compressed_packets = zlib.compress(data.tobytes(), _LEVEL)
        self._put(packed)

    def _put(self, packet: TracePacket) -> None:
        self._file.write(self._bytes(packet))

    def _bytes(self, packet: TracePacket) -> bytes:
        return bytes(self._protos.Trace(packet=[packet]).SerializeToString())


@dataclass(frozen=True, eq=False)
class _Kind:
    """A packet with the places of its numbers: time, name, detail and flow, -1 without one."""

    template: _Bytes
    places: Sequence[int]

    @classmethod
    def of(cls, packet: Callable[[Sequence[int]], bytes]) -> _Kind:
        """Of what writes a packet with numbers: their places are where two packets differ."""
        largest = [(1 << digits * bits) - 1 for digits, bits in _FIELDS]
        template = np.frombuffer(packet(largest), np.uint8)
        places = []
        for index, (digits, bits) in enumerate(_FIELDS):
            smallest = [*largest]
            smallest[index] = 1 << (digits - 1) * bits
            differs = np.frombuffer(packet(smallest), np.uint8) != template
            places.append(int(np.argmax(differs)) if differs.any() else -1)
        return cls(template, places)

    def packets(self, numbers: _Numbers) -> _Bytes:
        """A packet for each row of numbers."""
        rows = np.tile(self.template, (len(numbers), 1))
        for place, (digits, bits), column in zip(self.places, _FIELDS, numbers.T, strict=True):
            for digit in range(digits if place >= 0 else 0):
                more = 0x80 if bits < 8 and digit < digits - 1 else 0
                rows[:, place + digit] = column >> digit * bits & (1 << bits) - 1 | more
        return rows


def _parts(slices: _Slices) -> Iterator[_Slices]:
    """Slices of a lane by some thousand, cut where none is open."""
    closed = np.flatnonzero(slices.start >= reached(slices.start, slices.end))
    cuts = np.unique(np.searchsorted(closed, np.arange(0, len(slices.start), _CHUNK)))
    bounds = [*closed[cuts[cuts < len(closed)]].tolist(), len(slices.start)]
    for first, last in pairwise(bounds):
        yield slices.at(slice(first, last))


def _events(slices: _Slices) -> tuple[Times, Indices, Indices]:
    """Times of begins (0), ends (1) and instants (2), in order, with the slice of each."""
    index = np.arange(len(slices.start), dtype=np.int32)
    lasting = index[slices.end > slices.start]
    first = np.where(slices.end > slices.start, 0, 2).astype(np.int32)
    times = np.concatenate([slices.start, slices.end[lasting]])
    kind = np.concatenate([first, np.ones(len(lasting), np.int32)])
    place = np.concatenate([index, lasting])
    is_end = kind == 1
    order = np.lexsort((np.where(is_end, -place, place), ~is_end, times))
    return times[order], kind[order], place[order]


def _lanes(start: Times, end: Times) -> Indices:
    """For intervals in order of start, the longest first, a lane in which none overlap but nested
    ones."""
    lanes = np.zeros(len(start), np.int32)
    if np.all(start[1:] >= end[:-1]):
        return lanes
    open_ends: list[list[int]] = []
    for index, (begin, stop) in enumerate(zip(start.tolist(), end.tolist(), strict=True)):
        lane = next(
            (lane for lane, ends in enumerate(open_ends) if _has_room(ends, begin, stop)),
            len(open_ends),
        )
        if lane == len(open_ends):
            open_ends.append([])
        open_ends[lane].append(stop)
        lanes[index] = lane
    return lanes


def _has_room(ends: list[int], begin: int, stop: int) -> bool:
    """Whether an interval is in the innermost of those that are open; others are closed."""
    while ends and ends[-1] <= begin:
        ends.pop()
    return not ends or stop <= ends[-1]


def _text(text: str) -> str:
    """Text that UTF-8 can hold."""
    return text.encode("utf-8", "replace").decode()
