"""The formats of verbs, and which of them a file's name asks for."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Literal

from profkit.core.errors import UsageError

PlainFormat = Literal["terminal", "json"]
TextFormat = Literal["terminal", "markdown", "json"]
NumbersFormat = Literal["terminal", "json", "markdown"]  # --help lists them in this order

_MEANT = {
    ".txt": ("terminal",),
    ".json": ("json", "sarif"),
    ".md": ("markdown",),
    ".markdown": ("markdown",),
    ".html": ("html",),
    ".htm": ("html",),
    ".csv": ("csv",),
    ".sarif": ("sarif",),
    ".xml": ("junit",),
    ".tex": ("latex",),
    ".png": (),
    ".svg": (),
    ".pdf": (),
}
"""Formats by ending, the first where several can be had; pictures are none."""
_TEXT = ".txt"


def format_of(
    output: Path, formats: Sequence[str], asked: str | None, pictures: Sequence[str] = ()
) -> str | None:
    """The format to write a file in; None where its name says nothing and none was asked for.

    `pictures` are endings that the verb draws, which are no formats.

    Raises UsageError where the ending contradicts the format asked for, or where none was asked for
    and it is of no format that there is. Pipes and devices may have any name.
    """
    ending = output.suffix.lower()
    if not ending or (output.exists() and not output.is_file()):
        return asked
    meant = _MEANT.get(ending)
    if asked is not None:
        if meant is not None and asked not in meant and ending != _TEXT:
            raise UsageError(f"{output}: the name contradicts --format {asked}", _named(asked))
        return asked
    fitting = [name for name in meant or () if name in formats]
    if not fitting:
        raise UsageError(
            f"{output}: can't be written as {ending}", _named(*formats, pictures=pictures)
        )
    return fitting[0]


def _named(*formats: str, pictures: Sequence[str] = ()) -> str:
    endings = [ending for ending, meant in _MEANT.items() if _is_usual(ending, meant, formats)]
    endings += pictures
    return f"name it {' or '.join(endings)}" if endings else "leave --format or the ending out"


def _is_usual(ending: str, meant: Sequence[str], formats: Collection[str]) -> bool:
    return bool(meant) and meant[0] in formats and ending not in {".markdown", ".htm"}
