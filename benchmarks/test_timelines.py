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


@pytest.mark.parametrize(
    "words", [["analyze"], ["timeline"], ["timeline", "--perfetto"]], ids=" ".join
)
def test_a_long_timeline(timeline: Path, words: list[str], tmp_path: Path) -> None:
    verb, *options = words
    trace = tmp_path / "long.pftrace"
    command = [verb, str(timeline), *options, *([str(trace)] if options else [])]
    before = sum(os.times()[2:4])
    figures = run((sys.executable, "-m", "profkit", *command))
    seconds = sum(os.times()[2:4]) - before
    size = f"{timeline.stat().st_size / 1e9:.2f} GB"
    if options:
        size += f", a trace of {trace.stat().st_size / 1e6:.0f} MB"
    print(
        f"\n{' '.join(words)}, {size}: {figures[WALL]:.1f} s ({seconds:.1f} s of CPU time), "
        f"{figures[PEAK] / 1e3:.0f} MB at most"
    )
