"""Numbers of JSON that others may have written, held to their limits."""

from __future__ import annotations

from reprlib import repr as brief
from typing import Any

from profkit.core.errors import BadInput

_LARGEST = 1e30


def number(value: Any, label: str, low: float = -_LARGEST, high: float = _LARGEST) -> float:
    """The value, a number from `low` to `high`; raises BadInput, naming it `label`."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise BadInput(f"{label} is {brief(value)}, not a number")
    if not low <= value <= high:
        raise BadInput(f"{label} is {brief(value)}, not from {low:g} to {high:g}")
    return value
