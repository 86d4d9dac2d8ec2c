"""Runs command lines in forks of a process that has imported profkit: 50 ms each, and whatever
ends an interpreter, or takes all memory and time, ends the fork."""

from __future__ import annotations

import gc
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.conftest import ROOT

ADDRESS_SPACE = 8 << 30
LONGEST = 30
"""Seconds on the clock and of CPU after which a fork is killed."""


@dataclass(frozen=True)
class Outcome:
    """How a command line ended: its exit code (negative: the signal), what it wrote, the seconds of
    CPU and the MB of memory that it took."""

    code: int
    stdout: str
    stderr: str
    seconds: float
    megabytes: float


class Zygote:
    """The process that forks; a context manager."""

    def __enter__(self) -> Self:
        self._home = tempfile.TemporaryDirectory(prefix="profkit-fuzz-")
        state = Path(self._home.name) / "state"
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.fuzz.zygote"],
            cwd=ROOT,
            env={**os.environ, "COLUMNS": "100", "XDG_STATE_HOME": str(state)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.state = state
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self._process.communicate()
        self._home.cleanup()

    def run(self, arguments: Sequence[str | Path], folder: Path) -> Outcome:
        """Run `profkit` with arguments in a folder."""
        assert self._process.stdin
        assert self._process.stdout
        asked = {"arguments": [str(word) for word in arguments], "folder": str(folder)}
        self._process.stdin.write(json.dumps(asked) + "\n")
        self._process.stdin.flush()
        return Outcome(**json.loads(self._process.stdout.readline()))


def _serve() -> None:
    _import_all()
    for line in sys.stdin:
        print(json.dumps(_forked(json.loads(line))), flush=True)


def _import_all() -> None:
    """What most verbs import, and read once."""
    import importlib

    for name in (
        "profkit.commands.cli", "profkit.analysis.report", "profkit.rules.rule_file",
        "profkit.comparison.comparison",
        "profkit.timeline.summary", "profkit.audit.audit", "profkit.ui.terminal",
        "profkit.timing.latency_view", "profkit.audit.claims", "profkit.study.report_document",
        "jsonschema", "matplotlib.figure", "ncu_report", "typer._adapters",
    ):  # fmt: skip
        importlib.import_module(name)
    from profkit.rules.rule_file import shipped_rules

    shipped_rules()
    gc.freeze()  # what forks share stays shared


def _forked(asked: Mapping[str, Any]) -> Mapping[str, Any]:
    with tempfile.TemporaryFile("w+b") as out, tempfile.TemporaryFile("w+b") as err:
        child = os.fork()
        if child == 0:
            _run(asked, out.fileno(), err.fileno())
        status, used = _waited(child)
        texts = []
        for file in (out, err):
            file.seek(0)
            texts.append(file.read(1 << 20).decode("utf-8", "replace"))
    return {
        "code": os.waitstatus_to_exitcode(status),
        "stdout": texts[0],
        "stderr": texts[1],
        "seconds": used.ru_utime + used.ru_stime,
        "megabytes": used.ru_maxrss / 1024,
    }


def _run(asked: Mapping[str, Any], out: int, err: int) -> None:
    code = 70
    try:
        os.setsid()
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(out, 1)
        os.dup2(err, 2)
        os.chdir(asked["folder"])
        resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
        resource.setrlimit(resource.RLIMIT_CPU, (LONGEST, LONGEST))
        sys.argv = ["profkit", *asked["arguments"]]
        code = _exit_code()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _exit_code() -> int:
    """Of the program, which ends by SystemExit; a traceback goes to stderr."""
    import traceback

    from profkit.__main__ import main

    try:
        main()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


def _waited(child: int) -> tuple[int, Any]:
    """The child's end, by force where it takes too long."""
    began = time.monotonic()
    pause = 0.001
    while True:
        ended, status, used = os.wait4(child, os.WNOHANG)
        if ended:
            return status, used
        if time.monotonic() - began > 4 * LONGEST:  # the clock, where others use the CPU
            os.killpg(child, signal.SIGKILL)
        time.sleep(pause)
        pause = min(pause * 1.5, 0.05)


if __name__ == "__main__":
    _serve()
