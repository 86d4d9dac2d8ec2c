"""Holds a program before its first line, with the libraries loaded that it imports there.

Any Python from 3.9 on loads this file at its start, as a hook of `sys`, without profkit
(`profkit.execution.injection`). PROFKIT_HOLD is a folder: `held` is made in it, with the number of
the process, and with `go` in it the program begins as if nothing had been. Before that the imports
are made with which its file begins, up to the first statement of another kind or a module beside
it: nothing of the program itself runs. Where a library does more than that when it is imported, by
the audit event of an effect outside of its process, it waits for `go` too.
"""

from __future__ import annotations

import os
import sys
from time import sleep
from typing import Any

_PERIOD = 0.05  # s, chosen: it is no time for a person
_BEGINNING = "cpython.run_file"
_NOT_HELD = 75  # EX_TEMPFAIL of sysexits.h
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_MODES = frozenset("wax+")
_NAMES = """
    fcntl.fcntl fcntl.flock fcntl.ioctl fcntl.lockf open os.chflags os.chmod os.chown os.exec
    os.fork os.forkpty os.kill os.killpg os.link os.lockf os.mkdir os.posix_spawn os.remove
    os.removexattr os.rename os.rmdir os.setxattr os.spawn os.symlink os.system os.truncate
    os.unshare os.utime pty.spawn resource.prlimit signal.pthread_kill socket.bind socket.connect
    socket.getaddrinfo socket.gethostbyaddr socket.gethostbyname socket.sendmsg socket.sendto
    sqlite3.connect subprocess.Popen syslog.openlog syslog.syslog tempfile.mkdtemp tempfile.mkstemp
    urllib.Request webbrowser.open
"""
_EFFECTS = frozenset(_NAMES.split()) | {_BEGINNING}
_READING = (["/sbin/ldconfig", "-p"], ["uname", "-p"])
"""Commands without an effect that the standard library runs, for imports of torch too."""
_TEMPORARY = "tempfile.mkdtemp", "tempfile.mkstemp"
_OF_FILES = "open", "os.chmod", "os.link", "os.mkdir", "os.remove", "os.rmdir", "os.utime"
_PROBE = "_get_default_tempdir"
"""What tries which folder is for temporary files, by one that it removes."""
_LIBRARIES = os.sep + "site-packages" + os.sep
_STARTUP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "startup")


def _is_harmless(event: str, path: Any = None, words: Any = 0, flags: Any = 0, *_: Any) -> bool:
    """Whether an event of _EFFECTS has none: what is only read, or a folder that is there."""
    if event == "open":
        is_mode = isinstance(words, str) and not _MODES.isdisjoint(words)
        return path == os.devnull or not (is_mode or (isinstance(flags, int) and flags & _WRITING))
    if event == "subprocess.Popen":
        return words in _READING
    return event == "os.mkdir" and flags == -1 and os.path.isdir(path)


def _paths(arguments: tuple[Any, ...]) -> list[str]:
    """The files that an event names, by its last argument beside an open folder."""
    descriptor = arguments[-1]
    try:
        is_beside = type(descriptor) is int and descriptor >= 0
        folder = os.readlink(f"/proc/self/fd/{descriptor}") if is_beside else os.getcwd()
    except OSError:
        return []
    names = [each for each in arguments if isinstance(each, (str, bytes, os.PathLike))]
    return [os.path.realpath(os.path.join(folder, os.fsdecode(name))) for name in names]


class _Hold:
    def __init__(self, folder: str) -> None:
        self._go = os.path.join(folder, "go")
        self._is_over = False
        self._temporary: list[str] = []
        self._writes_none, sys.dont_write_bytecode = sys.dont_write_bytecode, True
        with open(os.path.join(folder, "held"), "w", encoding="ascii") as held:
            held.write(str(os.getpid()))

    def hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Wait at an event of an effect, and at the beginning of the program."""
        caller = sys._getframe(1).f_back
        if self._is_over or (caller is not None and caller.f_code.co_name == _PROBE):
            return
        if event == _BEGINNING:
            _import_first(arguments[0])
        while not (_is_harmless(event, *arguments) or self._is_own(event, arguments)):
            if os.path.exists(self._go):
                self._is_over, sys.dont_write_bytecode = True, self._writes_none
                _forget()
                return
            sleep(_PERIOD)

    def _is_own(self, event: str, arguments: tuple[Any, ...]) -> bool:
        """Whether an event is of temporary files, which no other process has."""
        if event in _TEMPORARY:
            self._temporary += _paths(arguments[:1])
            return True
        if event not in _OF_FILES:
            return False
        paths = _paths(arguments[:1] if event == "open" else arguments)
        return bool(paths) and all(
            any(path == own or path.startswith(own + os.sep) for own in self._temporary)
            for path in paths
        )


def _import_first(file: str) -> None:
    """Make the imports with which a file begins, as far as they are of libraries."""
    import ast
    import tokenize
    from importlib.util import find_spec

    beside = os.path.dirname(os.path.realpath(file)) + os.sep
    try:
        with tokenize.open(file) as source:
            statements = ast.parse(source.read()).body
        for node in statements:
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
                names = [node.module]
            elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
                continue  # its documentation
            else:
                break
            specs = [find_spec(name.partition(".")[0]) for name in names]
            places = [(spec and spec.origin) or beside for spec in specs]
            if any(place.startswith(beside) and _LIBRARIES not in place for place in places):
                break
            exec(compile(ast.Module([node], []), file, "exec"), {"__name__": __name__})
    except BaseException:  # the program will meet it, too
        return


def _forget() -> None:
    """Make the environment what it was without this file, for processes that are started."""
    os.environ.pop("PROFKIT_HOLD", None)
    hooks = os.environ.pop("PROFKIT_HOOKS", "").split(os.pathsep)
    if others := [hook for hook in hooks if hook and not hook.startswith("sys=")]:
        os.environ["PROFKIT_HOOKS"] = os.pathsep.join(others)
        return
    os.environ.pop("PROFKIT_HOOK_LOG", None)
    search = os.environ.pop("PYTHONPATH", "").split(os.pathsep)
    if rest := [path for path in search if path not in ("", _STARTUP)]:
        os.environ["PYTHONPATH"] = os.pathsep.join(rest)


def install(_: Any) -> None:
    """Hold this process, before its program or what a library starts."""
    folder = os.environ.get("PROFKIT_HOLD", "")
    if not folder or os.path.exists(os.path.join(folder, "go")):
        return
    try:
        hear = _Hold(folder).hear

        def hook(event: str, arguments: tuple[Any, ...]) -> None:  # faster than a method
            if event in _EFFECTS:
                hear(event, arguments)

        sys.addaudithook(hook)
    except Exception:
        os._exit(_NOT_HELD)
