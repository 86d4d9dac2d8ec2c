"""Switches of JAX."""

from __future__ import annotations

import inspect
import sys
from types import FunctionType
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
        if first in _STATES and not {"donate_argnums", "donate_argnames"} & options.keys():
            program.applied("jax-donate")
            options["donate_argnums"] = (0,)

    program.options.append(donate)


def jax_jit(program: Any) -> None:
    """Functions that compute gradients, and optax's updates, are jitted where they are not."""

    def jitted(gradient: Any) -> Any:
        gradient.run = lambda args, kwargs: _run(program, gradient, args, kwargs)
        return gradient

    program.gradients = jitted
    program.after.setdefault("optax", []).append(lambda optax: _optax(program, optax))


def _run(program: Any, gradient: Any, args: Any, kwargs: Any) -> Any:
    """Compute a gradient, and have the function that asked for it jitted from the next call on."""
    frame = sys._getframe(3)  # of the caller of `Watched.__call__`
    caller = frame.f_globals.get(frame.f_code.co_name)
    if isinstance(caller, FunctionType) and caller.__code__ is frame.f_code:
        names, name = frame.f_globals, frame.f_code.co_name
        attempt = _Attempt(program, caller, lambda: names.update({name: caller}))
        names[name] = type(gradient)(program, attempt, gradient.kind)
        names[name].calls = gradient.calls + 1
    elif frame.f_code.co_name == "<module>" and not isinstance(gradient.function, _Attempt):
        gradient.function = _Attempt(program, gradient.function)
    return gradient.function(*args, **kwargs)


class _Attempt:
    """A function jitted, or as it is from its first failure on."""

    def __init__(self, program: Any, function: Any, failed: Any = int) -> None:
        self.program, self.function, self.failed = program, function, failed
        self.jitted = program.jit(function)
        self.__name__ = getattr(function, "__name__", "function")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.jitted is not None:
            try:
                output = self.jitted(*args, **kwargs)
                self.program.applied("jax-jit")
                return output
            except Exception:  # not to be traced
                self.jitted = None
                self.failed()
        return self.function(*args, **kwargs)


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
