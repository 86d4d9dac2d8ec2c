"""A call recorded with ncu: attached to this process where that can be, else in a child process."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

from msgspec import Struct

from profkit.callables.attachment import CannotAttach, Injection, injection
from profkit.callables.examination import Invocation
from profkit.callables.options import Options
from profkit.callables.transfer import dumped
from profkit.capture import ncu
from profkit.core.file_name import file_name
from profkit.recording.recording import Plan, Profiling, Tell, profile

ATTACHED, CHILD = "attach", "child process"
_AT_ONCE = 2.0  # s, chosen: ncu refuses options and drivers in less
_FULL = "full"  # the set of `profkit profile`

# XLA takes most of the GPU's memory at its start, where the parent process has it already.
_PROGRAM = """\
import os, sys
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
sys.path[:] = {path!r}
from pathlib import Path
from profkit.callables.transfer import main
main(Path({file!r}))
"""


class Recording(Struct, frozen=True):
    """A run's folder, and how ncu got at the call."""

    folder: Path
    mode: str


def record(
    call: Invocation, wait: Callable[[object], object], options: Options, notes: list[str]
) -> Recording:
    """Record a call that has run before; `notes` gets the reason for a child process.

    Raises as `profkit.recording.recording.profile`, and EnvironmentProblem for a call that can't be
    passed to another process.
    """
    try:
        library = injection()
        with tempfile.TemporaryDirectory() as folder:
            attached = _Attached(_plan(call, options, Path(folder)), _silent, library, call, wait)
            return Recording(attached.run().folder, ATTACHED)
    except CannotAttach as error:
        notes.append(f"recorded in a child process, since ncu can't attach: {error}")
    with tempfile.TemporaryDirectory() as folder:
        plan = _plan(call, options, Path(folder))
        script = Path(plan.program[-1])
        content = script.with_suffix(".pickle")
        content.write_bytes(dumped(call))
        text = _PROGRAM.format(
            path=[entry or str(Path.cwd()) for entry in sys.path], file=str(content)
        )
        script.write_text(text, encoding="utf-8")
        return Recording(profile(plan, _silent).folder, CHILD)


class _Attached(Profiling):
    """A recording of a call of this process, where others run a program."""

    def __init__(
        self,
        plan: Plan,
        tell: Tell,
        library: Injection,
        call: Invocation,
        wait: Callable[[object], object],
    ) -> None:
        super().__init__(plan, tell)
        self._library = library
        self._call = call
        self._wait = wait

    def run_ncu(self, options: ncu.NcuOptions, report: Path, **limits: Any) -> tuple[str, ...]:
        """ncu attaches in another thread, since it ends after the call.

        Raises its error where it ends at once: a call would wait for it without an end.
        """
        words = ncu.attaching(self.tool, options, report, os.getpid())
        with ThreadPoolExecutor(1) as pool:
            with self._library.profiling():
                ended = pool.submit(
                    ncu.profile, words, report, environment=self.environment, **limits
                )
                with suppress(TimeoutError):
                    ended.result(_AT_ONCE)
                self._wait(self._call())
            return ended.result()


def _plan(call: Invocation, options: Options, folder: Path) -> Plan:
    script = folder / f"{file_name(call.name)}.py"
    sections = _FULL if options.ncu is True else str(options.ncu)
    return Plan(
        program=(sys.executable, str(script)),
        options=ncu.NcuOptions(sections=sections),
        out=Path(options.out),
        timeline=False,
        samples=0,
        plain=True,
        marked=True,
    )


def _silent(_stage: str, _detail: str) -> None:
    return None
