"""An Nsight Systems timeline, from what `nsys export --type sqlite` writes.

Tables are made lazily and gain columns with each schema version: an absent table means that nothing
of the kind happened, an absent column that the value is unknown.
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
from pathlib import Path
from typing import TYPE_CHECKING, Any

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
"""How many NVTX ranges around a call are told. Nests of modules and operators have some 10; many
more come of ranges that are begun and never ended."""

EXPORTED = shipped_yaml("profkit.timeline", "export.yaml")
COLUMNS: Mapping[str, tuple[str, ...]] = {
    table: tuple(columns["read"]) for table, columns in EXPORTED["tables"].items()
}
TEXT_COLUMNS = frozenset(
    (table, column)
    for table, columns in EXPORTED["tables"].items()
    for column in columns.get("text", ())
)

_THREAD_BITS = 0xFFFFFF
_LARGEST = 8 << 30  # bytes: all pages are checked, at about 1 GB/s
_MOST_ROWS = 1_000_000  # in the tables that are read; each takes 10 µs and about 1 kB
_MOST_TEXT = 256 << 20  # bytes in the columns of text that are read
_LONGEST_TEXT = 1 << 20  # bytes of one; names of generated kernels have some 10 kB
_LONGEST_VALUE = 256 << 20  # bytes of whatever else is kept, such as a program's output
_STEPS = 50_000_000, 50  # of SQLite's machine, and for each byte of the file: a check takes 1 to 3
_LESS = "record less: `nsys profile --duration SECONDS -t cuda,nvtx`"
_NS = 1e9
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
class NvtxRange:
    """An NVTX range, in seconds from the origin; `end` is the last event's where none was recorded.

    `thread` is the thread that pushed it, None for a start/end range, which belongs to the process.
    """

    name: str
    start: float
    end: float
    process: int
    thread: int | None
    closed: bool

    @property
    def duration(self) -> float:
        return length(self.start, self.end)


@dataclass(frozen=True, slots=True)
class ApiCall:
    """A CUDA runtime or driver call on a host thread, in seconds from the origin."""

    name: str
    start: float
    end: float
    process: int
    thread: int
    correlation: int

    @property
    def duration(self) -> float:
        return length(self.start, self.end)


@dataclass(frozen=True, slots=True)
class Stream:
    """Where GPU work is queued: its process, device, context and stream number."""

    process: int
    device: int
    context: int
    number: int


@dataclass(frozen=True, slots=True)
class Kernel:
    """A kernel on the GPU, in seconds from the origin; shared memory in bytes for a block.

    `launch` is the call that launched it, None where it was not recorded; `ranges` the NVTX ranges
    around that call, outermost first; where there are more than MOST_AROUND, the innermost.
    """

    name: str
    label: str
    start: float
    end: float
    stream: Stream
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    registers: int
    shared_static: int
    shared_dynamic: int
    launch: ApiCall | None
    ranges: tuple[NvtxRange, ...]

    @property
    def duration(self) -> float:
        return length(self.start, self.end)


@dataclass(frozen=True, slots=True)
class MemoryOperation:
    """A copy or a fill ("memset") on the GPU: seconds from the origin, and bytes.

    `source` and `target` are kinds of memory ("pageable", "pinned", "device", ...), "" if unknown.
    """

    kind: str
    bytes: int
    start: float
    end: float
    stream: Stream
    source: str
    target: str
    launch: ApiCall | None

    @property
    def name(self) -> str:
        return self.kind if self.kind == "memset" else f"copy {self.kind}"

    @property
    def label(self) -> str:
        return self.name

    @property
    def duration(self) -> float:
        return length(self.start, self.end)


@dataclass(frozen=True, slots=True)
class GraphRun:
    """A CUDA graph recorded as a whole, nsys's default: which kernels ran in it is not known."""

    start: float
    end: float
    stream: Stream
    launch: ApiCall | None

    @property
    def name(self) -> str:
        return "CUDA graph"

    @property
    def label(self) -> str:
        return self.name

    @property
    def duration(self) -> float:
        return length(self.start, self.end)


GpuWork = Kernel | MemoryOperation | GraphRun


@dataclass(frozen=True, slots=True)
class Synchronization:
    """A wait of a host thread or a stream, as the driver recorded it; seconds from the origin."""

    kind: str
    start: float
    end: float
    process: int

    @property
    def duration(self) -> float:
        return length(self.start, self.end)


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
    """What an export holds, each kind in order of its start.

    Times are seconds from the first event, which lies `origin_ns` nanoseconds after the start of
    the session at `created`. `gpus` are those that did work, or all where that can't be told.
    `untimed` counts GPU work and calls without a start and an end, which are left out.
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
    not the file that the manifest beside it describes.
    """
    path = Path(path)
    with open_export(path) as database:
        check_unchanged(path)
        return _Reader(path, database).timeline()


@contextmanager
def open_export(path: Path) -> Iterator[sqlite3.Connection]:
    """An export, checked and open for reading only.

    Raises BadInput, from the block in it too, when it can't be read or is none.
    """
    import sqlite3

    _refuse_other_kinds(path)
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as database:
            _limit(path, database)
            if database.execute("PRAGMA quick_check(1)").fetchone() != ("ok",):
                raise _damaged(path)
            if not _is_export(database):
                raise BadInput(f"{path}: an SQLite database, but no nsys export", _RECORD)
            _check_extent(path, database)
            yield database
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
        if getattr(error, "sqlite_errorname", "").startswith(("SQLITE_BUSY", "SQLITE_CANTOPEN")):
            raise BadInput(
                f"{path}: can't be read, another program holds it or its folder is closed",
                "copy the file and read the copy",
            ) from None
        raise _damaged(path) from None


def _limit(path: Path, database: sqlite3.Connection) -> None:
    """Bound what any query may take: the schema is part of the file, and may compute anything."""
    from sqlite3 import SQLITE_LIMIT_LENGTH, SQLITE_LIMIT_LIKE_PATTERN_LENGTH

    database.text_factory = _decode
    database.execute("PRAGMA trusted_schema = OFF")
    database.setlimit(SQLITE_LIMIT_LENGTH, _LONGEST_VALUE)
    database.setlimit(SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 100)
    interval = 1_000_000
    at_least, per_byte = _STEPS
    intervals = iter(range((at_least + per_byte * path.stat().st_size) // interval))
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
        raise BadInput(f"{path}: {rows:,} events and names, at most {_MOST_ROWS:,} are read", _LESS)
    if text > _MOST_TEXT:
        raise BadInput(f"{path}: {text / 2**20:,.0f} MiB of names", _LESS)
    database.setlimit(SQLITE_LIMIT_LENGTH, _LONGEST_TEXT)


def _decode(raw: bytes) -> str:
    return raw.decode(errors="replace")


def _refuse_other_kinds(path: Path) -> None:
    try:
        with open_regular(path) as file:
            head, size = file.read(64), os.fstat(file.fileno()).st_size
    except FileNotFoundError:
        raise BadInput(f"{path}: no such file", "check the path") from None
    except IsADirectoryError:
        raise BadInput(f"{path}: a directory, not an export", "give the .sqlite file") from None
    except OSError as error:
        raise BadInput(
            f"{path}: can't be read ({error.strerror})", "check its permissions"
        ) from None
    if not head:
        raise BadInput(f"{path}: empty file", _RECORD)
    if head.startswith(b"version https://git-lfs"):
        raise BadInput(
            f"{path}: a git-LFS pointer, not the export itself", "fetch it with `git lfs pull`"
        )
    if path.suffix in {".nsys-rep", ".qdrep"}:
        raise BadInput(
            f"{path}: an nsys report, not its SQLite export",
            "export it with `nsys export --type sqlite FILE`",
        )
    if not head.startswith(_MAGIC):
        raise BadInput(f"{path}: not an SQLite file, so no nsys export", _RECORD)
    if size > _LARGEST:
        raise BadInput(f"{path}: an export of more than {_LARGEST / 2**30:g} GiB", _LESS)


def _is_export(database: sqlite3.Connection) -> bool:
    tables = set(columns_of(database))
    return STRINGS in tables and len(tables & set(COLUMNS)) > 1


def columns_of(database: sqlite3.Connection) -> Mapping[str, frozenset[str]]:
    """The tables of an export that `read` knows, each with those of its columns that it knows."""
    tables = database.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
    found = {}
    for table in sorted({name for (name,) in tables} & set(COLUMNS)):
        info = database.execute(f"PRAGMA table_info({table})")
        found[table] = frozenset(row[1] for row in info) & set(COLUMNS[table])
    return found


def _damaged(path: Path) -> BadInput:
    return BadInput(f"{path}: the export is damaged", f"copy it again or {_AGAIN}")


_Row = tuple[Any, ...]


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
            raise BadInput(f"{path}: the export holds no CUDA activity and no NVTX range", _RECORD)
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
            GraphRun(*self._span(row), _stream(row), launches.of(row)) for row in self._raw[GRAPHS]
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
        picked = [_picked(table, column, have) for column in COLUMNS[table]]
        return self._database.execute(f"SELECT {', '.join(picked)} FROM {table}").fetchall()

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
        lacking = columns - self._columns.get(table, frozenset(columns))
        if lacking:
            raise BadInput(
                f"{self._path}: {table} has no column {', '.join(sorted(lacking))}",
                f"{_AGAIN} of a newer nsys",
            )

    def _span(self, row: _Row) -> tuple[float, float]:
        return (row[0] - self._origin) / _NS, (row[1] - self._origin) / _NS

    def _text(self, *ids: int | None) -> str:
        """The first of the strings that is there; "" when none is."""
        for number in ids:
            text = self._strings.get(number)
            if isinstance(text, str) and text:
                return text
        return ""

    def _calls(self) -> tuple[ApiCall, ...]:
        return tuple(
            ApiCall(
                _VERSION_SUFFIX.sub("", self._text(row[4])) or _NO_NAME,
                *self._span(row),
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
                    text if isinstance(text, str) and text else self._text(text_id),
                    *span,
                    process=_process(thread),
                    thread=thread if kind == PUSH_POP else None,
                    closed=closed,
                )
            )
        return tuple(made)

    def _kernel(self, row: _Row, launches: _Launches) -> Kernel:
        name, label, mangled = row[7:10]
        sizes = [value or 0 for value in row[10:16]]
        launch = launches.of(row)
        return Kernel(
            self._text(name, label, mangled) or _NO_NAME,
            self._text(label, name, mangled) or _NO_NAME,
            *self._span(row),
            stream=_stream(row),
            grid=(sizes[0], sizes[1], sizes[2]),
            block=(sizes[3], sizes[4], sizes[5]),
            registers=row[16] or 0,
            shared_static=row[17] or 0,
            shared_dynamic=row[18] or 0,
            launch=launch,
            ranges=launches.ranges_around(launch),
        )

    def _memory_operations(self, launches: _Launches) -> tuple[MemoryOperation, ...]:
        copies = (
            (row, _COPY_KINDS.get(row[8], "of unknown kind"), row[9], row[10])
            for row in self._raw[COPIES]
        )
        fills = ((row, "memset", None, row[8]) for row in self._raw[FILLS])
        made = [
            MemoryOperation(
                kind,
                row[7] or 0,
                *self._span(row),
                stream=_stream(row),
                source=_MEMORY_KINDS.get(source, ""),
                target=_MEMORY_KINDS.get(target, ""),
                launch=launches.of(row),
            )
            for row, kind, source, target in (*copies, *fills)
        ]
        return tuple(sorted(made, key=lambda item: (item.start, item.end)))

    def _synchronizations(self) -> tuple[Synchronization, ...]:
        return tuple(
            Synchronization(_WAITS.get(row[5], "unknown"), *self._span(row), process=row[3] or 0)
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
    """Which call launched what, and which NVTX ranges are around it.

    Correlation numbers count anew in each process, so the process belongs to the key. Where an
    export does not tell the process, the number alone serves if only one process made calls.
    """

    def __init__(self, calls: Sequence[ApiCall], ranges: Sequence[NvtxRange]) -> None:
        self._calls: dict[tuple[int, int], ApiCall] = {}
        for call in calls:
            self._calls.setdefault((call.process, call.correlation), call)
        processes = {call.process for call in calls}
        self._only = next(iter(processes)) if len(processes) == 1 else None
        self._around = _ranges_around(self._calls.values(), ranges)

    def of(self, row: _Row) -> ApiCall | None:
        """The call that launched the work of a raw row, by its `globalPid` and `correlationId`."""
        process = self._only if row[5] is None else row[5]
        if process is None or row[6] is None:
            return None
        return self._calls.get((process, row[6]))

    def ranges_around(self, call: ApiCall | None) -> tuple[NvtxRange, ...]:
        if call is None:
            return ()
        return self._around.get((call.process, call.correlation), ())


def _ranges_around(
    calls: Iterable[ApiCall], ranges: Iterable[NvtxRange]
) -> Mapping[tuple[int, int], tuple[NvtxRange, ...]]:
    """The ranges around each call, outermost first, by its process and correlation number.

    Push/pop ranges count on their own thread, start/end ranges in their whole process.
    """
    pushed: dict[int, list[NvtxRange]] = defaultdict(list)
    started: dict[int, list[NvtxRange]] = defaultdict(list)
    for item in ranges:
        if item.thread is None:
            started[item.process].append(item)
        else:
            pushed[item.thread].append(item)
    on_thread = {thread: _Ranges(items) for thread, items in pushed.items()}
    in_process = {process: _Ranges(items) for process, items in started.items()}
    around: dict[tuple[int, int], tuple[NvtxRange, ...]] = {}
    latest: dict[int, tuple[NvtxRange, ...]] = {}
    for call in calls:
        nests = on_thread.get(call.thread), in_process.get(call.process)
        both = [item for nest in nests if nest for item in nest.around(call)]
        found = tuple(sorted(both, key=_outermost_first)[-MOST_AROUND:])
        if latest.get(call.thread) != found:
            latest[call.thread] = found
        around[call.process, call.correlation] = latest[call.thread]  # one tuple for many calls
    return around


def _outermost_first(item: NvtxRange) -> tuple[float, float]:
    return item.start, -item.end


class _Ranges:
    """The ranges of a thread or a process, to be asked which of them are around a call."""

    def __init__(self, ranges: Iterable[NvtxRange]) -> None:
        self._ranges = sorted(ranges, key=_outermost_first)
        self._starts = [item.start for item in self._ranges]
        self._ends = _LatestEnds([item.end for item in self._ranges])

    def around(self, call: ApiCall) -> list[NvtxRange]:
        """The innermost that begin before a call and end after it."""
        begun = bisect_right(self._starts, call.start)
        places = self._ends.last_reaching(call.end, begun, MOST_AROUND)
        return [self._ranges[place] for place in reversed(places)]


class _LatestEnds:
    """Times by place, as a binary tree of maxima: the last places that reach a time, in log n."""

    def __init__(self, times: Sequence[float]) -> None:
        self._leaves = 1 << max(0, len(times) - 1).bit_length()
        self._latest = [-math.inf] * self._leaves + list(times)
        self._latest += [-math.inf] * (2 * self._leaves - len(self._latest))
        for node in range(self._leaves - 1, 0, -1):
            self._latest[node] = max(self._latest[2 * node], self._latest[2 * node + 1])

    def last_reaching(self, time: float, until: int, most: int) -> list[int]:
        """The last `most` places before `until` with at least that time, the last first."""
        latest, leaves, found = self._latest, self._leaves, list[int]()
        waiting = self._before(until)
        while waiting and len(found) < most:
            node = waiting.pop()
            if latest[node] < time:
                continue
            if node >= leaves:
                found.append(node - leaves)
            else:
                waiting += (2 * node, 2 * node + 1)
        return found

    def _before(self, until: int) -> list[int]:
        """The largest subtrees that hold all places before `until`, in order."""
        nodes = []
        first, end = self._leaves, self._leaves + until
        while first < end:
            if end & 1:
                nodes.append(end - 1)
            if first & 1:  # the root: all places
                nodes.append(first)
                break
            first, end = first >> 1, end >> 1
        return nodes[::-1]


def _picked(table: str, column: str, have: frozenset[str]) -> str:
    if column not in have:
        return "NULL"
    return f'"{column}"' if (table, column) in TEXT_COLUMNS else f'CAST("{column}" AS INTEGER)'


def _process(thread: int) -> int:
    return thread & ~_THREAD_BITS


def _stream(row: _Row) -> Stream:
    device, context, number, process = (value or 0 for value in row[2:6])
    return Stream(process, device, context, number)
