"""Switches of JAX."""

from __future__ import annotations

import functools
import inspect
import logging
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from datetime import date, datetime
from itertools import count
from threading import get_ident
from typing import Any, Callable

_STATES = ("state", "params", "train_state", "carry", "variables")
_FILES = "open os.mkdir os.rename os.remove os.rmdir os.truncate os.link os.symlink sqlite3.connect"
_EFFECTS = {
    **dict.fromkeys(_FILES.split(), "changes files"),
    **dict.fromkeys(("subprocess.Popen", "os.system"), "starts a process"),
    **dict.fromkeys(("socket.connect", "socket.sendto"), "uses the network"),
}
_CLOCKS = "time time_ns perf_counter perf_counter_ns monotonic monotonic_ns process_time localtime"
_DATES = (datetime.now, datetime.today, datetime.utcnow, date.today)
_READS: dict[Any, str] = {
    **{getattr(time, name): "reads the clock" for name in _CLOCKS.split()},
    **dict.fromkeys(_DATES, "reads the clock"),
    **dict.fromkeys((os.stat, os.lstat, os.access, os.listdir, os.scandir), "looks at files"),
    os.urandom: "changes random numbers",
    time.sleep: "sleeps",
    input: "reads what is typed",
}
_OF_TEXT = ("/linecache.py", "/tokenize.py")
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_TRUNC | os.O_APPEND


def jax_donate(program: Any) -> None:
    """Jitted functions whose first argument is a state reuse its memory for their result.

    A program that uses the old state again fails, since its memory is gone.
    """

    def donate(function: Any, options: Any) -> None:
        try:
            first = next(iter(inspect.signature(function).parameters), "")
        except (TypeError, ValueError):
            return
        named = [options.get(name) for name in ("donate_argnums", "donate_argnames")]
        if first in _STATES and all(each in (None, ()) for each in named):
            program.applied("jax-donate")
            options["donate_argnums"] = (0,)

    program.options.append(donate)


def jax_jit(program: Any) -> None:
    """Functions that compute gradients, and optax's updates, are jitted where they are not."""

    program.faster = functools.partial(_Attempt, program)
    program.after.setdefault("optax", []).append(functools.partial(_optax, program))


_traces: list[tuple[int, set[str]]] = []  # that run: their threads, and what they change


@functools.lru_cache(maxsize=None)
def _listener(is_of_program: Callable[[Any], bool]) -> Callable[[Any, str, Any], None]:
    """Has the trace that runs note what the program's code does outside of the process, and, as its
    profiler, that it reads a clock."""

    def note(frame: Any, change: str) -> None:
        is_own = _traces and _traces[-1][0] == get_ident() and is_of_program(frame)
        if is_own and not _is_incidental(frame):
            _traces[-1][1].add(change)

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event in _EFFECTS:
            is_read = event == "open" and not (arguments[2] or 0) & _WRITING
            note(sys._getframe(1), "reads files" if is_read else _EFFECTS[event])

    def call(frame: Any, event: str, function: Any) -> None:
        if event == "c_call" and function in _READS:
            note(frame, _READS[function])

    sys.addaudithook(hook)
    return call


def _is_incidental(frame: Any) -> bool:
    """Whether a frame is of an import in the function that is traced, or of a warning's text."""
    while frame is not None and (file := frame.f_code.co_filename) != __file__:
        if file.startswith("<frozen importlib") or file.endswith(_OF_TEXT):
            return True
        frame = frame.f_back
    return False


@contextmanager
def _noting(changes: set[str], listener: Callable[[Any, str, Any], None]) -> Iterator[None]:
    """Note what is printed and logged, but by JAX, and its warnings."""
    profiler, record = sys.getprofile(), logging.getLogRecordFactory()

    def noted(name: str, *args: Any, **kwargs: Any) -> Any:
        if not name.startswith("jax"):
            changes.add("changes what is logged")
        return record(name, *args, **kwargs)

    _traces.append((get_ident(), changes))
    logging.setLogRecordFactory(noted)
    if profiler is None:  # one in C is not to be set again
        sys.setprofile(listener)
    try:
        out, error = (_Noting(stream, changes) for stream in (sys.stdout, sys.stderr))
        with redirect_stdout(out), redirect_stderr(error):
            yield
    finally:
        if profiler is None:
            sys.setprofile(None)
        logging.setLogRecordFactory(record)
        _traces.pop()


class _Noting:
    """A stream that notes whether something is written to it."""

    def __init__(self, stream: Any, changes: set[str]) -> None:
        self.stream, self.changes = stream, changes

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)

    def write(self, text: str) -> Any:
        if "Warning" not in text:
            self.changes.add("changes what is printed")
        return self.stream.write(text)


class _Attempt:
    """A function jitted, or as it is from its first failure on; `code` is what a user would jit."""

    def __init__(self, program: Any, function: Any, code: str) -> None:
        self.program, self.function, self.watch = program, function, program.record.Watch()
        self.code, self.line, self.changed = code, "", ""
        self.read: Any = None
        self.jitted = program.jit(self._traced(function))
        self.__name__ = getattr(function, "__name__", "function")
        program.record.finishing.append(functools.partial(self._compare, is_due=True))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not self.program.is_running():
            self._keep_line(False)
        elif self.jitted is not None:
            self._compare()
            try:
                output = self.jitted(*args, **kwargs)
            except Exception:  # not to be traced
                self.jitted = None
                return self.function(*args, **kwargs)
            if self.changed:
                raise RuntimeError(
                    f"{self.__name__} {self.changed} when it is called: jitted, it would only once"
                )
            self.program.applied("jax-jit")
            self._keep_line(True)
            return output
        return self.function(*args, **kwargs)

    def _keep_line(self, is_needed: bool) -> None:
        """Whether a user would write it: not of what functions call that are jitted by now."""
        facts = self.program.record.facts
        lines = facts.get("jitted", "").splitlines()
        self.line = self.line or _line(self.code, lines)
        if (self.line in lines) is not is_needed:
            lines = [*lines, self.line] if is_needed else [x for x in lines if x != self.line]
            facts["jitted"] = "\n".join(lines)

    def _traced(self, function: Any) -> Any:
        """The function, which notes what it changes: its arguments, or what it reads."""
        record = self.program.record
        listener = _listener(record.is_of_program)

        @functools.wraps(function)
        def traced(*args: Any, **kwargs: Any) -> Any:
            before, told = record.state(args, kwargs, function), set[str]()
            drawn = record.random_numbers()
            with _noting(told, listener):
                output = function(*args, **kwargs)
            if changed := record.difference(before, record.state(args, kwargs, function)):
                told = {f"changes {changed}"}
            elif drawn != record.random_numbers():
                told.add("changes random numbers")
            self.changed = " and ".join(sorted(told))
            return output

        return traced

    def _compare(self, is_due: bool = False) -> None:
        """Raises RuntimeError where what the function reads from outside is not as at its trace; at
        the end, too, as there may have been no time for a look."""
        look = functools.partial(self.program.record.state, self.function)
        self.read = self.read or look()
        if self.jitted and (name := self.watch.difference(self.read, look, is_due=is_due)):
            raise RuntimeError(
                f"{self.__name__} reads {name}, which has changed: jitted, it would keep the first"
            )


def _line(code: str, lines: list[str]) -> str:
    """What a user writes to have code jitted, with a name that no other of the lines has; it may be
    written already."""
    if " = " in code:
        return code
    if same := [line for line in lines if line.endswith(f" = jax.jit({code})")]:
        return same[0]
    target = "gradient" if code.startswith("jax.") else code.rpartition(".")[2]
    target = code if code.isidentifier() else target
    taken = {line.partition(" = ")[0] for line in lines}
    names = (target + (f"_{number}" if number else "") for number in count())
    return f"{next(name for name in names if name not in taken)} = jax.jit({code})"


def _name_of(value: Any, frame: Any, is_of_program: Callable[[Any], bool]) -> tuple[str, Any]:
    """By which the program's code, of a frame or what has called it, knows a transformation, and
    its owner: a variable, or an attribute of one, or of that."""
    while frame is not None:
        local = list(frame.f_locals.items()) if is_of_program(frame) else []
        held = [*local, *(frame.f_globals.items() if local else ())]
        known = [(name, each, None) for name, each in held]
        parts = _parts(known[: len(local)])
        for name, each, owner in (*known, *parts, *_parts(parts)):
            if each is value:
                return name, owner
        frame = frame.f_back
    return "tx", None


def _parts(known: list[tuple[str, Any, Any]]) -> list[tuple[str, Any, Any]]:
    return [
        (f"{name}.{part}", each, owner)
        for name, owner, _ in known
        for part, each in getattr(owner, "__dict__", {}).items()
    ]


def _replaced(name: str, owner: Any) -> str:
    """What has a transformation's update jitted that others call: owners may be frozen."""
    new, (holder, _, part) = f"{name}._replace(update=jax.jit({name}.update))", name.rpartition(".")
    is_frozen = hasattr(owner, "replace")
    return f"{holder} = {holder}.replace({part}={new})" if is_frozen else f"{name} = {new}"


def _optax(program: Any, optax: Any) -> None:
    """optax's updates, called from Python, are jitted."""
    attempts: dict[int, _Attempt] = {}

    def update(transformation: Any) -> Any:
        function = transformation[1]
        if id(function) not in attempts:
            if not program.is_running():
                return function
            is_of_program, frame = program.record.is_of_program, sys._getframe(1)
            name, owner = _name_of(transformation, frame, is_of_program)
            # Else a library calls it.
            code = f"{name}.update" if is_of_program(frame) else _replaced(name, owner)
            attempts[id(function)] = _Attempt(program, function, code)
        return attempts[id(function)]

    optax.GradientTransformation.update = property(update)
    optax.GradientTransformationExtraArgs.update = property(update)
    attempt = _Attempt(program, optax.apply_updates, "optax.apply_updates")

    def apply_updates(*args: Any, **kwargs: Any) -> Any:
        if not program.record.is_of_program(sys._getframe(1)):
            attempt.code = "optax.apply_updates = jax.jit(optax.apply_updates)"
        return attempt(*args, **kwargs)

    optax.apply_updates = apply_updates
