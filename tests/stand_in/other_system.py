"""Runs command lines of profkit as on a system without what only Linux has, and without NVIDIA's
reader: their outputs and exit codes as JSON.

    python other_system.py LINE...
"""

from __future__ import annotations

import concurrent.futures.process  # noqa: F401  (what the standard library needs here is imported)
import hashlib  # noqa: F401
import json
import logging  # noqa: F401
import multiprocessing
import os
import random  # noqa: F401
import shlex
import shutil  # noqa: F401
import signal
import subprocess  # noqa: F401
import sys
import tarfile  # noqa: F401
import tempfile  # noqa: F401

MODULES = "fcntl grp ncu_report pty pwd readline resource syslog termios tty"
OF_OS = (
    "O_CLOEXEC O_DIRECTORY O_NOCTTY O_NOFOLLOW O_NONBLOCK chown fchmod fchown fork forkpty "
    "getegid geteuid getgid getloadavg getpgid getuid killpg mkfifo nice posix_spawn posix_spawnp "
    "pread preadv pwrite sched_getaffinity setsid sysconf wait4"
)
OF_SIGNAL = (
    "SIGALRM SIGCHLD SIGHUP SIGKILL SIGPIPE SIGQUIT SIGUSR1 SIGXFSZ alarm pthread_sigmask setitimer"
)
for name in MODULES.split():
    sys.modules[name] = None  # type: ignore[assignment]
for module, names in ((os, OF_OS), (signal, OF_SIGNAL)):
    for name in names.split():
        if hasattr(module, name):
            delattr(module, name)
multiprocessing.get_all_start_methods = lambda: ["spawn"]


def main(lines: list[str]) -> None:
    from typer.testing import CliRunner

    from profkit.commands.cli import app

    results = [CliRunner().invoke(app, shlex.split(line)) for line in lines]
    for result in results:
        if result.exception and not isinstance(result.exception, SystemExit):
            raise result.exception
    json.dump([[each.exit_code, each.stdout, each.stderr] for each in results], sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1:])
