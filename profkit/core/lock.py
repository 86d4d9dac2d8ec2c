"""File locks, released at the end of the process; one measurement per GPU at a time."""

import errno
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from profkit.core.errors import EnvironmentProblem
from profkit.core.file_name import file_name
from profkit.core.regular_file import open_flags

_BUSY = "wait until it has finished"
_SAFE = open_flags("O_CLOEXEC", "O_NOFOLLOW", "O_NONBLOCK")  # others write to the folder too


def take(descriptor: int) -> None:
    """Lock an open file or folder until it is closed.

    Raises BlockingIOError where another process holds it, OSError where it can't be locked.
    """
    from filelock import lock_descriptor  # no verb that only reads needs it

    if not lock_descriptor(descriptor, blocking=False):
        raise BlockingIOError(errno.EWOULDBLOCK, os.strerror(errno.EWOULDBLOCK))


def _release(descriptor: int, process: int) -> None:
    """Unlock and close it: a process that another thread is just starting has a copy, which keeps
    the lock of a descriptor that is only closed. A fork of the `process` that locked it closes it
    alone."""
    from filelock import unlock_descriptor

    if os.getpid() == process:
        with suppress(OSError):  # it may not have been locked
            unlock_descriptor(descriptor)
    os.close(descriptor)


@contextmanager
def file_lock(path: Path, busy: str) -> Iterator[None]:
    """Hold the lock of a folder, or of a file, which is made; none where there are no locks.

    Raises EnvironmentProblem with the message `busy` where another process holds it, and OSError
    where the file can't be opened.
    """
    flags = os.O_RDONLY if path.is_dir() else os.O_RDWR | os.O_CREAT
    descriptor, process = os.open(path, flags, 0o666), os.getpid()
    try:
        try:
            take(descriptor)
        except BlockingIOError:
            raise EnvironmentProblem(busy, _BUSY) from None
        except OSError:  # a file system without locks
            pass
        yield
    finally:
        _release(descriptor, process)


@contextmanager
def gpu_lock(gpu: str) -> Iterator[None]:
    """Hold the lock of a GPU (its UUID, or its number).

    Raises EnvironmentProblem when another process of any user holds it, and when it can't be had.
    """
    path = Path(os.environ.get("PROFKIT_LOCK_DIR") or "/tmp") / f"profkit-gpu-{file_name(gpu)}.lock"
    descriptor, process = -1, os.getpid()
    try:
        descriptor = _opened(path)
        take(descriptor)
        with suppress(OSError):  # another user's file stays as it is; the lock holds
            line = f"{process}\n".encode("ascii")
            os.ftruncate(descriptor, os.pwrite(descriptor, line, 0))
    except BlockingIOError:
        holder = _holder(os.pread(descriptor, 32, 0).decode("ascii", "replace").split())
        os.close(descriptor)
        device = "the CPU" if gpu == "cpu" else f"GPU {gpu}"
        raise EnvironmentProblem(f"{device} is being measured by {holder}", _BUSY) from None
    except OSError as error:
        if descriptor >= 0:
            os.close(descriptor)
        raise EnvironmentProblem(
            f"{path}: can't be locked ({error.strerror})",
            "remove it, or set PROFKIT_LOCK_DIR to another directory",
        ) from None
    try:
        yield
    finally:
        _release(descriptor, process)


def _holder(words: Sequence[str]) -> str:
    """Who holds a lock by what its file says; one just taken for the first time says nothing."""
    if not words:
        return "another process or thread"
    here = words[0] == str(os.getpid())
    return "another thread of this process" if here else f"process {words[0]}"


def _opened(path: Path) -> int:
    """The file's descriptor; to lock another user's, reading is enough."""
    try:
        return os.open(path, os.O_RDWR | _SAFE)
    except FileNotFoundError:
        with suppress(FileExistsError):
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | _SAFE, 0o666)
            os.fchmod(descriptor, 0o666)
            return descriptor
    except PermissionError:
        pass
    return os.open(path, os.O_RDONLY | _SAFE)
