"""Points of made-up series."""

from __future__ import annotations

import hashlib
import random
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from profkit.history.record import Conditions, Point, Series

START = datetime(2026, 9, 28, 2, 30, tzinfo=UTC)
FLASH = Series("sdpa_s512", "flash", "b32-h8-s512-d64-fp16", "NVIDIA H200", "main")
CUDNN = replace(FLASH, variant="cudnn")
NIGHTLY = Conditions("GPU-1", "580.1", "13.0", "power limit 700 W", "events", "cold", "0.1.0")


def point(
    number: int,
    series: Series = FLASH,
    seconds: float = 50e-6,
    conditions: Conditions = NIGHTLY,
    source: str = "runs",
) -> Point:
    """A run of a night; the same number is the same run."""
    draw = random.Random(f"{number} {series}")
    return Point(
        series=series,
        conditions=conditions,
        time=START + timedelta(days=number),
        run=hashlib.sha256(f"run {number}".encode()).hexdigest(),
        source=source,
        commit=hashlib.sha1(f"{number}".encode()).hexdigest(),
        block_medians=tuple(seconds * (1 + draw.gauss(0, 0.004)) for _ in range(8)),
    )
