"""Numbers as they were printed: YAML and JSON read without losing how many digits were given."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TypeAlias

import yaml
from msgspec import Struct, field

from profkit.core.errors import BadInput, inside
from profkit.core.text_files import parse_json, read_text
from profkit.core.yaml_files import compose_yaml

NUMBER = r"\d+(?:,\d{3})*(?:\.\d+)?(?:[eE][+-]?\d+)?"
_WHOLE = re.compile(rf"[-+]?(?:{NUMBER}|\.\d+)")
_SIGNIFICANT = 3  # chosen: prose gives three digits, 2,000 is rarely exact
_LARGEST = 4 << 20  # bytes: a hundred claims have 20 kB
_LEAST, _MOST = 1e-30, 1e60


class Printed(Struct, frozen=True):
    """A number and the text it was given as."""

    value: float
    text: str

    @property
    def half(self) -> float:
        """Half a unit of the last digit that counts: what rounding may have hidden.

        Zeros at the end of a whole number count only as the first three digits.
        """
        mantissa, _, exponent = self.text.lower().lstrip("+-").replace(",", "").partition("e")
        whole, point, fraction = mantissa.partition(".")
        if point:
            place = -len(fraction)
        else:
            digits = whole.lstrip("0")
            zeros = len(digits) - len(digits.rstrip("0"))
            place = max(0, min(zeros, len(digits) - _SIGNIFICANT))
        return 0.5 * 10.0 ** (place + int(exponent or 0))

    def figure(self, scale: float, unit: str) -> Figure:
        """The quantity in SI units, `scale` of them a unit; raises ValueError as Figure does."""
        if not self.value > 0:
            raise ValueError(f"{self.text} is not a positive number")
        shown = f"{self.text}{unit}" if unit in ("%", "x") else f"{self.text} {unit}".strip()
        return Figure(self.value * scale, self.half * scale, shown)


class Figure(Struct, frozen=True):
    """A claimed quantity in SI units (a share of 1), positive; `text` is how it was given.

    `half` is what rounding may have hidden: the quantity lies within `value` ± `half`.
    Raises ValueError for what is not positive, or beyond reason (1e-30 to 1e60).
    """

    value: float
    half: float = 0.0
    text: str = ""

    def __post_init__(self) -> None:
        if not (_LEAST <= self.value <= _MOST and 0 <= self.half <= _MOST):
            raise ValueError(f"{self.text or self.value} is not a positive number")

    @property
    def low(self) -> float:
        return max(self.value - self.half, self.value * 1e-9)

    @property
    def high(self) -> float:
        return self.value + self.half


class Commented(Struct, frozen=True):
    """A mapping, and the comments on its keys' own lines."""

    items: Mapping[str, Node]
    comments: Mapping[str, str] = field(default_factory=dict)


Node: TypeAlias = Commented | list["Node"] | Printed | str | bool | None
"""A value in a document."""


def as_printed(text: str) -> Printed | None:
    """The number that a text is; None for another text. Raises BadInput for one beyond reason."""
    if len(text) > 100 or not _WHOLE.fullmatch(text.strip()):
        return None
    value = float(text.replace(",", ""))
    if not math.isfinite(value):
        raise BadInput(f"holds {text}", "numbers are finite")
    return Printed(value, text.strip())


def read_printed(path: Path) -> Node:
    """A YAML or JSON document: Commented mappings, lists, texts, booleans, None and Printed.

    Raises BadInput for a file that can't be read or is neither.
    """
    text = read_text(path, largest=_LARGEST)
    is_data = path.suffix in {".json", ".yaml", ".yml"}
    with inside(path, "" if is_data else "write claims as a YAML list, sentences in quotes"):
        if path.suffix == ".json" and text.strip():
            document: Node = parse_json(text, number=as_printed, object_hook=Commented)
            return document
        node = compose_yaml(text)
        return _built(node, text.splitlines()) if node else None


def _built(node: yaml.Node, lines: list[str]) -> Node:
    """The value of a YAML node."""
    if isinstance(node, yaml.SequenceNode):
        return [_built(item, lines) for item in node.value]
    if not isinstance(node, yaml.MappingNode):
        return _scalar(node)
    items: dict[str, Node] = {}
    comments: dict[str, str] = {}
    for key, value in node.value:
        if not isinstance(key, yaml.ScalarNode):
            raise BadInput(f"line {key.start_mark.line + 1}: a key that is not text")
        items[key.value] = _built(value, lines)
        rest = lines[key.end_mark.line][key.end_mark.column :].partition("#")[2].strip()
        if rest and value.start_mark.line > key.start_mark.line:
            comments[key.value] = rest
    return Commented(items, comments)


def _scalar(node: yaml.Node) -> Node:
    if not isinstance(node, yaml.ScalarNode) or node.style is not None:
        return str(node.value)
    kind = node.tag.rpartition(":")[2]
    if kind == "null":
        return None
    if (number := as_printed(node.value)) is not None:
        return number
    return node.value.lower() in {"true", "yes", "on"} if kind == "bool" else str(node.value)
