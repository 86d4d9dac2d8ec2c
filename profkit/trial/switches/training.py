"""Optimizers, gradients, and loops without gradients."""

from __future__ import annotations

import functools
import inspect
from typing import Any


def fused_optimizer(program: Any) -> None:
    """Optimizers that have a fused kernel use it."""
    _optimizers(program, "fused", "fused-optimizer")


def foreach_optimizer(program: Any) -> None:
    """Optimizers update all parameters with few kernels."""
    _optimizers(program, "foreach", "foreach-optimizer")


def _optimizers(program: Any, option: str, name: str) -> None:
    for kind in vars(program.torch.optim).values():
        if inspect.isclass(kind) and option in inspect.signature(kind.__init__).parameters:
            _with_option(program, kind, option, name)


def _with_option(program: Any, kind: Any, option: str, name: str) -> None:
    start = kind.__init__
    other = "foreach" if option == "fused" else "fused"

    @functools.wraps(start)
    def started(self: Any, *args: Any, **kwargs: Any) -> None:
        if type(self) is kind and not kwargs.get(option):
            kwargs.pop(other, None)
            kwargs[option] = True
            program.applied(name)
        start(self, *args, **kwargs)

    kind.__init__ = started


def set_to_none(program: Any) -> None:
    """Gradients are dropped, not filled with zeros."""
    optimizer = program.torch.optim.Optimizer
    zero_grad = optimizer.zero_grad

    @functools.wraps(zero_grad)
    def dropped(self: Any, set_to_none: bool = True) -> None:
        if not set_to_none:
            program.applied("set-to-none")
        zero_grad(self, True)

    optimizer.zero_grad = dropped


def inference_mode(program: Any) -> None:
    """Outermost modules are called without recording gradients."""
    torch = program.torch

    def without_gradients(module: Any, call: Any) -> Any:
        program.applied("inference-mode")

        def run(*args: Any, **kwargs: Any) -> Any:
            with torch.inference_mode():
                return call(*args, **kwargs)

        return run

    program.wrappers.append(without_gradients)
