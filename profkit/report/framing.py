"""The framing of a report: whether a file is a whole one, and its records one at a time.

NVIDIA, Nsight Compute Customization Guide, "File Format": magic, file header, then blocks of a
length-prefixed header and a payload of the size it states. Truncation inside a block is detected;
exactly between two blocks it leaves a valid, shorter report, which only a manifest in the same
folder reveals.
"""

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, BinaryIO

from msgspec import Struct

from profkit.core.errors import BadInput, UsageError
from profkit.core.integrity import MANIFEST, check_unchanged
from profkit.core.regular_file import open_regular
from profkit.report.messages import decode, text

MAGIC = b"NVR\0"
ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"

_CHUNK = 1 << 12  # compressed bytes a step: what comes out stays in cache, which halves the time
_LARGEST_HEADER = 1 << 20  # bytes; the largest of 158 reports has 140 kB
_LARGEST_RECORD = 256 << 20  # bytes; the largest launch of 158 reports has 14 MB
_MOST_RECORDS = 100_000  # launches and their sources; one takes 15 kB of memory and 0.5 to 3 ms
_MOST_NAMES = 2_000_000  # of metrics; 2,500 are the most of a block in 158 reports
_LARGEST_GIB = 8.0  # 100 times the largest of 158 reports; the reader holds all of one in memory
_SURELY_FINE = 1 << 30  # bytes, which take a second to unpack
_MOST_FOLD = 500  # times its size that a report unpacks to; 60 is the most of 158 reports
_LIMIT = "PROFKIT_LARGEST_REPORT"
_LESS = "record less: fewer launches (ncu --launch-count, --kernel-name) or sections"

_REPORT, _RENAME = "an Nsight Compute report", "pass the .ncu-rep file"
_OTHER_KINDS = {
    b"version https://git-lfs": (
        "a git-LFS pointer, not the report itself",
        "fetch it with `git lfs pull`",
    ),
    b"SQLite format 3\0": (f"an SQLite database, not {_REPORT}", _RENAME),
    b"\x1f\x8b": (f"gzip data, not {_REPORT}", "unpack it with `gunzip` first"),
    b"PK\x03\x04": (f"a zip archive, not {_REPORT}", "unpack it with `unzip` first"),
}
_RECORD = "record one with `ncu --set full -o NAME COMMAND`"
REPEAT = "copy it again, or record it again"


class Kind(StrEnum):
    """What a record of a block is. The records of a block lie in this order."""

    source = "source"
    kernel = "kernel"
    range = "range"
    command_list = "command list"
    graph = "graph"


COUNTS = {
    Kind.source: "num_sources", Kind.kernel: "num_results", Kind.range: "num_range_results",
    Kind.command_list: "num_cmdlist_results", Kind.graph: "num_graph_results",
}  # fmt: skip
"""The field of a block's header that counts such records."""


class Record(Struct, frozen=True):
    """A record of a block: its place among the report's plain bytes, and its own."""

    kind: Kind
    offset: int
    size: int
    data: bytes


@dataclass(frozen=True)
class Framing:
    """A report's framing: announced launches, session messages in order.

    A range of range replay counts as a launch. `names` are those of metrics by their numbers, which
    launches may use before the block that has the name. `size` are the bytes of the report,
    uncompressed.
    """

    launches: int
    session: tuple[bytes, ...]
    size: int
    names: tuple[str, ...] = field(default=(), repr=False)


def check(path: Path) -> Framing:
    """Walk the framing of a report.

    Raises BadInput when the file is absent, empty, of another kind, cut short, damaged in its
    framing, without a launch, or different from the manifest in its folder.
    """
    with _open(path) as file:
        framing = walk(path, file)
    launches = check_unchanged(path).get("launches", framing.launches)
    if launches != framing.launches:
        raise BadInput(
            f"{path}: {framing.launches} launches, but {MANIFEST} lists {launches}", REPEAT
        )
    return framing


Visitor = Callable[[Record], None]


def walk(path: Path, file: BinaryIO, visit: Visitor | None = None) -> Framing:
    """Walk the framing of an open report from its start; raises as `check`, which see.

    `visit` gets each record as it is passed.
    """
    file.seek(0)
    head = file.read(64)
    _refuse_other_kinds(path, head)
    file.seek(0)
    return _walk(path, _Source(path, file, packed=head.startswith(ZSTD_MAGIC)), visit)


def _open(path: Path) -> BinaryIO:
    try:
        return open_regular(path)
    except FileNotFoundError:
        raise BadInput(f"{path}: no such file", "check the path") from None
    except IsADirectoryError:
        raise BadInput(f"{path}: a directory, not a report") from None
    except OSError as error:
        raise BadInput(f"{path}: can't be read ({error.strerror})", "check the path") from None


def _refuse_other_kinds(path: Path, head: bytes) -> None:
    """The vendor's reader goes by the name's ending."""
    if not head:
        raise BadInput(f"{path}: empty file", _RECORD)
    if path.suffix in {".nsys-rep", ".qdrep"}:
        raise BadInput(f"{path}: an Nsight Systems timeline, not {_REPORT}", _RENAME)
    for magic, (kind, remedy) in _OTHER_KINDS.items():
        if head.startswith(magic):
            raise BadInput(f"{path}: {kind}", remedy)
    if not head.startswith((MAGIC, ZSTD_MAGIC)):
        raise BadInput(f"{path}: not {_REPORT}", _RECORD)
    if head.startswith(ZSTD_MAGIC) and path.suffix != ".ncu-repz":
        raise BadInput(
            f"{path}: a zstd-compressed report with the wrong extension", "rename it to .ncu-repz"
        )
    if head.startswith(MAGIC) and path.suffix == ".ncu-repz":
        raise BadInput(f"{path}: not compressed, despite its extension", "rename it to .ncu-rep")


class _Source:
    """The plain bytes of a report, in messages; raises BadInput where they are cut, damaged or more
    than a report may have. `position` counts those passed."""

    def __init__(self, path: Path, file: BinaryIO, *, packed: bool) -> None:
        self._path = path
        self._file = file
        self._chunks = _decompress(path, file) if packed else None
        self._rest = memoryview(b"")
        self._size = os.fstat(file.fileno()).st_size
        self._largest = _largest_report()
        self._unpacked = max(_SURELY_FINE, _MOST_FOLD * self._size)
        self._refuse_beyond(self._size)
        self.position = 0

    def read(self, size: int) -> bytes:
        """At most `size` bytes, fewer only at the end."""
        self._refuse_beyond(self.position + size)
        data = b"".join(self._parts(size)) if self._chunks else self._file.read(size)
        self.position += len(data)
        return data

    def whole(self, size: int) -> bytes:
        """As many bytes as that."""
        if len(data := self.read(size)) < size:
            raise _truncated(self._path)
        return data

    def skip(self, size: int) -> None:
        """Pass over a record of `size` bytes."""
        end = self.position + size
        self._refuse_beyond(end)
        if self._chunks:
            self.position += sum(map(len, self._parts(size)))
        else:
            self.position = self._file.seek(min(end, self._size))
        if self.position < end:
            raise _truncated(self._path)

    def length(self) -> int | None:
        """The length in front of a message; None at the end of the file."""
        raw = self.read(4)
        if 0 < len(raw) < 4:
            raise _truncated(self._path)
        return int.from_bytes(raw, "little") if raw else None

    def message(self, name: str, size: int | None) -> Any:
        """A message of this type and length."""
        if size == 0:
            raise damaged(self._path, "empty block header")
        if (size or 0) > _LARGEST_HEADER:
            raise damaged(self._path, f"a header of {(size or 0) / 2**20:,.0f} MiB")
        if size is None:
            raise _truncated(self._path)
        data = self.whole(size)
        with decoding(self._path):
            return decode(name, data)

    def _parts(self, size: int) -> Iterator[memoryview]:
        """The next bytes of compressed data."""
        while size:
            while not self._rest:
                chunk = next(self._chunks or iter(()), None)
                if chunk is None:
                    return
                self._rest = memoryview(chunk)
            part, self._rest = self._rest[:size], self._rest[size:]
            size -= len(part)
            yield part

    def _refuse_beyond(self, size: int) -> None:
        if size > self._unpacked:
            raise damaged(self._path, f"it decompresses to over {_MOST_FOLD} times its size")
        if size > self._largest:
            raise BadInput(
                f"{self._path}: a report of more than {self._largest / 2**30:g} GiB",
                f"{_LESS}; or allow more GiB with {_LIMIT}",
            )


def _largest_report() -> float:
    """How many bytes a report may have, without its compression."""
    word = os.environ.get(_LIMIT) or str(_LARGEST_GIB)
    try:
        gib = float(word)
    except ValueError:
        gib = 0.0
    if not 0 < gib < 2**20:
        raise UsageError(
            f"{_LIMIT}={word[:80]!r} is not a valid number of GiB", f"write {_LIMIT}=16"
        )
    return gib * 2**30


def _decompress(path: Path, file: BinaryIO) -> Iterator[bytes]:
    import zstandard

    frame = zstandard.ZstdDecompressor().decompressobj()
    while data := file.read(_CHUNK):
        while data:
            if frame.eof:
                frame = zstandard.ZstdDecompressor().decompressobj()
            try:
                yield frame.decompress(data)
            except zstandard.ZstdError:
                raise damaged(path, "corrupt zstd data") from None
            data = frame.unused_data if frame.eof else b""
    if not frame.eof:
        raise _truncated(path)


def _walk(path: Path, source: _Source, visit: Visitor | None) -> Framing:
    magic = source.read(len(MAGIC))
    if magic != MAGIC[: len(magic)]:
        raise BadInput(f"{path}: zstd data, not {_REPORT}", _RECORD)
    source.message("FileHeader", source.length())
    blocks = launches = records = 0
    session: list[bytes] = []
    names: list[str] = []
    while (size := source.length()) is not None:
        header = source.message("BlockHeader", size)
        counts = {kind: getattr(header, field) for kind, field in COUNTS.items()}
        blocks += 1
        records += sum(counts.values())
        if blocks + records > _MOST_RECORDS:
            raise BadInput(f"{path}: more than {_MOST_RECORDS:,} launches and sources", _LESS)
        names += (sys.intern(text(name)) for name in header.string_table.strings)
        if len(names) > _MOST_NAMES:
            raise damaged(path, f"more than {_MOST_NAMES:,} names of metrics")
        _pass_records(path, source, counts, header.payload_size, visit)
        launches += sum(counts.values()) - counts[Kind.source]
        session.append(header.session_details.SerializeToString())
    if launches == 0:
        raise BadInput(
            f"{path}: the report contains no kernel launch",
            "check ncu's filters (--kernel-name, --launch-skip, --profile-from-start)",
        )
    return Framing(launches, tuple(session), source.position, tuple(names))


def _pass_records(
    path: Path, source: _Source, counts: Mapping[Kind, int], payload: int, visit: Visitor | None
) -> None:
    """Pass over a payload: as many length-prefixed records as the header announces, no more."""
    for kind in (kind for kind, count in counts.items() for _ in range(count)):
        if payload < 4:
            raise damaged(path, "fewer launches than a block header announces")
        size = source.length()
        if size is None:
            raise _truncated(path)
        payload -= 4 + size
        if payload < 0:
            raise damaged(path, "a record is larger than its block")
        if size > _LARGEST_RECORD:
            limit = f"at most {_LARGEST_RECORD >> 20} MiB"
            raise BadInput(f"{path}: a launch of {size / 2**20:,.0f} MiB, {limit}", _LESS)
        if visit:
            visit(Record(kind, source.position, size, source.whole(size)))
        else:
            source.skip(size)
    if payload:
        raise damaged(path, "a block is larger than its header announces")


def _truncated(path: Path) -> BadInput:
    return BadInput(f"{path}: the report is truncated", REPEAT)


def damaged(path: Path, fault: str) -> BadInput:
    """The failure of a report with a fault."""
    return BadInput(f"{path}: the report is damaged ({fault})", REPEAT)


@contextmanager
def decoding(path: Path) -> Iterator[None]:
    """Report what can't be decoded as damage of the report."""
    try:
        yield
    except (ValueError, IndexError) as error:
        raise damaged(path, str(error)) from None
