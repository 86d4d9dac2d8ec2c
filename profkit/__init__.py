"""profkit: what limits a GPU kernel, what fixing it would give, and whether the fix worked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from profkit.core.version import __version__

__all__ = [
    "Kernel", "Report", "Target", "Unsupported", "Variant", "Within", "Work", "__version__",
    "asked", "diff", "load", "normal_inputs",
]  # fmt: skip

if TYPE_CHECKING:
    from profkit.api import Kernel, Report, diff, load
    from profkit.capture.script_options import asked
    from profkit.capture.target import Target, Unsupported, Variant, Within, normal_inputs
    from profkit.capture.work import Work


def __getattr__(name: str) -> Any:
    """Import what reads reports, or makes targets, only when it is used."""
    if name in {"Kernel", "Report", "diff", "load"}:
        from profkit import api

        return getattr(api, name)
    if name in {"Target", "Unsupported", "Variant", "Within", "Work", "normal_inputs"}:
        from profkit.capture import target

        return getattr(target, name)
    if name == "asked":
        from profkit.capture.script_options import asked

        return asked
    raise AttributeError(f"module 'profkit' has no attribute {name!r}")
