"""Processes that hold a target each and take turns on the GPU; see `timing_worker`."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from profkit.capture.process import end, reduced_environment, supervised
from profkit.core.errors import BadInput, EnvironmentProblem, ProfkitError, TargetFailed, UsageError

_TIMES_TARGETS = "profkit.timing.worker"
_PACKAGES = Path(__file__).parent.parent.parent
_KINDS: Mapping[int, type[ProfkitError]] = {
    kind.exit_code: kind for kind in (UsageError, EnvironmentProblem, BadInput, TargetFailed)
}


class Died(TargetFailed):
    """The process ended while it was asked; `doing` is the variant that it checked then, or ""."""

    doing = ""


class Silent(Died):
    """The process said nothing for as long as it was given, and was ended."""


class _Answers:
    """JSON documents from a pipe, a line each; waits `patience` seconds for one, None: for ever."""

    def __init__(self, descriptor: int, patience: float | None):
        self._descriptor = descriptor
        self._patience = patience
        self._rest = b""

    def next(self) -> Any:
        """The next document, None at the end; raises TimeoutError."""
        while b"\n" not in self._rest:
            ready, _, _ = select.select([self._descriptor], [], [], self._patience)
            if not ready:
                raise TimeoutError
            read = os.read(self._descriptor, 1 << 16)
            if not read:
                return None
            self._rest += read
        line, self._rest = self._rest.split(b"\n", 1)
        return json.loads(line)


class Turn:
    """A living process that can be told to time; `worker` starts one."""

    def __init__(self, process: subprocess.Popen[bytes], answers: _Answers, said: Any, name: str):
        self._process = process
        self._answers = answers
        self._said = said
        self._name = name

    def ask(self, do: str, **arguments: Any) -> Any:
        """The answer to a request.

        Raises the worker's ProfkitError, Died with its last words when it has ended, and Silent
        when it had to be.
        """
        assert self._process.stdin is not None
        doing = ""
        try:
            self._process.stdin.write(json.dumps({"do": do, **arguments}).encode() + b"\n")
            self._process.stdin.flush()
            while (answer := self._answers.next()) is not None and "doing" in answer:
                doing = answer["doing"]
        except BrokenPipeError:
            answer = None
        except TimeoutError:
            end(self._process)
            raise self._lost(Silent, f"{self._name} gave no answer in time", doing) from None
        if answer is None:
            status = self._process.wait()
            words = f"ended with status {status} while it was timed: {self._last_words()}"
            raise self._lost(Died, f"{self._name} {words}", doing)
        if "error" in answer:
            kind = _KINDS.get(answer["error"], TargetFailed)
            raise kind(answer["message"], answer["remedy"])
        return answer["told"]

    @staticmethod
    def _lost(kind: type[Died], message: str, doing: str) -> Died:
        lost = kind(message, "run it alone with --check")
        lost.doing = doing
        return lost

    def _last_words(self) -> str:
        self._said.seek(0)
        lines = self._said.read().decode("utf-8", "replace").splitlines()
        return next((line.strip()[:300] for line in reversed(lines) if line.strip()), "no word")


@contextmanager
def worker(
    name: str,
    *,
    environment: Mapping[str, str],
    root: Path | None = None,
    module: str = _TIMES_TARGETS,
    patience: float | None = None,
) -> Iterator[Turn]:
    """A process that can hold a target, started in `root`; ended when the block ends.

    `name` is what it is called if it dies, `module` what it runs: one that serves as
    `timing_worker` does. One that says nothing for `patience` seconds is ended.

    `environment` adds to the reduced one. The process imports this profkit, whatever its folder
    holds.
    """
    reading, writing = os.pipe()
    words = [sys.executable, "-P", "-m", module, str(writing)]
    with tempfile.TemporaryFile() as said, os.fdopen(reading, "rb") as answers:
        try:
            process = subprocess.Popen(
                supervised(words),
                env=_with_profkit(environment),
                cwd=root,
                stdin=subprocess.PIPE,
                stdout=said,
                stderr=said,
                pass_fds=(writing,),
                start_new_session=True,
            )
        finally:
            os.close(writing)
        try:
            yield Turn(process, _Answers(answers.fileno(), patience), said, name)
        finally:
            end(process)
            _close(process)


def _close(process: subprocess.Popen[bytes]) -> None:
    """Close the pipe of the requests, of which one may be left that nobody has read."""
    with suppress(OSError):
        assert process.stdin is not None
        process.stdin.close()


def _with_profkit(environment: Mapping[str, str]) -> dict[str, str]:
    whole = reduced_environment() | dict(environment)
    paths = [str(_PACKAGES), *filter(None, [whole.get("PYTHONPATH")])]
    return whole | {"PYTHONPATH": os.pathsep.join(paths)}
