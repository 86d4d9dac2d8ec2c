"""One profile a GPU at a time: a lock that the end of the process releases, however it ends."""

from __future__ import annotations

import fcntl
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from profkit.core.errors import EnvironmentProblem

_SAFE = os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK  # others write to the folder too


@contextmanager
def gpu_lock(gpu: str) -> Iterator[None]:
    """Hold the lock of a GPU (its UUID, or its number).

    Raises EnvironmentProblem when another process of any user holds it, and when it can't be had.
    """
    name = re.sub(r"[^A-Za-z0-9-]+", "_", gpu)
    path = Path(os.environ.get("PROFKIT_LOCK_DIR") or "/tmp") / f"profkit-gpu-{name}.lock"
    try:
        descriptor = _opened(path)
    except OSError as error:
        raise _unusable(path, error) from None
    try:
        _take(descriptor, gpu, path)
        yield
    finally:
        os.close(descriptor)


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


def _take(descriptor: int, gpu: str, path: Path) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = os.pread(descriptor, 32, 0).decode("ascii", "replace").strip() or "unknown"
        what = "the CPU" if gpu == "cpu" else f"GPU {gpu}"
        raise EnvironmentProblem(
            f"{what} is being measured by process {holder}", "wait for it to end"
        ) from None
    except OSError as error:
        raise _unusable(path, error) from None
    with suppress(OSError):  # another user's file stays as it is; the lock holds
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode("ascii"), 0)


def _unusable(path: Path, error: OSError) -> EnvironmentProblem:
    return EnvironmentProblem(
        f"{path}: can't be locked ({error.strerror})",
        "remove it, or name another folder in PROFKIT_LOCK_DIR",
    )
