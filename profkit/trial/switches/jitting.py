"""Switches of JAX."""

from __future__ import annotations

import dis
import functools
import inspect
from collections.abc import Iterator
from types import CellType, CodeType, FunctionType
from typing import Any

_STATES = ("state", "params", "train_state", "carry", "variables")


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

    program.faster = lambda function: _Attempt(program, function)
    program.after.setdefault("optax", []).append(lambda optax: _optax(program, optax))


@functools.lru_cache(maxsize=None)
def _globals(code: CodeType) -> tuple[str, ...]:
    """The globals that a code reads, and the functions in it, without its names of attributes."""
    steps = dis.get_instructions(code)
    parts = [part for part in code.co_consts if isinstance(part, CodeType)]
    inner = [name for part in parts for name in _globals(part)]
    return (*inner, *(step.argval for step in steps if step.opname == "LOAD_GLOBAL"))


def _read(function: Any, known: Any) -> Iterator[Any]:
    """What a function, and those that it reads, have from outside: a trace keeps it as it was."""
    if not isinstance(function, FunctionType) or function.__code__ in known:
        return
    known.add(function.__code__)
    values = [cell.cell_contents for cell in function.__closure__ or () if cell != CellType()]
    if _is_own(function):
        values += [function.__globals__.get(name) for name in _globals(function.__code__)]
    for value in values:
        yield value
        yield from _read(value, known)


def _is_own(function: Any) -> bool:
    """Whether a function is the program's."""
    code = getattr(function, "__code__", None)
    return code is not None and "site-packages" not in code.co_filename


class _Attempt:
    """A function jitted, or as it is from its first failure on."""

    def __init__(self, program: Any, function: Any) -> None:
        self.program, self.function = program, function
        self.read: Any = None
        self.jitted = program.jit(function)
        self.__name__ = getattr(function, "__name__", "function")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.jitted is not None:
            self._compare(list(_read(self.function, set())))
            try:
                output = self.jitted(*args, **kwargs)
                self.program.applied("jax-jit")
                if self.__name__.isidentifier() and _is_own(self.function):
                    self.program.record.facts["jitted"] = self.__name__
                return output
            except Exception:  # not to be traced
                self.jitted = None
        return self.function(*args, **kwargs)

    def _compare(self, read: Any) -> None:
        """Raises RuntimeError where what the function reads from outside is not as at its trace."""
        self.read = self.read or read
        if len(read) != len(self.read) or any(a is not b for a, b in zip(read, self.read)):
            raise RuntimeError(
                f"{self.__name__} reads a value from outside that has changed: jitted, it would "
                "keep the first"
            )


def _optax(program: Any, optax: Any) -> None:
    """optax's updates, called from Python, are jitted."""
    attempts: dict[int, _Attempt] = {}

    def update(transformation: Any) -> Any:
        function = transformation[1]
        if not program.is_running():
            return function
        return attempts.setdefault(id(function), _Attempt(program, function))

    optax.GradientTransformation.update = property(update)
    optax.GradientTransformationExtraArgs.update = property(update)
    apply, attempt = optax.apply_updates, _Attempt(program, optax.apply_updates)
    optax.apply_updates = lambda *args: (attempt if program.is_running() else apply)(*args)
