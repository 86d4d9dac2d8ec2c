"""The events of a recording as columns; what is absent or of another type is unknown."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from profkit.core.errors import BadInput
from profkit.core.typed_file import part
from profkit.timeline import TRACES, events, export
from profkit.timeline.captures import Node, capturing_calls
from profkit.timeline.events import Events, Indices, Times
from profkit.timeline.export_rows import recorded_by_nsys
from profkit.timeline.kineto import recorded_by_kineto
from profkit.timeline.messages import Payload
from profkit.timeline.pages import UNKNOWN
from profkit.timeline.rows import LARGEST_SIZE, NAMES, PLACE, Recorded, Rows, numbered, text_of

_NS = 1e9  # nanoseconds per second
_THREAD_BITS = 0xFFFFFF  # of globalTid: the low 24 bits are the thread (nsys, "SQLite schema")
_CORRELATIONS = 1 << 32  # correlation numbers: CUPTI counts them in 32 bits
_LONGEST = 1 << 53  # ns of a recording, 104 days: sums are exact as floating point numbers
_RECORDED = (
    "product_version", "schema_version", "created", "untimed", "diagnostics", "profiler"
)  # fmt: skip
_NO_NAME = "(name not in the export)"
_VERSION_SUFFIX = re.compile(r"_v\d{4,5}$")


def read(path: str | Path) -> Events:
    """The timeline in an nsys SQLite export, or in a trace of torch.profiler (.json, .json.gz).

    Raises BadInput when the file is absent, empty, damaged, of another kind, without events, or
    different from the manifest in its folder.
    """
    path = Path(path)
    is_trace = path.name.endswith(TRACES)
    return _Reader(path, (recorded_by_kineto if is_trace else recorded_by_nsys)(path)).read()


class _Reader:
    """Events from the rows of a recording, on the clock of the first one."""

    def __init__(self, path: Path, recorded: Recorded) -> None:
        self._path = path
        self._recorded = recorded
        self._rows = recorded.rows
        self._streams, self._threads = numbered(), numbered()
        self._kernel_names, self._configurations = numbered(), numbered()
        self._call_names, self._range_names = numbered(), numbered()
        self._memory_kinds = numbered()
        timed = [rows.numbers for rows in self._rows.values() if len(rows)]
        if not timed:
            raise BadInput(
                f"{path}: the export contains neither CUDA activity nor NVTX ranges", export.RECORD
            )
        self._origin = min(int(numbers["start"][0]) for numbers in timed)
        self._last = max(int(max(numbers["start"][-1], numbers["end"].max())) for numbers in timed)
        if self._last - self._origin > _LONGEST:
            days = (self._last - self._origin) / _NS / 86_400
            message = f"{path}: its events are {days:,.0f} days apart, at most 104"
            raise BadInput(message, export.AGAIN)

    def read(self) -> Events:
        calls = self._calls()
        launches = self._launches(calls)
        kernels = self._kernels(launches)
        ranges, modules = self._apart(self._ranges(export.RANGES))
        return Events(
            path=self._path,
            **part(self._recorded, *_RECORDED),
            origin_ns=self._origin,
            kernels=kernels,
            captures=self._captures(kernels, calls),
            memory_operations=self._memory_operations(launches),
            graphs=self._graphs(launches),
            calls=calls,
            ranges=ranges,
            modules=modules,
            operators=self._ranges(export.OPERATORS),
            messages=self._messages(),
            gpus=self._gpus({stream.device for stream in self._streams}),
            kernel_names=tuple(self._kernel_names),
            call_names=tuple(self._call_names),
            range_names=tuple(self._range_names),
            configurations=tuple(self._configurations),
            memory_kinds=tuple(self._memory_kinds),
            streams=tuple(self._streams),
            threads=tuple(self._threads),
        )

    def _first_text(self, *ids: int | None) -> str:
        """The first of the strings that is there; "" when none is."""
        texts = (self._recorded.texts.get(key, "") for key in ids if key is not None)
        return next(filter(None, texts), "")

    def _span(self, rows: Rows) -> tuple[Times, Times]:
        return rows.numbers["start"] - self._origin, rows.numbers["end"] - self._origin

    def _calls(self) -> events.Calls:
        rows = self._rows[export.CALLS]
        name = rows.each(
            self._call_names[_VERSION_SUFFIX.sub("", self._first_text(text)) or _NO_NAME]
            for _, text in rows.keys
        )
        thread = rows.each(self._thread(number) for number, _ in rows.keys)
        return events.Calls(*self._span(rows), name=name, thread=thread)

    def _thread(self, number: int | None) -> int:
        number = number or 0
        return self._threads[events.Thread(_process(number), number & _THREAD_BITS)]

    def _launches(self, calls: events.Calls) -> _Launches:
        processes = np.array([thread.process for thread in self._threads], np.int64)
        return _Launches(processes, calls.thread, self._rows[export.CALLS].numbers["correlationId"])

    def _submitted(self, table: str, launches: _Launches) -> tuple[Indices, Indices]:
        """The stream of every row of GPU work, and the call that submitted it."""
        rows = self._rows[table]
        places = [key[: len(PLACE)] for key in rows.keys]
        stream = rows.each(
            self._streams[events.Stream(process or 0, device or 0, context or 0, number or 0)]
            for device, context, number, process in places
        )
        process = rows.each(launches.process(process) for *_, process in places)
        return stream, launches.calls(process, rows.numbers["correlationId"])

    def _kernels(self, launches: _Launches) -> events.Kernels:
        rows = self._rows[export.KERNELS]
        first, sizes = len(PLACE), len(PLACE) + len(NAMES)
        names, shapes = self._kernel_names, self._configurations
        name = rows.each(names[self._kernel_name(*key[first:sizes])] for key in rows.keys)
        shape = rows.each(
            shapes[_configuration([_size(size) for size in key[sizes:]])] for key in rows.keys
        )
        stream, call = self._submitted(export.KERNELS, launches)
        return events.Kernels(
            *self._span(rows),
            stream=stream,
            call=call,
            name=name,
            configuration=shape,
            graph_node=rows.known("graphNodeId"),
        )

    def _captures(self, kernels: events.Kernels, calls: events.Calls) -> Indices:
        known = (row for row in self._recorded.nodes if None not in {row[0], *row[2:]})
        nodes = {
            (_process(thread), node): Node(original, start - self._origin, self._thread(thread))
            for node, original, start, thread in sorted(known, key=lambda row: -row[2])
        }  # of several events of a node the first: when it was made
        processes = [stream.process for stream in self._streams]
        return capturing_calls(kernels, calls, processes, nodes) if nodes else events.NO_CAPTURES

    def _kernel_name(self, *ids: int | None) -> events.KernelName:
        name, label, mangled = ids
        texts = (self._first_text(name, label, mangled), self._first_text(label, name, mangled))
        return events.KernelName(*(text or _NO_NAME for text in texts))

    def _memory_operations(self, launches: _Launches) -> events.MemoryOperations:
        kinds = self._memory_kinds
        copies, fills = self._rows[export.COPIES], self._rows[export.FILLS]
        size = np.concatenate([copies.known("bytes"), fills.known("bytes")])
        copied = copies.each(kinds[_copy(*key[len(PLACE) :])] for key in copies.keys)
        fill = kinds[events.MemoryKind("memset", "", "")] if len(fills) else 0
        streams, calls = zip(
            *(self._submitted(table, launches) for table in (export.COPIES, export.FILLS)),
            strict=True,
        )
        starts, ends = zip(*map(self._span, (copies, fills)), strict=True)
        start, end = np.concatenate(starts), np.concatenate(ends)
        order = np.lexsort((end, start))
        return events.MemoryOperations(
            start[order],
            end[order],
            stream=np.concatenate(streams)[order],
            call=np.concatenate(calls)[order],
            kind=np.concatenate([copied, np.full(len(fills), fill, np.int32)])[order],
            size=size[order],
        )

    def _graphs(self, launches: _Launches) -> events.Graphs:
        rows = self._rows[export.GRAPHS]
        stream, call = self._submitted(export.GRAPHS, launches)
        graph = rows.known("graphId")
        return events.Graphs(*self._span(rows), stream=stream, call=call, graph=graph)

    def _ranges(self, table: str) -> events.Ranges:
        rows = self._rows[table]
        start, end = self._span(rows)
        closed = rows.numbers["end"] != UNKNOWN
        end = np.where(closed, end, np.maximum(start, self._last - self._origin))
        name = rows.each(
            self._range_names[text_of(text) or self._first_text(text_id)]
            for _, _, text, text_id in rows.keys
        )
        thread = rows.each(
            self._thread(number) if kind == export.PUSH_POP else -1
            for kind, number, *_ in rows.keys
        )
        process = rows.each_long(_process(number) for _, number, *_ in rows.keys)
        order = np.lexsort((end, start))
        return events.Ranges(
            start[order],
            end[order],
            name=name[order],
            thread=thread[order],
            process=process[order],
            closed=closed[order],
        )

    def _apart(self, ranges: events.Ranges) -> tuple[events.Ranges, events.Ranges]:
        """The program's own ranges, and the closed ones of those that were injected."""
        names = [name.startswith(events.MODULE_PREFIX) for name in self._range_names]
        if not any(names):
            return ranges, events.NO_RANGES
        injected = np.array(names)[ranges.name]
        columns = [getattr(ranges, name) for name in ranges.__struct_fields__]
        own, modules = (
            events.Ranges(*(column[chosen] for column in columns))
            for chosen in (~injected, injected & ranges.closed)
        )
        return own, modules

    def _messages(self) -> events.Messages:
        ranks: dict[int | None, int] = {}
        found: list[tuple[int, int, int, int, Payload]] = []
        for message in self._recorded.messages:
            payload = message.payload
            if payload.ranks and payload.communicator is not None:
                ranks[payload.communicator] = payload.ranks
            if payload.size is not None:
                name = self._range_names[message.text or self._first_text(message.text_id)]
                thread = self._thread(message.thread)
                found.append((message.start, message.end, name, thread, payload))
        if not found:
            return events.NO_MESSAGES
        starts, ends, called, threads, payloads = zip(*found, strict=True)
        names_of = [each.communicator for each in payloads]
        numbers = {name: number for number, name in enumerate(dict.fromkeys(names_of), 1)}
        numbers[None] = 0
        return events.Messages(
            np.array(starts, np.int64) - self._origin,
            np.array(ends, np.int64) - self._origin,
            name=np.array(called, np.int32),
            thread=np.array(threads, np.int32),
            size=np.array([each.size for each in payloads], np.int64),
            ranks=np.array([ranks.get(each.communicator, 0) for each in payloads], np.int64),
            communicator=np.array([numbers[name] for name in names_of], np.int64),
        )

    def _gpus(self, devices: set[int]) -> tuple[events.TimelineGpu, ...]:
        gpus = tuple(
            events.TimelineGpu(
                device=(number if device is None else device) or 0,
                name=text_of(name),
                cc=(_size(major), _size(minor)),
                sm_count=_size(sms),
                memory_bytes=_size(memory),
            )
            for number, device, name, major, minor, sms, memory in self._recorded.gpus
        )
        return tuple(gpu for gpu in gpus if gpu.device in devices) or gpus


class _Launches:
    """The calls that submit GPU work, by process and correlation number.

    Correlation numbers restart in each process, so that the process is part of the key. Where an
    export has no process, the number alone is used if only one process made calls.
    """

    def __init__(self, processes: Times, threads: Indices, correlations: Times) -> None:
        """`processes` are those of threads, `threads` those of calls."""
        self._processes, index = np.unique(processes, return_inverse=True)
        known = _correlated(correlations)
        self._known = np.flatnonzero(known)
        keys = index[threads[known]] * _CORRELATIONS + correlations[known]
        order = np.argsort(keys, kind="stable")
        self._keys, self._order = keys[order], self._known[order].astype(np.int32)
        calling = np.unique(index[threads])
        self._only = int(calling[0]) if len(calling) == 1 else -1

    def process(self, number: int | None) -> int:
        """The index of a process; -1 where it made no calls."""
        if number is None:
            return self._only
        index = int(np.searchsorted(self._processes, number))
        known = index < len(self._processes) and self._processes[index] == number
        return index if known else -1

    def calls(self, processes: Indices, correlations: Times) -> Indices:
        """The first call of each process with a correlation number; -1 where there is none."""
        found = np.full(len(processes), -1, np.int32)
        if not len(self._keys):
            return found
        known = np.flatnonzero((processes >= 0) & _correlated(correlations))
        wanted = processes[known].astype(np.int64) * _CORRELATIONS + correlations[known]
        place = np.minimum(np.searchsorted(self._keys, wanted), len(self._keys) - 1)
        same = self._keys[place] == wanted
        found[known[same]] = self._order[place[same]]
        return found


def _correlated(numbers: Times) -> npt.NDArray[np.bool_]:
    return (numbers >= 0) & (numbers < _CORRELATIONS)


def _configuration(sizes: Sequence[int]) -> events.LaunchConfiguration:
    return events.LaunchConfiguration(
        (sizes[0], sizes[1], sizes[2]), (sizes[3], sizes[4], sizes[5]), *sizes[6:]
    )


def _size(number: int | None) -> int:
    """A number of SMs, threads or bytes, 0 where it is unknown or none that a GPU can have."""
    return number if number is not None and 0 < number < LARGEST_SIZE else 0


def _copy(kind: int | None, source: int | None, target: int | None) -> events.MemoryKind:
    kinds = export.EXPORTED["memory_kinds"]
    name = export.EXPORTED["copy_kinds"].get(kind, "of unknown kind")
    return events.MemoryKind(name, kinds.get(source, ""), kinds.get(target, ""))


def _process(thread: int) -> int:
    return thread & ~_THREAD_BITS
