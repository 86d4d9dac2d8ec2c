"""One call on copies of its arguments: is its result right, and does it write to its arguments?"""

from __future__ import annotations

import math
import sys
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Coroutine,
    Iterator,
    Mapping,
    Sequence,
)
from copy import deepcopy
from functools import partial
from typing import Any

import numpy as np
from msgspec import Struct, field

from profkit.callables.arrays import (
    copied,
    dense,
    dtype_of,
    error_bound,
    framework,
    host,
    is_complex,
    is_whole,
    keyed_leaves,
    leaves,
    mapped,
    precise,
    same_values,
)
from profkit.callables.copies import copies
from profkit.callables.surroundings import wait_for
from profkit.capture.correctness import Status, Verdict, norm_scale, relative_error
from profkit.core.errors import TargetFailed, UsageError


class Invocation(Struct, frozen=True):
    """A callable and its arguments. `name` is its own, or "cell" of a notebook's."""

    name: str
    function: Callable[..., Any]
    args: Sequence[Any] = ()
    kwargs: Mapping[str, object] = field(default_factory=dict)

    def __call__(self) -> Any:
        return self.direct()

    @property
    def direct(self) -> Callable[[], Any]:
        """The call without a frame of Python's in between, which would be timed."""
        return partial(self.function, *self.args, **self.kwargs)

    def on_copies(self, copies: Callable[[Sequence[Any]], Sequence[Any]] = copies) -> Invocation:
        """The same with copies of its arrays; one that comes twice is one in the copies too."""
        arrays = self.arrays
        others = dict(zip(map(id, arrays), copies(arrays), strict=True))

        def other(array: Any) -> Any:
            return others[id(array)]

        return Invocation(
            self.name, self.function, mapped(tuple(self.args), other), mapped(self.kwargs, other)
        )

    @property
    def arrays(self) -> tuple[Any, ...]:
        """The arrays among its arguments."""
        return (*leaves(self.args), *leaves(self.kwargs))


class Examination(Struct, frozen=True):
    """`verdict` None: there was nothing to compare with. `writes`: it changes its arguments."""

    call: Invocation
    result: Any
    writes: bool
    verdict: Verdict | None


def called(call: Invocation) -> Any:
    """The result of a call that has finished; raises UsageError for one that is lazy."""
    result = call()
    _refuse_lazy(call.name, result)
    wait_for(result, [*call.arrays, *leaves(result)])
    return result


def examine(call: Invocation, reference: Any) -> Examination:
    """Call once on copies, and compare with `reference`: a callable, which gets the arguments in
    float64, or the expected result; None: nothing to compare with."""
    _refuse_iterators(call)
    used = call.on_copies()
    result = mapped(called(used), copied)  # the next call may write to the same buffer
    if any(framework(array) == "jax" and array.is_deleted() for array in used.arrays):
        raise UsageError(f"{call.name} donates its arguments", "measure it without donate_argnums")
    before, after = (call.args, call.kwargs), (used.args, used.kwargs)
    writes = not same_values(before, after)
    verdict = None
    if reference is not None:
        truth = reference
        if callable(reference):
            exact = Invocation("reference", _in_float64(reference), call.args, call.kwargs)
            truth = exact.on_copies(lambda arrays: [precise(array) for array in arrays])()
        verdict = judge_result(call.name, result, truth)
    return Examination(call, result, writes, verdict)


def _in_float64(function: Callable[..., Any]) -> Callable[..., Any]:
    """A copy of a module of torch with parameters in float64; any other callable as it is."""
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(function, torch.nn.Module):
        return function
    try:
        module: Callable[..., Any] = deepcopy(function).double()
    except (RuntimeError, TypeError):
        raise UsageError(
            f"the reference {type(function).__name__} can't be copied to float64",
            "give the expected result",
        ) from None
    return module


def _refuse_iterators(call: Invocation) -> None:
    """Raise UsageError for an argument that the first call would use up."""
    for argument in (*call.args, *call.kwargs.values()):
        if isinstance(argument, Iterator):
            raise UsageError(
                f"{call.name} gets an iterator ({type(argument).__name__}), which one call uses up",
                "pass a list",
            )


def _refuse_lazy(name: str, result: Any) -> None:
    """Raise UsageError for a result whose work is done later, when somebody asks for it."""
    if isinstance(result, Awaitable | AsyncIterator | Iterator):
        if isinstance(result, Coroutine):
            result.close()  # else Python warns that nobody awaited it
        raise UsageError(
            f"{name} returns a {type(result).__name__}: its work is done later, and not timed",
            "measure a function that returns what it computes, as a list or asyncio.run(...)",
        )


def agreement(name: str, result: Any, other: Any) -> Verdict | None:
    """Whether the results of two callables agree, each with the error of its precision.

    None where either returns no array: then nothing is known of what they compute, unless it
    returns nothing at all where the other returns arrays.
    """
    if not list(leaves(other)) or not (result is None or list(leaves(result))):
        return None
    return judge_result(name, result, other, both_round=True)


def judge_result(name: str, result: Any, truth: Any, *, both_round: bool = False) -> Verdict:
    """Compare arrays with those of the right result; the largest relative error decides.

    The error is ||result - truth|| / ||truth|| in float64 or complex128, at most that of
    profkit.capture.correctness.BOUNDS, with `both_round` those of both sides together; whole
    numbers must be equal. Raises TargetFailed for a reference without a finite array.
    """
    rights, arrays = list(leaves(truth)), list(leaves(result))
    if not rights:
        raise TargetFailed(f"{name}: the reference returns no array", "return what it computes")
    limits = [
        error_bound(array) + (error_bound(right) if both_round else 0.0)
        for array, right in zip(arrays, rights, strict=False)
    ]
    bound = max(limits, default=0.0)
    if reason := _unlike(result, truth):
        return Verdict(name, Status.failed, None, bound, reason)
    worst = 0.0
    for array, right, limit in zip(arrays, rights, limits, strict=True):
        error, reason = _deviation(array, right, limit)
        if reason:
            return Verdict(name, Status.failed, error, limit, reason)
        worst = max(worst, error or 0.0)
    return Verdict(name, Status.passed, worst, bound)


def _unlike(result: Any, truth: Any) -> str:
    """Why arrays can't be compared one by one; empty where they can."""
    keys, right_keys = ([place for place, _ in keyed_leaves(each)] for each in (result, truth))
    if len(keys) != len(right_keys):
        returned = f"{len(keys)} arrays" if keys else f"{type(result).__name__}, no array"
        return f"returned {returned}, the reference {len(right_keys)}"
    if len(keys) > 1 and keys != right_keys:
        return f"keys {_joined(keys)}, the reference has {_joined(right_keys)}"
    return ""


def _deviation(array: Any, right: Any, limit: float) -> tuple[float | None, str]:
    """The relative error, None without one, and why it fails the check."""
    if tuple(array.shape) != tuple(right.shape):
        return None, f"shape {tuple(array.shape)}, the reference has {tuple(right.shape)}"
    if is_whole(array) and is_whole(right):
        unequal = int(np.count_nonzero(host(array) != host(right)))
        words = f"{unequal} of {host(right).size} whole numbers differ"
        return None, words if unequal else ""
    error = _error(array, right)
    if math.isnan(error):
        return None, "values are not finite"
    words = f"relative error {error:.1e} is above {limit:.0e} ({dtype_of(array)})"
    return error, words if error > limit else ""


def _error(array: Any, right: Any) -> float:
    """The relative error; NaN where a value is not finite."""
    wide = "complex128" if is_complex(array) or is_complex(right) else "float64"
    both_torch = framework(array) == framework(right) == "torch"
    if wide == "float64" and both_torch and array.device == right.device:
        return relative_error(dense(array), dense(right).double())
    values, truth = (np.asarray(host(each), dtype=wide) for each in (array, right))
    largest = float(np.max(np.abs(truth), initial=0.0))
    scale = norm_scale(largest)
    distance = float(np.linalg.norm((values - truth) / scale))
    if largest == 0.0:
        return distance and math.inf
    return distance / float(np.linalg.norm(truth / scale))


def _joined(keys: Sequence[tuple[str, ...]]) -> str:
    return ", ".join(".".join(each) or "none" for each in keys)
