"""The SM clock from counters: by hand, and which readings are rejected."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from profkit.timing.sm_clock import Stretch, between, mean_clock, tick

SMS = 132
TICK = 32


def readings(cycles: float, nanoseconds: int, clocks: np.ndarray | None = None) -> tuple[
    np.ndarray, np.ndarray
]:  # fmt: skip
    """Before and after, of SMs that began to count at different times."""
    began = np.arange(SMS) * 1_000_003
    before = np.stack([began, np.full(SMS, 7 * TICK)], axis=1).astype(np.int64)
    nanoseconds = nanoseconds // TICK * TICK
    counted = cycles * (np.ones(SMS) if clocks is None else clocks)
    after = before + np.stack([counted, np.full(SMS, nanoseconds)], axis=1).astype(np.int64)
    after[:, 1] += TICK * (np.arange(SMS) % 2)
    return before, after


def test_the_clock_is_cycles_over_time() -> None:
    before, after = readings(1_980_000, 1_000_000)
    found = between(before, after, TICK)
    assert found is not None
    assert found.cycles == 1_980_000
    assert mean_clock([found]) == pytest.approx(1.98e9, rel=1e-4)
    assert tick(before, after) == TICK


def test_the_tick_is_what_all_readings_have_in_common() -> None:
    """Where every SM reads the same two times, one reading gives only a multiple of it."""
    few = np.array([[0, 9 * TICK], [5, 9 * TICK]]), np.array([[7, 216_316 * TICK]] * 2)
    assert tick(*few) == 216_307 * TICK
    more = np.array([[0, 4 * TICK], [5, 4 * TICK]]), np.array([[7, 5_007 * TICK]] * 2)
    assert math.gcd(tick(*few), tick(*more)) == TICK
    assert tick(np.zeros((3, 2), dtype=np.int64)) == 0


def test_stretches_count_by_their_length() -> None:
    slow, fast = Stretch(3_000_000, 2e-3), Stretch(2_000_000, 1e-3)
    assert mean_clock([slow, fast]) == pytest.approx(5e6 / 3e-3)
    assert mean_clock([slow, None]) is None
    assert mean_clock([]) is None


def test_clusters_at_two_clocks_give_the_mean() -> None:
    """Of which the peak of all SMs is the product with their number."""
    clocks = np.where(np.arange(SMS) < SMS // 4, 0.96, 1.0)
    before, after = readings(1_500_000, 1_000_000, clocks)
    assert mean_clock([between(before, after, TICK)]) == pytest.approx(1.5e9 * 0.99, rel=1e-4)


def test_an_sm_that_was_not_asked_twice_counts_for_nothing() -> None:
    before, after = readings(1_500_000, 1_000_000)
    before[:60] = 0
    after[100:] = 0
    assert mean_clock([between(before, after, TICK)]) == pytest.approx(1.5e9, rel=1e-4)
    assert between(np.zeros_like(before), after, TICK) is None


def test_sms_that_disagree_are_not_believed() -> None:
    before, after = readings(1_500_000, 1_000_000, np.linspace(0.8, 1.2, SMS))
    assert between(before, after, TICK) is None


def test_a_stretch_is_long_against_the_tick() -> None:
    before, after = readings(1980 * 3, 3000)
    assert between(before, after, TICK) is None
    before, after = readings(1980 * 10, 10_000)
    assert between(before, after, TICK) is not None


@given(
    hertz=st.floats(2e8, 3e9),
    seconds=st.floats(1e-4, 10),
    spread=st.floats(0, 0.003),
)
def test_the_clock_lies_between_those_of_the_sms(
    hertz: float, seconds: float, spread: float
) -> None:
    clocks = np.linspace(1 - spread, 1 + spread, SMS)
    found = between(*readings(hertz * seconds, round(seconds * 1e9), clocks), TICK)
    clock = mean_clock([found])
    assert clock is not None
    assert (1 - spread - 1e-3) * hertz <= clock <= (1 + spread + 1e-3) * hertz
