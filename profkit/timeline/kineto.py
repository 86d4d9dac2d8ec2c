"""What a trace of torch.profiler (Kineto) holds, as rows of an nsys export.

Kineto and nsys record the same activities of CUPTI. Kineto's times are microseconds since
`baseTimeNanoseconds`, or since 1970 in traces of torch before 2.3.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import TypeGuard

import numpy as np
from msgspec.structs import replace

from profkit.core.errors import BadInput, refusal
from profkit.core.integrity import check_unchanged
from profkit.timeline import export
from profkit.timeline.pages import UNKNOWN
from profkit.timeline.rows import (
    LARGEST_SIZE,
    LATEST,
    NO_TIME,
    PLACE,
    SHAPES,
    Collected,
    Key,
    Recorded,
    Rows,
    numbered,
    text_of,
)
from profkit.timeline.trace_json import LESS, Arguments, TraceEvent, TraceFile, open_trace
from profkit.ui.names import own_name
from profkit.ui.text import plural

RECORD = "profile on a machine with a GPU, activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]"
_TABLES = {
    "kernel": export.KERNELS, "Kernel": export.KERNELS,
    "gpu_memcpy": export.COPIES, "Memcpy": export.COPIES,
    "gpu_memset": export.FILLS, "Memset": export.FILLS,
    "cuda_runtime": export.CALLS, "cuda_driver": export.CALLS, "Runtime": export.CALLS,
    "user_annotation": export.RANGES,
    "cpu_op": export.OPERATORS, "Operator": export.OPERATORS,
}  # fmt: skip
"""The tables of categories; those with capitals are of torch before 1.12."""
_ON_GPU = (export.KERNELS, export.COPIES, export.FILLS)
_ON_HOST = (export.RANGES, export.OPERATORS)
_PROCESS = PLACE.index("globalPid")
_NO_ARGUMENTS = Arguments()
_MEMORIES = {name.title(): number for number, name in export.EXPORTED["memory_kinds"].items()}
_FAR = LATEST // 1000  # µs
_MOST = 50_000_000  # rows, as of an export
_BITS = 24  # of a process or thread number in nsys's globalTid
PROFILER_STEP = "ProfilerStep"
"""The range of a step that `profiler.step()` ends; Kineto writes its number behind it."""
_COPY = re.compile(r"Memcpy (\w+)(?: \(([\w ]+) -> ([\w ]+)\))?")
_COPIES = {
    "HtoD": 1, "DtoH": 2, "HtoA": 3, "AtoH": 4, "AtoA": 5, "AtoD": 6, "DtoA": 7, "DtoD": 8,
    "HtoH": 9, "PtoP": 10,
}  # fmt: skip
"""Kineto's words for CUPTI's kinds of copies."""
_NUMBER = re.compile(r"-?[0-9]{1,20}(\.[0-9]{1,20})?", re.ASCII)
_EPOCH = 10**18  # ns since 1970, in 2001: what is earlier is no date


def recorded_by_kineto(path: Path) -> Recorded:
    """What a trace holds.

    Raises BadInput when the file is absent, damaged, of another kind, without GPU activity, or
    different from the manifest in its folder.
    """
    unreadable = refusal(f"{path}: can't be read", BadInput, "check the path")
    with unreadable, open_trace(path) as trace:
        check_unchanged(path)
        return _Trace(path, trace).recorded()


class _Trace:
    def __init__(self, path: Path, trace: TraceFile) -> None:
        self._path = path
        self._trace = trace
        base = trace.facts.base_time_nanoseconds
        self._base = base if _is_whole(base, LATEST) else 0
        self._texts, self._others = numbered(), numbered()
        self._callers: Counter[int] = Counter()
        self._rows = {table: Collected(path, table) for table in SHAPES}
        self._taken = 0
        self._makers: Mapping[str, Callable[[TraceEvent, Arguments], Key]] = {
            export.KERNELS: self._kernel,
            export.COPIES: self._copy,
            export.FILLS: self._fill,
            export.CALLS: self._call,
            export.RANGES: self._range,
            export.OPERATORS: self._range,
        }

    def recorded(self) -> Recorded:
        for events in self._trace.events():
            self._take(events)
        rows = {table: collected.in_order() for table, collected in self._rows.items()}
        if not any(len(rows[table]) for table in _ON_GPU):
            if untimed := sum(self._rows[table].untimed for table in _ON_GPU):
                message = f"no valid time (ts, dur) of {plural(untimed, 'event')} on the GPU"
                raise BadInput(f"{self._path}: {message}", RECORD)
            raise BadInput(f"{self._path}: a trace of torch.profiler without GPU activity", RECORD)
        if len(self._callers) > 1:
            message = f"{self._path}: a trace of {len(self._callers)} processes"
            raise BadInput(message, "read that of each process: their launches have equal numbers")
        process = next(iter(self._callers), 1) << _BITS
        for table in _ON_GPU:
            keys = [(*key[:_PROCESS], process, *key[_PROCESS + 1 :]) for key in rows[table].keys]
            rows[table] = replace(rows[table], keys=keys)
        _mark_graphs(rows[export.KERNELS], rows[export.CALLS], tuple(self._texts))
        first = min(int(each.numbers["start"][0]) for each in rows.values() if len(each))
        return Recorded(
            rows=rows,
            texts={number: text for text, number in self._texts.items()},
            untimed=sum(collected.untimed for collected in self._rows.values()),
            gpus=_gpus(self._trace.facts.device_properties),
            profiler="torch.profiler",
            created=datetime.fromtimestamp(first / 1e9, UTC) if first > _EPOCH else None,
        )

    def _take(self, events: Sequence[TraceEvent]) -> None:
        taken: defaultdict[str, list[Key]] = defaultdict(list)
        for event in events:
            table = _TABLES.get(event.cat) if type(event.cat) is str else None
            if table is not None and event.ph == "X":
                if table in _ON_HOST and text_of(event.name).startswith(f"{PROFILER_STEP}#"):
                    table, event.name = export.RANGES, PROFILER_STEP  # torch 1.8: an operator
                given = event.args
                arguments = given if isinstance(given, Arguments) else _NO_ARGUMENTS
                start = _time(event.ts, self._base)
                end = NO_TIME if start == NO_TIME else _time(event.dur, start)
                taken[table].append((start, end, *self._makers[table](event, arguments)))
            elif event.ph == "M" and event.name == "process_name":
                self._refuse_jax(event)
        for table, rows in taken.items():
            self._rows[table].take(rows)
            self._taken += len(rows)
        if self._taken > _MOST:
            raise BadInput(f"{self._path}: more than {_MOST:,} events", LESS)

    def _refuse_jax(self, event: TraceEvent) -> None:
        name = event.args.name if isinstance(event.args, Arguments) else None
        if isinstance(name, str) and name.startswith(("/device:", "/host:")):
            message = f"{self._path}: a trace of jax.profiler, which leaves out events of long runs"
            raise BadInput(message, "record with `nsys profile -t cuda,nvtx`")

    def _kernel(self, event: TraceEvent, arguments: Arguments) -> Key:
        name = text_of(event.name)
        return (
            _correlation(arguments),
            _number(arguments.graph_node),
            *_place(event, arguments),
            self._texts[name],
            self._texts[own_name(name)],
            None,
            *_extent(arguments.grid),
            *_extent(arguments.block),
            _size(arguments.registers),
            0,
            _size(arguments.shared_memory),
        )

    def _copy(self, event: TraceEvent, arguments: Arguments) -> Key:
        named = _COPY.match(text_of(event.name))
        kind, source, target = named.groups("") if named else ("", "", "")
        return (
            _correlation(arguments),
            self._bytes(arguments),
            *_place(event, arguments),
            _COPIES.get(kind),
            _MEMORIES.get(source),
            _MEMORIES.get(target),
        )

    def _fill(self, event: TraceEvent, arguments: Arguments) -> Key:
        return self._copy(event, arguments)[: 2 + len(PLACE)]

    def _call(self, event: TraceEvent, arguments: Arguments) -> Key:
        thread = self._thread(event)
        self._callers[thread >> _BITS] += 1
        return (_correlation(arguments), thread, self._texts[text_of(event.name)])

    def _range(self, event: TraceEvent, _: Arguments) -> Key:
        return (export.PUSH_POP, self._thread(event), text_of(event.name), None)

    def _bytes(self, arguments: Arguments) -> int:
        if arguments.bytes is None or _is_whole(arguments.bytes, LARGEST_SIZE):
            return _number(arguments.bytes)
        message = f"{self._path}: a copy of {str(arguments.bytes)[:20]} bytes"
        raise BadInput(message, "record again")

    def _thread(self, event: TraceEvent) -> int:
        """The number of a thread as nsys's globalTid: its process in the higher bits."""
        process, thread = (
            value if _is_whole(value, 1 << _BITS) else (1 << _BITS) - 1 - self._others[str(value)]
            for value in (event.pid, event.tid)
        )
        return process << _BITS | thread


def _is_whole(value: object, limit: int) -> TypeGuard[int]:
    return isinstance(value, int) and 0 <= value < limit


def _number(value: object) -> int:
    """A number of 63 bits at most, UNKNOWN for anything else."""
    return value if _is_whole(value, LATEST) else UNKNOWN


def _correlation(arguments: Arguments) -> int:
    """What joins a call and its work; 0 joins none."""
    return _number(arguments.correlation) or UNKNOWN


def _size(value: object) -> int | None:
    return value if _is_whole(value, LARGEST_SIZE) else None


def _time(microseconds: object, origin: int) -> int:
    """Nanoseconds after an origin; NO_TIME for what is no time. Other tools write numbers as
    texts."""
    if isinstance(microseconds, str) and _NUMBER.fullmatch(microseconds):
        microseconds = Decimal(microseconds)
    if not isinstance(microseconds, int | Decimal) or not -_FAR < microseconds < _FAR:
        return NO_TIME
    time = origin + round(microseconds * 1000)
    return time if -LATEST <= time <= LATEST else NO_TIME


def _extent(values: object) -> Iterable[int | None]:
    """The three sizes of a grid or block; unknown where there aren't three."""
    sizes = values if isinstance(values, list) and len(values) == 3 else [None] * 3
    return map(_size, sizes)


def _place(event: TraceEvent, arguments: Arguments) -> Key:
    """Device, context and stream; a process that is not known yet."""
    device, stream = _size(arguments.device), _size(arguments.stream)
    return (
        _size(event.pid) if device is None else device,
        _size(arguments.context),
        _size(event.tid) if stream is None else stream,
        None,
    )


def _mark_graphs(kernels: Rows, calls: Rows, texts: Sequence[str]) -> None:
    """Give kernels that a CUDA graph launched a node; traces of CUDA before 12 have none."""
    launching = calls.each("GraphLaunch" in texts[name] for _, name in calls.keys) == 1
    launches = calls.numbers["correlationId"][launching]
    node = kernels.numbers["graphNodeId"]
    node[(node <= 0) & np.isin(kernels.numbers["correlationId"], launches)] = 1


def _gpus(devices: object) -> Sequence[Key]:
    """The GPUs of a trace, by GPU_COLUMNS."""
    names = ("name", "computeMajor", "computeMinor", "numSms", "totalGlobalMem")
    return [
        (_size(gpu.get("id")), None, *(_gpu_value(gpu.get(name)) for name in names))
        for gpu in (devices if isinstance(devices, list) else ())
        if isinstance(gpu, dict)
    ]


def _gpu_value(value: object) -> object:
    return value if isinstance(value, str) else _size(value)
