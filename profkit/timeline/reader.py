"""The events of an nsys export as columns; what is absent or of another type is unknown."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from itertools import chain, compress, count
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from profkit.core.errors import BadInput
from profkit.core.integrity import check_unchanged
from profkit.core.regular_file import open_regular
from profkit.timeline import events, export
from profkit.timeline.events import Events, Indices, Times
from profkit.timeline.messages import LARGEST_BLOB, Payload, payload_of, schemas_of
from profkit.timeline.pages import UNKNOWN, OtherFormat, whole_numbers

if TYPE_CHECKING:
    import sqlite3

_NS = 1e9  # nanoseconds per second
_THREAD_BITS = 0xFFFFFF  # of globalTid: the low 24 bits are the thread (nsys, "SQLite schema")
_CORRELATIONS = 1 << 32  # correlation numbers: CUPTI counts them in 32 bits
_CHUNK = 20_000  # rows, chosen: their Python objects take some 20 MB
_MIXED = np.uint64(0x9E3779B97F4A7C15)  # odd, with bits all over: 2^64 by the golden ratio
_HALF = np.uint64(32)  # bits
_LATEST = 1 << 62  # ns, of any time: those since 1970 until 2116
_LONGEST = 1 << 53  # ns of a recording, 104 days: sums are exact as floating point numbers
_LARGEST_SIZE = 1 << 50  # bytes, chosen: more than any memory
_UNKNOWN = f"({UNKNOWN + 1} - 1)"  # SQLite takes the number itself for a floating one
_NO_TIME = UNKNOWN + 1  # earlier than any start
_MOST_VALUES = 1 << 24  # in rows that differ by more than time; each takes some 60 bytes
_NO_NAME = "(name not in the export)"
_VERSION_SUFFIX = re.compile(r"_v\d{4,5}$")

_PLACE = ("deviceId", "contextId", "streamId", "globalPid")
_NAMES = ("demangledName", "shortName", "mangledName")
_SIZES = (
    "gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ",
    "registersPerThread", "staticSharedMemory", "dynamicSharedMemory",
)  # fmt: skip
_SHAPES = {
    export.KERNELS: (("start", "end", "correlationId", "graphNodeId"), (*_PLACE, *_NAMES, *_SIZES)),
    export.CALLS: (("start", "end", "correlationId"), ("globalTid", "nameId")),
    export.COPIES: (
        ("start", "end", "correlationId", "bytes"),
        (*_PLACE, "copyKind", "srcKind", "dstKind"),
    ),
    export.FILLS: (("start", "end", "correlationId", "bytes"), _PLACE),
    export.GRAPHS: (("start", "end", "correlationId", "graphId"), _PLACE),
    export.SYNCHRONIZATIONS: (("start", "end"), ("globalPid", "syncType")),
    export.RANGES: (("start", "end"), ("eventType", "globalTid", "text", "textId")),
}
"""Of each table of events the columns with a number for each event, and those that repeat."""

_Key = tuple[Any, ...]
_Numbers = npt.NDArray[np.int64]


def read(path: str | Path) -> Events:
    """The timeline in an nsys SQLite export.

    Raises BadInput when the file is absent, empty, damaged, of another kind, without events, or
    different from the manifest in its folder.
    """
    path = Path(path)
    with export.open_export(path) as database, open_regular(path) as file:
        check_unchanged(path)
        return _Reader(path, database, file.fileno()).read()


class _Rows(Struct, frozen=True, eq=False):
    """Rows of a table: `numbers` by column, and what repeats as an index into `keys`."""

    numbers: dict[str, _Numbers]
    code: Indices
    keys: Sequence[_Key]

    def __len__(self) -> int:
        return len(self.code)

    def each(self, values: Iterable[int]) -> Indices:
        """A value of every row, from those of the keys."""
        return np.array(list(values), np.int32)[self.code]

    def each_long(self, values: Iterable[int]) -> Times:
        return np.array(list(values), np.int64)[self.code]

    def known(self, column: str) -> Times:
        """A column with 0 where it is unknown."""
        numbers = self.numbers[column]
        return np.where(numbers == UNKNOWN, 0, numbers)


class _Collected:
    """Rows of a table as they are read, in parts."""

    def __init__(self, path: Path, table: str) -> None:
        self.table = table
        self._path = path
        self._names, key_names = _SHAPES[table]
        self._most = _MOST_VALUES // len(key_names)
        self._codes = _numbered()
        self._of_hash: dict[int, int] = {}
        self._numbers: list[list[_Numbers]] = []
        self._code: list[Indices] = []
        self.untimed = 0

    def timed(self, start: _Numbers, end: _Numbers) -> npt.NDArray[np.bool_]:
        """Which rows have times; CUPTI writes an end of 0 for what it can't time, and a range that
        was never ended has none."""
        is_open = (end == UNKNOWN) & (self.table == export.RANGES)
        is_left_out = (end == 0) & (self.table != export.RANGES)
        ended = (end >= start) & (end <= _LATEST) & ~is_left_out
        timed: npt.NDArray[np.bool_] = (start >= -_LATEST) & (start <= _LATEST) & (ended | is_open)
        self.untimed += int((~timed).sum())
        return timed

    def codes(self, keys: Iterable[_Key]) -> Indices:
        return np.fromiter(map(self._codes.__getitem__, keys), np.int32)

    def codes_of_numbers(self, columns: Sequence[_Numbers]) -> Indices:
        """The codes of keys that are rows of columns."""
        hashed = np.zeros(len(columns[0]), np.uint64)
        for column in columns:
            hashed = (hashed ^ column.view(np.uint64)) * _MIXED
            hashed ^= hashed >> _HALF
        different, firsts, alike = np.unique(hashed, return_index=True, return_inverse=True)
        appearing = np.argsort(firsts)
        codes = np.empty(len(different), np.int32)
        values = (column[firsts[appearing]].tolist() for column in columns)
        hashes = different[appearing].tolist()
        for place, number, key in zip(
            appearing.tolist(), hashes, zip(*values, strict=True), strict=True
        ):
            if (code := self._of_hash.get(number)) is None:
                known = tuple(None if value == UNKNOWN else value for value in key)
                code = self._of_hash[number] = self._codes[known]
            codes[place] = code
        return codes[alike]

    def add(self, numbers: list[_Numbers], code: Indices) -> None:
        if len(self._codes) > self._most:
            raise BadInput(f"{self._path}: {self.table} has too many different rows", export.LESS)
        self._numbers.append(numbers)
        self._code.append(code)

    def in_order(self) -> _Rows:
        """The rows in order of start, then of end."""
        none: list[_Numbers] = [np.empty(0, np.int64)] * len(self._names)
        columns = [np.concatenate(parts) for parts in zip(none, *self._numbers, strict=True)]
        code = np.concatenate([np.empty(0, np.int32), *self._code])
        numbers = dict(zip(self._names, columns, strict=True))
        order = np.lexsort((numbers["end"], numbers["start"]))
        return _Rows(
            {name: column[order] for name, column in numbers.items()},
            code[order],
            tuple(self._codes),
        )


def _numbered() -> defaultdict[Any, int]:
    """The index of each item, in order of appearance."""
    return defaultdict(count().__next__)


class _Reader:
    """One reading of an export: raw rows first, then events on the clock of the first one."""

    def __init__(self, path: Path, database: sqlite3.Connection, file: int) -> None:
        self._path = path
        self._database = database
        self._file = file
        self._columns = export.columns_of(database)
        self._untimed = 0
        self._streams, self._threads = _numbered(), _numbered()
        self._kernel_names, self._configurations = _numbered(), _numbered()
        self._call_names, self._range_names = _numbered(), _numbered()
        self._memory_kinds, self._waits = _numbered(), _numbered()
        self._rows = {table: self._timed(table) for table in _SHAPES}
        self._strings = self._texts()
        recorded = [rows.numbers for rows in self._rows.values() if len(rows)]
        if not recorded:
            raise BadInput(
                f"{path}: the export contains neither CUDA activity nor NVTX ranges", export.RECORD
            )
        self._origin = min(int(numbers["start"][0]) for numbers in recorded)
        self._last = max(
            int(max(numbers["start"][-1], numbers["end"].max())) for numbers in recorded
        )
        if self._last - self._origin > _LONGEST:
            days = (self._last - self._origin) / _NS / 86_400
            message = f"{path}: its events are {days:,.0f} days apart, at most 104"
            raise BadInput(message, export.AGAIN)

    def read(self) -> Events:
        calls = self._calls()
        launches = self._launches(calls)
        facts: dict[Any, Any] = dict(self._all(export.EXPORT, ("name", "value")))
        return Events(
            path=self._path,
            product_version=_text(facts.get("EXPORT_PRODUCT_VERSION")),
            schema_version=_text(facts.get("EXPORT_SCHEMA_VERSION")),
            created=self._created(),
            origin_ns=self._origin,
            kernels=self._kernels(launches),
            memory_operations=self._memory_operations(launches),
            graphs=self._graphs(launches),
            calls=calls,
            synchronizations=self._synchronizations(),
            ranges=self._ranges(),
            messages=self._messages(),
            untimed=self._untimed,
            diagnostics=self._diagnostics(),
            gpus=self._gpus({stream.device for stream in self._streams}),
            kernel_names=tuple(self._kernel_names),
            call_names=tuple(self._call_names),
            range_names=tuple(self._range_names),
            synchronization_kinds=tuple(self._waits),
            configurations=tuple(self._configurations),
            memory_kinds=tuple(self._memory_kinds),
            streams=tuple(self._streams),
            threads=tuple(self._threads),
        )

    def _all(self, table: str, columns: Sequence[str]) -> Iterable[_Key]:
        """These columns of all rows, None where a column is absent; numbers are integers."""
        if table not in self._columns:
            return ()
        values = ", ".join(self._value(table, column) for column in columns)
        return self._database.execute(f"SELECT {values} FROM {table} NOT INDEXED")

    def _value(self, table: str, column: str) -> str:
        """A column's value in SQL, NULL where it has another type than the column should; an end
        of another type is none that was left out."""
        if column not in self._columns[table]:
            return "NULL"
        if (table, column) in export.TEXT_COLUMNS:
            return f'"{column}"'
        if column == "end":
            end = f"WHEN 'integer' THEN max(end, {_NO_TIME}) WHEN 'null' THEN NULL ELSE {_NO_TIME}"
            return f"CASE typeof(end) {end} END"
        return f"""CASE typeof("{column}") WHEN 'integer' THEN "{column}" END"""

    def _timed(self, table: str) -> _Rows:
        """Rows with a start and an end, in their order; CUPTI writes 0 for what it can't time."""
        numbers, _ = _SHAPES[table]
        if table not in self._columns:
            none = dict.fromkeys(numbers, np.empty(0, np.int64))
            return _Rows(none, np.empty(0, np.int32), ())
        of_ranges = {"eventType", "globalTid"} if table == export.RANGES else set()
        required = {"start", "end"} | of_ranges
        if lacking := required - self._columns[table]:
            message = f"{self._path}: {table} has no column {', '.join(sorted(lacking))}"
            raise BadInput(message, f"{export.AGAIN} from a newer nsys")
        rows = _Collected(self._path, table)
        try:
            self._take_pages(rows)
        except OtherFormat:
            rows = _Collected(self._path, table)
            self._query(rows)
        self._untimed += rows.untimed
        return rows.in_order()

    def _take_pages(self, rows: _Collected) -> None:
        """Take a table's rows from the pages of the file. Raises OtherFormat where that fails."""
        if rows.table == export.RANGES:  # among other events, and with texts
            raise OtherFormat
        shape = _SHAPES[rows.table]
        columns = [name for name in (*shape[0], *shape[1]) if name in self._columns[rows.table]]
        for values in whole_numbers(self._database, self._file, rows.table, columns):
            known = dict(zip(columns, values, strict=True))
            timed = rows.timed(known["start"], known["end"])
            if not np.all(timed):
                known = {name: column[timed] for name, column in known.items()}
            absent = np.full(len(known["start"]), UNKNOWN)
            numbers, keys = ([known.get(name, absent) for name in names] for names in shape)
            rows.add(numbers, rows.codes_of_numbers(keys))

    def _query(self, rows: _Collected) -> None:
        """Take a table's rows by a query."""
        numbers, keys = _SHAPES[rows.table]
        values = [f"ifnull({self._value(rows.table, name)}, {_UNKNOWN})" for name in numbers]
        values += [self._value(rows.table, name) for name in keys]
        cursor = self._database.execute(
            f"SELECT {', '.join(values)} FROM {rows.table} NOT INDEXED {_ranges(rows.table)}"
        )
        width = len(numbers)
        number_of, key_of = itemgetter(slice(width)), itemgetter(slice(width, None))
        while chunk := cursor.fetchmany(_CHUNK):
            flat = np.fromiter(chain.from_iterable(map(number_of, chunk)), np.int64)
            columns = flat.reshape(-1, width).T
            timed = rows.timed(columns[0], columns[1])
            codes = rows.codes(map(key_of, compress(chunk, timed)))
            rows.add([column[timed] for column in columns], codes)

    def _texts(self) -> dict[int, str]:
        """The strings that events name."""
        columns = {export.KERNELS: _NAMES, export.CALLS: ("nameId",), export.RANGES: ("textId",)}
        wanted = {
            key[_SHAPES[table][1].index(name)]
            for table, names in columns.items()
            for name in names
            for key in self._rows[table].keys
        }
        rows = self._all(export.STRINGS, ("id", "value"))
        return {key: text for key, text in rows if key in wanted and isinstance(text, str)}

    def _first_text(self, *ids: int | None) -> str:
        """The first of the strings that is there; "" when none is."""
        texts = (self._strings.get(key, "") for key in ids if key is not None)
        return next(filter(None, texts), "")

    def _span(self, rows: _Rows) -> tuple[Times, Times]:
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
        places = [key[: len(_PLACE)] for key in rows.keys]
        stream = rows.each(
            self._streams[events.Stream(process or 0, device or 0, context or 0, number or 0)]
            for device, context, number, process in places
        )
        process = rows.each(launches.process(process) for *_, process in places)
        return stream, launches.calls(process, rows.numbers["correlationId"])

    def _kernels(self, launches: _Launches) -> events.Kernels:
        rows = self._rows[export.KERNELS]
        first, sizes = len(_PLACE), len(_PLACE) + len(_NAMES)
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

    def _kernel_name(
        self, name: int | None, label: int | None, mangled: int | None
    ) -> events.KernelName:
        return events.KernelName(
            self._first_text(name, label, mangled) or _NO_NAME,
            self._first_text(label, name, mangled) or _NO_NAME,
        )

    def _memory_operations(self, launches: _Launches) -> events.MemoryOperations:
        kinds = self._memory_kinds
        copies, fills = self._rows[export.COPIES], self._rows[export.FILLS]
        size = np.concatenate([self._bytes(export.COPIES), self._bytes(export.FILLS)])
        copied = copies.each(kinds[_copy(*key[len(_PLACE) :])] for key in copies.keys)
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

    def _bytes(self, table: str) -> Times:
        """The bytes of copies or fills; 0 in an export without them."""
        rows = self._rows[table]
        if "bytes" in self._columns.get(table, ()):
            size = rows.numbers["bytes"]
            wrong = np.flatnonzero((size < 0) | (size > _LARGEST_SIZE))
            if len(wrong):
                (count,) = size[wrong[:1]].tolist()
                known = "no number" if count == UNKNOWN else f"{count:,}"
                message = f"{self._path}: {table} has {known} for the bytes of a row"
                raise BadInput(message, export.AGAIN)
        return rows.known("bytes")

    def _graphs(self, launches: _Launches) -> events.Graphs:
        rows = self._rows[export.GRAPHS]
        stream, call = self._submitted(export.GRAPHS, launches)
        graph = rows.known("graphId")
        return events.Graphs(*self._span(rows), stream=stream, call=call, graph=graph)

    def _synchronizations(self) -> events.Synchronizations:
        rows = self._rows[export.SYNCHRONIZATIONS]
        names = export.EXPORTED["synchronization_kinds"]
        kind = rows.each(self._waits[names.get(number, "unknown")] for _, number in rows.keys)
        process = rows.each_long(process or 0 for process, _ in rows.keys)
        return events.Synchronizations(*self._span(rows), kind=kind, process=process)

    def _ranges(self) -> events.Ranges:
        rows = self._rows[export.RANGES]
        start, end = self._span(rows)
        closed = rows.numbers["end"] != UNKNOWN
        end = np.where(closed, end, np.maximum(start, self._last - self._origin))
        name = rows.each(
            self._range_names[_text(text) or self._first_text(text_id)]
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

    def _messages(self) -> events.Messages:
        schemas = schemas_of(
            self._all(export.PAYLOAD_FIELDS, ("domainId", "schemaId", "type", "name", "offset"))
        )
        if not schemas or "binaryData" not in self._columns.get(export.RANGES, ()):
            return events.NO_MESSAGES
        names = ("start", "end", "globalTid", "text", "textId")
        values = [self._value(export.RANGES, name) for name in names]
        cursor = self._database.execute(
            f"SELECT {', '.join(values)}, binaryData FROM {export.RANGES} NOT INDEXED "
            f"{_ranges(export.RANGES)} AND typeof(start) = 'integer' AND typeof(end) = 'integer' "
            f"AND start >= {-_LATEST} AND end BETWEEN start AND {_LATEST} "
            f"AND typeof(binaryData) = 'blob' AND length(binaryData) <= {LARGEST_BLOB} "
            "ORDER BY 1, 2"
        )
        ranks: dict[int | None, int] = {}
        found: list[tuple[int, int, int, int, Payload]] = []
        for start, end, thread, text, text_id, blob in cursor:
            payload = payload_of(blob, schemas)
            if payload is None:
                continue
            if payload.ranks and payload.communicator is not None:
                ranks[payload.communicator] = payload.ranks
            if payload.size is not None:
                name = self._range_names[_text(text) or self._first_text(text_id)]
                found.append((start, end, name, self._thread(thread), payload))
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

    def _diagnostics(self) -> tuple[str, ...]:
        """What nsys warned of, errors first, each once."""
        if not self._columns.get(export.DIAGNOSTICS, frozenset()) >= {"severity", "text"}:
            return ()
        rows = self._database.execute(
            f"SELECT DISTINCT text FROM {export.DIAGNOSTICS} NOT INDEXED "
            f"WHERE {export.OF_TRACING} ORDER BY severity DESC"
        )
        return tuple(_text(text) for (text,) in rows)

    def _created(self) -> datetime | None:
        for (ns,) in self._all(export.SESSION_START, ("utcEpochNs",)):
            try:
                return datetime.fromtimestamp(ns / _NS, UTC) if ns else None
            except (OverflowError, ValueError, OSError):
                return None
        return None

    def _gpus(self, devices: set[int]) -> tuple[events.TimelineGpu, ...]:
        names = ("id", "cuDevice", "name", "computeMajor", "computeMinor", "smCount", "totalMemory")
        gpus = tuple(
            events.TimelineGpu(
                device=(number if device is None else device) or 0,
                name=_text(name),
                cc=(_size(major), _size(minor)),
                sm_count=_size(sms),
                memory_bytes=_size(memory),
            )
            for number, device, name, major, minor, sms, memory in self._all(export.GPUS, names)
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


def _ranges(table: str) -> str:
    """The condition for rows that are ranges of a thread, where a table has other events too."""
    if table != export.RANGES:
        return ""
    kinds = f"eventType IN ({export.PUSH_POP}, {export.START_END})"
    return f"WHERE {kinds} AND typeof(globalTid) = 'integer'"


def _configuration(sizes: Sequence[int]) -> events.LaunchConfiguration:
    return events.LaunchConfiguration(
        (sizes[0], sizes[1], sizes[2]), (sizes[3], sizes[4], sizes[5]), *sizes[6:]
    )


def _size(number: int | None) -> int:
    """A number of SMs, threads or bytes, 0 where it is unknown or none that a GPU can have."""
    return number if number is not None and 0 < number < _LARGEST_SIZE else 0


def _copy(kind: int | None, source: int | None, target: int | None) -> events.MemoryKind:
    kinds = export.EXPORTED["memory_kinds"]
    name = export.EXPORTED["copy_kinds"].get(kind, "of unknown kind")
    return events.MemoryKind(name, kinds.get(source, ""), kinds.get(target, ""))


def _process(thread: int) -> int:
    return thread & ~_THREAD_BITS


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
