"""Something is printed where reading takes long, on a terminal and elsewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from profkit.ui import progress
from tests.conftest import H200, Cli


def test_a_folder_of_reports_says_once_that_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, profkit_cli: Cli
) -> None:
    for number in range(3):
        (tmp_path / f"{number}.ncu-repz").symlink_to(H200 / "sdpa_s512_flash_two_metrics.ncu-repz")
    monkeypatch.setattr(progress, "_SHOWN_AFTER", 0.0)
    result = profkit_cli("analyze", tmp_path)
    assert re.fullmatch(r" +\d+\.\d s  reading\n", result.stderr)
