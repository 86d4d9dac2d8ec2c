"""One profile a GPU at a time: a lock that the end of the process releases, however it ends."""

from __future__ import annotations

import fcntl
import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from profkit.errors import EnvironmentProblem


@contextmanager
def gpu_lock(gpu: str) -> Iterator[None]:
    """Hold the lock of a GPU (its UUID, or its number); raises EnvironmentProblem when taken."""
    name = re.sub(r"[^A-Za-z0-9-]+", "_", gpu)
    path = Path(tempfile.gettempdir()) / f"profkit-gpu-{name}.lock"
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(descriptor, 32, 0).decode("ascii", "replace").strip() or "unknown"
            raise EnvironmentProblem(
                f"GPU {gpu} is being profiled by process {holder}", "wait for it to end"
            ) from None
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode("ascii"), 0)
        yield
    finally:
        os.close(descriptor)
