"""A call recorded with a stand-in for ncu, in a child process."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from profkit.runs.run import verify
from tests.conftest import ROOT, plain_bytes, recorded_report

pytest.importorskip("torch", reason="tensors need torch")

SCRIPT = """
import json, os, sys, threading, numpy
import profkit
QUICK = dict(warmup_ms=1, samples=16, blocks=2, out="runs")
with open("starts.txt", "a") as file:
    file.write("start\\n")
kernel = threading.Lock()  # as compiled kernels are, no value that could be passed
def plus_one(x):
    with open("calls.log", "a") as log: log.write("call\\n")
    return x + 1
def with_kernel(x):
    with kernel:
        return plus_one(x)
x = numpy.zeros(4)
"""
SHOW = """
print(json.dumps([run.verdict, list(run.notes), len(run.kernels),
                  run.checklist().findings != (), str(run.recording)]))
"""


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Run a script that records, in a folder with a stand-in for ncu; what it shows."""
    folder = tmp_path / "tool"
    folder.mkdir()
    shutil.copy(ROOT / "tests" / "stand_in" / "ncu", folder / "ncu")
    report = folder / "recorded.ncu-rep"
    report.write_bytes(plain_bytes("sdpa_s512_flash_set_basic"))
    shutil.copy(recorded_report("sdpa_s512_flash_set_basic"), report.with_suffix(".ncu-repz"))
    monkeypatch.chdir(tmp_path)

    def run(code: str) -> Any:
        plan = {"mode": "good", "report": str(report)}
        (folder / "stand_in.json").write_text(json.dumps(plan), encoding="utf-8")
        (tmp_path / "program.py").write_text(
            SCRIPT + textwrap.dedent(code) + SHOW, encoding="utf-8"
        )
        return subprocess.run(
            [sys.executable, "program.py"],
            env={
                **os.environ,
                "PROFKIT_NCU": str(folder / "ncu"),
                "PROFKIT_LOCK_DIR": str(tmp_path),
                "PYTHONPATH": str(ROOT),
            },
            capture_output=True,
            text=True,
            check=False,
        )

    return run


def shown(done: subprocess.CompletedProcess[str]) -> Any:
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_ncu_records_a_child_process(script: Callable[..., Any], tmp_path: Path) -> None:
    pytest.importorskip("cloudpickle", reason="functions of a script are passed by value")
    done = script("run = profkit.profile(plus_one, x, reference=x + 1, ncu=True, **QUICK)")
    verdict, _, kernels, findings, folder = shown(done)
    assert (verdict, kernels, findings) == ("PASSED", 1, True)
    manifest = verify(tmp_path / folder)
    assert manifest.target == "plus_one"
    options, program, _ = json.loads((tmp_path / "tool/ncu_seen.json").read_text("utf-8"))
    assert options["--profile-from-start"] == "off"
    assert Path(program[-1]).name == "plus_one.py"
    assert (tmp_path / "starts.txt").read_text("utf-8") == "start\n"  # the script itself alone


def test_what_has_no_value_is_found_by_running_the_script_until_it_measures(
    script: Callable[..., Any], tmp_path: Path
) -> None:
    code = """
    run = profkit.profile(with_kernel, x, ncu=True, **QUICK)
    with open("after.txt", "a") as file:
        file.write("after\\n")
    """
    assert shown(script(code))[2] == 1
    assert (tmp_path / "starts.txt").read_text("utf-8") == "start\n" * 2
    assert (tmp_path / "after.txt").read_text("utf-8") == "after\n"


def test_what_can_not_be_passed_is_one_line(script: Callable[..., Any]) -> None:
    done = script("run = profkit.profile(lambda x: kernel.locked() or x, x, ncu=True, **QUICK)")
    assert "lambda can't be passed to a child process: " in done.stderr.splitlines()[-1]
    assert "define it at the top level" in done.stderr.splitlines()[-1]


def test_a_call_that_fails_in_the_child_is_said(script: Callable[..., Any]) -> None:
    code = """
    def here_alone(x, process=os.getpid()):
        if os.getpid() != process: raise RuntimeError("its own words")
        return x
    run = profkit.profile(here_alone, x, ncu=True, **QUICK)
    """
    done = script(code)
    assert "its own words" in done.stderr.splitlines()[-1]
