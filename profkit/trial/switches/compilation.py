"""torch.compile of outermost modules."""

from __future__ import annotations

from itertools import count
from typing import Any


def compile_default(program: Any) -> None:
    """torch.compile."""
    _compile(program, "compile", None)


def compile_reduce_overhead(program: Any) -> None:
    """torch.compile with CUDA graphs."""
    _compile(program, "compile-reduce-overhead", "reduce-overhead")


def compile_max_autotune(program: Any) -> None:
    """torch.compile, which measures more kernels, with CUDA graphs."""
    _compile(program, "compile-max-autotune", "max-autotune")


def _compile(program: Any, name: str, mode: str | None) -> None:
    torch = program.torch
    has_graphs = mode is not None

    def compiled(module: Any, call: Any) -> Any:
        if type(module).__name__ == "OptimizedModule" or not any(True for _ in module.parameters()):
            return call
        program.applied(name)
        faster, calls = program.compile(call, mode=mode), count()

        def run(*args: Any, **kwargs: Any) -> Any:
            if not has_graphs:
                return faster(*args, **kwargs)
            if next(calls) == 0 and torch.is_grad_enabled() and not module.training:
                return call(*args, **kwargs)  # after it, one sees whether a backward pass follows
            if torch.is_grad_enabled() and not program.is_inference(module):
                return program.copied(faster(*args, **kwargs))  # the next call may overwrite it
            with torch.no_grad():  # graphs wait for the backward pass of what they have run
                torch.compiler.cudagraph_mark_step_begin()
                return program.copied(faster(*args, **kwargs))

        return run

    if has_graphs:
        program.on_step.append(lambda: torch.compiler.cudagraph_mark_step_begin())
    program.wrappers.append(compiled)
