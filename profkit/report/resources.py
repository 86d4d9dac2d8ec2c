"""Names of resources, precisions, tracks and opcodes, from data files of this package."""

from __future__ import annotations

from collections.abc import Mapping

from profkit.core.yaml_files import shipped_yaml

BUSY: Mapping[str, str]
"""Utilization of resources in the order of display: quantities and labels."""
RESOURCES: Mapping[str, str]
"""The resources whose use bounds the time, by the quantity of their utilization."""
PRECISIONS: Mapping[str, str]
TRACKS: Mapping[str, tuple[str, str]]
"""Quantities sampled over a kernel's run time, in the order of display: label and unit."""
BUSY, RESOURCES, PRECISIONS, TRACKS = shipped_yaml("profkit.report", "resources.yaml").values()
_OPCODES = shipped_yaml("profkit.report", "opcodes.yaml")

INSTRUCTION_CLASSES: tuple[str, ...] = tuple(_OPCODES["classes"])
"""Kinds of instructions that opcodes are counted by; half precision and tensor have their own."""
CLASS_OF: Mapping[str, str] = {
    opcode: kind for kind, text in _OPCODES["classes"].items() for opcode in text.split()
}
"""The kind of an opcode without its modifiers."""


def opcodes(*names: str) -> frozenset[str]:
    """The opcodes of some lists of `opcodes.yaml`."""
    return frozenset(opcode for name in names for opcode in _OPCODES[name].split())
