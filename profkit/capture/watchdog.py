"""Ends a program that makes no progress: a hang becomes one line and a remedy."""

import math
import os
import signal
import subprocess
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from profkit.capture.supervise import descendants

_PERIOD = 1.0  # s, chosen: walking /proc takes milliseconds
_SAVING = 20.0  # s, chosen: ncu writes a report of some launches in one or two
_BUSY = 0.02  # of a CPU, chosen: waiting processes that poll use less
_TICKS = (11, 12)  # user and system time in /proc/PID/stat, counted from behind the name


class Stalled(Exception):
    """A program was ended: it made no progress for `seconds`, or was past its time (`late`)."""

    def __init__(self, seconds: float, *, late: bool) -> None:
        what = "its time was over after" if late else "no progress for"
        super().__init__(f"{what} {seconds:.0f} s")
        self.seconds = seconds
        self.late = late


@dataclass(eq=False)
class Watchdog:
    """Watches a program's output and the CPU time of its processes.

    It has stalled after `idle` seconds without both, after `silent` seconds without output (ranks
    that wait for each other in a collective may spin), and after `limit` seconds in all.
    """

    idle: float
    silent: float
    limit: float = math.inf
    period: float = _PERIOD
    _began: float = field(default_factory=time.monotonic)
    _fed: float = field(default_factory=time.monotonic)
    _worked: float = field(default_factory=time.monotonic)
    _looked: float = 0.0
    _cpu: float = 0.0

    def feed(self) -> None:
        """There was output."""
        self._fed = time.monotonic()

    def barks(self, root: int) -> bool:
        """Whether the processes below `root` have stalled."""
        now = time.monotonic()
        if now - self._looked < self.period:
            return False
        cpu = _cpu_time(root)
        if cpu - self._cpu > _BUSY * (now - self._looked):
            self._worked = now
        self._looked, self._cpu = now, cpu
        quiet = now - self._fed
        is_quiet = quiet > self.silent or min(quiet, now - self._worked) > self.idle
        return is_quiet or now - self._began > self.limit

    @property
    def stalled(self) -> Stalled:
        """The error to raise after it has barked."""
        now = time.monotonic()
        late = now - self._began > self.limit
        return Stalled(now - (self._began if late else self._fed), late=late)

    def interrupt(self, supervisor: subprocess.Popen[bytes]) -> None:
        """Ask the supervised command to end, and wait a while for it."""
        for process in descendants(supervisor.pid)[:1]:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(process, signal.SIGINT)
        with suppress(subprocess.TimeoutExpired):
            supervisor.wait(_SAVING)


def _cpu_time(root: int) -> float:
    """CPU seconds of the living processes below one."""
    ticks = 0
    for process in descendants(root):
        with suppress(OSError):
            stat = Path(f"/proc/{process}/stat").read_bytes().rpartition(b")")[2].split()
            ticks += sum(int(stat[place]) for place in _TICKS)
    return ticks / os.sysconf("SC_CLK_TCK")
