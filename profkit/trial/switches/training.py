"""Optimizers, gradients, and loops without gradients."""

from __future__ import annotations

import functools
import inspect
from sys import getrefcount
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
            rival = f"{other}=None, " if kwargs.pop(other, None) else ""
            program.record.facts["rival"] = rival
            kwargs[option] = True
            program.applied(name)
        start(self, *args, **kwargs)

    kind.__init__ = started


def set_to_none(program: Any) -> None:
    """Gradients are dropped, not filled with zeros."""
    optimizer = program.torch.optim.Optimizer
    zero_grad, calls = optimizer.zero_grad, 0

    @functools.wraps(zero_grad)
    def dropped(self: Any, set_to_none: bool = True) -> None:
        nonlocal calls
        if not set_to_none:
            program.applied("set-to-none")
            calls += 1
            if not calls & (calls - 1):  # rarely, as it takes its time
                _check_held(self, _references(program.torch))
        zero_grad(self, True)

    optimizer.zero_grad = dropped


def _references(torch: Any) -> int:
    """Those to a gradient that nothing but its parameter and a variable holds."""
    parameter = torch.nn.Parameter(torch.zeros(1))
    parameter.grad = torch.zeros(1)
    gradient = parameter.grad
    return getrefcount(gradient)


def _check_held(optimizer: Any, alone: int) -> None:
    """Raises RuntimeError where the program goes on to use gradients that would be dropped."""
    for parameter in (each for group in optimizer.param_groups for each in group["params"]):
        gradient = parameter.grad
        if gradient is not None and (gradient._base is not None or getrefcount(gradient) > alone):
            raise RuntimeError("the program keeps gradients, which would be filled no more")


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
