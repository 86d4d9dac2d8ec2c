"""Files that a user names for output: one that exists is replaced only where that was asked for."""

import errno
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from profkit.core.atomic_file import replacement
from profkit.core.errors import UsageError

_STREAMS = re.compile(r"/dev|/proc/\d+/fd")  # /dev/stdout and >(COMMAND) are links there


def check_free(path: Path, *, force: bool) -> None:
    """Raise UsageError where a file or link is in the way, unless `force` replaces it."""
    if not force and os.path.lexists(path) and not _is_stream(path):
        kind = "is a link" if path.is_symlink() else "exists"
        raise UsageError(f"{path}: {kind}", "--force replaces it")


@contextmanager
def output_file(path: Path, *, force: bool) -> Iterator[Path]:
    """A file of the same extension to write, which is at `path` once it is whole.

    What was there stays as it is where that fails; a link is replaced itself, not what it leads to.
    Pipes and devices are written to directly. Raises UsageError for what is in the way without
    `force`, and for OSError.
    """
    try:
        if _is_stream(path):
            yield path
            return
        check_free(path, force=force)
        before = path.stat() if path.is_file() and not path.is_symlink() else None
        with replacement(path, 0o666, replace=force, suffix=path.suffix) as temporary:
            if before is not None:
                temporary.chmod(before.st_mode & 0o777)
            yield temporary
    except FileExistsError:  # another writer was faster
        raise UsageError(f"{path}: exists", "--force replaces it") from None
    except OSError as error:
        why = error.strerror or str(error)
        full = error.errno in {errno.ENOSPC, errno.EFBIG}
        remedy = "free disk space" if full else "write into an existing folder"
        raise UsageError(f"{path}: can't be written ({why})", remedy) from None


def _is_stream(path: Path) -> bool:
    """Whether it is a pipe or a device, or stands for an open file."""
    if _STREAMS.fullmatch(str(path.parent.resolve())):
        return True
    return path.exists() and not (path.is_symlink() or path.is_file() or path.is_dir())
