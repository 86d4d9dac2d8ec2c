"""The text of a claim while rules take numbers out of it: units, products, what is left."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from profkit.audit.printed_numbers import NUMBER, Figure, as_printed
from profkit.core.errors import BadInput

SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ns": 1e-9}
SI = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12, "p": 1e15}
BINARY = {"ki": 2.0**10, "mi": 2.0**20, "gi": 2.0**30, "ti": 2.0**40}

VALUE = rf"(?<![\w.])({NUMBER})"
TIME = r"(ms|us|µs|μs|ns|s)\b"
FLOP_RATE = r"([kMGTP]?)(?:FLOPs?/s|FLOPS\b|FLOPs?\s+per\s+second|OPS\b)"
BYTE_RATE = r"([kMGTP]i?|)(?:B/s|Bps\b|bytes?/s)"
_TIERS = (
    r"Ada|Blackwell|Ti|SUPER|Super|Laptop|Mobile|Max-Q|SXM\d?|PCI[Ee]|NVL|\d+ ?GB|"
    r"D(?: v2)?(?!\w|\s*=)"
)
GPU = re.compile(
    r"(?:\b|(?<=\dx))((?:(?:GeForce |RTX (?:PRO )?|GTX ){1,2}(\d{4})|([A-Z]{1,2}\d{1,4}[A-Z]?))"
    rf"(?:[ -](?:{_TIERS}))*(?: \(\d+ ?GB\))?)s?(?![\w=])"
)


# How far back words may stand that say what a number is: half a line. Looking at the whole text
# from each of its numbers would take time by the square of its length.
_NEAR = 160


def words_before(text: str, end: int) -> str:
    """The text shortly before a place."""
    return text[max(0, end - _NEAR) : end]


@dataclass
class Reading:
    """A text, what was understood of it, and what is left of it."""

    text: str
    left: str = ""
    found: dict[str, Any] = field(default_factory=dict)
    several: set[str] = field(default_factory=set)
    also: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.left = self.text

    def take(self, match: re.Match[str], *groups: int) -> None:
        """Blank out what was understood, so that no later rule takes it again."""
        for at in groups or (0,):
            start, end = match.span(at)
            if start >= 0:
                self.left = self.left[:start] + "·" * (end - start) + self.left[end:]

    def put(self, name: str, value: Any) -> None:
        """Keep a value; two different ones of a name leave none."""
        if name in self.found and self.found[name] != value:
            self.several.add(name)
            shown = (self.found[name], value)
            self.also |= {one.text for one in shown if isinstance(one, Figure)}
        self.found.setdefault(name, value)


def figure_of(number: str, scale: float, unit: str) -> Figure | None:
    """The quantity; None for a number that can be none."""
    try:
        printed = as_printed(number)
        return printed.figure(scale, unit) if printed else None
    except (ValueError, BadInput):
        return None


def take_figure(
    reading: Reading, match: re.Match[str], name: str, number: int, scale: float, unit: str
) -> None:
    figure = figure_of(match.group(number), scale, unit)
    if figure is not None:
        reading.put(name, figure)
        reading.take(match, number)


def prefix_of(match: re.Match[str], group: int) -> float:
    prefix = match.group(group).lower()
    return BINARY.get(prefix) or SI[prefix]
