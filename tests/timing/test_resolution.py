"""The typical ratio of two blocks of times, and what a timer's grid leaves open of it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from profkit.timing.latency import analyze_latency, compare_with
from profkit.timing.latency_format import Latency, Recorded, Series
from profkit.timing.resolution import common_value, log_shift, open_ticks
from profkit.timing.results import Verdict

times = st.lists(st.floats(1e-6, 1e-2), min_size=1, max_size=40).map(np.array)


def test_the_shift_by_hand() -> None:
    before, after = np.array([1.0, 2.0]), np.array([2.0, 8.0])
    pairs = sorted(math.log(b / a) for a in before for b in after)  # of 1, 2, 4 and 8
    assert log_shift(before, after) == pytest.approx((pairs[1] + pairs[2]) / 2)


def test_readings_of_a_tick_are_spread_over_it() -> None:
    """Half of the readings on either side: the time lies on the edge between both ticks."""
    before, after = np.repeat(100.0, 30), np.repeat([100.0, 101.0], 15)
    assert log_shift(before, after, 1.0) == pytest.approx(math.log(100.5 / 100), abs=1e-5)


@given(times, st.floats(0.1, 10))
def test_a_factor_is_the_shift(block: np.ndarray, factor: float) -> None:
    assert log_shift(block, factor * block) == pytest.approx(math.log(factor), abs=1e-9)


@given(times, times, st.sampled_from([0.0, 32e-9, 1.024e-6]))
def test_the_sides_mirror(before: np.ndarray, after: np.ndarray, tick: float) -> None:
    there, back = log_shift(before, after, tick), log_shift(after, before, tick)
    assert there == pytest.approx(-back, abs=1e-12)


def test_large_blocks_are_thinned_to_what_they_say() -> None:
    rng = np.random.default_rng(0)
    before, after = 1 + 0.01 * rng.random(5000), 1.02 * (1 + 0.01 * rng.random(5000))
    exact = np.median(np.subtract.outer(np.log(after[::3]), np.log(before[::3])))
    assert log_shift(before, after) == pytest.approx(float(exact), abs=2e-4)


def test_what_stays_open() -> None:
    rng = np.random.default_rng(0)
    still = [np.full(30, 60.0)] * 8
    edge = list(np.floor(60 + rng.random((8, 30)) * 0.1 + 0.95))  # two ticks, scatter of 0.03
    moving = list(np.rint(60 + rng.standard_normal((8, 30))))
    slow = [np.where(rng.random(30) < 0.2, 75.0, 60.0) for _ in range(8)]
    assert open_ticks(moving, moving, 1.0) == 0.25
    for side in (still, edge, slow):
        assert open_ticks(side, moving, 1.0) == open_ticks(moving, side, 1.0) > 1.4
    assert open_ticks(still, still, 0.0) == 0


def sides_on(tick: float, *sides: np.ndarray) -> list[Series]:
    """Latencies of ticks, shape (8, samples) each, that took turns."""
    turns = [(2 * i + i % 2, 2 * i + 1 - i % 2) for i in range(8)]

    def blocks(at: int, ticks: np.ndarray) -> tuple[Recorded, ...]:
        rows = zip(ticks * tick, turns, strict=True)
        return tuple(Recorded(turn=pair[at], samples=tuple(row.tolist())) for row, pair in rows)

    return [
        analyze_latency(Latency(label=f"side {at}", blocks=blocks(at, side)))
        for at, side in enumerate(sides)
    ]


@pytest.mark.parametrize("slower", [1020, 1100, 1500, 2000])
def test_what_two_steady_sides_have_in_common_is_no_grid_of_the_timer(slower: int) -> None:
    """32 ns ticks, a scatter of half a tick: the sides are 20 to 1000 ticks apart, not one."""
    rng = np.random.default_rng(0)
    a, b = (np.rint(size + 0.5 * rng.standard_normal((8, 30))) for size in (1000, slower))
    one, other = sides_on(32e-9, a, b)
    (pair,) = compare_with(one, [other])
    assert pair.comparison.resolution < 0.003
    assert pair.comparison.verdict is Verdict.REGRESSED


@pytest.mark.parametrize("rare", [1, 4, 12])
def test_a_tick_seen_in_few_samples_keeps_its_resolution_open(rare: int) -> None:
    """34.28 and 34.97 of ticks of 3%, rounded down: nearly all samples equal, B 2% slower."""
    a, b = np.full((8, 30), 34.0), np.full((8, 30), 34.0)
    b.ravel()[np.random.default_rng(0).choice(240, rare, replace=False)] = 35
    one, other = sides_on(1.024e-6, a, b)
    (pair,) = compare_with(one, [other])
    assert pair.comparison.resolution > 0.03
    assert pair.comparison.verdict is Verdict.INCONCLUSIVE


def test_the_one_value_of_all_samples() -> None:
    assert common_value([np.full(3, 2.0), np.full(4, 2.0)]) == 2.0
    assert common_value([np.full(3, 2.0), np.array([2.0, 3.0])]) is None
