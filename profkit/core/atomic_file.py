"""Atomic file replacement: a reader sees the old content or the new one, never a part."""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

PART = ".part"
"""The suffix of temporary files, whose names begin with a dot; a killed process leaves them."""

_PRIVATE = 0o600  # file mode: read and write for the owner only
_LONGEST = 40  # characters of a name that its temporary file's has: 4 bytes each, of 255 at most


@contextmanager
def replacement(
    path: Path,
    mode: int = _PRIVATE,
    *,
    sync: bool = True,
    replace: bool = True,
    suffix: str = PART,
) -> Iterator[Path]:
    """A temporary file in the folder of `path`, which replaces it once its content is on disk;
    without `sync` at once: a power failure may lose it.

    `path` is unchanged, and the temporary file removed, where writing fails. `mode` is that of the
    temporary file, subject to the umask. Raises OSError; FileExistsError, without `replace`, where
    something is at `path` in the end, were it a link to nothing.
    """
    temporary = path.with_name(f".{path.name[:_LONGEST]}.{secrets.token_hex(4)}{suffix}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    try:
        try:
            yield temporary
            if sync:
                os.fsync(descriptor)
        finally:
            os.close(descriptor)  # first: Windows replaces no open file
        if replace:
            temporary.replace(path)
        else:
            _claim(path, temporary)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise


def _claim(path: Path, temporary: Path) -> None:
    """Move a file to a place where nothing is: of two writers one gets it."""
    try:
        path.hardlink_to(temporary)
    except FileExistsError:
        raise
    except OSError:  # a file system without hard links
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL))
        temporary.replace(path)
    else:
        temporary.unlink()


def write_atomic(path: Path, content: str | bytes, *, sync: bool = True) -> None:
    """Write a file, with a plain new file's permissions, as `replacement` does."""
    with replacement(path, 0o666, sync=sync) as temporary:
        temporary.write_bytes(content.encode() if isinstance(content, str) else content)
