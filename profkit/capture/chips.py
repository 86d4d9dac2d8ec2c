"""The chips of NVIDIA's GPUs, as its PerfWorks library names them, and their capabilities."""

from __future__ import annotations

from collections.abc import Mapping

CAPABILITIES: Mapping[str, str] = {
    "TU102": "7.5", "TU104": "7.5", "TU106": "7.5", "TU116": "7.5", "TU117": "7.5",
    "GA100": "8.0",
    "GA102": "8.6", "GA103": "8.6", "GA104": "8.6", "GA106": "8.6", "GA107": "8.6",
    "GA10B": "8.7",
    "AD102": "8.9", "AD103": "8.9", "AD104": "8.9", "AD106": "8.9", "AD107": "8.9",
    "GH100": "9.0",
    "GB100": "10.0", "GB102": "10.0",
    "GB110": "10.3", "GB112": "10.3",
    "GR100": "10.7",
    "GB10B": "11.0",
    "GB202": "12.0", "GB203": "12.0", "GB205": "12.0", "GB206": "12.0", "GB207": "12.0",
    "GB20B": "12.1", "GB20C": "12.1",
}  # fmt: skip
"""Compute capability by chip: CUDA's list of GPUs; GB112, GB20C and GR100 by their siblings. The
first chip of a capability stands for it."""


def chip_of(capability: str) -> str | None:
    """The chip that stands for a compute capability, `9.0`."""
    return next((chip for chip, value in CAPABILITIES.items() if value == capability), None)
