"""Readable, compact JSON: indented, a list of numbers on one line."""

import json
import math
import re
from collections.abc import Mapping

# No string of JSON text holds a line break, so that this finds lists and nothing inside of texts.
_NUMBERS = re.compile(r"\[\n\s*([-\dtfn][^\[\]{}\"]*?)\n\s*\]")
_BREAK = re.compile(r",\n\s*")


def json_text(document: Mapping[str, object], indent: int = 2) -> str:
    """The text of a JSON file; raises ValueError for NaN and infinities."""
    text = json.dumps(document, indent=indent, allow_nan=False) + "\n"
    return _NUMBERS.sub(lambda numbers: f"[{_BREAK.sub(', ', numbers[1])}]", text)


def finite(value: float) -> float | None:
    """A number as JSON has it: null for NaN and for infinities."""
    return value if math.isfinite(value) else None
