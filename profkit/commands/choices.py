"""The choices that options offer, and which format a file's name asks for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin

from msgspec import Meta

from profkit.core.errors import UsageError

PlainFormat = Literal["terminal", "brief", "json"]
TextFormat = Literal["terminal", "brief", "markdown", "json"]
NumbersFormat = Literal["terminal", "json", "markdown"]  # --help lists them in this order
Timer = Literal["events", "graph", "cupti"]
Cache = Literal["cold", "warm"]
Device = Literal["cuda", "cpu"]
Unit = Literal["s", "ms", "us", "ns"]
Preset = Literal["strict", "default", "permissive"]
Number = Annotated[int, Meta(ge=0)]
Count = Annotated[int, Meta(ge=1)]

_FORMATS = {
    ".txt": ("terminal",),
    ".json": ("json", "sarif"),
    ".md": ("markdown",),
    ".markdown": ("markdown",),
    ".html": ("html",),
    ".htm": ("html",),
    ".csv": ("csv",),
    ".sarif": ("sarif",),
    ".xml": ("junit",),
    ".png": (),
    ".svg": (),
    ".pdf": (),
}
"""Formats by ending, the first where several can be had; pictures are none."""
_UNUSUAL = (".markdown", ".htm")


def choices_of(hint: Any) -> list[str]:
    """The words of a literal, or of a literal or None; [] for another type."""
    literals = (part for part in parts_of(hint) if get_origin(part) is Literal)
    return [word for literal in literals for word in get_args(literal)]


def parts_of(hint: Any) -> Iterator[Any]:
    """A type, the types that it is made of, and what these are annotated with."""
    yield hint
    for part in get_args(hint):
        yield from parts_of(part)


def format_of(
    output: Path, formats: Sequence[str], requested: str | None, pictures: Sequence[str] = ()
) -> str | None:
    """The format to write a file in; None where its name has no ending and none was requested.

    `pictures` are endings that the verb draws, which are no formats.

    Raises UsageError where the ending contradicts the format requested, or where none was requested
    and it is of no format that there is. Pipes and devices may have any name.
    """
    ending = output.suffix.lower()
    if not ending or (output.exists() and not output.is_file()):
        return requested
    candidates = _FORMATS.get(ending)
    if requested is None:
        for name in candidates or ():
            if name in formats:
                return name
        remedy = _file_names(*formats, pictures=pictures)
        raise UsageError(f"{output}: {ending} is not a format of this verb", remedy)
    if candidates is not None and requested not in candidates and ending != ".txt":
        message = f"{output}: its extension contradicts --format {requested}"
        raise UsageError(message, _file_names(requested))
    return requested


def _file_names(*formats: str, pictures: Sequence[str] = ()) -> str:
    endings = [
        ending
        for ending, names in _FORMATS.items()
        if names[:1] and names[0] in formats and ending not in _UNUSUAL
    ]
    endings += pictures
    return f"use {' or '.join(endings)}" if endings else "leave out --format or the extension"
