"""profkit: what limits a GPU kernel, what fixing it would give, and whether the fix worked.

>>> import profkit
>>> report = profkit.load("run.ncu-rep")
>>> report.checklist()
>>> profkit.diff("before.ncu-rep", "after.ncu-rep")
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from profkit.core.errors import (
    BadInput,
    EnvironmentProblem,
    NothingMatches,
    ProfkitError,
    TargetFailed,
    UsageError,
)
from profkit.core.version import __version__

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

    from profkit.api import (
        Checklist,
        Diff,
        Item,
        Kernel,
        KernelDiff,
        Report,
        Roofline,
        Timeline,
        diff,
        load,
        load_timeline,
    )
    from profkit.callables.api import Run, compare, profile, sweep
    from profkit.capture.script import asked
    from profkit.capture.target import Target, Unsupported, Variant, normal_inputs
    from profkit.core.work import Work

__all__ = [
    "BadInput", "Checklist", "Diff", "EnvironmentProblem", "Item", "Kernel", "KernelDiff",
    "NothingMatches", "ProfkitError", "Report", "Roofline", "Run", "Target", "TargetFailed",
    "Timeline", "Unsupported", "UsageError", "Variant", "Work", "__version__", "asked",
    "compare", "diff", "load", "load_timeline", "normal_inputs", "profile", "sweep",
]  # fmt: skip


def load_ipython_extension(shell: InteractiveShell) -> None:
    """What `%load_ext profkit` does in a notebook: define `%%profkit` and `%profkit`."""
    from profkit.callables.notebook import load

    load(shell)


if not TYPE_CHECKING:  # type checkers would take any name for one that it has

    def __getattr__(name: str) -> object:
        """Import what reads reports, or makes targets, only when it is used."""
        if name not in __all__:
            message = f"module {__name__!r} has no attribute {name!r}"
            raise AttributeError(message, name=name, obj=sys.modules[__name__])
        if name in {"Target", "Unsupported", "Variant", "Work", "normal_inputs"}:
            from profkit.capture import target

            return getattr(target, name)
        if name == "asked":
            from profkit.capture.script import asked

            return asked
        if name in {"Run", "compare", "profile", "sweep"}:
            from profkit.callables import api as callables

            return getattr(callables, name)
        from profkit import api

        return getattr(api, name)

    def __dir__() -> list[str]:
        return sorted(__all__)
