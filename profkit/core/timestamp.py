"""The time of day as files have it."""

from __future__ import annotations

from datetime import UTC, datetime


def timestamp() -> str:
    """The UTC time in ISO 8601, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")
