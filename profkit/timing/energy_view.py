"""The energy of a call in words."""

from __future__ import annotations

from profkit.timing.latency_format import EnergyPerCall
from profkit.ui.text import between, count, number

ENERGY_COLUMNS = ("Energy per call", "Bounds", "Mean power", "Performance per watt")
ENERGY_NOTE = (
    "calls one behind the other with a warm L2, idle power included; bounds: what the steps of "
    "the GPU's energy counter leave open, no confidence level"
)


def energy_words(energy: EnergyPerCall) -> tuple[str, ...]:
    """The cells of ENERGY_COLUMNS."""
    return (
        number(energy.joules, "J"),
        between(energy.low, energy.high, "J"),
        f"{energy.power:.1f} W",
        _per_watt(energy),
    )


def energy_ratio(a: EnergyPerCall, b: EnergyPerCall) -> str:
    """The energy of `b` over that of `a`, with what the bounds of both leave open."""
    high = f"{b.high / a.low:.3f}" if a.low else "unbounded"
    return (
        f"energy per call: {number(a.joules, 'J')} → {number(b.joules, 'J')}, "
        f"{b.joules / a.joules:.3f}x [{b.low / a.high:.3f}, {high}] (bounds, no verdict)"
    )


def _per_watt(energy: EnergyPerCall) -> str:
    """The declared FLOP per joule, which is FLOP/s per watt; else bytes, or calls."""
    if energy.flop_per_joule:
        return f"{number(energy.flop_per_joule, 'FLOP/s')} per W"
    if energy.bytes_per_joule:
        return f"{number(energy.bytes_per_joule, 'B/s')} per W"
    return f"{count(1 / energy.joules)} calls/J"
