"""Files that are replaced whole: a reader finds the old content or the new, never half of it."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

PART = ".part"
"""How the names of temporary files end, which begin with a dot; what a killed process leaves."""

_PRIVATE = 0o600


@contextmanager
def replacement(path: Path, mode: int = _PRIVATE) -> Iterator[Path]:
    """A temporary file beside `path`, which takes its place once its content is on disk.

    `path` stays as it was, with nothing left beside it, where writing fails. `mode` is of the
    temporary file, less what the umask takes. Raises OSError.
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}{PART}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    try:
        yield temporary
        os.fsync(descriptor)
        temporary.replace(path)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise
    finally:
        os.close(descriptor)


def write_atomic(path: Path, content: str | bytes) -> None:
    """Write a file, with a plain new file's permissions, as `replacement` does."""
    with replacement(path, 0o666) as temporary:
        temporary.write_bytes(content.encode() if isinstance(content, str) else content)
