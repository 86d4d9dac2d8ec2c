"""A recorded launch whose details are read when asked for: instances, source, machine code.

The format has a launch's cubin, but neither its machine code as text nor its line table. These come
from the vendor's reader, which is given the program without metrics: with them, opening a launch
costs 14 ms and 23 MB, and the first 130 MB more. Where it is not installed, they are unknown.
"""

from __future__ import annotations

import math
import os
import shutil
import weakref
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache, cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any, BinaryIO

from profkit.core.errors import BadInput
from profkit.core.regular_file import read_at
from profkit.report.framing import COUNTS, MAGIC, REPEAT, ZSTD_MAGIC, Kind, Record, damaged
from profkit.report.launch_message import MANGLED, LaunchMessage, Metric, integers
from profkit.report.memory import NamelessFile, ensure_room, too_large
from profkit.report.messages import decode, new, prefixed, text

READER_MISSING = "NVIDIA's reader (ncu-report) is not installed here"
WITHOUT_READER = f"machine code and source lines are not available: {READER_MISSING}"

_DEBUGGED = b".nv_debug_info_reg_sass"  # a section of nvcc -G alone; -lineinfo has .debug_line
_FILE_VERSION = 7  # of the format, in the file's header: that of all of 158 reports
_CACHED_LAUNCHES = 16  # chosen: a report of a few is read once
_CACHED_BYTES = 16 << 20  # of them, undecoded, chosen: decoded they take some 100 MB


@cache
def has_reader() -> bool:
    """Whether NVIDIA's reader of reports, which not every platform has, is installed."""
    return find_spec("ncu_report") is not None


class Action:
    """A recorded launch; answers as ncu_report's IAction does.

    Raises BadInput where the report is damaged, or was changed since it was opened.
    """

    __slots__ = ("_file", "_offset", "_place", "_program", "_size", "kind")

    def __init__(self, file: ReportFile, record: Record, message: LaunchMessage) -> None:
        self.kind = record.kind
        self._offset, self._size = record.offset, record.size
        self._file = file
        self._program = file.program(record.kind, message.sources())
        self._place = self._program.add(message.code())
        file.keep(self._offset, message)

    @property
    def message(self) -> LaunchMessage:
        """All of it that was recorded."""
        return self._file.message(self.kind, self._offset, self._size)

    def metric_names(self) -> Sequence[str]:
        """The names of its metrics."""
        return list(self.message.metrics)

    def metric_by_name(self, name: str) -> Metric | None:
        """A metric; None where it was not recorded."""
        return self.message.metric_by_name(name)

    def source_files(self) -> Mapping[str, str]:
        """The texts of its source files by name, empty where they were not recorded."""
        return self._program.texts

    @property
    def debug_information(self) -> float:
        """1 if the program was compiled for debugging, 0 if not, NaN where it is not recorded."""
        return self._program.debug_information

    def source_info(self, address: int) -> Any:
        """The source file and line of an instruction, of the vendor's; None where unknown."""
        return self._program.answer("source_info", self._place, address)

    def sass_by_pc(self, address: int) -> str:
        """The machine code of an instruction as text, "" where unknown."""
        return self._program.answer("sass_by_pc", self._place, address) or ""

    def code_start(self, metric: str) -> int | None:
        """The address of the kernel's own code, of those in a metric, where functions that it calls
        have theirs too; None where it is unknown."""
        recorded = self.metric_by_name(metric)
        if recorded is None:
            return None
        addresses = set(integers(recorded.instances.values))
        if len(addresses) > 1:
            addresses &= self._program.functions.get(self.message.kernel_name(MANGLED), set())
        return addresses.pop() if len(addresses) == 1 else None

    def units(self) -> Mapping[str, str]:
        """The unit of each metric, which the vendor's reader knows; none without it."""
        if not has_reader():
            return {}
        launch = self._file.read(self._offset, self._size)
        opened = Opened(self._file.path, self.kind, [], [launch], self._file.names)
        (handle,) = opened.handles
        with _damage_of(self._file.path):
            return {name: handle.metric_by_name(name).unit() for name in handle.metric_names()}


class ReportFile:
    """A report that stays open for what is read of it later.

    `names` are those of its metrics.
    """

    def __init__(self, path: Path, file: BinaryIO, names: Sequence[str]) -> None:
        self.path = path
        self.names = names
        self._packed = read_at(file.fileno(), len(ZSTD_MAGIC), 0) == ZSTD_MAGIC
        self._descriptor = os.dup(file.fileno())
        weakref.finalize(self, os.close, self._descriptor)
        self._changed = self._change()
        self._sources: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
        self._programs: dict[tuple[Kind, frozenset[int]], Program] = {}
        self._messages: dict[int, LaunchMessage] = {}

    def add_source(self, record: Record) -> None:
        """Remember where a source is."""
        source = self._decoded(record.data)
        if source.HasField("reference"):
            self._sources[source.reference].append((record.offset, record.size))

    def _decoded(self, source: bytes) -> Any:
        try:
            return decode("SourceData", source)
        except ValueError as error:
            raise damaged(self.path, str(error)) from None

    def decoded(self, numbers: frozenset[int]) -> Iterator[Any]:
        """The sources of some numbers as messages."""
        return map(self._decoded, self.sources(numbers))

    def sources(self, numbers: frozenset[int]) -> Iterator[bytes]:
        """The sources of some numbers, equal ones once."""
        for number in sorted(numbers):
            yield from dict.fromkeys(self.read(*place) for place in self._sources.get(number, ()))

    def program(self, kind: Kind, sources: frozenset[int]) -> Program:
        """What launches with the code of some sources have in common."""
        if (kind, sources) not in self._programs:
            self._programs[kind, sources] = Program(self, kind, sources)
        return self._programs[kind, sources]

    def message(self, kind: Kind, offset: int, size: int) -> LaunchMessage:
        """The launch that is recorded at a place."""
        message = self._messages.pop(offset, None)
        if message is None:
            data = self.read(offset, size)
            message = LaunchMessage(self.path, kind, data, self.names, is_checked=True)
        self.keep(offset, message)
        return message

    def keep(self, offset: int, message: LaunchMessage) -> None:
        """Keep the launch at a place, and of those before it as many as may be."""
        self._messages[offset] = message
        while len(self._messages) > 1 and (
            len(self._messages) > _CACHED_LAUNCHES
            or sum(each.size for each in self._messages.values()) > _CACHED_BYTES
        ):
            del self._messages[next(iter(self._messages))]

    def read(self, offset: int, size: int) -> bytes:
        """A part of the plain bytes."""
        descriptor = self._plain.descriptor if self._packed else self._descriptor
        data = read_at(descriptor, size, offset)
        if len(data) < size or self._change() != self._changed:
            raise BadInput(f"{self.path}: the report was changed while it was read", REPEAT)
        return data

    @cached_property
    def _plain(self) -> NamelessFile:
        import zstandard

        def unpack(plain: BinaryIO) -> None:
            with os.fdopen(os.dup(self._descriptor), "rb") as packed:
                packed.seek(0)
                frames = zstandard.ZstdDecompressor().stream_reader(packed, read_across_frames=True)
                shutil.copyfileobj(frames, plain)

        try:
            return NamelessFile(self.path, unpack)
        except zstandard.ZstdError:
            raise damaged(self.path, "corrupt zstd data") from None

    def _change(self) -> tuple[int, int]:
        status = os.fstat(self._descriptor)
        return status.st_size, status.st_mtime_ns


class Program:
    """Launches of one kind that run the code of the same sources."""

    def __init__(self, file: ReportFile, kind: Kind, sources: frozenset[int]) -> None:
        self._file = file
        self._kind = kind
        self._sources = sources
        self._launches: dict[bytes, int] = {}
        self._answers: dict[tuple[str, int, int], Any] = {}

    def add(self, code: bytes) -> int:
        """Add a launch by the fields that name its code; gives the place of that code."""
        return self._launches.setdefault(code, len(self._launches))

    def answer(self, question: str, place: int, address: int) -> Any:
        """What the vendor's reader answers for an instruction of a launch; None without an answer.

        It is asked once: quantities, rules and listings ask for the same.
        """
        if not has_reader():
            return None
        key = question, place, address
        if key not in self._answers:
            with _damage_of(self._file.path):
                handles = (opened.handles[place] for opened in self._opened)
                answers = (getattr(handle, question)(address) for handle in handles)
                self._answers[key] = next(filter(None, answers), None)
        return self._answers[key]

    @cached_property
    def _opened(self) -> Sequence[Opened]:
        """The launches, without metrics.

        Sources of several kernels are opened one by one: of some that it has together, the vendor's
        reader can't tell an instruction, and ends the process.
        """
        sources = list(self._file.sources(self._sources))
        together = [sources] if self._kind is Kind.kernel else [[each] for each in sources]
        launches = list(self._launches)
        return [Opened(self._file.path, self._kind, each, launches, ()) for each in together]

    @cached_property
    def debug_information(self) -> float:
        """Whether a source has the section of nvcc -G, as 1 or 0; NaN without any."""
        binaries = [source.binary for source in self._file.decoded(self._sources)]
        return float(any(_DEBUGGED in binary for binary in binaries)) if any(binaries) else math.nan

    @cached_property
    def texts(self) -> Mapping[str, str]:
        """The source files by name."""
        return {
            text(file.file_name): text(file.content)
            for source in self._file.decoded(self._sources)
            for file in source.source_files.files
        }

    @cached_property
    def functions(self) -> Mapping[str, set[int]]:
        """The addresses of functions by mangled name."""
        addresses: dict[str, set[int]] = {}
        for source in self._file.decoded(self._sources):
            for function in source.relocation_data.functions:
                addresses.setdefault(text(function.symbol_name), set()).add(function.address)
        return addresses


class Opened:
    """Launches of a report as the vendor's reader opens them.

    `launches` are their messages or a part of each, `sources` and `names` what these refer to;
    `handles` are valid as long as this object lives.
    """

    def __init__(
        self,
        path: Path,
        kind: Kind,
        sources: Sequence[bytes],
        launches: Sequence[bytes],
        names: Sequence[str],
    ) -> None:
        import ncu_report

        version = new("FileHeader", version=_FILE_VERSION).SerializeToString()
        blocks = [block({Kind.source: [source]}) for source in sources]  # none may hold two parts
        report = b"".join((MAGIC, prefixed(version), *blocks, block({kind: launches}, names)))
        self._file = NamelessFile(path, lambda file: file.write(report))  # read on when asked
        ensure_room(path, len(report), len(launches))
        with _damage_of(path):
            context = ncu_report.load_report(self._file.path)
            self.handles = [handle for handles in context for handle in handles]
        if len(self.handles) != len(launches):
            raise damaged(path, f"{len(self.handles)} of {len(launches)} launches have their code")


def block(
    records: Mapping[Kind, Sequence[bytes]], names: Sequence[str] = (), **fields: Any
) -> bytes:
    """A block of a report: its header, with further `fields`, and its records."""
    payload = b"".join(
        prefixed(records[kind][place])
        for kind in Kind
        if kind in records
        for place in range(len(records[kind]))
    )
    counts = {COUNTS[kind]: len(each) for kind, each in records.items()}
    table = {"strings": [name.encode() for name in names]}
    header = new("BlockHeader", **counts, string_table=table, payload_size=len(payload), **fields)
    return prefixed(header.SerializeToString()) + payload


@contextmanager
def _damage_of(path: Path) -> Iterator[None]:
    """Report errors of the vendor's reader as damage of the report."""
    try:
        yield
    except MemoryError:
        raise too_large(path, 1) from None
    except (RuntimeError, SystemError, ValueError, LookupError, TypeError) as error:
        raise BadInput(f"{path}: the report is damaged ({error})", REPEAT) from error
