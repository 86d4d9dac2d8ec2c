"""The program of a child process: one call, warmed up, inside the region that ncu records."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from pathlib import Path

from profkit.callables.arrays import leaves
from profkit.callables.examination import Invocation
from profkit.callables.surroundings import wait_for
from profkit.callables.transfer import loaded
from profkit.capture import driver
from profkit.core.errors import ProfkitError


def main(path: Path) -> None:
    """Call what the file holds, which `profkit.callables.transfer` has written."""
    try:
        call = loaded(path)
    except ProfkitError as error:
        sys.exit(f"profkit: {error}")
    _called(call)
    driver.start_profiler()
    torch = sys.modules.get("torch")
    by_torch = torch is not None and torch.cuda.is_initialized()
    with torch.cuda.nvtx.range(call.name) if torch and by_torch else nullcontext():
        _called(call)
    driver.stop_profiler()


def _called(call: Invocation) -> None:
    result = call()
    wait_for(result, [*call.arrays, *leaves(result)])
