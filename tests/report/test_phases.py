"""Phases of sampled signals whose prologue, steady state and tail are known."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from profkit.report.phases import FEWEST_SAMPLES, KernelTimeline, Series, course, kernel_timeline

PERIOD = 1.5e-6
CYCLES = 3000.0


def series(values: Sequence[float], *, stamp: int = 1_000, period: float = PERIOD) -> Series:
    return Series(tuple(at * period for at in range(len(values))), tuple(values), stamp)


def timeline(values: Sequence[float], idle: tuple[int, int] = (7, 5)) -> KernelTimeline:
    """The timeline of a kernel whose issue slots are busy like that, with idle SMs around it."""
    before, after = [0.0] * idle[0], [0.0] * idle[1]
    found = kernel_timeline(
        len(values) * PERIOD,
        {
            "sm_active_cycles": series([*before, *[CYCLES] * len(values), *after]),
            "issue_busy": series([*before, *values, *after]),
            "dram_busy": series([*before, *[min(values) / 2] * len(values), *after]),
        },
    )
    assert found is not None
    return found


def bounds(found: KernelTimeline) -> tuple[float, float]:
    """Where the steady phase begins and ends, in samples."""
    steady = next(phase for phase in found.phases if phase.name == "steady")
    return steady.start / PERIOD, steady.end / PERIOD


SMOOTHED = 5
"""Samples of the running median, by which a plateau has to outlast half of its ramps."""


def trapezoid(rise: int, flat: int, fall: int, height: float) -> list[float]:
    up = [height * (at + 0.5) / rise for at in range(rise)]
    down = [height * (at + 0.5) / fall for at in range(fall)][::-1]
    return [*up, *[height] * flat, *down]


@given(
    rise=st.integers(0, 60),
    more=st.integers(FEWEST_SAMPLES, 200),
    fall=st.integers(0, 60),
    height=st.floats(0.01, 1.0),
)
def test_a_trapezoid_is_steady_between_the_middles_of_its_ramps(
    rise: int, more: int, fall: int, height: float
) -> None:
    flat = (rise + fall) // 2 + max(more, SMOOTHED + 1)
    found = timeline(trapezoid(rise, flat, fall, height))
    first, past = bounds(found)
    assert first == pytest.approx(rise / 2, abs=1.01)
    assert past == pytest.approx(rise + flat + fall / 2, abs=1.01)
    assert found.steady["issue_busy"] == pytest.approx(height)
    assert found.below_half == pytest.approx((rise + fall) / 2 / (rise + flat + fall), abs=0.05)


@given(
    rise=st.integers(6, 40),
    flat=st.integers(60, 200),
    fall=st.integers(6, 40),
    seed=st.integers(0, 2**32 - 1),
)
def test_noise_moves_a_boundary_by_what_it_adds_to_the_ramp(
    rise: int, flat: int, fall: int, seed: int
) -> None:
    noise = 0.1
    shape = np.array(trapezoid(rise, flat, fall, 0.6))
    noisy = shape * np.random.default_rng(seed).uniform(1 - noise, 1 + noise, len(shape))
    first, past = bounds(timeline(list(noisy)))
    assert abs(first - rise / 2) <= 2 + noise * rise
    assert abs(past - (rise + flat + fall / 2)) <= 2 + noise * fall


def test_half_of_a_kernel_at_the_rate_of_one_block_is_its_tail() -> None:
    found = timeline([0.7] * 50 + [0.7 / 132] * 50)
    assert [phase.name for phase in found.phases] == ["steady", "tail"]
    assert found.share("tail") == pytest.approx(0.5)
    assert found.share("prologue") == 0
    assert found.below_half == pytest.approx(0.5)


def test_a_tail_of_nine_tenths_does_not_pass_for_the_kernel() -> None:
    found = timeline([0.9] * 20 + [0.02] * 180)
    assert found.steady["issue_busy"] == pytest.approx(0.9)
    assert found.below_half == pytest.approx(0.9)


def test_a_short_burst_at_the_start_does_not_pass_for_the_steady_rate() -> None:
    found = timeline([0.9] * 10 + [0.4] * 90)
    assert found.steady["issue_busy"] == pytest.approx(0.4)
    assert [phase.name for phase in found.phases] == ["steady"]


@given(level=st.floats(1e-4, 1.0), length=st.integers(FEWEST_SAMPLES, 300))
def test_a_constant_signal_is_steady_all_along(level: float, length: int) -> None:
    found = timeline([level] * length)
    assert [phase.name for phase in found.phases] == ["steady"]
    assert found.share("steady") == pytest.approx(1)
    assert found.below_half == 0


@given(
    places=st.lists(st.integers(0, 19), max_size=20, unique=True),
    width=st.integers(1, 2),
    height=st.sampled_from([0.0, 0.05, 30.0]),
)
def test_spikes_of_one_or_two_samples_end_no_phase(
    places: list[int], width: int, height: float
) -> None:
    values = [0.5] * 160
    for place in places:
        values[8 * place + 3 : 8 * place + 3 + width] = [height] * width
    found = timeline(values)
    assert [phase.name for phase in found.phases] == ["steady"]
    assert found.steady["issue_busy"] == pytest.approx(0.5)
    dips = len(places) * width if height < 0.25 else 0
    assert found.below_half == pytest.approx(dips / len(values))


# Values that a scale of 2^-9 leaves normal: of a subnormal one, scaling changes the digits.
SIGNALS = st.lists(st.just(0.0) | st.floats(1e-300, 1), min_size=5, max_size=200)


@given(values=SIGNALS, scale=st.sampled_from([2.0**-9, 0.5, 2.0, 2.0**10]))
def test_phases_do_not_depend_on_the_unit(values: list[float], scale: float) -> None:
    one, other = course(values), course([scale * value for value in values])
    if one is None or other is None:
        assert one is other
        return
    assert (other.first, other.past) == (one.first, one.past)
    assert other.rate == scale * one.rate
    assert other.below_half == one.below_half


@given(values=SIGNALS)
def test_a_signal_backwards_has_its_phases_backwards(values: list[float]) -> None:
    one, other = course(values), course(values[::-1])
    if one is None or other is None:
        assert one is other
        return
    assert (other.first, other.past) == (len(values) - one.past, len(values) - one.first)
    assert other.rate == one.rate
    assert other.below_half == pytest.approx(one.below_half)


@given(values=SIGNALS)
def test_the_phases_of_anything_lie_within_it(values: list[float]) -> None:
    found = course(values)
    if found is not None:
        assert 0 <= found.first < found.past <= len(values)
        assert 0 <= found.below_half < 1
        assert 0 < found.rate <= max(values)


def test_the_kernel_is_cut_out_where_sms_have_work() -> None:
    near, far = timeline([0.5] * 40, (0, 0)), timeline([0.5] * 40, (300, 40))
    assert near.end == pytest.approx(40 * PERIOD) == far.end
    assert [track.name for track in far.tracks] == ["issue_busy", "dram_busy"]
    assert far.tracks[0].times[0] == 0
    assert len(far.tracks[0].values) == 40


def test_a_short_kernel_has_tracks_and_the_reason_that_it_has_no_phases() -> None:
    found = timeline([0.5] * (FEWEST_SAMPLES - 1))
    assert found.phases == ()
    assert found.driver is None
    assert math.isnan(found.below_half)
    assert math.isnan(found.share("tail"))
    assert "no phases: 19 samples of the kernel, at least 20 required" in found.notes
    assert timeline([0.5] * FEWEST_SAMPLES).phases


def test_a_range_of_launches_has_no_phases() -> None:
    active, busy = series([CYCLES] * 50), series([0.5] * 50)
    found = kernel_timeline(1.0, {"sm_active_cycles": active, "l2_busy": busy}, several=True)
    assert found is not None
    assert found.phases == ()
    assert any("range replay" in note for note in found.notes)


def test_without_samples_of_sms_there_is_no_timeline() -> None:
    assert kernel_timeline(1.0, {"issue_busy": series([0.5] * 50)}) is None
    assert kernel_timeline(1.0, {"sm_active_cycles": series([0.0] * 50)}) is None


def test_nothing_busy_is_a_reason_too() -> None:
    found = timeline([0.0] * 40)
    assert found.phases == ()
    assert "no phases: no sampled resource was busy" in found.notes


def test_a_track_of_another_pass_begins_where_it_begins() -> None:
    found = kernel_timeline(
        40 * PERIOD,
        {
            "sm_active_cycles": series([0.0] * 10 + [CYCLES] * 40),
            "issue_busy": series([0.0] * 10 + [0.3] * 40),
            "l2_busy": series([0.001] * 33 + [0.8] * 40 + [0.001] * 20, stamp=999_999),
        },
    )
    assert found is not None
    l2 = found.track("l2_busy")
    assert l2 is not None
    assert list(l2.values) == [0.8] * 40
    assert found.driver == "l2_busy"
    assert found.steady["issue_busy"] == 0.3
    assert any("another pass" in note and "L2" in note for note in found.notes)


def test_the_share_of_sms_at_work_follows_from_instructions_a_cycle() -> None:
    """With 4 schedulers 50% of the issue slots at 2 instructions a cycle is all SMs, at 4 half."""
    half = 20
    found = kernel_timeline(
        2 * half * PERIOD,
        {
            "sm_active_cycles": series([CYCLES] * half + [CYCLES / 2] * half),
            "issue_busy": series([0.5] * half + [0.5] * (half - 1) + [0.0]),
            "ipc_active": series([2.0] * half + [4.0] * (half - 1) + [0.0]),
            "clusters_active": series([8 * CYCLES] * half + [4 * CYCLES] * half),
        },
        schedulers=4,
    )
    assert found is not None
    active, clusters = found.track("sm_active"), found.track("clusters_active")
    assert active is not None
    assert clusters is not None
    assert active.values == pytest.approx([1.0] * half + [0.5] * half)
    assert clusters.values == pytest.approx([8.0] * half + [4.0] * half)
