"""Pictures of matplotlib: the files that they are written to."""

from pathlib import Path

from profkit.core.errors import UsageError
from profkit.core.extras import require

PICTURES = (".png", ".svg", ".pdf")
"""How the names of pictures end."""


def check_picture(path: Path) -> None:
    """Raise UsageError for a name that no picture can have, and EnvironmentProblem where nothing
    that draws is installed."""
    if path.suffix not in PICTURES:
        raise UsageError(f"{path}: not a kind of plot", f"use {', '.join(PICTURES)}")
    require("a plot", "matplotlib")
