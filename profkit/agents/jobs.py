"""Verbs in processes of their own: a few at once, others in a queue; each under a number.

A job and what it starts end with the server, whatever way that ends: `capture/supervise.py` kills
what is below it when its parent dies.
"""

import os
import subprocess
import sys
import tempfile
import time
import weakref
from collections.abc import Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
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
_TAIL = 400  # bytes of the progress that are shown, chosen: two or three lines
_STOPPED, _REFUSED = 130, 2  # exit codes: of what was interrupted, and of wrong usage


@dataclass(eq=False)
class Job:
    """A verb: waiting, running or ended; `out` and `err` are the files that it writes to."""

    words: Sequence[str]
    folder: Path
    out: IO[bytes] | None = None
    err: IO[bytes] | None = None
    process: subprocess.Popen[bytes] | None = None
    code: Future[int] = field(default_factory=Future)
    is_stopped: bool = False

    @property
    def status(self) -> int | None:
        """Its exit code, None before its end."""
        if self.code.cancelled():
            return _STOPPED
        return self.code.result() if self.code.done() else None

    @property
    def output(self) -> str:
        """What it wrote, failures last."""
        return (_content(self.out) + _content(self.err)).decode("utf-8", "replace")

    @property
    def progress(self) -> str:
        """The last lines of its progress."""
        text = _content(self.err)[-_TAIL:].decode("utf-8", "replace")
        return text.replace("\r", "\n").strip().split("\n\n")[-1]

    def run(self) -> int:
        """Run it to its end; its exit code. The output says why it can't be started."""
        self.out, self.err = tempfile.TemporaryFile(), tempfile.TemporaryFile()  # noqa: SIM115
        for file in (self.out, self.err):
            weakref.finalize(self, file.close)
        command = [sys.executable, "-m", "profkit", *self.words]
        try:
            self.process = subprocess.Popen(
                supervised(command) if sys.platform == "linux" else command,
                stdin=subprocess.DEVNULL,
                stdout=self.out,
                stderr=self.err,
                cwd=self.folder,
                env={**os.environ, "COLUMNS": _COLUMNS, "NO_COLOR": "1"},
                start_new_session=True,
            )
        except OSError as error:
            self.err.write(f"profkit: can't be started ({error.strerror})\n".encode())
            return _REFUSED
        if self.is_stopped:
            end(self.process)
        return self.process.wait()


class Jobs:
    """The verbs that a server started, by number.

    Threads that start them live as long: Linux takes the end of one for that of the parent.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._jobs: dict[int, Job] = {}
        self._started = 0
        self._threads = ThreadPoolExecutor(AT_ONCE)

    def start(self, words: Sequence[str]) -> int:
        """The number of a verb that starts, in the server's folder, when there is room for it.

        Raises UsageError where too many wait.
        """
        ended = [number for number, each in self._jobs.items() if each.status is not None]
        if len(self._jobs) - len(ended) - AT_ONCE >= _MOST_WAITING:
            raise UsageError(f"{_MOST_WAITING} jobs wait already", "wait for one of them")
        for number in ended[:-_MOST_OUTPUTS]:
            del self._jobs[number]
        self._started += 1
        job = self._jobs[self._started] = Job(words, self._folder)
        job.code = self._threads.submit(job.run)
        return self._started

    def job(self, number: int) -> Job:
        """A job that was started; raises UsageError for another number."""
        if number not in self._jobs:
            raise UsageError(f"no job {number}", "start it again")
        return self._jobs[number]

    def place(self, job: Job) -> int:
        """Its place in the queue, from 1; 0 where it need not wait."""
        left = [each for each in self._jobs.values() if each.status is None]
        return max(0, left.index(job) + 1 - AT_ONCE) if job in left else 0

    def stop(self, job: Job, grace: float = GRACE) -> None:
        """End a job, with what it started: in order, or else at once."""
        if not job.code.cancel():
            _stop([job], grace)

    def end(self) -> None:
        """End all."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        _stop(self._jobs.values(), SHORT_GRACE)
        self._jobs.clear()


def _stop(jobs: Iterable[Job], grace: float) -> None:
    """Ask the verbs of running jobs to end; after `grace` seconds kill what is left of them."""
    running = [job for job in jobs if job.status is None]
    for job in running:
        job.is_stopped = True
    processes = [job.process for job in running if job.process]
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
