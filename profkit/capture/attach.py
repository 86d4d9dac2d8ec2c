"""Starts a program that is held, and later has ncu attach to it, which makes it wait for that.

    python -S attach.py FOLDER COMMAND ARGUMENT...

The command starts the program. With FOLDER/go, the JSON of a command line and of seconds, that
command is run to attach, again until the program listens or the seconds are over; what it prints is
printed once it has attached, and its exit status is this one's. Without a command line the program
goes on alone. It is held until then (`profkit.execution.injection.hold`): where it takes much
memory before, or has ended, or nothing is attached, the exit status is 75.
"""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

_PERIOD = 0.05  # s, chosen: as that of the held program
_PAUSE = 0.5  # s between attempts, chosen: ncu takes longer to start
_LARGEST = 4 << 30  # bytes, chosen: imports take one; of a model there is to be one copy at a time
_NOT_ATTACHED = 75  # EX_TEMPFAIL of sysexits.h
_LOOKED, _CONNECTED = b"==PROF== Finding attachable", b"==PROF== Connected to"


def main(folder: Path, command: list[str]) -> int:
    """Start the program, and attach to it when that is asked for; the exit status."""
    program = subprocess.Popen(command)
    go = folder / "go"
    while not go.exists():
        if program.poll() is not None or _memory(folder / "held") > _LARGEST:
            return _NOT_ATTACHED
        time.sleep(_PERIOD)
    words, seconds = json.loads(go.read_bytes())
    end = time.monotonic() + seconds
    while words and program.poll() is None and time.monotonic() < end:
        status, output = _attached(words)
        if _CONNECTED in output:
            return status
        if _LOOKED not in output:
            break
        time.sleep(_PAUSE)
    return _NOT_ATTACHED if words else program.wait()


def _memory(held: Path) -> int:
    """Bytes that the held process has in memory."""
    try:
        pages = Path(f"/proc/{held.read_text()}/statm").read_text().split()[1]
    except (OSError, IndexError):
        return 0
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def _attached(words: list[str]) -> tuple[int, bytes]:
    """The exit status of ncu, and what it printed until it was connected."""
    output, is_printed = b"", False
    null, pipe = subprocess.DEVNULL, subprocess.PIPE
    with subprocess.Popen(words, stdin=null, stdout=pipe, stderr=subprocess.STDOUT) as ncu:
        signal.signal(signal.SIGINT, lambda *_: ncu.send_signal(signal.SIGINT))
        assert ncu.stdout is not None
        while chunk := os.read(ncu.stdout.fileno(), 1 << 16):
            output = chunk if is_printed else output + chunk
            is_printed = is_printed or _CONNECTED in output
            if is_printed:
                sys.stdout.buffer.write(output)
                sys.stdout.buffer.flush()
    return ncu.returncode, _CONNECTED if is_printed else output


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))
