"""Decompression of reports, and the memory that reading them takes.

The vendor's reader keeps every launch it has opened, and ends the process when memory runs out, so
that a report that may be too large is read in a separate process first.
"""

from __future__ import annotations

import math
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import BinaryIO

from profkit.core.errors import BadInput, EnvironmentProblem

Progress = Callable[[int, int], None]

_MOST_FOR_A_BYTE = 25
"""Bytes of memory that a byte of a plain report takes, at most: 4 to 20 were measured on reports of
1 to 14 launches."""
_FIXED = 600e6
"""Bytes for everything else: the reader's own tables take 125 MB, numerical and plotting libraries
with their threads 400 MB of address space."""
_SHARE_TO_TRY = 0.8
"""Share of the available memory for the trial; the rest is for processing the report."""
_DESCRIPTORS = Path("/proc/self/fd")
_CGROUPS = Path("/sys/fs/cgroup")
_FILES = {
    "": (_CGROUPS, "memory.max", "memory.current"),
    "memory": (_CGROUPS / "memory", "memory.limit_in_bytes", "memory.usage_in_bytes"),
}
"""By the controllers of a control group: where it is, and its files of the limit and the usage."""


def available() -> float:
    """Bytes of memory that this process may still take; infinity where nothing limits it."""
    machine = _proc_bytes("meminfo", "MemAvailable")
    return min(math.inf if machine is None else machine, _address_limit(), *_group_limits())


def _address_limit() -> float:
    """What the limit of the address space leaves; infinity where there is none, as on Windows."""
    try:
        import resource
    except ImportError:
        return math.inf
    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    return math.inf if soft == resource.RLIM_INFINITY else max(0, soft - _address_space())


def ensure_room(path: Path, size: int, launches: int) -> bool:
    """Whether memory suffices for a report of `size` bytes beyond doubt; else it has to be tried.

    Raises BadInput where it can't suffice.
    """
    room = available()
    if size > room:
        raise too_large(path, launches, room)
    return size * _MOST_FOR_A_BYTE + _FIXED <= room


def try_reading(
    path: Path, file: str, shared: Sequence[int], launches: int, progress: Progress | None
) -> None:
    """Read a report by opening `file` in a process of its own, which gets the descriptors `shared`.

    Raises BadInput where that runs out of memory, with a fifth of it left for what follows.
    """
    room = available()
    trial = subprocess.Popen(
        [sys.executable, "-m", "profkit.report.memory", file, str(int(room * _SHARE_TO_TRY))],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        pass_fds=shared,
        cwd=Path(__file__).parents[2],
    )
    with trial:
        try:
            assert trial.stdout is not None
            done = 0
            while opened := len(os.read(trial.stdout.fileno(), launches)):
                done += opened
                if progress:
                    progress(done, launches)
        except BaseException:
            trial.kill()
            raise
    if trial.returncode:
        raise too_large(path, launches, room)


def too_large(path: Path, launches: int, room: float) -> BadInput:
    """The failure of a report that memory does not suffice for."""
    count = "1 launch" if launches == 1 else f"{launches:,} launches"
    return BadInput(
        f"{path}: reading its {count} takes more than the available memory ({room / 1e9:.1f} GB)",
        "use a machine with more memory, or record fewer launches (ncu --launch-count)",
    )


def _try(file: str, room: int) -> None:
    """Open every launch, writing a byte for each; end as memory does where there is none left."""
    import resource

    import ncu_report

    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # nobody waits any more

    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    limit = _address_space() + room
    resource.setrlimit(resource.RLIMIT_AS, (min(limit, hard) if hard >= 0 else limit, hard))
    try:
        actions = []
        for launches in ncu_report.load_report(file):
            for action in launches:
                actions.append(action)
                action.name(ncu_report.IAction.NameBase_FUNCTION)
                os.write(1, b".")
    except MemoryError:
        sys.exit(1)
    except (RuntimeError, SystemError, ValueError, LookupError, TypeError):
        return  # whoever reads it next reports the damage


def _proc_bytes(place: str, name: str) -> int | None:
    """Bytes of a line of a file in /proc; None without it."""
    sizes = (
        line.split()[1] for line in _lines(Path("/proc", place)) if line.startswith(f"{name}:")
    )
    return next((int(size) * 1024 for size in sizes), None)


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8").splitlines()
    except OSError:
        return []


def _address_space() -> int:
    return _proc_bytes("self/status", "VmSize") or 0


def _group_limits() -> Iterator[float]:
    """What each of the process's control groups leaves (versions 2 and 1)."""
    yield math.inf
    for line in _lines(Path("/proc/self/cgroup")):
        _, controllers, group = line.split(":", 2)
        if controllers in _FILES:
            root, limit, usage = _FILES[controllers]
            place = root / group.lstrip("/")
            for folder in (place, *place.parents):
                if folder.is_relative_to(root):
                    yield _group_limit(folder, limit, usage)


def _group_limit(folder: Path, limit: str, usage: str) -> float:
    """What a control group leaves; files that it has cached can be dropped for it."""
    try:
        most, used = ((folder / name).read_text("ascii").strip() for name in (limit, usage))
        lines = (folder / "memory.stat").read_text("ascii").splitlines()
        stat = dict(line.split() for line in lines)
        cached = int(stat.get("inactive_file", stat.get("total_inactive_file", 0)))
        return math.inf if most == "max" else max(0, int(most) - int(used) + cached)
    except (OSError, ValueError):
        return math.inf


class NamelessFile:
    """Bytes in a file without a name below TMPDIR.

    Having no name it goes with the process that holds it open, whatever signal ends that, and
    nobody else can open it. It is open as long as this object lives; `path` is for this process.

    Raises EnvironmentProblem where there is no room for it; `origin` is the report it is made of.
    """

    def __init__(self, origin: Path, write: Callable[[BinaryIO], object]) -> None:
        folder = tempfile.gettempdir()
        try:
            with tempfile.TemporaryFile(dir=folder) as file:
                write(file)
                file.flush()
                self.descriptor = os.dup(file.fileno())
        except OSError as error:
            raise EnvironmentProblem(
                f"{origin}: can't be decompressed into {folder} ({error.strerror})",
                "set TMPDIR to a directory with enough space",
            ) from None
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


if __name__ == "__main__":
    _try(sys.argv[1], int(sys.argv[2]))
