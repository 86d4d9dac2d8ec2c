"""profkit: what limits a GPU kernel, what fixing it would give, and whether the fix worked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"
__all__ = ["Kernel", "Report", "__version__", "load"]

if TYPE_CHECKING:
    from profkit.report import Kernel, Report, load


def __getattr__(name: str) -> Any:
    """Import what reads reports only when it is used: `profkit --version` needs none of it."""
    if name in {"Kernel", "Report", "load"}:
        from profkit import report

        return getattr(report, name)
    raise AttributeError(f"module 'profkit' has no attribute {name!r}")
