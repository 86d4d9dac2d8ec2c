"""Targets on a real GPU: right results, one launch a call, nothing else in the profiled region."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from kernels.attention.ladder import RUNGS
from profkit.capture.correctness import Status
from profkit.capture.cuda_source import compile_kernel
from profkit.capture.target import load_target

torch = pytest.importorskip("torch", reason="targets need torch")

ROOT = Path(__file__).parent.parent.parent
TARGETS = ROOT / "targets"

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device"),
]


def run(command: list[str]) -> subprocess.CompletedProcess[str]:
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    environment.pop("CUBLAS_WORKSPACE_CONFIG", None)
    return subprocess.run(
        command, capture_output=True, text=True, env=environment, timeout=300, check=False
    )


@pytest.mark.parametrize("length", [1, 4, 65, 127, 512])
@pytest.mark.parametrize("dim", [64, 128])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("causal", [(), ("--causal",)])
def test_every_variant_is_right(length: int, dim: int, dtype: str, causal: tuple[str, ...]) -> None:
    sizes = ("--batch", "2", "--heads", "3", "--length", str(length), "--dim", str(dim))
    target = load_target(TARGETS / "sdpa_sweep.py", [*sizes, "--dtype", dtype, *causal])
    verdicts = {verdict.name: verdict for verdict in target.check("cuda")}
    for verdict in verdicts.values():
        assert verdict.status is not Status.failed, verdict
    for name in ("default", "math", "custom"):
        assert verdicts[name].status is Status.passed, verdicts[name]


@pytest.mark.parametrize("length", [1, 4, 65, 127, 512])
@pytest.mark.parametrize("dim", [64, 128])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("causal", [(), ("--causal",)])
def test_every_rung_is_right(length: int, dim: int, dtype: str, causal: tuple[str, ...]) -> None:
    sizes = ("--batch", "2", "--heads", "3", "--length", str(length), "--dim", str(dim))
    target = load_target(TARGETS / "attention_ladder.py", [*sizes, "--dtype", dtype, *causal])
    for verdict in target.check("cuda", names=[rung.name for rung in RUNGS]):
        assert verdict.status is Status.passed, verdict


@pytest.mark.parametrize("dim", [4, 40, 96])
def test_serial_kv_takes_other_head_dimensions(dim: int) -> None:
    sizes = ("--batch", "2", "--heads", "3", "--length", "200", "--dim", str(dim), "--causal")
    target = load_target(TARGETS / "sdpa_sweep.py", sizes)
    (verdict,) = target.check("cuda", names=["custom"])
    assert verdict.status is Status.passed, verdict


def test_matmul_is_right() -> None:
    target = load_target(TARGETS / "matmul.py", ["--m", "1000", "--n", "520", "--k", "2048"])
    assert {verdict.status for verdict in target.check("cuda")} == {Status.passed}


def test_a_kernel_runs_on_torchs_current_stream(tmp_path: Path) -> None:
    source = tmp_path / "add.cu"
    source.write_text(
        'extern "C" __global__ void add(float* x, int n, float by, bool twice) {\n'
        "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
        "  if (i < n) x[i] += twice ? 2 * by : by;\n"
        "}\n"
    )
    kernel = compile_kernel(source, "add")
    x = torch.zeros(1000, device="cuda")
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        torch.cuda._sleep(100_000_000)
        x += 1
        kernel.launch((4,), (256,), x, 999, 0.5, True)
        x *= 3
    stream.synchronize()
    assert x[:999].eq(6).all()
    assert x[999].item() == 3


def test_the_script_checks_all_variants_at_the_published_shape(tmp_path: Path) -> None:
    report = tmp_path / "check.json"
    script = str(TARGETS / "sdpa_s512.py")
    done = run([sys.executable, script, "--check", "--report", str(report)])
    assert done.returncode == 0, done.stderr
    found = json.loads(report.read_text())
    assert found["device"] == "cuda"
    assert {variant["status"] for variant in found["variants"]} == {"passed"}
    gpu = found["fingerprint"]["gpu"]
    assert gpu["uuid"].startswith("GPU-")
    assert gpu["name"]
    flags = found["fingerprint"]["flags"]
    assert not flags["tf32_matmul"]
    assert flags["deterministic_algorithms"]


def test_the_script_runs_by_itself() -> None:
    done = run([sys.executable, str(TARGETS / "sdpa_s512.py")])
    assert done.returncode == 0, done.stderr
    assert "is skipped" not in done.stderr


@pytest.mark.skipif(shutil.which("ncu") is None, reason="ncu is not installed")
def test_under_bare_ncu_each_variant_launches_its_kernels_and_no_others() -> None:
    script = str(TARGETS / "sdpa_s512.py")
    chosen = ["--variant", "flash", "--variant", "cudnn", "--variant", "custom"]
    metrics = ["--clock-control", "none", "--metrics", "gpu__time_duration.sum"]
    bare = ["ncu", "--profile-from-start", "off", "--nvtx", "--print-nvtx-rename", "kernel"]
    done = run([*bare, *metrics, "--csv", sys.executable, script, *chosen])
    if "ERR_NVGPUCTRPERM" in done.stdout or "LibraryNotLoaded" in done.stdout + done.stderr:
        pytest.skip("ncu may not read the counters here")
    assert done.returncode == 0, done.stdout + done.stderr
    rows = [line for line in done.stdout.splitlines() if "gpu__time_duration.sum" in line]
    assert len(rows) == 3, done.stdout
    assert "custom" in rows[-1]
