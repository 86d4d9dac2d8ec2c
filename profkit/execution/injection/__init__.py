"""Code that a child Python loads beside the user's program, whose files stay as they are.

A hook is a Python file with a function `install(module)`, called once in each process, right after
the module has been imported. It runs in the user's interpreter (any Python from 3.9 on) and can't
import profkit. A program that never imports the module never loads the hook.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct

_STARTUP = Path(__file__).with_name("startup")
MODULE_CALLS = "PROFKIT_MODULE_CALLS"
"""The variable with the number of calls of each outermost module that have ranges; 0: all."""


class Hook(Struct, frozen=True):
    """A file that is loaded after the import of a module, "torch" for instance."""

    module: str
    path: Path


def injected(environment: Mapping[str, str], hooks: Sequence[Hook], log: Path) -> dict[str, str]:
    """The environment, extended so that each Python started in it loads the hooks, in their order,
    after those that it has.

    What fails in a hook is appended to `log`; the program doesn't notice.
    """
    search = os.pathsep.join(filter(None, (str(_STARTUP), environment.get("PYTHONPATH"))))
    known = filter(None, environment.get("PROFKIT_HOOKS", "").split(os.pathsep))
    entries = dict.fromkeys([*known, *(f"{hook.module}={hook.path}" for hook in hooks)])
    return {
        **environment,
        "PYTHONPATH": search,
        "PROFKIT_HOOKS": os.pathsep.join(entries),
        "PROFKIT_HOOK_LOG": str(log),
    }


def module_ranges_hooks() -> tuple[Hook, ...]:
    """Hooks that put NVTX ranges around the modules of a torch program, by MODULE_CALLS."""
    path = Path(__file__).with_name("module_ranges.py")
    return Hook("torch", path), Hook("torch._dynamo.eval_frame", path)


def held(environment: Mapping[str, str], folder: Path) -> dict[str, str]:
    """The environment in which a Python program is held before its first line, until there is a
    file `go` in the folder; the program makes a file `held` there."""
    hooks = (Hook("sys", Path(__file__).with_name("hold.py")),)
    return {**injected(environment, hooks, folder / "log"), "PROFKIT_HOLD": str(folder)}
