"""Verbs in processes of their own: a few at once, others in a queue; each under a number.

A job and what it starts end with the server, whatever way that ends: `capture/supervise.py` kills
what is below it when its parent dies.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from signal import SIGTERM
from typing import IO

from profkit.capture.process import end, supervised
from profkit.capture.supervise import descendants
from profkit.core.errors import UsageError

AT_ONCE = 4
"""Jobs that run at once, chosen: a verb reads with two processes and takes up to a GiB."""
_MOST_WAITING = 100  # chosen: more is a client that does not wait for answers
_COLUMNS = "100"
_MOST_OUTPUTS = 64  # of finished jobs, chosen
GRACE = 15.0
"""Seconds for a job to end in order, chosen: a verb gives its own program 5 s to end."""
SHORT_GRACE = 2.5
"""The same for one whose client is gone, so that the server ends within 5 s."""
_POLL = 0.05  # s between looks at processes, chosen: no call feels it
_TAIL = 400  # bytes of the progress that are shown, chosen: two or three lines
_STOPPED, _REFUSED = 130, 2  # exit codes: of what was interrupted, and of wrong usage


@dataclass(eq=False)
class Job:
    """A verb: waiting, running or ended; `out` and `err` are the files that it writes to."""

    words: Sequence[str]
    out: IO[bytes] | None = None
    err: IO[bytes] | None = None
    _process: subprocess.Popen[bytes] | None = None
    _code: int | None = None

    @property
    def status(self) -> int | None:
        """Its exit code, None before its end."""
        return self._code if self._process is None else self._process.poll()

    @property
    def output(self) -> str:
        """What it wrote, failures last."""
        return (_content(self.out) + _content(self.err)).decode("utf-8", "replace")

    @property
    def progress(self) -> str:
        """The last lines of its progress."""
        text = _content(self.err)[-_TAIL:].decode("utf-8", "replace")
        return text.replace("\r", "\n").strip().split("\n\n")[-1]

    def begin(self, folder: Path) -> None:
        """Start it; what can't be started has ended with the reason."""
        self.out, self.err = tempfile.TemporaryFile(), tempfile.TemporaryFile()  # noqa: SIM115
        command = [sys.executable, "-m", "profkit", *self.words]
        try:
            self._process = subprocess.Popen(
                supervised(command) if sys.platform == "linux" else command,
                stdin=subprocess.DEVNULL,
                stdout=self.out,
                stderr=self.err,
                cwd=folder,
                env={**os.environ, "COLUMNS": _COLUMNS, "NO_COLOR": "1"},
                start_new_session=True,
            )
        except OSError as error:
            self.err.write(f"profkit: can't be started ({error.strerror})\n".encode())
            self._code = _REFUSED

    def leave(self) -> None:
        """End it before it starts."""
        self._code = _STOPPED

    def close(self) -> None:
        """Forget its output."""
        for file in filter(None, (self.out, self.err)):
            file.close()


@dataclass
class Jobs:
    """The verbs that a server started, by number."""

    folder: Path
    _jobs: dict[int, Job] = field(default_factory=dict)
    _waiting: deque[Job] = field(default_factory=deque)
    _running: list[Job] = field(default_factory=list)
    _started: int = 0
    _closed: bool = False
    _changed: threading.Condition = field(default_factory=threading.Condition)
    _pump: threading.Thread | None = None

    def start(self, words: Sequence[str]) -> int:
        """The number of a verb that starts, in the server's folder, when there is room for it.

        Raises UsageError where too many wait.
        """
        with self._changed:
            if len(self._waiting) >= _MOST_WAITING:
                raise UsageError(f"{_MOST_WAITING} jobs wait already", "wait for one of them")
            self._started += 1
            job = self._jobs[self._started] = Job(words)
            self._waiting.append(job)
            ended = [number for number, each in self._jobs.items() if each.status is not None]
            for number in ended[:-_MOST_OUTPUTS]:
                self._jobs.pop(number).close()
            if self._pump is None:
                # One thread that lives as long as the jobs: Linux takes its end for the parent's.
                self._pump = threading.Thread(target=self._start_waiting, daemon=True)
                self._pump.start()
            self._changed.notify_all()
            return self._started

    def job(self, number: int) -> Job:
        """A job that was started; raises UsageError for another number."""
        if number not in self._jobs:
            raise UsageError(f"no job {number}", "start it again")
        return self._jobs[number]

    def place(self, job: Job) -> int:
        """Its place in the queue, from 1; 0 where it need not wait."""
        with self._changed:
            if job not in self._waiting:
                return 0
            running = sum(each.status is None for each in self._running)
            return max(0, self._waiting.index(job) + 1 - (AT_ONCE - running))

    def withdraw(self, job: Job) -> bool:
        """End a job that waits; whether it did."""
        with self._changed:
            if job not in self._waiting:
                return False
            self._waiting.remove(job)
            job.leave()
            return True

    def stop(self, job: Job, grace: float = GRACE) -> None:
        """End a job, with what it started: in order, or else at once."""
        if not self.withdraw(job):
            _stop([job], grace)

    def end(self) -> None:
        """End all."""
        with self._changed:
            self._closed = True
            for job in self._waiting:
                job.leave()
            self._waiting.clear()
            self._changed.notify_all()
        _stop(self._running, SHORT_GRACE)
        while self._jobs:
            self._jobs.popitem()[1].close()

    def _start_waiting(self) -> None:
        with self._changed:
            while not self._closed:
                self._running = [job for job in self._running if job.status is None]
                while self._waiting and len(self._running) < AT_ONCE:
                    job = self._waiting.popleft()
                    job.begin(self.folder)
                    self._running.append(job)
                self._changed.wait(_POLL if self._waiting else None)


def _stop(jobs: Iterable[Job], grace: float) -> None:
    """Ask the verbs of running jobs to end; after `grace` seconds kill what is left of them."""
    processes = [job._process for job in jobs if job._process and job.status is None]
    for process in processes:
        supervised = descendants(process.pid)[:1] if sys.platform == "linux" else []
        for verb in supervised or [process.pid]:
            with suppress(ProcessLookupError):
                os.kill(verb, SIGTERM)
    deadline = time.monotonic() + grace
    for process in processes:
        with suppress(subprocess.TimeoutExpired):
            process.wait(max(0.0, deadline - time.monotonic()))
        end(process)


def _content(file: IO[bytes] | None) -> bytes:
    return os.pread(file.fileno(), os.fstat(file.fileno()).st_size, 0) if file else b""
