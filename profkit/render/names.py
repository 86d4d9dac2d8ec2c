"""What of a report's paths may be shown where it can be shared."""

from __future__ import annotations

from pathlib import Path


def file_name(path: str, *, with_host: bool) -> str:
    """The path, or without the host only the file's name."""
    return path if with_host else Path(path).name
