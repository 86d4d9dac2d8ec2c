"""A clock that a launch is too short to read gates no comparison and sets no roof."""

from __future__ import annotations

import pytest

from profkit.comparison.comparability import Aspect, kernels_apart
from profkit.report.checks import TOO_SHORT
from profkit.report.quantities import evaluate
from profkit.report.summary import (
    CLOCK_ERROR,
    LaunchSummary,
    clock_error,
    clocks_apart,
    groups,
    is_clock_measured,
    summarize,
)
from tests.report.test_quantities import raw

V100_BYTES = 1024  # a cycle of the DRAM, read off a report


def launch(seconds: float, *, sm: float = 1.4e9, dram: float = 877e6) -> LaunchSummary:
    """A launch on a V100 (nominal: SM 1.53 GHz, DRAM 877 MHz) that read these clocks."""
    report = raw(
        (7, 0),
        gpu__time_duration__dot__sum=seconds,
        gpc__cycles_elapsed__dot__avg__dot__per_second=sm,
        dram__cycles_elapsed__dot__avg__dot__per_second=dram,
        lts__cycles_elapsed__dot__avg__dot__per_second=1e9,
        dram__bytes__dot__sum__dot__peak_sustained=V100_BYTES,
        derived__sm__sass_thread_inst_executed_op_ffma_pred_on_x2=10240,
        derived__lts__lts2xbar_bytes__dot__sum__dot__peak_sustained=2048,
        device__attribute_clock_rate=1_530_000,
        device__attribute_memory_clock_rate=877_000,
    )
    return summarize(report, evaluate(report)).launches[0]


def test_roofs_of_a_short_launch_stand_at_the_nominal_clock() -> None:
    short, long = (launch(seconds, dram=415.8e6) for seconds in (10e-6, 10e-3))
    assert short.get("dram_bandwidth_peak") == pytest.approx(898e9, rel=1e-3)
    assert long.get("dram_bandwidth_peak") == pytest.approx(425.8e9, rel=1e-3)
    assert short.get("peak_rate_fp32") == pytest.approx(10240 * 1.53e9)
    assert long.get("peak_rate_fp32") == pytest.approx(10240 * 1.4e9)
    assert short.get("dram_clock") == 415.8e6
    assert not is_clock_measured(short, "sm_clock")
    assert not is_clock_measured(short, "dram_clock")
    assert is_clock_measured(long, "sm_clock")
    assert is_clock_measured(long, "dram_clock")


def test_a_short_launch_has_no_roof_of_a_clock_without_a_nominal_one() -> None:
    assert launch(10e-6).missing["l2_output_bandwidth_peak"] == TOO_SHORT
    assert launch(10e-3).get("l2_output_bandwidth_peak") == pytest.approx(2.048e12)


@pytest.mark.parametrize(("seconds", "apart"), [(10e-6, False), (60e-6, False), (20e-3, True)])
def test_clocks_of_short_launches_keep_nothing_from_being_compared(
    seconds: float, apart: bool
) -> None:
    before, after = launch(seconds, dram=877e6), launch(seconds, dram=760e6)
    told = kernels_apart(groups([before])[0], groups([after])[0])
    assert any(obstacle.aspect is Aspect.memory_clock for obstacle in told) == apart


def test_a_difference_beyond_both_errors_counts() -> None:
    seconds = 1e-3
    error = CLOCK_ERROR / seconds
    base = launch(seconds)
    assert clock_error(base) == pytest.approx(error)
    within, beyond = (launch(seconds, sm=1.4e9 * (1 + share * error)) for share in (1.9, 2.1))
    assert not clocks_apart("sm_clock", base, within, threshold=0.0)
    assert clocks_apart("sm_clock", base, beyond, threshold=0.0)
    assert not clocks_apart("sm_clock", base, beyond, threshold=0.05)
