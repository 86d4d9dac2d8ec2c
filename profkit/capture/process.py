"""Runs a program of a capture under supervision: its output by line, a time limit, a clean end."""

import os
import queue
import shlex
import shutil
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO

from msgspec import Struct, structs

from profkit.capture.watchdog import Watchdog
from profkit.core.errors import EnvironmentProblem

_GRACE = 5.0  # s, chosen: between SIGTERM and SIGKILL
_TAIL = 1 << 20  # characters of output to keep, chosen: a MiB has the last error


class Finished(Struct, frozen=True):
    """A program that ended: exit status (128 + N after signal N), wall seconds.

    `output` is the last of what it printed, a MiB at least where there was that much.
    """

    status: int
    seconds: float
    output: str


class TimedOut(Exception):
    """The program ran past its limit and was ended; `output` is the last of what it had printed."""

    def __init__(self, seconds: float, output: str) -> None:
        super().__init__(f"ended after {seconds:.0f} s")
        self.seconds = seconds
        self.output = output


def run(
    command: Sequence[str], *, environment: Mapping[str, str], timeout: float | None = None
) -> Finished:
    """Run a command to its end; raises as `start` and `follow`."""
    began = time.monotonic()  # before the start: on a busy machine the command is quicker than this
    finished = follow(start(command, environment), timeout=timeout)
    return structs.replace(finished, seconds=time.monotonic() - began)


def follow(
    supervisor: subprocess.Popen[bytes],
    *,
    timeout: float | None = None,
    on_text: Callable[[str], None] | None = None,
    watchdog: Watchdog | None = None,
) -> Finished:
    """Follow a command that was started to its end, its time beginning here; stdout and stderr
    together go to `on_text` as they come.

    No process of it is left when this returns or raises. Raises TimedOut past `timeout` seconds,
    and Stalled where the `watchdog` finds no progress. A command that stalled is interrupted first,
    so that it can save what it has.
    """
    started = time.monotonic()
    chunks: queue.Queue[str | None] = queue.Queue()
    reader = threading.Thread(target=_pump, args=(supervisor, chunks), daemon=True)
    reader.start()
    output = ""
    try:
        while True:
            left = None if timeout is None else timeout - (time.monotonic() - started)
            if left is not None and left <= 0:
                raise TimedOut(time.monotonic() - started, output)
            if watchdog and watchdog.barks(supervisor.pid):
                stalled = watchdog.stalled
                watchdog.interrupt(supervisor)
                raise stalled
            period = watchdog.period if watchdog else None
            waits = [seconds for seconds in (left, period) if seconds is not None]
            try:
                chunk = chunks.get(timeout=min(waits, default=None))
            except queue.Empty:
                continue
            if chunk is None:
                break
            if watchdog:
                watchdog.feed()
            output += chunk
            if len(output) > 2 * _TAIL:
                output = output[-_TAIL:]
            if on_text:
                on_text(chunk)
        status = supervisor.wait()
    finally:
        end(supervisor)
        reader.join(_GRACE)
    code = status if status >= 0 else 128 - status
    return Finished(code, time.monotonic() - started, output)


def supervised(command: Sequence[str]) -> list[str]:
    """The command line that runs a command so that it does not outlive this process.

    Raises EnvironmentProblem where that can't be had.
    """
    if sys.platform != "linux":
        raise EnvironmentProblem("programs are run on Linux alone", "measure there, read here")
    supervisor = Path(__file__).with_name("supervise.py")
    return [sys.executable, "-S", str(supervisor), str(os.getpid()), *command]


def start(
    command: Sequence[str],
    environment: Mapping[str, str],
    folder: Path | None = None,
    output: IO[bytes] | int = subprocess.PIPE,
) -> subprocess.Popen[bytes]:
    """Start a command under a supervisor, whose `end` is the end of all that it started. It reads
    this process's input where that is a file.

    Raises EnvironmentProblem where the command can't be started.
    """
    if shutil.which(command[0], path=environment.get("PATH")) is None:
        raise _not_a_program(command[0])
    with _input() as stdin:
        return subprocess.Popen(
            supervised(command),
            env=dict(environment),
            cwd=folder,
            stdin=stdin,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def _not_a_program(word: str) -> EnvironmentProblem:
    path, quoted = Path(word), shlex.quote(word)
    if path.is_dir():
        return EnvironmentProblem(f"{word}: a directory, not a program", "check the path")
    if not path.is_file():
        quotes = ", or leave out the quotes" if " " in word else ""
        return EnvironmentProblem(f"{word}: no such program", f"check the path{quotes}")
    if os.access(path, os.X_OK):
        return EnvironmentProblem(f"{word}: not on the PATH", f"use `-- ./{quoted}`")
    remedy = f"use `-- python {quoted}`" if path.suffix == ".py" else f"chmod +x {quoted}"
    return EnvironmentProblem(f"{word}: not an executable program", remedy)


def _input() -> IO[bytes]:
    """What programs read: the file that is the input of this one, from its start, or nothing."""
    with suppress(OSError):
        if stat.S_ISREG(os.fstat(0).st_mode):
            return Path("/proc/self/fd/0").open("rb")
    return Path(os.devnull).open("rb")


def _pump(supervisor: subprocess.Popen[bytes], chunks: queue.Queue[str | None]) -> None:
    assert supervisor.stdout is not None
    with supervisor.stdout as stream:
        while data := os.read(stream.fileno(), 1 << 16):
            chunks.put(data.decode("utf-8", "replace"))
    chunks.put(None)


def end(supervisor: subprocess.Popen[bytes]) -> None:
    """End the supervisor, and through it all below, if it still runs."""
    if supervisor.poll() is None:
        supervisor.send_signal(signal.SIGTERM)
        try:
            supervisor.wait(_GRACE)
        except subprocess.TimeoutExpired:
            supervisor.kill()
            supervisor.wait()
