"""Switches of JAX."""

from __future__ import annotations

import inspect
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
    """flax's outermost `Module.apply` is jitted, where the program hasn't jitted it."""
    import sys

    flax = sys.modules.get("flax.linen")
    if flax is None:
        return
    apply, jax, jitted = flax.Module.apply, program.jax, {}

    def called(self: Any, variables: Any, *args: Any, **kwargs: Any) -> Any:
        if kwargs or not program.is_running():
            return apply(self, variables, *args, **kwargs)
        if self not in jitted:
            jitted[self] = jax.jit(lambda values, *inputs: apply(self, values, *inputs))
            program.applied("jax-jit")
        return jitted[self](variables, *args)

    flax.Module.apply = called
