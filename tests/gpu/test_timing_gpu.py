"""Timing on a real GPU: what the timers agree on, what they refuse, a difference that is known."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT

pytestmark = pytest.mark.gpu
torch = pytest.importorskip("torch", reason="targets need torch")
if not torch.cuda.is_available():
    pytest.skip("no CUDA device", allow_module_level=True)

DELAY = ROOT / "targets" / "delay.py"
MATMUL = ROOT / "targets" / "matmul.py"
ODD = """
import torch
from profkit import Target, Variant, normal_inputs

streams = []

def side(inputs):
    if not streams:
        streams.append(torch.cuda.Stream())
    with torch.cuda.stream(streams[0]):
        torch.cuda._sleep(200_000)
    return inputs["a"]

def allocates(inputs):
    torch.cuda.empty_cache()
    torch.empty(64 << 20, device="cuda")
    return inputs["a"] + 0

def waits(inputs):
    result = inputs["a"] + 0
    torch.cuda.synchronize()
    return result

target = Target(
    name="odd", shapes={"n": 1 << 20}, dtype="float32",
    inputs=lambda device, seed: normal_inputs(device, seed, "float32", a=(1 << 20,)),
    reference=lambda inputs: inputs["a"] + 0,
    variants=[
        Variant("nothing", lambda inputs: inputs["a"]), Variant("side", side),
        Variant("allocates", allocates), Variant("waits", waits),
    ],
)
"""


def run(folder: Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "profkit", *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": f"{ROOT}:{os.environ.get('PYTHONPATH', '')}",
             "XDG_STATE_HOME": str(folder)},
        capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip


def document(folder: Path, *arguments: str | Path) -> Any:
    done = run(folder, "time", "--format", "json", *arguments)
    assert done.returncode in {0, 3}, done.stderr
    return json.loads(done.stdout)


def test_a_known_difference_is_found_and_no_other(tmp_path: Path) -> None:
    told = document(tmp_path, DELAY, "--compare", "base,five_percent,two_percent")
    five, two = told["comparisons"]
    assert five["verdict"] == "regressed"
    assert 1 / five["speedup"] == pytest.approx(1.05, abs=0.005)
    assert two["verdict"] == "regressed"
    assert 1 / two["speedup"] == pytest.approx(1.02, abs=0.005)
    same = document(tmp_path, "--compare", f"{DELAY}:base", f"{DELAY}:base")
    assert same["comparisons"][0]["verdict"] == "same"


def test_a_wait_of_known_cycles_took_as_many_at_the_counted_clock(tmp_path: Path) -> None:
    (series,) = document(tmp_path, f"{DELAY}:base")["series"]
    clocks = [block["sm_clock"] for block in series["blocks"]]
    assert all(clocks)
    waited = series["statistics"]["median"] - series["ready"]["empty"]
    cycles = series["target"]["shapes"]["cycles"]
    assert 1 <= waited * sum(clocks) / len(clocks) / cycles <= 1.06


def test_timers_agree_but_for_what_launching_costs(tmp_path: Path) -> None:
    """On a kernel that waits: one near the power cap runs faster where the timer leaves gaps."""
    medians = {}
    for timer in ("events", "graph", "cupti"):
        told = document(tmp_path, f"{DELAY}:base", "--timer", timer, "--samples", "60")
        medians[timer] = told["series"][0]["statistics"]["median"]
    assert medians["cupti"] < medians["events"] < medians["cupti"] + 8e-6
    assert medians["graph"] == pytest.approx(medians["events"], rel=0.05)


def test_small_work_is_faster_with_a_warm_cache(tmp_path: Path) -> None:
    small = (f"{MATMUL}:matmul", "--", "--m", "512", "--n", "512", "--k", "512")
    cold = document(tmp_path, "--cache", "cold", *small)
    warm = document(tmp_path, "--cache", "warm", *small)
    medians = [told["series"][0]["statistics"]["median"] for told in (cold, warm)]
    assert medians[1] < medians[0]


@pytest.mark.parametrize(
    ("variant", "words"),
    [
        ("nothing", "a call launches no kernel"),
        ("side", "it runs on another stream, which is not timed"),
        ("allocates", "device memory is allocated in the timed region"),
    ],
)
def test_what_can_not_be_timed_is_refused(tmp_path: Path, variant: str, words: str) -> None:
    file = tmp_path / "odd.py"
    file.write_text(ODD, encoding="utf-8")
    done = run(tmp_path, "time", f"{file}:{variant}")
    assert done.returncode == 6, done.stdout
    assert words in done.stderr


def test_a_call_that_synchronizes_with_the_gpu_is_reported(tmp_path: Path) -> None:
    file = tmp_path / "odd.py"
    file.write_text(ODD, encoding="utf-8")
    done = run(tmp_path, "time", f"{file}:waits")
    assert done.returncode == 0, done.stderr
    assert "a call synchronizes with the GPU" in done.stdout


def test_blocks_record_the_state_of_the_gpu(tmp_path: Path) -> None:
    told = document(tmp_path, f"{DELAY}:base")
    for block in told["series"][0]["blocks"]:
        assert block["gpu"]["sm_clock"] > 1e8
        assert block["gpu"]["temperature"] > 0
    ready = told["series"][0]["ready"]
    assert 0 < ready["empty"] < 1e-5
    assert ready["flush"] > 0
    assert ready["memory"]["peak_allocated"] > 0


def test_a_calibration_finds_no_false_difference(tmp_path: Path) -> None:
    done = run(tmp_path, "calibrate", "--comparisons", "30", "--processes", "1", "--format", "json")
    assert done.returncode == 0, done.stderr
    verdicts = json.loads(done.stdout)["within_process"]["verdicts"]
    assert verdicts.get("REGRESSED", 0) + verdicts.get("IMPROVED", 0) == 0
