from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

_ENDED_WITHIN_EXEC = """
import os, signal
import typer
from profkit.commands.options import interruptible

try:
    with interruptible():
        exec("os.kill(os.getpid(), {number}); signal.pause()")
except typer.Exit as end:
    raise SystemExit(end.exit_code)
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT])
def test_an_asked_for_end_exits_with_130_even_from_code_that_is_being_made(
    number: signal.Signals, tmp_path: Path
) -> None:
    (tmp_path / "ended.py").write_text(_ENDED_WITHIN_EXEC.format(number=int(number)))
    command = [sys.executable, "-m", "ended"]  # exec() counts with -m, not with -c
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, timeout=600)
    assert done.returncode == 130
    assert b"interrupted" in done.stderr
