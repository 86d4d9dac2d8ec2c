"""`profkit ceilings` without a GPU: its output, and how measurements of a GPU are used."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest
from typer.testing import Result

from profkit.calibration.ceilings import LABELS, find_ceilings
from profkit.core.fingerprint import Device
from tests.conftest import ROOT, Cli


def run(folder: Path, *arguments: str | Path, **environment: str) -> tuple[int, str, str]:
    """Without a GPU, whatever the machine has."""
    done = subprocess.run(
        [sys.executable, "-m", "profkit", "ceilings", *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": str(ROOT), "XDG_STATE_HOME": str(folder / "state"),
             "PROFKIT_LOCK_DIR": str(folder), "CUDA_VISIBLE_DEVICES": "-1", **environment},
        capture_output=True, text=True, check=False, timeout=600,
    )  # fmt: skip
    return done.returncode, done.stdout, done.stderr


def test_without_a_gpu_it_says_so_in_one_line(tmp_path: Path) -> None:
    output = tmp_path / "ceilings.json"
    status, out, told = run(tmp_path, "-o", output)
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


# ---- With a process that answers as the one on a GPU does


@pytest.fixture
def made_h200(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, profkit_cli: Cli) -> Cli:
    monkeypatch.setattr(
        "profkit.calibration.ceiling_measurement._WORKER", "tests.stand_in.ceilings_worker"
    )
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("PROFKIT_LOCK_DIR", str(tmp_path))

    def measure(*names: str, output: Path | None = None, status: int = 0) -> Result:
        known = {name: label for name, label in LABELS.items() if name in names}
        monkeypatch.setattr("profkit.calibration.ceiling_measurement.LABELS", known)
        return profkit_cli("ceilings", *(["-o", output] if output else []), status=status)

    return measure


def test_what_was_measured_is_written_and_kept(tmp_path: Path, made_h200: Cli) -> None:
    output = tmp_path / "ceilings.json"
    done = made_h200("dram", "l2", "fp32", "tensor_fp16", "tensor_fp8", output=output)
    assert done.stdout == ""
    told = json.loads(output.read_text(encoding="utf-8"))
    schema = ROOT / "profkit" / "schemas" / "ceilings.json"
    jsonschema.validate(told, json.loads(schema.read_text(encoding="utf-8")))
    assert told["left_out"] == {"tensor_fp8": "its tensor cores have no such type"}
    rows = {row["name"]: row for row in told["ceilings"]}
    assert list(rows) == ["dram", "l2", "fp32", "tensor_fp16"]
    assert rows["dram"]["rate"] == pytest.approx(4.3e12)
    assert rows["dram"]["how"] == "way 1 (fastest of 2 methods)"
    assert rows["dram"]["share"] == pytest.approx(4.3 / 4.8)
    assert (rows["dram"]["sm_clock"], rows["dram"]["throttled_by"]) == (1.98e9, [])
    assert rows["dram"]["steady"] == pytest.approx(0.9 * 4.3e12)
    assert (rows["dram"]["steady_clock"], rows["dram"]["steady_power"]) == (1.7e9, 690.0)
    assert rows["dram"]["steady_throttled_by"] == ["software power cap"]
    # 4.2 TB/s are less than DRAM gave, and 1.2 PFLOP/s more than the chip has.
    assert "did not stay in L2" in rows["l2"]["problem"]
    assert "the operation count is wrong" in rows["tensor_fp16"]["problem"]
    assert set(find_ceilings(Device(name="NVIDIA H200")).rates) == {"dram", "fp32"}


def test_a_load_with_a_wrong_result_ends_it(made_h200: Cli) -> None:
    done = made_h200("dram", "fp64", status=6)
    assert "wrong result from multiply_add.cu; no rate of it can be believed" in done.stderr


def test_where_no_roof_can_be_measured_it_says_why(made_h200: Cli) -> None:
    done = made_h200("tensor_fp8", "tensor_int8", status=4)
    assert "no ceiling can be measured here: its tensor cores have no such type;" in done.stderr
