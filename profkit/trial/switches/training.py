"""Optimizers, gradients, and loops without gradients."""

from __future__ import annotations

import functools
import inspect
import weakref
from sys import getrefcount
from typing import Any

_CALLS = 10  # of an optimizer, chosen: until then a program has what it keeps


def _optimizers(program: Any, option: str) -> None:
    """Optimizers that have an option use it: one kernel, or few, for all parameters."""
    for kind in vars(program.torch.optim).values():
        if inspect.isclass(kind) and option in inspect.signature(kind.__init__).parameters:
            _with_option(program, kind, option)


def _with_option(program: Any, kind: Any, option: str) -> None:
    start = kind.__init__
    other = "foreach" if option == "fused" else "fused"

    @functools.wraps(start)
    def started(self: Any, *args: Any, **kwargs: Any) -> None:
        if type(self) is kind and not kwargs.get(option):
            if kwargs.pop(other, None):
                program.record.facts["rival"] = f"{other}=None, "
            kwargs[option] = True
            program.applied(f"{option}-optimizer")
            switched = program.record.facts.setdefault("switched", "").split()
            program.record.facts["switched"] = " ".join(dict.fromkeys([*switched, kind.__name__]))
        start(self, *args, **kwargs)

    kind.__init__ = started


fused_optimizer = functools.partial(_optimizers, option="fused")
foreach_optimizer = functools.partial(_optimizers, option="foreach")


def _parameters(optimizer: Any) -> list[Any]:
    return [each for group in optimizer.param_groups for each in group["params"]]


def set_to_none(program: Any) -> None:
    """Gradients are dropped, not filled with zeros."""
    from torch.utils.weak import WeakTensorKeyDictionary

    optimizer = program.torch.optim.Optimizer
    zero_grad, alone = optimizer.zero_grad, _references(program.torch)
    calls: Any = weakref.WeakKeyDictionary()
    dropped_ones: Any = weakref.WeakKeyDictionary()
    zeroed: Any = weakref.WeakKeyDictionary()  # parameters that have had gradients

    def check(self: Any, *_: Any) -> None:
        if any(p.grad is None and p in zeroed[self] for p in _parameters(self)):
            raise RuntimeError("a parameter has no gradient in a step, where it had zeros")

    @functools.wraps(zero_grad)
    def dropped(self: Any, set_to_none: bool = True) -> None:
        if not set_to_none:
            program.applied("set-to-none")
            program.record.facts["dropped"] = ""
            if self not in zeroed:
                zeroed[self] = WeakTensorKeyDictionary()
                self.register_step_pre_hook(check)
            had = (p for p in _parameters(self) if p.grad is not None and p not in zeroed[self])
            zeroed[self].update(dict.fromkeys(had))
            calls[self] = count = calls.get(self, 0) + 1
            if any(each() is not None for each in dropped_ones.pop(self, ())):
                raise RuntimeError("the program keeps gradients, which would be filled no more")
            if count <= _CALLS or not count & (count - 1):  # else rarely, as it takes its time
                dropped_ones[self] = _held(program.torch, self, alone)
        zero_grad(self, True)

    optimizer.zero_grad = dropped


def _references(torch: Any) -> int:
    """Those to a gradient that nothing but its parameter and a variable holds."""
    parameter = torch.nn.Parameter(torch.zeros(1))
    parameter.grad = torch.zeros(1)
    gradient = parameter.grad
    return getrefcount(gradient)


def _held(torch: Any, optimizer: Any, alone: int) -> list[Any]:
    """References to gradients that something else holds, or to what they are parts of, but for
    buckets of torch's own."""
    has_buckets = torch.distributed.is_available() and torch.distributed.is_initialized()
    held = []
    for parameter in _parameters(optimizer):
        gradient = parameter.grad
        if gradient is not None and getrefcount(gradient) > alone:
            held.append(weakref.ref(gradient))
        if gradient is not None and gradient._base is not None and not has_buckets:
            held.append(weakref.ref(gradient._base))
    return held


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
