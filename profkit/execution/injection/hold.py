"""Holds a program before its first effect outside of its process, until it may go on.

Any Python from 3.9 on loads this file at its start, as a hook of `sys` and later of torch, without
profkit (`profkit.execution.injection`). PROFKIT_HOLD is a folder: `held` is made in it, with the
number of the process, and with `go` in it the program goes on as if nothing had been. Until then
each thread waits at the audit event of an effect; reading, importing and printing go on, without
writing bytecode. Of what other native code than torch's writes there is no event.
"""

from __future__ import annotations

import os
import sys
import time
from typing import Any

_PERIOD = 0.05  # s, chosen: it is no time for a person
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_NAMES = """
    fcntl.fcntl fcntl.flock fcntl.ioctl fcntl.lockf ftplib.connect http.client.connect imaplib.open
    nntplib.connect open os.chflags os.chmod os.chown os.exec os.fork os.forkpty os.kill os.killpg
    os.link os.lockf os.mkdir os.posix_spawn os.remove os.removexattr os.rename os.rmdir os.setns
    os.setxattr os.spawn os.symlink os.system os.truncate os.unshare os.utime poplib.connect
    pty.spawn resource.prlimit shutil.chown shutil.copyfile shutil.copymode shutil.copystat
    shutil.copytree shutil.make_archive shutil.move shutil.rmtree shutil.unpack_archive
    signal.pthread_kill smtplib.connect socket.bind socket.connect socket.getaddrinfo
    socket.gethostbyaddr socket.gethostbyname socket.getnameinfo socket.sendmsg socket.sendto
    socket.sethostname sqlite3.connect subprocess.Popen syslog.openlog syslog.syslog
    telnetlib.Telnet.open tempfile.mkdtemp tempfile.mkstemp urllib.Request webbrowser.open
    profkit.write
"""
_EFFECTS = frozenset(_NAMES.split())
_READING = (["/sbin/ldconfig", "-p"], ["uname", "-p"])
"""Commands without an effect that the standard library runs, for imports of torch too."""
_TEMPORARY = "tempfile.mkdtemp", "tempfile.mkstemp"
_OF_FILES = (
    "open", "os.chmod", "os.link", "os.mkdir", "os.remove", "os.rmdir", "os.symlink", "os.utime",
    "shutil.rmtree",
)  # fmt: skip
_PROBE = "_get_default_tempdir"
"""What tries which folder is for temporary files, by one that it removes."""
_STARTUP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "startup")
_OWN = ("PROFKIT_HOLD", "PROFKIT_HOOKS", "PROFKIT_HOOK_LOG")


def _is_harmless(event: str, path: Any = None, words: Any = 0, flags: Any = 0, *_: Any) -> bool:
    """Whether an event of _EFFECTS has none: what is read, or a folder made that is there."""
    if event == "open":
        return path == os.devnull or not (isinstance(flags, int) and flags & _WRITING)
    if event == "subprocess.Popen":
        return words in _READING
    return event == "os.mkdir" and os.path.isdir(path)


def _paths(arguments: tuple[Any, ...]) -> list[str]:
    """The files that an event names, by its last argument beside an open folder."""
    at = arguments[-1]
    try:
        is_beside = type(at) is int and at >= 0
        folder = os.readlink(f"/proc/self/fd/{at}") if is_beside else os.getcwd()
    except OSError:
        return []
    names = [each for each in arguments if isinstance(each, (str, bytes, os.PathLike))]
    return [os.path.normpath(os.path.join(folder, os.fsdecode(name))) for name in names]


class _Hold:
    def __init__(self, folder: str) -> None:
        self._go = os.path.join(folder, "go")
        self._is_over = False
        self._temporary: list[str] = []
        self._writes_none, sys.dont_write_bytecode = sys.dont_write_bytecode, True
        with open(os.path.join(folder, "held"), "w", encoding="ascii") as held:
            held.write(str(os.getpid()))

    def hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Wait at an event of an effect."""
        if self._is_over or event not in _EFFECTS:
            return
        caller = sys._getframe().f_back
        if caller is not None and caller.f_code.co_name == _PROBE:
            return
        while not (_is_harmless(event, *arguments) or self._is_own(event, arguments)):
            if os.path.exists(self._go):
                self._end()
                return
            time.sleep(_PERIOD)

    def _is_own(self, event: str, arguments: tuple[Any, ...]) -> bool:
        """Whether an event is of temporary files, which no other process has."""
        if event in _TEMPORARY:
            self._temporary.append(os.fsdecode(arguments[0]))
            return True
        if event not in _OF_FILES:
            return False
        named = {"open": arguments[:1], "os.symlink": arguments[1:]}
        paths = _paths(named.get(event, arguments))
        return bool(paths) and all(
            any(path == own or path.startswith(own + os.sep) for own in self._temporary)
            for path in paths
        )

    def _end(self) -> None:
        if not self._is_over:
            self._is_over = True
            sys.dont_write_bytecode = self._writes_none
            _forget()


def _forget() -> None:
    """Make the environment what it was without this file, for processes that are started."""
    for name in _OWN:
        os.environ.pop(name, None)
    first, _, rest = os.environ.pop("PYTHONPATH", "").partition(os.pathsep)
    search = rest if first == _STARTUP else os.pathsep.join(filter(None, (first, rest)))
    if search:
        os.environ["PYTHONPATH"] = search


def _hold_writer(native: Any) -> None:
    """Have torch's own writer of files, of which it tells nobody, wait as well."""
    kind = native.PyTorchFileWriter

    def writer(*arguments: Any, **named: Any) -> Any:
        sys.audit("profkit.write")
        native.PyTorchFileWriter = kind
        return kind(*arguments, **named)

    native.PyTorchFileWriter = writer


def install(module: Any) -> None:
    """Hold this process, and each that it starts while it is held."""
    folder = os.environ.get("PROFKIT_HOLD", "")
    if not folder or os.path.exists(os.path.join(folder, "go")):
        return
    if module is sys:
        sys.addaudithook(_Hold(folder).hear)
    else:
        _hold_writer(module._C)
