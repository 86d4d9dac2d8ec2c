"""A call recorded with a stand-in for ncu: attached, in a child process, too late to attach."""

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
from tests.callables.made_gpu import make_driver, make_injection, needs_compiler
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
print(json.dumps([run.verdict, run.recorded_by, list(run.notes), len(run.kernels),
                  run.checklist().findings != (), str(run.recording.folder)]))
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

    def run(code: str, *, newer: bool = False, mode: str = "good", **variables: str) -> Any:
        plan = {"mode": mode, "report": str(report), "newer": newer}
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
                "MADE_LOG": str(tmp_path / "calls.log"),
                **variables,
            },
            capture_output=True,
            text=True,
            check=False,
        )

    return run


def shown(done: subprocess.CompletedProcess[str]) -> Any:
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_an_old_ncu_records_a_child_process(script: Callable[..., Any], tmp_path: Path) -> None:
    pytest.importorskip("cloudpickle", reason="functions of a script are passed by value")
    done = script("run = profkit.profile(plus_one, x, reference=x + 1, ncu=True, **QUICK)")
    verdict, mode, notes, kernels, findings, folder = shown(done)
    assert (verdict, mode, kernels, findings) == ("PASSED", "child process", 1, True)
    assert "ncu 2025.3.1 can't attach here, 2026.2.1 and newer can" in notes[-1]
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
    assert shown(script(code))[1] == "child process"
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


@needs_compiler
def test_ncu_attaches_around_one_call_if_its_library_saw_cuda_start(
    script: Callable[..., Any], tmp_path: Path
) -> None:
    """A decoration loads the library; a call that records, after CUDA has started, is too late."""
    make_injection(tmp_path / "tool")
    started = f"import ctypes; ctypes.CDLL({str(make_driver(tmp_path))!r})\n"
    early = "decorated = profkit.profile(plus_one, ncu=True, device='cpu', **QUICK)\n"
    done = script(f"{early}{started}run = decorated(x)", newer=True)
    verdict, mode, notes, kernels, _, folder = shown(done)
    assert (verdict, mode, notes, kernels) == ("UNCHECKED", "attach", [], 1)
    options, program, _ = json.loads((tmp_path / "tool/ncu_seen.json").read_text("utf-8"))
    assert options["--mode"] == "attach"
    assert options["--process-id"].isdigit()
    assert program == ["true"]
    assert {"--target-processes", "--profile-from-start"}.isdisjoint(options)
    assert (tmp_path / "calls.log").read_text("utf-8").endswith("call\nbegin\ncall\nend\n")
    assert verify(tmp_path / folder).target == "plus_one"

    (tmp_path / "calls.log").unlink()
    refused = script(f"{early}{started}run = decorated(x)", newer=True, mode="driver")
    assert "the driver is too old" in refused.stderr.splitlines()[-1]
    assert (tmp_path / "calls.log").read_text("utf-8").endswith("call\nbegin\nend\n")

    late = f"{started}run = profkit.profile(plus_one, x, ncu=True, device='cpu', **QUICK)"
    _, mode, notes, *_ = shown(script(late, newer=True))
    assert mode == "child process"
    assert "used CUDA before ncu's injection library was loaded: set PROFKIT_ATTACH=1" in notes[-1]


@needs_compiler
def test_a_library_that_refuses_leaves_the_child_process(
    script: Callable[..., Any], tmp_path: Path
) -> None:
    make_injection(tmp_path / "tool")
    code = "run = profkit.profile(plus_one, x, ncu=True, **QUICK)"
    done = script(code, newer=True, PROFKIT_ATTACH="1", MADE_STATUS="3")
    _, mode, notes, *_ = shown(done)
    assert mode == "child process"
    assert "CUDA started before the library" in notes[-1]
    _, _, environment = json.loads((tmp_path / "tool/ncu_seen.json").read_text("utf-8"))
    assert "PROFKIT_ATTACH" not in environment
