"""Units of expressions."""

from __future__ import annotations

import pytest

from profkit.rules.finding import unit_of


@pytest.mark.parametrize(
    ("text", "unit"),
    [
        ("global_sectors_excessive", "sector"),
        ("global_sectors_excessive * 32", "B"),
        ("32 * global_sectors_needed", "B"),
        ("32 * global_sectors_needed / dram_bytes", "1"),
        ("2 * global_sectors_needed", "sector"),
        ("0.1 * l2_bytes", "B"),
        ("32 * dram_busy", "1"),
    ],
)
def test_sectors_times_their_size_are_bytes(text: str, unit: str) -> None:
    assert unit_of(text) == unit
