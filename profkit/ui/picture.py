"""Pictures of matplotlib: the files that they are written to."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from profkit.core.errors import UsageError
from profkit.core.extras import require

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PICTURES = (".png", ".svg", ".pdf")
"""How the names of pictures end."""


def check_picture(path: Path) -> None:
    """Raise UsageError for a name that no picture can have, and EnvironmentProblem where nothing
    that draws is installed."""
    if path.suffix not in PICTURES:
        raise UsageError(f"{path}: not a kind of plot", f"use {', '.join(PICTURES)}")
    require("a plot", "matplotlib")


def save_picture(figure: Figure, path: Path, dpi: int = 150, metadata: Any = None) -> None:
    """Write a figure; raises UsageError where that can't be."""
    try:
        figure.savefig(path, dpi=dpi, metadata=metadata)
    except OSError as error:
        raise UsageError(f"{path}: can't be written ({error.strerror})") from None
