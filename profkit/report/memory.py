"""Files without a name for the vendor's reader, and the memory that it takes.

It keeps every launch it has opened, and ends the process when memory runs out.
"""

import math
import os
import shutil
import tempfile
import weakref
from collections.abc import Callable
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import BinaryIO

from profkit.core.errors import BadInput, EnvironmentProblem, refusal

_MOST_FOR_A_BYTE = 25
"""Bytes of memory that a byte of a plain report takes, at most: 4 to 20 were measured on reports of
1 to 14 launches."""
_FIXED = 150e6
"""Bytes for the reader's own tables, which take 125 MB."""
_DESCRIPTORS = Path("/proc/self/fd")


def ensure_room(path: Path, size: int, launches: int) -> None:
    """Raise BadInput where memory may not suffice for the vendor's reader to open `size` bytes."""
    room = min(_proc_bytes("meminfo", "MemAvailable", math.inf), _address_limit())
    if size * _MOST_FOR_A_BYTE + _FIXED > room:
        raise too_large(path, launches)


def too_large(path: Path, launches: int) -> BadInput:
    """The failure of a report that memory does not suffice for."""
    count = "1 launch" if launches == 1 else f"{launches:,} launches"
    return BadInput(
        f"{path}: reading its {count} takes more than the available memory",
        "use a machine with more memory, or record fewer launches (ncu --launch-count)",
    )


def _address_limit() -> float:
    """What the limit of the address space leaves; infinity where there is none, as on Windows."""
    try:
        import resource
    except ImportError:
        return math.inf
    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    unlimited = soft == resource.RLIM_INFINITY
    return math.inf if unlimited else soft - _proc_bytes("self/status", "VmSize", 0)


def _proc_bytes(place: str, name: str, without: float) -> float:
    """Bytes of a line of a file in /proc, or what to take without it."""
    try:
        lines = Path("/proc", place).read_text(encoding="utf-8").splitlines()
    except OSError:
        return without
    rows = (line.partition(":") for line in lines)
    return next((int(size.split()[0]) * 1024 for label, _, size in rows if label == name), without)


class NamelessFile:
    """Bytes in a file without a name below TMPDIR.

    Having no name it goes with the process that holds it open, whatever signal ends that, and
    nobody else can open it. It is open as long as this object lives; `path` is for this process.

    Raises EnvironmentProblem where there is no room for it; `origin` is the report it is made of.
    """

    def __init__(self, origin: Path, write: Callable[[BinaryIO], object]) -> None:
        folder = tempfile.gettempdir()
        message = f"{origin}: can't be decompressed into {folder}"
        remedy = "set TMPDIR to a directory with enough space"
        with (
            refusal(message, EnvironmentProblem, remedy),
            tempfile.TemporaryFile(dir=folder) as file,
        ):
            write(file)
            file.flush()
            self.descriptor = os.dup(file.fileno())
        weakref.finalize(self, os.close, self.descriptor)

    @cached_property
    def path(self) -> str:
        """What to open it by; without /proc a copy with a name, which goes with this object."""
        if _DESCRIPTORS.is_dir():
            return f"{_DESCRIPTORS}/{self.descriptor}"
        with tempfile.NamedTemporaryFile(prefix="profkit-", delete=False) as copy:
            weakref.finalize(self, _remove, copy.name)
            os.lseek(self.descriptor, 0, os.SEEK_SET)
            with os.fdopen(os.dup(self.descriptor), "rb") as file:
                shutil.copyfileobj(file, copy)
        return copy.name


def _remove(name: str) -> None:
    with suppress(OSError):  # Windows removes no file that the vendor's reader has open
        Path(name).unlink()
