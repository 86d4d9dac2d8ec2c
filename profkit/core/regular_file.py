"""Safe opening of user-supplied paths: regular files only, with a limit on the size.

A pipe blocks its reader, a device has no end, and a sparse file can be larger than memory: each is
rejected before anything is read.
"""

import hashlib
import os
import stat
from io import BufferedReader
from pathlib import Path

from profkit.core.errors import BadInput


def open_flags(*names: str) -> int:
    """Flags for os.open by name, without those that this system lacks; bytes stay as they are."""
    return sum(getattr(os, name, 0) for name in (*names, "O_BINARY"))


_FLAGS = open_flags("O_RDONLY", "O_NONBLOCK", "O_NOCTTY", "O_CLOEXEC")
_KINDS = {
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}
_MIB = 1 << 20


def open_regular(path: Path) -> BufferedReader:
    """A regular file, open to read its bytes.

    Raises BadInput for a pipe, a device or a socket, and OSError as `Path.open` does.
    """
    _check_kind(path, path.stat().st_mode)  # first: opening a device may act on it
    descriptor = os.open(path, _FLAGS)
    try:
        _check_kind(path, os.fstat(descriptor).st_mode)
        return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def _check_kind(path: Path, mode: int) -> None:
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(None, "a directory, not a file", str(path))
    if kind := _KINDS.get(stat.S_IFMT(mode)):
        raise BadInput(
            f"{path}: {kind}, not a file", "save its content to a file and pass that file"
        )


def read_at(descriptor: int, size: int, offset: int) -> bytes:
    """Up to `size` bytes of an open file from `offset` on. Windows has no pread: there the file's
    position moves."""
    if hasattr(os, "pread"):
        return os.pread(descriptor, size, offset)
    os.lseek(descriptor, offset, os.SEEK_SET)
    return os.read(descriptor, size)


def read_limited(path: Path, largest: int) -> bytes:
    """All bytes of a regular file of at most `largest`.

    Raises BadInput for what is larger or no regular file, and OSError as `Path.read_bytes` does.
    """
    with open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        data = (file.read(largest + 1) if size <= largest else None) or b""  # None: not now
    if max(size, len(data)) > largest:
        raise BadInput(
            f"{path}: larger than the limit of {largest / _MIB:g} MiB",
            "check that it is the right file, or split it",
        )
    return data


def digest(path: Path) -> str:
    """SHA-256 of a regular file, hexadecimal; raises as `open_regular` does."""
    with open_regular(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
