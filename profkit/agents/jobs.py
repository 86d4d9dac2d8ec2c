"""Verbs in processes of their own: at once, or on their way with progress under a number."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from profkit.core.errors import UsageError

_COLUMNS = "100"
_MOST_OUTPUTS = 64  # of finished jobs, chosen
_GRACE = 15.0  # s, chosen: a verb gives its own program 5 s to end
_TAIL = 400  # bytes of the progress that are shown, chosen: two or three lines


@dataclass
class Job:
    """A verb on its way, `out` and `err` the files that it writes to."""

    process: subprocess.Popen[bytes]
    out: IO[bytes]
    err: IO[bytes]

    @property
    def status(self) -> int | None:
        """Its exit code, None while it runs."""
        return self.process.poll()

    @property
    def output(self) -> str:
        """What it wrote, failures last."""
        return (_content(self.out) + _content(self.err)).decode("utf-8", "replace")

    @property
    def progress(self) -> str:
        """The last lines of its progress."""
        text = _content(self.err)[-_TAIL:].decode("utf-8", "replace")
        return text.replace("\r", "\n").strip().split("\n\n")[-1]

    def stop(self) -> None:
        """End it where it runs, with what it started: in order, or else at once."""
        if self.status is not None:
            return
        self.process.terminate()
        try:
            self.process.wait(_GRACE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def end(self) -> None:
        """End it where it runs, and forget its output."""
        self.stop()
        self.out.close()
        self.err.close()


@dataclass
class Jobs:
    """The verbs that a server started, by number."""

    folder: Path
    _jobs: dict[int, Job] = field(default_factory=dict)
    _started: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def start(self, arguments: Sequence[str]) -> int:
        """The number of a verb that is started, in the server's folder."""
        out, err = tempfile.TemporaryFile(), tempfile.TemporaryFile()  # noqa: SIM115  (kept open)
        process = subprocess.Popen(
            [sys.executable, "-m", "profkit", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            cwd=self.folder,
            env={**os.environ, "COLUMNS": _COLUMNS, "NO_COLOR": "1"},
        )
        with self._lock:
            self._started += 1
            self._jobs[self._started] = Job(process, out, err)
            ended = [number for number, each in self._jobs.items() if each.status is not None]
            for number in ended[:-_MOST_OUTPUTS]:
                self._jobs.pop(number).end()
            return self._started

    def job(self, number: int) -> Job:
        """A job that was started; raises UsageError for another number."""
        if number not in self._jobs:
            raise UsageError(f"no job {number}", "start it again")
        return self._jobs[number]

    def end(self) -> None:
        """End all that run."""
        while self._jobs:
            self._jobs.popitem()[1].end()


def _content(file: IO[bytes]) -> bytes:
    return os.pread(file.fileno(), os.fstat(file.fileno()).st_size, 0)
