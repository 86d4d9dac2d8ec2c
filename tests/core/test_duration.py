"""Durations of command lines."""

from __future__ import annotations

import pytest

from profkit.core.duration import duration, parse_duration
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


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(1.26, "1.3 s"), (97.4, "97 s"), (104, "1.7 min"), (120, "2 min"), (5970, "100 min"),
     (9000, "2.5 h")],
)  # fmt: skip
def test_a_duration_has_two_digits(seconds: float, text: str) -> None:
    assert duration(seconds) == text
