"""An Nsight Systems timeline from the SQLite export (`nsys export --type sqlite`).

nsys creates tables on demand and adds columns with each schema version: an absent table means no
such events, an absent column that the value is unknown.
"""

from __future__ import annotations

import math
import os
import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from profkit.core.errors import BadInput
from profkit.core.integrity import check_unchanged
from profkit.core.regular_file import open_regular
from profkit.core.yaml_files import shipped_yaml

if TYPE_CHECKING:
    import sqlite3

KERNELS = "CUPTI_ACTIVITY_KIND_KERNEL"
CALLS = "CUPTI_ACTIVITY_KIND_RUNTIME"
COPIES = "CUPTI_ACTIVITY_KIND_MEMCPY"
FILLS = "CUPTI_ACTIVITY_KIND_MEMSET"
GRAPHS = "CUPTI_ACTIVITY_KIND_GRAPH_TRACE"
SYNCHRONIZATIONS = "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION"
RANGES = "NVTX_EVENTS"
GPUS = "TARGET_INFO_GPU"
SESSION_START = "TARGET_INFO_SESSION_START_TIME"
EXPORT = "META_DATA_EXPORT"
STRINGS = "StringIds"
PUSH_POP, START_END = 59, 60
MOST_AROUND = 16
"""The most enclosing NVTX ranges that are kept per call. Nested modules and operators have about
10; far more come from ranges that are never ended."""

EXPORTED = shipped_yaml("profkit.timeline", "export.yaml")
COLUMNS: Mapping[str, tuple[str, ...]] = {
    table: tuple(columns["read"]) for table, columns in EXPORTED["tables"].items()
}
TEXT_COLUMNS = frozenset(
    (table, column)
    for table, columns in EXPORTED["tables"].items()
    for column in columns.get("text", ())
)

_THREAD_BITS = 0xFFFFFF  # of globalTid: the low 24 bits are the thread (nsys, "SQLite schema")
_LARGEST = 8 << 30  # bytes: all pages are checked, at about 1 GB/s
_MOST_ROWS = 50_000_000  # in the tables that are read; each takes 3 µs and 100 bytes
_MOST_TEXT = 256 << 20  # bytes in the columns of text that are read
_LONGEST_TEXT = 1 << 20  # bytes of one; names of generated kernels have some 10 kB
_LONGEST_VALUE = 256 << 20  # bytes of any other value, such as a program's output
_STEPS = 50_000_000, 50  # of SQLite's machine, and for each byte of the file: a check takes 1 to 3
_LESS = "record less: `nsys profile --duration SECONDS -t cuda,nvtx`"
_NS = 1e9  # nanoseconds per second
_MAGIC = b"SQLite format 3\0"
_RECORD = "record with `nsys profile -t cuda,nvtx`, then `nsys export --type sqlite FILE`"
_AGAIN = "export it again with `nsys export --type sqlite`"
_NO_NAME = "(name not in the export)"
_VERSION_SUFFIX = re.compile(r"_v\d{4,5}$")

_COPY_KINDS: Mapping[int, str] = EXPORTED["copy_kinds"]
_MEMORY_KINDS: Mapping[int, str] = EXPORTED["memory_kinds"]
_WAITS: Mapping[int, str] = EXPORTED["synchronization_kinds"]


def length(start: float, end: float) -> float:
    """Seconds between two times, without the rounding of their difference: the clock counts ns."""
    return round(end - start, 9)


@dataclass(frozen=True, slots=True)
class Span:
    """Something with a start and an end, in seconds from the origin."""

    start: float
    end: float

    @property
    def duration(self) -> float:
        return length(self.start, self.end)


@dataclass(frozen=True, slots=True)
class NvtxRange(Span):
    """An NVTX range; `end` is the last event's where none was recorded.

    `thread` is the thread that pushed it, None for a start/end range, which belongs to the process.
    """

    name: str
    process: int
    thread: int | None
    closed: bool


@dataclass(frozen=True, slots=True)
class ApiCall(Span):
    """A CUDA runtime or driver call on a host thread."""

    name: str
    process: int
    thread: int
    correlation: int


@dataclass(frozen=True, slots=True)
class Stream:
    """Where GPU work is queued: its process, device, context and stream number."""

    process: int
    device: int
    context: int
    number: int


@dataclass(frozen=True, slots=True)
class Kernel(Span):
    """A kernel on the GPU; shared memory in bytes for a block.

    `launch` is the call that launched it, None where it was not recorded; `ranges` the NVTX ranges
    around that call, outermost first; where there are more than MOST_AROUND, the innermost.
    """

    name: str
    label: str
    stream: Stream
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    registers: int
    shared_static: int
    shared_dynamic: int
    launch: ApiCall | None
    ranges: tuple[NvtxRange, ...]


@dataclass(frozen=True, slots=True)
class MemoryOperation(Span):
    """A copy or a fill ("memset") on the GPU.

    `source` and `target` are kinds of memory ("pageable", "pinned", "device", ...), "" if unknown.
    """

    kind: str
    bytes: int
    stream: Stream
    source: str
    target: str
    launch: ApiCall | None

    @property
    def name(self) -> str:
        return self.kind if self.kind == "memset" else f"copy {self.kind}"

    label = name


@dataclass(frozen=True, slots=True)
class GraphRun(Span):
    """A CUDA graph traced as a whole, nsys's default: its kernels are unknown."""

    name: ClassVar = "CUDA graph"
    label: ClassVar = name
    stream: Stream
    launch: ApiCall | None


GpuWork = Kernel | MemoryOperation | GraphRun


@dataclass(frozen=True, slots=True)
class Synchronization(Span):
    """A wait of a host thread or a stream, as the driver recorded it."""

    kind: str
    process: int


@dataclass(frozen=True, slots=True)
class TimelineGpu:
    """A GPU of the recorded machine; `cc` is (0, 0) and numbers are 0 where unknown."""

    device: int
    name: str
    cc: tuple[int, int]
    sm_count: int
    memory_bytes: int


@dataclass(frozen=True)
class Timeline:
    """The content of an export, each kind in order of start.

    Times are seconds from the first event, which lies `origin_ns` nanoseconds after the start of
    the session at `created`. `gpus` are those with work, or all where that is unknown.
    `untimed` counts GPU work and calls without a start and an end, which are ignored.
    """

    path: Path
    product_version: str
    schema_version: str
    created: datetime | None
    origin_ns: int
    gpus: tuple[TimelineGpu, ...]
    kernels: tuple[Kernel, ...]
    calls: tuple[ApiCall, ...]
    memory_operations: tuple[MemoryOperation, ...]
    graphs: tuple[GraphRun, ...]
    synchronizations: tuple[Synchronization, ...]
    ranges: tuple[NvtxRange, ...]
    untimed: int


def read(path: str | Path) -> Timeline:
    """The timeline in an nsys SQLite export.

    Raises BadInput when the file is absent, empty, damaged, of another kind, without events, or
    different from the manifest in its folder.
    """
    path = Path(path)
    with open_export(path) as database:
        check_unchanged(path)
        return _Reader(path, database).timeline()


@contextmanager
def open_export(path: Path) -> Iterator[sqlite3.Connection]:
    """An export, checked and open for reading only.

    Raises BadInput, also from the `with` block, when it can't be read or is not an export.
    """
    import sqlite3

    _refuse_other_kinds(path)
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as database:
            _limit(path, database)
            if database.execute("PRAGMA quick_check(1)").fetchone() != ("ok",):
                raise _damaged(path)
            tables = columns_of(database).keys()
            if STRINGS not in tables or len(tables) < 2:
                raise BadInput(f"{path}: an SQLite database, not an nsys export", _RECORD)
            _check_extent(path, database)
            yield database
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
        if getattr(error, "sqlite_errorname", "").startswith(("SQLITE_BUSY", "SQLITE_CANTOPEN")):
            message = "can't be read (locked by another program, or its folder is not accessible)"
            raise BadInput(f"{path}: {message}", "copy the file and read the copy") from None
        raise _damaged(path) from None


def _limit(path: Path, database: sqlite3.Connection) -> None:
    """Limit the cost of any query: the schema is part of the file, and may compute anything."""
    from sqlite3 import SQLITE_LIMIT_LENGTH, SQLITE_LIMIT_LIKE_PATTERN_LENGTH

    database.text_factory = partial(str, encoding="utf-8", errors="replace")
    database.execute("PRAGMA trusted_schema = OFF")
    database.setlimit(SQLITE_LIMIT_LENGTH, _LONGEST_VALUE)
    database.setlimit(SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 100)
    interval = 1_000_000
    intervals = iter(range((_STEPS[0] + _STEPS[1] * path.stat().st_size) // interval))
    database.set_progress_handler(lambda: next(intervals, None) is None, interval)


def _check_extent(path: Path, database: sqlite3.Connection) -> None:
    """Raise BadInput for more rows or text than are read."""
    from sqlite3 import SQLITE_LIMIT_LENGTH

    rows = text = 0
    for table, columns in columns_of(database).items():
        texts = [column for column in columns if (table, column) in TEXT_COLUMNS]
        sizes = [f'coalesce(sum(length(CAST("{column}" AS BLOB))), 0)' for column in texts]
        count, *lengths = database.execute(
            f"SELECT {', '.join(['count(*)', *sizes])} FROM {table}"
        ).fetchone()
        rows, text = rows + count, text + sum(lengths)
    if rows > _MOST_ROWS:
        raise BadInput(f"{path}: {rows:,} events and names, at most {_MOST_ROWS:,}", _LESS)
    if text > _MOST_TEXT:
        raise BadInput(
            f"{path}: {text / 2**20:,.0f} MiB of names, at most {_MOST_TEXT >> 20} MiB", _LESS
        )
    database.setlimit(SQLITE_LIMIT_LENGTH, _LONGEST_TEXT)


def _refuse_other_kinds(path: Path) -> None:
    try:
        with open_regular(path) as file:
            head, size = file.read(64), os.fstat(file.fileno()).st_size
    except FileNotFoundError:
        raise BadInput(f"{path}: no such file", "check the path") from None
    except IsADirectoryError:
        raise BadInput(f"{path}: a directory, not an export", "pass the .sqlite file") from None
    except OSError as error:
        message = f"{path}: can't be read ({error.strerror})"
        raise BadInput(message, "check its permissions") from None
    export = "export it with `nsys export --type sqlite FILE`"
    is_pointer = head.startswith(b"version https://git-lfs")
    refusals = (
        (not head, "empty file", _RECORD),
        (is_pointer, "a git-LFS pointer, not the export itself", "fetch it with `git lfs pull`"),
        (path.suffix in {".nsys-rep", ".qdrep"}, "an nsys report, not its SQLite export", export),
        (not head.startswith(_MAGIC), "not an SQLite file, hence not an nsys export", _RECORD),
        (size > _LARGEST, f"an export of more than {_LARGEST / 2**30:g} GiB", _LESS),
    )
    for refused, message, remedy in refusals:
        if refused:
            raise BadInput(f"{path}: {message}", remedy)


def columns_of(database: sqlite3.Connection) -> Mapping[str, frozenset[str]]:
    """The tables of an export that `read` knows, each with those of its columns that it knows."""
    tables = database.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
    columns = {}
    for table in sorted({name for (name,) in tables} & set(COLUMNS)):
        info = database.execute(f"PRAGMA table_info({table})")
        columns[table] = frozenset(row[1] for row in info) & set(COLUMNS[table])
    return columns


def _damaged(path: Path) -> BadInput:
    return BadInput(f"{path}: the export is damaged", f"copy it again or {_AGAIN}")


_Row = tuple[Any, ...]
_Launch = tuple[ApiCall | None, tuple[NvtxRange, ...]]


class _Reader:
    """One reading of an export: raw rows first, then records on the clock of the first event."""

    def __init__(self, path: Path, database: sqlite3.Connection) -> None:
        self._path = path
        self._database = database
        self._columns = columns_of(database)
        self._untimed = 0
        self._strings: Mapping[int | None, Any] = dict(self._rows(STRINGS))
        self._raw = {
            table: self._timed(table)
            for table in (KERNELS, CALLS, COPIES, FILLS, GRAPHS, SYNCHRONIZATIONS)
        }
        self._raw_ranges = self._range_rows()
        starts = [rows[0][0] for rows in self._raw.values() if rows]
        starts += [row[0] for row in self._raw_ranges[:1]]
        if not starts:
            raise BadInput(
                f"{path}: the export contains neither CUDA activity nor NVTX ranges", _RECORD
            )
        self._origin: int = min(starts)
        self._last: int = max(
            max(row[0] if row[1] is None else row[1] for row in rows)
            for rows in (*self._raw.values(), self._raw_ranges)
            if rows
        )

    def timeline(self) -> Timeline:
        calls = self._calls()
        ranges = self._ranges()
        launches = _Launches(calls, ranges)
        kernels = tuple(self._kernel(row, launches) for row in self._raw[KERNELS])
        graphs = tuple(
            GraphRun(*self._span(row), _stream(row), launches.launch(row)[0])
            for row in self._raw[GRAPHS]
        )
        memory = self._memory_operations(launches)
        export = {name: value for name, value in self._rows(EXPORT) if isinstance(value, str)}
        work: tuple[GpuWork, ...] = (*kernels, *memory, *graphs)
        return Timeline(
            path=self._path,
            product_version=export.get("EXPORT_PRODUCT_VERSION", ""),
            schema_version=export.get("EXPORT_SCHEMA_VERSION", ""),
            created=self._created(),
            origin_ns=self._origin,
            gpus=self._gpus({item.stream.device for item in work}),
            kernels=kernels,
            calls=calls,
            memory_operations=memory,
            graphs=graphs,
            synchronizations=self._synchronizations(),
            ranges=ranges,
            untimed=self._untimed,
        )

    def _rows(self, table: str) -> list[_Row]:
        """The known columns of all rows, None where a column is absent; numbers are integers."""
        have = self._columns.get(table)
        if have is None:
            return []
        columns = ", ".join(
            "NULL"
            if column not in have
            else f'"{column}"'
            if (table, column) in TEXT_COLUMNS
            else f'CAST("{column}" AS INTEGER)'
            for column in COLUMNS[table]
        )
        return self._database.execute(f"SELECT {columns} FROM {table}").fetchall()

    def _timed(self, table: str) -> list[_Row]:
        """Rows with a start and an end, in their order; CUPTI writes 0 for what it can't time."""
        self._require(table, {"start", "end"})
        rows = self._rows(table)
        timed = [row for row in rows if row[0] is not None and row[1] and row[0] <= row[1]]
        self._untimed += len(rows) - len(timed)
        return sorted(timed, key=lambda row: (row[0], row[1]))

    def _range_rows(self) -> list[_Row]:
        self._require(RANGES, {"start", "end", "eventType", "globalTid"})
        rows = [
            row
            for row in self._rows(RANGES)
            if row[2] in {PUSH_POP, START_END}
            and row[0] is not None
            and row[3] is not None
            and (row[1] is None or row[0] <= row[1])
        ]
        return sorted(rows, key=lambda row: row[0])

    def _require(self, table: str, columns: set[str]) -> None:
        if lacking := columns - self._columns.get(table, frozenset(columns)):
            message = f"{self._path}: {table} has no column {', '.join(sorted(lacking))}"
            raise BadInput(message, f"{_AGAIN} from a newer nsys")

    def _span(self, row: _Row) -> tuple[float, float]:
        return (row[0] - self._origin) / _NS, (row[1] - self._origin) / _NS

    def _text(self, *ids: int | None) -> str:
        """The first of the strings that is there; "" when none is."""
        texts = map(self._strings.get, ids)
        return next((text for text in texts if isinstance(text, str) and text), "")

    def _calls(self) -> tuple[ApiCall, ...]:
        return tuple(
            ApiCall(
                *self._span(row),
                _VERSION_SUFFIX.sub("", self._text(row[4])) or _NO_NAME,
                process=_process(row[2] or 0),
                thread=row[2] or 0,
                correlation=row[3] or 0,
            )
            for row in self._raw[CALLS]
        )

    def _ranges(self) -> tuple[NvtxRange, ...]:
        made = []
        for start, end, kind, thread, text, text_id in self._raw_ranges:
            closed = end is not None
            span = self._span((start, end if closed else max(start, self._last)))
            made.append(
                NvtxRange(
                    *span,
                    text if isinstance(text, str) and text else self._text(text_id),
                    process=_process(thread),
                    thread=thread if kind == PUSH_POP else None,
                    closed=closed,
                )
            )
        return tuple(made)

    def _kernel(self, row: _Row, launches: _Launches) -> Kernel:
        name, label, mangled = row[7:10]
        sizes = [value or 0 for value in row[10:16]]
        launch, ranges = launches.launch(row)
        return Kernel(
            *self._span(row),
            self._text(name, label, mangled) or _NO_NAME,
            self._text(label, name, mangled) or _NO_NAME,
            stream=_stream(row),
            grid=(sizes[0], sizes[1], sizes[2]),
            block=(sizes[3], sizes[4], sizes[5]),
            registers=row[16] or 0,
            shared_static=row[17] or 0,
            shared_dynamic=row[18] or 0,
            launch=launch,
            ranges=ranges,
        )

    def _memory_operations(self, launches: _Launches) -> tuple[MemoryOperation, ...]:
        copies = (
            (row, _COPY_KINDS.get(row[8], "of unknown kind"), row[9], row[10])
            for row in self._raw[COPIES]
        )
        fills = ((row, "memset", None, row[8]) for row in self._raw[FILLS])
        made = [
            MemoryOperation(
                *self._span(row),
                kind,
                row[7] or 0,
                stream=_stream(row),
                source=_MEMORY_KINDS.get(source, ""),
                target=_MEMORY_KINDS.get(target, ""),
                launch=launches.launch(row)[0],
            )
            for row, kind, source, target in (*copies, *fills)
        ]
        return tuple(sorted(made, key=lambda item: (item.start, item.end)))

    def _synchronizations(self) -> tuple[Synchronization, ...]:
        return tuple(
            Synchronization(*self._span(row), _WAITS.get(row[5], "unknown"), process=row[3] or 0)
            for row in self._raw[SYNCHRONIZATIONS]
        )

    def _created(self) -> datetime | None:
        for (ns,) in self._rows(SESSION_START):
            try:
                return datetime.fromtimestamp(ns / _NS, UTC) if ns else None
            except (OverflowError, ValueError, OSError):
                return None
        return None

    def _gpus(self, devices: set[int]) -> tuple[TimelineGpu, ...]:
        gpus = tuple(
            TimelineGpu(
                device=(row[0] if row[1] is None else row[1]) or 0,
                name=row[2] if isinstance(row[2], str) else "",
                cc=(row[5] or 0, row[6] or 0),
                sm_count=row[3] or 0,
                memory_bytes=row[4] or 0,
            )
            for row in self._rows(GPUS)
        )
        return tuple(gpu for gpu in gpus if gpu.device in devices) or gpus


class _Launches:
    """The launch call of GPU work, and the NVTX ranges around that call.

    Correlation numbers restart in each process, so that the process is part of the key. Where an
    export has no process, the number alone is used if only one process made calls.
    """

    def __init__(self, calls: Sequence[ApiCall], ranges: Iterable[NvtxRange]) -> None:
        first: dict[tuple[int, int], ApiCall] = {}
        for call in calls:
            first.setdefault((call.process, call.correlation), call)
        processes = {call.process for call in calls}
        self._only = next(iter(processes)) if len(processes) == 1 else None
        self._launches: dict[tuple[int | None, int | None], _Launch] = {}
        self._launches.update(_with_ranges(first, ranges))

    def launch(self, row: _Row) -> _Launch:
        """The call that launched the work of a raw row, by its `globalPid` and `correlationId`, and
        the ranges around it."""
        process = self._only if row[5] is None else row[5]
        return self._launches.get((process, row[6]), (None, ()))


def _with_ranges(
    calls: Mapping[tuple[int, int], ApiCall], ranges: Iterable[NvtxRange]
) -> Iterator[tuple[tuple[int, int], _Launch]]:
    """Each call with the ranges around it, outermost first.

    Push/pop ranges count on their own thread, start/end ranges in their whole process.
    """
    owned: dict[tuple[str, int], list[NvtxRange]] = defaultdict(list)
    for item in ranges:
        owner = ("process", item.process) if item.thread is None else ("thread", item.thread)
        owned[owner].append(item)
    nests = {owner: _Ranges(items) for owner, items in owned.items()}
    latest: dict[int, tuple[NvtxRange, ...]] = {}
    for key, call in calls.items():
        own = nests.get(("thread", call.thread)), nests.get(("process", call.process))
        both = [item for nest in own if nest for item in nest.around(call)]
        around = tuple(sorted(both, key=_outermost_first)[-MOST_AROUND:])
        if latest.get(call.thread) != around:
            latest[call.thread] = around
        yield key, (call, latest[call.thread])  # one tuple for many calls


def _outermost_first(item: NvtxRange) -> tuple[float, float]:
    return item.start, -item.end


class _Ranges:
    """The ranges of a thread or a process, to be asked which of them are around a call.

    Their ends stand in a binary tree of maxima, so that a search takes log n steps.
    """

    def __init__(self, ranges: Iterable[NvtxRange]) -> None:
        self._ranges = sorted(ranges, key=_outermost_first)
        self._starts = [item.start for item in self._ranges]
        self._leaves = 1 << max(0, len(self._ranges) - 1).bit_length()
        unused = [-math.inf] * (self._leaves - len(self._ranges))
        ends = [item.end for item in self._ranges]
        self._latest = [-math.inf] * self._leaves + ends + unused
        for node in range(self._leaves - 1, 0, -1):
            self._latest[node] = max(self._latest[2 * node], self._latest[2 * node + 1])

    def around(self, call: ApiCall) -> list[NvtxRange]:
        """The innermost that begin before a call and end after it."""
        begun = bisect_right(self._starts, call.start)
        indices = self._reaching(call.end, begun, 1, 0, self._leaves)
        return [self._ranges[index] for index in islice(indices, MOST_AROUND)][::-1]

    def _reaching(
        self, time: float, until: int, node: int, first: int, count: int
    ) -> Iterator[int]:
        """The ranges below a node and before `until` that end no earlier, the last first."""
        if first >= until or self._latest[node] < time:
            return
        if count == 1:
            yield first
            return
        half = count // 2
        yield from self._reaching(time, until, 2 * node + 1, first + half, half)
        yield from self._reaching(time, until, 2 * node, first, half)


def _process(thread: int) -> int:
    return thread & ~_THREAD_BITS


def _stream(row: _Row) -> Stream:
    device, context, number, process = (value or 0 for value in row[2:6])
    return Stream(process, device, context, number)
