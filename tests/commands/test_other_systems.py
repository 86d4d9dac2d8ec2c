"""Reading where NVIDIA's reader is missing, and what only Linux has: Windows, other processors."""

from __future__ import annotations

import gc
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.conftest import ROOT, Cli, baseline_folder, needs_reader, pair_report

PROGRAM = ROOT / "tests" / "stand_in" / "other_system.py"
REASON = "machine code and source lines are not available: NVIDIA's reader (ncu-report) is not"

pytestmark = [pytest.mark.usefixtures("new_processes"), needs_reader]


def outcomes(folder: Path, *lines: str) -> list[tuple[int, str, str]]:
    """Exit code, output and errors of each command line, in one process."""
    done = subprocess.run(
        [sys.executable, PROGRAM, *lines],
        cwd=folder, env={"PYTHONPATH": str(ROOT), "PATH": "", "HOME": str(folder)},
        capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return [tuple(each) for each in json.loads(done.stdout)]


def test_reports_are_read_and_what_needs_machine_code_is_named(
    tmp_path: Path, profkit_cli: Cli
) -> None:
    before, after = (pair_report("transpose_conflicts", side) for side in ("before", "after"))
    results = outcomes(
        tmp_path,
        f"analyze {before} --format json",
        f"analyze {before} {after}",
        f"checklist {before}",
        f"source {before}",
        f"diff {before} {after}",
        f"report {before} -o page.html",
        f"metrics {before} --all",
        f"roofline {before}",
        f"rules explain shared_bank_conflicts --on {before}",
    )
    assert [code for code, _, _ in results] == [0] * len(results)
    document = json.loads(results[0][1])
    assert document["checklist"][0]["rule"] == "shared_bank_conflicts"
    (kernel,) = document["kernels"]
    (expected,) = json.loads(profkit_cli("analyze", before, "--format", "json").stdout)["kernels"]
    assert kernel["duration_s"] == expected["duration_s"]
    known = {name: value for name, value in kernel["metrics"].items() if value is not None}
    assert len(known) > 100
    assert known == {name: expected["metrics"][name] for name in known}
    words = [" ".join(f"{out} {error}".split()) for _, out, error in results]
    assert all(REASON in words[index] for index in (1, 2, 3, 4))
    assert "-lineinfo" not in words[3]  # it would not help
    assert "+0x0270 25.0%" in words[2]
    assert REASON in (tmp_path / "page.html").read_text("utf-8")
    assert "units unknown (NVIDIA's reader (ncu-report) is not installed here)" in words[6]


def test_latencies_baselines_and_timelines_are_read(tmp_path: Path) -> None:
    timing, recorded = ROOT / "reports" / "h200" / "timing", ROOT / "reports" / "h200"
    results = outcomes(
        tmp_path,
        f"time --from {timing}/flash_cudnn.json --compare flash,cudnn",
        f"compare {timing}/flash_cudnn.json {timing}/sdpa_s512.json",
        f"timeline {recorded}/sdpa_s512_flash.sqlite",
        f"baseline status {baseline_folder('l4_study')}",
        f"baseline report {baseline_folder('l4_study')} -o report.md",
        f"history list --store {recorded}/history",
        f"audit {ROOT}/tests/data/claims/heldout.yaml",
    )
    assert "IMPROVED" in results[0][1]
    assert [code for code, _, _ in results] == [0, 3, 0, 0, 0, 0, 1], results


def test_without_proc_machine_code_is_read_from_a_file_that_goes(
    tmp_path: Path, profkit_cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    report = pair_report("transpose_conflicts", "before")
    usual = profkit_cli("source", report, "--sass").stdout
    monkeypatch.setattr("profkit.report.memory._DESCRIPTORS", tmp_path / "none")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert profkit_cli("source", report, "--sass").stdout == usual
    assert "STS" in usual
    gc.collect()
    assert not list(tmp_path.iterdir())
