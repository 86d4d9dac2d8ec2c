"""Amounts with a unit on the command line: `0.4ms`, `512MB`."""

import re
from collections.abc import Mapping

from profkit.core.errors import UsageError

TIMES: Mapping[str, float] = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}
BYTES: Mapping[str, float] = {
    "B": 1, "kB": 1e3, "KB": 1e3, "MB": 1e6, "GB": 1e9, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30,
}  # fmt: skip
_AMOUNT = re.compile(r"(\d+(?:\.\d+)?)\s*(\w+)")
_LARGEST = 1e15
"""Seconds or bytes, a petabyte; chosen: larger ones are typing errors."""


def parse_amount(option: str, text: str, units: Mapping[str, float], example: str) -> float:
    """An option's value in the unit that `units` count; raises UsageError."""
    match = _AMOUNT.fullmatch(text.strip())
    value = float(match[1]) * units.get(match[2], _LARGEST) if match else _LARGEST
    if value >= _LARGEST:
        raise UsageError(f"{option} {text!r} is not a number with a unit", f"write {example}")
    return value
