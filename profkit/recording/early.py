"""A program's start for ncu while nsys records it: of a second start nothing is waited for.

Two runs of a program must not meet. The early one is held before its first line, with its libraries
loaded (`profkit.execution.injection.hold`), and by ncu before its first use of a GPU.
"""

import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import msgspec

from profkit.capture import attach, ncu, process
from profkit.capture.tools import Tool
from profkit.core.atomic_file import write_atomic
from profkit.core.errors import EnvironmentProblem
from profkit.execution.injection import held

_FEWEST_CORES = 4  # chosen: the program that is recorded has as many as it uses while it starts
_ATTACHES = (2025, 3)  # the first ncu with which this was tried
_PYTHON = re.compile(r"python[\d.]*")
_ELF = b"\x7fELF"
_OLD = "import sys; sys.exit(sys.version_info < (3, 9))"  # which doesn't load the hold


@dataclass(frozen=True, eq=False)
class EarlyProgram:
    """A program that waits for ncu."""

    port: int
    _place: Path
    _supervisor: subprocess.Popen[bytes]
    _began: float

    @property
    def is_held(self) -> bool:
        return (self._place / "held").exists() and self._supervisor.poll() is None

    def attach(self, words: Sequence[str]) -> subprocess.Popen[bytes]:
        """Let it go on, and attach by a command line; what runs both. It is tried for as long as
        the program has been under way: under nsys it has ended since."""
        order = (words, time.monotonic() - self._began)
        with suppress(OSError):
            write_atomic(self._place / "go", msgspec.json.encode(order))
        return self._supervisor

    def close(self) -> None:
        """End it, if it still runs."""
        process.end(self._supervisor)
        assert self._supervisor.stdout is not None
        self._supervisor.stdout.close()


@contextmanager
def early_program(
    tool: Tool, options: ncu.NcuOptions, program: Sequence[str], environment: Mapping[str, str]
) -> Iterator[EarlyProgram | None]:
    """A program that is started early and ended in the end; None where that may not be: it is no
    Python program, or the processor is needed."""
    many = len(os.sched_getaffinity(0)) >= _FEWEST_CORES
    early: EarlyProgram | None = None
    if not many or tool.version < _ATTACHES or not _can_be_held(program, environment):
        yield None
        return
    with ExitStack() as stack:
        with suppress(OSError, EnvironmentProblem):
            folder = tempfile.TemporaryDirectory(
                prefix="profkit-early-", ignore_cleanup_errors=True
            )
            place = Path(stack.enter_context(folder))
            early = _started(place, tool, options, program, environment)
            stack.callback(early.close)
        yield early


def _started(
    place: Path,
    tool: Tool,
    options: ncu.NcuOptions,
    program: Sequence[str],
    environment: Mapping[str, str],
) -> EarlyProgram:
    added = held(environment, place).items() - environment.items()
    port = _free_port()
    words = ["env", *(f"{name}={value}" for name, value in added)]
    words += ncu.launching(tool, options, port, program)
    runner = [sys.executable, "-S", str(Path(attach.__file__)), str(place), *words]
    return EarlyProgram(port, place, process.start(runner, environment), time.monotonic())


def _can_be_held(program: Sequence[str], environment: Mapping[str, str]) -> bool:
    """Whether a program is a file for Python itself, with no options that leave out the hold."""
    path = shutil.which(program[0], path=environment.get("PATH")) or ""
    words = [word for word in program[1:] if word != "-u"]
    if not (_PYTHON.fullmatch(Path(path).name) and words and Path(words[0]).is_file()):
        return False
    with suppress(OSError, EnvironmentProblem), Path(path).open("rb") as file:
        is_python = file.read(len(_ELF)) == _ELF
        return is_python and not process.run([path, "-c", _OLD], environment=environment).status
    return False


def _free_port() -> int:
    """The first of a few ports that are probably free."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
