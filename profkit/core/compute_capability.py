"""Compute capabilities of GPUs, and ranges of them."""

from msgspec import Struct

ComputeCapability = tuple[int, int]
OLDEST: ComputeCapability = (7, 0)
NEWEST: ComputeCapability = (99, 9)
_DISASSEMBLED = (7, 5)  # of ncu-report 2025.3 and newer, which gives question marks for CC 7.0


class Range(Struct, frozen=True):
    """Compute capabilities from `low` to `high`, both included."""

    low: ComputeCapability
    high: ComputeCapability

    def __contains__(self, cc: object) -> bool:
        return isinstance(cc, tuple) and self.low <= cc <= self.high


def parse_capability(text: str) -> ComputeCapability:
    """Read `9.0`."""
    major, _, minor = text.partition(".")
    return int(major), int(minor)


def parse_range(text: str) -> Range:
    """Read `9.0`, `8.0-8.9` or `10.0-` (and newer)."""
    low, dash, high = text.partition("-")
    first = parse_capability(low)
    if not dash:
        return Range(first, first)
    return Range(first, parse_capability(high) if high else NEWEST)


def why_no_text(capability: ComputeCapability) -> str:
    """Why a chip's instructions have no text in a report; "" where NVIDIA's reader has it."""
    if capability >= _DISASSEMBLED or capability == (0, 0):
        return ""
    return f"NVIDIA's ncu-report has no instruction text of sm_{capability[0]}{capability[1]}"
