"""Durations of command lines."""

from __future__ import annotations

import pytest

from profkit.core.duration import parse_duration
from profkit.core.errors import UsageError


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90s", 90.0), ("90", 90.0), ("1.5m", 90.0), (" 2h ", 7200.0), ("0.5s", 0.5), (None, None)],
)
def test_a_duration_is_in_seconds(text: str | None, seconds: float | None) -> None:
    assert parse_duration("--budget", text) == seconds


@pytest.mark.parametrize("text", ["", "0", "0s", "-1s", "s", "1d", "1 m", "1e3", "nan", "9999h"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"--budget .*; write 90s, 20m or 1h"):
        parse_duration("--budget", text)
