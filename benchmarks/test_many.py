"""What many launches cost: in one report, and in a folder of reports; printed, not asserted.

Asked: 10,000 lean launches in under 400 MB, time linear; a folder of reports likewise.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from benchmarks.lean_reports import write_lean
from benchmarks.test_cost import PEAK, WALL, run

LAUNCHES = (1_000, 10_000)
REPORTS = (200, 2_000)
ANALYZE = (sys.executable, "-m", "profkit", "analyze")


@pytest.mark.parametrize("launches", LAUNCHES)
def test_launches_of_a_report(tmp_path: Path, launches: int) -> None:
    write_lean(tmp_path / "lean.ncu-repz", launches)
    show(f"{launches:,} launches", tmp_path / "lean.ncu-repz")


@pytest.mark.parametrize("reports", REPORTS)
def test_reports_of_a_folder(tmp_path: Path, reports: int) -> None:
    write_lean(tmp_path / "0.ncu-repz", 5)
    for number in range(1, reports):
        shutil.copy(tmp_path / "0.ncu-repz", tmp_path / f"{number}.ncu-repz")
    show(f"{reports:,} reports", tmp_path)


def show(name: str, path: Path) -> None:
    figures = run((*ANALYZE, str(path)))
    print(f"\n{name}: {figures[WALL]:.1f} s, {figures[PEAK] / 1e3:.0f} MB at most")
