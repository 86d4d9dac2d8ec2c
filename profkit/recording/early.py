"""A program's starts, to be timed and for ncu, while nsys records it: nothing waits for them.

Two runs of a program must not meet. An early one is held before its first line, with its libraries
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
from collections.abc import Callable, Iterator, Mapping, Sequence
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
    """A program that is held in a folder, for ncu at a port."""

    place: Path
    port: int
    _supervisor: subprocess.Popen[bytes]
    _began: float

    @property
    def is_held(self) -> bool:
        return (self.place / "held").exists() and self._supervisor.poll() is None

    def begin(self, words: Sequence[str] = ()) -> subprocess.Popen[bytes]:
        """Let it go on, and attach by a command line, if there is one; what runs both. It is tried
        for as long as the program has been under way: under nsys it has ended since."""
        order = (words, time.monotonic() - self._began)
        with suppress(OSError):
            write_atomic(self.place / "go", msgspec.json.encode(order))
        return self._supervisor

    def close(self) -> None:
        """End it, if it still runs."""
        process.end(self._supervisor)
        assert self._supervisor.stdout is not None
        self._supervisor.stdout.close()


EarlyPrograms = tuple[EarlyProgram | None, EarlyProgram | None]
"""A program that is to be timed, and the same for ncu; None where that may not be started early."""


@contextmanager
def early_programs(
    program: Sequence[str],
    environment: Mapping[str, str],
    timed_environment: Callable[[Mapping[str, str], Path], Mapping[str, str]],
    tool: Tool,
    options: ncu.NcuOptions,
) -> Iterator[EarlyPrograms]:
    """A program that is started early twice, and ended in the end. It isn't where it is no Python
    program, or the processor is needed."""
    timed = for_ncu = None
    many = len(os.sched_getaffinity(0)) >= _FEWEST_CORES
    with ExitStack() as stack:
        with suppress(OSError, EnvironmentProblem):
            if many and _can_be_held(program, environment):
                port = _free_port()
                timed = _started(stack, environment, port, timed_environment, program)
                if tool.version >= _ATTACHES:
                    launching = ncu.launching(tool, options, port, program)
                    for_ncu = _started(stack, environment, port, lambda own, _: own, launching)
        yield timed, for_ncu


def _started(
    stack: ExitStack,
    environment: Mapping[str, str],
    port: int,
    extended: Callable[[Mapping[str, str], Path], Mapping[str, str]],
    command: Sequence[str],
) -> EarlyProgram:
    folder = tempfile.TemporaryDirectory(prefix="profkit-early-", ignore_cleanup_errors=True)
    place = Path(stack.enter_context(folder))
    added = extended(held(environment, place), place).items() - environment.items()
    words = ["env", *(f"{name}={value}" for name, value in added), *command]
    runner = [sys.executable, "-S", str(Path(attach.__file__)), str(place), *words]
    early = EarlyProgram(place, port, process.start(runner, environment), time.monotonic())
    stack.callback(early.close)
    return early


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
