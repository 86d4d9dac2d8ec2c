"""torch.compile of outermost modules."""

from __future__ import annotations

import functools
from itertools import count
from typing import Any

from .training import set_to_none

_HOOKS = "_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks"


def _compile(program: Any, mode: str | None) -> None:
    """torch.compile in a mode; those that are named have CUDA graphs. A program that compiles its
    modules does so in that mode."""
    name = f"compile-{mode}" if mode else "compile"
    if mode:
        set_to_none(program)  # the next replay overwrites gradients that stay
    if "compiled" in program.record.plan["features"]:
        program.compiling.append(lambda options: options.update(mode=mode))
        program.compiling.append(lambda _: program.applied(name))
    else:
        _compile_modules(program, name, mode)

    def note() -> None:
        """What compiles nothing, as where the program disabled that, is not applied."""
        if not program.may_have_compiled():
            program.record.applied.discard(name)

    program.record.finishing.append(note)


def _compile_modules(program: Any, name: str, mode: str | None) -> None:
    """Outermost ones are compiled, as the program compiles none."""
    torch = program.torch
    compiled_hooks = _refused_hooks(torch)

    def compiled(module: Any, call: Any) -> Any:
        if not any(True for _ in module.parameters()):
            return call
        program.applied(name)
        compiled_hooks.extend(vars(part).get(h) for part in module.modules() for h in _HOOKS)
        owner = str(getattr(module.forward, "__module__", ""))  # none of what is scripted
        seen = _inlined(call) if owner.startswith("torch.nn.modules.") else call
        faster, calls = program.compile(seen, mode=mode), count()

        def run(*args: Any, **kwargs: Any) -> Any:
            if not mode:
                return faster(*args, **kwargs)
            if next(calls) == 0 and torch.is_grad_enabled() and not module.training:
                return call(*args, **kwargs)  # after it, one sees whether a backward pass follows
            if torch.is_grad_enabled() and not program.is_inference(module):
                return program.copied(faster(*args, **kwargs))  # the next call may overwrite it
            with torch.no_grad():  # graphs wait for the backward pass of what they have run
                torch.compiler.cudagraph_mark_step_begin()
                return program.copied(faster(*args, **kwargs))

        return run

    if mode:
        program.on_step.append(lambda: torch.compiler.cudagraph_mark_step_begin())
    program.wrappers.append(compiled)


def _inlined(call: Any) -> Any:
    """A call that the compiler follows into torch's own modules: frames of these it skips."""
    return lambda *args, **kwargs: call(*args, **kwargs)


compile_default = functools.partial(_compile, mode=None)
compile_reduce_overhead = functools.partial(_compile, mode="reduce-overhead")
compile_max_autotune = functools.partial(_compile, mode="max-autotune")


def _refused_hooks(torch: Any) -> list[Any]:
    """Hooks of modules, by module and kind, to which none may be added any more: code that was
    compiled before does not call it."""
    handle, refused = torch.utils.hooks.RemovableHandle, list[Any]()
    start = handle.__init__

    @functools.wraps(start)
    def started(self: Any, hooks: Any, *args: Any, **kwargs: Any) -> None:
        if any(hooks is each for each in refused):
            raise RuntimeError("a hook that is registered after compilation is not called")
        start(self, hooks, *args, **kwargs)

    handle.__init__ = started
    return refused
