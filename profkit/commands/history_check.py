"""`profkit history check`: what changed in a history, and whether that is news."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

import typer

from profkit.commands.options import put
from profkit.core.errors import BadInput
from profkit.core.unit_words import share

if TYPE_CHECKING:
    from profkit.history.check import Check

CheckFormat = Literal["terminal", "markdown", "json", "junit"]

STORE = Path(".profkit/history")
_TOP = 40  # chosen: a screen
_RECENT = 3  # chosen: a change is detected with the third run of it; later checks then pass again
