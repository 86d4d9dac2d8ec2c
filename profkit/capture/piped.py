"""What is piped to profkit, for each run of a program."""

from __future__ import annotations

import os
import select
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from profkit.core.errors import UsageError

_BEGINNING = 1.0  # s, chosen: a pipe that nobody writes to may never end
_MOST = 64 << 20  # bytes, chosen
_CHUNK = 1 << 16


@contextmanager
def repeated_input(warn: Callable[[str], None]) -> Iterator[None]:
    """Read what is piped to this process, and have it as a file: each run reads it from its start.

    Raises UsageError for more than 64 MiB.
    """
    if not _is_piped():
        yield
        return
    if not select.select([0], [], [], _BEGINNING)[0]:
        warn(f"nothing was piped to it within {_BEGINNING:.0f} s: runs read no input")
        yield
        return
    with tempfile.TemporaryFile() as file:
        while chunk := os.read(0, _CHUNK):
            file.write(chunk)
            if file.tell() > _MOST:
                raise UsageError("more than 64 MiB are piped to it", "give a file: < FILE")
        file.flush()
        pipe = os.dup(0)
        os.dup2(file.fileno(), 0)
        try:
            yield
        finally:
            os.dup2(pipe, 0)
            os.close(pipe)


def _is_piped() -> bool:
    try:
        mode = os.fstat(0).st_mode
    except OSError:
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)
