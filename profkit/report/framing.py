"""Whether a file is a whole Nsight Compute report, told before the vendor's reader sees it.

That reader takes damaged files without a word and yields fewer launches or other values, so the
file is checked against its own framing (NVIDIA, Nsight Compute Customization Guide, "File Format"):
magic, file header, then blocks of a length-prefixed header and a payload of the size it states.
A cut inside a block is noticed; one exactly between two blocks leaves a valid, shorter report,
which only a manifest beside the file can tell.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from profkit.core.errors import BadInput, UsageError
from profkit.core.integrity import MANIFEST, check_unchanged
from profkit.core.regular_file import open_regular
from profkit.report import wire

MAGIC = b"NVR\0"
ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"

_SOURCES, _LAUNCHES, _SESSION, _PAYLOAD_SIZE, _RANGES = 1, 2, 3, 5, 7
_CHUNK = 1 << 12  # compressed bytes a step: what comes out stays in cache, which halves the time
_LARGEST_HEADER = 1 << 20  # bytes; the largest of 158 reports has 140 kB
_LARGEST_RECORD = 256 << 20  # bytes; the largest launch of 158 reports has 14 MB
_MOST_RECORDS = 100_000  # launches and their sources: the vendor's reader takes 14 ms for each
_LARGEST_GIB = 8.0  # 100 times the largest of 158 reports; the reader holds all of one in memory
_SURELY_FINE = 1 << 30  # bytes, which take a second to unpack
_MOST_FOLD = 500  # times its size that a report unpacks to; 60 is the most of 158 reports
_LIMIT = "PROFKIT_LARGEST_REPORT"
_LESS = "record less: fewer launches (ncu --launch-count, --kernel-name) or sections"

_OTHER_KINDS = (
    (
        b"version https://git-lfs",
        "a git-LFS pointer, not the report itself",
        "fetch it with `git lfs pull`",
    ),
    (
        b"SQLite format 3\0",
        "an SQLite database, not an Nsight Compute report",
        "give the .ncu-rep file",
    ),
    (b"\x1f\x8b", "gzip data, not an Nsight Compute report", "unpack it with `gunzip` first"),
    (b"PK\x03\x04", "a zip archive, not an Nsight Compute report", "unpack it with `unzip` first"),
)
_RECORD = "record one with `ncu --set full -o NAME COMMAND`"


@dataclass(frozen=True)
class Framing:
    """What a report's framing says: block count, launches announced, session messages in order.

    A range of range replay counts as a launch. `size` are the bytes of the report, uncompressed.
    """

    blocks: int
    launches: int
    session: tuple[bytes, ...]
    size: int


def check(path: Path) -> Framing:
    """Walk the framing of a report.

    Raises BadInput when the file is absent, empty, of another kind, cut short, damaged in its
    framing, without a launch, or not the file that the manifest beside it describes.
    """
    with _open(path) as file:
        head = file.read(64)
        _refuse_other_kinds(path, head)
        file.seek(0)
        packed = head.startswith(ZSTD_MAGIC)
        if packed != (path.suffix == ".ncu-repz"):
            _refuse_misnamed(path, packed=packed)
        size = os.fstat(file.fileno()).st_size
        source = _Limited(path, _Compressed(path, file) if packed else _Plain(file), size)
        source.refuse_beyond(size)
        framing = _walk(path, source)
    _check_launches(path, framing, check_unchanged(path))
    return framing


def _open(path: Path) -> BinaryIO:
    try:
        return open_regular(path)
    except FileNotFoundError:
        raise BadInput(f"{path}: no such file", "check the path") from None
    except IsADirectoryError:
        raise BadInput(f"{path}: a directory, not a report") from None
    except OSError as error:
        raise BadInput(f"{path}: can't be read ({error.strerror})") from None


def _refuse_other_kinds(path: Path, head: bytes) -> None:
    if not head:
        raise BadInput(f"{path}: empty file", _RECORD)
    if path.suffix in {".nsys-rep", ".qdrep"}:
        raise BadInput(
            f"{path}: an Nsight Systems timeline, not an Nsight Compute report",
            "give the .ncu-rep file",
        )
    for magic, what, remedy in _OTHER_KINDS:
        if head.startswith(magic):
            raise BadInput(f"{path}: {what}", remedy)
    if not head.startswith((MAGIC, ZSTD_MAGIC)):
        raise BadInput(f"{path}: not an Nsight Compute report", _RECORD)


def _refuse_misnamed(path: Path, *, packed: bool) -> None:
    """The vendor's reader goes by the name's ending."""
    if packed:
        raise BadInput(f"{path}: a zstd-compressed report by another name", "name it .ncu-repz")
    if path.suffix == ".ncu-repz":
        raise BadInput(f"{path}: not compressed, despite its name", "name it .ncu-rep")


class _Source(Protocol):
    def read(self, size: int) -> bytes:
        """At most `size` bytes, fewer only at the end."""

    def skip(self, size: int) -> int:
        """Pass over `size` bytes; the number passed, smaller only at the end."""


class _Plain:
    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._size = file.seek(0, 2)
        file.seek(0)

    def read(self, size: int) -> bytes:
        return self._file.read(size)

    def skip(self, size: int) -> int:
        at = self._file.tell()
        return self._file.seek(min(at + size, self._size)) - at


class _Compressed:
    """The plain bytes of a zstd file; raises BadInput where its data is cut or damaged."""

    def __init__(self, path: Path, file: BinaryIO) -> None:
        self._chunks = _decompress(path, file)
        self._buffer = memoryview(b"")

    def read(self, size: int) -> bytes:
        parts = []
        while size and self._fill():
            part = self._buffer[:size]
            parts.append(bytes(part))
            self._buffer = self._buffer[len(part) :]
            size -= len(part)
        return b"".join(parts)

    def skip(self, size: int) -> int:
        left = size
        while left and self._fill():
            passed = min(left, len(self._buffer))
            self._buffer = self._buffer[passed:]
            left -= passed
        return size - left

    def _fill(self) -> bool:
        while not self._buffer:
            chunk = next(self._chunks, None)
            if chunk is None:
                return False
            self._buffer = memoryview(chunk)
        return True


class _Limited:
    """A source, as far as a report may be large; raises BadInput beyond that."""

    def __init__(self, path: Path, source: _Source, size: int) -> None:
        self._path = path
        self._source = source
        self._passed = 0
        self._most = _largest_report()
        self._unpacked = max(_SURELY_FINE, _MOST_FOLD * size)

    def read(self, size: int) -> bytes:
        self.refuse_beyond(self._passed + size)
        data = self._source.read(size)
        self._passed += len(data)
        return data

    def skip(self, size: int) -> int:
        self.refuse_beyond(self._passed + size)
        passed = self._source.skip(size)
        self._passed += passed
        return passed

    def refuse_beyond(self, size: int) -> None:
        """Raise BadInput where a report of so many bytes is too large."""
        if size > self._unpacked:
            raise _damaged(self._path, f"it unpacks to over {_MOST_FOLD} times its size")
        if size > self._most:
            raise BadInput(
                f"{self._path}: a report of more than {self._most / 2**30:g} GiB",
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
        raise UsageError(f"{_LIMIT}={word[:80]!r} is no number of GiB", f"write {_LIMIT}=16")
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
                raise _damaged(path, "its compressed data is damaged") from None
            data = frame.unused_data if frame.eof else b""
    if not frame.eof:
        raise _truncated(path)


def _walk(path: Path, source: _Limited) -> Framing:
    magic = source.read(len(MAGIC))
    if magic != MAGIC[: len(magic)]:
        raise BadInput(f"{path}: zstd data, but not of an Nsight Compute report", _RECORD)
    header_size = _size(path, source)
    if header_size is None:
        raise _truncated(path)
    _message(path, source, header_size)
    blocks = launches = records = 0
    total = len(MAGIC) + 4 + header_size
    session: list[bytes] = []
    while (size := _size(path, source)) is not None:
        header = _message(path, source, size)
        blocks += 1
        records += _announced(header)
        if blocks + records > _MOST_RECORDS:
            raise BadInput(f"{path}: more than {_MOST_RECORDS:,} launches and sources", _LESS)
        _records(path, source, header)
        total += 4 + size + wire.number(header, _PAYLOAD_SIZE)
        launches += _results(header)
        session += [part for part in header.get(_SESSION, ()) if isinstance(part, bytes)]
    if launches == 0:
        raise BadInput(
            f"{path}: the report holds no kernel launch",
            "check ncu's filters (--kernel-name, --launch-skip, --profile-from-start)",
        )
    return Framing(blocks, launches, tuple(session), total)


def _results(header: wire.Message) -> int:
    """Launches, and ranges of launches (of range replay), that a block holds."""
    return wire.number(header, _LAUNCHES) + wire.number(header, _RANGES)


def _announced(header: wire.Message) -> int:
    """Records that a block says to hold."""
    return wire.number(header, _SOURCES) + _results(header)


def _records(path: Path, source: _Source, header: wire.Message) -> None:
    """Pass over a payload: as many length-prefixed records as the header announces, no more."""
    left = wire.number(header, _PAYLOAD_SIZE)
    for _ in range(_announced(header)):
        if left < 4:
            raise _damaged(path, "it holds fewer launches than a block header announces")
        size = _size(path, source)
        if size is None:
            raise _truncated(path)
        left -= 4 + size
        if left < 0:
            raise _damaged(path, "a record is larger than its block")
        if size > _LARGEST_RECORD:
            raise BadInput(f"{path}: a launch of {size / 2**20:,.0f} MiB", _LESS)
        if source.skip(size) < size:
            raise _truncated(path)
    if left:
        raise _damaged(path, "a block holds more than its header announces")


def _size(path: Path, source: _Source) -> int | None:
    """The length in front of a message; None at the end of the file."""
    raw = source.read(4)
    if not raw:
        return None
    if len(raw) < 4:
        raise _truncated(path)
    return int.from_bytes(raw, "little")


def _message(path: Path, source: _Source, size: int) -> wire.Message:
    if size == 0:
        raise _damaged(path, "it has an empty block header")
    if size > _LARGEST_HEADER:
        raise _damaged(path, f"a header of {size / 2**20:,.0f} MiB")
    data = source.read(size)
    if len(data) < size:
        raise _truncated(path)
    try:
        return wire.decode(data)
    except ValueError:
        raise _damaged(path, "a block header can't be decoded") from None


def _truncated(path: Path) -> BadInput:
    return BadInput(f"{path}: the report is cut short", "copy it again or record it anew")


def _damaged(path: Path, what: str) -> BadInput:
    return BadInput(f"{path}: the report is damaged, {what}", "copy it again or record it anew")


def _check_launches(path: Path, framing: Framing, entry: Mapping[str, Any]) -> None:
    if entry.get("launches", framing.launches) != framing.launches:
        raise BadInput(
            f"{path}: {framing.launches} launches, {MANIFEST} says {entry['launches']}",
            "copy it again or record it anew",
        )
