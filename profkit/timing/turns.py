"""Processes that hold a target each and use the GPU alternately; see `profkit.timing.worker`."""

import json
import os
import select
import subprocess
import sys
import tempfile
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, Protocol

from profkit.capture.process import end, supervised
from profkit.capture.program_environment import reduced_environment
from profkit.core.errors import BadInput, EnvironmentProblem, ProfkitError, TargetFailed, UsageError
from profkit.core.text_files import last_line
from profkit.core.typed_file import T, convert

TIMES_TARGETS = "profkit.timing.worker"
_ALONE = "run it alone with --check"
_PACKAGES = Path(__file__).parent.parent.parent
_KINDS: Mapping[int, type[ProfkitError]] = {
    kind.exit_code: kind for kind in (UsageError, EnvironmentProblem, BadInput, TargetFailed)
}


class Died(TargetFailed):
    """The process ended during a request; `doing` is the variant that it checked then, or ""."""

    def __init__(self, message: str, remedy: str = "", doing: str = "") -> None:
        super().__init__(message, remedy)
        self.doing = doing


class Silent(Died):
    """The process gave no answer in time, and was ended."""


class Timekeeper(Protocol):
    """What can be asked to time: a process, or callables of this one."""

    def ask(self, do: str, model: type[T], **arguments: Any) -> T:
        """The answer to a request of `profkit.timing.worker`; raises ProfkitError."""


class Turn:
    """A living process that can be asked to time; `worker` starts one.

    It answers with JSON documents, a line each, in `answers`; `patience` is the timeout in
    seconds for one, None: no timeout. `output` is what it printed.
    """

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        answers: int,
        patience: float | None,
        output: IO[bytes],
        name: str,
    ):
        self._process, self._answers, self._patience = process, answers, patience
        self._output, self._name = output, name
        self._rest = b""

    def ask(self, do: str, model: type[T], **arguments: Any) -> T:
        """The answer to a request.

        Raises the worker's ProfkitError, Died with its last line of output when it has ended, and
        Silent when it was ended for the timeout.
        """
        assert self._process.stdin is not None
        doing = ""
        try:
            self._process.stdin.write(json.dumps({"do": do, **arguments}).encode() + b"\n")
            self._process.stdin.flush()
            while (answer := self._next()) is not None and "doing" in answer:
                doing = answer["doing"]
        except BrokenPipeError:
            answer = None
        except TimeoutError:
            end(self._process)
            raise Silent(f"{self._name}: no answer in time", _ALONE, doing) from None
        if answer is None:
            status = self._process.wait()
            self._output.seek(0)
            words = last_line(self._output.read().decode("utf-8", "replace"))
            message = f"{self._name} ended with status {status} while it was timed: {words}"
            raise Died(message, _ALONE, doing)
        if "error" in answer:
            kind = _KINDS.get(answer["error"], TargetFailed)
            raise kind(answer["message"], answer["remedy"])
        return convert(answer["told"], model)

    def stop(self) -> None:
        """End the process; a request that waits, in another thread, raises Died."""
        end(self._process)

    def _next(self) -> Any:
        """The next document, None at the end; raises TimeoutError."""
        while b"\n" not in self._rest:
            ready, _, _ = select.select([self._answers], [], [], self._patience)
            if not ready:
                raise TimeoutError
            chunk = os.read(self._answers, 1 << 16)
            if not chunk:
                return None
            self._rest += chunk
        line, self._rest = self._rest.split(b"\n", 1)
        return json.loads(line)


@contextmanager
def worker(
    name: str,
    *,
    environment: Mapping[str, str],
    root: Path | None = None,
    module: str = TIMES_TARGETS,
    patience: float | None = None,
    keep: Collection[str] | None = None,
) -> Iterator[Turn]:
    """A process that can hold a target, started in `root`; ended when the block ends.

    `name` is its name in errors, `module` its program, with the protocol of
    `profkit.timing.worker`. Without an answer for `patience` seconds it is ended.

    `environment` adds to this process's, without those that look secret but are not in `keep`
    (None: all are). The process imports this profkit, whatever its folder
    holds.
    """
    reading, writing = os.pipe()
    variables = reduced_environment(os.environ if keep is None else keep) | dict(environment)
    paths = [str(_PACKAGES), *filter(None, [variables.get("PYTHONPATH")])]
    with tempfile.TemporaryFile() as output, os.fdopen(reading, "rb") as answers:
        try:
            process = subprocess.Popen(
                supervised([sys.executable, "-P", "-m", module, str(writing)]),
                env=variables | {"PYTHONPATH": os.pathsep.join(paths)},
                cwd=root,
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=output,
                pass_fds=(writing,),
                start_new_session=True,
            )
        finally:
            os.close(writing)
        try:
            yield Turn(process, answers.fileno(), patience, output, name)
        finally:
            end(process)
            with suppress(OSError):  # a request may be left in its pipe that nobody has read
                assert process.stdin is not None
                process.stdin.close()
