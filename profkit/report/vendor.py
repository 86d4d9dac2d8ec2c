"""NVIDIA's reader of reports, the package ncu-report, which not every platform has."""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec

READER_MISSING = "NVIDIA's reader (ncu-report) is not installed here"
WITHOUT_READER = f"machine code and source lines are not available: {READER_MISSING}"


@cache
def has_reader() -> bool:
    """Whether it is installed."""
    return find_spec("ncu_report") is not None
