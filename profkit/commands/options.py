"""Options that several verbs take, spelled once."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from profkit.errors import UsageError

KernelOption = Annotated[
    str | None,
    typer.Option(
        "--kernel",
        metavar="REGEX",
        help="Only kernels whose demangled name matches.",
        show_default=False,
    ),
]
OutputOption = Annotated[
    Path | None,
    typer.Option(
        "-o",
        "--output",
        metavar="FILE",
        help="Write there instead of stdout.",
        show_default=False,
    ),
]


def put(text: str, output: Path | None) -> None:
    """Write text to a file or stdout; raises UsageError when the file can't be written."""
    if output is None:
        sys.stdout.write(text)
        return
    try:
        output.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{output}: can't be written ({error.strerror})") from None
