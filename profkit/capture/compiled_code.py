"""Machine code that compilers left on disk: the caches of profkit, Triton and torch.compile."""

from __future__ import annotations

import getpass
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from profkit.capture.cuda_source import kernel_cache
from profkit.core.file_name import file_name

_CUBIN = ".cubin"
_MOST = 64  # files, chosen: as many kernels as a target has; each is read


def compiled_files(function: str, environment: Mapping[str, str]) -> Iterator[Path]:
    """The cubins that may have a kernel of that name, newest first, of programs that run in an
    environment.

    Triton names files as kernels; profkit's own are named by their inputs, and new when they were
    used last.
    """
    files = [
        file
        for folder in _named(environment)
        for file in folder.glob(f"**/{_plain(function)}{_CUBIN}")
    ]
    files += kernel_cache(environment).glob(f"*{_CUBIN}")
    times = {file: time for file in files if (time := _changed(file)) is not None}
    yield from sorted(times, key=lambda file: (-times[file], file))[:_MOST]


def _named(environment: Mapping[str, str]) -> Iterator[Path]:
    """The folders of compilers that name a file as its kernel, as far as they exist."""
    yield Path(environment.get("TRITON_CACHE_DIR") or Path.home() / ".triton" / "cache")
    with suppress(KeyError, OSError):  # a container's user may have no name
        yield Path(
            environment.get("TORCHINDUCTOR_CACHE_DIR")
            or Path(tempfile.gettempdir()) / f"torchinductor_{getpass.getuser()}"
        )


def _plain(function: str) -> str:
    """A function's name as a file's, without what a pattern would take for its own."""
    return file_name(function, "_") or "_"


def _changed(file: Path) -> float | None:
    try:
        return file.stat().st_mtime
    except OSError:
        return None
