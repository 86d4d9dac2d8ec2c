"""How much memory there is for a report, and whether the vendor's reader gets by with it.

That reader keeps every launch it has opened, and ends the process where memory runs out. So a
report that may be too large is read in a process of its own first.
"""

from __future__ import annotations

import math
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from profkit.core.errors import BadInput

_MOST_FOR_A_BYTE = 25
"""Bytes of memory that a byte of a plain report takes, at most: 4 to 20 were measured on reports of
1 to 14 launches."""
_FIXED = 600e6
"""Bytes for everything else: the reader's own tables take 125 MB, pandas, scipy and matplotlib
with their threads 400 MB of address space."""
_SHARE_TO_TRY = 0.8
"""Of what there is, for the trial: the rest is for what is made of the report."""
_CGROUPS = Path("/sys/fs/cgroup")
_FILES = {
    "": (_CGROUPS, "memory.max", "memory.current"),
    "memory": (_CGROUPS / "memory", "memory.limit_in_bytes", "memory.usage_in_bytes"),
}
"""By the controllers of a control group: where it is, and its files of the limit and the usage."""


def available() -> float:
    """Bytes of memory that this process may still take; infinity where nothing limits it."""
    machine = _in_proc("meminfo", "MemAvailable")
    return min(_below_the_limit(), math.inf if machine is None else machine, *_in_the_groups())


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
    if not _can_be_read(file, shared, int(room * _SHARE_TO_TRY), launches, progress):
        raise too_large(path, launches, room)


def too_large(path: Path, launches: int, room: float) -> BadInput:
    """The failure of a report that memory does not suffice for."""
    count = "1 launch" if launches == 1 else f"{launches:,} launches"
    return BadInput(
        f"{path}: the report of {count} takes more memory than there is ({room / 1e9:.1f} GB)",
        "read it on a machine with more, or record fewer launches (ncu --launch-count)",
    )


Progress = Callable[[int, int], None]


def _can_be_read(
    file: str, shared: Sequence[int], room: int, launches: int, progress: Progress | None
) -> bool:
    """Whether a process of its own lives to open every launch in so many bytes."""
    command = [sys.executable, "-m", "profkit.report.memory", file, str(room)]
    trial = subprocess.Popen(
        command,
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
    return trial.returncode == 0


def _try(file: str, room: int) -> None:
    """Open every launch, writing a byte for each; end as memory does where there is none left."""
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # nobody waits any more
    import ncu_report

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
        return  # damage is told by whoever reads it next


def _in_proc(place: str, name: str) -> int | None:
    """Bytes of a line of a file in /proc; None without it."""
    try:
        lines = Path("/proc", place).read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    found = (int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{name}:"))
    return next(found, None)


def _address_space() -> int:
    return _in_proc("self/status", "VmSize") or 0


def _below_the_limit() -> float:
    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    return math.inf if soft == resource.RLIM_INFINITY else max(0, soft - _address_space())


def _in_the_groups() -> Iterator[float]:
    """What each of the process's control groups leaves (versions 2 and 1)."""
    yield math.inf
    try:
        lines = Path("/proc/self/cgroup").read_text(encoding="utf-8").splitlines()
    except OSError:
        return
    for _, controllers, group in (line.split(":", 2) for line in lines):
        if controllers in _FILES:
            root, limit, usage = _FILES[controllers]
            place = root / group.lstrip("/")
            for folder in (place, *place.parents):
                if folder.is_relative_to(root):
                    yield _left_in(folder, limit, usage)


def _left_in(folder: Path, limit: str, usage: str) -> float:
    """What a control group leaves; files that it has cached can be dropped for it."""
    try:
        most = (folder / limit).read_text(encoding="ascii").strip()
        taken = int((folder / usage).read_text(encoding="ascii"))
        stat = dict(
            line.split() for line in (folder / "memory.stat").read_text("ascii").splitlines()
        )
    except (OSError, ValueError):
        return math.inf
    cached = int(stat.get("inactive_file", stat.get("total_inactive_file", 0)))
    return math.inf if most == "max" else max(0, int(most) - taken + cached)


if __name__ == "__main__":
    _try(sys.argv[1], int(sys.argv[2]))
