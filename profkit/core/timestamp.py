"""Times of day in files: ISO 8601, in UTC."""

from datetime import UTC, datetime

YEARS = 1970, 2999
"""The first and the last year of a time that is read; chosen: others are damage."""


def timestamp() -> str:
    """The UTC time in ISO 8601, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def parse_timestamp(text: str) -> datetime:
    """The time in UTC, which is that of a text without an offset; raises ValueError for a text that
    is no time of these years."""
    time = datetime.fromisoformat(text)
    first, last = YEARS
    if not first <= time.year <= last:
        raise ValueError(f"the year is not from {first} to {last}")
    return (time if time.tzinfo else time.replace(tzinfo=UTC)).astimezone(UTC)
