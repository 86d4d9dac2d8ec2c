"""Hooks into a JAX program: calls of jitted functions, and their outputs."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .record import Record

_FIRST_OUTPUTS = 5  # calls of a function whose outputs are kept
_SAMPLE = 64  # elements of an output that are kept, as of torch's


class JittedFunction:
    """A jitted function whose calls from Python are recorded; else as jax made it."""

    def __init__(self, program: JaxProgram, function: Any, kind: str) -> None:
        functools.update_wrapper(self, function, updated=())
        self._program, self._function, self._kind, self._calls = program, function, kind, 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._function, name)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        output = self._function(*args, **kwargs)
        if self._program.is_running():
            self._program.called(self._kind, self._calls, output)
            self._calls += 1
        return output


class JaxProgram:
    """The program's jax; `options` change the keyword arguments of `jax.jit` for a function."""

    def __init__(self, jax: Any, record: Record) -> None:
        self.jax, self.record = jax, record
        self.options: list[Callable[[Any, Any], None]] = []
        self._last: Any = None
        record.features.add("jax")
        record.facts["jax"] = str(jax.__version__)
        record.finish = self._finish
        record.values = self._numbers
        self._jit = jax.jit
        jax.jit = functools.wraps(jax.jit)(self._watched_jit)

    def applied(self, name: str) -> None:
        """A switch has found something to change."""
        self.record.applied.add(name)

    def is_running(self) -> bool:
        """Whether no function is being traced."""
        return bool(self.jax.core.trace_ctx.is_top_level())

    def called(self, kind: str, call: int, output: Any) -> None:
        """A jitted function was called by the program."""
        self._last = output
        if call < _FIRST_OUTPUTS:
            for number, leaf in enumerate(self.jax.tree_util.tree_leaves(output)[-3:]):
                if getattr(leaf, "size", 0):
                    self.record.result(f"{kind} {number}", functools.partial(self._sample, leaf))
        self.record.mark(kind)

    def _sample(self, leaf: Any) -> Any:
        step = max(1, leaf.size // _SAMPLE)
        return leaf.reshape(-1)[::step][:_SAMPLE] + 0

    def _numbers(self, value: Any) -> list[float]:
        numbers = self.jax.device_get(value).astype("float64").reshape(-1).tolist()
        return [float(number) for number in numbers]

    def _watched_jit(self, function: Any = None, **options: Any) -> Any:
        if function is None:
            return functools.partial(self._watched_jit, **options)
        for change in self.options:
            change(function, options)
        name = getattr(function, "__name__", type(function).__name__)
        return JittedFunction(self, self._jit(function, **options), f"calls of {name}")

    def _finish(self) -> None:
        self.jax.block_until_ready(self._last)
        self.record.features.add(str(self.jax.default_backend()).replace("gpu", "cuda"))
