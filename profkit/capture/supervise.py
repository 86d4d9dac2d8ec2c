"""Runs a command so that nothing of it outlives profkit, whatever way profkit ends.

    python -S supervise.py PARENT COMMAND ARGUMENT...

The supervisor adopts every orphan among its descendants (it is their subreaper), and the kernel
tells it when its parent, the process PARENT, dies. At the end of the command, on SIGTERM and on the
parent's death it kills all descendants that are left. It ends with the command's exit status,
128 + N after signal N.
"""

import ctypes
import os
import signal
import sys
import time

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
_ENDING = (signal.SIGTERM, signal.SIGINT)
_CANNOT_RUN = 126  # shells' exit code for a command that can't be executed
_STATE, _PARENT, _THREADS = 0, 1, 17  # in /proc/PID/stat, counted from behind the name


def main(parent: int, command: list[str]) -> int:
    """Run the command to its end; its exit status."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    # Blocked and waited for, a signal can't come between a look and the wait, and be missed.
    awaited = (*_ENDING, signal.SIGCHLD)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, awaited)
    libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    if os.getppid() != parent:
        return 128 + signal.SIGTERM
    pythons_own = (*awaited, signal.SIGPIPE, signal.SIGXFSZ)
    try:
        child = os.posix_spawnp(
            command[0], command, os.environ, setsigmask=before, setsigdef=pythons_own
        )
        return _end_of(child, awaited)
    except OSError as error:
        print(f"{ascii(command[0])[1:-1]}: {error.strerror}", file=sys.stderr)
        return _CANNOT_RUN
    finally:
        kill_descendants()


def kill_descendants() -> None:
    """Kill what is left below this process until nothing is; adopted orphans are reaped.

    What may not be killed, another user's process, is left.
    """
    refused: set[int] = set()
    while below := set(descendants(os.getpid())) - refused:
        for process in below:
            try:
                os.kill(process, signal.SIGKILL)
            except ProcessLookupError:
                continue
            except PermissionError:
                refused.add(process)
        time.sleep(0.001)
        _reaped()


def descendants(root: int) -> list[int]:
    """The processes below `root`, zombies that only wait to be reaped left out."""
    children: dict[int, list[int]] = {}
    for process in filter(str.isdigit, os.listdir("/proc")):  # noqa: PTH208  (pathlib starts late)
        try:  # the name may be any bytes, cut anywhere
            with open(f"/proc/{process}/stat", "rb") as file:  # noqa: PTH123
                fields = file.read().rpartition(b")")[2].split()
        except OSError:
            continue
        # a process whose first thread has ended is a zombie too, while its others go on
        if fields[_STATE] != b"Z" or int(fields[_THREADS]) > 1:
            children.setdefault(int(fields[_PARENT]), []).append(int(process))
    family = [root]
    for parent in family:  # grows as it is walked
        family += children.get(parent, [])
    return family[1:]


def _end_of(child: int, awaited: tuple[int, ...]) -> int:
    while True:
        number = signal.sigwait(awaited)
        if number in _ENDING:
            return 128 + number
        status = _reaped().get(child)
        if status is not None:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code


def _reaped() -> dict[int, int]:
    """The processes that have ended, by number, with their wait status."""
    ended: dict[int, int] = {}
    try:
        while (child := os.waitpid(-1, os.WNOHANG))[0]:
            ended[child[0]] = child[1]
    except ChildProcessError:
        pass
    return ended


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2:]))
