"""Durations: on the command line (`90s`, `20m`, `1h`), and in words."""

import re

from profkit.core.errors import UsageError

_SECONDS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)([smh]?)")
_LONGEST = 1e7
"""Seconds, 116 days; chosen: longer ones are typing errors."""


def parse_duration(option: str, text: str | None) -> float | None:
    """An option's value in seconds, None where it was not given; raises UsageError."""
    if text is None:
        return None
    match = _DURATION.fullmatch(text.strip())
    seconds = float(match[1]) * _SECONDS[match[2]] if match else 0.0
    if not 0 < seconds < _LONGEST:
        raise UsageError(f"{option} {text!r} is not a valid duration", "write 90s, 20m or 1h")
    return seconds


def duration(seconds: float) -> str:
    """Seconds, minutes or hours, to two digits or more."""
    if seconds < 100:
        return f"{seconds:.{'2g' if seconds < 10 else '0f'}} s"
    minutes = seconds / 60
    return f"{float(f'{minutes:.2g}'):g} min" if minutes < 100 else f"{minutes / 60:.1f} h"
