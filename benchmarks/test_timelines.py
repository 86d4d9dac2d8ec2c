"""What a timeline of 1 GB costs, 5 million kernels and 10 million calls; printed, not asserted.

Asked: under 30 s and 2 GB. Every run is a process of its own, imports included.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from benchmarks.long_timeline import write
from benchmarks.test_cost import PEAK, WALL, run

KERNELS = 5_000_000


@pytest.fixture(scope="module")
def timeline(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("timeline") / "long.sqlite"
    write(path, KERNELS)
    return path


@pytest.mark.parametrize("verb", ["analyze", "timeline"])
def test_a_long_timeline(timeline: Path, verb: str) -> None:
    before = sum(os.times()[2:4])
    figures = run((sys.executable, "-m", "profkit", verb, str(timeline)))
    seconds = sum(os.times()[2:4]) - before
    print(
        f"\n{verb}, {timeline.stat().st_size / 1e9:.2f} GB: {figures[WALL]:.1f} s "
        f"({seconds:.1f} s of CPU time), {figures[PEAK] / 1e3:.0f} MB at most"
    )
