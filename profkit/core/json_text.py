"""Readable, compact JSON: indented, a list of numbers on one line."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

# No string of JSON text holds a line break, so that this finds lists and nothing inside of texts.
_NUMBERS = re.compile(r"\[\n\s*([-\dtfn][^\[\]{}\"]*?)\n\s*\]")
_BREAK = re.compile(r",\n\s*")
_NESTED = (dict, list, tuple, map)
_line = json.JSONEncoder(allow_nan=False).encode


def json_text(document: Mapping[str, object], indent: int = 2) -> str:
    """The text of a JSON file; raises ValueError for NaN and infinities."""
    text = json.dumps(document, indent=indent, allow_nan=False) + "\n"
    return _NUMBERS.sub(lambda numbers: f"[{_BREAK.sub(', ', numbers[1])}]", text)


def json_rows(document: Mapping[str, object]) -> Iterator[str]:
    """The text of a JSON file, in pieces: a mapping of plain values in a list takes one line.

    A list may be a `map`, of which one item is in memory at a time. Raises ValueError as
    `json_text`.
    """
    yield from _pieces(document, "\n")
    yield "\n"


def _pieces(value: Any, margin: str) -> Iterator[str]:
    inner = f"{margin}  "
    if isinstance(value, dict):
        named = ((f"{_line(name)}: ", _pieces(inside, inner)) for name, inside in value.items())
        yield from _joined("{", named, "}", margin)
    elif _is_plain(value):
        yield _line(value)
    else:
        items = (("", [_line(item)] if _is_row(item) else _pieces(item, inner)) for item in value)
        yield from _joined("[", items, "]", margin)


def _joined(
    opening: str, parts: Iterable[tuple[str, Iterable[str]]], closing: str, margin: str
) -> Iterator[str]:
    comma = ""
    for before, part in parts:
        yield f"{comma or opening}{margin}  {before}"
        yield from part
        comma = ","
    yield f"{margin}{closing}" if comma else f"{opening}{closing}"


def _is_plain(value: Any) -> bool:
    """A value, or a list of nothing but values."""
    if isinstance(value, list | tuple):
        return not any(isinstance(item, _NESTED) for item in value)
    return not isinstance(value, _NESTED)


def _is_row(item: Any) -> bool:
    return isinstance(item, dict) and all(map(_is_plain, item.values()))


def finite(value: float) -> float | None:
    """A number as JSON has it: null for NaN and for infinities."""
    return value if math.isfinite(value) else None
