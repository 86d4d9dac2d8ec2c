"""Starts the Python processes of a test by forking the process that asks for them.

Importing torch takes a process more than two seconds, and the tests start 500 that do. A fork has
it at once, and is a process of its own all the same: number, signals, pipes, limits, exit status.
What a new process would not have is put away: modules of tests and targets, caches of what is not
profkit's own, handlers.
A script of the standard library alone is started as ever, which takes less time than a fork; so are
`python -c`, whatever asks for more options, and all where PROFKIT_TESTS_EXEC is set.
"""

from __future__ import annotations

import atexit
import ctypes
import faulthandler
import functools
import gc
import logging
import multiprocessing.util
import os
import re
import runpy
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
import threading
import traceback
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

import pytest
from _pytest.assertion.rewrite import AssertionRewritingHook

from profkit.hardware.gpus import all_datasheets
from profkit.page.page import page_templates
from profkit.report.catalog import catalog
from profkit.rules.calibration import shipped_calibration
from profkit.rules.rule_file import shipped_rules

_KEPT = tuple(
    f"{folder}{os.sep}"
    for folder in (
        sysconfig.get_path("stdlib"),
        sysconfig.get_path("purelib"),
        Path(__file__).parent.parent / "profkit",
    )
)
_MODULES = ("profkit", "tests.stand_in.")
_MODULE_OPTIONS = {"-m", "--module"}
_IMPORT = re.compile(r"^[ \t]*(?:from[ \t]+(\S+)|import[ \t]+([^#;\n]+))", re.MULTILINE)
SHIPPED: tuple[functools._lru_cache_wrapper[Any], ...] = (
    catalog, shipped_rules, shipped_calibration, page_templates, all_datasheets,
)  # fmt: skip
"""What is read of profkit's own files, the same in every process: forks keep it."""
_READ_AT_THE_START = {
    *("PYTHONHASHSEED", "PYTHONIOENCODING", "PYTHONUTF8", "PYTHONWARNINGS", "PROFKIT_HOOKS")
}
EXEC: Callable[..., int] = subprocess._fork_exec  # type: ignore[attr-defined]
SPAWN = os.posix_spawnp
patches: list[pytest.MonkeyPatch] = []
"""What this process has patched for itself: a fork undoes it."""
_put_away: list[object] = []
"""What must not be finalized in a fork: it belongs to the process that forked."""


def install(patch: pytest.MonkeyPatch) -> None:
    """Let this process, and those that it forks, fork Python processes."""
    if not os.environ.get("PROFKIT_TESTS_EXEC"):
        patch.setattr(subprocess, "_fork_exec", _fork_or_exec)
        patch.setattr(os, "posix_spawnp", _fork_or_spawn)
        patch.setenv("PATH", str(Path(sys.executable).parent), prepend=os.pathsep)  # of env python3


@dataclass(frozen=True)
class _Program:
    """A module or a script, the words of its command line behind its name, and its environment."""

    name: str
    is_module: bool
    safe_path: bool
    arguments: Sequence[str]
    environment: Mapping[str, str]

    def run(self) -> None:
        """Run it as `__main__`."""
        folder = Path.cwd() if self.is_module else Path(self.name).resolve().parent
        _renew(self.environment, [] if self.safe_path else [str(folder)])
        sys.argv = [self.name, *self.arguments]
        _show_words([sys.executable, *(["-m"] if self.is_module else []), *sys.argv])
        if self.is_module:
            # pytest's loader, which profkit's plugin makes that of its modules, gives no code
            sys.meta_path[:] = [
                each for each in sys.meta_path if not isinstance(each, AssertionRewritingHook)
            ]
            sys.modules.pop(self.name, None)
            runpy.run_module(self.name, run_name="__main__", alter_sys=True)
        else:
            runpy.run_path(self.name, run_name="__main__")


def _program(words: Sequence[Any], environment: Mapping[str, str]) -> _Program | None:
    """What a command line runs, if that is Python with no options of note."""
    first, *rest = map(os.fsdecode, words)
    if not _READ_AT_THE_START.isdisjoint(environment):
        return None
    if first != sys.executable:
        script = shutil.which(first, path=environment.get("PATH")) or ""
        is_forked = _is_python(script) and not _is_light([script, *rest])
        return _Program(script, False, False, rest, environment) if is_forked else None
    options = []
    while rest and rest[0] in {"-P", "-S"}:
        options.append(rest.pop(0))
    is_module = rest[:1] == ["-m"]
    name, *arguments = rest[1:] if is_module else rest or [""]
    if is_module:
        is_known = name.startswith(_MODULES)
    else:
        is_known = name[:1] not in {"", "-"} and not _is_light([name, *arguments])
    return _Program(name, is_module, "-P" in options, arguments, environment) if is_known else None


def _is_light(words: Sequence[str]) -> bool:
    """Whether a script, and what it may start of its arguments, imports the standard library alone:
    what is no fork forks nothing."""
    if not _MODULE_OPTIONS.isdisjoint(words):
        return False
    scripts = [words[0], *(word for word in words[1:] if word.endswith(".py"))]
    try:
        return all(_imported(Path(script)) <= sys.stdlib_module_names for script in scripts)
    except (OSError, UnicodeDecodeError):
        return False


def _imported(script: Path) -> set[str]:
    """The packages that a script's text imports."""
    found = _IMPORT.findall(script.read_text("utf-8"))
    modules = [module for of, some in found for module in (of or some).split(",")]
    return {re.split(r"[.\s]", module.strip())[0] for module in modules}


def _has_threads() -> bool:
    """Whether a fork would wait for threads that it lacks: the vendor's reader starts some, which
    Python knows nothing of."""
    return len(list(Path("/proc/self/task").iterdir())) > threading.active_count()


def _is_python(script: str) -> bool:
    try:
        with Path(script).open("rb") as file:
            return file.readline(200).startswith(b"#!/usr/bin/env python3")
    except OSError:
        return False


def _fork_or_exec(
    words: Sequence[Any], executables: Any, close: bool, keep: Sequence[int], folder: Any,
    environment: Sequence[bytes] | None, *more: Any,
) -> int:  # fmt: skip
    """As `subprocess._fork_exec`, whose order of arguments this is."""
    stdin, _, _, stdout, _, stderr, _, told, _, new_session, group, *user, prepare = more[:16]
    pairs = (os.fsdecode(pair).partition("=") for pair in environment or ())
    variables = dict(os.environ) if environment is None else {name: to for name, _, to in pairs}
    program = _program(words, variables)
    if program is None or any(who not in (None, -1) for who in user) or _has_threads():
        return EXEC(words, executables, close, keep, folder, environment, *more)

    def become() -> None:
        for number, descriptor in enumerate((stdin, stdout, stderr)):
            if descriptor >= 0:
                os.dup2(descriptor, number)
        passed = set(keep) - {told}
        for descriptor in passed:
            os.set_inheritable(descriptor, True)
        _close_all_but(passed, close)
        if folder is not None:
            os.chdir(folder)
        if new_session:
            os.setsid()
        if group >= 0:
            os.setpgid(0, group)
        if prepare is not None:
            prepare()

    return _fork(program, become)


def _fork_or_spawn(
    path: Any, words: list[Any], environment: Mapping[str, str],
    *, setsigmask: Iterable[int] = (), **more: Any,
) -> int:  # fmt: skip
    """As `os.posix_spawnp`; a fork of Python has its own handlers, whatever `setsigdef` says."""
    program = _program(words, dict(environment))
    if program is None or set(more) - {"setsigdef"} or _has_threads():
        return SPAWN(path, words, environment, setsigmask=setsigmask, **more)

    def become() -> None:
        _close_all_but(set(), False)
        signal.pthread_sigmask(signal.SIG_SETMASK, setsigmask)

    return _fork(program, become)


def _close_all_but(keep: set[int], close: bool) -> None:
    """Close what a new program would not get."""
    for number in [int(entry.name) for entry in Path("/proc/self/fd").iterdir()]:
        try:
            if number > 2 and number not in keep and (close or not os.get_inheritable(number)):
                os.close(number)
        except OSError:  # of the listing itself
            continue


def _fork(program: _Program, become: Callable[[], None]) -> int:
    """Fork for a program; its number."""
    _modules.look()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # other threads may run
        process = os.fork()
    if process == 0:
        code = 1
        try:
            gc.freeze()  # garbage of the process before is none of this one's
            become()
            code = _ended(program)
        finally:
            os._exit(code)
    return process


def _ended(program: _Program) -> int:
    """Run a program to its end; its exit status."""
    code, interrupted = 0, False
    try:
        program.run()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
    except KeyboardInterrupt:
        interrupted = True
    except BaseException:
        traceback.print_exc()
        code = 1
    for thread in threading.enumerate():
        if not thread.daemon and thread is not threading.current_thread():
            thread.join()
    atexit._run_exitfuncs()
    try:
        sys.stdout.flush()
    except OSError:
        code = 120
    sys.stderr.flush()
    if interrupted:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
    return code & 0xFF


def _renew(environment: Mapping[str, str], first: Sequence[str]) -> None:
    """Make this process as a new one of Python, but for what it has imported of libraries."""
    _put_away.append(dict(sys.modules))
    _put_away.append((sys.stdin, sys.stdout, sys.stderr))
    for patch in patches:
        patch.undo()
    atexit._clear()
    atexit.register(multiprocessing.util._exit_function)  # type: ignore[attr-defined]
    faulthandler.disable()
    faulthandler.unregister(signal.SIGALRM)
    _renew_signals()
    _renew_warnings()
    os.environ.clear()
    os.environ.update(environment)
    tempfile.tempdir = None
    sys.stdin = os.fdopen(0, "r", closefd=False)
    sys.stdout = os.fdopen(1, "w", closefd=False)
    sys.stderr = os.fdopen(2, "w", 1, errors="backslashreplace", closefd=False)
    _modules.forget()
    named = [path for path in environment.get("PYTHONPATH", "").split(os.pathsep) if path]
    for folder in (*first, *named):
        if folder not in sys.path:
            _forget({path.stem for path in Path(folder).glob("*")})
    sys.path[:0] = [*first, *named]


def _renew_signals() -> None:
    for number in signal.valid_signals():
        if callable(signal.getsignal(number)):
            signal.signal(number, signal.SIG_DFL)
    if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    signal.set_wakeup_fd(-1)


def _renew_warnings() -> None:
    warnings.resetwarnings()
    for category in (DeprecationWarning, PendingDeprecationWarning, ImportWarning, ResourceWarning):
        warnings.simplefilter("ignore", category)
    warnings.showwarning = _show_warning
    logging.getLogger().handlers.clear()


def _show_warning(
    message: Warning | str, category: type[Warning], filename: str, lineno: int,
    file: TextIO | None = None, line: str | None = None,
) -> None:  # fmt: skip
    (file or sys.stderr).write(warnings.formatwarning(message, category, filename, lineno, line))


@dataclass
class _Modules:
    """What of the imported modules a new process would not have; looked up before a fork, since
    each object that a fork touches costs it a page."""

    looked_at: set[str]
    others: set[str]
    """Modules of tests and targets."""
    caches: list[Any]
    """What functions of profkit remember."""

    def look(self) -> None:
        for name in sys.modules.keys() - self.looked_at:
            module = sys.modules[name]
            file = getattr(module, "__file__", None)
            if file and not file.startswith(_KEPT):
                self.others.add(name)
            elif name.startswith("profkit"):
                caches = filter(_is_cache, vars(module).values())
                self.caches += [each for each in caches if each not in SHIPPED]
        self.looked_at |= sys.modules.keys()

    def forget(self) -> None:
        for name in self.others & sys.modules.keys():
            del sys.modules[name]
        for cache in self.caches:
            cache.cache_clear()


_modules = _Modules(set(), set(), [])


def _is_cache(value: object) -> bool:
    return isinstance(value, functools._lru_cache_wrapper)


def _show_words(words: Sequence[str]) -> None:
    """Let others see this command line: it takes the place of the one before, and of that one's
    environment, of which this process has made copies."""
    fields = Path("/proc/self/stat").read_bytes().rpartition(b")")[2].split()
    start, end = int(fields[45]), int(fields[48])
    text = os.fsencode(" ".join(words))[: end - start - 1]
    ctypes.memset(start, 0, end - start)
    ctypes.memmove(start, text, len(text))


def _forget(names: set[str]) -> None:
    for name in list(sys.modules):
        if name.partition(".")[0] in names:
            del sys.modules[name]
