"""The headroom of kernels, by hand and on the recorded pairs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import profkit
from profkit.report.floors import LAUNCH
from profkit.rules.engine import diagnose
from profkit.rules.finding_text import HEADROOM, NEEDED
from profkit.rules.headroom import ARITHMETIC, headroom
from tests.conftest import pair_report
from tests.rules.test_engine import own, report


def of(**values: float) -> tuple[float, float, str]:
    (group,) = report([values]).groups
    made = headroom(group, 1.0)
    return made.factor, made.seconds, made.floor


def test_a_kernel_needs_its_bytes_at_the_rate_that_dram_reaches() -> None:
    factor, seconds, floor = of(duration=1e-3, dram_busy=0.475)
    assert (factor, seconds) == pytest.approx((2, 5e-4))
    assert floor == "DRAM"
    (group,) = report([{"duration": 1e-3, "dram_busy": 0.475}]).groups
    assert headroom(group, 0.25).factor == pytest.approx(8)


@pytest.mark.parametrize("legend", [HEADROOM, NEEDED])
def test_a_legend_has_the_share_that_a_reader_needs_to_compute_it(legend: str) -> None:
    tensor = {"flop_tensor": 4.7e9, "peak_rate_tensor_fp16": 1e13}
    for kind, values in {"DRAM": {"dram_busy": 0.47}, "tensor": tensor}.items():
        (percent,) = re.findall(rf"{kind} [^()]*?\(?at (\d+)%", legend)[:1]
        factor, *_ = of(duration=1e-3, **values)
        assert factor == pytest.approx(int(percent) / 47), kind


def test_arithmetic_needs_the_fastest_unit_for_it() -> None:
    """0.4 GFLOP of multiply-adds and 0.2 of additions at 1 TFLOP/s, or at 94% of 10 TFLOP/s."""
    flop = {"flop_fp32": 6e8, "fp32_fused": 4e8, "flop_fp64": 0.0, "flop_fp16": 0.0}
    rates = {"peak_rate_fp32": 1e12, "peak_rate_tensor_fp16": 1e13, "flop_tensor": 0.0}
    values = {"duration": 2.4e-3, "dram_busy": 0.01, **flop, **rates}
    factor, seconds, floor = of(**values)
    assert floor == ARITHMETIC
    assert seconds == pytest.approx(6e8 / 1e12)
    assert factor == pytest.approx(2.4e-3 / seconds)
    (group,) = report([values]).groups
    on_tensor_cores = headroom(group, 1.0, fits_tensor_cores=True)
    assert on_tensor_cores.seconds == pytest.approx(2e8 / 1e12)  # products beside it: 4e8 / 9.4e12
    assert headroom(group, 1.0, 0.5).seconds == pytest.approx(3e8 / 1e12)


def test_integers_on_tensor_cores_take_their_time() -> None:
    """1.08 TOP at 94% of 200 TOP/s; where they were not counted, the time that the pipe is busy."""
    int8 = {"ops_tensor_int8": 1.08e12, "peak_rate_tensor_int8": 2e14}
    factor, seconds, floor = of(duration=9e-3, dram_busy=0.01, flop_tensor=0.0, **int8)
    assert floor == ARITHMETIC
    assert seconds == pytest.approx(1.08e12 / (0.94 * 2e14))
    assert factor == pytest.approx(9e-3 / seconds)
    assert of(duration=9e-3, dram_busy=0.01, tensor_busy=0.47)[0] == pytest.approx(2)


def test_a_launch_takes_its_time() -> None:
    factor, seconds, floor = of(duration=4e-6, dram_busy=0.1)
    assert (factor, seconds) == pytest.approx((4 / 1.4, 1.4e-6))
    assert floor == LAUNCH
    assert of(duration=1e-6, dram_busy=0.1)[0] == 1


@pytest.mark.parametrize(
    "pair", ["transpose_conflicts", "tail_effect", "register_spills", "atomics_global", "ffma_gemm"]
)
def test_no_estimate_exceeds_the_headroom(pair: str) -> None:
    for side in ("before", "after"):
        checklist = profkit.load(pair_report(pair, side)).checklist()
        assert checklist.headrooms
        for item in checklist.items:
            estimate, group = item.estimate, item.group
            assert estimate
            assert group
            most = checklist.headroom_of(group)
            assert most
            if item.rule.spans == "kernel":
                assert estimate.low <= estimate.likely <= most.factor * (1 + 1e-9)
                # what moves fewer bytes goes beyond the least time of those that were recorded
                moves = "dram_busy" in item.rule.relieves
                assert moves or estimate.likely <= estimate.high <= most.factor * (1 + 1e-9)


@pytest.mark.parametrize(
    ("fix", "flop"),
    [("relieves: {fma_busy: 0.25}", 8e8), ("relieves: {fma_busy: 0.25}\n  flop: 0.5", 4e8)],
)
def test_slots_of_the_fma_pipe_are_no_flop(tmp_path: Path, fix: str, flop: float) -> None:
    """Divergent lanes and index arithmetic take slots; `flop` alone says that FLOP are needless."""
    rule = own(tmp_path, when="fma_busy > 0", gives=fix)
    values = {"flop_fp32": 8e8, "fp32_fused": 0.0, "flop_fp64": 0.0, "flop_tensor": 0.0}
    rates = {"peak_rate_fp32": 1e12, "fma_busy": 0.9, "dram_busy": 0.05}
    busy = {"l2_busy": 0.1, "l1_busy": 0.1, "issue_busy": 0.1}
    summary = report([{"duration": 4e-3, **values, **rates, **busy}])
    (made,) = diagnose(summary, [rule]).headrooms.values()
    assert made.floor == ARITHMETIC
    assert made.seconds == pytest.approx(flop / 1e12)


def test_a_saving_ends_at_the_headroom(tmp_path: Path) -> None:
    rule = own(tmp_path, when="stall_wait > 1", gives="time: 0.1")
    values = {"stall_wait": 2.0, "l2_busy": 0.1, "l1_busy": 0.1, "issue_busy": 0.1}
    for busy, likely in ((0.475, 2 * 0.87), (0.94, None)):
        summary = report([{"duration": 1e-3, "dram_busy": busy, **values}])
        findings = diagnose(summary, [rule]).findings
        assert bool(findings) == (likely is not None)
        for finding in findings:
            assert finding.estimate
            assert finding.estimate.likely == pytest.approx(likely)
            assert finding.saved == pytest.approx(1e-3 * (1 - 1 / finding.estimate.likely))
