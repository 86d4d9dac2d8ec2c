"""Measured roofs on a real GPU: every load is right, and reaches what the chip can do."""

from __future__ import annotations

import ctypes
import json
import math
import os
import subprocess
import sys
from typing import Any

import pytest

from tests.conftest import ROOT

pytestmark = pytest.mark.gpu
torch = pytest.importorskip("torch", reason="loads are launched on torch's tensors")
if not torch.cuda.is_available():
    pytest.skip("no CUDA device", allow_module_level=True)

from profkit.calibration.ceilings import LABELS, read_ceilings  # noqa: E402
from profkit.calibration.loads import loads  # noqa: E402
from profkit.calibration.loads.counts import Machine  # noqa: E402
from profkit.capture.cuda_source import compile_kernel  # noqa: E402
from profkit.capture.target import Unsupported  # noqa: E402

KERNELS = ROOT / "profkit" / "calibration" / "loads"
PLAUSIBLE = (0.55, 1.0)  # of the datasheet's peak
FAR_FROM_ITS_PEAK = {"tensor_int8": 0.4}  # torch._int_mm is not the fastest that could be written


@pytest.fixture(scope="module")
def document(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("ceilings")
    output = folder / "ceilings.json"
    done = subprocess.run(
        [sys.executable, "-m", "profkit", "ceilings", "-o", str(output)],
        env={**os.environ, "PYTHONPATH": f"{ROOT}:{os.environ.get('PYTHONPATH', '')}",
             "XDG_STATE_HOME": str(folder)},
        capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (kept,) = (folder / "profkit" / "ceilings").glob("*.json")
    return json.loads(output.read_text("utf-8")), read_ceilings(output), read_ceilings(kept)


def machine() -> Machine:
    told = torch.cuda.get_device_properties(0)
    return Machine(
        (told.major, told.minor), told.multi_processor_count, told.L2_cache_size, told.total_memory
    )


def test_every_roof_is_measured_and_possible(document: Any) -> None:
    told, measured, kept = document
    assert told["seconds"] < 60
    assert set(measured.rates) | set(measured.left_out) == set(LABELS)
    for one in measured.rates.values():
        assert one.problem == "", one
        if not math.isnan(one.low):
            assert one.low <= one.rate <= one.high
            assert (one.high - one.low) / one.rate < 0.05
        assert one.sm_clock > 0
        assert 0 < one.steady <= one.rate * 1.02, one
        assert one.steady_clock > 0
        if not math.isnan(one.share) and not one.name.endswith("_mma_sync"):
            least = FAR_FROM_ITS_PEAK.get(one.name, PLAUSIBLE[0])
            assert least < one.share <= PLAUSIBLE[1], one
    assert set(kept.rates) == set(measured.rates)
    assert kept.plain == measured.plain


def test_the_roofs_of_an_h200(document: Any) -> None:
    _, measured, _ = document
    if measured.gpu.name != "NVIDIA H200":
        pytest.skip(f"this is a {measured.gpu.name}")
    rates = measured.rates
    assert 0.95 * 4.27e12 <= rates["dram"].rate <= 1.05 * 4.34e12
    assert 0.95 * 732e12 <= rates["tensor_fp16"].rate <= 1.05 * 798e12
    # mma.sync gets two thirds of what wgmma does, clock for clock.
    a_cycle = rates["tensor_fp16_mma_sync"].rate / rates["tensor_fp16_mma_sync"].sm_clock
    assert 0.85 <= a_cycle / (2 / 3 * 132 * 4096) <= 1.02
    assert rates["l2"].rate > 1.1 * rates["dram"].rate


@pytest.mark.parametrize("name", LABELS)
def test_a_load_computes_what_it_should(name: str) -> None:
    try:
        made = loads.loads(name, machine(), 7)
    except Unsupported as why:
        pytest.skip(str(why))
    for load in made:
        assert not load.right()
        load.call()
        torch.cuda.synchronize()
        assert load.right(), load.method
    del made, load
    torch.cuda.empty_cache()


@pytest.mark.parametrize("steps", [1, 100])
@pytest.mark.parametrize("real", ["float", "double"])
def test_multiply_adds_are_as_many_as_is_counted(real: str, steps: int) -> None:
    dtype, passed = (
        (torch.float32, ctypes.c_float) if real == "float" else (torch.float64, ctypes.c_double)
    )
    start = torch.randn(4 * 256 * 16, dtype=dtype, device="cuda")
    end = torch.empty_like(start)
    a, b, c, d = 1.015625, 0.5, 0.9921875, -0.25
    kernel = compile_kernel(KERNELS / "multiply_add.cu", "multiply_add", defines={"REAL": real})
    kernel.launch([4], [256], start, end, steps, *map(passed, (a, b, c, d)))
    k, m = a * c, b * c + d
    closed = k**steps * start.double() + m * (k**steps - 1) / (k - 1)
    torch.testing.assert_close(end.double(), closed, rtol=1e-4, atol=1e-4)
