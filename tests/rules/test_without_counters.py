"""What is known without counters: that none is read, what shows, headroom by declared work."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from profkit.hardware.gpus import Gpu, gpu_of
from profkit.report.catalog import catalog
from profkit.report.counter_free import counter_free, is_counter
from profkit.report.launch_message import LaunchMessage, Metric
from profkit.report.quantities import request
from profkit.report.reader import read
from profkit.rules.code_signs import PARTS, factors, part_of, signs
from profkit.rules.declared_headroom import DeclaredWork, declared_headroom
from profkit.rules.headroom import ARITHMETIC
from profkit.rules.outlook import Call, Outlook, outlook_of_launches
from profkit.rules.samples import CODE, LAUNCHED
from tests.conftest import H200, pair_report

PAIRS = H200 / "pairs"
_READ = LaunchMessage.metric_by_name


class CounterRead(Exception):
    """A counter was read where counters are locked."""


@pytest.fixture
def locked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counters, samples and the results of ncu's rules raise when they are read."""

    def metric_by_name(message: LaunchMessage, name: str) -> Metric | None:
        if name and is_counter(name):
            raise CounterRead(name)
        return _READ(message, name)

    def rules(_: LaunchMessage) -> tuple[bytes, ...]:
        return (b"not to be decoded",)

    monkeypatch.setattr(LaunchMessage, "metric_by_name", metric_by_name)
    monkeypatch.setattr(LaunchMessage, "rules", rules)


def outlook(name: str) -> Outlook:
    """A recorded defect without its counters and without declared work."""
    return outlook_of_launches(counter_free(PAIRS / name / "before.ncu-repz"), {})


@pytest.mark.usefixtures("locked")
@pytest.mark.parametrize(
    ("pair", "category", "source"),
    [
        ("transpose_conflicts", "shared_bank_conflicts", "code"),
        ("stray_double", "fp64_in_use", "code"),
        ("grid_too_small", "grid_too_small", "launch"),
        ("tail_effect", "tail_effect", "launch"),
    ],
)
def test_planted_defects_show_without_a_counter(pair: str, category: str, source: str) -> None:
    first = outlook(pair).findings[0]
    assert first.category == category
    assert source in first.sources
    assert first.actions


@pytest.mark.usefixtures("locked")
def test_the_lock_holds_against_what_the_full_analysis_reads() -> None:
    with pytest.raises(CounterRead):
        read(PAIRS / "transpose_conflicts" / "before.ncu-repz", request())


@pytest.mark.parametrize(
    ("metric", "counted"),
    [
        ("launch__registers_per_thread", False),
        ("device__attribute_multiprocessor_count", False),
        ("gpu__time_duration.sum", False),
        ("dram__bytes.sum", True),
        ("sm__maximum_warps_per_active_cycle_pct", True),
        ("smsp__pcsamp_sample_buffer_full", True),
        ("inst_executed", True),
    ],
)
def test_what_takes_a_counter(metric: str, counted: bool) -> None:
    assert is_counter(metric) is counted


def test_signs_name_only_what_needs_no_counter() -> None:
    launch = {entry.name for entry in catalog().group("launch")}
    limits = {f"occupancy_limit_{name}" for name in ("registers", "shared", "warps", "blocks")}
    known = {*CODE, *LAUNCHED, *launch, *limits, "sm_count"}
    for sign in signs():
        assert {*sign.weight.names, *sign.shows} <= known, sign.rule.name
        assert not known.intersection(sign.counters), sign.rule.name


def test_a_family_is_scored_by_factors_fitted_without_it() -> None:
    names = {sign.rule.name for sign in signs()}
    assert factors().keys() == names
    assert {frozenset(factors(f"family {number}")) for number in range(50)} == {frozenset(names)}
    assert {part_of(f"family {number}") for number in range(50)} == set(range(PARTS))


@pytest.fixture(scope="module")
def h200() -> Gpu:
    return counter_free_gpu(PAIRS / "control_copy" / "before.ncu-repz")


def counter_free_gpu(report: Path) -> Gpu:
    return gpu_of(counter_free(report).launches[0].device)


def test_headroom_is_the_declared_bytes_at_the_rate_that_kernels_reach(h200: Gpu) -> None:
    # 4.8 TB/s of the datasheet x 0.95 are 4.56 TB/s: 4.56 GB take 1 ms
    work = DeclaredWork(flop=1e9, bytes=4.56e9)
    headroom = declared_headroom(work, 4e-3, h200, unit="fp32")
    assert headroom
    assert headroom.factor == pytest.approx(4.0)
    assert headroom.floor == "DRAM"
    assert headroom.dram_share == pytest.approx(0.25)
    assert not headroom.fits_l2
    assert headroom.intensity == pytest.approx(1 / 4.56)
    assert headroom.rate == pytest.approx(1e9 / 4e-3)


def test_bytes_that_l2_holds_bound_no_calls_in_a_row(h200: Gpu) -> None:
    # 50 MB of L2 (NVIDIA H100 whitepaper); 45.6 MB take 10 µs from DRAM
    headroom = declared_headroom(DeclaredWork(bytes=45.6e6), 4e-5, h200, unit="fp32")
    assert headroom
    assert headroom.factor == pytest.approx(4.0)
    assert headroom.fits_l2


def test_headroom_is_the_declared_flop_on_the_unit_of_the_code(h200: Gpu) -> None:
    # 67 TFLOP/s in FP32, 989 in FP16 on tensor cores (NVIDIA H200 datasheet), of these 0.94
    work = DeclaredWork(flop=67e9, bytes=1e3)
    plain = declared_headroom(work, 2e-3, h200, unit="fp32")
    tensor = declared_headroom(work, 2e-3, h200, unit="tensor_fp16")
    assert plain
    assert tensor
    assert plain.factor == pytest.approx(2.0, rel=0.01)
    assert tensor.least == pytest.approx(67e9 / (0.94 * 989e12), rel=0.01)


def test_packed_half_precision_has_twice_the_rate_of_fp32(h200: Gpu) -> None:
    # HFMA2 computes two values: 2 x 67 TFLOP/s (NVIDIA H100 whitepaper: 133.8 TFLOP/s, SXM5)
    work = DeclaredWork(flop=67e9, bytes=1e3)
    half = declared_headroom(work, 2e-3, h200, unit="fp16")
    assert half
    assert half.least == pytest.approx(67e9 / 133.8e12, rel=0.01)


@pytest.mark.parametrize(
    ("pair", "flop", "least"),
    [
        # a multiply-add a step: 8192 x 1081344 x 2 FLOP on the FMA pipe
        ("control_fma", 1.7717e10, 1.7717e10 / 67e12),
        # 256 terms a value from constant memory: no product that tensor cores could take
        ("tail_effect", 1.7851e10, 1.7851e10 / 67e12),
    ],
)
def test_the_code_tells_the_unit_of_declared_flop(pair: str, flop: float, least: float) -> None:
    report = counter_free(PAIRS / pair / "before.ncu-repz")
    (whole,) = outlook_of_launches(report, {"": Call(DeclaredWork(flop, 8e6), 1e-3)}).wholes
    assert whole.headroom
    assert whole.headroom.floor == ARITHMETIC
    assert whole.headroom.least == pytest.approx(least, rel=0.01)


def test_a_product_on_the_fma_pipe_is_bounded_by_tensor_cores() -> None:
    # 2 x 4096 x 4096 x 2048 FLOP at 0.94 x 989 TFLOP/s take 73.9 µs; its fix took 262 µs, of 1867
    report = counter_free(pair_report("ffma_gemm", "before"))
    work = DeclaredWork(2 * 4096 * 4096 * 2048, 2 * (2 * 4096 * 2048 + 4096 * 4096))
    (whole,) = outlook_of_launches(report, {"": Call(work, 1.867e-3)}).wholes
    assert whole.headroom
    assert whole.headroom.least == pytest.approx(73.9e-6, rel=0.01)
    assert whole.headroom.factor > 1.867e-3 / 0.262e-3


def test_where_code_is_unknown_the_roof_is_that_of_tensor_cores(h200: Gpu) -> None:
    # 8192 x 8192 x 8192 at 400 TFLOP/s: 989 x 0.94 TFLOP/s of tensor cores are 2.32 times that
    work, seconds = DeclaredWork(flop=2 * 8192**3, bytes=3 * 2 * 8192**2), 2 * 8192**3 / 400e12
    unknown = declared_headroom(work, seconds, h200, unit="tensor_fp16")
    assert unknown
    assert unknown.factor == pytest.approx(2.32, abs=0.01)


def test_a_floor_above_the_time_bounds_nothing(h200: Gpu) -> None:
    work = DeclaredWork(flop=200e9, bytes=4.56e9 / 4)  # at least 3 ms in FP32, 0.25 ms in DRAM
    headroom = declared_headroom(work, 1e-3, h200, unit="fp32")
    assert headroom
    assert headroom.floor == "DRAM"
    assert headroom.factor == pytest.approx(4.0)
    assert math.isnan(headroom.attainable)


def test_measured_roofs_take_the_place_of_the_datasheets(h200: Gpu) -> None:
    work = DeclaredWork(flop=67e9, bytes=4.2e9)
    headroom = declared_headroom(work, 4e-3, h200, unit="fp32", measured={"dram": 4.2e12})
    assert headroom
    assert (headroom.factor, headroom.least) == pytest.approx((4.0, 1e-3))


def test_without_declared_work_there_is_no_headroom(h200: Gpu) -> None:
    work = DeclaredWork()
    assert declared_headroom(work, 1e-3, h200, unit="fp32") is None
    (whole,) = outlook("control_copy").wholes
    assert whole.headroom is None


def test_work_that_takes_the_whole_time_leaves_nothing_but_its_bytes() -> None:
    # the control copies 2 x 1 GiB in 0.514 ms
    report = counter_free(PAIRS / "control_copy" / "before.ncu-repz")
    work = DeclaredWork(bytes=2 * 2**30)
    made = outlook_of_launches(report, {"": Call(work, 0.514e-3)})
    assert made.findings[0].category == "dram_bandwidth"
    assert made.wholes[0].headroom
    assert made.wholes[0].headroom.factor == pytest.approx(0.514e-3 * 4.56e12 / 2**31)
    assert math.isnan(made.wholes[0].headroom.rate)
