"""`profkit ceilings` where there is no GPU: one line that says so, and what may be asked."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT


def run(folder: Path, *arguments: str | Path, **environment: str) -> tuple[int, str, str]:
    """Without a GPU, whatever the machine has."""
    done = subprocess.run(
        [sys.executable, "-m", "profkit", "ceilings", *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": str(ROOT), "XDG_STATE_HOME": str(folder / "state"),
             "PROFKIT_LOCK_DIR": str(folder), "CUDA_VISIBLE_DEVICES": "-1", **environment},
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    return done.returncode, done.stdout, done.stderr


def test_without_a_gpu_it_says_so_in_one_line(tmp_path: Path) -> None:
    output = tmp_path / "ceilings.json"
    status, out, told = run(tmp_path, "--only", "dram", "-o", output)
    assert status == 4
    assert out == ""
    assert not output.exists()
    *progress, line = told.splitlines()
    assert line.startswith("profkit: ")
    assert "GPU" in line or "torch is not installed" in line
    assert all("start" in other for other in progress)
    assert not (tmp_path / "state").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--only", "gddr"), "--only 'gddr' is no roof; use dram, dram_read, l2, fp32"),
        (("--format", "html"), "'html' is not one of"),
        (("--gpu", "-1"), "greater than or equal to 0"),
    ],
)
def test_wrong_usage_is_one_line(tmp_path: Path, arguments: tuple[str, ...], message: str) -> None:
    status, out, told = run(tmp_path, *arguments)
    assert (status, out) == (2, "")
    assert message in told
    assert told.count("\n") == 1


def test_a_gpu_that_is_not_there_and_one_that_can_not_be_reached(tmp_path: Path) -> None:
    stand_in = str(ROOT / "tests" / "stand_in" / "nvml")
    paths = f"{ROOT}:{stand_in}"
    status, _, told = run(tmp_path, "--gpu", "7", PYTHONPATH=paths)
    assert (status, told) == (4, "profkit: no GPU 7; there are 2\n")
    status, _, told = run(tmp_path, "--gpu", "1", PYTHONPATH=paths, STAND_IN_LOST_GPU="1")
    assert status == 4
    assert told.startswith("profkit: GPU 1 can't be reached (GPU is lost)")
    status, _, told = run(tmp_path, PYTHONPATH=paths)
    assert status == 4
    assert told.startswith("profkit: CUDA_VISIBLE_DEVICES hides every GPU; unset it")
