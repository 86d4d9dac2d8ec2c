"""Runs a command so that nothing of it outlives profkit, whatever way profkit ends.

    python -m profkit.capture.supervise COMMAND ARGUMENT...

The supervisor adopts every orphan among its descendants (it is their subreaper), and the kernel
tells it when its parent dies. At the end of the command, on SIGTERM and on the parent's death it
kills all descendants that are left. It ends with the command's exit status, 128 + N after signal N.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from pathlib import Path

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36


def main(command: list[str]) -> int:
    """Run the command to its end; its exit status."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    parent = os.getppid()
    libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    signal.signal(signal.SIGTERM, _end)
    if os.getppid() != parent:
        return 128 + signal.SIGTERM
    child = os.posix_spawnp(
        command[0], command, os.environ, setsigdef=[signal.SIGTERM, signal.SIGINT]
    )
    status = _wait_for(child)
    kill_descendants()
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


def kill_descendants() -> None:
    """Kill what is left below this process until nothing is; adopted orphans are reaped."""
    while below := descendants(os.getpid()):
        for process in below:
            try:
                os.kill(process, signal.SIGKILL)
            except ProcessLookupError:
                continue
        _reap()


def descendants(root: int) -> list[int]:
    """The processes below `root`, zombies that only wait to be reaped left out."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if fields[0] != "Z":
            children.setdefault(int(fields[1]), []).append(int(entry.name))
    found: list[int] = []
    waiting = [root]
    while waiting:
        below = children.get(waiting.pop(), [])
        found += below
        waiting += below
    return found


def _wait_for(child: int) -> int:
    while True:
        pid, status = os.wait()
        if pid == child:
            return status


def _reap() -> None:
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return


def _end(number: int, _: object) -> None:
    kill_descendants()
    os._exit(128 + number)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
