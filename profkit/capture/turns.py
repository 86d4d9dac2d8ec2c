"""Processes that hold a target each and take turns on the GPU; see `timing_worker`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from profkit.capture.process import end, reduced_environment, supervised
from profkit.errors import BadInput, EnvironmentProblem, ProfkitError, TargetFailed, UsageError

_TIMES_TARGETS = "profkit.capture.timing_worker"
_PACKAGES = Path(__file__).parent.parent.parent
_KINDS: Mapping[int, type[ProfkitError]] = {
    kind.exit_code: kind for kind in (UsageError, EnvironmentProblem, BadInput, TargetFailed)
}


class Died(TargetFailed):
    """The process ended while it was asked; `doing` is the variant that it checked then, or ""."""

    doing = ""


class Turn:
    """A living process that can be told to time; `worker` starts one."""

    def __init__(self, process: subprocess.Popen[bytes], answers: Any, said: Any, name: str):
        self._process = process
        self._answers = answers
        self._said = said
        self._name = name

    def ask(self, do: str, **arguments: Any) -> Any:
        """The answer to a request.

        Raises the worker's ProfkitError, and Died with its last words when it has ended.
        """
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps({"do": do, **arguments}).encode() + b"\n")
            self._process.stdin.flush()
            answer, doing = self._answer()
        except BrokenPipeError:
            answer, doing = None, ""
        if answer is None:
            status = self._process.wait()
            died = Died(
                f"{self._name} ended with status {status} while it was timed: {self._last_words()}",
                "run it alone with --check",
            )
            died.doing = doing
            raise died
        if "error" in answer:
            kind = _KINDS.get(answer["error"], TargetFailed)
            raise kind(answer["message"], answer["remedy"])
        return answer["told"]

    def _answer(self) -> tuple[Any, str]:
        """The next answer, None where none comes any more, and what was done before it."""
        doing = ""
        while line := self._answers.readline():
            answer = json.loads(line)
            if "doing" not in answer:
                return answer, ""
            doing = answer["doing"]
        return None, doing

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
) -> Iterator[Turn]:
    """A process that can hold a target, started in `root`; ended when the block ends.

    `name` is what it is called if it dies, `module` what it runs: one that serves as
    `timing_worker` does.

    `environment` adds to the reduced one. The process imports this profkit, whatever its folder
    holds.
    """
    reading, writing = os.pipe()
    words = [sys.executable, "-P", "-m", module, str(writing)]
    with (
        tempfile.TemporaryFile() as said,
        os.fdopen(reading, "r", encoding="utf-8") as answers,
    ):
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
            yield Turn(process, answers, said, name)
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
