"""A call recorded with ncu, in a child process."""

import sys
import tempfile
from pathlib import Path

from profkit.callables.examination import Invocation
from profkit.callables.options import Options
from profkit.callables.transfer import dumped
from profkit.capture import ncu
from profkit.core.file_name import file_name
from profkit.recording.recording import Plan, profile

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


def record(call: Invocation, options: Options) -> Path:
    """Record a call that has run before; the run's folder.

    Raises as `profkit.recording.recording.profile`, and EnvironmentProblem for a call that can't be
    passed to another process.
    """
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / f"{file_name(call.name)}.py"
        content = script.with_suffix(".pickle")
        content.write_bytes(dumped(call))
        text = _PROGRAM.format(
            path=[entry or str(Path.cwd()) for entry in sys.path], file=str(content)
        )
        script.write_text(text, encoding="utf-8")
        plan = Plan(
            program=(sys.executable, str(script)),
            options=ncu.NcuOptions(sections=_FULL if options.ncu is True else str(options.ncu)),
            out=Path(options.out),
            timeline=False,
            samples=0,
            plain=True,
            marked=True,
        )
        return profile(plan, lambda _stage, _detail: None).folder
